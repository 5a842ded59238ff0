// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Send each line of standard input to krcore-example-echo-server, and print what comes back.
 */
#include <stdio.h>
#include <string.h>

#include <krcore/message.h>

#include "example.h"

static const char ex_text[] =
	"usage: krcore-example-echo-client PEER SERVICE\n"
	"\n"
	"Send lines of standard input to 'krcore-example-echo-server SERVICE' at PEER, an address\n"
	"or host name, and print what it sends back. Needs the kernel module (/dev/krcore).\n";

/* The next letter, which is to be of this kind. Return: 0, or 1 after an error was printed. */
static int ex_next(struct krcore_node *node, uint8_t kind, struct krcore_letter *letter,
		   char *buffer)
{
	if (krcore_recv(node, letter, 1, buffer, KRCORE_SEND_COPY_MAX, 30000) < 0)
		return ex_fail("receiving");
	if (letter->kind == kind)
		return 0;
	fprintf(stderr, "the connection is over: %s\n", strerror(-letter->status));
	return 1;
}

static int ex_talk(struct krcore_node *node, const struct krcore_key *peer)
{
	char buffer[KRCORE_SEND_COPY_MAX], line[256];
	struct krcore_letter letter;
	struct krcore_wc wc;
	uint32_t connection;

	if (krcore_inbox_create(node, 0, 0) || krcore_connect(node, peer, NULL, &connection))
		return ex_fail("connecting");
	if (ex_next(node, KRCORE_LETTER_OPENED, &letter, buffer))
		return 1;
	while (fgets(line, sizeof(line), stdin)) {
		if (krcore_send(node, connection, line, strlen(line), 0))
			return ex_fail("sending");
		if (ex_next(node, KRCORE_LETTER_MESSAGE, &letter, buffer))
			return 1;
		printf("%.*s", (int)letter.bytes, buffer + letter.offset);
		while (krcore_poll(node, &wc, 1) > 0)
			; /* it has come back, so it has arrived */
	}
	return krcore_shutdown(node, connection, KRCORE_SHUT_CLOSE) ? ex_fail("closing") : 0;
}

int main(int argc, char **argv)
{
	struct krcore_node *node;
	struct krcore_key peer;
	uint16_t service;
	int status;

	ex_usage(argc, argv, 2, ex_text);
	service = (uint16_t)ex_number(argv[2], KRCORE_SERVICE_USER_MIN, 65535, "SERVICE");
	if (krcore_key_from_text(argv[1], service, &peer))
		return ex_fail(argv[1]);
	if (krcore_node_open(NULL, &node))
		return ex_fail("opening the node");
	status = ex_talk(node, &peer);
	krcore_node_close(node);
	return status;
}
