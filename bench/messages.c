// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Messages to bench_messages_server and back: how long one takes, and how many there are a second.
 *
 *	bench_messages krcore|verbs_rc|verbs_ud|tcp TARGET echo|receive BYTES ROUNDS
 *	bench_messages krcore|verbs_rc|verbs_ud TARGET send BYTES ROUNDS
 *	bench_messages krcore TARGET fetch BYTES ROUNDS
 *	bench_messages krcore TARGET pull BYTES OUTSTANDING ROUNDS [copied|posted]
 *	bench_messages krcore TARGET crowd CONNECTIONS OUTSTANDING SECONDS
 *	bench_messages krcore TARGET keep CONNECTIONS
 *
 * TARGET is ADDRESS,SERVICE of krcore, else ADDRESS,PORT. One thread.
 *
 * echo: one message of 8 bytes to 1 KiB at a time, there and back. receive: the same, measured from
 * when it was sent. send: one that wants no answer, until its completion. fetch: one that is
 * announced, from when the program knows of it until its bytes are there. pull: ROUNDS transfers
 * from the server, OUTSTANDING of them at once, each as one message that is announced and fetched,
 * all to one place, or as messages of at most KRCORE_SEND_COPY_MAX bytes that are copied; posted:
 * memory is lent before, to several messages at once, and what comes too soon for that is fetched.
 * crowd: so many connections, each of which has OUTSTANDING messages of 64 bytes there or on their
 * way back all the time; how many came back on each. keep: so many connections on which nothing is
 * said; says "held" when all are open, and sleeps.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/box.h"
#include "bench/keys.h"
#include "bench/meter.h"
#include "bench/pair.h"
#include "bench/samples.h"
#include "bench/tcp.h"
#include "bench/way.h"

#define BN_WARM 20
#define BN_LENT 2 /* buffers; or places for each transfer that is outstanding, if that is more */
#define BN_LENT_MESSAGES 32 /* most of a buffer */
#define BN_TIMEOUT_MS 10000
#define BN_CROWD_BYTES 64
#define BN_CROWD_MAX 1024 /* connections */
#define BN_NUMBERS 65536 /* connections of a node are numbered below that */

_Noreturn static void bn_wrong(const char *what)
{
	fprintf(stderr, "%s\n", what);
	exit(1);
}

/* ---- krcore */

/* A node with one connection. */
struct bn_talk {
	struct bn_box box;
	uint32_t connection;
	char out[BN_PAIR_BYTES];
};

/* The next letter, which is of this kind. */
static const struct krcore_letter *bn_talk_next(struct bn_box *box, uint8_t kind)
{
	if (!bn_box_take(box, 1, BN_TIMEOUT_MS))
		bn_wrong("no letter came");
	if (box->letters[0].kind == kind)
		return &box->letters[0];
	fprintf(stderr, "a letter of kind %u: %s\n", box->letters[0].kind,
		strerror(-box->letters[0].status));
	exit(1);
}

static void bn_talk_key(const char *target, struct krcore_key *ret_key)
{
	uint16_t service;
	char *fields[2];

	bn_target_split(target, fields, 2);
	service = (uint16_t)bn_number(fields[1], KRCORE_SERVICE_USER_MIN, 65535, "SERVICE");
	if (krcore_key_from_text(fields[0], service, ret_key))
		bn_krcore_die(fields[0]);
}

static uint32_t bn_talk_connect(struct bn_box *box, const struct krcore_key *peer)
{
	uint32_t connection;

	if (krcore_connect(box->node, peer, NULL, &connection))
		bn_krcore_die("krcore_connect");
	bn_talk_next(box, KRCORE_LETTER_OPENED);
	return connection;
}

static void *bn_krcore_open(const char *target)
{
	struct bn_talk *talk = calloc(1, sizeof(*talk));
	struct krcore_key peer;

	if (!talk)
		bn_die("memory");
	bn_talk_key(target, &peer);
	bn_box_open(&talk->box, false);
	talk->connection = bn_talk_connect(&talk->box, &peer);
	return talk;
}

