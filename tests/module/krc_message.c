// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Programs that send each other messages.
 *
 *   krc_message serve SERVICE		listen; send back what comes, also large messages; refuse who
 *					says "no". Until SIGTERM, then a line of counts
 *   krc_message deaf SERVICE		the same, but accept one connection and take nothing then
 *   krc_message sink SERVICE		take numbered messages, and tell how many when the sender ends
 *   krc_message judge SERVICE		take what `restless` ones send, until SIGTERM
 *   krc_message collect SERVICE	post buffers, and take what `announce` ones send, until SIGTERM
 *   krc_message gather SERVICE		the same with buffers for several messages
 *   krc_message choose SERVICE		as `collect`, but discard what goes to no buffer
 *   krc_message watch SERVICE		let one program WRITE, and look at what its messages tell of
 *   krc_message stand SERVICE POINT	listen, go to a point of message_kill.c, say "there", and stay
 *					until SIGTERM; then a line of what it is told
 *   krc_message point ADDRESS SERVICE POINT
 *					to `stand`: the same at the other end
 *   krc_message echo ADDRESS SERVICE CONNECTIONS ROUNDS
 *					to `serve`: so many messages of 0 to 4096 bytes by each of so
 *					many connections, and compare what comes back
 *   krc_message numbers ADDRESS SERVICE CONNECTIONS
 *					to `sink`: numbered messages until SIGTERM
 *   krc_message restless ADDRESS SERVICE ID [twice]
 *					to `judge`: the same, and go on by another connection, and
 *					another node, when one dies; see message_stress.c. twice: some
 *					of them come twice, which `judge` must not forgive
 *   krc_message large ADDRESS SERVICE BYTES
 *					to `sink`: connect, say "ready", and for each line of
 *					standard input announce a message of so many bytes
 *   krc_message hold ADDRESS SERVICE	connect, say "open", and wait for what comes of it
 *   krc_message try ADDRESS SERVICE SAYS
 *					connect, and say with what status that ended
 *   krc_message knock ADDRESS SERVICE	connect, and when that is refused or has ended, again, until
 *					SIGTERM; take nothing that is sent
 *   krc_message beside ADDRESS SERVICE DEAF ROUNDS
 *					fill what `deaf` has room for, then as `echo`, on one node
 *   krc_message after ADDRESS SERVICE ROUNDS
 *					to `watch`: WRITEs, and a message after each; then close the
 *					queue under the last ones
 *   krc_message announce ADDRESS SERVICE COUNT BYTES SLOTS [wait]
 *					to `collect`: connect, say "ready", and announce so many
 *					messages of so many bytes, so many of them under way at once;
 *					wait: after a line of standard input
 *
 * The last line of the others is KEY=NUMBER...; the status is 1 if anything was not as it must be.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/module/message.h"

#define MT_RING 16384
#define MT_DEPTH 8192

static volatile sig_atomic_t mt_term;

void mt_die(const char *what)
{
	fprintf(stderr, "krc_message: %s: %s\n", what, krcore_error_text());
	exit(1);
}

