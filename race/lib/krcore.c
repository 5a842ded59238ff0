// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The transport over queues of libkrcore: a node, a queue, and a few regions of its own.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "race/lib/client.h"
#include "race/lib/krcore.h"

#define KR_MRS_MAX 8
#define KR_PAGE 4096
#define KR_FIRST_MEMORY KR_CLIENT_BYTES /* what a client takes first */
#define KR_WAIT_MS 1000
#define KR_AGAIN_MS 5000 /* for a connection that failed */
#define KR_MORE_MS 1000 /* how long the rest of a batch is posted that was taken in part */
#define KR_BEGIN_MS 60000 /* for the peer's directory; what has not begun by then never does */
#define KR_NIC_MS 9000 /* how long the NIC tries what has begun */
#define KR_LATE_MS (KR_AGAIN_MS + KR_BEGIN_MS + KR_WAIT_MS + KR_NIC_MS)
_Static_assert(KR_MORE_MS <= KR_WAIT_MS, "a post that begins so late may last KR_BEGIN_MS");

/**
 * struct kr_krcore - A queue to the node of a table.
 * @t: what the client sees.
 * @node: of this program.
 * @queue: number; 0: it was closed.
 * @ready: the queue is connected.
 * @start_ms: when the batch began, once it was connected.
 * @peer: the table's node.
 * @ref: the table.
 * @timeout_ms: bound of a look-up.
 * @first_given: a client has got the memory of the first.
 * @mrs: regions of this node.
 * @nr_mrs: how many.
 */
struct kr_krcore {
	struct kr_transport t;
	struct krcore_node *node;
	uint32_t queue;
	bool ready;
	uint64_t start_ms;
	struct krcore_key peer;
	struct krcore_region_ref ref;
	uint32_t timeout_ms;
	bool first_given;
	struct krcore_mr mrs[KR_MRS_MAX];
	unsigned int nr_mrs;
};

static struct kr_krcore *kr_krcore_of(struct kr_transport *t)
{
	return (struct kr_krcore *)((char *)t - offsetof(struct kr_krcore, t));
}

static const struct krcore_mr *kr_mr_of(const struct kr_krcore *k, const void *local)
{
	unsigned int i;

	for (i = 0; i + 1 < k->nr_mrs; i++)
		if ((uintptr_t)local - k->mrs[i].addr < k->mrs[i].length)
			break;
	return &k->mrs[i];
}

static void kr_wr(const struct kr_krcore *k, const struct kr_req *req, uint64_t user_data,
		  struct krcore_wr *wr)
{
	static const uint8_t opcodes[] = {
		[KR_READ] = KRCORE_OP_READ,
		[KR_WRITE] = KRCORE_OP_WRITE,
		[KR_CAS] = KRCORE_OP_CMP_SWAP,
		[KR_ADD] = KRCORE_OP_FETCH_ADD,
	};

	memset(wr, 0, sizeof(*wr));
	wr->user_data = user_data;
	wr->local_addr = (uintptr_t)req->local;
	wr->local_mr = kr_mr_of(k, req->local)->handle;
	wr->remote_addr = k->ref.addr + req->remote;
	wr->remote_token = k->ref.token;
	wr->length = req->length;
	wr->opcode = opcodes[req->op];
	wr->compare_add = req->compare;
	wr->swap = req->swap;
}

static int kr_connect(struct kr_krcore *k)
{
	uint32_t timeout_ms = k->timeout_ms < KR_AGAIN_MS ? k->timeout_ms : KR_AGAIN_MS;
	int err;

	if (k->ready)
		return 0;
	if (k->queue)
		err = krcore_queue_connect(k->node, k->queue, &k->peer, timeout_ms, 0, NULL);
	else
		err = krcore_queue_open(k->node, KR_BATCH_MAX, &k->peer, timeout_ms, 0, &k->queue,
					NULL);
	if (err == -ENOENT) /* no record of the node; to callers it would mean: no such key */
		return -ENETUNREACH;
	if (err && err != -EISCONN)
		return err;
	k->ready = true;
	return 0;
}

