// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: listing to one user the peers of that user's queues. Peers are shared and do not record
 * their users, so the list is made from the queues.
 * Locking: none of its own; what is listed is a copy.
 */
#include <linux/mm.h>
#include <linux/sort.h>
#include <linux/string.h>

#include "user/show.h"

/* Peers of a user's queues: one entry for each queue until krc_own_peers_merge(). */
struct krc_own_peers {
	struct krc_peer_info *peers;
	u32 room;
	u32 nr;
};

static int krc_own_peers_count(const struct krc_queue_info *queue, void *arg)
{
	struct krc_own_peers *own = arg;

	own->room += queue->generation != 0;
	return 0;
}

static int krc_own_peers_add(const struct krc_queue_info *queue, void *arg)
{
	struct krc_own_peers *own = arg;
	struct krc_peer_info *peer = &own->peers[own->nr];

	if (!queue->generation)
		return 0;
	if (own->nr == own->room)
		return 1; /* the queue was connected after the count */
	memcpy(peer->gid, queue->gid, sizeof(peer->gid));
	peer->service = queue->service;
	peer->generation = queue->generation;
	peer->queues = 1;
	own->nr++;
	return 0;
}

/* Compare GID, service and generation; the padding between them is zero. */
static int krc_own_peers_compare(const void *a, const void *b)
{
	return memcmp(a, b, offsetof(struct krc_peer_info, queues));
}

/* Merge equal entries into one that counts their queues. */
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
	struct krc_queue_at count = {}, add = {};
	struct krc_own_peers own = {};
	u32 i;

	krc_queue_walk(&count, &uid, krc_own_peers_count, &own);
	own.peers = kvcalloc(own.room, sizeof(*own.peers), GFP_KERNEL_ACCOUNT);
	if (!own.peers)
		return 0;
	krc_queue_walk(&add, &uid, krc_own_peers_add, &own);
	krc_own_peers_merge(&own);
	for (i = start; i < own.nr; i++)
		if (fn(&own.peers[i], arg))
			break;
	kvfree(own.peers);
	return i > start ? i - start : 0;
}
