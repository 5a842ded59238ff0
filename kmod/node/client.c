// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: what others tell of RDMA devices: ib_core of their coming, events and end, and the network
 * stack of changes of MTUs.
 *
 * A refresh queries each port several times, under krc_node.lock, and changes may come as fast
 * as somebody can make them: containers may add and remove addresses of what is stacked on a port.
 * So a refresh begins KRC_REFRESH_MS after the first change that it is for, and others do not
 * defer it.
 *
 * Locking: ib_core calls add and remove one at a time for a device; they take krc_node.lock.
 */
#include <linux/netdevice.h>
#include <linux/slab.h>

#include "node/node_priv.h"

void krc_dev_on_event(struct ib_event_handler *handler, struct ib_event *event)
{
	struct krc_dev *dev = container_of(handler, struct krc_dev, events);

	switch (event->event) {
	case IB_EVENT_PORT_ACTIVE:
	case IB_EVENT_PORT_ERR:
	case IB_EVENT_GID_CHANGE:
	case IB_EVENT_LID_CHANGE:
	case IB_EVENT_PKEY_CHANGE: /* ib_core's table is as of now: clients hear of it afterwards */
		queue_delayed_work(system_long_wq, &dev->changed, msecs_to_jiffies(KRC_REFRESH_MS));
		break;
	case IB_EVENT_DEVICE_FATAL:
		krc_dev_on_fatal(dev);
		break;
	default:
		break;
	}
}

static void krc_devices_refresh_work(struct work_struct *work)
{
	mutex_lock(&krc_node.lock);
	krc_devices_refresh();
	mutex_unlock(&krc_node.lock);
}

struct delayed_work krc_devices_changed;

/*
 * Whether a port may depend on a network device: one of the initial network namespace, or a
 * NIC's, wherever it was moved. Any user can make others, in a namespace of its own.
 */
static bool krc_netdev_matters(const struct net_device *ndev)
{
	return net_eq(dev_net(ndev), &init_net) || ndev->dev.parent;
}

/* RDMA devices report changes of addresses as events, but not those of an MTU. */
static int krc_devices_on_netdev(struct notifier_block *nb, unsigned long event, void *data)
{
	if (event == NETDEV_CHANGEMTU && krc_netdev_matters(netdev_notifier_info_to_dev(data)))
		queue_delayed_work(system_long_wq, &krc_devices_changed,
				   msecs_to_jiffies(KRC_REFRESH_MS));
	return NOTIFY_DONE;
}

struct notifier_block krc_devices_netdev = {
	.notifier_call = krc_devices_on_netdev,
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

	if (!dev)
		return -ENOMEM;
	krc_dev_init(dev, ibdev);
	ib_set_client_data(ibdev, &krc_client, dev);
	mutex_lock(&krc_node.lock);
	spin_lock(&krc_devices.ports);
	list_add_tail(&dev->list, &krc_devices.list);
	spin_unlock(&krc_devices.ports);
	krc_dev_refresh(dev);
	krc_devices_tidy();
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
	wait_event(krc_devices.ended, !READ_ONCE(dev->ending));
	for (i = 0; i < dev->slots_nr; i++)
		flush_work(&dev->slots[i].end);

	mutex_lock(&krc_node.lock);
	krc_dev_close(dev, "the device is gone");
	spin_lock(&krc_devices.ports);
	list_del(&dev->list);
	spin_unlock(&krc_devices.ports);
	krc_devices_tidy();
	mutex_unlock(&krc_node.lock);
	cancel_delayed_work_sync(&dev->changed);
	cancel_delayed_work_sync(&dev->refresh);
	kfree(dev);
}

/* The configuration may name the device by its new name. */
static void krc_client_rename(struct ib_device *ibdev, void *data)
{
	struct krc_dev *dev = data;

	mod_delayed_work(system_long_wq, &dev->refresh, 0);
}

int krc_client_init(void)
{
	int err;

	INIT_DELAYED_WORK(&krc_devices_changed, krc_devices_refresh_work);
	err = ib_register_client(&krc_client);
	if (err)
		return err;
	err = register_netdevice_notifier(&krc_devices_netdev);
	if (err)
		ib_unregister_client(&krc_client);
	return err;
}

void krc_client_quiet(void)
{
	unregister_netdevice_notifier(&krc_devices_netdev);
	cancel_delayed_work_sync(&krc_devices_changed);
}

void krc_client_exit(void)
{
	ib_unregister_client(&krc_client);
}
