/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* For tests that are linked with --wrap=krl_now_ns: what they define, and what is behind it. */
#ifndef KRC_TESTS_UNIT_WRAP_NOW_H
#define KRC_TESTS_UNIT_WRAP_NOW_H

#include <stdint.h>

uint64_t __wrap_krl_now_ns(void);
uint64_t __real_krl_now_ns(void);

#endif
