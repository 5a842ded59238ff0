/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: what the device counts, so that a test can say "exactly one READ of
 * 256 bytes crossed the fabric". Names are those of counters.def.
 */
#ifndef CX_COUNTERS_H
#define CX_COUNTERS_H

#include "types.h"

enum cx_counter {
#define CX_COUNTER(id, name, help) CX_CTR_##id,
#include "counters.def"
#undef CX_COUNTER
	CX_NR_COUNTERS,
};

/* one class of completed work requests, by opcode and length */
struct cx_op_count {
	u8 opcode;
	bool responder;
	u32 bytes;
	u64 nr;
};

struct cx_counters {
	u64 val[CX_NR_COUNTERS];
	GHashTable *ops; /* key and value: struct cx_op_count */
};

void cx_counters_init(struct cx_dev *dev);
void cx_counters_fini(struct cx_dev *dev);
void cx_count(struct cx_dev *dev, enum cx_counter ctr, u64 add);
void cx_count_op(struct cx_dev *dev, u8 opcode, bool responder, u32 bytes);
char *cx_counters_text(struct cx_dev *dev);
int cx_counters_save(struct cx_dev *dev, const char *path);

#endif
