/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Declarations shared by the files of the serving half: server.c (life cycle and
 * timers), device.c (memory and queues of one RDMA device), receive.c (its receive
 * buffers), conn.c (one connection), source.c (how many an address has),
 * listener.c (rdma_cm), report.c (the reports of server.h), import.c.
 *
 * Ownership: the server owns devices, listeners and connections; a device
 * outlives its connections. One thread, that of the loop.
 */
#ifndef MS_SERVER_PRIV_H
#define MS_SERVER_PRIV_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <ev.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "common/conf.h"
#include "metaserver/ledger.h"
#include "metaserver/server.h"
#include "metaserver/session.h"
#include "metaserver/table.h"

#define MS_LISTENERS_MAX 32
#define MS_HANDSHAKE_SENDS 2U /* CHALLENGE and WELCOME, or a refusal */
#define MS_PROBE_CHECKS 3 /* between tries to open a device that could not be used */
#define MS_SENDS_MAX 16384U /* messages in flight on one device */
#define MS_CONN_HASH 4096U
#define MS_SOURCE_HASH 4096U
#define MS_PENDING_MAX 1024U /* connections that are not authenticated */
#define MS_PENDING_MS 1000 /* age at which one may be closed to admit another */
#define MS_STRANGERS_MAX (2 * MS_PENDING_MAX) /* with those that are ending */
#define MS_LEAVING_MAX 1024U /* queue pairs of clients that are ending, beyond clients_max */
#define MS_SOURCE_STRANGERS_MAX 128U /* of those, from one address, once half are taken */
#define MS_FLUSH_MS 1000 /* for answers to arrive before a disconnect */
#define MS_DISCONNECT_MS 2000 /* for the other side to confirm it */
#define MS_DRAIN_MS 2000 /* for the completions of a queue pair in error */
#define MS_SHUTDOWN_MS 2000 /* for ms_server_drain() */
#define MS_TELL_MS 20 /* how long changes are collected before they are sent */
#define MS_TELL_BUDGET 512U /* notifications an iteration of the loop */
#define MS_SWEEP_BUDGET 2000U /* steps of the lease sweep an iteration of the loop */
#define MS_CHECK_MS 200 /* granularity of time-outs of connections */
#define MS_CHECKS_SECOND (1000 / MS_CHECK_MS)
#define MS_CHECK_BUDGET 1024U /* connections checked in an iteration of the loop */
#define MS_END_BUDGET 32U /* steps of ends an iteration, each by a command to the NIC or two */
#define MS_BUSY_STEPS 256U /* steps of work that cannot be interrupted between two signs of life */
#define MS_ASIDES_MAX 65536U /* records kept aside; only an attack can need more */
#define MS_LOG_CLIENTS 20 /* lines a second that clients can cause */

/**
 * struct ms_region - Memory registered with one device.
 * @addr: where.
 * @mr: its registration.
 */
struct ms_region {
	void *addr;
	struct ibv_mr *mr;
};

/**
 * struct ms_buffer - One message to be sent.
 * @bytes: the message; registered.
 * @conn: its connection, NULL if that is gone.
 * @stamp: counts the uses, so that a late completion is recognised.
 * @next: next unused one.
 * @notify: it is a notification.
 */
struct ms_buffer {
	uint8_t *bytes;
	struct ms_conn *conn;
	uint32_t stamp;
	uint32_t next;
	bool notify;
};

/**
 * struct ms_recv_mark - A point in the stream of completions of receives.
 * @polled: completions taken before it.
 * @empties: how often the queue had been seen empty before it.
 */
struct ms_recv_mark {
	uint64_t polled;
	uint64_t empties;
};

/**
 * struct ms_recv_watch - Watches for receives that the NIC has lost.
 * @armed: the NIC will raise an event when fewer than half are left.
 * @low: it has raised the event, at @since or later.
 * @since: completions from here on account for the receives that were used up.
 * @base: one second ago or less.
 * @before: one second before @base.
 */
