/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * libkrcore: find out how to reach a peer, and tell peers how to reach us.
 *
 * Where the kernel module runs, a context needs neither a key nor sessions of its own: the
 * module looks up, publishes and watches records for it, with the node's cache. krcore_open()
 * makes such a context ("by the module") unless its options name a configuration, servers, a
 * key, an identity or a lease, or set KRCORE_OPEN_DIRECT. An operation that the module does
 * not offer returns -EOPNOTSUPP.
 *
 * There are two libraries. libkrcore-queue needs the C library alone and has contexts by the
 * module, and the queues of queue.h; libkrcore adds all other contexts.
 *
 * Any other context is attached to the MetaServers of /etc/krcore.conf. A look-up is
 * one one-sided RDMA READ from the best of them; no process on the server runs
 * for it. The context publishes to all of them and keeps its records alive: it
 * renews the leases, and publishes again to a server that has restarted.
 *
 * Threads: any number of threads may use a context at once, except for
 * krcore_close(). Look-ups of one context on one server are serialized; a program
 * that wants them in parallel opens a context for each thread. A context attached
 * to MetaServers has one thread of its own, which blocks all signals.
 *
 * Structures that the library fills with information may get more fields at their end. Each
 * begins with @size, which the caller sets to its sizeof; so a program runs with an earlier
 * and with a later library than it was compiled for. The library writes no byte behind
 * @size, sets fields that it does not know to zero, and leaves @size as it is. A call refuses
 * a size below that of the structure's first version, or above 4096, with -EINVAL, before it
 * does anything. Of an array, only the first element's @size has to be set; it is the
 * distance of all, and set in each that is filled.
 *
 * Errors are negative errno values. The library never prints, never exits and
 * does not report through errno. After fork() only the parent may use a context.
 */
#ifndef KRCORE_KRCORE_H
#define KRCORE_KRCORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

#define KRCORE_GID_BYTES 16
#define KRCORE_OWNER_BYTES 16
#define KRCORE_RAW_BYTES 46
#define KRCORE_SERVICE_NODE 0 /* service of the node's DC target */

struct krcore_ctx;

/**
 * struct krcore_options - How to open a context.
 * @size: sizeof(struct krcore_options); lets later versions add fields.
 * @config_file: configuration to read; NULL means /etc/krcore.conf. A missing
 *	file is no error if @servers is given.
 * @servers: MetaServers instead of the configured ones, in the syntax of the
 *	key `metaservers` (krcore.conf(5)); NULL to take those.
 * @key_file: cluster key file instead of the configured one; NULL to take that,
 *	"" for none.
 * @name: name that the server shows its operator; NULL means the host name.
 * @owner: identity of this publisher, the same after a reboot; all zero means one
 *	derived from the machine id.
 * @generation: boot generation; 0 means the time of krcore_open() in ns. Owner and
 *	generation identify one context. If two contexts at the same port have both in common,
 *	each ends the other's session at a server when it attaches, at growing intervals.
 * @lease_ms: lease to ask for, in ms; 0 leaves it to configuration and server.
 * @timeout_ms: bound for each call that waits for a server, in ms; 0 means the
 *	configured one, 5000 by default. The context disconnects from a server
 *	whose READ takes a quarter of it.
 * @flags: KRCORE_OPEN_*.
 */
struct krcore_options {
	size_t size;
	const char *config_file;
	const char *servers;
	const char *key_file;
	const char *name;
	uint8_t owner[KRCORE_OWNER_BYTES];
	uint64_t generation;
	uint32_t lease_ms;
	uint32_t timeout_ms;
	uint32_t flags;
};

#define KRCORE_OPEN_NOWAIT 0x1 /* do not wait for a server to be attached */
#define KRCORE_OPEN_DIRECT 0x2 /* sessions of its own even where the module runs */

/**
 * struct krcore_key - Name of a record.
 * @gid: GID of the peer's port, in network order.
 * @service: which record of the peer.
 */
struct krcore_key {
	uint8_t gid[KRCORE_GID_BYTES];
	uint16_t service;
};

