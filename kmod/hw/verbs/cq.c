// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the completion queue for all that is sent on the lanes of a port. A lane outlives those who
 * hold it, and the queue of a queue pair is for its lifetime, so there can't be one an initiator.
 * A completion names initiator and request (krc_verbs_wr_id()); what has the highest bit is a
 * pointer to a struct ib_cqe, of whoever manages the lane.
 *
 * It is always armed: completions are taken in softirq, and by tasks that poll an initiator.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "base/compat.h"
#include "base/log.h"
#include "hw/verbs/verbs.h"

/* entries, if the device has so many: for what initiators have outstanding */
#define KRC_VERBS_CQ_ENTRIES 65536
#define KRC_VERBS_CQ_BATCH 16
#define KRC_VERBS_CQ_BUDGET 64
#define KRC_VERBS_CQ_ROUNDS 4097U /* batches of a flush: more than the queue has */

static const u8 krc_verbs_faults[] = {
	/* of enum ib_wc_status; what is not here is KRC_FAULT_FATAL */
	[IB_WC_SUCCESS] = KRC_FAULT_NONE,
	[IB_WC_LOC_LEN_ERR] = KRC_FAULT_LOCAL,
	[IB_WC_LOC_PROT_ERR] = KRC_FAULT_LOCAL,
	[IB_WC_LOC_ACCESS_ERR] = KRC_FAULT_LOCAL,
	[IB_WC_MW_BIND_ERR] = KRC_FAULT_LOCAL,
	[IB_WC_WR_FLUSH_ERR] = KRC_FAULT_FLUSHED,
	/* rxe of 6.1 says so when it has no route, no link or no memory for a packet */
	[IB_WC_LOC_QP_OP_ERR] = KRC_FAULT_LOST,
	/* the target refused it */
	[IB_WC_REM_INV_REQ_ERR] = KRC_FAULT_ACCESS,
	[IB_WC_REM_ACCESS_ERR] = KRC_FAULT_ACCESS,
	[IB_WC_REM_OP_ERR] = KRC_FAULT_ACCESS,
	/* there was no buffer for a SEND; of other requests see krc_verbs_failed() */
	[IB_WC_RNR_RETRY_EXC_ERR] = KRC_FAULT_BUSY,
	/* no response, or a malformed one */
	[IB_WC_RETRY_EXC_ERR] = KRC_FAULT_TIMEOUT,
	[IB_WC_RESP_TIMEOUT_ERR] = KRC_FAULT_TIMEOUT,
	[IB_WC_BAD_RESP_ERR] = KRC_FAULT_TIMEOUT,
	[IB_WC_REM_ABORT_ERR] = KRC_FAULT_TARGET,
};

enum krc_fault krc_verbs_fault(enum ib_wc_status status)
{
	if (status == IB_WC_SUCCESS)
		return KRC_FAULT_NONE;
	if (status < ARRAY_SIZE(krc_verbs_faults) && krc_verbs_faults[status])
		return krc_verbs_faults[status];
	return KRC_FAULT_FATAL;
}

/* Tell whose a completion is. Return: the initiator whose it is, or NULL. */
static struct krc_verbs_initiator *krc_verbs_cq_tell(struct krc_verbs_target *target,
						     struct ib_wc *wc)
{
	struct krc_verbs_initiator *ini;

	lockdep_assert_held(&target->cq_lock);
	if (wc->wr_id >> 63) {
		wc->wr_cqe->done(target->send_cq, wc);
		return NULL;
	}
	ini = xa_load(&target->initiators, wc->wr_id >> 32);
	if (ini)
		krc_verbs_completed(ini, (u32)wc->wr_id, wc);
	return ini;
}

/*
 * Take some completions; called with the lock of the queue, which is dropped. Initiators that are
 * told stay until the end of the RCU section. Return: how many.
 */
