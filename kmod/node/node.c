// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the configuration of the node, and what people see of it.
 *
 * Locking: see node/node_priv.h.
 */
#include <linux/err.h>
#include <linux/lockdep.h>
#include <linux/slab.h>

#include "base/limits.h"
#include "meta/cache.h"
#include "meta/servers.h"
#include "node/node_priv.h"
#include "pool/pool.h"

#define KRC_NODE_CACHE_ENTRIES 65536

struct krc_node_state krc_node = {
	.lock = __MUTEX_INITIALIZER(krc_node.lock),
};

static struct krc_cache *krc_cache_of_node; /* as long as the module */

struct krc_cache *krc_node_cache(void)
{
	return krc_cache_of_node;
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

	while (!err && (slot = krc_dev_port_next(&i))) {
		slot->plan = krc_meta_plan(slot->port->meta, &conf->meta);
		if (IS_ERR(slot->plan)) {
			err = PTR_ERR(slot->plan);
			slot->plan = NULL;
		}
	}
	i = 0;
	while ((slot = krc_dev_port_next(&i))) {
		if (err)
			krc_meta_plan_free(slot->plan);
		else
			krc_meta_switch(slot->port->meta, &conf->meta, slot->plan);
		slot->plan = NULL;
	}
	return err;
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
		krc_devices_close("the configuration has changed");
	else if (old)
		err = krc_node_reconfigure(copy);
	if (err)
		return err;
	krc_node.conf = copy;
	krc_cache_bound(krc_cache_of_node, copy->cache_entries);
	krc_limits_set(copy->queues_per_user, copy->mrs_per_user, copy->requests_per_user);
	krc_devices_refresh();
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
		krc_devices_settle();
	return err;
}

int krc_node_down(void)
{
	struct krc_node_conf *old;

	mutex_lock(&krc_node.lock);
	old = krc_node.conf;
	krc_node.conf = NULL;
	krc_devices_refresh();
	krc_cache_forget_all(krc_cache_of_node);
	mutex_unlock(&krc_node.lock);
	krc_node_free_conf(old);
	krc_devices_settle();
	return old ? 0 : -EALREADY;
}

int krc_node_is_up(struct krc_node_conf *ret_conf)
{
	bool up;

	if (mutex_lock_killable(&krc_node.lock))
		return -EINTR;
	up = krc_node.conf;
	if (up && ret_conf) {
		*ret_conf = *krc_node.conf;
		memzero_explicit(ret_conf->meta.keys, sizeof(ret_conf->meta.keys));
	}
	mutex_unlock(&krc_node.lock);
	return up;
}

/* ---- views */

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

	if (mutex_lock_killable(&krc_node.lock))
		return -EINTR;
	slot = krc_dev_port_at(i, &dev);
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

	if (mutex_lock_killable(&krc_node.lock))
		return -EINTR;
	slot = krc_dev_port_at(i, &dev);
	if (slot && slot->port)
		err = krc_meta_info(slot->port->meta, server, ret_info);
	mutex_unlock(&krc_node.lock);
	return err;
}

/* ---- begin and end */

int krc_node_init(void)
{
	int err;

	krc_cache_of_node = krc_cache_create(KRC_NODE_CACHE_ENTRIES);
	if (IS_ERR(krc_cache_of_node))
		return PTR_ERR(krc_cache_of_node);
	err = krc_client_init();
	if (err)
		krc_cache_destroy(krc_cache_of_node);
	return err;
}

void krc_node_exit(void)
{
	krc_client_quiet();
	mutex_lock(&krc_node.lock);
	krc_devices_close("the module is being unloaded");
	krc_node_free_conf(krc_node.conf);
	krc_node.conf = NULL; /* keeps a late refresh from opening a device */
	mutex_unlock(&krc_node.lock);
	wait_event(krc_devices.ended, !READ_ONCE(krc_devices.ending));
	mutex_lock(&krc_node.lock);
	krc_devices_tidy(); /* drop the orphans of the last ports */
	mutex_unlock(&krc_node.lock);
	krc_client_exit();
	krc_cache_destroy(krc_cache_of_node);
}
