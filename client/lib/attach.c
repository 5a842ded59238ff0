// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Attaching to a MetaServer: address, route, connection, handshake, load.
 *
 * Runs in the context's thread only and never waits: each step posts something
 * and returns; an event or a message brings the next. proto/krp_msg.h says what
 * is exchanged.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "client/lib/choose.h"
#include "client/lib/lib.h"

/* Return: whether there is such a step; if not, the server has failed. */
static bool krl_attach_to(struct krl_server *srv, enum krl_state state)
{
	bool done;

	pthread_mutex_lock(&srv->ctx->lock);
	done = krl_server_to(srv, state);
	pthread_mutex_unlock(&srv->ctx->lock);
	return done;
}

/* The largest ack timeout, 4.096 us << t, with which all retries fit into the READ timeout. */
static uint8_t krl_attach_ack_timeout(const struct krl_server *srv)
{
	uint64_t each_ns = krl_server_patience_ns(srv) / (KRL_RETRIES + 1);
	uint8_t t = 8;

	while (t < 20 && (4096ULL << (t + 1)) <= each_ns)
		t++;
	return t;
}

static bool krl_same_address(const struct sockaddr *a, const struct sockaddr *b)
{
	const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)a,
				  *b6 = (const struct sockaddr_in6 *)b;
	const struct sockaddr_in *a4 = (const struct sockaddr_in *)a,
				 *b4 = (const struct sockaddr_in *)b;

	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return a4->sin_port == b4->sin_port && a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	return a6->sin6_port == b6->sin6_port &&
	       !memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr));
}

/*
 * The server of this context that already has the same address under another name, or NULL:
 * a second session with one MetaServer would replace the first, as if that had reconnected.
 */
static const struct krl_server *krl_attach_twin(const struct krl_server *srv,
						const struct sockaddr *to)
{
	const struct krcore_ctx *ctx = srv->ctx;
	unsigned int i;

	for (i = 0; i < ctx->servers_nr; i++) {
		const struct krl_conn *conn = ctx->servers[i].conn;

		if (i != srv->index && conn && conn->id &&
		    krl_same_address(rdma_get_peer_addr(conn->id), to))
			return &ctx->servers[i];
	}
	return NULL;
}

static int krl_attach_resolve_addr(struct krl_server *srv, struct krl_conn *conn)
{
	struct sockaddr *to = (struct sockaddr *)&srv->addrs[srv->addr_next++ % srv->addrs_nr];
	uint8_t ack_timeout = krl_attach_ack_timeout(srv);
	const struct krl_server *twin = krl_attach_twin(srv, to);
	struct sockaddr_storage from;
	bool any;
	int err;

	if (twin) {
		krl_server_fail(srv, -EALREADY, "%s: is the same MetaServer as %s", srv->ep->text,
				twin->ep->text);
		return -EALREADY;
	}
	err = krl_source_addr(&srv->ctx->config, to->sa_family, &from, &any);
	if (err) {
		krl_server_fail(srv, err,
				"%s: configured device or GID has no address to come from",
				srv->ep->text);
		return err;
	}
	if (rdma_create_id(srv->ctx->cm, &conn->id, srv, RDMA_PS_TCP))
		goto fail;
	/* kernels before 5.1 lack this option; their default is good enough */
	rdma_set_option(conn->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &ack_timeout,
			sizeof(ack_timeout));
	if (rdma_resolve_addr(conn->id, any ? NULL : (struct sockaddr *)&from, to,
			      (int)srv->ctx->config.timeout_ms))
		goto fail;
	return 0;
fail:
	err = -errno;
	krl_server_fail(srv, err, "%s: no route to this address over RDMA (%s)", srv->ep->text,
			strerror(-err));
	return err;
}

/* The addresses of a server are known: begin to connect. */
void krl_attach_named(struct krl_server *srv)
{
	struct krl_conn *conn = krl_conn_new();
	bool legal;

	srv->named_ns = srv->named_ns ? srv->named_ns : krl_now_ns();
	pthread_mutex_lock(&srv->ctx->lock);
	legal = krl_server_to(srv, KRL_ADDR);
	if (legal)
		srv->conn = conn;
	pthread_mutex_unlock(&srv->ctx->lock);
	if (!legal)
		krl_conn_free(conn);
	else if (!conn)
		krl_server_fail(srv, -ENOMEM, "%s: no memory", srv->ep->text);
	else
		krl_attach_resolve_addr(srv, conn);
}

/* A server is to be attached. */
void krl_attach_begin(struct krl_server *srv)
{
	int err;

	srv->named_ns = 0;
	if (!krl_resolve_numeric(srv)) {
		krl_attach_named(srv);
		return;
	}
	if (!krl_attach_to(srv, KRL_NAME))
		return;
	err = krl_resolve_start(srv);
	if (err)
		krl_server_fail(srv, err, "%s: name cannot be resolved (%s)", srv->ep->text,
				strerror(-err));
}

