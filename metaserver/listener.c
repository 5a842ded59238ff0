// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Where the server listens, and the events of rdma_cm.
 *
 * If `listen` has addresses only, there is one listener an address; else one
 * wildcard listener, and each connection is checked against the list. A failure
 * is retried with a pause that doubles: that of an address whose device is gone,
 * and of rdma_cm itself, which does not start without any RDMA device.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "common/addr.h"
#include "metaserver/log.h"
#include "metaserver/server_priv.h"

#define MS_BACKLOG 1024
#define MS_BACKOFF_MIN_MS 200
#define MS_BACKOFF_MAX_MS 5000
#define MS_EVENTS_TURN 32 /* events an iteration of the loop */

/* the list */

static int ms_place_address(const char *item, uint32_t port, struct sockaddr_storage *ret_addr)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
				  .ai_socktype = SOCK_STREAM },
			*res;
	char host[MS_ADDRESS_BYTES], service[16];
	size_t len = strlen(item);

	memcpy(host, item, len + 1);
	if (host[0] == '[' && host[len - 1] == ']') {
		host[len - 1] = '\0';
		memmove(host, host + 1, len - 1);
	}
	snprintf(service, sizeof(service), "%u", port);
	if (getaddrinfo(host, service, &hints, &res))
		return -EINVAL;
	memcpy(ret_addr, res->ai_addr, res->ai_addrlen);
	freeaddrinfo(res);
	return 0;
}

static int ms_place_parse(const char *item, uint32_t port, struct ms_listen_item *place)
{
	const struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&place->addr;
	const struct sockaddr_in *v4 = (struct sockaddr_in *)&place->addr;

	memset(place, 0, sizeof(*place));
	if (!strcmp(item, "*")) {
		place->any = true;
		return 0;
	}
	if (!strncmp(item, "dev:", 4)) {
		if (!item[4] || strlen(item + 4) >= sizeof(place->device))
			return -EINVAL;
		memcpy(place->device, item + 4, strlen(item + 4));
		return 0;
	}
	if (ms_place_address(item, port, &place->addr))
		return -EINVAL;
	place->any = (v4->sin_family == AF_INET && !v4->sin_addr.s_addr) ||
		     (v6->sin6_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr));
	return 0;
}

static void ms_listener_add(struct ms_server *srv, const struct sockaddr_storage *addr)
{
	struct ms_listener *l = &srv->listening.listeners[srv->listening.nr++];

	l->srv = srv;
	l->addr = *addr;
	kru_sockaddr_format((struct sockaddr *)&l->addr, l->text);
}

int ms_places_parse(struct ms_server *srv)
{
	struct sockaddr_storage any = { .ss_family = AF_INET6 };
	const char *cursor = srv->conf.listen;
	bool wildcard = false;
	char item[MS_ADDRESS_BYTES];
	unsigned int i;
	int more;

	srv->listening.filtered = true;
	while ((more = kru_list_next(&cursor, item, sizeof(item))) > 0) {
		if (srv->listening.places_nr == MS_LISTENERS_MAX ||
		    ms_place_parse(item, srv->conf.port,
				   &srv->listening.places[srv->listening.places_nr])) {
			ms_log(LOG_ERR, "listen: '%s' is no address, device or *, or one too many",
			       item);
			return -EINVAL;
		}
		srv->listening.filtered &= !srv->listening.places[srv->listening.places_nr].any;
		wildcard |= srv->listening.places[srv->listening.places_nr].any ||
			    srv->listening.places[srv->listening.places_nr].device[0];
		srv->listening.places_nr++;
	}
	if (more < 0 || !srv->listening.places_nr) {
		ms_log(LOG_ERR, "listen: an entry is too long, or there is none");
		return -EINVAL;
	}
	((struct sockaddr_in6 *)&any)->sin6_port = htons((__u16)srv->conf.port);
	if (wildcard)
		ms_listener_add(srv, &any);
	for (i = 0; !wildcard && i < srv->listening.places_nr; i++)
		ms_listener_add(srv, &srv->listening.places[i].addr);
	return 0;
}

static bool ms_same_address(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
	return a->sa_family == AF_INET6 &&
	       !memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
		       &((const struct sockaddr_in6 *)b)->sin6_addr, sizeof(struct in6_addr));
}

