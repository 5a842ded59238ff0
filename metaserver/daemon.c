// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Life cycle of the daemon: signals, reload, drain, and its reports to the service manager.
 * See daemon.h. Signal watchers run in the loop, so nothing here needs care
 * about async signal safety.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/auth.h"
#include "metaserver/daemon.h"
#include "metaserver/json.h"
#include "metaserver/log.h"
#include "metaserver/server.h"

#define MS_STATUS_SECONDS 3.
#define MS_EXTEND_MS 10000
#define MS_WAIT_S 12. /* how long the manager's start waits for a port to come up */

const char *ms_state_name(enum ms_state state)
{
	static const char *const names[] = {
		[MS_STARTING] = "starting", [MS_SERVING] = "serving",	[MS_WAITING] = "waiting",
		[MS_DRAINED] = "drained",   [MS_DRAINING] = "draining",
	};

	return names[state];
}

static void ms_daemon_status(struct ms_daemon *d)
{
	char text[512], line[600];

	ms_server_status_text(d->server, text, sizeof(text));
	snprintf(line, sizeof(line), "%s: %s", ms_state_name(d->state), text);
	ms_notify_status(line);
	/* Extend the manager's start timeout during a copy from a peer; the copy has its own. */
	if (d->state == MS_STARTING && ms_server_copying(d->server))
		ms_notify_extend(MS_EXTEND_MS);
}

/*
 * Without a port to serve on, the daemon waits for one by itself, as long as it takes. Without
 * READY the manager would kill it for a start timeout and restart it, for ever.
 */
static void ms_daemon_wait(struct ms_daemon *d)
{
	if (d->state != MS_STARTING || ms_server_copying(d->server) ||
	    ev_now(d->loop) < d->started + MS_WAIT_S)
		return;
	ms_log(LOG_WARNING, "started, but not serving yet: no RDMA port to listen at is up");
	d->state = MS_WAITING;
	ms_notify_ready();
}

static void ms_daemon_on_status(struct ev_loop *loop, ev_timer *timer, int revents)
{
	(void)loop;
	(void)revents;
	ms_daemon_wait(timer->data);
	ms_daemon_status(timer->data);
}

static void ms_daemon_on_serving(void *arg, bool serving)
{
	struct ms_daemon *d = arg;

	if (d->state == MS_DRAINING || d->state == MS_DRAINED)
		return;
	if (serving) {
		ms_log(LOG_NOTICE, "serving");
		if (d->state == MS_STARTING)
			ms_notify_ready();
		d->state = MS_SERVING;
	} else if (d->state == MS_SERVING) {
		ms_log(LOG_WARNING, "no longer serving: no device or address to listen at is left");
		d->state = MS_WAITING;
	}
	ms_daemon_status(d);
}

/**
 * struct ms_reload_report - Collects what is wrong with a configuration.
 * @text: all errors.
 * @bytes: size of @text.
 * @used: bytes of it in use.
 */
struct ms_reload_report {
	char *text;
	size_t bytes;
	size_t used;
};

static void ms_reload_complain(void *arg, const char *file, unsigned int line, const char *text)
{
	struct ms_reload_report *r = arg;
	char where[16] = "";
	int n;

	if (line)
		snprintf(where, sizeof(where), ":%u", line);
	ms_log(LOG_ERR, "%s%s: %s", file, where, text);
	if (r->used + 1 >= r->bytes)
		return;
	n = snprintf(r->text + r->used, r->bytes - r->used, "%s%s%s: %s", r->used ? "; " : "", file,
		     where, text);
	r->used += (size_t)n;
	if (r->used >= r->bytes)
		r->used = r->bytes - 1;
}

void ms_daemon_advise(void *arg, const char *file, unsigned int line, const char *text)
{
	char where[16] = "";

	(void)arg;
	if (line)
		snprintf(where, sizeof(where), ":%u", line);
	ms_log(LOG_WARNING, "%s%s: %s", file, where, text);
}

static void ms_reload_changed(void *arg, const struct kru_conf_item *item)
{
	json_t *result = arg;
	char key[128];

	if (item->reloadable)
		ms_log(LOG_NOTICE, "%s.%s = %s (was %s)", item->section, item->key, item->value,
		       item->before);
	else
		ms_log(LOG_WARNING, "%s.%s = %s needs a restart, ignoring until then",
		       item->section, item->key, item->value);
	snprintf(key, sizeof(key), "%s.%s", item->section, item->key);
	if (result)
		json_array_append_new(result, json_pack("{s:s, s:o, s:o, s:b}", "key", key, "value",
							ms_json_text(item->value), "before",
							ms_json_text(item->before), "applied",
							item->reloadable));
}

static int ms_daemon_take(struct ms_daemon *d, const struct kru_conf *fresh, json_t *result,
			  char *error, size_t error_bytes)
{
	struct kru_conf merged = d->conf;
	int err;

	kru_conf_merge(&merged, fresh, KRU_CONF_SECTION_ms, NULL, NULL);
	err = ms_server_apply(d->server, &merged);
	if (err) {
		snprintf(error, error_bytes, "key file '%s': %s", merged.ms.key_file,
			 err == -ENOKEY ? "no key any more; without one a server that had one "
					  "serves only after a restart"
					: kru_keys_error(err));
		return err;
	}
	kru_conf_merge(&d->conf, fresh, KRU_CONF_SECTION_ms, ms_reload_changed, result);
	ms_log_set_level(LOG_ERR + (int)d->conf.ms.log_level);
	return 0;
}

