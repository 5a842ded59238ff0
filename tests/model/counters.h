/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: what the device counts, so that a test can say "exactly one READ of
 * 256 bytes crossed the fabric". Names are those of counters.def.
 */
#ifndef CX_COUNTERS_H
#define CX_COUNTERS_H

#include "types.h"

/** enum cx_counter - Counters, by their place in counters.def, where each says what it counts. */
enum cx_counter {
#define CX_COUNTER(id, name, help) CX_CTR_##id,
#include "counters.def"
#undef CX_COUNTER
	CX_NR_COUNTERS,
};

/**
 * struct cx_op_count - One class of completed work requests, by opcode and length.
 * @opcode: enum cx_opcode.
 * @responder: at the side that was asked, not at the one that asked.
 * @bytes: length of the message.
 * @nr: how many.
 */
struct cx_op_count {
	u8 opcode;
	bool responder;
	u32 bytes;
	u64 nr;
};

/**
 * struct cx_counters - What the device has counted since it was made.
 * @val: by enum cx_counter.
 * @ops: key and value: struct cx_op_count, owned; NULL unless they are set up.
 */
struct cx_counters {
	u64 val[CX_NR_COUNTERS];
	GHashTable *ops;
};

/**
 * cx_counters_init() - Set the counters up, all zero.
 * @dev: device.
 */
void cx_counters_init(struct cx_dev *dev);

/**
 * cx_counters_fini() - Free what cx_counters_init() has made.
 * @dev: device.
 *
 * Does nothing when it was never called.
 */
void cx_counters_fini(struct cx_dev *dev);

/**
 * cx_count() - Add to a counter.
 * @dev: device.
 * @ctr: counter.
 * @add: how much.
 */
void cx_count(struct cx_dev *dev, enum cx_counter ctr, u64 add);

/**
 * cx_count_op() - Count one executed work request.
 * @dev: device.
 * @opcode: its opcode.
 * @responder: counted at the side that was asked, not at the one that asked.
 * @bytes: message length.
 */
void cx_count_op(struct cx_dev *dev, u8 opcode, bool responder, u32 bytes);

/**
 * cx_counters_text() - The counters, the objects there are, and the operations by length.
 * @dev: device.
 *
 * Return: JSON text, to be freed with g_free().
 */
char *cx_counters_text(struct cx_dev *dev);

/**
 * cx_counters_save() - Write cx_counters_text() to a file.
 * @dev: device.
 * @path: file; replaced.
 *
 * Return: 0, or -EIO.
 */
int cx_counters_save(struct cx_dev *dev, const char *path);

#endif
