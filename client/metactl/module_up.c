// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * node up and node down: krcore.conf(5), the cluster key, this machine's identity and
 * the addresses of the MetaServers go to the kernel module in one request.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/metactl/metactl.h"
#include "client/metactl/module.h"
#include "client/metactl/probe.h"
#include "common/identity.h"

#define MC_LEFT_BYTES 512

static void mc_up_report(void *arg, const char *file, unsigned int line, const char *text)
{
	if (line)
		mc_error(arg, "%s:%u: %s", file, line, text);
	else
		mc_error(arg, "%s: %s", file, text);
}

static int mc_up_config(struct mc *mc, struct mc_module_conf *conf)
{
	const char *file = mc->config ? mc->config : MC_CONFIG_FILE;
	struct kru_conf *all;
	int err;

	all = malloc(sizeof(*all));
	if (!all)
		return mc_error(mc, "no memory");
	kru_conf_defaults(all);
	err = kru_conf_load(file, all, mc_up_report, mc);
	if (!err)
		err = kru_conf_check(all, file, mc_up_report, mc);
	conf->node = all->node;
	free(all);
	return err ? MC_FAILED : MC_OK;
}

static int mc_up_keys(struct mc *mc, struct mc_module_conf *conf)
{
	const char *path = conf->node.key_file;
	int err;

	if (conf->node.require_auth == KRU_AUTH_NO)
		return MC_OK;
	err = *path ? kru_keys_load(path, &conf->keys) : -ENOENT;
	/* by default, authentication begins with the key file */
	if (!err || (err == -ENOENT && conf->node.require_auth == KRU_AUTH_AUTO))
		return MC_OK;
	return mc_error(mc, "key_file '%s': %s%s", path, kru_keys_error(err),
			err == -ENOENT ? ", and require_auth is yes: copy it from a MetaServer"
				       : "");
}

static int mc_up_identity(struct mc *mc, struct mc_module_conf *conf)
{
	struct timespec now;
	int err;

	err = kru_identity(KRU_MACHINE_ID, KRU_OWNER_MODULE, conf->owner);
	if (err)
		return mc_error(mc,
				"%s: %s; the node's identity over boots is made of it: "
				"systemd-machine-id-setup",
				KRU_MACHINE_ID, err == -EINVAL ? "no machine id" : strerror(-err));
	if (gethostname(conf->name, sizeof(conf->name) - 1) || !*conf->name)
		memcpy(conf->name, "unknown", sizeof("unknown"));
	clock_gettime(CLOCK_REALTIME, &now);
	conf->generation = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	return MC_OK;
}

/* Which of the addresses an RDMA port leads to: found as in doctor. */
static int mc_up_pick(struct mc *mc, const struct kru_servers *list,
		      const struct kru_endpoint *found, unsigned int nr,
		      struct mc_module_conf *conf)
{
	bool rdma[KRU_ENDPOINTS_MAX] = { false };
	char left[MC_LEFT_BYTES];
	struct mc_rdma ports;
	unsigned int i;

	if (mc_rdma_scan(MC_SYSFS, &ports))
		return mc_error(mc, "no memory");
	for (i = 0; i < nr; i++)
		rdma[i] = mc_probe_leads(MC_SYSFS, &ports, &found[i]);
	mc_rdma_free(&ports);
	if (mc_module_pick(list, found, rdma, nr, conf, left, sizeof(left)))
		return mc_error(mc, "more than %d MetaServers", KRP_GENL_SERVERS_MAX);
	conf->incomplete = *left;
	if (*left && !conf->refresh)
		mc_error(mc,
			 "no address of %s is known, ignoring it; krcore-metactl node up tries "
			 "again",
			 left);
	return MC_OK;
}

static int mc_up_resolve(struct mc *mc, const struct kru_servers *list, struct mc_module_conf *conf)
{
	struct kru_endpoint *found;
	int nr, ret;

	found = calloc(KRU_ENDPOINTS_MAX, sizeof(*found));
	if (!found)
		return mc_error(mc, "no memory");
	nr = kru_servers_resolve(list, mc->timeout_ms, found);
	if (nr < 0)
		ret = mc_error(mc, "no address of a MetaServer is known (%s)",
			       nr == -ENOENT ? "no such name" : strerror(-nr));
	else
		ret = mc_up_pick(mc, list, found, (unsigned int)nr, conf);
	free(found);
	return ret;
}

static int mc_up_servers(struct mc *mc, struct mc_module_conf *conf)
{
	const char *text = mc->servers ? mc->servers : conf->node.metaservers;
	struct kru_servers *list;
	char why[200];
	int ret;

	list = calloc(1, sizeof(*list));
	if (!list)
		return mc_error(mc, "no memory");
	if (kru_servers_parse(text, list, why, sizeof(why)))
		ret = mc_error(mc, "metaservers '%.200s': %s", text, why);
	else if (!list->nr)
		ret = mc_error(mc,
			       "no MetaServer is configured: set metaservers below [node] of %s, "
			       "or use -S",
			       mc->config ? mc->config : MC_CONFIG_FILE);
	else
		ret = mc_up_resolve(mc, list, conf);
	free(list);
	return ret;
}

