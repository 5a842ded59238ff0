/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Which sessions there are, and who may have one more.
 *
 * A client that lost its connection, or its power, comes back long before its
 * old session is given up. It takes that session's place: the same life of the
 * same owner at once, any other by way of the session that has been silent for
 * longest, once that has missed a renewal.
 *
 * Threads: the loop's.
 */
#ifndef MS_ADMIT_H
#define MS_ADMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#define MS_ADMIT_HASH 4096U
#define MS_IDLE_MIN_MS 5000U /* a client may always be silent for so long */

struct ms_hub;
struct ms_session;

TAILQ_HEAD(ms_session_queue, ms_session);

/**
 * struct ms_roll - The authenticated sessions.
 * @silent: those silent for longest first.
 * @twins: by owner and generation.
 * @replaced: sessions that made room for another one, ever.
 */
struct ms_roll {
	struct ms_session_queue silent;
	struct ms_session *twins[MS_ADMIT_HASH];
	uint64_t replaced;
};

/** ms_roll_init() - An empty roll. @roll: filled. */
void ms_roll_init(struct ms_roll *roll);

/** ms_roll_add() - It is authenticated. @s: session whose claim stands. */
void ms_roll_add(struct ms_session *s);

/** ms_roll_touch() - It has said something. @s: session on the roll. */
void ms_roll_touch(struct ms_session *s);

/** ms_roll_remove() - It has ended. @s: session on the roll. */
void ms_roll_remove(struct ms_session *s);

/**
 * ms_admit_possible() - Could one more client be let in?
 * @hub: hub.
 * @now_ms: the clock.
 *
 * Return: true if there is room, or a session that has missed a renewal.
 */
bool ms_admit_possible(const struct ms_hub *hub, uint64_t now_ms);

/**
 * ms_admit_welcome() - Would this client be let in?
 * @s: session that has said HELLO and has proved nothing.
 * @now_ms: the clock.
 *
 * Return: true as ms_admit_possible(), or if it would replace its own session.
 */
bool ms_admit_welcome(const struct ms_session *s, uint64_t now_ms);

/**
 * ms_admit() - Make room for a client that has proved itself.
 * @s: session, not on the roll yet.
 * @now_ms: the clock.
 *
 * Shuts the session that it replaces, if there is one.
 *
 * Return: true if it may enter.
 */
bool ms_admit(struct ms_session *s, uint64_t now_ms);

/**
 * ms_idle_limit_ms() - How long a client may be silent.
 * @s: authenticated session.
 *
 * Who says nothing for its lease has lost its records, and is not there.
 *
 * Return: ms.
 */
uint32_t ms_idle_limit_ms(const struct ms_session *s);

#endif /* MS_ADMIT_H */
