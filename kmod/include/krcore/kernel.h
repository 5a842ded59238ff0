/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * krcore for other modules of the kernel: the same queues and connections that programs have through
 * /dev/krcore, over the same channels, with the same checks. docs/kernel-api.md is the manual.
 *
 * Objects and life-times. A client is a name on one RDMA port of the node; queues, regions, listeners
 * and connections belong to it. All are made and closed by the module that uses them, in contexts that
 * may sleep. Close functions return when no callback of the object runs or will run any more, and no
 * device accesses its memory on its behalf; the object is gone then. krcore_client_close() closes all
 * that is still open of the client. No call may be under way on an object, or begin, when its close begins,
 * but for krcore_post() out of its own callbacks (when a client is closed, out of those of any of its
 * objects), and krcore_send() and krcore_fetch() of what has got its done(), which may come before they
 * return.
 *
 * Unloading. A module that uses these functions keeps krcore.ko loaded. It closes its clients before
 * its text goes; one that does not is warned about in the log, and krcore closes them in its place.
 *
 * The port can go at any time: the device is unplugged, loses its address, or `krcore-metactl node
 * down` is called. Then all requests end, queues fail, each call but a close says -ENODEV, and after
 * that krcore_client_conf.removed is called, once. Nobody waits for the client to close: what it has
 * open is dead memory until then. A port that comes up later is a matter for a new client.
 *
 * The payer. Limits of a user (krcore.conf) hold for all clients of a name together, whatever task
 * calls; no RDMA cgroup is charged. Clients of a name share one turn on the channels, as the queues of a
 * user do.
 *
 * A client is checked as a program is: it reaches only memory that it has registered, and memory of
 * peers that they have opened, within its bounds and rights.
 */
#ifndef KRCORE_KERNEL_H
#define KRCORE_KERNEL_H

#include <linux/types.h>

struct module;
struct page;

struct krcore_client;
struct krcore_conn;
struct krcore_letter;
struct krcore_listener;
struct krcore_offer;
struct krcore_queue;
struct krcore_region;

#define KRCORE_GID_BYTES 16
#define KRCORE_NAME_BYTES 32 /* of a client, with the end of the string */
#define KRCORE_RAW_MAX 46 /* bytes of a raw record */
#define KRCORE_DEPTH_MAX 1024 /* requests of a queue at once */
#define KRCORE_LENGTH_MAX (1U << 30) /* bytes of a READ or WRITE */
#define KRCORE_TIMEOUT_MS_MAX 60000
#define KRCORE_SERVICE_MIN 256 /* lowest number of a service that may be listened to */
#define KRCORE_INBOX_MIN 4096
#define KRCORE_INBOX_MAX (16U << 20)
#define KRCORE_BACKLOG_MAX 1024 /* offers of a listener that may wait */
#define KRCORE_MESSAGE_MAX 4032 /* bytes of a message that is copied */
#define KRCORE_FIRST_MAX 3896 /* bytes of one that goes along when a connection is opened */
#define KRCORE_LARGE_MAX (1U << 30) /* bytes of a message that is announced */
#define KRCORE_USER_MAX 32 /* bytes that go along when a connection is opened or accepted */

/* Rights of a region; local reading is always allowed, remote writing needs local. */
#define KRCORE_LOCAL_WRITE 0x1
#define KRCORE_REMOTE_READ 0x2
#define KRCORE_REMOTE_WRITE 0x4
#define KRCORE_REMOTE_ATOMIC 0x8
#define KRCORE_MESSAGE 0x10 /* for krcore_send.region; not with the last two */

/* Flags of a request. */
#define KRCORE_FENCE 0x1 /* begin after all earlier READs and atomics of the queue */
#define KRCORE_IDEMPOTENT 0x2 /* this WRITE may be done twice: better that than -EREMCHG */

