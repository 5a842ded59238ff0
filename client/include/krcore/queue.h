/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * libkrcore-queue: queues to peers, over /dev/krcore. Needs the C library alone.
 *
 * A "node" (struct krcore_node) is one open /dev/krcore: memory regions, queues, and one
 * ring of completions that the module fills and the program reads without a system
 * call. A queue is connected to one peer and behaves like a reliable connected
 * queue pair: requests start and complete in the order they were posted, each
 * gets exactly one completion, and a request that fails puts its queue, and only
 * that queue, into the error state until it is connected again.
 *
 * Threads: any number of threads may call any function at once, on the same node,
 * except krcore_node_close(). Each completion goes to the first thread that asks
 * for one; threads that want completions of their own open a node each. The
 * library has neither threads nor locks here.
 *
 * Processes: a child inherits descriptor and ring over fork(), but registered memory
 * remains that of the process that registered it; exec closes the descriptor.
 *
 * Errors are negative errno values. The library never prints and never exits;
 * krcore_error_text() says what failed.
 */
#ifndef KRCORE_QUEUE_H
#define KRCORE_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include <krcore/krcore.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

#define KRCORE_POST_MAX 256 /* requests in one krcore_post() */
#define KRCORE_QUEUE_DEPTH_MAX 1024 /* requests of a queue in flight */
#define KRCORE_SERVICE_USER_MIN 256 /* first service that a program may bind */

/* access of a memory region */
#define KRCORE_ACCESS_LOCAL_WRITE 0x1
#define KRCORE_ACCESS_REMOTE_READ 0x2
#define KRCORE_ACCESS_REMOTE_WRITE 0x4
#define KRCORE_ACCESS_REMOTE_ATOMIC 0x8
#define KRCORE_ACCESS_MESSAGE 0x10 /* for krcore_send_large() */

/* krcore_wr.opcode, krcore_wc.opcode */
#define KRCORE_OP_READ 1
#define KRCORE_OP_WRITE 2
#define KRCORE_OP_CMP_SWAP 3
#define KRCORE_OP_FETCH_ADD 4

/* krcore_wr.flags */
#define KRCORE_WR_FENCE 0x01 /* start after all earlier READs and atomics of the queue */
#define KRCORE_WR_IDEMPOTENT 0x02 /* this WRITE may be done twice rather than get -EREMCHG */

/* krcore_queue_open(), krcore_queue_connect() flags */
#define KRCORE_CONNECT_FRESH 0x1 /* use nothing that the node remembers of the peer */

/* krcore_queue_info.state */
#define KRCORE_QUEUE_IDLE 0 /* never connected */
#define KRCORE_QUEUE_CONNECTING 1
#define KRCORE_QUEUE_READY 2
#define KRCORE_QUEUE_ERROR 3 /* a request failed; connect it again */

/* bytes of a packed reference, krcore_region_pack() */
#define KRCORE_PACKED_IPV4 24 /* of a port whose GID is an IPv4 address */
#define KRCORE_PACKED_MAX 36 /* of any other */

struct krcore_node;

/**
 * struct krcore_node_options - How to open a node.
 * @size: sizeof(struct krcore_node_options); lets later versions add fields.
 * @device: device file; NULL means /dev/krcore.
 * @ring_entries: completions the ring holds, a power of two from 16 to 65536; 0
 *	means 1024. The depths of all queues together must fit.
 * @port: RDMA port of this node, from 1, as krcore_node_port() numbers them; 0
 *	means the first whose link is up, or else the first. Must be 0 if @gid is given.
 * @gid: GID of the port to use, as krcore_node_port() reports it; all zero leaves the choice
 *	to @port. Ports are renumbered when one comes or goes; a GID stays the same.
 */
struct krcore_node_options {
	size_t size;
	const char *device;
	uint32_t ring_entries;
	uint32_t port;
	uint8_t gid[KRCORE_GID_BYTES];
};

/**
 * struct krcore_node_info - What the module offers this user.
 * @size: sizeof(struct krcore_node_info), set by the caller.
 * @ports: RDMA ports that can be used now.
 * @ring_entries_max: largest ring.
 * @queue_depth_max: most requests of a queue in flight.
 * @post_max: most requests in one krcore_post().
 * @queues_max: queues this user may have.
 * @requests_max: requests this user may have outstanding.
 * @mrs_max: memory regions this user may have.
 * @rsvd: zero.
 */
