// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Values of the configuration: see conf.h. The table of keys, text to value and
 * back, precedence, and what a reload may change.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/addr.h"
#include "common/conf_internal.h"

#define KRU_CONF_EXTRA_UINT(x) .check_uint = (x)
#define KRU_CONF_EXTRA_BOOL(x) .words = "no|yes"
#define KRU_CONF_EXTRA_WORD(x) .words = (x)
#define KRU_CONF_EXTRA_TEXT(x) .check_text = (x)

const struct kru_conf_def kru_conf_defs[KRU_CONF_KEYS] = {
/* Not named like its arguments, which would replace the designators. */
#define KRU_CONF(s_, k_, kind_, d_, min_, max_, u_, r_, x_, h_) \
	[KRU_CONF_KEY_##s_##_##k_] = { \
		.section = KRU_CONF_SECTION_##s_, \
		.kind = KRU_CONF_##kind_, \
		.unit = KRU_UNIT_##u_, \
		.reload = (r_), \
		.key = #k_, \
		.dflt = (d_), \
		.help = (h_), \
		.offset = offsetof(struct kru_conf, s_.k_), \
		.bytes = sizeof(((struct kru_conf *)NULL)->s_.k_), \
		.min = (min_), \
		.max = (max_), \
		KRU_CONF_EXTRA_##kind_(x_), \
	},
#include "common/conf.def"
#undef KRU_CONF
};

static const char *const kru_conf_section_names[KRU_CONF_SECTIONS] = {
	[KRU_CONF_SECTION_ms] = "metaserver",
	[KRU_CONF_SECTION_node] = "node",
};

static const struct {
	const char *suffix;
	enum kru_conf_unit unit;
	__u32 factor;
} kru_conf_suffixes[] = {
	{ "ms", KRU_UNIT_MS, 1 },	  { "s", KRU_UNIT_MS, 1000 }, { "min", KRU_UNIT_MS, 60000 },
	{ "h", KRU_UNIT_MS, 3600000 },	  { "KiB", KRU_UNIT_KIB, 1 }, { "MiB", KRU_UNIT_KIB, 1024 },
	{ "GiB", KRU_UNIT_KIB, 1 << 20 }, { "MiB", KRU_UNIT_MIB, 1 }, { "GiB", KRU_UNIT_MIB, 1024 },
	{ "TiB", KRU_UNIT_MIB, 1 << 20 },
};

static const char *const kru_conf_unit_names[] = { "", "ms", "KiB", "MiB" };

const char *kru_conf_section_name(enum kru_conf_section section)
{
	return kru_conf_section_names[section];
}

int kru_conf_find_section(const char *name)
{
	for (int i = 0; i < KRU_CONF_SECTIONS; i++)
		if (!strcmp(kru_conf_section_names[i], name))
			return i;
	return -ENOENT;
}

int kru_conf_find_key(enum kru_conf_section section, const char *key)
{
	for (int i = 0; i < KRU_CONF_KEYS; i++)
		if (kru_conf_defs[i].section == section && !strcmp(kru_conf_defs[i].key, key))
			return i;
	return -ENOENT;
}

static __u32 kru_conf_factor(enum kru_conf_unit unit, const char *suffix)
{
	if (!*suffix)
		return 1;
	for (size_t i = 0; i < sizeof(kru_conf_suffixes) / sizeof(*kru_conf_suffixes); i++)
		if (kru_conf_suffixes[i].unit == unit &&
		    !strcmp(kru_conf_suffixes[i].suffix, suffix))
			return kru_conf_suffixes[i].factor;
	return 0;
}

static const char *kru_conf_suffix_list(enum kru_conf_unit unit)
{
	static const char *const lists[] = {
		[KRU_UNIT_NONE] = "none",
		[KRU_UNIT_MS] = "ms, s, min, h",
		[KRU_UNIT_KIB] = "KiB, MiB, GiB",
		[KRU_UNIT_MIB] = "MiB, GiB, TiB",
	};

	return lists[unit];
}

