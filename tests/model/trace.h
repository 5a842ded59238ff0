/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: the text trace of the ConnectX model, one line an event, and the
 * choice of what is traced.
 */
#ifndef CX_TRACE_H
#define CX_TRACE_H

#include "types.h"

enum cx_trace_class {
	CX_TR_CMD = 1 << 0, /* firmware commands, with their fields */
	CX_TR_WQE = 1 << 1, /* work requests fetched by the device */
	CX_TR_CQE = 1 << 2, /* completions */
	CX_TR_PKT = 1 << 3, /* packets of the RDMA transport */
	CX_TR_ETH = 1 << 4, /* Ethernet frames */
	CX_TR_EVENT = 1 << 5, /* event queue entries, port, reset */
	CX_TR_REFUSE = 1 << 6, /* what the device refused, and why */
	CX_TR_DB = 1 << 7, /* doorbells */
	CX_TR_FAULT = 1 << 8, /* injected faults */
};

struct cx_trace {
	FILE *file;
	u32 classes;
};

int cx_trace_open(struct cx_dev *dev, const char *path, const char *classes, Error **errp);
void cx_trace_close(struct cx_dev *dev);
void cx_trace(struct cx_dev *dev, enum cx_trace_class class, const char *fmt, ...) CX_PRINTF(3, 4);
bool cx_trace_on(const struct cx_dev *dev, enum cx_trace_class class);

#endif
