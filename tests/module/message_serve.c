// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Sends back what comes: small messages at once, large ones when they have been fetched; and the
 * client that compares.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/module/message.h"

#define SV_SLOTS 256
#define SV_SLOT 8192 /* bytes; larger messages are discarded */
#define SV_DEPTH 128 /* each client has fewer under way */
#define SV_WAITING 4096 /* large messages without a slot, most */
#define SV_SLOT_MARK (1ULL << 32) /* user_data of what uses a slot has this and its number */

/*
 * What serves.
 * @slot: message that a slot has; connection 0: it is free. When it is fetched it is sent back.
 * @waiting: large messages without a slot.
 */
struct sv {
	struct mt mt;
	struct krcore_letter slot[SV_SLOTS];
	struct krcore_letter waiting[SV_WAITING];
	unsigned int first, nr;
	unsigned int offers, refused, messages, large, discarded, ended, died, failed;
};

/* The outcome of a message to a connection that has died meanwhile is of no interest. */
static void sv_send(struct sv *sv, const struct krcore_send_wr *wr)
{
	int err = krcore_send_many(sv->mt.node, wr, 1, NULL);

	if (err > 0)
		sv->mt.under_way++;
	else if (err == -EAGAIN)
		mt_wrong("connection %u: the client has more under way than it may",
			 wr->connection);
	else
		sv->failed++;
}

static void sv_fetch(struct sv *sv, const struct krcore_letter *letter, unsigned int slot)
{
	int err = krcore_fetch(sv->mt.node, letter, 0, &sv->mt.mr, sv->mt.memory + slot * SV_SLOT,
			       letter->length, 0, SV_SLOT_MARK | slot);

	if (err) {
		sv->failed++;
		return;
	}
	sv->slot[slot] = *letter;
	sv->mt.under_way++;
}

static void sv_fetch_waiting(struct sv *sv)
{
	unsigned int slot;

	for (slot = 0; slot < SV_SLOTS && sv->nr; slot++) {
		if (sv->slot[slot].connection)
			continue;
		sv_fetch(sv, &sv->waiting[sv->first], slot);
		sv->first = (sv->first + 1) % SV_WAITING;
		sv->nr--;
	}
}

static void sv_completion(struct sv *sv, const struct krcore_wc *wc)
{
	unsigned int slot = (unsigned int)wc->user_data;
	struct krcore_letter *letter;

	sv->failed += wc->status != 0;
	if (!(wc->user_data & SV_SLOT_MARK))
		return;
	letter = &sv->slot[slot];
	if (wc->opcode == KRCORE_OP_FETCH && !wc->status) {
		const struct krcore_send_wr back = {
			.user_data = wc->user_data,
			.addr = (uintptr_t)sv->mt.memory + slot * SV_SLOT,
			.connection = letter->connection,
			.mr = sv->mt.mr.handle,
			.length = letter->length,
			.imm = letter->imm,
		};
		unsigned int before = sv->mt.under_way;

		sv_send(sv, &back);
		if (sv->mt.under_way > before)
			return; /* the slot is in use until the peer has it */
	}
	letter->connection = 0;
}

static void sv_offer(struct sv *sv, const struct krcore_letter *letter)
{
	const struct krcore_connection_options opts = {
		.size = sizeof(opts), .user = "echo", .user_len = 4, .depth = SV_DEPTH
	};
	struct krcore_peer peer;

	sv->offers++;
	if (krcore_letter_peer(letter, sv->mt.buffer, &peer))
		mt_die("who it is");
	if (peer.user_len == 2 && !memcmp(peer.user, "no", 2)) {
		if (krcore_refuse(sv->mt.node, letter->connection))
			mt_die("refusing");
		sv->refused++;
	} else if (krcore_accept(sv->mt.node, letter->connection, &opts)) {
		sv->failed++;
		krcore_refuse(sv->mt.node, letter->connection);
	}
}

static void sv_large(struct sv *sv, const struct krcore_letter *letter)
{
	sv->large++;
	if (letter->length > SV_SLOT) {
		sv->discarded++;
		if (krcore_discard(sv->mt.node, letter))
			sv->failed++;
		return;
	}
	if (sv->nr == SV_WAITING)
		mt_wrong("more large messages than clients may have under way");
	sv->waiting[(sv->first + sv->nr++) % SV_WAITING] = *letter;
}