static int kru_conf_read_uint(const struct kru_conf_def *def, const char *text, __u32 *ret_value,
			      char *why, size_t why_bytes)
{
	const char *unit = kru_conf_unit_names[def->unit];
	unsigned long long value;
	__u32 factor;
	char *end;

	if (!isdigit((unsigned char)*text)) {
		snprintf(why, why_bytes, "'%.40s' is not a number", text);
		return -EINVAL;
	}
	errno = 0;
	value = strtoull(text, &end, 10);
	while (isblank((unsigned char)*end))
		end++;
	factor = kru_conf_factor(def->unit, end);
	if (!factor) {
		snprintf(why, why_bytes, "'%.40s' has an unknown unit; units are %s", text,
			 kru_conf_suffix_list(def->unit));
		return -EINVAL;
	}
	if (errno == ERANGE || value > UINT32_MAX / factor || value * factor < def->min ||
	    value * factor > def->max) {
		snprintf(why, why_bytes, "'%.40s' is out of range, %llu to %llu%s%s", text,
			 (unsigned long long)def->min, (unsigned long long)def->max,
			 *unit ? " " : "", unit);
		return -EINVAL;
	}
	value *= factor;
	if (def->check_uint && def->check_uint(value, why, why_bytes))
		return -EINVAL;
	*ret_value = (__u32)value;
	return 0;
}

static int kru_conf_read_word(const struct kru_conf_def *def, const char *text, __u32 *ret_value,
			      char *why, size_t why_bytes)
{
	size_t len = strlen(text);
	__u32 nr = 0;

	for (const char *word = def->words; word; nr++) {
		const char *end = strchr(word, '|');
		size_t word_len = end ? (size_t)(end - word) : strlen(word);

		if (word_len == len && !memcmp(word, text, len)) {
			*ret_value = nr;
			return 0;
		}
		word = end ? end + 1 : NULL;
	}
	snprintf(why, why_bytes, "'%.40s' is not one of %s", text, def->words);
	return -EINVAL;
}

static int kru_conf_check_printable(const struct kru_conf_def *def, const char *text, char *why,
				    size_t why_bytes)
{
	if (strlen(text) >= def->bytes) {
		snprintf(why, why_bytes, "is longer than %zu characters", def->bytes - 1);
		return -EINVAL;
	}
	if (def->min && !*text) {
		snprintf(why, why_bytes, "may not be empty");
		return -EINVAL;
	}
	for (const char *p = text; *p; p++) {
		if (iscntrl((unsigned char)*p)) {
			snprintf(why, why_bytes, "contains the control character 0x%02x",
				 (unsigned char)*p);
			return -EINVAL;
		}
	}
	if (strchr(text, ';')) {
		snprintf(why, why_bytes, "contains ';', which begins a comment");
		return -EINVAL;
	}
	return 0;
}

bool kru_conf_is_list(const struct kru_conf_def *def)
{
	return def->kind == KRU_CONF_TEXT && strchr(kru_conf_form(def->check_text), ',');
}

/* A list without its blanks: one value has one text, whatever lines it was written in. */
static int kru_conf_squeeze(const char *text, char squeezed[KRU_CONF_VALUE_BYTES], char *why,
			    size_t why_bytes)
{
	char part[KRU_CONF_PART_MAX + 1];
	size_t used = 0;
	int got;

	while ((got = kru_list_next(&text, part, sizeof(part))) > 0)
		used += (size_t)snprintf(squeezed + used, KRU_CONF_VALUE_BYTES - used, "%s%s",
					 used ? "," : "", part);
	if (got < 0)
		snprintf(why, why_bytes, "a part is longer than %d characters", KRU_CONF_PART_MAX);
	return got < 0 ? -EINVAL : 0;
}

/* @value gets @text as it is kept. */
static int kru_conf_read_text(const struct kru_conf_def *def, const char *text,
			      char value[KRU_CONF_VALUE_BYTES], char *why, size_t why_bytes)
{
	int err = kru_conf_check_printable(def, text, why, why_bytes);

	if (!err && *text && def->check_text)
		err = def->check_text(text, why, why_bytes);
	if (err)
		return err;
	if (kru_conf_is_list(def))
		return kru_conf_squeeze(text, value, why, why_bytes);
	memcpy(value, text, strlen(text) + 1);
	return 0;
}