static char *bn_krcore_out(void *state)
{
	struct bn_talk *talk = state;

	return talk->out;
}

static void bn_krcore_send(void *state, uint32_t bytes, bool answer)
{
	struct bn_talk *talk = state;
	const struct krcore_send_wr wr = {
		.addr = (uintptr_t)talk->out,
		.connection = talk->connection,
		.length = bytes,
		.imm = answer ? BN_BOX_ECHO : BN_BOX_DROP,
	};

	bn_box_send(&talk->box, &wr, 1);
}

static const char *bn_krcore_back(void *state, uint32_t bytes)
{
	struct bn_talk *talk = state;
	const struct krcore_letter *letter = bn_talk_next(&talk->box, KRCORE_LETTER_MESSAGE);

	return letter->bytes == bytes ? talk->box.buffer + letter->offset : NULL;
}

/* The completion may come later than the answer, which does not wait for it. */
static void bn_krcore_reap(void *state)
{
	struct bn_talk *talk = state;

	bn_box_done(&talk->box);
}

static void bn_krcore_sent(void *state)
{
	struct bn_talk *talk = state;

	while (talk->box.under_way)
		bn_box_wait(&talk->box);
}

static void bn_krcore_close(void *state)
{
	struct bn_talk *talk = state;

	if (krcore_shutdown(talk->box.node, talk->connection, KRCORE_SHUT_CLOSE))
		bn_krcore_die("krcore_shutdown");
	krcore_node_close(talk->box.node);
	free(talk);
}

/* ---- verbs */

static struct bn_pair *bn_verbs_talk(const char *target, bool ud)
{
	struct bn_pair *pair = calloc(1, sizeof(*pair));
	char *fields[2];

	if (!pair)
		bn_die("memory");
	bn_target_split(target, fields, 2);
	bn_pair_reach(pair, fields[0], fields[1], ud);
	return pair;
}

static void *bn_rc_open(const char *target)
{
	return bn_verbs_talk(target, false);
}

static void *bn_ud_open(const char *target)
{
	return bn_verbs_talk(target, true);
}

static char *bn_verbs_out(void *state)
{
	return bn_pair_out(state);
}

static void bn_verbs_send(void *state, uint32_t bytes, bool answer)
{
	bn_pair_send(state, bn_pair_out(state), bytes, answer);
}

static const char *bn_verbs_back(void *state, uint32_t bytes)
{
	struct bn_pair *pair = state;
	struct ibv_wc wc;
	uint32_t back;
	char *data;

	back = bn_pair_next(pair, BN_TIMEOUT_MS * 1000000ULL, &wc, &data);
	if (!back)
		bn_wrong("no answer came");
	bn_pair_again(pair, &wc); /* it stays until as many have come as there are places */
	return back == bytes ? data : NULL;
}

static void bn_verbs_sent(void *state)
{
	bn_pair_sent(state);
}

static void bn_verbs_close(void *state)
{
	bn_pair_send(state, bn_pair_out(state), BN_PAIR_LAST, true);
	bn_pair_sent(state);
	free(state);
}

/* ---- tcp */

struct bn_socket {
	struct bn_tcp tcp;
	char out[BN_PAIR_BYTES];
};

static void *bn_socket_open(const char *target)
{
	struct bn_socket *s = calloc(1, sizeof(*s));
	char *fields[2];

	if (!s)
		bn_die("memory");
	bn_target_split(target, fields, 2);
	bn_tcp_open(&s->tcp, fields[0], fields[1]);
	return s;
}

static char *bn_socket_out(void *state)
{
	struct bn_socket *s = state;

	return s->out;
}

static void bn_socket_send(void *state, uint32_t bytes, bool answer)
{
	struct bn_socket *s = state;

	(void)answer; /* it always comes */
	bn_tcp_send(&s->tcp, s->out, bytes);
}

