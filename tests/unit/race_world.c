// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A memory node and its clients in one process: see race_world.h.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/unit/race_world.h"

#define RW_STACK 262144
#define RW_STEPS_MAX 4000000

static struct rw_client *rw_of(struct kr_transport *t)
{
	return (struct rw_client *)((char *)t - offsetof(struct rw_client, t));
}

uint32_t rw_draw(struct rw_world *w, uint32_t below)
{
	w->random += KRP_GOLDEN;
	return (uint32_t)(krp_mix64(w->random) % below);
}

/* Let others do something, if this is a coroutine. */
static void rw_yield(struct rw_client *client)
{
	struct rw_world *w = client->world;

	w->steps++;
	if (w->now == client)
		swapcontext(&client->context, &w->home);
}

/*
 * Copy words, each in one piece, from one end or the other. Now and then others go on in between,
 * a few times in all, however long it is.
 */
static void rw_copy(struct rw_client *client, void *to, const void *from, uint32_t bytes)
{
	uint32_t words = (bytes + 7) / 8, most = words, done, piece, at;
	struct rw_world *w = client->world;
	bool down = false;

	if (w->now == client && !rw_draw(w, 3)) {
		most = words < 64 ? 1 + words / 4 : words / 2;
		down = !rw_draw(w, 4);
	}
	for (done = 0; done < words; done += piece) {
		if (done)
			rw_yield(client);
		piece = most == words ? words : 1 + rw_draw(w, most);
		if (piece > words - done)
			piece = words - done;
		at = 8 * (down ? words - done - piece : done);
		memcpy((uint8_t *)to + at, (const uint8_t *)from + at,
		       bytes - at < 8 * piece ? bytes - at : 8 * piece);
	}
}

/* Do one request. */
static void rw_do(struct rw_client *client, struct kr_req *req)
{
	uint64_t *word = (uint64_t *)(client->world->memory + req->remote);

	switch (req->op) {
	case KR_READ:
		rw_copy(client, req->local, word, req->length);
		break;
	case KR_WRITE:
		rw_copy(client, word, req->local, req->length);
		break;
	case KR_CAS:
		*(uint64_t *)req->local = *word;
		if (*word == req->compare)
			*word = req->swap;
		break;
	case KR_ADD:
		*(uint64_t *)req->local = *word;
		*word += req->compare;
		break;
	}
}

/* A request of which nobody knows what became: it is not done, or (WRITE) a part of it is. */
static void rw_do_part(struct rw_client *client, struct kr_req *req)
{
	struct kr_req part = *req;

	if (req->op != KR_WRITE)
		return;
	part.length = rw_draw(client->world, req->length / 8 + 1) * 8;
	if (part.length)
		rw_do(client, &part);
}

static int rw_one(struct rw_client *client, struct kr_req *req)
{
	struct rw_world *w = client->world;
	bool unknown;

	rw_yield(client);
	if (req->remote > w->bytes || req->length > w->bytes - req->remote)
		return -EOVERFLOW;
	if (client->meddle)
		client->meddle(client);
	client->requests++;
	if (client->requests == client->dies_at)
		rw_do_part(client, req);
	if (client->requests >= client->dies_at)
		return -ENODEV;
	if (client->refuses && req->op != KR_READ)
		return -ETIMEDOUT;
	if (client->requests == client->lapses_at) {
		client->lapse(client);
		return -ECANCELED;
	}
	unknown = req->op != KR_READ &&
		  (client->requests == client->unknown_at ||
		   (client->unknown_odds && !rw_draw(w, client->unknown_odds)));
	if (!unknown) {
		rw_do(client, req);
		return 0;
	}
	client->done = client->requests == client->unknown_at ? client->unknown_done
							      : rw_draw(w, 2);
	if (client->done)
		rw_do(client, req);
	else
		rw_do_part(client, req);
	rw_yield(client); /* the world goes on before the client hears of it */
	return -EREMCHG;
}

