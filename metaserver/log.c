// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Log of the daemon: see log.h. Whether stderr is the journal is found by comparing
 * its device and inode with $JOURNAL_STREAM, as systemd.exec(5) describes.
 */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <systemd/sd-journal.h>

#include "metaserver/log.h"

#define MS_LOG_LINE_BYTES 1024
#define MS_LOG_FIELDS_MAX 8

static enum {
	MS_LOG_PLAIN,
	MS_LOG_PREFIXED,
	MS_LOG_JOURNAL
} ms_log_target;
static atomic_int ms_log_level = LOG_INFO;
static char ms_log_incarnation[sizeof("KRCORE_INCARNATION=") + 16];

static bool ms_log_stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	char own[64]; /* as systemd.exec(5) writes it */
	struct stat st;

	if (!stream || fstat(STDERR_FILENO, &st))
		return false;
	snprintf(own, sizeof(own), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	return !strcmp(stream, own);
}

void ms_log_init(void)
{
	if (ms_log_stderr_is_journal())
		ms_log_target = MS_LOG_JOURNAL;
	else if (getenv("INVOCATION_ID") && !isatty(STDERR_FILENO))
		ms_log_target = MS_LOG_PREFIXED;
	else
		ms_log_target = MS_LOG_PLAIN;
}

void ms_log_set_level(int priority)
{
	atomic_store_explicit(&ms_log_level, priority, memory_order_relaxed);
}

bool ms_log_enabled(int priority)
{
	return priority <= atomic_load_explicit(&ms_log_level, memory_order_relaxed);
}

void ms_log_set_incarnation(__u64 incarnation)
{
	snprintf(ms_log_incarnation, sizeof(ms_log_incarnation), "KRCORE_INCARNATION=%016llx",
		 (unsigned long long)incarnation);
}

static int ms_log_journal(int priority, const char *const *fields, const char *line)
{
	struct iovec iov[MS_LOG_FIELDS_MAX + 4];
	char message[MS_LOG_LINE_BYTES + 8], prio[16];
	int nr = 0;

	snprintf(message, sizeof(message), "MESSAGE=%s", line);
	snprintf(prio, sizeof(prio), "PRIORITY=%d", priority);
	iov[nr++] = (struct iovec){ message, strlen(message) };
	iov[nr++] = (struct iovec){ prio, strlen(prio) };
	iov[nr++] = (struct iovec){ (char *)"SYSLOG_IDENTIFIER=krcore-metaserver",
				    strlen("SYSLOG_IDENTIFIER=krcore-metaserver") };
	if (*ms_log_incarnation)
		iov[nr++] = (struct iovec){ ms_log_incarnation, strlen(ms_log_incarnation) };
	for (int i = 0; fields && fields[i] && i < MS_LOG_FIELDS_MAX; i++)
		iov[nr++] = (struct iovec){ (char *)fields[i], strlen(fields[i]) };
	return sd_journal_sendv(iov, nr);
}

static void ms_log_stderr(int priority, const char *line)
{
	static const char *const words[] = { "emergency", "alert",  "critical", "error",
					     "warning",	  "notice", "info",	"debug" };

	if (ms_log_target == MS_LOG_PLAIN)
		fprintf(stderr, "krcore-metaserver: %s: %s\n", words[priority & LOG_PRIMASK], line);
	else
		fprintf(stderr, "<%d>%s\n", priority & LOG_PRIMASK, line);
}

__attribute__((format(printf, 3, 0))) static void
ms_log_line(int priority, const char *const *fields, const char *fmt, va_list ap)
{
	char line[MS_LOG_LINE_BYTES];

	if (!ms_log_enabled(priority))
		return;
	vsnprintf(line, sizeof(line), fmt, ap);
	/* The name that a client gives itself must not forge lines or move the cursor. */
	for (char *p = line; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
	if (ms_log_target != MS_LOG_JOURNAL || ms_log_journal(priority, fields, line) < 0)
		ms_log_stderr(priority, line);
}

void ms_log(int priority, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	ms_log_line(priority, NULL, fmt, ap);
	va_end(ap);
}

void ms_log_fields(int priority, const char *const *fields, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	ms_log_line(priority, fields, fmt, ap);
	va_end(ap);
}
