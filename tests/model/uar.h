/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: doorbell pages, and the registers in them through which requests are pushed (BlueFlame).
 */
#ifndef CX_UAR_H
#define CX_UAR_H

#include "obj.h"

#define CX_UAR_BYTES 4096u
#define CX_UAR_SQ 0x800u /* where the registers of send queues begin */
#define CX_BF_BYTES 0x100u /* of each of them; a queue uses two in turn */
#define CX_LOG_BF_REG 9 /* log2 of the bytes of those two */
#define CX_BF_WAIT_US 10000 /* a processor of a guest may stand still between two writes */

/**
 * struct cx_bf - A register of a doorbell page that send queues are rung by.
 * @link: in cx_dev.bf_begun: a request is being pushed that is not there whole.
 * @uar: its page.
 * @begun: it is in that list.
 * @told: that the request did not come whole is counted.
 * @got: bytes that were written in order, from the beginning; 0 before the first doorbell.
 * @need: bytes of the request that the doorbell is of, in whole blocks.
 * @pi: what the doorbell record said when the doorbell came.
 * @until_us: when the rest has to be there.
 * @raw: what was written.
 */
struct cx_bf {
	QTAILQ_ENTRY(cx_bf) link;
	struct cx_uar *uar;
	bool begun;
	bool told;
	u16 pi;
	u32 got;
	u32 need;
	s64 until_us;
	u8 raw[CX_BF_BYTES];
};

/**
 * struct cx_uar - A doorbell page.
 * @obj: head.
 * @pushes: a request was pushed through it before, so a doorbell may be the first part of another.
 * @bf: its registers.
 */
struct cx_uar {
	struct cx_obj obj;
	bool pushes;
	struct cx_bf bf[(CX_UAR_BYTES - CX_UAR_SQ) / CX_BF_BYTES];
};

/**
 * cx_uar_new() - Make a doorbell page.
 *
 * Return: head of a struct cx_uar, which has no number yet.
 */
struct cx_obj *cx_uar_new(void);

/**
 * cx_uar_init() - Set up what waits for the rest of a request.
 * @dev: device.
 */
void cx_uar_init(struct cx_dev *dev);

/**
 * cx_uar_fini() - End that.
 * @dev: device; it has no doorbell pages any more.
 */
void cx_uar_fini(struct cx_dev *dev);

/**
 * cx_uar_write() - The driver writes to a doorbell page.
 * @dev: device.
 * @addr: where in the BAR.
 * @val: what, in the byte order of the device.
 * @size: how many bytes.
 *
 * A request whose parts come one by one is pushed when the last one is there, and taken from
 * memory if that lasts for CX_BF_WAIT_US.
 */
void cx_uar_write(struct cx_dev *dev, hwaddr addr, u64 val, unsigned int size);

#endif
