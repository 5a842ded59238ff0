// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the table of the node's services; see peer/service.h.
 * Locking: krc_services_lock (spinlock) for the table. No task charges, withdraws or waits under
 * it: one that then gets no processor would stop the services of all users.
 */
#include <linux/err.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "meta/record.h"
#include "node/port.h"
#include "peer/service.h"

static LIST_HEAD(krc_services);
static u32 krc_services_nr;
static DEFINE_SPINLOCK(krc_services_lock);

/* A service belongs to one port: the same number on two ports is two services, by their GIDs. */
static struct krc_service *krc_service_find(const struct krc_port *port, u16 service)
{
	struct krc_service *at;

	lockdep_assert_held(&krc_services_lock);
	list_for_each_entry(at, &krc_services, list)
		if (at->port == port && at->service == service)
			return at;
	return NULL;
}

/* Take a service that is not settled from the list and free it. */
static void krc_service_unlist(struct krc_service *service)
{
	spin_lock(&krc_services_lock);
	list_del(&service->list);
	krc_services_nr--;
	spin_unlock(&krc_services_lock);
	kfree(service);
}

/* List a service. Return: 0, with *@ret_others that were listed before; -EADDRINUSE. */
static int krc_service_enlist(struct krc_service *service, u32 *ret_others)
{
	int err = -EADDRINUSE;

	spin_lock(&krc_services_lock);
	if (!krc_service_find(service->port, service->service)) {
		*ret_others = krc_services_nr++;
		list_add_tail(&service->list, &krc_services);
		err = 0;
	}
	spin_unlock(&krc_services_lock);
	return err;
}

struct krc_service *krc_service_begin(struct krc_port *port, const void *owner,
				      struct krc_user *user, u16 number)
{
	struct krc_service *service = kzalloc(sizeof(*service), GFP_KERNEL_ACCOUNT);
	u32 others;
	int err;

	if (!service)
		return ERR_PTR(-ENOMEM);
	service->owner = owner;
	service->port = port;
	service->service = number;
	err = krc_service_enlist(service, &others);
	if (err) {
		kfree(service);
		return ERR_PTR(err);
	}
	err = krc_charge_share(user, KRC_RES_SERVICE, KRC_SERVICES_MAX, others, &service->charge);
	if (!err)
		return service;
	krc_service_unlist(service);
	return ERR_PTR(err);
}

int krc_service_publish(const struct krc_service *service, const struct krp_value *value,
			u32 timeout_ms)
{
	struct krc_port *port = service->port;
	int err;

	if (!krc_port_enter(port))
		return -ENODEV;
	err = krc_meta_publish(port->meta, service->service, value);
	if (!err)
		err = krc_meta_published(port->meta, service->service, timeout_ms);
	krc_port_exit(port);
	return err;
}

void krc_service_republish(const struct krc_service *service)
{
	struct krc_port *port = service->port;

	if (krc_port_enter(port)) {
		krc_meta_publish(port->meta, service->service, &service->value);
		krc_port_exit(port);
	}
}

void krc_service_settle(struct krc_service *service)
{
	spin_lock(&krc_services_lock);
	service->settled = true;
	spin_unlock(&krc_services_lock);
}

struct krc_service *krc_service_claim(const struct krc_port *port, const void *owner, u16 number,
				      u8 kind)
{
	struct krc_service *service;

	spin_lock(&krc_services_lock);
	service = krc_service_find(port, number);
	if (!service)
		service = ERR_PTR(-ENOENT);
	else if (service->owner != owner || (kind && service->value.kind != kind))
		service = ERR_PTR(-EADDRINUSE);
	else if (!service->settled)
		service = ERR_PTR(-EBUSY); /* another thread is at it */
	else
		service->settled = false;
	spin_unlock(&krc_services_lock);
	return service;
}

struct krc_service *krc_service_claim_any(const void *owner)
{
	struct krc_service *at, *found = NULL;

	spin_lock(&krc_services_lock);
	list_for_each_entry(at, &krc_services, list) {
		if (at->owner != owner)
			continue;
		found = at;
		found->settled = false;
		break;
	}
	spin_unlock(&krc_services_lock);
	return found;
}

void krc_service_withdraw(const struct krc_service *service)
{
	struct krc_port *port = service->port;

	if (krc_port_enter(port)) {
		krc_meta_withdraw(port->meta, service->service);
		krc_port_exit(port);
	}
}

void krc_service_end(struct krc_service *service)
{
	krc_uncharge(&service->charge);
	krc_service_unlist(service);
}
