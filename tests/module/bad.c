// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Bad input to every ioctl of /dev/krcore, one rule at a time, with the error that the
 * manual page promises; and bad requests on a queue that works, which must go on
 * working. None of this needs rights.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/module/dev.h"

#define PAGE 4096

static void bad_numbers(int fd)
{
	char buf[256] = { 0 };

	tap_equal("unknown ioctl", dev_ioctl(fd, _IOWR(KRP_IOC_MAGIC, 99, struct krp_setup), buf),
		  -ENOTTY);
	tap_equal("ioctl of another device", dev_ioctl(fd, _IO('x', 1), buf), -ENOTTY);
	tap_equal("known number, other size",
		  dev_ioctl(fd, _IOWR(KRP_IOC_MAGIC, 1, struct krp_wr), buf), -ENOTTY);
}

static void bad_pointers(int fd, void *bad, const char *what)
{
	static const struct {
		unsigned long request;
		const char *name;
	} all[] = {
		{ KRP_IOC_QUERY, "QUERY" },
		{ KRP_IOC_SETUP, "SETUP" },
		{ KRP_IOC_PORT, "PORT" },
		{ KRP_IOC_MR_REG, "MR_REG" },
		{ KRP_IOC_MR_DEREG, "MR_DEREG" },
		{ KRP_IOC_MR_DEREG_MANY, "MR_DEREG_MANY" },
		{ KRP_IOC_QUEUE_CREATE, "QUEUE_CREATE" },
		{ KRP_IOC_CONNECT, "CONNECT" },
		{ KRP_IOC_QUEUE_QUERY, "QUEUE_QUERY" },
		{ KRP_IOC_QUEUE_CLOSE, "QUEUE_CLOSE" },
		{ KRP_IOC_BIND, "BIND" },
		{ KRP_IOC_POST, "POST" },
		{ KRP_IOC_WAIT, "WAIT" },
		{ KRP_IOC_LOOKUP, "LOOKUP" },
		{ KRP_IOC_PUBLISH, "PUBLISH" },
		{ KRP_IOC_WATCH, "WATCH" },
		{ KRP_IOC_INBOX, "INBOX" },
		{ KRP_IOC_OPEN, "OPEN" },
		{ KRP_IOC_ACCEPT, "ACCEPT" },
		{ KRP_IOC_SEND, "SEND" },
		{ KRP_IOC_RECV, "RECV" },
		{ KRP_IOC_LARGE, "LARGE" },
		{ KRP_IOC_CANCEL, "CANCEL" },
		{ KRP_IOC_SHUT, "SHUT" },
		{ KRP_IOC_CONN_QUERY, "CONN_QUERY" },
		{ KRP_IOC_POST_RECV, "POST_RECV" },
	};
	char name[80];
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		snprintf(name, sizeof(name), "%s at %s", all[i].name, what);
		tap_equal(name, dev_ioctl(fd, all[i].request, bad), -EFAULT);
	}
}

static int setup(int fd, uint32_t abi, uint32_t flags, uint32_t entries, uint32_t port, uint8_t gid)
{
	struct krp_setup arg = {
		.abi = abi,
		.flags = flags,
		.ring_entries = entries,
		.port = port,
		.gid = { [15] = gid },
	};

	return dev_ioctl(fd, KRP_IOC_SETUP, &arg);
}

