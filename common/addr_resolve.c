// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Addresses behind the names of MetaServers: see addr.h.
 *
 * Neither getaddrinfo() nor res_nquery() takes a deadline, so each name has a
 * detached thread and the caller waits on a condition. A job is shared by both
 * and freed by whoever lets go of it last, always under its lock.
 */
#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <resolv.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/addr.h"

#define KRU_DNS_ANSWER_BYTES 65535
#define KRU_ADDRS_PER_HOST 8

/**
 * struct kru_host_addrs - Addresses of one host.
 * @err: 0 if there is one at least, else negative errno.
 * @nr: how many.
 * @addr: addresses without port.
 * @addr_bytes: their lengths.
 */
struct kru_host_addrs {
	int err;
	unsigned int nr;
	struct sockaddr_storage addr[KRU_ADDRS_PER_HOST];
	socklen_t addr_bytes[KRU_ADDRS_PER_HOST];
};

/**
 * struct kru_resolve_job - What a thread is to find out.
 * @lock: protects all below.
 * @finished: signalled when @done becomes true.
 * @refs: caller and thread.
 * @done: @err and the results are valid.
 * @srv: @name is a SRV name.
 * @name: host or SRV name.
 * @timeout_ms: hint for the resolver.
 * @err: 0 or negative errno.
 * @addrs: result for a host.
 * @servers: result for a SRV name.
 */
struct kru_resolve_job {
	pthread_mutex_t lock;
	pthread_cond_t finished;
	unsigned int refs;
	bool done;
	bool srv;
	char name[KRU_HOST_BYTES];
	unsigned int timeout_ms;
	int err;
	struct kru_host_addrs addrs;
	struct kru_servers servers;
};

static int kru_gai_errno(int gai)
{
	switch (gai) {
	case 0:
		return 0;
	case EAI_AGAIN:
		return -EAGAIN;
	case EAI_MEMORY:
		return -ENOMEM;
	case EAI_SYSTEM:
		return errno ? -errno : -EIO;
	default:
		return -ENOENT;
	}
}

static int kru_host_lookup(const char *host, int flags, struct kru_host_addrs *ret_addrs)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC,
				  .ai_socktype = SOCK_STREAM,
				  .ai_flags = flags };
	struct addrinfo *list = NULL;
	struct kru_host_addrs addrs = { 0 };
	int err;

	err = kru_gai_errno(getaddrinfo(host, NULL, &hints, &list));
	if (err)
		return err;
	for (struct addrinfo *ai = list; ai && addrs.nr < KRU_ADDRS_PER_HOST; ai = ai->ai_next) {
		if (ai->ai_addrlen > sizeof(*addrs.addr))
			continue;
		memcpy(&addrs.addr[addrs.nr], ai->ai_addr, ai->ai_addrlen);
		addrs.addr_bytes[addrs.nr++] = ai->ai_addrlen;
	}
	freeaddrinfo(list);
	if (!addrs.nr)
		return -ENOENT;
	*ret_addrs = addrs;
	return 0;
}

static int kru_srv_rr_decode(ns_msg *msg, ns_rr *rr, struct kru_server *ret_server)
{
	const __u8 *data = ns_rr_rdata(*rr);
	struct kru_server server = { 0 };

	if (ns_rr_rdlen(*rr) < 7)
		return -EBADMSG;
	server.priority = ns_get16(data);
	server.weight = ns_get16(data + 2);
	server.port = ns_get16(data + 4);
	if (ns_name_uncompress(ns_msg_base(*msg), ns_msg_end(*msg), data + 6, server.host,
			       sizeof(server.host)) < 0)
		return -EBADMSG;
	if (!server.port)
		return -EBADMSG;
	*ret_server = server;
	return 0;
}

int kru_srv_decode(const __u8 *answer, size_t bytes, struct kru_servers *ret_servers)
{
	struct kru_servers servers = { 0 };
	ns_msg msg;
	ns_rr rr;

	if (bytes > KRU_DNS_ANSWER_BYTES || ns_initparse(answer, (int)bytes, &msg) < 0 ||
	    !ns_msg_getflag(msg, ns_f_qr))
		return -EBADMSG;
	if (ns_msg_getflag(msg, ns_f_rcode) == ns_r_nxdomain)
		return -ENOENT;
	if (ns_msg_getflag(msg, ns_f_rcode) != ns_r_noerror)
		return -EAGAIN;
	for (int i = 0; i < ns_msg_count(msg, ns_s_an) && servers.nr < KRU_SERVERS_MAX; i++) {
		struct kru_server *server = &servers.server[servers.nr];

		if (ns_parserr(&msg, ns_s_an, i, &rr) < 0)
			return -EBADMSG;
		if (ns_rr_type(rr) != ns_t_srv || ns_rr_class(rr) != ns_c_in)
			continue;
		if (kru_srv_rr_decode(&msg, &rr, server))
			return -EBADMSG;
		if (*server->host && strcmp(server->host, "."))
			servers.nr++;
		else
			memset(server, 0, sizeof(*server));
	}
	if (!servers.nr)
		return -ENOENT;
	*ret_servers = servers;
	return 0;
}

