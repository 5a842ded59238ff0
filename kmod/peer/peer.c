// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the table of peers, those in use and the idle ones kept for the next connect.
 * Locking: krc_peers_lock for the table, the counts of users and both lists.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/hashtable.h>
#include <linux/jhash.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "base/log.h"
#include "mem/remote.h"
#include "meta/cache.h"
#include "node/port.h"
#include "peer/peer.h"
#include "pool/silence.h"

#define KRC_PEER_BITS 10
#define KRC_PEERS_IDLE_MAX 256
#define KRC_PEER_IDLE_MS 10000
#define KRC_PEER_FRESH_MS 100 /* a peer made within this time counts as fresh */

static void krc_peers_expire(struct work_struct *work);

static DEFINE_HASHTABLE(krc_peers, KRC_PEER_BITS);
static LIST_HEAD(krc_peers_idle); /* the longest idle first */
static LIST_HEAD(krc_peers_old); /* outdated, still in use; not in the table */
static u32 krc_peers_idle_nr;
static DEFINE_SPINLOCK(krc_peers_lock);
static DECLARE_DELAYED_WORK(krc_peers_expiry, krc_peers_expire);

static u32 krc_peer_hash(const struct krc_port *port, const struct krp_key *key)
{
	return jhash(key, sizeof(*key), (u32)(unsigned long)port);
}

static bool krc_peer_is(const struct krc_peer *peer, const struct krc_port *port,
			const struct krp_key *key)
{
	return peer->port == port && !memcmp(&peer->key, key, sizeof(*key));
}

/*
 * Find a peer and count one more user. Return: it or NULL. @fresh: only one made within
 * KRC_PEER_FRESH_MS, so that a burst of fresh connects shares one peer.
 */
static struct krc_peer *krc_peer_find(struct krc_port *port, const struct krp_key *key,
				      const struct krp_value *value, bool fresh)
{
	unsigned long newest = jiffies - msecs_to_jiffies(KRC_PEER_FRESH_MS);
	struct krc_peer *peer;

	lockdep_assert_held(&krc_peers_lock);
	hash_for_each_possible(krc_peers, peer, node, krc_peer_hash(port, key)) {
		if (READ_ONCE(peer->outdated) || !krc_peer_is(peer, port, key) ||
		    memcmp(&peer->value, value, sizeof(*value)))
			continue;
		if (fresh && time_before(peer->made, newest))
			continue;
		if (!peer->users++) {
			list_del_init(&peer->idle);
			krc_peers_idle_nr--;
		}
		return peer;
	}
	return NULL;
}

static void krc_peer_free(struct krc_peer *peer)
{
	krc_remote_put(peer->remote);
	krc_port_put(peer->port);
	kfree_rcu(peer, rcu); /* krc_queue_describe() may be reading it */
}

/* Move an idle peer from the table to @taken, for krc_peers_free(). */
static void krc_peer_take_idle(struct krc_peer *peer, struct list_head *taken)
{
	lockdep_assert_held(&krc_peers_lock);
	if (hash_hashed(&peer->node))
		hash_del(&peer->node);
	list_move_tail(&peer->idle, taken);
	krc_peers_idle_nr--;
}

static void krc_peers_free(struct list_head *taken)
{
	struct krc_peer *peer, *next;

	list_for_each_entry_safe(peer, next, taken, idle)
		krc_peer_free(peer);
}

static struct krc_peer *krc_peer_create(struct krc_port *port, const struct krp_key *key,
					const struct krp_value *value)
{
	struct krc_peer *peer;
	struct krc_rail *rail = &port->rail;
	union ib_gid gid;
	int err;

	if (!krp_kind_port(value->kind) || !krp_value_valid(value))
		return ERR_PTR(-EPROTO);
	peer = kzalloc(sizeof(*peer), GFP_KERNEL_ACCOUNT);
	if (!peer)
		return ERR_PTR(-ENOMEM);
	memcpy(gid.raw, key->gid, sizeof(gid.raw));
	err = rail->ops->address(rail->hw, rail->num, rail->gid_index, &gid, value, &peer->address);
	if (err)
		goto err_peer;
	peer->remote = krc_remote_create(rail, port->pool, value, &peer->address);
	if (IS_ERR(peer->remote)) {
		err = PTR_ERR(peer->remote);
		goto err_peer;
	}
	peer->standing = krc_remote_standing(peer->remote);
	INIT_LIST_HEAD(&peer->idle);
	peer->users = 1;
	peer->made = jiffies;
	peer->port = krc_port_get(port);
	peer->key = *key;
	peer->value = *value;
	return peer;

err_peer:
	kfree(peer);
	return ERR_PTR(err);
}

