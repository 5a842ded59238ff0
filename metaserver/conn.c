// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * One connection: the transport under a session.
 *
 * The queue pair is ours, not librdmacm's: it is brought up with the attributes
 * that rdma_cm computes but without any remote access, which is enabled
 * when the session has authenticated the client, before WELCOME is sent.
 *
 * A connection ends in steps, so that nothing is lost or used after it is
 * freed: the last answers are sent (FLUSH); the queue pair is put into error, so
 * that it takes no more receive buffers, and the disconnect is exchanged
 * (LEAVE); its completions are awaited (DRAIN). Each step has a time-out.
 * Steps that take commands to the NIC are taken by ms_conn_check(), a bounded number in each
 * iteration of the loop: thousands of connections may end at once.
 * Connections are freed by ms_conn_check() and ms_device_remove() only, never
 * from within a completion.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/addr.h"
#include "common/gid.h"
#include "common/link.h"
#include "metaserver/log.h"
#include "metaserver/server_priv.h"
#include "proto/krp_hash.h"
#include "proto/krp_reject.h"

KRP_STATIC_ASSERT(KRU_CONF_CLIENT_SENDS == MS_HANDSHAKE_SENDS + KRP_NOTIFY_WINDOW,
		  "kru_conf_bytes() knows how long a send queue is");

#define MS_RNR_RETRY 6 /* finite: a client that posts no receives is disconnected */
#define MS_MIN_RNR_TIMER 12 /* 0.64 ms: how long a client waits if we have no buffer */
#define MS_RNR_RETRY_FOR_EVER 7 /* rnr_retry_count for clients */

struct ms_conn *ms_conn_find(struct ms_device *dev, uint32_t qpn)
{
	struct ms_conn *conn = dev->conns[qpn % MS_CONN_HASH];

	while (conn && conn->qpn != qpn)
		conn = conn->chain;
	return conn;
}

static void ms_conn_hash(struct ms_conn *conn)
{
	struct ms_conn **head = &conn->dev->conns[conn->qpn % MS_CONN_HASH];

	conn->chain = *head;
	*head = conn;
	conn->dev->conns_nr++;
}

static void ms_conn_unhash(struct ms_conn *conn)
{
	struct ms_conn **link = &conn->dev->conns[conn->qpn % MS_CONN_HASH];

	while (*link && *link != conn)
		link = &(*link)->chain;
	if (!*link)
		return;
	*link = conn->chain;
	conn->dev->conns_nr--;
}

void ms_conn_info(const struct ms_conn *conn, struct ms_session_info *ret_info)
{
	const struct ms_session *s = &conn->session;
	struct ms_server *srv = conn->srv;
	uint64_t now_ms = ms_now(srv);

	memset(ret_info, 0, sizeof(*ret_info));
	ret_info->id = conn->number;
	memcpy(ret_info->name, s->hello.name, sizeof(ret_info->name));
	ret_info->name[sizeof(ret_info->name) - 1] = '\0';
	memcpy(ret_info->device, conn->dev->name, sizeof(ret_info->device));
	memcpy(ret_info->address, conn->address, sizeof(ret_info->address));
	memcpy(ret_info->gid, s->gid, sizeof(ret_info->gid));
	memcpy(ret_info->owner, s->claim.owner, sizeof(ret_info->owner));
	memcpy(ret_info->key_id, s->challenge.key_id, sizeof(ret_info->key_id));
	ret_info->generation = s->claim.generation;
	ret_info->age_ms = now_ms - s->born_ms;
	ret_info->idle_ms = now_ms - s->last_ms;
	ret_info->records = ms_ledger_count(srv->hub.ledger, now_ms, &s->claim, NULL);
	ret_info->messages = s->messages;
	ret_info->state = ms_session_state_name(s->state);
	if (!conn->established && s->state == MS_STATE_HELLO)
		ret_info->state = "connecting";
	ret_info->subscribed = s->subscribed;
}

static void ms_conn_tell(struct ms_conn *conn, enum ms_session_event event, const char *why)
{
	struct ms_server *srv = conn->srv;
	struct ms_session_info info;

	if (!srv->observer.ops)
		return;
	ms_conn_info(conn, &info);
	srv->observer.ops->session(srv->observer.arg, event, &info, why);
}

