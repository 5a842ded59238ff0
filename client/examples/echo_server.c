// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Send back what comes, to any number of peers, from one epoll loop: one inbox and one descriptor
 * for all of them. A peer that does not read its answers is cut off.
 */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include <krcore/message.h>

#include "example.h"

#define EX_LETTERS 64

static const char ex_text[] =
	"usage: krcore-example-echo-server SERVICE\n"
	"\n"
	"Send back messages until interrupted. SERVICE is a number from 256 to 65535.\n"
	"Needs the kernel module (/dev/krcore) and a MetaServer (/etc/krcore.conf).\n";

static void ex_letter(struct krcore_node *node, const struct krcore_letter *letter,
		      const char *buffer)
{
	uint32_t connection = letter->connection;
	int err = 0;

	switch (letter->kind) {
	case KRCORE_LETTER_OFFER:
		err = krcore_accept(node, connection, NULL);
		break;
	case KRCORE_LETTER_MESSAGE:
		err = krcore_send(node, connection, buffer + letter->offset, letter->bytes, 0);
		break;
	case KRCORE_LETTER_LARGE:
		err = krcore_discard(node, letter);
		break;
	case KRCORE_LETTER_DIED:
		fprintf(stderr, "connection %u: %s\n", connection, strerror(-letter->status));
		/* fall through */
	case KRCORE_LETTER_ENDED:
		krcore_shutdown(node, connection, KRCORE_SHUT_CLOSE);
	}
	if (err && letter->kind != KRCORE_LETTER_LARGE) {
		ex_fail("cut off");
		krcore_shutdown(node, connection, KRCORE_SHUT_ABORT);
	}
}

static int ex_all(struct krcore_node *node)
{
	static char buffer[EX_LETTERS * 1024];
	struct krcore_letter letters[EX_LETTERS];
	struct krcore_wc wcs[EX_LETTERS];
	int nr, i;

	while ((nr = krcore_recv(node, letters, EX_LETTERS, buffer, sizeof(buffer), 0)) > 0)
		for (i = 0; i < nr; i++)
			ex_letter(node, &letters[i], buffer);
	while (nr == 0 && krcore_poll(node, wcs, EX_LETTERS) > 0)
		; /* nothing of ours waits for what was sent */
	return nr ? ex_fail("receiving") : 0;
}

static int ex_echo(struct krcore_node *node, uint16_t service)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);

	if (krcore_inbox_create(node, 0, 0) || krcore_listen(node, service, 0, 0))
		return ex_fail("listening");
	if (epoll_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, krcore_node_fd(node), &event))
		return 1;
	printf("published; interrupt to end\n");
	fflush(stdout);
	while (epoll_wait(epoll_fd, &event, 1, -1) > 0)
		if (ex_all(node))
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	struct krcore_node *node;
	uint16_t service;
	int status;

	ex_usage(argc, argv, 1, ex_text);
	service = (uint16_t)ex_number(argv[1], KRCORE_SERVICE_USER_MIN, 65535, "SERVICE");
	if (krcore_node_open(NULL, &node))
		return ex_fail("opening the node");
	status = ex_echo(node, service);
	krcore_node_close(node);
	return status;
}
