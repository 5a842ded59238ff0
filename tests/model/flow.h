/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: flow tables, groups and entries.
 */
#ifndef CX_FLOW_H
#define CX_FLOW_H

#include "obj.h"

#define CX_MATCH_BYTES 512
#define CX_MAX_DEST 16

/* types of tables */
enum {
	CX_FT_NIC_RX = 0x0,
	CX_FT_ESW_EGRESS_ACL = 0x2,
	CX_FT_SNIFFER_TX = 0x6,
};

/**
 * struct cx_flow_dest - A destination of a flow table's entry.
 * @type: MLX5_IFC_FLOW_DESTINATION_TYPE_TIR, _FLOW_TABLE; others are kept, and go nowhere.
 * @id: number of the TIR or flow table.
 */
struct cx_flow_dest {
	u8 type;
	u32 id;
};

/**
 * struct cx_fte - An entry of a flow table.
 * @group: number of its flow group.
 * @action: mask of MLX5_FLOW_CONTEXT_ACTION_.
 * @nr_dest: entries of @dest.
 * @dest: where frames go if @action is to forward.
 * @value: what a frame has to have under the group's mask, layout fte_match_param.
 */
struct cx_fte {
	u32 group;
	u16 action;
	u32 nr_dest;
	struct cx_flow_dest dest[CX_MAX_DEST];
	u8 value[CX_MATCH_BYTES];
};

/**
 * struct cx_flow_table - A flow table.
 * @obj: head; flow groups hold references.
 * @type: CX_FT_NIC_RX and others; nothing passes through others.
 * @size: number of entries it can have.
 * @miss: next table when nothing matches, 0 for none.
 * @entries: flow index -> struct cx_fte, owned.
 */
struct cx_flow_table {
	struct cx_obj obj;
	u8 type;
	u32 size;
	u32 miss;
	GTree *entries;
};

/**
 * struct cx_flow_group - A range of a flow table's entries, which match by the same mask.
 * @obj: head.
 * @table: flow table it is of; referenced.
 * @start: flow index of its first entry.
 * @end: flow index of its last entry.
 * @mask: bits that are compared, layout fte_match_param.
 */
struct cx_flow_group {
	struct cx_obj obj;
	struct cx_flow_table *table;
	u32 start;
	u32 end;
	u8 mask[CX_MATCH_BYTES];
};

#endif
