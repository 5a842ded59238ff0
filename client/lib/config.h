/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Settings of a context: options of krcore_open(), which override krcore.conf(5).
 *
 * A plain value without locks; constant once the context's thread runs, except the keys,
 * which belong to that thread.
 */
#ifndef KRL_CONFIG_H
#define KRL_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "client/include/krcore/krcore.h"
#include "common/addr.h"
#include "common/auth.h"

#define KRL_SERVERS_MAX 64

/**
 * struct krl_endpoint - One MetaServer as configured.
 * @host: name or address.
 * @port: RDMA_PS_TCP port.
 * @priority: lower is asked first.
 * @text: host:port, for diagnostics.
 */
struct krl_endpoint {
	char host[256];
	uint16_t port;
	uint16_t priority;
	char text[128];
};

/**
 * struct krl_config - Settings of a context.
 * @endpoints: its MetaServers.
 * @endpoints_nr: how many, at least 1.
 * @srv: SRV name that they come from, "" if they were named one by one.
 * @srv_ttl_s: time to live of that SRV answer, in seconds.
 * @keys: cluster keys; none: no authentication. The context's thread reads them again
 *	when a server has a key that is not among them.
 * @key_path: file that they are read from, "" for none.
 * @name: client name for diagnostics, NUL-padded.
 * @owner: identity, the same over boots.
 * @generation: boot generation.
 * @lease_ms: requested lease, 0 for the server's choice.
 * @timeout_ms: bound of calls that wait.
 * @reconnect_min_ms: first pause before another attempt.
 * @reconnect_max_ms: longest.
 * @device: local RDMA device, "" for any.
 * @gid: local GID to connect from, zero for any.
 * @has_gid: @gid is set.
 * @nowait: KRCORE_OPEN_NOWAIT.
 */
struct krl_config {
	struct krl_endpoint *endpoints;
	unsigned int endpoints_nr;
	char srv[256];
	uint32_t srv_ttl_s;
	struct kru_keys keys;
	char key_path[181];
	char name[KRP_NAME_BYTES];
	uint8_t owner[KRP_OWNER_BYTES];
	uint64_t generation;
	uint32_t lease_ms;
	uint32_t timeout_ms;
	uint32_t reconnect_min_ms;
	uint32_t reconnect_max_ms;
	char device[64];
	uint8_t gid[KRP_GID_BYTES];
	bool has_gid;
	bool nowait;
};

/**
 * krl_endpoint_fill() - Make an endpoint of a server of the configuration or of a SRV answer.
 * @server: server.
 * @ret_ep: filled.
 */
void krl_endpoint_fill(const struct kru_server *server, struct krl_endpoint *ret_ep);

/**
 * krl_config_load() - Build the settings from options and configuration.
 * @opts: options or NULL.
 * @ret_config: settings, for krl_config_free(); untouched on failure.
 *
 * Reads files and may ask the name service for an SRV record. Sets the
 * thread's error text.
 *
 * Return: as krcore_open().
 */
int krl_config_load(const struct krcore_options *opts, struct krl_config *ret_config);

/** krl_config_free() - Free settings and wipe the keys. @config: settings. */
void krl_config_free(struct krl_config *config);

#endif /* KRL_CONFIG_H */
