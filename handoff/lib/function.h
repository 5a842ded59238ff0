/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The frame of a function: commands from standard input, answers to standard output, leases.
 * How data are handed over is a table of operations, so that ways can be compared.
 *
 * One thread.
 */
#ifndef KH_FUNCTION_H
#define KH_FUNCTION_H

#include <stddef.h>
#include <stdint.h>

#include "handoff/lib/words.h"

/* what a runner tells its functions, in their environment */
#define KH_ENV_BORN "KRCORE_HANDOFF_BORN" /* CLOCK_MONOTONIC in ns when it began to start it */
#define KH_ENV_LEASE "KRCORE_HANDOFF_LEASE_MS" /* how long an offer stands, 1 to 3600000 */
#define KH_ENV_IDLE "KRCORE_HANDOFF_IDLE_MS" /* how long it waits for its caller, as above */
#define KH_ENV_GID "KRCORE_HANDOFF_GID" /* of the RDMA port to use; not set: any */
#define KH_ENV_ADDRESS "KRCORE_HANDOFF_ADDRESS" /* IP address of the runner */

#define KH_LEASE_MS 30000 /* without KH_ENV_LEASE */
#define KH_IDLE_MS 60000 /* without KH_ENV_IDLE */

/**
 * struct kh_taken - Data that were fetched.
 * @data: the first byte; valid until the next call of any operation but room.
 * @bytes: how many.
 * @connect_ns: from the call to a connection.
 * @read_ns: from there to the last byte.
 */
struct kh_taken {
	const uint8_t *data;
	size_t bytes;
	uint64_t connect_ns;
	uint64_t read_ns;
};

/**
 * struct kh_ops - A way to hand data over.
 * @room: memory for data to be offered; NULL without memory. An offer that stands is taken back.
 * @offer: offer what was written there. @ret_word: KH_WORD_BYTES. Return: 0 or negative errno.
 * @take: fetch data. Return: 0 or negative errno.
 * @release: nobody can fetch the offer, if there is one, after this returns, and its memory is
 *	free. Called also after @room or @offer failed.
 * @why: text of the last error.
 *
 * All get the pointer that kh_function_run() was given.
 */
struct kh_ops {
	uint8_t *(*room)(void *state, size_t bytes);
	int (*offer)(void *state, char *ret_word);
	int (*take)(void *state, const char *word, struct kh_taken *ret_taken);
	void (*release)(void *state);
	const char *(*why)(void *state);
};

/** kh_now() - CLOCK_MONOTONIC. Return: nanoseconds. */
uint64_t kh_now(void);

/**
 * kh_function_run() - Be a function, until standard input ends.
 * @ops: how data are handed over.
 * @state: for @ops.
 *
 * It also ends when no command has come for KH_ENV_IDLE and it offers nothing, and when its
 * caller does not read what it says: until the lease of what it offers ends, or for KH_ENV_IDLE
 * if it offers nothing.
 *
 * Return: exit status.
 */
int kh_function_run(const struct kh_ops *ops, void *state);

#endif /* KH_FUNCTION_H */
