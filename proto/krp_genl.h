/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * Generic netlink family "krcore": configuration and diagnostics of the module. Normative
 * together with docs/netlink/krcore.yaml, which says the same for the kernel's YNL
 * tools; a test compares the two.
 *
 * COMMANDS
 *   NODE_UP     do, CAP_NET_ADMIN   configure the node, or configure it anew
 *   NODE_DOWN   do, CAP_NET_ADMIN   withdraw everything, close all ports
 *   NODE_GET    do                  configuration and identity, never the key
 *   PORT_GET    dump                RDMA ports, usable or not, and why not
 *   SERVER_GET  dump                sessions with MetaServers, port by port
 *   QUEUE_GET   dump                queues; without CAP_NET_ADMIN the caller's own only
 *   PEER_GET    dump                peers that queues are connected to, then the cache; without
 *                                   CAP_NET_ADMIN the peers of the caller's own queues only
 *   STATS_GET   do                  counters of contexts, cache and pools
 *   USER_GET    dump                what users hold; as QUEUE_GET
 *   CONN_GET    dump                connections of messages; as QUEUE_GET
 *   MESSAGES_GET dump               counters of messages of each port that is up
 *   An answer has the number of its request; its attributes are those of the set of
 *   the same name. NODE_UP takes the whole configuration: what is not given has its
 *   default (0 or empty), nothing is kept from before.
 *
 * CONVENTIONS
 *   Numbers are in the host's byte order, but for GID and address, which are
 *   bytes in network order. Strings are NUL-terminated. In answers an attribute of 8
 *   bytes may have a PAD before it. Unknown attributes of NODE_UP are refused; the extended
 *   acknowledgement names the attribute and says what is wrong. The DC key, remote
 *   keys and the cluster key are in no answer. A dump is not a snapshot: what comes or
 *   goes meanwhile may be missed or appear twice.
 */
#ifndef KRP_GENL_H
#define KRP_GENL_H

#include <linux/types.h>

#define KRP_GENL_NAME "krcore"
#define KRP_GENL_VERSION 1

/* Bounds of attributes of NODE_UP; krcore.conf(5) has these or narrower ones. */
#define KRP_GENL_SERVERS_MAX 16
#define KRP_GENL_KEY_BYTES_MIN 16
#define KRP_GENL_KEY_BYTES_MAX 64
#define KRP_GENL_KEYS_MAX 8
#define KRP_GENL_NAME_MAX 63 /* characters of node and device names */
#define KRP_GENL_SERVER_NAME_MAX 79
#define KRP_GENL_LEASE_MS_MAX 86400000
#define KRP_GENL_TIMEOUT_MS_MIN 100
#define KRP_GENL_TIMEOUT_MS_MAX 600000
#define KRP_GENL_RECONNECT_MS_MIN 10
#define KRP_GENL_RECONNECT_MS_MAX 3600000
#define KRP_GENL_INITIATORS_MAX 256
#define KRP_GENL_DEPTH_MIN 16
#define KRP_GENL_DEPTH_MAX 8192
#define KRP_GENL_ACK_TIMEOUT_MIN 10
#define KRP_GENL_ACK_TIMEOUT_MAX 16
#define KRP_GENL_MARGIN_MS_MIN 100 /* KRP_MRDIR_MARGIN_MS_MIN */
#define KRP_GENL_MARGIN_MS_MAX 10000
#define KRP_GENL_TRAFFIC_CLASS_MAX 255
#define KRP_GENL_SERVICE_LEVEL_MAX 15
#define KRP_GENL_PKEY_MIN 1
#define KRP_GENL_PKEY_MAX 65535
#define KRP_GENL_MTU_MAX 5 /* enum ib_mtu: 4096 bytes */
#define KRP_GENL_CACHE_MIN 16
#define KRP_GENL_CACHE_MAX 16777216
#define KRP_GENL_LIMIT_MAX 16777216

/* Commands. */
enum {
	KRP_GENL_CMD_NODE_UP = 1,
	KRP_GENL_CMD_NODE_DOWN,
	KRP_GENL_CMD_NODE_GET,
	KRP_GENL_CMD_PORT_GET,
	KRP_GENL_CMD_SERVER_GET,
	KRP_GENL_CMD_QUEUE_GET,
	KRP_GENL_CMD_PEER_GET,
	KRP_GENL_CMD_STATS_GET,
	KRP_GENL_CMD_USER_GET,
	KRP_GENL_CMD_CONN_GET,
	KRP_GENL_CMD_MESSAGES_GET,

