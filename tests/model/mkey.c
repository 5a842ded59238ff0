// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: memory keys. A key may be used only with the protection domain it was
 * created in, inside its range and with the rights it has; a key list adds the
 * checks of every key it names. Runs under QEMU's big lock.
 */
#include "dev.h"

#define CX_KLM_DEPTH 2

/* what a UMR request may change, as numbered in its mask */
#define CX_UMR_LEN (1ull << 0)
#define CX_UMR_START (1ull << 6)
#define CX_UMR_PD (1ull << 7)
#define CX_UMR_KEY (1ull << 13)
#define CX_UMR_QPN (1ull << 14)
#define CX_UMR_LR (1ull << 17)
#define CX_UMR_LW (1ull << 18)
#define CX_UMR_RR (1ull << 19)
#define CX_UMR_RW (1ull << 20)
#define CX_UMR_A (1ull << 21)
#define CX_UMR_RELAXED (1ull << 25 | 1ull << 47)
#define CX_UMR_FREE (1ull << 29)
#define CX_UMR_MAY \
	(CX_UMR_LEN | CX_UMR_START | CX_UMR_PD | CX_UMR_KEY | CX_UMR_QPN | CX_UMR_LR | CX_UMR_LW | \
	 CX_UMR_RR | CX_UMR_RW | CX_UMR_A | CX_UMR_RELAXED | CX_UMR_FREE)
/* what must not be found: a key in use, a free one */
#define CX_UMR_FAIL_NOT_FREE (1 << 5)
#define CX_UMR_FAIL_FREE (2 << 5)

static struct cx_mkey *cx_mkey_find(struct cx_dev *dev, u32 key)
{
	struct cx_mkey *m = cx_obj_find(dev, CX_SP_MKEY, key >> 8, CX_K_MKEY);

	return m && m->key == key && !m->free ? m : NULL;
}

static struct cx_mkey *cx_mkey_allowed(struct cx_dev *dev, u32 key, u32 pdn, u64 va, u64 len,
				       u32 access)
{
	struct cx_mkey *m = cx_mkey_find(dev, key);
	const char *why;

	if (!m)
		why = "does not exist";
	else if (!m->pd || m->pd->id != pdn)
		why = "belongs to another PD";
	else if ((m->access & access) != access)
		why = "lacks the right";
	else if (!m->length64 &&
		 (va < m->start || va - m->start > m->len || len > m->len - (va - m->start)))
		why = "is too short";
	else
		return m;
	cx_trace(dev, CX_TR_REFUSE,
		 "mkey 0x%x PD 0x%x va 0x%" PRIx64 "+%" PRIu64 " access 0x%x: %s", key, pdn, va,
		 len, access, why);
	return NULL;
}

int cx_mkey_check(struct cx_dev *dev, u32 key, u32 pdn, u64 va, u64 len, u32 access)
{
	return cx_mkey_allowed(dev, key, pdn, va, len, access) ? 0 : -EACCES;
}

static int cx_mkey_phys(struct cx_dev *dev, u64 addr, u8 *buf, u32 len, bool write)
{
	return write ? cx_dma_write(dev, addr, buf, len) : cx_dma_read(dev, addr, buf, len);
}

static int cx_mkey_walk_mtt(struct cx_dev *dev, struct cx_mkey *m, u64 va, u8 *buf, u32 len,
			    bool write)
{
	u64 page = 1ull << m->page_shift;
	/* entry 0 covers the page that holds the start address */
	u64 off = va - (m->start & ~(page - 1));
	int err = 0;

	while (len && !err) {
		u32 n = MIN((u64)len, page - (off & (page - 1)));

		if (off >> m->page_shift >= m->nr)
			return -EACCES;
		err = cx_mkey_phys(dev, m->mtt[off >> m->page_shift] + (off & (page - 1)), buf, n,
				   write);
		off += n;
		buf += n;
		len -= n;
	}
	return err;
}

static int cx_mkey_copy_depth(struct cx_dev *dev, u32 key, u32 pdn, u64 va, u8 *buf, u32 len,
			      u32 access, u32 depth);

static int cx_mkey_walk_klm(struct cx_dev *dev, struct cx_mkey *m, u32 pdn, u64 va, u8 *buf,
			    u32 len, u32 access, u32 depth)
{
	u64 off = va - m->start;
	u32 i;
	int err;

	for (i = 0; i < m->nr && len; i++) {
		const struct cx_klm *k = &m->klm[i];
		u32 n;

		if (off >= k->bytes) {
			off -= k->bytes;
			continue;
		}
		n = MIN((u64)len, k->bytes - off);
		err = cx_mkey_copy_depth(dev, k->key, pdn, k->addr + off, buf, n, access,
					 depth + 1);
		if (err)
			return err;
		buf += n;
		len -= n;
		off = 0;
	}
	return len ? -EACCES : 0;
}

