/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: turns at something that few tasks may do at once, given out by payers: a payer with a
 * thousand tasks that wait delays another one by its tasks that are at it, not by those that wait.
 * Within a payer, the first to come is the first served.
 * Idea: fair queueing by round robin (Nagle, RFC 970), with payers for hosts.
 *
 * struct krc_line is the order alone, for an owner that has a lock and what is to be had already;
 * struct krc_turns is the order with a number of turns. What is done in a turn is done by a work
 * item: a task may not run for long (SCHED_IDLE, a throttled cgroup), and would have the turn all
 * the while.
 *
 * Locking: a line has none of its own. krc_turns.lock is a spinlock for process context; nothing
 * is taken inside it but the lock of a completion, and those of the workqueue.
 */
#ifndef KRC_TURNS_H
#define KRC_TURNS_H

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>

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
 * krc_line_take() - Take the first waiter of a payer out of the line.
 * @line: line.
 * @head: waiter in its heads.
 *
 * The next one of its payer comes behind the other payers.
 * Context: the owner's lock held, until @given of the waiter has been completed.
 */
void krc_line_take(struct krc_line *line, struct krc_line_waiter *head);

/**
 * struct krc_turns - Turns that are free, what is done in the others, and what waits for one.
 * @wq: runs what is done in them.
 * @lock: for all below.
 * @nr: turns.
 * @free: turns that nobody has.
 * @running: of what is done in the others, struct krc_turn.running.
 * @line: what waits: while a turn is free, only that of a payer that has as many as it may.
 */
struct krc_turns {
	struct workqueue_struct *wq;
	spinlock_t lock;
	u32 nr;
	u32 free;
	struct list_head running;
	struct krc_line line;
};

/**
 * struct krc_turn - What is to be done in a turn; on the stack of the task that waits for it, or in
 * memory of what is done, for which no task waits.
 * @place: its place in the line; given with the turn.
 * @turns: where.
 * @run: does it, in a work item.
 * @over: called behind it, when the turn is another one's; NULL: a task waits.
 * @work: the work item.
 * @running: in krc_turns.running.
 * @done: completed when it is over, if a task waits.
 */
struct krc_turn {
	struct krc_line_waiter place;
	struct krc_turns *turns;
	void (*run)(struct krc_turn *turn);
	void (*over)(struct krc_turn *turn);
	struct work_struct work;
	struct list_head running;
	struct completion done;
};

/**
 * krc_turns_init() - Initialise turns.
 * @turns: turns.
 * @nr: how many there are, at least 1. No payer has all of them, if there are more than one.
 * @wq: an unbound workqueue, which is destroyed or flushed before @turns is freed.
 *
 * Context: any; nobody uses @turns yet.
 */
void krc_turns_init(struct krc_turns *turns, u32 nr, struct workqueue_struct *wq);

/**
 * krc_turn_begin() - Have something done when it is its turn; now, if one is free.
 * @turns: turns.
 * @turn: set up here, and used until krc_turn_wait() returns, which the caller calls.
 * @payer: on whose account; only compared, and valid as long as @turn. NULL is one like others.
 * @run: does it: called once by a work item, with @turn, and may sleep; it holds no lock.
 *
 * Context: may sleep; not in @run.
 */
void krc_turn_begin(struct krc_turns *turns, struct krc_turn *turn, const void *payer,
		    void (*run)(struct krc_turn *turn));

/**
 * krc_turn_queue() - Have something done when it is its turn, for which no task waits.
 * @turns: turns; they and their workqueue stay until @over.
 * @turn: set up here, and used until @over; not on a stack.
 * @payer: as at krc_turn_begin().
 * @run: as at krc_turn_begin().
 * @over: called once by the work item behind @run, when the turn is another one's; may sleep, and
 *	free @turn.
 *
 * Context: may sleep; not in a @run of @turns.
 */
void krc_turn_queue(struct krc_turns *turns, struct krc_turn *turn, const void *payer,
		    void (*run)(struct krc_turn *turn), void (*over)(struct krc_turn *turn));

/**
 * krc_turn_wait() - Wait until what krc_turn_begin() was given is done.
 * @turn: turn.
 * @killable: take it back when the task is killed, unless it has begun.
 *
 * Context: may sleep.
 * Return: 0: it is done; -EINTR: the task was killed, and it neither was nor will be done.
 */
int krc_turn_wait(struct krc_turn *turn, bool killable);

#endif /* KRC_TURNS_H */
