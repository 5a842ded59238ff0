// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the read-only netlink commands. No secret is reported: no cluster key, DC key or
 * remote key. Queues, connections and users of others are shown only to CAP_NET_ADMIN.
 * Locking: each walk takes the locks of its objects; a dump keeps a position between its
 * messages, not a lock, so it is no snapshot.
 */
#include <linux/module.h>
#include <linux/netlink.h>

#include "api/show.h"
#include "base/limits.h"
#include "ctl/netlink.h"
#include "ctl/show.h"
#include "krp_genl.h"
#include "message/message.h"
#include "meta/cache.h"
#include "node/device.h"
#include "node/port.h"
#include "peer/peer.h"
#include "pool/pool.h"
#include "user/show.h"

#define KRC_NL_REPLY_BYTES 8192 /* fits the longest answer, a node with 16 servers */

static_assert((int)KRP_GENL_PORT_UNUSABLE == (int)KRC_PORT_UNUSABLE);
static_assert((int)KRP_GENL_PORT_DOWN == (int)KRC_PORT_DOWN);
static_assert((int)KRP_GENL_PORT_UP == (int)KRC_PORT_UP);
static_assert((int)KRP_GENL_SERVER_DOWN == (int)KRC_META_DOWN);
static_assert((int)KRP_GENL_SERVER_RESOLVING == (int)KRC_META_RESOLVING);
static_assert((int)KRP_GENL_SERVER_CONNECTING == (int)KRC_META_CONNECTING);
static_assert((int)KRP_GENL_SERVER_HELLO == (int)KRC_META_HELLO);
static_assert((int)KRP_GENL_SERVER_READY == (int)KRC_META_READY);
static_assert((int)KRP_GENL_SERVER_CLOSING == (int)KRC_META_CLOSING);
static_assert((int)KRP_GENL_SERVER_STATES == (int)KRC_META_STATES);

/**
 * struct krc_nl_dump - State of a dump between its messages; in netlink_callback.ctx.
 * @at: objects of the outer walk that are done.
 * @inner: objects of the inner walk that are done.
 * @queue: the queue or connection at which a walk of these goes on.
 * @conn: the same of connections of clients in the kernel, once @kernel is set.
 * @peer: the same of peers.
 * @cache: the same of records of the metadata cache, once @inner is set.
 * @kernel: all connections of programs were shown.
 * @uid: show only queues, connections and peers of this user, unless @all.
 * @owner: show only what is charged to this user (krc_owner()), unless @all.
 * @all: show those of all users.
 */
struct krc_nl_dump {
	u32 at;
	u32 inner;
	union {
		struct krc_queue_at queue;
		struct krc_conn_at conn;
		struct krc_peer_at peer;
		struct krc_cache_at cache;
	};
	kuid_t uid;
	kuid_t owner;
	bool all;
	bool kernel;
};

static_assert(sizeof(struct krc_nl_dump) <= sizeof_field(struct netlink_callback, ctx));

/* Argument of a walk that adds messages to a dump; a non-zero @err ended it. */
struct krc_nl_walk {
	struct sk_buff *skb;
	struct netlink_callback *cb;
	int err;
};

static struct krc_nl_dump *krc_nl_dump(struct netlink_callback *cb)
{
	return (struct krc_nl_dump *)cb->ctx;
}

int krc_nl_own_start(struct netlink_callback *cb)
{
	struct krc_nl_dump *dump = krc_nl_dump(cb);

	dump->uid = current_uid();
	dump->owner = krc_owner_current();
	dump->all = netlink_capable(cb->skb, CAP_NET_ADMIN);
	return 0;
}

/* Add one message to a dump, filled by @put from @row, or none on error. Return: 0 or an errno. */
static int krc_nl_row(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd,
		      int (*put)(struct sk_buff *skb, const void *row), const void *row)
{
	void *hdr;
	int err;

	hdr = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &krc_nl_family,
			  NLM_F_MULTI, cmd);
	if (!hdr)
		return -EMSGSIZE;
	err = put(skb, row);
	if (err)
		genlmsg_cancel(skb, hdr);
	else
		genlmsg_end(skb, hdr);
	return err;
}

/* krc_nl_row() inside a walk, which ends when the dump's buffer is full. */
static int krc_nl_walk_row(struct krc_nl_walk *walk, u8 cmd,
			   int (*put)(struct sk_buff *skb, const void *row), const void *row)
{
	walk->err = krc_nl_row(walk->skb, walk->cb, cmd, put, row);
	return walk->err;
}

/* Return, from a .dumpit: the length so far if the buffer is full, to be called again; or @err. */
static int krc_nl_dumped(struct sk_buff *skb, int err)
{
	return err == -EMSGSIZE && skb->len ? skb->len : err;
}