bool ms_place_allows(const struct ms_server *srv, struct rdma_cm_id *id)
{
	unsigned int i;

	if (!srv->listening.filtered)
		return true;
	for (i = 0; i < srv->listening.places_nr; i++) {
		const struct ms_listen_item *p = &srv->listening.places[i];

		if (p->device[0] && !strcmp(p->device, ibv_get_device_name(id->verbs->device)))
			return true;
		if (p->addr.ss_family &&
		    ms_same_address((const struct sockaddr *)&p->addr, rdma_get_local_addr(id)))
			return true;
	}
	return false;
}

/* Whether an address is the one that a GID of RoCE stands for. */
static bool ms_is_gid(const struct sockaddr_storage *addr, const __u8 *gid)
{
	static const __u8 mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (addr->ss_family == AF_INET6)
		return !memcmp(&((const struct sockaddr_in6 *)addr)->sin6_addr, gid, KRP_GID_BYTES);
	return addr->ss_family == AF_INET && !memcmp(gid, mapped, sizeof(mapped)) &&
	       !memcmp(&((const struct sockaddr_in *)addr)->sin_addr, gid + sizeof(mapped), 4);
}

bool ms_place_serves(const struct ms_server *srv, const char *device, const __u8 *gid)
{
	unsigned int i;

	if (!srv->listening.filtered)
		return true;
	for (i = 0; i < srv->listening.places_nr; i++) {
		const struct ms_listen_item *p = &srv->listening.places[i];

		if ((p->device[0] && !strcmp(p->device, device)) || ms_is_gid(&p->addr, gid))
			return true;
	}
	return false;
}

bool ms_place_wants(const struct ms_server *srv, const char *device)
{
	unsigned int i;

	for (i = 0; i < srv->listening.places_nr; i++)
		if (!srv->listening.places[i].device[0] ||
		    !strcmp(srv->listening.places[i].device, device))
			return true;
	return false;
}

/* the listeners */

static uint32_t ms_backoff(uint32_t *pause_ms)
{
	uint32_t now_ms = *pause_ms ? *pause_ms : MS_BACKOFF_MIN_MS;

	*pause_ms = now_ms * 2 > MS_BACKOFF_MAX_MS ? MS_BACKOFF_MAX_MS : now_ms * 2;
	return now_ms;
}

static void ms_listener_close(struct ms_listener *l)
{
	ev_timer_stop(l->srv->loop, &l->retry);
	if (l->id)
		rdma_destroy_id(l->id);
	l->id = NULL;
}

/* A wildcard takes both families either way; IPv6 may be switched off. */
static int ms_listener_bind(struct ms_listener *l)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&l->addr;
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = v6->sin6_port };

	if (!rdma_bind_addr(l->id, (struct sockaddr *)&l->addr))
		return 0;
	if (l->addr.ss_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr) &&
	    errno != EADDRINUSE && !rdma_bind_addr(l->id, (struct sockaddr *)&v4))
		return 0;
	return -errno;
}

static void ms_listener_open(struct ms_listener *l)
{
	uint32_t pause_ms;
	int err = 0;

	if (rdma_create_id(l->srv->listening.channel, &l->id, l, RDMA_PS_TCP)) {
		err = -errno;
		l->id = NULL;
	}
	if (!err)
		err = ms_listener_bind(l);
	if (!err && l->id->verbs) /* bound to one device */
		err = ms_watch_add(l->srv, l->id);
	if (!err && rdma_listen(l->id, MS_BACKLOG))
		err = -errno;
	if (!err) {
		ms_log(LOG_NOTICE, "listening at %s", l->text);
		l->error = 0;
		l->backoff_ms = 0;
		ms_server_evaluate(l->srv);
		return;
	}
	if (l->error != err)
		ms_log(LOG_WARNING, "cannot listen at %s (%s), trying again", l->text,
		       strerror(-err));
	l->error = err;
	ms_listener_close(l);
	pause_ms = ms_backoff(&l->backoff_ms);
	ev_timer_set(&l->retry, pause_ms / 1000.0, 0.);
	ev_timer_start(l->srv->loop, &l->retry);
}

static void ms_listener_on_retry(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop;
	(void)events;
	ms_listener_open(w->data);
}

static void ms_listener_lost(struct ms_listener *l, enum rdma_cm_event_type event)
{
	ms_log(LOG_WARNING, "no longer listening at %s: %s", l->text, rdma_event_str(event));
	ms_listener_close(l);
	l->error = -ENODEV;
	ev_timer_set(&l->retry, ms_backoff(&l->backoff_ms) / 1000.0, 0.);
	ev_timer_start(l->srv->loop, &l->retry);
	ms_server_evaluate(l->srv);
}

