/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the inside of the MetaServer client, shared by the files of this folder.
 *
 * THREADS
 *   Each session has one work item (meta/session.c). It alone makes and destroys
 *   connections and changes states. Events of rdma_cm and of the completion queue
 *   leave a note and queue it. Once a session is ready, answers and notifications are
 *   taken in where they arrive, in soft interrupts.
 *
 * LOCKS, in the order in which they nest
 *   meta.conf_mutex one change of the list of sessions at a time; sleeps.
 *   conn.map_mutex  making a new map; sleeps on READs.
 *   meta.lock       BH-safe spinlock: records, requests, states, texts, counters.
 *   conn.map_lock   the map and its entries; process context only, nothing inside.
 *   conn.read_lock  BH-safe spinlock: slots of READs, and the right to post one.
 *   The last three are never held at once. Inside meta.lock and conn.read_lock requests
 *   are posted; inside meta.lock the cache's own lock is taken.
 *
 * LIFE
 *   A connection is used by look-ups that hold a count in conn.users, taken under
 *   meta.lock while the session is ready. Taking it down ends every READ and request
 *   and then waits for that count.
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

#define KRC_META_SENDS 32 /* requests outstanding on a server at most */
#define KRC_META_RECVS 128 /* SENDS, and the rest for notifications */
#define KRC_META_READS 32 /* READs of look-ups outstanding on a server at most */
#define KRC_META_BULK_BYTES 16384 /* longest READ of a load */
#define KRC_META_RETRIES 7 /* of the transport, the most there is */
#define KRC_META_RENEW_MAX_MS 15000 /* a server closes sessions that say nothing */
#define KRC_META_OPINIONS 2 /* so many servers must not have a record before there is none */
#define KRC_META_WITHDRAW_MS 1000 /* how long the end waits for the servers */
#define KRC_META_DRAIN_MS 1000 /* how long a broken connection may keep its buffers */

/* krc_meta_session.events */
#define KRC_META_EV_ADDR BIT(0)
#define KRC_META_EV_ROUTE BIT(1)
#define KRC_META_EV_ESTABLISHED BIT(2)
#define KRC_META_EV_MESSAGE BIT(3)

struct crypto_shash;
struct krc_meta_conn;

/**
 * struct krc_meta_ring - The cluster keys of a configuration; does not change.
 * @ref: its users.
 * @nr: how many keys.
 * @id: their ids.
 * @hmac: keyed transforms.
 */
struct krc_meta_ring {
	struct kref ref;
	u32 nr;
	u8 id[KRC_META_KEYS_MAX][KRP_KEY_ID_BYTES];
	struct crypto_shash *hmac[KRC_META_KEYS_MAX];
};

/**
 * struct krc_meta_token - What lets a record be withdrawn from another address.
 * @incarnation: of the server that gave it; 0 if none did.
 * @bytes: its krp_welcome.token.
 */
struct krc_meta_token {
	u64 incarnation;
	u8 bytes[KRP_TOKEN_BYTES];
};

/**
 * enum krc_meta_at - What a server knows of a record.
 * @KRC_META_AT_NEVER: nothing, and there is nothing to be said (withdrawn before).
 * @KRC_META_AT_DIRTY: to be told.
 * @KRC_META_AT_SENT: told, not yet answered.
 * @KRC_META_AT_ACKED: it has the present version.
 * @KRC_META_AT_REFUSED: it does not want it; is asked again at the next renewal.
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
 * @version: new with every change.
 * @gone: withdrawn; kept until all servers know or no lease can hold it any more.
 * @adopted: a client of another address has left it to be withdrawn.
 * @orphaned: a server may still have it though it was to be withdrawn.
 * @forget_at: jiffies when that is.
 * @at: enum krc_meta_at, by server.
 * @err: last refusal, by server; 0 once acknowledged.
 * @token: of the servers that the client which has left it was attached to.
 */
struct krc_meta_record {
	struct list_head link;
	struct krp_key key;
	struct krp_value value;
	u64 version;
	bool gone;
	bool adopted;
	bool orphaned;
	unsigned long forget_at;
	u8 at[KRC_META_SERVERS_MAX];
	int err[KRC_META_SERVERS_MAX];
	struct krc_meta_token token[KRC_META_SERVERS_MAX];
};

