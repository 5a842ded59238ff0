/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Configuration of daemon, library and tools: /etc/krcore.conf, krcore.conf(5).
 *
 * struct kru_conf is a plain value: copy it, compare it, keep it. The keys come
 * from conf.def. Every error is reported, not only the first, and a call that
 * reports one leaves the configuration as it was. Nothing is kept between
 * calls and nothing is logged: any thread.
 *
 * Order of precedence: command line, then file, then default, whatever the
 * order of the calls. X-macro table: the example of inih.
 */
#ifndef KRU_CONF_H
#define KRU_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <linux/types.h>

#define KRU_CONF_FILE "/etc/krcore.conf"
#define KRU_CONF_BYTES_MAX (1 << 20) /* of a file */
#define KRU_CONF_VALUE_BYTES 2048 /* longest value as text, with its NUL */
#define KRU_CONF_CLIENT_SENDS 18U /* to a client: handshake and notifications */
#define KRU_RENEW_MAX_MS 15000U /* longest interval of renewals, for any lease */
#define KRU_CONF_PART_MAX 180 /* longest part of a list, which must fit in a line */

#define KRU_CONF_FIELD_UINT(key, max) __u32 key;
#define KRU_CONF_FIELD_BOOL(key, max) bool key;
#define KRU_CONF_FIELD_WORD(key, max) __u32 key;
#define KRU_CONF_FIELD_TEXT(key, max) char key[max];

/* Which struct a line of conf.def belongs to. */
#define KRU_CONF_IN_ms_ms(...) __VA_ARGS__
#define KRU_CONF_IN_ms_node(...)
#define KRU_CONF_IN_node_ms(...)
#define KRU_CONF_IN_node_node(...) __VA_ARGS__

/* conf.ms.require_auth and conf.ms.log_level: order of the words in conf.def */
enum {
	KRU_AUTH_AUTO,
	KRU_AUTH_YES,
	KRU_AUTH_NO
};
enum {
	KRU_LOG_ERR,
	KRU_LOG_WARNING,
	KRU_LOG_NOTICE,
	KRU_LOG_INFO,
	KRU_LOG_DEBUG
};

/**
 * enum kru_conf_section - Sections of the file, in the order of conf.def.
 * @KRU_CONF_SECTION_ms: [metaserver].
 * @KRU_CONF_SECTION_node: [node].
 * @KRU_CONF_SECTIONS: how many.
 */
enum kru_conf_section {
	KRU_CONF_SECTION_ms,
	KRU_CONF_SECTION_node,
	KRU_CONF_SECTIONS
};

/* Indices of the keys: KRU_CONF_KEY_ms_port and so on. */
enum {
#define KRU_CONF(section, key, ...) KRU_CONF_KEY_##section##_##key,
#include "common/conf.def"
#undef KRU_CONF
	KRU_CONF_KEYS
};

/** struct kru_conf_ms - Section [metaserver]; fields are the keys of conf.def. */
struct kru_conf_ms {
#define KRU_CONF(section, key, kind, dflt, min, max, ...) \
	KRU_CONF_IN_ms_##section(KRU_CONF_FIELD_##kind(key, max))
#include "common/conf.def"
#undef KRU_CONF
};

/** struct kru_conf_node - Section [node]; fields are the keys of conf.def. */
struct kru_conf_node {
#define KRU_CONF(section, key, kind, dflt, min, max, ...) \
	KRU_CONF_IN_node_##section(KRU_CONF_FIELD_##kind(key, max))
#include "common/conf.def"
#undef KRU_CONF
};

/** enum kru_conf_origin - Where a value comes from; a higher one wins. */
enum kru_conf_origin {
	KRU_CONF_DEFAULT,
	KRU_CONF_FROM_FILE,
	KRU_CONF_COMMAND_LINE
};

/**
 * struct kru_conf - The whole configuration.
 * @ms: section [metaserver].
 * @node: section [node].
 * @origin: enum kru_conf_origin of each key.
 * @line: line of the file that has set it, if @origin is KRU_CONF_FROM_FILE.
 */
struct kru_conf {
	struct kru_conf_ms ms;
	struct kru_conf_node node;
	__u8 origin[KRU_CONF_KEYS];
	__u32 line[KRU_CONF_KEYS];
};

/**
 * typedef kru_conf_report_fn - Called for each error.
 * @arg: as passed with the function.
 * @file: name of the file, or "command line".
 * @line: line in the file, from 1; 0 if it concerns no single line.
 * @text: what is wrong, without an end of line.
 */
typedef void kru_conf_report_fn(void *arg, const char *file, unsigned int line, const char *text);

/**
 * kru_conf_report_stderr() - A kru_conf_report_fn that writes FILE:LINE: TEXT to stderr.
 * @arg: prefix such as the program's name, or NULL.
 * @file: see kru_conf_report_fn.
 * @line: see kru_conf_report_fn.
 * @text: see kru_conf_report_fn.
 */
void kru_conf_report_stderr(void *arg, const char *file, unsigned int line, const char *text);

/** kru_conf_defaults() - Set every key to its default. @ret_conf: filled. */
void kru_conf_defaults(struct kru_conf *ret_conf);

