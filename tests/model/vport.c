// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: the vport commands: state, Ethernet and InfiniBand context, GID and
 * P_Key table, traffic counters; and which requests the port lets through.
 * Runs under QEMU's big lock.
 */
#include "dev.h"
#include "qemu/cutils.h"

#define CX_IB_PORT_ACTIVE 4
#define CX_IB_PORT_DOWN 1
#define CX_IB_PHYS_LINK_UP 5
#define CX_IB_PHYS_POLLING 2
/* no SM, automatic migration no, CM supported, client reregister, ... */
#define CX_IB_CAP_MASK 0x02514868
#define CX_PKEY_FULL 0x8000 /* of the partition's full members; others reach these alone */

int cx_cmd_query_vport_state(struct cx_dev *dev, struct cx_cmd *cmd)
{
	CX_SET(query_vport_state_out, cmd->out, admin_state, dev->port.admin_up);
	CX_SET(query_vport_state_out, cmd->out, state, cx_port_up(dev));
	return 0;
}

int cx_cmd_modify_vport_state(struct cx_dev *dev, struct cx_cmd *cmd)
{
	/* the port follows PAOS; a vport of its own would need an e-switch */
	return 0;
}

int cx_cmd_query_nic_vport(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u8 *c = CX_ADDR(query_nic_vport_context_out, cmd->out, nic_vport_context);
	u32 type = CX_GET(query_nic_vport_context_in, cmd->in, allowed_list_type);
	struct cx_port *p = &dev->port;
	u8 *list = CX_ADDR(nic_vport_context, c, current_uc_mac_address);
	u32 i;

	CX_SET(nic_vport_context, c, mtu, p->vport_mtu);
	CX_SET(nic_vport_context, c, roce_en, p->roce_en);
	CX_SET(nic_vport_context, c, arm_change_event, p->arm_change);
	CX_SET(nic_vport_context, c, promisc_uc, p->promisc >> 2 & 1);
	CX_SET(nic_vport_context, c, promisc_mc, p->promisc >> 1 & 1);
	CX_SET(nic_vport_context, c, promisc_all, p->promisc & 1);
	memcpy(CX_ADDR(nic_vport_context, c, permanent_address) + 2, p->mac, 6);
	CX_SET64(nic_vport_context, c, port_guid, p->guid);
	CX_SET64(nic_vport_context, c, node_guid, p->guid);
	CX_SET64(nic_vport_context, c, system_image_guid, p->guid);
	CX_SET(nic_vport_context, c, allowed_list_type, type);
	if (type == 1) {
		CX_SET(nic_vport_context, c, allowed_list_size, p->nr_mc);
		for (i = 0; i < p->nr_mc; i++)
			memcpy(list + 8 * i + 2, p->mc[i], 6);
	}
	return 0;
}

static int cx_vport_set_list(struct cx_dev *dev, struct cx_cmd *cmd, const u8 *c)
{
	u32 type = CX_GET(nic_vport_context, c, allowed_list_type);
	u32 nr = CX_GET(nic_vport_context, c, allowed_list_size), i;
	u32 off = (CX_OFF(modify_nic_vport_context_in, nic_vport_context) +
		   CX_OFF(nic_vport_context, current_uc_mac_address)) /
		  8;

	if (nr > ARRAY_SIZE(dev->port.mc) || off + 8 * nr > cmd->inlen)
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "list of %u addresses", nr);
	if (type != 1)
		return 0;
	for (i = 0; i < nr; i++)
		memcpy(dev->port.mc[i], cmd->in + off + 8 * i + 2, 6);
	dev->port.nr_mc = nr;
	return 0;
}

