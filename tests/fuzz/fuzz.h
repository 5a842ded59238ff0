/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the fuzz targets share.
 *
 * A target is one file with LLVMFuzzerTestOneInput(). It is linked twice: with
 * libFuzzer (KRC_FUZZ), and with replay.c, which runs it over files with any
 * compiler. A claim that does not hold ends the program, which is how either
 * of them notices. One thread, no state from one input to the next.
 */
#ifndef KRC_TESTS_FUZZ_H
#define KRC_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/**
 * LLVMFuzzerTestOneInput() - Run the code under test on one input.
 * @data: input.
 * @size: its length.
 *
 * Return: 0.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A claim about the code under test. */
#define FZ_ASSERT(claim) \
	do { \
		if (!(claim)) { \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #claim); \
			abort(); \
		} \
	} while (0)

/**
 * struct fz_stream - An input that is read bit by bit.
 * @data: what is left of it.
 * @size: bytes left.
 */
struct fz_stream {
	const uint8_t *data;
	size_t size;
};

/**
 * fz_take() - The next bytes of an input; zero once it has ended.
 * @s: stream.
 * @to: where to.
 * @bytes: how many.
 */
static inline void fz_take(struct fz_stream *s, void *to, size_t bytes)
{
	size_t nr = bytes < s->size ? bytes : s->size;

	memset(to, 0, bytes);
	if (!nr)
		return;
	memcpy(to, s->data, nr);
	s->data += nr;
	s->size -= nr;
}

/**
 * fz_byte() - The next byte of an input.
 * @s: stream.
 *
 * Return: it, 0 once the input has ended.
 */
static inline uint8_t fz_byte(struct fz_stream *s)
{
	uint8_t byte;

	fz_take(s, &byte, sizeof(byte));
	return byte;
}

/**
 * fz_copy() - The input in memory of exactly its size, so that a sanitizer sees a read past it.
 * @data: input.
 * @size: its length.
 *
 * Return: to be given back by free().
 */
static inline void *fz_copy(const uint8_t *data, size_t size)
{
	void *copy = malloc(size ? size : 1);

	FZ_ASSERT(copy);
	if (size)
		memcpy(copy, data, size);
	return copy;
}

#endif /* KRC_TESTS_FUZZ_H */
