// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: the GID table (SET_ROCE_ADDRESS) and the network headers. A packet to
 * a GID that is not in the table of its receiver is dropped, as a RoCE port
 * does; an InfiniBand port has one. Runs under QEMU's big lock.
 */
#include "dev.h"

#define CX_GRH_UDP 17
#define CX_GRH_IBA 0x1b
#define CX_BTH_BYTES 12
#define CX_DETH_BYTES 8
#define CX_ICRC_BYTES 4
#define CX_UDP_BYTES 8

int cx_cmd_set_roce_address(struct cx_dev *dev, struct cx_cmd *cmd)
{
	const u8 *a = CX_ADDR(set_roce_address_in, cmd->in, roce_address);
	u32 i = CX_GET(set_roce_address_in, cmd->in, roce_address_index);
	struct cx_gid *g;

	if (!dev->eth)
		return cx_refuse(dev, cmd, CX_ST_BAD_OP, "not an Ethernet port");
	if (i >= CX_ROCE_ENTRIES)
		return cx_refuse(dev, cmd, CX_ST_BAD_INDEX, "GID index %u", i);
	if (CX_GET(roce_addr_layout, a, roce_version) != 0 &&
	    CX_GET(roce_addr_layout, a, roce_version) != 2)
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "RoCE version %u",
				 CX_GET(roce_addr_layout, a, roce_version));
	g = &dev->gid[i];
	memcpy(g->raw, a, sizeof(g->raw));
	memcpy(g->gid, a, 16);
	memcpy(g->mac, CX_ADDR(roce_addr_layout, a, source_mac_47_32), 6);
	g->version = CX_GET(roce_addr_layout, a, roce_version);
	g->ipv4 = g->version == 2 && !CX_GET(roce_addr_layout, a, roce_l3_type);
	g->valid = !buffer_is_zero(g->gid, 16);
	return 0;
}

int cx_cmd_query_roce_address(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u32 i = CX_GET(query_roce_address_in, cmd->in, roce_address_index);

	if (i >= CX_ROCE_ENTRIES)
		return cx_refuse(dev, cmd, CX_ST_BAD_INDEX, "GID index %u", i);
	memcpy(CX_ADDR(query_roce_address_out, cmd->out, roce_address), dev->gid[i].raw, 32);
	return 0;
}

const u8 *cx_gid_source(struct cx_dev *dev, u32 index, struct cx_pkt *pkt)
{
	const struct cx_gid *g;

	if (!dev->eth) {
		stq_be_p(pkt->sgid, CX_GID_PREFIX);
		stq_be_p(pkt->sgid + 8, dev->port.guid);
		pkt->l3 = CX_L3_ROCE_V1;
		return dev->port.mac;
	}
	g = index < CX_ROCE_ENTRIES ? &dev->gid[index] : NULL;
	if (!g || !g->valid)
		return NULL;
	memcpy(pkt->sgid, g->gid, 16);
	pkt->l3 = g->version != 2 ? CX_L3_ROCE_V1 : g->ipv4 ? CX_L3_IPV4 : CX_L3_IPV6;
	return g->mac;
}

bool cx_gid_has_mac(const struct cx_dev *dev, const u8 *mac)
{
	u32 i;

	for (i = 0; i < CX_ROCE_ENTRIES; i++) {
		if (dev->gid[i].valid && !memcmp(dev->gid[i].mac, mac, 6))
			return true;
	}
	return false;
}

/* RoCE v2 writes an IPv4 group as an IPv4-mapped address */
static bool cx_gid_is_multicast(const u8 *gid)
{
	static const u8 mapped[12] = { [10] = 0xff, [11] = 0xff };

	return gid[0] == 0xff || (!memcmp(gid, mapped, sizeof(mapped)) && gid[12] >> 4 == 0xe);
}

bool cx_gid_accept(struct cx_dev *dev, const struct cx_pkt *pkt)
{
	u32 i;

	if (cx_gid_is_multicast(pkt->dgid))
		return true;
	if (!dev->eth)
		return ldq_be_p(pkt->dgid) == CX_GID_PREFIX &&
		       ldq_be_p(pkt->dgid + 8) == dev->port.guid;
	for (i = 0; i < CX_ROCE_ENTRIES; i++) {
		const struct cx_gid *g = &dev->gid[i];
		u8 l3 = g->version != 2 ? CX_L3_ROCE_V1 : g->ipv4 ? CX_L3_IPV4 : CX_L3_IPV6;

		if (g->valid && l3 == pkt->l3 && !memcmp(g->gid, pkt->dgid, 16))
			return true;
	}
	return false;
}

static u16 cx_ip_checksum(const u8 *h)
{
	u32 sum = 0, i;

	for (i = 0; i < 20; i += 2)
		sum += lduw_be_p(h + i);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

void cx_grh_build(const struct cx_pkt *pkt, u8 *grh)
{
	u32 len = pkt->len + CX_BTH_BYTES + CX_DETH_BYTES + CX_ICRC_BYTES;
	u8 *h = grh + 20;

	memset(grh, 0, CX_GRH_BYTES);
	if (pkt->l3 == CX_L3_IPV4) {
		h[0] = 0x45;
		h[1] = pkt->tclass;
		stw_be_p(h + 2, 20 + CX_UDP_BYTES + len);
		stw_be_p(h + 6, 0x4000);
		h[8] = pkt->hop_limit;
		h[9] = CX_GRH_UDP;
		memcpy(h + 12, pkt->sgid + 12, 4);
		memcpy(h + 16, pkt->dgid + 12, 4);
		stw_be_p(h + 10, cx_ip_checksum(h));
		return;
	}
	stl_be_p(grh, 0x60000000 | (u32)pkt->tclass << 20 | pkt->flow_label);
	stw_be_p(grh + 4, len + (pkt->l3 == CX_L3_IPV6 ? CX_UDP_BYTES : 0));
	grh[6] = pkt->l3 == CX_L3_IPV6 ? CX_GRH_UDP : CX_GRH_IBA;
	grh[7] = pkt->hop_limit;
	memcpy(grh + 8, pkt->sgid, 16);
	memcpy(grh + 24, pkt->dgid, 16);
}
