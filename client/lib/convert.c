// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Values to and from the wire, checked.
 *
 * What comes from a server is checked like what a caller gives: neither is
 * trusted. No state, no locks.
 */
#include <errno.h>

#include "client/lib/base.h"
#include "client/wire.h"

static int krl_lane_check(const struct krcore_dct *dct)
{
	if (dct->dctn || dct->dc_key)
		return krl_error(-EINVAL, "dct.dctn 0x%x, or dct.dc_key, is not 0: no DC there",
				 dct->dctn);
	if (!dct->ud_qpn)
		return krl_error(-EINVAL, "dct.ud_qpn is 0: nobody could ask for a lane");
	return 0;
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

int krl_value_to_wire(const struct krcore_value *value, uint64_t generation,
		      struct krp_value *ret_wire)
{
	int err;

	switch (value->kind) {
	case KRCORE_KIND_DCT:
	case KRCORE_KIND_LANE:
		err = krl_dct_check(&value->dct);
		if (!err && value->kind == KRCORE_KIND_LANE)
			err = krl_lane_check(&value->dct);
		if (err)
			return err;
		break;
	case KRCORE_KIND_RAW:
		if (value->raw_len > KRCORE_RAW_BYTES)
			return krl_error(-EINVAL, "raw_len %u is more than %u", value->raw_len,
					 KRCORE_RAW_BYTES);
		break;
	default:
		return krl_error(-EINVAL, "value kind %u is unknown", value->kind);
	}
	kru_value_to_wire(value, generation, ret_wire);
	return 0;
}

int krl_value_from_wire(const struct krp_value *wire, struct krcore_value *ret_value)
{
	if (!krp_value_valid(wire))
		return krl_error(-EPROTO, "the server holds a value of kind %u that is not valid",
				 wire->kind);
	kru_value_from_wire(wire, ret_value);
	return 0;
}
