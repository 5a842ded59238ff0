/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The authenticated sessions, and admission of new ones.
 *
 * A client that lost its connection, or its power, comes back long before its
 * old session times out. It replaces a session: if owner and generation are the
 * same, its own at once; otherwise, when the server is full, the session that has been
 * idle for longest, once that has missed a renewal.
 *
 * Threads: the loop's.
 */
#ifndef MS_ADMIT_H
#define MS_ADMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#define MS_ADMIT_HASH 4096U
#define MS_IDLE_MIN_MS 5000U /* every client may be idle for this long */

struct ms_hub;
struct ms_session;

TAILQ_HEAD(ms_session_queue, ms_session);

/**
 * struct ms_roll - The authenticated sessions.
 * @silent: by the time of the last message, longest idle first.
 * @twins: by owner and generation.
 * @replaced: sessions shut so far to admit another one.
 */
struct ms_roll {
	struct ms_session_queue silent;
	struct ms_session *twins[MS_ADMIT_HASH];
	uint64_t replaced;
};

/** ms_roll_init() - Set up an empty roll. @roll: filled. */
void ms_roll_init(struct ms_roll *roll);

/** ms_roll_add() - Add a session that is authenticated. @s: session with its final claim. */
void ms_roll_add(struct ms_session *s);

/** ms_roll_touch() - A session has sent a message. @s: session on the roll. */
void ms_roll_touch(struct ms_session *s);

/** ms_roll_remove() - A session has ended. @s: session on the roll. */
void ms_roll_remove(struct ms_session *s);

/**
 * ms_admit_possible() - Could one more client be admitted?
 * @hub: hub.
 * @now_ms: the clock.
 *
 * Return: true if there are fewer than clients_max, or one has missed a renewal.
 */
bool ms_admit_possible(const struct ms_hub *hub, uint64_t now_ms);

/**
 * ms_admit_welcome() - Would this client be admitted?
 * @s: session that has sent HELLO and has proved nothing.
 * @now_ms: the clock.
 *
 * Return: true as ms_admit_possible(), or if it would replace its own session.
 */
bool ms_admit_welcome(const struct ms_session *s, uint64_t now_ms);

/**
 * ms_admit() - Admit a client that is authenticated.
 * @s: session, not on the roll yet.
 * @now_ms: the clock.
 *
 * Shuts the session that it replaces, if there is one.
 *
 * Return: true if it may enter.
 */
bool ms_admit(struct ms_session *s, uint64_t now_ms);

/**
 * ms_idle_limit_ms() - How long a client may be idle.
 * @s: authenticated session.
 *
 * A client that sends nothing for its lease has lost its records, and counts as gone.
 *
 * Return: ms.
 */
uint32_t ms_idle_limit_ms(const struct ms_session *s);

#endif /* MS_ADMIT_H */
