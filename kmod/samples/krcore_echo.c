// SPDX-License-Identifier: GPL-2.0-only
/*
 * A sample: a server in the kernel that sends back each message that programs or other modules send it,
 * and a client of such a server.
 *
 *	modprobe krcore_echo service=777				the server
 *	modprobe krcore_echo service=777 gid=::ffff:192.0.2.2 [lanes=8]	a client of the one there
 *
 * krcore-example-echo-client is a program that talks to the server, krcore-example-echo-server one for
 * the client. A letter is kept until its answer has arrived, so a peer that takes no answers gets no
 * credit, and holds up nobody else. A large message, of at most ECHO_PAGES pages, is fetched into pages of
 * the server and announced from there, one after the other: for these there is one place.
 *
 * How far it is stands in /sys/module/krcore_echo/parameters: offers, conns (connections now), rounds
 * (messages that were sent back, or came back), bad (client: of those, the ones that differed), failed
 * (messages that could not be sent), error (errno that ended it, or 0).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/inet.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#include <krcore/kernel.h>

#define ECHO_INBOX (1U << 20)
#define ECHO_BACKLOG 64
#define ECHO_DEPTH 64 /* more than a peer can have under way */
#define ECHO_LANES_MAX 32
#define ECHO_TIMEOUT_MS 5000
#define ECHO_PAGES 16
#define ECHO_LARGES 64 /* large messages that wait for the place; what is more is discarded */

static ushort service;
module_param(service, ushort, 0444);
MODULE_PARM_DESC(service, "service to listen to, or, with gid, to connect to");
static char *gid = "";
module_param(gid, charp, 0444);
MODULE_PARM_DESC(gid,
		 "GID of the node whose server is asked, as an IPv6 address; none: be a server");
static uint lanes = 8;
module_param(lanes, uint, 0444);
MODULE_PARM_DESC(lanes, "client: messages that are under way at once, 1 to 32");
static ulong offers;
module_param(offers, ulong, 0444);
MODULE_PARM_DESC(offers, "out: connections that were offered");
static ulong conns;
module_param(conns, ulong, 0444);
MODULE_PARM_DESC(conns, "out: connections that there are");
static ulong rounds;
module_param(rounds, ulong, 0444);
MODULE_PARM_DESC(rounds, "out: messages that were sent back, or came back");
static ulong bad;
module_param(bad, ulong, 0444);
MODULE_PARM_DESC(bad, "out: of those that came back, the ones that differed");
static ulong failed;
module_param(failed, ulong, 0444);
MODULE_PARM_DESC(failed, "out: messages that could not be sent");
static int error;
module_param(error, int, 0444);
MODULE_PARM_DESC(error, "out: errno that ended it, or 0");

/* A large message of a peer. @letter: NULL: it was freed. */
struct echo_large {
	struct krcore_conn *conn;
	struct krcore_letter *letter;
	u32 length;
	u32 imm;
};

/*
 * What there is once. All callbacks of a client come one after the other, so what only they use needs
 * no lock.
 * @lock: one opens or closes at a time.
 * @client: krcore's client; NULL: closed.
 * @closer: closes it when the port has gone.
 * @sent: client: number of the next message.
 * @bytes: client: it, or what the one that has come should be.
 * @region: server: where large messages go, @pages.
 * @renewer: makes it anew, when a peer whose connection is closed may still WRITE or READ there.
 * @renewing: until then large messages are discarded.
 * @large: those that wait; the first one is being fetched, or sent back.
 * @nr: how many.
 * @closing: connection that is being closed, or NULL. @ending: all are.
 */
static struct {
	struct mutex lock;
	struct krcore_client *client;
	struct work_struct closer;
	u64 sent;
	u8 bytes[KRCORE_MESSAGE_MAX];
	struct krcore_region *region;
	struct page *pages[ECHO_PAGES];
	struct work_struct renewer;
	bool renewing;
	struct echo_large large[ECHO_LARGES];
	u32 nr;
	const struct krcore_conn *closing;
	bool ending;
} echo = { .lock = __MUTEX_INITIALIZER(echo.lock) };

