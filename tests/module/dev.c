// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * /dev/krcore by its bare ioctls, for tests; see dev.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/module/dev.h"

static int tap_cases, tap_failures;

static void die(const char *what, int err)
{
	printf("Bail out! %s: %s\n", what, strerror(-err));
	exit(2);
}

uint64_t dev_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static volatile sig_atomic_t dev_stopped;

static void dev_stop(int number)
{
	dev_stopped = number;
}

uint64_t dev_end_ms(unsigned int seconds)
{
	signal(SIGTERM, dev_stop);
	return dev_now_ms() + 1000ULL * seconds;
}

int dev_over(uint64_t end_ms)
{
	return dev_stopped || dev_now_ms() >= end_ms;
}

int dev_ioctl(int fd, unsigned long request, void *arg)
{
	int ret = ioctl(fd, request, arg);

	return ret < 0 ? -errno : ret;
}

int dev_open(struct dev *dev, unsigned int entries)
{
	const char *port = getenv("KRC_PORT");
	struct krp_setup setup = {
		.abi = KRP_ABI_VERSION,
		.ring_entries = entries,
		.port = port ? (uint32_t)strtoul(port, NULL, 0) : 0,
	};
	const char *gid = getenv("KRC_GID");
	int err;

	if (gid && dev_parse_gid(gid, setup.gid))
		return -EINVAL;
	if (gid)
		setup.flags = KRP_SETUP_GID;
	dev->fd = open(DEV_PATH, O_RDWR | O_CLOEXEC);
	if (dev->fd < 0)
		return -errno;
	err = dev_ioctl(dev->fd, KRP_IOC_SETUP, &setup);
	if (err)
		goto err_close;
	dev->map_bytes = setup.map_bytes;
	dev->ring = mmap(NULL, dev->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, dev->fd, 0);
	if (dev->ring == MAP_FAILED) {
		err = -errno;
		goto err_close;
	}
	dev->cqes = (struct krp_cqe *)((uint8_t *)dev->ring + dev->ring->offset);
	return 0;

err_close:
	close(dev->fd);
	dev->fd = -1;
	return err;
}

void dev_open_or_die(struct dev *dev, unsigned int entries)
{
	int err = dev_open(dev, entries);

	if (err)
		die("open, set up and map " DEV_PATH, err);
}

void dev_close(struct dev *dev)
{
	munmap(dev->ring, dev->map_bytes);
	close(dev->fd);
	dev->fd = -1;
}

int dev_register(struct dev *dev, void *mem, size_t bytes, uint32_t access,
		 struct dev_region *ret_region)
{
	struct krp_mr_reg reg = { .addr = (uintptr_t)mem, .length = bytes, .access = access };
	int err = dev_ioctl(dev->fd, KRP_IOC_MR_REG, &reg);

	if (err)
		return err;
	ret_region->mem = mem;
	ret_region->bytes = bytes;
	ret_region->handle = reg.handle;
	ret_region->token = reg.token;
	return 0;
}

int dev_deregister(struct dev *dev, uint32_t handle)
{
	struct krp_mr_dereg dereg = { .handle = handle };

	return dev_ioctl(dev->fd, KRP_IOC_MR_DEREG, &dereg);
}

void dev_region_or_die(struct dev *dev, size_t bytes, uint32_t access, struct dev_region *ret)
{
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int err;

	if (mem == MAP_FAILED)
		die("mmap", -errno);
	err = dev_register(dev, mem, bytes, access, ret);
	if (err)
		die("KRP_IOC_MR_REG", err);
}

int dev_queue(struct dev *dev, uint32_t depth, uint32_t *ret_queue)
{
	struct krp_queue_create create = { .depth = depth };
	int err = dev_ioctl(dev->fd, KRP_IOC_QUEUE_CREATE, &create);

	if (!err)
		*ret_queue = create.queue;
	return err;
}

int dev_connect(struct dev *dev, uint32_t queue, const struct dev_peer *peer, uint32_t flags)
{
	struct krp_connect connect = {
		.queue = queue,
		.flags = flags,
		.service = peer->service,
		.timeout_ms = DEV_TIMEOUT_MS,
	};

	memcpy(connect.gid, peer->gid, sizeof(connect.gid));
	return dev_ioctl(dev->fd, KRP_IOC_CONNECT, &connect);
}

int dev_queue_open(struct dev *dev, uint32_t depth, const struct dev_peer *peer, uint32_t flags,
		   uint32_t *ret_queue)
{
	struct krp_connect connect = {
		.flags = flags | KRP_CONNECT_CREATE,
		.service = peer->service,
		.timeout_ms = DEV_TIMEOUT_MS,
		.depth = depth,
	};
	int err;

	memcpy(connect.gid, peer->gid, sizeof(connect.gid));
	err = dev_ioctl(dev->fd, KRP_IOC_CONNECT, &connect);
	if (!err)
		*ret_queue = connect.queue;
	return err;
}

uint32_t dev_connected_or_die(struct dev *dev, uint32_t depth, const struct dev_peer *peer)
{
	uint32_t queue = 0;
	int err = dev_queue(dev, depth, &queue);

	if (err)
		die("KRP_IOC_QUEUE_CREATE", err);
	err = dev_connect(dev, queue, peer, 0);
	if (err)
		die("KRP_IOC_CONNECT", err);
	return queue;
}

int dev_query(struct dev *dev, uint32_t queue, struct krp_queue_query *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->queue = queue;
	return dev_ioctl(dev->fd, KRP_IOC_QUEUE_QUERY, ret);
}

