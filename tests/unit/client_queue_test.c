// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What of the queue API needs no module: requests as they are filled in,
 * references to regions as values, peers by name, and that a node which cannot
 * be opened says why, also if its module is of another version.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include <cmocka.h>

#include "client/include/krcore/queue.h"
#include "proto/krp_ioctl.h"
#include "tests/unit/wrap_getaddrinfo.h"
#include "tests/unit/wrap_ioctl.h"

static const struct krcore_mr test_mr = {
	.addr = 0x1000,
	.length = 0x2000,
	.token = 0x1122334455667788ULL,
	.handle = 9,
	.access = KRCORE_ACCESS_LOCAL_WRITE | KRCORE_ACCESS_REMOTE_READ,
};
static const struct krcore_region_ref test_ref = {
	.addr = 0x7f0012345000ULL,
	.length = 1ULL << 40,
	.token = 0xfedcba9876543210ULL,
};

static void test_requests(void **state)
{
	const struct krp_wr want = {
		.user_data = 42,
		.local_addr = 0x1800,
		.remote_addr = 0x7f0012345000ULL + 512,
		.remote_token = 0xfedcba9876543210ULL,
		.local_mr = 9,
		.length = 64,
		.opcode = KRP_OP_READ,
	};
	struct krcore_wr wr;

	(void)state;
	memset(&wr, 0xff, sizeof(wr));
	krcore_wr_read(&wr, &test_mr, (void *)0x1800, 64, &test_ref, 512, 42);
	assert_memory_equal(&wr, &want, sizeof(want));
	memset(&wr, 0xff, sizeof(wr));
	krcore_wr_write(&wr, &test_mr, (void *)0x1800, 64, &test_ref, 512, 42);
	assert_int_equal(wr.opcode, KRP_OP_WRITE);
	wr.opcode = KRP_OP_READ;
	assert_memory_equal(&wr, &want, sizeof(want));
}

static void test_region(void **state)
{
	static const uint8_t bytes[32] = {
		'K',  'R',  'E',  'G',	'I',  'O',  'N',  '1',	0x00, 0x50, 0x34,
		0x12, 0x00, 0x7f, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01,
		0x00, 0x00, 0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe,
	};
	struct krcore_region_ref ref;
	struct krcore_value value;

	(void)state;
	memset(&value, 0xff, sizeof(value));
	krcore_region_encode(&test_ref, &value);
	assert_int_equal(value.kind, KRCORE_KIND_RAW);
	assert_int_equal(value.raw_len, sizeof(bytes));
	assert_memory_equal(value.raw, bytes, sizeof(bytes));
	assert_int_equal(krcore_region_decode(&value, &ref), 0);
	assert_memory_equal(&ref, &test_ref, sizeof(ref));
	krcore_region_ref_of(&test_mr, &ref);
	assert_int_equal(ref.addr, test_mr.addr);
	assert_int_equal(ref.length, test_mr.length);
	assert_int_equal(ref.token, test_mr.token);
}

static void test_region_refused(void **state)
{
	struct krcore_region_ref ref = { .addr = 7 };
	struct krcore_value good, value;

	(void)state;
	krcore_region_encode(&test_ref, &good);
	value = good;
	value.kind = KRCORE_KIND_DCT;
	assert_int_equal(krcore_region_decode(&value, &ref), -EPROTO);
	value = good;
	value.raw_len--;
	assert_int_equal(krcore_region_decode(&value, &ref), -EPROTO);
	value = good;
	value.raw_len++;
	assert_int_equal(krcore_region_decode(&value, &ref), -EPROTO);
	value = good;
	value.raw[7] = '2';
	assert_int_equal(krcore_region_decode(&value, &ref), -EPROTO);
	assert_int_equal(ref.addr, 7);
	assert_non_null(strstr(krcore_error_text(), "region"));
}

/* A reference that a real module could have given. */
static const struct krcore_region_ref test_packable = {
	.addr = 0x7f0012345000ULL,
	.length = 9216,
	.token = 0xfedcba9876540021ULL,
};

static void test_packed(void **state)
{
	static const uint8_t mapped[] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0, 21 };
	static const uint8_t bytes[KRCORE_PACKED_IPV4] = {
		10,   77,   0,	  21,	0x21, 0x00, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe,
		0x00, 0x50, 0x34, 0x12, 0x00, 0x7f, 0x00, 0x00, 0x00, 0x24, 0x00, 0x00,
	};
	uint8_t packed[KRCORE_PACKED_MAX], gid[KRCORE_GID_BYTES];
	const uint8_t local[KRCORE_GID_BYTES] = { 0xfe, 0x80, [15] = 1 };
	struct krcore_region_ref ref;

	(void)state;
	assert_int_equal(krcore_region_pack(mapped, &test_packable, packed), sizeof(bytes));
	assert_memory_equal(packed, bytes, sizeof(bytes));
	assert_int_equal(krcore_region_unpack(packed, sizeof(bytes), gid, &ref), 0);
	assert_memory_equal(gid, mapped, sizeof(mapped));
	assert_memory_equal(&ref, &test_packable, sizeof(ref));

	assert_int_equal(krcore_region_pack(local, &test_packable, packed), sizeof(packed));
	assert_memory_equal(packed, local, sizeof(local));
	assert_memory_equal(packed + sizeof(local), bytes + 4, sizeof(bytes) - 4);
	assert_int_equal(krcore_region_unpack(packed, sizeof(packed), gid, &ref), 0);
	assert_memory_equal(gid, local, sizeof(local));
	assert_memory_equal(&ref, &test_packable, sizeof(ref));
}

