/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: declarations shared by the files of the provider for NICs without DC. It uses the kernel's
 * verbs alone, and reaches peers by lanes: reliable connections between two ports (lanes.h).
 *
 * An initiator is a ring of requests in memory here, and holds at most one lane at a time, to
 * which it posts those that are for the lane's port; so it behaves as a DC initiator does
 * (initiator.c). A target is what peers find on the other side of their lanes: a protection
 * domain with the keys of the device, and a shared receive queue (target.c).
 *
 * Locking: krc_verbs_target.cq_lock (bottom halves off) is held while completions are taken from the
 * port's queue for what is sent; krc_verbs_initiator.lock (bottom halves off) is inside it, and
 * krc_lanes.lock inside that. Neither is held over krc_lanes_hold() or krc_lanes_release(), which
 * call initiators back. krc_verbs.register_lock (mutex) is outside all of these.
 */
#ifndef KRC_VERBS_H
#define KRC_VERBS_H

#include <linux/irq_poll.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include "base/turns.h"
#include "hw/provider.h"
#include "hw/rest.h"
#include "hw/verbs/lanes.h"
#include "krp_ioctl.h"

#define KRC_VERBS_PORTS_MAX 4 /* of a device */
#define KRC_VERBS_DEPTH_MAX 1024U /* requests of an initiator; krc_hw_attr */
#define KRC_VERBS_RECV_DEPTH_MAX 16383U /* receive buffers of a target; krc_hw_attr */
#define KRC_VERBS_SEND_DEPTH 128U /* requests outstanding on a lane */
#define KRC_VERBS_RD_ATOMIC_MAX 16U /* as initiators of mlx5: peers must agree */
#define KRC_VERBS_HOP_LIMIT 64
#define KRC_VERBS_QUOTA_BYTES (2U << 20) /* or bytes */
#define KRC_VERBS_TIMEOUT_MS 4000 /* that an initiator tries for a lane to one target */
#define KRC_VERBS_QUOTA \
	32U /* requests after which an initiator gives its lane to another that waits */

/**
 * struct krc_verbs_driver - A driver whose source was read: what it needs, and what it can.
 * @id: enum rdma_driver_id.
 * @key_pages: most pages of a key.
 */
struct krc_verbs_driver {
	u32 id;
	u32 key_pages;
};

/**
 * struct krc_verbs_port - A port of a device.
 * @fabric: its packet settings.
 * @pkey_index: of its partition.
 * @target: while there is one.
 */
struct krc_verbs_port {
	struct krc_hw_fabric fabric;
	u16 pkey_index;
	struct krc_verbs_target *target;
};

/**
 * struct krc_verbs - An open device: what struct krc_hw is here.
 * @ibdev: it.
 * @pd: of all queue pairs of lanes, and of all keys.
 * @events: upcalls.
 * @owner: their argument.
 * @driver: its kind.
 * @attr: what it can do.
 * @roce: its ports are Ethernet.
 * @fatal: it has said that it is broken.
 * @handler: hears what it says.
 * @ports: by number.
 * @register_lock: for all that registers keys, below.
 * @register_cq: completions of @register_qp; NULL: there is none of both now.
 * @register_qp: connected to itself; registers keys and nothing else.
 * @register_port: port of @register_qp: the one that was set up last.
 * @key_wq: runs turns.
 * @key_turns: registrations of keys of programs.
 * @resting: names of remote keys that are in use, or were.
 * @keys: by index: those that there are, struct krc_verbs_key; none goes without @register_lock.
 * @restore: registers those again that a peer has undone.
 * @restore_tries: how often it has tried some of them; under @register_lock.
 */
struct krc_verbs {
	struct ib_device *ibdev;
	struct ib_pd *pd;
	const struct krc_hw_events *events;
	void *owner;
	const struct krc_verbs_driver *driver;
	struct krc_hw_attr attr;
	bool roce;
	bool fatal;
	struct ib_event_handler handler;
	struct krc_verbs_port ports[KRC_VERBS_PORTS_MAX + 1];
	struct mutex register_lock;
	struct ib_cq *register_cq;
	struct ib_qp *register_qp;
	u32 register_port;
	struct workqueue_struct *key_wq;
	struct krc_turns key_turns;
	struct krc_rests resting;
	struct xarray keys;
	struct delayed_work restore;
	u32 restore_tries;
};

