// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: messages of other modules of the kernel (kmod/api/box.c, listen.c, conn.c): a client on the
 * second of two ports with a NIC in memory each; the first port has streams without programs, which do
 * what a test says. What is told and in which order, what calls refuse, how much a peer can have a
 * client hold, and what closes under traffic.
 * Locking: a test runs alone; callbacks of a client come one after the other.
 */
#include <linux/gfp.h>

#include "krc_mail_test.h"
#include "meta/cache.h"

#define KRC_TEST_MAIL_DEPTH 4
#define KRC_TEST_MAIL_FLOOD 50
#define KRC_TEST_MAIL_BYTES 40
#define KRC_TEST_MAIL_LONG 4000 /* bytes of a message of which the inbox has room for two */

static struct krc_test_mail *krc_test_mail_now; /* done() has another argument */

/* ---- callbacks of the client */

static void krc_test_mail_note(struct krc_test_mail *t, char what)
{
	size_t len = strlen(t->order);

	if (len < sizeof(t->order) - 1)
		t->order[len] = what;
}

/* krcore_send.done: @arg is the number of the message. */
void krc_test_mail_done(struct krcore_conn *conn, void *arg, int status)
{
	struct krc_test_mail *t = krc_test_mail_now;
	struct krcore_peer peer;

	if (status == -ECANCELED) {
		krcore_conn_peer(conn, &peer);
		t->barred += peer.generation == 1000 && krcore_conn_shut(conn) == -ESHUTDOWN;
	}
	t->disorder += (unsigned long)arg != t->done;
	t->failed += status != 0;
	t->status = status;
	WRITE_ONCE(t->done, t->done + 1);
}

/* The same of a message that is sent back: @arg is the letter. */
static void krc_test_mail_echoed(struct krcore_conn *conn, void *arg, int status)
{
	struct krc_test_mail *t = krc_test_mail_now;

	t->failed += status != 0;
	t->status = status;
	krcore_letter_free(arg);
	WRITE_ONCE(t->done, t->done + 1);
}

static void krc_test_mail_opened(struct krcore_conn *conn, void *arg)
{
	struct krc_test_mail *t = arg;
	bool closing = t->closing;

	krc_test_mail_note(t, 'o');
	if (t->block) {
		WRITE_ONCE(t->inside, true);
		wait_for_completion(&t->unblock);
	}
	if (closing)
		krcore_conn_close(conn, true);
	WRITE_ONCE(t->opened, t->opened + 1);
}

static void krc_test_mail_received(struct krcore_conn *conn, struct krcore_letter *letter,
				   const struct krcore_message *message, void *arg)
{
	struct krc_test_mail *t = arg;
	const struct krcore_send send = { .bytes = message->bytes,
					  .length = message->length,
					  .imm = message->imm,
					  .done = krc_test_mail_echoed,
					  .arg = letter };

	krc_test_mail_note(t, 'm');
	WRITE_ONCE(t->received, t->received + 1);
	if (t->echo) {
		KUNIT_EXPECT_EQ(t->w.test, krcore_send(conn, &send), 0);
	} else if (t->keep && t->kept_nr < KRC_TEST_MAIL_HELD) {
		t->kept[t->kept_nr] = letter;
		WRITE_ONCE(t->kept_nr, t->kept_nr + 1);
	} else if (t->closing) {
		krcore_conn_close(conn, true);
		WRITE_ONCE(t->conn, NULL);
	} else {
		krcore_letter_free(letter);
	}
}

static void krc_test_mail_ended(struct krcore_conn *conn, void *arg)
{
	struct krc_test_mail *t = arg;

	krc_test_mail_note(t, 'e');
	WRITE_ONCE(t->ended, t->ended + 1);
}

static void krc_test_mail_died(struct krcore_conn *conn, int err, void *arg)
{
	struct krc_test_mail *t = arg;

	krc_test_mail_note(t, 'd');
	t->err = err;
	WRITE_ONCE(t->died, t->died + 1);
}

static const struct krcore_conn_ops krc_test_mail_ops = {
	.opened = krc_test_mail_opened,
	.received = krc_test_mail_received,
	.ended = krc_test_mail_ended,
	.died = krc_test_mail_died,
};

static struct krcore_conn_conf krc_test_mail_conf(struct krc_test_mail *t)
{
	return (struct krcore_conn_conf){
		.ops = &t->ops, .arg = t, .depth = KRC_TEST_MAIL_DEPTH, .user = "it", .user_len = 2
	};
}

static void krc_test_mail_offered(struct krcore_offer *offer, const struct krcore_peer *peer,
				  void *arg)
{
	struct krc_test_mail *t = arg;
	const struct krcore_conn_conf conf = krc_test_mail_conf(t);
	struct krcore_conn *conn;

	t->peer = *peer;
	WRITE_ONCE(t->offered, t->offered + 1);
	if (t->block) {
		WRITE_ONCE(t->inside, true);
		wait_for_completion(&t->unblock);
	}
	if (t->refuse)
		return;
	conn = krcore_accept(offer, &conf);
	KUNIT_EXPECT_NOT_ERR_OR_NULL(t->w.test, conn);
	KUNIT_EXPECT_PTR_EQ(t->w.test, krcore_accept(offer, &conf),
			    (struct krcore_conn *)ERR_PTR(-EALREADY));
	WRITE_ONCE(t->conn, conn);
}

/* ---- the client */

static void krc_test_mail_release(struct krc_rail *rail)
{
	krc_rail_fini(rail);
}

static struct krcore_client *krc_test_mail_client(struct krc_test_mail *t, u32 inbox)
{
	struct krcore_client_conf conf = { .owner = (struct module *)t, /* only compared */
					   .name = "mail",
					   .inbox = inbox };
	struct krcore_client *client = krc_client_make(&t->port, &conf);

