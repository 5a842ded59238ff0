// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Two ends of a connection that go to a named point, say that they are there, and stay: one of them is
 * killed, the other one goes on at SIGTERM and says what it is told, and what has become of what it sent:
 * "ended STATUS" for each completion of that time, then a line of counts. What was sent, and what of that
 * has been acknowledged, stands behind "there".
 *
 *   offered	the opener has opened, and the listener has not looked
 *   taken	the listener has the offer, and has not answered
 *   open	accepted; nothing is under way
 *   backlog	the listener has messages that it has not taken
 *   announced	the listener has a large message that it has not fetched
 *   fetching	it is being fetched; from SIGTERM on
 *   half	the opener sends no more, and the listener knows
 *   closing	the opener has closed; the listener has no room for all that it sent before
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/module/message.h"

#define KI_LARGE (8U << 20) /* bytes of a large message */
#define KI_SMALL 1000
#define KI_BACKLOG 8 /* messages that wait; fewer than a window has */
#define KI_DEPTH 64 /* more than that */
#define KI_QUIET 30 /* tenths of a second in which nothing moves any more */

enum ki_point {
	KI_OFFERED,
	KI_TAKEN,
	KI_OPEN,
	KI_BACKLOGGED,
	KI_ANNOUNCED,
	KI_FETCHING,
	KI_HALF,
	KI_CLOSING,
	KI_POINTS,
};

static const char *const ki_names[] = { "offered",   "taken",	 "open", "backlog",
					"announced", "fetching", "half", "closing" };

/*
 * An end. @kind, @status: of the letter that was the last one. @sent: messages, large ones, too. The other
 * counts are of what was told to it.
 */
struct ki {
	struct mt mt;
	enum ki_point point;
	uint32_t connection;
	struct krcore_letter large;
	unsigned int sent, messages, completed, failed, ended, kind;
	int status;
};

static enum ki_point ki_point(const char *name)
{
	int point = 0;

	while (point < KI_POINTS && strcmp(name, ki_names[point]))
		point++;
	if (point == KI_POINTS)
		mt_wrong("no point is called %s", name);
	return (enum ki_point)point;
}

static struct ki *ki_open(const char *point)
{
	struct ki *ki = calloc(1, sizeof(*ki));

	if (!ki)
		mt_wrong("no memory");
	mt_until_term();
	ki->point = ki_point(point);
	mt_open(&ki->mt, ki->point == KI_ANNOUNCED || ki->point == KI_FETCHING ? KI_LARGE : 0);
	return ki;
}

/* Stay until SIGTERM. */
static void ki_there(const struct ki *ki)
{
	mt_say("there sent=%u completed=%u", ki->sent, ki->completed);
	while (!mt_over())
		usleep(10000);
}

static void ki_completions(struct ki *ki)
{
	unsigned int nr, i;

	while ((nr = mt_completions(&ki->mt)))
		for (i = 0; i < nr; i++) {
			ki->completed++;
			ki->failed += ki->mt.wcs[i].status != 0;
			if (mt_over())
				mt_say("ended %d", ki->mt.wcs[i].status);
		}
}

/* Take letters until one is of this kind, or for so long. Return: whether it was. */
static int ki_take(struct ki *ki, unsigned int kind, int timeout_ms)
{
	unsigned int nr = mt_take(&ki->mt, timeout_ms), i;
	int found = 0;

	for (i = 0; i < nr; i++) {
		const struct krcore_letter *letter = &ki->mt.letters[i];

		ki->messages += letter->kind == KRCORE_LETTER_MESSAGE;
		ki->ended += letter->kind == KRCORE_LETTER_ENDED;
		ki->kind = letter->kind;
		ki->status = letter->status;
		if (letter->kind == KRCORE_LETTER_LARGE)
			ki->large = *letter;
		found |= letter->kind == kind;
	}
	return found;
}

static void ki_await(struct ki *ki, unsigned int kind)
{
	if (!ki_take(ki, kind, MT_TIMEOUT_MS))
		mt_wrong("the last letter is of kind %u, none of kind %u", ki->kind, kind);
}

/* The end of it: the peer's, and of all that is under way. */
static void ki_until_told(struct ki *ki, int closed)
{
	int told = closed, waited;

	for (waited = 0; (!told || ki->mt.under_way) && waited < MT_TIMEOUT_MS; waited += 100) {
		told |= ki_take(ki, KRCORE_LETTER_DIED, 100);
		told |= ki->point == KI_CLOSING && ki->ended;
		ki_completions(ki);
	}
	mt_say("kind=%u status=%d messages=%u ends=%u completed=%u failed=%u stuck=%u", ki->kind,
	       ki->status, ki->messages, ki->ended, ki->completed, ki->failed, ki->mt.under_way);
	if (!closed && krcore_shutdown(ki->mt.node, ki->connection, KRCORE_SHUT_CLOSE))
		mt_die("closing");
	mt_close(&ki->mt);
	free(ki);
}

