/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the interface between krcore and a kind of NIC. The code above it is independent of
 * the hardware; a provider below it knows no queue, user or MetaServer.
 *
 * A provider drives one ib_device. It makes targets (what peers reach), initiators
 * (send queues that may address any target, request by request) and memory keys.
 * Locking: open and close are exclusive for a device. Create and destroy, also of keys, may
 * sleep, and may run concurrently for different objects. post, ring, poll and arm never sleep;
 * the caller serialises them for one initiator, with halt, restart and destroy of it, too. A
 * provider needs no lock for them. The same holds for recv_post, recv_ring, recv_poll and
 * recv_arm of one target, and its destroy.
 */
#ifndef KRC_PROVIDER_H
#define KRC_PROVIDER_H

#include <linux/types.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

#include "krp_table.h"

struct krc_hw; /* an open device; private to the provider, as the next two */
struct krc_hw_target;
struct krc_hw_initiator;
struct krc_hw_parts;

#define KRC_REASON_BYTES 96

/**
 * enum krc_fault - Why a request failed, and what that says about the target.
 * @KRC_FAULT_NONE: it did not fail.
 * @KRC_FAULT_FLUSHED: it was queued behind a failed request, and the initiator did not start
 *	it after the failure; see krc_wc.
 * @KRC_FAULT_ACCESS: the target refused it (remote access, operation, invalid
 *	request): the target is alive and did not execute it.
 * @KRC_FAULT_TIMEOUT: no answer: it may or may not have been executed.
 * @KRC_FAULT_TARGET: the target does not exist, or not any more (DC key or number wrong, not
 *	ready): the metadata is stale.
 * @KRC_FAULT_LOCAL: local protection or length fault; of a receive: the message was longer than
 *	its buffer.
 * @KRC_FAULT_BUSY: the target is alive, but had no receive buffer for a SEND until the retries for
 *	that were over: it was not received. Of another request, which needs none, the pool takes it
 *	for KRC_FAULT_TIMEOUT; the provider for lanes says KRC_FAULT_LOST.
 * @KRC_FAULT_LOST: the way to the target was given up under it, which is no fault of its own: it may
 *	or may not have been executed, and so may those behind it to the same target.
 * @KRC_FAULT_FATAL: the device or initiator is broken or gone.
 * @KRC_FAULT_EXPIRED: set by the pool, by no provider: a leased request was in the hardware
 *	for longer than the lease guarantees to the peer. Of a WRITE or an atomic: the hardware was at
 *	it then, and the target did not answer.
 */
enum krc_fault {
	KRC_FAULT_NONE,
	KRC_FAULT_FLUSHED,
	KRC_FAULT_ACCESS,
	KRC_FAULT_TIMEOUT,
	KRC_FAULT_TARGET,
	KRC_FAULT_LOCAL,
	KRC_FAULT_BUSY,
	KRC_FAULT_LOST,
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
} __aligned(sizeof(u64));

/**
 * krc_hw_address_equal() - Check whether two address vectors are the same bytes, by words: without
 * a call, since it is done for each request to an idle initiator.
 * @a: address vector.
 * @b: address vector.
 *
 * Those that differ may still be ways to one target: ops->same_target(). Context: any.
 * Return: whether they are.
 */
static inline bool krc_hw_address_equal(const struct krc_hw_address *a,
					const struct krc_hw_address *b)
{
	const u64 *x = (const u64 *)a->opaque, *y = (const u64 *)b->opaque;

	return !((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3]) | (x[4] ^ y[4]) |
		 (x[5] ^ y[5]) | (x[6] ^ y[6]) | (x[7] ^ y[7]));
}

/* krc_hw_wr.opcode besides KRP_OP_*, which are below it: one message into a receive buffer */
#define KRC_HW_SEND 0x80

