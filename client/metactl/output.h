/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Rows on stdout, as human-readable text or as JSON for programs, from one call.
 *
 * A command puts cells into rows under their JSON keys; the layout decides what
 * they look like. JSON is one array of flat objects over the whole run. Units
 * are in the keys (age_ms); text shows them scaled (1.5s) under the bare word.
 *
 * Threads: one. The first error is kept and returned by mc_out_end(). Idea: the one
 * print call for text and JSON of iproute2's json_print.h.
 */
#ifndef MC_OUTPUT_H
#define MC_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

/* mc_out_new(): how to write */
#define MC_OUT_JSON 0x01
#define MC_OUT_PRETTY 0x02 /* JSON with indentation */
#define MC_OUT_ONELINE 0x04 /* text: a row a line, each value after its key */
#define MC_OUT_COLOUR 0x08
#define MC_OUT_DETAILS 0x10 /* text: show MC_DETAIL cells too */

/* mc_put_*(): how a cell looks in text */
#define MC_DETAIL 0x01 /* JSON always has it, text only on request */
#define MC_GOOD 0x02
#define MC_WARN 0x04
#define MC_BAD 0x08
#define MC_BELOW 0x10 /* in a table: a line of its own below the row, if there is a value */

/**
 * enum mc_layout - What rows look like as text.
 * @MC_TABLE: a line of headings, then aligned columns.
 * @MC_BLOCK: a row is a block of "key: value" lines.
 * @MC_TABS: columns separated by TAB, no heading: for programs.
 * @MC_LINES: as MC_OUT_ONELINE, and written out row by row.
 */
enum mc_layout {
	MC_TABLE,
	MC_BLOCK,
	MC_TABS,
	MC_LINES,
};

struct mc_out;

/**
 * mc_out_new() - Begin an output.
 * @file: where to; stays the caller's.
 * @flags: MC_OUT_*.
 * @ret_out: the output; untouched on failure.
 *
 * Return: 0, or -ENOMEM.
 */
int mc_out_new(FILE *file, unsigned int flags, struct mc_out **ret_out);

/**
 * mc_out_table() - Begin a group of like rows.
 * @out: output.
 * @layout: how they look as text.
 * @type: what the rows are, when a command shows several kinds: JSON gets it as
 *	the key "type", text as a heading. NULL for the only kind.
 */
void mc_out_table(struct mc_out *out, enum mc_layout layout, const char *type);

/** mc_row() - Begin a row; the one before is complete. @out: output. */
void mc_row(struct mc_out *out);

/** mc_row_flush() - The row is complete: write it now if the layout is MC_LINES. @out: output. */
void mc_row_flush(struct mc_out *out);

/** mc_put_text() - A string; NULL for none. @out: output. @key: key. @flags: MC_*. @text: bytes. */
void mc_put_text(struct mc_out *out, const char *key, unsigned int flags, const char *text);

/**
 * mc_put_format() - A string made by printf rules.
 * @out: output.
 * @key: key.
 * @flags: MC_DETAIL, colours.
 * @format: as printf().
 */
void mc_put_format(struct mc_out *out, const char *key, unsigned int flags, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/**
 * mc_put_number() - An integer.
 * @out: output.
 * @key: key; an ending _ns, _us, _ms or _bytes scales the text.
 * @flags: MC_DETAIL, colours.
 * @value: value; what does not fit JSON's 63 bits is written as the largest that does.
 */
void mc_put_number(struct mc_out *out, const char *key, unsigned int flags, uint64_t value);

/** mc_put_signed() - As mc_put_number(). @out: output. @key: key. @flags: MC_*. @value: value. */
void mc_put_signed(struct mc_out *out, const char *key, unsigned int flags, int64_t value);

/** mc_put_bool() - yes or no. @out: output. @key: key. @flags: MC_*. @value: value. */
void mc_put_bool(struct mc_out *out, const char *key, unsigned int flags, bool value);

/**
 * mc_put_json() - A value that came as JSON.
 * @out: output.
 * @key: key.
 * @flags: MC_DETAIL, colours.
 * @value: borrowed; an array of strings becomes one string with commas, other
 *	containers are written as compact JSON text, so that rows stay flat.
 */
void mc_put_json(struct mc_out *out, const char *key, unsigned int flags, json_t *value);

/**
 * mc_put_object() - The members of an object that came as JSON.
 * @out: output.
 * @object: borrowed.
 * @keys: keys that text always shows, in this order, ended by NULL; a member
 *	that is not there is shown as none. The others follow as MC_DETAIL. NULL
 *	shows all members in their own order.
 */
void mc_put_object(struct mc_out *out, json_t *object, const char *const *keys);

/**
 * mc_out_end() - Write the remaining rows and free the output.
 * @out: output or NULL.
 *
 * Return: 0, or the negative errno of the first thing that went wrong.
 */
int mc_out_end(struct mc_out *out);

/**
 * mc_scaled() - A number with its unit, human-readable.
 * @key: key whose ending is the unit; "unix" before that makes a date of the number.
 * @value: number.
 * @buf: where to.
 * @bytes: size of @buf.
 *
 * Return: length of @key without the unit.
 */
size_t mc_scaled(const char *key, uint64_t value, char *buf, size_t bytes);

#endif /* MC_OUTPUT_H */