struct ms_recv_watch {
	bool armed;
	bool low;
	struct ms_recv_mark since;
	struct ms_recv_mark base;
	struct ms_recv_mark before;
};

/**
 * struct ms_device_recv - Where all connections of a device receive.
 * @srq: shared receive queue.
 * @cq: completions; holds as many as there are buffers.
 * @bytes: buffers, KRP_MSG_BYTES_MAX each.
 * @mr: their registration.
 * @nr: how many.
 * @posted: by index: it is posted, or its completion has not been seen.
 * @posted_nr: how many are.
 * @polled: completions ever taken.
 * @empties: how often @cq was seen empty.
 * @watch: whether the NIC has as many receives as we think.
 */
struct ms_device_recv {
	struct ibv_srq *srq;
	struct ibv_cq *cq;
	uint8_t *bytes;
	struct ibv_mr *mr;
	uint32_t nr;
	bool *posted;
	uint32_t posted_nr;
	uint64_t polled;
	uint64_t empties;
	struct ms_recv_watch watch;
};

/**
 * struct ms_device_send - What all connections of a device send from.
 * @cq: completions; holds as many as there are buffers.
 * @bytes: buffers, KRP_MSG_BYTES_MAX each.
 * @mr: their registration.
 * @buffers: by index.
 * @nr: how many.
 * @used: in flight now.
 * @notifies: of those, notifications.
 * @free: first unused one.
 */
struct ms_device_send {
	struct ibv_cq *cq;
	uint8_t *bytes;
	struct ibv_mr *mr;
	struct ms_buffer *buffers;
	uint32_t nr;
	uint32_t used;
	uint32_t notifies;
	uint32_t free;
};

/**
 * struct ms_device_memory - The table's memory as readers see it by a device.
 * @root: root and, behind it, the array of segments.
 * @root_mr: their registration.
 * @segments: registrations of the segments, by number.
 * @dirs: registrations of directories, old ones too.
 * @dirs_nr: how many.
 * @bytes: over all registrations.
 */
struct ms_device_memory {
	struct krp_root *root;
	struct ibv_mr *root_mr;
	struct ibv_mr **segments;
	struct ms_region dirs[KRP_DEPTH_MAX + 2];
	uint32_t dirs_nr;
	uint64_t bytes;
};

/**
 * struct ms_device - One RDMA device in use.
 * @srv: server.
 * @next: list of the server.
 * @verbs: librdmacm's context of the device; names the device for us.
 * @name: its name.
 * @pd: protection domain.
 * @channel: wakes the loop.
 * @recv: receives.
 * @send: sends.
 * @memory: registrations.
 * @broken: it cannot register memory; to be given up.
 * @rd_atomic: READs one queue pair can answer at once.
 * @conns_nr: connections.
 * @conns: connections by queue pair number.
 * @cq_io: watcher of @channel.
 * @async_io: watcher of the device's events.
 * @more: continues with the remaining completions in the next iteration of the loop.
 */
struct ms_device {
	struct ms_server *srv;
	struct ms_device *next;
	struct ibv_context *verbs;
	char name[MS_DEVICE_NAME_BYTES];
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ms_device_recv recv;
	struct ms_device_send send;
	struct ms_device_memory memory;
	bool broken;
	uint8_t rd_atomic;
	uint32_t conns_nr;
	struct ms_conn *conns[MS_CONN_HASH];
	ev_io cq_io;
	ev_io async_io;
	ev_idle more;
};

/**
 * enum ms_phase - State of the transport of a session.
 * @MS_PHASE_UP: messages are sent and received.
 * @MS_PHASE_FLUSH: the last answers are being sent, then we disconnect.
 * @MS_PHASE_LEAVE: the queue pair is in error, the disconnect is being exchanged.
 * @MS_PHASE_DRAIN: the completions of the queue pair are awaited.
 */
enum ms_phase {
	MS_PHASE_UP,
	MS_PHASE_FLUSH,
	MS_PHASE_LEAVE,
	MS_PHASE_DRAIN,
};

