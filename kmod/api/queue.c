// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: queues of clients in the kernel: open, states, close.
 * Locking: see api/api_priv.h.
 */
#include <linux/bits.h>
#include <linux/err.h>
#include <linux/export.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "api/api_priv.h"
#include "krp_ioctl.h"
#include "node/port.h"
#include "peer/lookup.h"
#include "peer/peer.h"

static_assert(KRCORE_DEPTH_MAX == KRP_QUEUE_DEPTH_MAX);

/* For each state, a mask of the states that may follow it. */
static const u8 krc_api_next[KRC_API_STATES] = {
	[KRC_API_READY] = BIT(KRC_API_ERROR) | BIT(KRC_API_CLOSING),
	[KRC_API_ERROR] = BIT(KRC_API_CLOSING),
};

bool krc_api_set_state(struct krcore_queue *queue, enum krc_api_state state, int error)
{
	bool may;

	spin_lock_bh(&queue->lock);
	may = krc_api_next[queue->state] & BIT(state);
	if (may)
		queue->state = state;
	/* -ENOTCONN: the flow has failed, and the request that did is told about later */
	if (state == KRC_API_ERROR && (may || queue->error == -ENOTCONN))
		WRITE_ONCE(queue->error, error);
	spin_unlock_bh(&queue->lock);
	return may;
}

int krcore_queue_error(const struct krcore_queue *queue)
{
	return READ_ONCE(queue->error);
}
EXPORT_SYMBOL_GPL(krcore_queue_error);

static struct krcore_queue *krc_api_alloc(struct krcore_client *client, u32 depth)
{
	struct krcore_queue *queue = kvzalloc(struct_size(queue, slots, depth), GFP_KERNEL);
	u32 i;

	if (!queue)
		return NULL;
	queue->client = client;
	queue->state = KRC_API_READY;
	spin_lock_init(&queue->lock);
	INIT_LIST_HEAD(&queue->free);
	INIT_LIST_HEAD(&queue->taken);
	INIT_LIST_HEAD(&queue->pending);
	init_waitqueue_head(&queue->idle);
	for (i = 0; i < depth; i++) {
		queue->slots[i].queue = queue;
		list_add_tail(&queue->slots[i].order, &queue->free);
	}
	krc_api_work_init(queue);
	return queue;
}

/* Look the service up. Context: port entered. Return: its peer, counted, or ERR_PTR. */
static struct krc_peer *krc_api_peer(struct krcore_client *client,
				     const struct krcore_queue_conf *conf)
{
	struct krp_key key = { .service = cpu_to_le16(conf->service) };
	struct krp_value value;
	u32 reads;
	int err;

	memcpy(key.gid, conf->gid, sizeof(key.gid));
	err = krc_lookup(client->port, krc_charge_payer(&client->charge), &key, false,
			 conf->timeout_ms, &value, &reads, NULL);
	if (err < 0)
		return ERR_PTR(err);
	return krc_peer_get(client->port, &key, &value, false);
}

/* Connect a new queue, and list it. Context: port entered. */
static int krc_api_connect(struct krcore_queue *queue, const struct krcore_queue_conf *conf)
{
	struct krcore_client *client = queue->client;
	struct krc_peer *peer = krc_api_peer(client, conf);
	bool gone;

	if (IS_ERR(peer))
		return PTR_ERR(peer);
	queue->peer = peer;
	krc_flow_init(&queue->flow, client->port->pool, krc_api_done, krc_api_check);
	queue->flow.lapses = true; /* see krc_api_check() */
	queue->flow.payer = krc_charge_payer(&client->charge);
	queue->flow.standing = peer->standing;
	spin_lock_bh(&client->lock);
	gone = client->gone;
	if (!gone)
		list_add_tail(&queue->list, &client->queues);
	spin_unlock_bh(&client->lock);
	if (gone)
		krc_peer_put(peer);
	return gone ? -ENODEV : 0;
}

struct krcore_queue *krcore_queue_open(struct krcore_client *client,
				       const struct krcore_queue_conf *conf)
{
	struct krcore_queue *queue;
	int err;

	might_sleep();
	if (!conf->depth || conf->depth > KRCORE_DEPTH_MAX || !conf->timeout_ms ||
	    conf->timeout_ms > KRCORE_TIMEOUT_MS_MAX)
		return ERR_PTR(-EINVAL);
	queue = krc_api_alloc(client, conf->depth);
	if (!queue)
		return ERR_PTR(-ENOMEM);
	err = krc_charge(client->user, KRC_RES_QUEUE, &queue->charge);
	if (err)
		goto err_queue;
	err = -ENODEV;
	if (krc_port_enter(client->port)) {
		err = krc_api_connect(queue, conf);
		krc_port_exit(client->port);
	}
	if (!err)
		return queue;
	krc_uncharge(&queue->charge);
err_queue:
	kvfree(queue);
	return ERR_PTR(err);
}
EXPORT_SYMBOL_GPL(krcore_queue_open);

/* Whether no callback runs or is to come, but for one that the flow is about to return from. */
static bool krc_api_is_idle(struct krcore_queue *queue)
{
	bool idle;

	spin_lock_bh(&queue->lock); /* behind the one that wakes */
	idle = !queue->busy;
	spin_unlock_bh(&queue->lock);
	return idle;
}

void krc_api_queue_stop(struct krcore_queue *queue)
{
	struct krcore_client *client = queue->client;

	WARN_ON_ONCE(!krc_api_set_state(queue, KRC_API_CLOSING, 0)); /* closed twice */
	spin_lock_bh(&client->lock);
	list_del(&queue->list);
	spin_unlock_bh(&client->lock);
	if (krc_port_enter(client->port)) {
		krc_flow_cancel(&queue->flow);
		krc_port_exit(client->port);
	}
	krc_api_run(queue);
	wait_event(queue->idle, krc_api_is_idle(queue));
	krc_flow_drain(&queue->flow);
}

void krc_api_queue_finish(struct krcore_queue *queue)
{
	krc_api_work_stop(queue); /* callbacks of others may have queued it until now */
	WARN_ON_ONCE(!list_empty(&queue->taken));
	krc_flow_release(&queue->flow);
	krc_peer_put(queue->peer);
	krc_uncharge(&queue->charge);
	kvfree(queue);
}

void krcore_queue_close(struct krcore_queue *queue)
{
	might_sleep();
	krc_api_queue_stop(queue);
	krc_api_queue_finish(queue);
}
EXPORT_SYMBOL_GPL(krcore_queue_close);
