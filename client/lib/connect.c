// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What the context's thread does for a session that attaches: address, route, connection,
 * proofs, load. proto/krp_session.h decides when.
 *
 * Each step posts something and returns; an event or a message brings the next. The check of a loaded
 * table is busy-polled for: two READs, each for a quarter of timeout_ms at most.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "client/lib/lib.h"

#define KRL_NAME_KEEP_NS 30000000000ULL /* addresses older than this are resolved again */

/* The largest ack timeout, 4.096 us << t, with which all retries fit into the READ timeout. */
static uint8_t krl_connect_ack_timeout(const struct krl_server *srv)
{
	uint64_t each_ns = krl_server_read_timeout_ns(srv) / (KRL_RETRIES + 1);
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
static const struct krl_server *krl_connect_twin(const struct krl_server *srv,
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

static int krl_connect_resolve_addr(struct krl_server *srv, struct krl_conn *conn)
{
	struct sockaddr *to = (struct sockaddr *)&srv->addrs[srv->addr_next++ % srv->addrs_nr];
	uint8_t ack_timeout = krl_connect_ack_timeout(srv);
	const struct krl_server *twin = krl_connect_twin(srv, to);
	struct sockaddr_storage from;
	bool any;
	int err;

	if (twin) {
		krl_server_fail(srv, -EALREADY, "is the same MetaServer as %s", twin->ep->text);
		return -EALREADY;
	}
	err = krl_source_addr(&srv->ctx->config, to->sa_family, &from, &any);
	if (err) {
		krl_server_fail(srv, err, "configured device or GID has no address to come from");
		return err;
	}
	if (rdma_create_id(srv->ctx->cm, &conn->id, srv, RDMA_PS_TCP))
		goto fail;
	/* kernels before 5.1 lack this option; their default is good enough */
	rdma_set_option(conn->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &ack_timeout,
			sizeof(ack_timeout));
	if (rdma_resolve_addr(conn->id, any ? NULL : (struct sockaddr *)&from, to,
			      (int)krp_addr_ms(srv->ctx->config.timeout_ms)))
		goto fail;
	return 0;
fail:
	err = -errno;
	krl_server_fail(srv, err, "no route to this address over RDMA (%s)", strerror(-err));
	return err;
}

/* The addresses of a server are known: begin to connect. */
void krl_connect_named(struct krl_server *srv)
{
	struct krl_conn *conn = krl_conn_new();
	bool connecting;

	srv->named_ns = srv->named_ns ? srv->named_ns : krl_now_ns();
	krl_server_step(srv, "finding its address");
	pthread_mutex_lock(&srv->ctx->lock);
	connecting = srv->s.state == KRP_SESSION_CONNECTING;
	if (connecting)
		srv->conn = conn;
	pthread_mutex_unlock(&srv->ctx->lock);
	if (!connecting)
		krl_conn_free(conn);
	else if (!conn)
		krl_server_fail(srv, -ENOMEM, "no memory");
	else
		krl_connect_resolve_addr(srv, conn);
}

/* A server is to be attached. */
void krl_connect_begin(struct krl_server *srv)
{
	int err;

	if (srv->addrs_nr && krl_now_ns() < srv->named_ns + KRL_NAME_KEEP_NS) {
		krl_connect_named(srv);
		return;
	}
	srv->named_ns = 0;
	if (!krl_resolve_numeric(srv)) {
		krl_connect_named(srv);
		return;
	}
	krl_server_step(srv, "resolving its name");
	err = krl_resolve_start(srv);
	if (err)
		krl_server_fail(srv, err, "name cannot be resolved (%s)", strerror(-err));
}

static void krl_connect_route(struct krl_server *srv)
{
	krl_server_step(srv, "finding a route");
	if (rdma_resolve_route(srv->conn->id, (int)srv->ctx->config.timeout_ms)) {
		int err = -errno;

		krl_server_fail(srv, err, "no route (%s)", strerror(-err));
	}
}

static void krl_connect_connect(struct krl_server *srv)
{
	struct rdma_conn_param param = {
		.initiator_depth = 16,
		.retry_count = KRL_RETRIES,
		.rnr_retry_count = 7, /* without end: a full server is not a dead one */
	};
	struct ibv_device_attr attr;
	const char *step;
	int err;

	krl_server_step(srv, "connecting");
	if (krl_conn_port_down(srv->conn)) {
		krl_server_fail(srv, -ENETDOWN, "port %u of device %s is down",
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
		krl_server_fail(srv, err, "%s failed on device %s (%s)", step,
				ibv_get_device_name(srv->conn->id->verbs->device), strerror(-err));
}

/* Both ends of the connection: the proofs are valid on this connection only. */
static int krl_connect_link(struct krl_conn *conn, struct krp_link *ret_link)
{
	struct kru_ends ends;
	int err = kru_ends_of(conn->id, NULL, conn->id->qp->qp_num, &ends);

	if (!err)
		kru_link_client(&ends, ret_link);
	return err;
}

static void krl_connect_established(struct krl_server *srv)
{
	const struct kru_keys *keys = &srv->ctx->config.keys;
	__u8 nonce[KRP_NONCE_BYTES], id[KRP_KEY_ID_BYTES];
	struct krp_link link;
	int err = krl_connect_link(srv->conn, &link);

	if (err) {
		krl_server_fail(srv, err, "the ends of the connection are not known (%s)",
				strerror(-err));
		return;
	}
	if (kru_random(nonce, sizeof(nonce))) {
		krl_server_fail(srv, -EIO, "the kernel has no random numbers");
		return;
	}
	if (keys->nr)
		kru_key_id(&keys->key[0], id);
	krl_session_connected(srv, &link, nonce, keys->nr ? id : NULL);
}

static void krl_connect_disconnected(struct krl_server *srv)
{
	if (krl_server_state(srv) < KRP_SESSION_LOAD)
		krl_server_fail(srv, -ECONNRESET,
				"server closed the connection during the handshake");
	else
		krl_server_fail(srv, -ECONNRESET, "server closed the connection");
}

static void krl_connect_cm_failed(struct krl_server *srv, enum rdma_cm_event_type event, int status)
{
	int err = status < 0 ? status : -ECONNREFUSED;

	switch (event) {
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		krl_server_fail(srv, err, "no route to this address over RDMA (%s)",
				strerror(-err));
		break;
	case RDMA_CM_EVENT_REJECTED:
		krl_server_fail(srv, krp_reject_errno(srv->rejected), "connection refused: %s",
				krp_reject_text(srv->rejected));
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		krl_server_fail(srv, status < 0 ? status : -EHOSTUNREACH,
				"does not answer the connection request");
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		krl_server_fail(srv, -ENODEV, "the RDMA device was removed");
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		krl_connect_disconnected(srv);
		break;
	default:
		krl_server_fail(srv, -EIO, "%s", rdma_event_str(event));
		break;
	}
}

/* An event of the connection manager for a server's connection. */
void krl_connect_cm_event(struct krl_server *srv, enum rdma_cm_event_type event, int status)
{
	switch (event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		krl_connect_route(srv);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		krl_connect_connect(srv);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		krl_connect_established(srv);
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		krl_connect_cm_failed(srv, event, status);
		break;
	}
}

/* Constant until the thread says otherwise to the session. */
static struct kru_handshake krl_connect_shake(const struct krp_session *s)
{
	return (struct kru_handshake){ &s->attach.link, &s->attach.hello, &s->attach.challenge };
}

/*
 * The key that a server has chosen. If it is not among ours, the key file may have changed,
 * so it is read again; if that fails, the keys stay as they are.
 */
static const struct kru_key *krl_connect_key(struct krl_config *config, const __u8 *id)
{
	const struct kru_key *key = kru_keys_find(&config->keys, id);

	if (key || !*config->key_path || kru_keys_load(config->key_path, &config->keys))
		return key;
	return kru_keys_find(&config->keys, id);
}

void krl_connect_prove(struct krl_server *srv)
{
	struct kru_handshake shake = krl_connect_shake(&srv->s);
	const struct kru_key *key =
		krl_connect_key(&srv->ctx->config, srv->s.attach.challenge.key_id);
	__u8 mac[KRP_MAC_BYTES];

	if (key)
		kru_auth_client(key, &shake, mac);
	krl_session_prove(srv, key ? 0 : -ENOKEY, mac);
}

void krl_connect_verify(struct krl_server *srv)
{
	struct kru_handshake shake = krl_connect_shake(&srv->s);
	const struct kru_key *key =
		kru_keys_find(&srv->ctx->config.keys, srv->s.attach.challenge.key_id);
	__u8 mac[KRP_MAC_BYTES];

	if (key) /* else it was removed from the file meanwhile */
		kru_auth_server(key, &shake, &srv->s.attach.welcome, mac);
	krl_session_verify(srv, key ? mac : NULL);
}

static void krl_connect_load_next(struct krl_server *srv)
{
	struct krl_conn *conn = srv->conn;
	struct krp_read read;
	int err;

	if (!krp_load_next(&srv->load, &read))
		return;
	/* a large directory takes many READs: each may take its time, not all together */
	krl_server_step(srv, "reading root and directory");
	err = krl_conn_post_reads(conn, &read, 1, conn->mem->bounce);
	if (err)
		krl_server_fail(srv, err, "posting a READ failed (%s)", strerror(-err));
}

void krl_connect_load(struct krl_server *srv)
{
	const struct krp_welcome *welcome = &srv->s.attach.welcome;

	srv->root_addr = krp_le64_to_cpu(welcome->root.addr);
	srv->root_rkey = krp_le32_to_cpu(welcome->root.rkey);
	krl_load_start(&srv->load, srv->root_addr, srv->root_rkey, srv->s.incarnation,
		       KRL_BOUNCE_BYTES, NULL);
	krl_connect_load_next(srv);
}

/*
 * Two polled READs of the root give the first figure by which servers are
 * compared; those of the load were slowed down by waiting for events.
 */
static int krl_connect_probe(struct krl_server *srv)
{
	struct krp_read read = { srv->root_addr, srv->root_rkey, sizeof(struct krp_root) };
	int i, err = 0;

	for (i = 0; i < 2 && !err; i++) {
		uint64_t begin_ns = krl_now_ns();

		err = krl_conn_post_reads(srv->conn, &read, 1, srv->conn->mem->bounce);
		if (!err)
			err = krl_conn_wait_reads(srv->conn, 1, krl_server_read_timeout_ns(srv));
		atomic_store(&srv->rtt_ns, krl_smooth(0, krl_now_ns() - begin_ns));
	}
	return err;
}

/* Completions of the send queue while the server is not yet attached. */
void krl_connect_loading(struct krl_server *srv)
{
	struct krl_conn *conn = srv->conn;
	bool loading = krl_server_state(srv) == KRP_SESSION_LOAD;
	unsigned int done = 0;
	int err;

	if (krl_conn_poll_send(conn, &done) < 0) {
		krl_server_fail(srv, -EIO, "%s failed",
				loading ? "a READ of the table" : "sending");
		return;
	}
	if (!done || !loading)
		return;
	err = krl_load_feed(&srv->load, conn->mem->bounce);
	if (err) {
		krl_server_fail(srv, err, "the table cannot be read (%s)", strerror(-err));
		return;
	}
	if (srv->load.stage != KRP_LOAD_DONE) {
		krl_connect_load_next(srv);
		return;
	}
	err = krl_connect_probe(srv);
	if (err)
		krl_server_fail(srv, err, "a READ of the root failed");
	else
		krl_server_up(srv);
}
