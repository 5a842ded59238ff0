// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Names of MetaServers, asked of a name server on loopback that this test plays: what it
 * says is taken, how long it holds is kept, and silence ends in time, for all names at once.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/lib/lib.h"
#include "common/lookup.h"

#define TYPE_A 1
#define TYPE_SRV 33

static struct {
	int fd;
	pthread_t thread;
	atomic_bool stop;
	atomic_uint asked;
	char where[32];
} dns;

static struct kru_endpoint found[KRU_ENDPOINTS_MAX];

struct reply {
	unsigned char bytes[512];
	size_t used;
};

static void put(struct reply *r, const void *data, size_t bytes)
{
	memcpy(r->bytes + r->used, data, bytes);
	r->used += bytes;
}

static void put16(struct reply *r, unsigned int n)
{
	put(r, (unsigned char[]){ (unsigned char)(n >> 8), (unsigned char)n }, 2);
}

static void put_rr(struct reply *r, unsigned int type, unsigned int ttl, size_t bytes)
{
	put16(r, 0xc00c); /* the question's name */
	put16(r, type);
	put16(r, 1);
	put16(r, ttl >> 16);
	put16(r, ttl & 0xffff);
	put16(r, (unsigned int)bytes);
	r->bytes[7]++;
}

static void put_srv(struct reply *r, unsigned int priority, unsigned int port, unsigned int ttl,
		    const char *label)
{
	size_t len = strlen(label);
	unsigned char n = (unsigned char)len;

	put_rr(r, TYPE_SRV, ttl, 6 + 1 + len + 6);
	put16(r, priority);
	put16(r, 0);
	put16(r, port);
	put(r, &n, 1);
	put(r, label, len);
	put(r, "\4test", 6);
}

/* Return: false to be silent. @name: first label of what is asked for. */
static bool answer(struct reply *r, const char *name, unsigned int type)
{
	if (!strcmp(name, "silent"))
		return false;
	if (!strcmp(name, "_krcore") && type == TYPE_SRV) {
		put_srv(r, 20, 7, 600, "ms2");
		put_srv(r, 10, 9, 60, "ms1");
		put_srv(r, 30, 5, 300, "silent");
	} else if (!strncmp(name, "ms", 2) && strlen(name) == 3 && type == TYPE_A) {
		put_rr(r, TYPE_A, 5, 4);
		put(r, (unsigned char[]){ 192, 0, 2, (unsigned char)(name[2] - '0') }, 4);
	} else if (!strcmp(name, "broken")) {
		r->bytes[3] = 2; /* SERVFAIL */
	} else if (strncmp(name, "ms", 2) != 0) {
		r->bytes[3] = 3; /* NXDOMAIN */
	}
	return true;
}

static void serve(void)
{
	struct sockaddr_storage from;
	socklen_t from_bytes = sizeof(from);
	struct reply r = { 0 };
	char name[64] = "";
	ssize_t bytes;
	size_t at = 12;

	bytes = recvfrom(dns.fd, r.bytes, 256, 0, (struct sockaddr *)&from, &from_bytes);
	if (bytes < 17 || r.bytes[12] >= sizeof(name))
		return;
	atomic_fetch_add(&dns.asked, 1);
	memcpy(name, r.bytes + 13, r.bytes[12]);
	while (at < 200 && r.bytes[at])
		at += r.bytes[at] + 1U;
	r.used = at + 5;
	r.bytes[2] = 0x84;
	r.bytes[3] = 0;
	memset(r.bytes + 6, 0, 6); /* c-ares may have added EDNS */
	if (answer(&r, name, r.bytes[at + 2]))
		sendto(dns.fd, r.bytes, r.used, 0, (struct sockaddr *)&from, from_bytes);
}

static void *dns_thread(void *arg)
{
	struct pollfd fd = { .fd = dns.fd, .events = POLLIN };

	(void)arg;
	while (!atomic_load(&dns.stop))
		if (poll(&fd, 1, 20) > 0)
			serve();
	return NULL;
}