/**
 * struct krc_meta_buf - Memory that the device reaches.
 * @p: memory; NULL if there is none.
 * @dma: its address for the device.
 * @bytes: length.
 * @dir: direction.
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
 * @err: out: 0, or the outcome.
 * @done: completed when nobody else uses this any more.
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
 * @posted: the buffer is the device's.
 * @busy: the answer is due.
 * @type: KRP_MSG_* that was sent.
 * @xid: number of the request.
 * @service: PUBLISH, WITHDRAW: of the record.
 * @version: of the record.
 * @mark: RENEW: krc_meta_session.changes when it was sent.
 * @sent_at: jiffies.
 * @ask: LOOKUP: who waits; NULL if he gave up.
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
 * struct krc_meta_read - A READ and its buffer. Locks: conn.read_lock.
 * @cqe: its completion.
 * @conn: its connection.
 * @done: completed with @err.
 * @data: what the READ brought.
 * @dma: the same for the device.
 * @taken: somebody uses the slot.
 * @posted: the buffer is the device's.
 * @asleep: nobody polls for it.
 * @abandoned: nobody waits: the completion frees the slot.
 * @err: outcome.
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
 * @iop: soft interrupt.
 * @unpolled: completions to come for which nobody polls.
 */
struct krc_meta_cq {
	struct ib_cq *ib;
	struct irq_poll iop;
	atomic_t unpolled;
};

/**
 * struct krc_meta_conn - The RDMA resources of one attempt to attach.
 * @s: its session.
 * @id: of rdma_cm, with the queue pair.
 * @pd: protection domain; its local key covers the buffers.
 * @send_cq: of READs and SENDs.
 * @recv_cq: of messages, which keep their order.
 * @recv_buf: receive buffers, KRP_MSG_BYTES_MAX each.
 * @send_buf: send buffers, KRP_MSG_BYTES_MAX each.
 * @read_buf: buffers of READs, KRP_BUCKET_BYTES each.
 * @bulk_buf: buffer of the last READ slot.
 * @posted: work requests that have not completed.
 * @wait: @posted or @users fell to zero.
 * @users: look-ups inside; meta.lock.
 * @broken: of no more use; once it was set with @read_lock held, no READ is posted.
 * @fault: the queue pair reported a fault.
 * @read_lock: see the head of this file.
 * @read_wait: a slot is free, or @broken.
 * @read: slots; the last belongs to @map_mutex.
 * @send: credits.
 * @recv: receive buffers.
 * @map_mutex: see the head of this file.
 * @map_lock: see the head of this file.
 * @map: copy of root, segments and directory; NULL: too large, ask by message.
 * @map_nr: counts maps.
 * @pulse: the last look at the root for signs of life; map_lock.
 * @root_addr: where the root is.
 * @root_rkey: its remote key.
 * @incarnation: of the server.
 * @link: what it connects, for the proofs.
 * @ring: holds @hmac; NULL before CHALLENGE and without cluster keys.
 * @hmac: of the key that the server has chosen.
 * @hello: as sent, for the proofs.
 * @challenge: as received, for the proofs.
 * @auth_sent: WELCOME is expected, not CHALLENGE.
 * @inbox: message of the handshake; meta.lock until KRC_META_EV_MESSAGE is taken.
 * @inbox_full: it holds one.
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
 * @conf: the server; constant but for its priority.
 * @ring: cluster keys; NULL without any.
 * @token: of the last attachment.
 * @leaving: no more but WITHDRAW is said.
 * @ended: it goes down and stays there: once it is DOWN, no connection is made.
 * @work: the session's work item.
 * @conn: connection, while the state is not DOWN; changed by the work item.
 * @state: enum krc_meta_state; changed by krc_meta_session_to() alone.
 * @events: KRC_META_EV_* not yet taken by the work item.
 * @failed: to be taken down by the work item.
 * @error: last failure, 0 once attached.
 * @reason: text about it.
 * @logged: reason that was logged last.
 * @fails: failures in a row; an attachment that did not last is none the less one of them.
 * @ready_at: jiffies: READY: since when.
 * @deadline: jiffies: the present step of attaching must be over by then.
 * @next_at: jiffies: DOWN: when to try again.
 * @settle_until: jiffies: until then publishers may be on their way back to it.
 * @settling: @settle_until counts.
 * @still: its process hangs, as far as the last look at the root can tell; nothing has
 *	come from it since.
 * @incarnation: of the last attachment.
 * @lease_ms: granted.
 * @rate_max: messages a second it takes.
 * @features: KRP_FEATURE_* of the session.
 * @credits: slots that may be used.
 * @busy_nr: slots whose answer is due.
 * @xid: counts requests.
 * @changes: counts PUBLISH and WITHDRAW sent.
 * @acked_at: jiffies when it last extended the lease.
 * @renew_at: jiffies when to renew.
 * @renew_due: RENEW is to be sent.
 * @subscribe_due: SUBSCRIBE is to be sent.
 * @dirty: a record may have to be sent.
 * @subscribed: NOTIFYs count.
 * @notify_seq: number of the last one, 0 if there was none.
 * @pace_from: jiffies: begin of the present stretch of counting messages.
 * @pace_nr: messages sent in it.
 * @paced: messages wait for the next stretch.
 * @asks: LOOKUPs that wait for a credit.
 * @attaches: see struct krc_meta_info.
 * @lookups: see struct krc_meta_info.
 * @reads: see struct krc_meta_info.
 * @misses: see struct krc_meta_info.
 * @misses_overruled: see struct krc_meta_info.
 * @failures: see struct krc_meta_info.
 * @blame: failures of late; see krc_meta_blame().
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
 * @gid: GID that is published for.
 * @conf: configuration, without key and servers. Changed with @conf_mutex and @lock held,
 *	what a session says of itself only while there is none.
 * @auth: there are cluster keys.
 * @cache: of the node.
 * @wq: the sessions' work items.
 * @conf_mutex: one change of the sessions at a time; outermost.
 * @lock: see the head of this file.
 * @wait: a state or a record has changed, or @users or conn.users fell to zero.
 * @users: calls inside.
 * @closing: the end has begun: no new calls.
 * @dead: the device is gone.
 * @records: struct krc_meta_record.
 * @version: counts changes of records.
 * @sessions: by index; NULL where there is none.
 * @order: the same in the order of the configuration.
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

/* The session at or behind place @i, which is moved to it; NULL if there is none. */
static inline struct krc_meta_session *krc_meta_next(const struct krc_meta *meta, u32 *i)
{
	lockdep_assert_held(&meta->lock);
	while (*i < KRC_META_SERVERS_MAX && !meta->sessions[*i])
		(*i)++;
	return *i < KRC_META_SERVERS_MAX ? meta->sessions[*i] : NULL;
}

