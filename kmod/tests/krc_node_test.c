// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: of what network devices the node takes notice, and how often; which address of a port
 * it uses. Without a device.
 * Locking: a test runs alone.
 */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/netdevice.h>
#include <linux/sched/signal.h>
#include <net/net_namespace.h>

#include "node/node_priv.h"

/* Tell the node of an event of a network device. */
static void krc_node_test_tell(struct net_device *ndev, unsigned long event)
{
	struct netdev_notifier_info info = { .dev = ndev };

	krc_devices_netdev.notifier_call(&krc_devices_netdev, event, &info);
}

/*
 * Whether the node has taken notice since @before: there will be a refresh, or it has begun, if
 * this machine stood still for so long.
 */
static bool krc_node_test_noticed(unsigned long before)
{
	return delayed_work_pending(&krc_devices_changed) ||
	       time_after_eq(READ_ONCE(krc_devices_changed.timer.expires),
			     before + msecs_to_jiffies(KRC_REFRESH_MS));
}

/* A device that is nowhere registered, in a network namespace. */
static struct net_device *krc_node_test_netdev(struct kunit *test, struct net *net)
{
	struct net_device *ndev = kunit_kzalloc(test, sizeof(*ndev), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ndev);
	dev_net_set(ndev, net);
	return ndev;
}

/* What any user can make, in a namespace of its own, is nothing to the node. */
static void krc_test_mtus_of_other_namespaces(struct kunit *test)
{
	struct net *other = kunit_kzalloc(test, sizeof(*other), GFP_KERNEL);
	struct net_device *ours, *theirs;
	struct device nic = {};
	unsigned long before;

	KUNIT_ASSERT_NOT_NULL(test, other);
	ours = krc_node_test_netdev(test, &init_net);
	theirs = krc_node_test_netdev(test, other);
	flush_delayed_work(&krc_devices_changed);
	if (IS_ENABLED(CONFIG_NET_NS)) /* as in the debug kernel; else there is only one */
		krc_node_test_tell(theirs, NETDEV_CHANGEMTU);
	krc_node_test_tell(ours, NETDEV_CHANGEADDR);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&krc_devices_changed));
	before = jiffies;
	krc_node_test_tell(ours, NETDEV_CHANGEMTU);
	KUNIT_EXPECT_TRUE(test, krc_node_test_noticed(before));
	flush_delayed_work(&krc_devices_changed);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&krc_devices_changed));
	/* but a NIC is one wherever it is */
	theirs->dev.parent = &nic;
	msleep(20); /* so that it is told from the one before by when it is due */
	before = jiffies;
	krc_node_test_tell(theirs, NETDEV_CHANGEMTU);
	KUNIT_EXPECT_TRUE(test, krc_node_test_noticed(before));
	flush_delayed_work(&krc_devices_changed);
}

/* Many changes are one refresh, and the last of them does not defer it. */
static void krc_test_changes_are_gathered(struct kunit *test)
{
	struct net_device *ndev = krc_node_test_netdev(test, &init_net);
	unsigned long at, before, due;
	u32 i;

	flush_delayed_work(&krc_devices_changed);
	before = jiffies;
	krc_node_test_tell(ndev, NETDEV_CHANGEMTU);
	at = krc_devices_changed.timer.expires;
	KUNIT_EXPECT_TRUE(test, time_after_eq(at, before + msecs_to_jiffies(KRC_REFRESH_MS)));
	msleep(20);
	for (i = 0; i < 1000 && delayed_work_pending(&krc_devices_changed); i++) {
		krc_node_test_tell(ndev, NETDEV_CHANGEMTU);
		due = krc_devices_changed.timer.expires;
		/* a slow machine may have begun it: then this change has the next one */
		KUNIT_EXPECT_TRUE(
			test,
			due == at || time_after_eq(due, at + msecs_to_jiffies(KRC_REFRESH_MS)));
	}
	flush_delayed_work(&krc_devices_changed);
}

static bool krc_node_test_refreshed;

static void krc_node_test_no_refresh(struct work_struct *work)
{
	WRITE_ONCE(krc_node_test_refreshed, true);
}

/* What a port's record or its objects are made of has changed: there is a refresh. */
static void krc_test_events_of_a_device(struct kunit *test)
{
	static const struct {
		enum ib_event_type type;
		bool refreshes;
	} events[] = { { IB_EVENT_PORT_ACTIVE, true }, { IB_EVENT_PORT_ERR, true },
		       { IB_EVENT_GID_CHANGE, true },  { IB_EVENT_LID_CHANGE, true },
		       { IB_EVENT_PKEY_CHANGE, true }, { IB_EVENT_SM_CHANGE, false } };
	struct krc_dev *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, dev);
	INIT_DELAYED_WORK(&dev->changed, krc_node_test_no_refresh);
	for (i = 0; i < ARRAY_SIZE(events); i++) {
		struct ib_event event = { .event = events[i].type, .element.port_num = 1 };
		bool refreshes;

		WRITE_ONCE(krc_node_test_refreshed, false);
		krc_dev_on_event(&dev->events, &event);
		refreshes = cancel_delayed_work_sync(&dev->changed); /* or it was quicker */
		refreshes |= READ_ONCE(krc_node_test_refreshed);
		KUNIT_EXPECT_EQ(test, refreshes, events[i].refreshes);
	}
}

