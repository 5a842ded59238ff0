/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* For handoff_bytes_test, which plays what of the library it uses: it is linked with --wrap. */
#ifndef KRC_TESTS_UNIT_WRAP_HANDOFF_H
#define KRC_TESTS_UNIT_WRAP_HANDOFF_H

#include <krcore/queue.h>

int bytes_main(void);
int example_main(int argc, char **argv);
int __wrap_krcore_node_open(const struct krcore_node_options *opts, struct krcore_node **ret_node);
void __wrap_krcore_node_close(struct krcore_node *node);
int __wrap_krcore_node_port(struct krcore_node *node, uint32_t index,
			    struct krcore_port_info *ret_info);
int __wrap_krcore_mr_reg(struct krcore_node *node, void *addr, size_t length, uint32_t access,
			 struct krcore_mr *ret_mr);
int __wrap_krcore_mr_dereg(struct krcore_node *node, struct krcore_mr *mr);
int __wrap_krcore_start(const struct krcore_start_options *opts,
			struct krcore_started *ret_started);

#endif
