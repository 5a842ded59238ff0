/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Clients and servers in one process with a simulated clock: on one side the machine of
 * proto/krp_session.h, on the other session, ledger and table of the daemon. Between them are
 * queues of messages that may lose connections. No RDMA, no threads, nothing is waited for.
 */
#ifndef KRC_TESTS_UNIT_SESSION_WORLD_H
#define KRC_TESTS_UNIT_SESSION_WORLD_H

#include <stdbool.h>

#include "metaserver/session.h"
#include "proto/krp_session.h"
#include "tests/unit/session_server.h"

#define WD_SERVERS 3
#define WD_CLIENTS 2
#define WD_CHAINS 8
#define WD_GENERATION 77
#define WD_TIMEOUT_MS 500
#define WD_STEP_MS 10 /* what the clock goes on by */

struct wd_world;

/**
 * struct wd_conn - A connection, both ends.
 * @world: the world.
 * @client: index of its client.
 * @server: index of its server.
 * @ms: the server's end.
 * @up: it is made.
 * @closing: the server ends it once what it has said is delivered.
 * @mute: nothing of what the server says is delivered.
 * @lose_notifies: so many NOTIFYs are lost.
 * @up_to: to the server.
 * @down_to: to the client.
 */
struct wd_conn {
	struct wd_world *world;
	unsigned int client;
	unsigned int server;
	struct ms_session ms;
	bool up;
	bool closing;
	bool mute;
	unsigned int lose_notifies;
	struct sv_frames up_to;
	struct sv_frames down_to;
};

/**
 * struct wd_server - A MetaServer.
 * @hub: its hub, with table and ledger.
 * @reachable: connections can be made.
 * @why: last reason for which it ended a session.
 */
struct wd_server {
	struct ms_hub hub;
	bool reachable;
	const char *why;
};

/**
 * struct wd_client - A client with a session with each server.
 * @live: it was begun and has not ended.
 * @conf: settings.
 * @pub: its records.
 * @chains: their hash.
 * @gid: its address.
 * @keys: its cluster keys.
 * @s: sessions.
 * @conn: their transports.
 * @buffers_late: the transport gives buffers back only with the next tick.
 * @resyncs: KRP_EVENT_RESYNC said.
 * @changes: KRP_EVENT_CHANGED said.
 * @gone: KRP_EVENT_GONE said.
 * @done: KRP_DO_DONE of questions.
 * @ups: KRP_DO_UP.
 * @refusals: krp_todo.refusal.
 * @sent: messages sent, by server and type.
 */
struct wd_client {
	bool live;
	struct krp_session_conf conf;
	struct krp_publisher pub;
	struct krp_record *chains[WD_CHAINS];
	uint8_t gid[KRP_GID_BYTES];
	struct kru_keys keys;
	struct krp_session s[WD_SERVERS];
	struct wd_conn conn[WD_SERVERS];
	bool buffers_late;
	unsigned int resyncs;
	unsigned int changes;
	unsigned int gone;
	unsigned int done;
	unsigned int ups;
	unsigned int refusals;
	unsigned int sent[WD_SERVERS][KRP_MSG_TYPES];
};

/**
 * struct wd_world - All of it.
 * @now_ms: the clock.
 * @dice: state of the random numbers.
 * @servers_nr: servers in use.
 * @server: servers.
 * @client: clients.
 * @incarnations: incarnations of servers begun so far.
 * @lose_every: each so manyth message costs its connection; 0: none.
 * @messages: messages delivered.
 * @limits: of a server that is started.
 * @auth: a server that is started demands a proof.
 */
struct wd_world {
	uint64_t now_ms;
	uint64_t dice;
	unsigned int servers_nr;
	struct wd_server server[WD_SERVERS];
	struct wd_client client[WD_CLIENTS];
	unsigned int incarnations;
	unsigned int lose_every;
	unsigned int messages;
	struct ms_limits limits;
	bool auth;
};

/* A random number. */
uint32_t wd_random(struct wd_world *w);

/* A world of so many servers without clients. */
void wd_begin(struct wd_world *w, unsigned int servers_nr, uint64_t seed);

/* The end of it. */
void wd_end(struct wd_world *w);

/* A new incarnation of a server; the one before, if there was one, and its connections end. */
void wd_server_start(struct wd_world *w, unsigned int server);

/* A client at an address. */
void wd_client_start(struct wd_world *w, unsigned int client, uint8_t last_of_gid);

/*
 * The end of a client: it withdraws all within a second; orphans go to @left, if not NULL.
 * @now: without waiting for that.
 */
void wd_client_stop(struct wd_world *w, unsigned int client, bool now, struct krp_list *left);

/* Let a client withdraw orphans: of its own address, or all. */
void wd_client_adopt(struct wd_world *w, unsigned int client, struct krp_list *left, bool own);

/* Take back what a client has adopted of another's address. */
void wd_client_release(struct wd_world *w, unsigned int client, const uint8_t *gid,
		       struct krp_list *left);

/* Publish a record with a payload. */
struct krp_record *wd_publish(struct wd_world *w, unsigned int client, uint16_t service,
			      uint32_t payload);

/* Withdraw it. */
void wd_withdraw(struct wd_world *w, unsigned int client, uint16_t service);

/* The record; NULL: there is none. */
struct krp_record *wd_find(struct wd_world *w, unsigned int client, uint16_t service);

/* A connection breaks. */
void wd_break(struct wd_world *w, unsigned int client, unsigned int server);

/* Do all that is to be done now, without the clock going on. */
void wd_settle(struct wd_world *w);

/* Let the time pass. */
void wd_run(struct wd_world *w, uint64_t ms);

/* Pull a session after something was said to it. */
void wd_pull(struct wd_world *w, unsigned int client, unsigned int server);

/* Payload of a record at a server; -1: there is none. */
long wd_at(struct wd_world *w, unsigned int server, unsigned int client, uint16_t service);

/* Records at a server. */
unsigned int wd_count(struct wd_world *w, unsigned int server);

#endif
