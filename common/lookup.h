/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Queries to the name service without blocking: a host's addresses, or the SRV records
 * of a name, by c-ares (hosts file and DNS, as resolv.conf(5) and the hosts line of
 * nsswitch.conf(5) say; other name services are not asked).
 *
 * Each lookup is for itself: it reads the configuration of the resolver anew, so that a
 * program that runs for long follows its changes. Threads: one at a time.
 */
#ifndef KRU_LOOKUP_H
#define KRU_LOOKUP_H

#include <stdbool.h>
#include <sys/socket.h>

#include "common/addr.h"

#define KRU_ADDRS_PER_HOST 8

/**
 * struct kru_host_addrs - Addresses of one host.
 * @nr: how many.
 * @addr: addresses without port.
 * @addr_bytes: their lengths.
 */
struct kru_host_addrs {
	unsigned int nr;
	struct sockaddr_storage addr[KRU_ADDRS_PER_HOST];
	socklen_t addr_bytes[KRU_ADDRS_PER_HOST];
};

struct kru_lookup;

/**
 * kru_host_numeric() - Read an address that needs no name service.
 * @host: IPv4 or IPv6 address; IPv6 may have a scope.
 * @ret_addrs: one address; untouched on failure.
 *
 * Return: 0, or -ENOENT if it is a name.
 */
int kru_host_numeric(const char *host, struct kru_host_addrs *ret_addrs);

/**
 * kru_lookup_ask_others() - From now on ask other name servers than those of resolv.conf(5).
 * @name_servers: HOST:PORT, ...; kept as it is. NULL: those of resolv.conf(5).
 *
 * No program does: tests have a name server of their own. Before the first lookup.
 */
void kru_lookup_ask_others(const char *name_servers);

/**
 * kru_lookup_start() - Ask.
 * @name: host or SRV name.
 * @srv: it is a SRV name.
 * @timeout_ms: how long the answer may take; from this follow the tries.
 * @ret_lookup: for kru_lookup_drop(); untouched on failure.
 *
 * Return: 0, or
 * * %-ENOMEM - no memory or file descriptor.
 * * %-EIO - the configuration of the resolver cannot be used.
 */
int kru_lookup_start(const char *name, bool srv, unsigned int timeout_ms,
		     struct kru_lookup **ret_lookup);

/** kru_lookup_fd() - For poll(2) and the like: readable if there is something to do. @l: lookup. */
int kru_lookup_fd(const struct kru_lookup *l);

/**
 * kru_lookup_wait_ms() - When to call kru_lookup_done() at the latest.
 * @l: lookup.
 * @most_ms: bound of the result.
 *
 * Return: ms from now, 0 if it is done, at most @most_ms.
 */
int kru_lookup_wait_ms(struct kru_lookup *l, int most_ms);

/**
 * kru_lookup_done() - Do what is to be done; never waits.
 * @l: lookup.
 *
 * Return: true if kru_lookup_addrs() or kru_lookup_servers() has the answer.
 */
bool kru_lookup_done(struct kru_lookup *l);

/**
 * kru_lookup_addrs() - The answer about a host.
 * @l: lookup that is done.
 * @ret_addrs: addresses, in the order of RFC 6724; untouched on failure.
 *
 * Return: 0, or
 * * %-ENOENT - the name does not exist, or has no address.
 * * %-ETIMEDOUT - no name server answered in time.
 * * %-EAGAIN - a name server failed for now.
 * * %-ENOMEM - no memory.
 */
int kru_lookup_addrs(const struct kru_lookup *l, struct kru_host_addrs *ret_addrs);

/**
 * kru_lookup_servers() - The answer about a SRV name.
 * @l: lookup that is done.
 * @ret_servers: the records as they came; untouched on failure.
 *
 * Return: as kru_lookup_addrs(), or %-EBADMSG if the answer is broken.
 */
int kru_lookup_servers(const struct kru_lookup *l, struct kru_servers *ret_servers);

/** kru_lookup_drop() - End it, whether it is done or not. @l: lookup or NULL. */
void kru_lookup_drop(struct kru_lookup *l);

#endif /* KRU_LOOKUP_H */
