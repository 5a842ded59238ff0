/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * Little-endian accessors for bytes that leave the machine.
 *
 * Everything on the wire and in registered memory is little-endian and typed
 * __le16/__le32/__le64, so that sparse finds a forgotten conversion. The
 * kernel has accessors of its own; in user space <asm/byteorder.h> would make
 * sparse complain of each correct use, because exported headers have lost the
 * force annotation, so the same names are spelled here with it.
 */
#ifndef KRP_ENDIAN_H
#define KRP_ENDIAN_H

#include <linux/types.h>

#ifdef __KERNEL__
#include <asm/byteorder.h>

#define krp_cpu_to_le16(v) cpu_to_le16(v)
#define krp_cpu_to_le32(v) cpu_to_le32(v)
#define krp_cpu_to_le64(v) cpu_to_le64(v)
#define krp_le16_to_cpu(v) le16_to_cpu(v)
#define krp_le32_to_cpu(v) le32_to_cpu(v)
#define krp_le64_to_cpu(v) le64_to_cpu(v)

#else /* user space */

#ifdef __CHECKER__
#define KRP_FORCE __attribute__((force))
#else
#define KRP_FORCE
#endif

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define krp_swab16(v) (v)
#define krp_swab32(v) (v)
#define krp_swab64(v) (v)
#else
#define krp_swab16(v) __builtin_bswap16(v)
#define krp_swab32(v) __builtin_bswap32(v)
#define krp_swab64(v) __builtin_bswap64(v)
#endif

/** krp_cpu_to_le16() - Host order to little-endian, 16 bits. @v: value. Return: converted. */
static inline __le16 krp_cpu_to_le16(__u16 v)
{
	return (KRP_FORCE __le16)(__u16)krp_swab16(v);
}

/** krp_cpu_to_le32() - Host order to little-endian, 32 bits. @v: value. Return: converted. */
static inline __le32 krp_cpu_to_le32(__u32 v)
{
	return (KRP_FORCE __le32)(__u32)krp_swab32(v);
}

/** krp_cpu_to_le64() - Host order to little-endian, 64 bits. @v: value. Return: converted. */
static inline __le64 krp_cpu_to_le64(__u64 v)
{
	return (KRP_FORCE __le64)(__u64)krp_swab64(v);
}

/** krp_le16_to_cpu() - Little-endian to host order, 16 bits. @v: value. Return: converted. */
static inline __u16 krp_le16_to_cpu(__le16 v)
{
	return (__u16)krp_swab16((KRP_FORCE __u16)v);
}

/** krp_le32_to_cpu() - Little-endian to host order, 32 bits. @v: value. Return: converted. */
static inline __u32 krp_le32_to_cpu(__le32 v)
{
	return (__u32)krp_swab32((KRP_FORCE __u32)v);
}

/** krp_le64_to_cpu() - Little-endian to host order, 64 bits. @v: value. Return: converted. */
static inline __u64 krp_le64_to_cpu(__le64 v)
{
	return (__u64)krp_swab64((KRP_FORCE __u64)v);
}

#endif /* __KERNEL__ */
#endif /* KRP_ENDIAN_H */
