// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the node: its configuration and its devices.
 *
 * Every RDMA device is listed from ib_client.add to ib_client.remove, usable or not, so
 * that `node show` can say why one is not used. A refresh brings each device to the state that
 * configuration, links and addresses require. `node up` and `node down` run it; so does a work
 * item after an event of the device or a change of an MTU, and some seconds after a failure.
 * Only a refresh creates ports. It also ends them, as do a configuration that changes their
 * pools and the removal of the device or of the module.
 *
 * A port ends in a work item of its slot, without the lock, since it waits for the leases of
 * its peers. Until then its slot gets no new port, its device stays open, and no port of the
 * node takes its address; afterwards a refresh does what had to wait.
 * Locking: krc_node.lock for everything here. ib_core calls add and remove one at a time
 * for a device; they take the lock too. Programs that look up a port must not wait for that
 * mutex: the list of devices, and port and link of a slot, are written under krc_node.ports
 * (spinlock) as well, and may be read under either lock.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <rdma/ib_cache.h>

#include "base/limits.h"
#include "base/log.h"
#include "meta/cache.h"
#include "node/port.h"
#include "pool/pool.h"

#define KRC_NODE_CACHE_ENTRIES 65536
#define KRC_NODE_PORTS_MAX 4
#define KRC_DEV_RETRY_MS 5000

/* One port of a device, up or not. */
struct krc_dev_port {
	struct krc_dev *dev;
	struct krc_port *port;
	struct krc_port *ending; /* former @port, until krc_dev_port_end() is done with it */
	struct work_struct end;
	struct krc_meta_plan *plan; /* only while krc_node_reconfigure() runs */
	char reason[KRC_REASON_BYTES]; /* why there is no port */
	bool link_up;
};

/* One RDMA device. */
struct krc_dev {
	struct list_head list;
	struct ib_device *ibdev;
	const struct krc_provider_ops *ops; /* NULL: no provider knows it */
	struct krc_hw *hw; /* NULL: not open */
	struct krc_hw_attr attr;
	struct ib_event_handler events;
	struct delayed_work refresh;
	char reason[KRC_REASON_BYTES]; /* why it is not open */
	bool fatal;
	bool gone; /* removed: a late refresh must not open it again */
	u32 ending; /* slots with a port that is ending; the device stays open for them */
	u32 slots_nr;
	struct krc_dev_port slots[KRC_NODE_PORTS_MAX];
};

static struct {
	struct mutex lock; /* all below */
	spinlock_t ports; /* devs, slot->port and slot->link_up: see the head of the file */
	struct list_head devs;
	struct krc_cache *cache;
	struct krc_node_conf *conf; /* NULL: down */
	struct list_head orphans; /* records that ports could not withdraw */
	u32 ending; /* ports that are ending */
	wait_queue_head_t ended; /* woken when one has ended */
} krc_node = {
	.lock = __MUTEX_INITIALIZER(krc_node.lock),
	.ports = __SPIN_LOCK_UNLOCKED(krc_node.ports),
	.devs = LIST_HEAD_INIT(krc_node.devs),
	.orphans = LIST_HEAD_INIT(krc_node.orphans),
	.ended = __WAIT_QUEUE_HEAD_INITIALIZER(krc_node.ended),
};

static const struct krc_provider_ops *const krc_providers[] = {
	&krc_mlx5_ops,
};

struct krc_cache *krc_node_cache(void)
{
	return krc_node.cache;
}

static const struct krc_provider_ops *krc_provider_of(struct ib_device *ibdev)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(krc_providers); i++)
		if (krc_providers[i]->match(ibdev))
			return krc_providers[i];
	return NULL;
}

/* ---- all ports */

static struct krc_dev_port *krc_node_slot(u32 i, struct krc_dev **ret_dev)
{
	struct krc_dev *dev;

