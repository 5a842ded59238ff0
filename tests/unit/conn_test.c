// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Connections on a NIC that counts its commands: however many end at once, no iteration of the
 * loop waits for many commands, and what has to wait for all gives signs of life. A path on
 * which half a message could be sent is refused. A connection counts where it sends from. What a
 * device cannot hold is said when it is opened. Completions that one iteration leaves are taken
 * in the next, though the device raises no event for them. Copied records wait for their owners
 * until these can come.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "metaserver/log.h"
#include "proto/krp_reject.h"
#include "tests/unit/wrap_conn.h"

#define CLIENTS 600U
#define PKEYS 3

static struct {
	struct ev_loop *loop;
	struct ms_server *srv;
	struct ms_device *dev;
	struct ibv_device device;
	struct ibv_context verbs;
	enum ibv_mtu mtu;
	uint16_t pkeys[PKEYS]; /* of the port */
	uint16_t pkey_index;
	unsigned int ids, qps; /* that exist */
	unsigned int commands; /* to the NIC */
	unsigned int ended; /* queue pairs put into error */
	unsigned int disconnected, at_disconnect; /* and how many had ended by the last one */
	unsigned int watched; /* requests for whose device a watch was asked */
	unsigned int accepted, reason;
	unsigned int alive;
	int max_qp;
	unsigned int probes; /* for a device to open */
	unsigned int sent; /* completions of sends that wait to be taken */
	char warning[256]; /* the last one */
} fx;

/* librdmacm and libibverbs */

int __wrap_rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	(void)id;
	attr->path_mtu = fx.mtu;
	attr->pkey_index = fx.pkey_index;
	attr->dest_qp_num = 77;
	attr->ah_attr.is_global = 1;
	*mask = IBV_QP_STATE;
	return 0;
}

int __wrap_rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	(void)id;
	(void)param;
	fx.accepted++;
	return 0;
}

int __wrap_rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t bytes)
{
	(void)id;
	fx.reason = krp_reject_reason(data, bytes);
	return 0;
}

int __wrap_rdma_disconnect(struct rdma_cm_id *id)
{
	(void)id;
	fx.commands++;
	fx.disconnected++;
	fx.at_disconnect = fx.ended;
	return 0;
}

int __wrap_rdma_destroy_id(struct rdma_cm_id *id)
{
	fx.ids--;
	free(id);
	return 0;
}

struct ibv_qp *__wrap_ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp *qp = calloc(1, sizeof(*qp));

	(void)pd;
	(void)attr;
	assert_non_null(qp);
	qp->qp_num = ++fx.qps;
	return qp;
}

int __wrap_ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	(void)qp;
	fx.commands++;
	fx.ended += mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_ERR;
	return 0;
}

int __wrap_ibv_destroy_qp(struct ibv_qp *qp)
{
	fx.commands++;
	fx.qps--;
	free(qp);
	return 0;
}

int __wrap_ibv_query_gid(struct ibv_context *verbs, uint8_t port, int index, union ibv_gid *gid)
{
	(void)verbs;
	(void)port;
	(void)index;
	memset(gid, 0, sizeof(*gid));
	return 0;
}

int __wrap_ibv_query_pkey(struct ibv_context *verbs, uint8_t port, int index, __be16 *pkey)
{
	(void)verbs;
	(void)port;
	if (index >= PKEYS)
		return -1;
	*pkey = (KRP_FORCE __be16)htobe16(fx.pkeys[index]);
	return 0;
}

int __wrap_ibv_query_device(struct ibv_context *verbs, struct ibv_device_attr *attr)
{
	(void)verbs;
	memset(attr, 0, sizeof(*attr));
	attr->max_qp = fx.max_qp;
	return 0;
}

struct ibv_pd *__wrap_ibv_alloc_pd(struct ibv_context *verbs)
{
	(void)verbs;
	errno = ENOSPC;
	return NULL;
}

/* the server */

