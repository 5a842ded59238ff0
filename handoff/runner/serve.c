// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * krcore-handoff serve: one connection, one function.
 *
 * The runner reads the first line of a connection and nothing behind it; the function has the
 * connection as standard input and output. When it is closed by the caller, the function gets
 * an end of file and some seconds to end by itself; when the function ends, the connection does.
 *
 * No key is asked for, so that callers get nothing without bounds: connections from one address
 * are a share of all, a first line has to come soon, and functions wait for their callers only so
 * long (function.h). All addresses of this node are one: a program here can take any of them.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
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
#define KH_NO_FILES_MS 500 /* without accepting, when there are no descriptors or no memory */
#define KH_FILES 64 /* descriptors beside those of connections */
#define KH_OWN_MS 5000 /* before this node's addresses are asked for again */
#define KH_NEVER UINT64_MAX

/**
 * struct kh_slot - A connection.
 * @fd: it; -1 if the slot is free.
 * @pid: of its function; 0 as long as there is none.
 * @deadline: when to end it, by kh_now().
 * @gone: the caller has closed it.
 * @from: address of the caller, as an IPv6 address; of IPv6 the network alone, its first 64 bits;
 *	of this node always the same.
 * @cgroup: of the function.
 * @line: what came of the first line.
 * @len: how much that is.
 */
struct kh_slot {
	int fd;
	pid_t pid;
	uint64_t deadline;
	bool gone;
	struct in6_addr from;
	char cgroup[KH_PATH_BYTES];
	char line[KH_LINE_BYTES];
	size_t len;
};

/**
 * struct kh_server - A runner.
 * @box: what its functions run in.
 * @slots: connections, @nr of them.
 * @polled: for poll(): signals, listener, and one for each slot.
 * @nr: how many slots.
 * @accept_at: when to accept connections again, by kh_now(); 0 if they are.
 * @own: addresses of this node, as they were last known; NULL if they were not yet.
 * @own_end: when to ask for them again, by kh_now().
 * @ending: no more connections; the functions are being killed.
 */
struct kh_server {
	struct kh_box box;
	struct kh_slot *slots;
	struct pollfd *polled;
	unsigned int nr;
	uint64_t accept_at;
	struct ifaddrs *own;
	uint64_t own_end;
	bool ending;
};

static void kh_close(struct kh_slot *slot)
{
	close(slot->fd);
	slot->fd = -1;
	slot->pid = 0;
	slot->gone = false;
	slot->len = 0;
}

/* A caller that is gone does not hear it. No line says so, or strangers would decide how many. */
static void kh_refuse(struct kh_slot *slot, const char *text)
{
	struct kh_reply reply = { .kind = KH_FAIL };
	char line[KH_LINE_BYTES];
	int len;

	snprintf(reply.text, sizeof(reply.text), "%s", text);
	len = kh_reply_format(&reply, line);
	(void)send(slot->fd, line, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT);
	kh_close(slot);
}

static void kh_start_function(struct kh_server *server, struct kh_slot *slot)
{
	struct kh_start start;
	char text[KH_LINE_BYTES];
	pid_t pid;

	if (kh_start_parse(slot->line, &start)) {
		kh_refuse(slot, "not 'start NAME ARGUMENT...'");
		return;
	}
	pid = kh_box_start(&server->box, &start, slot->fd, slot->cgroup);
	if (pid < 0) {
		snprintf(text, sizeof(text), "starting the function: %s: %s", start.name,
			 strerror(-pid));
		kh_refuse(slot, text);
		return;
	}
	slot->pid = pid;
	slot->deadline = KH_NEVER;
}

/*
 * What there is of the first line, and nothing behind it: that is the function's. All of a line
 * that is not whole is taken, so that poll() does not say again and again that it is there.
 */
static void kh_first_line(struct kh_server *server, struct kh_slot *slot)
{
	char *at = slot->line + slot->len, *end = NULL;
	ssize_t got = recv(slot->fd, at, sizeof(slot->line) - slot->len, MSG_PEEK | MSG_DONTWAIT);

	if (got > 0) {
		end = memchr(at, '\n', (size_t)got);
		if (end)
			got = end - at + 1;
		got = recv(slot->fd, at, (size_t)got, MSG_DONTWAIT);
	}
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		kh_close(slot);
		return;
	}
	slot->len += (size_t)got;
	if (end && end < slot->line + slot->len) {
		*end = '\0';
		kh_start_function(server, slot);
	} else if (slot->len == sizeof(slot->line)) {
		kh_refuse(slot, "the line is too long");
	}
}

/* As an IPv6 address. */
static struct in6_addr kh_plain(const struct sockaddr *addr)
{
	struct in6_addr plain = { .s6_addr = { [10] = 0xff, [11] = 0xff } };

