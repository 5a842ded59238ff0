// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Reports of the server: statistics, sessions, devices, listeners and records. Nothing
 * here changes any state.
 *
 * Devices and ports are read from sysfs, so that a query does not open a device, and
 * does not hold one that is being removed.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/gid.h"
#include "metaserver/server_priv.h"

#define MS_SYSFS "/sys/class/infiniband"

void ms_hist_add(struct ms_hist *h, uint64_t ns)
{
	unsigned int i = 0;

	while (i < MS_HIST_BUCKETS - 1 && ns > ms_hist_bound_ns(i))
		i++;
	h->bucket[i]++;
	h->count++;
	h->sum_ns += ns;
	if (ns > h->max_ns)
		h->max_ns = ns;
}

static void ms_stats_from_hub(struct ms_server_stats *st, const struct ms_hub_stats *hub)
{
	st->sessions = hub->sessions;
	st->sessions_pending = hub->sessions_pending;
	st->sessions_total = hub->sessions_total;
	st->sessions_timed_out = hub->sessions_timed_out;
	st->auth_failures = hub->auth_failures;
	memcpy(st->messages_in, hub->messages_in, sizeof(st->messages_in));
	memcpy(st->results, hub->results, sizeof(st->results));
	memcpy(st->answers, hub->answers, sizeof(st->answers));
	st->published = hub->published;
	st->renewed = hub->renewed;
	st->withdrawn = hub->withdrawn;
	st->notifies_sent = hub->notifies_sent;
	st->notifies_dropped = hub->notifies_dropped;
	st->resyncs = hub->resyncs;
	st->subscribers = hub->subscribers;
}

void ms_server_stats(const struct ms_server *srv, struct ms_server_stats *ret_stats)
{
	struct ms_server_stats *st = ret_stats;
	const struct ms_device *dev;
	struct ms_ledger_stats ls;

	*st = srv->stats;
	ms_stats_from_hub(st, &srv->hub.stats);
	ms_table_stats(srv->hub.table, &st->table);
	ms_ledger_stats(srv->hub.ledger, &ls);
	st->owners = ls.owners;
	st->published_new = ls.published_new;
	st->taken_over = ls.taken_over;
	st->expired = ls.expired;
	st->imported = ls.imported;
	st->copy_failed = *srv->copy.failed != 0;
	st->table.private_bytes += ls.private_bytes;
	st->incarnation = srv->hub.incarnation;
	st->changes_noted = srv->hub.changes.noted;
	st->changes_merged = srv->hub.changes.merged;
	st->sessions_replaced = srv->hub.roll.replaced;
	st->started_unix_ms = srv->started_unix_ms;
	st->serving = srv->serving.now;
	st->auth_required = srv->hub.auth;
	st->settling_ms = ms_hub_settling_ms(&srv->hub, srv->clock.ms);
	st->draining = srv->drain.ends;
	st->drained = srv->drain.keeps_off;
	st->listeners = ms_listeners_up(srv);
	st->strangers = srv->conns.strangers_nr;
	for (dev = srv->devices; dev; dev = dev->next) {
		st->devices++;
		st->registered_bytes += dev->memory.bytes;
		st->receives_posted += dev->recv.posted_nr;
	}
}

void ms_server_status_text(const struct ms_server *srv, char *buf, size_t bytes)
{
	struct ms_table_stats ts;
	size_t used;

	ms_table_stats(srv->hub.table, &ts);
	if (srv->drain.ends)
		snprintf(buf, bytes, "draining, %llu connections left",
			 (unsigned long long)srv->conns.nr);
	else if (srv->drain.keeps_off)
		snprintf(buf, bytes, "drained by the operator, %llu connections left",
			 (unsigned long long)srv->conns.nr);
	else if (srv->copy.import)
		snprintf(buf, bytes, "copying the table of a peer, %llu records so far",
			 (unsigned long long)ts.records);
	else if (!srv->ports_nr || srv->listening.cm_error)
		snprintf(buf, bytes, "waiting for an RDMA device");
	else if (!srv->devices)
		snprintf(buf, bytes, "no RDMA device can be used");
	else if (!srv->serving.now)
		snprintf(buf, bytes, "waiting for an address to listen at");
	else
		snprintf(buf, bytes, "serving, %llu records, %llu clients",
			 (unsigned long long)ts.records,
			 (unsigned long long)srv->hub.stats.sessions);
	used = strlen(buf);
	if (*srv->copy.failed && used < bytes)
		snprintf(buf + used, bytes - used, "; %s", srv->copy.failed);
}

bool ms_server_copying(const struct ms_server *srv)
{
	return srv->copy.import;
}

void ms_server_each_session(const struct ms_server *srv,
			    bool (*fn)(void *arg, const struct ms_session_info *info), void *arg)
{
	struct ms_session_info info;
	const struct ms_conn *conn;

	for (conn = srv->conns.first; conn; conn = conn->next) {
		ms_conn_info(conn, &info);
		if (!fn(arg, &info))
			return;
	}
}

