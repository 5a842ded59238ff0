// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the netlink family, its policies, and the commands that change something:
 * NODE_UP and NODE_DOWN. A request is checked as a whole before it is passed to the node;
 * the cluster keys are wiped from the message, whatever the result.
 * Locking: see ctl/netlink.h.
 */
#include <linux/in.h>
#include <linux/module.h>
#include <net/ipv6.h>

#include "ctl/netlink.h"
#include "ctl/show.h"
#include "krp_genl.h"
#include "node/node.h"

static_assert(ARRAY_SIZE(((struct krc_meta_conf *)NULL)->servers) == KRP_GENL_SERVERS_MAX);
static_assert(KRC_META_KEYS_MAX == KRP_GENL_KEYS_MAX);
static_assert(sizeof_field(struct krc_meta_key, bytes) == KRP_GENL_KEY_BYTES_MAX);
static_assert(sizeof_field(struct krc_meta_conf, name) == KRP_GENL_NAME_MAX + 1);
static_assert(sizeof_field(struct krc_node_conf, device) == KRP_GENL_NAME_MAX + 1);
static_assert(sizeof_field(struct krc_meta_server_conf, name) == KRP_GENL_SERVER_NAME_MAX + 1);

/* Generation of the last start of the node: that of the next start must not be smaller. */
static u64 krc_nl_generation;
static bool krc_nl_keyed; /* the node that is up has cluster keys; krc_nl_lock */
static DEFINE_MUTEX(krc_nl_lock);

/* Not const: 6.1 has no const in struct nla_policy. */
static struct netlink_range_validation krc_nl_lease = {
	.max = KRP_GENL_LEASE_MS_MAX,
};

static struct netlink_range_validation krc_nl_timeout = {
	.min = KRP_GENL_TIMEOUT_MS_MIN,
	.max = KRP_GENL_TIMEOUT_MS_MAX,
};

static struct netlink_range_validation krc_nl_reconnect = {
	.min = KRP_GENL_RECONNECT_MS_MIN,
	.max = KRP_GENL_RECONNECT_MS_MAX,
};

static struct netlink_range_validation krc_nl_cache = {
	.min = KRP_GENL_CACHE_MIN,
	.max = KRP_GENL_CACHE_MAX,
};

static struct netlink_range_validation krc_nl_pkey = {
	.min = KRP_GENL_PKEY_MIN,
	.max = KRP_GENL_PKEY_MAX,
};

static struct netlink_range_validation krc_nl_limit = {
	.max = KRP_GENL_LIMIT_MAX,
};

static const struct nla_policy krc_nl_server_policy[KRP_GENL_A_SERVER_NAME + 1] = {
	[KRP_GENL_A_SERVER_ADDRESS] = NLA_POLICY_RANGE(NLA_BINARY, 4, 16),
	[KRP_GENL_A_SERVER_SCOPE] = { .type = NLA_U32 },
	[KRP_GENL_A_SERVER_PORT] = NLA_POLICY_MIN(NLA_U16, 1),
	[KRP_GENL_A_SERVER_PRIORITY] = { .type = NLA_U16 },
	[KRP_GENL_A_SERVER_NAME] = { .type = NLA_NUL_STRING, .len = KRP_GENL_SERVER_NAME_MAX },
};

