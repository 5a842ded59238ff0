/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What command lines of tools have in common: numbers as options, and commands by name.
 *
 * A tool that is told what it cannot take says so on standard error and ends with KRU_USAGE.
 */
#ifndef KRU_COMMAND_H
#define KRU_COMMAND_H

#include <stddef.h>
#include <stdint.h>

#define KRU_USAGE 2

/**
 * struct kru_tool - A tool.
 * @name: its name.
 * @text: how it is used; what --help prints.
 */
struct kru_tool {
	const char *name;
	const char *text;
};

/**
 * struct kru_command - A command of a tool: the first member of what the tool knows of it.
 * @name: its name.
 * @least: arguments behind it, at least.
 * @most: at most.
 */
struct kru_command {
	const char *name;
	int least;
	int most;
};

/**
 * kru_option_number() - Value of an option that is a decimal number.
 * @tool: tool.
 * @name: long name of the option.
 * @text: what was given.
 * @min: least value.
 * @max: greatest value, at most UINT32_MAX.
 *
 * Return: the number; a bad one ends the process.
 */
uint32_t kru_option_number(const struct kru_tool *tool, const char *name, const char *text,
			   unsigned long min, unsigned long max);

/**
 * kru_option_end() - End the process as an option asks that is none of the tool's own: -V, -h,
 * or one that getopt_long() does not know.
 * @tool: tool.
 * @option: what getopt_long() returned.
 */
_Noreturn void kru_option_end(const struct kru_tool *tool, int option);

/**
 * kru_command_find() - Find a command by its name.
 * @tool: tool.
 * @commands: array of structures that begin with a struct kru_command.
 * @nr: how many.
 * @bytes: of each.
 * @name: name.
 * @argc: arguments behind it.
 *
 * Return: the element, or NULL after saying what is wrong.
 */
const void *kru_command_find(const struct kru_tool *tool, const void *commands, size_t nr,
			     size_t bytes, const char *name, int argc);

#endif /* KRU_COMMAND_H */
