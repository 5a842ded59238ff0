/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the internals of the MetaServer client, shared by the files of this folder.
 *
 * THREADS
 *   Each session has one work item (meta/session.c). It alone creates and destroys
 *   connections and changes states. Events of rdma_cm and of the completion queues only
 *   set a flag and queue it. Once a session is ready, answers and notifications are
 *   processed where they arrive, in softirq.
 *
 * LOCKS, in the order in which they nest
 *   meta.conf_mutex serializes changes of the list of sessions; its holder may sleep.
 *   conn.map_mutex  serializes loading a map; its holder sleeps on READs.
 *   meta.lock       BH-safe spinlock: records, requests, states, texts, counters.
 *   conn.map_lock   spinlock: the map and its entries; process context only, innermost.
 *   conn.read_lock  BH-safe spinlock: READ slots, and the right to post a READ.
 *   The last three never nest in each other. Work requests are posted under meta.lock and
 *   conn.read_lock; the cache's own lock nests in meta.lock.
 *
 * LIFETIME
 *   A look-up pins its connection by a count in conn.users, taken under meta.lock while
 *   the session is ready. Teardown ends every READ and request, then waits until the
 *   count is zero.
 */
#ifndef KRC_META_PRIV_H
#define KRC_META_PRIV_H

#include <linux/bitmap.h>
#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/irq_poll.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "krp_pulse.h"
#include "meta/cache.h"
#include "meta/map.h"
#include "meta/meta.h"

#define KRC_META_SENDS 32 /* most requests in flight to a server */
#define KRC_META_RECVS 128 /* KRC_META_SENDS for answers, the rest for notifications */
#define KRC_META_READS 32 /* most READs of look-ups in flight to a server */
#define KRC_META_BULK_BYTES 16384 /* longest READ while a map is loaded */
#define KRC_META_RETRIES 7 /* retries of the transport: the maximum */
#define KRC_META_RENEW_MAX_MS 15000 /* a server closes idle sessions */
#define KRC_META_OPINIONS 2 /* servers that must miss before a record does not exist */
#define KRC_META_WITHDRAW_MS 1000 /* how long ending sessions waits for WITHDRAWs */
#define KRC_META_DRAIN_MS 1000 /* how long to wait for flushed work requests */

/* krc_meta_session.events */
#define KRC_META_EV_ADDR BIT(0)
#define KRC_META_EV_ROUTE BIT(1)
#define KRC_META_EV_ESTABLISHED BIT(2)
#define KRC_META_EV_MESSAGE BIT(3)

struct crypto_shash;
struct krc_meta_conn;

/**
 * struct krc_meta_ring - The cluster keys of a configuration; does not change.
 * @ref: users.
 * @nr: number of keys.
 * @id: key ids, as messages name them.
 * @hmac: transforms, keyed with each.
 */
struct krc_meta_ring {
	struct kref ref;
	u32 nr;
	u8 id[KRC_META_KEYS_MAX][KRP_KEY_ID_BYTES];
	struct crypto_shash *hmac[KRC_META_KEYS_MAX];
};

/**
 * struct krc_meta_token - Permits withdrawing a record from another address.
 * @incarnation: incarnation of the issuing server; 0: no token.
 * @bytes: krp_welcome.token.
 */
struct krc_meta_token {
	u64 incarnation;
	u8 bytes[KRP_TOKEN_BYTES];
};

/**
 * enum krc_meta_at - What a server knows about a record.
 * @KRC_META_AT_NEVER: nothing, and nothing is to be sent (withdrawn before).
 * @KRC_META_AT_DIRTY: PUBLISH or WITHDRAW is due.
 * @KRC_META_AT_SENT: sent, not yet answered.
 * @KRC_META_AT_ACKED: the server has acknowledged the present version.
 * @KRC_META_AT_REFUSED: the server refused; sent again at the next renewal.
 */
enum krc_meta_at {
	KRC_META_AT_NEVER,
	KRC_META_AT_DIRTY,
	KRC_META_AT_SENT,
	KRC_META_AT_ACKED,
	KRC_META_AT_REFUSED,
};

