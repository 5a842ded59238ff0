/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* For tests that play what of libkrcore registers memory: they are linked with --wrap. */
#ifndef KRC_TESTS_UNIT_WRAP_NODE_H
#define KRC_TESTS_UNIT_WRAP_NODE_H

#include <krcore/queue.h>

int __wrap_krcore_node_open(const struct krcore_node_options *opts, struct krcore_node **ret_node);
void __wrap_krcore_node_close(struct krcore_node *node);
int __wrap_krcore_node_port(struct krcore_node *node, uint32_t index,
			    struct krcore_port_info *ret_info);
int __wrap_krcore_mr_reg(struct krcore_node *node, void *addr, size_t length, uint32_t access,
			 struct krcore_mr *ret_mr);

#endif
