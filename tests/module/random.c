// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Any ioctl with any argument, from a seed. The module may refuse what it likes; the
 * kernel must live, and a context made afterwards must work. Numbers are random, small
 * or at an edge; addresses point to memory, to holes and to the kernel.
 *
 * With a peer each context has a queue that is connected to it, so that arrays of requests
 * are read: most requests are right but for a word. What is taken has been checked, so
 * none of it may fail. WRITEs and atomics that an initiator's recovery left in doubt are counted: the
 * caller knows how many recoveries there were.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/module/dev.h"

#define ARENA_BYTES 65536
#define CALLS_A_CONTEXT 300
#define CALLS_A_CONNECTION 100 /* few: calls at random close the queue and forget the region */
#define ARG_BYTES_MAX 128
#define KNOWN 7
#define LOCAL_BYTES 65536
#define WRS_MAX (KRP_POST_MAX + 64)
#define WRS_BYTES (WRS_MAX * sizeof(struct krp_wr))

_Static_assert(WRS_BYTES % 4096 == 0, "what is behind the last one is on another page");

/**
 * struct random_state - What all is drawn from.
 * @seed: of the next number.
 * @arena: writable; behind it is nothing.
 * @known: numbers that mean something in this context.
 * @nr_known: how many.
 */
struct random_state {
	uint64_t seed;
	uint8_t *arena;
	uint64_t known[KNOWN];
	unsigned int nr_known;
};

static uint64_t random_number(struct random_state *r)
{
	return krp_mix64(r->seed += KRP_GOLDEN);
}

static uint64_t random_value(struct random_state *r)
{
	static const uint64_t edges[] = {
		0,    1,     7,	       8,	   64,	       255,	   256,	      4095,
		4096, 65536, 1U << 30, UINT32_MAX, 1ULL << 32, 1ULL << 63, UINT64_MAX
	};

	unsigned int kind = random_number(r) % 8;

	if (kind == 4 && r->nr_known)
		return r->known[random_number(r) % r->nr_known];
	switch (kind) {
	case 0:
		return random_number(r);
	case 1:
		return edges[random_number(r) % (sizeof(edges) / sizeof(edges[0]))];
	case 2:
		return (uintptr_t)r->arena + random_number(r) % (2 * ARENA_BYTES);
	case 3:
		return 0xffff888000000000ULL + random_number(r) % (1 << 30);
	default:
		return random_number(r) % 20;
	}
}

/* An argument: zero, or words of random values. */
static void random_argument(struct random_state *r, unsigned int number, uint8_t *arg)
{
	unsigned int i, words = random_number(r) % (ARG_BYTES_MAX / 4 + 1);

	memset(arg, 0, ARG_BYTES_MAX);
	for (i = 0; i < words; i++) {
		uint64_t value = random_value(r);

		if (random_number(r) % 2)
			memcpy(arg + 4 * i, &value, 4);
		else if (i + 1 < ARG_BYTES_MAX / 4)
			memcpy(arg + 4 * i, &value, 8);
	}
	if (number == _IOC_NR(KRP_IOC_SETUP) && random_number(r) % 2) {
		struct krp_setup *setup = (struct krp_setup *)arg;

		memset(setup, 0, sizeof(*setup));
		setup->abi = KRP_ABI_VERSION;
		setup->ring_entries = 16U << random_number(r) % 6;
	}
	/* what takes long is known to do so; here it takes away calls */
	if (number == _IOC_NR(KRP_IOC_CONNECT))
		((struct krp_connect *)arg)->timeout_ms %= 30;
	if (number == _IOC_NR(KRP_IOC_BIND))
		((struct krp_bind *)arg)->timeout_ms %= 30;
	if (number == _IOC_NR(KRP_IOC_LOOKUP))
		((struct krp_record_lookup *)arg)->timeout_ms %= 30;
	if (number == _IOC_NR(KRP_IOC_PUBLISH))
		((struct krp_record_publish *)arg)->timeout_ms %= 30;
	if (number == _IOC_NR(KRP_IOC_OPEN))
		((struct krp_open *)arg)->timeout_ms %= 30;
	if (number == _IOC_NR(KRP_IOC_RECV))
		((struct krp_recv *)arg)->timeout_ms %= 30;
	if (number == _IOC_NR(KRP_IOC_WAIT))
		((struct krp_wait *)arg)->timeout_ms %= 30;
}

