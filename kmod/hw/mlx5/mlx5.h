/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: declarations shared by the files of the mlx5 provider. It drives DC on the unmodified
 * inbox driver through symbols that mlx5_core exports, since mlx5_ib refuses DC to kernel
 * callers. Commands and their values are those that mlx5_ib sends for the same objects of a
 * user (drivers/infiniband/hw/mlx5/qp.c, srq.c, mr.c).
 *
 * Numbers: each request takes two basic blocks of 64 bytes, so an entry of a send queue never
 * wraps, and its number is half of its first block's.
 * Locking: the caller serialises creation and destruction, and all use of one initiator; a channel
 * of the pool polls none while its work item resets it. The event handler reads the tables of
 * targets and initiators in interrupts; an object that was erased from its table gets no upcall
 * any more.
 */
#ifndef KRC_MLX5_H
#define KRC_MLX5_H

#include <linux/completion.h>
#include <linux/mlx5/cq.h>
#include <linux/mlx5/device.h>
#include <linux/mlx5/driver.h>
#include <linux/mlx5/qp.h>
#include <linux/notifier.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>

#include "base/turns.h"
#include "hw/provider.h"
#include "hw/rest.h"
#include "krp_ioctl.h"

#define KRC_MLX5_DEPTH_MAX 1024 /* requests of an initiator; krc_hw_attr */
#define KRC_MLX5_RECV_DEPTH_MAX 16383 /* receive buffers of a target; krc_hw_attr */
#define KRC_MLX5_WR_BLOCKS 2 /* basic blocks of a request */
#define KRC_MLX5_HOP_LIMIT 64
#define KRC_MLX5_PORTS_MAX 4 /* of a device; mlx5 knows two */
#define KRC_MLX5_CQE_V1 1 /* capability cqe_version: completions may carry an index */
#define KRC_MLX5_USER_INDEX 0xffffff /* ... but ours carry the number of the queue */
#define KRC_MLX5_LOG_RD_ATOMIC_MAX 4 /* all ConnectX can do 16; peers must agree */

/**
 * struct krc_mlx5_ring - Memory of a queue, shared with the device.
 * @buf: its pages.
 * @fbc: layout of the entries in @buf.
 * @db: doorbell record.
 */
struct krc_mlx5_ring {
	struct mlx5_frag_buf buf;
	struct mlx5_frag_buf_ctrl fbc;
	struct mlx5_db db;
};

/**
 * struct krc_mlx5_cq - A completion queue.
 * @mcq: mlx5_core's part.
 * @ring: entries.
 * @log_size: log2 of their number.
 */
struct krc_mlx5_cq {
	struct mlx5_core_cq mcq;
	struct krc_mlx5_ring ring;
	u32 log_size;
};

/**
 * struct krc_mlx5_rmp - A receive pool of the device.
 * @rmpn: number.
 * @ring: entries.
 */
struct krc_mlx5_rmp {
	u32 rmpn;
	struct krc_mlx5_ring ring;
};

/**
 * struct krc_mlx5_receive - Receives of a target; see receive.c.
 * @hw: device.
 * @owner: argument of the upcalls.
 * @port: port.
 * @rmp: buffers.
 * @cq: completions; an entry for each of @rmp, so it cannot overflow.
 * @depth: most buffers posted and not polled.
 * @mask: number of entries - 1, a power of two above @depth.
 * @used: buffers posted and not polled.
 * @posted: buffers ever posted; wraps.
 * @head: entry for the next buffer.
 * @tail: last free entry.
 * @cookies: by entry.
 * @busy: by entry: a buffer is posted there.
 *
 * Used by one caller at a time; see hw/provider.h.
 */
struct krc_mlx5_receive {
	struct krc_hw *hw;
	void *owner;
	u32 port;
	struct krc_mlx5_rmp rmp;
	struct krc_mlx5_cq cq;
	u32 depth;
	u32 mask;
	u32 used;
	u32 posted;
	u16 head;
	u16 tail;
	u64 *cookies;
	unsigned long *busy;
};

