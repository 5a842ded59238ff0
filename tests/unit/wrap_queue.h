/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Functions of queues in libkrcore, as the linker redirects them to a test, with --wrap of each.
 */
#ifndef KRC_TESTS_UNIT_WRAP_QUEUE_H
#define KRC_TESTS_UNIT_WRAP_QUEUE_H

#include "client/include/krcore/queue.h"

int __wrap_krcore_start(const struct krcore_start_options *opts,
			struct krcore_started *ret_started);
int __wrap_krcore_node_open(const struct krcore_node_options *opts, struct krcore_node **ret_node);
void __wrap_krcore_node_close(struct krcore_node *node);
int __wrap_krcore_mr_reg(struct krcore_node *node, void *addr, size_t length, uint32_t access,
			 struct krcore_mr *ret_mr);
int __wrap_krcore_mr_dereg_many(struct krcore_node *node, const struct krcore_mr *mrs,
				unsigned int nr);
int __wrap_krcore_queue_open(struct krcore_node *node, uint32_t depth,
			     const struct krcore_key *peer, uint32_t timeout_ms, uint32_t flags,
			     uint32_t *ret_queue, struct krcore_connect_info *ret_info);
int __wrap_krcore_queue_close(struct krcore_node *node, uint32_t queue);
int __wrap_krcore_queue_create(struct krcore_node *node, uint32_t depth, uint32_t *ret_queue);
int __wrap_krcore_queue_connect(struct krcore_node *node, uint32_t queue,
				const struct krcore_key *key, uint32_t timeout_ms, uint32_t flags,
				struct krcore_connect_info *ret_info);
int __wrap_krcore_post(struct krcore_node *node, uint32_t queue, const struct krcore_wr *wrs,
		       unsigned int nr, int *ret_error);
int __wrap_krcore_post_wait(struct krcore_node *node, uint32_t queue, const struct krcore_wr *wrs,
			    unsigned int nr, int *ret_error);
int __wrap_krcore_poll(struct krcore_node *node, struct krcore_wc *wcs, unsigned int nr);
int __wrap_krcore_wait(struct krcore_node *node, int timeout_ms);

#endif