/* Report the end of the session, once. */
static void ms_conn_over(struct ms_conn *conn, const char *why)
{
	if (conn->why)
		return;
	conn->why = why;
	ms_conn_tell(conn, conn->was_ready ? MS_SESSION_DOWN : MS_SESSION_REFUSED, why);
	ms_log_client(conn->srv, conn->was_ready ? LOG_DEBUG : LOG_INFO, "client %s: %s%s",
		      conn->address, conn->was_ready ? "" : "refused: ", why);
	ms_session_fini(&conn->session);
	if (conn->entered) /* its place is free for its next session */
		ms_source_remove(conn);
}

/* the steps of an end */

static void ms_conn_error(struct ms_conn *conn)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	if (!conn->in_error)
		ibv_modify_qp(conn->qp, &attr, IBV_QP_STATE);
	conn->in_error = true;
}

static void ms_conn_drain(struct ms_conn *conn, const char *why)
{
	if (conn->phase == MS_PHASE_DRAIN)
		return;
	conn->phase = MS_PHASE_DRAIN;
	conn->deadline_ms = ms_now(conn->srv) + MS_DRAIN_MS;
	ms_conn_over(conn, why);
	ms_conn_error(conn);
}

/* Nothing more is to be sent: ms_conn_check() is to disconnect it, soon. */
static void ms_conn_hang_up(struct ms_conn *conn)
{
	conn->deadline_ms = ms_now(conn->srv);
	ms_server_check_soon(conn->srv, conn);
}

static void ms_conn_disconnect(struct ms_conn *conn)
{
	conn->phase = MS_PHASE_LEAVE;
	conn->deadline_ms = ms_now(conn->srv) + MS_DISCONNECT_MS;
	ms_conn_error(conn);
	if (rdma_disconnect(conn->id))
		ms_conn_drain(conn, "disconnected");
}

/* ops of the session */

static int ms_conn_send(void *arg, const void *msg, unsigned int bytes, bool notify)
{
	struct ms_conn *conn = arg;
	uint32_t answers = conn->sends_out - conn->notifies_out;

	if (conn->phase != MS_PHASE_UP)
		return -ENOTCONN;
	if (notify && conn->notifies_out >= KRP_NOTIFY_WINDOW)
		return -ENOBUFS;
	/* twice: an answer may have arrived before the completion of its send */
	if (!notify && answers >= 2 * conn->srv->conf.credits + MS_HANDSHAKE_SENDS)
		return -EPROTO;
	return ms_device_post(conn, msg, bytes, notify);
}

static int ms_conn_open_reads(void *arg)
{
	struct ibv_qp_attr attr = { .qp_access_flags = IBV_ACCESS_REMOTE_READ };
	struct ms_conn *conn = arg;
	int err = ms_source_enter(conn, conn->session.gid_known ? conn->session.gid : NULL);

	return err ? err : -ibv_modify_qp(conn->qp, &attr, IBV_QP_ACCESS_FLAGS);
}

static bool ms_conn_at_limit(void *arg)
{
	return ms_source_at_limit(arg);
}

static void ms_conn_root(void *arg, struct krp_root_ref *ret_root)
{
	const struct ms_conn *conn = arg;

	ms_device_root_ref(conn->dev, ret_root);
}

static void ms_conn_close(void *arg, const char *why)
{
	struct ms_conn *conn = arg;

	if (conn->phase != MS_PHASE_UP)
		return;
	conn->phase = MS_PHASE_FLUSH;
	conn->deadline_ms = ms_now(conn->srv) + MS_FLUSH_MS;
	ms_conn_over(conn, why);
	if (!conn->sends_out)
		ms_conn_hang_up(conn);
}

static const struct ms_session_ops ms_conn_ops = {
	.send = ms_conn_send,
	.open_reads = ms_conn_open_reads,
	.root = ms_conn_root,
	.close = ms_conn_close,
	.at_limit = ms_conn_at_limit,
};

/* calls of device.c */

/* The client is authenticated: a stranger no longer. */
static void ms_conn_ready(struct ms_conn *conn)
{
	conn->was_ready = true;
	TAILQ_REMOVE(&conn->srv->conns.strangers, conn, stranger);
	conn->srv->conns.strangers_nr--;
	ms_conn_tell(conn, MS_SESSION_UP, "authenticated");
	ms_log_client(conn->srv, LOG_DEBUG, "client %s: attached", conn->address);
}

