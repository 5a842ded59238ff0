// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Many regions: taken back in one call, which waits once; and what they are charged, which
 * is given back no sooner than their pages.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/krp_mrdir.h"
#include "tests/module/dev.h"

#define MANY 64
#define MANY_BYTES 4096
#define CHARGE_ROUNDS 5
#define CHARGE_PAUSE_US 50000 /* the end of a process is dealt with, a lease is not over */

static int many_forget(struct dev *dev, const uint32_t *handles, uint32_t count, uint32_t *ret_done)
{
	struct krp_mr_dereg_many arg = { .handles = (uintptr_t)handles, .count = count };
	int err = dev_ioctl(dev->fd, KRP_IOC_MR_DEREG_MANY, &arg);

	*ret_done = err ? 0 : arg.done;
	return err;
}

/* Regions open to peers, all of the same page. Return: how many could be made. */
static uint32_t many_register(struct dev *dev, uint8_t *mem, uint32_t count, uint32_t *handles)
{
	struct dev_region region;
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (dev_register(dev, mem, MANY_BYTES, KRP_ACCESS_ALL, &region))
			break;
		handles[i] = region.handle;
	}
	return i;
}

static void many_bad(struct dev *dev, uint32_t handle)
{
	struct krp_mr_dereg_many arg = { .handles = (uintptr_t)&handle, .count = 1, .done = 1 };
	uint32_t none = UINT32_MAX, done;

	tap_equal("none of them", many_forget(dev, &handle, 0, &done), -EINVAL);
	tap_equal("too many", many_forget(dev, &handle, KRP_MR_DEREG_MAX + 1, &done), -EINVAL);
	tap_equal("a result that is not zero", dev_ioctl(dev->fd, KRP_IOC_MR_DEREG_MANY, &arg),
		  -EINVAL);
	tap_equal("handles that cannot be read", many_forget(dev, NULL, 1, &done), -EFAULT);
	tap_equal("the first is not there", many_forget(dev, &none, 1, &done), -ENOENT);
}

void many(void)
{
	uint8_t *mem =
		mmap(NULL, MANY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t handles[MANY + 1], twice[3], done = 0;
	uint64_t alone, took;
	struct dev dev;

	dev_open_or_die(&dev, 64);
	tap_equal("regions open to peers", many_register(&dev, mem, MANY, handles), MANY);
	many_bad(&dev, handles[0]);
	alone = dev_now_ms();
	tap_equal("one is taken back", dev_deregister(&dev, handles[MANY - 1]), 0);
	took = dev_now_ms();
	alone = took - alone;
	tap_equal("all others at once", many_forget(&dev, handles, MANY - 1, &done), 0);
	took = dev_now_ms() - took;
	tap_equal("all of them", done, MANY - 1);
	tap(took >= KRP_MRDIR_LEASE_MS, "their lease is waited for", "only %llu ms",
	    (unsigned long long)took);
	tap(took < 2 * alone, "once", "%llu ms, one alone %llu ms", (unsigned long long)took,
	    (unsigned long long)alone);
	tap_equal("they are gone", many_forget(&dev, handles + 1, 1, &done), -ENOENT);

	many_register(&dev, mem, 2, twice);
	twice[2] = twice[1];
	twice[1] = twice[0];
	tap_equal("one is named twice", many_forget(&dev, twice, 3, &done), 0);
	tap_equal("that before it is taken back", done, 1);
	tap_equal("that behind it is still there", dev_deregister(&dev, twice[2]), 0);
	dev_close(&dev);
	munmap(mem, MANY_BYTES);
}

/* A process with all the regions that its user may have, which ends. */
static void charge_child(uint8_t *mem, uint32_t most)
{
	uint32_t handles[MANY], made = 0;
	struct dev dev;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		if (!dev_open(&dev, 64))
			made = many_register(&dev, mem, most, handles);
		_exit(made == most ? 0 : 1);
	}
	waitpid(pid, NULL, 0);
	usleep(CHARGE_PAUSE_US);
}

/* The limit of regions is @most, up to MANY. */
void charge(unsigned int most)
{
	uint8_t *mem =
		mmap(NULL, MANY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned int i, refused = 0;
	struct dev_region region;
	struct dev dev;
	uint64_t end_ms;
	int err = 0;

	dev_open_or_die(&dev, 64);
	for (i = 0; i < CHARGE_ROUNDS; i++) {
		charge_child(mem, most);
		err = dev_register(&dev, mem, MANY_BYTES, 0, &region);
		refused += err == -EDQUOT;
		/* pages and charge come back when lease and margin are over */
		for (end_ms = dev_now_ms() + DEV_TIMEOUT_MS;
		     err == -EDQUOT && dev_now_ms() < end_ms; usleep(CHARGE_PAUSE_US))
			err = dev_register(&dev, mem, MANY_BYTES, 0, &region);
		if (err)
			break;
		dev_deregister(&dev, region.handle);
	}
	tap(refused > 0, "regions whose pages are pinned are charged", "never refused");
	tap_equal("and are not when the pages are back", err, 0);
	dev_close(&dev);
	munmap(mem, MANY_BYTES);
}
