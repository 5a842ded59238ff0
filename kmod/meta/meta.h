/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the MetaServer client of a port: one session (rdma_cm, RC queue pair) with
 * each MetaServer of the configuration, over which it publishes and renews this
 * port's records and READs others'. Sessions attach, fail and come back by themselves,
 * with back-off; nothing here fails because a server is away.
 * Locking: every function may be called at once from several threads; those that say
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
 * @len: bytes in use.
 */
struct krc_meta_key {
	u8 bytes[KRC_META_KEY_BYTES_MAX];
	u32 len;
};

/**
 * struct krc_meta_conf - What `krcore-metactl node up` brings.
 * @owner: identity of the node that lasts over boots.
 * @generation: boot generation, larger at each node up.
 * @name: host name for people.
 * @keys: cluster keys: the first is named to servers, all are accepted.
 * @keys_nr: how many; 0 means no authentication.
 * @lease_ms: lease to ask for, 0 leaves it to the server.
 * @timeout_ms: how long a request may take.
 * @reconnect_min_ms: first pause before a lost server is tried again.
 * @reconnect_max_ms: longest.
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
 * enum krc_meta_state - State of a session; one transition function owns it.
 * @KRC_META_DOWN: waiting to try again.
 * @KRC_META_RESOLVING: address and route.
 * @KRC_META_CONNECTING: rdma_cm handshake.
 * @KRC_META_HELLO: authentication.
 * @KRC_META_READY: records are being published, look-ups work.
 * @KRC_META_CLOSING: being taken down.
 * @KRC_META_STATES: how many there are.
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
 * struct krc_meta_info - How one session is, for people.
 * @name: as the administrator wrote it.
 * @addr: address.
 * @priority: as configured.
 * @state: enum krc_meta_state.
 * @error: negative errno of the last failure, 0 if none.
 * @reason: text about it ("authentication failed", "no route").
 * @incarnation: of the server, 0 if never attached.
 * @lease_ms: granted.
 * @published: records of this port that it has acknowledged.
 * @attaches: how often it was attached.
 * @lookups: look-ups asked of it.
 * @reads: READs of it.
 * @misses: look-ups it answered with "no such record".
 * @misses_overruled: of these, another server had the record.
 * @failures: READs and requests that failed.
 * @next_try_ms: until the next attempt, 0 if none is due.
 */
