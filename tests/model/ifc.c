// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: the check of reserved bits and the print-out by name of a command's
 * input, both driven by the tables tools/gen_ifc.py makes. No state.
 */
#include "ifc.h"

s64 cx_ifc_reserved(const struct cx_ifc_layout *lay, const u8 *in, u32 len)
{
	u32 i, n = MIN(len, lay->bytes);

	for (i = 0; i < n; i++) {
		u8 bad = in[i] & ~lay->mask[i];

		if (bad)
			return i * 8 + clz32(bad) - 24;
	}
	return -1;
}

static void cx_ifc_print_wide(const struct cx_ifc_field *f, const u8 *in, GString *to)
{
	u32 i, first = 0, bytes = f->bits / 8;

	while (first < bytes && !in[f->off / 8 + first])
		first++;
	if (first == bytes)
		return;
	g_string_append_printf(to, " %s=", f->path);
	for (i = 0; i < bytes; i++)
		g_string_append_printf(to, "%02x", in[f->off / 8 + i]);
}

void cx_ifc_print(const struct cx_ifc_layout *lay, const u8 *in, u32 len, GString *to)
{
	u32 i;

	for (i = 0; i < lay->nr_fields; i++) {
		const struct cx_ifc_field *f = &lay->field[i];

		if (f->off + f->bits > len * 8)
			continue;
		if (f->bits > 32 || f->off % 32 + f->bits > 32) {
			cx_ifc_print_wide(f, in, to);
		} else {
			u32 v = cx_bits_get(in, f->off, f->bits);

			if (v)
				g_string_append_printf(to, " %s=0x%x", f->path, v);
		}
	}
	if (len > lay->bytes)
		g_string_append_printf(to, " tail_bytes=%u", len - lay->bytes);
}
