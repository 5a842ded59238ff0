// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: clients in the kernel: open, the end of their port, close; and those that a module forgets.
 * Locking: see api/api_priv.h.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/export.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/wait.h>

#include "api/api_priv.h"
#include "api/box_priv.h"
#include "krp_ioctl.h"
#include "node/device.h"
#include "node/port.h"
#include "peer/lookup.h"

static_assert(KRCORE_GID_BYTES == KRP_GID_BYTES);
static_assert(KRCORE_NAME_BYTES == KRC_USER_NAME);
static_assert(KRCORE_RAW_MAX == KRP_RAW_BYTES);
static_assert(KRCORE_TIMEOUT_MS_MAX == KRP_CONNECT_TIMEOUT_MS_MAX);

struct workqueue_struct *krc_api_wq;
struct workqueue_struct *krc_api_close_wq; /* its items wait for seconds */

static DEFINE_MUTEX(krc_clients_lock);
static LIST_HEAD(krc_clients);
static u64 krc_clients_numbered; /* with the lock */
static u32 krc_clients_left; /* how many have left the list; with the lock */
static DECLARE_WAIT_QUEUE_HEAD(krc_clients_leave); /* woken when one has */

/* krc_pool_watch.stopped: the port is gone, and all its requests have completed. */
static void krc_client_stopped(struct krc_pool_watch *watch)
{
	struct krcore_client *client = container_of(watch, struct krcore_client, watch);
	struct krcore_queue *queue;

	spin_lock_bh(&client->lock);
	client->gone = true;
	list_for_each_entry(queue, &client->queues, list)
		krc_api_set_state(queue, KRC_API_ERROR, -ENODEV);
	spin_unlock_bh(&client->lock);
	if (client->removed)
		client->removed(client->arg);
}

static int krc_client_watch(struct krcore_client *client)
{
	int err = -ENODEV;

	client->watch.stopped = krc_client_stopped;
	if (krc_port_enter(client->port)) {
		err = krc_pool_watch(client->port->pool, &client->watch);
		krc_port_exit(client->port);
	}
	return err;
}

/* Unregister from the pool; if the port is already dying, wait for its callback. */
static void krc_client_unwatch(struct krcore_client *client)
{
	if (krc_port_enter(client->port)) {
		krc_pool_unwatch(client->port->pool, &client->watch);
		krc_port_exit(client->port);
	} else {
		wait_for_completion(&client->watch.gone);
	}
}

struct krcore_client *krc_client_make(struct krc_port *port, const struct krcore_client_conf *conf)
{
	struct krcore_client *client = kzalloc(sizeof(*client), GFP_KERNEL);
	int err = -ENOMEM;

	if (!client)
		return ERR_PTR(-ENOMEM);
	strscpy(client->name, conf->name, sizeof(client->name));
	client->owner = conf->owner;
	client->port = port;
	client->removed = conf->removed;
	client->arg = conf->arg;
	spin_lock_init(&client->lock);
	INIT_LIST_HEAD(&client->queues);
	INIT_LIST_HEAD(&client->regions);
	client->user = krc_user_get_named(conf->name);
	if (!client->user)
		goto err_client;
	err = krc_charge(client->user, KRC_RES_CONTEXT, &client->charge);
	if (err)
		goto err_user;
	err = conf->inbox ? krc_box_make(client, conf->inbox) : 0;
	if (err)
		goto err_charge;
	err = krc_client_watch(client);
	if (err)
		goto err_box;
	mutex_lock(&krc_clients_lock);
	client->number = ++krc_clients_numbered;
	list_add_tail(&client->list, &krc_clients);
	mutex_unlock(&krc_clients_lock);
	return client;

err_box:
	krc_box_end(client);
err_charge:
	krc_uncharge(&client->charge);
err_user:
	krc_user_put(client->user);
err_client:
	kfree(client);
	return ERR_PTR(err);
}

