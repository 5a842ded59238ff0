// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: what other modules of the kernel use of krcore, on a NIC in memory: a port whose peer is
 * itself, with its directory of regions. What calls refuse, where requests end, in which order, and
 * what a client finds when its port goes, its module forgets it, or it closes under traffic.
 * Locking: a test runs alone.
 */
#include <kunit/test.h>
#include <linux/gfp.h>
#include <linux/slab.h>

#include "api/api_priv.h"
#include "mem/directory.h"
#include "mem/mem_priv.h"
#include "meta/cache.h"
#include "node/port.h"
#include "peer/peer.h"
#include "fake_provider.h"
#include "krc_pool_test.h"
#include "krp_ioctl.h"

#define KRC_TEST_API_PAGES 4
#define KRC_TEST_API_DEPTH 8
#define KRC_TEST_API_BYTES (KRC_TEST_API_PAGES * PAGE_SIZE)
#define KRC_TEST_API_CHAIN 2000

/**
 * struct krc_test_api - What a test has.
 * @test: the KUnit test.
 * @fake: NIC.
 * @ibdev: device, by which memory is mapped; of no bus.
 * @port: port, counted once more than by its clients.
 * @client: client.
 * @region: its region, open to peers, of @pages.
 * @pages: pages.
 * @queue: its queue to the port itself.
 * @removed: calls of its callback of that name.
 * @done: callbacks of requests.
 * @status: of the last one.
 * @order: number of the last one.
 * @disorder: those that did not come behind the one before.
 * @failed: those with a status.
 * @left: requests that callbacks are still to post.
 * @refused: what the last post out of a callback said, if not 0.
 */
struct krc_test_api {
	struct kunit *test;
	struct krc_fake *fake;
	struct ib_device *ibdev;
	struct krc_port *port;
	struct krcore_client *client;
	struct krcore_region *region;
	struct page *pages[KRC_TEST_API_PAGES];
	struct krcore_queue *queue;
	u32 removed;
	u32 done;
	int status;
	unsigned long order;
	u32 disorder;
	u32 failed;
	u32 left;
	int refused;
};

static struct krc_test_api *krc_test_api_now; /* tests run alone */

static const struct krp_key krc_test_api_key = { .gid = { [15] = 77 } };

/* ---- the port */

static bool krc_test_api_is_down(const struct krc_hw *hw)
{
	return true; /* nobody waits for leases of peers */
}

static struct krc_provider_ops krc_test_api_ops;

static void krc_test_api_release(struct krc_rail *rail)
{
	struct krc_port *port = container_of(rail, struct krc_port, rail);

	krc_mrdir_put(port->mrdir);
	krc_rail_fini(rail);
	kfree(port);
}

static void krc_test_api_port(struct krc_test_api *t)
{
	struct krc_port *port = kzalloc(sizeof(*port), GFP_KERNEL);
	struct krc_rail *rail = &port->rail;

	KUNIT_ASSERT_NOT_NULL(t->test, port);
	KUNIT_ASSERT_EQ(t->test, krc_rail_init(rail, krc_test_api_release), 0);
	t->port = port;
	krc_test_api_ops = krc_fake_ops;
	krc_test_api_ops.is_down = krc_test_api_is_down;
	port->cache = krc_node_cache();
	rail->ops = &krc_test_api_ops;
	rail->hw = krc_fake_hw(t->fake);
	rail->ibdev = t->ibdev;
	rail->num = 1;
	rail->attr.atomics = true;
	rail->segment_max = UINT_MAX & PAGE_MASK;
	rail->generation = 4711;
	rail->margin_ms = 4000;
	memcpy(rail->gid.raw, krc_test_api_key.gid, sizeof(rail->gid.raw));
	port->value = (struct krp_value){
		.generation = cpu_to_le64(rail->generation),
		.kind = KRP_KIND_DCT,
		.dct = { .dctn = cpu_to_le32(9), .mtu = IB_MTU_4096, .port = 1 },
	};
	port->mrdir = krc_mrdir_create(rail, &port->value);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(t->test, port->mrdir);
	port->pool = krc_pool_create(rail, 1, KRC_TEST_DEPTH);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(t->test, port->pool);
	KUNIT_ASSERT_EQ(t->test,
			krc_cache_put(port->cache, &krc_test_api_key, &port->value,
				      krc_cache_epoch(port->cache)),
			0);
}

