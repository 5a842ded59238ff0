// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: what this node knows of a peer's memory regions: a bounded cache of entries of the
 * peer's directory, each valid until its lease runs out, and the check of a reference against
 * them. The peer's NIC does not refuse what passes the check, as long as the peer honours its
 * leases; so no program's mistake puts a shared initiator into the error state.
 *
 * An entry is hashed as soon as its READ begins, so that other requests wait for the same
 * READ. It is in the LRU list, and can be evicted, only while it is not being READ. No
 * function here sleeps for a READ: waiting requests are called back.
 *
 * Most peers lend a few regions, and there is a cache for each peer that a queue is connected
 * to: the hash begins with KRC_REMOTE_FEW chains inside the structure, and is replaced once by
 * a large one. Without memory for that the chains are longer.
 *
 * Locking: krc_remote.lock, BH-safe, for all of it; the pool's locks for READs nest in it.
 */
#include <linux/hash.h>
#include <linux/jiffies.h>
#include <linux/kref.h>
#include <linux/lockdep.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "hw/rail.h"
#include "mem/remote.h"
#include "pool/read.h"
#include "pool/silence.h"

#define KRC_REMOTE_MAX 1024 /* cached entries per peer */
#define KRC_REMOTE_LOG2 8 /* chains of the large hash */
#define KRC_REMOTE_FEW_LOG2 3 /* of the one that a cache begins with */
#define KRC_REMOTE_FEW (1 << KRC_REMOTE_FEW_LOG2)
#define KRC_REMOTE_GROW (2 * KRC_REMOTE_FEW) /* entries from which on it is large */
#define KRC_REMOTE_TORN_MAX 16 /* READs of an entry before a torn one counts as none */

/**
 * struct krc_ref - One entry of the peer's directory.
 * @remote: the peer; counted while the entry is being READ.
 * @node: in krc_remote.refs.
 * @list: in krc_remote.lru, or empty while the entry is being READ.
 * @grant: contents of the entry.
 * @valid: the entry has been READ; false while it is being READ.
 * @epoch: krc_remote.epoch when its READ began.
 * @torn: how often the READ returned a torn entry.
 * @read: its READ.
 * @waits: requests that wait for the READ: struct krc_remote_wait.
 */
struct krc_ref {
	struct krc_remote *remote;
	struct hlist_node node;
	struct list_head list;
	struct krc_grant grant;
	bool valid;
	u64 epoch;
	u32 torn;
	struct krc_read read;
	struct list_head waits;
};

/**
 * struct krc_remote - A peer.
 * @users: its owner, holders of krc_remote_hold(), and each entry that is being READ.
 * @rail: port through which the peer is reached; exists as long as the peer has users.
 * @pool: pool that READs; used only with @rail entered.
 * @standing: standing of its target; counted.
 * @mrdir_addr: remote address of its directory.
 * @mrdir_rkey: remote key of its directory.
 * @generation: generation of its record; entries of another generation are ignored.
 * @lock: guards the fields that follow.
 * @epoch: counts krc_remote_forget(): an entry whose READ began earlier is not cached.
 * @forgets: counts krc_remote_forget() and krc_remote_forget_token(); read without the lock.
 * @count: entries in the hash.
 * @log2: chains of @refs.
 * @lru: entries that are not being READ, the most recently used first.
 * @refs: all entries by token: @few, or memory of its own.
 * @few: see the top of this file.
 */
struct krc_remote {
	struct kref users;
	struct krc_rail *rail;
	struct krc_pool *pool;
	struct krc_standing *standing;
	u64 mrdir_addr;
	u32 mrdir_rkey;
	u64 generation;
	spinlock_t lock; /* see above */
	u64 epoch;
	u64 forgets;
	u32 count;
	u32 log2;
	struct list_head lru;
	struct hlist_head *refs;
	struct hlist_head few[KRC_REMOTE_FEW];
};

struct krc_remote *krc_remote_create(struct krc_rail *rail, struct krc_pool *pool,
				     const struct krp_value *value,
				     const struct krc_hw_address *address)
{
	struct krc_remote *remote = kzalloc(sizeof(*remote), GFP_KERNEL_ACCOUNT);

	if (!remote)
		return ERR_PTR(-ENOMEM);
	kref_init(&remote->users);
	remote->rail = rail;
	remote->pool = pool;
	remote->mrdir_addr = le64_to_cpu(value->dct.mrdir_addr);
	remote->mrdir_rkey = le32_to_cpu(value->dct.mrdir_rkey);
	remote->generation = le64_to_cpu(value->generation);
	spin_lock_init(&remote->lock);
	INIT_LIST_HEAD(&remote->lru);
	remote->refs = remote->few;
	remote->log2 = KRC_REMOTE_FEW_LOG2;
	remote->standing = krc_standing_get(rail, address, remote->mrdir_addr, remote->mrdir_rkey);
	if (!remote->standing) {
		kfree(remote);
		return ERR_PTR(-ENOMEM);
	}
	return remote;
}