/* krcore_value.kind */
#define KRCORE_KIND_DCT 1 /* a DC target: the fields of @dct */
#define KRCORE_KIND_RAW 2 /* any bytes: @raw and @raw_len */
#define KRCORE_KIND_LANE 3 /* a port without DC: the fields of @dct, dctn and dc_key 0 */

/* krcore_dct.flags */
#define KRCORE_DCT_ETHERNET 0x01

/**
 * struct krcore_dct - How to reach a port, all in host order.
 * @dc_key: DC access key.
 * @mrdir_addr: address of the node's memory-region directory.
 * @mrdir_rkey: its remote key.
 * @dctn: DC target number, 24 bits.
 * @ud_qpn: queue pair to which lanes are asked for, 0 if none.
 * @ud_qkey: its Q_Key.
 * @lid: InfiniBand LID, 0 on RoCE.
 * @mac: Ethernet address (with KRCORE_DCT_ETHERNET).
 * @mtu: enum ibv_mtu, 1 to 5.
 * @sl: service level, 0 to 15.
 * @port: port number, from 1.
 * @flags: KRCORE_DCT_*.
 * @max_rd_atomic: READs and atomics the target takes at once.
 */
struct krcore_dct {
	uint64_t dc_key;
	uint64_t mrdir_addr;
	uint32_t mrdir_rkey;
	uint32_t dctn;
	uint32_t ud_qpn;
	uint32_t ud_qkey;
	uint16_t lid;
	uint8_t mac[6];
	uint8_t mtu;
	uint8_t sl;
	uint8_t port;
	uint8_t flags;
	uint8_t max_rd_atomic;
};

/**
 * struct krcore_value - Value of a record.
 * @generation: boot generation of the owner; on publish it is ignored, the
 *	context's is used.
 * @kind: KRCORE_KIND_*.
 * @raw_len: bytes of @raw, at most KRCORE_RAW_BYTES.
 * @dct: for KRCORE_KIND_DCT and KRCORE_KIND_LANE.
 * @raw: for KRCORE_KIND_RAW.
 */
struct krcore_value {
	uint64_t generation;
	uint8_t kind;
	uint8_t raw_len;
	union {
		struct krcore_dct dct;
		uint8_t raw[KRCORE_RAW_BYTES];
	};
};

/**
 * struct krcore_lookup_info - What a look-up cost.
 * @size: sizeof(struct krcore_lookup_info), set by the caller.
 * @reads: RDMA READs it took, over all servers tried; 1 in the common case.
 * @torn: READs of a bucket that was being written.
 * @stale: READs whose cached directory entry was out of date.
 * @fallback: 1 if the server was asked by a message instead.
 * @server: index of the server that answered, as in krcore_servers().
 * @settling: 1 with -ENOENT if the miss is not proved, because every server that answered
 *	hangs, or restarted so recently that the publisher may not have attached to it
 *	again; by the module also if only one answered though more are configured.
 * @unconfirmed: 1 with 0 if the record comes from the node's cache, may be out of date, and no
 *	server can be asked for it now, or none that would know; by the module only.
 * @rsvd: 0.
 */
struct krcore_lookup_info {
	size_t size;
	uint32_t reads;
	uint32_t torn;
	uint32_t stale;
	uint32_t fallback;
	uint32_t server;
	uint32_t settling;
	uint32_t unconfirmed;
	uint32_t rsvd;
};

/* krcore_server_info.state */
#define KRCORE_SERVER_DOWN 0 /* not attached; the context keeps trying */
#define KRCORE_SERVER_CONNECTING 1
#define KRCORE_SERVER_UP 2

/**
 * struct krcore_server_info - One MetaServer as the context sees it.
 * @size: sizeof(struct krcore_server_info), set by the caller.
 * @address: address and port as text.
 * @state: KRCORE_SERVER_*.
 * @priority: configured priority; lower is asked first.
 * @last_error: negative errno of the last failure, 0 if there was none.
 * @error_text: the failing step and its cause, human-readable.
 * @incarnation: identifies one run of the server process, from start to exit; 0 while
 *	not attached.
 * @records: records in its table when it was attached, as the server told.
 * @rtt_ns: smoothed time of a READ, 0 before the first.
 * @attaches: how often it was attached.
 * @depth: log2 of the entries of its directory.
 * @settling_ms: for how long publishers may still take to publish to it again after its
 *	restart; 0: it is settled.
 */