/* As krc_port_kill(), of what the port has. */
static void krc_test_api_unplug(struct krc_test_api *t)
{
	struct krc_port *port = t->port;

	t->port = NULL;
	krc_rail_kill(&port->rail);
	krc_mrdir_retire(port->mrdir);
	krc_pool_stop(port->pool);
	krc_rail_wait_idle(&port->rail);
	krc_peers_drop(&port->rail);
	krc_mrdir_end(port->mrdir);
	krc_pool_destroy(port->pool);
	krc_cache_forget(port->cache, &krc_test_api_key, U64_MAX);
	krc_port_put(port);
}

/* ---- clients */

static void krc_test_api_removed(void *arg)
{
	struct krc_test_api *t = arg;

	t->removed++;
}

static struct krcore_client *krc_test_api_client(struct krc_test_api *t, const char *name,
						 struct module *owner)
{
	struct krcore_client_conf conf = {
		.owner = owner, .name = name, .removed = krc_test_api_removed, .arg = t
	};
	struct krcore_client *client = krc_client_make(krc_port_get(t->port), &conf);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(t->test, client);
	return client;
}

static struct krcore_queue *krc_test_api_queue(struct krc_test_api *t, u32 depth)
{
	struct krcore_queue_conf conf = { .depth = depth, .timeout_ms = 100 };

	memcpy(conf.gid, krc_test_api_key.gid, sizeof(conf.gid));
	return krcore_queue_open(t->client, &conf);
}

static void krc_test_api_done(struct krcore_queue *queue, void *arg, int status)
{
	struct krc_test_api *t = krc_test_api_now;
	unsigned long order = (unsigned long)arg;

	t->disorder += order <= t->order || !softirq_count();
	t->order = order;
	t->status = status;
	t->failed += status != 0;
	WRITE_ONCE(t->done, t->done + 1);
}

/* A request from the first half of the region to its second half, or the other way round. */
static struct krcore_op krc_test_api_op(struct krc_test_api *t, enum krcore_opcode opcode,
					unsigned long order)
{
	return (struct krcore_op){ .opcode = opcode,
				   .region = t->region,
				   .length = opcode <= KRCORE_WRITE ? PAGE_SIZE : sizeof(u64),
				   .token = krcore_region_token(t->region),
				   .remote = KRC_TEST_API_BYTES / 2,
				   .done = krc_test_api_done,
				   .arg = (void *)order };
}

static int krc_test_api_post(struct krc_test_api *t, enum krcore_opcode opcode, unsigned long order)
{
	struct krcore_op op = krc_test_api_op(t, opcode, order);

	return krcore_post(t->queue, &op);
}

/* Let the NIC carry out what it has until so many callbacks were called. */
static void krc_test_api_finish(struct krc_test_api *t, u32 done)
{
	unsigned long limit = jiffies + msecs_to_jiffies(KRC_TEST_WAIT_MS);
	u32 i;

	while (READ_ONCE(t->done) < done && time_before(jiffies, limit)) {
		for (i = 0; i < KRC_FAKE_INITIATORS; i++)
			krc_fake_complete(t->fake, i, KRC_TEST_DEPTH);
		usleep_range(50, 100);
	}
	KUNIT_EXPECT_EQ(t->test, READ_ONCE(t->done), done);
	KUNIT_EXPECT_EQ(t->test, t->disorder, 0U);
}

/* Wait until nothing of the queue is under way: callbacks are called a little before that. */
static void krc_test_api_idle(struct krc_test_api *t)
{
	krc_test_wait(t->test, !READ_ONCE(t->queue->busy));
}

/*
 * Have the queue know the directory of its peer, and not ask again in this test: a lease is so
 * short that it may end between two lines.
 */
static void krc_test_api_known(struct krc_test_api *t)
{
	u64 token = krcore_region_token(t->region);
	u32 tries = 0;

	do {
		KUNIT_ASSERT_EQ(t->test, krc_test_api_post(t, KRCORE_READ, t->order + 1), 0);
		krc_test_api_finish(t, t->done + 1);
	} while (!krc_grant_holds(&t->queue->grant, token) && ++tries < 100);
	t->queue->grant.until = jiffies + 60 * HZ;
	KUNIT_ASSERT_TRUE(t->test, krc_grant_holds(&t->queue->grant, token));
}

static void krc_test_api_fill(struct krc_test_api *t, u32 page, u8 byte)
{
	memset(page_address(t->pages[page]), byte, PAGE_SIZE);
}

static u8 krc_test_api_byte(struct krc_test_api *t, u32 page)
{
	const u8 *bytes = page_address(t->pages[page]);

	return memchr_inv(bytes, bytes[0], PAGE_SIZE) ? 0xff : bytes[0];
}

