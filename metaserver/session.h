/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The control protocol of proto/krp_msg.h, server side, without any transport:
 * bytes go in, calls of struct ms_session_ops come out. RDMA, the unit tests
 * and the fuzzer drive the same code.
 *
 * A hub is what all sessions share: limits, cluster key, ledger, counters and
 * the list of subscribers.
 *
 * Threads: one, that of the ledger. Time is the caller's, in ms.
 */
#ifndef MS_SESSION_H
#define MS_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/auth.h"
#include "metaserver/admit.h"
#include "metaserver/changes.h"
#include "metaserver/ledger.h"
#include "metaserver/settle.h"
#include "proto/krp_msg.h"

#define MS_HANDSHAKE_MS 5000 /* from connection to AUTH */
#define MS_FRUITLESS_TOKENS 16U /* messages that one counts as if it costs a fruitless plan */

struct ms_session;

/**
 * enum ms_session_state - State of a session.
 * @MS_STATE_HELLO: HELLO is awaited.
 * @MS_STATE_CHALLENGE: AUTH is awaited.
 * @MS_STATE_READY: authenticated: READs and requests.
 * @MS_STATE_CLOSING: close() was called; messages are ignored.
 * @MS_STATES: how many states there are.
 */
enum ms_session_state {
	MS_STATE_HELLO,
	MS_STATE_CHALLENGE,
	MS_STATE_READY,
	MS_STATE_CLOSING,
	MS_STATES
};

/**
 * struct ms_limits - Settings of the configuration for sessions.
 * @lease_ms: lease if the client asks for none.
 * @lease_min_ms: shortest.
 * @lease_max_ms: longest.
 * @tick_ms: granularity of the sweep.
 * @records_max: records an owner may have.
 * @clients_max: authenticated sessions; an idle one may be shut to admit another client.
 * @rate_max: messages a second.
 * @credits: requests unanswered.
 * @idle_timeout_ms: time without a message that ends a session.
 * @publish_any_gid: a client may publish for any GID.
 */
struct ms_limits {
	uint32_t lease_ms;
	uint32_t lease_min_ms;
	uint32_t lease_max_ms;
	uint32_t tick_ms;
	uint32_t records_max;
	uint32_t clients_max;
	uint32_t rate_max;
	uint32_t credits;
	uint32_t idle_timeout_ms;
	bool publish_any_gid;
};

/**
 * struct ms_hub_stats - Counters over all sessions, as in struct ms_server_stats.
 * @sessions: authenticated now.
 * @sessions_pending: not authenticated yet.
 * @sessions_total: ever authenticated.
 * @sessions_timed_out: idle, or slow to authenticate.
 * @auth_failures: wrong proofs.
 * @messages_in: received, by KRP_MSG_*; index 0: malformed.
 * @results: answers to PUBLISH, WITHDRAW and RENEW by KRP_ST_*.
 * @answers: all answers by KRP_ST_*.
 * @published: PUBLISH that succeeded.
 * @renewed: RENEW that succeeded.
 * @withdrawn: WITHDRAW that succeeded.
 * @notifies_sent: NOTIFY sent.
 * @notifies_dropped: events that a slow subscriber did not get.
 * @resyncs: NOTIFY of KRP_EVENT_RESYNC sent.
 * @subscribers: sessions that have subscribed.
 * @tell_work: subscribers visited, and messages made for them, in rounds.
 */
struct ms_hub_stats {
	uint64_t sessions;
	uint64_t sessions_pending;
	uint64_t sessions_total;
	uint64_t sessions_timed_out;
	uint64_t auth_failures;
	uint64_t messages_in[KRP_MSG_TYPES];
	uint64_t results[KRP_ST_CODES];
	uint64_t answers[KRP_ST_CODES];
	uint64_t published;
	uint64_t renewed;
	uint64_t withdrawn;
	uint64_t notifies_sent;
	uint64_t notifies_dropped;
	uint64_t resyncs;
	uint64_t subscribers;
	uint64_t tell_work;
};

