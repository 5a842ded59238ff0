// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: DC from a kernel module on the unmodified inbox driver, as a judge of
 * the ConnectX model: PD, UAR, CQ, RMP, PA and MTT keys, DCT and DCI are made
 * through exported mlx5_core symbols only.
 *
 * Load it on two nodes. "info" then reads "dctn rkey lid mac gid"; the same
 * five words of the other node written to "go" run the test, whose outcome is
 * in "result". Unloading drains and destroys everything.
 * Locking: parameters serialise by the kernel's parameter lock; the completion
 * handler runs in interrupt context and only completes.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/version.h>
#include <linux/mlx5/cq.h>
#include <linux/mlx5/device.h>
#include <linux/mlx5/doorbell.h>
#include <linux/mlx5/driver.h>
#include <linux/mlx5/qp.h>
#include <linux/mlx5/vport.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

#define CXK_LOG_CQ 6
#define CXK_LOG_SQ 6 /* basic blocks */
#define CXK_LOG_RQ 4
#define CXK_KEY 0x1234567890abcdefULL
#define CXK_IOVA 0x700000000000ULL /* of the remote key: any address will do */
#define CXK_ZERO_LEN_RQ 3

static int gid_index;
module_param(gid_index, int, 0444);
MODULE_PARM_DESC(gid_index, "GID table index to send from (RoCE)");
static int nr_reads = 200;
module_param(nr_reads, int, 0444);
MODULE_PARM_DESC(nr_reads, "READs of 64 bytes to do");

struct cxk_ring {
	struct mlx5_frag_buf buf;
	struct mlx5_frag_buf_ctrl fbc;
	struct mlx5_db db;
};

struct cxk_peer {
	u32 dctn, rkey;
	u16 lid;
	u8 mac[6], gid[16];
};

struct cxk {
	struct ib_device *ibdev;
	struct mlx5_core_dev *mdev;
	struct mlx5_uars_page *uar;
	struct mlx5_core_cq mcq;
	struct cxk_ring cq, sq, rq;
	struct notifier_block nb;
	struct completion drained, comp;
	struct cxk_peer peer;
	u32 pdn, pa_key, mtt_key, rmpn, dctn, dcin;
	u16 sq_pc;
	bool roce;
	u8 *buf; /* page 0: source, 1 and 2: remote, 3: destination */
	dma_addr_t dma;
};

static struct cxk *cxk;
static char cxk_result[256] = "not run";

/* ---- rings */

static int cxk_ring_alloc(struct cxk *p, struct cxk_ring *r, int log_stride, int log_size)
{
	int node = p->mdev->priv.numa_node;
	int bytes = max_t(int, PAGE_SIZE, 1 << (log_stride + log_size));
	int err = mlx5_db_alloc_node(p->mdev, &r->db, node);

	if (err)
		return err;
	err = mlx5_frag_buf_alloc_node(p->mdev, bytes, &r->buf, node);
	if (err) {
		mlx5_db_free(p->mdev, &r->db);
		return err;
	}
	mlx5_init_fbc(r->buf.frags, log_stride, log_size, &r->fbc);
	return 0;
}

static void cxk_ring_free(struct cxk *p, struct cxk_ring *r)
{
	if (!r->buf.frags)
		return;
	mlx5_frag_buf_free(p->mdev, &r->buf);
	mlx5_db_free(p->mdev, &r->db);
}

static u32 cxk_page_shift(const struct cxk_ring *r)
{
	return r->buf.page_shift - MLX5_ADAPTER_PAGE_SHIFT;
}

/* ---- objects */

static void cxk_on_comp(struct mlx5_core_cq *mcq, struct mlx5_eqe *eqe)
{
	complete(&container_of(mcq, struct cxk, mcq)->comp);
}

static void cxk_on_cq_event(struct mlx5_core_cq *mcq, enum mlx5_event event)
{
	pr_err("CQ event %d\n", event);
}

