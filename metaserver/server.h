/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The serving half of krcore-metaserver: RDMA devices, listeners, sessions,
 * leases and the table, behind the only entry points the rest of the daemon
 * uses.
 *
 * Threads: everything here runs in the thread of the libev loop it was given,
 * which is also the only writer of the table. No call blocks on the network,
 * except ms_server_new() and ms_server_free(), which talk to the local kernel.
 */
#ifndef MS_SERVER_H
#define MS_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "metaserver/table.h"
#include "proto/krp_msg.h"

struct ev_loop;
struct kru_conf;
struct ms_server;

#define MS_HIST_BUCKETS 16
#define MS_DEVICE_NAME_BYTES 64
#define MS_ADDRESS_BYTES 80
#define MS_DEVICE_GIDS_MAX 16

/**
 * struct ms_hist - Distribution of a duration.
 * @bucket: @bucket[i] counts durations of at most ms_hist_bound_ns(i) that fit
 *	no earlier bucket; the last bucket has no bound.
 * @count: durations counted.
 * @sum_ns: their sum.
 * @max_ns: the longest.
 */
struct ms_hist {
	uint64_t bucket[MS_HIST_BUCKETS];
	uint64_t count;
	uint64_t sum_ns;
	uint64_t max_ns;
};

/** ms_hist_bound_ns() - Upper bound of a bucket but the last. @i: index. Return: ns. */
static inline uint64_t ms_hist_bound_ns(unsigned int i)
{
	return 1000ULL << i;
}

/**
 * struct ms_server_stats - Counters since ms_server_new(), and what is now.
 * @table: the table's own.
 * @incarnation: incarnation of this server.
 * @started_unix_ms: when ms_server_new() returned, in ms since 1970.
 * @serving: at least one listener listens and the import, if any, is over.
 * @settling_ms: for how long publishers may still be coming back; 0: settled.
 * @draining: ms_server_drain() was called.
 * @drained: ms_server_keep_off() keeps clients off.
 * @sessions: sessions that are authenticated now.
 * @sessions_pending: connections that are not authenticated yet.
 * @sessions_total: sessions that were ever authenticated.
 * @connections_total: connections ever asked for.
 * @connections_rejected: of those, refused by the limit on clients or a lack
 *	of resources.
 * @sessions_replaced: closed because their client attached again, or was idle
 *	while another client needed the place.
 * @sessions_timed_out: closed because they were idle or slow to authenticate.
 * @auth_required: 1 if clients must prove that they have a cluster key.
 * @auth_failures: AUTH messages with a wrong proof.
 * @messages_in: received and well formed, by KRP_MSG_*; index 0: malformed.
 * @results: answers to PUBLISH, WITHDRAW and RENEW by KRP_ST_*.
 * @answers: all answers by KRP_ST_*.
 * @published: PUBLISH that succeeded.
 * @published_new: of those, that added a record.
 * @taken_over: of those, records of an older generation or imported.
 * @renewed: RENEW that succeeded.
 * @withdrawn: WITHDRAW that succeeded, with those of the operator.
 * @expired: records that were taken out because their lease ran out.
 * @notifies_sent: NOTIFY sent, RESYNC among them.
 * @notifies_dropped: changes not sent to a subscriber because it was too far behind.
 * @resyncs: NOTIFY of KRP_EVENT_RESYNC sent.
 * @changes_noted: changes of records while there were subscribers.
 * @changes_merged: of those, merged into a change of the same key that was not sent yet.
 * @sends_failed: SENDs that completed with an error.
 * @owners: owners that have a lease.
 * @subscribers: sessions that have subscribed.
 * @sweeps: runs of the lease sweep.
 * @sweep_last_ns: duration of the last run.
 * @sweep_max_ns: the longest.
 * @publish: time from the completion of a PUBLISH to its answer being posted.
 * @devices: RDMA devices in use.
 * @listeners: listeners that listen.
 * @registered_bytes: memory registered, over all devices; table memory counts
 *	once a device.
 * @receives_posted: receive buffers, over all devices, that a message can come
 *	into or has come into; less than srq_depth a device means receives were lost.
 * @strangers: connections that were never authenticated, with those that are
 *	ending.
 * @imported: records copied from a peer at start.
 * @copy_failed: 1 if they should have been, and it failed.
 * @device_removals: devices that went away.
 */