/*
 * A message after the last answer was sent: an authenticated client may have
 * requests in flight, others must take the refusal and send nothing more.
 */
static void ms_conn_stray(struct ms_conn *conn)
{
	if (conn->phase != MS_PHASE_FLUSH)
		return;
	if (++conn->strays > (conn->was_ready ? conn->srv->conf.credits : 0))
		ms_conn_hang_up(conn);
}

/*
 * What comes over the connection comes from where its queue pair leads to, whatever the request
 * claimed. Return: false if too many strangers are there, or without memory; it is being closed then.
 */
static bool ms_conn_prove(struct ms_conn *conn)
{
	int err;

	if (conn->proven || !conn->session.gid_known)
		return true;
	conn->proven = true;
	err = ms_source_prove(conn, conn->session.gid);
	if (!err)
		return true;
	ms_conn_leave(conn,
		      err == -ENOMEM
			      ? "no memory"
			      : "too many connections from its address that do not authenticate");
	return false;
}

void ms_conn_received(struct ms_conn *conn, const void *msg, unsigned int bytes)
{
	const struct krp_msg_hdr *hdr = msg;
	bool ready = conn->session.state == MS_STATE_READY;
	uint64_t begin_ns = ms_mono_ns();

	if (conn->phase != MS_PHASE_UP) {
		ms_conn_stray(conn);
		return;
	}
	if (!ms_conn_prove(conn))
		return;
	ms_session_receive(&conn->session, msg, bytes, ms_now(conn->srv));
	if (ready && bytes >= sizeof(*hdr) && hdr->type == KRP_MSG_PUBLISH)
		ms_hist_add(&conn->srv->stats.publish, ms_mono_ns() - begin_ns);
	if (!ready && conn->session.state == MS_STATE_READY)
		ms_conn_ready(conn);
}

void ms_conn_sent(struct ms_conn *conn, bool notify, bool ok)
{
	conn->sends_out--;
	conn->notifies_out -= notify;
	if (!ok) {
		ms_conn_broken(conn, "client does not answer or takes no messages");
		return;
	}
	if (conn->phase == MS_PHASE_UP && notify && conn->notifies_out <= KRP_NOTIFY_WINDOW / 2)
		ms_session_room(&conn->session);
	if (conn->phase == MS_PHASE_FLUSH && !conn->sends_out)
		ms_conn_hang_up(conn);
}

void ms_conn_broken(struct ms_conn *conn, const char *why)
{
	if (conn->phase == MS_PHASE_LEAVE || conn->phase == MS_PHASE_DRAIN)
		return;
	ms_conn_over(conn, why);
	conn->phase = MS_PHASE_FLUSH;
	ms_conn_hang_up(conn);
}

void ms_conn_leave(struct ms_conn *conn, const char *why)
{
	ms_session_shut(&conn->session, why);
}

/* events of rdma_cm */

void ms_conn_event(struct ms_conn *conn, enum rdma_cm_event_type event)
{
	switch (event) {
	case RDMA_CM_EVENT_ESTABLISHED:
		conn->established = true;
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		rdma_disconnect(conn->id); /* confirms, if it was the client's */
		ms_conn_drain(conn, "disconnected");
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
		ms_conn_drain(conn, "connection was not completed");
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
		ms_conn_broken(conn, "local address has changed");
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		ms_watch_gone(conn->srv, conn->dev->verbs, "device was removed");
		break;
	default: /* TIMEWAIT_EXIT and what concerns others */
		break;
	}
}

void ms_conn_last_wqe(struct ms_conn *conn)
{
	conn->last_wqe = true;
	conn->mark = ms_recv_mark(conn->dev);
	conn->marked = true;
}

/*
 * Has the last completion of the queue pair been seen? A device that does not report the
 * last receive of a queue pair gets MS_DRAIN_MS instead.
 */
static bool ms_conn_drained(struct ms_conn *conn, bool late)
{
	if (conn->srv->drain.ends) /* the receive queue goes too */
		return late || !conn->sends_out;
	if (late && !conn->marked)
		ms_conn_last_wqe(conn);
	if (late)
		ms_device_forget(conn);
	return conn->last_wqe && !conn->sends_out && ms_recv_passed(conn->dev, &conn->mark);
}