	if (!IS_ERR(client))
		krc_rail_get(&t->port.rail);
	return client;
}

int krc_test_mail_init(struct kunit *test)
{
	struct krc_test_mail *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	krc_test_mail_now = t;
	t->ops = krc_test_mail_ops;
	init_completion(&t->unblock);
	krc_test_world_set(test, &t->w);
	KUNIT_ASSERT_EQ(test, krc_rail_init(&t->port.rail, krc_test_mail_release), 0);
	t->port.messages = t->w.side[1].messages;
	t->port.pool = t->w.side[1].pool;
	t->port.cache = krc_node_cache();
	t->client = krc_test_mail_client(t, KRC_TEST_MAIL_PAGES * KRCORE_INBOX_MIN);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, t->client);
	return 0;
}

static void krc_test_mail_close(struct krc_test_mail *t)
{
	if (!IS_ERR_OR_NULL(t->client))
		krcore_client_close(t->client);
	t->client = NULL;
}

static int krc_test_mail_held_by(kuid_t uid, const u64 held[KRC_RES_NR], u64 refused, void *arg)
{
	u64 *sum = arg;

	if (!uid_valid(uid))
		*sum += held[KRC_RES_QUEUE] + held[KRC_RES_INBOX] + held[KRC_RES_REQUEST];
	return 0;
}

/* Connections, inboxes and requests that clients in the kernel hold. */
static u64 krc_test_mail_charged(void)
{
	u64 sum = 0;

	krc_limits_walk(0, krc_test_mail_held_by, &sum);
	return sum;
}

void krc_test_mail_exit(struct kunit *test)
{
	struct krc_test_mail *t = krc_test_mail_of(test);

	t->w.stuck = false;
	complete_all(&t->unblock);
	krc_test_mail_close(t);
	krc_test_world_end(test);
	KUNIT_EXPECT_EQ(test, krc_test_mail_charged(), 0ULL);
	KUNIT_EXPECT_EQ(test, kref_read(&t->port.rail.ref), 1U);
	krc_rail_put(&t->port.rail);
	if (!t->memory)
		return;
	KUNIT_EXPECT_EQ(test, kref_read(&t->mr.ref), 1U);
	krc_fake_ops.key_destroy(NULL, &t->mr.key);
	free_pages((unsigned long)t->memory, KRC_TEST_MAIL_ORDER);
}

static void krc_test_mail_listen(struct krc_test_mail *t, u32 backlog)
{
	const struct krcore_listen_conf conf = { .service = KRC_TEST_SERVICE,
						 .backlog = backlog,
						 .offered = krc_test_mail_offered,
						 .arg = t };

	t->listener = krc_listener_make(t->client, &conf);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(t->w.test, t->listener);
}

/* Have the client connected to a stream of the first port. */
void krc_test_mail_joined(struct krc_test_mail *t, struct krc_test_program *a)
{
	if (!t->listener)
		krc_test_mail_listen(t, KRC_TEST_MAIL_PAGES);
	krc_test_connect(&t->w, a, NULL);
	krc_test_until(&t->w, READ_ONCE(a->opened) && READ_ONCE(t->conn));
}

/* Send @nr messages of the client, numbered from @from. */
static void krc_test_mail_send(struct krc_test_mail *t, unsigned long from, u32 nr)
{
	struct krcore_send send = { .bytes = "word", .length = 4, .done = krc_test_mail_done };

	while (nr--) {
		send.arg = (void *)from++;
		KUNIT_EXPECT_EQ(t->w.test, krcore_send(t->conn, &send), 0);
	}
}

static void krc_test_mail_deaf(struct krc_inbox *inbox)
{
}

/* Have the first port listen. */
static void krc_test_mail_peer_listens(struct krc_test_mail *t)
{
	struct krc_test_side *side = &t->w.side[0];

	krc_inbox_init(&side->end[2].inbox, KRP_MESSAGE_UNITS_MAX, krc_test_mail_deaf);
	side->listener =
		krc_listen(side->messages, KRC_TEST_SERVICE, 2, &side->end[2].inbox, &side->end[2]);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(t->w.test, side->listener);
}

static void krc_test_mail_ignore(struct krc_stream *st)
{
}

static void krc_test_mail_ignore_void(struct krc_stream *st, u64 seq)
{
}

static void krc_test_mail_ignore_death(struct krc_stream *st, int err)
{
}

static const struct krc_stream_ops krc_test_mail_stream_ops = {
	.opened = krc_test_mail_ignore,
	.withdrawn = krc_test_mail_ignore_void,
	.died = krc_test_mail_ignore_death,
};

/* Have a program of the first port accept what the client has opened. */
static void krc_test_mail_peer_accepts(struct krc_test_mail *t, struct krc_test_program *a)
{
	struct krc_inbox *offers = &t->w.side[0].end[2].inbox;
	const struct krc_stream_conf conf = { .inbox = &a->inbox,
					      .ops = &krc_test_mail_stream_ops,
					      .owner = a,
					      .user = "who",
					      .user_len = 3 };

	krc_inbox_init(&a->inbox, KRP_MESSAGE_UNITS_MAX, krc_test_mail_deaf);
	krc_test_until(&t->w, READ_ONCE(offers->nr));
	a->stream = krc_stream_accept(krc_inbox_take(offers), &conf);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(t->w.test, a->stream);
}

/* ---- what is told */