int cx_cmd_modify_nic_vport(struct cx_dev *dev, struct cx_cmd *cmd)
{
	const u8 *c = CX_ADDR(modify_nic_vport_context_in, cmd->in, nic_vport_context);
	const u8 *sel = CX_ADDR(modify_nic_vport_context_in, cmd->in, field_select);
	struct cx_port *p = &dev->port;

	if (CX_GET(modify_nic_vport_field_select, sel, addresses_list) &&
	    cx_vport_set_list(dev, cmd, c))
		return -1;
	if (CX_GET(modify_nic_vport_field_select, sel, mtu))
		p->vport_mtu = CX_GET(nic_vport_context, c, mtu);
	if (CX_GET(modify_nic_vport_field_select, sel, roce_en))
		p->roce_en = CX_GET(nic_vport_context, c, roce_en);
	if (CX_GET(modify_nic_vport_field_select, sel, change_event))
		p->arm_change = CX_GET(nic_vport_context, c, arm_change_event);
	if (CX_GET(modify_nic_vport_field_select, sel, promisc))
		p->promisc = CX_GET(nic_vport_context, c, promisc_uc) << 2 |
			     CX_GET(nic_vport_context, c, promisc_mc) << 1 |
			     CX_GET(nic_vport_context, c, promisc_all);
	if (CX_GET(modify_nic_vport_field_select, sel, permanent_address)) {
		memcpy(p->mac, CX_ADDR(nic_vport_context, c, permanent_address) + 2, 6);
		cx_event_vport(dev);
	}
	return 0;
}

int cx_cmd_query_hca_vport(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u8 *c = CX_ADDR(query_hca_vport_context_out, cmd->out, hca_vport_context);
	bool up = cx_port_up(dev);

	CX_SET(hca_vport_context, c, vport_state, up ? CX_IB_PORT_ACTIVE : CX_IB_PORT_DOWN);
	CX_SET(hca_vport_context, c, port_state, up ? CX_IB_PORT_ACTIVE : CX_IB_PORT_DOWN);
	CX_SET(hca_vport_context, c, port_physical_state,
	       up ? CX_IB_PHYS_LINK_UP : CX_IB_PHYS_POLLING);
	CX_SET64(hca_vport_context, c, port_guid, dev->port.guid);
	CX_SET64(hca_vport_context, c, node_guid, dev->port.guid);
	CX_SET64(hca_vport_context, c, system_image_guid, dev->port.guid);
	CX_SET(hca_vport_context, c, lid, dev->port.lid);
	CX_SET(hca_vport_context, c, sm_lid, 1);
	CX_SET(hca_vport_context, c, has_smi, !dev->prop.vf);
	CX_SET(hca_vport_context, c, grh_required, dev->prop.grh_required);
	CX_SET(hca_vport_context, c, cap_mask1, CX_IB_CAP_MASK);
	return 0;
}

int cx_cmd_query_hca_vport_gid(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u8 *gid = CX_ADDR(query_hca_vport_gid_out, cmd->out, gid);

	CX_SET(query_hca_vport_gid_out, cmd->out, gids_num, 1);
	stq_be_p(gid, CX_GID_PREFIX);
	stq_be_p(gid + 8, dev->port.guid);
	return 0;
}

int cx_port_set_pkeys(struct cx_dev *dev, const char *keys)
{
	g_auto(GStrv) word = g_strsplit(keys, ":", 0);
	u16 table[CX_NR_PKEYS] = { 0 };
	unsigned int key, i;

	for (i = 0; word[i]; i++) {
		if (i == CX_NR_PKEYS || qemu_strtoui(word[i], NULL, 16, &key) || key > 0xffff)
			return -EINVAL;
		table[i] = key;
	}
	if (!i)
		return -EINVAL;
	memcpy(dev->port.pkey, table, sizeof(table));
	return 0;
}

u16 cx_port_pkey(const struct cx_dev *dev, u32 index)
{
	return index < CX_NR_PKEYS ? dev->port.pkey[index] : 0;
}

/* InfiniBand specification, vol. 1, chapter 10.9 */
static bool cx_pkey_matches(u16 a, u16 b)
{
	return a & ~CX_PKEY_FULL && !((a ^ b) & ~CX_PKEY_FULL) && (a | b) & CX_PKEY_FULL;
}

