/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Shared by the objects of krcore-metactl: the run, the command table, errors.
 *
 * The table is the one description of a command: parsing, help, and completion
 * all come from it. An object lives in a file of its own and exports one struct
 * mc_object; main.c lists them.
 *
 * Threads: one, but for libkrcore's own and its callbacks (monitor.c).
 */
#ifndef MC_METACTL_H
#define MC_METACTL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <krcore/krcore.h>

#include "client/metactl/output.h"

#define MC_PARAMS_MAX 28
#define MC_BYTES_MAX 64
#define MC_CONFIG_FILE "/etc/krcore.conf"
#define MC_TIMEOUT_MS 5000

/* Exit codes of the program, and what a command returns. */
#define MC_OK 0
#define MC_FAILED 1
#define MC_USAGE 2

/**
 * enum mc_type - What a parameter takes.
 * @MC_NONE: ends a list of parameters.
 * @MC_FLAG: nothing, it is a word that is there or not.
 * @MC_NUMBER: an integer, decimal or 0x hexadecimal.
 * @MC_GID: a GID or an address; a host name means its first address.
 * @MC_TEXT: any text.
 * @MC_FILE: name of a file.
 * @MC_HEX: bytes as pairs of hexadecimal digits, colons between them allowed.
 */
enum mc_type {
	MC_NONE,
	MC_FLAG,
	MC_NUMBER,
	MC_GID,
	MC_TEXT,
	MC_FILE,
	MC_HEX,
};

/* mc_param.flags */
#define MC_POSITIONAL 0x01 /* identified by its position, without a word before it */
#define MC_REQUIRED 0x02

/**
 * struct mc_param - A parameter of a command.
 * @name: word before the value, or its name in help if it is positional.
 * @type: what it takes.
 * @flags: MC_POSITIONAL, MC_REQUIRED.
 * @min: least number, or least bytes of MC_HEX.
 * @max: greatest.
 * @help: one line.
 */
struct mc_param {
	const char *name;
	enum mc_type type;
	unsigned int flags;
	uint64_t min;
	uint64_t max;
	const char *help;
};

/**
 * struct mc_value - What was given for a parameter.
 * @set: it was given.
 * @text: as written.
 * @number: MC_NUMBER.
 * @bytes: MC_HEX, or the GID.
 * @bytes_nr: bytes in use.
 */
struct mc_value {
	bool set;
	const char *text;
	uint64_t number;
	uint8_t bytes[MC_BYTES_MAX];
	size_t bytes_nr;
};

struct mc;

/* mc_command.flags */
#define MC_CAN_KEEP 0x01 /* takes --keep */

/**
 * struct mc_command - A command of an object.
 * @name: its word; "" if the object has only one, which needs none.
 * @run: does it; returns MC_OK, MC_FAILED or MC_USAGE.
 * @params: parameters, ended by MC_NONE; NULL for none.
 * @flags: MC_CAN_KEEP.
 * @help: one line.
 */
struct mc_command {
	const char *name;
	int (*run)(struct mc *mc);
	const struct mc_param *params;
	unsigned int flags;
	const char *help;
};

/**
 * struct mc_object - An object and its commands.
 * @name: its word.
 * @help: one line.
 * @commands: commands, ended by a NULL name; the first is the default.
 */
struct mc_object {
	const char *name;
	const char *help;
	const struct mc_command *commands;
};

/**
 * struct mc - A run of the program.
 * @out: rows go here.
 * @object: object of this run.
 * @command: command of this run.
 * @values: what was given for command->params, by index.
 * @socket: control socket given by -s, or NULL.
 * @servers: MetaServers given by -S, or NULL.
 * @config: configuration file given by -c, or NULL.
 * @timeout_ms: bound of each wait.
 * @show_keys: show secrets.
 * @keep: --keep was given.
 * @raw: table dump: file for the bytes as READ, or NULL.
 * @json: output is JSON.
 * @krcore: context once mc_attach() made one.
 */
struct mc {
	struct mc_out *out;
	const struct mc_object *object;
	const struct mc_command *command;
	struct mc_value values[MC_PARAMS_MAX];
	const char *socket;
	const char *servers;
	const char *config;
	uint32_t timeout_ms;
	bool show_keys;
	bool keep;
	const char *raw;
	bool json;
	struct krcore_ctx *krcore;
};

