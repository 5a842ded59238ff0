// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A hash of what was just stored: krp_xxh64() sees the stores of its caller, whatever their
 * types are and however well the compiler knows them. Compiled with optimisation in each
 * build, since without it there is nothing that could go wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "proto/krp_hash.h"

#if !defined(XXH_FORCE_MEMORY_ACCESS) || XXH_FORCE_MEMORY_ACCESS != 0 || XXH_FORCE_ALIGN_CHECK != 0
#error "xxHash may read memory by other means than memcpy()"
#endif

#define WORDS 12
#define SEED 77

/* The same bytes by way of volatile ones: no compiler may look through these. */
static __u64 hash_of_copy(const void *p, size_t bytes)
{
	volatile uint8_t kept[WORDS * 8];
	const volatile uint8_t *from = p;
	size_t i;

	for (i = 0; i < bytes; i++)
		kept[i] = from[i];
	return krp_xxh64((const void *)(uintptr_t)kept, bytes, SEED);
}

/* Stores of @type, then the hash of them, in one function where both are inlined. */
#define ALIAS_TEST(name, type) \
	static void name(void **state) \
	{ \
		type value[WORDS * 8 / sizeof(type)]; \
		size_t i, turn, nr = sizeof(value) / sizeof(*value); \
		__u64 now; \
\
		(void)state; \
		for (i = 0; i < nr; i++) \
			value[i] = 0; \
		for (turn = 0; turn < 64; turn++) { \
			for (i = 0; i < nr; i++) \
				value[i] = (type)(turn * 251 + i * 17 + 1); \
			now = krp_xxh64(value, sizeof(value), SEED); \
			assert_true(now == hash_of_copy(value, sizeof(value))); \
		} \
	}

ALIAS_TEST(test_bytes, uint8_t)
ALIAS_TEST(test_halves, uint16_t)
ALIAS_TEST(test_words, uint32_t)
ALIAS_TEST(test_long_words, uint64_t)
ALIAS_TEST(test_floats, double)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),  cmocka_unit_test(test_halves),
		cmocka_unit_test(test_words),  cmocka_unit_test(test_long_words),
		cmocka_unit_test(test_floats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