bool cx_port_admits(struct cx_dev *dev, u32 pkey_index, const struct cx_pkt *p)
{
	u32 end = pkey_index == CX_PKEY_INDEX_ANY ? CX_NR_PKEYS : pkey_index + 1, i;

	if (dev->prop.grh_required && !(p->flags & CX_PF_GRH)) {
		cx_count(dev, CX_CTR_RX_NO_GRH, 1);
		cx_trace(dev, CX_TR_REFUSE, "queue 0x%x: no GRH on a port that requires it",
			 p->dqpn);
		return false;
	}
	for (i = pkey_index == CX_PKEY_INDEX_ANY ? 0 : pkey_index; i < end; i++) {
		if (cx_pkey_matches(cx_port_pkey(dev, i), p->pkey))
			return true;
	}
	cx_count(dev, CX_CTR_RX_BAD_PKEY, 1);
	cx_trace(dev, CX_TR_REFUSE, "queue 0x%x: P_Key 0x%x, its own is number %u", p->dqpn,
		 p->pkey, pkey_index);
	return false;
}

int cx_cmd_query_hca_vport_pkey(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u32 index = CX_GET(query_hca_vport_pkey_in, cmd->in, pkey_index);
	u32 off = CX_OFF(query_hca_vport_pkey_out, pkey) / 8;
	u32 end = index == CX_PKEY_INDEX_ALL ? CX_NR_PKEYS : index + 1;

	if (index == CX_PKEY_INDEX_ALL)
		index = 0;
	if (index >= CX_NR_PKEYS)
		return cx_refuse(dev, cmd, CX_ST_BAD_INDEX, "P_Key index %u", index);
	for (; index < end && off + CX_SZ(pkey) <= cmd->outlen; index++) {
		CX_SET(pkey, cmd->out + off, pkey, cx_port_pkey(dev, index));
		off += CX_SZ(pkey);
	}
	return 0;
}

static void cx_traffic(u8 *t, u64 packets, u64 octets)
{
	CX_SET64(traffic_counter, t, packets, packets);
	CX_SET64(traffic_counter, t, octets, octets);
}

int cx_cmd_query_vport_counter(struct cx_dev *dev, struct cx_cmd *cmd)
{
	const u64 *v = dev->ctr.val;
	u8 *out = cmd->out;

	cx_traffic(CX_ADDR(query_vport_counter_out, out, received_eth_unicast), v[CX_CTR_ETH_RX],
		   v[CX_CTR_ETH_RX_BYTES]);
	cx_traffic(CX_ADDR(query_vport_counter_out, out, transmitted_eth_unicast), v[CX_CTR_ETH_TX],
		   v[CX_CTR_ETH_TX_BYTES]);
	cx_traffic(CX_ADDR(query_vport_counter_out, out, received_ib_unicast), v[CX_CTR_RX_PACKETS],
		   v[CX_CTR_RX_BYTES] - v[CX_CTR_ETH_RX_BYTES]);
	cx_traffic(CX_ADDR(query_vport_counter_out, out, transmitted_ib_unicast),
		   v[CX_CTR_TX_PACKETS], v[CX_CTR_TX_BYTES] - v[CX_CTR_ETH_TX_BYTES]);
	return 0;
}

int cx_cmd_query_vnic_env(struct cx_dev *dev, struct cx_cmd *cmd)
{
	return 0;
}

/*
 * Management datagrams by command. With the vport commands above the drivers
 * need little: of the performance class the information about the class, all
 * else is answered "attribute not supported".
 */
#define CX_MAD_CLASS_PERF 0x04
#define CX_MAD_CLASS_PORT_INFO 0x0001
#define CX_MAD_RESPONSE 0x80
#define CX_MAD_UNSUPPORTED 0x000c

int cx_cmd_mad_ifc(struct cx_dev *dev, struct cx_cmd *cmd)
{
	const u8 *mad = CX_ADDR(mad_ifc_in, cmd->in, mad);
	u8 *out = CX_ADDR(mad_ifc_out, cmd->out, response_mad_packet);

	memcpy(out, mad, 256);
	out[3] |= CX_MAD_RESPONSE;
	memset(out + 64, 0, 192);
	if (mad[1] != CX_MAD_CLASS_PERF || lduw_be_p(mad + 16) != CX_MAD_CLASS_PORT_INFO)
		stw_be_p(out + 4, CX_MAD_UNSUPPORTED);
	return 0;
}