/**
 * kru_conf_parse() - Take over the keys of a file's text.
 * @file: its name, for the reports.
 * @text: its bytes; any bytes.
 * @bytes: how many, at most KRU_CONF_BYTES_MAX.
 * @conf: configuration to change; unchanged on failure.
 * @report: called for each error.
 * @arg: its first argument.
 *
 * Does not compare keys with each other: kru_conf_check() does.
 *
 * Return:
 * * 0 - success.
 * * %-EINVAL - errors were reported.
 * * %-EFBIG - too many bytes; reported as well.
 */
int kru_conf_parse(const char *file, const char *text, size_t bytes, struct kru_conf *conf,
		   kru_conf_report_fn *report, void *arg);

/**
 * kru_conf_load() - Take over the keys of a file.
 * @path: the file.
 * @conf: configuration to change; unchanged on failure.
 * @report: called for each error, also of a file that cannot be read.
 * @arg: its first argument.
 *
 * Return: as kru_conf_parse(), or the negative errno of open() or read().
 */
int kru_conf_load(const char *path, struct kru_conf *conf, kru_conf_report_fn *report, void *arg);

/**
 * kru_conf_set() - Set one key from the command line.
 * @conf: configuration to change; unchanged on failure.
 * @assignment: "section.key=value"; blanks around the value are not part of it.
 * @report: called for each error.
 * @arg: its first argument.
 *
 * Return: 0, or -EINVAL if an error was reported.
 */
int kru_conf_set(struct kru_conf *conf, const char *assignment, kru_conf_report_fn *report,
		 void *arg);

/**
 * kru_conf_check() - Do the keys fit each other?
 * @conf: complete configuration.
 * @file: name to report.
 * @report: called for each error, with the line of one of the keys if it has one.
 * @arg: its first argument.
 *
 * Return: 0, or -EINVAL if an error was reported.
 */
int kru_conf_check(const struct kru_conf *conf, const char *file, kru_conf_report_fn *report,
		   void *arg);

/**
 * kru_conf_advise() - Warn about settings of a MetaServer that work, but hardly as meant.
 * @conf: configuration that kru_conf_check() has passed.
 * @file: name to report.
 * @ram_bytes: memory of this machine; 0 if it is not known.
 * @report: called for each warning, with the line of one of the keys if it has one.
 * @arg: its first argument.
 *
 * The defaults are never warned about.
 */
void kru_conf_advise(const struct kru_conf *conf, const char *file, __u64 ram_bytes,
		     kru_conf_report_fn *report, void *arg);

/**
 * kru_conf_bytes() - Memory that a MetaServer may need.
 * @ms: configuration.
 *
 * Return: bytes with a full table, all clients and the kernel's part of their queue pairs.
 */
__u64 kru_conf_bytes(const struct kru_conf_ms *ms);

/**
 * struct kru_conf_item - One key, to be shown or printed.
 * @section: name of the section as in the file.
 * @key: name of the key.
 * @value: its value as text, as a file would say it.
 * @before: in kru_conf_merge() the value it had; else NULL.
 * @dflt: its default.
 * @range: range or words or form, human-readable.
 * @unit: "ms", "MiB", "KiB" or "".
 * @help: a paragraph.
 * @origin: where @value comes from.
 * @reloadable: a reload changes it.
 * @list: @value is parts separated by commas, without blanks.
 */
struct kru_conf_item {
	const char *section;
	const char *key;
	const char *value;
	const char *before;
	const char *dflt;
	const char *range;
	const char *unit;
	const char *help;
	enum kru_conf_origin origin;
	bool reloadable;
	bool list;
};

/**
 * typedef kru_conf_visit_fn - Called for a key.
 * @arg: as given along.
 * @item: the key; valid during the call.
 */
typedef void kru_conf_visit_fn(void *arg, const struct kru_conf_item *item);

/**
 * kru_conf_each() - Visit every key in the order of conf.def.
 * @conf: configuration.
 * @visit: function.
 * @arg: its first argument.
 */
void kru_conf_each(const struct kru_conf *conf, kru_conf_visit_fn *visit, void *arg);

/** kru_conf_origin_name() - Text of an origin. @origin: origin. Return: constant text. */
const char *kru_conf_origin_name(enum kru_conf_origin origin);

/**
 * kru_conf_merge() - Take a new configuration over into a running program.
 * @conf: the running one; gets what a reload may change of @fresh.
 * @fresh: the new one.
 * @section: section the program uses; others are taken over without a call of @visit.
 * @visit: called with each key of @section that differs, or NULL. One that is
 *	not reloadable was left as it is.
 * @arg: its first argument.
 *
 * Return: number of keys of @section that were changed.
 */
unsigned int kru_conf_merge(struct kru_conf *conf, const struct kru_conf *fresh,
			    enum kru_conf_section section, kru_conf_visit_fn *visit, void *arg);

/**
 * kru_conf_print() - Write a complete configuration file.
 * @conf: configuration.
 * @to: where to.
 *
 * Each key with its help, range, unit and default; keys that have their default
 * are commented out. With kru_conf_defaults() this is the shipped krcore.conf.
 */
void kru_conf_print(const struct kru_conf *conf, FILE *to);

/**
 * kru_renew_ms() - How often a client renews.
 * @lease_ms: its lease.
 *
 * Return: the interval in ms.
 */
static inline __u32 kru_renew_ms(__u32 lease_ms)
{
	return lease_ms / 3 < KRU_RENEW_MAX_MS ? lease_ms / 3 : KRU_RENEW_MAX_MS;
}

#endif /* KRU_CONF_H */
