/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: DC targets.
 */
#ifndef CX_DCT_H
#define CX_DCT_H

#include "qp.h"

/**
 * enum cx_dct_state - States of a DC target.
 * @CX_DCT_ACTIVE: takes connections.
 * @CX_DCT_DRAINING: takes no new ones, finishes messages under way.
 * @CX_DCT_DRAINED: has no initiators any more: can be destroyed.
 */
enum cx_dct_state {
	CX_DCT_ACTIVE = 0,
	CX_DCT_DRAINING = 1,
	CX_DCT_DRAINED = 2,
};

/**
 * struct cx_dct - A DC target.
 * @obj: head.
 * @dev: device, for @drain.
 * @state: goes on with DRAIN_DCT, never back.
 * @pd: protection domain that keys are checked with; referenced.
 * @srq: where it takes receive requests from; referenced.
 * @cq: where it completes; referenced.
 * @user_index: for completions: what the driver calls it by.
 * @key: DC access key.
 * @key_violations: connects with another key.
 * @key_armed: the next one of those raises CX_EV_DCT_KEY.
 * @dctc: context as it was created.
 * @initiators: node << 24 | qpn -> struct cx_responder, owned.
 * @drain: ends draining after a while, messages under way or not.
 */
struct cx_dct {
	struct cx_obj obj;
	struct cx_dev *dev;
	enum cx_dct_state state;
	struct cx_obj *pd;
	struct cx_srq *srq;
	struct cx_cq *cq;
	u32 user_index;
	u64 key;
	u32 key_violations;
	bool key_armed;
	u8 dctc[128];
	GHashTable *initiators;
	QEMUTimer *drain;
};

/**
 * cx_dct_find() - Find a DC target.
 * @dev: device.
 * @dctn: its number.
 *
 * Return: the target, or NULL.
 */
struct cx_dct *cx_dct_find(struct cx_dev *dev, u32 dctn);

/**
 * cx_dct_rx() - A packet of a DC initiator.
 * @dev: device.
 * @f: its frame.
 * @p: packet.
 */
void cx_dct_rx(struct cx_dev *dev, const struct cx_frame *f, const struct cx_pkt *p);

/**
 * cx_rx_of_dct() - What SENDs to a DC target meet.
 * @dev: device.
 * @dct: target.
 * @rx: filled.
 */
void cx_rx_of_dct(struct cx_dev *dev, struct cx_dct *dct, struct cx_rx_queue *rx);

#endif
