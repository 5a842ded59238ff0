// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: what is known of one target, without a NIC: how its pauses grow, and when it is barred.
 */
#include "pool/silence.h"
#include "krc_pool_test.h"

static struct krc_standing *krc_test_standing(struct krc_test *t)
{
	struct krc_hw_address address = { .opaque = { 1 } };
	struct krc_standing *s = krc_standing_get(&t->port.rail, &address, 0x1000, 0x77);

	KUNIT_ASSERT_NOT_NULL(t->test, s);
	return s;
}

/* A failure after @took_ms means a pause of @pause_ms, however long this task stood still. */
static void krc_test_pause(struct kunit *test, struct krc_standing *s, u32 took_ms, u32 pause_ms)
{
	unsigned long pause = msecs_to_jiffies(pause_ms), before = jiffies;

	krc_standing_failed(s, msecs_to_jiffies(took_ms));
	KUNIT_EXPECT_TRUE(test, time_in_range(s->retry_at, before + pause, jiffies + pause));
	KUNIT_EXPECT_TRUE(test, !krc_standing_due(s) || time_after_eq(jiffies, s->retry_at));
}

static void krc_test_pauses_double(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_standing *s = krc_test_standing(t);
	static const u32 took_ms[] = { 1, 200, 200, 200, 200, 4000 };
	static const u32 pause_ms[] = { 100, 400, 800, 1600, 1600, 5000 };
	unsigned long retry_at;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(took_ms); i++)
		krc_test_pause(test, s, took_ms[i], pause_ms[i]);
	retry_at = s->retry_at;
	krc_standing_suspect(s); /* known */
	KUNIT_EXPECT_EQ(test, s->retry_at, retry_at);
	krc_standing_answered(s);
	KUNIT_EXPECT_TRUE(test, krc_standing_due(s));
	KUNIT_EXPECT_EQ(test, (int)krc_standing_now(s), KRC_STANDING_PROVEN);
	krc_test_pause(test, s, 200, 200); /* from the beginning */
	krc_standing_answered(s);
	krc_standing_put(s);
}

/* So many refusals are the first @nr of a target; whether it is barred after each. */
static void krc_test_refuses(struct kunit *test, struct krc_standing *s, u32 nr, bool barred)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		KUNIT_EXPECT_EQ(test, krc_standing_refused(s), barred);
		/* not whether its time is over, for this task may have stood still */
		KUNIT_EXPECT_EQ(test, s->barred, barred);
		KUNIT_EXPECT_EQ(test, (int)s->state,
				barred ? KRC_STANDING_SILENT : KRC_STANDING_PROVEN);
	}
}

/* What it answers while it is barred changes nothing; it is barred for longer each time. */
static void krc_test_who_refuses_is_barred(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_standing *s = krc_test_standing(t);
	static const u32 barred_ms[] = { 1000, 2000, 4000, 8000, 16000, 32000, 32000 };
	unsigned long before, pause, retry_at;
	u32 i;

	krc_test_refuses(test, s, KRC_REFUSED_FREE, false);
	for (i = 0; i < ARRAY_SIZE(barred_ms); i++) {
		before = jiffies;
		pause = msecs_to_jiffies(barred_ms[i]);
		krc_test_refuses(test, s, 1, true);
		KUNIT_EXPECT_TRUE(test,
				  time_in_range(s->retry_at, before + pause, jiffies + pause));
		retry_at = s->retry_at += msecs_to_jiffies(KRC_REFUSED_MS);
		krc_standing_answered(s);
		krc_standing_failed(s, 1);
		krc_standing_suspect(s);
		KUNIT_EXPECT_TRUE(test, krc_standing_barred(s));
		KUNIT_EXPECT_FALSE(test, krc_standing_due(s));
		krc_test_refuses(test, s, 1, true); /* what was posted before it was barred */
		KUNIT_EXPECT_EQ(test, s->retry_at, retry_at);
		s->retry_at = jiffies; /* its time is over */
		KUNIT_EXPECT_FALSE(test, krc_standing_barred(s));
		KUNIT_EXPECT_TRUE(test, krc_standing_due(s));
		krc_standing_answered(s);
		KUNIT_EXPECT_EQ(test, (int)krc_standing_now(s), KRC_STANDING_PROVEN);
	}
	s->refused = jiffies - msecs_to_jiffies(KRC_REFUSED_MS); /* long ago */
	krc_test_refuses(test, s, KRC_REFUSED_FREE, false);
	krc_standing_put(s);
}

