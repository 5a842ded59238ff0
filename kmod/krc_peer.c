// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the table of peers.
 * Locking: krc_peers_lock for the table and the last reference.
 */
#include <linux/err.h>
#include <linux/hashtable.h>
#include <linux/jhash.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "krc_cache.h"
#include "krc_context.h"
#include "krc_mr.h"
#include "krc_node.h"
#include "krc_peer.h"

#define KRC_PEER_BITS 10

static DEFINE_HASHTABLE(krc_peers, KRC_PEER_BITS);
static DEFINE_SPINLOCK(krc_peers_lock);

static u32 krc_peer_hash(const struct krc_port *port, const struct krp_key *key)
{
	return jhash(key, sizeof(*key), (u32)(unsigned long)port);
}

static struct krc_peer *krc_peer_find(struct krc_port *port, const struct krp_key *key,
				      const struct krp_value *value)
{
	struct krc_peer *peer;

	lockdep_assert_held(&krc_peers_lock);
	hash_for_each_possible(krc_peers, peer, node, krc_peer_hash(port, key)) {
		if (peer->port == port && !memcmp(&peer->key, key, sizeof(*key)) &&
		    !memcmp(&peer->value, value, sizeof(*value))) {
			refcount_inc(&peer->ref);
			return peer;
		}
	}
	return NULL;
}

static void krc_peer_free(struct krc_peer *peer)
{
	krc_remote_destroy(peer->remote);
	krc_port_put(peer->port);
	kfree_rcu(peer, rcu); /* krc_queue_describe() may be reading it */
}

static struct krc_peer *krc_peer_create(struct krc_port *port, const struct krp_key *key,
					const struct krp_value *value)
{
	struct krc_peer *peer;
	union ib_gid gid;
	int err;

	if (value->kind != KRP_KIND_DCT || !krp_value_valid(value))
		return ERR_PTR(-EPROTO);
	peer = kzalloc(sizeof(*peer), GFP_KERNEL_ACCOUNT);
	if (!peer)
		return ERR_PTR(-ENOMEM);
	memcpy(gid.raw, key->gid, sizeof(gid.raw));
	err = port->ops->address(port->hw, port->num, port->gid_index, &gid, value, &peer->address);
	if (err)
		goto err_peer;
	peer->remote = krc_remote_create(port, value, &peer->address);
	if (IS_ERR(peer->remote)) {
		err = PTR_ERR(peer->remote);
		goto err_peer;
	}
	refcount_set(&peer->ref, 1);
	peer->port = krc_port_get(port);
	peer->key = *key;
	peer->value = *value;
	return peer;

err_peer:
	kfree(peer);
	return ERR_PTR(err);
}

struct krc_peer *krc_peer_get(struct krc_port *port, const struct krp_key *key,
			      const struct krp_value *value)
{
	struct krc_peer *peer, *made;

	spin_lock(&krc_peers_lock);
	peer = krc_peer_find(port, key, value);
	spin_unlock(&krc_peers_lock);
	if (peer)
		return peer;

	made = krc_peer_create(port, key, value);
	if (IS_ERR(made))
		return made;
	spin_lock(&krc_peers_lock);
	peer = krc_peer_find(port, key, value);
	if (!peer)
		hash_add(krc_peers, &made->node, krc_peer_hash(port, key));
	spin_unlock(&krc_peers_lock);
	if (!peer)
		return made;
	krc_peer_free(made); /* another was faster */
	return peer;
}

void krc_peer_put(struct krc_peer *peer)
{
	bool last;

	if (!peer)
		return;
	spin_lock(&krc_peers_lock);
	last = refcount_dec_and_test(&peer->ref);
	if (last)
		hash_del(&peer->node);
	spin_unlock(&krc_peers_lock);
	if (last)
		krc_peer_free(peer);
}

void krc_peer_suspect(struct krc_peer *peer, enum krc_fault fault)
{
	if (fault == KRC_FAULT_TIMEOUT || fault == KRC_FAULT_TARGET)
		krc_cache_forget(krc_node_cache(), &peer->key, le64_to_cpu(peer->value.generation));
	else if (fault != KRC_FAULT_ACCESS)
		return;
	krc_remote_forget(peer->remote);
}

u32 krc_peer_walk(u32 start, int (*fn)(const struct krc_peer_info *info, void *arg), void *arg)
{
	struct krc_peer_info info = {};
	struct krc_peer *peer;
	u32 at = 0, taken = 0;
	int bucket;

	spin_lock(&krc_peers_lock);
	hash_for_each(krc_peers, bucket, peer, node) {
		if (at++ < start)
			continue;
		memcpy(info.gid, peer->key.gid, sizeof(info.gid));
		info.service = le16_to_cpu(peer->key.service);
		info.generation = le64_to_cpu(peer->value.generation);
		info.queues = refcount_read(&peer->ref);
		info.regions = krc_remote_regions(peer->remote);
		if (fn(&info, arg))
			break;
		taken++;
	}
	spin_unlock(&krc_peers_lock);
	return taken;
}
