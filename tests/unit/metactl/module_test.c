// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The kernel module as krcore-metactl shows and configures it: rows of answers, the
 * NODE_UP request of a configuration, one address for each MetaServer; and that the
 * bounds of krcore.conf(5) are those of the module.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>
#include <linux/genetlink.h>

#include "client/metactl/module.h"
#include "proto/krp_ioctl_message.h"
#include "proto/krp_mrdir.h"

#define BYTES 16384

static char message[BYTES];
static char *text;
static size_t text_bytes;

static struct nlmsghdr *begin(void)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(message);

	mnl_nlmsg_put_extra_header(nlh, sizeof(struct genlmsghdr));
	return nlh;
}

/* The row of a message, as JSON. */
static json_t *row(const struct nlmsghdr *nlh, enum mc_set set, unsigned int flags)
{
	const struct nlattr *attrs;
	struct mc_out *out;
	json_t *array;
	size_t bytes;
	FILE *file;

	free(text);
	text = NULL;
	file = open_memstream(&text, &text_bytes);
	assert_non_null(file);
	assert_int_equal(mc_out_new(file, flags, &out), 0);
	mc_out_table(out, MC_TABLE, NULL);
	attrs = mc_module_attrs(nlh, &bytes);
	mc_module_row(out, set, attrs, bytes);
	assert_int_equal(mc_out_end(out), 0);
	fclose(file);
	if (!(flags & MC_OUT_JSON))
		return NULL;
	array = json_loads(text, 0, NULL);
	assert_int_equal(json_array_size(array), 1);
	return array;
}

static json_t *cell(json_t *array, const char *key)
{
	json_t *value = json_object_get(json_array_get(array, 0), key);

	if (!value)
		print_error("no '%s' in %s\n", key, text);
	assert_non_null(value);
	return value;
}

static void cell_is(json_t *array, const char *key, const char *wanted)
{
	assert_string_equal(json_string_value(cell(array, key)), wanted);
}

static void number_is(json_t *array, const char *key, json_int_t wanted)
{
	assert_true(json_is_integer(cell(array, key)));
	assert_int_equal(json_integer_value(cell(array, key)), wanted);
}

static void test_port_up(void **state)
{
	static const uint8_t gid[16] = { [10] = 0xff, 0xff, 192, 168, 77, 1 };
	struct nlmsghdr *nlh = begin();
	json_t *array;

	(void)state;
	mnl_attr_put_strz(nlh, KRP_GENL_A_PORT_DEVICE, "mlx5_0");
	mnl_attr_put_u32(nlh, KRP_GENL_A_PORT_NUM, 1);
	mnl_attr_put_u8(nlh, KRP_GENL_A_PORT_STATE, KRP_GENL_PORT_UP);
	mnl_attr_put_strz(nlh, KRP_GENL_A_PORT_PROVIDER, "mlx5-dc");
	mnl_attr_put(nlh, KRP_GENL_A_PORT_GID, sizeof(gid), gid);
	mnl_attr_put_u32(nlh, KRP_GENL_A_PORT_DCTN, 0x1234);
	mnl_attr_put_u16(nlh, KRP_GENL_A_PORT_LID, 0);
	mnl_attr_put_u8(nlh, KRP_GENL_A_PORT_ETHERNET, 1);
	mnl_attr_put_u64(nlh, KRP_GENL_A_PORT_GENERATION, 1800000000000000001ULL);
	mnl_attr_put_u64(nlh, KRP_GENL_A_PORT_RECOVERIES, 3);
	array = row(nlh, MC_SET_PORT, MC_OUT_JSON);
	cell_is(array, "device", "mlx5_0");
	number_is(array, "port", 1);
	cell_is(array, "state", "up");
	cell_is(array, "provider", "mlx5-dc");
	cell_is(array, "gid", "192.168.77.1");
	cell_is(array, "dctn", "0x1234");
	number_is(array, "lid", 0);
	number_is(array, "recoveries", 3);
	number_is(array, "generation", 1800000000000000001LL);
	assert_true(json_is_true(cell(array, "ethernet")));
	assert_true(json_is_null(cell(array, "reason")));
	assert_true(json_is_null(cell(array, "initiators"))); /* absent */
	json_decref(array);
}