static void echo_failed(int status)
{
	if (!cmpxchg(&error, 0, status))
		pr_err("ended with %d after %lu rounds\n", status, READ_ONCE(rounds));
}

/* What waits of a connection goes with it; the close frees the letters, and ends the first one. */
static void echo_forget(const struct krcore_conn *conn)
{
	u32 i, left = min(echo.nr, 1U);

	for (i = left; i < echo.nr; i++)
		if (echo.large[i].conn != conn)
			echo.large[left++] = echo.large[i];
	echo.nr = left;
}

static void echo_conn_close(struct krcore_conn *conn, bool abort)
{
	echo_forget(conn);
	echo.closing = conn;
	krcore_conn_close(conn, abort);
	echo.closing = NULL;
	WRITE_ONCE(conns, conns - 1);
}

/* ---- the server */

/* The answer has arrived, or never will: the peer may send another message. */
static void echo_answered(struct krcore_conn *conn, void *arg, int status)
{
	krcore_letter_free(arg);
	if (!status)
		WRITE_ONCE(rounds, rounds + 1);
}

static void echo_asked(struct krcore_conn *conn, struct krcore_letter *letter,
		       const struct krcore_message *message, void *arg)
{
	const struct krcore_send answer = { .bytes = message->bytes,
					    .length = message->length,
					    .imm = message->imm,
					    .done = echo_answered,
					    .arg = letter };

	if (!krcore_send(conn, &answer))
		return;
	WRITE_ONCE(failed, failed + 1);
	krcore_letter_free(letter);
}

/* The peer sends no more. What it has sent is answered: that goes out behind the close. */
static void echo_peer_ended(struct krcore_conn *conn, void *arg)
{
	echo_conn_close(conn, false);
}

static void echo_peer_died(struct krcore_conn *conn, int err, void *arg)
{
	echo_conn_close(conn, true);
}

/* ---- large messages to the server */

static void echo_large_begin(void);

static void echo_large_drop(void)
{
	echo.nr--;
	memmove(echo.large, echo.large + 1, echo.nr * sizeof(echo.large[0]));
}

/* The first one is done with. */
static void echo_large_next(void)
{
	echo_large_drop();
	echo_large_begin();
}

/* Its connection is being closed, so nobody knows for how long the place is in use: that needs another one. */
static void echo_large_spoiled(void)
{
	u32 i;

	WRITE_ONCE(echo.renewing, true);
	for (i = 1; i < echo.nr; i++)
		krcore_letter_free(echo.large[i].letter);
	echo.nr = 0;
	schedule_work(&echo.renewer);
}

static bool echo_is_closing(const struct krcore_conn *conn)
{
	return echo.closing == conn || READ_ONCE(echo.ending);
}

static void echo_large_answered(struct krcore_conn *conn, void *arg, int status)
{
	if (echo_is_closing(conn)) {
		echo_large_spoiled();
		return;
	}
	if (!status)
		WRITE_ONCE(rounds, rounds + 1);
	echo_large_next();
}

static void echo_large_fetched(struct krcore_conn *conn, void *arg, int status)
{
	const struct echo_large *large = &echo.large[0];
	const struct krcore_send answer = { .region = echo.region,
					    .length = large->length,
					    .imm = large->imm,
					    .done = echo_large_answered };

	if (echo_is_closing(conn)) {
		echo_large_spoiled();
		return;
	}
	krcore_letter_free(large->letter);
	if (!status && !krcore_send(conn, &answer))
		return;
	WRITE_ONCE(failed, failed + 1);
	echo_large_next();
}

/* Fetch the first one that can be. */
static void echo_large_begin(void)
{
	struct krcore_fetch fetch = { .region = echo.region, .done = echo_large_fetched };

	while (echo.nr) {
		fetch.length = echo.large[0].length;
		if (!krcore_fetch(echo.large[0].letter, &fetch))
			return;
		krcore_letter_free(echo.large[0].letter);
		echo_large_drop();
	}
}