/**
 * struct ms_hub - What all sessions share.
 * @ledger: owners and records.
 * @table: for LOOKUP.
 * @incarnation: of the server.
 * @limits: limits; may change at any time.
 * @auth: clients must prove that they have one of @keys.
 * @keys: cluster keys, the first is used with clients that have none of them.
 * @secret: of this incarnation, for the tokens of owners.
 * @settle: until when, by the leases' clock, publishers may still be on their way back.
 * @draining: refuse requests with KRP_ST_SHUTDOWN.
 * @stats: counters.
 * @roll: authenticated sessions.
 * @subscribers: sessions to notify.
 * @changes: notes for them.
 * @tell_next: subscriber with which the current round continues, NULL if it is over.
 * @tell_again: another round is needed after this one.
 */
struct ms_hub {
	struct ms_ledger *ledger;
	struct ms_table *table;
	uint64_t incarnation;
	struct ms_limits limits;
	bool auth;
	struct kru_keys keys;
	__u8 secret[KRU_SECRET_BYTES];
	struct ms_settle settle;
	bool draining;
	struct ms_hub_stats stats;
	struct ms_roll roll;
	struct ms_session *subscribers;
	struct ms_changes changes;
	struct ms_session *tell_next;
	bool tell_again;
};

/**
 * struct ms_session_ops - The transport under a session.
 * @send: queue a message; copied. @notify marks one that may be dropped: return
 *	-ENOBUFS if the client is slow, ms_session_room() is called later. For
 *	any other, an error means that the client has more unanswered requests
 *	than it may: the session closes.
 * @open_reads: allow RDMA READ from now on. Return 0, -EUSERS if the client's address
 *	has as many clients as it may have, or another negative errno.
 * @root: where the client finds the root.
 * @close: no more messages are wanted; deliver those queued, then disconnect.
 *	@why is for diagnostics. The function must not use the session.
 * @at_limit: whether @open_reads would say -EUSERS; NULL: never.
 */
struct ms_session_ops {
	int (*send)(void *arg, const void *msg, unsigned int bytes, bool notify);
	int (*open_reads)(void *arg);
	void (*root)(void *arg, struct krp_root_ref *ret_root);
	void (*close)(void *arg, const char *why);
	bool (*at_limit)(void *arg);
};

/**
 * struct ms_session - One session. Fields are for reading outside session.c.
 * @hub: its hub.
 * @ops: transport.
 * @arg: first argument of @ops.
 * @state: see enum.
 * @auth: CHALLENGE demanded a proof.
 * @subscribed: on the list of subscribers.
 * @published: it has published a record.
 * @gid_known: @gid is what the queue pair sends to, not only what the client claims.
 * @gid: GID that the connection comes from.
 * @link: the connection, as the proofs cover it.
 * @via: which of our ports it came in by; set by the transport, any number.
 * @claim: owner, generation, lease granted.
 * @features: KRP_FEATURE_* that both ends have.
 * @born_ms: when it began.
 * @last_ms: when its last message came.
 * @messages: messages received.
 * @seq: NOTIFYs sent.
 * @place: its position in the changes of the hub.
 * @tokens: messages it may send now, in thousandths.
 * @tokens_ms: when @tokens was computed.
 * @hello: HELLO as received.
 * @challenge: CHALLENGE as sent.
 * @next: list of subscribers.
 * @prev: list of subscribers.
 * @silent: list of the roll.
 * @twin: chain of the roll.
 */
struct ms_session {
	struct ms_hub *hub;
	const struct ms_session_ops *ops;
	void *arg;
	enum ms_session_state state;
	bool auth;
	bool subscribed;
	bool published;
	bool gid_known;
	uint8_t gid[KRP_GID_BYTES];
	struct krp_link link;
	uint64_t via;
	struct ms_claim claim;
	uint64_t features;
	uint64_t born_ms;
	uint64_t last_ms;
	uint64_t messages;
	uint64_t seq;
	uint64_t place;
	uint64_t tokens;
	uint64_t tokens_ms;
	struct krp_hello hello;
	struct krp_challenge challenge;
	struct ms_session *next;
	struct ms_session *prev;
	TAILQ_ENTRY(ms_session) silent;
	struct ms_session *twin;
};

