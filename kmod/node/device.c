// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: RDMA devices and their ports: opening, refresh and end, and the look-up of ports.
 *
 * Only a refresh creates ports. It also ends them, as do a configuration that changes their
 * pools and the removal of the device or of the module.
 *
 * A port ends in a work item of its slot, without the lock, since it waits for the leases of
 * its peers. Until then its slot gets no new port, its device stays open, and no port of the
 * node takes its address; afterwards a refresh does what had to wait.
 * Locking: see node/node_priv.h.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/lockdep.h>
#include <linux/nsproxy.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>

#include "base/log.h"
#include "message/message.h"
#include "meta/record.h"
#include "node/device.h"
#include "node/node_priv.h"
#include "pool/pool.h"

#define KRC_DEV_RETRY_MS 5000

struct krc_devices krc_devices = {
	.ports = __SPIN_LOCK_UNLOCKED(krc_devices.ports),
	.list = LIST_HEAD_INIT(krc_devices.list),
	.orphans = KRP_LIST_INIT(krc_devices.orphans),
	.ended = __WAIT_QUEUE_HEAD_INITIALIZER(krc_devices.ended),
};

static const struct krc_provider_ops *const krc_providers[] = {
	&krc_mlx5_ops,
	&krc_verbs_ops,
};

static const struct krc_provider_ops *krc_provider_of(struct ib_device *ibdev)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(krc_providers); i++)
		if (krc_providers[i]->match(ibdev))
			return krc_providers[i];
	return NULL;
}

/* ---- all ports */

struct krc_dev_port *krc_dev_port_at(u32 i, struct krc_dev **ret_dev)
{
	struct krc_dev *dev;

	lockdep_assert(lockdep_is_held(&krc_node.lock) || lockdep_is_held(&krc_devices.ports));
	list_for_each_entry(dev, &krc_devices.list, list) {
		if (i < dev->slots_nr) {
			*ret_dev = dev;
			return &dev->slots[i];
		}
		i -= dev->slots_nr;
	}
	return NULL;
}

struct krc_dev_port *krc_dev_port_next(u32 *i)
{
	struct krc_dev_port *slot;
	struct krc_dev *dev;

	while ((slot = krc_dev_port_at((*i)++, &dev)))
		if (slot->port)
			return slot;
	return NULL;
}

/* The same for ports that the calling process may use, by its network namespace as in uverbs. */
static struct krc_dev_port *krc_dev_port_allowed(u32 *i)
{
	struct krc_dev_port *slot;

	while ((slot = krc_dev_port_next(i)))
		if (rdma_dev_access_netns(slot->port->rail.ibdev, current->nsproxy->net_ns))
			return slot;
	return NULL;
}

/* ---- ports of a device */

/* Set the port that programs find in this slot; NULL: none. */
static void krc_dev_port_set_port(struct krc_dev_port *slot, struct krc_port *port)
{
	lockdep_assert_held(&krc_node.lock);
	spin_lock(&krc_devices.ports);
	slot->port = port;
	spin_unlock(&krc_devices.ports);
}

static void krc_dev_port_set_link(struct krc_dev_port *slot, bool up)
{
	lockdep_assert_held(&krc_node.lock);
	spin_lock(&krc_devices.ports);
	slot->link_up = up;
	spin_unlock(&krc_devices.ports);
}

/* Work: end slot->ending, then refresh what waited for that. */
static void krc_dev_port_end(struct work_struct *work)
{
	struct krc_dev_port *slot = container_of(work, struct krc_dev_port, end);
	struct krp_list left = KRP_LIST_INIT(left);

	krc_port_kill(slot->ending, &left);

	mutex_lock(&krc_node.lock);
	krp_list_splice(&left, &krc_devices.orphans);
	slot->ending = NULL;
	WRITE_ONCE(slot->dev->ending, slot->dev->ending - 1);
	krc_devices_refresh();
	WRITE_ONCE(krc_devices.ending, krc_devices.ending - 1);
	mutex_unlock(&krc_node.lock);
	wake_up_all(&krc_devices.ended); /* krc_client_remove() flushes this work, too */
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
		WRITE_ONCE(krc_devices.ending, krc_devices.ending + 1);
		queue_work(system_long_wq, &slot->end);
	}
	strscpy(slot->reason, reason, sizeof(slot->reason));
}

/* Return: true if a port that is ending still has this address. */
static bool krc_devices_gid_ends(const union ib_gid *gid)
{
	struct krc_dev_port *slot;
	struct krc_dev *dev;
	u32 i;

	for (i = 0; (slot = krc_dev_port_at(i, &dev)); i++)
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
		snprintf(reason, sizeof(reason), "cannot make the target (%d)", err);
	if (strcmp(reason, slot->reason))
		krc_port_err(dev->ibdev, num, "failed: %s\n", reason);
	strscpy(slot->reason, reason, sizeof(slot->reason));
	krc_dev_retry(dev, err);
}

/* Take back the orphans of @gid from the ports that adopted them: a port is about to use it. */
static void krc_devices_return(const union ib_gid *gid)
{
	struct krc_dev_port *slot;
	u32 i = 0;

	while ((slot = krc_dev_port_next(&i)))
		krc_meta_release_orphans(slot->port->meta, gid, &krc_devices.orphans);
}

