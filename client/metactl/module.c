// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Attributes of the kernel module to rows, words and names, and a configuration to
 * attributes: see module.h. The tables say which attribute is shown how.
 */
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include <linux/genetlink.h>

#include "client/metactl/module.h"
#include "common/gid.h"
#include "proto/krp_ioctl_message.h"

#define MC_ROW_ATTRS_MAX 64

/* How an attribute is shown. */
enum mc_form {
	MC_FORM_NEVER, /* secret, or a nest that has rows of its own */
	MC_FORM_NUMBER,
	MC_FORM_SIGNED,
	MC_FORM_BOOL,
	MC_FORM_HEX, /* a number that is a name */
	MC_FORM_TEXT,
	MC_FORM_GID,
	MC_FORM_BYTES,
	MC_FORM_ADDRESS, /* of a MetaServer, with its port */
	MC_FORM_STATE,
	MC_FORM_ERROR, /* errno, with colour */
	MC_FORM_KIND, /* KRP_KIND_* */
};

/* One attribute: @key is its name and that of its cell. */
struct mc_attr {
	uint16_t type;
	const char *key;
	enum mc_form form;
	unsigned int flags;
};

static const struct mc_attr mc_node_attrs[] = {
	{ KRP_GENL_A_NODE_UP, "up", MC_FORM_BOOL, 0 },
	{ KRP_GENL_A_NODE_NAME, "name", MC_FORM_TEXT, 0 },
	{ KRP_GENL_A_NODE_VERSION, "version", MC_FORM_TEXT, 0 },
	{ KRP_GENL_A_NODE_OWNER, "owner", MC_FORM_BYTES, 0 },
	{ KRP_GENL_A_NODE_GENERATION, "generation", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_NODE_AUTH, "auth", MC_FORM_BOOL, 0 },
	{ KRP_GENL_A_NODE_DEVICE, "device", MC_FORM_TEXT, MC_DETAIL },
	{ KRP_GENL_A_NODE_LEASE_MS, "lease_ms", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_NODE_TIMEOUT_MS, "timeout_ms", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_NODE_RECONNECT_MIN_MS, "reconnect_min_ms", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_NODE_RECONNECT_MAX_MS, "reconnect_max_ms", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_NODE_POOL_INITIATORS, "pool_initiators", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_NODE_POOL_DEPTH, "pool_depth", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_NODE_ACK_TIMEOUT, "ack_timeout", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_NODE_MARGIN_MS, "margin_ms", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_NODE_CACHE_ENTRIES, "cache_entries", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_NODE_QUEUES_PER_USER, "queues_per_user", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_NODE_REQUESTS_PER_USER, "requests_per_user", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_NODE_MRS_PER_USER, "mrs_per_user", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_NODE_TRAFFIC_CLASS, "traffic_class", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_NODE_SERVICE_LEVEL, "service_level", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_NODE_PKEY, "pkey", MC_FORM_HEX, MC_DETAIL },
	{ KRP_GENL_A_NODE_MTU, "mtu", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_NODE_KEY, "key", MC_FORM_NEVER, 0 },
	{ KRP_GENL_A_NODE_SERVER, "server", MC_FORM_NEVER, 0 },
	{ 0 },
};

static const struct mc_attr mc_port_attrs[] = {
	{ KRP_GENL_A_PORT_DEVICE, "device", MC_FORM_TEXT, 0 },
	{ KRP_GENL_A_PORT_NUM, "port", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_PORT_STATE, "state", MC_FORM_STATE, 0 },
	{ KRP_GENL_A_PORT_PROVIDER, "provider", MC_FORM_TEXT, 0 },
	{ KRP_GENL_A_PORT_GID, "gid", MC_FORM_GID, 0 },
	{ KRP_GENL_A_PORT_DCTN, "dctn", MC_FORM_HEX, 0 },
	{ KRP_GENL_A_PORT_INITIATORS, "initiators", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_PORT_RECOVERIES, "recoveries", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_PORT_GENERATION, "generation", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_PORT_ETHERNET, "ethernet", MC_FORM_BOOL, MC_DETAIL },
	{ KRP_GENL_A_PORT_LID, "lid", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_PORT_MTU, "mtu", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_PORT_REASON, "reason", MC_FORM_TEXT, MC_BELOW },
	{ 0 },
};