	__KRP_GENL_CMD_MAX,
	KRP_GENL_CMD_MAX = (__KRP_GENL_CMD_MAX - 1)
};

/* The node: NODE_UP takes it, NODE_GET gives it. */
enum {
	KRP_GENL_A_NODE_PAD = 1,
	KRP_GENL_A_NODE_UP, /* u8, out: 1 if it is up, else nothing but VERSION follows */
	KRP_GENL_A_NODE_VERSION, /* string, out: of the module */
	KRP_GENL_A_NODE_OWNER, /* binary, 16 bytes: identity over boots; mandatory */
	KRP_GENL_A_NODE_GENERATION, /* u64: boot generation; mandatory, may not fall */
	KRP_GENL_A_NODE_NAME, /* string: host name, for diagnostics; mandatory */
	/* the first key is used, all are accepted; absent: none */
	KRP_GENL_A_NODE_KEY, /* binary, 16 to 64 bytes, in: once for each of up to 8 */
	KRP_GENL_A_NODE_AUTH, /* u8, out: 1 if there is a cluster key */
	KRP_GENL_A_NODE_LEASE_MS, /* u32: 0 leaves it to the MetaServer */
	KRP_GENL_A_NODE_TIMEOUT_MS, /* u32: of a request; mandatory */
	KRP_GENL_A_NODE_RECONNECT_MIN_MS, /* u32: first pause; mandatory */
	KRP_GENL_A_NODE_RECONNECT_MAX_MS, /* u32: longest pause; mandatory */
	KRP_GENL_A_NODE_DEVICE, /* string: the only RDMA device to use; absent: all */
	KRP_GENL_A_NODE_POOL_INITIATORS, /* u32: of a port; 0: one a CPU, 4 to 16 */
	KRP_GENL_A_NODE_POOL_DEPTH, /* u32: requests of an initiator; mandatory */
	KRP_GENL_A_NODE_CACHE_ENTRIES, /* u32: bound of the cache; mandatory */
	KRP_GENL_A_NODE_QUEUES_PER_USER, /* u32: limit, 0 for none */
	KRP_GENL_A_NODE_REQUESTS_PER_USER, /* u32: limit, 0 for none */
	KRP_GENL_A_NODE_MRS_PER_USER, /* u32: limit, 0 for none */
	KRP_GENL_A_NODE_SERVER, /* nest of KRP_GENL_A_SERVER_*, once for each MetaServer */
	KRP_GENL_A_NODE_ACK_TIMEOUT, /* u32: of initiators, 4.096 us * 2^N; mandatory */
	KRP_GENL_A_NODE_MARGIN_MS, /* u32: of regions, see krp_mrdir.h; mandatory */
	KRP_GENL_A_NODE_TRAFFIC_CLASS, /* u32: of IP or the global route header */
	KRP_GENL_A_NODE_SERVICE_LEVEL, /* u32: at most 7 on Ethernet */
	KRP_GENL_A_NODE_PKEY, /* u32: partition of InfiniBand; mandatory */
	KRP_GENL_A_NODE_MTU, /* u32: enum ib_mtu, largest packet; 0: what the port has */

	__KRP_GENL_A_NODE_MAX,
	KRP_GENL_A_NODE_MAX = (__KRP_GENL_A_NODE_MAX - 1)
};

/* An RDMA port. */
enum {
	KRP_GENL_A_PORT_PAD = 1,
	KRP_GENL_A_PORT_DEVICE, /* string: RDMA device */
	KRP_GENL_A_PORT_NUM, /* u32: port of the device, from 1 */
	KRP_GENL_A_PORT_STATE, /* u8: KRP_GENL_PORT_* */
	KRP_GENL_A_PORT_REASON, /* string: why it is not up; absent if there is none */
	KRP_GENL_A_PORT_PROVIDER, /* string: what drives it; absent if nothing does */
	KRP_GENL_A_PORT_GID, /* binary, 16 bytes: published GID; absent if there is none */
	KRP_GENL_A_PORT_DCTN, /* u32: DC target number; this and all that follow only if up */
	KRP_GENL_A_PORT_LID, /* u16: InfiniBand LID, 0 on Ethernet */
	KRP_GENL_A_PORT_MTU, /* u8: enum ib_mtu */
	KRP_GENL_A_PORT_ETHERNET, /* u8: 1 for RoCE, 0 for InfiniBand */
	KRP_GENL_A_PORT_GENERATION, /* u64: boot generation it is published under */
	KRP_GENL_A_PORT_INITIATORS, /* u32: in the pool */
	KRP_GENL_A_PORT_RECOVERIES, /* u64: initiators recovered so far */

