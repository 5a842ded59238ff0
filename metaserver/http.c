// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The metrics over HTTP: see http.h. libmicrohttpd keeps its sockets in an epoll
 * set of its own; that set is one descriptor in the loop, and its next timeout
 * one timer.
 */
#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ev.h>
#include <microhttpd.h>

#include "common/addr.h"
#include "metaserver/daemon.h"
#include "metaserver/http.h"
#include "metaserver/log.h"
#include "metaserver/metrics.h"
#include "metaserver/server.h"

/* At its limit of connections the library stops listening until it is run once more. */
#define MS_HTTP_TICK_S 1.
#define MS_HTTP_RETRY_S 5. /* between attempts to listen at an address that is in use */

/**
 * struct ms_http - The server.
 * @d: daemon.
 * @mhd: libmicrohttpd; NULL as long as the address is in use.
 * @error: why not, as last logged.
 * @io: its epoll descriptor.
 * @timer: its next timeout, or the next attempt to listen.
 */
struct ms_http {
	struct ms_daemon *d;
	struct MHD_Daemon *mhd;
	int error;
	ev_io io;
	ev_timer timer;
};

static enum MHD_Result ms_http_answer(struct MHD_Connection *connection, unsigned int status,
				      const char *type, char *text, size_t bytes,
				      enum MHD_ResponseMemoryMode mode)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(bytes, text, mode);
	enum MHD_Result result;

	if (!response) {
		if (mode == MHD_RESPMEM_MUST_FREE)
			free(text);
		return MHD_NO;
	}
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result ms_http_error(struct MHD_Connection *connection, unsigned int status,
				     const char *text)
{
	return ms_http_answer(connection, status, "text/plain; charset=utf-8", (char *)text,
			      strlen(text), MHD_RESPMEM_PERSISTENT);
}

/* Probes for load balancers and rolling restarts: 200 if true, 503 and the reason if not. */
static enum MHD_Result ms_http_probe(const struct ms_http *http, struct MHD_Connection *connection,
				     const char *url)
{
	const struct ms_daemon *d = http->d;
	struct ms_server_stats st;
	bool well = true;
	char *text;
	int bytes;

	ms_server_stats(d->server, &st);
	if (strcmp(url, "/healthz")) /* for /healthz any answer is enough */
		well = d->state == MS_SERVING;
	if (!strcmp(url, "/settled"))
		well = well && !st.settling_ms;
	bytes = asprintf(&text, "%s, settling for %u ms\n", ms_state_name(d->state),
			 (unsigned int)st.settling_ms);
	if (bytes < 0)
		return MHD_NO;
	return ms_http_answer(connection, well ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE,
			      "text/plain; charset=utf-8", text, (size_t)bytes,
			      MHD_RESPMEM_MUST_FREE);
}

static bool ms_http_is_probe(const char *url)
{
	return !strcmp(url, "/healthz") || !strcmp(url, "/readyz") || !strcmp(url, "/settled");
}

