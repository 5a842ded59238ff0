// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: turns by payers; see base/turns.h.
 */
#include <linux/completion.h>
#include <linux/lockdep.h>

#include "base/turns.h"

/**
 * struct krc_turn - A task that waits for a turn; on its stack.
 * @list: in krc_turns.heads, or in @behind of its payer's first.
 * @behind: if it is the first: the other tasks of the payer, in the order they came.
 * @payer: see krc_turn_begin().
 * @given: completed when it has the turn; @list is not used any more then.
 */
struct krc_turn {
	struct list_head list;
	struct list_head behind;
	const void *payer;
	struct completion given;
};

void krc_turns_init(struct krc_turns *turns, u32 nr)
{
	spin_lock_init(&turns->lock);
	turns->free = nr;
	turns->waiting = 0;
	INIT_LIST_HEAD(&turns->heads);
}

static void krc_turn_add(struct krc_turns *turns, struct krc_turn *turn)
{
	struct krc_turn *head;

	lockdep_assert_held(&turns->lock);
	turns->waiting++;
	list_for_each_entry(head, &turns->heads, list) {
		if (head->payer == turn->payer) {
			list_add_tail(&turn->list, &head->behind);
			return;
		}
	}
	list_add_tail(&turn->list, &turns->heads);
}

/* Remove a task; the next one of its payer, if it was the first, comes behind @place. */
static void krc_turn_remove(struct krc_turns *turns, struct krc_turn *turn, struct list_head *place)
{
	struct krc_turn *next = list_first_entry_or_null(&turn->behind, struct krc_turn, list);

	lockdep_assert_held(&turns->lock);
	turns->waiting--;
	if (next) {
		list_del(&next->list);
		list_splice_init(&turn->behind, &next->behind);
		list_add(&next->list, place);
	}
	list_del(&turn->list);
}

/* A task was killed while it waited. Return: -EINTR, or 0 if it has the turn all the same. */
static int krc_turn_leave(struct krc_turns *turns, struct krc_turn *turn)
{
	int err = 0;

	spin_lock(&turns->lock);
	if (!completion_done(&turn->given)) {
		krc_turn_remove(turns, turn, &turn->list);
		err = -EINTR;
	}
	spin_unlock(&turns->lock);
	return err;
}

int krc_turn_begin(struct krc_turns *turns, const void *payer, bool killable)
{
	struct krc_turn turn = { .payer = payer };

	spin_lock(&turns->lock);
	if (turns->free) {
		turns->free--;
		spin_unlock(&turns->lock);
		return 0;
	}
	INIT_LIST_HEAD(&turn.behind);
	init_completion(&turn.given);
	krc_turn_add(turns, &turn);
	spin_unlock(&turns->lock);
	if (!killable)
		wait_for_completion(&turn.given);
	else if (wait_for_completion_killable(&turn.given))
		return krc_turn_leave(turns, &turn);
	return 0;
}

void krc_turn_end(struct krc_turns *turns)
{
	struct krc_turn *turn;

	spin_lock(&turns->lock);
	turn = list_first_entry_or_null(&turns->heads, struct krc_turn, list);
	if (turn) {
		krc_turn_remove(turns, turn, turns->heads.prev);
		complete(&turn->given); /* on the stack of a task that may return right after */
	} else {
		turns->free++;
	}
	spin_unlock(&turns->lock);
}