	__KRP_GENL_A_PORT_MAX,
	KRP_GENL_A_PORT_MAX = (__KRP_GENL_A_PORT_MAX - 1)
};

/* A MetaServer: in NODE_SERVER its configuration, in SERVER_GET the session too. */
enum {
	KRP_GENL_A_SERVER_PAD = 1,
	KRP_GENL_A_SERVER_ADDRESS, /* binary, 4 bytes of IPv4 or 16 of IPv6; mandatory */
	KRP_GENL_A_SERVER_SCOPE, /* u32: interface of a link-local address */
	KRP_GENL_A_SERVER_PORT, /* u16: RDMA_PS_TCP port; mandatory */
	KRP_GENL_A_SERVER_PRIORITY, /* u16: lower is asked first */
	KRP_GENL_A_SERVER_NAME, /* string: as the administrator wrote it; mandatory */
	KRP_GENL_A_SERVER_DEVICE, /* string: RDMA device of the session */
	KRP_GENL_A_SERVER_DEVICE_PORT, /* u32: its port */
	KRP_GENL_A_SERVER_STATE, /* u8: KRP_GENL_SERVER_* */
	KRP_GENL_A_SERVER_ERROR, /* s32: negative errno of the last failure, 0 for none */
	KRP_GENL_A_SERVER_REASON, /* string: text about it; absent if there is none */
	KRP_GENL_A_SERVER_INCARNATION, /* u64: incarnation of the server, 0 if never attached */
	KRP_GENL_A_SERVER_LEASE_MS, /* u32: granted */
	KRP_GENL_A_SERVER_PUBLISHED, /* u32: records of this port that it has */
	KRP_GENL_A_SERVER_ATTACHES, /* u64: how often it was attached */
	KRP_GENL_A_SERVER_LOOKUPS, /* u64: look-ups asked of it */
	KRP_GENL_A_SERVER_READS, /* u64: READs of it */
	KRP_GENL_A_SERVER_MISSES, /* u64: look-ups that found no record */
	KRP_GENL_A_SERVER_FAILURES, /* u64: READs and requests that failed */
	KRP_GENL_A_SERVER_NEXT_TRY_MS, /* u32: until the next attempt, 0 if none is due */
	KRP_GENL_A_SERVER_MISSES_OVERRULED, /* u64: of its misses: another had the record */

	__KRP_GENL_A_SERVER_MAX,
	KRP_GENL_A_SERVER_MAX = (__KRP_GENL_A_SERVER_MAX - 1)
};

/* A queue of /dev/krcore. */
enum {
	KRP_GENL_A_QUEUE_PAD = 1,
	KRP_GENL_A_QUEUE_CONTEXT, /* u64: number of its open file, never used again */
	KRP_GENL_A_QUEUE_NUMBER, /* u32: number in the context */
	KRP_GENL_A_QUEUE_PID, /* u32: process that opened it, as the asking task sees it; or 0 */
	KRP_GENL_A_QUEUE_UID, /* u32: its user, as the asker's namespace sees it */
	KRP_GENL_A_QUEUE_COMM, /* string: its name */
	KRP_GENL_A_QUEUE_STATE, /* u8: KRP_QUEUE_* */
	KRP_GENL_A_QUEUE_ERROR, /* s32: in ERROR the negative errno that led there */
	KRP_GENL_A_QUEUE_GID, /* binary, 16 bytes: peer; not if idle, nor the next */
	KRP_GENL_A_QUEUE_SERVICE, /* u16: service of the peer */
	KRP_GENL_A_QUEUE_DEPTH, /* u32: most requests at once */
	KRP_GENL_A_QUEUE_OUTSTANDING, /* u32: requests without completion */
	KRP_GENL_A_QUEUE_POSTED, /* u64: requests taken */
	KRP_GENL_A_QUEUE_COMPLETED, /* u64: completions */
	KRP_GENL_A_QUEUE_FAILED, /* u64: completions that were errors */
	KRP_GENL_A_QUEUE_BYTES, /* u64: transferred */
	KRP_GENL_A_QUEUE_INITIATOR, /* u32: its requests go through it, or a lane; once it has one */
	KRP_GENL_A_QUEUE_ISOLATED, /* u8: 1 if that is for whoever holds others up, else 0 */