/* Add the address of a configured server or of a session. */
static int krc_nl_put_addr(struct sk_buff *skb, const struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;

	if (addr->ss_family == AF_INET)
		return nla_put(skb, KRP_GENL_A_SERVER_ADDRESS, 4, &in->sin_addr)
			       ?: nla_put_u16(skb, KRP_GENL_A_SERVER_PORT,
					      be16_to_cpu(in->sin_port));
	return nla_put(skb, KRP_GENL_A_SERVER_ADDRESS, 16, &in6->sin6_addr) ?:
	       nla_put_u16(skb, KRP_GENL_A_SERVER_PORT, be16_to_cpu(in6->sin6_port)) ?:
	       (in6->sin6_scope_id ?
			nla_put_u32(skb, KRP_GENL_A_SERVER_SCOPE, in6->sin6_scope_id) :
			0);
}

static int krc_nl_put_u64(struct sk_buff *skb, int type, u64 value)
{
	return nla_put_u64_64bit(skb, type, value, 1); /* attribute 1 of each set is its PAD */
}

static_assert(KRP_GENL_A_NODE_PAD == 1 && KRP_GENL_A_PORT_PAD == 1 && KRP_GENL_A_SERVER_PAD == 1);
static_assert(KRP_GENL_A_QUEUE_PAD == 1 && KRP_GENL_A_PEER_PAD == 1 && KRP_GENL_A_STATS_PAD == 1);
static_assert(KRP_GENL_A_POOL_PAD == 1 && KRP_GENL_A_USER_PAD == 1);
static_assert(KRP_GENL_A_CONN_PAD == 1 && KRP_GENL_A_MESSAGES_PAD == 1);
static_assert(KRP_GENL_A_LANES_PAD == 1);

static int krc_nl_put_text(struct sk_buff *skb, int type, const char *text)
{
	return text && text[0] ? nla_put_string(skb, type, text) : 0;
}

static int krc_nl_put_conf_server(struct sk_buff *skb, const struct krc_meta_server_conf *server)
{
	struct nlattr *nest;

	nest = nla_nest_start(skb, KRP_GENL_A_NODE_SERVER);
	if (!nest)
		return -EMSGSIZE;
	if (krc_nl_put_addr(skb, &server->addr) ||
	    nla_put_u16(skb, KRP_GENL_A_SERVER_PRIORITY, server->priority) ||
	    nla_put_string(skb, KRP_GENL_A_SERVER_NAME, server->name))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int krc_nl_put_node(struct sk_buff *skb, const struct krc_node_conf *conf)
{
	const struct krc_meta_conf *meta = &conf->meta;
	u32 i;

	if (nla_put(skb, KRP_GENL_A_NODE_OWNER, sizeof(meta->owner), meta->owner) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_NODE_GENERATION, meta->generation) ||
	    nla_put_string(skb, KRP_GENL_A_NODE_NAME, meta->name) ||
	    nla_put_u8(skb, KRP_GENL_A_NODE_AUTH, meta->keys_nr > 0) ||
	    nla_put_u32(skb, KRP_GENL_A_NODE_LEASE_MS, meta->lease_ms) ||
	    nla_put_u32(skb, KRP_GENL_A_NODE_TIMEOUT_MS, meta->timeout_ms) ||
	    nla_put_u32(skb, KRP_GENL_A_NODE_RECONNECT_MIN_MS, meta->reconnect_min_ms) ||
	    nla_put_u32(skb, KRP_GENL_A_NODE_RECONNECT_MAX_MS, meta->reconnect_max_ms) ||
	    krc_nl_put_text(skb, KRP_GENL_A_NODE_DEVICE, conf->device) ||
	    nla_put_u32(skb, KRP_GENL_A_NODE_POOL_INITIATORS, conf->pool_initiators) ||
	    nla_put_u32(skb, KRP_GENL_A_NODE_POOL_DEPTH, conf->pool_depth) ||
	    nla_put_u32(skb, KRP_GENL_A_NODE_ACK_TIMEOUT, conf->ack_timeout) ||
	    nla_put_u32(skb, KRP_GENL_A_NODE_MARGIN_MS, conf->margin_ms) ||
	    nla_put_u32(skb, KRP_GENL_A_NODE_CACHE_ENTRIES, conf->cache_entries) ||
	    nla_put_u32(skb, KRP_GENL_A_NODE_QUEUES_PER_USER, conf->queues_per_user) ||
	    nla_put_u32(skb, KRP_GENL_A_NODE_REQUESTS_PER_USER, conf->requests_per_user) ||
	    nla_put_u32(skb, KRP_GENL_A_NODE_MRS_PER_USER, conf->mrs_per_user) ||
	    nla_put_u32(skb, KRP_GENL_A_NODE_TRAFFIC_CLASS, conf->fabric.traffic_class) ||
	    nla_put_u32(skb, KRP_GENL_A_NODE_SERVICE_LEVEL, conf->fabric.sl) ||
	    nla_put_u32(skb, KRP_GENL_A_NODE_PKEY, conf->fabric.pkey) ||
	    nla_put_u32(skb, KRP_GENL_A_NODE_MTU, conf->fabric.mtu))
		return -EMSGSIZE;
	for (i = 0; i < meta->servers_nr; i++)
		if (krc_nl_put_conf_server(skb, &meta->servers[i]))
			return -EMSGSIZE;
	return 0;
}

