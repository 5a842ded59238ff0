/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Log of the daemon: the journal with its fields if the unit's stderr is the
 * journal, else stderr with the <N> prefixes of sd-daemon(3) when a manager
 * reads it and with plain words on a terminal.
 *
 * An error is logged once, at the place that knows its consequence. Loop thread only,
 * but any thread may call ms_log_set_level().
 */
#ifndef MS_LOG_H
#define MS_LOG_H

#include <stdbool.h>
#include <syslog.h>

#include <linux/types.h>

/** ms_log_init() - Find out where stderr leads. Call once, before threads. */
void ms_log_init(void);

/** ms_log_set_level() - Least important priority to log. @priority: LOG_ERR to LOG_DEBUG. */
void ms_log_set_level(int priority);

/** ms_log_enabled() - Would it be logged? @priority: LOG_*. Return: true if so. */
bool ms_log_enabled(int priority);

/**
 * ms_log_set_incarnation() - Put KRCORE_INCARNATION on every later message.
 * @incarnation: of the server.
 */
void ms_log_set_incarnation(__u64 incarnation);

/**
 * ms_log() - Log a line.
 * @priority: LOG_ERR to LOG_DEBUG.
 * @fmt: printf format, without end of line.
 */
void ms_log(int priority, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/**
 * ms_log_fields() - Log a line with journal fields.
 * @priority: LOG_ERR to LOG_DEBUG.
 * @fields: "NAME=value" texts such as "KRCORE_OWNER=...", up to eight, then NULL.
 * @fmt: printf format, without end of line.
 *
 * The fields are seen in the journal only; the line must say the same.
 */
void ms_log_fields(int priority, const char *const *fields, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif /* MS_LOG_H */