static const char *bn_socket_back(void *state, uint32_t bytes)
{
	struct bn_socket *s = state;
	const char *back = (const char *)bn_tcp_need(&s->tcp, bytes);

	bn_tcp_used(&s->tcp, bytes);
	return back;
}

static void bn_socket_reap(void *state)
{
	(void)state; /* nothing tells when it has arrived */
}

static void bn_socket_close(void *state)
{
	struct bn_socket *s = state;

	bn_tcp_close(&s->tcp);
	free(s);
}

/* ---- one at a time */

/*
 * One of those that are compared. @out: where a message is made. @send: send that. @back: wait for
 * what comes back, and give it, or NULL if it is of another length; it stays until the next one.
 * @reap: take the completion of what was sent, behind the answer. @sent: wait for it; NULL: there
 * is none.
 */
struct bn_echoer {
	const char *name;
	void *(*open)(const char *target);
	char *(*out)(void *state);
	void (*send)(void *state, uint32_t bytes, bool answer);
	const char *(*back)(void *state, uint32_t bytes);
	void (*reap)(void *state);
	void (*sent)(void *state);
	void (*close)(void *state);
};

static const struct bn_echoer bn_echoers[] = {
	{ "krcore", bn_krcore_open, bn_krcore_out, bn_krcore_send, bn_krcore_back, bn_krcore_reap,
	  bn_krcore_sent, bn_krcore_close },
	{ "verbs_rc", bn_rc_open, bn_verbs_out, bn_verbs_send, bn_verbs_back, bn_verbs_sent,
	  bn_verbs_sent, bn_verbs_close },
	{ "verbs_ud", bn_ud_open, bn_verbs_out, bn_verbs_send, bn_verbs_back, bn_verbs_sent,
	  bn_verbs_sent, bn_verbs_close },
	{ "tcp", bn_socket_open, bn_socket_out, bn_socket_send, bn_socket_back, bn_socket_reap,
	  NULL, bn_socket_close },
};

static const struct bn_echoer *bn_echoer_find(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(bn_echoers) / sizeof(bn_echoers[0]); i++)
		if (!strcmp(bn_echoers[i].name, name))
			return &bn_echoers[i];
	return NULL;
}

/* What is measured: all of it, what follows the sending, or that alone. */
enum bn_part {
	BN_ECHO,
	BN_RECEIVE,
	BN_SEND
};

/* A message that is like no other comes back as it is. Return: ns of the part. */
static uint64_t bn_there_and_back(const struct bn_echoer *system, void *state, uint32_t bytes,
				  uint64_t nr, enum bn_part part)
{
	uint64_t begin_ns, took_ns;
	const char *back;

	memcpy(system->out(state), &nr, sizeof(nr));
	begin_ns = bn_now_ns();
	if (part == BN_ECHO)
		BN_MARK(BEGIN);
	system->send(state, bytes, true);
	if (part == BN_RECEIVE) {
		begin_ns = bn_now_ns();
		BN_MARK(BEGIN);
	}
	back = system->back(state, bytes);
	if (part == BN_ECHO)
		system->reap(state);
	BN_MARK(END);
	took_ns = bn_now_ns() - begin_ns;
	if (part == BN_RECEIVE)
		system->reap(state);
	if (!back || memcmp(back, &nr, sizeof(nr)) != 0)
		bn_wrong("something else came back");
	return took_ns;
}

static uint64_t bn_there(const struct bn_echoer *system, void *state, uint32_t bytes)
{
	uint64_t begin_ns = bn_now_ns();

	BN_MARK(BEGIN);
	system->send(state, bytes, false);
	system->sent(state);
	BN_MARK(END);
	return bn_now_ns() - begin_ns;
}

