/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: turns at something that few tasks may do at once, given out by payers: a payer with a
 * thousand tasks that wait delays another one by its tasks that are at it, not by those that wait.
 * Within a payer, the first to come is the first served.
 * Idea: fair queueing by round robin (Nagle, RFC 970), with payers for hosts.
 *
 * struct krc_line is the order alone, for an owner that has a lock and what is to be had already;
 * struct krc_turns is the order with a number of turns.
 *
 * Locking: a line has none of its own. krc_turns.lock is a spinlock for process context; nothing
 * is taken inside it but the lock of a completion.
 */
#ifndef KRC_TURNS_H
#define KRC_TURNS_H

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

/**
 * struct krc_line - Tasks that wait, by payers. All of it is under the owner's lock.
 * @waiting: how many wait.
 * @heads: of each payer with such tasks the first, in the order in which they are served.
 */
struct krc_line {
	u32 waiting;
	struct list_head heads;
};

/**
 * struct krc_line_waiter - A task that waits in a line; on its stack.
 * @list: in krc_line.heads, or in @behind of its payer's first.
 * @behind: if it is the first: the other tasks of the payer, in the order they came.
 * @payer: on whose account; only compared. NULL is one like others.
 * @given: completed by the owner, under its lock, for a waiter that krc_line_next() returned.
 */
struct krc_line_waiter {
	struct list_head list;
	struct list_head behind;
	const void *payer;
	struct completion given;
};

/**
 * krc_line_init() - Initialise a line.
 * @line: line, which nobody uses yet.
 *
 * Context: any.
 */
void krc_line_init(struct krc_line *line);

/**
 * krc_line_add() - Get in line.
 * @line: line.
 * @waiter: waiter; set up here.
 * @payer: see struct krc_line_waiter; valid as long as it waits.
 *
 * Context: the owner's lock held.
 */
void krc_line_add(struct krc_line *line, struct krc_line_waiter *waiter, const void *payer);

/**
 * krc_line_leave() - Stop waiting, unless it is too late.
 * @line: line.
 * @waiter: waiter that was added.
 *
 * The next one of its payer has its place.
 * Context: the owner's lock held.
 * Return: true: it is in no line any more; false: it has been given what it waited for.
 */
bool krc_line_leave(struct krc_line *line, struct krc_line_waiter *waiter);

/**
 * krc_line_next() - Take the waiter whose turn it is out of the line.
 * @line: line.
 *
 * The next one of its payer comes behind the other payers.
 * Context: the owner's lock held, until @given of the waiter has been completed.
 * Return: the waiter; NULL: nobody waits.
 */
struct krc_line_waiter *krc_line_next(struct krc_line *line);

/**
 * struct krc_turns - Turns that are free, and those that wait for one.
 * @lock: for all of it.
 * @free: turns that nobody has; 0 while somebody waits.
 * @line: tasks that wait.
 */
struct krc_turns {
	spinlock_t lock;
	u32 free;
	struct krc_line line;
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
