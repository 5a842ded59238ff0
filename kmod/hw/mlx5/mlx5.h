/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: what the files of the mlx5 provider share. It drives DC on the unmodified
 * inbox driver by the symbols that mlx5_core exports; mlx5_ib refuses DC to callers
 * in the kernel. Commands and their values are those that mlx5_ib sends for the same
 * objects of a user (drivers/infiniband/hw/mlx5/qp.c, srq.c, mr.c).
 *
 * Numbers: a request takes two basic blocks of 64 bytes, whatever it is, so entry i
 * of a send queue is always whole, and its number is half of the block's.
 * Locking: creation and destruction are the caller's to serialise. An initiator has a
 * spinlock of its own beside the caller's, because reset may meet a late poll. The
 * tables of targets and initiators are read by the event handler in interrupts; an
 * object that was erased from its table gets no upcall any more.
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

#include "hw/provider.h"

#define KRC_MLX5_DEPTH_MAX 1024 /* requests of an initiator; krc_hw_attr */
#define KRC_MLX5_WR_BLOCKS 2 /* basic blocks of a request */
#define KRC_MLX5_HOP_LIMIT 64
#define KRC_MLX5_PORTS_MAX 4 /* of a device; mlx5 knows two */
#define KRC_MLX5_CQE_V1 1 /* capability cqe_version: completions may carry an index */
#define KRC_MLX5_USER_INDEX 0xffffff /* ... but ours carry the number of the queue */
#define KRC_MLX5_LOG_RD_ATOMIC_MAX 4 /* all ConnectX can do 16; peers must agree */

/**
 * struct krc_mlx5_ring - Memory of a queue, shared with the device.
 * @buf: its pages.
 * @fbc: how to find entries.
 * @db: doorbell record.
 */
struct krc_mlx5_ring {
	struct mlx5_frag_buf buf;
	struct mlx5_frag_buf_ctrl fbc;
	struct mlx5_db db;
};

/**
 * struct krc_mlx5_cq - A completion queue.
 * @mcq: as mlx5_core knows it.
 * @ring: entries.
 * @log_size: log2 of the entries.
 */
struct krc_mlx5_cq {
	struct mlx5_core_cq mcq;
	struct krc_mlx5_ring ring;
	u32 log_size;
};

/**
 * struct krc_mlx5_port - A port of an open device.
 * @fabric: what the network wants.
 * @pkey_index: where the partition is in the port's table.
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
 * @mdev: the same, as mlx5_core knows it.
 * @events: upcalls.
 * @owner: for events->device_fatal.
 * @attr: what it can do.
 * @pd: for address handles, by which MAC addresses are resolved.
 * @uar: doorbell page.
 * @pdn: protection domain of all keys and queues.
 * @xrcdn: XRC domain; initiators name one, though they receive nothing.
 * @rmpn: receive pool of targets and initiators. Nothing is ever posted to it:
 *	a peer that sends a message waits forever.
 * @rmp: its memory.
 * @rcq: completion queue that targets name; nothing completes there.
 * @nb: our place in the list of those whom mlx5_core tells of events.
 * @targets: struct krc_hw_target by number.
 * @initiators: struct krc_hw_initiator by number.
 * @key_variant: low byte of the next key, where it may be any.
 * @resting: by index of a remote key: which low byte is the next one, see key.c.
 * @rests: keys that were put there.
 * @lag_port: counts targets, which take the ports of a bond in turn.
 * @atomic_mode: mkc and dctc value; 0 without atomics.
 * @log_rd_atomic: log2 of the READs and atomics under way at once.
 * @ports: by number; the first is not used.
 * @roce: Ethernet.
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
	u32 rmpn;
	struct krc_mlx5_ring rmp;
	struct krc_mlx5_cq rcq;
	struct notifier_block nb;
	struct xarray targets;
	struct xarray initiators;
	atomic_t key_variant;
	struct xarray resting;
	atomic_t rests;
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
 * @drained: the device says that no initiator is connected any more.
 */
struct krc_hw_target {
	struct krc_hw *hw;
	u32 port;
	u32 dctn;
	struct completion drained;
};

/**
 * struct krc_hw_initiator - A DC initiator.
 * @lock: protects all below it.
 * @hw: device.
 * @owner: for the upcalls.
 * @cq: completions.
 * @sq: send queue.
 * @qpn: number.
 * @port: port.
 * @gid_index: source address.
 * @sport: what makes the UDP source port of a request its own, to be added bit by bit.
 * @mtu: packet size, enum ib_mtu.
 * @ack_timeout: InfiniBand encoding.
 * @depth: most requests at once.
 * @mask: entries of @cookies, less one; at least @depth - 1.
 * @head: requests appended; wraps.
 * @tail: requests completed; wraps.
 * @rung: value of @head at the last doorbell.
 * @ready: in RTS: requests are taken.
 * @cookies: of the requests between @tail and @head.
 */
