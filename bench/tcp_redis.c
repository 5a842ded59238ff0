// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * GET and SET of Redis, in its own protocol (RESP 2). One thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/keys.h"
#include "bench/tcp.h"

static void bn_redis_open(struct bn_tcp *t)
{
	(void)t; /* there is nothing to say first */
}

static void bn_redis_get(struct bn_tcp *t, const char *key, unsigned int bytes)
{
	char text[128];
	int len = snprintf(text, sizeof(text), "*2\r\n$3\r\nGET\r\n$%u\r\n%.*s\r\n", bytes,
			   (int)bytes, key);

	bn_tcp_send(t, text, (size_t)len);
}

/* One record a request. */
static void bn_redis_puts(struct bn_tcp *t, uint64_t from, unsigned int nr)
{
	char text[256], key[BN_TEXT_BYTES], value[BN_TCP_VALUE_BYTES];
	unsigned int bytes = bn_tcp_record(from, key, value);
	int len;

	(void)nr;
	len = snprintf(text, sizeof(text), "*3\r\n$3\r\nSET\r\n$%u\r\n%.*s\r\n$%d\r\n", bytes,
		       (int)bytes, key, BN_TCP_VALUE_BYTES);

	memcpy(text + len, value, BN_TCP_VALUE_BYTES);
	memcpy(text + len + BN_TCP_VALUE_BYTES, "\r\n", 2);
	bn_tcp_send(t, text, (size_t)len + BN_TCP_VALUE_BYTES + 2);
}

/* "$56\r\n...\r\n" is a value, "$-1\r\n" none, "+OK\r\n" the answer to SET. */
static int bn_redis_wait(struct bn_tcp *t)
{
	const uint8_t *text;
	size_t len = 3;

	for (;;) {
		text = bn_tcp_need(t, len);
		if (text[len - 1] == '\n')
			break;
		len++;
	}
	if (*text == '+' || (*text == '$' && text[1] == '-')) {
		bn_tcp_used(t, len);
		return 0;
	}
	if (*text != '$' || strtol((const char *)text + 1, NULL, 10) != BN_TCP_VALUE_BYTES)
		bn_tcp_fail(t, "not a reply of Redis");
	bn_tcp_need(t, len + BN_TCP_VALUE_BYTES + 2);
	bn_tcp_used(t, len + BN_TCP_VALUE_BYTES + 2);
	return 1;
}

const struct bn_store bn_redis = { "redis", bn_redis_open, bn_redis_get, bn_redis_puts, 1,
				   64,	    bn_redis_wait };