static void bad_setup(int fd)
{
	tap_equal("setup: other version", setup(fd, KRP_ABI_VERSION + 1, 0, 64, 0, 0),
		  -EPROTONOSUPPORT);
	tap_equal("setup: version 0", setup(fd, 0, 0, 64, 0, 0), -EPROTONOSUPPORT);
	tap_equal("setup: flags", setup(fd, KRP_ABI_VERSION, 2, 64, 0, 0), -EINVAL);
	tap_equal("setup: GID without its flag", setup(fd, KRP_ABI_VERSION, 0, 64, 0, 1), -EINVAL);
	tap_equal("setup: port and GID", setup(fd, KRP_ABI_VERSION, KRP_SETUP_GID, 64, 1, 1),
		  -EINVAL);
	tap_equal("setup: nobody's GID", setup(fd, KRP_ABI_VERSION, KRP_SETUP_GID, 64, 0, 1),
		  -ENODEV);
	tap_equal("setup: no entries", setup(fd, KRP_ABI_VERSION, 0, 0, 0, 0), -EINVAL);
	tap_equal("setup: too few entries",
		  setup(fd, KRP_ABI_VERSION, 0, KRP_RING_ENTRIES_MIN / 2, 0, 0), -EINVAL);
	tap_equal("setup: too many entries",
		  setup(fd, KRP_ABI_VERSION, 0, KRP_RING_ENTRIES_MAX * 2, 0, 0), -EINVAL);
	tap_equal("setup: no power of two", setup(fd, KRP_ABI_VERSION, 0, 100, 0, 0), -EINVAL);
	tap_equal("setup: 2^31 entries", setup(fd, KRP_ABI_VERSION, 0, 1U << 31, 0, 0), -EINVAL);
	tap_equal("setup: no such port", setup(fd, KRP_ABI_VERSION, 0, 64, 99, 0), -ENODEV);
}

/* What mmap says: 0, or a negative errno. A mapping that comes about goes again. */
static int map(int fd, size_t bytes, int prot, int flags, size_t offset)
{
	void *mem = mmap(NULL, bytes, prot, flags, fd, (off_t)offset);

	if (mem == MAP_FAILED)
		return -errno;
	munmap(mem, bytes);
	return 0;
}

static void before_setup(int fd)
{
	struct krp_mr_reg reg = { .addr = (uintptr_t)&fd, .length = 4 };
	struct krp_queue_create create = { .depth = 4 };
	struct pollfd p = { .fd = fd, .events = POLLIN };

	tap_equal("region before setup", dev_ioctl(fd, KRP_IOC_MR_REG, &reg), -EBADFD);
	tap_equal("queue before setup", dev_ioctl(fd, KRP_IOC_QUEUE_CREATE, &create), -EBADFD);
	tap_equal("mmap before setup", map(fd, PAGE, PROT_READ, MAP_SHARED, 0), -EBADFD);
	poll(&p, 1, 0);
	tap(!(p.revents & POLLIN), "poll before setup", "it is ready to be read");
}

static void bad_maps(struct dev *dev)
{
	const int rw = PROT_READ | PROT_WRITE;
	size_t bytes = dev->map_bytes;

	tap_equal("mmap of more than there is", map(dev->fd, bytes + PAGE, rw, MAP_SHARED, 0),
		  -EINVAL);
	tap_equal("mmap of a part", map(dev->fd, bytes - PAGE, rw, MAP_SHARED, 0), -EINVAL);
	tap_equal("mmap behind the ring", map(dev->fd, bytes, rw, MAP_SHARED, bytes), -EINVAL);
	tap_equal("mmap to execute", map(dev->fd, bytes, PROT_READ | PROT_EXEC, MAP_SHARED, 0),
		  -EINVAL);
	tap_equal("private mmap", map(dev->fd, bytes, rw, MAP_PRIVATE, 0), -EINVAL);
	tap_equal("mmap once more", map(dev->fd, bytes, rw, MAP_SHARED, 0), 0);
	tap_equal("mmap to read only", map(dev->fd, bytes, PROT_READ, MAP_SHARED, 0), 0);
	tap_equal("second setup", setup(dev->fd, KRP_ABI_VERSION, 0, 64, 0, 0), -EBUSY);
}

static int reg(struct dev *dev, uint64_t addr, uint64_t length, uint32_t access, uint64_t rsvd)
{
	struct krp_mr_reg arg = {
		.addr = addr,
		.length = length,
		.access = access,
		.rsvd = rsvd,
	};

	return dev_ioctl(dev->fd, KRP_IOC_MR_REG, &arg);
}

