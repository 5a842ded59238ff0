// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Rows as text or JSON: see output.h.
 *
 * A table holds back MC_HOLD_ROWS rows to find the widths of its columns and
 * then streams, so that a dump of a million records needs no memory for them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/metactl/output.h"
#include "common/text.h"

#define MC_COLUMNS_MAX 1024
#define MC_HOLD_ROWS 256
#define MC_KEY_BYTES 48

struct mc_cell {
	char key[MC_KEY_BYTES];
	unsigned int flags;
	json_t *value; /* NULL: nothing to show */
	char *text;
};

struct mc_line {
	unsigned int nr;
	unsigned int room;
	struct mc_cell *cells;
};

struct mc_out {
	FILE *file;
	unsigned int flags;
	enum mc_layout layout;
	char type[MC_KEY_BYTES];
	bool typed;
	bool any_json; /* an object was written: the next needs a comma */
	bool any_text;
	bool heading; /* the heading of this table is out */
	bool open; /* a row has begun and is not complete */
	int error;
	struct mc_line row;
	struct mc_line *held;
	unsigned int held_nr;
	unsigned int width[MC_COLUMNS_MAX];
};

static void mc_fail(struct mc_out *out, int error)
{
	if (!out->error)
		out->error = error;
}

int mc_out_new(FILE *file, unsigned int flags, struct mc_out **ret_out)
{
	struct mc_out *out = calloc(1, sizeof(*out));

	if (!out)
		return -ENOMEM;
	out->held = calloc(MC_HOLD_ROWS, sizeof(*out->held));
	if (!out->held) {
		free(out);
		return -ENOMEM;
	}
	out->file = file;
	out->flags = flags;
	if (flags & MC_OUT_JSON)
		fputc('[', file);
	*ret_out = out;
	return 0;
}

static void mc_line_clear(struct mc_line *line)
{
	unsigned int i;

	for (i = 0; i < line->nr; i++) {
		json_decref(line->cells[i].value);
		free(line->cells[i].text);
	}
	free(line->cells);
	memset(line, 0, sizeof(*line));
}

static struct mc_cell *mc_line_next(struct mc_line *line)
{
	unsigned int room = line->room ? 2 * line->room : 16;
	struct mc_cell *cells;

	if (line->nr == line->room) {
		cells = realloc(line->cells, room * sizeof(*cells));
		if (!cells)
			return NULL;
		line->cells = cells;
		line->room = room;
	}
	return &line->cells[line->nr];
}

static bool mc_ends(const char *key, const char *end, size_t *ret_len)
{
	size_t a = strlen(key), b = strlen(end);

	if (a <= b || strcmp(key + a - b, end) != 0)
		return false;
	*ret_len = a - b;
	return true;
}

static void mc_scaled_time(uint64_t ns, char *buf, size_t bytes)
{
	if (ns < 1000)
		snprintf(buf, bytes, "%" PRIu64 "ns", ns);
	else if (ns < 1000000)
		snprintf(buf, bytes, "%.2fus", (double)ns / 1e3);
	else if (ns < 1000000000)
		snprintf(buf, bytes, "%.2fms", (double)ns / 1e6);
	else if (ns < 120 * 1000000000ULL)
		snprintf(buf, bytes, "%.2fs", (double)ns / 1e9);
	else if (ns < 86400 * 1000000000ULL)
		snprintf(buf, bytes, "%" PRIu64 "h%02um%02us", ns / 3600000000000,
			 (unsigned int)(ns / 60000000000 % 60),
			 (unsigned int)(ns / 1000000000 % 60));
	else
		snprintf(buf, bytes, "%" PRIu64 "d%02uh%02um", ns / 86400000000000,
			 (unsigned int)(ns / 3600000000000 % 24),
			 (unsigned int)(ns / 60000000000 % 60));
}

static void mc_scaled_date(uint64_t ns, char *buf, size_t bytes)
{
	time_t at = (time_t)(ns / 1000000000);
	struct tm tm;

	if (!gmtime_r(&at, &tm) || !strftime(buf, bytes, "%FT%TZ", &tm))
		*buf = '\0';
}

/* The length of a key before "unix", which makes a date of a time; 0 if it is none. */
static size_t mc_dated(const char *key, size_t len)
{
	if (len == 4 && !strncmp(key, "unix", 4))
		return len;
	return len > 5 && !strncmp(key + len - 5, "_unix", 5) ? len - 5 : 0;
}

static void mc_scaled_bytes(uint64_t value, char *buf, size_t bytes)
{
	static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double v = (double)value;
	unsigned int i = 0;

	while (v >= 1024 && i + 1 < sizeof(unit) / sizeof(unit[0])) {
		v /= 1024;
		i++;
	}
	snprintf(buf, bytes, i ? "%.1f%s" : "%.0f%s", v, unit[i]);
}

