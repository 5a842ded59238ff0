/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: faults of the fabric on request: loss, duplication, delay, reordering,
 * partitions; and how slow firmware is. Decisions come from a generator with a
 * seed, one draw a frame and kind of fault, so that the same frames meet the
 * same fate.
 */
#ifndef CX_FAULT_H
#define CX_FAULT_H

#include "fabric.h"

#define CX_PPM 1000000u

struct cx_fault {
	u64 rng;
	u32 loss_ppm;
	u32 rx_loss_ppm;
	u32 dup_ppm;
	u32 reorder_ppm;
	u32 delay_us;
	u32 jitter_us;
	u32 cmd_delay_ms; /* a firmware command takes so long */
	u64 partition[1024]; /* one bit a node: 65536 nodes */
	bool any_partition;
	QEMUTimer *timer;
	QSIMPLEQ_HEAD(, cx_held_frame) delayed;
	struct cx_held_frame *swapped; /* goes after the next frame */
};

void cx_fault_init(struct cx_dev *dev);
void cx_fault_fini(struct cx_dev *dev);
void cx_fault_send(struct cx_dev *dev, const struct cx_frame *f);
bool cx_fault_receives(struct cx_dev *dev, const struct cx_frame *f);
bool cx_fault_partitioned(const struct cx_dev *dev, u32 node);
int cx_fault_set_partition(struct cx_dev *dev, const char *nodes);

#endif
