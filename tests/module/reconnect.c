// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A queue with requests under way to a peer that stops answering goes to another peer as
 * soon as the first of them has failed, while the others still have to come to their end.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tests/module/dev.h"

#define DEPTH 32

/**
 * struct mover - One queue that moves.
 * @dev: context.
 * @local: memory.
 * @peer: whom it asks, until that one is silent.
 * @home: where it goes then: this node.
 * @queue: number.
 * @outstanding: requests without a completion.
 * @result: what is reported.
 */
struct mover {
	struct dev dev;
	struct dev_region local;
	const struct dev_peer *peer;
	struct dev_peer home;
	uint32_t queue;
	unsigned int outstanding;
	struct dev_moves result;
};

/* Have @count more READs under way. Return: 0, or why not. */
static int ask(struct mover *m, unsigned int count)
{
	struct krp_wr wrs[DEPTH];
	unsigned int i;
	int taken;

	for (i = 0; i < count; i++)
		wrs[i] = dev_wr(KRP_OP_READ, &m->local, 0, m->peer->rw, m->peer->rw_addr, 4096);
	taken = count ? dev_post(&m->dev, m->queue, wrs, count, NULL) : 0;
	if (taken < 0)
		return taken;
	m->outstanding += (unsigned int)taken;
	return 0;
}

/* Return: the status of the next completion, or -ETIME. */
static int next(struct mover *m, int timeout_ms)
{
	struct krp_cqe cqe;

	if (!dev_reap(&m->dev, &cqe, timeout_ms))
		return -ETIME;
	m->outstanding--;
	return cqe.status;
}

/* Ask until it fails, or until @end_ms. Return: whether it failed. */
static int ask_until_silent(struct mover *m, uint64_t end_ms)
{
	while (!dev_over(end_ms)) {
		if (ask(m, DEPTH - m->outstanding) || next(m, DEV_TIMEOUT_MS))
			return 1;
	}
	return 0;
}

/* To the other peer at once; then everything that was under way completes. */
static void move(struct mover *m)
{
	int err = dev_connect(&m->dev, m->queue, &m->home, 0);

	if (err) {
		m->result.refused++;
		m->result.last_error = err;
	} else {
		m->result.moved++;
	}
	while (m->outstanding && next(m, DEV_TIMEOUT_MS) != -ETIME)
		;
	m->result.lost += m->outstanding;
	m->outstanding = 0;
}

/* A new queue to the peer, when it answers again. Return: whether it does. */
static int come_back(struct mover *m, uint64_t end_ms)
{
	dev_queue_close(&m->dev, m->queue);
	while (!dev_over(end_ms)) {
		if (!dev_queue_open(&m->dev, DEPTH, m->peer, 0, &m->queue)) {
			if (!ask(m, 1) && !next(m, DEV_TIMEOUT_MS))
				return 1;
			dev_queue_close(&m->dev, m->queue);
		}
		usleep(100000);
	}
	return 0;
}

struct dev_moves reconnect(const struct dev_peer *peer, unsigned int seconds)
{
	uint64_t end_ms = dev_end_ms(seconds);
	struct krp_port_info port = { .index = 1 };
	struct mover m = { .peer = peer };

	dev_open_or_die(&m.dev, 4 * DEPTH);
	dev_region_or_die(&m.dev, 4096, KRP_ACCESS_LOCAL_WRITE, &m.local);
	m.queue = dev_connected_or_die(&m.dev, DEPTH, peer);
	dev_ioctl(m.dev.fd, KRP_IOC_PORT, &port);
	memcpy(m.home.gid, port.gid, sizeof(port.gid));
	do {
		if (!ask_until_silent(&m, end_ms))
			break;
		move(&m);
	} while (come_back(&m, end_ms));
	dev_close(&m.dev);
	return m.result;
}
