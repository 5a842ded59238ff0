/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * /dev/krcore: what a program asks of the module. Normative.
 *
 * CONTEXT
 *   Each open(2) is a context: one completion ring, memory regions, queues.
 *   Everything belongs to the open file: it may be inherited or passed to
 *   another process, and its last close gives all back. KRP_IOC_SETUP comes
 *   first and once; the ring is then mapped at offset 0. Memory is registered
 *   from the address space of the caller and stays pinned if that process goes
 *   away while the file lives on.
 *
 * QUEUE
 *   A queue is connected to one peer: (GID, service) found by the MetaServers.
 *   States: IDLE -> CONNECTING -> READY -> ERROR; closed at any moment. To its
 *   owner it behaves as a reliable connected queue pair:
 *   - requests of a queue start in the order they were posted, and complete in
 *     that order; a READ or atomic is done when its completion is there, a WRITE
 *     when the peer's memory has it (both as in the InfiniBand specification);
 *   - each request accepted gets exactly one completion;
 *   - a request that fails puts the queue into ERROR; those behind it complete
 *     with -ECANCELED, and posting gives -ENOTCONN until it is connected again.
 *   - a WRITE or an atomic is done once or reported: what completes with 0 was done
 *     exactly once, what completes with -ECANCELED was not done, not even in part, and
 *     what may have been done, in whole or in part, without an acknowledgement
 *     completes with another error, and is never done later.
 *   Queues of other programs share the same hardware queue and see none of it, with
 *   one exception: a WRITE or an atomic on its way to the same peer when that peer
 *   stopped answering, refused a READ, or kept a request for longer than half the
 *   margin after its lease (krp_mrdir.h), or in flight when the NIC failed, fails with
 *   -EREMCHG. Requests of several queues to a peer that does not answer run out
 *   of retries together. A READ that was in flight is done again then, before its
 *   completion and those behind it; so is a WRITE with KRP_WR_IDEMPOTENT, which may
 *   write the same bytes twice, also over what somebody else has written meanwhile.
 *
 * REQUESTS
 *   KRP_IOC_POST takes a batch. Each request names local memory by (region,
 *   address, length) and remote memory by (token, address); both are checked
 *   before anything is posted, so that a bad reference is an error to its caller.
 *   The call returns how many were taken; a request that is wrong stops it, and
 *   an error is returned only if the first one was not taken.
 *
 * COMPLETION RING
 *   struct krp_ring, then the entries. The module writes entries and then tail
 *   (release); the program reads tail (acquire), the entries, and writes head
 *   (release). A request is taken only if its completion is sure to have room,
 *   so the ring cannot overflow. poll(2) says POLLIN while head != tail, or a letter is there;
 *   KRP_IOC_WAIT waits for that, too, and busy-polls at first. No more than
 *   KRP_SLEEPERS_MAX wait at once: another poll(2) says POLLERR then. Wrong values in head
 *   harm only the program itself.
 *   The ring is mapped whole, krp_setup.map_bytes at offset 0, with MAP_SHARED and
 *   without PROT_EXEC; any other mapping is refused (-EINVAL), and all of them
 *   before KRP_IOC_SETUP (-EBADFD). It may be mapped more than once, and to read
 *   only.
 *
 * RECORDS
 *   What a program says to others by way of the MetaServers needs no key and no session
 *   of its own: the module looks up, publishes and watches with the sessions of the
 *   context's port and the cache of the node.
 *   - KRP_IOC_LOOKUP finds any record. Of a DC target it tells that it is there, and its
 *     generation, but nothing by which memory could be reached around the module.
 *   - KRP_IOC_PUBLISH puts up to KRP_RAW_BYTES bytes under (GID of the port, service).
 *     Services are shared with KRP_IOC_BIND: each belongs to one context of the node at a
 *     time, counts against the limit of its user, and is withdrawn with the last close.
 *   - KRP_IOC_WATCH lets the context be told of changes: read(2) gives struct krp_event,
 *     one or more, and poll(2) says POLLPRI while there is one. Up to KRP_EVENTS_MAX wait;
 *     a program that reads too slowly loses them and is told KRP_EVENT_RESYNC, after which all
 *     that was remembered must be looked up again. Servers may tell the same change twice.
 *
 * MESSAGES
 *   Besides its queues, which are one-sided, a context may have connections, by which programs
 *   send each other messages: see krp_ioctl_message.h.
 *
 * NUMBERS
 *   Handles of regions and numbers of queues are from 1 on, and are of one
 *   context. One that was given back may be given out again at once, so an entry
 *   of the ring that a program has not consumed yet may be of the earlier owner
 *   of its number: a program that closes a queue consumes what is there before it
 *   makes the next one. Numbers of connections are given out in turn, and not before their last
 *   completion is in the ring.
 *
 * ERRORS
 *   A call with several faults may give the error of any of them; whichever it
 *   is, nothing was changed. Of a batch, the first request that is wrong counts.
 *   When the device goes, or the node is taken down, all calls of a context that
 *   need it give -ENODEV from then on, also after the node has come up again: a
 *   program closes the file and opens it anew.
 *
 * All structures have the same layout for 32-bit and 64-bit callers; pads and
 * unknown flags must be zero (-EINVAL), so that they can get a meaning later.
 */
