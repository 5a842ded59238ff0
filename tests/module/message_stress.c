// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Numbered messages while anything happens to the network and to nodes. The restless one sends by
 * several connections, and opens another one in the place of each that dies: that is another turn of
 * it. The judge takes them. Of each turn both say in the end how many there were: what was completed
 * has come, what has come was sent, and it came once, in order, with its bytes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/module/message.h"

#define RE_CONNECTIONS 4
#define RE_DEPTH 32
#define RE_AT_ONCE 8
#define RE_LARGE_EVERY 32
#define RE_LARGE 8192 /* bytes of each */
#define RE_PAUSE_US 200000 /* before a node or a connection is tried again */
#define RE_TWICE 101
#define RE_RING 1024
#define RE_INBOX 512
#define JU_CONNECTIONS 64
#define JU_TURNS 16384

/* What the opener says of itself. */
struct re_name {
	uint32_t id, turn;
};

static unsigned int re_length(unsigned int number)
{
	return number % RE_LARGE_EVERY == RE_LARGE_EVERY - 1 ? RE_LARGE : number * 53 % 1500;
}

/*
 * @next: number of the next message. @completed: of those that were copied, in order. @larges: of the
 * announced ones. @failed: one of the copied has, so no later one may complete well. @held: memory of a
 * large one is in use, of this turn or of one before.
 */
struct re_conn {
	uint32_t connection, turn;
	unsigned int next, completed, larges;
	int failed, held;
};

/* @twice: one of so many messages is sent twice, with the same number: what the judge has to see. */
struct re {
	struct mt mt;
	int open;
	unsigned int twice, taken;
	uint32_t id;
	unsigned int turns, opens;
	struct krcore_key peer;
	struct re_conn conn[RE_CONNECTIONS];
};

/* A turn is over. */
static void re_record(struct re *re, struct re_conn *c)
{
	if (!c->connection)
		return;
	mt_say("connection id=%u turn=%u sent=%u completed=%u larges=%u",
	       re->id * RE_CONNECTIONS + (unsigned int)(c - re->conn), c->turn, c->next,
	       c->completed, c->larges);
	c->connection = 0;
	re->turns++;
}

/* The node is gone, and all that was of it. */
static void re_lost(struct re *re)
{
	unsigned int i;

	for (i = 0; i < RE_CONNECTIONS; i++) {
		re_record(re, &re->conn[i]);
		re->conn[i].held = 0;
	}
	mt_close(&re->mt);
	re->open = 0;
	usleep(RE_PAUSE_US);
}

static void re_open(struct re *re)
{
	if (mt_open_some(&re->mt, RE_RING, RE_INBOX, (size_t)RE_CONNECTIONS * RE_LARGE)) {
		usleep(RE_PAUSE_US);
		return;
	}
	re->open = 1;
	re->opens++;
}

static int re_connect(struct re *re, struct re_conn *c)
{
	const struct re_name name = { .id = re->id * RE_CONNECTIONS + (uint32_t)(c - re->conn),
				      .turn = c->turn + 1 };
	const struct krcore_connection_options opts = { .size = sizeof(opts),
							.user = &name,
							.user_len = sizeof(name),
							.depth = RE_DEPTH,
							.timeout_ms = 1000 };
	int err;

	if (c->held) /* the last turn's memory may still be READ */
		return 0;
	err = krcore_connect(re->mt.node, &re->peer, &opts, &c->connection);
	if (err) {
		c->connection = 0;
		return err;
	}
	c->turn++;
	c->next = c->completed = c->larges = 0;
	c->failed = 0;
	return 0;
}

/* Return: 1: one was sent; 0; or an error. */
static int re_send(struct re *re, struct re_conn *c)
{
	unsigned int slot = (unsigned int)(c - re->conn), bytes = re_length(c->next);
	char *large = re->mt.memory + (size_t)slot * RE_LARGE, copied[1500];
	struct krcore_send_wr wr = {
		.user_data = (uint64_t)c->turn << 8 | slot << 1 | (bytes == RE_LARGE),
		.connection = c->connection,
		.length = bytes,
		.imm = c->next,
	};
	int taken;

	if (bytes == RE_LARGE && c->held)
		return 0;
	mt_fill(bytes == RE_LARGE ? large : copied, bytes, c->next);
	wr.addr = (uintptr_t)(bytes == RE_LARGE ? large : copied);
	wr.mr = bytes == RE_LARGE ? re->mt.mr.handle : 0;
	taken = krcore_send_many(re->mt.node, &wr, 1, NULL);
	if (taken < 0)
		return taken == -EAGAIN ? 0 : taken;
	c->held |= bytes == RE_LARGE;
	if (!re->twice || ++re->taken % re->twice)
		c->next++;
	return 1;
}

