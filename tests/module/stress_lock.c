// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The stress of queues: a client of a lock in a peer's memory, built from what krcore(4)
 * promises and nothing else. The lock is taken by compare-and-swap and given back by a WRITE;
 * meanwhile its owner counts on, which is no atomic, and fills the block in parts, sometimes
 * together with the WRITE that gives it back.
 *
 * A request that fails is looked after by a READ when the queue is connected again. One that
 * was cancelled was not done, not even in part; another may have been, but is not done any
 * more, so that what the READ shows stays: one that still owns the lock goes on, and one that does
 * not has given it back. If any of this does not hold, two own the lock one day, or nobody does,
 * and the block tells.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/krp_hash.h"
#include "tests/module/stress_lock.h"

#define ST_LOCK_DEPTH 8
#define ST_LOCK_WAIT_MS 200
#define ST_LOCK_RETRY_US 20000
#define ST_LOCK_END_MS 120000 /* for a client to come to its end */
#define ST_LOCK_CLIENT_SHIFT 40 /* of a number: client above, tries below */

/* What requests are made from, and what they bring. */
struct st_lock_memory {
	uint64_t got[ST_LOCK_WORDS]; /* as last READ */
	uint64_t before[ST_LOCK_WORDS]; /* as it was when WRITEs began */
	uint64_t want[ST_LOCK_WORDS]; /* as it will be */
	uint64_t word; /* old value of the compare-and-swap */
	uint64_t nobody; /* 0 */
};

/**
 * struct st_lock_client - A client.
 * @run: all.
 * @counts: its own.
 * @said: counts what st_violation() says.
 * @random: state of its draws.
 * @id: its part of a number.
 * @number: of this try.
 * @last_writer: who wrote what was there when the block was last seen whole.
 * @ready: the queue is connected, as far as we know.
 * @node: its node, or NULL.
 * @queue: its queue.
 * @mr: region of @memory.
 * @memory: local memory.
 * @cut: first words of the parts, and behind the last one.
 */
struct st_lock_client {
	struct st_lock_run *run;
	struct st_lock_counts *counts;
	struct st_counts said;
	uint64_t random;
	uint64_t id;
	uint64_t number;
	uint64_t last_writer;
	bool ready;
	struct krcore_node *node;
	uint32_t queue;
	struct krcore_mr mr;
	struct st_lock_memory *memory;
	uint32_t cut[ST_LOCK_PARTS + 1];
};

static bool st_lock_wrong(struct st_lock_client *c, const char *what, uint64_t got, uint64_t want)
{
	st_violation(&c->said, "lock: try %#llx: %s: %#llx instead of %#llx",
		     (unsigned long long)c->number, what, (unsigned long long)got,
		     (unsigned long long)want);
	c->counts->violations++;
	__atomic_store_n(&c->run->stop, true, __ATOMIC_RELAXED);
	return false;
}

/* connections */

static void st_lock_close(struct st_lock_client *c)
{
	krcore_node_close(c->node);
	c->node = NULL;
	c->ready = false;
}

static int st_lock_connect(struct st_lock_client *c)
{
	int err = 0;

	if (!c->node) {
		err = krcore_node_open(NULL, &c->node);
		if (err) {
			c->node = NULL;
			return err;
		}
		err = krcore_mr_reg(c->node, c->memory, sizeof(*c->memory),
				    KRCORE_ACCESS_LOCAL_WRITE, &c->mr);
		if (!err)
			err = krcore_queue_create(c->node, ST_LOCK_DEPTH, &c->queue);
		if (err) {
			st_lock_close(c);
			return err;
		}
		c->counts->opens++;
	}
	err = krcore_queue_connect(c->node, c->queue, &c->run->peer.key, 0, 0, NULL);
	return err == -EISCONN ? 0 : err;
}

/* Be connected, however long it takes. Return: false: it is over. */
static bool st_lock_ready(struct st_lock_client *c)
{
	while (!c->ready) {
		int err;

		if (__atomic_load_n(&c->run->stop, __ATOMIC_RELAXED))
			return false;
		if (st_now_ms() > c->run->end_ms + ST_LOCK_END_MS)
			return st_lock_wrong(c, "does not come to its end, ms", st_now_ms(),
					     c->run->end_ms);
		err = st_lock_connect(c);
		switch (err) {
		case 0:
			c->ready = true;
			c->counts->connects++;
			return true;
		case -ENODEV:
			st_lock_close(c);
			break;
		case -ETIMEDOUT:
		case -ENOTCONN:
		case -ENETUNREACH:
		case -ESHUTDOWN:
			break;
		default:
			return st_lock_wrong(c, "connecting failed", (uint64_t)-err, 0);
		}
		usleep(ST_LOCK_RETRY_US);
	}
	return true;
}

