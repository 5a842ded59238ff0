// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: krc_pool_read(): memory of the kernel that the NIC may write to, in cells, one
 * for each READ under way, and who may have which.
 *
 * Cells are in sets. Targets that have answered lately are READ from by those of the first
 * set, on the shared initiators. Others are on probation (pool/silence.h): each cell of that
 * set has an initiator of its own, and a target is asked by one READ at a time, for which
 * its others wait. So is a silent one, in the set of quarantine. Nobody may have all cells
 * of a set for which others could be waiting: who pays for a READ has a share of them, and
 * who waits is served in turn by payers. To wait for a cell takes no task, and is no sign
 * of anything but that there is much to do.
 *
 * A cell belongs to its READ until the hardware has completed it. Each cell is a flow of
 * its own, so that one's fault is no other's.
 * Locking: krc_scratch.lock (bottom halves off) for all of it; then krc_standing.lock.
 * done() is called, and requests are submitted, without it.
 */
#include <linux/bitmap.h>
#include <linux/dma-mapping.h>
#include <linux/hash.h>
#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/slab.h>

#include "krp_ioctl.h"
#include "pool/pool_priv.h"
#include "pool/silence.h"

#define KRC_SCRATCH_BYTES 256
#define KRC_SHARED_CELLS 64
#define KRC_SHARED_MOST 16 /* of one payer */
#define KRC_SCRATCH_CELLS (KRC_SHARED_CELLS + KRC_POOL_APART)
#define KRC_CELL_ELSEWHERE (-ERESTART) /* internal: not posted, to be asked elsewhere */
#define KRC_SHARE_LOG2 6

/* What a READ waits for a cell of. */
enum krc_cell_set {
	KRC_CELLS_SHARED,
	KRC_CELLS_PROBATION,
	KRC_CELLS_QUARANTINE,
	KRC_CELLS_SETS,
};

/* Cells of a set, the first of them, and how many one payer may have at once. */
static const struct {
	u8 first, nr, most;
} krc_cell_sets[KRC_CELLS_SETS] = {
	[KRC_CELLS_SHARED] = { 0, KRC_SHARED_CELLS, KRC_SHARED_MOST },
	[KRC_CELLS_PROBATION] = { KRC_SHARED_CELLS, KRC_POOL_PROBATION, 1 },
	[KRC_CELLS_QUARANTINE] = { KRC_SHARED_CELLS + KRC_POOL_PROBATION,
				   KRC_POOL_APART - KRC_POOL_PROBATION, 1 },
};

/**
 * struct krc_share - What a payer has and wants of a set; there only as long as that is
 * something.
 * @node: in krc_scratch.shares.
 * @turn: in krc_scratch.turn of its set, while it wants more and may have it; or empty.
 * @waiting: READs without a cell.
 * @payer: payer.
 * @set: enum krc_cell_set.
 * @used: cells it has.
 */
struct krc_share {
	struct hlist_node node;
	struct list_head turn;
	struct list_head waiting;
	const void *payer;
	u32 set;
	u32 used;
};

/*
 * A cell; @read, @share and @standing (counted) are set while it is used. @probes: others wait
 * for this READ of its target.
 */
struct krc_cell {
	struct krc_scratch *scratch;
	struct krc_flow flow;
	struct krc_req req;
	struct krc_hw_address address;
	struct krc_read *read;
	struct krc_share *share;
	struct krc_standing *standing;
	bool probes;
};

/**
 * struct krc_scratch - Cells of a pool.
 * @pool: pool.
 * @lock: see above.
 * @stopped: no READ is taken any more.
 * @used: cells in use.
 * @turn: shares that wait, by set, whose turn it is first.
 * @shares: all shares, by payer.
 * @again: READs that waited for something that is over: they are looked at anew.
 * @more: work item that does, and hands cells to who waits.
 * @memory: their bytes.
 * @dma: their address for the device.
 * @key: their key.
 * @cells: the cells.
 */
struct krc_scratch {
	struct krc_pool *pool;
	spinlock_t lock;
	bool stopped;
	DECLARE_BITMAP(used, KRC_SCRATCH_CELLS);
	struct list_head turn[KRC_CELLS_SETS];
	struct hlist_head shares[1 << KRC_SHARE_LOG2];
	struct list_head again;
	struct work_struct more;
	u8 *memory;
	dma_addr_t dma;
	struct krc_hw_key key;
	struct krc_cell cells[KRC_SCRATCH_CELLS];
};