#ifndef KRP_IOCTL_H
#define KRP_IOCTL_H

#include <linux/ioctl.h>
#include <linux/types.h>

#include "krp_endian.h"
#include "krp_table.h"

#define KRP_ABI_VERSION 1
#define KRP_IOC_MAGIC 0xB7

#define KRP_RING_ENTRIES_MIN 16
#define KRP_RING_ENTRIES_MAX 65536
#define KRP_QUEUE_DEPTH_MAX 1024
#define KRP_POST_MAX 256 /* requests in one call */
#define KRP_MR_DEREG_MAX 4096 /* regions in one call */
#define KRP_LENGTH_MAX (1U << 30) /* bytes of one READ or WRITE */
#define KRP_SLEEPERS_MAX 256 /* of one context: threads and epoll instances that wait at once */
#define KRP_CONNECT_TIMEOUT_MS_MAX 60000

/* krp_mr_reg.access */
#define KRP_ACCESS_LOCAL_WRITE 0x1
#define KRP_ACCESS_REMOTE_READ 0x2
#define KRP_ACCESS_REMOTE_WRITE 0x4
#define KRP_ACCESS_REMOTE_ATOMIC 0x8
#define KRP_ACCESS_ALL 0xf /* those of other programs; the next one is of their nodes alone */
#define KRP_ACCESS_MESSAGE 0x10 /* for KRP_IOC_SEND; not with REMOTE_WRITE or REMOTE_ATOMIC */

/* krp_wr.opcode */
#define KRP_OP_READ 1
#define KRP_OP_WRITE 2
#define KRP_OP_CMP_SWAP 3
#define KRP_OP_FETCH_ADD 4
/* krp_cqe.opcode, besides */
#define KRP_OP_SEND 5 /* of KRP_IOC_SEND, or the first one of KRP_IOC_OPEN */
#define KRP_OP_FETCH 6 /* of KRP_IOC_LARGE */
#define KRP_OP_RECV 7 /* of KRP_IOC_POST_RECV */

/* krp_cqe.flags */
#define KRP_CQE_MORE 0x1 /* KRP_OP_RECV: the buffer has not completed yet */

/* krp_wr.flags */
#define KRP_WR_FENCE 0x01 /* start after all earlier READs and atomics of the queue */
#define KRP_WR_IDEMPOTENT 0x02 /* this WRITE may be done twice: better that than -EREMCHG */

/* krp_queue_query.state: of a queue, as KRP_IOC_QUEUE_QUERY shows it */
#define KRP_QUEUE_IDLE 0
#define KRP_QUEUE_CONNECTING 1
#define KRP_QUEUE_READY 2
#define KRP_QUEUE_ERROR 3
#define KRP_QUEUE_STATES 4

/**
 * struct krp_query - KRP_IOC_QUERY: what there is.
 * @abi: out: KRP_ABI_VERSION.
 * @ports: out: RDMA ports that can be used now.
 * @ring_entries_max: out: largest ring.
 * @queue_depth_max: out: most requests of a queue at once.
 * @post_max: out: most requests in one call.
 * @queues_max: out: queues this user may have.
 * @requests_max: out: requests this user may have outstanding.
 * @mrs_max: out: memory regions this user may have.
 * @rsvd: out: zero.
 */
