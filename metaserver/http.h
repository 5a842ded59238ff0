/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The metrics over HTTP, by libmicrohttpd in the daemon's loop, without a thread:
 * GET /metrics, and three probes that answer 200 or 503: /healthz (the loop turns),
 * /readyz (it serves) and /settled (it serves, and publishers have had the time to come
 * back: the next server may be restarted). Loop thread only.
 */
#ifndef MS_HTTP_H
#define MS_HTTP_H

struct ms_daemon;
struct ms_http;

#define MS_HTTP_CONNECTIONS_MAX 16
#define MS_HTTP_TIMEOUT_S 10

/**
 * ms_http_new() - Listen at conf.ms.metrics_listen, as soon as that is possible.
 * @d: daemon with loop, configuration and server.
 * @ret_http: the server; NULL if metrics are off; untouched on failure.
 *
 * An address that is in use is logged, and tried again periodically.
 *
 * Return: 0, or -ENOMEM.
 */
int ms_http_new(struct ms_daemon *d, struct ms_http **ret_http);

/** ms_http_free() - Stop. @http: server or NULL. */
void ms_http_free(struct ms_http *http);

#endif /* MS_HTTP_H */
