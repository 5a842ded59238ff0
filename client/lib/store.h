/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The records a context keeps published, and what each server knows of them.
 *
 * No RDMA here. A withdrawn record stays in the store as "gone" until every server
 * that may have it has acknowledged the withdrawal: all records of an owner share one
 * lease, so a server that was not told would keep the record as long as the others.
 *
 * Locking: none; the caller holds ctx.lock.
 */
#ifndef KRL_STORE_H
#define KRL_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "client/lib/config.h"
#include "proto/krp_table.h"

/**
 * enum krl_at - What a server knows of a record's present version.
 * @KRL_AT_DIRTY: nothing; a PUBLISH or WITHDRAW is to be sent.
 * @KRL_AT_SENT: the request is sent or queued, not yet answered.
 * @KRL_AT_ACKED: the server acknowledged it.
 * @KRL_AT_REFUSED: the server refused it; sent again when the lease is renewed.
 * @KRL_AT_STATES: how many there are.
 */
enum krl_at {
	KRL_AT_DIRTY,
	KRL_AT_SENT,
	KRL_AT_ACKED,
	KRL_AT_REFUSED,
	KRL_AT_STATES,
};

/**
 * struct krl_record - A record.
 * @next: chain of the hash.
 * @pos: place in store.records.
 * @key: name.
 * @value: value.
 * @gone: withdrawn; kept until the servers know.
 * @version: new with every change, never 0.
 * @gone_ns: when a gone record can be forgotten, because every lease is over.
 * @at: enum krl_at of each server.
 */
struct krl_record {
	struct krl_record *next;
	unsigned int pos;
	struct krp_key key;
	struct krp_value value;
	bool gone;
	uint64_t version;
	uint64_t gone_ns;
	uint8_t at[];
};

/**
 * struct krl_store - All records of a context.
 * @servers_nr: servers.
 * @records: dense array.
 * @nr: its length.
 * @room: its capacity.
 * @chains: hash, a power of two of chains.
 * @chains_nr: how many.
 * @version: the last one assigned.
 * @count: number of records, by server, gone or not, and enum krl_at.
 */
struct krl_store {
	unsigned int servers_nr;
	struct krl_record **records;
	unsigned int nr;
	unsigned int room;
	struct krl_record **chains;
	unsigned int chains_nr;
	uint64_t version;
	unsigned int count[KRL_SERVERS_MAX][2][KRL_AT_STATES];
};

/** krl_store_init() - An empty store. @store: to set up. @servers_nr: up to KRL_SERVERS_MAX. */
void krl_store_init(struct krl_store *store, unsigned int servers_nr);

/** krl_store_fini() - Free all memory. @store: store. */
void krl_store_fini(struct krl_store *store);

/**
 * krl_store_find() - Find a record.
 * @store: store.
 * @key: name.
 *
 * Return: the record, also one that is gone, or NULL.
 */
struct krl_record *krl_store_find(const struct krl_store *store, const struct krp_key *key);

/**
 * krl_store_put() - Insert a record, or change its value.
 * @store: store.
 * @key: name.
 * @value: value.
 *
 * The record gets a new version; it is not gone, and dirty at every server.
 *
 * Return: the record, or NULL without memory.
 */
struct krl_record *krl_store_put(struct krl_store *store, const struct krp_key *key,
				 const struct krp_value *value);

/**
 * krl_store_gone() - Mark a record as withdrawn.
 * @store: store.
 * @rec: record; gets a new version and is dirty at every server.
 * @gone_ns: when it can be forgotten in any case.
 */
void krl_store_gone(struct krl_store *store, struct krl_record *rec, uint64_t gone_ns);

/** krl_store_remove() - Forget a record. @store: store. @rec: record; freed. */
void krl_store_remove(struct krl_store *store, struct krl_record *rec);

/**
 * krl_store_set() - Set what a server knows of a record.
 * @store: store.
 * @rec: record.
 * @server: index.
 * @at: what it knows.
 */
void krl_store_set(struct krl_store *store, struct krl_record *rec, unsigned int server,
		   enum krl_at at);

/**
 * krl_store_set_all() - Change what a server knows of all records.
 * @store: store.
 * @server: index.
 * @from: bits 1 << enum krl_at of the states to change.
 * @to: new state.
 */
void krl_store_set_all(struct krl_store *store, unsigned int server, unsigned int from,
		       enum krl_at to);

/**
 * krl_store_dirty() - Next record that must be sent to a server.
 * @store: store.
 * @server: index.
 * @cursor: where to begin, updated; any value.
 *
 * Return: a dirty record, or NULL if there is none.
 */
struct krl_record *krl_store_dirty(struct krl_store *store, unsigned int server,
				   unsigned int *cursor);

/**
 * krl_store_settled() - Forget a gone record if every server has acknowledged that.
 * @store: store.
 * @rec: record; freed if so.
 *
 * Return: true if it was forgotten.
 */
bool krl_store_settled(struct krl_store *store, struct krl_record *rec);

/** krl_store_expire() - Forget gone records whose time is over. @store: store. @now_ns: time. */
void krl_store_expire(struct krl_store *store, uint64_t now_ns);

/** krl_store_live() - Count a server's records in a state, without gone ones. @store: store.
 * @server: index. @at: state. Return: how many.
 */
static inline unsigned int krl_store_live(const struct krl_store *store, unsigned int server,
					  enum krl_at at)
{
	return store->count[server][0][at];
}

#endif /* KRL_STORE_H */
