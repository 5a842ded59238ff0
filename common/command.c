// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What command lines of tools have in common: see command.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/command.h"

uint32_t kru_option_number(const struct kru_tool *tool, const char *name, const char *text,
			   unsigned long min, unsigned long max)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (!errno && end != text && !*end && *text >= '0' && *text <= '9' && value >= min &&
	    value <= max)
		return (uint32_t)value;
	fprintf(stderr, "%s: --%s: '%s' is not a number from %lu to %lu\n", tool->name, name, text,
		min, max);
	exit(KRU_USAGE);
}

void kru_option_end(const struct kru_tool *tool, int option)
{
	switch (option) {
	case 'V':
		printf("%s %s\n", tool->name, KRC_VERSION);
		exit(0);
	case 'h':
		fputs(tool->text, stdout);
		exit(0);
	default:
		fputs(tool->text, stderr);
		exit(KRU_USAGE);
	}
}

const void *kru_command_find(const struct kru_tool *tool, const void *commands, size_t nr,
			     size_t bytes, const char *name, int argc)
{
	const char *at = commands, *end = at + nr * bytes;

	for (; at < end; at += bytes) {
		const struct kru_command *command = (const void *)at;

		if (strcmp(command->name, name) != 0)
			continue;
		if (argc >= command->least && argc <= command->most)
			return command;
		fprintf(stderr, "%s: %s: wrong number of arguments; see --help\n", tool->name,
			name);
		return NULL;
	}
	fprintf(stderr, "%s: there is no command '%s'; see --help\n", tool->name, name);
	return NULL;
}