/**
 * struct krc_meta_record - A record of this port.
 * @link: in krc_meta.records.
 * @key: name.
 * @value: value.
 * @version: unique, new with every change.
 * @gone: withdrawn; kept until all servers have answered or any lease has run out.
 * @adopted: orphaned by another client of this node; this client only withdraws it.
 * @inherited: a server may have it from an earlier client, though this one never sent it there.
 * @orphaned: its client ended before every server had confirmed the withdrawal.
 * @forget_at: jiffies: when a record that is @gone is dropped at the latest.
 * @at: enum krc_meta_at, by server.
 * @err: last refusal, by server; 0 once acknowledged.
 * @token: by server: token of the session of the client that orphaned it.
 */
struct krc_meta_record {
	struct list_head link;
	struct krp_key key;
	struct krp_value value;
	u64 version;
	bool gone;
	bool adopted;
	bool inherited;
	bool orphaned;
	unsigned long forget_at;
	u8 at[KRC_META_SERVERS_MAX];
	int err[KRC_META_SERVERS_MAX];
	struct krc_meta_token token[KRC_META_SERVERS_MAX];
};

/**
 * struct krc_meta_buf - DMA-mapped memory.
 * @p: memory; NULL: not allocated.
 * @dma: its DMA address.
 * @bytes: length.
 * @dir: direction of the mapping.
 */
struct krc_meta_buf {
	void *p;
	u64 dma;
	size_t bytes;
	enum dma_data_direction dir;
};

/**
 * struct krc_meta_ask - A LOOKUP by message.
 * @link: in krc_meta_session.asks while it waits for a credit.
 * @key: name sought.
 * @value: out: value.
 * @err: out: 0, or a negative errno.
 * @done: completed when no one but the waiting task uses this struct any more.
 */
struct krc_meta_ask {
	struct list_head link;
	struct krp_key key;
	struct krp_value value;
	int err;
	struct completion done;
};

/**
 * struct krc_meta_send - A credit and its buffer. Locks: meta.lock.
 * @cqe: completion of the SEND.
 * @conn: its connection.
 * @posted: the device owns the buffer.
 * @busy: the answer is outstanding.
 * @type: KRP_MSG_* that was sent.
 * @xid: number of the request; its remainder by KRC_META_SENDS is the slot.
 * @service: PUBLISH, WITHDRAW: service of the record.
 * @version: PUBLISH, WITHDRAW: version of the record.
 * @mark: RENEW: krc_meta_session.changes when it was sent.
 * @sent_at: jiffies.
 * @ask: LOOKUP: the waiting look-up; NULL if it gave up.
 */
struct krc_meta_send {
	struct ib_cqe cqe;
	struct krc_meta_conn *conn;
	bool posted;
	bool busy;
	u8 type;
	u32 xid;
	u16 service;
	u64 version;
	u64 mark;
	unsigned long sent_at;
	struct krc_meta_ask *ask;
};

/**
 * struct krc_meta_recv - A receive buffer.
 * @cqe: its completion.
 * @conn: its connection.
 */
struct krc_meta_recv {
	struct ib_cqe cqe;
	struct krc_meta_conn *conn;
};

/**
 * struct krc_meta_read - A READ slot with its buffer. Locks: conn.read_lock.
 * @cqe: its completion.
 * @conn: its connection.
 * @done: completed with @err.
 * @data: buffer.
 * @dma: its DMA address.
 * @taken: the slot is in use.
 * @posted: the device owns the buffer.
 * @asleep: its task blocks; counted in krc_meta_cq.unpolled.
 * @abandoned: no task waits any more: the completion frees the slot.
 * @err: outcome: 0 or -ENOTCONN.
 */
struct krc_meta_read {
	struct ib_cqe cqe;
	struct krc_meta_conn *conn;
	struct completion done;
	void *data;
	u64 dma;
	bool taken;
	bool posted;
	bool asleep;
	bool abandoned;
	int err;
};

