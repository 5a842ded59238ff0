// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * How a command says that it failed.
 */
#include <stdarg.h>
#include <stdio.h>

#include "client/metactl/metactl.h"

int mc_error(struct mc *mc, const char *format, ...)
{
	va_list ap;

	fflush(stdout);
	fputs("krcore-metactl: ", stderr);
	if (mc->object)
		fprintf(stderr, "%s: ", mc->object->name);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	return MC_FAILED;
}
