/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: differences between the kernels that the module is built for. compat.mk probes the
 * headers of the target kernel and defines KRC_HAVE_*; no other file tests a version or such
 * a name.
 */
#ifndef KRC_COMPAT_H
#define KRC_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/mlx5/driver.h>
#include <linux/mm.h>
#include <linux/pci.h>
#include <linux/version.h>

#ifdef KRC_HAVE_RDMA_ITER_H
#include <rdma/iter.h> /* rdma_umem_for_each_dma_block(); in ib_umem.h before */
#endif

#ifndef KRC_COMPAT_PROBED
#error "compat.mk was not included by the Kbuild file"
#endif

/*
 * Behind the name of an array on the stack that is written before it is read: distributions have
 * the compiler zero what is on the stack (CONFIG_INIT_STACK_ALL_ZERO), at each call. Not known to
 * gcc before 12, which zeroes nothing then.
 */
#if __has_attribute(__uninitialized__)
#define krc_uninitialized __attribute__((__uninitialized__))
#else
#define krc_uninitialized
#endif

/**
 * krc_compat_eqn() - Number of the event queue behind a completion vector.
 * @mdev: device.
 * @vector: from 0 to krc_compat_vectors() - 1.
 * @ret_eqn: out.
 *
 * Context: may sleep: newer kernels create the queue at the first call.
 * Return: 0 or a negative errno.
 */
static inline int krc_compat_eqn(struct mlx5_core_dev *mdev, u32 vector, int *ret_eqn)
{
#ifdef KRC_HAVE_MLX5_COMP_EQN_GET
	return mlx5_comp_eqn_get(mdev, vector, ret_eqn);
#else
	return mlx5_vector2eqn(mdev, vector, ret_eqn);
#endif
}

/**
 * krc_compat_vectors() - How many completion vectors a device has.
 * @mdev: device.
 *
 * Context: any.
 * Return: at least 1.
 */
static inline u32 krc_compat_vectors(struct mlx5_core_dev *mdev)
{
#ifdef KRC_HAVE_MLX5_COMP_VECTORS_MAX
	return max(mlx5_comp_vectors_max(mdev), 1U);
#else
	return max(mlx5_comp_vectors_count(mdev), 1U);
#endif
}

/**
 * krc_compat_writes_combine() - Whether writes to a device reach it combined, up to 64 bytes at once.
 * @mdev: device.
 *
 * Context: may sleep: newer kernels test it at the first call, with a queue of their own.
 * Return: true if they do, or, where the kernel has no such test, if memory can be mapped so.
 */
static inline bool krc_compat_writes_combine(struct mlx5_core_dev *mdev)
{
#ifdef KRC_HAVE_MLX5_WC_SUPPORT_GET
	return mlx5_wc_support_get(mdev);
#else
	return arch_can_pci_mmap_wc();
#endif
}

/**
 * krc_compat_hrtimer() - Initialise a timer of CLOCK_MONOTONIC.
 * @timer: timer.
 * @function: called when it expires.
 * @mode: as given to hrtimer_start() later.
 *
 * Context: any. hrtimer_init() is gone from 6.15 on.
 */
static inline void krc_compat_hrtimer(struct hrtimer *timer,
				      enum hrtimer_restart (*function)(struct hrtimer *timer),
				      enum hrtimer_mode mode)
{
#ifdef KRC_HAVE_HRTIMER_SETUP
	hrtimer_setup(timer, function, CLOCK_MONOTONIC, mode);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, mode);
	timer->function = function;
#endif
}

/**
 * krc_compat_vma_never() - Take flags from a mapping that is being made.
 * @vma: mapping, in mmap() of its file.
 * @flags: VM_*, such as those of what mprotect(2) may allow later.
 *
 * Context: may sleep. Kernels before 6.3 have no function for it, unless they were given one.
 */
static inline void krc_compat_vma_never(struct vm_area_struct *vma, unsigned long flags)
{
#ifdef KRC_HAVE_VM_FLAGS_CLEAR
	vm_flags_clear(vma, flags);
#else
	vma->vm_flags &= ~flags;
#endif
}

/*
 * gup flags to pin pages long-term for reading only. Before 6.2 they must break copy-on-write
 * of a private file page, or the NIC would go on reading a page that the process no longer
 * maps. No header shows this change of behaviour, hence the version.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define KRC_COMPAT_PIN_TO_READ (FOLL_WRITE | FOLL_FORCE)
#else
#define KRC_COMPAT_PIN_TO_READ 0
#endif

/* Before 6.3 a task that pins pages long-term can't be killed while it waits for one. */
#define KRC_COMPAT_PIN_UNKILLABLE (LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0))

/**
 * krc_compat_pin_present() - Pin those of the next pages that are present, where pinning others
 *	must not be tried yet.
 * @addr: address of the first page.
 * @pages: most pages.
 * @flags: FOLL_*.
 * @batch: out: the pinned pages.
 *
 * Context: process; never sleeps or faults.
 * Return: how many; 0 if the first is not present, or not to be pinned without faulting it in.
 */
static inline int krc_compat_pin_present(unsigned long addr, int pages, unsigned int flags,
					 struct page **batch)
{
#if KRC_COMPAT_PIN_UNKILLABLE
	return max(pin_user_pages_fast_only(addr, pages, flags, batch), 0);
#else
	return 0;
#endif
}

#endif /* KRC_COMPAT_H */
