// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: two ports with messages for the KUnit suites of messages, and their programs.
 * Locking: see krc_stream_test.h.
 */
#include <linux/prandom.h>

#include "krc_stream_test.h"
#include "pool/pool.h"

static struct krc_provider_ops krc_test_ops; /* the NIC in memory, which may lose what arrives */
struct krc_test_world *krc_test_world_now;

/* ---- ports */

/*
 * Whether what arrives now is lost. Not each nth: a round of PROBE, CREDIT and a whole window may
 * be a multiple of n long, and then the first message of the window is lost, for ever.
 */
static bool krc_test_loses(struct krc_test_world *w)
{
	w->random = next_pseudo_random32(w->random);
	return w->lose && !((w->random >> 16) % w->lose);
}

/* What a buffer of a target holds. Return: KRP_MESSAGE_*, or 0. */
static u8 krc_test_type(const struct krc_test_world *w, const struct krc_hw_target *target,
			u64 cookie)
{
	u32 i = w->side[0].target == target ? 0 : 1;
	struct krc_packet *packet = krc_packet_at(w->side[i].messages->receive.packets, cookie);

	return packet ? ((const struct krp_message *)packet->data)->type : 0;
}

static int krc_test_recv_poll(struct krc_hw_target *target, struct krc_recv_wc *wc, int max)
{
	struct krc_test_world *w = krc_test_world_now;
	int nr = krc_fake_ops.recv_poll(target, wc, max), i;

	for (i = 0; i < nr; i++)
		if (krc_test_loses(w) ||
		    (w->only && krc_test_type(w, target, wc[i].cookie) != w->only))
			wc[i].fault = KRC_FAULT_LOCAL;
	return nr;
}

static const struct krc_hw_events krc_test_events = { .received = krc_messages_on_received,
						      .receive_fatal = krc_messages_on_fatal };

static struct krc_test_side *krc_test_side_of(struct krc_test_world *w, const struct krp_key *key)
{
	u32 i;

	for (i = 0; i < KRC_TEST_PORTS; i++)
		if (!memcmp(w->side[i].rail.gid.raw, key->gid, sizeof(key->gid)))
			return &w->side[i];
	return NULL;
}

static int krc_test_record(struct krc_test_side *side, struct krp_value *ret_value)
{
	if (!side || side->absent)
		return -ENOENT;
	*ret_value = side->value;
	if (side->generation)
		ret_value->generation = cpu_to_le64(side->generation);
	return 0;
}

static int krc_test_cached(void *arg, const struct krp_key *key, struct krp_value *ret_value)
{
	struct krc_test_side *side = krc_test_side_of(arg, key);

	return side && side->cached ? krc_test_record(side, ret_value) : -ENOENT;
}

static int krc_test_lookup(void *arg, const struct krp_key *key, struct krp_value *ret_value)
{
	struct krc_test_side *side = krc_test_side_of(arg, key);
	struct krc_test_world *w = arg;
	int err = krc_test_record(side, ret_value);

	while (READ_ONCE(w->blocked))
		usleep_range(1000, 1100);
	if (side) {
		WRITE_ONCE(side->lookups, side->lookups + 1);
		side->cached = !err;
	}
	return err;
}

/*
 * Nothing here takes long, so nothing need be waited for as long as on a fabric. But a peer is not
 * silent when the test, which moves the NICs, stands still for a few seconds.
 */
static void krc_test_hurry(struct krc_messages *m)
{
	m->conf.retry_ns = 10 * NSEC_PER_MSEC;
	m->conf.retry_max_ns = 50 * NSEC_PER_MSEC;
	m->conf.silence_ns = 10ULL * NSEC_PER_SEC;
	m->conf.linger_ns = 100 * NSEC_PER_MSEC;
}

static void krc_test_rail_release(struct krc_rail *rail)
{
	krc_rail_fini(rail);
}

