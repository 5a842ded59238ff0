// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Lists of MetaServers, DNS answers with SRV records, and the addresses behind
 * names that need no name server.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/addr.h"

static char why[256];

static int parse(const char *text, struct kru_servers *servers)
{
	return kru_servers_parse(text, servers, why, sizeof(why));
}

static void test_list(void **state)
{
	struct kru_servers s;

	(void)state;
	assert_int_equal(parse(" a.example , 192.0.2.1:7/0,[2001:db8::1],"
			       "[fe80::1%eth0]:9/65535,b-c_d.example:65535 ",
			       &s),
			 0);
	assert_false(s.srv);
	assert_int_equal(s.nr, 5);
	assert_string_equal(s.server[0].host, "a.example");
	assert_int_equal(s.server[0].port, 18600);
	assert_int_equal(s.server[0].priority, KRU_PRIORITY_DEFAULT);
	assert_string_equal(s.server[1].host, "192.0.2.1");
	assert_int_equal(s.server[1].port, 7);
	assert_int_equal(s.server[1].priority, 0);
	assert_string_equal(s.server[2].host, "2001:db8::1");
	assert_string_equal(s.server[3].host, "fe80::1%eth0");
	assert_int_equal(s.server[3].port, 9);
	assert_int_equal(s.server[3].priority, 65535);
	assert_int_equal(s.server[4].port, 65535);

	assert_int_equal(parse("", &s), 0);
	assert_int_equal(s.nr, 0);
	assert_int_equal(parse(" srv:_krcore._tcp.cluster.example", &s), 0);
	assert_true(s.srv);
	assert_string_equal(s.server[0].host, "_krcore._tcp.cluster.example");
}

static void test_bad_lists(void **state)
{
	static const struct {
		const char *text;
		const char *part;
	} bad[] = {
		{ ",", "empty" },
		{ "a,,b", "empty" },
		{ "a,", "empty" },
		{ "a:0", "port that is not 1 to 65535" },
		{ "a:65536", "port that is not 1 to 65535" },
		{ "a:+1", "port that is not 1 to 65535" },
		{ "a:", "port that is not 1 to 65535" },
		{ "a:1x", "port that is not 1 to 65535" },
		{ "a/65536", "priority that is not 0 to 65535" },
		{ "a/", "priority that is not 0 to 65535" },
		{ "a/-1", "priority that is not 0 to 65535" },
		{ "/5", "neither a host name" },
		{ ":5", "neither a host name" },
		{ "a b", "neither a host name" },
		{ "a..b", "neither a host name" },
		{ "192.0.2", "neither a host name" },
		{ "192.0.2.256", "neither a host name" },
		{ "2001:db8::1", "neither a host name" },
		{ "[2001:db8::g]", "neither a host name" },
		{ "[2001:db8::1", "neither a host name" },
		{ "[2001:db8::1]5", "neither a host name" },
		{ "[]", "neither a host name" },
		{ "a,srv:b", "must stand alone" },
		{ "srv:a,b", "must stand alone" },
		{ "srv:", "not one DNS name" },
		{ "srv:a b", "not one DNS name" },
		{ "a,A:18600", "twice" },
		{ "0123456789012345678901234567890123456789012345678901234567890123.x",
		  "neither a host name" },
	};
	struct kru_servers s, before;

	(void)state;
	assert_int_equal(parse("old.example", &s), 0);
	before = s;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		*why = '\0';
		assert_int_equal(parse(bad[i].text, &s), -EINVAL);
		if (!strstr(why, bad[i].part))
			fail_msg("'%s': '%s' lacks '%s'", bad[i].text, why, bad[i].part);
		assert_memory_equal(&s, &before, sizeof(s));
	}
}

