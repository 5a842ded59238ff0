// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Gathers the facts for `doctor`: see probe.h. The checks are elsewhere.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/metactl/probe.h"
#include "common/addr.h"
#include "common/auth.h"
#include "common/conf.h"
#include "common/gid.h"

#define MC_CAP_IPC_LOCK 14
#define MC_BUILT_NS 1735689600000000000ULL /* 2025-01-01: no correct clock is before it */

static void mc_probe_node(struct mc_probe *probe, const char *dev, const char *name)
{
	struct mc_device_node *node = &probe->nodes[probe->nodes_nr];
	char path[2 * MC_NAME_BYTES];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dev, name);
	if (probe->nodes_nr == MC_NODES_MAX || strlen(path) >= sizeof(node->path))
		return;
	memcpy(node->path, path, strlen(path) + 1);
	fd = open(path, O_RDWR | O_CLOEXEC);
	node->error = fd < 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
	probe->nodes_nr++;
}

void mc_probe_module(const struct mc_places *places, struct mc_probe *probe)
{
	static const char *const targets[] = { "multi-user", "rdma-hw" };
	struct mc_module_probe *m = &probe->module;
	size_t i;
	int fd;

	m->loaded = mc_sysfs_has("%s/module/krcore", places->sysfs);
	for (i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
		m->enabled |= mc_sysfs_has("%s/%s.target.wants/krcore-node.service", places->units,
					   targets[i]);
	if (!m->loaded)
		return;
	snprintf(m->device.path, sizeof(m->device.path), "%s", places->krcore);
	fd = open(places->krcore, O_RDWR | O_CLOEXEC);
	m->device.error = fd < 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
}

static void mc_probe_nodes(const struct mc_places *places, struct mc_probe *probe)
{
	char path[256];
	struct dirent *entry;
	DIR *dir;

	probe->class_verbs = mc_sysfs_has("%s/class/infiniband_verbs", places->sysfs);
	probe->class_cm = mc_sysfs_has("%s/class/misc/rdma_cm", places->sysfs);
	if (probe->class_cm)
		mc_probe_node(probe, places->dev, "rdma_cm");
	snprintf(path, sizeof(path), "%s/class/infiniband_verbs", places->sysfs);
	dir = opendir(path);
	if (!dir)
		return;
	while ((entry = readdir(dir)))
		if (!strncmp(entry->d_name, "uverbs", 6))
			mc_probe_node(probe, places->dev, entry->d_name);
	closedir(dir);
}

static bool mc_has_ipc_lock(void)
{
	static const char head[] = "CapEff:";
	unsigned long long caps = 0;
	char line[128];
	FILE *file;

	file = fopen("/proc/self/status", "re");
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, head, sizeof(head) - 1))
			caps = strtoull(line + sizeof(head) - 1, NULL, 16);
	fclose(file);
	return caps >> MC_CAP_IPC_LOCK & 1;
}

int mc_probe_host(const struct mc_places *places, struct mc_probe *probe)
{
	struct rlimit limit;
	struct timespec ts;
	int ret;

	ret = mc_rdma_scan(places->sysfs, &probe->rdma);
	if (ret)
		return ret;
	mc_probe_nodes(places, probe);
	getrlimit(RLIMIT_MEMLOCK, &limit);
	probe->memlock_bytes = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
	probe->memlock_free = mc_has_ipc_lock();
	clock_gettime(CLOCK_REALTIME, &ts);
	probe->now_ns = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
	probe->built_ns = MC_BUILT_NS;
	return 0;
}

static void mc_probe_report(void *arg, const char *file, unsigned int line, const char *text)
{
	struct mc_probe *probe = arg;
	char *to = probe->conf_errors[probe->conf_errors_nr];

	if (probe->conf_errors_nr == MC_CONF_ERRORS_MAX)
		return;
	if (line)
		snprintf(to, MC_TEXT_BYTES, "%s:%u: %s", file, line, text);
	else
		snprintf(to, MC_TEXT_BYTES, "%s: %s", file, text);
	probe->conf_errors_nr++;
}

static void mc_probe_key(const char *file, struct mc_probe *probe)
{
	struct kru_conf defaults;
	struct kru_keys keys;
	struct stat st;

	kru_conf_defaults(&defaults);
	snprintf(probe->key_file, sizeof(probe->key_file), "%s", file);
	probe->key_default = !strcmp(file, defaults.node.key_file);
	if (!*file)
		return;
	if (!stat(file, &st))
		probe->key_mode = st.st_mode & 07777;
	probe->key_error = kru_keys_load(file, &keys);
	if (!probe->key_error)
		kru_keys_wipe(&keys);
}