	__KRP_GENL_A_QUEUE_MAX,
	KRP_GENL_A_QUEUE_MAX = (__KRP_GENL_A_QUEUE_MAX - 1)
};

/* A peer: QUEUES and REGIONS if queues are connected to it, the others of a cached record. */
enum {
	KRP_GENL_A_PEER_PAD = 1,
	KRP_GENL_A_PEER_GID, /* binary, 16 bytes */
	KRP_GENL_A_PEER_SERVICE, /* u16 */
	KRP_GENL_A_PEER_GENERATION, /* u64: boot generation */
	KRP_GENL_A_PEER_QUEUES, /* u32: queues connected to it, that the asker may see */
	KRP_GENL_A_PEER_REGIONS, /* u32: its regions whose references are cached; CAP_NET_ADMIN */
	KRP_GENL_A_PEER_AGE_MS, /* u32: since the record was cached */
	KRP_GENL_A_PEER_KIND, /* u8: KRP_KIND_* */
	KRP_GENL_A_PEER_DCTN, /* u32: DC target number, of KRP_KIND_DCT */

	__KRP_GENL_A_PEER_MAX,
	KRP_GENL_A_PEER_MAX = (__KRP_GENL_A_PEER_MAX - 1)
};

/* Counters since the module was loaded; those of a pool since its port came up. */
enum {
	KRP_GENL_A_STATS_PAD = 1,
	KRP_GENL_A_STATS_CONTEXTS, /* u64: open files now */
	KRP_GENL_A_STATS_QUEUES, /* u64: queues now */
	KRP_GENL_A_STATS_MRS, /* u64: regions now */
	KRP_GENL_A_STATS_PINNED_BYTES, /* u64: memory of the regions now */
	KRP_GENL_A_STATS_CONNECTS, /* u64: queues connected */
	KRP_GENL_A_STATS_CONNECTS_CACHED, /* u64: of these without asking a MetaServer */
	KRP_GENL_A_STATS_CONNECTS_FAILED, /* u64 */
	KRP_GENL_A_STATS_POSTS, /* u64: system calls to post */
	KRP_GENL_A_STATS_REQUESTS, /* u64: requests taken */
	KRP_GENL_A_STATS_COMPLETIONS, /* u64 */
	KRP_GENL_A_STATS_ERRORS, /* u64: completions that were errors */
	KRP_GENL_A_STATS_CACHE_ENTRIES, /* u64: records now */
	KRP_GENL_A_STATS_CACHE_ENTRIES_MAX, /* u64: bound */
	KRP_GENL_A_STATS_CACHE_HITS, /* u64 */
	KRP_GENL_A_STATS_CACHE_MISSES, /* u64 */
	KRP_GENL_A_STATS_CACHE_EVICTIONS, /* u64: dropped for room */
	KRP_GENL_A_STATS_CACHE_INVALIDATIONS, /* u64: dropped because they were old */
	KRP_GENL_A_STATS_POOL, /* nest of KRP_GENL_A_POOL_*, once for each port that is up */
	KRP_GENL_A_STATS_LANES, /* nest of KRP_GENL_A_LANES_*, once for each of these that makes lanes */

	__KRP_GENL_A_STATS_MAX,
	KRP_GENL_A_STATS_MAX = (__KRP_GENL_A_STATS_MAX - 1)
};

