/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: the numbered objects a driver creates by command. Every kind lives in
 * one number space; a number is not reused before the space wrapped once, so
 * that a driver's stale number meets nothing, unless the space is told to be
 * thrifty: then the lowest number that is free is the next. An object that
 * another one refers to has a reference and cannot be destroyed.
 */
#ifndef CX_OBJ_H
#define CX_OBJ_H

#include "types.h"

/**
 * enum cx_space - Number spaces.
 * @CX_SP_PD: protection domains.
 * @CX_SP_UAR: doorbell pages; the number is that of the BAR's page.
 * @CX_SP_XRCD: XRC domains.
 * @CX_SP_TD: transport domains.
 * @CX_SP_PSV: protection signature values.
 * @CX_SP_EQ: event queues.
 * @CX_SP_CQ: completion queues.
 * @CX_SP_MKEY: indices of memory keys.
 * @CX_SP_SRQ: shared receive queues: RMPs and XRC SRQs.
 * @CX_SP_QUEUE: queue pairs, DC targets and send queues of the netdev.
 * @CX_SP_RQ: receive queues of the netdev.
 * @CX_SP_TIS: transport interfaces, send side.
 * @CX_SP_RQT: tables of receive queues.
 * @CX_SP_TIR: transport interfaces, receive side.
 * @CX_SP_TABLE: flow tables.
 * @CX_SP_GROUP: flow groups, of all tables.
 * @CX_SP_QCOUNTER: queue counter sets.
 * @CX_NR_SPACES: how many there are.
 */
enum cx_space {
	CX_SP_PD,
	CX_SP_UAR,
	CX_SP_XRCD,
	CX_SP_TD,
	CX_SP_PSV,
	CX_SP_EQ,
	CX_SP_CQ,
	CX_SP_MKEY,
	CX_SP_SRQ,
	CX_SP_QUEUE,
	CX_SP_RQ,
	CX_SP_TIS,
	CX_SP_RQT,
	CX_SP_TIR,
	CX_SP_TABLE,
	CX_SP_GROUP,
	CX_SP_QCOUNTER,
	CX_NR_SPACES,
};

/**
 * enum cx_kind - Kinds of objects.
 * @CX_K_PD: protection domain.
 * @CX_K_UAR: doorbell page.
 * @CX_K_XRCD: XRC domain.
 * @CX_K_TD: transport domain.
 * @CX_K_PSV: protection signature value.
 * @CX_K_EQ: struct cx_eq.
 * @CX_K_CQ: struct cx_cq.
 * @CX_K_MKEY: struct cx_mkey.
 * @CX_K_RMP: struct cx_srq: receive memory pool.
 * @CX_K_XRC_SRQ: struct cx_srq of XRC.
 * @CX_K_QP: struct cx_qp.
 * @CX_K_DCT: struct cx_dct.
 * @CX_K_SQ: struct cx_sq.
 * @CX_K_RQ: struct cx_rq.
 * @CX_K_TIS: struct cx_tis.
 * @CX_K_RQT: struct cx_rqt.
 * @CX_K_TIR: struct cx_tir.
 * @CX_K_TABLE: struct cx_flow_table.
 * @CX_K_GROUP: struct cx_flow_group.
 * @CX_K_QCOUNTER: queue counter set.
 * @CX_NR_KINDS: one more than the last.
 */
enum cx_kind {
	CX_K_PD = 1,
	CX_K_UAR,
	CX_K_XRCD,
	CX_K_TD,
	CX_K_PSV,
	CX_K_EQ,
	CX_K_CQ,
	CX_K_MKEY,
	CX_K_RMP,
	CX_K_XRC_SRQ,
	CX_K_QP,
	CX_K_DCT,
	CX_K_SQ,
	CX_K_RQ,
	CX_K_TIS,
	CX_K_RQT,
	CX_K_TIR,
	CX_K_TABLE,
	CX_K_GROUP,
	CX_K_QCOUNTER,
	CX_NR_KINDS,
};

/**
 * struct cx_obj - Head of every numbered object.
 * @id: its number in @space; from cx_obj_add().
 * @refs: objects that refer to it.
 * @space: number space it is in.
 * @kind: what it is the head of.
 * @release: frees it, and gives back its references on others; called by cx_obj_del().
 */
struct cx_obj {
	u32 id;
	u32 refs;
	enum cx_space space;
	enum cx_kind kind;
	void (*release)(struct cx_dev *dev, struct cx_obj *obj);
};

/**
 * struct cx_idtab - One number space.
 * @slot: the objects by number, NULL where there is none.
 * @first: lowest number of the space.
 * @limit: highest number + 1.
 * @room: slots allocated.
 * @next: where the search for a free number starts.
 * @used: objects there are.
 * @thrifty: the lowest free number is given, be it of an object just destroyed.
 */
struct cx_idtab {
	struct cx_obj **slot;
	u32 first;
	u32 limit;
	u32 room;
	u32 next;
	u32 used;
	bool thrifty;
};

/**
 * cx_obj_init() - Set up all number spaces, which are empty.
 * @dev: device.
 */
void cx_obj_init(struct cx_dev *dev);

/**
 * cx_obj_add() - Give an object a number.
 * @dev: device.
 * @space: number space.
 * @kind: kind of the object.
 * @obj: object; its @release is already set.
 *
 * Return: 0, or
 * * -ENOSPC - the space has no free number
 */
int cx_obj_add(struct cx_dev *dev, enum cx_space space, enum cx_kind kind, struct cx_obj *obj);

/**
 * cx_obj_find() - Look an object up.
 * @dev: device.
 * @space: number space.
 * @id: number.
 * @kind: the kind it must have, 0 for any.
 *
 * Return: the object, NULL if there is none of that number and kind.
 */
void *cx_obj_find(struct cx_dev *dev, enum cx_space space, u32 id, enum cx_kind kind);

/**
 * cx_obj_del() - Destroy an object.
 * @dev: device.
 * @obj: object; nothing refers to it any more.
 */
void cx_obj_del(struct cx_dev *dev, struct cx_obj *obj);

/**
 * cx_obj_wipe() - Destroy every object, users before what they use: at reset and unplug.
 * @dev: device.
 */
void cx_obj_wipe(struct cx_dev *dev);

/**
 * cx_obj_next() - Walk through the objects of a number space, in order of their numbers.
 * @dev: device.
 * @space: number space.
 * @pos: position; 0 at the start.
 *
 * The one that was returned last may be destroyed meanwhile.
 *
 * Return: the next object; NULL at the end.
 */
void *cx_obj_next(struct cx_dev *dev, enum cx_space space, u32 *pos);

/**
 * cx_obj_count() - How many objects there are.
 * @dev: device.
 * @ret_count: out: by kind.
 */
void cx_obj_count(struct cx_dev *dev, u32 ret_count[CX_NR_KINDS]);

/**
 * cx_kind_name() - Name of a kind of object, for texts.
 * @kind: kind.
 *
 * Return: constant text.
 */
const char *cx_kind_name(enum cx_kind kind);

/**
 * cx_obj_get() - Refer to an object: it cannot be destroyed by the driver.
 * @obj: object.
 */
static inline void cx_obj_get(struct cx_obj *obj)
{
	obj->refs++;
}

/**
 * cx_obj_put() - Refer to an object no more.
 * @obj: object, after cx_obj_get().
 */
static inline void cx_obj_put(struct cx_obj *obj)
{
	assert(obj->refs);
	obj->refs--;
}

#endif
