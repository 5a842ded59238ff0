// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: what a virtual function may not do (property vf). It speaks for itself
 * alone: the port, the e-switch and other functions are its PF's, which is
 * outside of the machine. Which commands stock drivers send on a PF only
 * (mlx5_core_is_pf(), vport_group_manager) is the source; what they send on a
 * VF too is accepted, and where it is about the port (PAOS, PMTU) changes
 * nothing, see regs.c. Runs under QEMU's big lock.
 */
#include "dev.h"

#define CX_MAD_CLASS_SUBN_LID 0x01
#define CX_MAD_CLASS_SUBN_DIRECT 0x81
#define CX_VPORT_STATE_OWN 0

/* what a driver writes on a PF only */
static const struct {
	u32 id;
	const char *name;
} cx_vf_read_only[] = {
	{ CX_REG_PTYS, "PTYS" },
	{ CX_REG_PFCC, "PFCC" },
	{ CX_REG_PVLC, "PVLC" },
	{ CX_REG_HOST_ENDIANNESS, "HOST_ENDIANNESS" },
};

/* fields by which a command is for another function, in whichever command they are */
static int cx_vf_check_others(struct cx_dev *dev, struct cx_cmd *cmd)
{
	static const char *const names[] = { "other_vport", "other_function", "ec_vf_function",
					     "function_id", "embedded_cpu_function" };
	const struct cx_ifc_layout *lay = cmd->desc->layout;
	u32 i, n;

	for (i = 0; i < lay->nr_fields; i++) {
		const struct cx_ifc_field *f = &lay->field[i];

		if (f->off + f->bits > cmd->inlen * 8)
			continue;
		for (n = 0; n < ARRAY_SIZE(names); n++) {
			if (!strcmp(f->path, names[n]) && cx_bits_get(cmd->in, f->off, f->bits))
				return cx_refuse(dev, cmd, CX_ST_BAD_PARAM,
						 "VF: %s, it has no other function", f->path);
		}
	}
	return 0;
}

static int cx_vf_check_reg(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u32 id = CX_GET(access_register_in, cmd->in, register_id), i;

	if (cmd->op_mod == CX_ACCESS_READ)
		return 0;
	for (i = 0; i < ARRAY_SIZE(cx_vf_read_only); i++) {
		if (cx_vf_read_only[i].id == id)
			return cx_refuse(dev, cmd, CX_ST_BAD_PARAM,
					 "VF: register %s is the PF's to write",
					 cx_vf_read_only[i].name);
	}
	return 0;
}

/* addresses and affiliation are given to a VF, it does not choose them */
static int cx_vf_check_nic_vport(struct cx_dev *dev, struct cx_cmd *cmd)
{
	const u8 *sel = CX_ADDR(modify_nic_vport_context_in, cmd->in, field_select);
	const char *what = NULL;

	if (CX_GET(modify_nic_vport_field_select, sel, permanent_address))
		what = "permanent_address";
	else if (CX_GET(modify_nic_vport_field_select, sel, node_guid))
		what = "node_guid";
	else if (CX_GET(modify_nic_vport_field_select, sel, port_guid))
		what = "port_guid";
	else if (CX_GET(modify_nic_vport_field_select, sel, affiliation))
		what = "affiliation";
	if (!what)
		return 0;
	return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "VF: %s is the PF's to set", what);
}

static int cx_vf_check_table(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u32 type = CX_GET(create_flow_table_in, cmd->in, table_type);

	if (type < CX_FT_ESW_EGRESS_ACL || type > CX_FT_SNIFFER_TX)
		return 0;
	return cx_refuse(dev, cmd, CX_ST_BAD_PARAM,
			 "VF: flow tables of type %u are of the e-switch or the port", type);
}

static int cx_vf_check_mad(struct cx_dev *dev, struct cx_cmd *cmd)
{
	const u8 *mad = CX_ADDR(mad_ifc_in, cmd->in, mad);

	if (mad[1] != CX_MAD_CLASS_SUBN_LID && mad[1] != CX_MAD_CLASS_SUBN_DIRECT)
		return 0;
	return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "VF: it has no subnet management interface");
}

int cx_vf_check(struct cx_dev *dev, struct cx_cmd *cmd)
{
	if (cx_vf_check_others(dev, cmd))
		return -1;
	switch (cmd->opcode) {
	case MLX5_CMD_OP_ACCESS_REG:
		return cx_vf_check_reg(dev, cmd);
	case MLX5_CMD_OP_MODIFY_NIC_VPORT_CONTEXT:
		return cx_vf_check_nic_vport(dev, cmd);
	case MLX5_CMD_OP_CREATE_FLOW_TABLE:
		return cx_vf_check_table(dev, cmd);
	case MLX5_CMD_OP_MAD_IFC:
		return cx_vf_check_mad(dev, cmd);
	case MLX5_CMD_OP_MODIFY_VPORT_STATE:
		return cx_refuse(dev, cmd, CX_ST_BAD_OP, "VF: the PF sets the state of its vport");
	case MLX5_CMD_OP_QUERY_VPORT_STATE:
		if (cmd->op_mod == CX_VPORT_STATE_OWN)
			return 0;
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM,
				 "VF: op_mod %u, a vport of the e-switch", cmd->op_mod);
	default:
		return 0;
	}
}
