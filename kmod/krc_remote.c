// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: what this node knows of a peer's memory regions: a bounded cache of entries
 * of the peer's directory, each good until its lease runs out, and the check of a
 * reference against them. What this lets pass, the peer's NIC does not refuse, as long
 * as the peer keeps its word; so no fault of one program reaches a shared initiator.
 *
 * An entry is in the hash from the moment at which somebody begins to READ it, so that
 * others wait for the same READ; it is in the list of use only when it is not being
 * READ, and only there can it be forgotten.
 *
 * Locking: krc_remote.lock, BH-safe, for all of it; never held while READing.
 */
#include <linux/hash.h>
#include <linux/jiffies.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "krc_mr.h"
#include "krc_node.h"
#include "krc_pool.h"

#define KRC_REMOTE_MAX 1024 /* entries cached of a peer */
#define KRC_REMOTE_LOG2 8
#define KRC_REMOTE_TORN_MAX 16 /* READs of an entry that is never whole */
#define KRC_REMOTE_READS 8 /* under way at once: all peers of a port share its cells */

/**
 * struct krc_ref - One entry of the peer's directory.
 * @node: in krc_remote.refs.
 * @list: in krc_remote.lru, or empty while it is being READ.
 * @grant: what it says.
 * @valid: it has been READ at all.
 */
struct krc_ref {
	struct hlist_node node;
	struct list_head list;
	struct krc_grant grant;
	bool valid;
};

/**
 * struct krc_remote - A peer.
 * @port: through which it is reached.
 * @address: its target.
 * @mrdir_addr: its directory.
 * @mrdir_rkey: key of that.
 * @generation: of the record; entries of another are not its.
 * @lock: guards what follows.
 * @silent: it did not answer when it was last asked; no lock, a hint.
 * @epoch: counts krc_remote_forget(): what was READ before is not remembered.
 * @count: entries in the hash.
 * @reading: READs under way.
 * @lru: entries that are not being READ, the most recently used first.
 * @refs: all entries by token.
 * @read: woken when a READ has ended.
 */
struct krc_remote {
	struct krc_port *port;
	struct krc_hw_address address;
	u64 mrdir_addr;
	u32 mrdir_rkey;
	u64 generation;
	spinlock_t lock; /* see above */
	bool silent;
	u64 epoch;
	u32 count;
	u32 reading;
	struct list_head lru;
	struct hlist_head refs[1 << KRC_REMOTE_LOG2];
	wait_queue_head_t read;
};

struct krc_remote *krc_remote_create(struct krc_port *port, const struct krp_value *value,
				     const struct krc_hw_address *address)
{
	struct krc_remote *remote = kzalloc(sizeof(*remote), GFP_KERNEL_ACCOUNT);

	if (!remote)
		return ERR_PTR(-ENOMEM);
	remote->port = port;
	remote->address = *address;
	remote->mrdir_addr = le64_to_cpu(value->dct.mrdir_addr);
	remote->mrdir_rkey = le32_to_cpu(value->dct.mrdir_rkey);
	remote->generation = le64_to_cpu(value->generation);
	spin_lock_init(&remote->lock);
	INIT_LIST_HEAD(&remote->lru);
	init_waitqueue_head(&remote->read);
	return remote;
}

static struct hlist_head *krc_ref_bucket(struct krc_remote *remote, u64 token)
{
	return &remote->refs[hash_64(token, KRC_REMOTE_LOG2)];
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
	list_for_each_entry_safe(ref, next, &remote->lru, list)
		krc_ref_drop(remote, ref);
	spin_unlock_bh(&remote->lock);
}

void krc_remote_destroy(struct krc_remote *remote)
{
	krc_remote_forget(remote);
	WARN_ON(remote->count);
	kfree(remote);
}

bool krc_remote_silent(const struct krc_remote *remote)
{
	return READ_ONCE(remote->silent);
}