/* What comes is sent back; the peer has all of it in order, and the client is told of the end last. */
static void krc_test_mail_echo(struct kunit *test)
{
	struct krc_test_mail *t = krc_test_mail_of(test);
	struct krc_test_program *a = &t->w.side[0].end[0];
	struct krcore_peer peer;

	t->echo = true;
	krc_test_mail_joined(t, a);
	KUNIT_EXPECT_EQ(test, t->peer.service, KRC_TEST_SERVICE);
	KUNIT_EXPECT_EQ(test, t->peer.gid[15], 1);
	KUNIT_EXPECT_EQ(test, t->peer.user_len, 3);
	KUNIT_EXPECT_EQ(test, memcmp(t->peer.user, "who", 3), 0);
	krcore_conn_peer(t->conn, &peer);
	KUNIT_EXPECT_EQ(test, peer.generation, 1000ULL);
	krc_test_say(a, 3, KRC_TEST_MAIL_BYTES);
	krc_test_until(&t->w, (krc_test_read(a), a->next == 3));
	KUNIT_EXPECT_EQ(test, a->wrong, 0U);
	krc_test_until(&t->w, READ_ONCE(t->done) == 3);
	KUNIT_EXPECT_EQ(test, t->failed, 0U);
	KUNIT_EXPECT_EQ(test, krc_stream_shut(a->stream), 0);
	krc_test_until(&t->w, READ_ONCE(t->ended));
	krc_test_close(a, true);
	krc_test_until(&t->w, READ_ONCE(t->died));
	KUNIT_EXPECT_EQ(test, t->err, -ECONNRESET);
	KUNIT_EXPECT_STREQ(test, t->order, "mmmed");
	KUNIT_EXPECT_EQ(test, t->opened, 0U); /* nor has it connected */
	krcore_conn_close(t->conn, false);
}

/* The key of what the first port listens to. */
static struct krp_key krc_test_mail_key(struct krc_test_mail *t)
{
	struct krp_key key = { .service = cpu_to_le16(KRC_TEST_SERVICE) };

	memcpy(key.gid, t->w.side[0].rail.gid.raw, sizeof(key.gid));
	return key;
}

/* Have the client connect to the first port, which listens. Return: as krcore_connect(). */
static struct krcore_conn *krc_test_mail_try(struct krc_test_mail *t,
					     const struct krcore_send *first)
{
	struct krcore_connect_conf to = { .service = KRC_TEST_SERVICE,
					  .timeout_ms = 100,
					  .first = first };
	const struct krcore_conn_conf conf = krc_test_mail_conf(t);
	struct krp_key key = krc_test_mail_key(t);

	memcpy(to.gid, key.gid, sizeof(to.gid));
	KUNIT_ASSERT_EQ(t->w.test,
			krc_cache_put(t->port.cache, &key, &t->w.side[0].value,
				      krc_cache_epoch(t->port.cache)),
			0);
	return krcore_connect(t->client, &to, &conf);
}

static struct krcore_conn *krc_test_mail_dial(struct krc_test_mail *t)
{
	struct krcore_conn *conn = krc_test_mail_try(t, NULL);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(t->w.test, conn);
	return conn;
}

/* The other way round: the client connects, and is told of that before anything else. */
static void krc_test_mail_connects(struct kunit *test)
{
	struct krc_test_mail *t = krc_test_mail_of(test);
	struct krc_test_program *a = &t->w.side[0].end[0];
	struct krp_key key = krc_test_mail_key(t);
	struct krcore_peer peer;

	krc_test_mail_peer_listens(t);
	t->conn = krc_test_mail_dial(t);
	krc_test_mail_send(t, 0, 2); /* before the peer has answered */
	krc_test_mail_peer_accepts(t, a);
	krc_test_say(a, 1, KRC_TEST_MAIL_BYTES);
	krc_test_until(&t->w, READ_ONCE(t->received) && READ_ONCE(t->done) == 2);
	KUNIT_EXPECT_EQ(test, t->order[0], 'o');
	KUNIT_EXPECT_EQ(test, t->opened, 1U);
	KUNIT_EXPECT_EQ(test, t->failed + t->disorder, 0U);
	krcore_conn_peer(t->conn, &peer);
	KUNIT_EXPECT_EQ(test, peer.user_len, 3);
	krcore_conn_close(t->conn, false);
	krc_cache_forget(t->port.cache, &key, U64_MAX);
}

/* A first message goes along with the opening: it is there when the peer has accepted. */
static void krc_test_mail_first(struct kunit *test)
{
	struct krc_test_mail *t = krc_test_mail_of(test);
	struct krcore_send first = { .bytes = t->order, .imm = 9, .done = krc_test_mail_done };
	struct krc_test_program *a = &t->w.side[0].end[0];
	struct krp_key key = krc_test_mail_key(t);
	struct krc_letter *letter;

	krc_test_mail_peer_listens(t);
	first.length = KRCORE_FIRST_MAX + 1;
	KUNIT_EXPECT_EQ(test, PTR_ERR(krc_test_mail_try(t, &first)), -EMSGSIZE);
	first.length = 5;
	first.region = &t->region;
	KUNIT_EXPECT_EQ(test, PTR_ERR(krc_test_mail_try(t, &first)), -EINVAL);
	first.region = NULL;
	first.bytes = NULL;
	KUNIT_EXPECT_EQ(test, PTR_ERR(krc_test_mail_try(t, &first)), -EINVAL);
	first.bytes = "first";
	t->w.side[1].messages->stopped = true; /* what was made is given back */
	KUNIT_EXPECT_EQ(test, PTR_ERR(krc_test_mail_try(t, &first)), -ENODEV);
	t->w.side[1].messages->stopped = false;
	t->conn = krc_test_mail_try(t, &first);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, t->conn);
	krc_test_mail_peer_accepts(t, a);
	letter = krc_inbox_take(&a->inbox);
	KUNIT_ASSERT_NOT_NULL(test, letter);
	KUNIT_EXPECT_EQ(test, letter->imm, 9U);
	KUNIT_EXPECT_EQ(test, letter->length, 5U);
	KUNIT_EXPECT_EQ(test, memcmp(letter->bytes, "first", 5), 0);
	krc_letter_free(letter);
	krc_test_until(&t->w, READ_ONCE(t->done) == 1 && READ_ONCE(t->opened));
	KUNIT_EXPECT_EQ(test, t->failed + t->disorder, 0U);
	krcore_conn_close(t->conn, false);
	krc_cache_forget(t->port.cache, &key, U64_MAX);
}

