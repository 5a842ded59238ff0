// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Gathers what decides whether krcore.ko can be loaded, and in which class its packets
 * are sent: see probe.h. The checks are elsewhere.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include <libkmod.h>

#include "client/metactl/probe.h"

/* The variable of the boot services that says so: four bytes of attributes, then 0 or 1. */
#define MC_SECURE_BOOT "firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"

/* A driver that was not built with the kernel has a taint flag. */
static void mc_probe_driver(const char *sysfs, struct mc_system *system)
{
	static const char *const drivers[] = { "mlx5_core", "mlx5_ib", "ib_core" };
	char taint[16];
	size_t i;

	system->driver_ofed = mc_sysfs_has("%s/module/mlx_compat", sysfs);
	for (i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
		mc_sysfs_line(taint, sizeof(taint), "%s/module/%s/taint", sysfs, drivers[i]);
		if (!strchr(taint, 'O'))
			continue;
		snprintf(system->driver, sizeof(system->driver), "%s", drivers[i]);
		mc_sysfs_line(system->driver_version, sizeof(system->driver_version),
			      "%s/module/%s/version", sysfs, drivers[i]);
		return;
	}
}

static bool mc_secure_boot(const char *sysfs)
{
	char path[256];
	unsigned char bytes[5] = { 0 };
	FILE *file;

	snprintf(path, sizeof(path), "%s/" MC_SECURE_BOOT, sysfs);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (fread(bytes, 1, sizeof(bytes), file) != sizeof(bytes))
		bytes[4] = 0;
	fclose(file);
	return bytes[4] == 1;
}

static void mc_probe_must_sign(const char *sysfs, struct mc_system *system)
{
	const char *why = "";
	char line[128];

	mc_sysfs_line(line, sizeof(line), "%s/kernel/security/lockdown", sysfs);
	if (mc_secure_boot(sysfs))
		why = "Secure Boot is on";
	else if (strstr(line, "[integrity]") || strstr(line, "[confidentiality]"))
		why = "the kernel is locked down";
	mc_sysfs_line(line, sizeof(line), "%s/module/module/parameters/sig_enforce", sysfs);
	if (!*why && *line == 'Y')
		why = "module.sig_enforce is on";
	snprintf(system->must_sign, sizeof(system->must_sign), "%s", why);
}

static enum mc_signed mc_module_signed(const char *path)
{
	const char *no_config = NULL; /* modprobe.d(5) is not needed for this */
	enum mc_signed answer = MC_SIGNED_UNKNOWN;
	struct kmod_list *info = NULL, *i;
	struct kmod_module *module;
	struct kmod_ctx *ctx;

	ctx = kmod_new(NULL, &no_config);
	if (!ctx)
		return answer;
	if (!kmod_module_new_from_path(ctx, path, &module)) {
		if (kmod_module_get_info(module, &info) >= 0)
			answer = MC_SIGNED_NO;
		for (i = info; i; i = kmod_list_next(info, i))
			if (!strcmp(kmod_module_info_get_key(i), "sig_id"))
				answer = MC_SIGNED_YES;
		kmod_module_info_free_list(info);
		kmod_module_unref(module);
	}
	kmod_unref(ctx);
	return answer;
}

/* Where DKMS and packages put modules that are not the kernel's own. */
static void mc_probe_module_file(const char *modules, struct mc_system *system)
{
	static const char *const folders[] = { "updates/dkms", "updates", "extra", "extra/dkms" };
	static const char *const ends[] = { "", ".xz", ".zst", ".gz" };
	struct utsname kernel;
	size_t i;

	uname(&kernel);
	for (i = 0; i < sizeof(folders) / sizeof(folders[0]) * 4; i++) {
		snprintf(system->module_path, sizeof(system->module_path), "%s/%s/%s/krcore.ko%s",
			 modules, kernel.release, folders[i / 4], ends[i % 4]);
		if (mc_sysfs_has("%s", system->module_path)) {
			system->module_signed = mc_module_signed(system->module_path);
			return;
		}
	}
	*system->module_path = '\0';
}

/* Each network device once that carries an Ethernet port's GIDs. */
static void mc_probe_classes(struct mc_probe *probe)
{
	const struct mc_rdma *rdma = &probe->rdma;
	size_t i, k, n;

	for (i = 0; i < rdma->ports_nr; i++)
		for (k = 0; k < rdma->ports[i].gids_nr; k++) {
			const char *netdev = rdma->ports[i].gids[k].netdev;

			for (n = 0; n < probe->classes_nr; n++)
				if (!strcmp(probe->classes[n].netdev, netdev))
					break;
			if (!*netdev || strcmp(rdma->ports[i].link, "Ethernet") ||
			    n < probe->classes_nr || n == MC_NODES_MAX)
				continue;
			mc_dcb_ask(netdev, &probe->classes[probe->classes_nr++]);
		}
}

void mc_probe_system(const struct mc_places *places, struct mc_probe *probe)
{
	mc_probe_driver(places->sysfs, &probe->system);
	mc_probe_must_sign(places->sysfs, &probe->system);
	mc_probe_module_file(places->modules, &probe->system);
	mc_probe_classes(probe);
}