	lockdep_assert(lockdep_is_held(&krc_node.lock) || lockdep_is_held(&krc_node.ports));
	list_for_each_entry(dev, &krc_node.devs, list) {
		if (i < dev->slots_nr) {
			*ret_dev = dev;
			return &dev->slots[i];
		}
		i -= dev->slots_nr;
	}
	return NULL;
}

/* Find the next slot with a port, from *@i on. Return: it, with *@i behind it, or NULL. */
static struct krc_dev_port *krc_node_slot_up(u32 *i)
{
	struct krc_dev_port *slot;
	struct krc_dev *dev;

	while ((slot = krc_node_slot((*i)++, &dev)))
		if (slot->port)
			return slot;
	return NULL;
}

/* The same for ports that the calling process may use, by its network namespace as in uverbs. */
static struct krc_dev_port *krc_node_slot_allowed(u32 *i)
{
	struct krc_dev_port *slot;

	while ((slot = krc_node_slot_up(i)))
		if (rdma_dev_access_netns(slot->port->rail.ibdev, current->nsproxy->net_ns))
			return slot;
	return NULL;
}

/* ---- ports of a device */

/* Set the port that programs find in this slot; NULL: none. */
static void krc_dev_port_set_port(struct krc_dev_port *slot, struct krc_port *port)
{
	lockdep_assert_held(&krc_node.lock);
	spin_lock(&krc_node.ports);
	slot->port = port;
	spin_unlock(&krc_node.ports);
}

static void krc_dev_port_set_link(struct krc_dev_port *slot, bool up)
{
	lockdep_assert_held(&krc_node.lock);
	spin_lock(&krc_node.ports);
	slot->link_up = up;
	spin_unlock(&krc_node.ports);
}

static void krc_node_refresh(void);

/* Work: end slot->ending, then refresh what waited for that. */
static void krc_dev_port_end(struct work_struct *work)
{
	struct krc_dev_port *slot = container_of(work, struct krc_dev_port, end);
	LIST_HEAD(left);

	krc_port_kill(slot->ending, &left);

	mutex_lock(&krc_node.lock);
	list_splice(&left, &krc_node.orphans);
	slot->ending = NULL;
	WRITE_ONCE(slot->dev->ending, slot->dev->ending - 1);
	krc_node_refresh();
	WRITE_ONCE(krc_node.ending, krc_node.ending - 1);
	mutex_unlock(&krc_node.lock);
	wake_up_all(&krc_node.ended); /* krc_client_remove() flushes this work, too */
}

static void krc_dev_port_down(struct krc_dev *dev, u32 num, const char *reason)
{
	struct krc_dev_port *slot = &dev->slots[num - 1];
	struct krc_port *port = slot->port;

	lockdep_assert_held(&krc_node.lock);
	if (port) {
		krc_port_info(dev->ibdev, num, "down: %s\n", reason);
		krc_dev_port_set_port(slot, NULL);
		slot->ending = port;
		WRITE_ONCE(dev->ending, dev->ending + 1);
		WRITE_ONCE(krc_node.ending, krc_node.ending + 1);
		queue_work(system_long_wq, &slot->end);
	}
	strscpy(slot->reason, reason, sizeof(slot->reason));
}

/* Return: true if a port that is ending still has this address. */
static bool krc_node_gid_ends(const union ib_gid *gid)
{
	struct krc_dev_port *slot;
	struct krc_dev *dev;
	u32 i;

	for (i = 0; (slot = krc_node_slot(i, &dev)); i++)
		if (slot->ending && !memcmp(&slot->ending->rail.gid, gid, sizeof(*gid)))
			return true;
	return false;
}

/* Refresh again after KRC_DEV_RETRY_MS, unless the device lacks the feature (-EOPNOTSUPP). */
static void krc_dev_retry(struct krc_dev *dev, int err)
{
	if (err != -EOPNOTSUPP)
		queue_delayed_work(system_long_wq, &dev->refresh,
				   msecs_to_jiffies(KRC_DEV_RETRY_MS));
}