struct krcore_node_info {
	size_t size;
	uint32_t ports;
	uint32_t ring_entries_max;
	uint32_t queue_depth_max;
	uint32_t post_max;
	uint32_t queues_max;
	uint32_t requests_max;
	uint32_t mrs_max;
	uint32_t rsvd;
};

/**
 * struct krcore_port_info - One RDMA port of this node.
 * @size: sizeof(struct krcore_port_info), set by the caller.
 * @gid: its GID, by which peers find it.
 * @device: name of the RDMA device.
 * @port_num: port of the device, from 1.
 * @mtu: enum ibv_mtu.
 * @flags: KRCORE_DCT_*.
 * @rsvd: zero.
 */
struct krcore_port_info {
	size_t size;
	uint8_t gid[KRCORE_GID_BYTES];
	char device[64];
	uint32_t port_num;
	uint32_t mtu;
	uint32_t flags;
	uint32_t rsvd;
};

/**
 * struct krcore_mr - A memory region.
 * @addr: first byte.
 * @length: bytes.
 * @token: names it to peers; 0 if it is closed to them.
 * @handle: names it in requests of this node.
 * @access: KRCORE_ACCESS_*.
 */
struct krcore_mr {
	uint64_t addr;
	uint64_t length;
	uint64_t token;
	uint32_t handle;
	uint32_t access;
};

/**
 * struct krcore_region_ref - What a peer must know of a region to use it.
 * @addr: address of its first byte, as its owner sees it.
 * @length: bytes.
 * @token: krcore_mr.token.
 */
struct krcore_region_ref {
	uint64_t addr;
	uint64_t length;
	uint64_t token;
};

/**
 * struct krcore_connect_info - Result and cost of connecting a queue.
 * @size: sizeof(struct krcore_connect_info), set by the caller.
 * @generation: boot generation of the peer.
 * @reads: READs of a MetaServer; 0 if the peer's record was in the node's cache.
 * @rsvd: zero.
 */
struct krcore_connect_info {
	size_t size;
	uint64_t generation;
	uint32_t reads;
	uint32_t rsvd;
};

/**
 * struct krcore_queue_info - State of a queue.
 * @size: sizeof(struct krcore_queue_info), set by the caller.
 * @state: KRCORE_QUEUE_*.
 * @error: in KRCORE_QUEUE_ERROR: the negative errno that caused it, else 0.
 * @outstanding: requests without completion.
 * @posted: requests taken so far.
 * @completed: completions so far.
 */
struct krcore_queue_info {
	size_t size;
	uint32_t state;
	int32_t error;
	uint32_t outstanding;
	uint64_t posted;
	uint64_t completed;
};

/**
 * struct krcore_wr - One request.
 * @user_data: given back in the completion.
 * @local_addr: address in the region @local_mr.
 * @remote_addr: address in the peer's region, as its owner sees it.
 * @remote_token: token of the peer's region.
 * @local_mr: krcore_mr.handle.
 * @length: bytes, 1 to 2^30; 8 for atomics.
 * @opcode: KRCORE_OP_*.
 * @flags: KRCORE_WR_*.
 * @rsvd: zero.
 * @compare_add: CMP_SWAP: value expected; FETCH_ADD: value added.
 * @swap: CMP_SWAP: new value.
 *
 * Atomics work on 8 bytes at an aligned remote address; the old value is written
 * to local memory.
 */
struct krcore_wr {
	uint64_t user_data;
	uint64_t local_addr;
	uint64_t remote_addr;
	uint64_t remote_token;
	uint32_t local_mr;
	uint32_t length;
	uint8_t opcode;
	uint8_t flags;
	uint8_t rsvd[6];
	uint64_t compare_add;
	uint64_t swap;
};

