// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: memory keys. Each is a list of pages (MTT) passed with the command, with exactly the
 * range and rights asked for; none covers physical memory as a whole. After reg_create() of
 * mlx5_ib.
 *
 * REST
 *   See hw/rest.h. The device chooses the index of a key, and may reuse that of a destroyed one for
 *   the next. If a new key has another low byte than the one that its index must have, it is
 *   created again with that one; the device may then choose another index, which is checked
 *   likewise. Names from before the device was opened are not counted, since targets have
 *   another secret since.
 *
 * PARTS
 *   The time of a command grows with its list, and the device executes others behind it. So a
 *   key lists at most krc_hw.key_pages_max pages. A larger range is divided into parts, each
 *   with a key of its own, and the key that is handed out lists those (KLM), as vDPA does in
 *   drivers/vdpa/mlx5/core/mr.c. Parts have the rights of the whole, but nobody is told
 *   their keys. krc_hw.key_turns bounds the commands for keys of programs that are under way
 *   at once, since mlx5_core's waiters for a command slot can't be killed, and recovery needs
 *   slots, too. Each command is a turn of its own, so that a large range, or many threads of one
 *   payer, delay others by the commands that are under way; and a work item issues it, since the
 *   task itself may not run for long.
 */
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/overflow.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "base/compat.h"
#include "hw/mlx5/mlx5.h"
#include "krp_ioctl.h"
#include "krp_mrdir.h"

#define KRC_MLX5_LOG_PAGE_MAX 31 /* log_page_size of a key has five bits */
#define KRC_MLX5_KEY_TRIES 64
#define KRC_MLX5_PART_BYTES (1ULL << 30)
#define KRC_MLX5_MTT_PRESENT 3 /* read and write allowed; for devices that check it */

/**
 * struct krc_hw_parts - Keys of the parts of a large range.
 * @nr: number of keys that exist.
 * @payer: see struct krc_hw_key; at creation.
 * @handles: the keys, in the order of their addresses.
 */
struct krc_hw_parts {
	u32 nr;
	const void *payer;
	u32 handles[];
};

u64 krc_mlx5_range_pages(const struct krc_mlx5_range *r)
{
	u64 first = r->iova >> r->page_shift;
	u64 last = (r->iova + r->bytes - 1) >> r->page_shift;

	return last - first + 1;
}

struct krc_mlx5_range krc_mlx5_range_part(const struct krc_mlx5_range *r, u32 pages, u32 i)
{
	u64 bytes = (u64)pages << r->page_shift;
	u64 first = round_down(r->iova, 1ULL << r->page_shift) + i * bytes;
	struct krc_mlx5_range part = *r;

	part.iova = max(r->iova, first);
	part.bytes = min(r->bytes - (part.iova - r->iova), bytes - (part.iova - first));
	return part;
}

/* Fill in what keys of pages and keys of keys have in common. */
static void krc_mlx5_key_context(struct krc_hw *hw, void *in, const struct krc_mlx5_range *r)
{
	void *mkc = MLX5_ADDR_OF(create_mkey_in, in, memory_key_mkey_entry);

	MLX5_SET(mkc, mkc, lr, 1);
	MLX5_SET(mkc, mkc, lw, !!(r->access & KRP_ACCESS_LOCAL_WRITE));
	MLX5_SET(mkc, mkc, rr, !!(r->access & KRP_ACCESS_REMOTE_READ));
	MLX5_SET(mkc, mkc, rw, !!(r->access & KRP_ACCESS_REMOTE_WRITE));
	MLX5_SET(mkc, mkc, a, !!(r->access & KRP_ACCESS_REMOTE_ATOMIC));
	MLX5_SET(mkc, mkc, qpn, 0xffffff);
	MLX5_SET(mkc, mkc, pd, hw->pdn);
	MLX5_SET64(mkc, mkc, start_addr, r->iova);
	MLX5_SET64(mkc, mkc, len, r->bytes);
}

