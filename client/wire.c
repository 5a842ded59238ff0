// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Keys and values to and from the wire: see wire.h.
 */
#include <string.h>

#include "client/wire.h"

void kru_key_to_wire(const struct krcore_key *key, struct krp_key *ret_wire)
{
	memcpy(ret_wire->gid, key->gid, sizeof(ret_wire->gid));
	ret_wire->service = krp_cpu_to_le16(key->service);
}

void kru_key_from_wire(const struct krp_key *wire, struct krcore_key *ret_key)
{
	memcpy(ret_key->gid, wire->gid, sizeof(ret_key->gid));
	ret_key->service = krp_le16_to_cpu(wire->service);
}

static void kru_dct_to_wire(const struct krcore_dct *dct, struct krp_value *wire)
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

static void kru_dct_from_wire(const struct krp_value *wire, struct krcore_dct *dct)
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

void kru_value_to_wire(const struct krcore_value *value, uint64_t generation,
		       struct krp_value *ret_wire)
{
	memset(ret_wire, 0, sizeof(*ret_wire));
	ret_wire->generation = krp_cpu_to_le64(generation);
	ret_wire->kind = value->kind;
	if (krp_kind_port(value->kind)) {
		kru_dct_to_wire(&value->dct, ret_wire);
	} else {
		ret_wire->len = value->raw_len;
		memcpy(ret_wire->raw, value->raw, value->raw_len);
	}
}

void kru_value_from_wire(const struct krp_value *wire, struct krcore_value *ret_value)
{
	memset(ret_value, 0, sizeof(*ret_value));
	ret_value->generation = krp_le64_to_cpu(wire->generation);
	ret_value->kind = wire->kind;
	if (krp_kind_port(wire->kind)) {
		kru_dct_from_wire(wire, &ret_value->dct);
	} else {
		ret_value->raw_len = wire->len;
		memcpy(ret_value->raw, wire->raw, wire->len);
	}
}
