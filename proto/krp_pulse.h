/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * Whether the process behind a table still lives. Normative.
 *
 * The NIC of a MetaServer whose process hangs goes on answering READs, with a table that
 * nobody writes any more. What it has may be right; what it does not have proves nothing,
 * since publications go to the other servers meanwhile. So a server rewrites its roots at
 * least every KRP_BEAT_MS with the time of its own clock, and a reader that met a miss READs
 * the root if its last look at it is older than KRP_PULSE_MS, or showed that the server was
 * settling, which may have been extended since, or stood still. If the server's clock has
 * fallen behind the reader's since the look before, the server stands still, and its miss
 * counts as little as that of one that is settling. The clocks are never compared, only how
 * far each has come between two looks; a clock that has not moved says nothing about less
 * than KRP_PULSE_MS, so then the look before stays the one to compare with.
 *
 * Locking: none here; the caller's.
 */
#ifndef KRP_PULSE_H
#define KRP_PULSE_H

#include "krp_table.h"

#ifdef __KERNEL__
#include <linux/errno.h>
#else
#include <errno.h>
#endif

#define KRP_BEAT_MS 500 /* a server writes its roots at least so often */
#define KRP_PULSE_MS 1000 /* a look is good for so long; the server may be late by so much */

/**
 * struct krp_pulse - What a reader knows of a server's life.
 * @beat: root.heartbeat at the last look; 0 if the server does not say.
 * @looked_ms: when that was, by a clock of the reader that never goes back.
 * @settling_ms: root.settling_ms at that look; before the first: see krp_pulse_settling().
 * @still: the server stood still before it.
 */
struct krp_pulse {
	__u64 beat;
	__u64 looked_ms;
	__u32 settling_ms;
	__u8 still;
};

/**
 * krp_pulse_start() - The root was READ when the reader attached.
 * @p: state to set up.
 * @beat: root.heartbeat, host order.
 * @now_ms: the reader's clock, not earlier than that READ.
 *
 * Context: any.
 */
static inline void krp_pulse_start(struct krp_pulse *p, __u64 beat, __u64 now_ms)
{
	memset(p, 0, sizeof(*p));
	p->beat = beat;
	p->looked_ms = now_ms;
}

/**
 * krp_pulse_settling() - WELCOME said that the server settles: the first miss needs a look.
 * @p: state that was set up.
 *
 * Context: any.
 */
static inline void krp_pulse_settling(struct krp_pulse *p)
{
	p->settling_ms = 1;
}

/**
 * krp_pulse_due() - Whether a miss needs a look at the root.
 * @p: state.
 * @now_ms: the reader's clock.
 *
 * Context: any.
 * Return: 1 if the root is to be READ and fed, 0 if @p->still is good enough.
 */
static inline int krp_pulse_due(const struct krp_pulse *p, __u64 now_ms)
{
	return p->beat && (p->settling_ms || p->still || now_ms - p->looked_ms >= KRP_PULSE_MS);
}

/**
 * krp_pulse_feed() - Judge the root that a look brought.
 * @p: state.
 * @root: bytes as a READ brought them; never trusted.
 * @incarnation: of the server the reader is attached to, host order.
 * @now_ms: the reader's clock when the READ was posted.
 *
 * Context: any; takes no lock.
 * Return: 0; %-EAGAIN if the root is torn: READ again; %-ESTALE if it is of another incarnation.
 */
static inline int krp_pulse_feed(struct krp_pulse *p, const struct krp_root *root,
				 __u64 incarnation, __u64 now_ms)
{
	__u64 beat = krp_le64_to_cpu(root->heartbeat), passed = now_ms - p->looked_ms;

	if (!krp_root_valid(root))
		return -EAGAIN;
	if (krp_le64_to_cpu(root->incarnation) != incarnation)
		return -ESTALE;
	p->settling_ms = krp_le32_to_cpu(root->settling_ms);
	if (beat == p->beat && passed < KRP_PULSE_MS)
		return 0;
	p->still = beat < p->beat || beat - p->beat + KRP_PULSE_MS <= passed;
	p->beat = beat;
	p->looked_ms = now_ms;
	return 0;
}

#endif /* KRP_PULSE_H */
