// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: memory keys. Each is a list of pages in a key for fast registration, with exactly the range
 * and rights asked for; ib_reg_user_mr() is not used: it would pin the memory of programs again,
 * charge it twice, and could block as long as a program likes while the port is entered.
 *
 * REGISTRATION
 *   A list becomes a key by a request (IB_WR_REG_MR) on a queue pair that can send. There is
 *   one for that, connected to itself, made when the first key is, and anew when it has failed. It
 *   does one request after the other; those for programs come there in turns by payers.
 *
 * WHAT A PEER CAN UNDO
 *   rxe (rxe_invalidate_mr() of 6.1 and 6.12) lets a SEND with invalidate take the rights of any
 *   key made by fast registration whose rkey it names, whatever the right of its sender. Only the
 *   kernel of a node that has a lane can send one, and nothing of this module does. It gets at no
 *   memory by it, but would keep others from memory that its node was told of: so the key is
 *   registered again when the SEND is taken out of the receive queue, under its name and with its
 *   rights, by a work item. Requests between the two are refused.
 *
 * REST
 *   See hw/rest.h. rxe (rxe_pool.c of 6.1 and 6.12) gives indices by xa_alloc_cyclic() out of
 *   2^19, which a program that registers in a loop goes round in seconds, and a random low byte.
 *   Fast registration takes the low byte from the caller, so each index goes through all of its
 *   names in turn here.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/lockdep.h>
#include <linux/random.h>
#include <linux/scatterlist.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>

#include "base/log.h"
#include "hw/verbs/verbs.h"

#define KRC_VERBS_KEY_TURNS 2
#define KRC_VERBS_REGISTER_MS 5000 /* longest that a registration takes */
#define KRC_VERBS_REGISTER_DEPTH 4
#define KRC_VERBS_REGISTER_TRIES 3
#define KRC_VERBS_PSN_MASK 0xffffff
#define KRC_VERBS_KEY_SHIFT 8 /* of an index in a key */
#define KRC_VERBS_RESTORE_TRIES 3
#define KRC_VERBS_RESTORE_MS 20 /* to the next try */
#define KRC_VERBS_UNDONE XA_MARK_0 /* of krc_verbs.keys: a peer has undone it */

/**
 * struct krc_verbs_registering - A registration that is under way.
 * @cqe: called when it is done.
 * @done: completed then.
 * @status: its outcome.
 */
struct krc_verbs_registering {
	struct ib_cqe cqe;
	struct completion done;
	enum ib_wc_status status;
};

/* ---- the queue pair that registers */

static void krc_verbs_register_end(struct krc_verbs *v)
{
	if (v->register_qp)
		ib_destroy_qp(v->register_qp);
	v->register_qp = NULL;
	if (v->register_cq)
		ib_free_cq(v->register_cq); /* no completion is told any more */
	v->register_cq = NULL;
}

/* Any GID of a port that can be routed to: the queue pair sends no packet. Return: or ERR_PTR(). */
static const struct ib_gid_attr *krc_verbs_some_gid(struct krc_verbs *v, u32 port)
{
	int i;

	for (i = 0; i < v->ibdev->port_data[port].immutable.gid_tbl_len; i++) {
		const struct ib_gid_attr *attr = rdma_get_gid_attr(v->ibdev, port, i);

		if (IS_ERR(attr))
			continue;
		if (!v->roce || (attr->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP &&
				 !rdma_link_local_addr((struct in6_addr *)attr->gid.raw)))
			return attr;
		rdma_put_gid_attr(attr);
	}
	return ERR_PTR(-EADDRNOTAVAIL);
}

static void krc_verbs_register_path(struct krc_verbs *v, const struct ib_gid_attr *gid,
				    struct rdma_ah_attr *ah)
{
	struct ib_port_attr port = {};
	u32 num = v->register_port;

	ah->type = rdma_ah_find_type(v->ibdev, num);
	rdma_ah_set_port_num(ah, num);
	rdma_ah_set_sl(ah, v->ports[num].fabric.sl);
	rdma_ah_set_grh(ah, (union ib_gid *)&gid->gid, 0, gid->index, KRC_VERBS_HOP_LIMIT, 0);
	if (!v->roce && !ib_query_port(v->ibdev, num, &port))
		rdma_ah_set_dlid(ah, port.lid);
}

/*
 * Connect the queue pair to itself. Numbers of packets are random: who sends it one that fits brings
 * it to an error.
 */
