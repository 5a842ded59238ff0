// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: attaching to a MetaServer: address, route, connection, handshake, first map.
 *
 * Events of rdma_cm only set a flag; the work item takes each step, which starts an operation
 * and returns. The messages are in proto/krp_msg.h. Loading the map blocks, for each READ at
 * most krc_meta_patience().
 * Locking: called by the work item, without locks; meta.lock where a state changes.
 */
#include <linux/random.h>
#include <crypto/algapi.h>
#include <net/net_namespace.h>

#include "krp_reject.h"
#include "meta/meta_priv.h"

static void krc_meta_attach_to(struct krc_meta_session *s, enum krc_meta_state state)
{
	spin_lock_bh(&s->meta->lock);
	krc_meta_session_to(s, state);
	spin_unlock_bh(&s->meta->lock);
}

static void krc_meta_cm_note(struct krc_meta_session *s, u32 event)
{
	spin_lock_bh(&s->meta->lock);
	s->events |= event;
	krc_meta_session_kick(s);
	spin_unlock_bh(&s->meta->lock);
}

static void krc_meta_cm_removed(struct krc_meta_session *s)
{
	spin_lock_bh(&s->meta->lock);
	WRITE_ONCE(s->meta->dead, true);
	krc_meta_session_fail_locked(s, -ENODEV, "RDMA device removed");
	spin_unlock_bh(&s->meta->lock);
	wake_up_all(&s->meta->wait);
}

static void krc_meta_cm_rejected(struct krc_meta_session *s, struct rdma_cm_id *id,
				 struct rdma_cm_event *event)
{
	u8 bytes = 0;
	const void *data = rdma_consumer_reject_data(id, event, &bytes);
	unsigned int reason = krp_reject_reason(data, bytes);

	krc_meta_session_fail(s, krp_reject_errno(reason), "connection refused: %s",
			      krp_reject_text(reason));
}

/*
 * Context: rdma_cm, under the identifier's mutex. Return: always 0: the work item destroys
 * the identifier; device removal waits for that, too.
 */
static int krc_meta_cm_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct krc_meta_session *s = id->context;
	int status = event->status;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		krc_meta_cm_note(s, KRC_META_EV_ADDR);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		krc_meta_cm_note(s, KRC_META_EV_ROUTE);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		krc_meta_cm_note(s, KRC_META_EV_ESTABLISHED);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		krc_meta_session_fail(s, status < 0 ? status : -EHOSTUNREACH, "no route");
		break;
	case RDMA_CM_EVENT_REJECTED:
		krc_meta_cm_rejected(s, id, event);
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		krc_meta_session_fail(s, status < 0 ? status : -EHOSTUNREACH,
				      "no answer to the connection request");
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		krc_meta_session_fail(s, -ECONNRESET, "server closed the connection");
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		krc_meta_cm_removed(s);
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		krc_meta_session_fail(s, -EIO, "%s", rdma_event_msg(event->event));
		break;
	}
	return 0;
}

/* The largest ack timeout, 4.096 us << t, with which all retries end within a READ timeout. */
static u8 krc_meta_ack_timeout(const struct krc_meta *meta)
{
	u64 each_ns = jiffies_to_nsecs(krc_meta_patience(meta)) / (KRC_META_RETRIES + 1);
	u8 t = 8;

	while (t < 20 && (4096ULL << (t + 1)) <= each_ns)
		t++;
	return t;
}