struct krp_query {
	__u32 abi;
	__u32 ports;
	__u32 ring_entries_max;
	__u32 queue_depth_max;
	__u32 post_max;
	__u32 queues_max;
	__u32 requests_max;
	__u32 mrs_max;
	__u32 rsvd[8];
};

/* krp_setup.flags */
#define KRP_SETUP_GID 0x1 /* the port is named by its GID */

/**
 * struct krp_setup - KRP_IOC_SETUP: make the completion ring.
 * @abi: in: KRP_ABI_VERSION the program was built for (-EPROTONOSUPPORT).
 * @flags: in: KRP_SETUP_*.
 * @ring_entries: in: power of two, KRP_RING_ENTRIES_MIN to _MAX.
 * @port: in: node port to use, as KRP_IOC_PORT numbers them; 0 takes the first whose
 *	link is up, or else the first. 0 with KRP_SETUP_GID.
 * @map_bytes: out: how much to map at offset 0, in bytes.
 * @gid: in: with KRP_SETUP_GID, the GID of the node port to use, else zero. Ports are
 *	numbered anew when one comes or goes, so that a number may mean another one by now;
 *	a GID means the same one, or none (-ENODEV).
 */
struct krp_setup {
	__u32 abi;
	__u32 flags;
	__u32 ring_entries;
	__u32 port;
	__u64 map_bytes;
	__u8 gid[KRP_GID_BYTES];
};

/**
 * struct krp_port_info - KRP_IOC_PORT: one RDMA port of this node.
 * @index: in: 1 to krp_query.ports; 0 after KRP_IOC_SETUP: the port that it chose.
 * @flags: out: KRP_DCT_*.
 * @gid: out: its GID, by which peers find it.
 * @device: out: name of the RDMA device, NUL-terminated.
 * @port_num: out: port of the device, from 1.
 * @mtu: out: enum ib_mtu.
 * @rsvd: out: zero.
 */
struct krp_port_info {
	__u32 index;
	__u32 flags;
	__u8 gid[KRP_GID_BYTES];
	char device[64];
	__u32 port_num;
	__u32 mtu;
	__u32 rsvd[4];
};

/**
 * struct krp_mr_reg - KRP_IOC_MR_REG: register memory.
 * @addr: in: first byte, any alignment.
 * @length: in: bytes, from 1.
 * @access: in: KRP_ACCESS_*; local reading is always allowed, REMOTE_WRITE and
 *	REMOTE_ATOMIC need LOCAL_WRITE. KRP_ACCESS_MESSAGE lets the nodes of peers READ it to which
 *	messages in it are announced, and gives no token.
 * @handle: out: names the region in requests and KRP_IOC_MR_DEREG.
 * @token: out: names the region to peers; 0 if it has no remote access. Not
 *	a key of the hardware: the peer's module turns it into one.
 * @rsvd: zero.
 */
struct krp_mr_reg {
	__u64 addr;
	__u64 length;
	__u32 access;
	__u32 handle;
	__u64 token;
	__u64 rsvd;
};

/**
 * struct krp_mr_dereg - KRP_IOC_MR_DEREG: forget a region.
 * @handle: in: from KRP_IOC_MR_REG.
 * @rsvd: zero.
 *
 * Waits for requests that use it, and, if it was open to peers, until none of
 * them can hold a valid reference any more. When it returns, the memory is not
 * touched again.
 */
struct krp_mr_dereg {
	__u32 handle;
	__u32 rsvd;
};

/**
 * struct krp_mr_dereg_many - KRP_IOC_MR_DEREG_MANY: forget several regions at once.
 * @handles: in: address of an array of __u32, each from KRP_IOC_MR_REG.
 * @count: in: how many, 1 to KRP_MR_DEREG_MAX.
 * @done: out: how many have been taken back.
 *
 * As KRP_IOC_MR_DEREG of each, but what has to be waited for is waited for once. A handle
 * that is not a region's (-ENOENT), also one that is there twice, stops it: those before it
 * are taken back, and @done is its index. Returns 0 if at least one was taken back; -EINVAL
 * (@count), -EFAULT (@handles), -ENOMEM; nothing is taken back then.
 */
