// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: publications that must wait for their turn, or do not get it: what a call that is
 * refused or interrupted leaves is what was there. Without a device or a MetaServer: the port is
 * one that has ended, so nothing that is refused in time can reach either.
 * Locking: a test runs alone.
 */
#include <kunit/test.h>
#include <linux/cred.h>
#include <linux/ktime.h>
#include <linux/sched/signal.h>

#include "node/port.h"
#include "peer/service.h"
#include "user/context.h"
#include "user/service.h"

#define KRC_TEST_NUMBER 300
#define KRC_TEST_UID 54321 /* no other test publishes as this user */
#define KRC_TEST_AWAY_S 30ULL

/**
 * struct krc_test_publisher - A program without privilege that has published all that it may.
 * @ctx: its context.
 * @port: port that has ended.
 * @before: credentials of the test.
 */
struct krc_test_publisher {
	struct krc_context ctx;
	struct krc_port port;
	const struct cred *before;
};

/* The next turn is so far away that no pause of this machine brings it. */
static void krc_test_spend(const struct krc_charge *charge)
{
	u64 now = ktime_get_ns();

	while (krc_publish_turn(charge, now, KRC_TEST_AWAY_S * NSEC_PER_SEC) >= 0)
		;
}

static int krc_test_publisher_init(struct kunit *test)
{
	struct krc_test_publisher *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	struct cred *cred = prepare_creds();

	KUNIT_ASSERT_NOT_NULL(test, p);
	KUNIT_ASSERT_NOT_NULL(test, cred);
	test->priv = p;
	cap_clear(cred->cap_effective);
	cred->uid = KUIDT_INIT(KRC_TEST_UID);
	p->before = override_creds(cred);
	put_cred(cred);
	p->ctx.user = krc_user_get_current();
	KUNIT_ASSERT_NOT_NULL(test, p->ctx.user);
	p->ctx.port = &p->port;
	KUNIT_ASSERT_EQ(test, krc_rail_init(&p->port.rail, NULL), 0);
	krc_rail_kill(&p->port.rail);
	p->ctx.charge.user =
		p->ctx.user; /* which the test has a reference of, and the charge none */
	krc_test_spend(&p->ctx.charge);
	return 0;
}

static void krc_test_publisher_exit(struct kunit *test)
{
	struct krc_test_publisher *p = test->priv;

	krc_bind_undo_all(&p->ctx);
	krc_rail_wait_idle(&p->port.rail);
	krc_rail_fini(&p->port.rail);
	krc_user_put(p->ctx.user);
	revert_creds(p->before);
}

static int krc_test_held(kuid_t uid, const u64 held[KRC_RES_NR], u64 refused, void *arg)
{
	*(u64 *)arg += held[KRC_RES_SERVICE];
	return 0;
}

/* Services that all users hold. */
static u64 krc_test_services(void)
{
	u64 services = 0;

	krc_limits_walk(0, krc_test_held, &services);
	return services;
}

static int krc_test_bind(struct krc_test_publisher *p, u32 timeout_ms)
{
	struct krp_bind bind = { .service = KRC_TEST_NUMBER, .timeout_ms = timeout_ms };

	return krc_ioc_bind(&p->ctx, &bind);
}

static int krc_test_unbind(struct krc_test_publisher *p)
{
	struct krp_bind bind = { .service = KRC_TEST_NUMBER, .flags = KRP_BIND_UNDO };

	return krc_ioc_bind(&p->ctx, &bind);
}

static int krc_test_publish(struct krc_test_publisher *p, u32 timeout_ms)
{
	struct krp_record_publish publish = {
		.service = KRC_TEST_NUMBER, .timeout_ms = timeout_ms, .raw_len = 1, .raw = { 2 }
	};

	return krc_ioc_publish(&p->ctx, &publish);
}

/* A call of a thread that has a signal. */
static int krc_test_with_signal(struct krc_test_publisher *p,
				int (*call)(struct krc_test_publisher *p, u32 timeout_ms))
{
	int err;

	allow_signal(SIGINT);
	send_sig(SIGINT, current, 1);
	err = call(p, KRP_CONNECT_TIMEOUT_MS_MAX);
	flush_signals(current);
	disallow_signal(SIGINT);
	return err;
}

