// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * krc_ioctl PEER message-faults: every allocation of every ioctl of messages fails once. The call
 * says -ENOMEM and changes nothing, or does without; the same call succeeds right after, and in
 * the end what is sent comes back.
 *
 * PEER is where `krc_message serve` listens, and only its address and service matter. Offers are
 * those of `krc_message knock`, which opens connections to FM_SERVICE of this node.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/module/dev.h"
#include "tests/module/fail_nth.h"

#define FM_SERVICE 701
#define FM_SPARE 702 /* a service that is bound and let go again */
#define FM_RING 1024
#define FM_DEPTH 64
#define FM_INBOX (64U << 10)
#define FM_SMALL 64
#define FM_LARGE 8000 /* more than is copied, no more than `serve` sends back */
#define FM_LOOK_US 1000
#define FM_IMM 0x4711

/**
 * struct fm - What the steps work on.
 * @peer: whom connections are opened to.
 * @dev: opens connections.
 * @host: listens.
 * @fresh: of steps that begin without an inbox.
 * @mem: of @dev: the first half is sent, the second one is fetched into.
 * @lent: of @host: announced.
 * @queue: of @dev, idle.
 * @conn: a connection of @dev that stays.
 * @made: what a step has opened or was offered.
 * @letter: the last one taken.
 * @bytes: its bytes.
 * @before: messages of @conn before a step.
 * @err: what the step has said.
 * @strange: times that a call failed and had changed something all the same.
 */
struct fm {
	const struct dev_peer *peer;
	struct dev dev, host, fresh;
	struct dev_region mem, lent;
	uint32_t queue, conn, made;
	struct krp_letter letter;
	uint8_t bytes[KRP_SEND_COPY_MAX];
	uint64_t before;
	int err;
	unsigned int strange;
};

/* ---- calls */

static int fm_inbox(struct dev *dev)
{
	struct krp_inbox arg = { .bytes = FM_INBOX, .depth = FM_DEPTH };

	return dev_ioctl(dev->fd, KRP_IOC_INBOX, &arg);
}

static int fm_listen(struct dev *dev, uint16_t service)
{
	struct krp_bind arg = { .service = service,
				.flags = KRP_BIND_LISTEN,
				.timeout_ms = DEV_TIMEOUT_MS,
				.backlog = 4 };

	return dev_ioctl(dev->fd, KRP_IOC_BIND, &arg);
}

/* @first: bytes of the message that opens it, or 0 for none. */
static int fm_open(struct fm *f, struct dev *dev, uint32_t flags, uint32_t first)
{
	const struct krp_send_wr wr = { .addr = (uintptr_t)f->mem.mem, .length = first };
	struct krp_open arg = {
		.flags = flags,
		.service = f->peer->service,
		.timeout_ms = DEV_TIMEOUT_MS,
		.depth = FM_DEPTH / 2,
		.first = first ? (uintptr_t)&wr : 0,
	};
	int err;

	memcpy(arg.gid, f->peer->gid, sizeof(arg.gid));
	err = dev_ioctl(dev->fd, KRP_IOC_OPEN, &arg);
	f->made = err ? 0 : arg.connection;
	return err;
}

static int fm_shut(struct dev *dev, uint32_t connection, uint32_t how)
{
	struct krp_shut arg = { .connection = connection, .how = how };

	return dev_ioctl(dev->fd, KRP_IOC_SHUT, &arg);
}

static int fm_answer(struct fm *f, uint32_t flags)
{
	struct krp_accept arg = {
		.connection = f->made,
		.flags = flags,
		.depth = flags & KRP_ACCEPT_REFUSE ? 0 : FM_DEPTH / 2,
	};

	return dev_ioctl(f->host.fd, KRP_IOC_ACCEPT, &arg);
}

static int fm_query(struct fm *f, struct krp_conn_query *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->connection = f->conn;
	return dev_ioctl(f->dev.fd, KRP_IOC_CONN_QUERY, ret);
}

static int fm_send(struct dev *dev, const struct krp_send_wr *wr)
{
	struct krp_send arg = { .wrs = (uintptr_t)wr, .count = 1 };

	return dev_ioctl(dev->fd, KRP_IOC_SEND, &arg);
}

