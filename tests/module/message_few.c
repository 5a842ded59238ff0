// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * One connection, and what comes of it: a large message whenever the test says so, an end that
 * waits for the other one's, and one that is refused; and one after another, whatever becomes of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/module/message.h"

#define FW_KNOCK_US 100000 /* until the next try */

/* Wait for a completion. Return: its status. */
static int fw_completion(struct mt *mt)
{
	unsigned int nr;

	while (!(nr = mt_completions(mt)))
		if (krcore_wait(mt->node, MT_TIMEOUT_MS))
			mt_die("waiting");
	if (nr != 1)
		mt_wrong("%u completions", nr);
	return mt->wcs[0].status;
}

int mt_large(const struct krcore_key *peer, unsigned int bytes)
{
	struct mt mt;
	uint32_t connection;
	unsigned int nr = 0;
	char line[16];
	int err;

	mt_open(&mt, bytes);
	connection = mt_connect(&mt, peer, "large", 4);
	err = mt_settled(&mt, connection);
	if (err)
		mt_wrong("connecting: %s", strerror(-err));
	mt_say("ready");
	while (fgets(line, sizeof(line), stdin)) {
		struct krcore_send_wr wr = {
			.addr = (uintptr_t)mt.memory,
			.connection = connection,
			.mr = mt.mr.handle,
			.length = bytes,
			.imm = nr,
		};

		mt_fill(mt.memory, bytes, nr);
		if (krcore_send_many(mt.node, &wr, 1, NULL) < 0)
			mt_die("sending");
		mt.under_way++;
		err = fw_completion(&mt);
		if (err)
			mt_wrong("message %u: %s", nr, strerror(-err));
		mt_say("done=%u", ++nr);
	}
	mt_close(&mt);
	return 0;
}

int mt_hold(const struct krcore_key *peer)
{
	struct mt mt;
	uint32_t connection;
	int err;

	mt_open(&mt, 0);
	connection = mt_connect(&mt, peer, "yes", 4);
	err = mt_settled(&mt, connection);
	if (err)
		mt_wrong("connecting: %s", strerror(-err));
	mt_say("open");
	while (!mt_take(&mt, 1000))
		;
	mt_say("kind=%u status=%d", mt.letters[0].kind, mt.letters[0].status);
	/* what is sent now tells the same */
	err = krcore_send(mt.node, connection, "x", 1, 0);
	if (mt.letters[0].kind == KRCORE_LETTER_DIED && err != mt.letters[0].status)
		mt_wrong("sending by a dead connection: %d", err);
	if (krcore_shutdown(mt.node, connection, KRCORE_SHUT_CLOSE))
		mt_die("closing");
	mt_close(&mt);
	return 0;
}

int mt_try(const struct krcore_key *peer, const char *says)
{
	struct mt mt;
	uint32_t connection;
	int status;

	mt_open(&mt, 0);
	connection = mt_connect(&mt, peer, says, 4);
	status = mt_settled(&mt, connection);
	if (krcore_shutdown(mt.node, connection, KRCORE_SHUT_CLOSE))
		mt_die("closing");
	mt_say("status=%d", status);
	mt_close(&mt);
	return 0;
}

/* Wait until a connection has an end, or this program. Return: whether the peer had accepted. */
static int fw_ended(struct mt *mt)
{
	int open = 0, over = 0;
	unsigned int i, nr;

	while (!over && !mt_over()) {
		nr = mt_take(mt, 1000);
		for (i = 0; i < nr; i++) {
			open |= mt->letters[i].kind == KRCORE_LETTER_OPENED;
			over |= mt->letters[i].kind == KRCORE_LETTER_DIED ||
				mt->letters[i].kind == KRCORE_LETTER_ENDED;
		}
	}
	return open;
}

int mt_knock(const struct krcore_key *peer)
{
	struct krcore_connection_options opts = { .size = sizeof(opts),
						  .depth = 4,
						  .timeout_ms = 30000 };
	unsigned int offers = 0, open = 0;
	uint32_t connection;
	struct mt mt;

	mt_until_term();
	mt_open(&mt, 0);
	mt_say("knocking");
	while (!mt_over()) {
		if (krcore_connect(mt.node, peer, &opts, &connection)) {
			usleep(FW_KNOCK_US); /* nobody listens yet */
			continue;
		}
		offers++;
		open += (unsigned int)fw_ended(&mt);
		if (krcore_shutdown(mt.node, connection, KRCORE_SHUT_CLOSE))
			mt_die("closing");
	}
	mt_say("offers=%u open=%u", offers, open);
	mt_close(&mt);
	return 0;
}
