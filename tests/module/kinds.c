// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Memory of several kinds: private, shared, of huge pages, and much of it. What is
 * WRITTEN from it and READ into it in one request of megabytes is right, is seen by all who
 * share the memory, and what a child of fork(2) writes reaches the region only if it does.
 * The peer runs `krc_ioctl serve` with at least KINDS_BYTES.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/module/dev.h"

#define MIB (1UL << 20)
#define KINDS_BYTES (4 * MIB) /* of one request; a multiple of what hardware does at once */
#define MUCH_BYTES (64 * MIB)

/**
 * struct kind - A kind of memory.
 * @name: for diagnostics.
 * @flags: of mmap(2).
 * @memfd: of memfd_create(2); -1: no such file.
 * @shared: another mapping of it is the same memory.
 */
struct kind {
	const char *name;
	int flags;
	int memfd;
	bool shared;
};

static const struct kind kinds_all[] = {
	{ "private memory", MAP_PRIVATE | MAP_ANONYMOUS, -1, false },
	{ "shared memory", MAP_SHARED | MAP_ANONYMOUS, -1, true },
	{ "a memfd", MAP_SHARED, MFD_CLOEXEC, true },
	{ "private huge pages", MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, false },
	{ "a memfd of huge pages", MAP_SHARED, MFD_CLOEXEC | MFD_HUGETLB, true },
};

/**
 * struct kinds_case - One kind at work.
 * @kind: which.
 * @dev: context with a connected queue.
 * @queue: it.
 * @peer: where to.
 * @region: twice KINDS_BYTES: source and target.
 * @again: the same memory mapped once more, NULL if that cannot be.
 */
struct kinds_case {
	const struct kind *kind;
	struct dev *dev;
	uint32_t queue;
	const struct dev_peer *peer;
	struct dev_region region;
	uint8_t *again;
};

static void __attribute__((format(printf, 4, 5)))
kinds_tap(const struct kinds_case *c, bool good, const char *what, const char *format, ...)
{
	char name[128], text[128];
	va_list args;

	snprintf(name, sizeof(name), "%s: %s", c->kind->name, what);
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	tap(good, name, "%s", text);
}

/* Return: the memory, or NULL if there is none of this kind. */
static uint8_t *kinds_map(const struct kind *kind, size_t bytes, uint8_t **ret_again)
{
	int fd = kind->memfd < 0 ? -1 : memfd_create("krcore", (unsigned int)kind->memfd);
	void *mem, *again = NULL;

	if (kind->memfd >= 0 && (fd < 0 || ftruncate(fd, (off_t)bytes)))
		return NULL;
	mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, kind->flags, fd, 0);
	if (mem != MAP_FAILED && fd >= 0)
		again = mmap(NULL, bytes, PROT_READ | PROT_WRITE, kind->flags, fd, 0);
	if (fd >= 0)
		close(fd);
	if (mem == MAP_FAILED || again == MAP_FAILED)
		return NULL;
	*ret_again = again;
	return mem;
}

/* @opcode of @bytes at @offset of the region. Return: its status. */
static int kinds_move(const struct kinds_case *c, uint8_t opcode, size_t offset, uint32_t bytes)
{
	struct krp_wr wr = dev_wr(opcode, &c->region, offset, c->peer->rw, c->peer->rw_addr, bytes);
	struct krp_cqe cqe;
	int taken = dev_post(c->dev, c->queue, &wr, 1, NULL);

	if (taken < 0)
		return taken;
	if (!dev_reap(c->dev, &cqe, DEV_TIMEOUT_MS))
		return -ETIME;
	return cqe.status ? cqe.status : cqe.bytes == bytes ? 0 : -EBADMSG;
}

static void kinds_megabytes(const struct kinds_case *c)
{
	uint8_t *from = c->region.mem, *to = from + KINDS_BYTES;
	int err;

	dev_fill(from, KINDS_BYTES, c->region.token);
	memset(to, 0xee, KINDS_BYTES);
	err = kinds_move(c, KRP_OP_WRITE, 0, KINDS_BYTES);
	kinds_tap(c, !err, "WRITE of 4 MiB in one request", "%s", strerror(-err));
	err = kinds_move(c, KRP_OP_READ, KINDS_BYTES, KINDS_BYTES);
	kinds_tap(c, !err, "READ of 4 MiB in one request", "%s", strerror(-err));
	kinds_tap(c, !memcmp(from, to, KINDS_BYTES), "what is READ is what was WRITTEN",
		  "it differs");
	if (c->again)
		kinds_tap(c, !memcmp(c->again + KINDS_BYTES, from, KINDS_BYTES),
			  "who maps it again sees what was READ", "it differs");
}

