// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What is made of the kernel's extended acknowledgements: the attribute is named, the
 * kernel's text repeated; odd or cut-off answers do no harm.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <linux/genetlink.h>

#include "client/metactl/genl.h"
#include "proto/krp_genl.h"

static char request_bytes[1024];
static char ack_bytes[1024];
static char text[256];

/* A NODE_UP with a pool depth and one MetaServer; gives back where two attributes are. */
static struct nlmsghdr *request(uint32_t *depth_at, uint32_t *port_at)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(request_bytes);
	struct nlattr *nest;

	mnl_nlmsg_put_extra_header(nlh, sizeof(struct genlmsghdr));
	*depth_at = nlh->nlmsg_len;
	mnl_attr_put_u32(nlh, KRP_GENL_A_NODE_POOL_DEPTH, 1);
	nest = mnl_attr_nest_start(nlh, KRP_GENL_A_NODE_SERVER);
	mnl_attr_put_strz(nlh, KRP_GENL_A_SERVER_NAME, "ms1");
	*port_at = nlh->nlmsg_len;
	mnl_attr_put_u16(nlh, KRP_GENL_A_SERVER_PORT, 0);
	mnl_attr_nest_end(nlh, nest);
	return nlh;
}

/* A capped negative acknowledgement; attributes follow. */
static struct nlmsghdr *ack(int error)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(ack_bytes);
	struct nlmsgerr *err = mnl_nlmsg_put_extra_header(nlh, sizeof(*err));

	nlh->nlmsg_type = NLMSG_ERROR;
	nlh->nlmsg_flags = NLM_F_CAPPED | NLM_F_ACK_TLVS;
	err->error = error;
	return nlh;
}

static void test_named(void **state)
{
	uint32_t depth_at, port_at;
	struct nlmsghdr *asked = request(&depth_at, &port_at), *nlh;

	(void)state;
	nlh = ack(-ERANGE);
	mnl_attr_put_strz(nlh, NLMSGERR_ATTR_MSG, "integer out of range");
	mnl_attr_put_u32(nlh, NLMSGERR_ATTR_OFFS, depth_at);
	assert_int_equal(mc_genl_explain(asked, nlh, text, sizeof(text)), -ERANGE);
	assert_string_equal(text, "pool_depth: integer out of range (Numerical result out of "
				  "range)");

	nlh = ack(-EINVAL);
	mnl_attr_put_strz(nlh, NLMSGERR_ATTR_MSG, "no port");
	mnl_attr_put_u32(nlh, NLMSGERR_ATTR_OFFS, port_at);
	assert_int_equal(mc_genl_explain(asked, nlh, text, sizeof(text)), -EINVAL);
	assert_string_equal(text, "server server_port: no port (Invalid argument)");
}

static void test_missing(void **state)
{
	uint32_t depth_at, port_at;
	struct nlmsghdr *asked = request(&depth_at, &port_at), *nlh;

	(void)state;
	nlh = ack(-EINVAL);
	mnl_attr_put_u32(nlh, NLMSGERR_ATTR_MISS_TYPE, KRP_GENL_A_NODE_OWNER);
	assert_int_equal(mc_genl_explain(asked, nlh, text, sizeof(text)), -EINVAL);
	assert_string_equal(text, "owner: Invalid argument");

	nlh = ack(-EINVAL);
	mnl_attr_put_u32(nlh, NLMSGERR_ATTR_MISS_TYPE, KRP_GENL_A_SERVER_ADDRESS);
	mnl_attr_put_u32(nlh, NLMSGERR_ATTR_MISS_NEST, depth_at + 8);
	assert_int_equal(mc_genl_explain(asked, nlh, text, sizeof(text)), -EINVAL);
	assert_string_equal(text, "server address: Invalid argument");
}

static void test_plain(void **state)
{
	uint32_t depth_at, port_at;
	struct nlmsghdr *asked = request(&depth_at, &port_at), *nlh;

	(void)state;
	nlh = ack(-EPERM);
	nlh->nlmsg_flags = 0;
	assert_int_equal(mc_genl_explain(asked, nlh, text, sizeof(text)), -EPERM);
	assert_string_equal(text, "Operation not permitted");
	assert_int_equal(mc_genl_explain(asked, ack(0), text, sizeof(text)), 0);
	/* a positive number is no errno of the kernel's */
	assert_int_equal(mc_genl_explain(asked, ack(5), text, sizeof(text)), -EBADMSG);
}

static void test_odd(void **state)
{
	uint32_t depth_at, port_at;
	struct nlmsghdr *asked = request(&depth_at, &port_at), *nlh;
	struct nlmsgerr *err;

	(void)state;
	nlh = ack(-EINVAL); /* an offset that no attribute begins at */
	mnl_attr_put_u32(nlh, NLMSGERR_ATTR_OFFS, depth_at + 1);
	mc_genl_explain(asked, nlh, text, sizeof(text));
	assert_string_equal(text, "Invalid argument");

	nlh = ack(-EINVAL); /* text without an end, number of a wrong size */
	mnl_attr_put(nlh, NLMSGERR_ATTR_MSG, 3, "abc");
	mnl_attr_put_u16(nlh, NLMSGERR_ATTR_OFFS, (uint16_t)depth_at);
	mc_genl_explain(asked, nlh, text, sizeof(text));
	assert_string_equal(text, "Invalid argument");

	nlh = ack(-EINVAL); /* says that the whole request is repeated, and it is not */
	nlh->nlmsg_flags = NLM_F_ACK_TLVS;
	err = mnl_nlmsg_get_payload(nlh);
	err->msg.nlmsg_len = 4096;
	assert_int_equal(mc_genl_explain(asked, nlh, text, sizeof(text)), -EBADMSG);
	assert_string_equal(text, "the kernel's answer is cut off");

	nlh = ack(-EINVAL);
	nlh->nlmsg_len -= 1;
	assert_int_equal(mc_genl_explain(asked, nlh, text, sizeof(text)), -EBADMSG);
}

static void test_repeated(void **state)
{
	uint32_t depth_at, port_at;
	struct nlmsghdr *asked = request(&depth_at, &port_at), *nlh;
	struct nlmsgerr *err;

	(void)state;
	nlh = ack(-EINVAL); /* the request comes back before the attributes */
	nlh->nlmsg_flags = NLM_F_ACK_TLVS;
	err = mnl_nlmsg_get_payload(nlh);
	err->msg.nlmsg_len = asked->nlmsg_len;
	nlh->nlmsg_len += MNL_ALIGN(asked->nlmsg_len) - (uint32_t)sizeof(err->msg);
	mnl_attr_put_strz(nlh, NLMSGERR_ATTR_MSG, "why");
	mc_genl_explain(asked, nlh, text, sizeof(text));
	assert_string_equal(text, "why (Invalid argument)");
}

/* Without the module there is no family; with it there is one. */
static void test_open(void **state)
{
	struct mc_genl *genl = NULL;
	int err = mc_genl_open(&genl);

	(void)state;
	if (err) {
		assert_true(err == -ENOENT || err == -EPROTONOSUPPORT || err == -EPERM ||
			    err == -EAFNOSUPPORT);
		assert_null(genl);
	}
	mc_genl_close(genl);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_named),	 cmocka_unit_test(test_missing),
		cmocka_unit_test(test_plain),	 cmocka_unit_test(test_odd),
		cmocka_unit_test(test_repeated), cmocka_unit_test(test_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