/*
 * What is behind a request that failed: not done and -ECANCELED; or, when that one was of unknown
 * outcome and @doubt, of unknown outcome, too, and done if all before it were and a draw says so.
 */
static int rw_behind(struct rw_client *client, struct kr_req *req, bool doubt)
{
	if (!doubt)
		return -ECANCELED;
	client->done = client->done && rw_draw(client->world, 2);
	if (client->done)
		rw_do(client, req);
	return -EREMCHG;
}

static int rw_submit(struct kr_transport *t, struct kr_req *reqs, unsigned int nr)
{
	struct rw_client *client = rw_of(t);
	unsigned int i, wait;
	bool doubt = false;
	int err = 0;

	for (i = 0; i < nr; i++) {
		reqs[i].status = err ? rw_behind(client, &reqs[i], doubt)
				     : rw_one(client, &reqs[i]);
		if (err || !reqs[i].status)
			continue;
		err = reqs[i].status;
		doubt = err == -EREMCHG && rw_draw(client->world, 2);
	}
	for (i = 0; client->replays && i < nr; i++) {
		if (reqs[i].op != KR_WRITE || reqs[i].status)
			continue;
		for (wait = rw_draw(client->world, RW_REPLAY_STEPS); wait; wait--)
			rw_yield(client);
		rw_do(client, &reqs[i]);
	}
	return err;
}

static void *rw_memory(struct kr_transport *t, size_t bytes)
{
	struct rw_client *client = rw_of(t);
	void *piece;

	if (client->nr_pieces == RW_PIECES)
		return NULL;
	piece = calloc(1, bytes);
	if (piece)
		client->pieces[client->nr_pieces++] = piece;
	return piece;
}

static uint64_t rw_now_ms(struct kr_transport *t)
{
	return rw_of(t)->world->steps;
}

static void rw_pause(struct kr_transport *t, unsigned int ms)
{
	rw_of(t)->world->steps += ms;
	rw_yield(rw_of(t));
}

static void rw_end(struct kr_transport *t)
{
	struct rw_client *client = rw_of(t);

	while (client->nr_pieces)
		free(client->pieces[--client->nr_pieces]);
}

static const struct kr_transport_ops rw_ops = {
	.submit = rw_submit,
	.memory = rw_memory,
	.now_ms = rw_now_ms,
	.pause = rw_pause,
	.close = rw_end,
};

struct rw_world *rw_new(uint64_t bytes, uint32_t groups, uint32_t depth_max, uint64_t seed)
{
	struct rw_world *w = calloc(1, sizeof(*w));
	unsigned int i;

	if (!w)
		abort();
	/* only pages that are touched cost anything */
	w->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	w->bytes = bytes;
	w->random = krp_mix64(seed + 1);
	if (w->memory == MAP_FAILED)
		abort();
	if (kr_format(w->memory, bytes, groups, depth_max, RW_HASH_SEED, 1000000))
		abort();
	for (i = 0; i < RW_CLIENTS; i++) {
		w->clients[i].world = w;
		w->clients[i].index = i;
		w->clients[i].t.ops = &rw_ops;
		w->clients[i].t.bytes = bytes;
		w->clients[i].dies_at = RW_NEVER;
		w->clients[i].unknown_at = RW_NEVER;
		w->clients[i].lapses_at = RW_NEVER;
	}
	return w;
}

void rw_lease(struct rw_world *w, uint32_t ms)
{
	struct kr_header *h = (struct kr_header *)w->memory;

	h->lease_ms = ms;
	h->sum = krp_xxh64(h, offsetof(struct kr_header, sum), KR_MAGIC);
}

void rw_free(struct rw_world *w)
{
	unsigned int i;

	for (i = 0; i < RW_CLIENTS; i++) {
		rw_close(w, i);
		free(w->clients[i].stack);
	}
	munmap(w->memory, w->bytes);
	free(w);
}

struct kr_transport *rw_transport(struct rw_world *w, unsigned int i)
{
	return &w->clients[i].t;
}