struct krp_mr_dereg_many {
	__u64 handles;
	__u32 count;
	__u32 done;
};

/**
 * struct krp_queue_create - KRP_IOC_QUEUE_CREATE: make a queue.
 * @depth: in: most requests at once, 1 to KRP_QUEUE_DEPTH_MAX. So many entries
 *	of the ring are set aside for it.
 * @flags: in: zero.
 * @queue: out: its number in this context.
 * @rsvd: zero.
 */
struct krp_queue_create {
	__u32 depth;
	__u32 flags;
	__u32 queue;
	__u32 rsvd;
};

/* krp_connect.flags */
#define KRP_CONNECT_FRESH 0x1 /* use nothing that the node has long remembered of the peer */
#define KRP_CONNECT_CREATE 0x2 /* make the queue first: one call instead of two */

/**
 * struct krp_connect - KRP_IOC_CONNECT: connect a queue that is IDLE or ERROR, or a new one.
 * @queue: in: queue, 0 with KRP_CONNECT_CREATE; out: with it, the number of the queue.
 * @flags: in: KRP_CONNECT_*.
 * @gid: in: GID of the peer's port.
 * @service: in: KRP_SERVICE_NODE, or one that a program there has bound.
 * @rsvd: zero.
 * @timeout_ms: in: how long a look-up may take, 1 to KRP_CONNECT_TIMEOUT_MS_MAX.
 * @reads: out: READs of a MetaServer that it took; 0 from the cache.
 * @depth: in: with KRP_CONNECT_CREATE as in struct krp_queue_create, else 0.
 * @generation: out: boot generation of the peer.
 *
 * With KRP_CONNECT_CREATE errors are those of KRP_IOC_QUEUE_CREATE too, and no queue is
 * left if the call fails.
 */
struct krp_connect {
	__u32 queue;
	__u32 flags;
	__u8 gid[KRP_GID_BYTES];
	__u16 service;
	__u16 rsvd;
	__u32 timeout_ms;
	__u32 reads;
	__u32 depth;
	__u64 generation;
};

/**
 * struct krp_queue_query - KRP_IOC_QUEUE_QUERY: how a queue is.
 * @queue: in: queue.
 * @state: out: KRP_QUEUE_*.
 * @error: out: in ERROR: the negative errno that led there.
 * @outstanding: out: requests without completion.
 * @posted: out: requests taken so far.
 * @completed: out: completions so far.
 * @rsvd: zero.
 */
struct krp_queue_query {
	__u32 queue;
	__u32 state;
	__s32 error;
	__u32 outstanding;
	__u64 posted;
	__u64 completed;
	__u64 rsvd;
};

/**
 * struct krp_queue_close - KRP_IOC_QUEUE_CLOSE: end a queue.
 * @queue: in: queue.
 * @rsvd: zero.
 *
 * Requests that have not been done complete with -ECANCELED. Those in flight are waited
 * for, and complete with their outcome; with -EREMCHG if that cannot be known. When the
 * call returns there comes no further completion of this queue.
 */
struct krp_queue_close {
	__u32 queue;
	__u32 rsvd;
};

/**
 * struct krp_bind - KRP_IOC_BIND: let peers connect to a service of this node.
 * @service: in: 256 to 65535.
 * @flags: in: KRP_BIND_*.
 * @timeout_ms: in: how long to wait until one MetaServer has it, 1 to
 *	KRP_CONNECT_TIMEOUT_MS_MAX. KRP_BIND_UNDO does not wait: then 0 is right, too, and
 *	what is in its range means nothing.
 * @backlog: in: with KRP_BIND_LISTEN: how many connections may wait to be accepted, 1 to
 *	KRP_BACKLOG_MAX; more are refused (-EBUSY to their openers). Else zero.
 * @rsvd: zero.
 *
 * Publishes (GID, service); undone by KRP_BIND_UNDO or the last close. A service
 * belongs to one context of the node at a time (-EADDRINUSE). A user who binds and publishes more
 * often than the node lets it waits, or gets -EBUSY if its turn comes after @timeout_ms.
 *
 * With KRP_BIND_LISTEN connections to it are offered from then on, too. It needs an inbox
 * (-EBADFD), and room in it: each that may wait takes 4096 of its bytes for that, of which
 * services have as many as krp_inbox.bytes (-ENOSPC). KRP_BIND_UNDO, without this flag, ends it;
 * offers that are in the inbox, or were taken and not answered, stay good.
 */