/* Packed with one field wrong; nothing is written. */
static void test_pack_refuses(const uint8_t *gid, uint64_t addr, uint64_t length, uint64_t token)
{
	const struct krcore_region_ref ref = { .addr = addr, .length = length, .token = token };
	uint8_t packed[KRCORE_PACKED_MAX] = { 7 };

	assert_int_equal(krcore_region_pack(gid, &ref, packed), -EINVAL);
	assert_int_equal(packed[0], 7);
}

static void test_packed_refused(void **state)
{
	static const uint8_t nobody[KRCORE_GID_BYTES],
		unset[KRCORE_GID_BYTES] = { [10] = 0xff, [11] = 0xff };
	static const uint8_t mapped[] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0, 21 };
	uint8_t packed[KRCORE_PACKED_MAX + 1] = { 0 }, gid[KRCORE_GID_BYTES] = { 9 };
	const uint8_t long_one[KRCORE_GID_BYTES] = { 1 };
	struct krcore_region_ref ref = { .addr = 7 };
	const struct krcore_region_ref *good = &test_packable;
	unsigned int bytes;

	(void)state;
	test_pack_refuses(nobody, good->addr, good->length, good->token);
	test_pack_refuses(unset, good->addr, good->length, good->token);
	test_pack_refuses(mapped, good->addr, 0, good->token);
	test_pack_refuses(mapped, good->addr, 1ULL << 32, good->token);
	test_pack_refuses(mapped, UINT64_MAX, good->length, good->token);
	test_pack_refuses(mapped, good->addr, good->length, 0);
	test_pack_refuses(mapped, good->addr, good->length,
			  good->token | 0x8000); /* no such slot */

	krcore_region_pack(mapped, good, packed);
	for (bytes = 0; bytes <= sizeof(packed); bytes++)
		if (bytes != KRCORE_PACKED_IPV4)
			assert_int_equal(krcore_region_unpack(packed, bytes, gid, &ref), -EPROTO);
	memset(packed + 4, 0, 8); /* the token */
	assert_int_equal(krcore_region_unpack(packed, KRCORE_PACKED_IPV4, gid, &ref), -EPROTO);
	/* a short one in the long form */
	krcore_region_pack(long_one, good, packed);
	memcpy(packed, mapped, sizeof(mapped));
	assert_int_equal(krcore_region_unpack(packed, KRCORE_PACKED_MAX, gid, &ref), -EPROTO);
	assert_int_equal(ref.addr, 7);
	assert_int_equal(gid[0], 9);
}

static void test_peer(void **state)
{
	static const uint8_t mapped[] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1 };
	static const uint8_t loopback[] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 };
	struct krcore_key key;

	(void)state;
	assert_int_equal(krcore_key_from_text("127.0.0.1", 300, &key), 0);
	assert_int_equal(key.service, 300);
	assert_memory_equal(key.gid, mapped, sizeof(mapped));
	assert_int_equal(krcore_key_from_text("::1", 0, &key), 0);
	assert_memory_equal(key.gid, loopback, sizeof(loopback));
	assert_int_equal(krcore_key_from_text("localhost", 1, &key), 0);
	if (memcmp(key.gid, mapped, sizeof(mapped)) != 0)
		assert_memory_equal(key.gid, loopback, sizeof(loopback));

	key.service = 77;
	assert_int_equal(krcore_key_from_text("", 0, &key), -EINVAL);
	assert_int_equal(krcore_key_from_text(NULL, 0, &key), -EINVAL);
	assert_int_equal(krcore_key_from_text("1.2.3", 0, &key), -EINVAL);
	assert_non_null(strstr(krcore_error_text(), "1.2.3 is no IPv4 address"));
	/* two dots: not even a resolver that answers everything takes it */
	assert_true(krcore_key_from_text("no..host", 0, &key) < 0);
	assert_non_null(strstr(krcore_error_text(), "no..host"));
	assert_int_equal(key.service, 77);
}

static struct addrinfo *played; /* answer of the resolver, if not NULL */

int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
		       struct addrinfo **ret_found)
{
	if (!played)
		return __real_getaddrinfo(host, port, hints, ret_found);
	*ret_found = played;
	return 0;
}

void __wrap_freeaddrinfo(struct addrinfo *found)
{
	if (found != played)
		__real_freeaddrinfo(found);
}

