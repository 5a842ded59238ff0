/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the line between krcore and a kind of NIC. What is above it knows no
 * hardware; what is below it knows no queue, user or MetaServer.
 *
 * A provider drives one ib_device. It makes targets (what peers reach), initiators
 * (send queues that may address any target, request by request) and memory keys.
 * Locking: open and close are alone with a device. Create and destroy, also of keys, may
 * sleep, and are called by several at once, for different objects. post, poll and arm never
 * sleep; the caller holds the initiator's lock, so they are never called twice at
 * once for one initiator.
 */
#ifndef KRC_PROVIDER_H
#define KRC_PROVIDER_H

#include <linux/types.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

#include "krp_table.h"

struct krc_hw; /* an open device; the provider's own */
struct krc_hw_target;
struct krc_hw_initiator;

#define KRC_REASON_BYTES 96

/**
 * enum krc_fault - What a failed request says about the world.
 * @KRC_FAULT_NONE: it did not fail.
 * @KRC_FAULT_FLUSHED: it stood behind one that failed and was not started by the
 *	initiator after the failure; see krc_wc.
 * @KRC_FAULT_ACCESS: the target refused it (remote access, operation, invalid
 *	request): the target is alive and did not do it.
 * @KRC_FAULT_TIMEOUT: no answer: it may or may not have been done.
 * @KRC_FAULT_TARGET: nobody there, or not any more (DC key or number wrong, not
 *	ready): the metadata is old.
 * @KRC_FAULT_LOCAL: local protection or length fault.
 * @KRC_FAULT_FATAL: the device or initiator is gone.
 * @KRC_FAULT_EXPIRED: no provider says so: a request was in the hardware for longer than
 *	the peer was promised.
 */
enum krc_fault {
	KRC_FAULT_NONE,
	KRC_FAULT_FLUSHED,
	KRC_FAULT_ACCESS,
	KRC_FAULT_TIMEOUT,
	KRC_FAULT_TARGET,
	KRC_FAULT_LOCAL,
	KRC_FAULT_FATAL,
	KRC_FAULT_EXPIRED,
};

/**
 * struct krc_hw_address - A target as a request carries it.
 * @opaque: address vector in the hardware's form.
 *
 * Made once by ops->address() and copied into every request.
 */
struct krc_hw_address {
	u8 opaque[64];
};

/**
 * struct krc_hw_wr - One request to an initiator.
 * @cookie: given back in krc_wc; chosen by the caller.
 * @address: target.
 * @remote_addr: address under @rkey.
 * @local_addr: address under @lkey.
 * @compare_add: KRP_OP_CMP_SWAP, KRP_OP_FETCH_ADD: as in struct krp_wr.
 * @swap: as in struct krp_wr.
 * @rkey: remote key.
 * @lkey: local key.
 * @length: bytes, 1 to KRP_LENGTH_MAX.
 * @opcode: KRP_OP_*.
 * @fence: start after earlier READs and atomics.
 * @unsignaled: if it succeeds, it needs no completion of its own.
 */
struct krc_hw_wr {
	u64 cookie;
	const struct krc_hw_address *address;
	u64 remote_addr;
	u64 local_addr;
	u64 compare_add;
	u64 swap;
	u32 rkey;
	u32 lkey;
	u32 length;
	u8 opcode;
	bool fence;
	bool unsignaled;
};

/**
 * struct krc_wc - One completion of an initiator. They come in the order of posting; that
 * of a request says too that the quiet ones before it have succeeded.
 * @cookie: of the request.
 * @fault: outcome.
 * @syndrome: what the hardware said, for the log and tracepoints.
 * @vendor: its vendor syndrome.
 */
struct krc_wc {
	u64 cookie;
	enum krc_fault fault;
	u8 syndrome;
	u8 vendor;
};

/**
 * struct krc_hw_key - Memory known to the hardware.
 * @handle: the provider's name for it.
 * @lkey: local key.
 * @rkey: remote key.
 * @known: peers may know it, and may come with it long after its end: its owner says so.
 */