/**
 * struct krc_meta_cq - Completion queue of READs and SENDs; meta/cq.c.
 * @ib: the queue.
 * @iop: polls the queue in softirq.
 * @unpolled: completions outstanding for which no task polls; the queue is armed while > 0.
 */
struct krc_meta_cq {
	struct ib_cq *ib;
	struct irq_poll iop;
	atomic_t unpolled;
};

/**
 * struct krc_meta_conn - RDMA resources of one connection, from the attempt to attach on.
 * @s: its session.
 * @id: rdma_cm identifier, with the queue pair.
 * @pd: protection domain; its local key covers the buffers.
 * @send_cq: completions of READs and SENDs.
 * @recv_cq: completions of receives; polled in order.
 * @recv_buf: receive buffers, KRP_MSG_BYTES_MAX each.
 * @send_buf: send buffers, KRP_MSG_BYTES_MAX each.
 * @read_buf: buffers of READs, KRP_BUCKET_BYTES each.
 * @bulk_buf: buffer of the last READ slot, which loads the map.
 * @posted: work requests that have not completed.
 * @wait: woken when @posted falls to zero.
 * @users: look-ups that use the connection; meta.lock.
 * @broken: unusable; once it is set under @read_lock, no READ is posted.
 * @fault: the queue pair reported a fatal event.
 * @read_lock: see the head of this file.
 * @read_wait: woken when a READ slot is free or @broken is set.
 * @read: READ slots; the last is used under @map_mutex only.
 * @send: credits.
 * @recv: receive buffers.
 * @map_mutex: see the head of this file.
 * @map_lock: see the head of this file.
 * @map: copy of root, segments and directory; NULL: too large, use LOOKUP messages.
 * @map_nr: counts maps loaded.
 * @pulse: heartbeat as of the last READ of the root; map_lock.
 * @root_addr: remote address of the root.
 * @root_rkey: its remote key.
 * @incarnation: incarnation of the server.
 * @link: GIDs and queue pair numbers of both ends, which the proofs cover.
 * @ring: holds @hmac; NULL before CHALLENGE and without cluster keys.
 * @hmac: transform of the key that the server has chosen.
 * @hello: as sent, for the proofs.
 * @challenge: as received, for the proofs.
 * @auth_sent: WELCOME is expected, not CHALLENGE.
 * @inbox: received message of the handshake, until the work item takes it; meta.lock.
 * @inbox_full: @inbox holds a message.
 */
struct krc_meta_conn {
	struct krc_meta_session *s;
	struct rdma_cm_id *id;
	struct ib_pd *pd;
	struct krc_meta_cq send_cq;
	struct ib_cq *recv_cq;
	struct krc_meta_buf recv_buf;
	struct krc_meta_buf send_buf;
	struct krc_meta_buf read_buf;
	struct krc_meta_buf bulk_buf;
	atomic_t posted;
	wait_queue_head_t wait;
	u32 users;
	bool broken;
	bool fault;

	spinlock_t read_lock;
	wait_queue_head_t read_wait;
	struct krc_meta_read read[KRC_META_READS + 1];
	struct krc_meta_send send[KRC_META_SENDS];
	struct krc_meta_recv recv[KRC_META_RECVS];

	struct mutex map_mutex;
	spinlock_t map_lock;
	struct krp_map *map;
	u64 map_nr;
	struct krp_pulse pulse;
	u64 root_addr;
	u32 root_rkey;
	u64 incarnation;

	struct krp_link link;
	struct krc_meta_ring *ring;
	struct crypto_shash *hmac;
	struct krp_hello hello;
	struct krp_challenge challenge;
	bool auth_sent;
	u64 inbox[KRP_MSG_BYTES_MAX / sizeof(u64)];
	bool inbox_full;
};