/**
 * struct krc_mlx5_port - A port of an open device.
 * @fabric: packet settings.
 * @pkey_index: index of the partition in the port's table.
 * @mtu: packet size of its initiators, enum ib_mtu; 0 if there is none.
 */
struct krc_mlx5_port {
	struct krc_hw_fabric fabric;
	u16 pkey_index;
	u8 mtu;
};

/**
 * struct krc_hw - An open device.
 * @ibdev: device.
 * @mdev: its mlx5_core device.
 * @events: upcalls.
 * @owner: argument of events->device_fatal.
 * @attr: capabilities.
 * @pd: for address handles, which resolve MAC addresses.
 * @uar: doorbell page.
 * @pdn: protection domain of all keys and queues.
 * @xrcdn: XRC domain; initiators name one, though they receive nothing.
 * @rmp: receive pool that initiators name, and targets that are made without receives. Nothing
 *	is ever posted to it: no message of a peer is received there.
 * @rcq: completion queue that those targets name; nothing completes there.
 * @nb: notifier for events of mlx5_core.
 * @targets: struct krc_hw_target by number.
 * @initiators: struct krc_hw_initiator by number.
 * @key_variant: low byte of the next key, unless the index demands another.
 * @resting: names of remote keys that are in use, or were.
 * @key_pages_max: most pages that one key lists; KRC_MLX5_KEY_PAGES, fewer in tests.
 * @key_turns: commands for keys of programs that may be under way at once, in turns by payers.
 * @key_wq: issues those commands.
 * @lag_port: counts targets, which are spread over the ports of a bond in turn.
 * @atomic_mode: mkc and dctc value; 0 without atomics.
 * @log_rd_atomic: log2 of the READs and atomics in flight at once.
 * @ports: by number; index 0 is not used.
 * @roce: the ports are Ethernet.
 */
struct krc_hw {
	struct ib_device *ibdev;
	struct mlx5_core_dev *mdev;
	const struct krc_hw_events *events;
	void *owner;
	struct krc_hw_attr attr;
	struct ib_pd *pd;
	struct mlx5_uars_page *uar;
	u32 pdn;
	u32 xrcdn;
	struct krc_mlx5_rmp rmp;
	struct krc_mlx5_cq rcq;
	struct notifier_block nb;
	struct xarray targets;
	struct xarray initiators;
	atomic_t key_variant;
	struct krc_rests resting;
	u32 key_pages_max;
	struct krc_turns key_turns;
	struct workqueue_struct *key_wq;
	atomic_t lag_port;
	u8 atomic_mode;
	u8 log_rd_atomic;
	struct krc_mlx5_port ports[KRC_MLX5_PORTS_MAX + 1];
	bool roce;
};

/**
 * struct krc_hw_target - A DC target.
 * @hw: device.
 * @port: port.
 * @dctn: number.
 * @receive: its receives; NULL: none.
 * @drained: completed by the event that no initiator is connected any more.
 */
struct krc_hw_target {
	struct krc_hw *hw;
	u32 port;
	u32 dctn;
	struct krc_mlx5_receive *receive;
	struct completion drained;
};

/**
 * struct krc_mlx5_bell - What an initiator rings.
 * @reg: register of its own, if @half is set.
 * @map: register, two of which @half apart are written to in turn if it is its own.
 * @half: bytes of each of those; 0: it shares a register with others, and pushes nothing.
 * @at: the one to be written to next: 0 or @half.
 * @page: number of its doorbell page, for the queue's context.
 */
struct krc_mlx5_bell {
	struct mlx5_sq_bfreg reg;
	void __iomem *map;
	u32 half;
	u32 at;
	u32 page;
};

