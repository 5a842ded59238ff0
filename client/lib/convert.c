// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Keys and values between the public structures, in host order, and the wire.
 *
 * What comes from a server is checked like what a caller gives: neither is
 * trusted. No state, no locks.
 */
#include <errno.h>
#include <string.h>

#include "client/lib/lib.h"

void krl_key_to_wire(const struct krcore_key *key, struct krp_key *ret_wire)
{
	memcpy(ret_wire->gid, key->gid, sizeof(ret_wire->gid));
	ret_wire->service = krp_cpu_to_le16(key->service);
}

void krl_key_from_wire(const struct krp_key *wire, struct krcore_key *ret_key)
{
	memcpy(ret_key->gid, wire->gid, sizeof(ret_key->gid));
	ret_key->service = krp_le16_to_cpu(wire->service);
}

static int krl_dct_check(const struct krcore_dct *dct)
{
	if (dct->dctn >> 24)
		return krl_error(-EINVAL, "dct.dctn 0x%x has more than 24 bits", dct->dctn);
	if (dct->ud_qpn >> 24)
		return krl_error(-EINVAL, "dct.ud_qpn 0x%x has more than 24 bits", dct->ud_qpn);
	if (dct->mtu < 1 || dct->mtu > 5)
		return krl_error(-EINVAL, "dct.mtu %u is not in 1 to 5", dct->mtu);
	if (dct->sl > 15)
		return krl_error(-EINVAL, "dct.sl %u is not in 0 to 15", dct->sl);
	if (!dct->port)
		return krl_error(-EINVAL, "dct.port is 0; ports count from 1");
	if (dct->flags & ~KRCORE_DCT_ETHERNET)
		return krl_error(-EINVAL, "dct.flags 0x%x has unknown bits", dct->flags);
	return 0;
}

static void krl_dct_to_wire(const struct krcore_dct *dct, struct krp_value *wire)
{
	wire->dct.lid = krp_cpu_to_le16(dct->lid);
	wire->dct.dctn = krp_cpu_to_le32(dct->dctn);
	wire->dct.dc_key = krp_cpu_to_le64(dct->dc_key);
	wire->dct.mrdir_addr = krp_cpu_to_le64(dct->mrdir_addr);
	wire->dct.mrdir_rkey = krp_cpu_to_le32(dct->mrdir_rkey);
	wire->dct.ud_qpn = krp_cpu_to_le32(dct->ud_qpn);
	wire->dct.ud_qkey = krp_cpu_to_le32(dct->ud_qkey);
	memcpy(wire->dct.mac, dct->mac, sizeof(wire->dct.mac));
	wire->dct.mtu = dct->mtu;
	wire->dct.sl = dct->sl;
	wire->dct.port = dct->port;
	wire->dct.flags = dct->flags;
	wire->dct.max_rd_atomic = dct->max_rd_atomic;
}

static void krl_dct_from_wire(const struct krp_value *wire, struct krcore_dct *dct)
{
	dct->lid = krp_le16_to_cpu(wire->dct.lid);
	dct->dctn = krp_le32_to_cpu(wire->dct.dctn);
	dct->dc_key = krp_le64_to_cpu(wire->dct.dc_key);
	dct->mrdir_addr = krp_le64_to_cpu(wire->dct.mrdir_addr);
	dct->mrdir_rkey = krp_le32_to_cpu(wire->dct.mrdir_rkey);
	dct->ud_qpn = krp_le32_to_cpu(wire->dct.ud_qpn);
	dct->ud_qkey = krp_le32_to_cpu(wire->dct.ud_qkey);
	memcpy(dct->mac, wire->dct.mac, sizeof(dct->mac));
	dct->mtu = wire->dct.mtu;
	dct->sl = wire->dct.sl;
	dct->port = wire->dct.port;
	dct->flags = wire->dct.flags;
	dct->max_rd_atomic = wire->dct.max_rd_atomic;
}

int krl_value_to_wire(const struct krcore_value *value, uint64_t generation,
		      struct krp_value *ret_wire)
{
	struct krp_value wire;
	int err;

	memset(&wire, 0, sizeof(wire));
	wire.generation = krp_cpu_to_le64(generation);
	wire.kind = value->kind;
	switch (value->kind) {
	case KRCORE_KIND_DCT:
		err = krl_dct_check(&value->dct);
		if (err)
			return err;
		krl_dct_to_wire(&value->dct, &wire);
		break;
	case KRCORE_KIND_RAW:
		if (value->raw_len > KRCORE_RAW_BYTES)
			return krl_error(-EINVAL, "raw_len %u is more than %u", value->raw_len,
					 KRCORE_RAW_BYTES);
		wire.len = value->raw_len;
		memcpy(wire.raw, value->raw, value->raw_len);
		break;
	default:
		return krl_error(-EINVAL, "value kind %u is unknown", value->kind);
	}
	*ret_wire = wire;
	return 0;
}

int krl_value_from_wire(const struct krp_value *wire, struct krcore_value *ret_value)
{
	struct krcore_value value;

	if (!krp_value_valid(wire))
		return krl_error(-EPROTO, "the server holds a value of kind %u that is not valid",
				 wire->kind);
	memset(&value, 0, sizeof(value));
	value.generation = krp_le64_to_cpu(wire->generation);
	value.kind = wire->kind;
	if (wire->kind == KRP_KIND_DCT) {
		krl_dct_from_wire(wire, &value.dct);
	} else {
		value.raw_len = wire->len;
		memcpy(value.raw, wire->raw, wire->len);
	}
	*ret_value = value;
	return 0;
}