static const struct nla_policy krc_nl_node_policy[KRP_GENL_A_NODE_MAX + 1] = {
	[KRP_GENL_A_NODE_UP] = { .type = NLA_REJECT },
	[KRP_GENL_A_NODE_VERSION] = { .type = NLA_REJECT },
	[KRP_GENL_A_NODE_OWNER] = NLA_POLICY_EXACT_LEN(KRP_OWNER_BYTES),
	[KRP_GENL_A_NODE_GENERATION] = NLA_POLICY_MIN(NLA_U64, 1),
	[KRP_GENL_A_NODE_NAME] = { .type = NLA_NUL_STRING, .len = KRP_GENL_NAME_MAX },
	[KRP_GENL_A_NODE_KEY] =
		NLA_POLICY_RANGE(NLA_BINARY, KRP_GENL_KEY_BYTES_MIN, KRP_GENL_KEY_BYTES_MAX),
	[KRP_GENL_A_NODE_AUTH] = { .type = NLA_REJECT },
	[KRP_GENL_A_NODE_LEASE_MS] = NLA_POLICY_FULL_RANGE(NLA_U32, &krc_nl_lease),
	[KRP_GENL_A_NODE_TIMEOUT_MS] = NLA_POLICY_FULL_RANGE(NLA_U32, &krc_nl_timeout),
	[KRP_GENL_A_NODE_RECONNECT_MIN_MS] = NLA_POLICY_FULL_RANGE(NLA_U32, &krc_nl_reconnect),
	[KRP_GENL_A_NODE_RECONNECT_MAX_MS] = NLA_POLICY_FULL_RANGE(NLA_U32, &krc_nl_reconnect),
	[KRP_GENL_A_NODE_DEVICE] = { .type = NLA_NUL_STRING, .len = KRP_GENL_NAME_MAX },
	[KRP_GENL_A_NODE_POOL_INITIATORS] = NLA_POLICY_MAX(NLA_U32, KRP_GENL_INITIATORS_MAX),
	[KRP_GENL_A_NODE_POOL_DEPTH] =
		NLA_POLICY_RANGE(NLA_U32, KRP_GENL_DEPTH_MIN, KRP_GENL_DEPTH_MAX),
	[KRP_GENL_A_NODE_ACK_TIMEOUT] =
		NLA_POLICY_RANGE(NLA_U32, KRP_GENL_ACK_TIMEOUT_MIN, KRP_GENL_ACK_TIMEOUT_MAX),
	[KRP_GENL_A_NODE_MARGIN_MS] =
		NLA_POLICY_RANGE(NLA_U32, KRP_GENL_MARGIN_MS_MIN, KRP_GENL_MARGIN_MS_MAX),
	[KRP_GENL_A_NODE_CACHE_ENTRIES] = NLA_POLICY_FULL_RANGE(NLA_U32, &krc_nl_cache),
	[KRP_GENL_A_NODE_QUEUES_PER_USER] = NLA_POLICY_FULL_RANGE(NLA_U32, &krc_nl_limit),
	[KRP_GENL_A_NODE_REQUESTS_PER_USER] = NLA_POLICY_FULL_RANGE(NLA_U32, &krc_nl_limit),
	[KRP_GENL_A_NODE_MRS_PER_USER] = NLA_POLICY_FULL_RANGE(NLA_U32, &krc_nl_limit),
	[KRP_GENL_A_NODE_TRAFFIC_CLASS] = NLA_POLICY_MAX(NLA_U32, KRP_GENL_TRAFFIC_CLASS_MAX),
	[KRP_GENL_A_NODE_SERVICE_LEVEL] = NLA_POLICY_MAX(NLA_U32, KRP_GENL_SERVICE_LEVEL_MAX),
	[KRP_GENL_A_NODE_PKEY] = NLA_POLICY_FULL_RANGE(NLA_U32, &krc_nl_pkey),
	[KRP_GENL_A_NODE_MTU] = NLA_POLICY_MAX(NLA_U32, KRP_GENL_MTU_MAX),
	[KRP_GENL_A_NODE_SERVER] = NLA_POLICY_NESTED(krc_nl_server_policy),
};

static bool krc_nl_addr_usable(const struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;
	int type;

	if (addr->ss_family == AF_INET)
		return !ipv4_is_zeronet(in->sin_addr.s_addr) &&
		       !ipv4_is_multicast(in->sin_addr.s_addr) &&
		       !ipv4_is_lbcast(in->sin_addr.s_addr);
	type = ipv6_addr_type(&in6->sin6_addr);
	return !(type & (IPV6_ADDR_MULTICAST | IPV6_ADDR_MAPPED)) && type != IPV6_ADDR_ANY &&
	       (!(type & IPV6_ADDR_LINKLOCAL) || in6->sin6_scope_id);
}

static int krc_nl_addr(struct nlattr **tb, struct sockaddr_storage *ret_addr,
		       struct netlink_ext_ack *extack)
{
	struct nlattr *attr = tb[KRP_GENL_A_SERVER_ADDRESS];
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret_addr;
	struct sockaddr_in *in = (struct sockaddr_in *)ret_addr;
	__be16 port = cpu_to_be16(nla_get_u16(tb[KRP_GENL_A_SERVER_PORT]));

	switch (nla_len(attr)) {
	case sizeof(in->sin_addr):
		in->sin_family = AF_INET;
		in->sin_port = port;
		nla_memcpy(&in->sin_addr, attr, sizeof(in->sin_addr));
		break;
	case sizeof(in6->sin6_addr):
		in6->sin6_family = AF_INET6;
		in6->sin6_port = port;
		nla_memcpy(&in6->sin6_addr, attr, sizeof(in6->sin6_addr));
		if (tb[KRP_GENL_A_SERVER_SCOPE])
			in6->sin6_scope_id = nla_get_u32(tb[KRP_GENL_A_SERVER_SCOPE]);
		break;
	default:
		NL_SET_ERR_MSG_ATTR(extack, attr, "an address has 4 or 16 bytes");
		return -EINVAL;
	}
	if (krc_nl_addr_usable(ret_addr))
		return 0;
	NL_SET_ERR_MSG_ATTR(extack, attr,
			    "not the address of a host (a link-local one needs its scope)");
	return -EINVAL;
}