/* Return: whether the call succeeded. */
static bool random_call(struct random_state *r, int fd)
{
	static const unsigned long known[] = {
		KRP_IOC_QUERY,	       KRP_IOC_SETUP,	     KRP_IOC_PORT,    KRP_IOC_MR_REG,
		KRP_IOC_MR_DEREG,      KRP_IOC_QUEUE_CREATE, KRP_IOC_CONNECT, KRP_IOC_QUEUE_QUERY,
		KRP_IOC_QUEUE_CLOSE,   KRP_IOC_BIND,	     KRP_IOC_POST,    KRP_IOC_WAIT,
		KRP_IOC_MR_DEREG_MANY, KRP_IOC_LOOKUP,	     KRP_IOC_PUBLISH, KRP_IOC_WATCH,
		KRP_IOC_INBOX,	       KRP_IOC_OPEN,	     KRP_IOC_ACCEPT,  KRP_IOC_SEND,
		KRP_IOC_RECV,	       KRP_IOC_LARGE,	     KRP_IOC_CANCEL,  KRP_IOC_SHUT,
		KRP_IOC_CONN_QUERY,    KRP_IOC_POST_RECV,
	};
	unsigned long request = known[random_number(r) % (sizeof(known) / sizeof(known[0]))];
	uint64_t arg[ARG_BYTES_MAX / 8];
	void *at = arg;

	random_argument(r, _IOC_NR(request), (uint8_t *)arg);
	if (random_number(r) % 16 == 0)
		request = _IOC(random_number(r) % 4, KRP_IOC_MAGIC, random_number(r) % 36,
			       random_number(r) % 256);
	if (random_number(r) % 32 == 0)
		at = (void *)(uintptr_t)random_value(r);
	else if (random_number(r) % 32 == 0) /* straddles the end of the arena */
		at = r->arena + ARENA_BYTES - random_number(r) % 64;
	return !dev_ioctl(fd, request, at);
}

static unsigned int random_context(struct random_state *r, unsigned int calls)
{
	int fd = open(DEV_PATH, O_RDWR | O_CLOEXEC);
	unsigned int i, good = 0;

	if (fd < 0)
		return 0;
	for (i = 0; i < calls; i++)
		good += random_call(r, fd);
	close(fd);
	return good;
}

static void random_alarm(int number)
{
	(void)number;
}

/* A call that waits for ever is a right one; signals end it. */
static void random_wake(suseconds_t every_us)
{
	const struct itimerval timer = { .it_interval.tv_usec = every_us,
					 .it_value.tv_usec = every_us };

	signal(SIGALRM, random_alarm);
	setitimer(ITIMER_REAL, &timer, NULL);
}

/* Memory behind which nothing can be read, whatever is mapped later; or NULL. */
static uint8_t *random_arena(size_t bytes)
{
	uint8_t *mem = mmap(NULL, bytes + ARENA_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mem == MAP_FAILED)
		return NULL;
	mprotect(mem + bytes, ARENA_BYTES, PROT_NONE);
	return mem;
}

void random_inputs(uint64_t seed, unsigned int calls)
{
	struct random_state r = { .seed = seed, .arena = random_arena(ARENA_BYTES) };
	unsigned int done, good = 0;
	struct krp_query query;
	struct dev dev;

	if (!r.arena) {
		tap(0, "memory", "%s", strerror(errno));
		return;
	}
	random_wake(50000);
	for (done = 0; done < calls; done += CALLS_A_CONTEXT)
		good += random_context(&r, CALLS_A_CONTEXT);
	random_wake(0);
	munmap(r.arena, ARENA_BYTES);
	printf("# seed %llu: %u calls, %u of them succeeded\n", (unsigned long long)seed, done,
	       good);
	tap(good > 0, "some random calls make sense", "none did");
	dev_open_or_die(&dev, 64);
	tap_equal("the module works afterwards", dev_ioctl(dev.fd, KRP_IOC_QUERY, &query), 0);
	dev_close(&dev);
}

/* ---- requests on a queue that is connected ---- */

/* How a request that is nearly right must have been refused at least once. */
static const struct {
	int error;
	const char *name;
} random_refusals[] = {
	{ -EINVAL, "some are refused with EINVAL" },
	{ -EFAULT, "some with EFAULT" },
	{ -ENOENT, "some with ENOENT" },
	{ -ERANGE, "some with ERANGE" },
	{ -EBADR, "some with EBADR" },
	{ -EPERM, "some with EPERM" },
	{ -EOVERFLOW, "some with EOVERFLOW" },
	{ -EAGAIN, "some with EAGAIN" },
};

#define REFUSALS (sizeof(random_refusals) / sizeof(random_refusals[0]))

