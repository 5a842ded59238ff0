// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Messages that are announced, and buffers that were posted for them: each message is in the buffer
 * that its letter names when that has completed, none is lost or comes twice, and what no buffer fits
 * is fetched. The letters of a connection come in order, whatever becomes of the buffers.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/module/message.h"

#define PO_BUFFERS 8U
#define PO_BYTES (512U << 10) /* of each but the first, which is too small for most */
#define PO_SPARE 2U /* as large as so many of them: where one is fetched to */
#define PO_SMALL 4096U
#define PO_SLOTS 4U /* messages that a sender has under way */
#define PO_NO_MESSAGE UINT32_MAX

/*
 * A buffer. @user_data: of its last posting; low bits: which buffer. @letter: the message that goes
 * there, or PO_NO_MESSAGE; @length: its bytes. @done: it has completed.
 */
struct po_buffer {
	uint64_t user_data;
	uint32_t letter, length;
	int done;
};

/* One that collects. @next: number that comes next, by connection. */
struct po {
	struct mt mt;
	struct po_buffer buffer[PO_BUFFERS];
	uint32_t next[MT_CONNECTIONS];
	uint64_t posts;
	uint32_t fetching; /* number of the message that is fetched to the spare place */
	unsigned int offers, posted, fetched, ended;
};

static char *po_place(const struct po *po, unsigned int i)
{
	return po->mt.memory + (size_t)i * PO_BYTES;
}

static void po_post(struct po *po, unsigned int i)
{
	struct po_buffer *buffer = &po->buffer[i];

	buffer->user_data = po->posts++ * PO_BUFFERS + i;
	buffer->letter = PO_NO_MESSAGE;
	buffer->done = 0;
	memset(po_place(po, i), 0xee, PO_SMALL);
	if (krcore_post_recv(po->mt.node, &po->mt.mr, po_place(po, i), i ? PO_BYTES : PO_SMALL,
			     buffer->user_data))
		mt_die("posting a buffer");
	po->mt.under_way++;
}

/* The buffer that was posted with this; it is posted still. */
static unsigned int po_find(const struct po *po, uint64_t user_data)
{
	unsigned int i = (unsigned int)(user_data % PO_BUFFERS);

	if (po->buffer[i].user_data != user_data)
		mt_wrong("posting %llu of buffer %u is not the last one",
			 (unsigned long long)user_data, i);
	return i;
}

/* A buffer has its letter, or has completed: with both the message is looked at. */
static void po_settle(struct po *po, unsigned int i)
{
	struct po_buffer *buffer = &po->buffer[i];

	if (!buffer->done || buffer->letter == PO_NO_MESSAGE)
		return;
	if (!mt_filled(po_place(po, i), buffer->length, buffer->letter))
		mt_wrong("message %u is not in its buffer", buffer->letter);
	po->posted++;
	po_post(po, i);
}

static void po_fetch(struct po *po, const struct krcore_letter *letter)
{
	int err = krcore_fetch(po->mt.node, letter, 0, &po->mt.mr, po_place(po, PO_BUFFERS),
			       letter->length, 0, UINT64_MAX);

	if (err)
		mt_die("fetching");
	po->fetching = letter->imm;
	po->mt.under_way++;
}

/* A message has been fetched to the spare place. */
static void po_had(struct po *po, uint32_t bytes)
{
	if (!mt_filled(po_place(po, PO_BUFFERS), bytes, po->fetching))
		mt_wrong("message %u is not what was fetched", po->fetching);
	po->fetching = PO_NO_MESSAGE;
	po->fetched++;
}

/* A buffer has completed. */
static void po_done(struct po *po, const struct krcore_wc *wc)
{
	unsigned int at = po_find(po, wc->user_data);
	struct po_buffer *buffer = &po->buffer[at];

	if (wc->opcode != KRCORE_OP_RECV || !wc->queue)
		mt_wrong("a completion of kind %u, connection %u", wc->opcode, wc->queue);
	if (buffer->letter != PO_NO_MESSAGE && buffer->length != wc->bytes)
		mt_wrong("%u bytes of %u", wc->bytes, buffer->length);
	buffer->done = 1;
	po_settle(po, at);
}

static void po_completions(struct po *po)
{
	unsigned int nr, i;

	while ((nr = mt_completions(&po->mt)))
		for (i = 0; i < nr; i++) {
			const struct krcore_wc *wc = &po->mt.wcs[i];

			if (wc->status)
				mt_wrong("a request of kind %u ended with %s", wc->opcode,
					 strerror(-wc->status));
			if (wc->opcode == KRCORE_OP_FETCH)
				po_had(po, wc->bytes);
			else
				po_done(po, wc);
		}
}