static const struct mc_attr mc_server_attrs[] = {
	{ KRP_GENL_A_SERVER_DEVICE, "device", MC_FORM_TEXT, 0 },
	{ KRP_GENL_A_SERVER_DEVICE_PORT, "port", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_SERVER_NAME, "name", MC_FORM_TEXT, 0 },
	{ KRP_GENL_A_SERVER_ADDRESS, "address", MC_FORM_ADDRESS, 0 },
	{ KRP_GENL_A_SERVER_STATE, "state", MC_FORM_STATE, 0 },
	{ KRP_GENL_A_SERVER_PRIORITY, "priority", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_SERVER_PUBLISHED, "records", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_SERVER_ATTACHES, "attaches", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_SERVER_LOOKUPS, "lookups", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_SERVER_READS, "reads", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_SERVER_MISSES, "misses", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_SERVER_MISSES_OVERRULED, "misses_overruled", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_SERVER_FAILURES, "failures", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_SERVER_INCARNATION, "incarnation", MC_FORM_HEX, MC_DETAIL },
	{ KRP_GENL_A_SERVER_LEASE_MS, "lease_ms", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_SERVER_NEXT_TRY_MS, "next_try_ms", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_SERVER_ERROR, "errno", MC_FORM_ERROR, MC_DETAIL },
	{ KRP_GENL_A_SERVER_REASON, "reason", MC_FORM_TEXT, MC_BELOW },
	{ KRP_GENL_A_SERVER_SCOPE, "scope", MC_FORM_NEVER, 0 },
	{ KRP_GENL_A_SERVER_PORT, "server_port", MC_FORM_NEVER, 0 },
	{ 0 },
};

static const struct mc_attr mc_queue_attrs[] = {
	{ KRP_GENL_A_QUEUE_CONTEXT, "context", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_QUEUE_NUMBER, "queue", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_QUEUE_PID, "pid", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_QUEUE_UID, "uid", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_QUEUE_COMM, "comm", MC_FORM_TEXT, 0 },
	{ KRP_GENL_A_QUEUE_STATE, "state", MC_FORM_STATE, 0 },
	{ KRP_GENL_A_QUEUE_GID, "gid", MC_FORM_GID, 0 },
	{ KRP_GENL_A_QUEUE_SERVICE, "service", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_QUEUE_DEPTH, "depth", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_QUEUE_OUTSTANDING, "outstanding", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_QUEUE_POSTED, "posted", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_QUEUE_COMPLETED, "completed", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_QUEUE_FAILED, "failed", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_QUEUE_BYTES, "transferred_bytes", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_QUEUE_INITIATOR, "initiator", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_QUEUE_ISOLATED, "isolated", MC_FORM_BOOL, MC_DETAIL },
	{ KRP_GENL_A_QUEUE_ERROR, "errno", MC_FORM_ERROR, MC_DETAIL },
	{ 0 },
};

static const struct mc_attr mc_peer_attrs[] = {
	{ KRP_GENL_A_PEER_GID, "gid", MC_FORM_GID, 0 },
	{ KRP_GENL_A_PEER_SERVICE, "service", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_PEER_GENERATION, "generation", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_PEER_QUEUES, "queues", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_PEER_REGIONS, "regions", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_PEER_AGE_MS, "age_ms", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_PEER_KIND, "kind", MC_FORM_KIND, 0 },
	{ KRP_GENL_A_PEER_DCTN, "dctn", MC_FORM_HEX, 0 },
	{ 0 },
};

