/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A network in memory for the lanes of several ports: each node has a device of ib_core whose queue
 * pairs are numbers and states, and datagrams go from one to the other, are lost, doubled and
 * overtaken as a test wants. Work items, timers and the clock are the real ones.
 *
 * Connected queue pairs carry nothing; krc_net_joined() says whether what is posted on one would
 * be taken by the other end.
 * Locking: krc_net.lock (bottom halves off) for all that devices do.
 */
#ifndef KRC_LANE_NET_H
#define KRC_LANE_NET_H

#include <kunit/test.h>
#include <rdma/ib_verbs.h>

#include "hw/verbs/lanes_priv.h"

#define KRC_NET_NODES 5
#define KRC_NET_WCS 512 /* completions of a queue; a power of two */
#define KRC_NET_HELD 64
#define KRC_NET_HOLDERS 24

struct krc_net;

/**
 * enum krc_net_fate - What becomes of a packet.
 * @KRC_NET_PASS: it comes.
 * @KRC_NET_LOSE: it does not.
 * @KRC_NET_TWICE: it comes twice.
 * @KRC_NET_HOLD: it comes behind those that are sent later, at krc_net_let_go().
 */
enum krc_net_fate {
	KRC_NET_PASS,
	KRC_NET_LOSE,
	KRC_NET_TWICE,
	KRC_NET_HOLD,
};

/**
 * struct krc_net_device - A device.
 * @ibdev: ib_core's part; first, as ib_alloc_device() wants it.
 * @node: whose.
 */
struct krc_net_device {
	struct ib_device ibdev;
	struct krc_net_node *node;
};

/**
 * struct krc_net_cq - A completion queue.
 * @cq: ib_core's part.
 * @wc: completions.
 * @head: how many there were.
 * @tail: how many were taken.
 * @armed: an upcall is wanted.
 */
struct krc_net_cq {
	struct ib_cq cq;
	struct ib_wc wc[KRC_NET_WCS];
	u32 head;
	u32 tail;
	bool armed;
};

/**
 * struct krc_net_qp - A queue pair.
 * @qp: ib_core's part.
 * @list: entry of krc_net_node.qps.
 * @state: its state.
 * @port: that it was given.
 * @qkey: of UD.
 * @lid: of RC: whom it is connected to.
 * @dest: likewise, the queue pair.
 * @rq_psn: first number that it takes.
 * @sq_psn: first number that it sends.
 * @mtu: of its path.
 * @bufs: addresses of receive buffers.
 * @ids: their names.
 * @head: how many were posted.
 * @tail: how many are used.
 */
struct krc_net_qp {
	struct ib_qp qp;
	struct list_head list;
	enum ib_qp_state state;
	u32 port;
	u32 qkey;
	u16 lid;
	u32 dest;
	u32 rq_psn;
	u32 sq_psn;
	u32 mtu;
	u64 bufs[KRC_SHAKE_RECVS];
	u64 ids[KRC_SHAKE_RECVS];
	u32 head;
	u32 tail;
};

/**
 * struct krc_net_ah - A way to a node.
 * @ah: ib_core's part.
 * @lid: of the node.
 */
struct krc_net_ah {
	struct ib_ah ah;
	u16 lid;
};

/**
 * struct krc_net_node - A node with one port.
 * @net: where it is.
 * @lid: of its port: one more than its place.
 * @dev: device.
 * @port_data: of the device, by port.
 * @pd: protection domain.
 * @rc_cq: of connected queue pairs.
 * @qps: queue pairs that there are.
 * @qps_nr: how many.
 * @ahs: ways that there are.
 * @cqs: completion queues that there are.
 * @lanes: of the port, or NULL: the node is down.
 * @gid: of the port.
 * @generation: of the node.
 * @record: what the table has of it.
 * @key: what it signs with and takes; 0: it has no key.
 * @learns: a key that it has been given when it has looked a record up; 0: none.
 * @knows: it has the records of all others in its cache.
 * @lookups: how often it had to look one up.
 * @verified: how often it computed whether its key proves a packet.
 * @taken: completions of packets that its work item has taken.
 */
struct krc_net_node {
	struct krc_net *net;
	u16 lid;
	struct krc_net_device *dev;
	struct ib_port_data port_data[2];
	struct ib_pd pd;
	struct ib_cq rc_cq;
	struct list_head qps;
	u32 qps_nr;
	u32 ahs;
	u32 cqs;
	struct krc_lanes *lanes;
	u8 gid[KRP_GID_BYTES];
	u64 generation;
	struct krp_value record;
	u64 key;
	u64 learns;
	bool knows;
	u32 lookups;
	u32 verified;
	u32 taken;
};

/**
 * struct krc_net_holder - Somebody who wants a lane.
 * @holder: lanes know the holder by it.
 * @node: whose lanes.
 * @turn: of the last hold.
 * @ready: how often it was given a lane.
 * @lost: how often it was told of a loss.
 * @err: of the last one.
 */
struct krc_net_holder {
	struct krc_lane_holder holder;
	struct krc_net_node *node;
	u32 turn;
	u32 ready;
	u32 lost;
	int err;
};

/**
 * struct krc_net_held - A packet that is held back.
 * @p: it.
 * @bytes: its length.
 * @to: LID of the node that it is for.
 * @qpn: queue pair.
 * @qkey: its Q_Key.
 */
struct krc_net_held {
	u8 p[KRC_SHAKE_STRIDE];
	u32 bytes;
	u16 to;
	u32 qpn;
	u32 qkey;
};

