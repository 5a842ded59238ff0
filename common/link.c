// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The connection under a session, as this end sees it: see link.h.
 *
 * rdma_init_qp_attr() returns the attributes that the kernel's connection manager uses for
 * the queue pair: the same on both sides, in every state from the request on, for each kind
 * of device and of address. Events and addresses of rdma_cm do not have all of them.
 */
#include <errno.h>
#include <string.h>

#include "common/link.h"

static int kru_ends_ask(struct rdma_cm_id *id, struct ibv_qp_attr *ret_attr)
{
	int mask;

	memset(ret_attr, 0, sizeof(*ret_attr));
	ret_attr->qp_state = IBV_QPS_RTR;
	return rdma_init_qp_attr(id, ret_attr, &mask) ? -errno : 0;
}

int kru_ends_of(struct rdma_cm_id *id, const struct ibv_qp_attr *attr, uint32_t local_qpn,
		struct kru_ends *ret_ends)
{
	struct kru_ends ends = { .local_qpn = local_qpn };
	struct ibv_qp_attr asked;
	union ibv_gid gid;
	int err;

	if (!attr) {
		err = kru_ends_ask(id, &asked);
		if (err)
			return err;
		attr = &asked;
	}
	ends.remote_qpn = attr->dest_qp_num;
	ends.global = attr->ah_attr.is_global;
	if (ends.global) {
		if (ibv_query_gid(id->verbs, id->port_num, attr->ah_attr.grh.sgid_index, &gid))
			return errno ? -errno : -EIO;
		memcpy(ends.local_gid, gid.raw, sizeof(ends.local_gid));
		memcpy(ends.remote_gid, attr->ah_attr.grh.dgid.raw, sizeof(ends.remote_gid));
	} else {
		memcpy(ends.local_gid, id->route.addr.addr.ibaddr.sgid.raw, KRP_GID_BYTES);
		memcpy(ends.remote_gid, id->route.addr.addr.ibaddr.dgid.raw, KRP_GID_BYTES);
	}
	*ret_ends = ends;
	return 0;
}

void kru_link_client(const struct kru_ends *ends, struct krp_link *ret_link)
{
	memcpy(ret_link->client_gid, ends->local_gid, sizeof(ret_link->client_gid));
	memcpy(ret_link->server_gid, ends->remote_gid, sizeof(ret_link->server_gid));
	ret_link->client_qpn = krp_cpu_to_le32(ends->local_qpn);
	ret_link->server_qpn = krp_cpu_to_le32(ends->remote_qpn);
}

void kru_link_server(const struct kru_ends *ends, struct krp_link *ret_link)
{
	memcpy(ret_link->client_gid, ends->remote_gid, sizeof(ret_link->client_gid));
	memcpy(ret_link->server_gid, ends->local_gid, sizeof(ret_link->server_gid));
	ret_link->client_qpn = krp_cpu_to_le32(ends->remote_qpn);
	ret_link->server_qpn = krp_cpu_to_le32(ends->local_qpn);
}
