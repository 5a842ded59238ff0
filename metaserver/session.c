// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Server side of the control protocol: see session.h.
 *
 * ms_allowed[] has the messages that each state allows; only ms_session_enter()
 * changes the state.
 */
#include <errno.h>
#include <string.h>

#include "metaserver/session.h"

#define MS_BIT(n) (1U << (n))

static const unsigned int ms_allowed[MS_STATES] = {
	[MS_STATE_HELLO] = MS_BIT(KRP_MSG_HELLO),
	[MS_STATE_CHALLENGE] = MS_BIT(KRP_MSG_AUTH),
	[MS_STATE_READY] = MS_BIT(KRP_MSG_PUBLISH) | MS_BIT(KRP_MSG_WITHDRAW) |
			   MS_BIT(KRP_MSG_RENEW) | MS_BIT(KRP_MSG_ROOT) |
			   MS_BIT(KRP_MSG_SUBSCRIBE) | MS_BIT(KRP_MSG_LOOKUP),
	[MS_STATE_CLOSING] = 0,
};

static const unsigned int ms_follows[MS_STATES] = {
	[MS_STATE_HELLO] = MS_BIT(MS_STATE_CHALLENGE) | MS_BIT(MS_STATE_CLOSING),
	[MS_STATE_CHALLENGE] = MS_BIT(MS_STATE_READY) | MS_BIT(MS_STATE_CLOSING),
	[MS_STATE_READY] = MS_BIT(MS_STATE_CLOSING),
	[MS_STATE_CLOSING] = 0,
};

const char *ms_session_state_name(enum ms_session_state state)
{
	static const char *const names[MS_STATES] = { "hello", "challenge", "ready", "closing" };

	return names[state];
}

static void ms_subscribe(struct ms_session *s, bool on)
{
	struct ms_hub *hub = s->hub;

	if (s->subscribed == on)
		return;
	s->subscribed = on;
	if (on) {
		hub->stats.subscribers++;
		s->prev = NULL;
		s->next = hub->subscribers;
		if (s->next)
			s->next->prev = s;
		hub->subscribers = s;
		s->place = hub->changes.head;
		return;
	}
	hub->stats.subscribers--;
	if (hub->tell_next == s)
		hub->tell_next = s->next;
	if (s->prev)
		s->prev->next = s->next;
	else
		hub->subscribers = s->next;
	if (s->next)
		s->next->prev = s->prev;
}

static void ms_session_count(struct ms_session *s, int by)
{
	struct ms_hub_stats *stats = &s->hub->stats;

	if (s->state == MS_STATE_READY)
		stats->sessions += (uint64_t)by;
	else if (s->state != MS_STATE_CLOSING)
		stats->sessions_pending += (uint64_t)by;
}

/* Change the state, here only. Return: false if the transition is illegal. */
static bool ms_session_enter(struct ms_session *s, enum ms_session_state to)
{
	if (!(ms_follows[s->state] & MS_BIT(to)))
		return false;
	ms_session_count(s, -1);
	if (s->state == MS_STATE_READY) {
		ms_subscribe(s, false);
		ms_roll_remove(s);
	}
	s->state = to;
	ms_session_count(s, 1);
	if (to == MS_STATE_READY) {
		s->hub->stats.sessions_total++;
		ms_roll_add(s);
	}
	return true;
}

void ms_session_shut(struct ms_session *s, const char *why)
{
	if (ms_session_enter(s, MS_STATE_CLOSING))
		s->ops->close(s->arg, why);
}

static void ms_send(struct ms_session *s, const void *msg)
{
	const struct krp_msg_hdr *hdr = msg;

	s->hub->stats.answers[krp_le16_to_cpu(hdr->status)]++;
	if (s->ops->send(s->arg, msg, krp_msg_bytes(hdr->type), false))
		ms_session_shut(s, "client does not take its answers");
}

/* Type of the answer to a request, also to one that cannot be understood. */
static unsigned int ms_answer_type(unsigned int type)
{
	switch (type) {
	case KRP_MSG_HELLO:
		return KRP_MSG_CHALLENGE;
	case KRP_MSG_AUTH:
		return KRP_MSG_WELCOME;
	case KRP_MSG_ROOT:
		return KRP_MSG_ROOT_REPLY;
	case KRP_MSG_LOOKUP:
		return KRP_MSG_VALUE;
	default:
		return KRP_MSG_ACK;
	}
}

