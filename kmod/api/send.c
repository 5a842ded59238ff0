// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: what is under way on connections of clients in the kernel: messages that they send, copied or
 * announced, and READs of those that their peers have announced.
 *
 * A READ is under way like a message: it counts in the depth of its connection, is charged as a request,
 * and its done() comes in its turn. A region is counted as long as the hardware, of either end, may use it;
 * so what a closed connection leaves behind is waited for when its region is closed.
 * Locking: see api/box_priv.h.
 */
#include <linux/err.h>
#include <linux/export.h>
#include <linux/slab.h>

#include "api/box_priv.h"
#include "krp_ioctl.h"
#include "message/connect.h"

static_assert(KRCORE_FIRST_MAX == KRP_MESSAGE_FIRST_MAX);
static_assert(KRCORE_LARGE_MAX == KRP_MESSAGE_LARGE_MAX);
static_assert(!offsetof(struct krc_api_fetch, send)); /* krc_send_free() */

void krc_send_free(struct krc_api_send *send)
{
	if (send->mr)
		krc_mr_put(send->mr, 1);
	krc_out_free(send->out);
	kfree(send);
}

void krc_send_drop(struct krc_api_send *send)
{
	krc_uncharge_requests(send->conn->charge.user, 1);
	krc_conn_put(send->conn);
	krc_send_free(send);
}

/* It is not under way any more. */
static void krc_send_over(struct krc_api_send *send, int err)
{
	struct krcore_conn *conn = send->conn;
	struct krc_api_box *box = conn->box;
	bool orphan;

	if (send->mr) /* before the client is told that it may close the region */
		krc_mr_put(send->mr, 1);
	send->mr = NULL;
	spin_lock(&box->lock);
	orphan = send->orphan;
	send->ended = true;
	send->err = err;
	if (!conn->closed) {
		list_add_tail(&send->sent, &box->sent);
		krc_box_kick(box);
	}
	spin_unlock(&box->lock);
	if (orphan)
		krc_send_drop(send);
}

/* krc_out.end: a message is not under way any more. */
static void krc_send_ended(struct krc_out *out, int err)
{
	krc_send_over(out->owner, err);
}

/* A region that a message or READ uses. Return: it, counted; or ERR_PTR. */
static struct krc_mr *krc_send_mr(struct krcore_client *client, struct krcore_region *region,
				  u64 offset, u32 length, bool write)
{
	int err;

	if (!region || region->client != client)
		return ERR_PTR(-EINVAL);
	err = krc_mr_check(region->mr, offset, length, write);
	if (err)
		return ERR_PTR(err);
	krc_mr_get(region->mr, 1);
	return region->mr;
}

/* Copy a message. Return: it, or ERR_PTR. */
static struct krc_out *krc_send_copy(const struct krcore_send *from)
{
	struct krc_out *out;

	if (from->offset || (from->length && !from->bytes))
		return ERR_PTR(-EINVAL);
	if (from->length > KRCORE_MESSAGE_MAX)
		return ERR_PTR(-EMSGSIZE);
	out = krc_out_alloc(from->length, GFP_KERNEL);
	if (!out)
		return ERR_PTR(-ENOMEM);
	if (from->length)
		memcpy(out->bytes, from->bytes, from->length);
	return out;
}

/* Make a message that is announced. Return: it, with *@ret_mr counted; or ERR_PTR. */
static struct krc_out *krc_send_announce(struct krcore_client *client,
					 const struct krcore_send *from, struct krc_mr **ret_mr)
{
	struct krc_out *out;
	struct krc_mr *mr;

	if (from->bytes)
		return ERR_PTR(-EINVAL);
	if (!from->length || from->length > KRCORE_LARGE_MAX)
		return ERR_PTR(-EMSGSIZE);
	mr = krc_send_mr(client, from->region, from->offset, from->length, false);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	out = ERR_PTR(-EACCES);
	if (mr->access & KRP_ACCESS_MESSAGE)
		out = krc_out_alloc(0, GFP_KERNEL) ?: ERR_PTR(-ENOMEM);
	if (IS_ERR(out)) {
		krc_mr_put(mr, 1);
		return out;
	}
	out->large = true;
	out->length = from->length;
	out->addr = mr->addr + from->offset;
	out->rkey = mr->key.rkey;
	*ret_mr = mr;
	return out;
}

/* Set up what messages and READs have in common. */
static void krc_send_init(struct krc_api_send *send,
			  void (*done)(struct krcore_conn *conn, void *arg, int status), void *arg)
{
	INIT_LIST_HEAD(&send->list);
	INIT_LIST_HEAD(&send->sent);
	send->done = done;
	send->arg = arg;
}

struct krc_api_send *krc_send_make(struct krcore_client *client, const struct krcore_send *from)
{
	struct krc_api_send *send;
	struct krc_out *out;