int kru_conf_assign(struct kru_conf *conf, unsigned int nr, const char *text,
		    enum kru_conf_origin origin, char *why, size_t why_bytes)
{
	const struct kru_conf_def *def = &kru_conf_defs[nr];
	void *field = (char *)conf + def->offset;
	char string[KRU_CONF_VALUE_BYTES];
	bool keep = conf->origin[nr] > origin; /* valid or not, a higher origin wins */
	__u32 value = 0;
	int err;

	switch (def->kind) {
	case KRU_CONF_UINT:
		err = kru_conf_read_uint(def, text, &value, why, why_bytes);
		break;
	case KRU_CONF_TEXT:
		err = kru_conf_read_text(def, text, string, why, why_bytes);
		break;
	default:
		err = kru_conf_read_word(def, text, &value, why, why_bytes);
	}
	if (err || keep)
		return err;

	if (def->kind == KRU_CONF_TEXT) {
		memset(field, 0, def->bytes);
		memcpy(field, string, strlen(string));
	} else if (def->kind == KRU_CONF_BOOL) {
		*(bool *)field = value;
	} else {
		*(__u32 *)field = value;
	}
	conf->origin[nr] = (__u8)origin;
	return 0;
}

void kru_conf_defaults(struct kru_conf *ret_conf)
{
	char why[KRU_CONF_WHY_BYTES];

	memset(ret_conf, 0, sizeof(*ret_conf));
	for (unsigned int i = 0; i < KRU_CONF_KEYS; i++)
		if (kru_conf_assign(ret_conf, i, kru_conf_defs[i].dflt, KRU_CONF_DEFAULT, why,
				    sizeof(why)))
			abort(); /* conf.def contradicts itself */
}

/* Without the blanks around it, as a file's values are. */
static char *kru_conf_strip(char *text)
{
	size_t len;

	while (isspace((unsigned char)*text))
		text++;
	len = strlen(text);
	while (len && isspace((unsigned char)text[len - 1]))
		len--;
	text[len] = '\0';
	return text;
}

int kru_conf_set(struct kru_conf *conf, const char *assignment, kru_conf_report_fn *report,
		 void *arg)
{
	char text[KRU_CONF_VALUE_BYTES + 64], why[KRU_CONF_WHY_BYTES],
		line[KRU_CONF_WHY_BYTES + 128];
	const char *const from = "command line";
	char *dot, *equals, *value;
	int section, nr;

	if (strlen(assignment) >= sizeof(text)) {
		report(arg, from, 0, "assignment is too long");
		return -EINVAL;
	}
	memcpy(text, assignment, strlen(assignment) + 1);
	equals = strchr(text, '=');
	dot = strchr(text, '.');
	if (!equals || !dot || dot > equals) {
		snprintf(line, sizeof(line), "'%.100s' is not of the form section.key=value",
			 assignment);
		report(arg, from, 0, line);
		return -EINVAL;
	}
	*equals = '\0';
	*dot = '\0';
	section = kru_conf_find_section(text);
	nr = section < 0 ? section : kru_conf_find_key((enum kru_conf_section)section, dot + 1);
	if (nr < 0) {
		snprintf(line, sizeof(line), "unknown key '%.60s.%.60s'", text, dot + 1);
		report(arg, from, 0, line);
		return -EINVAL;
	}
	value = kru_conf_strip(equals + 1);
	if (kru_conf_assign(conf, (unsigned int)nr, value, KRU_CONF_COMMAND_LINE, why,
			    sizeof(why))) {
		snprintf(line, sizeof(line), "%.60s.%.60s: %s", text, dot + 1, why);
		report(arg, from, 0, line);
		return -EINVAL;
	}
	return 0;
}

static void kru_conf_value_text(const struct kru_conf *conf, unsigned int nr, char *buf,
				size_t bytes)
{
	const struct kru_conf_def *def = &kru_conf_defs[nr];
	const void *field = (const char *)conf + def->offset;
	const char *word = def->words;
	__u32 value;

	if (def->kind == KRU_CONF_TEXT) {
		snprintf(buf, bytes, "%s", (const char *)field);
		return;
	}
	value = def->kind == KRU_CONF_BOOL ? *(const bool *)field : *(const __u32 *)field;
	if (def->kind == KRU_CONF_UINT) {
		snprintf(buf, bytes, "%u", value);
		return;
	}
	while (value--)
		word = strchr(word, '|') + 1;
	snprintf(buf, bytes, "%.*s", (int)strcspn(word, "|"), word);
}

