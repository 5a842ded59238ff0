// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Numbered messages in one direction: each comes once, in order, with its bytes, whatever happens
 * to the network and the hardware meanwhile. In the end the sink says how many it has had.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/module/message.h"

#define SI_SLOT (2U << 20) /* where large messages go, one after the other */
#define NU_LARGE_EVERY 64
#define NU_LARGE 8192 /* bytes of each */
#define NU_DEPTH 32

/* @imm of a message is its number, from 0. Its bytes depend on it and on nothing else. */
static unsigned int nu_length(unsigned int number)
{
	return number % NU_LARGE_EVERY == NU_LARGE_EVERY - 1 ? NU_LARGE : number * 53 % 2000;
}

/* A connection of the sink. @expect: number that comes next. @fetched: large ones. */
struct si_conn {
	uint32_t connection;
	unsigned int expect, fetched;
	int large; /* of any length, and not more than one at a time: see mt_large() */
	int ended; /* and it is closed when what it has announced was fetched */
};

struct si {
	struct mt mt;
	struct si_conn conn[MT_CONNECTIONS];
	struct krcore_letter waiting[MT_CONNECTIONS]; /* large ones, in order */
	unsigned int first, nr, fetching;
	unsigned int offers, messages, large, ended, died, failed;
};

static struct si_conn *si_find(struct si *si, uint32_t connection)
{
	unsigned int i;

	for (i = 0; i < MT_CONNECTIONS; i++)
		if (si->conn[i].connection == connection)
			return &si->conn[i];
	mt_wrong("no room for connection, or a letter of one that is none: %u", connection);
}

static void si_offer(struct si *si, const struct krcore_letter *letter)
{
	struct si_conn *c = si_find(si, 0);
	struct krcore_peer peer;

	if (krcore_letter_peer(letter, si->mt.buffer, &peer))
		mt_die("who it is");
	si->offers++;
	if (krcore_accept(si->mt.node, letter->connection, NULL)) {
		si->failed++;
		krcore_refuse(si->mt.node, letter->connection);
		return;
	}
	memset(c, 0, sizeof(*c));
	c->connection = letter->connection;
	c->large = peer.user_len == 5 && !memcmp(peer.user, "large", 5);
}

static void si_number(struct si_conn *c, const struct krcore_letter *letter)
{
	if (letter->imm != c->expect)
		mt_wrong("connection %u: message %u instead of %u", letter->connection, letter->imm,
			 c->expect);
	if (!c->large && letter->length != nu_length(letter->imm))
		mt_wrong("connection %u: message %u of %u bytes", letter->connection, letter->imm,
			 letter->length);
	c->expect++;
}

static void si_close(struct si *si, struct si_conn *c)
{
	if (krcore_shutdown(si->mt.node, c->connection, KRCORE_SHUT_CLOSE))
		mt_die("closing");
	c->connection = 0;
}

/* The peer has sent its last: close, unless a large message waits, which that would discard. */
static void si_ended(struct si *si, struct si_conn *c)
{
	unsigned int i;

	for (i = 0; i < si->nr; i++)
		if (si->waiting[(si->first + i) % MT_CONNECTIONS].connection == c->connection)
			return;
	/* a last message, with what has come */
	if (krcore_send(si->mt.node, c->connection, &c->expect, sizeof(c->expect), 0))
		si->failed++;
	else
		si->mt.under_way++;
	si_close(si, c);
}

/* The oldest large message is done with. */
static void si_next(struct si *si)
{
	uint32_t connection = si->waiting[si->first].connection;
	unsigned int i;

	si->first = (si->first + 1) % MT_CONNECTIONS;
	si->nr--;
	for (i = 0; i < MT_CONNECTIONS; i++)
		if (si->conn[i].connection == connection && si->conn[i].ended)
			si_ended(si, &si->conn[i]);
}

