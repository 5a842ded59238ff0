// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What a queue does, with every byte checked: sizes and offsets, batches and their order,
 * atomics, a full queue, poll, close, two queues, a child that inherited the file, one that
 * may make no system call. The peer runs `krc_ioctl serve`.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/module/dev.h"

#define BATCH 48
#define ADDS 40
#define SPINS 16
#define FENCE_BYTES 32768
#define FENCE_ROUNDS 16U
#define SPIN_BYTES 65536
#define SPIN_TURNS_MAX (1UL << 31)
/*
 * Turns of each kind, at least; and at most, until both had to wait: a loaded host may stop
 * the guest after its posts for longer than the READs take.
 */
#define SPIN_TIMES 4
#define SPIN_TIMES_MAX 40
#define SPIN_NOTHING_LEFT 9 /* all had completed before the last system call */

struct traffic_fixture {
	struct dev dev;
	const struct dev_peer *peer;
	struct dev_region from, to;
	uint32_t queue;
};

static int write_and_read_back(struct traffic_fixture *f, uint32_t length, size_t skew)
{
	uint64_t at = f->peer->rw_addr + skew;
	struct krp_wr wr;
	size_t i;
	int err;

	dev_fill(f->from.mem, f->from.bytes, length * 31ULL + skew);
	memset(f->to.mem, 0xee, f->to.bytes);
	wr = dev_wr(KRP_OP_WRITE, &f->from, 3 * skew, f->peer->rw, at, length);
	err = dev_do(&f->dev, f->queue, &wr);
	if (err)
		return err;
	wr = dev_wr(KRP_OP_READ, &f->to, 5 * skew, f->peer->rw, at, length);
	err = dev_do(&f->dev, f->queue, &wr);
	if (err)
		return err;
	if (memcmp(f->from.mem + 3 * skew, f->to.mem + 5 * skew, length))
		return -EBADMSG;
	for (i = 0; i < f->to.bytes; i++)
		if ((i < 5 * skew || i >= 5 * skew + length) && f->to.mem[i] != 0xee)
			return -EFAULT; /* a byte outside was touched */
	return 0;
}

static void sizes(struct traffic_fixture *f)
{
	static const uint32_t lengths[] = { 1,	  2,	7,    8,    63,	   64,	  1023,
					    1024, 1025, 4096, 4097, 65536, 200001 };
	char name[64];
	size_t i;

	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		snprintf(name, sizeof(name), "WRITE and READ back %u bytes", lengths[i]);
		tap_equal(name, write_and_read_back(f, lengths[i], 0), 0);
		snprintf(name, sizeof(name), "WRITE and READ back %u bytes, not aligned",
			 lengths[i]);
		tap_equal(name, write_and_read_back(f, lengths[i], 13), 0);
	}
}

static void known_content(struct traffic_fixture *f)
{
	struct krp_wr wr = dev_wr(KRP_OP_READ, &f->to, 0, f->peer->ro, f->peer->ro_addr, 10000);

	dev_fill(f->from.mem, 10000, f->peer->ro);
	tap_equal("READ of what the peer wrote", dev_do(&f->dev, f->queue, &wr), 0);
	tap(!memcmp(f->from.mem, f->to.mem, 10000), "it is what the peer wrote", "it is not");
}

/* WRITEs and READs of many places in one call: each once, in order, right. */
static void batch(struct traffic_fixture *f)
{
	struct krp_wr wrs[BATCH];
	unsigned int i, wrong = 0;
	struct krp_cqe cqe;

	dev_fill(f->from.mem, f->from.bytes, 77);
	memset(f->to.mem, 0, f->to.bytes);
	for (i = 0; i < BATCH; i++) {
		size_t at = 512 * (i / 2);

		wrs[i] = dev_wr(i % 2 ? KRP_OP_READ : KRP_OP_WRITE, i % 2 ? &f->to : &f->from, at,
				f->peer->rw, f->peer->rw_addr + at, 512);
		wrs[i].user_data = 1000 + i;
	}
	tap_equal("a batch is taken in one call", dev_post(&f->dev, f->queue, wrs, BATCH, NULL),
		  BATCH);
	for (i = 0; i < BATCH; i++) {
		if (!dev_reap(&f->dev, &cqe, DEV_TIMEOUT_MS))
			break;
		wrong += cqe.user_data != 1000 + i || cqe.status || cqe.bytes != 512 ||
			 cqe.queue != f->queue || cqe.opcode != wrs[i].opcode;
	}
	tap_equal("all of it completes", i, BATCH);
	tap_equal("in order and without an error", wrong, 0);
	tap_equal("each once", dev_reap(&f->dev, &cqe, 100), 0);
	tap(!memcmp(f->from.mem, f->to.mem, 512 * BATCH / 2), "each READ saw the WRITE before it",
	    "content differs");
}

