/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Which peer a table is copied from, and whether the copy is whole. Pure, so that it can be
 * tested alone; import.c does the rest.
 */
#ifndef MS_PEER_H
#define MS_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include <krcore/krcore.h>

#define MS_PEERS_MAX 32 /* as many as krcore.conf(5) takes */

/**
 * ms_peers_known() - Whether each peer is attached or has failed.
 * @info: peers.
 * @nr: how many.
 *
 * In a rolling restart the first peer that answers may be the one that was just restarted
 * and is empty, while the full one is still being attached.
 *
 * Return: true if there is nothing to wait for.
 */
static inline bool ms_peers_known(const struct krcore_server_info *info, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (info[i].state != KRCORE_SERVER_UP && !info[i].last_error)
			return false;
	return true;
}

/**
 * ms_peer_best() - The peer to copy from: settled before settling, then most records.
 * @info: peers.
 * @nr: how many, at most MS_PEERS_MAX.
 * @tried: a bit for each that was tried.
 *
 * Return: its place, or -1 if no other is attached.
 */
static inline int ms_peer_best(const struct krcore_server_info *info, unsigned int nr,
			       uint64_t tried)
{
	unsigned int i;
	int best = -1;

	for (i = 0; i < nr; i++) {
		const struct krcore_server_info *b = best < 0 ? NULL : &info[best];

		if (info[i].state != KRCORE_SERVER_UP || tried & 1ULL << i)
			continue;
		if (!b || (!info[i].settling_ms != !b->settling_ms ? !info[i].settling_ms
								   : info[i].records > b->records))
			best = (int)i;
	}
	return best;
}

/** ms_copy_whole() - Whether a walk has seen the whole table. @check: of it. Return: true if so. */
static inline bool ms_copy_whole(const struct krcore_check *check)
{
	return !check->bad && !check->directory_errors;
}

/**
 * ms_copy_settled() - Whether a copy has all records that there are, as far as its peer knows.
 * @check: of the walk.
 * @info: the peer.
 *
 * Records that the peer keeps aside cannot be copied: their publishers bring them.
 *
 * Return: true if so.
 */
static inline bool ms_copy_settled(const struct krcore_check *check,
				   const struct krcore_server_info *info)
{
	return !info->settling_ms && !check->crowded;
}

#endif /* MS_PEER_H */