static int krc_nl_reply(struct genl_info *info, int (*put)(struct sk_buff *skb, void *arg),
			void *arg)
{
	struct sk_buff *skb;
	void *hdr;
	int err;

	skb = genlmsg_new(KRC_NL_REPLY_BYTES, GFP_KERNEL);
	if (!skb)
		return -ENOMEM;
	hdr = genlmsg_put_reply(skb, info, &krc_nl_family, 0, info->genlhdr->cmd);
	err = hdr ? put(skb, arg) : -EMSGSIZE;
	if (err) {
		nlmsg_free(skb);
		return err;
	}
	genlmsg_end(skb, hdr);
	return genlmsg_reply(skb, info);
}

static int krc_nl_put_node_get(struct sk_buff *skb, void *arg)
{
	struct krc_node_conf *conf = arg;
	int up = krc_node_is_up(conf);

	if (up < 0)
		return up;
	if (nla_put_u8(skb, KRP_GENL_A_NODE_UP, up) ||
	    krc_nl_put_text(skb, KRP_GENL_A_NODE_VERSION, THIS_MODULE->version))
		return -EMSGSIZE;
	return up ? krc_nl_put_node(skb, conf) : 0;
}

int krc_nl_node_get(struct sk_buff *skb, struct genl_info *info)
{
	struct krc_node_conf *conf;
	int err;

	conf = kzalloc(sizeof(*conf), GFP_KERNEL);
	if (!conf)
		return -ENOMEM;
	err = krc_nl_reply(info, krc_nl_put_node_get, conf);
	kfree_sensitive(conf);
	return err;
}

static int krc_nl_put_port(struct sk_buff *skb, const void *row)
{
	const struct krc_port_info *port = row;
	const struct krp_value *value = &port->value;

	if (nla_put_string(skb, KRP_GENL_A_PORT_DEVICE, port->device) ||
	    nla_put_u32(skb, KRP_GENL_A_PORT_NUM, port->num) ||
	    nla_put_u8(skb, KRP_GENL_A_PORT_STATE, port->state) ||
	    krc_nl_put_text(skb, KRP_GENL_A_PORT_REASON, port->reason) ||
	    krc_nl_put_text(skb, KRP_GENL_A_PORT_PROVIDER, port->provider))
		return -EMSGSIZE;
	if (memchr_inv(&port->gid, 0, sizeof(port->gid)) &&
	    nla_put(skb, KRP_GENL_A_PORT_GID, sizeof(port->gid), &port->gid))
		return -EMSGSIZE;
	if (port->state != KRC_PORT_UP)
		return 0;
	if (nla_put_u32(skb, KRP_GENL_A_PORT_DCTN, krp_le32_to_cpu(value->dct.dctn)) ||
	    nla_put_u16(skb, KRP_GENL_A_PORT_LID, krp_le16_to_cpu(value->dct.lid)) ||
	    nla_put_u8(skb, KRP_GENL_A_PORT_MTU, value->dct.mtu) ||
	    nla_put_u8(skb, KRP_GENL_A_PORT_ETHERNET, !!(value->dct.flags & KRP_DCT_ETHERNET)) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_PORT_GENERATION, krp_le64_to_cpu(value->generation)) ||
	    nla_put_u32(skb, KRP_GENL_A_PORT_INITIATORS, port->initiators) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_PORT_RECOVERIES, port->recoveries))
		return -EMSGSIZE;
	return 0;
}

int krc_nl_port_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct krc_nl_dump *dump = krc_nl_dump(cb);
	struct krc_port_info port;
	int err = 0;

	for (; !err; dump->at += !err) {
		memset(&port, 0, sizeof(port));
		err = krc_node_port_info(dump->at, &port);
		if (!err)
			err = krc_nl_row(skb, cb, KRP_GENL_CMD_PORT_GET, krc_nl_put_port, &port);
	}
	return krc_nl_dumped(skb, err == -ENOENT ? 0 : err);
}

/* A MetaServer session and its port. */
struct krc_nl_session {
	const struct krc_port_info *port;
	struct krc_meta_info meta;
};

