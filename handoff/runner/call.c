// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * krcore-handoff chain and spread: what calls functions and tells each where its data are.
 *
 * An invocation carries a reference and no data. The function that made them keeps them until
 * all that were told of them have them, or until its lease ends; a function that ends before
 * is started again, and finds them still there.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "handoff/lib/function.h"
#include "handoff/runner/link.h"
#include "handoff/runner/runner.h"

#define KH_US 1000.0

/**
 * struct kh_call - One caller.
 * @args: command line.
 * @links: functions, one for each of the nodes.
 * @nr: how many.
 * @bytes: of the data.
 * @seed: of the next data.
 */
struct kh_call {
	const struct kh_args *args;
	struct kh_link *links;
	unsigned int nr;
	uint64_t bytes;
	uint64_t seed;
};

static int kh_trouble(const struct kh_link *link)
{
	fprintf(stderr, "krcore-handoff: %s: %s\n", link->node, link->why);
	return -EIO;
}

static void kh_print_took(const struct kh_call *call, const struct kh_link *to,
			  const struct kh_link *from, const struct kh_reply *took)
{
	bool cold = took->start_ns != 0; /* its first command */
	double start = (double)took->start_ns / KH_US, connect = (double)took->connect_ns / KH_US,
	       read = (double)took->read_ns / KH_US;

	if (call->args->json)
		printf("{\"type\":\"hop\",\"node\":\"%s\",\"from\":\"%s\",\"bytes\":%" PRIu64
		       ",\"cold\":%s,\"start_us\":%.3f,\"connect_us\":%.3f,\"read_us\":%.3f,"
		       "\"transfer_us\":%.3f}\n",
		       to->node, from->node, took->bytes, cold ? "true" : "false", start, connect,
		       read, connect + read);
	else
		printf("%s took %" PRIu64 " bytes from %s in %.3f ms (connect %.3f, read %.3f; "
		       "start of the process %.3f)\n",
		       to->node, took->bytes, from->node, (connect + read) / KH_US, connect / KH_US,
		       read / KH_US, start / KH_US);
}

/* What the whole took, as the caller sees it. */
static void kh_print_whole(const struct kh_call *call, const char *what, uint64_t ns)
{
	if (call->args->json)
		printf("{\"type\":\"%s\",\"functions\":%u,\"bytes\":%" PRIu64 ",\"us\":%.3f}\n",
		       what, call->nr, call->bytes, (double)ns / KH_US);
	else
		printf("%s of %u functions: %.3f ms\n", what, call->nr, (double)ns / KH_US / KH_US);
}

/* The answer to a command that fetches data; where the function is lost, another one's. */
static int kh_took(struct kh_call *call, struct kh_link *link, const struct kh_command *command,
		   struct kh_reply *ret_took)
{
	uint32_t left;

	for (left = call->args->retries;; left--) {
		if (!kh_link_hear(link, KH_TOOK, ret_took))
			return 0;
		kh_trouble(link);
		if (!left)
			return -EIO;
		fprintf(stderr, "krcore-handoff: %s: starting it again\n", link->node);
		kh_link_close(link);
		if (kh_link_tell(link, command))
			return kh_trouble(link);
	}
}

static int kh_same(const struct kh_link *link, const struct kh_reply *offer,
		   const struct kh_reply *took)
{
	if (offer->bytes == took->bytes && offer->sum == took->sum)
		return 0;
	fprintf(stderr,
		"krcore-handoff: %s: the data differ: %" PRIu64 " bytes of sum %" PRIx64
		", not %" PRIu64 " of %" PRIx64 "\n",
		link->node, took->bytes, took->sum, offer->bytes, offer->sum);
	return -EIO;
}

/* What a function offers: as many bytes as were asked of the first one, or they are others. */
static int kh_hear_offer(const struct kh_call *call, struct kh_link *link,
			 struct kh_reply *ret_offer)
{
	if (kh_link_hear(link, KH_OFFER, ret_offer))
		return kh_trouble(link);
	if (ret_offer->bytes == call->bytes)
		return 0;
	fprintf(stderr, "krcore-handoff: %s: it offers %" PRIu64 " bytes, not %" PRIu64 "\n",
		link->node, ret_offer->bytes, call->bytes);
	return -EIO;
}

/* Have the first function make data. @ret_command: for those that take them. */
static int kh_begin(struct kh_call *call, struct kh_command *ret_command,
		    struct kh_reply *ret_offer)
{
	struct kh_command make = { .verb = KH_MAKE, .bytes = call->bytes, .seed = call->seed++ };

	if (kh_link_tell(&call->links[0], &make))
		return kh_trouble(&call->links[0]);
	if (kh_hear_offer(call, &call->links[0], ret_offer))
		return -EIO;
	*ret_command = (struct kh_command){ .verb = KH_TAKE };
	memcpy(ret_command->word, ret_offer->text, sizeof(ret_command->word));
	return 0;
}

/* Wait until a function that was told of an offer has all of its data; say how long it took. */
static int kh_fetched(struct kh_call *call, struct kh_link *to, const struct kh_link *from,
		      const struct kh_command *command, const struct kh_reply *offer)
{
	struct kh_reply took;

	if (kh_took(call, to, command, &took) || kh_same(to, offer, &took))
		return -EIO;
	kh_print_took(call, to, from, &took);
	return 0;
}

static int kh_free(struct kh_link *link)
{
	struct kh_command command = { .verb = KH_FREE };

	return kh_link_tell(link, &command) ? kh_trouble(link) : 0;
}

