/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* For tests that are linked with --wrap=geteuid: what they define, and what is behind it. */
#ifndef KRC_TESTS_UNIT_WRAP_UID_H
#define KRC_TESTS_UNIT_WRAP_UID_H

#include <sys/types.h>

uid_t __wrap_geteuid(void);
uid_t __real_geteuid(void);

#endif
