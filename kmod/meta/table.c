// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: what a connection knows of a MetaServer's table, and look-ups in it by READs.
 *
 * Look-ups READ concurrently; krp_lookup.h decides, under table.lock, what to READ and what the
 * bytes mean. Maps are loaded by a work item of the connection, which tasks wait for as long as
 * they may. Taking the connection down ends every wait.
 * Locking: see meta/meta_priv.h. Callers hold a reference to the connection.
 */
#include <linux/slab.h>

#include "meta/meta_priv.h"

static u64 krc_meta_now_ms(void)
{
	return ktime_to_ms(ktime_get());
}

/* READ a map, based on the old one if there is one. Context: the load's work item. */
static int krc_meta_table_load(struct krc_meta_conn *conn, struct krp_load *load, u32 *ret_reads)
{
	void *buf = kmalloc(KRC_META_BULK_BYTES, GFP_KERNEL);
	struct krp_read read;
	int err = 0;

	*ret_reads = 0;
	krp_load_start(load, conn->table.root_addr, conn->table.root_rkey, conn->incarnation,
		       KRC_META_BULK_BYTES, KRC_META_DEPTH_MAX, conn->table.map);
	if (!buf)
		return -ENOMEM;
	while (!err && krp_load_next(load, &read)) {
		(*ret_reads)++;
		krc_meta_conn_step(conn, "reading root and directory");
		err = krc_meta_read_bulk(conn, &read, buf) ?: krc_meta_load_feed(load, buf);
	}
	kfree(buf);
	return err;
}

/* A load is over. Locks: table.lock. Return: the map that is not used any more, or NULL. */
static struct krp_map *krc_meta_table_loaded(struct krc_meta_conn *conn, struct krp_load *load,
					     u32 reads, int err)
{
	struct krp_map *old = conn->table.map;

	lockdep_assert_held(&conn->table.lock);
	conn->table.loading = false;
	conn->table.err = err;
	conn->table.reads = reads;
	WRITE_ONCE(conn->table.loads, conn->table.loads + 1);
	if (err)
		return krp_load_take(load);
	if (!old) {
		krp_pulse_start(&conn->table.pulse, load->heartbeat, krc_meta_now_ms());
		if (conn->table.settling)
			krp_pulse_settling(&conn->table.pulse);
	}
	conn->table.map = krp_load_take(load);
	conn->table.nr++;
	return old;
}

void krc_meta_table_work(struct work_struct *work)
{
	struct krc_meta_conn *conn = container_of(work, struct krc_meta_conn, table.work);
	struct krp_load load;
	struct krp_map *old;
	bool first;
	u32 reads;
	int err;

	err = krc_meta_table_load(conn, &load, &reads);
	spin_lock(&conn->table.lock);
	first = !conn->table.loads;
	old = krc_meta_table_loaded(conn, &load, reads, err);
	spin_unlock(&conn->table.lock);
	wake_up_all(&conn->table.wait);
	krc_meta_map_free(old);
	if (first)
		krc_meta_session_loaded(conn, err == -E2BIG ? 0 : err);
	else if (err == -ESTALE || err == -EPROTO)
		krc_meta_conn_fail(conn, err, "the root cannot be read again");
	krc_meta_conn_put(conn);
}

/* Have a map loaded, unless one is already. Locks: table.lock. Return: whether it was not. */
static bool krc_meta_table_want(struct krc_meta_conn *conn)
{
	lockdep_assert_held(&conn->table.lock);
	if (conn->table.loading)
		return false;
	conn->table.loading = true;
	kref_get(&conn->ref);
	queue_work(conn->s->meta->wq, &conn->table.work);
	return true;
}

void krc_meta_table_begin(struct krc_meta_conn *conn)
{
	spin_lock(&conn->table.lock);
	krc_meta_table_want(conn);
	spin_unlock(&conn->table.lock);
}

/*
 * What has become of a load that was waited for: a newer map than number @nr, or why there is none.
 * @loads: how many loads there were before. Return: as krc_meta_table_refresh().
 */