struct krcore_server_info {
	size_t size;
	char address[128];
	uint32_t state;
	uint32_t priority;
	int32_t last_error;
	char error_text[160];
	uint64_t incarnation;
	uint64_t records;
	uint64_t rtt_ns;
	uint64_t attaches;
	uint32_t depth;
	uint32_t settling_ms;
};

/**
 * struct krcore_stats - Counters of a context since krcore_open().
 * @size: sizeof(struct krcore_stats), set by the caller.
 * @lookups: look-ups finished.
 * @hits: look-ups that found their record.
 * @misses: look-ups that found no such record.
 * @misses_overruled: misses at one server of a record that another server had, because its
 *	publisher does not reach both or one of them refused it.
 * @errors: look-ups that failed.
 * @reads: READs done for look-ups.
 * @torn: READs of a bucket that was being written.
 * @stale: READs whose cached directory entry was out of date.
 * @fallbacks: look-ups answered by message.
 * @failovers: times that a server failed during a look-up and another was asked.
 * @attaches: how often a server was attached.
 * @publishes: records acknowledged by a server, republishing included.
 * @renewals: leases renewed.
 * @notifications: notifications received.
 */
struct krcore_stats {
	size_t size;
	uint64_t lookups;
	uint64_t hits;
	uint64_t misses;
	uint64_t misses_overruled;
	uint64_t errors;
	uint64_t reads;
	uint64_t torn;
	uint64_t stale;
	uint64_t fallbacks;
	uint64_t failovers;
	uint64_t attaches;
	uint64_t publishes;
	uint64_t renewals;
	uint64_t notifications;
};

/**
 * krcore_version() - Version of the library.
 *
 * Return: constant text such as "0.1.0".
 */
const char *krcore_version(void);

/**
 * krcore_open() - Make a context and attach it to the MetaServers.
 * @opts: options, or NULL for the defaults.
 * @ret_ctx: the context; untouched on failure.
 *
 * The context uses the module of this node if that runs and has a port that is up, unless
 * @opts names a configuration, servers, a key, an identity or a lease, or sets
 * KRCORE_OPEN_DIRECT. Any user may open such a context, and the call does not wait.
 * Otherwise the call waits until one server is attached, unless KRCORE_OPEN_NOWAIT is set.
 * The context attaches to the other servers in the background, and again to any server
 * whose connection breaks.
 *
 * Return:
 * * 0 - success.
 * * %-EINVAL - an option, the configuration or the key file is not valid, or no server
 *   is named.
 * * %-ENOENT - no configuration file and no @servers, or a @key_file that is
 *   not there.
 * * %-EPERM - the key file can be accessed by users other than its owner and group.
 * * %-EACCES - no server accepted our key, or the configuration or the key file may
 *   not be read.
 * * %-EPROTONOSUPPORT - no server speaks our version of the protocol.
 * * %-EHOSTUNREACH - no server could be attached before the time-out.
 * * %-ENODEV - there is no RDMA device, or not the configured one; in libkrcore-queue: no
 *   module, or no port of it that is up.
 * * %-EOPNOTSUPP - in libkrcore-queue: @opts ask for sessions of the context's own.
 * * %-ENOMEM - no memory.
 */
int krcore_open(const struct krcore_options *opts, struct krcore_ctx **ret_ctx);

/**
 * krcore_close() - Close a context and free it.
 * @ctx: context or NULL; no other thread may be in a call on it.
 *
 * Its records stay until their leases run out, except by the module, which withdraws them at
 * once. Use krcore_withdraw() before for a record that must go at once.
 */
void krcore_close(struct krcore_ctx *ctx);

/**
 * krcore_error_text() - Human-readable text of the calling thread's last failure.
 *
 * It names what failed and where, such as the line of a configuration or the
 * address of a server. It is valid until the thread's next call into the library.
 *
 * Return: text, "" if nothing failed yet.
 */
const char *krcore_error_text(void);

