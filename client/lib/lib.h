/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside of libkrcore: contexts, servers, connections, requests.
 *
 * THREADS
 *   Each context has one thread (loop.c). It alone makes and destroys
 *   connections, moves servers from state to state and takes in messages.
 *   Callers' threads READ and post requests.
 *
 * LOCKS, in the order in which they may nest
 *   server.io    READs on a server's connection, and its map. A look-up holds
 *                it from its first READ to its last.
 *   ctx.sub_lock the subscriber's function; held while it runs.
 *   ctx.lock     everything else: states, requests, records, texts.
 *   A server's @conn and @map change only with io and ctx.lock both held, so
 *   either is enough to use them. @up, @rtt_ns, @settle_until_ns, @still
 *   and the counters are atomics, so that choosing a server takes no lock.
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
#include "client/lib/by_module.h"
#include "client/lib/config.h"
#include "client/lib/load.h"
#include "client/lib/store.h"
#include "common/lookup.h"
#include "common/auth.h"
#include "common/link.h"
#include "client/wire.h"
#include "proto/krp_lookup.h"
#include "proto/krp_msg.h"
#include "proto/krp_pulse.h"
#include "proto/krp_reject.h"

#define KRL_SLOTS 64 /* requests outstanding on a server at most */
#define KRL_RECVS (KRL_SLOTS + 64) /* the rest is for notifications */
#define KRL_BOUNCE_BYTES 65536 /* for bulk READs */
#define KRL_WALK_PAGES (KRL_BOUNCE_BYTES / KRP_PAGE_BYTES)
#define KRL_SQ_DEPTH (2 * KRL_SLOTS + KRL_WALK_PAGES)
#define KRL_ADDRS_MAX 8
#define KRL_RENEW_MAX_MS 15000 /* a server closes sessions that say nothing */
#define KRL_RETRIES 7 /* of the transport, the most there is */

/**
 * enum krl_state - Where a server stands; legal edges in krl_server_to().
 * @KRL_DOWN: nothing under way; waits for retry_at_ns.
 * @KRL_NAME: its name is being resolved.
 * @KRL_ADDR: rdma_resolve_addr() under way.
 * @KRL_ROUTE: rdma_resolve_route() under way.
 * @KRL_CONNECT: rdma_connect() under way.
 * @KRL_HELLO: HELLO sent.
 * @KRL_AUTH: AUTH sent.
 * @KRL_LOAD: root, segments and directory are being READ.
 * @KRL_UP: attached.
 */
enum krl_state {
	KRL_DOWN,
	KRL_NAME,
	KRL_ADDR,
	KRL_ROUTE,
	KRL_CONNECT,
	KRL_HELLO,
	KRL_AUTH,
	KRL_LOAD,
	KRL_UP,
};

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
 * @send_cq: READs and SENDs; polled under server.io, or by the thread before KRL_UP.
 * @recv_cq: messages; polled by the thread.
 * @mr: registration of @mem.
 * @mem: buffers.
 * @events: completion events to be acknowledged, by queue.
 * @broken: negative errno once it is of no more use.
 * @link: what it connects, for the proofs.
 * @hello: as sent, for the proofs.
 * @challenge: as received, for the proofs.
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
	struct krp_link link;
	struct krp_hello hello;
	struct krp_challenge challenge;
};

/**
 * struct krl_req - A request to a server and its outcome.
 * @next: queue of requests that wait for a credit.
 * @type: KRP_MSG_*.
 * @key: record, if the type has one.
 * @value: PUBLISH: to the server; LOOKUP: from it.
 * @version: version of the record that is published or withdrawn, 0 if none.
 * @flags: SUBSCRIBE.
 * @err: outcome.
 * @done: @err is valid and nobody else uses the request any more.
 * @records: ACK's count of records.
 * @mark: RENEW: server.changes when it was sent.
 */
