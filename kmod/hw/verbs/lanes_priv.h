/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the inside of the lanes of a port, shared by lanes.c (their life, and their holders),
 * drive.c (the machines of krp_lanes.h), shake.c (packets) and connect.c (queue pairs).
 *
 * One work item of a port drives all machines, handles packets, and issues commands. Whoever
 * wants or gives back a lane only changes lists and wakes it.
 * Locking: krc_lanes.lock (bottom halves off) for everything here unless it says otherwise. The
 * machines are changed by the work item alone, under the lock, so it may read them without. No
 * verb that sleeps and no upcall runs under the lock.
 */
#ifndef KRC_LANES_PRIV_H
#define KRC_LANES_PRIV_H

#include <linux/siphash.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "base/limits.h"
#include "hw/verbs/lanes.h"
#include "krp_lanes.h"
#include "krp_listen.h"

#define KRC_LANES_MAX 256 /* lanes of a port */
#define KRC_LANES_RESERVED 64 /* of them, those that peers do not get */
#define KRC_LANES_CHAINS 256
#define KRC_LANES_KNOWN 1024 /* ports that are remembered */
#define KRC_LANES_SPARE 4 /* queue pairs that wait in INIT */
#define KRC_LANES_QPS (3 * KRC_LANES_MAX) /* queue pairs: of lanes, that rest, and that go */
#define KRC_LANES_LOOKS 4 /* look-ups under way */
#define KRC_LANES_STOP_MS 2000

#define KRC_SHAKE_RECVS 128
#define KRC_SHAKE_SENDS 64
#define KRC_SHAKE_GRH 40 /* bytes before the packet in a receive buffer of a UD queue pair */
#define KRC_SHAKE_STRIDE 256 /* bytes of a receive buffer */
#define KRC_SHAKE_PACKETS 20000 /* packets a second of lanes that there are not */
#define KRC_SHAKE_OF_LANE \
	64 /* packets a second of a lane: each end says something 9 times at most */

/**
 * struct krc_lane_qp - A queue pair of lanes.
 * @list: entry of krc_lanes.spare.
 * @lanes: whose.
 * @qp: it; NULL: it could not be brought to RESET, and was destroyed.
 * @fatal: the device has reported that it is broken; set in any context, without a lock.
 * @used: it is not in INIT any more.
 */
struct krc_lane_qp {
	struct list_head list;
	struct krc_lanes *lanes;
	struct ib_qp *qp;
	bool fatal;
	bool used;
};

/**
 * enum krc_slot - Whether a lane may be held.
 * @KRC_SLOT_SHUT: not: there is none, or it is not up, or ends.
 * @KRC_SLOT_OPEN: it may.
 * @KRC_SLOT_STOPPING: nobody gets it any more; its holder is to give it back.
 * @KRC_SLOT_BROKEN: likewise, and its queue pair is to be given up.
 * @KRC_SLOT_RESETTING: its queue pair is in ERR; RESET follows when nobody holds it.
 * @KRC_SLOT_STATES: how many there are.
 */
enum krc_slot {
	KRC_SLOT_SHUT,
	KRC_SLOT_OPEN,
	KRC_SLOT_STOPPING,
	KRC_SLOT_BROKEN,
	KRC_SLOT_RESETTING,
	KRC_SLOT_STATES,
};

/**
 * struct krc_lane_slot - A lane, beside its machine.
 * @e: its machine, which has it for good; NULL: a lane of the port to itself.
 * @own: its queue pair, or NULL. Changed by the work item, which may read it without the lock.
 * @other: of a lane to itself, the other end.
 * @peer: whom it reaches, and where packets for it go. As @own.
 * @key_id: of the key that the peer uses, if @keyed. The work item's.
 * @keyed: see there.
 * @state: enum krc_slot.
 * @opened: it was OPEN.
 * @holder: holder that has it, or NULL.
 * @breaker: holder that has released it as broken, until it is in RESET.
 * @until_ns: when its machine is to be pulled. The work item's.
 * @reset_by_ns: RESETTING: when it goes to RESET whoever holds it. The work item's, as what follows.
 * @close_ns: when CLOSE is said again.
 * @closes: how often it is.
 * @heard_ns: when the second began in which @heard packets have come.
 * @heard: see there.
 * @spared: how often it was not closed as idle, since the peer may need it, without use here; under
 *	the lock.
 */
