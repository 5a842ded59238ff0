// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Devices that librdmacm has opened for us, and their removal.
 *
 * The kernel may not be done with a removal before the last user of the device
 * has closed it (rxe and siw: `rdma link del` waits), but librdmacm keeps its
 * context for as long as it sees no other device. So every context that a
 * connection request or a listener brings is noted, whether we use its device
 * or not, and released when the device is removed.
 *
 * A removal is detected in two ways: by an rdma_cm id bound to the device, which
 * is kept with the context for that purpose, and by its disappearance from sysfs.
 */
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "metaserver/log.h"
#include "metaserver/server_priv.h"

/**
 * struct ms_watch - One context of librdmacm.
 * @next: list of the server.
 * @verbs: the context; @sentinel keeps it alive.
 * @sentinel: id bound to the device.
 */
struct ms_watch {
	struct ms_watch *next;
	struct ibv_context *verbs;
	struct rdma_cm_id *sentinel;
};

/* An id bound to the device that has a local address; NULL if none has. */
static struct rdma_cm_id *ms_watch_bind(struct ms_server *srv, const struct sockaddr *local)
{
	struct sockaddr_storage addr = { 0 };
	struct rdma_cm_id *id;

	if (local->sa_family != AF_INET && local->sa_family != AF_INET6)
		return NULL;
	memcpy(&addr, local,
	       local->sa_family == AF_INET ? sizeof(struct sockaddr_in)
					   : sizeof(struct sockaddr_in6));
	((struct sockaddr_in *)&addr)->sin_port = 0; /* sin6_port lies in the same place */
	if (rdma_create_id(srv->listening.channel, &id, NULL, RDMA_PS_TCP))
		return NULL;
	if (!rdma_bind_addr(id, (struct sockaddr *)&addr) && id->verbs)
		return id;
	rdma_destroy_id(id);
	return NULL;
}

static struct rdma_cm_id *ms_watch_sentinel(struct ms_server *srv, struct rdma_cm_id *like)
{
	struct rdma_cm_id *id = ms_watch_bind(srv, rdma_get_local_addr(like));

	if (id && id->verbs != like->verbs) {
		rdma_destroy_id(id);
		return NULL;
	}
	return id;
}

int ms_watch_add(struct ms_server *srv, struct rdma_cm_id *id)
{
	struct ms_watch *w;

	for (w = srv->listening.watches; w; w = w->next)
		if (w->verbs == id->verbs)
			return 0;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->verbs = id->verbs;
	w->sentinel = ms_watch_sentinel(srv, id);
	if (!w->sentinel) {
		free(w);
		return -ENODEV;
	}
	w->next = srv->listening.watches;
	srv->listening.watches = w;
	return 0;
}

/*
 * The files behind the context's descriptors are gone, and our objects on them are freed.
 * The descriptors are redirected to /dev/null, which librdmacm may close at any time.
 */
static void ms_watch_let_go(const struct ibv_context *verbs)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return;
	dup3(fd, verbs->cmd_fd, O_CLOEXEC);
	dup3(fd, verbs->async_fd, O_CLOEXEC);
	close(fd);
}

void ms_watch_gone(struct ms_server *srv, struct ibv_context *verbs, const char *why)
{
	struct ms_watch **link = &srv->listening.watches, *w;
	struct ms_device *dev = srv->devices;

	while (dev && dev->verbs != verbs)
		dev = dev->next;
	if (dev)
		ms_device_remove(dev, why);
	while (*link && (*link)->verbs != verbs)
		link = &(*link)->next;
	w = *link;
	if (!w)
		return;
	*link = w->next;
	ms_watch_let_go(verbs);
	rdma_destroy_id(w->sentinel); /* librdmacm may free the context with it */
	free(w);
}

bool ms_watch_event(struct ms_server *srv, struct rdma_cm_id *id, enum rdma_cm_event_type event)
{
	struct ms_watch *w = srv->listening.watches;

	while (w && w->sentinel != id)
		w = w->next;
	if (!w)
		return false;
	if (event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		ms_watch_gone(srv, w->verbs, "device was removed");
	return true;
}

/* Return: the device that an address leads to could not be used, or NULL. */
static struct ibv_context *ms_watch_probe_addr(struct ms_server *srv, const struct sockaddr *addr,
					       const struct ibv_context *refused)
{
	struct rdma_cm_id *id = ms_watch_bind(srv, addr);
	struct ibv_context *failed = NULL;
	struct ms_device *dev;

	if (!id)
		return NULL;
	if (id->verbs != refused && ms_place_allows(srv, id)) {
		if (ms_watch_add(srv, id) || ms_device_get(srv, id, &dev))
			failed = id->verbs;
	}
	rdma_destroy_id(id);
	return failed;
}

void ms_watch_probe(struct ms_server *srv)
{
	const struct ibv_context *refused = NULL, *failed;
	struct ifaddrs *list, *ifa;

	if (!srv->listening.channel || getifaddrs(&list))
		return;
	for (ifa = list; ifa; ifa = ifa->ifa_next) {
		if (!ifa->ifa_addr || ifa->ifa_flags & IFF_LOOPBACK || !(ifa->ifa_flags & IFF_UP))
			continue;
		failed = ms_watch_probe_addr(srv, ifa->ifa_addr, refused);
		refused = failed ? failed : refused;
	}
	freeifaddrs(list);
}

static bool ms_watch_present(const struct ibv_context *verbs)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/infiniband_verbs/%.64s", verbs->device->dev_name);
	return !access(path, F_OK) || errno != ENOENT;
}

void ms_watch_check(struct ms_server *srv)
{
	struct ms_watch *w, *next;

	for (w = srv->listening.watches; w; w = next) {
		next = w->next;
		if (!ms_watch_present(w->verbs))
			ms_watch_gone(srv, w->verbs, "device is no longer there");
	}
}

void ms_watch_close(struct ms_server *srv)
{
	struct ms_watch *w;

	while ((w = srv->listening.watches)) {
		srv->listening.watches = w->next;
		rdma_destroy_id(w->sentinel);
		free(w);
	}
}