/* Of a name with addresses of both kinds the IPv4 one counts, wherever it comes. */
static void test_peer_of_two_kinds(void **state)
{
	static const uint8_t mapped[] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1 };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6,
				    .sin6_addr = { { { 0x20, 1, 0xd, 0xb8, [15] = 1 } } } };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_addr = { htonl(0xc0000201) } };
	struct addrinfo last = { .ai_family = AF_INET, .ai_addr = (struct sockaddr *)&four };
	struct addrinfo first = { .ai_family = AF_INET6,
				  .ai_addr = (struct sockaddr *)&six,
				  .ai_next = &last };
	struct krcore_key key;

	(void)state;
	played = &first;
	assert_int_equal(krcore_key_from_text("both.example", 5, &key), 0);
	assert_memory_equal(key.gid, mapped, sizeof(mapped));
	first.ai_next = NULL;
	assert_int_equal(krcore_key_from_text("six.example", 5, &key), 0);
	assert_memory_equal(key.gid, &six.sin6_addr, sizeof(six.sin6_addr));
	played = NULL;
}

static void check_open(const struct krcore_node_options *opts, int err, const char *names)
{
	struct krcore_node *const untouched = (void *)&test_mr;
	struct krcore_node *node = untouched;

	assert_int_equal(krcore_node_open(opts, &node), err);
	assert_ptr_equal(node, untouched);
	if (!strstr(krcore_error_text(), names))
		fail_msg("'%s' does not name '%s'", krcore_error_text(), names);
}

static void test_open_refused(void **state)
{
	struct krcore_node_options opts = { .size = sizeof(opts), .device = "/nonexistent/krcore" };

	(void)state;
	check_open(&opts, -ENOENT, "/nonexistent/krcore");
	opts.device = "/dev/null";
	check_open(&opts, -ENOTTY, "/dev/null");
	opts.port = 3;
	opts.gid[KRCORE_GID_BYTES - 1] = 1;
	check_open(&opts, -EINVAL, "port 3");
	opts.port = 0;
	check_open(&opts, -ENOTTY, "/dev/null");
	opts.ring_entries = 1000;
	check_open(&opts, -EINVAL, "1000");
	opts.ring_entries = 8;
	check_open(&opts, -EINVAL, "8 ");
	opts.ring_entries = 1U << 17;
	check_open(&opts, -EINVAL, "131072");
	opts.size = sizeof(opts) + 1;
	check_open(&opts, -EINVAL, "version");
	opts.size = 0;
	check_open(&opts, -EINVAL, "version");
}

/*
 * A module of another version is told by what it answers to the one call that all versions
 * have: the linker gives the library's calls to this first.
 */
static unsigned int module_abi; /* 0: none answers */
static unsigned int calls_behind_query;

int __wrap_ioctl(int fd, unsigned long request, void *arg)
{
	struct krp_query *query = arg;

	if (!module_abi)
		return __real_ioctl(fd, request, arg);
	if (request == KRP_IOC_QUERY) {
		query->abi = module_abi;
		return 0;
	}
	calls_behind_query++;
	errno = EPROTONOSUPPORT;
	return -1;
}

static void test_module_of_another_version(void **state)
{
	struct krcore_node_options opts = { .size = sizeof(opts), .device = "/dev/null" };

	(void)state;
	module_abi = KRP_ABI_VERSION + 1;
	check_open(&opts, -EPROTONOSUPPORT, "/dev/null: the module has version 2, not 1");
	assert_int_equal(calls_behind_query, 0); /* nothing is asked that may mean another thing */
	/* one that refuses us though it says our version */
	module_abi = KRP_ABI_VERSION;
	check_open(&opts, -EPROTONOSUPPORT, "/dev/null: setting up a ring");
	assert_int_equal(calls_behind_query, 1);
	module_abi = 0;
}

/* A flag between the library and the module; no node is asked. */
static void test_flags_refused(void **state)
{
	const struct krcore_key peer = { .service = 4711 };
	struct krcore_connect_info info = { .size = sizeof(info), .reads = 77 };
	uint32_t queue = 99;

	(void)state;
	assert_int_equal(krcore_queue_open(NULL, 1, &peer, 0, KRP_CONNECT_CREATE, &queue, &info),
			 -EINVAL);
	assert_non_null(strstr(krcore_error_text(), "service 4711"));
	assert_int_equal(krcore_queue_connect(NULL, 5, &peer, 0, KRP_CONNECT_CREATE, &info),
			 -EINVAL);
	assert_non_null(strstr(krcore_error_text(), "queue 5"));
	assert_int_equal(queue, 99);
	assert_int_equal(info.reads, 77);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_region),
		cmocka_unit_test(test_region_refused),
		cmocka_unit_test(test_packed),
		cmocka_unit_test(test_packed_refused),
		cmocka_unit_test(test_peer),
		cmocka_unit_test(test_peer_of_two_kinds),
		cmocka_unit_test(test_open_refused),
		cmocka_unit_test(test_flags_refused),
		cmocka_unit_test(test_module_of_another_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