struct krc_lane_slot {
	struct krp_lanes_entry *e;
	struct krc_lane_qp *own;
	struct krc_lane_qp *other;
	struct krc_lane_peer peer;
	u8 key_id[KRP_KEY_ID_BYTES];
	bool keyed;
	u8 state;
	bool opened;
	struct krc_lane_holder *holder;
	struct krc_lane_holder *breaker;
	u64 until_ns;
	u64 reset_by_ns;
	u64 close_ns;
	u64 heard_ns;
	u8 heard;
	u8 closes;
	u8 spared;
};

/**
 * struct krc_lane_look - A look-up for a REQUEST that no key proves.
 * @work: does it.
 * @lanes: of the port.
 * @packet: the REQUEST.
 * @value: record.
 * @begun_ns: when it began.
 * @err: what came of it.
 * @busy: it is under way, or not dealt with. The work item's.
 * @done: it is over.
 */
struct krc_lane_look {
	struct work_struct work;
	struct krc_lanes *lanes;
	struct krp_lane_packet packet;
	struct krp_value value;
	u64 begun_ns;
	int err;
	bool busy;
	bool done;
};

/**
 * struct krc_shake_send - A packet that is sent.
 * @ah: where to; NULL: the place is free.
 */
struct krc_shake_send {
	struct ib_ah *ah;
};

/**
 * struct krc_shake - The UD queue pair of a port. All of it is the work item's.
 * @cq: completions of both kinds.
 * @qp: it.
 * @qkey: its Q_Key, random.
 * @recv: KRC_SHAKE_RECVS buffers of KRC_SHAKE_STRIDE bytes.
 * @recv_dma: their DMA address.
 * @packets: KRC_SHAKE_SENDS packets.
 * @packets_dma: their DMA address.
 * @sends: by packet.
 * @secret: of cookies.
 * @lookups: which GIDs are looked up.
 * @looks: look-ups.
 * @tokens: packets that may still come in this second, beside those of lanes that there are.
 * @known_tokens: likewise, in the names of ports that this one knows, when those are spent.
 * @tokens_ns: when this second began.
 * @broken: the queue pair has failed.
 * @broken_ns: when that was seen; 0: it was not, or it is mended.
 * @mends: how often that was.
 * @malformed: packets dropped that krp_lane_check() refuses.
 * @unproved: packets dropped that no key proves, or that name one where there is none.
 * @said_ns: when that was logged last; 0: never.
 * @dropped: packets dropped that came too fast, or could not be sent.
 */
struct krc_shake {
	struct ib_cq *cq;
	struct ib_qp *qp;
	u32 qkey;
	u8 *recv;
	u64 recv_dma;
	struct krp_lane_packet *packets;
	u64 packets_dma;
	struct krc_shake_send sends[KRC_SHAKE_SENDS];
	siphash_key_t secret;
	struct krp_listen_lookups lookups;
	struct krc_lane_look looks[KRC_LANES_LOOKS];
	u32 tokens;
	u32 known_tokens;
	u64 tokens_ns;
	bool broken;
	u64 broken_ns;
	u64 mends;
	u64 malformed;
	u64 unproved;
	u64 said_ns;
	u64 dropped;
};

/**
 * struct krc_lane_payer - Somebody who has had lanes made, while there are any. The work item's.
 * @list: entry of krc_lanes.payers.
 * @who: krc_lane_holder.payer.
 * @counted: that payer, which is counted meanwhile; zero: it is none that limits.h knows.
 * @account: in the table.
 */
