// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: which context of the node owns which service, and the record published for it: the
 * port's DC target (bound), or bytes of the program (published).
 * Locking: krc_services_lock (spinlock) for the list. No task charges, withdraws or waits under
 * it: one that then gets no processor would stop the services of all users. A service is in the
 * list from before it is charged until after its record is withdrawn; while it is not settled, it
 * is of the one call that is at it.
 */
#include <linux/capability.h>
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/user_namespace.h>

#include "node/port.h"
#include "user/context.h"
#include "user/service_priv.h"

static LIST_HEAD(krc_services);
static u32 krc_services_nr;
static DEFINE_SPINLOCK(krc_services_lock);

/* A service belongs to one port: the same number on two ports is two services, by their GIDs. */
static struct krc_service *krc_service_find(const struct krc_port *port, u16 service)
{
	struct krc_service *at;

	lockdep_assert_held(&krc_services_lock);
	list_for_each_entry(at, &krc_services, list)
		if (at->ctx->port == port && at->service == service)
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

/* End a service that is not settled. */
static void krc_service_end(struct krc_service *service)
{
	struct krc_port *port = service->ctx->port;

	if (krc_port_enter(port)) {
		krc_meta_withdraw(port->meta, service->service);
		krc_port_exit(port);
	}
	krc_uncharge(&service->charge);
	krc_service_unlist(service);
}

/* List a service. Return: 0, with *@ret_others that were listed before; -EADDRINUSE. */
static int krc_service_enlist(struct krc_service *service, u32 *ret_others)
{
	int err = -EADDRINUSE;

	spin_lock(&krc_services_lock);
	if (!krc_service_find(service->ctx->port, service->service)) {
		*ret_others = krc_services_nr++;
		list_add_tail(&service->list, &krc_services);
		err = 0;
	}
	spin_unlock(&krc_services_lock);
	return err;
}

static void krc_service_settle(struct krc_service *service)
{
	spin_lock(&krc_services_lock);
	service->settled = true;
	spin_unlock(&krc_services_lock);
}

struct krc_service *krc_service_begin(struct krc_context *ctx, u16 number)
{
	struct krc_service *service = kzalloc(sizeof(*service), GFP_KERNEL_ACCOUNT);
	u32 others;
	int err;

	if (!service)
		return ERR_PTR(-ENOMEM);
	service->ctx = ctx;
	service->service = number;
	err = krc_service_enlist(service, &others);
	if (err) {
		kfree(service);
		return ERR_PTR(err);
	}
	err = krc_charge_share(ctx->user, KRC_RES_SERVICE, KRC_SERVICES_MAX, others,
			       &service->charge);
	if (!err)
		return service;
	krc_service_unlist(service);
	return ERR_PTR(err);
}

/*
 * Wait until the user may publish once more, and take that off the time of the call. Return: 0,
 * -EBUSY (it would take longer than that), -EINTR: not -ERESTARTSYS, because a call that is
 * begun anew has its whole time again, and a program with a timer would never come to an end.
 */
static int krc_service_turn(const struct krc_context *ctx, u32 *timeout_ms)
{
	s64 wait;

	if (ns_capable_noaudit(&init_user_ns, CAP_SYS_RESOURCE))
		return 0;
	wait = krc_publish_turn(&ctx->charge, ktime_get_ns(), (u64)*timeout_ms * NSEC_PER_MSEC);
	if (wait <= 0)
		return wait;
	if (schedule_timeout_interruptible(nsecs_to_jiffies(wait) + 1)) {
		krc_publish_unturn(&ctx->charge);
		return -EINTR;
	}
	*timeout_ms -= min_t(u64, div_u64(wait, NSEC_PER_MSEC), *timeout_ms - 1);
	return 0;
}

/* Publish a value and wait until one server has it. */
static int krc_service_publish(const struct krc_service *service, const struct krp_value *value,
			       u32 timeout_ms)
{
	struct krc_port *port = service->ctx->port;
	int err;

	if (!krc_port_enter(port))
		return -ENODEV;
	err = krc_meta_publish(port->meta, service->service, value);
	if (!err)
		err = krc_meta_published(port->meta, service->service, timeout_ms);
	krc_port_exit(port);
	return err;
}

static int krc_bind(struct krc_context *ctx, u16 number, const struct krp_value *value,
		    u32 timeout_ms)
{
	struct krc_service *service = krc_service_begin(ctx, number);
	int err;

	if (IS_ERR(service))
		return PTR_ERR(service);
	service->value = *value;
	err = krc_service_turn(ctx, &timeout_ms);
	if (!err)
		err = krc_service_publish(service, value, timeout_ms);
	if (err)
		krc_service_end(service);
	else
		krc_service_settle(service);
	return err;
}

static int krc_unbind(struct krc_context *ctx, u16 number)
{
	struct krc_service *service;
	int err = 0;

	spin_lock(&krc_services_lock);
	service = krc_service_find(ctx->port, number);
	if (!service || service->ctx != ctx)
		err = -ENOENT;
	else if (!service->settled)
		err = -EBUSY; /* another thread is at it */
	else
		service->settled = false;
	spin_unlock(&krc_services_lock);
	if (!err)
		krc_service_end(service);
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
	return krc_bind(ctx, arg->service, &ctx->port->value, arg->timeout_ms);
}

/*
 * Claim a published service of this context, to replace its bytes: @settled becomes false.
 * Return: it; NULL: there is none yet; ERR_PTR(-EADDRINUSE) (of another context, or bound);
 * ERR_PTR(-EBUSY).
 */
static struct krc_service *krc_service_reopen(struct krc_context *ctx, u16 number)
{
	struct krc_service *service;

