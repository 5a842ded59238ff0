// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Every number the daemon shows: see metrics.h. Plain counters come from a
 * table of offsets into struct ms_server_stats; what has labels is written out.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metaserver/commands.h"
#include "metaserver/daemon.h"
#include "metaserver/metrics.h"
#include "metaserver/server.h"

#define MS_METRIC_PREFIX "krcore_meta_"

/**
 * struct ms_family - A metric.
 * @name: without prefix.
 * @type: counter, gauge or histogram.
 * @help: a sentence.
 */
struct ms_family {
	const char *name;
	const char *type;
	const char *help;
};

/**
 * struct ms_writer - Where samples go.
 * @family: starts a metric.
 * @sample: writes one sample of it; label and its value may be NULL, suffix is
 *	"" but for the parts of a histogram; text is the value as a number.
 * @file: of the Prometheus writer.
 * @object: of the JSON writer.
 * @current: the metric.
 */
struct ms_writer {
	void (*family)(struct ms_writer *w);
	void (*sample)(struct ms_writer *w, const char *suffix, const char *label,
		       const char *label_value, double value);
	FILE *file;
	json_t *object;
	struct ms_family current;
};

static const char *const ms_status_labels[] = {
	[KRP_ST_OK] = "ok",
	[KRP_ST_VERSION] = "version",
	[KRP_ST_MALFORMED] = "malformed",
	[KRP_ST_AUTH] = "auth",
	[KRP_ST_STATE] = "state",
	[KRP_ST_NOT_OWNER] = "not_owner",
	[KRP_ST_STALE_GENERATION] = "stale_generation",
	[KRP_ST_FOREIGN_GID] = "foreign_gid",
	[KRP_ST_LIMIT_RECORDS] = "limit_records",
	[KRP_ST_LIMIT_CLIENTS] = "limit_clients",
	[KRP_ST_LIMIT_RATE] = "limit_rate",
	[KRP_ST_TABLE_FULL] = "table_full",
	[KRP_ST_NOT_FOUND] = "not_found",
	[KRP_ST_SHUTDOWN] = "shutdown",
	[KRP_ST_NO_MEMORY] = "no_memory",
	[KRP_ST_RESERVED] = "reserved",
};
KRP_STATIC_ASSERT(sizeof(ms_status_labels) / sizeof(*ms_status_labels) == KRP_ST_CODES,
		  "a label for each KRP_ST_*");

#define MS_PLAIN(field, name, type, help) \
	{ \
		{ name, type, help }, offsetof(struct ms_server_stats, field) \
	}

static const struct {
	struct ms_family family;
	size_t offset;
} ms_plain[] = {
	MS_PLAIN(table.records, "records", "gauge", "Records in the table."),
	MS_PLAIN(table.aside, "table_aside_records", "gauge",
		 "Records for which too many keys have like hashes: READs do not find them."),
	MS_PLAIN(table.crowded, "table_crowded_total", "counter",
		 "Times that a record was put aside."),
	MS_PLAIN(table.shared_bytes, "table_shared_bytes", "gauge",
		 "Memory of the table that nodes can read."),
	MS_PLAIN(table.private_bytes, "table_private_bytes", "gauge",
		 "Memory of the table's own book-keeping."),
	MS_PLAIN(table.bucket_writes, "table_bucket_writes_total", "counter", "Buckets written."),
	MS_PLAIN(table.reseeds, "table_reseeds_total", "counter",
		 "Pages rebuilt under a new seed."),
	MS_PLAIN(table.splits, "table_splits_total", "counter", "Pages split in two."),
	MS_PLAIN(table.merges, "table_merges_total", "counter", "Pairs of pages joined."),
	MS_PLAIN(table.doublings, "table_doublings_total", "counter",
		 "Doublings of the directory."),
	MS_PLAIN(registered_bytes, "registered_bytes", "gauge",
		 "Memory registered with RDMA devices; the table counts once a device."),
	MS_PLAIN(devices, "devices", "gauge", "RDMA devices in use."),
	MS_PLAIN(receives_posted, "receives_posted", "gauge",
		 "Receive buffers posted, over all devices."),
	MS_PLAIN(strangers, "strangers", "gauge",
		 "Connections never authenticated, with those on their way out."),
	MS_PLAIN(listeners, "listeners", "gauge", "Configured addresses that are listened at."),
	MS_PLAIN(device_removals, "device_removals_total", "counter",
		 "RDMA devices that went away."),
	MS_PLAIN(connections_total, "connections_total", "counter", "Connections asked for."),
	MS_PLAIN(connections_rejected, "connections_rejected_total", "counter",
		 "Connections refused for the limit on clients or a lack of resources."),
	MS_PLAIN(sessions_total, "sessions_total", "counter", "Clients ever authenticated."),
	MS_PLAIN(sessions_replaced, "sessions_replaced_total", "counter",
		 "Connections that made room for their own client, or, silent, for another."),
	MS_PLAIN(sessions_timed_out, "sessions_timed_out_total", "counter",
		 "Connections closed because they were idle or slow to authenticate."),
	MS_PLAIN(auth_required, "auth_required", "gauge",
		 "1 if clients must prove that they have a cluster key, 0 if anybody is let in."),
	MS_PLAIN(auth_failures, "auth_failures_total", "counter",
		 "Clients with a wrong proof of the cluster key."),
	MS_PLAIN(owners, "owners", "gauge", "Owners that have a lease."),
	MS_PLAIN(subscribers, "subscribers", "gauge", "Clients that have subscribed."),
	MS_PLAIN(published, "published_total", "counter", "Successful PUBLISH requests."),
	MS_PLAIN(published_new, "published_new_total", "counter",
		 "Successful PUBLISH requests that added a record."),
	MS_PLAIN(
		taken_over, "taken_over_total", "counter",
		"Successful PUBLISH requests that replaced an older generation or a copied record."),
	MS_PLAIN(renewed, "renewed_total", "counter", "Successful RENEW requests."),
	MS_PLAIN(withdrawn, "withdrawn_records_total", "counter",
		 "Records withdrawn by owners or the operator."),
	MS_PLAIN(expired, "expired_records_total", "counter", "Records whose lease ran out."),
	MS_PLAIN(imported, "imported_records", "gauge", "Records copied from a peer at start."),
	MS_PLAIN(copy_failed, "copy_failed", "gauge",
		 "1 if the table of a peer was to be copied at start, and that failed."),
	MS_PLAIN(changes_noted, "changes_noted_total", "counter",
		 "Changes of records that subscribers were to be told."),
	MS_PLAIN(changes_merged, "changes_merged_total", "counter",
		 "Of those, that met a change of the same record not told yet."),
	MS_PLAIN(notifies_sent, "notifications_sent_total", "counter", "Notifications sent."),
	MS_PLAIN(notifies_dropped, "notifications_dropped_total", "counter",
		 "Events that slow subscribers were not told."),
	MS_PLAIN(resyncs, "resyncs_total", "counter",
		 "Notifications that told a slow subscriber to forget its cache."),
	MS_PLAIN(sends_failed, "sends_failed_total", "counter", "Sends completed with an error."),
	MS_PLAIN(sweeps, "sweeps_total", "counter", "Turns of the lease sweep."),
};

