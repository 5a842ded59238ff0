// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What functions of the bench that do not use krcore share: see handoff_peer.h.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/handoff_peer.h"
#include "bench/keys.h"
#include "handoff/lib/function.h"

#define BN_BACKLOG 256

static void (*bn_each)(int fd);
static int bn_listener = -1;
static char bn_where[64];

int bn_room(struct bn_store_room *room, size_t bytes)
{
	room->bytes = bytes;
	if (bytes <= room->room)
		return 0;
	if (room->at)
		munmap(room->at, room->room);
	room->room = (bytes + 4095) & ~(size_t)4095;
	room->at = mmap(NULL, room->room, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (room->at == MAP_FAILED)
		bn_die("memory");
	return 1;
}

static void *bn_peer_thread(void *arg)
{
	bn_each((int)(intptr_t)arg);
	return NULL;
}

static void *bn_peer_accept(void *arg)
{
	pthread_t thread;
	int fd, on = 1;

	(void)arg;
	for (;;) {
		fd = accept4(bn_listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			bn_die("accept");
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		if (pthread_create(&thread, NULL, bn_peer_thread, (void *)(intptr_t)fd))
			bn_die("thread");
		pthread_detach(thread);
	}
}

void bn_peer_serve(void (*each)(int fd), char *ret_where)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	const char *address = getenv(KH_ENV_ADDRESS);
	socklen_t len = sizeof(at);
	pthread_t thread;

	if (bn_listener < 0) {
		bn_each = each;
		bn_listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (!address || inet_pton(AF_INET, address, &at.sin_addr) != 1 || bn_listener < 0 ||
		    bind(bn_listener, (struct sockaddr *)&at, sizeof(at)) ||
		    listen(bn_listener, BN_BACKLOG) ||
		    getsockname(bn_listener, (struct sockaddr *)&at, &len))
			bn_die("listening");
		snprintf(bn_where, sizeof(bn_where), "%s:%u", address, ntohs(at.sin_port));
		if (pthread_create(&thread, NULL, bn_peer_accept, NULL))
			bn_die("thread");
	}
	memcpy(ret_where, bn_where, sizeof(bn_where));
}

int bn_peer_connect(const char *where)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	const char *port = strchr(where, ':');
	char address[64];
	int fd, on = 1;

	if (!port || (size_t)(port - where) >= sizeof(address))
		bn_die("no address");
	memcpy(address, where, (size_t)(port - where));
	address[port - where] = '\0';
	to.sin_port = htons((uint16_t)bn_number(port + 1, 1, 65535, "PORT"));
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (inet_pton(AF_INET, address, &to.sin_addr) != 1 || fd < 0 ||
	    connect(fd, (struct sockaddr *)&to, sizeof(to)))
		bn_die("connecting");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

void bn_peer_get(int fd, void *to, size_t bytes)
{
	uint8_t *at = to;
	ssize_t got;

	for (; bytes; at += got, bytes -= (size_t)got) {
		got = recv(fd, at, bytes, MSG_WAITALL);
		if (got <= 0)
			bn_die("receiving");
	}
}

int bn_peer_put(int fd, const void *from, size_t bytes)
{
	const uint8_t *at = from;
	ssize_t sent;

	for (; bytes; at += sent, bytes -= (size_t)sent) {
		sent = send(fd, at, bytes, MSG_NOSIGNAL);
		if (sent < 0)
			return -1;
	}
	return 0;
}

void bn_peer_release(void *state)
{
	(void)state;
}

const char *bn_peer_why(void *state)
{
	(void)state;
	return "failed";
}
