/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The commands of the control socket: from the bytes of a request to the bytes
 * of its reply. No sockets here; common/ctl.h has the protocol. Loop thread only.
 */
#ifndef MS_COMMANDS_H
#define MS_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

struct ms_daemon;

/**
 * struct ms_reply - Answer to a request.
 * @text: one line with its '\n', to free(); NULL without memory.
 * @bytes: its length, at most KRU_CTL_REPLY_BYTES.
 * @monitor_records: the connection is to get changes of records from now on.
 * @monitor_sessions: and those of sessions.
 */
struct ms_reply {
	char *text;
	size_t bytes;
	bool monitor_records;
	bool monitor_sessions;
};

/**
 * ms_command_run() - Answer a request.
 * @d: daemon.
 * @request: any bytes, without '\n'.
 * @bytes: how many.
 * @ret_reply: filled.
 */
void ms_command_run(struct ms_daemon *d, const char *request, size_t bytes,
		    struct ms_reply *ret_reply);

/**
 * ms_reply_error() - Make the reply that refuses a request.
 * @code: negative errno.
 * @error: why.
 * @ret_reply: filled.
 */
void ms_reply_error(int code, const char *error, struct ms_reply *ret_reply);

/**
 * ms_json_line() - Write an object as a line.
 * @object: object; its reference is taken. NULL gives NULL.
 * @ret_bytes: length of the line.
 *
 * Return: line with '\n' and without NUL, to free(); NULL without memory.
 */
char *ms_json_line(json_t *object, size_t *ret_bytes);

/** ms_command_name() - Name of a command. @i: index from 0. Return: NULL after the last. */
const char *ms_command_name(unsigned int i);

#endif /* MS_COMMANDS_H */