static void echo_announced(struct krcore_conn *conn, struct krcore_letter *letter,
			   const struct krcore_message *message, void *arg)
{
	/* Pairs with the release in echo_renewer(). */
	if (smp_load_acquire(&echo.renewing) || echo.nr == ECHO_LARGES ||
	    message->length > ECHO_PAGES * PAGE_SIZE) {
		krcore_letter_free(letter);
		return;
	}
	echo.large[echo.nr++] = (struct echo_large){
		.conn = conn, .letter = letter, .length = message->length, .imm = message->imm
	};
	if (echo.nr == 1)
		echo_large_begin();
}

/* Register the place for large messages. Return: 0, or an error. */
static int echo_large_open(void)
{
	struct krcore_region *region;

	lockdep_assert_held(&echo.lock);
	region = krcore_region_open(echo.client, echo.pages, ECHO_PAGES,
				    KRCORE_LOCAL_WRITE | KRCORE_MESSAGE);
	if (IS_ERR(region))
		return PTR_ERR(region);
	echo.region = region;
	return 0;
}

static void echo_renewer(struct work_struct *work)
{
	mutex_lock(&echo.lock);
	if (echo.client && !IS_ERR_OR_NULL(echo.region)) {
		krcore_region_close(echo.region); /* waits until nobody is there any more */
		echo.region = NULL;
		/* without a place large messages stay discarded */
		if (!echo_large_open())
			smp_store_release(&echo.renewing, false); /* with the region */
	}
	mutex_unlock(&echo.lock);
}

static void echo_free_pages(void)
{
	u32 i;

	for (i = 0; i < ECHO_PAGES; i++)
		if (echo.pages[i])
			__free_page(echo.pages[i]);
}

static int echo_alloc_pages(void)
{
	u32 i;

	for (i = 0; i < ECHO_PAGES; i++) {
		echo.pages[i] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		if (!echo.pages[i])
			return -ENOMEM;
	}
	return 0;
}

static const struct krcore_conn_ops echo_server_ops = {
	.received = echo_asked,
	.announced = echo_announced,
	.ended = echo_peer_ended,
	.died = echo_peer_died,
};

static void echo_offered(struct krcore_offer *offer, const struct krcore_peer *peer, void *arg)
{
	const struct krcore_conn_conf conf = {
		.ops = &echo_server_ops, .depth = ECHO_DEPTH, .user = "echo", .user_len = 4
	};

	WRITE_ONCE(offers, offers + 1);
	if (!IS_ERR(krcore_accept(offer, &conf)))
		WRITE_ONCE(conns, conns + 1);
}

static int echo_serve(void)
{
	const struct krcore_listen_conf conf = { .service = service,
						 .backlog = ECHO_BACKLOG,
						 .timeout_ms = ECHO_TIMEOUT_MS,
						 .offered = echo_offered };
	int err = echo_large_open();

	if (err)
		return err;
	return PTR_ERR_OR_ZERO(krcore_listen(echo.client, &conf));
}

/* ---- the client */

/* Message @number of 8 bytes and more. Return: its length. */
static u32 echo_fill(u64 number)
{
	u32 length = sizeof(number) + number * 97 % (sizeof(echo.bytes) - sizeof(number) + 1);

	memset(echo.bytes, (u8)number, length);
	memcpy(echo.bytes, &number, sizeof(number));
	return length;
}

static void echo_arrived(struct krcore_conn *conn, void *arg, int status)
{
	if (status && status != -ECANCELED)
		echo_failed(status);
}

static void echo_ask(struct krcore_conn *conn)
{
	const struct krcore_send question = { .bytes = echo.bytes,
					      .length = echo_fill(echo.sent++),
					      .done = echo_arrived };
	int err = krcore_send(conn, &question);

	if (!err)
		return;
	WRITE_ONCE(failed, failed + 1);
	echo_failed(err);
}

static void echo_opened(struct krcore_conn *conn, void *arg)
{
	u32 i;

	for (i = 0; i < lanes; i++)
		echo_ask(conn);
}

