// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: the faults. A partition works on both directions at the node that has
 * it set. Delayed frames leave in the order of their due times.
 * Runs under QEMU's big lock.
 */
#include "dev.h"
#include "qemu/cutils.h"

#define CX_REORDER_MAX_US 2000

/* splitmix64: one step a decision */
static u32 cx_fault_draw(struct cx_fault *ft)
{
	u64 z = ft->rng += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return (u32)((z ^ z >> 31) >> 32);
}

static bool cx_fault_hits(struct cx_fault *ft, u32 ppm)
{
	return ppm && cx_fault_draw(ft) % CX_PPM < ppm;
}

static struct cx_held_frame *cx_frame_hold(const struct cx_frame *f, s64 due_us)
{
	struct cx_held_frame *h = g_malloc(sizeof(*h) + f->bytes - sizeof(*f));

	memcpy(&h->frame, f, f->bytes);
	h->due_us = due_us;
	return h;
}

static void cx_fault_arm(struct cx_fault *ft)
{
	struct cx_held_frame *h = QSIMPLEQ_FIRST(&ft->delayed);
	s64 due = h ? h->due_us : INT64_MAX;

	if (ft->swapped)
		due = MIN(due, ft->swapped->due_us);
	if (due != INT64_MAX)
		timer_mod(ft->timer, due);
}

static void cx_fault_delay(struct cx_dev *dev, const struct cx_frame *f)
{
	struct cx_fault *ft = &dev->fault;
	s64 due = qemu_clock_get_us(QEMU_CLOCK_VIRTUAL) + ft->delay_us;
	struct cx_held_frame *h, *at, *prev = NULL;

	if (ft->jitter_us)
		due += cx_fault_draw(ft) % ft->jitter_us;
	h = cx_frame_hold(f, due);
	QSIMPLEQ_FOREACH(at, &ft->delayed, link)
	{
		if (at->due_us > due)
			break;
		prev = at;
	}
	if (prev)
		QSIMPLEQ_INSERT_AFTER(&ft->delayed, prev, h, link);
	else
		QSIMPLEQ_INSERT_HEAD(&ft->delayed, h, link);
	cx_count(dev, CX_CTR_FAULT_DELAYED, 1);
	cx_fault_arm(ft);
}

static void cx_fault_forward(struct cx_dev *dev, const struct cx_frame *f)
{
	if (dev->fault.delay_us || dev->fault.jitter_us)
		cx_fault_delay(dev, f);
	else
		cx_fabric_route(dev, f);
}

static void cx_fault_release_swapped(struct cx_dev *dev)
{
	struct cx_held_frame *h = dev->fault.swapped;

	if (!h)
		return;
	dev->fault.swapped = NULL;
	cx_fault_forward(dev, &h->frame);
	g_free(h);
}

static void cx_fault_timer(void *opaque)
{
	struct cx_dev *dev = opaque;
	struct cx_fault *ft = &dev->fault;
	s64 now = qemu_clock_get_us(QEMU_CLOCK_VIRTUAL);
	struct cx_held_frame *h;

	while ((h = QSIMPLEQ_FIRST(&ft->delayed)) && h->due_us <= now) {
		QSIMPLEQ_REMOVE_HEAD(&ft->delayed, link);
		cx_fabric_route(dev, &h->frame);
		g_free(h);
	}
	if (ft->swapped && ft->swapped->due_us <= now)
		cx_fault_release_swapped(dev);
	cx_fault_arm(ft);
	cx_dev_kick(dev);
}

void cx_fault_init(struct cx_dev *dev)
{
	struct cx_fault *ft = &dev->fault;

	ft->rng = (u64)dev->prop.seed << 32 | dev->prop.node;
	ft->loss_ppm = dev->prop.loss_ppm;
	ft->rx_loss_ppm = dev->prop.rx_loss_ppm;
	ft->dup_ppm = dev->prop.dup_ppm;
	ft->reorder_ppm = dev->prop.reorder_ppm;
	ft->delay_us = dev->prop.delay_us;
	ft->jitter_us = dev->prop.jitter_us;
	ft->cmd_delay_ms = dev->prop.cmd_delay_ms;
	QSIMPLEQ_INIT(&ft->delayed);
	ft->timer = timer_new_us(QEMU_CLOCK_VIRTUAL, cx_fault_timer, dev);
}