struct ms_server_stats {
	struct ms_table_stats table;
	uint64_t incarnation;
	uint64_t started_unix_ms;
	bool serving;
	uint32_t settling_ms;
	bool draining;
	bool drained;
	uint64_t sessions;
	uint64_t sessions_pending;
	uint64_t sessions_total;
	uint64_t connections_total;
	uint64_t connections_rejected;
	uint64_t sessions_replaced;
	uint64_t sessions_timed_out;
	uint64_t auth_required;
	uint64_t auth_failures;
	uint64_t messages_in[KRP_MSG_TYPES];
	uint64_t results[KRP_ST_CODES];
	uint64_t answers[KRP_ST_CODES];
	uint64_t published;
	uint64_t published_new;
	uint64_t taken_over;
	uint64_t renewed;
	uint64_t withdrawn;
	uint64_t expired;
	uint64_t notifies_sent;
	uint64_t notifies_dropped;
	uint64_t resyncs;
	uint64_t changes_noted;
	uint64_t changes_merged;
	uint64_t sends_failed;
	uint64_t owners;
	uint64_t subscribers;
	uint64_t sweeps;
	uint64_t sweep_last_ns;
	uint64_t sweep_max_ns;
	struct ms_hist publish;
	uint64_t devices;
	uint64_t listeners;
	uint64_t registered_bytes;
	uint64_t receives_posted;
	uint64_t strangers;
	uint64_t imported;
	uint64_t copy_failed;
	uint64_t device_removals;
};

/**
 * struct ms_session_info - One connection, for diagnostics.
 * @id: number of the session, never used twice.
 * @name: host name the client gave, always NUL-terminated; not trusted: may
 *	hold any bytes.
 * @device: RDMA device it came in by.
 * @address: address it comes from.
 * @gid: GID it comes from.
 * @owner: its identity, zero before HELLO.
 * @key_id: id of the cluster key it proves, zero before HELLO and without one.
 * @generation: its boot generation, 0 before HELLO.
 * @age_ms: time since it connected.
 * @idle_ms: time since its last message.
 * @records: records of its owner.
 * @messages: messages it sent.
 * @state: constant text: "connecting", "hello", "challenge", "ready", "closing".
 * @subscribed: it gets notifications.
 */
struct ms_session_info {
	uint64_t id;
	char name[KRP_NAME_BYTES];
	char device[MS_DEVICE_NAME_BYTES];
	char address[MS_ADDRESS_BYTES];
	uint8_t gid[KRP_GID_BYTES];
	uint8_t owner[KRP_OWNER_BYTES];
	uint8_t key_id[KRP_KEY_ID_BYTES];
	uint64_t generation;
	uint64_t age_ms;
	uint64_t idle_ms;
	uint64_t records;
	uint64_t messages;
	const char *state;
	bool subscribed;
};

/**
 * struct ms_device_info - One port of an RDMA device.
 * @name: name of the device.
 * @port: port, from 1.
 * @state: "ACTIVE", "DOWN", "INIT", "ARMED", ... as the kernel says it.
 * @link: "Ethernet", "InfiniBand" or "unspecified".
 * @in_use: the server has opened the device for its sessions.
 * @sessions: connections of the device.
 * @registered_bytes: memory registered with it.
 * @gids_nr: entries of @gids.
 * @gids: GIDs of the port that are set, the first MS_DEVICE_GIDS_MAX.
 */
struct ms_device_info {
	char name[MS_DEVICE_NAME_BYTES];
	unsigned int port;
	char state[16];
	char link[16];
	bool in_use;
	uint64_t sessions;
	uint64_t registered_bytes;
	unsigned int gids_nr;
	uint8_t gids[MS_DEVICE_GIDS_MAX][KRP_GID_BYTES];
};

/**
 * struct ms_listener_info - One configured place to listen at.
 * @address: as configured, with the port.
 * @device: device it is bound to, "" if any.
 * @state: constant text: "listening" or "waiting".
 * @error: negative errno of the last attempt if it is waiting, else 0.
 * @retry_ms: time until the next attempt if it is waiting, else 0.
 */
