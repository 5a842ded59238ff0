// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Connect to a node and READ a text out of the memory of a program there. That
 * program registers the text and publishes where it is; afterwards no process on
 * its node runs for the READs of others.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "example.h"

#define EX_BYTES 4096

static const char ex_text[] =
	"usage: krcore-example-read serve SERVICE TEXT   show TEXT until interrupted\n"
	"       krcore-example-read PEER SERVICE         READ what PEER shows\n"
	"\n"
	"SERVICE is a number from 256 to 65535, PEER an address or host name.\n"
	"Needs the kernel module (/dev/krcore) and a MetaServer (/etc/krcore.conf).\n";

static double ex_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int ex_show(struct krcore_node *node, char *memory, uint16_t service, const char *text)
{
	struct krcore_mr mr;
	int status;

	snprintf(memory, EX_BYTES, "%s", text);
	if (krcore_mr_reg(node, memory, EX_BYTES, KRCORE_ACCESS_REMOTE_READ, &mr))
		return ex_fail("registering memory");
	status = ex_serve(node, &mr, service, NULL, NULL);
	if (krcore_mr_dereg(node, &mr))
		return ex_fail("taking memory back");
	return status;
}

/* Connect, one READ, wait for its completion. */
static int ex_read(struct krcore_node *node, const struct krcore_mr *mr, char *memory,
		   const struct krcore_key *peer, const struct krcore_region_ref *ref)
{
	struct krcore_connect_info info = { .size = sizeof(info) };
	double start, connected, done;
	struct krcore_wc wc;
	uint32_t queue;
	int nr;

	start = ex_us();
	if (krcore_queue_open(node, 1, peer, 0, 0, &queue, &info))
		return ex_fail("connecting");
	connected = ex_us();
	if (krcore_post_read(node, queue, mr, memory, EX_BYTES, ref, 0, 1))
		return ex_fail("posting");
	while (!(nr = krcore_poll(node, &wc, 1)))
		if (krcore_wait(node, 10000))
			return ex_fail("waiting");
	if (nr < 0)
		return ex_fail("the completion");
	done = ex_us();
	if (wc.status) {
		fprintf(stderr, "READ: %s\n", strerror(-wc.status));
		return 1;
	}
	printf("%.*s\n", EX_BYTES, memory);
	fprintf(stderr, "connected in %.1f us (%u READs of a MetaServer), READ in %.1f us\n",
		connected - start, info.reads, done - connected);
	return krcore_queue_close(node, queue) ? ex_fail("closing") : 0;
}

static int ex_fetch(struct krcore_node *node, char *memory, const char *name, uint16_t service)
{
	struct krcore_region_ref ref;
	struct krcore_key peer;
	struct krcore_ctx *ctx;
	struct krcore_mr mr;
	int err;

	if (krcore_open(NULL, &ctx))
		return ex_fail("attaching to a MetaServer");
	err = ex_find(ctx, name, service, &peer, &ref);
	krcore_close(ctx);
	if (err)
		return ex_fail(name);
	if (krcore_mr_reg(node, memory, EX_BYTES, KRCORE_ACCESS_LOCAL_WRITE, &mr))
		return ex_fail("registering memory");
	err = ex_read(node, &mr, memory, &peer, &ref);
	krcore_mr_dereg(node, &mr); /* nothing uses the memory behind that */
	return err;
}

int main(int argc, char **argv)
{
	struct krcore_node *node;
	uint16_t service;
	char *memory;
	int status;

	ex_usage(argc, argv, 2, ex_text);
	service = (uint16_t)ex_number(argv[2], KRCORE_SERVICE_USER_MIN, 65535, "SERVICE");
	memory = aligned_alloc(EX_BYTES, EX_BYTES);
	if (!memory)
		return 1;
	memset(memory, 0, EX_BYTES);
	if (krcore_node_open(NULL, &node)) {
		free(memory);
		return ex_fail("opening the node");
	}
	if (argc == 4 && !strcmp(argv[1], "serve"))
		status = ex_show(node, memory, service, argv[3]);
	else
		status = ex_fetch(node, memory, argv[1], service);
	krcore_node_close(node);
	free(memory);
	return status;
}