/* Take a letter, if one is there within that time. */
static int fm_recv(struct fm *f, struct dev *dev, uint32_t timeout_ms)
{
	struct krp_recv arg = {
		.letters = (uintptr_t)&f->letter,
		.buffer = (uintptr_t)f->bytes,
		.count = 1,
		.bytes = sizeof(f->bytes),
		.timeout_ms = timeout_ms,
	};

	memset(&f->letter, 0, sizeof(f->letter));
	return dev_ioctl(dev->fd, KRP_IOC_RECV, &arg);
}

static int fm_large(struct fm *f, uint32_t flags)
{
	bool discard = flags & KRP_LARGE_DISCARD;
	struct krp_large arg = {
		.seq = f->letter.seq,
		.connection = f->letter.connection,
		.flags = flags,
		.addr = discard ? 0 : (uintptr_t)f->mem.mem + FM_LARGE,
		.mr = discard ? 0 : f->mem.handle,
		.length = discard ? 0 : f->letter.length,
	};

	return dev_ioctl(f->dev.fd, KRP_IOC_LARGE, &arg);
}

/* ---- what is awaited */

/* Take a letter that must be of this kind. */
static int fm_take(struct fm *f, struct dev *dev, uint8_t kind)
{
	int err = fm_recv(f, dev, DEV_TIMEOUT_MS);

	if (!err && f->letter.kind != kind) {
		printf("# a letter of kind %u, status %d, instead of kind %u\n", f->letter.kind,
		       f->letter.status, kind);
		err = -EPROTO;
	}
	return err;
}

/* The next completion of a connection, which must be of this kind and say this. */
static int fm_reap(struct dev *dev, uint32_t connection, uint8_t opcode, int status)
{
	struct krp_cqe cqe;

	do {
		if (!dev_reap(dev, &cqe, DEV_TIMEOUT_MS))
			return -ETIME;
	} while (cqe.queue != connection);
	if (cqe.opcode == opcode && cqe.status == status)
		return 0;
	printf("# a completion of kind %u says %d instead of %d\n", cqe.opcode, cqe.status, status);
	return -EPROTO;
}

/* Forget the completions that are there. */
static void fm_drain(struct dev *dev)
{
	struct krp_cqe cqe;

	while (dev_reap(dev, &cqe, 0))
		;
}

/* A letter is there, which is not taken. Nothing else comes for that context. */
static int fm_wait(struct dev *dev)
{
	struct pollfd p = { .fd = dev->fd, .events = POLLIN };

	return poll(&p, 1, DEV_TIMEOUT_MS) == 1 && p.revents == POLLIN ? 0 : -ETIME;
}

/* Messages that were taken of the program, of the connection that stays. */
static int fm_sent(struct fm *f, uint64_t *ret_sent)
{
	struct krp_conn_query query;
	int err = fm_query(f, &query);

	*ret_sent = query.sent + query.waiting;
	return err;
}

/* ---- steps: mailbox and services */

static int fm_step_open_context(void *arg)
{
	struct fm *f = arg;

	return dev_open(&f->fresh, FM_RING);
}

static int fm_step_inbox(void *arg)
{
	struct fm *f = arg;

	return fm_inbox(&f->fresh);
}

static int fm_step_close_context(void *arg)
{
	struct fm *f = arg;

	dev_close(&f->fresh);
	return 0;
}

static int fm_step_listen(void *arg)
{
	struct fm *f = arg;

	return fm_listen(&f->host, FM_SPARE);
}

static int fm_step_unlisten(void *arg)
{
	struct fm *f = arg;

	return dev_bind(f->host.fd, FM_SPARE, KRP_BIND_UNDO);
}

/* ---- steps: connections */

static int fm_step_open(void *arg)
{
	struct fm *f = arg;

	return fm_open(f, &f->dev, 0, 0);
}

static int fm_step_open_fresh(void *arg)
{
	struct fm *f = arg;

	return fm_open(f, &f->dev, KRP_OPEN_FRESH, 0);
}