	if (!from->done)
		return ERR_PTR(-EINVAL);
	send = kzalloc(sizeof(*send), GFP_KERNEL);
	if (!send)
		return ERR_PTR(-ENOMEM);
	out = from->region ? krc_send_announce(client, from, &send->mr) : krc_send_copy(from);
	if (IS_ERR(out)) {
		kfree(send);
		return ERR_CAST(out);
	}
	out->imm = from->imm;
	out->hurry = from->hurry;
	out->owner = send;
	out->end = krc_send_ended;
	send->out = out;
	krc_send_init(send, from->done, from->arg);
	return send;
}

int krc_send_join(struct krc_api_send *send, struct krcore_conn *conn)
{
	int err = 0;

	if (!krc_charge_requests(conn->charge.user, 1))
		return -EDQUOT;
	spin_lock(&conn->box->lock);
	if (conn->closed) {
		err = -ESHUTDOWN;
	} else if (conn->busy == conn->depth) {
		err = -EAGAIN;
	} else {
		list_add_tail(&send->list, &conn->sends);
		conn->busy++;
		kref_get(&conn->ref);
		send->conn = conn;
	}
	spin_unlock(&conn->box->lock);
	if (err)
		krc_uncharge_requests(conn->charge.user, 1);
	return err;
}

void krc_send_unjoin(struct krc_api_send *send)
{
	struct krcore_conn *conn = send->conn;

	spin_lock(&conn->box->lock);
	list_del(&send->list);
	conn->busy--;
	spin_unlock(&conn->box->lock);
	krc_conn_settle(conn, conn->stream);
	krc_send_drop(send);
}

int krcore_send(struct krcore_conn *conn, const struct krcore_send *from)
{
	struct krc_api_send *send;
	int err;

	might_sleep();
	send = krc_send_make(conn->box->client, from);
	if (IS_ERR(send))
		return PTR_ERR(send);
	err = krc_send_join(send, conn);
	if (err) {
		krc_send_free(send);
		return err;
	}
	err = krc_stream_send(conn->stream, send->out);
	if (err)
		krc_send_unjoin(send);
	return err;
}
EXPORT_SYMBOL_GPL(krcore_send);

/* ---- messages that peers have announced */

/* krc_large.end: a READ is not under way any more. */
static void krc_fetch_ended(struct krc_large *large, int err)
{
	krc_send_over(&container_of(large, struct krc_api_fetch, large)->send, err);
}

/* Make a READ. Return: it, without its connection; or ERR_PTR. */
static struct krc_api_fetch *krc_fetch_make(struct krcore_client *client,
					    const struct krc_letter *letter,
					    const struct krcore_fetch *from)
{
	struct krc_api_fetch *fetch;
	struct krc_mr *mr;

	if (!from->done || !from->length || letter->kind != KRC_LETTER_LARGE)
		return ERR_PTR(-EINVAL);
	mr = krc_send_mr(client, from->region, from->offset, from->length, true);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	fetch = kzalloc(sizeof(*fetch), GFP_KERNEL);
	if (!fetch) {
		krc_mr_put(mr, 1);
		return ERR_PTR(-ENOMEM);
	}
	krc_send_init(&fetch->send, from->done, from->arg);
	fetch->send.mr = mr;
	fetch->large.seq = letter->seq;
	fetch->large.offset = from->from;
	fetch->large.length = from->length;
	fetch->large.local_addr = mr->addr + from->offset;
	fetch->large.lkey = mr->key.lkey;
	fetch->large.keep = from->keep;
	fetch->large.end = krc_fetch_ended;
	return fetch;
}

int krcore_fetch(struct krcore_letter *from, const struct krcore_fetch *how)
{
	struct krc_letter *letter = (struct krc_letter *)from;
	struct krcore_conn *conn = krc_stream_owner(letter->stream);
	struct krc_api_fetch *fetch;
	int err;

	might_sleep();
	fetch = krc_fetch_make(conn->box->client, letter, how);
	if (IS_ERR(fetch))
		return PTR_ERR(fetch);
	err = krc_send_join(&fetch->send, conn);
	if (err) {
		krc_send_free(&fetch->send);
		return err;
	}
	err = krc_stream_fetch(letter->stream, &fetch->large);
	if (err)
		krc_send_unjoin(&fetch->send);
	return err;
}
EXPORT_SYMBOL_GPL(krcore_fetch);

void krc_fetch_forget(struct krcore_conn *conn, const struct krc_letter *letter)
{
	struct krc_api_send *send;

	if (letter->kind != KRC_LETTER_LARGE)
		return;
	spin_lock(&conn->box->lock);
	list_for_each_entry(send, &conn->sends, list) {
		struct krc_large *large = &container_of(send, struct krc_api_fetch, send)->large;

		if (!send->out && large->seq == letter->seq)
			WRITE_ONCE(large->keep, false);
	}
	spin_unlock(&conn->box->lock);
	/* a READ that is still under way ends the message; one that was over before has left it */
	krc_stream_discard(letter->stream, letter->seq);
}