static int cxk_make_cq(struct cxk *p)
{
	u32 out[MLX5_ST_SZ_DW(create_cq_out)];
	int inlen, err, i, eqn;
	void *cqc;
	u32 *in;

	err = cxk_ring_alloc(p, &p->cq, 6, CXK_LOG_CQ);
	if (err)
		return err;
	for (i = 0; i < 1 << CXK_LOG_CQ; i++) {
		struct mlx5_cqe64 *cqe = mlx5_frag_buf_get_wqe(&p->cq.fbc, i);

		cqe->op_own = MLX5_CQE_INVALID << 4 | MLX5_CQE_OWNER_MASK;
	}
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
	err = mlx5_comp_eqn_get(p->mdev, 0, &eqn);
#else
	err = mlx5_vector2eqn(p->mdev, 0, &eqn);
#endif
	if (err)
		return err;
	inlen = MLX5_ST_SZ_BYTES(create_cq_in) + 8 * p->cq.buf.npages;
	in = kvzalloc(inlen, GFP_KERNEL);
	if (!in)
		return -ENOMEM;
	cqc = MLX5_ADDR_OF(create_cq_in, in, cq_context);
	MLX5_SET(cqc, cqc, log_cq_size, CXK_LOG_CQ);
	MLX5_SET(cqc, cqc, c_eqn_or_apu_element, eqn);
	MLX5_SET(cqc, cqc, uar_page, p->uar->index);
	MLX5_SET(cqc, cqc, log_page_size, cxk_page_shift(&p->cq));
	MLX5_SET64(cqc, cqc, dbr_addr, p->cq.db.dma);
	mlx5_fill_page_frag_array(&p->cq.buf, MLX5_ADDR_OF(create_cq_in, in, pas));
	p->mcq.cqe_sz = 64;
	p->mcq.set_ci_db = p->cq.db.db;
	p->mcq.arm_db = p->cq.db.db + 1;
	p->mcq.comp = cxk_on_comp;
	p->mcq.event = cxk_on_cq_event;
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
	p->mcq.uar = p->uar;
#endif
	err = mlx5_core_create_cq(p->mdev, &p->mcq, in, inlen, out, sizeof(out));
	kvfree(in);
	return err;
}

static int cxk_make_keys(struct cxk *p)
{
	u32 in[MLX5_ST_SZ_DW(create_mkey_in) + 4] = {};
	void *mkc = MLX5_ADDR_OF(create_mkey_in, in, memory_key_mkey_entry);
	__be64 *mtt = MLX5_ADDR_OF(create_mkey_in, in, klm_pas_mtt);
	int err;

	MLX5_SET(mkc, mkc, access_mode_1_0, MLX5_MKC_ACCESS_MODE_PA);
	MLX5_SET(mkc, mkc, lw, 1);
	MLX5_SET(mkc, mkc, lr, 1);
	MLX5_SET(mkc, mkc, pd, p->pdn);
	MLX5_SET(mkc, mkc, length64, 1);
	MLX5_SET(mkc, mkc, qpn, 0xffffff);
	err = mlx5_core_create_mkey(p->mdev, &p->pa_key, in, MLX5_ST_SZ_BYTES(create_mkey_in));
	if (err)
		return err;
	memset(in, 0, sizeof(in));
	MLX5_SET(create_mkey_in, in, translations_octword_actual_size, 1);
	MLX5_SET(mkc, mkc, access_mode_1_0, MLX5_MKC_ACCESS_MODE_MTT);
	MLX5_SET(mkc, mkc, lw, 1);
	MLX5_SET(mkc, mkc, lr, 1);
	MLX5_SET(mkc, mkc, rw, 1);
	MLX5_SET(mkc, mkc, rr, 1);
	MLX5_SET(mkc, mkc, pd, p->pdn);
	MLX5_SET(mkc, mkc, qpn, 0xffffff);
	MLX5_SET(mkc, mkc, mkey_7_0, 0x55);
	MLX5_SET64(mkc, mkc, start_addr, CXK_IOVA);
	MLX5_SET64(mkc, mkc, len, 2 * PAGE_SIZE);
	MLX5_SET(mkc, mkc, log_page_size, PAGE_SHIFT);
	MLX5_SET(mkc, mkc, translations_octword_size, 1);
	mtt[0] = cpu_to_be64((p->dma + PAGE_SIZE) | 3);
	mtt[1] = cpu_to_be64((p->dma + 2 * PAGE_SIZE) | 3);
	return mlx5_core_create_mkey(p->mdev, &p->mtt_key, in, sizeof(in));
}

