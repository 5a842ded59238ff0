// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: the capability groups, QUERY_HCA_CAP and SET_HCA_CAP. The values are
 * those the model implements and no others; a comment says where a driver
 * depends on one in a way that is not obvious.
 * Runs under QEMU's big lock.
 */
#include "dev.h"

enum {
	CX_CAP_GENERAL = 0x0,
	CX_CAP_ETH = 0x1,
	CX_CAP_ATOMIC = 0x3,
	CX_CAP_ROCE = 0x4,
	CX_CAP_FLOW = 0x7,
};

#define CX_CAP(f, v) CX_SET(cmd_hca_cap, c, f, v)

static void cx_caps_objects(struct cx_dev *dev, u8 *c)
{
	CX_CAP(log_max_qp, 17);
	CX_CAP(log_max_qp_sz, dev->prop.log_max_qp_sz);
	CX_CAP(log_max_srq, 16);
	CX_CAP(log_max_srq_sz, dev->prop.log_max_srq_sz);
	CX_CAP(log_max_cq, 17);
	CX_CAP(log_max_cq_sz, 22);
	CX_CAP(log_max_eq, 6);
	CX_CAP(log_max_eq_sz, 22);
	CX_CAP(log_max_mkey, 24);
	CX_CAP(log_max_pd, 17);
	CX_CAP(log_max_xrcd, 16);
	CX_CAP(log_max_transport_domain, 9);
	CX_CAP(log_max_rq, 16);
	CX_CAP(log_max_sq, 16);
	CX_CAP(log_max_tir, 16);
	CX_CAP(log_max_tis, 16);
	CX_CAP(log_max_rmp, 16);
	CX_CAP(log_max_rqt, 16);
	CX_CAP(log_max_rqt_size, 10);
	CX_CAP(log_max_wq_sz, 15);
	CX_CAP(max_qp_mcg, 240);
	CX_CAP(log_max_mcg, 13);
	CX_CAP(max_indirection, 16);
	CX_CAP(log_max_mrw_sz, 40);
	CX_CAP(log_max_klm_list_size, 16);
	CX_CAP(log_max_l2_table, 5);
}

static void cx_caps_transport(struct cx_dev *dev, u8 *c)
{
	CX_CAP(rc, 1);
	CX_CAP(uc, 1);
	CX_CAP(ud, 1);
	CX_CAP(xrc, 1);
	CX_CAP(dct, dev->prop.dct);
	CX_CAP(atomic, 1);
	CX_CAP(apm, 0);
	CX_CAP(block_lb_mc, 1);
	CX_CAP(log_max_msg, CX_LOG_MAX_MSG);
	CX_CAP(log_max_ra_req_qp, CX_LOG_MAX_RD_ATOMIC);
	CX_CAP(log_max_ra_res_qp, CX_LOG_MAX_RD_ATOMIC);
	CX_CAP(log_max_ra_req_dc, CX_LOG_MAX_RD_ATOMIC);
	CX_CAP(log_max_ra_res_dc, CX_LOG_MAX_RD_ATOMIC);
	CX_CAP(local_ca_ack_delay, 16);
	CX_CAP(max_wqe_sz_sq, dev->prop.max_wqe_sz_sq);
	CX_CAP(max_wqe_sz_sq_dc, dev->prop.max_wqe_sz_sq_dc);
	CX_CAP(max_wqe_sz_rq, 1 << CX_LOG_MAX_RQ_WQE_BYTES);
	CX_CAP(compact_address_vector, 1);
	CX_CAP(sctr_data_cqe, 0);
	/* 1 would make the kernel open 128 GSI QPs */
	CX_CAP(set_deth_sqpn, 0);
	/* user memory is registered by CREATE_MKEY then; UMR requests change rights and domain */
	CX_CAP(umr_modify_entity_size_disabled, 1);
	CX_CAP(umr_ptr_rlky, 1);
	CX_CAP(fixed_buffer_size, 1);
	CX_CAP(null_mkey, 0);
}

