/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: which targets of peers have answered lately, and which are unresponsive ("silent").
 *
 * The hardware serves the targets of a channel one at a time, so one that does not answer
 * stalls every flow on that channel. Therefore a target has to prove itself: until it has
 * answered once, and again when it has not answered for KRC_PROVEN_MS, it is asked on an
 * channel set apart (pool/read.c), by one READ, for which all other READs of it wait. If it
 * does not answer that either, it is silent: it is retried on another channel set apart, and
 * only after a back-off, which doubles.
 *
 * A target that refuses what its own directory allows, or what it has announced itself, costs the
 * channel a reset each time, while it answers all else. It may do so KRC_REFUSED_FREE times; from
 * then on it is barred after each refusal: silent for a time that doubles, whatever it answers
 * meanwhile. Once it has refused nothing for KRC_REFUSED_MS all is forgotten.
 *
 * A WRITE or an atomic that a target has not answered when a lease ended costs the channel a reset,
 * too, but says less: a network that is slow for a while delays it as well. The target has to prove
 * itself then, by one READ apart. Only if that happens again within KRC_EXPIRED_MS, though it has
 * answered since, it is silent.
 *
 * The state belongs to the target: GID, DCT number and key, address, and directory, through
 * one port. All services of a node are one target, as are all records of it that programs
 * hold, fresh or stale; a record published wrongly is another target, and does not affect the
 * state of the right one. The state is kept as long as a peer uses it; that of silent targets
 * longer, on a bounded list. A target dropped from the table is unknown, and an unknown target
 * is asked apart.
 *
 * It does not belong to a GID alone, because that may name several targets. A node that restarted
 * is another one, which owes nothing for what its predecessor did not answer; a record published
 * wrongly must not silence the right one; and what one of our ports does not reach, another may.
 * A dead node is found silent once, however many services it has: their records have the value of
 * its port. With several ports it is a target for each of them, and for each port of ours that
 * asks it, and each of these has to be found silent.
 *
 * Locking: krc_silence_lock (bottom halves off) for the table and the users;
 * krc_standing.lock for changes of one target; state, answered, barred and retry_at may be read
 * without.
 */
#ifndef KRC_SILENCE_H
#define KRC_SILENCE_H

#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "hw/provider.h"
#include "pool/stalls.h"

struct krc_rail;
struct krc_read;

#define KRC_PROVEN_MS 1000 /* how long an answer keeps a target proven */
#define KRC_BACKOFF_MIN_MS 100 /* least pause before a silent target is retried */
#define KRC_BACKOFF_MAX_MS 5000
#define KRC_BACKOFF_DOUBLINGS 3 /* at most: pause up to 8 times the wait for the answer */
#define KRC_SILENT_MAX 4096 /* silent or refusing targets remembered without a user */
#define KRC_REFUSED_FREE 4 /* refusals without a consequence */
#define KRC_REFUSED_MS 60000 /* without a refusal, after which they are forgotten */
#define KRC_EXPIRED_MS 1000 /* leases that end unanswered within this time are silence */
#define KRC_BARRED_MS 1000 /* first time that a target is barred, ... */
#define KRC_BARRED_DOUBLINGS 5 /* ... which doubles so often at most */
#define KRC_TARGET_STALLS_MS 1000 /* of stalls are free: see pool/isolation.h */

/**
 * enum krc_standing_state - What is known of a target.
 * @KRC_STANDING_NEW: nothing, or no answer lately.
 * @KRC_STANDING_PROVEN: it has answered lately.
 * @KRC_STANDING_SILENT: it did not answer when last asked, or is barred.
 */
enum krc_standing_state {
	KRC_STANDING_NEW,
	KRC_STANDING_PROVEN,
	KRC_STANDING_SILENT,
};

/**
 * struct krc_standing_key - A target.
 * @rail: port through which it is reached; only compared, never followed.
 * @address: its address vector.
 * @mrdir_addr: remote address of its memory directory.
 * @mrdir_rkey: remote key of that.
 * @pad: zero, since a key is compared as bytes.
 */
struct krc_standing_key {
	const struct krc_rail *rail;
	struct krc_hw_address address;
	u64 mrdir_addr;
	u32 mrdir_rkey;
	u32 pad;
};

/**
 * struct krc_standing - What is known of a target; counted.
 * @node: entry in the table.
 * @idle: entry in the list of targets remembered without users, the longest idle first.
 * @users: reference count.
 * @orphan: its port is gone and it has left the table: its last user frees it.
 * @key: the target.
 * @lock: protects changes of what follows, up to @stalls.
 * @state: enum krc_standing_state.
 * @barred: it has refused too often, and what it answers before @retry_at changes nothing.
 * @refusals: refusals until @refused, at most KRC_REFUSED_FREE + KRC_BARRED_DOUBLINGS + 1.
 * @failures: consecutive READs of its directory that failed, at most KRC_BACKOFF_DOUBLINGS.
 * @answered: jiffies of its last answer.
 * @retry_at: jiffies before which it is not asked again, if it is silent.
 * @refused: jiffies of its last refusal, if there was one.
 * @expired: jiffies of the last lease that ended without an answer; in the past, if there was none.
 * @stalls: how long it has held up what others share.
 * @probe: the READ by which it is being asked, or NULL; owned by pool/read.c, under its lock.
 * @waiting: READs that wait for @probe; likewise.
 */
struct krc_standing {
	struct hlist_node node;
	struct list_head idle;
	u32 users;
	bool orphan;
	struct krc_standing_key key;
	spinlock_t lock;
	u8 state;
	bool barred;
	u8 refusals;
	u8 failures;
	unsigned long answered;
	unsigned long retry_at;
	unsigned long refused;
	unsigned long expired;
	struct krc_stalls stalls;
	struct krc_read *probe;
	struct list_head waiting;
};

