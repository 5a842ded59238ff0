// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Which connection requests a server takes from whom it does not know yet: strangers of one
 * address crowd out neither other strangers nor a client that really comes from that address.
 * What receives they hold is not taken for lost.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "metaserver/server_priv.h"
#include "proto/krp_reject.h"

struct stranger_fixture {
	struct ms_server srv;
	struct rdma_cm_id id; /* of a request */
	struct ms_conn conn[MS_PENDING_MAX + MS_SOURCE_STRANGERS_MAX];
	unsigned int nr;
	unsigned int closed;
};

static void st_close(void *arg, const char *why)
{
	struct stranger_fixture *fx = arg;

	assert_non_null(why);
	fx->closed++;
}

static const struct ms_session_ops st_ops = { .close = st_close };

static int setup(void **state)
{
	struct stranger_fixture *fx = calloc(1, sizeof(*fx));

	TAILQ_INIT(&fx->srv.conns.strangers);
	fx->srv.hub.limits.clients_max = 10;
	fx->srv.conf.clients_max = 10;
	assert_int_equal(ms_hub_init(&fx->srv.hub, 3, 0), 0);
	*state = fx;
	return 0;
}

static int teardown(void **state)
{
	struct stranger_fixture *fx = *state;
	unsigned int i;

	for (i = 0; i < fx->nr; i++) {
		ms_source_remove(&fx->conn[i]);
		ms_session_fini(&fx->conn[i].session);
	}
	for (i = 0; i < MS_SOURCE_HASH; i++)
		assert_null(fx->srv.conns.sources[i]);
	ms_hub_fini(&fx->srv.hub);
	free(fx);
	return 0;
}

static struct sockaddr *from(struct stranger_fixture *fx, uint32_t host)
{
	struct sockaddr_in *peer = (struct sockaddr_in *)&fx->id.route.addr.dst_addr;

	peer->sin_family = AF_INET;
	peer->sin_addr.s_addr = htonl(host);
	return (struct sockaddr *)peer;
}

/* Strangers from an address, that attached at @born_ms. */
static void crowd(struct stranger_fixture *fx, uint32_t host, unsigned int nr, uint64_t born_ms)
{
	static const struct krp_link link;

	for (; nr; nr--) {
		struct ms_conn *conn = &fx->conn[fx->nr++];

		conn->srv = &fx->srv;
		ms_session_init(&conn->session, &fx->srv.hub, &st_ops, fx, &link, true, born_ms);
		assert_int_equal(ms_source_add(&fx->srv, conn, from(fx, host)), 0);
		TAILQ_INSERT_TAIL(&fx->srv.conns.strangers, conn, stranger);
		fx->srv.conns.strangers_nr++;
		fx->srv.conns.nr++;
	}
}

static unsigned int judge(struct stranger_fixture *fx, uint32_t host)
{
	from(fx, host);
	return ms_conn_judge(&fx->srv, &fx->id);
}

/* A request that is refused for its address has put nobody out. */
static void test_who_is_refused_puts_nobody_out(void **state)
{
	struct stranger_fixture *fx = *state;
	uint64_t now_ms;
	uint32_t host;

	/* the clock of the server goes on by a bounded step only */
	fx->srv.clock.real_ms = ms_mono_ns() / 1000000;
	fx->srv.clock.ms = 1000000;
	now_ms = ms_now(&fx->srv);
	crowd(fx, 7, MS_SOURCE_STRANGERS_MAX, now_ms);
	for (host = 100; fx->srv.hub.stats.sessions_pending < MS_PENDING_MAX; host++)
		crowd(fx, host, MS_SOURCE_STRANGERS_MAX / 2, now_ms - MS_PENDING_MS);
	TAILQ_FIRST(&fx->srv.conns.strangers)->session.born_ms = now_ms - MS_PENDING_MS;
	assert_int_equal(judge(fx, 7), KRP_REJECT_ADDRESS);
	assert_int_equal(fx->closed, 0);
	/* another address makes room for itself, as ever */
	assert_int_equal(judge(fx, 8), 0);
	assert_int_equal(fx->closed, 1);
}

/*
 * Queue pairs of strangers are bounded with those that are ending: then nobody is let in, nor put
 * out for it, though all that still have to authenticate have had their time.
 */
static void test_those_that_end_count_as_strangers(void **state)
{
	struct stranger_fixture *fx = *state;

	fx->srv.clock.real_ms = ms_mono_ns() / 1000000;
	fx->srv.clock.ms = 1000000;
	crowd(fx, 7, 1, 0);
	fx->srv.hub.stats.sessions_pending = MS_PENDING_MAX;
	fx->srv.conns.strangers_nr = MS_STRANGERS_MAX;
	fx->srv.conns.nr = MS_STRANGERS_MAX;
	assert_int_equal(judge(fx, 8), KRP_REJECT_STRANGERS);
	assert_int_equal(fx->closed, 0);
	fx->srv.conns.strangers_nr--;
	fx->srv.conns.nr--;
	assert_int_equal(judge(fx, 8), 0);
	assert_int_equal(fx->closed, 1); /* it has made room */
}

