/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* For tests that are linked with --wrap=getgrnam: what they define. */
#ifndef KRC_TESTS_UNIT_WRAP_GROUP_H
#define KRC_TESTS_UNIT_WRAP_GROUP_H

#include <grp.h>

struct group *__wrap_getgrnam(const char *name);

#endif