/**
 * struct krc_hw_initiator - A DC initiator.
 * @hw: device.
 * @owner: argument of the upcalls.
 * @cq: completions.
 * @sq: send queue.
 * @bell: how the device is told of its requests.
 * @qpn: number.
 * @port: port.
 * @gid_index: source address.
 * @sport: XORed into the UDP source port, so that initiators differ in it; 0 on InfiniBand.
 * @mtu: packet size, enum ib_mtu.
 * @ack_timeout: InfiniBand encoding.
 * @depth: most outstanding requests.
 * @mask: size of @cookies - 1, where the size is a power of two of at least @depth.
 * @head: requests appended; wraps.
 * @tail: requests completed; wraps.
 * @rung: value of @head at the last doorbell.
 * @ready: in RTS: requests are accepted; without a lock.
 * @cookies: of the requests between @tail and @head.
 *
 * Used by one caller at a time; see hw/provider.h.
 */
struct krc_hw_initiator {
	struct krc_hw *hw;
	void *owner;
	struct krc_mlx5_cq cq;
	struct krc_mlx5_ring sq;
	struct krc_mlx5_bell bell;
	u32 qpn;
	u32 port;
	u16 gid_index;
	__be16 sport;
	u8 mtu;
	u8 ack_timeout;
	u32 depth;
	u32 mask;
	u32 head;
	u32 tail;
	u32 rung;
	bool ready;
	u64 *cookies;
};

/* cmd.c */

/**
 * krc_mlx5_is_down() - Whether the device has stopped working.
 * @hw: device.
 *
 * Context: any.
 * Return: true if it is in an internal error or gone from its bus.
 */
bool krc_mlx5_is_down(const struct krc_hw *hw);

/**
 * krc_mlx5_simple() - Run a command whose only parameter is an object's number: destroy, drain,
 *	reset, deallocate. Retried for a second if the kernel has no memory for it.
 * @hw: device.
 * @opcode: MLX5_CMD_OP_*.
 * @id: number, 24 bits.
 *
 * Context: may sleep.
 * Return: 0 or a negative errno.
 */
int krc_mlx5_simple(struct krc_hw *hw, u16 opcode, u32 id);

/**
 * krc_mlx5_released() - Whether memory of an object may be freed after its destroy command.
 * @hw: device.
 * @err: outcome of the command.
 * @what: kind of object, for the log.
 * @id: its number.
 *
 * A working device that refused the command may still write to that memory.
 *
 * Context: any.
 * Return: true if the object is gone, or the device is.
 */
bool krc_mlx5_released(struct krc_hw *hw, int err, const char *what, u32 id);

/* ring.c */

/**
 * krc_mlx5_ring_create() - Allocate zeroed memory for a queue.
 * @hw: device.
 * @ring: out.
 * @log_stride: log2 of the bytes of an entry.
 * @log_size: log2 of the number of entries.
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int krc_mlx5_ring_create(struct krc_hw *hw, struct krc_mlx5_ring *ring, u32 log_stride,
			 u32 log_size);

/**
 * krc_mlx5_ring_destroy() - Free the memory of a queue.
 * @hw: device.
 * @ring: ring.
 *
 * Context: may sleep.
 */
void krc_mlx5_ring_destroy(struct krc_hw *hw, struct krc_mlx5_ring *ring);

/**
 * krc_mlx5_ring_entry() - Address of an entry.
 * @ring: ring.
 * @i: index, less than the size.
 *
 * Context: any.
 * Return: address.
 */
static inline void *krc_mlx5_ring_entry(struct krc_mlx5_ring *ring, u32 i)
{
	return mlx5_frag_buf_get_wqe(&ring->fbc, i);
}

/**
 * krc_mlx5_ring_page_shift() - log_page_size as commands take it: in units of 4 KiB.
 * @ring: ring.
 *
 * Context: any.
 * Return: log2 of the page size in those units.
 */
static inline u32 krc_mlx5_ring_page_shift(const struct krc_mlx5_ring *ring)
{
	return ring->buf.page_shift - MLX5_ADAPTER_PAGE_SHIFT;
}

/* doorbell.c */

/**
 * krc_mlx5_bell_create() - Choose what an initiator rings.
 * @hw: device.
 * @bell: zeroed; filled in. One of its own, if requests can be pushed and the device has one left,
 *	else the one that all share.
 *
 * Context: may sleep.
 */
