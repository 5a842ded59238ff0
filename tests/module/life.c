// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * krc_ioctl PEER life: the file in the hands of several: passed on over a socket, kept
 * over exec with requests under way, queues and the file closed by one thread while
 * another posts.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/module/dev.h"

#define LIFE_ROUNDS 40
#define LIFE_LARGE 65536

/* ---- passed on ---- */

/* A message of one byte that has room for a file descriptor. */
struct life_message {
	struct msghdr msg;
	struct iovec iov;
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
	char byte;
};

static struct msghdr *life_message(struct life_message *m)
{
	memset(m, 0, sizeof(*m));
	m->iov = (struct iovec){ &m->byte, 1 };
	m->msg = (struct msghdr){
		.msg_iov = &m->iov,
		.msg_iovlen = 1,
		.msg_control = m->control,
		.msg_controllen = sizeof(m->control),
	};
	return &m->msg;
}

static void life_send_file(int socket, int fd)
{
	struct life_message m;
	struct msghdr *msg = life_message(&m);
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(int));
	if (sendmsg(socket, msg, 0) != 1)
		perror("sendmsg");
}

static int life_receive_file(int socket)
{
	struct life_message m;
	struct msghdr *msg = life_message(&m);
	struct cmsghdr *cmsg;
	int fd = -1;

	if (recvmsg(socket, msg, 0) != 1)
		return -1;
	cmsg = CMSG_FIRSTHDR(msg);
	if (cmsg && cmsg->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(cmsg), sizeof(int));
	return fd;
}

/*
 * A process that never opened the device. The file is all it gets: number of the queue,
 * handle and address of the memory are its parent's, from before the fork.
 */
static int life_stranger(int socket, const struct dev *from, uint32_t queue,
			 const struct krp_wr *wr)
{
	struct dev dev = *from;
	int err;

	dev.fd = life_receive_file(socket);
	if (dev.fd < 0)
		return 2;
	dev.ring = mmap(NULL, dev.map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, dev.fd, 0);
	if (dev.ring == MAP_FAILED)
		return 3;
	dev.cqes = (struct krp_cqe *)((uint8_t *)dev.ring + dev.ring->offset);
	err = dev_do(&dev, queue, wr);
	return err ? 4 : 0;
}

/* The opener ends first; what it opened lives on with the holder of the file. */
static void life_passed_on(const struct dev_peer *peer)
{
	int sockets[2], status = -1;
	pid_t opener, stranger;

	fflush(stdout);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets)) {
		tap(0, "a socket to pass the file on", "%s", strerror(errno));
		return;
	}
	opener = fork();
	if (!opener) {
		struct dev_region local;
		struct krp_wr wr;
		struct dev dev;
		uint32_t queue;

		dev_open_or_die(&dev, 64);
		dev_region_or_die(&dev, 4096, KRP_ACCESS_LOCAL_WRITE, &local);
		queue = dev_connected_or_die(&dev, 16, peer);
		wr = dev_wr(KRP_OP_READ, &local, 0, peer->ro, peer->ro_addr, 4096);
		stranger = fork();
		if (!stranger) {
			close(dev.fd);
			munmap(dev.ring, dev.map_bytes);
			status = life_stranger(sockets[1], &dev, queue, &wr);
			if (write(sockets[1], &status, sizeof(status)) < 0)
				_exit(1);
			_exit(0);
		}
		life_send_file(sockets[0], dev.fd);
		_exit(0);
	}
	waitpid(opener, NULL, 0);
	close(sockets[1]);
	if (read(sockets[0], &status, sizeof(status)) != sizeof(status))
		status = -2;
	close(sockets[0]);
	tap_equal("a process that was given the file may post when its opener is gone", status, 0);
}

/* ---- exec ---- */

static void life_exec(const struct dev_peer *peer)
{
	int status = -1, i;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		struct dev_region local;
		struct krp_wr wrs[16];
		struct dev dev;
		uint32_t queue;

		dev_open_or_die(&dev, 64);
		dev_region_or_die(&dev, LIFE_LARGE, KRP_ACCESS_ALL, &local);
		queue = dev_connected_or_die(&dev, 16, peer);
		for (i = 0; i < 16; i++)
			wrs[i] =
				dev_wr(KRP_OP_READ, &local, 0, peer->rw, peer->rw_addr, LIFE_LARGE);
		if (dev_post(&dev, queue, wrs, 16, NULL) != 16 || fcntl(dev.fd, F_SETFD, 0))
			_exit(2);
		execl("/bin/sleep", "sleep", "0.3", NULL);
		_exit(3);
	}
	waitpid(pid, &status, 0);
	tap_equal("exec with requests under way and the file kept", status, 0);
}

/* ---- close while another thread posts ---- */

struct life_race {
	struct dev dev;
	struct dev_region local;
	const struct dev_peer *peer;
	uint32_t queue;
	_Atomic bool started;
	bool whole_file;
	unsigned long posted;
	int error;
};

