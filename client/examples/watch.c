// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Watch many peers from one epoll loop: each peer keeps a heartbeat in memory
 * that it lends; the watcher has a queue to each, READs all heartbeats ten times
 * a second and prints which peers are alive. A peer that was restarted lends
 * other memory, so after an error it is looked up and connected again.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "example.h"

#define EX_PEERS_MAX 256
#define EX_TICK_MS 100
#define EX_QUIET_TICKS 20 /* a heartbeat that stands still so long is none */

static const char ex_text[] =
	"usage: krcore-example-watch serve SERVICE         lend a heartbeat until interrupted\n"
	"       krcore-example-watch SERVICE TICKS PEER... watch peers, ten ticks a second\n"
	"\n"
	"SERVICE is a number from 256 to 65535, PEER an address or host name, TICKS how\n"
	"long to watch; 0 for ever. Ends with 1 if a peer is not there at the end.\n"
	"Needs the kernel module (/dev/krcore) and a MetaServer (/etc/krcore.conf).\n";

/** struct ex_beat - What is lent. @count: grows ten times a second. @rsvd: zero. */
struct ex_beat {
	uint64_t count;
	uint64_t rsvd[7];
};

/* What the watcher knows of a peer. */
struct ex_peer {
	const char *name;
	struct krcore_region_ref ref;
	uint32_t queue;
	unsigned int quiet;
	uint64_t last;
	uint64_t reads;
	int connected;
	int busy;
	int there;
};

struct ex_watch {
	struct krcore_ctx *ctx;
	struct krcore_node *node;
	struct krcore_mr mr;
	struct ex_beat *beats;
	struct ex_peer peer[EX_PEERS_MAX];
	unsigned int peers;
	uint16_t service;
};

static void ex_count(void *arg)
{
	uint64_t *count = arg;

	__atomic_store_n(count, *count + 1, __ATOMIC_RELEASE);
}

static int ex_lend(struct ex_watch *watch)
{
	watch->beats[0].count = 1;
	if (krcore_mr_reg(watch->node, watch->beats, sizeof(*watch->beats),
			  KRCORE_ACCESS_REMOTE_READ, &watch->mr))
		return ex_fail("registering memory");
	return ex_serve(watch->node, &watch->mr, watch->service, ex_count, &watch->beats[0].count);
}

static void ex_say(struct ex_peer *peer, int there, const char *why)
{
	if (peer->there != there) {
		printf("%s is %s%s%s\n", peer->name, there ? "there" : "gone", *why ? ": " : "",
		       why);
		fflush(stdout);
	}
	peer->there = there;
}

static void ex_connect(struct ex_watch *watch, struct ex_peer *peer)
{
	struct krcore_key key;

	if (ex_find(watch->ctx, peer->name, watch->service, &key, &peer->ref) ||
	    krcore_queue_connect(watch->node, peer->queue, &key, 1000, KRCORE_CONNECT_FRESH,
				 NULL)) {
		ex_say(peer, 0, krcore_error_text());
		return;
	}
	peer->connected = 1;
	peer->quiet = 0;
	peer->last = 0;
}

/* A tick: one READ to each peer that has none in flight. */
static void ex_tick(struct ex_watch *watch)
{
	unsigned int i;

	for (i = 0; i < watch->peers; i++) {
		struct ex_peer *peer = &watch->peer[i];

		if (peer->busy)
			continue;
		if (!peer->connected)
			ex_connect(watch, peer);
		if (!peer->connected)
			continue;
		if (krcore_post_read(watch->node, peer->queue, &watch->mr, &watch->beats[i],
				     sizeof(*watch->beats), &peer->ref, 0, i)) {
			/* the region is gone, or the queue in error: begin anew */
			peer->connected = 0;
			ex_say(peer, 0, krcore_error_text());
			krcore_queue_close(watch->node, peer->queue);
			if (krcore_queue_create(watch->node, 1, &peer->queue))
				ex_fail("making a queue");
			continue;
		}
		peer->busy = 1;
	}
}

static void ex_beat_seen(struct ex_watch *watch, struct ex_peer *peer, unsigned int index)
{
	uint64_t count = watch->beats[index].count;

	peer->reads++;
	peer->quiet = count == peer->last ? peer->quiet + 1 : 0;
	peer->last = count;
	if (peer->quiet >= EX_QUIET_TICKS)
		ex_say(peer, 0, "its heartbeat stands still");
	else
		ex_say(peer, 1, "");
}

