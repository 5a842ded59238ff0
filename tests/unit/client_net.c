// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* See client_net.h. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/client_net.h"

struct net net;
struct krcore_ctx net_ctx;
const uint8_t net_gid[KRP_GID_BYTES] = { 0xfe, 0x80, [15] = 7 };
static const uint8_t server_gid[KRP_GID_BYTES] = { 0xfe, 0x80, [15] = 1 };

/* ---- RDMA, as far as the library asks for it ---- */

static struct ibv_qp qp = { .qp_num = 0x11 };
static struct rdma_cm_id id = { .qp = &qp };

int rdma_init_qp_attr(struct rdma_cm_id *of, struct ibv_qp_attr *attr, int *mask)
{
	(void)of;
	(void)mask;
	attr->dest_qp_num = 0x22;
	attr->ah_attr.is_global = 1;
	memcpy(attr->ah_attr.grh.dgid.raw, server_gid, sizeof(server_gid));
	return 0;
}

int ibv_query_gid(struct ibv_context *verbs, uint8_t port, int index, union ibv_gid *gid)
{
	(void)verbs;
	(void)port;
	(void)index;
	memcpy(gid->raw, net_gid, sizeof(net_gid));
	return 0;
}

int ibv_modify_qp(struct ibv_qp *of, struct ibv_qp_attr *attr, int mask)
{
	(void)of;
	(void)attr;
	(void)mask;
	return 0;
}

struct krl_conn *krl_conn_new(void)
{
	struct krl_conn *conn = calloc(1, sizeof(*conn));

	assert_non_null(conn);
	conn->mem = calloc(1, sizeof(*conn->mem));
	assert_non_null(conn->mem);
	conn->id = &id;
	return conn;
}

int krl_conn_setup(struct krl_conn *conn, const char **step)
{
	(void)conn;
	(void)step;
	return 0;
}

void krl_conn_free(struct krl_conn *conn)
{
	if (conn)
		free(conn->mem);
	free(conn);
}

bool krl_conn_port_down(const struct krl_conn *conn)
{
	(void)conn;
	return false;
}

int krl_conn_recv(struct krl_conn *conn, unsigned int nr)
{
	(void)conn;
	(void)nr;
	return 0;
}

int krl_conn_send(struct krl_conn *conn, unsigned int slot)
{
	const struct krp_msg_hdr *msg = (const struct krp_msg_hdr *)conn->mem->send[slot];

	pthread_mutex_lock(&net.lock);
	if (net.answer && msg->type == KRP_MSG_HELLO)
		net.answer((const struct krp_hello *)msg);
	else
		ms_session_receive(&net.session, msg, krp_le16_to_cpu(msg->bytes), net.now_ms);
	pthread_mutex_unlock(&net.lock);
	return 0;
}

int krl_conn_post_reads(struct krl_conn *conn, const struct krp_read *reads, unsigned int nr,
			void *to)
{
	uint8_t *at = to;
	unsigned int i;

	(void)conn;
	pthread_mutex_lock(&net.lock);
	for (i = 0; i < nr; i++) {
		memcpy(at, (const void *)(uintptr_t)reads[i].addr, reads[i].bytes);
		at += reads[i].bytes;
	}
	atomic_fetch_add(&net.reads, nr);
	pthread_mutex_unlock(&net.lock);
	return 0;
}

int krl_conn_poll_send(struct krl_conn *conn, unsigned int *reads_done)
{
	(void)conn;
	*reads_done += atomic_exchange(&net.reads, 0);
	return 0;
}

int krl_conn_wait_reads(struct krl_conn *conn, unsigned int nr, uint64_t timeout_ns)
{
	unsigned int done = 0;

	(void)nr;
	(void)timeout_ns;
	return krl_conn_poll_send(conn, &done);
}

void krl_conn_drain(struct krl_conn *conn)
{
	(void)conn;
}

/* ---- the server ---- */

void net_frame(const void *msg, unsigned int bytes)
{
	sv_frames_put(&net.frames, msg, bytes);
	pthread_cond_signal(&net.arrived);
}

static int server_send(void *arg, const void *msg, unsigned int bytes, bool notify)
{
	(void)arg;
	if (notify && !net.notify_room)
		return -ENOBUFS;
	net.notify_room -= notify;
	if (notify && net.lose_notifies)
		net.lose_notifies--;
	else
		net_frame(msg, bytes);
	return 0;
}

static void server_root(void *arg, struct krp_root_ref *ret_root)
{
	(void)arg;
	sv_root((uintptr_t)&net.tf.root, ret_root);
}

static void server_close(void *arg, const char *why)
{
	(void)arg;
	(void)why;
}

static const struct ms_session_ops session_ops = {
	.send = server_send,
	.open_reads = sv_open_reads,
	.root = server_root,
	.close = server_close,
};

/* Locks: net.lock. What is noted is told. */
static void server_tell(void)
{
	net.now_ms += 1000; /* whatever the budget of an address: it has it again */
	while (ms_hub_seal(&net.hub, net.now_ms))
		net.now_ms += 1000;
	while (ms_hub_tell(&net.hub, 100))
		;
}

void net_change(uint16_t service)
{
	struct krp_key key = { .service = krp_cpu_to_le16(service) };

	memcpy(key.gid, server_gid, sizeof(key.gid));
	pthread_mutex_lock(&net.lock);
	ms_hub_notify(&net.hub, KRP_EVENT_CHANGED, &key, 3);
	server_tell();
	pthread_mutex_unlock(&net.lock);
}

