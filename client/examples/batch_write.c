// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * WRITE many small messages into a peer's memory, up to twelve in flight; each system
 * call posts as many as the queue has room for. Then READ all of it back and compare.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "example.h"

#define EX_OUTSTANDING 12
#define EX_MESSAGE 64
#define EX_MESSAGES_MAX 16384
#define EX_BYTES ((size_t)EX_MESSAGE * EX_MESSAGES_MAX)

static const char ex_text[] =
	"usage: krcore-example-batch-write serve SERVICE        lend 1 MiB until interrupted\n"
	"       krcore-example-batch-write PEER SERVICE COUNT   WRITE COUNT messages there\n"
	"\n"
	"SERVICE is a number from 256 to 65535, PEER an address or host name, COUNT 1 to\n"
	"16384. Needs the kernel module (/dev/krcore) and a MetaServer (/etc/krcore.conf).\n";

/** struct ex_job - What is being written. @node, @queue, @mr: here. @ref: there. */
struct ex_job {
	struct krcore_node *node;
	uint32_t queue;
	struct krcore_mr mr;
	struct krcore_region_ref ref;
	char *memory;
};

static int ex_lend(struct ex_job *job, uint16_t service)
{
	if (krcore_mr_reg(job->node, job->memory, EX_BYTES,
			  KRCORE_ACCESS_LOCAL_WRITE | KRCORE_ACCESS_REMOTE_READ |
				  KRCORE_ACCESS_REMOTE_WRITE,
			  &job->mr))
		return ex_fail("registering memory");
	return ex_serve(job->node, &job->mr, service, NULL, NULL);
}

/* Take what has completed; waits for at least one. */
static int ex_completions(struct ex_job *job)
{
	struct krcore_wc wcs[EX_OUTSTANDING];
	int nr, i;

	while (!(nr = krcore_poll(job->node, wcs, EX_OUTSTANDING)))
		if (krcore_wait(job->node, 10000))
			return -ex_fail("waiting");
	if (nr < 0)
		return -ex_fail("the completions");
	for (i = 0; i < nr; i++) {
		if (!wcs[i].status)
			continue;
		fprintf(stderr, "message %llu: %s\n", (unsigned long long)wcs[i].user_data,
			strerror(-wcs[i].status));
		return -1;
	}
	return nr;
}

static int ex_write_all(struct ex_job *job, unsigned int count, unsigned int *ret_calls)
{
	struct krcore_wr wrs[EX_OUTSTANDING];
	unsigned int posted = 0, done = 0, nr, i;
	int got;

	while (done < count) {
		nr = EX_OUTSTANDING - (posted - done);
		if (nr > count - posted)
			nr = count - posted;
		for (i = 0; i < nr; i++) {
			krcore_wr_write(&wrs[i], &job->mr, job->memory + (posted + i) * EX_MESSAGE,
					EX_MESSAGE, &job->ref, (posted + i) * EX_MESSAGE,
					posted + i);
			/* only we write there, so a WRITE may be repeated after an error */
			wrs[i].flags = KRCORE_WR_IDEMPOTENT;
		}
		if (nr) {
			got = krcore_post(job->node, job->queue, wrs, nr, NULL);
			if (got < 0)
				return ex_fail("posting");
			posted += (unsigned int)got;
			++*ret_calls;
		}
		got = ex_completions(job);
		if (got < 0)
			return 1;
		done += (unsigned int)got;
	}
	return 0;
}

static int ex_compare(struct ex_job *job, unsigned int count)
{
	size_t bytes = (size_t)count * EX_MESSAGE, i;
	static char wrote[EX_BYTES];

	memcpy(wrote, job->memory, bytes);
	memset(job->memory, 0, bytes);
	if (krcore_post_read(job->node, job->queue, &job->mr, job->memory, (uint32_t)bytes,
			     &job->ref, 0, count))
		return ex_fail("posting");
	if (ex_completions(job) != 1)
		return 1;
	for (i = 0; i < bytes && wrote[i] == job->memory[i]; i++)
		;
	if (i == bytes)
		return 0;
	fprintf(stderr, "byte %zu came back different\n", i);
	return 1;
}

static int ex_write(struct ex_job *job, const char *name, uint16_t service, unsigned int count)
{
	unsigned int calls = 0, i;
	struct krcore_key peer;
	struct krcore_ctx *ctx;
	int err;

	if (krcore_open(NULL, &ctx))
		return ex_fail("attaching to a MetaServer");
	err = ex_find(ctx, name, service, &peer, &job->ref);
	krcore_close(ctx);
	if (err)
		return ex_fail(name);
	for (i = 0; i < count; i++)
		snprintf(job->memory + (size_t)i * EX_MESSAGE, EX_MESSAGE, "message %u of %u", i,
			 count);
	if (krcore_mr_reg(job->node, job->memory, EX_BYTES, KRCORE_ACCESS_LOCAL_WRITE, &job->mr))
		return ex_fail("registering memory");
	if (krcore_queue_open(job->node, EX_OUTSTANDING, &peer, 0, 0, &job->queue, NULL))
		return ex_fail("connecting");
	if (ex_write_all(job, count, &calls) || ex_compare(job, count))
		return 1;
	printf("%u messages written with %u system calls, read back and compared\n", count, calls);
	return 0;
}

int main(int argc, char **argv)
{
	struct ex_job job = { 0 };
	uint16_t service;
	int status;

	ex_usage(argc, argv, 2, ex_text);
	service = (uint16_t)ex_number(argv[2], KRCORE_SERVICE_USER_MIN, 65535, "SERVICE");
	ex_usage(argc, argv, strcmp(argv[1], "serve") ? 3 : 2, ex_text);
	job.memory = aligned_alloc(4096, EX_BYTES);
	if (!job.memory)
		return 1;
	memset(job.memory, 0, EX_BYTES);
	if (krcore_node_open(NULL, &job.node)) {
		free(job.memory);
		return ex_fail("opening the node");
	}
	if (!strcmp(argv[1], "serve"))
		status = ex_lend(&job, service);
	else
		status = ex_write(&job, argv[1], service,
				  (unsigned int)ex_number(argv[3], 1, EX_MESSAGES_MAX, "COUNT"));
	krcore_mr_dereg(job.node, &job.mr); /* nothing uses the memory behind that */
	krcore_node_close(job.node);
	free(job.memory);
	return status;
}
