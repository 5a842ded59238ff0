/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Between conf.c (values), conf_check.c (their forms) and conf_file.c (the
 * file's syntax); no other file includes it. No state: any thread.
 */
#ifndef KRU_CONF_INTERNAL_H
#define KRU_CONF_INTERNAL_H

#include "common/conf.h"

#define KRU_CONF_WHY_BYTES 512

/**
 * enum kru_conf_kind - Form of a value.
 * @KRU_CONF_UINT: number, with a suffix for its unit or without; struct kru_conf has a __u32.
 * @KRU_CONF_BOOL: one of two words; a bool.
 * @KRU_CONF_WORD: one of a list of words; a __u32, the index.
 * @KRU_CONF_TEXT: text; an array of char.
 */
enum kru_conf_kind {
	KRU_CONF_UINT,
	KRU_CONF_BOOL,
	KRU_CONF_WORD,
	KRU_CONF_TEXT
};

/**
 * enum kru_conf_unit - Unit of a number.
 * @KRU_UNIT_NONE: none: a suffix is refused.
 * @KRU_UNIT_MS: milliseconds; suffixes ms, s, min, h.
 * @KRU_UNIT_KIB: KiB; suffixes KiB, MiB, GiB.
 * @KRU_UNIT_MIB: MiB; suffixes MiB, GiB, TiB.
 */
enum kru_conf_unit {
	KRU_UNIT_NONE,
	KRU_UNIT_MS,
	KRU_UNIT_KIB,
	KRU_UNIT_MIB
};

/**
 * typedef kru_conf_check_uint_fn - A further check of a number, whose range is checked already.
 * @value: number, in the unit of its key.
 * @why: out: what is wrong with it, on failure.
 * @why_bytes: size of @why.
 *
 * Return: 0 or -EINVAL.
 */
typedef int kru_conf_check_uint_fn(__u64 value, char *why, size_t why_bytes);

/**
 * typedef kru_conf_check_text_fn - A further check of a text, which is printable and fits.
 * @value: text; not empty.
 * @why: out: what is wrong with it, on failure.
 * @why_bytes: size of @why.
 *
 * Return: 0 or -EINVAL.
 */
typedef int kru_conf_check_text_fn(const char *value, char *why, size_t why_bytes);

/**
 * struct kru_conf_def - A line of conf.def.
 * @section: index of the section.
 * @kind: form of the value.
 * @unit: unit of a number without suffix.
 * @reload: a reload takes it over.
 * @key: name.
 * @dflt: default as text.
 * @help: paragraph.
 * @words: of a WORD, separated by |.
 * @offset: of the field in struct kru_conf.
 * @bytes: size of the field.
 * @min: see conf.def.
 * @max: see conf.def.
 * @check_uint: further check of a number, or NULL.
 * @check_text: further check of a text, or NULL.
 */
struct kru_conf_def {
	enum kru_conf_section section;
	enum kru_conf_kind kind;
	enum kru_conf_unit unit;
	bool reload;
	const char *key;
	const char *dflt;
	const char *help;
	const char *words;
	size_t offset;
	size_t bytes;
	__u64 min;
	__u64 max;
	kru_conf_check_uint_fn *check_uint;
	kru_conf_check_text_fn *check_text;
};

extern const struct kru_conf_def kru_conf_defs[KRU_CONF_KEYS];

/**
 * kru_conf_find_section() - Find a section by its name in the file.
 * @name: name.
 *
 * Return: its number (enum kru_conf_section), or -ENOENT.
 */
int kru_conf_find_section(const char *name);

/**
 * kru_conf_find_key() - Find a key of a section by its name in the file.
 * @section: section.
 * @key: name.
 *
 * Return: its number, 0 to KRU_CONF_KEYS - 1, or -ENOENT.
 */
int kru_conf_find_key(enum kru_conf_section section, const char *key);

/**
 * kru_conf_section_name() - Name a section as in the file.
 * @section: section.
 *
 * Return: a constant string.
 */
const char *kru_conf_section_name(enum kru_conf_section section);

/**
 * kru_conf_assign() - Read a text into a key, unless a higher origin has set it.
 * @conf: configuration; unchanged on failure.
 * @nr: key, 0 to KRU_CONF_KEYS - 1.
 * @text: value as in the file, without blanks around it.
 * @origin: where it comes from.
 * @why: out: what is wrong with it, on failure.
 * @why_bytes: size of @why.
 *
 * Return: 0, also if a higher origin keeps its value; -EINVAL: it is not valid.
 */
int kru_conf_assign(struct kru_conf *conf, unsigned int nr, const char *text,
		    enum kru_conf_origin origin, char *why, size_t why_bytes);

kru_conf_check_uint_fn kru_conf_check_pow2;
kru_conf_check_text_fn kru_conf_check_path;
kru_conf_check_text_fn kru_conf_check_key;
kru_conf_check_text_fn kru_conf_check_listen;
kru_conf_check_text_fn kru_conf_check_hosts;
kru_conf_check_text_fn kru_conf_check_host_port;
kru_conf_check_text_fn kru_conf_check_servers;
kru_conf_check_text_fn kru_conf_check_gid;
kru_conf_check_text_fn kru_conf_check_device;

/**
 * kru_conf_is_list() - Check whether a key's value is a list, which may go on over indented lines.
 * @def: key.
 *
 * Return: true if its form has a comma.
 */
bool kru_conf_is_list(const struct kru_conf_def *def);

/**
 * kru_conf_form() - Describe the form that a check demands of a text.
 * @check: check, or NULL.
 *
 * Return: a constant string, for messages.
 */
const char *kru_conf_form(kru_conf_check_text_fn *check);

#endif /* KRU_CONF_INTERNAL_H */