/* End the port, if any, or note why there can be none; a repeated reason is logged once. */
static void krc_dev_port_wait(struct krc_dev *dev, u32 num, const char *reason)
{
	struct krc_dev_port *slot = &dev->slots[num - 1];

	if (slot->port) {
		krc_dev_port_down(dev, num, reason);
		return;
	}
	if (strcmp(reason, slot->reason))
		krc_port_notice(dev->ibdev, num, "not up: %s\n", reason);
	strscpy(slot->reason, reason, sizeof(slot->reason));
}

/* Note that creating a port failed, and retry later; a repeated reason is logged once. */
static void krc_dev_port_failed(struct krc_dev *dev, u32 num, int err)
{
	struct krc_dev_port *slot = &dev->slots[num - 1];
	char reason[KRC_REASON_BYTES];

	if (err == -ENOENT)
		snprintf(reason, sizeof(reason), "it is not in partition 0x%04x",
			 krc_node.conf->fabric.pkey);
	else if (err == -ERANGE)
		snprintf(reason, sizeof(reason), "it has no service level %u",
			 krc_node.conf->fabric.sl);
	else
		snprintf(reason, sizeof(reason), "cannot make the DC target (%d)", err);
	if (strcmp(reason, slot->reason))
		krc_port_err(dev->ibdev, num, "failed: %s\n", reason);
	strscpy(slot->reason, reason, sizeof(slot->reason));
	krc_dev_retry(dev, err);
}

/* Take back the orphans of @gid from the ports that adopted them: a port is about to use it. */
static void krc_node_return(const union ib_gid *gid)
{
	struct krc_dev_port *slot;
	u32 i = 0;

	while ((slot = krc_node_slot_up(&i)))
		krc_meta_release_orphans(slot->port->meta, gid, &krc_node.orphans);
}

static void krc_dev_port_up(struct krc_dev *dev, u32 num, const struct ib_gid_attr *sgid_attr)
{
	struct krc_dev_port *slot = &dev->slots[num - 1];
	struct krc_port *port;

	if (slot->ending || krc_node_gid_ends(&sgid_attr->gid))
		return; /* the refresh after its end comes here again */
	krc_node_return(&sgid_attr->gid);
	port = krc_port_create(dev->ibdev, dev->ops, dev->hw, &dev->attr, num, sgid_attr,
			       krc_node.conf);
	if (IS_ERR(port)) {
		krc_dev_port_failed(dev, num, PTR_ERR(port));
		return;
	}
	krc_dev_port_set_port(slot, port);
	slot->reason[0] = '\0';
	krc_port_info(dev->ibdev, num, "up: %pI6c, target 0x%x\n", port->rail.gid.raw,
		      le32_to_cpu(port->value.dct.dctn));
}

/*
 * Return: why the published record of a port is outdated, or NULL. A larger MTU is no reason:
 * the record still works, and programs would lose their queues.
 */
static const char *krc_dev_port_outdated(const struct krc_dev_port *slot,
					 const struct ib_gid_attr *sgid_attr)
{
	const struct krc_port *port = slot->port;
	struct krp_value now = port->value;

	/* compare table entries: an address that was removed and added again has a new one */
	if (port->sgid_attr != sgid_attr)
		return "its address has changed";
	/* a port without a link may have no LID and no MTU */
	if (!slot->link_up ||
	    port->rail.ops->own_address(port->rail.hw, port->rail.num, port->rail.gid_index, &now))
		return NULL;
	if (now.dct.lid != port->value.dct.lid)
		return "its LID has changed";
	if (memcmp(now.dct.mac, port->value.dct.mac, sizeof(now.dct.mac)))
		return "its MAC has changed";
	if (now.dct.mtu < port->value.dct.mtu)
		return "its MTU is smaller";
	return NULL;
}

