/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The metrics over HTTP: GET /metrics, by libmicrohttpd in the daemon's loop,
 * without a thread. Loop thread only.
 */
#ifndef MS_HTTP_H
#define MS_HTTP_H

struct ms_daemon;
struct ms_http;

#define MS_HTTP_CONNECTIONS_MAX 16
#define MS_HTTP_TIMEOUT_S 10

/**
 * ms_http_new() - Listen at conf.ms.metrics_listen.
 * @d: daemon with loop, configuration and server.
 * @ret_http: the server; NULL if metrics are off; untouched on failure.
 *
 * Return: 0, or the negative errno of bind(); the cause has been logged.
 */
int ms_http_new(struct ms_daemon *d, struct ms_http **ret_http);

/** ms_http_free() - Stop. @http: server or NULL. */
void ms_http_free(struct ms_http *http);

#endif /* MS_HTTP_H */
