// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: packet settings of ports, a port's own address, for its record, and the address of the
 * port of a record.
 */
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>

#include "hw/route.h"
#include "hw/verbs/verbs.h"

int krc_verbs_port_setup(struct krc_hw *hw, u32 port, const struct krc_hw_fabric *fabric)
{
	struct krc_verbs *v = krc_verbs_of(hw);
	struct krc_verbs_port *p;
	u16 pkey_index = 0;

	if (!krc_verbs_is_port(v, port))
		return -EINVAL;
	if (fabric->sl > (v->roce ? 7 : 15))
		return -ERANGE;
	if (!v->roce && ib_find_cached_pkey(v->ibdev, port, fabric->pkey, &pkey_index))
		return -ENOENT;
	p = &v->ports[port];
	p->fabric = *fabric;
	p->pkey_index = pkey_index;
	WRITE_ONCE(v->register_port, port);
	return 0;
}

bool krc_verbs_port_settled(const struct krc_hw *hw, u32 port)
{
	struct krc_verbs *v = krc_verbs_of(hw);
	const struct krc_verbs_port *p = &v->ports[port];
	u16 now;

	return v->roce ||
	       (!ib_find_cached_pkey(v->ibdev, port, p->fabric.pkey, &now) && now == p->pkey_index);
}

int krc_verbs_own_address(struct krc_hw *hw, u32 port, u16 gid_index, struct krp_value *value)
{
	struct krc_verbs *v = krc_verbs_of(hw);

	if (!krc_verbs_is_port(v, port))
		return -EINVAL;
	return krc_route_own_address(v->ibdev, port, gid_index, &v->ports[port].fabric, value);
}

int krc_verbs_address(struct krc_hw *hw, u32 port, u16 gid_index, const union ib_gid *gid,
		      const struct krp_value *value, struct krc_hw_address *ret_address)
{
	struct krc_verbs *v = krc_verbs_of(hw);
	struct krc_lane_peer to = {};
	struct krp_value own = {};
	int err;

	if (!krp_kind_port(value->kind) || !krp_value_valid(value) || !value->dct.ud_qpn ||
	    !krc_verbs_is_port(v, port))
		return -EINVAL;
	if (!!(value->dct.flags & KRP_DCT_ETHERNET) != v->roce)
		return -EAFNOSUPPORT;
	if (!v->roce && !value->dct.lid)
		return -EINVAL;
	err = krc_verbs_own_address(hw, port, gid_index, &own);
	if (err)
		return err;
	memcpy(to.gid, gid->raw, sizeof(to.gid));
	to.generation = value->generation;
	to.ud_qpn = le32_to_cpu(value->dct.ud_qpn);
	to.ud_qkey = le32_to_cpu(value->dct.ud_qkey);
	to.lid = v->roce ? 0 : le16_to_cpu(value->dct.lid);
	if (v->roce)
		err = krc_route_mac(v->pd, port, gid_index, gid, value->dct.mac, to.mac);
	if (err)
		return err;
	to.mtu = min(own.dct.mtu, value->dct.mtu);
	to.sl = v->ports[port].fabric.sl;
	to.flags = value->dct.flags;
	to.traffic_class = v->ports[port].fabric.traffic_class;
	memcpy(ret_address, &to, sizeof(to));
	return 0;
}

/* The way to it, such as the MAC address of a router, may be another. */
bool krc_verbs_same_target(const struct krc_hw_address *a, const struct krc_hw_address *b)
{
	const struct krc_lane_peer *x = (const struct krc_lane_peer *)a->opaque;
	const struct krc_lane_peer *y = (const struct krc_lane_peer *)b->opaque;

	return x->generation == y->generation && !memcmp(x->gid, y->gid, sizeof(x->gid));
}