/**
 * struct krc_verbs_lane_calls - What an initiator asks of lanes: krc_verbs_lane_calls, or a test's.
 * @hold: krc_lanes_hold().
 * @release: krc_lanes_release().
 * @wanted: krc_lanes_wanted().
 * @sync: krc_lanes_sync().
 */
struct krc_verbs_lane_calls {
	void (*hold)(struct krc_lanes *lanes, const struct krc_lane_peer *peer, u32 index, u32 turn,
		     struct krc_lane_holder *holder);
	void (*release)(struct krc_lanes *lanes, struct krc_lane_holder *holder, bool broken);
	enum krc_lane_wish (*wanted)(struct krc_lanes *lanes, const struct krc_lane_holder *holder);
	void (*sync)(struct krc_lanes *lanes, struct krc_lane_holder *holder);
};

extern const struct krc_verbs_lane_calls krc_verbs_lane_calls; /* initiator.c: those of lanes.h */

/**
 * struct krc_verbs_target - What struct krc_hw_target is here: what peers reach at a port, and what its initiators share.
 * @hw: device.
 * @port: port.
 * @lanes: of the port.
 * @calls: how initiators ask for them.
 * @send_cq: completions of all that is sent on lanes.
 * @cq_lock: taken while completions are taken from @send_cq.
 * @iop: takes them in softirq.
 * @initiators: by number, for completions.
 * @next_id: number of the next one.
 * @made: how many there are.
 * @recv_cq: completions of receives.
 * @srq: receive buffers, or NULL: nothing is received.
 * @depth: most of them posted and not polled.
 * @used: how many are.
 * @recv_owner: argument of upcalls.
 */
struct krc_verbs_target {
	struct krc_verbs *hw;
	u32 port;
	struct krc_lanes *lanes;
	const struct krc_verbs_lane_calls *calls;
	struct ib_cq *send_cq;
	spinlock_t cq_lock;
	struct irq_poll iop;
	struct xarray initiators;
	u32 next_id;
	atomic_t made;
	struct ib_cq *recv_cq;
	struct ib_srq *srq;
	u32 depth;
	u32 used;
	void *recv_owner;
};

/**
 * enum krc_verbs_state - Where an initiator is.
 * @KRC_VERBS_IDLE: it has no lane and wants none.
 * @KRC_VERBS_ASKS: it waits for one.
 * @KRC_VERBS_HAS: it has one.
 * @KRC_VERBS_GONE: it has one that is lost to it, and waits for what is outstanding there.
 * @KRC_VERBS_RESTS: there was none for it; it asks again soon.
 * @KRC_VERBS_FAILED: a request has failed: nothing is executed until it was halted and restarted.
 * @KRC_VERBS_HALTED: nothing is executed until it is restarted.
 * @KRC_VERBS_STATES: how many there are.
 */
enum krc_verbs_state {
	KRC_VERBS_IDLE,
	KRC_VERBS_ASKS,
	KRC_VERBS_HAS,
	KRC_VERBS_GONE,
	KRC_VERBS_RESTS,
	KRC_VERBS_FAILED,
	KRC_VERBS_HALTED,
	KRC_VERBS_STATES,
};

/**
 * struct krc_verbs_slot - A request in the ring of an initiator.
 * @wr: it; its address is @to.
 * @to: whom it is for.
 * @payer: on whose account it is.
 * @fault: its outcome, when it is done.
 * @syndrome: enum ib_wc_status.
 * @vendor: what the device adds.
 */
struct krc_verbs_slot {
	struct krc_hw_wr wr;
	struct krc_hw_address to;
	const void *payer;
	u8 fault;
	u8 syndrome;
	u8 vendor;
};