struct krl_req {
	struct krl_req *next;
	uint8_t type;
	uint8_t flags;
	bool done;
	struct krp_key key;
	struct krp_value value;
	uint64_t version;
	int err;
	uint32_t records;
	uint64_t mark;
};

/**
 * struct krl_slot - One credit.
 * @req: request it carries; NULL if the caller gave up or the slot is free.
 * @own: for requests of the thread itself, nobody waits for them.
 * @busy: sent and not yet answered.
 * @xid: number of the request.
 * @sent_ns: when.
 */
struct krl_slot {
	struct krl_req *req;
	struct krl_req own;
	bool busy;
	uint32_t xid;
	uint64_t sent_ns;
};

/** struct krl_counters - Statistics, relaxed atomics; see struct krcore_stats. */
struct krl_counters {
	_Atomic uint64_t hits;
	_Atomic uint64_t misses;
	_Atomic uint64_t misses_overruled;
	_Atomic uint64_t errors;
	_Atomic uint64_t reads;
	_Atomic uint64_t torn;
	_Atomic uint64_t stale;
	_Atomic uint64_t fallbacks;
	_Atomic uint64_t failovers;
	_Atomic uint64_t attaches;
	_Atomic uint64_t publishes;
	_Atomic uint64_t renewals;
	_Atomic uint64_t notifications;
};

/**
 * struct krl_server - One MetaServer of a context.
 * @ctx: its context.
 * @index: position in ctx.servers.
 * @ep: as configured.
 * @io: see the head of this file.
 * @up: state is KRL_UP and the connection is not known to be broken.
 * @rtt_ns: smoothed time of a READ.
 * @settle_until_ns: it restarted: until then publishers may still be coming back;
 *	0: settled.
 * @still: its process hangs, as far as the last look at the root can tell; nothing has
 *	come from it since.
 * @pulse: that look; under @io.
 * @map: copy of root, segments and directory.
 * @root_addr: where the root is.
 * @root_rkey: its remote key.
 * @incarnation: of the present or last attachment; 0 if there was none.
 * @records: count in the root when attached.
 * @lookups: READs of look-ups, one in some is timed.
 * @state: where it stands.
 * @conn: its connection, from KRL_ADDR on.
 * @load: under way in KRL_LOAD.
 * @resolve: under way in KRL_NAME.
 * @addrs: what its name stands for.
 * @addrs_nr: how many.
 * @addr_next: which to try next.
 * @named_ns: when @addrs were found.
 * @deadline_ns: the present step of attaching must be over by then.
 * @retry_at_ns: KRL_DOWN: when to try again.
 * @fails: failures in a row; an attachment that did not last is none the less one of them.
 * @up_ns: when it was attached last; KRL_UP only.
 * @failed: to be taken down by the thread.
 * @tried: it has failed or succeeded at least once.
 * @rejected: KRP_REJECT_* of the last refused connection request.
 * @last_error: see struct krcore_server_info.
 * @error_text: the same.
 * @lease_ms: granted.
 * @rate_max: messages a second it takes.
 * @features: KRP_FEATURE_* of the session.
 * @renew_at_ns: when to renew.
 * @acked_ns: when it last acknowledged something that extends the lease.
 * @changes: counts record changes sent, to know whether a count is comparable.
 * @slot: requests under way.
 * @slots_nr: how many of them may be used.
 * @busy_nr: how many are.
 * @xid: counts requests.
 * @todo: requests that wait for a slot.
 * @todo_tail: end of that queue.
 * @cursor: place of the republishing in the store.
 * @pace_from_ns: begin of the present stretch of counting messages.
 * @pace_nr: messages sent in it.
 * @paced: messages wait for the next stretch.
 * @renew_due: RENEW is to be sent.
 * @subscribe_due: SUBSCRIBE is to be sent.
 * @subscribed: NOTIFYs count.
 * @notify_seq: last number seen.
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
	uint64_t incarnation;
	uint64_t records;
	uint64_t lookups;

	enum krl_state state;
	struct krl_conn *conn;
	struct krp_load load;
	struct kru_lookup *resolve;
	struct sockaddr_storage addrs[KRL_ADDRS_MAX];
	unsigned int addrs_nr;
	unsigned int addr_next;
	uint64_t named_ns;
	uint64_t deadline_ns;
	uint64_t retry_at_ns;
	unsigned int fails;
	uint64_t up_ns;
	_Atomic bool failed;
	bool tried;
	unsigned int rejected;
	int last_error;
	char error_text[160];

	uint32_t lease_ms;
	uint32_t rate_max;
	uint64_t features;
	uint64_t renew_at_ns;
	uint64_t acked_ns;
	uint64_t changes;
	struct krl_slot slot[KRL_SLOTS];
	unsigned int slots_nr;
	unsigned int busy_nr;
	uint32_t xid;
	struct krl_req *todo;
	struct krl_req **todo_tail;
	unsigned int cursor;
	uint64_t pace_from_ns;
	uint32_t pace_nr;
	bool paced;
	bool renew_due;
	bool subscribe_due;
	bool subscribed;
	uint64_t notify_seq;

	struct krl_counters n;
};

/**
 * struct krl_renamed - What a server is called since a SRV name says otherwise.
 * @older: one that was made before, of any server.
 * @ep: constant, and there until the context ends: others may still read it.
 */