	if (addr->sa_family == AF_INET6)
		return ((const struct sockaddr_in6 *)(const void *)addr)->sin6_addr;
	if (addr->sa_family == AF_INET)
		memcpy(&plain.s6_addr[12],
		       &((const struct sockaddr_in *)(const void *)addr)->sin_addr, 4);
	return plain;
}

/* Whether an address is one of this node; those that it had some seconds ago count. */
static bool kh_is_own(struct kh_server *server, const struct in6_addr *addr)
{
	const struct ifaddrs *own;
	struct ifaddrs *now;

	if (IN6_IS_ADDR_LOOPBACK(addr) || (IN6_IS_ADDR_V4MAPPED(addr) && addr->s6_addr[12] == 127))
		return true;
	if (kh_now() >= server->own_end && !getifaddrs(&now)) {
		freeifaddrs(server->own);
		server->own = now;
		server->own_end = kh_now() + KH_OWN_MS * KH_NS_PER_MS;
	}
	for (own = server->own; own; own = own->ifa_next) {
		struct in6_addr one = in6addr_any;

		if (own->ifa_addr &&
		    (own->ifa_addr->sa_family == AF_INET || own->ifa_addr->sa_family == AF_INET6))
			one = kh_plain(own->ifa_addr);
		if (IN6_ARE_ADDR_EQUAL(&one, addr))
			return true;
	}
	return false;
}

/* What connections of one caller have in common. */
static struct in6_addr kh_from(struct kh_server *server, const struct sockaddr_storage *addr)
{
	struct in6_addr from = kh_plain((const struct sockaddr *)addr);

	if (kh_is_own(server, &from))
		return in6addr_loopback;
	if (!IN6_IS_ADDR_V4MAPPED(&from)) /* one address of a network stands for all of it */
		memset(&from.s6_addr[8], 0, 8);
	return from;
}

/* A place for a connection. Return: why there is none, or NULL. */
static const char *kh_place(struct kh_server *server, const struct kh_slot *one)
{
	unsigned int i, same = 0;
	struct kh_slot *place = NULL;

	for (i = 0; i < server->nr; i++) {
		if (server->slots[i].fd < 0)
			place = place ? place : &server->slots[i];
		else
			same += !memcmp(&server->slots[i].from, &one->from, sizeof(one->from));
	}
	if (!place)
		return "as many functions run as --most allows";
	if (same >= server->box.args->share)
		return "as many functions run for this address as --share allows";
	*place = *one;
	return NULL;
}

static void kh_accept(struct kh_server *server, int listener)
{
	struct sockaddr_storage addr = { 0 };
	socklen_t len = sizeof(addr);
	int fd = accept4(listener, (struct sockaddr *)&addr, &len, SOCK_CLOEXEC), on = 1;
	struct kh_slot one = { .fd = fd };
	const char *why;

	if (fd < 0) {
		/* it stays readable: no use to ask at once */
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			server->accept_at = kh_now() + KH_NO_FILES_MS * KH_NS_PER_MS;
		return;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	one.deadline = kh_now() + KH_FIRST_LINE_MS * KH_NS_PER_MS;
	one.from = kh_from(server, &addr);
	why = kh_place(server, &one);
	if (why)
		kh_refuse(&one, why);
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
	if (info.ssi_signo == SIGCHLD)
		return;
	server->ending = true; /* from here on no function begins */
	for (i = 0; i < server->nr; i++) {
		struct kh_slot *slot = &server->slots[i];

		if (slot->fd >= 0 && slot->pid)
			kh_box_kill(slot->pid, slot->cgroup);
		else if (slot->fd >= 0)
			kh_refuse(slot, "the runner ends");
	}
}

/* Fill in what to poll for. Return: how long, in ms; -1 for ever, -2 if there is no slot left. */
static int kh_prepare(struct kh_server *server)
{
	uint64_t first = KH_NEVER, now = kh_now();
	bool any = false;
	unsigned int i;

	if (server->accept_at && server->accept_at <= now)
		server->accept_at = 0;
	if (server->accept_at)
		first = server->accept_at;
	server->polled[1].events = server->ending || server->accept_at ? 0 : POLLIN;
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
		if ((server->polled[1].revents & POLLIN) && !server->ending)
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

/* Memory and descriptors for connections. Return: 0, or an exit status. */
static int kh_slots(struct kh_server *server, unsigned int nr)
{
	struct rlimit files;
	unsigned int i;

	/* poll() looks at no more either */
	if (getrlimit(RLIMIT_NOFILE, &files))
		return kh_fail("descriptors");
	if (files.rlim_cur < nr + KH_FILES) {
		files.rlim_cur = nr + KH_FILES;
		if (files.rlim_max < files.rlim_cur)
			files.rlim_max = files.rlim_cur;
		if (setrlimit(RLIMIT_NOFILE, &files))
			return kh_fail("descriptors for --most");
	}
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
	freeifaddrs(server.own);
	free(server.slots);
	free(server.polled);
	return status;
}