static void atomics(struct traffic_fixture *f)
{
	struct krp_wr wr = dev_wr(KRP_OP_WRITE, &f->from, 0, f->peer->rw, f->peer->rw_addr, 8);
	uint64_t *old = (uint64_t *)f->to.mem, start = 0xfffffffffffffff0ULL;
	unsigned int i, wrong = 0;

	memcpy(f->from.mem, &start, sizeof(start));
	tap_equal("WRITE of a counter", dev_do(&f->dev, f->queue, &wr), 0);
	for (i = 0; i < ADDS; i++) {
		wr = dev_wr(KRP_OP_FETCH_ADD, &f->to, 0, f->peer->rw, f->peer->rw_addr, 8);
		wr.compare_add = 3;
		if (dev_do(&f->dev, f->queue, &wr) || *old != start + 3ULL * i)
			wrong++;
	}
	tap_equal("FETCH_ADD gives the old value, adds once, wraps", wrong, 0);
	wr = dev_wr(KRP_OP_CMP_SWAP, &f->to, 0, f->peer->rw, f->peer->rw_addr, 8);
	wr.compare_add = 1;
	wr.swap = 0xdead;
	tap_equal("CMP_SWAP of another value", dev_do(&f->dev, f->queue, &wr), 0);
	tap_equal("gives the value", (long long)*old, (long long)(start + 3 * ADDS));
	wr.compare_add = start + 3 * ADDS;
	wr.swap = 0x0123456789abcdefULL;
	tap_equal("CMP_SWAP of this value", dev_do(&f->dev, f->queue, &wr), 0);
	tap_equal("saw that the first did nothing", (long long)*old, (long long)(start + 3 * ADDS));
	wr = dev_wr(KRP_OP_READ, &f->to, 0, f->peer->rw, f->peer->rw_addr, 8);
	wr.flags = KRP_WR_FENCE;
	tap_equal("fenced READ", dev_do(&f->dev, f->queue, &wr), 0);
	tap_equal("sees what was swapped in", (long long)*old, 0x0123456789abcdefLL);
}

/*
 * One batch: READ x into a buffer, and WRITE that buffer to y. Return: whether y is x, and so
 * the WRITE began after the READ; -1 if something failed.
 */
static int read_then_write(struct traffic_fixture *f, unsigned int round, uint16_t flags)
{
	uint64_t x = f->peer->rw_addr, y = x + FENCE_BYTES;
	struct krp_wr wrs[2];
	struct krp_cqe cqe;
	int i;

	dev_fill(f->from.mem, FENCE_BYTES, 0xfe9ceULL + round);
	wrs[0] = dev_wr(KRP_OP_WRITE, &f->from, 0, f->peer->rw, x, FENCE_BYTES);
	if (dev_do(&f->dev, f->queue, &wrs[0]))
		return -1;
	memset(f->to.mem, 0, FENCE_BYTES);
	wrs[0] = dev_wr(KRP_OP_READ, &f->to, 0, f->peer->rw, x, FENCE_BYTES);
	wrs[1] = dev_wr(KRP_OP_WRITE, &f->to, 0, f->peer->rw, y, FENCE_BYTES);
	wrs[1].flags = flags;
	if (dev_post(&f->dev, f->queue, wrs, 2, NULL) != 2)
		return -1;
	for (i = 0; i < 2; i++)
		if (!dev_reap(&f->dev, &cqe, DEV_TIMEOUT_MS) || cqe.status)
			return -1;
	wrs[0] = dev_wr(KRP_OP_READ, &f->to, 0, f->peer->rw, y, FENCE_BYTES);
	if (dev_do(&f->dev, f->queue, &wrs[0]))
		return -1;
	return !memcmp(f->from.mem, f->to.mem, FENCE_BYTES);
}

/* A fenced request waits for the READs before it; without, the WRITE overtakes some. */
static void fence(struct traffic_fixture *f)
{
	unsigned int i, fenced = 0, overtaken = 0;

	for (i = 0; i < FENCE_ROUNDS; i++) {
		fenced += read_then_write(f, i, KRP_WR_FENCE) == 1;
		overtaken += read_then_write(f, FENCE_ROUNDS + i, 0) == 0;
	}
	tap_equal("a fenced WRITE sends what the READ before it has brought", fenced, FENCE_ROUNDS);
	tap(overtaken, "one without a fence does not always", "%u of %u overtook", overtaken,
	    FENCE_ROUNDS);
}