static void cx_caps_queues(u8 *c)
{
	/* completions carry the user index; libmlx5 relies on it */
	CX_CAP(cqe_version, 1);
	CX_CAP(cq_resize, 1);
	CX_CAP(cq_moderation, 1);
	CX_CAP(cq_oi, 1);
	CX_CAP(uar_4k, 1);
	CX_CAP(uar_sz, 5);
	/* without it alloc_bfreg() divides a page into no registers */
	CX_CAP(num_of_uars_per_page, 1);
	CX_CAP(log_pg_sz, 12);
	CX_CAP(log_bf_reg_size, CX_LOG_BF_REG);
	CX_CAP(log_max_stride_sz_rq, 9);
	CX_CAP(log_min_stride_sz_rq, 5);
	CX_CAP(log_max_stride_sz_sq, 9);
	CX_CAP(log_min_stride_sz_sq, 6);
	CX_CAP(basic_cyclic_rcv_wqe, 1);
	CX_CAP(device_frequency_mhz, 1000);
	CX_CAP(device_frequency_khz, 1000000);
	CX_CAP(max_tc, 8);
}

static void cx_caps_general(struct cx_dev *dev)
{
	u8 *c = dev->caps.group[CX_CAP_GENERAL];

	cx_caps_objects(dev, c);
	cx_caps_transport(dev, c);
	cx_caps_queues(c);
	/* the driver tests it then: whether the processor's writes are combined */
	CX_CAP(bf, dev->prop.blueflame);
	CX_CAP(num_ports, 1);
	/* a number of its own; neither is an e-switch manager or manages vports */
	CX_CAP(vhca_id, dev->prop.vf);
	CX_CAP(port_type, dev->eth);
	CX_CAP(roce, dev->eth);
	CX_CAP(gid_table_size, dev->eth ? 5 : 0);
	CX_CAP(pkey_table_size, 0);
	CX_CAP(pkv, 1);
	CX_CAP(qkv, 1);
	CX_CAP(event_cap, 1);
	CX_CAP(port_module_event, 0);
	CX_CAP(cmdif_checksum, 0);
	/* vport commands instead of management datagrams */
	CX_CAP(ib_virt, !dev->eth);
	CX_CAP(eth_virt, dev->eth);
	CX_CAP(log_max_current_uc_list, 5);
	CX_CAP(log_max_current_mc_list, 5);
	CX_CAP(eth_net_offloads, dev->eth);
	CX_CAP(nic_flow_table, dev->eth);
	CX_CAP(max_qp_cnt, 1);
	CX_CAP(out_of_seq_cnt, 1);
	CX_CAP(retransmission_q_counters, 1);
}

static void cx_caps_eth(struct cx_dev *dev)
{
	u8 *c = dev->caps.group[CX_CAP_ETH];

	CX_SET(per_protocol_networking_offload_caps, c, csum_cap, 1);
	CX_SET(per_protocol_networking_offload_caps, c, vlan_cap, 1);
	CX_SET(per_protocol_networking_offload_caps, c, wqe_inline_mode, 1);
	CX_SET(per_protocol_networking_offload_caps, c, rss_ind_tbl_cap, 8);
	CX_SET(per_protocol_networking_offload_caps, c, self_lb_en_modifiable, 1);
	CX_SET(per_protocol_networking_offload_caps, c, max_lso_cap, 18);
}

static void cx_caps_roce(struct cx_dev *dev)
{
	u8 *c = dev->caps.group[CX_CAP_ROCE];

	CX_SET(roce_cap, c, roce_version, 5); /* versions 1 and 2 */
	CX_SET(roce_cap, c, l3_type, 6); /* IPv4 and IPv6 */
	CX_SET(roce_cap, c, r_roce_dest_udp_port, 4791);
	CX_SET(roce_cap, c, r_roce_min_src_udp_port, 0xc000);
	CX_SET(roce_cap, c, r_roce_max_src_udp_port, 0xffff);
	CX_SET(roce_cap, c, roce_address_table_size, CX_ROCE_ENTRIES);
}