static int cx_mkey_copy_depth(struct cx_dev *dev, u32 key, u32 pdn, u64 va, u8 *buf, u32 len,
			      u32 access, u32 depth)
{
	bool write = access & (CX_ACC_LOCAL_WRITE | CX_ACC_REMOTE_WRITE);
	struct cx_mkey *m;

	if (depth > CX_KLM_DEPTH)
		return -EACCES;
	m = cx_mkey_allowed(dev, key, pdn, va, len, access);
	if (!m)
		return -EACCES;
	switch (m->mode) {
	case MLX5_MKC_ACCESS_MODE_PA:
		return cx_mkey_phys(dev, va, buf, len, write);
	case MLX5_MKC_ACCESS_MODE_MTT:
		return cx_mkey_walk_mtt(dev, m, va, buf, len, write);
	default:
		return cx_mkey_walk_klm(dev, m, pdn, va, buf, len, access, depth);
	}
}

int cx_mkey_copy(struct cx_dev *dev, u32 key, u32 pdn, u64 va, void *buf, u32 len, u32 access)
{
	return len ? cx_mkey_copy_depth(dev, key, pdn, va, buf, len, access, 0) : 0;
}

static void cx_mkey_release(struct cx_dev *dev, struct cx_obj *obj)
{
	struct cx_mkey *m = container_of(obj, struct cx_mkey, obj);

	if (m->pd)
		cx_obj_put(m->pd);
	g_free(m->mtt);
	g_free(m->klm);
	g_free(m);
}

static int cx_mkey_entries(struct cx_dev *dev, struct cx_cmd *cmd, struct cx_mkey *m)
{
	u32 off = CX_OFF(create_mkey_in, klm_pas_mtt) / 8, i;
	u32 octwords = CX_GET(create_mkey_in, cmd->in, translations_octword_actual_size);
	const u8 *at = cmd->in + off;

	if (m->mode == MLX5_MKC_ACCESS_MODE_PA)
		return 0;
	if (octwords > (cmd->inlen - off) / 16)
		return cx_refuse(dev, cmd, CX_ST_BAD_INLEN, "%u octwords announced, %u given",
				 octwords, (cmd->inlen - off) / 16);
	if (m->mode == MLX5_MKC_ACCESS_MODE_MTT) {
		if (m->page_shift < 12)
			return octwords ? cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "log_page_size %u",
						    m->page_shift)
					: 0;
		m->nr = octwords * 2;
		m->mtt = g_new(u64, m->nr);
		for (i = 0; i < m->nr; i++)
			m->mtt[i] = ldq_be_p(at + 8 * i) & ~0xfffull;
		return 0;
	}
	m->nr = octwords;
	m->klm = g_new(struct cx_klm, m->nr);
	for (i = 0; i < m->nr; i++, at += 16) {
		m->klm[i].bytes = ldl_be_p(at);
		m->klm[i].key = ldl_be_p(at + 4);
		m->klm[i].addr = ldq_be_p(at + 8);
	}
	return 0;
}

static u32 cx_mkc_access(const u8 *c)
{
	return (CX_GET(mkc, c, lr) ? CX_ACC_LOCAL_READ : 0) |
	       (CX_GET(mkc, c, lw) ? CX_ACC_LOCAL_WRITE : 0) |
	       (CX_GET(mkc, c, rr) ? CX_ACC_REMOTE_READ : 0) |
	       (CX_GET(mkc, c, rw) ? CX_ACC_REMOTE_WRITE : 0) |
	       (CX_GET(mkc, c, a) ? CX_ACC_ATOMIC : 0);
}

static int cx_mkey_parse(struct cx_dev *dev, struct cx_cmd *cmd, struct cx_mkey *m, const u8 *c)
{
	u32 pdn = CX_GET(mkc, c, pd);

	m->mode = CX_GET(mkc, c, access_mode_1_0) | CX_GET(mkc, c, access_mode_4_2) << 2;
	m->access = cx_mkc_access(c);
	m->free = CX_GET(mkc, c, free);
	m->length64 = CX_GET(mkc, c, length64);
	m->start = CX_GET64(mkc, c, start_addr);
	m->len = CX_GET64(mkc, c, len);
	m->page_shift = CX_GET(mkc, c, log_page_size);
	memcpy(m->mkc, c, sizeof(m->mkc));
	if (m->mode != MLX5_MKC_ACCESS_MODE_PA && m->mode != MLX5_MKC_ACCESS_MODE_MTT &&
	    m->mode != MLX5_MKC_ACCESS_MODE_KLMS)
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "access mode %u", m->mode);
	if (!m->length64 && m->start + m->len < m->start)
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "range wraps");
	m->pd = cx_obj_find(dev, CX_SP_PD, pdn, CX_K_PD);
	/* a key that is born free gets its PD later */
	if (!m->pd && !m->free)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "PD 0x%x does not exist", pdn);
	return cx_mkey_entries(dev, cmd, m);
}

