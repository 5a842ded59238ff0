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

static int mc_up_key(struct mc *mc, struct mc_module_conf *conf)
{
	const char *path = conf->node.key_file;
	int err;

	if (!*path)
		return MC_OK;
	err = kru_key_load(path, &conf->key);
	conf->has_key = !err;
	switch (err) {
	case 0:
	case -ENOENT: /* authentication begins with the key file */
		return MC_OK;
	case -EPERM:
		return mc_error(mc, "%s: others than its owner and group may access the key", path);
	case -EINVAL:
		return mc_error(mc, "%s: not a key of 32 to 128 hexadecimal digits", path);
	default:
		return mc_error(mc, "%s: %s", path, strerror(-err));
	}
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

/* Which of the addresses an RDMA port leads to: as doctor finds out. */
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
	if (*left)
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

/* Say which ports do not work; one that does is enough to be silent. */
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

int mc_module_up(struct mc *mc)
{
	struct mc_module_conf *conf;
	struct mc_genl *genl = NULL;
	int ret;

	conf = calloc(1, sizeof(*conf));
	if (!conf)
		return mc_error(mc, "no memory");
	ret = mc_module_open(mc, &genl);
	if (!ret)
		ret = mc_up_config(mc, conf);
	if (!ret)
		ret = mc_up_key(mc, conf);
	if (!ret)
		ret = mc_up_identity(mc, conf);
	if (!ret)
		ret = mc_up_servers(mc, conf);
	if (!ret) {
		mc_module_put_conf(mc_genl_request(genl, KRP_GENL_CMD_NODE_UP, 0), conf);
		if (mc_genl_run(genl, NULL, NULL))
			ret = mc_error(mc, "up: %s", mc_genl_error(genl));
		else
			mc_up_warn(mc, genl);
	}
	kru_key_wipe(&conf->key);
	free(conf);
	mc_genl_close(genl);
	return ret;
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
	if (err && err != -EALREADY) /* down is what was asked for */
		ret = mc_error(mc, "down: %s", mc_genl_error(genl));
	mc_genl_close(genl);
	return ret;
}