static int krc_nl_put_session(struct sk_buff *skb, const void *row)
{
	const struct krc_nl_session *session = row;
	const struct krc_port_info *port = session->port;
	const struct krc_meta_info *meta = &session->meta;

	if (krc_nl_put_addr(skb, &meta->addr) ||
	    nla_put_u16(skb, KRP_GENL_A_SERVER_PRIORITY, meta->priority) ||
	    nla_put_string(skb, KRP_GENL_A_SERVER_NAME, meta->name) ||
	    nla_put_string(skb, KRP_GENL_A_SERVER_DEVICE, port->device) ||
	    nla_put_u32(skb, KRP_GENL_A_SERVER_DEVICE_PORT, port->num) ||
	    nla_put_u8(skb, KRP_GENL_A_SERVER_STATE, meta->state) ||
	    nla_put_s32(skb, KRP_GENL_A_SERVER_ERROR, meta->error) ||
	    krc_nl_put_text(skb, KRP_GENL_A_SERVER_REASON, meta->reason) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_SERVER_INCARNATION, meta->incarnation) ||
	    nla_put_u32(skb, KRP_GENL_A_SERVER_LEASE_MS, meta->lease_ms) ||
	    nla_put_u32(skb, KRP_GENL_A_SERVER_PUBLISHED, meta->published) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_SERVER_ATTACHES, meta->attaches) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_SERVER_LOOKUPS, meta->lookups) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_SERVER_READS, meta->reads) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_SERVER_MISSES, meta->misses) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_SERVER_FAILURES, meta->failures) ||
	    nla_put_u32(skb, KRP_GENL_A_SERVER_NEXT_TRY_MS, meta->next_try_ms) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_SERVER_MISSES_OVERRULED, meta->misses_overruled))
		return -EMSGSIZE;
	return 0;
}

/* Add the sessions of one port, from dump->inner on. */
static int krc_nl_sessions(struct sk_buff *skb, struct netlink_callback *cb,
			   const struct krc_port_info *port)
{
	struct krc_nl_dump *dump = krc_nl_dump(cb);
	struct krc_nl_session session = { .port = port };
	int err;

	for (;; dump->inner++) {
		memset(&session.meta, 0, sizeof(session.meta));
		err = krc_node_meta_info(dump->at, dump->inner, &session.meta);
		if (err)
			return err == -ENOENT ? 0 : err;
		err = krc_nl_row(skb, cb, KRP_GENL_CMD_SERVER_GET, krc_nl_put_session, &session);
		if (err)
			return err;
	}
}

int krc_nl_server_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct krc_nl_dump *dump = krc_nl_dump(cb);
	struct krc_port_info port;
	int err;

	for (;; dump->at++, dump->inner = 0) {
		memset(&port, 0, sizeof(port));
		err = krc_node_port_info(dump->at, &port);
		if (err)
			return err == -ENOENT ? 0 : err;
		err = krc_nl_sessions(skb, cb, &port);
		if (err)
			return krc_nl_dumped(skb, err);
	}
}

static int krc_nl_put_queue(struct sk_buff *skb, const void *row)
{
	const struct krc_queue_info *queue = row;
	struct user_namespace *ns = current_user_ns();

	if (krc_nl_put_u64(skb, KRP_GENL_A_QUEUE_CONTEXT, queue->context) ||
	    nla_put_u32(skb, KRP_GENL_A_QUEUE_NUMBER, queue->queue) ||
	    nla_put_u32(skb, KRP_GENL_A_QUEUE_PID, queue->pid) ||
	    nla_put_u32(skb, KRP_GENL_A_QUEUE_UID, from_kuid_munged(ns, queue->uid)) ||
	    nla_put_string(skb, KRP_GENL_A_QUEUE_COMM, queue->comm) ||
	    nla_put_u8(skb, KRP_GENL_A_QUEUE_STATE, queue->state) ||
	    nla_put_s32(skb, KRP_GENL_A_QUEUE_ERROR, queue->error) ||
	    nla_put_u32(skb, KRP_GENL_A_QUEUE_DEPTH, queue->depth) ||
	    nla_put_u32(skb, KRP_GENL_A_QUEUE_OUTSTANDING, queue->outstanding) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_QUEUE_POSTED, queue->posted) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_QUEUE_COMPLETED, queue->completed) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_QUEUE_FAILED, queue->failed) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_QUEUE_BYTES, queue->bytes) ||
	    nla_put_u8(skb, KRP_GENL_A_QUEUE_ISOLATED, queue->isolated) ||
	    (queue->placed && nla_put_u32(skb, KRP_GENL_A_QUEUE_INITIATOR, queue->initiator)))
		return -EMSGSIZE;
	if (queue->state == KRP_QUEUE_IDLE)
		return 0;
	return nla_put(skb, KRP_GENL_A_QUEUE_GID, sizeof(queue->gid), queue->gid)
		       ?: nla_put_u16(skb, KRP_GENL_A_QUEUE_SERVICE, queue->service);
}

