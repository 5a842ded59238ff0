// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The records a context keeps up, the choice of a server, and conversions:
 * what libkrcore decides without any RDMA.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/lib/choose.h"
#include "client/lib/lib.h"

static struct krp_key key_of(unsigned int nr)
{
	struct krp_key key = { .service = krp_cpu_to_le16((__u16)nr) };

	key.gid[0] = 0xfd;
	key.gid[1] = (__u8)(nr >> 16);
	return key;
}

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

static struct krl_record *put(struct krl_store *store, unsigned int nr, uint8_t byte)
{
	struct krp_value value = value_of(byte);
	struct krp_key key = key_of(nr);

	return krl_store_put(store, &key, &value);
}

static struct krl_record *find(struct krl_store *store, unsigned int nr)
{
	struct krp_key key = key_of(nr);

	return krl_store_find(store, &key);
}

static void test_put_find_remove(void **state)
{
	struct krl_store store;
	unsigned int i;

	(void)state;
	krl_store_init(&store, 2);
	assert_null(find(&store, 1));
	for (i = 0; i < 1000; i++)
		assert_non_null(put(&store, i, (uint8_t)i));
	for (i = 0; i < 1000; i += 2)
		krl_store_remove(&store, find(&store, i));
	assert_int_equal(store.nr, 500);
	for (i = 0; i < 1000; i++) {
		struct krl_record *rec = find(&store, i);

		if (!(i % 2)) {
			assert_null(rec);
			continue;
		}
		assert_non_null(rec);
		assert_int_equal(rec->value.raw[0], (uint8_t)i);
		assert_ptr_equal(store.records[rec->pos], rec);
	}
	assert_int_equal(krl_store_live(&store, 0, KRL_AT_DIRTY), 500);
	krl_store_fini(&store);
}

static void test_new_value_is_dirty_everywhere(void **state)
{
	struct krl_store store;
	struct krl_record *rec;
	uint64_t version;

	(void)state;
	krl_store_init(&store, 2);
	rec = put(&store, 7, 1);
	version = rec->version;
	krl_store_set(&store, rec, 0, KRL_AT_ACKED);
	krl_store_set(&store, rec, 1, KRL_AT_REFUSED);
	assert_int_equal(krl_store_live(&store, 0, KRL_AT_ACKED), 1);
	assert_int_equal(krl_store_live(&store, 1, KRL_AT_REFUSED), 1);

	assert_ptr_equal(put(&store, 7, 2), rec);
	assert_true(rec->version > version);
	assert_int_equal(rec->at[0], KRL_AT_DIRTY);
	assert_int_equal(rec->at[1], KRL_AT_DIRTY);
	assert_int_equal(krl_store_live(&store, 0, KRL_AT_ACKED), 0);
	assert_int_equal(krl_store_live(&store, 0, KRL_AT_DIRTY), 1);
	krl_store_fini(&store);
}

static void test_every_dirty_record_is_handed_out_once(void **state)
{
	struct krl_store store;
	struct krl_record *rec;
	unsigned int cursor = 12345, nr = 0, i;

	(void)state;
	krl_store_init(&store, 1);
	for (i = 0; i < 100; i++)
		put(&store, i, 0);
	while ((rec = krl_store_dirty(&store, 0, &cursor))) {
		krl_store_set(&store, rec, 0, KRL_AT_SENT);
		/* removal moves another record into its place: none may be missed */
		if (++nr == 50)
			krl_store_remove(&store, store.records[0]);
		assert_true(nr <= 100);
	}
	assert_int_equal(nr, 100);
	assert_int_equal(krl_store_live(&store, 0, KRL_AT_SENT), 99);

	/* the connection broke: what was sent is to be sent again */
	krl_store_set_all(&store, 0, 1U << KRL_AT_SENT, KRL_AT_DIRTY);
	assert_int_equal(krl_store_live(&store, 0, KRL_AT_DIRTY), 99);
	assert_non_null(krl_store_dirty(&store, 0, &cursor));
	krl_store_fini(&store);
}