static void server_start(void)
{
	struct ms_table_config table = { .incarnation = 100,
					 .salt = 99,
					 .log2_segment_pages = 4,
					 .segments_max = 16,
					 .depth_max = 10,
					 .asides_max = 16 };

	net.now_ms = 500000;
	net.hub.incarnation = table.incarnation;
	net.hub.limits = (struct ms_limits){ .lease_ms = 30000,
					     .lease_min_ms = 3000,
					     .lease_max_ms = 300000,
					     .tick_ms = 100,
					     .records_max = 64,
					     .clients_max = 4,
					     .rate_max = 100000000,
					     .credits = 16,
					     .idle_timeout_ms = 60000 };
	assert_int_equal(tf_server_init(&net.tf, &table), 0);
	sv_hub_start(&net.hub, net.tf.table, net.now_ms);
}

/* Locks: net.lock. The server's end of a new connection. */
static void server_accept(void)
{
	struct krp_link link;

	sv_link(net_gid, server_gid, 0x11, 0x22, &link);
	if (net.session.hub)
		ms_session_fini(&net.session);
	ms_session_init(&net.session, &net.hub, &session_ops, NULL, &link, true, net.now_ms);
	sv_frames_drop(&net.frames);
}

/* ---- the context's thread ---- */

/* In place of connect.c's, which asks rdma_cm. */
void __wrap_krl_connect_begin(struct krl_server *srv);
void __wrap_krl_connect_begin(struct krl_server *srv)
{
	pthread_mutex_lock(&net.lock);
	server_accept();
	pthread_mutex_unlock(&net.lock);
	atomic_store(&net.reads, 0);
	pthread_mutex_lock(&net_ctx.lock);
	srv->conn = krl_conn_new();
	pthread_mutex_unlock(&net_ctx.lock);
	krl_connect_cm_event(srv, RDMA_CM_EVENT_ESTABLISHED, 0);
}

/* Return: bytes of a message, or 0 if none came for a while. */
static unsigned int client_wait(void *msg)
{
	struct timespec until;
	unsigned int bytes = 0;
	const void *frame;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 2000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&net.lock);
	if (net.frames.head == net.frames.tail)
		pthread_cond_timedwait(&net.arrived, &net.lock, &until);
	frame = sv_frames_take(&net.frames, &bytes);
	if (frame)
		memcpy(msg, frame, bytes);
	pthread_mutex_unlock(&net.lock);
	return bytes;
}

static bool client_refused(struct krl_server *srv)
{
	bool refused;

	pthread_mutex_lock(&net_ctx.lock);
	refused = srv->s.state == KRP_SESSION_DOWN && srv->last_error == -EPROTONOSUPPORT;
	pthread_mutex_unlock(&net_ctx.lock);
	return refused;
}

static void *client_thread(void *arg)
{
	struct krl_server *srv = arg;
	__u64 msg[KRP_MSG_BYTES_MAX / 8];
	unsigned int bytes;

	while (!atomic_load(&net.stop)) {
		/* a refusal stays to be looked at; anything else is tried again at once */
		if (!client_refused(srv))
			krl_server_timers(srv, krl_now_ns());
		bytes = client_wait(msg);
		if (bytes && !atomic_load(&srv->failed)) {
			krl_server_received(srv, msg, bytes);
			krl_events_deliver(&net_ctx);
		}
		while (krl_server_state(srv) == KRP_SESSION_LOAD && atomic_load(&net.reads))
			krl_connect_loading(srv);
	}
	return NULL;
}

void net_wait(enum krp_session_state state, int err)
{
	uint64_t until_ns = krl_now_ns() + NET_TIMEOUT_MS * 1000000ULL;
	const struct timespec pause = { .tv_nsec = 1000000 };
	const struct krl_server *srv = net_ctx.servers;
	bool there;

	do {
		nanosleep(&pause, NULL);
		pthread_mutex_lock(&net_ctx.lock);
		there = srv->s.state == state && srv->last_error == err;
		pthread_mutex_unlock(&net_ctx.lock);
	} while (!there && krl_now_ns() < until_ns);
	assert_true(there);
}

void net_break(void)
{
	krl_server_fail(net_ctx.servers, -ECONNRESET, "the connection broke");
}

int net_setup(void **state)
{
	pthread_condattr_t attr;

	(void)state;
	memset(&net, 0, sizeof(net));
	memset(&net_ctx, 0, sizeof(net_ctx));
	net.notify_room = 1000000;
	pthread_mutex_init(&net.lock, NULL);
	pthread_cond_init(&net.arrived, NULL);
	server_start();

	net_ctx.head.ops = &krl_direct_ops;
	net_ctx.config.timeout_ms = NET_TIMEOUT_MS;
	net_ctx.config.generation = 77;
	net_ctx.config.owner[0] = 9;
	net_ctx.config.endpoints_nr = 1;
	net_ctx.config.endpoints = calloc(1, sizeof(*net_ctx.config.endpoints));
	strcpy(net_ctx.config.endpoints->text, "meta");
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&net_ctx.cond, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&net_ctx.lock, NULL);
	pthread_mutex_init(&net_ctx.sub_lock, NULL);
	net_ctx.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_int_equal(krl_ctx_servers(&net_ctx), 0);
	assert_int_equal(pthread_create(&net.thread, NULL, client_thread, net_ctx.servers), 0);
	return 0;
}

int net_teardown(void **state)
{
	(void)state;
	atomic_store(&net.stop, true);
	pthread_join(net.thread, NULL);
	krl_server_end(net_ctx.servers);
	krl_records_fini(&net_ctx);
	krl_server_fini(net_ctx.servers);
	free(net_ctx.servers);
	free(net_ctx.config.endpoints);
	close(net_ctx.wake_fd);
	ms_session_fini(&net.session);
	sv_hub_stop(&net.hub);
	tf_server_exit(&net.tf);
	return 0;
}
