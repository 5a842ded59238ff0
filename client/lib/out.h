/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: structures of the caller that grow from version to version, those that the library fills
 * and options: the rule stands at the top of krcore.h.
 *
 * Each begins with size_t size. A function checks the structures that it is given before it
 * does anything, and fills them from its own ones at its end.
 */
#ifndef KRL_OUT_H
#define KRL_OUT_H

#include <stddef.h>

#define KRL_OUT_MAX 4096 /* bytes; more is no size, but memory that was never set */

/* Bytes of a structure up to its field @last, with it. */
#define KRL_OUT_FIRST(type, last) (offsetof(type, last) + sizeof(((type *)0)->last))

#pragma GCC visibility push(default)

/**
 * krl_out_check() - Whether a structure that is to be filled has a valid size.
 * @out: the structure, or NULL if the caller wants none.
 * @first: size that it had in the first version (KRL_OUT_FIRST).
 * @name: its name, for the error text.
 *
 * Return: 0, or -EINVAL with an error text.
 */
int krl_out_check(const void *out, size_t first, const char *name);

/**
 * krl_out_fill() - Fill a structure whose size krl_out_check() has found valid.
 * @out: the structure, or NULL; its size stays as it is.
 * @from: what it is filled from, the library's own.
 * @known: size of @from.
 */
void krl_out_fill(void *out, const void *from, size_t known);

/**
 * krl_options_take() - Copy options of a caller that may know fewer of them.
 * @opts: options, which begin with their size; or NULL: the defaults of all.
 * @all: out: the library's own, whose size is set and whose other fields are zero; those that
 *	@opts has are copied, all others stay.
 * @known: size of @all.
 *
 * Return: 0, or -EINVAL with an error text: a size that no version up to this one has. Then @all
 * is unchanged.
 */
int krl_options_take(const void *opts, void *all, size_t known);

#pragma GCC visibility pop

/* The checks of each structure, with what was its last field in the first version. */
#define KRL_LOOKUP_INFO_CHECK(out) \
	krl_out_check(out, KRL_OUT_FIRST(struct krcore_lookup_info, settling), "krcore_lookup_info")
#define KRL_SERVER_INFO_CHECK(out) \
	krl_out_check(out, KRL_OUT_FIRST(struct krcore_server_info, settling_ms), \
		      "krcore_server_info")
#define KRL_STATS_CHECK(out) \
	krl_out_check(out, KRL_OUT_FIRST(struct krcore_stats, notifications), "krcore_stats")
#define KRL_CHECK_CHECK(out) \
	krl_out_check(out, KRL_OUT_FIRST(struct krcore_check, bytes), "krcore_check")
#define KRL_NODE_INFO_CHECK(out) \
	krl_out_check(out, KRL_OUT_FIRST(struct krcore_node_info, rsvd), "krcore_node_info")
#define KRL_PORT_INFO_CHECK(out) \
	krl_out_check(out, KRL_OUT_FIRST(struct krcore_port_info, rsvd), "krcore_port_info")
#define KRL_CONNECT_INFO_CHECK(out) \
	krl_out_check(out, KRL_OUT_FIRST(struct krcore_connect_info, rsvd), "krcore_connect_info")
#define KRL_QUEUE_INFO_CHECK(out) \
	krl_out_check(out, KRL_OUT_FIRST(struct krcore_queue_info, completed), "krcore_queue_info")
#define KRL_CONNECTION_INFO_CHECK(out) \
	krl_out_check(out, KRL_OUT_FIRST(struct krcore_connection_info, rsvd), \
		      "krcore_connection_info")
#define KRL_STARTED_CHECK(out) \
	krl_out_check(out, KRL_OUT_FIRST(struct krcore_started, error), "krcore_started")

#endif /* KRL_OUT_H */