/**
 * struct ms_conn - One connection.
 * @session: the protocol on it.
 * @srv: server.
 * @dev: device.
 * @id: rdma_cm's.
 * @qp: queue pair, NULL once destroyed.
 * @qpn: its number.
 * @pkey_index: where its P_Key is in the table of the port.
 * @pkey: that P_Key when it was made.
 * @phase: see enum.
 * @established: rdma_cm reported RDMA_CM_EVENT_ESTABLISHED.
 * @was_ready: it was authenticated once; else it is a stranger.
 * @in_error: the queue pair was put into error.
 * @last_wqe: the device has reported that it takes no more receives for it.
 * @marked: @mark is set.
 * @proven: it has sent something: @source is where its queue pair leads to.
 * @entered: it counts as a client of @source, no longer as a stranger.
 * @mark: completions of its receives all lie before this point.
 * @strays: messages that were received after MS_PHASE_UP.
 * @sends_out: sends in flight.
 * @notifies_out: of those, notifications.
 * @deadline_ms: when the phase is over at the latest; not in MS_PHASE_UP.
 * @source: the machine it comes from; NULL for a client that is being disconnected.
 * @number: id of the session.
 * @address: where it comes from.
 * @why: why it ended.
 * @next: list of the server, oldest first.
 * @prev: list of the server.
 * @chain: hash of the device.
 * @stranger: list of the server while @was_ready is false, oldest first.
 */
struct ms_conn {
	struct ms_session session;
	struct ms_server *srv;
	struct ms_device *dev;
	struct rdma_cm_id *id;
	struct ibv_qp *qp;
	uint32_t qpn;
	uint16_t pkey_index;
	uint16_t pkey;
	enum ms_phase phase;
	bool established;
	bool was_ready;
	bool in_error;
	bool last_wqe;
	bool marked;
	bool proven;
	bool entered;
	struct ms_recv_mark mark;
	uint32_t strays;
	uint32_t sends_out;
	uint32_t notifies_out;
	uint64_t deadline_ms;
	struct ms_source *source;
	uint64_t number;
	char address[MS_ADDRESS_BYTES];
	const char *why;
	struct ms_conn *next;
	struct ms_conn *prev;
	struct ms_conn *chain;
	TAILQ_ENTRY(ms_conn) stranger;
};

/**
 * struct ms_source - What comes from one address.
 * @next: chain of the hash.
 * @address: IPv6 address, or IPv4 as one; a GID that is none.
 * @strangers: connections from it that have not authenticated.
 * @clients: connections of clients that are attached.
 */
struct ms_source {
	struct ms_source *next;
	struct in6_addr address;
	uint32_t strangers;
	uint32_t clients;
};

/**
 * struct ms_listen_item - One entry of `listen`.
 * @any: "*".
 * @device: "dev:NAME", else "".
 * @addr: an address, if neither.
 */
struct ms_listen_item {
	bool any;
	char device[MS_DEVICE_NAME_BYTES];
	struct sockaddr_storage addr;
};

/**
 * struct ms_listener - One rdma_cm listener.
 * @srv: server.
 * @addr: where; a wildcard if any place asks for more than an address.
 * @text: the same as text, for diagnostics.
 * @id: rdma_cm's, NULL while it waits.
 * @error: negative errno of the last attempt.
 * @backoff_ms: pause after the next failure.
 * @retry: timer of the next attempt.
 */
struct ms_listener {
	struct ms_server *srv;
	struct sockaddr_storage addr;
	char text[MS_ADDRESS_BYTES];
	struct rdma_cm_id *id;
	int error;
	uint32_t backoff_ms;
	ev_timer retry;
};

struct ms_import;
struct ms_watch;

TAILQ_HEAD(ms_conn_queue, ms_conn);

/**
 * struct ms_listening - Where the server takes connections; listener.c and watch.c.
 * @channel: rdma_cm's, NULL while there is no RDMA device.
 * @cm_io: watcher of @channel.
 * @cm_retry: timer of the next attempt to make @channel.
 * @cm_error: negative errno of the last attempt.
 * @places: `listen`.
 * @places_nr: how many.
 * @filtered: @places does not allow every device and address.
 * @listeners: listeners.
 * @nr: how many.
 * @watches: contexts of librdmacm that are noted.
 */
