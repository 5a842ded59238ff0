/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the internals of the MetaServer client, shared by the files of this folder.
 *
 * DRIVERS
 *   proto/krp_records.h and proto/krp_session.h decide what is sent, when, and what an answer
 *   means; libkrcore has the same. meta/session.c pulls from a session what is to be done
 *   (krc_meta_session_run()), in any context, with meta.lock held: it sends, invalidates the
 *   cache, and wakes those that wait. What sleeps it leaves to the session's work item as a
 *   duty: that alone creates and destroys connections and computes proofs. The table is loaded
 *   by a work item of the connection.
 *   Events of rdma_cm only set a flag and queue the work item. Messages are processed where
 *   they arrive, in softirq.
 *
 * LOCKS, in the order in which they nest
 *   meta.conf_mutex serializes changes of the list of sessions; its holder may sleep.
 *   meta.lock       BH-safe spinlock: the publisher, its sessions, counters.
 *   table.lock      spinlock: the map and its entries; process context only, innermost.
 *   slots.lock      BH-safe spinlock: READ slots, and the right to post a READ or a receive.
 *   The last three never nest in each other. Work requests are posted under meta.lock and
 *   slots.lock; the cache's own lock nests in meta.lock. Under meta.lock all records are
 *   walked only where each of them changes: at an attach, at its end, when a server joins or
 *   leaves, and when a lease ran out.
 *
 * LIFETIME
 *   A look-up has a reference to its connection, taken under meta.lock while the session is
 *   ready, and the connection one to its session: to their memory alone. Teardown ends every
 *   READ and request, destroys all that is the device's, and waits for no task. So who has a
 *   connection asks, under meta.lock, whether it is still the session's before it says anything
 *   to the session: krc_meta_conn_fail().
 */
#ifndef KRC_META_PRIV_H
#define KRC_META_PRIV_H

#include <linux/bitmap.h>
#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/irq_poll.h>
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "base/turns.h"
#include "krp_session_state.h"
#include "meta/cache.h"
#include "meta/map.h"
#include "meta/auth.h"
#include "meta/meta.h"
#include "meta/record.h"
#include "meta/servers.h"
#include "meta/read.h"
#include "meta/table.h"

#define KRC_META_SENDS 32 /* most requests in flight to a server */
#define KRC_META_RECVS 128 /* KRC_META_SENDS for answers, the rest for notifications */
static_assert(KRC_META_RECVS >= KRC_META_SENDS + KRP_NOTIFY_WINDOW);
#define KRC_META_RETRIES 7 /* retries of the transport: the maximum */
#define KRC_META_CHAINS 256 /* of the hash of records, a power of two */
#define KRC_META_OPINIONS 2 /* servers that must miss before a record does not exist */
#define KRC_META_WITHDRAW_MS 1000 /* how long ending sessions waits for WITHDRAWs */
#define KRC_META_DRAIN_MS 1000 /* how long to wait for flushed work requests */

/* krc_meta_session.events */
#define KRC_META_EV_ADDR BIT(0)
#define KRC_META_EV_ROUTE BIT(1)
#define KRC_META_EV_ESTABLISHED BIT(2)

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
 * struct krc_meta_ask - A LOOKUP by message, of a task that waits. Locks: meta.lock.
 * @place: its place in krc_meta_session.asks; given when it is put to the session.
 * @krp: question.
 * @done: completed when the session does not use it any more.
 */
struct krc_meta_ask {
	struct krc_line_waiter place;
	struct krp_ask krp;
	struct completion done;
};

/**
 * struct krc_meta_send - A send buffer, which a slot of the session uses.
 * @cqe: completion of the SEND.
 * @conn: its connection.
 */