struct krc_standing *krc_remote_standing(const struct krc_remote *remote)
{
	return remote->standing;
}

static struct hlist_head *krc_ref_bucket(struct krc_remote *remote, u64 token)
{
	return &remote->refs[hash_64(token, remote->log2)];
}

static struct krc_ref *krc_ref_find(struct krc_remote *remote, u64 token)
{
	struct krc_ref *ref;

	hlist_for_each_entry(ref, krc_ref_bucket(remote, token), node)
		if (ref->grant.token == token)
			return ref;
	return NULL;
}

static void krc_ref_drop(struct krc_remote *remote, struct krc_ref *ref)
{
	lockdep_assert_held(&remote->lock);
	hlist_del(&ref->node);
	list_del(&ref->list);
	remote->count--;
	kfree(ref);
}

void krc_remote_forget(struct krc_remote *remote)
{
	struct krc_ref *ref, *next;

	spin_lock_bh(&remote->lock);
	remote->epoch++;
	WRITE_ONCE(remote->forgets, remote->forgets + 1);
	list_for_each_entry_safe(ref, next, &remote->lru, list)
		krc_ref_drop(remote, ref);
	spin_unlock_bh(&remote->lock);
}

void krc_remote_forget_token(struct krc_remote *remote, u64 token)
{
	struct krc_ref *ref;

	spin_lock_bh(&remote->lock);
	WRITE_ONCE(remote->forgets, remote->forgets + 1);
	ref = krc_ref_find(remote, token);
	if (ref && ref->valid)
		krc_ref_drop(remote, ref);
	else if (ref)
		ref->epoch--; /* nor cache the result of the READ in flight */
	spin_unlock_bh(&remote->lock);
}

u64 krc_remote_forgets(const struct krc_remote *remote)
{
	return READ_ONCE(remote->forgets);
}

static void krc_remote_free(struct kref *users)
{
	struct krc_remote *remote = container_of(users, struct krc_remote, users);

	krc_remote_forget(remote);
	WARN_ON(remote->count);
	krc_standing_put(remote->standing);
	if (remote->refs != remote->few)
		kfree(remote->refs);
	kfree(remote);
}

void krc_remote_hold(struct krc_remote *remote)
{
	kref_get(&remote->users);
}

void krc_remote_put(struct krc_remote *remote)
{
	kref_put(&remote->users, krc_remote_free);
}

u32 krc_remote_regions(struct krc_remote *remote)
{
	return READ_ONCE(remote->count);
}

/* Move the entries to the large hash, if there is memory for it now. */
static void krc_remote_grow(struct krc_remote *remote)
{
	struct hlist_head *refs = kcalloc(1 << KRC_REMOTE_LOG2, sizeof(*refs),
					  GFP_NOWAIT | __GFP_NOWARN | __GFP_ACCOUNT);
	struct hlist_node *next;
	struct krc_ref *ref;
	u32 i;

	lockdep_assert_held(&remote->lock);
	if (!refs)
		return;
	remote->refs = refs;
	remote->log2 = KRC_REMOTE_LOG2;
	for (i = 0; i < KRC_REMOTE_FEW; i++)
		hlist_for_each_entry_safe(ref, next, &remote->few[i], node) {
			hlist_del(&ref->node);
			hlist_add_head(&ref->node, krc_ref_bucket(remote, ref->grant.token));
		}
}

/* Hash a new entry, which the caller READs; evict one if the cache is full. */
static void krc_ref_add(struct krc_remote *remote, struct krc_ref *ref)
{
	lockdep_assert_held(&remote->lock);
	if (remote->count >= KRC_REMOTE_MAX && !list_empty(&remote->lru))
		krc_ref_drop(remote, list_last_entry(&remote->lru, struct krc_ref, list));
	if (remote->count >= KRC_REMOTE_GROW && remote->refs == remote->few)
		krc_remote_grow(remote);
	hlist_add_head(&ref->node, krc_ref_bucket(remote, ref->grant.token));
	remote->count++;
}

