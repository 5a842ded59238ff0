// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * One RDMA device: protection domain, completion queues, send buffers, events;
 * receive.c has the shared receive queue, memory.c the table's memory.
 *
 * No queue can overflow. The shared receive queue and its completion queue
 * hold one entry a receive buffer, the other completion queue one a send
 * buffer. While no send buffer is left, receives are not polled, the receive
 * queue runs dry and the NICs of the clients wait.
 *
 * librdmacm opens each device once, so its context names the device.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "metaserver/log.h"
#include "metaserver/memory.h"

#define MS_POLL_BATCH 32
#define MS_POLL_TURN 2048 /* completions an iteration of the loop */
#define MS_NIL UINT32_MAX

static int ms_errno(void)
{
	return errno ? -errno : -EIO;
}

/* send buffers */

static int ms_device_open_send(struct ms_device *dev)
{
	size_t bytes = (size_t)dev->send.nr * KRP_MSG_BYTES_MAX;
	uint32_t i;

	dev->send.bytes = aligned_alloc(4096, (bytes + 4095) & ~4095UL);
	dev->send.buffers = calloc(dev->send.nr, sizeof(*dev->send.buffers));
	if (!dev->send.bytes || !dev->send.buffers)
		return -ENOMEM;
	dev->send.free = MS_NIL;
	for (i = dev->send.nr; i--;) {
		dev->send.buffers[i].bytes = dev->send.bytes + (size_t)i * KRP_MSG_BYTES_MAX;
		dev->send.buffers[i].next = dev->send.free;
		dev->send.free = i;
	}
	return ms_memory_register(dev, dev->send.bytes, bytes, IBV_ACCESS_LOCAL_WRITE,
				  &dev->send.mr);
}

static void ms_device_release(struct ms_device *dev, uint32_t index)
{
	struct ms_buffer *buf = &dev->send.buffers[index];

	buf->conn = NULL;
	buf->stamp++;
	buf->next = dev->send.free;
	dev->send.free = index;
	dev->send.used--;
	if (buf->notify)
		dev->send.notifies--;
}