static enum MHD_Result ms_http_on_request(void *arg, struct MHD_Connection *connection,
					  const char *url, const char *method, const char *version,
					  const char *upload, size_t *upload_bytes, void **state)
{
	struct ms_http *http = arg;
	size_t bytes;
	char *text;

	(void)version;
	(void)upload;
	if (!*state) { /* headers only so far: answer when the request is complete */
		*state = http;
		return MHD_YES;
	}
	if (*upload_bytes) {
		*upload_bytes = 0;
		return MHD_YES;
	}
	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
		return ms_http_error(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET only\n");
	if (ms_http_is_probe(url))
		return ms_http_probe(http, connection, url);
	if (strcmp(url, "/metrics"))
		return ms_http_error(connection, MHD_HTTP_NOT_FOUND,
				     "krcore-metaserver: the metrics are at /metrics\n");
	if (ms_metrics_text(http->d, &text, &bytes))
		return ms_http_error(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory\n");
	return ms_http_answer(connection, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8",
			      text, bytes, MHD_RESPMEM_MUST_FREE);
}

static void ms_http_run(struct ms_http *http)
{
	MHD_UNSIGNED_LONG_LONG ms;
	double wait_s = MS_HTTP_TICK_S;

	MHD_run(http->mhd);
	if (MHD_get_timeout(http->mhd, &ms) == MHD_YES && (double)ms < wait_s * 1e3)
		wait_s = (double)ms / 1e3;
	ev_timer_stop(http->d->loop, &http->timer);
	ev_timer_set(&http->timer, wait_s, 0.);
	ev_timer_start(http->d->loop, &http->timer);
}

static void ms_http_on_io(struct ev_loop *loop, ev_io *io, int revents)
{
	(void)loop;
	(void)revents;
	ms_http_run(io->data);
}

static int ms_http_socket(const char *where)
{
	struct kru_servers one = { .nr = 1 };
	struct kru_endpoint *found;
	char why[256];
	int fd = -1, yes = 1, err;

	found = calloc(KRU_ENDPOINTS_MAX, sizeof(*found));
	if (!found)
		return -ENOMEM;
	err = kru_host_port_parse(where, 0, &one.server[0], why, sizeof(why));
	if (!err)
		err = kru_servers_resolve(&one, 0, found);
	if (err < 0)
		goto out;
	err = 0;
	fd = socket(found->addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) < 0 ||
	    bind(fd, (const struct sockaddr *)&found->addr, found->addr_bytes) < 0 ||
	    listen(fd, MS_HTTP_CONNECTIONS_MAX) < 0)
		err = -errno;
out:
	free(found);
	if (!err)
		return fd;
	if (fd >= 0)
		close(fd);
	return err;
}

static int ms_http_listen(struct ms_http *http)
{
	const union MHD_DaemonInfo *info;
	int fd = ms_http_socket(http->d->conf.ms.metrics_listen);

	if (fd < 0)
		return fd;
	http->mhd = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, ms_http_on_request, http,
				     MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
				     MS_HTTP_CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
				     MS_HTTP_TIMEOUT_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
				     (size_t)16384, MHD_OPTION_END);
	if (!http->mhd) {
		close(fd);
		return -ENOMEM;
	}
	info = MHD_get_daemon_info(http->mhd, MHD_DAEMON_INFO_EPOLL_FD);
	ev_io_init(&http->io, ms_http_on_io, info->epoll_fd, EV_READ);
	http->io.data = http;
	ev_io_start(http->d->loop, &http->io);
	return 0;
}

/* A failure of the metrics must not stop the server: try again until it works. */
static void ms_http_try(struct ms_http *http)
{
	const char *where = http->d->conf.ms.metrics_listen;
	int err = ms_http_listen(http);

	if (err && err != http->error)
		ms_log(LOG_WARNING, "metrics at %s: %s; serving without them, trying again", where,
		       strerror(-err));
	else if (!err && http->error)
		ms_log(LOG_NOTICE, "metrics at %s: listening now", where);
	http->error = err;
	if (!err) {
		ms_http_run(http);
		return;
	}
	ev_timer_set(&http->timer, MS_HTTP_RETRY_S, 0.);
	ev_timer_start(http->d->loop, &http->timer);
}

static void ms_http_on_timer(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct ms_http *http = timer->data;

	(void)loop;
	(void)revents;
	if (http->mhd)
		ms_http_run(http);
	else
		ms_http_try(http);
}

int ms_http_new(struct ms_daemon *d, struct ms_http **ret_http)
{
	struct ms_http *http;

	if (!*d->conf.ms.metrics_listen) {
		*ret_http = NULL;
		return 0;
	}
	http = calloc(1, sizeof(*http));
	if (!http)
		return -ENOMEM;
	http->d = d;
	ev_init(&http->timer, ms_http_on_timer);
	http->timer.data = http;
	ms_http_try(http);
	*ret_http = http;
	return 0;
}

void ms_http_free(struct ms_http *http)
{
	if (!http)
		return;
	ev_timer_stop(http->d->loop, &http->timer);
	if (http->mhd) {
		ev_io_stop(http->d->loop, &http->io);
		MHD_stop_daemon(http->mhd);
	}
	free(http);
}