static void test_too_many(void **state)
{
	char text[1024] = "";
	struct kru_servers s;

	(void)state;
	for (int i = 0; i < KRU_SERVERS_MAX; i++)
		sprintf(text + strlen(text), "%sh%d", i ? "," : "", i);
	assert_int_equal(parse(text, &s), 0);
	assert_int_equal(s.nr, KRU_SERVERS_MAX);
	strcat(text, ",one-more");
	assert_int_equal(parse(text, &s), -EINVAL);
	assert_non_null(strstr(why, "more than 32"));

	memset(text, 'a', 600);
	text[600] = '\0';
	assert_int_equal(parse(text, &s), -EINVAL);
	assert_non_null(strstr(why, "too long"));
}

/* A DNS answer by hand: one question, then records; names are compressed. */
struct answer {
	__u8 bytes[1024];
	size_t used;
};

static void put16(struct answer *a, unsigned int n)
{
	a->bytes[a->used++] = (__u8)(n >> 8);
	a->bytes[a->used++] = (__u8)n;
}

static void put_name(struct answer *a, const char *name)
{
	while (*name) {
		size_t len = strcspn(name, ".");

		a->bytes[a->used++] = (__u8)len;
		memcpy(a->bytes + a->used, name, len);
		a->used += len;
		name += len + (name[len] == '.');
	}
	a->bytes[a->used++] = 0;
}

static void begin(struct answer *a, unsigned int rcode, unsigned int answers)
{
	memset(a, 0, sizeof(*a));
	put16(a, 0x1234);
	put16(a, 0x8180 | rcode);
	put16(a, 1);
	put16(a, answers);
	put16(a, 0);
	put16(a, 0);
	put_name(a, "_krcore._tcp.example");
	put16(a, 33);
	put16(a, 1);
}

static void put_rr(struct answer *a, unsigned int type, const void *data, size_t bytes)
{
	put16(a, 0xc00c); /* the question's name */
	put16(a, type);
	put16(a, 1);
	put16(a, 0);
	put16(a, 60);
	put16(a, (unsigned int)bytes);
	memcpy(a->bytes + a->used, data, bytes);
	a->used += bytes;
}

static void put_srv(struct answer *a, unsigned int priority, unsigned int weight, unsigned int port,
		    const char *target)
{
	struct answer data = { .used = 0 };

	put16(&data, priority);
	put16(&data, weight);
	put16(&data, port);
	put_name(&data, target);
	put_rr(a, 33, data.bytes, data.used);
}

static void test_srv(void **state)
{
	struct kru_servers s;
	struct answer a;

	(void)state;
	begin(&a, 0, 3);
	put_srv(&a, 10, 60, 18600, "ms1.example");
	put_rr(&a, 1, "\300\000\002\001", 4); /* an A record in between is skipped */
	put_srv(&a, 20, 0, 5, "ms2.example");
	assert_int_equal(kru_srv_decode(a.bytes, a.used, &s), 0);
	assert_int_equal(s.nr, 2);
	assert_string_equal(s.server[0].host, "ms1.example");
	assert_int_equal(s.server[0].priority, 10);
	assert_int_equal(s.server[0].weight, 60);
	assert_int_equal(s.server[0].port, 18600);
	assert_string_equal(s.server[1].host, "ms2.example");
	assert_int_equal(s.server[1].port, 5);
}

static void test_srv_refusals(void **state)
{
	struct kru_servers s = { .nr = 77 };
	struct answer a;

	(void)state;
	begin(&a, 3, 0);
	assert_int_equal(kru_srv_decode(a.bytes, a.used, &s), -ENOENT);
	begin(&a, 2, 0);
	assert_int_equal(kru_srv_decode(a.bytes, a.used, &s), -EAGAIN);
	begin(&a, 0, 0);
	assert_int_equal(kru_srv_decode(a.bytes, a.used, &s), -ENOENT);
	begin(&a, 0, 1);
	put_srv(&a, 0, 0, 1, ""); /* "." means: no such service here */
	assert_int_equal(kru_srv_decode(a.bytes, a.used, &s), -ENOENT);
	begin(&a, 0, 1);
	put_srv(&a, 0, 0, 0, "ms.example");
	assert_int_equal(kru_srv_decode(a.bytes, a.used, &s), -EBADMSG);
	begin(&a, 0, 1);
	put_rr(&a, 33, "\0\0\0\0\0\1", 6);
	assert_int_equal(kru_srv_decode(a.bytes, a.used, &s), -EBADMSG);
	begin(&a, 0, 1);
	put_srv(&a, 0, 0, 1, "ms.example");
	a.bytes[2] &= 0x7f; /* a question, not an answer */
	assert_int_equal(kru_srv_decode(a.bytes, a.used, &s), -EBADMSG);
	assert_int_equal(s.nr, 77);
}

