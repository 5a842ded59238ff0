// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Any ioctl with any argument, from a seed. The module may refuse what it likes; the
 * kernel must live, and a context made afterwards must work. Numbers are random, small
 * or at an edge; addresses point to memory, to holes and to the kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/module/dev.h"

#define ARENA_BYTES 65536
#define CALLS_A_CONTEXT 300
#define ARG_BYTES_MAX 128

struct random_state {
	uint64_t seed;
	uint8_t *arena; /* writable; behind it is nothing */
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

	switch (random_number(r) % 8) {
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
	if (number == _IOC_NR(KRP_IOC_WAIT))
		((struct krp_wait *)arg)->timeout_ms %= 30;
}

static unsigned int random_context(struct random_state *r, unsigned int calls)
{
	static const unsigned long known[] = {
		KRP_IOC_QUERY,	     KRP_IOC_SETUP,	   KRP_IOC_PORT,    KRP_IOC_MR_REG,
		KRP_IOC_MR_DEREG,    KRP_IOC_QUEUE_CREATE, KRP_IOC_CONNECT, KRP_IOC_QUEUE_QUERY,
		KRP_IOC_QUEUE_CLOSE, KRP_IOC_BIND,	   KRP_IOC_POST,    KRP_IOC_WAIT,
	};
	uint64_t arg[ARG_BYTES_MAX / 8];
	int fd = open(DEV_PATH, O_RDWR | O_CLOEXEC);
	unsigned int i, good = 0;

	if (fd < 0)
		return 0;
	for (i = 0; i < calls; i++) {
		unsigned long request =
			known[random_number(r) % (sizeof(known) / sizeof(known[0]))];
		void *at = arg;

		random_argument(r, _IOC_NR(request), (uint8_t *)arg);
		if (random_number(r) % 16 == 0)
			request = _IOC(random_number(r) % 4, KRP_IOC_MAGIC, random_number(r) % 16,
				       random_number(r) % 256);
		if (random_number(r) % 32 == 0)
			at = (void *)(uintptr_t)random_value(r);
		else if (random_number(r) % 32 == 0) /* straddles the end of the arena */
			at = r->arena + ARENA_BYTES - random_number(r) % 64;
		good += !dev_ioctl(fd, request, at);
	}
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

int random_inputs(uint64_t seed, unsigned int calls)
{
	struct random_state r = { .seed = seed };
	unsigned int done, good = 0;
	struct krp_query query;
	struct dev dev;

	r.arena = mmap(NULL, 2 * ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);
	if (r.arena == MAP_FAILED)
		return -errno;
	munmap(r.arena + ARENA_BYTES, ARENA_BYTES);
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
	return 0;
}
