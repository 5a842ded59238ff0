// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * How a run reaches a MetaServer: over RDMA by libkrcore, or the daemon on this
 * machine by its control socket. Also the clock and the signals of a run.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/metactl/metactl.h"
#include "common/conf.h"

#define MC_WAIT_MS 20

static volatile sig_atomic_t mc_signalled;

static void mc_on_signal(int signal)
{
	(void)signal;
	mc_signalled = 1;
}

void mc_catch_signals(void)
{
	struct sigaction action = { .sa_handler = mc_on_signal };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

bool mc_stopping(void)
{
	return mc_signalled;
}

uint64_t mc_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void mc_no_report(void *arg, const char *file, unsigned int line, const char *text)
{
	(void)arg;
	(void)file;
	(void)line;
	(void)text;
}

const char *mc_socket(const struct mc *mc)
{
	static struct kru_conf conf;

	if (mc->socket)
		return mc->socket;
	kru_conf_defaults(&conf);
	kru_conf_load(mc->config ? mc->config : MC_CONFIG_FILE, &conf, mc_no_report, NULL);
	return conf.ms.control_socket;
}

bool mc_is_local(const struct mc *mc)
{
	if (mc->socket)
		return true;
	return !mc->servers && !access(mc_socket(mc), F_OK);
}

int mc_attach(struct mc *mc, const struct krcore_options *opts)
{
	struct krcore_options all = { 0 };
	int ret;

	if (mc->krcore)
		return MC_OK;
	if (opts)
		all = *opts;
	all.size = sizeof(all);
	all.flags |= KRCORE_OPEN_DIRECT; /* it shows what servers say, not the node */
	all.config_file = mc->config;
	all.servers = mc->servers;
	all.timeout_ms = mc->timeout_ms;
	ret = krcore_open(&all, &mc->krcore);
	if (!ret)
		return MC_OK;
	return mc_error(mc, "cannot reach a MetaServer: %s",
			*krcore_error_text() ? krcore_error_text() : strerror(-ret));
}

static bool mc_settled(const struct krcore_server_info *servers, int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		if (servers[i].state != KRCORE_SERVER_UP && !servers[i].last_error)
			return false;
	return true;
}

struct krcore_server_info *mc_servers_alloc(int nr)
{
	struct krcore_server_info *servers = calloc((size_t)nr + 1, sizeof(*servers));

	if (servers)
		servers->size = sizeof(*servers);
	return servers;
}

int mc_servers_wait(struct mc *mc, struct krcore_server_info **ret_servers)
{
	uint64_t end = mc_now_ns() + (uint64_t)mc->timeout_ms * 1000000;
	int nr = krcore_servers(mc->krcore, NULL, 0);
	struct krcore_server_info *servers;

	servers = mc_servers_alloc(nr);
	if (!servers)
		return -ENOMEM;
	for (;;) {
		krcore_servers(mc->krcore, servers, (unsigned int)nr);
		if (mc_settled(servers, nr) || mc_now_ns() >= end || mc_stopping())
			break;
		nanosleep(&(struct timespec){ .tv_nsec = MC_WAIT_MS * 1000000L }, NULL);
	}
	*ret_servers = servers;
	return nr;
}

const char *mc_server_state(uint32_t state)
{
	switch (state) {
	case KRCORE_SERVER_DOWN:
		return "down";
	case KRCORE_SERVER_CONNECTING:
		return "connecting";
	case KRCORE_SERVER_UP:
		return "up";
	default:
		return "unknown";
	}
}