/* Cut at every length, and with every byte changed: never more than it has. */
static void test_srv_broken(void **state)
{
	struct answer a;
	__u8 *copy;

	(void)state;
	begin(&a, 0, 2);
	put_srv(&a, 1, 1, 1, "a.example");
	put_srv(&a, 2, 2, 2, "b.example");
	for (size_t cut = 0; cut < a.used; cut++) {
		struct kru_servers s = { .nr = 77 };

		copy = malloc(cut ? cut : 1); /* exact, for the address sanitizer */
		assert_non_null(copy);
		memcpy(copy, a.bytes, cut);
		assert_int_equal(kru_srv_decode(copy, cut, &s), -EBADMSG);
		assert_int_equal(s.nr, 77);
		free(copy);
	}
	copy = malloc(a.used ? a.used : 1);
	assert_non_null(copy);
	for (size_t at = 0; at < a.used; at++) {
		for (unsigned int flip = 1; flip < 256; flip <<= 1) {
			struct kru_servers s = { 0 };

			memcpy(copy, a.bytes, a.used);
			copy[at] ^= (__u8)flip;
			if (!kru_srv_decode(copy, a.used, &s))
				assert_in_range(s.nr, 1, 2);
		}
	}
	free(copy);
}

static void test_resolve_numeric(void **state)
{
	struct kru_endpoint *found = calloc(KRU_ENDPOINTS_MAX, sizeof(*found));
	char text[KRU_ADDR_TEXT];
	struct kru_servers s;

	(void)state;
	assert_non_null(found);
	assert_int_equal(parse("192.0.2.9/9,[2001:db8::1]:5/1,192.0.2.1/1", &s), 0);
	assert_int_equal(kru_servers_resolve(&s, 0, found), 3);
	kru_sockaddr_format((const struct sockaddr *)&found[0].addr, text);
	assert_string_equal(text, "[2001:db8::1]:5");
	assert_int_equal(found[0].priority, 1);
	kru_sockaddr_format((const struct sockaddr *)&found[1].addr, text);
	assert_string_equal(text, "192.0.2.1:18600");
	kru_sockaddr_format((const struct sockaddr *)&found[2].addr, text);
	assert_string_equal(text, "192.0.2.9:18600");
	assert_int_equal(found[2].priority, 9);
	assert_string_equal(found[2].host, "192.0.2.9");

	assert_int_equal(parse("", &s), 0);
	assert_int_equal(kru_servers_resolve(&s, 0, found), -ENOENT);
	free(found);
}

static void test_resolve_name(void **state)
{
	struct kru_endpoint *found = calloc(KRU_ENDPOINTS_MAX, sizeof(*found));
	struct kru_servers s;
	int nr;

	(void)state;
	assert_non_null(found);
	/* /etc/hosts everywhere; AI_ADDRCONFIG may still leave nothing of it */
	assert_int_equal(parse("localhost:3", &s), 0);
	nr = kru_servers_resolve(&s, 5000, found);
	if (nr >= 0) {
		assert_in_range(nr, 1, 8);
		assert_string_equal(found[0].host, "localhost");
	}
	free(found);
	if (nr < 0)
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_bad_lists),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_srv),
		cmocka_unit_test(test_srv_refusals),
		cmocka_unit_test(test_srv_broken),
		cmocka_unit_test(test_resolve_numeric),
		cmocka_unit_test(test_resolve_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