static int kru_srv_lookup(const char *name, unsigned int timeout_ms,
			  struct kru_servers *ret_servers)
{
	struct __res_state state = { 0 };
	__u8 *answer;
	int len, err;

	answer = malloc(KRU_DNS_ANSWER_BYTES);
	if (!answer)
		return -ENOMEM;
	if (res_ninit(&state)) {
		free(answer);
		return -EAGAIN;
	}
	/* Two tries of each name server within the deadline, whole seconds. */
	state.retry = 2;
	state.retrans = (int)(timeout_ms / 2000) ?: 1;
	len = res_nquery(&state, name, ns_c_in, ns_t_srv, answer, KRU_DNS_ANSWER_BYTES);
	if (len >= 0)
		err = kru_srv_decode(answer, (size_t)len, ret_servers);
	else if (state.res_h_errno == HOST_NOT_FOUND || state.res_h_errno == NO_DATA)
		err = -ENOENT;
	else
		err = -EAGAIN;
	res_nclose(&state);
	free(answer);
	return err;
}

static void kru_job_put(struct kru_resolve_job *job)
{
	bool last;

	pthread_mutex_lock(&job->lock);
	last = !--job->refs;
	pthread_mutex_unlock(&job->lock);
	if (!last)
		return;
	pthread_cond_destroy(&job->finished);
	pthread_mutex_destroy(&job->lock);
	free(job);
}

static void *kru_job_thread(void *arg)
{
	struct kru_resolve_job *job = arg;
	struct kru_host_addrs addrs = { 0 };
	struct kru_servers servers = { 0 };
	int err;

	if (job->srv)
		err = kru_srv_lookup(job->name, job->timeout_ms, &servers);
	else
		err = kru_host_lookup(job->name, AI_ADDRCONFIG, &addrs);

	pthread_mutex_lock(&job->lock);
	job->err = err;
	job->addrs = addrs;
	job->servers = servers;
	job->done = true;
	pthread_cond_signal(&job->finished);
	pthread_mutex_unlock(&job->lock);
	kru_job_put(job);
	return NULL;
}

static int kru_job_start(const char *name, bool srv, unsigned int timeout_ms,
			 struct kru_resolve_job **ret_job)
{
	struct kru_resolve_job *job;
	pthread_condattr_t clock;
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	int err;

	job = calloc(1, sizeof(*job));
	if (!job)
		return -ENOMEM;
	pthread_mutex_init(&job->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&job->finished, &clock);
	pthread_condattr_destroy(&clock);
	job->refs = 2;
	job->srv = srv;
	job->timeout_ms = timeout_ms;
	snprintf(job->name, sizeof(job->name), "%s", name);

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = pthread_create(&thread, &attr, kru_job_thread, job);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err) {
		job->refs = 1;
		kru_job_put(job);
		return -ENOMEM;
	}
	*ret_job = job;
	return 0;
}

/* Wait for a job and let go of it. */
static int kru_job_wait(struct kru_resolve_job *job, const struct timespec *deadline,
			struct kru_host_addrs *ret_addrs, struct kru_servers *ret_servers)
{
	int err = 0;

	pthread_mutex_lock(&job->lock);
	while (!job->done && !err)
		err = -pthread_cond_timedwait(&job->finished, &job->lock, deadline);
	if (job->done) {
		err = job->err;
		if (!err && ret_addrs)
			*ret_addrs = job->addrs;
		if (!err && ret_servers)
			*ret_servers = job->servers;
	}
	pthread_mutex_unlock(&job->lock);
	kru_job_put(job);
	return err;
}

static void kru_deadline(unsigned int timeout_ms, struct timespec *ret_deadline)
{
	clock_gettime(CLOCK_MONOTONIC, ret_deadline);
	ret_deadline->tv_sec += timeout_ms / 1000;
	ret_deadline->tv_nsec += (long)(timeout_ms % 1000) * 1000000;
	if (ret_deadline->tv_nsec >= 1000000000) {
		ret_deadline->tv_sec++;
		ret_deadline->tv_nsec -= 1000000000;
	}
}