struct krl_renamed {
	struct krl_renamed *older;
	struct krl_endpoint ep;
};

/**
 * struct krl_srv - A SRV name that stands for the list of servers.
 * @ask_at_ns: when to ask again.
 * @lookup: under way.
 * @renamed: the newest.
 */
struct krl_srv {
	uint64_t ask_at_ns;
	struct kru_lookup *lookup;
	struct krl_renamed *renamed;
};

#define KRL_EVENTS_MAX 128 /* events of one batch of messages */

/**
 * struct krcore_ctx - A context.
 * @module: does all the work, and nothing else is used; NULL: the rest does it.
 * @config: settings; constant after krcore_open().
 * @servers: array of @config.endpoints_nr.
 * @servers_nr: its length.
 * @srv: SRV name that they come from, if they do; the thread's alone.
 * @lock: see the head of this file.
 * @cond: a request is done or a server has changed its state.
 * @store: records to be kept up.
 * @subscribed: there is a subscriber.
 * @sub_lock: see the head of this file.
 * @sub_fn: the subscriber.
 * @sub_arg: its argument.
 * @events: to be told to it after the present batch of messages.
 * @events_nr: how many.
 * @thread: the context's thread.
 * @epoll_fd: what it waits on.
 * @wake_fd: eventfd that wakes it.
 * @cm: rdma_cm events of all connections.
 * @running: it was started.
 * @stop: it shall end.
 */
struct krcore_ctx {
	struct krl_module *module;
	struct krl_config config;
	struct krl_server *servers;
	unsigned int servers_nr;
	struct krl_srv srv;

	pthread_mutex_t lock;
	pthread_cond_t cond;
	struct krl_store store;
	bool subscribed;

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

static inline void krl_count(_Atomic uint64_t *counter, uint64_t by)
{
	if (by)
		atomic_fetch_add_explicit(counter, by, memory_order_relaxed);
}

/* error.c */
uint64_t krl_now_ns(void);
int krl_error(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));
int krl_error_const(int err, const char *text);

/* convert.c */
int krl_value_to_wire(const struct krcore_value *value, uint64_t generation,
		      struct krp_value *ret_wire);
int krl_value_from_wire(const struct krp_value *wire, struct krcore_value *ret_value);

/* conn.c */
struct krl_conn *krl_conn_new(void);
int krl_conn_setup(struct krl_conn *conn, const char **ret_step);
void krl_conn_free(struct krl_conn *conn);
bool krl_conn_port_down(const struct krl_conn *conn);
int krl_conn_send(struct krl_conn *conn, unsigned int slot);
int krl_conn_recv(struct krl_conn *conn, unsigned int nr);
int krl_conn_post_reads(struct krl_conn *conn, const struct krp_read *reads, unsigned int nr,
			void *to);