static void sv_letter(struct sv *sv, const struct krcore_letter *letter)
{
	const struct krcore_send_wr back = {
		.addr = (uintptr_t)mt_bytes(&sv->mt, letter),
		.connection = letter->connection,
		.length = letter->length,
		.imm = letter->imm,
	};
	int err;

	switch (letter->kind) {
	case KRCORE_LETTER_OFFER:
		sv_offer(sv, letter);
		return;
	case KRCORE_LETTER_MESSAGE:
		sv->messages++;
		sv_send(sv, &back);
		return;
	case KRCORE_LETTER_LARGE:
		sv_large(sv, letter);
		return;
	case KRCORE_LETTER_ENDED:
		sv->ended++;
		break;
	case KRCORE_LETTER_DIED:
		sv->died++;
		break;
	default:
		mt_wrong("a letter of kind %u", letter->kind);
	}
	/* its waiting letters are found void when they are fetched */
	err = krcore_shutdown(sv->mt.node, letter->connection, KRCORE_SHUT_CLOSE);
	/* one that has ended and died may be told of both with one call, and be closed by then */
	if (err && (err != -ENOENT || letter->kind != KRCORE_LETTER_DIED))
		mt_die("closing");
}

int mt_serve(uint16_t service, int deaf)
{
	struct sv *sv = calloc(1, sizeof(*sv));
	unsigned int nr, i;

	if (!sv)
		mt_wrong("no memory");
	mt_until_term();
	mt_open(&sv->mt, (size_t)SV_SLOTS * SV_SLOT);
	if (krcore_listen(sv->mt.node, service, 128, 30000))
		mt_die("listening");
	mt_say("listening");
	while (!mt_over() && !(deaf && sv->offers)) {
		nr = mt_take(&sv->mt, sv->nr || sv->mt.under_way ? 20 : 1000);
		for (i = 0; i < nr; i++)
			sv_letter(sv, &sv->mt.letters[i]);
		while ((nr = mt_completions(&sv->mt)))
			for (i = 0; i < nr; i++)
				sv_completion(sv, &sv->mt.wcs[i]);
		sv_fetch_waiting(sv);
	}
	while (!mt_over())
		usleep(100000);
	mt_say("offers=%u refused=%u messages=%u large=%u discarded=%u ended=%u died=%u failed=%u",
	       sv->offers, sv->refused, sv->messages, sv->large, sv->discarded, sv->ended, sv->died,
	       sv->failed);
	mt_close(&sv->mt);
	free(sv);
	return 0;
}

#define EC_WINDOW 8 /* messages of a connection that have not come back */
#define EC_SLOT 4096 /* of a large message */
#define EC_LARGE_EVERY 16

/*
 * A connection of the client.
 * @sent, @back: copied messages. @large: number of the one that is under way, 0: none.
 * @held: its completion has not come. @rounds: left to send.
 */
struct ec_conn {
	uint32_t connection;
	unsigned int next, sent, back, large, large_bytes, rounds;
	int held, open, fetching;
};

struct ec {
	struct mt mt;
	struct ec_conn conn[MT_CONNECTIONS];
	unsigned int connections, open, left, echoed, large;
	uint64_t bytes;
};

static uint64_t ec_seed(const struct ec *ec, const struct ec_conn *c, unsigned int number)
{
	return (uint64_t)(c - ec->conn) << 32 | number;
}

static char *ec_memory(struct ec *ec, const struct ec_conn *c, int received)
{
	return ec->mt.memory + ((size_t)(c - ec->conn) * 2 + (size_t)received) * EC_SLOT;
}

static unsigned int ec_length(const struct ec_conn *c, unsigned int number)
{
	(void)c;
	if (number % EC_LARGE_EVERY == EC_LARGE_EVERY - 1)
		return KRCORE_SEND_COPY_MAX + 1 + number % (4096 - KRCORE_SEND_COPY_MAX);
	return number * 29 % (KRCORE_SEND_COPY_MAX + 1);
}