void krc_mlx5_bell_create(struct krc_hw *hw, struct krc_mlx5_bell *bell);

/**
 * krc_mlx5_bell_destroy() - Give it back.
 * @hw: device.
 * @bell: no queue of the device uses it any more.
 *
 * Context: may sleep.
 */
void krc_mlx5_bell_destroy(struct krc_hw *hw, struct krc_mlx5_bell *bell);

/**
 * krc_mlx5_bell_leak() - Keep it for ever: the device has not destroyed a queue that it rings, so its
 *	page must not become somebody else's.
 * @bell: bell; shared and so not to be given back from here on.
 *
 * Context: any.
 */
static inline void krc_mlx5_bell_leak(struct krc_mlx5_bell *bell)
{
	bell->half = 0;
}

/**
 * krc_mlx5_bell_ring() - Tell the device of requests, whose number the doorbell record has.
 * @bell: bell.
 * @request: the last of them, KRC_MLX5_WR_BLOCKS blocks of the send queue.
 * @alone: it is the only one since the bell was rung before: it may be pushed.
 *
 * Context: any but hard interrupts, serialised by the caller.
 */
void krc_mlx5_bell_ring(struct krc_mlx5_bell *bell, const void *request, bool alone);

/**
 * krc_mlx5_ring_doorbell() - krc_provider_ops.ring of mlx5.
 * @ini: initiator.
 *
 * Context: any but hard interrupts, serialised by the caller.
 */
void krc_mlx5_ring_doorbell(struct krc_hw_initiator *ini);

/* cq.c */

/**
 * krc_mlx5_cq_create() - Make a completion queue.
 * @hw: device.
 * @cq: out; mcq.comp and mcq.event are set already.
 * @log_size: log2 of the number of entries.
 * @vector: completion vector, modulo their number.
 *
 * Context: may sleep.
 * Return: 0 or a negative errno.
 */
int krc_mlx5_cq_create(struct krc_hw *hw, struct krc_mlx5_cq *cq, u32 log_size, u32 vector);

/**
 * krc_mlx5_cq_destroy() - Destroy a completion queue.
 * @hw: device.
 * @cq: completion queue.
 *
 * Context: may sleep. No upcall runs or comes after it returns.
 */
void krc_mlx5_cq_destroy(struct krc_hw *hw, struct krc_mlx5_cq *cq);

/**
 * krc_mlx5_cq_next() - Take the next completion.
 * @cq: completion queue.
 *
 * Context: any, serialised by the caller.
 * Return: the entry, or NULL: none. The next mlx5_cq_set_ci() returns it to the device.
 */
static __always_inline struct mlx5_cqe64 *krc_mlx5_cq_next(struct krc_mlx5_cq *cq)
{
	u32 size = 1U << cq->log_size, n = cq->mcq.cons_index;
	struct mlx5_cqe64 *cqe = krc_mlx5_ring_entry(&cq->ring, n & (size - 1));
	u8 op_own = READ_ONCE(cqe->op_own);

	if (op_own >> 4 == MLX5_CQE_INVALID || (op_own & MLX5_CQE_OWNER_MASK) != !!(n & size))
		return NULL;
	dma_rmb(); /* the rest of the entry was written before op_own */
	cq->mcq.cons_index++;
	return cqe;
}

/**
 * krc_mlx5_failed() - Translate the completion of a request that failed.
 * @cqe: completion.
 * @wc: out: fault, syndrome and vendor.
 *
 * Context: any.
 */
void krc_mlx5_failed(const struct mlx5_cqe64 *cqe, struct krc_wc *wc);

/**
 * krc_mlx5_fault() - Translate a completion into an outcome.
 * @cqe: completion of a request.
 * @wc: out: fault, syndrome and vendor.
 *
 * Context: any.
 */
