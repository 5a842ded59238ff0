// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Life cycle, configuration and timers of the serving half: see server.h.
 *
 * The clock of the leases stands still while the loop does: a daemon that was
 * stopped for a minute must not find that every lease has run out before it
 * has read the renewals that wait for it.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "metaserver/log.h"
#include "metaserver/server_priv.h"
#include "proto/krp_pulse.h"

#define MS_CLOCK_STEP_MAX_MS 1000U
#define MS_SETTLE_MS 30000U /* where neither leases nor pauses are longer */

KRP_STATIC_ASSERT(MS_CHECK_MS <= KRP_BEAT_MS, "each check of the connections is a heartbeat");

uint64_t ms_mono_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

uint64_t ms_now(struct ms_server *srv)
{
	uint64_t real_ms = ms_mono_ns() / 1000000, step = real_ms - srv->clock.real_ms;
	uint64_t most = srv->conf.tick_ms + MS_CLOCK_STEP_MAX_MS;

	srv->clock.real_ms = real_ms;
	srv->clock.ms += step < most ? step : most;
	return srv->clock.ms;
}

void ms_log_client(struct ms_server *srv, int priority, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	if (!ms_log_enabled(priority))
		return;
	if (!srv->log.room) {
		srv->log.lost++;
		return;
	}
	srv->log.room--;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	ms_log(priority, "%s", text);
}

