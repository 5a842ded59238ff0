/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: the counters of a queue counter set.
 */
#ifndef CX_PD_H
#define CX_PD_H

#include "types.h"

/**
 * enum cx_qc - Counters of a queue counter set.
 */
enum cx_qc {
	CX_QC_RX_WRITE,
	CX_QC_RX_READ,
	CX_QC_RX_ATOMIC,
	CX_QC_RX_DCT_CONNECT,
	CX_QC_OUT_OF_BUFFER,
	CX_QC_OUT_OF_SEQUENCE,
	CX_QC_DUPLICATE,
	CX_QC_PACKET_SEQ,
	CX_QC_ACK_TIMEOUT,
	CX_NR_QC,
};

/**
 * cx_qcounter_add() - Count in the counter set of a queue.
 * @dev: device.
 * @set: counter set, 0 for none.
 * @what: counter.
 */
void cx_qcounter_add(struct cx_dev *dev, u32 set, enum cx_qc what);

#endif
