// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * From the name of a MetaServer to addresses, and which address to come from.
 *
 * getaddrinfo() may block for as long as the name service likes, and leases
 * must be renewed meanwhile. So a name is resolved in a short-lived thread that
 * shares nothing with the context but a job with two owners; whoever lets go
 * last frees it. krcore_close() therefore never waits for a name server.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "client/lib/lib.h"

/**
 * struct krl_resolve - A name being resolved.
 * @owners: who still uses this.
 * @wake_fd: the job's own duplicate of the context's eventfd.
 * @done: the fields below are valid.
 * @err: negative errno.
 * @addrs_nr: addresses found.
 * @addrs: they.
 * @host: name.
 * @port: as text.
 */
struct krl_resolve {
	atomic_int owners;
	int wake_fd;
	atomic_bool done;
	int err;
	unsigned int addrs_nr;
	struct sockaddr_storage addrs[KRL_ADDRS_MAX];
	char host[256];
	char port[8];
};

static void krl_resolve_put(struct krl_resolve *job)
{
	if (atomic_fetch_sub(&job->owners, 1) > 1)
		return;
	close(job->wake_fd);
	free(job);
}

static int krl_resolve_errno(int gai)
{
	switch (gai) {
	case 0:
		return 0;
	case EAI_MEMORY:
		return -ENOMEM;
	case EAI_AGAIN:
		return -EAGAIN;
	case EAI_SYSTEM:
		return errno ? -errno : -EIO;
	default:
		return -ENOENT;
	}
}

static int krl_resolve_do(const char *host, const char *port, int flags,
			  struct sockaddr_storage *addrs, unsigned int *ret_nr)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC,
				  .ai_socktype = SOCK_STREAM,
				  .ai_flags = flags | AI_NUMERICSERV };
	struct addrinfo *list, *ai;
	unsigned int nr = 0;
	int err;

	err = krl_resolve_errno(getaddrinfo(host, port, &hints, &list));
	if (err)
		return err;
	for (ai = list; ai && nr < KRL_ADDRS_MAX; ai = ai->ai_next)
		if (ai->ai_addrlen <= sizeof(addrs[0]))
			memcpy(&addrs[nr++], ai->ai_addr, ai->ai_addrlen);
	freeaddrinfo(list);
	*ret_nr = nr;
	return nr ? 0 : -ENOENT;
}

/* Return: 0 if the server is configured by address, else a negative errno. */
int krl_resolve_numeric(struct krl_server *srv)
{
	char port[8];

	snprintf(port, sizeof(port), "%u", srv->ep.port);
	return krl_resolve_do(srv->ep.host, port, AI_NUMERICHOST, srv->addrs, &srv->addrs_nr);
}

static void *krl_resolve_thread(void *arg)
{
	struct krl_resolve *job = arg;

	job->err = krl_resolve_do(job->host, job->port, 0, job->addrs, &job->addrs_nr);
	atomic_store(&job->done, true);
	/* if the counter is full the context is awake anyway */
	if (eventfd_write(job->wake_fd, 1) < 0)
		atomic_store(&job->done, true);
	krl_resolve_put(job);
	return NULL;
}

/* Called in the context's thread, which blocks all signals: the new one inherits that. */
int krl_resolve_start(struct krl_server *srv)
{
	struct krl_resolve *job;
	pthread_t thread;
	int err;

	job = calloc(1, sizeof(*job));
	if (!job)
		return -ENOMEM;
	job->wake_fd = dup(srv->ctx->wake_fd);
	if (job->wake_fd < 0) {
		err = -errno;
		free(job);
		return err;
	}
	atomic_init(&job->owners, 2);
	memcpy(job->host, srv->ep.host, sizeof(job->host));
	snprintf(job->port, sizeof(job->port), "%u", srv->ep.port);
	err = -pthread_create(&thread, NULL, krl_resolve_thread, job);
	if (err) {
		close(job->wake_fd);
		free(job);
		return err;
	}
	pthread_detach(thread);
	srv->resolve = job;
	return 0;
}

/* Return: true if the name is resolved or has failed; takes the addresses over. */
bool krl_resolve_poll(struct krl_server *srv, int *ret_err)
{
	struct krl_resolve *job = srv->resolve;

	if (!job || !atomic_load(&job->done))
		return false;
	*ret_err = job->err;
	if (!job->err) {
		memcpy(srv->addrs, job->addrs, sizeof(srv->addrs));
		srv->addrs_nr = job->addrs_nr;
		srv->addr_next = 0;
	}
	krl_resolve_drop(srv);
	return true;
}

void krl_resolve_drop(struct krl_server *srv)
{
	if (srv->resolve)
		krl_resolve_put(srv->resolve);
	srv->resolve = NULL;
}

static int krl_gid_to_addr(const uint8_t *gid, int family, struct sockaddr_storage *ret_addr)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret_addr;
	struct sockaddr_in *in = (struct sockaddr_in *)ret_addr;
	struct in6_addr addr;

	memcpy(&addr, gid, sizeof(addr));
	if (IN6_IS_ADDR_UNSPECIFIED(&addr) || IN6_IS_ADDR_LINKLOCAL(&addr))
		return -EADDRNOTAVAIL;
	if (IN6_IS_ADDR_V4MAPPED(&addr) != (family == AF_INET))
		return -EAFNOSUPPORT;
	memset(ret_addr, 0, sizeof(*ret_addr));
	if (family == AF_INET) {
		in->sin_family = AF_INET;
		memcpy(&in->sin_addr, gid + 12, sizeof(in->sin_addr));
	} else {
		in6->sin6_family = AF_INET6;
		in6->sin6_addr = addr;
	}
	return 0;
}

static int krl_device_addr(struct ibv_context *verbs, int family, struct sockaddr_storage *ret_addr)
{
	struct ibv_device_attr attr;
	union ibv_gid gid;
	int port, i;

	if (ibv_query_device(verbs, &attr))
		return -EIO;
	for (port = 1; port <= attr.phys_port_cnt; port++)
		for (i = 0; !ibv_query_gid(verbs, (uint8_t)port, i, &gid); i++)
			if (!krl_gid_to_addr(gid.raw, family, ret_addr))
				return 0;
	return -EADDRNOTAVAIL;
}

/*
 * The address that configuration wants us to come from. @ret_any: it does not
 * care. Return: 0, -ENODEV if the device is not there, -EADDRNOTAVAIL or
 * -EAFNOSUPPORT if it has no address of the family.
 */
int krl_source_addr(const struct krl_config *config, int family, struct sockaddr_storage *ret_addr,
		    bool *ret_any)
{
	struct ibv_context **list;
	int i, err = -ENODEV;

	*ret_any = !config->has_gid && !config->device[0];
	if (*ret_any)
		return 0;
	if (config->has_gid)
		return krl_gid_to_addr(config->gid, family, ret_addr);
	list = rdma_get_devices(NULL);
	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]->device), config->device))
			err = krl_device_addr(list[i], family, ret_addr);
	if (list)
		rdma_free_devices(list);
	return err;
}
