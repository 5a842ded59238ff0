/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The facts that `doctor` gathers (struct mc_probe) and its checks (mc_check_all()).
 *
 * probe.c gathers, checks.c checks, doctor.c shows. The checks are a pure
 * function of the probe, so that each case can be tested. Threads: one.
 */
#ifndef MC_CHECKS_H
#define MC_CHECKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <krcore/krcore.h>

#include "client/metactl/dcb.h"
#include "client/metactl/sysfs.h"

#define MC_NODES_MAX 64
#define MC_CONF_ERRORS_MAX 32
#define MC_ENDPOINTS_MAX 64
#define MC_TEXT_BYTES 320

/**
 * struct mc_device_node - A file below /dev/infiniband that verbs needs.
 * @path: the file.
 * @error: negative errno of opening it for reading and writing; 0 on success.
 */
struct mc_device_node {
	char path[MC_NAME_BYTES];
	int error;
};

/**
 * struct mc_endpoint - An address of a configured MetaServer.
 * @host: as configured.
 * @address: address and port.
 * @route_error: negative errno of asking the kernel for a route; 0 if there is one.
 * @source: address it would be reached from.
 * @netdev: network device of @source, "" if unknown.
 * @rdma: an RDMA port uses @netdev.
 */
struct mc_endpoint {
	char host[MC_NAME_BYTES * 4];
	char address[MC_NAME_BYTES];
	int route_error;
	char source[MC_NAME_BYTES];
	char netdev[IF_NAMESIZE];
	bool rdma;
};

/**
 * struct mc_module_port - A port as the kernel module reports it.
 * @device: RDMA device.
 * @number: its port, from 1.
 * @up: target made, connections work.
 * @gid: GID that it publishes as text, "" if there is none.
 * @state: name of its state.
 * @reason: why it is not up, "" if nothing is known.
 * @ready: its sessions with MetaServers that work.
 * @sessions: all of them.
 * @session: the last of them that does not work, with its reason; "" if there is none.
 */
struct mc_module_port {
	char device[MC_NAME_BYTES];
	uint32_t number;
	bool up;
	char gid[MC_NAME_BYTES];
	const char *state;
	char reason[MC_TEXT_BYTES];
	unsigned int ready;
	unsigned int sessions;
	char session[MC_TEXT_BYTES];
};

/**
 * struct mc_module_probe - State of the kernel module.
 * @loaded: it is loaded.
 * @enabled: krcore-node.service is to start at boot.
 * @error: negative errno of asking it; -ENOENT if there is no such netlink family.
 * @text: text of @error.
 * @up: the node is up.
 * @device: /dev/krcore, if the module is loaded.
 * @ports: its ports.
 * @ports_nr: how many.
 */
struct mc_module_probe {
	bool loaded;
	bool enabled;
	int error;
	char text[MC_TEXT_BYTES];
	bool up;
	struct mc_device_node device;
	struct mc_module_port ports[MC_NODES_MAX];
	size_t ports_nr;
};

/** enum mc_signed - Whether krcore.ko is signed: unknown, no, yes. */
enum mc_signed {
	MC_SIGNED_UNKNOWN,
	MC_SIGNED_NO,
	MC_SIGNED_YES,
};

/**
 * struct mc_system - What decides whether the kernel module can be loaded.
 * @driver: module of the NIC's driver that is not the kernel's own, "" if there is none.
 * @driver_version: its version, "" if it has none.
 * @driver_ofed: it comes from MLNX_OFED or DOCA-OFED.
 * @must_sign: why the kernel takes no unsigned module, "" if it does.
 * @module_path: krcore.ko of the running kernel, "" if it was not found.
 * @module_signed: whether it is signed.
 */
struct mc_system {
	char driver[MC_NAME_BYTES];
	char driver_version[MC_NAME_BYTES];
	bool driver_ofed;
	char must_sign[MC_NAME_BYTES];
	char module_path[MC_TEXT_BYTES];
	enum mc_signed module_signed;
};

/**
 * struct mc_record_probe - A record of this machine at the MetaServers.
 * @gid: its GID as text; service 0.
 * @expected: the kernel module reports that it has published it.
 * @have: bit mask of servers that have it, by their place in @servers of the probe.
 * @asked: bit mask of servers that answered.
 */
struct mc_record_probe {
	char gid[MC_NAME_BYTES];
	bool expected;
	uint64_t have;
	uint64_t asked;
};