struct krc_hw_key {
	u32 handle;
	u32 lkey;
	u32 rkey;
	bool known;
};

/**
 * struct krc_hw_attr - What a device can do; filled by ops->open().
 * @initiator_depth_max: most requests of an initiator at once.
 * @length_max: most bytes of a request.
 * @max_rd_atomic: READs and atomics under way at once.
 * @atomics: 8-byte atomics work.
 * @ports: ports of the device.
 */
struct krc_hw_attr {
	u32 initiator_depth_max;
	u32 length_max;
	u32 max_rd_atomic;
	bool atomics;
	u32 ports;
};

/**
 * struct krc_hw_fabric - What the network wants of the packets of a port.
 * @traffic_class: of IP (RoCE) or of the global route header: DSCP, and the ECN bits below it.
 * @sl: service level, 0 to 15; on Ethernet the priority, 0 to 7.
 * @mtu: largest packet, enum ib_mtu; 0: as the port has it.
 * @pkey: partition (InfiniBand).
 */
struct krc_hw_fabric {
	u8 traffic_class;
	u8 sl;
	u8 mtu;
	u16 pkey;
};

/**
 * struct krc_hw_events - Upcalls of a provider.
 * @completion: an armed initiator has completions. Hard or soft interrupt context;
 *	must not sleep, must not call post, poll or arm from here if it can avoid it:
 *	schedule.
 * @initiator_fatal: the hardware put an initiator into an error without completing
 *	anything. Same context.
 * @device_fatal: the device is gone; nothing will complete. Same context.
 */
struct krc_hw_events {
	void (*completion)(void *initiator_owner);
	void (*initiator_fatal)(void *initiator_owner);
	void (*device_fatal)(void *device_owner);
};

/**
 * struct krc_provider_ops - A kind of NIC.
 * @name: for people: "mlx5-dc".
 * @match: whether this provider knows the device at all. Does not sleep long.
 * @open: open it. Context: may sleep. On failure writes a reason for people
 *	("no DC: HCA capability dct is 0") to @reason (KRC_REASON_BYTES) and returns
 *	ERR_PTR: -EOPNOTSUPP if the device can't, else a fault.
 * @close: all targets, initiators, keys must have been destroyed. May sleep.
 *	Works (releases memory) even if the device is gone.
 * @port_setup: what the network wants of @port, before anything is made there. May sleep.
 *	Returns 0, -EINVAL (no such port), -ERANGE (a service level that it can't have), -ENOENT
 *	(the port is not in that partition).
 * @target_create: make the DC target of a port, @dc_key as its secret, reachable for
 *	READ, WRITE and atomics; sets in @value: dctn, dc_key, lid, mac, mtu, sl, port,
 *	flags, max_rd_atomic, kind. gid_index is the port's. May sleep.
 * @target_destroy: drains first. May sleep.
 * @initiator_create: a send queue of @depth requests on @port with its own completion
 *	queue on vector @vector (modulo what there is), ready to send. It waits 4.096 us *
 *	2^@ack_timeout for an answer. May sleep.
 * @initiator_destroy: no completion upcall after it returns. May sleep.
 * @initiator_halt: from any state: when it returns 0, no request is carried out any more
 *	and no completion added; those there are can still be polled. May sleep; takes up
 *	to milliseconds.
 * @initiator_restart: of a halted one: requests dropped and completions that were not
 *	polled forgotten, back to ready to send. As above.
 * @own_address: where a port is reached by a GID of its own now: sets in @value: lid, mac,
 *	mtu, sl, port, flags. May sleep. Returns 0, -EINVAL (no such port), -ENETUNREACH.
 * @address: form the address vector of @value (a KRP_KIND_DCT record) at @gid for
 *	initiators of @port sending from @gid_index. Never sleeps long. Returns 0,
 *	-EINVAL (a value that can't be a target), -EAFNOSUPPORT (InfiniBand record
 *	on an Ethernet port or the other way round), -ENETUNREACH.
 * @post: append a request; 0, or -ENOSPC (full), -EINVAL, -EIO (not ready). Not seen by
 *	the hardware before @ring. Not in hard interrupts; initiator lock held.
 * @ring: ring the doorbell for all appended; the last of them is not quiet any more. Not
 *	in hard interrupts; initiator lock held.
 * @poll: take up to @max completions. Returns how many. A request that failed, or was
 *	flushed, always has one. Not in hard interrupts; lock held.
 * @arm: ask for one completion upcall. After it the caller must poll once more, since
 *	what completed before it may not raise one. Any context, lock held.
 * @key_umem: make a key for pinned user memory: addresses under it are user virtual
 *	addresses from @iova; @access is KRP_ACCESS_*. May sleep.
 * @key_dma: make a key for @bytes of kernel memory at DMA address @dma, which is
 *	also its address under the key; contiguous. @access as above. May sleep.
 * @key_pages: make a key for @nr pages of kernel memory of PAGE_SIZE bytes each, at DMA
 *	addresses @pages: under the key they follow one another from @iova, a multiple of
 *	PAGE_SIZE. @access as above. May sleep.
 * @key_destroy: forget it; returns whether it is gone. If not, peers may still come to its
 *	memory, which must never be given back then. The remote key of one that is known
 *	is not that of another for as long as a request can be late. May sleep.
 * @dma_device: device to map kernel memory for.
 * @is_down: whether the device does no work any more, so that nothing of a peer can come
 *	through it. Any context.
 */
