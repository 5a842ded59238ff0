// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A folder of the test's own: see scratch.h.
 */
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "scratch.h"

char scratch_root[] = "/tmp/krcore-test-XXXXXX";

int scratch_begin(void **state)
{
	(void)state;
	memcpy(scratch_root + sizeof(scratch_root) - 7, "XXXXXX", 6);
	return mkdtemp(scratch_root) ? 0 : -1;
}

static int scratch_remove(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

int scratch_end(void **state)
{
	(void)state;
	return nftw(scratch_root, scratch_remove, 8, FTW_DEPTH | FTW_PHYS);
}

const char *scratch_put(const char *name, const char *text, mode_t mode)
{
	static char path[256];
	char *slash;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", scratch_root, name);
	for (slash = strchr(path + sizeof(scratch_root), '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	assert_int_equal(chmod(path, mode), 0);
	return path;
}
