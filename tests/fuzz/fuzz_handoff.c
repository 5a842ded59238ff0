// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What comes to runners, functions and callers of krcore-handoff from the network: lines and
 * packed references. The first byte says whose parser gets the rest.
 *
 * What is accepted must be written as it was read, since there is one way to write each; a
 * refusal leaves what was there.
 */
#include <errno.h>
#include <string.h>

#include <krcore/queue.h>

#include "handoff/lib/words.h"
#include "tests/fuzz/fuzz.h"

static void fz_start(const char *line)
{
	char again[KH_LINE_BYTES + 16];
	struct kh_start start;
	unsigned int i;
	size_t len;

	if (kh_start_parse(line, &start))
		return;
	len = (size_t)snprintf(again, sizeof(again), "start %s", start.name);
	FZ_ASSERT(start.argc <= KH_ARGS_MAX && strlen(start.name) < KH_NAME_BYTES);
	FZ_ASSERT(!strchr(start.name, '/') && !strchr(start.name, '.'));
	for (i = 0; i < start.argc; i++)
		len += (size_t)snprintf(again + len, sizeof(again) - len, " %s", start.argv[i]);
	FZ_ASSERT(!strcmp(again, line));
}

/* A line as it was written again, without its newline. */
static void fz_same(const char *line, char *again, int len)
{
	FZ_ASSERT(len > 0 && len < KH_LINE_BYTES && again[len - 1] == '\n');
	again[len - 1] = '\0';
	FZ_ASSERT(!strcmp(line, again));
}

static void fz_command(const char *line)
{
	struct kh_command command, before;
	char again[KH_LINE_BYTES];

	memset(&command, 0xa5, sizeof(command));
	before = command;
	if (kh_command_parse(line, &command)) {
		FZ_ASSERT(!memcmp(&command, &before, sizeof(before)));
		return;
	}
	FZ_ASSERT(command.bytes <= KH_DATA_BYTES_MAX && strlen(command.word) < KH_WORD_BYTES);
	fz_same(line, again, kh_command_format(&command, again));
}

static void fz_reply(const char *line)
{
	struct kh_reply reply, before;
	char again[KH_LINE_BYTES];

	memset(&reply, 0xa5, sizeof(reply));
	before = reply;
	if (kh_reply_parse(line, &reply)) {
		FZ_ASSERT(!memcmp(&reply, &before, sizeof(before)));
		return;
	}
	/* the longest line has no room for a newline */
	if (strlen(line) < KH_LINE_BYTES - 2)
		fz_same(line, again, kh_reply_format(&reply, again));
}

/* Any text as that of a failure: one line comes of it, which can be read. */
static void fz_fail(const char *text)
{
	struct kh_reply reply = { .kind = KH_FAIL }, read;
	char line[KH_LINE_BYTES];
	int len;

	snprintf(reply.text, sizeof(reply.text), "%s", text);
	len = kh_reply_format(&reply, line);
	FZ_ASSERT(len > 0 && len < KH_LINE_BYTES && strchr(line, '\n') == line + len - 1);
	line[len - 1] = '\0';
	FZ_ASSERT(!kh_reply_parse(line, &read) && read.kind == KH_FAIL);
}

static void fz_packed(const char *word)
{
	uint8_t packed[KRCORE_PACKED_MAX], again[KRCORE_PACKED_MAX], gid[KRCORE_GID_BYTES];
	struct krcore_region_ref ref;
	char text[2 * KRCORE_PACKED_MAX + 1];
	int nr = kh_hex_parse(word, packed, sizeof(packed));

	if (nr < 0)
		return;
	kh_hex_format(packed, (size_t)nr, text);
	FZ_ASSERT(!strcmp(word, text));
	if (krcore_region_unpack(packed, (size_t)nr, gid, &ref))
		return;
	FZ_ASSERT(krcore_region_pack(gid, &ref, again) == nr && !memcmp(again, packed, (size_t)nr));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const parsers[])(const char *text) = { fz_start, fz_command, fz_reply,
							     fz_fail, fz_packed };
	char text[2 * KH_LINE_BYTES];

	if (!size || size > sizeof(text))
		return 0;
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	parsers[*data % (sizeof(parsers) / sizeof(parsers[0]))](text);
	return 0;
}
