// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The context's thread: one epoll over rdma_cm events, completion channels and
 * an eventfd by which other threads wake it.
 *
 * It blocks all signals. No lock is held while it waits, and none while a
 * subscriber's function runs except sub_lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "client/lib/lib.h"

#define KRL_BATCH 16 /* messages handled before events are delivered */
#define KRL_BATCHES 8 /* of one server before others have their turn */

_Static_assert(KRL_BATCH *(KRP_NOTIFY_CHANGES + 1) <= KRL_EVENTS_MAX,
	       "the events of a batch have room");

void krl_loop_wake(struct krcore_ctx *ctx)
{
	uint64_t one = 1;

	/* EAGAIN, a full counter: the wake-up is pending already */
	while (write(ctx->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

/* Watch the completion channel of a new connection. */
int krl_loop_watch(struct krl_server *srv)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = srv };

	if (epoll_ctl(srv->ctx->epoll_fd, EPOLL_CTL_ADD, srv->conn->channel->fd, &event) < 0)
		return -errno;
	return 0;
}

/* Receive one batch of messages. Return: true if there may be more. */
static bool krl_loop_recv_batch(struct krl_server *srv)
{
	struct krl_conn *conn = srv->conn;
	struct ibv_wc wc[KRL_BATCH];
	int i, nr, err;

	nr = ibv_poll_cq(conn->recv_cq, KRL_BATCH, wc);
	for (i = 0; i < nr && !atomic_load(&srv->failed); i++) {
		if (wc[i].status != IBV_WC_SUCCESS) {
			krl_server_fail(srv, -ECONNRESET, "the connection broke (%s)",
					ibv_wc_status_str(wc[i].status));
			break;
		}
		krl_server_received(srv, conn->mem->recv[wc[i].wr_id], wc[i].byte_len);
		err = krl_conn_recv(conn, (unsigned int)wc[i].wr_id);
		if (err)
			krl_server_fail(srv, err, "posting a receive buffer failed (%s)",
					strerror(-err));
	}
	krl_events_deliver(srv->ctx);
	return nr == KRL_BATCH && !atomic_load(&srv->failed);
}

/* Receive what is there; of a server that does not stop sending the rest waits for the next turn. */
static void krl_loop_recv(struct krl_server *srv)
{
	unsigned int i;

	srv->more = false;
	for (i = 0; i < KRL_BATCHES; i++)
		if (!srv->conn || !srv->conn->recv_cq || atomic_load(&srv->failed) ||
		    !krl_loop_recv_batch(srv))
			return;
	srv->more = true;
}

/* The turn of all servers of which there is more. */
static void krl_loop_more(struct krcore_ctx *ctx)
{
	unsigned int i;

	for (i = 0; i < ctx->servers_nr; i++)
		if (ctx->servers[i].more)
			krl_loop_recv(&ctx->servers[i]);
}

/* The completion channel of a connection is readable: one event, others come with the next turn. */
static void krl_loop_channel(struct krl_server *srv)
{
	struct krl_conn *conn = srv->conn;
	struct ibv_cq *cq;
	void *arg;

	if (!conn || ibv_get_cq_event(conn->channel, &cq, &arg))
		return;
	conn->events[cq == conn->recv_cq]++;
	if (cq == conn->recv_cq) {
		ibv_req_notify_cq(cq, 0);
		krl_loop_recv(srv);
	} else if (krl_server_state(srv) <= KRP_SESSION_LOAD) { /* look-ups poll it from then on */
		ibv_req_notify_cq(cq, 0);
		krl_connect_loading(srv);
	}
}

static void krl_loop_cm(struct krcore_ctx *ctx)
{
	struct rdma_cm_event *event;

	while (!rdma_get_cm_event(ctx->cm, &event)) {
		struct krl_server *srv = event->id->context;
		enum rdma_cm_event_type type = event->event;
		bool current = srv->conn && srv->conn->id == event->id;
		int status = event->status;

		if (type == RDMA_CM_EVENT_REJECTED)
			srv->rejected = krp_reject_reason(event->param.conn.private_data,
							  event->param.conn.private_data_len);
		rdma_ack_cm_event(event); /* destroying the id would wait for this */
		if (!current || atomic_load(&srv->failed))
			continue;
		if (type == RDMA_CM_EVENT_DISCONNECTED)
			krl_loop_recv(srv); /* a refusal may have come before it */
		if (!atomic_load(&srv->failed))
			krl_connect_cm_event(srv, type, status);
	}
}

/* Do what is due. Return: ms until the next time. */
static int krl_loop_timers(struct krcore_ctx *ctx)
{
	uint64_t now_ns = krl_now_ns(), next_ns = now_ns + 3600000000000ULL, due_ns;
	unsigned int i;

	for (i = 0; i < ctx->servers_nr; i++) {
		struct krl_server *srv = &ctx->servers[i];

		due_ns = krl_server_timers(srv, now_ns);
		if (srv->more)
			due_ns = 0;
		if (due_ns < next_ns)
			next_ns = due_ns;
	}
	due_ns = krl_srv_timers(ctx, now_ns);
	if (due_ns < next_ns)
		next_ns = due_ns;
	now_ns = krl_now_ns();
	return next_ns <= now_ns ? 0 : (int)((next_ns - now_ns) / 1000000) + 1;
}

static void *krl_loop_thread(void *arg)
{
	struct krcore_ctx *ctx = arg;
	struct epoll_event events[KRL_BATCH];
	unsigned int i;
	uint64_t wakes;

	while (!atomic_load(&ctx->stop)) {
		int n, nr = epoll_wait(ctx->epoll_fd, events, KRL_BATCH, krl_loop_timers(ctx));

		krl_loop_more(ctx);
		for (n = 0; n < nr; n++) {
			void *what = events[n].data.ptr;

			if (what == ctx)
				krl_loop_cm(ctx);
			else if (what)
				krl_loop_channel(what);
			else if (read(ctx->wake_fd, &wakes, sizeof(wakes)) < 0)
				continue; /* spurious wake-up */
		}
	}
	for (i = 0; i < ctx->servers_nr; i++)
		krl_server_end(&ctx->servers[i]);
	return NULL;
}

static int krl_loop_fds(struct krcore_ctx *ctx)
{
	struct epoll_event wake = { .events = EPOLLIN, .data.ptr = NULL };
	struct epoll_event cm = { .events = EPOLLIN, .data.ptr = ctx };
	int flags;

	ctx->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	ctx->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ctx->epoll_fd < 0 || ctx->wake_fd < 0)
		return krl_error(-errno, "no file descriptors (%s)", strerror(errno));
	ctx->cm = rdma_create_event_channel();
	if (!ctx->cm)
		return krl_error(-ENODEV, "no RDMA device: rdma_cm is not available (%s)",
				 strerror(errno));
	flags = fcntl(ctx->cm->fd, F_GETFL);
	if (flags < 0 || fcntl(ctx->cm->fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
	    epoll_ctl(ctx->epoll_fd, EPOLL_CTL_ADD, ctx->wake_fd, &wake) < 0 ||
	    epoll_ctl(ctx->epoll_fd, EPOLL_CTL_ADD, ctx->cm->fd, &cm) < 0)
		return krl_error(-errno, "watching rdma_cm failed (%s)", strerror(errno));
	return 0;
}

/* Return: 0, -ENODEV, or another negative errno with the error text set. */
int krl_loop_start(struct krcore_ctx *ctx)
{
	sigset_t all, before;
	int err;

	err = krl_loop_fds(ctx);
	if (err)
		return err;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = -pthread_create(&ctx->thread, NULL, krl_loop_thread, ctx);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err)
		return krl_error(err, "no thread (%s)", strerror(-err));
	pthread_setname_np(ctx->thread, "krcore");
	ctx->running = true;
	return 0;
}

/* Undo krl_loop_start(), also after it failed. */
void krl_loop_stop(struct krcore_ctx *ctx)
{
	if (ctx->running) {
		atomic_store(&ctx->stop, true);
		krl_loop_wake(ctx);
		pthread_join(ctx->thread, NULL);
	}
	if (ctx->cm)
		rdma_destroy_event_channel(ctx->cm);
	if (ctx->wake_fd >= 0)
		close(ctx->wake_fd);
	if (ctx->epoll_fd >= 0)
		close(ctx->epoll_fd);
}