/* Send some, and open what is not. Return: 0, or -ENODEV: the node is gone. */
static int re_go_on(struct re *re)
{
	unsigned int i, nr;
	int err = 0;

	for (i = 0; i < RE_CONNECTIONS && err != -ENODEV; i++) {
		struct re_conn *c = &re->conn[i];

		err = c->connection ? 1 : re_connect(re, c);
		for (nr = 0; err > 0 && nr < RE_AT_ONCE; nr++)
			err = re_send(re, c); /* an error is what the connection dies of */
	}
	return err == -ENODEV ? err : 0;
}

static void re_completion(struct re *re, const struct krcore_wc *wc)
{
	struct re_conn *c = &re->conn[wc->user_data >> 1 & 0x7f];
	int large = (int)(wc->user_data & 1);

	if (large)
		c->held = 0;
	if (!c->connection || wc->user_data >> 8 != c->turn)
		return; /* of a turn that is over; then it can only be an announced one */
	if (large) {
		c->larges += !wc->status;
		return;
	}
	if (!wc->status && c->failed)
		mt_wrong("turn %u: a message completed behind one that failed", c->turn);
	c->failed |= wc->status != 0;
	c->completed += !wc->status;
}

/* Return: how many letters there were, or an error: the node is gone. */
static int re_take(struct re *re, int timeout_ms)
{
	int nr = krcore_recv(re->mt.node, re->mt.letters, MT_LETTERS, re->mt.buffer, MT_BUFFER,
			     timeout_ms);
	int done, i;
	struct re_conn *c;

	/* what was completed before a connection died is in the ring by now */
	while ((done = krcore_poll(re->mt.node, re->mt.wcs, MT_LETTERS)) > 0)
		for (i = 0; i < done; i++)
			re_completion(re, &re->mt.wcs[i]);
	for (i = 0; i < nr; i++) {
		for (c = re->conn; c < re->conn + RE_CONNECTIONS; c++)
			if (c->connection == re->mt.letters[i].connection)
				break;
		if (c == re->conn + RE_CONNECTIONS ||
		    re->mt.letters[i].kind == KRCORE_LETTER_MESSAGE)
			mt_wrong("a letter of kind %u of connection %u", re->mt.letters[i].kind,
				 re->mt.letters[i].connection);
		if (re->mt.letters[i].kind != KRCORE_LETTER_DIED)
			continue;
		krcore_shutdown(re->mt.node, c->connection, KRCORE_SHUT_CLOSE);
		re_record(re, c);
	}
	return nr == -ETIMEDOUT || nr == -EINTR ? 0 : nr;
}

/* Connections of which not all that was sent has completed. */
static unsigned int re_undone(const struct re *re)
{
	const struct re_conn *c;
	unsigned int undone = 0;

	for (c = re->conn; c < re->conn + RE_CONNECTIONS; c++)
		undone += c->connection && c->completed + c->larges < c->next;
	return undone;
}

/* End each connection, when all that was sent has completed or it has died. */
static void re_finish(struct re *re)
{
	unsigned int i, waited, undone;

	for (waited = 0; re->open && re_undone(re) && waited < MT_TIMEOUT_MS; waited += 100)
		if (re_take(re, 100) < 0)
			re_lost(re);
	undone = re_undone(re);
	for (i = 0; i < RE_CONNECTIONS; i++)
		re_record(re, &re->conn[i]);
	mt_say("turns=%u opens=%u undone=%u", re->turns, re->opens, undone);
}

int mt_restless(const struct krcore_key *peer, uint32_t id, int twice)
{
	struct re *re = calloc(1, sizeof(*re));

	if (!re)
		mt_wrong("no memory");
	mt_until_term();
	re->peer = *peer;
	re->id = id;
	re->twice = twice ? RE_TWICE : 0;
	mt_say("restless");
	while (!mt_over()) {
		if (!re->open)
			re_open(re);
		else if (re_go_on(re) || re_take(re, 20) < 0)
			re_lost(re);
	}
	re_finish(re);
	if (re->open)
		mt_close(&re->mt);
	free(re);
	return 0;
}

/* ---- the judge */

/* @connection: 0: it is over. @count: messages that came, @larges of them announced and fetched. */
struct ju_turn {
	struct re_name name;
	uint32_t connection;
	unsigned int count, larges;
};

struct ju {
	struct mt mt;
	struct ju_turn turn[JU_TURNS];
	unsigned int turns;
	struct krcore_letter waiting[JU_CONNECTIONS]; /* large ones, in order */
	unsigned int first, nr, fetching, unfetched;
};

/* Return: the turn of a connection, or NULL: it is over. */
static struct ju_turn *ju_alive(struct ju *ju, uint32_t connection)
{
	unsigned int i;

	for (i = ju->turns; i > 0; i--)
		if (ju->turn[i - 1].connection == connection)
			return &ju->turn[i - 1];
	return NULL;
}

static struct ju_turn *ju_find(struct ju *ju, uint32_t connection)
{
	struct ju_turn *turn = ju_alive(ju, connection);