static const struct mc_attr mc_stats_attrs[] = {
	{ KRP_GENL_A_STATS_CONTEXTS, "contexts", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_STATS_QUEUES, "queues", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_STATS_MRS, "regions", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_STATS_PINNED_BYTES, "pinned_bytes", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_STATS_CONNECTS, "connects", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_STATS_CONNECTS_CACHED, "connects_cached", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_STATS_CONNECTS_FAILED, "connects_failed", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_STATS_POSTS, "posts", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_STATS_REQUESTS, "requests", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_STATS_COMPLETIONS, "completions", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_STATS_ERRORS, "errors", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_STATS_CACHE_ENTRIES, "cache_entries", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_STATS_CACHE_ENTRIES_MAX, "cache_entries_max", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_STATS_CACHE_HITS, "cache_hits", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_STATS_CACHE_MISSES, "cache_misses", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_STATS_CACHE_EVICTIONS, "cache_evictions", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_STATS_CACHE_INVALIDATIONS, "cache_invalidations", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_STATS_POOL, "pool", MC_FORM_NEVER, 0 },
	{ KRP_GENL_A_STATS_LANES, "lanes", MC_FORM_NEVER, 0 },
	{ 0 },
};

static const struct mc_attr mc_pool_attrs[] = {
	{ KRP_GENL_A_POOL_DEVICE, "device", MC_FORM_TEXT, 0 },
	{ KRP_GENL_A_POOL_PORT, "port", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_POOL_INITIATORS, "initiators", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_POOL_DEPTH, "depth", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_POOL_POSTED, "posted", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_POOL_COMPLETED, "completed", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_POOL_OUTSTANDING, "outstanding", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_POOL_FAULTS, "faults", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_POOL_RECOVERIES, "recoveries", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_POOL_REPLAYED, "replayed", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_POOL_UNKNOWN, "unknown", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_POOL_TIMEOUTS, "timeouts", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_POOL_REFUSED_READS, "refused_reads", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_POOL_EXPIRED, "expired", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_POOL_TARGET_CHANGES, "target_changes", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_POOL_ISOLATED, "isolated", MC_FORM_NUMBER, 0 },
	{ 0 },
};

static const struct mc_attr mc_lanes_attrs[] = {
	{ KRP_GENL_A_LANES_DEVICE, "device", MC_FORM_TEXT, 0 },
	{ KRP_GENL_A_LANES_PORT, "port", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_LANES_LANES, "lanes", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_LANES_MADE, "made", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_LANES_LATE, "late", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_LANES_MALFORMED, "malformed", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_LANES_UNPROVED, "unproved", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_LANES_DROPPED, "dropped", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_LANES_MENDS, "mends", MC_FORM_NUMBER, 0 },
	{ 0 },
};

static const struct mc_attr mc_user_attrs[] = {
	{ KRP_GENL_A_USER_UID, "uid", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_USER_CONTEXTS, "contexts", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_USER_QUEUES, "queues", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_USER_MRS, "regions", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_USER_REQUESTS, "requests", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_USER_REFUSED, "refused", MC_FORM_NUMBER, 0 },
	{ 0 },
};

static const struct mc_attr mc_conn_attrs[] = {
	{ KRP_GENL_A_CONN_CONTEXT, "context", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_CONN_CLIENT, "client", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_CONN_NUMBER, "connection", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_CONN_PID, "pid", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_CONN_UID, "uid", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_CONN_COMM, "comm", MC_FORM_TEXT, 0 },
	{ KRP_GENL_A_CONN_STATE, "state", MC_FORM_STATE, 0 },
	{ KRP_GENL_A_CONN_GID, "gid", MC_FORM_GID, 0 },
	{ KRP_GENL_A_CONN_SERVICE, "service", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_CONN_GENERATION, "generation", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_CONN_DEPTH, "depth", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_CONN_OUTSTANDING, "outstanding", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_CONN_WAITING, "waiting", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_CONN_WINDOW, "window", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_CONN_UNACKED, "unacked", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_CONN_BACKLOG, "backlog", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_CONN_SENT, "sent", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_CONN_RECEIVED, "received", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_CONN_REPEATS, "repeats", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_CONN_GAPS, "gaps", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_CONN_BUSY, "busy", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_CONN_FOREIGN, "foreign", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_CONN_INITIATOR, "initiator", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_CONN_ERROR, "errno", MC_FORM_ERROR, MC_DETAIL },
	{ 0 },
};

