/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside of libkrcore: contexts attached to MetaServers, servers, connections, requests.
 * base.h has what they share with those that the module serves.
 *
 * THREADS
 *   Each context has one thread (loop.c). Only that thread creates and destroys
 *   connections and receives messages.
 *   Callers' threads READ and post requests. Below, "the thread" is the context's.
 *
 * LOCKS, in the order in which they may nest
 *   server.io    READs on a server's connection, and its map. A look-up holds
 *                it from its first READ to its last.
 *   ctx.sub_lock the subscriber's function; held while that function runs.
 *   ctx.lock     everything else: states, requests, records, texts.
 *   A server's @conn and @map change only with io and ctx.lock both held, so
 *   either is enough to use them. @up, @rtt_ns, @settle_until_ns, @still, @blame
 *   and the counters are atomics, so that choosing a server takes no lock.
 *   Sessions and records (proto/krp_session.h) are under ctx.lock.
 */
#ifndef KRL_LIB_H
#define KRL_LIB_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <rdma/rdma_cma.h>

#include "client/include/krcore/krcore.h"
#include "client/lib/base.h"
#include "client/lib/by_module.h"
#include "client/lib/config.h"
#include "client/lib/load.h"
#include "common/lookup.h"
#include "common/auth.h"
#include "common/link.h"
#include "client/wire.h"
#include "proto/krp_lookup.h"
#include "proto/krp_msg.h"
#include "proto/krp_pulse.h"
#include "proto/krp_reject.h"
#include "proto/krp_session_state.h"

#define KRL_SLOTS KRP_SLOTS_MAX /* requests outstanding on a server at most */
#define KRL_RECVS (KRL_SLOTS + 64) /* one for each answer, 64 for notifications */
KRP_STATIC_ASSERT(KRL_RECVS >= KRL_SLOTS + KRP_NOTIFY_WINDOW, "a receive for each message");
#define KRL_BOUNCE_BYTES 65536 /* for bulk READs */
#define KRL_WALK_PAGES (KRL_BOUNCE_BYTES / KRP_PAGE_BYTES)
#define KRL_SQ_DEPTH (2 * KRL_SLOTS + KRL_WALK_PAGES)
#define KRL_ADDRS_MAX 8
#define KRL_RETRIES 7 /* of the transport; the field's maximum */

/**
 * struct krl_mem - Registered memory of a connection.
 * @bounce: bulk READs arrive here.
 * @bucket: a look-up's READ arrives here.
 * @send: one message a slot.
 * @recv: received messages.
 */
struct krl_mem {
	uint8_t bounce[KRL_BOUNCE_BYTES];
	uint8_t bucket[KRP_BUCKET_BYTES];
	uint8_t send[KRL_SLOTS][KRP_MSG_BYTES_MAX];
	uint8_t recv[KRL_RECVS][KRP_MSG_BYTES_MAX];
};

/**
 * struct krl_conn - The RDMA resources of one attempt to attach.
 * @id: cm identifier with the queue pair.
 * @channel: completions of @recv_cq, and of @send_cq while loading.
 * @send_cq: READs and SENDs; polled under server.io, or by the thread while attaching.
 * @recv_cq: messages; polled by the thread.
 * @mr: registration of @mem.
 * @mem: buffers.
 * @events: completion events to be acknowledged, by queue.
 * @broken: negative errno once the connection is unusable, else 0.
 */
struct krl_conn {
	struct rdma_cm_id *id;
	struct ibv_comp_channel *channel;
	struct ibv_cq *send_cq;
	struct ibv_cq *recv_cq;
	struct ibv_mr *mr;
	struct krl_mem *mem;
	unsigned int events[2];
	atomic_int broken;
};