/* The initiators of a port. */
enum {
	KRP_GENL_A_POOL_PAD = 1,
	KRP_GENL_A_POOL_DEVICE, /* string: RDMA device */
	KRP_GENL_A_POOL_PORT, /* u32: its port */
	KRP_GENL_A_POOL_INITIATORS, /* u32 */
	KRP_GENL_A_POOL_DEPTH, /* u32: requests of each */
	KRP_GENL_A_POOL_POSTED, /* u64: requests given to the hardware, with replays */
	KRP_GENL_A_POOL_COMPLETED, /* u64 */
	KRP_GENL_A_POOL_FAULTS, /* u64: requests that failed by themselves */
	KRP_GENL_A_POOL_RECOVERIES, /* u64: initiators reset */
	KRP_GENL_A_POOL_REPLAYED, /* u64: requests posted again */
	KRP_GENL_A_POOL_UNKNOWN, /* u64: WRITEs and atomics of unknown outcome */
	KRP_GENL_A_POOL_OUTSTANDING, /* u64: in the hardware now */
	KRP_GENL_A_POOL_TIMEOUTS, /* u64: of RECOVERIES: a target did not answer */
	KRP_GENL_A_POOL_REFUSED_READS, /* u64: of RECOVERIES: a target refused a READ */
	KRP_GENL_A_POOL_EXPIRED, /* u64: of RECOVERIES: a lease was over in the hardware */
	KRP_GENL_A_POOL_TARGET_CHANGES, /* u64: of POSTED: to another target than the one before */
	KRP_GENL_A_POOL_ISOLATED, /* u64: stalls, and begun slowness, of isolated targets or users */

	__KRP_GENL_A_POOL_MAX,
	KRP_GENL_A_POOL_MAX = (__KRP_GENL_A_POOL_MAX - 1)
};

/* The lanes of a port (krp_lane.h) since it came up, and what came to its queue pair of hand-shakes. */
enum {
	KRP_GENL_A_LANES_PAD = 1,
	KRP_GENL_A_LANES_DEVICE, /* string: RDMA device */
	KRP_GENL_A_LANES_PORT, /* u32: its port */
	KRP_GENL_A_LANES_LANES, /* u32: now */
	KRP_GENL_A_LANES_MADE, /* u64: by this end or the other one */
	KRP_GENL_A_LANES_LATE, /* u64: REQUESTs dropped that came again */
	KRP_GENL_A_LANES_MALFORMED, /* u64: packets dropped by krp_lane_check() */
	KRP_GENL_A_LANES_UNPROVED, /* u64: packets dropped that no cluster key proves */
	KRP_GENL_A_LANES_DROPPED, /* u64: packets that came too fast, or could not be sent */
	KRP_GENL_A_LANES_MENDS, /* u64: times that the queue pair had failed and works again */

	__KRP_GENL_A_LANES_MAX,
	KRP_GENL_A_LANES_MAX = (__KRP_GENL_A_LANES_MAX - 1)
};

/* A user and what it holds. */
enum {
	KRP_GENL_A_USER_PAD = 1,
	KRP_GENL_A_USER_UID, /* u32: the user's id, as the caller's user namespace sees it */
	KRP_GENL_A_USER_CONTEXTS, /* u64 */
	KRP_GENL_A_USER_QUEUES, /* u64 */
	KRP_GENL_A_USER_MRS, /* u64 */
	KRP_GENL_A_USER_REQUESTS, /* u64: outstanding */
	KRP_GENL_A_USER_REFUSED, /* u64: times that a limit said no */

	__KRP_GENL_A_USER_MAX,
	KRP_GENL_A_USER_MAX = (__KRP_GENL_A_USER_MAX - 1)
};

/*
 * A connection of /dev/krcore, see krp_ioctl_message.h; or of a client in the kernel, which has CLIENT
 * in place of CONTEXT, PID and UID.
 */