int krl_conn_wait_reads(struct krl_conn *conn, unsigned int nr, uint64_t patience_ns);
int krl_conn_poll_send(struct krl_conn *conn, unsigned int *reads_done);
void krl_conn_drain(struct krl_conn *conn);

/* attach.c: the thread's, without locks */
void krl_attach_begin(struct krl_server *srv);
void krl_attach_named(struct krl_server *srv);
void krl_attach_cm_event(struct krl_server *srv, enum rdma_cm_event_type event, int status);
void krl_attach_message(struct krl_server *srv, const struct krp_msg_hdr *msg);
void krl_attach_loading(struct krl_server *srv);

/* srv.c */
uint64_t krl_srv_timers(struct krcore_ctx *ctx, uint64_t now_ns);
void krl_srv_match(const struct krcore_ctx *ctx, const struct kru_servers *fresh, int *ret_at);
void krl_srv_fini(struct krcore_ctx *ctx);

/* resolve.c */
int krl_resolve_numeric(struct krl_server *srv);
int krl_resolve_watch(struct krcore_ctx *ctx, const struct kru_lookup *lookup);
int krl_resolve_start(struct krl_server *srv);
bool krl_resolve_poll(struct krl_server *srv, int *ret_err);
void krl_resolve_drop(struct krl_server *srv);
int krl_source_addr(const struct krl_config *config, int family, struct sockaddr_storage *ret_addr,
		    bool *ret_any);

/* server.c */
int krl_server_init(struct krl_server *srv, struct krcore_ctx *ctx, unsigned int index);
void krl_server_fini(struct krl_server *srv);
void krl_server_to(struct krl_server *srv, enum krl_state state);
void krl_server_fail(struct krl_server *srv, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void krl_server_fail_locked(struct krl_server *srv, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void krl_server_down(struct krl_server *srv);
void krl_server_up(struct krl_server *srv);
uint64_t krl_server_timers(struct krl_server *srv, uint64_t now_ns);
uint64_t krl_server_patience_ns(const struct krl_server *srv);

/* request.c: with ctx.lock held */
int krl_request_add(struct krl_server *srv, struct krl_req *req);
void krl_request_pump(struct krl_server *srv);
void krl_request_answer(struct krl_server *srv, const struct krp_msg_hdr *msg);
void krl_request_fail_all(struct krl_server *srv, int err);
int krl_request_wait(struct krcore_ctx *ctx, struct krl_req *reqs, unsigned int nr,
		     uint64_t deadline_ns);
uint64_t krl_request_oldest_ns(const struct krl_server *srv);

/* publish.c: with ctx.lock held */
void krl_publish_answered(struct krl_server *srv, const struct krl_req *req);
void krl_publish_next(struct krl_server *srv, struct krl_req *req, bool *ret_found);
void krl_publish_attached(struct krl_server *srv, bool fresh);
void krl_publish_renewed(struct krl_server *srv, const struct krl_req *req);

/* subscribe.c: with ctx.lock held, the last without */
void krl_notify(struct krl_server *srv, const struct krp_notify *msg);
void krl_event_add(struct krl_server *srv, uint32_t type, const struct krp_key *key,
		   uint64_t generation);
void krl_events_deliver(struct krcore_ctx *ctx);

/* map.c: with server.io held */
int krl_map_refresh(struct krl_server *srv, uint32_t *reads);

/* pulse.c: with server.io held */
int krl_pulse_look(struct krl_server *srv, uint32_t *reads);

/* loop.c */
int krl_loop_start(struct krcore_ctx *ctx);
void krl_loop_stop(struct krcore_ctx *ctx);
void krl_loop_wake(struct krcore_ctx *ctx);
int krl_loop_watch(struct krl_server *srv);
void krl_loop_message(struct krl_server *srv, const void *buf, unsigned int bytes);

#endif /* KRL_LIB_H */
