// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: one-sided READs of a MetaServer's table: the map of it, and look-ups.
 *
 * Look-ups READ concurrently, each in its own slot; krp_lookup.h decides, under map_lock, what
 * to READ and what the bytes mean. Tasks that wait for a slot get one by payers in turn
 * (base/turns.h). A task that is killed or times out abandons its slot, which the completion
 * then frees. Taking the connection down ends every wait.
 * Locking: see meta/meta_priv.h. Callers hold a count in conn.users, or are the
 * session's work item.
 */
#include <linux/sched/signal.h>

#include "base/spin.h"
#include "meta/meta_priv.h"

/**
 * struct krc_meta_waiter - A task that waits for a READ slot; on its stack.
 * @place: its place in krc_meta_conn.line.
 * @read: out: the slot that it was given; NULL: the connection is broken.
 */
struct krc_meta_waiter {
	struct krc_line_waiter place;
	struct krc_meta_read *read;
};

/* Wake the next task that waits. Return: false: none does. Locks: read_lock. */
static bool krc_meta_read_give(struct krc_meta_conn *conn, struct krc_meta_read *r)
{
	struct krc_line_waiter *next = krc_line_next(&conn->line);

	lockdep_assert_held(&conn->read_lock);
	if (!next)
		return false;
	container_of(next, struct krc_meta_waiter, place)->read = r;
	complete(&next->given); /* on the stack of a task that may return right after */
	return true;
}

/* A slot is free, or the next one's: so while a task waits, none is free. Locks: read_lock. */
static void krc_meta_read_release(struct krc_meta_read *r)
{
	struct krc_meta_conn *conn = r->conn;
	bool of_loads = r == &conn->read[KRC_META_READS];

	lockdep_assert_held(&conn->read_lock);
	r->abandoned = false;
	r->taken = unlikely(conn->line.waiting) && !of_loads && krc_meta_read_give(conn, r);
}

void krc_meta_read_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct krc_meta_read *r = container_of(wc->wr_cqe, struct krc_meta_read, cqe);
	struct krc_meta_conn *conn = r->conn;

	if (wc->status != IB_WC_SUCCESS && wc->status != IB_WC_WR_FLUSH_ERR)
		krc_meta_session_fail(conn->s, -EIO, "a READ of the table failed: %s",
				      ib_wc_status_msg(wc->status));
	spin_lock_bh(&conn->read_lock);
	r->posted = false;
	if (r->asleep)
		krc_meta_cq_expected(&conn->send_cq);
	r->err = wc->status == IB_WC_SUCCESS ? 0 : -ENOTCONN;
	if (r->abandoned)
		krc_meta_read_release(r);
	else
		complete(&r->done);
	spin_unlock_bh(&conn->read_lock);
	krc_meta_conn_completed(conn);
}

void krc_meta_reads_stop(struct krc_meta_conn *conn)
{
	spin_lock_bh(&conn->read_lock);
	WRITE_ONCE(conn->broken, true);
	while (krc_meta_read_give(conn, NULL))
		;
	spin_unlock_bh(&conn->read_lock);
}

void krc_meta_reads_end(struct krc_meta_conn *conn)
{
	unsigned int i;

	spin_lock_bh(&conn->read_lock);
	for (i = 0; i < ARRAY_SIZE(conn->read); i++) {
		struct krc_meta_read *r = &conn->read[i];

		if (!r->taken || !r->posted)
			continue;
		r->posted = false;
		r->err = -ENOTCONN;
		complete(&r->done);
	}
	spin_unlock_bh(&conn->read_lock);
}

/* Locks: read_lock. Return: a slot that was free, or NULL. */
static struct krc_meta_read *krc_meta_read_take(struct krc_meta_conn *conn)
{
	unsigned int i;

	lockdep_assert_held(&conn->read_lock);
	for (i = 0; i < KRC_META_READS; i++) {
		if (conn->read[i].taken)
			continue;
		conn->read[i].taken = true;
		return &conn->read[i];
	}
	return NULL;
}