/* Fill in the command for a key that lists pages, except the list. Return: its length. */
static int krc_mlx5_key_of_pages(struct krc_hw *hw, void *in, const struct krc_mlx5_range *r)
{
	void *mkc = MLX5_ADDR_OF(create_mkey_in, in, memory_key_mkey_entry);
	u32 octwords = DIV_ROUND_UP_ULL(krc_mlx5_range_pages(r), 2);

	krc_mlx5_key_context(hw, in, r);
	MLX5_SET(create_mkey_in, in, pg_access, MLX5_CAP_GEN(hw->mdev, pg));
	MLX5_SET(create_mkey_in, in, translations_octword_actual_size, octwords);
	MLX5_SET(mkc, mkc, access_mode_1_0, MLX5_MKC_ACCESS_MODE_MTT);
	MLX5_SET(mkc, mkc, translations_octword_size, octwords);
	MLX5_SET(mkc, mkc, log_page_size, r->page_shift);
	return MLX5_ST_SZ_BYTES(create_mkey_in) + octwords * 2 * sizeof(__be64);
}

/* Allocate and fill in the command, except its page list. Return: it or ERR_PTR; kvfree(). */
static u32 *krc_mlx5_key_prepare(struct krc_hw *hw, const struct krc_mlx5_range *r, int *ret_inlen)
{
	u64 list = round_up(krc_mlx5_range_pages(r), 2) * sizeof(__be64);
	u32 *in;

	if (list > INT_MAX / 2)
		return ERR_PTR(-E2BIG);
	in = kvzalloc(MLX5_ST_SZ_BYTES(create_mkey_in) + list, GFP_KERNEL_ACCOUNT);
	if (!in)
		return ERR_PTR(-ENOMEM);
	*ret_inlen = krc_mlx5_key_of_pages(hw, in, r);
	return in;
}

/* Destroy a key. Return: whether it is gone. */
static bool krc_mlx5_key_forget(struct krc_hw *hw, u32 mkey)
{
	int err = krc_mlx5_simple(hw, MLX5_CMD_OP_DESTROY_MKEY, mlx5_mkey_to_idx(mkey));

	return krc_mlx5_released(hw, err, "key", mkey);
}

bool krc_mlx5_key_rested(struct krc_hw *hw, u32 mkey, time64_t now_s, u8 *ret_variant)
{
	u8 variant = krc_rests_variant(&hw->resting, mlx5_mkey_to_idx(mkey), now_s, mkey);

	if ((u8)mkey == variant)
		return true;
	*ret_variant = variant;
	return false;
}

/* Take a new remote key, or destroy it. Return: 0, -EAGAIN: try @variant, -ENOMEM. */
static int krc_mlx5_key_take(struct krc_hw *hw, u32 mkey, u8 *variant)
{
	int err = -EAGAIN;

	if (krc_mlx5_key_rested(hw, mkey, ktime_get_seconds(), variant))
		err = krc_rests_begin(&hw->resting, mkey);
	if (err && !krc_mlx5_key_forget(hw, mkey))
		err = 0; /* the device keeps it: use it after all */
	return err;
}

static int krc_mlx5_key_create(struct krc_hw *hw, u32 *in, int inlen, u32 access,
			       struct krc_hw_key *ret_key)
{
	void *mkc = MLX5_ADDR_OF(create_mkey_in, in, memory_key_mkey_entry);
	u8 variant = atomic_inc_return(&hw->key_variant);
	int err, tries = 0;
	u32 mkey;

	do {
		MLX5_SET(mkc, mkc, mkey_7_0, variant);
		err = mlx5_core_create_mkey(hw->mdev, &mkey, in, inlen);
		if (err)
			return err;
		if (access & ~(u32)KRP_ACCESS_LOCAL_WRITE)
			err = krc_mlx5_key_take(hw, mkey, &variant);
	} while (err == -EAGAIN && ++tries < KRC_MLX5_KEY_TRIES);
	if (!err)
		*ret_key = (struct krc_hw_key){ .handle = mkey, .lkey = mkey, .rkey = mkey };
	return err;
}