static int krc_nl_queue(const struct krc_queue_info *queue, void *arg)
{
	return krc_nl_walk_row(arg, KRP_GENL_CMD_QUEUE_GET, krc_nl_put_queue, queue);
}

int krc_nl_queue_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct krc_nl_walk walk = { .skb = skb, .cb = cb };
	struct krc_nl_dump *dump = krc_nl_dump(cb);

	krc_queue_walk(&dump->queue, dump->all ? NULL : &dump->uid, krc_nl_queue, &walk);
	return krc_nl_dumped(skb, walk.err);
}

/* What carries the messages of a connection. */
static int krc_nl_put_where(struct sk_buff *skb, const struct krc_stream_where *where)
{
	if (!where->placed)
		return 0;
	return nla_put_u32(skb, KRP_GENL_A_CONN_INITIATOR, where->initiator);
}

/* What is said of a connection of whomever. */
static int krc_nl_put_how(struct sk_buff *skb, const struct krp_conn_query *how, u32 depth)
{
	if (nla_put_u32(skb, KRP_GENL_A_CONN_NUMBER, how->connection) ||
	    nla_put_u8(skb, KRP_GENL_A_CONN_STATE, how->state) ||
	    nla_put_s32(skb, KRP_GENL_A_CONN_ERROR, how->error))
		return -EMSGSIZE;
	if (how->state == KRP_CONN_OFFERED)
		return 0;
	if (nla_put(skb, KRP_GENL_A_CONN_GID, sizeof(how->peer.gid), how->peer.gid) ||
	    nla_put_u16(skb, KRP_GENL_A_CONN_SERVICE, how->peer.service) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_CONN_GENERATION, how->peer.generation) ||
	    nla_put_u32(skb, KRP_GENL_A_CONN_DEPTH, depth) ||
	    nla_put_u32(skb, KRP_GENL_A_CONN_OUTSTANDING, how->outstanding) ||
	    nla_put_u32(skb, KRP_GENL_A_CONN_WAITING, how->waiting) ||
	    nla_put_u32(skb, KRP_GENL_A_CONN_WINDOW, how->window) ||
	    nla_put_u32(skb, KRP_GENL_A_CONN_UNACKED, how->unacked) ||
	    nla_put_u32(skb, KRP_GENL_A_CONN_BACKLOG, how->backlog) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_CONN_SENT, how->sent) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_CONN_RECEIVED, how->received) ||
	    nla_put_u32(skb, KRP_GENL_A_CONN_REPEATS, how->repeats) ||
	    nla_put_u32(skb, KRP_GENL_A_CONN_GAPS, how->gaps) ||
	    nla_put_u32(skb, KRP_GENL_A_CONN_BUSY, how->busy) ||
	    nla_put_u32(skb, KRP_GENL_A_CONN_FOREIGN, how->foreign))
		return -EMSGSIZE;
	return 0;
}

static int krc_nl_put_talk(struct sk_buff *skb, const void *row)
{
	const struct krc_talk_info *talk = row;
	struct user_namespace *ns = current_user_ns();

	return krc_nl_put_u64(skb, KRP_GENL_A_CONN_CONTEXT, talk->context) ?:
	       nla_put_u32(skb, KRP_GENL_A_CONN_PID, talk->pid) ?:
	       nla_put_u32(skb, KRP_GENL_A_CONN_UID, from_kuid_munged(ns, talk->uid)) ?:
	       nla_put_string(skb, KRP_GENL_A_CONN_COMM, talk->comm) ?:
	       krc_nl_put_how(skb, &talk->how, talk->depth) ?:
	       krc_nl_put_where(skb, &talk->where);
}

static int krc_nl_talk(const struct krc_talk_info *talk, void *arg)
{
	return krc_nl_walk_row(arg, KRP_GENL_CMD_CONN_GET, krc_nl_put_talk, talk);
}

static int krc_nl_put_conn(struct sk_buff *skb, const void *row)
{
	const struct krc_conn_info *conn = row;

	return krc_nl_put_u64(skb, KRP_GENL_A_CONN_CLIENT, conn->client) ?:
	       nla_put_string(skb, KRP_GENL_A_CONN_COMM, conn->name) ?:
	       krc_nl_put_how(skb, &conn->how, conn->depth) ?:
	       krc_nl_put_where(skb, &conn->where);
}

static int krc_nl_conn(const struct krc_conn_info *conn, void *arg)
{
	return krc_nl_walk_row(arg, KRP_GENL_CMD_CONN_GET, krc_nl_put_conn, conn);
}