static int cxk_make_rmp(struct cxk *p)
{
	u32 out[MLX5_ST_SZ_DW(create_rmp_out)] = {};
	int inlen, err;
	void *rmpc, *wq;
	u32 *in;

	err = cxk_ring_alloc(p, &p->rq, 5, CXK_LOG_RQ);
	if (err)
		return err;
	inlen = MLX5_ST_SZ_BYTES(create_rmp_in) + 8 * p->rq.buf.npages;
	in = kvzalloc(inlen, GFP_KERNEL);
	if (!in)
		return -ENOMEM;
	MLX5_SET(create_rmp_in, in, opcode, MLX5_CMD_OP_CREATE_RMP);
	rmpc = MLX5_ADDR_OF(create_rmp_in, in, ctx);
	wq = MLX5_ADDR_OF(rmpc, rmpc, wq);
	MLX5_SET(rmpc, rmpc, state, MLX5_RMPC_STATE_RDY);
	MLX5_SET(wq, wq, wq_type, MLX5_WQ_TYPE_LINKED_LIST);
	MLX5_SET(wq, wq, pd, p->pdn);
	MLX5_SET(wq, wq, log_wq_stride, 5);
	MLX5_SET(wq, wq, log_wq_sz, CXK_LOG_RQ);
	MLX5_SET(wq, wq, log_wq_pg_sz, cxk_page_shift(&p->rq));
	MLX5_SET64(wq, wq, dbr_addr, p->rq.db.dma);
	mlx5_fill_page_frag_array(&p->rq.buf, MLX5_ADDR_OF(wq, wq, pas));
	err = mlx5_cmd_exec(p->mdev, in, inlen, out, sizeof(out));
	p->rmpn = MLX5_GET(create_rmp_out, out, rmpn);
	kvfree(in);
	return err;
}

static int cxk_make_dct(struct cxk *p)
{
	u32 in[MLX5_ST_SZ_DW(create_dct_in)] = {}, out[MLX5_ST_SZ_DW(create_dct_out)] = {};
	void *c = MLX5_ADDR_OF(create_dct_in, in, dct_context_entry);
	int err;

	MLX5_SET(create_dct_in, in, opcode, MLX5_CMD_OP_CREATE_DCT);
	MLX5_SET(dctc, c, pd, p->pdn);
	MLX5_SET(dctc, c, srqn_xrqn, p->rmpn);
	MLX5_SET(dctc, c, cqn, p->mcq.cqn);
	MLX5_SET64(dctc, c, dc_access_key, CXK_KEY);
	MLX5_SET(dctc, c, user_index, 0xffffff);
	MLX5_SET(dctc, c, rre, 1);
	MLX5_SET(dctc, c, rwe, 1);
	MLX5_SET(dctc, c, port, 1);
	MLX5_SET(dctc, c, min_rnr_nak, 12);
	MLX5_SET(dctc, c, mtu, IB_MTU_1024);
	MLX5_SET(dctc, c, hop_limit, 64);
	MLX5_SET(dctc, c, my_addr_index, p->roce ? gid_index : 0);
	err = mlx5_cmd_exec(p->mdev, in, sizeof(in), out, sizeof(out));
	p->dctn = MLX5_GET(create_dct_out, out, dctn);
	return err;
}