static void ms_refuse_in(struct ms_session *s, unsigned int type, uint32_t xid, unsigned int status,
			 uint8_t version)
{
	union {
		struct krp_msg_hdr hdr;
		__u8 bytes[KRP_MSG_BYTES_MAX];
	} m;

	krp_msg_init(&m, ms_answer_type(type), xid, status, s->hub->incarnation);
	m.hdr.version = version;
	ms_send(s, &m);
}

/* A refusal: the type that the answer would have had, and a body of zeros. */
static void ms_refuse(struct ms_session *s, unsigned int type, uint32_t xid, unsigned int status)
{
	ms_refuse_in(s, type, xid, status, KRP_MSG_VERSION);
}

static void ms_refuse_and_shut(struct ms_session *s, unsigned int type, uint32_t xid,
			       unsigned int status)
{
	ms_refuse(s, type, xid, status);
	ms_session_shut(s, krp_status_text(status));
}

static void ms_ack(struct ms_session *s, uint32_t xid, unsigned int status, uint64_t now_ms)
{
	uint32_t left_ms = s->claim.lease_ms;
	struct krp_ack m;

	if (status) {
		ms_refuse(s, KRP_MSG_ACK, xid, status);
		return;
	}
	krp_msg_init(&m, KRP_MSG_ACK, xid, status, s->hub->incarnation);
	m.records = krp_cpu_to_le32(ms_ledger_count(s->hub->ledger, now_ms, &s->claim, &left_ms));
	m.lease_ms = krp_cpu_to_le32(left_ms);
	ms_send(s, &m);
}

static void ms_result(struct ms_session *s, uint32_t xid, unsigned int status, uint64_t *done,
		      uint64_t now_ms)
{
	s->hub->stats.results[status]++;
	if (!status)
		(*done)++;
	ms_ack(s, xid, status, now_ms);
}

/* establishment */

/* The claim has been stored before: admission depends on it. */
static unsigned int ms_judge_hello(struct ms_session *s, const struct krp_hello *m, uint64_t now_ms)
{
	if (s->hub->draining)
		return KRP_ST_SHUTDOWN;
	/* a client that sees another GID than we do is not connected directly: a relay */
	if (memcmp(m->gid, s->gid, sizeof(s->gid)))
		return KRP_ST_FOREIGN_GID;
	return ms_admit_welcome(s, now_ms) ? KRP_ST_OK : KRP_ST_LIMIT_CLIENTS;
}

/* Store the owner that the client acts for from now on. */
static void ms_take_claim(struct ms_session *s, const struct krp_hello *m)
{
	const struct ms_limits *limits = &s->hub->limits;
	uint32_t lease_ms = krp_le32_to_cpu(m->lease_ms);

	if (!lease_ms)
		lease_ms = limits->lease_ms;
	if (lease_ms < limits->lease_min_ms)
		lease_ms = limits->lease_min_ms;
	if (lease_ms > limits->lease_max_ms)
		lease_ms = limits->lease_max_ms;
	s->claim.lease_ms = lease_ms;
	s->claim.generation = krp_le64_to_cpu(m->generation);
	memcpy(s->claim.owner, m->owner, sizeof(s->claim.owner));
	if (!limits->publish_any_gid)
		memcpy(s->claim.gid, s->gid, sizeof(s->claim.gid));
}

/* The key that both ends will prove with: the client's first if we have it, else our first. */
static void ms_choose_key(struct ms_session *s)
{
	const struct kru_keys *keys = &s->hub->keys;

	s->auth = s->hub->auth;
	if (!s->auth)
		return;
	s->challenge.flags = KRP_CHALLENGE_AUTH;
	if (kru_keys_find(keys, s->hello.key_id))
		memcpy(s->challenge.key_id, s->hello.key_id, sizeof(s->challenge.key_id));
	else
		kru_key_id(&keys->key[0], s->challenge.key_id);
}