void __wrap_ms_log(int priority, const char *fmt, ...)
{
	va_list args;

	if (priority != LOG_WARNING)
		return;
	va_start(args, fmt);
	vsnprintf(fx.warning, sizeof(fx.warning), fmt, args);
	va_end(args);
}

int __wrap_ms_device_get(struct ms_server *srv, struct rdma_cm_id *id, struct ms_device **ret_dev)
{
	(void)srv;
	(void)id;
	*ret_dev = fx.dev;
	return 0;
}

int __wrap_ms_device_post(struct ms_conn *conn, const void *msg, unsigned int bytes, bool notify)
{
	(void)conn;
	(void)msg;
	(void)bytes;
	(void)notify;
	return 0;
}

void __wrap_ms_device_poll(struct ms_device *dev)
{
	(void)dev;
}

void __wrap_ms_device_beat(struct ms_server *srv)
{
	(void)srv;
}

void __wrap_ms_watch_probe(struct ms_server *srv)
{
	assert_null(srv->devices); /* the old one has been given up */
	fx.probes++;
}

int __wrap_ms_watch_add(struct ms_server *srv, struct rdma_cm_id *id)
{
	(void)srv;
	(void)id;
	fx.watched++;
	return 0;
}

static void alive(void *arg)
{
	(*(unsigned int *)arg)++;
}

static int setup(void **state)
{
	struct kru_conf conf;

	(void)state;
	memset(&fx, 0, sizeof(fx));
	kru_conf_defaults(&conf);
	conf.ms.key_file[0] = '\0';
	fx.mtu = IBV_MTU_1024;
	fx.verbs.device = &fx.device;
	fx.loop = ev_loop_new(EVFLAG_AUTO);
	assert_non_null(fx.loop);
	assert_int_equal(ms_server_new(fx.loop, &conf, &fx.srv), 0);
	fx.dev = calloc(1, sizeof(*fx.dev));
	assert_non_null(fx.dev);
	fx.dev->srv = fx.srv;
	fx.dev->verbs = &fx.verbs;
	fx.dev->rd_atomic = 16;
	fx.srv->devices = fx.dev;
	ms_server_on_busy(fx.srv, alive, &fx.alive);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ms_server_free(fx.srv);
	ev_loop_destroy(fx.loop);
	assert_int_equal(fx.ids, 0);
	assert_int_equal(fx.qps, 0);
	return 0;
}

static void request(unsigned int host)
{
	static const struct rdma_conn_param param = { .responder_resources = 4 };
	struct rdma_cm_id *id = calloc(1, sizeof(*id));
	struct sockaddr_in *from;

	assert_non_null(id);
	fx.ids++;
	id->verbs = &fx.verbs;
	id->port_num = 1;
	from = (struct sockaddr_in *)&id->route.addr.dst_addr;
	from->sin_family = AF_INET;
	from->sin_addr.s_addr = htonl(0x0a000000U + host);
	ms_conn_accept(fx.srv, id, &param);
}

static void requests(void)
{
	unsigned int i;

	for (i = 0; i < CLIENTS; i++)
		request(i);
	assert_int_equal(fx.accepted, CLIENTS);
	fx.commands = 0;
}

/* One iteration of the loop. Return: whether it had to do with the NIC. */
static bool turn(void)
{
	fx.commands = 0;
	ev_run(fx.loop, EVRUN_NOWAIT);
	assert_true(fx.commands <= 2 * MS_END_BUDGET);
	return fx.commands > 0;
}

/* All connections end, and never many in one iteration of the loop. */
static void assert_paced(void)
{
	unsigned int turns = 0;

	assert_int_equal(fx.commands, 0);
	while (turn())
		turns++;
	assert_int_equal(fx.ended, CLIENTS);
	assert_true(turns >= CLIENTS / MS_END_BUDGET);
}

static bool everyone(void *arg, const struct ms_session_info *info)
{
	(void)arg;
	(void)info;
	return true;
}

