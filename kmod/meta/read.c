// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: one-sided READs of a MetaServer's table: the map of it, and look-ups.
 *
 * Look-ups READ concurrently; krp_lookup.h decides, under map_lock, what to READ and what the
 * bytes mean. A READ has a slot from the doorbell to the completion, not longer: that copies the
 * bytes to the task that waits for them, and posts the next READ that waits for a slot, by payers
 * in turn (base/turns.h). So a task that does not run holds none, and one that is killed or times
 * out just looks at its READ no more. Maps are loaded by a work item of the connection, which
 * tasks wait for as long as they may. Taking the connection down ends every wait.
 * Locking: see meta/meta_priv.h. Callers hold a reference to the connection.
 */
#include <linux/slab.h>

#include "base/spin.h"
#include "meta/meta_priv.h"

/**
 * struct krc_meta_fetch - A READ and who waits for it; on its stack. Locks: conn.read_lock.
 * @place: its place in krc_meta_conn.line; given with the slot.
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

/* It has no slot any more, or will have none. Locks: read_lock. */
static void krc_meta_fetch_end(struct krc_meta_fetch *f, int err)
{
	f->slot = NULL;
	f->err = err;
	complete(&f->done); /* on the stack of a task that may return right after */
}

/* A slot is the device's no more: give what came to its task, if one waits. Locks: read_lock. */
static void krc_meta_read_over(struct krc_meta_read *r, int err)
{
	struct krc_meta_fetch *f = r->fetch;

	lockdep_assert_held(&r->conn->read_lock);
	if (r->asleep)
		krc_meta_cq_expected(&r->conn->send_cq);
	r->posted = false;
	r->asleep = false;
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
 * Post a READ in a free slot. Under read_lock the queue pair exists as long as the connection is
 * not broken. Locks: read_lock. Return: 0; an errno of the device: it is over, as is all else.
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

	lockdep_assert_held(&conn->read_lock);
	r->posted = true;
	r->asleep = f->counted;
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

/* The next one in the line, which is so no more, or NULL. Locks: read_lock. */
static struct krc_meta_fetch *krc_meta_fetch_next(struct krc_meta_conn *conn)
{
	struct krc_line_waiter *next = krc_line_next(&conn->line);

	lockdep_assert_held(&conn->read_lock);
	if (!next)
		return NULL;
	complete(&next->given);
	return container_of(next, struct krc_meta_fetch, place);
}

/* A slot is free: post what waits for one. So while one waits, none is free. Return: as above. */
static int krc_meta_read_next(struct krc_meta_read *r)
{
	struct krc_meta_conn *conn = r->conn;
	bool of_loads = r == &conn->read[KRC_META_READS];
	struct krc_meta_fetch *next;

	lockdep_assert_held(&conn->read_lock);
	if (likely(!conn->line.waiting) || of_loads || READ_ONCE(conn->broken))
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
	spin_lock_bh(&conn->read_lock);
	krc_meta_read_over(r, wc->status == IB_WC_SUCCESS ? 0 : -ENOTCONN);
	err = krc_meta_read_next(r);
	spin_unlock_bh(&conn->read_lock);
	if (err)
		krc_meta_conn_fail(conn, err, "posting a READ failed");
	krc_meta_conn_completed(conn);
}

void krc_meta_reads_stop(struct krc_meta_conn *conn)
{
	struct krc_meta_fetch *f;

	spin_lock_bh(&conn->read_lock);
	WRITE_ONCE(conn->broken, true);
	while ((f = krc_meta_fetch_next(conn))) {
		krc_meta_cq_expected(&conn->send_cq);
		krc_meta_fetch_end(f, -ENOTCONN);
	}
	spin_unlock_bh(&conn->read_lock);
	wake_up_all(&conn->map_wait);
}

void krc_meta_reads_end(struct krc_meta_conn *conn)
{
	unsigned int i;

	spin_lock_bh(&conn->read_lock);
	for (i = 0; i < ARRAY_SIZE(conn->read); i++)
		if (conn->read[i].posted)
			krc_meta_read_over(&conn->read[i], -ENOTCONN);
	spin_unlock_bh(&conn->read_lock);
}

/* Locks: read_lock. Return: a slot that is free, or NULL. */
static struct krc_meta_read *krc_meta_read_free(struct krc_meta_conn *conn)
{
	unsigned int i;

	lockdep_assert_held(&conn->read_lock);
	for (i = 0; i < KRC_META_READS; i++)
		if (!conn->read[i].posted)
			return &conn->read[i];
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
	spin_lock_bh(&conn->read_lock);
	if (!r)
		r = krc_meta_read_free(conn);
	if (READ_ONCE(conn->broken)) {
		krc_meta_fetch_end(f, -ENOTCONN);
	} else if (likely(r)) {
		err = krc_meta_read_post(r, f);
	} else {
		f->counted = true;
		krc_line_add(&conn->line, &f->place, payer);
		/* also for those who have a slot and poll: they may not run for long */
		krc_meta_cq_expect(&conn->send_cq);
	}
	spin_unlock_bh(&conn->read_lock);
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
static void krc_meta_fetch_asleep(struct krc_meta_conn *conn, struct krc_meta_fetch *f)
{
	spin_lock_bh(&conn->read_lock);
	if (f->slot && !f->slot->asleep) {
		f->slot->asleep = true;
		f->since = jiffies; /* before, it may have come, and the task did not run */
		krc_meta_cq_expect(&conn->send_cq);
	}
	spin_unlock_bh(&conn->read_lock);
}

/* Wait no longer, for @err. Return: @err; or the outcome, if there is one meanwhile. */
static int krc_meta_fetch_leave(struct krc_meta_conn *conn, struct krc_meta_fetch *f, int err)
{
	spin_lock_bh(&conn->read_lock);
	if (completion_done(&f->done)) {
		err = f->err;
	} else if (f->slot) {
		f->slot->fetch = NULL;
	} else {
		krc_line_leave(&conn->line, &f->place);
		krc_meta_cq_expected(&conn->send_cq);
	}
	spin_unlock_bh(&conn->read_lock);
	return err;
}

/* How long to wait yet. @silent: out: with 0: the server does not answer. Return: jiffies, or 0. */
static unsigned long krc_meta_fetch_left(struct krc_meta_conn *conn, const struct krc_meta_fetch *f,
					 unsigned long deadline, bool *silent)
{
	unsigned long patience = krc_meta_patience(conn->s->meta);
	long left = deadline - jiffies, answer = patience;

	spin_lock_bh(&conn->read_lock);
	if (f->slot)
		answer = f->since + patience - jiffies;
	spin_unlock_bh(&conn->read_lock);
	*silent = answer <= 0;
	return max(min(left, answer), 0L);
}

/*
 * Wait for a READ that was begun, at most until @deadline. Once it is posted, a server that does
 * not answer for krc_meta_patience() is silent, and the session fails; before, it is not to blame.
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
		krc_meta_fetch_asleep(conn, f);
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

/* READ at most a bucket. Return: as krc_meta_fetch_wait(). */
static int krc_meta_read(struct krc_meta_conn *conn, const struct krc_meta_query *q,
			 const struct krp_read *what, void *into)
{
	struct krc_meta_fetch f = { .what = *what, .into = into };

	if (time_after_eq(jiffies, q->deadline))
		return -ETIME;
	krc_meta_fetch_begin(conn, &f, q->payer, NULL);
	return krc_meta_fetch_wait(conn, &f, q->deadline);
}

static u64 krc_meta_now_ms(void)
{
	return ktime_to_ms(ktime_get());
}

/* One READ of a load, in the last slot. @buf: for KRC_META_BULK_BYTES. */
static int krc_meta_load_read(struct krc_meta_conn *conn, struct krp_load *load,
			      const struct krp_read *what, void *buf)
{
	struct krc_meta_fetch f = { .what = *what, .into = buf };
	int err;

	krc_meta_fetch_begin(conn, &f, NULL, &conn->read[KRC_META_READS]);
	err = krc_meta_fetch_wait(conn, &f, jiffies + MAX_JIFFY_OFFSET);
	return err ?: krc_meta_load_feed(load, buf);
}

/* READ a map, based on the old one if there is one. Context: the load's work item. */
static int krc_meta_map_read(struct krc_meta_conn *conn, struct krp_load *load, u32 *ret_reads)
{
	void *buf = kmalloc(KRC_META_BULK_BYTES, GFP_KERNEL);
	struct krp_read read;
	int err = 0;

	*ret_reads = 0;
	krp_load_start(load, conn->root_addr, conn->root_rkey, conn->incarnation,
		       KRC_META_BULK_BYTES, KRC_META_DEPTH_MAX, conn->map);
	if (!buf)
		return -ENOMEM;
	while (!err && krp_load_next(load, &read)) {
		(*ret_reads)++;
		krc_meta_conn_step(conn, "reading root and directory");
		err = krc_meta_load_read(conn, load, &read, buf);
	}
	kfree(buf);
	return err;
}

/* A load is over. Locks: map_lock. Return: the map that is not used any more, or NULL. */
static struct krp_map *krc_meta_map_loaded(struct krc_meta_conn *conn, struct krp_load *load,
					   u32 reads, int err)
{
	struct krp_map *old = conn->map;

	lockdep_assert_held(&conn->map_lock);
	conn->map_loading = false;
	conn->map_err = err;
	conn->map_reads = reads;
	WRITE_ONCE(conn->map_loads, conn->map_loads + 1);
	if (err)
		return krp_load_take(load);
	if (!old) {
		krp_pulse_start(&conn->pulse, load->heartbeat, krc_meta_now_ms());
		if (conn->settling)
			krp_pulse_settling(&conn->pulse);
	}
	conn->map = krp_load_take(load);
	conn->map_nr++;
	return old;
}

void krc_meta_map_work(struct work_struct *work)
{
	struct krc_meta_conn *conn = container_of(work, struct krc_meta_conn, map_work);
	struct krp_load load;
	struct krp_map *old;
	bool first;
	u32 reads;
	int err;

	err = krc_meta_map_read(conn, &load, &reads);
	spin_lock(&conn->map_lock);
	first = !conn->map_loads;
	old = krc_meta_map_loaded(conn, &load, reads, err);
	spin_unlock(&conn->map_lock);
	wake_up_all(&conn->map_wait);
	krc_meta_map_free(old);
	if (first)
		krc_meta_session_loaded(conn, err == -E2BIG ? 0 : err);
	else if (err == -ESTALE || err == -EPROTO)
		krc_meta_conn_fail(conn, err, "the root cannot be read again");
	krc_meta_conn_put(conn);
}

/* Have a map loaded, unless one is already. Locks: map_lock. Return: whether it was not. */
static bool krc_meta_map_want(struct krc_meta_conn *conn)
{
	lockdep_assert_held(&conn->map_lock);
	if (conn->map_loading)
		return false;
	conn->map_loading = true;
	kref_get(&conn->ref);
	queue_work(conn->s->meta->wq, &conn->map_work);
	return true;
}

void krc_meta_map_begin(struct krc_meta_conn *conn)
{
	spin_lock(&conn->map_lock);
	krc_meta_map_want(conn);
	spin_unlock(&conn->map_lock);
}

/*
 * What has become of a load that was waited for: a newer map than number @nr, or why there is none.
 * @loads: how many loads there were before. Return: as krc_meta_map_refresh().
 */
static int krc_meta_map_outcome(struct krc_meta_conn *conn, u64 nr, u64 loads, u32 *ret_reads)
{
	int err;

	spin_lock(&conn->map_lock);
	if (conn->map_nr != nr)
		err = 0;
	else if (conn->map_loads != loads)
		err = conn->map_err;
	else
		err = READ_ONCE(conn->broken) ? -ENOTCONN : -ETIME;
	*ret_reads = conn->map_loads != loads ? conn->map_reads : 0;
	spin_unlock(&conn->map_lock);
	switch (err) {
	case -ESTALE:
	case -EPROTO:
		return -ENOTCONN;
	case -E2BIG:
	case -ENOMEM:
		return -EAGAIN;
	default:
		return err;
	}
}

/*
 * Have a newer map than number @nr loaded, and wait for that no longer than the query may take; its
 * READs count for the query that has asked for it. Return: 0; -EAGAIN: ask by message; -ENOTCONN;
 * -ETIMEDOUT: the server is silent; -ETIME: the query's time is over; -EINTR.
 */
static int krc_meta_map_refresh(struct krc_meta_conn *conn, u64 nr, struct krc_meta_query *q)
{
	bool newer, mine = false;
	u32 reads;
	u64 loads;
	long left;
	int err;

	spin_lock(&conn->map_lock);
	newer = conn->map_nr != nr;
	loads = conn->map_loads;
	if (!newer)
		mine = krc_meta_map_want(conn);
	spin_unlock(&conn->map_lock);
	if (newer)
		return 0;
	left = q->deadline - jiffies;
	left = wait_event_killable_timeout(
		conn->map_wait, READ_ONCE(conn->map_loads) != loads || READ_ONCE(conn->broken),
		max(left, 0L));
	if (left < 0)
		return -EINTR;
	err = krc_meta_map_outcome(conn, nr, loads, &reads);
	if (mine)
		q->reads += reads;
	return err;
}

int krc_meta_read_lookup(struct krc_meta_conn *conn, struct krc_meta_query *q)
{
	u64 bucket[KRP_BUCKET_BYTES / sizeof(u64)];
	struct krp_lookup l;
	struct krp_read read;
	int step, err;
	u64 map_nr;

	if (!READ_ONCE(conn->map))
		return -EAGAIN;
	spin_lock(&conn->map_lock);
	krp_lookup_start(&l, conn->map, q->key);
	spin_unlock(&conn->map_lock);
	for (;;) {
		spin_lock(&conn->map_lock);
		step = krp_lookup_next(&l, conn->map, &read);
		map_nr = conn->map_nr;
		spin_unlock(&conn->map_lock);
		if (step == KRP_STEP_READ) {
			q->reads++;
			err = krc_meta_read(conn, q, &read, bucket);
			if (err)
				return err;
			spin_lock(&conn->map_lock);
			step = krp_lookup_feed(&l, conn->map, bucket, q->value);
			spin_unlock(&conn->map_lock);
		}
		if (step == KRP_STEP_ROOT)
			step = krc_meta_map_refresh(conn, map_nr, q) ?: KRP_STEP_READ;
		if (step != KRP_STEP_READ)
			return step;
	}
}

int krc_meta_read_pulse(struct krc_meta_conn *conn, struct krc_meta_query *q,
			struct krp_pulse *ret_pulse)
{
	struct krp_read read = { conn->root_addr, conn->root_rkey, sizeof(struct krp_root) };
	u64 now_ms = krc_meta_now_ms();
	struct krp_root root;
	bool due;
	int err;

	spin_lock(&conn->map_lock);
	due = krp_pulse_due(&conn->pulse, now_ms);
	spin_unlock(&conn->map_lock);
	if (!due)
		return 0;
	q->reads++;
	err = krc_meta_read(conn, q, &read, &root);
	if (err)
		return err;
	spin_lock(&conn->map_lock);
	/* another task may have READ later; a torn root is being written, so the server lives */
	err = now_ms < conn->pulse.looked_ms ||
	      krp_pulse_feed(&conn->pulse, &root, conn->incarnation, now_ms);
	*ret_pulse = conn->pulse;
	spin_unlock(&conn->map_lock);
	return !err;
}
