// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The shared receive queue of a device: no receive is ever lost.
 *
 * A receive buffer is posted again when its completion is taken. Some drivers
 * (mlx5) remove the completions of a queue pair from the completion queue when
 * that queue pair is destroyed, and those buffers would be lost. So the queue pair
 * is put into error, the device's event that it takes no more receives is awaited
 * (IBV_EVENT_QP_LAST_WQE_REACHED), all entries that are in the completion queue
 * then are handled, and only after that the queue pair is destroyed.
 *
 * If receives are lost all the same, the NIC reports it: it raises an event when fewer
 * than half are left. Either as many completions are found as the NIC has used up, or
 * receives are lost, and then the device is reopened.
 */
#include <errno.h>
#include <stdlib.h>

#include "metaserver/log.h"
#include "metaserver/memory.h"

#define MS_RECV_BATCH 32

static int ms_recv_post(struct ms_device *dev, uint32_t index)
{
	struct ibv_sge sge = {
		.addr = (uint64_t)(uintptr_t)(dev->recv.bytes + (size_t)index * KRP_MSG_BYTES_MAX),
		.length = KRP_MSG_BYTES_MAX,
		.lkey = dev->recv.mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = index, .sg_list = &sge, .num_sge = 1 }, *bad;
	int err = -ibv_post_srq_recv(dev->recv.srq, &wr, &bad);

	if (err)
		return err;
	dev->recv.posted[index] = true;
	dev->recv.posted_nr++;
	return 0;
}

int ms_recv_open(struct ms_device *dev)
{
	struct ibv_srq_init_attr attr = { .srq_context = dev };
	size_t bytes = (size_t)dev->recv.nr * KRP_MSG_BYTES_MAX;
	uint32_t i;
	int err;

	attr.attr.max_wr = dev->recv.nr;
	attr.attr.max_sge = 1;
	dev->recv.srq = ibv_create_srq(dev->pd, &attr);
	if (!dev->recv.srq)
		return errno ? -errno : -EIO;
	dev->recv.bytes = aligned_alloc(4096, (bytes + 4095) & ~4095UL);
	dev->recv.posted = calloc(dev->recv.nr, sizeof(*dev->recv.posted));
	if (!dev->recv.bytes || !dev->recv.posted)
		return -ENOMEM;
	err = ms_memory_register(dev, dev->recv.bytes, bytes, IBV_ACCESS_LOCAL_WRITE,
				 &dev->recv.mr);
	for (i = 0; !err && i < dev->recv.nr; i++)
		err = ms_recv_post(dev, i);
	return err;
}

void ms_recv_close(struct ms_device *dev)
{
	if (dev->recv.srq)
		ibv_destroy_srq(dev->recv.srq);
	ms_memory_unregister(dev, &dev->recv.mr);
	free(dev->recv.bytes);
	free(dev->recv.posted);
}

static void ms_recv_complete(struct ms_device *dev, const struct ibv_wc *wc)
{
	uint32_t index = (uint32_t)wc->wr_id;
	struct ms_conn *conn = ms_conn_find(dev, wc->qp_num);

	if (index >= dev->recv.nr || !dev->recv.posted[index])
		return;
	dev->recv.posted[index] = false;
	dev->recv.posted_nr--;
	if (conn && wc->status == IBV_WC_SUCCESS && wc->opcode == IBV_WC_RECV)
		ms_conn_received(conn, dev->recv.bytes + (size_t)index * KRP_MSG_BYTES_MAX,
				 wc->byte_len);
	else if (conn && wc->status != IBV_WC_WR_FLUSH_ERR)
		ms_conn_broken(conn, wc->status == IBV_WC_LOC_LEN_ERR ? "message is too long"
								      : "receive failed");
	ms_recv_post(dev, index); /* or ms_recv_check() does */
}

unsigned int ms_recv_poll(struct ms_device *dev, uint32_t room)
{
	int want = room < MS_RECV_BATCH ? (int)room : MS_RECV_BATCH, i, n;
	struct ibv_wc wc[MS_RECV_BATCH];

	n = ibv_poll_cq(dev->recv.cq, want, wc);
	for (i = 0; i < n; i++)
		ms_recv_complete(dev, &wc[i]);
	dev->recv.polled += n > 0 ? (unsigned int)n : 0;
	dev->recv.empties += n >= 0 && n < want;
	return n > 0 ? (unsigned int)n : 0;
}

struct ms_recv_mark ms_recv_mark(const struct ms_device *dev)
{
	return (struct ms_recv_mark){ dev->recv.polled, dev->recv.empties };
}

bool ms_recv_passed(const struct ms_device *dev, const struct ms_recv_mark *mark)
{
	/* the completion queue has an entry for each buffer and no more */
	return dev->recv.empties != mark->empties ||
	       dev->recv.polled - mark->polled >= dev->recv.nr;
}

void ms_recv_low(struct ms_device *dev)
{
	struct ms_recv_watch *w = &dev->recv.watch;

	w->armed = false;
	w->low = true;
	/* this event may have waited while the marks were moved on once, not twice */
	w->since = w->before;
	w->base = ms_recv_mark(dev);
}

/*
 * When the NIC reported that fewer than half of the receives were left, as many should have
 * had a completion. Half of those may be missing, because a NIC prefetches receives, and one
 * for each client that is not authenticated, since it may hold one with the first half of a
 * message. That is no reason to reopen the device and to disconnect all clients: the receive
 * comes back when that client is disconnected. Return: true if more are missing.
 */
static bool ms_recv_lost(const struct ms_device *dev)
{
	uint64_t known = dev->recv.polled - dev->recv.watch.since.polled +
			 dev->srv->hub.stats.sessions_pending;

	return known < dev->recv.posted_nr / 4;
}

bool ms_recv_check(struct ms_device *dev)
{
	struct ibv_srq_attr attr = { .srq_limit = dev->recv.nr / 2 };
	struct ms_recv_watch *w = &dev->recv.watch;
	uint32_t i;

	for (i = 0; dev->recv.posted_nr < dev->recv.nr && i < dev->recv.nr; i++)
		if (!dev->recv.posted[i] && ms_recv_post(dev, i))
			break;
	if (w->low && !ms_recv_passed(dev, &w->base))
		return true;
	if (w->low && ms_recv_lost(dev))
		return false;
	w->low = false;
	w->before = w->base;
	w->base = ms_recv_mark(dev);
	if (!w->armed) { /* not every device supports it; then it is not watched */
		w->before = w->base;
		w->armed = !ibv_modify_srq(dev->recv.srq, &attr, IBV_SRQ_LIMIT);
	}
	return true;
}
