/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* For race_serve_test, which plays what of libkrcore a server calls: it is linked with --wrap. */
#ifndef KRC_TESTS_UNIT_WRAP_SERVE_H
#define KRC_TESTS_UNIT_WRAP_SERVE_H

#include "tests/unit/wrap_node.h"

int __wrap_krcore_open(const struct krcore_options *opts, struct krcore_ctx **ret_ctx);
void __wrap_krcore_close(struct krcore_ctx *ctx);
int __wrap_krcore_publish(struct krcore_ctx *ctx, const struct krcore_key *key,
			  const struct krcore_value *value);
int __wrap_krcore_withdraw(struct krcore_ctx *ctx, const struct krcore_key *key);

#endif
