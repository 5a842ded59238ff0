// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Range and Txn of etcd v3, in its own protocol: gRPC over HTTP/2 without TLS.
 *
 * No more of HTTP/2 than one client needs that has one kind of request: headers
 * are sent as literals (HPACK without a table), those of replies are not looked
 * at, a reply ends where its stream ends. The receive windows are made so wide
 * that they need no attention. A range request is linearizable, etcd's default.
 *
 * Note: Source - RFC 9113, RFC 7541 appendix A, etcd's rpc.proto. One thread.
 */
#include <string.h>

#include "bench/keys.h"
#include "bench/tcp.h"

#define BN_H2_DATA 0
#define BN_H2_HEADERS 1
#define BN_H2_RST_STREAM 3
#define BN_H2_SETTINGS 4
#define BN_H2_PING 6
#define BN_H2_GOAWAY 7
#define BN_H2_WINDOW_UPDATE 8
#define BN_H2_END_STREAM 0x01
#define BN_H2_ACK 0x01
#define BN_H2_END_HEADERS 0x04
#define BN_H2_FRAME_BYTES 9
#define BN_WINDOW_BYTES 0x3fff0000U
#define BN_HEADER_BYTES 256 /* of a request, more than they ever are */
#define BN_PUT_BYTES (2 + 2 + 2 + BN_TEXT_BYTES + 2 + BN_TCP_VALUE_BYTES)
#define BN_PUTS 100 /* in a transaction, which then fits into one frame */
#define BN_MESSAGE_BYTES (BN_PUTS * BN_PUT_BYTES)
#define BN_AHEAD 4 /* transactions, which then fit into the window of a server */

static uint8_t *bn_put32(uint8_t *to, uint32_t v)
{
	to[0] = (uint8_t)(v >> 24);
	to[1] = (uint8_t)(v >> 16);
	to[2] = (uint8_t)(v >> 8);
	to[3] = (uint8_t)v;
	return to + 4;
}

static uint32_t bn_get32(const uint8_t *from)
{
	return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

/* Header of a frame. Return: where its payload goes. */
static uint8_t *bn_frame(uint8_t *to, unsigned int bytes, uint8_t type, uint8_t flags,
			 uint32_t stream)
{
	to[0] = (uint8_t)(bytes >> 16);
	to[1] = (uint8_t)(bytes >> 8);
	to[2] = (uint8_t)bytes;
	to[3] = type;
	to[4] = flags;
	return bn_put32(to + 5, stream);
}

static void bn_etcd_open(struct bn_tcp *t)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	uint8_t out[128], *at = out;

	memcpy(at, preface, sizeof(preface) - 1);
	at += sizeof(preface) - 1;
	at = bn_frame(at, 6, BN_H2_SETTINGS, 0, 0);
	*at++ = 0;
	*at++ = 4; /* SETTINGS_INITIAL_WINDOW_SIZE */
	at = bn_put32(at, BN_WINDOW_BYTES);
	at = bn_frame(at, 4, BN_H2_WINDOW_UPDATE, 0, 0);
	at = bn_put32(at, BN_WINDOW_BYTES);
	bn_tcp_send(t, out, (size_t)(at - out));
	t->stream = (uint32_t)-1;
}

/* A header field whose name is given by its number in the static table. */
static uint8_t *bn_literal(uint8_t *at, unsigned int index, const char *value)
{
	size_t len = strlen(value);

	if (index < 15) {
		*at++ = (uint8_t)index;
	} else {
		*at++ = 15;
		*at++ = (uint8_t)(index - 15);
	}
	*at++ = (uint8_t)len; /* below 127 */
	memcpy(at, value, len);
	return at + len;
}

static void bn_etcd_call(struct bn_tcp *t, const char *path, const uint8_t *message,
			 unsigned int bytes)
{
	static const uint8_t te[] = "\0\2te\10trailers";
	uint8_t out[BN_HEADER_BYTES + BN_MESSAGE_BYTES], *begin = out + BN_H2_FRAME_BYTES,
							 *at = begin;

	t->stream += 2;
	*at++ = 0x83; /* :method: POST */
	*at++ = 0x86; /* :scheme: http */
	at = bn_literal(at, 4, path);
	at = bn_literal(at, 1, t->host);
	at = bn_literal(at, 31, "application/grpc");
	memcpy(at, te, sizeof(te) - 1);
	at += sizeof(te) - 1;
	bn_frame(out, (unsigned int)(at - begin), BN_H2_HEADERS, BN_H2_END_HEADERS, t->stream);

	at = bn_frame(at, bytes + 5, BN_H2_DATA, BN_H2_END_STREAM, t->stream);
	*at++ = 0; /* not compressed */
	at = bn_put32(at, bytes);
	memcpy(at, message, bytes);
	bn_tcp_send(t, out, (size_t)(at + bytes - out));
}