/**
 * krcore_lookup() - Find a record, by one READ in the common case.
 * @ctx: context.
 * @key: name of the record.
 * @ret_value: its value, or NULL; untouched on failure.
 * @ret_info: what it cost, or NULL; filled also on -ENOENT.
 *
 * The calling thread busy-polls for the READ. If a server fails, the next one is asked.
 *
 * A record counts as published when one server has taken it. So after a miss at one server
 * a second one is asked before the record counts as absent: two READs. If that server is
 * being attached for the first time, the call waits for it, up to a quarter of the time-out.
 *
 * By the module, the value comes from the node's cache if it is there. It may then be out of
 * date until the server's notification of the change has arrived; if the server that it was
 * read from hangs, until the session with that server has ended: a renewal and its time-out.
 * When a session has ended, servers are asked for what is cached once more; if none can be, or
 * none that would know, the cached value is the answer and krcore_lookup_info.unconfirmed says so.
 * Of a port only kind and generation are filled in, all other fields are zero: the keys
 * to a node's memory stay in the kernel.
 *
 * A server that was restarted is settling until its publishers have had the time to
 * attach and publish again. It is asked last, and after a miss there all other servers are
 * asked before the record counts as absent; the call waits for servers that are being
 * attached for the first time, up to the time-out. A server whose process hangs while its
 * NIC goes on answering READs is treated the same. To detect that, a miss costs one more READ
 * if the last check of the server's heartbeat is more than a second old.
 *
 * Return:
 * * 0 - found.
 * * %-ENOENT - not in the tables of two servers, at least one of them settled, or of all
 *   servers that could be asked; see krcore_lookup_info.settling.
 * * %-EINVAL - the size of @ret_info is not valid.
 * * %-EHOSTUNREACH - no server answered before the time-out.
 * * %-EPROTO - there is a value, but of a kind this library does not know.
 * * %-EINTR - by the module: the thread is being killed.
 * * %-ENOMEM - no memory to cache a larger directory.
 */
int krcore_lookup(struct krcore_ctx *ctx, const struct krcore_key *key,
		  struct krcore_value *ret_value, struct krcore_lookup_info *ret_info);

/**
 * krcore_lookup_at() - Find a record in one given server's table.
 * @ctx: context.
 * @server: index as in krcore_servers().
 * @key: name of the record.
 * @ret_value: its value, or NULL.
 * @ret_info: what it cost, or NULL.
 *
 * Return: as krcore_lookup(), but
 * * %-ENOTCONN - that server is not attached.
 * * %-EINVAL - there is no such server, or the size of @ret_info is not valid.
 * * %-EOPNOTSUPP - the context uses the module.
 */
int krcore_lookup_at(struct krcore_ctx *ctx, unsigned int server, const struct krcore_key *key,
		     struct krcore_value *ret_value, struct krcore_lookup_info *ret_info);

/**
 * krcore_lookup_by_message() - Ask a server's process for a record, without a READ.
 * @ctx: context.
 * @server: index as in krcore_servers().
 * @key: name of the record.
 * @ret_value: its value, or NULL; untouched on failure.
 *
 * This is much slower than krcore_lookup_at() and costs the server CPU time. It is meant
 * for checking the table, not for look-ups, and does not count in krcore_stats().
 *
 * Return:
 * * 0 - found.
 * * %-ENOENT - not in the table of that server.
 * * %-ENOTCONN - that server is not attached, or did not answer in time.
 * * %-EPROTO - there is a value, but of a kind this library does not know.
 * * %-EINVAL - there is no such server.
 * * %-EOPNOTSUPP - the context uses the module.
 */
int krcore_lookup_by_message(struct krcore_ctx *ctx, unsigned int server,
			     const struct krcore_key *key, struct krcore_value *ret_value);