/**
 * struct krc_meta_session - One MetaServer. Locks: meta.lock unless it says otherwise.
 * @meta: client.
 * @index: position in krc_meta.sessions and in the arrays of a record.
 * @conf: the server; constant except for the priority.
 * @ring: cluster keys; NULL without any.
 * @token: krp_welcome.token of the last attachment.
 * @leaving: all records are being withdrawn; nothing is published any more.
 * @ended: the session is closed for good: once DOWN, it makes no connection.
 * @work: the session's work item.
 * @conn: connection, while the state is not DOWN; changed by the work item.
 * @state: enum krc_meta_state; changed by krc_meta_session_to() alone.
 * @events: KRC_META_EV_* not yet taken by the work item.
 * @failed: the work item is to take the connection down.
 * @error: last failure, 0 once attached.
 * @reason: text for @error.
 * @logged: reason that was logged last.
 * @fails: failures in a row; see krc_meta_session_lasted().
 * @ready_at: jiffies when it last became READY.
 * @deadline: jiffies: the present step of attaching must be over by then.
 * @next_at: jiffies: DOWN: when to try again.
 * @settle_until: jiffies: until then publishers may not have returned to the server.
 * @settling: @settle_until is valid.
 * @still: no heartbeat at the last READ of the root, and no message since: the server's
 *	process hangs.
 * @incarnation: incarnation of the server at the last attachment; 0: never attached.
 * @lease_ms: lease that the server granted.
 * @rate_max: messages per second that the server accepts; 0: any rate.
 * @features: KRP_FEATURE_* of the session.
 * @credits: send slots that may be used.
 * @busy_nr: send slots whose answer is outstanding.
 * @xid: counts requests.
 * @changes: counts PUBLISH and WITHDRAW sent.
 * @acked_at: jiffies when the server last extended the lease.
 * @renew_at: jiffies of the next RENEW.
 * @renew_due: RENEW is to be sent.
 * @subscribe_due: SUBSCRIBE is to be sent.
 * @dirty: a record may have to be sent.
 * @asked_last: the last message sent was a LOOKUP; a dirty record goes before the next one.
 * @subscribed: SUBSCRIBE has been answered; NOTIFYs count.
 * @notify_seq: number of the last NOTIFY, 0: none yet.
 * @pace_from: jiffies: begin of the present interval of rate limiting.
 * @pace_nr: messages sent in that interval.
 * @paced: messages wait for the next interval.
 * @asks: LOOKUPs that wait for a credit.
 * @attaches: see struct krc_meta_info.
 * @lookups: see struct krc_meta_info.
 * @reads: see struct krc_meta_info.
 * @misses: see struct krc_meta_info.
 * @misses_overruled: see struct krc_meta_info.
 * @failures: see struct krc_meta_info.
 * @blame: score of recent failures; see krc_meta_blame().
 * @blamed_at: jiffies when @blame was last changed.
 */
struct krc_meta_session {
	struct krc_meta *meta;
	u32 index;
	struct krc_meta_server_conf conf;
	struct krc_meta_ring *ring;
	u8 token[KRP_TOKEN_BYTES];
	bool leaving;
	bool ended;
	struct delayed_work work;
	struct krc_meta_conn *conn;

	u8 state;
	u32 events;
	bool failed;
	int error;
	char reason[sizeof_field(struct krc_meta_info, reason)];
	char logged[sizeof_field(struct krc_meta_info, reason)];
	u32 fails;
	unsigned long ready_at;
	unsigned long deadline;
	unsigned long next_at;
	unsigned long settle_until;
	bool settling;
	bool still;

	u64 incarnation;
	u32 lease_ms;
	u32 rate_max;
	u64 features;
	u32 credits;
	u32 busy_nr;
	u32 xid;
	u64 changes;
	unsigned long acked_at;
	unsigned long renew_at;
	bool renew_due;
	bool subscribe_due;
	bool dirty;
	bool asked_last;
	bool subscribed;
	u64 notify_seq;
	unsigned long pace_from;
	u32 pace_nr;
	bool paced;
	struct list_head asks;

	u64 attaches;
	u64 lookups;
	u64 reads;
	u64 misses;
	u64 misses_overruled;
	u64 failures;
	u32 blame;
	unsigned long blamed_at;
};