/* A child writes; what is sent then is what this process wrote, or what the child did. */
static void kinds_child(const struct kinds_case *c)
{
	uint8_t *from = c->region.mem, *to = from + KINDS_BYTES;
	int status = -1, err;
	pid_t pid;

	memset(from, 0x11, 64);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		memset(from, 0x22, 64);
		_exit(from[63] != 0x22);
	}
	waitpid(pid, &status, 0);
	err = status ?: kinds_move(c, KRP_OP_WRITE, 0, 64);
	if (!err)
		err = kinds_move(c, KRP_OP_READ, KINDS_BYTES, 64);
	kinds_tap(c, !err, "used after fork", "%d", err);
	kinds_tap(c, to[0] == (c->kind->shared ? 0x22 : 0x11) && to[63] == to[0],
		  c->kind->shared ? "what a child writes reaches the region"
				  : "what a child writes does not reach the region",
		  "%#x", to[0]);
	/* the parent's own writes must, also those after the fork */
	memset(from, 0x33, 64);
	err = kinds_move(c, KRP_OP_WRITE, 0, 64) ?: kinds_move(c, KRP_OP_READ, KINDS_BYTES, 64);
	kinds_tap(c, !err && to[0] == 0x33, "what the parent writes after fork does", "%d, %#x",
		  err, to[0]);
}

static void kinds_one(struct dev *dev, uint32_t queue, const struct dev_peer *peer,
		      const struct kind *kind)
{
	struct kinds_case c = { .kind = kind, .dev = dev, .queue = queue, .peer = peer };
	uint8_t *mem = kinds_map(kind, 2 * KINDS_BYTES, &c.again);
	int err;

	kinds_tap(&c, mem, "there is some", "%s", strerror(errno));
	if (!mem)
		return;
	err = dev_register(dev, mem, 2 * KINDS_BYTES, KRP_ACCESS_ALL, &c.region);
	kinds_tap(&c, !err, "registered", "%s", strerror(-err));
	if (err)
		return;
	kinds_megabytes(&c);
	kinds_child(&c);
	err = dev_deregister(dev, c.region.handle);
	kinds_tap(&c, !err, "taken back", "%s", strerror(-err));
	munmap(mem, 2 * KINDS_BYTES);
}

/* A large region: its last bytes are as good as its first. */
static void kinds_much(struct dev *dev, uint32_t queue, const struct dev_peer *peer)
{
	struct kinds_case c = { .kind = &kinds_all[0], .dev = dev, .queue = queue, .peer = peer };
	int err;

	dev_region_or_die(dev, MUCH_BYTES, KRP_ACCESS_ALL, &c.region);
	dev_fill(c.region.mem + MUCH_BYTES - KINDS_BYTES, KINDS_BYTES, 64);
	err = kinds_move(&c, KRP_OP_WRITE, MUCH_BYTES - KINDS_BYTES, KINDS_BYTES);
	kinds_tap(&c, !err, "WRITE of the last 4 of 64 MiB", "%s", strerror(-err));
	err = kinds_move(&c, KRP_OP_READ, MUCH_BYTES / 2 - 13, KINDS_BYTES);
	kinds_tap(&c, !err, "READ into the middle of it", "%s", strerror(-err));
	kinds_tap(&c,
		  !memcmp(c.region.mem + MUCH_BYTES / 2 - 13,
			  c.region.mem + MUCH_BYTES - KINDS_BYTES, KINDS_BYTES),
		  "both are right", "they differ");
	err = kinds_move(&c, KRP_OP_READ, MUCH_BYTES - KINDS_BYTES + 1, KINDS_BYTES);
	kinds_tap(&c, err == -ERANGE, "not a byte behind it", "%d", err);
}

void kinds(const struct dev_peer *peer)
{
	struct dev dev;
	uint32_t queue;
	size_t i;

	dev_open_or_die(&dev, 64);
	queue = dev_connected_or_die(&dev, 8, peer);
	tap(peer->bytes >= KINDS_BYTES, "the peer has so much memory", "%zu bytes", peer->bytes);
	for (i = 0; i < sizeof(kinds_all) / sizeof(kinds_all[0]); i++)
		kinds_one(&dev, queue, peer, &kinds_all[i]);
	kinds_much(&dev, queue, peer);
	dev_close(&dev);
}