static int fm_step_open_first(void *arg)
{
	struct fm *f = arg;

	return fm_open(f, &f->dev, 0, FM_SMALL);
}

static int fm_step_abort(void *arg)
{
	struct fm *f = arg;

	return fm_shut(&f->dev, f->made, KRP_SHUT_ABORT);
}

static int fm_step_opened(void *arg)
{
	struct fm *f = arg;
	int err = fm_open(f, &f->dev, 0, 0);

	return err ? err : fm_take(f, &f->dev, KRP_LETTER_OPENED);
}

static int fm_step_shut_send(void *arg)
{
	struct fm *f = arg;

	return fm_shut(&f->dev, f->made, KRP_SHUT_SEND);
}

static int fm_step_shut_close(void *arg)
{
	struct fm *f = arg;

	return fm_shut(&f->dev, f->made, KRP_SHUT_CLOSE);
}

static int fm_step_query(void *arg)
{
	struct krp_conn_query query;

	return fm_query(arg, &query);
}

/* ---- steps: offers */

static int fm_step_offered(void *arg)
{
	struct fm *f = arg;

	return fm_wait(&f->host);
}

static int fm_step_take_offer(void *arg)
{
	struct fm *f = arg;
	int err = fm_recv(f, &f->host, 0);

	f->made = f->letter.connection;
	return err || f->letter.kind == KRP_LETTER_OFFER ? err : -EPROTO;
}

static int fm_step_offer(void *arg)
{
	struct fm *f = arg;
	int err = fm_wait(&f->host);

	return err ? err : fm_step_take_offer(f);
}

static int fm_step_accept(void *arg)
{
	return fm_answer(arg, 0);
}

static int fm_step_refuse(void *arg)
{
	return fm_answer(arg, KRP_ACCEPT_REFUSE);
}

/* An offer that was taken, though the call could not say so; or one that was accepted. */
static int fm_step_abort_offer(void *arg)
{
	struct fm *f = arg;

	return f->made ? fm_shut(&f->host, f->made, KRP_SHUT_ABORT) : 0;
}

/* ---- steps: messages */

static int fm_step_count(void *arg)
{
	struct fm *f = arg;

	fm_drain(&f->dev);
	return fm_sent(f, &f->before);
}

static int fm_step_send_flags(struct fm *f, uint32_t flags)
{
	const struct krp_send_wr wr = {
		.addr = (uintptr_t)f->mem.mem,
		.connection = f->conn,
		.length = FM_SMALL,
		.imm = FM_IMM,
		.flags = flags,
		.queue = flags & KRP_SEND_AFTER ? f->queue : 0,
	};

	f->err = fm_send(&f->dev, &wr);
	return f->err;
}

static int fm_step_send(void *arg)
{
	return fm_step_send_flags(arg, 0);
}

static int fm_step_send_after(void *arg)
{
	return fm_step_send_flags(arg, KRP_SEND_AFTER);
}

/* It has come back. */
static int fm_step_sent(void *arg)
{
	struct fm *f = arg;
	int err = fm_take(f, &f->dev, KRP_LETTER_MESSAGE);

	if (!err && (f->letter.imm != FM_IMM || memcmp(f->bytes, f->mem.mem, FM_SMALL)))
		err = -EBADMSG;
	return err ? err : fm_reap(&f->dev, f->conn, KRP_OP_SEND, 0);
}

/* Whether a call that failed has sent: it may have if only its answer could not be written. */
static bool fm_step_has_sent(struct fm *f)
{
	uint64_t now = 0;

	if (fm_sent(f, &now) || now == f->before)
		return false;
	f->strange += f->err != -EFAULT;
	return true;
}

static int fm_step_not_sent(void *arg)
{
	return fm_step_has_sent(arg) ? fm_step_sent(arg) : 0;
}

static int fm_step_announce(void *arg)
{
	struct fm *f = arg;
	const struct krp_send_wr wr = {
		.addr = (uintptr_t)f->mem.mem,
		.connection = f->conn,
		.mr = f->mem.handle,
		.length = FM_LARGE,
		.imm = FM_IMM,
	};

	f->err = fm_send(&f->dev, &wr);
	return f->err;
}