/**
 * struct krc_hw_wr - One request to an initiator.
 * @cookie: returned in krc_wc; chosen by the caller.
 * @address: address vector of the target.
 * @remote_addr: address under @rkey; not used by KRC_HW_SEND.
 * @local_addr: address under @lkey.
 * @compare_add: KRP_OP_CMP_SWAP, KRP_OP_FETCH_ADD: as in struct krp_wr.
 * @swap: as in struct krp_wr.
 * @rkey: remote key; not used by KRC_HW_SEND.
 * @lkey: local key.
 * @length: bytes, 1 to KRP_LENGTH_MAX.
 * @opcode: KRP_OP_* or KRC_HW_SEND.
 * @fence: start after earlier READs and atomics.
 * @unsignaled: if it succeeds, it needs no completion of its own.
 * @next: for ops->post_many: the request behind it.
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
	const struct krc_hw_wr *next;
};

/**
 * struct krc_wc - One completion of an initiator. They come in the order of posting; one that
 * is not KRC_FAULT_FLUSHED also says that the unsignaled requests before it have succeeded, if
 * they have no completion themselves.
 * @cookie: of the request.
 * @fault: outcome.
 * @syndrome: error code of the hardware, for the log and tracepoints.
 * @vendor: its vendor syndrome.
 */
struct krc_wc {
	u64 cookie;
	enum krc_fault fault;
	u8 syndrome;
	u8 vendor;
};

/**
 * struct krc_hw_receive - Receives that a target is made for.
 * @depth: most buffers posted and not polled, 1 to krc_hw_attr.recv_depth_max; 0: the target
 *	receives nothing, and no other field counts.
 * @vector: completion vector, modulo their number.
 * @owner: argument of the upcalls.
 */
struct krc_hw_receive {
	u32 depth;
	u32 vector;
	void *owner;
};

/**
 * enum krc_hw_use - What an initiator is for: a provider may keep apart what would wait for each other.
 * @KRC_HW_DATA: READs, WRITEs and atomics.
 * @KRC_HW_PROBE: READs of targets that may not answer.
 * @KRC_HW_MESSAGES: SENDs, which receivers without buffers delay.
 */
enum krc_hw_use {
	KRC_HW_DATA,
	KRC_HW_PROBE,
	KRC_HW_MESSAGES,
};

/**
 * struct krc_hw_send - What an initiator is made for.
 * @depth: most requests posted and not polled, 1 to krc_hw_attr.initiator_depth_max.
 * @ack_timeout: it waits 4.096 us * 2^@ack_timeout for an answer.
 * @vector: completion vector, modulo their number.
 * @use: what it will be given.
 * @owner: argument of the upcalls.
 */
struct krc_hw_send {
	u32 depth;
	u32 ack_timeout;
	u32 vector;
	enum krc_hw_use use;
	void *owner;
};

/**
 * struct krc_recv_wc - One completion of a receive buffer, in any order.
 * @cookie: of recv_post.
 * @fault: KRC_FAULT_NONE; KRC_FAULT_LOCAL: the message did not fit, or the buffer's key is wrong;
 *	KRC_FAULT_FATAL: anything else. In all cases the buffer is the caller's again.
 * @bytes: of the message; 0 with a fault.
 * @syndrome: error code of the hardware, for the log.
 * @vendor: its vendor syndrome.
 */
struct krc_recv_wc {
	u64 cookie;
	enum krc_fault fault;
	u32 bytes;
	u8 syndrome;
	u8 vendor;
};

/**
 * struct krc_hw_key - A memory key: memory registered with the hardware.
 * @handle: the provider's name for it.
 * @lkey: local key.
 * @rkey: remote key.
 * @known: set by the owner: peers may know the key, and late requests may carry it long after
 *	its end.
 * @payer: set by the owner before key_umem and key_destroy: on whose account their turns are
 *	(base/turns.h); only compared, and valid as long as the call.
 * @parts: the provider's: what the key is made of, such as keys that it refers to; or NULL.
 */
struct krc_hw_key {
	u32 handle;
	u32 lkey;
	u32 rkey;
	bool known;
	const void *payer;
	struct krc_hw_parts *parts;
};

/**
 * struct krc_hw_attr - What a device can do; filled by ops->open().
 * @initiator_depth_max: most outstanding requests of an initiator.
 * @length_max: most bytes of a request.
 * @recv_depth_max: most receive buffers of a target; 0: targets can't receive.
 * @max_rd_atomic: most READs and atomics in flight of an initiator.
 * @atomics: 8-byte atomics are supported.
 * @ports: number of ports.
 */
struct krc_hw_attr {
	u32 initiator_depth_max;
	u32 length_max;
	u32 recv_depth_max;
	u32 max_rd_atomic;
	bool atomics;
	u32 ports;
};

