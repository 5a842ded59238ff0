// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The private data of a refused connection request: its vector, and bytes that are none. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "proto/krp_reject.h"
#include "tests/unit/vectors.h"

#define CM_REJECT_BYTES 148 /* private data of an InfiniBand REJ: always so many */

static void test_vector(void **state)
{
	unsigned char want[VECTOR_BYTES_MAX];
	struct krp_reject m;

	(void)state;
	krp_reject_init(&m, KRP_REJECT_CLIENTS);
	assert_int_equal(vector_load("reject.txt", "CLIENTS", want), sizeof(m));
	assert_memory_equal(&m, want, sizeof(m));
	assert_int_equal(krp_reject_reason(want, sizeof(m)), KRP_REJECT_CLIENTS);

	krp_reject_init(&m, KRP_REJECT_DRAINED);
	assert_int_equal(vector_load("reject.txt", "DRAINED", want), sizeof(m));
	assert_memory_equal(&m, want, sizeof(m));
	assert_int_equal(krp_reject_reason(want, sizeof(m)), KRP_REJECT_DRAINED);
	assert_int_equal(krp_reject_errno(KRP_REJECT_DRAINED), -ESHUTDOWN);

	krp_reject_init(&m, KRP_REJECT_MTU);
	assert_int_equal(vector_load("reject.txt", "MTU", want), sizeof(m));
	assert_memory_equal(&m, want, sizeof(m));
	assert_int_equal(krp_reject_reason(want, sizeof(m)), KRP_REJECT_MTU);
	assert_int_equal(krp_reject_errno(KRP_REJECT_MTU), -EMSGSIZE);
}

static void test_what_is_none(void **state)
{
	unsigned char data[CM_REJECT_BYTES] = { 0 };
	struct krp_reject m;
	unsigned int i;

	(void)state;
	assert_int_equal(krp_reject_reason(NULL, 0), 0);
	assert_int_equal(krp_reject_reason(data, sizeof(data)), 0);
	krp_reject_init(&m, KRP_REJECT_SHUTDOWN);
	for (i = 0; i < sizeof(m); i++) /* too short for a reason */
		assert_int_equal(krp_reject_reason(&m, i), 0);
	memcpy(data + 1, &m, sizeof(m)); /* at an odd address, with more behind it */
	assert_int_equal(krp_reject_reason(data + 1, sizeof(data) - 1), KRP_REJECT_SHUTDOWN);
	for (i = 0; i < 6; i++) {
		memcpy(data, &m, sizeof(m));
		data[i] = i < 4 ? (unsigned char)~data[i] : 0; /* magic, version, reason */
		assert_int_equal(krp_reject_reason(data, sizeof(data)), 0);
	}
}

static void test_later_ones(void **state)
{
	struct krp_reject m;

	(void)state;
	krp_reject_init(&m, 200);
	m.version = 9;
	m.rsvd[1] = 1;
	assert_int_equal(krp_reject_reason(&m, sizeof(m)), KRP_REJECT_RESOURCES);
}

static void test_texts_and_errnos(void **state)
{
	unsigned int i, j;

	(void)state;
	assert_int_equal(krp_reject_errno(0), -ECONNREFUSED);
	for (i = 1; i < KRP_REJECT_REASONS; i++) {
		assert_true(krp_reject_errno(i) < 0);
		for (j = 0; j < i; j++)
			assert_string_not_equal(krp_reject_text(i), krp_reject_text(j));
	}
	assert_string_equal(krp_reject_text(99), krp_reject_text(KRP_REJECT_RESOURCES));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vector),
		cmocka_unit_test(test_what_is_none),
		cmocka_unit_test(test_later_ones),
		cmocka_unit_test(test_texts_and_errnos),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