static int krc_nl_server(const struct nlattr *nest, struct krc_meta_conf *meta,
			 struct netlink_ext_ack *extack)
{
	struct krc_meta_server_conf *server = &meta->servers[meta->servers_nr];
	struct nlattr *tb[ARRAY_SIZE(krc_nl_server_policy)];
	u32 i;
	int err;

	if (meta->servers_nr == KRC_META_SERVERS_MAX) {
		NL_SET_ERR_MSG_ATTR(extack, nest, "more MetaServers than a node can have (16)");
		return -E2BIG;
	}
	err = nla_parse_nested(tb, ARRAY_SIZE(tb) - 1, nest, krc_nl_server_policy, extack);
	if (err)
		return err;
	if (NL_REQ_ATTR_CHECK(extack, nest, tb, KRP_GENL_A_SERVER_ADDRESS) ||
	    NL_REQ_ATTR_CHECK(extack, nest, tb, KRP_GENL_A_SERVER_PORT) ||
	    NL_REQ_ATTR_CHECK(extack, nest, tb, KRP_GENL_A_SERVER_NAME)) {
		NL_SET_ERR_MSG(extack, "a MetaServer needs address, port and name");
		return -EINVAL;
	}
	err = krc_nl_addr(tb, &server->addr, extack);
	if (err)
		return err;
	for (i = 0; i < meta->servers_nr; i++)
		if (!memcmp(&meta->servers[i].addr, &server->addr, sizeof(server->addr))) {
			NL_SET_ERR_MSG_ATTR(extack, nest, "this MetaServer is given twice");
			return -EEXIST;
		}
	if (tb[KRP_GENL_A_SERVER_PRIORITY])
		server->priority = nla_get_u16(tb[KRP_GENL_A_SERVER_PRIORITY]);
	nla_strscpy(server->name, tb[KRP_GENL_A_SERVER_NAME], sizeof(server->name));
	meta->servers_nr++;
	return 0;
}

static int krc_nl_servers(struct genl_info *info, struct krc_meta_conf *meta)
{
	const struct nlattr *attr;
	int rem, err;

	nlmsg_for_each_attr(attr, info->nlhdr, GENL_HDRLEN, rem) {
		if (nla_type(attr) != KRP_GENL_A_NODE_SERVER)
			continue;
		err = krc_nl_server(attr, meta, info->extack);
		if (err)
			return err;
	}
	return 0;
}

static u32 krc_nl_u32(struct nlattr **attrs, int type)
{
	return attrs[type] ? nla_get_u32(attrs[type]) : 0;
}

static int krc_nl_identity(struct genl_info *info, struct krc_meta_conf *meta)
{
	struct nlattr **attrs = info->attrs;

	nla_memcpy(meta->owner, attrs[KRP_GENL_A_NODE_OWNER], sizeof(meta->owner));
	if (!memchr_inv(meta->owner, 0, sizeof(meta->owner))) {
		NL_SET_ERR_MSG_ATTR(info->extack, attrs[KRP_GENL_A_NODE_OWNER],
				    "the identity of a node is not all zeroes");
		return -EINVAL;
	}
	nla_strscpy(meta->name, attrs[KRP_GENL_A_NODE_NAME], sizeof(meta->name));
	if (!meta->name[0]) {
		NL_SET_ERR_MSG_ATTR(info->extack, attrs[KRP_GENL_A_NODE_NAME],
				    "the name of the node is empty");
		return -EINVAL;
	}
	meta->generation = nla_get_u64(attrs[KRP_GENL_A_NODE_GENERATION]);
	return 0;
}

/* Copy all cluster keys; the policy has checked each of them. */
static int krc_nl_keys(struct genl_info *info, struct krc_meta_conf *meta)
{
	struct krc_meta_key *key;
	struct nlattr *attr;
	int left;

	nla_for_each_attr(attr, genlmsg_data(info->genlhdr), genlmsg_len(info->genlhdr), left) {
		if (nla_type(attr) != KRP_GENL_A_NODE_KEY)
			continue;
		if (meta->keys_nr == KRC_META_KEYS_MAX) {
			NL_SET_ERR_MSG_ATTR(info->extack, attr, "more than 8 cluster keys");
			return -E2BIG;
		}
		key = &meta->keys[meta->keys_nr++];
		key->len = nla_len(attr);
		nla_memcpy(key->bytes, attr, sizeof(key->bytes));
	}
	return 0;
}

