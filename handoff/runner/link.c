// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A caller's connection to one function: see link.h.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "handoff/lib/function.h"
#include "handoff/runner/link.h"
#include "handoff/runner/runner.h"

#define KH_NS_PER_MS 1000000ULL
#define KH_ADDRESSES_MAX 8 /* of a name that are tried */

int kh_address(const char *text, char *ret_host, char *ret_port)
{
	size_t len = strlen(text), host = len;
	const char *colon = strrchr(text, ':'), *port = KH_PORT;

	if (*text == '[') {
		const char *end = strchr(text, ']');

		if (!end || (end[1] && end[1] != ':'))
			return -EINVAL;
		text++;
		host = (size_t)(end - text);
		port = end[1] ? end + 2 : KH_PORT;
	} else if (colon && colon == strchr(text, ':')) { /* several: an IPv6 address */
		host = (size_t)(colon - text);
		port = colon + 1;
	}
	len = strlen(port);
	if (!host || host >= 64 || !len || len > 5 || strspn(port, "0123456789") != len ||
	    !strtoul(port, NULL, 10) || strtoul(port, NULL, 10) > 65535)
		return -EINVAL;
	memcpy(ret_host, text, host);
	ret_host[host] = '\0';
	memcpy(ret_port, port, len + 1);
	return 0;
}

static int kh_link_fail(struct kh_link *link, const char *what, const char *more)
{
	snprintf(link->why, sizeof(link->why), "%s%s%s", what, *more ? ": " : "", more);
	return -EIO;
}

/* Wait for an event on a connection. Return: 0, or an errno: ETIMEDOUT if there was none. */
static int kh_link_wait(const struct kh_link *link, short events, uint64_t deadline)
{
	struct pollfd one = { .fd = link->fd, .events = events };
	uint64_t now;
	int ready;

	do {
		now = kh_now();
		if (now >= deadline)
			return ETIMEDOUT;
		ready = poll(&one, 1, (int)((deadline - now) / KH_NS_PER_MS) + 1);
	} while (ready < 0 && errno == EINTR);
	if (ready < 0)
		return errno;
	return ready ? 0 : ETIMEDOUT;
}

/* The connection waits for nothing by itself, since TCP waits longer than we may. Return: errno. */
static int kh_link_reach(const struct kh_link *link, const struct addrinfo *to, uint64_t deadline)
{
	int err = 0;
	socklen_t len = sizeof(err);

	if (!connect(link->fd, to->ai_addr, to->ai_addrlen))
		return 0;
	if (errno != EINPROGRESS)
		return errno;
	err = kh_link_wait(link, POLLOUT, deadline);
	if (!err && getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &err, &len))
		return errno;
	return err;
}

/* Return: errno. */
static int kh_link_try(struct kh_link *link, const struct addrinfo *to, uint64_t deadline)
{
	int on = 1, err = 0;

	link->fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	err = link->fd < 0 ? errno : kh_link_reach(link, to, deadline);
	if (!err) {
		setsockopt(link->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		setsockopt(link->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
		return 0;
	}
	kh_link_close(link);
	return err;
}

/*
 * One address after the other, until a runner is there. All together take no longer than one
 * alone may: each has an equal part of the time that is left.
 */
static int kh_link_connect(struct kh_link *link, const struct addrinfo *all)
{
	uint64_t now = kh_now(), end = now + link->timeout_ms * KH_NS_PER_MS;
	const struct addrinfo *to;
	unsigned int left = 0;
	int err = 0;

	for (to = all; to && left < KH_ADDRESSES_MAX; to = to->ai_next)
		left++;
	for (to = all; left; to = to->ai_next, left--) {
		now = kh_now();
		err = kh_link_try(link, to, now < end ? now + (end - now) / left : now);
		if (!err)
			return 0;
	}
	return kh_link_fail(link, "connecting to its runner", strerror(err));
}

static int kh_link_open(struct kh_link *link)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
	char host[64], port[8];
	int err;

	link->len = 0;
	if (kh_address(link->node, host, port))
		return kh_link_fail(link, "no address of a runner", "");
	err = getaddrinfo(host, port, &hints, &found);
	if (err)
		return kh_link_fail(link, host, gai_strerror(err));
	err = kh_link_connect(link, found);
	freeaddrinfo(found);
	return err;
}

int kh_link_tell(struct kh_link *link, const struct kh_command *command)
{
	char text[2 * KH_LINE_BYTES];
	int len = 0;

	if (link->fd < 0) {
		if (kh_link_open(link))
			return -EIO;
		len = snprintf(text, sizeof(text), "start %s\n", link->function);
	}
	len += kh_command_format(command, text + len);
	if (send(link->fd, text, (size_t)len, MSG_NOSIGNAL) == len)
		return 0;
	if (errno == EAGAIN)
		return kh_link_fail(link, "the function does not listen", "");
	return kh_link_fail(link, "the function has ended", "");
}

/* More bytes, or -EIO. */
static int kh_link_more(struct kh_link *link, uint64_t deadline)
{
	ssize_t got;
	int err;

	if (link->len == sizeof(link->buf))
		return kh_link_fail(link, "the function says what nobody understands", "");
	err = kh_link_wait(link, POLLIN, deadline);
	if (err)
		return err == ETIMEDOUT ? kh_link_fail(link, "no answer in time", "")
					: kh_link_fail(link, "waiting", strerror(err));
	got = recv(link->fd, link->buf + link->len, sizeof(link->buf) - link->len, 0);
	if (got < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (got <= 0)
		return kh_link_fail(link, "the function has ended", "");
	link->len += (size_t)got;
	return 0;
}

/* The next reply. */
static int kh_link_next(struct kh_link *link, uint64_t deadline, struct kh_reply *ret_reply)
{
	size_t used;
	char *end;
	int err;

	while (!(end = memchr(link->buf, '\n', link->len)))
		if (kh_link_more(link, deadline))
			return -EIO;
	*end = '\0';
	err = kh_reply_parse(link->buf, ret_reply);
	used = (size_t)(end - link->buf) + 1;
	link->len -= used;
	memmove(link->buf, link->buf + used, link->len);
	if (err)
		return kh_link_fail(link, "the function says what nobody understands", "");
	return ret_reply->kind == KH_FAIL ? kh_link_fail(link, ret_reply->text, "") : 0;
}

int kh_link_hear(struct kh_link *link, enum kh_kind kind, struct kh_reply *ret_reply)
{
	uint64_t deadline = kh_now() + link->timeout_ms * KH_NS_PER_MS;

	if (link->fd < 0)
		return kh_link_fail(link, "the function does not run", "");
	for (;;) {
		if (kh_link_next(link, deadline, ret_reply))
			return -EIO;
		if (ret_reply->kind == kind)
			return 0;
		if (ret_reply->kind != KH_LAPSED)
			return kh_link_fail(link, "the function answers something else", "");
	}
}

void kh_link_close(struct kh_link *link)
{
	if (link->fd >= 0)
		close(link->fd);
	link->fd = -1;
}
