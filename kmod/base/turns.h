/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: turns at something that few tasks may do at once, given out by payers: a payer with a
 * thousand tasks that wait delays another one by its tasks that are at it, not by those that wait.
 * Within a payer, the first to come is the first served.
 * Idea: fair queueing by round robin (Nagle, RFC 970), with payers for hosts.
 *
 * Locking: krc_turns.lock, a spinlock for process context; nothing is taken inside it but the
 * lock of a completion.
 */
#ifndef KRC_TURNS_H
#define KRC_TURNS_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

/**
 * struct krc_turns - Turns that are free, and those that wait for one.
 * @lock: for all of it.
 * @free: turns that nobody has; 0 while somebody waits.
 * @waiting: tasks that wait.
 * @heads: of each payer with such tasks the first, in the order in which they are served.
 */
struct krc_turns {
	spinlock_t lock;
	u32 free;
	u32 waiting;
	struct list_head heads;
};

/**
 * krc_turns_init() - Initialise turns.
 * @turns: turns.
 * @nr: how many there are.
 *
 * Context: any; nobody uses @turns yet.
 */
void krc_turns_init(struct krc_turns *turns, u32 nr);

/**
 * krc_turn_begin() - Wait for a turn.
 * @turns: turns.
 * @payer: on whose account; only compared, and valid as long as the call. NULL is one like others.
 * @killable: give up when the task is killed.
 *
 * Context: may sleep; of one task no more than one turn at a time.
 * Return: 0: the task has a turn, for krc_turn_end(); -EINTR: it was killed, and has none.
 */
int krc_turn_begin(struct krc_turns *turns, const void *payer, bool killable);

/**
 * krc_turn_end() - Give a turn back, or to the next task.
 * @turns: turns.
 *
 * Context: process; does not sleep.
 */
void krc_turn_end(struct krc_turns *turns);

#endif /* KRC_TURNS_H */
