/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: which targets of this node's peers have answered lately, and which have not.
 *
 * The hardware serves the targets of an initiator one after the other, so one that does not
 * answer makes all wait that share the initiator. Therefore a target has to prove itself:
 * until it has answered once, and again when it has not answered for KRC_PROVEN_MS, it is
 * asked apart from the others (pool/read.c), by one READ, for which all wait that want
 * something of it. If it does not answer that either, it is silent: it is asked elsewhere
 * again, and only after a while, which doubles.
 *
 * What is known belongs to the target: GID, DCT number and key, address, and directory,
 * through one port. All services of a node are one target, as are all records of it that
 * programs come by, fresh or not; one that was published wrongly is another, and does not
 * give the right one a bad name. It is kept as long as a peer uses it; silence longer than
 * that, in a table of its own with a bound of its own. Who drops out of the table is not
 * known, and what is not known is asked apart.
 *
 * Locking: krc_silence_lock (bottom halves off) for the table and the users;
 * krc_standing.lock for the changes of one target; state and answered may be read without.
 */
#ifndef KRC_SILENCE_H
#define KRC_SILENCE_H

#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "hw/provider.h"

struct krc_rail;
struct krc_read;

#define KRC_PROVEN_MS 1000 /* so long an answer is believed in */
#define KRC_BACKOFF_MIN_MS 100 /* the first pause after silence */
#define KRC_BACKOFF_MAX_MS 5000
#define KRC_BACKOFF_DOUBLINGS 3 /* of the time it was waited for: 8 times as long a pause */
#define KRC_SILENT_MAX 4096 /* silent targets that no peer uses any more */

/**
 * enum krc_standing_state - What is known of a target.
 * @KRC_STANDING_NEW: nothing, or nothing of late.
 * @KRC_STANDING_PROVEN: it has answered.
 * @KRC_STANDING_SILENT: it has not, when it was last asked.
 */
enum krc_standing_state {
	KRC_STANDING_NEW,
	KRC_STANDING_PROVEN,
	KRC_STANDING_SILENT,
};

/**
 * struct krc_standing_key - A target.
 * @rail: through which it is reached; never followed.
 * @address: its address vector.
 * @mrdir_addr: its directory.
 * @mrdir_rkey: key of that.
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
 * struct krc_standing - What is known of a target.
 * @node: in the table.
 * @idle: among the silent ones without users, the longest idle first.
 * @users: who uses it.
 * @orphan: its port is gone: not in the table any more.
 * @key: the target.
 * @lock: for changes of what follows.
 * @state: enum krc_standing_state.
 * @failures: times that it was asked in vain, one after the other.
 * @answered: jiffies of its last answer.
 * @retry_at: jiffies before which it is not asked again, if it is silent.
 * @probe: the READ by which it is asked, or NULL; pool/read.c's, under its lock.
 * @waiting: READs that wait for that; pool/read.c's, too.
 */
struct krc_standing {
	struct hlist_node node;
	struct list_head idle;
	u32 users;
	bool orphan;
	struct krc_standing_key key;
	spinlock_t lock;
	u8 state;
	u8 failures;
	unsigned long answered;
	unsigned long retry_at;
	struct krc_read *probe;
	struct list_head waiting;
};

/**
 * krc_standing_get() - What is known of a target.
 * @rail: port.
 * @address: its address vector.
 * @mrdir_addr: its directory.
 * @mrdir_rkey: key of that.
 *
 * Context: may sleep.
 * Return: it, counted, or NULL: no memory.
 */
struct krc_standing *krc_standing_get(const struct krc_rail *rail,
				      const struct krc_hw_address *address, u64 mrdir_addr,
				      u32 mrdir_rkey);

/* One more user of what has one already, and one less. Context: any but hard interrupts. */
void krc_standing_hold(struct krc_standing *standing);
void krc_standing_put(struct krc_standing *standing);

/* How it stands now: proven only for a while. Context: any. */
static inline enum krc_standing_state krc_standing_now(const struct krc_standing *standing)
{
	enum krc_standing_state state = READ_ONCE(standing->state);

	if (state == KRC_STANDING_PROVEN &&
	    time_after(jiffies, READ_ONCE(standing->answered) + msecs_to_jiffies(KRC_PROVEN_MS)))
		return KRC_STANDING_NEW;
	return state;
}

/* Whether it is time to ask a silent one again. Context: any but hard interrupts. */
bool krc_standing_due(struct krc_standing *standing);

/* krc_standing_answered() for one that was not proven. */
void krc_standing_prove(struct krc_standing *standing);

/* It has answered something, if only by a refusal. For the data path. Same context. */
static inline void krc_standing_answered(struct krc_standing *standing)
{
	unsigned long now = jiffies;

	if (READ_ONCE(standing->state) != KRC_STANDING_PROVEN)
		krc_standing_prove(standing);
	else if (READ_ONCE(standing->answered) != now)
		WRITE_ONCE(standing->answered, now);
}

/**
 * krc_standing_failed() - A READ of its directory was in vain.
 * @standing: target.
 * @took: jiffies that it took to find out; the longer, the longer it is left alone.
 *
 * Context: any but hard interrupts.
 */
void krc_standing_failed(struct krc_standing *standing, unsigned long took);

/**
 * krc_standing_suspect() - Another request to it was in vain.
 * @standing: target; if it is silent already, nothing changes.
 *
 * Context: any but hard interrupts.
 */
void krc_standing_suspect(struct krc_standing *standing);

/**
 * krc_silence_drop() - Forget the targets of a port that is gone.
 * @rail: port, or NULL: all, when nobody uses one any more.
 *
 * Context: any but hard interrupts.
 */
void krc_silence_drop(const struct krc_rail *rail);

/* Silent targets that are remembered without a user, for tests. */
u32 krc_silence_idle(void);

#endif /* KRC_SILENCE_H */