static int cxk_dci_to_rts(struct cxk *p)
{
	u32 in[MLX5_ST_SZ_DW(init2rtr_qp_in)] = {}, out[MLX5_ST_SZ_DW(init2rtr_qp_out)];
	void *qpc = MLX5_ADDR_OF(rst2init_qp_in, in, qpc);
	void *path = MLX5_ADDR_OF(qpc, qpc, primary_address_path);
	int err;

	MLX5_SET(rst2init_qp_in, in, opcode, MLX5_CMD_OP_RST2INIT_QP);
	MLX5_SET(rst2init_qp_in, in, qpn, p->dcin);
	MLX5_SET(qpc, qpc, st, MLX5_QP_ST_DCI);
	MLX5_SET(qpc, qpc, pm_state, MLX5_QP_PM_MIGRATED);
	MLX5_SET(qpc, qpc, pd, p->pdn);
	MLX5_SET(ads, path, vhca_port_num, 1);
	err = mlx5_cmd_exec(p->mdev, in, sizeof(in), out, sizeof(out));
	if (err)
		return err;
	MLX5_SET(init2rtr_qp_in, in, opcode, MLX5_CMD_OP_INIT2RTR_QP);
	MLX5_SET(qpc, qpc, mtu, IB_MTU_1024);
	MLX5_SET(qpc, qpc, log_msg_max, MLX5_CAP_GEN(p->mdev, log_max_msg));
	MLX5_SET(qpc, qpc, log_ack_req_freq, 8);
	err = mlx5_cmd_exec(p->mdev, in, sizeof(in), out, sizeof(out));
	if (err)
		return err;
	MLX5_SET(rtr2rts_qp_in, in, opcode, MLX5_CMD_OP_RTR2RTS_QP);
	MLX5_SET(qpc, qpc, retry_count, 7);
	MLX5_SET(qpc, qpc, rnr_retry, 7);
	MLX5_SET(qpc, qpc, log_sra_max, 3);
	MLX5_SET(ads, path, ack_timeout, 14);
	return mlx5_cmd_exec(p->mdev, in, sizeof(in), out, sizeof(out));
}

static int cxk_make_dci(struct cxk *p)
{
	u32 out[MLX5_ST_SZ_DW(create_qp_out)] = {};
	int inlen, err;
	void *qpc;
	u32 *in;

	err = cxk_ring_alloc(p, &p->sq, 6, CXK_LOG_SQ);
	if (err)
		return err;
	inlen = MLX5_ST_SZ_BYTES(create_qp_in) + 8 * p->sq.buf.npages;
	in = kvzalloc(inlen, GFP_KERNEL);
	if (!in)
		return -ENOMEM;
	MLX5_SET(create_qp_in, in, opcode, MLX5_CMD_OP_CREATE_QP);
	qpc = MLX5_ADDR_OF(create_qp_in, in, qpc);
	MLX5_SET(qpc, qpc, st, MLX5_QP_ST_DCI);
	MLX5_SET(qpc, qpc, pm_state, MLX5_QP_PM_MIGRATED);
	MLX5_SET(qpc, qpc, pd, p->pdn);
	MLX5_SET(qpc, qpc, uar_page, p->uar->index);
	MLX5_SET(qpc, qpc, log_page_size, cxk_page_shift(&p->sq));
	MLX5_SET(qpc, qpc, rlky, 1);
	MLX5_SET(qpc, qpc, cqn_snd, p->mcq.cqn);
	MLX5_SET(qpc, qpc, cqn_rcv, p->mcq.cqn);
	MLX5_SET(qpc, qpc, rq_type, CXK_ZERO_LEN_RQ);
	MLX5_SET(qpc, qpc, log_sq_size, CXK_LOG_SQ);
	MLX5_SET(qpc, qpc, ts_format, mlx5_get_qp_default_ts(p->mdev));
	MLX5_SET64(qpc, qpc, dbr_addr, p->sq.db.dma);
	MLX5_SET(qpc, qpc, user_index, 0xffffff);
	mlx5_fill_page_frag_array(&p->sq.buf, MLX5_ADDR_OF(create_qp_in, in, pas));
	err = mlx5_cmd_exec(p->mdev, in, inlen, out, sizeof(out));
	kvfree(in);
	if (err)
		return err;
	p->dcin = MLX5_GET(create_qp_out, out, qpn);
	return cxk_dci_to_rts(p);
}

/* every command here names its object in the low 24 bits of the third word */
static int cxk_simple(struct cxk *p, u16 opcode, u32 id)
{
	u32 in[4] = {}, out[4];

	MLX5_SET(destroy_qp_in, in, opcode, opcode);
	MLX5_SET(destroy_qp_in, in, qpn, id);
	return mlx5_cmd_exec(p->mdev, in, sizeof(in), out, sizeof(out));
}

/* ---- requests */