/**
 * struct krcore_wc - One completion.
 * @user_data: of the request.
 * @status: 0, or a negative errno: -EREMOTEIO (the peer refused the access),
 *	-ETIMEDOUT (the peer does not answer; the request may or may not have been done),
 *	-ECANCELED (an earlier request failed, or the queue was closed; the request was not
 *	done), -EREMCHG (a WRITE or an atomic that may or may not have been done), -EIO
 *	(local fault), -ENODEV (the device is gone); and -EBADR, -EPERM, -EOVERFLOW, -ENOMEM
 *	as krcore_post() returns them, if the peer's region was deregistered or changed
 *	while the request waited.
 * @bytes: bytes transferred.
 * @queue: queue; of what message.h sends or fetches: connection, see there.
 * @opcode: KRCORE_OP_*.
 * @flags: KRCORE_WC_*, of message.h.
 * @rsvd: zero.
 * @offset: of a message in the buffer it went to, in bytes, see krcore_post_recv_multi(); else 0.
 * @rsvd2: zero.
 */
struct krcore_wc {
	uint64_t user_data;
	int32_t status;
	uint32_t bytes;
	uint32_t queue;
	uint8_t opcode;
	uint8_t flags;
	uint8_t rsvd[2];
	uint32_t offset;
	uint32_t rsvd2;
};

/**
 * struct krcore_start_options - What krcore_start() is to do.
 * @size: sizeof(struct krcore_start_options); lets later versions add fields.
 * @node: how to open the node, or NULL for the defaults. If it leaves ring_entries out, the ring
 *	is as small as @depth allows.
 * @peer: as in krcore_queue_connect().
 * @memory: first byte of the memory to register.
 * @length: its bytes.
 * @wrs: requests to post, or NULL. Those whose local_mr is 0 use @memory; with @record, those
 *	whose remote_token is 0 use the peer's region, and their remote_addr counts from its first
 *	byte. The array is changed accordingly; it may be reused after the call.
 * @access: KRCORE_ACCESS_* of @memory.
 * @nr: how many requests there are in @wrs, at most KRCORE_POST_MAX.
 * @depth: of the queue, as in krcore_queue_create(); 0 means 64.
 * @timeout_ms: how long each look-up may take, as in krcore_queue_connect().
 * @flags: KRCORE_CONNECT_*.
 * @record: service under which the peer has published its region (krcore_region_encode()), to
 *	be looked up first; 0: none.
 */
struct krcore_start_options {
	size_t size;
	const struct krcore_node_options *node;
	struct krcore_key peer;
	void *memory;
	size_t length;
	struct krcore_wr *wrs;
	uint32_t access;
	uint32_t nr;
	uint32_t depth;
	uint32_t timeout_ms;
	uint32_t flags;
	uint32_t record;
};

/**
 * struct krcore_started - What krcore_start() has made.
 * @size: sizeof(struct krcore_started), set by the caller.
 * @node: the node, for krcore_node_close().
 * @mr: the region of our memory.
 * @remote: with @record: the peer's region; else zero.
 * @generation: boot generation of the peer.
 * @queue: the queue, connected.
 * @reads: READs of a MetaServer that it took in all.
 * @taken: requests that were posted.
 * @error: why the next request was not, a negative errno; 0 if all were.
 */
struct krcore_started {
	size_t size;
	struct krcore_node *node;
	struct krcore_mr mr;
	struct krcore_region_ref remote;
	uint64_t generation;
	uint32_t queue;
	uint32_t reads;
	uint32_t taken;
	int32_t error;
};

/**
 * krcore_start() - Open a node, register memory, connect a queue and post its first requests.
 * @opts: what to do.
 * @ret_started: filled; untouched on failure.
 *
 * For a process that begins: it takes seven system calls, eight with @record, and no memory
 * from the heap for the first node of a process. Requests are waited for as krcore_post_wait()
 * does; take their completions with krcore_poll(). If the call fails, nothing of it is left.
 *
 * Return:
 * * 0 - success; see krcore_started.taken.
 * * %-EINVAL - a size, or @nr, is not valid.
 * * %-EPROTO - the record is not what krcore_region_encode() makes.
 * * an error of krcore_node_open(), krcore_mr_reg(), krcore_queue_open(), krcore_post_wait(), or
 *   of a look-up: -ENOENT, -ENOTCONN or -ETIMEDOUT.
 */
int krcore_start(const struct krcore_start_options *opts, struct krcore_started *ret_started);

