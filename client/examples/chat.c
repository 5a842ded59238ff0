// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Two people talk: one program listens, the other one connects, and then they are the same. Each says its
 * name when it connects or accepts; a line of standard input is a message. Standard input and
 * messages are waited for in one poll().
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <krcore/message.h>

#include "example.h"

#define EX_LINE 1000

static const char ex_text[] =
	"usage: krcore-example-chat NAME SERVICE [PEER]\n"
	"\n"
	"Talk to somebody who runs this on another node. Whoever comes first leaves PEER out and waits;\n"
	"the other one names the first one's address or host. Lines go both ways; the end of standard\n"
	"input (Ctrl-D) ends it. NAME has 1 to 32 characters, SERVICE is a number from 256 to 65535.\n"
	"Needs the kernel module (/dev/krcore) and a MetaServer (/etc/krcore.conf).\n";

/* @with: the other one's name, empty: nobody is there. @line: what has been typed of a line. */
struct ex_chat {
	struct krcore_node *node;
	const char *name;
	uint32_t connection;
	char with[KRCORE_USER_MAX + 1];
	char line[EX_LINE];
	size_t typed;
	int over;
};

/* What would have the terminal do something is not for the peer to say. */
static void ex_plain(char *text, size_t length)
{
	size_t i;

	for (i = 0; i < length; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			text[i] = '?';
}

static void ex_joined(struct ex_chat *chat, const struct krcore_peer *peer)
{
	memcpy(chat->with, peer->user, peer->user_len);
	chat->with[peer->user_len] = 0;
	ex_plain(chat->with, peer->user_len);
	if (!peer->user_len)
		strcpy(chat->with, "somebody");
	printf("* %s is here\n", chat->with);
}

static int ex_offer(struct ex_chat *chat, const struct krcore_letter *letter,
		    const struct krcore_peer *peer)
{
	const struct krcore_connection_options opts = { .size = sizeof(opts),
							.user = chat->name,
							.user_len = (uint32_t)strlen(chat->name) };

	/* two are enough; and who has left already is no reason to stop waiting */
	if (*chat->with || krcore_accept(chat->node, letter->connection, &opts)) {
		krcore_refuse(chat->node, letter->connection);
		return 0;
	}
	chat->connection = letter->connection;
	ex_joined(chat, peer);
	return 0;
}

static int ex_letter(struct ex_chat *chat, const struct krcore_letter *letter, char *buffer)
{
	struct krcore_peer peer;

	switch (letter->kind) {
	case KRCORE_LETTER_OFFER:
	case KRCORE_LETTER_OPENED:
		if (krcore_letter_peer(letter, buffer, &peer))
			return ex_fail("who it is");
		if (letter->kind == KRCORE_LETTER_OFFER)
			return ex_offer(chat, letter, &peer);
		ex_joined(chat, &peer);
		return 0;
	case KRCORE_LETTER_MESSAGE:
		ex_plain(buffer + letter->offset, letter->bytes);
		printf("%s: %.*s\n", chat->with, (int)letter->bytes, buffer + letter->offset);
		return 0;
	case KRCORE_LETTER_LARGE:
		return krcore_discard(chat->node, letter) ? ex_fail("a large message") : 0;
	default:
		if (letter->status)
			printf("* %s is gone: %s\n", *chat->with ? chat->with : "the peer",
			       strerror(-letter->status));
		else
			printf("* %s has left\n", chat->with);
		chat->over = 1;
		return 0;
	}
}

static int ex_letters(struct ex_chat *chat)
{
	static char buffer[KRCORE_SEND_COPY_MAX];
	struct krcore_letter letter;
	struct krcore_wc wc;
	int nr;

	while ((nr = krcore_recv(chat->node, &letter, 1, buffer, sizeof(buffer), 0)) > 0)
		if (ex_letter(chat, &letter, buffer))
			return 1;
	while (krcore_poll(chat->node, &wc, 1) > 0)
		; /* that a line has arrived is not shown */
	fflush(stdout);
	return nr < 0 ? ex_fail("receiving") : 0;
}

static int ex_say(struct ex_chat *chat, const char *line, size_t length)
{
	int err;

	if (!*chat->with) {
		printf("* nobody is here yet\n");
		return 0;
	}
	err = krcore_send(chat->node, chat->connection, line, length, 0);
	if (err == -EAGAIN) {
		printf("* %s does not listen; not said: %.*s\n", chat->with, (int)length, line);
		return 0;
	}
	return err ? ex_fail("saying it") : 0;
}

/* What was typed; a line that is longer than there is room for is two. */
static int ex_input(struct ex_chat *chat)
{
	ssize_t nr = read(STDIN_FILENO, chat->line + chat->typed, sizeof(chat->line) - chat->typed);
	size_t said;
	char *end;

	if (nr <= 0) {
		chat->over = 1;
		return 0;
	}
	chat->typed += (size_t)nr;
	while (chat->typed) {
		end = memchr(chat->line, '\n', chat->typed);
		if (!end && chat->typed < sizeof(chat->line))
			return 0;
		said = end ? (size_t)(end - chat->line) : chat->typed;
		if (ex_say(chat, chat->line, said))
			return 1;
		said += end != NULL;
		chat->typed -= said;
		memmove(chat->line, chat->line + said, chat->typed);
	}
	return 0;
}

static int ex_talk(struct ex_chat *chat)
{
	struct pollfd p[] = { { .fd = krcore_node_fd(chat->node), .events = POLLIN },
			      { .fd = STDIN_FILENO, .events = POLLIN } };
	int status = 0;

	while (!status && !chat->over && poll(p, 2, -1) > 0) {
		if (p[0].revents)
			status = ex_letters(chat);
		if (!status && p[1].revents)
			status = ex_input(chat);
		fflush(stdout);
	}
	/* what was said last is sent before */
	if (chat->connection && krcore_shutdown(chat->node, chat->connection, KRCORE_SHUT_CLOSE))
		return ex_fail("leaving");
	return status;
}

static int ex_begin(struct ex_chat *chat, uint16_t service, const char *peer)
{
	const struct krcore_connection_options opts = { .size = sizeof(opts),
							.user = chat->name,
							.user_len = (uint32_t)strlen(chat->name) };
	struct krcore_key key;

	if (krcore_inbox_create(chat->node, 0, 0))
		return ex_fail("making an inbox");
	if (!peer) {
		if (krcore_listen(chat->node, service, 0, 0))
			return ex_fail("listening");
		printf("* waiting at service %u\n", service);
	} else if (krcore_key_from_text(peer, service, &key) ||
		   krcore_connect(chat->node, &key, &opts, &chat->connection)) {
		return ex_fail(peer);
	}
	fflush(stdout);
	return ex_talk(chat);
}

int main(int argc, char **argv)
{
	struct ex_chat chat = { .over = 0 };
	uint16_t service;
	int status;

	ex_usage(argc, argv, 2, ex_text);
	chat.name = argv[1];
	if (!*chat.name || strlen(chat.name) > KRCORE_USER_MAX) {
		fprintf(stderr, "NAME: '%s' has not 1 to %d characters\n", chat.name,
			KRCORE_USER_MAX);
		return 2;
	}
	service = (uint16_t)ex_number(argv[2], KRCORE_SERVICE_USER_MIN, 65535, "SERVICE");
	if (krcore_node_open(NULL, &chat.node))
		return ex_fail("opening the node");
	status = ex_begin(&chat, service, argv[3]);
	krcore_node_close(chat.node);
	return status;
}