bool ms_conn_check(struct ms_conn *conn)
{
	uint64_t now_ms = ms_now(conn->srv);
	bool late = conn->phase != MS_PHASE_UP && now_ms >= conn->deadline_ms;

	switch (conn->phase) {
	case MS_PHASE_UP:
		ms_session_check(&conn->session, now_ms);
		/* buffers may have run out though this client was not slow */
		if (conn->phase == MS_PHASE_UP && conn->notifies_out <= KRP_NOTIFY_WINDOW / 2)
			ms_session_room(&conn->session);
		break;
	case MS_PHASE_FLUSH:
		if (!late)
			break;
		ms_conn_disconnect(conn);
		return true;
	case MS_PHASE_LEAVE:
		if (late)
			ms_conn_drain(conn, "disconnected");
		break;
	case MS_PHASE_DRAIN:
		if (ms_conn_drained(conn, late)) {
			ms_conn_destroy_qp(conn);
			ms_conn_free(conn);
			return true;
		}
		break;
	}
	return false;
}

/* life */

static int ms_conn_create_qp(struct ms_conn *conn)
{
	struct ms_device *dev = conn->dev;
	struct ibv_qp_init_attr attr = {
		.qp_context = conn,
		.send_cq = dev->send.cq,
		.recv_cq = dev->recv.cq,
		.srq = dev->recv.srq,
		.qp_type = IBV_QPT_RC,
	};

	attr.cap.max_send_wr = 2 * conn->srv->conf.credits + MS_HANDSHAKE_SENDS + KRP_NOTIFY_WINDOW;
	attr.cap.max_send_sge = 1;
	conn->qp = ibv_create_qp(dev->pd, &attr);
	if (!conn->qp)
		return errno ? -errno : -ENOMEM;
	conn->qpn = conn->qp->qp_num;
	ms_conn_hash(conn);
	return 0;
}

/* The P_Key at an index of the port's table; 0 if the device has none there. */
static uint16_t ms_conn_pkey(const struct ms_conn *conn)
{
	__be16 pkey;

	if (ibv_query_pkey(conn->id->verbs, conn->id->port_num, conn->pkey_index, &pkey))
		return 0;
	return be16toh((KRP_FORCE uint16_t)pkey);
}

void ms_conn_pkeys_changed(struct ms_device *dev, unsigned int port)
{
	struct ms_conn *conn;

	for (conn = dev->srv->conns.first; conn; conn = conn->next)
		if (conn->dev == dev && conn->id->port_num == port &&
		    ms_conn_pkey(conn) != conn->pkey)
			ms_conn_broken(conn, "the port is no longer in the client's partition");
}

/* INIT, RTR, RTS with rdma_cm's attributes, but no remote access of any kind. */
static int ms_conn_bring_up(struct ms_conn *conn, uint8_t rd_atomic, struct kru_ends *ret_ends)
{
	struct ibv_qp_attr attr;
	int mask, err;

	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_INIT;
	if (rdma_init_qp_attr(conn->id, &attr, &mask))
		return -errno;
	conn->pkey_index = attr.pkey_index;
	conn->pkey = ms_conn_pkey(conn);
	attr.qp_access_flags = 0;
	if (ibv_modify_qp(conn->qp, &attr, mask | IBV_QP_ACCESS_FLAGS))
		return -errno;

	attr.qp_state = IBV_QPS_RTR;
	if (rdma_init_qp_attr(conn->id, &attr, &mask))
		return -errno;
	if (attr.path_mtu < IBV_MTU_512) /* KRP_MTU_MIN */
		return -EMSGSIZE;
	attr.qp_access_flags = 0;
	attr.max_dest_rd_atomic = rd_atomic;
	attr.min_rnr_timer = MS_MIN_RNR_TIMER;
	mask &= 2 * IBV_QP_DEST_QPN - 1; /* kernels set bits that user space has not */
	if (ibv_modify_qp(conn->qp, &attr, mask))
		return -errno;
	err = kru_ends_of(conn->id, &attr, conn->qpn, ret_ends);
	if (err)
		return err;

	attr.qp_state = IBV_QPS_RTS;
	if (rdma_init_qp_attr(conn->id, &attr, &mask))
		return -errno;
	attr.qp_access_flags = 0;
	attr.rnr_retry = MS_RNR_RETRY;
	attr.max_rd_atomic = 0; /* we READ nothing */
	if (ibv_modify_qp(conn->qp, &attr, mask))
		return -errno;
	return 0;
}