static inline void krc_mlx5_fault(const struct mlx5_cqe64 *cqe, struct krc_wc *wc)
{
	if (unlikely(cqe->op_own >> 4 != MLX5_CQE_REQ)) {
		krc_mlx5_failed(cqe, wc);
		return;
	}
	wc->fault = KRC_FAULT_NONE;
	wc->syndrome = 0;
	wc->vendor = 0;
}

/**
 * krc_mlx5_recv_fault() - Translate the completion of a receive.
 * @cqe: completion.
 * @wc: out: all but the cookie.
 *
 * Context: any.
 */
void krc_mlx5_recv_fault(const struct mlx5_cqe64 *cqe, struct krc_recv_wc *wc);

/* wqe.c */

/**
 * krc_mlx5_is_atomic() - Whether an operation is an atomic.
 * @opcode: KRP_OP_* or KRC_HW_SEND.
 *
 * Context: any.
 * Return: whether it is.
 */
static inline bool krc_mlx5_is_atomic(u8 opcode)
{
	return opcode == KRP_OP_CMP_SWAP || opcode == KRP_OP_FETCH_ADD;
}

/**
 * krc_mlx5_wqe_write() - Write a request into the send queue.
 * @ini: initiator; entry @head is free.
 * @wr: request, checked by krc_mlx5_wr_check().
 *
 * Context: any, serialised by the caller.
 */
void krc_mlx5_wqe_write(struct krc_hw_initiator *ini, const struct krc_hw_wr *wr);

/**
 * krc_mlx5_wr_check() - Whether the hardware can execute a request.
 * @hw: device.
 * @wr: request.
 *
 * Context: any.
 * Return: 0 or -EINVAL.
 */
int krc_mlx5_wr_check(const struct krc_hw *hw, const struct krc_hw_wr *wr);

/**
 * krc_mlx5_post() - krc_provider_ops.post of mlx5.
 * @ini: initiator.
 * @wr: request.
 *
 * Context: any but hard interrupts, serialised by the caller.
 * Return: 0, -ENOSPC, -EINVAL, -EIO.
 */
int krc_mlx5_post(struct krc_hw_initiator *ini, const struct krc_hw_wr *wr);

/**
 * krc_mlx5_post_many() - krc_provider_ops.post_many of mlx5.
 * @ini: initiator.
 * @wr: first request.
 * @nr: how many, from 1, linked by krc_hw_wr.next.
 *
 * Context: as krc_mlx5_post().
 * Return: how many are appended, or the error of krc_mlx5_post() of the first.
 */
int krc_mlx5_post_many(struct krc_hw_initiator *ini, const struct krc_hw_wr *wr, u32 nr);

/**
 * krc_mlx5_av_ib_fill() - Fill in an address vector of InfiniBand, except target and key.
 * @av: zeroes.
 * @fabric: packet settings of the port.
 * @lid: LID of the peer.
 * @gid_index: own GID.
 * @gid: GID of the peer, if a global route header is needed; else NULL.
 *
 * Context: any.
 */
void krc_mlx5_av_ib_fill(struct mlx5_av *av, const struct krc_hw_fabric *fabric, u16 lid,
			 u16 gid_index, const union ib_gid *gid);

/**
 * krc_mlx5_path_fill() - Fill in the path of an initiator: its own end, and packet settings.
 * @path: an address path of the device (ads), zeroes.
 * @hw: device.
 * @num: port.
 * @gid_index: own GID.
 *
 * Context: any.
 */
void krc_mlx5_path_fill(void *path, const struct krc_hw *hw, u32 num, u16 gid_index);

/**
 * krc_mlx5_sport() - What the UDP source port in the requests of an initiator is XORed with.
 * @qpn: its number.
 *
 * Keeps the port in the range of RoCE. Context: any.
 * Return: the value.
 */
__be16 krc_mlx5_sport(u32 qpn);

/* receive.c */

/**
 * krc_mlx5_rmp_create() - Create a receive pool.
 * @hw: device.
 * @rmp: out.
 * @log_size: log2 of the number of entries, which are linked in their order.
 *
 * Context: may sleep.
 * Return: 0 or a negative errno.
 */