static int krc_test_side_start(struct krc_test_world *w, struct krc_test_side *side)
{
	const struct krc_message_records records = { krc_test_cached, krc_test_lookup, w };
	struct krc_hw_receive receive = {};

	side->messages = krc_messages_create(&side->rail, &records);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(w->test, side->messages);
	krc_test_hurry(side->messages);
	receive.depth = krc_messages_depth(&side->rail);
	receive.owner = side->messages;
	side->target = krc_test_ops.target_create(side->rail.hw, 1, 0, 77, &receive, &side->value);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(w->test, side->target);
	side->pool = krc_pool_create(&side->rail, 1, KRC_TEST_QUEUE);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(w->test, side->pool);
	side->value.generation = cpu_to_le64(side->rail.generation);
	return krc_messages_start(side->messages, side->target, side->pool, &side->value);
}

static int krc_test_side_make(struct krc_test_world *w, u32 i)
{
	struct krc_test_side *side = &w->side[i];
	u32 e;

	for (e = 0; e < ARRAY_SIZE(side->end); e++)
		side->end[e].test = w->test;
	side->fake = krc_fake_create();
	KUNIT_ASSERT_NOT_NULL(w->test, side->fake);
	side->fake->events = &krc_test_events;
	KUNIT_ASSERT_EQ(w->test, krc_rail_init(&side->rail, krc_test_rail_release), 0);
	side->rail.ops = &krc_test_ops;
	side->rail.hw = krc_fake_hw(side->fake);
	side->rail.num = 1;
	side->rail.attr.recv_depth_max = 256; /* more than two windows, and questions of seconds */
	side->rail.generation = 1000 + i;
	side->rail.margin_ms = 10000;
	side->rail.gid.raw[15] = i + 1;
	return krc_test_side_start(w, side);
}

void krc_test_side_end(struct krc_test_side *side)
{
	u32 e;

	if (IS_ERR_OR_NULL(side->messages))
		return;
	krc_rail_kill(&side->rail);
	krc_pool_stop(side->pool);
	krc_messages_stop(side->messages);
	for (e = 0; e < ARRAY_SIZE(side->end); e++)
		KUNIT_EXPECT_TRUE(side->end[e].test,
				  IS_ERR_OR_NULL(side->end[e].stream) || side->end[e].died);
	krc_rail_wait_idle(&side->rail);
	krc_test_ops.target_destroy(side->target);
	krc_messages_destroy(side->messages);
	krc_pool_destroy(side->pool);
	side->messages = NULL;
}

/* ---- programs */

static void krc_test_opened(struct krc_stream *st)
{
	struct krc_test_program *end = krc_stream_owner(st);

	WRITE_ONCE(end->opened, end->opened + 1);
}

static void krc_test_withdrawn(struct krc_stream *st, u64 seq)
{
	struct krc_test_program *end = krc_stream_owner(st);

	WRITE_ONCE(end->withdrawn, end->withdrawn + 1);
}

static void krc_test_died(struct krc_stream *st, int err)
{
	struct krc_test_program *end = krc_stream_owner(st);

	end->err = err;
	WRITE_ONCE(end->died, end->died + 1);
}

static const struct krc_stream_ops krc_test_stream_ops = { .opened = krc_test_opened,
							   .withdrawn = krc_test_withdrawn,
							   .died = krc_test_died };

static void krc_test_inbox_arrived(struct krc_inbox *inbox)
{
}

static struct krc_stream_conf krc_test_conf_of(struct krc_test_program *end)
{
	return (struct krc_stream_conf){ .inbox = &end->inbox,
					 .ops = &krc_test_stream_ops,
					 .owner = end,
					 .user = "who",
					 .user_len = 3 };
}

static void krc_test_out_end(struct krc_out *out, int err)
{
	struct krc_test_program *end = out->owner;

	if (err) {
		end->failed++;
		end->last = err;
	} else if (!out->large) {
		end->disorder += !!memcmp(out->bytes, &end->done, sizeof(end->done));
	}
	WRITE_ONCE(end->done, end->done + 1);
	krc_out_free(out);
}

