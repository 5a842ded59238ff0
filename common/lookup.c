// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Queries to the name service without blocking: see lookup.h. */
#include <ares.h>
#include <arpa/nameser.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/lookup.h"

#define KRU_LOOKUP_TRIES 3
#define KRU_LOOKUP_TRY_MIN_MS 100
#define KRU_LOOKUP_EVENTS 8

static const char *kru_name_servers;

/**
 * struct kru_lookup - A query in progress.
 * @channel: c-ares, for this query alone.
 * @epoll_fd: its sockets.
 * @done: the rest is valid.
 * @err: 0 or negative errno.
 * @addrs: answer about a host.
 * @servers: answer about a SRV name.
 */
struct kru_lookup {
	ares_channel channel;
	int epoll_fd;
	bool done;
	int err;
	struct kru_host_addrs addrs;
	struct kru_servers servers;
};

void kru_lookup_ask_others(const char *name_servers)
{
	kru_name_servers = name_servers;
}

static int kru_ares_errno(int status)
{
	switch (status) {
	case ARES_SUCCESS:
		return 0;
	case ARES_ENODATA:
	case ARES_ENOTFOUND:
	case ARES_EBADNAME:
		return -ENOENT;
	case ARES_ETIMEOUT:
		return -ETIMEDOUT;
	case ARES_ENOMEM:
		return -ENOMEM;
	case ARES_EBADRESP:
		return -EBADMSG;
	default:
		return -EAGAIN;
	}
}

static void kru_lookup_on_socket(void *arg, ares_socket_t fd, int readable, int writable)
{
	struct epoll_event event = { .data.fd = fd };
	const struct kru_lookup *l = arg;

	event.events = (readable ? EPOLLIN : 0U) | (writable ? EPOLLOUT : 0U);
	if (!event.events)
		epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	else if (epoll_ctl(l->epoll_fd, EPOLL_CTL_MOD, fd, &event) < 0)
		/* if that fails, too, the time-outs of c-ares end the query */
		epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static void kru_lookup_on_addrs(void *arg, int status, int timeouts, struct ares_addrinfo *info)
{
	const struct ares_addrinfo_node *node;
	struct kru_lookup *l = arg;

	(void)timeouts;
	for (node = info ? info->nodes : NULL; node; node = node->ai_next) {
		if (l->addrs.nr == KRU_ADDRS_PER_HOST ||
		    node->ai_addrlen > sizeof(l->addrs.addr[0]))
			continue;
		memcpy(&l->addrs.addr[l->addrs.nr], node->ai_addr, node->ai_addrlen);
		l->addrs.addr_bytes[l->addrs.nr++] = node->ai_addrlen;
	}
	ares_freeaddrinfo(info);
	l->err = kru_ares_errno(status);
	if (!l->err && !l->addrs.nr)
		l->err = -ENOENT;
	l->done = true;
}

static void kru_lookup_on_srv(void *arg, int status, int timeouts, unsigned char *answer, int bytes)
{
	struct kru_lookup *l = arg;

	(void)timeouts;
	l->err = kru_ares_errno(status);
	if (!l->err)
		l->err = kru_srv_decode(answer, (size_t)bytes, &l->servers);
	l->done = true;
}

static int kru_lookup_channel(struct kru_lookup *l, unsigned int timeout_ms)
{
	struct ares_options options = { .sock_state_cb = kru_lookup_on_socket,
					.sock_state_cb_data = l,
					.tries = KRU_LOOKUP_TRIES };
	int status;

	/* each try is given twice the time of the one before */
	options.timeout = (int)(timeout_ms / ((1U << KRU_LOOKUP_TRIES) - 1));
	if (options.timeout < KRU_LOOKUP_TRY_MIN_MS)
		options.timeout = KRU_LOOKUP_TRY_MIN_MS;
	status = ares_init_options(&l->channel, &options,
				   ARES_OPT_SOCK_STATE_CB | ARES_OPT_TRIES | ARES_OPT_TIMEOUTMS);
	if (status == ARES_SUCCESS && kru_name_servers) {
		status = ares_set_servers_ports_csv(l->channel, kru_name_servers);
		if (status != ARES_SUCCESS)
			ares_destroy(l->channel);
	}
	if (status == ARES_SUCCESS)
		return 0;
	return status == ARES_ENOMEM ? -ENOMEM : -EIO;
}

int kru_lookup_start(const char *name, bool srv, unsigned int timeout_ms,
		     struct kru_lookup **ret_lookup)
{
	/* every address once; c-ares has one list for each type of socket else */
	struct ares_addrinfo_hints hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct kru_lookup *l;
	int err;

	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	err = l->epoll_fd < 0 ? -ENOMEM : kru_lookup_channel(l, timeout_ms);
	if (err) {
		if (l->epoll_fd >= 0)
			close(l->epoll_fd);
		free(l);
		return err;
	}
	if (srv)
		ares_query(l->channel, name, ns_c_in, ns_t_srv, kru_lookup_on_srv, l);
	else
		ares_getaddrinfo(l->channel, name, NULL, &hints, kru_lookup_on_addrs, l);
	*ret_lookup = l;
	return 0;
}

int kru_lookup_fd(const struct kru_lookup *l)
{
	return l->epoll_fd;
}

int kru_lookup_wait_ms(struct kru_lookup *l, int most_ms)
{
	struct timeval most = { .tv_sec = most_ms / 1000, .tv_usec = most_ms % 1000 * 1000 };
	struct timeval room;
	const struct timeval *next;

	if (l->done)
		return 0;
	next = ares_timeout(l->channel, &most, &room);
	/* rounded up: a call just before the time-out would be useless */
	return (int)(next->tv_sec * 1000 + (next->tv_usec + 999) / 1000);
}

bool kru_lookup_done(struct kru_lookup *l)
{
	struct epoll_event events[KRU_LOOKUP_EVENTS];
	int i, nr;

	if (l->done)
		return true;
	nr = epoll_wait(l->epoll_fd, events, KRU_LOOKUP_EVENTS, 0);
	for (i = 0; i < nr && !l->done; i++)
		ares_process_fd(l->channel,
				events[i].events & ~(unsigned int)EPOLLOUT ? events[i].data.fd
									   : ARES_SOCKET_BAD,
				events[i].events & EPOLLOUT ? events[i].data.fd : ARES_SOCKET_BAD);
	if (!l->done) /* what has timed out */
		ares_process_fd(l->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	return l->done;
}

int kru_lookup_addrs(const struct kru_lookup *l, struct kru_host_addrs *ret_addrs)
{
	if (!l->err)
		*ret_addrs = l->addrs;
	return l->err;
}

int kru_lookup_servers(const struct kru_lookup *l, struct kru_servers *ret_servers)
{
	if (!l->err)
		*ret_servers = l->servers;
	return l->err;
}

void kru_lookup_drop(struct kru_lookup *l)
{
	if (!l)
		return;
	ares_destroy(l->channel); /* calls back if the query is not done */
	close(l->epoll_fd);
	free(l);
}
