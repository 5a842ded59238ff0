// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * krc_ioctl PEER large GIBIBYTES: a region of so many, which the module makes of several keys on a
 * card with DC; without DC 1 is the most. It needs no such memory: the range is one file of 64 MiB,
 * mapped again and again, whose pages are allocated in an order in which few neighbours are
 * neighbours for the NIC, too. While it is registered another process registers pages of its own.
 * What crosses a border between two keys, or the same place in one key, is right.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/module/dev.h"

#define LARGE_FILE (64UL << 20)
#define LARGE_PAGE 4096UL
#define LARGE_STRIDE 4099 /* pages; odd, so that all of a power of two come by */
#define LARGE_PART (256UL << 20) /* of 65536 pages: what one key lists */
#define LARGE_PIECE 64U

/* What two processes tell each other: how much one has done, and when it is to end. */
struct large_shared {
	_Atomic unsigned int registered;
	_Atomic bool over;
};

static uint8_t *large_map(size_t bytes)
{
	uint8_t *mem = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = memfd_create("krcore", MFD_CLOEXEC);
	size_t at, page;

	if (mem == MAP_FAILED || fd < 0 || ftruncate(fd, (off_t)LARGE_FILE))
		return NULL;
	for (at = 0; at < bytes; at += LARGE_FILE)
		if (mmap(mem + at, LARGE_FILE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
			 0) == MAP_FAILED)
			return NULL;
	for (page = 0; page < LARGE_FILE / LARGE_PAGE; page++)
		mem[page * LARGE_STRIDE % (LARGE_FILE / LARGE_PAGE) * LARGE_PAGE] = 1;
	close(fd);
	return mem;
}

/* Another program: regions of a page, one after the other. */
static void large_neighbour(struct large_shared *shared)
{
	struct dev_region region;
	struct dev dev;

	dev_open_or_die(&dev, 16);
	while (!atomic_load(&shared->over)) {
		dev_region_or_die(&dev, LARGE_PAGE, KRP_ACCESS_LOCAL_WRITE, &region);
		if (dev_deregister(&dev, region.handle))
			_exit(1);
		munmap(region.mem, LARGE_PAGE);
		atomic_fetch_add(&shared->registered, 1);
	}
	_exit(0);
}

/* Bytes that lie on both sides of the end of key @nr go out, and come in. */
static int large_border(struct dev *dev, uint32_t queue, const struct dev_peer *peer,
			const struct dev_region *region, unsigned int nr)
{
	size_t border = nr * LARGE_PART - LARGE_PIECE / 2, inside = nr * LARGE_PART + (1 << 20);
	uint8_t want[LARGE_PIECE];
	struct krp_wr out, in;
	int err;

	dev_fill(want, sizeof(want), nr);
	memcpy(region->mem + border, want, sizeof(want));
	out = dev_wr(KRP_OP_WRITE, region, border, peer->rw, peer->rw_addr, sizeof(want));
	in = dev_wr(KRP_OP_READ, region, inside, peer->rw, peer->rw_addr, sizeof(want));
	memset(region->mem + inside, 0, sizeof(want));
	err = dev_do(dev, queue, &out) ?: dev_do(dev, queue, &in);
	if (err || memcmp(region->mem + inside, want, sizeof(want)) != 0)
		return err ?: -EBADMSG;
	in = dev_wr(KRP_OP_READ, region, border, peer->rw, peer->rw_addr, sizeof(want));
	memset(region->mem + border, 0, sizeof(want));
	err = dev_do(dev, queue, &in);
	return err ?: memcmp(region->mem + border, want, sizeof(want)) ? -EBADMSG : 0;
}

static void large_use(struct dev *dev, const struct dev_peer *peer, const struct dev_region *region,
		      size_t bytes)
{
	uint32_t queue = dev_connected_or_die(dev, 4, peer);
	struct krp_wr wr;
	unsigned int nr;
	char name[48];

	for (nr = 1; nr < bytes / LARGE_PART; nr++) {
		snprintf(name, sizeof(name), "over byte %u MiB",
			 nr * (unsigned int)(LARGE_PART >> 20));
		tap_equal(name, large_border(dev, queue, peer, region, nr), 0);
	}
	wr = dev_wr(KRP_OP_READ, region, bytes - LARGE_PIECE + 1, peer->rw, peer->rw_addr,
		    LARGE_PIECE);
	tap_equal("not a byte behind it", dev_do(dev, queue, &wr), -ERANGE);
}

int large(const struct dev_peer *peer, unsigned int gibibytes)
{
	size_t bytes = (size_t)gibibytes << 30;
	struct large_shared *shared =
		mmap(NULL, LARGE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint8_t *mem = large_map(bytes);
	struct dev_region region;
	unsigned int before;
	int status = -1;
	struct dev dev;
	pid_t pid;

	tap(mem && shared != MAP_FAILED, "so many addresses", "%u GiB are not there", gibibytes);
	if (!mem || shared == MAP_FAILED)
		return tap_end();
	fflush(stdout);
	pid = fork();
	if (!pid)
		large_neighbour(shared);
	while (!atomic_load(&shared->registered) && !waitpid(pid, &status, WNOHANG))
		usleep(1000);
	dev_open_or_die(&dev, 16);
	before = atomic_load(&shared->registered);
	tap_equal("registered", dev_register(&dev, mem, bytes, KRP_ACCESS_ALL, &region), 0);
	tap(atomic_load(&shared->registered) > before, "others register meanwhile", "none did");
	large_use(&dev, peer, &region, bytes);
	before = atomic_load(&shared->registered);
	tap_equal("taken back", dev_deregister(&dev, region.handle), 0);
	tap(atomic_load(&shared->registered) > before, "others register meanwhile", "none did");
	atomic_store(&shared->over, true);
	waitpid(pid, &status, 0);
	tap_equal("the other program had no error", status, 0);
	dev_close(&dev);
	return tap_end();
}