/* The service that the publisher had published before, with the byte 1. */
static struct krc_service *krc_test_published(struct kunit *test)
{
	struct krc_test_publisher *p = test->priv;
	struct krc_service *service =
		krc_service_begin(&p->port, &p->ctx, p->ctx.user, KRC_TEST_NUMBER);

	KUNIT_ASSERT_FALSE(test, IS_ERR(service));
	service->value = (struct krp_value){ .kind = KRP_KIND_RAW, .len = 1, .raw = { 1 } };
	service->settled = true;
	return service;
}

static void krc_test_no_turn_to_bind(struct kunit *test)
{
	struct krc_test_publisher *p = test->priv;

	KUNIT_EXPECT_EQ(test, krc_test_bind(p, 1), -EBUSY);
	KUNIT_EXPECT_EQ(test, krc_test_services(), 0ULL);
	KUNIT_EXPECT_EQ(test, krc_test_publish(p, 1), -EBUSY);
	KUNIT_EXPECT_EQ(test, krc_test_services(), 0ULL);
	KUNIT_EXPECT_EQ(test, krc_test_unbind(p), -ENOENT);
	/* nor has waiting in vain taken the turn of the next call */
	KUNIT_EXPECT_GE(test,
			krc_publish_turn(&p->ctx.charge, ktime_get_ns(),
					 2 * KRC_TEST_AWAY_S * NSEC_PER_SEC),
			0LL);
}

static void krc_test_a_signal_while_waiting_to_bind(struct kunit *test)
{
	struct krc_test_publisher *p = test->priv;

	KUNIT_EXPECT_EQ(test, krc_test_with_signal(p, krc_test_bind), -EINTR);
	KUNIT_EXPECT_EQ(test, krc_test_services(), 0ULL);
	KUNIT_EXPECT_EQ(test, krc_test_with_signal(p, krc_test_publish), -EINTR);
	KUNIT_EXPECT_EQ(test, krc_test_services(), 0ULL);
	KUNIT_EXPECT_EQ(test, krc_test_unbind(p), -ENOENT);
}

/* What was published stays, and is the program's to replace or to withdraw. */
static void krc_test_no_turn_to_replace(struct kunit *test)
{
	struct krc_service *service = krc_test_published(test);
	struct krc_test_publisher *p = test->priv;

	KUNIT_EXPECT_EQ(test, krc_test_publish(p, 1), -EBUSY);
	KUNIT_EXPECT_TRUE(test, service->settled);
	KUNIT_EXPECT_EQ(test, service->value.raw[0], 1);
	KUNIT_EXPECT_EQ(test, krc_test_with_signal(p, krc_test_publish), -EINTR);
	KUNIT_EXPECT_TRUE(test, service->settled);
	KUNIT_EXPECT_EQ(test, service->value.raw[0], 1);
	KUNIT_EXPECT_EQ(test, krc_test_bind(p, 1), -EADDRINUSE);
	KUNIT_EXPECT_EQ(test, krc_test_services(), 1ULL);
	KUNIT_EXPECT_EQ(test, krc_test_unbind(p), 0);
	KUNIT_EXPECT_EQ(test, krc_test_services(), 0ULL);
}

/* A service that another thread is publishing is neither replaced nor withdrawn. */
static void krc_test_published_by_another_thread(struct kunit *test)
{
	struct krc_service *service = krc_test_published(test);
	struct krc_test_publisher *p = test->priv;

	service->settled = false;
	KUNIT_EXPECT_EQ(test, krc_test_publish(p, KRP_CONNECT_TIMEOUT_MS_MAX), -EBUSY);
	KUNIT_EXPECT_EQ(test, krc_test_unbind(p), -EBUSY);
	KUNIT_EXPECT_FALSE(test, service->settled);
	KUNIT_EXPECT_EQ(test, service->value.raw[0], 1);
	KUNIT_EXPECT_EQ(test, krc_test_services(), 1ULL);
}

static struct kunit_case krc_service_cases[] = { KUNIT_CASE(krc_test_no_turn_to_bind),
						 KUNIT_CASE(
							 krc_test_a_signal_while_waiting_to_bind),
						 KUNIT_CASE(krc_test_no_turn_to_replace),
						 KUNIT_CASE(krc_test_published_by_another_thread),
						 {} };

static struct kunit_suite krc_service_suite = {
	.name = "krcore_service",
	.init = krc_test_publisher_init,
	.exit = krc_test_publisher_exit,
	.test_cases = krc_service_cases,
};

kunit_test_suites(&krc_service_suite);
