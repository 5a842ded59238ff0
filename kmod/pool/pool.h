/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the channels of a port, and how requests of many queues share them: capacity, fairness,
 * dispatch of completions, recovery and replay.
 *
 * A channel is a send queue with its slots, its turn and its recovery, of one of the kinds of
 * enum krc_channel_kind. A flow is one queue's (or the module's own) stream of requests. While it
 * has requests outstanding it stays on one channel, which keeps their order; when it has none it
 * may move to a less loaded one. Requests that do not fit into the channel wait in the
 * flow, and the channel serves the payers of its flows in turn, by bytes, and of each payer one
 * flow after the other (deficit round robin), so that many queues are no larger share than one.
 *
 * Faults: the first request of a channel that fails completes with its own error, and the
 * later requests of its flow with -ECANCELED. The channel is then reset in the background,
 * and the flushed requests of the other flows are posted again in order: READs always; WRITEs
 * and atomics if they can't have been executed (their target is not the failed one, or the
 * target refused a request that was no READ, and so executed nothing behind it), else they
 * complete with -EREMCHG: outcome unknown. The same holds for all requests to a target whose way
 * was given up under them (KRC_FAULT_LOST), with none that fails by that itself. A WRITE that its owner declared idempotent is
 * posted again all the same, and so is a SEND, since its receiver knows doubles.
 * However a request ends: a WRITE or an atomic completes with -ECANCELED, or with -ENODEV or
 * -EIO without a failure of its own, only if it has not been executed, not even in part.
 *
 * A channel serves one target at a time, so an unresponsive peer stalls every flow on it
 * until the hardware's retries run out. That price is paid once per peer: when a request to it
 * times out, the requests to it that were outstanding since before the stall fail with it, as
 * they would on queue pairs of their own. And nothing is posted to a target before it has
 * answered a READ of its directory by the module (krc_pool_read()): a target that has not
 * answered lately is asked on a channel set apart, where only such READs wait. What stalls channels
 * again and again all the same, or makes them slow, is isolated: see pool/isolation.h.
 *
 * A lease bounds the time in the hardware: a leased request is not posted once its lease is
 * over, nor behind a request that the hardware has been working on for long. If it is still
 * in the hardware some time after its lease, the channel is reset, and requests that were
 * not begun are posted after their owner has renewed the lease. So the owner of the memory
 * can tell when no more accesses can come. The target that the hardware was at is to blame, if it
 * had not answered for some time: a WRITE or an atomic to it says so (KRC_FAULT_EXPIRED), so that the
 * target has to prove itself; READs and what may be done twice end as if it had not answered when that
 * happens repeatedly (KRC_FAULT_TIMEOUT). The time of a SEND in the hardware is bounded from the
 * moment it is posted, each time anew.
 *
 * Locking: krc_flow.lock, then krc_channel.lock, both with bottom halves off. done() is
 * called without them; at any time at most one CPU calls it for the flows of a channel.
 */
#ifndef KRC_POOL_H
#define KRC_POOL_H

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/types.h>

struct krc_pool;
struct krc_rail;

/**
 * enum krc_channel_kind - What a channel sends to.
 * @KRC_CHANNEL_SHARED: any target, for all flows; a DC initiator.
 * @KRC_CHANNEL_PROBATION: any target, one READ at a time, of a target that has not proved itself;
 *	a DC initiator set apart (pool/read.c).
 * @KRC_CHANNEL_MESSAGE: any target, for SENDs of messages (pool/packets.h) and nothing else; a DC
 *	initiator. A receiver without buffers delays other messages, but no READ, WRITE or atomic.
 *	A pool has none before krc_pool_enable_messages().
 * @KRC_CHANNEL_ISOLATED: any target, for flows of KRC_CHANNEL_SHARED whose target or payer stalls
 *	those too often (pool/isolation.h); a DC initiator.
 * @KRC_CHANNEL_KINDS: how many there are.
 *
 * A kind is a row of krc_channel_kinds (pool/channel.c), and is chosen by krc_flow.kind.
 */