/* A stranger that claims another's address does not keep its owner away. */
static void test_an_address_is_no_limit_while_there_is_room(void **state)
{
	struct stranger_fixture *fx = *state;

	crowd(fx, 7, MS_SOURCE_STRANGERS_MAX, 0);
	assert_int_equal(judge(fx, 7), 0);
	crowd(fx, 7, MS_PENDING_MAX / 2 - 1 - fx->nr, 0);
	assert_int_equal(judge(fx, 7), 0);
	crowd(fx, 7, 1, 0);
	assert_int_equal(judge(fx, 7), KRP_REJECT_ADDRESS);
	assert_int_equal(judge(fx, 8), 0);
	crowd(fx, 8, MS_SOURCE_STRANGERS_MAX, 0);
	assert_int_equal(judge(fx, 8), KRP_REJECT_ADDRESS);
	assert_int_equal(fx->closed, 0);
}

/* The GID of an address. */
static const uint8_t *at(uint32_t host)
{
	static uint8_t gid[KRP_GID_BYTES] = { [10] = 0xff, [11] = 0xff };
	uint32_t be = htonl(host);

	memcpy(&gid[12], &be, sizeof(be));
	return gid;
}

/* The bound of clients of an address that were let in holds always. */
static void test_clients_of_an_address(void **state)
{
	struct stranger_fixture *fx = *state;

	fx->srv.conf.clients_per_address_max = 2;
	crowd(fx, 7, 3, 0);
	assert_int_equal(ms_source_enter(&fx->conn[0], at(7)), 0);
	assert_int_equal(judge(fx, 7), 0);
	assert_int_equal(ms_source_enter(&fx->conn[1], at(7)), 0);
	assert_int_equal(judge(fx, 7), KRP_REJECT_ADDRESS);
	assert_int_equal(judge(fx, 8), 0);
	/* one that was let in as a stranger before the others were clients */
	assert_int_equal(ms_source_enter(&fx->conn[2], at(7)), -EUSERS);
	assert_false(fx->conn[2].entered);
	ms_source_remove(&fx->conn[0]);
	assert_int_equal(judge(fx, 7), 0);
	assert_int_equal(ms_source_enter(&fx->conn[2], at(7)), 0);
}

/* A client counts where its queue pair is, whatever address its request has claimed. */
static void test_a_claimed_address_is_not_where_a_client_counts(void **state)
{
	struct stranger_fixture *fx = *state;

	fx->srv.conf.clients_per_address_max = 2;
	crowd(fx, 7, 3, 0);
	assert_int_equal(ms_source_enter(&fx->conn[0], at(9)), 0);
	assert_int_equal(ms_source_enter(&fx->conn[1], at(9)), 0);
	assert_int_equal(judge(fx, 7), 0); /* the victim keeps all its places */
	assert_false(ms_source_has_clients(&fx->srv, &fx->id));
	assert_int_equal(ms_source_enter(&fx->conn[2], at(9)), -EUSERS);
	assert_int_equal(judge(fx, 9), KRP_REJECT_ADDRESS);
	/* without a global route header there is only the address of the request */
	assert_int_equal(ms_source_enter(&fx->conn[2], NULL), 0);
	from(fx, 7);
	assert_true(ms_source_has_clients(&fx->srv, &fx->id));
}

/*
 * On InfiniBand a request comes from an address of IPoIB, and a client counts at its GID: who
 * comes again from there is known by it, when its places are full, and when those of all are.
 */
static void test_a_gid_is_another_name_of_an_address(void **state)
{
	static const uint8_t gid[KRP_GID_BYTES] = { 0xfe, 0x80, [15] = 9 };
	struct stranger_fixture *fx = *state;

	fx->srv.conf.clients_per_address_max = 2;
	crowd(fx, 7, 3, 0);
	memcpy(fx->id.route.addr.addr.ibaddr.dgid.raw, gid, sizeof(gid));
	assert_false(ms_source_has_clients(&fx->srv, &fx->id));
	assert_int_equal(ms_source_enter(&fx->conn[0], gid), 0);
	fx->srv.hub.limits.clients_max =
		0; /* full, so only one that may replace a client is heard */
	assert_false(ms_admit_possible(&fx->srv.hub, ms_now(&fx->srv)));
	assert_int_equal(judge(fx, 7), 0);
	assert_int_equal(ms_source_enter(&fx->conn[1], gid), 0);
	assert_int_equal(judge(fx, 7), KRP_REJECT_ADDRESS);
	memset(&fx->id.route.addr.addr.ibaddr.dgid, 0, sizeof(gid));
	assert_int_equal(judge(fx, 7), KRP_REJECT_CLIENTS);
}

