/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A folder of the test's own, with files as sysfs or a configuration has them.
 * One at a time; not for threads.
 */
#ifndef TEST_METACTL_SCRATCH_H
#define TEST_METACTL_SCRATCH_H

#include <sys/stat.h>

extern char scratch_root[];

/* cmocka's set-up and tear-down: make the folder, take it away with all in it. */
int scratch_begin(void **state);
int scratch_end(void **state);

/* Make a file and the folders above it; returns its path until the next call. */
const char *scratch_put(const char *name, const char *text, mode_t mode);

#endif
