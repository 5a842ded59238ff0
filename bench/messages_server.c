// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What bench_messages talks to.
 *
 *	bench_messages_server krcore SERVICE
 *	bench_messages_server verbs_rc|verbs_ud|tcp ADDRESS PORT
 *
 * Each says "ready" and sends back what comes, until it is killed, but for messages that want no
 * answer. krcore also sends what a client asks for (struct bn_pull), from one place in its memory.
 * One thread.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/box.h"
#include "bench/keys.h"
#include "bench/pair.h"
#include "bench/serve.h"
#include "bench/way.h"

#define BN_BACKLOG 128 /* connections that wait to be accepted; the inbox has room for 256 */
#define BN_UNDER_WAY 64 /* messages of one transfer that is copied, at once */

static void bn_ready(void)
{
	printf("ready\n");
	fflush(stdout);
}

/* ---- krcore */

static void bn_pull_large(struct bn_box *box, uint32_t connection, const struct bn_pull *pull)
{
	struct krcore_send_wr wr = {
		.addr = (uintptr_t)box->memory,
		.connection = connection,
		.mr = box->mr.handle,
		.length = (uint32_t)pull->bytes,
	};
	uint64_t left = pull->rounds;

	while (left || box->under_way) {
		for (; left && box->under_way < pull->outstanding; left--)
			bn_box_send(box, &wr, 1);
		if (box->under_way)
			bn_box_wait(box);
	}
}

/* The next messages of a transfer, at most @room. Return: how many. */
static unsigned int bn_pull_pieces(const struct bn_box *box, uint32_t connection,
				   const struct bn_pull *pull, uint64_t *at, unsigned int room,
				   struct krcore_send_wr *wrs)
{
	uint64_t end = pull->bytes * pull->rounds;
	unsigned int nr;

	for (nr = 0; nr < room && *at < end; nr++) {
		uint64_t in = *at % pull->bytes, rest = pull->bytes - in;

		wrs[nr] = (struct krcore_send_wr){
			.addr = (uintptr_t)box->memory + in,
			.connection = connection,
			.length = (uint32_t)(rest < KRCORE_SEND_COPY_MAX ? rest
									 : KRCORE_SEND_COPY_MAX),
		};
		*at += wrs[nr].length;
	}
	return nr;
}

static void bn_pull_copied(struct bn_box *box, uint32_t connection, const struct bn_pull *pull)
{
	uint64_t each = (pull->bytes + KRCORE_SEND_COPY_MAX - 1) / KRCORE_SEND_COPY_MAX;
	uint64_t most = each * pull->outstanding, at = 0;
	struct krcore_send_wr wrs[BN_UNDER_WAY];

	if (most > BN_UNDER_WAY)
		most = BN_UNDER_WAY;
	while (at < pull->bytes * pull->rounds || box->under_way) {
		unsigned int room = (unsigned int)(most - box->under_way);

		bn_box_send(box, wrs, bn_pull_pieces(box, connection, pull, &at, room, wrs));
		if (box->under_way)
			bn_box_wait(box);
	}
}

static void bn_serve_pull(struct bn_box *box, const struct krcore_letter *letter)
{
	struct bn_pull pull;

	if (letter->bytes != sizeof(pull)) {
		fprintf(stderr, "a request of %u bytes\n", letter->bytes);
		exit(1);
	}
	memcpy(&pull, box->buffer + letter->offset, sizeof(pull));
	if (!pull.bytes || pull.bytes > BN_BOX_MEMORY || !pull.outstanding ||
	    pull.outstanding > BN_UNDER_WAY) {
		fprintf(stderr, "a request for what is too large\n");
		exit(1);
	}
	while (box->under_way) /* of answers before */
		bn_box_wait(box);
	if (pull.copied)
		bn_pull_copied(box, letter->connection, &pull);
	else
		bn_pull_large(box, letter->connection, &pull);
}

/* Return: whether it is to be sent back, by @wr. */
static bool bn_serve_letter(struct bn_box *box, const struct krcore_letter *letter,
			    struct krcore_send_wr *wr)
{
	static const struct krcore_connection_options opts = {
		.size = sizeof(opts),
		.depth = KRCORE_CONNECTION_DEPTH_MAX,
	};

	switch (letter->kind) {
	case KRCORE_LETTER_OFFER:
		if (krcore_accept(box->node, letter->connection, &opts))
			bn_krcore_die("krcore_accept");
		return false;
	case KRCORE_LETTER_MESSAGE:
		if (letter->imm == BN_BOX_PULL) {
			bn_serve_pull(box, letter);
			return false;
		}
		if (letter->imm == BN_BOX_DROP)
			return false;
		*wr = (struct krcore_send_wr){
			.addr = (uintptr_t)box->buffer + letter->offset,
			.connection = letter->connection,
			.length = letter->bytes,
		};
		return true;
	default:
		if (krcore_shutdown(box->node, letter->connection, KRCORE_SHUT_CLOSE))
			bn_krcore_die("krcore_shutdown");
		return false;
	}
}

static void bn_serve_krcore(uint16_t service)
{
	struct krcore_send_wr wrs[BN_BOX_LETTERS];
	static struct bn_box box;

	bn_box_open(&box, true);
	if (krcore_listen(box.node, service, BN_BACKLOG, 0))
		bn_krcore_die("krcore_listen");
	bn_ready();
	for (;;) {
		unsigned int nr = bn_box_take(&box, BN_BOX_LETTERS, -1), back = 0, i;

		for (i = 0; i < nr; i++)
			back += bn_serve_letter(&box, &box.letters[i], &wrs[back]);
		bn_box_send(&box, wrs, back);
		bn_box_done(&box);
	}
}

/* ---- tcp */

static void bn_echo_tcp(int fd)
{
	static char buffer[BN_PAIR_BYTES];
	ssize_t got, sent, part;

	while ((got = recv(fd, buffer, sizeof(buffer), 0)) > 0) {
		for (sent = 0; sent < got; sent += part) {
			part = send(fd, buffer + sent, (size_t)(got - sent), MSG_NOSIGNAL);
			if (part < 0)
				return;
		}
	}
}

static void bn_serve_tcp(const char *host, const char *port)
{
	int listener = bn_tcp_listen(host, port);

	bn_ready();
	for (;;) {
		int fd = bn_tcp_accept(listener);

		bn_echo_tcp(fd);
		close(fd);
	}
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "krcore"))
		bn_serve_krcore(
			(uint16_t)bn_number(argv[2], KRCORE_SERVICE_USER_MIN, 65535, "SERVICE"));
	if (argc == 4 && !strcmp(argv[1], "verbs_rc"))
		bn_pair_serve(argv[2], argv[3], false);
	if (argc == 4 && !strcmp(argv[1], "verbs_ud"))
		bn_pair_serve(argv[2], argv[3], true);
	if (argc == 4 && !strcmp(argv[1], "tcp"))
		bn_serve_tcp(argv[2], argv[3]);
	fprintf(stderr,
		"usage: %s krcore SERVICE\n"
		"       %s verbs_rc|verbs_ud|tcp ADDRESS PORT\n",
		argv[0], argv[0]);
	return 2;
}