static void *life_poster(void *arg)
{
	struct life_race *race = arg;
	struct krp_wr wrs[4];
	int i, ret;

	for (i = 0; i < 4; i++)
		wrs[i] = dev_wr(KRP_OP_READ, &race->local, 0, race->peer->ro, race->peer->ro_addr,
				4096);
	do {
		ret = dev_post(&race->dev, race->queue, wrs, 4, &race->error);
		atomic_store(&race->started, true);
		if (ret > 0)
			race->posted += (unsigned long)ret;
	} while (ret > 0 || race->error == -EAGAIN);
	return NULL;
}

/* Return: completions that came, which the posts cannot be fewer than; -1: no thread. */
static long life_race_once(struct life_race *race, unsigned int round)
{
	pthread_t thread;
	struct krp_cqe cqe;
	long seen = 0;

	atomic_store(&race->started, false);
	race->posted = 0;
	if (pthread_create(&thread, NULL, life_poster, race))
		return -1;
	while (!atomic_load(&race->started))
		usleep(100);
	usleep(krp_mix64(round) % 3000);
	if (race->whole_file)
		close(race->dev.fd);
	else
		dev_queue_close(&race->dev, race->queue);
	pthread_join(thread, NULL);
	while (!race->whole_file && dev_reap(&race->dev, &cqe, 0))
		seen++;
	return seen;
}

static void life_close_queue(const struct dev_peer *peer)
{
	struct life_race race = { .peer = peer };
	unsigned int round, wrong = 0;
	unsigned long posted = 0;
	int strange = 0;
	long seen;

	dev_open_or_die(&race.dev, 4096);
	dev_region_or_die(&race.dev, 4096, KRP_ACCESS_LOCAL_WRITE, &race.local);
	for (round = 0; round < LIFE_ROUNDS; round++) {
		race.queue = dev_connected_or_die(&race.dev, 64, peer);
		seen = life_race_once(&race, round);
		posted += race.posted;
		wrong += seen < 0 || seen > (long)race.posted;
		/* it was found and had been closed, or was not found any more */
		if (race.error != -ENOTCONN && race.error != -ENOENT)
			strange = race.error;
	}
	tap(!wrong, "a queue is closed while another thread posts", "%u of %u rounds wrong", wrong,
	    round);
	tap_equal("the thread is told that it is gone", strange, 0);
	tap(posted > LIFE_ROUNDS, "and it had posted", "%lu", posted);
	dev_close(&race.dev);
}

static void life_close_file(const struct dev_peer *peer)
{
	struct life_race race = { .peer = peer, .whole_file = true };
	unsigned int round, wrong = 0;

	for (round = 0; round < LIFE_ROUNDS; round++) {
		dev_open_or_die(&race.dev, 64);
		dev_region_or_die(&race.dev, 4096, KRP_ACCESS_LOCAL_WRITE, &race.local);
		race.queue = dev_connected_or_die(&race.dev, 64, peer);
		wrong += life_race_once(&race, round) < 0 || race.error != -EBADF;
		munmap(race.dev.ring, race.dev.map_bytes);
		munmap(race.local.mem, race.local.bytes);
	}
	tap(!wrong, "the file is closed while another thread posts", "%u of %u rounds wrong, %d",
	    wrong, round, race.error);
}

/*
 * Handles and numbers count from 1. One that was freed names nothing, until a new region or queue
 * gets it, which is that one in all respects.
 */
static void life_numbers(const struct dev_peer *peer)
{
	struct krp_queue_query query = { 0 };
	struct dev_region first, second, again;
	uint32_t queue, other;
	struct dev dev;

	dev_open_or_die(&dev, 64);
	dev_region_or_die(&dev, 4096, KRP_ACCESS_LOCAL_WRITE, &first);
	dev_region_or_die(&dev, 4096, KRP_ACCESS_LOCAL_WRITE, &second);
	tap_equal("handles of regions count from 1", first.handle, 1);
	tap_equal("one by one", second.handle, 2);
	tap_equal("a region is closed", dev_deregister(&dev, first.handle), 0);
	tap_equal("its handle names nothing then", dev_deregister(&dev, first.handle), -ENOENT);
	dev_region_or_die(&dev, 4096, KRP_ACCESS_LOCAL_WRITE, &again);
	tap_equal("and is the next region's", again.handle, first.handle);

	queue = dev_connected_or_die(&dev, 4, peer);
	tap_equal("numbers of queues count from 1", queue, 1);
	tap_equal("a queue is closed", dev_queue_close(&dev, queue), 0);
	query.queue = queue;
	tap_equal("its number names nothing then", dev_ioctl(dev.fd, KRP_IOC_QUEUE_QUERY, &query),
		  -ENOENT);
	tap_equal("queue without a peer", dev_queue(&dev, 4, &other), 0);
	query.queue = other;
	tap_equal("which the number is given to", other, queue);
	tap_equal("is asked for", dev_ioctl(dev.fd, KRP_IOC_QUEUE_QUERY, &query), 0);
	tap_equal("it has nothing of the one before", query.state, KRP_QUEUE_IDLE);
	tap_equal("and has posted nothing", query.posted, 0);
	dev_close(&dev);
}

void life(const struct dev_peer *peer)
{
	life_numbers(peer);
	life_passed_on(peer);
	life_exec(peer);
	life_close_queue(peer);
	life_close_file(peer);
}