static void test_port_unusable(void **state)
{
	struct nlmsghdr *nlh = begin();
	json_t *array;

	(void)state;
	mnl_attr_put_strz(nlh, KRP_GENL_A_PORT_DEVICE, "rxe0");
	mnl_attr_put_u32(nlh, KRP_GENL_A_PORT_NUM, 1);
	mnl_attr_put_u8(nlh, KRP_GENL_A_PORT_STATE, KRP_GENL_PORT_UNUSABLE);
	mnl_attr_put_strz(nlh, KRP_GENL_A_PORT_REASON, "no DC: no provider knows the device");
	array = row(nlh, MC_SET_PORT, MC_OUT_JSON);
	cell_is(array, "state", "unusable");
	cell_is(array, "reason", "no DC: no provider knows the device");
	assert_true(json_is_null(cell(array, "provider")));
	json_decref(array);
	row(nlh, MC_SET_PORT, MC_OUT_COLOUR);
	assert_non_null(strstr(text, "\033[31munusable"));
	assert_non_null(strstr(text, "    reason: no DC: no provider knows the device\n"));
	assert_int_equal(mc_module_u32(nlh, KRP_GENL_A_PORT_NUM), 1);
	assert_int_equal(mc_module_u32(nlh, KRP_GENL_A_PORT_DCTN), 0);
	assert_string_equal(mc_module_text(nlh, KRP_GENL_A_PORT_DEVICE), "rxe0");
	assert_string_equal(mc_module_text(nlh, KRP_GENL_A_PORT_PROVIDER), "");
}

static void test_session(void **state)
{
	struct nlmsghdr *nlh = begin();
	struct in6_addr in6;
	json_t *array;

	(void)state;
	inet_pton(AF_INET6, "2001:db8::2", &in6);
	mnl_attr_put(nlh, KRP_GENL_A_SERVER_ADDRESS, sizeof(in6), &in6);
	mnl_attr_put_u16(nlh, KRP_GENL_A_SERVER_PORT, 18600);
	mnl_attr_put_strz(nlh, KRP_GENL_A_SERVER_NAME, "ms\033[2J1");
	mnl_attr_put_u8(nlh, KRP_GENL_A_SERVER_STATE, KRP_GENL_SERVER_DOWN);
	mnl_attr_put_u32(nlh, KRP_GENL_A_SERVER_ERROR, (uint32_t)-EKEYREJECTED);
	mnl_attr_put_strz(nlh, KRP_GENL_A_SERVER_REASON, "authentication failed");
	mnl_attr_put_u32(nlh, KRP_GENL_A_SERVER_PUBLISHED, 2);
	mnl_attr_put_u64(nlh, KRP_GENL_A_SERVER_INCARNATION, 0xabcdef);
	array = row(nlh, MC_SET_SERVER, MC_OUT_JSON);
	cell_is(array, "address", "[2001:db8::2]:18600");
	cell_is(array, "name", "ms\\x1b[2J1");
	cell_is(array, "state", "down");
	number_is(array, "errno", -EKEYREJECTED);
	number_is(array, "records", 2);
	cell_is(array, "incarnation", "0xabcdef");
	cell_is(array, "reason", "authentication failed");
	json_decref(array);
}

static void test_odd_attributes(void **state)
{
	struct nlmsghdr *nlh = begin();
	json_t *array;

	(void)state;
	mnl_attr_put_u8(nlh, KRP_GENL_A_QUEUE_STATE, 77);
	mnl_attr_put(nlh, KRP_GENL_A_QUEUE_GID, 3, "abc");
	mnl_attr_put(nlh, KRP_GENL_A_QUEUE_COMM, 3, "abc"); /* without an end */
	mnl_attr_put(nlh, KRP_GENL_A_QUEUE_PID, 3, "abc");
	mnl_attr_put_u32(nlh, 4711, 1);
	array = row(nlh, MC_SET_QUEUE, MC_OUT_JSON);
	cell_is(array, "state", "unknown");
	assert_true(json_is_null(cell(array, "gid")));
	assert_true(json_is_null(cell(array, "comm")));
	number_is(array, "pid", 0);
	json_decref(array);
}