static void bn_echo(const struct bn_echoer *system, const char *target, enum bn_part part,
		    uint32_t bytes, uint64_t rounds)
{
	static const char *const names[] = { "echo", "receive", "send" };
	void *state = system->open(target);
	struct bn_samples took;
	uint64_t nr;

	if (bn_samples_init(&took, rounds))
		bn_die("memory");
	for (nr = 0; nr < BN_WARM + rounds; nr++) {
		uint64_t took_ns = part == BN_SEND
					   ? bn_there(system, state, bytes)
					   : bn_there_and_back(system, state, bytes, nr, part);

		if (nr >= BN_WARM)
			bn_samples_add(&took, took_ns);
	}
	bn_samples_print(&took, system->name, names[part], 0, 0);
	bn_samples_done(&took);
	system->close(state);
}

/* ---- transfers */

/* Fetch what has been announced, and goes to no buffer that was lent. Return: @nr. */
static uint64_t bn_fetch_all(struct bn_box *box, unsigned int nr, const struct bn_pull *pull)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		const struct krcore_letter *letter = &box->letters[i];

		if (letter->kind != KRCORE_LETTER_LARGE || letter->length != pull->bytes)
			bn_wrong("not the message that was asked for");
		if (letter->flags & KRCORE_LETTER_POSTED)
			continue;
		if (krcore_fetch(box->node, letter, 0, &box->mr, box->memory, letter->length, 0, 0))
			bn_krcore_die("krcore_fetch");
		box->under_way++;
	}
	return nr;
}

static void bn_pull_large(struct bn_box *box, const struct bn_pull *pull)
{
	uint64_t left = pull->rounds;

	while (left || box->under_way) {
		unsigned int nr = 0;

		if (left)
			nr = bn_box_take(box, BN_BOX_LETTERS, box->under_way ? 0 : BN_TIMEOUT_MS);
		left -= bn_fetch_all(box, nr, pull);
		if (!box->under_way)
			bn_wrong("no message was announced");
		bn_box_wait(box);
	}
}

static void bn_pull_copied(struct bn_box *box, const struct bn_pull *pull)
{
	uint64_t left = pull->bytes * pull->rounds;
	unsigned int nr, i;

	while (left) {
		nr = bn_box_take(box, BN_BOX_LETTERS, BN_TIMEOUT_MS);
		if (!nr)
			bn_wrong("no message came");
		for (i = 0; i < nr; i++) {
			const struct krcore_letter *letter = &box->letters[i];

			if (letter->kind != KRCORE_LETTER_MESSAGE || letter->bytes > left)
				bn_wrong("not the message that was asked for");
			left -= letter->bytes;
		}
	}
}

/* Ask for transfers. */
static void bn_pull_send(struct bn_talk *talk, const struct bn_pull *pull)
{
	struct krcore_send_wr wr = {
		.addr = (uintptr_t)pull,
		.connection = talk->connection,
		.length = sizeof(*pull),
		.imm = BN_BOX_PULL,
	};

	bn_box_send(&talk->box, &wr, 1);
}

/* The same; the server has read that. */
static void bn_pull_ask(struct bn_talk *talk, const struct bn_pull *pull)
{
	bn_pull_send(talk, pull);
	bn_krcore_sent(talk);
}

/* Transfers that a buffer takes: all of the memory is one, which is lent several times over. */
static uint32_t bn_lent_messages(const struct bn_pull *pull)
{
	uint64_t messages = BN_BOX_MEMORY / pull->bytes;

	return messages < BN_LENT_MESSAGES ? (uint32_t)messages : BN_LENT_MESSAGES;
}

/* Lend so many buffers more. */
static void bn_lend(struct bn_box *box, const struct bn_pull *pull, uint64_t nr)
{
	uint32_t messages = bn_lent_messages(pull);

	for (; nr; nr--, box->under_way++)
		if (krcore_post_recv_multi(box->node, &box->mr, box->memory,
					   messages == 1 ? (uint32_t)pull->bytes : BN_BOX_MEMORY,
					   messages, messages == 1 ? 0 : (uint32_t)pull->bytes, 0))
			bn_krcore_die("krcore_post_recv_multi");
}