/* Take over the contents of an entry. Return: 0, or -EBADR (of another generation). */
static int krc_ref_fill(struct krc_ref *ref, const struct krp_mrdir_entry *entry)
{
	unsigned long start = ref->read.start;
	u32 lease_ms = le32_to_cpu(entry->lease_ms);

	if (le64_to_cpu(entry->generation) != ref->remote->generation)
		return -EBADR;
	ref->grant.addr = le64_to_cpu(entry->addr);
	ref->grant.length = le64_to_cpu(entry->length);
	ref->grant.rkey = le32_to_cpu(entry->rkey);
	ref->grant.access = entry->access;
	ref->grant.stay = msecs_to_jiffies(le32_to_cpu(entry->margin_ms) / 2);
	/* round down: @start may lie at the end of its tick */
	ref->grant.until = start + max(msecs_to_jiffies(lease_ms), 3UL) - 2;
	return 0;
}

/* The READ of an entry has ended: cache or drop the entry, and call the waiting requests. */
static void krc_ref_end(struct krc_ref *ref, int err)
{
	struct krc_remote *remote = ref->remote;
	struct krc_remote_wait *wait, *next;
	LIST_HEAD(waits);

	spin_lock_bh(&remote->lock);
	list_splice_init(&ref->waits, &waits);
	if (err || ref->epoch != remote->epoch) {
		krc_ref_drop(remote, ref);
	} else {
		ref->valid = true;
		list_add(&ref->list, &remote->lru);
	}
	list_for_each_entry_safe(wait, next, &waits, list) {
		list_del_init(&wait->list);
		wait->ready(wait, err);
	}
	spin_unlock_bh(&remote->lock);
	krc_remote_put(remote);
}

/* krc_read.done: a torn entry, which the peer is writing, is READ again. */
static bool krc_ref_arrived(struct krc_read *read, int err, const void *bytes)
{
	struct krc_ref *ref = container_of(read, struct krc_ref, read);
	struct krp_mrdir_entry entry;

	if (!err) {
		memcpy(&entry, bytes, sizeof(entry));
		switch (krp_mrdir_check(&entry, ref->grant.token)) {
		case KRP_MRDIR_HIT:
			err = krc_ref_fill(ref, &entry);
			break;
		case KRP_MRDIR_TORN:
			if (++ref->torn < KRC_REMOTE_TORN_MAX)
				return true;
			fallthrough; /* torn for so long: no directory */
		case KRP_MRDIR_NONE:
			err = -EBADR;
			break;
		}
	}
	krc_ref_end(ref, err);
	return false;
}

static struct krc_ref *krc_ref_make(struct krc_remote *remote, u64 token)
{
	struct krc_ref *ref = kzalloc(sizeof(*ref), GFP_KERNEL_ACCOUNT);

	if (!ref)
		return NULL;
	ref->remote = remote;
	ref->grant.token = token;
	INIT_LIST_HEAD(&ref->list);
	INIT_LIST_HEAD(&ref->waits);
	ref->read = (struct krc_read){
		.standing = remote->standing,
		.remote_addr =
			remote->mrdir_addr + (u64)krp_mrdir_slot(token) * KRP_MRDIR_ENTRY_BYTES,
		.rkey = remote->mrdir_rkey,
		.bytes = KRP_MRDIR_ENTRY_BYTES,
		.done = krc_ref_arrived,
	};
	return ref;
}

/*
 * Wait for the entry of @token; @made, if not NULL, is added if there is none. Return: 0: the
 * caller must READ @*ret_ref; -EINPROGRESS: it is being READ; -EAGAIN: it is valid; -ENOMEM:
 * there is none, and @made is NULL.
 */
static int krc_ref_claim(struct krc_remote *remote, u64 token, struct krc_remote_wait *wait,
			 struct krc_ref *made, struct krc_ref **ret_ref)
{
	struct krc_ref *ref = krc_ref_find(remote, token);

	lockdep_assert_held(&remote->lock);
	if (ref && ref->valid && time_before(jiffies, ref->grant.until))
		return -EAGAIN;
	if (!ref && !made)
		return -ENOMEM;
	if (ref && !ref->valid) {
		list_add_tail(&wait->list, &ref->waits);
		krc_pool_read_also(remote->pool, &ref->read, wait->payer);
		return -EINPROGRESS;
	}
	if (ref) {
		ref->valid = false;
		list_del_init(&ref->list);
	} else {
		ref = made;
		krc_ref_add(remote, ref);
	}
	ref->torn = 0;
	ref->epoch = remote->epoch;
	ref->read.payer = wait->payer;
	list_add_tail(&wait->list, &ref->waits);
	krc_remote_hold(remote); /* until krc_ref_end() */
	*ret_ref = ref;
	return 0;
}

