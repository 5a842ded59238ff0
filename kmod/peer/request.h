/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: what a request to a peer has to be like, whoever posts it: a program (user/post.c) or another
 * module of the kernel (api/post.c).
 */
#ifndef KRC_REQUEST_H
#define KRC_REQUEST_H

#include <linux/errno.h>
#include <linux/types.h>

#include "krp_ioctl.h"

/**
 * krc_request_check() - Check what depends neither on memory nor on the peer.
 * @opcode: KRP_OP_*; any number.
 * @length: bytes.
 * @remote_addr: first byte at the peer.
 * @idempotent: doing it twice is harmless, as the request says.
 * @atomics: the port has atomics.
 *
 * Context: any.
 * Return: 0; -EINVAL (opcode, length; an atomic of other than eight aligned bytes, or that is to be
 * harmless twice); -EOPNOTSUPP (no atomics).
 */
static inline int krc_request_check(u32 opcode, u32 length, u64 remote_addr, bool idempotent,
				    bool atomics)
{
	if (opcode < KRP_OP_READ || opcode > KRP_OP_FETCH_ADD || !length || length > KRP_LENGTH_MAX)
		return -EINVAL;
	if (opcode == KRP_OP_READ || opcode == KRP_OP_WRITE)
		return 0;
	if (length != sizeof(u64) || remote_addr % sizeof(u64) || idempotent)
		return -EINVAL;
	return atomics ? 0 : -EOPNOTSUPP;
}

/**
 * krc_request_access() - What a region of the peer has to allow.
 * @opcode: KRP_OP_* that krc_request_check() lets pass.
 *
 * Context: any.
 * Return: KRP_ACCESS_REMOTE_*.
 */
static inline u32 krc_request_access(u32 opcode)
{
	switch (opcode) {
	case KRP_OP_READ:
		return KRP_ACCESS_REMOTE_READ;
	case KRP_OP_WRITE:
		return KRP_ACCESS_REMOTE_WRITE;
	default:
		return KRP_ACCESS_REMOTE_ATOMIC;
	}
}

#endif /* KRC_REQUEST_H */