/* Create, replace or keep the port of a slot, as link and address require. */
static void krc_dev_port_follow(struct krc_dev *dev, u32 num, const struct ib_gid_attr *sgid_attr)
{
	struct krc_dev_port *slot = &dev->slots[num - 1];
	const char *outdated = slot->port ? krc_dev_port_outdated(slot, sgid_attr) : NULL;

	if (outdated)
		krc_dev_port_down(dev, num, outdated);
	if (!slot->port && slot->link_up)
		krc_dev_port_up(dev, num, sgid_attr);
	else if (!slot->port)
		krc_dev_port_wait(dev, num, "the link is down");
}

/* Query link and address of a port and act on them. A port survives the loss of its link. */
static void krc_dev_port_refresh(struct krc_dev *dev, u32 num)
{
	const struct ib_gid_attr *sgid_attr;
	struct ib_port_attr attr = {};
	int err;

	lockdep_assert_held(&krc_node.lock);
	err = ib_query_port(dev->ibdev, num, &attr);
	if (err)
		krc_dev_retry(dev, err);
	krc_dev_port_set_link(&dev->slots[num - 1], !err && attr.state == IB_PORT_ACTIVE);
	sgid_attr = krc_port_pick_gid(dev->ibdev, num);
	if (IS_ERR(sgid_attr)) {
		krc_dev_port_wait(dev, num,
				  "no address: the port has no RoCE v2 GID of an IP address");
		return;
	}
	krc_dev_port_follow(dev, num, sgid_attr);
	rdma_put_gid_attr(sgid_attr);
}

/* End the ports of a device and close it; the refresh after the last end calls this again. */
static void krc_dev_close(struct krc_dev *dev, const char *reason)
{
	u32 num;

	lockdep_assert_held(&krc_node.lock);
	for (num = 1; num <= dev->slots_nr; num++)
		krc_dev_port_down(dev, num, reason);
	strscpy(dev->reason, reason, sizeof(dev->reason));
	if (!dev->hw || dev->ending)
		return;
	dev->ops->close(dev->hw);
	dev->hw = NULL;
}

static void krc_dev_on_fatal(void *device_owner);

static const struct krc_hw_events krc_node_hw_events = {
	.completion = krc_pool_on_completion,
	.initiator_fatal = krc_pool_on_fatal,
	.device_fatal = krc_dev_on_fatal,
};

/* Open a device; a repeated reason is logged once. Return: 0 or the error of ops->open(). */
static int krc_dev_open(struct krc_dev *dev)
{
	char reason[KRC_REASON_BYTES] = "no DC: krcore has no provider for this kind of NIC";
	struct krc_hw *hw = ERR_PTR(-EOPNOTSUPP);

	if (dev->hw)
		return 0;
	if (dev->ops)
		hw = dev->ops->open(dev->ibdev, &krc_node_hw_events, dev, &dev->attr, reason);
	if (IS_ERR(hw)) {
		if (strcmp(reason, dev->reason))
			pr_notice("%s: not used: %s\n", dev_name(&dev->ibdev->dev), reason);
		strscpy(dev->reason, reason, sizeof(dev->reason));
		krc_dev_retry(dev, PTR_ERR(hw));
		return PTR_ERR(hw);
	}
	dev->hw = hw;
	dev->reason[0] = '\0';
	return 0;
}

/* Have ports with a link adopt and withdraw orphans; @own: those of their own address only. */
static void krc_node_adopt(bool own)
{
	struct krc_dev_port *slot;
	u32 i = 0;

	while (!list_empty(&krc_node.orphans) && (slot = krc_node_slot_up(&i)))
		if (slot->link_up)
			krc_meta_adopt_orphans(slot->port->meta, &krc_node.orphans, own);
}

/*
 * Hand orphaned records to ports that are up. A node that is down drops them, since nothing
 * renews their leases. Called after all possible ports are up, because the address of an orphan
 * may have moved to one of them, which publishes the record itself.
 */
