/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the interface of the lanes of one port: which queue pair reaches which port, and its
 * life. proto/krp_lane.h is what stands on the wire, krp_lane_end.h and krp_lanes.h decide; lanes.c
 * and the files beside it drive them: they have the lock, the clock, the memory, the keys, the UD
 * queue pair, and bring queue pairs from one state to the next.
 *
 * A lane is held by one initiator at a time: its holder posts to its queue pair, and nobody
 * else does. So what fails on a lane is of one initiator, as on a DC initiator. A holder gives it
 * back when nothing of its own is outstanding on it.
 *
 * Locking: krc_lanes.lock (bottom halves off) over the table and all lanes. It is not held over an
 * upcall or a verb that sleeps.
 */
#ifndef KRC_VERBS_LANES_H
#define KRC_VERBS_LANES_H

#include <linux/list.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include "hw/provider.h"
#include "krp_lane.h"

/*
 * Lanes of a pair of ports by what is sent on them, in either direction. Messages have one of their own: a
 * SEND that finds no receive buffer delays what is behind it, and breaks the lane if there is none for
 * long. What goes on the others, READs, WRITEs and atomics, takes any of them that is free.
 */
#define KRC_LANE_PROBES 2 /* and below it those of data */
#define KRC_LANE_MESSAGES 3

struct krc_lanes; /* all of a port */
struct krc_lane_slot; /* a lane, or place for one; private to the files of lanes */

/**
 * struct krc_lane_peer - A port that lanes are made to; what krc_hw_address holds here.
 * @gid: of the port.
 * @generation: of its node, little-endian, as its record says.
 * @ud_qpn: where the hand-shake is said.
 * @ud_qkey: its Q_Key.
 * @lid: of the port (InfiniBand).
 * @mac: of the port (Ethernet).
 * @mtu: largest that both can, enum ib_mtu.
 * @sl: service level.
 * @flags: KRP_DCT_*.
 * @traffic_class: of packets to it.
 * @rsvd: zero, since addresses are compared as bytes.
 */
struct krc_lane_peer {
	u8 gid[KRP_GID_BYTES];
	__le64 generation;
	u32 ud_qpn;
	u32 ud_qkey;
	u16 lid;
	u8 mac[6];
	u8 mtu;
	u8 sl;
	u8 flags;
	u8 traffic_class;
	u8 rsvd[20];
};
static_assert(sizeof(struct krc_lane_peer) == sizeof(struct krc_hw_address));

/**
 * enum krc_hold - Where a holder is.
 * @KRC_HOLD_NONE: it wants nothing.
 * @KRC_HOLD_WAITS: it waits for a lane.
 * @KRC_HOLD_HAS: it has one.
 */
enum krc_hold {
	KRC_HOLD_NONE,
	KRC_HOLD_WAITS,
	KRC_HOLD_HAS,
};

/**
 * struct krc_lane_holder - One that wants a lane, or has it; embedded in an initiator. Zeroed but
 * for the upcalls before its first use.
 * @payer: on whose account a lane is made for it; only compared, NULL: the node's. Set before
 *	krc_lanes_hold().
 * @ready: it has the lane: @qp is in RTS, and nothing is outstanding on it. Bottom halves are off, and
 *	no lock of this folder is held; must not sleep, may call krc_lanes_release().
 * @lost: there is no lane, or it is none any more: @err is %-ETIMEDOUT (the peer does not answer),
 *	%-ESTALE (the record is of another generation), %-EBUSY (no room, here or there),
 *	%-ECONNRESET (it was taken away: the peer, or this end, has given the queue pair up; what is
 *	outstanding on it ends with a flush), %-ESHUTDOWN (the lanes of this port end). It holds
 *	nothing then, once what is outstanding has ended: krc_lanes_release(). Same context.
 * @qp: while it has one.
 * @state: enum krc_hold; this and what follows is private to the files of lanes.
 * @index: of the lane.
 * @fails: lanes that have ended while it waited.
 * @round: of krc_lanes.round: when it was last tried to make it one.
 * @told_lost: @lost was called for the lane that it has.
 * @turn: of the last krc_lanes_hold().
 * @call: what is to be called: 0, or 1 for @ready, or an errno for @lost.
 * @since_ns: when it began to wait.
 * @list: entry of krc_lanes.waiting.
 * @calls: entry of krc_lanes.calls, while @call is not 0.
 * @slot: of the lane that it has.
 * @peer: whom it reaches.
 */
struct krc_lane_holder {
	const void *payer;
	void (*ready)(struct krc_lane_holder *holder, u32 turn);
	void (*lost)(struct krc_lane_holder *holder, u32 turn, int err);
	struct ib_qp *qp;
	u8 state;
	u8 index;
	u8 fails;
	bool told_lost;
	u32 round;
	u32 turn;
	int call;
	u64 since_ns;
	struct list_head list;
	struct list_head calls;
	struct krc_lane_slot *slot;
	struct krc_lane_peer peer;
};

/**
 * struct krc_lanes_queues - What all queue pairs of lanes of a port share.
 * @ibdev: device.
 * @pd: protection domain of its keys.
 * @pkey_index: of the partition of the port.
 * @address: krc_provider_ops.address; fills a struct krc_lane_peer.
 * @send_cq: completions of what is posted on lanes; ib_wc.qp says of which.
 * @recv_cq: completions of what is received.
 * @srq: receive buffers, or NULL: nothing is received.
 * @send_depth: most requests outstanding on a lane.
 */