static int begin(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t bytes = sizeof(at);

	(void)state;
	dns.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (bind(dns.fd, (struct sockaddr *)&at, bytes) ||
	    getsockname(dns.fd, (struct sockaddr *)&at, &bytes))
		return -1;
	snprintf(dns.where, sizeof(dns.where), "127.0.0.1:%u", ntohs(at.sin_port));
	kru_lookup_ask_others(dns.where);
	return pthread_create(&dns.thread, NULL, dns_thread, NULL);
}

static int end(void **state)
{
	(void)state;
	atomic_store(&dns.stop, true);
	pthread_join(dns.thread, NULL);
	return close(dns.fd);
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static int resolve(const char *text, unsigned int timeout_ms)
{
	struct kru_servers list;
	char why[128];

	assert_int_equal(kru_servers_parse(text, &list, why, sizeof(why)), 0);
	return kru_servers_resolve(&list, timeout_ms, found);
}

static void test_names(void **state)
{
	char text[KRU_ADDR_TEXT];

	(void)state;
	assert_int_equal(resolve("ms4.test:4/9,192.0.2.77/8,ms5.test", 5000), 3);
	kru_sockaddr_format((struct sockaddr *)&found[0].addr, text);
	assert_string_equal(text, "192.0.2.77:18600");
	kru_sockaddr_format((struct sockaddr *)&found[1].addr, text);
	assert_string_equal(text, "192.0.2.4:4");
	assert_string_equal(found[2].host, "ms5.test");
}

static void test_no_such_name(void **state)
{
	(void)state;
	assert_int_equal(resolve("nobody.test", 5000), -ENOENT);
	assert_int_equal(resolve("srv:nobody.test", 5000), -ENOENT);
	assert_int_equal(resolve("broken.test", 5000), -EAGAIN);
	assert_int_equal(resolve("ms4.test,nobody.test", 5000), 1);
}

static void test_silence_ends_in_time(void **state)
{
	uint64_t begun_ms = now_ms();

	(void)state;
	/* one by one this would take three times as long */
	assert_int_equal(resolve("silent.test:1,silent.test:2,silent.test:3", 1000), -ETIMEDOUT);
	assert_in_range(now_ms() - begun_ms, 700, 2500);
	assert_int_equal(resolve("silent.test,ms4.test", 1000), 1);
	assert_int_equal(resolve("srv:silent.test", 300), -ETIMEDOUT);
}

static void test_srv(void **state)
{
	struct kru_servers list, got = { 0 };
	char why[128];

	(void)state;
	assert_int_equal(kru_servers_parse("srv:_krcore._tcp.test", &list, why, sizeof(why)), 0);
	assert_int_equal(kru_servers_srv(&list, 5000, &got), 0);
	assert_int_equal(got.nr, 3);
	assert_int_equal(got.ttl_s, 60); /* the shortest of them */
	assert_string_equal(got.server[0].host, "ms1.test");
	assert_int_equal(got.server[0].port, 9);
	assert_string_equal(got.server[1].host, "ms2.test");
	assert_int_equal(kru_servers_resolve(&list, 1000, found), 2);
	assert_int_equal(found[0].priority, 10);
}

/* Given up while it is open, again and again: nothing is left behind, no file either. */
static void test_given_up(void **state)
{
	struct kru_lookup *lookup;
	int i, fd = dup(0), after;

	(void)state;
	for (i = 0; i < 200; i++) {
		assert_int_equal(kru_lookup_start("silent.test", i & 1, 1000, &lookup), 0);
		assert_false(kru_lookup_done(lookup));
		assert_in_range(kru_lookup_wait_ms(lookup, 50), 0, 50);
		kru_lookup_drop(lookup);
	}
	after = dup(0);
	assert_int_equal(after, fd + 1);
	close(fd);
	close(after);
}

/* A context whose list is a SRV name: its servers follow the answers. */
static struct krl_endpoint endpoints[3];
static struct krl_server servers[3];
static struct krcore_ctx ctx;

static void name(struct kru_server *server, const char *host, unsigned int port)
{
	snprintf(server->host, sizeof(server->host), "%s", host);
	server->port = (__u16)port;
}

static void context(unsigned int nr)
{
	struct kru_server server = { 0 };
	char host[16];
	unsigned int i;

	ctx = (struct krcore_ctx){ .servers = servers, .servers_nr = nr };
	for (i = 0; i < nr; i++) {
		snprintf(host, sizeof(host), "ms%u.test", i);
		name(&server, host, 9);
		krl_endpoint_fill(&server, &endpoints[i]);
		servers[i].ep = &endpoints[i];
	}
}

static void test_servers_follow_their_srv_name(void **state)
{
	struct kru_servers fresh = { .srv = true, .nr = 3 };
	int at[KRU_SERVERS_MAX];

	(void)state;
	context(3);
	name(&fresh.server[0], "ms2.test", 9);
	name(&fresh.server[1], "new.test", 9);
	name(&fresh.server[2], "MS0.test", 9);
	krl_srv_match(&ctx, &fresh, at);
	assert_int_equal(at[0], 2); /* a server that is named still keeps the place */
	assert_int_equal(at[1], 1); /* one that is not gives it away */
	assert_int_equal(at[2], 0);

	fresh.nr = 1; /* fewer than there are places: the others stay as they were */
	krl_srv_match(&ctx, &fresh, at);
	assert_int_equal(at[0], -1);
	assert_int_equal(at[1], -1);
	assert_int_equal(at[2], 0);

	fresh.nr = 3; /* more than there are places */
	context(1);
	name(&fresh.server[2], "ms0.test", 10); /* another port is another server */
	krl_srv_match(&ctx, &fresh, at);
	assert_int_equal(at[0], 0);
}

/* As the thread of a context does it: woken by the answer, without waiting for it. */
static void test_name_of_a_server_in_a_loop(void **state)
{
	const struct sockaddr_in *at = (const void *)&servers[0].addrs[0];
	struct kru_server server = { 0 };
	struct epoll_event event;
	int err = -1, turns = 0;

	(void)state;
	context(1);
	ctx.config.timeout_ms = 5000;
	ctx.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	servers[0].ctx = &ctx;
	name(&server, "ms7.test", 9);
	krl_endpoint_fill(&server, &endpoints[0]);
	assert_int_not_equal(krl_resolve_numeric(&servers[0]), 0);
	assert_int_equal(krl_resolve_start(&servers[0]), 0);
	while (!krl_resolve_poll(&servers[0], &err)) {
		assert_true(turns++ < 100);
		assert_int_equal(epoll_wait(ctx.epoll_fd, &event, 1, 5000), 1);
		assert_null(event.data.ptr);
	}
	assert_int_equal(err, 0);
	assert_null(servers[0].resolve);
	assert_int_equal(servers[0].addrs_nr, 1);
	assert_int_equal(ntohs(at->sin_port), 9);
	assert_int_equal(ntohl(at->sin_addr.s_addr), 0xc0000207);

	name(&server, "192.0.2.9", 10); /* an address is nobody's business */
	krl_endpoint_fill(&server, &endpoints[0]);
	assert_int_equal(krl_resolve_numeric(&servers[0]), 0);
	assert_int_equal(ntohs(at->sin_port), 10);
	close(ctx.epoll_fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_no_such_name),
		cmocka_unit_test(test_silence_ends_in_time),
		cmocka_unit_test(test_srv),
		cmocka_unit_test(test_given_up),
		cmocka_unit_test(test_servers_follow_their_srv_name),
		cmocka_unit_test(test_name_of_a_server_in_a_loop),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