static int krc_test_api_init(struct kunit *test)
{
	struct krc_test_api *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, t);
	test->priv = t;
	krc_test_api_now = t;
	t->test = test;
	t->fake = krc_fake_create();
	t->ibdev = kunit_kzalloc(test, sizeof(*t->ibdev), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, t->fake);
	KUNIT_ASSERT_NOT_NULL(test, t->ibdev);
	krc_test_api_port(t);
	for (i = 0; i < KRC_TEST_API_PAGES; i++) {
		t->pages[i] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		KUNIT_ASSERT_NOT_NULL(test, t->pages[i]);
	}
	t->client = krc_test_api_client(t, "test", NULL);
	t->region = krcore_region_open(t->client, t->pages, KRC_TEST_API_PAGES,
				       KRCORE_LOCAL_WRITE | KRCORE_REMOTE_READ |
					       KRCORE_REMOTE_WRITE | KRCORE_REMOTE_ATOMIC);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, t->region);
	t->queue = krc_test_api_queue(t, KRC_TEST_API_DEPTH);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, t->queue);
	return 0;
}

/* Unplug, so that nobody waits for leases; then close. */
static void krc_test_api_exit(struct kunit *test)
{
	struct krc_test_api *t = test->priv;
	u32 i;

	if (!t || !t->fake)
		return;
	t->fake->at_once = true;
	for (i = 0; i < KRC_FAKE_INITIATORS; i++)
		krc_fake_complete(t->fake, i, KRC_TEST_DEPTH);
	if (t->port)
		krc_test_api_unplug(t);
	if (!IS_ERR_OR_NULL(t->client))
		krcore_client_close(t->client);
	for (i = 0; i < KRC_TEST_API_PAGES; i++)
		if (t->pages[i]) {
			KUNIT_EXPECT_EQ(test, page_count(t->pages[i]), 1);
			__free_page(t->pages[i]);
		}
	krc_fake_destroy(t->fake);
}

/* ---- tests */

/* What is posted first READs the peer's directory, and nobody waits for that. */
static void krc_test_api_moves_bytes(struct kunit *test)
{
	struct krc_test_api *t = test->priv;

	krc_test_api_fill(t, 0, 1);
	krc_test_api_fill(t, 2, 2);
	KUNIT_EXPECT_EQ(test, krc_test_api_post(t, KRCORE_WRITE, 1), 0);
	KUNIT_EXPECT_EQ(test, t->done, 0U);
	krc_test_api_finish(t, 1);
	KUNIT_EXPECT_EQ(test, t->status, 0);
	KUNIT_EXPECT_EQ(test, krc_test_api_byte(t, 2), 1);

	krc_test_api_fill(t, 2, 3);
	KUNIT_EXPECT_EQ(test, krc_test_api_post(t, KRCORE_READ, 2), 0);
	krc_test_api_finish(t, 2);
	KUNIT_EXPECT_EQ(test, krc_test_api_byte(t, 0), 3);
	KUNIT_EXPECT_EQ(test, t->failed, 0U);
	KUNIT_EXPECT_EQ(test, krcore_queue_error(t->queue), 0);
}

static void krc_test_api_atomics(struct kunit *test)
{
	struct krc_test_api *t = test->priv;
	u64 *here = page_address(t->pages[0]), *there = page_address(t->pages[2]);
	struct krcore_op op = krc_test_api_op(t, KRCORE_FETCH_ADD, 1);

	*there = 40;
	op.compare_add = 2;
	KUNIT_EXPECT_EQ(test, krcore_post(t->queue, &op), 0);
	krc_test_api_finish(t, 1);
	KUNIT_EXPECT_EQ(test, *here, 40ULL);
	KUNIT_EXPECT_EQ(test, *there, 42ULL);
	op = krc_test_api_op(t, KRCORE_CMP_SWAP, 2);
	op.compare_add = 42;
	op.swap = 7;
	KUNIT_EXPECT_EQ(test, krcore_post(t->queue, &op), 0);
	krc_test_api_finish(t, 2);
	KUNIT_EXPECT_EQ(test, *here, 42ULL);
	KUNIT_EXPECT_EQ(test, *there, 7ULL);
	t->port->rail.attr.atomics = false;
	KUNIT_EXPECT_EQ(test, krcore_post(t->queue, &op), -EOPNOTSUPP);
	t->port->rail.attr.atomics = true;
	op.remote += 4;
	KUNIT_EXPECT_EQ(test, krcore_post(t->queue, &op), -EINVAL);
	KUNIT_EXPECT_EQ(test, t->failed, 0U);
}

