/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: the integer types of the ConnectX model and 24-bit sequence numbers.
 * The names are those of the kernel because linux/mlx5/mlx5_ifc.h uses them.
 */
#ifndef CX_TYPES_H
#define CX_TYPES_H

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/cutils.h"
#include "qemu/host-utils.h"
#include "qemu/queue.h"
#include "qemu/timer.h"

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#ifndef __packed
#define __packed __attribute__((packed))
#endif
#define CX_PRINTF(fmt, arg) __attribute__((format(printf, fmt, arg)))

struct cx_dev;

#define CX_PSN_MASK 0xffffffu

/**
 * cx_psn_add() - Add to a 24-bit sequence number.
 * @psn: sequence number.
 * @n: how much.
 *
 * Return: the sum, which wraps around.
 */
static inline u32 cx_psn_add(u32 psn, u32 n)
{
	return (psn + n) & CX_PSN_MASK;
}

/**
 * cx_psn_diff() - Distance of two 24-bit sequence numbers.
 * @a: sequence number.
 * @b: the one that is subtracted.
 *
 * Return: @a - @b, in [-2^23, 2^23).
 */
static inline s32 cx_psn_diff(u32 a, u32 b)
{
	return (s32)((a - b) << 8) >> 8;
}

#endif