/* An offer that is not accepted is refused, and a node that is refused may come again. */
static void krc_test_mail_refuses(struct kunit *test)
{
	struct krc_test_mail *t = krc_test_mail_of(test);
	struct krc_test_program *a = t->w.side[0].end;

	t->refuse = true;
	krc_test_mail_listen(t, KRC_TEST_MAIL_PAGES);
	krc_test_connect(&t->w, &a[0], NULL);
	krc_test_until(&t->w, READ_ONCE(a[0].died));
	KUNIT_EXPECT_EQ(test, a[0].err, -ECONNREFUSED);
	KUNIT_EXPECT_EQ(test, t->offered, 1U);
	t->refuse = false;
	krc_test_mail_joined(t, &a[1]);
	krcore_listener_close(t->listener);
	krc_test_connect(&t->w, &a[2], NULL);
	krc_test_until(&t->w, READ_ONCE(a[2].died));
	KUNIT_EXPECT_EQ(test, a[2].err, -ECONNREFUSED);
	krc_test_mail_send(t, 0, 1); /* what was accepted stays */
	krc_test_until(&t->w, READ_ONCE(t->done) == 1);
	KUNIT_EXPECT_EQ(test, t->status, 0);
}

/* A message that a peer announces is not wanted: its sender is told so, and the next one comes. */
static void krc_test_mail_large(struct kunit *test)
{
	struct krc_test_mail *t = krc_test_mail_of(test);
	struct krc_test_program *a = &t->w.side[0].end[0];
	struct krc_out *out;

	krc_test_mail_joined(t, a);
	out = krc_test_message(a, 4);
	out->large = true;
	out->length = 100000;
	out->addr = PAGE_SIZE;
	out->rkey = 77;
	KUNIT_ASSERT_EQ(test, krc_stream_send(a->stream, out), 0);
	krc_test_until(&t->w, READ_ONCE(a->done) == 1);
	KUNIT_EXPECT_EQ(test, a->last, -ENOMSG);
	KUNIT_EXPECT_EQ(test, t->received, 0U);
	krc_test_say(a, 1, KRC_TEST_MAIL_BYTES);
	krc_test_until(&t->w, READ_ONCE(t->received) == 1);
}

/* ---- what a peer can have a client hold */

/* A client that frees nothing holds what its inbox has room for; the rest waits at the peer. */
static void krc_test_mail_a_flood_of_messages(struct kunit *test)
{
	struct krc_test_mail *t = krc_test_mail_of(test);
	struct krc_test_program *a = &t->w.side[0].end[0];
	u32 bound = KRC_TEST_MAIL_PAGES * KRCORE_INBOX_MIN / KRC_TEST_MAIL_LONG;
	u32 i, before = 0, freed = 0;

	t->keep = true;
	krc_test_mail_joined(t, a);
	krc_test_say(a, KRC_TEST_MAIL_FLOOD, KRC_TEST_MAIL_LONG);
	for (i = 0; i < 100 || READ_ONCE(t->kept_nr) != before; i++) { /* until nothing moves */
		if (READ_ONCE(t->kept_nr) != before)
			i = 0;
		before = READ_ONCE(t->kept_nr);
		krc_test_move(&t->w);
		usleep_range(1000, 1100);
	}
	KUNIT_EXPECT_GT(test, before, 0U);
	KUNIT_EXPECT_LE(test, before, bound);
	KUNIT_EXPECT_LE(test, READ_ONCE(a->done), bound);
	WRITE_ONCE(t->keep, false);
	/* also what a slow machine has moved only now */
	krc_test_until(&t->w, ({
		while (freed < READ_ONCE(t->kept_nr))
			krcore_letter_free(t->kept[freed++]);
		READ_ONCE(t->received) == KRC_TEST_MAIL_FLOOD;
	}));
	krc_test_until(&t->w, READ_ONCE(a->done) == KRC_TEST_MAIL_FLOOD);
	KUNIT_EXPECT_EQ(test, a->failed, 0U);
}

/* While a client is busy as many offers wait as it has said, and of one node half of them. */
static void krc_test_mail_a_flood_of_offers(struct kunit *test)
{
	struct krc_test_mail *t = krc_test_mail_of(test);
	const struct krcore_listen_conf more = { .service = KRC_TEST_SERVICE + 1,
						 .backlog = 1,
						 .offered = krc_test_mail_offered,
						 .arg = t };
	struct krc_test_program *a = t->w.side[0].end;

	t->block = true;
	krc_test_mail_listen(t, KRC_TEST_MAIL_PAGES);
	KUNIT_EXPECT_PTR_EQ(test, krc_listener_make(t->client, &more),
			    (struct krcore_listener *)ERR_PTR(-ENOSPC));
	krc_test_connect(&t->w, &a[0], NULL);
	krc_test_until(&t->w, READ_ONCE(t->inside));
	krc_test_connect(&t->w, &a[1], NULL);
	krc_test_connect(&t->w, &a[2], NULL);
	krc_test_until(&t->w, READ_ONCE(a[1].died) && READ_ONCE(a[2].died));
	KUNIT_EXPECT_EQ(test, a[1].err, -EBUSY);
	KUNIT_EXPECT_EQ(test, a[2].err, -EBUSY);
	t->block = false;
	complete_all(&t->unblock);
	krc_test_until(&t->w, READ_ONCE(a[0].opened));
	KUNIT_EXPECT_EQ(test, t->offered, 1U);
	krcore_listener_close(t->listener);
	KUNIT_EXPECT_EQ(test, t->client->box->backlog, 0U);
	t->listener = krc_listener_make(t->client, &more); /* the places are free again */
	KUNIT_EXPECT_NOT_ERR_OR_NULL(test, t->listener);
}