static void test_gone_record_stays_until_every_server_knows(void **state)
{
	struct krl_store store;
	struct krl_record *rec;
	unsigned int cursor = 0;

	(void)state;
	krl_store_init(&store, 2);
	rec = put(&store, 3, 1);
	krl_store_set(&store, rec, 0, KRL_AT_ACKED);
	krl_store_gone(&store, rec, 1000);
	assert_true(rec->gone);
	assert_int_equal(krl_store_live(&store, 0, KRL_AT_ACKED), 0);
	assert_int_equal(krl_store_live(&store, 0, KRL_AT_DIRTY), 0); /* gone ones do not count */
	assert_ptr_equal(krl_store_dirty(&store, 0, &cursor), rec);

	krl_store_set(&store, rec, 0, KRL_AT_ACKED);
	assert_false(krl_store_settled(&store, rec));
	krl_store_set(&store, rec, 1, KRL_AT_ACKED);
	assert_true(krl_store_settled(&store, rec));
	assert_null(find(&store, 3));

	rec = put(&store, 4, 1);
	krl_store_set(&store, rec, 0, KRL_AT_ACKED);
	krl_store_set(&store, rec, 1, KRL_AT_ACKED);
	assert_false(krl_store_settled(&store, rec)); /* a live one is never forgotten */
	krl_store_expire(&store, ~0ULL);
	assert_non_null(find(&store, 4));
	krl_store_gone(&store, rec, 1000);
	krl_store_expire(&store, 999);
	assert_non_null(find(&store, 4));
	krl_store_expire(&store, 1000);
	assert_null(find(&store, 4));
	krl_store_fini(&store);
}

static void test_better_server(void **state)
{
	struct krl_candidate settled = { .usable = true, .priority = 200, .rtt_ns = 9000 };
	struct krl_candidate settling = { .usable = true, .doubtful = true, .priority = 1 };
	struct krl_candidate fast = { .usable = true, .priority = 100, .rtt_ns = 2000 };
	struct krl_candidate slow = { .usable = true, .priority = 100, .rtt_ns = 3000 };
	struct krl_candidate unknown = { .usable = true, .priority = 100 };

	(void)state;
	assert_true(krl_better(&settled, &settling));
	assert_false(krl_better(&settling, &settled));
	assert_true(krl_better(&slow, &settled)); /* priority before time */
	assert_true(krl_better(&fast, &slow));
	assert_false(krl_better(&slow, &fast));
	assert_true(krl_better(&slow, &unknown));
	assert_false(krl_better(&unknown, &slow));
	assert_false(krl_better(&fast, &fast));
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

/* Lose a server that was attached for @up_ms. Return: the pause before the next attempt. */
static uint64_t pause_ms_after(struct krl_server *srv, uint64_t up_ms)
{
	uint64_t now_ns = krl_now_ns();

	srv->state = KRL_UP;
	srv->up_ns = now_ns - up_ms * 1000000;
	krl_server_down(srv);
	assert_int_equal(srv->state, KRL_DOWN);
	return (srv->retry_at_ns - now_ns) / 1000000;
}

/* Two contexts that say they are the same one throw each other out: ever more slowly. */
static void test_who_is_thrown_out_at_once_comes_more_slowly(void **state)
{
	struct krcore_ctx ctx = { 0 };
	struct krl_server srv = { .ctx = &ctx };
	unsigned int i;

	(void)state;
	pthread_mutex_init(&ctx.lock, NULL);
	pthread_cond_init(&ctx.cond, NULL);
	pthread_mutex_init(&srv.io, NULL);
	ctx.config.reconnect_min_ms = 200;
	ctx.config.reconnect_max_ms = 10000;
	for (i = 0; i < 6; i++)
		assert_in_range(pause_ms_after(&srv, 50), 150ULL << i, (250ULL << i) + 200);
	assert_in_range(pause_ms_after(&srv, 9000), 7500, 12700);
	assert_in_range(pause_ms_after(&srv, 10000), 150, 450); /* it had lasted */
	assert_in_range(pause_ms_after(&srv, 50), 300, 700);
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
		cmocka_unit_test(test_put_find_remove),
		cmocka_unit_test(test_new_value_is_dirty_everywhere),
		cmocka_unit_test(test_every_dirty_record_is_handed_out_once),
		cmocka_unit_test(test_gone_record_stays_until_every_server_knows),
		cmocka_unit_test(test_better_server),
		cmocka_unit_test(test_smoothed_time),
		cmocka_unit_test(test_who_is_thrown_out_at_once_comes_more_slowly),
		cmocka_unit_test(test_dct_goes_there_and_back),
		cmocka_unit_test(test_raw_goes_there_and_back),
		cmocka_unit_test(test_bad_values_are_refused_by_name),
		cmocka_unit_test(test_value_of_unknown_kind_is_not_shown),
		cmocka_unit_test(test_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