struct krp_bind {
	__u16 service;
	__u16 flags;
	__u32 timeout_ms;
	__u32 backlog;
	__u32 rsvd;
};

#define KRP_BIND_UNDO 0x1
#define KRP_BIND_LISTEN 0x2

/* krp_record_lookup.flags */
#define KRP_LOOKUP_FRESH 0x1 /* READ it from a MetaServer, also if the node remembers it */

/* krp_record_lookup.answer */
/*
 * With -ENOENT: the record may be there all the same. With 0: it comes from the node's cache, may
 * be outdated, and no server can confirm it.
 */
#define KRP_LOOKUP_DOUBT 0x1

/**
 * struct krp_record_lookup - KRP_IOC_LOOKUP: find a record.
 * @gid: in: GID of the port that published it.
 * @service: in: which record of it, 0 to 65535.
 * @flags: in: KRP_LOOKUP_*.
 * @timeout_ms: in: how long it may take, 1 to KRP_CONNECT_TIMEOUT_MS_MAX.
 * @reads: out: READs of a MetaServer that it took; 0 from the node's cache.
 * @answer: in: zero; out: KRP_LOOKUP_*.
 * @generation: out: boot generation of the owner.
 * @kind: in: zero; out: KRP_KIND_*.
 * @raw_len: in: zero; out: KRP_KIND_RAW: bytes of @raw; else 0.
 * @raw: in: zero; out: KRP_KIND_RAW: what was published, the rest zero.
 *
 * From the cache, a record may be as old as the server's notification of its change takes;
 * one that was READ from a server that hangs, until the session with that server has ended.
 * When a session ends, or messages of it were lost, the servers are asked for each cached record
 * once more; if none can be asked, or all that answer were restarted so recently that
 * publishers may not have come back, or hang, the cached one is the answer, with KRP_LOOKUP_DOUBT.
 * With -ENOENT KRP_LOOKUP_DOUBT says that the miss is not proved: every server that answered was
 * restarted so recently that publishers may not have come back, or hangs; or only one
 * answered though more are configured, and the record may have been taken by another.
 *
 * Returns 0, -EINVAL, -EBADFD (no setup), -ENODEV (the port is gone), -ENOENT (the
 * servers that answer have no such record; @reads and @answer are filled), -ENOTCONN (no
 * server that can be asked is attached), -ETIMEDOUT, -EINTR.
 */
struct krp_record_lookup {
	__u8 gid[KRP_GID_BYTES];
	__u16 service;
	__u16 flags;
	__u32 timeout_ms;
	__u32 reads;
	__u32 answer;
	__u64 generation;
	__u8 kind;
	__u8 raw_len;
	__u8 raw[KRP_RAW_BYTES];
};

/**
 * struct krp_record_publish - KRP_IOC_PUBLISH: put bytes where other nodes look them up.
 * @service: in: 256 to 65535.
 * @flags: in: zero. KRP_IOC_BIND with KRP_BIND_UNDO takes the record back.
 * @timeout_ms: in: how long to wait until one MetaServer has it, 1 to
 *	KRP_CONNECT_TIMEOUT_MS_MAX.
 * @raw_len: in: bytes of @raw, 0 to KRP_RAW_BYTES.
 * @raw: in: the bytes; those behind @raw_len are zero.
 * @rsvd: zero.
 *
 * Again by the same context it replaces the bytes; if that fails, the old ones stay
 * published. Returns 0, -EINVAL, -EBADFD (no setup), -ENODEV, -EADDRINUSE (another
 * context has the service, or this one has bound it), -EBUSY (another thread publishes or
 * binds it just now, or the user has published so often that the next turn comes after
 * @timeout_ms), -EDQUOT (limit of the user), -ENOMEM, -ETIMEDOUT, -EINTR, or the
 * refusal of the servers (krp_status_errno()).
 */
