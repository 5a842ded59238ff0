// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The authenticated sessions, and admission of new ones: see admit.h. */
#include <string.h>

#include "common/conf.h"
#include "metaserver/session.h"
#include "proto/krp_hash.h"

void ms_roll_init(struct ms_roll *roll)
{
	memset(roll, 0, sizeof(*roll));
	TAILQ_INIT(&roll->silent);
}

static struct ms_session **ms_roll_chain(struct ms_hub *hub, const struct ms_claim *claim)
{
	/* seed of the hash, random for each run of the server */
	uint64_t seed = hub->incarnation ^ krp_mix64(claim->generation);

	return &hub->roll.twins[krp_xxh64(claim->owner, sizeof(claim->owner), seed) % MS_ADMIT_HASH];
}

void ms_roll_add(struct ms_session *s)
{
	struct ms_session **chain = ms_roll_chain(s->hub, &s->claim);

	TAILQ_INSERT_TAIL(&s->hub->roll.silent, s, silent);
	s->twin = *chain;
	*chain = s;
}

void ms_roll_touch(struct ms_session *s)
{
	TAILQ_REMOVE(&s->hub->roll.silent, s, silent);
	TAILQ_INSERT_TAIL(&s->hub->roll.silent, s, silent);
}

void ms_roll_remove(struct ms_session *s)
{
	struct ms_session **link = ms_roll_chain(s->hub, &s->claim);

	TAILQ_REMOVE(&s->hub->roll.silent, s, silent);
	while (*link != s)
		link = &(*link)->twin;
	*link = s->twin;
}

/*
 * The earlier session of the same owner and generation, between the same ports of both ends:
 * a client has one session for each of its ports and each of our addresses. A GID that
 * is only claimed does not match the same GID known from the connection.
 */
static struct ms_session *ms_roll_twin(const struct ms_session *s)
{
	struct ms_session *old = *ms_roll_chain(s->hub, &s->claim);

	while (old && (old->via != s->via || old->gid_known != s->gid_known ||
		       old->claim.generation != s->claim.generation ||
		       memcmp(old->claim.owner, s->claim.owner, sizeof(s->claim.owner)) ||
		       memcmp(old->gid, s->gid, sizeof(s->gid))))
		old = old->twin;
	return old;
}

uint32_t ms_idle_limit_ms(const struct ms_session *s)
{
	uint32_t lease_ms = s->claim.lease_ms > MS_IDLE_MIN_MS ? s->claim.lease_ms : MS_IDLE_MIN_MS;

	return lease_ms < s->hub->limits.idle_timeout_ms ? lease_ms
							 : s->hub->limits.idle_timeout_ms;
}

/* Idle for half its limit, and past the time a renewal was due: the client has missed one. */
static uint64_t ms_roll_timeout_ms(const struct ms_session *s)
{
	uint32_t half_ms = ms_idle_limit_ms(s) / 2, renew_ms = kru_renew_ms(s->claim.lease_ms);

	return half_ms > renew_ms ? half_ms : renew_ms;
}

/* The session that has been idle for longest, if it has missed a renewal. */
static struct ms_session *ms_roll_overdue(const struct ms_hub *hub, uint64_t now_ms)
{
	struct ms_session *s = TAILQ_FIRST(&hub->roll.silent);

	return s && now_ms - s->last_ms > ms_roll_timeout_ms(s) ? s : NULL;
}

bool ms_admit_possible(const struct ms_hub *hub, uint64_t now_ms)
{
	return hub->stats.sessions < hub->limits.clients_max || ms_roll_overdue(hub, now_ms);
}

bool ms_admit_welcome(const struct ms_session *s, uint64_t now_ms)
{
	return ms_admit_possible(s->hub, now_ms) || ms_roll_twin(s);
}

bool ms_admit(struct ms_session *s, uint64_t now_ms)
{
	struct ms_hub *hub = s->hub;
	struct ms_session *old = ms_roll_twin(s);
	const char *why = "the same client has attached again";

	if (!old && hub->stats.sessions >= hub->limits.clients_max) {
		if (s->ops->at_limit && s->ops->at_limit(s->arg))
			return false; /* it would put another out, and not get the place */
		old = ms_roll_overdue(hub, now_ms);
		why = "silent, and another client needs the place";
		if (!old)
			return false;
	}
	if (old) {
		hub->roll.replaced++;
		ms_session_shut(old, why);
	}
	return true;
}
