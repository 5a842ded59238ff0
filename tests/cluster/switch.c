// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * switch.c - Ethernet switch of the virtual cluster, on UNIX datagram sockets.
 *
 * One port for each guest: frames come in on PATH.pN (QEMU's "remote" address)
 * and go out to PATH.gN (QEMU's "local" one), so that nothing ever touches the
 * host's network. Learns MAC addresses, floods what it does not know. A control
 * socket PATH.ctl takes one text command a datagram and answers to its sender;
 * with it a test loses, delays, disorders or cuts traffic, reproducibly by a seed,
 * and asks what of RDMA came from a guest.
 *
 * One thread, one poll loop. Memory is bounded: QUEUE_FRAMES frames a port, and a
 * full queue drops, as a real switch would.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "switch_rdma.h"

#define MAX_PORTS 16
#define QUEUE_FRAMES 1024
#define MAX_FRAME_BYTES 9216
#define MAC_ENTRIES 256
#define BATCH_FRAMES 32
#define MAX_DELAY_US 10000000
#define NS_PER_US 1000ull

struct frame {
	uint64_t due_ns;
	uint32_t n_bytes;
	uint8_t bytes[];
};

struct port {
	int rx_fd;
	int tx_fd; /* -1: the guest is not there yet */
	struct sockaddr_un guest;
	struct frame *queue[QUEUE_FRAMES];
	unsigned int head, n_queued;
	bool blocked; /* the guest's socket is full */
	bool down;
	unsigned int loss_permille; /* of frames towards this port */
	unsigned int delay_us; /* of frames towards this port */
	unsigned int twice_permille, late_permille; /* of frames from this port */
	struct frame *late; /* comes behind the next frame from this port */
	bool cut[MAX_PORTS]; /* no frames from this port to that one */
	uint64_t rx_frames, tx_frames, lost_frames, overflow_frames;
	struct rdma_port rdma; /* what comes from this port */
};

struct mac_entry {
	uint8_t mac[6];
	uint8_t port;
	bool valid;
};

static struct port ports[MAX_PORTS];
static unsigned int n_ports;
static struct mac_entry macs[MAC_ENTRIES];
static uint64_t random_state = 1;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

/* xorshift64*: small, seedable, good enough to drop packets. */
static uint32_t random_next(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return (uint32_t)((random_state * 0x2545f4914f6cdd1dull) >> 32);
}

static struct mac_entry *mac_slot(const uint8_t *mac)
{
	uint32_t hash = 2166136261u;
	int i;

	for (i = 0; i < 6; i++)
		hash = (hash ^ mac[i]) * 16777619u;
	return &macs[hash % MAC_ENTRIES];
}

static void mac_learn(const uint8_t *mac, unsigned int port)
{
	struct mac_entry *entry = mac_slot(mac);

	if (mac[0] & 1)
		return;
	memcpy(entry->mac, mac, 6);
	entry->port = (uint8_t)port;
	entry->valid = true;
}

/* Returns the port that owns @mac, or -1: flood. */
static int mac_lookup(const uint8_t *mac)
{
	const struct mac_entry *entry = mac_slot(mac);

	if ((mac[0] & 1) || !entry->valid || memcmp(entry->mac, mac, 6))
		return -1;
	return entry->port;
}

static void port_enqueue(unsigned int from, unsigned int to, const uint8_t *bytes, size_t n_bytes)
{
	struct port *port = &ports[to];
	struct frame *frame;

	if (port->down || ports[from].cut[to])
		return;
	if (port->loss_permille && random_next() % 1000 < port->loss_permille) {
		port->lost_frames++;
		return;
	}
	frame = port->n_queued < QUEUE_FRAMES ? malloc(sizeof(*frame) + n_bytes) : NULL;
	if (!frame) {
		port->overflow_frames++;
		return;
	}
	frame->due_ns = port->delay_us ? now_ns() + port->delay_us * NS_PER_US : 0;
	frame->n_bytes = (uint32_t)n_bytes;
	memcpy(frame->bytes, bytes, n_bytes);
	port->queue[(port->head + port->n_queued++) % QUEUE_FRAMES] = frame;
}

static void port_dequeue(struct port *port)
{
	free(port->queue[port->head]);
	port->head = (port->head + 1) % QUEUE_FRAMES;
	port->n_queued--;
}

/* A socket of its own for sending: connected, so that poll tells when the guest takes more. */
static bool port_connect(struct port *port)
{
	int fd;

	if (port->tx_fd >= 0)
		return true;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	if (connect(fd, (struct sockaddr *)&port->guest, sizeof(port->guest)) < 0) {
		close(fd);
		return false;
	}
	port->tx_fd = fd;
	return true;
}

static void port_disconnect(struct port *port)
{
	close(port->tx_fd);
	port->tx_fd = -1;
}

static void port_flush(struct port *port)
{
	struct frame *frame;
	bool again;

	port->blocked = false;
	while (port->n_queued) {
		frame = port->queue[port->head];
		if (frame->due_ns && frame->due_ns > now_ns())
			return;
		for (again = true; port_connect(port); again = false) {
			if (send(port->tx_fd, frame->bytes, frame->n_bytes, 0) >= 0) {
				port->tx_frames++;
				break;
			}
			if (errno == EAGAIN || errno == EWOULDBLOCK) {
				port->blocked = true;
				return;
			}
			/* the guest went away; a new one may have taken its path */
			port_disconnect(port);
			if (!again)
				break;
		}
		port_dequeue(port);
	}
}

/* A frame from port @from, to whoever it is for. */
static void port_pass(unsigned int from, const uint8_t *bytes, size_t n)
{
	int owner = mac_lookup(bytes);
	unsigned int to;

	for (to = 0; to < n_ports; to++)
		if (to != from && (owner < 0 || owner == (int)to))
			port_enqueue(from, to, bytes, n);
}

static void port_pass_late(unsigned int from)
{
	struct frame *late = ports[from].late;

	if (!late)
		return;
	ports[from].late = NULL;
	port_pass(from, late->bytes, late->n_bytes);
	free(late);
}

/* Whether the frame is kept, to come behind the next one. */
static bool port_keep(struct port *port, const uint8_t *bytes, size_t n)
{
	if (port->late || !port->late_permille || random_next() % 1000 >= port->late_permille)
		return false;
	port->late = malloc(sizeof(*port->late) + n);
	if (!port->late)
		return false;
	port->late->n_bytes = (uint32_t)n;
	memcpy(port->late->bytes, bytes, n);
	return true;
}

static void port_receive(unsigned int from)
{
	static uint8_t bytes[MAX_FRAME_BYTES];
	struct port *port = &ports[from];
	unsigned int i;
	ssize_t n;
	int owner;

	for (i = 0; i < BATCH_FRAMES; i++) {
		n = recv(port->rx_fd, bytes, sizeof(bytes), MSG_TRUNC);
		if (n < 0)
			return;
		if (n < 14 || n > MAX_FRAME_BYTES || port->down)
			continue;
		port->rx_frames++;
		mac_learn(bytes + 6, from);
		owner = mac_lookup(bytes);
		if (owner >= 0)
			rdma_see(&port->rdma, (unsigned int)owner, bytes, (size_t)n);
		if (port_keep(port, bytes, (size_t)n))
			continue;
		port_pass(from, bytes, (size_t)n);
		if (port->twice_permille && random_next() % 1000 < port->twice_permille)
			port_pass(from, bytes, (size_t)n);
		port_pass_late(from);
	}
}

static bool valid_port(unsigned int port)
{
	return port < n_ports;
}

static int command_cut(unsigned int a, unsigned int b, bool cut)
{
	if (!valid_port(a) || !valid_port(b))
		return -ERANGE;
	ports[a].cut[b] = cut;
	ports[b].cut[a] = cut;
	return 0;
}

static void command_reset(void)
{
	unsigned int i;

	for (i = 0; i < n_ports; i++) {
		ports[i].loss_permille = 0;
		ports[i].delay_us = 0;
		ports[i].twice_permille = 0;
		ports[i].late_permille = 0;
		port_pass_late(i);
		ports[i].down = false;
		memset(ports[i].cut, 0, sizeof(ports[i].cut));
	}
}

static int command_stats(char *reply, size_t size)
{
	size_t used = 0;
	unsigned int i;

	for (i = 0; i < n_ports && used < size; i++)
		used += (size_t)snprintf(
			reply + used, size - used,
			"port %u rx %llu tx %llu lost %llu overflow %llu queued %u\n", i,
			(unsigned long long)ports[i].rx_frames,
			(unsigned long long)ports[i].tx_frames,
			(unsigned long long)ports[i].lost_frames,
			(unsigned long long)ports[i].overflow_frames, ports[i].n_queued);
	return 0;
}

/* Executes one command; returns 0 or a negative errno, and text in @reply. */
static int command_run(const char *text, char *reply, size_t size)
{
	unsigned long long number;
	unsigned int a, b, c;

	snprintf(reply, size, "ok\n");
	if (sscanf(text, "loss %u %u", &a, &b) == 2) {
		if (!valid_port(a) || b > 1000)
			return -ERANGE;
		ports[a].loss_permille = b;
	} else if (sscanf(text, "delay %u %u", &a, &b) == 2) {
		if (!valid_port(a) || b > MAX_DELAY_US)
			return -ERANGE;
		ports[a].delay_us = b;
	} else if (sscanf(text, "disorder %u %u %u", &a, &b, &c) == 3) {
		if (!valid_port(a) || b > 1000 || c > 1000)
			return -ERANGE;
		ports[a].twice_permille = b;
		ports[a].late_permille = c;
	} else if (sscanf(text, "rdma %u", &a) == 1) {
		if (!valid_port(a))
			return -ERANGE;
		rdma_show(&ports[a].rdma, reply, size);
	} else if (!strcmp(text, "forget")) {
		for (a = 0; a < n_ports; a++)
			ports[a].rdma = (struct rdma_port){ 0 };
	} else if (sscanf(text, "cut %u %u", &a, &b) == 2) {
		return command_cut(a, b, true);
	} else if (sscanf(text, "join %u %u", &a, &b) == 2) {
		return command_cut(a, b, false);
	} else if (sscanf(text, "down %u", &a) == 1 || sscanf(text, "up %u", &a) == 1) {
		if (!valid_port(a))
			return -ERANGE;
		ports[a].down = text[0] == 'd';
	} else if (sscanf(text, "seed %llu", &number) == 1) {
		random_state = number ? number : 1;
	} else if (!strcmp(text, "reset")) {
		command_reset();
	} else if (!strcmp(text, "stats")) {
		return command_stats(reply, size);
	} else {
		return -EINVAL;
	}
	return 0;
}

static void control_receive(int fd)
{
	struct sockaddr_un sender;
	socklen_t len = sizeof(sender);
	char text[256], reply[4096];
	ssize_t n;
	int ret;

	n = recvfrom(fd, text, sizeof(text) - 1, 0, (struct sockaddr *)&sender, &len);
	if (n < 0)
		return;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	ret = command_run(text, reply, sizeof(reply));
	if (ret < 0)
		snprintf(reply, sizeof(reply), "error: %s: %s\n", text, strerror(-ret));
	if (len > sizeof(sa_family_t))
		sendto(fd, reply, strlen(reply), 0, (struct sockaddr *)&sender, len);
}

static int unix_address(struct sockaddr_un *address, const char *base, const char *suffix)
{
	int n;

	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	n = snprintf(address->sun_path, sizeof(address->sun_path), "%s.%s", base, suffix);
	return n < (int)sizeof(address->sun_path) ? 0 : -ENAMETOOLONG;
}

static int bound_socket(const char *base, const char *suffix)
{
	struct sockaddr_un address;
	int fd;

	if (unix_address(&address, base, suffix) < 0) {
		fprintf(stderr, "switch: path too long: %s.%s\n", base, suffix);
		exit(1);
	}
	unlink(address.sun_path);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		fprintf(stderr, "switch: %s: %s\n", address.sun_path, strerror(errno));
		exit(1);
	}
	return fd;
}

/* Nanoseconds until the next delayed frame is due, or -1: nothing waits. */
static int64_t next_due_ns(void)
{
	int64_t wait, best = -1;
	unsigned int i;

	for (i = 0; i < n_ports; i++) {
		if (!ports[i].n_queued || ports[i].blocked)
			continue;
		wait = (int64_t)(ports[i].queue[ports[i].head]->due_ns - now_ns());
		if (wait < 0)
			wait = 0;
		if (best < 0 || wait < best)
			best = wait;
	}
	return best;
}

static void switch_loop(int control_fd)
{
	struct pollfd fds[1 + 2 * MAX_PORTS];
	struct timespec timeout;
	unsigned int i;
	int64_t wait;

	for (;;) {
		fds[0] = (struct pollfd){ .fd = control_fd, .events = POLLIN };
		for (i = 0; i < n_ports; i++) {
			fds[1 + 2 * i] = (struct pollfd){ .fd = ports[i].rx_fd, .events = POLLIN };
			fds[2 + 2 * i] =
				(struct pollfd){ .fd = ports[i].blocked ? ports[i].tx_fd : -1,
						 .events = POLLOUT };
		}
		wait = next_due_ns();
		timeout.tv_sec = wait / 1000000000;
		timeout.tv_nsec = wait % 1000000000;
		if (ppoll(fds, 1 + 2 * n_ports, wait < 0 ? NULL : &timeout, NULL) < 0 &&
		    errno != EINTR) {
			perror("switch: poll");
			exit(1);
		}
		if (fds[0].revents)
			control_receive(control_fd);
		for (i = 0; i < n_ports; i++)
			if (fds[1 + 2 * i].revents)
				port_receive(i);
		for (i = 0; i < n_ports; i++)
			port_flush(&ports[i]);
	}
}

int main(int argc, char **argv)
{
	char suffix[16];
	unsigned int i;
	int control_fd;

	if (argc != 3 || atoi(argv[2]) < 1 || atoi(argv[2]) > MAX_PORTS) {
		fprintf(stderr,
			"usage: switch PATH PORTS\n"
			"Ethernet switch between PATH.pN (in) and PATH.gN (out), N from 0 to\n"
			"PORTS - 1, at most %d. Commands on PATH.ctl: loss PORT PERMILLE,\n"
			"delay PORT MICROSECONDS, disorder PORT TWICE_PERMILLE LATE_PERMILLE,\n"
			"cut A B, join A B, down PORT, up PORT, seed NUMBER, reset, stats,\n"
			"rdma PORT, forget (what was counted of RDMA).\n",
			MAX_PORTS);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	n_ports = (unsigned int)atoi(argv[2]);
	for (i = 0; i < n_ports; i++) {
		snprintf(suffix, sizeof(suffix), "g%u", i);
		if (unix_address(&ports[i].guest, argv[1], suffix) < 0) {
			fprintf(stderr, "switch: path too long: %s\n", argv[1]);
			return 1;
		}
		snprintf(suffix, sizeof(suffix), "p%u", i);
		ports[i].rx_fd = bound_socket(argv[1], suffix);
		ports[i].tx_fd = -1;
	}
	control_fd = bound_socket(argv[1], "ctl");
	switch_loop(control_fd);
}