static int krc_meta_attach_resolve(struct krc_meta_session *s, struct krc_meta_conn *conn)
{
	struct krc_meta *meta = s->meta;
	struct sockaddr_storage from, to;
	struct rdma_cm_id *id;
	bool any;
	int err;

	err = krc_meta_addr(meta, &s->conf.addr, &from, &any, &to);
	if (err)
		return err;
	id = rdma_create_id(&init_net, krc_meta_cm_event, s, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	conn->id = id;
	rdma_set_ack_timeout(id, krc_meta_ack_timeout(meta));
	return rdma_resolve_addr(id, any ? NULL : (struct sockaddr *)&from, (struct sockaddr *)&to,
				 krc_meta_timeout_ms(meta));
}

/* Start attaching a session that is DOWN, unless it has ended meanwhile. */
void krc_meta_attach_begin(struct krc_meta_session *s)
{
	struct krc_meta_conn *conn = krc_meta_conn_new(s);
	int err = -ENOMEM;

	spin_lock_bh(&s->meta->lock);
	if (s->ended) {
		spin_unlock_bh(&s->meta->lock);
		krc_meta_conn_free(conn);
		return;
	}
	s->conn = conn;
	krc_meta_session_to(s, KRC_META_RESOLVING);
	spin_unlock_bh(&s->meta->lock);
	if (conn)
		err = krc_meta_attach_resolve(s, conn);
	if (err == -ENOMEM)
		krc_meta_session_fail(s, err, "no memory");
	else if (err == -EAFNOSUPPORT)
		krc_meta_session_fail(s, err, "no route: GID and server differ in address family");
	else if (err)
		krc_meta_session_fail(s, err, "no route");
}

static void krc_meta_attach_route(struct krc_meta_session *s)
{
	const struct krc_meta *meta = s->meta;
	struct rdma_cm_id *id = s->conn->id;

	if (id->device != meta->ibdev || id->port_num != meta->port)
		krc_meta_session_fail(s, -EHOSTUNREACH, "no route: it leaves by %s port %u",
				      id->device ? dev_name(&id->device->dev) : "no device",
				      id->port_num);
	else if (rdma_resolve_route(id, krc_meta_timeout_ms(meta)))
		krc_meta_session_fail(s, -EHOSTUNREACH, "no route");
}

static void krc_meta_attach_connect(struct krc_meta_session *s)
{
	const struct ib_device_attr *attrs = &s->meta->ibdev->attrs;
	struct rdma_conn_param param = {
		.initiator_depth = clamp(attrs->max_qp_init_rd_atom, 1, 16),
		.retry_count = KRC_META_RETRIES,
		.rnr_retry_count = 7, /* unlimited: a busy server is not a dead one */
	};
	struct rdma_cm_id *id = s->conn->id;
	const char *step;
	int err;

	krc_meta_attach_to(s, KRC_META_CONNECTING);
	/* without a GRH, the default inside a subnet, the GID would not identify us */
	if (rdma_protocol_ib(s->meta->ibdev, s->meta->port) && id->route.path_rec &&
	    !id->route.path_rec->hop_limit)
		id->route.path_rec->hop_limit = 1;
	err = krc_meta_conn_setup(s->conn, &step);
	if (!err) {
		step = "connecting";
		err = rdma_connect(s->conn->id, &param);
	}
	if (err)
		krc_meta_session_fail(s, err, "%s failed (%d)", step, err);
}

/* Send a message of the handshake in send slot @slot. */
static void krc_meta_attach_send(struct krc_meta_session *s, const void *msg, unsigned int slot)
{
	const struct krp_msg_hdr *hdr = msg;
	struct krc_meta_conn *conn = s->conn;
	struct krc_meta_send *send = &conn->send[slot];
	int err;

	memcpy(krc_meta_conn_message(conn, send), msg, krp_msg_bytes(hdr->type));
	spin_lock_bh(&s->meta->lock);
	err = krc_meta_conn_send(conn, send);
	spin_unlock_bh(&s->meta->lock);
	if (err)
		krc_meta_session_fail(s, err, "sending %s failed", krp_msg_name(hdr->type));
}

/*
 * Fill conn->link with the GIDs and numbers of the queue pair as rdma_cm has connected it: the
 * proofs are valid for this connection only. Return: 0, or a negative errno.
 */
static int krc_meta_attach_link(struct krc_meta_conn *conn)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTR };
	const struct ib_global_route *grh;
	union ib_gid from, to;
	int mask, err;

	err = rdma_init_qp_attr(conn->id, &attr, &mask);
	if (err)
		return err;
	if (rdma_ah_get_ah_flags(&attr.ah_attr) & IB_AH_GRH) {
		grh = rdma_ah_read_grh(&attr.ah_attr);
		if (!grh->sgid_attr)
			return -EADDRNOTAVAIL;
		from = grh->sgid_attr->gid;
		to = grh->dgid;
	} else {
		rdma_read_gids(conn->id, &from, &to);
	}
	memcpy(conn->link.client_gid, from.raw, sizeof(conn->link.client_gid));
	memcpy(conn->link.server_gid, to.raw, sizeof(conn->link.server_gid));
	conn->link.client_qpn = cpu_to_le32(conn->id->qp->qp_num);
	conn->link.server_qpn = cpu_to_le32(attr.dest_qp_num);
	return 0;
}