struct ms_listening {
	struct rdma_event_channel *channel;
	ev_io cm_io;
	ev_timer cm_retry;
	int cm_error;
	struct ms_listen_item places[MS_LISTENERS_MAX];
	unsigned int places_nr;
	bool filtered;
	struct ms_listener listeners[MS_LISTENERS_MAX];
	unsigned int nr;
	struct ms_watch *watches;
};

/**
 * struct ms_conns - The connections; conn.c, and source.c by address.
 * @first: the oldest.
 * @last: the youngest.
 * @nr: how many.
 * @youngest: number of the youngest.
 * @strangers: of those, never authenticated, oldest first.
 * @strangers_nr: how many.
 * @sources: where connections come from, by address.
 * @salt: secret seed of that hash, so that no client can make its chains long.
 */
struct ms_conns {
	struct ms_conn *first;
	struct ms_conn *last;
	uint64_t nr;
	uint64_t youngest;
	struct ms_conn_queue strangers;
	uint32_t strangers_nr;
	struct ms_source *sources[MS_SOURCE_HASH];
	uint64_t salt;
};

/**
 * struct ms_clock - The leases' clock: monotonic, and stopped while the loop is.
 * @ms: what it shows.
 * @real_ms: monotonic time when that was right.
 */
struct ms_clock {
	uint64_t ms;
	uint64_t real_ms;
};

/**
 * struct ms_chores - What comes again and again, some of it in steps, so that the loop never waits
 * for the whole of it.
 * @tick: timer of the lease sweep.
 * @sweep_more: continues a sweep in the next iteration of the loop.
 * @tell: timer of the notifications to subscribers; runs while there are any.
 * @tell_more: continues a round of notifications in the next iteration of the loop.
 * @check: timer of time-outs, and now and then of the count of devices.
 * @check_more: continues a check in the next iteration of the loop.
 * @check_next: connection with which it continues, NULL if it is over.
 * @checks: how often @check has fired.
 */
struct ms_chores {
	ev_timer tick;
	ev_idle sweep_more;
	ev_timer tell;
	ev_idle tell_more;
	ev_timer check;
	ev_idle check_more;
	struct ms_conn *check_next;
	unsigned int checks;
};

/**
 * struct ms_serving - Whether clients are served.
 * @started: ms_server_start() was called.
 * @now: as last passed to @cb.
 * @before: it has been so at least once.
 * @cb: called when @now changes.
 * @arg: its argument.
 */
struct ms_serving {
	bool started;
	bool now;
	bool before;
	void (*cb)(void *arg, bool serving);
	void *arg;
};

/**
 * struct ms_drain - Clients are to go.
 * @ends: ms_server_drain() was called: for ever.
 * @keeps_off: ms_server_keep_off() keeps clients off.
 * @deadline_ms: when the first is over at the latest.
 * @cb: called when it is over.
 * @arg: its argument.
 */
struct ms_drain {
	bool ends;
	bool keeps_off;
	uint64_t deadline_ms;
	void (*cb)(void *arg);
	void *arg;
};

/**
 * struct ms_busy - Work that cannot be interrupted, see ms_server_on_busy().
 * @cb: called during it.
 * @arg: its argument.
 * @steps: steps of such work so far.
 */
struct ms_busy {
	void (*cb)(void *arg);
	void *arg;
	unsigned int steps;
};

/**
 * struct ms_watcher - Sees records and sessions come and go.
 * @ops: callbacks, or NULL.
 * @arg: their argument.
 */
struct ms_watcher {
	const struct ms_observer *ops;
	void *arg;
};

/**
 * struct ms_copy - The table of a peer that a server begins with; import.c.
 * @import: copy in progress, or NULL.
 * @failed: why nothing was copied, for diagnostics, else "".
 * @conf: the whole configuration, as the daemon began with it.
 * @done: the whole table of a settled peer was copied, and serving has not begun since.
 */