/* What a post refuses, at once where the peer's directory is known; nothing is charged for it. */
static void krc_test_api_posts_that_are_refused(struct kunit *test)
{
	struct krc_test_api *t = test->priv;
	const struct krcore_op good = krc_test_api_op(t, KRCORE_READ, 1);
	struct krcore_client *other = krc_test_api_client(t, "other", NULL);
	struct krcore_region *theirs = krcore_region_open(other, t->pages, 1, KRCORE_LOCAL_WRITE);
	struct krcore_region *fixed = krcore_region_open(t->client, t->pages, 1, 0);
	struct krcore_op op;
	u32 done;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, theirs);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, fixed);
	krc_test_api_known(t);
	done = t->done;
#define KRC_TEST_REFUSED(field, value, err) \
	do { \
		op = good; \
		op.field = value; \
		KUNIT_EXPECT_EQ(test, krcore_post(t->queue, &op), err); \
	} while (0)
	KRC_TEST_REFUSED(opcode, 0, -EINVAL);
	KRC_TEST_REFUSED(opcode, KRCORE_FETCH_ADD + 1, -EINVAL);
	KRC_TEST_REFUSED(flags, 4, -EINVAL);
	KRC_TEST_REFUSED(length, 0, -EINVAL);
	KRC_TEST_REFUSED(length, KRCORE_LENGTH_MAX + 1, -EINVAL);
	KRC_TEST_REFUSED(done, NULL, -EINVAL);
	KRC_TEST_REFUSED(region, NULL, -EINVAL);
	KRC_TEST_REFUSED(region, theirs, -EINVAL);
	KRC_TEST_REFUSED(region, fixed, -EACCES);
	KRC_TEST_REFUSED(offset, KRC_TEST_API_BYTES, -ERANGE);
	KRC_TEST_REFUSED(offset, U64_MAX, -ERANGE);
	KRC_TEST_REFUSED(length, KRC_TEST_API_BYTES + 1, -ERANGE);
	KRC_TEST_REFUSED(remote, KRC_TEST_API_BYTES - PAGE_SIZE + 1, -EOVERFLOW);
	KRC_TEST_REFUSED(remote, U64_MAX, -EOVERFLOW);
	KRC_TEST_REFUSED(token, 0, -EBADR);
	KUNIT_EXPECT_EQ(test, t->done, done);
	krc_test_api_idle(t);
	krcore_region_close(fixed);
	krcore_client_close(other);
}

/* A token that no region has: the request is taken, and fails its queue when that is known. */
static void krc_test_api_a_token_of_nothing(struct kunit *test)
{
	struct krc_test_api *t = test->priv;
	struct krcore_op op = krc_test_api_op(t, KRCORE_READ, 1);

	op.token ^= 1ULL << 63;
	KUNIT_EXPECT_EQ(test, krcore_post(t->queue, &op), 0);
	KUNIT_EXPECT_EQ(test, krc_test_api_post(t, KRCORE_WRITE, 2), 0);
	krc_test_api_finish(t, 2);
	KUNIT_EXPECT_EQ(test, t->failed, 2U);
	KUNIT_EXPECT_EQ(test, t->status, -ECANCELED);
	KUNIT_EXPECT_EQ(test, krcore_queue_error(t->queue), -EBADR);
	KUNIT_EXPECT_EQ(test, krc_test_api_post(t, KRCORE_READ, 3), -ENOTCONN);
}

static void krc_test_api_a_full_queue(struct kunit *test)
{
	struct krc_test_api *t = test->priv;
	u32 i, queues, mrs, requests;

	for (i = 1; i <= KRC_TEST_API_DEPTH; i++)
		KUNIT_EXPECT_EQ(test, krc_test_api_post(t, KRCORE_READ, i), 0);
	KUNIT_EXPECT_EQ(test, krc_test_api_post(t, KRCORE_READ, i), -EAGAIN);
	krc_test_api_finish(t, KRC_TEST_API_DEPTH);
	KUNIT_EXPECT_EQ(test, t->failed, 0U);

	krc_limits_get(&queues, &mrs, &requests);
	krc_limits_set(1, 1, 1);
	KUNIT_EXPECT_EQ(test, krc_test_api_post(t, KRCORE_READ, i), 0);
	KUNIT_EXPECT_EQ(test, krc_test_api_post(t, KRCORE_READ, i + 1), -EDQUOT);
	KUNIT_EXPECT_EQ(test, PTR_ERR(krc_test_api_queue(t, 1)), -EDQUOT);
	KUNIT_EXPECT_EQ(test, PTR_ERR(krcore_region_open(t->client, t->pages, 1, 0)), -EDQUOT);
	krc_limits_set(queues, mrs, requests);
	krc_test_api_finish(t, KRC_TEST_API_DEPTH + 1);
}

