/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the interface of meta/read.c: READs of a connection to a MetaServer, their slots and buffers.
 * Locking: see meta/meta_priv.h.
 */
#ifndef KRC_META_READ_H
#define KRC_META_READ_H

#include <linux/dma-direction.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include "base/turns.h"
#include "krp_lookup.h"

#define KRC_META_READS 32 /* most READs of look-ups in flight to a server */
#define KRC_META_BULK_BYTES 16384 /* longest READ while a map is loaded */

struct krc_meta_conn;
struct krc_meta_fetch;

/**
 * struct krc_meta_buf - DMA-mapped memory.
 * @p: memory; NULL: not allocated.
 * @dma: its DMA address.
 * @bytes: length.
 * @dir: direction of the mapping.
 */
struct krc_meta_buf {
	void *p;
	u64 dma;
	size_t bytes;
	enum dma_data_direction dir;
};

/**
 * struct krc_meta_query - A look-up of a task, over all servers that it asks.
 * @key: name of the record.
 * @payer: on whose account, as in base/turns.h.
 * @deadline: jiffies at which it ends.
 * @value: out, with a hit: the value.
 * @reads: READs so far.
 */
struct krc_meta_query {
	const struct krp_key *key;
	const void *payer;
	unsigned long deadline;
	struct krp_value *value;
	u32 reads;
};

/**
 * struct krc_meta_read - A READ slot with its buffer. Locks: slots.lock.
 * @cqe: its completion.
 * @conn: its connection.
 * @data: buffer.
 * @dma: its DMA address.
 * @fetch: who waits for what is READ; NULL: nobody does any more.
 * @posted: the device owns the buffer; else the slot is free.
 * @blocked: nobody polls for it; counted in krc_meta_cq.unpolled.
 */
struct krc_meta_read {
	struct ib_cqe cqe;
	struct krc_meta_conn *conn;
	void *data;
	u64 dma;
	struct krc_meta_fetch *fetch;
	bool posted;
	bool blocked;
};

/**
 * struct krc_meta_slots - READs of a connection; meta/read.c.
 * @lock: see the head of this file.
 * @line: READs that wait for a slot; while one does, no slot is free.
 * @at: slots; the last is that of krc_meta_table.work.
 * @buf: their buffers, KRP_BUCKET_BYTES each.
 * @bulk: buffer of the last one, KRC_META_BULK_BYTES.
 */
struct krc_meta_slots {
	spinlock_t lock;
	struct krc_line line;
	struct krc_meta_read at[KRC_META_READS + 1];
	struct krc_meta_buf buf;
	struct krc_meta_buf bulk;
};

/**
 * krc_meta_read() - READ at most a bucket of the server's memory.
 * @conn: connection, to which the caller has a reference.
 * @q: on whose account, and until when; nothing is counted.
 * @what: where, and how many bytes.
 * @into: out: the bytes; untrusted.
 *
 * Context: sleeps, killable.
 * Return: 0; %-ENOTCONN; %-ETIMEDOUT: the server is silent, and the session has failed by it;
 * %-ETIME: the deadline is over, which the server is not to blame for; %-EINTR (killed).
 */
int krc_meta_read(struct krc_meta_conn *conn, const struct krc_meta_query *q,
		  const struct krp_read *what, void *into);

/**
 * krc_meta_read_bulk() - READ a part of the map, in the slot that is kept for that.
 * @conn: connection, to which the caller has a reference.
 * @what: where, and how many bytes: KRC_META_BULK_BYTES at most.
 * @into: out: the bytes; untrusted.
 *
 * Context: the connection's work item; sleeps, at most krc_meta_read_timeout().
 * Return: 0; %-ENOTCONN; %-ETIMEDOUT, as above.
 */
int krc_meta_read_bulk(struct krc_meta_conn *conn, const struct krp_read *what, void *into);

/**
 * krc_meta_reads_stop() - Let no further READ or receive be posted, and no task wait for a slot.
 * @conn: connection.
 *
 * Context: the work item.
 */
void krc_meta_reads_stop(struct krc_meta_conn *conn);

/**
 * krc_meta_reads_end() - Fail the READs that did not complete before the queue pair went.
 * @conn: connection, after krc_meta_conn_stop().
 *
 * Context: the work item.
 */
void krc_meta_reads_end(struct krc_meta_conn *conn);

/**
 * krc_meta_read_done() - Completion of a READ: struct ib_cqe.done of a slot.
 * @cq: completion queue.
 * @wc: completion.
 *
 * Context: softirq, or BHs off; without meta.lock and slots.lock.
 */
void krc_meta_read_done(struct ib_cq *cq, struct ib_wc *wc);

#endif /* KRC_META_READ_H */
