/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the files of the serving half share: server.c (life and timers),
 * device.c (memory and queues of one RDMA device), conn.c (one connection),
 * listener.c (rdma_cm), report.c (what server.h tells of it all), import.c.
 *
 * Ownership: the server owns devices, listeners and connections; a device
 * outlives its connections. One thread, that of the loop.
 */
#ifndef MS_SERVER_PRIV_H
#define MS_SERVER_PRIV_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include <ev.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "common/conf.h"
#include "metaserver/ledger.h"
#include "metaserver/server.h"
#include "metaserver/session.h"
#include "metaserver/table.h"

#define MS_LISTENERS_MAX 32
#define MS_NOTIFY_WINDOW 16U /* notifications under way to one client */
#define MS_HANDSHAKE_SENDS 2U /* CHALLENGE and WELCOME, or a refusal */
#define MS_PROBE_CHECKS 3 /* between tries to open a device that could not be used */
#define MS_SENDS_MAX 16384U /* messages under way on one device */
#define MS_CONN_HASH 4096U
#define MS_PENDING_MAX 1024U /* connections that are not authenticated */
#define MS_PENDING_MS 1000 /* and may be cut for another one after so long */
#define MS_FLUSH_MS 1000 /* for answers to arrive before a disconnect */
#define MS_DISCONNECT_MS 2000 /* for the other side to confirm it */
#define MS_DRAIN_MS 2000 /* for the completions of a queue pair in error */
#define MS_SHUTDOWN_MS 2000 /* for ms_server_drain() */
#define MS_SWEEP_BUDGET 2000U /* steps of the lease sweep a turn of the loop */
#define MS_CHECK_MS 200 /* granularity of time-outs of connections */
#define MS_CHECKS_SECOND (1000 / MS_CHECK_MS)
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
 * @conn: whose it is, NULL if the connection is gone.
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
 * struct ms_device - One RDMA device in use.
 * @srv: server.
 * @next: list of the server.
 * @verbs: librdmacm's context of the device; names the device for us.
 * @name: its name.
 * @pd: protection domain.
 * @srq: where all connections receive.
 * @channel: wakes the loop.
 * @recv_cq: completions of receives; holds as many as there are buffers.
 * @send_cq: completions of sends; holds as many as there are buffers.
 * @recv_bytes: receive buffers, KRP_MSG_BYTES_MAX each.
 * @recv_mr: their registration.
 * @recv_nr: how many.
 * @send_bytes: send buffers.
 * @send_mr: their registration.
 * @sends: send buffers, by index.
 * @sends_nr: how many.
 * @sends_used: under way now.
 * @notifies_used: of those, notifications.
 * @send_free: first unused one.
 * @root: root and, behind it, the array of segments, as readers see them.
 * @root_mr: their registration.
 * @segments: registrations of the segments, by number.
 * @segments_nr: how many.
 * @dirs: registrations of directories, old ones too.
 * @dirs_nr: how many.
 * @registered_bytes: over all registrations.
 * @rd_atomic: READs one queue pair can answer at once.
 * @conns_nr: connections.
 * @conns: connections by queue pair number.
 * @cq_io: watcher of @channel.
 * @async_io: watcher of the device's events.
 * @more: there are completions left that a turn of the loop was too short for.
 */
struct ms_device {
	struct ms_server *srv;
	struct ms_device *next;
	struct ibv_context *verbs;
	char name[MS_DEVICE_NAME_BYTES];
	struct ibv_pd *pd;
	struct ibv_srq *srq;
	struct ibv_comp_channel *channel;
	struct ibv_cq *recv_cq;
	struct ibv_cq *send_cq;
	uint8_t *recv_bytes;
	struct ibv_mr *recv_mr;
	uint32_t recv_nr;
	uint8_t *send_bytes;
	struct ibv_mr *send_mr;
	struct ms_buffer *sends;
	uint32_t sends_nr;
	uint32_t sends_used;
	uint32_t notifies_used;
	uint32_t send_free;
	struct krp_root *root;
	struct ibv_mr *root_mr;
	struct ibv_mr **segments;
	uint32_t segments_nr;
	struct ms_region dirs[KRP_DEPTH_MAX + 2];
	uint32_t dirs_nr;
	uint64_t registered_bytes;
	uint8_t rd_atomic;
	uint32_t conns_nr;
	struct ms_conn *conns[MS_CONN_HASH];
	ev_io cq_io;
	ev_io async_io;
	ev_idle more;
};

