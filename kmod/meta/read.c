// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the READs of a connection to a MetaServer: their slots, and who waits for one.
 *
 * A READ has a slot from the doorbell to the completion, not longer: that copies the bytes to the
 * task that waits for them, and posts the next READ that waits for a slot, by payers in turn
 * (base/turns.h). So a task that does not run holds none, and one that is killed or times out just
 * looks at its READ no more. Taking the connection down ends every wait.
 * Locking: see meta/meta_priv.h. Callers hold a reference to the connection.
 */
#include "base/spin.h"
#include "meta/meta_priv.h"

/**
 * struct krc_meta_fetch - A READ and who waits for it; on its stack. Locks: krc_meta_slots.lock.
 * @place: its place in krc_meta_slots.line; given with the slot.
 * @what: what to READ, at most a slot's buffer.
 * @into: out: what.bytes bytes.
 * @slot: where it is posted; NULL: it waits in the line, or is over.
 * @since: jiffies: since then it is posted and looked for.
 * @counted: waits in the line: it is in krc_meta_cq.unpolled.
 * @done: completed with @err, when nobody else uses this any more.
 * @err: outcome: 0 or -ENOTCONN.
 */
struct krc_meta_fetch {
	struct krc_line_waiter place;
	struct krp_read what;
	void *into;
	struct krc_meta_read *slot;
	unsigned long since;
	bool counted;
	struct completion done;
	int err;
};

/* It has no slot any more, or will have none. Locks: slots.lock. */
static void krc_meta_fetch_end(struct krc_meta_fetch *f, int err)
{
	f->slot = NULL;
	f->err = err;
	complete(&f->done); /* on the stack of a task that may return right after */
}

/* A slot is the device's no more: give what came to its task, if one waits. Locks: slots.lock. */
static void krc_meta_read_over(struct krc_meta_read *r, int err)
{
	struct krc_meta_fetch *f = r->fetch;

	lockdep_assert_held(&r->conn->slots.lock);
	if (r->blocked)
		krc_meta_cq_expected(&r->conn->send_cq);
	r->posted = false;
	r->blocked = false;
	r->fetch = NULL;
	if (!f)
		return;
	if (!err) {
		ib_dma_sync_single_for_cpu(r->conn->s->meta->ibdev, r->dma, f->what.bytes,
					   DMA_FROM_DEVICE);
		memcpy(f->into, r->data, f->what.bytes);
	}
	krc_meta_fetch_end(f, err);
}

/*
 * Post a READ in a free slot. Under slots.lock the queue pair exists as long as the connection is
 * not broken. Locks: slots.lock. Return: 0; an errno of the device: it is over, as is all else.
 */
static int krc_meta_read_post(struct krc_meta_read *r, struct krc_meta_fetch *f)
{
	struct krc_meta_conn *conn = r->conn;
	struct ib_sge sge = {
		.addr = r->dma,
		.length = f->what.bytes,
		.lkey = conn->pd->local_dma_lkey,
	};
	struct ib_rdma_wr wr = {
		.wr = { .wr_cqe = &r->cqe,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IB_WR_RDMA_READ,
			.send_flags = IB_SEND_SIGNALED },
		.remote_addr = f->what.addr,
		.rkey = f->what.rkey,
	};
	int err;

	lockdep_assert_held(&conn->slots.lock);
	r->posted = true;
	r->blocked = f->counted;
	r->fetch = f;
	f->slot = r;
	f->since = jiffies;
	ib_dma_sync_single_for_device(conn->s->meta->ibdev, r->dma, sge.length, DMA_FROM_DEVICE);
	atomic_inc(&conn->posted);
	err = ib_post_send(conn->id->qp, &wr.wr, NULL);
	if (!err)
		return 0;
	WRITE_ONCE(conn->broken, true);
	krc_meta_read_over(r, -ENOTCONN);
	krc_meta_conn_completed(conn);
	return err;
}

/* The next one in the line, which is so no more, or NULL. Locks: slots.lock. */
static struct krc_meta_fetch *krc_meta_fetch_next(struct krc_meta_conn *conn)
{
	struct krc_line_waiter *next = krc_line_next(&conn->slots.line);

