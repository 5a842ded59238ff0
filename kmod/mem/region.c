// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the memory regions of this node's programs, and of clients in its kernel, from pinning their
 * pages until neither a request nor a peer can touch them any more.
 *
 * A region is released in steps: its context drops it (no new request), it is unpublished (no
 * other peer learns of it), the requests in flight complete (idle), the lease of peers that
 * know it runs out (until); then its key is destroyed and its pages are unpinned. The caller
 * waits for that and takes the last step; or the directory's reaper has it taken, in turns of
 * payers; if the device goes, krc_mrdir_end() takes it at once.
 *
 * Registering and releasing a region does not delay others: its pages are pinned before the
 * port is entered, and firmware commands and walks over its pages, whose time grows with its
 * size, run with no lock held.
 * Locking: see mem/mem_priv.h.
 */
#include <linux/jiffies.h>
#include <linux/overflow.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "mem/mem_priv.h"
#include "mem/umem.h"

#define KRC_MR_BUSY_MS 10 /* how often a dying region in use is checked */

static int krc_mr_reg_valid(const struct krc_rail *rail, const struct krp_mr_reg *reg)
{
	u64 end;

	/* that it does not wrap is what krp_mrdir_inside() relies on */
	if (!reg->length || check_add_overflow(reg->addr, reg->length, &end) || end > ULONG_MAX)
		return -EINVAL;
	if (reg->access & ~(u32)(KRP_ACCESS_ALL | KRP_ACCESS_MESSAGE))
		return -EINVAL;
	if (reg->access & KRP_ACCESS_MESSAGE &&
	    reg->access & (KRP_ACCESS_REMOTE_WRITE | KRP_ACCESS_REMOTE_ATOMIC))
		return -EINVAL; /* peers get the key itself, which allows READs alone */
	if (reg->access & (KRP_ACCESS_REMOTE_WRITE | KRP_ACCESS_REMOTE_ATOMIC) &&
	    !(reg->access & KRP_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	if (reg->access & KRP_ACCESS_REMOTE_ATOMIC && !rail->attr.atomics)
		return -EOPNOTSUPP;
	return 0;
}

static bool krc_mr_is_remote(const struct krc_mr *mr)
{
	return mr->access & KRP_ACCESS_ALL & ~KRP_ACCESS_LOCAL_WRITE;
}

/* What its key is to allow. */
static u32 krc_mr_key_access(const struct krc_mr *mr)
{
	if (mr->access & KRP_ACCESS_MESSAGE)
		return (mr->access & KRP_ACCESS_ALL) | KRP_ACCESS_REMOTE_READ;
	return mr->access;
}

/* Publish a region, if it is remote, and add it to its directory's list. */
static int krc_mr_enlist(struct krc_mr *mr)
{
	struct krc_mrdir *dir = mr->dir;
	int err = 0;

	mutex_lock(&dir->lock);
	if (krc_mr_is_remote(mr))
		err = krc_mrdir_publish(dir, mr);
	mr->key.known = !err && mr->access & ~(u32)KRP_ACCESS_LOCAL_WRITE;
	if (!err)
		list_add_tail(&mr->list, &dir->regions);
	mutex_unlock(&dir->lock);
	return err;
}

int krc_mr_open(struct krc_mr *mr)
{
	const struct krc_provider_ops *ops = mr->dir->rail->ops;
	int err = krc_umem_map(mr->umem, mr->dir->rail->ibdev);

	if (err)
		return err;
	/* no lock: the time of the firmware grows with the number of pages */
	err = ops->key_umem(mr->dir->rail->hw, mr->umem, mr->addr, krc_mr_key_access(mr), &mr->key);
	if (err == -EUCLEAN) {
		mr->umem = NULL; /* as below */
		return -EIO;
	}
	if (err)
		goto err_map;
	err = krc_mr_enlist(mr);
	if (!err)
		return 0;
	if (!ops->key_destroy(mr->dir->rail->hw, &mr->key)) {
		mr->umem = NULL; /* the key still exists: stays pinned */
		return err;
	}
err_map:
	krc_umem_unmap(mr->umem);
	return err;
}

/*
 * Pin the process's memory, or hold @pages if there are any, which begin at address 0, as a region
 * without key.
 */
static struct krc_mr *krc_mr_alloc(struct krc_mrdir *dir, const struct krp_mr_reg *reg,
				   struct page *const *pages)
{
	struct krc_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL_ACCOUNT);
	bool writable = reg->access & KRP_ACCESS_LOCAL_WRITE;

	if (!mr)
		return ERR_PTR(-ENOMEM);
	if (pages)
		mr->umem = krc_umem_hold(pages, reg->length >> PAGE_SHIFT, writable,
					 dir->rail->segment_max);
	else
		mr->umem = krc_umem_pin(reg->addr, reg->length, writable, dir->rail->segment_max);
	if (IS_ERR(mr->umem)) {
		void *err = ERR_CAST(mr->umem);

		kfree(mr);
		return err;
	}
	kref_init(&mr->ref);
	init_completion(&mr->idle);
	init_completion(&mr->released);
	INIT_LIST_HEAD(&mr->list);
	mr->addr = reg->addr;
	mr->length = reg->length;
	mr->access = reg->access;
	mr->dir = dir;
	return mr;
}

/* krc_mr_open() with the port entered, so that the device exists and @dir is not dead. */
static int krc_mr_enter(struct krc_mr *mr)
{
	struct krc_rail *rail = mr->dir->rail;
	int err = -ENODEV;

	if (!krc_rail_enter(rail))
		return err;
	err = krc_mr_open(mr);
	if (!err) {
		krc_rail_get(rail);
		kref_get(&mr->dir->ref);
	}
	krc_rail_exit(rail);
	return err;
}

static struct krc_mr *krc_mr_register(struct krc_mrdir *mrdir, struct krc_user *user,
				      struct krp_mr_reg *reg, struct page *const *pages)
{
	struct krc_charge charge = {};
	struct krc_mr *mr;
	int err = krc_mr_reg_valid(mrdir->rail, reg);

	if (!err)
		err = krc_charge(user, KRC_RES_MR, &charge);
	if (err)
		return ERR_PTR(err);
	mr = krc_mr_alloc(mrdir, reg, pages);
	if (IS_ERR(mr)) {
		krc_uncharge(&charge);
		return mr;
	}
	/* before another task can find the region */
	mr->charge = charge;
	mr->key.payer = krc_charge_payer(&mr->charge);
	err = krc_mr_enter(mr);
	if (!err) {
		reg->token = mr->token;
		return mr;
	}
	if (mr->umem)
		krc_umem_unpin(mr->umem);
	krc_uncharge(&mr->charge);
	kfree(mr);
	return ERR_PTR(err);
}

struct krc_mr *krc_mr_reg(struct krc_mrdir *mrdir, struct krc_user *user, struct krp_mr_reg *reg)
{
	return krc_mr_register(mrdir, user, reg, NULL);
}

struct krc_mr *krc_mr_reg_pages(struct krc_mrdir *mrdir, struct krc_user *user,
				struct page *const *pages, u32 nr, u32 access)
{
	struct krp_mr_reg reg = { .length = (u64)nr << PAGE_SHIFT, .access = access };

	return krc_mr_register(mrdir, user, &reg, pages);
}

bool krc_mr_claim(struct krc_mr *mr)
{
	struct krc_mrdir *dir = mr->dir;

	lockdep_assert_held(&dir->lock);
	if (mr->claimed)
		return false;
	mr->claimed = true;
	list_del_init(&mr->list);
	dir->releasing++;
	return true;
}

/* The part of a release that takes time. */
static void krc_mr_release_memory(struct krc_mr *mr)
{
	/* If the key can't be destroyed, the memory stays pinned for good: peers know the key. */
	if (mr->dir->rail->ops->key_destroy(mr->dir->rail->hw, &mr->key)) {
		krc_umem_unmap(mr->umem);
		krc_umem_unpin(mr->umem);
	}
	mr->umem = NULL;
}

static void krc_mr_released(struct krc_mr *mr)
{
	struct krc_mrdir *dir = mr->dir;

	krc_uncharge(&mr->charge);
	mutex_lock(&dir->lock);
	WRITE_ONCE(dir->releasing, dir->releasing - 1);
	if (dir->dead) /* only krc_mrdir_end() waits for releasing; lease waits are timed */
		wake_up_all(&dir->gone);
	mutex_unlock(&dir->lock);
	complete_all(&mr->released); /* a waiting task may free it right after */
}

void krc_mr_release_claimed(struct krc_mr *mr)
{
	krc_mr_release_memory(mr);
	krc_mr_released(mr);
}

/* Release a region once: the first caller does it, others wait until it is done. */
static void krc_mr_release(struct krc_mr *mr)
{
	bool mine;

	mutex_lock(&mr->dir->lock);
	mine = krc_mr_claim(mr);
	mutex_unlock(&mr->dir->lock);
	if (mine)
		krc_mr_release_claimed(mr);
	else
		wait_for_completion(&mr->released);
}

void krc_mr_free(struct krc_mr *mr)
{
	struct krc_rail *rail = mr->dir->rail;

	krc_uncharge(&mr->slot); /* if the directory ended first */
	krc_mrdir_put(mr->dir);
	krc_rail_put(rail);
	kfree(mr);
}

void krc_mr_get(struct krc_mr *mr, u32 count)
{
	refcount_add(count, &mr->ref.refcount);
}

static void krc_mr_last_put(struct kref *ref)
{
	complete_all(&container_of(ref, struct krc_mr, ref)->idle); /* several may wait */
}

void krc_mr_put(struct krc_mr *mr, u32 count)
{
	if (refcount_sub_and_test(count, &mr->ref.refcount))
		krc_mr_last_put(&mr->ref);
}

unsigned long krc_mr_left(const struct krc_mr *mr)
{
	unsigned long now = jiffies, until = READ_ONCE(mr->until);

	return time_after(until, now) ? until - now : 0;
}

/* Whether neither a request nor a peer can touch the region any more. */
static bool krc_mr_is_over(struct krc_mr *mr)
{
	return completion_done(&mr->idle) && !krc_mr_left(mr);
}

/* Claim unused dying regions, to @over. Return: jiffies until the next check; 0: none left. */
static unsigned long krc_mr_reap_find(struct krc_mrdir *dir, struct list_head *over)
{
	unsigned long delay = 0, left;
	struct krc_mr *mr, *next;

	mutex_lock(&dir->lock);
	list_for_each_entry_safe(mr, next, &dir->dying, list) {
		if (krc_mr_is_over(mr)) {
			WARN_ON_ONCE(!krc_mr_claim(mr)); /* a claimed region is not in dying */
			list_add_tail(&mr->list, over);
			continue;
		}
		left = max(krc_mr_left(mr), msecs_to_jiffies(KRC_MR_BUSY_MS));
		delay = delay ? min(delay, left) : left;
	}
	mutex_unlock(&dir->lock);
	return delay;
}

static void krc_mr_release_turn(struct krc_turn *turn)
{
	krc_mr_release_memory(container_of(turn, struct krc_mr, turn));
}

/* Behind it, since the turn is counted by the payer, whom the charge keeps. */
static void krc_mr_release_over(struct krc_turn *turn)
{
	struct krc_mr *mr = container_of(turn, struct krc_mr, turn);

	krc_mr_released(mr);
	krc_mr_free(mr);
}

/* Have a region released that is claimed, and free it. */
static void krc_mr_release_in_turn(struct krc_mr *mr)
{
	krc_turn_queue(&mr->dir->releases, &mr->turn, mr->key.payer, krc_mr_release_turn,
		       krc_mr_release_over);
}

void krc_mr_reap(struct work_struct *work)
{
	struct krc_mrdir *dir = container_of(to_delayed_work(work), struct krc_mrdir, reap);
	struct krc_mr *mr, *next;
	unsigned long delay;
	LIST_HEAD(over);

	delay = krc_mr_reap_find(dir, &over);
	list_for_each_entry_safe(mr, next, &over, list) {
		list_del_init(&mr->list);
		krc_mr_release_in_turn(mr);
		cond_resched();
	}
	mutex_lock(&dir->lock);
	if (delay && !dir->dead)
		queue_delayed_work(dir->wq, &dir->reap, delay);
	mutex_unlock(&dir->lock);
}

/* Wait for requests, and for peers unless the directory is dead. Return: false if killed. */
static bool krc_mr_wait(struct krc_mr *mr)
{
	unsigned long left;
	long ret;

	if (wait_for_completion_killable(&mr->idle))
		return false;
	while ((left = krc_mr_left(mr))) {
		ret = wait_event_killable_timeout(mr->dir->gone, READ_ONCE(mr->dir->dead), left);
		if (ret < 0)
			return false;
		if (ret > 0)
			break;
	}
	return true;
}

/* Hand a region to the work items. Return: false if the directory is dead and has none. */
static bool krc_mr_bury(struct krc_mr *mr)
{
	struct krc_mrdir *dir = mr->dir;
	bool taken, over;

	mutex_lock(&dir->lock);
	taken = !dir->dead;
	over = taken && krc_mr_is_over(mr);
	if (over) {
		WARN_ON_ONCE(!krc_mr_claim(mr)); /* only the end of the directory does, too */
	} else if (taken) {
		list_move_tail(&mr->list, &dir->dying);
		queue_delayed_work(dir->wq, &dir->reap, krc_mr_left(mr));
	}
	mutex_unlock(&dir->lock);
	if (over)
		krc_mr_release_in_turn(mr);
	return taken;
}

/* Unpublish a region and drop the context's reference. */
static void krc_mr_close(struct krc_mr *mr)
{
	struct krc_mrdir *dir = mr->dir;

	mutex_lock(&dir->lock);
	if (!dir->dead)
		krc_mrdir_unpublish(dir, mr);
	else
		mr->until = jiffies;
	mutex_unlock(&dir->lock);
	krc_mr_put(mr, 1);
}

void krc_mr_dereg(struct krc_mr **mrs, u32 count, bool wait)
{
	u32 i;

	for (i = 0; i < count; i++)
		krc_mr_close(mrs[i]);
	for (i = 0; i < count; i++) {
		struct krc_mr *mr = mrs[i];

		wait = wait && krc_mr_wait(mr);
		/* the end of a context, and a task that is killed, leave it to the turns */
		if ((!wait || !krc_mr_is_over(mr)) && krc_mr_bury(mr))
			continue;
		/* release it here; if the device is gone, the last request is about to drop it */
		wait_for_completion(&mr->idle);
		krc_mr_release(mr);
		krc_mr_free(mr);
	}
}
