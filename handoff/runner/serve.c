// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * krcore-handoff serve: one connection, one function.
 *
 * The runner reads the first line of a connection and nothing behind it; the function has the
 * connection as standard input and output. When it is closed by the caller, the function gets
 * an end of file and some seconds to end by itself; when the function ends, the connection does.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "handoff/lib/function.h"
#include "handoff/runner/runner.h"

#define KH_NS_PER_MS 1000000ULL
#define KH_FIRST_LINE_MS 5000 /* for a connection to say what it wants */
#define KH_GRACE_MS 5000 /* for a function to end when its caller is gone */
#define KH_BACKLOG 256
#define KH_NEVER UINT64_MAX

/**
 * struct kh_slot - A connection.
 * @fd: it; -1 if the slot is free.
 * @pid: of its function; 0 as long as there is none.
 * @deadline: when to end it, by kh_now().
 * @gone: the caller has closed it.
 * @cgroup: of the function.
 */
struct kh_slot {
	int fd;
	pid_t pid;
	uint64_t deadline;
	bool gone;
	char cgroup[KH_PATH_BYTES];
};

/**
 * struct kh_server - A runner.
 * @box: what its functions run in.
 * @slots: connections, @nr of them.
 * @polled: for poll(): signals, listener, and one for each slot.
 * @nr: how many slots.
 * @ending: no more connections; the functions are being killed.
 */
struct kh_server {
	struct kh_box box;
	struct kh_slot *slots;
	struct pollfd *polled;
	unsigned int nr;
	bool ending;
};

static void kh_close(struct kh_slot *slot)
{
	close(slot->fd);
	slot->fd = -1;
	slot->pid = 0;
	slot->gone = false;
}

static void kh_refuse(struct kh_slot *slot, const char *text)
{
	struct kh_reply reply = { .kind = KH_FAIL };
	char line[KH_LINE_BYTES];
	int len;

	snprintf(reply.text, sizeof(reply.text), "%s", text);
	len = kh_reply_format(&reply, line);
	if (send(slot->fd, line, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT) != len)
		fprintf(stderr, "krcore-handoff: a caller did not hear: %s", line);
	kh_close(slot);
}

static void kh_start_function(struct kh_server *server, struct kh_slot *slot, const char *line)
{
	struct kh_start start;
	char text[96];
	pid_t pid;

	if (kh_start_parse(line, &start)) {
		kh_refuse(slot, "not 'start NAME ARGUMENT...'");
		return;
	}
	pid = kh_box_start(&server->box, &start, slot->fd, slot->cgroup);
	if (pid < 0) {
		snprintf(text, sizeof(text), "starting the function: %s", strerror(-pid));
		kh_refuse(slot, text);
		return;
	}
	slot->pid = pid;
	slot->deadline = KH_NEVER;
}

/* The first line, if it is there whole; what follows is the function's. */
static void kh_first_line(struct kh_server *server, struct kh_slot *slot)
{
	char line[KH_LINE_BYTES], *end;
	ssize_t got = recv(slot->fd, line, sizeof(line), MSG_PEEK | MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		kh_close(slot);
		return;
	}
	end = memchr(line, '\n', (size_t)got);
	if (!end) {
		if (got == (ssize_t)sizeof(line))
			kh_refuse(slot, "the line is too long");
		return;
	}
	*end = '\0';
	if (recv(slot->fd, line, (size_t)(end - line) + 1, MSG_DONTWAIT) != end - line + 1) {
		kh_refuse(slot, "the first line was not to be read");
		return;
	}
	*end = '\0';
	kh_start_function(server, slot, line);
}

static void kh_accept(struct kh_server *server, int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC), on = 1;
	struct kh_slot none = { .fd = fd };
	unsigned int i;

	if (fd < 0)
		return;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	for (i = 0; i < server->nr; i++)
		if (server->slots[i].fd < 0) {
			server->slots[i] = none;
			server->slots[i].deadline = kh_now() + KH_FIRST_LINE_MS * KH_NS_PER_MS;
			return;
		}
	kh_refuse(&none, "as many functions run as --most allows");
}

static void kh_reap(struct kh_server *server)
{
	unsigned int i;
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		for (i = 0; i < server->nr; i++)
			if (server->slots[i].fd >= 0 && server->slots[i].pid == pid) {
				kh_box_end(server->slots[i].cgroup);
				kh_close(&server->slots[i]);
			}
}

static void kh_signals(struct kh_server *server, int fd)
{
	struct signalfd_siginfo info;
	unsigned int i;

	if (read(fd, &info, sizeof(info)) != sizeof(info))
		return;
	kh_reap(server);
	if (info.ssi_signo == SIGCHLD || server->ending)
		return;
	server->ending = true;
	for (i = 0; i < server->nr; i++)
		if (server->slots[i].fd >= 0 && server->slots[i].pid)
			kh_box_kill(server->slots[i].pid, server->slots[i].cgroup);
}

