/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Keys and values between the public structures of krcore.h, in host order, and
 * the wire. Nothing is checked here: the receiver of a value checks it. No state: any
 * thread.
 */
#ifndef KRU_WIRE_H
#define KRU_WIRE_H

#include "client/include/krcore/krcore.h"
#include "proto/krp_table.h"

/** kru_key_to_wire() - Write a key. @key: key. @ret_wire: filled. */
void kru_key_to_wire(const struct krcore_key *key, struct krp_key *ret_wire);

/** kru_key_from_wire() - Read a key. @wire: key. @ret_key: filled. */
void kru_key_from_wire(const struct krp_key *wire, struct krcore_key *ret_key);

/**
 * kru_value_to_wire() - Write a value.
 * @value: value; of a port, or with at most KRCORE_RAW_BYTES of raw bytes.
 * @generation: boot generation of the owner.
 * @ret_wire: filled, pads zero.
 */
void kru_value_to_wire(const struct krcore_value *value, uint64_t generation,
		       struct krp_value *ret_wire);

/**
 * kru_value_from_wire() - Read a value.
 * @wire: value that krp_value_valid() has accepted.
 * @ret_value: filled.
 */
void kru_value_from_wire(const struct krp_value *wire, struct krcore_value *ret_value);

#endif /* KRU_WIRE_H */