static void ms_on_hello(struct ms_session *s, const struct krp_hello *m, uint32_t xid,
			uint64_t now_ms)
{
	unsigned int status;

	ms_take_claim(s, m);
	status = ms_judge_hello(s, m, now_ms);
	krp_msg_init(&s->challenge, KRP_MSG_CHALLENGE, xid, KRP_ST_OK, s->hub->incarnation);
	if (!status && kru_random(s->challenge.nonce, sizeof(s->challenge.nonce)))
		status = KRP_ST_NO_MEMORY;
	if (status) {
		ms_refuse_and_shut(s, KRP_MSG_HELLO, xid, status);
		return;
	}
	s->hello = *m;
	s->features = krp_le64_to_cpu(m->features) & KRP_FEATURES_ALL;
	s->challenge.features = krp_cpu_to_le64(s->features);
	ms_choose_key(s);
	ms_session_enter(s, MS_STATE_CHALLENGE);
	ms_send(s, &s->challenge);
}

static struct kru_handshake ms_handshake(const struct ms_session *s)
{
	return (struct kru_handshake){ &s->link, &s->hello, &s->challenge };
}

/* @ret_key: the key that WELCOME is to prove; NULL if there is no authentication. */
static unsigned int ms_judge_proof(const struct ms_session *s, const struct krp_auth *m,
				   const struct kru_key **ret_key)
{
	struct kru_handshake shake = ms_handshake(s);
	__u8 mac[KRP_MAC_BYTES] = { 0 };

	*ret_key = NULL;
	if (s->auth != s->hub->auth)
		return KRP_ST_AUTH; /* changed since CHALLENGE: the client must attach again */
	if (s->auth) {
		*ret_key = kru_keys_find(&s->hub->keys, s->challenge.key_id);
		if (!*ret_key)
			return KRP_ST_AUTH;
		kru_auth_client(*ret_key, &shake, mac);
	}
	return kru_secret_equal(mac, m->mac, sizeof(mac)) ? KRP_ST_OK : KRP_ST_AUTH;
}

uint32_t ms_hub_settling_ms(const struct ms_hub *hub, uint64_t now_ms)
{
	uint64_t left_ms = hub->settle.until_ms > now_ms ? hub->settle.until_ms - now_ms : 0;

	return left_ms < KRP_SETTLING_MS_MAX ? (uint32_t)left_ms : KRP_SETTLING_MS_MAX;
}

static void ms_fill_welcome(struct ms_session *s, struct krp_welcome *w, uint32_t xid,
			    uint64_t now_ms)
{
	const struct ms_limits *limits = &s->hub->limits;

	krp_msg_init(w, KRP_MSG_WELCOME, xid, KRP_ST_OK, s->hub->incarnation);
	s->ops->root(s->arg, &w->root);
	w->lease_ms = krp_cpu_to_le32(s->claim.lease_ms);
	w->tick_ms = krp_cpu_to_le32(limits->tick_ms);
	w->records_max = krp_cpu_to_le32(limits->records_max);
	w->rate_max = krp_cpu_to_le32(limits->rate_max);
	w->credits = krp_cpu_to_le16((__u16)limits->credits);
	w->settling_ms = krp_cpu_to_le32(ms_hub_settling_ms(s->hub, now_ms));
	if (s->gid_known)
		kru_auth_token(s->hub->secret, s->claim.owner, s->gid, w->token);
}

static void ms_on_auth(struct ms_session *s, const struct krp_auth *m, uint32_t xid,
		       uint64_t now_ms)
{
	const struct kru_key *key;
	unsigned int status = ms_judge_proof(s, m, &key);
	struct krp_welcome w;
	int err;

	if (status) {
		s->hub->stats.auth_failures++;
		ms_refuse_and_shut(s, KRP_MSG_AUTH, xid, status);
		return;
	}
	if (s->hub->draining || !ms_admit(s, now_ms)) {
		ms_refuse_and_shut(s, KRP_MSG_AUTH, xid,
				   s->hub->draining ? KRP_ST_SHUTDOWN : KRP_ST_LIMIT_CLIENTS);
		return;
	}
	err = s->ops->open_reads(s->arg);
	if (err) {
		ms_refuse_and_shut(s, KRP_MSG_AUTH, xid,
				   err == -EUSERS ? KRP_ST_LIMIT_CLIENTS : KRP_ST_NO_MEMORY);
		return;
	}
	ms_fill_welcome(s, &w, xid, now_ms);
	if (key) {
		struct kru_handshake shake = ms_handshake(s);

		kru_auth_server(key, &shake, &w, w.mac);
	}
	ms_session_enter(s, MS_STATE_READY);
	ms_send(s, &w);
}