static void ms_begin(struct ms_writer *w, const char *name, const char *type, const char *help)
{
	w->current = (struct ms_family){ name, type, help };
	w->family(w);
}

static void ms_one(struct ms_writer *w, const char *name, const char *type, const char *help,
		   double value)
{
	ms_begin(w, name, type, help);
	w->sample(w, "", NULL, NULL, value);
}

static void ms_write_plain(struct ms_writer *w, const struct ms_server_stats *st)
{
	for (size_t i = 0; i < sizeof(ms_plain) / sizeof(*ms_plain); i++) {
		const struct ms_family *f = &ms_plain[i].family;
		uint64_t value;

		memcpy(&value, (const char *)st + ms_plain[i].offset, sizeof(value));
		ms_one(w, f->name, f->type, f->help, (double)value);
	}
}

static void ms_write_hist(struct ms_writer *w, const struct ms_hist *hist)
{
	uint64_t below = 0;
	char bound[32];

	ms_begin(w, "publish_duration_seconds", "histogram",
		 "Time from the arrival of a PUBLISH to its answer.");
	for (unsigned int i = 0; i < MS_HIST_BUCKETS; i++) {
		below += hist->bucket[i];
		if (i == MS_HIST_BUCKETS - 1)
			strcpy(bound, "+Inf");
		else
			snprintf(bound, sizeof(bound), "%g", (double)ms_hist_bound_ns(i) / 1e9);
		w->sample(w, "_bucket", "le", bound, (double)below);
	}
	w->sample(w, "_sum", NULL, NULL, (double)hist->sum_ns / 1e9);
	w->sample(w, "_count", NULL, NULL, (double)hist->count);
}

static void ms_write_sessions(struct ms_writer *w, const struct ms_server_stats *st)
{
	ms_begin(w, "connections", "gauge", "Connections of clients.");
	w->sample(w, "", "state", "ready", (double)st->sessions);
	w->sample(w, "", "state", "pending", (double)st->sessions_pending);

	ms_begin(w, "messages_total", "counter", "Messages received.");
	w->sample(w, "", "type", "malformed", (double)st->messages_in[0]);
	for (unsigned int i = 1; i < KRP_MSG_TYPES; i++)
		if (st->messages_in[i] || (i >= KRP_MSG_PUBLISH && i <= KRP_MSG_LOOKUP))
			w->sample(w, "", "type", krp_msg_name(i), (double)st->messages_in[i]);

	ms_begin(w, "answers_total", "counter", "Answers to all requests.");
	for (unsigned int i = 0; i < KRP_ST_CODES; i++)
		w->sample(w, "", "result", ms_status_labels[i], (double)st->answers[i]);

	ms_begin(w, "changes_total", "counter", "Answers to PUBLISH, WITHDRAW and RENEW.");
	for (unsigned int i = 0; i < KRP_ST_CODES; i++)
		w->sample(w, "", "result", ms_status_labels[i], (double)st->results[i]);
}