/* Return: whether one was sent. */
static int ec_send(struct ec *ec, struct ec_conn *c)
{
	unsigned int number = c->next, bytes = ec_length(c, number);
	int large = bytes > KRCORE_SEND_COPY_MAX;
	char copied[KRCORE_SEND_COPY_MAX];
	struct krcore_send_wr wr = {
		.user_data = (uint64_t)(c - ec->conn) << 1 | (unsigned int)large,
		.connection = c->connection,
		.mr = large ? ec->mt.mr.handle : 0,
		.length = bytes,
		.imm = number,
	};
	char *from = large ? ec_memory(ec, c, 0) : copied;
	int err;

	if (!c->rounds || (large ? c->large || c->held : c->sent - c->back >= EC_WINDOW))
		return 0;
	mt_fill(from, bytes, ec_seed(ec, c, number));
	wr.addr = (uintptr_t)from;
	err = krcore_send_many(ec->mt.node, &wr, 1, NULL);
	if (err == -EAGAIN)
		return 0;
	if (err < 0)
		mt_die("sending");
	ec->mt.under_way++;
	c->rounds--;
	c->next++;
	if (large) {
		c->large = number;
		c->large_bytes = bytes;
		c->held = 1;
	} else {
		c->sent++;
	}
	return 1;
}

static struct ec_conn *ec_find(struct ec *ec, uint32_t connection)
{
	unsigned int i;

	for (i = 0; i < ec->connections; i++)
		if (ec->conn[i].connection == connection)
			return &ec->conn[i];
	mt_wrong("a letter of connection %u, which is none of ours", connection);
}

static void ec_message(struct ec *ec, struct ec_conn *c, const struct krcore_letter *letter)
{
	unsigned int number = c->back + c->back / (EC_LARGE_EVERY - 1);

	if (letter->imm != number || letter->length != ec_length(c, number))
		mt_wrong("message %u of %u bytes came back as %u of %u", number,
			 ec_length(c, number), letter->imm, letter->length);
	if (!mt_filled(mt_bytes(&ec->mt, letter), letter->length, ec_seed(ec, c, number)))
		mt_wrong("message %u of connection %u came back with other bytes", number,
			 c->connection);
	c->back++;
	ec->echoed++;
	ec->bytes += letter->length;
	ec->left--;
}

static void ec_letter(struct ec *ec, const struct krcore_letter *letter)
{
	struct ec_conn *c = ec_find(ec, letter->connection);
	struct krcore_peer peer;

	if (letter->kind == KRCORE_LETTER_OPENED && !c->open) {
		if (krcore_letter_peer(letter, ec->mt.buffer, &peer))
			mt_die("who it is");
		if (peer.user_len != 4 || memcmp(peer.user, "echo", 4))
			mt_wrong("the peer says something else");
		c->open = 1;
		ec->open++;
	} else if (letter->kind == KRCORE_LETTER_MESSAGE) {
		ec_message(ec, c, letter);
	} else if (letter->kind == KRCORE_LETTER_LARGE && letter->imm == c->large &&
		   letter->length == c->large_bytes && !c->fetching) {
		if (krcore_fetch(ec->mt.node, letter, 0, &ec->mt.mr, ec_memory(ec, c, 1),
				 letter->length, 0, (uint64_t)(c - ec->conn)))
			mt_die("fetching");
		c->fetching = 1;
		ec->mt.under_way++;
	} else {
		mt_wrong("connection %u: letter of kind %u, status %d, number %u",
			 letter->connection, letter->kind, letter->status, letter->imm);
	}
}

static void ec_completion(struct ec *ec, const struct krcore_wc *wc)
{
	struct ec_conn *c;

	if (wc->status)
		mt_wrong("a completion of connection %u: %s", wc->queue, strerror(-wc->status));
	if (wc->opcode == KRCORE_OP_SEND) {
		c = &ec->conn[wc->user_data >> 1];
		if (wc->user_data & 1)
			c->held = 0;
		return;
	}
	c = &ec->conn[wc->user_data];
	if (!mt_filled(ec_memory(ec, c, 1), c->large_bytes, ec_seed(ec, c, c->large)))
		mt_wrong("large message %u of connection %u has other bytes", c->large, wc->queue);
	ec->large++;
	ec->left--;
	ec->bytes += c->large_bytes;
	c->large = 0;
	c->fetching = 0;
}