	if (!turn)
		mt_wrong("connection %u is none of ours", connection);
	return turn;
}

static void ju_offer(struct ju *ju, const struct krcore_letter *letter)
{
	struct ju_turn *turn = &ju->turn[ju->turns];
	struct krcore_peer peer;

	if (krcore_letter_peer(letter, ju->mt.buffer, &peer) || peer.user_len != sizeof(turn->name))
		mt_wrong("it does not say who it is");
	if (ju->turns == JU_TURNS)
		mt_wrong("more than %u turns", JU_TURNS);
	if (krcore_accept(ju->mt.node, letter->connection, NULL)) {
		krcore_refuse(ju->mt.node, letter->connection); /* it has ended meanwhile */
		return;
	}
	*turn = (struct ju_turn){ .connection = letter->connection };
	memcpy(&turn->name, peer.user, sizeof(turn->name));
	ju->turns++;
}

static void ju_message(struct ju *ju, const struct krcore_letter *letter)
{
	struct ju_turn *turn = ju_find(ju, letter->connection);

	if (letter->imm != turn->count || letter->length != re_length(letter->imm))
		mt_wrong("turn %u of %u: message %u of %u bytes instead of number %u",
			 turn->name.turn, turn->name.id, letter->imm, letter->length, turn->count);
	turn->count++;
	if (letter->kind == KRCORE_LETTER_MESSAGE) {
		if (!mt_filled(mt_bytes(&ju->mt, letter), letter->length, letter->imm))
			mt_wrong("message %u has other bytes", letter->imm);
		return;
	}
	if (ju->nr == JU_CONNECTIONS)
		mt_wrong("too many large messages");
	ju->waiting[(ju->first + ju->nr++) % JU_CONNECTIONS] = *letter;
}

static void ju_letter(struct ju *ju, const struct krcore_letter *letter)
{
	switch (letter->kind) {
	case KRCORE_LETTER_OFFER:
		ju_offer(ju, letter);
		return;
	case KRCORE_LETTER_MESSAGE:
	case KRCORE_LETTER_LARGE:
		ju_message(ju, letter);
		return;
	default:
		if (krcore_shutdown(ju->mt.node, letter->connection, KRCORE_SHUT_CLOSE))
			mt_die("closing");
		ju_find(ju, letter->connection)->connection = 0;
	}
}

static void ju_next(struct ju *ju)
{
	ju->first = (ju->first + 1) % JU_CONNECTIONS;
	ju->nr--;
}

/* One READ at a time. That of a turn which is over fails. */
static void ju_fetch(struct ju *ju)
{
	const struct krcore_letter *letter;

	while (!ju->fetching && ju->nr) {
		letter = &ju->waiting[ju->first];
		if (!krcore_fetch(ju->mt.node, letter, 0, &ju->mt.mr, ju->mt.memory, letter->length,
				  0, 0)) {
			ju->fetching = 1;
			ju->mt.under_way++;
			return;
		}
		ju->unfetched++;
		ju_next(ju);
	}
}

static void ju_completions(struct ju *ju)
{
	const struct krcore_letter *letter = &ju->waiting[ju->first];
	struct ju_turn *turn;

	while (mt_completions(&ju->mt)) {
		turn = ju_alive(ju, letter->connection);
		if (ju->mt.wcs[0].status)
			ju->unfetched++;
		else if (!mt_filled(ju->mt.memory, letter->length, letter->imm))
			mt_wrong("large message %u has other bytes", letter->imm);
		else if (turn)
			turn->larges++;
		memset(ju->mt.memory, 0, RE_LARGE);
		ju->fetching = 0;
		ju_next(ju);
	}
}

int mt_judge(uint16_t service)
{
	struct ju *ju = calloc(1, sizeof(*ju));
	unsigned int nr, i;

	if (!ju)
		mt_wrong("no memory");
	mt_until_term();
	mt_open(&ju->mt, RE_LARGE);
	if (krcore_listen(ju->mt.node, service, 64, 30000))
		mt_die("listening");
	mt_say("listening");
	/* what has come is taken, then none may come for a while */
	for (nr = 1; nr || ju->fetching || !mt_over();) {
		nr = mt_take(&ju->mt, ju->fetching ? 20 : 500);
		for (i = 0; i < nr; i++)
			ju_letter(ju, &ju->mt.letters[i]);
		ju_completions(ju);
		ju_fetch(ju);
	}
	for (i = 0; i < ju->turns; i++)
		mt_say("connection id=%u turn=%u count=%u larges=%u", ju->turn[i].name.id,
		       ju->turn[i].name.turn, ju->turn[i].count, ju->turn[i].larges);
	mt_say("turns=%u unfetched=%u", ju->turns, ju->unfetched);
	mt_close(&ju->mt);
	free(ju);
	return 0;
}