struct kr_client *rw_open(struct rw_world *w, unsigned int i)
{
	struct rw_client *client = &w->clients[i];

	if (kr_client_new(&client->t, &client->c)) {
		fprintf(stderr, "client %u cannot attach\n", i);
		abort();
	}
	client->c->random = w->random + i; /* not an address */
	return client->c;
}

void rw_close(struct rw_world *w, unsigned int i)
{
	kr_client_free(w->clients[i].c);
	w->clients[i].c = NULL;
}

static void rw_main(unsigned int high, unsigned int low)
{
	struct rw_client *client = (struct rw_client *)((uintptr_t)high << 32 | low);

	client->run(client);
	client->ready = false;
	swapcontext(&client->context, &client->world->home);
}

void rw_spawn(struct rw_world *w, unsigned int i, void (*run)(struct rw_client *client), void *arg)
{
	struct rw_client *client = &w->clients[i];

	if (!client->stack)
		client->stack = malloc(RW_STACK);
	if (!client->stack || getcontext(&client->context))
		abort();
	client->run = run;
	client->arg = arg;
	client->ready = true;
	client->context.uc_stack.ss_sp = client->stack;
	client->context.uc_stack.ss_size = RW_STACK;
	client->context.uc_link = NULL;
	makecontext(&client->context, (void (*)(void))rw_main, 2,
		    (unsigned int)((uintptr_t)client >> 32), (unsigned int)(uintptr_t)client);
}

void rw_step(struct rw_world *w, unsigned int i, unsigned int nr)
{
	struct rw_client *client = &w->clients[i];

	for (; nr && client->ready; nr--) {
		w->now = client;
		swapcontext(&w->home, &client->context);
		w->now = NULL;
	}
}

bool rw_run(struct rw_world *w)
{
	unsigned int ready[RW_CLIENTS], nr, i;
	uint64_t end = w->steps + RW_STEPS_MAX;

	while (w->steps < end) {
		for (nr = 0, i = 0; i < RW_CLIENTS; i++)
			if (w->clients[i].ready)
				ready[nr++] = i;
		if (!nr)
			return true;
		if (!w->burst_left || !w->clients[w->burst].ready) {
			w->burst = ready[rw_draw(w, nr)];
			w->burst_left = 1 + (rw_draw(w, 4) ? 0 : rw_draw(w, 30));
		}
		w->burst_left--;
		rw_step(w, w->burst, 1);
	}
	return false;
}

int rw_put(struct kr_client *c, enum kr_mode mode, const char *key, const void *value, size_t bytes)
{
	return kr_modify(c, mode, key, (uint32_t)strlen(key), value, (uint32_t)bytes);
}

long rw_get(struct kr_client *c, const char *key, const void **ret_value)
{
	struct kr_place p;
	int err = kr_find(c, key, (uint32_t)strlen(key), &p);

	if (err)
		return err;
	if (!p.slot_at)
		return -ENOENT;
	*ret_value = (uint8_t *)(c->found + 1) + c->found->key_bytes;
	return c->found->value_bytes;
}

int rw_count_entry(void *arg, const struct kr_block *block)
{
	(void)block;
	++*(unsigned int *)arg;
	return 0;
}

unsigned int rw_entries(struct kr_client *c)
{
	unsigned int nr = 0;

	return kr_walk(c, rw_count_entry, &nr) ? UINT_MAX : nr;
}

unsigned int rw_orphans(const struct rw_world *w)
{
	const struct kr_header *h = (const struct kr_header *)w->memory;
	const uint64_t *clients = (const uint64_t *)(w->memory + h->clients);
	const uint64_t *owners = (const uint64_t *)(w->memory + h->owners);
	unsigned int i, nr = 0;

	for (i = 0; i < h->nr_chunks; i++)
		if (!(owners[i] & KR_OWNER_NOBODY))
			nr += owners[i] >> 8 != clients[(owners[i] >> 8) % h->nr_clients] >> 32;
	return nr;
}
