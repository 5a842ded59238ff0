/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: what others prove with the cluster keys: packets of lanes.
 * Locking: every function may be called from several threads concurrently; those that say "may sleep"
 * need process context.
 */
#ifndef KRC_META_AUTH_H
#define KRC_META_AUTH_H

#include <linux/types.h>

struct krc_meta;
struct krp_lane_packet; /* krp_lane.h */

/**
 * krc_meta_lane_keys() - Whether the node has cluster keys.
 * @meta: client.
 *
 * Context: any but hard interrupts.
 * Return: whether.
 */
bool krc_meta_lane_keys(struct krc_meta *meta);

/**
 * krc_meta_lane_sign() - Prove a packet of a lane, see krp_lane.h.
 * @meta: client.
 * @key_id: of the key, KRP_KEY_ID_BYTES, as a packet named it; NULL: of the first one.
 * @packet: key_id and mac are set.
 *
 * Context: may sleep.
 * Return: 0; -ENOKEY: there is no such key, or none at all; an errno of the hash.
 */
int krc_meta_lane_sign(struct krc_meta *meta, const u8 *key_id, struct krp_lane_packet *packet);

/**
 * krc_meta_lane_verify() - Check that one of the cluster keys proves a packet of a lane.
 * @meta: client.
 * @packet: not trusted.
 *
 * Context: may sleep. The time it takes says nothing of how much of the mac is right.
 * Return: 0; -ENOKEY: it names none of the keys; -EKEYREJECTED: its mac is wrong; an errno of
 * the hash.
 */
int krc_meta_lane_verify(struct krc_meta *meta, const struct krp_lane_packet *packet);

#endif /* KRC_META_AUTH_H */
