// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The control socket: see control.h. Connections only; the listening socket is
 * in control_socket.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ev.h>

#include "common/ctl.h"
#include "common/gid.h"
#include "metaserver/commands.h"
#include "metaserver/control.h"
#include "metaserver/control_socket.h"
#include "metaserver/daemon.h"
#include "metaserver/json.h"
#include "metaserver/log.h"
#include "metaserver/server.h"

/* gcc 12 loses track of what peer->out holds as soon as libev is called */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif

#define MS_CONTROL_IDLE_S 60.
#define MS_CONTROL_STALL_S 10.
#define MS_CONTROL_MONITOR_BYTES (256 << 10) /* that a slow monitor may leave unread */
#define MS_CONTROL_ACCEPTS 16 /* in one iteration of the loop */

/**
 * struct ms_peer - A connection.
 * @control: its control socket.
 * @next: list of all.
 * @io: its descriptor.
 * @lines: received bytes.
 * @out: bytes to be sent.
 * @out_bytes: how much.
 * @out_sent: how much of it has gone.
 * @active: loop time of its last request, or of the last byte it took.
 * @eof: it sends no more.
 * @closing: close when @out has gone.
 * @records: it monitors records.
 * @sessions: it monitors sessions.
 * @dropped: events not sent to it.
 */
struct ms_peer {
	struct ms_control *control;
	struct ms_peer *next;
	ev_io io;
	struct kru_lines lines;
	char *out;
	size_t out_bytes;
	size_t out_sent;
	ev_tstamp active;
	bool eof;
	bool closing;
	bool records;
	bool sessions;
	uint64_t dropped;
};

/**
 * struct ms_control - The control socket.
 * @d: daemon.
 * @socket: listening socket.
 * @accept: new connections.
 * @reaper: closes connections that have timed out, and accepts again after a
 *	lack of descriptors.
 * @peers: connections.
 * @peers_nr: how many.
 * @refused: refused since @reaper last fired, to log them once.
 */
struct ms_control {
	struct ms_daemon *d;
	struct ms_control_socket socket;
	ev_io accept;
	ev_timer reaper;
	struct ms_peer *peers;
	unsigned int peers_nr;
	unsigned int refused;
};

static bool ms_peer_monitors(const struct ms_peer *peer)
{
	return peer->records || peer->sessions;
}

static void ms_control_observe(struct ms_control *control);

static void ms_peer_free(struct ms_peer *peer)
{
	struct ms_control *control = peer->control;
	struct ms_peer **at = &control->peers;
	bool monitored = ms_peer_monitors(peer);

	while (*at != peer)
		at = &(*at)->next;
	*at = peer->next;
	control->peers_nr--;
	ev_io_stop(control->d->loop, &peer->io);
	close(peer->io.fd);
	kru_lines_done(&peer->lines);
	free(peer->out);
	free(peer);
	if (monitored)
		ms_control_observe(control);
}

static void ms_peer_want(struct ms_peer *peer, int events)
{
	struct ev_loop *loop = peer->control->d->loop;

	if (peer->io.events == events && ev_is_active(&peer->io))
		return;
	ev_io_stop(loop, &peer->io);
	ev_io_set(&peer->io, peer->io.fd, events);
	ev_io_start(loop, &peer->io);
}