/* Each attribute of each set has a name, so that an error can name it. */
static void test_names(void **state)
{
	static const uint16_t last[MC_SETS] = {
		[MC_SET_NODE] = KRP_GENL_A_NODE_MAX,	     [MC_SET_PORT] = KRP_GENL_A_PORT_MAX,
		[MC_SET_SERVER] = KRP_GENL_A_SERVER_MAX,     [MC_SET_QUEUE] = KRP_GENL_A_QUEUE_MAX,
		[MC_SET_PEER] = KRP_GENL_A_PEER_MAX,	     [MC_SET_STATS] = KRP_GENL_A_STATS_MAX,
		[MC_SET_POOL] = KRP_GENL_A_POOL_MAX,	     [MC_SET_LANES] = KRP_GENL_A_LANES_MAX,
		[MC_SET_USER] = KRP_GENL_A_USER_MAX,	     [MC_SET_CONN] = KRP_GENL_A_CONN_MAX,
		[MC_SET_MESSAGES] = KRP_GENL_A_MESSAGES_MAX,
	};
	unsigned int set, type;

	(void)state;
	for (set = 0; set < MC_SETS; set++) {
		for (type = 2; type <= last[set]; type++)
			assert_string_not_equal(mc_module_attr(set, (uint16_t)type),
						"unknown attribute");
		assert_string_equal(mc_module_attr(set, last[set] + 1), "unknown attribute");
	}
	assert_string_equal(mc_module_state(MC_SET_SERVER, KRP_GENL_SERVER_STATES), "unknown");
	assert_string_equal(mc_module_state(MC_SET_CONN, KRP_CONN_DEAD + 1), "unknown");
}

/* A connection that is offered has no more than a number and whose it is. */
static void test_connections(void **state)
{
	struct nlmsghdr *nlh = begin();
	json_t *array;

	(void)state;
	mnl_attr_put_u32(nlh, KRP_GENL_A_CONN_NUMBER, 7);
	mnl_attr_put_u8(nlh, KRP_GENL_A_CONN_STATE, KRP_CONN_OFFERED);
	array = row(nlh, MC_SET_CONN, MC_OUT_JSON);
	number_is(array, "connection", 7);
	cell_is(array, "state", "offered");
	assert_true(json_is_null(cell(array, "window")));
	assert_true(json_is_null(cell(array, "client")));
	assert_true(json_is_null(cell(array, "initiator")));
	json_decref(array);

	mnl_attr_put_u8(nlh, KRP_GENL_A_CONN_STATE, KRP_CONN_OPEN);
	mnl_attr_put_u32(nlh, KRP_GENL_A_CONN_WINDOW, 16);
	mnl_attr_put_u32(nlh, KRP_GENL_A_CONN_BACKLOG, 3);
	mnl_attr_put_u32(nlh, KRP_GENL_A_CONN_FOREIGN, 2);
	mnl_attr_put_u64(nlh, KRP_GENL_A_CONN_RECEIVED, 1ULL << 40);
	mnl_attr_put_u64(nlh, KRP_GENL_A_CONN_CLIENT, 4);
	mnl_attr_put_u32(nlh, KRP_GENL_A_CONN_INITIATOR, 5);
	array = row(nlh, MC_SET_CONN, MC_OUT_JSON);
	cell_is(array, "state", "open");
	number_is(array, "window", 16);
	number_is(array, "backlog", 3);
	number_is(array, "foreign", 2);
	number_is(array, "received", 1ULL << 40);
	number_is(array, "client", 4);
	number_is(array, "initiator", 5);
	assert_true(json_is_null(cell(array, "context")));
	json_decref(array);
}

