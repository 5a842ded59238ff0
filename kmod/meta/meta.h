/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the MetaServer client of a port: one session (rdma_cm, RC queue pair) with
 * each MetaServer of the configuration, over which it publishes and renews this
 * port's records and READs those of others. Sessions attach, fail and attach again by
 * themselves, with back-off; no call fails just because one server is unreachable.
 * Locking: every function may be called from several threads concurrently; those that say
 * "may sleep" need process context.
 */
#ifndef KRC_META_H
#define KRC_META_H

#include <linux/in6.h>
#include <linux/socket.h>
#include <rdma/ib_verbs.h>

#include "krp_msg.h"
#include "krp_table.h"

#define KRC_META_SERVERS_MAX 16
#define KRC_META_KEY_BYTES_MAX 64
#define KRC_META_KEYS_MAX 8
#define KRC_META_SERVER_NAME_BYTES 80

struct krc_cache;
struct krc_meta;

/**
 * struct krc_meta_server_conf - One MetaServer of the configuration.
 * @addr: address and port.
 * @priority: lower is asked first.
 * @name: as the administrator wrote it.
 */
struct krc_meta_server_conf {
	struct sockaddr_storage addr;
	u16 priority;
	char name[KRC_META_SERVER_NAME_BYTES];
};

/**
 * struct krc_meta_key - A cluster key.
 * @bytes: the key; zeroed when it is freed, never shown.
 * @len: bytes of @bytes in use.
 */
struct krc_meta_key {
	u8 bytes[KRC_META_KEY_BYTES_MAX];
	u32 len;
};

/**
 * struct krc_meta_conf - Configuration, as `krcore-metactl node up` passes it.
 * @owner: identity of the node, the same at every boot.
 * @generation: boot generation, larger at each node up.
 * @name: host name, for diagnostics.
 * @keys: cluster keys: HELLO names the first, a server's proof may use any.
 * @keys_nr: length of @keys; 0 means no authentication.
 * @lease_ms: lease to ask for, 0 leaves it to the server.
 * @timeout_ms: longest time for a request.
 * @reconnect_min_ms: first pause before a lost server is tried again.
 * @reconnect_max_ms: longest such pause.
 * @servers_nr: servers in use.
 * @servers: the servers.
 */
struct krc_meta_conf {
	u8 owner[KRP_OWNER_BYTES];
	u64 generation;
	char name[KRP_NAME_BYTES];
	struct krc_meta_key keys[KRC_META_KEYS_MAX];
	u32 keys_nr;
	u32 lease_ms;
	u32 timeout_ms;
	u32 reconnect_min_ms;
	u32 reconnect_max_ms;
	u32 servers_nr;
	struct krc_meta_server_conf servers[KRC_META_SERVERS_MAX];
};

/**
 * enum krc_meta_state - State of a session, as people see it.
 * @KRC_META_DOWN: no connection; waiting for the next attempt.
 * @KRC_META_RESOLVING: rdma_cm resolves address and route.
 * @KRC_META_CONNECTING: rdma_cm handshake.
 * @KRC_META_HELLO: authentication, and root and directory of the table.
 * @KRC_META_READY: records are being published, look-ups work.
 * @KRC_META_CLOSING: the connection is being taken down.
 * @KRC_META_STATES: number of states.
 */
enum krc_meta_state {
	KRC_META_DOWN,
	KRC_META_RESOLVING,
	KRC_META_CONNECTING,
	KRC_META_HELLO,
	KRC_META_READY,
	KRC_META_CLOSING,
	KRC_META_STATES,
};

/**
 * struct krc_meta_info - State of one session, for diagnostics.
 * @name: as the administrator wrote it.
 * @addr: address.
 * @priority: as configured.
 * @state: enum krc_meta_state.
 * @error: negative errno of the last failure, 0 if none.
 * @reason: text for @error ("authentication failed", "no route").
 * @incarnation: of the server, 0 if never attached.
 * @lease_ms: lease that the server granted.
 * @published: records of this port that the server has acknowledged.
 * @attaches: how often the session reached READY.
 * @lookups: look-ups sent to this server.
 * @reads: READs of its table.
 * @misses: look-ups this server answered with "no such record".
 * @misses_overruled: misses for which another server had the record.
 * @failures: READs and requests that failed.
 * @next_try_ms: time until the next attempt, 0 if none is due.
 */