/**
 * struct krl_server - One MetaServer of a context.
 * @ctx: its context.
 * @index: position in ctx.servers.
 * @ep: as configured.
 * @io: see the head of this file.
 * @up: the session is READY and the connection is not known to be broken.
 * @rtt_ns: smoothed time of a READ.
 * @settle_until_ns: after a restart: publishers may still be coming back until then;
 *	0: settled. A copy of the session's.
 * @still: its process hangs, by the last check of the heartbeat in its root; no answer has
 *	come from it since. A copy of the session's.
 * @blame: score of its failures at the last one; 0: none, or they had worn off when the session
 *	was run last. A copy of the session's.
 * @blame_ns: when that was; written before @blame.
 * @pulse: that check; under @io.
 * @map: copy of root, segments and directory.
 * @root_addr: where the root is.
 * @root_rkey: its remote key.
 * @records: count in the root when attached.
 * @lookups: READs of look-ups; every KRL_SAMPLE-th is timed.
 * @s: the session. Its handshake is constant until the thread says something to it.
 * @duties: bits 1 << enum krp_do of what the thread is to do for the session.
 * @until_ns: when the session is to be run again.
 * @armed_ns: until when the thread waits.
 * @conn: its connection, once its address is known.
 * @load: the load in progress.
 * @resolve: the name resolution in progress; the thread's.
 * @addrs: addresses of its name.
 * @addrs_nr: how many.
 * @addr_next: which to try next.
 * @named_ns: when @addrs were found.
 * @failed: to be taken down by the thread.
 * @more: messages wait for the next turn of the thread.
 * @tried: it has failed or succeeded at least once.
 * @rejected: KRP_REJECT_* of the last refused connection request.
 * @last_error: see struct krcore_server_info.
 * @error_text: the same.
 * @n: statistics.
 */
struct krl_server {
	struct krcore_ctx *ctx;
	unsigned int index;
	const struct krl_endpoint *_Atomic ep;

	pthread_mutex_t io;
	_Atomic bool up;
	_Atomic uint64_t rtt_ns;
	_Atomic uint64_t settle_until_ns;
	_Atomic bool still;
	_Atomic uint32_t blame;
	_Atomic uint64_t blame_ns;
	struct krp_pulse pulse;
	struct krl_map *map;
	uint64_t root_addr;
	uint32_t root_rkey;
	uint64_t records;
	uint64_t lookups;

	struct krp_session s;
	unsigned int duties;
	uint64_t until_ns;
	uint64_t armed_ns;
	struct krl_conn *conn;
	struct krp_load load;
	struct kru_lookup *resolve;
	struct sockaddr_storage addrs[KRL_ADDRS_MAX];
	unsigned int addrs_nr;
	unsigned int addr_next;
	uint64_t named_ns;
	_Atomic bool failed;
	bool more;
	bool tried;
	unsigned int rejected;
	int last_error;
	char error_text[160];

	struct krl_counters n;
};

/**
 * struct krl_renamed - An endpoint that a later SRV answer gave to a server.
 * @older: list of those made before, for any server.
 * @ep: constant; freed only with the context, since other threads may still read it.
 */
struct krl_renamed {
	struct krl_renamed *older;
	struct krl_endpoint ep;
};

/**
 * struct krl_srv - The SRV name from which the list of servers is taken.
 * @ask_at_ns: when to ask the name service again.
 * @lookup: the query in progress, or NULL.
 * @renamed: the newest.
 */
struct krl_srv {
	uint64_t ask_at_ns;
	struct kru_lookup *lookup;
	struct krl_renamed *renamed;
};

#define KRL_EVENTS_MAX 128 /* events of one batch of messages */

/**
 * struct krcore_ctx - A context that is attached to MetaServers.
 * @head: krl_direct_ops.
 * @config: settings; constant after krcore_open().
 * @servers: array of @config.endpoints_nr.
 * @servers_nr: its length.
 * @srv: SRV name that they come from, if they do; used by the thread only.
 * @lock: see the head of this file.
 * @cond: a request is done or a server has changed its state.
 * @conf: settings of the sessions; constant after krcore_open().
 * @pub: records to be kept published.
 * @sub_lock: see the head of this file.
 * @sub_fn: the subscriber.
 * @sub_arg: its argument.
 * @events: to be passed to @sub_fn after the current batch of messages, or when a server is down;
 *	the thread's.
 * @events_nr: how many.
 * @thread: the context's thread.
 * @epoll_fd: what it waits on.
 * @wake_fd: eventfd that wakes it.
 * @cm: rdma_cm events of all connections.
 * @running: the thread was started.
 * @stop: the thread shall end.
 */