void ms_conn_destroy_qp(struct ms_conn *conn)
{
	if (!conn->qp)
		return;
	ms_conn_unhash(conn);
	ibv_destroy_qp(conn->qp);
	conn->qp = NULL;
	ms_device_forget(conn);
}

static void ms_conn_link(struct ms_conn *conn)
{
	struct ms_server *srv = conn->srv;

	conn->prev = srv->conns.last;
	if (conn->prev)
		conn->prev->next = conn;
	else
		srv->conns.first = conn;
	srv->conns.last = conn;
	srv->conns.nr++;
	TAILQ_INSERT_TAIL(&srv->conns.strangers, conn, stranger);
	srv->conns.strangers_nr++;
}

void ms_conn_free(struct ms_conn *conn)
{
	struct ms_server *srv = conn->srv;

	ms_conn_over(conn, "device was removed");
	if (conn->prev)
		conn->prev->next = conn->next;
	else
		srv->conns.first = conn->next;
	if (conn->next)
		conn->next->prev = conn->prev;
	else
		srv->conns.last = conn->prev;
	srv->conns.nr--;
	if (srv->chores.check_next == conn)
		srv->chores.check_next = conn->next;
	if (!conn->was_ready) {
		TAILQ_REMOVE(&srv->conns.strangers, conn, stranger);
		srv->conns.strangers_nr--;
	}
	ms_source_remove(conn);
	rdma_destroy_id(conn->id);
	free(conn);
}

/* Our port and address at which a connection comes in, as a number. */
static uint64_t ms_conn_via(const struct ms_conn *conn)
{
	char local[MS_ADDRESS_BYTES] = "";

	kru_sockaddr_format(rdma_get_local_addr(conn->id), local);
	return krp_xxh64(local, sizeof(local),
			 krp_xxh64(conn->dev->name, sizeof(conn->dev->name), conn->id->port_num));
}

/* The client sends to another address than it claims: see ms_place_serves(). */
static int ms_conn_judge_end(const struct ms_conn *conn, const struct kru_ends *ends)
{
	struct ibv_port_attr port;
	int err;

	if (!conn->srv->listening.filtered)
		return 0;
	err = ibv_query_port(conn->id->verbs, conn->id->port_num, &port);
	if (err)
		return -abs(err);
	if (port.link_layer != IBV_LINK_LAYER_ETHERNET ||
	    ms_place_serves(conn->srv, conn->dev->name, ends->local_gid))
		return 0;
	return -EADDRNOTAVAIL;
}

static int ms_conn_accept_id(struct ms_conn *conn, const struct rdma_conn_param *param)
{
	struct rdma_conn_param answer = { 0 };
	uint8_t rd_atomic = param->responder_resources;
	struct kru_ends ends = { 0 };
	struct krp_link link;
	int err;

	/* the client announced how many READs it will have in flight */
	if (rd_atomic > conn->dev->rd_atomic)
		rd_atomic = conn->dev->rd_atomic;
	if (!rd_atomic)
		rd_atomic = 1;
	err = ms_conn_bring_up(conn, rd_atomic, &ends);
	if (!err)
		err = ms_conn_judge_end(conn, &ends);
	if (err)
		return err;
	kru_link_server(&ends, &link);
	ms_session_init(&conn->session, &conn->srv->hub, &ms_conn_ops, conn, &link, ends.global,
			ms_now(conn->srv));
	conn->session.via = ms_conn_via(conn);
	answer.responder_resources = rd_atomic;
	answer.flow_control = 1;
	answer.rnr_retry_count = MS_RNR_RETRY_FOR_EVER;
	answer.srq = 1;
	answer.qp_num = conn->qpn;
	if (rdma_accept(conn->id, &answer)) {
		err = -errno;
		ms_session_fini(&conn->session);
	}
	return err;
}

