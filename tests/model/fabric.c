// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: peers, the table of link addresses, batching of frames into datagrams.
 * An address that was never heard of is sent to everybody, as a switch does.
 * Frames wait in memory while a peer's socket is full, up to a limit; senders
 * that can wait ask cx_fabric_room() first. A peer whose socket is gone loses
 * its frames. Runs under QEMU's big lock.
 */
#include "dev.h"
#include "qapi/error.h"
#include "qemu/main-loop.h"
#include "qemu/sockets.h"
#include <sys/socket.h>
#include <sys/un.h>

#define CX_BATCH_BYTES 32768
#define CX_PEER_ROOM (512 * 1024) /* senders that can wait stop here */
#define CX_PEER_LIMIT (4 * 1024 * 1024) /* all others lose frames here */
#define CX_RX_ROUNDS 16

struct cx_batch {
	QSIMPLEQ_ENTRY(cx_batch) link;
	u32 len;
	u8 data[CX_BATCH_BYTES];
};

struct cx_peer {
	struct cx_dev *dev;
	u32 node;
	int fd; /* connected, -1 if the peer is not there */
	bool waiting; /* for room in the peer's socket */
	u64 queued;
	QSIMPLEQ_HEAD(, cx_batch) out;
};

void cx_l2_from_lid(u8 *l2, u16 lid)
{
	memset(l2, 0, 6);
	stw_be_p(l2 + 4, lid);
}

u16 cx_l2_lid(const u8 *l2)
{
	return lduw_be_p(l2 + 4);
}

static u64 cx_l2_key(const u8 *l2)
{
	return (u64)lduw_be_p(l2) << 32 | ldl_be_p(l2 + 2);
}

static void cx_peer_drop(struct cx_peer *p)
{
	struct cx_batch *b;

	while ((b = QSIMPLEQ_FIRST(&p->out))) {
		QSIMPLEQ_REMOVE_HEAD(&p->out, link);
		g_free(b);
	}
	p->queued = 0;
	if (p->fd >= 0) {
		qemu_set_fd_handler(p->fd, NULL, NULL, NULL);
		close(p->fd);
	}
	p->fd = -1;
	p->waiting = false;
}

static int cx_peer_connect(struct cx_peer *p)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	snprintf(a.sun_path, sizeof(a.sun_path), "%s/%u", p->dev->fab.dir, p->node);
	p->fd = qemu_socket(AF_UNIX, SOCK_DGRAM, 0);
	if (p->fd < 0)
		return -errno;
	if (!connect(p->fd, (void *)&a, sizeof(a)) && g_unix_set_fd_nonblocking(p->fd, true, NULL))
		return 0;
	close(p->fd);
	p->fd = -1;
	return -ENOTCONN;
}

static void cx_peer_free(gpointer opaque)
{
	cx_peer_drop(opaque);
	g_free(opaque);
}

static struct cx_peer *cx_peer_find(struct cx_dev *dev, u32 node)
{
	struct cx_peer *p = g_hash_table_lookup(dev->fab.peers, GUINT_TO_POINTER(node));

	if (p)
		return p;
	p = g_new0(struct cx_peer, 1);
	p->dev = dev;
	p->node = node;
	p->fd = -1;
	QSIMPLEQ_INIT(&p->out);
	g_hash_table_insert(dev->fab.peers, GUINT_TO_POINTER(node), p);
	return p;
}

static void cx_peer_writable(void *opaque);

