// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Copying the table of a peer at start, with libkrcore.
 *
 * libkrcore waits, the loop must not: a thread of its own walks the peer's
 * table and hands records over in batches; the loop puts them into the ledger.
 * struct ms_import is shared by the two under its lock and freed by whoever
 * lets go of it last, so that a copy that hangs can be given up.
 *
 * The copy is over when the walk ends, or when copy_timeout_ms have passed
 * without a record. Then the server serves with what it has.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <krcore/krcore.h>

#include "common/wire.h"
#include "metaserver/log.h"
#include "metaserver/server_priv.h"

#define MS_IMPORT_BATCH 4096U
#define MS_IMPORT_TEXT 256

struct ms_import_record {
	struct krp_key key;
	struct krp_value value;
};

/**
 * struct ms_import - One copy.
 * @srv: server; the thread does not touch it.
 * @loop: its loop, for @wake.
 * @wake: tells the loop of a batch or of the end; sent under @lock while @srv is set.
 * @patience: gives the copy up.
 * @lock: guards what follows.
 * @room: the loop has taken a batch, or has given up.
 * @abandoned: the loop has given up.
 * @done: the thread has ended, and leaves this to the loop.
 * @err: outcome of the copy.
 * @settled: the peer was settled: what it had is all there was.
 * @lost: a record could not be taken.
 * @text: for people: which peer, or what went wrong.
 * @nr: records in @batch.
 * @batch: records that the loop has not taken yet.
 * @taken: records taken by the loop.
 * @checked: @taken when @patience last looked.
 * @servers: peers.
 * @key_file: cluster key.
 * @timeout_ms: copy_timeout_ms.
 */
struct ms_import {
	struct ms_server *srv;
	struct ev_loop *loop;
	ev_async wake;
	ev_timer patience;
	pthread_mutex_t lock;
	pthread_cond_t room;
	bool abandoned;
	bool done;
	int err;
	bool settled;
	bool lost;
	char text[MS_IMPORT_TEXT];
	unsigned int nr;
	struct ms_import_record batch[MS_IMPORT_BATCH];
	uint64_t taken;
	uint64_t checked;
	char servers[sizeof(((struct kru_conf_ms *)0)->copy_from)];
	char key_file[sizeof(((struct kru_conf_ms *)0)->key_file)];
	uint32_t timeout_ms;
};

static void ms_import_free(struct ms_import *im)
{
	pthread_cond_destroy(&im->room);
	pthread_mutex_destroy(&im->lock);
	free(im);
}

/* the thread */

static bool ms_import_record(void *arg, const struct krcore_key *key,
			     const struct krcore_value *value)
{
	struct ms_import *im = arg;
	struct ms_import_record *to;
	bool go_on;

	pthread_mutex_lock(&im->lock);
	while (im->nr == MS_IMPORT_BATCH && !im->abandoned)
		pthread_cond_wait(&im->room, &im->lock);
	go_on = !im->abandoned;
	if (go_on) {
		to = &im->batch[im->nr++];
		kru_key_to_wire(key, &to->key);
		kru_value_to_wire(value, value->generation, &to->value);
		if (im->nr == 1 || im->nr == MS_IMPORT_BATCH)
			ev_async_send(im->loop, &im->wake);
	}
	pthread_mutex_unlock(&im->lock);
	return go_on;
}

/* Walk the first peer that is attached and can be walked to the end. */
static int ms_import_walk(struct ms_import *im, struct krcore_ctx *ctx, char *text,
			  bool *ret_settled)
{
	struct krcore_server_info info[32];
	unsigned int i, nr = (unsigned int)krcore_servers(ctx, info, 32);
	int err = -EHOSTUNREACH;

	for (i = 0; err && err != -ECANCELED && i < nr && i < 32; i++) {
		if (info[i].state != KRCORE_SERVER_UP)
			continue;
		err = krcore_walk(ctx, i, ms_import_record, im, NULL);
		*ret_settled = !info[i].settling_ms;
		snprintf(text, MS_IMPORT_TEXT, "%.127s%s%.120s", info[i].address, err ? ": " : "",
			 err ? krcore_error_text() : "");
	}
	return err;
}

static int ms_import_copy(struct ms_import *im, char *text, bool *ret_settled)
{
	struct krcore_options opts = {
		.size = sizeof(opts),
		.servers = im->servers,
		.key_file = im->key_file,
		.name = "krcore-metaserver (copy)",
		.timeout_ms = im->timeout_ms,
	};
	struct krcore_ctx *ctx;
	int err = krcore_open(&opts, &ctx);

	if (err) {
		snprintf(text, MS_IMPORT_TEXT, "%.250s", krcore_error_text());
		return err;
	}
	err = ms_import_walk(im, ctx, text, ret_settled);
	krcore_close(ctx);
	return err;
}

