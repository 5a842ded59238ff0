// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * WRITEs and messages that tell of them: who gets the message finds all bytes of the WRITE, which
 * has many segments while the message is one small packet of another channel. A queue that fails
 * takes its message with it, and nothing else.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/module/message.h"

#define AF_SLOT (512U << 10)
#define AF_SLOTS 2U
#define AF_CANCELLED \
	48U /* WRITEs, of which the hardware has not got all when the queue is closed */
#define AF_LAST 1000001U /* imm of the message behind the one that is not sent */
#define AF_NEVER 1000000U

/* What a watcher says of its memory when it accepts. */
struct af_memory {
	uint64_t addr;
	uint64_t token;
};

static void af_set(char *slot, uint64_t value)
{
	uint64_t *words = (uint64_t *)(void *)slot;
	size_t i;

	for (i = 0; i < AF_SLOT / sizeof(*words); i++)
		words[i] = value;
}

/* Return: how many words of the slot are not @value. */
static size_t af_others(const char *slot, uint64_t value)
{
	const volatile uint64_t *words = (const volatile uint64_t *)(const void *)slot;
	size_t i, others = 0;

	for (i = 0; i < AF_SLOT / sizeof(*words); i++)
		others += words[i] != value;
	return others;
}

static void af_answer(struct mt *mt, uint32_t connection, uint32_t number)
{
	if (krcore_send(mt->node, connection, &number, sizeof(number), 0))
		mt_die("answering");
	mt->under_way++;
}

/* A message has come. Return: whether it tells of a WRITE. */
static int af_check(struct mt *mt, const struct krcore_letter *letter)
{
	size_t others;

	if (letter->imm == AF_NEVER)
		mt_wrong("the message of the queue that failed has come");
	if (letter->imm == AF_LAST)
		return 0;
	if (!(letter->flags & KRCORE_LETTER_AFTER))
		mt_wrong("message %u does not tell of WRITEs", letter->imm);
	others = af_others(mt->memory + letter->imm % AF_SLOTS * AF_SLOT, letter->imm);
	if (others)
		mt_wrong("message %u came before %zu words of its WRITE", letter->imm, others);
	return 1;
}

int mt_watch(uint16_t service)
{
	unsigned int offers = 0, told = 0, last = 0, ended = 0, nr, i;
	struct krcore_mr mr;
	struct mt mt;

	mt_until_term();
	mt_open(&mt, AF_SLOTS * AF_SLOT);
	if (krcore_mr_reg(mt.node, mt.memory, AF_SLOTS * AF_SLOT,
			  KRCORE_ACCESS_LOCAL_WRITE | KRCORE_ACCESS_REMOTE_WRITE, &mr))
		mt_die("registering memory for WRITEs");
	if (krcore_listen(mt.node, service, 4, 30000))
		mt_die("listening");
	mt_say("listening");
	while (!mt_over()) {
		const struct af_memory memory = { (uintptr_t)mt.memory, mr.token };
		const struct krcore_connection_options opts = {
			.size = sizeof(opts),
			.user = &memory,
			.user_len = sizeof(memory),
		};

		nr = mt_take(&mt, 500);
		for (i = 0; i < nr; i++) {
			const struct krcore_letter *letter = &mt.letters[i];

			if (letter->kind == KRCORE_LETTER_OFFER) {
				offers++;
				if (krcore_accept(mt.node, letter->connection, &opts))
					mt_die("accepting");
			} else if (letter->kind == KRCORE_LETTER_MESSAGE) {
				if (af_check(&mt, letter))
					told++;
				else
					last++;
				af_answer(&mt, letter->connection, letter->imm);
			} else {
				ended++;
				krcore_shutdown(mt.node, letter->connection, KRCORE_SHUT_CLOSE);
			}
		}
		while (mt_completions(&mt))
			;
	}
	mt_say("offers=%u told=%u last=%u ended=%u", offers, told, last, ended);
	mt_close(&mt);
	return 0;
}

/*
 * The other end. @answers: that have come. @failed: WRITEs, @dropped: messages that have ended so.
 * @closed: its queue is; of one WRITE the hardware may have had a part then, which makes it @cut.
 */
struct af {
	struct mt mt;
	struct af_memory memory;
	uint32_t connection, queue;
	unsigned int answers, failed, dropped, cut;
	int closed;
};

static void af_some(struct af *af, int timeout_ms)
{
	unsigned int nr = mt_take(&af->mt, timeout_ms), i;

	for (i = 0; i < nr; i++) {
		if (af->mt.letters[i].kind != KRCORE_LETTER_MESSAGE)
			mt_wrong(
				"a letter of kind %u, status %d; %u under way, %u failed, %u dropped",
				af->mt.letters[i].kind, af->mt.letters[i].status, af->mt.under_way,
				af->failed, af->dropped);
		af->answers++;
	}
	while ((nr = mt_completions(&af->mt)))
		for (i = 0; i < nr; i++) {
			const struct krcore_wc *wc = &af->mt.wcs[i];

			if (wc->status == -EREMCHG && wc->opcode == KRCORE_OP_WRITE && af->closed)
				af->cut++;
			else if (wc->status && wc->status != -ECANCELED)
				mt_wrong("a request ended with %s", strerror(-wc->status));
			af->failed += wc->opcode == KRCORE_OP_WRITE && wc->status;
			af->dropped += wc->opcode == KRCORE_OP_SEND && wc->status;
		}
}

