// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The context's thread where a server sends without end: others have their turn, timers run, and
 * the context can be closed. client/lib/loop.c as it is, over a device of which each poll finds as
 * many messages as were asked for.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/client_ctx.h"

#define FLOODED 0
#define QUIET 1
#define POLLS 1000 /* of the flood, before anything is judged */
#define WAIT_S 60

static struct ibv_context device;
static struct ibv_comp_channel channel;
static struct ibv_cq cq;
static struct ibv_qp qp;
static struct ibv_mr mr;
static struct rdma_cm_id id;
static struct krl_conn conn;
static struct rdma_event_channel cm;
static atomic_uint polls, turns;

/* A message of the server's that the session ignores: nobody has subscribed. */
static int flood(struct ibv_cq *of, int nr, struct ibv_wc *wcs)
{
	int i;

	(void)of;
	for (i = 0; i < nr; i++)
		wcs[i] = (struct ibv_wc){ .byte_len = sizeof(struct krp_notify) };
	atomic_fetch_add(&polls, 1);
	return nr;
}

static int take_receive(struct ibv_qp *to, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)to;
	(void)wr;
	(void)bad;
	return 0;
}

/* There is a completion already: the next event comes at once. */
static int notify(struct ibv_cq *of, int solicited)
{
	const uint64_t one = 1;

	(void)of;
	(void)solicited;
	return write(channel.fd, &one, sizeof(one)) == (ssize_t)sizeof(one) ? 0 : errno;
}

int ibv_get_cq_event(struct ibv_comp_channel *of, struct ibv_cq **ret_cq, void **ret_arg)
{
	uint64_t events;

	if (read(of->fd, &events, sizeof(events)) < 0)
		return -1;
	*ret_cq = &cq;
	*ret_arg = NULL;
	return 0;
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	cm.fd = eventfd(0, EFD_NONBLOCK);
	return &cm;
}

void rdma_destroy_event_channel(struct rdma_event_channel *of)
{
	close(of->fd);
}

int rdma_get_cm_event(struct rdma_event_channel *of, struct rdma_cm_event **ret_event)
{
	(void)of;
	(void)ret_event;
	errno = EAGAIN;
	return -1;
}

/* The quiet server's timers are asked each turn. */
uint64_t __wrap_krl_server_timers(struct krl_server *srv, uint64_t now_ns);
uint64_t __wrap_krl_server_timers(struct krl_server *srv, uint64_t now_ns)
{
	if (srv->index == QUIET)
		atomic_fetch_add(&turns, 1);
	return now_ns + 1000000000ULL;
}

void __wrap_krl_server_end(struct krl_server *srv);
void __wrap_krl_server_end(struct krl_server *srv)
{
	(void)srv;
}

static void set_device(void)
{
	device.ops.poll_cq = flood;
	device.ops.post_recv = take_receive;
	device.ops.req_notify_cq = notify;
	cq.context = &device;
	qp.context = &device;
	id.qp = &qp;
	channel.fd = eventfd(0, EFD_NONBLOCK);
	conn = (struct krl_conn){ .id = &id, .channel = &channel, .recv_cq = &cq, .mr = &mr };
	conn.mem = calloc(1, sizeof(*conn.mem));
	assert_non_null(conn.mem);
}

static int setup(void **state)
{
	(void)state;
	client_ctx_init();
	set_device();
	servers[FLOODED].s.state = KRP_SESSION_READY;
	servers[FLOODED].s.incarnation = 7;
	krp_msg_init(conn.mem->recv[0], KRP_MSG_NOTIFY, 0, KRP_ST_OK, 7);
	((struct krp_notify *)conn.mem->recv[0])->nr = 1;
	((struct krp_notify *)conn.mem->recv[0])->change[0].event = KRP_EVENT_RESYNC;
	servers[FLOODED].conn = &conn;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	close(channel.fd);
	free(conn.mem);
	client_ctx_fini();
	return 0;
}

static void test_a_flood_holds_up_nothing(void **state)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	const uint64_t one = 1;

	(void)state;
	alarm(WAIT_S); /* a thread that never looks whether it is to stop is waited for */
	assert_int_equal(krl_loop_start(&ctx), 0);
	assert_int_equal(krl_loop_watch(&servers[FLOODED]), 0);
	assert_int_equal(write(channel.fd, &one, sizeof(one)), (ssize_t)sizeof(one));
	while (atomic_load(&polls) < POLLS)
		nanosleep(&pause, NULL);
	assert_false(atomic_load(&servers[FLOODED].failed));
	krl_loop_stop(&ctx);
	alarm(0);
	/* 8 of what was left of the last turn, and 8 for the event */
	assert_true(atomic_load(&polls) <= 16 * (atomic_load(&turns) + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_flood_holds_up_nothing, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