struct krcore_ctx {
	struct krl_head head;
	struct krl_config config;
	struct krl_server *servers;
	unsigned int servers_nr;
	struct krl_srv srv;

	pthread_mutex_t lock;
	pthread_cond_t cond;
	struct krp_session_conf conf;
	struct krp_publisher pub;
	pthread_mutex_t sub_lock;
	krcore_event_fn *sub_fn;
	void *sub_arg;
	struct krcore_event events[KRL_EVENTS_MAX];
	unsigned int events_nr;

	pthread_t thread;
	int epoll_fd;
	int wake_fd;
	struct rdma_event_channel *cm;
	bool running;
	_Atomic bool stop;
};

/**
 * krl_smooth() - Add a sample to a smoothed time, with weight 1/8 as TCP does it.
 * @old_ns: smoothed time; 0: this is the first sample.
 * @sample_ns: sample.
 *
 * Return: the new smoothed time, in ns; never 0.
 */
static inline uint64_t krl_smooth(uint64_t old_ns, uint64_t sample_ns)
{
	uint64_t ns = old_ns ? old_ns - old_ns / 8 + sample_ns / 8 : sample_ns;

	return ns ? ns : 1;
}

/* direct.c: any thread */

/**
 * krl_is_direct() - Check that a context is attached to MetaServers by itself.
 * @ctx: context.
 * @what: name of the function that needs one, for the error text.
 *
 * Any thread.
 * Return: true; else false, with the error text set.
 */
bool krl_is_direct(const struct krcore_ctx *ctx, const char *what);

/**
 * krl_now_ns() - Read CLOCK_MONOTONIC.
 *
 * Any thread.
 * Return: the time in ns.
 */
uint64_t krl_now_ns(void);

/* context.c: any thread */

/**
 * krl_ctx_servers() - Set up the servers of a configuration, and the publisher of their records.
 * @ctx: context with its configuration; before the thread runs.
 *
 * On failure krl_direct_ops.close() undoes what was done.
 * Return: 0, or a negative errno (no memory) with the error text set.
 */
int krl_ctx_servers(struct krcore_ctx *ctx);

/* What a context that is attached to MetaServers does. */
extern const struct krl_ops krl_direct_ops;

/**
 * krl_direct_lookup() - krcore_lookup() of a context that is attached to MetaServers.
 * @ctx: context.
 * @key: key.
 * @ret_value: out: value, if found.
 * @ret_info: out: how it was found, if not NULL; its size is checked already.
 *
 * Any thread.
 * Return: 0 or a negative errno of krcore_lookup(), with the error text set.
 */
int krl_direct_lookup(struct krcore_ctx *ctx, const struct krcore_key *key,
		      struct krcore_value *ret_value, struct krcore_lookup_info *ret_info);

/**
 * krl_direct_publish() - krcore_publish() of a context that is attached to MetaServers.
 * @ctx: context.
 * @key: key; its GID must not be zero.
 * @value: value.
 *
 * Any thread but the context's.
 * Return: as krcore_publish(), with the error text set on failure.
 */
int krl_direct_publish(struct krcore_ctx *ctx, const struct krcore_key *key,
		       const struct krcore_value *value);

/**
 * krl_direct_withdraw() - krcore_withdraw() of a context that is attached to MetaServers.
 * @ctx: context.
 * @key: key, of a record of this context or not.
 *
 * Any thread but the context's.
 * Return: as krcore_withdraw(), with the error text set on failure.
 */
int krl_direct_withdraw(struct krcore_ctx *ctx, const struct krcore_key *key);

