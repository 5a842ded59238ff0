// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Requests in memory that nobody serves: a page of a userfaultfd(2) that stays missing. The
 * call that reads them waits for it, and nobody else may. Needs root: an unprivileged
 * descriptor does not stop the kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/module/dev.h"

#define PAGE_BYTES 4096

/* A page that is never there, or NULL. */
static void *missing_page(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	void *page;

	page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fd < 0 || page == MAP_FAILED || ioctl(fd, UFFDIO_API, &api))
		return NULL;
	range.range.start = (uintptr_t)page;
	range.range.len = PAGE_BYTES;
	return ioctl(fd, UFFDIO_REGISTER, &range) ? NULL : page;
}

int paged(const struct dev_peer *peer)
{
	const struct krp_wr *wrs = missing_page();
	struct dev_region local;
	struct dev dev;
	uint32_t queue;

	if (!wrs) {
		fprintf(stderr, "userfaultfd: %s\n", strerror(errno));
		return 1;
	}
	dev_open_or_die(&dev, 64);
	dev_region_or_die(&dev, PAGE_BYTES, KRP_ACCESS_LOCAL_WRITE, &local);
	queue = dev_connected_or_die(&dev, 16, peer);
	printf("posting\n");
	fflush(stdout);
	dev_post(&dev, queue, wrs, 1, NULL); /* never returns */
	return 1;
}