struct krc_meta_send {
	struct ib_cqe cqe;
	struct krc_meta_conn *conn;
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
 * struct krc_meta_cq - Completion queue of READs and SENDs; meta/cq.c.
 * @ib: the queue.
 * @iop: polls the queue in softirq.
 * @unpolled: completions outstanding for which no task polls; the queue is armed while > 0.
 * @gone: no task polls it any more.
 */
struct krc_meta_cq {
	struct ib_cq *ib;
	struct irq_poll iop;
	atomic_t unpolled;
	bool gone;
};

/**
 * struct krc_meta_conn - RDMA resources of one connection, from the attempt to attach on.
 * @ref: the session, until it is closed, look-ups, and @table.work while @table.loading.
 * @s: its session, with a reference.
 * @id: rdma_cm identifier, with the queue pair.
 * @pd: protection domain; its local key covers the buffers.
 * @send_cq: completions of READs and SENDs.
 * @recv_cq: completions of receives; polled in order.
 * @recv_buf: receive buffers, KRP_MSG_BYTES_MAX each.
 * @send_buf: send buffers, KRP_MSG_BYTES_MAX each.
 * @posted: work requests that have not completed.
 * @wait: woken when @posted falls to zero.
 * @broken: unusable; once it is set under @slots.lock, no READ and no receive is posted.
 * @fault: the queue pair reported a fatal event.
 * @send: send buffers, by slot of the session.
 * @recv: receive buffers.
 * @slots: its READs.
 * @table: what it knows of the server's table.
 * @incarnation: incarnation of the server.
 * @ring: cluster keys as of the handshake; holds @hmac; NULL without any.
 * @hmac: transform of the key that the server has chosen.
 */
struct krc_meta_conn {
	struct kref ref;
	struct krc_meta_session *s;
	struct rdma_cm_id *id;
	struct ib_pd *pd;
	struct krc_meta_cq send_cq;
	struct ib_cq *recv_cq;
	struct krc_meta_buf recv_buf;
	struct krc_meta_buf send_buf;
	atomic_t posted;
	wait_queue_head_t wait;
	bool broken;
	bool fault;
	struct krc_meta_send send[KRC_META_SENDS];
	struct krc_meta_recv recv[KRC_META_RECVS];
	struct krc_meta_slots slots;
	struct krc_meta_table table;
	u64 incarnation;
	struct krc_meta_ring *ring;
	struct crypto_shash *hmac;
};

/**
 * struct krc_meta_session - One MetaServer. Locks: meta.lock unless it says otherwise.
 * @ref: the client, until krc_meta_end(), or a plan; and connections.
 * @meta: client.
 * @index: position in krc_meta.sessions; KRC_META_SERVERS_MAX: not started.
 * @conf: the server; constant except for the priority.
 * @ring: cluster keys; NULL without any.
 * @krp: what proto/krp_session.h knows of it. Link, hello, challenge and welcome do not change
 *	while the work item has the duty that needs them, which reads them without the lock.
 * @work: the session's work item.
 * @armed_ns: when the work item runs at the latest; 0: it is queued; KRP_FOREVER_NS: never.
 * @duties: BIT(KRP_DO_*) of the work item.
 * @asks: questions of tasks that are not put to the session yet, which has one to send at most.
 * @conn: connection, while the state is not DOWN; changed by the work item.
 * @events: KRC_META_EV_* not yet taken by the work item.
 * @routed: CONNECTING: the route is known.
 * @logged: reason that was logged last; the work item's.
 * @lookups: see struct krc_meta_info.
 * @reads: see struct krc_meta_info.
 * @misses: see struct krc_meta_info.
 * @misses_overruled: see struct krc_meta_info.
 */
struct krc_meta_session {
	struct kref ref;
	struct krc_meta *meta;
	u32 index;
	struct krc_meta_server_conf conf;
	struct krc_meta_ring *ring;
	struct krp_session krp;
	struct delayed_work work;
	u64 armed_ns;
	u32 duties;
	struct krc_line asks;
	struct krc_meta_conn *conn;
	u32 events;
	bool routed;
	char logged[sizeof_field(struct krc_meta_info, reason)];

	u64 lookups;
	u64 reads;
	u64 misses;
	u64 misses_overruled;
};

/**
 * struct krc_meta - The client of a port.
 * @ibdev: device.
 * @port: its port.
 * @gid: GID of its records.
 * @conf: what the sessions are set to. Changed with @conf_mutex and @lock held; owner, name
 *	and lease_ms only while there is no session.
 * @auth: there are cluster keys.
 * @ring: the cluster keys; NULL without any.
 * @cache: the node's cache.
 * @wq: runs the sessions' work items.
 * @conf_mutex: serializes changes of the sessions; outermost.
 * @lock: see the head of this file.
 * @wait: woken when a session is attached or down, a server has answered, or @users falls to
 *	zero.
 * @users: blocking calls in progress.
 * @closing: krc_meta_stop() has begun: no new calls.
 * @dead: the device is gone.
 * @pub: records of this port.
 * @chains: its hash.
 * @sessions: by index; NULL where there is none.
 * @order: the same sessions in the order of the configuration.
 * @order_nr: length of @order.
 */
struct krc_meta {
	struct ib_device *ibdev;
	u32 port;
	union ib_gid gid;
	struct krp_session_conf conf;
	bool auth;
	struct krc_meta_ring *ring;
	struct krc_cache *cache;
	struct workqueue_struct *wq;
	struct mutex conf_mutex;