static void *ms_import_thread(void *arg)
{
	char text[MS_IMPORT_TEXT] = "";
	struct ms_import *im = arg;
	bool abandoned, settled = false;
	int err;

	err = ms_import_copy(im, text, &settled);
	pthread_mutex_lock(&im->lock);
	abandoned = im->abandoned;
	im->err = err;
	im->settled = settled;
	memcpy(im->text, text, sizeof(im->text));
	im->done = true;
	if (!abandoned)
		ev_async_send(im->loop, &im->wake);
	pthread_mutex_unlock(&im->lock);
	if (abandoned)
		ms_import_free(im);
	return NULL;
}

/* the loop */

/* Let go of the copy; the thread ends on its own. */
static void ms_import_end(struct ms_import *im)
{
	bool done;

	ev_async_stop(im->loop, &im->wake);
	ev_timer_stop(im->loop, &im->patience);
	im->srv->import = NULL;
	pthread_mutex_lock(&im->lock);
	im->abandoned = true;
	done = im->done;
	pthread_cond_signal(&im->room);
	pthread_mutex_unlock(&im->lock);
	if (done)
		ms_import_free(im);
}

static void ms_import_take(struct ms_import *im)
{
	struct ms_server *srv = im->srv;
	unsigned int i;
	int ret;

	for (i = 0; i < im->nr; i++) {
		ret = ms_ledger_import(srv->hub.ledger, ms_now(srv), &im->batch[i].key,
				       &im->batch[i].value, srv->conf.lease_ms);
		im->lost |= ret < 0;
		if (ret < 0 && ret != -EINVAL) {
			ms_log(LOG_WARNING, "copy_from: the copy is not complete (%s)",
			       strerror(-ret));
			break;
		}
	}
	im->taken += im->nr;
	im->nr = 0;
	pthread_cond_signal(&im->room);
}

static void ms_import_over(struct ms_import *im)
{
	struct ms_server *srv = im->srv;

	ms_import_end(im);
	ms_listeners_start(srv);
	ms_server_evaluate(srv);
}

static void ms_import_on_wake(struct ev_loop *loop, ev_async *w, int events)
{
	struct ms_import *im = w->data;
	bool done;

	(void)loop;
	(void)events;
	pthread_mutex_lock(&im->lock);
	ms_import_take(im);
	done = im->done;
	pthread_mutex_unlock(&im->lock);
	if (!done)
		return;
	if (im->err)
		ms_log(LOG_WARNING, "copy_from: %s (%s); serving with %llu records", im->text,
		       strerror(-im->err), (unsigned long long)im->taken);
	else
		ms_log(LOG_NOTICE, "copy_from: %llu records copied from %s",
		       (unsigned long long)im->taken, im->text);
	if (!im->err && im->settled && !im->lost) {
		im->srv->copied = true;
		im->srv->hub.settled_ms = 0;
	}
	ms_import_over(im);
}

static void ms_import_on_patience(struct ev_loop *loop, ev_timer *w, int events)
{
	struct ms_import *im = w->data;

	(void)loop;
	(void)events;
	if (im->taken != im->checked) {
		im->checked = im->taken;
		return;
	}
	ms_log(LOG_WARNING, "copy_from: nothing came for %u ms, serving with %llu records",
	       im->timeout_ms, (unsigned long long)im->taken);
	ms_import_over(im);
}

static int ms_import_spawn(struct ms_import *im)
{
	sigset_t all, old;
	pthread_t thread;
	int err;

	sigfillset(&all); /* signals are the loop's */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, NULL, ms_import_thread, im);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!err)
		pthread_detach(thread);
	return -err;
}

int ms_import_start(struct ms_server *srv)
{
	struct ms_import *im = calloc(1, sizeof(*im));
	double pause = srv->conf.copy_timeout_ms / 1000.0;
	int err;

	if (!im)
		return -ENOMEM;
	im->srv = srv;
	im->loop = srv->loop;
	im->timeout_ms = srv->conf.copy_timeout_ms;
	memcpy(im->servers, srv->conf.copy_from, sizeof(im->servers));
	if (srv->hub.auth)
		memcpy(im->key_file, srv->conf.key_file, sizeof(im->key_file));
	pthread_mutex_init(&im->lock, NULL);
	pthread_cond_init(&im->room, NULL);
	err = ms_import_spawn(im);
	if (err) {
		ms_import_free(im);
		return err;
	}
	srv->import = im;
	ev_async_init(&im->wake, ms_import_on_wake);
	im->wake.data = im;
	/* a little more than the thread's own time-out, which has the better text */
	ev_timer_init(&im->patience, ms_import_on_patience, pause + 0.5, pause + 0.5);
	im->patience.data = im;
	ev_async_start(srv->loop, &im->wake);
	ev_timer_start(srv->loop, &im->patience);
	return 0;
}

void ms_import_cancel(struct ms_server *srv)
{
	ms_import_end(srv->import);
}