/**
 * enum krcore_opcode - What a request does.
 * @KRCORE_READ: bring remote memory.
 * @KRCORE_WRITE: write to remote memory.
 * @KRCORE_CMP_SWAP: bring 8 bytes, and put krcore_op.swap there if they equal compare_add.
 * @KRCORE_FETCH_ADD: bring 8 bytes, and add krcore_op.compare_add there.
 */
enum krcore_opcode {
	KRCORE_READ = 1,
	KRCORE_WRITE = 2,
	KRCORE_CMP_SWAP = 3,
	KRCORE_FETCH_ADD = 4,
};

/**
 * struct krcore_client_conf - What a client is to be.
 * @owner: THIS_MODULE.
 * @name: payer: limits count by it; 1 to KRCORE_NAME_BYTES - 1 characters.
 * @gid: GID of a port of this node; all zero: the first port with a link.
 * @inbox: bytes of messages that peers may have waiting for it, KRCORE_INBOX_MIN to KRCORE_INBOX_MAX, a
 *	multiple of KRCORE_INBOX_MIN; 0: it has no messages.
 * @removed: called once when the port has gone; may be NULL. May sleep, but the end of the port waits
 *	for it, so it must neither close nor open anything: it has a work item do that. May be called
 *	before krcore_client_open() returns; not any more once krcore_client_close() has returned.
 * @arg: for @removed.
 */
struct krcore_client_conf {
	struct module *owner;
	const char *name;
	u8 gid[KRCORE_GID_BYTES];
	u32 inbox;
	void (*removed)(void *arg);
	void *arg;
};

/**
 * krcore_client_open() - Become a client on a port.
 * @conf: what it is to be; copied, but for what it points to: its name is copied, too.
 *
 * Context: may sleep.
 * Return: the client, for krcore_client_close(); or ERR_PTR: -EINVAL (no name, or a too long one;
 * inbox), -ENODEV (no such port is up), -EDQUOT (as many clients as the limit of queues allows a user,
 * or as many bytes of inboxes as a user may have), -EOPNOTSUPP (messages, and the device receives
 * none), -ENOMEM.
 */
struct krcore_client *krcore_client_open(const struct krcore_client_conf *conf);

/**
 * krcore_client_close() - Close a client, and all that it still has open; connections are aborted.
 * @client: client.
 *
 * Callbacks may close connections and listeners up to the moment that this waits for the last of them.
 * Context: may sleep, for as long as krcore_queue_close() and krcore_region_close(); no callback.
 */
void krcore_client_close(struct krcore_client *client);

/**
 * struct krcore_record - What is known of a service.
 * @generation: of the node that published it; differs after each of its restarts.
 * @connectable: krcore_queue_open() to it makes sense; else it is bytes of a program.
 * @raw_len: how many those are.
 * @raw: the bytes; zero behind them.
 * @reads: READs of a MetaServer that the answer took; 0: this node had it.
 */
struct krcore_record {
	u64 generation;
	bool connectable;
	u32 raw_len;
	u8 raw[KRCORE_RAW_MAX];
	u32 reads;
};

/**
 * krcore_lookup() - Look a service up.
 * @client: client.
 * @gid: GID of the node.
 * @service: number of the service; 0: the node itself.
 * @timeout_ms: limit in milliseconds, 1 to KRCORE_TIMEOUT_MS_MAX.
 * @ret_record: out: the record.
 *
 * Keys of a target stay in krcore. Context: may sleep.
 * Return: 0, -EINVAL (@timeout_ms), -ENOENT (no such record), -ENODEV (the port has gone), -ENOTCONN
 * (no MetaServer), -ETIMEDOUT, -EINTR (the task was killed), or another error of the MetaServers.
 */
int krcore_lookup(struct krcore_client *client, const u8 gid[KRCORE_GID_BYTES], u16 service,
		  u32 timeout_ms, struct krcore_record *ret_record);

/**
 * struct krcore_queue_conf - To what a queue is to be connected, and how large it is.
 * @gid: GID of the peer.
 * @service: its service; 0: the node itself.
 * @depth: requests at once, 1 to KRCORE_DEPTH_MAX.
 * @timeout_ms: limit of the look-up in milliseconds, 1 to KRCORE_TIMEOUT_MS_MAX.
 */
