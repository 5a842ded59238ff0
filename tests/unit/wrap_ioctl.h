/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* For tests that are linked with --wrap=ioctl: what they define, and what is behind it. */
#ifndef KRC_TESTS_UNIT_WRAP_IOCTL_H
#define KRC_TESTS_UNIT_WRAP_IOCTL_H

int __wrap_ioctl(int fd, unsigned long request, void *arg);
int __real_ioctl(int fd, unsigned long request, void *arg);

#endif