/* Take completions; a buffer that has completed is lent again. Return: transfers that are done. */
static uint64_t bn_lent_done(struct bn_box *box, const struct bn_pull *pull)
{
	struct krcore_wc wcs[BN_BOX_LETTERS];
	int nr = krcore_poll(box->node, wcs, BN_BOX_LETTERS), i;
	uint64_t done = 0, over = 0;

	if (nr < 0)
		bn_krcore_die("krcore_poll");
	for (i = 0; i < nr; i++) {
		bool more = wcs[i].flags & KRCORE_WC_MORE;

		if (wcs[i].status && (wcs[i].opcode != KRCORE_OP_RECV || wcs[i].queue))
			bn_wrong("a transfer has failed");
		box->under_way -= !more;
		over += wcs[i].opcode == KRCORE_OP_RECV && !more && !wcs[i].status;
		done += wcs[i].opcode != KRCORE_OP_SEND && wcs[i].queue;
	}
	bn_lend(box, pull, over);
	return done;
}

/* Transfers to buffers that are lent before. */
static void bn_pull_lent(struct bn_talk *talk, const struct bn_pull *pull)
{
	struct bn_box *box = &talk->box;
	uint64_t done = 0, letters = 0;
	uint64_t buffers = BN_LENT * (uint64_t)pull->outstanding / bn_lent_messages(pull);

	bn_lend(box, pull, buffers < BN_LENT ? BN_LENT : buffers);
	bn_pull_send(talk, pull);
	while (done < pull->rounds || letters < pull->rounds) {
		if (krcore_wait_any(box->node, BN_TIMEOUT_MS))
			bn_krcore_die("krcore_wait_any");
		done += bn_lent_done(box, pull);
		letters += bn_fetch_all(box, bn_box_take(box, BN_BOX_LETTERS, 0), pull);
	}
	if (krcore_cancel_recv(box->node, 0))
		bn_krcore_die("krcore_cancel_recv");
	while (box->under_way)
		bn_lent_done(box, pull);
}

static void bn_pull_once(struct bn_talk *talk, const struct bn_pull *pull, bool lent)
{
	if (lent) {
		bn_pull_lent(talk, pull);
		return;
	}
	bn_pull_ask(talk, pull);
	if (pull->copied)
		bn_pull_copied(&talk->box, pull);
	else
		bn_pull_large(&talk->box, pull);
}

static void bn_fetch(const char *target, uint64_t bytes, uint64_t rounds)
{
	const struct bn_pull pull = { .bytes = bytes, .rounds = 1, .outstanding = 1 };
	struct bn_talk *talk = bn_krcore_open(target);
	struct bn_samples took;

	if (bn_samples_init(&took, rounds))
		bn_die("memory");
	for (; rounds; rounds--) {
		uint64_t begin_ns;

		bn_pull_ask(talk, &pull);
		bn_talk_next(&talk->box, KRCORE_LETTER_LARGE);
		begin_ns = bn_now_ns();
		BN_MARK(BEGIN);
		bn_fetch_all(&talk->box, 1, &pull);
		bn_krcore_sent(talk);
		BN_MARK(END);
		bn_samples_add(&took, bn_now_ns() - begin_ns);
	}
	bn_samples_print(&took, "krcore", "fetch", 0, 0);
	bn_samples_done(&took);
	bn_krcore_close(talk);
}

static void bn_pull(const char *target, const struct bn_pull *pull, bool lent)
{
	struct bn_talk *talk = bn_krcore_open(target);
	struct bn_pull warm = *pull;
	uint64_t begin_ns, took_ns;

	warm.rounds = pull->outstanding;
	bn_pull_once(talk, &warm, lent);
	begin_ns = bn_now_ns();
	BN_MARK(BEGIN);
	bn_pull_once(talk, pull, lent);
	BN_MARK(END);
	took_ns = bn_now_ns() - begin_ns;
	printf("{\"system\": \"krcore\", \"case\": \"pull\", \"n\": %" PRIu64
	       ", \"mib_per_second\": %.3f}\n",
	       pull->rounds,
	       (double)pull->bytes * (double)pull->rounds * 1e9 / (double)took_ns / (1 << 20));
	bn_krcore_close(talk);
}