/* Strangers count where they send from as soon as they send, whatever they claimed before. */
static void test_a_stranger_counts_where_it_sends_from(void **state)
{
	struct stranger_fixture *fx = *state;
	unsigned int i;

	/* from 9, each under another name, and what fills the places up to where it matters */
	for (i = 0; i < MS_SOURCE_STRANGERS_MAX + 1; i++)
		crowd(fx, 1000 + i, 1, 0);
	while (fx->nr < MS_PENDING_MAX / 2)
		crowd(fx, 2000 + fx->nr, 1, 0);
	for (i = 0; i < MS_SOURCE_STRANGERS_MAX; i++)
		assert_int_equal(ms_source_prove(&fx->conn[i], at(9)), 0);
	assert_int_equal(judge(fx, 9), KRP_REJECT_ADDRESS);
	/* one more is not let in, and its name is that of nobody any more */
	assert_int_equal(ms_source_prove(&fx->conn[i], at(9)), -EUSERS);
	assert_int_equal(judge(fx, 1000), 0);
	/* one that is where it said it is stays there, also when that is full */
	assert_int_equal(ms_source_prove(&fx->conn[0], at(9)), 0);
	ms_source_remove(&fx->conn[0]);
	assert_int_equal(judge(fx, 9), 0);
	assert_int_equal(ms_source_prove(&fx->conn[i], at(9)), 0);
}

/* A victim whose address many claim keeps its places when they are heard of from elsewhere. */
static void test_a_victim_of_claims_is_freed_of_them(void **state)
{
	struct stranger_fixture *fx = *state;
	unsigned int i;

	crowd(fx, 7, MS_PENDING_MAX / 2, 0);
	assert_int_equal(judge(fx, 7), KRP_REJECT_ADDRESS);
	for (i = 0; i < MS_SOURCE_STRANGERS_MAX; i++)
		assert_int_equal(ms_source_prove(&fx->conn[i], at(9)), 0);
	assert_int_equal(ms_source_prove(&fx->conn[i], at(9)), -EUSERS);
	/* those that are refused go, and with them what they claimed */
	for (; i < fx->nr; i++)
		ms_source_remove(&fx->conn[i]);
	assert_int_equal(judge(fx, 7), 0);
	assert_int_equal(judge(fx, 9), KRP_REJECT_ADDRESS);
}

/* Receives that strangers hold with half a message are not lost: the device stays open. */
static void test_half_messages_lose_no_receives(void **state)
{
	enum {
		RECEIVES = 64
	};
	bool posted[RECEIVES];
	struct stranger_fixture *fx = *state;
	struct ms_device dev = {
		.srv = &fx->srv,
		.recv.nr = RECEIVES,
		.recv.posted = posted,
		.recv.posted_nr = RECEIVES,
		.recv.empties = 1, /* all completions have been taken since the NIC told */
		.recv.watch = { .armed = true, .low = true },
	};

	memset(posted, true, sizeof(posted));
	crowd(fx, 7, RECEIVES / 4 - 1, 0);
	assert_false(ms_recv_check(&dev)); /* one more is missing than they can hold */
	crowd(fx, 7, 1, 0);
	assert_true(ms_recv_check(&dev));
	assert_false(dev.recv.watch.low);
}

/* The end of the queue pair decides, not the address that a client says it wants. */
static void test_listen_goes_by_the_end_of_the_connection(void **state)
{
	static const __u8 v4[KRP_GID_BYTES] = {
		[10] = 0xff, [11] = 0xff, [12] = 192, [13] = 0, [14] = 2, [15] = 7
	};
	static const __u8 v6[KRP_GID_BYTES] = { 0xfd, [15] = 0x12 };
	struct ms_server *srv = &((struct stranger_fixture *)*state)->srv;
	__u8 other[KRP_GID_BYTES];
	unsigned int at;

	strcpy(srv->conf.listen, "192.0.2.7, dev:rail1, fd00::12");
	assert_int_equal(ms_places_parse(srv), 0);
	assert_true(ms_place_serves(srv, "rail0", v4));
	assert_true(ms_place_serves(srv, "rail0", v6));
	for (at = 0; at < KRP_GID_BYTES; at++) {
		memcpy(other, v4, sizeof(other));
		other[at] ^= 1;
		assert_false(ms_place_serves(srv, "rail0", other));
		assert_true(ms_place_serves(srv, "rail1", other));
		memcpy(other, v6, sizeof(other));
		other[at] ^= 1;
		assert_false(ms_place_serves(srv, "rail0", other));
	}
	memset(other, 0, sizeof(other)); /* what the entry of a device has for an address */
	assert_false(ms_place_serves(srv, "rail0", other));

	srv->listening.places_nr = 0;
	srv->listening.nr = 0;
	strcpy(srv->conf.listen, "192.0.2.7, *");
	assert_int_equal(ms_places_parse(srv), 0);
	assert_true(ms_place_serves(srv, "rail0", other));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_who_is_refused_puts_nobody_out),
		CASE(test_those_that_end_count_as_strangers),
		CASE(test_an_address_is_no_limit_while_there_is_room),
		CASE(test_clients_of_an_address),
		CASE(test_a_claimed_address_is_not_where_a_client_counts),
		CASE(test_a_gid_is_another_name_of_an_address),
		CASE(test_a_stranger_counts_where_it_sends_from),
		CASE(test_a_victim_of_claims_is_freed_of_them),
		CASE(test_half_messages_lose_no_receives),
		CASE(test_listen_goes_by_the_end_of_the_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