struct krc_meta_info {
	char name[KRC_META_SERVER_NAME_BYTES];
	struct sockaddr_storage addr;
	u16 priority;
	u8 state;
	int error;
	char reason[64];
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
 * @gid: GID that is published for; connections come from it (RoCE: the address it
 *	stands for, IPv4-mapped or IPv6).
 * @conf: configuration; copied.
 * @cache: cache of the node: notifications and new incarnations make it forget.
 *
 * Context: may sleep. Returns before anything is attached.
 * Return: the client, or ERR_PTR(-ENOMEM), or that of an errno of the crypto layer if
 * there is a key and no HMAC-SHA256.
 */
struct krc_meta *krc_meta_create(struct ib_device *ibdev, u32 port, const union ib_gid *gid,
				 const struct krc_meta_conf *conf, struct krc_cache *cache);

/**
 * krc_meta_destroy() - Withdraw all records (waiting at most 1 s), end all sessions.
 * @meta: client.
 *
 * Look-ups under way return -ESHUTDOWN. Works if the device is on its way out: once
 * rdma_cm has said so, nothing is waited for. Context: may sleep.
 */
void krc_meta_destroy(struct krc_meta *meta);

/**
 * krc_meta_stop() - Withdraw (waiting at most 1 s), end all sessions, and let every present
 * and later call return -ESHUTDOWN at once.
 * @meta: client; stays valid until krc_meta_destroy().
 *
 * Context: may sleep.
 */
void krc_meta_stop(struct krc_meta *meta);

/**
 * krc_meta_plan() - Make all that a new list of servers takes; nothing changes yet.
 * @meta: client.
 * @conf: configuration; its generation is that of before.
 *
 * Context: may sleep.
 * Return: the plan, for krc_meta_switch() or krc_meta_plan_free(), or an ERR_PTR as
 * krc_meta_create().
 */
struct krc_meta_plan *krc_meta_plan(struct krc_meta *meta, const struct krc_meta_conf *conf);

/**
 * krc_meta_plan_free() - Give a plan up.
 * @plan: plan or NULL.
 *
 * Context: may sleep.
 */
void krc_meta_plan_free(struct krc_meta_plan *plan);

/**
 * krc_meta_switch() - Take a new list of servers, while others use the client.
 * @meta: client.
 * @conf: configuration that the plan was made of; copied.
 * @plan: plan; not the caller's any more.
 *
 * Context: may sleep.
 * Servers in both keep their session, unless owner, name or lease change, or whether there
 * are keys at all; other keys count from the next handshake on. A server
 * that is left withdraws our records; that is waited for at most 1 s. Nothing fails.
 */
void krc_meta_switch(struct krc_meta *meta, const struct krc_meta_conf *conf,
		     struct krc_meta_plan *plan);

/**
 * krc_meta_reconfigure() - krc_meta_plan() and krc_meta_switch() in one.
 * @meta: client.
 * @conf: configuration; copied. Its generation is that of before.
 *
 * Context: may sleep.
 * Return: 0, or as krc_meta_create(): nothing has changed.
 */
int krc_meta_reconfigure(struct krc_meta *meta, const struct krc_meta_conf *conf);

/**
 * krc_meta_publish() - Have a record published at every server, now and after each
 * attach, until it is withdrawn.
 * @meta: client.
 * @service: service; the GID is the client's.
 * @value: value; its generation is set here.
 *
 * Publishing the same service again replaces the value.
 * Context: may sleep.
 * Return: 0, -ENOMEM, -EINVAL (no valid value), or -ESHUTDOWN.
 */
int krc_meta_publish(struct krc_meta *meta, u16 service, const struct krp_value *value);

/**
 * krc_meta_take_orphans() - What a client could not withdraw.
 * @meta: client, after krc_meta_stop().
 * @left: the records go to this list.
 *
 * A port whose address was taken away reaches no server any more, while the lease of its
 * records is prolonged by the node's other sessions: they are of one owner.
 * Context: any.
 */
void krc_meta_take_orphans(struct krc_meta *meta, struct list_head *left);

/**
 * krc_meta_adopt_orphans() - Withdraw what other clients of this node have left.
 * @meta: client.
 * @left: records; those that were taken are gone from it. What @meta has published itself is
 *	not withdrawn.
 * @own: take those of its own address only.
 *
 * Context: any.
 */
void krc_meta_adopt_orphans(struct krc_meta *meta, struct list_head *left, bool own);

/**
 * krc_meta_release_orphans() - Withdraw no more what was adopted of an address.
 * @meta: client.
 * @gid: the address; a port that has it now is about to publish, and does the rest.
 * @left: the records go to this list.
 *
 * Context: any.
 */
void krc_meta_release_orphans(struct krc_meta *meta, const union ib_gid *gid,
			      struct list_head *left);

/**
 * krc_meta_drop_orphans() - Forget what was left.
 * @left: records; empty afterwards.
 *
 * Context: any.
 */
void krc_meta_drop_orphans(struct list_head *left);

/**
 * krc_meta_published() - Wait until at least one server has acknowledged a record.
 * @meta: client.
 * @service: service.
 * @timeout_ms: at most so long.
 *
 * Context: may sleep, interruptible.
 * Return: 0, -ENOENT (not published by us), -ETIMEDOUT, -ERESTARTSYS, -ESHUTDOWN, or the
 * refusal of a server (krp_status_errno()) if all refused.
 */
int krc_meta_published(struct krc_meta *meta, u16 service, u32 timeout_ms);

/**
 * krc_meta_withdraw() - Take a record back.
 * @meta: client.
 * @service: service.
 *
 * Context: may sleep; does not wait for the servers.
 */
void krc_meta_withdraw(struct krc_meta *meta, u16 service);

/**
 * krc_meta_lookup() - READ a record from the best server that answers.
 * @meta: client.
 * @key: name of the record.
 * @timeout_ms: at most so long in all.
 * @ret_value: out: the value.
 * @ret_reads: out: READs it took, may be NULL.
 * @ret_doubt: out with -ENOENT, else untouched: the miss is not proved; may be NULL.
 *
 * Does not ask the cache; puts what it finds there. A server that fails is left for
 * the next one. What one does not have is looked for at one more, since a record is
 * published when one server has taken it; at all that are ready, as long as those that
 * do not have it are settling. A miss is in doubt if all of those settle or stand still,
 * or if there was no second one to ask though another is configured. Context: may sleep,
 * killable.
 * Return: 0; -ENOENT (two servers, or all that are ready, have no such record); -ENOTCONN
 * (no server that can be asked is attached); -ETIMEDOUT; -EINTR; -ESHUTDOWN; -EINVAL.
 */
int krc_meta_lookup(struct krc_meta *meta, const struct krp_key *key, u32 timeout_ms,
		    struct krp_value *ret_value, u32 *ret_reads, bool *ret_doubt);

/**
 * krc_meta_info() - How the session with server @i is.
 * @meta: client.
 * @i: 0 to conf.servers_nr - 1.
 * @ret_info: out.
 *
 * Context: process.
 * Return: 0, or -ENOENT.
 */
int krc_meta_info(struct krc_meta *meta, u32 i, struct krc_meta_info *ret_info);

/* Text of enum krc_meta_state, for people. */
const char *krc_meta_state_name(u8 state);

#endif /* KRC_META_H */