static void krc_node_tidy(void)
{
	lockdep_assert_held(&krc_node.lock);
	if (!krc_node.conf)
		krc_meta_drop_orphans(&krc_node.orphans);
	krc_node_adopt(true);
	krc_node_adopt(false);
}

/*
 * Close a device that is exclusive to another network namespace (rdma system set netns
 * exclusive), since the node reaches its MetaServers from the initial one. No event tells that
 * it is shared again, so retry.
 */
static void krc_dev_wait(struct krc_dev *dev, const char *reason)
{
	if (strcmp(reason, dev->reason))
		pr_notice("%s: not used: %s\n", dev_name(&dev->ibdev->dev), reason);
	krc_dev_close(dev, reason);
	krc_dev_retry(dev, -EACCES);
}

static void krc_dev_refresh(struct krc_dev *dev)
{
	const char *only = krc_node.conf ? krc_node.conf->device : "";
	u32 num;

	lockdep_assert_held(&krc_node.lock);
	if (dev->gone)
		return;
	if (!krc_node.conf)
		krc_dev_close(dev, "the node is down: krcore-metactl node up");
	else if (!rdma_dev_access_netns(dev->ibdev, &init_net))
		krc_dev_wait(dev, "it belongs to another network namespace");
	else if (dev->fatal)
		krc_dev_close(dev, "the device has failed");
	else if (only[0] && strcmp(only, dev_name(&dev->ibdev->dev)))
		krc_dev_close(dev, "the configuration names another device");
	else if (!krc_dev_open(dev))
		for (num = 1; num <= dev->slots_nr; num++)
			krc_dev_port_refresh(dev, num);
}

static void krc_dev_refresh_work(struct work_struct *work)
{
	mutex_lock(&krc_node.lock);
	krc_dev_refresh(container_of(to_delayed_work(work), struct krc_dev, refresh));
	krc_node_tidy();
	mutex_unlock(&krc_node.lock);
}

/* ---- events of devices */

static void krc_dev_on_fatal(void *device_owner)
{
	struct krc_dev *dev = device_owner;

	WRITE_ONCE(dev->fatal, true);
	mod_delayed_work(system_long_wq, &dev->refresh, 0);
}

static void krc_dev_on_event(struct ib_event_handler *handler, struct ib_event *event)
{
	struct krc_dev *dev = container_of(handler, struct krc_dev, events);

	switch (event->event) {
	case IB_EVENT_PORT_ACTIVE:
	case IB_EVENT_PORT_ERR:
	case IB_EVENT_GID_CHANGE:
	case IB_EVENT_LID_CHANGE:
		mod_delayed_work(system_long_wq, &dev->refresh, 0);
		break;
	case IB_EVENT_DEVICE_FATAL:
		krc_dev_on_fatal(dev);
		break;
	default:
		break;
	}
}

static void krc_node_refresh_work(struct work_struct *work)
{
	mutex_lock(&krc_node.lock);
	krc_node_refresh();
	mutex_unlock(&krc_node.lock);
}

static DECLARE_WORK(krc_node_work, krc_node_refresh_work);

/* RDMA devices report changes of addresses as events, but not those of an MTU. */
static int krc_node_on_netdev(struct notifier_block *nb, unsigned long event, void *data)
{
	if (event == NETDEV_CHANGEMTU)
		queue_work(system_long_wq, &krc_node_work);
	return NOTIFY_DONE;
}

static struct notifier_block krc_node_netdev = {
	.notifier_call = krc_node_on_netdev,
};

static int krc_client_add(struct ib_device *ibdev);
static void krc_client_remove(struct ib_device *ibdev, void *data);
static void krc_client_rename(struct ib_device *ibdev, void *data);

static struct ib_client krc_client = {
	.name = "krcore",
	.add = krc_client_add,
	.remove = krc_client_remove,
	.rename = krc_client_rename,
};