/**
 * krl_direct_subscribe() - krcore_subscribe() of a context that is attached to MetaServers.
 * @ctx: context.
 * @fn: subscriber; NULL: it does not run any more when this returns.
 * @arg: for @fn.
 *
 * Any thread but the context's.
 * Return: 0; -EHOSTUNREACH with the error text set: no server takes subscriptions now, the
 * subscription stays.
 */
int krl_direct_subscribe(struct krcore_ctx *ctx, krcore_event_fn *fn, void *arg);

/* conn.c: the thread, unless noted; without locks, unless noted */

/**
 * krl_conn_new() - Make an empty connection.
 *
 * The thread.
 * Return: it, for krl_conn_free(); NULL: no memory.
 */
struct krl_conn *krl_conn_new(void);

/**
 * krl_conn_setup() - Create all that rdma_connect() needs: queues, queue pair, registered memory,
 * receive buffers.
 * @conn: with @id, whose address and route are resolved.
 * @ret_step: out: name of the last step begun, for the error text; constant.
 *
 * On failure krl_conn_free() frees what was created. The thread, without locks.
 * Return: 0, -EIO (arming a completion queue), or the negative errno of the call that failed.
 */
int krl_conn_setup(struct krl_conn *conn, const char **ret_step);

/**
 * krl_conn_free() - Disconnect and free a connection in any state.
 * @conn: connection that nobody uses any more, or NULL.
 *
 * The thread, without locks.
 */
void krl_conn_free(struct krl_conn *conn);

/**
 * krl_conn_port_down() - Check the local port of a connection.
 * @conn: connection, or NULL.
 *
 * The thread, without locks.
 * Return: true if the port is known to be down; false also if that can't be found out.
 */
bool krl_conn_port_down(const struct krl_conn *conn);

/**
 * krl_conn_send() - SEND the message that was built in mem.send[slot]; its header says how long it
 * is.
 * @conn: connection.
 * @slot: slot, 0 to KRL_SLOTS - 1; its buffer is the NIC's until the answer has come.
 *
 * Any thread; with ctx.lock held.
 * Return: 0, or the negative errno of ibv_post_send().
 */
int krl_conn_send(struct krl_conn *conn, unsigned int slot);

/**
 * krl_conn_recv() - Post a receive buffer.
 * @conn: connection.
 * @nr: number of the buffer in mem.recv, 0 to KRL_RECVS - 1.
 *
 * The thread, without locks.
 * Return: 0, or the negative errno of ibv_post_recv().
 */
int krl_conn_recv(struct krl_conn *conn, unsigned int nr);

/**
 * krl_conn_post_reads() - Post READs as one list; their data is laid end to end.
 * @conn: connection.
 * @reads: READs.
 * @nr: how many, 1 to KRL_WALK_PAGES.
 * @to: where the data goes, in conn.mem, which has room for all of it.
 *
 * Any thread, with server.io held; the thread without, while attaching.
 * Return: 0, or the negative errno of ibv_post_send(): some may have been posted all the same.
 */
int krl_conn_post_reads(struct krl_conn *conn, const struct krp_read *reads, unsigned int nr,
			void *to);

/**
 * krl_conn_wait_reads() - Busy-poll until READs are done.
 * @conn: connection.
 * @nr: how many were posted and not waited for.
 * @timeout_ns: how long, in ns, roughly: the clock is read seldom.
 *
 * Any thread, with server.io held; the thread without, while attaching.
 * Return: 0; -EIO: a completion failed or the connection broke; -ETIMEDOUT: the NIC may still write
 * to the buffers.
 */
int krl_conn_wait_reads(struct krl_conn *conn, unsigned int nr, uint64_t timeout_ns);

/**
 * krl_conn_poll_send() - Reap send completions without waiting, at most four.
 * @conn: connection.
 * @reads_done: grows by the READs among them.
 *
 * Any thread, with server.io held; the thread without, while attaching.
 * Return: 0, or -EIO if a completion or the polling failed.
 */
int krl_conn_poll_send(struct krl_conn *conn, unsigned int *reads_done);

