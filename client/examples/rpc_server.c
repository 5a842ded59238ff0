// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Calls with large replies: a call is the name of a file, its reply the bytes of that. A reply of more
 * than KRCORE_SEND_COPY_MAX bytes is announced, and the node of whoever asked READs it out of the memory
 * here: no byte of it is copied. The reply has the number of its call.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <krcore/message.h>

#include "rpc.h"

#define EX_FILES 64
#define EX_BYTES_MAX (64UL << 20)
#define EX_LETTERS 16

static const char ex_text[] =
	"usage: krcore-example-rpc-server SERVICE FILE...\n"
	"\n"
	"Answer 'krcore-example-rpc-client' with the bytes of these files, until interrupted. They are\n"
	"read once; there are at most 64, with less than 64 MiB together. SERVICE is a number from\n"
	"256 to 65535.\n"
	"Needs the kernel module (/dev/krcore) and a MetaServer (/etc/krcore.conf).\n";

/* @mr: all of @bytes, if it is too long to be copied. */
struct ex_file {
	const char *name;
	char *bytes;
	size_t length;
	struct krcore_mr mr;
};

/* @used: bytes of @bytes, in which the files lie one behind the other. */
struct ex_files {
	struct ex_file file[EX_FILES];
	int nr;
	size_t used;
	char bytes[EX_BYTES_MAX];
};

/* Read one more file. Return: 0, or 1 after an error was printed. */
static int ex_read(struct ex_files *files, const char *name)
{
	struct ex_file *file = &files->file[files->nr];
	size_t room = EX_BYTES_MAX - files->used;
	FILE *from = fopen(name, "rb");
	int failed;

	if (!from) {
		fprintf(stderr, "%s: %s\n", name, strerror(errno));
		return 1;
	}
	file->name = name;
	file->bytes = files->bytes + files->used;
	file->length = fread(file->bytes, 1, room, from);
	failed = ferror(from) || file->length == room;
	if (failed)
		fprintf(stderr, "%s: %s\n", name, ferror(from) ? strerror(errno) : "too large");
	fclose(from);
	files->used += file->length;
	return failed;
}

/* @nr: of @names, at most EX_FILES. */
static int ex_read_all(struct krcore_node *node, struct ex_files *files, char **names, int nr)
{
	struct ex_file *file;

	for (; files->nr < nr; files->nr++) {
		file = &files->file[files->nr];
		if (ex_read(files, names[files->nr]))
			return 1;
		if (file->length > KRCORE_SEND_COPY_MAX &&
		    krcore_mr_reg(node, file->bytes, file->length, KRCORE_ACCESS_MESSAGE,
				  &file->mr))
			return ex_fail(file->name);
	}
	return 0;
}

static const struct ex_file *ex_find_file(const struct ex_files *files, const char *name,
					  size_t length)
{
	int i;

	for (i = 0; i < files->nr; i++)
		if (strlen(files->file[i].name) == length &&
		    !memcmp(files->file[i].name, name, length))
			return &files->file[i];
	return NULL;
}

static int ex_answer(struct krcore_node *node, const struct ex_files *files,
		     const struct krcore_letter *letter, const char *name)
{
	const struct ex_file *file = ex_find_file(files, name, letter->length);
	struct krcore_send_wr wr = { .connection = letter->connection, .imm = letter->imm };
	int taken;

	if (!file) {
		wr.imm |= EX_RPC_NONE;
	} else {
		wr.addr = (uintptr_t)file->bytes;
		wr.length = (uint32_t)file->length;
		wr.mr = file->length > KRCORE_SEND_COPY_MAX ? file->mr.handle : 0;
	}
	taken = krcore_send_many(node, &wr, 1, NULL);
	return taken < 0 ? taken : 0;
}

static void ex_letter(struct krcore_node *node, const struct ex_files *files,
		      const struct krcore_letter *letter, const char *buffer)
{
	int err = 0;

	switch (letter->kind) {
	case KRCORE_LETTER_OFFER:
		err = krcore_accept(node, letter->connection, NULL);
		break;
	case KRCORE_LETTER_MESSAGE:
		err = ex_answer(node, files, letter, buffer + letter->offset);
		break;
	case KRCORE_LETTER_LARGE: /* no call is that long */
		err = -EMSGSIZE;
		break;
	case KRCORE_LETTER_ENDED:
	case KRCORE_LETTER_DIED:
		krcore_shutdown(node, letter->connection, KRCORE_SHUT_CLOSE);
	}
	if (err)
		krcore_shutdown(node, letter->connection, KRCORE_SHUT_ABORT);
}

static int ex_serve_calls(struct krcore_node *node, const struct ex_files *files)
{
	static char buffer[EX_LETTERS * KRCORE_SEND_COPY_MAX];
	struct krcore_letter letters[EX_LETTERS];
	struct krcore_wc wcs[EX_LETTERS];
	int nr, i;

	for (;;) {
		nr = krcore_recv(node, letters, EX_LETTERS, buffer, sizeof(buffer), -1);
		if (nr < 0)
			return ex_fail("receiving");
		for (i = 0; i < nr; i++)
			ex_letter(node, files, &letters[i], buffer);
		while (krcore_poll(node, wcs, EX_LETTERS) > 0)
			; /* replies are never changed, so nothing waits for them */
	}
}

int main(int argc, char **argv)
{
	static struct ex_files files;
	struct krcore_node *node;
	uint16_t service;
	int status;

	ex_usage(argc, argv, 2, ex_text);
	if (argc - 2 > EX_FILES) {
		fprintf(stderr, "%s: %d files, at most %d are answered for\n", argv[0], argc - 2,
			EX_FILES);
		return 2;
	}
	service = (uint16_t)ex_number(argv[1], KRCORE_SERVICE_USER_MIN, 65535, "SERVICE");
	if (krcore_node_open(NULL, &node))
		return ex_fail("opening the node");
	status = ex_read_all(node, &files, argv + 2, argc - 2);
	if (!status && (krcore_inbox_create(node, 0, 0) || krcore_listen(node, service, 0, 0)))
		status = ex_fail("listening");
	if (!status) {
		printf("published %d files; interrupt to end\n", files.nr);
		fflush(stdout);
		status = ex_serve_calls(node, &files);
	}
	krcore_node_close(node);
	return status;
}