static const struct mc_attr mc_messages_attrs[] = {
	{ KRP_GENL_A_MESSAGES_DEVICE, "device", MC_FORM_TEXT, 0 },
	{ KRP_GENL_A_MESSAGES_PORT, "port", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_MESSAGES_STREAMS, "connections", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_MESSAGES_LISTENERS, "listeners", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_MESSAGES_POSTED, "posted", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_MESSAGES_FAILED, "failed", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_MESSAGES_REPLAYS, "replays", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_MESSAGES_PACKETS, "packets", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_MESSAGES_FAULTS, "faults", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_MESSAGES_MALFORMED, "malformed", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_MESSAGES_UNKNOWN, "unknown", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_MESSAGES_FOREIGN, "foreign", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_MESSAGES_NO_MEMORY, "no_memory", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_MESSAGES_OPENS, "opens", MC_FORM_NUMBER, 0 },
	{ KRP_GENL_A_MESSAGES_OPENS_DROPPED, "opens_dropped", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_MESSAGES_CHALLENGES, "challenges", MC_FORM_NUMBER, MC_DETAIL },
	{ KRP_GENL_A_MESSAGES_REFUSALS, "refusals", MC_FORM_NUMBER, MC_DETAIL },
	{ 0 },
};

static const struct mc_attr *const mc_sets[MC_SETS] = {
	[MC_SET_NODE] = mc_node_attrs,	       [MC_SET_PORT] = mc_port_attrs,
	[MC_SET_SERVER] = mc_server_attrs,     [MC_SET_QUEUE] = mc_queue_attrs,
	[MC_SET_PEER] = mc_peer_attrs,	       [MC_SET_STATS] = mc_stats_attrs,
	[MC_SET_POOL] = mc_pool_attrs,	       [MC_SET_LANES] = mc_lanes_attrs,
	[MC_SET_USER] = mc_user_attrs,	       [MC_SET_CONN] = mc_conn_attrs,
	[MC_SET_MESSAGES] = mc_messages_attrs,
};

const char *mc_module_attr(enum mc_set set, uint16_t type)
{
	const struct mc_attr *a;

	for (a = mc_sets[set]; a->key; a++)
		if (a->type == type)
			return a->key;
	return "unknown attribute";
}

static const char *const mc_port_states[KRP_GENL_PORT_STATES] = {
	[KRP_GENL_PORT_UNUSABLE] = "unusable",
	[KRP_GENL_PORT_DOWN] = "down",
	[KRP_GENL_PORT_UP] = "up",
};

static const char *const mc_session_states[KRP_GENL_SERVER_STATES] = {
	[KRP_GENL_SERVER_DOWN] = "down",
	[KRP_GENL_SERVER_RESOLVING] = "resolving",
	[KRP_GENL_SERVER_CONNECTING] = "connecting",
	[KRP_GENL_SERVER_HELLO] = "hello",
	[KRP_GENL_SERVER_READY] = "ready",
	[KRP_GENL_SERVER_CLOSING] = "closing",
};

static const char *const mc_queue_states[KRP_QUEUE_STATES] = {
	[KRP_QUEUE_IDLE] = "idle",
	[KRP_QUEUE_CONNECTING] = "connecting",
	[KRP_QUEUE_READY] = "ready",
	[KRP_QUEUE_ERROR] = "error",
};

static const char *const mc_conn_states[] = {
	[KRP_CONN_OFFERED] = "offered",
	[KRP_CONN_OPENING] = "opening",
	[KRP_CONN_OPEN] = "open",
	[KRP_CONN_DEAD] = "dead",
};

