// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Requests of the control socket: ms_command_run() on any bytes, in a daemon
 * that has records but no RDMA device.
 *
 * Whatever is asked, the reply is one line with one JSON object as common/ctl.h
 * says, within its bound, and a refusal gives its reason and a negative errno.
 */
#include <ev.h>
#include <syslog.h>

#include "common/ctl.h"
#include "metaserver/commands.h"
#include "metaserver/daemon.h"
#include "metaserver/log.h"
#include "metaserver/server_priv.h"
#include "tests/fuzz/fuzz.h"

#define FZ_RECORDS 5

static struct ms_daemon fz_daemon;

static void fz_report(void *arg, const char *file, unsigned int line, const char *text)
{
	(void)arg;
	fprintf(stderr, "%s:%u: %s\n", file, line, text);
}

/* Records may be withdrawn by a request: those that are missing come back. */
static void fz_fill(struct ms_daemon *d)
{
	struct krp_value value = { .kind = KRP_KIND_RAW, .len = 3 };
	struct krp_key key = { .gid = { 0xfd } };
	unsigned int i;

	value.generation = krp_cpu_to_le64(1);
	for (i = 0; i < FZ_RECORDS; i++) {
		key.gid[15] = (__u8)i;
		ms_ledger_import(d->server->hub.ledger, ms_now(d->server), &key, &value, 1000000);
	}
}

static void fz_begin(struct ms_daemon *d)
{
	if (d->server)
		return;
	ms_log_init();
	ms_log_set_level(LOG_CRIT);
	kru_conf_defaults(&d->conf);
	FZ_ASSERT(!kru_conf_set(&d->conf, "metaserver.key_file=", fz_report, NULL));
	/* What `reload` reads; its level keeps the log to what explains a failure. */
	d->options.config = "/dev/null";
	d->options.set[d->options.set_nr++] = "metaserver.log_level=err";
	d->loop = ev_default_loop(EVFLAG_AUTO);
	FZ_ASSERT(d->loop && !ms_server_new(d->loop, &d->conf, &d->server));
}

static void fz_check_reply(const struct ms_reply *reply)
{
	json_t *object, *ok;
	json_error_t why;

	FZ_ASSERT(reply->text && reply->bytes >= 2 && reply->bytes <= KRU_CTL_REPLY_BYTES);
	FZ_ASSERT(memchr(reply->text, '\n', reply->bytes) == reply->text + reply->bytes - 1);
	object = json_loadb(reply->text, reply->bytes, JSON_REJECT_DUPLICATES, &why);
	FZ_ASSERT(json_is_object(object));
	ok = json_object_get(object, "ok");
	FZ_ASSERT(json_is_boolean(ok));
	if (json_is_true(ok)) {
		FZ_ASSERT(json_is_array(json_object_get(object, "result")));
	} else {
		FZ_ASSERT(json_string_length(json_object_get(object, "error")));
		FZ_ASSERT(json_integer_value(json_object_get(object, "code")) < 0);
		FZ_ASSERT(!reply->monitor_records && !reply->monitor_sessions);
	}
	json_decref(object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ms_daemon *d = &fz_daemon;
	struct ms_reply reply;
	char *request;

	if (size > KRU_CTL_REQUEST_BYTES || memchr(data, '\n', size))
		return 0;
	fz_begin(d);
	fz_fill(d);
	request = fz_copy(data, size);
	ms_command_run(d, request, size, &reply);
	fz_check_reply(&reply);
	free(reply.text);
	free(request);
	return 0;
}
