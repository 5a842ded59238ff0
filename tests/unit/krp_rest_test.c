// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Whatever happens to clients and servers of proto/krp_session.h, once it is over every server
 * has exactly the records that are published: none that was withdrawn, none that is missing,
 * no old value; and nobody waits for an answer.
 *
 * Two ports of a node and up to three servers; random publications, withdrawals and questions
 * while connections are lost at every k-th message, servers restart, hang or cannot be
 * reached, ports end and change their addresses. No record may live on by its lease
 * alone: the time at rest is shorter than the lease of the records that the other port renews.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/session_world.h"

#define SERVICES 6
#define SERVICE 300
#define OPS 120
#define ASKS 8
#define SEEDS 60

/**
 * struct model - What should be true.
 * @payload: by client and service; 0: not published.
 * @ask: questions of client 0.
 * @asked: that are being asked, by server.
 * @left: orphans of ports that have ended.
 * @next: next payload.
 */
struct model {
	uint32_t payload[WD_CLIENTS][SERVICES];
	struct krp_ask ask[ASKS];
	unsigned int asked[ASKS];
	struct krp_list left;
	uint32_t next;
};

static struct wd_world world;
static struct wd_world *const w = &world;

static void begin_port(struct model *m, unsigned int client, uint8_t last)
{
	unsigned int other = !client;

	memset(m->payload[client], 0, sizeof(m->payload[client]));
	wd_client_start(w, client, last);
	/* as the node does: what was adopted comes back before it is published again */
	if (w->client[other].live)
		wd_client_release(w, other, w->client[client].gid, &m->left);
	m->payload[client][0] = ++m->next;
	wd_publish(w, client, SERVICE, m->next);
	wd_client_adopt(w, client, &m->left, true);
	wd_client_adopt(w, client, &m->left, false);
}

static void end_port(struct model *m, unsigned int client)
{
	unsigned int i;

	for (i = 0; i < ASKS && !client; i++)
		krp_session_give_up(&w->client[0].s[m->asked[i]], &m->ask[i]);
	wd_client_stop(w, client, wd_random(w) % 2, &m->left);
	memset(m->payload[client], 0, sizeof(m->payload[client]));
}

/* The two ports change their addresses. */
static void swap(struct model *m)
{
	uint8_t first = w->client[0].gid[15], second = w->client[1].gid[15];

	end_port(m, 0);
	end_port(m, 1);
	begin_port(m, 0, second);
	begin_port(m, 1, first);
}

static void put_question(struct model *m)
{
	unsigned int i = wd_random(w) % ASKS, server = wd_random(w) % w->servers_nr;
	struct krp_ask *ask = &m->ask[i];

	if (ask->err == -EINPROGRESS)
		krp_session_give_up(&w->client[0].s[m->asked[i]], ask);
	memset(ask, 0, sizeof(*ask));
	ask->type = KRP_MSG_LOOKUP;
	memcpy(ask->key.gid, w->client[1].gid, sizeof(ask->key.gid));
	ask->key.service = krp_cpu_to_le16(SERVICE);
	m->asked[i] = server;
	krp_session_ask(&w->client[0].s[server], ask);
	wd_pull(w, 0, server);
}

static void change(struct model *m)
{
	unsigned int client = wd_random(w) % WD_CLIENTS, i = wd_random(w) % SERVICES;

	if (wd_random(w) % 3) {
		m->payload[client][i] = ++m->next;
		wd_publish(w, client, (uint16_t)(SERVICE + i), m->next);
	} else {
		m->payload[client][i] = 0;
		wd_withdraw(w, client, (uint16_t)(SERVICE + i));
	}
}

static void one_op(struct model *m)
{
	unsigned int what = wd_random(w) % 32, server = wd_random(w) % w->servers_nr;
	unsigned int client = wd_random(w) % WD_CLIENTS;
	uint8_t last;

	switch (what) {
	case 0:
		wd_server_start(w, server);
		break;
	case 1:
		wd_break(w, client, server);
		break;
	case 2:
	case 3:
		w->server[server].reachable = !w->server[server].reachable;
		break;
	case 4:
		w->client[client].conn[server].mute = !w->client[client].conn[server].mute;
		break;
	case 5:
		swap(m);
		break;
	case 6:
		last = w->client[client].gid[15];
		end_port(m, client);
		begin_port(m, client, last);
		break;
	case 7:
		w->client[client].buffers_late = !w->client[client].buffers_late;
		break;
	case 8:
	case 9:
	case 10:
		put_question(m);
		break;
	case 11:
		w->client[client].conn[server].lose_notifies = 3;
		break;
	default:
		change(m);
		break;
	}
	if (wd_random(w) % 2)
		wd_run(w, wd_random(w) % 200);
	else
		wd_settle(w);
}

static void check_server(const struct model *m, unsigned int server)
{
	unsigned int client, i, records = 0;

	for (client = 0; client < WD_CLIENTS; client++) {
		for (i = 0; i < SERVICES; i++) {
			uint32_t payload = m->payload[client][i];

			records += !!payload;
			assert_int_equal(wd_at(w, server, client, (uint16_t)(SERVICE + i)),
					 payload ? (long)payload : -1);
		}
	}
	assert_int_equal(wd_count(w, server), records);
}

/* All is well again, and has been for a while. */
static void check_rest(const struct model *m)
{
	unsigned int i, j;

	w->lose_every = 0;
	for (i = 0; i < w->servers_nr; i++)
		w->server[i].reachable = true;
	for (i = 0; i < WD_CLIENTS; i++)
		for (j = 0; j < w->servers_nr; j++)
			w->client[i].conn[j].mute = false;
	wd_run(w, 20000);
	assert_true(krp_list_empty(&m->left));
	for (i = 0; i < w->servers_nr; i++)
		check_server(m, i);
	for (i = 0; i < ASKS; i++)
		assert_int_not_equal(m->ask[i].err, -EINPROGRESS);
	for (i = 0; i < WD_CLIENTS; i++) {
		for (j = 0; j < w->servers_nr; j++) {
			const struct krp_session *s = &w->client[i].s[j];

			assert_int_equal(s->state, KRP_SESSION_READY);
			assert_int_equal(s->slots.busy_nr, 0);
			assert_int_equal(krp_records_open(&s->peer), 0);
		}
		assert_true(krp_list_empty(&w->client[i].pub.gone));
	}
}

static void one_seed(unsigned int seed, unsigned int lose_every)
{
	struct model m = { .next = seed * 1000 };
	unsigned int i;

	krp_list_init(&m.left);
	for (i = 0; i < ASKS; i++)
		krp_list_init(&m.ask[i].link);
	wd_begin(w, 1 + seed % WD_SERVERS, seed);
	w->lose_every = lose_every;
	begin_port(&m, 0, 7);
	begin_port(&m, 1, 8);
	for (i = 0; i < OPS; i++)
		one_op(&m);
	check_rest(&m);
	wd_end(w);
}

static void test_no_losses(void **state)
{
	unsigned int seed;

	(void)state;
	for (seed = 1; seed <= SEEDS; seed++)
		one_seed(seed, 0);
}

static void test_lost_at_every_kth_message(void **state)
{
	unsigned int k;

	(void)state;
	for (k = 2; k <= SEEDS; k++)
		one_seed(1000 + k, k);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_losses),
		cmocka_unit_test(test_lost_at_every_kth_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
