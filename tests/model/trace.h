/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: the text trace of the ConnectX model, one line an event, and the
 * choice of what is traced.
 */
#ifndef CX_TRACE_H
#define CX_TRACE_H

#include "types.h"

/**
 * enum cx_trace_class - Classes of events.
 * @CX_TR_CMD: firmware commands, with their fields.
 * @CX_TR_WQE: work requests fetched by the device.
 * @CX_TR_CQE: completions.
 * @CX_TR_PKT: packets of the RDMA transport.
 * @CX_TR_ETH: Ethernet frames.
 * @CX_TR_EVENT: event queue entries, port, reset.
 * @CX_TR_REFUSE: what the device refused, and why.
 * @CX_TR_DB: doorbells.
 * @CX_TR_FAULT: injected faults.
 */
enum cx_trace_class {
	CX_TR_CMD = 1 << 0,
	CX_TR_WQE = 1 << 1,
	CX_TR_CQE = 1 << 2,
	CX_TR_PKT = 1 << 3,
	CX_TR_ETH = 1 << 4,
	CX_TR_EVENT = 1 << 5,
	CX_TR_REFUSE = 1 << 6,
	CX_TR_DB = 1 << 7,
	CX_TR_FAULT = 1 << 8,
};

/**
 * struct cx_trace - The trace of a device.
 * @file: where it goes, a line at a time; NULL for no trace.
 * @classes: what is traced, mask of enum cx_trace_class.
 */
struct cx_trace {
	FILE *file;
	u32 classes;
};

/**
 * cx_trace_open() - Start the trace.
 * @dev: device.
 * @path: file to write, NULL for no trace.
 * @classes: names joined by '+', "all" for everything, NULL for the default.
 * @errp: filled on failure.
 *
 * Return: 0, or
 * * -EINVAL - unknown class name
 * * -EIO - the file cannot be opened
 */
int cx_trace_open(struct cx_dev *dev, const char *path, const char *classes, Error **errp);

/**
 * cx_trace_close() - End the trace.
 * @dev: device.
 *
 * Does nothing without one.
 */
void cx_trace_close(struct cx_dev *dev);

/**
 * cx_trace() - Write one line.
 * @dev: device.
 * @class: what kind of event it is.
 * @fmt: printf format, without a newline.
 */
void cx_trace(struct cx_dev *dev, enum cx_trace_class class, const char *fmt, ...) CX_PRINTF(3, 4);

/**
 * cx_trace_on() - Whether events of a class are traced.
 * @dev: device.
 * @class: class.
 *
 * Return: true if they are.
 */
bool cx_trace_on(const struct cx_dev *dev, enum cx_trace_class class);

#endif