struct krc_lane_payer {
	struct list_head list;
	const void *who;
	struct krc_payer counted;
	struct krp_lanes_payer account;
};

/**
 * struct krc_lanes - All lanes of a port.
 * @hw: device; constant, as what follows up to @services.
 * @port: its number.
 * @gid_index: of its address.
 * @queues: what queue pairs use.
 * @max_rd: READs and atomics that a queue pair takes at once.
 * @services: what the node knows.
 * @lock: see the head of the file.
 * @table: krp_lanes.h.
 * @users: payer of the lanes that this node has made on nobody's account.
 * @payers: all others that have lanes. The work item's, as @payers_nr.
 * @payers_nr: how many.
 * @slots: by entry of the table.
 * @loops: lanes of the port to itself, by index.
 * @waiting: holders that wait, first come first.
 * @calls: holders that are to be called.
 * @calling: holder that is being called.
 * @runs: somebody works on @calls.
 * @started: lanes are made.
 * @stopping: they end.
 * @killing: they end at once.
 * @closed: all were asked to close since. The work item's, as what follows.
 * @round: of krc_lanes_want_next().
 * @spare: queue pairs in INIT.
 * @spare_nr: how many.
 * @dead: queue pairs that are to be destroyed.
 * @reap: destroys them.
 * @qps: queue pairs that there are; not under the lock.
 * @shake: packets.
 * @wait: woken, under the lock, when a queue pair is in RESET, an upcall has returned, or a lane has
 *	ended.
 * @wq: of @work.
 * @work: the work item.
 */
struct krc_lanes {
	struct krc_hw *hw;
	u32 port;
	u16 gid_index;
	struct krc_lanes_queues queues;
	u8 max_rd;
	struct krc_hw_lanes services;
	spinlock_t lock;
	struct krp_lanes table;
	struct krp_lanes_payer users;
	struct list_head payers;
	u32 payers_nr;
	struct krc_lane_slot *slots;
	struct krc_lane_slot loops[KRP_LANE_INDEXES];
	struct list_head waiting;
	struct list_head calls;
	struct krc_lane_holder *calling;
	bool runs;
	bool started;
	bool stopping;
	bool killing;
	bool closed;
	u32 round;
	struct list_head spare;
	u32 spare_nr;
	struct list_head dead;
	struct work_struct reap;
	atomic_t qps;
	struct krc_shake shake;
	wait_queue_head_t wait;
	struct workqueue_struct *wq;
	struct delayed_work work;
};

/**
 * krc_lane_slot_of() - The slot of a machine.
 * @lanes: of the port.
 * @e: entry of its table.
 *
 * Context: any.
 * Return: it.
 */
static inline struct krc_lane_slot *krc_lane_slot_of(struct krc_lanes *lanes,
						     const struct krp_lanes_entry *e)
{
	return &lanes->slots[e - lanes->table.mem.entry];
}

/* lanes.c */

extern const struct krp_lanes_conf krc_lanes_conf; /* of each port */

/**
 * krc_lanes_alike() - Whether who wants a lane of an index may have one of another.
 * @a: index.
 * @b: the other one.
 *
 * Context: any.
 * Return: whether both are for messages, or for what is none.
 */
static inline bool krc_lanes_alike(u32 a, u32 b)
{
	return (a == KRC_LANE_MESSAGES) == (b == KRC_LANE_MESSAGES);
}

/**
 * krc_lanes_kick() - Have the work item run soon.
 * @lanes: of the port.
 *
 * Context: any; no lock needed.
 */
void krc_lanes_kick(struct krc_lanes *lanes);

/**
 * krc_lane_enter() - The one place where the state of a slot changes.
 * @slot: slot.
 * @to: new state.
 *
 * Context: krc_lanes.lock held.
 * Return: whether there is a way from the old state to that one; if not, nothing has changed.
 */