/**
 * krcore_node_open() - Open /dev/krcore and map its completion ring.
 * @opts: options, or NULL for the defaults.
 * @ret_node: the node; untouched on failure.
 *
 * Return:
 * * 0 - success.
 * * %-EINVAL - an option is out of its range, or both port and gid are given.
 * * %-ENOENT - there is no device file: the module is not loaded.
 * * %-EACCES - no permission for the device file.
 * * %-ENOTTY - the device file is not krcore's.
 * * %-EPROTONOSUPPORT - the module speaks another version.
 * * %-ENODEV - there is no such port, or none of this node's can be used.
 * * %-EDQUOT - limit of the user.
 * * %-EPROTO - the module's ring is malformed.
 * * %-ENOMEM - no memory.
 */
int krcore_node_open(const struct krcore_node_options *opts, struct krcore_node **ret_node);

/**
 * krcore_node_close() - Close a node, with all its queues and regions, and free it.
 * @node: node or NULL; no other thread may be in a call on it.
 *
 * Does not wait: requests under way, and peers whose lease of a region has not ended, may still
 * access registered memory for a moment. A program that frees it then deregisters it before.
 */
void krcore_node_close(struct krcore_node *node);

/**
 * krcore_node_fd() - Descriptor for poll(2) and epoll(7).
 * @node: node.
 *
 * It is readable (level-triggered) as long as there is a completion, or a letter of message.h, to
 * be taken. It belongs to the node: do not close it.
 *
 * Return: the descriptor.
 */
int krcore_node_fd(const struct krcore_node *node);

/**
 * krcore_node_query() - What the module offers this user.
 * @node: node.
 * @ret_info: filled; untouched on failure.
 *
 * Return: 0, or -EINVAL if the size of @ret_info is not valid.
 */
int krcore_node_query(struct krcore_node *node, struct krcore_node_info *ret_info);

/**
 * krcore_node_port() - One RDMA port of this node.
 * @node: node.
 * @index: from 1 to krcore_node_info.ports; 0 for the port that @node uses.
 * @ret_info: filled; untouched on failure.
 *
 * Return:
 * * 0 - success.
 * * %-EINVAL - the size of @ret_info is not valid.
 * * %-ENOENT - there is no such port.
 * * %-ENODEV - the port is going away.
 */
int krcore_node_port(struct krcore_node *node, uint32_t index, struct krcore_port_info *ret_info);

/**
 * krcore_mr_reg() - Register memory.
 * @node: node.
 * @addr: first byte, any alignment.
 * @length: bytes, from 1.
 * @access: KRCORE_ACCESS_*; reading by this node's own requests is always allowed.
 *	REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE, and go with no MESSAGE. MESSAGE opens
 *	the region to READs of the nodes to which messages in it are announced.
 * @ret_mr: the region; untouched on failure.
 *
 * The pages stay in memory until krcore_mr_dereg() and count against
 * RLIMIT_MEMLOCK.
 *
 * Return:
 * * 0 - success.
 * * %-EINVAL - length or access is not valid.
 * * %-EFAULT - the memory is not mapped, or not writable though @access needs it.
 * * %-ENOMEM - no memory, or RLIMIT_MEMLOCK.
 * * %-ENOSPC - the directory of regions open to peers is full, or its rest is reserved for
 *   other users.
 * * %-EDQUOT - limit of the user.
 * * %-EOPNOTSUPP - @access has remote atomics, and the device has none.
 * * %-E2BIG - the device cannot list so many pages: one without DC takes at most 1 GiB in a
 *   region. Several regions do.
 * * %-ENODEV - the device is gone.
 */
int krcore_mr_reg(struct krcore_node *node, void *addr, size_t length, uint32_t access,
		  struct krcore_mr *ret_mr);

/**
 * krcore_mr_dereg() - Deregister a region.
 * @node: node.
 * @mr: region.
 *
 * Waits for requests that use it and, if it was open to peers, until no peer
 * can hold a valid reference any more. The memory is not accessed afterwards.
 *
 * Return:
 * * 0 - success.
 * * %-ENOENT - there is no such region.
 */
int krcore_mr_dereg(struct krcore_node *node, const struct krcore_mr *mr);