static void krl_attach_route(struct krl_server *srv)
{
	if (!krl_attach_to(srv, KRL_ROUTE))
		return;
	if (rdma_resolve_route(srv->conn->id, (int)srv->ctx->config.timeout_ms)) {
		int err = -errno;

		krl_server_fail(srv, err, "%s: no route (%s)", srv->ep->text, strerror(-err));
	}
}

static void krl_attach_connect(struct krl_server *srv)
{
	struct rdma_conn_param param = {
		.initiator_depth = 16,
		.retry_count = KRL_RETRIES,
		.rnr_retry_count = 7, /* without end: a full server is not a dead one */
	};
	struct ibv_device_attr attr;
	const char *step;
	int err;

	if (!krl_attach_to(srv, KRL_CONNECT))
		return;
	if (krl_conn_port_down(srv->conn)) {
		krl_server_fail(srv, -ENETDOWN, "%s: port %u of device %s is down", srv->ep->text,
				srv->conn->id->port_num,
				ibv_get_device_name(srv->conn->id->verbs->device));
		return;
	}
	if (!ibv_query_device(srv->conn->id->verbs, &attr) &&
	    attr.max_qp_init_rd_atom < param.initiator_depth)
		param.initiator_depth = (uint8_t)attr.max_qp_init_rd_atom;

	err = krl_conn_setup(srv->conn, &step);
	if (!err) {
		step = "watching it";
		err = krl_loop_watch(srv);
	}
	if (!err && rdma_connect(srv->conn->id, &param)) {
		step = "connecting";
		err = -errno;
	}
	if (err)
		krl_server_fail(srv, err, "%s: %s failed on device %s (%s)", srv->ep->text, step,
				ibv_get_device_name(srv->conn->id->verbs->device), strerror(-err));
}

static void krl_attach_send(struct krl_server *srv, const void *msg, unsigned int slot)
{
	const struct krp_msg_hdr *hdr = msg;
	int err;

	memcpy(srv->conn->mem->send[slot], msg, krp_msg_bytes(hdr->type));
	err = krl_conn_send(srv->conn, slot);
	if (err)
		krl_server_fail(srv, err, "%s: sending %s failed (%s)", srv->ep->text,
				krp_msg_name(hdr->type), strerror(-err));
}

/* Note both ends of the connection: the proofs are valid on this connection only. */
static int krl_attach_link(struct krl_conn *conn)
{
	struct kru_ends ends;
	int err = kru_ends_of(conn->id, NULL, conn->id->qp->qp_num, &ends);

	if (!err)
		kru_link_client(&ends, &conn->link);
	return err;
}

static void krl_attach_hello(struct krl_server *srv)
{
	const struct krl_config *config = &srv->ctx->config;
	struct krp_hello *hello = &srv->conn->hello;
	int err = krl_attach_link(srv->conn);

	if (!krl_attach_to(srv, KRL_HELLO))
		return;
	if (err) {
		krl_server_fail(srv, err, "%s: the ends of the connection are not known (%s)",
				srv->ep->text, strerror(-err));
		return;
	}
	krp_msg_init(hello, KRP_MSG_HELLO, 1, KRP_ST_OK, 0);
	hello->features = krp_cpu_to_le64(KRP_FEATURES_PROGRAM);
	hello->generation = krp_cpu_to_le64(config->generation);
	memcpy(hello->owner, config->owner, sizeof(hello->owner));
	memcpy(hello->gid, srv->conn->link.client_gid, sizeof(hello->gid));
	memcpy(hello->name, config->name, sizeof(hello->name));
	hello->lease_ms = krp_cpu_to_le32(config->lease_ms);
	hello->version_min = KRP_MSG_VERSION;
	hello->version_max = KRP_MSG_VERSION;
	if (config->keys.nr)
		kru_key_id(&config->keys.key[0], hello->key_id);
	if (kru_random(hello->nonce, sizeof(hello->nonce))) {
		krl_server_fail(srv, -EIO, "%s: the kernel has no random numbers", srv->ep->text);
		return;
	}
	krl_attach_send(srv, hello, 0);
}