/**
 * ms_session_init() - Begin a session, in MS_STATE_HELLO.
 * @s: session.
 * @hub: what it shares.
 * @ops: transport.
 * @arg: first argument of @ops.
 * @link: the connection, as its queue pair has it.
 * @gid_known: it has a global route header: the client's GID is where answers go.
 * @now_ms: the clock.
 */
void ms_session_init(struct ms_session *s, struct ms_hub *hub, const struct ms_session_ops *ops,
		     void *arg, const struct krp_link *link, bool gid_known, uint64_t now_ms);

/** ms_session_fini() - End a session in any state; close() is not called. @s: session. */
void ms_session_fini(struct ms_session *s);

/**
 * ms_session_receive() - Handle a message.
 * @s: session.
 * @msg: its bytes, 8-byte aligned; never trusted.
 * @bytes: how many.
 * @now_ms: the clock.
 */
void ms_session_receive(struct ms_session *s, const void *msg, unsigned int bytes, uint64_t now_ms);

/** ms_session_check() - Close the session if it timed out. @s: session. @now_ms: the clock. */
void ms_session_check(struct ms_session *s, uint64_t now_ms);

/** ms_session_room() - The transport can take notifications again. @s: session. */
void ms_session_room(struct ms_session *s);

/**
 * ms_session_shut() - Close from this side.
 * @s: session.
 * @why: constant text for diagnostics.
 */
void ms_session_shut(struct ms_session *s, const char *why);

/**
 * ms_hub_init() - Set up without sessions. The caller sets the other fields.
 * @hub: zero.
 * @salt: random.
 * @now_ms: the clock.
 *
 * Return: 0 or -ENOMEM.
 */
int ms_hub_init(struct ms_hub *hub, uint64_t salt, uint64_t now_ms);

/**
 * ms_hub_set_keys() - Replace the cluster keys, one of which clients must prove.
 * @hub: hub.
 * @keys: copied; none: there is no authentication.
 *
 * If there was no key before, sessions that attached without one are shut: they would keep
 * all rights for as long as they renew. Sessions that proved a key which is now gone stay
 * until they attach again, so that keys can be changed while the cluster is working.
 *
 * Return: sessions shut.
 */
unsigned int ms_hub_set_keys(struct ms_hub *hub, const struct kru_keys *keys);

/** ms_hub_fini() - Free all memory. @hub: hub without sessions, or zero. */
void ms_hub_fini(struct ms_hub *hub);

/**
 * ms_hub_notify() - Note a change for all subscribers.
 * @hub: hub.
 * @event: KRP_EVENT_CHANGED or KRP_EVENT_GONE.
 * @key: which record.
 * @generation: of the record, now or last.
 *
 * ms_hub_seal() and ms_hub_tell() send it later, so that a change
 * costs the same however many subscribers there are.
 */
void ms_hub_notify(struct ms_hub *hub, unsigned int event, const struct krp_key *key,
		   uint64_t generation);

/**
 * ms_hub_seal() - Begin to send the changes noted so far.
 * @hub: hub.
 * @now_ms: the clock.
 *
 * Return: true if a change waits for the budget of its address: call again.
 */
bool ms_hub_seal(struct ms_hub *hub, uint64_t now_ms);

/**
 * ms_hub_tell() - Send some subscribers the changes that they have not got.
 * @hub: hub.
 * @budget: about how many subscribers and messages, together.
 *
 * Never closes a session.
 *
 * Return: true if the round is not over.
 */
bool ms_hub_tell(struct ms_hub *hub, unsigned int budget);

/**
 * ms_hub_settling_ms() - For how long publishers may still be on their way back.
 * @hub: hub.
 * @now_ms: the clock.
 *
 * Return: ms, 0 if the server is settled, at most KRP_SETTLING_MS_MAX.
 */
uint32_t ms_hub_settling_ms(const struct ms_hub *hub, uint64_t now_ms);

/** ms_session_state_name() - Name of a state. @state: state. Return: constant text. */
const char *ms_session_state_name(enum ms_session_state state);

#endif /* MS_SESSION_H */
