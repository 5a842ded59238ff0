/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A MetaServer without RDMA, for tests of its clients' sessions: what a hub needs around it, and
 * messages on their way. What the transport does, and the table, are each test's own. No threads.
 */
#ifndef KRC_TESTS_UNIT_SESSION_SERVER_H
#define KRC_TESTS_UNIT_SESSION_SERVER_H

#include <stdbool.h>

#include "metaserver/session.h"

#define SV_FRAMES 256 /* messages on their way at most */

/**
 * struct sv_frames - Messages on their way, in order.
 * @msg: messages, by number modulo SV_FRAMES.
 * @bytes: length of each.
 * @head: taken so far.
 * @tail: put in so far.
 */
struct sv_frames {
	__u64 msg[SV_FRAMES][KRP_MSG_BYTES_MAX / 8];
	unsigned int bytes[SV_FRAMES];
	unsigned int head;
	unsigned int tail;
};

/**
 * sv_frames_put() - Send a message; the case fails if there is no room for it.
 * @frames: messages.
 * @msg: message.
 * @bytes: its length, at most KRP_MSG_BYTES_MAX.
 */
void sv_frames_put(struct sv_frames *frames, const void *msg, unsigned int bytes);

/**
 * sv_frames_take() - Receive the oldest message.
 * @frames: messages.
 * @ret_bytes: out: its length.
 *
 * Return: the message, valid until SV_FRAMES more are put in; NULL: none is on its way.
 */
const void *sv_frames_take(struct sv_frames *frames, unsigned int *ret_bytes);

/**
 * sv_frames_drop() - Lose what is on its way.
 * @frames: messages.
 */
void sv_frames_drop(struct sv_frames *frames);

/**
 * sv_open_reads() - ms_session_ops.open_reads: the table is open to all.
 * @arg: not used.
 *
 * Return: 0.
 */
int sv_open_reads(void *arg);

/**
 * sv_root() - Fill in where a root is.
 * @addr: its address.
 * @ret_root: out: the reference, for ms_session_ops.root.
 */
void sv_root(uint64_t addr, struct krp_root_ref *ret_root);

/**
 * sv_link() - Name both ends of a connection.
 * @client: GID of the client.
 * @server: GID of the server.
 * @client_qpn: queue pair of the client, 24 bits.
 * @server_qpn: queue pair of the server, 24 bits.
 * @ret_link: out: the link.
 */
void sv_link(const uint8_t *client, const uint8_t *server, uint32_t client_qpn, uint32_t server_qpn,
	     struct krp_link *ret_link);

/**
 * sv_hub_start() - Begin a hub with a ledger whose changes are told to its subscribers.
 * @hub: zeroed, with incarnation and limits.
 * @table: table of that incarnation; stays the caller's.
 * @now_ms: clock.
 */
void sv_hub_start(struct ms_hub *hub, struct ms_table *table, uint64_t now_ms);

/**
 * sv_hub_stop() - End a hub without sessions, and its ledger.
 * @hub: hub; zeroed.
 */
void sv_hub_stop(struct ms_hub *hub);

#endif
