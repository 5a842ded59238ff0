// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The text of a thread's last failure.
 *
 * The text lives in the thread; a constant one costs no formatting, so that a
 * look-up that finds nothing stays cheap.
 */
#include <stdarg.h>
#include <stdio.h>

#include "client/lib/base.h"

static __thread const char *krl_error_last;
static __thread char krl_error_buf[512];

int krl_error(int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(krl_error_buf, sizeof(krl_error_buf), format, args);
	va_end(args);
	krl_error_last = krl_error_buf;
	return err;
}

int krl_error_const(int err, const char *text)
{
	krl_error_last = text;
	return err;
}

const char *krcore_error_text(void)
{
	return krl_error_last ? krl_error_last : "";
}

const char *krcore_version(void)
{
	return KRC_VERSION;
}
