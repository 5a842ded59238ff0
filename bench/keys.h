/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The records that all systems of a benchmark hold: number to key and value.
 *
 * No state: any thread.
 */
#ifndef BN_KEYS_H
#define BN_KEYS_H

#include <stdint.h>

#include "proto/krp_table.h"

#define BN_SERVICE 4242
#define BN_ABSENT (1ULL << 40) /* numbers from here on are never published */
#define BN_TEXT_BYTES 24

/** bn_key() - Key of a record. @nr: its number. @ret_key: filled. */
void bn_key(uint64_t nr, struct krp_key *ret_key);

/** bn_value() - Value of a record, 56 bytes that tell its number. @nr: number. @ret: filled. */
void bn_value(uint64_t nr, struct krp_value *ret);

/**
 * bn_key_text() - Key of a record for systems whose keys are text.
 * @nr: its number.
 * @buf: at least BN_TEXT_BYTES bytes: 18 characters, as long as ours.
 *
 * Return: length.
 */
unsigned int bn_key_text(uint64_t nr, char *buf);

/**
 * bn_random() - A number that is good enough to spread look-ups.
 * @state: state, not 0.
 *
 * Return: the number; @state is advanced (xorshift64*, after Marsaglia and Vigna).
 */
uint64_t bn_random(uint64_t *state);

/**
 * bn_number() - Read a number from the command line, or end the program.
 * @text: decimal.
 * @min: lowest good one.
 * @max: highest good one.
 * @what: what it is, for the message.
 *
 * Return: the number.
 */
uint64_t bn_number(const char *text, uint64_t min, uint64_t max, const char *what);

/** bn_die() - Say what failed with errno, and end the program. @what: text. */
_Noreturn void bn_die(const char *what);

#endif /* BN_KEYS_H */