/* A field of bytes in a message. */
static uint8_t *bn_field(uint8_t *at, unsigned int number, const void *data, unsigned int bytes)
{
	*at++ = (uint8_t)(number << 3 | 2);
	*at++ = (uint8_t)bytes; /* below 127 */
	memcpy(at, data, bytes);
	return at + bytes;
}

static void bn_etcd_get(struct bn_tcp *t, const char *key, unsigned int bytes)
{
	uint8_t message[2 + BN_TEXT_BYTES];

	bn_etcd_call(t, "/etcdserverpb.KV/Range", message,
		     (unsigned int)(bn_field(message, 1, key, bytes) - message));
}

/* A transaction without a condition: TxnRequest.success, RequestOp.request_put. */
static void bn_etcd_puts(struct bn_tcp *t, uint64_t from, unsigned int nr)
{
	uint8_t message[BN_MESSAGE_BYTES], put[BN_PUT_BYTES], op[BN_PUT_BYTES], *at = message, *end;
	char key[BN_TEXT_BYTES], value[BN_TCP_VALUE_BYTES];
	unsigned int i;

	for (i = 0; i < nr; i++) {
		end = bn_field(put, 1, key, bn_tcp_record(from + i, key, value));
		end = bn_field(end, 2, value, BN_TCP_VALUE_BYTES);
		end = bn_field(op, 2, put, (unsigned int)(end - put));
		at = bn_field(at, 2, op, (unsigned int)(end - op));
	}
	bn_etcd_call(t, "/etcdserverpb.KV/Txn", message, (unsigned int)(at - message));
}

/*
 * Frames that belong to no request. RST_STREAM without an error (RFC 9113 section 8.1) only
 * says that the server had answered before it had seen the end of the request.
 */
static void bn_etcd_control(struct bn_tcp *t, uint8_t type, uint8_t flags, const uint8_t *payload,
			    unsigned int bytes)
{
	uint8_t out[BN_H2_FRAME_BYTES + 8];

	if (type == BN_H2_SETTINGS && !(flags & BN_H2_ACK)) {
		bn_frame(out, 0, BN_H2_SETTINGS, BN_H2_ACK, 0);
		bn_tcp_send(t, out, BN_H2_FRAME_BYTES);
	} else if (type == BN_H2_PING && !(flags & BN_H2_ACK) && bytes == 8) {
		memcpy(bn_frame(out, 8, BN_H2_PING, BN_H2_ACK, 0), payload, 8);
		bn_tcp_send(t, out, sizeof(out));
	} else if (type == BN_H2_GOAWAY) {
		bn_tcp_fail(t, "etcd ends the connection");
	} else if (type == BN_H2_RST_STREAM && (bytes < 4 || bn_get32(payload))) {
		bn_tcp_fail(t, "etcd broke the request off");
	}
}

/*
 * Wait until a stream ends. Each reply has one DATA frame, a refusal has none;
 * those of several requests in flight may come in any order. Only a reply with
 * a value is longer than the value.
 */
static int bn_etcd_wait(struct bn_tcp *t)
{
	unsigned int bytes, got = 0;
	const uint8_t *frame;
	uint8_t type, flags;
	uint32_t stream;

	for (;;) {
		frame = bn_tcp_need(t, BN_H2_FRAME_BYTES);
		bytes = bn_get32(frame) >> 8;
		frame = bn_tcp_need(t, BN_H2_FRAME_BYTES + bytes);
		type = frame[3];
		flags = frame[4];
		stream = bn_get32(frame + 5);
		if (type == BN_H2_DATA && bytes) {
			t->replies++;
			got = bytes;
		}
		bn_etcd_control(t, type, flags, frame + BN_H2_FRAME_BYTES, bytes);
		bn_tcp_used(t, BN_H2_FRAME_BYTES + bytes);
		if (stream && (type == BN_H2_HEADERS || type == BN_H2_DATA) &&
		    (flags & BN_H2_END_STREAM))
			break;
	}
	if (!t->replies)
		bn_tcp_fail(t, "etcd refused the request");
	t->replies--;
	return got > BN_TCP_VALUE_BYTES;
}

const struct bn_store bn_etcd = { "etcd",  bn_etcd_open, bn_etcd_get, bn_etcd_puts,
				  BN_PUTS, BN_AHEAD,	 bn_etcd_wait };