/* requests */

/* What a request failed with. Return: whether it may, on a network that loses and cuts. */
static bool st_lock_failed(struct st_lock_client *c, uint8_t opcode, int err)
{
	c->ready = false;
	switch (err) {
	case -ENODEV:
		st_lock_close(c);
		return true;
	case -ETIMEDOUT:
	case -ECANCELED:
	case -ENOTCONN:
		return true;
	case -EREMCHG:
		if (opcode != KRCORE_OP_READ)
			return true;
		break;
	}
	return st_lock_wrong(c, "a request failed", (uint64_t)-err, 0);
}

/* Return: 1, 0 if none has come yet, or -1 if it is not the one that is next. */
static int st_lock_complete(struct st_lock_client *c, unsigned int next, int *ret_status)
{
	struct krcore_wc wc;
	int got = krcore_poll(c->node, &wc, 1);

	if (!got) {
		krcore_wait(c->node, ST_LOCK_WAIT_MS);
		return 0;
	}
	if (got == 1 && wc.user_data == next) {
		*ret_status = wc.status;
		return 1;
	}
	st_lock_wrong(c, "a completion", got == 1 ? wc.user_data : (uint64_t)got, next);
	return -1;
}

/*
 * Post requests, numbered from 0, and wait for all. Return: 1 if all are done, 0 if not:
 * @status has each one's, where what was not taken counts as cancelled; -1: it is over.
 */
static int st_lock_do(struct st_lock_client *c, const struct krcore_wr *wrs, unsigned int nr,
		      int *status)
{
	uint64_t limit = st_now_ms() + ST_LOST_MS;
	unsigned int i, count, seen = 0;
	int error = 0, taken;

	taken = krcore_post(c->node, c->queue, wrs, nr, &error);
	if (taken < 0)
		error = taken;
	count = taken > 0 ? (unsigned int)taken : 0;
	for (i = count; i < nr; i++)
		status[i] = -ECANCELED;
	while (seen < count) {
		int got = st_lock_complete(c, seen, &status[seen]);

		if (got < 0)
			return -1;
		seen += got > 0;
		if (!got && st_now_ms() > limit) {
			st_lock_wrong(c, "completions", seen, count);
			return -1;
		}
	}
	for (i = 0; i < count; i++) {
		if (!status[i])
			continue;
		c->counts->doubted += wrs[i].opcode != KRCORE_OP_READ && status[i] != -ECANCELED;
		if (!st_lock_failed(c, wrs[i].opcode, status[i]))
			return -1;
		error = status[i];
	}
	if (count < nr && !st_lock_failed(c, wrs[count].opcode, error))
		return -1;
	return !error;
}

/* READ the block until that is done. Return: false: it is over. */
static bool st_lock_look(struct st_lock_client *c)
{
	struct krcore_wr wr;
	int done = 0, status;

	while (!done) {
		if (!st_lock_ready(c))
			return false;
		krcore_wr_read(&wr, &c->mr, c->memory->got, ST_LOCK_BYTES, &c->run->peer.region,
			       ST_LOCK_OFFSET, 0);
		done = st_lock_do(c, &wr, 1, &status);
	}
	return done > 0;
}

static void st_lock_wr(struct st_lock_client *c, struct krcore_wr *wr, const uint64_t *from,
		       uint32_t word, uint32_t words, unsigned int number)
{
	krcore_wr_write(wr, &c->mr, from, 8 * words, &c->run->peer.region,
			ST_LOCK_OFFSET + 8ULL * word, number);
}

/* content */

static uint64_t st_lock_word(uint64_t count, uint64_t writer, uint32_t word)
{
	return count ? krp_mix64(krp_mix64(count ^ writer << 8) + word) : 0;
}

static void st_lock_fill(uint64_t *block, uint64_t count, uint64_t writer)
{
	uint32_t i;

	block[ST_LOCK_COUNT] = count;
	block[ST_LOCK_WRITER] = writer;
	for (i = ST_LOCK_CONTENT; i < ST_LOCK_WORDS; i++)
		block[i] = st_lock_word(count, writer, i);
}