struct krc_out *krc_test_message(struct krc_test_program *end, u32 bytes)
{
	struct krc_out *out = krc_out_alloc(bytes, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(end->test, out);
	out->owner = end;
	out->end = krc_test_out_end;
	out->imm = end->sent ^ 0x55;
	memset(out->bytes, (u8)end->sent, bytes);
	memcpy(out->bytes, &end->sent, sizeof(end->sent));
	end->sent++;
	return out;
}

void krc_test_say(struct krc_test_program *end, u32 nr, u32 bytes)
{
	while (nr--)
		KUNIT_ASSERT_EQ(end->test,
				krc_stream_send(end->stream, krc_test_message(end, bytes)), 0);
}

static void krc_test_check_letter(struct krc_test_program *end, const struct krc_letter *letter)
{
	bool right = letter->length >= 4 && letter->imm == (end->next ^ 0x55) &&
		     !memcmp(letter->bytes, &end->next, sizeof(end->next)) &&
		     !memchr_inv(letter->bytes + 4, (u8)end->next, letter->length - 4);

	end->wrong += !right || letter->stream != end->stream;
	WRITE_ONCE(end->next, end->next + 1);
}

void krc_test_read(struct krc_test_program *end)
{
	struct krc_letter *letter;

	while ((letter = krc_inbox_take(&end->inbox))) {
		if (letter->kind == KRC_LETTER_MESSAGE)
			krc_test_check_letter(end, letter);
		end->ended += letter->kind == KRC_LETTER_ENDED;
		if (letter->kind == KRC_LETTER_LARGE && !end->large)
			end->large = letter;
		else
			krc_letter_free(letter);
	}
}

void krc_test_listen(struct krc_test_world *w, u32 backlog)
{
	struct krc_test_side *side = &w->side[1];

	krc_inbox_init(&side->end[2].inbox, KRP_MESSAGE_UNITS_MAX, krc_test_inbox_arrived);
	side->listener = krc_listen(side->messages, KRC_TEST_SERVICE, backlog, &side->end[2].inbox,
				    &side->end[2]);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(w->test, side->listener);
}

void krc_test_connect(struct krc_test_world *w, struct krc_test_program *end, struct krc_out *first)
{
	struct krc_stream_conf conf = krc_test_conf_of(end);

	krc_inbox_init(&end->inbox, 64 * KRP_MESSAGE_UNITS_MAX, krc_test_inbox_arrived);
	end->inbox.charge = end->charge;
	end->stream = krc_stream_connect(w->side[0].messages, &w->side[1].rail.gid,
					 KRC_TEST_SERVICE, &w->side[1].value, &conf, first);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(w->test, end->stream);
}

void krc_test_accept(struct krc_test_world *w, struct krc_test_program *end)
{
	struct krc_stream_conf conf = krc_test_conf_of(end);
	struct krc_letter *offer;

	krc_inbox_init(&end->inbox, 64 * KRP_MESSAGE_UNITS_MAX, krc_test_inbox_arrived);
	krc_test_until(w, READ_ONCE(w->side[1].end[2].inbox.nr));
	offer = krc_inbox_take(&w->side[1].end[2].inbox);
	KUNIT_ASSERT_NOT_NULL(w->test, offer);
	KUNIT_EXPECT_EQ(w->test, (u32)offer->kind, (u32)KRC_LETTER_OFFER);
	KUNIT_EXPECT_PTR_EQ(w->test, krc_stream_owner(offer->stream), (void *)&w->side[1].end[2]);
	end->stream = krc_stream_accept(offer, &conf);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(w->test, end->stream);
}

void krc_test_pair(struct krc_test_world *w, u32 i)
{
	if (!w->side[1].listener)
		krc_test_listen(w, 4);
	krc_test_connect(w, &w->side[0].end[i], NULL);
	krc_test_accept(w, &w->side[1].end[i]);
	krc_test_until(w, READ_ONCE(w->side[0].end[i].opened));
}

void krc_test_close(struct krc_test_program *end, bool abort)
{
	if (IS_ERR_OR_NULL(end->stream))
		return;
	if (end->large)
		krc_letter_free(end->large);
	end->large = NULL;
	krc_stream_close(end->stream, abort);
	end->stream = NULL;
}

/* ---- forgery */

u32 krc_test_answering(struct krc_messages *m)
{
	u32 i, busy = 0;

	spin_lock_bh(&m->lock);
	for (i = 0; i < KRC_ANSWERS; i++)
		busy += m->answers[i].busy;
	spin_unlock_bh(&m->lock);
	return busy;
}

/* Packets of other kinds may be under way, so that counting packets would not tell. */
void krc_test_forge(struct krc_test_world *w, const void *packet, u32 bytes)
{
	struct krc_stream *st = w->side[0].end[0].stream;
	const struct krp_message *head = packet;

	krc_answer_send(w->side[0].messages, &st->address, st->proof.standing, head, head + 1,
			bytes - sizeof(*head));
	krc_test_until(w, !krc_test_answering(w->side[0].messages));
	flush_work(&w->side[1].messages->receive.work); /* what it counts is counted */
}

struct krp_message krc_test_header(struct krc_test_world *w)
{
	const struct krp_stream *s = &w->side[0].end[0].stream->s;