int krc_mlx5_rmp_create(struct krc_hw *hw, struct krc_mlx5_rmp *rmp, u32 log_size);

/**
 * krc_mlx5_rmp_destroy() - Destroy a receive pool.
 * @hw: device.
 * @rmp: pool that no target or initiator names any more.
 *
 * Context: may sleep.
 */
void krc_mlx5_rmp_destroy(struct krc_hw *hw, struct krc_mlx5_rmp *rmp);

/**
 * krc_mlx5_receive_create() - Make what a target receives with.
 * @hw: device.
 * @port: port of the target.
 * @receive: as for krc_mlx5_target_create(); its depth is not 0.
 *
 * Context: may sleep.
 * Return: it, or ERR_PTR(): -EINVAL (the depth), -ENOMEM, or the device's refusal.
 */
struct krc_mlx5_receive *krc_mlx5_receive_create(struct krc_hw *hw, u32 port,
						 const struct krc_hw_receive *receive);

/**
 * krc_mlx5_receive_destroy() - Free it.
 * @rq: receives whose target is gone.
 *
 * Context: may sleep. No upcall runs or comes after it returns.
 */
void krc_mlx5_receive_destroy(struct krc_mlx5_receive *rq);

/**
 * krc_mlx5_receive_failed() - The device has given up a receive pool: tell its owner.
 * @hw: device.
 * @rmpn: number of the pool; nothing happens if it is of no target.
 * @event: what the device has said.
 *
 * Context: any, also hard interrupts.
 */
void krc_mlx5_receive_failed(struct krc_hw *hw, u32 rmpn, unsigned long event);

/* address.c */

/**
 * krc_mlx5_own_address() - Fill in the address of a port.
 * @hw: device.
 * @port: port.
 * @gid_index: index of its GID.
 * @value: out: lid, mac, mtu, sl, port and flags.
 *
 * Context: may sleep.
 * Return: 0, -EINVAL (no such port), -ENETUNREACH (no GID there, or no LID yet).
 */
int krc_mlx5_own_address(struct krc_hw *hw, u32 port, u16 gid_index, struct krp_value *value);

/* Below, those that are operations of struct krc_provider_ops: its comment is their contract. */

/* target.c */

/**
 * krc_mlx5_target_create() - krc_provider_ops.target_create of mlx5.
 * @hw: device.
 * @port: port.
 * @gid_index: index of the port's GID.
 * @dc_key: secret of the target.
 * @receive: receives it is made for; NULL or a depth of 0: none.
 * @value: out: how to reach it.
 *
 * Context: may sleep.
 * Return: the target or ERR_PTR().
 */
struct krc_hw_target *krc_mlx5_target_create(struct krc_hw *hw, u32 port, u16 gid_index, u64 dc_key,
					     const struct krc_hw_receive *receive,
					     struct krp_value *value);

/**
 * krc_mlx5_target_destroy() - krc_provider_ops.target_destroy of mlx5.
 * @target: target.
 *
 * Context: may sleep.
 */
void krc_mlx5_target_destroy(struct krc_hw_target *target);

/* receive.c */

/**
 * krc_mlx5_recv_post() - krc_provider_ops.recv_post of mlx5.
 * @target: target.
 * @cookie: of its completion.
 * @local_addr: address under @lkey.
 * @lkey: key.
 * @bytes: of the buffer.
 *
 * Context: any but hard interrupts, serialised by the caller.
 * Return: 0, -ENOSPC, -EINVAL.
 */
int krc_mlx5_recv_post(struct krc_hw_target *target, u64 cookie, u64 local_addr, u32 lkey,
		       u32 bytes);

/**
 * krc_mlx5_recv_ring() - krc_provider_ops.recv_ring of mlx5.
 * @target: target.
 *
 * Context: as krc_mlx5_recv_post().
 */
void krc_mlx5_recv_ring(struct krc_hw_target *target);