void mt_wrong(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("krc_message: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

void mt_say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	putchar('\n');
	fflush(stdout);
	va_end(args);
}

static void *mt_alloc(size_t align, size_t bytes)
{
	void *memory = aligned_alloc(align, (bytes + align - 1) & ~(align - 1));

	if (!memory)
		mt_wrong("no memory");
	memset(memory, 0, bytes);
	return memory;
}

int mt_open_some(struct mt *mt, unsigned int ring, unsigned int depth, size_t bytes)
{
	struct krcore_node_options opts = { .size = sizeof(opts), .ring_entries = ring };
	int err;

	memset(mt, 0, sizeof(*mt));
	err = krcore_node_open(&opts, &mt->node);
	if (err)
		return err;
	mt->buffer = mt_alloc(64, MT_BUFFER);
	mt->memory = bytes ? mt_alloc(4096, bytes) : NULL;
	err = krcore_inbox_create(mt->node, 0, depth);
	if (!err && bytes)
		err = krcore_mr_reg(mt->node, mt->memory, bytes,
				    KRCORE_ACCESS_LOCAL_WRITE | KRCORE_ACCESS_MESSAGE, &mt->mr);
	if (!err)
		return 0;
	mt_close(mt);
	memset(mt, 0, sizeof(*mt));
	return err;
}

void mt_open(struct mt *mt, size_t bytes)
{
	if (mt_open_some(mt, MT_RING, MT_DEPTH, bytes))
		mt_die("a node with an inbox");
}

void mt_close(struct mt *mt)
{
	krcore_node_close(mt->node);
	free(mt->memory);
	free(mt->buffer);
}

unsigned int mt_take(struct mt *mt, int timeout_ms)
{
	int nr = krcore_recv(mt->node, mt->letters, MT_LETTERS, mt->buffer, MT_BUFFER, timeout_ms);

	if (nr == -ETIMEDOUT || nr == -EINTR)
		return 0;
	if (nr < 0)
		mt_die("taking letters");
	return (unsigned int)nr;
}

unsigned int mt_completions(struct mt *mt)
{
	int nr = krcore_poll(mt->node, mt->wcs, MT_LETTERS);

	if (nr < 0)
		mt_die("the completions");
	if ((unsigned int)nr > mt->under_way)
		mt_wrong("%d completions of %u requests", nr, mt->under_way);
	mt->under_way -= (unsigned int)nr;
	return (unsigned int)nr;
}

const void *mt_bytes(const struct mt *mt, const struct krcore_letter *letter)
{
	if (letter->offset % 8 || letter->offset > MT_BUFFER ||
	    letter->bytes > MT_BUFFER - letter->offset)
		mt_wrong("%u bytes at %u of the buffer", letter->bytes, letter->offset);
	return mt->buffer + letter->offset;
}

struct krcore_key mt_key(const char *address, const char *service)
{
	struct krcore_key key;

	if (krcore_key_from_address(address, (uint16_t)mt_number(service, 65535, "SERVICE"), &key))
		mt_die(address);
	return key;
}

uint32_t mt_connect(struct mt *mt, const struct krcore_key *peer, const char *says, uint32_t depth)
{
	struct krcore_connection_options opts = {
		.size = sizeof(opts),
		.user = says,
		.user_len = (uint32_t)strlen(says),
		.depth = depth,
		.timeout_ms = 30000,
	};
	uint32_t connection;

	if (krcore_connect(mt->node, peer, &opts, &connection))
		mt_die("connecting");
	return connection;
}

int mt_settled(struct mt *mt, uint32_t connection)
{
	unsigned int nr = mt_take(mt, MT_TIMEOUT_MS);

	if (!nr)
		mt_wrong("connection %u is neither open nor dead", connection);
	if (nr != 1 || mt->letters[0].connection != connection)
		mt_wrong("%u letters, the first of connection %u", nr, mt->letters[0].connection);
	if (mt->letters[0].kind == KRCORE_LETTER_OPENED)
		return 0;
	if (mt->letters[0].kind != KRCORE_LETTER_DIED || !mt->letters[0].status)
		mt_wrong("a letter of kind %u", mt->letters[0].kind);
	return mt->letters[0].status;
}

static uint64_t mt_mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ULL;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

void mt_fill(void *bytes, size_t nr, uint64_t seed)
{
	uint64_t word;
	size_t i, part;

	for (i = 0; i < nr; i += part) {
		word = mt_mix(seed * 0x9e3779b97f4a7c15ULL + i);
		part = nr - i < sizeof(word) ? nr - i : sizeof(word);
		memcpy((char *)bytes + i, &word, part);
	}
}

int mt_filled(const void *bytes, size_t nr, uint64_t seed)
{
	uint64_t word;
	size_t i, part;

	for (i = 0; i < nr; i += part) {
		word = mt_mix(seed * 0x9e3779b97f4a7c15ULL + i);
		part = nr - i < sizeof(word) ? nr - i : sizeof(word);
		if (memcmp((const char *)bytes + i, &word, part))
			return 0;
	}
	return 1;
}

unsigned int mt_number(const char *text, unsigned int most, const char *name)
{
	char *end;
	unsigned long value = strtoul(text, &end, 0);

	if (end != text && !*end && value >= 1 && value <= most)
		return (unsigned int)value;
	fprintf(stderr, "krc_message: %s: '%s' is not a number from 1 to %u\n", name, text, most);
	exit(64);
}

static void mt_on_term(int signal_nr)
{
	(void)signal_nr;
	mt_term = 1;
}

void mt_until_term(void)
{
	const struct sigaction action = { .sa_handler = mt_on_term }; /* no SA_RESTART */

	sigaction(SIGTERM, &action, NULL);
}

int mt_over(void)
{
	return mt_term;
}

/* Those that listen. Return: status, or -1: it is none of them. */
static int mt_listeners(int argc, char **argv)
{
	uint16_t service;

	if (argc == 4 && !strcmp(argv[1], "stand"))
		return mt_stand((uint16_t)mt_number(argv[2], 65535, "SERVICE"), argv[3]);
	if (argc != 3)
		return -1;
	service = (uint16_t)mt_number(argv[2], 65535, "SERVICE");
	if (!strcmp(argv[1], "serve"))
		return mt_serve(service, 0);
	if (!strcmp(argv[1], "deaf"))
		return mt_serve(service, 1);
	if (!strcmp(argv[1], "sink"))
		return mt_sink(service);
	if (!strcmp(argv[1], "judge"))
		return mt_judge(service);
	if (!strcmp(argv[1], "watch"))
		return mt_watch(service);
	if (!strcmp(argv[1], "collect"))
		return mt_collect(service, 0, 0);
	if (!strcmp(argv[1], "gather"))
		return mt_collect(service, 1, 0);
	if (!strcmp(argv[1], "choose"))
		return mt_collect(service, 0, 1);
	return -1;
}

/* Those that connect. Return: status, or -1: it is none of them. */
static int mt_connectors(int argc, char **argv)
{
	struct krcore_key peer, other;
	unsigned int first;

	if (argc < 4)
		return -1;
	peer = mt_key(argv[2], argv[3]);
	if (argc == 4 && !strcmp(argv[1], "hold"))
		return mt_hold(&peer);
	if (argc == 4 && !strcmp(argv[1], "knock"))
		return mt_knock(&peer);
	if (argc == 5 && !strcmp(argv[1], "try"))
		return mt_try(&peer, argv[4]);
	if (argc == 5 && !strcmp(argv[1], "point"))
		return mt_point(&peer, argv[4]);
	if (argc == 5 && !strcmp(argv[1], "large"))
		return mt_large(&peer, mt_number(argv[4], KRCORE_SEND_LARGE_MAX, "BYTES"));
	if (argc == 5 && !strcmp(argv[1], "after"))
		return mt_after(&peer, mt_number(argv[4], 100000, "ROUNDS"));
	if (argc == 5 && !strcmp(argv[1], "restless"))
		return mt_restless(&peer, mt_number(argv[4], 1000, "ID"), 0);
	if (argc == 5 && !strcmp(argv[1], "numbers"))
		return mt_numbers(&peer, mt_number(argv[4], MT_CONNECTIONS, "CONNECTIONS"));
	if ((argc == 7 || (argc == 8 && !strcmp(argv[7], "wait"))) && !strcmp(argv[1], "announce"))
		return mt_announce(&peer, mt_number(argv[4], 1000000, "COUNT"),
				   mt_number(argv[5], KRCORE_SEND_LARGE_MAX, "BYTES"),
				   mt_number(argv[6], 64, "SLOTS"), argc == 8);
	if (argc != 6)
		return -1;
	if (!strcmp(argv[1], "restless") && !strcmp(argv[5], "twice"))
		return mt_restless(&peer, mt_number(argv[4], 1000, "ID"), 1);
	if (!strcmp(argv[1], "beside")) {
		other = mt_key(argv[2], argv[4]);
		return mt_beside(&peer, &other, mt_number(argv[5], 1000000, "ROUNDS"));
	}
	if (strcmp(argv[1], "echo"))
		return -1;
	first = mt_number(argv[4], MT_CONNECTIONS, "CONNECTIONS");
	return mt_echo(&peer, first, mt_number(argv[5], 1000000, "ROUNDS"));
}

int main(int argc, char **argv)
{
	int status = mt_listeners(argc, argv);

	if (status < 0)
		status = mt_connectors(argc, argv);
	if (status >= 0)
		return status;
	fputs("krc_message: see tests/module/krc_message.c\n", stderr);
	return 64;
}