struct krcore_queue_conf {
	u8 gid[KRCORE_GID_BYTES];
	u16 service;
	u32 depth;
	u32 timeout_ms;
};

/**
 * krcore_queue_open() - Make a queue that is connected to a service.
 * @client: client.
 * @conf: see there.
 *
 * Nothing is sent to the peer, and at most one READ to a MetaServer. Context: may sleep.
 * Return: the queue, for krcore_queue_close(); or ERR_PTR: -EINVAL (depth or timeout_ms), -EDQUOT
 * (limit of queues), -ENOMEM, -EPROTO (the service is no target), an error of krcore_lookup(), or
 * -EAFNOSUPPORT, -ENETUNREACH (the peer can't be reached from this port).
 */
struct krcore_queue *krcore_queue_open(struct krcore_client *client,
				       const struct krcore_queue_conf *conf);

/**
 * krcore_queue_close() - Close a queue.
 * @queue: queue.
 *
 * Requests that are not in the hardware end with -ECANCELED; waits for the others, and for all
 * callbacks. Context: may sleep, for some seconds if the peer does not answer; no callback.
 */
void krcore_queue_close(struct krcore_queue *queue);

/**
 * krcore_queue_error() - Whether a queue has failed.
 * @queue: queue.
 *
 * A queue fails with its first request that does, and stays so: a new one may be opened.
 * Context: any.
 * Return: 0, or the errno that it failed with.
 */
int krcore_queue_error(const struct krcore_queue *queue);

/**
 * krcore_region_open() - Register whole pages.
 * @client: client.
 * @pages: pages, in order; the array is not kept. Of alloc_page(), of a compound page, or
 *	vmalloc_to_page(): each has a count of its own; not of kmalloc().
 * @nr: how many, from 1.
 * @access: KRCORE_LOCAL_WRITE and so on.
 *
 * They are mapped for the device, and counted until krcore_region_close() has returned, so that they
 * can't be given to others meanwhile. The first byte has offset 0, for requests of this client as
 * well as of peers.
 * Context: may sleep.
 * Return: the region, for krcore_region_close(); or ERR_PTR: -EINVAL (@nr, @access, or pages without
 * a count of their own), -EOPNOTSUPP (the device has no atomics), -EDQUOT (limit of regions, or this
 * client has its part of those that can be open to peers), -ENOSPC (no more can be open to peers),
 * -ENOMEM, -ENODEV (the port has gone), -EINTR (the task was killed), -EIO, -E2BIG (the device can't
 * map so much).
 */
struct krcore_region *krcore_region_open(struct krcore_client *client, struct page *const *pages,
					 u32 nr, u32 access);

/**
 * krcore_region_token() - By what name peers reach a region.
 * @region: region.
 *
 * Context: any.
 * Return: the token; 0: it is not open to peers.
 */
u64 krcore_region_token(const struct krcore_region *region);

/**
 * krcore_region_close() - Deregister a region.
 * @region: region.
 *
 * Waits for requests that use it and, if it was open to peers, until the leases of those that may
 * know it are over; afterwards neither a request nor a peer accesses the pages. A signal does not
 * shorten that. Context: may sleep, for some seconds; no callback.
 */
void krcore_region_close(struct krcore_region *region);

/**
 * struct krcore_op - A request.
 * @opcode: what it does.
 * @flags: KRCORE_FENCE, KRCORE_IDEMPOTENT.
 * @region: local memory, of the same client; must be open until @done.
 * @offset: first byte there.
 * @length: bytes, 1 to KRCORE_LENGTH_MAX; atomics: 8.
 * @token: region of the peer.
 * @remote: address of the first byte there, as the peer names it; atomics: a multiple of 8.
 * @compare_add: KRCORE_CMP_SWAP: what to compare with; KRCORE_FETCH_ADD: what to add.
 * @swap: KRCORE_CMP_SWAP: the new value.
 * @done: called once for each request that krcore_post() took; see there.
 * @arg: for @done.
 */