static struct kru_endpoint endpoint(const char *host, const char *address, uint16_t port,
				    uint16_t priority)
{
	struct kru_endpoint ep = { .priority = priority };
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&ep.addr;
	struct sockaddr_in *in = (struct sockaddr_in *)&ep.addr;

	snprintf(ep.host, sizeof(ep.host), "%s", host);
	if (inet_pton(AF_INET, address, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		ep.addr_bytes = sizeof(*in);
	} else {
		assert_int_equal(inet_pton(AF_INET6, address, &in6->sin6_addr), 1);
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		ep.addr_bytes = sizeof(*in6);
	}
	return ep;
}

static void test_request(void **state)
{
	struct mc_module_conf *conf = calloc(1, sizeof(*conf));
	struct nlmsghdr *nlh = begin();
	const struct nlattr *attr, *inner;
	unsigned int servers = 0, keys = 0;
	struct kru_conf all;

	(void)state;
	kru_conf_defaults(&all);
	conf->node = all.node;
	conf->node.pool_depth = 99;
	conf->node.margin_ms = 777;
	assert_int_equal(kru_conf_set(&all, "node.mtu=1024", NULL, NULL), 0);
	conf->node.mtu = all.node.mtu;
	memset(conf->owner, 5, sizeof(conf->owner));
	conf->generation = 7;
	strcpy(conf->name, "node1");
	conf->keys.nr = 2;
	conf->keys.key[0].len = 32;
	conf->keys.key[1].len = 16;
	conf->servers[0] = endpoint("ms1", "192.0.2.1", 18600, 3);
	conf->servers[1] = endpoint("ms2", "2001:db8::1", 5, 100);
	conf->servers_nr = 2;
	mc_module_put_conf(nlh, conf);

	assert_int_equal(mc_module_u32(nlh, KRP_GENL_A_NODE_POOL_DEPTH), 99);
	assert_int_equal(mc_module_u32(nlh, KRP_GENL_A_NODE_ACK_TIMEOUT), 10);
	assert_int_equal(mc_module_u32(nlh, KRP_GENL_A_NODE_MARGIN_MS), 777);
	assert_int_equal(mc_module_u32(nlh, KRP_GENL_A_NODE_TRAFFIC_CLASS), 2);
	assert_int_equal(mc_module_u32(nlh, KRP_GENL_A_NODE_PKEY), 0xffff);
	assert_int_equal(mc_module_u32(nlh, KRP_GENL_A_NODE_MTU), 3); /* IB_MTU_1024 */
	assert_string_equal(mc_module_text(nlh, KRP_GENL_A_NODE_NAME), "node1");
	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr))
		if (mnl_attr_get_type(attr) == KRP_GENL_A_NODE_KEY)
			assert_int_equal(mnl_attr_get_payload_len(attr), keys++ ? 16 : 32);
	assert_int_equal(keys, 2);
	assert_null(mc_module_find(nlh, KRP_GENL_A_NODE_DEVICE)); /* empty: all */
	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr)) {
		if (mnl_attr_get_type(attr) != KRP_GENL_A_NODE_SERVER)
			continue;
		mnl_attr_for_each_nested(inner, attr)
			if (mnl_attr_get_type(inner) == KRP_GENL_A_SERVER_ADDRESS)
				assert_int_equal(mnl_attr_get_payload_len(inner), servers ? 16 : 4);
			else if (mnl_attr_get_type(inner) == KRP_GENL_A_SERVER_PORT)
				assert_int_equal(mnl_attr_get_u16(inner), servers ? 5 : 18600);
		servers++;
	}
	assert_int_equal(servers, 2);

	/* The key is in no row, wherever it may come from. */
	json_decref(row(nlh, MC_SET_NODE, MC_OUT_JSON));
	assert_null(strstr(text, "\"key\""));
	free(conf);
}