/**
 * struct krc_verbs_initiator - What struct krc_hw_initiator is here: a ring of requests, and the lane
 * that it has. Numbers of requests go round
 * in 32 bits, also over a restart, so that a late completion is of none that there is:
 * @polled <= @done <= @sent <= @rung <= @head.
 * @holder: of the lane.
 * @target: whose lanes it uses.
 * @owner: argument of upcalls.
 * @id: its number there.
 * @index: of its lanes.
 * @depth: most requests appended and not polled.
 * @mask: of a number: its slot.
 * @head: requests appended; the caller's, who serialises.
 * @lock: for all below, and slots before @rung.
 * @state: enum krc_verbs_state.
 * @pumping: somebody runs krc_verbs_pump().
 * @again: who does has to look again.
 * @holds: the lane is its own until krc_lanes_release().
 * @turn: raised when it asks for a lane and when it gives one back: upcalls of another are late.
 * @broken: that lane has failed: nobody else may get it.
 * @armed: an upcall is wanted.
 * @began: when it was halted, a lane had a request whose outcome is not known.
 * @err: KRC_VERBS_GONE, KRC_VERBS_RESTS: what krc_lane_holder.lost said.
 * @asked: it has asked for a lane to @to, and nothing has succeeded there since.
 * @since: jiffies of the first time.
 * @tries: how often it rested since then.
 * @refused: number of the request that a lane has not taken last.
 * @refusals: lanes in a row that have not.
 * @used: requests that were sent since it has the lane.
 * @bytes: of these.
 * @to: whom the lane reaches that it has or wants.
 * @rung: requests that may be sent.
 * @sent: requests posted to a lane.
 * @done: requests whose outcome is known.
 * @polled: requests whose outcome was taken.
 * @rest: ends KRC_VERBS_RESTS, and KRC_VERBS_ASKS after KRC_VERBS_TIMEOUT_MS.
 * @slots: the ring.
 */
struct krc_verbs_initiator {
	struct krc_lane_holder holder;
	struct krc_verbs_target *target;
	void *owner;
	u32 id;
	u32 index;
	u32 depth;
	u32 mask;
	u32 head;
	spinlock_t lock;
	enum krc_verbs_state state;
	bool pumping;
	bool again;
	bool holds;
	bool broken;
	bool armed;
	bool began;
	u32 turn;
	int err;
	bool asked;
	unsigned long since;
	u32 tries;
	u32 refused;
	u32 refusals;
	u32 used;
	u64 bytes;
	struct krc_hw_address to;
	u32 rung;
	u32 sent;
	u32 done;
	u32 polled;
	struct delayed_work rest;
	struct krc_verbs_slot slots[];
};

/**
 * krc_verbs_of() - The device behind the provider's interface.
 * @hw: device of this provider.
 *
 * Context: any.
 * Return: it.
 */
static inline struct krc_verbs *krc_verbs_of(const struct krc_hw *hw)
{
	return (struct krc_verbs *)hw;
}

/**
 * krc_verbs_target_of() - The target behind the provider's interface.
 * @target: target of this provider.
 *
 * Context: any.
 * Return: it.
 */
static inline struct krc_verbs_target *krc_verbs_target_of(struct krc_hw_target *target)
{
	return (struct krc_verbs_target *)target;
}

/**
 * krc_verbs_initiator_of() - The initiator behind the provider's interface.
 * @initiator: initiator of this provider.
 *
 * Context: any.
 * Return: it.
 */
static inline struct krc_verbs_initiator *krc_verbs_initiator_of(struct krc_hw_initiator *initiator)
{
	return (struct krc_verbs_initiator *)initiator;
}

/* device.c */

/**
 * krc_verbs_is_port() - Whether a device has a port of that number, as far as this provider goes.
 * @v: device.
 * @port: number.
 *
 * Context: any.
 * Return: whether it has.
 */
bool krc_verbs_is_port(const struct krc_verbs *v, u32 port);

/* address.c */

/**
 * krc_verbs_port_setup() - krc_provider_ops.port_setup of this provider.
 * @hw: device.
 * @port: port.
 * @fabric: packet settings.
 *
 * Context: may sleep.
 * Return: 0, %-EINVAL, %-ERANGE, %-ENOENT.
 */
int krc_verbs_port_setup(struct krc_hw *hw, u32 port, const struct krc_hw_fabric *fabric);

/**
 * krc_verbs_port_settled() - krc_provider_ops.port_settled of this provider.
 * @hw: device.
 * @port: port, after krc_verbs_port_setup().
 *
 * Context: any but hard interrupts.
 * Return: false if the partition has another place in the port's table, or none.
 */
bool krc_verbs_port_settled(const struct krc_hw *hw, u32 port);

/**
 * krc_verbs_own_address() - krc_provider_ops.own_address of this provider.
 * @hw: device.
 * @port: port.
 * @gid_index: index of its GID.
 * @value: out: lid, mac, mtu, sl, port and flags.
 *
 * Context: may sleep.
 * Return: 0, %-EINVAL (no such port), %-ENETUNREACH (no GID there, or no LID yet).
 */