const char *mc_module_state(enum mc_set set, uint32_t state)
{
	switch (set) {
	case MC_SET_PORT:
		return state < KRP_GENL_PORT_STATES ? mc_port_states[state] : "unknown";
	case MC_SET_SERVER:
		return state < KRP_GENL_SERVER_STATES ? mc_session_states[state] : "unknown";
	case MC_SET_QUEUE:
		return state < KRP_QUEUE_STATES ? mc_queue_states[state] : "unknown";
	case MC_SET_CONN:
		return state <= KRP_CONN_DEAD ? mc_conn_states[state] : "unknown";
	default:
		return "unknown";
	}
}

/* A state that is well is green, one that passes is plain, the others are red. */
static unsigned int mc_state_colour(enum mc_set set, uint64_t state)
{
	switch (set) {
	case MC_SET_PORT:
		return state == KRP_GENL_PORT_UP ? MC_GOOD : MC_BAD;
	case MC_SET_SERVER:
		return state == KRP_GENL_SERVER_READY  ? MC_GOOD
		       : state == KRP_GENL_SERVER_DOWN ? MC_BAD
						       : MC_WARN;
	case MC_SET_QUEUE:
		return state == KRP_QUEUE_READY ? MC_GOOD : state == KRP_QUEUE_ERROR ? MC_BAD : 0;
	case MC_SET_CONN:
		return state == KRP_CONN_OPEN ? MC_GOOD : state == KRP_CONN_DEAD ? MC_BAD : 0;
	default:
		return 0;
	}
}

/* A number of any width. */
static uint64_t mc_attr_number(const struct nlattr *attr)
{
	uint32_t u32;
	uint16_t u16;
	uint64_t u64;
	const void *p = mnl_attr_get_payload(attr);

	switch (mnl_attr_get_payload_len(attr)) {
	case 1:
		return *(const uint8_t *)p;
	case 2:
		memcpy(&u16, p, sizeof(u16));
		return u16;
	case 4:
		memcpy(&u32, p, sizeof(u32));
		return u32;
	case 8:
		memcpy(&u64, p, sizeof(u64));
		return u64;
	default:
		return 0;
	}
}

/* A text that the kernel ended, or nothing. */
static const char *mc_attr_text(const struct nlattr *attr)
{
	return attr && mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0 ? mnl_attr_get_str(attr)
									 : NULL;
}

static void mc_put_bytes(struct mc_out *out, const struct mc_attr *a, const struct nlattr *attr)
{
	const uint8_t *p = mnl_attr_get_payload(attr);
	char text[2 * KRP_OWNER_BYTES + 1] = "";
	unsigned int i;

	for (i = 0; i < mnl_attr_get_payload_len(attr) && i < KRP_OWNER_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", p[i]);
	mc_put_text(out, a->key, a->flags, text);
}

static void mc_put_address(struct mc_out *out, const struct mc_attr *a, const struct nlattr *attr,
			   const struct nlattr *const *all)
{
	const struct nlattr *port = all[KRP_GENL_A_SERVER_PORT];
	const struct nlattr *scope = all[KRP_GENL_A_SERVER_SCOPE];
	struct sockaddr_storage addr = { 0 };
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&addr;
	struct sockaddr_in *in = (struct sockaddr_in *)&addr;
	char text[KRU_ADDR_TEXT];
	in_port_t number = htons(port ? (uint16_t)mc_attr_number(port) : 0);

	if (mnl_attr_get_payload_len(attr) == sizeof(in6->sin6_addr)) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = number;
		in6->sin6_scope_id = scope ? (uint32_t)mc_attr_number(scope) : 0;
		memcpy(&in6->sin6_addr, mnl_attr_get_payload(attr), sizeof(in6->sin6_addr));
	} else if (mnl_attr_get_payload_len(attr) == sizeof(in->sin_addr)) {
		in->sin_family = AF_INET;
		in->sin_port = number;
		memcpy(&in->sin_addr, mnl_attr_get_payload(attr), sizeof(in->sin_addr));
	}
	mc_put_text(out, a->key, a->flags, kru_sockaddr_format((struct sockaddr *)&addr, text));
}

