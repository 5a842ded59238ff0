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

/**
 * struct cx_fault - The faults that are asked for, and the frames that they hold back.
 * @rng: state of the generator.
 * @loss_ppm: share of the frames sent that are lost, of CX_PPM.
 * @rx_loss_ppm: share of the frames that arrive and are lost, of CX_PPM.
 * @dup_ppm: share of the frames sent that are doubled, of CX_PPM.
 * @reorder_ppm: share of the frames sent that are swapped with the next one, of CX_PPM.
 * @delay_us: delay of every frame sent.
 * @jitter_us: random delay on top, below this.
 * @cmd_delay_ms: a firmware command takes so long.
 * @partition: nodes that cannot be reached: one bit a node: 65536 nodes.
 * @any_partition: there is one at least.
 * @timer: when the next frame that is held back is due.
 * @swapped: goes after the next frame, or 2 ms later; owned.
 */
struct cx_fault {
	u64 rng;
	u32 loss_ppm;
	u32 rx_loss_ppm;
	u32 dup_ppm;
	u32 reorder_ppm;
	u32 delay_us;
	u32 jitter_us;
	u32 cmd_delay_ms;
	u64 partition[1024];
	bool any_partition;
	QEMUTimer *timer;
	/* private: not for kernel-doc: frames that are due later, the next one first; owned */
	QSIMPLEQ_HEAD(, cx_held_frame) delayed;
	/* public: */
	struct cx_held_frame *swapped;
};

/**
 * cx_fault_init() - Take the faults over from the device's properties.
 * @dev: device.
 */
void cx_fault_init(struct cx_dev *dev);

/**
 * cx_fault_fini() - Free the frames that are held back.
 * @dev: device.
 *
 * Does nothing when cx_fault_init() was never called.
 */
void cx_fault_fini(struct cx_dev *dev);

/**
 * cx_fault_send() - Send a frame, or not, or twice, or later.
 * @dev: device.
 * @f: frame.
 */
void cx_fault_send(struct cx_dev *dev, const struct cx_frame *f);

/**
 * cx_fault_receives() - Whether a frame of the network reaches this node.
 * @dev: device.
 * @f: frame.
 *
 * Return: false when a partition is in its way, or it is lost on request.
 */
bool cx_fault_receives(struct cx_dev *dev, const struct cx_frame *f);

/**
 * cx_fault_partitioned() - Whether the device hears nothing of a node.
 * @dev: device.
 * @node: its number.
 *
 * Return: true if they are in different partitions.
 */
bool cx_fault_partitioned(const struct cx_dev *dev, u32 node);

/**
 * cx_fault_set_partition() - Say which nodes cannot be reached.
 * @dev: device.
 * @nodes: node numbers joined by ',' or '+', "" for none.
 *
 * Return: 0, or -EINVAL with the old setting kept.
 */
int cx_fault_set_partition(struct cx_dev *dev, const char *nodes);

#endif
