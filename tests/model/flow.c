// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: flow steering of received Ethernet frames. A frame is turned into the
 * match parameter layout once; an entry matches if it has the entry's value
 * under the mask of its group. Entries are tried in the order of their index;
 * the first that matches decides. Tables of other types are kept but not
 * interpreted: nothing passes through them. Runs under QEMU's big lock.
 */
#include "dev.h"

#define CX_FLOW_MAX_HOPS 64
#define CX_ETH_HDR 14

/* ---- the frame as match parameters */

static void cx_match_l4(u8 *o, const u8 *l4, u32 left, u8 proto)
{
	if (proto == 6 && left >= 14) {
		CX_SET(fte_match_set_lyr_2_4, o, tcp_sport, lduw_be_p(l4));
		CX_SET(fte_match_set_lyr_2_4, o, tcp_dport, lduw_be_p(l4 + 2));
		CX_SET(fte_match_set_lyr_2_4, o, tcp_flags, lduw_be_p(l4 + 12) & 0x1ff);
	} else if (proto == 17 && left >= 8) {
		CX_SET(fte_match_set_lyr_2_4, o, udp_sport, lduw_be_p(l4));
		CX_SET(fte_match_set_lyr_2_4, o, udp_dport, lduw_be_p(l4 + 2));
	}
}

static u32 cx_flow_hash(const u8 *p, u32 len, u32 hash)
{
	while (len--)
		hash = (hash ^ *p++) * 16777619u;
	return hash;
}

static void cx_match_ip(u8 *o, const u8 *ip, u32 left, struct cx_frame_info *info)
{
	u8 *src = CX_ADDR(fte_match_set_lyr_2_4, o, src_ipv4_src_ipv6);
	u8 *dst = CX_ADDR(fte_match_set_lyr_2_4, o, dst_ipv4_dst_ipv6);
	u32 l4 = 40;
	u8 tos;

	if (info->ethertype == 0x0800 && left >= 20 && ip[0] >> 4 == 4) {
		info->ip_version = 4;
		info->ip_protocol = ip[9];
		info->fragment = lduw_be_p(ip + 6) & 0x3fff;
		tos = ip[1];
		memcpy(src + 12, ip + 12, 4);
		memcpy(dst + 12, ip + 16, 4);
		l4 = (ip[0] & 15) * 4;
	} else if (info->ethertype == 0x86dd && left >= 40 && ip[0] >> 4 == 6) {
		info->ip_version = 6;
		info->ip_protocol = ip[6];
		tos = lduw_be_p(ip) >> 4;
		memcpy(src, ip + 8, 16);
		memcpy(dst, ip + 24, 16);
	} else {
		return;
	}
	CX_SET(fte_match_set_lyr_2_4, o, ip_version, info->ip_version);
	CX_SET(fte_match_set_lyr_2_4, o, ip_protocol, info->ip_protocol);
	CX_SET(fte_match_set_lyr_2_4, o, ip_dscp, tos >> 2);
	CX_SET(fte_match_set_lyr_2_4, o, ip_ecn, tos & 3);
	CX_SET(fte_match_set_lyr_2_4, o, frag, info->fragment);
	info->hash = cx_flow_hash(src, 32, 2166136261u);
	if (l4 < left && !info->fragment) {
		cx_match_l4(o, ip + l4, left - l4, info->ip_protocol);
		if (left - l4 >= 4 && (info->ip_protocol == 6 || info->ip_protocol == 17))
			info->hash = cx_flow_hash(ip + l4, 4, info->hash);
	}
}

