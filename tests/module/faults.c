// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * krc_ioctl PEER faults: every allocation of every ioctl fails once. The call says -ENOMEM
 * and leaves nothing behind, or does without; the same call succeeds right after, and what
 * is READ in the end is right.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/module/dev.h"
#include "tests/module/fail_nth.h"

#define FAULTS_BYTES 65536
#define FAULTS_SERVICE 4660

/* What the steps work on. */
struct faults {
	const struct dev_peer *peer;
	struct dev dev, opened;
	struct dev_region local, made;
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

static int faults_bind(void *arg)
{
	struct krp_bind bind = { .service = FAULTS_SERVICE, .timeout_ms = DEV_TIMEOUT_MS };
	struct faults *f = arg;

	return dev_ioctl(f->dev.fd, KRP_IOC_BIND, &bind);
}

static int faults_unbind(void *arg)
{
	struct krp_bind bind = { .service = FAULTS_SERVICE,
				 .flags = KRP_BIND_UNDO,
				 .timeout_ms = DEV_TIMEOUT_MS };
	struct faults *f = arg;

	return dev_ioctl(f->dev.fd, KRP_IOC_BIND, &bind);
}

static const struct fail_nth_step faults_steps[] = {
	{ .name = "open and set up", .run = faults_open, .undo = faults_shut },
	{ .name = "register", .run = faults_register_local, .undo = faults_deregister },
	{ .name = "register, open to peers",
	  .run = faults_register_open,
	  .undo = faults_deregister },
	{ .name = "deregister",
	  .prepare = faults_register_local,
	  .run = faults_deregister,
	  .undo_failed = faults_deregister,
	  .never_fails = true },
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