/**
 * krcore_mr_dereg_many() - Deregister several regions, with one wait for all of them.
 * @node: node.
 * @mrs: regions.
 * @nr: how many, from 1.
 *
 * Does the same as krcore_mr_dereg() of each, in the time of one.
 *
 * Return:
 * * how many were deregistered, if at least one was: fewer than @nr if the next one is not
 *   registered, or occurs twice in @mrs.
 * * %-ENOENT - the first is not registered.
 * * %-EINVAL - @nr is 0.
 * * %-ENOMEM - no memory; none was deregistered.
 */
int krcore_mr_dereg_many(struct krcore_node *node, const struct krcore_mr *mrs, unsigned int nr);

/**
 * krcore_queue_open() - Make a queue and connect it, in one system call.
 * @node: node.
 * @depth: as in krcore_queue_create().
 * @peer: as in krcore_queue_connect().
 * @timeout_ms: as in krcore_queue_connect().
 * @flags: KRCORE_CONNECT_*.
 * @ret_queue: its number in this node; untouched on failure.
 * @ret_info: filled, or NULL; untouched on failure.
 *
 * The fastest way to a connected queue. If it fails there is no queue.
 *
 * Return: 0, or an error of krcore_queue_create() or krcore_queue_connect().
 */
int krcore_queue_open(struct krcore_node *node, uint32_t depth, const struct krcore_key *peer,
		      uint32_t timeout_ms, uint32_t flags, uint32_t *ret_queue,
		      struct krcore_connect_info *ret_info);

/**
 * krcore_queue_create() - Make a queue.
 * @node: node.
 * @depth: most requests in flight, 1 to KRCORE_QUEUE_DEPTH_MAX; as many completions of
 *	the ring are reserved.
 * @ret_queue: its number in this node; untouched on failure.
 *
 * Return:
 * * 0 - success.
 * * %-EINVAL - depth is out of its range.
 * * %-ENOSPC - the ring has fewer completions left.
 * * %-EDQUOT - limit of the user.
 * * %-ENODEV - the device is gone.
 * * %-ENOMEM - no memory.
 */
int krcore_queue_create(struct krcore_node *node, uint32_t depth, uint32_t *ret_queue);

/**
 * krcore_queue_connect() - Connect a queue that is idle or in error.
 * @node: node.
 * @queue: queue.
 * @peer: GID of the peer's port, and KRCORE_SERVICE_NODE or a service that a
 *	program there has bound.
 * @timeout_ms: how long a look-up may take, 1 to 60000; 0 means 5000.
 * @flags: KRCORE_CONNECT_*.
 * @ret_info: filled, or NULL; untouched on failure.
 *
 * No message goes to the peer: its metadata comes from the node's cache, or from one READ
 * of a MetaServer.
 *
 * Return:
 * * 0 - connected.
 * * %-ENOENT - there is no such queue, or no such peer in the MetaServer's table.
 * * %-EINVAL - a parameter is out of its range, the size of @ret_info is not valid, or the
 *   peer takes fewer READs at once than this node sends.
 * * %-EISCONN - the queue is connected.
 * * %-ENOTCONN - no MetaServer is attached.
 * * %-ETIMEDOUT - the look-up took longer than @timeout_ms.
 * * %-EPROTO - the record is not that of a DC target.
 * * %-EAFNOSUPPORT - one side is InfiniBand, the other Ethernet.
 * * %-ENETUNREACH - there is no route to the peer, or its MTU is below ours.
 * * %-ESHUTDOWN - the port went down meanwhile.
 * * %-ECANCELED - the queue was closed meanwhile.
 * * %-EINTR - a signal came.
 * * %-ENODEV - the device is gone.
 * * %-ENOMEM - no memory.
 */
int krcore_queue_connect(struct krcore_node *node, uint32_t queue, const struct krcore_key *peer,
			 uint32_t timeout_ms, uint32_t flags, struct krcore_connect_info *ret_info);

/**
 * krcore_queue_query() - State of a queue.
 * @node: node.
 * @queue: queue.
 * @ret_info: filled; untouched on failure.
 *
 * Return:
 * * 0 - success.
 * * %-EINVAL - the size of @ret_info is not valid.
 * * %-ENOENT - there is no such queue.
 */
int krcore_queue_query(struct krcore_node *node, uint32_t queue,
		       struct krcore_queue_info *ret_info);

