// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * krcore_start(): the calls it makes, in order and no more of them; what it fills in; and that
 * after any of them has failed nothing is left: no descriptor, no node. The module is played by
 * ioctl(), its device by a file in memory.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/include/krcore/queue.h"
#include "proto/krp_ioctl.h"
#include "tests/unit/wrap_ioctl.h"

#define TOKEN 0x1122334455667788ULL
#define REMOTE 0x7f0000001000ULL
#define RECORD 4711

static int device_fd; /* what is behind device */
static char device[64];
static unsigned long calls[16];
static unsigned int calls_nr;
static unsigned long fails; /* the call that does, with -EIO */
static uint32_t ring_entries;
static struct krp_wr posted[2];
static bool no_region; /* the record is another one */
static char memory[64];

static int answer_lookup(struct krp_record_lookup *arg)
{
	const struct krcore_region_ref ref = { .addr = REMOTE, .length = 4096, .token = TOKEN };
	struct krcore_value value;

	assert_int_equal(arg->service, RECORD);
	assert_int_equal(arg->gid[15], 9);
	krcore_region_encode(&ref, &value);
	arg->kind = KRP_KIND_RAW;
	arg->raw_len = no_region ? 3 : value.raw_len;
	memcpy(arg->raw, value.raw, sizeof(arg->raw));
	arg->reads = 1;
	return 0;
}

static int answer_setup(struct krp_setup *arg)
{
	struct krp_ring ring = { .entries = arg->ring_entries, .offset = sizeof(ring) };

	ring_entries = arg->ring_entries;
	arg->map_bytes = sizeof(ring) + arg->ring_entries * sizeof(struct krp_cqe);
	assert_int_equal(ftruncate(device_fd, (off_t)arg->map_bytes), 0);
	assert_int_equal(pwrite(device_fd, &ring, sizeof(ring), 0), sizeof(ring));
	return 0;
}

static int answer_post(struct krp_post *arg)
{
	assert_int_equal(arg->flags, KRP_POST_WAIT);
	assert_int_equal(arg->queue, 5);
	assert_true(arg->count <= 2);
	memcpy(posted, (void *)(uintptr_t)arg->wrs, arg->count * sizeof(posted[0]));
	arg->taken = 1;
	arg->error = arg->count == 1 ? 0 : -EPERM;
	return 0;
}

int __wrap_ioctl(int fd, unsigned long request, void *arg)
{
	(void)fd;
	assert_true(calls_nr < sizeof(calls) / sizeof(calls[0]));
	calls[calls_nr++] = request;
	if (request == fails) {
		errno = EIO;
		return -1;
	}
	switch (request) {
	case KRP_IOC_QUERY:
		((struct krp_query *)arg)->abi = KRP_ABI_VERSION;
		return 0;
	case KRP_IOC_SETUP:
		return answer_setup(arg);
	case KRP_IOC_LOOKUP:
		return answer_lookup(arg);
	case KRP_IOC_MR_REG:
		((struct krp_mr_reg *)arg)->handle = 3;
		return 0;
	case KRP_IOC_CONNECT:
		((struct krp_connect *)arg)->queue = 5;
		((struct krp_connect *)arg)->reads = 2;
		((struct krp_connect *)arg)->generation = 77;
		return 0;
	case KRP_IOC_POST:
		return answer_post(arg);
	default:
		fail_msg("call 0x%lx", request);
		return -1;
	}
}

static struct krcore_wr wrs[2];
static const struct krcore_node_options node_opts = { .size = sizeof(node_opts), .device = device };

static struct krcore_start_options options(void)
{
	const struct krcore_wr wr = { .opcode = KRCORE_OP_READ, .length = 8, .remote_addr = 16 };

	wrs[0] = wrs[1] = wr;
	wrs[1].local_mr = 8;
	wrs[1].remote_token = 6;
	calls_nr = 0;
	return (struct krcore_start_options){
		.size = sizeof(struct krcore_start_options),
		.node = &node_opts,
		.peer.gid[15] = 9,
		.memory = memory,
		.length = sizeof(memory),
		.wrs = wrs,
		.nr = 1,
		.record = RECORD,
	};
}

/* The descriptor that the next open(2) gets: the same as before, if none was left open. */
static int next_fd(void)
{
	int fd = dup(device_fd);

	close(fd);
	return fd;
}

static const unsigned long all_calls[] = { KRP_IOC_QUERY,  KRP_IOC_SETUP,   KRP_IOC_LOOKUP,
					   KRP_IOC_MR_REG, KRP_IOC_CONNECT, KRP_IOC_POST };
#define ALL (sizeof(all_calls) / sizeof(all_calls[0]))