/* Clients of a name are one payer, and no task's. */
static void krc_test_api_the_payer_is_the_name(struct kunit *test)
{
	struct krc_test_api *t = test->priv;
	struct krcore_client *same = krc_test_api_client(t, "test", NULL);
	struct krcore_client *other = krc_test_api_client(t, "tesu", NULL);
	struct krc_user *task = krc_user_get_current();

	KUNIT_EXPECT_PTR_EQ(test, krc_charge_payer(&same->charge),
			    krc_charge_payer(&t->client->charge));
	KUNIT_EXPECT_PTR_NE(test, krc_charge_payer(&other->charge),
			    krc_charge_payer(&t->client->charge));
	KUNIT_EXPECT_PTR_EQ(test, t->queue->flow.payer, krc_charge_payer(&same->charge));
	KUNIT_EXPECT_PTR_NE(test, krc_charge_payer(&same->charge), (const void *)task);
	KUNIT_EXPECT_NULL(test, t->client->charge.cgroup);
	krc_user_put(task);
	krcore_client_close(same);
	krcore_client_close(other);
}

static void krc_test_api_opens_that_are_refused(struct kunit *test)
{
	struct krc_test_api *t = test->priv;
	struct krcore_client_conf client = { .owner = NULL };
	struct krcore_record record;
	static const u8 nobody[KRCORE_GID_BYTES] = { 1 };

	KUNIT_EXPECT_EQ(test, PTR_ERR(krcore_client_open(&client)), -EINVAL);
	client.name = "";
	KUNIT_EXPECT_EQ(test, PTR_ERR(krcore_client_open(&client)), -EINVAL);
	client.name = "a name of 32 characters is long.";
	KUNIT_EXPECT_EQ(test, PTR_ERR(krcore_client_open(&client)), -EINVAL);
	client.name = "nowhere";
	memcpy(client.gid, nobody, sizeof(nobody));
	KUNIT_EXPECT_EQ(test, PTR_ERR(krcore_client_open(&client)), -ENODEV);

	KUNIT_EXPECT_EQ(test, PTR_ERR(krc_test_api_queue(t, 0)), -EINVAL);
	KUNIT_EXPECT_EQ(test, PTR_ERR(krc_test_api_queue(t, KRCORE_DEPTH_MAX + 1)), -EINVAL);
	KUNIT_EXPECT_EQ(test, krcore_lookup(t->client, krc_test_api_key.gid, 0, 0, &record),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, krcore_lookup(t->client, krc_test_api_key.gid, 0, 100, &record), 0);
	KUNIT_EXPECT_TRUE(test, record.connectable);
	KUNIT_EXPECT_EQ(test, record.generation, 4711ULL);
	KUNIT_EXPECT_EQ(test, record.raw_len, 0U);
	KUNIT_EXPECT_NULL(test, memchr_inv(record.raw, 0, sizeof(record.raw)));
}

/* Pages that would be given to others while the NIC writes to them are not taken. */
static void krc_test_api_pages(struct kunit *test)
{
	struct krc_test_api *t = test->priv;
	struct page *some = alloc_pages(GFP_KERNEL, 2), *parts[2];
	struct page *slab = virt_to_page(t);
	struct krcore_region *region;

	KUNIT_ASSERT_NOT_NULL(test, some);
	parts[0] = some;
	parts[1] = some + 1;
	region = krcore_region_open(t->client, parts, 2, 0);
	KUNIT_EXPECT_EQ(test, PTR_ERR(region), -EINVAL);
	KUNIT_EXPECT_EQ(test, page_count(some), 1);
	KUNIT_EXPECT_EQ(test, PTR_ERR(krcore_region_open(t->client, &slab, 1, 0)), -EINVAL);
	KUNIT_EXPECT_EQ(test, PTR_ERR(krcore_region_open(t->client, parts, 0, 0)), -EINVAL);
	KUNIT_EXPECT_EQ(test, PTR_ERR(krcore_region_open(t->client, NULL, 1, 0)), -EINVAL);
	KUNIT_EXPECT_EQ(test, PTR_ERR(krcore_region_open(t->client, parts, 1, 0x20)), -EINVAL);
	KUNIT_EXPECT_EQ(test, PTR_ERR(krcore_region_open(t->client, parts, 1, KRCORE_REMOTE_WRITE)),
			-EINVAL);
	region = krcore_region_open(t->client, parts, 1, KRCORE_LOCAL_WRITE);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, region);
	KUNIT_EXPECT_EQ(test, krcore_region_token(region), 0ULL);
	KUNIT_EXPECT_EQ(test, page_count(some), 2);
	krcore_region_close(region);
	KUNIT_EXPECT_EQ(test, page_count(some), 1);
	__free_pages(some, 2);
}