/**
 * struct krc_hw_fabric - Packet settings of a port that the network requires.
 * @traffic_class: of IP (RoCE) or of the global route header: DSCP, and the ECN bits below it.
 * @sl: service level, 0 to 15; on Ethernet the priority, 0 to 7.
 * @mtu: largest packet, enum ib_mtu; 0: the port's active MTU.
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
 * @completion: an armed initiator has completions. Hard interrupt or softirq context; must not
 *	sleep, and should not call post, poll or arm, but schedule that.
 * @initiator_fatal: the hardware put an initiator into an error state without completing
 *	anything. Same context.
 * @payer: optional: on whose account the request is that @initiator_owner posts now: within post()
 *	alone. Only compared; it may be gone later.
 * @received: an armed target has received something. Same context; should not call recv_poll,
 *	recv_post or recv_arm, but schedule that. Not called for a target without receives.
 * @receive_fatal: the receive queue of a target is broken: nothing is received any more; READs,
 *	WRITEs and atomics of peers go on. Same context.
 * @device_fatal: the device is broken or gone; nothing will complete. Same context.
 */
struct krc_hw_events {
	void (*completion)(void *initiator_owner);
	void (*initiator_fatal)(void *initiator_owner);
	const void *(*payer)(void *initiator_owner);
	void (*received)(void *target_owner);
	void (*receive_fatal)(void *target_owner);
	void (*device_fatal)(void *device_owner);
};

struct krp_lane_packet; /* krp_lane.h */

/**
 * struct krc_hw_lanes - What a provider that makes lanes needs to know of the node. The functions may
 * sleep, but for @cached.
 * @generation: boot generation of the node.
 * @gid: of the port.
 * @value: its record, as it is published.
 * @ack_timeout: a lane waits 4.096 us * 2^@ack_timeout for an answer.
 * @cached: get what the node has cached. Does not sleep. Returns 0, or -ENOENT.
 * @lookup: READ a record from the table, whatever is cached. Returns 0; -ENOENT: there is none; or
 *	why that is not known.
 * @has_keys: whether there are cluster keys.
 * @sign: set key_id and mac of @packet by the key of that id, KRP_KEY_ID_BYTES; NULL: by the first
 *	one. Returns 0; -ENOKEY: there is no such key, or none at all; an errno of the hash.
 * @verify: whether one of the cluster keys proves @packet. Returns 0; -ENOKEY: it names none of
 *	them; -EKEYREJECTED: its mac is wrong; an errno of the hash.
 * @arg: for all of them.
 */
struct krc_hw_lanes {
	u64 generation;
	union ib_gid gid;
	struct krp_value value;
	u32 ack_timeout;
	int (*cached)(void *arg, const struct krp_key *key, struct krp_value *ret_value);
	int (*lookup)(void *arg, const struct krp_key *key, struct krp_value *ret_value);
	bool (*has_keys)(void *arg);
	int (*sign)(void *arg, const u8 *key_id, struct krp_lane_packet *packet);
	int (*verify)(void *arg, const struct krp_lane_packet *packet);
	void *arg;
};

/**
 * struct krc_lanes_stats - The lanes of a port, since they were started.
 * @lanes: now, also such as end.
 * @made: by this end or the other one.
 * @late: REQUESTs dropped that came again.
 * @malformed: packets dropped that krp_lane_check() refuses.
 * @unproved: packets dropped that no key proves, or that name one where there is none.
 * @dropped: packets dropped that came too fast, or could not be sent.
 * @mends: times that the queue pair of hand-shakes had failed and was made to work again.
 */
struct krc_lanes_stats {
	u32 lanes;
	u64 made;
	u64 late;
	u64 malformed;
	u64 unproved;
	u64 dropped;
	u64 mends;
};

