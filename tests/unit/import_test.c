// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Copying a table at start, with a library whose peers do what a test says: one that stalls is
 * given up and the next one is taken, what comes slowly is not, and what never comes ends.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "metaserver/server_priv.h"
#include "tests/unit/wrap_import.h"

#define TIMEOUT_MS 1600 /* copy_timeout_ms; a quarter of it is for a busy machine */
#define GIVE_UP_MS 60000 /* for a test */
#define PEERS_MAX 3

enum deed {
	WHOLE, /* gives all it has */
	STALLS, /* gives what it has, then nothing; the library says so within copy_timeout_ms */
	SLOW, /* a record in less than that, each time */
	HANGS, /* for ever, or until the test ends */
};

struct peer {
	enum deed deed;
	unsigned int records;
	int state, last_error;
};

static struct {
	struct ms_server srv;
	struct peer peers[PEERS_MAX];
	unsigned int nr;
	unsigned int walked[PEERS_MAX + 1];
	atomic_uint nr_walked, closed;
	atomic_bool hang;
	unsigned int records, dropped;
	char config[32768]; /* what the library is told to read */
	bool over;
} fx;

/* the library */

int __wrap_krcore_open(const struct krcore_options *opts, struct krcore_ctx **ret_ctx)
{
	FILE *config = opts->config_file ? fopen(opts->config_file, "re") : NULL;

	/* what it is told makes it give up a peer that stalls */
	assert_int_equal(opts->timeout_ms, TIMEOUT_MS);
	if (config) {
		fx.config[fread(fx.config, 1, sizeof(fx.config) - 1, config)] = '\0';
		assert_true(feof(config));
		fclose(config);
	}
	*ret_ctx = NULL;
	return 0;
}

void __wrap_krcore_close(struct krcore_ctx *ctx)
{
	(void)ctx;
	atomic_fetch_add(&fx.closed, 1);
}

const char *__wrap_krcore_error_text(void)
{
	return "the test says so";
}

int __wrap_krcore_servers(struct krcore_ctx *ctx, struct krcore_server_info *infos,
			  unsigned int infos_nr)
{
	unsigned int i;

	(void)ctx;
	assert_true(infos_nr >= fx.nr);
	assert_int_equal(infos->size, sizeof(*infos));
	memset(infos, 0, fx.nr * sizeof(*infos));
	for (i = 0; i < fx.nr; i++) {
		infos[i].size = sizeof(*infos);
		infos[i].state = fx.peers[i].state;
		infos[i].last_error = fx.peers[i].last_error;
		infos[i].records = 100 - i; /* so they are tried in this order */
		snprintf(infos[i].address, sizeof(infos[i].address), "peer %u", i);
	}
	return (int)fx.nr;
}

int __wrap_krcore_walk(struct krcore_ctx *ctx, unsigned int server, krcore_record_fn *fn, void *arg,
		       struct krcore_check *ret_check)
{
	const struct peer *peer = &fx.peers[server];
	struct krcore_value value = { .kind = KRCORE_KIND_RAW, .raw_len = 1, .generation = 1 };
	struct krcore_key key = { .service = 300 };
	unsigned int i;

	(void)ctx;
	assert_int_equal(ret_check->size, sizeof(*ret_check));
	memset(ret_check, 0, sizeof(*ret_check));
	fx.walked[atomic_fetch_add(&fx.nr_walked, 1)] = server;
	for (i = 0; i < peer->records; i++) {
		if (peer->deed == SLOW)
			usleep(1000 * TIMEOUT_MS * 3 / 4);
		key.gid[15] = (uint8_t)i;
		if (!fn(arg, &key, &value))
			return -ECANCELED;
	}
	if (peer->deed == STALLS) {
		usleep(1000 * TIMEOUT_MS * 3 / 4);
		return -ENOTCONN;
	}
	while (peer->deed == HANGS && atomic_load(&fx.hang))
		usleep(1000);
	return 0;
}

/* the server */

uint64_t __wrap_ms_now(struct ms_server *srv)
{
	(void)srv;
	return 1;
}

int __wrap_ms_ledger_import(struct ms_ledger *l, uint64_t now_ms, const struct krp_key *key,
			    const struct krp_value *value, uint32_t lease_ms)
{
	(void)l;
	(void)now_ms;
	(void)key;
	(void)value;
	(void)lease_ms;
	fx.records++;
	return 1;
}

uint64_t __wrap_ms_ledger_import_drop(struct ms_ledger *l)
{
	uint64_t records = fx.records;

	(void)l;
	fx.records = 0;
	fx.dropped++;
	return records;
}

void __wrap_ms_listeners_start(struct ms_server *srv)
{
	fx.over = true;
	ev_break(srv->loop, EVBREAK_ALL);
}

void __wrap_ms_server_evaluate(struct ms_server *srv)
{
	(void)srv;
}

/* runs */