/**
 * struct krc_meta - The client of a port.
 * @ibdev: device.
 * @port: its port.
 * @gid: GID of its records.
 * @conf: configuration, without keys and servers. Changed with @conf_mutex and @lock held;
 *	owner, name and lease_ms only while there is no session.
 * @auth: there are cluster keys.
 * @cache: the node's cache.
 * @wq: runs the sessions' work items.
 * @conf_mutex: serializes changes of the sessions; outermost.
 * @lock: see the head of this file.
 * @wait: woken when a state or record changes, or @users or conn.users falls to zero.
 * @users: blocking calls in progress.
 * @closing: krc_meta_stop() has begun: no new calls.
 * @dead: the device is gone.
 * @records: list of struct krc_meta_record.
 * @version: counts changes of records.
 * @sessions: by index; NULL where there is none.
 * @order: the same sessions in the order of the configuration.
 * @order_nr: length of @order.
 */
struct krc_meta {
	struct ib_device *ibdev;
	u32 port;
	union ib_gid gid;
	struct krc_meta_conf conf;
	bool auth;
	struct krc_cache *cache;
	struct workqueue_struct *wq;
	struct mutex conf_mutex;

	spinlock_t lock;
	wait_queue_head_t wait;
	u32 users;
	bool closing;
	bool dead;
	struct list_head records;
	u64 version;
	struct krc_meta_session *sessions[KRC_META_SERVERS_MAX];
	struct krc_meta_session *order[KRC_META_SERVERS_MAX];
	u32 order_nr;
};

/* The first session at index @i or above, to which @i is moved; NULL: none. Locks: meta.lock. */
static inline struct krc_meta_session *krc_meta_next(const struct krc_meta *meta, u32 *i)
{
	lockdep_assert_held(&meta->lock);
	while (*i < KRC_META_SERVERS_MAX && !meta->sessions[*i])
		(*i)++;
	return *i < KRC_META_SERVERS_MAX ? meta->sessions[*i] : NULL;
}

/* All sessions, with @i as their index. Locks: meta.lock. */
#define krc_meta_for_each(meta, s, i) for ((i) = 0; ((s) = krc_meta_next(meta, &(i))); (i)++)

/* Longest time for a request, at least 1 ms. Context: any. */
static inline u32 krc_meta_timeout_ms(const struct krc_meta *meta)
{
	return max(READ_ONCE(meta->conf.timeout_ms), 1U);
}

/* READ timeout in jiffies: a quarter of the request's, so that other servers can be asked. */
static inline unsigned long krc_meta_patience(const struct krc_meta *meta)
{
	return msecs_to_jiffies(max(krc_meta_timeout_ms(meta) / 4, 1U));
}

#define KRC_META_BLAME_MS 10000 /* half-life of a failure */

/* Score of recent failures, which decays with time. Locks: meta.lock. */
static inline u32 krc_meta_blame(const struct krc_meta_session *s)
{
	unsigned long halves = (jiffies - s->blamed_at) / msecs_to_jiffies(KRC_META_BLAME_MS);

	return halves < 32 ? s->blame >> halves : 0;
}

/* Count a failure of a server. Locks: meta.lock. */
static inline void krc_meta_blamed(struct krc_meta_session *s)
{
	s->failures++;
	s->blame = min(krc_meta_blame(s) + 16, 1U << 20);
	s->blamed_at = jiffies;
}

/* meta/meta.c */
/* Begin a call that may sleep: the client stays. Return: 0, or -ESHUTDOWN. */
int krc_meta_enter(struct krc_meta *meta);
/* End such a call. Context: any. */
void krc_meta_leave(struct krc_meta *meta);

/* meta/auth.c */
/* Key the transforms; @ret_ring: NULL without keys. Return: 0, -ENOMEM, errno of crypto. */
int krc_meta_ring_new(const struct krc_meta_conf *conf, struct krc_meta_ring **ret_ring);
/* Count a user of a ring, or of NULL. Context: any. */
struct krc_meta_ring *krc_meta_ring_get(struct krc_meta_ring *ring);
/* Drop a user; the last frees the ring. Context: may sleep. */
void krc_meta_ring_put(struct krc_meta_ring *ring);
/* Return: the transform of the key with @id, NULL if it is not ours. */
struct crypto_shash *krc_meta_ring_find(const struct krc_meta_ring *ring, const u8 *id);
/* The client's MAC, or with @welcome the server's. Return: 0, or an errno of the hash. */
int krc_meta_auth_mac(struct crypto_shash *hmac, const struct krc_meta_conn *conn,
		      const struct krp_welcome *welcome, u8 *ret_mac);

