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

struct krc_line_waiter *krc_line_next(struct krc_line *line)
{
	struct krc_line_waiter *waiter =
		list_first_entry_or_null(&line->heads, struct krc_line_waiter, list);

	if (waiter)
		krc_line_remove(line, waiter, line->heads.prev);
	return waiter;
}

void krc_turns_init(struct krc_turns *turns, u32 nr)
{
	spin_lock_init(&turns->lock);
	turns->free = nr;
	krc_line_init(&turns->line);
}

/* A task was killed while it waited. Return: -EINTR, or 0 if it has the turn all the same. */
static int krc_turn_leave(struct krc_turns *turns, struct krc_line_waiter *waiter)
{
	bool left;

	spin_lock(&turns->lock);
	left = krc_line_leave(&turns->line, waiter);
	spin_unlock(&turns->lock);
	return left ? -EINTR : 0;
}

int krc_turn_begin(struct krc_turns *turns, const void *payer, bool killable)
{
	struct krc_line_waiter waiter;

	spin_lock(&turns->lock);
	if (turns->free) {
		turns->free--;
		spin_unlock(&turns->lock);
		return 0;
	}
	krc_line_add(&turns->line, &waiter, payer);
	spin_unlock(&turns->lock);
	if (!killable)
		wait_for_completion(&waiter.given);
	else if (wait_for_completion_killable(&waiter.given))
		return krc_turn_leave(turns, &waiter);
	return 0;
}

void krc_turn_end(struct krc_turns *turns)
{
	struct krc_line_waiter *waiter;

	spin_lock(&turns->lock);
	waiter = krc_line_next(&turns->line);
	if (waiter)
		complete(&waiter->given); /* on the stack of a task that may return right after */
	else
		turns->free++;
	spin_unlock(&turns->lock);
}
