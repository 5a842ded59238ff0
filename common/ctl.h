/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The control socket of krcore-metaserver: its protocol, normative, the framing
 * that both ends use, and the client's end.
 *
 * A UNIX stream socket. Each message is one JSON object on a line of its own,
 * UTF-8, ended by '\n'. A request is at most KRU_CTL_REQUEST_BYTES long, a reply
 * KRU_CTL_REPLY_BYTES, both with their '\n'.
 *
 *   request  {"command": NAME, "args": {...}}            "args" may be left out
 *   reply    {"ok": true, "result": [...]}               flat objects
 *            {"ok": true, "result": [...], "next": N}    there is more: ask again
 *                                                        with "from": N
 *            {"ok": false, "error": TEXT, "code": -errno}
 *
 * A connection may send any number of requests; they are answered in order.
 * After `monitor` the server sends one object a line and reads no more.
 * Unknown commands are -EOPNOTSUPP, unknown or ill-typed arguments -EINVAL.
 * The server closes a connection that is idle for 60 s, that does not take its
 * reply for 10 s, or whose line is too long (-EMSGSIZE first). Peers must be
 * root, the daemon's own user, or of its group or group krcore (-EACCES).
 *
 *   command          args                       result
 *   help             -                          command, args, text
 *   status           -                          one object: state, version, pid,
 *                                               incarnation, uptime_ms, status, ...
 *   stats            -                          one object: every counter
 *   metrics          -                          one object: text, Prometheus 0.0.4
 *   sessions         from, count                one object a connection
 *   session_kill     one of id, owner, key      one object: killed, how many were
 *                                               disconnected; key is the id of a cluster
 *                                               key (8 hex digits)
 *   devices          -                          one object a port of a device
 *   listeners        -                          one object a configured address
 *   records          from, count, keys,         one object a record; gid, service,
 *                    gid, service, owner        owner (32 hex digits) filter
 *   record_get       gid, service, keys         one object
 *   record_withdraw  gid, service               nothing
 *   config           -                          key, value, default, origin, ...
 *   reload           -                          changed keys, and those that need
 *                                               a restart
 *   monitor          events: [records,          one object, then the stream
 *                    sessions]; default both
 *
 * `count` bounds a page, 1 to 1000. `from` is a number taken from "next".
 * "keys": true shows DC keys, which are "(hidden)" otherwise. Incarnations and
 * owners are strings of hexadecimal digits, GIDs are strings, other numbers are
 * numbers; units are in the names. Members are only ever added.
 *
 * Threads: one thread at a time for each object.
 */
#ifndef KRU_CTL_H
#define KRU_CTL_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#define KRU_CTL_PATH "/run/krcore/metaserver.sock"
#define KRU_CTL_REQUEST_BYTES (64 << 10)
#define KRU_CTL_REPLY_BYTES (1 << 20)
#define KRU_CTL_PAGE_MAX 1000

/**
 * struct kru_lines - Bytes from a stream, cut into lines of bounded length.
 * @buf: what was read and not yet taken.
 * @bytes_max: longest line with its '\n', and size of @buf.
 * @begin: first byte not taken.
 * @end: end of what was read.
 * @seen: up to here there is no '\n'.
 */
struct kru_lines {
	char *buf;
	size_t bytes_max;
	size_t begin;
	size_t end;
	size_t seen;
};

/**
 * kru_lines_init() - Make an empty buffer.
 * @lines: buffer.
 * @bytes_max: longest line with its '\n'.
 *
 * Return: 0, or -ENOMEM.
 */
int kru_lines_init(struct kru_lines *lines, size_t bytes_max);

/** kru_lines_done() - Free the memory. @lines: buffer, maybe zero. */
void kru_lines_done(struct kru_lines *lines);

/**
 * kru_lines_fill() - Read once from a descriptor.
 * @lines: buffer.
 * @fd: stream socket.
 *
 * Return: bytes read, 0 at the end of the stream, -EAGAIN, -EMSGSIZE if the
 * buffer is full, that is if a line is too long, or what recv() says.
 */
int kru_lines_fill(struct kru_lines *lines, int fd);

/**
 * kru_lines_next() - Take a line.
 * @lines: buffer.
 * @ret_line: the line without '\n', not NUL-terminated, valid until the next
 *	kru_lines_fill(); untouched unless 1 is returned.
 * @ret_bytes: its length.
 *
 * Return: 1 with a line, 0 if there is no whole one.
 */
int kru_lines_next(struct kru_lines *lines, const char **ret_line, size_t *ret_bytes);

struct kru_ctl;

/**
 * kru_ctl_open() - Connect to a daemon.
 * @path: its socket.
 * @timeout_ms: bound for connecting and for each request.
 * @ret_ctl: the connection; untouched on failure.
 *
 * Return: 0, -ENAMETOOLONG, -ENOMEM, -ETIMEDOUT, or what connect() says:
 * -ENOENT and -ECONNREFUSED if no daemon runs, -EACCES if this user may not.
 */
int kru_ctl_open(const char *path, unsigned int timeout_ms, struct kru_ctl **ret_ctl);

/** kru_ctl_close() - Disconnect. @ctl: connection or NULL. */
void kru_ctl_close(struct kru_ctl *ctl);

/** kru_ctl_fd() - For poll(). @ctl: connection. Return: its descriptor. */
int kru_ctl_fd(const struct kru_ctl *ctl);

/** kru_ctl_error() - Text of the last failure. @ctl: connection. Return: text, never NULL. */
const char *kru_ctl_error(const struct kru_ctl *ctl);

/**
 * kru_ctl_call() - Ask and wait for the reply.
 * @ctl: connection.
 * @command: name.
 * @args: object or NULL; borrowed.
 * @ret_reply: the whole reply, to json_decref(); untouched on failure.
 *
 * Return: 0, the negative "code" of a reply that is not ok, -ETIMEDOUT,
 * -ECONNRESET if the daemon closed, -EMSGSIZE, -EPROTO if the reply is no such
 * object, -ENOMEM, or what send() or recv() says. After all but a reply's code
 * the connection is unusable.
 */
int kru_ctl_call(struct kru_ctl *ctl, const char *command, json_t *args, json_t **ret_reply);

/**
 * kru_ctl_each() - Ask for a list, page by page.
 * @ctl: connection.
 * @command: name.
 * @args: object or NULL; borrowed.
 * @fn: called with each object of each result; returns false to stop.
 * @arg: first argument of @fn.
 *
 * Return: 0, or as kru_ctl_call().
 */
int kru_ctl_each(struct kru_ctl *ctl, const char *command, json_t *args,
		 bool (*fn)(void *arg, json_t *item), void *arg);

/**
 * kru_ctl_read() - Wait for the next object of a stream, after `monitor`.
 * @ctl: connection.
 * @timeout_ms: how long, or -1 for ever.
 * @ret_object: to json_decref(); untouched on failure.
 *
 * Return: 0, -ETIMEDOUT (the connection stays good), or as kru_ctl_call().
 */
int kru_ctl_read(struct kru_ctl *ctl, int timeout_ms, json_t **ret_object);

#endif /* KRU_CTL_H */
