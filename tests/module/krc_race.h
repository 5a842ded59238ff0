/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The parts of krc_race: users of a table of krcore-race, for tests in the cluster.
 */
#ifndef KRC_TESTS_KRC_RACE_H
#define KRC_TESTS_KRC_RACE_H

#include <stdbool.h>
#include <stdint.h>

#include <krcore/race.h>

/** rt_open() - Attach to the table of @server, or end the program. Return: client. */
struct krcore_race *rt_open(const char *server);

/** rt_draw() - Draw a number. @state: not 0. @most: bound. Return: from 0 to @most - 1. */
uint64_t rt_draw(uint64_t *state, uint64_t most);

/**
 * enum rt_how - What befalls those whose history is taken.
 * @RT_PLAIN: nothing.
 * @RT_STALE: mutant: whoever looks up answers with what was there before, now and then.
 * @RT_MORTAL: one of them is a process that is killed in each round.
 */
enum rt_how {
	RT_PLAIN,
	RT_STALE,
	RT_MORTAL,
};

/**
 * rt_history() - Operations of four threads on few entries, and whether they are linearizable.
 * @server: node of the table.
 * @seed: of the draws.
 * @seconds: for how long, if no SIGTERM comes before.
 * @how: what befalls them.
 *
 * Prints a line when another operation had an unknown outcome, and a last one of counts.
 *
 * Return: exit status, 1 if an order that explains the answers does not exist, or a process that
 * was to be killed had ended before.
 */
int rt_history(const char *server, uint64_t seed, unsigned int seconds, enum rt_how how);

/**
 * rt_kill() - Kill clients in the middle of changes.
 * @server: node of the table.
 * @seed: of the draws.
 * @count: how many.
 *
 * Return: exit status.
 */
int rt_kill(const char *server, uint64_t seed, unsigned int count);

/**
 * rt_rewrite() - Change each entry that rt_kill() changes, in all ways, and look it up.
 * @server: node of the table.
 *
 * Return: exit status; 1 if one cannot be changed.
 */
int rt_rewrite(const char *server);

/**
 * rt_search() - Look an entry up again and again.
 * @server: node of the table.
 * @key: of the entry.
 * @count: how often.
 *
 * Return: exit status; 1 if it was not found once.
 */
int rt_search(const char *server, const char *key, unsigned int count);

/**
 * rt_grow() - Insert entries while others look up what is there already.
 * @server: node of the table.
 * @seed: of the draws.
 * @count: how many entries.
 *
 * Prints how many subtables were split and how many look-ups there were meanwhile.
 *
 * Return: exit status; 1 if an entry was not found, or not as it is.
 */
int rt_grow(const char *server, uint64_t seed, unsigned int count);

#endif /* KRC_TESTS_KRC_RACE_H */