	spinlock_t lock;
	wait_queue_head_t wait;
	u32 users;
	bool closing;
	bool dead;
	struct krp_publisher pub;
	struct krp_record *chains[KRC_META_CHAINS];
	struct krc_meta_session *sessions[KRC_META_SERVERS_MAX];
	struct krc_meta_session *order[KRC_META_SERVERS_MAX];
	u32 order_nr;
};

/**
 * krc_meta_next() - Find the first session at an index or above.
 * @meta: client.
 * @i: index from 0; moved to that of the session, or to KRC_META_SERVERS_MAX.
 *
 * Locks: meta.lock.
 * Return: the session; NULL: there is none.
 */
static inline struct krc_meta_session *krc_meta_next(const struct krc_meta *meta, u32 *i)
{
	lockdep_assert_held(&meta->lock);
	while (*i < KRC_META_SERVERS_MAX && !meta->sessions[*i])
		(*i)++;
	return *i < KRC_META_SERVERS_MAX ? meta->sessions[*i] : NULL;
}

/* All sessions, with @i as their index. Locks: meta.lock. */
#define krc_meta_for_each(meta, s, i) for ((i) = 0; ((s) = krc_meta_next(meta, &(i))); (i)++)

/**
 * krc_meta_timeout_ms() - Longest time for a request.
 * @meta: client.
 *
 * Context: any.
 * Return: milliseconds, at least 1.
 */
static inline u32 krc_meta_timeout_ms(const struct krc_meta *meta)
{
	return max(READ_ONCE(meta->conf.timeout_ms), 1U);
}

/**
 * krc_meta_read_timeout() - Longest time for a READ.
 * @meta: client.
 *
 * A quarter of a request's, so that other servers can be asked within it.
 * Context: any.
 * Return: jiffies, at least 1.
 */
static inline unsigned long krc_meta_read_timeout(const struct krc_meta *meta)
{
	return msecs_to_jiffies(max(krc_meta_timeout_ms(meta) / 4, 1U));
}

/**
 * krc_meta_now_ns() - The clock of the sessions.
 * @meta: client.
 *
 * Locks: meta.lock, so that no session sees it go back.
 * Return: nanoseconds, monotonic.
 */
static inline u64 krc_meta_now_ns(const struct krc_meta *meta)
{
	lockdep_assert_held(&meta->lock);
	return ktime_get_ns();
}

/* ---- meta/meta.c ---- */

/**
 * krc_meta_enter() - Begin a call that may sleep: the client stays until krc_meta_leave().
 * @meta: client.
 *
 * Context: any, without meta.lock; not in hard interrupts.
 * Return: 0, or -ESHUTDOWN.
 */
int krc_meta_enter(struct krc_meta *meta);

/**
 * krc_meta_leave() - End a call that krc_meta_enter() has let in; @meta may be gone then.
 * @meta: client.
 *
 * Context: any, without meta.lock; not in hard interrupts.
 */
void krc_meta_leave(struct krc_meta *meta);

/* ---- meta/auth.c ---- */

/**
 * krc_meta_ring_new() - Create the key ring of a configuration.
 * @conf: configuration.
 * @ret_ring: out: the ring, with one user; NULL without keys, and on failure.
 *
 * Context: may sleep.
 * Return: 0, -ENOMEM, or an errno of the crypto layer.
 */
int krc_meta_ring_new(const struct krc_meta_conf *conf, struct krc_meta_ring **ret_ring);

/**
 * krc_meta_ring_get() - Count a user of a ring.
 * @ring: ring, or NULL.
 *
 * Context: any.
 * Return: @ring.
 */
struct krc_meta_ring *krc_meta_ring_get(struct krc_meta_ring *ring);

/**
 * krc_meta_ring_put() - Drop a user of a ring; the last one frees it, and its keys are wiped.
 * @ring: ring, or NULL.
 *
 * Context: may sleep.
 */
void krc_meta_ring_put(struct krc_meta_ring *ring);

/**
 * krc_meta_ring_find() - Find the transform that is keyed with a key.
 * @ring: ring, or NULL.
 * @id: KRP_KEY_ID_BYTES, as messages name it; not trusted.
 *
 * Context: any.
 * Return: the transform, as long as the ring is; NULL: the key is not ours.
 */
struct crypto_shash *krc_meta_ring_find(const struct krc_meta_ring *ring, const u8 *id);

/**
 * krc_meta_auth_mac() - Compute the proof of one end of a connection.
 * @hmac: transform of the key.
 * @krp: session; its link, hello and challenge are covered.
 * @welcome: the server's proof, which covers it, too; NULL: the client's.
 * @ret_mac: out: KRP_MAC_BYTES; undefined on failure.
 *
 * Context: may sleep. Locks: none; the work item has the duty that keeps @krp as it is.
 * Return: 0, or an errno of the hash.
 */
int krc_meta_auth_mac(struct crypto_shash *hmac, const struct krp_session *krp,
		      const struct krp_welcome *welcome, u8 *ret_mac);

/* ---- meta/addr.c ---- */

/**
 * krc_meta_addr() - Choose source and destination of a connection.
 * @meta: client.
 * @conf: address of the server, as configured.
 * @ret_from: out: source.
 * @ret_any: out: there is no source, the route decides; the caller checks that it leads
 *	through the right device.
 * @ret_to: out: destination.
 *
 * Context: any.
 * Return: 0, -EAFNOSUPPORT (no family that the port's GID can reach), -ENODEV.
 */
int krc_meta_addr(const struct krc_meta *meta, const struct sockaddr_storage *conf,
		  struct sockaddr_storage *ret_from, bool *ret_any,
		  struct sockaddr_storage *ret_to);

/* ---- meta/conn.c ---- */

/**
 * krc_meta_conn_new() - Allocate a connection without RDMA resources.
 * @s: its session.
 *
 * Context: may sleep.
 * Return: the connection, with one reference; NULL: no memory.
 */
struct krc_meta_conn *krc_meta_conn_new(struct krc_meta_session *s);

/**
 * krc_meta_conn_setup() - Create all that is needed before rdma_connect(), and post the
 * receives.
 * @conn: connection with an rdma_cm identifier.
 * @ret_step: out: name of the step that was tried last, constant text.
 *
 * On failure, too, what was created stays in @conn, for krc_meta_conn_stop() and
 * krc_meta_conn_end().
 * Context: the work item; may sleep.
 * Return: 0, or a negative errno of the device.
 */
int krc_meta_conn_setup(struct krc_meta_conn *conn, const char **ret_step);

/**
 * krc_meta_conn_stop() - Flush all work requests and destroy the queue pair, if there is one.
 * @conn: connection, after krc_meta_reads_stop().
 *
 * Context: the work item; sleeps for at most KRC_META_DRAIN_MS if the device does not answer.
 */
void krc_meta_conn_stop(struct krc_meta_conn *conn);

/**
 * krc_meta_conn_end() - Destroy all that is the device's, in any state of setup.
 * @conn: connection, after krc_meta_conn_stop() and krc_meta_reads_end(). Tasks may still have
 *	it, and poll its queue.
 *
 * Context: the work item; may sleep.
 */
void krc_meta_conn_end(struct krc_meta_conn *conn);

/**
 * krc_meta_conn_put() - Drop a reference to a connection; the last one frees it.
 * @conn: connection, whose session may be gone, too, on return.
 *
 * Context: may sleep; without meta.lock.
 */
void krc_meta_conn_put(struct krc_meta_conn *conn);

/**
 * krc_meta_conn_fail() - krc_meta_session_fail(), unless the session has another connection by now.
 * @conn: connection, with a reference, or of which a work request completes.
 * @err: negative errno, for krc_meta_info().
 * @fmt: reason, as of printf.
 *
 * Context: any, without meta.lock; not in hard interrupts.
 */
__printf(3, 4) void krc_meta_conn_fail(struct krc_meta_conn *conn, int err, const char *fmt, ...);

/**
 * krc_meta_conn_completed() - Count a work request as completed, or as not posted after all.
 * @conn: connection.
 *
 * Context: any.
 */
void krc_meta_conn_completed(struct krc_meta_conn *conn);

/**
 * krc_meta_conn_send() - Send a message.
 * @conn: connection.
 * @slot: send buffer, below KRC_META_SENDS, which the session has chosen; it is the device's
 *	until krc_meta_session_sent().
 * @msg: message; copied.
 * @bytes: its length, at most KRP_MSG_BYTES_MAX.
 *
 * Locks: meta.lock.
 * Return: 0; an errno of the device: the buffer stays the session's.
 */
int krc_meta_conn_send(struct krc_meta_conn *conn, u32 slot, const void *msg, u32 bytes);

/* ---- meta/session.c ---- */

/**
 * krc_meta_session_new() - Allocate a session, which is not started.
 * @meta: client.
 * @conf: configuration; the server's part is copied.
 * @server: index of the server in conf->servers.
 * @ring: cluster keys, which get a user more; NULL without any.
 *
 * Context: may sleep.
 * Return: the session, with one reference, for krc_meta_session_start() or krc_meta_session_put();
 * or ERR_PTR(-ENOMEM).
 */
struct krc_meta_session *krc_meta_session_new(struct krc_meta *meta,
					      const struct krc_meta_conf *conf, u32 server,
					      struct krc_meta_ring *ring);

/**
 * krc_meta_session_put() - Drop a reference to a session; the last one frees it.
 * @s: session. Before the client drops its reference, the session has ended or was never started,
 *	and its work item neither runs nor is queued.
 *
 * Context: may sleep.
 */
void krc_meta_session_put(struct krc_meta_session *s);

/**
 * krc_meta_session_close() - Do KRP_DO_CLOSE: take the connection down.
 * @s: session, which is CLOSING.
 *
 * Context: the work item, without meta.lock; sleeps for at most KRC_META_DRAIN_MS if the device
 * does not answer.
 */
void krc_meta_session_close(struct krc_meta_session *s);

/**
 * krc_meta_session_run() - Do what is to be done, after something was said to a session.
 * @s: session.
 *
 * What sleeps becomes a duty of the work item, which is queued.
 * Locks: meta.lock.
 */
void krc_meta_session_run(struct krc_meta_session *s);

/**
 * krc_meta_sessions_run() - krc_meta_session_run() for all, after a record has changed.
 * @meta: client, also without any session.
 *
 * Locks: meta.lock.
 */
void krc_meta_sessions_run(struct krc_meta *meta);

/**
 * krc_meta_session_kick() - Have the work item run now.
 * @s: session.
 *
 * Locks: meta.lock.
 */
void krc_meta_session_kick(struct krc_meta_session *s);

/**
 * krc_meta_session_fail() - The connection is of no use: have it taken down.
 * @s: session; one that is down or failed before stays as it is.
 * @err: negative errno, for krc_meta_info().
 * @fmt: reason, as of printf, for an administrator; cut at KRP_REASON_BYTES.
 *
 * Context: any, without meta.lock; not in hard interrupts.
 */
__printf(3, 4) void krc_meta_session_fail(struct krc_meta_session *s, int err, const char *fmt,
					  ...);

/**
 * krc_meta_session_fail_locked() - krc_meta_session_fail() under the lock.
 * @s: session.
 * @err: negative errno.
 * @fmt: reason.
 *
 * Locks: meta.lock.
 */
__printf(3, 4) void krc_meta_session_fail_locked(struct krc_meta_session *s, int err,
						 const char *fmt, ...);

/**
 * krc_meta_conn_step() - A step of attaching begins, which may take a timeout of its own.
 * @conn: connection; nothing happens unless it is its session's present one.
 * @what: what is tried, for the reason if it takes too long; constant text.
 *
 * Context: process, without meta.lock.
 */
void krc_meta_conn_step(struct krc_meta_conn *conn, const char *what);

/**
 * krc_meta_session_sent() - A SEND has completed: its buffer is free again.
 * @s: session.
 * @slot: the buffer, as of krc_meta_conn_send().
 *
 * Locks: meta.lock.
 */
void krc_meta_session_sent(struct krc_meta_session *s, u32 slot);

/**
 * krc_meta_session_connected() - The connection is up: HELLO is next.
 * @s: session.
 * @link: both ends, which the proofs will cover; copied.
 * @nonce: KRP_NONCE_BYTES that were never used before; copied.
 * @key_id: KRP_KEY_ID_BYTES of the first cluster key, copied; NULL without any.
 *
 * Context: the work item, without meta.lock.
 */
void krc_meta_session_connected(struct krc_meta_session *s, const struct krp_link *link,
				const u8 *nonce, const u8 *key_id);

/**
 * krc_meta_session_prove() - Answer to KRP_DO_PROVE.
 * @s: session.
 * @err: 0; -ENOKEY: the key that the server has chosen is not ours; or another errno.
 * @mac: the client's proof; not read if @err.
 *
 * Context: the work item, without meta.lock.
 */
void krc_meta_session_prove(struct krc_meta_session *s, int err, const u8 *mac);

/**
 * krc_meta_session_verify() - Answer to KRP_DO_VERIFY.
 * @s: session.
 * @mac: what the server's proof must be; NULL: it could not be computed.
 *
 * Context: the work item, without meta.lock.
 */
void krc_meta_session_verify(struct krc_meta_session *s, const u8 *mac);

/**
 * krc_meta_session_loaded() - Answer to KRP_DO_LOAD: with the map the session is ready.
 * @conn: connection, with a reference; nothing happens unless it is its session's present one.
 * @err: 0, also if the table is too large to be mapped; or why there is no map.
 *
 * Context: may sleep; without meta.lock.
 */
void krc_meta_session_loaded(struct krc_meta_conn *conn, int err);

/**
 * krc_meta_session_start() - Join the publisher, and attach; not if the device is gone.
 * @s: session, whose index is set and in meta.sessions.
 *
 * Locks: meta.lock.
 */
void krc_meta_session_start(struct krc_meta_session *s);

/**
 * krc_meta_session_leave() - Withdraw everything from the server, publish nothing any more.
 * @s: session.
 *
 * Does not wait: see krc_meta_session_left(). Locks: meta.lock.
 */
void krc_meta_session_leave(struct krc_meta_session *s);

/**
 * krc_meta_session_left() - Whether nothing is waited for after krc_meta_session_leave().
 * @s: session.
 *
 * Locks: meta.lock.
 * Return: true if the server has answered for every record, or is not attached.
 */
bool krc_meta_session_left(const struct krc_meta_session *s);

/**
 * krc_meta_session_end() - Make no connection any more, and close the present one.
 * @s: session.
 *
 * Does not wait: the work item closes it. Locks: meta.lock.
 */
void krc_meta_session_end(struct krc_meta_session *s);

/**
 * krc_meta_message() - Handle a received message.
 * @conn: connection that it came by; ignored unless it is the session's present one.
 * @msg: message; not trusted.
 * @bytes: bytes received; not trusted, either.
 *
 * Context: softirq, or BHs off; without meta.lock.
 */
void krc_meta_message(struct krc_meta_conn *conn, const void *msg, u32 bytes);

/**
 * krc_meta_ask() - Look a record up by message: where the table changes too fast, or is too
 * large, to be READ. Questions that cannot be sent at once are sent by payers in turn.
 * @s: session.
 * @conn: connection, to which the caller has a reference.
 * @q: what is asked, and until when; value is set with KRP_STEP_HIT, else untouched.
 *
 * Context: sleeps, killable; without meta.lock.
 * Return: KRP_STEP_HIT; KRP_STEP_MISS; -ENOTCONN (also if @conn is of before); -ETIMEDOUT: the
 * server has not answered for krc_meta_read_timeout(); -ETIME: the caller's time is over, or for so long
 * it was not the question's turn to be sent; -EINTR (killed).
 */
int krc_meta_ask(struct krc_meta_session *s, struct krc_meta_conn *conn, struct krc_meta_query *q);

/* ---- meta/attach.c: what the work item calls, without locks; each may sleep ---- */

/**
 * krc_meta_attach_begin() - Do KRP_DO_CONNECT: make a connection, and have its address
 * resolved.
 * @s: session; nothing happens if it has ended meanwhile.
 *
 * A failure goes to krc_meta_session_fail(). Context: the work item.
 */
void krc_meta_attach_begin(struct krc_meta_session *s);

/**
 * krc_meta_attach_step() - Go on with what rdma_cm has said.
 * @s: session; nothing happens unless it is connecting.
 * @events: KRC_META_EV_*.
 *
 * A failure goes to krc_meta_session_fail(). Context: the work item.
 */
void krc_meta_attach_step(struct krc_meta_session *s, u32 events);

/**
 * krc_meta_route_header() - Have a connection on InfiniBand carry a global route header (GRH).
 * @ibdev: device.
 * @port: its port.
 * @path: path of the connection; NULL: there is none.
 *
 * Without one, the default inside a subnet, the server would not see our GID: so a path without hops
 * gets one. RoCE always has one. Context: any.
 */
void krc_meta_route_header(const struct ib_device *ibdev, u32 port, struct sa_path_rec *path);

/**
 * krc_meta_attach_prove() - Do KRP_DO_PROVE: compute the client's proof.
 * @s: session.
 *
 * The answer is krc_meta_session_prove(). Context: the work item.
 */
void krc_meta_attach_prove(struct krc_meta_session *s);

/**
 * krc_meta_attach_verify() - Do KRP_DO_VERIFY: compute what the server's proof must be.
 * @s: session, after krc_meta_attach_prove().
 *
 * The answer is krc_meta_session_verify(). Context: the work item.
 */
void krc_meta_attach_verify(struct krc_meta_session *s);

/**
 * krc_meta_attach_load() - Do KRP_DO_LOAD: have root and directory of the table READ.
 * @s: session.
 *
 * The answer is krc_meta_session_loaded(), later. Context: the work item.
 */
void krc_meta_attach_load(struct krc_meta_session *s);

/* ---- meta/record.c ---- */

/**
 * krc_meta_record_find() - Find a record of the client's own GID.
 * @meta: client.
 * @service: its service.
 *
 * Locks: meta.lock.
 * Return: the record, which stays while the lock is held; NULL: there is none.
 */
struct krp_record *krc_meta_record_find(struct krc_meta *meta, u16 service);

/**
 * krc_meta_records_trash() - Free records that no server is told of any more.
 * @meta: client.
 *
 * Locks: meta.lock.
 */
void krc_meta_records_trash(struct krc_meta *meta);

/**
 * krc_meta_records_free() - Free all records.
 * @meta: client that is not used any more, without sessions.
 *
 * Locks: none.
 */
void krc_meta_records_free(struct krc_meta *meta);

/* ---- meta/cq.c ---- */

/**
 * krc_meta_cq_create() - Create a completion queue.
 * @cq: zeroed.
 * @ibdev: device.
 * @entries: completions that it can hold.
 *
 * Context: may sleep.
 * Return: 0, or a negative errno of the device; then krc_meta_cq_destroy() does nothing.
 */
int krc_meta_cq_create(struct krc_meta_cq *cq, struct ib_device *ibdev, int entries);

/**
 * krc_meta_cq_destroy() - Destroy a completion queue, if it was created.
 * @cq: completion queue, whose queue pair is gone. Tasks may still call krc_meta_cq_poll().
 *
 * Context: may sleep.
 */
void krc_meta_cq_destroy(struct krc_meta_cq *cq);

/**
 * krc_meta_cq_poll() - One step of busy-polling; handles some completions, also of others.
 * @cq: completion queue.
 *
 * Context: task that has a reference to the connection; the queue may be destroyed already, and
 * nothing happens; without meta.lock and slots.lock.
 */
void krc_meta_cq_poll(struct krc_meta_cq *cq);

/**
 * krc_meta_cq_expect() - Count a completion for which no task polls, and arm the queue.
 * @cq: completion queue.
 *
 * Context: any but hard interrupts. Locks: that under which krc_meta_cq_expected() is called
 * for it.
 */
void krc_meta_cq_expect(struct krc_meta_cq *cq);

/**
 * krc_meta_cq_expected() - A completion that krc_meta_cq_expect() has counted is there.
 * @cq: completion queue.
 *
 * Context: any.
 */
void krc_meta_cq_expected(struct krc_meta_cq *cq);

#endif /* KRC_META_PRIV_H */