/* ---- what calls refuse */

static void krc_test_mail_clients_that_are_refused(struct kunit *test)
{
	struct krc_test_mail *t = krc_test_mail_of(test);
	struct krc_messages *m = t->port.messages;
	struct krcore_client *none = krc_test_mail_client(t, 0);
	struct krcore_listen_conf listen = { .service = KRC_TEST_SERVICE,
					     .backlog = 1,
					     .timeout_ms = 1,
					     .offered = krc_test_mail_offered };
	struct krcore_connect_conf to = { .service = KRC_TEST_SERVICE, .timeout_ms = 1 };
	struct krcore_conn_conf conf = krc_test_mail_conf(t);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, none);
	KUNIT_EXPECT_EQ(test, PTR_ERR(krcore_listen(none, &listen)), -EBADFD);
	KUNIT_EXPECT_EQ(test, PTR_ERR(krcore_connect(none, &to, &conf)), -EBADFD);
	krcore_client_close(none);
	KUNIT_EXPECT_EQ(test, PTR_ERR(krc_test_mail_client(t, 1)), -EINVAL);
	KUNIT_EXPECT_EQ(test, PTR_ERR(krc_test_mail_client(t, 2 * KRCORE_INBOX_MAX)), -EINVAL);
	t->port.messages = NULL;
	KUNIT_EXPECT_EQ(test, PTR_ERR(krc_test_mail_client(t, KRCORE_INBOX_MIN)), -EOPNOTSUPP);
	t->port.messages = m;
	KUNIT_ASSERT_EQ(test, krc_charge_inbox(t->client->user, KRC_INBOX_PAGES_USER - 2), 0);
	KUNIT_EXPECT_EQ(test, PTR_ERR(krc_test_mail_client(t, KRCORE_INBOX_MIN)), -EDQUOT);
	krc_uncharge_inbox(t->client->user, KRC_INBOX_PAGES_USER - 2);

	listen.service = KRCORE_SERVICE_MIN - 1;
	KUNIT_EXPECT_EQ(test, PTR_ERR(krcore_listen(t->client, &listen)), -EINVAL);
	listen.service = KRC_TEST_SERVICE;
	listen.backlog = KRCORE_BACKLOG_MAX + 1;
	KUNIT_EXPECT_EQ(test, PTR_ERR(krcore_listen(t->client, &listen)), -EINVAL);
	listen.backlog = KRC_TEST_MAIL_PAGES + 1;
	KUNIT_EXPECT_EQ(test, PTR_ERR(krcore_listen(t->client, &listen)), -ENOSPC);
	to.service = KRCORE_SERVICE_MIN - 1;
	KUNIT_EXPECT_EQ(test, PTR_ERR(krcore_connect(t->client, &to, &conf)), -EINVAL);
	to.service = KRC_TEST_SERVICE;
	conf.depth = KRCORE_DEPTH_MAX + 1;
	KUNIT_EXPECT_EQ(test, PTR_ERR(krcore_connect(t->client, &to, &conf)), -EINVAL);
	conf.depth = 1;
	conf.user_len = KRCORE_USER_MAX + 1;
	KUNIT_EXPECT_EQ(test, PTR_ERR(krcore_connect(t->client, &to, &conf)), -EINVAL);
}

static void krc_test_mail_sends_that_are_refused(struct kunit *test)
{
	struct krc_test_mail *t = krc_test_mail_of(test);
	struct krcore_send send = { .length = 1, .done = krc_test_mail_done };

	krc_test_mail_joined(t, &t->w.side[0].end[0]);
	KUNIT_EXPECT_EQ(test, krcore_send(t->conn, &send), -EINVAL); /* no bytes */
	send.bytes = "x";
	send.length = KRCORE_MESSAGE_MAX + 1;
	KUNIT_EXPECT_EQ(test, krcore_send(t->conn, &send), -EMSGSIZE);
	send.length = 1;
	send.done = NULL;
	KUNIT_EXPECT_EQ(test, krcore_send(t->conn, &send), -EINVAL);
	send.done = krc_test_mail_done;
	t->w.stuck = true;
	krc_test_mail_send(t, 0, KRC_TEST_MAIL_DEPTH);
	KUNIT_EXPECT_EQ(test, krcore_send(t->conn, &send), -EAGAIN);
	t->w.stuck = false;
	krc_test_until(&t->w, READ_ONCE(t->done) == KRC_TEST_MAIL_DEPTH);
	KUNIT_EXPECT_EQ(test, t->failed + t->disorder, 0U);
	KUNIT_EXPECT_EQ(test, krcore_conn_shut(t->conn), 0);
	KUNIT_EXPECT_EQ(test, krcore_conn_shut(t->conn), -EALREADY);
	KUNIT_EXPECT_EQ(test, krcore_send(t->conn, &send), -EPIPE);
	KUNIT_EXPECT_EQ(test, t->done, (u32)KRC_TEST_MAIL_DEPTH);
	KUNIT_EXPECT_EQ(test, t->conn->busy, 0U);
}

/* ---- diagnostics */

/**
 * struct krc_test_mail_shown - What a walk has shown.
 * @info: the connections.
 * @nr: how many.
 * @max: how many it takes.
 */
struct krc_test_mail_shown {
	struct krc_conn_info info[2];
	u32 nr;
	u32 max;
};

static int krc_test_mail_show(const struct krc_conn_info *info, void *arg)
{
	struct krc_test_mail_shown *shown = arg;

	if (shown->nr == shown->max)
		return -EMSGSIZE;
	shown->info[shown->nr++] = *info;
	return 0;
}

#define KRC_TEST_MAIL_MANY \
	200 /* connections that are listed; more than under one hold of the lock */
#define KRC_TEST_MAIL_ROOM 7 /* of a message of netlink, say */