static bool krc_nl_complete(struct genl_info *info)
{
	return !(GENL_REQ_ATTR_CHECK(info, KRP_GENL_A_NODE_OWNER) ||
		 GENL_REQ_ATTR_CHECK(info, KRP_GENL_A_NODE_GENERATION) ||
		 GENL_REQ_ATTR_CHECK(info, KRP_GENL_A_NODE_NAME) ||
		 GENL_REQ_ATTR_CHECK(info, KRP_GENL_A_NODE_TIMEOUT_MS) ||
		 GENL_REQ_ATTR_CHECK(info, KRP_GENL_A_NODE_RECONNECT_MIN_MS) ||
		 GENL_REQ_ATTR_CHECK(info, KRP_GENL_A_NODE_RECONNECT_MAX_MS) ||
		 GENL_REQ_ATTR_CHECK(info, KRP_GENL_A_NODE_POOL_DEPTH) ||
		 GENL_REQ_ATTR_CHECK(info, KRP_GENL_A_NODE_ACK_TIMEOUT) ||
		 GENL_REQ_ATTR_CHECK(info, KRP_GENL_A_NODE_MARGIN_MS) ||
		 GENL_REQ_ATTR_CHECK(info, KRP_GENL_A_NODE_PKEY) ||
		 GENL_REQ_ATTR_CHECK(info, KRP_GENL_A_NODE_CACHE_ENTRIES));
}

static int krc_nl_conf(struct genl_info *info, struct krc_node_conf *conf)
{
	struct nlattr **attrs = info->attrs;
	struct krc_meta_conf *meta = &conf->meta;
	int err;

	if (!krc_nl_complete(info)) {
		GENL_SET_ERR_MSG(info, "a mandatory attribute is missing");
		return -EINVAL;
	}
	err = krc_nl_identity(info, meta) ?: krc_nl_keys(info, meta);
	if (err)
		return err;
	meta->lease_ms = krc_nl_u32(attrs, KRP_GENL_A_NODE_LEASE_MS);
	meta->timeout_ms = krc_nl_u32(attrs, KRP_GENL_A_NODE_TIMEOUT_MS);
	meta->reconnect_min_ms = krc_nl_u32(attrs, KRP_GENL_A_NODE_RECONNECT_MIN_MS);
	meta->reconnect_max_ms = krc_nl_u32(attrs, KRP_GENL_A_NODE_RECONNECT_MAX_MS);
	if (meta->reconnect_min_ms > meta->reconnect_max_ms) {
		NL_SET_ERR_MSG_ATTR(info->extack, attrs[KRP_GENL_A_NODE_RECONNECT_MIN_MS],
				    "the first pause is longer than the longest");
		return -EINVAL;
	}
	conf->pool_initiators = krc_nl_u32(attrs, KRP_GENL_A_NODE_POOL_INITIATORS);
	conf->pool_depth = krc_nl_u32(attrs, KRP_GENL_A_NODE_POOL_DEPTH);
	conf->ack_timeout = krc_nl_u32(attrs, KRP_GENL_A_NODE_ACK_TIMEOUT);
	conf->margin_ms = krc_nl_u32(attrs, KRP_GENL_A_NODE_MARGIN_MS);
	conf->fabric = (struct krc_hw_fabric){
		.traffic_class = krc_nl_u32(attrs, KRP_GENL_A_NODE_TRAFFIC_CLASS),
		.sl = krc_nl_u32(attrs, KRP_GENL_A_NODE_SERVICE_LEVEL),
		.mtu = krc_nl_u32(attrs, KRP_GENL_A_NODE_MTU),
		.pkey = krc_nl_u32(attrs, KRP_GENL_A_NODE_PKEY),
	};
	conf->cache_entries = krc_nl_u32(attrs, KRP_GENL_A_NODE_CACHE_ENTRIES);
	conf->queues_per_user = krc_nl_u32(attrs, KRP_GENL_A_NODE_QUEUES_PER_USER);
	conf->requests_per_user = krc_nl_u32(attrs, KRP_GENL_A_NODE_REQUESTS_PER_USER);
	conf->mrs_per_user = krc_nl_u32(attrs, KRP_GENL_A_NODE_MRS_PER_USER);
	if (attrs[KRP_GENL_A_NODE_DEVICE])
		nla_strscpy(conf->device, attrs[KRP_GENL_A_NODE_DEVICE], sizeof(conf->device));
	return krc_nl_servers(info, meta);
}