/**
 * krc_mlx5_recv_poll() - krc_provider_ops.recv_poll of mlx5.
 * @target: target.
 * @wc: out: completions.
 * @max: most of them.
 *
 * Context: as krc_mlx5_recv_post().
 * Return: how many.
 */
int krc_mlx5_recv_poll(struct krc_hw_target *target, struct krc_recv_wc *wc, int max);

/**
 * krc_mlx5_recv_arm() - krc_provider_ops.recv_arm of mlx5.
 * @target: target.
 *
 * Context: any; serialised by the caller.
 */
void krc_mlx5_recv_arm(struct krc_hw_target *target);

/* initiator.c */

/**
 * krc_mlx5_initiator_create() - krc_provider_ops.initiator_create of mlx5.
 * @hw: device.
 * @port: port.
 * @gid_index: index of the port's GID.
 * @send: what it is made for; each has a queue of its own, whatever its use.
 *
 * Context: may sleep.
 * Return: the initiator or ERR_PTR().
 */
struct krc_hw_initiator *krc_mlx5_initiator_create(struct krc_hw *hw, u32 port, u16 gid_index,
						   const struct krc_hw_send *send);

/**
 * krc_mlx5_initiator_destroy() - krc_provider_ops.initiator_destroy of mlx5.
 * @ini: initiator.
 *
 * Context: may sleep.
 */
void krc_mlx5_initiator_destroy(struct krc_hw_initiator *ini);

/**
 * krc_mlx5_initiator_halt() - krc_provider_ops.initiator_halt of mlx5.
 * @ini: initiator.
 *
 * Context: may sleep.
 * Return: 0 or a negative errno.
 */
int krc_mlx5_initiator_halt(struct krc_hw_initiator *ini);

/**
 * krc_mlx5_initiator_restart() - krc_provider_ops.initiator_restart of mlx5.
 * @ini: halted initiator.
 *
 * Context: may sleep.
 * Return: 0 or a negative errno.
 */
int krc_mlx5_initiator_restart(struct krc_hw_initiator *ini);

/**
 * krc_mlx5_poll() - krc_provider_ops.poll of mlx5.
 * @ini: initiator.
 * @wc: out: completions.
 * @max: most of them.
 *
 * Context: any but hard interrupts, serialised by the caller.
 * Return: how many.
 */
int krc_mlx5_poll(struct krc_hw_initiator *ini, struct krc_wc *wc, int max);

/**
 * krc_mlx5_arm() - krc_provider_ops.arm of mlx5.
 * @ini: initiator.
 *
 * Context: any; no lock is taken.
 */
void krc_mlx5_arm(struct krc_hw_initiator *ini);

/* key.c */

/* Pages of a key: 512 KiB of a command, which list 256 MiB of memory in pages of 4 KiB. */
#define KRC_MLX5_KEY_PAGES (1U << 16)
/* of some 30 that mlx5_core has for all of the device */
#define KRC_MLX5_KEY_TURNS 4

/**
 * struct krc_mlx5_range - The range and rights of a key.
 * @iova: first address under the key.
 * @bytes: length.
 * @page_shift: log2 of the pages' size.
 * @access: KRP_ACCESS_*.
 */
struct krc_mlx5_range {
	u64 iova;
	u64 bytes;
	u32 page_shift;
	u32 access;
};

/**
 * krc_mlx5_range_pages() - Number of pages that a range touches.
 * @r: range.
 *
 * Context: any.
 * Return: the number.
 */
u64 krc_mlx5_range_pages(const struct krc_mlx5_range *r);

/**
 * krc_mlx5_range_part() - The part of a range that one key of several covers.
 * @r: range.
 * @pages: pages of each part; that of the last may be fewer.
 * @i: which, from 0, less than krc_mlx5_range_pages() / @pages, rounded up.
 *
 * Context: any.
 * Return: the part.
 */
struct krc_mlx5_range krc_mlx5_range_part(const struct krc_mlx5_range *r, u32 pages, u32 i);

