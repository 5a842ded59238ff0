/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The kernel module as krcore-metactl shows and configures it: attributes of
 * proto/krp_genl.h to rows and names, and krcore.conf(5) to a NODE_UP request.
 * module.c and module_conf.c are pure; module_up.c and module_show.c run the commands.
 * Threads: one.
 */
#ifndef MC_MODULE_H
#define MC_MODULE_H

#include <stdbool.h>

#include "client/metactl/genl.h"
#include "client/metactl/output.h"
#include "common/addr.h"
#include "common/auth.h"
#include "common/conf.h"
#include "proto/krp_genl.h"

#define MC_MODULE_TEXT_BYTES 320

/** enum mc_set - Attribute sets of the family. */
enum mc_set {
	MC_SET_NODE,
	MC_SET_PORT,
	MC_SET_SERVER,
	MC_SET_QUEUE,
	MC_SET_PEER,
	MC_SET_STATS,
	MC_SET_POOL,
	MC_SET_LANES,
	MC_SET_USER,
	MC_SET_CONN,
	MC_SET_MESSAGES,
	MC_SETS
};

/** mc_module_attr() - Name of an attribute. @set: its set. @type: its number. Return: text. */
const char *mc_module_attr(enum mc_set set, uint16_t type);

/**
 * mc_module_row() - Show the attributes of a message, or of a nest, as a row.
 * @out: output, its table is begun.
 * @set: set of the attributes; each known one is a cell, also if it is absent.
 * @attrs: first attribute.
 * @bytes: of all attributes.
 */
void mc_module_row(struct mc_out *out, enum mc_set set, const struct nlattr *attrs, size_t bytes);

/** mc_module_attrs() - Attributes. @nlh: message. @ret_bytes: their length. Return: the first. */
const struct nlattr *mc_module_attrs(const struct nlmsghdr *nlh, size_t *ret_bytes);

/** mc_module_find() - Find an attribute. @nlh: message. @type: which. Return: it or NULL. */
const struct nlattr *mc_module_find(const struct nlmsghdr *nlh, uint16_t type);

/** mc_module_u32() - A number. @nlh: message. @type: attribute. Return: it, 0 if absent. */
uint32_t mc_module_u32(const struct nlmsghdr *nlh, uint16_t type);

/** mc_module_text() - A text. @nlh: message. @type: attribute. Return: it, "" if absent. */
const char *mc_module_text(const struct nlmsghdr *nlh, uint16_t type);

/**
 * mc_module_state() - A state as a word.
 * @set: PORT, SERVER, QUEUE or CONN.
 * @state: it.
 *
 * Return: text.
 */
const char *mc_module_state(enum mc_set set, uint32_t state);

struct mc;

/**
 * mc_module_open() - Connect to the module.
 * @mc: run.
 * @ret_genl: for mc_genl_close(); untouched on failure.
 *
 * Return: MC_OK, or MC_FAILED after a message that says what to do.
 */
int mc_module_open(struct mc *mc, struct mc_genl **ret_genl);

/** mc_module_missing() - Why mc_genl_open() failed. @error: errno. Return: constant text. */
const char *mc_module_missing(int error);

/**
 * mc_module_rows() - Ask for a list and show it.
 * @mc: run; its table is begun.
 * @genl: connection.
 * @cmd: KRP_GENL_CMD_* of a dump.
 * @set: set of its attributes.
 *
 * Return: MC_OK, or MC_FAILED after a message.
 */
int mc_module_rows(struct mc *mc, struct mc_genl *genl, uint8_t cmd, enum mc_set set);

/** mc_module_up() - node up. @mc: run. Return: MC_OK or MC_FAILED. */
int mc_module_up(struct mc *mc);

/** mc_module_refresh() - node refresh. @mc: run. Return: MC_OK or MC_FAILED. */
int mc_module_refresh(struct mc *mc);

/** mc_module_down() - node down. @mc: run. Return: MC_OK or MC_FAILED. */
int mc_module_down(struct mc *mc);

/** mc_module_show() - The module's part of node show. @mc: run. Return: MC_OK or MC_FAILED. */
int mc_module_show(struct mc *mc);

/** mc_module_stats() - stats node. @mc: run. Return: MC_OK or MC_FAILED. */
int mc_module_stats(struct mc *mc);

/**
 * struct mc_module_conf - The content of a NODE_UP request.
 * @node: section [node] of the configuration.
 * @owner: identity of the module over boots.
 * @generation: boot generation.
 * @name: host name.
 * @keys: cluster keys.
 * @servers: MetaServers, one address each.
 * @servers_nr: how many.
 * @incomplete: names are left out that have no address now.
 * @refresh: only the servers matter, and names without an address are not reported.
 */
struct mc_module_conf {
	struct kru_conf_node node;
	uint8_t owner[KRP_OWNER_BYTES];
	uint64_t generation;
	char name[KRP_GENL_NAME_MAX + 1];
	struct kru_keys keys;
	struct kru_endpoint servers[KRP_GENL_SERVERS_MAX];
	unsigned int servers_nr;
	bool incomplete;
	bool refresh;
};

/**
 * struct mc_module_servers - The MetaServers that the module has.
 * @server: address, as 4 or 16 bytes, and port of each, once.
 * @nr: how many.
 */
struct mc_module_servers {
	struct {
		uint8_t address[16];
		unsigned int bytes;
		uint16_t port;
	} server[KRP_GENL_SERVERS_MAX];
	unsigned int nr;
};

/**
 * mc_module_have() - Note a server of the module; each port has a session with each.
 * @have: where to.
 * @address: attribute with its address, or NULL.
 * @port: its port.
 */
void mc_module_have(struct mc_module_servers *have, const struct nlattr *address, uint16_t port);

/**
 * mc_module_moved() - Whether the servers of the module must be changed.
 * @conf: servers that the names stand for now.
 * @have: servers that the module has.
 *
 * A name server that is unreachable must not remove a MetaServer: as long as a name has no
 * address, servers are only added.
 *
 * Return: true if so; false also if the module has no port yet.
 */
bool mc_module_moved(const struct mc_module_conf *conf, const struct mc_module_servers *have);

/**
 * mc_module_pick() - One address for each MetaServer.
 * @list: MetaServers as configured.
 * @found: addresses of the name service.
 * @rdma: for each of them, whether an RDMA port leads there.
 * @nr: how many.
 * @conf: servers and servers_nr are filled.
 * @ret_left: names without an address, separated by commas; "" if there are none.
 * @left_bytes: size of @ret_left.
 *
 * Of the addresses of one name and port the first with an RDMA port wins, else the
 * first: each would be a session of its own with the same server.
 *
 * Return: 0, or -E2BIG if there are more MetaServers than a node can have.
 */
int mc_module_pick(const struct kru_servers *list, const struct kru_endpoint *found,
		   const bool *rdma, unsigned int nr, struct mc_module_conf *conf, char *ret_left,
		   size_t left_bytes);

/** mc_module_put_conf() - Write NODE_UP's attributes. @nlh: request. @conf: what to say. */
void mc_module_put_conf(struct nlmsghdr *nlh, const struct mc_module_conf *conf);

#endif /* MC_MODULE_H */