	lockdep_assert_held(&conn->slots.lock);
	if (!next)
		return NULL;
	complete(&next->given);
	return container_of(next, struct krc_meta_fetch, place);
}

/* A slot is free: post what waits for one. So while one waits, none is free. Return: as above. */
static int krc_meta_read_next(struct krc_meta_read *r)
{
	struct krc_meta_conn *conn = r->conn;
	bool of_loads = r == &conn->slots.at[KRC_META_READS];
	struct krc_meta_fetch *next;

	lockdep_assert_held(&conn->slots.lock);
	if (likely(!conn->slots.line.waiting) || of_loads || READ_ONCE(conn->broken))
		return 0;
	next = krc_meta_fetch_next(conn);
	return krc_meta_read_post(r, next);
}

void krc_meta_read_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct krc_meta_read *r = container_of(wc->wr_cqe, struct krc_meta_read, cqe);
	struct krc_meta_conn *conn = r->conn;
	int err;

	if (wc->status != IB_WC_SUCCESS && wc->status != IB_WC_WR_FLUSH_ERR)
		krc_meta_conn_fail(conn, -EIO, "a READ of the table failed: %s",
				   ib_wc_status_msg(wc->status));
	spin_lock_bh(&conn->slots.lock);
	krc_meta_read_over(r, wc->status == IB_WC_SUCCESS ? 0 : -ENOTCONN);
	err = krc_meta_read_next(r);
	spin_unlock_bh(&conn->slots.lock);
	if (err)
		krc_meta_conn_fail(conn, err, "posting a READ failed");
	krc_meta_conn_completed(conn);
}

void krc_meta_reads_stop(struct krc_meta_conn *conn)
{
	struct krc_meta_fetch *f;

	spin_lock_bh(&conn->slots.lock);
	WRITE_ONCE(conn->broken, true);
	while ((f = krc_meta_fetch_next(conn))) {
		krc_meta_cq_expected(&conn->send_cq);
		krc_meta_fetch_end(f, -ENOTCONN);
	}
	spin_unlock_bh(&conn->slots.lock);
	wake_up_all(&conn->table.wait);
}

void krc_meta_reads_end(struct krc_meta_conn *conn)
{
	unsigned int i;

	spin_lock_bh(&conn->slots.lock);
	for (i = 0; i < ARRAY_SIZE(conn->slots.at); i++)
		if (conn->slots.at[i].posted)
			krc_meta_read_over(&conn->slots.at[i], -ENOTCONN);
	spin_unlock_bh(&conn->slots.lock);
}

/* Locks: slots.lock. Return: a slot that is free, or NULL. */
static struct krc_meta_read *krc_meta_read_free(struct krc_meta_conn *conn)
{
	unsigned int i;

	lockdep_assert_held(&conn->slots.lock);
	for (i = 0; i < KRC_META_READS; i++)
		if (!conn->slots.at[i].posted)
			return &conn->slots.at[i];
	return NULL;
}

/*
 * Post a READ, or get in line, where nobody polls for it. @r: slot that is free and the caller's
 * own; NULL: any.
 */
static void krc_meta_fetch_begin(struct krc_meta_conn *conn, struct krc_meta_fetch *f,
				 const void *payer, struct krc_meta_read *r)
{
	int err = 0;

	init_completion(&f->done);
	spin_lock_bh(&conn->slots.lock);
	if (!r)
		r = krc_meta_read_free(conn);
	if (READ_ONCE(conn->broken)) {
		krc_meta_fetch_end(f, -ENOTCONN);
	} else if (likely(r)) {
		err = krc_meta_read_post(r, f);
	} else {
		f->counted = true;
		krc_line_add(&conn->slots.line, &f->place, payer);
		/* also for those who have a slot and poll: they may not run for long */
		krc_meta_cq_expect(&conn->send_cq);
	}
	spin_unlock_bh(&conn->slots.lock);
	if (err)
		krc_meta_conn_fail(conn, err, "posting a READ failed");
}

/**
 * struct krc_meta_poll - What a task polls for.
 * @conn: connection.
 * @f: its READ.
 */
struct krc_meta_poll {
	struct krc_meta_conn *conn;
	struct krc_meta_fetch *f;
};

