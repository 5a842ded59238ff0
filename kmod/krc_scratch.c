// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: krc_pool_read(): memory of the kernel that the NIC may write to, in cells, one
 * for each READ under way.
 *
 * A cell belongs to its READ until the hardware has completed it: a caller that does not
 * wait so long leaves the cell behind, and done() frees it. Each cell is a flow of its
 * own, so that one's fault is no other's.
 * Locking: krc_scratch.lock (bottom halves off) for the states of the cells.
 */
#include <linux/bitmap.h>
#include <linux/dma-mapping.h>
#include <linux/jiffies.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/wait.h>

#include "krc_initiator.h"
#include "krc_node.h"
#include "krc_spin.h"
#include "krp_ioctl.h"

#define KRC_SCRATCH_CELLS 64
#define KRC_SCRATCH_BYTES 256

/* One READ. @left: its caller has gone. */
struct krc_cell {
	struct krc_scratch *scratch;
	struct krc_flow flow;
	struct krc_req req;
	struct krc_hw_address address;
	struct completion arrived;
	bool left;
};

/**
 * struct krc_scratch - Cells of a pool.
 * @pool: pool.
 * @lock: protects @used and krc_cell.left.
 * @free: who waits for a cell.
 * @used: cells in use.
 * @memory: their bytes.
 * @dma: their address for the device.
 * @key: their key.
 * @cells: the cells.
 */
struct krc_scratch {
	struct krc_pool *pool;
	spinlock_t lock;
	wait_queue_head_t free;
	DECLARE_BITMAP(used, KRC_SCRATCH_CELLS);
	u8 *memory;
	dma_addr_t dma;
	struct krc_hw_key key;
	struct krc_cell cells[KRC_SCRATCH_CELLS];
};

static void krc_cell_free(struct krc_cell *cell)
{
	struct krc_scratch *scratch = cell->scratch;

	lockdep_assert_held(&scratch->lock);
	__clear_bit(cell - scratch->cells, scratch->used);
	wake_up(&scratch->free);
}

static void krc_cell_done(struct krc_req *req)
{
	struct krc_cell *cell = container_of(req, struct krc_cell, req);
	struct krc_scratch *scratch = cell->scratch;

	spin_lock_bh(&scratch->lock);
	if (cell->left)
		krc_cell_free(cell);
	else
		complete(&cell->arrived);
	spin_unlock_bh(&scratch->lock);
}

static struct krc_cell *krc_cell_try(struct krc_scratch *scratch)
{
	struct krc_cell *cell = NULL;
	unsigned long i;

	spin_lock_bh(&scratch->lock);
	i = find_first_zero_bit(scratch->used, KRC_SCRATCH_CELLS);
	if (i < KRC_SCRATCH_CELLS) {
		__set_bit(i, scratch->used);
		cell = &scratch->cells[i];
		cell->left = false;
		reinit_completion(&cell->arrived);
	}
	spin_unlock_bh(&scratch->lock);
	return cell;
}

/* Take a cell, waiting for one until @limit. */
static struct krc_cell *krc_cell_get(struct krc_scratch *scratch, unsigned long limit)
{
	struct krc_cell *cell = NULL;
	long left = (long)(limit - jiffies);

	left = wait_event_killable_timeout(
		scratch->free, READ_ONCE(scratch->pool->stopped) || (cell = krc_cell_try(scratch)),
		max(left, 1L));
	if (cell)
		return cell;
	if (left < 0)
		return ERR_PTR(-EINTR);
	return ERR_PTR(left ? -ENODEV : -ETIMEDOUT);
}

static int krc_cell_submit(struct krc_cell *cell, const struct krc_hw_address *address,
			   bool quarantined, u64 remote_addr, u32 rkey, u32 bytes)
{
	struct krc_scratch *scratch = cell->scratch;
	LIST_HEAD(reqs);

	cell->address = *address;
	cell->req.wr = (struct krc_hw_wr){
		.address = &cell->address,
		.remote_addr = remote_addr,
		.rkey = rkey,
		.local_addr = scratch->dma + (cell - scratch->cells) * KRC_SCRATCH_BYTES,
		.lkey = scratch->key.lkey,
		.length = bytes,
		.opcode = KRP_OP_READ,
	};
	list_add_tail(&cell->req.list, &reqs);
	cell->flow.quarantined = quarantined;
	krc_flow_restart(&cell->flow);
	return krc_flow_submit(&cell->flow, &reqs);
}

