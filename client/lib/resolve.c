// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * From the name of a MetaServer to addresses, and which local address to connect from.
 *
 * Leases must be renewed while a name server is queried, so the context's thread never
 * blocks for an answer: the sockets of the query are in its epoll set.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>

#include "client/lib/lib.h"

static void krl_resolve_take(struct krl_server *srv, const struct kru_host_addrs *addrs)
{
	unsigned int i;

	srv->addrs_nr = addrs->nr < KRL_ADDRS_MAX ? addrs->nr : KRL_ADDRS_MAX;
	for (i = 0; i < srv->addrs_nr; i++) {
		srv->addrs[i] = addrs->addr[i];
		/* the port is at the same place in both kinds of address */
		((struct sockaddr_in *)&srv->addrs[i])->sin_port = htons(srv->ep->port);
	}
}

/* Return: 0 if the server is configured by address, else a negative errno. */
int krl_resolve_numeric(struct krl_server *srv)
{
	struct kru_host_addrs addrs;
	int err = kru_host_numeric(srv->ep->host, &addrs);

	if (!err)
		krl_resolve_take(srv, &addrs);
	return err;
}

/* Let a query wake the context's thread, whose timers then continue the query. */
int krl_resolve_watch(struct krcore_ctx *ctx, const struct kru_lookup *lookup)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = NULL };

	return epoll_ctl(ctx->epoll_fd, EPOLL_CTL_ADD, kru_lookup_fd(lookup), &event) ? -errno : 0;
}

int krl_resolve_start(struct krl_server *srv)
{
	struct kru_lookup *lookup;
	int err;

	err = kru_lookup_start(srv->ep->host, false, srv->ctx->config.timeout_ms, &lookup);
	if (err)
		return err;
	err = krl_resolve_watch(srv->ctx, lookup);
	if (err) {
		kru_lookup_drop(lookup);
		return err;
	}
	srv->resolve = lookup;
	return 0;
}

/* Return: true if the name is resolved or has failed; takes the addresses over. */
bool krl_resolve_poll(struct krl_server *srv, int *ret_err)
{
	struct kru_host_addrs addrs;

	if (!srv->resolve || !kru_lookup_done(srv->resolve))
		return false;
	*ret_err = kru_lookup_addrs(srv->resolve, &addrs);
	if (!*ret_err) {
		krl_resolve_take(srv, &addrs);
		srv->addr_next = 0;
	}
	krl_resolve_drop(srv);
	return true;
}

void krl_resolve_drop(struct krl_server *srv)
{
	kru_lookup_drop(srv->resolve);
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
 * The local address that the configuration asks for. @ret_any: it asks for none.
 * Return: 0, -ENODEV if the device is not there, -EADDRNOTAVAIL or
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