static void kru_conf_range_text(const struct kru_conf_def *def, char *buf, size_t bytes)
{
	size_t used = 0;

	switch (def->kind) {
	case KRU_CONF_UINT:
		snprintf(buf, bytes, "%llu to %llu%s%s", (unsigned long long)def->min,
			 (unsigned long long)def->max, def->unit ? " " : "",
			 kru_conf_unit_names[def->unit]);
		break;
	case KRU_CONF_TEXT:
		snprintf(buf, bytes, "%s, up to %zu characters%s", kru_conf_form(def->check_text),
			 def->bytes - 1, def->min ? "" : ", or empty");
		break;
	default:
		for (const char *p = def->words; *p && used + 3 < bytes; p++) {
			if (*p != '|') {
				buf[used++] = *p;
				continue;
			}
			buf[used++] = ',';
			buf[used++] = ' ';
		}
		buf[used] = '\0';
	}
}

/* @before: the configuration it replaces, or NULL. */
static void kru_conf_visit(const struct kru_conf *conf, const struct kru_conf *before,
			   unsigned int nr, kru_conf_visit_fn *visit, void *arg)
{
	const struct kru_conf_def *def = &kru_conf_defs[nr];
	char value[KRU_CONF_VALUE_BYTES], was[KRU_CONF_VALUE_BYTES], range[128];
	struct kru_conf_item item = {
		.section = kru_conf_section_names[def->section],
		.key = def->key,
		.value = value,
		.before = before ? was : NULL,
		.dflt = def->dflt,
		.range = range,
		.unit = kru_conf_unit_names[def->unit],
		.help = def->help,
		.origin = (enum kru_conf_origin)conf->origin[nr],
		.reloadable = def->reload,
		.list = kru_conf_is_list(def),
	};

	kru_conf_value_text(conf, nr, value, sizeof(value));
	if (before)
		kru_conf_value_text(before, nr, was, sizeof(was));
	kru_conf_range_text(def, range, sizeof(range));
	visit(arg, &item);
}

void kru_conf_each(const struct kru_conf *conf, kru_conf_visit_fn *visit, void *arg)
{
	for (unsigned int i = 0; i < KRU_CONF_KEYS; i++)
		kru_conf_visit(conf, NULL, i, visit, arg);
}

const char *kru_conf_origin_name(enum kru_conf_origin origin)
{
	static const char *const names[] = {
		[KRU_CONF_DEFAULT] = "default",
		[KRU_CONF_FROM_FILE] = "file",
		[KRU_CONF_COMMAND_LINE] = "command line",
	};

	return names[origin];
}

unsigned int kru_conf_merge(struct kru_conf *conf, const struct kru_conf *fresh,
			    enum kru_conf_section section, kru_conf_visit_fn *visit, void *arg)
{
	unsigned int changed = 0;

	for (unsigned int i = 0; i < KRU_CONF_KEYS; i++) {
		const struct kru_conf_def *def = &kru_conf_defs[i];
		void *to = (char *)conf + def->offset;
		const void *from = (const char *)fresh + def->offset;
		bool ours = def->section == section;
		bool differs = memcmp(to, from, def->bytes);

		if (ours && differs && visit)
			kru_conf_visit(fresh, conf, i, visit, arg);
		if (ours && differs && !def->reload)
			continue;
		memcpy(to, from, def->bytes);
		conf->origin[i] = fresh->origin[i];
		conf->line[i] = fresh->line[i];
		changed += ours && differs;
	}
	return changed;
}

void kru_conf_report_stderr(void *arg, const char *file, unsigned int line, const char *text)
{
	if (arg)
		fprintf(stderr, "%s: ", (const char *)arg);
	if (line)
		fprintf(stderr, "%s:%u: %s\n", file, line, text);
	else
		fprintf(stderr, "%s: %s\n", file, text);
}