/* What cannot be told is undone. Nothing was made before on @dev. */
static void untold(struct dev *dev)
{
	struct krp_queue_create *create =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct krp_mr_reg *region = (struct krp_mr_reg *)(create + 1);
	unsigned int id;
	int found = 0;

	create->depth = 4;
	region->addr = (uintptr_t)create;
	region->length = PAGE;
	region->access = KRP_ACCESS_REMOTE_READ;
	mprotect(create, PAGE, PROT_READ);
	tap_equal("queue whose number cannot be told",
		  dev_ioctl(dev->fd, KRP_IOC_QUEUE_CREATE, create), -EFAULT);
	tap_equal("region whose handle cannot be told", dev_ioctl(dev->fd, KRP_IOC_MR_REG, region),
		  -EFAULT);
	for (id = 1; id < 64; id++) {
		struct krp_queue_close shut = { .queue = id };
		struct krp_mr_dereg dereg = { .handle = id };

		found += dev_ioctl(dev->fd, KRP_IOC_QUEUE_CLOSE, &shut) != -ENOENT;
		found += dev_ioctl(dev->fd, KRP_IOC_MR_DEREG, &dereg) != -ENOENT;
	}
	tap_equal("they are not there", found, 0);
	munmap(create, PAGE);
}

static void bad_regions(struct dev *dev)
{
	uint8_t *mem =
		mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t addr = (uintptr_t)mem;
	struct krp_mr_dereg dereg = { .handle = 0 };

	mprotect(mem + 2 * PAGE, PAGE, PROT_NONE);
	munmap(mem + 3 * PAGE, PAGE);
	tap_equal("region: no bytes", reg(dev, addr, 0, 1, 0), -EINVAL);
	tap_equal("region: pad", reg(dev, addr, 8, 1, 1), -EINVAL);
	tap_equal("region: unknown access", reg(dev, addr, 8, 2 * KRP_ACCESS_MESSAGE, 0), -EINVAL);
	tap_equal("region: all bits of access", reg(dev, addr, 8, UINT32_MAX, 0), -EINVAL);
	tap_equal("region: remote but not local writing",
		  reg(dev, addr, 8, KRP_ACCESS_REMOTE_WRITE, 0), -EINVAL);
	tap_equal("region: atomics but not local writing",
		  reg(dev, addr, 8, KRP_ACCESS_REMOTE_ATOMIC, 0), -EINVAL);
	tap_equal("region: wraps", reg(dev, addr, UINT64_MAX, 1, 0), -EINVAL);
	tap_equal("region: ends at 2^64", reg(dev, UINT64_MAX - 7, 8, 1, 0), -EINVAL);
	tap_equal("region: memory of the kernel", reg(dev, 0xffff888000000000ULL, PAGE, 1, 0),
		  -EFAULT);
	tap_equal("region: nothing mapped", reg(dev, 0, PAGE, 1, 0), -EFAULT);
	tap_equal("region: hole at the end", reg(dev, addr + PAGE, 3 * PAGE, 1, 0), -EFAULT);
	tap_equal("region: no access", reg(dev, addr + 2 * PAGE, PAGE, 1, 0), -EFAULT);
	tap_equal("forget a region that is not there", dev_ioctl(dev->fd, KRP_IOC_MR_DEREG, &dereg),
		  -ENOENT);
	dereg.handle = UINT32_MAX;
	tap_equal("forget region 2^32 - 1", dev_ioctl(dev->fd, KRP_IOC_MR_DEREG, &dereg), -ENOENT);
	dereg.rsvd = 1;
	tap_equal("forget with a pad", dev_ioctl(dev->fd, KRP_IOC_MR_DEREG, &dereg), -EINVAL);
	munmap(mem, 3 * PAGE);
}

/* A region is forgotten once; the same memory may be registered twice. */
static void twice(struct dev *dev)
{
	struct dev_region one, two;

	dev_region_or_die(dev, PAGE, KRP_ACCESS_ALL, &one);
	tap_equal("the same memory again",
		  dev_register(dev, one.mem, PAGE, KRP_ACCESS_REMOTE_READ, &two), 0);
	tap(one.token && two.token && one.token != two.token, "tokens differ", "%#llx and %#llx",
	    (unsigned long long)one.token, (unsigned long long)two.token);
	tap_equal("forget it", dev_deregister(dev, one.handle), 0);
	tap_equal("forget it again", dev_deregister(dev, one.handle), -ENOENT);
	tap_equal("forget the other", dev_deregister(dev, two.handle), 0);
	dev_region_or_die(dev, PAGE, KRP_ACCESS_LOCAL_WRITE, &one);
	tap_equal("no token without remote access", (long long)one.token, 0);
	dev_deregister(dev, one.handle);
}