static void cx_match_fill(u8 *m, const u8 *frame, u32 len, struct cx_frame_info *info)
{
	u8 *o = CX_ADDR(fte_match_param, m, outer_headers);
	u32 l3 = CX_ETH_HDR;
	u16 tag;

	memset(info, 0, sizeof(*info));
	info->ethertype = lduw_be_p(frame + 12);
	CX_SET(fte_match_set_lyr_2_4, o, dmac_47_16, ldl_be_p(frame));
	CX_SET(fte_match_set_lyr_2_4, o, dmac_15_0, lduw_be_p(frame + 4));
	CX_SET(fte_match_set_lyr_2_4, o, smac_47_16, ldl_be_p(frame + 6));
	CX_SET(fte_match_set_lyr_2_4, o, smac_15_0, lduw_be_p(frame + 10));
	if (info->ethertype == 0x8100 && len >= CX_ETH_HDR + 4) {
		tag = lduw_be_p(frame + 14);
		CX_SET(fte_match_set_lyr_2_4, o, cvlan_tag, 1);
		CX_SET(fte_match_set_lyr_2_4, o, first_prio, tag >> 13);
		CX_SET(fte_match_set_lyr_2_4, o, first_vid, tag & 0xfff);
		info->ethertype = lduw_be_p(frame + 16);
		l3 += 4;
	}
	CX_SET(fte_match_set_lyr_2_4, o, ethertype, info->ethertype);
	cx_match_ip(o, frame + l3, len - l3, info);
}

/* ---- look-up */

struct cx_flow_search {
	struct cx_dev *dev;
	const u8 *match;
	const struct cx_fte *found;
};

static gboolean cx_fte_try(gpointer key, gpointer value, gpointer opaque)
{
	struct cx_flow_search *s = opaque;
	const struct cx_fte *e = value;
	struct cx_flow_group *g = cx_obj_find(s->dev, CX_SP_GROUP, e->group, CX_K_GROUP);
	u32 i;

	if (!g)
		return FALSE;
	for (i = 0; i < CX_MATCH_BYTES; i++) {
		if ((s->match[i] ^ e->value[i]) & g->mask[i])
			return FALSE;
	}
	s->found = e;
	return TRUE;
}

static u32 cx_fte_apply(const struct cx_fte *e, struct cx_flow_verdict *v)
{
	u32 next = 0, i;

	if (e->action & MLX5_FLOW_CONTEXT_ACTION_DROP ||
	    !(e->action & MLX5_FLOW_CONTEXT_ACTION_FWD_DEST))
		return 0;
	for (i = 0; i < e->nr_dest; i++) {
		if (e->dest[i].type == MLX5_IFC_FLOW_DESTINATION_TYPE_TIR) {
			if (v->nr < ARRAY_SIZE(v->tirn))
				v->tirn[v->nr++] = e->dest[i].id;
		} else if (e->dest[i].type == MLX5_IFC_FLOW_DESTINATION_TYPE_FLOW_TABLE) {
			next = e->dest[i].id;
		}
	}
	return next;
}

void cx_flow_lookup(struct cx_dev *dev, const u8 *frame, u32 len, struct cx_frame_info *info,
		    struct cx_flow_verdict *v)
{
	u8 match[CX_MATCH_BYTES] = { 0 };
	struct cx_flow_search s = { .dev = dev, .match = match };
	u32 id = dev->flow_root, hops;
	struct cx_flow_table *t;

	cx_match_fill(match, frame, len, info);
	for (hops = 0; id && hops < CX_FLOW_MAX_HOPS; hops++) {
		t = cx_obj_find(dev, CX_SP_TABLE, id, CX_K_TABLE);
		if (!t || t->type != CX_FT_NIC_RX)
			return;
		s.found = NULL;
		g_tree_foreach(t->entries, cx_fte_try, &s);
		id = s.found ? cx_fte_apply(s.found, v) : t->miss;
	}
}

/* ---- tables */

static gint cx_index_compare(gconstpointer a, gconstpointer b, gpointer opaque)
{
	u32 x = GPOINTER_TO_UINT(a), y = GPOINTER_TO_UINT(b);

	return x < y ? -1 : x > y;
}

static void cx_table_release(struct cx_dev *dev, struct cx_obj *obj)
{
	struct cx_flow_table *t = container_of(obj, struct cx_flow_table, obj);

	if (dev->flow_root == obj->id)
		dev->flow_root = 0;
	g_tree_destroy(t->entries);
	g_free(t);
}

static struct cx_flow_table *cx_table_of(struct cx_dev *dev, struct cx_cmd *cmd, u32 id)
{
	struct cx_flow_table *t = cx_obj_find(dev, CX_SP_TABLE, id, CX_K_TABLE);

	if (!t)
		cx_refuse(dev, cmd, CX_ST_BAD_RES, "flow table 0x%x does not exist", id);
	return t;
}

