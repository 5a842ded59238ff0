// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: mailboxes: making, filling, ending them.
 *
 * A program may have as many bytes in inboxes as its user's limit says (base/limits.h); what a
 * peer sends beyond that, one message for each connection, is bounded by the limit of queues, by
 * which connections count. What waits is charged to the memory cgroup of whoever made the inbox.
 * Locking: see user/mailbox.h.
 */
#include <linux/memcontrol.h>
#include <linux/slab.h>

#include "krp_message.h"
#include "message/open.h"
#include "node/port.h"
#include "user/mailbox.h"
#include "user/talk.h"
#include "user/wait.h"

static_assert(KRP_SEND_COPY_MAX == KRP_MESSAGE_DATA_MAX);
static_assert(KRP_SEND_LARGE_MAX == KRP_MESSAGE_LARGE_MAX);
static_assert(KRP_OPEN_FIRST_MAX == KRP_MESSAGE_FIRST_MAX);
static_assert(KRP_OPEN_USER_MAX == KRP_MESSAGE_USER_MAX);
static_assert(KRP_INBOX_BYTES_MIN == KRP_MESSAGE_PACKET_MAX);

struct krc_mailbox *krc_mailbox_of(struct krc_context *ctx)
{
	/* Pairs with krc_mailbox_make(). */
	return smp_load_acquire(&ctx->mailbox);
}

/* krc_inbox.arrived: letters are there. */
static void krc_mailbox_arrived(struct krc_inbox *inbox)
{
	krc_wait_wake(container_of(inbox, struct krc_mailbox, inbox)->ctx);
}

/* Places of the backlog are free again. */
static void krc_mailbox_vacate(struct krc_mailbox *box, u32 backlog)
{
	spin_lock(&box->lock);
	box->backlog -= backlog;
	spin_unlock(&box->lock);
}

/* krc_inbox.unlistened: of a listener that was ended the last offer is answered. */
static void krc_mailbox_unlistened(struct krc_inbox *inbox, u32 backlog)
{
	krc_mailbox_vacate(container_of(inbox, struct krc_mailbox, inbox), backlog);
}

static int krc_mailbox_make(struct krc_context *ctx, const struct krp_inbox *arg)
{
	struct krc_mailbox *box;
	int err;

	lockdep_assert_held(&ctx->lock);
	if (ctx->mailbox)
		return -EALREADY;
	box = kzalloc(sizeof(*box), GFP_KERNEL_ACCOUNT);
	if (!box)
		return -ENOMEM;
	box->ctx = ctx;
	box->pages = arg->bytes / KRP_INBOX_BYTES_MIN;
	box->depth = arg->depth;
	krc_inbox_init(&box->inbox, arg->bytes / KRP_MESSAGE_UNIT, krc_mailbox_arrived);
	box->inbox.unlistened = krc_mailbox_unlistened;
	box->inbox.memcg = get_mem_cgroup_from_mm(current->mm);
	box->inbox.charge = &ctx->charge;
	mutex_init(&box->take);
	xa_init_flags(&box->talks, XA_FLAGS_ALLOC1);
	spin_lock_init(&box->lock);
	INIT_LIST_HEAD(&box->news);
	krc_posted_init(box);
	err = krc_charge_inbox(ctx->user, box->pages);
	if (err)
		goto err_box;
	err = krc_ring_set_aside(&ctx->ring, box->depth);
	if (err)
		goto err_charge;
	/* Pairs with krc_mailbox_of(). */
	smp_store_release(&ctx->mailbox, box);
	return 0;

err_charge:
	krc_uncharge_inbox(ctx->user, box->pages);
err_box:
	mem_cgroup_put(box->inbox.memcg);
	mutex_destroy(&box->take);
	kfree(box);
	return err;
}

