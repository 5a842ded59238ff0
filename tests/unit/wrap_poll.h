/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* For tests that are linked with --wrap=poll and --wrap=clock_gettime. */
#ifndef KRC_TESTS_UNIT_WRAP_POLL_H
#define KRC_TESTS_UNIT_WRAP_POLL_H

#include <poll.h>
#include <time.h>

int __wrap_poll(struct pollfd *fds, nfds_t nr, int timeout_ms);
int __real_poll(struct pollfd *fds, nfds_t nr, int timeout_ms);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_now);

#endif
