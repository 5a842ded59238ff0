/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * GIDs and record names as text.
 *
 * A GID is written as an IPv6 address, as ibv_devinfo prints it
 * (fe80:0000:...), or as an IPv4 address, which means the IPv4-mapped GID that
 * a RoCE v2 port has for it (::ffff:a.b.c.d). No state: any thread.
 */
#ifndef KRU_GID_H
#define KRU_GID_H

#include <stdbool.h>

#include "proto/krp_table.h"

#define KRU_GID_TEXT 46 /* longest text of a GID, with its NUL */

/**
 * kru_gid_parse() - Read a GID.
 * @text: NUL-terminated.
 * @ret_gid: KRP_GID_BYTES; untouched on failure.
 *
 * Return: 0, or -EINVAL if @text is neither form.
 */
int kru_gid_parse(const char *text, __u8 *ret_gid);

/**
 * kru_v4_is_broken() - Whether a text looks like an IPv4 address but is none of four numbers.
 * @text: NUL-terminated.
 *
 * The C library takes "1.2.3" for 1.2.0.3 and "0x7f" for 0.0.0.127. That is never
 * meant, and no host name has digits alone in its last label.
 *
 * Return: true if it is to be refused rather than looked up as a host name.
 */
bool kru_v4_is_broken(const char *text);

/**
 * kru_gid_format() - Write a GID.
 * @gid: KRP_GID_BYTES.
 * @buf: at least KRU_GID_TEXT bytes.
 *
 * Return: @buf; a dotted IPv4 address if the GID is IPv4-mapped.
 */
char *kru_gid_format(const __u8 *gid, char *buf);

#endif /* KRU_GID_H */