/* ---- who waits */

static struct krc_share *krc_share_find(struct krc_scratch *scratch, const void *payer, u32 set)
{
	struct krc_share *share;

	hlist_for_each_entry(share, &scratch->shares[hash_ptr(payer, KRC_SHARE_LOG2)], node)
		if (share->payer == payer && share->set == set)
			return share;
	return NULL;
}

static struct krc_share *krc_share_get(struct krc_scratch *scratch, const void *payer, u32 set)
{
	struct krc_share *share = krc_share_find(scratch, payer, set);

	lockdep_assert_held(&scratch->lock);
	if (share)
		return share;
	share = kzalloc(sizeof(*share), GFP_ATOMIC | __GFP_NOWARN);
	if (!share)
		return NULL;
	share->payer = payer;
	share->set = set;
	INIT_LIST_HEAD(&share->turn);
	INIT_LIST_HEAD(&share->waiting);
	hlist_add_head(&share->node, &scratch->shares[hash_ptr(payer, KRC_SHARE_LOG2)]);
	return share;
}

/* It has one cell or one READ more or less: is it its turn, or is it of no use any more? */
static void krc_share_settle(struct krc_scratch *scratch, struct krc_share *share)
{
	bool wants = !list_empty(&share->waiting) && share->used < krc_cell_sets[share->set].most;

	lockdep_assert_held(&scratch->lock);
	if (!wants)
		list_del_init(&share->turn);
	else if (list_empty(&share->turn))
		list_add_tail(&share->turn, &scratch->turn[share->set]);
	if (share->used || !list_empty(&share->waiting))
		return;
	hlist_del(&share->node);
	kfree(share);
}

static int krc_read_enqueue(struct krc_scratch *scratch, struct krc_read *read, u32 set)
{
	struct krc_share *share = krc_share_get(scratch, read->payer, set);

	lockdep_assert_held(&scratch->lock);
	if (!share)
		return -ENOMEM;
	read->share = share;
	list_add_tail(&read->list, &share->waiting);
	krc_share_settle(scratch, share);
	return 0;
}

/* Whom a target was waiting for has ended, or will not begin: the others are looked at anew. */
static void krc_probe_over(struct krc_scratch *scratch, struct krc_standing *standing)
{
	lockdep_assert_held(&scratch->lock);
	standing->probe = NULL;
	list_splice_tail_init(&standing->waiting, &scratch->again);
	if (!list_empty(&scratch->again) && !scratch->stopped)
		queue_work(scratch->pool->wq, &scratch->more);
}

/* Take a READ that has no cell out of where it waits. */
static void krc_read_dequeue(struct krc_scratch *scratch, struct krc_read *read)
{
	struct krc_share *share = read->share;

	lockdep_assert_held(&scratch->lock);
	list_del_init(&read->list);
	read->share = NULL;
	if (share)
		krc_share_settle(scratch, share);
	if (read->standing->probe == read)
		krc_probe_over(scratch, read->standing);
}

/* In place of a probe that has a cell: it is its owner's when it is over, and may be freed. */
static struct krc_read krc_probe_begun;

/*
 * A target is being asked already: wait for that. If whoever pays for it has others before it,
 * and this one has not, they change places.
 */
static int krc_read_join(struct krc_scratch *scratch, struct krc_read *read, u32 set)
{
	struct krc_standing *standing = read->standing;
	struct krc_read *probe = standing->probe;
	struct krc_share *share = krc_share_find(scratch, read->payer, set);
	int err;

	lockdep_assert_held(&scratch->lock);
	if (probe->share && probe->share->payer != read->payer &&
	    (!share || list_empty(&share->waiting))) {
		err = krc_read_enqueue(scratch, read, set);
		if (err)
			return err;
		standing->probe = read;
		krc_read_dequeue(scratch, probe);
		read = probe;
	}
	list_add_tail(&read->list, &standing->waiting);
	return 0;
}