static void cxk_fill_av(struct cxk *p, struct mlx5_av *av)
{
	memset(av, 0, sizeof(*av));
	av->key.dc_key = cpu_to_be64(CXK_KEY);
	av->dqp_dct = cpu_to_be32(p->peer.dctn | MLX5_EXTENDED_UD_AV);
	if (!p->roce) {
		av->rlid = cpu_to_be16(p->peer.lid);
		return;
	}
	av->rlid = cpu_to_be16(0xc001); /* UDP source port */
	memcpy(av->rmac, p->peer.mac, sizeof(av->rmac));
	memcpy(av->rgid, p->peer.gid, sizeof(av->rgid));
	av->hop_limit = 64;
	av->grh_gid_fl = cpu_to_be32(1u << 30 | gid_index << 20);
}

static void cxk_post(struct cxk *p, u8 opcode, u64 local, u64 remote, u32 rkey, u32 len)
{
	u16 mask = (1 << CXK_LOG_SQ) - 1;
	struct mlx5_wqe_ctrl_seg *c = mlx5_frag_buf_get_wqe(&p->sq.fbc, p->sq_pc & mask);
	struct mlx5_wqe_datagram_seg *d = (void *)(c + 1);
	struct mlx5_wqe_raddr_seg *r = mlx5_frag_buf_get_wqe(&p->sq.fbc, (p->sq_pc + 1) & mask);
	struct mlx5_wqe_data_seg *s = (void *)(r + 1);

	memset(c, 0, sizeof(*c));
	c->opmod_idx_opcode = cpu_to_be32(p->sq_pc << 8 | opcode);
	c->qpn_ds = cpu_to_be32(p->dcin << 8 | 6);
	c->fm_ce_se = MLX5_WQE_CTRL_CQ_UPDATE;
	cxk_fill_av(p, &d->av);
	r->raddr = cpu_to_be64(remote);
	r->rkey = cpu_to_be32(rkey);
	r->reserved = 0;
	s->byte_count = cpu_to_be32(len);
	s->lkey = cpu_to_be32(p->pa_key);
	s->addr = cpu_to_be64(local);
	p->sq_pc += 2;
	reinit_completion(&p->comp);
	mlx5_cq_arm(&p->mcq, MLX5_CQ_DB_REQ_NOT, p->uar->map, p->mcq.cons_index);
	dma_wmb();
	p->sq.db.db[MLX5_SND_DBR] = cpu_to_be32(p->sq_pc);
	wmb();
	mlx5_write64((__be32 *)c, p->uar->map + MLX5_BF_OFFSET);
}

/* one request, its completion by interrupt; the syndrome of an error is positive */
static int cxk_do(struct cxk *p, u8 opcode, u64 local, u64 remote, u32 rkey, u32 len)
{
	struct mlx5_cqe64 *cqe;
	struct mlx5_err_cqe *bad;
	u8 owner;

	cxk_post(p, opcode, local, remote, rkey, len);
	if (!wait_for_completion_timeout(&p->comp, 20 * HZ))
		return -ETIMEDOUT;
	cqe = mlx5_frag_buf_get_wqe(&p->cq.fbc, p->mcq.cons_index & ((1 << CXK_LOG_CQ) - 1));
	owner = cqe->op_own & MLX5_CQE_OWNER_MASK;
	if (owner != !!(p->mcq.cons_index & 1 << CXK_LOG_CQ) ||
	    get_cqe_opcode(cqe) == MLX5_CQE_INVALID)
		return -ENODATA;
	dma_rmb();
	p->mcq.cons_index++;
	mlx5_cq_set_ci(&p->mcq);
	bad = (struct mlx5_err_cqe *)cqe;
	return get_cqe_opcode(cqe) == MLX5_CQE_REQ ? 0 : bad->syndrome;
}

static int cxk_recover(struct cxk *p)
{
	int err = cxk_simple(p, MLX5_CMD_OP_2RST_QP, p->dcin);

	p->sq_pc = 0;
	p->sq.db.db[MLX5_SND_DBR] = 0;
	return err ?: cxk_dci_to_rts(p);
}

