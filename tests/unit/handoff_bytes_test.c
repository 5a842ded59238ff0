// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The function that krcore-handoff comes with, and the example for authors of others, at a node
 * with two ports whose first is down: what they offer is at the port that they name, and neither
 * takes more memory than it may. The library's calls are played.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include <krcore/queue.h>

#include "tests/unit/wrap_handoff.h"

/* NOLINTBEGIN(bugprone-suspicious-include): what is tested of these programs is static */
#define main bytes_main
#include "handoff/functions/bytes.c"
#undef main
#define main example_main
#include "handoff/examples/handoff.c"
#undef main
/* NOLINTEND(bugprone-suspicious-include) */

#define UP 2 /* the first port that is up; GIDs of ports end in their numbers */
#define LOCK_MAX (1U << 20)
#define PAGE 65536
#define TOKEN 0x123400000001ULL

static unsigned int node_port; /* of the node that was opened last */
static unsigned int registered; /* regions */
static unsigned int started; /* calls of krcore_start() */
static unsigned int left; /* regions there were when a node was closed */
static int start_error; /* why krcore_start() did not post */

static void gid_of(unsigned int port, uint8_t *ret_gid)
{
	static const uint8_t first[KRCORE_GID_BYTES] = { [10] = 0xff, [11] = 0xff, 192, 0, 2, 0 };

	memcpy(ret_gid, first, sizeof(first));
	ret_gid[15] = (uint8_t)port;
}

int __wrap_krcore_node_open(const struct krcore_node_options *opts, struct krcore_node **ret_node)
{
	node_port = opts && opts->gid[15] ? opts->gid[15] : UP;
	if (opts && opts->port)
		node_port = opts->port;
	*ret_node = (struct krcore_node *)&node_port;
	return 0;
}

void __wrap_krcore_node_close(struct krcore_node *node)
{
	(void)node;
	left = registered;
	registered = 0;
}

int __wrap_krcore_node_port(struct krcore_node *node, uint32_t index,
			    struct krcore_port_info *ret_info)
{
	assert_ptr_equal(node, &node_port);
	if (index > UP)
		return -ENOENT;
	gid_of(index ? index : node_port, ret_info->gid);
	return 0;
}

int __wrap_krcore_mr_reg(struct krcore_node *node, void *addr, size_t length, uint32_t access,
			 struct krcore_mr *ret_mr)
{
	assert_ptr_equal(node, &node_port);
	registered++;
	*ret_mr = (struct krcore_mr){
		.addr = (uintptr_t)addr, .length = length, .token = TOKEN, .access = access
	};
	return 0;
}

int __wrap_krcore_mr_dereg(struct krcore_node *node, struct krcore_mr *mr)
{
	assert_ptr_equal(node, &node_port);
	assert_int_equal(mr->token, TOKEN);
	registered--;
	return 0;
}

/* A machine of large pages: memory of others is not to be in those that are registered. */
long __wrap_sysconf(int name)
{
	return name == _SC_PAGESIZE ? PAGE : __real_sysconf(name);
}

int __wrap_krcore_start(const struct krcore_start_options *opts, struct krcore_started *ret_started)
{
	assert_int_equal(opts->length % PAGE, 0);
	started++;
	registered++;
	ret_started->node = (struct krcore_node *)&node_port;
	ret_started->mr.token = TOKEN;
	ret_started->error = start_error;
	return 0;
}

/* What was posted does not complete. */
int __wrap_krcore_poll(struct krcore_node *node, struct krcore_wc *wcs, unsigned int nr)
{
	assert_ptr_equal(node, &node_port);
	(void)wcs;
	assert_int_equal(nr, 1);
	return 0;
}

int __wrap_krcore_wait(struct krcore_node *node, int timeout_ms)
{
	assert_ptr_equal(node, &node_port);
	return timeout_ms ? -ETIMEDOUT : 0;
}

/* What is offered by a function can be read at the port that its reference names. */
static void test_port_of_an_offer(void **state)
{
	char word[KH_WORD_BYTES];
	uint8_t packed[KRCORE_PACKED_MAX], gid[KRCORE_GID_BYTES], own[KRCORE_GID_BYTES];
	struct krcore_region_ref ref;
	struct kb b = { 0 };
	int nr;

	(void)state;
	unsetenv(KH_ENV_GID);
	assert_non_null(kb_room(&b, 100));
	assert_int_equal(kb_offer(&b, word), 0);
	assert_int_equal(node_port, UP);
	nr = kh_hex_parse(word, packed, sizeof(packed));
	assert_int_equal(krcore_region_unpack(packed, (size_t)nr, gid, &ref), 0);
	gid_of(UP, own);
	assert_memory_equal(gid, own, sizeof(gid));
	assert_int_equal(ref.length, 100);
	kb_release(&b);
	assert_int_equal(registered, 0);
	/* unless another one was asked for */
	setenv(KH_ENV_GID, "192.0.2.1", 1);
	b = (struct kb){ 0 };
	assert_non_null(kb_room(&b, 100));
	assert_int_equal(kb_offer(&b, word), 0);
	assert_int_equal(node_port, 1);
	nr = kh_hex_parse(word, packed, sizeof(packed));
	assert_int_equal(krcore_region_unpack(packed, (size_t)nr, gid, &ref), 0);
	gid_of(1, own);
	assert_memory_equal(gid, own, sizeof(gid));
	kb_release(&b);
	unsetenv(KH_ENV_GID);
}