/**
 * enum ms_phase - Where the transport of a session is.
 * @MS_PHASE_UP: messages go and come.
 * @MS_PHASE_FLUSH: the last answers are on their way, then we disconnect.
 * @MS_PHASE_LEAVE: the disconnect is on its way.
 * @MS_PHASE_DRAIN: the queue pair is in error, its completions are awaited.
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
 * @phase: see enum.
 * @established: rdma_cm said so.
 * @was_ready: it was authenticated once.
 * @sends_out: messages under way.
 * @notifies_out: of those, notifications.
 * @deadline_ms: when the phase is over at the latest; not in MS_PHASE_UP.
 * @number: id of the session.
 * @address: where it comes from.
 * @why: why it ended.
 * @next: list of the server, oldest first.
 * @prev: list of the server.
 * @chain: hash of the device.
 */
struct ms_conn {
	struct ms_session session;
	struct ms_server *srv;
	struct ms_device *dev;
	struct rdma_cm_id *id;
	struct ibv_qp *qp;
	uint32_t qpn;
	enum ms_phase phase;
	bool established;
	bool was_ready;
	uint32_t sends_out;
	uint32_t notifies_out;
	uint64_t deadline_ms;
	uint64_t number;
	char address[MS_ADDRESS_BYTES];
	const char *why;
	struct ms_conn *next;
	struct ms_conn *prev;
	struct ms_conn *chain;
};

/**
 * struct ms_place - One entry of `listen`.
 * @any: "*".
 * @device: "dev:NAME", else "".
 * @addr: an address, if neither.
 */
struct ms_place {
	bool any;
	char device[MS_DEVICE_NAME_BYTES];
	struct sockaddr_storage addr;
};

/**
 * struct ms_listener - One rdma_cm listener.
 * @srv: server.
 * @addr: where; a wildcard if any place asks for more than an address.
 * @text: the same for people.
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

/**
 * struct ms_server - Everything.
 * @loop: the daemon's loop.
 * @conf: configuration in force.
 * @hub: what the sessions share, table and ledger among it.
 * @channel: rdma_cm's, NULL while there is no RDMA device.
 * @cm_io: watcher of @channel.
 * @cm_retry: timer of the next attempt to make @channel.
 * @cm_error: negative errno of the last attempt.
 * @places: `listen`.
 * @places_nr: how many.
 * @filtered: @places does not allow every device and address.
 * @listeners: listeners.
 * @listeners_nr: how many.
 * @watches: contexts of librdmacm that are noted.
 * @devices: devices in use.
 * @ports_nr: RDMA devices of the machine that may serve.
 * @probes: checks that found no device to use; every MS_PROBE_CHECKS-th tries again.
 * @conns: connections, oldest first.
 * @conns_last: end of the list.
 * @conns_nr: how many.
 * @conn_last: number of the youngest.
 * @log_room: lines about clients that may be logged before the next second.
 * @log_lost: lines left out for lack of it.
 * @epoch: counts the changes of the roots.
 * @clock_ms: the leases' clock: monotonic, and stopped while the loop is.
 * @clock_real_ms: monotonic time when @clock_ms was right.
 * @tick: timer of the lease sweep.
 * @sweep_more: carries a sweep on that one turn of the loop was too short for.
 * @check: timer of time-outs, and now and then of the count of devices.
 * @checks: its turns.
 * @started: ms_server_start() was called.
 * @serving: as last told.
 * @draining: ms_server_drain() was called.
 * @drain_deadline_ms: when that is over at the latest.
 * @serving_cb: whom to tell.
 * @serving_arg: its argument.
 * @drain_cb: whom to tell.
 * @drain_arg: its argument.
 * @observer: whom to tell.
 * @observer_arg: its argument.
 * @import: copy from a peer under way.
 * @copied: a whole table was copied, and serving has not begun since.
 * @started_unix_ms: for statistics.
 * @stats: counters that are not the hub's, the ledger's or the table's.
 */