int ms_device_post(struct ms_conn *conn, const void *msg, unsigned int bytes, bool notify)
{
	struct ms_device *dev = conn->dev;
	struct ibv_sge sge = { .length = bytes, .lkey = dev->send.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	uint32_t index = dev->send.free;
	struct ms_buffer *buf;
	int err;

	/* half of the buffers are reserved for answers */
	if (index == MS_NIL || (notify && dev->send.notifies >= dev->send.nr / 2))
		return -ENOBUFS;
	buf = &dev->send.buffers[index];
	memcpy(buf->bytes, msg, bytes);
	sge.addr = (uint64_t)(uintptr_t)buf->bytes;
	wr.wr_id = (uint64_t)buf->stamp << 32 | index;
	err = -ibv_post_send(conn->qp, &wr, &bad);
	if (err)
		return err;

	dev->send.free = buf->next;
	dev->send.used++;
	dev->send.notifies += notify;
	buf->notify = notify;
	buf->conn = conn;
	conn->sends_out++;
	conn->notifies_out += notify;
	return 0;
}

void ms_device_forget(struct ms_conn *conn)
{
	struct ms_device *dev = conn->dev;
	uint32_t i;

	for (i = 0; conn->sends_out && i < dev->send.nr; i++) {
		if (dev->send.buffers[i].conn != conn)
			continue;
		ms_device_release(dev, i);
		conn->sends_out--;
	}
}

/* completions */

static void ms_device_sent(struct ms_device *dev, const struct ibv_wc *wc)
{
	uint32_t index = (uint32_t)wc->wr_id;
	struct ms_buffer *buf;
	struct ms_conn *conn;
	bool notify;

	if (index >= dev->send.nr)
		return;
	buf = &dev->send.buffers[index];
	conn = buf->conn;
	notify = buf->notify;
	if (buf->stamp != (uint32_t)(wc->wr_id >> 32) || !conn)
		return; /* of a connection that was freed before */
	if (wc->status != IBV_WC_SUCCESS)
		dev->srv->stats.sends_failed++;
	ms_device_release(dev, index);
	ms_conn_sent(conn, notify, wc->status == IBV_WC_SUCCESS);
}

static unsigned int ms_device_poll_sends(struct ms_device *dev)
{
	struct ibv_wc wc[MS_POLL_BATCH];
	unsigned int done = 0;
	int i, n;

	do {
		n = ibv_poll_cq(dev->send.cq, MS_POLL_BATCH, wc);
		for (i = 0; i < n; i++)
			ms_device_sent(dev, &wc[i]);
		done += n > 0 ? (unsigned int)n : 0;
	} while (n == MS_POLL_BATCH && done < MS_POLL_TURN);
	return done;
}

void ms_device_poll(struct ms_device *dev)
{
	unsigned int sent, received, done = 0;
	uint32_t room;

	do {
		sent = ms_device_poll_sends(dev);
		room = dev->send.nr - dev->send.used;
		received = room ? ms_recv_poll(dev, room) : 0;
		done += sent + received;
	} while (received && done < MS_POLL_TURN);

	/* with no send buffer left, the next completion of a send calls this again */
	if ((received && room) || sent >= MS_POLL_TURN)
		ev_idle_start(dev->srv->loop, &dev->more);
	else
		ev_idle_stop(dev->srv->loop, &dev->more);
}

static void ms_device_on_more(struct ev_loop *loop, ev_idle *w, int events)
{
	(void)loop;
	(void)events;
	ms_device_poll(w->data);
}

static void ms_device_on_cq(struct ev_loop *loop, ev_io *w, int events)
{
	struct ms_device *dev = w->data;
	struct ibv_cq *cq;
	void *arg;

	(void)loop;
	(void)events;
	while (!ibv_get_cq_event(dev->channel, &cq, &arg)) {
		ibv_ack_cq_events(cq, 1);
		ibv_req_notify_cq(cq, 0);
	}
	ms_device_poll(dev);
}

/* events of the device */

static struct ms_conn *ms_conn_of_qp(struct ms_device *dev, const struct ibv_async_event *event)
{
	return ms_conn_find(dev, event->element.qp->qp_num);
}

/* Return: false if the device is broken. */
static bool ms_device_event(struct ms_device *dev, enum ibv_event_type type, struct ms_conn *conn,
			    unsigned int port)
{
	switch (type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		if (conn)
			ms_conn_broken(conn,
				       "client did what it may not, or its queue pair failed");
		return true;
	case IBV_EVENT_QP_LAST_WQE_REACHED: /* raised by each queue pair that ends */
		if (conn)
			ms_conn_last_wqe(conn);
		return true;
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		ms_recv_low(dev);
		return true;
	case IBV_EVENT_COMM_EST:
		if (conn)
			rdma_notify(conn->id, type);
		return true;
	case IBV_EVENT_PKEY_CHANGE:
		ms_log(LOG_NOTICE, "device '%s': port %u: %s", dev->name, port,
		       ibv_event_type_str(type));
		ms_conn_pkeys_changed(dev, port);
		return true;
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
		ms_log(LOG_NOTICE, "device '%s': %s", dev->name, ibv_event_type_str(type));
		return true;
	case IBV_EVENT_CQ_ERR:
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_DEVICE_FATAL:
		return false;
	default:
		ms_log(LOG_DEBUG, "device '%s': %s", dev->name, ibv_event_type_str(type));
		return true;
	}
}

static void ms_device_on_async(struct ev_loop *loop, ev_io *w, int events)
{
	struct ms_device *dev = w->data;
	struct ibv_async_event event;

	(void)loop;
	(void)events;
	while (!ibv_get_async_event(dev->verbs, &event)) {
		enum ibv_event_type type = event.event_type;
		struct ms_conn *conn = NULL;
		unsigned int port = 0;

		if (type == IBV_EVENT_PKEY_CHANGE)
			port = (unsigned int)event.element.port_num;
		else if (type <= IBV_EVENT_PATH_MIG_ERR && type != IBV_EVENT_CQ_ERR)
			conn = ms_conn_of_qp(dev, &event);
		ibv_ack_async_event(&event); /* destroying a queue pair waits for it */
		if (!ms_device_event(dev, type, conn, port)) {
			ms_device_remove(dev, ibv_event_type_str(type));
			return;
		}
	}
}

static int ms_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

static void ms_device_watch(struct ms_device *dev)
{
	struct ev_loop *loop = dev->srv->loop;

	ev_io_init(&dev->cq_io, ms_device_on_cq, dev->channel->fd, EV_READ);
	dev->cq_io.data = dev;
	ev_io_start(loop, &dev->cq_io);
	ev_io_init(&dev->async_io, ms_device_on_async, dev->verbs->async_fd, EV_READ);
	dev->async_io.data = dev;
	ev_io_start(loop, &dev->async_io);
	ev_idle_init(&dev->more, ms_device_on_more);
	ev_set_priority(&dev->more, EV_MAXPRI); /* in each iteration, also of a busy loop */
	dev->more.data = dev;
}

/* life */

static uint32_t ms_clamp(const struct ms_device *dev, const char *what, uint32_t want, int max)
{
	if (max <= 0 || want <= (uint32_t)max)
		return want;
	ms_log(LOG_NOTICE, "device '%s': %s reduced from %u to the device's %d", dev->name, what,
	       want, max);
	return (uint32_t)max;
}

/* The device may have too few queue pairs: a client refused then meets no limit of ours. */
static void ms_device_compare(const struct ms_device *dev, int max_qp)
{
	uint64_t most = (uint64_t)dev->srv->conf.clients_max + MS_LEAVING_MAX + MS_STRANGERS_MAX;

	if (max_qp <= 0 || most <= (uint64_t)max_qp)
		return;
	ms_log(LOG_WARNING,
	       "device '%s': has %d queue pairs for all its programs, and clients_max %u may take "
	       "%llu; more clients than that are refused for lack of resources",
	       dev->name, max_qp, dev->srv->conf.clients_max, (unsigned long long)most);
}

static int ms_device_size(struct ms_device *dev)
{
	struct ibv_device_attr attr;
	int err = -ibv_query_device(dev->verbs, &attr);

	if (err)
		return err;
	dev->recv.nr = ms_clamp(dev, "srq_depth", dev->srv->conf.srq_depth, attr.max_srq_wr);
	dev->recv.nr = ms_clamp(dev, "srq_depth", dev->recv.nr, attr.max_cqe);
	dev->send.nr = MS_SENDS_MAX;
	if (attr.max_cqe > 0 && attr.max_cqe < (int)dev->send.nr)
		dev->send.nr = (uint32_t)attr.max_cqe;
	ms_device_compare(dev, attr.max_qp);
	dev->rd_atomic = attr.max_qp_rd_atom > 255 ? 255 : (uint8_t)attr.max_qp_rd_atom;
	return 0;
}

static int ms_device_open_queues(struct ms_device *dev)
{
	int err;

	dev->pd = ibv_alloc_pd(dev->verbs);
	if (!dev->pd)
		return ms_errno();
	dev->channel = ibv_create_comp_channel(dev->verbs);
	if (!dev->channel)
		return ms_errno();
	err = ms_nonblock(dev->channel->fd);
	if (!err)
		err = ms_nonblock(dev->verbs->async_fd);
	if (err)
		return err;
	dev->recv.cq = ibv_create_cq(dev->verbs, (int)dev->recv.nr, dev, dev->channel, 0);
	if (!dev->recv.cq)
		return ms_errno();
	dev->send.cq = ibv_create_cq(dev->verbs, (int)dev->send.nr, dev, dev->channel, 0);
	if (!dev->send.cq)
		return ms_errno();
	err = ms_recv_open(dev);
	if (!err)
		err = ms_device_open_send(dev);
	if (!err)
		err = -ibv_req_notify_cq(dev->recv.cq, 0);
	if (!err)
		err = -ibv_req_notify_cq(dev->send.cq, 0);
	return err;
}

static void ms_device_close(struct ms_device *dev)
{
	struct ev_loop *loop = dev->srv->loop;

	if (ev_is_active(&dev->cq_io)) {
		ev_io_stop(loop, &dev->cq_io);
		ev_io_stop(loop, &dev->async_io);
		ev_idle_stop(loop, &dev->more);
	}
	ms_memory_close(dev);
	ms_recv_close(dev);
	if (dev->recv.cq)
		ibv_destroy_cq(dev->recv.cq);
	if (dev->send.cq)
		ibv_destroy_cq(dev->send.cq);
	if (dev->channel)
		ibv_destroy_comp_channel(dev->channel);
	ms_memory_unregister(dev, &dev->send.mr);
	if (dev->pd)
		ibv_dealloc_pd(dev->pd);
	free(dev->send.bytes);
	free(dev->send.buffers);
}

static int ms_device_open(struct ms_server *srv, struct rdma_cm_id *id, struct ms_device **ret_dev)
{
	struct ms_device *dev = calloc(1, sizeof(*dev));
	int err;

	if (!dev)
		return -ENOMEM;
	dev->srv = srv;
	dev->verbs = id->verbs;
	strncpy(dev->name, ibv_get_device_name(id->verbs->device), sizeof(dev->name) - 1);
	err = ms_device_size(dev);
	if (!err)
		err = ms_device_open_queues(dev);
	if (!err)
		err = ms_memory_open(dev);
	if (err) {
		ms_log(LOG_ERR, "device '%s': cannot be used (%s)%s", dev->name, strerror(-err),
		       err == -ENOMEM ? "; see LimitMEMLOCK= of the unit" : "");
		ms_device_close(dev);
		free(dev);
		return err;
	}
	ms_device_watch(dev);
	dev->next = srv->devices;
	srv->devices = dev;
	ms_log(LOG_INFO, "device '%s': in use, %u receive and %u send buffers", dev->name,
	       dev->recv.nr, dev->send.nr);
	*ret_dev = dev;
	return 0;
}

int ms_device_get(struct ms_server *srv, struct rdma_cm_id *id, struct ms_device **ret_dev)
{
	struct ms_device *dev;

	for (dev = srv->devices; dev; dev = dev->next) {
		if (dev->verbs == id->verbs) {
			*ret_dev = dev;
			return 0;
		}
	}
	return ms_device_open(srv, id, ret_dev);
}

/*
 * All connections of the device end here, in one piece, and not by the steps of ms_conn_check():
 * librdmacm keeps its context, and the kernel may keep the device, until the last object on it is
 * gone, and nothing of it may be used behind this. The loop stands still while the NIC destroys
 * one queue pair after the other; ms_server_busy() tells that it lives.
 */
void ms_device_remove(struct ms_device *dev, const char *why)
{
	struct ms_server *srv = dev->srv;
	struct ms_device **link = &srv->devices;
	struct ms_conn *conn, *next;

	if (why) {
		ms_log(LOG_WARNING, "device '%s': given up with %u connections: %s", dev->name,
		       dev->conns_nr, why);
		srv->stats.device_removals++;
	}
	while (*link != dev)
		link = &(*link)->next;
	*link = dev->next;

	for (conn = srv->conns.first; conn; conn = conn->next) {
		if (conn->dev != dev)
			continue;
		ms_conn_destroy_qp(conn);
		ms_server_busy(srv);
	}
	ms_device_close(dev);
	for (conn = srv->conns.first; conn; conn = next) {
		next = conn->next;
		if (conn->dev != dev)
			continue;
		ms_conn_free(conn);
		ms_server_busy(srv);
	}
	free(dev);
}