static void test_pick(void **state)
{
	struct mc_module_conf *conf = calloc(1, sizeof(*conf));
	struct kru_servers *list = calloc(1, sizeof(*list));
	struct kru_endpoint found[] = {
		endpoint("ms1", "2001:db8::1", 18600, 1), endpoint("ms1", "192.0.2.1", 18600, 1),
		endpoint("ms2", "192.0.2.2", 18600, 2),	  endpoint("ms2", "192.0.2.2", 18601, 2),
		endpoint("alias", "192.0.2.1", 18600, 9),
	};
	bool rdma[] = { false, true, false, false, true };
	char left[64], why[100];

	(void)state;
	assert_int_equal(kru_servers_parse("ms1, ms2, ms2:18601, alias, gone, ms0", list, why,
					   sizeof(why)),
			 0);
	assert_int_equal(mc_module_pick(list, found, rdma, 5, conf, left, sizeof(left)), 0);
	assert_int_equal(conf->servers_nr, 3);
	assert_string_equal(conf->servers[0].host, "ms1"); /* the address RDMA leads to */
	assert_int_equal(conf->servers[0].addr.ss_family, AF_INET);
	assert_string_equal(conf->servers[1].host, "ms2");
	assert_string_equal(conf->servers[2].host, "ms2");
	assert_string_equal(left, "gone, ms0");
	free(list);
	free(conf);
}

static void have(struct mc_module_servers *all, const char *host, uint16_t port)
{
	struct kru_endpoint ep = endpoint("x", host, port, 1);
	const struct sockaddr_in *in = (const void *)&ep.addr;
	char bytes[128];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(bytes);

	mnl_attr_put(nlh, KRP_GENL_A_SERVER_ADDRESS, 4, &in->sin_addr);
	mc_module_have(all, mnl_nlmsg_get_payload(nlh), port);
}

static void test_moved_servers(void **state)
{
	struct mc_module_conf *conf = calloc(1, sizeof(*conf));
	struct mc_module_servers all = { 0 };

	(void)state;
	conf->servers[0] = endpoint("ms1", "192.0.2.1", 18600, 1);
	conf->servers[1] = endpoint("ms2", "192.0.2.2", 18600, 1);
	conf->servers_nr = 2;
	assert_false(mc_module_moved(conf, &all)); /* no port, so no session yet */
	have(&all, "192.0.2.2", 18600);
	have(&all, "192.0.2.1", 18600);
	have(&all, "192.0.2.2", 18600); /* of the second port */
	mc_module_have(&all, NULL, 1);
	assert_int_equal(all.nr, 2);
	assert_false(mc_module_moved(conf, &all));

	conf->servers[1] = endpoint("ms2", "192.0.2.3", 18600, 1);
	assert_true(mc_module_moved(conf, &all));
	conf->incomplete = true; /* ms2 has two names, and the other has no address now */
	assert_false(mc_module_moved(conf, &all));
	conf->servers_nr = 1;
	assert_false(mc_module_moved(conf, &all));
	conf->incomplete = false;
	assert_true(mc_module_moved(conf, &all));

	conf->servers[0] = endpoint("ms1", "192.0.2.1", 18600, 1);
	conf->servers[1] = endpoint("ms2", "192.0.2.2", 18600, 1);
	conf->servers[2] = endpoint("ms3", "192.0.2.3", 18600, 1);
	conf->servers_nr = 3;
	conf->incomplete =
		true; /* a fourth one has no address still: this one comes all the same */
	assert_true(mc_module_moved(conf, &all));
	conf->servers[2] = endpoint("ms1", "192.0.2.1", 18601, 1);
	assert_true(mc_module_moved(conf, &all));
	free(conf);
}

static void test_pick_too_many(void **state)
{
	struct mc_module_conf *conf = calloc(1, sizeof(*conf));
	struct kru_servers *list = calloc(1, sizeof(*list));
	struct kru_endpoint found[KRP_GENL_SERVERS_MAX + 1];
	bool rdma[KRP_GENL_SERVERS_MAX + 1] = { false };
	char host[16], left[64];
	uint16_t i;

	(void)state;
	for (i = 0; i <= KRP_GENL_SERVERS_MAX; i++) {
		snprintf(host, sizeof(host), "ms%u", i);
		found[i] = endpoint(host, "192.0.2.1", (uint16_t)(100 + i), 1);
	}
	assert_int_equal(mc_module_pick(list, found, rdma, KRP_GENL_SERVERS_MAX, conf, left,
					sizeof(left)),
			 0);
	assert_int_equal(mc_module_pick(list, found, rdma, KRP_GENL_SERVERS_MAX + 1, conf, left,
					sizeof(left)),
			 -E2BIG);
	free(list);
	free(conf);
}

