// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Number of connections from each address, bounded so that one machine cannot use up
 * the places of all others.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "metaserver/server_priv.h"
#include "proto/krp_hash.h"

static struct in6_addr ms_source_address(const struct sockaddr *from)
{
	struct in6_addr address = { .s6_addr = { [10] = 0xff, [11] = 0xff } };

	if (from->sa_family == AF_INET6)
		return ((const struct sockaddr_in6 *)from)->sin6_addr;
	if (from->sa_family == AF_INET)
		memcpy(&address.s6_addr[12], &((const struct sockaddr_in *)from)->sin_addr, 4);
	return address;
}

/* The link that points to a source, or would. */
static struct ms_source **ms_source_link(struct ms_server *srv, const struct in6_addr *address)
{
	uint64_t hash = krp_xxh64(address, sizeof(*address), srv->source_salt);
	struct ms_source **link = &srv->sources[hash % MS_SOURCE_HASH];

	while (*link && memcmp(&(*link)->address, address, sizeof(*address)))
		link = &(*link)->next;
	return link;
}

/*
 * The address in a connection request is easily forged: while there is capacity, forged
 * requests must not keep out the real clients of that address.
 */
static bool ms_source_full(const struct ms_server *srv, const struct ms_source *s)
{
	uint32_t most = srv->conf.clients_per_address_max;

	if (most && s->conns - s->strangers >= most)
		return true;
	return s->strangers >= MS_SOURCE_STRANGERS_MAX && srv->strangers_nr >= MS_PENDING_MAX / 2;
}

bool ms_source_welcome(struct ms_server *srv, const struct sockaddr *from)
{
	struct in6_addr address = ms_source_address(from);
	const struct ms_source *s = *ms_source_link(srv, &address);

	return !s || !ms_source_full(srv, s);
}

uint32_t ms_source_clients(struct ms_server *srv, const struct sockaddr *from)
{
	struct in6_addr address = ms_source_address(from);
	const struct ms_source *s = *ms_source_link(srv, &address);

	return s ? s->conns - s->strangers : 0;
}

int ms_source_add(struct ms_server *srv, struct ms_conn *conn, const struct sockaddr *from)
{
	struct in6_addr address = ms_source_address(from);
	struct ms_source **link = ms_source_link(srv, &address), *s = *link;

	if (s && ms_source_full(srv, s))
		return -EUSERS;
	if (!s) {
		s = calloc(1, sizeof(*s));
		if (!s)
			return -ENOMEM;
		s->address = address;
		*link = s;
	}
	s->conns++;
	s->strangers++;
	conn->source = s;
	return 0;
}

void ms_source_known(struct ms_conn *conn)
{
	conn->source->strangers--;
}

void ms_source_remove(struct ms_conn *conn)
{
	struct ms_source *s = conn->source, **link;

	if (!s)
		return;
	conn->source = NULL;
	s->strangers -= !conn->was_ready;
	if (--s->conns)
		return;
	link = ms_source_link(conn->srv, &s->address);
	*link = s->next;
	free(s);
}
