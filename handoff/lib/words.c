// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Lines of text between caller, runner and function: see words.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handoff/lib/words.h"

#define KH_FIELDS_MAX (KH_ARGS_MAX + 2)

/* Printable characters and single blanks between them. */
static bool kh_is_line(const char *line)
{
	size_t i, len = strnlen(line, KH_LINE_BYTES);

	if (!len || len == KH_LINE_BYTES || line[0] == ' ' || line[len - 1] == ' ')
		return false;
	for (i = 0; i < len; i++)
		if (line[i] < ' ' || line[i] > '~' || (line[i] == ' ' && line[i + 1] == ' '))
			return false;
	return true;
}

/* Cut a copy of a line into words. Return: how many, or 0 if it is no line or has too many. */
static unsigned int kh_cut(const char *line, char *copy, const char **fields, unsigned int max)
{
	unsigned int nr = 0;
	char *at = copy, *end;

	if (!kh_is_line(line))
		return 0;
	memcpy(copy, line, strlen(line) + 1);
	for (; at; at = end) {
		if (nr == max)
			return 0;
		end = strchr(at, ' ');
		if (end)
			*end++ = '\0';
		fields[nr++] = at;
	}
	return nr;
}

/* A decimal number as it is printed. */
static bool kh_number(const char *text, uint64_t *ret)
{
	char again[24];
	uint64_t value;

	value = strtoull(text, NULL, 10);
	snprintf(again, sizeof(again), "%" PRIu64, value);
	*ret = value;
	return !strcmp(text, again);
}

static bool kh_is_name(const char *text)
{
	size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-_");

	return len && len < KH_NAME_BYTES && !text[len] && *text != '-';
}

int kh_start_parse(const char *line, struct kh_start *ret_start)
{
	const char *fields[KH_FIELDS_MAX];
	unsigned int nr = kh_cut(line, ret_start->line, fields, KH_FIELDS_MAX);

	if (nr < 2 || strcmp(fields[0], "start") != 0 || !kh_is_name(fields[1]))
		return -EINVAL;
	ret_start->name = fields[1];
	ret_start->argc = nr - 2;
	memcpy(ret_start->argv, fields + 2, (nr - 2) * sizeof(fields[0]));
	return 0;
}

static int kh_word(const char *text, char *ret_word)
{
	size_t len = strlen(text);

	if (len >= KH_WORD_BYTES)
		return -EINVAL;
	memcpy(ret_word, text, len + 1);
	return 0;
}

int kh_command_parse(const char *line, struct kh_command *ret_command)
{
	struct kh_command command = { .verb = KH_FREE };
	const char *fields[3];
	char copy[KH_LINE_BYTES];
	unsigned int nr = kh_cut(line, copy, fields, 3);

	if (nr == 3 && !strcmp(fields[0], "make")) {
		command.verb = KH_MAKE;
		if (!kh_number(fields[1], &command.bytes) || !kh_number(fields[2], &command.seed) ||
		    !command.bytes || command.bytes > KH_DATA_BYTES_MAX)
			return -EINVAL;
	} else if (nr == 2 && (!strcmp(fields[0], "take") || !strcmp(fields[0], "pass"))) {
		command.verb = *fields[0] == 't' ? KH_TAKE : KH_PASS;
		if (kh_word(fields[1], command.word))
			return -EINVAL;
	} else if (nr != 1 || strcmp(fields[0], "free") != 0) {
		return -EINVAL;
	}
	*ret_command = command;
	return 0;
}

int kh_command_format(const struct kh_command *command, char *ret_line)
{
	switch (command->verb) {
	case KH_MAKE:
		return snprintf(ret_line, KH_LINE_BYTES, "make %" PRIu64 " %" PRIu64 "\n",
				command->bytes, command->seed);
	case KH_TAKE:
	case KH_PASS:
		return snprintf(ret_line, KH_LINE_BYTES, "%s %s\n",
				command->verb == KH_TAKE ? "take" : "pass", command->word);
	case KH_FREE:
	default:
		return snprintf(ret_line, KH_LINE_BYTES, "free\n");
	}
}

static int kh_offer_parse(const char **fields, unsigned int nr, struct kh_reply *reply)
{
	reply->kind = KH_OFFER;
	if (nr != 4 || kh_word(fields[1], reply->text) || !kh_number(fields[2], &reply->bytes) ||
	    !kh_number(fields[3], &reply->sum) || !reply->bytes || reply->bytes > KH_DATA_BYTES_MAX)
		return -EINVAL;
	return 0;
}

