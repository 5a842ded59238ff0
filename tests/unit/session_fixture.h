/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A session over a transport that only keeps what it is told, with a real ledger and table
 * behind it.
 */
#ifndef KRC_TESTS_UNIT_SESSION_FIXTURE_H
#define KRC_TESTS_UNIT_SESSION_FIXTURE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "metaserver/session.h"

#define INCARNATION 0x1122334455667788ULL
#define SENT_MAX 64
#define FX_SALT 5 /* of the table */

/**
 * struct fixture - A session with the hub behind it, and what it has said.
 * @hub: hub with table and ledger.
 * @s: session.
 * @now: clock, in ms.
 * @sent: messages that it sent, the oldest first.
 * @sent_nr: how many.
 * @opened: times that it opened the table to READs.
 * @closed: times that it asked for its end.
 * @why: reason of the last time.
 * @send_error: what sending says: 0 or a negative errno.
 * @notify_room: NOTIFYs that the transport still takes.
 * @open_error: what opening the table says: 0 or a negative errno.
 * @hello: the HELLO that was said last.
 */
struct fixture {
	struct ms_hub hub;
	struct ms_session s;
	uint64_t now;
	union {
		struct krp_msg_hdr hdr;
		struct krp_ack ack;
		struct krp_challenge challenge;
		struct krp_welcome welcome;
		struct krp_value_msg value;
		struct krp_root_reply root;
		struct krp_notify notify;
		__u8 bytes[KRP_MSG_BYTES_MAX];
	} sent[SENT_MAX];
	unsigned int sent_nr;
	unsigned int opened;
	unsigned int closed;
	const char *why;
	int send_error;
	unsigned int notify_room;
	int open_error;
	struct krp_hello hello;
};

extern const uint8_t my_gid[KRP_GID_BYTES];
extern const uint8_t other_gid[KRP_GID_BYTES];
extern const struct krp_link my_link;

/* A new session in place of the one before, from @gid; what was sent is forgotten. */
void fx_session_at(struct fixture *fx, const uint8_t *gid, bool gid_known);

/* A new session from my_gid. */
void fx_session(struct fixture *fx);

/* A hub with one key, a ledger of eight records, and a session from my_gid. */
int fx_setup(void **state);

/* The end of it: nothing is left of sessions and subscribers. */
int fx_teardown(void **state);

/* The session receives @msg, which is as long as it says. */
void give(struct fixture *fx, const void *msg);

/* Status of what was sent last. */
unsigned int last_status(const struct fixture *fx);

/* What was sent last is this; a refusal has an empty body. */
void assert_answer(const struct fixture *fx, unsigned int type, uint32_t xid, unsigned int status);

/* A HELLO of node1 at my_gid, with all features and one that nobody knows. */
void make_hello(struct krp_hello *h);

/* The proof for the challenge that was sent last. */
void make_auth(const struct fixture *fx, struct krp_auth *a);

/* HELLO of the GID from which the session comes. */
void say_hello(struct fixture *fx);

/* AUTH with the right proof. */
void prove(struct fixture *fx);

/* HELLO and AUTH; the session is ready then. */
void attach(struct fixture *fx);

/* A raw record of my_gid. */
void make_publish(struct krp_publish *m, unsigned int service, unsigned int payload);

#define CASE(name) cmocka_unit_test_setup_teardown(name, fx_setup, fx_teardown)

#endif
