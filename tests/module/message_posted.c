// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Messages that are announced, and buffers that were posted for them: each message is where its
 * letter says when that has completed, none is lost or comes twice, no two are at one place, and
 * what no buffer fits is fetched. The letters of a connection come in order, whatever becomes of
 * the buffers. A buffer for several messages completes behind the last of them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/module/message.h"

#define PO_BUFFERS 8U
#define PO_BYTES (512U << 10) /* of each but the first, which is too small for most */
#define PO_SPARE 2U /* as large as so many of them: where one is fetched to */
#define PO_SMALL 4096U
#define PO_SEVERAL 8U /* messages of a buffer for several */
#define PO_LEAST 4096U /* bytes left with which that takes more */
#define PO_NO_MESSAGE UINT32_MAX

/*
 * A message in a buffer. @letter: its number, or PO_NO_MESSAGE. @bytes: of its completion, if it is
 * @done; @failed: that had an error.
 */
struct po_message {
	uint32_t letter, connection, length, offset, bytes;
	int done, failed;
};

/*
 * A buffer. @user_data: of its last posting; low bits: which buffer. @message: @nr that have gone
 * there since. @over: it has completed.
 */
struct po_buffer {
	uint64_t user_data;
	struct po_message message[PO_SEVERAL];
	unsigned int nr;
	int over;
};

/*
 * One that collects. @next: number that comes next, by connection; @by: messages in buffers, too.
 * @fetching: number of the message that is fetched to the spare place. @messages: of a buffer.
 * @picky: what goes to no buffer is discarded, not fetched, and one that can't be READ is forgiven.
 */
struct po {
	struct mt mt;
	struct po_buffer buffer[PO_BUFFERS];
	uint32_t next[MT_CONNECTIONS];
	unsigned int by[MT_CONNECTIONS];
	uint64_t posts;
	uint32_t fetching, messages;
	unsigned int offers, posted, fetched, discarded, failed, ended;
	int picky;
};

static char *po_place(const struct po *po, unsigned int i)
{
	return po->mt.memory + (size_t)i * PO_BYTES;
}

static uint32_t po_bytes(unsigned int i)
{
	return i ? PO_BYTES : PO_SMALL;
}

/* Completions that a buffer may have. */
static unsigned int po_due(const struct po *po)
{
	return po->messages == 1 ? 1 : po->messages + 1;
}