/**
 * krcore_queue_close() - Close a queue.
 * @node: node.
 * @queue: queue; its number may be reused.
 *
 * Requests in flight that have not been done complete with -ECANCELED. After the call,
 * no further completion of the queue comes into the ring; those already there can
 * still be taken.
 *
 * Return:
 * * 0 - success.
 * * %-ENOENT - there is no such queue.
 */
int krcore_queue_close(struct krcore_node *node, uint32_t queue);

/**
 * krcore_bind() - Let peers connect to a service of this node.
 * @node: node.
 * @service: KRCORE_SERVICE_USER_MIN to 65535.
 * @timeout_ms: how long to wait until one MetaServer has the record; 0 means 5000.
 *
 * Keeps a record (GID of the node's port, service) published until krcore_unbind()
 * or krcore_node_close().
 *
 * Return:
 * * 0 - one MetaServer has the record, and the others get it.
 * * %-EINVAL - @service is out of its range, or @timeout_ms is more than 60000.
 * * %-EADDRINUSE - it is bound already.
 * * %-ETIMEDOUT - no MetaServer had the record after @timeout_ms.
 * * %-EEXIST - all MetaServers refused it: it belongs to another owner.
 * * %-EPERM - all MetaServers refused it: the GID is not ours.
 * * %-ESTALE - a newer boot of this node has published it.
 * * %-EDQUOT, %-ENOSPC, %-EBUSY - a limit of the user, node or MetaServers.
 * * %-ESHUTDOWN - the port is being taken down.
 * * %-ENODEV - the device is gone.
 * * %-EINTR - a signal came.
 * * %-ENOMEM - no memory.
 */
int krcore_bind(struct krcore_node *node, uint16_t service, uint32_t timeout_ms);

/**
 * krcore_unbind() - Undo krcore_bind().
 * @node: node.
 * @service: as given to krcore_bind().
 *
 * Return:
 * * 0 - success.
 * * %-EINVAL - @service is below KRCORE_SERVICE_USER_MIN.
 * * %-ENOENT - this node has not bound it.
 * * %-EBUSY - another thread is binding it.
 */
int krcore_unbind(struct krcore_node *node, uint16_t service);

/**
 * krcore_wr_read() - Fill in a READ: from a peer's region into ours.
 * @wr: filled.
 * @mr: local region.
 * @local: where the bytes go, in @mr.
 * @length: bytes.
 * @remote: the peer's region.
 * @offset: from the first byte of @remote.
 * @user_data: given back in the completion.
 */
void krcore_wr_read(struct krcore_wr *wr, const struct krcore_mr *mr, void *local, uint32_t length,
		    const struct krcore_region_ref *remote, uint64_t offset, uint64_t user_data);

/**
 * krcore_wr_write() - Fill in a WRITE: from our region into a peer's.
 * @wr: filled.
 * @mr: local region.
 * @local: where the bytes are, in @mr.
 * @length: bytes.
 * @remote: the peer's region.
 * @offset: from the first byte of @remote.
 * @user_data: given back in the completion.
 */
void krcore_wr_write(struct krcore_wr *wr, const struct krcore_mr *mr, const void *local,
		     uint32_t length, const struct krcore_region_ref *remote, uint64_t offset,
		     uint64_t user_data);

/**
 * krcore_post() - Post requests to a queue, with one system call.
 * @node: node.
 * @queue: queue.
 * @wrs: requests; the array may be reused after the call.
 * @nr: how many, 1 to KRCORE_POST_MAX.
 * @ret_error: NULL, or set to the error of the first request that was not taken, 0 if all
 *	were taken. Untouched on failure.
 *
 * Return:
 * * a positive number - requests taken; each of them gets a completion.
 *   The following errors mean that not even the first was taken:
 * * %-EAGAIN - the queue is full: take completions first.
 * * %-ENOTCONN - the queue is not connected, or in error.
 * * %-EINVAL - opcode, flags, length, alignment, or @nr.
 * * %-ENOENT - no such queue or local region.
 * * %-EACCES - the local region does not allow it.
 * * %-ERANGE - outside the local region.
 * * %-EBADR - no such region at the peer.
 * * %-EPERM - the peer's region does not allow it.
 * * %-EOVERFLOW - outside the peer's region.
 * * %-EFAULT - @wrs cannot be read.
 * * %-EOPNOTSUPP - the device has no atomics.
 * * %-EDQUOT - limit of the user.
 * * %-ETIMEDOUT, %-EREMOTEIO - the peer's directory of regions could not be read; the
 *   queue is in error. The peer is asked again only after a pause of up to 5 s, or of up to 32 s
 *   if its NIC has refused too often what its directory allows.
 * * %-EBUSY - the peer has not answered lately, and the READ that probes it did not get its
 *   turn for a minute, behind those of other such peers.
 * * %-EIO - no hardware queue works now.
 * * %-ENOMEM - no memory.
 * * %-EINTR - a signal came.
 * * %-ENODEV - the device is gone.
 */