/* Addresses of all hosts of a list at once; each has its own outcome. */
static void kru_hosts_lookup(const struct kru_servers *servers, unsigned int timeout_ms,
			     const struct timespec *deadline, struct kru_host_addrs *addrs)
{
	struct kru_resolve_job *jobs[KRU_SERVERS_MAX] = { NULL };

	for (unsigned int i = 0; i < servers->nr; i++) {
		const char *host = servers->server[i].host;

		addrs[i].err = kru_host_lookup(host, AI_NUMERICHOST, &addrs[i]);
		if (addrs[i].err)
			addrs[i].err = kru_job_start(host, false, timeout_ms, &jobs[i]);
	}
	for (unsigned int i = 0; i < servers->nr; i++)
		if (jobs[i])
			addrs[i].err = kru_job_wait(jobs[i], deadline, &addrs[i], NULL);
}

/* By priority; the order of the list among equals. */
static void kru_servers_sort(struct kru_servers *servers)
{
	for (unsigned int i = 1; i < servers->nr; i++) {
		struct kru_server server = servers->server[i];
		unsigned int at = i;

		for (; at && servers->server[at - 1].priority > server.priority; at--)
			servers->server[at] = servers->server[at - 1];
		servers->server[at] = server;
	}
}

/* Among equal priorities, draw by weight without putting back: RFC 2782. */
static void kru_servers_shuffle(struct kru_servers *servers)
{
	for (unsigned int i = 0; i < servers->nr; i++) {
		struct kru_server swap = servers->server[i];
		unsigned long total = 0, drawn;
		unsigned int end = i, pick;
		unsigned int seed;

		for (; end < servers->nr && servers->server[end].priority == swap.priority; end++)
			total += servers->server[end].weight + 1UL;
		if (getentropy(&seed, sizeof(seed)))
			return;
		drawn = seed % total;
		for (pick = i; drawn >= servers->server[pick].weight + 1UL; pick++)
			drawn -= servers->server[pick].weight + 1UL;
		servers->server[i] = servers->server[pick];
		servers->server[pick] = swap;
	}
}

static void kru_endpoint_fill(const struct kru_server *server, const struct kru_host_addrs *addrs,
			      unsigned int nr, struct kru_endpoint *ret_endpoint)
{
	struct kru_endpoint ep = { .addr = addrs->addr[nr],
				   .addr_bytes = addrs->addr_bytes[nr],
				   .priority = server->priority,
				   .weight = server->weight };

	if (ep.addr.ss_family == AF_INET)
		((struct sockaddr_in *)&ep.addr)->sin_port = htons(server->port);
	else
		((struct sockaddr_in6 *)&ep.addr)->sin6_port = htons(server->port);
	memcpy(ep.host, server->host, sizeof(ep.host));
	*ret_endpoint = ep;
}

int kru_servers_resolve(const struct kru_servers *servers, unsigned int timeout_ms,
			struct kru_endpoint *ret_endpoints)
{
	struct kru_servers sorted = *servers;
	struct kru_host_addrs *addrs;
	struct kru_resolve_job *job;
	struct timespec deadline;
	int nr = 0, err = -ENOENT;

	kru_deadline(timeout_ms, &deadline);
	if (servers->srv) {
		err = kru_job_start(servers->server[0].host, true, timeout_ms, &job);
		if (!err)
			err = kru_job_wait(job, &deadline, NULL, &sorted);
		if (err)
			return err;
	}
	kru_servers_sort(&sorted);
	if (servers->srv)
		kru_servers_shuffle(&sorted);

	addrs = calloc(KRU_SERVERS_MAX, sizeof(*addrs));
	if (!addrs)
		return -ENOMEM;
	kru_hosts_lookup(&sorted, timeout_ms, &deadline, addrs);
	for (unsigned int i = 0; i < sorted.nr; i++) {
		if (addrs[i].err && err != -ETIMEDOUT)
			err = addrs[i].err;
		for (unsigned int j = 0; !addrs[i].err && j < addrs[i].nr; j++)
			if (nr < KRU_ENDPOINTS_MAX)
				kru_endpoint_fill(&sorted.server[i], &addrs[i], j,
						  &ret_endpoints[nr++]);
	}
	free(addrs);
	if (nr)
		return nr;
	return err ? err : -ENOENT;
}