static void krc_test_api_next(struct krcore_queue *queue, void *arg, int status)
{
	struct krc_test_api *t = krc_test_api_now;
	struct krcore_op op;
	int err;

	krc_test_api_done(queue, arg, status);
	if (!t->left)
		return;
	t->left--;
	op = krc_test_api_op(t, t->left % 2 ? KRCORE_READ : KRCORE_WRITE, t->order + 1);
	op.done = krc_test_api_next;
	err = krcore_post(queue, &op);
	if (err)
		t->refused = err;
}

/* Callbacks that post, on a NIC that has done it before the post returns: the stack stays small. */
static void krc_test_api_a_long_chain(struct kunit *test)
{
	struct krc_test_api *t = test->priv;
	struct krcore_op op = krc_test_api_op(t, KRCORE_WRITE, 1);

	t->fake->at_once = true;
	t->left = KRC_TEST_API_CHAIN - 1;
	op.done = krc_test_api_next;
	KUNIT_EXPECT_EQ(test, krcore_post(t->queue, &op), 0);
	krc_test_api_finish(t, KRC_TEST_API_CHAIN);
	KUNIT_EXPECT_EQ(test, t->failed, 0U);
	KUNIT_EXPECT_EQ(test, t->refused, 0);
	krc_test_api_idle(t);
}

/* A request of one queue out of the callback of another. */
static void krc_test_api_across(struct krcore_queue *queue, void *arg, int status)
{
	struct krc_test_api *t = krc_test_api_now;

	krc_test_api_done(queue, arg, status);
	t->refused = krc_test_api_post(t, KRCORE_READ, 2);
}

static void krc_test_api_a_callback_posts_to_another_queue(struct kunit *test)
{
	struct krc_test_api *t = test->priv;
	struct krcore_queue *first = krc_test_api_queue(t, 1);
	struct krcore_op op = krc_test_api_op(t, KRCORE_WRITE, 1);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, first);
	op.done = krc_test_api_across;
	KUNIT_EXPECT_EQ(test, krcore_post(first, &op), 0);
	krc_test_api_finish(t, 2);
	KUNIT_EXPECT_EQ(test, t->failed, 0U);
	KUNIT_EXPECT_EQ(test, t->refused, 0);
}

/* Close with requests in the hardware, in the flow, and callbacks that would post more. */
static void krc_test_api_close_under_traffic(struct kunit *test)
{
	struct krc_test_api *t = test->priv;
	struct krcore_op op = krc_test_api_op(t, KRCORE_WRITE, 1);
	u32 i, done;

	KUNIT_EXPECT_EQ(test, krcore_post(t->queue, &op), 0);
	krc_test_api_finish(t, 1); /* the directory is known */
	t->left = U32_MAX;
	for (i = 2; i < 2 + KRC_TEST_API_DEPTH; i++) {
		op = krc_test_api_op(t, KRCORE_WRITE, i);
		op.done = krc_test_api_next;
		KUNIT_EXPECT_EQ(test, krcore_post(t->queue, &op), 0);
	}
	KUNIT_EXPECT_EQ(test, t->done, 1U);
	t->fake->at_once = true;
	for (i = 0; i < KRC_FAKE_INITIATORS; i++)
		krc_fake_complete(t->fake, i, 3);
	krcore_queue_close(t->queue);
	done = t->done;
	KUNIT_EXPECT_GE(test, done, 1U + KRC_TEST_API_DEPTH);
	KUNIT_EXPECT_EQ(test, kref_read(&t->region->mr->ref), 1U); /* no request has it */
	msleep(20);
	KUNIT_EXPECT_EQ(test, t->done, done);
	t->queue = krc_test_api_queue(t, 1);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, t->queue);
}

/* A queue whose requests the NIC completes once another one is being closed. */
struct krc_test_api_late {
	struct work_struct work;
	struct krc_fake *fake;
	struct krcore_queue *queue;
};

static void krc_test_api_late(struct work_struct *work)
{
	struct krc_test_api_late *late = container_of(work, struct krc_test_api_late, work);
	u32 i;

	krc_test_until_late(READ_ONCE(late->queue->state) == KRC_API_CLOSING);
	for (i = 0; i < KRC_FAKE_INITIATORS; i++)
		krc_fake_complete(late->fake, i, KRC_TEST_DEPTH);
}