static int krc_verbs_cq_take(struct krc_verbs_target *target) __releases(&target->cq_lock)
{
	struct krc_verbs_initiator *told[KRC_VERBS_CQ_BATCH], *ini;
	struct ib_wc wc[KRC_VERBS_CQ_BATCH] krc_uninitialized;
	int i, n, nr = 0;

	rcu_read_lock();
	n = ib_poll_cq(target->send_cq, ARRAY_SIZE(wc), wc);
	for (i = 0; i < n; i++) {
		ini = krc_verbs_cq_tell(target, &wc[i]);
		if (ini && (!nr || told[nr - 1] != ini))
			told[nr++] = ini;
	}
	spin_unlock_bh(&target->cq_lock);
	for (i = 0; i < nr; i++)
		krc_verbs_pump(told[i]);
	rcu_read_unlock();
	return max(n, 0);
}

void krc_verbs_cq_poll(struct krc_verbs_target *target)
{
	if (spin_trylock_bh(&target->cq_lock))
		krc_verbs_cq_take(target);
}

void krc_verbs_cq_flush(struct krc_verbs_target *target)
{
	u32 i;

	for (i = 0; i < KRC_VERBS_CQ_ROUNDS; i++) {
		spin_lock_bh(&target->cq_lock);
		if (krc_verbs_cq_take(target) < KRC_VERBS_CQ_BATCH)
			break;
		cond_resched();
	}
}

static int krc_verbs_cq_softirq(struct irq_poll *iop, int budget)
{
	struct krc_verbs_target *target = container_of(iop, struct krc_verbs_target, iop);
	int n, total = 0;

	do {
		spin_lock_bh(&target->cq_lock);
		n = krc_verbs_cq_take(target);
		total += n;
	} while (n == KRC_VERBS_CQ_BATCH && total < budget);
	if (total < budget) {
		irq_poll_complete(iop);
		if (ib_req_notify_cq(target->send_cq,
				     IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0)
			irq_poll_sched(iop);
	}
	return min(total, budget);
}

static void krc_verbs_cq_completion(struct ib_cq *cq, void *context)
{
	struct krc_verbs_target *target = context;

	irq_poll_sched(&target->iop);
}

/* The queue is in error, which only a bug here can cause: nothing will complete. */
static void krc_verbs_cq_event(struct ib_event *event, void *context)
{
	struct krc_verbs_target *target = context;
	struct krc_verbs *v = target->hw;

	krc_port_err_limited(v->ibdev, target->port, "completion queue of lanes: event %d\n",
			     event->event);
	WRITE_ONCE(v->fatal, true);
	v->events->device_fatal(v->owner);
}

int krc_verbs_cq_create(struct krc_verbs_target *target)
{
	struct krc_verbs *v = target->hw;
	struct ib_cq_init_attr attr = {
		.cqe = min(KRC_VERBS_CQ_ENTRIES, v->ibdev->attrs.max_cqe),
	};
	struct ib_cq *cq;
	int err;

	BUILD_BUG_ON(KRC_VERBS_CQ_ROUNDS * KRC_VERBS_CQ_BATCH < KRC_VERBS_CQ_ENTRIES);
	spin_lock_init(&target->cq_lock);
	xa_init_flags(&target->initiators, XA_FLAGS_ALLOC1);
	irq_poll_init(&target->iop, KRC_VERBS_CQ_BUDGET, krc_verbs_cq_softirq);
	cq = ib_create_cq(v->ibdev, krc_verbs_cq_completion, krc_verbs_cq_event, target, &attr);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	target->send_cq = cq;
	err = ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
	if (err < 0)
		krc_verbs_cq_destroy(target);
	return min(err, 0);
}

void krc_verbs_cq_destroy(struct krc_verbs_target *target)
{
	irq_poll_disable(&target->iop);
	synchronize_rcu(); /* a softirq that irq_poll_disable() did not wait for */
	ib_destroy_cq(target->send_cq); /* no upcall comes after it */
	WARN_ON(!xa_empty(&target->initiators));
	xa_destroy(&target->initiators);
}
