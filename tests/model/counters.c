// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: the counters and their JSON text. Operations are counted by opcode,
 * side and length: "ops": [{"op": "READ", "side": "requester", "bytes": 256,
 * "count": 1}]. Objects that there are now by kind: "objects": {"QP": 3, ...}.
 * Runs under QEMU's big lock.
 */
#include "dev.h"

static const char *const cx_counter_names[] = {
#define CX_COUNTER(id, name, help) #name,
#include "counters.def"
#undef CX_COUNTER
};

static guint cx_op_hash(gconstpointer p)
{
	const struct cx_op_count *o = p;

	return o->opcode * 31u + o->responder + o->bytes * 2654435761u;
}

static gboolean cx_op_equal(gconstpointer a, gconstpointer b)
{
	const struct cx_op_count *x = a, *y = b;

	return x->opcode == y->opcode && x->responder == y->responder && x->bytes == y->bytes;
}

void cx_counters_init(struct cx_dev *dev)
{
	dev->ctr.ops = g_hash_table_new_full(cx_op_hash, cx_op_equal, g_free, NULL);
}

void cx_counters_fini(struct cx_dev *dev)
{
	if (dev->ctr.ops)
		g_hash_table_destroy(dev->ctr.ops);
	dev->ctr.ops = NULL;
}

void cx_count(struct cx_dev *dev, enum cx_counter ctr, u64 add)
{
	dev->ctr.val[ctr] += add;
}

void cx_count_op(struct cx_dev *dev, u8 opcode, bool responder, u32 bytes)
{
	struct cx_op_count key = { .opcode = opcode, .responder = responder, .bytes = bytes };
	struct cx_op_count *o = g_hash_table_lookup(dev->ctr.ops, &key);

	if (!o) {
		o = g_new0(struct cx_op_count, 1);
		*o = key;
		g_hash_table_add(dev->ctr.ops, o);
	}
	o->nr++;
}

static void cx_objects_text(struct cx_dev *dev, GString *s)
{
	u32 count[CX_NR_KINDS], kind;

	cx_obj_count(dev, count);
	g_string_append(s, "\"objects\": {");
	for (kind = CX_K_PD; kind < CX_NR_KINDS; kind++)
		g_string_append_printf(s, "%s\"%s\": %u", kind == CX_K_PD ? "" : ", ",
				       cx_kind_name(kind), count[kind]);
	g_string_append(s, "}");
}

char *cx_counters_text(struct cx_dev *dev)
{
	GString *s = g_string_new("{");
	const char *sep = "";
	GHashTableIter it;
	gpointer key;
	u32 i;

	for (i = 0; i < CX_NR_COUNTERS; i++)
		g_string_append_printf(s, "%s\"%s\": %" PRIu64, i ? ", " : "", cx_counter_names[i],
				       dev->ctr.val[i]);
	g_string_append(s, ", ");
	cx_objects_text(dev, s);
	g_string_append(s, ", \"ops\": [");
	g_hash_table_iter_init(&it, dev->ctr.ops);
	while (g_hash_table_iter_next(&it, &key, NULL)) {
		const struct cx_op_count *o = key;

		g_string_append_printf(s,
				       "%s{\"op\": \"%s\", \"side\": \"%s\", \"bytes\": %u, "
				       "\"count\": %" PRIu64 "}",
				       sep, cx_wqe_opname(o->opcode),
				       o->responder ? "responder" : "requester", o->bytes, o->nr);
		sep = ", ";
	}
	g_string_append(s, "]}");
	return g_string_free(s, FALSE);
}

int cx_counters_save(struct cx_dev *dev, const char *path)
{
	g_autofree char *text = cx_counters_text(dev);

	return g_file_set_contents(path, text, -1, NULL) ? 0 : -EIO;
}
