/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owners of records and their leases: the rules of proto/krp_msg.h, OWNERSHIP.
 * The ledger stands between the sessions and the table: only it changes the
 * table.
 *
 * An owner is (identity, GID, generation) and has one lease and a list of its keys.
 * The table's cookie of a record is (owner, position in that list), so each
 * step costs the same however many records there are. Leases lie on a hashed
 * timing wheel; an extension only notes the new deadline, and the owner is moved
 * when the wheel reaches its old slot (after Varghese and Lauck, SOSP '87).
 *
 * Time is the caller's: a clock in ms that never goes back.
 *
 * Threads: one, that of the table. A change that fails leaves all as it was.
 */
#ifndef MS_LEDGER_H
#define MS_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "metaserver/table.h"
#include "proto/krp_msg.h"

struct ms_ledger;

/**
 * struct ms_ledger_config - Bounds.
 * @tick_ms: granularity of the wheel, at least 1.
 * @records_max: records an owner may have beside those of its ports (KRP_SERVICE_NODE), of which
 *	there may be 64 more; imported ones have no bound but the table's.
 * @salt: seed of the hash of owners.
 */
struct ms_ledger_config {
	unsigned int tick_ms;
	unsigned int records_max;
	uint64_t salt;
};

/**
 * struct ms_ledger_ops - Callbacks of the ledger.
 * @changed: a record is new, has another value or another owner
 *	(KRP_EVENT_CHANGED), or is gone (KRP_EVENT_GONE). @generation is that of
 *	the record now or last, @why a constant text as in struct ms_observer.
 *	Called after the table has changed. Must not call the ledger.
 */
struct ms_ledger_ops {
	void (*changed)(void *arg, unsigned int event, const struct krp_key *key,
			uint64_t generation, const char *why);
};

/**
 * struct ms_claim - The owner that a client acts for.
 * @owner: identity.
 * @gid: GID that it is known to be at; zero where that does not count
 *	(publish_any_gid), which is then the owner of this identity at any.
 * @generation: boot generation, not zero.
 * @lease_ms: what the lease is extended to, from now.
 */
struct ms_claim {
	uint8_t owner[KRP_OWNER_BYTES];
	uint8_t gid[KRP_GID_BYTES];
	uint64_t generation;
	uint32_t lease_ms;
};

/**
 * struct ms_ledger_stats - Counters since ms_ledger_new().
 * @owners: owners that hold records now.
 * @published_new: publications that added a record.
 * @taken_over: publications that took a record over from any other owner.
 * @expired: records whose lease ran out.
 * @imported: records imported.
 * @private_bytes: memory of the ledger.
 */
struct ms_ledger_stats {
	uint64_t owners;
	uint64_t published_new;
	uint64_t taken_over;
	uint64_t expired;
	uint64_t imported;
	uint64_t private_bytes;
};

/**
 * struct ms_ledger_record - A record with its owner.
 * @key: name.
 * @value: value.
 * @owner: identity of its owner, zero if imported.
 * @generation: generation that published it.
 * @lease_left_ms: until it runs out; 0 if it has run out and awaits the sweep.
 * @imported: its owner has not published it again yet.
 */
struct ms_ledger_record {
	struct krp_key key;
	struct krp_value value;
	uint8_t owner[KRP_OWNER_BYTES];
	uint64_t generation;
	uint64_t lease_left_ms;
	bool imported;
};

/**
 * ms_ledger_new() - Make a ledger for an empty table.
 * @config: bounds; copied.
 * @table: the table; outlives the ledger.
 * @ops: callbacks; outlives the ledger.
 * @arg: first argument of @ops.
 * @now_ms: the clock.
 * @ret_ledger: the ledger; untouched on failure.
 *
 * Return: 0, -EINVAL for a tick of zero, or -ENOMEM.
 */
int ms_ledger_new(const struct ms_ledger_config *config, struct ms_table *table,
		  const struct ms_ledger_ops *ops, void *arg, uint64_t now_ms,
		  struct ms_ledger **ret_ledger);

/** ms_ledger_free() - Free a ledger; the table keeps its records. @l: ledger or NULL. */
void ms_ledger_free(struct ms_ledger *l);

/** ms_ledger_set_records_max() - Change the bound. @l: ledger. @nr: new bound. */
void ms_ledger_set_records_max(struct ms_ledger *l, unsigned int nr);

/**
 * ms_ledger_publish() - Put a record in for an owner, and extend its lease.
 * @l: ledger.
 * @now_ms: the clock.
 * @who: the owner.
 * @key: name.
 * @value: value, for which krp_value_valid() held; its generation is @who's.
 *
 * Return: KRP_ST_OK, KRP_ST_NOT_OWNER, KRP_ST_STALE_GENERATION,
 * KRP_ST_LIMIT_RECORDS, KRP_ST_TABLE_FULL or KRP_ST_NO_MEMORY.
 */
unsigned int ms_ledger_publish(struct ms_ledger *l, uint64_t now_ms, const struct ms_claim *who,
			       const struct krp_key *key, const struct krp_value *value);

/**
 * ms_ledger_withdraw() - Take a record out for its owner.
 * @l: ledger.
 * @now_ms: the clock.
 * @who: the owner; a newer generation may withdraw what an older one left.
 * @key: name, of a GID that @who may publish for.
 *
 * Return: KRP_ST_OK, KRP_ST_NOT_FOUND, KRP_ST_NOT_OWNER or
 * KRP_ST_STALE_GENERATION.
 */
unsigned int ms_ledger_withdraw(struct ms_ledger *l, uint64_t now_ms, const struct ms_claim *who,
				const struct krp_key *key);

/**
 * ms_ledger_renew() - Extend the lease of an owner.
 * @l: ledger.
 * @now_ms: the clock.
 * @who: the owner; it is no error if it has no records.
 */
void ms_ledger_renew(struct ms_ledger *l, uint64_t now_ms, const struct ms_claim *who);

/**
 * ms_ledger_count() - Records of an owner.
 * @l: ledger.
 * @now_ms: the clock.
 * @who: the owner; its @lease_ms is not looked at.
 * @ret_left_ms: what is left of its lease, in ms; untouched if it has no
 *	records. May be NULL.
 *
 * Return: how many there are.
 */
unsigned int ms_ledger_count(const struct ms_ledger *l, uint64_t now_ms, const struct ms_claim *who,
			     uint32_t *ret_left_ms);

/**
 * ms_ledger_import() - Put in a record that a peer had.
 * @l: ledger.
 * @now_ms: the clock.
 * @key: name.
 * @value: value.
 * @lease_ms: all imported records share one lease, which each extends.
 *
 * A record that is there already is left alone, unless it was imported and has
 * an older generation. The first publication of a generation not older takes
 * an imported record over.
 *
 * Return: 1 if it was put in, 0 if not, -EINVAL if the value is not valid,
 * -ENOSPC or -ENOMEM.
 */
int ms_ledger_import(struct ms_ledger *l, uint64_t now_ms, const struct krp_key *key,
		     const struct krp_value *value, uint32_t lease_ms);

/**
 * ms_ledger_import_keep() - Let the lease of the imported records begin now.
 * @l: ledger.
 * @now_ms: the clock.
 * @lease_ms: lease.
 */
void ms_ledger_import_keep(struct ms_ledger *l, uint64_t now_ms, uint32_t lease_ms);

/**
 * ms_ledger_import_drop() - Remove the imported records that no owner has taken over.
 * @l: ledger.
 *
 * Return: how many records that were.
 */
uint64_t ms_ledger_import_drop(struct ms_ledger *l);

/**
 * ms_ledger_remove() - Remove a record of any owner.
 * @l: ledger.
 * @key: name.
 *
 * Return: 0, or -ENOENT.
 */
int ms_ledger_remove(struct ms_ledger *l, const struct krp_key *key);

/**
 * ms_ledger_sweep() - Take out records whose lease has run out.
 * @l: ledger.
 * @now_ms: the clock.
 * @budget: steps to take at most, of which each record and each owner is one.
 *
 * Return: true if there is more to do now.
 */
bool ms_ledger_sweep(struct ms_ledger *l, uint64_t now_ms, unsigned int budget);

/**
 * ms_ledger_get() - One record.
 * @l: ledger.
 * @now_ms: the clock.
 * @key: name.
 * @ret_rec: the record; untouched on failure.
 *
 * Return: 0, or -ENOENT.
 */
int ms_ledger_get(const struct ms_ledger *l, uint64_t now_ms, const struct krp_key *key,
		  struct ms_ledger_record *ret_rec);

/**
 * ms_ledger_each() - Visit records, owner by owner.
 * @l: ledger.
 * @now_ms: the clock.
 * @from: 0, or what an earlier call returned.
 * @fn: function; returns false to stop after this record.
 * @arg: its first argument.
 *
 * Return: where to go on, or 0 at the end.
 */
uint64_t ms_ledger_each(const struct ms_ledger *l, uint64_t now_ms, uint64_t from,
			bool (*fn)(void *arg, const struct ms_ledger_record *rec), void *arg);

/** ms_ledger_stats() - Counters. @l: ledger. @ret_stats: filled. */
void ms_ledger_stats(const struct ms_ledger *l, struct ms_ledger_stats *ret_stats);

#endif /* MS_LEDGER_H */