struct krp_record_publish {
	__u16 service;
	__u16 flags;
	__u32 timeout_ms;
	__u8 raw_len;
	__u8 raw[KRP_RAW_BYTES];
	__u8 rsvd;
};

/**
 * struct krp_record_watch - KRP_IOC_WATCH: be told of changes of records.
 * @flags: in: KRP_WATCH_*.
 * @rsvd: zero.
 *
 * The first event is KRP_EVENT_RESYNC: what changed before is not told. Returns 0,
 * -EINVAL, -EBADFD (no setup), -ENODEV, -ENOMEM, -EALREADY (it is on, or off, already).
 */
struct krp_record_watch {
	__u32 flags;
	__u32 rsvd;
};

#define KRP_WATCH_OFF 0x1 /* no more; what was not read is dropped */
#define KRP_EVENTS_MAX 256

/**
 * struct krp_event - What read(2) gives: one change.
 * @gid: which record; zero with KRP_EVENT_RESYNC.
 * @service: the same.
 * @type: KRP_EVENT_* of krp_msg.h.
 * @rsvd: zero.
 * @generation: of the record, now or last; 0 with KRP_EVENT_RESYNC.
 *
 * read(2) gives as many as fit and are there. It returns their bytes; -EINVAL (less room
 * than one), -EBADFD (not watching), -EAGAIN (none, and O_NONBLOCK), -EFAULT (then what
 * was to be copied stays), -ERESTARTSYS, -ENODEV (the port is gone).
 */
struct krp_event {
	__u8 gid[KRP_GID_BYTES];
	__u16 service;
	__u8 type;
	__u8 rsvd[5];
	__u64 generation;
};

/**
 * struct krp_wr - One request.
 * @user_data: given back in the completion.
 * @local_addr: address in the region, as the registering process sees it.
 * @remote_addr: address in the peer's region, as its owner sees it.
 * @remote_token: krp_mr_reg.token of the peer's region.
 * @local_mr: handle of the region.
 * @length: bytes, 1 to KRP_LENGTH_MAX; 8 for atomics.
 * @opcode: KRP_OP_*.
 * @flags: KRP_WR_*.
 * @rsvd: zero.
 * @compare_add: CMP_SWAP: value expected; FETCH_ADD: value added.
 * @swap: CMP_SWAP: new value.
 *
 * Atomics work on 8 bytes at an aligned remote address; the old value is written
 * to local memory. All of it in the host's byte order.
 *
 * KRP_WR_IDEMPOTENT is for WRITEs after which nobody else may write to the same bytes
 * before their completion is there. It is allowed of READs, which it says nothing new of,
 * and refused of atomics (-EINVAL).
 */
struct krp_wr {
	__u64 user_data;
	__u64 local_addr;
	__u64 remote_addr;
	__u64 remote_token;
	__u32 local_mr;
	__u32 length;
	__u8 opcode;
	__u8 flags;
	__u8 rsvd[6];
	__u64 compare_add;
	__u64 swap;
};

/* krp_post.flags */
#define KRP_POST_WAIT 0x1 /* then busy-poll until all of the queue has completed */

