/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the examples of queues share: say what failed, publish a region and find
 * one. One thread.
 */
#ifndef EX_EXAMPLE_H
#define EX_EXAMPLE_H

#include <stdint.h>

#include <krcore/queue.h>

/**
 * ex_usage() - Handle --help and a wrong command line.
 * @argc: as main() has it.
 * @argv: as main() has it.
 * @least: arguments there must be at least.
 * @text: usage, each line ended.
 *
 * To be called first. Does not return if --help is among the arguments, or there are too few.
 */
void ex_usage(int argc, char **argv, int least, const char *text);

/** ex_fail() - Print "program: @what: the library's words". @what: what failed. Return: 1. */
int ex_fail(const char *what);

/** ex_number() - A number from @min to @max, or the program ends. @text, @name: to be said. */
uint64_t ex_number(const char *text, uint64_t min, uint64_t max, const char *name);

/**
 * ex_serve() - Publish a region under this node's GID until SIGINT or SIGTERM.
 * @node: node.
 * @mr: region.
 * @service: service of the record.
 * @each: called once every 100 ms meanwhile, or NULL.
 * @arg: its argument.
 *
 * Return: 0, or 1 after an error has been printed.
 */
int ex_serve(struct krcore_node *node, const struct krcore_mr *mr, uint16_t service,
	     void (*each)(void *arg), void *arg);

/**
 * ex_find() - Look a published region up.
 * @ctx: context of libkrcore.
 * @peer: its owner, as text.
 * @service: service of the record.
 * @ret_node: key of the owner's node, for krcore_queue_connect().
 * @ret_ref: the region.
 *
 * Return: 0 or negative errno; see krcore_error_text().
 */
int ex_find(struct krcore_ctx *ctx, const char *peer, uint16_t service, struct krcore_key *ret_node,
	    struct krcore_region_ref *ret_ref);

#endif /* EX_EXAMPLE_H */