void cx_fault_fini(struct cx_dev *dev)
{
	struct cx_fault *ft = &dev->fault;
	struct cx_held_frame *h;

	if (!ft->timer)
		return;
	while ((h = QSIMPLEQ_FIRST(&ft->delayed))) {
		QSIMPLEQ_REMOVE_HEAD(&ft->delayed, link);
		g_free(h);
	}
	g_free(ft->swapped);
	timer_free(ft->timer);
	memset(ft, 0, sizeof(*ft));
}

static void cx_fault_trace(struct cx_dev *dev, const char *what, const struct cx_frame *f)
{
	const struct cx_pkt *p = (const struct cx_pkt *)f->data;

	if (f->kind == CX_FRAME_RDMA)
		cx_trace(dev, CX_TR_FAULT, "%s RDMA op=%u dqpn=0x%x psn=0x%x", what, p->op, p->dqpn,
			 p->psn);
	else
		cx_trace(dev, CX_TR_FAULT, "%s Ethernet frame of %u bytes", what, f->bytes);
}

void cx_fault_send(struct cx_dev *dev, const struct cx_frame *f)
{
	struct cx_fault *ft = &dev->fault;

	if (cx_fault_hits(ft, ft->loss_ppm)) {
		cx_count(dev, CX_CTR_FAULT_LOST, 1);
		cx_fault_trace(dev, "lost", f);
		return;
	}
	if (!ft->swapped && cx_fault_hits(ft, ft->reorder_ppm)) {
		cx_count(dev, CX_CTR_FAULT_REORDERED, 1);
		cx_fault_trace(dev, "reordered", f);
		ft->swapped =
			cx_frame_hold(f, qemu_clock_get_us(QEMU_CLOCK_VIRTUAL) + CX_REORDER_MAX_US);
		cx_fault_arm(ft);
		return;
	}
	cx_fault_forward(dev, f);
	if (cx_fault_hits(ft, ft->dup_ppm)) {
		cx_count(dev, CX_CTR_FAULT_DUPLICATED, 1);
		cx_fault_trace(dev, "duplicated", f);
		cx_fault_forward(dev, f);
	}
	cx_fault_release_swapped(dev);
}

bool cx_fault_receives(struct cx_dev *dev, const struct cx_frame *f)
{
	if (cx_fault_partitioned(dev, f->node)) {
		cx_count(dev, CX_CTR_FAULT_PARTITION, 1);
		return false;
	}
	if (cx_fault_hits(&dev->fault, dev->fault.rx_loss_ppm)) {
		cx_count(dev, CX_CTR_FAULT_LOST, 1);
		cx_fault_trace(dev, "lost on arrival", f);
		return false;
	}
	return true;
}

bool cx_fault_partitioned(const struct cx_dev *dev, u32 node)
{
	return dev->fault.any_partition &&
	       dev->fault.partition[node / 64 % 1024] & 1ull << (node % 64);
}

int cx_fault_set_partition(struct cx_dev *dev, const char *nodes)
{
	g_auto(GStrv) word = g_strsplit_set(nodes, ",+", 0);
	u64 mask[1024] = { 0 };
	unsigned int node, i, nr = 0;

	for (i = 0; word[i]; i++) {
		if (!*word[i])
			continue;
		if (qemu_strtoui(word[i], NULL, 10, &node) || node > 0xffff)
			return -EINVAL;
		mask[node / 64] |= 1ull << (node % 64);
		nr++;
	}
	memcpy(dev->fault.partition, mask, sizeof(mask));
	dev->fault.any_partition = nr;
	return 0;
}