/* All sessions, with @i as their index. Locks: meta.lock. */
#define krc_meta_for_each(meta, s, i) for ((i) = 0; ((s) = krc_meta_next(meta, &(i))); (i)++)

static inline u32 krc_meta_timeout_ms(const struct krc_meta *meta)
{
	return max(READ_ONCE(meta->conf.timeout_ms), 1U);
}

/* How long a READ may take before its server counts as dead: then there is time for others. */
static inline unsigned long krc_meta_patience(const struct krc_meta *meta)
{
	return msecs_to_jiffies(max(krc_meta_timeout_ms(meta) / 4, 1U));
}

#define KRC_META_BLAME_MS 10000 /* after so long a failure counts half */

/* What is held against a server: failures, the less the longer ago. Locks: meta.lock. */
static inline u32 krc_meta_blame(const struct krc_meta_session *s)
{
	unsigned long halves = (jiffies - s->blamed_at) / msecs_to_jiffies(KRC_META_BLAME_MS);

	return halves < 32 ? s->blame >> halves : 0;
}

/* A server has failed once more. Locks: meta.lock. */
static inline void krc_meta_blamed(struct krc_meta_session *s)
{
	s->failures++;
	s->blame = min(krc_meta_blame(s) + 16, 1U << 20);
	s->blamed_at = jiffies;
}

/* meta/meta.c */
int krc_meta_enter(struct krc_meta *meta);
void krc_meta_leave(struct krc_meta *meta);

/* meta/auth.c */
int krc_meta_ring_new(const struct krc_meta_conf *conf, struct krc_meta_ring **ret_ring);
struct krc_meta_ring *krc_meta_ring_get(struct krc_meta_ring *ring);
void krc_meta_ring_put(struct krc_meta_ring *ring);
struct crypto_shash *krc_meta_ring_find(const struct krc_meta_ring *ring, const u8 *id);
int krc_meta_auth_mac(struct crypto_shash *hmac, const struct krc_meta_conn *conn,
		      const struct krp_welcome *welcome, u8 *ret_mac);

/* meta/addr.c */
int krc_meta_addr(const struct krc_meta *meta, const struct sockaddr_storage *conf,
		  struct sockaddr_storage *ret_from, bool *ret_any,
		  struct sockaddr_storage *ret_to);