static void test_kill_is_paced(void **state)
{
	(void)state;
	requests();
	assert_int_equal(ms_server_kill(fx.srv, everyone, NULL), CLIENTS);
	assert_int_equal(ms_server_kill(fx.srv, everyone, NULL), 0);
	assert_paced();
}

static void test_drain_is_paced(void **state)
{
	(void)state;
	requests();
	ms_server_keep_off(fx.srv, true);
	assert_paced();
}

static void nothing(void *arg)
{
	(void)arg;
}

static void test_shutdown_is_paced(void **state)
{
	(void)state;
	requests();
	ms_server_drain(fx.srv, nothing, NULL);
	assert_paced();
}

/* The switch between died: each notification of a change fails, in one go. */
static void test_broken_connections_are_paced(void **state)
{
	struct ms_conn *conn;

	(void)state;
	requests();
	for (conn = fx.srv->conns.first; conn; conn = conn->next)
		ms_conn_broken(conn, "no answer");
	assert_paced();
}

/* One that ends while a round goes on behind it has its turn in the next one. */
static void test_none_is_passed_by(void **state)
{
	struct ms_conn *first;

	(void)state;
	requests();
	first = fx.srv->conns.first;
	ms_conn_leave(first->next, "test");
	fx.srv->chores.check_next = first->next;
	ms_conn_leave(first, "test");
	assert_true(turn());
	assert_int_equal(fx.ended, 1);
	assert_null(fx.srv->chores.check_next);
	ms_server_check_soon(fx.srv, fx.srv->conns.first); /* as the timer does it */
	assert_true(turn());
	assert_int_equal(fx.ended, 2);
}

/* The end of a device is one piece of work, but not a silent one. */
static void test_removal_gives_signs_of_life(void **state)
{
	(void)state;
	requests();
	ms_device_remove(fx.dev, "test");
	assert_int_equal(fx.qps, 0);
	assert_int_equal(fx.srv->conns.nr, 0);
	assert_int_equal(fx.alive, 2 * CLIENTS / MS_BUSY_STEPS);
}

/* Whoever is in a partition that the port has left attaches again, others stay. */
static void test_a_partition_that_is_gone(void **state)
{
	struct ms_conn *first, *second, *third;

	(void)state;
	fx.pkeys[1] = 0x8001;
	for (fx.pkey_index = 0; fx.pkey_index < 3; fx.pkey_index++)
		request(fx.pkey_index);
	first = fx.srv->conns.first;
	second = first->next;
	third = second->next;
	fx.pkeys[2] = 0x8002; /* one more partition, in a place that was empty */
	ms_conn_pkeys_changed(fx.dev, 2);
	assert_int_equal(third->phase, MS_PHASE_UP); /* another port */
	ms_conn_pkeys_changed(fx.dev, 1);
	assert_int_equal(first->phase, MS_PHASE_UP);
	assert_int_equal(second->phase, MS_PHASE_UP);
	assert_int_equal(third->phase, MS_PHASE_FLUSH);
	fx.pkeys[1] = 0x8003;
	ms_conn_pkeys_changed(fx.dev, 1);
	assert_int_equal(first->phase, MS_PHASE_UP);
	assert_int_equal(second->phase, MS_PHASE_FLUSH);
	assert_string_equal(second->why, "the port is no longer in the client's partition");
}

static void test_a_path_of_small_packets_is_refused(void **state)
{
	(void)state;
	fx.mtu = IBV_MTU_256;
	request(1);
	assert_int_equal(fx.reason, KRP_REJECT_MTU);
	assert_int_equal(fx.accepted, 0);
	assert_int_equal(fx.ids, 0);
	assert_int_equal(fx.qps, 0);
	assert_int_equal(fx.srv->conns.nr, 0);
	assert_int_equal(fx.srv->hub.stats.sessions_pending, 0);
	fx.mtu = IBV_MTU_512;
	request(1);
	assert_int_equal(fx.accepted, 1);
}

