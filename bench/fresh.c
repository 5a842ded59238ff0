// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The shortest process that READs from a peer, for bench_connect spawn:
 *
 *	bench_fresh PEER,ADDR,LENGTH,TOKEN	an 8-byte READ, with a look-up of the peer
 *	bench_fresh				nothing: what a process with this linking costs
 *
 * It says a byte when it has READ. Linked with libkrcore-queue, dynamically and statically.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <krcore/queue.h>

#include "bench/meter.h"

#define BN_FRESH_BYTES 8

static _Alignas(64) char bn_fresh_memory[BN_FRESH_BYTES];

/* PEER,ADDR,LENGTH,TOKEN, without a copy. Return: 0 or -EINVAL. */
static int bn_fresh_target(char *text, struct krcore_key *peer, struct krcore_region_ref *ref)
{
	uint64_t *const numbers[] = { &ref->addr, &ref->length, &ref->token };
	char *at = strchr(text, ',');
	size_t i;

	if (!at)
		return -EINVAL;
	*at = '\0';
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (i && *at != ',')
			return -EINVAL;
		*numbers[i] = strtoull(at + 1, &at, 0);
	}
	return *at ? -EINVAL : krcore_key_from_address(text, KRCORE_SERVICE_NODE, peer);
}

/* Return: 0 or negative errno. */
static int bn_fresh_read(char *target)
{
	struct krcore_wr wr = {
		.opcode = KRCORE_OP_READ,
		.local_addr = (uintptr_t)bn_fresh_memory,
		.length = sizeof(bn_fresh_memory),
	};
	struct krcore_start_options opts = {
		.size = sizeof(opts),
		.memory = bn_fresh_memory,
		.length = sizeof(bn_fresh_memory),
		.access = KRCORE_ACCESS_LOCAL_WRITE,
		.wrs = &wr,
		.nr = 1,
		.depth = 1,
		.flags = KRCORE_CONNECT_FRESH,
	};
	struct krcore_started started = { .size = sizeof(started) };
	struct krcore_region_ref ref = { .addr = 0 };
	struct krcore_wc wc;
	int err = bn_fresh_target(target, &opts.peer, &ref);

	if (err)
		return err;
	wr.remote_addr = ref.addr;
	wr.remote_token = ref.token;
	err = krcore_start(&opts, &started);
	if (err)
		return err;
	while (!(err = krcore_poll(started.node, &wc, 1)))
		if (krcore_wait(started.node, 10000))
			return -ETIMEDOUT;
	return err < 0 ? err : wc.status;
}

int main(int argc, char **argv)
{
	int err = argc > 1 ? bn_fresh_read(argv[1]) : 0;

	BN_MARK(END);
	if (err) {
		const char *text = krcore_error_text();

		return write(STDERR_FILENO, text, strlen(text)) < 0 ? 2 : 1;
	}
	return write(STDOUT_FILENO, "", 1) == 1 ? 0 : 1;
}
