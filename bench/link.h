/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * rdma_cm for the programs of bench/ that use verbs without krcore: connect,
 * wait for events, busy-poll a completion.
 *
 * One thread. Whatever fails says so on stderr and ends the program: there is
 * nothing else for a benchmark to do.
 */
#ifndef BN_LINK_H
#define BN_LINK_H

#include <stdint.h>

#include <rdma/rdma_cma.h>

/**
 * struct bn_region - What a READ server tells of its memory, as private data.
 * @addr: address, big-endian.
 * @rkey: remote key, big-endian.
 * @mib: size in MiB, big-endian.
 */
struct bn_region {
	uint64_t addr;
	uint32_t rkey;
	uint32_t mib;
};

/**
 * bn_listen() - Listen on an address.
 * @host: address of an RDMA port.
 * @port: port as text.
 * @ps: RDMA_PS_TCP or RDMA_PS_UDP.
 *
 * Return: identifier, bound to a device.
 */
struct rdma_cm_id *bn_listen(const char *host, const char *port, enum rdma_port_space ps);

/**
 * bn_resolve() - Find device and route to a server.
 * @host: its address.
 * @port: port as text.
 * @ps: RDMA_PS_TCP or RDMA_PS_UDP.
 *
 * Return: identifier, ready for a queue pair and bn_connect().
 */
struct rdma_cm_id *bn_resolve(const char *host, const char *port, enum rdma_port_space ps);

/**
 * bn_connect() - Connect.
 * @id: identifier with its queue pair.
 * @depth: READs outstanding.
 * @ret_param: what the server answered; its private data is copied to @data.
 * @data: room for private data.
 * @bytes: how much.
 */
void bn_connect(struct rdma_cm_id *id, uint8_t depth, struct rdma_ud_param *ret_param, void *data,
		unsigned int bytes);

/** bn_queue_pair() - Make a queue pair with one completion queue. @id: id. @type: RC or UD. */
void bn_queue_pair(struct rdma_cm_id *id, enum ibv_qp_type type);

/** bn_wc_check() - End with a message unless a completion is a good one. @wc: completion. */
void bn_wc_check(const struct ibv_wc *wc);

/**
 * bn_poll() - Busy-poll for one completion.
 * @cq: queue.
 * @ret_wc: the completion.
 * @timeout_ns: bound; 0 for none.
 *
 * Return: 1 with a successful completion, 0 if there was none in time.
 */
int bn_poll(struct ibv_cq *cq, struct ibv_wc *ret_wc, uint64_t timeout_ns);

/**
 * bn_poll_any() - Busy-poll for one completion, good or bad.
 * @cq: queue.
 * @ret_wc: the completion.
 *
 * Return: its status.
 */
enum ibv_wc_status bn_poll_any(struct ibv_cq *cq, struct ibv_wc *ret_wc);

/** bn_leave() - Give an identifier of bn_resolve() back, with its channel. @id: no queue pair. */
void bn_leave(struct rdma_cm_id *id);

/**
 * bn_settle() - Let what was posted complete before the first poll: ./run bench cost counts work
 * and not waiting.
 *
 * Sleeps for as many microseconds as BN_SETTLE_US of the environment says, if it is there.
 */
void bn_settle(void);

/**
 * bn_read() - READ, and busy-poll until it is done.
 * @qp: connected queue pair; its send queue is empty.
 * @mr: memory that the bytes go to.
 * @to: where in it.
 * @bytes: how many.
 * @addr: remote address.
 * @rkey: remote key.
 */
void bn_read(struct ibv_qp *qp, const struct ibv_mr *mr, void *to, uint32_t bytes, uint64_t addr,
	     uint32_t rkey);

#endif /* BN_LINK_H */
