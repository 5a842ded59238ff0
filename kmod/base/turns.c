// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: turns by payers; see base/turns.h.
 */
#include <linux/lockdep.h>

#include "base/turns.h"

void krc_line_init(struct krc_line *line)
{
	line->waiting = 0;
	INIT_LIST_HEAD(&line->heads);
}

void krc_line_add(struct krc_line *line, struct krc_line_waiter *waiter, const void *payer)
{
	struct krc_line_waiter *head;

	waiter->payer = payer;
	INIT_LIST_HEAD(&waiter->behind);
	init_completion(&waiter->given);
	line->waiting++;
	list_for_each_entry(head, &line->heads, list) {
		if (head->payer == payer) {
			list_add_tail(&waiter->list, &head->behind);
			return;
		}
	}
	list_add_tail(&waiter->list, &line->heads);
}

/* Remove a waiter; the next one of its payer, if it was the first, comes behind @place. */
static void krc_line_remove(struct krc_line *line, struct krc_line_waiter *waiter,
			    struct list_head *place)
{
	struct krc_line_waiter *next =
		list_first_entry_or_null(&waiter->behind, struct krc_line_waiter, list);

	line->waiting--;
	if (next) {
		list_del(&next->list);
		list_splice_init(&waiter->behind, &next->behind);
		list_add(&next->list, place);
	}
	list_del(&waiter->list);
}

bool krc_line_leave(struct krc_line *line, struct krc_line_waiter *waiter)
{
	if (completion_done(&waiter->given))
		return false;
	krc_line_remove(line, waiter, &waiter->list);
	return true;
}

void krc_line_take(struct krc_line *line, struct krc_line_waiter *head)
{
	krc_line_remove(line, head, line->heads.prev);
}

struct krc_line_waiter *krc_line_next(struct krc_line *line)
{
	struct krc_line_waiter *waiter =
		list_first_entry_or_null(&line->heads, struct krc_line_waiter, list);

	if (waiter)
		krc_line_take(line, waiter);
	return waiter;
}

void krc_turns_init(struct krc_turns *turns, u32 nr, struct workqueue_struct *wq)
{
	turns->wq = wq;
	spin_lock_init(&turns->lock);
	turns->nr = nr;
	turns->free = nr;
	INIT_LIST_HEAD(&turns->running);
	krc_line_init(&turns->line);
}

/* Whether a payer has as many turns as one may: all but one. */
static bool krc_turns_most(const struct krc_turns *turns, const void *payer)
{
	const struct krc_turn *turn;
	u32 has = 0;

	lockdep_assert_held(&turns->lock);
	list_for_each_entry(turn, &turns->running, running)
		has += turn->place.payer == payer;
	return has && has + 1 >= turns->nr;
}

/* The waiter that is next, of a payer that may have a turn more, or NULL. */
static struct krc_line_waiter *krc_turns_next(struct krc_turns *turns)
{
	struct krc_line_waiter *head;

	lockdep_assert_held(&turns->lock);
	list_for_each_entry(head, &turns->line.heads, list)
		if (!krc_turns_most(turns, head->payer))
			return head;
	return NULL;
}

/* Give out the turns that are free, to those who may have one. */
static void krc_turns_give(struct krc_turns *turns)
{
	struct krc_line_waiter *next;

	lockdep_assert_held(&turns->lock);
	while (turns->free && (next = krc_turns_next(turns))) {
		struct krc_turn *turn = container_of(next, struct krc_turn, place);

		krc_line_take(&turns->line, next);
		turns->free--;
		list_add_tail(&turn->running, &turns->running);
		complete(&next->given);
		queue_work(turns->wq, &turn->work);
	}
}

static void krc_turn_work(struct work_struct *work)
{
	struct krc_turn *turn = container_of(work, struct krc_turn, work);
	struct krc_turns *turns = turn->turns;
	bool waited = !turn->over;

	turn->run(turn);
	spin_lock(&turns->lock);
	list_del(&turn->running);
	turns->free++;
	krc_turns_give(turns);
	if (waited)
		complete(&turn->done); /* on the stack of a task that may return right after */
	spin_unlock(&turns->lock);
	if (!waited)
		turn->over(turn);
}

/* Get in line, and have the turn at once if one is free. */
static void krc_turn_add(struct krc_turns *turns, struct krc_turn *turn, const void *payer)
{
	turn->turns = turns;
	spin_lock(&turns->lock);
	krc_line_add(&turns->line, &turn->place, payer);
	krc_turns_give(turns);
	spin_unlock(&turns->lock);
}

void krc_turn_begin(struct krc_turns *turns, struct krc_turn *turn, const void *payer,
		    void (*run)(struct krc_turn *turn))
{
	turn->run = run;
	turn->over = NULL;
	init_completion(&turn->done);
	INIT_WORK_ONSTACK(&turn->work, krc_turn_work);
	krc_turn_add(turns, turn, payer);
}

void krc_turn_queue(struct krc_turns *turns, struct krc_turn *turn, const void *payer,
		    void (*run)(struct krc_turn *turn), void (*over)(struct krc_turn *turn))
{
	turn->run = run;
	turn->over = over;
	INIT_WORK(&turn->work, krc_turn_work);
	krc_turn_add(turns, turn, payer);
}

/* A task was killed while it waited. Return: whether what it waited for has not begun. */
static bool krc_turn_leave(struct krc_turn *turn)
{
	struct krc_turns *turns = turn->turns;
	bool left;

	spin_lock(&turns->lock);
	left = krc_line_leave(&turns->line, &turn->place);
	spin_unlock(&turns->lock);
	return left;
}

int krc_turn_wait(struct krc_turn *turn, bool killable)
{
	int err = 0;

	if (!killable || wait_for_completion_killable(&turn->done)) {
		if (killable && krc_turn_leave(turn))
			err = -EINTR;
		else
			wait_for_completion(&turn->done);
	}
	destroy_work_on_stack(&turn->work);
	return err;
}
