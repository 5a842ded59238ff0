/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* For handoff_box_test, which is linked with --wrap: what it defines, and what is behind it. */
#ifndef KRC_TESTS_UNIT_WRAP_BOX_H
#define KRC_TESTS_UNIT_WRAP_BOX_H

long __wrap_syscall(long number, ...);
long __real_syscall(long number, ...);

#endif