static void test_calls(void **state)
{
	struct krcore_start_options opts = options();
	struct krcore_started made = { .size = sizeof(made) };

	(void)state;
	assert_int_equal(krcore_start(&opts, &made), 0);
	assert_int_equal(calls_nr, ALL); /* with open(2) and mmap(2): eight */
	assert_memory_equal(calls, all_calls, sizeof(all_calls));
	assert_int_equal(ring_entries, 64);
	assert_int_equal(made.queue, 5);
	assert_int_equal(made.mr.handle, 3);
	assert_int_equal(made.remote.token, TOKEN);
	assert_int_equal(made.generation, 77);
	assert_int_equal(made.reads, 3);
	assert_int_equal(made.taken, 1);
	assert_int_equal(made.error, 0);
	assert_int_equal(posted[0].local_mr, 3);
	assert_int_equal(posted[0].remote_token, TOKEN);
	assert_int_equal(posted[0].remote_addr, REMOTE + 16);
	krcore_node_close(made.node);
}

/* References that the caller gives stay; without a record none is looked up. */
static void test_own_references(void **state)
{
	struct krcore_start_options opts = options();
	struct krcore_started made = { .size = sizeof(made) };

	(void)state;
	opts.nr = 2;
	opts.depth = 65;
	assert_int_equal(krcore_start(&opts, &made), 0);
	assert_int_equal(ring_entries, 128);
	assert_int_equal(made.taken, 1);
	assert_int_equal(made.error, -EPERM);
	assert_int_equal(posted[1].local_mr, 8);
	assert_int_equal(posted[1].remote_token, 6);
	assert_int_equal(posted[1].remote_addr, 16);
	krcore_node_close(made.node);
	opts = options();
	opts.record = 0;
	opts.nr = 0;
	assert_int_equal(krcore_start(&opts, &made), 0);
	assert_int_equal(calls_nr, ALL - 2);
	assert_int_equal(made.remote.token, 0);
	assert_int_equal(made.taken, 0);
	krcore_node_close(made.node);
}

static void refused(const struct krcore_start_options *opts, int err, unsigned int most_calls)
{
	struct krcore_started made = { .size = sizeof(made), .queue = 99 };
	int fd = next_fd();

	assert_int_equal(krcore_start(opts, &made), err);
	assert_true(calls_nr <= most_calls);
	assert_int_equal(made.queue, 99);
	assert_null(made.node);
	assert_int_equal(next_fd(), fd);
}

static void test_each_call_fails(void **state)
{
	struct krcore_start_options opts;
	unsigned int i;

	(void)state;
	for (i = 0; i < ALL; i++) {
		opts = options();
		fails = all_calls[i];
		refused(&opts, -EIO, i + 1);
		assert_int_equal(calls_nr, i + 1);
	}
	fails = 0;
	no_region = true;
	opts = options();
	refused(&opts, -EPROTO, 3);
	no_region = false;
}

static void test_bad_options(void **state)
{
	struct krcore_start_options opts = options();
	struct krcore_node_options node = node_opts;
	struct krcore_started made = { .size = 8 };

	(void)state;
	assert_int_equal(krcore_start(&opts, &made), -EINVAL);
	opts.size--;
	refused(&opts, -EINVAL, 0);
	opts = options();
	opts.nr = KRCORE_POST_MAX + 1;
	refused(&opts, -EINVAL, 0);
	opts = options();
	opts.wrs = NULL;
	refused(&opts, -EINVAL, 0);
	opts = options();
	opts.record = 65536;
	refused(&opts, -EINVAL, 0);
	opts = options();
	opts.node = &node;
	node.size = sizeof(node) + 1;
	refused(&opts, -EINVAL, 0);
	node = node_opts;
	node.ring_entries = 17;
	refused(&opts, -EINVAL, 0);
	node = node_opts;
	node.device = "/nowhere";
	refused(&opts, -ENOENT, 0);
}

/* The first node needs no heap; others are as good, and closing gives each back. */
static void test_several_nodes(void **state)
{
	struct krcore_node *first, *second, *third;

	(void)state;
	options();
	assert_int_equal(krcore_node_open(&node_opts, &first), 0);
	assert_int_equal(krcore_node_open(&node_opts, &second), 0);
	assert_ptr_not_equal(first, second);
	assert_int_not_equal(krcore_node_fd(first), krcore_node_fd(second));
	krcore_node_close(first);
	assert_int_equal(krcore_node_open(&node_opts, &third), 0);
	assert_ptr_equal(third, first);
	krcore_node_close(second);
	krcore_node_close(third);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls),		cmocka_unit_test(test_own_references),
		cmocka_unit_test(test_each_call_fails), cmocka_unit_test(test_bad_options),
		cmocka_unit_test(test_several_nodes),
	};

	device_fd = memfd_create("krcore", MFD_CLOEXEC);
	snprintf(device, sizeof(device), "/proc/self/fd/%d", device_fd);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