static int krc_client_add(struct ib_device *ibdev)
{
	struct krc_dev *dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	u32 i;

	if (!dev)
		return -ENOMEM;
	dev->ibdev = ibdev;
	dev->ops = krc_provider_of(ibdev);
	dev->slots_nr = min_t(u32, ibdev->phys_port_cnt, KRC_NODE_PORTS_MAX);
	for (i = 0; i < dev->slots_nr; i++) {
		dev->slots[i].dev = dev;
		INIT_WORK(&dev->slots[i].end, krc_dev_port_end);
	}
	INIT_DELAYED_WORK(&dev->refresh, krc_dev_refresh_work);
	ib_set_client_data(ibdev, &krc_client, dev);
	mutex_lock(&krc_node.lock);
	spin_lock(&krc_node.ports);
	list_add_tail(&dev->list, &krc_node.devs);
	spin_unlock(&krc_node.ports);
	krc_dev_refresh(dev);
	krc_node_tidy();
	mutex_unlock(&krc_node.lock);
	INIT_IB_EVENT_HANDLER(&dev->events, ibdev, krc_dev_on_event);
	ib_register_event_handler(&dev->events);
	/* catch changes from before the handler was registered */
	mod_delayed_work(system_long_wq, &dev->refresh, 0);
	return 0;
}

static void krc_client_remove(struct ib_device *ibdev, void *data)
{
	struct krc_dev *dev = data;
	u32 i;

	ib_unregister_event_handler(&dev->events);
	mutex_lock(&krc_node.lock);
	dev->gone = true;
	krc_dev_close(dev, "the device is gone");
	mutex_unlock(&krc_node.lock);
	wait_event(krc_node.ended, !READ_ONCE(dev->ending));
	for (i = 0; i < dev->slots_nr; i++)
		flush_work(&dev->slots[i].end);

	mutex_lock(&krc_node.lock);
	krc_dev_close(dev, "the device is gone");
	spin_lock(&krc_node.ports);
	list_del(&dev->list);
	spin_unlock(&krc_node.ports);
	krc_node_tidy();
	mutex_unlock(&krc_node.lock);
	cancel_delayed_work_sync(&dev->refresh);
	kfree(dev);
}

/* The configuration may name the device by its new name. */
static void krc_client_rename(struct ib_device *ibdev, void *data)
{
	struct krc_dev *dev = data;

	mod_delayed_work(system_long_wq, &dev->refresh, 0);
}

/* ---- configuration */

static bool krc_fabric_differs(const struct krc_hw_fabric *a, const struct krc_hw_fabric *b)
{
	return a->traffic_class != b->traffic_class || a->sl != b->sl || a->mtu != b->mtu ||
	       a->pkey != b->pkey;
}

static bool krc_pool_conf_differs(const struct krc_node_conf *a, const struct krc_node_conf *b)
{
	return a->pool_initiators != b->pool_initiators || a->pool_depth != b->pool_depth ||
	       a->ack_timeout != b->ack_timeout || a->margin_ms != b->margin_ms ||
	       krc_fabric_differs(&a->fabric, &b->fabric) || strcmp(a->device, b->device);
}

static void krc_node_free_conf(struct krc_node_conf *conf)
{
	kfree_sensitive(conf);
}

/* Give all ports that are up the new list of MetaServers, or none of them on error. */
static int krc_node_reconfigure(const struct krc_node_conf *conf)
{
	struct krc_dev_port *slot;
	int err = 0;
	u32 i = 0;

	while (!err && (slot = krc_node_slot_up(&i))) {
		slot->plan = krc_meta_plan(slot->port->meta, &conf->meta);
		if (IS_ERR(slot->plan)) {
			err = PTR_ERR(slot->plan);
			slot->plan = NULL;
		}
	}
	i = 0;
	while ((slot = krc_node_slot_up(&i))) {
		if (err)
			krc_meta_plan_free(slot->plan);
		else
			krc_meta_switch(slot->port->meta, &conf->meta, slot->plan);
		slot->plan = NULL;
	}
	return err;
}