static void krc_meta_read_put(struct krc_meta_read *r, u32 bytes)
{
	struct krc_meta_conn *conn = r->conn;

	ib_dma_sync_single_for_device(conn->s->meta->ibdev, r->dma, bytes, DMA_FROM_DEVICE);
	spin_lock_bh(&conn->read_lock);
	krc_meta_read_release(r);
	spin_unlock_bh(&conn->read_lock);
}

/* Stop waiting for a READ. Return: true if it has completed meanwhile. */
static bool krc_meta_read_abandon(struct krc_meta_read *r)
{
	bool posted;

	spin_lock_bh(&r->conn->read_lock);
	posted = r->posted;
	if (posted)
		r->abandoned = true;
	spin_unlock_bh(&r->conn->read_lock);
	return !posted;
}

static int krc_meta_read_post(struct krc_meta_read *r, const struct krp_read *read)
{
	struct krc_meta_conn *conn = r->conn;
	struct ib_sge sge = {
		.addr = r->dma,
		.length = read->bytes,
		.lkey = conn->pd->local_dma_lkey,
	};
	struct ib_rdma_wr wr = {
		.wr = { .wr_cqe = &r->cqe,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IB_WR_RDMA_READ,
			.send_flags = IB_SEND_SIGNALED },
		.remote_addr = read->addr,
		.rkey = read->rkey,
	};
	int err = -ENOTCONN;

	reinit_completion(&r->done);
	r->asleep = false;
	/* under read_lock the queue pair exists as long as @broken is not set */
	spin_lock_bh(&conn->read_lock);
	if (!READ_ONCE(conn->broken)) {
		atomic_inc(&conn->posted);
		err = ib_post_send(conn->id->qp, &wr.wr, NULL);
		r->posted = !err;
		if (err)
			krc_meta_conn_completed(conn);
	}
	spin_unlock_bh(&conn->read_lock);
	if (!err)
		return 0;
	krc_meta_session_fail(conn->s, err, "posting a READ failed");
	return -ENOTCONN;
}

static bool krc_meta_read_poll(void *arg)
{
	struct krc_meta_read *r = arg;

	if (!completion_done(&r->done))
		krc_meta_cq_poll(&r->conn->send_cq);
	return completion_done(&r->done);
}

/* The task blocks instead of polling: arm, unless the READ has completed. */
static void krc_meta_read_asleep(struct krc_meta_read *r)
{
	spin_lock_bh(&r->conn->read_lock);
	r->asleep = r->posted;
	if (r->asleep)
		krc_meta_cq_expect(&r->conn->send_cq);
	spin_unlock_bh(&r->conn->read_lock);
}

/*
 * READ into a slot that was taken; on failure the slot is released, or abandoned.
 * @timeout: jiffies, capped at krc_meta_patience(), after which the session fails.
 * Return: 0; -ENOTCONN; -ETIMEDOUT; -EINTR.
 */
static int krc_meta_read_wait(struct krc_meta_read *r, const struct krp_read *read,
			      unsigned long timeout)
{
	struct krc_meta_conn *conn = r->conn;
	unsigned long patience = krc_meta_patience(conn->s->meta);
	bool impatient = timeout < patience;
	long left;
	int err;

	err = krc_meta_read_post(r, read);
	if (err) {
		krc_meta_read_put(r, read->bytes);
		return err;
	}
	krc_spin(krc_meta_read_poll, r);
	krc_meta_read_asleep(r);
	left = wait_for_completion_killable_timeout(&r->done, impatient ? timeout : patience);
	if (left <= 0 && !krc_meta_read_abandon(r)) {
		if (left < 0)
			return -EINTR;
		if (!impatient)
			krc_meta_session_fail(conn->s, -ETIMEDOUT, "a READ got no answer");
		return -ETIMEDOUT;
	}
	/* read_lock in krc_meta_read_abandon(), or @done, orders @err and the bytes */
	if (!r->err) {
		ib_dma_sync_single_for_cpu(conn->s->meta->ibdev, r->dma, read->bytes,
					   DMA_FROM_DEVICE);
		return 0;
	}
	err = r->err;
	krc_meta_read_put(r, read->bytes);
	return err;
}