/* Which entry of a table a port gets that has entry @own; -1: none. */
static int krc_node_test_pick(const u32 *ranks, int nr, int own)
{
	int best = -1, i;

	for (i = 0; i < nr; i++)
		if (krc_port_gid_wins(ranks[i], best < 0 ? 0 : ranks[best], i == own))
			best = i;
	return best;
}

static void krc_test_a_port_keeps_its_gid_among_equals(struct kunit *test)
{
	static const u32 ranks[] = { 0, 0, 5, 4, 5, 5, 0 }, unusable[] = { 0, 0 };

	KUNIT_EXPECT_EQ(test, krc_node_test_pick(ranks, ARRAY_SIZE(ranks), -1), 2);
	KUNIT_EXPECT_EQ(test, krc_node_test_pick(ranks, ARRAY_SIZE(ranks), 2), 2);
	KUNIT_EXPECT_EQ(test, krc_node_test_pick(ranks, ARRAY_SIZE(ranks), 4), 4);
	KUNIT_EXPECT_EQ(test, krc_node_test_pick(ranks, ARRAY_SIZE(ranks), 5), 5);
	KUNIT_EXPECT_EQ(test, krc_node_test_pick(ranks, ARRAY_SIZE(ranks), 3), 2);
	KUNIT_EXPECT_EQ(test, krc_node_test_pick(ranks, ARRAY_SIZE(ranks), 6), 2);
	KUNIT_EXPECT_EQ(test, krc_node_test_pick(unusable, ARRAY_SIZE(unusable), 1), -1);
}

/**
 * struct krc_node_asker - A task that asks about the node, and that it is killed then.
 * @thread: it.
 * @said: what it was told: whether the node is up, of its first port, and of a session of that.
 * @over: it was.
 */
struct krc_node_asker {
	struct task_struct *thread;
	int said[3];
	bool over;
};

static int krc_node_test_ask(void *arg)
{
	struct krc_node_asker *asker = arg;
	struct krc_port_info port;
	struct krc_meta_info meta;

	allow_signal(SIGKILL);
	asker->said[0] = krc_node_is_up(NULL);
	asker->said[1] = krc_node_port_info(0, &port);
	asker->said[2] = krc_node_meta_info(0, 0, &meta);
	smp_store_release(&asker->over, true); /* with what was said */
	while (!kthread_should_stop())
		usleep_range(1000, 2000);
	return 0;
}

/* Whoever looks at a node that is being configured can be killed. */
static void krc_test_a_killed_dump_does_not_wait(struct kunit *test)
{
	struct krc_node_asker *asker = kunit_kzalloc(test, sizeof(*asker), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, asker);
	mutex_lock(&krc_node.lock);
	asker->thread = kthread_run(krc_node_test_ask, asker, "krc_node_test");
	if (!IS_ERR(asker->thread)) {
		msleep(20);
		KUNIT_EXPECT_FALSE(test, READ_ONCE(asker->over));
		send_sig(SIGKILL, asker->thread, 1);
		/* Pairs with the release in krc_node_test_ask(). */
		for (i = 0; i < 500 && !smp_load_acquire(&asker->over); i++)
			msleep(20);
		KUNIT_EXPECT_TRUE(test, asker->over);
	}
	mutex_unlock(&krc_node.lock);
	KUNIT_ASSERT_FALSE(test, IS_ERR(asker->thread));
	kthread_stop(asker->thread);
	for (i = 0; i < ARRAY_SIZE(asker->said); i++)
		KUNIT_EXPECT_EQ(test, asker->said[i], -EINTR);
	KUNIT_EXPECT_EQ(test, krc_node_is_up(NULL), 0);
}

static struct kunit_case krc_node_cases[] = { KUNIT_CASE(
						      krc_test_a_port_keeps_its_gid_among_equals),
					      KUNIT_CASE(krc_test_mtus_of_other_namespaces),
					      KUNIT_CASE(krc_test_changes_are_gathered),
					      KUNIT_CASE(krc_test_events_of_a_device),
					      KUNIT_CASE(krc_test_a_killed_dump_does_not_wait),
					      {} };

static struct kunit_suite krc_node_suite = {
	.name = "krcore_node",
	.test_cases = krc_node_cases,
};
kunit_test_suite(krc_node_suite);
