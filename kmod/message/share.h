/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: shares: what each payer has of the packets and streams of a port.
 * Contexts and locking: see message/message.h.
 */
#ifndef KRC_MESSAGE_SHARE_H
#define KRC_MESSAGE_SHARE_H

#include <linux/list.h>
#include <linux/types.h>

#include "base/limits.h"

struct krc_inbox;
struct krc_messages;
struct krc_packet;
struct krc_stream;

/**
 * struct krc_tx_share - What a payer has of the packets and streams of a port.
 * @node: in krc_messages.shares; not of krc_messages.share.
 * @payer: whose it is; also what its streams post is on that account.
 * @counted: that payer, so that its key names nobody else.
 * @refs: streams, listeners and tombstones that count it; likewise.
 * @streams: of the streams, those in krc_messages.streams.
 * @tombstones: of the tombstones, those in krc_messages.known.tombstones; of its listeners.
 * @looks: look-ups of records under way, of the streams.
 * @taken: packets that they have; of krc_packet_get_of().
 * @thirsty: those of them that wait until it may have more; each counted.
 * @over: in krc_messages.over, if there are such.
 *
 * All but @taken is under krc_messages.lock.
 */
struct krc_tx_share {
	struct hlist_node node;
	const void *payer;
	struct krc_payer counted;
	u32 refs;
	u32 streams;
	u32 tombstones;
	u32 looks;
	u32 taken;
	struct list_head thirsty;
	struct list_head over;
};

/**
 * krc_tx_share_get() - The share of a payer in the packets of a port, made if there is none.
 * @m: messages.
 * @inbox: whose payer; see krc_inbox.charge. The share counts the payer, so that streams which are
 *	still closing when that has gone are on nobody else's account.
 *
 * Context: may sleep.
 * Return: it, counted, for krc_tx_share_put(); NULL: no memory.
 */
struct krc_tx_share *krc_tx_share_get(struct krc_messages *m, const struct krc_inbox *inbox);

/**
 * krc_tx_share_hold() - Count a reference to a share.
 * @m: messages.
 * @share: share that the caller has a reference to; not that of the port.
 *
 * Context: any but hard interrupts.
 */
void krc_tx_share_hold(struct krc_messages *m, struct krc_tx_share *share);

/**
 * krc_tx_share_room() - Whether a payer may have one stream more.
 * @m: messages, locked.
 * @share: of the payer.
 * @known: it is opened by a peer, and has to be known again.
 *
 * Context: bottom halves off.
 * Return: whether it may.
 */
bool krc_tx_share_room(const struct krc_messages *m, const struct krc_tx_share *share, bool known);

/**
 * krc_tx_share_look() - Have a stream look up the record of its peer, if its payer may.
 * @st: stream.
 *
 * A look-up takes up to a second of a work item, of which all ports and users have some hundreds.
 * Context: any but hard interrupts.
 * Return: its share, counted, for krc_tx_share_looked(); NULL: as many as a payer may have are under way.
 */
struct krc_tx_share *krc_tx_share_look(struct krc_stream *st);

/**
 * krc_tx_share_looked() - A look-up is over.
 * @m: messages.
 * @share: what krc_tx_share_look() has returned.
 *
 * Context: any but hard interrupts.
 */
void krc_tx_share_looked(struct krc_messages *m, struct krc_tx_share *share);

/**
 * krc_tx_share_put() - Drop a reference to a share.
 * @m: messages.
 * @share: share whose packets the caller has given back; no-op for that of the port, or NULL.
 *
 * Context: any but hard interrupts.
 */
void krc_tx_share_put(struct krc_messages *m, struct krc_tx_share *share);

/**
 * krc_tx_share_join() - The packets that a stream takes from now on are of this share.
 * @st: stream, locked; its share was that of the port. To be pulled afterwards.
 * @share: share; its reference is the stream's.
 *
 * Context: any but hard interrupts.
 */
void krc_tx_share_join(struct krc_stream *st, struct krc_tx_share *share);

/**
 * krc_tx_share_packet() - A packet to send, on account of a stream's share.
 * @st: stream, locked.
 *
 * Context: any but hard interrupts.
 * Return: it; NULL: there is none, and the stream is kicked when there is.
 */
struct krc_packet *krc_tx_share_packet(struct krc_stream *st);

/**
 * krc_streams_drink() - If packets are free, have streams that wait for one go on. To be called by whoever
 * puts some, and by a stream that may have been called for one and does without.
 * @m: messages; no-op if they are stopped.
 *
 * Context: any but hard interrupts.
 */
void krc_streams_drink(struct krc_messages *m);

/**
 * krc_streams_forget() - No stream waits for a packet any more.
 * @m: messages, stopped; all packets are free.
 *
 * Context: may sleep.
 */
void krc_streams_forget(struct krc_messages *m);

#endif /* KRC_MESSAGE_SHARE_H */