struct ms_listener_info {
	char address[MS_ADDRESS_BYTES];
	char device[MS_DEVICE_NAME_BYTES];
	const char *state;
	int error;
	uint64_t retry_ms;
};

/**
 * struct ms_record_info - One record, with its owner.
 * @key: name.
 * @value: value.
 * @owner: identity of the owner; zero if the record was imported and its owner
 *	has not come yet.
 * @generation: generation that published it.
 * @lease_left_ms: time until it expires unless it is renewed.
 * @imported: it was copied from a peer and its owner has not come yet.
 */
struct ms_record_info {
	struct krp_key key;
	struct krp_value value;
	uint8_t owner[KRP_OWNER_BYTES];
	uint64_t generation;
	uint64_t lease_left_ms;
	bool imported;
};

/**
 * enum ms_session_event - Change of a connection.
 * @MS_SESSION_UP: it is authenticated.
 * @MS_SESSION_DOWN: it has ended.
 * @MS_SESSION_REFUSED: it has ended and was never authenticated.
 */
enum ms_session_event {
	MS_SESSION_UP,
	MS_SESSION_DOWN,
	MS_SESSION_REFUSED,
};

/**
 * struct ms_observer - Callbacks for changes: the control socket's monitor.
 * @record: a record has changed: KRP_EVENT_CHANGED or KRP_EVENT_GONE. @why is a
 *	constant text: "published", "withdrawn", "expired", "operator", "imported",
 *	"superseded".
 * @session: a session began or ended; @why is human-readable.
 *
 * The functions must not change the server; they are called from within.
 */
struct ms_observer {
	void (*record)(void *arg, unsigned int event, const struct krp_key *key,
		       uint64_t generation, const char *why);
	void (*session)(void *arg, enum ms_session_event event, const struct ms_session_info *info,
			const char *why);
};

/**
 * ms_server_new() - Make a server: table and ledger, no RDMA yet.
 * @loop: the daemon's loop.
 * @conf: configuration; copied.
 * @ret_srv: the server; untouched on failure.
 *
 * Return:
 * * 0 - success.
 * * %-EINVAL - `listen` names what cannot be listened at, or the key file is not valid.
 * * %-ENOENT - `require_auth = yes` and no key file.
 * * %-EACCES, %-EPERM - the key file cannot be read, or is open to others.
 * * %-ENOMEM - no memory.
 * The cause has been logged.
 */
int ms_server_new(struct ev_loop *loop, const struct kru_conf *conf, struct ms_server **ret_srv);

/**
 * ms_server_start() - Import from a peer if configured, then listen.
 * @srv: server.
 *
 * A missing device, address or rdma_cm is no error: it is tried again with back-off.
 *
 * Return: 0, or the negative errno of starting the import: -ENOMEM or -EAGAIN.
 */
int ms_server_start(struct ms_server *srv);

/** ms_server_serving() - Whether clients can attach. @srv: server. Return: true if so. */
bool ms_server_serving(const struct ms_server *srv);

/**
 * ms_server_on_serving() - Set the callback for the begin and end of serving.
 * @srv: server.
 * @cb: called from the loop at each change; NULL for none.
 * @arg: first argument of @cb.
 */
void ms_server_on_serving(struct ms_server *srv, void (*cb)(void *arg, bool serving), void *arg);

/**
 * ms_server_on_busy() - Have a function called while the loop has to wait.
 * @srv: server.
 * @cb: called now and then, each time after some of the work was done; NULL for none.
 * @arg: its argument.
 *
 * A device that is lost, or the end of the server, takes a command to the NIC for each client
 * before anything else can be done. Also called by ms_server_free().
 */
void ms_server_on_busy(struct ms_server *srv, void (*cb)(void *arg), void *arg);

/**
 * ms_server_copying() - Whether the copy of a peer's table goes on.
 * @srv: server.
 *
 * It ends when nothing has come for copy_timeout_ms.
 *
 * Return: true if so.
 */
bool ms_server_copying(const struct ms_server *srv);

/**
 * ms_server_status_text() - One line about the state of the server, for STATUS=.
 * @srv: server.
 * @buf: where to.
 * @bytes: its size.
 */
void ms_server_status_text(const struct ms_server *srv, char *buf, size_t bytes);

