// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Conversions of keys and values between the public structures and the wire, and the smoothed
 * time of READs.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/lib/lib.h"

static struct krp_value value_of(uint8_t byte)
{
	struct krp_value value;

	memset(&value, 0, sizeof(value));
	value.generation = krp_cpu_to_le64(1);
	value.kind = KRP_KIND_RAW;
	value.len = 1;
	value.raw[0] = byte;
	return value;
}

static void test_smoothed_time(void **state)
{
	uint64_t ns = krl_smooth(0, 8000);
	int i;

	(void)state;
	assert_int_equal(ns, 8000);
	assert_int_equal(krl_smooth(8000, 16000), 9000);
	for (i = 0; i < 200; i++)
		ns = krl_smooth(ns, 80);
	assert_in_range(ns, 1, 160);
	assert_int_equal(krl_smooth(0, 0), 1);
}

static void test_dct_goes_there_and_back(void **state)
{
	struct krcore_value value = { .kind = KRCORE_KIND_DCT }, back;
	struct krp_value wire;

	(void)state;
	value.dct = (struct krcore_dct){
		.dc_key = 0x0102030405060708,
		.mrdir_addr = 0x1112131415161718,
		.mrdir_rkey = 0x21222324,
		.dctn = 0x313233,
		.ud_qpn = 0x414243,
		.ud_qkey = 0x51525354,
		.lid = 0x6162,
		.mac = { 1, 2, 3, 4, 5, 6 },
		.mtu = 5,
		.sl = 15,
		.port = 2,
		.flags = KRCORE_DCT_ETHERNET,
		.max_rd_atomic = 16,
	};
	assert_int_equal(krl_value_to_wire(&value, 99, &wire), 0);
	assert_true(krp_value_valid(&wire));
	assert_int_equal(krl_value_from_wire(&wire, &back), 0);
	assert_int_equal(back.generation, 99);
	assert_memory_equal(&back.dct, &value.dct, sizeof(value.dct));
}

static void test_lane_goes_there_and_back(void **state)
{
	struct krcore_value back, value = { .kind = KRCORE_KIND_LANE,
					    .dct = { .ud_qpn = 0x414243, .mtu = 3, .port = 1 } };
	struct krp_value wire;

	(void)state;
	assert_int_equal(krl_value_to_wire(&value, 99, &wire), 0);
	assert_true(krp_value_valid(&wire));
	assert_int_equal(wire.kind, KRP_KIND_LANE);
	assert_int_equal(krl_value_from_wire(&wire, &back), 0);
	assert_int_equal(back.kind, KRCORE_KIND_LANE);
	assert_memory_equal(&back.dct, &value.dct, sizeof(value.dct));
}

static void test_raw_goes_there_and_back(void **state)
{
	struct krcore_value value = { .kind = KRCORE_KIND_RAW, .raw_len = 3, .raw = "abcdef" };
	struct krcore_value back;
	struct krp_value wire;

	(void)state;
	assert_int_equal(krl_value_to_wire(&value, 1, &wire), 0);
	assert_true(krp_value_valid(&wire)); /* what lies behind raw_len does not travel */
	assert_int_equal(krl_value_from_wire(&wire, &back), 0);
	assert_int_equal(back.raw_len, 3);
	assert_memory_equal(back.raw, "abc\0\0", 5);
}

static void check_refused(const struct krcore_value *value, const char *names)
{
	struct krp_value wire, before;

	memset(&wire, 0x5a, sizeof(wire));
	before = wire;
	assert_int_equal(krl_value_to_wire(value, 1, &wire), -EINVAL);
	assert_memory_equal(&wire, &before, sizeof(wire));
	assert_non_null(strstr(krcore_error_text(), names));
}

static void test_bad_values_are_refused_by_name(void **state)
{
	struct krcore_value good = { .kind = KRCORE_KIND_DCT, .dct = { .mtu = 3, .port = 1 } };
	struct krcore_value bad;

	(void)state;
#define REFUSE(field, v) \
	do { \
		bad = good; \
		bad.dct.field = (v); \
		check_refused(&bad, "dct." #field); \
	} while (0)
	REFUSE(dctn, 0x1000000);
	REFUSE(ud_qpn, 0x1000000);
	REFUSE(mtu, 0);
	REFUSE(mtu, 6);
	REFUSE(sl, 16);
	REFUSE(port, 0);
	REFUSE(flags, 0x80);
	good.kind = KRCORE_KIND_LANE;
	good.dct.ud_qpn = 7;
	REFUSE(ud_qpn, 0);
	REFUSE(dctn, 1);
	REFUSE(dc_key, 1);
	REFUSE(sl, 16);
#undef REFUSE
	bad = (struct krcore_value){ .kind = KRCORE_KIND_RAW, .raw_len = KRCORE_RAW_BYTES + 1 };
	check_refused(&bad, "raw_len 47");
	bad = (struct krcore_value){ .kind = 77 };
	check_refused(&bad, "kind 77");
}

static void test_value_of_unknown_kind_is_not_shown(void **state)
{
	struct krp_value wire = value_of(1);
	struct krcore_value value = { .kind = 99 };

	(void)state;
	wire.kind = 200;
	assert_int_equal(krl_value_from_wire(&wire, &value), -EPROTO);
	assert_int_equal(value.kind, 99);
	assert_non_null(strstr(krcore_error_text(), "kind 200"));
}

static void test_keys(void **state)
{
	struct krcore_key key = { .service = 0x1234 }, back;
	struct krp_key wire;

	(void)state;
	memcpy(key.gid, "0123456789abcdef", sizeof(key.gid));
	kru_key_to_wire(&key, &wire);
	assert_int_equal(((uint8_t *)&wire)[16], 0x34);
	assert_int_equal(((uint8_t *)&wire)[17], 0x12);
	kru_key_from_wire(&wire, &back);
	assert_int_equal(back.service, 0x1234);
	assert_memory_equal(back.gid, key.gid, sizeof(key.gid));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_smoothed_time),
		cmocka_unit_test(test_dct_goes_there_and_back),
		cmocka_unit_test(test_lane_goes_there_and_back),
		cmocka_unit_test(test_raw_goes_there_and_back),
		cmocka_unit_test(test_bad_values_are_refused_by_name),
		cmocka_unit_test(test_value_of_unknown_kind_is_not_shown),
		cmocka_unit_test(test_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