static int create(struct dev *dev, uint32_t depth, uint32_t flags, uint32_t rsvd)
{
	struct krp_queue_create arg = { .depth = depth, .flags = flags, .rsvd = rsvd };

	return dev_ioctl(dev->fd, KRP_IOC_QUEUE_CREATE, &arg);
}

static void bad_queues(struct dev *dev)
{
	struct krp_queue_query query = { .queue = 12345 };
	struct krp_queue_close close_arg = { .queue = 12345 };
	uint32_t queue = 0, more;

	tap_equal("queue: no depth", create(dev, 0, 0, 0), -EINVAL);
	tap_equal("queue: too deep", create(dev, KRP_QUEUE_DEPTH_MAX + 1, 0, 0), -EINVAL);
	tap_equal("queue: flags", create(dev, 4, 1, 0), -EINVAL);
	tap_equal("queue: pad", create(dev, 4, 0, 1), -EINVAL);
	tap_equal("query a queue that is not there",
		  dev_ioctl(dev->fd, KRP_IOC_QUEUE_QUERY, &query), -ENOENT);
	query.rsvd = 1;
	tap_equal("query with a pad", dev_ioctl(dev->fd, KRP_IOC_QUEUE_QUERY, &query), -EINVAL);
	tap_equal("close a queue that is not there",
		  dev_ioctl(dev->fd, KRP_IOC_QUEUE_CLOSE, &close_arg), -ENOENT);
	close_arg.rsvd = 1;
	tap_equal("close with a pad", dev_ioctl(dev->fd, KRP_IOC_QUEUE_CLOSE, &close_arg), -EINVAL);

	tap_equal("a queue as deep as the ring", dev_queue(dev, dev->ring->entries, &queue), 0);
	tap_equal("a queue that the ring has no room for", dev_queue(dev, 1, &more), -ENOSPC);
	tap_equal("close it", dev_queue_close(dev, queue), 0);
	tap_equal("close it again", dev_queue_close(dev, queue), -ENOENT);
	tap_equal("its room is there again", dev_queue(dev, dev->ring->entries, &queue), 0);
	dev_queue_close(dev, queue);
}

static int connect_bad(struct dev *dev, const struct krp_connect *arg)
{
	struct krp_connect copy = *arg;

	return dev_ioctl(dev->fd, KRP_IOC_CONNECT, &copy);
}

static void bad_connects(struct dev *dev)
{
	struct krp_connect good = { .gid = { 0xfd, 1 }, .timeout_ms = 500 }, arg;
	struct krp_wr wr = { .length = 8, .opcode = KRP_OP_READ };
	struct krp_queue_query query;

	dev_queue(dev, 4, &good.queue);
	tap_equal("post to a queue that is not connected", dev_post(dev, good.queue, &wr, 1, NULL),
		  -ENOTCONN);
	arg = good;
	arg.queue = 12345;
	tap_equal("connect a queue that is not there", connect_bad(dev, &arg), -ENOENT);
	arg = good;
	arg.flags = KRP_CONNECT_CREATE << 1;
	tap_equal("connect: flags", connect_bad(dev, &arg), -EINVAL);
	arg = good;
	arg.rsvd = 1;
	tap_equal("connect: pad", connect_bad(dev, &arg), -EINVAL);
	arg = good;
	arg.depth = 1;
	tap_equal("connect: depth of a queue that is there", connect_bad(dev, &arg), -EINVAL);
	arg = good;
	arg.timeout_ms = 0;
	tap_equal("connect: no time", connect_bad(dev, &arg), -EINVAL);
	arg = good;
	arg.timeout_ms = KRP_CONNECT_TIMEOUT_MS_MAX + 1;
	tap_equal("connect: too much time", connect_bad(dev, &arg), -EINVAL);
	arg = good;
	arg.timeout_ms = DEV_TIMEOUT_MS;
	tap_equal("connect to nobody", connect_bad(dev, &arg), -ENOENT);
	tap_equal("query it", dev_query(dev, good.queue, &query), 0);
	tap_equal("it is in ERROR", query.state, KRP_QUEUE_ERROR);
	tap_equal("and says why", query.error, -ENOENT);
	dev_queue_close(dev, good.queue);
}

