// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the memory regions of this node's programs, from the pages that are pinned to
 * the moment when neither a request nor a peer can touch them any more.
 *
 * A region ends in steps: its context lets go of it (no new request), it is taken out of
 * the directory (no peer learns of it), the requests under way complete (idle), the
 * lease of the peers that know it runs out (until), and then its key is destroyed and
 * its pages are unpinned. Who waits for that is the caller, or the reaper of the
 * directory; if the device goes, krc_mrdir_destroy() takes the last step at once.
 * Locking: see krc_mrdir.h.
 */
#include <linux/jiffies.h>
#include <linux/overflow.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "krc_mrdir.h"
#include "krc_node.h"

#define KRC_MR_BUSY_MS 10 /* how often a dying region in use is looked at */

static int krc_mr_reg_valid(const struct krc_port *port, const struct krp_mr_reg *reg)
{
	u64 end;

	if (!reg->length || check_add_overflow(reg->addr, reg->length, &end) || end > ULONG_MAX)
		return -EINVAL;
	if (reg->access & ~(u32)KRP_ACCESS_ALL)
		return -EINVAL;
	if (reg->access & (KRP_ACCESS_REMOTE_WRITE | KRP_ACCESS_REMOTE_ATOMIC) &&
	    !(reg->access & KRP_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	if (reg->access & KRP_ACCESS_REMOTE_ATOMIC && !port->attr.atomics)
		return -EOPNOTSUPP;
	return 0;
}

static int krc_mr_ib_access(u32 access)
{
	int flags = 0;

	if (access & KRP_ACCESS_LOCAL_WRITE)
		flags |= IB_ACCESS_LOCAL_WRITE;
	if (access & KRP_ACCESS_REMOTE_READ)
		flags |= IB_ACCESS_REMOTE_READ;
	if (access & KRP_ACCESS_REMOTE_WRITE)
		flags |= IB_ACCESS_REMOTE_WRITE;
	if (access & KRP_ACCESS_REMOTE_ATOMIC)
		flags |= IB_ACCESS_REMOTE_ATOMIC;
	return flags;
}

static bool krc_mr_is_remote(const struct krc_mr *mr)
{
	return mr->access & ~(u32)KRP_ACCESS_LOCAL_WRITE;
}

/* Key and, if it is open to peers, entry of a region with pinned pages. */
static int krc_mr_enter(struct krc_mr *mr)
{
	const struct krc_provider_ops *ops = mr->port->ops;
	struct krc_mrdir *dir = mr->dir;
	int err = -ENODEV;

	mutex_lock(&dir->lock);
	if (dir->dead)
		goto out;
	err = ops->key_umem(mr->port->hw, mr->umem, mr->addr, mr->access, &mr->key);
	if (err)
		goto out;
	if (krc_mr_is_remote(mr))
		err = krc_mrdir_publish(dir, mr);
	if (!err)
		list_add_tail(&mr->list, &dir->regions);
	else if (!ops->key_destroy(mr->port->hw, &mr->key))
		mr->umem = NULL; /* stays pinned */
out:
	mutex_unlock(&dir->lock);
	return err;
}

struct krc_mr *krc_mr_reg(struct krc_port *port, struct krp_mr_reg *reg)
{
	struct krc_mr *mr;
	int err = krc_mr_reg_valid(port, reg);

	if (err)
		return ERR_PTR(err);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL_ACCOUNT);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	kref_init(&mr->ref);
	init_completion(&mr->idle);
	INIT_LIST_HEAD(&mr->list);
	mr->addr = reg->addr;
	mr->length = reg->length;
	mr->access = reg->access;
	mr->port = port;
	mr->dir = port->mrdir;
	mr->umem = ib_umem_get(port->ibdev, reg->addr, reg->length, krc_mr_ib_access(reg->access));
	if (IS_ERR(mr->umem)) {
		err = PTR_ERR(mr->umem);
		if (err == -EPERM) /* RLIMIT_MEMLOCK is 0: as if it were too small */
			err = -ENOMEM;
		goto err_free;
	}
	err = krc_mr_enter(mr);
	if (err)
		goto err_umem;
	krc_port_get(port);
	kref_get(&mr->dir->ref);
	reg->token = mr->token;
	return mr;

err_umem:
	ib_umem_release(mr->umem);
err_free:
	kfree(mr);
	return ERR_PTR(err);
}

void krc_mr_release(struct krc_mr *mr)
{
	if (!mr->umem)
		return;
	/* A key that is still there keeps its memory pinned for good: peers know it. */
	if (mr->port->ops->key_destroy(mr->port->hw, &mr->key))
		ib_umem_release(mr->umem);
	mr->umem = NULL;
	list_del_init(&mr->list);
}

void krc_mr_free(struct krc_mr *mr)
{
	krc_mrdir_put(mr->dir);
	krc_port_put(mr->port);
	kfree(mr);
}

void krc_mr_get(struct krc_mr *mr)
{
	kref_get(&mr->ref);
}

static void krc_mr_last_put(struct kref *ref)
{
	complete_all(&container_of(ref, struct krc_mr, ref)->idle); /* waited for more than once */
}

void krc_mr_put(struct krc_mr *mr)
{
	kref_put(&mr->ref, krc_mr_last_put);
}

static unsigned long krc_jiffies_left(unsigned long until)
{
	unsigned long now = jiffies;

	return time_after(until, now) ? until - now : 0;
}

/* Neither a request nor a peer can touch it any more. */
static bool krc_mr_is_over(struct krc_mr *mr)
{
	return completion_done(&mr->idle) && !krc_jiffies_left(mr->until);
}

/*
 * The next dying region whose time has come, its hardware released; NULL if there is
 * none, and then when to look again: 0 if nothing is dying.
 */
static struct krc_mr *krc_mr_reap_one(struct krc_mrdir *dir, unsigned long *ret_delay)
{
	unsigned long delay = 0, left;
	struct krc_mr *mr;

	mutex_lock(&dir->lock);
	list_for_each_entry(mr, &dir->dying, list) {
		if (krc_mr_is_over(mr)) {
			krc_mr_release(mr);
			mutex_unlock(&dir->lock);
			return mr;
		}
		left = max(krc_jiffies_left(mr->until), msecs_to_jiffies(KRC_MR_BUSY_MS));
		delay = delay ? min(delay, left) : left;
	}
	mutex_unlock(&dir->lock);
	*ret_delay = delay;
	return NULL;
}

void krc_mr_reap(struct work_struct *work)
{
	struct krc_mrdir *dir = container_of(to_delayed_work(work), struct krc_mrdir, reap);
	unsigned long delay = 0;
	struct krc_mr *mr;

	while ((mr = krc_mr_reap_one(dir, &delay))) {
		krc_mr_free(mr);
		cond_resched();
	}
	mutex_lock(&dir->lock);
	if (delay && !dir->dead)
		queue_delayed_work(dir->wq, &dir->reap, delay);
	mutex_unlock(&dir->lock);
}

/* Wait for users and peers. Return false if the caller was killed before they were gone. */
static bool krc_mr_wait(struct krc_mr *mr)
{
	unsigned long left;
	long ret;

	if (wait_for_completion_killable(&mr->idle))
		return false;
	while ((left = krc_jiffies_left(mr->until))) {
		ret = wait_event_killable_timeout(mr->dir->gone, READ_ONCE(mr->dir->dead), left);
		if (ret < 0)
			return false;
		if (ret > 0)
			break;
	}
	return true;
}

/* Leave a region to the reaper. Return false if there is none any more. */
static bool krc_mr_bury(struct krc_mr *mr)
{
	struct krc_mrdir *dir = mr->dir;
	bool taken;

	mutex_lock(&dir->lock);
	taken = !dir->dead;
	if (taken) {
		list_move_tail(&mr->list, &dir->dying);
		queue_delayed_work(dir->wq, &dir->reap, krc_jiffies_left(mr->until));
	}
	mutex_unlock(&dir->lock);
	return taken;
}

void krc_mr_dereg(struct krc_mr *mr, bool wait)
{
	struct krc_mrdir *dir = mr->dir;

	mutex_lock(&dir->lock);
	mr->until = jiffies;
	if (!dir->dead)
		krc_mrdir_unpublish(dir, mr);
	mutex_unlock(&dir->lock);

	krc_mr_put(mr);
	if (!krc_mr_is_over(mr) && !(wait && krc_mr_wait(mr)) && krc_mr_bury(mr))
		return;

	/* done here; if the device is gone, the last request is about to say so */
	wait_for_completion(&mr->idle);
	mutex_lock(&dir->lock);
	krc_mr_release(mr);
	mutex_unlock(&dir->lock);
	krc_mr_free(mr);
}

int krc_mr_check(const struct krc_mr *mr, u64 addr, u32 length, bool write)
{
	if (!krp_mrdir_inside(mr->addr, mr->length, addr, length))
		return -ERANGE;
	if (write && !(mr->access & KRP_ACCESS_LOCAL_WRITE))
		return -EACCES;
	return 0;
}