static void krl_attach_cm_failed(struct krl_server *srv, enum rdma_cm_event_type event, int status)
{
	int err = status < 0 ? status : -ECONNREFUSED;

	switch (event) {
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		krl_server_fail(srv, err, "%s: no route to this address over RDMA (%s)",
				srv->ep->text, strerror(-err));
		break;
	case RDMA_CM_EVENT_REJECTED:
		krl_server_fail(srv, krp_reject_errno(srv->rejected), "%s: connection refused: %s",
				srv->ep->text, krp_reject_text(srv->rejected));
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		krl_server_fail(srv, status < 0 ? status : -EHOSTUNREACH,
				"%s: does not answer the connection request", srv->ep->text);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		krl_server_fail(srv, -ENODEV, "%s: the RDMA device was removed", srv->ep->text);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		if (srv->state == KRL_HELLO || srv->state == KRL_AUTH)
			krl_server_fail(srv, -ECONNRESET,
					"%s: server closed the connection during the handshake",
					srv->ep->text);
		else
			krl_server_fail(srv, -ECONNRESET, "%s: server closed the connection",
					srv->ep->text);
		break;
	default:
		krl_server_fail(srv, -EIO, "%s: %s", srv->ep->text, rdma_event_str(event));
		break;
	}
}

/* An event of the connection manager for a server's connection. */
void krl_attach_cm_event(struct krl_server *srv, enum rdma_cm_event_type event, int status)
{
	switch (event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		krl_attach_route(srv);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		krl_attach_connect(srv);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		krl_attach_hello(srv);
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		krl_attach_cm_failed(srv, event, status);
		break;
	}
}

static struct kru_handshake krl_attach_shake(const struct krl_conn *conn)
{
	return (struct kru_handshake){ &conn->link, &conn->hello, &conn->challenge };
}

/*
 * The key that a server has chosen. If it is not among ours, the key file may have changed,
 * so it is read again; if that fails, the keys stay as they are.
 */
static const struct kru_key *krl_attach_key(struct krl_config *config, const __u8 *id)
{
	const struct kru_key *key = kru_keys_find(&config->keys, id);

	if (key || !*config->key_path || kru_keys_load(config->key_path, &config->keys))
		return key;
	return kru_keys_find(&config->keys, id);
}

static void krl_attach_strange_key(struct krl_server *srv, const __u8 *id)
{
	const struct kru_keys *keys = &srv->ctx->config.keys;
	__u8 own[KRP_KEY_ID_BYTES];

	if (!keys->nr) {
		krl_server_fail(srv, -EACCES, "%s: server demands a cluster key, we have none",
				srv->ep->text);
		return;
	}
	kru_key_id(&keys->key[0], own);
	krl_server_fail(srv, -EACCES,
			"%s: server has cluster key %02x%02x%02x%02x, we have %02x%02x%02x%02x",
			srv->ep->text, id[0], id[1], id[2], id[3], own[0], own[1], own[2], own[3]);
}

static void krl_attach_challenged(struct krl_server *srv, const struct krp_challenge *msg)
{
	struct krl_config *config = &srv->ctx->config;
	struct krl_conn *conn = srv->conn;
	struct kru_handshake shake = krl_attach_shake(conn);
	bool proof = msg->flags & KRP_CHALLENGE_AUTH;
	const struct kru_key *key;
	struct krp_auth auth;

	if (config->keys.nr && !proof) {
		krl_server_fail(srv, -EACCES, "%s: we have a cluster key, this server has none",
				srv->ep->text);
		return;
	}
	key = proof ? krl_attach_key(config, msg->key_id) : NULL;
	if (proof && !key) {
		krl_attach_strange_key(srv, msg->key_id);
		return;
	}
	conn->challenge = *msg;
	if (!krl_attach_to(srv, KRL_AUTH))
		return;
	krp_msg_init(&auth, KRP_MSG_AUTH, 2, KRP_ST_OK, 0);
	if (key)
		kru_auth_client(key, &shake, auth.mac);
	krl_attach_send(srv, &auth, 1);
}

/* Whether the sender of WELCOME has the key and the message was not changed in transit. */
static bool krl_attach_proved(const struct krl_server *srv, const struct krp_welcome *msg)
{
	const struct krl_conn *conn = srv->conn;
	struct kru_handshake shake = krl_attach_shake(conn);
	const struct kru_key *key;
	__u8 mac[KRP_MAC_BYTES];

	if (!(conn->challenge.flags & KRP_CHALLENGE_AUTH))
		return true;
	key = kru_keys_find(&srv->ctx->config.keys, conn->challenge.key_id);
	if (!key)
		return false; /* the key was removed from the file meanwhile */
	kru_auth_server(key, &shake, msg, mac);
	return kru_secret_equal(mac, msg->mac, sizeof(mac));
}

static void krl_attach_load_next(struct krl_server *srv)
{
	struct krl_conn *conn = srv->conn;
	struct krp_read read;
	int err;

	if (!krp_load_next(&srv->load, &read))
		return;
	/* a large directory takes many READs: each may take its time, not all together */
	srv->deadline_ns = krl_now_ns() + srv->ctx->config.timeout_ms * 1000000ULL;
	err = krl_conn_post_reads(conn, &read, 1, conn->mem->bounce);
	if (err)
		krl_server_fail(srv, err, "%s: posting a READ failed (%s)", srv->ep->text,
				strerror(-err));
}

