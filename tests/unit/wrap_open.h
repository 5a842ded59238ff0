/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* For tests that are linked with --wrap=open: what they define. */
#ifndef KRC_TESTS_UNIT_WRAP_OPEN_H
#define KRC_TESTS_UNIT_WRAP_OPEN_H

int __wrap_open(const char *path, int flags);

#endif
