// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The stress of queues: the generations of passive sides, and what the supervisor is told of
 * them. It is told of a death before that happens and of a return after it, so a
 * client that finds a peer in the generation that its queue is of may not be refused anything.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/module/stress.h"

#define ST_TOLD_BYTES 512
#define ST_TOLD_WORDS 8

bool st_peer_look(const struct st_peer *peer, uint32_t *ret_generation,
		  struct krcore_region_ref *ret_region)
{
	uint32_t generation = __atomic_load_n(&peer->generation, __ATOMIC_ACQUIRE);

	*ret_region = peer->region;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	*ret_generation = generation;
	return !(generation % 2) &&
	       __atomic_load_n(&peer->generation, __ATOMIC_RELAXED) == generation;
}

bool st_peers_troubled(const struct st_shared *shared)
{
	const struct st_peer *peer;

	for (peer = shared->peers; peer < shared->peers + shared->nr_peers; peer++)
		if (peer->generation % 2 || peer->window_until_ms == UINT64_MAX)
			return true;
	return false;
}

/* The generation is written last: what a worker that is killed in here leaves is renewed again. */
void st_bank_renew(struct st_bank *bank, uint32_t generation)
{
	if (bank->generation == generation)
		return;
	bank->add = (struct st_span){ 0 };
	bank->swap = (struct st_span){ 0 };
	bank->sum = (struct st_span){ 0 };
	memset(bank->acked, 0, sizeof(bank->acked));
	memset(bank->begun, 0, sizeof(bank->begun));
	__atomic_store_n(&bank->generation, generation, __ATOMIC_RELEASE);
}

static void st_until(uint64_t *until, uint64_t ms)
{
	__atomic_store_n(until, ms, __ATOMIC_RELAXED);
}

static uint64_t st_grace(void)
{
	return st_now_ms() + ST_GRACE_MS;
}

static bool st_peer_back(struct st_peer *peer, char **words)
{
	if (!(peer->generation % 2))
		return false;
	peer->region.token = strtoull(words[0], NULL, 0);
	peer->region.addr = strtoull(words[1], NULL, 0);
	peer->region.length = strtoull(words[2], NULL, 0);
	st_until(&peer->away_until_ms, st_grace());
	__atomic_store_n(&peer->generation, peer->generation + 1, __ATOMIC_RELEASE);
	return peer->region.length == ST_REGION_BYTES;
}

/* One word about one peer. Return: whether that makes sense. */
static bool st_peer_told(struct st_peer *peer, const char *what)
{
	if (!strcmp(what, "cut")) {
		st_until(&peer->window_until_ms, UINT64_MAX);
	} else if (!strcmp(what, "away")) {
		st_until(&peer->window_until_ms, UINT64_MAX);
		st_until(&peer->away_until_ms, UINT64_MAX);
	} else if (!strcmp(what, "join")) {
		st_until(&peer->window_until_ms, st_grace());
		if (peer->away_until_ms == UINT64_MAX && !(peer->generation % 2))
			st_until(&peer->away_until_ms, st_grace());
	} else if (!strcmp(what, "dead") && !(peer->generation % 2)) {
		st_until(&peer->away_until_ms, UINT64_MAX);
		__atomic_store_n(&peer->generation, peer->generation + 1, __ATOMIC_RELEASE);
	} else {
		return false;
	}
	return true;
}

static struct st_peer *st_peer_named(struct st_shared *shared, const char *word)
{
	unsigned int number = (unsigned int)(word[0] - '0');

	return number < shared->nr_peers && !word[1] ? &shared->peers[number] : NULL;
}

static bool st_line_told(struct st_shared *shared, char *line)
{
	char *words[ST_TOLD_WORDS], *at = NULL, *word;
	struct st_peer *peer;
	unsigned int nr = 0, i;

	for (word = strtok_r(line, " ", &at); word && nr < ST_TOLD_WORDS;
	     word = strtok_r(NULL, " ", &at))
		words[nr++] = word;
	if (nr == 5 && !strcmp(words[0], "back")) {
		peer = st_peer_named(shared, words[1]);
		return peer && st_peer_back(peer, words + 2);
	}
	for (i = 1; i < nr; i++) {
		peer = st_peer_named(shared, words[i]);
		if (!peer || !st_peer_told(peer, words[0]))
			return false;
	}
	return nr > 1;
}

void st_peers_told(struct st_shared *shared, struct st_counts *counts, int timeout_ms)
{
	static struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	static char held[ST_TOLD_BYTES];
	static size_t used;
	char *end, said[ST_TOLD_BYTES];
	ssize_t more;

	if (poll(&input, 1, timeout_ms) < 1)
		return;
	more = read(input.fd, held + used, sizeof(held) - used);
	if (more <= 0) {
		input.fd = -1; /* nobody says anything any more, or too much at once */
		return;
	}
	used += (size_t)more;
	while ((end = memchr(held, '\n', used))) {
		*end++ = '\0';
		memcpy(said, held, (size_t)(end - held));
		if (st_line_told(shared, held))
			printf("told at %llu ms: %s\n", (unsigned long long)st_now_ms(), said);
		else
			st_violation(counts, "told '%s'", said);
		used -= (size_t)(end - held);
		memmove(held, end, used);
	}
}
