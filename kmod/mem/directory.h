/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the directory of a port's memory regions, as the port uses it: create, retire (no
 * region is open to peers any more), end.
 */
#ifndef KRC_DIRECTORY_H
#define KRC_DIRECTORY_H

#include "krp_table.h"

struct krc_mrdir;
struct krc_rail;

/**
 * krc_mrdir_create() - Create the directory of a port: slots, published memory, key.
 * @rail: rail of the port; outlives the directory.
 * @value: out: mrdir_addr and mrdir_rkey.
 *
 * Context: may sleep.
 * Return: the directory, or ERR_PTR: -ENOMEM, the errors of ops->key_pages().
 */
struct krc_mrdir *krc_mrdir_create(struct krc_rail *rail, struct krp_value *value);

/**
 * krc_mrdir_retire() - Unpublish every region of the port, and publish none any more.
 * @mrdir: directory.
 *
 * From then on peers READ free entries. Context: may sleep.
 */
void krc_mrdir_retire(struct krc_mrdir *mrdir);

/**
 * krc_mrdir_wait() - Wait until no peer may refer to a region any more.
 * @mrdir: directory, retired.
 *
 * Waits at most KRP_MRDIR_LEASE_MS and krc_rail.margin_ms; not at all if the device is down
 * or no region was open. Context: may sleep.
 */
void krc_mrdir_wait(struct krc_mrdir *mrdir);

/**
 * krc_mrdir_end() - Release every region of the port (the device goes), and the published
 * memory and key.
 * @mrdir: directory.
 *
 * All requests have completed before (krc_pool_stop()). Does not wait for leases, which
 * krc_mrdir_wait() does, and wakes tasks that wait for one in krc_mr_dereg(). No background
 * work is left. Regions that contexts still hold, and the directory until the last
 * reference, remain as memory without key. Context: may sleep.
 */
void krc_mrdir_end(struct krc_mrdir *mrdir);

/**
 * krc_mrdir_put() - Drop a user.
 * @mrdir: directory; krc_mrdir_end() was called before the last put.
 *
 * Context: may sleep.
 */
void krc_mrdir_put(struct krc_mrdir *mrdir);

#endif /* KRC_DIRECTORY_H */