/* Refresh all devices. */
static void krc_node_refresh(void)
{
	struct krc_dev *dev;

	list_for_each_entry(dev, &krc_node.devs, list)
		krc_dev_refresh(dev);
	krc_node_tidy();
}

/* Close all devices, which ends their ports and so puts all queues into ERROR. */
static void krc_node_close_all(const char *reason)
{
	struct krc_dev *dev;

	list_for_each_entry(dev, &krc_node.devs, list)
		krc_dev_close(dev, reason);
}

/* Wait until all ending ports have ended and the refresh after them is done; killable. */
static void krc_node_settle(void)
{
	if (wait_event_killable(krc_node.ended, !READ_ONCE(krc_node.ending)))
		return; /* killed: the work items go on */
}

/* Apply a configuration. On success the node owns @copy, and the caller frees the old one. */
static int krc_node_configure(struct krc_node_conf *copy)
{
	struct krc_node_conf *old = krc_node.conf;
	int err = 0;

	lockdep_assert_held(&krc_node.lock);
	if (old) /* published records have the old generation */
		copy->meta.generation = old->meta.generation;
	if (old && krc_pool_conf_differs(old, copy))
		krc_node_close_all("the configuration has changed");
	else if (old)
		err = krc_node_reconfigure(copy);
	if (err)
		return err;
	krc_node.conf = copy;
	krc_cache_bound(krc_node.cache, copy->cache_entries);
	krc_limits_set(copy->queues_per_user, copy->mrs_per_user, copy->requests_per_user);
	krc_node_refresh();
	return 0;
}

int krc_node_up(const struct krc_node_conf *conf)
{
	struct krc_node_conf *copy = kmemdup(conf, sizeof(*conf), GFP_KERNEL), *old;
	int err;

	if (!copy)
		return -ENOMEM;
	mutex_lock(&krc_node.lock);
	old = krc_node.conf;
	err = krc_node_configure(copy);
	mutex_unlock(&krc_node.lock);
	krc_node_free_conf(err ? copy : old);
	if (!err)
		krc_node_settle();
	return err;
}

int krc_node_down(void)
{
	struct krc_node_conf *old;

	mutex_lock(&krc_node.lock);
	old = krc_node.conf;
	krc_node.conf = NULL;
	krc_node_refresh();
	krc_cache_forget_all(krc_node.cache);
	mutex_unlock(&krc_node.lock);
	krc_node_free_conf(old);
	krc_node_settle();
	return old ? 0 : -EALREADY;
}

bool krc_node_is_up(struct krc_node_conf *ret_conf)
{
	bool up;

	mutex_lock(&krc_node.lock);
	up = krc_node.conf;
	if (up && ret_conf) {
		*ret_conf = *krc_node.conf;
		memzero_explicit(ret_conf->meta.keys, sizeof(ret_conf->meta.keys));
	}
	mutex_unlock(&krc_node.lock);
	return up;
}

/* ---- look-up of ports */

static void krc_dev_port_info(const struct krc_dev *dev, const struct krc_dev_port *slot,
			      struct krc_port_info *info)
{
	struct krc_pool_stats stats;

	memset(info, 0, sizeof(*info));
	strscpy(info->device, dev_name(&dev->ibdev->dev), sizeof(info->device));
	info->num = slot - dev->slots + 1;
	info->provider = dev->ops ? dev->ops->name : "";
	info->state = dev->hw ? KRC_PORT_DOWN : KRC_PORT_UNUSABLE;
	strscpy(info->reason, dev->hw ? slot->reason : dev->reason, sizeof(info->reason));
	if (!slot->port)
		return;
	info->state = slot->link_up ? KRC_PORT_UP : KRC_PORT_DOWN;
	if (!slot->link_up)
		strscpy(info->reason, "the link is down", sizeof(info->reason));
	info->gid = slot->port->rail.gid;
	info->value = slot->port->value;
	info->value.generation = cpu_to_le64(slot->port->rail.generation);
	info->value.dct.dc_key = 0;
	krc_pool_stats(slot->port->pool, &stats);
	info->initiators = stats.initiators;
	info->recoveries = stats.recoveries;
}