static void ms_write_table(struct ms_writer *w, const struct ms_server_stats *st)
{
	uint64_t room = st->table.pages_used * KRP_PAGE_BUCKETS * KRP_BUCKET_RECORDS;

	ms_begin(w, "table_pages", "gauge", "Pages of the table.");
	w->sample(w, "", "state", "used", (double)st->table.pages_used);
	w->sample(w, "", "state", "free", (double)st->table.pages_free);
	ms_one(w, "table_occupancy_ratio", "gauge", "Records per room for one in the used pages.",
	       room ? (double)st->table.records / (double)room : 0);
	ms_one(w, "sweep_last_seconds", "gauge", "Duration of the last turn of the lease sweep.",
	       (double)st->sweep_last_ns / 1e9);
	ms_one(w, "sweep_max_seconds", "gauge", "Duration of the longest turn of the lease sweep.",
	       (double)st->sweep_max_ns / 1e9);
}

static void ms_write_daemon(struct ms_writer *w, const struct ms_daemon *d)
{
	const char *name;

	ms_begin(w, "control_requests_total", "counter", "Requests of the control socket.");
	for (unsigned int i = 0; (name = ms_command_name(i)) != NULL; i++)
		w->sample(w, "", "command", name, (double)d->command_calls[i]);
	ms_begin(w, "reload_total", "counter", "Reloads of the configuration.");
	w->sample(w, "", "result", "ok", (double)d->reloads_ok);
	w->sample(w, "", "result", "refused", (double)d->reloads_failed);
	ms_one(w, "last_reload_timestamp_seconds", "gauge",
	       "Time of the last reload that was taken over, 0 if there was none.",
	       (double)d->reload_unix_s);
}

static void ms_write_all(struct ms_writer *w, const struct ms_daemon *d)
{
	struct ms_server_stats st;

	ms_server_stats(d->server, &st);
	ms_begin(w, "build_info", "gauge", "Always 1; the version is the label.");
	w->sample(w, "", "version", KRC_VERSION, 1);
	ms_one(w, "start_time_seconds", "gauge", "When this incarnation of the server began.",
	       (double)st.started_unix_ms / 1e3);
	ms_one(w, "serving", "gauge", "1 if clients can attach.", st.serving);
	ms_one(w, "drained", "gauge", "1 if the operator keeps clients off.", st.drained);
	ms_one(w, "settling_seconds", "gauge",
	       "For how long publishers may still be on their way back; 0 if settled.",
	       (double)st.settling_ms / 1e3);
	ms_write_plain(w, &st);
	ms_write_table(w, &st);
	ms_write_sessions(w, &st);
	ms_write_hist(w, &st.publish);
	ms_write_daemon(w, d);
}

static void ms_text_family(struct ms_writer *w)
{
	const struct ms_family *f = &w->current;

	fprintf(w->file, "# HELP " MS_METRIC_PREFIX "%s %s\n# TYPE " MS_METRIC_PREFIX "%s %s\n",
		f->name, f->help, f->name, f->type);
}

static void ms_text_sample(struct ms_writer *w, const char *suffix, const char *label,
			   const char *label_value, double value)
{
	fprintf(w->file, MS_METRIC_PREFIX "%s%s", w->current.name, suffix);
	if (label)
		fprintf(w->file, "{%s=\"%s\"}", label, label_value);
	fprintf(w->file, " %.15g\n", value);
}

int ms_metrics_text(const struct ms_daemon *d, char **ret_text, size_t *ret_bytes)
{
	struct ms_writer w = { .family = ms_text_family, .sample = ms_text_sample };
	size_t bytes = 0;
	char *text = NULL;
	int bad;

	w.file = open_memstream(&text, &bytes);
	if (!w.file)
		return -ENOMEM;
	ms_write_all(&w, d);
	bad = ferror(w.file);
	if (fclose(w.file) || bad) {
		free(text);
		return -ENOMEM;
	}
	*ret_text = text;
	*ret_bytes = bytes;
	return 0;
}

static void ms_json_family(struct ms_writer *w)
{
	(void)w;
}

static void ms_json_sample(struct ms_writer *w, const char *suffix, const char *label,
			   const char *label_value, double value)
{
	json_int_t whole = (json_int_t)value;
	char name[128];

	snprintf(name, sizeof(name), "%s%s%s%s", w->current.name, suffix, label ? "_" : "",
		 label ? label_value : "");
	json_object_set_new(w->object, name,
			    (double)whole == value ? json_integer(whole) : json_real(value));
}

json_t *ms_metrics_json(const struct ms_daemon *d)
{
	struct ms_writer w = { .family = ms_json_family, .sample = ms_json_sample };

	w.object = json_object();
	if (w.object)
		ms_write_all(&w, d);
	return w.object;
}