bool krc_lane_enter(struct krc_lane_slot *slot, enum krc_slot to);

/**
 * krc_lane_offer() - Give a lane to the first holder that waits for it.
 * @lanes: of the port.
 * @slot: lane; nothing happens unless it is OPEN and nobody has it.
 *
 * Context: krc_lanes.lock held; krc_lanes_call() is to be called without.
 */
void krc_lane_offer(struct krc_lanes *lanes, struct krc_lane_slot *slot);

/**
 * krc_lane_lose() - A holder gets no lane, or has lost its own.
 * @lanes: of the port.
 * @holder: WAITS, and wants nothing then; or HAS, and is told once.
 * @err: see struct krc_lane_holder.
 *
 * Context: krc_lanes.lock held; krc_lanes_call() is to be called without.
 */
void krc_lane_lose(struct krc_lanes *lanes, struct krc_lane_holder *holder, int err);

/**
 * krc_lane_detach() - Take a lane from a holder that does not give it back.
 * @slot: lane.
 *
 * Context: krc_lanes.lock held.
 */
void krc_lane_detach(struct krc_lane_slot *slot);

/**
 * krc_lanes_call() - Make the upcalls that are due.
 * @lanes: of the port.
 *
 * Context: any but hard interrupts, without the lock.
 */
void krc_lanes_call(struct krc_lanes *lanes);

/**
 * krc_lanes_called() - Whether nobody is called, or will be.
 * @lanes: of the port.
 *
 * Context: any but hard interrupts, without the lock.
 * Return: whether.
 */
bool krc_lanes_called(struct krc_lanes *lanes);

/* drive.c */

/**
 * krc_lanes_run() - The work item.
 * @work: krc_lanes.work.
 *
 * Context: process.
 */
void krc_lanes_run(struct work_struct *work);

/**
 * krc_lane_pull() - Do what a machine says is to be done.
 * @lanes: of the port.
 * @e: machine, not FREE.
 *
 * Context: the work item.
 */
void krc_lane_pull(struct krc_lanes *lanes, struct krp_lanes_entry *e);

/**
 * krc_lane_adopt() - A machine has been made for a lane.
 * @lanes: of the port.
 * @e: machine.
 * @qp: queue pair, in INIT.
 * @peer: whom it reaches.
 *
 * Context: krc_lanes.lock held; the work item.
 */
void krc_lane_adopt(struct krc_lanes *lanes, struct krp_lanes_entry *e, struct krc_lane_qp *qp,
		    const struct krc_lane_peer *peer);

/* payer.c */

/**
 * krc_lane_payer_get() - On whose account a lane is made now; how many that one may have is settled.
 * @lanes: of the port.
 * @who: krc_lane_holder.payer.
 *
 * Context: the work item, without the lock; may sleep.
 * Return: the account, valid until krc_lane_payers_tend(); NULL: there is no memory.
 */
struct krp_lanes_payer *krc_lane_payer_get(struct krc_lanes *lanes, const void *who);

/**
 * krc_lane_payers_tend() - Forget those who have no lane any more.
 * @lanes: of the port.
 *
 * Context: the work item, or when it does not run any more; without the lock.
 */
void krc_lane_payers_tend(struct krc_lanes *lanes);

/* shake.c */

/**
 * krc_shake_create() - Make the UD queue pair.
 * @lanes: of the port.
 * @value: ud_qpn and ud_qkey are set.
 *
 * Context: may sleep.
 * Return: 0, -ENOMEM, or what the device says; krc_shake_destroy() is to be called in any case.
 */
int krc_shake_create(struct krc_lanes *lanes, struct krp_value *value);

/**
 * krc_shake_start() - Receive packets.
 * @lanes: of the port.
 *
 * Context: may sleep.
 * Return: 0, or what the device says.
 */
int krc_shake_start(struct krc_lanes *lanes);

