// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A reader in front of a hostile peer: any bytes as the entry of a memory directory, any
 * reference to the region in it.
 *
 * A checksum cannot be guessed, so a bit of the input has the harness seal the entry.
 * Whatever comes, a hit is an entry in which all that the reader goes on with can be
 * relied on, and no reference that passes reaches outside of its region.
 */
#include "proto/krp_ioctl.h"
#include "proto/krp_mrdir.h"
#include "tests/fuzz/fuzz.h"

/* how the harness helps the input along, bits of its first byte */
#define FZ_OWN_TOKEN 0x01
#define FZ_SANE 0x02
#define FZ_SEALED 0x04

/* What a hit promises, by other means than the header's. */
static void fz_check_hit(const struct krp_mrdir_entry *e, __u64 token)
{
	__u64 addr = krp_le64_to_cpu(e->addr), length = krp_le64_to_cpu(e->length);
	const __u8 *bytes = (const __u8 *)e;
	unsigned int i;

	FZ_ASSERT(krp_le64_to_cpu(e->sum) == krp_xxh64(bytes + 8, 56, KRP_ROOT_MAGIC));
	FZ_ASSERT(krp_le64_to_cpu(e->token) == token);
	FZ_ASSERT(e->state == KRP_MRDIR_LIVE);
	FZ_ASSERT(length && length - 1 <= UINT64_MAX - addr);
	FZ_ASSERT(krp_le32_to_cpu(e->lease_ms) >= KRP_MRDIR_LEASE_MS_MIN);
	FZ_ASSERT(krp_le32_to_cpu(e->lease_ms) <= KRP_MRDIR_LEASE_MS_MAX);
	FZ_ASSERT(krp_le32_to_cpu(e->margin_ms) >= KRP_MRDIR_MARGIN_MS_MIN);
	FZ_ASSERT(krp_le32_to_cpu(e->margin_ms) <= KRP_MRDIR_MARGIN_MS_MAX);
	FZ_ASSERT(!bytes[38] && !bytes[39]);
	for (i = 56; i < 64; i++)
		FZ_ASSERT(!bytes[i]);
}

static void fz_check_inside(__u64 base, __u64 size, __u64 addr, __u64 length)
{
	__extension__ typedef unsigned __int128 fz_wide;
	int inside = length && addr >= base && (fz_wide)addr + length <= (fz_wide)base + size;

	FZ_ASSERT(krp_mrdir_inside(base, size, addr, length) == inside);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fz_stream in = { data, size };
	__u8 help = fz_byte(&in);
	struct krp_mrdir_entry *e = malloc(sizeof(*e)); /* a sanitizer guards its end */
	enum krp_mrdir_verdict verdict;
	__u64 token, addr, length;

	FZ_ASSERT(e);
	fz_take(&in, &token, sizeof(token));
	fz_take(&in, &addr, sizeof(addr));
	fz_take(&in, &length, sizeof(length));
	fz_take(&in, e, sizeof(*e));
	if (help & FZ_OWN_TOKEN)
		e->token = krp_cpu_to_le64(token);
	if (help & FZ_SANE) {
		e->state = KRP_MRDIR_LIVE;
		memset(e->rsvd, 0, sizeof(e->rsvd));
		memset(e->rsvd2, 0, sizeof(e->rsvd2));
		e->lease_ms = krp_cpu_to_le32(krp_le32_to_cpu(e->lease_ms) %
					      (2 * KRP_MRDIR_LEASE_MS_MAX));
		e->margin_ms = krp_cpu_to_le32(krp_le32_to_cpu(e->margin_ms) %
					       (2 * KRP_MRDIR_MARGIN_MS_MAX));
	}
	if (help & FZ_SEALED)
		krp_mrdir_seal(e);

	verdict = krp_mrdir_check(e, token);
	FZ_ASSERT((verdict == KRP_MRDIR_TORN) == (krp_le64_to_cpu(e->sum) != krp_mrdir_sum(e)));
	if (krp_mrdir_token_valid(token)) {
		FZ_ASSERT(krp_mrdir_slot(token) < KRP_MRDIR_SLOTS);
		FZ_ASSERT(token > 0xffff);
	}
	if (verdict == KRP_MRDIR_HIT) {
		fz_check_hit(e, token);
		fz_check_inside(krp_le64_to_cpu(e->addr), krp_le64_to_cpu(e->length), addr, length);
	}
	free(e);
	return 0;
}
