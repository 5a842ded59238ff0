// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The stress of queues: what is in memory, and whether it is right.
 *
 * A word of a bank holds the number of the WRITE it came from, and 32 bits mixed from
 * that, its bank and its place. A READ may bring, word for word, any WRITE from the last
 * one that was done before it began to the last one begun before it ended; nothing else.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "proto/krp_hash.h"
#include "tests/module/stress.h"

uint64_t st_random(uint64_t *state, uint64_t limit)
{
	*state += KRP_GOLDEN;
	return krp_mix64(*state) % limit;
}

uint64_t st_word(uint32_t nr, uint32_t word, uint32_t seq)
{
	uint64_t place = (uint64_t)nr << 48 ^ (uint64_t)word << 32 ^ seq;

	return (uint64_t)seq << 32 | (krp_mix64(place) & UINT32_MAX);
}

uint64_t st_passing_word(uint64_t generation, uint32_t word)
{
	return krp_mix64(generation << 20 ^ word);
}

uint64_t st_board_sum(const struct st_board *board)
{
	const uint64_t *words = (const uint64_t *)board;
	uint64_t sum = sizeof(*board);
	size_t i;

	for (i = 0; i < offsetof(struct st_board, sum) / sizeof(*words); i++)
		sum = krp_mix64(sum ^ words[i]);
	return sum;
}

void st_fill(uint8_t *to, uint32_t nr, uint32_t word, uint32_t words, uint32_t seq)
{
	uint32_t i;

	for (i = 0; i < words; i++) {
		uint64_t value = st_word(nr, word + i, seq);

		memcpy(to + 8ULL * i, &value, sizeof(value));
	}
}

/* Memory nobody has written yet is zero. */
static bool st_word_right(uint64_t value, uint32_t nr, uint32_t word, uint32_t floor,
			  uint32_t begun)
{
	uint32_t seq = (uint32_t)(value >> 32);

	if (!value)
		return !floor;
	return seq >= floor && seq <= begun && value == st_word(nr, word, seq);
}

uint32_t st_compare(const uint8_t *got, const struct st_bank *bank, uint32_t nr, uint32_t word,
		    uint32_t words, const uint32_t *floor)
{
	uint32_t i, wrong = 0;

	for (i = 0; i < words; i++) {
		uint64_t value;

		memcpy(&value, got + 8ULL * i, sizeof(value));
		if (st_word_right(value, nr, word + i, floor[i], bank->begun[word + i]))
			continue;
		if (!wrong++)
			printf("bank %u word %u: %016llx, WRITE %u, but %u to %u may be there\n",
			       nr, word + i, (unsigned long long)value, (uint32_t)(value >> 32),
			       floor[i], bank->begun[word + i]);
	}
	return wrong;
}

void st_violation(struct st_counts *counts, const char *format, ...)
{
	va_list args;

	counts->violations++;
	printf("VIOLATION at %llu ms: ", (unsigned long long)st_now_ms());
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
}

uint64_t st_bank_offset(uint32_t nr)
{
	return ST_BANKS_OFFSET + (uint64_t)nr * ST_BANK_BYTES;
}

uint64_t st_counter_offset(uint32_t nr)
{
	return ST_COUNTERS_OFFSET + 16ULL * nr;
}
