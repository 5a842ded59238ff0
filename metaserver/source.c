// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Number of connections from each address, bounded so that one machine cannot use up
 * the places of all others.
 *
 * A request counts at the address that it claims, until something comes over the connection:
 * our answer says which queue pair to send to, so from then on it counts at the GID that its
 * queue pair is connected to, as a stranger and as a client. The address that a request claims
 * hides neither where strangers nor where clients are.
 * On RoCE the GID is the address. On InfiniBand the address is that of IPoIB, and the GID another
 * name of the same port, which the request claims as well: so both are looked at.
 *
 * This is no proof: numbers of queue pairs can be guessed from neighbouring ones, and a host that
 * sends in another's name to a guessed one can use up that one's places for strangers, once half of
 * all are taken. Clients are counted after they have authenticated, by their nonce and ours.
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
	uint64_t hash = krp_xxh64(address, sizeof(*address), srv->conns.salt);
	struct ms_source **link = &srv->conns.sources[hash % MS_SOURCE_HASH];

	while (*link && memcmp(&(*link)->address, address, sizeof(*address)))
		link = &(*link)->next;
	return link;
}

static bool ms_source_has_all(const struct ms_server *srv, const struct ms_source *s)
{
	uint32_t most = srv->conf.clients_per_address_max;

	return most && s->clients >= most;
}

/*
 * The address in a connection request is easily forged: while there is capacity, forged
 * requests must not keep out the real clients of that address.
 */
static bool ms_source_crowded(const struct ms_server *srv, const struct ms_source *s)
{
	return s->strangers >= MS_SOURCE_STRANGERS_MAX &&
	       srv->conns.strangers_nr >= MS_PENDING_MAX / 2;
}

static bool ms_source_full(const struct ms_server *srv, const struct ms_source *s)
{
	return ms_source_has_all(srv, s) || ms_source_crowded(srv, s);
}

/* The source of an address, made if there is none; NULL without memory. */
static struct ms_source *ms_source_get(struct ms_server *srv, const struct in6_addr *address)
{
	struct ms_source **link = ms_source_link(srv, address);
	struct ms_source *s = *link;

	if (s)
		return s;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->address = *address;
	*link = s;
	return s;
}

/* Free a source from which nothing comes any more. */
static void ms_source_put(struct ms_server *srv, struct ms_source *s)
{
	struct ms_source **link;

	if (s->strangers || s->clients)
		return;
	link = ms_source_link(srv, &s->address);
	*link = s->next;
	free(s);
}

/* What is known of the address that a request claims, and of the GID: sources or NULL. */
static void ms_source_claimed(struct ms_server *srv, struct rdma_cm_id *id,
			      const struct ms_source *ret_claimed[2])
{
	struct in6_addr address = ms_source_address(rdma_get_peer_addr(id));

	ret_claimed[0] = *ms_source_link(srv, &address);
	memcpy(&address, id->route.addr.addr.ibaddr.dgid.raw, sizeof(address));
	ret_claimed[1] = *ms_source_link(srv, &address);
}

bool ms_source_welcome(struct ms_server *srv, struct rdma_cm_id *id)
{
	const struct ms_source *claimed[2];

	ms_source_claimed(srv, id, claimed);
	return (!claimed[0] || !ms_source_full(srv, claimed[0])) &&
	       (!claimed[1] || !ms_source_full(srv, claimed[1]));
}

bool ms_source_has_clients(struct ms_server *srv, struct rdma_cm_id *id)
{
	const struct ms_source *claimed[2];

	ms_source_claimed(srv, id, claimed);
	return (claimed[0] && claimed[0]->clients) || (claimed[1] && claimed[1]->clients);
}

int ms_source_add(struct ms_server *srv, struct ms_conn *conn, const struct sockaddr *from)
{
	struct in6_addr address = ms_source_address(from);
	struct ms_source *s = ms_source_get(srv, &address);

	if (!s)
		return -ENOMEM;
	if (ms_source_full(srv, s)) /* so it is not empty */
		return -EUSERS;
	s->strangers++;
	conn->source = s;
	return 0;
}

int ms_source_prove(struct ms_conn *conn, const uint8_t *gid)
{
	struct ms_source *from = conn->source, *s;
	struct in6_addr address;

	memcpy(&address, gid, sizeof(address));
	s = ms_source_get(conn->srv, &address);
	if (!s)
		return -ENOMEM;
	if (s == from)
		return 0;
	/* not the bound of clients: it may be about to replace one of them */
	if (ms_source_crowded(conn->srv, s))
		return -EUSERS;
	from->strangers--;
	s->strangers++;
	conn->source = s;
	ms_source_put(conn->srv, from);
	return 0;
}

bool ms_source_at_limit(const struct ms_conn *conn)
{
	return conn->source && ms_source_has_all(conn->srv, conn->source);
}

int ms_source_enter(struct ms_conn *conn, const uint8_t *gid)
{
	struct ms_source *from = conn->source, *s = from;
	struct in6_addr address;

	if (gid) {
		memcpy(&address, gid, sizeof(address));
		s = ms_source_get(conn->srv, &address);
	}
	if (!s)
		return -ENOMEM;
	if (ms_source_has_all(conn->srv, s))
		return -EUSERS;
	from->strangers--;
	s->clients++;
	conn->source = s;
	conn->entered = true;
	ms_source_put(conn->srv, from);
	return 0;
}

void ms_source_remove(struct ms_conn *conn)
{
	struct ms_source *s = conn->source;

	if (!s)
		return;
	conn->source = NULL;
	if (conn->entered)
		s->clients--;
	else
		s->strangers--;
	ms_source_put(conn->srv, s);
}