/**
 * struct krc_provider_ops - Operations of a kind of NIC.
 * @name: for diagnostics: "mlx5-dc".
 * @match: whether this provider drives the device at all. Does not sleep long.
 * @open: open it. May sleep. On failure writes a readable reason ("no DC: HCA capability dct
 *	is 0") to @reason (KRC_REASON_BYTES) and returns ERR_PTR: -EOPNOTSUPP if the device
 *	lacks a capability, else another errno.
 * @close: all targets, initiators, keys must have been destroyed. May sleep.
 *	Works (releases memory) even if the device is gone.
 * @port_setup: apply the packet settings to @port, before any object is made there. May sleep.
 *	Returns 0, -EINVAL (no such port), -ERANGE (unsupported service level), -ENOENT (the
 *	port is not in that partition).
 * @port_settled: whether objects that are made at @port now would get what those have that were
 *	made since @port_setup: not if its table of partitions has changed so. Any context but hard
 *	interrupts.
 * @target_create: make the target of a port, @dc_key as its secret if it is of DC, reachable for
 *	READ, WRITE and atomics; sets in @value: dctn, dc_key, lid, mac, mtu, sl, port,
 *	flags, max_rd_atomic, kind. gid_index is the port's. With @receive (else NULL) it takes
 *	SENDs, too; a peer whose SEND finds no buffer is told to try again in 0.64 ms. -EINVAL:
 *	the depth is too large. May sleep.
 * @target_destroy: waits until it is drained. No upcall after it returns. Buffers that were not
 *	polled are the caller's again; their memory may be freed when their key is gone
 *	(@key_destroy). May sleep.
 * @lanes_start: optional; of a target whose port makes lanes (krp_lane.h): make them, and answer peers
 *	that want some. @lanes is copied; its functions and @arg stay valid until @lanes_stop has
 *	returned. Returns 0, -ENOMEM, -EINVAL (@lanes says what cannot be). May sleep.
 * @lanes_stop: there if @lanes_start is: end all lanes; peers access no memory any more when it
 *	returns. Also of a target whose lanes were not started. May sleep, up to two seconds.
 * @lanes_stats: there if @lanes_start is: counters of a target's lanes, each as it is at some moment
 *	meanwhile. Any context but hard interrupts.
 * @recv_post: append a buffer of @bytes (1 to length_max) at @local_addr under @lkey, whose key the
 *	owner made. @cookie comes back in krc_recv_wc. The hardware does not see it before
 *	@recv_ring. Returns 0, -ENOSPC (as many as @depth are posted or not polled), -EINVAL
 *	(@bytes, or a target without receives). Not in hard interrupts.
 * @recv_ring: give all appended buffers to the hardware. Not in hard interrupts.
 * @recv_poll: take up to @max completions. Returns how many. Not in hard interrupts.
 * @recv_arm: request one upcall. After it the caller must poll once more, since earlier
 *	completions may not raise one. Any context.
 * @initiator_create: a send queue on @port with a completion queue, ready to send; gid_index is the
 *	port's. -EINVAL: @send says what cannot be. May sleep.
 * @initiator_destroy: no completion upcall after it returns. May sleep.
 * @initiator_halt: from any state: when it returns 0, no request is executed any more and no
 *	completion added; existing completions can still be polled. May sleep; takes up to
 *	milliseconds.
 * @initiator_began: optional: of a halted one: whether the device was given the oldest request that
 *	has no outcome. NULL: it was given all that were rung. Not in hard interrupts.
 * @initiator_restart: of a halted one: drop its requests and the completions not polled, and
 *	make it ready to send. As above.
 * @own_address: the present address of a port at one of its own GIDs: sets in @value: lid, mac,
 *	mtu, sl, port, flags. May sleep. Returns 0, -EINVAL (no such port), -ENETUNREACH.
 * @address: make the address vector of @value (a record of a port) at @gid for
 *	initiators of @port sending from @gid_index. Never sleeps long. Returns 0,
 *	-EINVAL (a value that can't be a target), -EAFNOSUPPORT (InfiniBand record on an
 *	Ethernet port or the other way round), -ENETUNREACH.
 * @same_target: whether two address vectors are ways to one target, which the hardware may serve
 *	as one. Any context.
 * @post: append a request; returns 0, -ENOSPC (full), -EINVAL, -EIO (not ready). The hardware
 *	does not see it before @ring. Not in hard interrupts.
 * @post_many: optional: append @nr requests, from 1, which are linked by krc_hw_wr.next (that of the
 *	last is not looked at), as @post does one after the other. Returns how many were appended; if
 *	that is none, why the first one was not.
 * @ring: ring the doorbell for all appended requests; the last of them becomes signaled. Not
 *	in hard interrupts.
 * @poll: take up to @max completions. Returns how many. A request that failed, or was
 *	flushed, always has one. Not in hard interrupts.
 * @arm: request one completion upcall. After it the caller must poll once more, since earlier
 *	completions may not raise one. Any context.
 * @key_umem: make a key for pinned user memory: addresses under it are user virtual
 *	addresses from @iova; @access is KRP_ACCESS_*. May sleep. No command is longer than a
 *	bound, whatever the size of the memory, and few are under way at once, in turns by
 *	payers; all of @ret_key but its payer is written. -E2BIG: more pages
 *	than the device can list; -EINTR: killed; -EUCLEAN: a part of it could not be
 *	destroyed again, so peers may access the memory, which must stay pinned.
 * @key_dma: make a key for @bytes of kernel memory at DMA address @dma, which is
 *	also its address under the key; contiguous. @access as above. May sleep.
 * @key_pages: make a key for @nr pages of kernel memory of PAGE_SIZE bytes each, at DMA
 *	addresses @pages: under the key they follow one another from @iova, a multiple of
 *	PAGE_SIZE. @access as above. May sleep.
 * @key_destroy: destroy it; returns whether it is gone. If not, peers may still access its
 *	memory, which must never be freed then. The remote key of a @known one is not reused
 *	for another for as long as a request can be late. May sleep.
 * @dma_device: device to map kernel memory for; NULL: its DMA addresses are addresses of the kernel
 *	(hw/dma.h).
 * @is_down: whether the device has stopped working, so that no access of a peer can come
 *	through it. Any context.
 */