size_t mc_scaled(const char *key, uint64_t value, char *buf, size_t bytes)
{
	static const struct {
		const char *end;
		uint64_t ns;
	} times[] = { { "_ns", 1 }, { "_us", 1000 }, { "_ms", 1000000 }, { "_s", 1000000000 } };
	size_t len, head;
	unsigned int i;

	for (i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		if (!mc_ends(key, times[i].end, &len) || value > UINT64_MAX / times[i].ns)
			continue;
		head = mc_dated(key, len);
		if (head) {
			mc_scaled_date(value * times[i].ns, buf, bytes);
			return head;
		}
		mc_scaled_time(value * times[i].ns, buf, bytes);
		return len;
	}
	if (mc_ends(key, "_bytes", &len)) {
		mc_scaled_bytes(value, buf, bytes);
		return len;
	}
	snprintf(buf, bytes, "%" PRIu64, value);
	return strlen(key);
}

/* Human-readable text has 1.5s; for programs that read text, the integer under its full key. */
static bool mc_scales(const struct mc_out *out)
{
	return !(out->flags & (MC_OUT_JSON | MC_OUT_ONELINE)) &&
	       (out->layout == MC_TABLE || out->layout == MC_BLOCK);
}

/* Takes over @value and @text. */
static void mc_cell(struct mc_out *out, const char *key, size_t head, unsigned int flags,
		    json_t *value, char *text)
{
	struct mc_cell *cell = mc_line_next(&out->row);

	if (!out->open || out->row.nr == MC_COLUMNS_MAX || !cell || !value || !text ||
	    strlen(key) >= MC_KEY_BYTES) {
		mc_fail(out, cell && value && text ? -E2BIG : -ENOMEM);
		json_decref(value);
		free(text);
		return;
	}
	memcpy(cell->key, key, head);
	cell->key[head] = '\0';
	cell->flags = flags;
	cell->value = value;
	cell->text = text;
	out->row.nr++;
}

static void mc_put_none(struct mc_out *out, const char *key, unsigned int flags)
{
	mc_cell(out, key, strlen(key), flags, json_null(), strdup("-"));
}

void mc_put_text(struct mc_out *out, const char *key, unsigned int flags, const char *text)
{
	char *safe;

	if (!text) {
		mc_put_none(out, key, flags);
		return;
	}
	safe = kru_text_safe(text, strlen(text));
	mc_cell(out, key, strlen(key), flags, safe ? json_string(safe) : NULL, safe);
}

void mc_put_format(struct mc_out *out, const char *key, unsigned int flags, const char *format, ...)
{
	char *text;
	va_list ap;

	va_start(ap, format);
	if (vasprintf(&text, format, ap) < 0)
		text = NULL;
	va_end(ap);
	if (!text) {
		mc_fail(out, -ENOMEM);
		return;
	}
	mc_put_text(out, key, flags, text);
	free(text);
}

void mc_put_number(struct mc_out *out, const char *key, unsigned int flags, uint64_t value)
{
	json_int_t number = value > INT64_MAX ? INT64_MAX : (json_int_t)value;
	size_t head = strlen(key);
	char buf[48];

	if (mc_scales(out))
		head = mc_scaled(key, value, buf, sizeof(buf));
	else
		snprintf(buf, sizeof(buf), "%" PRIu64, value);
	mc_cell(out, key, head, flags, json_integer(number), strdup(buf));
}

void mc_put_signed(struct mc_out *out, const char *key, unsigned int flags, int64_t value)
{
	char buf[48];

	if (value >= 0) {
		mc_put_number(out, key, flags, (uint64_t)value);
		return;
	}
	snprintf(buf, sizeof(buf), "%" PRId64, value);
	mc_cell(out, key, strlen(key), flags, json_integer(value), strdup(buf));
}

void mc_put_bool(struct mc_out *out, const char *key, unsigned int flags, bool value)
{
	mc_cell(out, key, strlen(key), flags, json_boolean(value), strdup(value ? "yes" : "no"));
}

static char *mc_joined(json_t *array)
{
	size_t i, bytes = 1;
	json_t *item;
	char *text, *to;

	for (i = 0; i < json_array_size(array); i++) {
		item = json_array_get(array, i);
		if (!json_is_string(item))
			return NULL;
		bytes += json_string_length(item) + 1;
	}
	text = calloc(1, bytes);
	if (!text)
		return NULL;
	to = text;
	for (i = 0; i < json_array_size(array); i++) {
		item = json_array_get(array, i);
		to += sprintf(to, "%s%s", i ? "," : "", json_string_value(item));
	}
	return text;
}