	return (struct krp_message){ .magic = cpu_to_le16(KRP_MESSAGE_MAGIC),
				     .version = KRP_MESSAGE_VERSION,
				     .type = KRP_MESSAGE_DATA,
				     .tag = cpu_to_le64(s->peer_tag),
				     .src = cpu_to_le32(s->src),
				     .dst = cpu_to_le32(s->dst),
				     .generation = cpu_to_le64(s->generation),
				     .seq = cpu_to_le64(s->tx.next),
				     .ack = cpu_to_le64(s->rx.expect),
				     .msgs = cpu_to_le32(s->rx.told_msgs),
				     .units = cpu_to_le32(s->rx.told_units) };
}

struct krc_test_open krc_test_open_again(struct krc_test_world *w, const struct krc_test_program *a)
{
	struct krc_test_open packet = { .m = krc_test_header(w), .open = a->stream->s.open };

	packet.m.type = KRP_MESSAGE_OPEN;
	packet.m.tag = 0;
	packet.m.seq = cpu_to_le64(1);
	packet.m.ack = cpu_to_le64(1);
	packet.m.dst = cpu_to_le32(KRC_TEST_SERVICE);
	return packet;
}

/* ---- the world */

/* The NIC of a port gives up a READ, the oldest of an initiator that no message is on. */
static void krc_test_unanswer(struct krc_test_side *side)
{
	u32 i;

	for (i = 0; i < KRC_FAKE_INITIATORS && side->unanswered; i++) {
		if (!krc_test_reads_on(side, i) || !krc_fake_pending(side->fake, i))
			continue;
		side->unanswered--;
		krc_fake_fail(side->fake, i, KRC_FAULT_TIMEOUT);
		return;
	}
}

void krc_test_move(struct krc_test_world *w)
{
	u32 i, n;

	for (i = 0; i < KRC_TEST_PORTS && !w->stuck; i++) {
		if (IS_ERR_OR_NULL(w->side[i].messages))
			continue;
		krc_test_unanswer(&w->side[i]);
		for (n = 0; n < KRC_FAKE_INITIATORS; n++) {
			if (w->twice)
				krc_fake_arrive(w->side[i].fake, n);
			krc_fake_complete(w->side[i].fake, n, w->twice ? 1 : KRC_TEST_QUEUE);
		}
	}
}

/* Whether a stream waits for nothing, owes nothing, and nobody is about to tell of it. */
static bool krc_test_rests(struct krc_stream *st)
{
	bool rests;

	spin_lock_bh(&st->lock);
	rests = !krp_stream_waits(&st->s) && st->s.time.ack_at_ns == KRP_STREAM_FOREVER_NS &&
		!st->proof.under_way && !st->run.task;
	spin_unlock_bh(&st->lock);
	return rests;
}

/* Whether all streams of a port rest. */
static bool krc_test_all_rest(struct krc_messages *m)
{
	unsigned long number = 0;
	struct krc_stream *st;
	bool rest = true;

	for (;;) {
		xa_lock_bh(&m->streams);
		st = xa_find(&m->streams, &number, ULONG_MAX, XA_PRESENT);
		if (st)
			krc_stream_get(st);
		xa_unlock_bh(&m->streams);
		if (!st)
			return rest;
		rest &= krc_test_rests(st);
		krc_stream_put(st);
		number++;
	}
}

/* Whether both ports have taken what has come, and have sent nothing since. */
static bool krc_test_is_quiet(struct krc_test_world *w)
{
	bool quiet = true;
	u32 i;

	for (i = 0; i < KRC_TEST_PORTS; i++) {
		struct krc_messages *m = w->side[i].messages;

		if (IS_ERR_OR_NULL(m))
			continue;
		flush_work(&m->receive.work);
		flush_work(&m->asked.work);
		quiet &= krc_packets_free(m->tx) == KRC_MESSAGES_TX && krc_test_all_rest(m);
	}
	return quiet;
}

void krc_test_quiet(struct krc_test_world *w)
{
	krc_test_until(w, krc_test_is_quiet(w));
}

void krc_test_world_set(struct kunit *test, struct krc_test_world *w)
{
	u32 i;

	test->priv = w;
	w->test = test;
	krc_test_world_now = w;
	krc_test_ops = krc_fake_ops;
	krc_test_ops.recv_poll = krc_test_recv_poll;
	for (i = 0; i < KRC_TEST_PORTS; i++)
		KUNIT_ASSERT_EQ(test, krc_test_side_make(w, i), 0);
}

int krc_test_world_make(struct kunit *test)
{
	struct krc_test_world *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, w);
	krc_test_world_set(test, w);
	return 0;
}

