/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: access to big-endian bit fields laid out as in linux/mlx5/mlx5_ifc.h,
 * where every bit is one u8 of a structure that is never instantiated.
 * The idea of the accessors is the kernel's MLX5_GET and MLX5_SET.
 */
#ifndef CX_IFC_H
#define CX_IFC_H

#include "types.h"
/* the kernel's macro for a flexible array inside a union */
#define DECLARE_FLEX_ARRAY(type, name) \
	struct { \
		struct { \
		} cx_empty_##name; \
		type name[]; \
	}
#include <linux/mlx5/mlx5_ifc.h>

#define CX_NUL(t) ((struct mlx5_ifc_##t##_bits *)0)
#define CX_OFF(t, f) ((u32)offsetof(struct mlx5_ifc_##t##_bits, f))
#define CX_BITS(t, f) ((u32)sizeof(CX_NUL(t)->f))
#define CX_SZ(t) ((u32)sizeof(struct mlx5_ifc_##t##_bits) / 8)

/* a field of at most 32 bits that does not cross a 32-bit word */
#define CX_GET(t, p, f) cx_bits_get(p, CX_OFF(t, f), CX_BITS(t, f))
#define CX_SET(t, p, f, v) cx_bits_set(p, CX_OFF(t, f), CX_BITS(t, f), v)
#define CX_GET64(t, p, f) ldq_be_p(CX_ADDR(t, p, f))
#define CX_SET64(t, p, f, v) stq_be_p(CX_ADDR(t, p, f), v)
#define CX_ADDR(t, p, f) ((u8 *)(p) + CX_OFF(t, f) / 8)

/**
 * cx_bits_get() - Read a field of a layout.
 * @p: the structure's bytes.
 * @off: bits before the field.
 * @bits: its width, 1 to 32; it does not cross a 32-bit word.
 *
 * Return: its value.
 */
static inline u32 cx_bits_get(const void *p, u32 off, u32 bits)
{
	u32 word = ldl_be_p((const u8 *)p + off / 32 * 4);

	return extract32(word, 32 - bits - off % 32, bits);
}

/**
 * cx_bits_set() - Write a field of a layout.
 * @p: the structure's bytes.
 * @off: bits before the field.
 * @bits: its width, 1 to 32; it does not cross a 32-bit word.
 * @val: value; what does not fit is cut off.
 */
static inline void cx_bits_set(void *p, u32 off, u32 bits, u32 val)
{
	u8 *at = (u8 *)p + off / 32 * 4;

	stl_be_p(at, deposit32(ldl_be_p(at), 32 - bits - off % 32, bits, val));
}

/**
 * struct cx_ifc_field - One named field of a command's input: offset and width in bits.
 * @path: name; with that of the structure before it, and a dot, if it is in one.
 * @off: bits before it.
 * @bits: width, also more than 32.
 */
struct cx_ifc_field {
	const char *path;
	u32 off;
	u32 bits;
};

/**
 * struct cx_ifc_layout - A command's input: named fields, mask of its not reserved bits, bytes.
 * @name: of the command, as in mlx5_ifc.h.
 * @field: named fields, in their order.
 * @nr_fields: entries of @field.
 * @mask: bits that are not reserved, @bytes bytes.
 * @bytes: length up to the first part of no fixed length.
 */
struct cx_ifc_layout {
	const char *name;
	const struct cx_ifc_field *field;
	u32 nr_fields;
	const u8 *mask;
	u32 bytes;
};

/**
 * cx_ifc_reserved() - Find the first reserved bit that is set.
 * @lay: layout of the input.
 * @in: input, @len bytes.
 * @len: length of @in in bytes.
 *
 * Return: bit offset of the first such bit, -1 if there is none.
 */
s64 cx_ifc_reserved(const struct cx_ifc_layout *lay, const u8 *in, u32 len);

/**
 * cx_ifc_print() - Append every field of an input that is not zero.
 * @lay: layout of the input.
 * @in: input, @len bytes.
 * @len: length of @in in bytes.
 * @to: string to append to.
 */
void cx_ifc_print(const struct cx_ifc_layout *lay, const u8 *in, u32 len, GString *to);

#endif