/* Where a READ is to wait. Return: 0; or why it is not to be done. */
static int krc_read_admit(struct krc_scratch *scratch, struct krc_read *read)
{
	struct krc_standing *standing = read->standing;
	enum krc_standing_state state = krc_standing_now(standing);
	u32 set = state == KRC_STANDING_SILENT ? KRC_CELLS_QUARANTINE : KRC_CELLS_PROBATION;
	int err;

	lockdep_assert_held(&scratch->lock);
	read->share = NULL;
	if (scratch->stopped)
		return -ENODEV;
	if (state == KRC_STANDING_PROVEN)
		return krc_read_enqueue(scratch, read, KRC_CELLS_SHARED);
	if (standing->probe)
		return krc_read_join(scratch, read, set);
	if (!krc_standing_due(standing))
		return -ETIMEDOUT;
	err = krc_read_enqueue(scratch, read, set);
	if (!err)
		standing->probe = read;
	return err;
}

/* ---- who has a cell */

static struct krc_cell *krc_cell_take(struct krc_scratch *scratch, u32 set)
{
	u32 end = krc_cell_sets[set].first + krc_cell_sets[set].nr;
	u32 i = find_next_zero_bit(scratch->used, end, krc_cell_sets[set].first);

	lockdep_assert_held(&scratch->lock);
	if (i >= end)
		return NULL;
	__set_bit(i, scratch->used);
	return &scratch->cells[i];
}

static void krc_cell_free(struct krc_cell *cell)
{
	struct krc_scratch *scratch = cell->scratch;

	lockdep_assert_held(&scratch->lock);
	__clear_bit(cell - scratch->cells, scratch->used);
	cell->share->used--;
	krc_share_settle(scratch, cell->share);
	if (cell->probes)
		krc_probe_over(scratch, cell->standing);
	cell->read = NULL;
	cell->share = NULL;
}

/* The next of a set gets a cell. False: nobody waits, or there is none. */
static bool krc_cell_hand_out(struct krc_scratch *scratch, u32 set, struct list_head *started)
{
	struct krc_share *share =
		list_first_entry_or_null(&scratch->turn[set], struct krc_share, turn);
	struct krc_read *read;
	struct krc_cell *cell;

	lockdep_assert_held(&scratch->lock);
	if (!share)
		return false;
	read = list_first_entry(&share->waiting, struct krc_read, list);
	if (set == KRC_CELLS_SHARED && krc_standing_now(read->standing) != KRC_STANDING_PROVEN) {
		krc_read_dequeue(scratch, read); /* it was, when it began to wait */
		list_add_tail(&read->list, &scratch->again);
		queue_work(scratch->pool->wq, &scratch->more);
		return true;
	}
	cell = krc_cell_take(scratch, set);
	if (!cell)
		return false;
	list_move_tail(&read->list, started);
	read->share = NULL;
	cell->read = read;
	cell->share = share;
	cell->standing = read->standing;
	krc_standing_hold(cell->standing);
	cell->probes = read->standing->probe == read;
	if (cell->probes)
		read->standing->probe = &krc_probe_begun;
	read->cell = cell;
	read->queued = false;
	share->used++;
	list_del_init(&share->turn); /* and behind the others, if it wants more */
	krc_share_settle(scratch, share);
	return true;
}

static void krc_cells_hand_out(struct krc_scratch *scratch, struct list_head *started)
{
	u32 set;

	for (set = 0; set < KRC_CELLS_SETS; set++)
		while (krc_cell_hand_out(scratch, set, started))
			;
}

/* ---- what is under way */

static void *krc_cell_bytes(const struct krc_cell *cell)
{
	return cell->scratch->memory + (cell - cell->scratch->cells) * KRC_SCRATCH_BYTES;
}

static void krc_scratch_more(struct work_struct *work);

static int krc_cell_submit(struct krc_cell *cell)
{
	struct krc_scratch *scratch = cell->scratch;
	struct krc_read *read = cell->read;
	LIST_HEAD(reqs);

	cell->address = read->standing->key.address;
	cell->req.wr = (struct krc_hw_wr){
		.address = &cell->address,
		.remote_addr = read->remote_addr,
		.rkey = read->rkey,
		.local_addr = scratch->dma + (cell - scratch->cells) * KRC_SCRATCH_BYTES,
		.lkey = scratch->key.lkey,
		.length = read->bytes,
		.opcode = KRP_OP_READ,
	};
	read->start = jiffies;
	list_add_tail(&cell->req.list, &reqs);
	krc_flow_restart(&cell->flow);
	return krc_flow_submit(&cell->flow, &reqs);
}