/* requests */

/* Whether the client is at a GID, as far as the connection shows. */
static bool ms_at_gid(const struct ms_session *s, const uint8_t *gid)
{
	return s->gid_known && !memcmp(gid, s->gid, sizeof(s->gid));
}

static unsigned int ms_judge_publish(const struct ms_session *s, const struct krp_key *key)
{
	if (s->hub->limits.publish_any_gid)
		return KRP_ST_OK;
	if (!ms_at_gid(s, key->gid))
		return KRP_ST_FOREIGN_GID;
	if (krp_le16_to_cpu(key->service) < KRP_SERVICE_USER_MIN &&
	    !(s->features & KRP_FEATURE_NODE))
		return KRP_ST_RESERVED;
	return KRP_ST_OK;
}

static void ms_on_publish(struct ms_session *s, const struct krp_publish *m, uint32_t xid,
			  uint64_t now_ms)
{
	struct ms_hub *hub = s->hub;
	unsigned int status;

	if (krp_le64_to_cpu(m->value.generation) != s->claim.generation) {
		ms_refuse_and_shut(s, KRP_MSG_PUBLISH, xid, KRP_ST_MALFORMED);
		return;
	}
	status = ms_judge_publish(s, &m->key);
	if (!status)
		status = ms_ledger_publish(hub->ledger, now_ms, &s->claim, &m->key, &m->value);
	if (!status && !s->published) {
		s->published = true;
		ms_settle_came(&hub->settle, now_ms);
	}
	ms_result(s, xid, status, &hub->stats.published, now_ms);
}

/* The owner for which a record is withdrawn: the client at its GID here, or at an earlier one. */
static unsigned int ms_judge_withdraw(const struct ms_session *s, const struct krp_withdraw *m,
				      struct ms_claim *ret_who)
{
	__u8 token[KRP_TOKEN_BYTES];

	*ret_who = s->claim;
	if (s->hub->limits.publish_any_gid || ms_at_gid(s, m->key.gid))
		return KRP_ST_OK;
	kru_auth_token(s->hub->secret, s->claim.owner, m->key.gid, token);
	if (!kru_secret_equal(token, m->token, sizeof(token)))
		return KRP_ST_FOREIGN_GID;
	memcpy(ret_who->gid, m->key.gid, sizeof(ret_who->gid));
	return KRP_ST_OK;
}

static void ms_on_withdraw(struct ms_session *s, const struct krp_withdraw *m, uint32_t xid,
			   uint64_t now_ms)
{
	struct ms_hub *hub = s->hub;
	struct ms_claim who;
	unsigned int status = ms_judge_withdraw(s, m, &who);

	if (!status)
		status = ms_ledger_withdraw(hub->ledger, now_ms, &who, &m->key);
	ms_result(s, xid, status, &hub->stats.withdrawn, now_ms);
}

static void ms_on_renew(struct ms_session *s, uint32_t xid, uint64_t now_ms)
{
	/* a client whose GID is only claimed has no records to keep alive */
	if (s->gid_known || s->hub->limits.publish_any_gid)
		ms_ledger_renew(s->hub->ledger, now_ms, &s->claim);
	ms_result(s, xid, KRP_ST_OK, &s->hub->stats.renewed, now_ms);
}

static void ms_on_root(struct ms_session *s, uint32_t xid)
{
	struct krp_root_reply m;

	krp_msg_init(&m, KRP_MSG_ROOT_REPLY, xid, KRP_ST_OK, s->hub->incarnation);
	s->ops->root(s->arg, &m.root);
	ms_send(s, &m);
}

static void ms_on_lookup(struct ms_session *s, const struct krp_lookup_msg *m, uint32_t xid)
{
	struct krp_value_msg v;

	if (!(s->features & KRP_FEATURE_LOOKUP)) {
		ms_refuse(s, KRP_MSG_LOOKUP, xid, KRP_ST_STATE);
		return;
	}
	krp_msg_init(&v, KRP_MSG_VALUE, xid, KRP_ST_OK, s->hub->incarnation);
	if (ms_table_get(s->hub->table, &m->key, &v.value, NULL))
		v.hdr.status = krp_cpu_to_le16(KRP_ST_NOT_FOUND);
	ms_send(s, &v);
}