/**
 * struct krp_post - KRP_IOC_POST: post requests to a queue.
 * @wrs: in: address of an array of struct krp_wr.
 * @count: in: how many, 1 to KRP_POST_MAX.
 * @queue: in: queue.
 * @taken: out: how many were taken.
 * @error: out: why the next one was not: 0, or a negative errno.
 * @flags: in: KRP_POST_*.
 * @rsvd: zero.
 *
 * KRP_POST_WAIT is for a thread that has nothing else to do: the call returns when all
 * requests of the queue have completed, or when it has busy-polled for them as long as the
 * module's parameter spin_us allows. It takes completions from the hardware itself, so that
 * no interrupt has to come. It never blocks for them; KRP_IOC_WAIT does.
 * The completions it waited for are in the ring when it returns.
 *
 * Returns 0 if at least one was taken, else the error: -EAGAIN (queue or ring
 * is full), -ENOTCONN, -EINVAL, -ENOENT (no such queue or local region), -EACCES (the
 * region does not allow it), -ERANGE (outside the local region), and for the
 * remote side -EBADR (no such remote region), -EPERM (not
 * allowed there), -EOVERFLOW (outside it), -EFAULT (@wrs; or the answer cannot be written,
 * and then requests may have been taken: their completions come), -EDQUOT (limit of the
 * user); -EOPNOTSUPP (an atomic, and the device has none), -ETIMEDOUT, -EREMOTEIO
 * (the peer's directory could not be READ, or a moment ago it could not be: such a peer is
 * asked again only after a pause, of seconds at most, or of up to half a minute if its NIC refused
 * what its directory allows more than four times, with a minute or less between), -EBUSY (a peer
 * that has not answered of late is asked apart from others, and its turn has not come for a
 * minute), -EIO (no hardware queue works now), -EINTR, -ENOMEM.
 */
struct krp_post {
	__u64 wrs;
	__u32 count;
	__u32 queue;
	__u32 taken;
	__s32 error;
	__u32 flags;
	__u32 rsvd;
};

#define KRP_WAIT_FOREVER 0xffffffff

/* krp_wait.flags */
#define KRP_WAIT_LETTERS 0x1 /* or a letter in the inbox */

/**
 * struct krp_wait - KRP_IOC_WAIT: wait until there is a completion in the ring.
 * @timeout_ms: in: how long to sleep at most; 0: only look; KRP_WAIT_FOREVER.
 * @flags: in: KRP_WAIT_*.
 *
 * Busy-polls for as long as the module's parameter spin_us allows and takes completions
 * from the hardware itself meanwhile; then sleeps. Another thread may be faster to
 * consume it. Returns 0, -EINVAL, -EBADFD (no setup), -ETIMEDOUT, -EINTR (a signal),
 * -ENODEV (the device is gone, and there is no completion), -EBUSY (KRP_SLEEPERS_MAX wait).
 */
struct krp_wait {
	__u32 timeout_ms;
	__u32 flags;
};

/**
 * struct krp_cqe - One completion.
 * @user_data: of the request.
 * @status: 0, or a negative errno: -EREMOTEIO (peer refused the access),
 *	-ETIMEDOUT (peer does not answer: it may or may not have been done),
 *	-ECANCELED (behind one that failed, or queue closed: it was not done), -EREMCHG
 *	(a WRITE or an atomic that may or may not have been done, see above), -EIO
 *	(local fault), -ENODEV (device gone); and the errors of
 *	KRP_IOC_POST about the peer's region, which may go while a request waits.
 *	A WRITE of more than 256 KiB is done in parts: one that failed with whatever but
 *	-ECANCELED may have been done in part, from its first byte on.
 * @bytes: transferred.
 * @queue: queue; KRP_OP_SEND, KRP_OP_FETCH, KRP_OP_RECV: connection. Errors of these are at
 *	KRP_IOC_SEND and KRP_IOC_LARGE.
 * @opcode: KRP_OP_*.
 * @flags: KRP_CQE_*.
 * @rsvd: zero.
 * @offset: KRP_OP_RECV: where the message is in its buffer, in bytes; else 0.
 * @rsvd2: zero.
 */
struct krp_cqe {
	__u64 user_data;
	__s32 status;
	__u32 bytes;
	__u32 queue;
	__u8 opcode;
	__u8 flags;
	__u8 rsvd[2];
	__u32 offset;
	__u32 rsvd2;
};

/**
 * struct krp_ring - First bytes of the mapping.
 * @head: written by the program: completions consumed so far, wraps.
 * @rsvd: zero.
 * @tail: written by the module: completions so far, wraps.
 * @entries: size of the ring.
 * @offset: of the first struct krp_cqe from here, in bytes.
 * @rsvd2: zero.
 *
 * Entry i is at index i & (entries - 1).
 */
struct krp_ring {
	__u32 head;
	__u32 rsvd[15];
	__u32 tail;
	__u32 entries;
	__u32 offset;
	__u32 rsvd2[13];
};

