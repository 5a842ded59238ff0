// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Peers by name. Apart from region.c, so that a static program without names gets no resolver,
 * which in glibc wants shared libraries all the same.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "client/include/krcore/queue.h"
#include "client/lib/base.h"
#include "common/gid.h"

/* An IPv4 address stands for the IPv4-mapped GID of a RoCE port. */
static int krl_gid_of(const struct sockaddr *addr, uint8_t *gid)
{
	if (addr->sa_family == AF_INET6) {
		memcpy(gid, &((const struct sockaddr_in6 *)(const void *)addr)->sin6_addr,
		       KRCORE_GID_BYTES);
		return 0;
	}
	if (addr->sa_family != AF_INET)
		return -ENOENT;
	memset(gid, 0, 10);
	memset(gid + 10, 0xff, 2);
	memcpy(gid + 12, &((const struct sockaddr_in *)(const void *)addr)->sin_addr, 4);
	return 0;
}

/* Of a name's addresses the one that a port with both has its record under: IPv4. */
static const struct addrinfo *krl_first(const struct addrinfo *found)
{
	const struct addrinfo *at = found;

	while (at && at->ai_family != AF_INET)
		at = at->ai_next;
	return at ? at : found;
}

static int krl_resolve_error(int error)
{
	switch (error) {
	case EAI_AGAIN:
		return -EAGAIN;
	case EAI_MEMORY:
		return -ENOMEM;
	default:
		return -ENOENT;
	}
}

int krcore_key_from_text(const char *text, uint16_t service, struct krcore_key *ret_key)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct krcore_key key = { .service = service };
	struct addrinfo *found;
	int err;

	if (!text || !*text)
		return krl_error_const(-EINVAL, "the name of the peer is empty");
	if (!krcore_key_from_address(text, service, ret_key))
		return 0;
	if (kru_v4_is_broken(text))
		return krl_error(-EINVAL, "%s is no IPv4 address: that has four numbers", text);
	err = getaddrinfo(text, NULL, &hints, &found);
	if (err)
		return krl_error(krl_resolve_error(err), "%s: %s", text, gai_strerror(err));
	err = krl_gid_of(krl_first(found)->ai_addr, key.gid);
	freeaddrinfo(found);
	if (err)
		return krl_error(err, "%s has no IP address", text);
	*ret_key = key;
	return 0;
}