static int krc_verbs_register_connect(struct krc_verbs *v, const struct ib_gid_attr *gid)
{
	u32 num = v->register_port;
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT,
				   .port_num = num,
				   .pkey_index = v->ports[num].pkey_index };
	struct ib_qp *qp = v->register_qp;
	int err;

	err = ib_modify_qp(qp, &attr,
			   IB_QP_STATE | IB_QP_PORT | IB_QP_PKEY_INDEX | IB_QP_ACCESS_FLAGS);
	if (err)
		return err;
	attr = (struct ib_qp_attr){ .qp_state = IB_QPS_RTR,
				    .path_mtu = IB_MTU_256,
				    .dest_qp_num = qp->qp_num,
				    .rq_psn = get_random_u32() & KRC_VERBS_PSN_MASK,
				    .max_dest_rd_atomic = 1,
				    .min_rnr_timer = 12 };
	krc_verbs_register_path(v, gid, &attr.ah_attr);
	err = ib_modify_qp(qp, &attr,
			   IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
				   IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	if (err)
		return err;
	attr = (struct ib_qp_attr){ .qp_state = IB_QPS_RTS,
				    .sq_psn = get_random_u32() & KRC_VERBS_PSN_MASK,
				    .timeout = 14,
				    .retry_cnt = 6,
				    .rnr_retry = 6,
				    .max_rd_atomic = 1 };
	return ib_modify_qp(qp, &attr,
			    IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
				    IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
}

static int krc_verbs_register_begin(struct krc_verbs *v)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = { .max_send_wr = KRC_VERBS_REGISTER_DEPTH,
			 .max_recv_wr = 1,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	const struct ib_gid_attr *gid;
	int err;

	lockdep_assert_held(&v->register_lock);
	if (v->register_qp)
		return 0;
	gid = krc_verbs_some_gid(v, v->register_port);
	if (IS_ERR(gid))
		return PTR_ERR(gid);
	v->register_cq = ib_alloc_cq(v->ibdev, v, 2 * KRC_VERBS_REGISTER_DEPTH, 0, IB_POLL_SOFTIRQ);
	err = PTR_ERR_OR_ZERO(v->register_cq);
	if (err)
		goto err_cq;
	init.send_cq = v->register_cq;
	init.recv_cq = v->register_cq;
	v->register_qp = ib_create_qp(v->pd, &init);
	err = PTR_ERR_OR_ZERO(v->register_qp);
	if (err)
		goto err_qp;
	err = krc_verbs_register_connect(v, gid);
	if (err)
		krc_verbs_register_end(v);
	rdma_put_gid_attr(gid);
	return err;

err_cq:
	v->register_cq = NULL;
err_qp:
	v->register_qp = NULL;
	krc_verbs_register_end(v);
	rdma_put_gid_attr(gid);
	return err;
}

static void krc_verbs_registered(struct ib_cq *cq, struct ib_wc *wc)
{
	struct krc_verbs_registering *r =
		container_of(wc->wr_cqe, struct krc_verbs_registering, cqe);

	r->status = wc->status;
	complete(&r->done);
}

static int krc_verbs_flags(u32 access)
{
	return (access & KRP_ACCESS_LOCAL_WRITE ? IB_ACCESS_LOCAL_WRITE : 0) |
	       (access & KRP_ACCESS_REMOTE_READ ? IB_ACCESS_REMOTE_READ : 0) |
	       (access & KRP_ACCESS_REMOTE_WRITE ? IB_ACCESS_REMOTE_WRITE : 0) |
	       (access & KRP_ACCESS_REMOTE_ATOMIC ? IB_ACCESS_REMOTE_ATOMIC : 0);
}

static int krc_verbs_register_post(struct krc_verbs *v, struct ib_mr *mr, u32 access)
{
	struct krc_verbs_registering r = { .cqe.done = krc_verbs_registered };
	struct ib_reg_wr wr = { .wr.opcode = IB_WR_REG_MR,
				.wr.wr_cqe = &r.cqe,
				.wr.send_flags = IB_SEND_SIGNALED,
				.mr = mr,
				.key = mr->rkey,
				.access = krc_verbs_flags(access) };
	int err;

	lockdep_assert_held(&v->register_lock);
	init_completion(&r.done);
	err = ib_post_send(v->register_qp, &wr.wr, NULL) ? -EIO : 0;
	if (!err && !wait_for_completion_timeout(&r.done, msecs_to_jiffies(KRC_VERBS_REGISTER_MS)))
		err = -ETIMEDOUT;
	if (!err && r.status != IB_WC_SUCCESS)
		err = -EIO;
	if (err) /* also ends what is under way, which refers to this stack */
		krc_verbs_register_end(v);
	return err;
}

/* Make a key of a list; again if the queue pair has failed before it did so, for whatever reason. */
static int krc_verbs_register(struct krc_verbs *v, struct ib_mr *mr, u32 access)
{
	int i, err = -EIO;

	mutex_lock(&v->register_lock);
	for (i = 0; i < KRC_VERBS_REGISTER_TRIES && err == -EIO; i++) {
		err = krc_verbs_register_begin(v);
		if (!err)
			err = krc_verbs_register_post(v, mr, access);
	}
	mutex_unlock(&v->register_lock);
	return err;
}

/**
 * struct krc_verbs_key_turn - A registration for a program, and what it says.
 * @turn: its turn.
 * @hw: device.
 * @mr: list.
 * @access: KRP_ACCESS_*.
 * @err: out.
 */
struct krc_verbs_key_turn {
	struct krc_turn turn;
	struct krc_verbs *hw;
	struct ib_mr *mr;
	u32 access;
	int err;
};

static void krc_verbs_register_turn(struct krc_turn *turn)
{
	struct krc_verbs_key_turn *t = container_of(turn, struct krc_verbs_key_turn, turn);

	t->err = krc_verbs_register(t->hw, t->mr, t->access);
}

/* krc_verbs_register() for a program, in its turn. Return: also -EINTR (killed). */
static int krc_verbs_register_in_turn(struct krc_verbs *v, struct ib_mr *mr, u32 access,
				      const void *payer)
{
	struct krc_verbs_key_turn t = { .hw = v, .mr = mr, .access = access };

	if (fatal_signal_pending(current))
		return -EINTR;
	krc_turn_begin(&v->key_turns, &t.turn, payer, krc_verbs_register_turn);
	return krc_turn_wait(&t.turn, true) ?: t.err;
}

/* ---- keys */

/**
 * struct krc_verbs_key - What a key is made of: struct krc_hw_parts is this here.
 * @mr: its list.
 * @access: its rights, KRP_ACCESS_*.
 */
struct krc_verbs_key {
	struct ib_mr *mr;
	u32 access;
};

static struct krc_verbs_key *krc_verbs_key_of(const struct krc_hw_key *key)
{
	return (struct krc_verbs_key *)key->parts;
}

static void krc_verbs_mark_undone(struct krc_verbs *v, unsigned long index, bool undone)
{
	xa_lock_bh(&v->keys);
	if (undone)
		__xa_set_mark(&v->keys, index, KRC_VERBS_UNDONE);
	else
		__xa_clear_mark(&v->keys, index, KRC_VERBS_UNDONE);
	xa_unlock_bh(&v->keys);
}

/*
 * Register keys again that peers have undone; those that are marked by now. The queue pair that
 * registers may have failed before, so what has not become of it is tried some times more.
 */
static void krc_verbs_restore(struct work_struct *work)
{
	struct krc_verbs *v = container_of(to_delayed_work(work), struct krc_verbs, restore);
	struct krc_verbs_key *key;
	bool again = false;
	unsigned long i;

	mutex_lock(&v->register_lock); /* no key is destroyed meanwhile */
	v->restore_tries++;
	xa_for_each_marked(&v->keys, i, key, KRC_VERBS_UNDONE) {
		int err;

		krc_verbs_mark_undone(v, i, false);
		err = krc_verbs_register_begin(v)
			      ?: krc_verbs_register_post(v, key->mr, key->access);
		krc_port_warn_limited(v->ibdev, v->register_port,
				      "a peer has undone key 0x%x; made again: %d\n", key->mr->rkey,
				      err);
		if (!err || v->restore_tries >= KRC_VERBS_RESTORE_TRIES)
			continue;
		krc_verbs_mark_undone(v, i, true);
		again = true;
	}
	if (again)
		queue_delayed_work(v->key_wq, &v->restore, msecs_to_jiffies(KRC_VERBS_RESTORE_MS));
	else
		v->restore_tries = 0;
	mutex_unlock(&v->register_lock);
}

void krc_verbs_key_undone(struct krc_verbs *v, u32 rkey)
{
	bool found;

	xa_lock_bh(&v->keys);
	found = xa_load(&v->keys, rkey >> KRC_VERBS_KEY_SHIFT);
	if (found)
		__xa_set_mark(&v->keys, rkey >> KRC_VERBS_KEY_SHIFT, KRC_VERBS_UNDONE);
	xa_unlock_bh(&v->keys);
	if (found)
		mod_delayed_work(v->key_wq, &v->restore, 0);
}

int krc_verbs_keys_init(struct krc_verbs *v)
{
	mutex_init(&v->register_lock);
	v->register_port = 1;
	krc_rests_init(&v->resting);
	xa_init_flags(&v->keys, XA_FLAGS_LOCK_BH);
	INIT_DELAYED_WORK(&v->restore, krc_verbs_restore);
	v->key_wq = alloc_workqueue("krcore_lane_key", WQ_UNBOUND, KRC_VERBS_KEY_TURNS);
	krc_turns_init(&v->key_turns, KRC_VERBS_KEY_TURNS, v->key_wq);
	return v->key_wq ? 0 : -ENOMEM;
}

void krc_verbs_keys_fini(struct krc_verbs *v)
{
	cancel_delayed_work_sync(&v->restore);
	if (v->key_wq)
		destroy_workqueue(v->key_wq);
	krc_verbs_register_end(v);
	krc_rests_fini(&v->resting);
	xa_destroy(&v->keys);
	mutex_destroy(&v->register_lock);
}

static int krc_verbs_access_check(const struct krc_verbs *v, u32 access)
{
	if (access & ~KRP_ACCESS_ALL)
		return -EINVAL;
	if (access & (KRP_ACCESS_REMOTE_WRITE | KRP_ACCESS_REMOTE_ATOMIC) &&
	    !(access & KRP_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	if (access & KRP_ACCESS_REMOTE_ATOMIC && !v->attr.atomics)
		return -EOPNOTSUPP;
	return 0;
}

/**
 * struct krc_verbs_range - The memory of a key.
 * @sg: its pages, in order; all but the first begin, and all but the last end, with a page.
 * @nents: entries.
 * @offset: where the range begins in the first one.
 * @pages: that it touches.
 * @bytes: of it.
 * @iova: its address under the key; its offset in a page is that of the memory.
 */
struct krc_verbs_range {
	struct scatterlist *sg;
	u32 nents;
	u32 offset;
	u64 pages;
	u64 bytes;
	u64 iova;
};

/* List the pages of a range. Return: the list or ERR_PTR(). */
static struct ib_mr *krc_verbs_list(struct krc_verbs *v, const struct krc_verbs_range *r)
{
	u32 offset = r->offset;
	struct ib_mr *mr;
	int n;

	if (r->pages > v->driver->key_pages)
		return ERR_PTR(-E2BIG);
	mr = ib_alloc_mr(v->pd, IB_MR_TYPE_MEM_REG, r->pages);
	if (IS_ERR(mr))
		return mr;
	n = ib_map_mr_sg(mr, r->sg, r->nents, &offset, PAGE_SIZE);
	if (n < 0 || (u32)n != r->nents || mr->length < r->bytes) {
		ib_dereg_mr(mr);
		return ERR_PTR(n < 0 ? n : -EINVAL);
	}
	/* the list begins at the DMA address, and ends with a page */
	mr->iova = r->iova;
	mr->length = r->bytes;
	return mr;
}

/* Give a list the name that it is to have. Return: 0 or -ENOMEM. */
static int krc_verbs_name(struct krc_verbs *v, struct ib_mr *mr, u32 access)
{
	if (!(access & ~(u32)KRP_ACCESS_LOCAL_WRITE))
		return 0;
	ib_update_fast_reg_key(mr, krc_rests_variant(&v->resting, mr->rkey >> 8,
						     ktime_get_seconds(), get_random_u32()));
	return krc_rests_begin(&v->resting, mr->rkey);
}

/* Name a list and register it; @turn: for a program, on account of @payer. */
static int krc_verbs_key_register(struct krc_verbs *v, const struct krc_verbs_key *key, bool turn,
				  const void *payer)
{
	int err = krc_verbs_name(v, key->mr, key->access);

	if (err)
		return err;
	return turn ? krc_verbs_register_in_turn(v, key->mr, key->access, payer)
		    : krc_verbs_register(v, key->mr, key->access);
}

/* Unmake a list, whose name nobody uses any more. Return: 0 or what the device says. */
static int krc_verbs_unlist(struct krc_verbs *v, struct krc_verbs_key *key, bool known)
{
	int err;

	mutex_lock(&v->register_lock);
	xa_erase_bh(&v->keys, key->mr->rkey >> KRC_VERBS_KEY_SHIFT);
	mutex_unlock(&v->register_lock);
	/* before the device can reuse the index */
	krc_rests_end(&v->resting, key->mr->rkey, known, ktime_get_seconds());
	err = ib_dereg_mr(key->mr);
	if (!err)
		kfree(key);
	return err;
}

/* Make a key; @turn: it is for a program, on account of ret_key->payer. */
static int krc_verbs_key_create(struct krc_verbs *v, const struct krc_verbs_range *r, u32 access,
				bool turn, struct krc_hw_key *ret_key)
{
	struct krc_verbs_key *key = kzalloc(sizeof(*key), GFP_KERNEL_ACCOUNT);
	const void *payer = ret_key->payer;
	int err;

	if (!key)
		return -ENOMEM;
	key->access = access;
	key->mr = krc_verbs_list(v, r);
	if (IS_ERR(key->mr)) {
		err = PTR_ERR(key->mr);
		kfree(key);
		return err;
	}
	err = krc_verbs_key_register(v, key, turn, payer);
	if (!err)
		err = xa_err(xa_store_bh(&v->keys, key->mr->rkey >> KRC_VERBS_KEY_SHIFT, key,
					 GFP_KERNEL));
	if (err) {
		krc_verbs_unlist(v, key, false);
		return err;
	}
	*ret_key = (struct krc_hw_key){ .handle = key->mr->rkey,
					.lkey = key->mr->lkey,
					.rkey = key->mr->rkey,
					.payer = payer,
					.parts = (struct krc_hw_parts *)key };
	return 0;
}

int krc_verbs_key_umem(struct krc_hw *hw, struct ib_umem *umem, u64 iova, u32 access,
		       struct krc_hw_key *ret_key)
{
	struct krc_verbs *v = krc_verbs_of(hw);
	struct krc_verbs_range r = { .sg = umem->sgt_append.sgt.sgl,
				     .nents = umem->sgt_append.sgt.nents,
				     .offset = offset_in_page(umem->address),
				     .pages = ib_umem_num_pages(umem),
				     .bytes = umem->length,
				     .iova = iova };
	int err = krc_verbs_access_check(v, access);

	if (err)
		return err;
	if (offset_in_page(iova) != r.offset)
		return -EINVAL;
	return krc_verbs_key_create(v, &r, access, true, ret_key);
}

int krc_verbs_key_dma(struct krc_hw *hw, dma_addr_t dma, size_t bytes, u32 access,
		      struct krc_hw_key *ret_key)
{
	struct krc_verbs *v = krc_verbs_of(hw);
	struct scatterlist sg;
	struct krc_verbs_range r = { .sg = &sg,
				     .nents = 1,
				     .pages = DIV_ROUND_UP(offset_in_page(dma) + bytes, PAGE_SIZE),
				     .bytes = bytes,
				     .iova = dma };
	int err = krc_verbs_access_check(v, access);

	if (err)
		return err;
	if (!bytes || bytes > U32_MAX)
		return -EINVAL;
	sg_init_table(&sg, 1);
	sg_dma_address(&sg) = dma;
	sg_dma_len(&sg) = bytes;
	return krc_verbs_key_create(v, &r, access, false, ret_key);
}

int krc_verbs_key_pages(struct krc_hw *hw, const dma_addr_t *pages, u32 nr, u64 iova, u32 access,
			struct krc_hw_key *ret_key)
{
	struct krc_verbs *v = krc_verbs_of(hw);
	struct krc_verbs_range r = {
		.nents = nr, .pages = nr, .bytes = (u64)nr << PAGE_SHIFT, .iova = iova
	};
	int err = krc_verbs_access_check(v, access);
	struct scatterlist *sg;
	u32 i;

	if (err)
		return err;
	if (!nr || !PAGE_ALIGNED(iova))
		return -EINVAL;
	r.sg = kvcalloc(nr, sizeof(*r.sg), GFP_KERNEL_ACCOUNT);
	if (!r.sg)
		return -ENOMEM;
	sg_init_table(r.sg, nr);
	for_each_sg(r.sg, sg, nr, i) {
		sg_dma_address(sg) = pages[i];
		sg_dma_len(sg) = PAGE_SIZE;
	}
	err = krc_verbs_key_create(v, &r, access, false, ret_key);
	kvfree(r.sg);
	return err;
}

bool krc_verbs_key_destroy(struct krc_hw *hw, const struct krc_hw_key *key)
{
	struct krc_verbs *v = krc_verbs_of(hw);
	int err = krc_verbs_unlist(v, krc_verbs_key_of(key), key->known);

	if (!err || READ_ONCE(v->fatal))
		return true;
	krc_port_err(v->ibdev, v->register_port,
		     "key 0x%x was not destroyed (%d), its memory is not freed\n", key->rkey, err);
	return false;
}
