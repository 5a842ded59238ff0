/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* For handoff_call_test, which is linked with --wrap: what it defines, and what is behind it. */
#ifndef KRC_TESTS_UNIT_WRAP_CALL_H
#define KRC_TESTS_UNIT_WRAP_CALL_H

#include <netdb.h>

int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
		       struct addrinfo **ret_found);
int __real_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
		       struct addrinfo **ret_found);
void __wrap_freeaddrinfo(struct addrinfo *found);
void __real_freeaddrinfo(struct addrinfo *found);

#endif
