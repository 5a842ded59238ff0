// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Structures that libkrcore fills, and their sizes: programs compiled for an earlier and for a
 * later version than the library, and sizes that were never set.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/include/krcore/krcore.h"
#include "client/include/krcore/queue.h"
#include "client/lib/lib.h"
#include "client/lib/out.h"

/* What is behind the last field would be a later version's first new one: none may be cut. */
#define NO_PADDING(type, last) \
	_Static_assert(offsetof(struct type, size) == 0 && \
			       KRL_OUT_FIRST(struct type, last) == sizeof(struct type), \
		       #type)

NO_PADDING(krcore_lookup_info, rsvd);
NO_PADDING(krcore_server_info, settling_ms);
NO_PADDING(krcore_stats, notifications);
NO_PADDING(krcore_check, bytes);
NO_PADDING(krcore_node_info, rsvd);
NO_PADDING(krcore_port_info, rsvd);
NO_PADDING(krcore_connect_info, rsvd);
NO_PADDING(krcore_queue_info, completed);

/* A structure through three versions. */
struct first {
	size_t size;
	uint64_t a;
};

struct second {
	size_t size;
	uint64_t a, b;
};

struct third {
	size_t size;
	uint64_t a, b, c;
};

#define UNTOUCHED 0x5a5a5a5a5a5a5a5aULL

static void test_fill(void **state)
{
	const struct second known = { .a = 1, .b = 2 };
	struct third out;

	(void)state;
	memset(&out, 0x5a, sizeof(out));
	out.size = sizeof(struct first); /* a program of the first version */
	krl_out_fill(&out, &known, sizeof(known));
	assert_int_equal(out.size, sizeof(struct first));
	assert_int_equal(out.a, 1);
	assert_int_equal(out.b, UNTOUCHED);
	out.size = sizeof(struct second);
	krl_out_fill(&out, &known, sizeof(known));
	assert_int_equal(out.size, sizeof(struct second));
	assert_int_equal(out.b, 2);
	assert_int_equal(out.c, UNTOUCHED);
	out.size = sizeof(struct third); /* a program of a version that is not known here */
	krl_out_fill(&out, &known, sizeof(known));
	assert_int_equal(out.size, sizeof(struct third));
	assert_int_equal(out.a, 1);
	assert_int_equal(out.b, 2);
	assert_int_equal(out.c, 0);
	krl_out_fill(NULL, &known, sizeof(known));
}

static void test_check(void **state)
{
	struct third out = { .size = 0 };
	size_t first = KRL_OUT_FIRST(struct first, a);

	(void)state;
	assert_int_equal(krl_out_check(NULL, first, "third"), 0);
	assert_int_equal(krl_out_check(&out, first, "third"), -EINVAL);
	assert_string_equal(krcore_error_text(),
			    "third.size is 0: it must be sizeof(struct third)");
	out.size = first - 1;
	assert_int_equal(krl_out_check(&out, first, "third"), -EINVAL);
	out.size = first;
	assert_int_equal(krl_out_check(&out, first, "third"), 0);
	out.size = KRL_OUT_MAX;
	assert_int_equal(krl_out_check(&out, first, "third"), 0);
	out.size = KRL_OUT_MAX + 1;
	assert_int_equal(krl_out_check(&out, first, "third"), -EINVAL);
	out.size = UNTOUCHED;
	assert_int_equal(krl_out_check(&out, first, "third"), -EINVAL);
}

/* A context that has two servers and is attached to none. */
static struct krl_endpoint endpoints[2] = { { .text = "one" }, { .text = "two" } };
static struct krl_server servers[2] = { { .ep = &endpoints[0] }, { .ep = &endpoints[1] } };
static struct krcore_ctx context = {
	.head.ops = &krl_direct_ops,
	.servers = servers,
	.servers_nr = 2,
};

/* Each function that fills something; none comes to ask for its context or node. */
static int call(int which, void *out)
{
	const struct krcore_key key = { .service = 300 };
	uint32_t queue = 0;

	switch (which) {
	case 0:
		return krcore_lookup(&context, &key, NULL, out);
	case 1:
		return krcore_lookup_at(&context, 0, &key, NULL, out);
	case 2:
		return krcore_servers(&context, out, 2);
	case 3:
		return krcore_stats(&context, out);
	case 4:
		return krcore_walk(&context, 0, NULL, NULL, out);
	case 5:
		return krcore_node_query(NULL, out);
	case 6:
		return krcore_node_port(NULL, 1, out);
	case 7:
		return krcore_queue_open(NULL, 1, &key, 0, 0, &queue, out);
	case 8:
		return krcore_queue_connect(NULL, 1, &key, 0, 0, out);
	default:
		return krcore_queue_query(NULL, 1, out);
	}
}

static void test_refused(void **state)
{
	/* the sizes of the first version: a program may still have them */
	static const size_t known[] = {
		KRL_OUT_FIRST(struct krcore_lookup_info, settling),
		KRL_OUT_FIRST(struct krcore_lookup_info, settling),
		sizeof(struct krcore_server_info),
		sizeof(struct krcore_stats),
		sizeof(struct krcore_check),
		sizeof(struct krcore_node_info),
		sizeof(struct krcore_port_info),
		sizeof(struct krcore_connect_info),
		sizeof(struct krcore_connect_info),
		sizeof(struct krcore_queue_info),
	};
	size_t out[128], before[128], i, k;

	(void)state;
	for (i = 0; i < sizeof(known) / sizeof(*known); i++) {
		const size_t bad[] = { 0, sizeof(size_t), known[i] - 1, KRL_OUT_MAX + 1, SIZE_MAX };

		for (k = 0; k < sizeof(bad) / sizeof(*bad); k++) {
			memset(out, 0x5a, sizeof(out));
			out[0] = bad[k];
			memcpy(before, out, sizeof(out));
			assert_int_equal(call((int)i, out), -EINVAL);
			assert_non_null(strstr(krcore_error_text(), ".size is "));
			assert_memory_equal(out, before, sizeof(out));
		}
	}
}

/* A program whose structures are longer than this library's. */
static void test_later_program(void **state)
{
	struct {
		struct krcore_server_info known;
		uint64_t more;
	} infos[3];
	struct {
		struct krcore_stats known;
		uint64_t more, behind;
	} stats;

	(void)state;
	memset(infos, 0x5a, sizeof(infos));
	memset(&stats, 0x5a, sizeof(stats));
	infos[0].known.size = sizeof(*infos);
	assert_int_equal(krcore_servers(&context, &infos[0].known, 3), 2);
	assert_int_equal(infos[0].known.size, sizeof(*infos));
	assert_int_equal(infos[1].known.size, sizeof(*infos));
	assert_string_equal(infos[0].known.address, "one");
	assert_string_equal(infos[1].known.address, "two");
	assert_int_equal(infos[0].more, 0);
	assert_int_equal(infos[1].more, 0);
	assert_int_equal(infos[2].known.incarnation, UNTOUCHED);
	stats.known.size = offsetof(__typeof__(stats), behind);
	context.servers[1].n.hits = 7;
	assert_int_equal(krcore_stats(&context, &stats.known), 0);
	assert_int_equal(stats.known.size, offsetof(__typeof__(stats), behind));
	assert_int_equal(stats.known.lookups, 7);
	assert_int_equal(stats.more, 0);
	assert_int_equal(stats.behind, UNTOUCHED);
}

/* How many there are is said to those who ask for nothing else. */
static void test_no_array(void **state)
{
	struct krcore_server_info info = { 0 };

	(void)state;
	assert_int_equal(krcore_servers(&context, NULL, 0), 2);
	assert_int_equal(krcore_servers(&context, NULL, 5), 2);
	assert_int_equal(krcore_servers(&context, &info, 0), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fill),	 cmocka_unit_test(test_check),
		cmocka_unit_test(test_refused),	 cmocka_unit_test(test_later_program),
		cmocka_unit_test(test_no_array),
	};

	pthread_mutex_init(&context.lock, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