static int kh_took_parse(const char **fields, unsigned int nr, struct kh_reply *reply)
{
	reply->kind = KH_TOOK;
	if (nr != 6 || !kh_number(fields[1], &reply->bytes) || !kh_number(fields[2], &reply->sum) ||
	    !kh_number(fields[3], &reply->start_ns) || !kh_number(fields[4], &reply->connect_ns) ||
	    !kh_number(fields[5], &reply->read_ns))
		return -EINVAL;
	return 0;
}

int kh_reply_parse(const char *line, struct kh_reply *ret_reply)
{
	struct kh_reply reply = { .kind = KH_FAIL };
	const char *fields[6];
	char copy[KH_LINE_BYTES];
	unsigned int nr;
	int err = 0;

	if (kh_is_line(line) && !strncmp(line, "fail ", 5)) {
		memcpy(reply.text, line + 5, strlen(line + 5) + 1);
		*ret_reply = reply;
		return 0;
	}
	nr = kh_cut(line, copy, fields, 6);
	if (!nr)
		return -EINVAL;
	if (!strcmp(fields[0], "offer"))
		err = kh_offer_parse(fields, nr, &reply);
	else if (!strcmp(fields[0], "took"))
		err = kh_took_parse(fields, nr, &reply);
	else if (nr == 1 && !strcmp(fields[0], "freed"))
		reply.kind = KH_FREED;
	else if (nr == 1 && !strcmp(fields[0], "lapsed"))
		reply.kind = KH_LAPSED;
	else
		err = -EINVAL;
	if (!err)
		*ret_reply = reply;
	return err;
}

/* "fail TEXT" with single blanks, and nothing that cannot be printed. */
static int kh_fail_format(const char *text, char *ret_line)
{
	int len = snprintf(ret_line, KH_LINE_BYTES, "fail ");

	for (; *text && len < KH_LINE_BYTES - 2; text++) {
		char c = *text > ' ' && *text <= '~' ? *text : ' ';

		if (c != ' ' || ret_line[len - 1] != ' ')
			ret_line[len++] = c;
	}
	if (ret_line[len - 1] == ' ') /* nothing behind it, or a blank at the end */
		ret_line[len - 1] = len == 5 ? ' ' : '\0';
	len = (int)strnlen(ret_line, (size_t)len);
	if (len == 5)
		ret_line[len++] = '?';
	ret_line[len++] = '\n';
	ret_line[len] = '\0';
	return len;
}

int kh_reply_format(const struct kh_reply *reply, char *ret_line)
{
	switch (reply->kind) {
	case KH_OFFER:
		return snprintf(ret_line, KH_LINE_BYTES, "offer %.*s %" PRIu64 " %" PRIu64 "\n",
				KH_WORD_BYTES - 1, reply->text, reply->bytes, reply->sum);
	case KH_TOOK:
		return snprintf(ret_line, KH_LINE_BYTES,
				"took %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
				"\n",
				reply->bytes, reply->sum, reply->start_ns, reply->connect_ns,
				reply->read_ns);
	case KH_FREED:
		return snprintf(ret_line, KH_LINE_BYTES, "freed\n");
	case KH_LAPSED:
		return snprintf(ret_line, KH_LINE_BYTES, "lapsed\n");
	case KH_FAIL:
	default:
		return kh_fail_format(reply->text, ret_line);
	}
}

void kh_hex_format(const uint8_t *bytes, size_t nr, char *ret_word)
{
	size_t i;

	*ret_word = '\0'; /* of no bytes */
	for (i = 0; i < nr; i++)
		snprintf(ret_word + 2 * i, 3, "%02x", bytes[i]);
}

static int kh_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int kh_hex_parse(const char *word, uint8_t *ret_bytes, size_t max)
{
	size_t nr;

	for (nr = 0; *word; nr++, word += 2) {
		int high = kh_digit(word[0]), low = high < 0 ? -1 : kh_digit(word[1]);

		if (low < 0 || nr == max)
			return -EINVAL;
		ret_bytes[nr] = (uint8_t)(high << 4 | low);
	}
	return (int)nr;
}
