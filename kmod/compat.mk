# SPDX-License-Identifier: GPL-2.0-only
#
# Owns: the probes of compat.h: which names the headers of the kernel at hand declare.
# Included by Kbuild files; adds to ccflags-y.
#
# Each probe knows the name in later kernels and that in earlier ones. Neither means that
# the headers are not where they are looked for, or that this kernel needs a new probe: the
# build ends there, and not with a hundred errors about names.

# srctree is the kernel's in all versions; from 6.13 on srcroot is the module's own folder
krc-headers := $(srctree)/include
krc-found = $(shell grep -ow $(1) $(krc-headers)/$(2) 2>/dev/null)
krc-neither = $(error krcore: $(krc-headers)/$(2) declares neither $(1) nor $(3): \
	this kernel's headers are not known to compat.mk)

# $(call krc-probe,LATER NAME,HEADER,MACRO,EARLIER NAME,ITS HEADER)
krc-probe = $(if $(call krc-found,$(1),$(2)),-D$(3),$(if $(call krc-found,$(4),$(5)),,$(call krc-neither,$(1),$(2),$(4) in $(5))))

ccflags-y += -DKRC_COMPAT_PROBED
ccflags-y += $(call krc-probe,mlx5_comp_eqn_get,linux/mlx5/driver.h,KRC_HAVE_MLX5_COMP_EQN_GET,mlx5_vector2eqn,linux/mlx5/driver.h)
ccflags-y += $(call krc-probe,mlx5_comp_vectors_max,linux/mlx5/driver.h,KRC_HAVE_MLX5_COMP_VECTORS_MAX,mlx5_comp_vectors_count,linux/mlx5/driver.h)
ccflags-y += $(call krc-probe,mlx5_wc_support_get,linux/mlx5/driver.h,KRC_HAVE_MLX5_WC_SUPPORT_GET,arch_can_pci_mmap_wc,linux/pci.h)
ccflags-y += $(call krc-probe,hrtimer_setup,linux/hrtimer.h,KRC_HAVE_HRTIMER_SETUP,hrtimer_init,linux/hrtimer.h)
ccflags-y += $(call krc-probe,vm_flags_clear,linux/mm.h,KRC_HAVE_VM_FLAGS_CLEAR,VM_MAYEXEC,linux/mm.h)
ccflags-y += $(call krc-probe,ib_block_iter,rdma/iter.h,KRC_HAVE_RDMA_ITER_H,ib_block_iter,rdma/ib_verbs.h)