unsigned int ms_listeners_up(const struct ms_server *srv)
{
	unsigned int i, n = 0;

	for (i = 0; i < srv->listening.nr; i++)
		n += srv->listening.listeners[i].id && !srv->listening.listeners[i].error;
	return n;
}

/* events */

static struct ms_listener *ms_listener_of(struct ms_server *srv, const struct rdma_cm_id *id)
{
	unsigned int i;

	for (i = 0; i < srv->listening.nr; i++)
		if (srv->listening.listeners[i].id == id)
			return &srv->listening.listeners[i];
	return NULL;
}

static void ms_cm_event(struct ms_server *srv, struct rdma_cm_id *id, enum rdma_cm_event_type event,
			const struct rdma_conn_param *param)
{
	struct ms_listener *l;

	if (event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		ms_conn_accept(srv, id, param);
		return;
	}
	if (ms_watch_event(srv, id, event))
		return;
	l = ms_listener_of(srv, id);
	if (l && (event == RDMA_CM_EVENT_DEVICE_REMOVAL || event == RDMA_CM_EVENT_ADDR_CHANGE))
		ms_listener_lost(l, event);
	else if (!l && id->context)
		ms_conn_event(id->context, event);
}

static void ms_cm_on_event(struct ev_loop *loop, ev_io *w, int events)
{
	struct ms_server *srv = w->data;
	struct rdma_cm_event *event;
	struct rdma_conn_param param;
	enum rdma_cm_event_type type;
	struct rdma_cm_id *id;
	int turn;

	(void)loop;
	(void)events;
	for (turn = 0; turn < MS_EVENTS_TURN && srv->listening.channel; turn++) {
		if (rdma_get_cm_event(srv->listening.channel, &event)) {
			if (errno != EAGAIN && errno != EINTR)
				ms_log_client(srv, LOG_ERR, "rdma_cm: %s", strerror(errno));
			return;
		}
		/* acknowledged before it is handled: destroying an id waits for that */
		id = event->id;
		type = event->event;
		param = event->param.conn;
		param.private_data = NULL;
		rdma_ack_cm_event(event);
		ms_cm_event(srv, id, type, &param);
	}
}

static int ms_cm_open(struct ms_server *srv)
{
	int fd, flags;

	errno = 0;
	srv->listening.channel = rdma_create_event_channel();
	if (!srv->listening.channel)
		return errno ? -errno : -ENODEV;
	fd = srv->listening.channel->fd;
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) {
		rdma_destroy_event_channel(srv->listening.channel);
		srv->listening.channel = NULL;
		return -errno;
	}
	ev_io_init(&srv->listening.cm_io, ms_cm_on_event, fd, EV_READ);
	srv->listening.cm_io.data = srv;
	ev_io_start(srv->loop, &srv->listening.cm_io);
	return 0;
}

static void ms_cm_on_retry(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop;
	(void)events;
	ms_listeners_start(w->data);
}

void ms_listeners_start(struct ms_server *srv)
{
	unsigned int i;
	int err = ms_cm_open(srv);

	if (err) {
		if (err != srv->listening.cm_error)
			ms_log(LOG_WARNING, "rdma_cm is not there (%s), waiting for an RDMA device",
			       strerror(-err));
		srv->listening.cm_error = err;
		ev_timer_init(&srv->listening.cm_retry, ms_cm_on_retry, 1., 0.);
		srv->listening.cm_retry.data = srv;
		ev_timer_start(srv->loop, &srv->listening.cm_retry);
		return;
	}
	srv->listening.cm_error = 0;
	ms_watch_probe(srv);
	for (i = 0; i < srv->listening.nr; i++) {
		ev_timer_init(&srv->listening.listeners[i].retry, ms_listener_on_retry, 0., 0.);
		srv->listening.listeners[i].retry.data = &srv->listening.listeners[i];
		ms_listener_open(&srv->listening.listeners[i]);
	}
}

void ms_listeners_stop(struct ms_server *srv)
{
	unsigned int i;

	if (ev_is_active(&srv->listening.cm_retry))
		ev_timer_stop(srv->loop, &srv->listening.cm_retry);
	for (i = 0; srv->listening.channel && i < srv->listening.nr; i++)
		ms_listener_close(&srv->listening.listeners[i]);
}

void ms_cm_close(struct ms_server *srv)
{
	ms_listeners_stop(srv);
	if (!srv->listening.channel)
		return;
	ev_io_stop(srv->loop, &srv->listening.cm_io);
	rdma_destroy_event_channel(srv->listening.channel);
	srv->listening.channel = NULL;
}
