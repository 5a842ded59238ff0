// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What the examples of queues share: see example.h.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "example.h"

static const char *ex_name = "";

void ex_usage(int argc, char **argv, int least, const char *text)
{
	int i;

	ex_name = argv[0];
	for (i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") && strcmp(argv[i], "-h"))
			continue;
		fputs(text, stdout);
		exit(0);
	}
	if (argc - 1 >= least)
		return;
	fputs(text, stderr);
	exit(2);
}

int ex_fail(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", ex_name, what, krcore_error_text());
	return 1;
}

uint64_t ex_number(const char *text, uint64_t min, uint64_t max, const char *name)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 0);
	if (!errno && end != text && !*end && *text != '-' && value >= min && value <= max)
		return value;
	fprintf(stderr, "%s: %s: '%s' is not a number from %llu to %llu\n", ex_name, name, text,
		(unsigned long long)min, (unsigned long long)max);
	exit(2);
}

static void ex_until_signal(void (*each)(void *arg), void *arg)
{
	const struct timespec tick = { .tv_nsec = 100000000 };
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	while (sigtimedwait(&signals, NULL, &tick) < 0)
		if (each)
			each(arg);
}

int ex_serve(struct krcore_node *node, const struct krcore_mr *mr, uint16_t service,
	     void (*each)(void *arg), void *arg)
{
	struct krcore_key key = { .service = service };
	struct krcore_port_info port = { .size = sizeof(port) };
	struct krcore_region_ref ref;
	struct krcore_value value;
	struct krcore_ctx *ctx;
	int servers;

	if (krcore_node_port(node, 1, &port))
		return ex_fail("the node's port");
	if (krcore_open(NULL, &ctx))
		return ex_fail("attaching to a MetaServer");
	memcpy(key.gid, port.gid, sizeof(key.gid));
	krcore_region_ref_of(mr, &ref);
	krcore_region_encode(&ref, &value);
	servers = krcore_publish(ctx, &key, &value);
	if (servers < 0) {
		krcore_close(ctx);
		return ex_fail("publishing");
	}
	printf("published to %d servers; interrupt to end\n", servers);
	fflush(stdout);
	ex_until_signal(each, arg);
	krcore_withdraw(ctx, &key);
	krcore_close(ctx);
	return 0;
}

int ex_find(struct krcore_ctx *ctx, const char *peer, uint16_t service, struct krcore_key *ret_node,
	    struct krcore_region_ref *ret_ref)
{
	struct krcore_value value;
	struct krcore_key key;
	int err;

	err = krcore_key_from_text(peer, service, &key);
	if (err)
		return err;
	err = krcore_lookup(ctx, &key, &value, NULL);
	if (err)
		return err;
	err = krcore_region_decode(&value, ret_ref);
	if (err)
		return err;
	*ret_node = key;
	ret_node->service = KRCORE_SERVICE_NODE;
	return 0;
}
