/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: how long the name of a remote key rests before it is used for another. A remote key is
 * an index that the device or its driver chooses, and a low byte that is chosen here.
 *
 *   The index of a destroyed key may be that of the next one, and all keys are in one protection
 *   domain. A late request (delayed behind others, retransmitted, or from a machine that was
 *   suspended meanwhile) must find no key of that name, least of all one of another owner. So the
 *   low bytes of an index are used in turn, one for each key that peers knew, and the next one
 *   is recorded: a name recurs only after 256 such keys, each of which existed for its lease and
 *   margin at least, or after the index was unused for as long as that takes.
 *   Not counted: keys that no peer was told.
 *
 * Locking: of the xarray alone. One index is used by one key at a time.
 */
#ifndef KRC_REST_H
#define KRC_REST_H

#include <linux/atomic.h>
#include <linux/types.h>
#include <linux/xarray.h>

/**
 * struct krc_rests - The records of a device.
 * @at: by index: the next low byte, and when the last key was destroyed.
 * @rests: keys that have been destroyed, for the next look for what can be forgotten.
 */
struct krc_rests {
	struct xarray at;
	atomic_t rests;
};

/**
 * krc_rests_init() - Begin without records.
 * @r: records.
 *
 * Context: any.
 */
void krc_rests_init(struct krc_rests *r);

/**
 * krc_rests_fini() - Forget all of them.
 * @r: records.
 *
 * Context: may sleep.
 */
void krc_rests_fini(struct krc_rests *r);

/**
 * krc_rests_variant() - The low byte that the next key of an index must have.
 * @r: records.
 * @index: of the key, its low byte shifted out.
 * @now_s: ktime_get_seconds().
 * @any: what is taken if any will do.
 *
 * Context: any.
 * Return: it.
 */
u8 krc_rests_variant(struct krc_rests *r, u32 index, time64_t now_s, u8 any);

/**
 * krc_rests_begin() - Record that a remote key is in use.
 * @r: records.
 * @key: index and low byte.
 *
 * Context: may sleep.
 * Return: 0 or %-ENOMEM.
 */
int krc_rests_begin(struct krc_rests *r, u32 key);

/**
 * krc_rests_end() - Record that a key is about to be destroyed; none that was recorded: nothing is
 *	done.
 * @r: records.
 * @key: index and low byte.
 * @known: whether peers were told of it.
 * @now_s: ktime_get_seconds().
 *
 * Context: may sleep.
 */
void krc_rests_end(struct krc_rests *r, u32 key, bool known, time64_t now_s);

#endif /* KRC_REST_H */