/* Fill in what to poll for. Return: how long, in ms; -1 for ever, -2 if there is no slot left. */
static int kh_prepare(struct kh_server *server)
{
	uint64_t first = KH_NEVER, now = kh_now();
	bool any = false;
	unsigned int i;

	server->polled[1].events = server->ending ? 0 : POLLIN;
	for (i = 0; i < server->nr; i++) {
		struct kh_slot *slot = &server->slots[i];

		server->polled[i + 2].fd = slot->gone ? -1 : slot->fd;
		server->polled[i + 2].events = slot->pid ? POLLRDHUP : POLLIN;
		server->polled[i + 2].revents = 0;
		if (slot->fd >= 0 && slot->deadline < first)
			first = slot->deadline;
		any |= slot->fd >= 0 && slot->pid;
	}
	if (server->ending && !any)
		return -2;
	if (first == KH_NEVER)
		return -1;
	return first > now ? (int)((first - now) / KH_NS_PER_MS) + 1 : 0;
}

static void kh_look(struct kh_server *server, unsigned int i)
{
	short events = server->polled[i + 2].revents;
	struct kh_slot *slot = &server->slots[i];

	if (slot->fd < 0)
		return;
	if (slot->pid && (events & (POLLRDHUP | POLLHUP | POLLERR))) {
		slot->gone = true;
		slot->deadline = kh_now() + KH_GRACE_MS * KH_NS_PER_MS;
	} else if (!slot->pid && events) {
		kh_first_line(server, slot);
	}
	if (slot->fd < 0 || slot->deadline > kh_now())
		return;
	if (!slot->pid) {
		kh_refuse(slot, "no line came in time");
		return;
	}
	kh_box_kill(slot->pid, slot->cgroup);
	slot->deadline = KH_NEVER;
}

static int kh_loop(struct kh_server *server)
{
	unsigned int i;
	int wait;

	while ((wait = kh_prepare(server)) >= -1) {
		if (poll(server->polled, server->nr + 2, wait) < 0 && errno != EINTR)
			return kh_fail("poll");
		if (server->polled[0].revents)
			kh_signals(server, server->polled[0].fd);
		if (server->polled[1].revents & POLLIN)
			kh_accept(server, server->polled[1].fd);
		for (i = 0; i < server->nr; i++)
			kh_look(server, i);
	}
	return 0;
}

static int kh_listen(const char *host, const char *port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
				  .ai_flags = AI_NUMERICHOST | AI_PASSIVE };
	struct addrinfo *found;
	int fd, on = 1;

	if (getaddrinfo(host, port, &hints, &found)) {
		fprintf(stderr, "krcore-handoff: '%s' is no IP address with a port\n", host);
		return -1;
	}
	fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(fd, found->ai_addr, found->ai_addrlen) || listen(fd, KH_BACKLOG)) {
		kh_fail(host);
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	freeaddrinfo(found);
	return fd;
}

static int kh_signal_fd(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Memory for connections. Return: 0, or an exit status. */
static int kh_slots(struct kh_server *server, unsigned int nr)
{
	unsigned int i;

	server->nr = nr;
	server->slots = calloc(nr, sizeof(*server->slots));
	server->polled = calloc(nr + 2, sizeof(*server->polled));
	if (!server->slots || !server->polled)
		return kh_fail("memory");
	for (i = 0; i < nr; i++)
		server->slots[i].fd = -1;
	return 0;
}

int kh_serve(struct kh_args *args)
{
	struct kh_server server = { .box = { .args = args } };
	char port[8];
	int status;

	if (args->directory[0] != '/' || kh_address(args->argv[0], server.box.address, port)) {
		fprintf(stderr, "krcore-handoff: serve: an absolute folder of functions, and "
				"ADDRESS[:PORT]\n");
		return KH_USAGE;
	}
	status = kh_slots(&server, args->most);
	if (status)
		goto out;
	status = KH_FAILED;
	server.polled[0] = (struct pollfd){ .fd = kh_signal_fd(), .events = POLLIN };
	server.polled[1].fd = kh_listen(server.box.address, port);
	if (server.polled[0].fd < 0 || server.polled[1].fd < 0)
		goto out;
	status = kh_box_init(&server.box);
	if (!status) {
		printf("serving functions of %s at %s port %s; interrupt to end\n", args->directory,
		       server.box.address, port);
		fflush(stdout);
		status = kh_loop(&server);
		kh_box_done(&server.box);
	}
out:
	free(server.slots);
	free(server.polled);
	return status;
}