static void full_queue(struct traffic_fixture *f)
{
	struct krp_wr wrs[8];
	struct krp_cqe cqe;
	uint32_t queue = dev_connected_or_die(&f->dev, 4, f->peer);
	int error = 0, i;

	for (i = 0; i < 8; i++)
		wrs[i] = dev_wr(KRP_OP_READ, &f->to, 0, f->peer->rw, f->peer->rw_addr, 100000);
	tap_equal("a queue takes as many as it is deep", dev_post(&f->dev, queue, wrs, 8, &error),
		  4);
	tap_equal("and says why not more", error, -EAGAIN);
	for (i = 0; i < 4 && dev_reap(&f->dev, &cqe, DEV_TIMEOUT_MS); i++)
		;
	tap_equal("they complete", i, 4);
	tap_equal("then it takes more", dev_post(&f->dev, queue, wrs, 1, NULL), 1);
	dev_reap(&f->dev, &cqe, DEV_TIMEOUT_MS);
	tap_equal("close", dev_queue_close(&f->dev, queue), 0);
}

static void poll_and_epoll(struct traffic_fixture *f)
{
	struct krp_wr wr = dev_wr(KRP_OP_READ, &f->to, 0, f->peer->rw, f->peer->rw_addr, 8);
	struct pollfd p = { .fd = f->dev.fd, .events = POLLIN };
	struct epoll_event event = { .events = EPOLLIN };
	int ep = epoll_create1(EPOLL_CLOEXEC);
	struct krp_cqe cqe;

	tap_equal("nothing to read", poll(&p, 1, 50), 0);
	tap_equal("epoll takes the file", epoll_ctl(ep, EPOLL_CTL_ADD, f->dev.fd, &event), 0);
	dev_post(&f->dev, f->queue, &wr, 1, NULL);
	tap_equal("epoll says when there is", epoll_wait(ep, &event, 1, DEV_TIMEOUT_MS), 1);
	tap_equal("so does poll", poll(&p, 1, 0) == 1 && p.revents == POLLIN, 1);
	dev_reap(&f->dev, &cqe, 0);
	tap_equal("nothing to read again", poll(&p, 1, 0), 0);
	close(ep);
}

/* Close with requests under way: no completion comes after it, and none twice. */
static void close_busy(struct traffic_fixture *f)
{
	uint32_t queue = dev_connected_or_die(&f->dev, 16, f->peer);
	unsigned int seen = 0, wrong = 0;
	struct krp_wr wrs[16];
	struct krp_cqe cqe;
	int i;

	for (i = 0; i < 16; i++) {
		wrs[i] = dev_wr(KRP_OP_READ, &f->to, 0, f->peer->rw, f->peer->rw_addr, 100000);
		wrs[i].user_data = (uint64_t)i;
	}
	tap_equal("sixteen large READs", dev_post(&f->dev, queue, wrs, 16, NULL), 16);
	tap_equal("close at once", dev_queue_close(&f->dev, queue), 0);
	while (dev_reap(&f->dev, &cqe, 0)) {
		wrong += cqe.user_data != seen || (cqe.status && cqe.status != -ECANCELED);
		seen++;
	}
	tap_equal("completed or cancelled, in order", wrong, 0);
	tap(seen <= 16, "none twice", "%u of 16", seen);
	tap_equal("none after close", dev_reap(&f->dev, &cqe, 500), 0);
}

static void two_queues(struct traffic_fixture *f)
{
	uint32_t other = dev_connected_or_die(&f->dev, 32, f->peer);
	unsigned int i, mine = 0, others = 0, wrong = 0;
	struct krp_cqe cqe;

	for (i = 0; i < 64; i++) {
		struct krp_wr wr =
			dev_wr(KRP_OP_READ, &f->to, 0, f->peer->ro, f->peer->ro_addr, 64);

		wr.user_data = i;
		wrong += dev_post(&f->dev, i % 2 ? other : f->queue, &wr, 1, NULL) != 1;
		if (i % 8 < 7)
			continue;
		while (mine + others <= i && dev_reap(&f->dev, &cqe, DEV_TIMEOUT_MS)) {
			unsigned int *count = cqe.queue == other ? &others : &mine;

			wrong += cqe.status || cqe.user_data != 2ULL * *count + (count == &others);
			++*count;
		}
	}
	tap(mine == 32 && others == 32, "two queues share a ring", "%u and %u of 32", mine, others);
	tap_equal("each in its order", wrong, 0);
	dev_queue_close(&f->dev, other);
}

static void child(struct traffic_fixture *f)
{
	struct krp_wr wr = dev_wr(KRP_OP_WRITE, &f->from, 0, f->peer->rw, f->peer->rw_addr, 64);
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(dev_do(&f->dev, f->queue, &wr) ? 1 : 0);
	waitpid(pid, &status, 0);
	tap_equal("a child that inherited the file may post", status, 0);
	tap_equal("and its parent after it", dev_do(&f->dev, f->queue, &wr), 0);
}

/*
 * After its posts this process may read(2), write(2) and exit, and is killed if it calls
 * anything else: completions have to come into the ring without its help. @awake: it has
 * just busy-polled for another one, so that no interrupt is asked for at first.
 */