static int kh_await_freed(struct kh_link *link)
{
	struct kh_reply reply;

	return kh_link_hear(link, KH_FREED, &reply) ? kh_trouble(link) : 0;
}

/* One function after the other: each takes what the one before offers, and offers its own. */
static int kh_chain_once(struct kh_call *call)
{
	struct kh_command command;
	struct kh_reply offer;
	uint64_t began = kh_now();
	unsigned int i;

	if (kh_begin(call, &command, &offer))
		return -EIO;
	for (i = 1; i < call->nr; i++) {
		struct kh_link *link = &call->links[i];

		command.verb = i == call->nr - 1 ? KH_TAKE : KH_PASS;
		memcpy(command.word, offer.text, sizeof(command.word));
		if (kh_link_tell(link, &command))
			return kh_trouble(link);
		if (kh_fetched(call, link, link - 1, &command, &offer) || kh_free(link - 1))
			return -EIO;
		if (command.verb == KH_PASS && kh_hear_offer(call, link, &offer))
			return -EIO;
	}
	kh_print_whole(call, "chain", kh_now() - began);
	for (i = 0; i < call->nr - 1; i++)
		if (kh_await_freed(&call->links[i]))
			return -EIO;
	return 0;
}

/* One function, and all others take what it offers, at once. */
static int kh_spread_once(struct kh_call *call)
{
	struct kh_command command;
	struct kh_reply offer;
	uint64_t began = kh_now();
	unsigned int i;

	if (kh_begin(call, &command, &offer))
		return -EIO;
	for (i = 1; i < call->nr; i++)
		if (kh_link_tell(&call->links[i], &command))
			return kh_trouble(&call->links[i]);
	for (i = 1; i < call->nr; i++)
		if (kh_fetched(call, &call->links[i], &call->links[0], &command, &offer))
			return -EIO;
	kh_print_whole(call, "spread", kh_now() - began);
	return kh_free(&call->links[0]) ? -EIO : kh_await_freed(&call->links[0]);
}

static void kh_links(struct kh_call *call, struct kh_link *links)
{
	const struct kh_args *args = call->args;
	unsigned int i;

	for (i = 0; i < call->nr; i++) {
		links[i].node = args->argv[i + 1];
		links[i].function = args->function;
		links[i].timeout_ms = args->timeout_ms;
		links[i].fd = -1;
	}
	call->links = links;
}

static void kh_close_all(struct kh_call *call)
{
	unsigned int i;

	for (i = 0; i < call->nr; i++)
		kh_link_close(&call->links[i]);
}

/* All that one caller does. Return: exit status. */
static int kh_caller(struct kh_call *call, int (*once)(struct kh_call *call))
{
	struct kh_link *links = calloc(call->nr, sizeof(*links));
	uint32_t turn;
	int err = 0;

	if (!links)
		return kh_fail("memory");
	kh_links(call, links);
	for (turn = 0; !err && turn < call->args->times; turn++) {
		err = once(call);
		if (!call->args->warm)
			kh_close_all(call);
	}
	kh_close_all(call);
	free(links);
	if (fflush(stdout) || ferror(stdout))
		return kh_fail("standard output");
	return err ? KH_FAILED : 0;
}

/* So many callers at once, each a process. Return: exit status. */
static int kh_callers(struct kh_call *call, int (*once)(struct kh_call *call))
{
	uint32_t i;
	int status = 0, one;

	for (i = 0; i < call->args->parallel; i++) {
		pid_t pid = fork();

		if (pid < 0) {
			status = kh_fail("fork");
			break;
		}
		if (!pid) {
			call->seed += (uint64_t)i << 32;
			exit(kh_caller(call, once));
		}
	}
	while (wait(&one) > 0)
		if (!WIFEXITED(one) || WEXITSTATUS(one))
			status = KH_FAILED;
	return status;
}

/* Names that cannot be nodes. Return: 0, or an exit status after saying so. */
static int kh_check_nodes(const struct kh_args *args)
{
	char host[64], port[8];
	int i;

	for (i = 1; i < args->argc; i++)
		if (kh_address(args->argv[i], host, port) || strpbrk(args->argv[i], "\"\\")) {
			fprintf(stderr, "krcore-handoff: '%s' is no NODE[:PORT]\n", args->argv[i]);
			return KH_USAGE;
		}
	return 0;
}

static int kh_call(struct kh_args *args, int (*once)(struct kh_call *call))
{
	struct kh_call call = { .args = args, .seed = (uint64_t)getpid() << 16 };
	char *end;

	call.nr = (unsigned int)args->argc - 1;
	errno = 0;
	call.bytes = strtoull(args->argv[0], &end, 10);
	if (errno || *end || *args->argv[0] == '-' || !call.bytes ||
	    call.bytes > KH_DATA_BYTES_MAX) {
		fprintf(stderr, "krcore-handoff: '%s' is not a number of bytes from 1 to %u\n",
			args->argv[0], KH_DATA_BYTES_MAX);
		return KH_USAGE;
	}
	if (kh_check_nodes(args))
		return KH_USAGE;
	setvbuf(stdout, NULL, _IOLBF, 0);
	return args->parallel == 1 ? kh_caller(&call, once) : kh_callers(&call, once);
}

int kh_chain(struct kh_args *args)
{
	return kh_call(args, kh_chain_once);
}

int kh_spread(struct kh_args *args)
{
	return kh_call(args, kh_spread_once);
}
