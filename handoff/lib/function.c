// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The frame of a function: see function.h.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "handoff/lib/function.h"
#include "proto/krp_hash.h"

#ifdef KH_METER /* marks of ./run bench handoff around what is counted */
#include KH_METER
#define KH_WANTED() BN_MARK(BEGIN)
#define KH_THERE() BN_MARK(END)
#else
#define KH_WANTED() ((void)0)
#define KH_THERE() ((void)0)
#endif

#define KH_NS_PER_MS 1000000ULL
#define KH_MS_PER_S 1000

/**
 * struct kh_running - A function that runs.
 * @ops: how data are handed over.
 * @state: for @ops.
 * @lease_ms: how long an offer stands.
 * @lease_end: when the one that stands ends, by kh_now(); 0 without an offer.
 * @start_ns: from its birth to its first command; 0 afterwards.
 * @line: what came of the next command.
 * @len: how much that is.
 */
struct kh_running {
	const struct kh_ops *ops;
	void *state;
	uint64_t lease_ms;
	uint64_t lease_end;
	uint64_t start_ns;
	char line[KH_LINE_BYTES];
	size_t len;
};

uint64_t kh_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * KH_MS_PER_S * KH_NS_PER_MS + (uint64_t)now.tv_nsec;
}

static uint64_t kh_env(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	char *end;
	uint64_t value;

	if (!text || !*text)
		return otherwise;
	value = strtoull(text, &end, 10);
	return *end ? otherwise : value;
}

/* Return: 0, or -1 if the caller is gone. */
static int kh_say(const struct kh_reply *reply)
{
	char line[KH_LINE_BYTES];
	int len = kh_reply_format(reply, line);
	ssize_t done;

	for (const char *at = line; len; at += done, len -= (int)done) {
		done = write(STDOUT_FILENO, at, (size_t)len);
		if (done < 0 && errno == EINTR)
			done = 0;
		if (done < 0)
			return -1;
	}
	return 0;
}

static int kh_say_fail(const char *text)
{
	struct kh_reply reply = { .kind = KH_FAIL };

	snprintf(reply.text, sizeof(reply.text), "%s", text);
	return kh_say(&reply);
}

static int kh_release(struct kh_running *r, enum kh_kind kind)
{
	r->ops->release(r->state);
	r->lease_end = 0;
	return kh_say(&(struct kh_reply){ .kind = kind });
}

/* Offer what is in the room that @ops gave. */
static int kh_offer(struct kh_running *r, const uint8_t *data, size_t bytes)
{
	struct kh_reply reply = { .kind = KH_OFFER, .bytes = bytes };

	reply.sum = krp_xxh64(data, bytes, 0);
	if (r->ops->offer(r->state, reply.text))
		return kh_say_fail(r->ops->why(r->state));
	r->lease_end = kh_now() + r->lease_ms * KH_NS_PER_MS;
	return kh_say(&reply);
}

/* Bytes that follow from a seed: xorshift64*, after Marsaglia and Vigna. */
static void kh_fill(uint8_t *data, size_t bytes, uint64_t seed)
{
	uint64_t x = seed | 1, word;
	size_t i;

	for (i = 0; i < bytes; i += sizeof(word)) {
		x ^= x >> 12;
		x ^= x << 25;
		x ^= x >> 27;
		word = x * 0x2545f4914f6cdd1dULL;
		memcpy(data + i, &word, bytes - i < sizeof(word) ? bytes - i : sizeof(word));
	}
}

static int kh_make(struct kh_running *r, const struct kh_command *command)
{
	uint8_t *data = r->ops->room(r->state, command->bytes);

	r->start_ns = 0;
	r->lease_end = 0;
	if (!data)
		return kh_say_fail(r->ops->why(r->state));
	kh_fill(data, command->bytes, command->seed);
	return kh_offer(r, data, command->bytes);
}

static int kh_take(struct kh_running *r, const struct kh_command *command)
{
	struct kh_reply reply = { .kind = KH_TOOK, .start_ns = r->start_ns };
	struct kh_taken taken = { 0 };
	uint8_t *data;
	size_t i;
	int err;

	r->start_ns = 0;
	KH_WANTED();
	err = r->ops->take(r->state, command->word, &taken);
	KH_THERE();
	if (err)
		return kh_say_fail(r->ops->why(r->state));
	reply.bytes = taken.bytes;
	reply.connect_ns = taken.connect_ns;
	reply.read_ns = taken.read_ns;
	reply.sum = krp_xxh64(taken.data, taken.bytes, 0);
	if (kh_say(&reply))
		return -1;
	if (command->verb == KH_TAKE)
		return 0;
	r->lease_end = 0;
	data = r->ops->room(r->state, taken.bytes);
	if (!data)
		return kh_say_fail(r->ops->why(r->state));
	for (i = 0; i < taken.bytes; i++) /* what this function is for */
		data[i] = (uint8_t)(taken.data[i] + 1);
	return kh_offer(r, data, taken.bytes);
}

static int kh_do(struct kh_running *r, const char *line)
{
	struct kh_command command;

	if (kh_command_parse(line, &command))
		return kh_say_fail("not a command for a function");
	switch (command.verb) {
	case KH_MAKE:
		return kh_make(r, &command);
	case KH_TAKE:
	case KH_PASS:
		return kh_take(r, &command);
	case KH_FREE:
	default:
		return kh_release(r, KH_FREED);
	}
}

/* Commands that are there whole. Return: 0, or -1 to end. */
static int kh_lines(struct kh_running *r)
{
	char *end;

	while ((end = memchr(r->line, '\n', r->len))) {
		size_t used = (size_t)(end - r->line) + 1;

		*end = '\0';
		if (kh_do(r, r->line))
			return -1;
		r->len -= used;
		memmove(r->line, r->line + used, r->len);
	}
	if (r->len < sizeof(r->line))
		return 0;
	r->len = 0;
	return kh_say_fail("the line is too long");
}

/* Return: for poll(): how long to wait for the next command. */
static int kh_patience(const struct kh_running *r)
{
	uint64_t now = kh_now();

	if (!r->lease_end)
		return -1;
	return now < r->lease_end ? (int)((r->lease_end - now) / KH_NS_PER_MS) + 1 : 0;
}

int kh_function_run(const struct kh_ops *ops, void *state)
{
	struct kh_running r = { .ops = ops, .state = state };
	uint64_t born = kh_env(KH_ENV_BORN, 0);
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	ssize_t got;
	int status = 0;

	r.lease_ms = kh_env(KH_ENV_LEASE, KH_LEASE_MS);
	for (;;) {
		int ready = poll(&in, 1, kh_patience(&r));

		if (ready < 0 && errno != EINTR)
			status = 1;
		if (r.lease_end && kh_now() >= r.lease_end && kh_release(&r, KH_LAPSED))
			break;
		if (status || ready <= 0) {
			if (status)
				break;
			continue;
		}
		got = read(in.fd, r.line + r.len, sizeof(r.line) - r.len);
		if (got <= 0)
			break;
		r.len += (size_t)got;
		if (born) {
			r.start_ns = kh_now() - born;
			born = 0;
		}
		if (kh_lines(&r))
			break;
	}
	ops->release(state);
	return status;
}
