// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Bad input to the ioctls of messages, one rule at a time; and that the inbox holds no more than was
 * asked for. None of this needs rights, or a peer.
 */
#include <errno.h>
#include <string.h>

#include "tests/module/dev.h"

#define SERVICE 4712
#define NOBODY 999 /* no connection */

static int inbox(struct dev *dev, uint32_t bytes, uint32_t depth, uint32_t flags)
{
	struct krp_inbox arg = { .bytes = bytes, .depth = depth, .flags = flags };

	return dev_ioctl(dev->fd, KRP_IOC_INBOX, &arg);
}

static int receive(struct dev *dev, uint32_t count, uint32_t flags)
{
	struct krp_letter letter;
	struct krp_recv arg = { .letters = (uintptr_t)&letter, .count = count, .flags = flags };

	return dev_ioctl(dev->fd, KRP_IOC_RECV, &arg);
}

static int send_bad(struct dev *dev, const struct krp_send_wr *wr, uint32_t count)
{
	struct krp_send arg = { .wrs = (uintptr_t)wr, .count = count };

	return dev_ioctl(dev->fd, KRP_IOC_SEND, &arg);
}

static int listen_bad(struct dev *dev, uint16_t flags, uint32_t backlog)
{
	struct krp_bind arg = {
		.service = SERVICE,
		.flags = flags,
		.timeout_ms = DEV_TIMEOUT_MS,
		.backlog = backlog,
	};

	return dev_ioctl(dev->fd, KRP_IOC_BIND, &arg);
}

static void bad_inbox(struct dev *dev)
{
	tap_equal("receive without inbox", receive(dev, 1, 0), -EBADFD);
	tap_equal("listen without inbox", listen_bad(dev, KRP_BIND_LISTEN, 1), -EBADFD);
	tap_equal("inbox: too small", inbox(dev, 0, 16, 0), -EINVAL);
	tap_equal("inbox: no multiple", inbox(dev, KRP_INBOX_BYTES_MIN + 64, 16, 0), -EINVAL);
	tap_equal("inbox: too large", inbox(dev, KRP_INBOX_BYTES_MAX + 4096, 16, 0), -EINVAL);
	tap_equal("inbox: no depth", inbox(dev, 65536, 0, 0), -EINVAL);
	tap_equal("inbox: flags", inbox(dev, 65536, 16, 1), -EINVAL);
	tap_equal("inbox: deeper than the ring", inbox(dev, 65536, 65, 0), -ENOSPC);
}

static void bad_send(struct dev *dev)
{
	struct krp_send_wr wr = { .connection = NOBODY };

	tap_equal("send: none", send_bad(dev, &wr, 0), -EINVAL);
	tap_equal("send: too many", send_bad(dev, &wr, KRP_SEND_MAX + 1), -EINVAL);
	tap_equal("send: no connection", send_bad(dev, &wr, 1), -ENOENT);
	tap_equal("send: nowhere", send_bad(dev, NULL, 1), -EFAULT);
	wr.length = KRP_SEND_COPY_MAX + 1;
	tap_equal("send: too long to be copied", send_bad(dev, &wr, 1), -EMSGSIZE);
	wr.length = 8;
	tap_equal("send: bytes from nowhere", send_bad(dev, &wr, 1), -EFAULT);
	wr.mr = NOBODY;
	tap_equal("send: no region", send_bad(dev, &wr, 1), -ENOENT);
	wr = (struct krp_send_wr){ .connection = NOBODY, .flags = 0x80 };
	tap_equal("send: flags", send_bad(dev, &wr, 1), -EINVAL);
	wr = (struct krp_send_wr){ .connection = NOBODY, .rsvd = { 0, 1 } };
	tap_equal("send: pad", send_bad(dev, &wr, 1), -EINVAL);
	wr = (struct krp_send_wr){ .connection = NOBODY, .queue = 1 };
	tap_equal("send: a queue without KRP_SEND_AFTER", send_bad(dev, &wr, 1), -EINVAL);
	wr = (struct krp_send_wr){ .mr = NOBODY, .length = 8, .flags = KRP_SEND_AFTER };
	tap_equal("send: announced, after a queue", send_bad(dev, &wr, 1), -EINVAL);
}