void mc_put_json(struct mc_out *out, const char *key, unsigned int flags, json_t *value)
{
	char *text = NULL;
	char buf[48];

	switch (json_typeof(value)) {
	case JSON_STRING:
		mc_put_text(out, key, flags, json_string_value(value));
		return;
	case JSON_INTEGER:
		mc_put_signed(out, key, flags, json_integer_value(value));
		return;
	case JSON_REAL:
		snprintf(buf, sizeof(buf), "%.6g", json_real_value(value));
		mc_cell(out, key, strlen(key), flags, json_incref(value), strdup(buf));
		return;
	case JSON_TRUE:
	case JSON_FALSE:
		mc_put_bool(out, key, flags, json_is_true(value));
		return;
	case JSON_NULL:
		mc_put_none(out, key, flags);
		return;
	case JSON_ARRAY:
		text = mc_joined(value);
		break;
	case JSON_OBJECT:
		break;
	}
	if (!text)
		text = json_dumps(value, JSON_COMPACT);
	if (text)
		mc_put_text(out, key, flags, text);
	else
		mc_fail(out, -ENOMEM);
	free(text);
}

static bool mc_listed(const char *const *keys, const char *key)
{
	for (; keys && *keys; keys++)
		if (!strcmp(*keys, key))
			return true;
	return false;
}

void mc_put_object(struct mc_out *out, json_t *object, const char *const *keys)
{
	const char *const *k;
	json_t *value;
	void *it;

	for (k = keys; k && *k; k++) {
		value = json_object_get(object, *k);
		mc_put_json(out, *k, 0, value ? value : json_null());
	}
	for (it = json_object_iter(object); it; it = json_object_iter_next(object, it))
		if (!mc_listed(keys, json_object_iter_key(it)))
			mc_put_json(out, json_object_iter_key(it), keys ? MC_DETAIL : 0,
				    json_object_iter_value(it));
}

static void mc_write_json(struct mc_out *out, const struct mc_line *line)
{
	size_t how = JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(15);
	json_t *object = json_object();
	unsigned int i;
	int bad = !object;

	if (out->typed)
		bad |= json_object_set_new(object, "type", json_string(out->type));
	for (i = 0; i < line->nr; i++)
		bad |= json_object_set(object, line->cells[i].key, line->cells[i].value);
	if (out->flags & MC_OUT_PRETTY)
		how |= JSON_INDENT(2);
	/* the comma begins a line, so that a stream has whole lines at any time */
	fputs(out->any_json ? "," : "\n", out->file);
	if (bad || json_dumpf(object, out->file, how))
		mc_fail(out, bad ? -ENOMEM : -EIO);
	fputc('\n', out->file);
	out->any_json = true;
	json_decref(object);
}

static bool mc_shown(const struct mc_out *out, const struct mc_cell *cell)
{
	return !(cell->flags & MC_DETAIL) || (out->flags & MC_OUT_DETAILS);
}

static void mc_write_cell(struct mc_out *out, const struct mc_cell *cell, unsigned int width)
{
	unsigned int colour = 0;

	if (out->flags & MC_OUT_COLOUR)
		colour = cell->flags & MC_BAD	 ? 31
			 : cell->flags & MC_WARN ? 33
			 : cell->flags & MC_GOOD ? 32
						 : 0;
	if (colour)
		fprintf(out->file, "\033[%um%-*s\033[0m", colour, (int)width, cell->text);
	else
		fprintf(out->file, "%-*s", (int)width, cell->text);
}

static void mc_write_oneline(struct mc_out *out, const struct mc_line *line)
{
	const char *gap = "";
	unsigned int i;

	if (out->typed) {
		fputs(out->type, out->file);
		gap = " ";
	}
	for (i = 0; i < line->nr; i++) {
		if (!mc_shown(out, &line->cells[i]))
			continue;
		fprintf(out->file, "%s%s ", gap, line->cells[i].key);
		mc_write_cell(out, &line->cells[i], 0);
		gap = " ";
	}
	fputc('\n', out->file);
}

static void mc_write_block(struct mc_out *out, const struct mc_line *line)
{
	unsigned int i, width = 0;

	for (i = 0; i < line->nr; i++)
		if (mc_shown(out, &line->cells[i]) && strlen(line->cells[i].key) > width)
			width = (unsigned int)strlen(line->cells[i].key);
	if (out->any_text)
		fputc('\n', out->file);
	for (i = 0; i < line->nr; i++) {
		if (!mc_shown(out, &line->cells[i]))
			continue;
		fprintf(out->file, "%s:%*s ", line->cells[i].key,
			(int)(width - strlen(line->cells[i].key)), "");
		mc_write_cell(out, &line->cells[i], 0);
		fputc('\n', out->file);
	}
}