struct krcore_op {
	enum krcore_opcode opcode;
	u32 flags;
	struct krcore_region *region;
	u64 offset;
	u32 length;
	u64 token;
	u64 remote;
	u64 compare_add;
	u64 swap;
	void (*done)(struct krcore_queue *queue, void *arg, int status);
	void *arg;
};

/**
 * krcore_post() - Post a request.
 * @queue: queue.
 * @op: the request; copied.
 *
 * Requests of a queue begin and end in the order in which they were posted. What krcore does not know
 * yet of the peer's memory it READs before the request begins, and nobody waits for that here.
 *
 * done() is called with bottom halves off, in a softirq, in another task, or before this returns; it
 * must not sleep, should be short, and may post to this and other queues. No call of it is
 * running or to come when krcore_queue_close() has returned. Its status is 0, or:
 * -ECANCELED (not executed: the queue failed or was closed before), -EREMCHG (a WRITE or an
 * atomic was under way when its channel failed, and may or may not have been executed), -ETIMEDOUT
 * (the peer does not answer), -EREMOTEIO (the peer refused it), -EBADR, -EPERM, -EOVERFLOW (as below,
 * found out later), -ENODEV (the port has gone), -EBUSY, -ENOMEM, -EIO. Each but 0 fails the queue.
 * Context: any but hard interrupts, with interrupts on.
 * Return: 0: @op->done will be called, or has been. Else it never is: -EINVAL (opcode, flags, length,
 * alignment, no @done, or a region of another client), -ERANGE (outside the local region), -EACCES
 * (local region not writable), -EOPNOTSUPP (no atomics), -EBADR (the peer has no such region), -EPERM
 * (it does not allow this), -EOVERFLOW (outside it), -EAGAIN (as many requests as the queue is deep),
 * -EDQUOT (limit of requests), -ENOTCONN (the queue has failed), -ESHUTDOWN (it is being closed),
 * -ENODEV (the port has gone).
 */
int krcore_post(struct krcore_queue *queue, const struct krcore_op *op);

/* ---- messages */

/*
 * Callbacks of messages (krcore_listen_conf.offered, krcore_conn_ops, krcore_send.done) come in a
 * task, one after the other for all of a client but those that krcore_conn_close() makes, and may
 * sleep: what they keep waiting is this client alone (unless those of more than 256 clients sleep),
 * whose peers then send no more than it has an inbox for. They may call every function but
 * krcore_client_close(); one that closes the object that it was called for returns at once.
 *
 * What a peer can have a client hold is bounded: offers by the backlog of a listener, of which no node
 * gets more than half; messages by krcore_client_conf.inbox, and by one for each connection beyond;
 * connections by what the module accepts, and by the limit of queues.
 */

/**
 * struct krcore_peer - Whom a connection is with.
 * @gid: GID of its node, as the table of the MetaServers has it.
 * @generation: of that node.
 * @conn: number of the connection there; 0: not known yet.
 * @service: service that it was opened to, at whichever end.
 * @user_len: bytes of @user.
 * @user: what the peer said when it opened or accepted.
 */
struct krcore_peer {
	u8 gid[KRCORE_GID_BYTES];
	u64 generation;
	u32 conn;
	u16 service;
	u8 user_len;
	u8 user[KRCORE_USER_MAX];
};

/**
 * struct krcore_message - A message that has come.
 * @bytes: the message; valid until krcore_letter_free(). NULL: the peer has it, see
 *	krcore_conn_ops.announced.
 * @length: bytes of it; may be 0.
 * @imm: immediate.
 * @after: WRITEs of the sender before it have been done.
 */
struct krcore_message {
	const void *bytes;
	u32 length;
	u32 imm;
	bool after;
};

