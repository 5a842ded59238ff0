// SPDX-License-Identifier: GPL-2.0-only
/*
 * A sample: a module that keeps its data in the memory of a program on another node, as a small block
 * device would.
 *
 * It WRITEs a block of its own into remote memory, READs it back into another, compares, and begins
 * again with other bytes, for each of `lanes` blocks, until it is unloaded. All of that is done in
 * callbacks; nobody sleeps for a request.
 *
 *	modprobe krcore_rw gid=::ffff:192.0.2.2 service=0 token=0x... addr=0x... [lanes=8]
 *
 * token and addr name memory that a program has opened for READ and WRITE, as it says them to peers;
 * there are as many bytes as lanes blocks of 4096. How far it is stands in
 * /sys/module/krcore_rw/parameters: rounds, bad (blocks that came back other than they were written),
 * error (errno that ended it, or 0).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/inet.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#include <krcore/kernel.h>

#define RW_LANES_MAX 64
#define RW_LOOKUP_MS 5000

static char *gid = "";
module_param(gid, charp, 0444);
MODULE_PARM_DESC(gid, "GID of the node whose memory it is, as an IPv6 address");
static ushort service;
module_param(service, ushort, 0444);
MODULE_PARM_DESC(service, "service of the node; 0: the node itself");
static unsigned long long token;
module_param(token, ullong, 0444);
MODULE_PARM_DESC(token, "token of the memory");
static unsigned long long addr;
module_param(addr, ullong, 0444);
MODULE_PARM_DESC(addr, "first byte of the memory, as its program sees it");
static uint lanes = 8;
module_param(lanes, uint, 0444);
MODULE_PARM_DESC(lanes, "blocks that are under way at once, 1 to 64");
static ulong rounds;
module_param(rounds, ulong, 0444);
MODULE_PARM_DESC(rounds, "out: blocks written, read back and compared");
static ulong bad;
module_param(bad, ulong, 0444);
MODULE_PARM_DESC(bad, "out: of those, the ones that differed");
static int error;
module_param(error, int, 0444);
MODULE_PARM_DESC(error, "out: errno that ended it, or 0");

/**
 * struct rw_lane - One block.
 * @number: which one.
 * @round: what is written now begins with this number.
 */
struct rw_lane {
	u32 number;
	u64 round;
};

/**
 * struct rw - What there is once.
 * @lock: one opens or closes at a time.
 * @client: krcore's client; NULL: closed.
 * @queue: queue to the node that has the memory.
 * @region: @pages, registered.
 * @pages: for each lane a page to write from, and one to read into.
 * @lane: lanes.
 * @closer: closes all when the port has gone.
 */
static struct rw {
	struct mutex lock;
	struct krcore_client *client;
	struct krcore_queue *queue;
	struct krcore_region *region;
	struct page *pages[2 * RW_LANES_MAX];
	struct rw_lane lane[RW_LANES_MAX];
	struct work_struct closer;
} rw = { .lock = __MUTEX_INITIALIZER(rw.lock) };

static void rw_written(struct krcore_queue *queue, void *arg, int status);
static void rw_read(struct krcore_queue *queue, void *arg, int status);

/* The first error ends it: no lane posts any more. */
static void rw_failed(int status)
{
	if (!cmpxchg(&error, 0, status) && status != -ECANCELED && status != -ESHUTDOWN)
		pr_err("ended with %d after %lu rounds\n", status, READ_ONCE(rounds));
}

static void rw_post(struct rw_lane *lane, enum krcore_opcode opcode)
{
	struct krcore_op op = {
		.opcode = opcode,
		.region = rw.region,
		.offset = (2 * lane->number + (opcode == KRCORE_READ)) * PAGE_SIZE,
		.length = PAGE_SIZE,
		.token = token,
		.remote = addr + lane->number * PAGE_SIZE,
		.done = opcode == KRCORE_READ ? rw_read : rw_written,
		.arg = lane,
	};
	int err = krcore_post(rw.queue, &op);

	if (err)
		rw_failed(err);
}

/* Begin a round: other bytes than before, and than those of other lanes. */
static void rw_begin(struct rw_lane *lane)
{
	u64 *words = page_address(rw.pages[2 * lane->number]);
	u32 i;

	lane->round++;
	for (i = 0; i < PAGE_SIZE / sizeof(*words); i++)
		words[i] = lane->round * RW_LANES_MAX + lane->number + ((u64)i << 48);
	rw_post(lane, KRCORE_WRITE);
}