/* What it has refused is remembered without a user, for some time. */
static void krc_test_refusals_outlive_users(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_standing *s;
	u32 i;

	for (i = 0; i < KRC_REFUSED_FREE; i++) {
		s = krc_test_standing(t);
		krc_test_refuses(test, s, 1, false);
		krc_standing_put(s);
		KUNIT_EXPECT_EQ(test, krc_silence_idle(), 1U);
	}
	s = krc_test_standing(t);
	krc_test_refuses(test, s, 1, true);
	s->retry_at = jiffies;
	krc_standing_answered(s);
	s->refused = jiffies - msecs_to_jiffies(KRC_REFUSED_MS);
	krc_standing_put(s);
	KUNIT_EXPECT_EQ(test, krc_silence_idle(), 0U);
}

/* Silence outlives who asked; more of it than there is room for makes targets new, not proven. */
static void krc_test_silence_is_kept_within_bounds(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_hw_address address = {};
	struct krc_standing *s;
	u32 i;

	for (i = 0; i <= KRC_SILENT_MAX; i++) {
		memcpy(address.opaque, &i, sizeof(i));
		s = krc_standing_get(&t->port.rail, &address, 0x1000, 0x77);
		KUNIT_ASSERT_NOT_NULL(test, s);
		krc_standing_suspect(s);
		krc_standing_put(s);
		KUNIT_EXPECT_EQ(test, krc_silence_idle(), min(i + 1, (u32)KRC_SILENT_MAX));
	}
	for (i = 0; i <= KRC_SILENT_MAX; i += KRC_SILENT_MAX / 2) {
		memcpy(address.opaque, &i, sizeof(i));
		s = krc_standing_get(&t->port.rail, &address, 0x1000, 0x77);
		KUNIT_ASSERT_NOT_NULL(test, s);
		KUNIT_EXPECT_EQ(test, (int)krc_standing_now(s),
				i ? KRC_STANDING_SILENT : KRC_STANDING_NEW);
		krc_standing_put(s);
	}
	/* the directory is part of the name: a wrong record speaks for itself alone */
	s = krc_standing_get(&t->port.rail, &address, 0x2000, 0x77);
	KUNIT_ASSERT_NOT_NULL(test, s);
	KUNIT_EXPECT_EQ(test, (int)krc_standing_now(s), KRC_STANDING_NEW);
	krc_silence_drop(&t->port.rail);
	KUNIT_EXPECT_EQ(test, krc_silence_idle(), 0U);
	krc_standing_suspect(s);
	krc_standing_put(s); /* its port is gone: not remembered */
	KUNIT_EXPECT_EQ(test, krc_silence_idle(), 0U);
}

/* Unanswered leases: the first has it asked apart, and no more; the next one soon after has a pause. */
static void krc_test_leases_that_end_unanswered(struct kunit *test)
{
	struct krc_test *t = test->priv;
	struct krc_standing *s = krc_test_standing(t);
	int i;

	krc_standing_expired(s); /* it was not proven */
	KUNIT_EXPECT_EQ(test, (int)s->state, KRC_STANDING_NEW);
	for (i = 0; i < 3; i++) {
		krc_standing_answered(s);
		s->expired = jiffies - msecs_to_jiffies(KRC_EXPIRED_MS); /* long ago */
		krc_standing_expired(s);
		KUNIT_EXPECT_EQ(test, (int)s->state, KRC_STANDING_NEW);
		KUNIT_EXPECT_TRUE(test, krc_standing_due(s));
		s->expired = jiffies + 60 * HZ; /* just now, however long this takes */
		krc_standing_expired(s); /* so had others been posted, before it was asked */
		KUNIT_EXPECT_EQ(test, (int)s->state, KRC_STANDING_NEW);
		krc_standing_answered(s);
		krc_standing_expired(s);
		KUNIT_EXPECT_EQ(test, (int)s->state, KRC_STANDING_SILENT);
		KUNIT_EXPECT_FALSE(test, s->barred);
	}
	krc_standing_answered(s);
	KUNIT_EXPECT_EQ(test, (int)s->state, KRC_STANDING_PROVEN);
	s->expired = jiffies + 60 * HZ;
	krc_standing_put(s); /* it is remembered, whoever connects anew */
	KUNIT_EXPECT_EQ(test, krc_silence_idle(), 1U);
	s = krc_test_standing(t);
	s->expired = jiffies - msecs_to_jiffies(KRC_EXPIRED_MS);
	krc_standing_put(s);
	KUNIT_EXPECT_EQ(test, krc_silence_idle(), 0U);
}

static struct kunit_case krc_standing_cases[] = { KUNIT_CASE(krc_test_pauses_double),
						  KUNIT_CASE(krc_test_who_refuses_is_barred),
						  KUNIT_CASE(krc_test_refusals_outlive_users),
						  KUNIT_CASE(
							  krc_test_silence_is_kept_within_bounds),
						  KUNIT_CASE(krc_test_leases_that_end_unanswered),
						  {} };

static struct kunit_suite krc_standing_suite = {
	.name = "krcore_standing",
	.init = krc_test_init,
	.exit = krc_test_exit,
	.test_cases = krc_standing_cases,
};
kunit_test_suite(krc_standing_suite);