/**
 * struct krcore_conn_ops - What a connection tells.
 * @opened: the peer has accepted a connection of krcore_connect(); before all others. May be NULL.
 * @received: a message has come. @letter is the module's until krcore_letter_free(), here or later, and
 *	the peer gets credit for another message only then. @message is valid in the call alone.
 * @announced: the same of a large message, which the peer holds: krcore_fetch() brings it, and what was
 *	not fetched is discarded by krcore_letter_free(). NULL: such messages are discarded at once.
 * @ended: the peer sends no more. May be NULL.
 * @died: the connection has failed, with -ECONNRESET (the peer aborted it, or ended), -ECONNREFUSED,
 *	-EBUSY (backlog of the peer), -ESTALE (the record is of an earlier generation of the peer),
 *	-ETIMEDOUT (it does not answer), -EPROTO, -ENODEV (the port has gone). The last one: each
 *	message was received, each done() called, also those of large messages, which come up to
 *	21 s later while the peer may still be READing. The connection is still to be closed, also
 *	here.
 */
struct krcore_conn_ops {
	void (*opened)(struct krcore_conn *conn, void *arg);
	void (*received)(struct krcore_conn *conn, struct krcore_letter *letter,
			 const struct krcore_message *message, void *arg);
	void (*announced)(struct krcore_conn *conn, struct krcore_letter *letter,
			  const struct krcore_message *message, void *arg);
	void (*ended)(struct krcore_conn *conn, void *arg);
	void (*died)(struct krcore_conn *conn, int err, void *arg);
};

/**
 * struct krcore_conn_conf - What a module decides of a connection.
 * @ops: callbacks; not copied.
 * @arg: for them.
 * @depth: messages and krcore_fetch() that may be under way at once, 1 to KRCORE_DEPTH_MAX.
 * @user: what the peer is told; copied.
 * @user_len: bytes of it, at most KRCORE_USER_MAX.
 */
struct krcore_conn_conf {
	const struct krcore_conn_ops *ops;
	void *arg;
	u32 depth;
	const void *user;
	u32 user_len;
};

/**
 * struct krcore_listen_conf - To what a module listens.
 * @service: number, from KRCORE_SERVICE_MIN.
 * @backlog: offers that may wait, 1 to KRCORE_BACKLOG_MAX; more are refused, with -EBUSY. Those of all
 *	listeners of a client: no more than its inbox has KRCORE_INBOX_MIN.
 * @timeout_ms: limit of the publication in milliseconds, 1 to KRCORE_TIMEOUT_MS_MAX.
 * @offered: a peer opens a connection: krcore_accept() it in the call, or it is refused
 *	(-ECONNREFUSED) when that returns.
 * @arg: for @offered.
 */
struct krcore_listen_conf {
	u16 service;
	u32 backlog;
	u32 timeout_ms;
	void (*offered)(struct krcore_offer *offer, const struct krcore_peer *peer, void *arg);
	void *arg;
};

/**
 * krcore_listen() - Publish a service, and take connections to it.
 * @client: client with an inbox.
 * @conf: see there; copied.
 *
 * Waits until one MetaServer has the record. @conf->offered may be called before this returns.
 * Context: may sleep.
 * Return: the listener, for krcore_listener_close(); or ERR_PTR: -EINVAL (a value of @conf), -EBADFD
 * (the client has no inbox), -EADDRINUSE, -EDQUOT (limit of services), -ENOSPC (services of the node, or
 * places of the inbox for offers), -ENODEV (the port has gone), -ENOTCONN (no MetaServer), -ETIMEDOUT,
 * -ENOMEM, -EINTR (the task was killed), or another error of the MetaServers. Then nothing is
 * published.
 */
struct krcore_listener *krcore_listen(struct krcore_client *client,
				      const struct krcore_listen_conf *conf);

/**
 * krcore_listener_close() - Withdraw a service, and refuse what is offered.
 * @listener: listener.
 *
 * Connections that were accepted stay. Does not wait for the MetaServers, but for a callback that is
 * under way, unless it is called by that.
 * Context: may sleep.
 */
void krcore_listener_close(struct krcore_listener *listener);

