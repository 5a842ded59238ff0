// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * READ what krcore-example-read serves, as the first and only thing of a process: one call finds
 * the region, connects and READs. Needs the kernel module, and of krcore libkrcore-queue alone.
 */
#include <stdio.h>
#include <string.h>

#include <krcore/queue.h>

#include "example.h"

#define EX_BYTES 4096

static const char ex_text[] =
	"usage: krcore-example-start ADDRESS SERVICE\n"
	"\n"
	"READ what 'krcore-example-read serve SERVICE TEXT' shows at ADDRESS.\n"
	"Needs the kernel module (/dev/krcore).\n";

static _Alignas(EX_BYTES) char ex_memory[EX_BYTES];

/* The completion of the only request. */
static int ex_done(struct krcore_node *node)
{
	struct krcore_wc wc;
	int nr;

	while (!(nr = krcore_poll(node, &wc, 1)))
		if (krcore_wait(node, 10000))
			return ex_fail("waiting");
	if (nr < 0)
		return ex_fail("the completion");
	if (!wc.status)
		return 0;
	fprintf(stderr, "READ: %s\n", strerror(-wc.status));
	return 1;
}

int main(int argc, char **argv)
{
	struct krcore_wr wr = {
		.opcode = KRCORE_OP_READ,
		.local_addr = (uintptr_t)ex_memory,
		.length = sizeof(ex_memory),
	};
	struct krcore_start_options opts = {
		.size = sizeof(opts),
		.memory = ex_memory,
		.length = sizeof(ex_memory),
		.access = KRCORE_ACCESS_LOCAL_WRITE,
		.wrs = &wr,
		.nr = 1,
	};
	struct krcore_started started = { .size = sizeof(started) };
	int status;

	ex_usage(argc, argv, 2, ex_text);
	opts.record = (uint32_t)ex_number(argv[2], KRCORE_SERVICE_USER_MIN, 65535, "SERVICE");
	if (krcore_key_from_address(argv[1], KRCORE_SERVICE_NODE, &opts.peer))
		return ex_fail(argv[1]);
	if (krcore_start(&opts, &started))
		return ex_fail("starting");
	status = ex_done(started.node);
	if (!status)
		printf("%.*s\n", EX_BYTES, ex_memory);
	krcore_node_close(started.node);
	return status;
}
