// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: memory keys. All are lists of pages (MTT) given with the command, with the
 * exact range and rights asked for; none opens physical memory as a whole. After
 * reg_create() of mlx5_ib.
 *
 * The low byte of a key changes with every creation, so that a stale one does not
 * open what the device put under the same index later.
 */
#include <linux/log2.h>

#include "compat.h"
#include "krp_ioctl.h"
#include "mlx5.h"

#define KRC_MLX5_LOG_PAGE_MAX 31 /* log_page_size of a key has five bits */
#define KRC_MLX5_MTT_PRESENT 3 /* may be read and written; for devices that look */

/**
 * struct krc_mlx5_range - What a key is to cover.
 * @iova: first address under the key.
 * @bytes: how many.
 * @page_shift: log2 of the pages' size.
 * @access: KRP_ACCESS_*.
 */
struct krc_mlx5_range {
	u64 iova;
	u64 bytes;
	u32 page_shift;
	u32 access;
};

static u64 krc_mlx5_range_pages(const struct krc_mlx5_range *r)
{
	u64 first = r->iova >> r->page_shift;
	u64 last = (r->iova + r->bytes - 1) >> r->page_shift;

	return last - first + 1;
}

static void krc_mlx5_key_context(struct krc_hw *hw, void *in, const struct krc_mlx5_range *r)
{
	void *mkc = MLX5_ADDR_OF(create_mkey_in, in, memory_key_mkey_entry);
	u32 octwords = DIV_ROUND_UP_ULL(krc_mlx5_range_pages(r), 2);

	MLX5_SET(create_mkey_in, in, pg_access, MLX5_CAP_GEN(hw->mdev, pg));
	MLX5_SET(create_mkey_in, in, translations_octword_actual_size, octwords);
	MLX5_SET(mkc, mkc, access_mode_1_0, MLX5_MKC_ACCESS_MODE_MTT);
	MLX5_SET(mkc, mkc, lr, 1);
	MLX5_SET(mkc, mkc, lw, !!(r->access & KRP_ACCESS_LOCAL_WRITE));
	MLX5_SET(mkc, mkc, rr, !!(r->access & KRP_ACCESS_REMOTE_READ));
	MLX5_SET(mkc, mkc, rw, !!(r->access & KRP_ACCESS_REMOTE_WRITE));
	MLX5_SET(mkc, mkc, a, !!(r->access & KRP_ACCESS_REMOTE_ATOMIC));
	MLX5_SET(mkc, mkc, qpn, 0xffffff);
	MLX5_SET(mkc, mkc, mkey_7_0, (u8)atomic_inc_return(&hw->key_variant));
	MLX5_SET(mkc, mkc, pd, hw->pdn);
	MLX5_SET64(mkc, mkc, start_addr, r->iova);
	MLX5_SET64(mkc, mkc, len, r->bytes);
	MLX5_SET(mkc, mkc, translations_octword_size, octwords);
	MLX5_SET(mkc, mkc, log_page_size, r->page_shift);
}

/* memory for the command, its page list still empty */
static u32 *krc_mlx5_key_prepare(struct krc_hw *hw, const struct krc_mlx5_range *r, int *ret_inlen)
{
	u64 list = round_up(krc_mlx5_range_pages(r), 2) * sizeof(__be64);
	u32 *in;

	if (list > INT_MAX / 2)
		return ERR_PTR(-E2BIG);
	*ret_inlen = MLX5_ST_SZ_BYTES(create_mkey_in) + list;
	in = kvzalloc(*ret_inlen, GFP_KERNEL_ACCOUNT);
	if (!in)
		return ERR_PTR(-ENOMEM);
	krc_mlx5_key_context(hw, in, r);
	return in;
}

static int krc_mlx5_key_create(struct krc_hw *hw, u32 *in, int inlen, struct krc_hw_key *ret_key)
{
	u32 mkey;
	int err = mlx5_core_create_mkey(hw->mdev, &mkey, in, inlen);

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

/* flags that go into the low bits of a list's entries */
static u64 krc_mlx5_mtt_flags(struct krc_hw *hw)
{
	return MLX5_CAP_GEN(hw->mdev, pg) ? KRC_MLX5_MTT_PRESENT : 0;
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
	in = krc_mlx5_key_prepare(hw, &r, &inlen);
	if (IS_ERR(in))
		return PTR_ERR(in);
	mtt = MLX5_ADDR_OF(create_mkey_in, in, klm_pas_mtt);
	rdma_umem_for_each_dma_block(umem, &it, page) {
		if (n == krc_mlx5_range_pages(&r))
			break; /* there is room for no more */
		mtt[n++] = cpu_to_be64(rdma_block_iter_dma_address(&it) | krc_mlx5_mtt_flags(hw));
	}
	err = krc_mlx5_key_create(hw, in, inlen, ret_key);
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
	/* address under the key is address on the bus, so pages may be as large as we like:
	 * what they hold beyond the range is closed by the key's start and length
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
	err = krc_mlx5_key_create(hw, in, inlen, ret_key);
	kvfree(in);
	return err;
}

bool krc_mlx5_key_destroy(struct krc_hw *hw, const struct krc_hw_key *key)
{
	int err = krc_mlx5_simple(hw, MLX5_CMD_OP_DESTROY_MKEY, mlx5_mkey_to_idx(key->handle));

	return krc_mlx5_released(hw, err, "key", key->handle);
}
