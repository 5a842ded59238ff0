/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A context of the library attached to a server's protocol core, in one process.
 *
 * Both sides are the real code: all of the library above it; session, ledger and
 * table of the server. What stands between them is defined here in place of the library's
 * conn.c: a SEND is handed over at once, a READ is a copy of the table's memory, and a thread
 * brings the server's messages as the context's own thread would.
 */
#ifndef KRC_TESTS_UNIT_CLIENT_NET_H
#define KRC_TESTS_UNIT_CLIENT_NET_H

#include "client/lib/lib.h"
#include "metaserver/session.h"
#include "tests/unit/session_server.h"
#include "tests/unit/table_fixture.h"

#define NET_TIMEOUT_MS 5000

/**
 * struct net - The one there is. Under @lock unless said otherwise.
 * @lock: the server has one thread; this stands for it.
 * @arrived: there are frames, or @stop.
 * @frames: messages of the server on their way.
 * @notify_room: NOTIFYs that the server may still send.
 * @lose_notifies: so many NOTIFYs are lost.
 * @answer: takes HELLOs in place of the session, if set: sends what another server would.
 * @reads: READs whose completion was not polled yet.
 * @stop: the thread shall end.
 * @thread: plays the context's thread.
 * @hub: of the server.
 * @session: the connection, the server's end.
 * @tf: table.
 * @now_ms: the server's clock.
 */
struct net {
	pthread_mutex_t lock;
	pthread_cond_t arrived;
	struct sv_frames frames;
	unsigned int notify_room;
	unsigned int lose_notifies;
	void (*answer)(const struct krp_hello *hello);
	_Atomic unsigned int reads;
	_Atomic bool stop;
	pthread_t thread;
	struct ms_hub hub;
	struct ms_session session;
	struct tf_server tf;
	uint64_t now_ms;
};

extern struct net net;
extern struct krcore_ctx net_ctx;
extern const uint8_t net_gid[KRP_GID_BYTES]; /* of the client */

/* A server, and a context that begins to attach to it. */
int net_setup(void **state);

/* The end of both. */
int net_teardown(void **state);

/* Locks: net.lock. A message to the client. */
void net_frame(const void *msg, unsigned int bytes);

/* Wait until the server is in a state, or has failed with an error if @state is KRP_SESSION_DOWN. */
void net_wait(enum krp_session_state state, int err);

/* A record has changed at the server: all subscribers are told. */
void net_change(uint16_t service);

/* The connection breaks; the client attaches anew. */
void net_break(void);

#endif
