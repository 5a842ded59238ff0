// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What is made of the kernel's answer about the priorities of a network device; odd and
 * cut-off attributes do no harm. The answer of a device without any is in probe_test.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <linux/dcbnl.h>
#include <linux/rtnetlink.h>

#include "client/metactl/dcb.h"

static char bytes[2048];
static struct mc_dcb dcb;

static int setup(void **state)
{
	(void)state;
	memset(&dcb, 0, sizeof(dcb));
	return 0;
}

static struct nlmsghdr *answer(void)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(bytes);

	nlh->nlmsg_type = RTM_GETDCB;
	mnl_nlmsg_put_extra_header(nlh, sizeof(struct dcbmsg));
	mnl_attr_put_strz(nlh, DCB_ATTR_IFNAME, "eth0");
	return nlh;
}

static void put_app(struct nlmsghdr *nlh, unsigned int selector, unsigned int protocol,
		    unsigned int priority)
{
	struct dcb_app app = { .selector = (__u8)selector,
			       .priority = (__u8)priority,
			       .protocol = (__u16)protocol };

	mnl_attr_put(nlh, DCB_ATTR_IEEE_APP, sizeof(app), &app);
}

static void test_lossless_by_dscp(void **state)
{
	struct ieee_pfc pfc = { .pfc_cap = 8, .pfc_en = 1 << 3 };
	struct nlmsghdr *nlh = answer();
	struct nlattr *ieee, *table;

	(void)state;
	ieee = mnl_attr_nest_start(nlh, DCB_ATTR_IEEE);
	mnl_attr_put(nlh, DCB_ATTR_IEEE_PFC, sizeof(pfc), &pfc);
	table = mnl_attr_nest_start(nlh, DCB_ATTR_IEEE_APP_TABLE);
	put_app(nlh, IEEE_8021QAZ_APP_SEL_DSCP, 26, 3);
	put_app(nlh, IEEE_8021QAZ_APP_SEL_DSCP, 64, 5); /* there is no such DSCP */
	put_app(nlh, IEEE_8021QAZ_APP_SEL_ETHERTYPE, 0x22, 6);
	mnl_attr_nest_end(nlh, table);
	mnl_attr_nest_end(nlh, ieee);
	mc_dcb_take(nlh, &dcb);
	assert_int_equal(dcb.pfc, 1 << 3);
	assert_true(dcb.by_dscp);
	assert_int_equal(dcb.priority[26], 3);
	assert_int_equal(dcb.priority[0], 0);
	assert_int_equal(dcb.priority[0x22], 0);
}

static void test_not_by_dscp(void **state)
{
	struct nlmsghdr *nlh = answer();
	struct nlattr *ieee, *table;

	(void)state;
	ieee = mnl_attr_nest_start(nlh, DCB_ATTR_IEEE);
	table = mnl_attr_nest_start(nlh, DCB_ATTR_IEEE_APP_TABLE);
	put_app(nlh, IEEE_8021QAZ_APP_SEL_ETHERTYPE, 0x8915, 4);
	mnl_attr_nest_end(nlh, table);
	mnl_attr_nest_end(nlh, ieee);
	mc_dcb_take(nlh, &dcb);
	assert_false(dcb.by_dscp);
	assert_int_equal(dcb.pfc, 0);
}

static void test_short_attributes(void **state)
{
	struct nlmsghdr *nlh = answer();
	struct nlattr *ieee, *table;

	(void)state;
	ieee = mnl_attr_nest_start(nlh, DCB_ATTR_IEEE);
	mnl_attr_put(nlh, DCB_ATTR_IEEE_PFC, 2, "\xff\xff");
	table = mnl_attr_nest_start(nlh, DCB_ATTR_IEEE_APP_TABLE);
	mnl_attr_put(nlh, DCB_ATTR_IEEE_APP, 1, "\5");
	mnl_attr_nest_end(nlh, table);
	mnl_attr_nest_end(nlh, ieee);
	mc_dcb_take(nlh, &dcb);
	assert_false(dcb.by_dscp);
	assert_int_equal(dcb.pfc, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_lossless_by_dscp, setup),
		cmocka_unit_test_setup(test_not_by_dscp, setup),
		cmocka_unit_test_setup(test_short_attributes, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