/**
 * krcore_publish() - Publish a record to all servers, and keep it published.
 * @ctx: context.
 * @key: name; its GID must be that of this node unless the servers allow others.
 * @value: value; @value->generation is ignored.
 *
 * The context renews the record's lease, and publishes it again to servers that it attaches
 * to later, until the record is withdrawn or the context closed. Publishing a key again
 * replaces its value. By the module only KRCORE_KIND_RAW can be published, under services
 * from 256 on, for a port of this node, and a service belongs to one program at a time.
 *
 * Return:
 * * a positive number - servers that acknowledged it; by the module 1, for one or more.
 * * %-EINVAL - @value is of an unknown kind, a field is out of its range, or the GID is zero.
 * * %-EHOSTUNREACH - no server is attached or none answered; it will be published later.
 * * %-EEXIST - it belongs to another owner, or another program of the node.
 * * %-EOPNOTSUPP - by the module: a DC target.
 * * %-ESTALE - a newer generation of this owner has published it.
 * * %-EPERM - the GID is not ours or not known to be, or the service is below 256.
 * * %-EDQUOT, %-ENOSPC, %-EBUSY, %-ENOMEM - limits of the server.
 * * %-EINTR - by the module: a signal came while the call waited.
 * * %-ENOMEM - also: no memory here.
 * If some servers acknowledge the record and others refuse it, the context keeps it, and
 * tries those again with each renewal. After an error other than -EHOSTUNREACH the previous
 * value of the key, if there was one, stays published.
 */
int krcore_publish(struct krcore_ctx *ctx, const struct krcore_key *key,
		   const struct krcore_value *value);

/**
 * krcore_withdraw() - Remove a record of ours from all tables.
 * @ctx: context.
 * @key: name.
 *
 * After it has returned 0, no look-up that starts on an attached server finds the record. By
 * the module, the servers have then been told, but may not have answered yet.
 *
 * Return:
 * * 0 - gone from every attached server.
 * * %-ENOENT - this context does not publish it, and no server had it.
 * * %-EEXIST - it belongs to another owner.
 * * %-ESTALE - a newer generation of this owner has published it.
 * * %-EPERM - the GID is not ours.
 * * %-EHOSTUNREACH - no server is attached, or one did not answer: the record will not be
 *   published again. If this context has published it, a server that is attached again before
 *   the lease is over is told; else it keeps the record until then.
 * * %-EINTR - by the module: a signal came while the call waited.
 * * %-ENOMEM - no memory.
 */
int krcore_withdraw(struct krcore_ctx *ctx, const struct krcore_key *key);

/* krcore_event.type */
#define KRCORE_EVENT_CHANGED 1 /* a record is new or has another value */
#define KRCORE_EVENT_GONE 2 /* a record was withdrawn or has expired */
#define KRCORE_EVENT_RESYNC 3 /* events may have been missed: drop what was cached */

/**
 * struct krcore_event - One event of a subscription.
 * @type: KRCORE_EVENT_*.
 * @server: index of the server it comes from.
 * @key: which record; zero with KRCORE_EVENT_RESYNC.
 * @generation: generation of the record, or its last one if it is gone.
 */
struct krcore_event {
	uint32_t type;
	uint32_t server;
	struct krcore_key key;
	uint64_t generation;
};

/**
 * typedef krcore_event_fn - Called for each event, from the context's thread.
 * @arg: as given to krcore_subscribe().
 * @event: the event; valid during the call.
 *
 * It must not block for long and may only call krcore_stats() and
 * krcore_servers().
 */
typedef void krcore_event_fn(void *arg, const struct krcore_event *event);

/**
 * krcore_subscribe() - Be notified by every server of changed records.
 * @ctx: context.
 * @fn: function; NULL ends the subscription.
 * @arg: its first argument.
 *
 * A server that is attached later, or again, is subscribed to as well; the
 * first event from it is KRCORE_EVENT_RESYNC. So is the last one from a server that is lost
 * while another is attached: it may have hung, with values that others had notified as changed.
 *
 * Return:
 * * 0 - a server has taken the subscription, or @fn is NULL and will not be called
 *   any more.
 * * %-EHOSTUNREACH - no server is attached; it will be subscribed to later.
 * * %-ENOMEM - no memory.
 */
int krcore_subscribe(struct krcore_ctx *ctx, krcore_event_fn *fn, void *arg);

