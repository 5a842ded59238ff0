/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The connection under a session, as this end sees it: what the proofs of
 * proto/krp_msg.h are bound to. For users of librdmacm; no state, any thread.
 */
#ifndef KRU_LINK_H
#define KRU_LINK_H

#include <stdbool.h>

#include <rdma/rdma_cma.h>

#include "proto/krp_msg.h"

/**
 * struct kru_ends - Both ends of a connection, from one of them.
 * @local_gid: GID that our queue pair sends from.
 * @remote_gid: GID that it sends to.
 * @local_qpn: its number.
 * @remote_qpn: number of the queue pair that it sends to.
 * @global: the GIDs are those of a global route header. If not, they are
 *	rdma_cm's, and the remote one is what the peer claims.
 */
struct kru_ends {
	__u8 local_gid[KRP_GID_BYTES];
	__u8 remote_gid[KRP_GID_BYTES];
	uint32_t local_qpn;
	uint32_t remote_qpn;
	bool global;
};

/**
 * kru_ends_of() - Get both ends of a connection.
 * @id: identifier that has a connection request, or is connected.
 * @attr: attributes that rdma_init_qp_attr() gave for IBV_QPS_RTR, or NULL to ask.
 * @local_qpn: number of our queue pair.
 * @ret_ends: filled; untouched on failure.
 *
 * Return: 0, or the negative errno of rdma_init_qp_attr() or ibv_query_gid().
 */
int kru_ends_of(struct rdma_cm_id *id, const struct ibv_qp_attr *attr, uint32_t local_qpn,
		struct kru_ends *ret_ends);

/** kru_link_client() - The link, from the client's end. @ends: ends. @ret_link: filled. */
void kru_link_client(const struct kru_ends *ends, struct krp_link *ret_link);

/** kru_link_server() - The link, from the server's end. @ends: ends. @ret_link: filled. */
void kru_link_server(const struct kru_ends *ends, struct krp_link *ret_link);

#endif /* KRU_LINK_H */
