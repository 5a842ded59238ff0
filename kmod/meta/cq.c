// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the completion queue of a MetaServer connection's READs and SENDs. A task that
 * busy-polls for its READ polls the queue; the queue is armed only while a completion is
 * outstanding for which no task polls. Completions of READs and SENDs need no order, so
 * several tasks may poll concurrently.
 * Locking: none of its own; the driver locks each poll. Tasks poll under RCU, since a task may
 * have a connection when its queue is destroyed already.
 */
#include "base/compat.h"
#include "base/meter.h"
#include "meta/meta_priv.h"

#define KRC_META_POLL_BUDGET 64 /* completions per softirq run */
#define KRC_META_POLL_BATCH 4 /* completions per ib_poll_cq() */

/* Handle at most @budget completions. Context: bottom halves off. Return: number handled. */
static int krc_meta_cq_take(struct krc_meta_cq *cq, int budget)
{
	struct ib_wc wc[KRC_META_POLL_BATCH] krc_uninitialized;
	int total = 0;

	while (total < budget) {
		int i, n = ib_poll_cq(cq->ib, min(budget - total, KRC_META_POLL_BATCH), wc);

		for (i = 0; i < n; i++)
			wc[i].wr_cqe->done(cq->ib, &wc[i]);
		if (n <= 0)
			break;
		krc_meter_took(n);
		total += n;
	}
	return total;
}

/* Arm the interrupt, or raise the softirq if there are completions already. */
static void krc_meta_cq_arm(struct krc_meta_cq *cq)
{
	if (ib_req_notify_cq(cq->ib, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0)
		irq_poll_sched(&cq->iop);
}

static int krc_meta_cq_softirq(struct irq_poll *iop, int budget)
{
	struct krc_meta_cq *cq = container_of(iop, struct krc_meta_cq, iop);
	int n = krc_meta_cq_take(cq, budget);

	if (n < budget) {
		irq_poll_complete(iop);
		if (atomic_read(&cq->unpolled))
			krc_meta_cq_arm(cq);
	}
	return n;
}

static void krc_meta_cq_event(struct ib_cq *ib, void *context)
{
	struct krc_meta_cq *cq = context;

	irq_poll_sched(&cq->iop);
}

int krc_meta_cq_create(struct krc_meta_cq *cq, struct ib_device *ibdev, int entries)
{
	struct ib_cq_init_attr attr = { .cqe = entries };
	struct ib_cq *ib;

	irq_poll_init(&cq->iop, KRC_META_POLL_BUDGET, krc_meta_cq_softirq);
	ib = ib_create_cq(ibdev, krc_meta_cq_event, NULL, cq, &attr);
	if (IS_ERR(ib))
		return PTR_ERR(ib);
	cq->ib = ib;
	return 0;
}

void krc_meta_cq_destroy(struct krc_meta_cq *cq)
{
	if (!cq->ib)
		return;
	WRITE_ONCE(cq->gone, true);
	irq_poll_disable(&cq->iop);
	synchronize_rcu(); /* tasks that poll; a softirq run that has called irq_poll_complete() */
	ib_destroy_cq(cq->ib);
	synchronize_rcu(); /* rxe calls krc_meta_cq_event() in a softirq of its own */
	cq->ib = NULL;
}

void krc_meta_cq_poll(struct krc_meta_cq *cq)
{
	rcu_read_lock_bh();
	if (!READ_ONCE(cq->gone))
		krc_meta_cq_take(cq, KRC_META_POLL_BATCH);
	rcu_read_unlock_bh();
}

void krc_meta_cq_expect(struct krc_meta_cq *cq)
{
	atomic_inc(&cq->unpolled);
	krc_meta_cq_arm(cq);
}

void krc_meta_cq_expected(struct krc_meta_cq *cq)
{
	atomic_dec(&cq->unpolled);
}
