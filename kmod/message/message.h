/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: messages between the programs of nodes, for one port, and what holds for all headers of this
 * folder: connect.h (connections), open.h (listeners), inbox.h (what has come and waits for a program) and
 * large.h.
 *
 * proto/krp_message.h is what stands on the wire; proto/krp_stream.h and krp_listen.h decide what
 * an end does. This folder drives them: it gives them packets, the clock and random numbers, and
 * does what they say through the pool of channels.
 *
 * A stream is one end of a connection. What comes on it becomes letters in an inbox, which many
 * streams may share: a program that serves ten thousand peers has one inbox. A letter holds its
 * message until krc_letter_free(), which gives the peer credit again; so a program that
 * does not read fills the windows of its own streams, and nothing of others.
 * What a program sends is an out, which lives until krc_out.end().
 *
 * Contexts: calls that say "may sleep" need process context. Upcalls (krc_stream_ops,
 * krc_inbox.arrived, krc_out.end, krc_large.end) are made in process context, without a spinlock of
 * this folder, and may call every function of these headers that does not say otherwise; they should
 * be short, since other streams wait meanwhile. Those of one stream come one after the other.
 *
 * Locking: krc_messages.asked.mutex over the making of a stream from an OPEN; krc_stream.lock, then
 * krc_inbox.lock, then krc_messages.lock (these with bottom halves off). None of the spinlocks is
 * held over a call of the pool or an upcall, but krc_stream.lock over krc_inbox.place.
 */
#ifndef KRC_MESSAGE_H
#define KRC_MESSAGE_H

#include <linux/types.h>

#include "krp_message.h"

struct krc_hw_target;
struct krc_messages;
struct krc_pool;
struct krc_rail;

/**
 * struct krc_message_records - How records of other nodes are found.
 * @cached: get what the node has cached. Does not sleep. Returns 0, or -ENOENT.
 * @lookup: READ it from the table, whatever is cached. May sleep. Returns 0; -ENOENT: there is
 *	none; or why that is not known.
 * @arg: for both.
 */
struct krc_message_records {
	int (*cached)(void *arg, const struct krp_key *key, struct krp_value *ret_value);
	int (*lookup)(void *arg, const struct krp_key *key, struct krp_value *ret_value);
	void *arg;
};

/**
 * krc_messages_init() - Make what the messages of all ports share.
 *
 * Context: module init.
 * Return: 0, or -ENOMEM.
 */
int krc_messages_init(void);

/**
 * krc_messages_exit() - Wait for what is still being freed.
 *
 * Context: module exit; all messages are destroyed, all streams closed.
 */
void krc_messages_exit(void);

/**
 * krc_messages_create() - Make the messages of a port, before its target.
 * @rail: the port; outlives them.
 * @records: how records are found; copied.
 *
 * Context: may sleep.
 * Return: them, which are the owner of the target (krc_provider_ops.target_create); or
 * ERR_PTR(-ENOMEM).
 */
struct krc_messages *krc_messages_create(struct krc_rail *rail,
					 const struct krc_message_records *records);

/**
 * krc_messages_depth() - Receive buffers that the target of a port is to have.
 * @rail: port.
 *
 * Context: any.
 * Return: their number; 0: the device has no receive queue, and there are no messages.
 */
u32 krc_messages_depth(const struct krc_rail *rail);

/**
 * krc_messages_start() - Begin to receive.
 * @messages: messages.
 * @target: of the port, with receive queue; outlives krc_messages_stop().
 * @pool: of the port, likewise.
 * @value: record of the port.
 *
 * Context: may sleep.
 * Return: 0, -ENOMEM, or the errors of the provider.
 */
int krc_messages_start(struct krc_messages *messages, struct krc_hw_target *target,
		       struct krc_pool *pool, const struct krp_value *value);

/**
 * krc_messages_stop() - The port ends: all streams die with -ENODEV, nothing is received.
 * @messages: messages; krc_rail_enter() fails already, and the pool has been stopped.
 *
 * When it returns the owner of each stream has been told, whichever task was in an upcall of it; so it
 * is called by none.
 * Outs of large messages end once the target is gone, by krc_messages_destroy().
 * Context: may sleep. May be called twice, also without krc_messages_start().
 */
void krc_messages_stop(struct krc_messages *messages);

/**
 * krc_messages_destroy() - Free what the device has of them.
 * @messages: stopped; the target is destroyed. The memory stays as long as streams that owners have
 *	not closed.
 *
 * Context: may sleep.
 */
void krc_messages_destroy(struct krc_messages *messages);

/**
 * krc_messages_on_received() - Upcall of the provider: the receive queue has completions.
 * @target_owner: as given to target_create().
 *
 * Context: any, also hard interrupt.
 */
void krc_messages_on_received(void *target_owner);

/**
 * krc_messages_on_fatal() - Upcall of the provider: the receive queue is broken.
 * @target_owner: as given to target_create().
 *
 * Logged; streams die because nothing is heard. Context: any, also hard interrupt.
 */
void krc_messages_on_fatal(void *target_owner);

/**
 * struct krc_messages_stats - Counters since creation.
 * @packets: received.
 * @faults: received with an error.
 * @malformed: dropped by krp_message_check().
 * @unknown: for a queue that is not there.
 * @foreign: dropped because they were not their connection's: forged, late or of another
 *	generation.
 * @opens: OPENs of no known connection.
 * @opens_dropped: of these, without an answer.
 * @challenges: sent.
 * @refusals: sent to OPENs.
 * @posted: SENDs posted.
 * @failed: SENDs that failed.
 * @replays: streams that began anew after a failed SEND.
 * @no_memory: messages that were put off for lack of memory.
 * @streams: there are now.
 * @listeners: likewise.
 */
struct krc_messages_stats {
	u64 packets;
	u64 faults;
	u64 malformed;
	u64 unknown;
	u64 foreign;
	u64 opens;
	u64 opens_dropped;
	u64 challenges;
	u64 refusals;
	u64 posted;
	u64 failed;
	u64 replays;
	u64 no_memory;
	u32 streams;
	u32 listeners;
};

/**
 * krc_messages_stats() - Read the counters.
 * @messages: messages.
 * @ret_stats: out; of different moments.
 *
 * Context: any.
 */
void krc_messages_stats(struct krc_messages *messages, struct krc_messages_stats *ret_stats);

#endif /* KRC_MESSAGE_H */