enum krc_channel_kind {
	KRC_CHANNEL_SHARED,
	KRC_CHANNEL_PROBATION,
	KRC_CHANNEL_MESSAGE,
	KRC_CHANNEL_ISOLATED,
	KRC_CHANNEL_KINDS,
};

/**
 * struct krc_pool_watch - A callback for the stop of the pool.
 * @list: the pool's.
 * @stopped: called once, by krc_pool_stop(), after all requests have completed. May sleep.
 * @gone: completed after @stopped. A watcher that can't enter the port any more waits for it
 *	instead of calling krc_pool_unwatch().
 */
struct krc_pool_watch {
	struct list_head list;
	void (*stopped)(struct krc_pool_watch *watch);
	struct completion gone;
};

/**
 * krc_pool_create() - Make the channels of a port.
 * @rail: port they send through; outlives the pool.
 * @initiators: how many are shared; those of probation, for krc_pool_read() of targets that have
 *	not answered lately, and of the isolated are made in addition.
 * @depth: requests of each.
 *
 * Context: may sleep.
 * Return: the pool or ERR_PTR.
 */
struct krc_pool *krc_pool_create(struct krc_rail *rail, u32 initiators, u32 depth);

/**
 * krc_pool_enable_messages() - Make channels of KRC_CHANNEL_MESSAGE, in addition to those there are.
 * @pool: pool.
 * @channels: how many, from 1.
 *
 * Before the first flow of that kind submits. Context: may sleep. Inside krc_rail_enter(), unless
 * the port is being made.
 * Return: 0, -EINVAL (@channels), -ENODEV (the pool is stopped), or the error of the first one that
 * could not be made; those before it stay.
 */
int krc_pool_enable_messages(struct krc_pool *pool, u32 channels);

/**
 * krc_pool_stop() - The device goes away: complete all requests with -ENODEV, refuse new ones,
 * call all watches.
 * @pool: pool.
 *
 * Context: may sleep. May be called twice.
 */
void krc_pool_stop(struct krc_pool *pool);

/**
 * krc_pool_destroy() - Free a pool.
 * @pool: pool, stopped; no flow uses it any more and no READ is outstanding.
 *
 * Context: may sleep.
 */
void krc_pool_destroy(struct krc_pool *pool);

/**
 * krc_pool_watch() - Register a callback for the stop of the pool.
 * @pool: pool.
 * @watch: with stopped set.
 *
 * Context: may sleep. Inside krc_rail_enter().
 * Return: 0, or -ENODEV: the pool is stopped already.
 */
int krc_pool_watch(struct krc_pool *pool, struct krc_pool_watch *watch);

/**
 * krc_pool_unwatch() - Undo krc_pool_watch().
 * @pool: pool.
 * @watch: as given there; it has been called, or never will be.
 *
 * Context: may sleep. Inside krc_rail_enter().
 */
void krc_pool_unwatch(struct krc_pool *pool, struct krc_pool_watch *watch);

/**
 * krc_pool_poll_begin() - The caller busy-polls a channel from now on: meanwhile its CQ is
 * not armed, unless the kernel is preemptible.
 * @pool: pool.
 * @index: channel; if it has been removed, another is polled.
 *
 * Context: task that does not sleep until it has called krc_pool_poll_end(). Inside
 * krc_rail_enter() for all of that.
 * Return: index of the channel, which is not removed before krc_pool_poll_end().
 */
u32 krc_pool_poll_begin(struct krc_pool *pool, u32 index);

/**
 * krc_pool_poll_end() - The caller stops busy-polling.
 * @pool: pool.
 * @index: channel.
 * @back: the caller does not block now, and may poll again soon: arming is deferred by
 *	krc_spin_linger_ns(), with a timer in place of the interrupt.
 *
 * Context: task. Inside krc_rail_enter().
 */
void krc_pool_poll_end(struct krc_pool *pool, u32 index, bool back);

/**
 * krc_pool_poll() - Do what an interrupt of a channel would do.
 * @pool: pool.
 * @index: channel.
 *
 * For busy-polling callers. Does nothing if another CPU holds the channel's lock, or there is no
 * such channel.
 * Context: task. Inside krc_rail_enter().
 */