struct krc_meta_info {
	char name[KRC_META_SERVER_NAME_BYTES];
	struct sockaddr_storage addr;
	u16 priority;
	u8 state;
	int error;
	char reason[128];
	u64 incarnation;
	u32 lease_ms;
	u32 published;
	u64 attaches;
	u64 lookups;
	u64 reads;
	u64 misses;
	u64 misses_overruled;
	u64 failures;
	u32 next_try_ms;
};

/**
 * krc_meta_create() - Start the client of a port.
 * @ibdev: device; only connections that leave through it and @port are used.
 * @port: port number, from 1.
 * @gid: GID of the records, and source of the connections (RoCE: the address that it
 *	represents, IPv4-mapped or IPv6).
 * @conf: configuration; copied.
 * @cache: cache of the node; notifications and new incarnations invalidate its entries.
 *
 * Context: may sleep. Does not wait for any session to attach.
 * Return: the client, ERR_PTR(-ENOMEM), or an ERR_PTR of the crypto layer if there are keys
 * but no HMAC-SHA256.
 */
struct krc_meta *krc_meta_create(struct ib_device *ibdev, u32 port, const union ib_gid *gid,
				 const struct krc_meta_conf *conf, struct krc_cache *cache);

/**
 * krc_meta_destroy() - Withdraw all records (waiting at most 1 s), end all sessions.
 * @meta: client.
 *
 * Look-ups in flight return -ESHUTDOWN. Works during device removal: once rdma_cm has
 * reported it, no server is waited for. Context: may sleep.
 */
void krc_meta_destroy(struct krc_meta *meta);

/**
 * enum krc_miss - What -ENOENT of a look-up is worth.
 * @KRC_MISS_PROVED: two servers, or all that are configured, do not have the record, though
 *	one of them at least neither settles nor hangs.
 * @KRC_MISS_LIKELY: one that neither settles nor hangs; no second one could be asked.
 * @KRC_MISS_WEAK: all servers that answered settle or hang.
 */
enum krc_miss {
	KRC_MISS_PROVED,
	KRC_MISS_LIKELY,
	KRC_MISS_WEAK,
};

/**
 * krc_meta_lookup() - READ a record from the best server that answers.
 * @meta: client.
 * @payer: on whose account: payers take turns if more READs are wanted than a server is sent at
 *	once. Only compared.
 * @key: name of the record.
 * @timeout_ms: longest time in all.
 * @ret_value: out: the value.
 * @ret_reads: out: number of READs, may be NULL.
 * @ret_miss: out with -ENOENT, else untouched; may be NULL.
 *
 * Does not consult the cache, but stores the record found there. If a server fails, the next
 * one is asked. A miss is confirmed by a second server, since a record counts as published
 * once one server has it; as long as all servers that missed are settling or hang, every
 * ready server is asked. Context: may sleep, killable.
 * Return: 0; -ENOENT (two servers, or all that are ready, have no such record); -ENOTCONN
 * (no attached server could be asked); -ETIMEDOUT; -EINTR; -ESHUTDOWN; -EINVAL.
 */
int krc_meta_lookup(struct krc_meta *meta, const void *payer, const struct krp_key *key,
		    u32 timeout_ms, struct krp_value *ret_value, u32 *ret_reads,
		    enum krc_miss *ret_miss);

/**
 * krc_meta_info() - Report the state of the session with server @i.
 * @meta: client.
 * @i: 0 to conf.servers_nr - 1.
 * @ret_info: out.
 *
 * Context: process.
 * Return: 0, or -ENOENT.
 */
int krc_meta_info(struct krc_meta *meta, u32 i, struct krc_meta_info *ret_info);

/**
 * krc_meta_state_name() - Text of a state, for diagnostics.
 * @state: enum krc_meta_state.
 *
 * Context: any.
 * Return: constant text; "unknown" for a number that is no state.
 */
const char *krc_meta_state_name(u8 state);

#endif /* KRC_META_H */