/**
 * krcore_servers() - The MetaServers of a context.
 * @ctx: context.
 * @servers: array to fill, or NULL.
 * @nr: its length.
 *
 * Return: how many there are, which may be more than @nr; 0 if the context uses the module;
 * -EINVAL if @nr is not 0 and the size of @servers[0] is not valid.
 */
int krcore_servers(struct krcore_ctx *ctx, struct krcore_server_info *servers, unsigned int nr);

/**
 * krcore_stats() - Counters of a context.
 * @ctx: context.
 * @ret_stats: filled; untouched on failure.
 *
 * Return: 0, or -EINVAL if the size of @ret_stats is not valid.
 */
int krcore_stats(struct krcore_ctx *ctx, struct krcore_stats *ret_stats);

/**
 * struct krcore_check - Outcome of a walk through a whole table.
 * @size: sizeof(struct krcore_check), set by the caller.
 * @pages: pages that the directory names.
 * @buckets: buckets read.
 * @records: records found.
 * @torn: READs repeated because a bucket was being written.
 * @moved: pages that were split or rebuilt during the walk and read again.
 * @bad: buckets that kept failing their checks, or held a key that does not belong there.
 * @directory_errors: directory entries that contradict their page.
 * @depth: log2 of the entries of the directory.
 * @crowded: pages with too many keys of similar hashes, so that the server keeps some of
 *	their records outside the table. No READ reaches those: they are not in @records, and
 *	krcore_walk() does not show them. krcore_lookup() finds them.
 * @bytes: bytes READ.
 */
struct krcore_check {
	size_t size;
	uint64_t pages;
	uint64_t buckets;
	uint64_t records;
	uint64_t torn;
	uint64_t moved;
	uint64_t bad;
	uint64_t directory_errors;
	uint32_t depth;
	uint32_t crowded;
	uint64_t bytes;
};

/**
 * typedef krcore_record_fn - Called for a record of a walk.
 * @arg: as given to krcore_walk().
 * @key: name.
 * @value: value.
 *
 * Return: true to go on, false to end the walk.
 */
typedef bool krcore_record_fn(void *arg, const struct krcore_key *key,
			      const struct krcore_value *value);

/**
 * krcore_walk() - Read a server's whole table with bulk READs, and verify it.
 * @ctx: context.
 * @server: index as in krcore_servers().
 * @fn: called for each record, or NULL; a record that moves during the walk may
 *	be shown twice, one that stays is shown once.
 * @arg: its first argument.
 * @ret_check: outcome, or NULL.
 *
 * Return:
 * * 0 - the walk is complete; @ret_check tells whether the table is sound.
 * * %-ECANCELED - @fn ended it.
 * * %-ENOTCONN - that server is not attached, or its connection broke during the walk.
 * * %-EINVAL - there is no such server, or the size of @ret_check is not valid.
 * * %-EOPNOTSUPP - the context uses the module.
 * * %-ENOMEM - no memory.
 */
int krcore_walk(struct krcore_ctx *ctx, unsigned int server, krcore_record_fn *fn, void *arg,
		struct krcore_check *ret_check);

/**
 * typedef krcore_bytes_fn - Called with the next bytes of a dump.
 * @arg: as given to krcore_dump().
 * @bytes: the bytes; valid during the call.
 * @nr: how many, at least 1.
 *
 * Return: true to go on, false to end the dump.
 */
typedef bool krcore_bytes_fn(void *arg, const void *bytes, size_t nr);

/**
 * krcore_dump() - Read the bytes of a server's whole table, without verifying them.
 * @ctx: context.
 * @server: index as in krcore_servers().
 * @fn: called with the bytes of a file of the format in proto/krp_dump.h, in order.
 * @arg: its first argument.
 *
 * Return:
 * * 0 - the file is complete.
 * * %-ECANCELED - @fn ended it.
 * * %-ENOTCONN - that server is not attached, or its connection broke during the dump.
 * * %-EINVAL - there is no such server.
 * * %-EOPNOTSUPP - the context uses the module.
 * * %-ENOMEM - no memory.
 */
int krcore_dump(struct krcore_ctx *ctx, unsigned int server, krcore_bytes_fn *fn, void *arg);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* KRCORE_KRCORE_H */
