// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the choice of a connection's source and destination address, so that it leaves
 * through the port and GID of its client.
 *
 * RoCE: the GID is an address of the port's network interface, and the source.
 * InfiniBand: an address whose upper half is the port's own subnet prefix is taken for
 * a GID and connected to as AF_IB, without IPoIB; any other needs a route over IPoIB.
 * Locking: none.
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/netdevice.h>
#include <rdma/ib.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/rdma_cm.h>

#include "meta/meta_priv.h"

/* Interface index of @meta's GID, the scope of link-local addresses. Return: 0 or -ENODEV. */
static int krc_meta_addr_scope(const struct krc_meta *meta, u32 *ret_ifindex)
{
	const struct ib_gid_attr *attr;
	struct net_device *ndev;
	int err = -ENODEV;

	attr = rdma_find_gid_by_port(meta->ibdev, &meta->gid, IB_GID_TYPE_ROCE_UDP_ENCAP,
				     meta->port, NULL);
	if (IS_ERR(attr))
		attr = rdma_find_gid_by_port(meta->ibdev, &meta->gid, IB_GID_TYPE_IB, meta->port,
					     NULL);
	if (IS_ERR(attr))
		return -ENODEV;
	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(attr);
	if (!IS_ERR(ndev)) {
		*ret_ifindex = ndev->ifindex;
		err = 0;
	}
	rcu_read_unlock();
	rdma_put_gid_attr(attr);
	return err;
}

static int krc_meta_addr_roce(const struct krc_meta *meta, struct sockaddr_storage *from,
			      struct sockaddr_storage *to)
{
	struct sockaddr_in6 *from6 = (struct sockaddr_in6 *)from;
	struct sockaddr_in6 *to6 = (struct sockaddr_in6 *)to;
	u32 ifindex;
	int err;

	rdma_gid2ip((struct sockaddr *)from, &meta->gid);
	if (from->ss_family != to->ss_family)
		return -EAFNOSUPPORT;
	if (from->ss_family == AF_INET6 &&
	    (ipv6_addr_type(&from6->sin6_addr) & IPV6_ADDR_LINKLOCAL)) {
		err = krc_meta_addr_scope(meta, &ifindex);
		if (err)
			return err;
		from6->sin6_scope_id = ifindex;
		if (ipv6_addr_type(&to6->sin6_addr) & IPV6_ADDR_LINKLOCAL)
			to6->sin6_scope_id = ifindex;
	}
	return 0;
}

static void krc_meta_addr_ib(struct sockaddr_storage *addr, const void *gid, u16 port)
{
	struct sockaddr_ib *ib = (struct sockaddr_ib *)addr;

	memset(addr, 0, sizeof(*addr));
	ib->sib_family = AF_IB;
	ib->sib_pkey = cpu_to_be16(0xffff);
	memcpy(&ib->sib_addr, gid, sizeof(ib->sib_addr));
	if (port) {
		ib->sib_sid = cpu_to_be64(((u64)RDMA_PS_TCP << 16) + port);
		ib->sib_sid_mask = cpu_to_be64(U64_MAX);
	}
}

int krc_meta_addr(const struct krc_meta *meta, const struct sockaddr_storage *conf,
		  struct sockaddr_storage *ret_from, bool *ret_any, struct sockaddr_storage *ret_to)
{
	const struct sockaddr_in6 *conf6 = (const struct sockaddr_in6 *)conf;

	memset(ret_from, 0, sizeof(*ret_from));
	*ret_to = *conf;
	*ret_any = false;
	if (conf->ss_family != AF_INET && conf->ss_family != AF_INET6 && conf->ss_family != AF_IB)
		return -EAFNOSUPPORT;
	if (rdma_protocol_roce(meta->ibdev, meta->port))
		return krc_meta_addr_roce(meta, ret_from, ret_to);

	if (conf->ss_family == AF_INET6 &&
	    !memcmp(&conf6->sin6_addr, &meta->gid, sizeof(meta->gid) / 2))
		krc_meta_addr_ib(ret_to, &conf6->sin6_addr, be16_to_cpu(conf6->sin6_port));
	if (ret_to->ss_family == AF_IB)
		krc_meta_addr_ib(ret_from, &meta->gid, 0);
	else
		*ret_any = true;
	return 0;
}
