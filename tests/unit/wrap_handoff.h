/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* For handoff_bytes_test, which plays what of the library it uses: it is linked with --wrap. */
#ifndef KRC_TESTS_UNIT_WRAP_HANDOFF_H
#define KRC_TESTS_UNIT_WRAP_HANDOFF_H

#include "tests/unit/wrap_node.h"

int bytes_main(void);
int example_main(int argc, char **argv);
int __wrap_krcore_mr_dereg(struct krcore_node *node, struct krcore_mr *mr);
int __wrap_krcore_poll(struct krcore_node *node, struct krcore_wc *wcs, unsigned int nr);
int __wrap_krcore_wait(struct krcore_node *node, int timeout_ms);
long __wrap_sysconf(int name);
long __real_sysconf(int name);
int __wrap_krcore_start(const struct krcore_start_options *opts,
			struct krcore_started *ret_started);

#endif