/* Of a list: how many there were, the last one's number, and for how many there is room. */
struct krc_test_mail_list {
	u32 nr;
	u32 last;
	u32 room;
	u32 wrong;
};

static int krc_test_mail_list_one(const struct krc_conn_info *info, void *arg)
{
	struct krc_test_mail_list *list = arg;

	if (!list->room)
		return -EMSGSIZE;
	list->room--;
	list->nr++;
	list->wrong += info->how.connection <= list->last;
	list->last = info->how.connection;
	return 0;
}

/* A list of many goes on where it was refused one, whichever of them have gone meanwhile. */
static void krc_test_mail_a_list_goes_on(struct kunit *test)
{
	struct krc_test_mail *t = krc_test_mail_of(test);
	struct krc_test_mail_list list = {};
	struct krcore_conn *many;
	struct krc_conn_at at = {};
	struct krc_api_box *box;
	u32 i, rounds;

	krc_test_mail_joined(t, &t->w.side[0].end[0]);
	box = t->client->box;
	many = kunit_kcalloc(test, KRC_TEST_MAIL_MANY, sizeof(*many), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, many);
	for (i = 0; i < KRC_TEST_MAIL_MANY; i++) {
		many[i].box = box;
		many[i].stream = t->conn->stream;
		krc_box_enlist(&many[i]);
	}
	for (rounds = 0; !list.room && rounds < KRC_TEST_MAIL_MANY; rounds++) {
		list.room = KRC_TEST_MAIL_ROOM;
		krc_conn_walk(&at, krc_test_mail_list_one, &list);
		if (rounds)
			continue;
		spin_lock(&box->lock); /* the last one that was shown, and the next one */
		rb_erase(&many[KRC_TEST_MAIL_ROOM - 2].node, &box->conns);
		rb_erase(&many[KRC_TEST_MAIL_ROOM - 1].node, &box->conns);
		spin_unlock(&box->lock);
	}
	/* the one that has a stream, and all but one of the two: the other had been shown */
	KUNIT_EXPECT_EQ(test, list.nr, (u32)KRC_TEST_MAIL_MANY);
	KUNIT_EXPECT_EQ(test, list.last, many[KRC_TEST_MAIL_MANY - 1].number);
	KUNIT_EXPECT_EQ(test, list.wrong, 0U);
	spin_lock(&box->lock);
	for (i = 0; i < KRC_TEST_MAIL_MANY; i++)
		if (i != KRC_TEST_MAIL_ROOM - 2 && i != KRC_TEST_MAIL_ROOM - 1)
			rb_erase(&many[i].node, &box->conns);
	spin_unlock(&box->lock);
}

/* A walk that was refused one goes on with it; of a client that is closed nothing is shown. */
static void krc_test_mail_is_shown(struct kunit *test)
{
	struct krc_test_mail *t = krc_test_mail_of(test);
	struct krc_test_program *a = t->w.side[0].end;
	struct krc_test_mail_shown shown = { .max = 1 };
	struct krc_conn_info *info = shown.info;
	struct krc_conn_at at = {};

	t->keep = true;
	krc_test_mail_joined(t, &a[0]);
	krc_test_say(&a[0], 2, KRC_TEST_MAIL_BYTES);
	krc_test_until(&t->w, READ_ONCE(t->kept_nr) == 2);
	WRITE_ONCE(t->conn, NULL);
	krc_test_mail_joined(t, &a[1]);
	krc_conn_walk(&at, krc_test_mail_show, &shown);
	KUNIT_ASSERT_EQ(test, shown.nr, 1U);
	KUNIT_EXPECT_EQ(test, info->client, t->client->number);
	KUNIT_EXPECT_STREQ(test, info->name, "mail");
	KUNIT_EXPECT_EQ(test, info->depth, (u32)KRC_TEST_MAIL_DEPTH);
	KUNIT_EXPECT_EQ(test, info->how.state, (u32)KRP_CONN_OPEN);
	KUNIT_EXPECT_EQ(test, info->how.received, 2ULL);
	KUNIT_EXPECT_EQ(test, info->how.backlog, 2U);
	KUNIT_EXPECT_GT(test, info->how.window, 0U);
	KUNIT_EXPECT_EQ(test, info->how.peer.gid[15], 1);
	KUNIT_EXPECT_EQ(test, info->how.peer.service, KRC_TEST_SERVICE);
	shown.max = 2;
	krc_conn_walk(&at, krc_test_mail_show, &shown);
	KUNIT_ASSERT_EQ(test, shown.nr, 2U);
	KUNIT_EXPECT_EQ(test, info[1].client, info->client);
	KUNIT_EXPECT_EQ(test, info[1].how.connection, info->how.connection + 1);
	KUNIT_EXPECT_EQ(test, info[1].how.backlog, 0U);
	krc_conn_walk(&at, krc_test_mail_show,
		      &shown); /* behind the last one: it would be refused */
	KUNIT_EXPECT_GT(test, at.client, info->client);
	krc_test_mail_close(t);
	at = (struct krc_conn_at){};
	shown.nr = 0;
	krc_conn_walk(&at, krc_test_mail_show, &shown);
	KUNIT_EXPECT_EQ(test, shown.nr, 0U);
}

/* ---- ends */

