// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * RDMA devices in sysfs: see sysfs.h. Entries that vanish while they are read are
 * left out; only lack of memory is an error.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/metactl/sysfs.h"

#define MC_PATH_BYTES 512
#define MC_ARPHRD_INFINIBAND "32"

int mc_sysfs_line(char *buf, size_t bytes, const char *format, ...)
{
	char path[MC_PATH_BYTES];
	ssize_t len;
	va_list ap;
	int fd;

	*buf = '\0';
	va_start(ap, format);
	vsnprintf(path, sizeof(path), format, ap);
	va_end(ap);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	len = read(fd, buf, bytes - 1);
	if (len < 0) {
		len = -errno;
		*buf = '\0';
		close(fd);
		return (int)len;
	}
	close(fd);
	buf[len] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return 0;
}

bool mc_sysfs_has(const char *format, ...)
{
	char path[MC_PATH_BYTES];
	va_list ap;

	va_start(ap, format);
	vsnprintf(path, sizeof(path), format, ap);
	va_end(ap);
	return !access(path, F_OK);
}

static void *mc_grow(void *array, size_t nr, size_t bytes)
{
	if (nr & (nr - 1))
		return array;
	return realloc(array, (nr ? 2 * nr : 1) * bytes);
}

static void mc_copy(char *to, size_t bytes, const char *from)
{
	size_t len = strnlen(from, bytes - 1);

	memcpy(to, from, len);
	to[len] = '\0';
}

/* "4: ACTIVE" -> "ACTIVE" */
static void mc_state_word(char *to, size_t bytes, const char *line)
{
	const char *colon = strstr(line, ": ");

	mc_copy(to, bytes, colon ? colon + 2 : line);
}

static int mc_scan_gid(const char *base, const char *name, struct mc_port *port)
{
	static const uint8_t zero[8];
	struct mc_gid *gids, gid = { .index = (unsigned int)strtoul(name, NULL, 10) };
	char line[64];

	if (mc_sysfs_line(line, sizeof(line), "%s/gids/%s", base, name) ||
	    inet_pton(AF_INET6, line, gid.gid) != 1)
		return 0;
	/* an unused entry is zero, or the bare default prefix */
	if (!memcmp(gid.gid + 8, zero, sizeof(zero)))
		return 0;
	mc_sysfs_line(gid.type, sizeof(gid.type), "%s/gid_attrs/types/%s", base, name);
	mc_sysfs_line(gid.netdev, sizeof(gid.netdev), "%s/gid_attrs/ndevs/%s", base, name);

	gids = mc_grow(port->gids, port->gids_nr, sizeof(*gids));
	if (!gids)
		return -ENOMEM;
	port->gids = gids;
	port->gids[port->gids_nr++] = gid;
	return 0;
}

static int mc_by_index(const void *a, const void *b)
{
	const struct mc_gid *x = a, *y = b;

	return x->index < y->index ? -1 : x->index > y->index;
}

static int mc_scan_gids(const char *base, struct mc_port *port)
{
	char path[MC_PATH_BYTES + 8];
	struct dirent *entry;
	int ret = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/gids", base);
	dir = opendir(path);
	if (!dir)
		return 0;
	while (!ret && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			ret = mc_scan_gid(base, entry->d_name, port);
	closedir(dir);
	if (port->gids_nr)
		qsort(port->gids, port->gids_nr, sizeof(*port->gids), mc_by_index);
	return ret;
}

static int mc_scan_port(const char *sysfs, const char *device, const char *name,
			struct mc_rdma *rdma)
{
	struct mc_port *ports, *port;
	char base[MC_PATH_BYTES];
	char line[64];

	ports = mc_grow(rdma->ports, rdma->ports_nr, sizeof(*ports));
	if (!ports)
		return -ENOMEM;
	rdma->ports = ports;
	port = &ports[rdma->ports_nr++];
	memset(port, 0, sizeof(*port));
	mc_copy(port->device, sizeof(port->device), device);
	port->number = (unsigned int)strtoul(name, NULL, 10);
	if ((size_t)snprintf(base, sizeof(base), "%s/class/infiniband/%s/ports/%s", sysfs, device,
			     name) >= sizeof(base))
		return 0;
	mc_sysfs_line(line, sizeof(line), "%s/state", base);
	mc_state_word(port->state, sizeof(port->state), line);
	mc_sysfs_line(line, sizeof(line), "%s/phys_state", base);
	mc_state_word(port->phys_state, sizeof(port->phys_state), line);
	mc_sysfs_line(port->link, sizeof(port->link), "%s/link_layer", base);
	mc_sysfs_line(port->rate, sizeof(port->rate), "%s/rate", base);
	mc_sysfs_line(line, sizeof(line), "%s/lid", base);
	port->lid = (unsigned int)strtoul(line, NULL, 0);
	return mc_scan_gids(base, port);
}

static int mc_scan_device(const char *sysfs, const char *device, struct mc_rdma *rdma)
{
	char path[MC_PATH_BYTES];
	struct dirent *entry;
	int ret = 0;
	DIR *dir;

	rdma->devices_nr++;
	snprintf(path, sizeof(path), "%s/class/infiniband/%s/ports", sysfs, device);
	dir = opendir(path);
	if (!dir)
		return 0;
	while (!ret && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			ret = mc_scan_port(sysfs, device, entry->d_name, rdma);
	closedir(dir);
	return ret;
}

static int mc_by_port(const void *a, const void *b)
{
	const struct mc_port *x = a, *y = b;
	int order = strcmp(x->device, y->device);

	return order ? order : (int)x->number - (int)y->number;
}

int mc_rdma_scan(const char *sysfs, struct mc_rdma *ret_rdma)
{
	struct mc_rdma rdma = { 0 };
	char path[MC_PATH_BYTES];
	struct dirent *entry;
	int ret = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/class/infiniband", sysfs);
	dir = opendir(path);
	while (dir && !ret && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			ret = mc_scan_device(sysfs, entry->d_name, &rdma);
	if (dir)
		closedir(dir);
	if (ret) {
		mc_rdma_free(&rdma);
		return ret;
	}
	if (rdma.ports_nr)
		qsort(rdma.ports, rdma.ports_nr, sizeof(*rdma.ports), mc_by_port);
	*ret_rdma = rdma;
	return 0;
}

void mc_rdma_free(struct mc_rdma *rdma)
{
	size_t i;

	for (i = 0; i < rdma->ports_nr; i++)
		free(rdma->ports[i].gids);
	free(rdma->ports);
	memset(rdma, 0, sizeof(*rdma));
}

bool mc_rdma_on_netdev(const char *sysfs, const struct mc_rdma *rdma, const char *netdev)
{
	char type[16];
	size_t i, j;

	for (i = 0; i < rdma->ports_nr; i++)
		for (j = 0; j < rdma->ports[i].gids_nr; j++)
			if (!strcmp(rdma->ports[i].gids[j].netdev, netdev))
				return true;
	mc_sysfs_line(type, sizeof(type), "%s/class/net/%s/type", sysfs, netdev);
	return !strcmp(type, MC_ARPHRD_INFINIBAND);
}