int krc_nl_conn_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct krc_nl_walk walk = { .skb = skb, .cb = cb };
	struct krc_nl_dump *dump = krc_nl_dump(cb);

	if (!dump->kernel) {
		krc_talk_walk(&dump->queue, dump->all ? NULL : &dump->uid, krc_nl_talk, &walk);
		if (walk.err || !dump->all)
			return krc_nl_dumped(skb, walk.err);
		dump->kernel = true;
		dump->conn = (struct krc_conn_at){};
	}
	krc_conn_walk(&dump->conn, krc_nl_conn, &walk);
	return krc_nl_dumped(skb, walk.err);
}

static int krc_nl_put_own_peer(struct sk_buff *skb, const void *row)
{
	const struct krc_peer_info *peer = row;

	return nla_put(skb, KRP_GENL_A_PEER_GID, sizeof(peer->gid), peer->gid) ?:
	       nla_put_u16(skb, KRP_GENL_A_PEER_SERVICE, peer->service) ?:
	       krc_nl_put_u64(skb, KRP_GENL_A_PEER_GENERATION, peer->generation) ?:
	       nla_put_u32(skb, KRP_GENL_A_PEER_QUEUES, peer->queues);
}

static int krc_nl_own_peer(const struct krc_peer_info *peer, void *arg)
{
	return krc_nl_walk_row(arg, KRP_GENL_CMD_PEER_GET, krc_nl_put_own_peer, peer);
}

static int krc_nl_put_peer(struct sk_buff *skb, const void *row)
{
	const struct krc_peer_info *peer = row;

	return krc_nl_put_own_peer(skb, row)
		       ?: nla_put_u32(skb, KRP_GENL_A_PEER_REGIONS, peer->regions);
}

static int krc_nl_peer(const struct krc_peer_info *peer, void *arg)
{
	return krc_nl_walk_row(arg, KRP_GENL_CMD_PEER_GET, krc_nl_put_peer, peer);
}

/* A record of the metadata cache. */
struct krc_nl_cached {
	const struct krp_key *key;
	const struct krp_value *value;
	u32 age_ms;
};

static int krc_nl_put_cached(struct sk_buff *skb, const void *row)
{
	const struct krc_nl_cached *cached = row;
	const struct krp_value *value = cached->value;
	int err;

	err = nla_put(skb, KRP_GENL_A_PEER_GID, sizeof(cached->key->gid), cached->key->gid) ?:
	      nla_put_u16(skb, KRP_GENL_A_PEER_SERVICE, krp_le16_to_cpu(cached->key->service)) ?:
	      krc_nl_put_u64(skb, KRP_GENL_A_PEER_GENERATION,
			     krp_le64_to_cpu(value->generation)) ?:
	      nla_put_u32(skb, KRP_GENL_A_PEER_AGE_MS, cached->age_ms) ?:
	      nla_put_u8(skb, KRP_GENL_A_PEER_KIND, value->kind);
	if (!err && value->kind == KRP_KIND_DCT)
		err = nla_put_u32(skb, KRP_GENL_A_PEER_DCTN, krp_le32_to_cpu(value->dct.dctn));
	return err;
}

static int krc_nl_cached(const struct krp_key *key, const struct krp_value *value, u32 age_ms,
			 void *arg)
{
	struct krc_nl_cached cached = { .key = key, .value = value, .age_ms = age_ms };

	return krc_nl_walk_row(arg, KRP_GENL_CMD_PEER_GET, krc_nl_put_cached, &cached);
}

/* First the peers with queues, then the cache, when dump->inner is set. */
int krc_nl_peer_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct krc_nl_walk walk = { .skb = skb, .cb = cb };
	struct krc_nl_dump *dump = krc_nl_dump(cb);

	if (!dump->all) { /* no cache either: its records are of other users, too */
		dump->at += krc_peer_own_walk(dump->at, dump->uid, krc_nl_own_peer, &walk);
		return krc_nl_dumped(skb, walk.err);
	}
	if (!dump->inner) {
		krc_peer_walk(&dump->peer, krc_nl_peer, &walk);
		if (walk.err)
			return krc_nl_dumped(skb, walk.err);
		dump->inner = 1;
		dump->cache = (struct krc_cache_at){};
	}
	krc_cache_walk(krc_node_cache(), &dump->cache, krc_nl_cached, &walk);
	return krc_nl_dumped(skb, walk.err);
}

