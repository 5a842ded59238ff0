// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * From a configuration to a NODE_UP request: see module.h. No file is read here.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "client/metactl/module.h"

/* Port of an address; it is at the same place in both kinds. */
static uint16_t mc_port_of(const struct sockaddr_storage *addr)
{
	return ntohs(((const struct sockaddr_in *)(const void *)addr)->sin_port);
}

static bool mc_same_server(const struct kru_endpoint *a, const struct kru_endpoint *b)
{
	return mc_port_of(&a->addr) == mc_port_of(&b->addr) && !strcmp(a->host, b->host);
}

/* Another name of a server that is in the list already. */
static bool mc_known_address(const struct mc_module_conf *conf, const struct kru_endpoint *ep)
{
	unsigned int i;

	for (i = 0; i < conf->servers_nr; i++)
		if (conf->servers[i].addr_bytes == ep->addr_bytes &&
		    !memcmp(&conf->servers[i].addr, &ep->addr, ep->addr_bytes))
			return true;
	return false;
}

/* Best address for the server that found[at] is the first address of. */
static unsigned int mc_best_address(const struct kru_endpoint *found, const bool *rdma,
				    unsigned int nr, unsigned int at)
{
	unsigned int i;

	for (i = at; i < nr; i++)
		if (rdma[i] && mc_same_server(&found[i], &found[at]))
			return i;
	return at;
}

static bool mc_seen_before(const struct kru_endpoint *found, unsigned int at)
{
	unsigned int i;

	for (i = 0; i < at; i++)
		if (mc_same_server(&found[i], &found[at]))
			return true;
	return false;
}

/* Names of the list that no address was found for. */
static void mc_left_out(const struct kru_servers *list, const struct kru_endpoint *found,
			unsigned int nr, char *buf, size_t bytes)
{
	size_t len = 0;
	unsigned int i, k;

	*buf = '\0';
	if (list->srv)
		return;
	for (i = 0; i < list->nr; i++) {
		for (k = 0; k < nr; k++)
			if (!strcmp(found[k].host, list->server[i].host))
				break;
		if (k < nr || len + strlen(list->server[i].host) + 3 > bytes)
			continue;
		len += (size_t)snprintf(buf + len, bytes - len, "%s%s", len ? ", " : "",
					list->server[i].host);
	}
}

int mc_module_pick(const struct kru_servers *list, const struct kru_endpoint *found,
		   const bool *rdma, unsigned int nr, struct mc_module_conf *conf, char *ret_left,
		   size_t left_bytes)
{
	const struct kru_endpoint *ep;
	unsigned int i;

	conf->servers_nr = 0;
	for (i = 0; i < nr; i++) {
		if (mc_seen_before(found, i))
			continue;
		ep = &found[mc_best_address(found, rdma, nr, i)];
		if (mc_known_address(conf, ep))
			continue;
		if (conf->servers_nr == KRP_GENL_SERVERS_MAX)
			return -E2BIG;
		conf->servers[conf->servers_nr++] = *ep;
	}
	mc_left_out(list, found, nr, ret_left, left_bytes);
	return 0;
}

void mc_module_have(struct mc_module_servers *have, const struct nlattr *address, uint16_t port)
{
	unsigned int bytes = address ? mnl_attr_get_payload_len(address) : 0, i;

	if ((bytes != 4 && bytes != 16) || have->nr == KRP_GENL_SERVERS_MAX)
		return;
	for (i = 0; i < have->nr; i++)
		if (have->server[i].bytes == bytes && have->server[i].port == port &&
		    !memcmp(have->server[i].address, mnl_attr_get_payload(address), bytes))
			return;
	memcpy(have->server[i].address, mnl_attr_get_payload(address), bytes);
	have->server[i].bytes = bytes;
	have->server[i].port = port;
	have->nr++;
}

static bool mc_has(const struct mc_module_servers *have, const struct kru_endpoint *ep)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)&ep->addr;
	const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)&ep->addr;
	bool v4 = ep->addr.ss_family == AF_INET;
	const void *address = v4 ? (const void *)&in->sin_addr : (const void *)&in6->sin6_addr;
	unsigned int i;

	for (i = 0; i < have->nr; i++)
		if (have->server[i].bytes == (v4 ? 4 : 16) &&
		    have->server[i].port == mc_port_of(&ep->addr) &&
		    !memcmp(have->server[i].address, address, have->server[i].bytes))
			return true;
	return false;
}

bool mc_module_moved(const struct mc_module_conf *conf, const struct mc_module_servers *have)
{
	unsigned int i, same = 0;

	for (i = 0; i < conf->servers_nr; i++)
		same += mc_has(have, &conf->servers[i]);
	if (!have->nr || (same == have->nr && same == conf->servers_nr))
		return false;
	return same == have->nr || !conf->incomplete;
}

