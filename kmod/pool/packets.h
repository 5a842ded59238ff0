/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: packets of messages (krp_message.h) as the device reads and writes them: memory of a fixed
 * number of them, registered once, so that neither sending nor receiving one registers anything.
 *
 * A packet is with one owner at a time: free, its user's, posted as a receive buffer, or in a flow
 * from krc_flow_submit() until done(). Only its user reads or writes its bytes.
 * A SEND goes through a flow of KRC_CHANNEL_MESSAGE, which keeps the order of its packets on the
 * wire except after a fault or a reset; it may arrive twice or not at all (krp_message.h,
 * TRANSPORT). It fails with -EAGAIN and KRC_FAULT_BUSY if the peer had no buffer for it,
 * -ETIMEDOUT and KRC_FAULT_TIMEOUT if the peer does not answer, else as other requests do. A
 * failure ends its flow, as always, so peers that should not suffer from each other have flows of
 * their own.
 * Locking: krc_packets.lock (BH) for the free ones, inside of which nothing is taken.
 */
#ifndef KRC_PACKETS_H
#define KRC_PACKETS_H

#include <linux/list.h>
#include <linux/types.h>

#include "pool/flow.h"

struct krc_packets;

/**
 * struct krc_packet - Memory of one message.
 * @all: those that it is one of.
 * @list: while it is free the memory's, else its user's.
 * @req: for krc_flow_submit(), set by krc_packet_send(). While it is in a flow, the pool's.
 * @address: target of @req.
 * @data: KRP_MESSAGE_PACKET_MAX bytes.
 * @owner: for its user; NULL when krc_packet_get() returns it.
 * @taken: counter of krc_packet_get_of(), or NULL.
 * @index: its number, for krc_packet_at().
 */
struct krc_packet {
	struct krc_packets *all;
	struct list_head list;
	struct krc_req req;
	struct krc_hw_address address;
	void *data;
	void *owner;
	u32 *taken;
	u32 index;
};

/**
 * krc_packets_create() - Allocate packets and register their memory.
 * @rail: port that is going to use them; outlives them.
 * @nr: how many, from 1.
 *
 * Context: may sleep. Inside krc_rail_enter(), unless the port is being made.
 * Return: the packets; ERR_PTR(-ENOMEM), -EINVAL (@nr), or the error of ops->key_pages().
 */
struct krc_packets *krc_packets_create(struct krc_rail *rail, u32 nr);

/**
 * krc_packets_destroy() - Free packets.
 * @packets: all are free, or the target to which they are posted is destroyed.
 *
 * If their key can't be destroyed, the device may still write to the memory, which is not freed
 * then.
 * Context: may sleep; the provider is still open.
 */
void krc_packets_destroy(struct krc_packets *packets);

/**
 * krc_packet_get() - Take a free packet.
 * @packets: packets.
 *
 * Context: any but hard interrupts; does not sleep.
 * Return: the packet, with any bytes in it; NULL: none is free.
 */
struct krc_packet *krc_packet_get(struct krc_packets *packets);

/**
 * krc_packet_get_of() - Take a free packet on account of a user that may not take all.
 * @packets: packets.
 * @taken: how many the user has, 0 at first; changed by these functions alone, and there until the last
 *	one is given back.
 *
 * A user that has some gets no more than are free. Context: any but hard interrupts; does not sleep.
 * Return: the packet, as krc_packet_get(); NULL: none is free; ERR_PTR(-EDQUOT): the user has as many as
 * are.
 */
struct krc_packet *krc_packet_get_of(struct krc_packets *packets, u32 *taken);

/**
 * krc_packet_put() - Give a packet back.
 * @packet: the caller's; neither posted nor in a flow.
 *
 * Context: any but hard interrupts.
 */
void krc_packet_put(struct krc_packet *packet);

/**
 * krc_packet_at() - Find a packet by number.
 * @packets: packets.
 * @index: krc_packet.index, such as the cookie of a krc_recv_wc.
 *
 * Context: any.
 * Return: the packet, whoever has it; NULL: there is no such number.
 */
struct krc_packet *krc_packet_at(struct krc_packets *packets, u64 index);

/**
 * krc_packets_free() - Count the free packets.
 * @packets: packets.
 *
 * Context: any; a hint.
 * Return: how many.
 */
u32 krc_packets_free(const struct krc_packets *packets);

/**
 * krc_packet_post() - Append a packet to the receive queue of a target of its port.
 * @packet: the caller's until 0 is returned.
 * @target: target that was made with receives.
 *
 * The cookie is @packet->index. To be followed by ops->recv_ring(). Context: as ops->recv_post(),
 * which the caller serialises.
 * Return: 0, or the error of ops->recv_post().
 */
int krc_packet_post(struct krc_packet *packet, struct krc_hw_target *target);

/**
 * krc_packet_received() - A completion of the receive queue has brought a packet back.
 * @packet: krc_packet_at() of its cookie; the caller's from here on.
 * @bytes: krc_recv_wc.bytes.
 *
 * Makes the bytes visible to the CPU. Context: any.
 */
void krc_packet_received(struct krc_packet *packet, u32 bytes);

/**
 * krc_packet_send() - Make the request that sends a packet.
 * @packet: the caller's, whose bytes are written; not changed any more until done().
 * @to: target, copied.
 * @bytes: 1 to KRP_MESSAGE_PACKET_MAX.
 * @until: jiffies after which it may not be handed to the hardware any more; then it ends with
 *	-ETIME, not sent.
 *
 * To be followed by krc_flow_submit() of @packet->req.list in a flow of KRC_CHANNEL_MESSAGE. Each
 * time that it is handed to the hardware it may stay there for half of krc_rail.margin_ms.
 * Context: any.
 */
void krc_packet_send(struct krc_packet *packet, const struct krc_hw_address *to, u32 bytes,
		     unsigned long until);

#endif /* KRC_PACKETS_H */