/* Under many names: all count where they send from, and no more than may be from one place. */
static void test_strangers_count_where_they_send_from(void **state)
{
	static const uint8_t junk[8];
	const struct ms_conn *late;
	struct ms_conn *conn;
	unsigned int heard = 0;

	(void)state;
	requests();
	assert_true(CLIENTS > MS_PENDING_MAX / 2);
	for (conn = fx.srv->conns.first; heard < MS_SOURCE_STRANGERS_MAX;
	     conn = conn->next, heard++) {
		ms_conn_received(conn, junk, sizeof(junk));
		assert_int_equal(conn->source->strangers, heard + 1);
		assert_ptr_equal(conn->source, fx.srv->conns.first->source);
	}
	late = conn;
	ms_conn_received(conn, junk, sizeof(junk));
	assert_int_equal(late->phase, MS_PHASE_FLUSH);
	assert_string_equal(late->why, "too many connections from its address that do not "
				       "authenticate");
	assert_int_equal(late->source->strangers, 1);
}

/* Whoever is sent away takes no receive any more while its disconnection is under way. */
static void test_who_is_sent_away_is_heard_no_more(void **state)
{
	struct ms_conn *conn;

	(void)state;
	request(1);
	conn = fx.srv->conns.first;
	ms_conn_leave(conn, "test");
	assert_int_equal(fx.ended, 0); /* its last answer may be under way */
	assert_true(turn());
	assert_int_equal(conn->phase, MS_PHASE_LEAVE);
	assert_int_equal(fx.disconnected, 1);
	assert_int_equal(fx.at_disconnect, 1);
	assert_int_equal(fx.srv->conns.nr, 1); /* it has not answered to that yet, and counts */
}

/* A stranger or a client that is sent away, to which its last answer is still on its way. */
static struct ms_conn *sent_away(bool was_ready)
{
	struct ms_conn *conn;

	request(1);
	conn = fx.srv->conns.first;
	conn->sends_out = 1;
	if (was_ready) {
		conn->was_ready = true; /* as ms_conn_ready() does it */
		TAILQ_REMOVE(&fx.srv->conns.strangers, conn, stranger);
		fx.srv->conns.strangers_nr--;
	}
	ms_conn_leave(conn, "test");
	assert_int_equal(conn->phase, MS_PHASE_FLUSH);
	assert_false(turn()); /* what was sent has MS_FLUSH_MS to arrive */
	return conn;
}

static void assert_hung_up(struct ms_conn *conn)
{
	assert_int_equal(conn->phase, MS_PHASE_FLUSH);
	assert_true(turn());
	assert_int_equal(conn->phase, MS_PHASE_LEAVE);
	assert_int_equal(fx.disconnected, 1);
	conn->sends_out = 0; /* its completion has come with an error */
}

/* Whoever never was a client takes its refusal and says nothing more, else it is hung up. */
static void test_a_stranger_that_goes_on_talking(void **state)
{
	static const uint8_t junk[8];
	struct ms_conn *conn = sent_away(false);

	(void)state;
	ms_conn_received(conn, junk, sizeof(junk));
	assert_hung_up(conn);
}

/* A client may have as many requests under way as it has credits. */
static void test_requests_under_way_when_a_client_is_sent_away(void **state)
{
	static const uint8_t junk[8];
	struct ms_conn *conn = sent_away(true);
	unsigned int i;

	(void)state;
	for (i = 0; i < fx.srv->conf.credits; i++)
		ms_conn_received(conn, junk, sizeof(junk));
	assert_false(turn());
	assert_int_equal(conn->phase, MS_PHASE_FLUSH);
	ms_conn_received(conn, junk, sizeof(junk));
	assert_hung_up(conn);
	ms_conn_received(conn, junk, sizeof(junk)); /* too late to matter */
	assert_int_equal(conn->strays, fx.srv->conf.credits + 1);
}