/**
 * krc_mlx5_key_umem() - krc_provider_ops.key_umem of mlx5.
 * @hw: device.
 * @umem: pinned memory.
 * @iova: its address under the key.
 * @access: KRP_ACCESS_*.
 * @ret_key: the key; untouched on failure.
 *
 * Context: may sleep.
 * Return: 0 or a negative errno.
 */
int krc_mlx5_key_umem(struct krc_hw *hw, struct ib_umem *umem, u64 iova, u32 access,
		      struct krc_hw_key *ret_key);

/**
 * krc_mlx5_key_dma() - krc_provider_ops.key_dma of mlx5.
 * @hw: device.
 * @dma: DMA address of the memory, and its address under the key.
 * @bytes: length.
 * @access: KRP_ACCESS_*.
 * @ret_key: the key; untouched on failure.
 *
 * Context: may sleep.
 * Return: 0 or a negative errno.
 */
int krc_mlx5_key_dma(struct krc_hw *hw, dma_addr_t dma, size_t bytes, u32 access,
		     struct krc_hw_key *ret_key);

/**
 * krc_mlx5_key_pages() - krc_provider_ops.key_pages of mlx5.
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
int krc_mlx5_key_pages(struct krc_hw *hw, const dma_addr_t *pages, u32 nr, u64 iova, u32 access,
		       struct krc_hw_key *ret_key);

/**
 * krc_mlx5_key_rested() - Whether a new remote key may be used under its name.
 * @hw: device.
 * @mkey: the key: the device's index, and the low byte that was asked for.
 * @now_s: ktime_get_seconds().
 * @ret_variant: out if not: the low byte that a key of this index must have.
 *
 * Context: any.
 * Return: true if no late request of a peer can carry that name.
 */
bool krc_mlx5_key_rested(struct krc_hw *hw, u32 mkey, time64_t now_s, u8 *ret_variant);

/**
 * krc_mlx5_key_destroy() - krc_provider_ops.key_destroy of mlx5.
 * @hw: device.
 * @key: key.
 *
 * Context: may sleep.
 * Return: whether it is gone.
 */
bool krc_mlx5_key_destroy(struct krc_hw *hw, const struct krc_hw_key *key);

/* address.c */

/**
 * krc_mlx5_port_setup() - krc_provider_ops.port_setup of mlx5.
 * @hw: device.
 * @port: port.
 * @fabric: packet settings.
 *
 * Context: may sleep.
 * Return: 0, -EINVAL, -ERANGE, -ENOENT.
 */
int krc_mlx5_port_setup(struct krc_hw *hw, u32 port, const struct krc_hw_fabric *fabric);

/**
 * krc_mlx5_port_settled() - krc_provider_ops.port_settled of mlx5.
 * @hw: device.
 * @port: port, after krc_mlx5_port_setup().
 *
 * Context: any but hard interrupts.
 * Return: false if the partition has another place in the port's table, or none.
 */
bool krc_mlx5_port_settled(const struct krc_hw *hw, u32 port);

/**
 * krc_mlx5_address() - krc_provider_ops.address of mlx5.
 * @hw: device.
 * @port: port.
 * @gid_index: index of the port's GID.
 * @gid: GID of the peer.
 * @value: its record.
 * @ret_address: address vector; untouched on failure.
 *
 * Context: never sleeps long.
 * Return: 0, -EINVAL, -EAFNOSUPPORT, -ENETUNREACH.
 */
int krc_mlx5_address(struct krc_hw *hw, u32 port, u16 gid_index, const union ib_gid *gid,
		     const struct krp_value *value, struct krc_hw_address *ret_address);

/**
 * krc_mlx5_same_target() - krc_provider_ops.same_target of mlx5.
 * @a: address vector of krc_mlx5_address().
 * @b: another.
 *
 * Context: any.
 * Return: whether the number, the DC key and the GID are the same.
 */
bool krc_mlx5_same_target(const struct krc_hw_address *a, const struct krc_hw_address *b);

#endif /* KRC_MLX5_H */