/* Bounds of the keys, from the file that everything about keys comes from. */
enum {
#define KRU_CONF(section, key, kind, dflt, min, max, ...) \
	MIN_##section##_##key = (min), MAX_##section##_##key = (max),
#include "common/conf.def"
#undef KRU_CONF
};

static void test_bounds(void **state)
{
	(void)state;
	assert_int_equal(MAX_node_lease_ms, KRP_GENL_LEASE_MS_MAX);
	assert_int_equal(MIN_node_timeout_ms, KRP_GENL_TIMEOUT_MS_MIN);
	assert_int_equal(MAX_node_timeout_ms, KRP_GENL_TIMEOUT_MS_MAX);
	assert_int_equal(MIN_node_reconnect_min_ms, KRP_GENL_RECONNECT_MS_MIN);
	assert_true(MAX_node_reconnect_min_ms <= KRP_GENL_RECONNECT_MS_MAX);
	assert_int_equal(MIN_node_reconnect_max_ms, KRP_GENL_RECONNECT_MS_MIN);
	assert_int_equal(MAX_node_reconnect_max_ms, KRP_GENL_RECONNECT_MS_MAX);
	assert_int_equal(MAX_node_device, KRP_GENL_NAME_MAX + 1);
	assert_int_equal(MAX_node_pool_initiators, KRP_GENL_INITIATORS_MAX);
	assert_int_equal(MIN_node_pool_depth, KRP_GENL_DEPTH_MIN);
	assert_int_equal(MAX_node_pool_depth, KRP_GENL_DEPTH_MAX);
	assert_int_equal(MIN_node_ack_timeout, KRP_GENL_ACK_TIMEOUT_MIN);
	assert_int_equal(MAX_node_ack_timeout, KRP_GENL_ACK_TIMEOUT_MAX);
	assert_int_equal(MIN_node_margin_ms, KRP_GENL_MARGIN_MS_MIN);
	assert_int_equal(MAX_node_margin_ms, KRP_GENL_MARGIN_MS_MAX);
	assert_int_equal(MIN_node_margin_ms, KRP_MRDIR_MARGIN_MS_MIN);
	assert_int_equal(MAX_node_margin_ms, KRP_MRDIR_MARGIN_MS_MAX);
	assert_int_equal(MIN_node_cache_entries, KRP_GENL_CACHE_MIN);
	assert_int_equal(MAX_node_cache_entries, KRP_GENL_CACHE_MAX);
	assert_int_equal(MAX_node_queues_per_user, KRP_GENL_LIMIT_MAX);
	assert_int_equal(MAX_node_requests_per_user, KRP_GENL_LIMIT_MAX);
	assert_int_equal(MAX_node_mrs_per_user, KRP_GENL_LIMIT_MAX);
	assert_int_equal(MAX_node_traffic_class, KRP_GENL_TRAFFIC_CLASS_MAX);
	assert_int_equal(MAX_node_service_level, KRP_GENL_SERVICE_LEVEL_MAX);
	assert_int_equal(MIN_node_pkey, KRP_GENL_PKEY_MIN);
	assert_int_equal(MAX_node_pkey, KRP_GENL_PKEY_MAX);
	assert_int_equal(MAX_node_mtu, KRP_GENL_MTU_MAX);
	assert_int_equal(KRU_KEY_BYTES_MIN, KRP_GENL_KEY_BYTES_MIN);
	assert_int_equal(KRU_KEY_BYTES_MAX, KRP_GENL_KEY_BYTES_MAX);
}

static int forget(void **state)
{
	(void)state;
	free(text);
	return 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_port_up), cmocka_unit_test(test_port_unusable),
		cmocka_unit_test(test_session), cmocka_unit_test(test_odd_attributes),
		cmocka_unit_test(test_names),	cmocka_unit_test(test_connections),
		cmocka_unit_test(test_request), cmocka_unit_test(test_moved_servers),
		cmocka_unit_test(test_pick),	cmocka_unit_test(test_pick_too_many),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, forget);
}