struct ms_copy {
	struct ms_import *import;
	char failed[256];
	struct kru_conf conf;
	bool done;
};

/**
 * struct ms_log_room - What clients may have logged; ms_log_client().
 * @room: lines about clients that may be logged before the next second.
 * @lost: lines dropped because @room was 0.
 */
struct ms_log_room {
	unsigned int room;
	unsigned int lost;
};

/**
 * struct ms_server - Everything. One thread has it, that of the loop.
 * @loop: the daemon's loop.
 * @conf: configuration in force; a part of @copy.conf.
 * @hub: what the sessions share, table and ledger among it.
 * @listening: where connections are taken.
 * @devices: devices in use.
 * @ports_nr: RDMA devices of the machine that may serve.
 * @probes: checks that found no device to use; every MS_PROBE_CHECKS-th tries again.
 * @conns: connections.
 * @clock: the leases' clock.
 * @chores: what comes again and again.
 * @serving: whether clients are served.
 * @drain: clients are to go.
 * @busy: work that cannot be interrupted.
 * @observer: sees records and sessions.
 * @copy: table of a peer.
 * @log: what clients may have logged.
 * @epoch: counts the changes of the roots.
 * @reconnect_max_ms: longest pause before a node tries again to attach, as this host's own
 *	[node] says.
 * @started_unix_ms: for statistics.
 * @stats: counters that are not the hub's, the ledger's or the table's.
 */
struct ms_server {
	struct ev_loop *loop;
	struct kru_conf_ms conf;
	struct ms_hub hub;
	struct ms_listening listening;
	struct ms_device *devices;
	unsigned int ports_nr;
	unsigned int probes;
	struct ms_conns conns;
	struct ms_clock clock;
	struct ms_chores chores;
	struct ms_serving serving;
	struct ms_drain drain;
	struct ms_busy busy;
	struct ms_watcher observer;
	struct ms_copy copy;
	struct ms_log_room log;
	uint32_t epoch;
	uint32_t reconnect_max_ms;
	uint64_t started_unix_ms;
	struct ms_server_stats stats;
};

/* server.c */

/** ms_now() - The leases' clock in ms. @srv: server. Return: ms; never goes back. */
uint64_t ms_now(struct ms_server *srv);

/** ms_mono_ns() - CLOCK_MONOTONIC. Return: ns. */
uint64_t ms_mono_ns(void);

/**
 * ms_log_client() - Log a line that a client can cause, but not too many of them.
 * @srv: server.
 * @priority: LOG_*.
 * @fmt: printf format.
 */
