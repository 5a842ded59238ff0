// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A function of ./run bench handoff that gives data away by a Redis server, which runs on the
 * maker's node: one crossing of the network, as with all others. In Redis' protocol, RESP 2.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/handoff_peer.h"
#include "bench/keys.h"
#include "handoff/lib/function.h"

#define BN_REDIS_PORT 6390

static struct bn_store_room bn_out, bn_in;
static char bn_to[KH_WORD_BYTES];
static int bn_own = -1, bn_fd = -1;

/* A line of the server, without its end. */
static void bn_line(int fd, char *ret_line, size_t max)
{
	size_t len = 0;

	do
		bn_peer_get(fd, &ret_line[len], 1);
	while (ret_line[len++] != '\n' && len < max);
	if (len < 2 || len == max)
		bn_die("not a reply of Redis");
	ret_line[len - 2] = '\0';
}

static uint8_t *bn_out_room(void *state, size_t bytes)
{
	(void)state;
	bn_room(&bn_out, bytes);
	return bn_out.at;
}

/* SET, under a key of our own. */
static int bn_offer(void *state, char *ret_word)
{
	const char *address = getenv(KH_ENV_ADDRESS);
	char where[80], key[32], head[128], line[64];
	int len;

	(void)state;
	snprintf(where, sizeof(where), "%s:%d", address ? address : "", BN_REDIS_PORT);
	if (bn_own < 0)
		bn_own = bn_peer_connect(where);
	/* processes of a namespace all have the same number */
	len = snprintf(key, sizeof(key), "%llx", (unsigned long long)kh_now());
	len = snprintf(head, sizeof(head), "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%zu\r\n", len, key,
		       bn_out.bytes);
	if (bn_peer_put(bn_own, head, (size_t)len) ||
	    bn_peer_put(bn_own, bn_out.at, bn_out.bytes) || bn_peer_put(bn_own, "\r\n", 2))
		bn_die("SET");
	bn_line(bn_own, line, sizeof(line));
	if (strcmp(line, "+OK") != 0)
		bn_die("SET");
	snprintf(ret_word, KH_WORD_BYTES, "%s/%s", where, key);
	return 0;
}

static int bn_take(void *state, const char *word, struct kh_taken *ret_taken)
{
	uint64_t began = kh_now(), connected;
	char where[KH_WORD_BYTES], head[KH_WORD_BYTES + 64], line[64], *key;
	size_t bytes;
	int len;

	(void)state;
	snprintf(where, sizeof(where), "%s", word);
	key = strchr(where, '/');
	if (!key)
		bn_die("no reference");
	*key++ = '\0';
	if (strcmp(bn_to, where) != 0) {
		if (bn_fd >= 0)
			close(bn_fd);
		bn_fd = bn_peer_connect(where);
		snprintf(bn_to, sizeof(bn_to), "%s", where);
	}
	connected = kh_now();
	len = snprintf(head, sizeof(head), "*2\r\n$3\r\nGET\r\n$%zu\r\n%s\r\n", strlen(key), key);
	if (bn_peer_put(bn_fd, head, (size_t)len))
		bn_die("GET");
	bn_line(bn_fd, line, sizeof(line));
	if (*line != '$' || line[1] == '-')
		bn_die("GET");
	bytes = strtoul(line + 1, NULL, 10);
	bn_room(&bn_in, bytes + 2);
	bn_peer_get(bn_fd, bn_in.at, bytes + 2);
	*ret_taken = (struct kh_taken){ bn_in.at, bytes, connected - began, kh_now() - connected };
	return 0;
}

int main(void)
{
	static const struct kh_ops ops = { bn_out_room, bn_offer, bn_take, bn_peer_release,
					   bn_peer_why };

	return kh_function_run(&ops, NULL);
}