extern const struct mc_object mc_object_config;
extern const struct mc_object mc_object_doctor;
extern const struct mc_object mc_object_key;
extern const struct mc_object mc_object_monitor;
extern const struct mc_object mc_object_node;
extern const struct mc_object mc_object_peer;
extern const struct mc_object mc_object_queue;
extern const struct mc_object mc_object_record;
extern const struct mc_object mc_object_resolve;
extern const struct mc_object mc_object_server;
extern const struct mc_object mc_object_session;
extern const struct mc_object mc_object_stats;
extern const struct mc_object mc_object_status;
extern const struct mc_object mc_object_table;
extern const struct mc_object mc_object_cluster;

/** mc_objects() - The command table. Return: pointers to all objects, then NULL. */
const struct mc_object *const *mc_objects(void);

/**
 * mc_error() - Report a failure: "krcore-metactl: OBJECT: text" on stderr.
 * @mc: run.
 * @format: as printf(), without a newline.
 *
 * Return: MC_FAILED, so that a command can return it.
 */
int mc_error(struct mc *mc, const char *format, ...) __attribute__((format(printf, 2, 3)));

/**
 * mc_get() - What was given for a parameter.
 * @mc: run.
 * @name: name of a parameter of the command of this run.
 *
 * Return: the value, or NULL if it was not given.
 */
const struct mc_value *mc_get(const struct mc *mc, const char *name);

/** mc_number() - Value or default. @mc: run. @name: parameter. @none: default. Return: number. */
uint64_t mc_number(const struct mc *mc, const char *name, uint64_t none);

/** mc_text() - A text, or NULL. @mc: run. @name: parameter. Return: as written. */
const char *mc_text(const struct mc *mc, const char *name);

/**
 * mc_parse() - Find object and command, and take their parameters.
 * @mc: run; object, command and values are filled.
 * @argc: words.
 * @argv: the words after the options; they must outlive @mc.
 *
 * Words may be shortened as long as they are unique.
 *
 * Return: MC_OK, MC_USAGE after a message, or MC_HELP if help is what was asked.
 */
int mc_parse(struct mc *mc, int argc, char **argv);
#define MC_HELP 3

/** mc_help() - Explain an object, or all. @file: where to. @object: object or NULL for all. */
void mc_help(FILE *file, const struct mc_object *object);

/** mc_print_completion() - Tables of the bash completion. @file: where to. */
void mc_print_completion(FILE *file);

/** mc_print_options() - All options, separated by blanks. @file: where to. */
void mc_print_options(FILE *file);

/**
 * mc_attach() - Open libkrcore once for this run.
 * @mc: run; mc->krcore is filled.
 * @opts: options beyond those of the command line, or NULL; the run's own go over them.
 *
 * Return: MC_OK, or MC_FAILED after a message.
 */
int mc_attach(struct mc *mc, const struct krcore_options *opts);

/**
 * mc_is_local() - Whether this run asks the daemon on this machine.
 * @mc: run.
 *
 * Return: true if -s was given, or -S was not and the control socket exists.
 */
bool mc_is_local(const struct mc *mc);

/** mc_socket() - Control socket of this run. @mc: run. Return: its path. */
const char *mc_socket(const struct mc *mc);

/**
 * mc_servers_alloc() - An array that krcore_servers() can fill.
 * @nr: how many servers it is for; there is room for one even for 0.
 *
 * Return: array for free(), or NULL without memory.
 */
struct krcore_server_info *mc_servers_alloc(int nr);

/**
 * mc_servers_wait() - Give the servers time to be attached.
 * @mc: run, attached.
 * @ret_servers: array for free(); untouched on failure.
 *
 * Waits until each is up or has failed once, at most the time-out of the run.
 *
 * Return: how many there are, or -ENOMEM.
 */
int mc_servers_wait(struct mc *mc, struct krcore_server_info **ret_servers);

/** mc_server_state() - KRCORE_SERVER_* as a word. @state: state. Return: constant text. */
const char *mc_server_state(uint32_t state);

/** mc_now_ns() - CLOCK_MONOTONIC. Return: nanoseconds. */
uint64_t mc_now_ns(void);

/** mc_stopping() - Whether SIGINT or SIGTERM came since mc_catch_signals(). Return: true if so. */
bool mc_stopping(void);

/** mc_catch_signals() - From now on SIGINT and SIGTERM only end waits. */
void mc_catch_signals(void);

#endif /* MC_METACTL_H */
