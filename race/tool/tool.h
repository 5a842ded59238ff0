/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The parts of krcore-race. One thread.
 */
#ifndef KT_TOOL_H
#define KT_TOOL_H

#include <stdbool.h>
#include <stdint.h>

#include <krcore/race.h>

#include "common/command.h"

/* exit status */
#define KT_FAILED 1
#define KT_USAGE KRU_USAGE
#define KT_NOT_THERE 3 /* the key is not there, or (insert) is there */

/**
 * struct kt_args - The command line.
 * @service: of the table.
 * @port: RDMA port of this node, 0 for the first.
 * @memory_mib: serve.
 * @groups: serve, 0 for the default.
 * @depth: serve, 0 for the default.
 * @lease_ms: serve, 0 for the default.
 * @reclaim: check.
 * @verbose: say what it took.
 * @argc: arguments behind the command.
 * @argv: they.
 */
struct kt_args {
	uint16_t service;
	uint32_t port, memory_mib, groups, depth, lease_ms;
	bool reclaim, verbose;
	int argc;
	char **argv;
};

/** kt_fail() - Say what failed. @what: what. @err: negative errno. Return: exit status. */
int kt_fail(const char *what, int err);

/**
 * kt_fail_to_begin() - The same of serving or attaching, with the reason that libkrcore has: a limit,
 * a file, a name.
 * @what: what.
 * @err: negative errno.
 *
 * Return: KT_FAILED.
 */
int kt_fail_to_begin(const char *what, int err);

/** kt_serve() - A command. @args: command line. Return: exit status. */
int kt_serve(struct kt_args *args);

/** kt_get() - A command. @args: command line. Return: exit status. */
int kt_get(struct kt_args *args);

/** kt_put() - A command. @args: command line. Return: exit status. */
int kt_put(struct kt_args *args);

/** kt_insert() - A command. @args: command line. Return: exit status. */
int kt_insert(struct kt_args *args);

/** kt_update() - A command. @args: command line. Return: exit status. */
int kt_update(struct kt_args *args);

/** kt_del() - A command. @args: command line. Return: exit status. */
int kt_del(struct kt_args *args);

/** kt_scan() - A command. @args: command line. Return: exit status. */
int kt_scan(struct kt_args *args);

/** kt_load() - A command. @args: command line. Return: exit status. */
int kt_load(struct kt_args *args);

/** kt_check() - A command. @args: command line. Return: exit status. */
int kt_check(struct kt_args *args);

/**
 * kt_escape() - Print bytes as text that no terminal obeys.
 * @bytes: they.
 * @nr: how many.
 *
 * \\ stands for a backslash, \t and \n for tab and newline, and \xHH for each byte of another
 * control character (those of U+0080 to U+009F as well) and for what is not UTF-8.
 */
void kt_escape(const void *bytes, size_t nr);

/**
 * kt_unescape() - Undo kt_escape(), in place.
 * @text: text.
 * @nr: its length.
 *
 * Return: length of the bytes, or -1 if it is not what kt_escape() prints.
 */
long kt_unescape(char *text, size_t nr);

#endif /* KT_TOOL_H */