int krcore_post(struct krcore_node *node, uint32_t queue, const struct krcore_wr *wrs,
		unsigned int nr, int *ret_error);

/**
 * krcore_post_wait() - krcore_post(), then busy-poll for the completions.
 * @node: node.
 * @queue: queue.
 * @wrs: requests.
 * @nr: how many, 1 to KRCORE_POST_MAX.
 * @ret_error: as in krcore_post().
 *
 * For a caller that has nothing else to do meanwhile. It returns when all requests of the
 * queue have completed, or when the limit of module parameter spin_us (100 us by default)
 * expires. Completions are in the ring as always; if krcore_poll() does not find them all,
 * krcore_wait() waits for the others.
 *
 * Return: as krcore_post().
 */
int krcore_post_wait(struct krcore_node *node, uint32_t queue, const struct krcore_wr *wrs,
		     unsigned int nr, int *ret_error);

/**
 * krcore_post_read() - krcore_wr_read() and krcore_post() of one request.
 * @node: node.
 * @queue: queue.
 * @mr: local region.
 * @local: where the bytes go, in @mr.
 * @length: bytes.
 * @remote: the peer's region.
 * @offset: from the first byte of @remote.
 * @user_data: given back in the completion.
 *
 * Return: 0, or an error of krcore_post().
 */
int krcore_post_read(struct krcore_node *node, uint32_t queue, const struct krcore_mr *mr,
		     void *local, uint32_t length, const struct krcore_region_ref *remote,
		     uint64_t offset, uint64_t user_data);

/**
 * krcore_post_write() - krcore_wr_write() and krcore_post() of one request.
 * @node: node.
 * @queue: queue.
 * @mr: local region.
 * @local: where the bytes are, in @mr; they must stay unchanged until the completion.
 * @length: bytes.
 * @remote: the peer's region.
 * @offset: from the first byte of @remote.
 * @user_data: given back in the completion.
 *
 * Return: 0, or an error of krcore_post().
 */
int krcore_post_write(struct krcore_node *node, uint32_t queue, const struct krcore_mr *mr,
		      const void *local, uint32_t length, const struct krcore_region_ref *remote,
		      uint64_t offset, uint64_t user_data);

/**
 * krcore_poll() - Take completions, without a system call.
 * @node: node.
 * @wcs: array to fill.
 * @nr: its length.
 *
 * Return:
 * * a number - completions taken, 0 if there are none now.
 * * %-EPROTO - the ring was corrupted.
 */
int krcore_poll(struct krcore_node *node, struct krcore_wc *wcs, unsigned int nr);

/**
 * krcore_wait() - Wait until there is a completion to be taken.
 * @node: node.
 * @timeout_ms: how long at most; negative for ever, 0 to check without waiting.
 *
 * The call first busy-polls the hardware, for as long as module parameter spin_us (100 us by
 * default) allows, then blocks; that is also the fastest way to wait for a completion. It
 * does not reserve the completion: another thread may take it first.
 *
 * Return:
 * * 0 - there is one.
 * * %-ETIMEDOUT - none came in time.
 * * %-EINTR - a signal came.
 * * %-ENODEV - the device is gone, and all completions have been taken.
 * * %-EBUSY - 256 threads and epoll instances wait for completions of this node object already.
 */
int krcore_wait(struct krcore_node *node, int timeout_ms);

