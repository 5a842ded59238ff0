// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Copying the table of a peer at start, with libkrcore.
 *
 * libkrcore blocks, the loop must not: a thread of its own walks the peer's
 * table and passes records in batches; the loop puts them into the ledger.
 * struct ms_import is shared by the two under its lock; the last of them to drop
 * its reference frees it, so that the loop can abandon a copy that hangs.
 *
 * All peers are attached, or have failed, before one of them is chosen (peer.h).
 * A copy is used as a whole or not at all: the records of one that broke off, or that
 * met bytes which could not be verified, are removed before the next peer is walked.
 *
 * The copy ends when a walk was complete, when no peer is left, or when copy_timeout_ms
 * have passed without a new record or another peer: libkrcore gives up a peer that stalls
 * after that time, which does not shorten the time of the next peer.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <krcore/krcore.h>

#include "client/wire.h"
#include "metaserver/log.h"
#include "metaserver/peer.h"
#include "metaserver/server_priv.h"

#define MS_IMPORT_BATCH 4096U
#define MS_IMPORT_TEXT 256
#define MS_IMPORT_POLL_MS 20

struct ms_import_record {
	struct krp_key key;
	struct krp_value value;
};

/**
 * struct ms_import - One copy.
 * @srv: server; the thread does not touch it.
 * @loop: its loop, for @wake.
 * @wake: wakes the loop for a batch or the end; sent under @lock while @srv is set.
 * @timeout: timer that gives the copy up.
 * @lock: guards what follows.
 * @room: condition: the loop has taken a batch, or has given up.
 * @abandoned: the loop has given up.
 * @done: the thread has ended, and the loop frees this.
 * @err: outcome of the copy.
 * @settled: the peer was settled, so its table was complete.
 * @lost: a record could not be stored.
 * @again: the records so far are to be dropped; another walk begins.
 * @walks: attachments that have come about, and walks that have begun.
 * @text: which peer, or what went wrong; for diagnostics.
 * @nr: records in @batch.
 * @batch: records that the loop has not taken yet.
 * @taken: records taken by the loop.
 * @checked: @taken when @timeout last looked.
 * @walks_checked: @walks then.
 * @servers: peers.
 * @key_file: cluster key.
 * @timeout_ms: copy_timeout_ms.
 * @config_fd: the daemon's configuration as a file.
 */
struct ms_import {
	struct ms_server *srv;
	struct ev_loop *loop;
	ev_async wake;
	ev_timer timeout;
	pthread_mutex_t lock;
	pthread_cond_t room;
	bool abandoned;
	bool done;
	int err;
	bool settled;
	bool lost;
	bool again;
	unsigned int walks;
	char text[MS_IMPORT_TEXT];
	unsigned int nr;
	struct ms_import_record batch[MS_IMPORT_BATCH];
	uint64_t taken;
	uint64_t checked;
	unsigned int walks_checked;
	char servers[sizeof(((struct kru_conf_ms *)0)->copy_from)];
	char key_file[sizeof(((struct kru_conf_ms *)0)->key_file)];
	uint32_t timeout_ms;
	int config_fd;
};