/* The present keys; the caller puts the ring. Return: NULL without keys. */
static struct krc_meta_ring *krc_meta_attach_ring(struct krc_meta_session *s)
{
	struct krc_meta_ring *ring;

	spin_lock_bh(&s->meta->lock);
	ring = krc_meta_ring_get(s->ring);
	spin_unlock_bh(&s->meta->lock);
	return ring;
}

static void krc_meta_attach_hello(struct krc_meta_session *s)
{
	const struct krc_meta *meta = s->meta;
	struct krp_hello *hello = &s->conn->hello;
	struct krc_meta_ring *ring;
	int err;

	krc_meta_attach_to(s, KRC_META_HELLO);
	err = krc_meta_attach_link(s->conn);
	if (err) {
		krc_meta_session_fail(s, err, "the ends of the connection are not known (%d)", err);
		return;
	}
	krp_msg_init(hello, KRP_MSG_HELLO, 1, KRP_ST_OK, 0);
	hello->features = cpu_to_le64(KRP_FEATURES_ALL);
	hello->generation = cpu_to_le64(meta->conf.generation);
	memcpy(hello->owner, meta->conf.owner, sizeof(hello->owner));
	memcpy(hello->gid, s->conn->link.client_gid, sizeof(hello->gid));
	strscpy_pad((char *)hello->name, meta->conf.name, sizeof(hello->name));
	hello->lease_ms = cpu_to_le32(meta->conf.lease_ms);
	hello->version_min = KRP_MSG_VERSION;
	hello->version_max = KRP_MSG_VERSION;
	get_random_bytes(hello->nonce, sizeof(hello->nonce));
	ring = krc_meta_attach_ring(s);
	if (ring)
		memcpy(hello->key_id, ring->id[0], sizeof(hello->key_id));
	krc_meta_ring_put(ring);
	krc_meta_attach_send(s, hello, 0);
}

static void krc_meta_attach_challenged(struct krc_meta_session *s, const struct krp_challenge *msg)
{
	struct krc_meta_conn *conn = s->conn;
	bool proof = msg->flags & KRP_CHALLENGE_AUTH;
	struct krp_auth auth;

	conn->ring = krc_meta_attach_ring(s);
	if (conn->ring && !proof) {
		krc_meta_session_fail(s, -EACCES, "we have a cluster key, the server has none");
		return;
	}
	if (!conn->ring && proof) {
		krc_meta_session_fail(s, -EACCES, "server demands a cluster key, we have none");
		return;
	}
	conn->hmac = krc_meta_ring_find(conn->ring, msg->key_id);
	if (proof && !conn->hmac) {
		krc_meta_session_fail(s, -EACCES, "server has cluster key %4phN, we have %4phN",
				      msg->key_id, conn->ring->id[0]);
		return;
	}
	conn->challenge = *msg;
	conn->auth_sent = true;
	krp_msg_init(&auth, KRP_MSG_AUTH, 2, KRP_ST_OK, 0);
	if (conn->hmac && krc_meta_auth_mac(conn->hmac, conn, NULL, auth.mac))
		krc_meta_session_fail(s, -EIO, "HMAC-SHA256 failed");
	else
		krc_meta_attach_send(s, &auth, 1);
}