static void spinner(struct traffic_fixture *f, bool awake)
{
	struct krp_ring *ring = f->dev.ring;
	struct krp_wr wrs[SPINS];
	unsigned long left;
	bool waited;
	uint32_t end;

	for (left = 0; left < SPINS; left++)
		wrs[left] = dev_wr(KRP_OP_READ, &f->to, 0, f->peer->ro, f->peer->ro_addr,
				   left ? SPIN_BYTES : 8);
	alarm(DEV_TIMEOUT_MS / 1000);
	if (awake && dev_do(&f->dev, f->queue, wrs))
		_exit(2);
	end = ring->head + SPINS;
	if (dev_post(&f->dev, f->queue, wrs, SPINS, NULL) != SPINS)
		_exit(3);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		_exit(4);
	waited = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) != end;
	for (left = SPIN_TURNS_MAX; left; left--)
		if (__atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) == end)
			break;
	/* _exit(2) is another call than that which is allowed */
	syscall(SYS_exit, !left ? 1 : waited ? 0 : SPIN_NOTHING_LEFT);
}

/* Return: whether its process had to wait for completions, and they are all right. */
static bool spin_once(struct traffic_fixture *f, bool awake, unsigned int *wrong)
{
	struct krp_cqe cqe;
	int status = -1, i;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		spinner(f, awake);
	waitpid(pid, &status, 0);
	for (i = 0; i < SPINS && dev_reap(&f->dev, &cqe, 0); i++)
		*wrong += cqe.status || cqe.bytes != (i ? SPIN_BYTES : 8);
	*wrong += i != SPINS;
	if (WIFEXITED(status) && WEXITSTATUS(status) == SPIN_NOTHING_LEFT)
		return false;
	if (status)
		printf("# spinning: wait status %#x\n", (unsigned int)status);
	*wrong += status != 0;
	return !status;
}

static void spin_without_calls(struct traffic_fixture *f)
{
	unsigned int wrong = 0, waits = 0, awake_waits = 0, i;

	for (i = 0; i < SPIN_TIMES || (!(waits && awake_waits) && i < SPIN_TIMES_MAX); i++) {
		waits += spin_once(f, false, &wrong);
		awake_waits += spin_once(f, true, &wrong);
	}
	tap_equal("16 completions are there for a program that makes no system call", wrong, 0);
	tap(waits && awake_waits, "which were under way at its last one",
	    "all of them had been done, in %u and %u of %u turns not", waits, awake_waits, i);
}

static void connects(struct traffic_fixture *f)
{
	struct krp_connect arg = { .timeout_ms = DEV_TIMEOUT_MS, .service = f->peer->service };
	struct krp_wr wr = dev_wr(KRP_OP_READ, &f->to, 0, f->peer->ro, f->peer->ro_addr, 8);

	memcpy(arg.gid, f->peer->gid, sizeof(arg.gid));
	tap_equal("a queue", dev_queue(&f->dev, 4, &arg.queue), 0);
	arg.flags = KRP_CONNECT_FRESH;
	tap_equal("connect, asking a MetaServer", dev_ioctl(f->dev.fd, KRP_IOC_CONNECT, &arg), 0);
	tap(arg.reads >= 1, "it took a READ", "%u", arg.reads);
	tap(arg.generation, "it says the peer's generation", "0");
	tap_equal("it works", dev_do(&f->dev, arg.queue, &wr), 0);
	dev_queue_close(&f->dev, arg.queue);
	tap_equal("another queue", dev_queue(&f->dev, 4, &arg.queue), 0);
	arg.flags = 0;
	tap_equal("connect from the cache", dev_ioctl(f->dev.fd, KRP_IOC_CONNECT, &arg), 0);
	tap_equal("it took no READ", arg.reads, 0);
	tap_equal("it works too", dev_do(&f->dev, arg.queue, &wr), 0);
	dev_queue_close(&f->dev, arg.queue);
}

void traffic(const struct dev_peer *peer)
{
	struct traffic_fixture f = { .peer = peer };

	dev_open_or_die(&f.dev, 256);
	dev_region_or_die(&f.dev, 1 << 18, KRP_ACCESS_LOCAL_WRITE, &f.from);
	dev_region_or_die(&f.dev, 1 << 18, KRP_ACCESS_LOCAL_WRITE, &f.to);
	f.queue = dev_connected_or_die(&f.dev, 64, peer);
	connects(&f);
	sizes(&f);
	known_content(&f);
	batch(&f);
	atomics(&f);
	fence(&f);
	full_queue(&f);
	poll_and_epoll(&f);
	close_busy(&f);
	two_queues(&f);
	child(&f);
	spin_without_calls(&f);
	dev_close(&f.dev);
}