/* Send what may be sent, and take what has come, until nothing is left or nothing comes. */
static void ec_run(struct ec *ec)
{
	unsigned int nr, i, idle = 0;

	while ((ec->left || ec->mt.under_way) && idle < MT_TIMEOUT_MS) {
		for (i = 0; i < ec->connections; i++)
			while (ec_send(ec, &ec->conn[i]))
				;
		nr = mt_take(&ec->mt, 50);
		idle = nr ? 0 : idle + 50;
		for (i = 0; i < nr; i++)
			ec_letter(ec, &ec->mt.letters[i]);
		while ((nr = mt_completions(&ec->mt)))
			for (i = 0; i < nr; i++)
				ec_completion(ec, &ec->mt.wcs[i]);
	}
	if (ec->left || ec->mt.under_way)
		mt_wrong("%u messages did not come back, %u have no completion", ec->left,
			 ec->mt.under_way);
}

/* Opens @connections on a node that is open, beside those that the caller has. */
static void ec_begin(struct ec *ec, const struct krcore_key *peer, unsigned int connections,
		     unsigned int rounds)
{
	unsigned int i;

	ec->connections = connections;
	ec->left = connections * rounds;
	for (i = 0; i < connections; i++) {
		ec->conn[i].connection = mt_connect(&ec->mt, peer, "yes", 64);
		ec->conn[i].rounds = rounds;
	}
}

int mt_echo(const struct krcore_key *peer, unsigned int connections, unsigned int rounds)
{
	struct ec *ec = calloc(1, sizeof(*ec));
	unsigned int i;

	if (!ec)
		mt_wrong("no memory");
	mt_open(&ec->mt, (size_t)connections * 2 * EC_SLOT);
	ec_begin(ec, peer, connections, rounds);
	ec_run(ec);
	for (i = 0; i < connections; i++)
		if (krcore_shutdown(ec->mt.node, ec->conn[i].connection, KRCORE_SHUT_CLOSE))
			mt_die("closing");
	mt_say("open=%u echoed=%u large=%u bytes=%llu", ec->open, ec->echoed, ec->large,
	       (unsigned long long)ec->bytes);
	mt_close(&ec->mt);
	free(ec);
	return 0;
}

int mt_beside(const struct krcore_key *good, const struct krcore_key *deaf, unsigned int rounds)
{
	struct ec *ec = calloc(1, sizeof(*ec));
	static const char bytes[1024];
	unsigned int filled = 0, quiet;
	uint32_t stuck;

	if (!ec)
		mt_wrong("no memory");
	mt_open(&ec->mt, 2 * EC_SLOT);
	stuck = mt_connect(&ec->mt, deaf, "yes", 64);
	if (mt_settled(&ec->mt, stuck))
		mt_wrong("the deaf one did not accept");
	/* until nothing of it moves any more */
	for (quiet = 0; quiet < 50;) {
		unsigned int nr = mt_completions(&ec->mt);
		int err = krcore_send(ec->mt.node, stuck, bytes, sizeof(bytes), 0);

		if (err && err != -EAGAIN)
			mt_die("sending to the deaf one");
		ec->mt.under_way += !err;
		filled += !err;
		quiet = nr || !err ? 0 : quiet + 1;
		if (quiet)
			usleep(100000);
	}
	mt_say("filled=%u stuck=%u", filled, ec->mt.under_way);
	if (!ec->mt.under_way)
		mt_wrong("all has arrived: it is not full");
	/* what is stuck stays so; ec_run() waits for its own alone */
	filled = ec->mt.under_way;
	ec->mt.under_way = 0;
	ec_begin(ec, good, 1, rounds);
	ec_run(ec);
	mt_say("stuck=%u echoed=%u large=%u", filled, ec->echoed, ec->large);
	mt_close(&ec->mt);
	free(ec);
	return 0;
}
