/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the interface of meta/table.c: what a connection knows of a MetaServer's table, and look-ups
 * in it.
 * Locking: see meta/meta_priv.h.
 */
#ifndef KRC_META_TABLE_H
#define KRC_META_TABLE_H

#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "krp_pulse.h"
#include "meta/map.h"

struct krc_meta_conn;
struct krc_meta_query;

/**
 * struct krc_meta_table - What a connection knows of the server's table; meta/table.c.
 * Locks: @lock, but for @root_addr, @root_rkey and @settling, which do not change.
 * @work: loads a map, based on @map, which it alone replaces.
 * @wait: woken when a load is over, and when the connection is broken.
 * @lock: see the head of this file.
 * @map: copy of root, segments and directory; NULL: too large, use LOOKUP messages.
 * @nr: counts maps loaded.
 * @loads: counts loads that are over, with or without a map.
 * @err: outcome of the last: 0 or negative errno.
 * @reads: READs of the last.
 * @loading: @work is queued or runs.
 * @settling: WELCOME has said that the server settles.
 * @pulse: heartbeat as of the last READ of the root.
 * @root_addr: remote address of the root.
 * @root_rkey: its remote key.
 */
struct krc_meta_table {
	struct work_struct work;
	wait_queue_head_t wait;
	spinlock_t lock;
	struct krp_map *map;
	u64 nr;
	u64 loads;
	int err;
	u32 reads;
	bool loading;
	bool settling;
	struct krp_pulse pulse;
	u64 root_addr;
	u32 root_rkey;
};

/**
 * krc_meta_table_begin() - Have the first map of a connection loaded.
 * @conn: connection, with the place of the root.
 *
 * What comes of it is told to krc_meta_session_loaded(). Context: the work item.
 */
void krc_meta_table_begin(struct krc_meta_conn *conn);

/**
 * krc_meta_table_work() - Work: load a map, tell those that wait, and drop the connection.
 * @work: krc_meta_table.work.
 *
 * Sleeps for READs, for each at most krc_meta_read_timeout(): then the session fails.
 * Context: process.
 */
void krc_meta_table_work(struct work_struct *work);

/**
 * krc_meta_table_lookup() - Look a record up on one server by READs.
 * @conn: connection, to which the caller has a reference.
 * @q: what is asked, until when, and on whose account; the number of READs is added to it,
 *	whatever the outcome, and value is set with KRP_STEP_HIT, else undefined.
 *
 * Context: sleeps, killable.
 * Return: KRP_STEP_HIT; KRP_STEP_MISS; -EAGAIN: ask by message (krc_meta_ask()); -ENOTCONN;
 * -ETIMEDOUT: the server is silent; -ETIME: the caller's time is over, which the server is not to
 * blame for; -EINTR (killed).
 */
int krc_meta_table_lookup(struct krc_meta_conn *conn, struct krc_meta_query *q);

/**
 * krc_meta_table_pulse() - After a miss, READ the heartbeat in the root to see whether the
 * server's process lives, if the last one is too old to tell; see krp_pulse.h.
 * @conn: connection, to which the caller has a reference.
 * @q: as at krc_meta_table_lookup(); its key and value are not used.
 * @ret_pulse: out with 0 after a READ, and with 1; else untouched.
 *
 * Context: sleeps, killable.
 * Return: 1: @ret_pulse is of this READ; 0: it is not; or an errno as of
 * krc_meta_table_lookup().
 */
int krc_meta_table_pulse(struct krc_meta_conn *conn, struct krc_meta_query *q,
			 struct krp_pulse *ret_pulse);

#endif /* KRC_META_TABLE_H */
