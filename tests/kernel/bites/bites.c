// SPDX-License-Identifier: GPL-2.0-only
/*
 * One fault of each kind that the kernel for KUnit is to report, so that its silence about
 * krcore.ko means something: freed memory that is read, a shift by more than there are bits,
 * sleeping under a spinlock, two locks taken in both orders. Locks come first: after a report of
 * memory lockdep trusts nothing.
 */
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

static DEFINE_SPINLOCK(bites_spinlock);
static DEFINE_MUTEX(bites_outer);
static DEFINE_MUTEX(bites_inner);
static unsigned int bites_bits = 33;

static int bites_read_freed(void)
{
	int *memory = kzalloc(sizeof(*memory), GFP_KERNEL);

	kfree(memory);
	return READ_ONCE(*memory);
}

static void bites_sleep(void)
{
	spin_lock(&bites_spinlock);
	might_sleep();
	spin_unlock(&bites_spinlock);
}

static void bites_lock(struct mutex *outer, struct mutex *inner)
{
	mutex_lock(outer);
	mutex_lock(inner);
	mutex_unlock(inner);
	mutex_unlock(outer);
}

static int __init bites_init(void)
{
	bites_lock(&bites_outer, &bites_inner);
	bites_lock(&bites_inner, &bites_outer);
	bites_sleep();
	pr_info("bites: %d %d\n", bites_read_freed(), 1 << READ_ONCE(bites_bits));
	return 0;
}

static void __exit bites_exit(void)
{
}

module_init(bites_init);
module_exit(bites_exit);
MODULE_DESCRIPTION("Faults that the kernel for KUnit must report");
MODULE_LICENSE("GPL");