static void cx_caps_flow(struct cx_dev *dev)
{
	u8 *c = CX_ADDR(flow_table_nic_cap, dev->caps.group[CX_CAP_FLOW],
			flow_table_properties_nic_receive);

	CX_SET(flow_table_prop_layout, c, ft_support, 1);
	CX_SET(flow_table_prop_layout, c, flow_modify_en, 1);
	CX_SET(flow_table_prop_layout, c, modify_root, 1);
	CX_SET(flow_table_prop_layout, c, identified_miss_table_mode, 1);
	CX_SET(flow_table_prop_layout, c, flow_table_modify, 1);
	CX_SET(flow_table_prop_layout, c, log_max_ft_size, 16);
	CX_SET(flow_table_prop_layout, c, max_ft_level, 64);
	CX_SET(flow_table_prop_layout, c, log_max_ft_num, 16);
	CX_SET(flow_table_prop_layout, c, log_max_flow, 16);
	CX_SET(flow_table_prop_layout, c, log_max_destination, 8);
	memset(CX_ADDR(flow_table_prop_layout, c, ft_field_support), 0xff, 16);
	memset(CX_ADDR(flow_table_prop_layout, c, ft_field_bitmask_support), 0xff, 16);
}

void cx_caps_init(struct cx_dev *dev)
{
	u8 *c = dev->caps.group[CX_CAP_ATOMIC];

	memset(&dev->caps, 0, sizeof(dev->caps));
	cx_caps_general(dev);
	CX_SET(atomic_caps, c, supported_atomic_req_8B_endianness_mode_1, 1);
	CX_SET(atomic_caps, c, atomic_operations, 3);
	CX_SET(atomic_caps, c, atomic_size_qp, 8);
	CX_SET(atomic_caps, c, atomic_size_dc, 8);
	if (!dev->eth)
		return;
	cx_caps_eth(dev);
	cx_caps_roce(dev);
	cx_caps_flow(dev);
}

int cx_cmd_query_hca_cap(struct cx_dev *dev, struct cx_cmd *cmd)
{
	u32 group = cmd->op_mod >> 1;
	u32 off = CX_OFF(query_hca_cap_out, capability) / 8;

	if (CX_GET(query_hca_cap_in, cmd->in, other_function))
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "other function");
	if (cmd->outlen <= off)
		return cx_refuse(dev, cmd, CX_ST_BAD_OUTLEN, "output of %u bytes", cmd->outlen);
	if (group < CX_NR_CAPS)
		memcpy(cmd->out + off, dev->caps.group[group],
		       MIN(CX_CAP_BYTES, cmd->outlen - off));
	return 0;
}

int cx_cmd_set_hca_cap(struct cx_dev *dev, struct cx_cmd *cmd)
{
	const u8 *c = CX_ADDR(set_hca_cap_in, cmd->in, capability);
	u8 *mine;

	switch (cmd->op_mod >> 1) {
	case CX_CAP_GENERAL:
		mine = dev->caps.group[CX_CAP_GENERAL];
		if (cmd->inlen < 16 + CX_SZ(cmd_hca_cap) / 2)
			return cx_refuse(dev, cmd, CX_ST_BAD_INLEN, "input of %u bytes",
					 cmd->inlen);
		if (CX_GET(cmd_hca_cap, c, log_uar_page_sz))
			CX_SET(cmd_hca_cap, mine, log_uar_page_sz,
			       CX_GET(cmd_hca_cap, c, log_uar_page_sz));
		CX_SET(cmd_hca_cap, mine, pkey_table_size, CX_GET(cmd_hca_cap, c, pkey_table_size));
		CX_SET(cmd_hca_cap, mine, log_max_qp, MIN(CX_GET(cmd_hca_cap, c, log_max_qp), 17));
		return 0;
	case CX_CAP_ATOMIC:
		/* only this field is the driver's: the rest of its buffer is empty */
		mine = dev->caps.group[CX_CAP_ATOMIC];
		CX_SET(atomic_caps, mine, atomic_req_8B_endianness_mode,
		       CX_GET(atomic_caps, c, atomic_req_8B_endianness_mode));
		return 0;
	case CX_CAP_ROCE:
	case CX_CAP_ETH:
		return 0;
	default:
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM, "capability group 0x%x",
				 cmd->op_mod >> 1);
	}
}