/**
 * krc_standing_get() - Find or create the state of a target.
 * @rail: port.
 * @address: its address vector.
 * @mrdir_addr: remote address of its memory directory.
 * @mrdir_rkey: remote key of that.
 *
 * Context: may sleep.
 * Return: the state with one more reference, for krc_standing_put(); or NULL: no memory.
 */
struct krc_standing *krc_standing_get(const struct krc_rail *rail,
				      const struct krc_hw_address *address, u64 mrdir_addr,
				      u32 mrdir_rkey);

/**
 * krc_standing_hold() - Take one more reference.
 * @standing: target, of which the caller has a reference.
 *
 * Context: any but hard interrupts.
 */
void krc_standing_hold(struct krc_standing *standing);

/**
 * krc_standing_put() - Drop a reference.
 * @standing: target.
 *
 * With the last one a target is freed, unless it is silent, has refused something within
 * KRC_REFUSED_MS, not answered within KRC_EXPIRED_MS when a lease ended, or has stalls to make good:
 * then it is remembered, and the longest idle one of more than KRC_SILENT_MAX is freed.
 * Context: any but hard interrupts.
 */
void krc_standing_put(struct krc_standing *standing);

/**
 * krc_standing_now() - Get the state as it counts now.
 * @standing: target, counted.
 *
 * Context: any; no lock needed.
 * Return: krc_standing.state, but KRC_STANDING_NEW if the last answer is older than KRC_PROVEN_MS.
 */
static inline enum krc_standing_state krc_standing_now(const struct krc_standing *standing)
{
	enum krc_standing_state state = READ_ONCE(standing->state);

	if (state == KRC_STANDING_PROVEN &&
	    time_after(jiffies, READ_ONCE(standing->answered) + msecs_to_jiffies(KRC_PROVEN_MS)))
		return KRC_STANDING_NEW;
	return state;
}

/**
 * krc_standing_due() - Check whether a target may be asked now.
 * @standing: target, counted.
 *
 * Context: any but hard interrupts.
 * Return: true unless it is silent and its pause is not over.
 */
bool krc_standing_due(struct krc_standing *standing);

/**
 * krc_standing_barred() - Check whether a target is barred, because it refuses too much.
 * @standing: target, counted.
 *
 * Context: any; no lock needed.
 * Return: true until its time is over.
 */
static inline bool krc_standing_barred(const struct krc_standing *standing)
{
	return READ_ONCE(standing->barred) && time_before(jiffies, READ_ONCE(standing->retry_at));
}

/**
 * krc_standing_prove() - Note the answer of a target in full: it is proven, and its failures are
 * forgotten; unless it is barred.
 * @standing: target, counted.
 *
 * Context: any but hard interrupts.
 */
void krc_standing_prove(struct krc_standing *standing);

/**
 * krc_standing_answered() - Note that a target has answered.
 * @standing: target, counted.
 *
 * For the data path: takes no lock and writes nothing if it is proven and has answered in this
 * jiffy. Context: any but hard interrupts.
 */
static inline void krc_standing_answered(struct krc_standing *standing)
{
	unsigned long now = jiffies;

	if (READ_ONCE(standing->state) != KRC_STANDING_PROVEN)
		krc_standing_prove(standing);
	else if (READ_ONCE(standing->answered) != now)
		WRITE_ONCE(standing->answered, now);
}

/**
 * krc_standing_failed() - A READ of its directory failed: it is silent.
 * @standing: target.
 * @took: jiffies until the failure; the pause before the next try grows with it.
 *
 * Context: any but hard interrupts.
 */
void krc_standing_failed(struct krc_standing *standing, unsigned long took);

/**
 * krc_standing_suspect() - Another request to it was not answered: it is silent.
 * @standing: target; if it is silent already, nothing changes.
 *
 * Context: any but hard interrupts.
 */
void krc_standing_suspect(struct krc_standing *standing);

/**
 * krc_standing_expired() - A WRITE or an atomic to it was not answered when a lease ended: it has to
 * prove itself.
 * @standing: target; if it is not proven, nothing changes.
 *
 * One of which that is known from the last KRC_EXPIRED_MS is silent.
 * Context: any but hard interrupts.
 */
void krc_standing_expired(struct krc_standing *standing);

/**
 * krc_standing_stalled() - A request to it has stalled a channel that others share, or makes it slow.
 * @standing: target.
 * @since: jiffies since when nothing else could complete.
 * @beyond_ms: so much counts at most beyond the burst that is free: see krc_stalls_charge().
 *
 * Says nothing of whether it answers. Context: any but hard interrupts.
 */
void krc_standing_stalled(struct krc_standing *standing, unsigned long since, u32 beyond_ms);

/**
 * krc_standing_refused() - It has refused a request that its directory allows, or that it has
 * announced: an answer, but KRC_REFUSED_FREE times only.
 * @standing: target.
 *
 * One whose refusals are more is barred, for KRC_BARRED_MS at first.
 * Context: any but hard interrupts.
 * Return: true if it is barred now.
 */
bool krc_standing_refused(struct krc_standing *standing);

/**
 * krc_silence_drop() - Forget the targets of a port that is gone.
 * @rail: port, or NULL for all, when no user is left.
 *
 * Context: any but hard interrupts.
 */
void krc_silence_drop(const struct krc_rail *rail);

/**
 * krc_silence_idle() - Count the targets that are remembered without a user, for tests.
 *
 * Context: any.
 * Return: their number, 0 to KRC_SILENT_MAX.
 */
u32 krc_silence_idle(void);

#endif /* KRC_SILENCE_H */