int krc_verbs_own_address(struct krc_hw *hw, u32 port, u16 gid_index, struct krp_value *value);

/**
 * krc_verbs_address() - krc_provider_ops.address of this provider.
 * @hw: device.
 * @port: port.
 * @gid_index: index of the port's GID.
 * @gid: GID of the peer.
 * @value: its record.
 * @ret_address: a struct krc_lane_peer; untouched on failure.
 *
 * Context: never sleeps long.
 * Return: 0, %-EINVAL (also of a port that makes no lanes), %-EAFNOSUPPORT, %-ENETUNREACH.
 */
int krc_verbs_address(struct krc_hw *hw, u32 port, u16 gid_index, const union ib_gid *gid,
		      const struct krp_value *value, struct krc_hw_address *ret_address);

/**
 * krc_verbs_same_target() - krc_provider_ops.same_target of this provider.
 * @a: of krc_verbs_address().
 * @b: another.
 *
 * Context: any.
 * Return: whether both are the same generation of the same port.
 */
bool krc_verbs_same_target(const struct krc_hw_address *a, const struct krc_hw_address *b);

/* key.c */

/**
 * krc_verbs_keys_init() - Prepare a device for keys.
 * @v: device, zeroed.
 *
 * Context: may sleep.
 * Return: 0 or %-ENOMEM.
 */
int krc_verbs_keys_init(struct krc_verbs *v);

/**
 * krc_verbs_keys_fini() - End that; all keys have been destroyed.
 * @v: device; krc_verbs_keys_init() may have failed.
 *
 * Context: may sleep.
 */
void krc_verbs_keys_fini(struct krc_verbs *v);

/**
 * krc_verbs_key_umem() - krc_provider_ops.key_umem of this provider.
 * @hw: device.
 * @umem: pinned memory, mapped for the device.
 * @iova: its address under the key.
 * @access: KRP_ACCESS_*.
 * @ret_key: the key; untouched on failure.
 *
 * Context: may sleep.
 * Return: 0 or a negative errno.
 */
int krc_verbs_key_umem(struct krc_hw *hw, struct ib_umem *umem, u64 iova, u32 access,
		       struct krc_hw_key *ret_key);

/**
 * krc_verbs_key_dma() - krc_provider_ops.key_dma of this provider.
 * @hw: device.
 * @dma: DMA address of the memory, and its address under the key.
 * @bytes: length.
 * @access: KRP_ACCESS_*.
 * @ret_key: the key; untouched on failure.
 *
 * Context: may sleep.
 * Return: 0 or a negative errno.
 */
int krc_verbs_key_dma(struct krc_hw *hw, dma_addr_t dma, size_t bytes, u32 access,
		      struct krc_hw_key *ret_key);

/**
 * krc_verbs_key_pages() - krc_provider_ops.key_pages of this provider.
 * @hw: device.
 * @pages: DMA addresses of the pages.
 * @nr: how many.
 * @iova: their address under the key.
 * @access: KRP_ACCESS_*.
 * @ret_key: the key; untouched on failure.
 *
 * Context: may sleep.
 * Return: 0 or a negative errno.
 */
int krc_verbs_key_pages(struct krc_hw *hw, const dma_addr_t *pages, u32 nr, u64 iova, u32 access,
			struct krc_hw_key *ret_key);

/**
 * krc_verbs_key_destroy() - krc_provider_ops.key_destroy of this provider.
 * @hw: device.
 * @key: key.
 *
 * Context: may sleep.
 * Return: whether it is gone.
 */
bool krc_verbs_key_destroy(struct krc_hw *hw, const struct krc_hw_key *key);

/**
 * krc_verbs_key_undone() - A peer has taken the rights of a key: have it registered again.
 * @v: device.
 * @rkey: key, by what the completion says; of none that there is: nothing is done.
 *
 * Context: any but hard interrupts.
 */
void krc_verbs_key_undone(struct krc_verbs *v, u32 rkey);

/* target.c */

