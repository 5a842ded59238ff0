/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the inside of the node, shared by node/node.c, node/device.c and node/client.c.
 *
 * Every RDMA device is listed from ib_client.add to ib_client.remove, usable or not, so
 * that `node show` can say why one is not used. A refresh brings each device to the state that
 * configuration, links and addresses require. `node up` and `node down` run it; so does a work
 * item soon after an event of the device or a change of an MTU (node/client.c), and some seconds
 * after a failure.
 * Locking: krc_node.lock for everything here; functions expect it held unless they say otherwise.
 * Programs that look up a port must not wait for that mutex: the list of devices, and port and
 * link of a slot, are written under krc_devices.ports (spinlock) as well, and may be read under
 * either lock.
 */
#ifndef KRC_NODE_PRIV_H
#define KRC_NODE_PRIV_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "krp_records.h"
#include "node/node.h"
#include "node/port.h"

#define KRC_NODE_PORTS_MAX 4
#define KRC_REFRESH_MS 100 /* from the first change that is noticed to the refresh for it */

/**
 * struct krc_node_state - The configuration of the node.
 * @lock: for it and all devices.
 * @conf: NULL: the node is down.
 */
struct krc_node_state {
	struct mutex lock;
	struct krc_node_conf *conf;
};

extern struct krc_node_state krc_node;

/**
 * struct krc_dev_port - A slot: one port of a device, up or not.
 * @dev: the device.
 * @port: the port, or NULL.
 * @ending: former @port, until krc_dev_port_end() is done with it.
 * @end: work item that ends it.
 * @plan: change of the MetaServers; only while krc_node_reconfigure() runs.
 * @reason: why there is no port.
 * @link_up: the port has a link.
 */
struct krc_dev_port {
	struct krc_dev *dev;
	struct krc_port *port;
	struct krc_port *ending;
	struct work_struct end;
	struct krc_meta_plan *plan;
	char reason[KRC_REASON_BYTES];
	bool link_up;
};

/**
 * struct krc_dev - One RDMA device.
 * @list: entry of krc_devices.list.
 * @ibdev: the device.
 * @ops: provider; NULL: no provider knows it.
 * @hw: the open device; NULL: it is not open.
 * @attr: its capabilities.
 * @events: handler of its events.
 * @refresh: work item: refresh at once, or again after a failure.
 * @changed: work item: refresh after changes that the device has reported.
 * @reason: why it is not open.
 * @fatal: it has failed for good; set without the lock.
 * @gone: it was removed: a late refresh must not open it again.
 * @ending: slots with a port that is ending; the device stays open for them.
 * @slots_nr: number of @slots in use.
 * @slots: its ports, by number - 1.
 */
struct krc_dev {
	struct list_head list;
	struct ib_device *ibdev;
	const struct krc_provider_ops *ops;
	struct krc_hw *hw;
	struct krc_hw_attr attr;
	struct ib_event_handler events;
	struct delayed_work refresh;
	struct delayed_work changed;
	char reason[KRC_REASON_BYTES];
	bool fatal;
	bool gone;
	u32 ending;
	u32 slots_nr;
	struct krc_dev_port slots[KRC_NODE_PORTS_MAX];
};

/**
 * struct krc_devices - All RDMA devices.
 * @ports: spinlock of @list, and of krc_dev_port.port and link_up: see the head of the file.
 * @list: struct krc_dev.
 * @orphans: records that ports could not withdraw: krp_record.link.
 * @ending: ports that are ending.
 * @ended: woken when one has ended.
 */
struct krc_devices {
	spinlock_t ports;
	struct list_head list;
	struct krp_list orphans;
	u32 ending;
	wait_queue_head_t ended;
};

extern struct krc_devices krc_devices;

/* node/device.c */

/**
 * krc_dev_port_at() - Find a slot.
 * @i: which one of all devices, from 0.
 * @ret_dev: out: its device.
 *
 * Context: krc_node.lock or krc_devices.ports held.
 * Return: the slot, or NULL.
 */
struct krc_dev_port *krc_dev_port_at(u32 i, struct krc_dev **ret_dev);

/**
 * krc_dev_port_next() - Find the next slot with a port.
 * @i: where to begin; out: behind the slot.
 *
 * Context: krc_node.lock or krc_devices.ports held.
 * Return: the slot, or NULL.
 */
struct krc_dev_port *krc_dev_port_next(u32 *i);

/**
 * krc_dev_init() - Initialise a device.
 * @dev: zeroed.
 * @ibdev: its RDMA device.
 *
 * Context: process; no lock needed.
 */
void krc_dev_init(struct krc_dev *dev, struct ib_device *ibdev);

/**
 * krc_dev_refresh() - Bring a device to the state that is required.
 * @dev: device.
 *
 * Context: krc_node.lock held; may sleep.
 */
void krc_dev_refresh(struct krc_dev *dev);

/**
 * krc_dev_close() - End the ports of a device and close it.
 * @dev: device.
 * @reason: why, for diagnostics.
 *
 * The refresh after the end of the last port calls this again.
 * Context: krc_node.lock held; may sleep.
 */
void krc_dev_close(struct krc_dev *dev, const char *reason);

/**
 * krc_dev_on_fatal() - A device has failed for good.
 * @device_owner: struct krc_dev.
 *
 * Context: any; no lock needed.
 */
void krc_dev_on_fatal(void *device_owner);

/**
 * krc_dev_on_event() - What ib_core tells of a device: krc_dev.events.handler.
 * @handler: krc_dev.events.
 * @event: event.
 *
 * Changes of link, addresses and partitions are for a refresh, see node/client.c.
 * Context: any; no lock needed.
 */
void krc_dev_on_event(struct ib_event_handler *handler, struct ib_event *event);

/**
 * krc_devices_refresh() - Refresh all devices, and krc_devices_tidy().
 *
 * Context: krc_node.lock held; may sleep.
 */
void krc_devices_refresh(void);

/**
 * krc_devices_close() - Close all devices, which ends their ports and so puts all queues into ERROR.
 * @reason: why, for diagnostics.
 *
 * Context: krc_node.lock held; may sleep.
 */
void krc_devices_close(const char *reason);

/**
 * krc_devices_tidy() - Hand orphaned records to ports that are up.
 *
 * A node that is down drops them, since nothing renews their leases. Called after all possible
 * ports are up, because the address of an orphan may have moved to one of them, which publishes
 * the record itself.
 * Context: krc_node.lock held; may sleep.
 */
void krc_devices_tidy(void);

/**
 * krc_devices_settle() - Wait until all ending ports have ended and the refresh after them is done.
 *
 * Context: may sleep, until the caller is killed; the lock is not held.
 */
void krc_devices_settle(void);

/* node/client.c */

/* refreshes all devices after changes of MTUs */
extern struct delayed_work krc_devices_changed;
/* hears of network devices; the suites call it, too */
extern struct notifier_block krc_devices_netdev;

/**
 * krc_client_init() - Register for devices and changes of MTUs.
 *
 * Context: module init.
 * Return: 0 or an errno.
 */
int krc_client_init(void);

/**
 * krc_client_quiet() - Hear of no more changes of MTUs.
 *
 * Context: module exit; the lock is not held.
 */
void krc_client_quiet(void);

/**
 * krc_client_exit() - Remove all devices.
 *
 * Context: module exit, after krc_client_quiet(); the lock is not held.
 */
void krc_client_exit(void);

#endif /* KRC_NODE_PRIV_H */