/* meta/addr.c */
/* Source and destination of a connection. Return: 0, -EAFNOSUPPORT, -ENODEV. */
int krc_meta_addr(const struct krc_meta *meta, const struct sockaddr_storage *conf,
		  struct sockaddr_storage *ret_from, bool *ret_any,
		  struct sockaddr_storage *ret_to);

/* meta/conn.c */
/* Allocate a connection without RDMA resources. Context: may sleep. Return: NULL: no memory. */
struct krc_meta_conn *krc_meta_conn_new(struct krc_meta_session *s);
/* Create all RDMA resources; may sleep. On failure @ret_step names the step, an errno returns. */
int krc_meta_conn_setup(struct krc_meta_conn *conn, const char **ret_step);
/* Flush all work requests and destroy the queue pair. Context: the work item. */
void krc_meta_conn_stop(struct krc_meta_conn *conn);
/* Free a connection, in any state of setup, after krc_meta_conn_stop(); may sleep. */
void krc_meta_conn_free(struct krc_meta_conn *conn);
/* Count a work request as completed. Context: any. */
void krc_meta_conn_completed(struct krc_meta_conn *conn);
/* Return: the buffer of a send slot, KRP_MSG_BYTES_MAX. */
void *krc_meta_conn_message(struct krc_meta_conn *conn, const struct krc_meta_send *send);
/* Post the message in a slot's buffer. Locks: meta.lock. Return: 0, or a negative errno. */
int krc_meta_conn_send(struct krc_meta_conn *conn, struct krc_meta_send *send);

/* meta/session.c */
/* A session with conf->servers[@server], not started. Return: or ERR_PTR(-ENOMEM). */
struct krc_meta_session *krc_meta_session_new(struct krc_meta *meta,
					      const struct krc_meta_conf *conf, u32 server,
					      struct krc_meta_ring *ring);
/* Free a session that has ended or was never started. Context: may sleep. */
void krc_meta_session_free(struct krc_meta_session *s);
/* Run the work item now. Context: any. */
void krc_meta_session_kick(struct krc_meta_session *s);
/* Have the connection taken down. Context: any, without meta.lock; not in hard interrupts. */
__printf(3, 4) void krc_meta_session_fail(struct krc_meta_session *s, int err, const char *fmt,
					  ...);
/* The same. Locks: meta.lock. */
__printf(3, 4) void krc_meta_session_fail_locked(struct krc_meta_session *s, int err,
						 const char *fmt, ...);

/* meta/attach.c, session.c: called by the work item */
/* Start attaching a session that is DOWN. */
void krc_meta_attach_begin(struct krc_meta_session *s);
/* Handle @events of a session that is attaching, or its deadline. */
void krc_meta_attach_step(struct krc_meta_session *s, u32 events);
/* Change the state, and set the deadline of the step. Locks: meta.lock. */
void krc_meta_session_to(struct krc_meta_session *s, enum krc_meta_state state);
/* The handshake is complete: become READY, publish, subscribe, renew. */
void krc_meta_session_ready(struct krc_meta_session *s, const struct krp_welcome *welcome);

/* meta/request.c: called with meta.lock held, except krc_meta_message() and krc_meta_ask() */
/* Handle a received message; @bytes is not trusted yet. Context: softirq. */
void krc_meta_message(struct krc_meta_conn *conn, const void *msg, u32 bytes);
/* Send what is due, as far as credits and rate limit allow. */
void krc_meta_pump(struct krc_meta_session *s);
/* Changes may have been missed: empty the cache, tell followers. */
void krc_meta_resync(struct krc_meta_session *s);
/* Fail all requests: the connection is going away. */
void krc_meta_requests_fail(struct krc_meta_session *s, int err);
/* Jiffies when the oldest unanswered request was sent. Return: false: there is none. */
bool krc_meta_requests_oldest(const struct krc_meta_session *s, unsigned long *ret_at);
/* LOOKUP by message; sleeps, killable. Return: see meta/request.c. */
int krc_meta_ask(struct krc_meta_session *s, struct krc_meta_conn *conn, const struct krp_key *key,
		 unsigned long timeout, struct krp_value *ret_value);

