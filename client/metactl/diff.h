/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Records in which servers differ. Pure: the caller reads the tables.
 * Threads: one.
 */
#ifndef MC_DIFF_H
#define MC_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <krcore/krcore.h>

#define MC_DIFF_SERVERS_MAX 64 /* a bit each */

/**
 * struct mc_diff_entry - A record of one server.
 * @key: its name.
 * @print: a hash of its value.
 * @server: index of the server.
 */
struct mc_diff_entry {
	struct krcore_key key;
	uint64_t print;
	unsigned int server;
};

/**
 * struct mc_diff - Records of several servers. Zero it to begin.
 * @entries: what was added; sorted by mc_diff_next() first.
 * @nr: how many.
 * @room: capacity of @entries.
 * @servers: a bit for each server that was read.
 * @at: how far mc_diff_next() has come.
 * @sorted: it has begun.
 */
struct mc_diff {
	struct mc_diff_entry *entries;
	size_t nr;
	size_t room;
	uint64_t servers;
	size_t at;
	bool sorted;
};

/**
 * struct mc_diff_row - A record in which the servers differ.
 * @key: its name.
 * @have: a bit for each server that has it.
 * @differs: those that have it have different values.
 */
struct mc_diff_row {
	struct krcore_key key;
	uint64_t have;
	bool differs;
};

/**
 * mc_diff_unseen() - Why a server may have records that a walk has not brought.
 * @check: of the walk.
 *
 * Return: text, or NULL if it has brought all.
 */
const char *mc_diff_unseen(const struct krcore_check *check);

/**
 * mc_diff_add() - A server has a record.
 * @diff: before the first mc_diff_next().
 * @server: 0 to MC_DIFF_SERVERS_MAX - 1; its bit is to be set in @diff->servers by the
 *	caller, also if it has no record at all.
 * @key: name.
 * @value: value.
 *
 * A record that moved during a walk may be added twice.
 *
 * Return: 0 or -ENOMEM.
 */
int mc_diff_add(struct mc_diff *diff, unsigned int server, const struct krcore_key *key,
		const struct krcore_value *value);

/**
 * mc_diff_next() - The next record in which the servers differ, in order of keys.
 * @diff: all was added.
 * @ret_row: filled.
 *
 * Return: true, or false if there is no other.
 */
bool mc_diff_next(struct mc_diff *diff, struct mc_diff_row *ret_row);

/** mc_diff_free() - Free the memory. @diff: zeroed. */
void mc_diff_free(struct mc_diff *diff);

#endif /* MC_DIFF_H */
