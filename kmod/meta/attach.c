// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: what attaching to a MetaServer needs of the kernel: address, route, connection, keys,
 * the first map. proto/krp_session.h says when.
 *
 * Events of rdma_cm only set a flag; the work item takes each step, which starts an operation
 * and returns. The map is loaded by a work item of its own.
 * Locking: called by the work item, without locks; meta.lock where something is said to the
 * session.
 */
#include <linux/random.h>
#include <net/net_namespace.h>

#include "krp_reject.h"
#include "meta/meta_priv.h"

static void krc_meta_cm_note(struct krc_meta_session *s, u32 event)
{
	spin_lock_bh(&s->meta->lock);
	s->events |= event;
	krc_meta_session_kick(s);
	spin_unlock_bh(&s->meta->lock);
}

/* No session of the client can be attached any more. */
static void krc_meta_cm_removed(struct krc_meta *meta)
{
	struct krc_meta_session *s;
	u32 i;

	spin_lock_bh(&meta->lock);
	WRITE_ONCE(meta->dead, true);
	krc_meta_for_each(meta, s, i) {
		krp_session_lost(&s->krp, krc_meta_now_ns(meta), -ENODEV, "RDMA device removed");
		krc_meta_session_end(s);
	}
	spin_unlock_bh(&meta->lock);
	wake_up_all(&meta->wait);
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
		krc_meta_cm_removed(s->meta);
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
	u64 each_ns = jiffies_to_nsecs(krc_meta_read_timeout(meta)) / (KRC_META_RETRIES + 1);
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
				 krp_addr_ms(krc_meta_timeout_ms(meta)));
}

void krc_meta_attach_begin(struct krc_meta_session *s)
{
	struct krc_meta_conn *conn = krc_meta_conn_new(s);
	int err = -ENOMEM;

	spin_lock_bh(&s->meta->lock);
	if (s->krp.state != KRP_SESSION_CONNECTING) { /* it has ended meanwhile */
		spin_unlock_bh(&s->meta->lock);
		if (conn)
			krc_meta_conn_put(conn);
		return;
	}
	s->conn = conn;
	spin_unlock_bh(&s->meta->lock);
	if (conn) {
		krc_meta_conn_step(conn, "finding a route");
		err = krc_meta_attach_resolve(s, conn);
	}
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

void krc_meta_route_header(const struct ib_device *ibdev, u32 port, struct sa_path_rec *path)
{
	if (rdma_protocol_ib(ibdev, port) && path && !path->hop_limit)
		path->hop_limit = 1;
}

static void krc_meta_attach_connect(struct krc_meta_session *s)
{
	const struct ib_device_attr *attrs = &s->meta->ibdev->attrs;
	struct rdma_conn_param param = {
		.initiator_depth = clamp(attrs->max_qp_init_rd_atom, 1, 16),
		.retry_count = KRC_META_RETRIES,
		.rnr_retry_count = 7, /* unlimited: a busy server is not a dead one */
	};
	const char *step;
	int err;

	spin_lock_bh(&s->meta->lock);
	s->routed = true;
	spin_unlock_bh(&s->meta->lock);
	krc_meta_conn_step(s->conn, "connecting");
	krc_meta_route_header(s->meta->ibdev, s->meta->port, s->conn->id->route.path_rec);
	err = krc_meta_conn_setup(s->conn, &step);
	if (!err) {
		step = "connecting";
		err = rdma_connect(s->conn->id, &param);
	}
	if (err)
		krc_meta_session_fail(s, err, "%s failed (%d)", step, err);
}

/*
 * GIDs and numbers of the queue pair as rdma_cm has connected it: the proofs are valid for
 * this connection only. Return: 0, or a negative errno.
 */
static int krc_meta_attach_link(const struct krc_meta_conn *conn, struct krp_link *ret_link)
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
	memcpy(ret_link->client_gid, from.raw, sizeof(ret_link->client_gid));
	memcpy(ret_link->server_gid, to.raw, sizeof(ret_link->server_gid));
	ret_link->client_qpn = cpu_to_le32(conn->id->qp->qp_num);
	ret_link->server_qpn = cpu_to_le32(attr.dest_qp_num);
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
	struct krc_meta_conn *conn = s->conn;
	u8 nonce[KRP_NONCE_BYTES];
	struct krp_link link;
	int err;

	err = krc_meta_attach_link(conn, &link);
	if (err) {
		krc_meta_session_fail(s, err, "the ends of the connection are not known (%d)", err);
		return;
	}
	get_random_bytes(nonce, sizeof(nonce));
	conn->ring = krc_meta_attach_ring(s);
	krc_meta_session_connected(s, &link, nonce, conn->ring ? conn->ring->id[0] : NULL);
}

void krc_meta_attach_prove(struct krc_meta_session *s)
{
	struct krc_meta_conn *conn = s->conn;
	u8 mac[KRP_MAC_BYTES];
	int err = -ENOKEY;

	conn->hmac = krc_meta_ring_find(conn->ring, s->krp.attach.challenge.key_id);
	if (conn->hmac)
		err = krc_meta_auth_mac(conn->hmac, &s->krp, NULL, mac);
	krc_meta_session_prove(s, err, mac);
}

void krc_meta_attach_verify(struct krc_meta_session *s)
{
	u8 mac[KRP_MAC_BYTES];
	int err = krc_meta_auth_mac(s->conn->hmac, &s->krp, &s->krp.attach.welcome, mac);

	krc_meta_session_verify(s, err ? NULL : mac);
}

void krc_meta_attach_load(struct krc_meta_session *s)
{
	const struct krp_welcome *welcome = &s->krp.attach.welcome;
	struct krc_meta_conn *conn = s->conn;

	conn->incarnation = s->krp.incarnation;
	conn->table.root_addr = le64_to_cpu(welcome->root.addr);
	conn->table.root_rkey = le32_to_cpu(welcome->root.rkey);
	conn->table.settling = welcome->settling_ms;
	krc_meta_table_begin(conn);
}

void krc_meta_attach_step(struct krc_meta_session *s, u32 events)
{
	bool connecting;

	spin_lock_bh(&s->meta->lock);
	connecting = s->krp.state == KRP_SESSION_CONNECTING && s->conn;
	spin_unlock_bh(&s->meta->lock);
	if (!connecting)
		return;
	if (s->routed && (events & KRC_META_EV_ESTABLISHED))
		krc_meta_attach_hello(s);
	else if (!s->routed && (events & KRC_META_EV_ROUTE))
		krc_meta_attach_connect(s);
	else if (!s->routed && (events & KRC_META_EV_ADDR))
		krc_meta_attach_route(s);
}
