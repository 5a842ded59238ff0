// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A caller's connection to one function: see link.h.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "handoff/lib/function.h"
#include "handoff/runner/link.h"
#include "handoff/runner/runner.h"

#define KH_NS_PER_MS 1000000ULL

static int kh_link_fail(struct kh_link *link, const char *what, const char *more)
{
	snprintf(link->why, sizeof(link->why), "%s%s%s", what, *more ? ": " : "", more);
	return -EIO;
}

static int kh_link_connect(struct kh_link *link, const struct addrinfo *to)
{
	int on = 1;

	link->fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (link->fd >= 0 && !connect(link->fd, to->ai_addr, to->ai_addrlen)) {
		setsockopt(link->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		setsockopt(link->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
		return 0;
	}
	kh_link_fail(link, "connecting to its runner", strerror(errno));
	kh_link_close(link);
	return -EIO;
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
	return kh_link_fail(link, "the function has ended", "");
}

/* More bytes, or -EIO. */
static int kh_link_more(struct kh_link *link, uint64_t deadline)
{
	struct pollfd in = { .fd = link->fd, .events = POLLIN };
	uint64_t now = kh_now();
	ssize_t got;

	if (link->len == sizeof(link->buf))
		return kh_link_fail(link, "the function says what nobody understands", "");
	if (now >= deadline || !poll(&in, 1, (int)((deadline - now) / KH_NS_PER_MS) + 1))
		return kh_link_fail(link, "no answer in time", "");
	got = recv(link->fd, link->buf + link->len, sizeof(link->buf) - link->len, 0);
	if (got < 0 && errno == EINTR)
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
