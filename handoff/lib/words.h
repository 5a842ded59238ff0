/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What caller, runner and function say to each other: lines of text on one TCP connection.
 *
 * A connection to a runner is one function. Its first line is for the runner, which starts the
 * function with the connection as standard input and output; the others are between caller
 * and function, which ends when the connection does.
 *
 *	start NAME ARGUMENT...		to the runner: start this function
 *
 *	make BYTES SEED			make data, and offer them
 *	take REFERENCE			fetch data
 *	pass REFERENCE			fetch data, change them, and offer the result
 *	free				the data offered are not needed any more
 *
 *	offer REFERENCE BYTES SUM	data can be fetched
 *	took BYTES SUM START CONNECT READ	data are here; nanoseconds of each step
 *	freed				answer to free: nobody can fetch the data any more
 *	lapsed				the lease is over: as if freed
 *	fail TEXT			what was asked for was not done
 *
 * A reference is one word, which says nothing to anybody but functions of the same kind. SUM
 * is the XXH64 of the data. No state: any thread.
 */
#ifndef KH_WORDS_H
#define KH_WORDS_H

#include <stddef.h>
#include <stdint.h>

#define KH_LINE_BYTES 512 /* longest line, with its newline or NUL */
#define KH_WORD_BYTES 128 /* longest reference, with its NUL */
#define KH_NAME_BYTES 33 /* longest name of a function, with its NUL */
#define KH_ARGS_MAX 8 /* arguments of a function */
#define KH_DATA_BYTES_MAX (1U << 30) /* data that can be handed over at once */

/**
 * struct kh_start - A line for the runner.
 * @name: of the function: a-z, 0-9, - and _.
 * @argc: how many arguments.
 * @argv: they, in @line.
 * @line: the line, cut into words.
 */
struct kh_start {
	const char *name;
	unsigned int argc;
	const char *argv[KH_ARGS_MAX];
	char line[KH_LINE_BYTES];
};

/**
 * enum kh_verb - What a caller asks a function for.
 * @KH_MAKE: make data.
 * @KH_TAKE: fetch data.
 * @KH_PASS: fetch, change and offer data.
 * @KH_FREE: take an offer back.
 */
enum kh_verb {
	KH_MAKE,
	KH_TAKE,
	KH_PASS,
	KH_FREE,
};

/**
 * struct kh_command - A line for a function.
 * @verb: what for.
 * @bytes: KH_MAKE: 1 to KH_DATA_BYTES_MAX.
 * @seed: KH_MAKE: which data.
 * @word: KH_TAKE, KH_PASS: the reference.
 */
struct kh_command {
	enum kh_verb verb;
	uint64_t bytes;
	uint64_t seed;
	char word[KH_WORD_BYTES];
};

/**
 * enum kh_kind - What a function says.
 * @KH_OFFER: it offers data.
 * @KH_TOOK: it has fetched data.
 * @KH_FREED: it has taken its offer back.
 * @KH_LAPSED: it has done so because the lease is over.
 * @KH_FAIL: it has not done what it was asked for.
 */
enum kh_kind {
	KH_OFFER,
	KH_TOOK,
	KH_FREED,
	KH_LAPSED,
	KH_FAIL,
};

/**
 * struct kh_reply - A line of a function.
 * @kind: what it says.
 * @bytes: KH_OFFER, KH_TOOK: of the data.
 * @sum: KH_OFFER, KH_TOOK: XXH64 of the data.
 * @start_ns: KH_TOOK: from the start of the process to this command; 0 if it was not its first.
 * @connect_ns: KH_TOOK: from the command to a connection.
 * @read_ns: KH_TOOK: from there to the last byte.
 * @text: KH_OFFER: the reference; KH_FAIL: why.
 */
struct kh_reply {
	enum kh_kind kind;
	uint64_t bytes;
	uint64_t sum;
	uint64_t start_ns;
	uint64_t connect_ns;
	uint64_t read_ns;
	char text[KH_LINE_BYTES];
};

/**
 * kh_start_parse() - Read a line for the runner.
 * @line: NUL-terminated, without newline.
 * @ret_start: filled, also on failure.
 *
 * Return: 0, or -EINVAL if it is not such a line.
 */
int kh_start_parse(const char *line, struct kh_start *ret_start);

/**
 * kh_command_parse() - Read a line for a function.
 * @line: NUL-terminated, without newline.
 * @ret_command: filled; untouched on failure.
 *
 * Return: 0, or -EINVAL if it is not such a line.
 */
int kh_command_parse(const char *line, struct kh_command *ret_command);

/**
 * kh_command_format() - Write a line for a function.
 * @command: command.
 * @ret_line: KH_LINE_BYTES; with newline.
 *
 * Return: its length.
 */
int kh_command_format(const struct kh_command *command, char *ret_line);

/**
 * kh_reply_parse() - Read a line of a function.
 * @line: NUL-terminated, without newline.
 * @ret_reply: filled; untouched on failure.
 *
 * Return: 0, or -EINVAL if it is not such a line.
 */
int kh_reply_parse(const char *line, struct kh_reply *ret_reply);

/**
 * kh_reply_format() - Write a line of a function.
 * @reply: reply. In the text of KH_FAIL what is not printable ASCII becomes blanks, several blanks
 *	become one and those at its ends none; an empty text becomes "?".
 * @ret_line: KH_LINE_BYTES; with newline.
 *
 * Return: its length.
 */
int kh_reply_format(const struct kh_reply *reply, char *ret_line);

/**
 * kh_hex_format() - Write bytes as a word.
 * @bytes: bytes.
 * @nr: how many.
 * @ret_word: 2 * @nr + 1 characters.
 */
void kh_hex_format(const uint8_t *bytes, size_t nr, char *ret_word);

/**
 * kh_hex_parse() - Undo kh_hex_format().
 * @word: NUL-terminated.
 * @ret_bytes: filled, also on failure.
 * @max: room there.
 *
 * Return: how many bytes, or -EINVAL if @word is something else or has more than @max.
 */
int kh_hex_parse(const char *word, uint8_t *ret_bytes, size_t max);

#endif /* KH_WORDS_H */