static void ms_on_subscribe(struct ms_session *s, const struct krp_subscribe *m, uint32_t xid,
			    uint64_t now_ms)
{
	if (!(s->features & KRP_FEATURE_NOTIFY)) {
		ms_refuse(s, KRP_MSG_SUBSCRIBE, xid, KRP_ST_STATE);
		return;
	}
	ms_subscribe(s, m->flags & KRP_SUBSCRIBE_ALL);
	ms_ack(s, xid, KRP_ST_OK, now_ms);
}

static void ms_dispatch(struct ms_session *s, const void *msg, unsigned int type, uint32_t xid,
			uint64_t now_ms)
{
	if (s->hub->draining && s->state == MS_STATE_READY) {
		ms_refuse_and_shut(s, type, xid, KRP_ST_SHUTDOWN);
		return;
	}
	switch (type) {
	case KRP_MSG_HELLO:
		ms_on_hello(s, msg, xid, now_ms);
		break;
	case KRP_MSG_AUTH:
		ms_on_auth(s, msg, xid, now_ms);
		break;
	case KRP_MSG_PUBLISH:
		ms_on_publish(s, msg, xid, now_ms);
		break;
	case KRP_MSG_WITHDRAW:
		ms_on_withdraw(s, msg, xid, now_ms);
		break;
	case KRP_MSG_RENEW:
		ms_on_renew(s, xid, now_ms);
		break;
	case KRP_MSG_ROOT:
		ms_on_root(s, xid);
		break;
	case KRP_MSG_LOOKUP:
		ms_on_lookup(s, msg, xid);
		break;
	case KRP_MSG_SUBSCRIBE:
		ms_on_subscribe(s, msg, xid, now_ms);
		break;
	default: /* ms_allowed[] admits no other type */
		break;
	}
}

/* A token bucket of one second's worth. Return: false if it is empty. */
static bool ms_rate_take(struct ms_session *s, uint64_t now_ms)
{
	uint64_t full = 1000ULL * s->hub->limits.rate_max;

	s->tokens += (now_ms - s->tokens_ms) * s->hub->limits.rate_max;
	s->tokens_ms = now_ms;
	if (s->tokens > full)
		s->tokens = full;
	if (s->tokens < 1000)
		return false;
	s->tokens -= 1000;
	return true;
}

/*
 * Planning a crowded page takes as long as some ten messages. A client that chose the keys that
 * crowd it can cause that with each message, and pays for it.
 */
static void ms_rate_charge(struct ms_session *s, uint64_t fruitless)
{
	uint64_t cost = 1000ULL * MS_FRUITLESS_TOKENS * fruitless;

	s->tokens -= cost < s->tokens ? cost : s->tokens;
}

void ms_session_receive(struct ms_session *s, const void *msg, unsigned int bytes, uint64_t now_ms)
{
	const struct krp_msg_hdr *hdr = msg;
	bool readable = bytes >= sizeof(*hdr);
	unsigned int type = readable ? hdr->type : 0, status;
	uint64_t fruitless;
	uint32_t xid = readable ? krp_le32_to_cpu(hdr->xid) : 0;

	if (s->state == MS_STATE_CLOSING)
		return;
	s->messages++;
	s->last_ms = now_ms;
	if (s->state == MS_STATE_READY)
		ms_roll_touch(s);
	if (!ms_rate_take(s, now_ms)) {
		ms_refuse_and_shut(s, type, xid, KRP_ST_LIMIT_RATE);
		return;
	}
	status = krp_msg_check(msg, bytes, 1);
	if (status) {
		s->hub->stats.messages_in[0]++;
		/* in the sender's version, else it could not read the answer */
		ms_refuse_in(s, type, xid, status,
			     status == KRP_ST_VERSION ? hdr->version : KRP_MSG_VERSION);
		ms_session_shut(s, krp_status_text(status));
		return;
	}
	s->hub->stats.messages_in[type]++;
	if (!(ms_allowed[s->state] & MS_BIT(type))) {
		ms_refuse_and_shut(s, type, xid, KRP_ST_STATE);
		return;
	}
	fruitless = s->hub->table ? ms_table_fruitless(s->hub->table) : 0;
	ms_dispatch(s, msg, type, xid, now_ms);
	if (s->hub->table)
		ms_rate_charge(s, ms_table_fruitless(s->hub->table) - fruitless);
}