struct krc_provider_ops {
	const char *name;
	bool (*match)(struct ib_device *ibdev);
	struct krc_hw *(*open)(struct ib_device *ibdev, const struct krc_hw_events *events,
			       void *device_owner, struct krc_hw_attr *ret_attr, char *reason);
	void (*close)(struct krc_hw *hw);
	int (*port_setup)(struct krc_hw *hw, u32 port, const struct krc_hw_fabric *fabric);
	bool (*port_settled)(const struct krc_hw *hw, u32 port);
	struct krc_hw_target *(*target_create)(struct krc_hw *hw, u32 port, u16 gid_index,
					       u64 dc_key, const struct krc_hw_receive *receive,
					       struct krp_value *value);
	void (*target_destroy)(struct krc_hw_target *target);
	int (*lanes_start)(struct krc_hw_target *target, const struct krc_hw_lanes *lanes);
	void (*lanes_stop)(struct krc_hw_target *target);
	void (*lanes_stats)(struct krc_hw_target *target, struct krc_lanes_stats *ret_stats);
	int (*recv_post)(struct krc_hw_target *target, u64 cookie, u64 local_addr, u32 lkey,
			 u32 bytes);
	void (*recv_ring)(struct krc_hw_target *target);
	int (*recv_poll)(struct krc_hw_target *target, struct krc_recv_wc *wc, int max);
	void (*recv_arm)(struct krc_hw_target *target);
	struct krc_hw_initiator *(*initiator_create)(struct krc_hw *hw, u32 port, u16 gid_index,
						     const struct krc_hw_send *send);
	void (*initiator_destroy)(struct krc_hw_initiator *initiator);
	int (*initiator_halt)(struct krc_hw_initiator *initiator);
	bool (*initiator_began)(struct krc_hw_initiator *initiator);
	int (*initiator_restart)(struct krc_hw_initiator *initiator);
	int (*own_address)(struct krc_hw *hw, u32 port, u16 gid_index, struct krp_value *value);
	int (*address)(struct krc_hw *hw, u32 port, u16 gid_index, const union ib_gid *gid,
		       const struct krp_value *value, struct krc_hw_address *ret_address);
	bool (*same_target)(const struct krc_hw_address *a, const struct krc_hw_address *b);
	int (*post)(struct krc_hw_initiator *initiator, const struct krc_hw_wr *wr);
	int (*post_many)(struct krc_hw_initiator *initiator, const struct krc_hw_wr *wr, u32 nr);
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
extern const struct krc_provider_ops krc_verbs_ops; /* verbs/: lanes through ib_core */

#endif /* KRC_PROVIDER_H */
