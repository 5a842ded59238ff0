// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * monitor: show changes as they happen, from the daemon on this machine or by
 * subscription over RDMA.
 *
 * Threads: libkrcore calls back from its own thread, which only writes the
 * event into a pipe; the main thread reads and shows it. If the pipe is full,
 * events are lost, which is reported.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/metactl/local.h"
#include "client/metactl/record.h"

#define MC_TURN_MS 200

struct mc_stream {
	struct mc *mc;
	int pipe[2];
	atomic_ulong lost;
	uint64_t left;
	uint64_t end_ns;
};

static bool mc_stream_over(const struct mc_stream *s)
{
	return mc_stopping() || !s->left || (s->end_ns && mc_now_ns() >= s->end_ns);
}

static void mc_put_unix_ms(struct mc_out *out)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	mc_put_number(out, "unix_ms", 0,
		      (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000);
}

static void mc_on_event(void *arg, const struct krcore_event *event)
{
	struct mc_stream *s = arg;

	if (write(s->pipe[1], event, sizeof(*event)) != sizeof(*event))
		atomic_fetch_add(&s->lost, 1);
}

static void mc_show_event(struct mc_stream *s, const struct krcore_event *event)
{
	struct mc *mc = s->mc;

	mc_row(mc->out);
	mc_put_unix_ms(mc->out);
	if (event->type == KRCORE_EVENT_RESYNC) {
		mc_put_text(mc->out, "event", 0, "resync");
	} else {
		mc_put_text(mc->out, "event", 0, "record");
		mc_put_text(mc->out, "change", 0,
			    event->type == KRCORE_EVENT_GONE ? "gone" : "changed");
		mc_put_key(mc, &event->key);
		mc_put_number(mc->out, "generation", 0, event->generation);
	}
	mc_put_number(mc->out, "server", 0, event->server);
	mc_row_flush(mc->out);
	s->left--;
}

static int mc_monitor_pump(struct mc_stream *s)
{
	struct krcore_event event;
	struct pollfd p = { .fd = s->pipe[0], .events = POLLIN };

	while (!mc_stream_over(s)) {
		if (poll(&p, 1, MC_TURN_MS) <= 0)
			continue;
		if (read(s->pipe[0], &event, sizeof(event)) == sizeof(event))
			mc_show_event(s, &event);
		if (ferror(stdout))
			return MC_FAILED;
	}
	if (atomic_load(&s->lost))
		return mc_error(s->mc, "%lu events were lost: this program did not keep up",
				atomic_load(&s->lost));
	return MC_OK;
}

static int mc_monitor_remote(struct mc_stream *s)
{
	struct mc *mc = s->mc;
	int ret;

	if (mc_attach(mc, NULL))
		return MC_FAILED;
	if (pipe2(s->pipe, O_CLOEXEC | O_NONBLOCK))
		return mc_error(mc, "pipe: %s", strerror(errno));
	ret = krcore_subscribe(mc->krcore, mc_on_event, s);
	if (ret && ret != -EHOSTUNREACH)
		ret = mc_error(mc, "cannot subscribe: %s", krcore_error_text());
	else
		ret = mc_monitor_pump(s);
	krcore_subscribe(mc->krcore, NULL, NULL);
	krcore_close(mc->krcore);
	mc->krcore = NULL;
	close(s->pipe[0]);
	close(s->pipe[1]);
	return ret;
}

static json_t *mc_monitor_args(const struct mc *mc)
{
	bool records = mc_get(mc, "records"), sessions = mc_get(mc, "sessions");
	json_t *events = json_array();

	if (records || !sessions)
		json_array_append_new(events, json_string("records"));
	if (sessions || !records)
		json_array_append_new(events, json_string("sessions"));
	return json_pack("{s:o}", "events", events);
}

static int mc_monitor_stream(struct mc_stream *s, struct kru_ctl *ctl)
{
	struct mc_out *out = s->mc->out;
	json_t *object;
	int ret;

	while (!mc_stream_over(s)) {
		ret = kru_ctl_read(ctl, MC_TURN_MS, &object);
		if (ret == -ETIMEDOUT || ret == -EINTR)
			continue;
		if (ret)
			return mc_error(s->mc, "%s", kru_ctl_error(ctl));
		mc_row(out);
		if (!json_object_get(object, "unix_ms"))
			mc_put_unix_ms(out);
		mc_put_object(out, object, NULL);
		mc_row_flush(out);
		json_decref(object);
		s->left--;
		if (ferror(stdout))
			return MC_FAILED;
	}
	return MC_OK;
}

static int mc_monitor_local(struct mc_stream *s)
{
	json_t *reply, *args = mc_monitor_args(s->mc);
	struct kru_ctl *ctl;
	int ret;

	ret = mc_local_open(s->mc, &ctl);
	if (ret) {
		json_decref(args);
		return ret;
	}
	ret = kru_ctl_call(ctl, "monitor", args, &reply);
	json_decref(args);
	if (ret) {
		ret = mc_error(s->mc, "%s", kru_ctl_error(ctl));
	} else {
		json_decref(reply);
		ret = mc_monitor_stream(s, ctl);
	}
	kru_ctl_close(ctl);
	return ret;
}

static int mc_monitor(struct mc *mc)
{
	struct mc_stream s = { .mc = mc, .left = mc_number(mc, "count", UINT64_MAX) };
	bool local = mc_is_local(mc);

	if (mc_get(mc, "seconds"))
		s.end_ns = mc_now_ns() + mc_number(mc, "seconds", 0) * 1000000000;
	if (!local && mc_get(mc, "sessions")) {
		mc_error(mc, "sessions are known to the daemon on this machine only");
		return MC_USAGE;
	}
	mc_catch_signals();
	mc_out_table(mc->out, MC_LINES, NULL);
	return local ? mc_monitor_local(&s) : mc_monitor_remote(&s);
}

static const struct mc_param mc_monitor_params[] = {
	{ "records", MC_FLAG, 0, 0, 0, "changes of records" },
	{ "sessions", MC_FLAG, 0, 0, 0, "connections that come and go" },
	{ "count", MC_NUMBER, 0, 1, UINT32_MAX, "end after so many" },
	{ "seconds", MC_NUMBER, 0, 1, 86400 * 365, "end after so long" },
	{ 0 },
};

static const struct mc_command mc_monitor_commands[] = {
	{ "", mc_monitor, mc_monitor_params, 0,
	  "Show changes until interrupted: from the daemon on this machine; without one, or with "
	  "-S, of records by subscription over RDMA" },
	{ 0 },
};

const struct mc_object mc_object_monitor = {
	.name = "monitor",
	.help = "show changes as they happen",
	.commands = mc_monitor_commands,
};