/* Return: streams of both ports. */
static u32 krc_test_streams(struct krc_test_world *w)
{
	u32 i, streams = 0;

	for (i = 0; i < KRC_TEST_PORTS; i++)
		if (!IS_ERR_OR_NULL(w->side[i].messages))
			streams += READ_ONCE(w->side[i].messages->streams_nr);
	return streams;
}

static void krc_test_side_close(struct krc_test_side *side)
{
	u32 e;

	for (e = 0; e < ARRAY_SIZE(side->end); e++)
		krc_test_close(&side->end[e], true);
	if (!IS_ERR_OR_NULL(side->listener)) {
		krc_unlisten(side->listener);
		krc_inbox_end(&side->end[2].inbox);
	}
}

/* Wait for what is freed later: work of a stream queues the work that frees it, behind a flush. */
static void krc_test_settle(const struct krc_rail *rail)
{
	u32 i;

	for (i = 0; i < KRC_TEST_LIMIT_MS && kref_read(&rail->ref) > 1; i++) {
		flush_workqueue(krc_messages_rx_wq);
		flush_workqueue(krc_messages_wq);
		usleep_range(1000, 1100);
	}
}

void krc_test_world_end(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	u32 i;

	if (!w)
		return;
	w->stuck = false;
	w->only = 0;
	WRITE_ONCE(w->blocked, false);
	for (i = 0; i < KRC_TEST_PORTS; i++)
		krc_test_side_close(&w->side[i]);
	for (i = 0; i < KRC_TEST_LIMIT_MS && krc_test_streams(w); i++) {
		krc_test_move(w);
		usleep_range(1000, 1100);
	}
	KUNIT_EXPECT_EQ(test, krc_test_streams(w), 0U);
	for (i = 0; i < KRC_TEST_PORTS; i++)
		krc_test_side_end(&w->side[i]);
	for (i = 0; i < KRC_TEST_PORTS; i++) {
		/* what is still counted would use memory of this test */
		krc_test_settle(&w->side[i].rail);
		KUNIT_EXPECT_EQ(test, kref_read(&w->side[i].rail.ref), 1U);
		krc_rail_put(&w->side[i].rail);
		krc_silence_drop(&w->side[i].rail);
		if (w->side[i].fake)
			krc_fake_destroy(w->side[i].fake);
	}
}