static int cxk_test(struct cxk *p)
{
	u64 remote = CXK_IOVA + PAGE_SIZE - 32; /* across two pages */
	u8 *got = p->buf + 3 * PAGE_SIZE;
	int i, err;

	for (i = 0; i < 64; i++)
		p->buf[i] = i * 3 + 1;
	err = cxk_do(p, MLX5_OPCODE_RDMA_WRITE, p->dma, remote, p->peer.rkey, 64);
	if (err)
		return snprintf(cxk_result, sizeof(cxk_result), "WRITE: %d", err);
	for (i = 0; i < nr_reads; i++) {
		memset(got, 0, 64);
		err = cxk_do(p, MLX5_OPCODE_RDMA_READ, p->dma + 3 * PAGE_SIZE, remote, p->peer.rkey,
			     64);
		if (err || memcmp(got, p->buf, 64))
			return snprintf(cxk_result, sizeof(cxk_result), "READ %d: %d", i, err);
	}
	err = cxk_do(p, MLX5_OPCODE_RDMA_READ, p->dma + 3 * PAGE_SIZE, remote, p->peer.rkey + 1,
		     64);
	if (err != MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR)
		return snprintf(cxk_result, sizeof(cxk_result), "wrong rkey: %d", err);
	err = cxk_recover(p);
	if (err)
		return snprintf(cxk_result, sizeof(cxk_result), "recovery: %d", err);
	err = cxk_do(p, MLX5_OPCODE_RDMA_READ, p->dma + 3 * PAGE_SIZE, remote, p->peer.rkey, 64);
	if (err)
		return snprintf(cxk_result, sizeof(cxk_result), "after recovery: %d", err);
	return snprintf(cxk_result, sizeof(cxk_result), "ok");
}

/* ---- parameters */

static int cxk_go_set(const char *val, const struct kernel_param *kp)
{
	char mac[16], gid[40];
	struct cxk_peer peer;
	u32 lid;

	if (!cxk)
		return -ENODEV;
	if (sscanf(val, "%x %x %x %12s %32s", &peer.dctn, &peer.rkey, &lid, mac, gid) != 5 ||
	    hex2bin(peer.mac, mac, sizeof(peer.mac)) || hex2bin(peer.gid, gid, sizeof(peer.gid)))
		return -EINVAL;
	peer.lid = lid;
	cxk->peer = peer;
	cxk_test(cxk);
	return 0;
}

static int cxk_result_get(char *buf, const struct kernel_param *kp)
{
	return sysfs_emit(buf, "%s\n", cxk_result);
}

static int cxk_info_get(char *buf, const struct kernel_param *kp)
{
	struct ib_port_attr port = {};
	union ib_gid gid = {};
	u8 mac[6] = {};

	if (!cxk)
		return sysfs_emit(buf, "no device\n");
	ib_query_port(cxk->ibdev, 1, &port);
	rdma_query_gid(cxk->ibdev, 1, cxk->roce ? gid_index : 0, &gid);
	if (cxk->roce)
		mlx5_query_mac_address(cxk->mdev, mac);
	return sysfs_emit(buf, "%x %x %x %*phN %*phN\n", cxk->dctn, cxk->mtt_key, port.lid, 6, mac,
			  16, gid.raw);
}

static const struct kernel_param_ops cxk_go_ops = { .set = cxk_go_set };
static const struct kernel_param_ops cxk_result_ops = { .get = cxk_result_get };
static const struct kernel_param_ops cxk_info_ops = { .get = cxk_info_get };
module_param_cb(go, &cxk_go_ops, NULL, 0200);
module_param_cb(result, &cxk_result_ops, NULL, 0444);
module_param_cb(info, &cxk_info_ops, NULL, 0444);

/* ---- life */

static int cxk_on_event(struct notifier_block *nb, unsigned long type, void *data)
{
	struct cxk *p = container_of(nb, struct cxk, nb);
	struct mlx5_eqe *eqe = data;

	if (type == MLX5_EVENT_TYPE_DCT_DRAINED &&
	    (be32_to_cpu(eqe->data.dct.dctn) & 0xffffff) == p->dctn)
		complete(&p->drained);
	return NOTIFY_OK;
}