/**
 * krl_conn_drain() - Reap completions of SENDs, so that the send queue does not fill up while no
 * look-up does it.
 * @conn: connection without READs in flight. Errors are left to whoever waits for something.
 *
 * Any thread, with server.io held.
 */
void krl_conn_drain(struct krl_conn *conn);

/* connect.c: the thread, without locks; a failure goes to krl_server_fail() */

/**
 * krl_connect_begin() - KRP_DO_CONNECT: resolve the name of the server, or connect if it is an
 * address.
 * @srv: server in CONNECTING, without a connection. Addresses found less than 30 s ago are
 *	used again.
 *
 * The thread, without locks; a failure goes to krl_server_fail().
 */
void krl_connect_begin(struct krl_server *srv);

/**
 * krl_connect_named() - Start to connect: the addresses of the server are known.
 * @srv: server with addrs; the next of them in turn is tried. Does nothing if it is not in
 *	CONNECTING any more.
 *
 * The thread, without locks; a failure goes to krl_server_fail().
 */
void krl_connect_named(struct krl_server *srv);

/**
 * krl_connect_cm_event() - Handle an rdma_cm event of the server's connection.
 * @srv: server with a connection.
 * @event: event, which the caller has acknowledged.
 * @status: of the event: 0, a negative errno, or a reason of the connection manager.
 *
 * The thread, without locks; a failure goes to krl_server_fail().
 */
void krl_connect_cm_event(struct krl_server *srv, enum rdma_cm_event_type event, int status);

/**
 * krl_connect_prove() - KRP_DO_PROVE: compute our proof with the key that the server chose, and say
 * it to the session.
 * @srv: server. A key that is not known has the key file read again.
 *
 * The thread, without locks.
 */
void krl_connect_prove(struct krl_server *srv);

/**
 * krl_connect_verify() - KRP_DO_VERIFY: compute what the server's proof must be, and say it to the
 * session.
 * @srv: server.
 *
 * The thread, without locks.
 */
void krl_connect_verify(struct krl_server *srv);

/**
 * krl_connect_load() - KRP_DO_LOAD: start to READ root, segments and directory.
 * @srv: server with a connection.
 *
 * The thread, without locks; a failure goes to krl_server_fail().
 */
void krl_connect_load(struct krl_server *srv);

/**
 * krl_connect_loading() - Handle completions of the send queue while attaching; starts the next
 * READ of the load.
 * @srv: server with a connection. When the load is complete, two READs are timed and it is
 *	up.
 *
 * The thread, without locks; a failure goes to krl_server_fail().
 */
void krl_connect_loading(struct krl_server *srv);

/* srv.c: without locks */

/**
 * krl_srv_timers() - Run what is due for the SRV name that the servers come from.
 * @ctx: context, with such a name or not.
 * @now_ns: time.
 *
 * The thread, without locks.
 * Return: when to call again, in ns; UINT64_MAX: never.
 */
uint64_t krl_srv_timers(struct krcore_ctx *ctx, uint64_t now_ns);

/**
 * krl_srv_match() - Decide which server of a new answer each server of the context becomes.
 * @ctx: context.
 * @fresh: answer.
 * @ret_at: out: by server of the context, index in @fresh; -1: unchanged, since too few are
 *	named. A server that is still named keeps its place. Room for ctx.servers_nr.
 *
 * The thread, without locks.
 */
void krl_srv_match(const struct krcore_ctx *ctx, const struct kru_servers *fresh, int *ret_at);

/**
 * krl_srv_fini() - Free ctx.srv.
 * @ctx: context, after krl_loop_stop().
 *
 * Any thread.
 */
void krl_srv_fini(struct krcore_ctx *ctx);

/* resolve.c: the thread, without locks, unless noted */

/**
 * krl_resolve_numeric() - Set server.addrs if its host is written as an address.
 * @srv: server.
 *
 * The thread, without locks.
 * Return: 0; else a negative errno: it is a name, and nothing was set.
 */
int krl_resolve_numeric(struct krl_server *srv);