/**
 * ms_server_apply() - Take over the keys of a configuration that can be reloaded.
 * @srv: server.
 * @conf: configuration; copied.
 *
 * Re-reads the key file. Sessions stay; leases granted stay as they are.
 *
 * Return: 0, or as ms_server_new() for the key file: then nothing has changed.
 */
int ms_server_apply(struct ms_server *srv, const struct kru_conf *conf);

/**
 * ms_server_drain() - Stop accepting, tell clients, wait until all have gone.
 * @srv: server.
 * @cb: called once from the loop when no connection is left, after 2 s at most.
 * @arg: first argument of @cb.
 */
void ms_server_drain(struct ms_server *srv, void (*cb)(void *arg), void *arg);

/**
 * ms_server_keep_off() - Send all clients to the other servers, or admit them again.
 * @srv: server.
 * @off: refuse clients, with the reason, and disconnect those that are here.
 *
 * Records stay for their leases. When clients are admitted again the server settles, as
 * after a restart.
 */
void ms_server_keep_off(struct ms_server *srv, bool off);

/** ms_server_free() - Free the server. @srv: server or NULL. */
void ms_server_free(struct ms_server *srv);

/** ms_server_observe() - Set the observer. @srv: server. @ops: NULL for none. @arg: its arg. */
void ms_server_observe(struct ms_server *srv, const struct ms_observer *ops, void *arg);

/** ms_server_stats() - Counters and sizes. @srv: server. @ret_stats: filled. */
void ms_server_stats(const struct ms_server *srv, struct ms_server_stats *ret_stats);

/**
 * ms_server_each_session() - Visit the connections, oldest first.
 * @srv: server.
 * @fn: function; returns false to stop.
 * @arg: its first argument.
 */
void ms_server_each_session(const struct ms_server *srv,
			    bool (*fn)(void *arg, const struct ms_session_info *info), void *arg);

/**
 * ms_server_each_device() - Visit the ports of the RDMA devices that are there.
 * @srv: server.
 * @fn: function; returns false to stop.
 * @arg: its first argument.
 */
void ms_server_each_device(const struct ms_server *srv,
			   bool (*fn)(void *arg, const struct ms_device_info *info), void *arg);

/**
 * ms_server_each_listener() - Visit the configured places to listen at.
 * @srv: server.
 * @fn: function; returns false to stop.
 * @arg: its first argument.
 */
void ms_server_each_listener(const struct ms_server *srv,
			     bool (*fn)(void *arg, const struct ms_listener_info *info), void *arg);

/**
 * ms_server_each_record() - Visit records, by owner.
 * @srv: server.
 * @from: 0 for all, or what an earlier call returned.
 * @fn: function; returns false to stop after this record.
 * @arg: its first argument.
 *
 * Between two calls records may change; one that is there all the time may then
 * be shown twice or left out, if others of its owner are taken out meanwhile.
 *
 * Return: where to go on, or 0 at the end.
 */
uint64_t ms_server_each_record(const struct ms_server *srv, uint64_t from,
			       bool (*fn)(void *arg, const struct ms_record_info *info), void *arg);

/**
 * ms_server_get_record() - One record.
 * @srv: server.
 * @key: name.
 * @ret_info: the record; untouched on failure.
 *
 * Return: 0, or -ENOENT.
 */
int ms_server_get_record(const struct ms_server *srv, const struct krp_key *key,
			 struct ms_record_info *ret_info);

/**
 * ms_server_withdraw() - Take a record out for an operator.
 * @srv: server.
 * @key: name.
 *
 * Subscribers are told. Its owner may publish it again.
 *
 * Return: 0, or -ENOENT.
 */
int ms_server_withdraw(struct ms_server *srv, const struct krp_key *key);

/**
 * ms_server_kill() - Disconnect clients for an operator.
 * @srv: server.
 * @match: function; whether this one is to go.
 * @arg: its first argument.
 *
 * They may attach again at once, if their key is still valid. Records stay for their lease.
 *
 * Return: how many.
 */
unsigned int ms_server_kill(struct ms_server *srv,
			    bool (*match)(void *arg, const struct ms_session_info *info),
			    void *arg);

#endif /* MS_SERVER_H */