/* ---- many connections */

struct bn_many {
	struct bn_box box;
	unsigned int connections, outstanding;
	uint32_t number[BN_CROWD_MAX];
	uint64_t back[BN_CROWD_MAX];
	uint16_t place[BN_NUMBERS]; /* of a connection in @number, and 1 */
	char out[BN_CROWD_BYTES];
};

static struct krcore_send_wr bn_many_wr(const struct bn_many *crowd, uint32_t connection)
{
	return (struct krcore_send_wr){
		.addr = (uintptr_t)crowd->out,
		.connection = connection,
		.length = BN_CROWD_BYTES,
	};
}

static void bn_many_open(struct bn_many *crowd, const char *target)
{
	struct krcore_key peer;
	unsigned int i;

	bn_talk_key(target, &peer);
	bn_box_open(&crowd->box, false);
	for (i = 0; i < crowd->connections; i++) {
		crowd->number[i] = bn_talk_connect(&crowd->box, &peer);
		if (crowd->number[i] >= BN_NUMBERS)
			bn_wrong("a number of a connection that is too large");
		crowd->place[crowd->number[i]] = (uint16_t)(i + 1);
	}
}

/* Take what has come back, and send as many again if @go_on. Return: how many came. */
static unsigned int bn_many_some(struct bn_many *crowd, bool go_on)
{
	unsigned int nr = bn_box_take(&crowd->box, BN_BOX_LETTERS, BN_TIMEOUT_MS), i;
	struct krcore_send_wr wrs[BN_BOX_LETTERS];

	if (!nr)
		bn_wrong("no message came back");
	for (i = 0; i < nr; i++) {
		const struct krcore_letter *letter = &crowd->box.letters[i];
		unsigned int place = crowd->place[letter->connection % BN_NUMBERS];

		if (letter->kind != KRCORE_LETTER_MESSAGE || letter->bytes != BN_CROWD_BYTES ||
		    !place)
			bn_wrong("not the message that was sent");
		crowd->back[place - 1] += go_on;
		wrs[i] = bn_many_wr(crowd, letter->connection);
	}
	if (go_on)
		bn_box_send(&crowd->box, wrs, nr);
	bn_box_done(&crowd->box);
	return nr;
}

static void bn_many_print(const struct bn_many *crowd, uint64_t took_ns)
{
	uint64_t all = 0;
	unsigned int i;

	for (i = 0; i < crowd->connections; i++)
		all += crowd->back[i];
	printf("{\"system\": \"krcore\", \"case\": \"crowd\", \"n\": %" PRIu64 ", \"ns\": %" PRIu64
	       ", \"counts\": [",
	       all, took_ns);
	for (i = 0; i < crowd->connections; i++)
		printf("%s%" PRIu64, i ? ", " : "", crowd->back[i]);
	printf("]}\n");
	fflush(stdout);
}

static void bn_many_run(struct bn_many *crowd, uint64_t seconds)
{
	uint64_t begin_ns, under_way = (uint64_t)crowd->connections * crowd->outstanding;
	struct krcore_send_wr wr;
	unsigned int i;

	bn_gate("begin");
	begin_ns = bn_now_ns();
	for (i = 0; i < under_way; i++) {
		wr = bn_many_wr(crowd, crowd->number[i % crowd->connections]);
		bn_box_send(&crowd->box, &wr, 1);
	}
	while (bn_now_ns() - begin_ns < seconds * 1000000000ULL)
		bn_many_some(crowd, true);
	bn_many_print(crowd, bn_now_ns() - begin_ns);
	while (under_way)
		under_way -= bn_many_some(crowd, false);
	bn_gate("end");
	krcore_node_close(crowd->box.node);
}