/* A queue made and connected in one call; what fails leaves none. */
static void bad_opens(struct dev *dev)
{
	struct krp_connect good = { .gid = { 0xfd, 1 },
				    .flags = KRP_CONNECT_CREATE,
				    .timeout_ms = DEV_TIMEOUT_MS,
				    .depth = 4 };
	struct krp_connect arg = good;
	uint32_t queue = 0;

	arg.queue = 1;
	tap_equal("open: number", connect_bad(dev, &arg), -EINVAL);
	arg = good;
	arg.depth = 0;
	tap_equal("open: no depth", connect_bad(dev, &arg), -EINVAL);
	arg = good;
	arg.depth = KRP_QUEUE_DEPTH_MAX + 1;
	tap_equal("open: too deep", connect_bad(dev, &arg), -EINVAL);
	arg = good;
	arg.depth = dev->ring->entries + 1;
	tap_equal("open: more than the ring has", connect_bad(dev, &arg), -ENOSPC);
	tap_equal("open to nobody", connect_bad(dev, &good), -ENOENT);
	tap_equal("nothing is left of it", dev_queue(dev, dev->ring->entries, &queue), 0);
	dev_queue_close(dev, queue);
}

static int wait_for(struct dev *dev, uint32_t timeout_ms, uint32_t flags)
{
	struct krp_wait arg = { .timeout_ms = timeout_ms, .flags = flags };

	return dev_ioctl(dev->fd, KRP_IOC_WAIT, &arg);
}

static void on_alarm(int number)
{
	(void)number;
}

static void bad_waits(struct dev *dev)
{
	/* again and again: one may come before the call */
	const struct itimerval soon = { .it_interval.tv_usec = 100000, .it_value.tv_usec = 100000 };
	const struct itimerval never = { 0 };
	struct dev fresh;

	tap_equal("wait: flags", wait_for(dev, 0, KRP_WAIT_LETTERS << 1), -EINVAL);
	tap_equal("wait: only look", wait_for(dev, 0, 0), -ETIMEDOUT);
	tap_equal("wait for what never comes", wait_for(dev, 20, 0), -ETIMEDOUT);
	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &soon, NULL);
	tap_equal("wait: a signal", wait_for(dev, KRP_WAIT_FOREVER, 0), -EINTR);
	setitimer(ITIMER_REAL, &never, NULL);
	fresh.fd = open(DEV_PATH, O_RDWR | O_CLOEXEC);
	tap_equal("wait without setup", wait_for(&fresh, 0, 0), -EBADFD);
	close(fresh.fd);
}

static int bind_bad(struct dev *dev, uint16_t service, uint16_t flags, uint32_t ms, uint64_t rsvd)
{
	struct krp_bind arg = {
		.service = service,
		.flags = flags,
		.timeout_ms = ms,
		.rsvd = rsvd,
	};

	return dev_ioctl(dev->fd, KRP_IOC_BIND, &arg);
}