/* What a task has that waited for a slot in vain, or too long. Return: @err. */
static int krc_meta_read_leave(struct krc_meta_conn *conn, struct krc_meta_waiter *waiter, int err)
{
	struct krc_meta_read *given;

	spin_lock_bh(&conn->read_lock);
	given = krc_line_leave(&conn->line, &waiter->place) ? NULL : waiter->read;
	spin_unlock_bh(&conn->read_lock);
	if (given)
		krc_meta_read_put(given, 0);
	return err;
}

/*
 * Get a slot. While others wait, that of the payer whose turn it is, which wakes one task: there
 * may be thousands. Return: it, or ERR_PTR: -ENOTCONN; -ETIMEDOUT; -EINTR.
 */
static struct krc_meta_read *krc_meta_read_get(struct krc_meta_conn *conn, const void *payer,
					       unsigned long deadline)
{
	struct krc_meta_waiter waiter;
	long left = deadline - jiffies;
	struct krc_meta_read *r;
	bool waits;

	if (left <= 0)
		return ERR_PTR(-ETIMEDOUT);
	spin_lock_bh(&conn->read_lock);
	r = krc_meta_read_take(conn);
	waits = unlikely(!r) && !conn->broken;
	if (waits) {
		waiter.read = NULL;
		krc_line_add(&conn->line, &waiter.place, payer);
	}
	spin_unlock_bh(&conn->read_lock);
	if (!waits)
		return r ?: ERR_PTR(-ENOTCONN);
	left = wait_for_completion_killable_timeout(&waiter.place.given, left);
	if (left <= 0)
		return ERR_PTR(krc_meta_read_leave(conn, &waiter, left ? -EINTR : -ETIMEDOUT));
	return waiter.read ?: ERR_PTR(-ENOTCONN);
}

/* READ at most a bucket. Return: a slot with the bytes, or ERR_PTR as krc_meta_read_wait(). */
static struct krc_meta_read *krc_meta_read(struct krc_meta_conn *conn, const void *payer,
					   const struct krp_read *read, unsigned long deadline)
{
	struct krc_meta_read *r = krc_meta_read_get(conn, payer, deadline);
	long left = deadline - jiffies;
	int err;

	if (IS_ERR(r))
		return r;
	if (left <= 0) {
		krc_meta_read_put(r, 0);
		return ERR_PTR(-ETIMEDOUT);
	}
	err = krc_meta_read_wait(r, read, left);
	return err ? ERR_PTR(err) : r;
}

/* One READ of a load, in the last slot. Return: also -EAGAIN: the slot is busy. */
static int krc_meta_load_read(struct krc_meta_conn *conn, struct krp_load *load,
			      const struct krp_read *read)
{
	struct krc_meta_read *r = &conn->read[KRC_META_READS];
	bool taken;
	int err;

	lockdep_assert_held(&conn->map_mutex);
	spin_lock_bh(&conn->read_lock);
	taken = r->taken; /* abandoned by a killed task; its completion is near */
	r->taken = true;
	spin_unlock_bh(&conn->read_lock);
	if (taken)
		return -EAGAIN;
	err = krc_meta_read_wait(r, read, krc_meta_patience(conn->s->meta));
	if (err)
		return err;
	err = krc_meta_load_feed(load, r->data);
	krc_meta_read_put(r, read->bytes);
	return err;
}

static u64 krc_meta_now_ms(void)
{
	return ktime_to_ms(ktime_get());
}