/* give the kernel what it takes; false: the peer is gone */
static bool cx_peer_push(struct cx_peer *p)
{
	struct cx_batch *b;

	while ((b = QSIMPLEQ_FIRST(&p->out))) {
		if (send(p->fd, b->data, b->len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
			if (errno != EAGAIN && errno != ENOBUFS && errno != EINTR)
				return false;
			if (!p->waiting)
				qemu_set_fd_handler(p->fd, NULL, cx_peer_writable, p);
			p->waiting = true;
			return true;
		}
		p->queued -= b->len;
		QSIMPLEQ_REMOVE_HEAD(&p->out, link);
		g_free(b);
	}
	if (p->waiting)
		qemu_set_fd_handler(p->fd, NULL, NULL, NULL);
	p->waiting = false;
	return true;
}

static void cx_peer_flush(struct cx_peer *p)
{
	if (QSIMPLEQ_EMPTY(&p->out) || p->waiting)
		return;
	/* a peer that was restarted has a new socket of the old name */
	if (p->fd >= 0 && cx_peer_push(p))
		return;
	if (p->fd >= 0) {
		close(p->fd);
		p->fd = -1;
	}
	if (!cx_peer_connect(p) && cx_peer_push(p))
		return;
	cx_count(p->dev, CX_CTR_TX_NO_PEER, 1);
	cx_peer_drop(p);
}

static void cx_peer_writable(void *opaque)
{
	struct cx_peer *p = opaque;
	struct cx_dev *dev = p->dev;

	if (!cx_peer_push(p)) {
		cx_count(dev, CX_CTR_TX_NO_PEER, 1);
		cx_peer_drop(p);
	}
	cx_sched_unpark(dev);
	cx_dev_kick(dev);
}

static void cx_peer_append(struct cx_peer *p, const struct cx_frame *f)
{
	struct cx_batch *b = QSIMPLEQ_LAST(&p->out, cx_batch, link);

	if (cx_fault_partitioned(p->dev, p->node)) {
		cx_count(p->dev, CX_CTR_FAULT_PARTITION, 1);
		return;
	}
	if (p->queued + f->bytes > CX_PEER_LIMIT) {
		cx_count(p->dev, CX_CTR_TX_FULL, 1);
		return;
	}
	if (!b || b->len + f->bytes > CX_BATCH_BYTES) {
		b = g_malloc(sizeof(*b));
		b->len = 0;
		QSIMPLEQ_INSERT_TAIL(&p->out, b, link);
	}
	memcpy(b->data + b->len, f, f->bytes);
	b->len += f->bytes;
	p->queued += f->bytes;
}

static void cx_fabric_flood(struct cx_dev *dev, const struct cx_frame *f)
{
	g_autoptr(GDir) dir = g_dir_open(dev->fab.dir, 0, NULL);
	const char *name;
	unsigned long node;
	char *end;

	while (dir && (name = g_dir_read_name(dir))) {
		node = strtoul(name, &end, 10);
		if (end != name && !*end && node != dev->prop.node)
			cx_peer_append(cx_peer_find(dev, node), f);
	}
}

static bool cx_l2_is_mine(const struct cx_dev *dev, const u8 *l2)
{
	return !memcmp(l2, dev->port.mac, 6) || (dev->eth && cx_gid_has_mac(dev, l2));
}

static bool cx_l2_is_multicast(const struct cx_dev *dev, const u8 *l2)
{
	return dev->eth ? l2[0] & 1 : cx_l2_lid(l2) >= 0xc000;
}

static void cx_fabric_to_self(struct cx_dev *dev, const struct cx_frame *f)
{
	struct cx_held_frame *h = g_malloc(sizeof(*h) + f->bytes - sizeof(*f));

	memcpy(&h->frame, f, f->bytes);
	QSIMPLEQ_INSERT_TAIL(&dev->fab.inbox, h, link);
	dev->fab.inbox_bytes += f->bytes;
	qemu_bh_schedule(dev->fab.bh);
}

void cx_fabric_route(struct cx_dev *dev, const struct cx_frame *f)
{
	u64 key = cx_l2_key(f->dst);
	gpointer node;

	if (cx_l2_is_mine(dev, f->dst)) {
		cx_fabric_to_self(dev, f);
	} else if (cx_l2_is_multicast(dev, f->dst)) {
		cx_fabric_flood(dev, f);
	} else {
		node = g_hash_table_lookup(dev->fab.where, &key);
		if (node)
			cx_peer_append(cx_peer_find(dev, GPOINTER_TO_UINT(node) - 1), f);
		else
			cx_fabric_flood(dev, f);
	}
}

void cx_fabric_send(struct cx_dev *dev, struct cx_frame *f)
{
	if (!cx_port_up(dev) && !cx_l2_is_mine(dev, f->dst))
		return;
	f->node = dev->prop.node;
	cx_count(dev, CX_CTR_TX_FRAMES, 1);
	cx_count(dev, CX_CTR_TX_BYTES, f->bytes);
	cx_fault_send(dev, f);
}

bool cx_fabric_room(struct cx_dev *dev, const u8 *dst)
{
	u64 key = cx_l2_key(dst);
	struct cx_peer *p;
	gpointer node;

	if (cx_l2_is_mine(dev, dst))
		return dev->fab.inbox_bytes < CX_PEER_ROOM;
	node = g_hash_table_lookup(dev->fab.where, &key);
	if (!node)
		return true;
	p = g_hash_table_lookup(dev->fab.peers, GUINT_TO_POINTER(GPOINTER_TO_UINT(node) - 1));
	return !p || p->queued < CX_PEER_ROOM;
}

void cx_fabric_flush(struct cx_dev *dev)
{
	GHashTableIter it;
	gpointer value;

	g_hash_table_iter_init(&it, dev->fab.peers);
	while (g_hash_table_iter_next(&it, NULL, &value)) {
		struct cx_peer *p = value;
		bool full = p->queued >= CX_PEER_ROOM;

		cx_peer_flush(p);
		if (full && p->queued < CX_PEER_ROOM)
			cx_sched_unpark(dev);
	}
}

static void cx_fabric_deliver(struct cx_dev *dev, const struct cx_frame *f)
{
	u32 len = f->bytes - sizeof(*f);

	if (!cx_port_up(dev) && f->node != dev->prop.node)
		return;
	if (!cx_l2_is_multicast(dev, f->dst) && !cx_l2_is_mine(dev, f->dst) && !dev->port.promisc) {
		cx_count(dev, CX_CTR_RX_FOREIGN, 1);
		return;
	}
	cx_count(dev, CX_CTR_RX_FRAMES, 1);
	cx_count(dev, CX_CTR_RX_BYTES, f->bytes);
	if (f->kind == CX_FRAME_ETH && dev->eth)
		cx_eth_rx(dev, f->data, len);
	else if (f->kind == CX_FRAME_RDMA && cx_l2_is_mine(dev, f->dst))
		cx_rdma_rx(dev, f, (const struct cx_pkt *)f->data, len);
	else if (f->kind == CX_FRAME_RDMA && cx_l2_is_multicast(dev, f->dst))
		cx_rdma_rx(dev, f, (const struct cx_pkt *)f->data, len);
}

static void cx_fabric_learn(struct cx_dev *dev, const struct cx_frame *f)
{
	u64 key = cx_l2_key(f->src);
	gpointer node = GUINT_TO_POINTER(f->node + 1);

	if (g_hash_table_lookup(dev->fab.where, &key) != node)
		g_hash_table_replace(dev->fab.where, g_memdup2(&key, sizeof(key)), node);
}

static void cx_fabric_datagram(struct cx_dev *dev, const u8 *buf, size_t len)
{
	while (len >= sizeof(struct cx_frame)) {
		const struct cx_frame *f = (const struct cx_frame *)buf;

		if (f->bytes < sizeof(*f) || f->bytes > len)
			return;
		if (cx_fault_receives(dev, f)) {
			cx_fabric_learn(dev, f);
			cx_fabric_deliver(dev, f);
		}
		buf += f->bytes;
		len -= f->bytes;
	}
}

static void cx_fabric_readable(void *opaque)
{
	struct cx_dev *dev = opaque;
	ssize_t n;
	u32 i;

	for (i = 0; i < CX_RX_ROUNDS; i++) {
		n = recv(dev->fab.fd, dev->fab.rx_buf, CX_BATCH_BYTES, MSG_DONTWAIT);
		if (n <= 0)
			break;
		cx_fabric_datagram(dev, dev->fab.rx_buf, n);
		cx_dev_kick(dev);
	}
}

/* frames to ourselves come through here, so that no handler calls itself */
static void cx_fabric_inbox(void *opaque)
{
	struct cx_dev *dev = opaque;
	struct cx_held_frame *h;
	u32 i;

	for (i = 0; i < 64 && (h = QSIMPLEQ_FIRST(&dev->fab.inbox)); i++) {
		QSIMPLEQ_REMOVE_HEAD(&dev->fab.inbox, link);
		dev->fab.inbox_bytes -= h->frame.bytes;
		cx_fabric_deliver(dev, &h->frame);
		g_free(h);
	}
	if (!QSIMPLEQ_EMPTY(&dev->fab.inbox))
		qemu_bh_schedule(dev->fab.bh);
	cx_sched_unpark(dev);
	cx_dev_kick(dev);
}

static int cx_fabric_bind(struct cx_dev *dev, Error **errp)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int size = 4 << 20;

	if (snprintf(a.sun_path, sizeof(a.sun_path), "%s/%u", dev->fab.dir, dev->prop.node) >=
	    (int)sizeof(a.sun_path)) {
		error_setg(errp, "fabric: path '%s' is too long for a socket", dev->fab.dir);
		return -ENAMETOOLONG;
	}
	if (g_mkdir_with_parents(dev->fab.dir, 0700)) {
		error_setg_errno(errp, errno, "fabric: cannot make folder '%s'", dev->fab.dir);
		return -errno;
	}
	unlink(a.sun_path);
	dev->fab.fd = qemu_socket(AF_UNIX, SOCK_DGRAM, 0);
	if (dev->fab.fd < 0 || bind(dev->fab.fd, (void *)&a, sizeof(a))) {
		error_setg_errno(errp, errno, "fabric: cannot bind '%s'", a.sun_path);
		return -EIO;
	}
	setsockopt(dev->fab.fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	return 0;
}

int cx_fabric_open(struct cx_dev *dev, Error **errp)
{
	struct cx_fabric *fab = &dev->fab;

	fab->fd = -1;
	fab->dir = g_strdup(dev->prop.fabric ? dev->prop.fabric : "");
	fab->peers = g_hash_table_new_full(NULL, NULL, NULL, cx_peer_free);
	fab->where = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	QSIMPLEQ_INIT(&fab->inbox);
	fab->bh = qemu_bh_new(cx_fabric_inbox, dev);
	fab->rx_buf = g_malloc(CX_BATCH_BYTES);
	if (!dev->prop.fabric)
		return 0;
	if (cx_fabric_bind(dev, errp))
		return -EIO;
	qemu_set_fd_handler(fab->fd, cx_fabric_readable, NULL, dev);
	return 0;
}

void cx_fabric_close(struct cx_dev *dev)
{
	struct cx_fabric *fab = &dev->fab;
	g_autofree char *path = NULL;
	struct cx_held_frame *h;

	if (!fab->peers)
		return;
	if (fab->fd >= 0) {
		qemu_set_fd_handler(fab->fd, NULL, NULL, NULL);
		close(fab->fd);
		path = g_strdup_printf("%s/%u", fab->dir, dev->prop.node);
		unlink(path);
	}
	while ((h = QSIMPLEQ_FIRST(&fab->inbox))) {
		QSIMPLEQ_REMOVE_HEAD(&fab->inbox, link);
		g_free(h);
	}
	qemu_bh_delete(fab->bh);
	g_hash_table_destroy(fab->peers);
	g_hash_table_destroy(fab->where);
	g_free(fab->rx_buf);
	g_free(fab->dir);
	memset(fab, 0, sizeof(*fab));
}
