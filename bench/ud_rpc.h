/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The datagrams between bench_ud_rpc_client and bench_ud_rpc_server: a key and
 * a number go there, a value comes back.
 */
#ifndef BN_UD_RPC_H
#define BN_UD_RPC_H

#include "proto/krp_table.h"

#define BN_GRH_BYTES 40 /* in front of every datagram received */
#define BN_SLOTS 32 /* datagrams received and not yet looked at */

/**
 * struct bn_call - Request.
 * @xid: number of the request, little-endian.
 * @key: record sought.
 * @rsvd: zero.
 */
struct bn_call {
	__le32 xid;
	struct krp_key key;
	__u8 rsvd[2];
};

/**
 * struct bn_answer - Reply.
 * @xid: that of the request.
 * @found: 1 if there is such a record.
 * @value: its value.
 */
struct bn_answer {
	__le32 xid;
	__le32 found;
	struct krp_value value;
};

/** struct bn_datagram - Where one is received. @grh: routing header. @call: or. @answer: body. */
struct bn_datagram {
	__u8 grh[BN_GRH_BYTES];
	union {
		struct bn_call call;
		struct bn_answer answer;
	};
};

#endif /* BN_UD_RPC_H */
