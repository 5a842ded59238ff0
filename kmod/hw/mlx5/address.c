// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: addresses: a port's own, for its record, and the address vector in a request to the
 * target of a record. The vector has libmlx5's layout for DC.
 */
#include <linux/jhash.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>

#include "hw/mlx5/mlx5.h"
#include "hw/route.h"

#define KRC_MLX5_AV_GRH BIT(30) /* of grh_gid_fl */

/* ---- packet settings */

static bool krc_mlx5_is_port(const struct krc_hw *hw, u32 port)
{
	return rdma_is_port_valid(hw->ibdev, port) && port <= KRC_MLX5_PORTS_MAX;
}

int krc_mlx5_port_setup(struct krc_hw *hw, u32 port, const struct krc_hw_fabric *fabric)
{
	struct krc_mlx5_port *p;
	u16 pkey_index = 0;

	if (!krc_mlx5_is_port(hw, port))
		return -EINVAL;
	if (fabric->sl > (hw->roce ? 7 : 15))
		return -ERANGE;
	if (!hw->roce && ib_find_cached_pkey(hw->ibdev, port, fabric->pkey, &pkey_index))
		return -ENOENT;
	p = &hw->ports[port];
	p->fabric = *fabric;
	p->pkey_index = pkey_index;
	p->mtu = 0; /* forget the MTU of earlier initiators */
	return 0;
}

bool krc_mlx5_port_settled(const struct krc_hw *hw, u32 port)
{
	const struct krc_mlx5_port *p = &hw->ports[port];
	u16 now;

	return hw->roce || (!ib_find_cached_pkey(hw->ibdev, port, p->fabric.pkey, &now) &&
			    now == p->pkey_index);
}

/* ---- RoCE */

/* UDP source port, hashed from both addresses, so that switches spread the paths. */
static u16 krc_mlx5_udp_sport(const union ib_gid *own, const union ib_gid *gid)
{
	u32 label = jhash(own->raw, sizeof(own->raw), jhash(gid->raw, sizeof(gid->raw), 0));

	return rdma_flow_label_to_udp_sport(label & IB_GRH_FLOWLABEL_MASK);
}

static int krc_mlx5_av_roce(struct krc_hw *hw, u32 port, u16 gid_index, const union ib_gid *gid,
			    const struct krp_value *value, struct mlx5_av *av)
{
	const struct ib_gid_attr *own = rdma_get_gid_attr(hw->ibdev, port, gid_index);
	int err;

	if (IS_ERR(own))
		return -ENETUNREACH;
	if (own->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP) {
		av->udp_sport = cpu_to_be16(krc_mlx5_udp_sport(&own->gid, gid));
		av->tclass = hw->ports[port].fabric.traffic_class;
	}
	rdma_put_gid_attr(own);
	err = krc_route_mac(hw->pd, port, gid_index, gid, value->dct.mac, av->rmac);
	if (err)
		return err;
	av->stat_rate_sl = (hw->ports[port].fabric.sl & 7) << 1;
	av->grh_gid_fl = cpu_to_be32(gid_index << 20);
	av->hop_limit = KRC_MLX5_HOP_LIMIT;
	memcpy(av->rgid, gid->raw, sizeof(av->rgid));
	return 0;
}

/* ---- InfiniBand */

void krc_mlx5_av_ib_fill(struct mlx5_av *av, const struct krc_hw_fabric *fabric, u16 lid,
			 u16 gid_index, const union ib_gid *gid)
{
	av->rlid = cpu_to_be16(lid);
	av->stat_rate_sl = fabric->sl & 0xf;
	if (!gid)
		return;
	av->grh_gid_fl = cpu_to_be32(KRC_MLX5_AV_GRH | gid_index << 20);
	av->tclass = fabric->traffic_class;
	av->hop_limit = KRC_MLX5_HOP_LIMIT;
	memcpy(av->rgid, gid->raw, sizeof(av->rgid));
}

static int krc_mlx5_av_ib(struct krc_hw *hw, u32 port, u16 gid_index, const union ib_gid *gid,
			  const struct krp_value *value, struct mlx5_av *av)
{
	union ib_gid own;

	if (!value->dct.lid)
		return -EINVAL;
	/* the LID of a peer in another subnet is meaningless here */
	if (rdma_query_gid(hw->ibdev, port, gid_index, &own) ||
	    own.global.subnet_prefix != gid->global.subnet_prefix)
		return -ENETUNREACH;
	/* a virtual port shares its LID with others: only the GID distinguishes them */
	krc_mlx5_av_ib_fill(av, &hw->ports[port].fabric, le16_to_cpu(value->dct.lid), gid_index,
			    rdma_is_grh_required(hw->ibdev, port) ? gid : NULL);
	return 0;
}

/* ---- both */

int krc_mlx5_address(struct krc_hw *hw, u32 port, u16 gid_index, const union ib_gid *gid,
		     const struct krp_value *value, struct krc_hw_address *ret_address)
{
	struct mlx5_wqe_datagram_seg to = {};
	int err;

	BUILD_BUG_ON(sizeof(to) > sizeof(ret_address->opaque));
	if (value->kind != KRP_KIND_DCT || !krp_value_valid(value) || !value->dct.dctn ||
	    !krc_mlx5_is_port(hw, port))
		return -EINVAL;
	if (!!(value->dct.flags & KRP_DCT_ETHERNET) != hw->roce)
		return -EAFNOSUPPORT;
	/* a target that accepts fewer READs in flight than we send would fail some of them */
	if (value->dct.max_rd_atomic && value->dct.max_rd_atomic < 1 << hw->log_rd_atomic)
		return -EINVAL;
	/* it would drop packets larger than its MTU */
	if (value->dct.mtu < READ_ONCE(hw->ports[port].mtu))
		return -ENETUNREACH;
	if (hw->roce)
		err = krc_mlx5_av_roce(hw, port, gid_index, gid, value, &to.av);
	else
		err = krc_mlx5_av_ib(hw, port, gid_index, gid, value, &to.av);
	if (err)
		return err;
	to.av.key.dc_key = cpu_to_be64(le64_to_cpu(value->dct.dc_key));
	to.av.dqp_dct = cpu_to_be32(le32_to_cpu(value->dct.dctn) | MLX5_EXTENDED_UD_AV);
	memset(ret_address, 0, sizeof(*ret_address));
	memcpy(ret_address->opaque, &to, sizeof(to));
	return 0;
}

int krc_mlx5_own_address(struct krc_hw *hw, u32 port, u16 gid_index, struct krp_value *value)
{
	if (!krc_mlx5_is_port(hw, port))
		return -EINVAL;
	return krc_route_own_address(hw->ibdev, port, gid_index, &hw->ports[port].fabric, value);
}

/* The way to it, such as the MAC address of a router or a source port, may be another. */
bool krc_mlx5_same_target(const struct krc_hw_address *a, const struct krc_hw_address *b)
{
	const struct mlx5_av *x = (const struct mlx5_av *)a->opaque;
	const struct mlx5_av *y = (const struct mlx5_av *)b->opaque;

	return x->key.dc_key == y->key.dc_key && x->dqp_dct == y->dqp_dct &&
	       !memcmp(x->rgid, y->rgid, sizeof(x->rgid));
}
