/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Key-value stores over TCP that look-ups are compared with: one connection,
 * small clients without a library, so that none of its time is measured.
 *
 * One thread. Whatever fails says so and ends the program.
 */
#ifndef BN_TCP_H
#define BN_TCP_H

#include <stddef.h>
#include <stdint.h>

#define BN_TCP_VALUE_BYTES 56 /* as long as a record of krcore */
#define BN_TCP_BUF_BYTES 65536

/**
 * struct bn_tcp - A connection and what was received on it.
 * @fd: socket.
 * @host: name of the server, for the protocols that send it.
 * @buf: received.
 * @begin: first byte not yet used.
 * @end: end of what was received.
 * @stream: last number of a request, for protocols that count.
 * @replies: bodies of replies whose end has not come yet.
 */
struct bn_tcp {
	int fd;
	const char *host;
	uint8_t buf[BN_TCP_BUF_BYTES];
	size_t begin;
	size_t end;
	uint32_t stream;
	uint32_t replies;
};

/**
 * struct bn_store - A protocol.
 * @name: of the system.
 * @open: after connecting.
 * @send_get: send one request for a key.
 * @send_puts: send one request that sets records.
 * @puts_max: how many records that may be.
 * @ahead_max: such requests that may be unanswered.
 * @wait: wait for the next reply; 1 if it brought a value, else 0.
 */
struct bn_store {
	const char *name;
	void (*open)(struct bn_tcp *t);
	void (*send_get)(struct bn_tcp *t, const char *key, unsigned int bytes);
	void (*send_puts)(struct bn_tcp *t, uint64_t from, unsigned int nr);
	unsigned int puts_max;
	unsigned int ahead_max;
	int (*wait)(struct bn_tcp *t);
};

extern const struct bn_store bn_redis;
extern const struct bn_store bn_etcd;

/**
 * bn_tcp_record() - A record as the stores over TCP hold it.
 * @nr: its number.
 * @key: BN_TEXT_BYTES, filled.
 * @value: BN_TCP_VALUE_BYTES, filled.
 *
 * Return: length of the key.
 */
unsigned int bn_tcp_record(uint64_t nr, char *key, char *value);

/** bn_tcp_open() - Connect, or end. @t: connection, zero. @host: name. @port: number as text. */
void bn_tcp_open(struct bn_tcp *t, const char *host, const char *port);

/** bn_tcp_close() - Disconnect. @t: connection. */
void bn_tcp_close(struct bn_tcp *t);

/** bn_tcp_send() - Send all. @t: connection. @data: bytes. @bytes: how many. */
void bn_tcp_send(struct bn_tcp *t, const void *data, size_t bytes);

/**
 * bn_tcp_need() - Wait until so many bytes are there.
 * @t: connection.
 * @bytes: how many, at most BN_TCP_BUF_BYTES.
 *
 * Return: the first of them; valid until the next call.
 */
const uint8_t *bn_tcp_need(struct bn_tcp *t, size_t bytes);

/** bn_tcp_used() - The first bytes are done with. @t: connection. @bytes: how many. */
void bn_tcp_used(struct bn_tcp *t, size_t bytes);

/** bn_tcp_fail() - The server said something else than it should. @t: whose. @what: text. */
void bn_tcp_fail(const struct bn_tcp *t, const char *what) __attribute__((noreturn));

#endif /* BN_TCP_H */