struct ms_server {
	struct ev_loop *loop;
	struct kru_conf_ms conf;
	struct ms_hub hub;
	struct rdma_event_channel *channel;
	ev_io cm_io;
	ev_timer cm_retry;
	int cm_error;
	struct ms_place places[MS_LISTENERS_MAX];
	unsigned int places_nr;
	bool filtered;
	struct ms_listener listeners[MS_LISTENERS_MAX];
	unsigned int listeners_nr;
	struct ms_watch *watches;
	struct ms_device *devices;
	unsigned int ports_nr;
	unsigned int probes;
	struct ms_conn *conns;
	struct ms_conn *conns_last;
	uint64_t conns_nr;
	uint64_t conn_last;
	unsigned int log_room;
	unsigned int log_lost;
	uint32_t epoch;
	uint64_t clock_ms;
	uint64_t clock_real_ms;
	ev_timer tick;
	ev_idle sweep_more;
	ev_timer check;
	unsigned int checks;
	bool started;
	bool serving;
	bool draining;
	uint64_t drain_deadline_ms;
	void (*serving_cb)(void *arg, bool serving);
	void *serving_arg;
	void (*drain_cb)(void *arg);
	void *drain_arg;
	const struct ms_observer *observer;
	void *observer_arg;
	struct ms_import *import;
	bool copied;
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

/** ms_server_evaluate() - See whether serving has begun or ended. @srv: server. */
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
 * @why: for people; NULL if the server itself goes.
 */
void ms_device_remove(struct ms_device *dev, const char *why);

/** ms_device_root_ref() - Where its root is. @dev: device. @ret_ref: filled. */
void ms_device_root_ref(const struct ms_device *dev, struct krp_root_ref *ret_ref);

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

/** ms_device_forget() - Disown the sends of a connection that is going. @conn: connection. */
void ms_device_forget(struct ms_conn *conn);

/** ms_device_poll() - Handle completions; all of them or a bounded number. @dev: device. */
void ms_device_poll(struct ms_device *dev);

/* conn.c */

/**
 * ms_conn_accept() - Take or refuse a connection request.
 * @srv: server.
 * @id: the new connection's id; given back in any case when it ends.
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

/** ms_conn_broken() - The queue pair has failed. @conn: connection. @why: for people. */
void ms_conn_broken(struct ms_conn *conn, const char *why);

/** ms_conn_check() - Time-outs of session and transport; may free it. @conn: connection. */
void ms_conn_check(struct ms_conn *conn);

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
 * ms_watch_add() - Note the context of an id, to hear of its device's removal.
 * @srv: server.
 * @id: id that has a device.
 *
 * Return: 0, -ENOMEM, or -ENODEV if the device seems to be going already.
 */
int ms_watch_add(struct ms_server *srv, struct rdma_cm_id *id);

/**
 * ms_watch_gone() - A device is gone or of no use: give up all that is its.
 * @srv: server.
 * @verbs: librdmacm's context of it.
 * @why: for people.
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

/** ms_watch_close() - Forget all. @srv: server. */
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
 * @srv->import is NULL.
 *
 * Return: 0, or a negative errno if nothing was started.
 */
int ms_import_start(struct ms_server *srv);

/** ms_import_cancel() - Give it up; its thread ends on its own. @srv: server with an import. */
void ms_import_cancel(struct ms_server *srv);

#endif /* MS_SERVER_PRIV_H */
