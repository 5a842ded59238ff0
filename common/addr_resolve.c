// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Addresses behind the names of MetaServers: see addr.h. All names are asked for at the
 * same time (lookup.h), and the caller waits for all of them at once.
 */
#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <resolv.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/lookup.h"

#define KRU_DNS_ANSWER_BYTES 65535
#define KRU_POLL_MS 1000 /* upper bound for the interval that c-ares asks for */

int kru_host_numeric(const char *host, struct kru_host_addrs *ret_addrs)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC,
				  .ai_socktype = SOCK_STREAM,
				  .ai_flags = AI_NUMERICHOST };
	struct kru_host_addrs addrs = { .nr = 1 };
	struct addrinfo *list = NULL;

	if (getaddrinfo(host, NULL, &hints, &list))
		return -ENOENT;
	memcpy(&addrs.addr[0], list->ai_addr, list->ai_addrlen);
	addrs.addr_bytes[0] = list->ai_addrlen;
	freeaddrinfo(list);
	*ret_addrs = addrs;
	return 0;
}

static int kru_srv_rr_decode(ns_msg *msg, ns_rr *rr, struct kru_server *ret_server)
{
	const __u8 *data = ns_rr_rdata(*rr);
	struct kru_server server = { 0 };

	if (ns_rr_rdlen(*rr) < 7)
		return -EBADMSG;
	server.priority = ns_get16(data);
	server.weight = ns_get16(data + 2);
	server.port = ns_get16(data + 4);
	if (ns_name_uncompress(ns_msg_base(*msg), ns_msg_end(*msg), data + 6, server.host,
			       sizeof(server.host)) < 0)
		return -EBADMSG;
	if (!server.port)
		return -EBADMSG;
	*ret_server = server;
	return 0;
}

int kru_srv_decode(const __u8 *answer, size_t bytes, struct kru_servers *ret_servers)
{
	struct kru_servers servers = { 0 };
	ns_msg msg;
	ns_rr rr;

	if (bytes > KRU_DNS_ANSWER_BYTES || ns_initparse(answer, (int)bytes, &msg) < 0 ||
	    !ns_msg_getflag(msg, ns_f_qr))
		return -EBADMSG;
	if (ns_msg_getflag(msg, ns_f_rcode) == ns_r_nxdomain)
		return -ENOENT;
	if (ns_msg_getflag(msg, ns_f_rcode) != ns_r_noerror)
		return -EAGAIN;
	servers.srv = true;
	servers.ttl_s = UINT32_MAX;
	for (int i = 0; i < ns_msg_count(msg, ns_s_an) && servers.nr < KRU_SERVERS_MAX; i++) {
		struct kru_server *server = &servers.server[servers.nr];

		if (ns_parserr(&msg, ns_s_an, i, &rr) < 0)
			return -EBADMSG;
		if (ns_rr_type(rr) != ns_t_srv || ns_rr_class(rr) != ns_c_in)
			continue;
		if (kru_srv_rr_decode(&msg, &rr, server))
			return -EBADMSG;
		if (ns_rr_ttl(rr) < servers.ttl_s)
			servers.ttl_s = ns_rr_ttl(rr);
		if (*server->host && strcmp(server->host, "."))
			servers.nr++;
		else
			memset(server, 0, sizeof(*server));
	}
	if (!servers.nr)
		return -ENOENT;
	*ret_servers = servers;
	return 0;
}

/* By priority; the order of the list among equals. */
static void kru_servers_by_priority(struct kru_servers *servers)
{
	for (unsigned int i = 1; i < servers->nr; i++) {
		struct kru_server server = servers->server[i];
		unsigned int at = i;

		for (; at && servers->server[at - 1].priority > server.priority; at--)
			servers->server[at] = servers->server[at - 1];
		servers->server[at] = server;
	}
}

/* Among equal priorities, draw by weight without putting back: RFC 2782. */
static void kru_servers_shuffle(struct kru_servers *servers)
{
	for (unsigned int i = 0; i < servers->nr; i++) {
		struct kru_server swap = servers->server[i];
		unsigned long total = 0, drawn;
		unsigned int end = i, pick;
		unsigned int seed;

		for (; end < servers->nr && servers->server[end].priority == swap.priority; end++)
			total += servers->server[end].weight + 1UL;
		if (getentropy(&seed, sizeof(seed)))
			return;
		drawn = seed % total;
		for (pick = i; drawn >= servers->server[pick].weight + 1UL; pick++)
			drawn -= servers->server[pick].weight + 1UL;
		servers->server[i] = servers->server[pick];
		servers->server[pick] = swap;
	}
}