/* ---- the listener */

/* Return: the outcome of accepting. */
static int ki_accept(struct ki *ki)
{
	struct pollfd p = { .fd = krcore_node_fd(ki->mt.node), .events = POLLIN };

	if (ki->point == KI_OFFERED) {
		if (poll(&p, 1, MT_TIMEOUT_MS) != 1)
			mt_wrong("no offer comes");
		ki_there(ki);
	}
	ki_await(ki, KRCORE_LETTER_OFFER);
	ki->connection = ki->mt.letters[0].connection;
	if (ki->point == KI_TAKEN)
		ki_there(ki);
	return krcore_accept(ki->mt.node, ki->connection, NULL);
}

static void ki_fetch(struct ki *ki)
{
	int err = krcore_fetch(ki->mt.node, &ki->large, 0, &ki->mt.mr, ki->mt.memory,
			       ki->large.length, 0, 1);

	ki->mt.under_way += !err;
	ki->failed += err != 0;
	if (ki->point == KI_FETCHING)
		mt_say("fetching");
}

int mt_stand(uint16_t service, const char *point)
{
	struct ki *ki = ki_open(point);
	int err;

	if (krcore_listen(ki->mt.node, service, 8, 30000))
		mt_die("listening");
	mt_say("listening");
	err = ki_accept(ki);
	if (err && ki->point <= KI_TAKEN) { /* it knows already that the opener is dead */
		mt_say("accept=%d", err);
		mt_close(&ki->mt);
		free(ki);
		return 0;
	}
	if (err)
		mt_die("accepting");
	if (ki->point == KI_ANNOUNCED || ki->point == KI_FETCHING)
		ki_await(ki, KRCORE_LETTER_LARGE);
	else if (ki->point == KI_HALF)
		ki_await(ki, KRCORE_LETTER_ENDED);
	if (ki->point > KI_TAKEN)
		ki_there(ki);
	if (ki->point == KI_ANNOUNCED || ki->point == KI_FETCHING)
		ki_fetch(ki);
	ki_until_told(ki, 0);
	return 0;
}

/* ---- the opener */

/* Send until so many are sent, or there is no room for more and nothing moves. */
static void ki_send(struct ki *ki, unsigned int most)
{
	static const char bytes[KI_SMALL];
	unsigned int quiet = 0;

	while (ki->sent < most ? quiet < KI_QUIET : ki->mt.under_way) {
		int err = -EAGAIN;

		if (ki->sent < most)
			err = krcore_send(ki->mt.node, ki->connection, bytes, KI_SMALL, 0);

		if (err && err != -EAGAIN)
			mt_die("sending");
		ki->sent += !err;
		ki->mt.under_way += !err;
		quiet = err ? quiet + 1 : 0;
		if (err)
			usleep(100000);
		ki_completions(ki);
	}
}

static void ki_go(struct ki *ki)
{
	switch (ki->point) {
	case KI_BACKLOGGED:
		ki_send(ki, KI_BACKLOG);
		break;
	case KI_ANNOUNCED:
	case KI_FETCHING:
		if (krcore_send_large(ki->mt.node, ki->connection, &ki->mt.mr, ki->mt.memory,
				      KI_LARGE, 0))
			mt_die("announcing");
		ki->sent++;
		ki->mt.under_way++;
		break;
	case KI_HALF:
		if (krcore_shutdown(ki->mt.node, ki->connection, KRCORE_SHUT_SEND))
			mt_die("ending");
		break;
	case KI_CLOSING:
		ki_send(ki, 100000);
		if (krcore_shutdown(ki->mt.node, ki->connection, KRCORE_SHUT_CLOSE))
			mt_die("closing");
		break;
	default:
		break;
	}
}

int mt_point(const struct krcore_key *peer, const char *point)
{
	struct ki *ki = ki_open(point);
	int err;

	ki->connection = mt_connect(&ki->mt, peer, "yes", KI_DEPTH);
	if (ki->point > KI_TAKEN) {
		err = mt_settled(&ki->mt, ki->connection);
		if (err)
			mt_wrong("connecting: %s", strerror(-err));
		ki_go(ki);
	}
	ki_there(ki);
	ki_until_told(ki, ki->point == KI_CLOSING);
	return 0;
}
