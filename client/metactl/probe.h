/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Gathers struct mc_probe on this machine, except what needs an attachment. Errors
 * that it meets are noted for the checks, not returned. Threads: one.
 */
#ifndef MC_PROBE_H
#define MC_PROBE_H

#include "client/metactl/checks.h"
#include "common/addr.h"

/**
 * struct mc_places - Where to look; tests name other places.
 * @sysfs: sysfs.
 * @dev: directory of device nodes, such as /dev/infiniband.
 * @krcore: device of the kernel module, such as /dev/krcore.
 * @units: directory of enabled units, such as /etc/systemd/system.
 * @modules: directory of kernel modules by release, such as /lib/modules.
 */
struct mc_places {
	const char *sysfs;
	const char *dev;
	const char *krcore;
	const char *units;
	const char *modules;
};

/**
 * mc_probe_module() - Whether the kernel module is loaded, wanted, and can be opened.
 * @places: where to look.
 * @probe: filled in these parts.
 */
void mc_probe_module(const struct mc_places *places, struct mc_probe *probe);

/**
 * mc_probe_host() - Devices, device nodes, limits, clock.
 * @places: where to look.
 * @probe: filled in these parts.
 *
 * Return: 0, or -ENOMEM.
 */
int mc_probe_host(const struct mc_places *places, struct mc_probe *probe);

/**
 * mc_probe_system() - What decides whether the module can be loaded, and where its packets go.
 * @places: where to look.
 * @probe: filled in these parts; needs those of mc_probe_host().
 */
void mc_probe_system(const struct mc_places *places, struct mc_probe *probe);

/**
 * mc_probe_config() - Configuration, key file, and the list of MetaServers.
 * @file: configuration.
 * @servers: list given on the command line instead, or NULL.
 * @probe: filled in these parts.
 */
void mc_probe_config(const char *file, const char *servers, struct mc_probe *probe);

/**
 * mc_probe_routes() - Addresses of the MetaServers and routes to them.
 * @places: where to look.
 * @timeout_ms: for names.
 * @probe: filled in these parts; needs those of the two calls above.
 */
void mc_probe_routes(const struct mc_places *places, uint32_t timeout_ms, struct mc_probe *probe);

/**
 * mc_probe_leads() - Whether an RDMA port leads to an address.
 * @sysfs: where sysfs is.
 * @rdma: ports of this machine.
 * @to: the address.
 *
 * Return: true if the route leaves by a network device that an RDMA port uses.
 */
bool mc_probe_leads(const char *sysfs, const struct mc_rdma *rdma, const struct kru_endpoint *to);

/** mc_probe_free() - Free a probe and all its memory. @probe: probe or NULL. */
void mc_probe_free(struct mc_probe *probe);

#endif /* MC_PROBE_H */