int krc_ioc_inbox(struct krc_context *ctx, struct krp_inbox *arg)
{
	int err;

	if (!krc_context_port(ctx))
		return -EBADFD;
	if (arg->bytes < KRP_INBOX_BYTES_MIN || arg->bytes > KRP_INBOX_BYTES_MAX ||
	    arg->bytes % KRP_INBOX_BYTES_MIN || !arg->depth || arg->depth > KRP_INBOX_DEPTH_MAX ||
	    arg->flags || arg->rsvd)
		return -EINVAL;
	err = krc_port_messages_possible(ctx->port);
	if (err)
		return err;
	mutex_lock(&ctx->lock);
	err = krc_mailbox_make(ctx, arg);
	mutex_unlock(&ctx->lock);
	return err;
}

bool krc_mailbox_pending(struct krc_mailbox *box)
{
	return box && (READ_ONCE(box->inbox.nr) || !list_empty_careful(&box->news));
}

bool krc_mailbox_begin(struct krc_mailbox *box, u32 nr)
{
	bool room;

	spin_lock(&box->lock);
	room = nr <= box->depth - box->busy;
	box->busy += room ? nr : 0;
	spin_unlock(&box->lock);
	return room;
}

void krc_mailbox_unbegin(struct krc_mailbox *box, u32 nr)
{
	spin_lock(&box->lock);
	box->busy -= nr;
	spin_unlock(&box->lock);
}

int krc_mailbox_reserve(struct krc_mailbox *box, u32 nr)
{
	struct krc_context *ctx = box->ctx;
	u32 entries = krc_ring_reserve(&ctx->ring, nr), charged = 0;
	int err = -EAGAIN;

	if (entries == nr) {
		charged = krc_charge_requests(ctx->user, nr);
		err = charged == nr ? 0 : -EDQUOT;
	}
	if (err) {
		krc_uncharge_requests(ctx->user, charged);
		krc_ring_unreserve(&ctx->ring, entries);
	}
	return err;
}

void krc_mailbox_unreserve(struct krc_mailbox *box, u32 nr)
{
	krc_uncharge_requests(box->ctx->user, nr);
	krc_ring_unreserve(&box->ctx->ring, nr);
}

void krc_mailbox_complete(struct krc_mailbox *box, const struct krp_cqe *cqe)
{
	struct krc_context *ctx = box->ctx;

	krc_uncharge_requests(ctx->user, 1);
	local_bh_disable();
	krc_ring_begin(&ctx->ring);
	*krc_ring_entry(&ctx->ring, 0) = *cqe;
	krc_ring_end(&ctx->ring, 1);
	local_bh_enable();
	krc_wait_wake(ctx);
}

struct krc_listener *krc_mailbox_listen(struct krc_context *ctx, u16 service, u32 backlog)
{
	struct krc_mailbox *box = krc_mailbox_of(ctx);
	struct krc_listener *listener;
	bool room;

	if (!box)
		return ERR_PTR(-EBADFD);
	spin_lock(&box->lock);
	room = backlog <= box->pages - box->backlog;
	if (room)
		box->backlog += backlog;
	spin_unlock(&box->lock);
	if (!room)
		return ERR_PTR(-ENOSPC);
	listener = krc_listen(ctx->port->messages, service, backlog, &box->inbox, box);
	if (IS_ERR(listener))
		krc_mailbox_vacate(box, backlog);
	return listener;
}

void krc_mailbox_unlisten(struct krc_listener *listener)
{
	if (listener)
		krc_unlisten(listener);
}

void krc_mailbox_end(struct krc_context *ctx)
{
	struct krc_mailbox *box = krc_mailbox_of(ctx);

	if (!box)
		return;
	/* before the connections, so that nothing more goes there */
	krc_posted_end(ctx, -ECANCELED);
	krc_talk_end_all(box);
	krc_inbox_end(&box->inbox);
}

void krc_mailbox_free(struct krc_context *ctx)
{
	struct krc_mailbox *box = ctx->mailbox;

	if (!box)
		return;
	WARN_ON(!xa_empty(&box->talks) || !list_empty(&box->news) || box->busy || box->backlog ||
		box->posted.nr);
	krc_uncharge_inbox(ctx->user, box->pages);
	xa_destroy(&box->talks);
	mem_cgroup_put(box->inbox.memcg);
	mutex_destroy(&box->take);
	kfree(box);
}
