// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Framing of the control socket: kru_lines_*() fed in pieces of any size.
 *
 * The first byte gives the size of the pieces. However the bytes arrive, the
 * lines are those of the input, in order, none longer than the bound; a line
 * that is too long is an error and nothing after it is handed out.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/ctl.h"
#include "tests/fuzz/fuzz.h"

#define FZ_LINE_BYTES 32

/* Take whole lines; compare each with the input. Return how far the input was handed out. */
static size_t fz_take_lines(struct kru_lines *lines, const uint8_t *data, size_t size, size_t at)
{
	const char *line;
	size_t bytes;

	while (kru_lines_next(lines, &line, &bytes) == 1) {
		FZ_ASSERT(bytes < FZ_LINE_BYTES && at + bytes < size);
		FZ_ASSERT(!memcmp(line, data + at, bytes) && data[at + bytes] == '\n');
		FZ_ASSERT(!memchr(line, '\n', bytes));
		at += bytes + 1;
	}
	return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t piece, sent = 0, at = 0;
	struct kru_lines lines;
	int fd[2], got = 0;

	if (size < 2 || size > 4096)
		return 0;
	piece = *data % 64 + 1;
	data++;
	size--;
	FZ_ASSERT(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd));
	FZ_ASSERT(!kru_lines_init(&lines, FZ_LINE_BYTES));
	while (sent < size && got != -EMSGSIZE) {
		size_t nr = size - sent < piece ? size - sent : piece;

		FZ_ASSERT(write(fd[0], data + sent, nr) == (ssize_t)nr);
		sent += nr;
		while ((got = kru_lines_fill(&lines, fd[1])) > 0)
			at = fz_take_lines(&lines, data, size, at);
		FZ_ASSERT(got == -EAGAIN || got == -EMSGSIZE);
	}
	if (got == -EMSGSIZE)
		FZ_ASSERT(sent - at >= FZ_LINE_BYTES && !memchr(data + at, '\n', FZ_LINE_BYTES));
	else /* all was handed out but what has no end yet */
		FZ_ASSERT(at <= size && !memchr(data + at, '\n', size - at));
	kru_lines_done(&lines);
	close(fd[0]);
	close(fd[1]);
	return 0;
}