/* Each message that is under way is told of once, by the close; what the NIC does later harms nobody. */
static void krc_test_mail_close_under_traffic(struct kunit *test)
{
	struct krc_test_mail *t = krc_test_mail_of(test);
	struct krc_test_program *a = &t->w.side[0].end[0];

	t->keep = true;
	krc_test_mail_joined(t, a);
	krc_test_say(a, 2, KRC_TEST_MAIL_BYTES);
	krc_test_until(&t->w, READ_ONCE(t->kept_nr) == 2);
	t->w.stuck = true;
	krc_test_mail_send(t, 0, KRC_TEST_MAIL_DEPTH);
	krcore_conn_close(t->conn, false);
	KUNIT_EXPECT_EQ(test, t->done, (u32)KRC_TEST_MAIL_DEPTH);
	KUNIT_EXPECT_EQ(test, t->failed, (u32)KRC_TEST_MAIL_DEPTH);
	KUNIT_EXPECT_EQ(test, t->status, -ECANCELED);
	KUNIT_EXPECT_EQ(test, t->barred, (u32)KRC_TEST_MAIL_DEPTH);
	KUNIT_EXPECT_EQ(test, t->disorder, 0U);
	krc_test_mail_close(t);
	t->w.stuck = false;
	krc_test_until(&t->w, (krc_test_read(a), a->ended)); /* it went out nevertheless */
	KUNIT_EXPECT_EQ(test, a->next, (u32)KRC_TEST_MAIL_DEPTH);
	KUNIT_EXPECT_EQ(test, t->done, (u32)KRC_TEST_MAIL_DEPTH);
}

/* A callback closes its own connection: nothing more of it is told, whatever has come. */
static void krc_test_mail_a_callback_closes(struct kunit *test)
{
	struct krc_test_mail *t = krc_test_mail_of(test);
	struct krc_test_program *a = &t->w.side[0].end[0];

	t->closing = true;
	krc_test_mail_joined(t, a);
	krc_test_say(a, 5, KRC_TEST_MAIL_BYTES);
	/* the peer may hear of it before the callback has returned */
	krc_test_until(&t->w, READ_ONCE(a->died) && !READ_ONCE(t->conn));
	KUNIT_EXPECT_EQ(test, a->err, -ECONNRESET);
	KUNIT_EXPECT_EQ(test, t->received, 1U);
	KUNIT_EXPECT_EQ(test, t->died, 0U);
}

/* opened() closes its connection, when a message that is there already has it told first. */
static void krc_test_mail_opened_closes(struct kunit *test)
{
	struct krc_test_mail *t = krc_test_mail_of(test);
	struct krc_test_program *a = t->w.side[0].end;
	struct krp_key key = krc_test_mail_key(t);
	struct krcore_conn *late;

	krc_test_mail_peer_listens(t);
	t->block = true;
	t->conn = krc_test_mail_dial(t);
	krc_test_mail_peer_accepts(t, &a[0]);
	krc_test_until(&t->w, READ_ONCE(t->inside));
	late = krc_test_mail_dial(t);
	krc_test_mail_peer_accepts(t, &a[1]);
	krc_test_say(&a[1], 1, KRC_TEST_MAIL_BYTES);
	krc_test_until(&t->w, READ_ONCE(t->client->box->inbox.nr) &&
				      READ_ONCE(late->news) & KRC_CONN_OPENED);
	t->block = false;
	t->closing = true;
	complete(&t->unblock);
	krc_test_until(&t->w, READ_ONCE(t->opened) == 2);
	krcore_conn_close(t->conn, false);
	KUNIT_EXPECT_EQ(test, t->received, 0U);
	KUNIT_EXPECT_STREQ(test, t->order, "oo");
	krc_cache_forget(t->port.cache, &key, U64_MAX);
}

/* A close waits for no callback of others, which may be waiting for whoever closes. */
static void krc_test_mail_a_close_waits_for_its_own(struct kunit *test)
{
	struct krc_test_mail *t = krc_test_mail_of(test);
	struct krc_test_program *a = t->w.side[0].end;

	krc_test_mail_joined(t, &a[0]);
	t->block = true;
	krc_test_connect(&t->w, &a[1], NULL);
	krc_test_until(&t->w, READ_ONCE(t->inside));
	krcore_conn_close(t->conn, true);
	KUNIT_EXPECT_EQ(test, t->offered, 2U);
	t->block = false;
	complete(&t->unblock);
	krc_test_until(&t->w, READ_ONCE(a[1].opened));
}

/* What one connection has received is kept until it has gone out by another; both ways at once. */
static void krc_test_mail_a_forwarder_is_closed(struct kunit *test)
{
	struct krc_test_mail *t = krc_test_mail_of(test);
	struct krcore_send send = { .bytes = "on", .length = 2, .done = krc_test_mail_echoed };
	struct krc_test_program *a = t->w.side[0].end;
	struct krcore_conn *conn[2];
	u32 i;

	t->keep = true;
	for (i = 0; i < ARRAY_SIZE(conn); i++) {
		WRITE_ONCE(t->conn, NULL);
		krc_test_mail_joined(t, &a[i]);
		conn[i] = t->conn;
		krc_test_say(&a[i], 1, KRC_TEST_MAIL_BYTES);
		krc_test_until(&t->w, READ_ONCE(t->kept_nr) == i + 1);
	}
	t->w.stuck = true;
	for (i = 0; i < ARRAY_SIZE(conn); i++) {
		send.arg = t->kept[!i];
		KUNIT_EXPECT_EQ(test, krcore_send(conn[i], &send), 0);
	}
	krc_test_mail_close(t);
	KUNIT_EXPECT_EQ(test, t->done, 2U);
	KUNIT_EXPECT_EQ(test, t->status, -ECANCELED);
	t->w.stuck = false;
}

/* A module that is unloaded with all of it open, while a peer sends and another one is offered. */
static void krc_test_mail_a_module_that_forgets(struct kunit *test)
{
	struct krc_test_mail *t = krc_test_mail_of(test);
	struct krc_test_program *a = t->w.side[0].end;

	t->keep = true;
	krc_test_mail_joined(t, &a[0]);
	krc_test_say(&a[0], KRC_TEST_MAIL_FLOOD, KRC_TEST_MAIL_BYTES);
	krc_test_connect(&t->w, &a[1], NULL);
	krc_test_until(&t->w, READ_ONCE(t->kept_nr) > 2);
	t->w.stuck = true;
	krc_test_mail_send(t, 0, 1);
	KUNIT_EXPECT_EQ(test, krc_clients_close_of((struct module *)t), 1U);
	t->client = NULL;
	t->w.stuck = false;
	KUNIT_EXPECT_EQ(test, t->done, 1U);
	/* also where the stream says something else */
	KUNIT_EXPECT_EQ(test, t->status, -ECANCELED);
	KUNIT_EXPECT_EQ(test, t->barred, 1U);
	krc_test_until(&t->w, READ_ONCE(a[0].died) && READ_ONCE(a[1].died));
	KUNIT_EXPECT_EQ(test, a[0].err, -ECONNRESET);
}

