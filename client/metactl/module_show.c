// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Reports of the kernel module: the module's part of `node show`, `stats node`, and the
 * objects queue and peer.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "client/metactl/metactl.h"
#include "client/metactl/module.h"

struct mc_module_table {
	struct mc_out *out;
	enum mc_set set;
	uint16_t needs; /* only rows with this attribute; 0 for all */
	uint16_t equals; /* only rows whose attribute has the value; 0 for all */
	uint32_t value;
};

const char *mc_module_missing(int error)
{
	if (error == -ENOENT && !access("/sys/module/krcore", F_OK))
		return "module krcore is loaded, but has no part in this network namespace";
	if (error == -ENOENT)
		return "module krcore is not loaded: modprobe krcore";
	return strerror(-error);
}

int mc_module_open(struct mc *mc, struct mc_genl **ret_genl)
{
	int err = mc_genl_open(ret_genl);

	return err ? mc_error(mc, "%s", mc_module_missing(err)) : MC_OK;
}

static void mc_module_message(void *arg, const struct nlmsghdr *nlh)
{
	const struct mc_module_table *table = arg;
	const struct nlattr *attrs;
	size_t bytes;

	if (table->needs && !mc_module_find(nlh, table->needs))
		return;
	if (table->equals && mc_module_u32(nlh, table->equals) != table->value)
		return;
	attrs = mc_module_attrs(nlh, &bytes);
	mc_module_row(table->out, table->set, attrs, bytes);
}

static int mc_module_table(struct mc *mc, struct mc_genl *genl, uint8_t cmd, uint16_t flags,
			   struct mc_module_table *table)
{
	table->out = mc->out;
	mc_genl_request(genl, cmd, flags);
	if (mc_genl_run(genl, mc_module_message, table))
		return mc_error(mc, "%s", mc_genl_error(genl));
	return MC_OK;
}

int mc_module_rows(struct mc *mc, struct mc_genl *genl, uint8_t cmd, enum mc_set set)
{
	struct mc_module_table table = { .set = set };

	return mc_module_table(mc, genl, cmd, NLM_F_DUMP, &table);
}

/* Without the module the node has no queues, and that is no fault of a MetaServer's. */
static void mc_module_absent(struct mc *mc, int error)
{
	mc_out_table(mc->out, MC_TABLE, "node");
	mc_row(mc->out);
	mc_put_bool(mc->out, "up", MC_WARN, false);
	mc_put_text(mc->out, "reason", MC_BELOW, mc_module_missing(error));
}

int mc_module_show(struct mc *mc)
{
	struct mc_module_table node = { .set = MC_SET_NODE };
	struct mc_genl *genl;
	int ret;

	ret = mc_genl_open(&genl);
	if (ret) {
		mc_module_absent(mc, ret);
		return MC_OK;
	}
	mc_out_table(mc->out, MC_TABLE, "node");
	ret = mc_module_table(mc, genl, KRP_GENL_CMD_NODE_GET, 0, &node);
	mc_out_table(mc->out, MC_TABLE, "node_port");
	if (!ret)
		ret = mc_module_rows(mc, genl, KRP_GENL_CMD_PORT_GET, MC_SET_PORT);
	mc_out_table(mc->out, MC_TABLE, "node_server");
	if (!ret)
		ret = mc_module_rows(mc, genl, KRP_GENL_CMD_SERVER_GET, MC_SET_SERVER);
	mc_out_table(mc->out, MC_TABLE, "node_messages");
	if (!ret)
		ret = mc_module_rows(mc, genl, KRP_GENL_CMD_MESSAGES_GET, MC_SET_MESSAGES);
	mc_genl_close(genl);
	return ret;
}

/* A row for each nest of this type. */
static void mc_module_nests(struct mc_out *out, enum mc_set set, uint16_t type,
			    const struct nlattr *attrs, size_t bytes)
{
	const struct nlattr *attr;

	for (attr = attrs;
	     mnl_attr_ok(attr, (int)((const char *)attrs + bytes - (const char *)attr));
	     attr = mnl_attr_next(attr))
		if (mnl_attr_get_type(attr) == type)
			mc_module_row(out, set, mnl_attr_get_payload(attr),
				      mnl_attr_get_payload_len(attr));
}

static void mc_module_counters(void *arg, const struct nlmsghdr *nlh)
{
	struct mc_out *out = arg;
	const struct nlattr *attrs;
	size_t bytes;

	attrs = mc_module_attrs(nlh, &bytes);
	mc_out_table(out, MC_BLOCK, "node");
	mc_module_row(out, MC_SET_STATS, attrs, bytes);
	mc_out_table(out, MC_TABLE, "pool");
	mc_module_nests(out, MC_SET_POOL, KRP_GENL_A_STATS_POOL, attrs, bytes);
	mc_out_table(out, MC_TABLE, "lanes");
	mc_module_nests(out, MC_SET_LANES, KRP_GENL_A_STATS_LANES, attrs, bytes);
}