struct krcore_client *krcore_client_open(const struct krcore_client_conf *conf)
{
	static const u8 any[KRCORE_GID_BYTES];
	struct krcore_client *client;
	struct krc_port *port;
	size_t len;

	if (!conf->name)
		return ERR_PTR(-EINVAL);
	len = strnlen(conf->name, KRCORE_NAME_BYTES);
	if (!len || len == KRCORE_NAME_BYTES)
		return ERR_PTR(-EINVAL);
	if (memcmp(conf->gid, any, sizeof(any)))
		port = krc_port_by_gid(conf->gid);
	else
		port = krc_port_first(0);
	if (!port)
		return ERR_PTR(-ENODEV);
	client = krc_client_make(port, conf);
	if (IS_ERR(client))
		krc_port_put(port);
	return client;
}
EXPORT_SYMBOL_GPL(krcore_client_open);

static struct krcore_queue *krc_client_queue(struct krcore_client *client)
{
	struct krcore_queue *queue;

	spin_lock_bh(&client->lock);
	queue = list_first_entry_or_null(&client->queues, struct krcore_queue, list);
	spin_unlock_bh(&client->lock);
	return queue;
}

static struct krcore_region *krc_client_region(struct krcore_client *client)
{
	struct krcore_region *region;

	spin_lock_bh(&client->lock);
	region = list_first_entry_or_null(&client->regions, struct krcore_region, list);
	spin_unlock_bh(&client->lock);
	return region;
}

/* Close all queues: a callback of one may post to any other until the callbacks of all are over. */
static void krc_client_end_queues(struct krcore_client *client)
{
	struct krcore_queue *queue, *next;
	LIST_HEAD(stopped);

	while ((queue = krc_client_queue(client))) {
		krc_api_queue_stop(queue);
		list_add_tail(&queue->list, &stopped);
	}
	list_for_each_entry_safe(queue, next, &stopped, list)
		krc_api_queue_finish(queue);
}

/* Close a client that is marked as closing. It stays in the list as long as it may call its module. */
static void krc_client_end(struct krcore_client *client)
{
	struct krcore_region *region;

	krc_box_end(client);
	krc_client_end_queues(client);
	while ((region = krc_client_region(client)))
		krcore_region_close(region);
	krc_client_unwatch(client);
	krc_uncharge(&client->charge);
	krc_user_put(client->user);
	krc_port_put(client->port);
	mutex_lock(&krc_clients_lock);
	list_del(&client->list);
	WRITE_ONCE(krc_clients_left, krc_clients_left + 1);
	mutex_unlock(&krc_clients_lock);
	wake_up_all(&krc_clients_leave);
	kfree(client);
}

void krcore_client_close(struct krcore_client *client)
{
	might_sleep();
	mutex_lock(&krc_clients_lock);
	WARN_ON_ONCE(client->closing); /* closed twice */
	client->closing = true;
	mutex_unlock(&krc_clients_lock);
	krc_client_end(client);
}
EXPORT_SYMBOL_GPL(krcore_client_close);

void krc_conn_walk(struct krc_conn_at *at, int (*fn)(const struct krc_conn_info *info, void *arg),
		   void *arg)
{
	struct krcore_client *client;

	mutex_lock(&krc_clients_lock);
	list_for_each_entry(client, &krc_clients, list) {
		if (client->number < at->client || client->closing)
			continue;
		if (client->number > at->client)
			*at = (struct krc_conn_at){ .client = client->number };
		if (client->box && krc_box_walk(client->box, at, fn, arg))
			break;
		*at = (struct krc_conn_at){ .client = client->number + 1 };
	}
	mutex_unlock(&krc_clients_lock);
}