static uint64_t kr_ms(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Since when a batch is under way; by the cheapest clock, since each pays for it. */
static uint64_t kr_age_ms(const struct kr_krcore *k)
{
	return kr_ms(CLOCK_MONOTONIC_COARSE) - k->start_ms;
}

/*
 * Wait for a completion; but what was taken may wait for the peer, or for other programs, without
 * end. So that all is over in KR_LATE_MS the queue is closed: what has not begun is not done then, and
 * all completions are in the ring. Return: 0, -ETIMEDOUT: it was closed, or the node failed.
 */
static int kr_await(struct kr_krcore *k)
{
	int err;

	if (kr_age_ms(k) >= KR_BEGIN_MS) {
		(void)krcore_queue_close(k->node, k->queue);
		k->queue = 0;
		return -ETIMEDOUT;
	}
	err = krcore_wait(k->node, KR_WAIT_MS);
	return err == -ETIMEDOUT || err == -EINTR ? 0 : err;
}

/* Take completions until there are @nr. Return: 0; -ETIMEDOUT: see kr_await(); or the node failed. */
static int kr_complete(struct kr_krcore *k, struct kr_req *reqs, unsigned int nr)
{
	struct krcore_wc wcs[KR_BATCH_MAX];
	int got, i, err = 0;

	while (nr) {
		got = krcore_poll(k->node, wcs, nr);
		for (i = 0; i < got; i++)
			reqs[wcs[i].user_data].status = wcs[i].status;
		if (got < 0)
			return got;
		nr -= (unsigned int)got;
		if (!nr || got)
			continue;
		if (err)
			break;
		err = kr_await(k);
		if (err && err != -ETIMEDOUT)
			break;
	}
	return err;
}

/*
 * Post from @from on, and wait. Requests that are not taken stay -ECANCELED.
 * Return: how many were taken, or negative errno.
 */
static int kr_post(struct kr_krcore *k, struct kr_req *reqs, unsigned int from, unsigned int nr)
{
	struct krcore_wr wrs[KR_BATCH_MAX];
	unsigned int i;
	int taken, err;

	for (i = from; i < nr; i++)
		kr_wr(k, &reqs[i], i, &wrs[i - from]);
	taken = krcore_post_wait(k->node, k->queue, wrs, nr - from, NULL);
	if (taken <= 0)
		return taken;
	for (i = from; i < from + (unsigned int)taken; i++)
		reqs[i].status = -EREMCHG; /* until the completion says otherwise */
	err = kr_complete(k, reqs, (unsigned int)taken);
	return err ? err : taken;
}

static uint64_t kr_krcore_now_ms(struct kr_transport *t)
{
	(void)t;
	return kr_ms(CLOCK_BOOTTIME);
}

static int kr_krcore_submit(struct kr_transport *t, struct kr_req *reqs, unsigned int nr)
{
	struct kr_krcore *k = kr_krcore_of(t);
	unsigned int done, i;
	int got, err;

	for (i = 0; i < nr; i++)
		reqs[i].status = -ECANCELED;
	err = kr_connect(k);
	k->start_ms = kr_ms(CLOCK_MONOTONIC_COARSE);
	for (done = 0; !err && done < nr;) {
		if (done && kr_age_ms(k) > KR_MORE_MS) {
			err = -EBUSY; /* the rest is not done */
			break;
		}
		got = kr_post(k, reqs, done, nr);
		if (got < 0) {
			err = got;
			break;
		}
		for (i = done; !err && i < done + (unsigned int)got; i++)
			err = reqs[i].status;
		done += (unsigned int)got;
	}
	if (err)
		k->ready = false; /* if it is not in error, connecting says that it is connected */
	return err;
}

static void *kr_krcore_memory(struct kr_transport *t, size_t bytes)
{
	struct kr_krcore *k = kr_krcore_of(t);
	size_t room = (bytes + KR_PAGE - 1) / KR_PAGE * KR_PAGE;
	void *memory;

	if (!k->first_given && bytes <= KR_FIRST_MEMORY) {
		k->first_given = true;
		return (void *)(uintptr_t)k->mrs[0].addr;
	}
	if (k->nr_mrs == KR_MRS_MAX)
		return NULL;
	memory = aligned_alloc(KR_PAGE, room);
	if (!memory)
		return NULL;
	memset(memory, 0, room);
	if (krcore_mr_reg(k->node, memory, room, KRCORE_ACCESS_LOCAL_WRITE, &k->mrs[k->nr_mrs])) {
		free(memory);
		return NULL;
	}
	k->nr_mrs++;
	return memory;
}

static void kr_krcore_pause(struct kr_transport *t, unsigned int ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	(void)t;
	if (ms)
		nanosleep(&ts, NULL);
	else
		sched_yield();
}

static void kr_krcore_close(struct kr_transport *t)
{
	struct kr_krcore *k = kr_krcore_of(t);
	unsigned int i;

	/* closing a node does not wait for what is under way to memory that is freed here */
	if (k->queue)
		(void)krcore_queue_close(k->node, k->queue);
	(void)krcore_mr_dereg_many(k->node, k->mrs, k->nr_mrs);
	krcore_node_close(k->node);
	for (i = 0; i < k->nr_mrs; i++)
		free((void *)(uintptr_t)k->mrs[i].addr);
	free(k);
}

static const struct kr_transport_ops kr_krcore_ops = {
	.submit = kr_krcore_submit,
	.memory = kr_krcore_memory,
	.now_ms = kr_krcore_now_ms,
	.pause = kr_krcore_pause,
	.close = kr_krcore_close,
};

/*
 * Look the table and its node up, register the first memory, connect: the system calls of one
 * krcore_start(). What a client takes first it gets from that memory.
 */
static int kr_start(struct kr_krcore *k, const struct krcore_start_options *opts,
		    uint32_t *ret_reads)
{
	struct krcore_started started = { .size = sizeof(started) };
	int err = krcore_start(opts, &started);

	if (err)
		return err;
	k->node = started.node;
	k->queue = started.queue;
	k->ready = true;
	k->ref = started.remote;
	k->t.bytes = started.remote.length;
	k->mrs[0] = started.mr;
	k->nr_mrs = 1;
	*ret_reads = started.reads;
	return 0;
}

int kr_krcore_open(const char *server, uint16_t service, uint32_t port, uint32_t timeout_ms,
		   uint32_t flags, uint32_t *ret_reads, struct kr_transport **ret)
{
	struct krcore_node_options node = { .size = sizeof(node), .port = port };
	struct krcore_start_options opts = {
		.size = sizeof(opts),
		.node = &node,
		.length = KR_FIRST_MEMORY,
		.access = KRCORE_ACCESS_LOCAL_WRITE,
		.depth = KR_BATCH_MAX,
		.timeout_ms = timeout_ms,
		.flags = flags,
		.record = service,
	};
	struct kr_krcore *k = calloc(1, sizeof(*k));
	int err = -ENOMEM;

	if (!k)
		return err;
	k->t.ops = &kr_krcore_ops;
	k->t.late_ms = KR_LATE_MS;
	k->timeout_ms = timeout_ms;
	opts.memory = aligned_alloc(KR_PAGE, KR_FIRST_MEMORY);
	if (opts.memory) {
		memset(opts.memory, 0, KR_FIRST_MEMORY);
		err = krcore_key_from_text(server, KRCORE_SERVICE_NODE, &k->peer);
		opts.peer = k->peer;
	}
	if (!err)
		err = kr_start(k, &opts, ret_reads);
	if (err) {
		free(opts.memory);
		free(k);
		return err;
	}
	*ret = &k->t;
	return 0;
}