/*
 * Remove the outdated peers of a record, or (@all) all of its peers, from the table: peers in
 * use move to krc_peers_old, so that lookups need not step over them; idle ones go to @taken.
 */
static void krc_peer_outdate(const struct krc_port *port, const struct krp_key *key, bool all,
			     struct list_head *taken)
{
	struct hlist_node *next;
	struct krc_peer *peer;

	lockdep_assert_held(&krc_peers_lock);
	hash_for_each_possible_safe(krc_peers, peer, next, node, krc_peer_hash(port, key)) {
		if (!krc_peer_is(peer, port, key) || !(all || READ_ONCE(peer->outdated)))
			continue;
		WRITE_ONCE(peer->outdated, true);
		if (peer->users) {
			hash_del(&peer->node);
			list_add_tail(&peer->idle, &krc_peers_old);
		} else {
			krc_peer_take_idle(peer, taken);
		}
	}
}

struct krc_peer *krc_peer_get(struct krc_port *port, const struct krp_key *key,
			      const struct krp_value *value, bool fresh)
{
	struct krc_peer *peer, *made;
	LIST_HEAD(taken);

	spin_lock(&krc_peers_lock);
	peer = krc_peer_find(port, key, value, fresh);
	spin_unlock(&krc_peers_lock);
	if (peer)
		return peer;

	made = krc_peer_create(port, key, value);
	if (IS_ERR(made))
		return made;
	spin_lock(&krc_peers_lock);
	peer = krc_peer_find(port, key, value, fresh);
	if (!peer) {
		krc_peer_outdate(port, key, fresh, &taken);
		hash_add(krc_peers, &made->node, krc_peer_hash(port, key));
	}
	spin_unlock(&krc_peers_lock);
	krc_peers_free(&taken);
	if (!peer)
		return made;
	krc_peer_free(made); /* another thread made one meanwhile */
	return peer;
}

/* The last user has left: keep the peer as idle, unless it is outdated or its port is dying. */
static void krc_peer_rest(struct krc_peer *peer, struct list_head *taken)
{
	lockdep_assert_held(&krc_peers_lock);
	peer->idle_since = jiffies;
	list_move_tail(&peer->idle, &krc_peers_idle);
	krc_peers_idle_nr++;
	if (READ_ONCE(peer->outdated) || percpu_ref_is_dying(&peer->port->rail.users))
		krc_peer_take_idle(peer, taken);
	else if (krc_peers_idle_nr > KRC_PEERS_IDLE_MAX)
		krc_peer_take_idle(list_first_entry(&krc_peers_idle, struct krc_peer, idle), taken);
	else if (krc_peers_idle_nr == 1)
		schedule_delayed_work(&krc_peers_expiry, msecs_to_jiffies(KRC_PEER_IDLE_MS));
}

void krc_peer_put(struct krc_peer *peer)
{
	LIST_HEAD(taken);

	if (!peer)
		return;
	spin_lock(&krc_peers_lock);
	if (!--peer->users)
		krc_peer_rest(peer, &taken);
	spin_unlock(&krc_peers_lock);
	krc_peers_free(&taken);
}

/* Work: free peers idle for KRC_PEER_IDLE_MS; rearm while idle ones remain. */
static void krc_peers_expire(struct work_struct *work)
{
	struct krc_peer *peer, *next;
	LIST_HEAD(taken);

	spin_lock(&krc_peers_lock);
	list_for_each_entry_safe(peer, next, &krc_peers_idle, idle)
		if (time_after_eq(jiffies, peer->idle_since + msecs_to_jiffies(KRC_PEER_IDLE_MS)))
			krc_peer_take_idle(peer, &taken);
	if (krc_peers_idle_nr)
		schedule_delayed_work(&krc_peers_expiry, msecs_to_jiffies(KRC_PEER_IDLE_MS / 2));
	spin_unlock(&krc_peers_lock);
	krc_peers_free(&taken);
}