/**
 * krcore_accept() - Accept a connection that is offered.
 * @offer: offer, in its krcore_listen_conf.offered.
 * @conf: see there; copied.
 *
 * Context: may sleep.
 * Return: the connection, for krcore_conn_close(); or ERR_PTR: -EINVAL (a value of @conf, or not in that
 * callback), -EALREADY (it was accepted), -EDQUOT (limit of queues), -ENOMEM, or of what it has died
 * meanwhile.
 */
struct krcore_conn *krcore_accept(struct krcore_offer *offer, const struct krcore_conn_conf *conf);

/**
 * struct krcore_send - A message to be sent.
 * @bytes: the message; copied. NULL with @region.
 * @region: announce it, and copy nothing: the peer READs it out of this region of the same client, which
 *	has KRCORE_MESSAGE. The bytes do not change until done(); krcore_region_close() waits as long as a
 *	peer may READ them. NULL: @bytes.
 * @offset: first byte in @region; else 0.
 * @length: bytes of it, at most KRCORE_MESSAGE_MAX; with @region 1 to KRCORE_LARGE_MAX.
 * @imm: immediate.
 * @hurry: have the peer's kernel acknowledge it at once.
 * @done: called once for each message that was taken; in their order, but for those with @region; before
 *	krcore_conn_ops.died. The peer's kernel has it, or has READ it (status 0), or why that is not
 *	known: as krcore_conn_ops.died; -ENOMSG (the peer did not want it) and -EFAULT (its READ has
 *	failed) with @region; -ECANCELED, and nothing else, in krcore_conn_close(), whether the peer has it
 *	or not.
 * @arg: for @done.
 */
struct krcore_send {
	const void *bytes;
	struct krcore_region *region;
	u64 offset;
	u32 length;
	u32 imm;
	bool hurry;
	void (*done)(struct krcore_conn *conn, void *arg, int status);
	void *arg;
};

/**
 * struct krcore_connect_conf - To what a connection is opened.
 * @gid: GID of the peer.
 * @service: its service, from KRCORE_SERVICE_MIN.
 * @timeout_ms: limit of the look-up in milliseconds, 1 to KRCORE_TIMEOUT_MS_MAX.
 * @first: first message, which goes along when the connection is opened, and saves a round trip; at most
 *	KRCORE_FIRST_MAX bytes, without region; copied. Taken if the connection is made. NULL: none.
 */
struct krcore_connect_conf {
	u8 gid[KRCORE_GID_BYTES];
	u16 service;
	u32 timeout_ms;
	const struct krcore_send *first;
};

/**
 * krcore_connect() - Open a connection.
 * @client: client with an inbox.
 * @to: see there.
 * @conf: see there; copied.
 *
 * Does not wait for the peer: opened() or died() follows, after 10 s at the latest. It may come before
 * this function is over, so that a module that closes in it has closed it then. What is sent before waits.
 * Context: may sleep.
 * Return: the connection, for krcore_conn_close(); or ERR_PTR: -EINVAL (a value of @to, its @first or @conf),
 * -EMSGSIZE (@first), -EBADFD (the client has no inbox), -EDQUOT (limit of queues, or of requests; or as
 * many connections, with those that are closing, as a user may have of the port),
 * -ENOSPC (connections of the port), -ENOMEM, -EPROTO (the service takes no connections), an error of
 * krcore_lookup(), or -EAFNOSUPPORT, -ENETUNREACH (the peer can't be reached from this port).
 */
struct krcore_conn *krcore_connect(struct krcore_client *client,
				   const struct krcore_connect_conf *to,
				   const struct krcore_conn_conf *conf);

/**
 * krcore_send() - Send a message.
 * @conn: connection.
 * @send: the message; copied.
 *
 * What the peer has no room for yet waits in krcore. Context: may sleep, but waits for nobody.
 * Return: 0: @send->done will be called. Else it never is: -EINVAL (no @done, no @bytes, both @bytes and
 * @region, @offset without it, or one of another client), -EMSGSIZE, -EACCES (a region without
 * KRCORE_MESSAGE), -ERANGE (outside it), -EAGAIN (as many are under way as the connection is deep),
 * -EDQUOT (limit of requests), -ENOMEM, -EPIPE (krcore_conn_shut() was called), -ESHUTDOWN (in a
 * callback: it is being closed), or of what it has died.
 */
