// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the peers that one user's queues are connected to, for that user. Peers are shared, and
 * do not know by whom: so it is the queues that are looked at.
 * Locking: none of its own; what is listed is a copy.
 */
#include <linux/mm.h>
#include <linux/sort.h>
#include <linux/string.h>

#include "user/show.h"

/* Peers of a user's queues, one a queue at first. */
struct krc_own_peers {
	kuid_t uid;
	struct krc_peer_info *peers;
	u32 room;
	u32 nr;
};

static int krc_own_peers_count(const struct krc_queue_info *queue, void *arg)
{
	struct krc_own_peers *own = arg;

	own->room += queue->generation && uid_eq(queue->uid, own->uid);
	return 0;
}

static int krc_own_peers_add(const struct krc_queue_info *queue, void *arg)
{
	struct krc_own_peers *own = arg;
	struct krc_peer_info *peer = &own->peers[own->nr];

	if (!queue->generation || !uid_eq(queue->uid, own->uid))
		return 0;
	if (own->nr == own->room)
		return 1; /* it has come since they were counted */
	memcpy(peer->gid, queue->gid, sizeof(peer->gid));
	peer->service = queue->service;
	peer->generation = queue->generation;
	peer->queues = 1;
	own->nr++;
	return 0;
}

/* GID, service and generation, with the pads between them, which are zero. */
static int krc_own_peers_compare(const void *a, const void *b)
{
	return memcmp(a, b, offsetof(struct krc_peer_info, queues));
}

/* Each of them once, with how many queues it has. */
static void krc_own_peers_merge(struct krc_own_peers *own)
{
	struct krc_peer_info *peers = own->peers;
	u32 i, kept = 0;

	sort(peers, own->nr, sizeof(*peers), krc_own_peers_compare, NULL);
	for (i = 0; i < own->nr; i++) {
		if (!kept || krc_own_peers_compare(&peers[kept - 1], &peers[i]))
			peers[kept++] = peers[i];
		else
			peers[kept - 1].queues++;
	}
	own->nr = kept;
}

u32 krc_peer_own_walk(u32 start, kuid_t uid, int (*fn)(const struct krc_peer_info *info, void *arg),
		      void *arg)
{
	struct krc_own_peers own = { .uid = uid };
	u32 i;

	krc_queue_walk(0, krc_own_peers_count, &own);
	own.peers = kvcalloc(own.room, sizeof(*own.peers), GFP_KERNEL_ACCOUNT);
	if (!own.peers)
		return 0;
	krc_queue_walk(0, krc_own_peers_add, &own);
	krc_own_peers_merge(&own);
	for (i = start; i < own.nr; i++)
		if (fn(&own.peers[i], arg))
			break;
	kvfree(own.peers);
	return i > start ? i - start : 0;
}