/*
 * krc_ref_claim(), and if that says that the entry is to be READ by the caller, begin to. @*made
 * becomes NULL if it was added. Return: as krc_remote_fetch(); -ENOMEM also if @*made is NULL and
 * has to be made.
 */
static int krc_remote_ask(struct krc_remote *remote, u64 token, struct krc_remote_wait *wait,
			  struct krc_ref **made)
{
	struct krc_ref *ref = NULL;
	int err;

	/* others may wait for this READ already: no preemption before it is begun */
	lockdep_assert(softirq_count());
	spin_lock(&remote->lock);
	err = krc_ref_claim(remote, token, wait, *made, &ref);
	spin_unlock(&remote->lock);
	if (err)
		return err;
	if (ref == *made)
		*made = NULL;
	err = krc_pool_read(remote->pool, &ref->read, &wait->index);
	if (!err)
		return -EINPROGRESS;
	spin_lock(&remote->lock);
	list_del_init(&wait->list); /* the return value tells the caller instead */
	spin_unlock(&remote->lock);
	krc_ref_end(ref, err);
	return err;
}

/* READ the entry of a token, or wait for a READ in flight. Return: never 0. */
static int krc_remote_fetch(struct krc_remote *remote, u64 token, struct krc_remote_wait *wait)
{
	struct krc_ref *made = NULL;
	int err;

	wait->token = token;
	local_bh_disable();
	err = krc_remote_ask(remote, token, wait, &made);
	local_bh_enable();
	if (err != -ENOMEM)
		return err;
	made = krc_ref_make(remote, token);
	if (!made)
		return -ENOMEM;
	local_bh_disable();
	err = krc_remote_ask(remote, token, wait, &made);
	local_bh_enable();
	kfree(made); /* not NULL: another task has added one meanwhile */
	return err;
}

void krc_remote_wait_init(struct krc_remote_wait *wait, const void *payer,
			  void (*ready)(struct krc_remote_wait *wait, int err))
{
	INIT_LIST_HEAD(&wait->list);
	wait->payer = payer;
	wait->ready = ready;
	wait->index = KRC_READ_WAITS;
}

/* Cancel the READ of an entry without waits, unless it is posted. Return: true if cancelled. */
static bool krc_ref_abandon(struct krc_remote *remote, struct krc_ref *ref)
{
	bool abandoned;

	lockdep_assert_held(&remote->lock);
	if (!ref || ref->valid || !list_empty(&ref->waits) || !krc_rail_enter(remote->rail))
		return false;
	abandoned = krc_pool_unread(remote->pool, &ref->read);
	krc_rail_exit(remote->rail);
	if (abandoned)
		krc_ref_drop(remote, ref);
	return abandoned;
}

void krc_remote_unwait(struct krc_remote *remote, struct krc_remote_wait *wait)
{
	bool abandoned = false;

	spin_lock_bh(&remote->lock);
	if (!list_empty(&wait->list)) {
		list_del_init(&wait->list);
		abandoned = krc_ref_abandon(remote, krc_ref_find(remote, wait->token));
	}
	spin_unlock_bh(&remote->lock);
	if (abandoned)
		krc_remote_put(remote); /* in place of krc_ref_end() */
}

/* Check against @grant or the cache. Return: -EAGAIN if neither has a valid entry. */
static int krc_remote_try(struct krc_remote *remote, u64 token, u64 addr, u32 length, u32 access,
			  struct krc_grant *grant)
{
	struct krc_ref *ref;
	int err = -EAGAIN;

	if (krc_grant_holds(grant, token))
		return krc_grant_check(grant, addr, length, access);
	spin_lock_bh(&remote->lock);
	ref = krc_ref_find(remote, token);
	if (ref && ref->valid && time_before(jiffies, ref->grant.until)) {
		err = krc_grant_check(&ref->grant, addr, length, access);
		list_move(&ref->list, &remote->lru);
		if (!err)
			*grant = ref->grant;
	}
	spin_unlock_bh(&remote->lock);
	return err;
}

int krc_remote_get(struct krc_remote *remote, u64 token, u64 addr, u32 length, u32 access,
		   struct krc_grant *grant, struct krc_remote_wait *wait)
{
	int err;

	/* no READ without a directory, nor for an invalid token */
	if (!krp_mrdir_token_valid(token) || !remote->mrdir_addr || !remote->mrdir_rkey)
		return -EBADR;
	do {
		err = krc_remote_try(remote, token, addr, length, access, grant);
		if (err == -EAGAIN && wait)
			err = krc_remote_fetch(remote, token, wait);
		/* -EAGAIN of fetch: it has become valid meanwhile */
	} while (err == -EAGAIN && wait);
	return err;
}
