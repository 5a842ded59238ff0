// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the definitions of the tracepoints of base/trace.h.
 * Locking: none of its own.
 */
#include <linux/in6.h>
#include <linux/string.h>

#include "hw/provider.h"
#include "hw/rail.h"

#define CREATE_TRACE_POINTS
#include "base/trace.h"
