// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What programs tell each other before they use queues: references to regions,
 * as values of the MetaServers' table, and peers by address. key.c has those by name.
 *
 * The bytes of a reference, little-endian: magic, address, length, token; the
 * magic is there so that another RAW value is not taken for one. No state.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "client/include/krcore/queue.h"
#include "client/lib/base.h"
#include "common/gid.h"
#include "proto/krp_mrdir.h"

#define KRL_REGION_MAGIC 0x314e4f494745524bULL /* "KREGION1" */

/** struct krl_region_wire - A reference in a RAW value. @magic: says that it is one. */
struct krl_region_wire {
	__le64 magic;
	__le64 addr;
	__le64 length;
	__le64 token;
};

/**
 * struct krl_packed - The end of a packed reference; the port's address stands before it.
 * @token: token.
 * @addr: address.
 * @length: bytes.
 */
struct krl_packed {
	__le64 token;
	__le64 addr;
	__le32 length;
} __attribute__((packed));

#define KRL_IPV4_BYTES 4 /* an IPv4-mapped GID, without the 12 bytes that all such have */

static const uint8_t krl_ipv4_mapped[KRCORE_GID_BYTES - KRL_IPV4_BYTES] = {
	[10] = 0xff, [11] = 0xff
};

_Static_assert(KRL_IPV4_BYTES + sizeof(struct krl_packed) == KRCORE_PACKED_IPV4, "packed");
_Static_assert(KRCORE_GID_BYTES + sizeof(struct krl_packed) == KRCORE_PACKED_MAX, "packed");
_Static_assert(sizeof(struct krl_region_wire) <= KRCORE_RAW_BYTES, "krl_region_wire");

void krcore_region_ref_of(const struct krcore_mr *mr, struct krcore_region_ref *ret_ref)
{
	*ret_ref = (struct krcore_region_ref){
		.addr = mr->addr,
		.length = mr->length,
		.token = mr->token,
	};
}

void krcore_region_encode(const struct krcore_region_ref *ref, struct krcore_value *ret_value)
{
	struct krl_region_wire wire = {
		.magic = krp_cpu_to_le64(KRL_REGION_MAGIC),
		.addr = krp_cpu_to_le64(ref->addr),
		.length = krp_cpu_to_le64(ref->length),
		.token = krp_cpu_to_le64(ref->token),
	};

	memset(ret_value, 0, sizeof(*ret_value));
	ret_value->kind = KRCORE_KIND_RAW;
	ret_value->raw_len = sizeof(wire);
	memcpy(ret_value->raw, &wire, sizeof(wire));
}

int krcore_region_decode(const struct krcore_value *value, struct krcore_region_ref *ret_ref)
{
	struct krl_region_wire wire;

	if (value->kind != KRCORE_KIND_RAW || value->raw_len != sizeof(wire))
		return krl_error_const(-EPROTO, "the value is not a reference to a region");
	memcpy(&wire, value->raw, sizeof(wire));
	if (krp_le64_to_cpu(wire.magic) != KRL_REGION_MAGIC)
		return krl_error_const(-EPROTO, "the value is not a reference to a region");
	ret_ref->addr = krp_le64_to_cpu(wire.addr);
	ret_ref->length = krp_le64_to_cpu(wire.length);
	ret_ref->token = krp_le64_to_cpu(wire.token);
	return 0;
}

/* Whether a packed reference can say this: one way to say it, and nothing that cannot be there. */
static bool krl_packed_valid(const uint8_t *gid, const struct krcore_region_ref *ref)
{
	bool ipv4 = !memcmp(gid, krl_ipv4_mapped, sizeof(krl_ipv4_mapped));

	return !krp_is_zero(gid + (ipv4 ? sizeof(krl_ipv4_mapped) : 0),
			    ipv4 ? KRL_IPV4_BYTES : KRCORE_GID_BYTES) &&
	       ref->length && ref->length <= UINT32_MAX && ref->addr <= UINT64_MAX - ref->length &&
	       krp_mrdir_token_valid(ref->token);
}

int krcore_region_pack(const uint8_t *gid, const struct krcore_region_ref *ref, uint8_t *ret_packed)
{
	struct krl_packed packed = {
		.token = krp_cpu_to_le64(ref->token),
		.addr = krp_cpu_to_le64(ref->addr),
		.length = krp_cpu_to_le32((uint32_t)ref->length),
	};
	size_t skip =
		memcmp(gid, krl_ipv4_mapped, sizeof(krl_ipv4_mapped)) ? 0 : sizeof(krl_ipv4_mapped);

	if (!krl_packed_valid(gid, ref))
		return krl_error_const(-EINVAL, "no peer could use such a region: GID, token, "
						"address or length");
	memcpy(ret_packed, gid + skip, KRCORE_GID_BYTES - skip);
	memcpy(ret_packed + KRCORE_GID_BYTES - skip, &packed, sizeof(packed));
	return (int)(KRCORE_GID_BYTES - skip + sizeof(packed));
}

int krcore_region_unpack(const uint8_t *packed, size_t bytes, uint8_t *ret_gid,
			 struct krcore_region_ref *ret_ref)
{
	uint8_t gid[KRCORE_GID_BYTES];
	struct krcore_region_ref ref;
	struct krl_packed tail;
	size_t skip;

	if (bytes != KRCORE_PACKED_IPV4 && bytes != KRCORE_PACKED_MAX)
		return krl_error(-EPROTO, "%zu bytes are no packed reference: it has %u or %u",
				 bytes, KRCORE_PACKED_IPV4, KRCORE_PACKED_MAX);
	skip = KRCORE_PACKED_MAX - bytes;
	memcpy(gid, krl_ipv4_mapped, skip);
	memcpy(gid + skip, packed, sizeof(gid) - skip);
	memcpy(&tail, packed + sizeof(gid) - skip, sizeof(tail));
	ref = (struct krcore_region_ref){
		.addr = krp_le64_to_cpu(tail.addr),
		.length = krp_le32_to_cpu(tail.length),
		.token = krp_le64_to_cpu(tail.token),
	};
	/* a mapped GID in the long form would be a second way to say the same */
	if (!krl_packed_valid(gid, &ref) ||
	    (!skip && !memcmp(gid, krl_ipv4_mapped, sizeof(krl_ipv4_mapped))))
		return krl_error_const(-EPROTO, "not what krcore_region_pack() makes");
	memcpy(ret_gid, gid, sizeof(gid));
	*ret_ref = ref;
	return 0;
}

int krcore_key_from_address(const char *text, uint16_t service, struct krcore_key *ret_key)
{
	struct krcore_key key = { .service = service };

	if (!text || !*text)
		return krl_error_const(-EINVAL, "the address of the peer is empty");
	if (kru_gid_parse(text, key.gid))
		return krl_error(-EINVAL, "%s is neither a GID nor an IPv4 address", text);
	*ret_key = key;
	return 0;
}