/**
 * krc_shake_stop() - Wait for look-ups.
 * @lanes: of the port, whose work item neither runs nor is queued.
 *
 * Context: may sleep.
 */
void krc_shake_stop(struct krc_lanes *lanes);

/**
 * krc_shake_destroy() - Destroy the UD queue pair.
 * @lanes: of the port.
 *
 * Context: may sleep.
 */
void krc_shake_destroy(struct krc_lanes *lanes);

/**
 * krc_shake_run() - Handle packets and look-ups.
 * @lanes: of the port.
 *
 * Context: the work item.
 * Return: whether there may be more.
 */
bool krc_shake_run(struct krc_lanes *lanes);

/**
 * krc_shake_broken() - Whether the UD queue pair has failed, and is to be made to work again.
 * @lanes: of the port.
 *
 * Context: the work item.
 * Return: whether krc_shake_run() has to come soon.
 */
bool krc_shake_broken(const struct krc_lanes *lanes);

/**
 * krc_shake_send() - Send a packet; it may be lost.
 * @lanes: of the port.
 * @peer: where to.
 * @key_id: of the key that signs it; NULL: the first one, if there is any.
 * @packet: key_id and mac are zero.
 *
 * Context: the work item.
 */
void krc_shake_send(struct krc_lanes *lanes, const struct krc_lane_peer *peer, const u8 *key_id,
		    const struct krp_lane_packet *packet);

/* connect.c */

/**
 * krc_lane_way() - The way to a peer, as verbs want it.
 * @lanes: of the port.
 * @peer: peer.
 * @ret_attr: out.
 *
 * Context: any.
 */
void krc_lane_way(const struct krc_lanes *lanes, const struct krc_lane_peer *peer,
		  struct rdma_ah_attr *ret_attr);

/**
 * krc_lane_qp_take() - Take a queue pair in INIT.
 * @lanes: of the port.
 *
 * Context: the work item.
 * Return: it, or NULL: none can be made.
 */
struct krc_lane_qp *krc_lane_qp_take(struct krc_lanes *lanes);

/**
 * krc_lane_qp_put() - Give one back. One that was connected is destroyed soon.
 * @lanes: of the port.
 * @qp: in INIT, or in RESET and rested; or NULL.
 *
 * Context: the work item.
 */
void krc_lane_qp_put(struct krc_lanes *lanes, struct krc_lane_qp *qp);

/**
 * krc_lane_qp_free() - Destroy one.
 * @qp: queue pair, or NULL.
 *
 * Context: may sleep.
 */
void krc_lane_qp_free(struct krc_lane_qp *qp);

/**
 * krc_lane_qp_connect() - Bring a queue pair to RTR and RTS.
 * @lanes: of the port.
 * @qp: in INIT.
 * @to: whom it reaches.
 * @own: this end.
 * @peer: the other one.
 *
 * Context: the work item.
 * Return: 0, or what the device says.
 */
int krc_lane_qp_connect(struct krc_lanes *lanes, struct krc_lane_qp *qp,
			const struct krc_lane_peer *to, const struct krp_lane_end *own,
			const struct krp_lane_end *peer);

/**
 * krc_lane_qp_move() - Bring a queue pair to ERR; it is not connected again.
 * @qp: queue pair.
 * @to: IB_QPS_ERR.
 *
 * Context: the work item.
 * Return: 0, or what the device says.
 */
int krc_lane_qp_move(struct krc_lane_qp *qp, enum ib_qp_state to);

/**
 * krc_lane_qps_reap() - Destroy queue pairs that are used up.
 * @work: krc_lanes.reap.
 *
 * Context: process.
 */
void krc_lane_qps_reap(struct work_struct *work);

/**
 * krc_lane_qps_refill() - Keep some in INIT.
 * @lanes: of the port.
 *
 * Context: the work item, or before it runs.
 */
void krc_lane_qps_refill(struct krc_lanes *lanes);

#endif /* KRC_LANES_PRIV_H */
