/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How long a server that has begun to serve settles: until then publishers may still be
 * coming back, and readers are told that a miss proves nothing. Pure: the caller has the clock.
 *
 * The time that publishers need does not depend on the server but on the pause between their
 * attempts, and on how fast they can all be attached. So it is a setting, and it grows as long
 * as publishers attach, up to MS_SETTLE_MOST times.
 */
#ifndef MS_SETTLE_H
#define MS_SETTLE_H

#include <stdint.h>

#define MS_SETTLE_MOST 4 /* so that a site where publishers attach all the time settles, too */

/**
 * struct ms_settle - One settling.
 * @until_ms: when it is over.
 * @last_ms: no later than this.
 * @quiet_ms: time without a publisher attaching that is needed before the end.
 */
struct ms_settle {
	uint64_t until_ms;
	uint64_t last_ms;
	uint32_t quiet_ms;
};

/**
 * ms_settle_begin() - Serving begins.
 * @s: set up.
 * @now_ms: the clock.
 * @settle_ms: for how long if no publisher comes late.
 * @quiet_ms: pause between attempts of a publisher to attach.
 */
static inline void ms_settle_begin(struct ms_settle *s, uint64_t now_ms, uint32_t settle_ms,
				   uint32_t quiet_ms)
{
	s->until_ms = now_ms + settle_ms;
	s->last_ms = now_ms + (uint64_t)MS_SETTLE_MOST * settle_ms;
	s->quiet_ms = quiet_ms;
}

/** ms_settle_came() - A publisher has attached (again). @s: settling. @now_ms: the clock. */
static inline void ms_settle_came(struct ms_settle *s, uint64_t now_ms)
{
	uint64_t until_ms = now_ms + s->quiet_ms;

	if (now_ms >= s->until_ms || until_ms <= s->until_ms)
		return; /* it is over, or long enough */
	s->until_ms = until_ms < s->last_ms ? until_ms : s->last_ms;
}

#endif /* MS_SETTLE_H */
