/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: memory keys: physical (PA), page-translated (MTT) and lists of other
 * keys (KLM); their checks and the copies through them.
 */
#ifndef CX_MKEY_H
#define CX_MKEY_H

#include "cq.h"
#include "obj.h"

enum cx_access {
	CX_ACC_LOCAL_READ = 1 << 0,
	CX_ACC_LOCAL_WRITE = 1 << 1,
	CX_ACC_REMOTE_READ = 1 << 2,
	CX_ACC_REMOTE_WRITE = 1 << 3,
	CX_ACC_ATOMIC = 1 << 4,
};

#define CX_LKEY_INVALID 0x100
#define CX_UMR_BYTES (48 + 64) /* what a UMR request says: control, context */

struct cx_klm {
	u32 bytes;
	u32 key;
	u64 addr;
};

struct cx_mkey {
	struct cx_obj obj;
	struct cx_obj *pd;
	u32 key; /* index << 8 | variant */
	u32 mode;
	u32 access;
	bool free;
	bool length64;
	u64 start;
	u64 len;
	u32 page_shift;
	u32 nr; /* entries of @mtt or @klm */
	u64 *mtt;
	struct cx_klm *klm;
	u8 mkc[64];
};

int cx_mkey_check(struct cx_dev *dev, u32 key, u32 pdn, u64 va, u64 len, u32 access);
enum cx_syndrome cx_mkey_update(struct cx_dev *dev, u32 key, const u8 *umr);
int cx_mkey_copy(struct cx_dev *dev, u32 key, u32 pdn, u64 va, void *buf, u32 len, u32 access);

#endif
