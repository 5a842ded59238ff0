/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: what the device says it can do.
 */
#ifndef CX_CAPS_H
#define CX_CAPS_H

#include "types.h"

#define CX_CAP_BYTES 4096
#define CX_NR_CAPS 0x20

#define CX_LOG_MAX_RD_ATOMIC 4
#define CX_LOG_MAX_MSG 30
#define CX_ROCE_ENTRIES 256
#define CX_MAX_SQ_WQE_BYTES 1024
#define CX_LOG_MAX_RQ_WQE_BYTES 9
#define CX_LOG_MAX_QUEUE 15

/**
 * struct cx_caps - Capabilities by group, in the layouts of QUERY_HCA_CAP.
 * @group: by number of the group; all zero where the model has none.
 */
struct cx_caps {
	u8 group[CX_NR_CAPS][CX_CAP_BYTES];
};

/**
 * cx_caps_init() - Fill all groups as after a reset.
 * @dev: device.
 */
void cx_caps_init(struct cx_dev *dev);

#endif
