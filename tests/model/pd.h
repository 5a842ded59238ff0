/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: the counters of a queue counter set.
 */
#ifndef CX_PD_H
#define CX_PD_H

#include "types.h"

/**
 * enum cx_qc - Counters of a queue counter set.
 * @CX_QC_RX_WRITE: rx_write_requests: WRITEs that came.
 * @CX_QC_RX_READ: rx_read_requests: READs that came.
 * @CX_QC_RX_ATOMIC: rx_atomic_requests: atomics that came.
 * @CX_QC_RX_DCT_CONNECT: rx_dct_connect: DC connects that were accepted.
 * @CX_QC_OUT_OF_BUFFER: out_of_buffer: messages and frames that found no receive request.
 * @CX_QC_OUT_OF_SEQUENCE: out_of_sequence: holes in the requests that came.
 * @CX_QC_DUPLICATE: duplicate_request: request packets that came again.
 * @CX_QC_PACKET_SEQ: packet_seq_err: sequence NAKs that came.
 * @CX_QC_ACK_TIMEOUT: local_ack_timeout_err: time-outs of the requester.
 * @CX_NR_QC: how many there are.
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