/**
 * krl_resolve_watch() - Have a name-service query wake the thread, whose timers continue it.
 * @ctx: context.
 * @lookup: query.
 *
 * The thread, without locks.
 * Return: 0 or the negative errno of epoll_ctl().
 */
int krl_resolve_watch(struct krcore_ctx *ctx, const struct kru_lookup *lookup);

/**
 * krl_resolve_start() - Start to resolve the server's name.
 * @srv: server that resolves nothing now.
 *
 * The thread, without locks.
 * Return: 0; a negative errno of kru_lookup_start() or krl_resolve_watch(): nothing is in progress.
 */
int krl_resolve_start(struct krl_server *srv);

/**
 * krl_resolve_poll() - Take the result of a resolution, if there is one.
 * @srv: server.
 * @ret_err: out: 0, with server.addrs set, or the negative errno of kru_lookup_addrs(); only
 *	if it ended.
 *
 * The thread, without locks.
 * Return: true if it ended; false if it goes on, or there is none.
 */
bool krl_resolve_poll(struct krl_server *srv, int *ret_err);

/**
 * krl_resolve_drop() - Cancel the resolution, if there is one.
 * @srv: server.
 *
 * The thread, without locks; or any, after krl_loop_stop().
 */
void krl_resolve_drop(struct krl_server *srv);

/**
 * krl_source_addr() - Find the configured local address to connect from.
 * @config: configuration, with a GID, a device or neither.
 * @family: AF_INET or AF_INET6.
 * @ret_addr: out: the address, port 0; untouched if @ret_any.
 * @ret_any: out: none is configured.
 *
 * The thread, without locks.
 * Return: 0; -ENODEV: no such device; -EADDRNOTAVAIL: it has no address of @family, or the GID is
 * no address; -EAFNOSUPPORT: the GID is of the other family; -EIO: the device does not answer.
 */
int krl_source_addr(const struct krl_config *config, int family, struct sockaddr_storage *ret_addr,
		    bool *ret_any);

/* session.c */

/**
 * krl_server_init() - Set up a server whose session is DOWN.
 * @srv: server; cleared.
 * @ctx: context, before its thread runs.
 * @index: position in ctx.servers and in config.endpoints.
 *
 * Return: 0, or the negative errno of pthread_mutex_init().
 */
int krl_server_init(struct krl_server *srv, struct krcore_ctx *ctx, unsigned int index);

/**
 * krl_server_fini() - Undo krl_server_init().
 * @srv: server without a connection, after krl_loop_stop().
 */
void krl_server_fini(struct krl_server *srv);

/**
 * krl_server_read_timeout_ns() - Tell how long a READ may take before its server counts as failed.
 * @srv: server.
 *
 * Any thread.
 * Return: a quarter of the configured time-out, in ns.
 */
uint64_t krl_server_read_timeout_ns(const struct krl_server *srv);

/**
 * krl_server_state() - Read the state of the session.
 * @srv: server.
 *
 * Any thread, without ctx.lock.
 * Return: the state.
 */
enum krp_session_state krl_server_state(struct krl_server *srv);

/**
 * krl_server_fail() - Mark a server failed, unless it is already: READs in flight end, and the
 * thread is woken to take it down.
 * @srv: server.
 * @err: negative errno.
 * @format: of printf(): why, for the error text; cut if it is too long.
 *
 * Any thread, without ctx.lock.
 */