static int krc_mlx5_access_check(struct krc_hw *hw, u32 access)
{
	if (access & ~KRP_ACCESS_ALL)
		return -EINVAL;
	if (access & (KRP_ACCESS_REMOTE_WRITE | KRP_ACCESS_REMOTE_ATOMIC) &&
	    !(access & KRP_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	if (access & KRP_ACCESS_REMOTE_ATOMIC && !hw->attr.atomics)
		return -EOPNOTSUPP;
	return 0;
}

/* flags in the low bits of MTT entries */
static u64 krc_mlx5_mtt_flags(struct krc_hw *hw)
{
	return MLX5_CAP_GEN(hw->mdev, pg) ? KRC_MLX5_MTT_PRESENT : 0;
}

/*
 * Pages of each part of a range: no more than a key may list, nor than the length of 32 bits
 * by which another key refers to it.
 */
static u32 krc_mlx5_part_pages(const struct krc_hw *hw, const struct krc_mlx5_range *r)
{
	return clamp_t(u64, KRC_MLX5_PART_BYTES >> r->page_shift, 1, hw->key_pages_max);
}

/**
 * struct krc_mlx5_key_turn - A command for a key of a program, and what it says.
 * @turn: its turn.
 * @hw: device.
 * @in: krc_mlx5_key_create(): the command, its length, and the rights that it gives.
 * @inlen: see @in.
 * @access: see @in.
 * @mkey: krc_mlx5_key_forget(): the key, and whether peers know it.
 * @known: see @mkey.
 * @key: out: the key that was made.
 * @err: out: of krc_mlx5_key_create().
 * @gone: out: of krc_mlx5_key_forget().
 */
struct krc_mlx5_key_turn {
	struct krc_turn turn;
	struct krc_hw *hw;
	u32 *in;
	int inlen;
	u32 access;
	u32 mkey;
	bool known;
	struct krc_hw_key key;
	int err;
	bool gone;
};

static void krc_mlx5_key_create_turn(struct krc_turn *turn)
{
	struct krc_mlx5_key_turn *t = container_of(turn, struct krc_mlx5_key_turn, turn);

	t->err = krc_mlx5_key_create(t->hw, t->in, t->inlen, t->access, &t->key);
}

/* krc_mlx5_key_create() for a program, in its turn. Return: also -EINTR (killed). */
static int krc_mlx5_key_create_in_turn(struct krc_hw *hw, u32 *in, int inlen, u32 access,
				       const void *payer, struct krc_hw_key *ret_key)
{
	struct krc_mlx5_key_turn t = { .hw = hw, .in = in, .inlen = inlen, .access = access };
	int err;

	if (fatal_signal_pending(current))
		return -EINTR;
	krc_turn_begin(&hw->key_turns, &t.turn, payer, krc_mlx5_key_create_turn);
	err = krc_turn_wait(&t.turn, true) ?: t.err;
	if (err)
		return err;
	*ret_key = t.key;
	ret_key->payer = payer;
	return 0;
}

static void krc_mlx5_key_forget_turn(struct krc_turn *turn)
{
	struct krc_mlx5_key_turn *t = container_of(turn, struct krc_mlx5_key_turn, turn);

	/* before the device can reuse the index */
	krc_rests_end(&t->hw->resting, t->mkey, t->known, ktime_get_seconds());
	t->gone = krc_mlx5_key_forget(t->hw, t->mkey);
}

/* krc_mlx5_key_forget() for a program, in its turn. */
static bool krc_mlx5_key_forget_in_turn(struct krc_hw *hw, u32 mkey, bool known, const void *payer)
{
	struct krc_mlx5_key_turn t = { .hw = hw, .mkey = mkey, .known = known };

	krc_turn_begin(&hw->key_turns, &t.turn, payer, krc_mlx5_key_forget_turn);
	krc_turn_wait(&t.turn, false);
	return t.gone;
}

/*
 * Make the keys of the first @nr parts of a range of user memory. Return: 0; or an errno, with
 * those of parts->nr made.
 */
static int krc_mlx5_parts_create(struct krc_hw *hw, struct ib_umem *umem,
				 const struct krc_mlx5_range *r, u32 nr, struct krc_hw_parts *parts)
{
	u32 pages = krc_mlx5_part_pages(hw, r);
	struct krc_mlx5_range part = krc_mlx5_range_part(r, pages, 0);
	u64 flags = krc_mlx5_mtt_flags(hw), n = 0;
	int err = -EINVAL, inlen;
	struct ib_block_iter it;
	struct krc_hw_key key;
	__be64 *mtt;
	u32 *in = krc_mlx5_key_prepare(hw, &part, &inlen); /* no later part is larger */

	if (IS_ERR(in))
		return PTR_ERR(in);
	mtt = MLX5_ADDR_OF(create_mkey_in, in, klm_pas_mtt);
	rdma_umem_for_each_dma_block(umem, &it, 1UL << r->page_shift) {
		mtt[n++] = cpu_to_be64(rdma_block_iter_dma_address(&it) | flags);
		if (n < krc_mlx5_range_pages(&part))
			continue;
		err = krc_mlx5_key_create_in_turn(hw, in, inlen, r->access, parts->payer, &key);
		if (err)
			break;
		parts->handles[parts->nr++] = key.handle;
		if (parts->nr == nr)
			break; /* the range has no more pages */
		part = krc_mlx5_range_part(r, pages, parts->nr);
		inlen = krc_mlx5_key_of_pages(hw, in, &part);
		n = krc_mlx5_range_pages(&part);
		if (n % 2)
			mtt[n] = 0; /* fills the last octword */
		n = 0;
		cond_resched();
	}
	kvfree(in);
	return parts->nr == nr ? 0 : err;
}

/* Destroy keys, the last first. Return: whether all are gone. */
static bool krc_mlx5_parts_destroy(struct krc_hw *hw, struct krc_hw_parts *parts, const void *payer)
{
	bool gone = true;
	u32 i;

	for (i = parts->nr; i--;)
		if (!krc_mlx5_key_forget_in_turn(hw, parts->handles[i], false, payer))
			gone = false;
	kvfree(parts);
	return gone;
}

/* Make the key that lists the keys of all parts. */
static int krc_mlx5_parts_join(struct krc_hw *hw, const struct krc_mlx5_range *r,
			       const struct krc_hw_parts *parts, struct krc_hw_key *ret_key)
{
	u32 octwords = ALIGN(parts->nr, 4), pages = krc_mlx5_part_pages(hw, r), i;
	int err, inlen = MLX5_ST_SZ_BYTES(create_mkey_in) + octwords * sizeof(struct mlx5_klm);
	u32 *in = kvzalloc(inlen, GFP_KERNEL_ACCOUNT);
	struct mlx5_klm *klm;
	void *mkc;

	if (!in)
		return -ENOMEM;
	mkc = MLX5_ADDR_OF(create_mkey_in, in, memory_key_mkey_entry);
	klm = MLX5_ADDR_OF(create_mkey_in, in, klm_pas_mtt);
	krc_mlx5_key_context(hw, in, r);
	MLX5_SET(create_mkey_in, in, translations_octword_actual_size, parts->nr);
	MLX5_SET(mkc, mkc, access_mode_1_0, MLX5_MKC_ACCESS_MODE_KLMS);
	MLX5_SET(mkc, mkc, translations_octword_size, octwords);
	for (i = 0; i < parts->nr; i++) {
		struct krc_mlx5_range part = krc_mlx5_range_part(r, pages, i);

		klm[i].bcount = cpu_to_be32(part.bytes);
		klm[i].key = cpu_to_be32(parts->handles[i]);
		klm[i].va = cpu_to_be64(part.iova);
	}
	err = krc_mlx5_key_create_in_turn(hw, in, inlen, r->access, parts->payer, ret_key);
	kvfree(in);
	return err;
}

/* Make a key for a range that has too many pages for one. */
static int krc_mlx5_key_large(struct krc_hw *hw, struct ib_umem *umem,
			      const struct krc_mlx5_range *r, struct krc_hw_key *ret_key)
{
	u64 nr = DIV_ROUND_UP_ULL(krc_mlx5_range_pages(r), krc_mlx5_part_pages(hw, r));
	struct krc_hw_parts *parts;
	int err;

	if (nr > 1U << MLX5_CAP_GEN(hw->mdev, log_max_klm_list_size))
		return -E2BIG;
	parts = kvzalloc(struct_size(parts, handles, nr), GFP_KERNEL_ACCOUNT);
	if (!parts)
		return -ENOMEM;
	parts->payer = ret_key->payer;
	err = krc_mlx5_parts_create(hw, umem, r, nr, parts);
	if (!err)
		err = krc_mlx5_parts_join(hw, r, parts, ret_key);
	if (!err)
		ret_key->parts = parts;
	else if (!krc_mlx5_parts_destroy(hw, parts, parts->payer))
		err = -EUCLEAN;
	return err;
}

int krc_mlx5_key_umem(struct krc_hw *hw, struct ib_umem *umem, u64 iova, u32 access,
		      struct krc_hw_key *ret_key)
{
	struct krc_mlx5_range r = { .iova = iova, .bytes = umem->length, .access = access };
	struct ib_block_iter it;
	unsigned long page;
	int err, inlen;
	__be64 *mtt;
	u64 n = 0;
	u32 *in;

	err = krc_mlx5_access_check(hw, access);
	if (err)
		return err;
	page = ib_umem_find_best_pgsz(umem, GENMASK(KRC_MLX5_LOG_PAGE_MAX, MLX5_ADAPTER_PAGE_SHIFT),
				      iova);
	if (!page)
		return -EINVAL;
	r.page_shift = ilog2(page);
	if (krc_mlx5_range_pages(&r) > hw->key_pages_max)
		return krc_mlx5_key_large(hw, umem, &r, ret_key);
	in = krc_mlx5_key_prepare(hw, &r, &inlen);
	if (IS_ERR(in))
		return PTR_ERR(in);
	mtt = MLX5_ADDR_OF(create_mkey_in, in, klm_pas_mtt);
	rdma_umem_for_each_dma_block(umem, &it, page) {
		if (n == krc_mlx5_range_pages(&r))
			break; /* the command has no more entries */
		mtt[n++] = cpu_to_be64(rdma_block_iter_dma_address(&it) | krc_mlx5_mtt_flags(hw));
	}
	err = krc_mlx5_key_create_in_turn(hw, in, inlen, access, ret_key->payer, ret_key);
	kvfree(in);
	return err;
}

int krc_mlx5_key_dma(struct krc_hw *hw, dma_addr_t dma, size_t bytes, u32 access,
		     struct krc_hw_key *ret_key)
{
	struct krc_mlx5_range r = { .iova = dma, .bytes = bytes, .access = access };
	int err, inlen;
	__be64 *mtt;
	u64 page, i;
	u32 *in;

	err = krc_mlx5_access_check(hw, access);
	if (err)
		return err;
	if (!bytes || bytes > 1ULL << KRC_MLX5_LOG_PAGE_MAX)
		return -EINVAL;
	/* addresses under the key are DMA addresses, so pages may be arbitrarily large: the
	 * key's start and length exclude what they hold beyond the range
	 */
	r.page_shift =
		clamp_t(u32, order_base_2(bytes), MLX5_ADAPTER_PAGE_SHIFT, KRC_MLX5_LOG_PAGE_MAX);
	in = krc_mlx5_key_prepare(hw, &r, &inlen);
	if (IS_ERR(in))
		return PTR_ERR(in);
	mtt = MLX5_ADDR_OF(create_mkey_in, in, klm_pas_mtt);
	page = round_down((u64)dma, 1ULL << r.page_shift);
	for (i = 0; i < krc_mlx5_range_pages(&r); i++, page += 1ULL << r.page_shift)
		mtt[i] = cpu_to_be64(page | krc_mlx5_mtt_flags(hw));
	err = krc_mlx5_key_create(hw, in, inlen, access, ret_key);
	kvfree(in);
	return err;
}

int krc_mlx5_key_pages(struct krc_hw *hw, const dma_addr_t *pages, u32 nr, u64 iova, u32 access,
		       struct krc_hw_key *ret_key)
{
	struct krc_mlx5_range r = { .iova = iova,
				    .bytes = (u64)nr << PAGE_SHIFT,
				    .page_shift = PAGE_SHIFT,
				    .access = access };
	int err, inlen;
	__be64 *mtt;
	u32 *in, i;

	err = krc_mlx5_access_check(hw, access);
	if (err)
		return err;
	if (!nr || !PAGE_ALIGNED(iova))
		return -EINVAL;
	in = krc_mlx5_key_prepare(hw, &r, &inlen);
	if (IS_ERR(in))
		return PTR_ERR(in);
	mtt = MLX5_ADDR_OF(create_mkey_in, in, klm_pas_mtt);
	for (i = 0; i < nr; i++)
		mtt[i] = cpu_to_be64(pages[i] | krc_mlx5_mtt_flags(hw));
	err = krc_mlx5_key_create(hw, in, inlen, access, ret_key);
	kvfree(in);
	return err;
}

bool krc_mlx5_key_destroy(struct krc_hw *hw, const struct krc_hw_key *key)
{
	bool gone = krc_mlx5_key_forget_in_turn(hw, key->handle, key->known, key->payer);

	if (gone && key->parts)
		gone = krc_mlx5_parts_destroy(hw, key->parts, key->payer);
	return gone;
}