/**
 * struct random_tally - What became of requests.
 * @posts: calls.
 * @taken: requests that the module took.
 * @completed: completions.
 * @failed: those with an error that is not the queue's close.
 * @doubted: those of WRITEs and atomics with -EREMCHG.
 * @refused: calls that stopped early, by random_refusals.
 */
struct random_tally {
	unsigned long posts, taken, completed, failed, doubted;
	unsigned long refused[REFUSALS];
};

/**
 * struct random_queue - A context with a queue that works, at first.
 * @r: draws.
 * @peer: whom it is connected to.
 * @dev: context.
 * @local: its region.
 * @queue: queue.
 * @wrs: room for requests, behind which nothing is.
 * @tally: what became of them.
 */
struct random_queue {
	struct random_state *r;
	const struct dev_peer *peer;
	struct dev dev;
	struct dev_region local;
	uint32_t queue;
	uint8_t *wrs;
	struct random_tally tally;
};

/* Any operation on any part of the peer's regions; one in 16 on that open to READs only. */
static struct krp_wr random_right(struct random_queue *q)
{
	struct random_state *r = q->r;
	uint8_t opcode = KRP_OP_READ + random_number(r) % 4;
	uint32_t length = opcode >= KRP_OP_CMP_SWAP ? 8 : 1 + random_number(r) % 4096;
	uint64_t at = random_number(r) % (q->peer->bytes - length) / 8 * 8;
	size_t offset = random_number(r) % (q->local.bytes - length);
	struct krp_wr wr =
		dev_wr(opcode, &q->local, offset, q->peer->rw, q->peer->rw_addr + at, length);

	if (random_number(r) % 16 == 0) {
		wr.remote_token = q->peer->ro;
		wr.remote_addr = q->peer->ro_addr + at;
	}
	wr.flags = random_number(r) % 4 ? 0 : KRP_WR_FENCE;
	if (opcode < KRP_OP_CMP_SWAP && random_number(r) % 2)
		wr.flags |= KRP_WR_IDEMPOTENT;
	wr.compare_add = random_value(r);
	wr.swap = random_value(r);
	return wr;
}

/* One word of a structure is another one: any, off by one bit, off by a little. */
static void random_spoil(struct random_state *r, void *what, size_t bytes)
{
	size_t word_bytes = random_number(r) % 2 ? 8 : 4;
	uint8_t *at = (uint8_t *)what + word_bytes * (random_number(r) % (bytes / word_bytes));
	uint64_t word = 0;

	memcpy(&word, at, word_bytes);
	switch (random_number(r) % 3) {
	case 0:
		word = random_value(r);
		break;
	case 1:
		word ^= 1ULL << random_number(r) % (8 * word_bytes);
		break;
	default:
		word += random_number(r) % 129 - 64;
		break;
	}
	memcpy(at, &word, word_bytes);
}

/*
 * A call with requests, in half of which one is spoiled; one call in eight has an array that
 * ends too early, at any request or within one, and one in 16 is spoiled itself.
 */
static struct krp_post random_array(struct random_queue *q)
{
	struct random_state *r = q->r;
	uint32_t count = 1 + random_number(r) % (random_number(r) % 4 ? 16 : WRS_MAX);
	uint32_t there = random_number(r) % 8 ? count : random_number(r) % count;
	uint32_t bad = random_number(r) % (2 * count), i;
	uint8_t *wrs = q->wrs + (WRS_MAX - there) * sizeof(struct krp_wr);
	struct krp_post post = { .count = count, .queue = q->queue };

	for (i = 0; i < there; i++) {
		struct krp_wr wr = random_right(q);

		if (i == bad)
			random_spoil(r, &wr, sizeof(wr));
		memcpy(wrs + i * sizeof(wr), &wr, sizeof(wr));
	}
	post.flags = random_number(r) % 2 ? KRP_POST_WAIT : 0;
	post.wrs = (uintptr_t)wrs +
		   (random_number(r) % 16 ? 0 : random_number(r) % sizeof(struct krp_wr));
	if (random_number(r) % 16 == 0)
		random_spoil(r, &post, sizeof(post));
	return post;
}

static void random_count(struct random_tally *tally, int err, const struct krp_post *post)
{
	int error = err ? err : post->error;
	size_t i;

	tally->posts++;
	tally->taken += err ? 0 : post->taken;
	for (i = 0; i < REFUSALS; i++)
		tally->refused[i] += random_refusals[i].error == error;
}

