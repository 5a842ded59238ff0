/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Messages by SEND and RECV of plain verbs, over RC or UD, for the programs that compare krcore's
 * messages with these. rdma_cm tells both ends of each other.
 *
 * One thread. Whatever fails says so on stderr and ends the program.
 */
#ifndef BN_PAIR_H
#define BN_PAIR_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

struct rdma_cm_id;
struct rdma_ud_param;

#define BN_PAIR_BYTES 1024 /* of a message, most: a UD queue pair takes no more than its MTU */
#define BN_PAIR_SLOTS 32 /* messages received and not yet looked at */
#define BN_PAIR_LAST 1 /* bytes of a message that says that no other comes */

/**
 * struct bn_pair - One end.
 * @qp: queue pair, with completion queues of its own.
 * @ah: UD: the way to the other end, NULL until it is known.
 * @qpn: UD: its queue pair.
 * @qkey: UD: its key.
 * @grh: bytes in front of each message received.
 * @memory: BN_PAIR_SLOTS places of BN_PAIR_BYTES and @grh bytes each, then one to send from.
 * @mr: all of it.
 */
struct bn_pair {
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	uint32_t qpn;
	uint32_t qkey;
	uint32_t grh;
	char *memory;
	struct ibv_mr *mr;
};

/**
 * bn_pair_open() - Make the queue pair of an identifier, and post its receives.
 * @pair: filled.
 * @id: identifier with a device.
 * @ud: whether it is UD, else RC.
 */
void bn_pair_open(struct bn_pair *pair, struct rdma_cm_id *id, bool ud);

/**
 * bn_pair_reach() - Connect to the other end, which bn_pair_serve() serves.
 * @pair: filled.
 * @host: its address.
 * @port: number as text.
 * @ud: by UD, else by RC.
 */
void bn_pair_reach(struct bn_pair *pair, const char *host, const char *port, bool ud);

/** bn_pair_out() - Where a message to be sent is made. @pair: end. Return: BN_PAIR_BYTES bytes. */
char *bn_pair_out(struct bn_pair *pair);

/**
 * bn_pair_send() - Send one message, with a completion.
 * @pair: end; UD: it knows the other one.
 * @data: bn_pair_out(), or what bn_pair_next() has given.
 * @bytes: how many, 1 to BN_PAIR_BYTES.
 * @answer: bn_pair_serve() is to send it back; else it comes with an immediate.
 */
void bn_pair_send(struct bn_pair *pair, const char *data, uint32_t bytes, bool answer);

/** bn_pair_sent() - Wait until what bn_pair_send() has sent is done. @pair: end. */
void bn_pair_sent(struct bn_pair *pair);

/**
 * bn_pair_next() - Wait for a message.
 * @pair: end.
 * @timeout_ns: bound; 0 for none.
 * @ret_wc: its completion: where it lies.
 * @ret_data: its first byte.
 *
 * Return: bytes, or 0: none came in time.
 */
uint32_t bn_pair_next(struct bn_pair *pair, uint64_t timeout_ns, struct ibv_wc *ret_wc,
		      char **ret_data);

/** bn_pair_again() - Receive into that place again. @pair: end. @wc: of bn_pair_next(). */
void bn_pair_again(struct bn_pair *pair, const struct ibv_wc *wc);

/**
 * bn_pair_serve() - Send back all messages without an immediate, of one peer after the other.
 * @host: address of an RDMA port.
 * @port: number as text.
 * @ud: by UD, else by RC.
 *
 * Says "ready" on standard output. It polls while a peer is there: until that sends a message of
 * BN_PAIR_LAST bytes, or nothing for ten seconds; then it sleeps until another one comes.
 */
void bn_pair_serve(const char *host, const char *port, bool ud) __attribute__((noreturn));

#endif /* BN_PAIR_H */
