/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* For handoff_serve_test, which is linked with --wrap: what it defines, and what is behind it. */
#ifndef KRC_TESTS_UNIT_WRAP_RUNNER_H
#define KRC_TESTS_UNIT_WRAP_RUNNER_H

#include <ifaddrs.h>
#include <poll.h>
#include <sys/socket.h>

int __wrap_poll(struct pollfd *fds, nfds_t nr, int timeout);
int __real_poll(struct pollfd *fds, nfds_t nr, int timeout);
int __wrap_accept4(int listener, struct sockaddr *addr, socklen_t *len, int flags);
int __real_accept4(int listener, struct sockaddr *addr, socklen_t *len, int flags);
int __wrap_getifaddrs(struct ifaddrs **ret_all);
void __wrap_freeifaddrs(struct ifaddrs *all);

#endif
