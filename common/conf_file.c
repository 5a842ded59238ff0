// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The file of the configuration: see conf.h. inih reads it through a reader
 * that hands out one line at a time, so that every report has its line and that
 * lines which inih would drop or cut in silence are errors. A list may go on
 * over indented lines.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ini.h>

#include "common/conf_internal.h"

#define KRU_CONF_WRAP 78
#define KRU_CONF_LINE_MAX (INI_MAX_LINE - 1) /* of what inih was built with */

/**
 * struct kru_conf_reader - State of one parse.
 * @conf: what is filled, a copy.
 * @file: name for reports.
 * @report: called for errors.
 * @arg: its first argument.
 * @at: next byte.
 * @end: end of the text.
 * @line: number of the line that inih has.
 * @errors: reported so far.
 * @pending: the line must lead to a call of the handler.
 * @indented: the line began with a blank.
 * @had_key: the section has a key, with which an indented line goes on.
 * @in_unknown: the section is unknown and was reported.
 * @seen: line of each key, or 0.
 * @open: key whose value may still go on, or -1.
 * @open_line: where it began.
 * @value: its value so far.
 */
struct kru_conf_reader {
	struct kru_conf conf;
	const char *file;
	kru_conf_report_fn *report;
	void *arg;
	const char *at;
	const char *end;
	unsigned int line;
	unsigned int errors;
	bool pending;
	bool indented;
	bool had_key;
	bool in_unknown;
	unsigned int seen[KRU_CONF_KEYS];
	int open;
	unsigned int open_line;
	char value[KRU_CONF_VALUE_BYTES];
};

__attribute__((format(printf, 3, 4))) static void
kru_conf_complain(struct kru_conf_reader *r, unsigned int line, const char *fmt, ...)
{
	char text[KRU_CONF_WHY_BYTES + 128];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	r->report(r->arg, r->file, line, text);
	r->errors++;
}

/* The open key is complete: read its value. */
static void kru_conf_take(struct kru_conf_reader *r)
{
	const struct kru_conf_def *def;
	char why[KRU_CONF_WHY_BYTES];

	if (r->open < 0)
		return;
	def = &kru_conf_defs[r->open];
	if (kru_conf_assign(&r->conf, (unsigned int)r->open, r->value, KRU_CONF_FROM_FILE, why,
			    sizeof(why)))
		kru_conf_complain(r, r->open_line, "%s.%s: %s", kru_conf_section_name(def->section),
				  def->key, why);
	r->conf.line[r->open] = r->open_line;
	r->open = -1;
}

static void kru_conf_see_section(struct kru_conf_reader *r, const char *text, size_t len)
{
	const char *close = memchr(text, ']', len);
	char name[50];

	r->in_unknown = true;
	if (!close) {
		kru_conf_complain(r, r->line, "section without ']'");
		return;
	}
	for (const char *p = close + 1; p < text + len && *p != ';' && *p != '#'; p++) {
		if (!isspace((unsigned char)*p)) {
			kru_conf_complain(r, r->line, "text after the section");
			return;
		}
	}
	snprintf(name, sizeof(name), "%.*s", (int)(close - text - 1), text + 1);
	if (kru_conf_find_section(name) < 0)
		kru_conf_complain(r, r->line, "unknown section '[%s]'", name);
	else
		r->in_unknown = false;
}

/* Check a line before inih reads it. Return: whether to pass it to inih. */
static bool kru_conf_see_line(struct kru_conf_reader *r, const char *text, size_t len, size_t room)
{
	size_t skip = 0;

	if (memchr(text, '\0', len)) {
		kru_conf_complain(r, r->line, "contains a zero byte");
		return false;
	}
	if (len >= room) {
		kru_conf_complain(r, r->line,
				  "longer than %zu characters; a list may go on in an "
				  "indented line",
				  room - 1);
		return false;
	}
	while (skip < len && isspace((unsigned char)text[skip]))
		skip++;
	r->indented = skip > 0;
	if (skip == len || text[skip] == ';' || text[skip] == '#')
		return true;
	if (!r->indented)
		kru_conf_take(r);
	if (text[skip] == '[' && !(r->indented && r->had_key)) {
		kru_conf_see_section(r, text + skip, len - skip);
		r->had_key = false;
		return true;
	}
	r->pending = true;
	return true;
}