/**
 * krc_verbs_target_create() - krc_provider_ops.target_create of this provider.
 * @hw: device.
 * @port: port, after krc_verbs_port_setup(); has no target.
 * @gid_index: index of the port's GID.
 * @dc_key: not used: lanes are made by hand-shake.
 * @receive: receives it is made for; NULL or a depth of 0: none.
 * @value: out: how to reach it.
 *
 * Context: may sleep.
 * Return: the target or ERR_PTR().
 */
struct krc_hw_target *krc_verbs_target_create(struct krc_hw *hw, u32 port, u16 gid_index,
					      u64 dc_key, const struct krc_hw_receive *receive,
					      struct krp_value *value);

/**
 * krc_verbs_target_destroy() - krc_provider_ops.target_destroy of this provider.
 * @target: target, whose lanes are stopped; all initiators of its port have been destroyed.
 *
 * Context: may sleep.
 */
void krc_verbs_target_destroy(struct krc_hw_target *target);

/**
 * krc_verbs_lanes_start() - krc_provider_ops.lanes_start of this provider.
 * @target: target.
 * @services: what the node knows.
 *
 * Context: may sleep.
 * Return: 0, %-ENOMEM, %-EINVAL.
 */
int krc_verbs_lanes_start(struct krc_hw_target *target, const struct krc_hw_lanes *services);

/**
 * krc_verbs_lanes_stop() - krc_provider_ops.lanes_stop of this provider.
 * @target: target.
 *
 * Context: may sleep, up to two seconds.
 */
void krc_verbs_lanes_stop(struct krc_hw_target *target);

/**
 * krc_verbs_lanes_stats() - krc_provider_ops.lanes_stats of this provider.
 * @target: target.
 * @ret_stats: out.
 *
 * Context: any but hard interrupts.
 */
void krc_verbs_lanes_stats(struct krc_hw_target *target, struct krc_lanes_stats *ret_stats);

/**
 * krc_verbs_recv_post() - krc_provider_ops.recv_post of this provider; the hardware sees the buffer
 *	at once.
 * @target: target.
 * @cookie: of its completion.
 * @local_addr: address under @lkey.
 * @lkey: key.
 * @bytes: of the buffer.
 *
 * Context: any but hard interrupts, serialised by the caller.
 * Return: 0, %-ENOSPC, %-EINVAL.
 */
int krc_verbs_recv_post(struct krc_hw_target *target, u64 cookie, u64 local_addr, u32 lkey,
			u32 bytes);

/**
 * krc_verbs_recv_ring() - krc_provider_ops.recv_ring of this provider: nothing is left to do.
 * @target: target.
 *
 * Context: as krc_verbs_recv_post().
 */
void krc_verbs_recv_ring(struct krc_hw_target *target);

/**
 * krc_verbs_recv_poll() - krc_provider_ops.recv_poll of this provider.
 * @target: target.
 * @wc: out: completions.
 * @max: most of them.
 *
 * Context: as krc_verbs_recv_post().
 * Return: how many.
 */
int krc_verbs_recv_poll(struct krc_hw_target *target, struct krc_recv_wc *wc, int max);

/**
 * krc_verbs_recv_arm() - krc_provider_ops.recv_arm of this provider.
 * @target: target.
 *
 * Context: any; serialised by the caller.
 */
void krc_verbs_recv_arm(struct krc_hw_target *target);

/* cq.c */

/**
 * krc_verbs_cq_create() - Make the completion queue for what is sent on the lanes of a port.
 * @target: its target; @send_cq is set.
 *
 * Context: may sleep.
 * Return: 0 or a negative errno.
 */
int krc_verbs_cq_create(struct krc_verbs_target *target);

/**
 * krc_verbs_cq_destroy() - Destroy it.
 * @target: its target; no queue pair uses the queue any more.
 *
 * Context: may sleep.
 */
void krc_verbs_cq_destroy(struct krc_verbs_target *target);

/**
 * krc_verbs_cq_poll() - Take completions for all initiators of a port, unless somebody does.
 * @target: its target.
 *
 * Context: any but hard interrupts; no lock of an initiator held.
 */
void krc_verbs_cq_poll(struct krc_verbs_target *target);

/**
 * krc_verbs_cq_flush() - Take all completions that there are.
 * @target: its target.
 *
 * Context: may sleep.
 */
void krc_verbs_cq_flush(struct krc_verbs_target *target);

/**
 * krc_verbs_fault() - What a status means for a request.
 * @status: of its completion.
 *
 * Context: any.
 * Return: the fault.
 */