static int ms_conn_new(struct ms_server *srv, struct rdma_cm_id *id,
		       const struct rdma_conn_param *param)
{
	struct ms_conn *conn;
	int err;

	conn = calloc(1, sizeof(*conn));
	if (!conn)
		return -ENOMEM;
	conn->srv = srv;
	conn->id = id;
	kru_sockaddr_format(rdma_get_peer_addr(id), conn->address);
	err = ms_source_add(srv, conn, rdma_get_peer_addr(id));
	if (err)
		goto err_free;
	err = ms_device_get(srv, id, &conn->dev);
	if (err)
		goto err_free;
	err = ms_conn_create_qp(conn);
	if (err)
		goto err_free;
	err = ms_conn_accept_id(conn, param);
	if (err)
		goto err_qp;
	id->context = conn;
	conn->number = ++srv->conns.youngest;
	ms_conn_link(conn);
	return 0;

err_qp:
	ms_conn_destroy_qp(conn);
err_free:
	ms_source_remove(conn);
	free(conn);
	return err;
}

/*
 * Connections that never authenticate must not keep others out: one that has taken too
 * long is closed. Return: false if there is none.
 */
static bool ms_conn_make_room(struct ms_server *srv)
{
	struct ms_conn *conn = TAILQ_FIRST(&srv->conns.strangers);
	uint64_t now_ms = ms_now(srv);

	if (srv->conns.strangers_nr >= MS_STRANGERS_MAX)
		return false;
	if (srv->hub.stats.sessions_pending < MS_PENDING_MAX)
		return true;
	while (conn && conn->session.state == MS_STATE_CLOSING)
		conn = TAILQ_NEXT(conn, stranger);
	if (!conn || now_ms - conn->session.born_ms < MS_PENDING_MS)
		return false;
	ms_conn_leave(conn, "too many connections that do not authenticate");
	return true;
}

/*
 * All queue pairs count, also those of connections that are ending. An address that
 * has clients here may be about to replace one of them.
 */
static bool ms_conn_clients_full(struct ms_server *srv, struct rdma_cm_id *id)
{
	uint64_t known = srv->conns.nr - srv->conns.strangers_nr;

	if (known >= (uint64_t)srv->conf.clients_max + MS_LEAVING_MAX)
		return true;
	return !ms_admit_possible(&srv->hub, ms_now(srv)) && !ms_source_has_clients(srv, id);
}

unsigned int ms_conn_judge(struct ms_server *srv, struct rdma_cm_id *id)
{
	if (srv->drain.ends)
		return KRP_REJECT_SHUTDOWN;
	if (srv->drain.keeps_off)
		return KRP_REJECT_DRAINED;
	if (!ms_place_allows(srv, id))
		return KRP_REJECT_NOT_SERVED;
	if (ms_conn_clients_full(srv, id))
		return KRP_REJECT_CLIENTS;
	/* check before another client is put out: a client that is refused must not cost one */
	if (!ms_source_welcome(srv, id))
		return KRP_REJECT_ADDRESS;
	if (!ms_conn_make_room(srv))
		return KRP_REJECT_STRANGERS;
	return 0;
}

static void ms_conn_reject(struct ms_server *srv, struct rdma_cm_id *id, unsigned int reason,
			   int err)
{
	char from[MS_ADDRESS_BYTES];
	struct krp_reject data;

	kru_sockaddr_format(rdma_get_peer_addr(id), from);
	srv->stats.connections_rejected++;
	ms_log_client(srv, LOG_WARNING, "client %s: connection refused: %s%s%s", from,
		      krp_reject_text(reason), err ? ": " : "", err ? strerror(-err) : "");
	krp_reject_init(&data, reason);
	rdma_reject(id, &data, sizeof(data));
	rdma_destroy_id(id);
}

/* Why a connection could not be made. */
static unsigned int ms_conn_reason(int err)
{
	switch (err) {
	case -EUSERS:
		return KRP_REJECT_ADDRESS;
	case -EADDRNOTAVAIL:
		return KRP_REJECT_NOT_SERVED;
	case -EMSGSIZE:
		return KRP_REJECT_MTU;
	default:
		return KRP_REJECT_RESOURCES;
	}
}

void ms_conn_accept(struct ms_server *srv, struct rdma_cm_id *id,
		    const struct rdma_conn_param *param)
{
	unsigned int reason;
	int err = 0;

	id->context = NULL;
	srv->stats.connections_total++;
	reason = ms_conn_judge(srv, id);
	if (!reason) {
		/* not earlier: a request must not make us hold a device that is not served */
		err = ms_watch_add(srv, id);
		if (!err)
			err = ms_conn_new(srv, id, param);
		if (!err)
			return;
		reason = ms_conn_reason(err);
	}
	ms_conn_reject(srv, id, reason, err);
}
