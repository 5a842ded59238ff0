// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The commands of the control socket: see commands.h. A table gives each its
 * name, arguments and function; arguments that are not in it are refused, so
 * that a misspelled filter never means "all".
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/ctl.h"
#include "common/gid.h"
#include "metaserver/commands.h"
#include "metaserver/daemon.h"
#include "metaserver/json.h"
#include "metaserver/log.h"
#include "metaserver/metrics.h"

#define MS_SCAN_MAX 10000 /* records examined for a page: bounds the time a filter takes */

/**
 * struct ms_call - A command being run.
 * @d: daemon.
 * @args: its arguments, an object, or NULL.
 * @result: array of the reply.
 * @next: where to go on; 0 if this is all.
 * @code: 0 or negative errno.
 * @error: text for @code.
 * @monitor_records: see struct ms_reply.
 * @monitor_sessions: see struct ms_reply.
 */
struct ms_call {
	struct ms_daemon *d;
	json_t *args;
	json_t *result;
	uint64_t next;
	int code;
	char error[2048];
	bool monitor_records;
	bool monitor_sessions;
};

/**
 * struct ms_command - A command.
 * @name: its name.
 * @args: names of its arguments, separated by blanks.
 * @help: a sentence.
 * @run: fills result, next, or code and error.
 */
struct ms_command {
	const char *name;
	const char *args;
	const char *help;
	void (*run)(struct ms_call *call);
};

static const struct ms_command *ms_command_at(unsigned int i);

__attribute__((format(printf, 3, 4))) static void ms_call_fail(struct ms_call *call, int code,
							       const char *fmt, ...)
{
	va_list ap;

	call->code = code;
	va_start(ap, fmt);
	vsnprintf(call->error, sizeof(call->error), fmt, ap);
	va_end(ap);
}

/* An integer argument; @value stays if it is not given. Return: 0 or -EINVAL. */
static int ms_arg_int(struct ms_call *call, const char *name, json_int_t min, json_int_t max,
		      json_int_t *value)
{
	json_t *arg = json_object_get(call->args, name);

	if (!arg)
		return 0;
	if (!json_is_integer(arg) || json_integer_value(arg) < min ||
	    json_integer_value(arg) > max) {
		ms_call_fail(call, -EINVAL, "argument '%s' is not a number from %lld to %lld", name,
			     (long long)min, (long long)max);
		return -EINVAL;
	}
	*value = json_integer_value(arg);
	return 0;
}

static int ms_arg_bool(struct ms_call *call, const char *name, bool *value)
{
	json_t *arg = json_object_get(call->args, name);

	if (arg && !json_is_boolean(arg)) {
		ms_call_fail(call, -EINVAL, "argument '%s' is not true or false", name);
		return -EINVAL;
	}
	if (arg)
		*value = json_is_true(arg);
	return 0;
}

static int ms_arg_gid(struct ms_call *call, bool *ret_given, uint8_t *ret_gid)
{
	json_t *arg = json_object_get(call->args, "gid");

	*ret_given = arg;
	if (!arg)
		return 0;
	if (json_is_string(arg) && !kru_gid_parse(json_string_value(arg), ret_gid))
		return 0;
	ms_call_fail(call, -EINVAL, "argument 'gid' is neither a GID nor an IP address");
	return -EINVAL;
}

static int ms_arg_owner(struct ms_call *call, bool *ret_given, char *ret_hex)
{
	json_t *arg = json_object_get(call->args, "owner");
	const char *text = json_string_value(arg);

	*ret_given = arg;
	if (!arg)
		return 0;
	if (!text || strlen(text) != MS_HEX_BYTES - 1 ||
	    strspn(text, "0123456789abcdef") != MS_HEX_BYTES - 1) {
		ms_call_fail(call, -EINVAL,
			     "argument 'owner' is not %d lower-case hexadecimal "
			     "digits",
			     MS_HEX_BYTES - 1);
		return -EINVAL;
	}
	memcpy(ret_hex, text, MS_HEX_BYTES);
	return 0;
}

/* gid and service, both mandatory. */
static int ms_arg_key(struct ms_call *call, struct krp_key *ret_key)
{
	json_int_t service = -1;
	bool given;

	if (ms_arg_gid(call, &given, ret_key->gid) ||
	    ms_arg_int(call, "service", 0, UINT16_MAX, &service))
		return -EINVAL;
	if (!given || service < 0) {
		ms_call_fail(call, -EINVAL, "arguments 'gid' and 'service' are needed");
		return -EINVAL;
	}
	ret_key->service = krp_cpu_to_le16((__u16)service);
	return 0;
}