static bool krc_cell_poll(void *arg)
{
	struct krc_cell *cell = arg;

	if (!completion_done(&cell->arrived))
		krc_pool_poll(cell->flow.pool, krc_flow_index(&cell->flow));
	return completion_done(&cell->arrived);
}

/* Wait for the bytes; a cell that is left behind is freed by krc_cell_done(). */
static int krc_cell_wait(struct krc_cell *cell, unsigned long limit)
{
	struct krc_scratch *scratch = cell->scratch;
	long left = (long)(limit - jiffies);
	bool found = krc_spin(krc_cell_poll, cell);

	krc_pool_asleep(scratch->pool, krc_flow_index(&cell->flow), found);
	left = wait_for_completion_killable_timeout(&cell->arrived, max(left, 1L));
	if (left > 0)
		return 0;
	spin_lock_bh(&scratch->lock);
	if (try_wait_for_completion(&cell->arrived))
		left = 1;
	else
		cell->left = true;
	spin_unlock_bh(&scratch->lock);
	if (left > 0)
		return 0;
	return left ? -EINTR : -ETIMEDOUT;
}

int krc_pool_read(struct krc_pool *pool, const struct krc_hw_address *address, bool quarantined,
		  u64 remote_addr, u32 rkey, void *ret, u32 bytes, u32 timeout_ms)
{
	unsigned long limit = jiffies + msecs_to_jiffies(timeout_ms);
	struct krc_scratch *scratch = pool->scratch;
	struct krc_cell *cell;
	int err;

	if (!bytes || bytes > KRC_SCRATCH_BYTES)
		return -EINVAL;
	cell = krc_cell_get(scratch, limit);
	if (IS_ERR(cell))
		return PTR_ERR(cell);
	err = krc_cell_submit(cell, address, quarantined, remote_addr, rkey, bytes);
	if (!err) {
		err = krc_cell_wait(cell, limit);
		if (err)
			return err; /* not ours any more */
		err = cell->req.status;
	}
	if (!err)
		memcpy(ret, scratch->memory + (cell - scratch->cells) * KRC_SCRATCH_BYTES, bytes);
	spin_lock_bh(&scratch->lock);
	krc_cell_free(cell);
	spin_unlock_bh(&scratch->lock);
	return err;
}

int krc_scratch_create(struct krc_pool *pool)
{
	struct device *dma = pool->ops->dma_device(pool->port->hw);
	size_t bytes = KRC_SCRATCH_CELLS * KRC_SCRATCH_BYTES;
	struct krc_scratch *scratch = kvzalloc(sizeof(*scratch), GFP_KERNEL);
	int i, err = -ENOMEM;

	if (!scratch)
		return -ENOMEM;
	scratch->pool = pool;
	spin_lock_init(&scratch->lock);
	init_waitqueue_head(&scratch->free);
	for (i = 0; i < KRC_SCRATCH_CELLS; i++) {
		scratch->cells[i].scratch = scratch;
		init_completion(&scratch->cells[i].arrived);
		krc_flow_init(&scratch->cells[i].flow, pool, krc_cell_done, NULL);
		scratch->cells[i].flow.awake = true;
	}
	scratch->memory = dma_alloc_coherent(dma, bytes, &scratch->dma, GFP_KERNEL);
	if (!scratch->memory)
		goto err_scratch;
	err = pool->ops->key_dma(pool->port->hw, scratch->dma, bytes, KRP_ACCESS_LOCAL_WRITE,
				 &scratch->key);
	if (err)
		goto err_memory;
	pool->scratch = scratch;
	return 0;

err_memory:
	dma_free_coherent(dma, bytes, scratch->memory, scratch->dma);
err_scratch:
	kvfree(scratch);
	return err;
}

void krc_scratch_wake(struct krc_pool *pool)
{
	wake_up_all(&pool->scratch->free);
}

void krc_scratch_destroy(struct krc_pool *pool)
{
	struct krc_scratch *scratch = pool->scratch;

	if (pool->ops->key_destroy(pool->port->hw, &scratch->key))
		dma_free_coherent(pool->ops->dma_device(pool->port->hw),
				  KRC_SCRATCH_CELLS * KRC_SCRATCH_BYTES, scratch->memory,
				  scratch->dma);
	kvfree(scratch);
}