/* meta/conn.c */
struct krc_meta_conn *krc_meta_conn_new(struct krc_meta_session *s);
int krc_meta_conn_setup(struct krc_meta_conn *conn, const char **ret_step);
void krc_meta_conn_stop(struct krc_meta_conn *conn);
void krc_meta_conn_free(struct krc_meta_conn *conn);
void krc_meta_conn_completed(struct krc_meta_conn *conn);
void *krc_meta_conn_message(struct krc_meta_conn *conn, const struct krc_meta_send *send);
int krc_meta_conn_send(struct krc_meta_conn *conn, struct krc_meta_send *send);

/* meta/session.c */
struct krc_meta_session *krc_meta_session_new(struct krc_meta *meta,
					      const struct krc_meta_conf *conf, u32 server,
					      struct krc_meta_ring *ring);
void krc_meta_session_free(struct krc_meta_session *s);
void krc_meta_session_kick(struct krc_meta_session *s);
__printf(3, 4) void krc_meta_session_fail(struct krc_meta_session *s, int err, const char *fmt,
					  ...);
__printf(3, 4) void krc_meta_session_fail_locked(struct krc_meta_session *s, int err,
						 const char *fmt, ...);

/* meta/attach.c: the work item's */
void krc_meta_attach_begin(struct krc_meta_session *s);
void krc_meta_attach_step(struct krc_meta_session *s, u32 events);
void krc_meta_session_to(struct krc_meta_session *s, enum krc_meta_state state);
void krc_meta_session_ready(struct krc_meta_session *s, const struct krp_welcome *welcome);

/* meta/request.c: with meta.lock held, the first without */
void krc_meta_message(struct krc_meta_conn *conn, const void *msg, u32 bytes);
void krc_meta_pump(struct krc_meta_session *s);
void krc_meta_resync(struct krc_meta_session *s);
void krc_meta_requests_fail(struct krc_meta_session *s, int err);
bool krc_meta_requests_oldest(const struct krc_meta_session *s, unsigned long *ret_at);
int krc_meta_ask(struct krc_meta_session *s, struct krc_meta_conn *conn, const struct krp_key *key,
		 unsigned long timeout, struct krp_value *ret_value);

/* meta/record.c: with meta.lock held */
struct krc_meta_record *krc_meta_record_find(struct krc_meta *meta, u16 service);
struct krc_meta_record *krc_meta_record_dirty(struct krc_meta_session *s);
void krc_meta_record_token(const struct krc_meta_record *rec, u64 incarnation, u8 *ret_token);
void krc_meta_record_lost(struct krc_meta_session *s, const struct krp_key *key, u64 generation);
void krc_meta_record_answered(struct krc_meta_session *s, const struct krc_meta_send *send,
			      int err);
void krc_meta_records_mark(struct krc_meta_session *s, unsigned int from, enum krc_meta_at to);
u32 krc_meta_records_count(const struct krc_meta_session *s, enum krc_meta_at at);
void krc_meta_records_expire(struct krc_meta *meta);
bool krc_meta_records_quiet(const struct krc_meta_session *s);
void krc_meta_records_joined(struct krc_meta_session *s);
void krc_meta_records_left(struct krc_meta_session *s);
void krc_meta_records_free(struct krc_meta *meta);

/* meta/read.c */
int krc_meta_map_load(struct krc_meta_conn *conn);
int krc_meta_read_lookup(struct krc_meta_conn *conn, const struct krp_key *key,
			 unsigned long deadline, struct krp_value *ret_value, u32 *reads);
int krc_meta_read_pulse(struct krc_meta_conn *conn, unsigned long deadline, u32 *reads,
			struct krp_pulse *ret_pulse);
void krc_meta_reads_stop(struct krc_meta_conn *conn);
void krc_meta_reads_end(struct krc_meta_conn *conn);
void krc_meta_read_done(struct ib_cq *cq, struct ib_wc *wc);

/* meta/cq.c */
int krc_meta_cq_create(struct krc_meta_cq *cq, struct ib_device *ibdev, int entries);
void krc_meta_cq_destroy(struct krc_meta_cq *cq);
void krc_meta_cq_poll(struct krc_meta_cq *cq);
void krc_meta_cq_expect(struct krc_meta_cq *cq);
void krc_meta_cq_expected(struct krc_meta_cq *cq);

#endif /* KRC_META_PRIV_H */
