// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What programs tell each other before they use queues: references to regions,
 * as values of the MetaServers' table, and peers by address. key.c has those by name.
 *
 * The bytes of a reference, little-endian: magic, address, length, token; the
 * magic is there so that another RAW value is not taken for one. No state.
 */
#include <errno.h>
#include <string.h>

#include "client/include/krcore/queue.h"
#include "client/lib/base.h"
#include "common/gid.h"

#define KRL_REGION_MAGIC 0x314e4f494745524bULL /* "KREGION1" */

/** struct krl_region_wire - A reference in a RAW value. @magic: says that it is one. */
struct krl_region_wire {
	__le64 magic;
	__le64 addr;
	__le64 length;
	__le64 token;
};

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