void krc_remote_set_silent(struct krc_remote *remote, bool silent)
{
	if (READ_ONCE(remote->silent) != silent)
		WRITE_ONCE(remote->silent, silent);
}

u32 krc_remote_regions(struct krc_remote *remote)
{
	return READ_ONCE(remote->count);
}

/* Whether it allows what is asked for. */
static int krc_grant_check(const struct krc_grant *grant, u64 addr, u32 length, u32 access)
{
	if (access & ~grant->access)
		return -EPERM;
	if (!krp_mrdir_inside(grant->addr, grant->length, addr, length))
		return -EOVERFLOW;
	return 0;
}

/* A new entry in the hash, which its maker READs. Under the lock. */
static void krc_ref_add(struct krc_remote *remote, struct krc_ref *ref)
{
	if (remote->count >= KRC_REMOTE_MAX && !list_empty(&remote->lru))
		krc_ref_drop(remote, list_last_entry(&remote->lru, struct krc_ref, list));
	hlist_add_head(&ref->node, krc_ref_bucket(remote, ref->grant.token));
	remote->count++;
}

/* Take over what an entry of the directory says. Return 0 or -EBADR. */
static int krc_ref_fill(struct krc_ref *ref, const struct krp_mrdir_entry *entry, u64 generation,
			unsigned long start)
{
	u32 lease_ms = le32_to_cpu(entry->lease_ms);

	if (le64_to_cpu(entry->generation) != generation)
		return -EBADR;
	ref->grant.addr = le64_to_cpu(entry->addr);
	ref->grant.length = le64_to_cpu(entry->length);
	ref->grant.rkey = le32_to_cpu(entry->rkey);
	ref->grant.access = entry->access;
	/* the tick that start was read in may be nearly over: rounded to the safe side */
	ref->grant.until = start + max(msecs_to_jiffies(lease_ms), 3UL) - 2;
	return 0;
}

/* READ the entry of a token until it is whole. */
static int krc_ref_read(struct krc_remote *remote, struct krc_ref *ref, unsigned long deadline)
{
	u64 slot = krp_mrdir_slot(ref->grant.token);
	u64 addr = remote->mrdir_addr + slot * KRP_MRDIR_ENTRY_BYTES;
	struct krp_mrdir_entry entry;
	unsigned long start;
	int i, err;

	for (i = 0; i < KRC_REMOTE_TORN_MAX; i++) {
		start = jiffies;
		if (time_after_eq(start, deadline))
			return -ETIMEDOUT;
		err = krc_pool_read(remote->port->pool, &remote->address, krc_remote_silent(remote),
				    addr, remote->mrdir_rkey, &entry, sizeof(entry),
				    jiffies_to_msecs(deadline - start));
		if (err)
			return err;
		krc_remote_set_silent(remote, false);
		switch (krp_mrdir_check(&entry, ref->grant.token)) {
		case KRP_MRDIR_HIT:
			return krc_ref_fill(ref, &entry, remote->generation, start);
		case KRP_MRDIR_NONE:
			return -EBADR;
		case KRP_MRDIR_TORN:
			break;
		}
		cond_resched();
	}
	return -EBADR; /* what is there is no directory */
}

static bool krc_remote_begin(struct krc_remote *remote)
{
	bool may;

	spin_lock_bh(&remote->lock);
	may = remote->reading < KRC_REMOTE_READS;
	remote->reading += may;
	spin_unlock_bh(&remote->lock);
	return may;
}

/* Be one of the few that READ: a peer that is silent must not hold the cells of all. */
static int krc_remote_turn(struct krc_remote *remote, unsigned long deadline)
{
	long left = max((long)(deadline - jiffies), 1L);

	left = wait_event_killable_timeout(remote->read, krc_remote_begin(remote), left);
	if (left < 0)
		return -EINTR;
	return left ? 0 : -ETIMEDOUT;
}

/*
 * READ the entry of a token and remember it. The entry is in the hash and in no list; it
 * is not there any more if this fails.
 */