static void po_message(struct po *po, const struct krcore_letter *letter)
{
	unsigned int at;

	if (letter->connection >= MT_CONNECTIONS || letter->imm != po->next[letter->connection])
		mt_wrong("message %u of connection %u", letter->imm, letter->connection);
	po->next[letter->connection]++;
	if (!(letter->flags & KRCORE_LETTER_POSTED)) {
		po_fetch(po, letter);
		while (po->fetching != PO_NO_MESSAGE) { /* one place for them */
			if (krcore_wait(po->mt.node, MT_TIMEOUT_MS))
				mt_die("waiting for a fetch");
			po_completions(po);
		}
		return;
	}
	if (krcore_fetch(po->mt.node, letter, 0, &po->mt.mr, po->mt.memory, 1, 0, 0) != -EINVAL)
		mt_wrong("what goes to a buffer can be fetched, too");
	at = po_find(po, letter->seq);
	po->buffer[at].letter = letter->imm;
	po->buffer[at].length = letter->length;
	po_settle(po, at);
}

static void po_letter(struct po *po, const struct krcore_letter *letter)
{
	switch (letter->kind) {
	case KRCORE_LETTER_OFFER:
		po->offers++;
		if (krcore_accept(po->mt.node, letter->connection, NULL))
			mt_die("accepting");
		break;
	case KRCORE_LETTER_LARGE:
		po_message(po, letter);
		break;
	default:
		po->ended++;
		krcore_shutdown(po->mt.node, letter->connection, KRCORE_SHUT_CLOSE);
	}
}

/* Take all buffers back, in the two ways that there are. */
static void po_take_back(struct po *po)
{
	unsigned int i, nr, back = 0;

	if (krcore_cancel_recv(po->mt.node, po->buffer[1].user_data))
		mt_die("taking a buffer back");
	if (krcore_cancel_recv(po->mt.node, po->buffer[1].user_data) != -ENOENT)
		mt_wrong("a buffer can be taken back twice");
	if (krcore_mr_dereg(po->mt.node, &po->mt.mr))
		mt_die("deregistering the buffers' memory");
	while ((nr = mt_completions(&po->mt)))
		for (i = 0; i < nr; i++)
			back += po->mt.wcs[i].opcode == KRCORE_OP_RECV &&
				po->mt.wcs[i].status == -ECANCELED && !po->mt.wcs[i].queue;
	if (back != PO_BUFFERS || po->mt.under_way)
		mt_wrong("%u of %u buffers came back, %u under way", back, PO_BUFFERS,
			 po->mt.under_way);
}

int mt_collect(uint16_t service)
{
	struct po *po = calloc(1, sizeof(*po));
	unsigned int i, nr = 0;

	if (!po)
		mt_wrong("no memory");
	mt_until_term();
	mt_open(&po->mt, (size_t)(PO_BUFFERS + PO_SPARE) * PO_BYTES);
	po->fetching = PO_NO_MESSAGE;
	for (i = 0; i < PO_BUFFERS; i++)
		po_post(po, i);
	if (krcore_listen(po->mt.node, service, 16, 30000))
		mt_die("listening");
	mt_say("listening");
	while (!mt_over() || nr) {
		nr = mt_take(&po->mt, 100);
		for (i = 0; i < nr; i++)
			po_letter(po, &po->mt.letters[i]);
		po_completions(po);
	}
	po_take_back(po);
	mt_say("offers=%u posted=%u fetched=%u ended=%u", po->offers, po->posted, po->fetched,
	       po->ended);
	mt_close(&po->mt);
	free(po);
	return 0;
}

/* Announce a message of the slot whose turn it is. */
static void po_announce(struct mt *mt, uint32_t connection, uint32_t number, unsigned int bytes)
{
	char *slot = mt->memory + (size_t)(number % PO_SLOTS) * bytes;
	const struct krcore_send_wr wr = {
		.addr = (uintptr_t)slot,
		.connection = connection,
		.mr = mt->mr.handle,
		.length = bytes,
		.imm = number,
	};

	mt_fill(slot, bytes, number);
	if (krcore_send_many(mt->node, &wr, 1, NULL) != 1)
		mt_die("announcing");
	mt->under_way++;
}

/* Wait for completions, in whichever order they come. */
static void po_await(struct mt *mt)
{
	unsigned int nr, i;

	if (krcore_wait(mt->node, MT_TIMEOUT_MS))
		mt_die("waiting for a completion");
	nr = mt_completions(mt);
	for (i = 0; i < nr; i++)
		if (mt->wcs[i].status)
			mt_wrong("a message ended with %s", strerror(-mt->wcs[i].status));
}

int mt_announce(const struct krcore_key *peer, unsigned int count, unsigned int bytes)
{
	uint32_t connection, number;
	struct mt mt;
	int err;

	mt_open(&mt, (size_t)PO_SLOTS * bytes);
	connection = mt_connect(&mt, peer, "announce", PO_SLOTS);
	err = mt_settled(&mt, connection);
	if (err)
		mt_wrong("connecting: %s", strerror(-err));
	for (number = 0; number < count;) {
		po_announce(&mt, connection, number++, bytes);
		while (mt.under_way && (number % PO_SLOTS == 0 || number == count))
			po_await(&mt);
	}
	if (krcore_shutdown(mt.node, connection, KRCORE_SHUT_CLOSE))
		mt_die("closing");
	mt_say("announced=%u", count);
	mt_close(&mt);
	return 0;
}