/* It has been fetched, and is announced here. */
static int fm_step_announced(void *arg)
{
	struct fm *f = arg;
	int err = fm_take(f, &f->dev, KRP_LETTER_LARGE);

	if (!err && (f->letter.imm != FM_IMM || f->letter.length != FM_LARGE))
		err = -EBADMSG;
	return err ? err : fm_reap(&f->dev, f->conn, KRP_OP_SEND, 0);
}

static int fm_step_discard(void *arg)
{
	return fm_large(arg, KRP_LARGE_DISCARD);
}

static int fm_step_announced_discard(void *arg)
{
	int err = fm_step_announced(arg);

	return err ? err : fm_step_discard(arg);
}

static int fm_step_not_announced(void *arg)
{
	return fm_step_has_sent(arg) ? fm_step_announced_discard(arg) : 0;
}

/* A message is here that was not taken. */
static int fm_step_come(void *arg)
{
	struct krp_conn_query query = { 0 };
	uint64_t end_ms = dev_now_ms() + DEV_TIMEOUT_MS;
	struct fm *f = arg;
	int err = fm_step_send(f);

	while (!err && !query.backlog && dev_now_ms() < end_ms) {
		usleep(FM_LOOK_US);
		err = fm_query(f, &query);
	}
	return err || query.backlog ? err : -ETIME;
}

static int fm_step_receive(void *arg)
{
	struct fm *f = arg;
	int err = fm_recv(f, &f->dev, 0);

	return err || f->letter.kind == KRP_LETTER_MESSAGE ? err : -EPROTO;
}

static int fm_step_received(void *arg)
{
	struct fm *f = arg;

	return memcmp(f->bytes, f->mem.mem, FM_SMALL) ? -EBADMSG
						      : fm_reap(&f->dev, f->conn, KRP_OP_SEND, 0);
}

static int fm_step_not_received(void *arg)
{
	struct fm *f = arg;

	if (f->letter.kind == KRP_LETTER_MESSAGE) /* only the answer could not be written */
		return fm_step_received(f);
	return fm_step_sent(f);
}

static int fm_step_large(void *arg)
{
	int err = fm_step_announce(arg);

	return err ? err : fm_step_announced(arg);
}

static int fm_step_fetch(void *arg)
{
	struct fm *f = arg;

	memset(f->mem.mem + FM_LARGE, 0, FM_LARGE);
	return fm_large(f, 0);
}

static int fm_step_fetched(void *arg)
{
	struct fm *f = arg;
	int err = fm_reap(&f->dev, f->conn, KRP_OP_FETCH, 0);

	return err || !memcmp(f->mem.mem, f->mem.mem + FM_LARGE, FM_LARGE) ? err : -EBADMSG;
}

static int fm_post(struct fm *f, uint32_t messages)
{
	struct krp_post_recv post = {
		.user_data = FM_IMM,
		.addr = (uintptr_t)f->mem.mem + FM_LARGE,
		.mr = f->mem.handle,
		.length = FM_LARGE,
		.messages = messages,
	};

	return dev_ioctl(f->dev.fd, KRP_IOC_POST_RECV, &post);
}

static int fm_step_post(void *arg)
{
	return fm_post(arg, 1);
}

static int fm_step_post_multi(void *arg)
{
	return fm_post(arg, FM_DEPTH / 4);
}

static int fm_step_take_back(void *arg)
{
	struct krp_post_recv cancel = { .user_data = FM_IMM, .flags = KRP_RECV_CANCEL };
	struct fm *f = arg;

	return dev_ioctl(f->dev.fd, KRP_IOC_POST_RECV, &cancel);
}

static int fm_step_taken_back(void *arg)
{
	struct fm *f = arg;

	return fm_reap(&f->dev, 0, KRP_OP_RECV, -ECANCELED);
}

static int fm_step_unpost(void *arg)
{
	int err = fm_step_take_back(arg);

	return err ? err : fm_step_taken_back(arg);
}

