// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: which context of the node owns which service, and its publication.
 * Locking: krc_services_lock (mutex) for the list; not held while a MetaServer is waited
 * for. A service is in the list from before it is published until after it is withdrawn.
 */
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/slab.h>

#include "krc_node.h"
#include "krc_queue.h"

/* A service that is bound. @settled: its publication has come to an end, so may be undone. */
struct krc_service {
	struct list_head list;
	struct krc_context *ctx;
	struct krc_charge charge;
	u16 service;
	bool settled;
};

static LIST_HEAD(krc_services);
static DEFINE_MUTEX(krc_services_lock);

/* The GIDs of two ports differ, so the same number on both is two services. */
static struct krc_service *krc_service_find(const struct krc_port *port, u16 service)
{
	struct krc_service *at;

	lockdep_assert_held(&krc_services_lock);
	list_for_each_entry(at, &krc_services, list)
		if (at->ctx->port == port && at->service == service)
			return at;
	return NULL;
}

static void krc_service_end(struct krc_service *service)
{
	struct krc_port *port = service->ctx->port;

	lockdep_assert_held(&krc_services_lock);
	list_del(&service->list);
	if (krc_port_enter(port)) {
		krc_meta_withdraw(port->meta, service->service);
		krc_port_exit(port);
	}
	krc_uncharge(&service->charge);
	kfree(service);
}

static struct krc_service *krc_service_begin(struct krc_context *ctx, u16 number)
{
	struct krc_service *service = kzalloc(sizeof(*service), GFP_KERNEL_ACCOUNT);
	int err;

	if (!service)
		return ERR_PTR(-ENOMEM);
	err = krc_charge(ctx->user, KRC_RES_SERVICE, &service->charge);
	if (err) {
		kfree(service);
		return ERR_PTR(err);
	}
	service->ctx = ctx;
	service->service = number;
	mutex_lock(&krc_services_lock);
	if (krc_service_find(ctx->port, number)) {
		krc_uncharge(&service->charge);
		kfree(service);
		service = ERR_PTR(-EADDRINUSE);
	} else {
		list_add_tail(&service->list, &krc_services);
	}
	mutex_unlock(&krc_services_lock);
	return service;
}

static int krc_bind(struct krc_context *ctx, u16 number, u32 timeout_ms)
{
	struct krc_service *service = krc_service_begin(ctx, number);
	struct krc_port *port = ctx->port;
	int err = -ENODEV;

	if (IS_ERR(service))
		return PTR_ERR(service);
	if (krc_port_enter(port)) {
		err = krc_meta_publish(port->meta, number, &port->value);
		if (!err)
			err = krc_meta_published(port->meta, number, timeout_ms);
		krc_port_exit(port);
	}
	mutex_lock(&krc_services_lock);
	if (err)
		krc_service_end(service);
	else
		service->settled = true;
	mutex_unlock(&krc_services_lock);
	return err;
}

static int krc_unbind(struct krc_context *ctx, u16 number)
{
	struct krc_service *service;
	int err = 0;

	mutex_lock(&krc_services_lock);
	service = krc_service_find(ctx->port, number);
	if (!service || service->ctx != ctx)
		err = -ENOENT;
	else if (!service->settled)
		err = -EBUSY; /* another thread is binding it */
	else
		krc_service_end(service);
	mutex_unlock(&krc_services_lock);
	return err;
}

int krc_ioc_bind(struct krc_context *ctx, struct krp_bind *arg)
{
	if (!krc_context_port(ctx))
		return -EBADFD;
	if (arg->service < KRP_SERVICE_USER_MIN || arg->flags & ~KRP_BIND_UNDO || arg->rsvd ||
	    arg->timeout_ms > KRP_CONNECT_TIMEOUT_MS_MAX)
		return -EINVAL;
	if (arg->flags & KRP_BIND_UNDO)
		return krc_unbind(ctx, arg->service);
	if (!arg->timeout_ms)
		return -EINVAL;
	return krc_bind(ctx, arg->service, arg->timeout_ms);
}

void krc_bind_undo_all(struct krc_context *ctx)
{
	struct krc_service *service, *tmp;

	mutex_lock(&krc_services_lock);
	list_for_each_entry_safe(service, tmp, &krc_services, list)
		if (service->ctx == ctx)
			krc_service_end(service);
	mutex_unlock(&krc_services_lock);
}