/* meta/record.c: called with meta.lock held */
/* Return: the record of @meta's own GID, or NULL. */
struct krc_meta_record *krc_meta_record_find(struct krc_meta *meta, u16 service);
/* Return: the next record to send to a server, or NULL. */
struct krc_meta_record *krc_meta_record_dirty(struct krc_meta_session *s);
/* The token for a server's @incarnation; zeroes if there is none. */
void krc_meta_record_token(const struct krc_meta_record *rec, u64 incarnation, u8 *ret_token);
/* A server reported a record gone: publish it again if it is ours. */
void krc_meta_record_lost(struct krc_meta_session *s, const struct krp_key *key, u64 generation);
/* A server has answered PUBLISH or WITHDRAW with @err. */
void krc_meta_record_answered(struct krc_meta_session *s, const struct krc_meta_send *send,
			      int err);
/* Set all records whose state at a server is in @from (bit mask) to @to. */
void krc_meta_records_mark(struct krc_meta_session *s, unsigned int from, enum krc_meta_at to);
/* Return: number of records, not withdrawn, in state @at at a server. */
u32 krc_meta_records_count(const struct krc_meta_session *s, enum krc_meta_at at);
/* Free withdrawn records whose leases have run out. */
void krc_meta_records_expire(struct krc_meta *meta);
/* Whether a server has answered every PUBLISH and WITHDRAW. */
bool krc_meta_records_quiet(const struct krc_meta_session *s);
/* A server was added: mark what it is to be told. */
void krc_meta_records_joined(struct krc_meta_session *s);
/* A server was removed; while closing, unconfirmed records become orphans. */
void krc_meta_records_left(struct krc_meta_session *s);
/* Free all records of an unused client; no lock. */
void krc_meta_records_free(struct krc_meta *meta);

/* meta/read.c */
/* Load the first map. Context: the work item. Return: see meta/read.c. */
int krc_meta_map_load(struct krc_meta_conn *conn);
/* Look a record up by READs; sleeps, killable. Return: see meta/read.c. */
int krc_meta_read_lookup(struct krc_meta_conn *conn, const struct krp_key *key,
			 unsigned long deadline, struct krp_value *ret_value, u32 *reads);
/* READ the heartbeat if it is due; sleeps, killable. Return: 1 if READ, 0 or an errno if not. */
int krc_meta_read_pulse(struct krc_meta_conn *conn, unsigned long deadline, u32 *reads,
			struct krp_pulse *ret_pulse);
/* Let no further READ be posted. Context: the work item. */
void krc_meta_reads_stop(struct krc_meta_conn *conn);
/* Fail READs that did not complete before the queue pair went. Context: the work item. */
void krc_meta_reads_end(struct krc_meta_conn *conn);
/* Completion of a READ. Context: softirq, or BHs off. */
void krc_meta_read_done(struct ib_cq *cq, struct ib_wc *wc);

/* meta/cq.c */
/* Context: may sleep. Return: 0, or a negative errno. */
int krc_meta_cq_create(struct krc_meta_cq *cq, struct ib_device *ibdev, int entries);
/* Destroy it if it was created, after its queue pair. Context: may sleep. */
void krc_meta_cq_destroy(struct krc_meta_cq *cq);
/* Busy-poll step. Context: task that holds a count in conn.users. */
void krc_meta_cq_poll(struct krc_meta_cq *cq);
/* Count a completion for which no task polls, and arm. Context: not in hard interrupts. */
void krc_meta_cq_expect(struct krc_meta_cq *cq);
/* Uncount it. Context: any. */
void krc_meta_cq_expected(struct krc_meta_cq *cq);

#endif /* KRC_META_PRIV_H */
