/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The stress of queues: clients of a lock in a peer's memory.
 *
 * The lock and what it guards are one block of words: the number of the lock's owner, or 0;
 * how often it was given back; the number of the client that wrote that; and words that follow
 * from the two. A number is a client and how often it has tried, so none comes twice, and a
 * client that finds its own knows whether it ought to be there.
 *
 * Threads: a struct st_lock_client is its client's; of struct st_lock_run they share @stop.
 */
#ifndef KRC_TESTS_STRESS_LOCK_H
#define KRC_TESTS_STRESS_LOCK_H

#include "tests/module/stress.h"

#define ST_LOCK_WORDS 512U
#define ST_LOCK_BYTES (8 * ST_LOCK_WORDS)
#define ST_LOCK_PARTS 3 /* WRITEs of what it guards */

/* the words of the block */
#define ST_LOCK_OWNER 0
#define ST_LOCK_COUNT 1
#define ST_LOCK_WRITER 2
#define ST_LOCK_CONTENT 3

/**
 * struct st_lock_counts - What happened.
 * @taken: times the lock was owned, and given back.
 * @busy: tries that met another owner.
 * @doubted: atomics and WRITEs that may or may not have been done.
 * @doubted_gives: of those, WRITEs that give the lock back.
 * @done: of all in doubt about the lock, those that a READ has shown to be done.
 * @undone: those that it has shown not to be.
 * @connects: connections made.
 * @opens: times the device was opened.
 * @last: count in the block when it was last given back.
 * @violations: what must not be.
 */
struct st_lock_counts {
	uint64_t taken, busy, doubted, doubted_gives, done, undone;
	uint64_t connects, opens, last, violations;
};

/**
 * struct st_lock_run - What the clients of a run share.
 * @peer: the program that lends the memory; it does not die.
 * @seed: all is drawn from it.
 * @end_ms: when they end.
 * @first: number of the first client; those of other runs at this lock have others.
 * @pause_us: longest time between two tries.
 * @careless: the control: the lock is taken by a READ and a WRITE.
 * @stop: a client has found what must not be.
 * @counts: by client, from the first.
 */
struct st_lock_run {
	struct st_peer peer;
	uint64_t seed;
	uint64_t end_ms;
	unsigned int first;
	uint32_t pause_us;
	bool careless;
	bool stop;
	struct st_lock_counts counts[ST_WORKERS_MAX];
};

/**
 * st_lock_client() - Be a client of the lock, until the run ends or something is wrong.
 * @run: run.
 * @number: which client of it, from 0.
 */
void st_lock_client(struct st_lock_run *run, unsigned int number);

/**
 * st_lock() - Run processes that are clients of the lock.
 * @run: run.
 * @seconds: for how long.
 * @processes: how many, at most ST_WORKERS_MAX.
 *
 * Return: exit status.
 */
int st_lock(struct st_lock_run *run, unsigned int seconds, unsigned int processes);

#endif /* KRC_TESTS_STRESS_LOCK_H */