/* No buffer is there, nor has one come back. */
static int fm_step_not_posted(void *arg)
{
	struct krp_cqe cqe;
	struct fm *f = arg;
	int err = fm_step_take_back(f);

	if (err == -ENOENT && !dev_reap(&f->dev, &cqe, 0))
		return 0;
	return err ? err : -EEXIST;
}

/* A large message goes there, and back to a buffer that was posted. */
static int fm_posted(struct fm *f)
{
	int err = fm_step_post(f);

	memset(f->mem.mem + FM_LARGE, 0, FM_LARGE);
	if (!err)
		err = fm_step_large(f);
	if (!err && !(f->letter.flags & KRP_LETTER_POSTED))
		err = -EPROTO;
	if (!err)
		err = fm_reap(&f->dev, f->conn, KRP_OP_RECV, 0);
	return err || !memcmp(f->mem.mem, f->mem.mem + FM_LARGE, FM_LARGE) ? err : -EBADMSG;
}

/* A message is announced to one that does nothing with it. */
static int fm_step_lend(void *arg)
{
	struct fm *f = arg;
	struct krp_send_wr wr = { .addr = (uintptr_t)f->lent.mem,
				  .mr = f->lent.handle,
				  .length = FM_LARGE };
	int err = fm_step_offer(f);

	wr.connection = f->made;
	if (!err)
		err = fm_answer(f, 0);
	return err ? err : fm_send(&f->host, &wr);
}

static int fm_step_cancel(void *arg)
{
	struct fm *f = arg;
	struct krp_cancel cancel = { .connection = f->made };

	return dev_ioctl(f->host.fd, KRP_IOC_CANCEL, &cancel);
}

static int fm_step_cancelled(void *arg)
{
	struct fm *f = arg;
	int err = fm_reap(&f->host, f->made, KRP_OP_SEND, -ECANCELED);

	return err ? err : fm_step_abort_offer(f);
}

static int fm_step_not_cancelled(void *arg)
{
	int err = fm_step_cancel(arg);

	return err ? err : fm_step_cancelled(arg);
}

/* clang-format off */
static const struct fail_nth_step fm_steps[] = {
	{ .name = "make an inbox", .prepare = fm_step_open_context, .run = fm_step_inbox,
	  .undo = fm_step_close_context, .undo_failed = fm_step_close_context },
	{ .name = "listen", .run = fm_step_listen, .undo = fm_step_unlisten,
	  .undo_failed = fm_step_unlisten },
	{ .name = "listen no more", .prepare = fm_step_listen, .run = fm_step_unlisten,
	  .undo_failed = fm_step_unlisten, .never_fails = true },
	{ .name = "open", .run = fm_step_open, .undo = fm_step_abort },
	{ .name = "open, asking a MetaServer", .run = fm_step_open_fresh, .undo = fm_step_abort },
	{ .name = "open with a message", .run = fm_step_open_first, .undo = fm_step_abort },
	{ .name = "take an offer", .prepare = fm_step_offered, .run = fm_step_take_offer,
	  .undo = fm_step_abort_offer, .undo_failed = fm_step_abort_offer },
	{ .name = "accept", .prepare = fm_step_offer, .run = fm_step_accept,
	  .undo = fm_step_abort_offer, .undo_failed = fm_step_abort_offer },
	{ .name = "refuse", .prepare = fm_step_offer, .run = fm_step_refuse,
	  .undo_failed = fm_step_abort_offer, .never_fails = true },
	{ .name = "send", .prepare = fm_step_count, .run = fm_step_send, .undo = fm_step_sent,
	  .undo_failed = fm_step_not_sent },
	{ .name = "send behind a queue", .prepare = fm_step_count, .run = fm_step_send_after,
	  .undo = fm_step_sent, .undo_failed = fm_step_not_sent },
	{ .name = "announce", .prepare = fm_step_count, .run = fm_step_announce,
	  .undo = fm_step_announced_discard, .undo_failed = fm_step_not_announced },
	{ .name = "receive", .prepare = fm_step_come, .run = fm_step_receive,
	  .undo = fm_step_received, .undo_failed = fm_step_not_received },
	{ .name = "fetch", .prepare = fm_step_large, .run = fm_step_fetch,
	  .undo = fm_step_fetched, .undo_failed = fm_step_discard },
	{ .name = "post a buffer", .prepare = fm_step_count, .run = fm_step_post,
	  .undo = fm_step_unpost, .undo_failed = fm_step_not_posted },
	{ .name = "post a buffer for several", .prepare = fm_step_count, .run = fm_step_post_multi,
	  .undo = fm_step_unpost, .undo_failed = fm_step_not_posted },
	{ .name = "take a buffer back", .prepare = fm_step_post, .run = fm_step_take_back,
	  .undo = fm_step_taken_back, .undo_failed = fm_step_unpost, .never_fails = true },
	{ .name = "discard", .prepare = fm_step_large, .run = fm_step_discard,
	  .undo_failed = fm_step_discard, .never_fails = true },
	{ .name = "cancel", .prepare = fm_step_lend, .run = fm_step_cancel,
	  .undo = fm_step_cancelled, .undo_failed = fm_step_not_cancelled, .never_fails = true },
	{ .name = "how a connection is", .run = fm_step_query, .never_fails = true },
	{ .name = "send no more", .prepare = fm_step_opened, .run = fm_step_shut_send,
	  .undo = fm_step_abort, .undo_failed = fm_step_abort, .never_fails = true },
	{ .name = "close", .prepare = fm_step_opened, .run = fm_step_shut_close,
	  .undo_failed = fm_step_abort, .never_fails = true },
	{ .name = "abort", .prepare = fm_step_opened, .run = fm_step_abort,
	  .undo_failed = fm_step_abort, .never_fails = true },
};
/* clang-format on */

