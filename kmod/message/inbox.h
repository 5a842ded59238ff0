/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: what has come for a program: letters, in inboxes; and outs, what it sends.
 * Contexts and locking: see message/message.h.
 */
#ifndef KRC_MESSAGE_INBOX_H
#define KRC_MESSAGE_INBOX_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct krc_charge;
struct krc_large;
struct krc_stream;
struct mem_cgroup;

/**
 * enum krc_letter_kind - What a letter says.
 * @KRC_LETTER_OFFER: an OPEN to a listener: krc_stream_accept() or krc_stream_refuse() @stream.
 * @KRC_LETTER_MESSAGE: a message, whose bytes are in @bytes.
 * @KRC_LETTER_LARGE: a message that the peer holds: krc_stream_fetch() or krc_stream_discard().
 * @KRC_LETTER_ENDED: the peer sends no more; all it has sent stands before this.
 */
enum krc_letter_kind {
	KRC_LETTER_OFFER,
	KRC_LETTER_MESSAGE,
	KRC_LETTER_LARGE,
	KRC_LETTER_ENDED,
};

/**
 * struct krc_letter - Something that has come for a program.
 * @list: entry of the inbox, then free for the task that has taken it.
 * @mine: entry of krc_stream.in.letters while in the inbox; under krc_inbox.lock. Not an OFFER.
 * @stream: which it came on; counted by the letter. OFFER: the new one; its reference passes to
 *	the task that accepts.
 * @kind: enum krc_letter_kind.
 * @notify: MESSAGE: the sender's WRITEs before it have been done.
 * @posted: LARGE: it is being READ, or was, to where krc_inbox.place said.
 * @length: MESSAGE, LARGE: bytes of the message.
 * @imm: immediate of the message.
 * @seq: LARGE: its name, or with @posted that of the place.
 * @offset: LARGE, @posted: where it is, from the first byte of that.
 * @bytes: MESSAGE: the message.
 */
struct krc_letter {
	struct list_head list;
	struct list_head mine;
	struct krc_stream *stream;
	u8 kind;
	bool notify;
	bool posted;
	u32 length;
	u32 imm;
	u32 offset;
	u64 seq;
	u8 bytes[];
};

/**
 * struct krc_inbox - Letters of streams and listeners, in the order they came; embedded by its
 *	owner.
 * @lock: guards all below; see above.
 * @letters: not taken yet.
 * @nr: how many.
 * @streams: streams that deliver here, and share @units_max.
 * @units_max: units of KRP_MESSAGE_UNIT bytes that all its streams together may have waiting. A
 *	stream gets its part of it as window, but never less than one message. It shrinks when
 *	others come: what has been granted stays, so it is a bound up to the logarithm of their
 *	number.
 * @arrived: something has been put in; see above for the context. May be called on several CPUs at
 *	once, for letters of different streams.
 * @place: a large message has come, of which the letter, not in the inbox yet, tells stream and
 *	length: return a place for it, with local_addr, lkey and end() set, and the letter's @seq and
 *	@offset; or NULL: there is none, and it is fetched or discarded as the letter's taker says.
 *	The owner of the stream is as long as that is not closed, and it is not. NULL: there are no
 *	places. Bottom halves off, krc_stream.lock held.
 * @unlistened: the last offer of a listener that was ended is answered: its @backlog places are
 *	free. NULL: nobody is told. Process context, no spinlock; the inbox outlives the call.
 * @memcg: what its letters and streams are charged to; the owner's reference. NULL: nothing.
 * @charge: on the account of whose payer packets of its streams are, and their turns on the channels:
 *	those of a port are shared by payers (krc_charge_payer()). Outlives the last call that gives a
 *	stream this inbox. NULL: the inbox is its own payer, and outlives its streams.
 */
struct krc_inbox {
	spinlock_t lock; /* see above */
	struct list_head letters;
	u32 nr;
	u32 streams;
	u32 units_max;
	void (*arrived)(struct krc_inbox *inbox);
	struct krc_large *(*place)(struct krc_inbox *inbox, struct krc_letter *letter);
	void (*unlistened)(struct krc_inbox *inbox, u32 backlog);
	struct mem_cgroup *memcg;
	const struct krc_charge *charge;
};

/**
 * krc_inbox_init() - Make an inbox.
 * @inbox: inbox.
 * @units_max: see struct krc_inbox; at least KRP_MESSAGE_UNITS_MAX.
 * @arrived: see struct krc_inbox.
 *
 * Context: any.
 */
void krc_inbox_init(struct krc_inbox *inbox, u32 units_max,
		    void (*arrived)(struct krc_inbox *inbox));

/**
 * krc_inbox_take() - Take the first letter.
 * @inbox: inbox.
 *
 * Context: any but hard interrupts.
 * Return: the letter, for krc_letter_free(), or NULL: there is none.
 */
struct krc_letter *krc_inbox_take(struct krc_inbox *inbox);

/**
 * krc_inbox_untake() - Put a letter back in front: there is no place for it yet.
 * @inbox: inbox.
 * @letter: as krc_inbox_take() returned it; the last one taken by the only task that takes.
 *
 * Context: any but hard interrupts.
 */
void krc_inbox_untake(struct krc_inbox *inbox, struct krc_letter *letter);

/**
 * krc_letter_free() - The program has a message; the peer may send another one.
 * @letter: taken letter. An OFFER that was neither accepted nor refused is refused.
 *
 * Context: may sleep.
 */
void krc_letter_free(struct krc_letter *letter);

/**
 * krc_inbox_end() - Free the letters of an inbox that nothing delivers to any more.
 * @inbox: all its streams are closed (krc_stream_close()), its listeners ended.
 *
 * Context: may sleep.
 */
void krc_inbox_end(struct krc_inbox *inbox);

/**
 * struct krc_out - A message that a program sends; embedded by nobody, see krc_out_alloc().
 * @list: of this folder while it is sent; else free.
 * @owner: the caller's.
 * @err: of this folder while it is sent.
 * @end: called once, in the order of krc_stream_send() for messages that are not large: the peer's
 *	kernel has it (err 0; a large one: the peer has READ it), or why that is not known: the error
 *	of the connection, -ECANCELED by krc_stream_cancel(), -ENOMSG: the peer's program did not want
 *	it, -EFAULT: its READ failed. The out is the caller's again, to be freed, also after
 *	krc_stream_close().
 * @length: bytes.
 * @imm: immediate.
 * @large: announce it: @addr and @rkey are where the peer READs, until end().
 * @hurry: ask for the acknowledgement at once.
 * @notify: not large: it is sent after WRITEs that it tells of; the letter says so.
 * @addr: large: address of its first byte under @rkey.
 * @rkey: large: remote key.
 * @bytes: not large: the message, which the caller fills.
 */
struct krc_out {
	struct list_head list;
	void *owner;
	int err;
	void (*end)(struct krc_out *out, int err);
	u32 length;
	u32 imm;
	bool large;
	bool hurry;
	bool notify;
	u64 addr;
	u32 rkey;
	u8 bytes[];
};

/**
 * krc_out_alloc() - Make an out.
 * @bytes: length of the message; 0 for a large one.
 * @gfp: how memory is got.
 *
 * Context: as @gfp says.
 * Return: the out, all zero but @length; NULL: no memory, or more than KRP_MESSAGE_DATA_MAX.
 */
struct krc_out *krc_out_alloc(u32 bytes, gfp_t gfp);

/**
 * krc_out_free() - Free an out.
 * @out: out that is not being sent, or NULL.
 *
 * Context: any.
 */
void krc_out_free(struct krc_out *out);

#endif /* KRC_MESSAGE_INBOX_H */