/**
 * struct krc_net - The network.
 * @test: the test.
 * @lock: see the head of the file.
 * @at: nodes.
 * @holders: everybody who wants a lane.
 * @next_qpn: number of the next queue pair.
 * @fate: what becomes of a packet from one node to another; NULL: it comes. Under the lock.
 * @count: packets sent, by type.
 * @lost: packets that the network has lost.
 * @first: of each type, how many of the first ones are lost.
 * @odds: one of so many is lost, and doubled, and held; 0: none.
 * @seed: of what is drawn.
 * @held: packets that are held back.
 * @held_nr: how many.
 * @last: the last packet of each type.
 */
struct krc_net {
	struct kunit *test;
	spinlock_t lock;
	struct krc_net_node at[KRC_NET_NODES];
	struct krc_net_holder holders[KRC_NET_HOLDERS];
	u32 next_qpn;
	enum krc_net_fate (*fate)(struct krc_net *net, const struct krp_lane_packet *p);
	u32 count[KRP_LANE_TYPES];
	u32 lost;
	u32 first[KRP_LANE_TYPES];
	u32 odds;
	u64 seed;
	struct krc_net_held held[KRC_NET_HELD];
	u32 held_nr;
	struct krp_lane_packet last[KRP_LANE_TYPES];
};

/**
 * krc_net_create() - A network of KRC_NET_NODES nodes, none of which is up.
 * @test: the test.
 *
 * Context: may sleep.
 * Return: it; a test that fails ends here.
 */
struct krc_net *krc_net_create(struct kunit *test);

/**
 * krc_net_destroy() - End all nodes, and expect that nothing is left on their devices.
 * @net: network, or NULL.
 *
 * Context: may sleep.
 */
void krc_net_destroy(struct krc_net *net);

/**
 * krc_net_up() - Bring a node up, in a generation of its own, and have the table say so.
 * @net: network.
 * @at: place of the node, which is down.
 *
 * Context: may sleep.
 */
void krc_net_up(struct krc_net *net, u32 at);

/**
 * krc_net_down() - Stop the lanes of a node and destroy them.
 * @net: network.
 * @at: place of the node, which may be down.
 *
 * Context: may sleep, up to some seconds.
 */
void krc_net_down(struct krc_net *net, u32 at);

/**
 * krc_net_peer() - Whom a node reaches by the record of another one.
 * @net: network.
 * @at: place of the other one.
 * @ret_peer: out.
 *
 * Context: any.
 */
void krc_net_peer(struct krc_net *net, u32 at, struct krc_lane_peer *ret_peer);

/**
 * krc_net_want() - Have a holder want a lane.
 * @net: network.
 * @i: number of the holder, which has and wants nothing.
 * @from: place of its node.
 * @to: place of the node that it is to reach.
 * @index: of the lane.
 *
 * Context: process.
 */
void krc_net_want(struct krc_net *net, u32 i, u32 from, u32 to, u32 index);

/**
 * krc_net_want_peer() - krc_net_want() by a record of the test's.
 * @net: network.
 * @i: number of the holder, which has and wants nothing.
 * @from: place of its node.
 * @peer: whom it is to reach.
 * @index: of the lane.
 *
 * Context: process.
 */
void krc_net_want_peer(struct krc_net *net, u32 i, u32 from, const struct krc_lane_peer *peer,
		       u32 index);

/**
 * krc_net_loses() - Wait until a holder is told that there is no lane for it, or none any more.
 * @net: network.
 * @i: number of the holder.
 * @err: what it has to be told.
 *
 * Context: may sleep.
 */
void krc_net_loses(struct krc_net *net, u32 i, int err);

/**
 * krc_net_give_back() - Have a holder give its lane back, or want it no more.
 * @net: network.
 * @i: number of the holder.
 * @broken: the lane is broken.
 *
 * Context: process.
 */
void krc_net_give_back(struct krc_net *net, u32 i, bool broken);

/**
 * krc_net_has() - Wait until a holder has a lane whose other end is of the node that it wants.
 * @net: network.
 * @i: number of the holder.
 *
 * Context: may sleep.
 */
void krc_net_has(struct krc_net *net, u32 i);

/**
 * krc_net_joined() - Whether what is posted on a queue pair would be taken by its other end.
 * @net: network.
 * @qp: queue pair.
 *
 * Context: process.
 * Return: the other end, or NULL.
 */
struct krc_net_qp *krc_net_joined(struct krc_net *net, struct ib_qp *qp);

/**
 * krc_net_send() - Put a datagram before a node, as anybody can who knows its table.
 * @net: network.
 * @to: place of the node.
 * @data: what is in it.
 * @bytes: length.
 *
 * Context: process.
 */
void krc_net_send(struct krc_net *net, u32 to, const void *data, u32 bytes);

/**
 * krc_net_let_go() - Have all packets come that are held back, the last ones first.
 * @net: network.
 *
 * Context: process.
 */
void krc_net_let_go(struct krc_net *net);

/**
 * krc_net_sign() - Sign a packet as the cluster does.
 * @key: key.
 * @p: packet.
 *
 * Context: any.
 */
void krc_net_sign(u64 key, struct krp_lane_packet *p);

/**
 * krc_net_active() - How many lanes count at a node.
 * @net: network.
 * @at: place of the node, which is up.
 *
 * Context: process.
 * Return: how many.
 */
u32 krc_net_active(struct krc_net *net, u32 at);

/**
 * krc_net_sent() - How many packets of a type were sent.
 * @net: network.
 * @type: it.
 *
 * Context: process.
 * Return: how many.
 */
u32 krc_net_sent(struct krc_net *net, u32 type);

#endif /* KRC_LANE_NET_H */
