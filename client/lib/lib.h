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
 *   either is enough to use them. @up, @rtt_ns, @settle_until_ns, @still
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
#include "proto/krp_session.h"

#define KRL_SLOTS KRP_SLOTS_MAX /* requests outstanding on a server at most */
#define KRL_RECVS (KRL_SLOTS + 64) /* one for each answer, 64 for notifications */
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
 * @events: to be passed to @sub_fn after the current batch of messages; the thread's.
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

/* Return: a smoothed time with a sample more, as TCP does it; not 0. @old_ns: 0: the first. */
static inline uint64_t krl_smooth(uint64_t old_ns, uint64_t sample_ns)
{
	uint64_t ns = old_ns ? old_ns - old_ns / 8 + sample_ns / 8 : sample_ns;

	return ns ? ns : 1;
}

/* direct.c: any thread */

/* Whether a context is one; if not, the error text says that @what needs one. */
bool krl_is_direct(const struct krcore_ctx *ctx, const char *what);

/* Return: CLOCK_MONOTONIC, in ns. */
uint64_t krl_now_ns(void);

/* context.c: any thread */

/* Set up the servers of a configuration. Return: 0, or -ENOMEM with the error text set. */
int krl_ctx_servers(struct krcore_ctx *ctx);

/* What a context that is attached to MetaServers does. */
extern const struct krl_ops krl_direct_ops;

/* Some of it; see the functions of krcore.h of the same names. */
int krl_direct_lookup(struct krcore_ctx *ctx, const struct krcore_key *key,
		      struct krcore_value *ret_value, struct krcore_lookup_info *ret_info);
int krl_direct_publish(struct krcore_ctx *ctx, const struct krcore_key *key,
		       const struct krcore_value *value);
int krl_direct_withdraw(struct krcore_ctx *ctx, const struct krcore_key *key);
int krl_direct_subscribe(struct krcore_ctx *ctx, krcore_event_fn *fn, void *arg);

/* conn.c: the thread, unless noted; without locks, unless noted */

/* Return: an empty connection for krl_conn_free(), or NULL without memory. */
struct krl_conn *krl_conn_new(void);

/*
 * Create all that rdma_connect() needs, on conn.id; on failure krl_conn_free() frees what was
 * created. @ret_step: the step that failed, for the error text. Return: 0 or negative errno.
 */
int krl_conn_setup(struct krl_conn *conn, const char **ret_step);

/* Disconnect and free a connection in any state; NULL is ignored. */
void krl_conn_free(struct krl_conn *conn);

/* Return: true if the local port is known to be down; @conn may be NULL. */
bool krl_conn_port_down(const struct krl_conn *conn);

/*
 * SEND the message in mem.send[slot]. Any thread; with ctx.lock held.
 * Return: 0, or the negative errno of ibv_post_send().
 */
int krl_conn_send(struct krl_conn *conn, unsigned int slot);

/* Post receive buffer mem.recv[nr]. Return: 0, or the negative errno of ibv_post_recv(). */
int krl_conn_recv(struct krl_conn *conn, unsigned int nr);

/*
 * Post up to KRL_WALK_PAGES READs; their data is laid end to end from @to, in conn.mem.
 * Any thread, with server.io held; the thread without, while attaching.
 * Return: 0, or the negative errno of ibv_post_send().
 */
int krl_conn_post_reads(struct krl_conn *conn, const struct krp_read *reads, unsigned int nr,
			void *to);

/*
 * Busy-poll until @nr READs are done. Any thread, with server.io held; the thread without,
 * while attaching. Return: 0; -EIO: a completion failed or the connection broke; -ETIMEDOUT after
 * @patience_ns: the NIC may still write to the buffers.
 */
int krl_conn_wait_reads(struct krl_conn *conn, unsigned int nr, uint64_t patience_ns);

/*
 * Reap send completions without waiting; @reads_done grows by the READs among them.
 * Any thread, with server.io held; the thread without, while attaching.
 * Return: 0, or -EIO if a completion failed.
 */
int krl_conn_poll_send(struct krl_conn *conn, unsigned int *reads_done);

/* Reap completions of SENDs, which no look-up does now. Any thread, with server.io held. */
void krl_conn_drain(struct krl_conn *conn);

/* connect.c: the thread, without locks; a failure goes to krl_server_fail() */

/* KRP_DO_CONNECT: resolve the name of the server, or connect if it is an address. */
void krl_connect_begin(struct krl_server *srv);

/* Start to connect: the addresses of the server are known. */
void krl_connect_named(struct krl_server *srv);

/* Handle an rdma_cm event of the server's connection, which the caller has acknowledged. */
void krl_connect_cm_event(struct krl_server *srv, enum rdma_cm_event_type event, int status);

/* KRP_DO_PROVE: compute our proof. */
void krl_connect_prove(struct krl_server *srv);

/* KRP_DO_VERIFY: compute what the server's proof must be. */
void krl_connect_verify(struct krl_server *srv);

/* KRP_DO_LOAD: start to READ root, segments and directory. */
void krl_connect_load(struct krl_server *srv);

/* Handle completions of the send queue while attaching; starts the next READ of the load. */
void krl_connect_loading(struct krl_server *srv);

/* srv.c: without locks */

/* Run what is due for the SRV name. The thread. Return: when to call again, UINT64_MAX: never. */
uint64_t krl_srv_timers(struct krcore_ctx *ctx, uint64_t now_ns);

/*
 * Set ret_at[i] to the server of the answer that server i is to become; -1: unchanged.
 * The thread.
 */
void krl_srv_match(const struct krcore_ctx *ctx, const struct kru_servers *fresh, int *ret_at);