static void ms_import_free(struct ms_import *im)
{
	if (im->config_fd >= 0)
		close(im->config_fd);
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

/* Drop the records of the walk so far. */
static void ms_import_again(struct ms_import *im)
{
	pthread_mutex_lock(&im->lock);
	im->nr = 0;
	im->again = true;
	if (!im->abandoned)
		ev_async_send(im->loop, &im->wake);
	pthread_mutex_unlock(&im->lock);
}

/* What the copy is given more time for: it is attached to a peer, or begins to walk one. */
static void ms_import_progress(struct ms_import *im)
{
	pthread_mutex_lock(&im->lock);
	im->walks++;
	pthread_mutex_unlock(&im->lock);
}

/* Walk one peer. Return: 0 if the copy is whole, else a negative errno and why in @text. */
static int ms_import_walk(struct ms_import *im, struct krcore_ctx *ctx, unsigned int peer,
			  const struct krcore_server_info *info, char *text, bool *ret_settled)
{
	struct krcore_check check = { .size = sizeof(check) };
	int err;

	ms_import_progress(im);
	err = krcore_walk(ctx, peer, ms_import_record, im, &check);
	*ret_settled = ms_copy_settled(&check, info);
	if (!err && ms_copy_whole(&check)) {
		snprintf(text, MS_IMPORT_TEXT, "%.127s", info->address);
		return 0;
	}
	if (err)
		snprintf(text, MS_IMPORT_TEXT, "%.127s: %.120s", info->address,
			 krcore_error_text());
	else
		snprintf(
			text, MS_IMPORT_TEXT,
			"%.127s: %llu buckets prove nothing, %llu entries of the directory are off",
			info->address, (unsigned long long)check.bad,
			(unsigned long long)check.directory_errors);
	ms_import_again(im);
	return err ? err : -EBADMSG;
}

/* Wait until each peer is attached or has failed. Return: how many there are. */
static unsigned int ms_import_peers(struct ms_import *im, struct krcore_ctx *ctx,
				    struct krcore_server_info *info)
{
	const struct timespec pause = { .tv_nsec = MS_IMPORT_POLL_MS * 1000000L };
	uint64_t until_ns = ms_mono_ns() + im->timeout_ms * 1000000ULL;
	unsigned int nr;

	info->size = sizeof(*info);
	for (;;) {
		nr = (unsigned int)krcore_servers(ctx, info, MS_PEERS_MAX);
		nr = nr < MS_PEERS_MAX ? nr : MS_PEERS_MAX;
		if (ms_peers_known(info, nr) || ms_mono_ns() >= until_ns)
			return nr;
		nanosleep(&pause, NULL);
	}
}

/* Walk the peers, the best first, until one gives a whole copy. */
static int ms_import_choose(struct ms_import *im, struct krcore_ctx *ctx, char *text,
			    bool *ret_settled)
{
	struct krcore_server_info info[MS_PEERS_MAX];
	unsigned int nr = ms_import_peers(im, ctx, info);
	int at, err = -EHOSTUNREACH;
	uint64_t tried = 0;

	while (err && err != -ECANCELED && (at = ms_peer_best(info, nr, tried)) >= 0) {
		tried |= 1ULL << at;
		err = ms_import_walk(im, ctx, (unsigned int)at, &info[at], text, ret_settled);
	}
	return err;
}

static int ms_import_copy(struct ms_import *im, char *text, bool *ret_settled)
{
	char config[32];
	struct krcore_options opts = {
		.size = sizeof(opts),
		.config_file = config,
		.servers = im->servers,
		.key_file = im->key_file,
		.name = "krcore-metaserver (copy)",
		.timeout_ms = im->timeout_ms,
		.flags = KRCORE_OPEN_DIRECT,
	};
	struct krcore_ctx *ctx;
	int err;

	snprintf(config, sizeof(config), "/proc/self/fd/%d", im->config_fd);
	err = krcore_open(&opts, &ctx);
	if (err) {
		snprintf(text, MS_IMPORT_TEXT, "%.250s", krcore_error_text());
		return err;
	}
	ms_import_progress(im); /* a peer is there: from here on its records count */
	err = ms_import_choose(im, ctx, text, ret_settled);
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

/*
 * The daemon's own configuration, with the options of its command line, as a file that
 * libkrcore can read: the file in /etc may be another one, or invalid. Return: its
 * descriptor, or a negative errno.
 */
static int ms_import_config(const struct kru_conf *conf)
{
	int fd = memfd_create("krcore.conf", MFD_CLOEXEC), copy, err;
	FILE *to;

	if (fd < 0)
		return -errno;
	copy = dup(fd); /* fclose() would take @fd with it */
	to = copy < 0 ? NULL : fdopen(copy, "w");
	if (!to) {
		err = -errno;
		if (copy >= 0)
			close(copy);
		close(fd);
		return err;
	}
	kru_conf_print(conf, to);
	err = ferror(to) ? -EIO : 0;
	if (fclose(to) || err) {
		close(fd);
		return -EIO;
	}
	return fd;
}

/* the loop */

/* Abandon the copy; the thread ends on its own. */
static void ms_import_end(struct ms_import *im)
{
	bool done;

	ev_async_stop(im->loop, &im->wake);
	ev_timer_stop(im->loop, &im->timeout);
	im->srv->copy.import = NULL;
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

	if (im->again) {
		ms_ledger_import_drop(srv->hub.ledger);
		im->again = false;
		im->lost = false;
		im->taken = 0;
	}
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

/*
 * An incomplete copy is not used. That is logged at once, and shown as STATUS and a metric
 * until the server ends.
 */
static void ms_import_unused(struct ms_import *im, const char *why)
{
	struct ms_server *srv = im->srv;

	ms_ledger_import_drop(srv->hub.ledger);
	snprintf(srv->copy.failed, sizeof(srv->copy.failed), "copy_from failed: %.200s", why);
	ms_log(LOG_WARNING, "copy_from: %s; serving without a copy", why);
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
	if (im->err || im->lost)
		ms_import_unused(im, im->err ? im->text : "not all records could be taken");
	else
		ms_log(LOG_NOTICE, "copy_from: %llu records copied from %s",
		       (unsigned long long)im->taken, im->text);
	im->srv->copy.done = !im->err && im->settled && !im->lost;
	ms_import_over(im);
}

static void ms_import_on_timeout(struct ev_loop *loop, ev_timer *w, int events)
{
	struct ms_import *im = w->data;
	unsigned int walks;
	char why[64];

	(void)loop;
	(void)events;
	pthread_mutex_lock(&im->lock);
	walks = im->walks;
	pthread_mutex_unlock(&im->lock);
	if (im->taken != im->checked || walks != im->walks_checked) {
		im->checked = im->taken;
		im->walks_checked = walks;
		return;
	}
	snprintf(why, sizeof(why), "nothing came for %u ms", im->timeout_ms);
	ms_import_unused(im, why);
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
	ev_async_init(&im->wake, ms_import_on_wake);
	im->wake.data = im;
	/* a little more than the thread's own time-out, whose text is more precise */
	ev_timer_init(&im->timeout, ms_import_on_timeout, pause + 0.5, pause + 0.5);
	im->timeout.data = im;
	im->config_fd = ms_import_config(&srv->copy.conf);
	err = im->config_fd < 0 ? im->config_fd : 0;
	if (!err) {
		/* before there is a thread: ev_async_start() would forget that it was woken */
		ev_async_start(srv->loop, &im->wake);
		err = ms_import_spawn(im);
	}
	if (err) {
		ev_async_stop(srv->loop, &im->wake);
		ms_import_free(im);
		return err;
	}
	ev_timer_start(srv->loop, &im->timeout);
	srv->copy.import = im;
	return 0;
}

void ms_import_cancel(struct ms_server *srv)
{
	ms_import_end(srv->copy.import);
}