static void si_letter(struct si *si, const struct krcore_letter *letter)
{
	struct si_conn *c = letter->kind == KRCORE_LETTER_OFFER ? NULL
								: si_find(si, letter->connection);

	switch (letter->kind) {
	case KRCORE_LETTER_OFFER:
		si_offer(si, letter);
		return;
	case KRCORE_LETTER_MESSAGE:
		si_number(c, letter);
		if (!mt_filled(mt_bytes(&si->mt, letter), letter->length, letter->imm))
			mt_wrong("message %u has other bytes", letter->imm);
		si->messages++;
		return;
	case KRCORE_LETTER_LARGE:
		si_number(c, letter);
		if (si->nr == MT_CONNECTIONS || letter->length > SI_SLOT)
			mt_wrong("too many large messages, or too large ones");
		si->waiting[(si->first + si->nr++) % MT_CONNECTIONS] = *letter;
		return;
	case KRCORE_LETTER_ENDED:
		si->ended++;
		c->ended = 1;
		si_ended(si, c);
		return;
	case KRCORE_LETTER_DIED:
		si->died++;
		si_close(si, c);
		return;
	default:
		mt_wrong("a letter of kind %u", letter->kind);
	}
}

/* One READ at a time, so that it has all of the memory. */
static void si_fetch(struct si *si)
{
	const struct krcore_letter *letter = &si->waiting[si->first];

	if (si->fetching || !si->nr)
		return;
	if (!krcore_fetch(si->mt.node, letter, 0, &si->mt.mr, si->mt.memory, letter->length, 0,
			  1)) {
		si->fetching = 1;
		si->mt.under_way++;
		return;
	}
	si->failed++;
	si_next(si);
}

static void si_completion(struct si *si, const struct krcore_wc *wc)
{
	const struct krcore_letter *letter = &si->waiting[si->first];

	si->failed += wc->status != 0;
	if (wc->opcode != KRCORE_OP_FETCH)
		return;
	if (!wc->status &&
	    (wc->bytes != letter->length || !mt_filled(si->mt.memory, letter->length, letter->imm)))
		mt_wrong("large message %u has other bytes", letter->imm);
	si->large += !wc->status;
	memset(si->mt.memory, 0, letter->length);
	si->fetching = 0;
	si_next(si);
}

int mt_sink(uint16_t service)
{
	struct si *si = calloc(1, sizeof(*si));
	unsigned int nr, i;

	if (!si)
		mt_wrong("no memory");
	mt_until_term();
	mt_open(&si->mt, SI_SLOT);
	if (krcore_listen(si->mt.node, service, 64, 30000))
		mt_die("listening");
	mt_say("listening");
	while (!mt_over()) {
		nr = mt_take(&si->mt, si->fetching || si->mt.under_way ? 20 : 500);
		for (i = 0; i < nr; i++)
			si_letter(si, &si->mt.letters[i]);
		while ((nr = mt_completions(&si->mt)))
			for (i = 0; i < nr; i++)
				si_completion(si, &si->mt.wcs[i]);
		si_fetch(si);
	}
	mt_say("offers=%u messages=%u large=%u ended=%u died=%u failed=%u", si->offers,
	       si->messages, si->large, si->ended, si->died, si->failed);
	mt_close(&si->mt);
	free(si);
	return 0;
}

/*
 * A connection of the sender.
 * @next: number of the next message. @held: the large one is not fetched yet. @shut: it has sent
 * its last. @told: what the sink has had, when it has said so.
 */
struct nu_conn {
	uint32_t connection;
	unsigned int next;
	int open, held, shut, told;
};

struct nu {
	struct mt mt;
	struct nu_conn conn[MT_CONNECTIONS];
	unsigned int connections, left, completed;
	uint64_t sent;
};