static void bn_keep(const char *target, uint64_t connections)
{
	struct krcore_key peer;
	struct bn_box box;

	bn_talk_key(target, &peer);
	bn_box_open(&box, false);
	while (connections--)
		bn_talk_connect(&box, &peer);
	printf("held\n");
	fflush(stdout);
	for (;;)
		pause();
}

static int bn_usage(const char *program)
{
	fprintf(stderr,
		"usage: %s krcore|verbs_rc|verbs_ud|tcp TARGET echo|receive BYTES ROUNDS\n"
		"       %s krcore|verbs_rc|verbs_ud TARGET send BYTES ROUNDS\n"
		"       %s krcore TARGET fetch BYTES ROUNDS\n"
		"       %s krcore TARGET pull BYTES OUTSTANDING ROUNDS [copied|posted]\n"
		"       %s krcore TARGET crowd CONNECTIONS OUTSTANDING SECONDS\n"
		"       %s krcore TARGET keep CONNECTIONS\n",
		program, program, program, program, program, program);
	return 2;
}

/* pull and crowd. Return: 0, or -1: it is neither. */
static int bn_more(int argc, char **argv)
{
	static struct bn_many crowd;
	bool lent = argc == 8 && !strcmp(argv[7], "posted");

	if (!strcmp(argv[3], "pull") && (argc == 7 || lent || !strcmp(argv[7], "copied"))) {
		const struct bn_pull pull = {
			.bytes = bn_number(argv[4], 1, BN_BOX_MEMORY, "BYTES"),
			.outstanding = (uint32_t)bn_number(argv[5], 1, 64, "OUTSTANDING"),
			.rounds = bn_number(argv[6], 1, 10000000, "ROUNDS"),
			.copied = argc == 8 && !lent,
		};

		bn_pull(argv[2], &pull, lent);
		return 0;
	}
	if (strcmp(argv[3], "crowd") != 0 || argc != 7)
		return -1;
	crowd.connections = (unsigned int)bn_number(argv[4], 1, BN_CROWD_MAX, "CONNECTIONS");
	crowd.outstanding = (unsigned int)bn_number(argv[5], 1, 16, "OUTSTANDING");
	bn_many_open(&crowd, argv[2]);
	bn_many_run(&crowd, bn_number(argv[6], 1, 3600, "SECONDS"));
	return 0;
}

/* echo, receive and send. Return: 0, or -1: it is none of them. */
static int bn_small(const struct bn_echoer *system, char **argv)
{
	enum bn_part part;

	if (!strcmp(argv[3], "echo"))
		part = BN_ECHO;
	else if (!strcmp(argv[3], "receive"))
		part = BN_RECEIVE;
	else if (!strcmp(argv[3], "send") && system->sent)
		part = BN_SEND;
	else
		return -1;
	bn_echo(system, argv[2], part,
		(uint32_t)bn_number(argv[4], sizeof(uint64_t), BN_PAIR_BYTES, "BYTES"),
		bn_number(argv[5], 1, 10000000, "ROUNDS"));
	return 0;
}

int main(int argc, char **argv)
{
	const struct bn_echoer *system = argc > 1 ? bn_echoer_find(argv[1]) : NULL;
	bool ours = system && system->open == bn_krcore_open;

	if (ours && argc == 5 && !strcmp(argv[3], "keep"))
		bn_keep(argv[2], bn_number(argv[4], 1, BN_NUMBERS, "CONNECTIONS"));
	if (ours && argc == 6 && !strcmp(argv[3], "fetch"))
		bn_fetch(argv[2], bn_number(argv[4], 1, BN_BOX_MEMORY, "BYTES"),
			 bn_number(argv[5], 1, 10000000, "ROUNDS"));
	else if (system && argc == 6 ? bn_small(system, argv)
				     : !ours || argc < 7 || argc > 8 || bn_more(argc, argv))
		return bn_usage(argv[0]);
	return 0;
}