int mc_module_stats(struct mc *mc)
{
	struct mc_genl *genl;
	int ret;

	ret = mc_module_open(mc, &genl);
	if (ret)
		return ret;
	mc_genl_request(genl, KRP_GENL_CMD_STATS_GET, 0);
	if (mc_genl_run(genl, mc_module_counters, mc->out))
		ret = mc_error(mc, "%s", mc_genl_error(genl));
	mc_out_table(mc->out, MC_TABLE, "user");
	if (!ret)
		ret = mc_module_rows(mc, genl, KRP_GENL_CMD_USER_GET, MC_SET_USER);
	mc_genl_close(genl);
	return ret;
}

/* What mc_queue_only() notes is at the same place in both sets. */
_Static_assert((int)KRP_GENL_A_QUEUE_PID == (int)KRP_GENL_A_CONN_PID, "pid");
_Static_assert((int)KRP_GENL_A_QUEUE_UID == (int)KRP_GENL_A_CONN_UID, "uid");

static void mc_queue_only(struct mc *mc, struct mc_module_table *table)
{
	if (mc_get(mc, "pid")) {
		table->equals = KRP_GENL_A_QUEUE_PID;
		table->value = (uint32_t)mc_number(mc, "pid", 0);
	} else if (mc_get(mc, "uid")) {
		table->equals = KRP_GENL_A_QUEUE_UID;
		table->value = (uint32_t)mc_number(mc, "uid", 0);
	}
}

static int mc_queue_list(struct mc *mc)
{
	struct mc_module_table queues = { .set = MC_SET_QUEUE }, conns = { .set = MC_SET_CONN };
	struct mc_genl *genl;
	int ret;

	if (mc_get(mc, "pid") && mc_get(mc, "uid")) {
		mc_error(mc, "'pid' and 'uid' do not go together");
		return MC_USAGE;
	}
	mc_queue_only(mc, &queues);
	mc_queue_only(mc, &conns);
	ret = mc_module_open(mc, &genl);
	if (ret)
		return ret;
	mc_out_table(mc->out, MC_TABLE, "queue");
	ret = mc_module_table(mc, genl, KRP_GENL_CMD_QUEUE_GET, NLM_F_DUMP, &queues);
	mc_out_table(mc->out, MC_TABLE, "connection");
	if (!ret)
		ret = mc_module_table(mc, genl, KRP_GENL_CMD_CONN_GET, NLM_F_DUMP, &conns);
	mc_genl_close(genl);
	return ret;
}

static int mc_peer_list(struct mc *mc)
{
	struct mc_module_table table = { .set = MC_SET_PEER };
	struct mc_genl *genl;
	int ret;

	if (mc_get(mc, "cached") && mc_get(mc, "connected")) {
		mc_error(mc, "'cached' and 'connected' do not go together");
		return MC_USAGE;
	}
	if (mc_get(mc, "cached"))
		table.needs = KRP_GENL_A_PEER_AGE_MS;
	else if (mc_get(mc, "connected"))
		table.needs = KRP_GENL_A_PEER_QUEUES;
	ret = mc_module_open(mc, &genl);
	if (ret)
		return ret;
	mc_out_table(mc->out, MC_TABLE, NULL);
	ret = mc_module_table(mc, genl, KRP_GENL_CMD_PEER_GET, NLM_F_DUMP, &table);
	mc_genl_close(genl);
	return ret;
}

static const struct mc_param mc_queue_params[] = {
	{ "pid", MC_NUMBER, 0, 1, INT32_MAX, "only those that this process opened" },
	{ "uid", MC_NUMBER, 0, 0, UINT32_MAX, "only those of this user" },
	{ 0 },
};

static const struct mc_command mc_queue_commands[] = {
	{ "list", mc_queue_list, mc_queue_params, 0,
	  "Queues and connections of the kernel module; without CAP_NET_ADMIN only one's own" },
	{ 0 },
};

const struct mc_object mc_object_queue = {
	.name = "queue",
	.help = "queues and connections that programs on this node have open",
	.commands = mc_queue_commands,
};

static const struct mc_param mc_peer_params[] = {
	{ "cached", MC_FLAG, 0, 0, 0, "only what the metadata cache has" },
	{ "connected", MC_FLAG, 0, 0, 0, "only those that queues are connected to" },
	{ 0 },
};

static const struct mc_command mc_peer_commands[] = {
	{ "list", mc_peer_list, mc_peer_params, 0,
	  "Peers that queues are connected to, then the metadata cache of the kernel module" },
	{ 0 },
};

const struct mc_object mc_object_peer = {
	.name = "peer",
	.help = "peers that the kernel module knows",
	.commands = mc_peer_commands,
};
