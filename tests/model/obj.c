// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: the number spaces. An object is freed by its release function, which
 * also gives back the references it holds on other objects.
 * Runs under QEMU's big lock.
 */
#include "dev.h"

/* first number and limit of each space */
static const struct {
	u32 first;
	u32 limit;
} cx_space_range[CX_NR_SPACES] = {
	[CX_SP_PD] = { 0x11, 1 << 17 },
	/* the first pages of the BAR hold the initialisation segment */
	[CX_SP_UAR] = { CX_FIRST_UAR, CX_BAR_BYTES / CX_UAR_BYTES },
	[CX_SP_XRCD] = { 0x1, 1 << 16 },
	[CX_SP_TD] = { 0x1, 1 << 10 },
	[CX_SP_PSV] = { 0x1, 1 << 16 },
	[CX_SP_EQ] = { 0x1, 64 },
	[CX_SP_CQ] = { 0x1, 1 << 18 },
	/* key index 1 with variant 0 would be the scatter list terminator */
	[CX_SP_MKEY] = { 0x20, 1 << 24 },
	[CX_SP_SRQ] = { 0x1, 1 << 16 },
	[CX_SP_QUEUE] = { 0x40, 1 << 18 },
	[CX_SP_RQ] = { 0x1, 1 << 16 },
	[CX_SP_TIS] = { 0x1, 1 << 16 },
	[CX_SP_RQT] = { 0x1, 1 << 16 },
	[CX_SP_TIR] = { 0x1, 1 << 16 },
	[CX_SP_TABLE] = { 0x1, 1 << 16 },
	[CX_SP_GROUP] = { 0x1, 1 << 16 },
	[CX_SP_QCOUNTER] = { 0x1, 256 },
};

static const char *const cx_kind_names[] = {
	[CX_K_PD] = "PD",
	[CX_K_UAR] = "UAR",
	[CX_K_XRCD] = "XRCD",
	[CX_K_TD] = "transport domain",
	[CX_K_PSV] = "PSV",
	[CX_K_EQ] = "EQ",
	[CX_K_CQ] = "CQ",
	[CX_K_MKEY] = "mkey",
	[CX_K_RMP] = "RMP",
	[CX_K_XRC_SRQ] = "XRC SRQ",
	[CX_K_QP] = "QP",
	[CX_K_DCT] = "DCT",
	[CX_K_SQ] = "SQ",
	[CX_K_RQ] = "RQ",
	[CX_K_TIS] = "TIS",
	[CX_K_RQT] = "RQT",
	[CX_K_TIR] = "TIR",
	[CX_K_TABLE] = "flow table",
	[CX_K_GROUP] = "flow group",
	[CX_K_QCOUNTER] = "queue counter",
};

const char *cx_kind_name(enum cx_kind kind)
{
	return kind && kind < ARRAY_SIZE(cx_kind_names) ? cx_kind_names[kind] : "object";
}

void cx_obj_init(struct cx_dev *dev)
{
	u32 i;

	for (i = 0; i < CX_NR_SPACES; i++) {
		dev->ids[i].first = cx_space_range[i].first;
		dev->ids[i].limit = cx_space_range[i].limit;
		dev->ids[i].next = cx_space_range[i].first;
	}
	/* one a page of the BAR */
	dev->ids[CX_SP_UAR].limit = cx_dev_bar_bytes(dev) / CX_UAR_BYTES;
}

static void cx_idtab_grow(struct cx_idtab *t, u32 id)
{
	u32 room = t->room ? t->room : 64;

	while (room <= id)
		room *= 2;
	t->slot = g_renew(struct cx_obj *, t->slot, room);
	memset(t->slot + t->room, 0, (room - t->room) * sizeof(*t->slot));
	t->room = room;
}

int cx_obj_add(struct cx_dev *dev, enum cx_space space, enum cx_kind kind, struct cx_obj *obj)
{
	struct cx_idtab *t = &dev->ids[space];
	u32 id = t->thrifty ? t->first : t->next;

	if (t->used >= t->limit - t->first)
		return -ENOSPC;
	while (id < t->room && t->slot[id]) {
		if (++id == t->limit)
			id = t->first;
	}
	if (id >= t->room)
		cx_idtab_grow(t, id);
	t->slot[id] = obj;
	t->used++;
	if (!t->thrifty)
		t->next = id + 1 == t->limit ? t->first : id + 1;
	obj->id = id;
	obj->space = space;
	obj->kind = kind;
	return 0;
}

void *cx_obj_find(struct cx_dev *dev, enum cx_space space, u32 id, enum cx_kind kind)
{
	struct cx_idtab *t = &dev->ids[space];
	struct cx_obj *obj = id < t->room ? t->slot[id] : NULL;

	return obj && (!kind || obj->kind == kind) ? obj : NULL;
}

void cx_obj_del(struct cx_dev *dev, struct cx_obj *obj)
{
	struct cx_idtab *t = &dev->ids[obj->space];

	assert(t->slot[obj->id] == obj);
	t->slot[obj->id] = NULL;
	t->used--;
	obj->release(dev, obj);
}

void *cx_obj_next(struct cx_dev *dev, enum cx_space space, u32 *pos)
{
	struct cx_idtab *t = &dev->ids[space];

	while (*pos < t->room) {
		struct cx_obj *obj = t->slot[(*pos)++];

		if (obj)
			return obj;
	}
	return NULL;
}

void cx_obj_count(struct cx_dev *dev, u32 ret_count[CX_NR_KINDS])
{
	struct cx_obj *obj;
	u32 space, pos;

	memset(ret_count, 0, CX_NR_KINDS * sizeof(*ret_count));
	for (space = 0; space < CX_NR_SPACES; space++) {
		pos = 0;
		while ((obj = cx_obj_next(dev, space, &pos)))
			ret_count[obj->kind]++;
	}
}

void cx_obj_wipe(struct cx_dev *dev)
{
	static const enum cx_space order[] = {
		CX_SP_TIR, CX_SP_RQT,  CX_SP_GROUP, CX_SP_TABLE, CX_SP_RQ, CX_SP_QUEUE,
		CX_SP_TIS, CX_SP_SRQ,  CX_SP_MKEY,  CX_SP_CQ,	 CX_SP_EQ, CX_SP_QCOUNTER,
		CX_SP_PSV, CX_SP_XRCD, CX_SP_TD,    CX_SP_UAR,	 CX_SP_PD,
	};
	u32 i, pos;
	struct cx_obj *obj;

	QEMU_BUILD_BUG_ON(ARRAY_SIZE(order) != CX_NR_SPACES);
	for (i = 0; i < CX_NR_SPACES; i++) {
		pos = 0;
		while ((obj = cx_obj_next(dev, order[i], &pos)))
			cx_obj_del(dev, obj);
		g_free(dev->ids[order[i]].slot);
		/* how numbers are given is the card's, not its driver's */
		dev->ids[order[i]] = (struct cx_idtab){ .thrifty = dev->ids[order[i]].thrifty };
	}
	cx_obj_init(dev);
}