static int ex_completions(struct ex_watch *watch)
{
	struct krcore_wc wcs[16];
	int nr, i;

	while ((nr = krcore_poll(watch->node, wcs, 16)) > 0) {
		for (i = 0; i < nr; i++) {
			unsigned int index = (unsigned int)wcs[i].user_data;
			struct ex_peer *peer = &watch->peer[index];

			peer->busy = 0;
			if (!wcs[i].status) {
				ex_beat_seen(watch, peer, index);
			} else {
				peer->connected = 0;
				ex_say(peer, 0, strerror(-wcs[i].status));
			}
		}
	}
	return nr;
}

static int ex_epoll(struct ex_watch *watch, int *ret_timer, int *ret_signals)
{
	const struct itimerspec every = { { 0, EX_TICK_MS * 1000000 }, { 0, 1 } };
	int fds[3], epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	sigset_t signals;
	unsigned int i;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	fds[0] = krcore_node_fd(watch->node);
	fds[1] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	fds[2] = signalfd(-1, &signals, SFD_CLOEXEC);
	if (epoll_fd < 0 || fds[1] < 0 || fds[2] < 0 || timerfd_settime(fds[1], 0, &every, NULL))
		return -1;
	for (i = 0; i < 3; i++) {
		struct epoll_event event = { .events = EPOLLIN, .data.fd = fds[i] };

		if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fds[i], &event))
			return -1;
	}
	*ret_timer = fds[1];
	*ret_signals = fds[2];
	return epoll_fd;
}

/* Else epoll would say so for ever. */
static int ex_gone(void)
{
	fprintf(stderr, "the device is gone\n");
	return 1;
}

static int ex_loop(struct ex_watch *watch, uint64_t ticks)
{
	int timer_fd, signal_fd, epoll_fd = ex_epoll(watch, &timer_fd, &signal_fd);
	struct epoll_event events[3];
	uint64_t seen = 0, late;
	int nr, i;

	if (epoll_fd < 0) {
		perror("epoll");
		return 1;
	}
	while (!ticks || seen < ticks) {
		nr = epoll_wait(epoll_fd, events, 3, -1);
		for (i = 0; i < nr; i++) {
			if (events[i].data.fd == signal_fd)
				return 0;
			if (events[i].data.fd != timer_fd) {
				if (ex_completions(watch))
					return ex_fail("completions");
				if (events[i].events & EPOLLERR)
					return ex_gone();
			} else if (read(timer_fd, &late, sizeof(late)) == sizeof(late)) {
				seen += late;
				ex_tick(watch);
			}
		}
	}
	return 0;
}

static int ex_watch(struct ex_watch *watch, uint64_t ticks)
{
	unsigned int i, missing = 0;

	if (krcore_open(NULL, &watch->ctx))
		return ex_fail("attaching to a MetaServer");
	if (krcore_mr_reg(watch->node, watch->beats, EX_PEERS_MAX * sizeof(*watch->beats),
			  KRCORE_ACCESS_LOCAL_WRITE, &watch->mr))
		return ex_fail("registering memory");
	for (i = 0; i < watch->peers; i++)
		if (krcore_queue_create(watch->node, 1, &watch->peer[i].queue))
			return ex_fail("making a queue");
	if (ex_loop(watch, ticks))
		return 1;
	for (i = 0; i < watch->peers; i++) {
		struct ex_peer *peer = &watch->peer[i];

		printf("%s: %s, %llu heartbeats read\n", peer->name, peer->there ? "there" : "gone",
		       (unsigned long long)peer->reads);
		missing += !peer->there;
	}
	krcore_close(watch->ctx);
	return missing ? 1 : 0;
}

int main(int argc, char **argv)
{
	static struct ex_watch watch;
	int i, serve, status;

	ex_usage(argc, argv, 2, ex_text);
	serve = !strcmp(argv[1], "serve");
	ex_usage(argc, argv, serve ? 2 : 3, ex_text);
	watch.service =
		(uint16_t)ex_number(argv[serve ? 2 : 1], KRCORE_SERVICE_USER_MIN, 65535, "SERVICE");
	for (i = 3; !serve && i < argc && watch.peers < EX_PEERS_MAX; i++)
		watch.peer[watch.peers++].name = argv[i];
	watch.beats = aligned_alloc(4096, EX_PEERS_MAX * sizeof(*watch.beats));
	if (!watch.beats)
		return 1;
	memset(watch.beats, 0, EX_PEERS_MAX * sizeof(*watch.beats));
	if (krcore_node_open(NULL, &watch.node)) {
		free(watch.beats);
		return ex_fail("opening the node");
	}
	if (serve)
		status = ex_lend(&watch);
	else
		status = ex_watch(&watch, ex_number(argv[2], 0, UINT32_MAX, "TICKS"));
	krcore_mr_dereg(watch.node, &watch.mr); /* nothing uses the memory behind that */
	krcore_node_close(watch.node);
	free(watch.beats);
	return status;
}
