// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: a port's own address, for its record; MACs of peers, by their records if they are on the
 * link, else by the neighbour table.
 */
#include <linux/inetdevice.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>

#include "hw/route.h"

#define KRC_ROUTE_HOP_LIMIT 64

/* ---- own */

u8 krc_route_mtu(const struct krc_hw_fabric *fabric, u8 active)
{
	return fabric->mtu ? min(fabric->mtu, active) : active;
}

int krc_route_own_address(struct ib_device *ibdev, u32 port, u16 gid_index,
			  const struct krc_hw_fabric *fabric, struct krp_value *value)
{
	bool roce = rdma_port_get_link_layer(ibdev, port) == IB_LINK_LAYER_ETHERNET;
	const struct ib_gid_attr *own;
	struct ib_port_attr attr;
	u8 mac[ETH_ALEN] = {};
	int err;

	if (ib_query_port(ibdev, port, &attr))
		return -EINVAL;
	own = rdma_get_gid_attr(ibdev, port, gid_index);
	if (IS_ERR(own))
		return -ENETUNREACH;
	err = roce ? rdma_read_gid_l2_fields(own, NULL, mac) : 0;
	rdma_put_gid_attr(own);
	if (err || (!roce && !attr.lid))
		return -ENETUNREACH;
	value->dct.lid = cpu_to_le16(roce ? 0 : attr.lid);
	memcpy(value->dct.mac, mac, sizeof(mac));
	value->dct.mtu = krc_route_mtu(fabric, attr.active_mtu);
	value->dct.sl = fabric->sl;
	value->dct.port = port;
	value->dct.flags = roce ? KRP_DCT_ETHERNET : 0;
	return 0;
}

/* ---- a peer's */

/* MAC of a peer or of the router to it, from the neighbour table of the GID's netdev. */
static int krc_route_resolve(struct ib_pd *pd, u32 port, u16 gid_index, const union ib_gid *gid,
			     u8 *ret_mac)
{
	struct rdma_ah_attr attr = { .type = RDMA_AH_ATTR_TYPE_ROCE };
	struct ib_ah *ah;

	rdma_ah_set_port_num(&attr, port);
	rdma_ah_set_grh(&attr, (union ib_gid *)gid, 0, gid_index, KRC_ROUTE_HOP_LIMIT, 0);
	ah = rdma_create_user_ah(pd, &attr, NULL);
	if (IS_ERR(ah))
		return -ENETUNREACH;
	ether_addr_copy(ret_mac, attr.roce.dmac);
	rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE);
	return 0;
}

/* Whether an IPv4 address is in the subnet of an address of a netdev. */
static bool krc_route_on_link_ipv4(const struct net_device *ndev, __be32 addr)
{
	const struct in_device *in_dev = __in_dev_get_rcu(ndev);
	const struct in_ifaddr *ifa;

	if (!in_dev)
		return false;
	in_dev_for_each_ifa_rcu(ifa, in_dev) {
		if (inet_ifa_match(addr, ifa))
			return true;
	}
	return false;
}

/*
 * Whether a peer is on the same link, so that the MAC of its record can be used; behind a
 * router the router's is needed. False if unknown: resolving is right in any case.
 */
static bool krc_route_on_link(const struct ib_gid_attr *own, const union ib_gid *gid)
{
	struct net_device *ndev;
	bool yes = false;

	if (!ipv6_addr_v4mapped((const struct in6_addr *)gid))
		return gid->global.subnet_prefix == own->gid.global.subnet_prefix;
	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(own);
	if (!IS_ERR(ndev))
		yes = krc_route_on_link_ipv4(ndev, *(const __be32 *)&gid->raw[12]);
	rcu_read_unlock();
	return yes;
}

int krc_route_mac(struct ib_pd *pd, u32 port, u16 gid_index, const union ib_gid *gid,
		  const u8 *known, u8 *ret_mac)
{
	const struct ib_gid_attr *own = rdma_get_gid_attr(pd->device, port, gid_index);
	bool on_link;

	if (IS_ERR(own))
		return -ENETUNREACH;
	on_link = krc_route_on_link(own, gid);
	rdma_put_gid_attr(own);
	if (!on_link || is_zero_ether_addr(known))
		return krc_route_resolve(pd, port, gid_index, gid, ret_mac);
	memcpy(ret_mac, known, ETH_ALEN); /* the record's is aligned by nothing */
	return 0;
}