void ms_log_client(struct ms_server *srv, int priority, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/**
 * ms_server_check_soon() - Have a connection checked before its turn.
 * @srv: server.
 * @conn: connection of the server.
 *
 * In the next iteration of the loop, or, if many have to be checked, soon after it.
 */
void ms_server_check_soon(struct ms_server *srv, struct ms_conn *conn);

/** ms_server_busy() - One step of work that the loop has to wait for is done. @srv: server. */
void ms_server_busy(struct ms_server *srv);

/** ms_server_evaluate() - Check whether serving has begun or ended. @srv: server. */
void ms_server_evaluate(struct ms_server *srv);

/* device.c */

/** ms_device_table_ops - The table's memory, made reachable on every device. */
extern const struct ms_table_ops ms_device_table_ops;

/**
 * ms_device_get() - The device of a connection; opened if it is new.
 * @srv: server.
 * @id: the connection.
 * @ret_dev: the device; untouched on failure.
 *
 * Return: 0, -ENODEV if the device is going away, or what verbs said.
 */
int ms_device_get(struct ms_server *srv, struct rdma_cm_id *id, struct ms_device **ret_dev);

/**
 * ms_device_remove() - The device is gone: end its connections, free it.
 * @dev: device.
 * @why: for diagnostics; NULL if the server itself ends.
 */
void ms_device_remove(struct ms_device *dev, const char *why);

/** ms_device_root_ref() - Where its root is. @dev: device. @ret_ref: filled. */
void ms_device_root_ref(const struct ms_device *dev, struct krp_root_ref *ret_ref);

/** ms_device_beat() - Write the roots with the current time, see krp_pulse.h. @srv: server. */
void ms_device_beat(struct ms_server *srv);

/**
 * ms_device_post() - Send a message on a connection of the device.
 * @conn: connection.
 * @msg: bytes; copied.
 * @bytes: how many.
 * @notify: it is a notification.
 *
 * Return: 0, -ENOBUFS if there is no buffer, or what verbs said.
 */
int ms_device_post(struct ms_conn *conn, const void *msg, unsigned int bytes, bool notify);

/** ms_device_forget() - Detach the sends of a connection that is ending. @conn: connection. */
void ms_device_forget(struct ms_conn *conn);

/** ms_device_poll() - Handle completions; all of them or a bounded number. @dev: device. */
void ms_device_poll(struct ms_device *dev);

/* receive.c */

/**
 * ms_recv_open() - Make the shared receive queue and post all buffers.
 * @dev: device with protection domain and completion queue.
 *
 * Return: 0, or a negative errno; ms_recv_close() frees what was made.
 */
int ms_recv_open(struct ms_device *dev);

/** ms_recv_close() - Destroy queue and buffers; no queue pair is left. @dev: device. */
void ms_recv_close(struct ms_device *dev);

/**
 * ms_recv_poll() - Take completions of receives, and post their buffers again.
 * @dev: device.
 * @room: how many at most.
 *
 * Return: how many were taken.
 */
unsigned int ms_recv_poll(struct ms_device *dev, uint32_t room);

/** ms_recv_mark() - Where the completions are now. @dev: device. Return: the point. */
struct ms_recv_mark ms_recv_mark(const struct ms_device *dev);

/**
 * ms_recv_passed() - Were all completions handled that were there at a point?
 * @dev: device.
 * @mark: the point.
 *
 * Return: true if the queue was seen empty since, or gave as many as it holds.
 */
bool ms_recv_passed(const struct ms_device *dev, const struct ms_recv_mark *mark);

/** ms_recv_low() - The NIC reports that fewer than half of the receives are left. @dev: device. */
void ms_recv_low(struct ms_device *dev);

/**
 * ms_recv_check() - Once a second: post receives that could not be posted, detect lost ones.
 * @dev: device.
 *
 * Return: false if the NIC has lost more than half of the receives: reopen the device.
 */
bool ms_recv_check(struct ms_device *dev);

/* conn.c */

/**
 * ms_conn_judge() - Whether a connection request may be accepted; nothing is allocated for it.
 * @srv: server.
 * @id: the new connection's id.
 *
 * May close a connection that is slow to authenticate; not for a request that is refused.
 *
 * Return: 0 to go on, or KRP_REJECT_*.
 */
unsigned int ms_conn_judge(struct ms_server *srv, struct rdma_cm_id *id);

/**
 * ms_conn_accept() - Take or refuse a connection request.
 * @srv: server.
 * @id: the new connection's id; destroyed in any case when the connection ends.
 * @param: what the other side asked for.
 */
void ms_conn_accept(struct ms_server *srv, struct rdma_cm_id *id,
		    const struct rdma_conn_param *param);

/** ms_conn_event() - An event of rdma_cm. @conn: connection. @event: RDMA_CM_EVENT_*. */
void ms_conn_event(struct ms_conn *conn, enum rdma_cm_event_type event);

/** ms_conn_received() - A message has come. @conn: connection. @msg: bytes. @bytes: how many. */
void ms_conn_received(struct ms_conn *conn, const void *msg, unsigned int bytes);

/**
 * ms_conn_sent() - A send is complete.
 * @conn: connection.
 * @notify: it was a notification.
 * @ok: it succeeded.
 */
void ms_conn_sent(struct ms_conn *conn, bool notify, bool ok);

/** ms_conn_broken() - The queue pair has failed. @conn: connection. @why: for diagnostics. */
void ms_conn_broken(struct ms_conn *conn, const char *why);

/**
 * ms_conn_pkeys_changed() - The table of P_Keys of a port has changed.
 * @dev: device.
 * @port: port.
 *
 * Queue pairs that are in another partition now reach nobody: they are disconnected, and the
 * clients attach again with the P_Key that rdma_cm takes then.
 */
void ms_conn_pkeys_changed(struct ms_device *dev, unsigned int port);

/** ms_conn_last_wqe() - No more receives are taken for it. @conn: connection. */
void ms_conn_last_wqe(struct ms_conn *conn);

/**
 * ms_conn_check() - Time-outs of session and transport.
 * @conn: connection.
 *
 * Return: true if that took a command to the NIC; @conn may be freed then.
 */
bool ms_conn_check(struct ms_conn *conn);

/** ms_conn_find() - A connection by queue pair. @dev: device. @qpn: number. Return: it or NULL. */
struct ms_conn *ms_conn_find(struct ms_device *dev, uint32_t qpn);

/** ms_conn_info() - Describe it. @conn: connection. @ret_info: filled. */
void ms_conn_info(const struct ms_conn *conn, struct ms_session_info *ret_info);

/** ms_conn_destroy_qp() - Destroy the queue pair and forget its sends. @conn: connection. */
void ms_conn_destroy_qp(struct ms_conn *conn);

/** ms_conn_leave() - Close from our side, politely. @conn: connection. @why: constant text. */
void ms_conn_leave(struct ms_conn *conn, const char *why);

/** ms_conn_free() - Free it; it has no queue pair any more. @conn: connection. */
void ms_conn_free(struct ms_conn *conn);

/* source.c */

/**
 * ms_source_add() - One more connection comes from an address.
 * @srv: server.
 * @conn: the connection, a stranger; gets its source.
 * @from: its address.
 *
 * The address is what the other side wrote into its request. So this bounds machines that
 * do not forge it, also faulty ones; MS_STRANGERS_MAX bounds all.
 *
 * Return: 0, -EUSERS if that address has too many, or -ENOMEM.
 */
int ms_source_add(struct ms_server *srv, struct ms_conn *conn, const struct sockaddr *from);

/**
 * ms_source_welcome() - Whether one more would be taken from where a request says it is from.
 * @srv: server.
 * @id: connection request.
 *
 * Return: false if its address or its GID has too many.
 */
bool ms_source_welcome(struct ms_server *srv, struct rdma_cm_id *id);

/**
 * ms_source_has_clients() - Whether clients are attached from where a request says it is from.
 * @srv: server.
 * @id: connection request.
 *
 * Return: true if any is, from its address or from its GID.
 */
bool ms_source_has_clients(struct ms_server *srv, struct rdma_cm_id *id);

/**
 * ms_source_prove() - A stranger has sent over its connection: count it where that leads to.
 * @conn: connection with a source, a stranger.
 * @gid: GID that its queue pair is connected to.
 *
 * Return: 0, -EUSERS if too many come from there, or -ENOMEM. It counts where it did then.
 */
int ms_source_prove(struct ms_conn *conn, const uint8_t *gid);

/**
 * ms_source_at_limit() - Whether clients_per_address_max are attached from where a stranger is.
 * @conn: connection that has sent: see ms_source_prove().
 *
 * Return: true if they are.
 */
bool ms_source_at_limit(const struct ms_conn *conn);

/**
 * ms_source_enter() - A connection has authenticated: count it as a client of its address.
 * @conn: connection with a source, a stranger until now.
 * @gid: GID that its queue pair is connected to; NULL if that is not known: then the address
 *	of its request counts.
 *
 * Return: 0, -EUSERS if clients_per_address_max are attached from there, or -ENOMEM. It is
 * still a stranger then.
 */
int ms_source_enter(struct ms_conn *conn, const uint8_t *gid);

/** ms_source_remove() - Remove a connection. @conn: connection; ignored without a source. */
void ms_source_remove(struct ms_conn *conn);

/* listener.c */

/** ms_places_parse() - Read `listen`. @srv: server, whose conf is set. Return: 0 or -EINVAL. */
int ms_places_parse(struct ms_server *srv);

/** ms_listeners_start() - Begin to listen, now or as soon as it works. @srv: server. */
void ms_listeners_start(struct ms_server *srv);

/** ms_listeners_stop() - Stop listening. @srv: server. */
void ms_listeners_stop(struct ms_server *srv);

/** ms_cm_close() - Stop listening and close the event channel. @srv: server. */
void ms_cm_close(struct ms_server *srv);

/**
 * ms_place_allows() - May a connection come in this way?
 * @srv: server.
 * @id: the connection's id.
 *
 * Return: true if `listen` names its device or its local address.
 */
bool ms_place_allows(const struct ms_server *srv, struct rdma_cm_id *id);

/**
 * ms_place_serves() - Does a connection end where `listen` says?
 * @srv: server.
 * @device: device that it is on, with Ethernet below.
 * @gid: GID of our end, as the queue pair has it.
 *
 * The local address that ms_place_allows() goes by is what the client has written into its
 * request. Where it really sends to is the GID, which on Ethernet is an address.
 *
 * Return: true if `listen` names the device or that address.
 */
bool ms_place_serves(const struct ms_server *srv, const char *device, const __u8 *gid);

/**
 * ms_place_wants() - May connections come in by this device?
 * @srv: server.
 * @device: its name.
 *
 * Return: true if `listen` names it, or has addresses, which may be its own.
 */
bool ms_place_wants(const struct ms_server *srv, const char *device);

/** ms_listeners_up() - How many listen. @srv: server. Return: number. */
unsigned int ms_listeners_up(const struct ms_server *srv);

/* watch.c */

/**
 * ms_watch_add() - Note the context of an id, to learn of its device's removal.
 * @srv: server.
 * @id: id that has a device.
 *
 * Return: 0, -ENOMEM, or -ENODEV if the device seems to be going already.
 */
int ms_watch_add(struct ms_server *srv, struct rdma_cm_id *id);

/**
 * ms_watch_gone() - A device is gone or unusable: free all that uses it.
 * @srv: server.
 * @verbs: librdmacm's context of it.
 * @why: for diagnostics.
 */
void ms_watch_gone(struct ms_server *srv, struct ibv_context *verbs, const char *why);

/**
 * ms_watch_event() - An event of rdma_cm may concern a noted context.
 * @srv: server.
 * @id: id of the event.
 * @event: what it is.
 *
 * Return: true if it did.
 */
bool ms_watch_event(struct ms_server *srv, struct rdma_cm_id *id, enum rdma_cm_event_type event);

/**
 * ms_watch_probe() - Open every device that clients may come in by.
 * @srv: server.
 *
 * So that a lack of memory shows at the start and not with the first client.
 */
void ms_watch_probe(struct ms_server *srv);

/** ms_watch_check() - Look whether noted devices are still there. @srv: server. */
void ms_watch_check(struct ms_server *srv);

/** ms_watch_close() - Free all notes of contexts. @srv: server. */
void ms_watch_close(struct ms_server *srv);

/* report.c */

/** ms_ports_count() - RDMA devices of the machine that may serve. @srv: server. Return: number. */
unsigned int ms_ports_count(const struct ms_server *srv);

/** ms_hist_add() - Count a duration. @h: distribution. @ns: duration. */
void ms_hist_add(struct ms_hist *h, uint64_t ns);

/* import.c */

/**
 * ms_import_start() - Copy the table of a peer, in a thread of its own.
 * @srv: server, whose conf names the peers.
 *
 * When it is over, one way or the other, ms_server_evaluate() is called and
 * @srv->copy.import is NULL.
 *
 * Return: 0, or a negative errno if nothing was started.
 */
int ms_import_start(struct ms_server *srv);

/** ms_import_cancel() - Abandon it; its thread ends on its own. @srv: server with an import. */
void ms_import_cancel(struct ms_server *srv);

#endif /* MS_SERVER_PRIV_H */