static void mc_put_gid(struct mc_out *out, const struct mc_attr *a, const struct nlattr *attr)
{
	char text[KRU_GID_TEXT];

	if (mnl_attr_get_payload_len(attr) == KRP_GID_BYTES)
		mc_put_text(out, a->key, a->flags,
			    kru_gid_format(mnl_attr_get_payload(attr), text));
	else
		mc_put_text(out, a->key, a->flags, NULL);
}

static void mc_put_attr(struct mc_out *out, enum mc_set set, const struct mc_attr *a,
			const struct nlattr *const *all)
{
	const struct nlattr *attr = all[a->type];
	uint64_t number;

	if (a->form == MC_FORM_NEVER)
		return;
	if (!attr) {
		mc_put_text(out, a->key, a->flags, NULL);
		return;
	}
	number = mc_attr_number(attr);
	switch (a->form) {
	case MC_FORM_NUMBER:
		mc_put_number(out, a->key, a->flags, number);
		break;
	case MC_FORM_SIGNED:
	case MC_FORM_ERROR:
		mc_put_signed(out, a->key, a->flags | (number ? MC_BAD : 0), (int32_t)number);
		break;
	case MC_FORM_BOOL:
		mc_put_bool(out, a->key, a->flags, number);
		break;
	case MC_FORM_HEX:
		mc_put_format(out, a->key, a->flags, "0x%" PRIx64, number);
		break;
	case MC_FORM_TEXT:
		mc_put_text(out, a->key, a->flags, mc_attr_text(attr));
		break;
	case MC_FORM_GID:
		mc_put_gid(out, a, attr);
		break;
	case MC_FORM_BYTES:
		mc_put_bytes(out, a, attr);
		break;
	case MC_FORM_ADDRESS:
		mc_put_address(out, a, attr, all);
		break;
	case MC_FORM_STATE:
		mc_put_text(out, a->key, a->flags | mc_state_colour(set, number),
			    mc_module_state(set, (uint32_t)number));
		break;
	case MC_FORM_KIND:
		mc_put_text(out, a->key, a->flags,
			    number == KRP_KIND_DCT    ? "dct"
			    : number == KRP_KIND_LANE ? "lane"
			    : number == KRP_KIND_RAW  ? "raw"
						      : "unknown");
		break;
	case MC_FORM_NEVER:
		break;
	}
}

void mc_module_row(struct mc_out *out, enum mc_set set, const struct nlattr *attrs, size_t bytes)
{
	const struct nlattr *all[MC_ROW_ATTRS_MAX] = { NULL };
	const struct nlattr *attr = attrs;
	const struct mc_attr *a;

	while (mnl_attr_ok(attr, (int)((const char *)attrs + bytes - (const char *)attr))) {
		if (mnl_attr_get_type(attr) < MC_ROW_ATTRS_MAX)
			all[mnl_attr_get_type(attr)] = attr;
		attr = mnl_attr_next(attr);
	}
	mc_row(out);
	for (a = mc_sets[set]; a->key; a++)
		mc_put_attr(out, set, a, all);
}

const struct nlattr *mc_module_attrs(const struct nlmsghdr *nlh, size_t *ret_bytes)
{
	*ret_bytes = mnl_nlmsg_get_payload_len(nlh) - MNL_ALIGN(sizeof(struct genlmsghdr));
	return mnl_nlmsg_get_payload_offset(nlh, sizeof(struct genlmsghdr));
}

const struct nlattr *mc_module_find(const struct nlmsghdr *nlh, uint16_t type)
{
	const struct nlattr *attr;

	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr))
		if (mnl_attr_get_type(attr) == type)
			return attr;
	return NULL;
}

uint32_t mc_module_u32(const struct nlmsghdr *nlh, uint16_t type)
{
	const struct nlattr *attr = mc_module_find(nlh, type);

	return attr ? (uint32_t)mc_attr_number(attr) : 0;
}

const char *mc_module_text(const struct nlmsghdr *nlh, uint16_t type)
{
	const char *text = mc_attr_text(mc_module_find(nlh, type));

	return text ? text : "";
}