static void ms_call_add(struct ms_call *call, json_t *object)
{
	if (!object || json_array_append_new(call->result, object))
		ms_call_fail(call, -ENOMEM, "no memory");
}

static void ms_cmd_help(struct ms_call *call)
{
	const struct ms_command *cmd;

	for (unsigned int i = 0; (cmd = ms_command_at(i)) != NULL; i++)
		ms_call_add(call, json_pack("{s:s, s:s, s:s}", "command", cmd->name, "args",
					    cmd->args, "text", cmd->help));
}

static void ms_cmd_status(struct ms_call *call)
{
	struct ms_daemon *d = call->d;
	struct ms_server_stats st;
	struct timespec now;
	char incarnation[20], text[512];
	int64_t uptime_ms;
	json_t *o;

	ms_server_stats(d->server, &st);
	ms_server_status_text(d->server, text, sizeof(text));
	snprintf(incarnation, sizeof(incarnation), "%016llx", (unsigned long long)st.incarnation);
	clock_gettime(CLOCK_REALTIME, &now);
	uptime_ms =
		(int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 - (int64_t)st.started_unix_ms;
	o = json_pack("{s:s, s:s, s:i, s:s, s:s, s:I, s:I}", "state", ms_state_name(d->state),
		      "version", KRC_VERSION, "pid", (int)getpid(), "incarnation", incarnation,
		      "status", text, "started_unix_ms", (json_int_t)st.started_unix_ms,
		      "uptime_ms", (json_int_t)(uptime_ms > 0 ? uptime_ms : 0));
	if (o) {
		json_object_set_new(o, "serving", json_boolean(st.serving));
		json_object_set_new(o, "settling_ms", ms_json_u64(st.settling_ms));
		json_object_set_new(o, "records", ms_json_u64(st.table.records));
		json_object_set_new(o, "sessions", ms_json_u64(st.sessions));
		json_object_set_new(o, "owners", ms_json_u64(st.owners));
		json_object_set_new(o, "devices", ms_json_u64(st.devices));
		json_object_set_new(o, "listeners", ms_json_u64(st.listeners));
		json_object_set_new(o, "registered_bytes", ms_json_u64(st.registered_bytes));
		json_object_set_new(o, "config", ms_json_text(d->options.config));
	}
	ms_call_add(call, o);
}

static void ms_cmd_stats(struct ms_call *call)
{
	ms_call_add(call, ms_metrics_json(call->d));
}

static void ms_cmd_metrics(struct ms_call *call)
{
	size_t bytes;
	char *text;

	if (ms_metrics_text(call->d, &text, &bytes)) {
		ms_call_fail(call, -ENOMEM, "no memory");
		return;
	}
	ms_call_add(call, json_pack("{s:s%}", "text", text, bytes));
	free(text);
}

/**
 * struct ms_record_page - A page being filled.
 * @call: for its result.
 * @from: first session to show.
 * @room: how many more objects fit the page.
 * @scan: how many more records may be examined.
 * @keys: show DC keys.
 * @by_gid: @gid filters.
 * @gid: GID wanted.
 * @service: service wanted, or -1.
 * @by_owner: @owner filters.
 * @owner: owner wanted, as digits.
 */
struct ms_record_page {
	struct ms_call *call;
	json_int_t from;
	json_int_t room;
	unsigned int scan;
	bool keys;
	bool by_gid;
	uint8_t gid[KRP_GID_BYTES];
	json_int_t service;
	bool by_owner;
	char owner[MS_HEX_BYTES];
};

static int ms_record_page_args(struct ms_record_page *page)
{
	page->room = KRU_CTL_PAGE_MAX;
	page->scan = MS_SCAN_MAX;
	if (ms_arg_int(page->call, "from", 0, INT64_MAX, &page->from))
		return -EINVAL;
	return ms_arg_int(page->call, "count", 1, KRU_CTL_PAGE_MAX, &page->room);
}

static bool ms_page_session(void *arg, const struct ms_session_info *info)
{
	struct ms_record_page *page = arg;

	if (info->id < (uint64_t)page->from)
		return true;
	if (!page->room) {
		page->call->next = info->id;
		return false;
	}
	page->room--;
	ms_call_add(page->call, ms_json_session(info));
	return true;
}

static void ms_cmd_sessions(struct ms_call *call)
{
	struct ms_record_page page = { .call = call };

	if (!ms_record_page_args(&page))
		ms_server_each_session(call->d->server, ms_page_session, &page);
}

/**
 * struct ms_victims - Which sessions are to be disconnected.
 * @id: number of the session, or -1.
 * @member: "owner" or "key" if it is those with this @hex.
 * @hex: lower-case hexadecimal digits.
 */
struct ms_victims {
	json_int_t id;
	const char *member;
	const char *hex;
};

static bool ms_kill_wants(void *arg, const struct ms_session_info *info)
{
	const struct ms_victims *v = arg;
	char hex[MS_HEX_BYTES];

	if (!v->member)
		return v->id >= 0 && info->id == (uint64_t)v->id;
	if (!strcmp(v->member, "owner"))
		return !strcmp(v->hex, ms_hex(info->owner, sizeof(info->owner), hex));
	return !strcmp(v->hex, ms_hex(info->key_id, sizeof(info->key_id), hex));
}

/* A hexadecimal argument of the session_kill command; zeros, which mean none, are refused. */
static int ms_kill_hex(struct ms_call *call, const char *name, size_t bytes, struct ms_victims *v)
{
	json_t *arg = json_object_get(call->args, name);
	const char *text = json_string_value(arg);

	if (!arg)
		return 0;
	if (!text || strlen(text) != 2 * bytes || strspn(text, "0123456789abcdef") != 2 * bytes ||
	    strspn(text, "0") == 2 * bytes) {
		ms_call_fail(call, -EINVAL,
			     "argument '%s' is not %zu lower-case hexadecimal digits, or zero",
			     name, 2 * bytes);
		return -EINVAL;
	}
	v->member = name;
	v->hex = text;
	return 0;
}

static void ms_cmd_session_kill(struct ms_call *call)
{
	struct ms_victims v = { .id = -1 };
	json_t *o;

	if (json_object_size(call->args) != 1) {
		ms_call_fail(call, -EINVAL, "one of 'id', 'owner' and 'key' is needed");
		return;
	}
	if (ms_arg_int(call, "id", 0, INT64_MAX, &v.id) ||
	    ms_kill_hex(call, "owner", KRP_OWNER_BYTES, &v) ||
	    ms_kill_hex(call, "key", KRP_KEY_ID_BYTES, &v))
		return;
	o = json_object();
	if (o)
		json_object_set_new(
			o, "killed",
			json_integer(ms_server_kill(call->d->server, ms_kill_wants, &v)));
	ms_call_add(call, o);
}

static bool ms_add_device(void *arg, const struct ms_device_info *info)
{
	ms_call_add(arg, ms_json_device(info));
	return true;
}

static void ms_cmd_devices(struct ms_call *call)
{
	ms_server_each_device(call->d->server, ms_add_device, call);
}

static bool ms_add_listener(void *arg, const struct ms_listener_info *info)
{
	ms_call_add(arg, ms_json_listener(info));
	return true;
}

static void ms_cmd_listeners(struct ms_call *call)
{
	ms_server_each_listener(call->d->server, ms_add_listener, call);
}

static bool ms_record_page_wants(const struct ms_record_page *page,
				 const struct ms_record_info *info)
{
	char owner[MS_HEX_BYTES];

	if (page->by_gid && memcmp(page->gid, info->key.gid, KRP_GID_BYTES))
		return false;
	if (page->service >= 0 && krp_le16_to_cpu(info->key.service) != page->service)
		return false;
	return !page->by_owner ||
	       !strcmp(page->owner, ms_hex(info->owner, sizeof(info->owner), owner));
}

static bool ms_page_record(void *arg, const struct ms_record_info *info)
{
	struct ms_record_page *page = arg;

	page->scan--;
	if (ms_record_page_wants(page, info)) {
		page->room--;
		ms_call_add(page->call, ms_json_record(info, page->keys));
	}
	return page->room && page->scan;
}

static void ms_cmd_records(struct ms_call *call)
{
	struct ms_record_page page = { .call = call, .service = -1 };

	if (ms_record_page_args(&page) || ms_arg_bool(call, "keys", &page.keys) ||
	    ms_arg_gid(call, &page.by_gid, page.gid) ||
	    ms_arg_int(call, "service", 0, UINT16_MAX, &page.service) ||
	    ms_arg_owner(call, &page.by_owner, page.owner))
		return;
	call->next =
		ms_server_each_record(call->d->server, (uint64_t)page.from, ms_page_record, &page);
}

static void ms_cmd_record_get(struct ms_call *call)
{
	struct ms_record_info info;
	struct krp_key key;
	bool keys = false;

	if (ms_arg_key(call, &key) || ms_arg_bool(call, "keys", &keys))
		return;
	if (ms_server_get_record(call->d->server, &key, &info))
		ms_call_fail(call, -ENOENT, "no such record");
	else
		ms_call_add(call, ms_json_record(&info, keys));
}

static void ms_cmd_record_withdraw(struct ms_call *call)
{
	char gid[KRU_GID_TEXT];
	struct krp_key key;
	int err;

	if (ms_arg_key(call, &key))
		return;
	err = ms_server_withdraw(call->d->server, &key);
	if (err) {
		ms_call_fail(call, err, "%s", err == -ENOENT ? "no such record" : strerror(-err));
		return;
	}
	ms_log(LOG_NOTICE, "record %s service %u withdrawn by an operator",
	       kru_gid_format(key.gid, gid), krp_le16_to_cpu(key.service));
}

static void ms_add_item(void *arg, const struct kru_conf_item *item)
{
	char key[128];

	snprintf(key, sizeof(key), "%s.%s", item->section, item->key);
	ms_call_add(arg,
		    json_pack("{s:s, s:o, s:s, s:s, s:s, s:s, s:b, s:s}", "key", key, "value",
			      ms_json_text(item->value), "default", item->dflt, "unit", item->unit,
			      "range", item->range, "origin", kru_conf_origin_name(item->origin),
			      "reloadable", item->reloadable, "help", item->help));
}

static void ms_cmd_config(struct ms_call *call)
{
	kru_conf_each(&call->d->conf, ms_add_item, call);
}

static void ms_cmd_reload(struct ms_call *call)
{
	if (call->d->state == MS_DRAINING)
		ms_call_fail(call, -ESHUTDOWN, "the daemon is letting its clients go");
	else
		call->code =
			ms_daemon_reload(call->d, call->result, call->error, sizeof(call->error));
}

static void ms_call_keep_off(struct ms_call *call, bool off)
{
	if (ms_daemon_keep_off(call->d, off))
		ms_call_fail(call, -ESHUTDOWN, "the daemon is letting its clients go");
	else
		ms_cmd_status(call);
}

static void ms_cmd_drain(struct ms_call *call)
{
	ms_call_keep_off(call, true);
}

static void ms_cmd_undrain(struct ms_call *call)
{
	ms_call_keep_off(call, false);
}

static void ms_cmd_monitor(struct ms_call *call)
{
	json_t *events = json_object_get(call->args, "events"), *event;
	struct ms_server_stats st;
	size_t i;

	if (!events) {
		call->monitor_records = true;
		call->monitor_sessions = true;
	} else if (!json_is_array(events) || !json_array_size(events)) {
		ms_call_fail(call, -EINVAL, "argument 'events' is not a list of names");
		return;
	}
	json_array_foreach(events, i, event)
	{
		const char *name = json_string_value(event);

		if (name && !strcmp(name, "records")) {
			call->monitor_records = true;
		} else if (name && !strcmp(name, "sessions")) {
			call->monitor_sessions = true;
		} else {
			ms_call_fail(call, -EINVAL, "event '%.40s' is neither records nor sessions",
				     name ? name : "");
			return;
		}
	}
	ms_server_stats(call->d->server, &st);
	ms_call_add(call,
		    json_pack("{s:s, s:I, s:I}", "state", ms_state_name(call->d->state), "records",
			      (json_int_t)st.table.records, "sessions", (json_int_t)st.sessions));
}

static const struct ms_command ms_commands[] = {
	{ "help", "", "List the commands.", ms_cmd_help },
	{ "status", "", "Show what the daemon does.", ms_cmd_status },
	{ "stats", "", "Show every counter.", ms_cmd_stats },
	{ "metrics", "", "Show every counter as Prometheus text.", ms_cmd_metrics },
	{ "sessions", "from count", "List the connections.", ms_cmd_sessions },
	{ "session_kill", "id owner key", "Disconnect clients.", ms_cmd_session_kill },
	{ "devices", "", "List the ports of the RDMA devices.", ms_cmd_devices },
	{ "listeners", "", "List the addresses to listen at.", ms_cmd_listeners },
	{ "records", "from count keys gid service owner", "List records.", ms_cmd_records },
	{ "record_get", "gid service keys", "Show one record.", ms_cmd_record_get },
	{ "record_withdraw", "gid service", "Take a record out.", ms_cmd_record_withdraw },
	{ "config", "", "Show every key with its value and origin.", ms_cmd_config },
	{ "reload", "", "Read the configuration again.", ms_cmd_reload },
	{ "drain", "", "Send clients to other servers and keep them off.", ms_cmd_drain },
	{ "undrain", "", "Let clients come again.", ms_cmd_undrain },
	{ "monitor", "events", "Follow changes of records and sessions.", ms_cmd_monitor },
};

#define MS_COMMANDS_NR (sizeof(ms_commands) / sizeof(*ms_commands))
KRP_STATIC_ASSERT(MS_COMMANDS_NR <= MS_COMMANDS_MAX, "ms_daemon.command_calls");

static const struct ms_command *ms_command_at(unsigned int i)
{
	return i < MS_COMMANDS_NR ? &ms_commands[i] : NULL;
}

const char *ms_command_name(unsigned int i)
{
	return i < MS_COMMANDS_NR ? ms_commands[i].name : NULL;
}

/* Is @word one of the blank-separated @words? */
static bool ms_has_word(const char *words, const char *word)
{
	size_t len = strlen(word);

	while (*words) {
		size_t span = strcspn(words, " ");

		if (span == len && !memcmp(words, word, len))
			return len > 0;
		words += span + (words[span] == ' ');
	}
	return false;
}

static bool ms_call_args_known(struct ms_call *call, const struct ms_command *cmd)
{
	const char *name;
	json_t *value;

	json_object_foreach(call->args, name, value)
	{
		if (!ms_has_word(cmd->args, name)) {
			ms_call_fail(call, -EINVAL, "'%s' has no argument '%.40s'", cmd->name,
				     name);
			return false;
		}
	}
	return true;
}

static void ms_call_dispatch(struct ms_call *call, json_t *request)
{
	const char *command = json_string_value(json_object_get(request, "command"));
	const char *member;
	json_t *value;

	call->args = json_object_get(request, "args");
	if (!command || (call->args && !json_is_object(call->args))) {
		ms_call_fail(call, -EINVAL,
			     "a request is {\"command\": NAME} with \"args\": {...} at most");
		return;
	}
	json_object_foreach(request, member, value)
	{
		if (strcmp(member, "command") && strcmp(member, "args")) {
			ms_call_fail(call, -EINVAL, "unknown member '%.40s'", member);
			return;
		}
	}
	for (unsigned int i = 0; i < MS_COMMANDS_NR; i++) {
		if (strcmp(ms_commands[i].name, command))
			continue;
		call->d->command_calls[i]++;
		if (ms_call_args_known(call, &ms_commands[i]))
			ms_commands[i].run(call);
		return;
	}
	ms_call_fail(call, -EOPNOTSUPP, "unknown command '%.40s'", command);
}

char *ms_json_line(json_t *object, size_t *ret_bytes)
{
	char *text = object ? json_dumps(object, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;

	json_decref(object);
	if (!text)
		return NULL;
	*ret_bytes = strlen(text) + 1;
	text[*ret_bytes - 1] = '\n'; /* in place of the NUL: the length goes along */
	return text;
}

void ms_reply_error(int code, const char *error, struct ms_reply *ret_reply)
{
	*ret_reply = (struct ms_reply){ 0 };
	ret_reply->text = ms_json_line(json_pack("{s:b, s:o, s:i}", "ok", 0, "error",
						 ms_json_text(error), "code", code),
				       &ret_reply->bytes);
}

static void ms_call_reply(struct ms_call *call, struct ms_reply *ret_reply)
{
	json_t *reply;

	if (call->code) {
		ms_reply_error(call->code, call->error, ret_reply);
		return;
	}
	reply = json_pack("{s:b, s:O}", "ok", 1, "result", call->result);
	if (reply && call->next)
		json_object_set_new(reply, "next", json_integer((json_int_t)call->next));
	*ret_reply = (struct ms_reply){ .monitor_records = call->monitor_records,
					.monitor_sessions = call->monitor_sessions };
	ret_reply->text = ms_json_line(reply, &ret_reply->bytes);
	if (ret_reply->text && ret_reply->bytes > KRU_CTL_REPLY_BYTES) {
		free(ret_reply->text);
		ms_reply_error(-EMSGSIZE, "the reply is too long, ask with a smaller count",
			       ret_reply);
	}
}

void ms_command_run(struct ms_daemon *d, const char *request, size_t bytes,
		    struct ms_reply *ret_reply)
{
	struct ms_call call = { .d = d, .result = json_array() };
	json_error_t why;
	json_t *object;

	object = json_loadb(request, bytes, JSON_REJECT_DUPLICATES, &why);
	if (!call.result)
		ms_call_fail(&call, -ENOMEM, "no memory");
	else if (!object)
		ms_call_fail(&call, -EINVAL, "not JSON: %s", why.text);
	else if (!json_is_object(object))
		ms_call_fail(&call, -EINVAL, "a request is a JSON object");
	else
		ms_call_dispatch(&call, object);
	ms_call_reply(&call, ret_reply);
	json_decref(call.result);
	json_decref(object);
}
