// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A connection to a store over TCP: see tcp.h.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/keys.h"
#include "bench/link.h"
#include "bench/tcp.h"

void bn_tcp_fail(const struct bn_tcp *t, const char *what)
{
	fprintf(stderr, "%s: %s\n", t->host, what);
	exit(1);
}

unsigned int bn_tcp_record(uint64_t nr, char *key, char *value)
{
	memset(value, 'v', BN_TCP_VALUE_BYTES);
	bn_key_text(nr, value);
	return bn_key_text(nr, key);
}

void bn_tcp_send(struct bn_tcp *t, const void *data, size_t bytes)
{
	const uint8_t *at = data;

	while (bytes) {
		ssize_t sent = send(t->fd, at, bytes, MSG_NOSIGNAL);

		if (sent < 0)
			bn_die("send");
		at += sent;
		bytes -= (size_t)sent;
	}
}

const uint8_t *bn_tcp_need(struct bn_tcp *t, size_t bytes)
{
	ssize_t got;

	if (bytes > sizeof(t->buf))
		bn_tcp_fail(t, "reply too long");
	if (t->begin + bytes > sizeof(t->buf)) {
		memmove(t->buf, t->buf + t->begin, t->end - t->begin);
		t->end -= t->begin;
		t->begin = 0;
	}
	while (t->end - t->begin < bytes) {
		got = recv(t->fd, t->buf + t->end, sizeof(t->buf) - t->end, 0);
		if (got < 0)
			bn_die("recv");
		if (!got)
			bn_tcp_fail(t, "connection closed");
		t->end += (size_t)got;
	}
	return t->buf + t->begin;
}

void bn_tcp_used(struct bn_tcp *t, size_t bytes)
{
	t->begin += bytes;
	if (t->begin == t->end)
		t->begin = t->end = 0;
}

void bn_tcp_open(struct bn_tcp *t, const char *host, const char *port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
	int one = 1;

	if (getaddrinfo(host, port, &hints, &found)) {
		fprintf(stderr, "%s: no such host\n", host);
		exit(1);
	}
	t->host = host;
	t->fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (t->fd < 0 || connect(t->fd, found->ai_addr, found->ai_addrlen))
		bn_die(host);
	if (setsockopt(t->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		bn_die("TCP_NODELAY");
	freeaddrinfo(found);
}

void bn_tcp_close(struct bn_tcp *t)
{
	close(t->fd);
	t->fd = -1;
}
