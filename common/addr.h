/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Names of MetaServers as text, and the addresses behind the names.
 *
 * A list is host[:port][/priority], ..., where host is a name, an IPv4 address
 * or an IPv6 address in brackets; or it is srv:NAME, one DNS SRV name, so that
 * a site changes its servers in one place. No state, nothing is logged: any
 * thread. Only kru_servers_resolve() and kru_servers_srv() wait.
 */
#ifndef KRU_ADDR_H
#define KRU_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include <linux/types.h>

#define KRU_HOST_BYTES 256 /* a DNS name and its NUL */
#define KRU_SERVERS_MAX 32 /* entries of a list, and SRV records taken */
#define KRU_ENDPOINTS_MAX 64 /* addresses behind a list */
#define KRU_ADDR_TEXT 64 /* "[IPv6%scope]:port" and its NUL */
#define KRU_PRIORITY_DEFAULT 100

/**
 * struct kru_server - One MetaServer of a list, or one SRV record.
 * @host: name or address; IPv6 without brackets.
 * @port: RDMA_PS_TCP port.
 * @priority: lower is asked first.
 * @weight: share among equal priorities, from SRV; else 0.
 */
struct kru_server {
	char host[KRU_HOST_BYTES];
	__u16 port;
	__u16 priority;
	__u16 weight;
};

/**
 * struct kru_servers - A list as configured.
 * @srv: the list is one SRV name, server[0].host; or the answer of a name server for one.
 * @ttl_s: time to live of the name server's answer, in seconds; 0 for a list.
 * @nr: entries.
 * @server: the entries.
 */
struct kru_servers {
	bool srv;
	__u32 ttl_s;
	unsigned int nr;
	struct kru_server server[KRU_SERVERS_MAX];
};

/**
 * struct kru_endpoint - One address of one MetaServer.
 * @addr: socket address with the port in it.
 * @addr_bytes: its length.
 * @priority: lower is asked first.
 * @weight: share among equal priorities.
 * @host: the name it was found under.
 */
struct kru_endpoint {
	struct sockaddr_storage addr;
	socklen_t addr_bytes;
	__u16 priority;
	__u16 weight;
	char host[KRU_HOST_BYTES];
};

/**
 * kru_host_port_parse() - Read "host[:port]".
 * @text: NUL-terminated; blank space around it is skipped.
 * @port: port if the text has none; 0 makes one mandatory.
 * @ret_server: host and port; untouched on failure.
 * @why: text of the error, with its NUL; untouched on success.
 * @why_bytes: size of @why.
 *
 * Return: 0, or -EINVAL.
 */
int kru_host_port_parse(const char *text, __u16 port, struct kru_server *ret_server, char *why,
			size_t why_bytes);

/**
 * kru_servers_parse() - Read a list of MetaServers.
 * @text: NUL-terminated; empty gives an empty list.
 * @ret_servers: the list; untouched on failure.
 * @why: text of the error, with its NUL; untouched on success.
 * @why_bytes: size of @why.
 *
 * Return: 0, or -EINVAL: an entry is not of the form, appears twice, there are
 * more than KRU_SERVERS_MAX, or a SRV name is not alone.
 */
int kru_servers_parse(const char *text, struct kru_servers *ret_servers, char *why,
		      size_t why_bytes);

/**
 * kru_list_next() - Walk over a comma-separated list.
 * @cursor: set to the text before the first call.
 * @item: the next entry without the space around it, NUL-terminated.
 * @item_bytes: size of @item.
 *
 * Return: 1 with an entry, which may be empty; 0 at the end; -E2BIG if the
 * entry does not fit, and @cursor is past it.
 */
int kru_list_next(const char **cursor, char *item, size_t item_bytes);

/**
 * kru_servers_resolve() - Find the addresses of a list.
 * @servers: the list.
 * @timeout_ms: bound of the whole call; numeric addresses are never waited for.
 * @ret_endpoints: room for KRU_ENDPOINTS_MAX; sorted by priority, then in the
 *	order of the list, for SRV in the random order by weight of RFC 2782.
 *
 * Names are asked for at the same time.
 *
 * Context: any thread; waits up to @timeout_ms.
 * Return: number of addresses, if at least one was found, else
 * * %-ENOENT - the list is empty, or no name exists.
 * * %-ETIMEDOUT - no name server answered in time.
 * * %-EAGAIN - a name server failed for now.
 * * %-ENOMEM - no memory or file descriptor.
 * * %-EIO - the configuration of the resolver cannot be used.
 */
int kru_servers_resolve(const struct kru_servers *servers, unsigned int timeout_ms,
			struct kru_endpoint *ret_endpoints);

/**
 * kru_servers_srv() - Ask for the SRV records of a list that is a SRV name.
 * @servers: the list.
 * @timeout_ms: bound of the call.
 * @ret_servers: the servers, as kru_servers_order() leaves them; untouched on failure.
 *
 * Context: any thread; waits up to @timeout_ms.
 * Return: 0 with at least one server, or as kru_srv_decode() and kru_servers_resolve().
 */
int kru_servers_srv(const struct kru_servers *servers, unsigned int timeout_ms,
		    struct kru_servers *ret_servers);

/**
 * kru_servers_order() - Sort by priority.
 * @servers: list, or answer of a name server.
 *
 * Equals stay in the order of the list; those of SRV get the random order by weight of
 * RFC 2782.
 */
void kru_servers_order(struct kru_servers *servers);

/**
 * kru_srv_decode() - Take the SRV records out of a DNS answer.
 * @answer: bytes from the network; any bytes.
 * @bytes: how many.
 * @ret_servers: filled with up to KRU_SERVERS_MAX records; untouched on failure.
 *
 * Return: 0 with at least one record, or
 * * %-ENOENT - the name does not exist, has no SRV record, or offers no service
 *   (a target of ".").
 * * %-EAGAIN - the name server says that it failed.
 * * %-EBADMSG - not a DNS answer, or a broken one.
 */
int kru_srv_decode(const __u8 *answer, size_t bytes, struct kru_servers *ret_servers);

/**
 * kru_sockaddr_format() - Write a socket address.
 * @addr: AF_INET or AF_INET6.
 * @buf: at least KRU_ADDR_TEXT bytes.
 *
 * Return: @buf: "a.b.c.d:port" or "[v6]:port"; "?" for another family.
 */
char *kru_sockaddr_format(const struct sockaddr *addr, char *buf);

#endif /* KRU_ADDR_H */
