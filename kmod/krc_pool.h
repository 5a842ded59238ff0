/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the shared initiators of a port, and how requests of many queues share them:
 * credits, fairness, dispatch of completions, recovery and replay.
 *
 * A flow is one queue's (or the module's own) stream of requests. While it has requests
 * outstanding it stays on one initiator, which keeps their order; when it has none it
 * may move. What does not fit into the initiator waits in the flow, and the initiator
 * takes from its flows in turn, by bytes.
 *
 * Faults: the first failed request of an initiator is its flow's: it completes with
 * its error, and what the flow had behind it with -ECANCELED. The initiator is then
 * reset in the background, and the requests of the other flows that were flushed are
 * posted again in order: READs and WRITEs always; atomics if they can't have been
 * executed (another target than the failed one, or the target refused and so did
 * not go on), else they complete with -EREMCHG: outcome unknown.
 */
#ifndef KRC_POOL_H
#define KRC_POOL_H

#include <linux/list.h>
#include <linux/types.h>

#include "krc_provider.h"

struct krc_flow;
struct krc_initiator;
struct krc_pool;
struct krc_port;

/**
 * struct krc_req - One request on its way. Allocated by the flow's owner.
 * @flow: whose.
 * @list: where it waits; the pool's.
 * @wr: what is asked; wr.cookie is the pool's.
 * @status: out: 0 or a negative errno of struct krp_cqe.
 * @fault: out: what the hardware said.
 */
struct krc_req {
	struct krc_flow *flow;
	struct list_head list;
	struct krc_hw_wr wr;
	int status;
	enum krc_fault fault;
};

/**
 * struct krc_flow - A stream of requests; embedded by its owner.
 * @pool: pool.
 * @initiator: where it is while it has requests outstanding.
 * @list: in the initiator's turn; the pool's.
 * @waiting: requests not posted yet.
 * @outstanding: requests submitted and not completed.
 * @deficit: bytes it may post in its turn.
 * @failed: it had a fault; nothing more is accepted until krc_flow_restart().
 * @done: called once for each request, in order, in soft interrupt context or with
 *	the initiator's lock NOT held; must not sleep; the request is the owner's again.
 */
struct krc_flow {
	struct krc_pool *pool;
	struct krc_initiator *initiator;
	struct list_head list;
	struct list_head waiting;
	u32 outstanding;
	u32 deficit;
	bool failed;
	void (*done)(struct krc_req *req);
};

/**
 * krc_pool_create() - Make the initiators of a port.
 * @port: port, with ops, hw, num and gid_index set.
 * @initiators: how many.
 * @depth: requests of each.
 *
 * Context: may sleep.
 * Return: the pool or ERR_PTR.
 */
struct krc_pool *krc_pool_create(struct krc_port *port, u32 initiators, u32 depth);

/**
 * krc_pool_stop() - The device goes: complete all requests with -ENODEV, refuse new ones,
 * wake all waiters.
 * @pool: pool.
 *
 * Context: may sleep. May be called twice.
 */
void krc_pool_stop(struct krc_pool *pool);

/* Free a stopped pool that no flow uses any more. Context: may sleep. */
void krc_pool_destroy(struct krc_pool *pool);

void krc_flow_init(struct krc_flow *flow, struct krc_pool *pool, void (*done)(struct krc_req *req));

/**
 * krc_flow_submit() - Hand over requests, in order.
 * @flow: flow.
 * @reqs: list of krc_req.list, emptied.
 *
 * Context: any that may take a BH-safe spinlock.
 * Return: 0, -ENODEV (pool stopped), -ENOTCONN (flow failed); then nothing was taken.
 */
int krc_flow_submit(struct krc_flow *flow, struct list_head *reqs);

/**
 * krc_flow_cancel() - Complete what waits with -ECANCELED; what is posted completes by itself.
 * @flow: flow.
 */
void krc_flow_cancel(struct krc_flow *flow);

/* Wait until nothing is outstanding. Context: may sleep; ends soon after pool_stop. */
void krc_flow_drain(struct krc_flow *flow);

/* Accept requests again after a fault. The flow must be drained. */
void krc_flow_restart(struct krc_flow *flow);

/**
 * krc_pool_read() - READ for the module itself, and wait for it.
 * @pool: pool.
 * @address: target.
 * @remote_addr: address there.
 * @rkey: its key.
 * @ret: out: the bytes.
 * @bytes: how many, 1 to 256.
 * @timeout_ms: at most so long.
 *
 * Context: may sleep, killable. Inside krc_port_enter().
 * Return: 0, -EREMOTEIO, -ETIMEDOUT, -ENODEV, -EINTR, -ENOMEM.
 */
int krc_pool_read(struct krc_pool *pool, const struct krc_hw_address *address, u64 remote_addr,
		  u32 rkey, void *ret, u32 bytes, u32 timeout_ms);

/**
 * struct krc_pool_stats - Counters since creation.
 * @initiators: how many.
 * @depth: requests of each.
 * @posted: requests posted to the hardware, with replays.
 * @completed: requests completed to flows.
 * @faults: requests that failed by themselves.
 * @recoveries: initiators reset.
 * @replayed: requests posted again.
 * @unknown: atomics completed with -EREMCHG.
 * @outstanding: in the hardware now.
 */
struct krc_pool_stats {
	u32 initiators;
	u32 depth;
	u64 posted;
	u64 completed;
	u64 faults;
	u64 recoveries;
	u64 replayed;
	u64 unknown;
	u64 outstanding;
};

void krc_pool_stats(struct krc_pool *pool, struct krc_pool_stats *ret_stats);

/* Upcalls of the provider; see struct krc_hw_events. */
void krc_pool_on_completion(void *initiator_owner);
void krc_pool_on_fatal(void *initiator_owner);

#endif /* KRC_POOL_H */