static void rw_written(struct krcore_queue *queue, void *arg, int status)
{
	if (status)
		rw_failed(status);
	else
		rw_post(arg, KRCORE_READ);
}

static void rw_read(struct krcore_queue *queue, void *arg, int status)
{
	struct rw_lane *lane = arg;
	void *mine = page_address(rw.pages[2 * lane->number]);
	void *theirs = page_address(rw.pages[2 * lane->number + 1]);

	if (status) {
		rw_failed(status);
		return;
	}
	/* callbacks of a queue do not run beside each other, so these need no lock */
	WRITE_ONCE(bad, bad + !!memcmp(mine, theirs, PAGE_SIZE));
	WRITE_ONCE(rounds, rounds + 1);
	memset(theirs, 0, PAGE_SIZE);
	rw_begin(lane);
}

/* The client closes what it has open: no callback runs when it is gone. */
static void rw_close(void)
{
	mutex_lock(&rw.lock);
	if (rw.client)
		krcore_client_close(rw.client);
	rw.client = NULL;
	mutex_unlock(&rw.lock);
}

static void rw_closer(struct work_struct *work)
{
	rw_close();
}

/* The port has gone, and waits for this function: closing is for somebody else. */
static void rw_removed(void *arg)
{
	rw_failed(-ENODEV);
	schedule_work(&rw.closer);
}

static void rw_free_pages(void)
{
	u32 i;

	for (i = 0; i < 2 * lanes; i++)
		if (rw.pages[i])
			__free_page(rw.pages[i]);
}

static int rw_alloc_pages(void)
{
	u32 i;

	for (i = 0; i < 2 * lanes; i++) {
		rw.pages[i] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		if (!rw.pages[i])
			return -ENOMEM;
	}
	return 0;
}

/* Become a client, with queue and region, and begin. On an error what is open is left to rw_close(). */
static int rw_open(const u8 *of)
{
	struct krcore_client_conf client_conf = { .owner = THIS_MODULE,
						  .name = KBUILD_MODNAME,
						  .removed = rw_removed };
	struct krcore_queue_conf conf = { .service = service,
					  .depth = lanes,
					  .timeout_ms = RW_LOOKUP_MS };
	struct krcore_client *client;
	u32 i;

	lockdep_assert_held(&rw.lock);
	client = krcore_client_open(&client_conf);
	if (IS_ERR(client))
		return PTR_ERR(client);
	rw.client = client;
	memcpy(conf.gid, of, sizeof(conf.gid));
	rw.region = krcore_region_open(rw.client, rw.pages, 2 * lanes, KRCORE_LOCAL_WRITE);
	if (IS_ERR(rw.region))
		return PTR_ERR(rw.region);
	rw.queue = krcore_queue_open(rw.client, &conf);
	if (IS_ERR(rw.queue))
		return PTR_ERR(rw.queue);
	for (i = 0; i < lanes; i++) {
		rw.lane[i].number = i;
		rw_begin(&rw.lane[i]);
	}
	return 0;
}

static int __init rw_init(void)
{
	u8 of[KRCORE_GID_BYTES];
	int err;

	if (!in6_pton(gid, -1, of, -1, NULL) || !lanes || lanes > RW_LANES_MAX) {
		pr_err("gid=%s or lanes=%u is wrong\n", gid, lanes);
		return -EINVAL;
	}
	INIT_WORK(&rw.closer, rw_closer);
	err = rw_alloc_pages();
	if (!err) {
		mutex_lock(&rw.lock);
		err = rw_open(of);
		mutex_unlock(&rw.lock);
	}
	if (!err)
		return 0;
	rw_close();
	cancel_work_sync(&rw.closer);
	rw_free_pages();
	pr_err("can't begin: %d\n", err);
	return err;
}

static void __exit rw_exit(void)
{
	rw_close();
	cancel_work_sync(&rw.closer);
	rw_free_pages();
}

module_init(rw_init);
module_exit(rw_exit);
MODULE_DESCRIPTION("Sample of krcore: blocks in the memory of another node");
MODULE_LICENSE("GPL");
