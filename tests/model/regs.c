// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: the port and its registers (ACCESS_REG). The link is up when the
 * outside has it up (property link_up) and the driver wants it up (PAOS); a
 * change is told by PORT_CHANGE. What a virtual function writes to PAOS and
 * PMTU changes nothing: its driver does so without asking what it is, and the
 * port is the PF's. Runs under QEMU's big lock.
 */
#include "dev.h"

#define CX_ETH_PROTO_100G_CR4 (1u << 20)

void cx_port_init(struct cx_dev *dev)
{
	struct cx_port *p = &dev->port;

	memcpy(p->mac, dev->prop.mac.a, 6);
	p->lid = dev->prop.lid;
	p->guid = CX_GUID_PREFIX | dev->prop.node;
	p->cable = true;
	p->admin_up = true;
	p->active = true;
	p->mtu = dev->eth ? 1544 : 4096;
	p->vport_mtu = 1500;
	p->roce_en = dev->eth;
}

bool cx_port_up(const struct cx_dev *dev)
{
	return dev->port.cable && dev->port.admin_up;
}

void cx_port_update(struct cx_dev *dev)
{
	bool up = cx_port_up(dev);

	if (up == dev->port.active)
		return;
	dev->port.active = up;
	cx_event_port(dev, up ? CX_PORT_ACTIVE : CX_PORT_DOWN);
}

static void cx_reg_pmtu(struct cx_dev *dev, u8 *reg, bool write)
{
	if (write && CX_GET(pmtu_reg, reg, admin_mtu))
		dev->port.mtu = CX_GET(pmtu_reg, reg, admin_mtu);
	CX_SET(pmtu_reg, reg, max_mtu, dev->eth ? 9978 : 4096);
	CX_SET(pmtu_reg, reg, admin_mtu, dev->port.mtu);
	CX_SET(pmtu_reg, reg, oper_mtu, dev->port.mtu);
}

static void cx_reg_ptys(struct cx_dev *dev, u8 *reg)
{
	bool up = cx_port_up(dev);

	CX_SET(ptys_reg, reg, ib_link_width_oper, up ? 2 : 0); /* 4x */
	CX_SET(ptys_reg, reg, ib_proto_oper, up ? 0x20 : 0); /* EDR */
	CX_SET(ptys_reg, reg, eth_proto_capability, CX_ETH_PROTO_100G_CR4);
	CX_SET(ptys_reg, reg, eth_proto_admin, CX_ETH_PROTO_100G_CR4);
	CX_SET(ptys_reg, reg, eth_proto_oper, up ? CX_ETH_PROTO_100G_CR4 : 0);
}

static void cx_reg_paos(struct cx_dev *dev, u8 *reg, bool write)
{
	if (write && CX_GET(paos_reg, reg, ase)) {
		dev->port.admin_up = CX_GET(paos_reg, reg, admin_status) == 1;
		cx_port_update(dev);
	}
	CX_SET(paos_reg, reg, admin_status, dev->port.admin_up ? 1 : 2);
	CX_SET(paos_reg, reg, oper_status, cx_port_up(dev) ? 1 : 2);
}

static void cx_reg_pfcc(struct cx_dev *dev, u8 *reg, bool write)
{
	struct cx_port *p = &dev->port;

	if (write) {
		p->pause_tx = CX_GET(pfcc_reg, reg, pptx);
		p->pause_rx = CX_GET(pfcc_reg, reg, pprx);
	}
	CX_SET(pfcc_reg, reg, pptx, p->pause_tx);
	CX_SET(pfcc_reg, reg, pprx, p->pause_rx);
}

static void cx_reg_ppcnt(struct cx_dev *dev, u8 *reg)
{
	u8 *set = CX_ADDR(ppcnt_reg, reg, counter_set);
	const u64 *val = dev->ctr.val;

	if (CX_GET(ppcnt_reg, reg, grp) != 0) /* IEEE 802.3 */
		return;
	stq_be_p(set, val[CX_CTR_TX_FRAMES]);
	stq_be_p(set + 8, val[CX_CTR_RX_FRAMES]);
	stq_be_p(set + 32, val[CX_CTR_TX_BYTES]);
	stq_be_p(set + 40, val[CX_CTR_RX_BYTES]);
}

int cx_cmd_access_reg(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u32 id = CX_GET(access_register_in, cmd->in, register_id);
	bool write = cmd->op_mod != CX_ACCESS_READ;
	u8 *reg = cmd->out + 16;

	if (MIN(cmd->outlen, cmd->inlen) < 16)
		return cx_refuse(dev, cmd, cmd->outlen < 16 ? CX_ST_BAD_OUTLEN : CX_ST_BAD_INLEN,
				 "register 0x%x: %u bytes in, %u out", id, cmd->inlen, cmd->outlen);
	memcpy(reg, cmd->in + 16, MIN(cmd->outlen, cmd->inlen) - 16);
	if (write && dev->prop.vf && (id == CX_REG_PMTU || id == CX_REG_PAOS)) {
		cx_trace(dev, CX_TR_EVENT, "VF: what it writes to register 0x%x changes nothing",
			 id);
		write = false;
	}
	switch (id) {
	case CX_REG_PMTU:
		cx_reg_pmtu(dev, reg, write);
		return 0;
	case CX_REG_PTYS:
		cx_reg_ptys(dev, reg);
		return 0;
	case CX_REG_PAOS:
		cx_reg_paos(dev, reg, write);
		return 0;
	case CX_REG_PFCC:
		cx_reg_pfcc(dev, reg, write);
		return 0;
	case CX_REG_PPCNT:
		cx_reg_ppcnt(dev, reg);
		return 0;
	case CX_REG_PVLC:
		CX_SET(pvlc_reg, reg, vl_hw_cap, 4);
		CX_SET(pvlc_reg, reg, vl_operational, 4);
		return 0;
	case CX_REG_NODE_DESC:
	case CX_REG_HOST_ENDIANNESS:
		return 0;
	default:
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "register 0x%x", id);
	}
}