static void cxk_destroy(struct cxk *p)
{
	if (p->dcin) {
		cxk_simple(p, MLX5_CMD_OP_2RST_QP, p->dcin);
		cxk_simple(p, MLX5_CMD_OP_DESTROY_QP, p->dcin);
	}
	if (p->dctn) {
		cxk_simple(p, MLX5_CMD_OP_DRAIN_DCT, p->dctn);
		if (!wait_for_completion_timeout(&p->drained, 10 * HZ))
			pr_err("no DCT_DRAINED event\n");
		cxk_simple(p, MLX5_CMD_OP_DESTROY_DCT, p->dctn);
	}
	if (p->rmpn)
		cxk_simple(p, MLX5_CMD_OP_DESTROY_RMP, p->rmpn);
	if (p->mcq.cqn)
		mlx5_core_destroy_cq(p->mdev, &p->mcq);
	if (p->mtt_key)
		mlx5_core_destroy_mkey(p->mdev, p->mtt_key);
	if (p->pa_key)
		mlx5_core_destroy_mkey(p->mdev, p->pa_key);
	if (p->pdn)
		mlx5_core_dealloc_pd(p->mdev, p->pdn);
	if (!IS_ERR_OR_NULL(p->uar))
		mlx5_put_uars_page(p->mdev, p->uar);
	cxk_ring_free(p, &p->sq);
	cxk_ring_free(p, &p->rq);
	cxk_ring_free(p, &p->cq);
	if (p->buf)
		dma_free_coherent(p->mdev->device, 4 * PAGE_SIZE, p->buf, p->dma);
	mlx5_notifier_unregister(p->mdev, &p->nb);
	kfree(p);
}

static int cxk_create(struct cxk *p)
{
	int err;

	p->buf = dma_alloc_coherent(p->mdev->device, 4 * PAGE_SIZE, &p->dma, GFP_KERNEL);
	if (!p->buf)
		return -ENOMEM;
	p->uar = mlx5_get_uars_page(p->mdev);
	if (IS_ERR(p->uar))
		return PTR_ERR(p->uar);
	err = mlx5_core_alloc_pd(p->mdev, &p->pdn);
	err = err ?: cxk_make_keys(p);
	err = err ?: cxk_make_cq(p);
	err = err ?: cxk_make_rmp(p);
	err = err ?: cxk_make_dct(p);
	return err ?: cxk_make_dci(p);
}

static int cxk_add(struct ib_device *ibdev)
{
	struct device *dev = ibdev->dev.parent;
	struct cxk *p;
	int err;

	if (cxk || !dev || !dev_is_pci(dev) || !dev->driver ||
	    strcmp(dev->driver->name, "mlx5_core"))
		return -EOPNOTSUPP;
	p = kzalloc(sizeof(*p), GFP_KERNEL);
	if (!p)
		return -ENOMEM;
	p->ibdev = ibdev;
	p->mdev = pci_get_drvdata(to_pci_dev(dev));
	p->roce = rdma_port_get_link_layer(ibdev, 1) == IB_LINK_LAYER_ETHERNET;
	init_completion(&p->drained);
	init_completion(&p->comp);
	p->nb.notifier_call = cxk_on_event;
	mlx5_notifier_register(p->mdev, &p->nb);
	err = cxk_create(p);
	if (err) {
		pr_err("cannot create objects (%d)\n", err);
		cxk_destroy(p);
		return err;
	}
	cxk = p;
	return 0;
}

static void cxk_remove(struct ib_device *ibdev, void *data)
{
	if (!cxk || cxk->ibdev != ibdev)
		return;
	cxk_destroy(cxk);
	cxk = NULL;
}

static struct ib_client cxk_client = {
	.name = "cx_dcprobe",
	.add = cxk_add,
	.remove = cxk_remove,
};

static int __init cxk_init(void)
{
	return ib_register_client(&cxk_client);
}

static void __exit cxk_exit(void)
{
	ib_unregister_client(&cxk_client);
}

module_init(cxk_init);
module_exit(cxk_exit);
MODULE_DESCRIPTION("DC through mlx5_core, a judge of the ConnectX model");
MODULE_LICENSE("GPL");