/* A client closes its queues: callbacks of the last one still post to the first one, and are refused. */
static void krc_test_api_close_of_queues_that_post_to_each_other(struct kunit *test)
{
	struct krc_test_api *t = test->priv;
	struct krcore_queue *second = krc_test_api_queue(t, 1);
	struct krc_test_api_late late = { .fake = t->fake, .queue = second };
	struct krcore_op op = krc_test_api_op(t, KRCORE_WRITE, 1);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, second);
	op.done = krc_test_api_across;
	krc_test_api_known(t);
	second->grant = t->queue->grant;
	second->forgets = t->queue->forgets;
	t->done = 0;
	t->order = 0;
	KUNIT_EXPECT_EQ(test, krcore_post(second, &op), 0);
	KUNIT_EXPECT_EQ(test, t->done, 0U); /* it is in the hardware */
	INIT_WORK_ONSTACK(&late.work, krc_test_api_late);
	schedule_work(&late.work);
	krcore_client_close(t->client);
	t->client = NULL;
	flush_work(&late.work);
	destroy_work_on_stack(&late.work);
	KUNIT_EXPECT_EQ(test, t->done, 1U);
	KUNIT_EXPECT_EQ(test, t->failed, 0U);
	KUNIT_EXPECT_EQ(test, t->refused, -ESHUTDOWN);
}

/* The port goes: requests end, then the client is told, once; and it may close at leisure. */
static void krc_test_api_a_port_that_goes(struct kunit *test)
{
	struct krc_test_api *t = test->priv;
	struct krcore_record record;
	u32 i;

	KUNIT_EXPECT_EQ(test, krc_test_api_post(t, KRCORE_READ, 1), 0);
	krc_test_api_finish(t, 1);
	for (i = 2; i < 5; i++)
		KUNIT_EXPECT_EQ(test, krc_test_api_post(t, KRCORE_READ, i), 0);
	krc_test_api_unplug(t);
	KUNIT_EXPECT_EQ(test, t->done, 4U);
	KUNIT_EXPECT_EQ(test, t->status, -ENODEV);
	KUNIT_EXPECT_EQ(test, t->disorder, 0U);
	KUNIT_EXPECT_EQ(test, t->removed, 1U);
	KUNIT_EXPECT_EQ(test, krcore_queue_error(t->queue), -ENODEV);
	KUNIT_EXPECT_EQ(test, krc_test_api_post(t, KRCORE_READ, 9), -ENODEV);
	KUNIT_EXPECT_EQ(test, PTR_ERR(krc_test_api_queue(t, 1)), -ENODEV);
	KUNIT_EXPECT_EQ(test, PTR_ERR(krcore_region_open(t->client, t->pages, 1, 0)), -ENODEV);
	KUNIT_EXPECT_EQ(test, krcore_lookup(t->client, krc_test_api_key.gid, 0, 100, &record),
			-ENODEV);
	KUNIT_EXPECT_EQ(test, t->done, 4U);
}

/* A request that the flow is held for ends with the port, too. */
static void krc_test_api_a_port_that_goes_before_the_directory(struct kunit *test)
{
	struct krc_test_api *t = test->priv;

	KUNIT_EXPECT_EQ(test, krc_test_api_post(t, KRCORE_READ, 1), 0);
	KUNIT_EXPECT_EQ(test, krc_test_api_post(t, KRCORE_READ, 2), 0);
	flush_work(&t->queue->work);
	KUNIT_EXPECT_EQ(test, t->done, 0U);
	krc_test_api_unplug(t);
	KUNIT_EXPECT_EQ(test, t->done, 2U);
	KUNIT_EXPECT_EQ(test, t->failed, 2U);
	KUNIT_EXPECT_EQ(test, t->removed, 1U);
	krcore_queue_close(t->queue);
	KUNIT_EXPECT_EQ(test, t->done, 2U);
}

static void krc_test_api_a_request_that_fails(struct kunit *test)
{
	struct krc_test_api *t = test->priv;
	unsigned long order;
	u32 i, done;

	krc_test_api_known(t);
	order = t->order;
	done = t->done;
	for (i = 1; i <= 3; i++)
		KUNIT_EXPECT_EQ(test, krc_test_api_post(t, KRCORE_READ, order + i), 0);
	krc_fake_fail(t->fake, 0, KRC_FAULT_ACCESS);
	krc_test_api_finish(t, done + 3);
	KUNIT_EXPECT_EQ(test, t->failed, 3U);
	KUNIT_EXPECT_EQ(test, t->status, -ECANCELED);
	KUNIT_EXPECT_EQ(test, krcore_queue_error(t->queue), -EREMOTEIO);
	KUNIT_EXPECT_EQ(test, krc_test_api_post(t, KRCORE_READ, order + 4), -ENOTCONN);
	/* others go on, and so does a new one */
	krcore_queue_close(t->queue);
	t->queue = krc_test_api_queue(t, 1);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, t->queue);
	KUNIT_EXPECT_EQ(test, krc_test_api_post(t, KRCORE_READ, order + 5), 0);
	krc_test_api_finish(t, done + 4);
	KUNIT_EXPECT_EQ(test, t->status, 0);
}

