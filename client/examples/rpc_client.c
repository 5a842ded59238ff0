// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Call krcore-example-rpc-server for each name, all at once, and write the replies to standard output in
 * the order of the names. A large one is READ straight to where it is wanted.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <krcore/message.h>

#include "rpc.h"

#define EX_CALLS 32

static const char ex_text[] =
	"usage: krcore-example-rpc-client PEER SERVICE NAME...\n"
	"\n"
	"Ask 'krcore-example-rpc-server SERVICE' at PEER, an address or host name, for files of these\n"
	"names, at most 32, and write their bytes to standard output. Needs the kernel module\n"
	"(/dev/krcore).\n";

/* @mr: of @bytes, while a large reply is READ. */
struct ex_reply {
	char *bytes;
	size_t length;
	struct krcore_mr mr;
	int done;
};

struct ex_calls {
	struct krcore_node *node;
	uint32_t connection;
	char **name;
	unsigned int nr, left;
	struct ex_reply reply[EX_CALLS];
};

static int ex_call_all(struct ex_calls *calls)
{
	struct krcore_send_wr wr;
	unsigned int i;

	for (i = 0; i < calls->nr; i++) {
		wr = (struct krcore_send_wr){ .addr = (uintptr_t)calls->name[i],
					      .connection = calls->connection,
					      .length = (uint32_t)strlen(calls->name[i]),
					      .imm = i };
		if (krcore_send_many(calls->node, &wr, 1, NULL) < 0)
			return ex_fail(calls->name[i]);
	}
	calls->left = calls->nr;
	return 0;
}

/* The reply to a call, or NULL after an error was printed. */
static struct ex_reply *ex_reply(struct ex_calls *calls, const struct krcore_letter *letter)
{
	uint32_t number = letter->imm & ~EX_RPC_NONE;

	if (number >= calls->nr || calls->reply[number].bytes) {
		fprintf(stderr, "a reply to no call\n");
		return NULL;
	}
	if (letter->imm & EX_RPC_NONE) {
		fprintf(stderr, "%s: there is no such file\n", calls->name[number]);
		return NULL;
	}
	calls->reply[number].length = letter->length;
	calls->reply[number].bytes = malloc(letter->length + 1);
	return calls->reply[number].bytes ? &calls->reply[number] : NULL;
}

static int ex_letter(struct ex_calls *calls, const struct krcore_letter *letter, const char *bytes)
{
	struct ex_reply *reply;

	if (letter->kind == KRCORE_LETTER_OPENED)
		return 0;
	if (letter->kind != KRCORE_LETTER_MESSAGE && letter->kind != KRCORE_LETTER_LARGE) {
		fprintf(stderr, "the connection is over: %s\n", strerror(-letter->status));
		return 1;
	}
	reply = ex_reply(calls, letter);
	if (!reply)
		return 1;
	if (letter->kind == KRCORE_LETTER_MESSAGE) {
		memcpy(reply->bytes, bytes, letter->length);
		reply->done = 1;
		calls->left--;
		return 0;
	}
	if (krcore_mr_reg(calls->node, reply->bytes, reply->length, KRCORE_ACCESS_LOCAL_WRITE,
			  &reply->mr) ||
	    krcore_fetch(calls->node, letter, 0, &reply->mr, reply->bytes, letter->length, 0,
			 (uint64_t)(reply - calls->reply)))
		return ex_fail("fetching a reply");
	return 0;
}

static int ex_completions(struct ex_calls *calls)
{
	struct krcore_wc wc;

	while (krcore_poll(calls->node, &wc, 1) > 0) {
		if (wc.status) {
			fprintf(stderr, "a message failed: %s\n", strerror(-wc.status));
			return 1;
		}
		if (wc.opcode != KRCORE_OP_FETCH)
			continue;
		krcore_mr_dereg(calls->node, &calls->reply[wc.user_data].mr);
		calls->reply[wc.user_data].done = 1;
		calls->left--;
	}
	return 0;
}

static int ex_take_all(struct ex_calls *calls)
{
	static char buffer[KRCORE_SEND_COPY_MAX];
	struct krcore_letter letter;
	unsigned int idle;
	int nr;

	for (idle = 0; calls->left && idle < 300; idle++) {
		nr = krcore_recv(calls->node, &letter, 1, buffer, sizeof(buffer), 100);
		if (nr < 0 && nr != -ETIMEDOUT)
			return ex_fail("receiving");
		if (nr > 0 && ex_letter(calls, &letter, buffer + letter.offset))
			return 1;
		if (ex_completions(calls))
			return 1;
		if (nr > 0)
			idle = 0;
	}
	if (calls->left)
		fprintf(stderr, "%u calls have no reply\n", calls->left);
	return calls->left != 0;
}

static int ex_all(struct ex_calls *calls, const struct krcore_key *peer)
{
	unsigned int i;

	if (krcore_inbox_create(calls->node, 0, 0) ||
	    krcore_connect(calls->node, peer, NULL, &calls->connection))
		return ex_fail("connecting");
	if (ex_call_all(calls) || ex_take_all(calls))
		return 1;
	for (i = 0; i < calls->nr; i++)
		fwrite(calls->reply[i].bytes, 1, calls->reply[i].length, stdout);
	return krcore_shutdown(calls->node, calls->connection, KRCORE_SHUT_CLOSE)
		       ? ex_fail("closing")
		       : 0;
}

int main(int argc, char **argv)
{
	static struct ex_calls calls;
	struct krcore_key peer;
	uint16_t service;
	int status;

	ex_usage(argc, argv, 3, ex_text);
	if (argc - 3 > EX_CALLS) {
		fprintf(stderr, "%s: %d names, at most %d calls are made at once\n", argv[0],
			argc - 3, EX_CALLS);
		return 2;
	}
	service = (uint16_t)ex_number(argv[2], KRCORE_SERVICE_USER_MIN, 65535, "SERVICE");
	calls.name = argv + 3;
	calls.nr = (unsigned int)(argc - 3);
	if (krcore_key_from_text(argv[1], service, &peer))
		return ex_fail(argv[1]);
	if (krcore_node_open(NULL, &calls.node))
		return ex_fail("opening the node");
	status = ex_all(&calls, &peer);
	krcore_node_close(calls.node);
	return status;
}