static void mc_write_tabs(struct mc_out *out, const struct mc_line *line)
{
	unsigned int i;

	for (i = 0; i < line->nr; i++)
		fprintf(out->file, "%s%s", i ? "\t" : "", line->cells[i].text);
	fputc('\n', out->file);
}

static bool mc_in_column(const struct mc_out *out, const struct mc_cell *cell)
{
	return mc_shown(out, cell) && !(cell->flags & MC_BELOW);
}

/* The last column is not padded. */
static unsigned int mc_last_column(const struct mc_out *out, const struct mc_line *line)
{
	unsigned int i, last = 0;

	for (i = 0; i < line->nr; i++)
		if (mc_in_column(out, &line->cells[i]))
			last = i;
	return last;
}

static void mc_write_columns(struct mc_out *out, const struct mc_line *line)
{
	unsigned int i, last = mc_last_column(out, line);
	const struct mc_cell *cell;

	for (i = 0; i < line->nr; i++) {
		if (!mc_in_column(out, &line->cells[i]))
			continue;
		mc_write_cell(out, &line->cells[i], i == last ? 0 : out->width[i]);
		fputs(i == last ? "\n" : "  ", out->file);
	}
	for (i = 0; i < line->nr; i++) {
		cell = &line->cells[i];
		if (!mc_shown(out, cell) || !(cell->flags & MC_BELOW) || json_is_null(cell->value))
			continue;
		fprintf(out->file, "    %s: ", cell->key);
		mc_write_cell(out, cell, 0);
		fputc('\n', out->file);
	}
}

static void mc_write_heading(struct mc_out *out, const struct mc_line *line)
{
	unsigned int i, last = mc_last_column(out, line);

	if (out->heading)
		return;
	out->heading = true;
	if (out->any_text)
		fputc('\n', out->file);
	for (i = 0; i < line->nr; i++)
		if (mc_in_column(out, &line->cells[i]))
			fprintf(out->file, "%-*s%s", i == last ? 0 : (int)out->width[i],
				line->cells[i].key, i == last ? "\n" : "  ");
}

/* Columns are as wide as the widest of the rows held back. */
static void mc_flush_held(struct mc_out *out)
{
	unsigned int i, j, width;

	for (i = 0; i < out->held_nr; i++)
		for (j = 0; j < out->held[i].nr; j++) {
			width = (unsigned int)strlen(out->held[i].cells[j].text);
			if (!out->heading && strlen(out->held[i].cells[j].key) > width)
				width = (unsigned int)strlen(out->held[i].cells[j].key);
			if (width > out->width[j])
				out->width[j] = width;
		}
	for (i = 0; i < out->held_nr; i++) {
		mc_write_heading(out, &out->held[i]);
		mc_write_columns(out, &out->held[i]);
		out->any_text = true;
		mc_line_clear(&out->held[i]);
	}
	out->held_nr = 0;
}

static void mc_row_done(struct mc_out *out)
{
	if (!out->open)
		return;
	out->open = false;
	if (out->flags & MC_OUT_JSON) {
		mc_write_json(out, &out->row);
	} else if (out->layout == MC_TABS) {
		mc_write_tabs(out, &out->row);
	} else if ((out->flags & MC_OUT_ONELINE) || out->layout == MC_LINES) {
		mc_write_oneline(out, &out->row);
		out->any_text = true;
	} else if (out->layout == MC_BLOCK) {
		mc_write_block(out, &out->row);
		out->any_text = true;
	} else {
		if (out->held_nr == MC_HOLD_ROWS)
			mc_flush_held(out);
		out->held[out->held_nr++] = out->row;
		memset(&out->row, 0, sizeof(out->row));
	}
	mc_line_clear(&out->row);
	if (out->layout == MC_LINES)
		fflush(out->file);
}

void mc_out_table(struct mc_out *out, enum mc_layout layout, const char *type)
{
	mc_row_done(out);
	mc_flush_held(out);
	memset(out->width, 0, sizeof(out->width));
	out->heading = false;
	out->layout = layout;
	out->typed = type;
	if (type && (size_t)snprintf(out->type, sizeof(out->type), "%s", type) >= sizeof(out->type))
		mc_fail(out, -E2BIG);
}

void mc_row_flush(struct mc_out *out)
{
	mc_row_done(out);
}

void mc_row(struct mc_out *out)
{
	mc_row_done(out);
	out->open = true;
}

int mc_out_end(struct mc_out *out)
{
	int error;

	if (!out)
		return 0;
	mc_row_done(out);
	mc_flush_held(out);
	if (out->flags & MC_OUT_JSON)
		fputs("]\n", out->file);
	if (fflush(out->file) || ferror(out->file))
		mc_fail(out, errno ? -errno : -EIO);
	error = out->error;
	free(out->held);
	free(out);
	return error;
}