static int krc_nl_put_pool(struct sk_buff *skb, struct krc_port *port)
{
	struct krc_pool_stats stats;
	struct nlattr *nest;

	krc_pool_stats(port->pool, &stats);
	nest = nla_nest_start(skb, KRP_GENL_A_STATS_POOL);
	if (!nest)
		return -EMSGSIZE;
	if (nla_put_string(skb, KRP_GENL_A_POOL_DEVICE, dev_name(&port->rail.ibdev->dev)) ||
	    nla_put_u32(skb, KRP_GENL_A_POOL_PORT, port->rail.num) ||
	    nla_put_u32(skb, KRP_GENL_A_POOL_INITIATORS, stats.initiators) ||
	    nla_put_u32(skb, KRP_GENL_A_POOL_DEPTH, stats.depth) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_POOL_POSTED, stats.posted) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_POOL_COMPLETED, stats.completed) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_POOL_FAULTS, stats.faults) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_POOL_RECOVERIES, stats.recoveries) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_POOL_REPLAYED, stats.replayed) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_POOL_UNKNOWN, stats.unknown) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_POOL_OUTSTANDING, stats.outstanding) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_POOL_TIMEOUTS, stats.timeouts) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_POOL_REFUSED_READS, stats.refused_reads) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_POOL_EXPIRED, stats.expired) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_POOL_TARGET_CHANGES, stats.target_changes) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_POOL_ISOLATED, stats.isolated))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int krc_nl_put_lanes(struct sk_buff *skb, struct krc_port *port)
{
	struct krc_lanes_stats stats;
	struct nlattr *nest;

	if (!port->rail.ops->lanes_stats)
		return 0;
	port->rail.ops->lanes_stats(port->target, &stats);
	nest = nla_nest_start(skb, KRP_GENL_A_STATS_LANES);
	if (!nest)
		return -EMSGSIZE;
	if (nla_put_string(skb, KRP_GENL_A_LANES_DEVICE, dev_name(&port->rail.ibdev->dev)) ||
	    nla_put_u32(skb, KRP_GENL_A_LANES_PORT, port->rail.num) ||
	    nla_put_u32(skb, KRP_GENL_A_LANES_LANES, stats.lanes) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_LANES_MADE, stats.made) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_LANES_LATE, stats.late) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_LANES_MALFORMED, stats.malformed) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_LANES_UNPROVED, stats.unproved) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_LANES_DROPPED, stats.dropped) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_LANES_MENDS, stats.mends))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* The pool of each port that is up, and its lanes if it makes such. */
static int krc_nl_put_pools(struct sk_buff *skb)
{
	struct krc_port *port;
	u32 i;
	int err = 0;

	for (i = 1; !err; i++) {
		port = krc_port_first(i);
		if (!port)
			break;
		if (krc_port_enter(port)) {
			err = krc_nl_put_pool(skb, port) ?: krc_nl_put_lanes(skb, port);
			krc_port_exit(port);
		}
		krc_port_put(port);
	}
	return err;
}

static int krc_nl_put_messages(struct sk_buff *skb, const void *row)
{
	const struct krc_port *port = row;
	struct krc_messages_stats stats;

	krc_messages_stats(port->messages, &stats);
	if (nla_put_string(skb, KRP_GENL_A_MESSAGES_DEVICE, dev_name(&port->rail.ibdev->dev)) ||
	    nla_put_u32(skb, KRP_GENL_A_MESSAGES_PORT, port->rail.num) ||
	    nla_put_u32(skb, KRP_GENL_A_MESSAGES_STREAMS, stats.streams) ||
	    nla_put_u32(skb, KRP_GENL_A_MESSAGES_LISTENERS, stats.listeners) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_MESSAGES_POSTED, stats.posted) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_MESSAGES_FAILED, stats.failed) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_MESSAGES_REPLAYS, stats.replays) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_MESSAGES_PACKETS, stats.packets) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_MESSAGES_FAULTS, stats.faults) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_MESSAGES_MALFORMED, stats.malformed) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_MESSAGES_UNKNOWN, stats.unknown) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_MESSAGES_FOREIGN, stats.foreign) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_MESSAGES_NO_MEMORY, stats.no_memory) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_MESSAGES_OPENS, stats.opens) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_MESSAGES_OPENS_DROPPED, stats.opens_dropped) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_MESSAGES_CHALLENGES, stats.challenges) ||
	    krc_nl_put_u64(skb, KRP_GENL_A_MESSAGES_REFUSALS, stats.refusals))
		return -EMSGSIZE;
	return 0;
}

int krc_nl_messages_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct krc_nl_dump *dump = krc_nl_dump(cb);
	struct krc_port *port;
	int err = 0;

	for (; !err; dump->at += !err) {
		port = krc_port_first(dump->at + 1);
		if (!port)
			break;
		if (krc_port_enter(port)) {
			if (port->messages)
				err = krc_nl_row(skb, cb, KRP_GENL_CMD_MESSAGES_GET,
						 krc_nl_put_messages, port);
			krc_port_exit(port);
		}
		krc_port_put(port);
	}
	return krc_nl_dumped(skb, err);
}

