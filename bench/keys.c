// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The records that all systems of a benchmark hold: see keys.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/keys.h"

void bn_key(uint64_t nr, struct krp_key *ret_key)
{
	unsigned int i;

	memset(ret_key, 0, sizeof(*ret_key));
	ret_key->gid[0] = 0xfd; /* a private IPv6 prefix */
	for (i = 0; i < 8; i++)
		ret_key->gid[15 - i] = (__u8)(nr >> (8 * i));
	ret_key->service = krp_cpu_to_le16(BN_SERVICE);
}

void bn_value(uint64_t nr, struct krp_value *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->generation = krp_cpu_to_le64(1);
	ret->kind = KRP_KIND_RAW;
	ret->len = sizeof(nr);
	memcpy(ret->raw, &nr, sizeof(nr));
}

unsigned int bn_key_text(uint64_t nr, char *buf)
{
	return (unsigned int)snprintf(buf, BN_TEXT_BYTES, "r%017" PRIu64, nr);
}

uint64_t bn_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dULL;
}

uint64_t bn_number(const char *text, uint64_t min, uint64_t max, const char *what)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || value < min || value > max) {
		fprintf(stderr, "%s: '%s' is not a number from %" PRIu64 " to %" PRIu64 "\n", what,
			text, min, max);
		exit(2);
	}
	return value;
}

void bn_die(const char *what)
{
	perror(what);
	exit(1);
}