/* Take completions, and wait for the first. */
static void random_reap(struct random_queue *q, int timeout_ms)
{
	struct krp_cqe cqe;

	for (; dev_reap(&q->dev, &cqe, timeout_ms); timeout_ms = 0) {
		q->tally.completed++;
		if (!cqe.status || cqe.status == -ECANCELED)
			continue;
		if (cqe.status == -EREMCHG && cqe.opcode != KRP_OP_READ) {
			q->tally.doubted++;
			continue;
		}
		q->tally.failed++;
		printf("# operation %u of %#llx failed: %d\n", cqe.opcode,
		       (unsigned long long)cqe.user_data, cqe.status);
	}
}

static void random_post(struct random_queue *q)
{
	struct krp_post post = random_array(q);
	uint32_t head = q->dev.ring->head;
	int err;

	if (random_number(q->r) % 16 == 0) /* a wrong head harms nobody else */
		q->dev.ring->head = (uint32_t)random_number(q->r);
	err = dev_ioctl(q->dev.fd, KRP_IOC_POST, &post);
	q->dev.ring->head = head;
	random_count(&q->tally, err, &post);
	random_reap(q, (err ? err : post.error) == -EAGAIN ? 100 : 0);
}

/* What means something here may come to stand in any argument. */
static void random_know(struct random_queue *q)
{
	const struct dev_peer *peer = q->peer;
	const uint64_t known[KNOWN] = {
		q->queue,      q->local.handle, (uintptr_t)q->local.mem, peer->rw,
		peer->rw_addr, peer->ro,	peer->ro_addr,
	};

	memcpy(q->r->known, known, sizeof(known));
	q->r->nr_known = KNOWN;
}

static void random_connection(struct random_queue *q)
{
	unsigned int i;

	random_wake(0); /* it would end the connecting */
	dev_open_or_die(&q->dev, 256);
	dev_region_or_die(&q->dev, LOCAL_BYTES, KRP_ACCESS_LOCAL_WRITE, &q->local);
	q->queue = dev_connected_or_die(&q->dev, 64, q->peer);
	random_know(q);
	random_wake(50000);
	for (i = 0; i < CALLS_A_CONNECTION; i++) {
		if (random_number(q->r) % 4)
			random_post(q);
		else
			random_call(q->r, q->dev.fd);
	}
	random_reap(q, random_number(q->r) % 2 ? 200 : 0); /* or closed with some under way */
	dev_close(&q->dev);
	munmap(q->local.mem, q->local.bytes);
}

/* What the peer has not changed can be read as it is. */
static void random_afterwards(const struct dev_peer *peer)
{
	static uint8_t wanted[4096];
	struct dev_region local;
	struct krp_wr wr;
	struct dev dev;
	uint32_t queue;

	dev_open_or_die(&dev, 64);
	dev_region_or_die(&dev, sizeof(wanted), KRP_ACCESS_LOCAL_WRITE, &local);
	queue = dev_connected_or_die(&dev, 16, peer);
	wr = dev_wr(KRP_OP_READ, &local, 0, peer->ro, peer->ro_addr, sizeof(wanted));
	tap_equal("a queue works afterwards", dev_do(&dev, queue, &wr), 0);
	dev_fill(wanted, sizeof(wanted), peer->ro);
	tap(!memcmp(wanted, local.mem, sizeof(wanted)), "what is open to READs is as it was",
	    "it has changed");
	dev_close(&dev);
}

void random_requests(const struct dev_peer *peer, uint64_t seed, unsigned int calls)
{
	struct random_state r = { .seed = seed, .arena = random_arena(ARENA_BYTES) };
	struct random_queue q = { .r = &r, .peer = peer };
	const struct random_tally *tally = &q.tally;
	unsigned int done;
	size_t i;

	q.wrs = random_arena(WRS_BYTES);
	if (!r.arena || !q.wrs) {
		tap(0, "memory", "%s", strerror(errno));
		return;
	}
	for (done = 0; done < calls; done += CALLS_A_CONNECTION)
		random_connection(&q);
	random_wake(0);
	printf("# seed %llu: %lu posts, %lu requests taken, %lu completions\n",
	       (unsigned long long)seed, tally->posts, tally->taken, tally->completed);
	printf("doubted=%lu\n", tally->doubted);
	tap(tally->taken > calls / 4 && tally->completed, "requests that are right are taken",
	    "%lu of %lu posts, %lu completions", tally->taken, tally->posts, tally->completed);
	tap_equal("none that was taken fails", (long long)tally->failed, 0);
	for (i = 0; i < REFUSALS; i++)
		tap(tally->refused[i] > 0, random_refusals[i].name, "none was");
	random_afterwards(peer);
}