/* Free ctx.srv. Any thread, after krl_loop_stop(). */
void krl_srv_fini(struct krcore_ctx *ctx);

/* resolve.c: the thread, without locks, unless noted */

/* Set server.addrs if the host is written as an address. Return: 0, else negative errno. */
int krl_resolve_numeric(struct krl_server *srv);

/* Have a name-service query wake the thread. Return: 0 or the negative errno of epoll_ctl(). */
int krl_resolve_watch(struct krcore_ctx *ctx, const struct kru_lookup *lookup);

/* Start to resolve the server's name. Return: 0 or negative errno. */
int krl_resolve_start(struct krl_server *srv);

/* Return: true if resolution ended; *@ret_err is then 0 with server.addrs set, or its error. */
bool krl_resolve_poll(struct krl_server *srv, int *ret_err);

/* Cancel the resolution, if there is one. */
void krl_resolve_drop(struct krl_server *srv);

/*
 * The configured local address to connect from; @ret_any: none is configured. Return: 0;
 * -ENODEV: no such device; -EADDRNOTAVAIL, -EAFNOSUPPORT: it has no address of @family.
 */
int krl_source_addr(const struct krl_config *config, int family, struct sockaddr_storage *ret_addr,
		    bool *ret_any);

/* session.c */

/* Set up a server whose session is DOWN, before the thread runs. Return: 0 or negative errno. */
int krl_server_init(struct krl_server *srv, struct krcore_ctx *ctx, unsigned int index);

/* Undo krl_server_init(), after krl_loop_stop(). */
void krl_server_fini(struct krl_server *srv);

/* Return: the READ timeout, in ns. Any thread. */
uint64_t krl_server_patience_ns(const struct krl_server *srv);

/* Return: the state of the session. Any thread, without ctx.lock. */
enum krp_session_state krl_server_state(struct krl_server *srv);

/*
 * Mark a server failed, with @err and a text, unless it is already: READs in flight end, and
 * the thread is woken to take it down. Any thread, without ctx.lock.
 */
void krl_server_fail(struct krl_server *srv, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The next step of connecting or loading begins; @what is constant. Without ctx.lock. */
void krl_server_step(struct krl_server *srv, const char *what);

/* Handle bytes that a server sent, which are not trusted. The thread, without locks. */
void krl_server_received(struct krl_server *srv, const void *buf, unsigned int bytes);

/* The load is complete. The thread, without locks. */
void krl_server_up(struct krl_server *srv);

/* KRP_DO_CLOSE: take a failed connection down. The thread, without locks. */
void krl_server_down(struct krl_server *srv);

/* Take it down for good. The thread, without locks. */
void krl_server_end(struct krl_server *srv);

/* Do what is due. The thread, without locks. Return: when to call again, in ns. */
uint64_t krl_server_timers(struct krl_server *srv, uint64_t now_ns);

/* Do what a session says, after something was said to it. Any thread, with ctx.lock held. */
void krl_session_run(struct krl_server *srv);

/* The same for all, after a record has changed. Any thread, with ctx.lock held. */
void krl_sessions_run(struct krcore_ctx *ctx);

/*
 * Block until something has changed; drops ctx.lock, which is held, meanwhile. Any thread but
 * the context's. Return: false if the deadline has passed.
 */
bool krl_wait_until(struct krcore_ctx *ctx, uint64_t deadline_ns);

/* Put a question. Any thread, with ctx.lock held. Return: 0; -ENOTCONN: not attached. */
int krl_ask_begin(struct krl_server *srv, struct krp_ask *ask);

/*
 * Block until a question that was put has ended, until the deadline at most. Any thread but the
 * context's, with ctx.lock held, which is dropped meanwhile. Return: its outcome.
 */
int krl_ask_end(struct krl_server *srv, struct krp_ask *ask, uint64_t deadline_ns);

/* publish.c */

/* Set up a context without records. Before the thread runs. Return: 0 or -ENOMEM. */
int krl_records_init(struct krcore_ctx *ctx);

/* Free all records. After krl_loop_stop(). */
void krl_records_fini(struct krcore_ctx *ctx);

/* subscribe.c: the thread; with ctx.lock held, the last without */

/* Append to ctx.events; @key: NULL for none. Dropped if they are full. */
void krl_event_add(struct krl_server *srv, uint32_t type, const struct krp_key *key,
		   uint64_t generation);

/* Pass the collected events to the subscriber; takes ctx.sub_lock. */
void krl_events_deliver(struct krcore_ctx *ctx);

/* map.c: any thread, with server.io held */

/*
 * READ root and new segments again; @reads grows by the READs. Return: 0; negative errno: the
 * server has failed, but for -ENOMEM.
 */
int krl_map_refresh(struct krl_server *srv, uint32_t *reads);

/* pulse.c: any thread, with server.io held */

/*
 * Set server.still from the heartbeat, READ again if the last check is too old; @reads grows by
 * the READs. Return: 0; -ENOTCONN: the server has failed.
 */
int krl_pulse_look(struct krl_server *srv, uint32_t *reads);

/* loop.c */

/* Start the thread. Return: 0, -ENODEV or another negative errno, with the error text set. */
int krl_loop_start(struct krcore_ctx *ctx);

/* Stop the thread and undo krl_loop_start(), also after it failed. Not the thread itself. */
void krl_loop_stop(struct krcore_ctx *ctx);

/* Have the thread run its timers now. Any thread, any lock. */
void krl_loop_wake(struct krcore_ctx *ctx);

/* Watch the completion channel of a new connection. The thread. Return: 0 or negative errno. */
int krl_loop_watch(struct krl_server *srv);

#endif /* KRL_LIB_H */
