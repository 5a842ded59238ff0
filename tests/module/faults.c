// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * krc_ioctl PEER faults: every allocation of every ioctl fails once. The call says -ENOMEM
 * and leaves nothing behind, or does without; the same call succeeds right after, and what
 * is READ in the end is right.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "proto/krp_msg.h"
#include "tests/module/dev.h"
#include "tests/module/fail_nth.h"

#define FAULTS_BYTES 65536
#define FAULTS_SERVICE 4660
#define FAULTS_RECORD 4661
#define FAULTS_BATCH 32
#define FAULTS_PIECE 256 /* bytes of each READ of a batch */
#define FAULTS_REAPS_MAX (4 * FAULTS_BATCH)

/* What the steps work on. */
struct faults {
	const struct dev_peer *peer;
	struct dev dev, opened;
	struct dev_region local, made, other;
	uint8_t *memory;
	uint32_t queue;
};

/* ---- steps ---- */

static int faults_open(void *arg)
{
	struct faults *f = arg;

	return dev_open(&f->opened, 64);
}

static int faults_shut(void *arg)
{
	struct faults *f = arg;

	dev_close(&f->opened);
	return 0;
}

static int faults_query(void *arg)
{
	struct krp_query query = { 0 };
	struct faults *f = arg;

	return dev_ioctl(f->dev.fd, KRP_IOC_QUERY, &query);
}

static int faults_port(void *arg)
{
	struct krp_port_info port = { .index = 1 };
	struct faults *f = arg;

	return dev_ioctl(f->dev.fd, KRP_IOC_PORT, &port);
}

static int faults_register(struct faults *f, uint32_t access)
{
	return dev_register(&f->dev, f->memory, FAULTS_BYTES, access, &f->made);
}

static int faults_register_local(void *arg)
{
	return faults_register(arg, KRP_ACCESS_LOCAL_WRITE);
}

static int faults_register_open(void *arg)
{
	return faults_register(arg, KRP_ACCESS_ALL);
}

static int faults_deregister(void *arg)
{
	struct faults *f = arg;

	return dev_deregister(&f->dev, f->made.handle);
}

static int faults_register_two(void *arg)
{
	struct faults *f = arg;
	int err = faults_register(f, KRP_ACCESS_ALL);

	return err ? err
		   : dev_register(&f->dev, f->memory, FAULTS_BYTES, KRP_ACCESS_ALL, &f->other);
}

/* The two of them: the answer is how many, so it is compared here. */
static int faults_deregister_many(void *arg)
{
	struct faults *f = arg;
	uint32_t handles[] = { f->made.handle, f->other.handle };
	struct krp_mr_dereg_many many = { .handles = (uintptr_t)handles, .count = 2 };
	int err = dev_ioctl(f->dev.fd, KRP_IOC_MR_DEREG_MANY, &many);

	return err ? err : many.done == 2 ? 0 : -EPROTO;
}

static int faults_deregister_each(void *arg)
{
	struct faults *f = arg;

	dev_deregister(&f->dev, f->made.handle);
	dev_deregister(&f->dev, f->other.handle);
	return 0;
}

static int faults_queue(void *arg)
{
	struct faults *f = arg;

	return dev_queue(&f->dev, 256, &f->queue);
}

static int faults_queue_close(void *arg)
{
	struct faults *f = arg;

	return dev_queue_close(&f->dev, f->queue);
}

static int faults_connect(void *arg)
{
	struct faults *f = arg;

	return dev_connect(&f->dev, f->queue, f->peer, KRP_CONNECT_FRESH);
}

static int faults_queue_open(void *arg)
{
	struct faults *f = arg;

	return dev_queue_open(&f->dev, 256, f->peer, KRP_CONNECT_FRESH, &f->queue);
}

/* On a fresh connection: the peer's directory is READ as well. */
static int faults_read(void *arg)
{
	struct faults *f = arg;
	struct krp_wr wr =
		dev_wr(KRP_OP_READ, &f->local, 0, f->peer->ro, f->peer->ro_addr, FAULTS_BYTES);

	return dev_do(&f->dev, f->queue, &wr);
}

static int faults_queue_query(void *arg)
{
	struct krp_queue_query query;
	struct faults *f = arg;

	return dev_query(&f->dev, f->queue, &query);
}

/* All that were taken complete, whatever the call said. */
static int faults_drain(struct faults *f)
{
	struct krp_queue_query query = { .outstanding = 1 };
	struct krp_cqe cqe;
	unsigned int i;
	int err = 0;

	for (i = 0; i < FAULTS_REAPS_MAX && !err && query.outstanding; i++) {
		dev_reap(&f->dev, &cqe, 100);
		err = dev_query(&f->dev, f->queue, &query);
	}
	while (dev_reap(&f->dev, &cqe, 0))
		;
	return !err && query.outstanding ? -ETIME : err;
}

static int faults_drain_and_close(void *arg)
{
	struct faults *f = arg;
	int err = faults_drain(f);

	return err ? err : faults_queue_close(f);
}

static int faults_batch(void *arg)
{
	struct krp_wr wrs[FAULTS_BATCH];
	struct krp_cqe cqe = { 0 };
	struct faults *f = arg;
	int taken, error = 0, i;

	for (i = 0; i < FAULTS_BATCH; i++)
		wrs[i] = dev_wr(KRP_OP_READ, &f->local, (size_t)i * FAULTS_PIECE, f->peer->ro,
				f->peer->ro_addr + (uint64_t)i * FAULTS_PIECE, FAULTS_PIECE);
	taken = dev_post(&f->dev, f->queue, wrs, FAULTS_BATCH, &error);
	for (i = 0; i < taken && !cqe.status; i++)
		if (!dev_reap(&f->dev, &cqe, DEV_TIMEOUT_MS))
			return -ETIME;
	return cqe.status ? cqe.status : error;
}

