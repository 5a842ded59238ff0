/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: READs of large messages into memory of programs.
 * Contexts and locking: see message/message.h.
 */
#ifndef KRC_MESSAGE_LARGE_H
#define KRC_MESSAGE_LARGE_H

#include <linux/list.h>
#include <linux/types.h>

#include "pool/flow.h"

struct krc_stream;

#define KRC_LARGE_BEGIN 0x1 /* it was placed, and is to be handed to the pool */
#define KRC_LARGE_AGAIN 0x2 /* there was no answer: it is to be done again */
#define KRC_LARGE_RESUME 0x4 /* it was held, and is to be resumed */

/**
 * struct krc_large - A READ of a large message; embedded by its owner.
 * @list: of this folder, as are those up to @err.
 * @stream: of the message, counted.
 * @flow: its own, so that a fault of one READ fails no other.
 * @req: the READ.
 * @held: it waits until the peer is heard.
 * @due: what its runner is to do: KRC_LARGE_BEGIN and so on, bits.
 * @tries: how often it was.
 * @failed_ns: when that was seen last.
 * @err: its outcome.
 * @seq: krc_letter.seq.
 * @offset: first byte that is wanted.
 * @length: bytes; @offset + @length is at most krc_letter.length. 0: the message is to be ended as
 *	fetched without a READ.
 * @local_addr: where they go, under @lkey.
 * @lkey: local key; valid until end().
 * @keep: more of the message is to be fetched afterwards; the peer goes on holding it.
 * @end: called once: the bytes are there (err 0), or why not: -ECANCELED (withdrawn), -EREMOTEIO
 *	(refused by the peer's NIC), -ETIMEDOUT, the error of the connection, -ENODEV.
 */
struct krc_large {
	struct list_head list;
	struct krc_stream *stream;
	struct krc_flow flow;
	struct krc_req req;
	bool held;
	u8 due;
	u8 tries;
	u64 failed_ns;
	int err;
	u64 seq;
	u64 offset;
	u32 length;
	u64 local_addr;
	u32 lkey;
	bool keep;
	void (*end)(struct krc_large *large, int err);
};

/**
 * krc_stream_fetch() - READ a large message.
 * @stream: stream.
 * @large: see there.
 *
 * Context: may sleep.
 * Return: 0: end() will be called, or has been; -ENOENT: no such message, or it was withdrawn;
 * -EBUSY: it is being fetched; -EINVAL: beyond its end.
 */
int krc_stream_fetch(struct krc_stream *stream, struct krc_large *large);

/**
 * krc_stream_discard() - A large message is not wanted; the sender gets its memory back.
 * @stream: stream.
 * @seq: krc_letter.seq.
 *
 * Context: may sleep.
 * Return: 0; -ENOENT: no such message, or it was withdrawn; -EBUSY: it is being fetched.
 */
int krc_stream_discard(struct krc_stream *stream, u64 seq);

#endif /* KRC_MESSAGE_LARGE_H */
