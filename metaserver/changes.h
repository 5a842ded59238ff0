/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Notification of subscribers about changed records.
 *
 * A change only adds a note, so that it costs the same with ten thousand
 * subscribers as with none. Notes are collected for a short while, in which
 * several changes of a key make one note, and are then moved to a ring that
 * numbers them. A subscriber is a position in that ring: it is sent the notes behind
 * its position, several a message, when its connection can take one. A slow subscriber
 * does not delay others. Only a subscriber that the ring has overtaken is told to
 * forget all records.
 *
 * One address cannot fill the ring: it has a budget of notes a second; those beyond
 * it are queued, one for each key, and added later.
 *
 * Threads: the loop's.
 */
#ifndef MS_CHANGES_H
#define MS_CHANGES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "proto/krp_msg.h"

#define MS_CHANGES_MAX 65536U /* in the ring; a power of two */
#define MS_CHANGES_HASH 16384U
#define MS_CHANGES_PENDING_MAX (4 * MS_CHANGES_MAX)
#define MS_BUDGETS 4096U
#define MS_BUDGET_RATE 200U /* notes a second of one address */
#define MS_BUDGET_BURST 1000U

/**
 * struct ms_pending - A key that has changed and is not in the ring yet.
 * @change: as it will be sent to subscribers.
 * @chain: hash by key.
 * @fifo: those of one budget, oldest first.
 */
struct ms_pending {
	struct krp_change change;
	struct ms_pending *chain;
	STAILQ_ENTRY(ms_pending) fifo;
};

STAILQ_HEAD(ms_pending_queue, ms_pending);

/**
 * struct ms_budget - How many notes the addresses of one hash value may still add.
 * @tokens: notes, in thousandths.
 * @tokens_ms: when @tokens was computed.
 * @waiting: notes that are not in the ring yet.
 * @active: list of the budgets that have such.
 */
struct ms_budget {
	uint64_t tokens;
	uint64_t tokens_ms;
	struct ms_pending_queue waiting;
	TAILQ_ENTRY(ms_budget) active;
};

TAILQ_HEAD(ms_budget_queue, ms_budget);

/**
 * struct ms_changes - All of it.
 * @ring: sealed notes, by number modulo MS_CHANGES_MAX.
 * @head: number of the next one.
 * @floor: notes before this number must not be used, even if they are in @ring.
 * @salt: secret seed of both hashes, so that no client can cause collisions.
 * @pending: notes not in the ring, by key.
 * @pending_nr: how many.
 * @budgets: by address.
 * @active: budgets with notes that wait.
 * @noted: all changes so far.
 * @merged: of those, changes merged into a pending note of the same key.
 */
struct ms_changes {
	struct krp_change *ring;
	uint64_t head;
	uint64_t floor;
	uint64_t salt;
	struct ms_pending *pending[MS_CHANGES_HASH];
	uint32_t pending_nr;
	struct ms_budget budgets[MS_BUDGETS];
	struct ms_budget_queue active;
	uint64_t noted;
	uint64_t merged;
};

/**
 * ms_changes_init() - Set up without any change.
 * @c: filled.
 * @salt: random.
 * @now_ms: the clock.
 *
 * Return: 0 or -ENOMEM.
 */
int ms_changes_init(struct ms_changes *c, uint64_t salt, uint64_t now_ms);

/** ms_changes_free() - Free all memory. @c: initialised, or zero. */
void ms_changes_free(struct ms_changes *c);

/**
 * ms_changes_note() - Note that a record has changed.
 * @c: changes.
 * @event: KRP_EVENT_CHANGED or KRP_EVENT_GONE.
 * @key: which.
 * @generation: of the record, now or last.
 *
 * Takes the same time for any number of subscribers. Without memory all subscribers will
 * be told to forget all records.
 */
void ms_changes_note(struct ms_changes *c, unsigned int event, const struct krp_key *key,
		     uint64_t generation);

/**
 * ms_changes_seal() - Move pending notes into the ring, as far as budgets allow.
 * @c: changes.
 * @now_ms: the clock.
 *
 * Return: true if notes are still pending.
 */
bool ms_changes_seal(struct ms_changes *c, uint64_t now_ms);

/**
 * ms_changes_take() - The next notes for a subscriber.
 * @c: changes.
 * @place: number of its next note.
 * @to: up to KRP_NOTIFY_CHANGES notes, or one of KRP_EVENT_RESYNC.
 * @ret_place: @place after these notes.
 *
 * Return: notes in @to; 0 if it has had all.
 */
unsigned int ms_changes_take(const struct ms_changes *c, uint64_t place, struct krp_change *to,
			     uint64_t *ret_place);

#endif /* MS_CHANGES_H */