/* What may not be locked is not touched either. */
static void test_more_than_may_be_locked(void **state)
{
	const struct rlimit most = { LOCK_MAX, LOCK_MAX };
	struct kb b = { 0 };

	(void)state;
	kb_begin(&b);
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &most), 0);
	assert_null(kb_room(&b, LOCK_MAX + 1));
	assert_non_null(strstr(kb_why(&b), "the limit is 1048576"));
	assert_null(b.out.at);
	assert_non_null(kb_room(&b, 1));
	assert_int_equal(b.out.room, PAGE);
	assert_non_null(kb_room(&b, LOCK_MAX));
	kb_release(&b);
	/* with what it took, which stays */
	b.in.room = LOCK_MAX / 2;
	b.in.registered = true;
	assert_null(kb_room(&b, LOCK_MAX / 2 + 1));
	assert_non_null(kb_room(&b, LOCK_MAX / 2));
	kb_release(&b);
}

static void test_port_of_the_example(void **state)
{
	uint8_t packed[KRCORE_PACKED_MAX], gid[KRCORE_GID_BYTES], own[KRCORE_GID_BYTES];
	struct krcore_region_ref ref;
	struct krcore_node *node;
	struct krcore_mr mr;
	char memory[64];
	int nr;

	(void)state;
	assert_int_equal(krcore_node_open(NULL, &node), 0);
	nr = give_away(node, memory, sizeof(memory), &mr, packed);
	assert_int_equal(krcore_region_unpack(packed, (size_t)nr, gid, &ref), 0);
	gid_of(UP, own);
	assert_memory_equal(gid, own, sizeof(gid));
	registered = 0;
}

/* The length is what a stranger says. */
static void test_length_of_the_example(void **state)
{
	static const struct {
		uint64_t length;
		int err;
	} cases[] = {
		{ 1, -EHOSTUNREACH },	   { MOST, -EHOSTUNREACH },	  { MOST + 1, -EMSGSIZE },
		{ 1U << 30, -EMSGSIZE },   { (1U << 30) + 1, -EMSGSIZE }, { 1U << 31, -EMSGSIZE },
		{ UINT32_MAX, -EMSGSIZE },
	};
	uint8_t packed[KRCORE_PACKED_MAX], gid[KRCORE_GID_BYTES];
	struct krcore_region_ref ref = { .addr = 4096, .token = TOKEN };
	void *memory = NULL;
	size_t bytes = 0, i;
	int nr;

	(void)state;
	gid_of(1, gid);
	start_error = -EHOSTUNREACH;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ref.length = cases[i].length;
		nr = krcore_region_pack(gid, &ref, packed);
		assert_true(nr > 0);
		started = 0;
		assert_int_equal(fetch(packed, (size_t)nr, &memory, &bytes), cases[i].err);
		assert_int_equal(started, cases[i].err == -EHOSTUNREACH);
		assert_null(memory);
	}
}

/* Nothing may write to memory that is free again. */
static void test_time_out_of_the_example(void **state)
{
	const struct krcore_region_ref ref = { .addr = 4096, .length = 100, .token = TOKEN };
	uint8_t packed[KRCORE_PACKED_MAX], gid[KRCORE_GID_BYTES];
	void *memory = NULL;
	size_t bytes = 0;
	int nr;

	(void)state;
	gid_of(1, gid);
	nr = krcore_region_pack(gid, &ref, packed);
	assert_true(nr > 0);
	start_error = 0;
	left = 1;
	assert_int_equal(fetch(packed, (size_t)nr, &memory, &bytes), -ETIMEDOUT);
	assert_null(memory);
	assert_int_equal(left, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_port_of_an_offer),
		cmocka_unit_test(test_more_than_may_be_locked),
		cmocka_unit_test(test_port_of_the_example),
		cmocka_unit_test(test_length_of_the_example),
		cmocka_unit_test(test_time_out_of_the_example),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