void krl_server_fail(struct krl_server *srv, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/**
 * krl_server_step() - Tell the session that the next step of connecting or loading begins, which
 * has its own time-out.
 * @srv: server.
 * @what: name of the step; constant.
 *
 * The thread, without ctx.lock.
 */
void krl_server_step(struct krl_server *srv, const char *what);

/**
 * krl_server_received() - Handle bytes that a server sent.
 * @srv: server.
 * @buf: bytes; not trusted.
 * @bytes: how many.
 *
 * The thread, without locks.
 */
void krl_server_received(struct krl_server *srv, const void *buf, unsigned int bytes);

/**
 * krl_server_up() - Tell the session that the load is complete, and open the map to look-ups.
 * @srv: server whose load has ended well.
 *
 * The thread, without locks.
 */
void krl_server_up(struct krl_server *srv);

/**
 * krl_server_down() - KRP_DO_CLOSE: take a failed connection down, with its map and what is in
 * progress.
 * @srv: server. Waits for a look-up that holds server.io. The session starts its pause, and the
 *	subscriber is told if what was READ there is in doubt: krl_event_lost().
 *
 * The thread, without locks.
 */
void krl_server_down(struct krl_server *srv);

/**
 * krl_server_end() - Take a server down for good: withdraw nothing more, and close.
 * @srv: server.
 *
 * The thread, without locks.
 */
void krl_server_end(struct krl_server *srv);

/**
 * krl_server_timers() - Do what is due: resolution, duties of the session, deadlines.
 * @srv: server.
 * @now_ns: time.
 *
 * The thread, without locks.
 * Return: when to call again, in ns of CLOCK_MONOTONIC.
 */
uint64_t krl_server_timers(struct krl_server *srv, uint64_t now_ns);

/**
 * krl_session_run() - Do what a session says, after something was said to it; what is the thread's
 * it leaves as duties.
 * @srv: server.
 *
 * Any thread, with ctx.lock held.
 */
void krl_session_run(struct krl_server *srv);

/**
 * krl_sessions_run() - krl_session_run() for all servers, after a record has changed.
 * @ctx: context.
 *
 * Any thread, with ctx.lock held.
 */
void krl_sessions_run(struct krcore_ctx *ctx);

/**
 * krl_session_connected() - Tell a session that its transport is up.
 * @srv: server that is connecting.
 * @link: ends of the connection.
 * @nonce: random, KRP_NONCE_BYTES.
 * @key_id: of the first key, KRP_KEY_ID_BYTES; NULL: there is none.
 *
 * The thread, without locks.
 */
void krl_session_connected(struct krl_server *srv, const struct krp_link *link, const __u8 *nonce,
			   const __u8 *key_id);

/**
 * krl_session_prove() - Answer to KRP_DO_PROVE.
 * @srv: server.
 * @err: 0, or why there is no proof: krp_session_prove().
 * @mac: proof, KRP_MAC_BYTES.
 *
 * The thread, without locks.
 */
void krl_session_prove(struct krl_server *srv, int err, const __u8 *mac);

/**
 * krl_session_verify() - Answer to KRP_DO_VERIFY.
 * @srv: server.
 * @mac: what the server's proof must be, KRP_MAC_BYTES; NULL: the key is gone.
 *
 * The thread, without locks.
 */
void krl_session_verify(struct krl_server *srv, const __u8 *mac);

/**
 * krl_session_subscribe() - Have a server notify of changes, or not any more.
 * @srv: server; krl_session_run() is to follow.
 * @on: whether it is to.
 *
 * Any thread, with ctx.lock held.
 * Return: 0 or %-ENOTCONN, as krp_session_subscribe().
 */
int krl_session_subscribe(struct krl_server *srv, bool on);

/**
 * krl_wait_until() - Block until something has changed.
 * @ctx: context.
 * @deadline_ns: deadline, in ns of CLOCK_MONOTONIC.
 *
 * Any thread but the context's, with ctx.lock held, which is dropped meanwhile.
 * Return: false if the deadline has passed; true otherwise, perhaps for no reason.
 */
bool krl_wait_until(struct krcore_ctx *ctx, uint64_t deadline_ns);

/**
 * krl_ask_begin() - Put a question to a server.
 * @srv: server.
 * @ask: question; stays valid until krl_ask_end().
 *
 * Any thread, with ctx.lock held.
 * Return: 0, or an error of krp_session_ask() (-ENOTCONN: not attached): the question was not put.
 */
int krl_ask_begin(struct krl_server *srv, struct krp_ask *ask);

/**
 * krl_ask_end() - Block until a question has ended, and give it up at the deadline.
 * @srv: server.
 * @ask: question that krl_ask_begin() put; the caller's again afterwards.
 * @deadline_ns: deadline, in ns of CLOCK_MONOTONIC.
 *
 * Any thread but the context's, with ctx.lock held, which is dropped meanwhile.
 * Return: its outcome: 0 or a negative errno.
 */
int krl_ask_end(struct krl_server *srv, struct krp_ask *ask, uint64_t deadline_ns);

/* publish.c */

/**
 * krl_records_init() - Set up a context without records.
 * @ctx: context, before its thread runs.
 *
 * Return: 0 or -ENOMEM.
 */
int krl_records_init(struct krcore_ctx *ctx);

/**
 * krl_records_fini() - Free all records.
 * @ctx: context, after krl_loop_stop(); krl_records_init() may have failed.
 */
void krl_records_fini(struct krcore_ctx *ctx);

/* subscribe.c: the thread; with ctx.lock held, the last without */

/**
 * krl_event_add() - Append to ctx.events, for krl_events_deliver(); dropped if they are full.
 * @srv: server that it comes from.
 * @type: KRCORE_EVENT_*.
 * @key: key, or NULL: none.
 * @generation: of the changed record, or 0.
 *
 * The thread, with ctx.lock held.
 */
void krl_event_add(struct krl_server *srv, uint32_t type, const struct krp_key *key,
		   uint64_t generation);

/**
 * krl_event_lost() - Append a RESYNC if a server is lost whose table was READ while others notified.
 * @srv: server whose session is CLOSING. Nothing is appended if it was not READY, has been ended by
 *	us, is not subscribed to, or if no other one is READY: what was READ is the best there is.
 *
 * The thread, with ctx.lock held.
 */
void krl_event_lost(struct krl_server *srv);

/**
 * krl_events_deliver() - Pass the collected events to the subscriber, if there is one.
 * @ctx: context.
 *
 * The thread, without locks; takes ctx.sub_lock.
 */
void krl_events_deliver(struct krcore_ctx *ctx);

/* map.c: any thread, with server.io held */

/**
 * krl_map_refresh() - READ root and new segments again, and replace the map.
 * @srv: server that is up.
 * @reads: grows by the READs.
 *
 * Any thread, with server.io held.
 * Return: 0; -ENOMEM: the old map stays; another negative errno: the server has failed.
 */
int krl_map_refresh(struct krl_server *srv, uint32_t *reads);

/* pulse.c: any thread, with server.io held */

/**
 * krl_pulse_look() - Check the heartbeat in the root, if the last check is too old, and set
 * server.still.
 * @srv: server that is up.
 * @reads: grows by the READs.
 *
 * Any thread, with server.io held.
 * Return: 0; -ENOTCONN: the server has failed.
 */
int krl_pulse_look(struct krl_server *srv, uint32_t *reads);

/* loop.c */

/**
 * krl_loop_start() - Start the thread, with its file descriptors and rdma_cm channel.
 * @ctx: context. On failure krl_loop_stop() undoes what was done.
 *
 * Return: 0, -ENODEV (no rdma_cm), or another negative errno, with the error text set.
 */
int krl_loop_start(struct krcore_ctx *ctx);

/**
 * krl_loop_stop() - Stop the thread, which takes all servers down, and undo krl_loop_start().
 * @ctx: context, also after krl_loop_start() failed.
 *
 * Any thread but the context's, without locks.
 */
void krl_loop_stop(struct krcore_ctx *ctx);

/**
 * krl_loop_wake() - Have the thread run its timers now.
 * @ctx: context.
 *
 * Any thread, any lock.
 */
void krl_loop_wake(struct krcore_ctx *ctx);

/**
 * krl_loop_watch() - Watch the completion channel of a new connection.
 * @srv: server with a connection that is set up.
 *
 * The thread.
 * Return: 0 or the negative errno of epoll_ctl().
 */
int krl_loop_watch(struct krl_server *srv);

#endif /* KRL_LIB_H */