void ms_session_init(struct ms_session *s, struct ms_hub *hub, const struct ms_session_ops *ops,
		     void *arg, const struct krp_link *link, bool gid_known, uint64_t now_ms)
{
	memset(s, 0, sizeof(*s));
	s->hub = hub;
	s->ops = ops;
	s->arg = arg;
	s->link = *link;
	s->gid_known = gid_known;
	memcpy(s->gid, link->client_gid, sizeof(s->gid));
	s->born_ms = now_ms;
	s->last_ms = now_ms;
	s->tokens = 1000ULL * hub->limits.rate_max;
	s->tokens_ms = now_ms;
	ms_session_count(s, 1);
}

void ms_session_fini(struct ms_session *s)
{
	ms_session_enter(s, MS_STATE_CLOSING);
}

void ms_session_check(struct ms_session *s, uint64_t now_ms)
{
	uint64_t since = s->state == MS_STATE_READY ? s->last_ms : s->born_ms;
	uint64_t limit = s->state == MS_STATE_READY ? ms_idle_limit_ms(s) : MS_HANDSHAKE_MS;

	if (s->state == MS_STATE_CLOSING || now_ms - since < limit)
		return;
	s->hub->stats.sessions_timed_out++;
	ms_session_shut(s, s->state == MS_STATE_READY ? "client is silent"
						      : "handshake took too long");
}

/* notifications */

int ms_hub_init(struct ms_hub *hub, uint64_t salt, uint64_t now_ms)
{
	ms_roll_init(&hub->roll);
	return ms_changes_init(&hub->changes, salt, now_ms);
}

unsigned int ms_hub_set_keys(struct ms_hub *hub, const struct kru_keys *keys)
{
	struct ms_session *s, *next;
	unsigned int nr = 0;

	hub->keys = *keys;
	hub->auth = keys->nr;
	for (s = TAILQ_FIRST(&hub->roll.silent); hub->auth && s; s = next) {
		next = TAILQ_NEXT(s, silent);
		if (s->auth)
			continue;
		ms_session_shut(s, "it attached before there was a cluster key");
		nr++;
	}
	return nr;
}

void ms_hub_fini(struct ms_hub *hub)
{
	ms_changes_free(&hub->changes);
}

/* Send a subscriber its next notes, as far as the transport takes them. Return: messages sent. */
static unsigned int ms_session_tell(struct ms_session *s)
{
	struct ms_hub_stats *stats = &s->hub->stats;
	unsigned int sent = 0;
	struct krp_notify m;
	uint64_t place;

	while (s->subscribed) {
		krp_msg_init(&m, KRP_MSG_NOTIFY, 0, KRP_ST_OK, s->hub->incarnation);
		m.nr = (__u8)ms_changes_take(&s->hub->changes, s->place, m.change, &place);
		m.seq = krp_cpu_to_le64(s->seq + 1);
		if (!m.nr || s->ops->send(s->arg, &m, sizeof(m), true))
			break;
		if (m.change[0].event == KRP_EVENT_RESYNC) {
			stats->notifies_dropped += place - s->place;
			stats->resyncs++;
		}
		s->place = place;
		s->seq++;
		sent++;
	}
	stats->notifies_sent += sent;
	return sent;
}

void ms_session_room(struct ms_session *s)
{
	ms_session_tell(s);
}

void ms_hub_notify(struct ms_hub *hub, unsigned int event, const struct krp_key *key,
		   uint64_t generation)
{
	if (hub->subscribers)
		ms_changes_note(&hub->changes, event, key, generation);
}

bool ms_hub_seal(struct ms_hub *hub, uint64_t now_ms)
{
	bool more = ms_changes_seal(&hub->changes, now_ms);

	/* subscribers at the end of the list come first, before the round begins again */
	if (hub->tell_next)
		hub->tell_again = true;
	else
		hub->tell_next = hub->subscribers;
	return more;
}

bool ms_hub_tell(struct ms_hub *hub, unsigned int budget)
{
	unsigned int work = 0;

	while (hub->tell_next && work < budget) {
		struct ms_session *s = hub->tell_next;

		hub->tell_next = s->next;
		work += 1 + ms_session_tell(s);
		if (!hub->tell_next && hub->tell_again) {
			hub->tell_again = false;
			hub->tell_next = hub->subscribers;
		}
	}
	hub->stats.tell_work += work;
	return hub->tell_next;
}