static int cx_table_set_miss(struct cx_dev *dev, struct cx_cmd *cmd, struct cx_flow_table *t,
			     const u8 *c)
{
	u32 miss = CX_GET(flow_table_context, c, table_miss_id);

	if (CX_GET(flow_table_context, c, table_miss_action) != MLX5_FLOW_TABLE_MISS_ACTION_FWD) {
		t->miss = 0;
		return 0;
	}
	if (!cx_table_of(dev, cmd, miss))
		return -1;
	t->miss = miss;
	return 0;
}

int cx_cmd_create_flow_table(struct cx_dev *dev, struct cx_cmd *cmd)
{
	const u8 *c = CX_ADDR(create_flow_table_in, cmd->in, flow_table_context);
	struct cx_flow_table *t = g_new0(struct cx_flow_table, 1);

	t->type = CX_GET(create_flow_table_in, cmd->in, table_type);
	t->size = 1u << CX_GET(flow_table_context, c, log_size);
	t->obj.release = cx_table_release;
	if (cx_table_set_miss(dev, cmd, t, c) ||
	    cx_obj_add(dev, CX_SP_TABLE, CX_K_TABLE, &t->obj)) {
		g_free(t);
		return cmd->status ? -1 : cx_refuse(dev, cmd, CX_ST_NO_RES, "no free flow table");
	}
	t->entries = g_tree_new_full(cx_index_compare, NULL, NULL, g_free);
	CX_SET(create_flow_table_out, cmd->out, table_id, t->obj.id);
	return 0;
}

int cx_cmd_modify_flow_table(struct cx_dev *dev, struct cx_cmd *cmd)
{
	struct cx_flow_table *t =
		cx_table_of(dev, cmd, CX_GET(modify_flow_table_in, cmd->in, table_id));

	if (!t)
		return -1;
	if (!(CX_GET(modify_flow_table_in, cmd->in, modify_field_select) & 1))
		return 0;
	return cx_table_set_miss(dev, cmd, t,
				 CX_ADDR(modify_flow_table_in, cmd->in, flow_table_context));
}

int cx_cmd_destroy_flow_table(struct cx_dev *dev, struct cx_cmd *cmd)
{
	struct cx_flow_table *t =
		cx_table_of(dev, cmd, CX_GET(destroy_flow_table_in, cmd->in, table_id));

	if (!t)
		return -1;
	if (t->obj.refs)
		return cx_refuse(dev, cmd, CX_ST_BUSY, "flow table 0x%x has %u groups", t->obj.id,
				 t->obj.refs);
	cx_obj_del(dev, &t->obj);
	return 0;
}

int cx_cmd_set_flow_root(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u32 id = CX_GET(set_flow_table_root_in, cmd->in, table_id);
	struct cx_flow_table *t;

	if (cmd->op_mod == 1) { /* disconnect */
		if (dev->flow_root == id)
			dev->flow_root = 0;
		return 0;
	}
	t = cx_table_of(dev, cmd, id);
	if (!t)
		return -1;
	if (t->type != CX_GET(set_flow_table_root_in, cmd->in, table_type))
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "flow table 0x%x is of type %u", id,
				 t->type);
	if (t->type == CX_FT_NIC_RX)
		dev->flow_root = id;
	return 0;
}

/* ---- groups */

static void cx_group_release(struct cx_dev *dev, struct cx_obj *obj)
{
	struct cx_flow_group *g = container_of(obj, struct cx_flow_group, obj);

	cx_obj_put(&g->table->obj);
	g_free(g);
}