/* What a region must allow to be announced. */
static void bad_regions(struct dev *dev)
{
	struct dev_region plain, message;
	struct krp_send_wr wr = { .connection = NOBODY, .length = 8 };
	struct krp_mr_reg reg = { .length = 4096, .access = KRP_ACCESS_ALL | KRP_ACCESS_MESSAGE };

	dev_region_or_die(dev, 4096, KRP_ACCESS_LOCAL_WRITE, &plain);
	dev_region_or_die(dev, 4096, KRP_ACCESS_MESSAGE, &message);
	reg.addr = (uintptr_t)plain.mem;
	tap_equal("region: messages and WRITEs of peers", dev_ioctl(dev->fd, KRP_IOC_MR_REG, &reg),
		  -EINVAL);
	tap_equal("region of messages: no token", (long long)message.token, 0);
	wr.mr = plain.handle;
	wr.addr = (uintptr_t)plain.mem;
	tap_equal("announce: the region does not allow it", send_bad(dev, &wr, 1), -EACCES);
	wr.mr = message.handle;
	wr.addr = (uintptr_t)message.mem + 4089;
	tap_equal("announce: outside", send_bad(dev, &wr, 1), -ERANGE);
	wr.length = 0;
	tap_equal("announce: nothing", send_bad(dev, &wr, 1), -EMSGSIZE);
}

static void bad_numbers(struct dev *dev)
{
	struct krp_accept accept = { .connection = NOBODY, .depth = 1 };
	struct krp_large large = { .connection = NOBODY, .length = 1 };
	struct krp_cancel cancel = { .connection = NOBODY };
	struct krp_shut shut = { .connection = NOBODY, .how = KRP_SHUT_CLOSE };
	struct krp_conn_query query = { .connection = NOBODY };

	tap_equal("accept: no connection", dev_ioctl(dev->fd, KRP_IOC_ACCEPT, &accept), -ENOENT);
	accept.depth = 0;
	tap_equal("accept: no depth", dev_ioctl(dev->fd, KRP_IOC_ACCEPT, &accept), -EINVAL);
	tap_equal("large: no connection", dev_ioctl(dev->fd, KRP_IOC_LARGE, &large), -ENOENT);
	large.length = 0;
	tap_equal("large: nothing", dev_ioctl(dev->fd, KRP_IOC_LARGE, &large), -EINVAL);
	tap_equal("cancel: no connection", dev_ioctl(dev->fd, KRP_IOC_CANCEL, &cancel), -ENOENT);
	tap_equal("shut: no connection", dev_ioctl(dev->fd, KRP_IOC_SHUT, &shut), -ENOENT);
	shut.how = 0;
	tap_equal("shut: how", dev_ioctl(dev->fd, KRP_IOC_SHUT, &shut), -EINVAL);
	tap_equal("query: no connection", dev_ioctl(dev->fd, KRP_IOC_CONN_QUERY, &query), -ENOENT);
	query.state = 1;
	tap_equal("query: pad", dev_ioctl(dev->fd, KRP_IOC_CONN_QUERY, &query), -EINVAL);
}

static int post_recv(struct dev *dev, struct krp_post_recv *arg)
{
	return dev_ioctl(dev->fd, KRP_IOC_POST_RECV, arg);
}

/* What a buffer can't be like, but for address and region. The inbox has room for 16 under way. */
static const struct {
	const char *what;
	struct krp_post_recv post;
} bad_buffers[] = {
	{ "post: no bytes", { .messages = 1 } },
	{ "post: too many bytes", { .length = KRP_SEND_LARGE_MAX + 1, .messages = 1 } },
	{ "post: flags", { .length = 64, .messages = 1, .flags = 2 } },
	{ "post: pad", { .length = 64, .messages = 1, .rsvd = 1 } },
	{ "post: least, for one message", { .length = 64, .messages = 1, .least = 64 } },
	{ "post: more is to be left than there is", { .length = 64, .messages = 7, .least = 65 } },
	{ "post: for no message", { .length = 64 } },
	{ "post: for too many messages", { .length = 64, .messages = KRP_RECV_MESSAGES_MAX + 1 } },
	{ "post: nine completions, where eight may be", { .length = 64, .messages = 8 } },
	{ "take back: a length", { .length = 64, .flags = KRP_RECV_CANCEL } },
	{ "take back: messages", { .messages = 1, .flags = KRP_RECV_CANCEL } },
	{ "take back: least", { .least = 1, .flags = KRP_RECV_CANCEL } },
};

static void bad_buffer_numbers(struct dev *dev, const struct dev_region *local)
{
	struct krp_post_recv post;
	size_t i;

	for (i = 0; i < sizeof(bad_buffers) / sizeof(bad_buffers[0]); i++) {
		post = bad_buffers[i].post;
		if (!(post.flags & KRP_RECV_CANCEL)) {
			post.addr = (uintptr_t)local->mem;
			post.mr = local->handle;
		}
		tap_equal(bad_buffers[i].what, post_recv(dev, &post), -EINVAL);
	}
}

