// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Limits that a program meets with its requests and its memory: those of its user and of
 * RLIMIT_MEMLOCK. What is refused works when something has been given back.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "tests/module/dev.h"

#define KIB 1024UL
#define LIMIT_BATCH 8
#define LIMIT_BYTES 100000 /* a READ of which there are several under way at a time */
#define LIMIT_TRIES 2000

static int limit_take(struct dev *dev, uint8_t *mem, size_t bytes, uint32_t *ret_handle)
{
	struct dev_region region;
	int err = dev_register(dev, mem, bytes, KRP_ACCESS_LOCAL_WRITE, &region);

	if (!err && ret_handle)
		*ret_handle = region.handle;
	return err;
}

void limit_of_memory(void)
{
	uint8_t *mem =
		mmap(NULL, 256 * KIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rlimit limit = { 0 };
	uint32_t one = 0, two = 0;
	struct dev dev;

	getrlimit(RLIMIT_MEMLOCK, &limit);
	tap_equal("RLIMIT_MEMLOCK is 64 KiB", (long long)limit.rlim_cur, 64 * KIB);
	dev_open_or_die(&dev, 64);
	tap_equal("128 KiB", limit_take(&dev, mem, 128 * KIB, NULL), -ENOMEM);
	tap_equal("32 KiB", limit_take(&dev, mem, 32 * KIB, &one), 0);
	tap_equal("64 KiB beside them", limit_take(&dev, mem + 64 * KIB, 64 * KIB, NULL), -ENOMEM);
	tap_equal("32 KiB beside them", limit_take(&dev, mem + 64 * KIB, 32 * KIB, &two), 0);
	tap_equal("4 KiB more", limit_take(&dev, mem + 128 * KIB, 4 * KIB, NULL), -ENOMEM);
	tap_equal("forget the first", dev_deregister(&dev, one), 0);
	tap_equal("its 32 KiB again", limit_take(&dev, mem + 128 * KIB, 32 * KIB, &one), 0);
	tap_equal("forget them", dev_deregister(&dev, one), 0);
	tap_equal("forget the second", dev_deregister(&dev, two), 0);
	tap_equal("all 64 KiB", limit_take(&dev, mem, 64 * KIB, NULL), 0);
	dev_close(&dev);
	munmap(mem, 256 * KIB);
}

/* Take completions until none is missing. Return: how many failed, or -ETIME. */
static int limit_drain(struct dev *dev, unsigned int under_way)
{
	struct krp_cqe cqe;
	int failed = 0;

	for (; under_way; under_way--) {
		if (!dev_reap(dev, &cqe, DEV_TIMEOUT_MS))
			return -ETIME;
		failed += cqe.status != 0;
	}
	return failed;
}

/* Post as fast as it goes until a call takes none. Return: its error, or 0: it never did. */
static int limit_reach(struct dev *dev, uint32_t queue, const struct krp_wr *wrs,
		       unsigned int *under_way)
{
	struct krp_cqe cqe;
	unsigned int i;
	int taken;

	for (i = 0; i < LIMIT_TRIES; i++) {
		taken = dev_post(dev, queue, wrs, LIMIT_BATCH, NULL);
		if (taken < 0)
			return taken;
		*under_way += (unsigned int)taken;
		while (*under_way && dev_reap(dev, &cqe, 0))
			--*under_way;
	}
	return 0;
}

/* A posted buffer is charged for each completion that it may have. */
static int limit_lend(struct dev *dev, const struct dev_region *local, unsigned int completions)
{
	struct krp_post_recv post = {
		.addr = (uintptr_t)local->mem,
		.mr = local->handle,
		.length = LIMIT_BYTES,
		.messages = completions - 1,
	};

	return dev_ioctl(dev->fd, KRP_IOC_POST_RECV, &post);
}

static void limit_of_buffers(struct dev *dev, const struct dev_region *local, unsigned int most)
{
	struct krp_inbox inbox = { .bytes = 65536, .depth = 4 * most };
	struct krp_post_recv cancel = { .flags = KRP_RECV_CANCEL };

	tap_equal("a buffer without an inbox", limit_lend(dev, local, most), -EBADFD);
	tap_equal("an inbox", dev_ioctl(dev->fd, KRP_IOC_INBOX, &inbox), 0);
	tap_equal("a buffer that may have one completion more", limit_lend(dev, local, most + 1),
		  -EDQUOT);
	tap_equal("one that may have as many", limit_lend(dev, local, most), 0);
	tap_equal("one more", limit_lend(dev, local, 3), -EDQUOT);
	tap_equal("it is taken back", dev_ioctl(dev->fd, KRP_IOC_POST_RECV, &cancel), 0);
}

void limit_of_requests(const struct dev_peer *peer, unsigned int most)
{
	struct krp_wr wrs[LIMIT_BATCH];
	struct dev_region local;
	struct krp_query query;
	unsigned int under_way = most;
	struct dev dev;
	uint32_t queue;
	int i, error = 0;

	dev_open_or_die(&dev, 64);
	dev_region_or_die(&dev, 1 << 17, KRP_ACCESS_LOCAL_WRITE, &local);
	queue = dev_connected_or_die(&dev, 32, peer);
	for (i = 0; i < LIMIT_BATCH; i++)
		wrs[i] = dev_wr(KRP_OP_READ, &local, 0, peer->ro, peer->ro_addr, LIMIT_BYTES);
	tap_equal("query", dev_ioctl(dev.fd, KRP_IOC_QUERY, &query), 0);
	tap_equal("it says the limit", query.requests_max, most);
	tap_equal("a call takes as many as the user may have",
		  dev_post(&dev, queue, wrs, LIMIT_BATCH, &error), most);
	tap_equal("and says that it is the user's limit", error, -EDQUOT);
	tap_equal("with all of them under way it takes none",
		  limit_reach(&dev, queue, wrs, &under_way), -EDQUOT);
	tap_equal("they complete", limit_drain(&dev, under_way), 0);
	tap_equal("then it takes as many", dev_post(&dev, queue, wrs, LIMIT_BATCH, NULL), most);
	tap_equal("which complete", limit_drain(&dev, most), 0);
	error = 0;
	tap_equal("one fewer is taken", dev_post(&dev, queue, wrs, most - 1, &error), most - 1);
	tap_equal("without an error", error, 0);
	tap_equal("and completes", limit_drain(&dev, most - 1), 0);
	limit_of_buffers(&dev, &local, most);
	dev_close(&dev);
}
