// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Keys and values as text, one line each: what scan prints and load reads.
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/text.h"
#include "race/tool/tool.h"

static bool kt_has_letter(unsigned char c)
{
	return c == '\\' || c == '\t' || c == '\n';
}

/* Print bytes that have no escape of a letter. */
static void kt_escape_run(const unsigned char *b, size_t nr)
{
	char *safe = kru_text_safe(b, nr);
	size_t i;

	if (safe)
		fputs(safe, stdout);
	for (i = 0; !safe && i < nr; i++) /* no memory: the same bytes, longer */
		printf("\\x%02x", b[i]);
	free(safe);
}

void kt_escape(const void *bytes, size_t nr)
{
	const unsigned char *b = bytes;
	size_t from, to;

	for (from = 0; from < nr; from = to + 1) {
		for (to = from; to < nr && !kt_has_letter(b[to]); to++)
			;
		kt_escape_run(b + from, to - from);
		if (to < nr)
			fputs(b[to] == '\t' ? "\\t" : b[to] == '\n' ? "\\n" : "\\\\", stdout);
	}
}

static int kt_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

long kt_unescape(char *text, size_t nr)
{
	size_t from, to = 0;
	int high, low;

	for (from = 0; from < nr; from++) {
		if (text[from] != '\\') {
			text[to++] = text[from];
			continue;
		}
		if (++from == nr)
			return -1;
		switch (text[from]) {
		case '\\':
			text[to++] = '\\';
			break;
		case 't':
			text[to++] = '\t';
			break;
		case 'n':
			text[to++] = '\n';
			break;
		case 'x':
			if (nr - from < 3)
				return -1;
			high = kt_digit(text[from + 1]);
			low = kt_digit(text[from + 2]);
			if (high < 0 || low < 0)
				return -1;
			text[to++] = (char)(high << 4 | low);
			from += 2;
			break;
		default:
			return -1;
		}
	}
	return (long)to;
}
