// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The frame of a function: see function.h.
 */
#include <errno.h>
#include <limits.h>
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
 * @idle_ms: how long to wait for the caller without an offer.
 * @idle_end: when that ends, by kh_now().
 * @start_ns: from its birth to its first command; 0 afterwards.
 * @line: what came of the next command.
 * @len: how much that is.
 */
struct kh_running {
	const struct kh_ops *ops;
	void *state;
	uint64_t lease_ms;
	uint64_t lease_end;
	uint64_t idle_ms;
	uint64_t idle_end;
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

/* Return: for poll(): how long until a moment. */
static int kh_until(uint64_t end)
{
	uint64_t now = kh_now(), ms = now < end ? (end - now) / KH_NS_PER_MS + 1 : 0;

	return ms < INT_MAX ? (int)ms : INT_MAX;
}

/* Begin to wait for the caller anew. */
static void kh_awake(struct kh_running *r)
{
	r->idle_end = kh_now() + r->idle_ms * KH_NS_PER_MS;
}

/* Wait until there is room for a line. Return: 0, or -1 if the caller has made none in time. */
static int kh_room_to_say(struct kh_running *r)
{
	struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };
	int ready;

	kh_awake(r);
	do
		ready = poll(&out, 1, kh_until(r->lease_end ? r->lease_end : r->idle_end));
	while (ready < 0 && errno == EINTR);
	return ready > 0 ? 0 : -1;
}

/* Return: 0, or -1 if the caller is gone, or does not listen. */
static int kh_say(struct kh_running *r, const struct kh_reply *reply)
{
	char line[KH_LINE_BYTES];
	int len = kh_reply_format(reply, line);
	ssize_t done;

	for (const char *at = line; len; at += done, len -= (int)done) {
		if (kh_room_to_say(r))
			return -1;
		done = write(STDOUT_FILENO, at, (size_t)len);
		if (done < 0 && (errno == EINTR || errno == EAGAIN))
			done = 0;
		if (done < 0)
			return -1;
	}
	return 0;
}

static int kh_say_fail(struct kh_running *r, const char *text)
{
	struct kh_reply reply = { .kind = KH_FAIL };

	snprintf(reply.text, sizeof(reply.text), "%s", text);
	return kh_say(r, &reply);
}

static int kh_release(struct kh_running *r, enum kh_kind kind)
{
	r->ops->release(r->state);
	r->lease_end = 0;
	return kh_say(r, &(struct kh_reply){ .kind = kind });
}

/* What was to be offered is not: nothing would free its memory later. */
static int kh_no_offer(struct kh_running *r)
{
	char why[KH_LINE_BYTES];

	snprintf(why, sizeof(why), "%s", r->ops->why(r->state));
	r->ops->release(r->state);
	r->lease_end = 0;
	return kh_say_fail(r, why);
}

/* Offer what is in the room that @ops gave. */
static int kh_offer(struct kh_running *r, const uint8_t *data, size_t bytes)
{
	struct kh_reply reply = { .kind = KH_OFFER, .bytes = bytes };

	reply.sum = krp_xxh64(data, bytes, 0);
	if (r->ops->offer(r->state, reply.text))
		return kh_no_offer(r);
	r->lease_end = kh_now() + r->lease_ms * KH_NS_PER_MS;
	return kh_say(r, &reply);
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
		return kh_no_offer(r);
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
		return kh_say_fail(r, r->ops->why(r->state));
	reply.bytes = taken.bytes;
	reply.connect_ns = taken.connect_ns;
	reply.read_ns = taken.read_ns;
	reply.sum = krp_xxh64(taken.data, taken.bytes, 0);
	if (kh_say(r, &reply))
		return -1;
	if (command->verb == KH_TAKE)
		return 0;
	r->lease_end = 0;
	data = r->ops->room(r->state, taken.bytes);
	if (!data)
		return kh_no_offer(r);
	for (i = 0; i < taken.bytes; i++) /* what this function is for */
		data[i] = (uint8_t)(taken.data[i] + 1);
	return kh_offer(r, data, taken.bytes);
}

static int kh_do(struct kh_running *r, const char *line)
{
	struct kh_command command;

	if (kh_command_parse(line, &command))
		return kh_say_fail(r, "not a command for a function");
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
		kh_awake(r); /* by a line, not by bytes of which none ever comes */
		r->len -= used;
		memmove(r->line, r->line + used, r->len);
	}
	if (r->len < sizeof(r->line))
		return 0;
	r->len = 0;
	return kh_say_fail(r, "the line is too long");
}

/* The lease may be over, or the time to wait; not if there is a command. Return: whether to go on. */
static bool kh_in_time(struct kh_running *r, bool command)
{
	uint64_t now = kh_now();

	if (r->lease_end && now >= r->lease_end)
		return !kh_release(r, KH_LAPSED);
	return command || r->lease_end || now < r->idle_end;
}

/* Read commands, and do those that are whole. Return: whether to go on. */
static bool kh_hear(struct kh_running *r, uint64_t *born)
{
	ssize_t got = read(STDIN_FILENO, r->line + r->len, sizeof(r->line) - r->len);

	if (got <= 0)
		return false;
	r->len += (size_t)got;
	if (*born) {
		r->start_ns = kh_now() - *born;
		*born = 0;
	}
	return !kh_lines(r);
}

int kh_function_run(const struct kh_ops *ops, void *state)
{
	struct kh_running r = { .ops = ops, .state = state };
	uint64_t born = kh_env(KH_ENV_BORN, 0);
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	int status = 0;

	r.lease_ms = kh_env(KH_ENV_LEASE, KH_LEASE_MS);
	r.idle_ms = kh_env(KH_ENV_IDLE, KH_IDLE_MS);
	kh_awake(&r);
	for (;;) {
		int ready = poll(&in, 1, kh_until(r.lease_end ? r.lease_end : r.idle_end));

		if (ready < 0 && errno != EINTR) {
			status = 1;
			break;
		}
		if (!kh_in_time(&r, ready > 0) || (ready > 0 && !kh_hear(&r, &born)))
			break;
	}
	ops->release(state);
	return status;
}