struct krc_provider_ops {
	const char *name;
	bool (*match)(struct ib_device *ibdev);
	struct krc_hw *(*open)(struct ib_device *ibdev, const struct krc_hw_events *events,
			       void *device_owner, struct krc_hw_attr *ret_attr, char *reason);
	void (*close)(struct krc_hw *hw);
	int (*port_setup)(struct krc_hw *hw, u32 port, const struct krc_hw_fabric *fabric);
	struct krc_hw_target *(*target_create)(struct krc_hw *hw, u32 port, u16 gid_index,
					       u64 dc_key, struct krp_value *value);
	void (*target_destroy)(struct krc_hw_target *target);
	struct krc_hw_initiator *(*initiator_create)(struct krc_hw *hw, u32 port, u16 gid_index,
						     u32 depth, u32 ack_timeout, u32 vector,
						     void *initiator_owner);
	void (*initiator_destroy)(struct krc_hw_initiator *initiator);
	int (*initiator_halt)(struct krc_hw_initiator *initiator);
	int (*initiator_restart)(struct krc_hw_initiator *initiator);
	int (*own_address)(struct krc_hw *hw, u32 port, u16 gid_index, struct krp_value *value);
	int (*address)(struct krc_hw *hw, u32 port, u16 gid_index, const union ib_gid *gid,
		       const struct krp_value *value, struct krc_hw_address *ret_address);
	int (*post)(struct krc_hw_initiator *initiator, const struct krc_hw_wr *wr);
	void (*ring)(struct krc_hw_initiator *initiator);
	int (*poll)(struct krc_hw_initiator *initiator, struct krc_wc *wc, int max);
	void (*arm)(struct krc_hw_initiator *initiator);
	int (*key_umem)(struct krc_hw *hw, struct ib_umem *umem, u64 iova, u32 access,
			struct krc_hw_key *ret_key);
	int (*key_dma)(struct krc_hw *hw, dma_addr_t dma, size_t bytes, u32 access,
		       struct krc_hw_key *ret_key);
	int (*key_pages)(struct krc_hw *hw, const dma_addr_t *pages, u32 nr, u64 iova, u32 access,
			 struct krc_hw_key *ret_key);
	bool (*key_destroy)(struct krc_hw *hw, const struct krc_hw_key *key);
	struct device *(*dma_device)(struct krc_hw *hw);
	bool (*is_down)(const struct krc_hw *hw);
};

extern const struct krc_provider_ops krc_mlx5_ops; /* mlx5/: DC through mlx5_core */

#endif /* KRC_PROVIDER_H */