/* Whether a module has a client. *@ret_client: one that nobody closes, for krc_client_end(); or NULL. */
static bool krc_client_of(const struct module *owner, struct krcore_client **ret_client)
{
	struct krcore_client *client;
	bool has = false;

	*ret_client = NULL;
	mutex_lock(&krc_clients_lock);
	list_for_each_entry(client, &krc_clients, list) {
		if (client->owner != owner)
			continue;
		has = true;
		if (client->closing)
			continue;
		client->closing = true;
		*ret_client = client;
		break;
	}
	mutex_unlock(&krc_clients_lock);
	return has;
}

u32 krc_clients_close_of(const struct module *owner)
{
	u32 closed = 0, left = READ_ONCE(krc_clients_left);
	struct krcore_client *client;

	while (krc_client_of(owner, &client)) {
		if (client) {
			krc_client_end(client);
			closed++;
		} else { /* one that another task closes may still call the module */
			wait_event(krc_clients_leave, READ_ONCE(krc_clients_left) != left);
		}
		left = READ_ONCE(krc_clients_left);
	}
	return closed;
}

/* A module goes, or its init has failed: its text is there until this returns. */
static int krc_clients_on_module(struct notifier_block *nb, unsigned long event, void *data)
{
	const struct module *owner = data;
	u32 left;

	if (event != MODULE_STATE_GOING)
		return NOTIFY_DONE;
	left = krc_clients_close_of(owner);
	WARN(left, "krcore: module %s is unloaded and had not closed %u clients\n", owner->name,
	     left);
	return NOTIFY_OK;
}

static struct notifier_block krc_clients_modules = {
	.notifier_call = krc_clients_on_module,
};

int krc_api_init(void)
{
	int err = -ENOMEM;

	krc_api_wq = alloc_workqueue("krcore_api", WQ_UNBOUND, 0);
	if (!krc_api_wq)
		return -ENOMEM;
	krc_api_close_wq = alloc_workqueue("krcore_api_close", WQ_UNBOUND, 0);
	if (!krc_api_close_wq)
		goto err_wq;
	krc_api_box_wq = alloc_workqueue("krcore_api_messages", WQ_UNBOUND, 0);
	if (!krc_api_box_wq)
		goto err_close_wq;
	err = register_module_notifier(&krc_clients_modules);
	if (err)
		goto err_box_wq;
	return 0;

err_box_wq:
	destroy_workqueue(krc_api_box_wq);
err_close_wq:
	destroy_workqueue(krc_api_close_wq);
err_wq:
	destroy_workqueue(krc_api_wq);
	return err;
}

void krc_api_exit(void)
{
	unregister_module_notifier(&krc_clients_modules);
	WARN_ON(!list_empty(&krc_clients));
	destroy_workqueue(krc_api_box_wq);
	destroy_workqueue(krc_api_close_wq);
	destroy_workqueue(krc_api_wq);
}

int krcore_lookup(struct krcore_client *client, const u8 gid[KRCORE_GID_BYTES], u16 service,
		  u32 timeout_ms, struct krcore_record *ret_record)
{
	struct krp_key key = { .service = cpu_to_le16(service) };
	struct krp_value value;
	u32 reads;
	int err;

	might_sleep();
	if (!timeout_ms || timeout_ms > KRCORE_TIMEOUT_MS_MAX)
		return -EINVAL;
	memcpy(key.gid, gid, sizeof(key.gid));
	if (!krc_port_enter(client->port))
		return -ENODEV;
	err = krc_lookup(client->port, krc_charge_payer(&client->charge), &key, false, timeout_ms,
			 &value, &reads, NULL);
	krc_port_exit(client->port);
	if (err < 0)
		return err;
	*ret_record = (struct krcore_record){
		.generation = le64_to_cpu(value.generation),
		.connectable = krp_kind_port(value.kind),
		.reads = reads,
	};
	if (value.kind == KRP_KIND_RAW) {
		ret_record->raw_len = value.len;
		memcpy(ret_record->raw, value.raw, sizeof(ret_record->raw));
	}
	return 0;
}
EXPORT_SYMBOL_GPL(krcore_lookup);