static void krc_dev_port_up(struct krc_dev *dev, u32 num, const struct ib_gid_attr *sgid_attr)
{
	struct krc_dev_port *slot = &dev->slots[num - 1];
	struct krc_port *port;

	if (slot->ending || krc_devices_gid_ends(&sgid_attr->gid))
		return; /* the refresh after its end comes here again */
	krc_devices_return(&sgid_attr->gid);
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
	if (!port->rail.ops->port_settled(port->rail.hw, port->rail.num))
		return "its partitions have changed";
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
	struct krc_dev_port *slot = &dev->slots[num - 1];
	const struct ib_gid_attr *sgid_attr;
	struct ib_port_attr attr = {};
	int err;

	lockdep_assert_held(&krc_node.lock);
	err = ib_query_port(dev->ibdev, num, &attr);
	if (err)
		krc_dev_retry(dev, err);
	krc_dev_port_set_link(slot, !err && attr.state == IB_PORT_ACTIVE);
	sgid_attr = krc_port_pick_gid(dev->ibdev, num, slot->port ? slot->port->sgid_attr : NULL);
	if (IS_ERR(sgid_attr)) {
		krc_dev_port_wait(dev, num,
				  "no address: the port has no RoCE v2 GID of an IP address");
		return;
	}
	krc_dev_port_follow(dev, num, sgid_attr);
	rdma_put_gid_attr(sgid_attr);
}

void krc_dev_close(struct krc_dev *dev, const char *reason)
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

void krc_dev_on_fatal(void *device_owner)
{
	struct krc_dev *dev = device_owner;

	WRITE_ONCE(dev->fatal, true);
	mod_delayed_work(system_long_wq, &dev->refresh, 0);
}

static const struct krc_hw_events krc_dev_hw_events = {
	.completion = krc_pool_on_completion,
	.initiator_fatal = krc_pool_on_fatal,
	.payer = krc_pool_payer,
	.received = krc_messages_on_received,
	.receive_fatal = krc_messages_on_fatal,
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
		hw = dev->ops->open(dev->ibdev, &krc_dev_hw_events, dev, &dev->attr, reason);
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
static void krc_devices_adopt(bool own)
{
	struct krc_dev_port *slot;
	u32 i = 0;

	while (!krp_list_empty(&krc_devices.orphans) && (slot = krc_dev_port_next(&i)))
		if (slot->link_up)
			krc_meta_adopt_orphans(slot->port->meta, &krc_devices.orphans, own);
}

void krc_devices_tidy(void)
{
	lockdep_assert_held(&krc_node.lock);
	if (!krc_node.conf)
		krc_meta_drop_orphans(&krc_devices.orphans);
	krc_devices_adopt(true);
	krc_devices_adopt(false);
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

void krc_dev_refresh(struct krc_dev *dev)
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

static void krc_dev_refresh_locked(struct krc_dev *dev)
{
	mutex_lock(&krc_node.lock);
	krc_dev_refresh(dev);
	krc_devices_tidy();
	mutex_unlock(&krc_node.lock);
}

static void krc_dev_refresh_work(struct work_struct *work)
{
	krc_dev_refresh_locked(container_of(to_delayed_work(work), struct krc_dev, refresh));
}

static void krc_dev_changed_work(struct work_struct *work)
{
	krc_dev_refresh_locked(container_of(to_delayed_work(work), struct krc_dev, changed));
}

void krc_dev_init(struct krc_dev *dev, struct ib_device *ibdev)
{
	u32 i;

	dev->ibdev = ibdev;
	dev->ops = krc_provider_of(ibdev);
	dev->slots_nr = min_t(u32, ibdev->phys_port_cnt, KRC_NODE_PORTS_MAX);
	for (i = 0; i < dev->slots_nr; i++) {
		dev->slots[i].dev = dev;
		INIT_WORK(&dev->slots[i].end, krc_dev_port_end);
	}
	INIT_DELAYED_WORK(&dev->refresh, krc_dev_refresh_work);
	INIT_DELAYED_WORK(&dev->changed, krc_dev_changed_work);
}

/* ---- all devices */

void krc_devices_refresh(void)
{
	struct krc_dev *dev;

	list_for_each_entry(dev, &krc_devices.list, list)
		krc_dev_refresh(dev);
	krc_devices_tidy();
}

void krc_devices_close(const char *reason)
{
	struct krc_dev *dev;

	list_for_each_entry(dev, &krc_devices.list, list)
		krc_dev_close(dev, reason);
}

void krc_devices_settle(void)
{
	if (wait_event_killable(krc_devices.ended, !READ_ONCE(krc_devices.ending)))
		return; /* killed: the work items go on */
}

/* ---- look-up of ports */

struct krc_port *krc_port_first(u32 index)
{
	struct krc_dev_port *slot, *found = NULL;
	struct krc_port *port;
	u32 i = 0, up = 0;

	spin_lock(&krc_devices.ports);
	while ((slot = krc_dev_port_allowed(&i)))
		if (++up == index || (!index && (!found || (slot->link_up && !found->link_up))))
			found = slot;
	port = found ? krc_port_get(found->port) : NULL;
	spin_unlock(&krc_devices.ports);
	return port;
}

struct krc_port *krc_port_by_gid(const u8 *gid)
{
	struct krc_port *port = NULL;
	struct krc_dev_port *slot;
	u32 i = 0;

	spin_lock(&krc_devices.ports);
	while (!port && (slot = krc_dev_port_allowed(&i)))
		if (!memcmp(slot->port->rail.gid.raw, gid, sizeof(slot->port->rail.gid.raw)))
			port = krc_port_get(slot->port);
	spin_unlock(&krc_devices.ports);
	return port;
}

u32 krc_port_count(void)
{
	u32 i = 0, up = 0;

	spin_lock(&krc_devices.ports);
	while (krc_dev_port_allowed(&i))
		up++;
	spin_unlock(&krc_devices.ports);
	return up;
}