enum krc_fault krc_verbs_fault(enum ib_wc_status status);

/**
 * krc_verbs_wr_id() - How a completion names a request.
 * @id: number of the initiator.
 * @number: of the request.
 *
 * Context: any.
 * Return: ib_wc.wr_id; the highest bit is clear, unlike that of a pointer to a struct ib_cqe.
 */
static inline u64 krc_verbs_wr_id(u32 id, u32 number)
{
	return (u64)id << 32 | number;
}

/* initiator.c */

/**
 * krc_verbs_completed() - A request on the lane of an initiator has completed.
 * @ini: initiator.
 * @number: of the request, by what the completion says; a late one is of none that there is.
 * @wc: completion.
 *
 * Context: any but hard interrupts. krc_verbs_pump() has to be called then.
 */
void krc_verbs_completed(struct krc_verbs_initiator *ini, u32 number, const struct ib_wc *wc);

/**
 * krc_verbs_pump() - Go on with the requests of an initiator.
 * @ini: initiator.
 *
 * Context: any but hard interrupts; not with its lock.
 */
void krc_verbs_pump(struct krc_verbs_initiator *ini);

/**
 * krc_verbs_initiator_create() - krc_provider_ops.initiator_create of this provider.
 * @hw: device.
 * @port: port, which has a target.
 * @gid_index: not used: that of the target.
 * @send: what it is made for. Lanes have the time-out of their port, and all initiators of a port share
 *	a completion queue.
 *
 * Context: may sleep.
 * Return: the initiator or ERR_PTR(): %-EINVAL, %-ENOMEM, %-ENOSPC: the completion queue of the port
 * could not take what so many may have outstanding.
 */
struct krc_hw_initiator *krc_verbs_initiator_create(struct krc_hw *hw, u32 port, u16 gid_index,
						    const struct krc_hw_send *send);

/**
 * krc_verbs_initiator_destroy() - krc_provider_ops.initiator_destroy of this provider.
 * @initiator: initiator.
 *
 * Context: may sleep.
 */
void krc_verbs_initiator_destroy(struct krc_hw_initiator *initiator);

/**
 * krc_verbs_initiator_halt() - krc_provider_ops.initiator_halt of this provider.
 * @initiator: initiator.
 *
 * Context: may sleep.
 * Return: 0.
 */
int krc_verbs_initiator_halt(struct krc_hw_initiator *initiator);

/**
 * krc_verbs_initiator_began() - krc_provider_ops.initiator_began of this provider.
 * @initiator: halted initiator.
 *
 * Context: any but hard interrupts.
 * Return: whether its oldest request without an outcome was posted to a lane.
 */
bool krc_verbs_initiator_began(struct krc_hw_initiator *initiator);

/**
 * krc_verbs_initiator_restart() - krc_provider_ops.initiator_restart of this provider.
 * @initiator: halted initiator.
 *
 * Context: may sleep.
 * Return: 0.
 */
int krc_verbs_initiator_restart(struct krc_hw_initiator *initiator);

/**
 * krc_verbs_post() - krc_provider_ops.post of this provider.
 * @initiator: initiator.
 * @wr: request.
 *
 * Context: any but hard interrupts, serialised by the caller.
 * Return: 0, %-ENOSPC, %-EINVAL, %-EIO.
 */
int krc_verbs_post(struct krc_hw_initiator *initiator, const struct krc_hw_wr *wr);

/**
 * krc_verbs_ring() - krc_provider_ops.ring of this provider.
 * @initiator: initiator.
 *
 * Context: any but hard interrupts, serialised by the caller.
 */
void krc_verbs_ring(struct krc_hw_initiator *initiator);

/**
 * krc_verbs_poll() - krc_provider_ops.poll of this provider.
 * @initiator: initiator.
 * @wc: out: completions.
 * @max: most of them.
 *
 * Context: any but hard interrupts, serialised by the caller.
 * Return: how many.
 */
int krc_verbs_poll(struct krc_hw_initiator *initiator, struct krc_wc *wc, int max);

/**
 * krc_verbs_arm() - krc_provider_ops.arm of this provider.
 * @initiator: initiator.
 *
 * Context: any but hard interrupts.
 */
void krc_verbs_arm(struct krc_hw_initiator *initiator);

#endif /* KRC_VERBS_H */