/* Return: 0 if all is sent, -EAGAIN, or another negative errno: close the connection. */
static int ms_peer_flush(struct ms_peer *peer)
{
	while (peer->out_sent < peer->out_bytes) {
		ssize_t sent = send(peer->io.fd, peer->out + peer->out_sent,
				    peer->out_bytes - peer->out_sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return -errno;
		peer->out_sent += (size_t)sent;
		peer->active = ev_now(peer->control->d->loop);
	}
	free(peer->out);
	peer->out = NULL;
	peer->out_bytes = 0;
	peer->out_sent = 0;
	return 0;
}

/* One request into one reply. Return: there was a request. */
static bool ms_peer_serve(struct ms_peer *peer)
{
	struct ms_reply reply;
	const char *line;
	size_t bytes;

	if (!kru_lines_next(&peer->lines, &line, &bytes))
		return false;
	ms_command_run(peer->control->d, line, bytes, &reply);
	peer->active = ev_now(peer->control->d->loop);
	peer->out = reply.text;
	peer->out_bytes = reply.text ? reply.bytes : 0;
	peer->closing = !reply.text;
	if (reply.monitor_records || reply.monitor_sessions) {
		peer->records = reply.monitor_records;
		peer->sessions = reply.monitor_sessions;
		ms_control_observe(peer->control);
	}
	return true;
}

static int ms_peer_read(struct ms_peer *peer)
{
	struct ms_reply reply;
	int got = kru_lines_fill(&peer->lines, peer->io.fd);

	if (got == -EMSGSIZE) {
		ms_reply_error(-EMSGSIZE, "the request is too long", &reply);
		peer->out = reply.text;
		peer->out_bytes = reply.text ? reply.bytes : 0;
		peer->closing = true;
		return 0;
	}
	if (!got)
		peer->eof = true;
	return got < 0 && got != -EAGAIN ? got : 0;
}

/* What a monitor sends is ignored; only the end of its stream matters. */
static int ms_peer_discard(struct ms_peer *peer)
{
	char waste[4096];
	ssize_t got = recv(peer->io.fd, waste, sizeof(waste), MSG_DONTWAIT);

	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	return got ? 0 : -EPIPE;
}

/* Return: 0, or a negative errno: close it. */
static int ms_peer_turn(struct ms_peer *peer, int revents)
{
	int err = 0;

	if (ms_peer_monitors(peer)) {
		if (revents & EV_READ)
			err = ms_peer_discard(peer);
	} else if (!peer->out) {
		if (revents & EV_READ)
			err = ms_peer_read(peer);
		if (!err && !peer->closing && !ms_peer_serve(peer) && peer->eof)
			err = -EPIPE;
	}
	if (err)
		return err;
	err = ms_peer_flush(peer);
	if (!err && peer->closing)
		return -EPIPE;
	return err == -EAGAIN ? 0 : err;
}

/* Lines received already must not wait for bytes that may never come. */
static int ms_peer_events(const struct ms_peer *peer)
{
	const struct kru_lines *lines = &peer->lines;
	int events = 0;

	if (ms_peer_monitors(peer))
		events |= EV_READ;
	if (peer->out || peer->eof)
		return events | EV_WRITE;
	if (!ms_peer_monitors(peer))
		events |= memchr(lines->buf + lines->seen, '\n', lines->end - lines->seen)
				  ? EV_WRITE
				  : EV_READ;
	return events;
}

static void ms_peer_on_io(struct ev_loop *loop, ev_io *io, int revents)
{
	struct ms_peer *peer = io->data;

	(void)loop;
	if (ms_peer_turn(peer, revents))
		ms_peer_free(peer);
	else
		ms_peer_want(peer, ms_peer_events(peer));
}

/* Queue a line for a monitor; never blocks, never grows beyond its bound. */
static void ms_peer_push(struct ms_peer *peer, const char *line, size_t bytes)
{
	size_t left = peer->out_bytes - peer->out_sent;
	char *out;

	if (left + bytes > MS_CONTROL_MONITOR_BYTES) {
		peer->dropped++;
		return;
	}
	if (peer->out && peer->out_sent) {
		memmove(peer->out, peer->out + peer->out_sent, left);
		peer->out_bytes = left;
		peer->out_sent = 0;
	}
	out = realloc(peer->out, left + bytes);
	if (!out) {
		peer->dropped++;
		return;
	}
	memcpy(out + left, line, bytes);
	peer->out = out;
	peer->out_bytes = left + bytes;
	if (!left)
		peer->active = ev_now(peer->control->d->loop);
	ms_peer_want(peer, EV_READ | EV_WRITE);
}

static void ms_peer_push_dropped(struct ms_peer *peer)
{
	size_t bytes;
	char *line;

	if (!peer->dropped || peer->out)
		return;
	line = ms_json_line(json_pack("{s:s, s:I}", "event", "dropped", "count",
				      (json_int_t)peer->dropped),
			    &bytes);
	if (!line)
		return;
	peer->dropped = 0;
	ms_peer_push(peer, line, bytes);
	free(line);
}

static void ms_control_tell(struct ms_control *control, bool records, json_t *object)
{
	size_t bytes = 0;
	char *line = ms_json_line(object, &bytes);

	for (struct ms_peer *peer = control->peers; peer; peer = peer->next) {
		if (records ? !peer->records : !peer->sessions)
			continue;
		ms_peer_push_dropped(peer);
		if (line)
			ms_peer_push(peer, line, bytes);
		else
			peer->dropped++;
	}
	free(line);
}

static void ms_control_on_record(void *arg, unsigned int event, const struct krp_key *key,
				 uint64_t generation, const char *why)
{
	json_t *o = json_pack("{s:s, s:s, s:s}", "event", "record", "change",
			      event == KRP_EVENT_GONE ? "gone" : "changed", "reason", why);

	if (o) {
		ms_json_key(o, key);
		json_object_set_new(o, "generation", ms_json_u64(generation));
	}
	ms_control_tell(arg, true, o);
}

static void ms_control_on_session(void *arg, enum ms_session_event event,
				  const struct ms_session_info *info, const char *why)
{
	static const char *const changes[] = {
		[MS_SESSION_UP] = "up",
		[MS_SESSION_DOWN] = "down",
		[MS_SESSION_REFUSED] = "refused",
	};
	json_t *o = ms_json_session(info);

	if (o) {
		json_object_set_new(o, "event", json_string("session"));
		json_object_set_new(o, "change", json_string(changes[event]));
		json_object_set_new(o, "reason", json_string(why ? why : ""));
	}
	ms_control_tell(arg, false, o);
}

/* Observe the server only while there is a monitor. */
static void ms_control_observe(struct ms_control *control)
{
	static const struct ms_observer ops = { .record = ms_control_on_record,
						.session = ms_control_on_session };
	bool any = false;

	for (struct ms_peer *peer = control->peers; peer; peer = peer->next)
		any |= ms_peer_monitors(peer);
	ms_server_observe(control->d->server, any ? &ops : NULL, control);
}

static void ms_control_refuse(struct ms_control *control, int fd, int code, const char *why)
{
	struct ms_reply reply;

	ms_reply_error(code, why, &reply);
	if (reply.text && send(fd, reply.text, reply.bytes, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		ms_log(LOG_DEBUG, "control socket: refusal not sent: %s", strerror(errno));
	free(reply.text);
	close(fd);
	if (!control->refused++)
		ms_log(LOG_WARNING, "control socket: refused a connection: %s", why);
}

static void ms_control_welcome(struct ms_control *control, int fd)
{
	struct ms_peer *peer;

	if (!ms_control_peer_allowed(fd)) {
		ms_control_refuse(control, fd, -EACCES,
				  "only root and group " MS_CONTROL_GROUP " may use this socket");
		return;
	}
	if (control->peers_nr == MS_CONTROL_CLIENTS_MAX) {
		ms_control_refuse(control, fd, -EBUSY, "too many connections");
		return;
	}
	peer = calloc(1, sizeof(*peer));
	if (!peer || kru_lines_init(&peer->lines, KRU_CTL_REQUEST_BYTES)) {
		free(peer);
		ms_control_refuse(control, fd, -ENOMEM, "no memory");
		return;
	}
	peer->control = control;
	peer->active = ev_now(control->d->loop);
	peer->next = control->peers;
	control->peers = peer;
	control->peers_nr++;
	ev_io_init(&peer->io, ms_peer_on_io, fd, EV_READ);
	peer->io.data = peer;
	ev_io_start(control->d->loop, &peer->io);
}

static void ms_control_on_accept(struct ev_loop *loop, ev_io *io, int revents)
{
	struct ms_control *control = io->data;

	(void)revents;
	for (int i = 0; i < MS_CONTROL_ACCEPTS; i++) {
		int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			ms_control_welcome(control, fd);
			continue;
		}
		if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
			return;
		/* Most likely no descriptor is left: the reaper starts accepting again. */
		ms_log(LOG_WARNING, "control socket: accept: %s, trying again in a second",
		       strerror(errno));
		ev_io_stop(loop, io);
		return;
	}
}

static bool ms_peer_expired(const struct ms_peer *peer)
{
	ev_tstamp quiet = ev_now(peer->control->d->loop) - peer->active;

	/* Also without a reply being sent: its socket may be too full for the next. */
	if (peer->io.events & EV_WRITE)
		return quiet > MS_CONTROL_STALL_S;
	return !ms_peer_monitors(peer) && quiet > MS_CONTROL_IDLE_S;
}

static void ms_control_on_reaper(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct ms_control *control = timer->data;
	struct ms_peer *peer = control->peers, *next;

	(void)revents;
	for (; peer; peer = next) {
		next = peer->next;
		if (ms_peer_expired(peer))
			ms_peer_free(peer);
		else
			ms_peer_push_dropped(peer);
	}
	if (control->refused > 1)
		ms_log(LOG_WARNING, "control socket: refused %u more connections",
		       control->refused - 1);
	control->refused = 0;
	if (!ev_is_active(&control->accept))
		ev_io_start(loop, &control->accept);
}

int ms_control_new(struct ms_daemon *d, struct ms_control **ret_control)
{
	struct ms_control *control;
	int err;

	control = calloc(1, sizeof(*control));
	if (!control)
		return -ENOMEM;
	err = ms_control_socket_open(d->conf.ms.control_socket, &control->socket);
	if (err) {
		free(control);
		return err;
	}
	control->d = d;
	ev_io_init(&control->accept, ms_control_on_accept, control->socket.fd, EV_READ);
	control->accept.data = control;
	ev_io_start(d->loop, &control->accept);
	ev_timer_init(&control->reaper, ms_control_on_reaper, 1., 1.);
	control->reaper.data = control;
	ev_timer_start(d->loop, &control->reaper);
	*ret_control = control;
	return 0;
}

void ms_control_free(struct ms_control *control)
{
	struct ms_peer *peer, *next;

	if (!control)
		return;
	for (peer = control->peers; peer; peer = next) {
		next = peer->next;
		ms_peer_free(peer);
	}
	ev_timer_stop(control->d->loop, &control->reaper);
	ev_io_stop(control->d->loop, &control->accept);
	ms_control_socket_close(&control->socket);
	free(control);
}