/* Answers come in the order of the questions, so this one is that to number @rounds. */
static void echo_answer(struct krcore_conn *conn, struct krcore_letter *letter,
			const struct krcore_message *message, void *arg)
{
	u32 length = echo_fill(rounds);

	WRITE_ONCE(bad,
		   bad + (message->length != length || memcmp(message->bytes, echo.bytes, length)));
	WRITE_ONCE(rounds, rounds + 1);
	krcore_letter_free(letter);
	echo_ask(conn);
}

static void echo_server_ended(struct krcore_conn *conn, void *arg)
{
	echo_failed(-EPIPE);
}

static void echo_server_died(struct krcore_conn *conn, int err, void *arg)
{
	echo_failed(err);
	echo_conn_close(conn, true);
}

static const struct krcore_conn_ops echo_client_ops = {
	.opened = echo_opened,
	.received = echo_answer,
	.ended = echo_server_ended,
	.died = echo_server_died,
};

static int echo_connect(const u8 *of)
{
	const struct krcore_conn_conf conf = { .ops = &echo_client_ops, .depth = ECHO_DEPTH };
	struct krcore_connect_conf to = { .service = service, .timeout_ms = ECHO_TIMEOUT_MS };
	struct krcore_conn *conn;

	memcpy(to.gid, of, sizeof(to.gid));
	conns = 1; /* a callback may be quicker than the return */
	conn = krcore_connect(echo.client, &to, &conf);
	if (IS_ERR(conn))
		conns = 0;
	return PTR_ERR_OR_ZERO(conn);
}

/* ---- beginning and end */

/* The client closes what it has open: no callback runs when it is gone. */
static void echo_close(void)
{
	mutex_lock(&echo.lock);
	WRITE_ONCE(echo.ending, true);
	if (echo.client)
		krcore_client_close(echo.client);
	echo.client = NULL;
	mutex_unlock(&echo.lock);
}

static void echo_closer(struct work_struct *work)
{
	echo_close();
}

/* The port has gone, and waits for this function: closing is for somebody else. */
static void echo_removed(void *arg)
{
	echo_failed(-ENODEV);
	schedule_work(&echo.closer);
}

/* Become a client, and begin. On an error what is open is left to echo_close(). */
static int echo_open(const u8 *of)
{
	const struct krcore_client_conf conf = { .owner = THIS_MODULE,
						 .name = KBUILD_MODNAME,
						 .inbox = ECHO_INBOX,
						 .removed = echo_removed };
	struct krcore_client *client;

	lockdep_assert_held(&echo.lock);
	client = krcore_client_open(&conf);
	if (IS_ERR(client))
		return PTR_ERR(client);
	echo.client = client;
	return *gid ? echo_connect(of) : echo_serve();
}

static void echo_end(void)
{
	echo_close();
	cancel_work_sync(&echo.closer);
	cancel_work_sync(&echo.renewer); /* a callback of the close may have asked for it */
	echo_free_pages(); /* the client has closed the region */
}

static int __init echo_init(void)
{
	u8 of[KRCORE_GID_BYTES] = {};
	int err;

	if ((*gid && !in6_pton(gid, -1, of, -1, NULL)) || service < KRCORE_SERVICE_MIN || !lanes ||
	    lanes > ECHO_LANES_MAX) {
		pr_err("service=%u, gid=%s or lanes=%u is wrong\n", service, gid, lanes);
		return -EINVAL;
	}
	INIT_WORK(&echo.closer, echo_closer);
	INIT_WORK(&echo.renewer, echo_renewer);
	mutex_lock(&echo.lock);
	err = echo_alloc_pages();
	if (!err)
		err = echo_open(of);
	mutex_unlock(&echo.lock);
	if (!err)
		return 0;
	echo_end();
	pr_err("can't begin: %d\n", err);
	return err;
}

static void __exit echo_exit(void)
{
	echo_end();
}

module_init(echo_init);
module_exit(echo_exit);
MODULE_DESCRIPTION("Sample of krcore: a server that sends messages back, and a client of one");
MODULE_LICENSE("GPL");