void ms_server_each_listener(const struct ms_server *srv,
			     bool (*fn)(void *arg, const struct ms_listener_info *info), void *arg)
{
	struct ms_listener_info info;
	unsigned int i;

	for (i = 0; i < srv->listening.nr; i++) {
		const struct ms_listener *l = &srv->listening.listeners[i];

		memset(&info, 0, sizeof(info));
		memcpy(info.address, l->text, sizeof(info.address));
		if (l->id && l->id->verbs)
			snprintf(info.device, sizeof(info.device), "%s",
				 ibv_get_device_name(l->id->verbs->device));
		info.state = l->id && !l->error ? "listening" : "waiting";
		info.error = l->id ? 0 : l->error ? l->error : srv->listening.cm_error;
		if (!l->id)
			info.retry_ms =
				(uint64_t)(1000 *
					   ev_timer_remaining(srv->loop, (ev_timer *)&l->retry));
		if (!fn(arg, &info))
			return;
	}
}

/* sysfs */

/* First line of a file, without its end. Return: false if there is none. */
static bool ms_sysfs_line(const char *path, char *buf, size_t bytes)
{
	FILE *f = fopen(path, "re");
	bool ok;

	if (!f)
		return false;
	ok = fgets(buf, (int)bytes, f);
	fclose(f);
	if (ok)
		buf[strcspn(buf, "\n")] = '\0';
	return ok;
}

static bool ms_sysfs_port(const char *device, unsigned int port, struct ms_device_info *info)
{
	static const __u8 none[KRP_GID_BYTES];
	char path[320], line[128];
	const char *colon;
	unsigned int i;

	snprintf(path, sizeof(path), MS_SYSFS "/%s/ports/%u/state", device, port);
	if (!ms_sysfs_line(path, line, sizeof(line)))
		return false;
	colon = strchr(line, ':'); /* "4: ACTIVE" */
	snprintf(info->state, sizeof(info->state), "%.15s", colon ? colon + 2 : line);
	snprintf(path, sizeof(path), MS_SYSFS "/%s/ports/%u/link_layer", device, port);
	if (!ms_sysfs_line(path, line, sizeof(line)))
		strcpy(line, "unspecified");
	snprintf(info->link, sizeof(info->link), "%.15s", line);
	for (i = 0; i < 256 && info->gids_nr < MS_DEVICE_GIDS_MAX; i++) {
		snprintf(path, sizeof(path), MS_SYSFS "/%s/ports/%u/gids/%u", device, port, i);
		if (!ms_sysfs_line(path, line, sizeof(line)))
			break;
		if (!kru_gid_parse(line, info->gids[info->gids_nr]) &&
		    memcmp(info->gids[info->gids_nr], none, sizeof(none)))
			info->gids_nr++;
	}
	return true;
}

unsigned int ms_ports_count(const struct ms_server *srv)
{
	DIR *dir = opendir(MS_SYSFS);
	struct dirent *e;
	unsigned int n = 0;

	if (!dir)
		return 0;
	while ((e = readdir(dir)))
		n += e->d_name[0] != '.' && ms_place_wants(srv, e->d_name);
	closedir(dir);
	return n;
}

static void ms_device_usage(const struct ms_server *srv, struct ms_device_info *info)
{
	const struct ms_device *dev;

	for (dev = srv->devices; dev; dev = dev->next) {
		if (strcmp(dev->name, info->name))
			continue;
		info->in_use = true;
		info->sessions = dev->conns_nr;
		info->registered_bytes = dev->memory.bytes;
	}
}

void ms_server_each_device(const struct ms_server *srv,
			   bool (*fn)(void *arg, const struct ms_device_info *info), void *arg)
{
	struct ms_device_info info;
	struct dirent **names;
	unsigned int port;
	bool more = true;
	int i, n = scandir(MS_SYSFS, &names, NULL, alphasort);

	for (i = 0; i < n; i++) {
		for (port = 1; more && names[i]->d_name[0] != '.'; port++) {
			memset(&info, 0, sizeof(info));
			snprintf(info.name, sizeof(info.name), "%.63s", names[i]->d_name);
			info.port = port;
			if (!ms_sysfs_port(names[i]->d_name, port, &info))
				break;
			ms_device_usage(srv, &info);
			more = fn(arg, &info);
		}
		free(names[i]);
	}
	if (n >= 0)
		free(names);
}

/* records */

struct ms_record_visit {
	bool (*fn)(void *arg, const struct ms_record_info *info);
	void *arg;
};

static void ms_record_info(const struct ms_ledger_record *rec, struct ms_record_info *ret_info)
{
	memset(ret_info, 0, sizeof(*ret_info));
	ret_info->key = rec->key;
	ret_info->value = rec->value;
	memcpy(ret_info->owner, rec->owner, sizeof(ret_info->owner));
	ret_info->generation = rec->generation;
	ret_info->lease_left_ms = rec->lease_left_ms;
	ret_info->imported = rec->imported;
}

static bool ms_record_visit(void *arg, const struct ms_ledger_record *rec)
{
	const struct ms_record_visit *v = arg;
	struct ms_record_info info;

	ms_record_info(rec, &info);
	return v->fn(v->arg, &info);
}

uint64_t ms_server_each_record(const struct ms_server *srv, uint64_t from,
			       bool (*fn)(void *arg, const struct ms_record_info *info), void *arg)
{
	struct ms_record_visit v = { fn, arg };

	return ms_ledger_each(srv->hub.ledger, srv->clock.ms, from, ms_record_visit, &v);
}

int ms_server_get_record(const struct ms_server *srv, const struct krp_key *key,
			 struct ms_record_info *ret_info)
{
	struct ms_ledger_record rec;
	int err = ms_ledger_get(srv->hub.ledger, srv->clock.ms, key, &rec);

	if (!err)
		ms_record_info(&rec, ret_info);
	return err;
}