void mc_probe_config(const char *file, const char *servers, struct mc_probe *probe)
{
	struct kru_conf conf;

	kru_conf_defaults(&conf);
	snprintf(probe->conf_file, sizeof(probe->conf_file), "%s", file);
	probe->conf_needed = !servers;
	probe->conf_error = kru_conf_load(file, &conf, mc_probe_report, probe);
	if (!probe->conf_error)
		probe->conf_error = kru_conf_check(&conf, file, mc_probe_report, probe);
	mc_probe_key(conf.node.key_file, probe);
	snprintf(probe->servers_text, sizeof(probe->servers_text), "%s",
		 servers ? servers : conf.node.metaservers);
	probe->lease_ms = conf.node.lease_ms ? conf.node.lease_ms : conf.ms.lease_ms;
	if (probe->lease_ms < conf.ms.lease_min_ms)
		probe->lease_ms = conf.ms.lease_min_ms;
	if (probe->lease_ms > conf.ms.lease_max_ms)
		probe->lease_ms = conf.ms.lease_max_ms;
	probe->tick_ms = conf.ms.tick_ms;
	probe->idle_ms = conf.ms.idle_timeout_ms;
	probe->node_timeout_ms = conf.node.timeout_ms;
	probe->traffic_class = conf.node.traffic_class;
	probe->reconnect_max_ms = conf.node.reconnect_max_ms;
}

static bool mc_same_address(const struct sockaddr *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in6 *x6 = (const void *)a, *y6 = (const void *)b;
	const struct sockaddr_in *x4 = (const void *)a, *y4 = (const void *)b;

	if (!a || a->sa_family != b->ss_family)
		return false;
	if (a->sa_family == AF_INET)
		return x4->sin_addr.s_addr == y4->sin_addr.s_addr;
	return a->sa_family == AF_INET6 && !memcmp(&x6->sin6_addr, &y6->sin6_addr, 16);
}

static void mc_netdev_of(const struct sockaddr_storage *addr, char *netdev)
{
	struct ifaddrs *all, *i;

	*netdev = '\0';
	if (getifaddrs(&all))
		return;
	for (i = all; i; i = i->ifa_next)
		if (mc_same_address(i->ifa_addr, addr)) {
			snprintf(netdev, IF_NAMESIZE, "%s", i->ifa_name);
			break;
		}
	freeifaddrs(all);
}

/* A datagram socket asks the kernel for a route without sending anything. */
static void mc_probe_route(const struct kru_endpoint *to, struct mc_endpoint *e)
{
	struct sockaddr_storage source = { 0 };
	socklen_t bytes = sizeof(source);
	int fd;

	fd = socket(to->addr.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		e->route_error = -errno;
		return;
	}
	if (connect(fd, (const struct sockaddr *)&to->addr, to->addr_bytes) ||
	    getsockname(fd, (struct sockaddr *)&source, &bytes)) {
		e->route_error = -errno;
	} else {
		getnameinfo((struct sockaddr *)&source, bytes, e->source, sizeof(e->source), NULL,
			    0, NI_NUMERICHOST);
		mc_netdev_of(&source, e->netdev);
	}
	close(fd);
}

bool mc_probe_leads(const char *sysfs, const struct mc_rdma *rdma, const struct kru_endpoint *to)
{
	struct mc_endpoint e = { 0 };

	mc_probe_route(to, &e);
	return *e.netdev && mc_rdma_on_netdev(sysfs, rdma, e.netdev);
}

void mc_probe_routes(const struct mc_places *places, uint32_t timeout_ms, struct mc_probe *probe)
{
	struct kru_endpoint *found;
	struct kru_servers *servers;
	struct mc_endpoint *e;
	int i, nr = 0;

	servers = calloc(1, sizeof(*servers));
	found = calloc(KRU_ENDPOINTS_MAX, sizeof(*found));
	if (!servers || !found) {
		probe->resolve_error = -ENOMEM;
	} else if (!*probe->servers_text ||
		   kru_servers_parse(probe->servers_text, servers, probe->servers_why,
				     sizeof(probe->servers_why))) {
		nr = 0;
	} else {
		nr = kru_servers_resolve(servers, timeout_ms, found);
		probe->resolve_error = nr < 0 ? nr : 0;
	}
	for (i = 0; i < nr && i < MC_ENDPOINTS_MAX; i++) {
		e = &probe->endpoints[probe->endpoints_nr++];
		snprintf(e->host, sizeof(e->host), "%s", found[i].host);
		kru_sockaddr_format((struct sockaddr *)&found[i].addr, e->address);
		mc_probe_route(&found[i], e);
		e->rdma = *e->netdev && mc_rdma_on_netdev(places->sysfs, &probe->rdma, e->netdev);
	}
	free(found);
	free(servers);
}

void mc_probe_free(struct mc_probe *probe)
{
	if (!probe)
		return;
	mc_rdma_free(&probe->rdma);
	free(probe->servers);
	free(probe);
}
