/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the directory of a port's memory regions, as its port sees it: when it begins, when it
 * tells peers of nothing any more, and when it ends.
 */
#ifndef KRC_DIRECTORY_H
#define KRC_DIRECTORY_H

#include "krp_table.h"

struct krc_mrdir;
struct krc_rail;

/**
 * krc_mrdir_create() - Make the directory of a port: slots, published memory, key.
 * @rail: of the port; outlives the directory.
 * @value: out: mrdir_addr and mrdir_rkey.
 *
 * Context: may sleep.
 * Return: the directory, or ERR_PTR: -ENOMEM, the errors of ops->key_pages().
 */
struct krc_mrdir *krc_mrdir_create(struct krc_rail *rail, struct krp_value *value);

/**
 * krc_mrdir_retire() - Close every region of the port to peers, and open none any more.
 * @mrdir: directory.
 *
 * Peers READ of each that it is not there. Context: may sleep.
 */
void krc_mrdir_retire(struct krc_mrdir *mrdir);

/**
 * krc_mrdir_wait() - Wait until no peer may refer to a region any more.
 * @mrdir: directory, retired.
 *
 * At most KRP_MRDIR_LEASE_MS and krc_rail.margin_ms; not at all if the device is down, or no
 * region was open. Context: may sleep.
 */
void krc_mrdir_wait(struct krc_mrdir *mrdir);

/**
 * krc_mrdir_end() - Release every region of the port (the device goes), and the published
 * memory and key.
 * @mrdir: directory.
 *
 * All requests have been completed before (krc_pool_stop()); leases are krc_mrdir_wait()'s,
 * and who waits for one in krc_mr_dereg() is woken. Regions that contexts still hold
 * stay as memory without key. Nothing is left to be done in the background. What remains is
 * memory, for who still has a reference. Context: may sleep.
 */
void krc_mrdir_end(struct krc_mrdir *mrdir);

/**
 * krc_mrdir_put() - One less user.
 * @mrdir: directory; krc_mrdir_end() came before the last.
 *
 * Context: may sleep.
 */
void krc_mrdir_put(struct krc_mrdir *mrdir);

#endif /* KRC_DIRECTORY_H */