int cx_cmd_create_flow_group(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u32 start = CX_GET(create_flow_group_in, cmd->in, start_flow_index);
	u32 end = CX_GET(create_flow_group_in, cmd->in, end_flow_index);
	struct cx_flow_table *t =
		cx_table_of(dev, cmd, CX_GET(create_flow_group_in, cmd->in, table_id));
	struct cx_flow_group *g;

	if (!t)
		return -1;
	if (start > end || end >= t->size)
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "entries %u to %u of %u", start, end,
				 t->size);
	g = g_new0(struct cx_flow_group, 1);
	g->table = t;
	g->start = start;
	g->end = end;
	memcpy(g->mask, CX_ADDR(create_flow_group_in, cmd->in, match_criteria),
	       MIN(sizeof(g->mask), CX_SZ(fte_match_param)));
	g->obj.release = cx_group_release;
	cx_obj_get(&t->obj);
	if (cx_obj_add(dev, CX_SP_GROUP, CX_K_GROUP, &g->obj)) {
		cx_group_release(dev, &g->obj);
		return cx_refuse(dev, cmd, CX_ST_NO_RES, "no free flow group");
	}
	CX_SET(create_flow_group_out, cmd->out, group_id, g->obj.id);
	return 0;
}

int cx_cmd_destroy_flow_group(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u32 id = CX_GET(destroy_flow_group_in, cmd->in, group_id);
	struct cx_flow_group *g = cx_obj_find(dev, CX_SP_GROUP, id, CX_K_GROUP);

	if (!g)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "flow group 0x%x does not exist", id);
	cx_obj_del(dev, &g->obj);
	return 0;
}

/* ---- entries */

static int cx_fte_dests(struct cx_dev *dev, struct cx_cmd *cmd, struct cx_fte *e, const u8 *c)
{
	const u8 *d = CX_ADDR(flow_context, c, destination);
	u32 i;

	e->nr_dest = CX_GET(flow_context, c, destination_list_size);
	if (e->nr_dest > CX_MAX_DEST || d + 8 * e->nr_dest > cmd->in + cmd->inlen)
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "%u destinations", e->nr_dest);
	for (i = 0; i < e->nr_dest; i++, d += 8) {
		u8 type = CX_GET(dest_format_struct, d, destination_type);
		u32 id = CX_GET(dest_format_struct, d, destination_id);

		e->dest[i] = (struct cx_flow_dest){ .type = type, .id = id };
		if (type == MLX5_IFC_FLOW_DESTINATION_TYPE_TIR &&
		    !cx_obj_find(dev, CX_SP_TIR, id, CX_K_TIR))
			return cx_refuse(dev, cmd, CX_ST_BAD_RES, "TIR 0x%x does not exist", id);
		if (type == MLX5_IFC_FLOW_DESTINATION_TYPE_FLOW_TABLE && !cx_table_of(dev, cmd, id))
			return -1;
	}
	return 0;
}

int cx_cmd_set_fte(struct cx_dev *dev, struct cx_cmd *cmd)
{
	const u8 *c = CX_ADDR(set_fte_in, cmd->in, flow_context);
	struct cx_flow_table *t = cx_table_of(dev, cmd, CX_GET(set_fte_in, cmd->in, table_id));
	u32 index = CX_GET(set_fte_in, cmd->in, flow_index);
	u32 id = CX_GET(flow_context, c, group_id);
	struct cx_flow_group *g = cx_obj_find(dev, CX_SP_GROUP, id, CX_K_GROUP);
	struct cx_fte *e;

	if (!t)
		return -1;
	if (!g || g->table != t)
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "flow group 0x%x is not of the table",
				 id);
	if (index < g->start || index > g->end)
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "entry %u is not of the group", index);
	e = g_new0(struct cx_fte, 1);
	e->group = id;
	e->action = CX_GET(flow_context, c, action);
	memcpy(e->value, CX_ADDR(flow_context, c, match_value),
	       MIN(sizeof(e->value), CX_SZ(fte_match_param)));
	if (cx_fte_dests(dev, cmd, e, c)) {
		g_free(e);
		return -1;
	}
	g_tree_replace(t->entries, GUINT_TO_POINTER(index), e);
	return 0;
}

int cx_cmd_delete_fte(struct cx_dev *dev, struct cx_cmd *cmd)
{
	struct cx_flow_table *t = cx_table_of(dev, cmd, CX_GET(delete_fte_in, cmd->in, table_id));
	u32 index = CX_GET(delete_fte_in, cmd->in, flow_index);

	if (!t)
		return -1;
	if (!g_tree_remove(t->entries, GUINT_TO_POINTER(index)))
		return cx_refuse(dev, cmd, CX_ST_BAD_RES, "entry %u does not exist", index);
	return 0;
}