static void mc_refresh_node(void *arg, const struct nlmsghdr *nlh)
{
	bool *up = arg;

	*up = mc_module_u32(nlh, KRP_GENL_A_NODE_UP);
}

static void mc_refresh_server(void *arg, const struct nlmsghdr *nlh)
{
	struct mc_module_servers *have = arg;

	mc_module_have(have, mc_module_find(nlh, KRP_GENL_A_SERVER_ADDRESS),
		       (uint16_t)mc_module_u32(nlh, KRP_GENL_A_SERVER_PORT));
}

/* Is the node up, and do its MetaServers differ from those that the names stand for now? */
static int mc_refresh_due(struct mc *mc, struct mc_genl *genl, const struct mc_module_conf *conf,
			  bool *ret_due)
{
	struct mc_module_servers have = { 0 };
	bool up = false;

	mc_genl_request(genl, KRP_GENL_CMD_NODE_GET, 0);
	if (mc_genl_run(genl, mc_refresh_node, &up))
		return mc_error(mc, "refresh: %s", mc_genl_error(genl));
	mc_genl_request(genl, KRP_GENL_CMD_SERVER_GET, NLM_F_DUMP);
	if (mc_genl_run(genl, mc_refresh_server, &have))
		return mc_error(mc, "refresh: %s", mc_genl_error(genl));
	*ret_due = up && mc_module_moved(conf, &have);
	return MC_OK;
}

/* Report the ports that do not work, unless there is one that does. */
struct mc_up_ports {
	struct mc *mc;
	unsigned int up;
	bool tell;
};

static void mc_up_port(void *arg, const struct nlmsghdr *nlh)
{
	struct mc_up_ports *ports = arg;
	uint32_t state = mc_module_u32(nlh, KRP_GENL_A_PORT_STATE);

	ports->up += state == KRP_GENL_PORT_UP;
	if (ports->tell)
		mc_error(ports->mc, "%s/%u is %s: %s", mc_module_text(nlh, KRP_GENL_A_PORT_DEVICE),
			 mc_module_u32(nlh, KRP_GENL_A_PORT_NUM),
			 mc_module_state(MC_SET_PORT, state),
			 mc_module_text(nlh, KRP_GENL_A_PORT_REASON));
}

static void mc_up_warn(struct mc *mc, struct mc_genl *genl)
{
	struct mc_up_ports ports = { .mc = mc };

	mc_genl_request(genl, KRP_GENL_CMD_PORT_GET, NLM_F_DUMP);
	if (mc_genl_run(genl, mc_up_port, &ports) || ports.up)
		return;
	mc_error(mc, "the node is up, but none of its ports is yet");
	ports.tell = true;
	mc_genl_request(genl, KRP_GENL_CMD_PORT_GET, NLM_F_DUMP);
	mc_genl_run(genl, mc_up_port, &ports);
}

static int mc_up(struct mc *mc, bool refresh)
{
	struct mc_module_conf *conf;
	struct mc_genl *genl = NULL;
	bool due = true;
	int ret;

	conf = calloc(1, sizeof(*conf));
	if (!conf)
		return mc_error(mc, "no memory");
	conf->refresh = refresh;
	ret = mc_module_open(mc, &genl);
	if (!ret)
		ret = mc_up_config(mc, conf);
	if (!ret)
		ret = mc_up_keys(mc, conf);
	if (!ret)
		ret = mc_up_identity(mc, conf);
	if (!ret)
		ret = mc_up_servers(mc, conf);
	if (!ret && refresh)
		ret = mc_refresh_due(mc, genl, conf, &due);
	if (!ret && due) {
		mc_module_put_conf(mc_genl_request(genl, KRP_GENL_CMD_NODE_UP, 0), conf);
		if (mc_genl_run(genl, NULL, NULL))
			ret = mc_error(mc, "up: %s", mc_genl_error(genl));
		else
			mc_up_warn(mc, genl);
	}
	kru_keys_wipe(&conf->keys);
	free(conf);
	mc_genl_close(genl);
	return ret;
}

int mc_module_up(struct mc *mc)
{
	return mc_up(mc, false);
}

int mc_module_refresh(struct mc *mc)
{
	return mc_up(mc, true);
}

int mc_module_down(struct mc *mc)
{
	struct mc_genl *genl;
	int ret, err;

	ret = mc_module_open(mc, &genl);
	if (ret)
		return ret;
	mc_genl_request(genl, KRP_GENL_CMD_NODE_DOWN, 0);
	err = mc_genl_run(genl, NULL, NULL);
	if (err && err != -EALREADY) /* the node is down already, as requested */
		ret = mc_error(mc, "down: %s", mc_genl_error(genl));
	mc_genl_close(genl);
	return ret;
}