/**
 * struct mc_probe - Everything that the checks look at.
 * @rdma: ports and GIDs.
 * @class_verbs: the class infiniband_verbs is there: ib_uverbs works.
 * @class_cm: the device rdma_cm is there: rdma_ucm works.
 * @nodes: files below /dev/infiniband.
 * @nodes_nr: how many.
 * @memlock_bytes: soft limit of locked memory, UINT64_MAX for none.
 * @memlock_free: the limit does not bind: CAP_IPC_LOCK.
 * @conf_file: configuration file.
 * @conf_error: negative errno of loading it, 0 on success.
 * @conf_needed: the command line does not replace it.
 * @conf_errors: its errors as FILE:LINE: TEXT.
 * @conf_errors_nr: how many.
 * @key_file: cluster key file, "" for none.
 * @key_default: its name is the default one, so it may be missing.
 * @key_error: negative errno of kru_keys_load().
 * @key_mode: permission bits of the file.
 * @servers_text: list of MetaServers.
 * @servers_why: what is wrong with the list, "" if nothing.
 * @resolve_error: negative errno of finding addresses.
 * @endpoints: addresses found.
 * @endpoints_nr: how many.
 * @open_error: negative errno of krcore_open().
 * @open_text: its text.
 * @servers: MetaServers as the library sees them after the wait.
 * @servers_nr: how many.
 * @timeout_ms: how long they were given.
 * @lease_ms: lease this node would get if the server has the same file.
 * @tick_ms: the server's tick, likewise.
 * @idle_ms: the server's idle time-out, likewise.
 * @node_timeout_ms: [node] timeout_ms.
 * @reconnect_max_ms: [node] reconnect_max_ms.
 * @now_ns: wall clock.
 * @built_ns: a time in the past, before which no correct wall clock can be.
 * @published_ns: newest boot generation of a record for one of our GIDs, 0 if none.
 * @published_gid: that GID as text.
 * @module: the kernel module krcore.
 * @system: whether it can be loaded.
 * @classes: network devices of RDMA ports, and how they treat priorities.
 * @classes_nr: how many.
 * @traffic_class: [node] traffic_class: of the module's packets, DSCP * 4 + ECN.
 * @records: records of this machine's GIDs.
 * @records_nr: how many.
 */
struct mc_probe {
	struct mc_rdma rdma;
	bool class_verbs;
	bool class_cm;
	struct mc_device_node nodes[MC_NODES_MAX];
	size_t nodes_nr;
	uint64_t memlock_bytes;
	bool memlock_free;
	char conf_file[MC_TEXT_BYTES];
	int conf_error;
	bool conf_needed;
	char conf_errors[MC_CONF_ERRORS_MAX][MC_TEXT_BYTES];
	size_t conf_errors_nr;
	char key_file[MC_TEXT_BYTES];
	bool key_default;
	int key_error;
	unsigned int key_mode;
	char servers_text[2048];
	char servers_why[MC_TEXT_BYTES];
	int resolve_error;
	struct mc_endpoint endpoints[MC_ENDPOINTS_MAX];
	size_t endpoints_nr;
	int open_error;
	char open_text[MC_TEXT_BYTES];
	struct krcore_server_info *servers;
	size_t servers_nr;
	uint32_t timeout_ms;
	uint32_t lease_ms;
	uint32_t tick_ms;
	uint32_t idle_ms;
	uint32_t node_timeout_ms;
	uint32_t reconnect_max_ms;
	uint64_t now_ns;
	uint64_t built_ns;
	uint64_t published_ns;
	char published_gid[MC_NAME_BYTES];
	struct mc_module_probe module;
	struct mc_system system;
	struct mc_dcb classes[MC_NODES_MAX];
	size_t classes_nr;
	unsigned int traffic_class;
	struct mc_record_probe records[MC_ENDPOINTS_MAX];
	size_t records_nr;
};

/** enum mc_verdict - Outcome of a check: good, doubtful, broken. */
enum mc_verdict {
	MC_CHECK_OK,
	MC_CHECK_WARN,
	MC_CHECK_FAIL,
};

/**
 * struct mc_finding - One outcome.
 * @verdict: how bad it is.
 * @check: which check, one word.
 * @subject: device, file, server or the like it is about.
 * @cause: what was found.
 * @remedy: what to do, "" with MC_CHECK_OK.
 */
struct mc_finding {
	enum mc_verdict verdict;
	const char *check;
	char subject[MC_TEXT_BYTES];
	char cause[2 * MC_TEXT_BYTES];
	char remedy[2 * MC_TEXT_BYTES];
};

/** typedef mc_finding_fn - Called for each. @arg: as passed. @finding: valid during the call. */
typedef void mc_finding_fn(void *arg, const struct mc_finding *finding);

/**
 * mc_check_all() - Judge a probe.
 * @probe: what was found.
 * @fn: called for each finding, in the order in which things depend on each other.
 * @arg: its first argument.
 *
 * Return: how many are MC_CHECK_FAIL.
 */
unsigned int mc_check_all(const struct mc_probe *probe, mc_finding_fn *fn, void *arg);

#endif /* MC_CHECKS_H */