/* A client that is refused, for whatever reason, makes the server hold no device. */
static void test_who_is_refused_opens_no_device(void **state)
{
	(void)state;
	strcpy(fx.srv->conf.listen, "192.0.2.7");
	assert_int_equal(ms_places_parse(fx.srv), 0);
	request(1);
	assert_int_equal(fx.reason, KRP_REJECT_NOT_SERVED);
	strcpy(fx.srv->conf.listen, "*");
	fx.srv->listening.places_nr = 0;
	fx.srv->listening.nr = 0;
	assert_int_equal(ms_places_parse(fx.srv), 0);
	ms_server_keep_off(fx.srv, true);
	request(1);
	assert_int_equal(fx.reason, KRP_REJECT_DRAINED);
	assert_int_equal(fx.watched, 0);
	assert_int_equal(fx.ids, 0);
	ms_server_keep_off(fx.srv, false);
	request(1);
	assert_int_equal(fx.watched, 1);
	assert_int_equal(fx.accepted, 1);
}

static void test_a_device_with_few_queue_pairs(void **state)
{
	struct ibv_context verbs = { .device = &fx.device };
	struct rdma_cm_id id = { .verbs = &verbs };
	struct ms_device *dev = NULL;

	(void)state;
	strcpy(fx.device.name, "few0");
	fx.srv->conf.clients_max = 1000;
	fx.max_qp = 1000 + MS_LEAVING_MAX + MS_STRANGERS_MAX;
	assert_int_equal(__real_ms_device_get(fx.srv, &id, &dev), -ENOSPC);
	assert_string_equal(fx.warning, "");
	fx.max_qp--;
	assert_int_equal(__real_ms_device_get(fx.srv, &id, &dev), -ENOSPC);
	assert_non_null(strstr(fx.warning, "few0"));
	assert_non_null(strstr(fx.warning, "clients_max 1000"));
	assert_null(dev);
	assert_ptr_equal(fx.srv->devices, fx.dev);
}

/* A device that has lost receives is given up with all its clients, and a new one looked for. */
static void test_a_device_that_lost_receives_is_opened_anew(void **state)
{
	enum {
		RECEIVES = 64
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < 3; i++)
		request(i);
	fx.dev->recv.nr = RECEIVES;
	fx.dev->recv.posted = malloc(RECEIVES * sizeof(*fx.dev->recv.posted));
	assert_non_null(fx.dev->recv.posted);
	memset(fx.dev->recv.posted, true, RECEIVES * sizeof(*fx.dev->recv.posted));
	fx.dev->recv.posted_nr = RECEIVES;
	fx.dev->recv.watch.armed = true;
	for (i = 0; i < 2 * MS_CHECKS_SECOND; i++) { /* the NIC has said nothing */
		ev_feed_event(fx.loop, &fx.srv->chores.check, EV_TIMER);
		ev_run(fx.loop, EVRUN_NOWAIT);
	}
	assert_ptr_equal(fx.srv->devices, fx.dev);
	fx.dev->recv.watch.low = true; /* fewer than half are left, and none has come back */
	fx.dev->recv.empties++;
	for (i = 0; i < MS_CHECKS_SECOND; i++) {
		assert_int_equal(fx.probes, 0);
		ev_feed_event(fx.loop, &fx.srv->chores.check, EV_TIMER);
		ev_run(fx.loop, EVRUN_NOWAIT);
	}
	assert_null(fx.srv->devices);
	assert_int_equal(fx.srv->conns.nr, 0);
	assert_int_equal(fx.qps, 0);
	assert_int_equal(fx.probes, 1);
	assert_int_equal(fx.srv->stats.device_removals, 1);
	assert_non_null(strstr(fx.warning, "it has lost receive buffers"));
}

/* The completion queue of sends has some, of no buffer that is known; that of receives has none. */
static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wcs)
{
	int n = 0;

	while (cq == fx.dev->send.cq && n < most && fx.sent) {
		wcs[n++] = (struct ibv_wc){ .wr_id = UINT64_MAX };
		fx.sent--;
	}
	return n;
}