/* What the outcome of a READ says about its target. */
static void krc_cell_judge(struct krc_cell *cell)
{
	switch (cell->req.fault) {
	case KRC_FAULT_NONE:
		if (!cell->req.status)
			krc_standing_answered(cell->standing);
		break;
	case KRC_FAULT_ACCESS: /* an answer, but one that costs all that share an initiator a reset */
	case KRC_FAULT_TIMEOUT:
	case KRC_FAULT_TARGET:
		krc_standing_failed(cell->standing, jiffies - cell->read->start);
		break;
	default: /* something here */
		break;
	}
}

/* The cell is free again; its READ, if it is not over, finds another place. */
static void krc_cell_leave(struct krc_cell *cell, struct krc_read *again)
{
	struct krc_scratch *scratch = cell->scratch;
	struct krc_standing *standing = cell->standing;
	bool stopped;

	spin_lock_bh(&scratch->lock);
	krc_cell_free(cell);
	if (again) {
		again->cell = NULL;
		again->queued = true;
		list_add_tail(&again->list, &scratch->again);
	}
	stopped = scratch->stopped;
	if (!stopped)
		queue_work(scratch->pool->wq, &scratch->more);
	spin_unlock_bh(&scratch->lock);
	krc_standing_put(standing);
	if (stopped) /* nobody else ends those that waited for it */
		krc_scratch_more(&scratch->more);
}

/* The READ of a cell is over; begin it anew if its owner wants that. */
static void krc_cell_end(struct krc_cell *cell, int err)
{
	if (err == KRC_CELL_ELSEWHERE) {
		krc_cell_leave(cell, cell->read);
		return;
	}
	while (cell->read->done(cell->read, err, krc_cell_bytes(cell))) {
		err = krc_cell_submit(cell);
		if (!err)
			return;
	}
	/* the READ is its owner's again, who may have freed it */
	krc_cell_leave(cell, NULL);
}

static void krc_cell_done(struct krc_req *req)
{
	struct krc_cell *cell = container_of(req, struct krc_cell, req);

	krc_cell_judge(cell);
	krc_cell_end(cell, req->status);
}

/*
 * Is asked before a READ is posted, also when that is for the second time: behind a neighbour's
 * fault to the same target, all that share the initiator would wait once more. One that has not
 * answered since is asked apart: a request with a lease takes the initiator back before the
 * hardware would say that the target is silent, and so it would be for ever.
 */
static int krc_cell_check(struct krc_req *req)
{
	struct krc_cell *cell = container_of(req, struct krc_cell, req);

	if (cell->flow.apart || krc_standing_now(cell->standing) == KRC_STANDING_PROVEN)
		return 0;
	return READ_ONCE(cell->standing->state) == KRC_STANDING_SILENT ? -ETIMEDOUT
								       : KRC_CELL_ELSEWHERE;
}

/* No lock is held; the first of the READs may have been ended when this returns. */
static void krc_cells_start(struct list_head *started)
{
	struct krc_read *read, *next;

	list_for_each_entry_safe(read, next, started, list) {
		struct krc_cell *cell = read->cell;
		int err;

		list_del_init(&read->list);
		err = krc_cell_submit(cell);
		if (err)
			krc_cell_end(cell, err);
	}
}

/* Those that waited for a probe find their place, and whose turn it is gets a cell. */
static void krc_scratch_more(struct work_struct *work)
{
	struct krc_scratch *scratch = container_of(work, struct krc_scratch, more);
	struct krc_read *read, *next;
	LIST_HEAD(started);
	LIST_HEAD(again);
	LIST_HEAD(ended);

	local_bh_disable();
	spin_lock(&scratch->lock);
	list_splice_init(&scratch->again, &again);
	list_for_each_entry_safe(read, next, &again, list) {
		list_del_init(&read->list);
		read->err = krc_read_admit(scratch, read);
		read->queued = !read->err;
		if (read->err)
			list_add_tail(&read->list, &ended);
	}
	krc_cells_hand_out(scratch, &started);
	spin_unlock(&scratch->lock);
	krc_cells_start(&started);
	list_for_each_entry_safe(read, next, &ended, list) {
		list_del_init(&read->list);
		read->done(read, read->err, NULL);
	}
	local_bh_enable();
}