int ms_daemon_reload(struct ms_daemon *d, json_t *result, char *error, size_t error_bytes)
{
	struct ms_reload_report report = { .text = error, .bytes = error_bytes };
	struct kru_conf fresh;
	int err;

	/* Before the first READY there is no state to return to. */
	if (d->state != MS_STARTING)
		ms_notify_reloading();
	err = ms_options_load(&d->options, &fresh, ms_reload_complain, &report);
	if (!err)
		err = ms_daemon_take(d, &fresh, result, error, error_bytes);
	if (err) {
		d->reloads_failed++;
		ms_log(LOG_ERR, "reload refused, the old configuration stays");
	} else {
		d->reloads_ok++;
		d->reload_unix_s = (uint64_t)time(NULL);
		ms_log(LOG_NOTICE, "configuration reloaded from %s", d->options.config);
		ms_options_advise(&d->options, &d->conf, ms_daemon_advise, NULL);
	}
	if (d->state != MS_STARTING)
		ms_notify_ready();
	ms_daemon_status(d);
	return err;
}

static void ms_daemon_on_hup(struct ev_loop *loop, ev_signal *sig, int revents)
{
	struct ms_daemon *d = sig->data;
	char error[2048];

	(void)loop;
	(void)revents;
	if (d->state == MS_DRAINING)
		ms_log(LOG_WARNING, "draining, ignoring the request to reload");
	else
		ms_daemon_reload(d, NULL, error, sizeof(error));
}

int ms_daemon_keep_off(struct ms_daemon *d, bool off)
{
	if (d->state == MS_DRAINING)
		return -ESHUTDOWN;
	if (off == (d->state == MS_DRAINED))
		return 0;
	ms_log(LOG_NOTICE, off ? "drained by the operator: clients are sent to other servers"
			       : "clients may come again");
	/* keeping clients off counts as started, for a manager that waits for READY */
	if (d->state == MS_STARTING)
		ms_notify_ready();
	d->state = off ? MS_DRAINED : MS_WAITING;
	ms_server_keep_off(d->server, off);
	ms_daemon_status(d);
	return 0;
}

/* The loop waits for the NIC, also at the end. The manager is told that this is progress. */
static void ms_daemon_on_busy(void *arg)
{
	const struct ms_daemon *d = arg;

	ms_notify_alive();
	if (d->state == MS_DRAINING)
		ms_notify_extend(MS_EXTEND_MS);
}

static void ms_daemon_on_drained(void *arg)
{
	struct ms_daemon *d = arg;

	ms_log(LOG_INFO, "all clients have gone");
	ev_break(d->loop, EVBREAK_ALL);
}

void ms_daemon_stop(struct ms_daemon *d)
{
	if (d->state == MS_DRAINING) {
		ms_log(LOG_NOTICE, "exiting at once");
		ev_break(d->loop, EVBREAK_ALL);
		return;
	}
	ms_notify_stopping();
	ms_log(LOG_NOTICE, "letting clients go");
	d->state = MS_DRAINING;
	ms_daemon_status(d);
	ms_server_drain(d->server, ms_daemon_on_drained, d);
}

static void ms_daemon_on_term(struct ev_loop *loop, ev_signal *sig, int revents)
{
	(void)loop;
	(void)revents;
	ms_log(LOG_NOTICE, "got %s", sig->signum == SIGINT ? "SIGINT" : "SIGTERM");
	ms_daemon_stop(sig->data);
}

static void ms_daemon_signal(struct ms_daemon *d, ev_signal *sig, int signum,
			     void (*cb)(struct ev_loop *, ev_signal *, int))
{
	ev_signal_init(sig, cb, signum);
	sig->data = d;
	ev_signal_start(d->loop, sig);
}

void ms_daemon_watch(struct ms_daemon *d)
{
	d->started = ev_now(d->loop);
	ms_daemon_signal(d, &d->sig_hup, SIGHUP, ms_daemon_on_hup);
	ms_daemon_signal(d, &d->sig_term, SIGTERM, ms_daemon_on_term);
	ms_daemon_signal(d, &d->sig_int, SIGINT, ms_daemon_on_term);
	ev_timer_init(&d->status, ms_daemon_on_status, 0., MS_STATUS_SECONDS);
	d->status.data = d;
	ev_timer_start(d->loop, &d->status);
	ms_notify_start(&d->notify, d->loop);
	ms_server_on_serving(d->server, ms_daemon_on_serving, d);
	ms_server_on_busy(d->server, ms_daemon_on_busy, d);
}

void ms_daemon_unwatch(struct ms_daemon *d)
{
	ms_server_on_serving(d->server, NULL, NULL);
	ms_notify_stop(&d->notify);
	ev_timer_stop(d->loop, &d->status);
	ev_signal_stop(d->loop, &d->sig_int);
	ev_signal_stop(d->loop, &d->sig_term);
	ev_signal_stop(d->loop, &d->sig_hup);
}
