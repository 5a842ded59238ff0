/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A context of libkrcore with servers, as the functions of client/lib/ want it, without a device:
 * for tests that call these one by one. One a program.
 */
#ifndef TESTS_CLIENT_CTX_H
#define TESTS_CLIENT_CTX_H

#include <string.h>

#include "client/lib/lib.h"

#define SERVERS 3

static struct krcore_ctx ctx;
static struct krl_server servers[SERVERS];
static const struct krl_endpoint endpoint = { .text = "there" };
static struct krp_record *chains[1];

/** client_ctx_init() - Make @ctx and @servers anew, no session of which has begun. */
static void client_ctx_init(void)
{
	unsigned int i;

	memset(&ctx, 0, sizeof(ctx));
	memset(servers, 0, sizeof(servers));
	pthread_mutex_init(&ctx.sub_lock, NULL);
	pthread_mutex_init(&ctx.lock, NULL);
	pthread_cond_init(&ctx.cond, NULL);
	ctx.wake_fd = -1;
	ctx.conf.timeout_ms = 500;
	krp_publisher_init(&ctx.pub, chains, 1, SERVERS);
	ctx.servers = servers;
	ctx.servers_nr = SERVERS;
	for (i = 0; i < SERVERS; i++) {
		servers[i].ctx = &ctx;
		servers[i].index = i;
		atomic_store(&servers[i].ep, &endpoint);
		pthread_mutex_init(&servers[i].io, NULL);
		krp_session_init(&servers[i].s, &ctx.pub, i, &ctx.conf);
	}
}

/** client_ctx_fini() - Destroy their locks. */
static void client_ctx_fini(void)
{
	unsigned int i;

	for (i = 0; i < SERVERS; i++)
		pthread_mutex_destroy(&servers[i].io);
	pthread_cond_destroy(&ctx.cond);
	pthread_mutex_destroy(&ctx.lock);
	pthread_mutex_destroy(&ctx.sub_lock);
}

#endif /* TESTS_CLIENT_CTX_H */