static uint32_t ms_max(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/*
 * Start settling: the publishers of the time before have to come back. After a copy of a
 * peer's whole table only those are missing that published at the peer during the copy: they
 * come with their next attempt to attach, so settling is shorter.
 */
static void ms_server_unsettle(struct ms_server *srv)
{
	uint32_t twice_ms = 2 * srv->reconnect_max_ms, ms = srv->conf.settle_ms;

	if (!ms)
		ms = ms_max(ms_max(srv->conf.lease_ms, twice_ms), MS_SETTLE_MS);
	if (srv->copy.done && twice_ms < ms)
		ms = twice_ms;
	ms_settle_begin(&srv->hub.settle, ms_now(srv), ms, srv->reconnect_max_ms);
}

void ms_server_evaluate(struct ms_server *srv)
{
	bool serving = srv->serving.started && !srv->drain.ends && !srv->drain.keeps_off &&
		       !srv->copy.import && srv->devices && ms_listeners_up(srv);

	if (serving == srv->serving.now)
		return;
	srv->serving.now = serving;
	if (serving) {
		ms_server_unsettle(srv);
		srv->copy.done = false; /* true of the first time only */
		srv->serving.before = true;
	}
	if (srv->serving.cb)
		srv->serving.cb(srv->serving.arg, serving);
}

static void ms_server_changed(void *arg, unsigned int event, const struct krp_key *key,
			      uint64_t generation, const char *why)
{
	struct ms_server *srv = arg;

	ms_hub_notify(&srv->hub, event, key, generation);
	if (srv->hub.subscribers && !ev_is_active(&srv->chores.tell))
		ev_timer_start(srv->loop, &srv->chores.tell);
	if (srv->observer.ops)
		srv->observer.ops->record(srv->observer.arg, event, key, generation, why);
}

static const struct ms_ledger_ops ms_server_ledger_ops = { .changed = ms_server_changed };

/* timers */

static void ms_server_tell(struct ms_server *srv)
{
	if (ms_hub_tell(&srv->hub, MS_TELL_BUDGET))
		ev_idle_start(srv->loop, &srv->chores.tell_more);
	else
		ev_idle_stop(srv->loop, &srv->chores.tell_more);
}

static void ms_server_on_tell_more(struct ev_loop *loop, ev_idle *w, int events)
{
	(void)loop;
	(void)events;
	ms_server_tell(w->data);
}

static void ms_server_on_tell(struct ev_loop *loop, ev_timer *w, int events)
{
	struct ms_server *srv = w->data;

	(void)loop;
	(void)events;
	if (ms_hub_seal(&srv->hub, ms_now(srv)))
		ev_timer_start(srv->loop, w);
	ms_server_tell(srv);
}

static void ms_server_sweep(struct ms_server *srv)
{
	uint64_t begin_ns = ms_mono_ns(), ns;
	bool more = ms_ledger_sweep(srv->hub.ledger, ms_now(srv), MS_SWEEP_BUDGET);

	ns = ms_mono_ns() - begin_ns;
	srv->stats.sweeps++;
	srv->stats.sweep_last_ns = ns;
	if (ns > srv->stats.sweep_max_ns)
		srv->stats.sweep_max_ns = ns;
	if (more)
		ev_idle_start(srv->loop, &srv->chores.sweep_more);
	else
		ev_idle_stop(srv->loop, &srv->chores.sweep_more);
}

static void ms_server_on_tick(struct ev_loop *loop, ev_timer *w, int events)
{
	struct ms_server *srv = w->data;

	(void)loop;
	(void)events;
	if (!srv->serving.before) /* no owner could attach to take a copied record over */
		ms_ledger_import_keep(srv->hub.ledger, ms_now(srv), srv->conf.lease_ms);
	ms_server_sweep(srv);
}

static void ms_server_on_sweep_more(struct ev_loop *loop, ev_idle *w, int events)
{
	(void)loop;
	(void)events;
	ms_server_sweep(w->data);
}

static void ms_server_drained(struct ms_server *srv)
{
	void (*cb)(void *arg) = srv->drain.cb;

	if (!cb || (srv->conns.first && ms_now(srv) < srv->drain.deadline_ms))
		return;
	srv->drain.cb = NULL;
	cb(srv->drain.arg);
}

/* Once a second: a device that is broken goes; one that has lost receives is opened anew. */
static void ms_server_check_broken(struct ms_server *srv)
{
	struct ms_device *dev, *next;
	bool lost = false;

	for (dev = srv->devices; dev; dev = next) {
		next = dev->next;
		if (dev->broken) {
			ms_device_remove(dev, "it cannot register memory");
		} else if (!ms_recv_check(dev)) {
			lost = true;
			ms_device_remove(dev, "it has lost receive buffers");
		}
	}
	if (lost)
		ms_watch_probe(srv);
}

static void ms_server_check_devices(struct ms_server *srv)
{
	unsigned int ports_nr = ms_ports_count(srv);

	ms_watch_check(srv);
	/* a port is new, or no device can be used: try again, the latter not too often */
	if (ports_nr > srv->ports_nr ||
	    (ports_nr && !srv->devices && !(srv->probes++ % MS_PROBE_CHECKS)))
		ms_watch_probe(srv);
	srv->ports_nr = ports_nr;
	ms_server_evaluate(srv);
}

/*
 * Check some of the connections, in one iteration of the loop. Each step of an end
 * takes the NIC a fraction of a millisecond, and thousands may end at once.
 */
static void ms_server_check_conns(struct ms_server *srv)
{
	unsigned int looked, ended = 0;

	for (looked = 0; looked < MS_CHECK_BUDGET && ended < MS_END_BUDGET; looked++) {
		struct ms_conn *conn = srv->chores.check_next;

		if (!conn)
			break;
		srv->chores.check_next = conn->next;
		ended += ms_conn_check(conn);
	}
	if (srv->chores.check_next)
		ev_idle_start(srv->loop, &srv->chores.check_more);
	else
		ev_idle_stop(srv->loop, &srv->chores.check_more);
}

void ms_server_check_soon(struct ms_server *srv, struct ms_conn *conn)
{
	/* a round that has passed it by already is followed by another */
	if (!srv->chores.check_next)
		srv->chores.check_next = conn;
	ev_idle_start(srv->loop, &srv->chores.check_more);
}

static void ms_server_on_check_more(struct ev_loop *loop, ev_idle *w, int events)
{
	(void)loop;
	(void)events;
	ms_server_check_conns(w->data);
}

static void ms_server_on_check(struct ev_loop *loop, ev_timer *w, int events)
{
	struct ms_server *srv = w->data;
	struct ms_device *dev;

	(void)loop;
	(void)events;
	if (!srv->chores.check_next)
		srv->chores.check_next = srv->conns.first;
	/* queue pairs wait to be destroyed for what is in the completion queues */
	for (dev = srv->devices; dev; dev = dev->next)
		ms_device_poll(dev);
	ms_server_check_conns(srv);
	ms_device_beat(srv);
	if (++srv->chores.checks % MS_CHECKS_SECOND == 0) {
		ms_server_check_broken(srv);
		ms_server_check_devices(srv);
		srv->log.room = MS_LOG_CLIENTS;
		if (srv->log.lost)
			ms_log(LOG_NOTICE, "%u lines about clients were left out", srv->log.lost);
		srv->log.lost = 0;
	}
	ms_server_drained(srv);
}

/* configuration */

/* @ret_keys: empty if there is to be no authentication. Logs errors. */
static int ms_server_load_keys(const struct kru_conf_ms *conf, struct kru_keys *ret_keys)
{
	bool must = conf->require_auth == KRU_AUTH_YES;
	int err;

	ret_keys->nr = 0;
	if (conf->require_auth == KRU_AUTH_NO)
		return 0;
	err = conf->key_file[0] ? kru_keys_load(conf->key_file, ret_keys) : -ENOENT;
	if (!err || (err == -ENOENT && !must))
		return 0;
	ms_log(LOG_ERR, "key_file '%s': %s%s", conf->key_file, kru_keys_error(err),
	       err == -ENOENT ? ", and require_auth is yes" : "");
	return err;
}

static void ms_server_set_limits(struct ms_server *srv)
{
	const struct kru_conf_ms *conf = &srv->conf;

	srv->hub.limits = (struct ms_limits){
		.lease_ms = conf->lease_ms,
		.lease_min_ms = conf->lease_min_ms,
		.lease_max_ms = conf->lease_max_ms,
		.tick_ms = conf->tick_ms,
		.records_max = conf->records_per_owner_max,
		.clients_max = conf->clients_max,
		.rate_max = conf->rate_max,
		.credits = conf->credits,
		.idle_timeout_ms = conf->idle_timeout_ms,
		.publish_any_gid = conf->publish_any_gid,
	};
}

int ms_server_apply(struct ms_server *srv, const struct kru_conf *conf)
{
	struct kru_conf_ms fresh = conf->ms;
	struct kru_keys keys = { .nr = 0 };
	unsigned int nr;
	bool first;
	int err;

	err = ms_server_load_keys(&fresh, &keys);
	if (err)
		return err;
	/* a key file that is missing for a moment must not turn off authentication */
	if (srv->hub.auth && !keys.nr) {
		ms_log(LOG_ERR,
		       "key_file '%s': no key any more; without one a server that had one serves "
		       "only after a restart",
		       fresh.key_file);
		return -ENOKEY;
	}
	/* queues and timers were sized by these: they need a restart */
	fresh.tick_ms = srv->conf.tick_ms;
	fresh.credits = srv->conf.credits;
	fresh.srq_depth = srv->conf.srq_depth;
	srv->conf = fresh;
	srv->reconnect_max_ms = conf->node.reconnect_max_ms;
	first = keys.nr && !srv->hub.auth;
	nr = ms_hub_set_keys(&srv->hub, &keys);
	if (first)
		ms_log(LOG_NOTICE,
		       "clients must prove that they have the cluster key; %u that had attached "
		       "without one were disconnected",
		       nr);
	kru_keys_wipe(&keys);
	ms_server_set_limits(srv);
	ms_ledger_set_records_max(srv->hub.ledger, fresh.records_per_owner_max);
	return 0;
}

static unsigned int ms_log2(uint64_t v)
{
	return v ? 63U - (unsigned int)__builtin_clzll(v) : 0;
}

/* An eighth of the memory is left to the directories, 16 entries a page at most. */
static int ms_server_table_new(struct ms_server *srv)
{
	uint64_t segment_bytes = (uint64_t)srv->conf.segment_kib << 10;
	uint64_t bytes = (uint64_t)srv->conf.memory_max_mib << 20, segments;
	struct ms_table_config config = { .incarnation = srv->hub.incarnation,
					  .asides_max = MS_ASIDES_MAX };
	int err;

	config.log2_segment_pages = ms_log2(segment_bytes / KRP_PAGE_BYTES);
	segments = (bytes - bytes / 8) / segment_bytes;
	if (!segments) {
		ms_log(LOG_ERR, "memory_max_mib = %u has no room for one segment_kib = %u",
		       srv->conf.memory_max_mib, srv->conf.segment_kib);
		return -EINVAL;
	}
	if (segments > KRP_SEGMENTS_MAX) {
		segments = KRP_SEGMENTS_MAX;
		ms_log(LOG_NOTICE,
		       "%u segments of segment_kib = %u are the most: less memory than "
		       "memory_max_mib allows",
		       KRP_SEGMENTS_MAX, srv->conf.segment_kib);
	}
	config.segments_max = (unsigned int)segments;
	config.depth_max = config.log2_segment_pages + ms_log2(segments) + 4;
	if (config.depth_max > KRP_DEPTH_MAX)
		config.depth_max = KRP_DEPTH_MAX;
	err = kru_random(&config.salt, sizeof(config.salt));
	if (!err)
		err = kru_random(&config.secret, sizeof(config.secret));
	if (err)
		return err;
	return ms_table_new(&config, &ms_device_table_ops, srv, &srv->hub.table);
}

/* life */

static void ms_server_timers(struct ms_server *srv)
{
	double tick = srv->conf.tick_ms / 1000.0, check = MS_CHECK_MS / 1000.0;

	ev_timer_init(&srv->chores.tick, ms_server_on_tick, tick, tick);
	ev_timer_init(&srv->chores.check, ms_server_on_check, check, check);
	ev_idle_init(&srv->chores.sweep_more, ms_server_on_sweep_more);
	ev_set_priority(&srv->chores.sweep_more,
			EV_MAXPRI); /* in each iteration, also of a busy loop */
	ev_timer_init(&srv->chores.tell, ms_server_on_tell, MS_TELL_MS / 1000.0, 0.);
	ev_idle_init(&srv->chores.tell_more, ms_server_on_tell_more);
	ev_set_priority(&srv->chores.tell_more, EV_MAXPRI);
	srv->chores.tell.data = srv;
	srv->chores.tell_more.data = srv;
	ev_idle_init(&srv->chores.check_more, ms_server_on_check_more);
	ev_set_priority(&srv->chores.check_more, EV_MAXPRI);
	srv->chores.tick.data = srv;
	srv->chores.check.data = srv;
	srv->chores.check_more.data = srv;
	srv->chores.sweep_more.data = srv;
}

static int ms_server_books(struct ms_server *srv)
{
	struct ms_ledger_config lc = { .tick_ms = srv->conf.tick_ms,
				       .records_max = srv->conf.records_per_owner_max };
	int err;

	while (!srv->hub.incarnation) {
		err = kru_random(&srv->hub.incarnation, sizeof(srv->hub.incarnation));
		if (err)
			return err;
	}
	err = kru_random(&lc.salt, sizeof(lc.salt));
	if (!err)
		err = kru_random(&srv->conns.salt, sizeof(srv->conns.salt));
	if (!err)
		err = kru_random(srv->hub.secret, sizeof(srv->hub.secret));
	if (err)
		return err;
	err = ms_hub_init(&srv->hub, lc.salt ^ srv->conns.salt, ms_now(srv));
	if (!err)
		err = ms_server_table_new(srv);
	if (err)
		return err;
	return ms_ledger_new(&lc, srv->hub.table, &ms_server_ledger_ops, srv, ms_now(srv),
			     &srv->hub.ledger);
}

int ms_server_new(struct ev_loop *loop, const struct kru_conf *conf, struct ms_server **ret_srv)
{
	struct ms_server *srv = calloc(1, sizeof(*srv));
	struct timespec ts;
	int err;

	if (!srv)
		return -ENOMEM;
	srv->loop = loop;
	srv->conf = conf->ms;
	srv->reconnect_max_ms = conf->node.reconnect_max_ms;
	srv->copy.conf = *conf;
	srv->clock.real_ms = ms_mono_ns() / 1000000;
	srv->clock.ms = srv->clock.real_ms;
	srv->log.room = MS_LOG_CLIENTS;
	TAILQ_INIT(&srv->conns.strangers);
	ms_server_timers(srv);
	ms_server_set_limits(srv);
	err = ms_places_parse(srv);
	if (err)
		goto err_free;
	err = ms_server_load_keys(&srv->conf, &srv->hub.keys);
	if (err)
		goto err_free;
	srv->hub.auth = srv->hub.keys.nr;
	err = ms_server_books(srv);
	if (err) {
		ms_log(LOG_ERR, "no table can be made (%s)", strerror(-err));
		goto err_free;
	}
	clock_gettime(CLOCK_REALTIME, &ts);
	srv->started_unix_ms = (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
	ms_log_set_incarnation(srv->hub.incarnation);
	*ret_srv = srv;
	return 0;

err_free:
	ms_server_free(srv);
	return err;
}

int ms_server_start(struct ms_server *srv)
{
	int err = 0;

	if (!srv->hub.auth)
		ms_log(LOG_WARNING,
		       "there is no cluster key: every host of the fabric may read the table and "
		       "publish; krcore-metactl key new makes one");
	srv->serving.started = true;
	srv->ports_nr = ms_ports_count(srv);
	ev_timer_start(srv->loop, &srv->chores.tick);
	ev_timer_start(srv->loop, &srv->chores.check);
	if (srv->conf.copy_from[0])
		err = ms_import_start(srv);
	ms_server_unsettle(srv);
	if (!srv->copy.import)
		ms_listeners_start(srv);
	return err;
}

bool ms_server_serving(const struct ms_server *srv)
{
	return srv->serving.now;
}

void ms_server_on_serving(struct ms_server *srv, void (*cb)(void *arg, bool serving), void *arg)
{
	srv->serving.cb = cb;
	srv->serving.arg = arg;
}

void ms_server_on_busy(struct ms_server *srv, void (*cb)(void *arg), void *arg)
{
	srv->busy.cb = cb;
	srv->busy.arg = arg;
}

void ms_server_busy(struct ms_server *srv)
{
	if (++srv->busy.steps % MS_BUSY_STEPS == 0 && srv->busy.cb)
		srv->busy.cb(srv->busy.arg);
}

void ms_server_observe(struct ms_server *srv, const struct ms_observer *ops, void *arg)
{
	srv->observer.ops = ops;
	srv->observer.arg = arg;
}

void ms_server_drain(struct ms_server *srv, void (*cb)(void *arg), void *arg)
{
	struct ms_conn *conn;

	srv->drain.ends = true;
	srv->hub.draining = true;
	srv->drain.cb = cb;
	srv->drain.arg = arg;
	srv->drain.deadline_ms = ms_now(srv) + MS_SHUTDOWN_MS;
	if (srv->copy.import)
		ms_import_cancel(srv);
	ms_listeners_stop(srv);
	for (conn = srv->conns.first; conn; conn = conn->next)
		ms_conn_leave(conn, "server is shutting down");
	ms_server_evaluate(srv);
}

/*
 * The server goes on listening, to refuse with a reason: without a listener a client could not
 * distinguish this from a failure.
 */
void ms_server_keep_off(struct ms_server *srv, bool off)
{
	struct ms_conn *conn;

	if (srv->drain.keeps_off == off)
		return;
	srv->drain.keeps_off = off;
	for (conn = off ? srv->conns.first : NULL; conn; conn = conn->next)
		ms_conn_leave(conn, "drained by the operator");
	ms_server_evaluate(srv);
}

void ms_server_free(struct ms_server *srv)
{
	if (!srv)
		return;
	srv->serving.cb = NULL;
	srv->observer.ops = NULL;
	if (srv->copy.import)
		ms_import_cancel(srv);
	while (srv->devices)
		ms_device_remove(srv->devices, NULL);
	ms_watch_close(srv);
	ms_cm_close(srv);
	ev_timer_stop(srv->loop, &srv->chores.tick);
	ev_timer_stop(srv->loop, &srv->chores.check);
	ev_idle_stop(srv->loop, &srv->chores.sweep_more);
	ev_idle_stop(srv->loop, &srv->chores.check_more);
	ev_timer_stop(srv->loop, &srv->chores.tell);
	ev_idle_stop(srv->loop, &srv->chores.tell_more);
	ms_ledger_free(srv->hub.ledger);
	ms_hub_fini(&srv->hub);
	ms_table_free(srv->hub.table);
	kru_keys_wipe(&srv->hub.keys);
	explicit_bzero(srv->hub.secret, sizeof(srv->hub.secret));
	free(srv);
}

int ms_server_withdraw(struct ms_server *srv, const struct krp_key *key)
{
	int err = ms_ledger_remove(srv->hub.ledger, key);

	if (!err)
		srv->hub.stats.withdrawn++;
	return err;
}

unsigned int ms_server_kill(struct ms_server *srv,
			    bool (*match)(void *arg, const struct ms_session_info *info), void *arg)
{
	struct ms_session_info info;
	struct ms_conn *conn;
	unsigned int nr = 0;

	for (conn = srv->conns.first; conn; conn = conn->next) {
		ms_conn_info(conn, &info);
		if (conn->session.state == MS_STATE_CLOSING || !match(arg, &info))
			continue;
		ms_conn_leave(conn, "disconnected by the operator");
		nr++;
	}
	return nr;
}