static int krc_ref_load(struct krc_remote *remote, struct krc_ref *ref, unsigned long deadline,
			u64 epoch)
{
	int turn = krc_remote_turn(remote, deadline);
	int err = turn ?: krc_ref_read(remote, ref, deadline);

	spin_lock_bh(&remote->lock);
	remote->reading -= !turn;
	if (err || epoch != remote->epoch) {
		krc_ref_drop(remote, ref);
	} else {
		ref->valid = true;
		list_add(&ref->list, &remote->lru);
	}
	spin_unlock_bh(&remote->lock);
	wake_up_all(&remote->read);
	return err;
}

/* An entry for @token that the caller must READ, or NULL: somebody else does. */
static struct krc_ref *krc_ref_claim(struct krc_remote *remote, struct krc_ref *made,
				     u64 *ret_epoch)
{
	struct krc_ref *ref;

	spin_lock_bh(&remote->lock);
	ref = krc_ref_find(remote, made->grant.token);
	if (!ref) {
		krc_ref_add(remote, made);
		ref = made;
	} else if (ref->valid && !time_before(jiffies, ref->grant.until)) {
		ref->valid = false;
		list_del_init(&ref->list);
	} else {
		ref = NULL;
	}
	*ret_epoch = remote->epoch;
	spin_unlock_bh(&remote->lock);
	return ref;
}

/* Whether nobody READs the entry of a token (now). */
static bool krc_ref_idle(struct krc_remote *remote, u64 token)
{
	struct krc_ref *ref;
	bool idle;

	spin_lock_bh(&remote->lock);
	ref = krc_ref_find(remote, token);
	idle = !ref || ref->valid;
	spin_unlock_bh(&remote->lock);
	return idle;
}

/* Have the entry of a token READ, by us or by who does it already. */
static int krc_remote_fetch(struct krc_remote *remote, u64 token, unsigned long deadline)
{
	struct krc_ref *made, *ref;
	long left;
	u64 epoch;

	made = kzalloc(sizeof(*made), GFP_KERNEL_ACCOUNT);
	if (!made)
		return -ENOMEM;
	INIT_LIST_HEAD(&made->list);
	made->grant.token = token;
	ref = krc_ref_claim(remote, made, &epoch);
	if (ref != made)
		kfree(made);
	if (ref)
		return krc_ref_load(remote, ref, deadline, epoch);

	left = deadline - jiffies;
	if (left <= 0)
		return -ETIMEDOUT;
	left = wait_event_killable_timeout(remote->read, krc_ref_idle(remote, token), left);
	if (left < 0)
		return -EINTR;
	return left ? 0 : -ETIMEDOUT;
}

/* The answer from the cache, or -EAGAIN. */
static int krc_remote_try(struct krc_remote *remote, u64 token, u64 addr, u32 length, u32 access,
			  struct krc_grant *grant)
{
	struct krc_ref *ref;
	int err = -EAGAIN;

	if (grant->token == token && time_before(jiffies, grant->until))
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
		   u32 timeout_ms, struct krc_grant *grant)
{
	unsigned long deadline;
	int err;

	/* neither a peer without a directory nor a slot that it may not have is READ */
	if (!krp_mrdir_token_valid(token) || !remote->mrdir_addr || !remote->mrdir_rkey)
		return -EBADR;
	err = krc_remote_try(remote, token, addr, length, access, grant);
	if (err != -EAGAIN || !timeout_ms)
		return err;

	deadline = jiffies + msecs_to_jiffies(timeout_ms);
	do {
		err = krc_remote_fetch(remote, token, deadline);
		if (err)
			return err;
		/* again if its lease ran out on the way, or it was forgotten */
		err = krc_remote_try(remote, token, addr, length, access, grant);
	} while (err == -EAGAIN && time_before(jiffies, deadline));
	return err == -EAGAIN ? -ETIMEDOUT : err;
}
