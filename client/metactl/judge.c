// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* How the checks of `doctor` report their findings: see judge.h. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/metactl/judge.h"

void mc_about(struct mc_judge *j, enum mc_verdict verdict, const char *format, ...)
{
	va_list ap;

	memset(&j->finding, 0, sizeof(j->finding));
	j->finding.check = j->check;
	j->finding.verdict = verdict;
	va_start(ap, format);
	vsnprintf(j->finding.subject, sizeof(j->finding.subject), format, ap);
	va_end(ap);
}

void mc_cause(struct mc_judge *j, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(j->finding.cause, sizeof(j->finding.cause), format, ap);
	va_end(ap);
}

void mc_remedy(struct mc_judge *j, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(j->finding.remedy, sizeof(j->finding.remedy), format, ap);
	va_end(ap);
}

void mc_say(struct mc_judge *j)
{
	if (j->finding.verdict == MC_CHECK_FAIL)
		j->failed++;
	j->fn(j->arg, &j->finding);
}
