// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * krcore-metaserver: command line, then the parts in their order, then the loop.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ev.h>

#include "common/auth.h"
#include "metaserver/control.h"
#include "metaserver/daemon.h"
#include "metaserver/http.h"
#include "metaserver/log.h"
#include "metaserver/server.h"

/* Check the key file, too, as a start would. */
static int ms_check_key(const struct kru_conf *conf)
{
	const char *path = conf->ms.key_file;
	struct kru_keys keys = { .nr = 0 };
	int err = -ENOENT;

	if (*path && conf->ms.require_auth != KRU_AUTH_NO)
		err = kru_keys_load(path, &keys);
	kru_keys_wipe(&keys);
	if (!err)
		return 0;
	if (err == -ENOENT && conf->ms.require_auth != KRU_AUTH_YES) {
		fprintf(stderr,
			"krcore-metaserver: warning: no cluster key: every host of the fabric may "
			"read the table and publish\n");
		return 0;
	}
	fprintf(stderr, "krcore-metaserver: key_file '%s': %s%s\n", path, kru_keys_error(err),
		err == -ENOENT ? ", and require_auth is yes" : "");
	return err;
}

static void ms_log_key(void *arg, const struct kru_conf_item *item)
{
	(void)arg;
	if (!strcmp(item->section, "metaserver"))
		ms_log(item->origin == KRU_CONF_DEFAULT ? LOG_DEBUG : LOG_INFO, "%s.%s = %s (%s)",
		       item->section, item->key, item->value, kru_conf_origin_name(item->origin));
}

/* Return: the exit status if the command line asked for no more, else -1. */
static int ms_show_and_exit(const struct ms_daemon *d)
{
	if (d->options.print)
		kru_conf_print(&d->conf, stdout);
	if (d->options.check)
		ms_options_advise(&d->options, &d->conf, kru_conf_report_stderr,
				  (void *)"krcore-metaserver: warning");
	if (d->options.check && ms_check_key(&d->conf))
		return EXIT_FAILURE;
	if (!d->options.check && !d->options.print)
		return -1;
	if (!d->options.print)
		printf("%s: ok\n", d->options.config);
	return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* The order matters: each part uses those before it. */
static int ms_run(struct ms_daemon *d)
{
	struct ms_server_stats st;
	int err;

	err = ms_server_new(d->loop, &d->conf, &d->server);
	if (err)
		return err;
	ms_server_stats(d->server, &st);
	ms_log_set_incarnation(st.incarnation);
	ms_log(LOG_NOTICE, "version " KRC_VERSION ", incarnation %016llx",
	       (unsigned long long)st.incarnation);
	kru_conf_each(&d->conf, ms_log_key, NULL);
	ms_options_advise(&d->options, &d->conf, ms_daemon_advise, NULL);

	ms_daemon_watch(d);
	err = ms_control_new(d, &d->control);
	if (err)
		goto out_watch;
	err = ms_http_new(d, &d->http);
	if (err)
		goto out_control;
	err = ms_server_start(d->server);
	if (err) {
		ms_log(LOG_ERR, "cannot start: %s", strerror(-err));
		goto out_http;
	}

	/* a copy that has begun may be over when the timer comes for the first time */
	ev_invoke(d->loop, &d->status, EV_TIMER);
	ev_run(d->loop, 0);

	ms_notify_stopping();
	ms_log(LOG_NOTICE, "exiting");
out_http:
	ms_http_free(d->http);
out_control:
	ms_control_free(d->control);
out_watch:
	ms_daemon_unwatch(d);
	ms_server_free(d->server);
	return err;
}

int main(int argc, char **argv)
{
	struct ms_daemon d = { .state = MS_STARTING };
	int status;

	ms_options_parse(argc, argv, &d.options);
	if (ms_options_load(&d.options, &d.conf, kru_conf_report_stderr,
			    (void *)"krcore-metaserver"))
		return EXIT_FAILURE;
	status = ms_show_and_exit(&d);
	if (status >= 0)
		return status;

	ms_log_init();
	ms_log_set_level(LOG_ERR + (int)d.conf.ms.log_level);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN); /* until there is something to reload */
	d.loop = ev_default_loop(EVFLAG_NOSIGMASK);
	if (!d.loop) {
		ms_log(LOG_ERR, "no event loop: %s", strerror(errno));
		return EXIT_FAILURE;
	}
	status = ms_run(&d) ? EXIT_FAILURE : EXIT_SUCCESS;
	ev_loop_destroy(d.loop);
	return status;
}