enum {
	KRP_GENL_A_CONN_PAD = 1,
	KRP_GENL_A_CONN_CONTEXT, /* u64: number of its open file, never used again */
	KRP_GENL_A_CONN_NUMBER, /* u32: number in the context */
	KRP_GENL_A_CONN_PID, /* u32: process that opened that, as the asking task sees it; or 0 */
	KRP_GENL_A_CONN_UID, /* u32: its user, as the asker's namespace sees it */
	KRP_GENL_A_CONN_COMM, /* string: its name, or that of the client */
	KRP_GENL_A_CONN_STATE, /* u8: KRP_CONN_* */
	KRP_GENL_A_CONN_ERROR, /* s32: of what it has died, a negative errno */
	KRP_GENL_A_CONN_GID, /* binary, 16 bytes: peer; this and all that follow not if offered */
	KRP_GENL_A_CONN_SERVICE, /* u16: that was connected to */
	KRP_GENL_A_CONN_GENERATION, /* u64: boot generation of the peer's node */
	KRP_GENL_A_CONN_DEPTH, /* u32: most messages and READs at once */
	KRP_GENL_A_CONN_OUTSTANDING, /* u32: messages and READs without completion */
	KRP_GENL_A_CONN_WAITING, /* u32: messages that the peer has no room for yet */
	KRP_GENL_A_CONN_WINDOW, /* u32: messages that the peer still has room for */
	KRP_GENL_A_CONN_UNACKED, /* u32: messages that the peer's node has not acknowledged */
	KRP_GENL_A_CONN_BACKLOG, /* u32: messages that the program has not taken */
	KRP_GENL_A_CONN_SENT, /* u64: messages, each once */
	KRP_GENL_A_CONN_RECEIVED, /* u64: messages */
	KRP_GENL_A_CONN_REPEATS, /* u32: messages, answers to large ones: come again, dropped */
	KRP_GENL_A_CONN_GAPS, /* u32: messages dropped: others before them were missing */
	KRP_GENL_A_CONN_BUSY, /* u32: messages dropped: this node had no room after all */
	KRP_GENL_A_CONN_FOREIGN, /* u32: packets dropped: forged, late or of another generation */
	KRP_GENL_A_CONN_CLIENT, /* u64: number of a client in the kernel, never used again */
	KRP_GENL_A_CONN_INITIATOR, /* u32: its messages go through it, or a lane; once it has one */

	__KRP_GENL_A_CONN_MAX,
	KRP_GENL_A_CONN_MAX = (__KRP_GENL_A_CONN_MAX - 1)
};

/* The messages of a port since it came up. */
enum {
	KRP_GENL_A_MESSAGES_PAD = 1,
	KRP_GENL_A_MESSAGES_DEVICE, /* string: RDMA device */
	KRP_GENL_A_MESSAGES_PORT, /* u32: its port */
	KRP_GENL_A_MESSAGES_STREAMS, /* u32: connections now, those that are ending included */
	KRP_GENL_A_MESSAGES_LISTENERS, /* u32: services that programs listen to now */
	KRP_GENL_A_MESSAGES_POSTED, /* u64: packets sent */
	KRP_GENL_A_MESSAGES_FAILED, /* u64: of these, that failed */
	KRP_GENL_A_MESSAGES_REPLAYS, /* u64: connections that sent again after one that failed */
	KRP_GENL_A_MESSAGES_PACKETS, /* u64: packets received */
	KRP_GENL_A_MESSAGES_FAULTS, /* u64: of these, with an error */
	KRP_GENL_A_MESSAGES_MALFORMED, /* u64: dropped: not as they must be */
	KRP_GENL_A_MESSAGES_UNKNOWN, /* u64: dropped: of no connection that there is */
	KRP_GENL_A_MESSAGES_FOREIGN, /* u64: dropped: forged, late or of another generation */
	KRP_GENL_A_MESSAGES_NO_MEMORY, /* u64: messages put off for lack of memory */
	KRP_GENL_A_MESSAGES_OPENS, /* u64: requests to connect */
	KRP_GENL_A_MESSAGES_OPENS_DROPPED, /* u64: of these, without an answer */
	KRP_GENL_A_MESSAGES_CHALLENGES, /* u64: of these, to prove themselves first */
	KRP_GENL_A_MESSAGES_REFUSALS, /* u64: of these, refused */

	__KRP_GENL_A_MESSAGES_MAX,
	KRP_GENL_A_MESSAGES_MAX = (__KRP_GENL_A_MESSAGES_MAX - 1)
};

/* KRP_GENL_A_PORT_STATE */
#define KRP_GENL_PORT_UNUSABLE 0 /* not open: see the reason */
#define KRP_GENL_PORT_DOWN 1 /* open, but without GID, link or target */
#define KRP_GENL_PORT_UP 2 /* target made, connections work */
#define KRP_GENL_PORT_STATES 3

/* KRP_GENL_A_SERVER_STATE */
#define KRP_GENL_SERVER_DOWN 0 /* waiting to try again */
#define KRP_GENL_SERVER_RESOLVING 1 /* address and route */
#define KRP_GENL_SERVER_CONNECTING 2 /* rdma_cm handshake */
#define KRP_GENL_SERVER_HELLO 3 /* authentication */
#define KRP_GENL_SERVER_READY 4 /* records are published, look-ups work */
#define KRP_GENL_SERVER_CLOSING 5 /* being taken down */
#define KRP_GENL_SERVER_STATES 6

#endif /* KRP_GENL_H */
