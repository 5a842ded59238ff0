/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A caller's connection to one function. One thread.
 */
#ifndef KH_LINK_H
#define KH_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "handoff/lib/words.h"

/**
 * struct kh_link - A function as its caller sees it.
 * @node: runner, ADDRESS[:PORT] or NAME[:PORT].
 * @function: its name.
 * @timeout_ms: how long to wait for an answer.
 * @fd: connection; -1 if the function does not run.
 * @why: text of the last error.
 * @buf: received.
 * @len: how much.
 */
struct kh_link {
	const char *node;
	const char *function;
	uint32_t timeout_ms;
	int fd;
	char why[KH_LINE_BYTES + 128];
	char buf[KH_LINE_BYTES];
	size_t len;
};

/**
 * kh_link_tell() - Tell a function something; it is started if it does not run.
 * @link: function.
 * @command: what.
 *
 * Return: 0, or -EIO after setting @link->why.
 */
int kh_link_tell(struct kh_link *link, const struct kh_command *command);

/**
 * kh_link_hear() - Wait for an answer of a certain kind.
 * @link: function.
 * @kind: kind; a KH_LAPSED before it is skipped.
 * @ret_reply: filled.
 *
 * Return: 0, or -EIO after setting @link->why: it failed, ended, or did not answer in time.
 */
int kh_link_hear(struct kh_link *link, enum kh_kind kind, struct kh_reply *ret_reply);

/** kh_link_close() - Let a function end. @link: function. */
void kh_link_close(struct kh_link *link);

#endif /* KH_LINK_H */