static void on_more(struct ev_loop *loop, ev_idle *w, int events)
{
	(void)loop;
	(void)w;
	(void)events;
	__real_ms_device_poll(fx.dev);
}

/* More sends have completed than one iteration takes, and nothing was received. */
static void test_sends_that_are_left_are_taken_next(void **state)
{
	struct ibv_cq send_cq = { .context = &fx.verbs }, recv_cq = { .context = &fx.verbs };
	unsigned int turns;

	(void)state;
	fx.verbs.ops.poll_cq = poll_cq;
	fx.dev->send.cq = &send_cq;
	fx.dev->recv.cq = &recv_cq;
	fx.dev->send.nr = 1;
	ev_idle_init(&fx.dev->more, on_more);
	fx.sent = 5000;
	__real_ms_device_poll(fx.dev);
	assert_in_range(fx.sent, 1, 4999);
	for (turns = 0; turns < 10 && ev_is_active(&fx.dev->more); turns++)
		ev_run(fx.loop, EVRUN_NOWAIT);
	assert_int_equal(fx.sent, 0);
	assert_false(ev_is_active(&fx.dev->more));
	fx.dev->send.cq = NULL;
	fx.dev->recv.cq = NULL;
	fx.dev->send.nr = 0;
}

/* One tick of the leases, @ms after the one before, with all that is to be swept then. */
static void tick(uint64_t ms)
{
	fx.srv->clock.ms += ms;
	ev_feed_event(fx.loop, &fx.srv->chores.tick, EV_TIMER);
	do
		ev_run(fx.loop, EVRUN_NOWAIT);
	while (ev_is_active(&fx.srv->chores.sweep_more));
}

/* Copied records stay as long as nobody could come for them, and have their lease from then on. */
static void test_copied_records_wait_for_the_server_to_serve(void **state)
{
	static const struct krp_key key = { .gid = { 0xfd, [15] = 1 } };
	struct krp_value value = { .generation = krp_cpu_to_le64(1), .kind = KRP_KIND_RAW };
	struct ms_ledger *ledger = fx.srv->hub.ledger;
	uint64_t lease_ms = fx.srv->conf.lease_ms;
	unsigned int i;

	(void)state;
	assert_int_equal(ms_ledger_import(ledger, ms_now(fx.srv), &key, &value, (uint32_t)lease_ms),
			 1);
	for (i = 0; i < 6; i++) {
		tick(lease_ms / 2);
		assert_int_equal(ms_table_get(fx.srv->hub.table, &key, &value, NULL), 0);
	}
	fx.srv->serving.before = true;
	tick(lease_ms / 2);
	assert_int_equal(ms_table_get(fx.srv->hub.table, &key, &value, NULL), 0);
	tick(lease_ms / 2 + 2 * fx.srv->conf.tick_ms);
	assert_int_equal(ms_table_get(fx.srv->hub.table, &key, &value, NULL), -ENOENT);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_kill_is_paced),
		CASE(test_drain_is_paced),
		CASE(test_shutdown_is_paced),
		CASE(test_broken_connections_are_paced),
		CASE(test_none_is_passed_by),
		CASE(test_removal_gives_signs_of_life),
		CASE(test_a_partition_that_is_gone),
		CASE(test_a_path_of_small_packets_is_refused),
		CASE(test_strangers_count_where_they_send_from),
		CASE(test_who_is_sent_away_is_heard_no_more),
		CASE(test_a_stranger_that_goes_on_talking),
		CASE(test_requests_under_way_when_a_client_is_sent_away),
		CASE(test_who_is_refused_opens_no_device),
		CASE(test_a_device_with_few_queue_pairs),
		CASE(test_a_device_that_lost_receives_is_opened_anew),
		CASE(test_sends_that_are_left_are_taken_next),
		CASE(test_copied_records_wait_for_the_server_to_serve),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