/* Whether the sender of WELCOME has our key, and the message is unchanged. */
static bool krc_meta_attach_proved(const struct krc_meta_conn *conn, const struct krp_welcome *msg)
{
	u8 mac[KRP_MAC_BYTES];

	if (!conn->hmac)
		return true;
	return !krc_meta_auth_mac(conn->hmac, conn, msg, mac) &&
	       !crypto_memneq(mac, msg->mac, sizeof(mac));
}

static void krc_meta_attach_welcomed(struct krc_meta_session *s, const struct krp_welcome *msg)
{
	struct krc_meta_conn *conn = s->conn;
	int err;

	if (!krc_meta_attach_proved(conn, msg)) {
		krc_meta_session_fail(s, -EACCES,
				      "its proof does not hold: no key of ours, or a relay");
		return;
	}
	if (!msg->hdr.incarnation || le32_to_cpu(msg->root.bytes) != sizeof(struct krp_root)) {
		krc_meta_session_fail(s, -EPROTO, "WELCOME names no usable root");
		return;
	}
	conn->incarnation = le64_to_cpu(msg->hdr.incarnation);
	conn->root_addr = le64_to_cpu(msg->root.addr);
	conn->root_rkey = le32_to_cpu(msg->root.rkey);
	err = krc_meta_map_load(conn);
	if (err)
		krc_meta_session_fail(s, err, "the table cannot be read (%d)", err);
	else
		krc_meta_session_ready(s, msg);
}

/* Handle a well-formed message of the handshake. */
static void krc_meta_attach_message(struct krc_meta_session *s)
{
	struct krc_meta_conn *conn = s->conn;
	u64 copy[KRP_MSG_BYTES_MAX / sizeof(u64)];
	const struct krp_msg_hdr *hdr = (const struct krp_msg_hdr *)copy;

	spin_lock_bh(&s->meta->lock);
	memcpy(copy, conn->inbox, sizeof(copy));
	conn->inbox_full = false;
	spin_unlock_bh(&s->meta->lock);

	if (!conn->auth_sent && hdr->type == KRP_MSG_CHALLENGE)
		krc_meta_attach_challenged(s, (const struct krp_challenge *)copy);
	else if (conn->auth_sent && hdr->type == KRP_MSG_WELCOME &&
		 hdr->incarnation == conn->challenge.hdr.incarnation)
		krc_meta_attach_welcomed(s, (const struct krp_welcome *)copy);
	else
		krc_meta_session_fail(s, -EPROTO, "unexpected %s during the handshake",
				      krp_msg_name(hdr->type));
}

/* The step of a state, for diagnostics. */
static const char *krc_meta_attach_name(u8 state)
{
	switch (state) {
	case KRC_META_RESOLVING:
		return "finding a route";
	case KRC_META_CONNECTING:
		return "connecting";
	default:
		return "the handshake";
	}
}

/* Handle @events of a session that is attaching, or its deadline. */
void krc_meta_attach_step(struct krc_meta_session *s, u32 events)
{
	if (s->state == KRC_META_RESOLVING && (events & KRC_META_EV_ROUTE))
		krc_meta_attach_connect(s);
	else if (s->state == KRC_META_RESOLVING && (events & KRC_META_EV_ADDR))
		krc_meta_attach_route(s);
	else if (s->state == KRC_META_CONNECTING && (events & KRC_META_EV_ESTABLISHED))
		krc_meta_attach_hello(s);
	else if (s->state == KRC_META_HELLO && (events & KRC_META_EV_MESSAGE))
		krc_meta_attach_message(s);
	else if (time_after_eq(jiffies, s->deadline))
		krc_meta_session_fail(s, -ETIMEDOUT, "%s took more than %u ms",
				      krc_meta_attach_name(s->state), krc_meta_timeout_ms(s->meta));
}
