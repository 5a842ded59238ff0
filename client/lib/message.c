// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Messages between programs: the inbox of a node, connections, what is sent and what comes.
 *
 * Nothing but the system calls of proto/krp_ioctl_message.h. Arrays of messages and of letters go
 * to the module and come from it as they are, so their layout is that of the ABI.
 */
#include <errno.h>
#include <string.h>

#include "client/include/krcore/message.h"
#include "client/lib/base.h"
#include "client/lib/node.h"
#include "client/lib/out.h"
#include "common/gid.h"
#include "proto/krp_ioctl_message.h"

#define KRL_INBOX_BYTES (1U << 20)
#define KRL_INBOX_DEPTH 256
#define KRL_BACKLOG 16
#define KRL_CONNECTION_DEPTH 64
#define KRL_LISTEN_TIMEOUT_MS 5000

#define KRL_SAME(type, other, field) \
	_Static_assert(offsetof(struct type, field) == offsetof(struct other, field), \
		       #type "." #field)

KRL_SAME(krcore_letter, krp_letter, seq);
KRL_SAME(krcore_letter, krp_letter, connection);
KRL_SAME(krcore_letter, krp_letter, status);
KRL_SAME(krcore_letter, krp_letter, length);
KRL_SAME(krcore_letter, krp_letter, imm);
KRL_SAME(krcore_letter, krp_letter, offset);
KRL_SAME(krcore_letter, krp_letter, bytes);
KRL_SAME(krcore_letter, krp_letter, kind);
KRL_SAME(krcore_letter, krp_letter, flags);
_Static_assert(sizeof(struct krcore_letter) == sizeof(struct krp_letter), "krcore_letter");

KRL_SAME(krcore_peer, krp_letter_peer, gid);
KRL_SAME(krcore_peer, krp_letter_peer, generation);
KRL_SAME(krcore_peer, krp_letter_peer, queue);
KRL_SAME(krcore_peer, krp_letter_peer, service);
KRL_SAME(krcore_peer, krp_letter_peer, user_len);
KRL_SAME(krcore_peer, krp_letter_peer, user);
_Static_assert(sizeof(struct krcore_peer) == sizeof(struct krp_letter_peer), "krcore_peer");

KRL_SAME(krcore_send_wr, krp_send_wr, user_data);
KRL_SAME(krcore_send_wr, krp_send_wr, addr);
KRL_SAME(krcore_send_wr, krp_send_wr, connection);
KRL_SAME(krcore_send_wr, krp_send_wr, mr);
KRL_SAME(krcore_send_wr, krp_send_wr, length);
KRL_SAME(krcore_send_wr, krp_send_wr, imm);
KRL_SAME(krcore_send_wr, krp_send_wr, flags);
KRL_SAME(krcore_send_wr, krp_send_wr, queue);
KRL_SAME(krcore_send_wr, krp_send_wr, rsvd);
_Static_assert(sizeof(struct krcore_send_wr) == sizeof(struct krp_send_wr), "krcore_send_wr");

#define KRL_EQUAL(name, other) _Static_assert((KRCORE_##name) == (KRP_##other), #name)

KRL_EQUAL(SEND_MAX, SEND_MAX);
KRL_EQUAL(SEND_COPY_MAX, SEND_COPY_MAX);
KRL_EQUAL(SEND_LARGE_MAX, SEND_LARGE_MAX);
KRL_EQUAL(FIRST_MAX, OPEN_FIRST_MAX);
KRL_EQUAL(USER_MAX, OPEN_USER_MAX);
KRL_EQUAL(RECV_MAX, RECV_MAX);
KRL_EQUAL(CONNECTION_DEPTH_MAX, CONN_DEPTH_MAX);
KRL_EQUAL(CONNECT_FRESH, OPEN_FRESH);
KRL_EQUAL(OP_SEND, OP_SEND);
KRL_EQUAL(OP_FETCH, OP_FETCH);
KRL_EQUAL(OP_RECV, OP_RECV);
KRL_EQUAL(LETTER_OFFER, LETTER_OFFER);
KRL_EQUAL(LETTER_OPENED, LETTER_OPENED);
KRL_EQUAL(LETTER_MESSAGE, LETTER_MESSAGE);
KRL_EQUAL(LETTER_LARGE, LETTER_LARGE);
KRL_EQUAL(LETTER_ENDED, LETTER_ENDED);
KRL_EQUAL(LETTER_DIED, LETTER_DIED);
KRL_EQUAL(SEND_HURRY, SEND_HURRY);
KRL_EQUAL(SEND_AFTER, SEND_AFTER);
KRL_EQUAL(SEND_AFTER_MAX, SEND_AFTER_MAX);
KRL_EQUAL(LETTER_AFTER, LETTER_AFTER);
KRL_EQUAL(LETTER_POSTED, LETTER_POSTED);
KRL_EQUAL(POSTED_MAX, RECV_POSTED_MAX);
KRL_EQUAL(POSTED_MESSAGES_MAX, RECV_MESSAGES_MAX);
KRL_EQUAL(POSTED_ALIGN, RECV_ALIGN);
KRL_EQUAL(WC_MORE, CQE_MORE);
KRL_EQUAL(FETCH_KEEP, LARGE_KEEP);
KRL_EQUAL(SHUT_SEND, SHUT_SEND);
KRL_EQUAL(SHUT_CLOSE, SHUT_CLOSE);
KRL_EQUAL(SHUT_ABORT, SHUT_ABORT);
KRL_EQUAL(CONNECTION_OFFERED, CONN_OFFERED);
KRL_EQUAL(CONNECTION_OPENING, CONN_OPENING);
KRL_EQUAL(CONNECTION_OPEN, CONN_OPEN);
KRL_EQUAL(CONNECTION_DEAD, CONN_DEAD);

int krcore_inbox_create(struct krcore_node *node, uint32_t bytes, uint32_t depth)
{
	struct krp_inbox inbox = {
		.bytes = bytes ? bytes : KRL_INBOX_BYTES,
		.depth = depth ? depth : KRL_INBOX_DEPTH,
	};
	int err = krl_node_call(node, KRP_IOC_INBOX, &inbox);

	if (err)
		return krl_error(err, "making an inbox of %u bytes for %u under way: %s",
				 inbox.bytes, inbox.depth, strerror(-err));
	return 0;
}

int krcore_listen(struct krcore_node *node, uint16_t service, uint32_t backlog, uint32_t timeout_ms)
{
	struct krp_bind bind = {
		.service = service,
		.flags = KRP_BIND_LISTEN,
		.timeout_ms = timeout_ms ? timeout_ms : KRL_LISTEN_TIMEOUT_MS,
		.backlog = backlog ? backlog : KRL_BACKLOG,
	};
	int err = krl_node_call(node, KRP_IOC_BIND, &bind);

	if (err)
		return krl_error(err, "listening to service %u: %s", service, strerror(-err));
	return 0;
}

/* Fills @ret_all, with the defaults for what @opts leaves out. */
static int krl_connection_options(const struct krcore_connection_options *opts,
				  struct krcore_connection_options *ret_all)
{
	struct krcore_connection_options all = { .size = sizeof(all) };
	int err = krl_options_take(opts, &all, sizeof(all));

	if (err)
		return err;
	if (all.user_len > KRCORE_USER_MAX || (all.user_len && !all.user)) {
		krl_error(-EINVAL, "%u bytes for the peer's program: at most %u", all.user_len,
			  KRCORE_USER_MAX);
		return -EINVAL;
	}
	if (!all.depth)
		all.depth = KRL_CONNECTION_DEPTH;
	if (!all.timeout_ms)
		all.timeout_ms = KRL_LISTEN_TIMEOUT_MS;
	*ret_all = all;
	return 0;
}

int krcore_connect(struct krcore_node *node, const struct krcore_key *peer,
		   const struct krcore_connection_options *opts, uint32_t *ret_connection)
{
	struct krcore_connection_options all;
	struct krp_open arg = { 0 };
	char text[KRU_GID_TEXT];
	int err = krl_connection_options(opts, &all);

	if (err)
		return err;
	arg.flags = all.flags;
	memcpy(arg.gid, peer->gid, sizeof(arg.gid));
	arg.service = peer->service;
	arg.user_len = (uint8_t)all.user_len;
	arg.timeout_ms = all.timeout_ms;
	arg.depth = all.depth;
	arg.first = (uintptr_t)all.first;
	if (all.user_len)
		memcpy(arg.user, all.user, all.user_len);
	err = krl_node_call(node, KRP_IOC_OPEN, &arg);
	if (err)
		return krl_error(err, "connecting to %s service %u: %s",
				 kru_gid_format(peer->gid, text), peer->service, strerror(-err));
	*ret_connection = arg.connection;
	return 0;
}

int krcore_accept(struct krcore_node *node, uint32_t connection,
		  const struct krcore_connection_options *opts)
{
	struct krp_accept arg = { .connection = connection };
	struct krcore_connection_options all;
	int err = krl_connection_options(opts, &all);

	if (err)
		return err;
	arg.depth = all.depth;
	arg.user_len = (uint8_t)all.user_len;
	if (all.user_len)
		memcpy(arg.user, all.user, all.user_len);
	err = krl_node_call(node, KRP_IOC_ACCEPT, &arg);
	if (err)
		return krl_error(err, "accepting connection %u: %s", connection, strerror(-err));
	return 0;
}

int krcore_refuse(struct krcore_node *node, uint32_t connection)
{
	struct krp_accept arg = { .connection = connection, .flags = KRP_ACCEPT_REFUSE };
	int err = krl_node_call(node, KRP_IOC_ACCEPT, &arg);

	if (err)
		return krl_error(err, "refusing connection %u: %s", connection, strerror(-err));
	return 0;
}

int krcore_send_many(struct krcore_node *node, const struct krcore_send_wr *wrs, unsigned int nr,
		     int *ret_error)
{
	struct krp_send send = { .wrs = (uintptr_t)wrs, .count = nr };
	int err = krl_node_call(node, KRP_IOC_SEND, &send);

	if (err == -EAGAIN) /* in the course of things: no text is made up for it */
		return krl_error_const(err, "as many messages are under way as may be");
	if (err)
		return krl_error(err, "sending: %s", strerror(-err));
	if (ret_error)
		*ret_error = send.error;
	return (int)send.taken;
}

/* Return: 0, or the error of the only one. */
static int krl_send_one(struct krcore_node *node, const struct krcore_send_wr *wr, size_t bytes)
{
	int taken;

	if (bytes > UINT32_MAX)
		return krl_error(-EMSGSIZE, "a message of %zu bytes", bytes);
	taken = krcore_send_many(node, wr, 1, NULL);
	return taken < 0 ? taken : 0;
}

int krcore_send(struct krcore_node *node, uint32_t connection, const void *data, size_t bytes,
		uint64_t user_data)
{
	const struct krcore_send_wr wr = {
		.user_data = user_data,
		.addr = (uintptr_t)data,
		.connection = connection,
		.length = (uint32_t)bytes,
	};

	return krl_send_one(node, &wr, bytes);
}

int krcore_send_large(struct krcore_node *node, uint32_t connection, const struct krcore_mr *mr,
		      const void *data, size_t bytes, uint64_t user_data)
{
	const struct krcore_send_wr wr = {
		.user_data = user_data,
		.addr = (uintptr_t)data,
		.connection = connection,
		.mr = mr->handle,
		.length = (uint32_t)bytes,
	};

	return krl_send_one(node, &wr, bytes);
}

int krcore_recv(struct krcore_node *node, struct krcore_letter *letters, unsigned int nr,
		void *buffer, size_t bytes, int timeout_ms)
{
	struct krp_recv recv = {
		.letters = (uintptr_t)letters,
		.buffer = (uintptr_t)buffer,
		.count = nr,
		.bytes = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX,
		.timeout_ms = timeout_ms < 0 ? KRP_WAIT_FOREVER : (uint32_t)timeout_ms,
	};
	int err = krl_node_call(node, KRP_IOC_RECV, &recv);

	switch (err) {
	case 0:
		return (int)recv.taken;
	case -EAGAIN:
		return 0;
	case -ETIMEDOUT:
		return krl_error_const(err, "no letter came in time");
	case -ENODEV:
		return krl_error_const(err, "the device is gone");
	case -EMSGSIZE:
		return krl_error(err, "the next letter needs %u bytes, the buffer has %zu",
				 recv.used, bytes);
	default:
		return krl_error(err, "taking letters: %s", strerror(-err));
	}
}

int krcore_letter_peer(const struct krcore_letter *letter, const void *buffer,
		       struct krcore_peer *ret_peer)
{
	if ((letter->kind != KRCORE_LETTER_OFFER && letter->kind != KRCORE_LETTER_OPENED) ||
	    letter->bytes != sizeof(*ret_peer))
		return krl_error(-EINVAL, "a letter of kind %u does not say who the peer is",
				 letter->kind);
	memcpy(ret_peer, (const char *)buffer + letter->offset, sizeof(*ret_peer));
	return 0;
}

/* What both may do with an announced message. */
static int krl_large(struct krcore_node *node, const struct krcore_letter *letter,
		     struct krp_large *large, const char *what)
{
	int err;

	if (letter->kind != KRCORE_LETTER_LARGE)
		return krl_error(-EINVAL, "a letter of kind %u announces nothing", letter->kind);
	if (letter->flags & KRCORE_LETTER_POSTED) /* its seq is no name of a message */
		return krl_error_const(-EINVAL, "the message goes to a buffer that was posted");
	large->seq = letter->seq;
	large->connection = letter->connection;
	err = krl_node_call(node, KRP_IOC_LARGE, large);
	if (err)
		return krl_error(err, "%s message %llu of connection %u: %s", what,
				 (unsigned long long)letter->seq, letter->connection,
				 strerror(-err));
	return 0;
}

int krcore_fetch(struct krcore_node *node, const struct krcore_letter *letter, uint64_t offset,
		 const struct krcore_mr *mr, void *local, uint32_t bytes, uint32_t flags,
		 uint64_t user_data)
{
	struct krp_large large = {
		.flags = flags,
		.user_data = user_data,
		.addr = (uintptr_t)local,
		.offset = offset,
		.mr = mr->handle,
		.length = bytes,
	};

	if (flags & KRP_LARGE_DISCARD)
		return krl_error_const(-EINVAL, "no flag of krcore_fetch()");
	return krl_large(node, letter, &large, "fetching");
}

int krcore_post_recv(struct krcore_node *node, const struct krcore_mr *mr, void *local,
		     uint32_t bytes, uint64_t user_data)
{
	return krcore_post_recv_multi(node, mr, local, bytes, 1, 0, user_data);
}

int krcore_post_recv_multi(struct krcore_node *node, const struct krcore_mr *mr, void *local,
			   uint32_t bytes, uint32_t messages, uint32_t least, uint64_t user_data)
{
	struct krp_post_recv post = {
		.user_data = user_data,
		.addr = (uintptr_t)local,
		.mr = mr->handle,
		.length = bytes,
		.messages = messages,
		.least = least,
	};
	int err = krl_node_call(node, KRP_IOC_POST_RECV, &post);

	if (err == -EAGAIN) /* in the course of things: no text is made up for it */
		return krl_error_const(err, "as many buffers are posted as may be");
	if (err)
		return krl_error(err, "posting a buffer of %u bytes: %s", bytes, strerror(-err));
	return 0;
}

int krcore_cancel_recv(struct krcore_node *node, uint64_t user_data)
{
	struct krp_post_recv cancel = { .user_data = user_data, .flags = KRP_RECV_CANCEL };
	int err = krl_node_call(node, KRP_IOC_POST_RECV, &cancel);

	if (err)
		return krl_error(err, "taking back a buffer that was posted: %s", strerror(-err));
	return 0;
}

int krcore_discard(struct krcore_node *node, const struct krcore_letter *letter)
{
	struct krp_large large = { .flags = KRP_LARGE_DISCARD };

	return krl_large(node, letter, &large, "discarding");
}

int krcore_cancel(struct krcore_node *node, uint32_t connection, uint64_t user_data)
{
	struct krp_cancel cancel = { .user_data = user_data, .connection = connection };
	int err = krl_node_call(node, KRP_IOC_CANCEL, &cancel);

	if (err)
		return krl_error(err, "taking messages of connection %u back: %s", connection,
				 strerror(-err));
	return 0;
}

int krcore_shutdown(struct krcore_node *node, uint32_t connection, uint32_t how)
{
	struct krp_shut shut = { .connection = connection, .how = how };
	int err = krl_node_call(node, KRP_IOC_SHUT, &shut);

	if (err)
		return krl_error(err, "ending connection %u: %s", connection, strerror(-err));
	return 0;
}

int krcore_connection_query(struct krcore_node *node, uint32_t connection,
			    struct krcore_connection_info *ret_info)
{
	struct krp_conn_query query = { .connection = connection };
	int err = KRL_CONNECTION_INFO_CHECK(ret_info);
	struct krcore_connection_info info;

	if (err)
		return err;
	err = krl_node_call(node, KRP_IOC_CONN_QUERY, &query);
	if (err)
		return krl_error(err, "connection %u: %s", connection, strerror(-err));
	info = (struct krcore_connection_info){
		.state = query.state,
		.error = query.error,
		.outstanding = query.outstanding,
		.waiting = query.waiting,
		.sent = query.sent,
		.received = query.received,
		.unacked = query.unacked,
		.window = query.window,
		.backlog = query.backlog,
		.repeats = query.repeats,
		.gaps = query.gaps,
		.busy = query.busy,
		.foreign = query.foreign,
	};
	memcpy(&info.peer, &query.peer, sizeof(info.peer));
	krl_out_fill(ret_info, &info, sizeof(info));
	return 0;
}
