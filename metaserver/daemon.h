/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The daemon as a whole: its parts, its configuration, and what signals and
 * commands do to it. One per process, created by main(), used by the control
 * socket and the metrics. Loop thread only.
 */
#ifndef MS_DAEMON_H
#define MS_DAEMON_H

#include <stdbool.h>
#include <stdint.h>

#include <ev.h>
#include <jansson.h>

#include "common/conf.h"
#include "metaserver/notify.h"
#include "metaserver/options.h"

struct ms_control;
struct ms_http;
struct ms_server;

/** enum ms_state - State of the daemon; ms_state_name() returns its name. */
enum ms_state {
	MS_STARTING, /* never served yet */
	MS_SERVING,
	MS_WAITING, /* no device or address is left, or none has appeared for long */
	MS_DRAINED, /* the operator keeps clients off */
	MS_DRAINING,
};

#define MS_COMMANDS_MAX 16

/**
 * struct ms_daemon - The daemon.
 * @loop: its only loop.
 * @options: command line.
 * @conf: configuration in force.
 * @server: everything RDMA.
 * @control: control socket.
 * @http: metrics, or NULL if they are off.
 * @notify: watchdog.
 * @state: current state.
 * @started: loop time when it began.
 * @reloads_ok: reloads that took effect.
 * @reloads_failed: reloads that were refused.
 * @reload_unix_s: time of the last reload that took effect, or 0.
 * @command_calls: requests of the control socket by command, see commands.h.
 * @sig_hup: reload.
 * @sig_term: drain, then exit.
 * @sig_int: as @sig_term.
 * @status: refreshes STATUS=.
 */
struct ms_daemon {
	struct ev_loop *loop;
	struct ms_options options;
	struct kru_conf conf;
	struct ms_server *server;
	struct ms_control *control;
	struct ms_http *http;
	struct ms_notify notify;
	enum ms_state state;
	ev_tstamp started;
	uint64_t reloads_ok;
	uint64_t reloads_failed;
	uint64_t reload_unix_s;
	uint64_t command_calls[MS_COMMANDS_MAX];
	ev_signal sig_hup;
	ev_signal sig_term;
	ev_signal sig_int;
	ev_timer status;
};

/** ms_state_name() - Name of a state. @state: state. Return: constant text. */
const char *ms_state_name(enum ms_state state);

/**
 * ms_daemon_watch() - Start signals, status line and watchdog, and follow the server.
 * @d: daemon with loop and server.
 */
void ms_daemon_watch(struct ms_daemon *d);

/** ms_daemon_unwatch() - Undo ms_daemon_watch(). @d: daemon. */
void ms_daemon_unwatch(struct ms_daemon *d);

/**
 * ms_daemon_advise() - A kru_conf_report_fn that logs a warning.
 * @arg: not used.
 * @file: see kru_conf_report_fn.
 * @line: see kru_conf_report_fn.
 * @text: see kru_conf_report_fn.
 */
void ms_daemon_advise(void *arg, const char *file, unsigned int line, const char *text);

/**
 * ms_daemon_reload() - Read the configuration again: parse, check, swap.
 * @d: daemon.
 * @result: array that gets an object for each key that changed, or NULL.
 * @error: text of all errors, with its NUL; untouched on success.
 * @error_bytes: its size.
 *
 * Errors are logged. On failure everything stays as it was.
 *
 * Return: 0, or a negative errno.
 */
int ms_daemon_reload(struct ms_daemon *d, json_t *result, char *error, size_t error_bytes);

/**
 * ms_daemon_keep_off() - Send clients to other servers, or admit them again.
 * @d: daemon.
 * @off: see ms_server_keep_off(). It is no error if the state is that already.
 *
 * Not kept over a restart.
 *
 * Return: 0, or -ESHUTDOWN if the daemon is about to end.
 */
int ms_daemon_keep_off(struct ms_daemon *d, bool off);

/** ms_daemon_stop() - Drain clients, then end the loop; at once if called again. @d: daemon. */
void ms_daemon_stop(struct ms_daemon *d);

#endif /* MS_DAEMON_H */