/* Whether the block that was READ is what one owner left, and none older than was seen. */
static bool st_lock_whole(struct st_lock_client *c)
{
	const uint64_t *got = c->memory->got;
	uint64_t count = got[ST_LOCK_COUNT], writer = got[ST_LOCK_WRITER];
	uint32_t i;

	if (count < c->counts->last)
		return st_lock_wrong(c, "an older count", count, c->counts->last);
	if (count == c->counts->last && writer != c->last_writer)
		return st_lock_wrong(c, "of the same count, another writer", writer,
				     c->last_writer);
	for (i = ST_LOCK_CONTENT; i < ST_LOCK_WORDS; i++)
		if (got[i] != st_lock_word(count, writer, i))
			return st_lock_wrong(c, "not one owner's: a word", got[i],
					     st_lock_word(count, writer, i));
	return true;
}

/* The lock is owned, and the WRITEs of the content have ended so: is there what may be? */
static bool st_lock_parts(struct st_lock_client *c, const int *status)
{
	const struct st_lock_memory *m = c->memory;
	unsigned int part;
	uint32_t i;

	for (part = 0; part < ST_LOCK_PARTS; part++)
		for (i = c->cut[part]; i < c->cut[part + 1]; i++) {
			if (m->got[i] == m->want[i] && status[part] != -ECANCELED)
				continue;
			if (m->got[i] == m->before[i] && status[part])
				continue;
			return st_lock_wrong(c,
					     status[part] ? "failed WRITE: a word"
							  : "WRITE that is done: a word",
					     m->got[i], status[part] ? m->before[i] : m->want[i]);
		}
	return true;
}

/* the lock */

/* A number of this client's, but not of this try: it never had the lock, or not any more. */
static bool st_lock_stray(const struct st_lock_client *c, uint64_t owner)
{
	return owner != c->number && owner >> ST_LOCK_CLIENT_SHIFT == c->id;
}

/* The compare-and-swap failed: has it been done? Return: whether the lock is owned. */
static bool st_lock_taken_after_all(struct st_lock_client *c, int status)
{
	uint64_t owner;

	if (!st_lock_look(c))
		return false;
	owner = c->memory->got[ST_LOCK_OWNER];
	if (st_lock_stray(c, owner))
		return st_lock_wrong(c, "owned since a try before", owner, c->number);
	if (owner == c->number && status == -ECANCELED)
		return st_lock_wrong(c, "cancelled, and done", owner, 0);
	if (status != -ECANCELED)
		*(owner == c->number ? &c->counts->done : &c->counts->undone) += 1;
	return owner == c->number;
}

static bool st_lock_take(struct st_lock_client *c)
{
	struct krcore_wr wr;
	uint64_t owner;
	int done, status;

	if (!st_lock_ready(c))
		return false;
	c->memory->word = UINT64_MAX;
	krcore_wr_read(&wr, &c->mr, &c->memory->word, 8, &c->run->peer.region, ST_LOCK_OFFSET, 0);
	wr.opcode = KRCORE_OP_CMP_SWAP;
	wr.swap = c->number;
	done = st_lock_do(c, &wr, 1, &status);
	if (done < 0)
		return false;
	if (!done)
		return st_lock_taken_after_all(c, status);
	owner = c->memory->word;
	/* its own number, too: then it was done twice */
	if (owner >> ST_LOCK_CLIENT_SHIFT == c->id)
		return st_lock_wrong(c, "owned by this client", owner, 0);
	c->counts->busy += owner != 0;
	return !owner;
}

/* As it must not be done. */
static bool st_lock_take_carelessly(struct st_lock_client *c)
{
	struct krcore_wr wr;
	int status;

	if (!st_lock_look(c) || c->memory->got[ST_LOCK_OWNER])
		return false;
	c->memory->word = c->number;
	st_lock_wr(c, &wr, &c->memory->word, ST_LOCK_OWNER, 1, 0);
	return st_lock_do(c, &wr, 1, &status) > 0;
}

/*
 * WRITEs have failed. Return: 1: the lock was given back all the same; 0: it is still owned;
 * -1: it is over.
 */