static void mc_put_server(struct nlmsghdr *nlh, const struct kru_endpoint *ep)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)&ep->addr;
	const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)&ep->addr;
	char name[KRP_GENL_SERVER_NAME_MAX + 1];
	struct nlattr *nest;

	nest = mnl_attr_nest_start(nlh, KRP_GENL_A_NODE_SERVER);
	if (ep->addr.ss_family == AF_INET) {
		mnl_attr_put(nlh, KRP_GENL_A_SERVER_ADDRESS, sizeof(in->sin_addr), &in->sin_addr);
	} else {
		mnl_attr_put(nlh, KRP_GENL_A_SERVER_ADDRESS, sizeof(in6->sin6_addr),
			     &in6->sin6_addr);
		if (in6->sin6_scope_id)
			mnl_attr_put_u32(nlh, KRP_GENL_A_SERVER_SCOPE, in6->sin6_scope_id);
	}
	mnl_attr_put_u16(nlh, KRP_GENL_A_SERVER_PORT, mc_port_of(&ep->addr));
	mnl_attr_put_u16(nlh, KRP_GENL_A_SERVER_PRIORITY, ep->priority);
	snprintf(name, sizeof(name), "%.*s", KRP_GENL_SERVER_NAME_MAX, ep->host);
	mnl_attr_put_strz(nlh, KRP_GENL_A_SERVER_NAME, name);
	mnl_attr_nest_end(nlh, nest);
}

void mc_module_put_conf(struct nlmsghdr *nlh, const struct mc_module_conf *conf)
{
	const struct kru_conf_node *node = &conf->node;
	unsigned int i;

	mnl_attr_put(nlh, KRP_GENL_A_NODE_OWNER, sizeof(conf->owner), conf->owner);
	mnl_attr_put_u64(nlh, KRP_GENL_A_NODE_GENERATION, conf->generation);
	mnl_attr_put_strz(nlh, KRP_GENL_A_NODE_NAME, conf->name);
	for (i = 0; i < conf->keys.nr; i++)
		mnl_attr_put(nlh, KRP_GENL_A_NODE_KEY, conf->keys.key[i].len,
			     conf->keys.key[i].bytes);
	mnl_attr_put_u32(nlh, KRP_GENL_A_NODE_LEASE_MS, node->lease_ms);
	mnl_attr_put_u32(nlh, KRP_GENL_A_NODE_TIMEOUT_MS, node->timeout_ms);
	mnl_attr_put_u32(nlh, KRP_GENL_A_NODE_RECONNECT_MIN_MS, node->reconnect_min_ms);
	mnl_attr_put_u32(nlh, KRP_GENL_A_NODE_RECONNECT_MAX_MS, node->reconnect_max_ms);
	if (*node->device)
		mnl_attr_put_strz(nlh, KRP_GENL_A_NODE_DEVICE, node->device);
	mnl_attr_put_u32(nlh, KRP_GENL_A_NODE_POOL_INITIATORS, node->pool_initiators);
	mnl_attr_put_u32(nlh, KRP_GENL_A_NODE_POOL_DEPTH, node->pool_depth);
	mnl_attr_put_u32(nlh, KRP_GENL_A_NODE_ACK_TIMEOUT, node->ack_timeout);
	mnl_attr_put_u32(nlh, KRP_GENL_A_NODE_MARGIN_MS, node->margin_ms);
	mnl_attr_put_u32(nlh, KRP_GENL_A_NODE_CACHE_ENTRIES, node->cache_entries);
	mnl_attr_put_u32(nlh, KRP_GENL_A_NODE_QUEUES_PER_USER, node->queues_per_user);
	mnl_attr_put_u32(nlh, KRP_GENL_A_NODE_REQUESTS_PER_USER, node->requests_per_user);
	mnl_attr_put_u32(nlh, KRP_GENL_A_NODE_MRS_PER_USER, node->mrs_per_user);
	mnl_attr_put_u32(nlh, KRP_GENL_A_NODE_TRAFFIC_CLASS, node->traffic_class);
	mnl_attr_put_u32(nlh, KRP_GENL_A_NODE_SERVICE_LEVEL, node->service_level);
	mnl_attr_put_u32(nlh, KRP_GENL_A_NODE_PKEY, node->pkey);
	/* the words of the setting are in the order of enum ib_mtu */
	mnl_attr_put_u32(nlh, KRP_GENL_A_NODE_MTU, node->mtu);
	for (i = 0; i < conf->servers_nr; i++)
		mc_put_server(nlh, &conf->servers[i]);
}