static void bad_binds(struct dev *dev)
{
	struct dev other;

	tap_equal("bind: service of the node", bind_bad(dev, 0, 0, 1000, 0), -EINVAL);
	tap_equal("bind: reserved service", bind_bad(dev, 255, 0, 1000, 0), -EINVAL);
	tap_equal("bind: flags", bind_bad(dev, 4711, 2, 1000, 0), -EINVAL);
	tap_equal("bind: pad", bind_bad(dev, 4711, 0, 1000, 1), -EINVAL);
	tap_equal("bind: no time", bind_bad(dev, 4711, 0, 0, 0), -EINVAL);
	tap_equal("bind: too long", bind_bad(dev, 4711, 0, KRP_CONNECT_TIMEOUT_MS_MAX + 1, 0),
		  -EINVAL);
	tap_equal("bind: undo, too long",
		  bind_bad(dev, 4711, KRP_BIND_UNDO, KRP_CONNECT_TIMEOUT_MS_MAX + 1, 0), -EINVAL);
	tap_equal("bind: undo what is not bound", bind_bad(dev, 4711, KRP_BIND_UNDO, 0, 0),
		  -ENOENT);
	dev_open_or_die(&other, 64);
	tap_equal("bind", bind_bad(dev, 4711, 0, DEV_TIMEOUT_MS, 0), 0);
	tap_equal("bind: somebody has it", bind_bad(&other, 4711, 0, 1000, 0), -EADDRINUSE);
	tap_equal("bind: undo what is another's", bind_bad(&other, 4711, KRP_BIND_UNDO, 1000, 0),
		  -ENOENT);
	tap_equal("bind: undo", bind_bad(dev, 4711, KRP_BIND_UNDO, 1000, 0), 0);
	tap_equal("bind: now the other may", bind_bad(&other, 4711, 0, DEV_TIMEOUT_MS, 0), 0);
	dev_close(&other);
}

/* Number 0 is the port that the file has, by now. */
static void own_port(const struct dev *dev)
{
	struct krp_port_info own = { .index = 0 }, first = { .index = 1 };

	tap_equal("the first port", dev_ioctl(dev->fd, KRP_IOC_PORT, &first), 0);
	tap_equal("port 0 after setup", dev_ioctl(dev->fd, KRP_IOC_PORT, &own), 0);
	tap_equal("its number", own.index, 0);
	tap_equal("it is the one", memcmp(own.gid, first.gid, sizeof(own.gid)), 0);
}

void bad_inputs(void)
{
	int fd = open(DEV_PATH, O_RDWR | O_CLOEXEC);
	struct krp_query query;
	struct krp_port_info port = { .index = 99 };
	struct dev dev;

	tap(fd >= 0, "open", "%s", strerror(errno));
	if (fd < 0)
		return;
	tap_equal("query", dev_ioctl(fd, KRP_IOC_QUERY, &query), 0);
	tap_equal("version", query.abi, KRP_ABI_VERSION);
	tap_equal("port that is not there", dev_ioctl(fd, KRP_IOC_PORT, &port), -ENOENT);
	port.index = 0;
	tap_equal("port 0", dev_ioctl(fd, KRP_IOC_PORT, &port), -EINVAL);
	bad_numbers(fd);
	bad_pointers(fd, NULL, "no address");
	bad_pointers(fd, (void *)(uintptr_t)(UINTPTR_MAX - 7), "the end of memory");
	before_setup(fd);
	bad_setup(fd);
	close(fd);

	dev_open_or_die(&dev, 64);
	own_port(&dev);
	bad_maps(&dev);
	untold(&dev);
	bad_regions(&dev);
	twice(&dev);
	bad_queues(&dev);
	bad_connects(&dev);
	bad_opens(&dev);
	bad_waits(&dev);
	bad_binds(&dev);
	dev_close(&dev);
}

/* ---- requests on a queue that works ---- */

struct bad_fixture {
	struct dev dev;
	const struct dev_peer *peer;
	struct dev_region mem, readonly;
	uint32_t queue;
};

static struct krp_wr good_wr(const struct bad_fixture *f)
{
	return dev_wr(KRP_OP_READ, &f->mem, 0, f->peer->rw, f->peer->rw_addr, 64);
}

/* A request is refused with an error, and the queue does not suffer. */
static void refused(struct bad_fixture *f, const struct krp_wr *wr, int want, const char *name)
{
	struct krp_wr good = good_wr(f);
	struct krp_queue_query query;
	char text[100];

	tap_equal(name, dev_post(&f->dev, f->queue, wr, 1, NULL), want);
	snprintf(text, sizeof(text), "%s: the queue works as before", name);
	if (dev_query(&f->dev, f->queue, &query) || query.state != KRP_QUEUE_READY)
		tap(0, text, "state %u, error %d", query.state, query.error);
	else
		tap_equal(text, dev_do(&f->dev, f->queue, &good), 0);
}