static int st_lock_after(struct st_lock_client *c, bool fill, bool give, const int *status)
{
	int given = give ? status[fill ? ST_LOCK_PARTS : 0] : -ECANCELED;
	uint64_t owner;

	if (!st_lock_look(c))
		return -1;
	owner = c->memory->got[ST_LOCK_OWNER];
	c->counts->doubted_gives += given != -ECANCELED;
	if (owner != c->number) {
		if (given == -ECANCELED || st_lock_stray(c, owner)) {
			st_lock_wrong(c, "lost while it was owned", owner, c->number);
			return -1;
		}
		c->counts->done++;
		return 1;
	}
	if (!given) {
		st_lock_wrong(c, "given back, and still there", owner, 0);
		return -1;
	}
	c->counts->undone += given != -ECANCELED;
	if (fill && !st_lock_parts(c, status))
		return -1;
	memcpy(c->memory->before, c->memory->got, ST_LOCK_BYTES);
	return 0;
}

/* WRITE what the lock guards, or give it back, or both, until that is done. */
static bool st_lock_write(struct st_lock_client *c, bool fill, bool give)
{
	struct krcore_wr wrs[ST_LOCK_PARTS + 1];
	int status[ST_LOCK_PARTS + 1], done = 0;

	while (!done) {
		unsigned int nr = 0;

		for (; fill && nr < ST_LOCK_PARTS; nr++)
			st_lock_wr(c, &wrs[nr], c->memory->want + c->cut[nr], c->cut[nr],
				   c->cut[nr + 1] - c->cut[nr], nr);
		if (give) {
			st_lock_wr(c, &wrs[nr], &c->memory->nobody, ST_LOCK_OWNER, 1, nr);
			nr++;
		}
		if (!st_lock_ready(c))
			return false;
		done = st_lock_do(c, wrs, nr, status);
		if (!done)
			done = st_lock_after(c, fill, give, status);
	}
	return done > 0;
}

/* What the owner does, until it has given the lock back. */
static bool st_lock_own(struct st_lock_client *c)
{
	bool together = st_random(&c->random, 2);
	struct st_lock_memory *m = c->memory;
	uint32_t i;

	if (!st_lock_look(c))
		return false;
	if (m->got[ST_LOCK_OWNER] != c->number)
		return st_lock_wrong(c, "taken, and another's", m->got[ST_LOCK_OWNER], c->number);
	if (!st_lock_whole(c))
		return false;
	memcpy(m->before, m->got, ST_LOCK_BYTES);
	memcpy(m->want, m->got, ST_LOCK_BYTES);
	st_lock_fill(m->want, m->got[ST_LOCK_COUNT] + 1, c->number);
	c->cut[0] = ST_LOCK_COUNT;
	c->cut[1] = 2 + (uint32_t)st_random(&c->random, ST_LOCK_WORDS / 2);
	c->cut[2] = c->cut[1] + 1 + (uint32_t)st_random(&c->random, ST_LOCK_WORDS / 4);
	c->cut[3] = ST_LOCK_WORDS;
	if (!st_lock_write(c, true, together))
		return false;
	if (!together) {
		if (!st_lock_look(c))
			return false;
		for (i = 0; i < ST_LOCK_WORDS; i++)
			if (m->got[i] != m->want[i])
				return st_lock_wrong(c, "not what was written: a word", m->got[i],
						     m->want[i]);
		if (!st_lock_write(c, false, true))
			return false;
	}
	c->counts->taken++;
	c->counts->last = m->want[ST_LOCK_COUNT];
	c->last_writer = c->number;
	return true;
}

void st_lock_client(struct st_lock_run *run, unsigned int number)
{
	struct st_lock_client c = {
		.run = run,
		.counts = &run->counts[number],
		.random = run->seed + ((uint64_t)(run->first + number) << 32),
		.id = run->first + number + 1,
	};
	uint64_t tries = 0;

	c.memory = aligned_alloc(4096, (sizeof(*c.memory) + 4095) & ~4095UL);
	if (!c.memory)
		abort();
	memset(c.memory, 0, sizeof(*c.memory));
	while (st_now_ms() < run->end_ms && !__atomic_load_n(&run->stop, __ATOMIC_RELAXED)) {
		c.number = c.id << ST_LOCK_CLIENT_SHIFT | ++tries;
		if (run->careless ? st_lock_take_carelessly(&c) : st_lock_take(&c))
			st_lock_own(&c);
		usleep((useconds_t)st_random(&c.random, run->pause_us));
	}
	st_lock_close(&c);
	free(c.memory);
}
