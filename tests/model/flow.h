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
 */
struct cx_flow_dest {
	u8 type;
	u32 id;
};

/**
 * struct cx_fte - An entry of a flow table.
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
 */
struct cx_flow_table {
	struct cx_obj obj;
	u8 type;
	u32 size;
	u32 miss; /* next table when nothing matches, 0 for none */
	GTree *entries; /* flow index -> struct cx_fte */
};

/**
 * struct cx_flow_group - A range of a flow table's entries, which match by the same mask.
 */
struct cx_flow_group {
	struct cx_obj obj;
	struct cx_flow_table *table;
	u32 start;
	u32 end;
	u8 mask[CX_MATCH_BYTES];
};

#endif