static void on_limit(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)w;
	(void)events;
	ev_break(loop, EVBREAK_ALL);
}

/* Copy from these peers, until the server would listen. */
static void copy(const struct peer *peers, unsigned int nr)
{
	ev_timer limit;

	memset(&fx, 0, sizeof(fx));
	memcpy(fx.peers, peers, nr * sizeof(*peers));
	fx.nr = nr;
	atomic_store(&fx.hang, true);
	fx.srv.loop = ev_loop_new(EVFLAG_AUTO);
	assert_non_null(fx.srv.loop);
	fx.srv.conf.copy_timeout_ms = TIMEOUT_MS;
	kru_conf_defaults(&fx.srv.copy.conf);
	assert_int_equal(
		kru_conf_set(&fx.srv.copy.conf, "node.device=mlx5_of_the_daemon", NULL, NULL), 0);
	ev_timer_init(&limit, on_limit, GIVE_UP_MS / 1000.0, 0.);
	ev_timer_start(fx.srv.loop, &limit);
	assert_int_equal(ms_import_start(&fx.srv), 0);
	ev_run(fx.srv.loop, 0);
	ev_timer_stop(fx.srv.loop, &limit);
	assert_true(fx.over);
	assert_null(fx.srv.copy.import);
	/* what hangs goes on, and finds that nobody wants it any more */
	atomic_store(&fx.hang, false);
	while (!atomic_load(&fx.closed))
		usleep(1000);
	ev_loop_destroy(fx.srv.loop);
}

#define UP .state = KRCORE_SERVER_UP

static void test_who_stalls_is_given_up_and_the_next_is_taken(void **state)
{
	static const struct peer peers[] = {
		{ UP, .deed = STALLS },
		{ UP, .deed = STALLS, .records = 5 },
		{ UP, .deed = WHOLE, .records = 7 },
	};

	(void)state;
	copy(peers, 3);
	assert_int_equal(fx.nr_walked, 3);
	assert_int_equal(fx.walked[0], 0);
	assert_int_equal(fx.walked[1], 1);
	assert_int_equal(fx.walked[2], 2);
	/* nothing of the others is left */
	assert_int_equal(fx.records, 7);
	assert_true(fx.dropped);
	assert_true(fx.srv.copy.done);
	assert_string_equal(fx.srv.copy.failed, "");
}

static void test_the_next_has_as_much_time(void **state)
{
	/* all of them together take longer than what is waited for one */
	static const struct peer peers[] = {
		{ UP, .deed = STALLS },
		{ UP, .deed = STALLS },
		{ UP, .deed = STALLS },
	};

	(void)state;
	copy(peers, 3);
	assert_int_equal(fx.nr_walked, 3);
	assert_int_equal(fx.records, 0);
	assert_false(fx.srv.copy.done);
	assert_non_null(strstr(fx.srv.copy.failed, "peer 2: the test says so"));
}

static void test_who_does_not_answer_is_not_waited_for(void **state)
{
	static const struct peer peers[] = {
		{ .state = KRCORE_SERVER_CONNECTING },
		{ UP, .deed = WHOLE, .records = 3 },
	};

	(void)state;
	copy(peers, 2);
	assert_int_equal(fx.nr_walked, 1);
	assert_int_equal(fx.walked[0], 1);
	assert_int_equal(fx.records, 3);
	assert_true(fx.srv.copy.done);
}

/* It is not how long all takes that counts. */
static void test_who_is_slow_is_waited_for(void **state)
{
	static const struct peer peers[] = { { UP, .deed = SLOW, .records = 4 } };

	(void)state;
	copy(peers, 1);
	assert_int_equal(fx.records, 4);
	assert_true(fx.srv.copy.done);
}

static void test_what_never_ends_is_left(void **state)
{
	static const struct peer peers[] = { { UP, .deed = HANGS, .records = 2 } };

	(void)state;
	copy(peers, 1);
	assert_int_equal(fx.records, 0);
	assert_false(fx.srv.copy.done);
	assert_string_equal(fx.srv.copy.failed, "copy_from failed: nothing came for 1600 ms");
}

/* Not the file in /etc, which may be another one or broken. */
static void test_it_goes_by_the_configuration_of_the_daemon(void **state)
{
	static const struct peer peers[] = { { UP, .deed = WHOLE, .records = 1 } };

	(void)state;
	copy(peers, 1);
	assert_non_null(strstr(fx.config, "\ndevice = mlx5_of_the_daemon\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_stalls_is_given_up_and_the_next_is_taken),
		cmocka_unit_test(test_the_next_has_as_much_time),
		cmocka_unit_test(test_who_does_not_answer_is_not_waited_for),
		cmocka_unit_test(test_who_is_slow_is_waited_for),
		cmocka_unit_test(test_what_never_ends_is_left),
		cmocka_unit_test(test_it_goes_by_the_configuration_of_the_daemon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
