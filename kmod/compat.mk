# SPDX-License-Identifier: GPL-2.0-only
#
# Owns: the probes of compat.h: which names the headers of the kernel at hand declare.
# Included by Kbuild files; adds to ccflags-y.

krc-headers := $(if $(srcroot),$(srcroot),$(srctree))/include
krc-declares = $(if $(shell grep -ow $(1) $(krc-headers)/$(2) 2>/dev/null),-D$(3))

ccflags-y += -DKRC_COMPAT_PROBED
ccflags-y += $(call krc-declares,mlx5_comp_eqn_get,linux/mlx5/driver.h,KRC_HAVE_MLX5_COMP_EQN_GET)
ccflags-y += $(call krc-declares,mlx5_comp_vectors_max,linux/mlx5/driver.h,KRC_HAVE_MLX5_COMP_VECTORS_MAX)
ccflags-y += $(call krc-declares,hrtimer_setup,linux/hrtimer.h,KRC_HAVE_HRTIMER_SETUP)
ccflags-y += $(call krc-declares,ib_block_iter,rdma/iter.h,KRC_HAVE_RDMA_ITER_H)