/**
 * struct krc_test_mail_closer - A task that closes a client, and is held up in it.
 * @close: closes it.
 * @go: lets it go on.
 * @t: client.
 * @gone: @go has run.
 */
struct krc_test_mail_closer {
	struct work_struct close;
	struct delayed_work go;
	struct krc_test_mail *t;
	bool gone;
};

static void krc_test_mail_closer_close(struct work_struct *work)
{
	krcore_client_close(container_of(work, struct krc_test_mail_closer, close)->t->client);
}

static void krc_test_mail_closer_go(struct work_struct *work)
{
	struct krc_test_mail_closer *c =
		container_of(to_delayed_work(work), struct krc_test_mail_closer, go);

	WRITE_ONCE(c->gone, true);
	complete(&c->t->unblock);
}

/* A module's text stays while one of its tasks closes a client, which may still call it. */
static void krc_test_mail_a_module_that_closes(struct kunit *test)
{
	struct krc_test_mail *t = krc_test_mail_of(test);
	struct krc_test_mail_closer c = { .t = t };

	INIT_WORK_ONSTACK(&c.close, krc_test_mail_closer_close);
	INIT_DELAYED_WORK_ONSTACK(&c.go, krc_test_mail_closer_go);
	krc_test_mail_listen(t, KRC_TEST_MAIL_PAGES);
	t->block = true;
	krc_test_connect(&t->w, &t->w.side[0].end[0], NULL);
	krc_test_until(&t->w, READ_ONCE(t->inside));
	schedule_work(&c.close);
	krc_test_until(&t->w, READ_ONCE(t->client->closing));
	schedule_delayed_work(&c.go, HZ);
	KUNIT_EXPECT_EQ(test, krc_clients_close_of((struct module *)t), 0U);
	KUNIT_EXPECT_TRUE(test, READ_ONCE(c.gone));
	flush_delayed_work(&c.go);
	flush_work(&c.close);
	t->client = NULL;
	destroy_work_on_stack(&c.close);
	destroy_delayed_work_on_stack(&c.go);
}

/* The port ends under a client: what was sent is told of, and then that the connection has died. */
static void krc_test_mail_a_port_that_goes(struct kunit *test)
{
	struct krc_test_mail *t = krc_test_mail_of(test);
	struct krcore_connect_conf to = { .service = KRC_TEST_SERVICE, .timeout_ms = 1 };
	const struct krcore_conn_conf conf = krc_test_mail_conf(t);
	struct krcore_send send = { .done = krc_test_mail_done };

	krc_test_mail_joined(t, &t->w.side[0].end[0]);
	t->w.stuck = true;
	krc_test_mail_send(t, 0, 2);
	krc_rail_kill(&t->port.rail);
	krc_test_side_end(&t->w.side[1]);
	krc_rail_wait_idle(&t->port.rail);
	krc_test_until(&t->w, READ_ONCE(t->died));
	KUNIT_EXPECT_EQ(test, t->err, -ENODEV);
	KUNIT_EXPECT_EQ(test, t->done, 2U);
	KUNIT_EXPECT_EQ(test, t->status, -ENODEV);
	KUNIT_EXPECT_EQ(test, krcore_send(t->conn, &send), -ENODEV);
	KUNIT_EXPECT_EQ(test, PTR_ERR(krcore_connect(t->client, &to, &conf)), -ENODEV);
	KUNIT_EXPECT_EQ(test, PTR_ERR(krc_test_mail_client(t, KRCORE_INBOX_MIN)), -ENODEV);
	krcore_conn_close(t->conn, true);
}

static struct kunit_case krc_api_message_cases[] = {
	KUNIT_CASE(krc_test_mail_echo),
	KUNIT_CASE(krc_test_mail_connects),
	KUNIT_CASE(krc_test_mail_first),
	KUNIT_CASE(krc_test_mail_refuses),
	KUNIT_CASE(krc_test_mail_large),
	KUNIT_CASE(krc_test_mail_a_flood_of_messages),
	KUNIT_CASE(krc_test_mail_a_flood_of_offers),
	KUNIT_CASE(krc_test_mail_clients_that_are_refused),
	KUNIT_CASE(krc_test_mail_sends_that_are_refused),
	KUNIT_CASE(krc_test_mail_is_shown),
	KUNIT_CASE(krc_test_mail_a_list_goes_on),
	KUNIT_CASE(krc_test_mail_close_under_traffic),
	KUNIT_CASE(krc_test_mail_a_callback_closes),
	KUNIT_CASE(krc_test_mail_opened_closes),
	KUNIT_CASE(krc_test_mail_a_close_waits_for_its_own),
	KUNIT_CASE(krc_test_mail_a_forwarder_is_closed),
	KUNIT_CASE(krc_test_mail_a_module_that_forgets),
	KUNIT_CASE(krc_test_mail_a_module_that_closes),
	KUNIT_CASE(krc_test_mail_a_port_that_goes),
	{},
};

static struct kunit_suite krc_api_message_suite = {
	.name = "krcore_api_message",
	.init = krc_test_mail_init,
	.exit = krc_test_mail_exit,
	.test_cases = krc_api_message_cases,
};

kunit_test_suite(krc_api_message_suite);