static void kru_endpoint_fill(const struct kru_server *server, const struct kru_host_addrs *addrs,
			      unsigned int nr, struct kru_endpoint *ret_endpoint)
{
	struct kru_endpoint ep = { .addr = addrs->addr[nr],
				   .addr_bytes = addrs->addr_bytes[nr],
				   .priority = server->priority,
				   .weight = server->weight };

	if (ep.addr.ss_family == AF_INET)
		((struct sockaddr_in *)&ep.addr)->sin_port = htons(server->port);
	else
		((struct sockaddr_in6 *)&ep.addr)->sin6_port = htons(server->port);
	memcpy(ep.host, server->host, sizeof(ep.host));
	*ret_endpoint = ep;
}

static uint64_t kru_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Wait until all are done, or until the deadline. @lookups: some may be NULL. */
static void kru_lookups_wait(struct kru_lookup **lookups, unsigned int nr, uint64_t until_ms)
{
	struct pollfd fds[KRU_SERVERS_MAX];
	unsigned int i, open_nr;
	uint64_t now_ms;
	int wait_ms;

	for (;;) {
		open_nr = 0;
		wait_ms = KRU_POLL_MS;
		for (i = 0; i < nr; i++) {
			if (!lookups[i] || kru_lookup_done(lookups[i]))
				continue;
			wait_ms = kru_lookup_wait_ms(lookups[i], wait_ms);
			fds[open_nr++] = (struct pollfd){ .fd = kru_lookup_fd(lookups[i]),
							  .events = POLLIN };
		}
		now_ms = kru_now_ms();
		if (!open_nr || now_ms >= until_ms)
			return;
		if ((uint64_t)wait_ms > until_ms - now_ms)
			wait_ms = (int)(until_ms - now_ms);
		poll(fds, open_nr, wait_ms);
	}
}

/* Addresses of all hosts of a list at once; each has its own outcome in @errs. */
static void kru_hosts_lookup(const struct kru_servers *servers, unsigned int timeout_ms,
			     uint64_t until_ms, struct kru_host_addrs *addrs, int *errs)
{
	struct kru_lookup *lookups[KRU_SERVERS_MAX] = { NULL };

	for (unsigned int i = 0; i < servers->nr; i++) {
		errs[i] = kru_host_numeric(servers->server[i].host, &addrs[i]);
		if (errs[i])
			errs[i] = kru_lookup_start(servers->server[i].host, false, timeout_ms,
						   &lookups[i]);
	}
	kru_lookups_wait(lookups, servers->nr, until_ms);
	for (unsigned int i = 0; i < servers->nr; i++) {
		if (!lookups[i])
			continue;
		errs[i] = kru_lookup_done(lookups[i]) ? kru_lookup_addrs(lookups[i], &addrs[i])
						      : -ETIMEDOUT;
		kru_lookup_drop(lookups[i]);
	}
}

static int kru_srv_lookup(const char *name, unsigned int timeout_ms, uint64_t until_ms,
			  struct kru_servers *ret_servers)
{
	struct kru_lookup *lookup;
	int err;

	err = kru_lookup_start(name, true, timeout_ms, &lookup);
	if (err)
		return err;
	kru_lookups_wait(&lookup, 1, until_ms);
	err = kru_lookup_done(lookup) ? kru_lookup_servers(lookup, ret_servers) : -ETIMEDOUT;
	kru_lookup_drop(lookup);
	return err;
}

int kru_servers_srv(const struct kru_servers *servers, unsigned int timeout_ms,
		    struct kru_servers *ret_servers)
{
	int err = kru_srv_lookup(servers->server[0].host, timeout_ms, kru_now_ms() + timeout_ms,
				 ret_servers);

	if (!err)
		kru_servers_order(ret_servers);
	return err;
}

void kru_servers_order(struct kru_servers *servers)
{
	kru_servers_by_priority(servers);
	if (servers->srv)
		kru_servers_shuffle(servers);
}

int kru_servers_resolve(const struct kru_servers *servers, unsigned int timeout_ms,
			struct kru_endpoint *ret_endpoints)
{
	uint64_t until_ms = kru_now_ms() + timeout_ms;
	struct kru_servers sorted = *servers;
	struct kru_host_addrs *addrs;
	int errs[KRU_SERVERS_MAX] = { 0 };
	int nr = 0, err = -ENOENT;

	if (servers->srv) {
		err = kru_srv_lookup(servers->server[0].host, timeout_ms, until_ms, &sorted);
		if (err)
			return err;
	}
	kru_servers_order(&sorted);

	addrs = calloc(KRU_SERVERS_MAX, sizeof(*addrs));
	if (!addrs)
		return -ENOMEM;
	kru_hosts_lookup(&sorted, timeout_ms, until_ms, addrs, errs);
	for (unsigned int i = 0; i < sorted.nr; i++) {
		if (errs[i] && err != -ETIMEDOUT)
			err = errs[i];
		for (unsigned int j = 0; !errs[i] && j < addrs[i].nr; j++)
			if (nr < KRU_ENDPOINTS_MAX)
				kru_endpoint_fill(&sorted.server[i], &addrs[i], j,
						  &ret_endpoints[nr++]);
	}
	free(addrs);
	if (nr)
		return nr;
	return err ? err : -ENOENT;
}