/* Locks: map_mutex. Load a map, based on the old one if there is one. */
static int krc_meta_map_make(struct krc_meta_conn *conn, u32 *reads)
{
	struct krp_load load;
	struct krp_map *old = conn->map;
	struct krp_read read;
	int err = 0;

	lockdep_assert_held(&conn->map_mutex);
	krp_load_start(&load, conn->root_addr, conn->root_rkey, conn->incarnation,
		       KRC_META_BULK_BYTES, KRC_META_DEPTH_MAX, old);
	while (!err && krp_load_next(&load, &read)) {
		(*reads)++;
		krc_meta_session_step(conn->s, "reading root and directory");
		err = krc_meta_load_read(conn, &load, &read);
	}
	if (err) {
		krc_meta_map_free(krp_load_take(&load));
		return err;
	}
	spin_lock(&conn->map_lock);
	if (!old)
		krp_pulse_start(&conn->pulse, load.heartbeat, krc_meta_now_ms());
	conn->map = krp_load_take(&load);
	conn->map_nr++;
	spin_unlock(&conn->map_lock);
	krc_meta_map_free(old);
	return 0;
}

int krc_meta_map_load(struct krc_meta_conn *conn)
{
	u32 reads = 0;
	int err;

	mutex_lock(&conn->map_mutex); /* uncontended before the session is ready */
	err = krc_meta_map_make(conn, &reads);
	mutex_unlock(&conn->map_mutex);
	return err == -E2BIG ? 0 : err;
}

/* Load a newer map than number @nr. Return: 0; -EAGAIN: ask by message; or an errno. */
static int krc_meta_map_refresh(struct krc_meta_conn *conn, u64 nr, u32 *reads)
{
	int err = 0;

	if (mutex_lock_killable(&conn->map_mutex))
		return -EINTR;
	if (conn->map_nr == nr)
		err = krc_meta_map_make(conn, reads);
	mutex_unlock(&conn->map_mutex);
	switch (err) {
	case -ESTALE:
	case -EPROTO:
		krc_meta_session_fail(conn->s, err, "the root cannot be read again");
		return -ENOTCONN;
	case -E2BIG:
	case -ENOMEM:
		return -EAGAIN;
	default:
		return err;
	}
}

int krc_meta_read_lookup(struct krc_meta_conn *conn, struct krc_meta_query *q)
{
	struct krc_meta_read *r;
	struct krp_lookup l;
	struct krp_read read;
	u64 map_nr;
	int step;

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
			r = krc_meta_read(conn, q->payer, &read, q->deadline);
			if (IS_ERR(r))
				return PTR_ERR(r);
			spin_lock(&conn->map_lock);
			step = krp_lookup_feed(&l, conn->map, r->data, q->value);
			spin_unlock(&conn->map_lock);
			krc_meta_read_put(r, read.bytes);
		}
		if (step == KRP_STEP_ROOT)
			step = krc_meta_map_refresh(conn, map_nr, &q->reads) ?: KRP_STEP_READ;
		if (step != KRP_STEP_READ)
			return step;
	}
}

int krc_meta_read_pulse(struct krc_meta_conn *conn, struct krc_meta_query *q,
			struct krp_pulse *ret_pulse)
{
	struct krp_read read = { conn->root_addr, conn->root_rkey, sizeof(struct krp_root) };
	u64 now_ms = krc_meta_now_ms();
	struct krc_meta_read *r;
	bool due;
	int err;

	spin_lock(&conn->map_lock);
	due = krp_pulse_due(&conn->pulse, now_ms);
	spin_unlock(&conn->map_lock);
	if (!due)
		return 0;
	q->reads++;
	r = krc_meta_read(conn, q->payer, &read, q->deadline);
	if (IS_ERR(r))
		return PTR_ERR(r);
	spin_lock(&conn->map_lock);
	/* another task may have READ later; a torn root is being written, so the server lives */
	err = now_ms < conn->pulse.looked_ms ||
	      krp_pulse_feed(&conn->pulse, r->data, conn->incarnation, now_ms);
	*ret_pulse = conn->pulse;
	spin_unlock(&conn->map_lock);
	krc_meta_read_put(r, read.bytes);
	return !err;
}
