// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Keys and values as text, one line each: what scan prints and load reads.
 */
#include <stdio.h>

#include "race/tool/tool.h"

void kt_escape(const void *bytes, size_t nr)
{
	const unsigned char *b = bytes;
	size_t i;

	for (i = 0; i < nr; i++) {
		if (b[i] == '\\')
			fputs("\\\\", stdout);
		else if (b[i] == '\t')
			fputs("\\t", stdout);
		else if (b[i] == '\n')
			fputs("\\n", stdout);
		else if (b[i] < 0x20 || b[i] == 0x7f)
			printf("\\x%02x", b[i]);
		else
			putchar(b[i]);
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
