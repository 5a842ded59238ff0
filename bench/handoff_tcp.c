// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A function of ./run bench handoff that gives data away over TCP: the taker connects to the
 * maker, says one byte, and gets length and data.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/handoff_peer.h"
#include "handoff/lib/function.h"

static struct bn_store_room bn_out, bn_in;
static char bn_to[KH_WORD_BYTES];
static int bn_fd = -1;

static void bn_give(int fd)
{
	uint64_t bytes;
	char c;

	while (read(fd, &c, 1) == 1) {
		bytes = bn_out.bytes;
		if (bn_peer_put(fd, &bytes, sizeof(bytes)) || bn_peer_put(fd, bn_out.at, bytes))
			break;
	}
	close(fd);
}

static uint8_t *bn_out_room(void *state, size_t bytes)
{
	(void)state;
	bn_room(&bn_out, bytes);
	return bn_out.at;
}

static int bn_offer(void *state, char *ret_word)
{
	(void)state;
	bn_peer_serve(bn_give, ret_word);
	return 0;
}

static int bn_take(void *state, const char *word, struct kh_taken *ret_taken)
{
	uint64_t began = kh_now(), connected, bytes;

	(void)state;
	if (strcmp(bn_to, word) != 0) {
		if (bn_fd >= 0)
			close(bn_fd);
		bn_fd = bn_peer_connect(word);
		snprintf(bn_to, sizeof(bn_to), "%s", word);
	}
	connected = kh_now();
	bn_peer_put(bn_fd, "g", 1);
	bn_peer_get(bn_fd, &bytes, sizeof(bytes));
	bn_room(&bn_in, bytes);
	bn_peer_get(bn_fd, bn_in.at, bytes);
	*ret_taken = (struct kh_taken){ bn_in.at, bytes, connected - began, kh_now() - connected };
	return 0;
}

int main(void)
{
	static const struct kh_ops ops = { bn_out_room, bn_offer, bn_take, bn_peer_release,
					   bn_peer_why };

	return kh_function_run(&ops, NULL);
}