static void kru_conf_line_done(struct kru_conf_reader *r)
{
	if (r->pending)
		kru_conf_complain(r, r->line, "neither 'key = value' nor '[section]'");
	r->pending = false;
}

/* Reader of inih: one line, as fgets() would. */
static char *kru_conf_reader(char *buf, int room, void *stream)
{
	struct kru_conf_reader *r = stream;
	const char *newline;
	size_t len;

	kru_conf_line_done(r);
	if (r->at == r->end)
		return NULL;
	newline = memchr(r->at, '\n', (size_t)(r->end - r->at));
	len = (size_t)((newline ? newline : r->end) - r->at);
	r->line++;
	if (r->line == 1 && len >= 3 && !memcmp(r->at, "\xef\xbb\xbf", 3)) {
		r->at += 3;
		len -= 3;
	}
	if (kru_conf_see_line(r, r->at, len, (size_t)room)) {
		memcpy(buf, r->at, len);
		buf[len] = '\0';
	} else {
		memcpy(buf, ";", sizeof(";"));
	}
	r->at += len + !!newline;
	return buf;
}

/* An indented line: the list above goes on. */
static void kru_conf_continue(struct kru_conf_reader *r, const char *value)
{
	const struct kru_conf_def *def = r->open < 0 ? NULL : &kru_conf_defs[r->open];
	const char *comment = strstr(value, " ;"); /* which inih leaves here */
	size_t len = comment ? (size_t)(comment - value) : strlen(value);
	size_t used = strlen(r->value);

	if (!def || !kru_conf_is_list(def)) {
		kru_conf_complain(r, r->line,
				  "an indented line goes on with the list above, but "
				  "there is none");
		return;
	}
	if (used + len + 3 > sizeof(r->value)) {
		kru_conf_complain(r, r->line, "%s.%s: is too long",
				  kru_conf_section_name(def->section), def->key);
		return;
	}
	if (used && r->value[used - 1] != ',')
		r->value[used++] = ',';
	memcpy(r->value + used, value, len);
	r->value[used + len] = '\0';
}

static int kru_conf_handler(void *user, const char *section, const char *name, const char *value)
{
	struct kru_conf_reader *r = user;
	int sec = kru_conf_find_section(section);
	int nr;

	r->pending = false;
	if (r->indented && r->had_key) {
		kru_conf_continue(r, value);
		return 1;
	}
	r->had_key = true;
	if (r->in_unknown)
		return 1;
	if (sec < 0) {
		kru_conf_complain(r, r->line, "key '%.60s' before the first section", name);
		return 1;
	}
	nr = kru_conf_find_key((enum kru_conf_section)sec, name);
	if (nr < 0) {
		kru_conf_complain(r, r->line, "unknown key '%.60s' in [%s]", name, section);
		return 1;
	}
	if (r->seen[nr]) {
		kru_conf_complain(r, r->line, "%s.%s: given before in line %u", section, name,
				  r->seen[nr]);
		return 1;
	}
	r->seen[nr] = r->line;
	r->open = nr;
	r->open_line = r->line;
	snprintf(r->value, sizeof(r->value), "%s", value);
	return 1;
}

int kru_conf_parse(const char *file, const char *text, size_t bytes, struct kru_conf *conf,
		   kru_conf_report_fn *report, void *arg)
{
	struct kru_conf_reader *r;
	int err = 0;

	if (bytes > KRU_CONF_BYTES_MAX) {
		report(arg, file, 0, "file is larger than 1 MiB");
		return -EFBIG;
	}
	r = calloc(1, sizeof(*r));
	if (!r) {
		report(arg, file, 0, "no memory");
		return -ENOMEM;
	}
	r->conf = *conf;
	r->file = file;
	r->report = report;
	r->arg = arg;
	r->at = text;
	r->end = text + bytes;
	r->open = -1;

	ini_parse_stream(kru_conf_reader, r, kru_conf_handler, r);
	kru_conf_take(r);
	if (r->errors)
		err = -EINVAL;
	else
		*conf = r->conf;
	free(r);
	return err;
}