/**
 * krcore_wait_any() - Wait until there is a completion or a letter (krcore/message.h) to be taken.
 * @node: node; without an inbox as krcore_wait().
 * @timeout_ms: how long at most; negative for ever, 0 to check without waiting.
 *
 * For a thread that does both: krcore_poll() and krcore_recv() with a timeout of 0 say which it was.
 * Otherwise as krcore_wait().
 *
 * Return:
 * * 0 - there is one.
 * * %-ETIMEDOUT - neither came in time.
 * * %-EINTR - a signal came.
 * * %-ENODEV - the device is gone, and all of both have been taken.
 * * %-EBUSY - as many threads wait as may, see krcore_wait().
 */
int krcore_wait_any(struct krcore_node *node, int timeout_ms);

/**
 * krcore_region_ref_of() - Make the reference by which peers access a region of ours.
 * @mr: region.
 * @ret_ref: filled.
 */
void krcore_region_ref_of(const struct krcore_mr *mr, struct krcore_region_ref *ret_ref);

/**
 * krcore_region_encode() - Put a reference into a value that krcore_publish() takes.
 * @ref: reference.
 * @ret_value: a value of KRCORE_KIND_RAW.
 */
void krcore_region_encode(const struct krcore_region_ref *ref, struct krcore_value *ret_value);

/**
 * krcore_region_decode() - Get the reference from a value that krcore_lookup() found.
 * @value: value.
 * @ret_ref: the reference; untouched on failure.
 *
 * Return:
 * * 0 - success.
 * * %-EPROTO - the value is not what krcore_region_encode() makes.
 */
int krcore_region_decode(const struct krcore_value *value, struct krcore_region_ref *ret_ref);

/**
 * krcore_region_pack() - Put all that a peer needs to use a region into few bytes.
 * @gid: GID of the port of its node, as krcore_node_port() reports it.
 * @ref: reference, of at most 2^32 - 1 bytes.
 * @ret_packed: KRCORE_PACKED_MAX bytes; untouched on failure.
 *
 * For a message that a program sends anyway, such as the invocation of a function: the peer
 * needs no look-up of the region.
 *
 * Return:
 * * KRCORE_PACKED_IPV4 or KRCORE_PACKED_MAX - how many bytes it takes.
 * * %-EINVAL - no region that peers may use has this address, length or token, or no port
 *   this GID.
 */
int krcore_region_pack(const uint8_t *gid, const struct krcore_region_ref *ref,
		       uint8_t *ret_packed);

/**
 * krcore_region_unpack() - Undo krcore_region_pack().
 * @packed: bytes from anywhere.
 * @bytes: how many.
 * @ret_gid: KRCORE_GID_BYTES: the GID; untouched on failure.
 * @ret_ref: the reference; untouched on failure.
 *
 * Return:
 * * 0 - success. Whether there is such a region is only known when it is used.
 * * %-EPROTO - the bytes are not what krcore_region_pack() makes.
 */
int krcore_region_unpack(const uint8_t *packed, size_t bytes, uint8_t *ret_gid,
			 struct krcore_region_ref *ret_ref);

/**
 * krcore_key_from_address() - Make the key of a peer from its address.
 * @text: IPv4 address or GID.
 * @service: service.
 * @ret_key: the key; untouched on failure.
 *
 * Never waits, and asks no resolver.
 *
 * Return:
 * * 0 - success.
 * * %-EINVAL - @text is neither.
 */
int krcore_key_from_address(const char *text, uint16_t service, struct krcore_key *ret_key);

/**
 * krcore_key_from_text() - Make the key of a peer from its address or host name.
 * @text: IPv4 address, GID, or host name.
 * @service: service.
 * @ret_key: the key; untouched on failure.
 *
 * Waits for the resolver if @text is a host name, and takes its first IPv4 address, as a port with
 * addresses of both kinds has its record under that, or its first one if it has none.
 *
 * Return:
 * * 0 - success.
 * * %-EINVAL - @text is empty, or looks like an IPv4 address but does not have four numbers.
 * * %-ENOENT - the resolver knows no such host.
 * * %-EAGAIN - the resolver does not answer now.
 * * %-ENOMEM - no memory.
 */
int krcore_key_from_text(const char *text, uint16_t service, struct krcore_key *ret_key);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* KRCORE_QUEUE_H */
