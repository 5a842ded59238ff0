// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the one place where the tracepoints of base/trace.h are made.
 * Locking: none of its own.
 */
#include <linux/in6.h>
#include <linux/string.h>

#include "hw/provider.h"
#include "hw/rail.h"

#define CREATE_TRACE_POINTS
#include "base/trace.h"