static int kru_conf_read(const char *path, char *buf, size_t room, size_t *ret_bytes)
{
	size_t used = 0;
	struct stat st;
	ssize_t got;
	int fd, err = 0;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		err = -errno;
	else if (S_ISDIR(st.st_mode))
		err = -EISDIR;
	while (!err && used < room) {
		got = read(fd, buf + used, room - used);
		if (got < 0 && errno != EINTR)
			err = -errno;
		if (!got)
			break;
		used += got > 0 ? (size_t)got : 0;
	}
	close(fd);
	if (!err)
		*ret_bytes = used;
	return err;
}

int kru_conf_load(const char *path, struct kru_conf *conf, kru_conf_report_fn *report, void *arg)
{
	size_t bytes = 0;
	char *text;
	int err;

	text = malloc(KRU_CONF_BYTES_MAX + 1);
	err = text ? kru_conf_read(path, text, KRU_CONF_BYTES_MAX + 1, &bytes) : -ENOMEM;
	if (err)
		report(arg, path, 0, strerror(-err));
	else
		err = kru_conf_parse(path, text, bytes, conf, report, arg);
	free(text);
	return err;
}

static void kru_conf_print_wrapped(FILE *to, const char *text)
{
	size_t column = 0;

	while (*text) {
		size_t len = strcspn(text, " ");

		if (column && column + 1 + len > KRU_CONF_WRAP) {
			fputc('\n', to);
			column = 0;
		}
		column += (size_t)fprintf(to, column ? " %.*s" : "# %.*s", (int)len, text);
		text += len + strspn(text + len, " ");
	}
	fputc('\n', to);
}

/**
 * struct kru_conf_printer - State of kru_conf_print().
 * @to: where to.
 * @section: name of the section last begun.
 */
struct kru_conf_printer {
	FILE *to;
	const char *section;
};

/* A list goes on in the next line before a part that would make this one too long. */
static void kru_conf_print_value(FILE *to, size_t column, const struct kru_conf_item *item)
{
	const char *at = item->value;

	while (*at) {
		size_t len = item->list ? strcspn(at, ",") : strlen(at);
		bool more = at[len] == ',';

		if (column && column + 1 + len + more > KRU_CONF_LINE_MAX) {
			fputc('\n', to);
			column = 0;
		}
		column += (size_t)fprintf(to, "%s%.*s%s", column ? " " : "\t", (int)len, at,
					  more ? "," : "");
		at += len + more;
	}
	fputc('\n', to);
}

static void kru_conf_print_item(void *arg, const struct kru_conf_item *item)
{
	struct kru_conf_printer *p = arg;
	char line[512];
	size_t column;

	if (p->section != item->section) {
		fprintf(p->to, "\n[%s]\n", item->section);
		p->section = item->section;
	}
	fputc('\n', p->to);
	kru_conf_print_wrapped(p->to, item->help);
	snprintf(line, sizeof(line), "Range: %s. Default: %s%s%s.%s", item->range,
		 *item->dflt ? item->dflt : "empty", *item->unit ? " " : "", item->unit,
		 item->reloadable || strcmp(item->section, "metaserver") ? ""
									 : " Needs a restart.");
	kru_conf_print_wrapped(p->to, line);
	column = (size_t)fprintf(p->to, "%s%s =", item->origin == KRU_CONF_DEFAULT ? "#" : "",
				 item->key);
	kru_conf_print_value(p->to, column, item);
}

void kru_conf_print(const struct kru_conf *conf, FILE *to)
{
	struct kru_conf_printer printer = { .to = to };

	fputs("# SPDX-License-Identifier: GPL-2.0-only OR MIT\n"
	      "# krcore.conf: see krcore.conf(5). Section [metaserver] is for the daemon\n"
	      "# krcore-metaserver(8), [node] for everything that talks to it.\n"
	      "# Times take the units ms, s, min, h; sizes KiB, MiB, GiB. A list may go on\n"
	      "# over indented lines. Unknown keys are errors.\n",
	      to);
	kru_conf_each(conf, kru_conf_print_item, &printer);
}