struct krc_hw_initiator {
	spinlock_t lock;
	struct krc_hw *hw;
	void *owner;
	struct krc_mlx5_cq cq;
	struct krc_mlx5_ring sq;
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

/* device.c */

/**
 * krc_mlx5_is_down() - Whether the device does no work any more.
 * @hw: device.
 *
 * Context: any.
 * Return: true if it is in an internal error or gone from its bus.
 */
bool krc_mlx5_is_down(const struct krc_hw *hw);

/**
 * krc_mlx5_simple() - Run a command whose only parameter is an object's number: one that
 *	ends, stills or gives back. Tried again for a second if the kernel has no memory for it.
 * @hw: device.
 * @opcode: MLX5_CMD_OP_*.
 * @id: number, 24 bits.
 *
 * Context: may sleep.
 * Return: 0 or a negative errno.
 */
int krc_mlx5_simple(struct krc_hw *hw, u16 opcode, u32 id);

/**
 * krc_mlx5_released() - After a command to destroy: may memory of the object be freed?
 * @hw: device.
 * @err: outcome of the command.
 * @what: kind of object, for the log.
 * @id: its number.
 *
 * A device that works and refuses may still write to that memory.
 *
 * Context: any.
 * Return: true if the object is gone, or the device is.
 */
bool krc_mlx5_released(struct krc_hw *hw, int err, const char *what, u32 id);

/* ring.c */

/**
 * krc_mlx5_ring_create() - Get memory for a queue, zeroed.
 * @hw: device.
 * @ring: out.
 * @log_stride: log2 of the bytes of an entry.
 * @log_size: log2 of the entries.
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int krc_mlx5_ring_create(struct krc_hw *hw, struct krc_mlx5_ring *ring, u32 log_stride,
			 u32 log_size);

/**
 * krc_mlx5_ring_destroy() - Give it back.
 * @hw: device.
 * @ring: ring.
 *
 * Context: may sleep.
 */
void krc_mlx5_ring_destroy(struct krc_hw *hw, struct krc_mlx5_ring *ring);

/**
 * krc_mlx5_ring_entry() - Where an entry is.
 * @ring: ring.
 * @i: which; less than its size.
 *
 * Context: any.
 * Return: address.
 */
static inline void *krc_mlx5_ring_entry(struct krc_mlx5_ring *ring, u32 i)
{
	return mlx5_frag_buf_get_wqe(&ring->fbc, i);
}

/* log_page_size of commands: in pages of 4 KiB */
static inline u32 krc_mlx5_ring_page_shift(const struct krc_mlx5_ring *ring)
{
	return ring->buf.page_shift - MLX5_ADAPTER_PAGE_SHIFT;
}

/* cq.c */

/**
 * krc_mlx5_cq_create() - Make a completion queue.
 * @hw: device.
 * @cq: out; mcq.comp and mcq.event are set already.
 * @log_size: log2 of the entries.
 * @vector: completion vector, modulo what there is.
 *
 * Context: may sleep.
 * Return: 0 or a negative errno.
 */
int krc_mlx5_cq_create(struct krc_hw *hw, struct krc_mlx5_cq *cq, u32 log_size, u32 vector);

/**
 * krc_mlx5_cq_destroy() - Destroy it.
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
 * Return: the entry, or NULL. It is the device's again at the next mlx5_cq_set_ci().
 */
struct mlx5_cqe64 *krc_mlx5_cq_next(struct krc_mlx5_cq *cq);

/**
 * krc_mlx5_fault() - What a completion says about the world.
 * @cqe: completion of a request.
 * @wc: out: fault, syndrome and vendor.
 *
 * Context: any.
 */
void krc_mlx5_fault(const struct mlx5_cqe64 *cqe, struct krc_wc *wc);

/* wqe.c */

/**
 * krc_mlx5_wqe_write() - Write a request into the send queue.
 * @ini: initiator; entry @head is free.
 * @wr: request, checked by krc_mlx5_wr_check().
 *
 * Context: any, initiator's lock held.
 */
void krc_mlx5_wqe_write(struct krc_hw_initiator *ini, const struct krc_hw_wr *wr);

/**
 * krc_mlx5_wr_check() - Whether the hardware can do a request.
 * @hw: device.
 * @wr: request.
 *
 * Context: any.
 * Return: 0 or -EINVAL.
 */
int krc_mlx5_wr_check(const struct krc_hw *hw, const struct krc_hw_wr *wr);

/* target.c */

/**
 * krc_mlx5_rmp_create() - Make the receive pool.
 * @hw: device; rmp and rmpn are filled.
 *
 * Context: may sleep.
 * Return: 0 or a negative errno.
 */
int krc_mlx5_rmp_create(struct krc_hw *hw);

/**
 * krc_mlx5_rmp_destroy() - Destroy it.
 * @hw: device.
 *
 * Context: may sleep.
 */
void krc_mlx5_rmp_destroy(struct krc_hw *hw);

/* address.c */

/**
 * krc_mlx5_own_address() - Fill in where a port is reached.
 * @hw: device.
 * @port: port.
 * @gid_index: its GID.
 * @value: out: lid, mac, mtu, sl, port and flags.
 *
 * Context: may sleep.
 * Return: 0, -EINVAL (no such port), -ENETUNREACH (no GID there, or no LID yet).
 */
int krc_mlx5_own_address(struct krc_hw *hw, u32 port, u16 gid_index, struct krp_value *value);

/**
 * krc_mlx5_mtu() - Packet size that a port may use now.
 * @hw: device.
 * @port: port.
 * @active: what the port has, enum ib_mtu.
 *
 * Context: any.
 * Return: enum ib_mtu.
 */
u8 krc_mlx5_mtu(const struct krc_hw *hw, u32 port, u8 active);

/* The operations of struct krc_provider_ops, described there; by file. */

/* target.c */
struct krc_hw_target *krc_mlx5_target_create(struct krc_hw *hw, u32 port, u16 gid_index, u64 dc_key,
					     struct krp_value *value);
void krc_mlx5_target_destroy(struct krc_hw_target *target);

/* initiator.c */
struct krc_hw_initiator *krc_mlx5_initiator_create(struct krc_hw *hw, u32 port, u16 gid_index,
						   u32 depth, u32 ack_timeout, u32 vector,
						   void *owner);
void krc_mlx5_initiator_destroy(struct krc_hw_initiator *ini);
int krc_mlx5_initiator_halt(struct krc_hw_initiator *ini);
int krc_mlx5_initiator_restart(struct krc_hw_initiator *ini);
int krc_mlx5_post(struct krc_hw_initiator *ini, const struct krc_hw_wr *wr);
void krc_mlx5_ring_doorbell(struct krc_hw_initiator *ini);
int krc_mlx5_poll(struct krc_hw_initiator *ini, struct krc_wc *wc, int max);
void krc_mlx5_arm(struct krc_hw_initiator *ini);

/* key.c */
int krc_mlx5_key_umem(struct krc_hw *hw, struct ib_umem *umem, u64 iova, u32 access,
		      struct krc_hw_key *ret_key);
int krc_mlx5_key_dma(struct krc_hw *hw, dma_addr_t dma, size_t bytes, u32 access,
		     struct krc_hw_key *ret_key);
int krc_mlx5_key_pages(struct krc_hw *hw, const dma_addr_t *pages, u32 nr, u64 iova, u32 access,
		       struct krc_hw_key *ret_key);

/**
 * krc_mlx5_key_rested() - Whether a new remote key may have the name that it has.
 * @hw: device.
 * @mkey: the key, by the name that the device gave it and the low byte that it was asked for.
 * @now_s: ktime_get_seconds().
 * @ret_variant: set if it may not: the low byte that a key of this index must have.
 *
 * Context: any.
 * Return: whether no peer can come with that name from before.
 */
bool krc_mlx5_key_rested(struct krc_hw *hw, u32 mkey, time64_t now_s, u8 *ret_variant);

/* A remote key is used from now on. Context: may sleep. Return: 0, -ENOMEM. */
int krc_mlx5_key_begin(struct krc_hw *hw, u32 mkey);

/* A key is about to be destroyed; @known: to peers. Context: may sleep. */
void krc_mlx5_key_rest(struct krc_hw *hw, u32 mkey, bool known, time64_t now_s);
bool krc_mlx5_key_destroy(struct krc_hw *hw, const struct krc_hw_key *key);

/* address.c */
int krc_mlx5_port_setup(struct krc_hw *hw, u32 port, const struct krc_hw_fabric *fabric);
int krc_mlx5_address(struct krc_hw *hw, u32 port, u16 gid_index, const union ib_gid *gid,
		     const struct krp_value *value, struct krc_hw_address *ret_address);

#endif /* KRC_MLX5_H */
