/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: memory keys: physical (PA), page-translated (MTT) and lists of other
 * keys (KLM); their checks and the copies through them.
 */
#ifndef CX_MKEY_H
#define CX_MKEY_H

#include "cq.h"
#include "obj.h"

/**
 * enum cx_access - What a memory key, or the side of a transfer, allows.
 * @CX_ACC_LOCAL_READ: the device may send from it.
 * @CX_ACC_LOCAL_WRITE: the device may write what it receives, and answers, to it.
 * @CX_ACC_REMOTE_READ: a READ of the other side.
 * @CX_ACC_REMOTE_WRITE: a WRITE of the other side.
 * @CX_ACC_ATOMIC: an atomic of the other side.
 */
enum cx_access {
	CX_ACC_LOCAL_READ = 1 << 0,
	CX_ACC_LOCAL_WRITE = 1 << 1,
	CX_ACC_REMOTE_READ = 1 << 2,
	CX_ACC_REMOTE_WRITE = 1 << 3,
	CX_ACC_ATOMIC = 1 << 4,
};

#define CX_LKEY_INVALID 0x100
#define CX_UMR_BYTES (48 + 64) /* what a UMR request says: control, context */

/**
 * struct cx_klm - An entry of a list of keys.
 * @bytes: length of its part of the list's range.
 * @key: memory key of that part.
 * @addr: where it begins, under @key.
 */
struct cx_klm {
	u32 bytes;
	u32 key;
	u64 addr;
};

/**
 * struct cx_mkey - A memory key.
 * @obj: head; its number is the key's index.
 * @pd: protection domain, NULL for none yet, of a free key; referenced.
 * @key: index << 8 | variant.
 * @mode: MLX5_MKC_ACCESS_MODE_PA, _MTT or _KLMS.
 * @access: rights, mask of enum cx_access.
 * @free: it cannot be used until a UMR request says otherwise.
 * @length64: its range is not checked: all addresses.
 * @start: first address.
 * @len: bytes.
 * @page_shift: MTT: log2 of the bytes of a page.
 * @nr: entries of @mtt or @klm.
 * @mtt: MTT: addresses of the pages, the first one with @start in it; owned.
 * @klm: KLMS: ranges under other keys, one behind the other; owned.
 * @mkc: context as it was created, for queries; an update changes the domain alone in it.
 */
struct cx_mkey {
	struct cx_obj obj;
	struct cx_obj *pd;
	u32 key;
	u32 mode;
	u32 access;
	bool free;
	bool length64;
	u64 start;
	u64 len;
	u32 page_shift;
	u32 nr;
	u64 *mtt;
	struct cx_klm *klm;
	u8 mkc[64];
};

/**
 * cx_mkey_check() - May this range be accessed.
 * @dev: device.
 * @key: memory key.
 * @pdn: protection domain of the queue.
 * @va: first byte.
 * @len: bytes.
 * @access: rights needed, &enum cx_access.
 *
 * Return: 0, or -EACCES.
 */
int cx_mkey_check(struct cx_dev *dev, u32 key, u32 pdn, u64 va, u64 len, u32 access);

/**
 * cx_mkey_update() - Change a key by a UMR request.
 * @dev: device.
 * @key: memory key.
 * @umr: control and context of the request, CX_UMR_BYTES.
 *
 * Domain, rights, range, variant and whether it is free; never the pages behind it: the
 * capabilities say so. Nothing is changed when something of it is refused.
 *
 * Return: CX_SYN_OK, or the syndrome the request completes with.
 */
enum cx_syndrome cx_mkey_update(struct cx_dev *dev, u32 key, const u8 *umr);

/**
 * cx_mkey_copy() - Copy between the device and memory behind a key.
 * @dev: device.
 * @key: memory key.
 * @pdn: protection domain of the queue.
 * @va: first byte.
 * @buf: device side, @len bytes.
 * @len: bytes; nothing is checked for zero.
 * @access: rights needed; one of the write rights makes it a write. An atomic
 *	passes CX_ACC_ATOMIC, together with CX_ACC_LOCAL_WRITE for its write.
 *
 * Return: 0, or
 * * -EACCES - the key does not allow it
 * * -EFAULT - the bus refused the access
 */
int cx_mkey_copy(struct cx_dev *dev, u32 key, u32 pdn, u64 va, void *buf, u32 len, u32 access);

#endif