int krc_node_port_info(u32 i, struct krc_port_info *ret_info)
{
	struct krc_dev_port *slot;
	struct krc_dev *dev;

	mutex_lock(&krc_node.lock);
	slot = krc_node_slot(i, &dev);
	if (slot)
		krc_dev_port_info(dev, slot, ret_info);
	mutex_unlock(&krc_node.lock);
	return slot ? 0 : -ENOENT;
}

int krc_node_meta_info(u32 i, u32 server, struct krc_meta_info *ret_info)
{
	struct krc_dev_port *slot;
	struct krc_dev *dev;
	int err = -ENOENT;

	mutex_lock(&krc_node.lock);
	slot = krc_node_slot(i, &dev);
	if (slot && slot->port)
		err = krc_meta_info(slot->port->meta, server, ret_info);
	mutex_unlock(&krc_node.lock);
	return err;
}

struct krc_port *krc_port_first(u32 index)
{
	struct krc_dev_port *slot, *found = NULL;
	struct krc_port *port;
	u32 i = 0, up = 0;

	spin_lock(&krc_node.ports);
	while ((slot = krc_node_slot_allowed(&i)))
		if (++up == index || (!index && (!found || (slot->link_up && !found->link_up))))
			found = slot;
	port = found ? krc_port_get(found->port) : NULL;
	spin_unlock(&krc_node.ports);
	return port;
}

struct krc_port *krc_port_by_gid(const u8 *gid)
{
	struct krc_port *port = NULL;
	struct krc_dev_port *slot;
	u32 i = 0;

	spin_lock(&krc_node.ports);
	while (!port && (slot = krc_node_slot_allowed(&i)))
		if (!memcmp(slot->port->rail.gid.raw, gid, sizeof(slot->port->rail.gid.raw)))
			port = krc_port_get(slot->port);
	spin_unlock(&krc_node.ports);
	return port;
}

u32 krc_port_count(void)
{
	u32 i = 0, up = 0;

	spin_lock(&krc_node.ports);
	while (krc_node_slot_allowed(&i))
		up++;
	spin_unlock(&krc_node.ports);
	return up;
}

int krc_node_init(void)
{
	int err;

	krc_node.cache = krc_cache_create(KRC_NODE_CACHE_ENTRIES);
	if (IS_ERR(krc_node.cache))
		return PTR_ERR(krc_node.cache);
	err = ib_register_client(&krc_client);
	if (err)
		goto err_cache;
	err = register_netdevice_notifier(&krc_node_netdev);
	if (err)
		goto err_client;
	return 0;

err_client:
	ib_unregister_client(&krc_client);
err_cache:
	krc_cache_destroy(krc_node.cache);
	return err;
}

void krc_node_exit(void)
{
	unregister_netdevice_notifier(&krc_node_netdev);
	cancel_work_sync(&krc_node_work);
	mutex_lock(&krc_node.lock);
	krc_node_close_all("the module is being unloaded");
	krc_node_free_conf(krc_node.conf);
	krc_node.conf = NULL; /* keeps a late refresh from opening a device */
	mutex_unlock(&krc_node.lock);
	wait_event(krc_node.ended, !READ_ONCE(krc_node.ending));
	mutex_lock(&krc_node.lock);
	krc_node_tidy(); /* drop the orphans of the last ports */
	mutex_unlock(&krc_node.lock);
	ib_unregister_client(&krc_client);
	krc_cache_destroy(krc_node.cache);
}