static void po_post(struct po *po, unsigned int i)
{
	struct po_buffer *buffer = &po->buffer[i];
	char *place = po_place(po, i);
	int err;

	buffer->user_data = po->posts++ * PO_BUFFERS + i;
	buffer->nr = 0;
	buffer->over = 0;
	memset(place, 0xee, PO_SMALL);
	if (po->messages == 1)
		err = krcore_post_recv(po->mt.node, &po->mt.mr, place, po_bytes(i),
				       buffer->user_data);
	else
		err = krcore_post_recv_multi(po->mt.node, &po->mt.mr, place, po_bytes(i),
					     po->messages, PO_LEAST, buffer->user_data);
	if (err)
		mt_die("posting a buffer");
	po->mt.under_way += po_due(po);
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

/* The message of a buffer at an offset, of which a letter or a completion tells. */
static struct po_message *po_at(struct po *po, struct po_buffer *buffer, uint32_t offset)
{
	struct po_message *message = buffer->message;

	while (message < buffer->message + buffer->nr && message->offset != offset)
		message++;
	if (message < buffer->message + buffer->nr)
		return message;
	if (buffer->nr == po->messages || offset % KRCORE_POSTED_ALIGN)
		mt_wrong("message %u of a buffer, at %u", buffer->nr, offset);
	buffer->nr++;
	*message = (struct po_message){ .letter = PO_NO_MESSAGE, .offset = offset };
	return message;
}

/* A message of a buffer has its letter and its completion: it is looked at. */
static void po_look(struct po *po, unsigned int i, const struct po_message *message)
{
	if (message->failed) {
		po->failed++;
		return;
	}
	if (message->bytes != message->length || message->length > po_bytes(i) - message->offset)
		mt_wrong("%u bytes of %u", message->bytes, message->length);
	if (!mt_filled(po_place(po, i) + message->offset, message->length, message->letter))
		mt_wrong("message %u is not in its buffer", message->letter);
	po->by[message->connection]++;
	po->posted++;
}

/* A buffer has a letter or a completion more: with all, it is looked at, and posted again. */
static void po_settle(struct po *po, unsigned int at)
{
	struct po_buffer *buffer = &po->buffer[at];
	unsigned int i;

	for (i = 0; i < buffer->nr; i++)
		if (!buffer->message[i].done || buffer->message[i].letter == PO_NO_MESSAGE)
			return;
	if (!buffer->over)
		return;
	for (i = 0; i < buffer->nr; i++)
		po_look(po, at, &buffer->message[i]);
	po_post(po, at);
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

/* A buffer has completed: nothing more is due of it. */
static void po_over(struct po *po, struct po_buffer *buffer)
{
	buffer->over = 1;
	po->mt.under_way -= po->messages == 1 ? 0 : po->messages - buffer->nr;
}

/* A message of a buffer has completed, or the buffer: one for one message has both at once. */
static void po_done(struct po *po, const struct krcore_wc *wc)
{
	unsigned int at = po_find(po, wc->user_data);
	struct po_buffer *buffer = &po->buffer[at];
	int more = wc->flags & KRCORE_WC_MORE, message = more || po->messages == 1;

	if (wc->opcode != KRCORE_OP_RECV || !wc->queue != !message || buffer->over)
		mt_wrong("a completion of kind %u, connection %u", wc->opcode, wc->queue);
	if (message) {
		struct po_message *had = po_at(po, buffer, wc->offset);

		if (had->done)
			mt_wrong("two completions at %u", wc->offset);
		had->done = 1;
		had->failed = !!wc->status;
		had->bytes = wc->bytes;
	}
	if (!more)
		po_over(po, buffer);
	po_settle(po, at);
}

static void po_completions(struct po *po)
{
	unsigned int nr, i;

	while ((nr = mt_completions(&po->mt)))
		for (i = 0; i < nr; i++) {
			const struct krcore_wc *wc = &po->mt.wcs[i];

			if (wc->status && !(po->picky && wc->opcode == KRCORE_OP_RECV))
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
	struct po_message *message;
	unsigned int at;

	if (letter->connection >= MT_CONNECTIONS || letter->imm != po->next[letter->connection])
		mt_wrong("message %u of connection %u", letter->imm, letter->connection);
	po->next[letter->connection]++;
	if (!(letter->flags & KRCORE_LETTER_POSTED) && po->picky) {
		krcore_discard(po->mt.node, letter); /* or its connection has ended */
		po->discarded++;
		return;
	}
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
	message = po_at(po, &po->buffer[at], letter->offset);
	if (message->letter != PO_NO_MESSAGE)
		mt_wrong("messages %u and %u at one place", message->letter, letter->imm);
	message->letter = letter->imm;
	message->connection = letter->connection;
	message->length = letter->length;
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
		for (i = 0; i < nr; i++) {
			const struct krcore_wc *wc = &po->mt.wcs[i];

			if (wc->opcode != KRCORE_OP_RECV || wc->status != -ECANCELED || wc->queue)
				mt_wrong("a completion of kind %u at the end", wc->opcode);
			po_over(po, &po->buffer[po_find(po, wc->user_data)]);
			back++;
		}
	if (back != PO_BUFFERS || po->mt.under_way)
		mt_wrong("%u of %u buffers came back, %u under way", back, PO_BUFFERS,
			 po->mt.under_way);
}

/* The fewest messages that buffers had of a connection, of those that sent any. */
static unsigned int po_least(const struct po *po)
{
	unsigned int i, least = UINT32_MAX;

	for (i = 0; i < MT_CONNECTIONS; i++)
		if (po->next[i] && po->by[i] < least)
			least = po->by[i];
	return least;
}

int mt_collect(uint16_t service, int several, int picky)
{
	struct po *po = calloc(1, sizeof(*po));
	unsigned int i, nr = 0;

	if (!po)
		mt_wrong("no memory");
	mt_until_term();
	mt_open(&po->mt, (size_t)(PO_BUFFERS + PO_SPARE) * PO_BYTES);
	po->fetching = PO_NO_MESSAGE;
	po->messages = several ? PO_SEVERAL : 1;
	po->picky = picky;
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
	for (i = 0; i < PO_BUFFERS; i++) /* what is in those that take more */
		for (nr = 0; nr < po->buffer[i].nr; nr++)
			po_look(po, i, &po->buffer[i].message[nr]);
	po_take_back(po);
	mt_say("offers=%u posted=%u fetched=%u discarded=%u failed=%u ended=%u least=%u",
	       po->offers, po->posted, po->fetched, po->discarded, po->failed, po->ended,
	       po_least(po));
	mt_close(&po->mt);
	free(po);
	return 0;
}

/* Announce a message of the slot whose turn it is. */
static void po_announce(struct mt *mt, uint32_t connection, uint32_t number, unsigned int bytes,
			unsigned int slots)
{
	char *slot = mt->memory + (size_t)(number % slots) * bytes;
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

/* Wait for completions, in whichever order they come. Return: messages that were not wanted. */
static unsigned int po_await(struct mt *mt)
{
	unsigned int nr, i, declined = 0;

	if (krcore_wait(mt->node, MT_TIMEOUT_MS))
		mt_die("waiting for a completion");
	nr = mt_completions(mt);
	for (i = 0; i < nr; i++) {
		if (mt->wcs[i].status && mt->wcs[i].status != -ENOMSG)
			mt_wrong("a message ended with %s", strerror(-mt->wcs[i].status));
		declined += !!mt->wcs[i].status;
	}
	return declined;
}

int mt_announce(const struct krcore_key *peer, unsigned int count, unsigned int bytes,
		unsigned int slots, int waits)
{
	uint32_t connection, number;
	unsigned int declined = 0;
	struct mt mt;
	int err;

	mt_open(&mt, (size_t)slots * bytes);
	connection = mt_connect(&mt, peer, "announce", slots);
	err = mt_settled(&mt, connection);
	if (err)
		mt_wrong("connecting: %s", strerror(-err));
	mt_say("ready");
	if (waits && getchar() == EOF)
		mt_wrong("no line on standard input");
	for (number = 0; number < count;) {
		po_announce(&mt, connection, number++, bytes, slots);
		while (mt.under_way && (number % slots == 0 || number == count))
			declined += po_await(&mt);
	}
	if (krcore_shutdown(mt.node, connection, KRCORE_SHUT_CLOSE))
		mt_die("closing");
	mt_say("announced=%u declined=%u", count, declined);
	mt_close(&mt);
	return 0;
}