void krc_peers_drop(struct krc_rail *rail)
{
	struct krc_peer *peer, *next;
	LIST_HEAD(taken);

	spin_lock(&krc_peers_lock);
	list_for_each_entry_safe(peer, next, &krc_peers_idle, idle)
		if (!rail || &peer->port->rail == rail)
			krc_peer_take_idle(peer, &taken);
	spin_unlock(&krc_peers_lock);
	krc_peers_free(&taken);
	krc_silence_drop(rail);
}

void krc_peers_init(void)
{
	krc_port_on_end(krc_peers_drop);
}

void krc_peers_exit(void)
{
	krc_port_on_end(NULL);
	krc_peers_drop(NULL);
	cancel_delayed_work_sync(&krc_peers_expiry);
	WARN_ON(!hash_empty(krc_peers) || !list_empty(&krc_peers_old));
}

/* Acts once for each peer, since one fault fails many of its requests. */
void krc_peer_disbelieve(struct krc_peer *peer)
{
	if (xchg(&peer->outdated, true))
		return;
	krc_cache_doubt(peer->port->cache, &peer->key, le64_to_cpu(peer->value.generation));
	krc_remote_forget(peer->remote);
}

/* It has refused too much of what its directory allows. */
static void krc_peer_barred(struct krc_peer *peer)
{
	krc_port_warn_limited(peer->port->rail.ibdev, peer->port->rail.num,
			      "%pI6c refuses what it allows: barred for some time\n",
			      peer->key.gid);
	krc_remote_forget(peer->remote);
}

void krc_peer_suspect(struct krc_peer *peer, enum krc_fault fault, u64 token)
{
	switch (fault) {
	case KRC_FAULT_TIMEOUT:
	case KRC_FAULT_TARGET:
		krc_standing_suspect(peer->standing);
		krc_peer_disbelieve(peer);
		break;
	case KRC_FAULT_EXPIRED: /* of a WRITE or an atomic that it did not answer */
		krc_standing_expired(peer->standing);
		krc_peer_disbelieve(peer); /* so nothing is posted before it answers */
		break;
	case KRC_FAULT_ACCESS: /* of what its directory allowed */
		if (krc_standing_refused(peer->standing))
			krc_peer_barred(peer);
		else
			krc_remote_forget_token(peer->remote, token);
		break;
	default:
		break;
	}
}

static void krc_peer_inform(const struct krc_peer *peer, struct krc_peer_info *info)
{
	memcpy(info->gid, peer->key.gid, sizeof(info->gid));
	info->service = le16_to_cpu(peer->key.service);
	info->generation = le64_to_cpu(peer->value.generation);
	info->queues = peer->users;
	info->regions = krc_remote_regions(peer->remote);
}

/* Show a peer, if it is in use and was not shown before. @nth: its place. Return: whether @fn refuses it. */
static bool krc_peer_show(const struct krc_peer *peer, struct krc_peer_at *at, u32 nth,
			  int (*fn)(const struct krc_peer_info *info, void *arg), void *arg)
{
	struct krc_peer_info info = {};

	if (nth < at->nth || !peer->users)
		return false;
	krc_peer_inform(peer, &info);
	if (fn(&info, arg))
		return true;
	at->nth = nth + 1;
	return false;
}

/* Show a bucket, or behind the last one the outdated peers. Return: whether @fn refuses one. */
static bool krc_peer_walk_bucket(struct krc_peer_at *at,
				 int (*fn)(const struct krc_peer_info *info, void *arg), void *arg)
{
	struct krc_peer *peer;
	bool full = false;
	u32 nth = 0;

	spin_lock(&krc_peers_lock);
	if (at->bucket < HASH_SIZE(krc_peers)) {
		hlist_for_each_entry(peer, &krc_peers[at->bucket], node)
			full = full || krc_peer_show(peer, at, nth++, fn, arg);
	} else {
		list_for_each_entry(peer, &krc_peers_old, idle)
			full = full || krc_peer_show(peer, at, nth++, fn, arg);
	}
	spin_unlock(&krc_peers_lock);
	return full;
}

void krc_peer_walk(struct krc_peer_at *at, int (*fn)(const struct krc_peer_info *info, void *arg),
		   void *arg)
{
	while (at->bucket <= HASH_SIZE(krc_peers) && !krc_peer_walk_bucket(at, fn, arg)) {
		at->bucket++;
		at->nth = 0;
		cond_resched();
	}
}