int dev_queue_close(struct dev *dev, uint32_t queue)
{
	struct krp_queue_close arg = { .queue = queue };

	return dev_ioctl(dev->fd, KRP_IOC_QUEUE_CLOSE, &arg);
}

int dev_post_flags(struct dev *dev, uint32_t queue, const struct krp_wr *wrs, uint32_t count,
		   uint32_t flags, int *ret_error)
{
	struct krp_post post = {
		.wrs = (uintptr_t)wrs, .count = count, .queue = queue, .flags = flags
	};
	int err = dev_ioctl(dev->fd, KRP_IOC_POST, &post);

	if (ret_error)
		*ret_error = err ? err : post.error;
	return err ? err : (int)post.taken;
}

int dev_post(struct dev *dev, uint32_t queue, const struct krp_wr *wrs, uint32_t count,
	     int *ret_error)
{
	return dev_post_flags(dev, queue, wrs, count, 0, ret_error);
}

int dev_reap(struct dev *dev, struct krp_cqe *ret_cqe, int timeout_ms)
{
	uint64_t deadline = dev_now_ms() + (uint64_t)timeout_ms;
	uint32_t head = dev->ring->head;

	while (head == __atomic_load_n(&dev->ring->tail, __ATOMIC_ACQUIRE)) {
		struct pollfd p = { .fd = dev->fd, .events = POLLIN };
		uint64_t now = dev_now_ms();

		if (now >= deadline)
			return 0;
		poll(&p, 1, (int)(deadline - now));
		if (p.revents & (POLLERR | POLLHUP) &&
		    head == __atomic_load_n(&dev->ring->tail, __ATOMIC_ACQUIRE))
			return 0;
	}
	*ret_cqe = dev->cqes[head & (dev->ring->entries - 1)];
	__atomic_store_n(&dev->ring->head, head + 1, __ATOMIC_RELEASE);
	return 1;
}

int dev_wait(struct dev *dev, uint32_t timeout_ms)
{
	struct krp_wait wait = { .timeout_ms = timeout_ms };

	return dev_ioctl(dev->fd, KRP_IOC_WAIT, &wait);
}

int dev_do(struct dev *dev, uint32_t queue, const struct krp_wr *wr)
{
	struct krp_cqe cqe;
	int ret = dev_post_flags(dev, queue, wr, 1, KRP_POST_WAIT, NULL);

	if (ret < 0)
		return ret;
	ret = dev_wait(dev, DEV_TIMEOUT_MS);
	if (ret)
		return ret;
	if (!dev_reap(dev, &cqe, DEV_TIMEOUT_MS))
		return -ETIME;
	return cqe.status;
}

int dev_bind(int fd, uint16_t service, uint16_t flags)
{
	struct krp_bind bind = { .service = service, .flags = flags };

	if (!(flags & KRP_BIND_UNDO))
		bind.timeout_ms = DEV_TIMEOUT_MS;
	return dev_ioctl(fd, KRP_IOC_BIND, &bind);
}

int dev_lookup(int fd, const uint8_t *gid, uint16_t service, struct krp_record_lookup *ret)
{
	*ret = (struct krp_record_lookup){
		.service = service,
		.flags = KRP_LOOKUP_FRESH,
		.timeout_ms = DEV_TIMEOUT_MS,
	};
	memcpy(ret->gid, gid, sizeof(ret->gid));
	return dev_ioctl(fd, KRP_IOC_LOOKUP, ret);
}

struct krp_record_publish dev_record(uint16_t service, const char *text)
{
	struct krp_record_publish record = {
		.service = service,
		.timeout_ms = DEV_TIMEOUT_MS,
		.raw_len = (uint8_t)strlen(text),
	};

	memcpy(record.raw, text, record.raw_len);
	return record;
}

int dev_publish(int fd, uint16_t service, const char *text)
{
	struct krp_record_publish record = dev_record(service, text);

	return dev_ioctl(fd, KRP_IOC_PUBLISH, &record);
}

int dev_watch(int fd, uint32_t flags)
{
	struct krp_record_watch watch = { .flags = flags };

	return dev_ioctl(fd, KRP_IOC_WATCH, &watch);
}

struct krp_wr dev_wr(uint8_t opcode, const struct dev_region *local, size_t offset, uint64_t token,
		     uint64_t addr, uint32_t length)
{
	struct krp_wr wr = {
		.local_addr = (uintptr_t)local->mem + offset,
		.remote_addr = addr,
		.remote_token = token,
		.local_mr = local->handle,
		.length = length,
		.opcode = opcode,
	};

	return wr;
}

int dev_parse_gid(const char *text, uint8_t gid[KRP_GID_BYTES])
{
	struct in_addr ipv4;

	if (inet_pton(AF_INET, text, &ipv4) == 1) {
		memset(gid, 0, 10);
		gid[10] = 0xff;
		gid[11] = 0xff;
		memcpy(gid + 12, &ipv4, 4);
		return 0;
	}
	return inet_pton(AF_INET6, text, gid) == 1 ? 0 : -EINVAL;
}

void dev_fill(uint8_t *mem, size_t bytes, uint64_t seed)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		mem[i] = (uint8_t)(krp_mix64(seed + i / 8) >> 8 * (i % 8));
}

void tap(int good, const char *name, const char *format, ...)
{
	va_list args;

	tap_cases++;
	printf("%s %d - %s", good ? "ok" : "not ok", tap_cases, name);
	if (!good) {
		tap_failures++;
		printf(": ");
		va_start(args, format);
		vprintf(format, args);
		va_end(args);
	}
	printf("\n");
	fflush(stdout);
}

int tap_end(void)
{
	printf("1..%d\n", tap_cases);
	return tap_failures ? 1 : 0;
}