int krc_pool_read(struct krc_pool *pool, struct krc_read *read, u32 *ret_index)
{
	struct krc_scratch *scratch = pool->scratch;
	struct krc_cell *cell;
	LIST_HEAD(started);
	int err;

	*ret_index = KRC_READ_WAITS;
	if (!read->bytes || read->bytes > KRC_SCRATCH_BYTES)
		return -EINVAL;
	INIT_LIST_HEAD(&read->list);
	read->cell = NULL;
	spin_lock_bh(&scratch->lock);
	err = krc_read_admit(scratch, read);
	read->queued = !err;
	krc_cells_hand_out(scratch, &started);
	cell = err ? NULL : read->cell;
	spin_unlock_bh(&scratch->lock);
	krc_cells_start(&started);
	if (cell)
		*ret_index = krc_flow_index(&cell->flow);
	return err;
}

bool krc_pool_unread(struct krc_pool *pool, struct krc_read *read)
{
	struct krc_scratch *scratch = pool->scratch;
	bool waits;

	spin_lock_bh(&scratch->lock);
	waits = read->queued;
	if (waits)
		krc_read_dequeue(scratch, read);
	read->queued = false;
	spin_unlock_bh(&scratch->lock);
	return waits;
}

/* ---- begin and end */

static void krc_scratch_init(struct krc_scratch *scratch, struct krc_pool *pool)
{
	int i;

	scratch->pool = pool;
	spin_lock_init(&scratch->lock);
	INIT_LIST_HEAD(&scratch->again);
	INIT_WORK(&scratch->more, krc_scratch_more);
	for (i = 0; i < KRC_CELLS_SETS; i++)
		INIT_LIST_HEAD(&scratch->turn[i]);
	for (i = 0; i < KRC_SCRATCH_CELLS; i++) {
		struct krc_cell *cell = &scratch->cells[i];

		cell->scratch = scratch;
		krc_flow_init(&cell->flow, pool, krc_cell_done, krc_cell_check);
		cell->flow.apart = i < KRC_SHARED_CELLS ? 0 : 1 + i - KRC_SHARED_CELLS;
	}
}

int krc_scratch_create(struct krc_pool *pool)
{
	struct device *dma = pool->ops->dma_device(pool->rail->hw);
	size_t bytes = KRC_SCRATCH_CELLS * KRC_SCRATCH_BYTES;
	struct krc_scratch *scratch = kvzalloc(sizeof(*scratch), GFP_KERNEL);
	int err = -ENOMEM;

	if (!scratch)
		return -ENOMEM;
	krc_scratch_init(scratch, pool);
	scratch->memory = dma_alloc_coherent(dma, bytes, &scratch->dma, GFP_KERNEL);
	if (!scratch->memory)
		goto err_scratch;
	err = pool->ops->key_dma(pool->rail->hw, scratch->dma, bytes, KRP_ACCESS_LOCAL_WRITE,
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

/* All READs that wait for a cell are to be looked at anew. */
static void krc_scratch_flush(struct krc_scratch *scratch)
{
	struct krc_share *share;
	struct hlist_node *next;
	u32 i;

	lockdep_assert_held(&scratch->lock);
	for (i = 0; i < ARRAY_SIZE(scratch->shares); i++)
		hlist_for_each_entry_safe(share, next, &scratch->shares[i], node) {
			struct krc_read *read, *tmp;
			LIST_HEAD(waiting);

			share->used++; /* it stays until here */
			list_splice_init(&share->waiting, &waiting);
			list_for_each_entry_safe(read, tmp, &waiting, list) {
				krc_read_dequeue(scratch, read);
				list_add_tail(&read->list, &scratch->again);
			}
			share->used--;
			krc_share_settle(scratch, share);
		}
}

void krc_scratch_stop(struct krc_pool *pool)
{
	struct krc_scratch *scratch = pool->scratch;

	spin_lock_bh(&scratch->lock);
	scratch->stopped = true;
	krc_scratch_flush(scratch);
	spin_unlock_bh(&scratch->lock);
}

void krc_scratch_end(struct krc_pool *pool)
{
	struct krc_scratch *scratch = pool->scratch;

	cancel_work_sync(&scratch->more);
	krc_scratch_more(&scratch->more);
}

void krc_scratch_destroy(struct krc_pool *pool)
{
	struct krc_scratch *scratch = pool->scratch;

	WARN_ON(!bitmap_empty(scratch->used, KRC_SCRATCH_CELLS));
	if (pool->ops->key_destroy(pool->rail->hw, &scratch->key))
		dma_free_coherent(pool->ops->dma_device(pool->rail->hw),
				  KRC_SCRATCH_CELLS * KRC_SCRATCH_BYTES, scratch->memory,
				  scratch->dma);
	kvfree(scratch);
}