static int krc_nl_put_contexts(struct sk_buff *skb)
{
	struct krc_context_stats stats;

	krc_context_stats(&stats);
	return krc_nl_put_u64(skb, KRP_GENL_A_STATS_CONTEXTS, stats.contexts) ?:
	       krc_nl_put_u64(skb, KRP_GENL_A_STATS_QUEUES, stats.queues) ?:
	       krc_nl_put_u64(skb, KRP_GENL_A_STATS_MRS, stats.mrs) ?:
	       krc_nl_put_u64(skb, KRP_GENL_A_STATS_PINNED_BYTES, stats.pinned_bytes) ?:
	       krc_nl_put_u64(skb, KRP_GENL_A_STATS_CONNECTS, stats.connects) ?:
	       krc_nl_put_u64(skb, KRP_GENL_A_STATS_CONNECTS_CACHED, stats.connects_cached) ?:
	       krc_nl_put_u64(skb, KRP_GENL_A_STATS_CONNECTS_FAILED, stats.connects_failed) ?:
	       krc_nl_put_u64(skb, KRP_GENL_A_STATS_POSTS, stats.posts) ?:
	       krc_nl_put_u64(skb, KRP_GENL_A_STATS_REQUESTS, stats.requests) ?:
	       krc_nl_put_u64(skb, KRP_GENL_A_STATS_COMPLETIONS, stats.completions) ?:
	       krc_nl_put_u64(skb, KRP_GENL_A_STATS_ERRORS, stats.errors);
}

static int krc_nl_put_cache(struct sk_buff *skb)
{
	struct krc_cache_stats stats;

	krc_cache_stats(krc_node_cache(), &stats);
	return krc_nl_put_u64(skb, KRP_GENL_A_STATS_CACHE_ENTRIES, stats.entries) ?:
	       krc_nl_put_u64(skb, KRP_GENL_A_STATS_CACHE_ENTRIES_MAX, stats.entries_max) ?:
	       krc_nl_put_u64(skb, KRP_GENL_A_STATS_CACHE_HITS, stats.hits) ?:
	       krc_nl_put_u64(skb, KRP_GENL_A_STATS_CACHE_MISSES, stats.misses) ?:
	       krc_nl_put_u64(skb, KRP_GENL_A_STATS_CACHE_EVICTIONS, stats.evictions) ?:
	       krc_nl_put_u64(skb, KRP_GENL_A_STATS_CACHE_INVALIDATIONS, stats.invalidations);
}

static int krc_nl_put_stats(struct sk_buff *skb, void *arg)
{
	return krc_nl_put_contexts(skb) ?: krc_nl_put_cache(skb) ?: krc_nl_put_pools(skb);
}

int krc_nl_stats_get(struct sk_buff *skb, struct genl_info *info)
{
	return krc_nl_reply(info, krc_nl_put_stats, NULL);
}

/* Resources that a user holds. */
struct krc_nl_user {
	kuid_t uid;
	const u64 *held; /* counts, indexed by enum krc_resource */
	u64 refused;
};

static int krc_nl_put_user(struct sk_buff *skb, const void *row)
{
	const struct krc_nl_user *user = row;
	u32 uid = from_kuid_munged(current_user_ns(), user->uid);

	return nla_put_u32(skb, KRP_GENL_A_USER_UID, uid) ?:
	       krc_nl_put_u64(skb, KRP_GENL_A_USER_CONTEXTS, user->held[KRC_RES_CONTEXT]) ?:
	       krc_nl_put_u64(skb, KRP_GENL_A_USER_QUEUES, user->held[KRC_RES_QUEUE]) ?:
	       krc_nl_put_u64(skb, KRP_GENL_A_USER_MRS, user->held[KRC_RES_MR]) ?:
	       krc_nl_put_u64(skb, KRP_GENL_A_USER_REQUESTS, user->held[KRC_RES_REQUEST]) ?:
	       krc_nl_put_u64(skb, KRP_GENL_A_USER_REFUSED, user->refused);
}

static int krc_nl_user(kuid_t uid, const u64 held[KRC_RES_NR], u64 refused, void *arg)
{
	struct krc_nl_user user = { .uid = uid, .held = held, .refused = refused };
	struct krc_nl_walk *walk = arg;

	struct krc_nl_dump *dump = krc_nl_dump(walk->cb);

	if (!dump->all && !uid_eq(dump->owner, uid))
		return 0;
	return krc_nl_walk_row(walk, KRP_GENL_CMD_USER_GET, krc_nl_put_user, &user);
}

int krc_nl_user_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct krc_nl_walk walk = { .skb = skb, .cb = cb };
	struct krc_nl_dump *dump = krc_nl_dump(cb);

	dump->at += krc_limits_walk(dump->at, krc_nl_user, &walk);
	return krc_nl_dumped(skb, walk.err);
}
