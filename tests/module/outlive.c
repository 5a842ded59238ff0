// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * krc_ioctl PEER outlive: a context whose port goes, and comes back. Its calls that need the port
 * fail, also when there is one again, its queue says why, buffers that it had posted come back, and
 * what it had can be given back; a file that is opened anew works. The test takes the node down and
 * up between "open" and the line that it then sends.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/module/dev.h"

#define OUTLIVE_SERVICE 4910
#define OUTLIVE_BYTES 4096
#define OUTLIVE_INBOX 65536
#define OUTLIVE_DEPTH 16

static int outlive_lend(struct dev *dev, const struct dev_region *local, uint32_t messages)
{
	struct krp_post_recv post = {
		.user_data = messages,
		.addr = (uintptr_t)local->mem,
		.mr = local->handle,
		.length = OUTLIVE_BYTES,
		.messages = messages,
	};

	return dev_ioctl(dev->fd, KRP_IOC_POST_RECV, &post);
}

/* An inbox, and two buffers for messages, of which none comes. */
static int outlive_inbox(struct dev *dev, const struct dev_region *local)
{
	struct krp_inbox inbox = { .bytes = OUTLIVE_INBOX, .depth = OUTLIVE_DEPTH };
	int err = dev_ioctl(dev->fd, KRP_IOC_INBOX, &inbox);

	if (!err)
		err = outlive_lend(dev, local, 1);
	return err ? err : outlive_lend(dev, local, 4);
}

/* The buffers have completed, each once, and no other can be posted. */
static void outlive_buffers(struct dev *dev, const struct dev_region *local)
{
	uint64_t which = 0;
	struct krp_cqe cqe;
	unsigned int back = 0;

	while (dev_reap(dev, &cqe, 0)) {
		back += cqe.opcode == KRP_OP_RECV && cqe.status == -ENODEV && !cqe.flags;
		which += cqe.user_data;
	}
	tap_equal("buffers that have come back", back, 2);
	tap_equal("both of them", (int)which, 5);
	tap_equal("a buffer", outlive_lend(dev, local, 1), -ENODEV);
}

/* The calls of a context that has no port any more. */
static void outlive_calls(struct dev *dev, const struct dev_region *local, uint32_t queue,
			  const struct dev_peer *peer)
{
	struct krp_wr wr = dev_wr(KRP_OP_READ, local, 0, peer->ro, peer->ro_addr, 64);
	struct krp_queue_query query;
	struct krp_record_lookup lookup;
	struct dev_region region;
	uint32_t other;

	tap_equal("a region",
		  dev_register(dev, local->mem, OUTLIVE_BYTES, KRP_ACCESS_LOCAL_WRITE, &region),
		  -ENODEV);
	tap_equal("a queue", dev_queue(dev, 4, &other), -ENODEV);
	tap_equal("a connect", dev_connect(dev, queue, peer, 0), -ENODEV);
	tap_equal("a post", dev_post(dev, queue, &wr, 1, NULL), -ENOTCONN);
	tap_equal("the queue is asked", dev_query(dev, queue, &query), 0);
	tap_equal("the queue's error", query.error, -ENODEV);
	tap_equal("a service", dev_bind(dev->fd, OUTLIVE_SERVICE, 0), -ENODEV);
	tap_equal("a record", dev_publish(dev->fd, OUTLIVE_SERVICE, "text"), -ENODEV);
	tap_equal("a look-up", dev_lookup(dev->fd, peer->gid, peer->service, &lookup), -ENODEV);
	tap_equal("a wait", dev_wait(dev, 1000), -ENODEV);
	tap_equal("the queue is closed", dev_queue_close(dev, queue), 0);
	tap_equal("the region goes", dev_deregister(dev, local->handle), 0);
}

int outlive(const struct dev_peer *peer, unsigned int number)
{
	struct dev_region local;
	struct krp_wr wr;
	struct dev dev;
	uint32_t queue;
	char byte;

	(void)number;
	dev_open_or_die(&dev, 64);
	dev_region_or_die(&dev, OUTLIVE_BYTES, KRP_ACCESS_LOCAL_WRITE, &local);
	queue = dev_connected_or_die(&dev, 8, peer);
	if (outlive_inbox(&dev, &local))
		return 1;
	printf("open\n");
	fflush(stdout);
	if (read(STDIN_FILENO, &byte, 1) != 1)
		return 1;
	outlive_buffers(&dev, &local);
	outlive_calls(&dev, &local, queue, peer);
	dev_close(&dev);
	dev_open_or_die(&dev, 64);
	dev_region_or_die(&dev, OUTLIVE_BYTES, KRP_ACCESS_LOCAL_WRITE, &local);
	queue = dev_connected_or_die(&dev, 8, peer);
	wr = dev_wr(KRP_OP_READ, &local, 0, peer->ro, peer->ro_addr, 64);
	tap_equal("a READ of a context made anew", dev_do(&dev, queue, &wr), 0);
	dev_close(&dev);
	return tap_end();
}