static int krc_nl_apply(struct genl_info *info, const struct krc_node_conf *conf)
{
	bool fresh;
	int err;

	mutex_lock(&krc_nl_lock);
	err = krc_node_is_up(NULL);
	if (err < 0)
		goto out;
	fresh = !err; /* a node that is up keeps its generation */
	if (fresh && conf->meta.generation < krc_nl_generation) {
		NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[KRP_GENL_A_NODE_GENERATION],
				    "below that of an earlier node up: was the clock set back?");
		err = -ESTALE;
		goto out;
	}
	/* a missing key file must not turn off the authentication of MetaServers */
	if (!fresh && krc_nl_keyed && !conf->meta.keys_nr) {
		GENL_SET_ERR_MSG(info, "no cluster key any more: take the node down first");
		err = -ENOKEY;
		goto out;
	}
	err = krc_node_up(conf);
	if (!err && fresh)
		krc_nl_generation = conf->meta.generation;
	if (!err)
		krc_nl_keyed = conf->meta.keys_nr;
out:
	mutex_unlock(&krc_nl_lock);
	return err;
}

static void krc_nl_wipe_keys(struct genl_info *info)
{
	struct nlattr *attr;
	int left;

	nla_for_each_attr(attr, genlmsg_data(info->genlhdr), genlmsg_len(info->genlhdr), left)
		if (nla_type(attr) == KRP_GENL_A_NODE_KEY)
			memzero_explicit(nla_data(attr), nla_len(attr));
}

static int krc_nl_node_up(struct sk_buff *skb, struct genl_info *info)
{
	struct krc_node_conf *conf;
	int err;

	conf = kzalloc(sizeof(*conf), GFP_KERNEL);
	if (!conf) {
		krc_nl_wipe_keys(info);
		return -ENOMEM;
	}
	err = krc_nl_conf(info, conf);
	krc_nl_wipe_keys(info);
	if (!err)
		err = krc_nl_apply(info, conf);
	kfree_sensitive(conf);
	return err;
}

static int krc_nl_node_down(struct sk_buff *skb, struct genl_info *info)
{
	int err;

	err = krc_node_down();
	if (err == -EALREADY)
		GENL_SET_ERR_MSG(info, "the node is down already");
	return err;
}

static const struct genl_ops krc_nl_ops[] = {
	{
		.cmd = KRP_GENL_CMD_NODE_UP,
		.flags = GENL_ADMIN_PERM,
		.policy = krc_nl_node_policy,
		.maxattr = KRP_GENL_A_NODE_MAX,
		.doit = krc_nl_node_up,
	},
	{
		.cmd = KRP_GENL_CMD_NODE_DOWN,
		.flags = GENL_ADMIN_PERM,
		.doit = krc_nl_node_down,
	},
	{ .cmd = KRP_GENL_CMD_NODE_GET, .doit = krc_nl_node_get },
	{ .cmd = KRP_GENL_CMD_PORT_GET, .dumpit = krc_nl_port_dump },
	{ .cmd = KRP_GENL_CMD_SERVER_GET, .dumpit = krc_nl_server_dump },
	{
		.cmd = KRP_GENL_CMD_QUEUE_GET,
		.start = krc_nl_own_start,
		.dumpit = krc_nl_queue_dump,
	},
	{
		.cmd = KRP_GENL_CMD_PEER_GET,
		.start = krc_nl_own_start,
		.dumpit = krc_nl_peer_dump,
	},
	{ .cmd = KRP_GENL_CMD_STATS_GET, .doit = krc_nl_stats_get },
	{
		.cmd = KRP_GENL_CMD_USER_GET,
		.start = krc_nl_own_start,
		.dumpit = krc_nl_user_dump,
	},
	{
		.cmd = KRP_GENL_CMD_CONN_GET,
		.start = krc_nl_own_start,
		.dumpit = krc_nl_conn_dump,
	},
	{ .cmd = KRP_GENL_CMD_MESSAGES_GET, .dumpit = krc_nl_messages_dump },
};

struct genl_family krc_nl_family __ro_after_init = {
	.name = KRP_GENL_NAME,
	.version = KRP_GENL_VERSION,
	/* Don't hold genl_mutex, shared by all families: node up and down may take seconds. */
	.parallel_ops = true,
	.ops = krc_nl_ops,
	.n_ops = ARRAY_SIZE(krc_nl_ops),
	.module = THIS_MODULE,
};

int __init krc_nl_init(void)
{
	return genl_register_family(&krc_nl_family);
}

void krc_nl_exit(void)
{
	genl_unregister_family(&krc_nl_family);
}
