/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: shared receive queues: RMPs and XRC SRQs.
 */
#ifndef CX_SRQ_H
#define CX_SRQ_H

#include "wqe.h"

/**
 * struct cx_srq - A shared receive queue.
 * @obj: head, of kind CX_K_RMP or CX_K_XRC_SRQ; queue pairs and DC targets hold references.
 * @pd: protection domain; referenced.
 * @xrcd: XRC only: domain; referenced.
 * @cq: XRC only: where it completes; referenced.
 * @user_index: XRC only: for completions: what the driver calls it by.
 * @ring: memory of @wq.
 * @wq: queue, usually a linked one.
 * @limit: entries left at which to tell the driver, 0 for never, and after it was told.
 * @ctx: context as it was created, for queries.
 */
struct cx_srq {
	struct cx_obj obj;
	struct cx_obj *pd;
	struct cx_obj *xrcd;
	struct cx_cq *cq;
	u32 user_index;
	struct cx_ring ring;
	struct cx_wq wq;
	u16 limit;
	u8 ctx[256];
};

/**
 * cx_srq_find() - Find a shared receive queue, an RMP or an XRC SRQ.
 * @dev: device.
 * @srqn: its number.
 *
 * Return: the queue, or NULL.
 */
struct cx_srq *cx_srq_find(struct cx_dev *dev, u32 srqn);

/**
 * cx_srq_pop() - Take a receive request, and tell the driver when its limit is reached.
 * @dev: device.
 * @srq: shared receive queue.
 * @r: filled.
 *
 * Return: false if there is none.
 */
bool cx_srq_pop(struct cx_dev *dev, struct cx_srq *srq, struct cx_rwqe *r);

/**
 * cx_srq_drop() - Forget posted receive requests, as a fault: nothing completes, no limit is told.
 * @dev: device.
 * @nr: how many, of the shared receive queue that has the most.
 *
 * Return: 0, or -ENOENT if no queue has so many; nothing is forgotten then.
 */
int cx_srq_drop(struct cx_dev *dev, u32 nr);

/**
 * cx_wq_init() - Take over a work queue context (SQ, RQ, RMP).
 * @dev: device.
 * @cmd: command it came with.
 * @wq: filled.
 * @ring: filled.
 * @ctx: wq layout inside the command's input.
 * @dbr_off: which half of the doorbell record belongs to the queue, bytes.
 *
 * Return: 0, or -1 with the command refused.
 */
int cx_wq_init(struct cx_dev *dev, struct cx_cmd *cmd, struct cx_wq *wq, struct cx_ring *ring,
	       const u8 *ctx, u32 dbr_off);

#endif
