// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Framing of the control socket, and the client's end: see ctl.h. Sockets are
 * non-blocking; every wait is a poll() with what is left of the deadline.
 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/ctl.h"

/**
 * struct kru_ctl - A connection.
 * @fd: its socket.
 * @timeout_ms: bound of a request.
 * @lines: what was received.
 * @error: text of the last failure.
 */
struct kru_ctl {
	int fd;
	unsigned int timeout_ms;
	struct kru_lines lines;
	char error[512];
};

int kru_lines_init(struct kru_lines *lines, size_t bytes_max)
{
	char *buf = malloc(bytes_max);

	if (!buf)
		return -ENOMEM;
	*lines = (struct kru_lines){ .buf = buf, .bytes_max = bytes_max };
	return 0;
}

void kru_lines_done(struct kru_lines *lines)
{
	free(lines->buf);
	*lines = (struct kru_lines){ 0 };
}

int kru_lines_fill(struct kru_lines *lines, int fd)
{
	ssize_t got;

	if (lines->begin) {
		memmove(lines->buf, lines->buf + lines->begin, lines->end - lines->begin);
		lines->end -= lines->begin;
		lines->seen -= lines->begin;
		lines->begin = 0;
	}
	if (lines->end == lines->bytes_max)
		return -EMSGSIZE;
	do {
		got = recv(fd, lines->buf + lines->end, lines->bytes_max - lines->end,
			   MSG_DONTWAIT);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return errno == EWOULDBLOCK ? -EAGAIN : -errno;
	lines->end += (size_t)got;
	return (int)got;
}

int kru_lines_next(struct kru_lines *lines, const char **ret_line, size_t *ret_bytes)
{
	char *newline = memchr(lines->buf + lines->seen, '\n', lines->end - lines->seen);

	if (!newline) {
		lines->seen = lines->end;
		return 0;
	}
	*ret_line = lines->buf + lines->begin;
	*ret_bytes = (size_t)(newline - *ret_line);
	lines->begin = (size_t)(newline - lines->buf) + 1;
	lines->seen = lines->begin;
	return 1;
}

static int64_t kru_ctl_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* @deadline_ms of -1 is never. */
static int kru_ctl_wait(int fd, short events, int64_t deadline_ms)
{
	struct pollfd pfd = { .fd = fd, .events = events };
	int64_t left = -1;
	int got;

	do {
		if (deadline_ms >= 0) {
			left = deadline_ms - kru_ctl_now_ms();
			if (left < 0)
				left = 0;
		}
		got = poll(&pfd, 1, left > INT32_MAX ? INT32_MAX : (int)left);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	return got ? 0 : -ETIMEDOUT;
}

__attribute__((format(printf, 3, 4))) static int kru_ctl_fail(struct kru_ctl *ctl, int err,
							      const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(ctl->error, sizeof(ctl->error), fmt, ap);
	va_end(ap);
	return err;
}

static int kru_ctl_connect(int fd, const char *path, int64_t deadline_ms)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct timespec pause = { .tv_nsec = 20000000 };

	if ((size_t)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path) >=
	    sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	/* With a full backlog, connect() to a UNIX socket gives EAGAIN; poll() cannot wait. */
	while (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0) {
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		if (kru_ctl_now_ms() >= deadline_ms)
			return -ETIMEDOUT;
		nanosleep(&pause, NULL);
	}
	return 0;
}

int kru_ctl_open(const char *path, unsigned int timeout_ms, struct kru_ctl **ret_ctl)
{
	struct kru_ctl *ctl;
	int err;

	ctl = calloc(1, sizeof(*ctl));
	if (!ctl)
		return -ENOMEM;
	ctl->timeout_ms = timeout_ms;
	ctl->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (ctl->fd < 0) {
		err = -errno;
		goto err_free;
	}
	err = kru_lines_init(&ctl->lines, KRU_CTL_REPLY_BYTES);
	if (err)
		goto err_close;
	err = kru_ctl_connect(ctl->fd, path, kru_ctl_now_ms() + timeout_ms);
	if (err)
		goto err_lines;
	*ret_ctl = ctl;
	return 0;

err_lines:
	kru_lines_done(&ctl->lines);
err_close:
	close(ctl->fd);
err_free:
	free(ctl);
	return err;
}

void kru_ctl_close(struct kru_ctl *ctl)
{
	if (!ctl)
		return;
	kru_lines_done(&ctl->lines);
	close(ctl->fd);
	free(ctl);
}

int kru_ctl_fd(const struct kru_ctl *ctl)
{
	return ctl->fd;
}

const char *kru_ctl_error(const struct kru_ctl *ctl)
{
	return ctl->error;
}

static int kru_ctl_send(struct kru_ctl *ctl, const char *text, size_t bytes, int64_t deadline_ms)
{
	while (bytes) {
		ssize_t sent = send(ctl->fd, text, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
		int err;

		if (sent >= 0) {
			text += sent;
			bytes -= (size_t)sent;
			continue;
		}
		if (errno == EINTR)
			continue;
		err = errno == EAGAIN ? kru_ctl_wait(ctl->fd, POLLOUT, deadline_ms) : -errno;
		/* The daemon may have sent the reason before it closed: read it. */
		if (err == -EPIPE)
			return 0;
		if (err)
			return kru_ctl_fail(ctl, err, "send: %s", strerror(-err));
	}
	return 0;
}

static int kru_ctl_receive(struct kru_ctl *ctl, int64_t deadline_ms, json_t **ret_object)
{
	json_error_t why;
	const char *line;
	json_t *object;
	size_t bytes;
	int err;

	while (!kru_lines_next(&ctl->lines, &line, &bytes)) {
		err = kru_lines_fill(&ctl->lines, ctl->fd);
		if (err > 0)
			continue;
		if (err == -EAGAIN)
			err = kru_ctl_wait(ctl->fd, POLLIN, deadline_ms);
		else if (!err)
			err = -ECONNRESET;
		if (err)
			return kru_ctl_fail(ctl, err, "%s",
					    err == -ECONNRESET ? "the daemon closed the connection"
							       : strerror(-err));
	}
	object = json_loadb(line, bytes, JSON_REJECT_DUPLICATES, &why);
	if (!json_is_object(object)) {
		json_decref(object);
		return kru_ctl_fail(ctl, -EPROTO, "the reply is not a JSON object");
	}
	*ret_object = object;
	return 0;
}

int kru_ctl_read(struct kru_ctl *ctl, int timeout_ms, json_t **ret_object)
{
	return kru_ctl_receive(ctl, timeout_ms < 0 ? -1 : kru_ctl_now_ms() + timeout_ms,
			       ret_object);
}

static int kru_ctl_request(struct kru_ctl *ctl, const char *command, json_t *args,
			   int64_t deadline_ms)
{
	json_t *request = json_pack("{s:s}", "command", command);
	char *text = NULL;
	size_t bytes;
	int err = -ENOMEM;

	if (request && (!args || !json_object_set(request, "args", args)))
		text = json_dumps(request, JSON_COMPACT);
	json_decref(request);
	if (!text)
		return kru_ctl_fail(ctl, err, "no memory");
	bytes = strlen(text);
	text[bytes] = '\n'; /* in place of the NUL: the length goes along */
	if (bytes + 1 > KRU_CTL_REQUEST_BYTES)
		err = kru_ctl_fail(ctl, -EMSGSIZE, "the request is too long");
	else
		err = kru_ctl_send(ctl, text, bytes + 1, deadline_ms);
	free(text);
	return err;
}

int kru_ctl_call(struct kru_ctl *ctl, const char *command, json_t *args, json_t **ret_reply)
{
	int64_t deadline_ms = kru_ctl_now_ms() + ctl->timeout_ms;
	const char *error = "refused without a reason";
	int ok = 0, err;
	json_int_t code = -EPROTO;
	json_t *reply = NULL;

	err = kru_ctl_request(ctl, command, args, deadline_ms);
	if (!err)
		err = kru_ctl_receive(ctl, deadline_ms, &reply);
	if (err)
		return err;
	if (json_unpack(reply, "{s:b}", "ok", &ok))
		err = kru_ctl_fail(ctl, -EPROTO, "the reply does not say whether it is ok");
	if (!err && !ok) {
		json_unpack(reply, "{s?s, s?I}", "error", &error, "code", &code);
		err = code < 0 && code > -4096 ? (int)code : -EPROTO;
		kru_ctl_fail(ctl, err, "%s", error);
	}
	if (err)
		json_decref(reply);
	else
		*ret_reply = reply;
	return err;
}

int kru_ctl_each(struct kru_ctl *ctl, const char *command, json_t *args,
		 bool (*fn)(void *arg, json_t *item), void *arg)
{
	json_t *own = args ? json_copy(args) : json_object();
	json_t *reply, *item, *next;
	bool more = true;
	size_t i;
	int err = 0;

	if (!own)
		return kru_ctl_fail(ctl, -ENOMEM, "no memory");
	while (more && !err) {
		err = kru_ctl_call(ctl, command, json_object_size(own) ? own : NULL, &reply);
		if (err)
			break;
		json_array_foreach(json_object_get(reply, "result"), i, item)
		{
			if (more && !fn(arg, item))
				more = false;
		}
		next = json_object_get(reply, "next");
		if (!json_is_integer(next))
			more = false;
		else if (json_object_set(own, "from", next))
			err = kru_ctl_fail(ctl, -ENOMEM, "no memory");
		json_decref(reply);
	}
	json_decref(own);
	return err;
}