/* Post so many WRITEs with one call, to one slot after the other. */
static void af_write(struct af *af, unsigned int first, unsigned int nr)
{
	const struct krcore_region_ref remote = {
		.addr = af->memory.addr,
		.length = AF_SLOTS * AF_SLOT,
		.token = af->memory.token,
	};
	struct krcore_wr wrs[AF_CANCELLED];
	unsigned int i;

	for (i = 0; i < nr; i++) {
		size_t at = (first + i) % AF_SLOTS * AF_SLOT;

		krcore_wr_write(&wrs[i], &af->mt.mr, af->mt.memory + at, AF_SLOT, &remote, at, 0);
	}
	if (krcore_post(af->mt.node, af->queue, wrs, nr, NULL) != (int)nr)
		mt_die("posting WRITEs");
	af->mt.under_way += nr;
}

static void af_tell(struct af *af, unsigned int number, uint32_t flags)
{
	const struct krcore_send_wr wr = {
		.connection = af->connection,
		.imm = number,
		.flags = flags,
		.queue = flags & KRCORE_SEND_AFTER ? af->queue : 0,
	};

	if (krcore_send_many(af->mt.node, &wr, 1, NULL) != 1)
		mt_die("sending");
	af->mt.under_way++;
}

static void af_open(struct af *af, const struct krcore_key *peer)
{
	struct krcore_peer who;
	int err;

	mt_open(&af->mt, AF_SLOTS * AF_SLOT);
	af->connection = mt_connect(&af->mt, peer, "after", 64);
	err = mt_settled(&af->mt, af->connection);
	if (err)
		mt_wrong("connecting: %s", strerror(-err));
	if (krcore_letter_peer(&af->mt.letters[0], af->mt.buffer, &who) ||
	    who.user_len != sizeof(af->memory))
		mt_wrong("the peer does not say where its memory is");
	memcpy(&af->memory, who.user, sizeof(af->memory));
	if (krcore_queue_open(af->mt.node, 64, peer, 30000, 0, &af->queue, NULL))
		mt_die("a queue");
}

/* Wait until so many answers have come. */
static void af_await(struct af *af, unsigned int answers)
{
	unsigned int had;

	while (af->answers < answers) {
		had = af->answers;
		af_some(af, MT_TIMEOUT_MS);
		if (af->answers == had)
			mt_wrong("no answer after %u", had);
	}
}

/* Take what comes until @answers have come and nothing is under way, or nothing comes for long. */
static void af_settle(struct af *af, unsigned int answers)
{
	unsigned int waited;

	for (waited = 0; (af->mt.under_way || af->answers < answers) && waited < MT_TIMEOUT_MS;
	     waited += 100)
		af_some(af, 100);
	if (af->mt.under_way || af->answers != answers)
		mt_wrong("%u requests under way, %u of %u answers", af->mt.under_way, af->answers,
			 answers);
}

/* Close the queue under WRITEs that a message waits for, and send another one. */
static void af_cancel(struct af *af, unsigned int rounds)
{
	af_write(af, rounds + 1, AF_CANCELLED);
	af_tell(af, AF_NEVER, KRCORE_SEND_AFTER);
	af_tell(af, AF_LAST, 0);
	if (krcore_shutdown(af->mt.node, af->connection, KRCORE_SHUT_SEND) != -EBUSY)
		mt_wrong("the end can be shut while messages wait");
	if (krcore_queue_close(af->mt.node, af->queue))
		mt_die("closing the queue");
	af->closed = 1;
	af_settle(af, rounds + 1);
	if (!af->failed || af->dropped != 1 || af->cut > 1)
		mt_wrong("%u WRITEs cancelled, %u cut, %u messages dropped", af->failed, af->cut,
			 af->dropped);
}

int mt_after(const struct krcore_key *peer, unsigned int rounds)
{
	struct af *af = calloc(1, sizeof(*af));
	unsigned int number;

	if (!af)
		mt_wrong("no memory");
	af_open(af, peer);
	for (number = 1; number <= rounds; number++) {
		/* a slot is written again when what was told of it has been looked at */
		if (number > AF_SLOTS)
			af_await(af, number - AF_SLOTS);
		af_set(af->mt.memory + number % AF_SLOTS * AF_SLOT, number);
		af_write(af, number, 1);
		af_tell(af, number, KRCORE_SEND_AFTER);
	}
	af_settle(af, rounds);
	af_cancel(af, rounds);
	mt_say("rounds=%u cancelled=%u cut=%u dropped=%u", rounds, af->failed, af->cut,
	       af->dropped);
	mt_close(&af->mt);
	free(af);
	return 0;
}
