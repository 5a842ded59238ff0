// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: listeners of clients in the kernel, from the publication of the service to the answer to an
 * offer.
 *
 * An offer is answered in the callback that tells of it, so those that wait are in the hands of
 * message/open.c, which bounds them.
 * Locking: see api/box_priv.h.
 */
#include <linux/err.h>
#include <linux/export.h>
#include <linux/slab.h>

#include "api/box_priv.h"
#include "krp_message.h"
#include "message/open.h"
#include "node/port.h"
#include "peer/service.h"

/* krc_inbox.arrived: there is an offer. */
static void krc_listener_arrived(struct krc_inbox *inbox)
{
	struct krcore_listener *listener = container_of(inbox, struct krcore_listener, offers);
	struct krc_api_box *box = listener->box;

	spin_lock(&box->lock);
	if (!listener->closed && list_empty(&listener->offering))
		list_add_tail(&listener->offering, &box->offering);
	krc_box_kick(box);
	spin_unlock(&box->lock);
}

static void krc_listener_vacate(struct krc_api_box *box, u32 backlog)
{
	spin_lock(&box->lock);
	box->backlog -= backlog;
	spin_unlock(&box->lock);
}

/* krc_inbox.unlistened: the last offer is answered. */
static void krc_listener_unlistened(struct krc_inbox *inbox, u32 backlog)
{
	krc_listener_vacate(container_of(inbox, struct krcore_listener, offers)->box, backlog);
}

static void krc_listener_release(struct kref *ref)
{
	kfree(container_of(ref, struct krcore_listener, ref));
}

void krc_listener_drop(struct krcore_listener *listener)
{
	kref_put(&listener->ref, krc_listener_release);
}

/* Take places of a box for offers. Return: whether there are so many. */
static bool krc_listener_occupy(struct krc_api_box *box, u32 backlog)
{
	bool room;

	spin_lock(&box->lock);
	room = backlog <= box->pages - box->backlog;
	if (room)
		box->backlog += backlog;
	spin_unlock(&box->lock);
	return room;
}

/* Have the port listen. Return: 0, or an error. */
static int krc_listener_begin(struct krcore_listener *listener, u16 service)
{
	struct krc_port *port = listener->box->client->port;

	if (!krc_port_enter(port))
		return -ENODEV;
	listener->listener =
		krc_listen(port->messages, service, listener->backlog, &listener->offers, listener);
	krc_port_exit(port);
	return PTR_ERR_OR_ZERO(listener->listener);
}

struct krcore_listener *krc_listener_make(struct krcore_client *client,
					  const struct krcore_listen_conf *conf)
{
	struct krc_api_box *box = client->box;
	struct krcore_listener *listener = kzalloc(sizeof(*listener), GFP_KERNEL);
	int err = -ENOSPC;

	if (!listener)
		return ERR_PTR(-ENOMEM);
	kref_init(&listener->ref);
	listener->box = box;
	listener->backlog = conf->backlog;
	listener->offered = conf->offered;
	listener->arg = conf->arg;
	INIT_LIST_HEAD(&listener->offering);
	krc_inbox_init(&listener->offers, KRP_MESSAGE_UNITS_MAX, krc_listener_arrived);
	listener->offers.unlistened = krc_listener_unlistened;
	listener->offers.charge = &box->client->charge;
	if (!krc_listener_occupy(box, conf->backlog))
		goto err_listener;
	spin_lock(&box->lock);
	list_add_tail(&listener->list, &box->listeners);
	spin_unlock(&box->lock);
	err = krc_listener_begin(listener, conf->service);
	if (!err)
		return listener;
	spin_lock(&box->lock);
	list_del(&listener->list);
	spin_unlock(&box->lock);
	krc_listener_vacate(box, conf->backlog);
err_listener:
	krc_listener_drop(listener);
	return ERR_PTR(err);
}

/* Publish what a listener listens to: it never settles, so nobody claims it. */
static int krc_listener_publish(struct krcore_listener *listener, u32 timeout_ms)
{
	struct krc_service *service = listener->service;

	service->value = service->port->value;
	return krc_service_publish(service, &service->value, timeout_ms);
}

struct krcore_listener *krcore_listen(struct krcore_client *client,
				      const struct krcore_listen_conf *conf)
{
	struct krcore_listener *listener;
	struct krc_service *service;
	int err;

	might_sleep();
	if (conf->service < KRCORE_SERVICE_MIN || !conf->offered || !conf->backlog ||
	    conf->backlog > KRCORE_BACKLOG_MAX || !conf->timeout_ms ||
	    conf->timeout_ms > KRCORE_TIMEOUT_MS_MAX)
		return ERR_PTR(-EINVAL);
	if (!client->box)
		return ERR_PTR(-EBADFD);
	service = krc_service_begin(client->port, client, client->user, conf->service);
	if (IS_ERR(service))
		return ERR_CAST(service);
	listener = krc_listener_make(client, conf);
	if (IS_ERR(listener)) {
		krc_service_end(service);
		return listener;
	}
	listener->service = service;
	err = krc_listener_publish(listener, conf->timeout_ms);
	if (!err)
		return listener;
	krcore_listener_close(listener);
	return ERR_PTR(err);
}
EXPORT_SYMBOL_GPL(krcore_listen);

void krcore_listener_close(struct krcore_listener *listener)
{
	struct krc_api_box *box = listener->box;

	might_sleep();
	if (listener->service)
		krc_service_withdraw(listener->service);
	spin_lock(&box->lock);
	WARN_ON_ONCE(listener->closed); /* closed twice */
	listener->closed = true;
	list_del(&listener->list);
	list_del_init(&listener->offering);
	spin_unlock(&box->lock);
	krc_box_wait(box, listener);
	krc_unlisten(listener->listener);
	krc_inbox_end(&listener->offers); /* refuses them */
	if (listener->service)
		krc_service_end(listener->service);
	krc_listener_drop(listener);
}
EXPORT_SYMBOL_GPL(krcore_listener_close);

void krc_listener_tell(const struct krc_box_item *item)
{
	struct krcore_listener *listener = item->listener;
	struct krcore_offer offer = { .box = listener->box, .letter = item->letter };
	struct krcore_peer peer;

	krc_box_peer(offer.letter->stream, &peer);
	listener->offered(&offer, &peer, listener->arg);
	if (offer.letter)
		krc_letter_free(offer.letter); /* refuses it */
	krc_listener_drop(listener);
}