int krcore_send(struct krcore_conn *conn, const struct krcore_send *send);

/**
 * struct krcore_fetch - Which bytes of a large message are to come where.
 * @region: local memory, of the same client, with KRCORE_LOCAL_WRITE; krcore_region_close() waits for them.
 * @offset: first byte there.
 * @from: first byte of the message.
 * @length: bytes, from 1.
 * @keep: more of the message will be fetched; else its sender is told that it has been READ.
 * @done: called once if it was taken: the bytes are there (status 0), or why not: -ECANCELED (its sender
 *	has taken it back; or krcore_conn_close(), when bytes may still come until krcore_region_close()
 *	has returned), -EREMOTEIO, -ETIMEDOUT, -ENODEV, or as krcore_conn_ops.died. Then it is not
 *	fetched again.
 * @arg: for @done.
 */
struct krcore_fetch {
	struct krcore_region *region;
	u64 offset;
	u64 from;
	u32 length;
	bool keep;
	void (*done)(struct krcore_conn *conn, void *arg, int status);
	void *arg;
};

/**
 * krcore_fetch() - READ a large message, or a part of it, without a copy.
 * @letter: letter of krcore_conn_ops.announced, not freed.
 * @fetch: see there; copied.
 *
 * One READ of a message is under way at a time. Context: may sleep, but waits for nobody.
 * Return: 0: @fetch->done will be called. Else it never is: -EINVAL (no @done, no @length, beyond the end
 * of the message, a region of another client, or a letter with its bytes), -ERANGE (outside the region),
 * -EACCES (region not writable), -EBUSY (it is being fetched), -ENOENT (it was fetched, or taken back),
 * -EAGAIN (as many are under way as the connection is deep), -EDQUOT (limit of requests), -ENOMEM,
 * -ESHUTDOWN (in a callback: it is being closed).
 */
int krcore_fetch(struct krcore_letter *letter, const struct krcore_fetch *fetch);

/**
 * krcore_letter_free() - A message is done with; the peer may send another one.
 * @letter: letter of krcore_conn_ops.received or announced, whose connection was not closed.
 *
 * A large message of which nothing was fetched, or only with krcore_fetch.keep, is discarded; a READ that is
 * under way goes on, and is its last. Context: may sleep.
 */
void krcore_letter_free(struct krcore_letter *letter);

/**
 * krcore_conn_shut() - Send no more: the peer is told behind what was sent.
 * @conn: connection.
 *
 * Context: may sleep.
 * Return: 0, -EALREADY, -ESHUTDOWN (in a done() of its close), or of what it has died.
 */
int krcore_conn_shut(struct krcore_conn *conn);

/**
 * krcore_conn_peer() - Whom a connection is with.
 * @conn: connection.
 * @ret_peer: out.
 *
 * Context: may sleep.
 */
void krcore_conn_peer(struct krcore_conn *conn, struct krcore_peer *ret_peer);

/**
 * krcore_conn_close() - Close a connection.
 * @conn: connection.
 * @abort: tell the peer that this end has failed, and send nothing more; else what was sent before goes
 *	out yet, for some seconds if need be, without this call waiting for it.
 *
 * Before it returns done() is called, with -ECANCELED, for each message that is still under way, and
 * letters that the module has are freed. It waits for a callback of this connection that is under way,
 * unless it is called by that; none comes afterwards. krcore_client_close() calls done() for messages of
 * all connections before it frees a letter of any.
 * Context: may sleep; not in a done() of the same connection that has -ECANCELED.
 */
void krcore_conn_close(struct krcore_conn *conn, bool abort);

#endif /* KRCORE_KERNEL_H */