static bool krc_meta_read_poll(void *arg)
{
	struct krc_meta_poll *poll = arg;

	if (!completion_done(&poll->f->done))
		krc_meta_cq_poll(&poll->conn->send_cq);
	return completion_done(&poll->f->done);
}

/* The task blocks instead of polling: arm, unless the READ is over. */
static void krc_meta_fetch_sleep(struct krc_meta_conn *conn, struct krc_meta_fetch *f)
{
	spin_lock_bh(&conn->slots.lock);
	if (f->slot && !f->slot->blocked) {
		f->slot->blocked = true;
		f->since = jiffies; /* before, it may have come, and the task did not run */
		krc_meta_cq_expect(&conn->send_cq);
	}
	spin_unlock_bh(&conn->slots.lock);
}

/* Wait no longer, for @err. Return: @err; or the outcome, if there is one meanwhile. */
static int krc_meta_fetch_leave(struct krc_meta_conn *conn, struct krc_meta_fetch *f, int err)
{
	spin_lock_bh(&conn->slots.lock);
	if (completion_done(&f->done)) {
		err = f->err;
	} else if (f->slot) {
		f->slot->fetch = NULL;
	} else {
		krc_line_leave(&conn->slots.line, &f->place);
		krc_meta_cq_expected(&conn->send_cq);
	}
	spin_unlock_bh(&conn->slots.lock);
	return err;
}

/* How long to wait yet. @silent: out: with 0: the server does not answer. Return: jiffies, or 0. */
static unsigned long krc_meta_fetch_left(struct krc_meta_conn *conn, const struct krc_meta_fetch *f,
					 unsigned long deadline, bool *silent)
{
	unsigned long timeout = krc_meta_read_timeout(conn->s->meta);
	long left = deadline - jiffies, answer = timeout;

	spin_lock_bh(&conn->slots.lock);
	if (f->slot)
		answer = f->since + timeout - jiffies;
	spin_unlock_bh(&conn->slots.lock);
	*silent = answer <= 0;
	return max(min(left, answer), 0L);
}

/*
 * Wait for a READ that was begun, at most until @deadline. Once it is posted, a server that does
 * not answer for krc_meta_read_timeout() is silent, and the session fails; before, it is not to blame.
 * Return: 0; -ENOTCONN; -ETIMEDOUT: silent; -ETIME: @deadline is over; -EINTR.
 */
static int krc_meta_fetch_wait(struct krc_meta_conn *conn, struct krc_meta_fetch *f,
			       unsigned long deadline)
{
	struct krc_meta_poll poll = { conn, f };
	unsigned long left;
	bool silent;
	long ret;
	int err;

	if (!f->counted) {
		krc_spin(krc_meta_read_poll, &poll);
		krc_meta_fetch_sleep(conn, f);
	}
	while ((left = krc_meta_fetch_left(conn, f, deadline, &silent))) {
		ret = wait_for_completion_killable_timeout(&f->done, left);
		if (ret > 0)
			return f->err;
		if (ret < 0)
			return krc_meta_fetch_leave(conn, f, -EINTR);
	}
	err = krc_meta_fetch_leave(conn, f, silent ? -ETIMEDOUT : -ETIME);
	if (err == -ETIMEDOUT)
		krc_meta_conn_fail(conn, err, "a READ got no answer");
	return err;
}

int krc_meta_read(struct krc_meta_conn *conn, const struct krc_meta_query *q,
		  const struct krp_read *what, void *into)
{
	struct krc_meta_fetch f = { .what = *what, .into = into };

	if (time_after_eq(jiffies, q->deadline))
		return -ETIME;
	krc_meta_fetch_begin(conn, &f, q->payer, NULL);
	return krc_meta_fetch_wait(conn, &f, q->deadline);
}

int krc_meta_read_bulk(struct krc_meta_conn *conn, const struct krp_read *what, void *into)
{
	struct krc_meta_fetch f = { .what = *what, .into = into };

	krc_meta_fetch_begin(conn, &f, NULL, &conn->slots.at[KRC_META_READS]);
	return krc_meta_fetch_wait(conn, &f, jiffies + MAX_JIFFY_OFFSET);
}