void krc_pool_poll(struct krc_pool *pool, u32 index);

/**
 * krc_pool_poll_nearby() - krc_pool_poll() of a channel, and of those that this CPU submits
 * to and no other task polls or dispatches.
 * @pool: pool.
 * @index: channel.
 *
 * Also defers the arming of those others, as krc_pool_poll_end() with @back does.
 * Context: as krc_pool_poll().
 */
void krc_pool_poll_nearby(struct krc_pool *pool, u32 index);

/**
 * krc_pool_poll_until() - krc_pool_poll_nearby() by a task that counts as a poller, and
 * krc_pool_poll_end() with @back as soon as it has what it wants.
 * @pool: pool.
 * @index: channel.
 * @told: what some done() counts up, with release.
 * @until: the caller wants it to get so far.
 *
 * Saves what krc_pool_poll_end() by itself takes: to lock the channel once more.
 * Context: as krc_pool_poll_end().
 * Return: true: it is so far, and the caller polls no more.
 */
bool krc_pool_poll_until(struct krc_pool *pool, u32 index, const u64 *told, u64 until);

/**
 * struct krc_pool_stats - Counters since creation.
 * @initiators: shared channels.
 * @depth: segments that each holds at once.
 * @posted: segments posted to the hardware, replays included.
 * @completed: requests completed to flows.
 * @faults: requests that failed by themselves.
 * @recoveries: channels reset.
 * @replayed: requests posted again.
 * @unknown: WRITEs and atomics completed with -EREMCHG.
 * @timeouts: of @recoveries, those because a target did not answer.
 * @refused_reads: those because a target refused a READ, after which it may have gone on.
 * @expired: those because a leased request was in the hardware for too long.
 * @busy: those because a target had no buffer for a SEND.
 * @strays: unexpected completions, of no posted segment.
 * @target_changes: segments for another target than the one before on the same channel, since it
 *	was made or reset last: what a DC initiator pays a disconnect and a connect for.
 * @isolated: times that a request stalled a channel until it was reset, and its target or its payer is
 *	isolated for that and what was before; and that one of them came to be for being slow.
 * @dead: channels that can't be reset now, including those set apart.
 * @outstanding: segments in the hardware now.
 */
struct krc_pool_stats {
	u32 initiators;
	u32 depth;
	u64 posted;
	u64 completed;
	u64 faults;
	u64 recoveries;
	u64 replayed;
	u64 unknown;
	u64 timeouts;
	u64 refused_reads;
	u64 expired;
	u64 busy;
	u64 strays;
	u64 target_changes;
	u64 isolated;
	u64 dead;
	u64 outstanding;
};

/**
 * krc_pool_stats() - Sum up the counters of all channels, those of removed ones included.
 * @pool: pool.
 * @ret_stats: out: counters; of different moments for different channels.
 *
 * Context: any but hard interrupts. Inside krc_rail_enter().
 */
void krc_pool_stats(struct krc_pool *pool, struct krc_pool_stats *ret_stats);

/**
 * krc_pool_on_completion() - Upcall of the provider: the CQ of a send queue has completions.
 * @initiator_owner: the channel, as given to initiator_create().
 *
 * Schedules the softirq that polls it. Context: any, also hard interrupt.
 */
void krc_pool_on_completion(void *initiator_owner);

/**
 * krc_pool_on_fatal() - Upcall of the provider: a send queue is broken and flushes nothing.
 * @initiator_owner: the channel, as given to initiator_create().
 *
 * Notes it in one bit and schedules the softirq, which resets the channel; if that softirq is just
 * ending, the watchdog does, a second later at most. Context: any, also hard interrupt.
 */
void krc_pool_on_fatal(void *initiator_owner);

/**
 * krc_pool_payer() - Upcall of the provider, within post(): on whose account the request is.
 * @initiator_owner: the channel, as given to initiator_create(); its lock is held.
 *
 * Context: as post().
 * Return: krc_flow.bill of its flow, or krc_flow.payer; only to be compared.
 */
const void *krc_pool_payer(void *initiator_owner);

#endif /* KRC_POOL_H */
