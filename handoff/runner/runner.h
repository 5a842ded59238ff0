/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The parts of krcore-handoff. One thread.
 *
 *	main.c	the command line
 *	serve.c	serve: connections, each one function; how many each caller may have
 *	box.c	what a function runs in: process, cgroup, namespaces, rights
 *	call.c	chain, spread: what to tell functions, and what they answer
 *	link.c	a caller's connection to one function (link.h)
 */
#ifndef KH_RUNNER_H
#define KH_RUNNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/command.h"
#include "handoff/lib/words.h"

/* exit status */
#define KH_FAILED 1
#define KH_USAGE KRU_USAGE

#define KH_PORT "7234"
#define KH_FUNCTIONS_MAX 1024 /* at once */
#define KH_PARALLEL_MAX 64
#define KH_NODES_MAX 256
#define KH_PATH_BYTES 1024
#define KH_MEMORY_MORE_MIB 64 /* of a cgroup, above what a function may lock */
#define KH_BY_OTHERS UINT32_MAX /* an option that follows from others */

/**
 * struct kh_args - The command line.
 * @function: what callers start.
 * @times: how often.
 * @parallel: how many callers at once.
 * @retries: how often a function that ended or failed is started again, each.
 * @timeout_ms: how long a caller waits for an answer.
 * @warm: functions stay from one time to the next.
 * @json: one JSON object a line.
 * @directory: serve: where functions are.
 * @user: serve: whose they are.
 * @gid: serve: GID of the RDMA port for functions, as text, or NULL.
 * @lease_ms: serve: how long an offer stands.
 * @memory_mib: serve: memory that a function may lock.
 * @memory_max_mib: serve: memory of a function's cgroup, 0 without a limit.
 * @idle_ms: serve: how long a function without an offer waits for its caller.
 * @most: serve: functions at once.
 * @share: serve: of these, for callers of one address.
 * @bare: serve: processes only.
 * @share_net: serve: functions see the network.
 * @argc: arguments behind the command.
 * @argv: they.
 */
struct kh_args {
	const char *function;
	uint32_t times, parallel, retries, timeout_ms;
	bool warm, json;
	const char *directory, *user, *gid;
	uint32_t lease_ms, memory_mib, memory_max_mib, idle_ms, most, share;
	bool bare, share_net;
	int argc;
	char **argv;
};

/**
 * struct kh_box - What functions of a runner run in.
 * @args: the command line.
 * @address: of the runner, as text.
 * @gid: --gid as text; empty without: each function takes the first port that is up.
 * @uid: user.
 * @gid_of_user: its group.
 * @cgroups: folder of the functions' cgroups; empty with @args->bare.
 * @gave_pids: the cgroup that the runner was in had no controller of processes for others before.
 * @gave_memory: likewise, of memory.
 * @count: functions so far; names their cgroups.
 */
struct kh_box {
	const struct kh_args *args;
	char address[64];
	char gid[64];
	uid_t uid;
	gid_t gid_of_user;
	char cgroups[KH_PATH_BYTES];
	bool gave_pids, gave_memory;
	uint64_t count;
};

/** kh_fail() - Say what failed, with errno. @what: what. Return: KH_FAILED. */
int kh_fail(const char *what);

/**
 * kh_address() - Take ADDRESS[:PORT] apart.
 * @text: text; an IPv6 address with a port stands in brackets.
 * @ret_host: 64 characters.
 * @ret_port: 8 characters.
 *
 * Return: 0, or -EINVAL.
 */
int kh_address(const char *text, char *ret_host, char *ret_port);

/**
 * kh_box_init() - Prepare what functions run in.
 * @box: all zero but @args and @address.
 *
 * Return: 0, or an exit status after saying what failed.
 */
int kh_box_init(struct kh_box *box);

/** kh_box_done() - Remove the functions' cgroups. @box: box. */
void kh_box_done(struct kh_box *box);

/**
 * kh_box_start() - Start a function.
 * @box: box.
 * @start: which.
 * @fd: its standard input and output.
 * @ret_cgroup: KH_PATH_BYTES: its cgroup, for kh_box_end(); empty if it has none.
 *
 * Return: its process number, or a negative errno: nothing was made, as when there is no such
 * executable file. If it cannot be executed for another reason, it says so by itself on @fd.
 */
pid_t kh_box_start(struct kh_box *box, const struct kh_start *start, int fd, char *ret_cgroup);

/**
 * kh_box_kill() - End all processes of a function; with --bare its first one only.
 * @pid: from kh_box_start().
 * @cgroup: from kh_box_start().
 */
void kh_box_kill(pid_t pid, const char *cgroup);

/** kh_box_end() - Remove the cgroup of a function whose process was reaped. @cgroup: its. */
void kh_box_end(const char *cgroup);

/** kh_serve() - A command. @args: command line. Return: exit status. */
int kh_serve(struct kh_args *args);

/** kh_chain() - A command. @args: command line. Return: exit status. */
int kh_chain(struct kh_args *args);

/** kh_spread() - A command. @args: command line. Return: exit status. */
int kh_spread(struct kh_args *args);

#endif /* KH_RUNNER_H */
