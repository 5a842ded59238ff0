/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Every number the daemon shows, once: Prometheus text (format 0.0.4) and the
 * `stats` of the control socket are two ways to write the same samples. The
 * list is docs/metrics.md. Loop thread only.
 */
#ifndef MS_METRICS_H
#define MS_METRICS_H

#include <stddef.h>

#include <jansson.h>

struct ms_daemon;

/**
 * ms_metrics_text() - All samples for Prometheus.
 * @d: daemon.
 * @ret_text: text to free(); untouched on failure.
 * @ret_bytes: its length.
 *
 * Return: 0, or -ENOMEM.
 */
int ms_metrics_text(const struct ms_daemon *d, char **ret_text, size_t *ret_bytes);

/**
 * ms_metrics_json() - All samples as one flat object.
 * @d: daemon.
 *
 * A member is named as the metric without krcore_meta_, and _LABELVALUE if it
 * has a label.
 *
 * Return: object, or NULL without memory.
 */
json_t *ms_metrics_json(const struct ms_daemon *d);

#endif /* MS_METRICS_H */