static void krc_test_api_states_follow_the_table(struct kunit *test)
{
	static const bool may[KRC_API_STATES][KRC_API_STATES] = {
		[KRC_API_READY] = { [KRC_API_ERROR] = true, [KRC_API_CLOSING] = true },
		[KRC_API_ERROR] = { [KRC_API_CLOSING] = true },
	};
	struct krcore_queue *queue = kunit_kzalloc(test, sizeof(*queue), GFP_KERNEL);
	u32 from, to;

	KUNIT_ASSERT_NOT_NULL(test, queue);
	spin_lock_init(&queue->lock);
	for (from = 0; from < KRC_API_STATES; from++)
		for (to = 0; to < KRC_API_STATES; to++) {
			queue->state = from;
			queue->error = from == KRC_API_ERROR ? -EIO : 0;
			KUNIT_EXPECT_EQ(test, krc_api_set_state(queue, to, -ETIMEDOUT),
					may[from][to]);
			KUNIT_EXPECT_EQ(test, (u32)queue->state, may[from][to] ? to : from);
			if (from == KRC_API_ERROR) /* the first stays */
				KUNIT_EXPECT_EQ(test, queue->error, -EIO);
		}
	queue->state = KRC_API_ERROR;
	queue->error = -ENOTCONN;
	KUNIT_EXPECT_FALSE(test, krc_api_set_state(queue, KRC_API_ERROR, -ETIMEDOUT));
	KUNIT_EXPECT_EQ(test, queue->error, -ETIMEDOUT);
}

/* A module that is unloaded with clients open: they are closed, and those of others are not. */
static void krc_test_api_a_module_that_forgets(struct kunit *test)
{
	struct krc_test_api *t = test->priv;
	struct module *owner = (struct module *)t; /* only compared */
	struct krcore_client *client = krc_test_api_client(t, "forgetful", owner);
	struct krcore_queue_conf conf = { .depth = 2, .timeout_ms = 100 };
	struct krcore_op op;
	struct krcore_queue *queue;

	memcpy(conf.gid, krc_test_api_key.gid, sizeof(conf.gid));
	krc_test_api_client(t, "forgetful", owner);
	op = krc_test_api_op(t, KRCORE_READ, 1);
	op.region = krcore_region_open(client, t->pages, 1, KRCORE_LOCAL_WRITE);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, op.region);
	queue = krcore_queue_open(client, &conf);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, queue);
	KUNIT_EXPECT_EQ(test, krcore_post(queue, &op), 0);
	t->fake->at_once = true;
	KUNIT_EXPECT_EQ(test, krc_clients_close_of(owner), 2U);
	KUNIT_EXPECT_EQ(test, t->done, 1U);
	KUNIT_EXPECT_EQ(test, krc_clients_close_of(owner), 0U);
	KUNIT_EXPECT_EQ(test, krc_test_api_post(t, KRCORE_READ, 2), 0);
	krc_test_api_finish(t, 2);
	KUNIT_EXPECT_EQ(test, t->removed, 0U);
}

static struct kunit_case krc_api_cases[] = {
	KUNIT_CASE(krc_test_api_moves_bytes),
	KUNIT_CASE(krc_test_api_atomics),
	KUNIT_CASE(krc_test_api_posts_that_are_refused),
	KUNIT_CASE(krc_test_api_a_token_of_nothing),
	KUNIT_CASE(krc_test_api_a_full_queue),
	KUNIT_CASE(krc_test_api_the_payer_is_the_name),
	KUNIT_CASE(krc_test_api_opens_that_are_refused),
	KUNIT_CASE(krc_test_api_pages),
	KUNIT_CASE(krc_test_api_a_long_chain),
	KUNIT_CASE(krc_test_api_a_callback_posts_to_another_queue),
	KUNIT_CASE(krc_test_api_close_under_traffic),
	KUNIT_CASE(krc_test_api_close_of_queues_that_post_to_each_other),
	KUNIT_CASE(krc_test_api_a_port_that_goes),
	KUNIT_CASE(krc_test_api_a_port_that_goes_before_the_directory),
	KUNIT_CASE(krc_test_api_a_request_that_fails),
	KUNIT_CASE(krc_test_api_states_follow_the_table),
	KUNIT_CASE(krc_test_api_a_module_that_forgets),
	{},
};

static struct kunit_suite krc_api_suite = {
	.name = "krcore_api",
	.init = krc_test_api_init,
	.exit = krc_test_api_exit,
	.test_cases = krc_api_cases,
};
kunit_test_suite(krc_api_suite);