	spin_lock(&krc_services_lock);
	service = krc_service_find(ctx->port, number);
	if (service && (service->ctx != ctx || service->value.kind != KRP_KIND_RAW))
		service = ERR_PTR(-EADDRINUSE);
	else if (service && !service->settled)
		service = ERR_PTR(-EBUSY); /* another thread is publishing it */
	else if (service)
		service->settled = false;
	spin_unlock(&krc_services_lock);
	return service;
}

static int krc_service_replace(struct krc_service *service, const struct krp_value *value,
			       u32 timeout_ms)
{
	struct krc_port *port = service->ctx->port;
	int turn = krc_service_turn(service->ctx, &timeout_ms);
	int err = turn ?: krc_service_publish(service, value, timeout_ms);

	if (!err) {
		service->value = *value;
	} else if (!turn && krc_port_enter(port)) {
		krc_meta_publish(port->meta, service->service, &service->value);
		krc_port_exit(port);
	}
	krc_service_settle(service);
	return err;
}

int krc_ioc_publish(struct krc_context *ctx, struct krp_record_publish *arg)
{
	struct krp_value value = { .kind = KRP_KIND_RAW, .len = arg->raw_len };
	struct krc_service *service;

	if (!krc_context_port(ctx))
		return -EBADFD;
	if (arg->service < KRP_SERVICE_USER_MIN || arg->flags || arg->rsvd || !arg->timeout_ms ||
	    arg->timeout_ms > KRP_CONNECT_TIMEOUT_MS_MAX || arg->raw_len > KRP_RAW_BYTES ||
	    !krp_is_zero(arg->raw + arg->raw_len, KRP_RAW_BYTES - arg->raw_len))
		return -EINVAL;
	memcpy(value.raw, arg->raw, sizeof(value.raw));
	service = krc_service_reopen(ctx, arg->service);
	if (IS_ERR(service))
		return PTR_ERR(service);
	if (service)
		return krc_service_replace(service, &value, arg->timeout_ms);
	return krc_bind(ctx, arg->service, &value, arg->timeout_ms);
}

/* Any service of a context, not settled from now on, or NULL. */
static struct krc_service *krc_service_of(const struct krc_context *ctx)
{
	struct krc_service *at, *found = NULL;

	spin_lock(&krc_services_lock);
	list_for_each_entry(at, &krc_services, list) {
		if (at->ctx != ctx)
			continue;
		found = at;
		found->settled = false;
		break;
	}
	spin_unlock(&krc_services_lock);
	return found;
}

void krc_bind_undo_all(struct krc_context *ctx)
{
	struct krc_service *service;

	while ((service = krc_service_of(ctx)))
		krc_service_end(service);
}