static void bad_remote(struct bad_fixture *f)
{
	const struct dev_peer *peer = f->peer;
	struct krp_wr wr = good_wr(f);

	wr.remote_token ^= 1ULL << 63;
	refused(f, &wr, -EBADR, "token guessed");
	wr.remote_token = peer->rw | 0xffff;
	refused(f, &wr, -EBADR, "token outside of the directory");
	wr.remote_token = 0;
	refused(f, &wr, -EBADR, "no token");
	wr.remote_token = peer->rw ^ 0x800;
	refused(f, &wr, -EBADR, "token of a slot that is free");
	wr = good_wr(f);
	wr.remote_addr = peer->rw_addr - 1;
	refused(f, &wr, -EOVERFLOW, "one byte before the peer's region");
	wr.remote_addr = peer->rw_addr + peer->bytes - wr.length + 1;
	refused(f, &wr, -EOVERFLOW, "one byte behind the peer's region");
	wr.remote_addr = UINT64_MAX - 8;
	refused(f, &wr, -EOVERFLOW, "remote address that wraps");
	wr = dev_wr(KRP_OP_WRITE, &f->mem, 0, peer->ro, peer->ro_addr, 64);
	refused(f, &wr, -EPERM, "WRITE to a region that is open to READs");
	wr = dev_wr(KRP_OP_FETCH_ADD, &f->mem, 0, peer->ro, peer->ro_addr, 8);
	refused(f, &wr, -EPERM, "atomic on a region that is open to READs");
}

static void bad_local(struct bad_fixture *f)
{
	struct krp_wr wr = good_wr(f);

	wr.local_mr = 54321;
	refused(f, &wr, -ENOENT, "local region that is not there");
	wr = good_wr(f);
	wr.local_addr -= 1;
	refused(f, &wr, -ERANGE, "one byte before the local region");
	wr.local_addr = (uintptr_t)f->mem.mem + f->mem.bytes - wr.length + 1;
	refused(f, &wr, -ERANGE, "one byte behind the local region");
	wr = dev_wr(KRP_OP_READ, &f->readonly, 0, f->peer->rw, f->peer->rw_addr, 64);
	refused(f, &wr, -EACCES, "READ into a region that is not writable");
}

static void bad_fields(struct bad_fixture *f)
{
	const struct dev_peer *peer = f->peer;
	struct krp_wr wr = good_wr(f);

	wr.opcode = 0;
	refused(f, &wr, -EINVAL, "operation 0");
	wr.opcode = KRP_OP_FETCH_ADD + 1;
	refused(f, &wr, -EINVAL, "operation 5");
	wr = good_wr(f);
	wr.flags = 0x80;
	refused(f, &wr, -EINVAL, "unknown flag");
	wr = good_wr(f);
	wr.rsvd[5] = 1;
	refused(f, &wr, -EINVAL, "pad of a request");
	wr = good_wr(f);
	wr.length = 0;
	refused(f, &wr, -EINVAL, "nothing to transfer");
	wr.length = KRP_LENGTH_MAX + 1;
	refused(f, &wr, -EINVAL, "more than 1 GiB");
	wr = dev_wr(KRP_OP_CMP_SWAP, &f->mem, 0, peer->rw, peer->rw_addr, 4);
	refused(f, &wr, -EINVAL, "atomic of 4 bytes");
	wr = dev_wr(KRP_OP_CMP_SWAP, &f->mem, 0, peer->rw, peer->rw_addr + 4, 8);
	refused(f, &wr, -EINVAL, "atomic that is not aligned");
	wr = dev_wr(KRP_OP_FETCH_ADD, &f->mem, 0, peer->rw, peer->rw_addr, 8);
	wr.flags = KRP_WR_IDEMPOTENT;
	refused(f, &wr, -EINVAL, "atomic that may be done twice");
}