/* ---- all of them */

/* What all steps need. */
static void fm_begin(struct fm *f)
{
	int err;

	dev_open_or_die(&f->dev, FM_RING);
	dev_open_or_die(&f->host, FM_RING);
	dev_region_or_die(&f->dev, 2 * FM_LARGE, KRP_ACCESS_LOCAL_WRITE | KRP_ACCESS_MESSAGE,
			  &f->mem);
	dev_region_or_die(&f->host, FM_LARGE, KRP_ACCESS_MESSAGE, &f->lent);
	dev_fill(f->mem.mem, FM_LARGE, FM_IMM);
	err = fm_inbox(&f->dev);
	if (!err)
		err = fm_inbox(&f->host);
	if (!err)
		err = fm_listen(&f->host, FM_SERVICE);
	if (!err)
		err = dev_queue(&f->dev, 4, &f->queue);
	if (!err)
		err = fm_step_opened(f);
	f->conn = f->made;
	tap_equal("a connection", err, 0);
}

/* The connection that has been there all the time still works. */
static void fm_end(struct fm *f)
{
	int err = fm_step_count(f);

	if (!err)
		err = fm_step_send(f);
	if (!err)
		err = fm_step_sent(f);
	tap_equal("a message afterwards", err, 0);
	err = fm_step_large(f);
	if (!err)
		err = fm_step_fetch(f);
	if (!err)
		err = fm_step_fetched(f);
	tap_equal("a large message afterwards", err, 0);
	tap_equal("one that goes to a posted buffer", fm_posted(f), 0);
	tap_equal("calls that failed and had sent", f->strange, 0);
}

void message_faults(const struct dev_peer *peer)
{
	struct fm f = { .peer = peer };
	struct fail_nth_count c;
	size_t i;
	int err;

	fm_begin(&f);
	for (i = 0; f.conn && i < sizeof(fm_steps) / sizeof(fm_steps[0]); i++) {
		memset(&c, 0, sizeof(c));
		err = fail_nth_sweep(&fm_steps[i], &f, &c);
		printf("# %s: %u allocations, %u failed, %u did without\n", fm_steps[i].name,
		       c.allocations, c.failed, c.went_on);
		tap(!err, fm_steps[i].name, "%s", strerror(-err));
	}
	fm_end(&f);
	dev_close(&f.host);
	dev_close(&f.dev);
}
