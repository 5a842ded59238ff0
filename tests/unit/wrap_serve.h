/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* For race_serve_test, which plays what of libkrcore a server calls: it is linked with --wrap. */
#ifndef KRC_TESTS_UNIT_WRAP_SERVE_H
#define KRC_TESTS_UNIT_WRAP_SERVE_H

#include <krcore/queue.h>

int __wrap_krcore_node_open(const struct krcore_node_options *opts, struct krcore_node **ret_node);
void __wrap_krcore_node_close(struct krcore_node *node);
int __wrap_krcore_node_port(struct krcore_node *node, uint32_t index,
			    struct krcore_port_info *ret_info);
int __wrap_krcore_mr_reg(struct krcore_node *node, void *addr, size_t length, uint32_t access,
			 struct krcore_mr *ret_mr);
int __wrap_krcore_open(const struct krcore_options *opts, struct krcore_ctx **ret_ctx);
void __wrap_krcore_close(struct krcore_ctx *ctx);
int __wrap_krcore_publish(struct krcore_ctx *ctx, const struct krcore_key *key,
			  const struct krcore_value *value);
int __wrap_krcore_withdraw(struct krcore_ctx *ctx, const struct krcore_key *key);

#endif
