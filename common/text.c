// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Text that came from elsewhere: see text.h.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

/* Bytes of the printable UTF-8 character at @p; 0 if there is none. */
static size_t kru_utf8_bytes(const unsigned char *p, size_t left)
{
	size_t need, i;
	uint32_t c;

	if (p[0] < 0x80)
		return p[0] >= 0x20 && p[0] != 0x7f;
	if (p[0] >= 0xc2 && p[0] <= 0xdf)
		need = 2;
	else if ((p[0] & 0xf0) == 0xe0)
		need = 3;
	else if (p[0] >= 0xf0 && p[0] <= 0xf4)
		need = 4;
	else
		return 0;
	if (need > left)
		return 0;
	c = p[0] & (0xff >> (need + 1));
	for (i = 1; i < need; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (c < 0xa0 || (c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff)
		return 0;
	return (need == 3 && c < 0x800) || (need == 4 && c < 0x10000) ? 0 : need;
}

char *kru_text_safe(const void *text, size_t bytes)
{
	const unsigned char *p = text;
	char *safe = malloc(4 * bytes + 1);
	char *to = safe;
	size_t i, n;

	if (!safe)
		return NULL;
	for (i = 0; i < bytes; i += n) {
		n = kru_utf8_bytes(p + i, bytes - i);
		if (n) {
			memcpy(to, p + i, n);
			to += n;
		} else {
			to += sprintf(to, "\\x%02x", p[i]);
			n = 1;
		}
	}
	*to = '\0';
	return safe;
}