static int faults_lookup(void *arg)
{
	struct krp_record_lookup found;
	struct faults *f = arg;

	return dev_lookup(f->dev.fd, f->peer->gid, KRP_SERVICE_NODE, &found);
}

static int faults_watch(void *arg)
{
	struct faults *f = arg;

	return dev_watch(f->dev.fd, 0);
}

static int faults_watch_off(void *arg)
{
	struct faults *f = arg;

	return dev_watch(f->dev.fd, KRP_WATCH_OFF);
}

static int faults_publish(void *arg)
{
	struct faults *f = arg;

	return dev_publish(f->dev.fd, FAULTS_RECORD, "here");
}

static int faults_unpublish(void *arg)
{
	struct faults *f = arg;

	return dev_bind(f->dev.fd, FAULTS_RECORD, KRP_BIND_UNDO);
}

static int faults_bind(void *arg)
{
	struct faults *f = arg;

	return dev_bind(f->dev.fd, FAULTS_SERVICE, 0);
}

static int faults_unbind(void *arg)
{
	struct faults *f = arg;

	return dev_bind(f->dev.fd, FAULTS_SERVICE, KRP_BIND_UNDO);
}

static const struct fail_nth_step faults_steps[] = {
	{ .name = "open and set up", .run = faults_open, .undo = faults_shut },
	{ .name = "query", .run = faults_query, .never_fails = true },
	{ .name = "query a port", .run = faults_port, .never_fails = true },
	{ .name = "register", .run = faults_register_local, .undo = faults_deregister },
	{ .name = "register, open to peers",
	  .run = faults_register_open,
	  .undo = faults_deregister },
	{ .name = "deregister",
	  .prepare = faults_register_local,
	  .run = faults_deregister,
	  .undo_failed = faults_deregister,
	  .never_fails = true },
	{ .name = "deregister two",
	  .prepare = faults_register_two,
	  .run = faults_deregister_many,
	  .undo_failed = faults_deregister_each },
	{ .name = "create a queue", .run = faults_queue, .undo = faults_queue_close },
	{ .name = "connect",
	  .prepare = faults_queue,
	  .run = faults_connect,
	  .undo = faults_queue_close,
	  .undo_failed = faults_queue_close },
	{ .name = "create and connect", .run = faults_queue_open, .undo = faults_queue_close },
	{ .name = "first READ",
	  .prepare = faults_queue_open,
	  .run = faults_read,
	  .undo = faults_queue_close,
	  .undo_failed = faults_queue_close },
	{ .name = "a batch",
	  .prepare = faults_queue_open,
	  .run = faults_batch,
	  .undo = faults_drain_and_close,
	  .undo_failed = faults_drain_and_close },
	{ .name = "query a queue",
	  .prepare = faults_queue,
	  .run = faults_queue_query,
	  .undo = faults_queue_close,
	  .undo_failed = faults_queue_close,
	  .never_fails = true },
	{ .name = "close a queue",
	  .prepare = faults_queue_open,
	  .run = faults_queue_close,
	  .undo_failed = faults_queue_close,
	  .never_fails = true },
	{ .name = "bind", .run = faults_bind, .undo = faults_unbind, .undo_failed = faults_unbind },
	{ .name = "unbind",
	  .prepare = faults_bind,
	  .run = faults_unbind,
	  .undo_failed = faults_unbind,
	  .never_fails = true },
	{ .name = "look up", .run = faults_lookup },
	{ .name = "watch",
	  .run = faults_watch,
	  .undo = faults_watch_off,
	  .undo_failed = faults_watch_off },
	{ .name = "publish",
	  .run = faults_publish,
	  .undo = faults_unpublish,
	  .undo_failed = faults_unpublish },
	{ .name = "publish again",
	  .prepare = faults_publish,
	  .run = faults_publish,
	  .undo = faults_unpublish,
	  .undo_failed = faults_unpublish },
};

static void faults_content(struct faults *f)
{
	uint8_t *want = malloc(FAULTS_BYTES);
	int err;

	memset(f->local.mem, 0, FAULTS_BYTES);
	err = faults_queue_open(f);
	if (!err)
		err = faults_read(f);
	tap_equal("READ afterwards", err, 0);
	dev_fill(want, FAULTS_BYTES, f->peer->ro);
	tap(!memcmp(want, f->local.mem, FAULTS_BYTES), "what it brought", "other bytes");
	faults_queue_close(f);
	free(want);
}

void faults(const struct dev_peer *peer)
{
	struct faults f = { .peer = peer };
	struct fail_nth_count c;
	size_t i;
	int err;

	dev_open_or_die(&f.dev, 512);
	dev_region_or_die(&f.dev, FAULTS_BYTES, KRP_ACCESS_LOCAL_WRITE, &f.local);
	f.memory = mmap(NULL, FAULTS_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	for (i = 0; i < sizeof(faults_steps) / sizeof(faults_steps[0]); i++) {
		memset(&c, 0, sizeof(c));
		err = fail_nth_sweep(&faults_steps[i], &f, &c);
		printf("# %s: %u allocations, %u failed, %u did without\n", faults_steps[i].name,
		       c.allocations, c.failed, c.went_on);
		tap(!err, faults_steps[i].name, "%s", strerror(-err));
	}
	faults_content(&f);
	munmap(f.memory, FAULTS_BYTES);
	dev_close(&f.dev);
}