static int nu_send(struct nu *nu, struct nu_conn *c)
{
	unsigned int index = (unsigned int)(c - nu->conn), bytes = nu_length(c->next);
	char *large = nu->mt.memory + (size_t)index * NU_LARGE, copied[2000];
	struct krcore_send_wr wr = {
		.user_data = (uint64_t)index << 1 | (bytes == NU_LARGE),
		.connection = c->connection,
		.length = bytes,
		.imm = c->next,
	};
	int err;

	if (bytes == NU_LARGE && c->held)
		return 0;
	mt_fill(bytes == NU_LARGE ? large : copied, bytes, c->next);
	wr.addr = (uintptr_t)(bytes == NU_LARGE ? large : copied);
	wr.mr = bytes == NU_LARGE ? nu->mt.mr.handle : 0;
	err = krcore_send_many(nu->mt.node, &wr, 1, NULL);
	if (err == -EAGAIN)
		return 0;
	if (err < 0)
		mt_die("sending");
	nu->mt.under_way++;
	nu->sent++;
	c->next++;
	c->held |= bytes == NU_LARGE;
	return 1;
}

static void nu_letter(struct nu *nu, const struct krcore_letter *letter)
{
	struct nu_conn *c = nu->conn;
	unsigned int had;

	while (c < nu->conn + nu->connections && c->connection != letter->connection)
		c++;
	if (c == nu->conn + nu->connections)
		mt_wrong("a letter of connection %u, which is none of ours", letter->connection);
	if (letter->kind == KRCORE_LETTER_OPENED) {
		c->open = 1;
	} else if (letter->kind == KRCORE_LETTER_MESSAGE && c->shut && !c->told &&
		   letter->length == sizeof(had)) {
		memcpy(&had, mt_bytes(&nu->mt, letter), sizeof(had));
		if (had != c->next)
			mt_wrong("connection %u: %u messages were sent, %u have come",
				 c->connection, c->next, had);
		c->told = 1;
		nu->left--;
	} else if (letter->kind != KRCORE_LETTER_ENDED || !c->told) {
		mt_wrong("connection %u after %u messages: letter of kind %u, status %d",
			 c->connection, c->next, letter->kind, letter->status);
	}
}

static void nu_some(struct nu *nu, int timeout_ms)
{
	unsigned int nr = mt_take(&nu->mt, timeout_ms), i;

	for (i = 0; i < nr; i++)
		nu_letter(nu, &nu->mt.letters[i]);
	while ((nr = mt_completions(&nu->mt)))
		for (i = 0; i < nr; i++) {
			const struct krcore_wc *wc = &nu->mt.wcs[i];

			if (wc->status)
				mt_wrong("a message of connection %u: %s", wc->queue,
					 strerror(-wc->status));
			if (wc->user_data & 1)
				nu->conn[wc->user_data >> 1].held = 0;
			nu->completed++;
		}
}

int mt_numbers(const struct krcore_key *peer, unsigned int connections)
{
	struct nu *nu = calloc(1, sizeof(*nu));
	unsigned int i, sent, waited;

	if (!nu)
		mt_wrong("no memory");
	mt_until_term();
	mt_open(&nu->mt, (size_t)connections * NU_LARGE);
	nu->connections = connections;
	nu->left = connections;
	for (i = 0; i < connections; i++)
		nu->conn[i].connection = mt_connect(&nu->mt, peer, "numbers", NU_DEPTH);
	mt_say("sending");
	while (!mt_over()) {
		for (i = 0, sent = 0; i < connections; i++)
			while (nu_send(nu, &nu->conn[i]))
				sent++;
		nu_some(nu, sent ? 0 : 20);
	}
	for (i = 0; i < connections; i++) {
		if (krcore_shutdown(nu->mt.node, nu->conn[i].connection, KRCORE_SHUT_SEND))
			mt_die("ending");
		nu->conn[i].shut = 1;
	}
	for (waited = 0; (nu->left || nu->mt.under_way) && waited < 2 * MT_TIMEOUT_MS;
	     waited += 100)
		nu_some(nu, 100);
	if (nu->left || nu->mt.under_way)
		mt_wrong("%u ends were not told, %u messages have no completion", nu->left,
			 nu->mt.under_way);
	mt_say("sent=%llu completed=%u", (unsigned long long)nu->sent, nu->completed);
	mt_close(&nu->mt);
	free(nu);
	return 0;
}