int cx_cmd_create_mkey(struct cx_dev *dev, struct cx_cmd *cmd)
{
	const u8 *c = CX_ADDR(create_mkey_in, cmd->in, memory_key_mkey_entry);
	struct cx_mkey *m = g_new0(struct cx_mkey, 1);

	if (cx_mkey_parse(dev, cmd, m, c)) {
		m->pd = NULL;
		cx_mkey_release(dev, &m->obj);
		return -1;
	}
	if (m->pd)
		cx_obj_get(m->pd);
	m->obj.release = cx_mkey_release;
	if (cx_obj_add(dev, CX_SP_MKEY, CX_K_MKEY, &m->obj)) {
		cx_mkey_release(dev, &m->obj);
		return cx_refuse(dev, cmd, CX_ST_NO_RES, "no free mkey");
	}
	m->key = m->obj.id << 8 | CX_GET(mkc, c, mkey_7_0);
	CX_SET(create_mkey_out, cmd->out, mkey_index, m->obj.id);
	return 0;
}

int cx_cmd_destroy_mkey(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u32 index = CX_GET(destroy_mkey_in, cmd->in, mkey_index);
	struct cx_mkey *m = cx_obj_find(dev, CX_SP_MKEY, index, CX_K_MKEY);

	if (!m)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "mkey 0x%x does not exist", index);
	cx_obj_del(dev, &m->obj);
	return 0;
}

int cx_cmd_query_mkey(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u32 index = CX_GET(query_mkey_in, cmd->in, mkey_index);
	struct cx_mkey *m = cx_obj_find(dev, CX_SP_MKEY, index, CX_K_MKEY);

	if (!m)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "mkey 0x%x does not exist", index);
	memcpy(CX_ADDR(query_mkey_out, cmd->out, memory_key_mkey_entry), m->mkc, sizeof(m->mkc));
	return 0;
}

static const char *cx_umr_check(struct cx_dev *dev, const struct cx_mkey *m, u32 key, const u8 *umr)
{
	const u8 *c = umr + 48;
	u64 mask = ldq_be_p(umr + 8);

	if (!m || (m->key != key && !(mask & CX_UMR_KEY)))
		return "the key does not exist";
	if (!CX_GET(mkc, m->mkc, umr_en))
		return "the key is not made for it";
	if (mask & ~CX_UMR_MAY || lduw_be_p(umr + 4))
		return "changes what cannot be changed";
	if (umr[0] & CX_UMR_FAIL_FREE && m->free)
		return "the key is free";
	if (umr[0] & CX_UMR_FAIL_NOT_FREE && !m->free)
		return "the key is not free";
	if (mask & CX_UMR_PD && !cx_obj_find(dev, CX_SP_PD, CX_GET(mkc, c, pd), CX_K_PD))
		return "the PD does not exist";
	return NULL;
}

static void cx_umr_rights(struct cx_mkey *m, u64 mask, const u8 *c)
{
	static const struct {
		u64 bit;
		u32 access;
	} rights[] = {
		{ CX_UMR_LR, CX_ACC_LOCAL_READ },  { CX_UMR_LW, CX_ACC_LOCAL_WRITE },
		{ CX_UMR_RR, CX_ACC_REMOTE_READ }, { CX_UMR_RW, CX_ACC_REMOTE_WRITE },
		{ CX_UMR_A, CX_ACC_ATOMIC },
	};
	u32 i, access = cx_mkc_access(c);

	for (i = 0; i < ARRAY_SIZE(rights); i++) {
		if (mask & rights[i].bit)
			m->access = (m->access & ~rights[i].access) | (access & rights[i].access);
	}
}

enum cx_syndrome cx_mkey_update(struct cx_dev *dev, u32 key, const u8 *umr)
{
	struct cx_mkey *m = cx_obj_find(dev, CX_SP_MKEY, key >> 8, CX_K_MKEY);
	const u8 *c = umr + 48;
	u64 mask = ldq_be_p(umr + 8);
	const char *bad = cx_umr_check(dev, m, key, umr);

	if (bad) {
		cx_trace(dev, CX_TR_REFUSE, "UMR of mkey 0x%x mask 0x%" PRIx64 ": %s", key, mask,
			 bad);
		return CX_SYN_MW_BIND;
	}
	if (mask & CX_UMR_PD) {
		struct cx_obj *pd = cx_obj_find(dev, CX_SP_PD, CX_GET(mkc, c, pd), CX_K_PD);

		cx_obj_get(pd);
		if (m->pd)
			cx_obj_put(m->pd);
		m->pd = pd;
		CX_SET(mkc, m->mkc, pd, pd->id);
	}
	cx_umr_rights(m, mask, c);
	if (mask & CX_UMR_FREE)
		m->free = CX_GET(mkc, c, free);
	if (mask & CX_UMR_KEY)
		m->key = m->obj.id << 8 | CX_GET(mkc, c, mkey_7_0);
	if (mask & CX_UMR_START)
		m->start = CX_GET64(mkc, c, start_addr);
	if (mask & CX_UMR_LEN)
		m->len = CX_GET64(mkc, c, len);
	return CX_SYN_OK;
}

int cx_cmd_query_special_contexts(struct cx_dev *dev, struct cx_cmd *cmd)
{
	CX_SET(query_special_contexts_out, cmd->out, resd_lkey, CX_LKEY_INVALID);
	CX_SET(query_special_contexts_out, cmd->out, terminate_scatter_list_mkey, CX_LKEY_INVALID);
	return 0;
}