/* A buffer that can't be posted, or taken back, or not once more. */
static void bad_posted(struct dev *dev)
{
	struct dev_region local, remote;
	struct krp_post_recv post = { .user_data = 7, .length = 64, .mr = NOBODY, .messages = 1 };
	struct krp_post_recv cancel = { .user_data = 7, .flags = KRP_RECV_CANCEL };
	unsigned int i;

	dev_region_or_die(dev, 4096, KRP_ACCESS_LOCAL_WRITE, &local);
	dev_region_or_die(dev, 4096, KRP_ACCESS_REMOTE_READ, &remote);
	tap_equal("post: no region", post_recv(dev, &post), -ENOENT);
	post.mr = remote.handle;
	post.addr = (uintptr_t)remote.mem;
	tap_equal("post: the region does not allow it", post_recv(dev, &post), -EACCES);
	post.mr = local.handle;
	post.addr = (uintptr_t)local.mem + 4096 - 63;
	tap_equal("post: outside", post_recv(dev, &post), -ERANGE);
	post.addr = (uintptr_t)local.mem;
	bad_buffer_numbers(dev, &local);
	tap_equal("take back: none", post_recv(dev, &cancel), -ENOENT);
	post.messages = 7;
	tap_equal("post: for seven messages", post_recv(dev, &post), 0);
	tap_equal("post: one more completion", post_recv(dev, &post), -EAGAIN);
	tap_equal("take back: that for seven", post_recv(dev, &cancel), 0);
	post.messages = 1;
	for (i = 0; i < 8; i++)
		if (post_recv(dev, &post))
			break;
	tap_equal("post: half of what may be under way", i, 8);
	tap_equal("post: more", post_recv(dev, &post), -EAGAIN);
	tap_equal("take back: all of them", post_recv(dev, &cancel), 0);
	tap_equal("take back: again", post_recv(dev, &cancel), -ENOENT);
	tap_equal("post: again", post_recv(dev, &post), 0);
	tap_equal("the region goes, and takes it back", dev_deregister(dev, local.handle), 0);
	tap_equal("take back: it is gone", post_recv(dev, &cancel), -ENOENT);
}

static void bad_opens(struct dev *dev)
{
	struct krp_open open = { .service = SERVICE, .timeout_ms = 100, .depth = 1 };

	open.user[KRP_OPEN_USER_MAX - 1] = 1;
	tap_equal("open: bytes past user_len", dev_ioctl(dev->fd, KRP_IOC_OPEN, &open), -EINVAL);
	open.user[KRP_OPEN_USER_MAX - 1] = 0;
	open.user_len = KRP_OPEN_USER_MAX + 1;
	tap_equal("open: user_len", dev_ioctl(dev->fd, KRP_IOC_OPEN, &open), -EINVAL);
	open.user_len = 0;
	open.depth = KRP_CONN_DEPTH_MAX + 1;
	tap_equal("open: depth", dev_ioctl(dev->fd, KRP_IOC_OPEN, &open), -EINVAL);
	open.depth = 1;
	open.service = 255;
	tap_equal("open: service of the node", dev_ioctl(dev->fd, KRP_IOC_OPEN, &open), -EINVAL);
	open.service = SERVICE;
	open.first = 8;
	tap_equal("open: first message from nowhere", dev_ioctl(dev->fd, KRP_IOC_OPEN, &open),
		  -EFAULT);
}

void bad_messages(void)
{
	struct dev dev;

	dev_open_or_die(&dev, 64);
	bad_inbox(&dev);
	tap_equal("inbox", inbox(&dev, 65536, 16, 0), 0);
	tap_equal("inbox: once", inbox(&dev, 65536, 16, 0), -EALREADY);
	tap_equal("receive: nothing is there", receive(&dev, 1, 0), -EAGAIN);
	tap_equal("receive: none", receive(&dev, 0, 0), -EINVAL);
	tap_equal("receive: too many", receive(&dev, KRP_RECV_MAX + 1, 0), -EINVAL);
	tap_equal("receive: flags", receive(&dev, 1, 1), -EINVAL);
	bad_send(&dev);
	bad_regions(&dev);
	bad_numbers(&dev);
	bad_posted(&dev);
	bad_opens(&dev);
	tap_equal("listen: no backlog", listen_bad(&dev, KRP_BIND_LISTEN, 0), -EINVAL);
	tap_equal("listen: backlog without listening", listen_bad(&dev, 0, 1), -EINVAL);
	tap_equal("listen: more than the inbox has room for",
		  listen_bad(&dev, KRP_BIND_LISTEN, 65536 / 4096 + 1), -ENOSPC);
	tap_equal("listen", listen_bad(&dev, KRP_BIND_LISTEN, 65536 / 4096), 0);
	tap_equal("listen: undo", listen_bad(&dev, KRP_BIND_UNDO, 0), 0);
	tap_equal("listen again", listen_bad(&dev, KRP_BIND_LISTEN, 1), 0);
	dev_close(&dev);
}