static void krl_attach_welcomed(struct krl_server *srv, const struct krp_welcome *msg)
{
	uint64_t incarnation = krp_le64_to_cpu(msg->hdr.incarnation);
	unsigned int credits = krp_le16_to_cpu(msg->credits);
	uint32_t settling_ms = krp_le32_to_cpu(msg->settling_ms);
	bool legal;

	if (!krl_attach_proved(srv, msg)) {
		krl_server_fail(
			srv, -EACCES,
			"%s: the server's proof does not hold: it lacks our cluster key, or "
			"somebody is between us",
			srv->ep->text);
		return;
	}
	if (!incarnation || krp_le32_to_cpu(msg->root.bytes) != sizeof(struct krp_root)) {
		krl_server_fail(srv, -EPROTO, "%s: WELCOME names no usable root", srv->ep->text);
		return;
	}
	pthread_mutex_lock(&srv->ctx->lock);
	legal = krl_server_to(srv, KRL_LOAD);
	srv->root_addr = krp_le64_to_cpu(msg->root.addr);
	srv->root_rkey = krp_le32_to_cpu(msg->root.rkey);
	srv->lease_ms = krp_le32_to_cpu(msg->lease_ms);
	srv->rate_max = krp_le32_to_cpu(msg->rate_max);
	atomic_store(&srv->settle_until_ns,
		     settling_ms ? krl_now_ns() + settling_ms * 1000000ULL : 0);
	srv->slots_nr = credits < KRL_SLOTS ? credits : KRL_SLOTS;
	srv->features = krp_le64_to_cpu(srv->conn->challenge.features);
	pthread_mutex_unlock(&srv->ctx->lock);
	if (!legal)
		return;
	krl_load_start(&srv->load, srv->root_addr, srv->root_rkey, incarnation, KRL_BOUNCE_BYTES,
		       NULL);
	krl_attach_load_next(srv);
}

/* A well-formed message has arrived before the server is attached. */
void krl_attach_message(struct krl_server *srv, const struct krp_msg_hdr *msg)
{
	unsigned int status = krp_le16_to_cpu(msg->status);

	if (status) {
		krl_server_fail(srv, krp_status_errno(status), "%s: server refuses %s: %s",
				srv->ep->text, srv->state == KRL_HELLO ? "HELLO" : "AUTH",
				krp_status_text(status));
		return;
	}
	if (srv->state == KRL_HELLO && msg->type == KRP_MSG_CHALLENGE)
		krl_attach_challenged(srv, (const struct krp_challenge *)msg);
	else if (srv->state == KRL_AUTH && msg->type == KRP_MSG_WELCOME &&
		 msg->incarnation == srv->conn->challenge.hdr.incarnation)
		krl_attach_welcomed(srv, (const struct krp_welcome *)msg);
	else
		krl_server_fail(srv, -EPROTO, "%s: unexpected %s during the handshake",
				srv->ep->text, krp_msg_name(msg->type));
}

/*
 * Two polled READs of the root give the first figure by which servers are
 * compared; those of the load were slowed down by waiting for events.
 */
static int krl_attach_probe(struct krl_server *srv)
{
	struct krp_read read = { srv->root_addr, srv->root_rkey, sizeof(struct krp_root) };
	int i, err = 0;

	for (i = 0; i < 2 && !err; i++) {
		uint64_t begin_ns = krl_now_ns();

		err = krl_conn_post_reads(srv->conn, &read, 1, srv->conn->mem->bounce);
		if (!err)
			err = krl_conn_wait_reads(srv->conn, 1, krl_server_patience_ns(srv));
		atomic_store(&srv->rtt_ns, krl_smooth(0, krl_now_ns() - begin_ns));
	}
	return err;
}

/* Completions of the send queue while the server is not yet attached. */
void krl_attach_loading(struct krl_server *srv)
{
	struct krl_conn *conn = srv->conn;
	unsigned int done = 0;
	int err;

	if (krl_conn_poll_send(conn, &done) < 0) {
		krl_server_fail(srv, -EIO, "%s: %s failed", srv->ep->text,
				srv->state == KRL_LOAD ? "a READ of the table" : "sending");
		return;
	}
	if (!done || srv->state != KRL_LOAD)
		return;
	err = krl_load_feed(&srv->load, conn->mem->bounce);
	if (err) {
		krl_server_fail(srv, err, "%s: the table cannot be read (%s)", srv->ep->text,
				strerror(-err));
		return;
	}
	if (srv->load.stage != KRP_LOAD_DONE) {
		krl_attach_load_next(srv);
		return;
	}
	err = krl_attach_probe(srv);
	if (err)
		krl_server_fail(srv, err, "%s: a READ of the root failed", srv->ep->text);
	else
		krl_server_up(srv);
}
