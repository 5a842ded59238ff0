// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: life cycle of the function: enable, initialise, tear down; the memory
 * pages the driver gives to the device; interface version.
 * Runs under QEMU's big lock.
 */
#include "dev.h"

/* pages asked for at boot and at initialisation; the count is arbitrary */
#define CX_PAGES_AT_ONCE 4

int cx_cmd_nop(struct cx_dev *dev, struct cx_cmd *cmd)
{
	return 0;
}

int cx_cmd_enable_hca(struct cx_dev *dev, struct cx_cmd *cmd)
{
	if (dev->cmd.phase != CX_ANY)
		return cx_refuse(dev, cmd, CX_ST_BAD_SYS_STATE, "already enabled");
	if (CX_GET(enable_hca_in, cmd->in, function_id))
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "function_id");
	dev->cmd.phase = CX_ENABLED;
	return 0;
}

int cx_cmd_disable_hca(struct cx_dev *dev, struct cx_cmd *cmd)
{
	if (dev->cmd.phase == CX_READY)
		return cx_refuse(dev, cmd, CX_ST_BAD_SYS_STATE, "not torn down");
	if (dev->cmd.nr_pages)
		cx_trace(dev, CX_TR_REFUSE, "DISABLE_HCA while %u pages are held",
			 dev->cmd.nr_pages);
	dev->cmd.phase = CX_ANY;
	return 0;
}

int cx_cmd_init_hca(struct cx_dev *dev, struct cx_cmd *cmd)
{
	if (dev->cmd.phase == CX_READY)
		return cx_refuse(dev, cmd, CX_ST_BAD_SYS_STATE, "already initialised");
	dev->cmd.phase = CX_READY;
	return 0;
}

int cx_cmd_teardown_hca(struct cx_dev *dev, struct cx_cmd *cmd)
{
	cx_trace(dev, CX_TR_EVENT, "teardown, profile %u",
		 CX_GET(teardown_hca_in, cmd->in, profile));
	cx_dev_forget(dev);
	dev->cmd.phase = CX_ENABLED;
	return 0;
}

int cx_cmd_query_pages(struct cx_dev *dev, struct cx_cmd *cmd)
{
	switch (cmd->op_mod) {
	case MLX5_QUERY_PAGES_IN_OP_MOD_BOOT_PAGES:
	case MLX5_QUERY_PAGES_IN_OP_MOD_INIT_PAGES:
		/* the pages of a VF are asked of its PF's driver */
		CX_SET(query_pages_out, cmd->out, num_pages, dev->prop.vf ? 0 : CX_PAGES_AT_ONCE);
		return 0;
	case MLX5_QUERY_PAGES_IN_OP_MOD_REGULAR_PAGES:
		/* all that the device still holds, negative: "take them back" */
		CX_SET(query_pages_out, cmd->out, num_pages,
		       dev->cmd.phase == CX_READY ? 0 : -(s32)dev->cmd.nr_pages);
		return 0;
	default:
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "op_mod %u", cmd->op_mod);
	}
}

static int cx_pages_give(struct cx_dev *dev, struct cx_cmd *cmd, u32 nr)
{
	const u8 *pas = CX_ADDR(manage_pages_in, cmd->in, pas);
	u32 room = (cmd->inlen - CX_OFF(manage_pages_in, pas) / 8) / 8, i;

	if (nr && dev->prop.vf)
		return cx_refuse(dev, cmd, CX_ST_LIMIT, "VF: it is asked for no pages");
	if (nr > room)
		return cx_refuse(dev, cmd, CX_ST_BAD_INLEN, "%u pages announced, %u given", nr,
				 room);
	if (nr > ARRAY_SIZE(dev->cmd.pages) - dev->cmd.nr_pages)
		return cx_refuse(dev, cmd, CX_ST_LIMIT, "more pages than asked for");
	for (i = 0; i < nr; i++) {
		if (ldq_be_p(pas + 8 * i) & 0xfff)
			return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "page %u is not aligned", i);
	}
	for (i = 0; i < nr; i++)
		dev->cmd.pages[dev->cmd.nr_pages++] = ldq_be_p(pas + 8 * i);
	return 0;
}

static int cx_pages_take(struct cx_dev *dev, struct cx_cmd *cmd, u32 nr)
{
	u8 *pas = CX_ADDR(manage_pages_out, cmd->out, pas);
	u32 head = CX_OFF(manage_pages_out, pas) / 8, room = cmd->outlen / 8 - head / 8, i;

	if (cmd->outlen < head)
		return cx_refuse(dev, cmd, CX_ST_BAD_OUTLEN, "%u bytes for pages", cmd->outlen);
	nr = MIN(MIN(nr, room), dev->cmd.nr_pages);
	for (i = 0; i < nr; i++)
		stq_be_p(pas + 8 * i, dev->cmd.pages[--dev->cmd.nr_pages]);
	CX_SET(manage_pages_out, cmd->out, output_num_entries, nr);
	return 0;
}

int cx_cmd_manage_pages(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u32 nr = CX_GET(manage_pages_in, cmd->in, input_num_entries);

	switch (cmd->op_mod) {
	case MLX5_MANAGE_PAGES_IN_OP_MOD_ALLOCATION_FAIL:
		return 0;
	case MLX5_MANAGE_PAGES_IN_OP_MOD_ALLOCATION_SUCCESS:
		return cx_pages_give(dev, cmd, nr);
	case MLX5_MANAGE_PAGES_IN_OP_MOD_HCA_RETURN_PAGES:
		return cx_pages_take(dev, cmd, nr);
	default:
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "op_mod %u", cmd->op_mod);
	}
}

int cx_cmd_query_issi(struct cx_dev *dev, struct cx_cmd *cmd)
{
	CX_SET(query_issi_out, cmd->out, supported_issi_dw0, 1 << 1);
	return 0;
}

int cx_cmd_set_issi(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u32 issi = CX_GET(set_issi_in, cmd->in, current_issi);

	if (issi != 1)
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "issi %u", issi);
	return 0;
}

int cx_cmd_set_driver_version(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u32 off = CX_OFF(set_driver_version_in, driver_version) / 8;

	memset(dev->cmd.driver, 0, sizeof(dev->cmd.driver));
	memcpy(dev->cmd.driver, cmd->in + off, MIN(sizeof(dev->cmd.driver) - 1, cmd->inlen - off));
	return 0;
}

int cx_cmd_query_adapter(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u8 *q = CX_ADDR(query_adapter_out, cmd->out, query_adapter_struct);

	CX_SET(query_adapter_param_block, q, ieee_vendor_id, 0x2c9);
	memcpy(CX_ADDR(query_adapter_param_block, q, vsd_contd_psid), "KRC0000000001\0\0", 16);
	return 0;
}
