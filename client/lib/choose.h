/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Which server to ask first, and how its failures are counted: pure functions, so that they
 * can be tested alone.
 */
#ifndef KRL_CHOOSE_H
#define KRL_CHOOSE_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct krl_candidate - The properties of a server by which it is chosen.
 * @usable: attached, and not yet tried in this look-up.
 * @doubtful: records may be missing: it restarted a while ago, or its process hangs.
 * @priority: lower is better.
 * @rtt_ns: smoothed time of a READ; 0: unknown, sorts after all known ones.
 */
struct krl_candidate {
	bool usable;
	bool doubtful;
	uint32_t priority;
	uint64_t rtt_ns;
};

/**
 * krl_better() - Whether a candidate is to be asked before another.
 * @a: usable candidate.
 * @b: usable candidate.
 *
 * Doubtful ones come last, since their misses prove less.
 * Then priority counts, then READ time.
 *
 * Return: true if @a is better than @b; false if they are equal.
 */
static inline bool krl_better(const struct krl_candidate *a, const struct krl_candidate *b)
{
	if (a->doubtful != b->doubtful)
		return b->doubtful;
	if (a->priority != b->priority)
		return a->priority < b->priority;
	return a->rtt_ns && (!b->rtt_ns || a->rtt_ns < b->rtt_ns);
}

/**
 * krl_smooth() - Add a new sample to a smoothed time.
 * @old_ns: smoothed so far, 0 if this is the first.
 * @sample_ns: new.
 *
 * Return: new smoothed time, not 0: 7/8 old and 1/8 new, as TCP does it.
 */
static inline uint64_t krl_smooth(uint64_t old_ns, uint64_t sample_ns)
{
	uint64_t ns = old_ns ? old_ns - old_ns / 8 + sample_ns / 8 : sample_ns;

	return ns ? ns : 1;
}

/**
 * krl_fails_at_end() - Count of failures in a row when an attachment ends.
 * @fails: the count before the server was attached.
 * @up_ns: how long it was attached; 0: it was not.
 * @most_ms: the longest pause between two attempts.
 *
 * A short attachment does not reset the count. So a client that is disconnected each time as
 * soon as it is attached, as two contexts with the same identity are, backs off.
 *
 * Return: 0 if it was attached for at least @most_ms, else @fails.
 */
static inline unsigned int krl_fails_at_end(unsigned int fails, uint64_t up_ns, uint32_t most_ms)
{
	return up_ns >= most_ms * 1000000ULL ? 0 : fails;
}

#endif /* KRL_CHOOSE_H */
