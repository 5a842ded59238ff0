/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Registrations of libibverbs, as the linker redirects them to a test, with --wrap of each. What
 * ibv_reg_mr() is depends on what the compiler knows of its rights.
 */
#ifndef KRC_TESTS_UNIT_WRAP_MEMORY_H
#define KRC_TESTS_UNIT_WRAP_MEMORY_H

#include <infiniband/verbs.h>

struct ibv_mr *__wrap_ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t bytes, int access);
struct ibv_mr *__wrap_ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t bytes, uint64_t iova,
				       unsigned int access);
int __wrap_ibv_dereg_mr(struct ibv_mr *mr);

#endif