static void bad_batches(struct bad_fixture *f)
{
	struct krp_post post = { .count = 1, .queue = f->queue };
	struct krp_wr wrs[3];
	struct krp_cqe cqe;
	int error = 0, i;

	tap_equal("no requests", dev_post(&f->dev, f->queue, wrs, 0, NULL), -EINVAL);
	post.flags = KRP_POST_WAIT << 1;
	tap_equal("post: flags", dev_ioctl(f->dev.fd, KRP_IOC_POST, &post), -EINVAL);
	post.flags = 0;
	post.rsvd = 1;
	tap_equal("post: pad", dev_ioctl(f->dev.fd, KRP_IOC_POST, &post), -EINVAL);
	post.rsvd = 0;
	tap_equal("too many requests", dev_post(&f->dev, f->queue, wrs, KRP_POST_MAX + 1, NULL),
		  -EINVAL);
	post.wrs = 16;
	tap_equal("requests that are nowhere", dev_ioctl(f->dev.fd, KRP_IOC_POST, &post), -EFAULT);
	post.wrs = UINT64_MAX - 8;
	tap_equal("requests at the end of memory", dev_ioctl(f->dev.fd, KRP_IOC_POST, &post),
		  -EFAULT);
	for (i = 0; i < 3; i++)
		wrs[i] = good_wr(f);
	wrs[1].remote_token = 1;
	tap_equal("a bad request stops a batch", dev_post(&f->dev, f->queue, wrs, 3, &error), 1);
	tap_equal("and says why", error, -EBADR);
	tap_equal("what stood before it completes",
		  dev_reap(&f->dev, &cqe, DEV_TIMEOUT_MS) ? cqe.status : -ETIME, 0);
	tap_equal("and nothing else", dev_reap(&f->dev, &cqe, 200), 0);
}

/* A connection whose number cannot be told is undone. */
static void bad_open_untold(struct bad_fixture *f)
{
	struct krp_connect *open =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t queue = 0, room = f->dev.ring->entries - 16;

	*open = (struct krp_connect){ .flags = KRP_CONNECT_CREATE,
				      .service = f->peer->service,
				      .timeout_ms = DEV_TIMEOUT_MS,
				      .depth = 1 };
	memcpy(open->gid, f->peer->gid, sizeof(open->gid));
	mprotect(open, PAGE, PROT_READ);
	tap_equal("connection whose number cannot be told",
		  dev_ioctl(f->dev.fd, KRP_IOC_CONNECT, open), -EFAULT);
	tap_equal("its room is there again", dev_queue_open(&f->dev, room, f->peer, 0, &queue), 0);
	tap_equal("and is taken", dev_queue_open(&f->dev, 1, f->peer, 0, &queue), -ENOSPC);
	dev_queue_close(&f->dev, queue);
	munmap(open, PAGE);
}

/* Requests whose number cannot be told are done all the same, and complete. */
static void bad_post_untold(struct bad_fixture *f)
{
	struct krp_wr wr = good_wr(f);
	struct krp_post *post =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct krp_cqe cqe = { .status = -ETIME };

	wr.user_data = 0x701d;
	*post = (struct krp_post){ .wrs = (uintptr_t)&wr, .count = 1, .queue = f->queue };
	mprotect(post, PAGE, PROT_READ);
	tap_equal("post whose answer cannot be written", dev_ioctl(f->dev.fd, KRP_IOC_POST, post),
		  -EFAULT);
	tap_equal("what it took completes", dev_reap(&f->dev, &cqe, DEV_TIMEOUT_MS), 1);
	tap_equal("as what it is", (long long)cqe.user_data, 0x701d);
	tap_equal("and well", cqe.status, 0);
	tap_equal("once", dev_reap(&f->dev, &cqe, 200), 0);
	munmap(post, PAGE);
}

void bad_requests(const struct dev_peer *peer)
{
	struct bad_fixture f = { .peer = peer };

	dev_open_or_die(&f.dev, 64);
	dev_region_or_die(&f.dev, PAGE, KRP_ACCESS_LOCAL_WRITE, &f.mem);
	dev_region_or_die(&f.dev, PAGE, 0, &f.readonly);
	f.queue = dev_connected_or_die(&f.dev, 16, peer);
	tap_equal("connect a queue that is connected", dev_connect(&f.dev, f.queue, peer, 0),
		  -EISCONN);
	bad_open_untold(&f);
	bad_remote(&f);
	bad_local(&f);
	bad_fields(&f);
	bad_batches(&f);
	bad_post_untold(&f);
	dev_close(&f.dev);
}