#define KRP_IOC_QUERY _IOR(KRP_IOC_MAGIC, 0, struct krp_query)
#define KRP_IOC_SETUP _IOWR(KRP_IOC_MAGIC, 1, struct krp_setup)
#define KRP_IOC_PORT _IOWR(KRP_IOC_MAGIC, 2, struct krp_port_info)
#define KRP_IOC_MR_REG _IOWR(KRP_IOC_MAGIC, 3, struct krp_mr_reg)
#define KRP_IOC_MR_DEREG _IOW(KRP_IOC_MAGIC, 4, struct krp_mr_dereg)
#define KRP_IOC_QUEUE_CREATE _IOWR(KRP_IOC_MAGIC, 5, struct krp_queue_create)
#define KRP_IOC_CONNECT _IOWR(KRP_IOC_MAGIC, 6, struct krp_connect)
#define KRP_IOC_QUEUE_QUERY _IOWR(KRP_IOC_MAGIC, 7, struct krp_queue_query)
#define KRP_IOC_QUEUE_CLOSE _IOW(KRP_IOC_MAGIC, 8, struct krp_queue_close)
#define KRP_IOC_BIND _IOW(KRP_IOC_MAGIC, 9, struct krp_bind)
#define KRP_IOC_POST _IOWR(KRP_IOC_MAGIC, 10, struct krp_post)
#define KRP_IOC_WAIT _IOW(KRP_IOC_MAGIC, 11, struct krp_wait)
#define KRP_IOC_MR_DEREG_MANY _IOWR(KRP_IOC_MAGIC, 12, struct krp_mr_dereg_many)
#define KRP_IOC_LOOKUP _IOWR(KRP_IOC_MAGIC, 16, struct krp_record_lookup)
#define KRP_IOC_PUBLISH _IOW(KRP_IOC_MAGIC, 17, struct krp_record_publish)
#define KRP_IOC_WATCH _IOW(KRP_IOC_MAGIC, 18, struct krp_record_watch)

KRP_STATIC_ASSERT(sizeof(struct krp_query) == 64, "krp_query");
KRP_STATIC_ASSERT(sizeof(struct krp_setup) == 40, "krp_setup");
KRP_STATIC_ASSERT(sizeof(struct krp_port_info) == 112, "krp_port_info");
KRP_STATIC_ASSERT(sizeof(struct krp_mr_reg) == 40, "krp_mr_reg");
KRP_STATIC_ASSERT(sizeof(struct krp_mr_dereg) == 8, "krp_mr_dereg");
KRP_STATIC_ASSERT(sizeof(struct krp_mr_dereg_many) == 16, "krp_mr_dereg_many");
KRP_STATIC_ASSERT(sizeof(struct krp_queue_create) == 16, "krp_queue_create");
KRP_STATIC_ASSERT(sizeof(struct krp_connect) == 48, "krp_connect");
KRP_STATIC_ASSERT(sizeof(struct krp_queue_query) == 40, "krp_queue_query");
KRP_STATIC_ASSERT(sizeof(struct krp_bind) == 16, "krp_bind");
KRP_STATIC_ASSERT(sizeof(struct krp_wr) == 64, "krp_wr");
KRP_STATIC_ASSERT(sizeof(struct krp_post) == 32, "krp_post");
KRP_STATIC_ASSERT(sizeof(struct krp_wait) == 8, "krp_wait");
KRP_STATIC_ASSERT(sizeof(struct krp_cqe) == 32, "krp_cqe");
KRP_STATIC_ASSERT(sizeof(struct krp_ring) == 128, "krp_ring");
KRP_STATIC_ASSERT(sizeof(struct krp_record_lookup) == 88, "krp_record_lookup");
KRP_STATIC_ASSERT(sizeof(struct krp_record_publish) == 56, "krp_record_publish");
KRP_STATIC_ASSERT(sizeof(struct krp_record_watch) == 8, "krp_record_watch");
KRP_STATIC_ASSERT(sizeof(struct krp_event) == 32, "krp_event");

#include "krp_ioctl_message.h"

#endif /* KRP_IOCTL_H */
