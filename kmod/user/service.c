// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the services that programs bind (the port's DC target) and publish (their bytes).
 * Locking: see peer/service.h.
 */
#include <linux/capability.h>
#include <linux/err.h>
#include <linux/math64.h>
#include <linux/sched.h>
#include <linux/user_namespace.h>

#include "node/port.h"
#include "peer/service.h"
#include "user/context.h"
#include "user/mailbox.h"
#include "user/service.h"

/* End a service of a context, which is not settled. */
static void krc_unserve(struct krc_service *service)
{
	krc_service_withdraw(service);
	krc_mailbox_unlisten(service->listener);
	krc_service_end(service);
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

/* Take connections to a service, before it is published. */
static int krc_service_listen(struct krc_context *ctx, struct krc_service *service, u32 backlog)
{
	struct krc_listener *listener;

	if (!krc_port_enter(ctx->port))
		return -ENODEV;
	listener = krc_mailbox_listen(ctx, service->service, backlog);
	krc_port_exit(ctx->port);
	if (IS_ERR(listener))
		return PTR_ERR(listener);
	service->listener = listener;
	return 0;
}

static int krc_bind(struct krc_context *ctx, u16 number, const struct krp_value *value, u32 backlog,
		    u32 timeout_ms)
{
	struct krc_service *service = krc_service_begin(ctx->port, ctx, ctx->user, number);
	int err;

	if (IS_ERR(service))
		return PTR_ERR(service);
	service->value = *value;
	err = backlog ? krc_service_listen(ctx, service, backlog) : 0;
	if (!err)
		err = krc_service_turn(ctx, &timeout_ms);
	if (!err)
		err = krc_service_publish(service, value, timeout_ms);
	if (err)
		krc_unserve(service);
	else
		krc_service_settle(service);
	return err;
}

static int krc_unbind(struct krc_context *ctx, u16 number)
{
	struct krc_service *service = krc_service_claim(ctx->port, ctx, number, 0);

	if (IS_ERR(service)) /* that of another one is none of this program */
		return PTR_ERR(service) == -EADDRINUSE ? -ENOENT : PTR_ERR(service);
	krc_unserve(service);
	return 0;
}

int krc_ioc_bind(struct krc_context *ctx, struct krp_bind *arg)
{
	if (!krc_context_port(ctx))
		return -EBADFD;
	if (arg->service < KRP_SERVICE_USER_MIN || arg->rsvd || arg->flags > KRP_BIND_LISTEN ||
	    arg->backlog > KRP_BACKLOG_MAX || !arg->backlog != (arg->flags != KRP_BIND_LISTEN) ||
	    arg->timeout_ms > KRP_CONNECT_TIMEOUT_MS_MAX)
		return -EINVAL;
	if (arg->flags & KRP_BIND_UNDO)
		return krc_unbind(ctx, arg->service);
	if (!arg->timeout_ms)
		return -EINVAL;
	return krc_bind(ctx, arg->service, &ctx->port->value, arg->backlog, arg->timeout_ms);
}

static int krc_service_replace(struct krc_context *ctx, struct krc_service *service,
			       const struct krp_value *value, u32 timeout_ms)
{
	int turn = krc_service_turn(ctx, &timeout_ms);
	int err = turn ?: krc_service_publish(service, value, timeout_ms);

	if (!err)
		service->value = *value;
	else if (!turn)
		krc_service_republish(service);
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
	service = krc_service_claim(ctx->port, ctx, arg->service, KRP_KIND_RAW);
	if (!IS_ERR(service))
		return krc_service_replace(ctx, service, &value, arg->timeout_ms);
	if (PTR_ERR(service) != -ENOENT)
		return PTR_ERR(service);
	return krc_bind(ctx, arg->service, &value, 0, arg->timeout_ms);
}

void krc_bind_undo_all(struct krc_context *ctx)
{
	struct krc_service *service;

	while ((service = krc_service_claim_any(ctx)))
		krc_unserve(service);
}
