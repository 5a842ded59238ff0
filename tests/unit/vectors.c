// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Reader of golden vectors: see vectors.h.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/vectors.h"

static int vector_decode(const char *text, unsigned char *buf)
{
	int nr = 0;
	unsigned int byte;

	for (;;) {
		while (isspace((unsigned char)*text))
			text++;
		if (!*text)
			return nr;
		if (nr == VECTOR_BYTES_MAX || sscanf(text, "%2x", &byte) != 1 || !text[1])
			return -1;
		buf[nr++] = (unsigned char)byte;
		text += 2;
	}
}

int vector_load(const char *file, const char *name, unsigned char *buf)
{
	char path[512], line[3 * VECTOR_BYTES_MAX];
	size_t len = strlen(name);
	int nr = -1;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", VECTORS_DIR, file);
	f = fopen(path, "r");
	if (!f)
		return -1;
	while (nr < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, len) && line[len] == ':')
			nr = vector_decode(line + len + 1, buf);
	fclose(f);
	return nr;
}
