// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the records of names of remote keys.
 * Locking: see hw/rest.h.
 */
#include "hw/rest.h"
#include "krp_mrdir.h"

/* 256 keys of KRP_MRDIR_LEASE_MS + KRP_MRDIR_MARGIN_MS_MIN; longer than a NIC holds a request */
#define KRC_REST_S (KRP_MRDIR_REST_MS / 1000)
#define KRC_REST_LIVES (1LL << 40) /* in place of the time of destruction: the key exists */
#define KRC_RESTS_REMEMBERED 1024U /* records between two scans for expired ones */

static void *krc_rest_entry(u8 next, time64_t since_s)
{
	return xa_mk_value((unsigned long)since_s << 8 | next);
}

static bool krc_rest_over(const void *entry, time64_t now_s)
{
	return now_s > (time64_t)(xa_to_value(entry) >> 8) + KRC_REST_S;
}

void krc_rests_init(struct krc_rests *r)
{
	xa_init(&r->at);
	atomic_set(&r->rests, 0);
}

void krc_rests_fini(struct krc_rests *r)
{
	xa_destroy(&r->at);
}

u8 krc_rests_variant(struct krc_rests *r, u32 index, time64_t now_s, u8 any)
{
	const void *entry = xa_load(&r->at, index);

	return !entry || krc_rest_over(entry, now_s) ? any : xa_to_value(entry) & 0xff;
}

int krc_rests_begin(struct krc_rests *r, u32 key)
{
	return xa_err(xa_store(&r->at, key >> 8, krc_rest_entry(key, KRC_REST_LIVES), GFP_KERNEL));
}

void krc_rests_end(struct krc_rests *r, u32 key, bool known, time64_t now_s)
{
	unsigned long index = key >> 8;
	void *entry;

	if (xa_load(&r->at, index) != krc_rest_entry(key, KRC_REST_LIVES))
		return; /* no remote key: it was not recorded */
	/* replaces an existing entry, so it allocates nothing */
	xa_store(&r->at, index, krc_rest_entry(key + known, now_s), GFP_KERNEL);
	if ((u32)atomic_inc_return(&r->rests) % KRC_RESTS_REMEMBERED)
		return;
	xa_for_each(&r->at, index, entry)
		if (krc_rest_over(entry, now_s))
			xa_cmpxchg(&r->at, index, entry, NULL, 0);
}