static int krc_meta_table_outcome(struct krc_meta_conn *conn, u64 nr, u64 loads, u32 *ret_reads)
{
	int err;

	spin_lock(&conn->table.lock);
	if (conn->table.nr != nr)
		err = 0;
	else if (conn->table.loads != loads)
		err = conn->table.err;
	else
		err = READ_ONCE(conn->broken) ? -ENOTCONN : -ETIME;
	*ret_reads = conn->table.loads != loads ? conn->table.reads : 0;
	spin_unlock(&conn->table.lock);
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
static int krc_meta_table_refresh(struct krc_meta_conn *conn, u64 nr, struct krc_meta_query *q)
{
	bool newer, mine = false;
	u32 reads;
	u64 loads;
	long left;
	int err;

	spin_lock(&conn->table.lock);
	newer = conn->table.nr != nr;
	loads = conn->table.loads;
	if (!newer)
		mine = krc_meta_table_want(conn);
	spin_unlock(&conn->table.lock);
	if (newer)
		return 0;
	left = q->deadline - jiffies;
	left = wait_event_killable_timeout(
		conn->table.wait, READ_ONCE(conn->table.loads) != loads || READ_ONCE(conn->broken),
		max(left, 0L));
	if (left < 0)
		return -EINTR;
	err = krc_meta_table_outcome(conn, nr, loads, &reads);
	if (mine)
		q->reads += reads;
	return err;
}

int krc_meta_table_lookup(struct krc_meta_conn *conn, struct krc_meta_query *q)
{
	u64 bucket[KRP_BUCKET_BYTES / sizeof(u64)];
	struct krp_lookup l;
	struct krp_read read;
	int step, err;
	u64 map_nr;

	if (!READ_ONCE(conn->table.map))
		return -EAGAIN;
	spin_lock(&conn->table.lock);
	krp_lookup_start(&l, conn->table.map, q->key);
	spin_unlock(&conn->table.lock);
	for (;;) {
		spin_lock(&conn->table.lock);
		step = krp_lookup_next(&l, conn->table.map, &read);
		map_nr = conn->table.nr;
		spin_unlock(&conn->table.lock);
		if (step == KRP_STEP_READ) {
			q->reads++;
			err = krc_meta_read(conn, q, &read, bucket);
			if (err)
				return err;
			spin_lock(&conn->table.lock);
			step = krp_lookup_feed(&l, conn->table.map, bucket, q->value);
			spin_unlock(&conn->table.lock);
		}
		if (step == KRP_STEP_ROOT)
			step = krc_meta_table_refresh(conn, map_nr, q) ?: KRP_STEP_READ;
		if (step != KRP_STEP_READ)
			return step;
	}
}

int krc_meta_table_pulse(struct krc_meta_conn *conn, struct krc_meta_query *q,
			 struct krp_pulse *ret_pulse)
{
	struct krp_read read = { conn->table.root_addr, conn->table.root_rkey,
				 sizeof(struct krp_root) };
	u64 now_ms = krc_meta_now_ms();
	struct krp_root root;
	bool due;
	int err;

	spin_lock(&conn->table.lock);
	due = krp_pulse_due(&conn->table.pulse, now_ms);
	spin_unlock(&conn->table.lock);
	if (!due)
		return 0;
	q->reads++;
	err = krc_meta_read(conn, q, &read, &root);
	if (err)
		return err;
	spin_lock(&conn->table.lock);
	/* another task may have READ later; a torn root is being written, so the server lives */
	err = now_ms < conn->table.pulse.looked_ms
		      ? -EAGAIN
		      : krp_pulse_feed(&conn->table.pulse, &root, conn->incarnation, now_ms);
	*ret_pulse = conn->table.pulse;
	spin_unlock(&conn->table.lock);
	if (err != -ESTALE)
		return !err;
	krc_meta_conn_fail(conn, err, "the root is of another incarnation of the server");
	return -ENOTCONN;
}