struct krc_lanes_queues {
	struct ib_device *ibdev;
	struct ib_pd *pd;
	u16 pkey_index;
	int (*address)(struct krc_hw *hw, u32 port, u16 gid_index, const union ib_gid *gid,
		       const struct krp_value *value, struct krc_hw_address *ret_address);
	struct ib_cq *send_cq;
	struct ib_cq *recv_cq;
	struct ib_srq *srq;
	u32 send_depth;
};

/**
 * krc_lanes_create() - Make the UD queue pair of a port, and an empty table.
 * @hw: open device.
 * @port: port number.
 * @gid_index: of its address.
 * @queues: what queue pairs of lanes use; copied, what it points to stays as long as the lanes.
 * @value: ud_qpn, ud_qkey and max_rd_atomic are set.
 *
 * No lane is made, and no packet answered, before krc_lanes_start().
 *
 * Context: may sleep.
 * Return: the lanes; ERR_PTR: %-ENOMEM, or what the device says.
 */
struct krc_lanes *krc_lanes_create(struct krc_hw *hw, u32 port, u16 gid_index,
				   const struct krc_lanes_queues *queues, struct krp_value *value);

/**
 * krc_lanes_start() - Make lanes, and answer peers that want some.
 * @lanes: of the port.
 * @services: what the node knows; copied.
 *
 * Context: may sleep.
 * Return: 0; %-ENOMEM; %-EINVAL: @services says what cannot be.
 */
int krc_lanes_start(struct krc_lanes *lanes, const struct krc_hw_lanes *services);

/**
 * krc_lanes_stop() - End all lanes: holders lose theirs, peers are told (CLOSE) in a bounded time.
 * @lanes: of the port.
 *
 * Context: may sleep, up to two seconds. Afterwards no upcall is made, and no function
 * of the services called. Also of lanes that were never started.
 */
void krc_lanes_stop(struct krc_lanes *lanes);

/**
 * krc_lanes_stats() - Get counters.
 * @lanes: of the port.
 * @ret_stats: out; each is as it was at some moment meanwhile.
 *
 * Context: any but hard interrupts.
 */
void krc_lanes_stats(struct krc_lanes *lanes, struct krc_lanes_stats *ret_stats);

/**
 * krc_lanes_destroy() - Destroy all queue pairs, and the table.
 * @lanes: stopped, or never started; nobody holds a lane.
 *
 * Context: may sleep.
 */
void krc_lanes_destroy(struct krc_lanes *lanes);

/**
 * krc_lanes_hold() - Want the lane of an index to a port.
 * @lanes: of the port.
 * @peer: whom it is to reach.
 * @index: 0 to KRP_LANE_INDEXES - 1: the one that is made, if no lane to the port is free for what
 *	goes on this one.
 * @turn: another one than at the last time; upcalls name it, since one that was under way when the
 *	last lane was given back may come behind this.
 * @holder: holds and wants nothing.
 *
 * It is made if there is none; if another one holds it, holders get it in the order of asking.
 * holder->ready() or holder->lost() is called later, or before this returns.
 *
 * Context: any but hard interrupts.
 */
void krc_lanes_hold(struct krc_lanes *lanes, const struct krc_lane_peer *peer, u32 index, u32 turn,
		    struct krc_lane_holder *holder);

/**
 * krc_lanes_release() - Want it no more, or give it back.
 * @lanes: of the port.
 * @holder: nothing of it is outstanding on its lane, unless @broken.
 * @broken: the queue pair has failed, or requests on it must not be executed any more: it is
 *	brought to ERR, and no other holder gets it.
 *
 * No upcall is made once it has returned, but for one that is under way on another processor; a
 * caller that frees the holder calls krc_lanes_sync() first.
 *
 * Context: any but hard interrupts.
 */
void krc_lanes_release(struct krc_lanes *lanes, struct krc_lane_holder *holder, bool broken);

/**
 * enum krc_lane_wish - When a holder should give its lane back.
 * @KRC_LANE_WISH_NONE: when it needs it no more.
 * @KRC_LANE_WISH_SOON: somebody waits for it: after some requests.
 * @KRC_LANE_WISH_NOW: it ends: when what is outstanding has ended. Whoever posts more may lose that.
 */
enum krc_lane_wish {
	KRC_LANE_WISH_NONE,
	KRC_LANE_WISH_SOON,
	KRC_LANE_WISH_NOW,
};

/**
 * krc_lanes_wanted() - When a holder should give its lane back.
 * @lanes: of the port.
 * @holder: has one.
 *
 * Context: any but hard interrupts.
 * Return: enum krc_lane_wish.
 */
enum krc_lane_wish krc_lanes_wanted(struct krc_lanes *lanes, const struct krc_lane_holder *holder);

/**
 * krc_lanes_sync() - Wait until queue pairs that were released as broken execute nothing any more,
 * and upcalls under way have returned.
 * @lanes: of the port.
 * @holder: whose; has released.
 *
 * Context: may sleep; milliseconds.
 */
void krc_lanes_sync(struct krc_lanes *lanes, struct krc_lane_holder *holder);

#endif /* KRC_VERBS_LANES_H */
