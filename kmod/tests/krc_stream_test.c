// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: connections between two ports, each on a NIC in memory: opening, messages both ways, loss,
 * repetition, resets, a reader that stops, forgery, and the end of a port.
 * Locking: a test runs alone.
 */
#include "krc_stream_test.h"
#include "krc_test_wait.h"

#define KRC_TEST_FEW 20
#define KRC_TEST_MANY 300

static u64 krc_test_count(struct krc_test_world *w, u32 i, enum krc_message_count what)
{
	return atomic64_read(&w->side[i].messages->count[what]);
}

/* Everything that @from has sent is at @to, once and in order, and @from knows. */
static void krc_test_all_there(struct krc_test_world *w, struct krc_test_program *from,
			       struct krc_test_program *to)
{
	krc_test_until(w, (krc_test_read(to), to->next >= from->sent) &&
				  READ_ONCE(from->done) >= from->sent);
	KUNIT_EXPECT_EQ(w->test, to->next, from->sent);
	KUNIT_EXPECT_EQ(w->test, to->wrong, 0U);
	KUNIT_EXPECT_EQ(w->test, from->done, from->sent);
	KUNIT_EXPECT_EQ(w->test, from->failed, 0U);
	KUNIT_EXPECT_EQ(w->test, from->disorder, 0U);
	KUNIT_EXPECT_EQ(w->test, from->died + to->died, 0U);
}

/* A stream has no memory but its own, which is no more than it is long: there may be ten thousand. */
static void krc_test_is_small(struct kunit *test, const struct krc_stream *st)
{
	KUNIT_EXPECT_LE(test, ksize(st), ALIGN(sizeof(*st), L1_CACHE_BYTES));
	KUNIT_EXPECT_NULL(test, st->many);
	KUNIT_EXPECT_NULL(test, st->large);
	KUNIT_EXPECT_EQ(test, st->s.slots, (u32)KRP_STREAM_SLOTS_MIN);
}

/* What it needs beyond that it has only as long as more is under way. */
static void krc_test_size(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = &w->side[0].end[0], *b = &w->side[1].end[0];

	krc_test_pair(w, 0);
	krc_test_is_small(test, a->stream);
	krc_test_is_small(test, b->stream);
	WRITE_ONCE(w->stuck, true);
	krc_test_say(a, KRP_STREAM_SLOTS_MIN, 8);
	KUNIT_EXPECT_NOT_NULL(test, a->stream->many);
	KUNIT_EXPECT_EQ(test, a->stream->s.slots, (u32)KRC_STREAM_SLOTS);
	WRITE_ONCE(w->stuck, false);
	krc_test_all_there(w, a, b);
	krc_test_quiet(w);
	krc_test_is_small(test, a->stream);
	krc_test_is_small(test, b->stream);
}

/* A first message travels with OPEN; the first contact of two nodes needs a pass, no later one. */
static void krc_test_opens(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = &w->side[0].end[0], *b = &w->side[1].end[0];
	struct krc_stream_peer peer;
	u64 challenges;

	krc_test_listen(w, 4);
	krc_test_connect(w, a, krc_test_message(a, 100));
	krc_test_accept(w, b);
	krc_test_until(w, READ_ONCE(a->opened));
	krc_test_all_there(w, a, b);
	challenges = krc_test_count(w, 1, KRC_COUNT_CHALLENGES); /* OPEN may have been repeated */
	KUNIT_EXPECT_GE(test, challenges, 1ULL);
	KUNIT_EXPECT_EQ(test, w->side[0].lookups, 1U);
	krc_stream_peer(b->stream, &peer);
	KUNIT_EXPECT_EQ(test, memcmp(peer.gid, w->side[0].rail.gid.raw, sizeof(peer.gid)), 0);
	KUNIT_EXPECT_EQ(test, peer.generation, w->side[0].rail.generation);
	KUNIT_EXPECT_EQ(test, peer.service, KRC_TEST_SERVICE);
	KUNIT_EXPECT_FALSE(test, peer.opener);
	KUNIT_EXPECT_EQ(test, peer.user_len, 3);
	KUNIT_EXPECT_EQ(test, memcmp(peer.user, "who", 3), 0);
	krc_stream_peer(a->stream, &peer);
	KUNIT_EXPECT_TRUE(test, peer.opener);
	KUNIT_EXPECT_EQ(test, peer.queue, b->stream->number);
	KUNIT_EXPECT_EQ(test, peer.user_len, 3);
	krc_test_pair(w, 1);
	KUNIT_EXPECT_EQ(test, krc_test_count(w, 1, KRC_COUNT_CHALLENGES), challenges);
	KUNIT_EXPECT_EQ(test, w->side[0].lookups, 1U);
}

/* What is handed in before the peer has accepted waits, and is not lost. */
static void krc_test_sends_early(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = &w->side[0].end[0], *b = &w->side[1].end[0];

	krc_test_listen(w, 4);
	krc_test_connect(w, a, krc_test_message(a, 4));
	krc_test_say(a, KRC_TEST_FEW, 64);
	krc_test_accept(w, b);
	krc_test_all_there(w, a, b);
}

static void krc_test_both_ways(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = &w->side[0].end[0], *b = &w->side[1].end[0];

	krc_test_pair(w, 0);
	krc_test_say(a, KRC_TEST_MANY, 500);
	krc_test_say(b, KRC_TEST_MANY, KRP_MESSAGE_DATA_MAX);
	krc_test_all_there(w, a, b);
	krc_test_all_there(w, b, a);
}

static void krc_test_refuses(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = &w->side[0].end[0], *a2 = &w->side[0].end[1];
	struct krc_test_program *l = &w->side[1].end[2];

	krc_test_connect(w, a, krc_test_message(a, 4));
	krc_test_until(w, READ_ONCE(a->died));
	KUNIT_EXPECT_EQ(test, a->err, -ECONNREFUSED);
	KUNIT_EXPECT_EQ(test, a->done, 1U);
	KUNIT_EXPECT_EQ(test, a->last, -ECONNREFUSED);
	krc_test_close(a, false);
	krc_test_quiet(w); /* its OPEN may have been repeated, and would be offered */
	krc_test_listen(w, 1);
	krc_test_connect(w, a, NULL);
	krc_test_until(w, READ_ONCE(l->inbox.nr));
	krc_test_connect(w, a2, NULL);
	krc_test_until(w, READ_ONCE(a2->died));
	KUNIT_EXPECT_EQ(test, a2->err, krp_refuse_errno(KRP_REFUSE_BACKLOG));
	krc_stream_refuse(krc_inbox_take(&l->inbox), KRP_REFUSE_PROGRAM);
	krc_test_until(w, READ_ONCE(a->died) == 2);
	KUNIT_EXPECT_EQ(test, a->err, -ECONNREFUSED);
	KUNIT_EXPECT_EQ(test, a->opened, 0U);
	KUNIT_EXPECT_PTR_EQ(test,
			    krc_listen(w->side[1].messages, KRC_TEST_SERVICE, 1, &l->inbox, l),
			    (struct krc_listener *)ERR_PTR(-EADDRINUSE));
}

/* Each end shuts in its turn; nothing that was sent before is lost, and both forget. */
static void krc_test_closes(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = &w->side[0].end[0], *b = &w->side[1].end[0];
	struct krc_out *late;

	krc_test_pair(w, 0);
	krc_test_say(a, KRC_TEST_MANY, 8);
	KUNIT_EXPECT_EQ(test, krc_stream_shut(a->stream), 0);
	KUNIT_EXPECT_EQ(test, krc_stream_shut(a->stream), -EALREADY);
	late = krc_test_message(a, 4);
	KUNIT_EXPECT_EQ(test, krc_stream_send(a->stream, late), -EPIPE);
	krc_out_free(late);
	a->sent--;
	krc_test_all_there(w, a, b);
	krc_test_until(w, (krc_test_read(b), b->ended));
	krc_test_say(b, KRC_TEST_FEW, 8);
	krc_test_close(b, false); /* what it has handed in still goes */
	krc_test_until(w, (krc_test_read(a), a->ended));
	KUNIT_EXPECT_EQ(test, a->next, b->sent);
	KUNIT_EXPECT_EQ(test, a->wrong, 0U);
	krc_test_close(a, false);
	krc_test_until(w, !READ_ONCE(w->side[0].messages->streams_nr) &&
				  !READ_ONCE(w->side[1].messages->streams_nr));
	KUNIT_EXPECT_EQ(test, a->died + b->died, 0U);
	KUNIT_EXPECT_EQ(test, b->done, b->sent);
	KUNIT_EXPECT_EQ(test, b->failed, 0U);
}

/* An end that is closed in a hurry ends the other one, and what that has sent. */
static void krc_test_aborts(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = &w->side[0].end[0], *b = &w->side[1].end[0];

	krc_test_pair(w, 0);
	w->stuck = true;
	krc_test_say(a, KRC_TEST_MANY, 8);
	krc_test_close(b, true);
	w->stuck = false;
	krc_test_until(w, READ_ONCE(a->died));
	KUNIT_EXPECT_EQ(test, a->err, -ECONNRESET);
	KUNIT_EXPECT_EQ(test, a->done, a->sent);
	KUNIT_EXPECT_EQ(test, krc_stream_shut(a->stream), -ECONNRESET);
}

static void krc_test_survives_loss(struct kunit *test)
{
	static const u32 seeds[] = { 1, 7, 20, 300, 4711 };
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = &w->side[0].end[0], *b = &w->side[1].end[0];
	u32 i;

	w->lose = 5;
	krc_test_pair(w, 0);
	for (i = 0; i < ARRAY_SIZE(seeds); i++) {
		u64 faults = krc_test_count(w, 1, KRC_COUNT_FAULTS);

		w->random = seeds[i];
		krc_test_say(a, KRC_TEST_MANY, 40);
		krc_test_say(b, KRC_TEST_FEW, 40);
		krc_test_all_there(w, a, b);
		krc_test_all_there(w, b, a);
		KUNIT_EXPECT_GT(test, krc_test_count(w, 1, KRC_COUNT_FAULTS), faults);
	}
}

static void krc_test_survives_doubles(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = &w->side[0].end[0], *b = &w->side[1].end[0];
	struct krc_stream_stats stats;

	w->twice = true;
	krc_test_pair(w, 0);
	krc_test_say(a, KRC_TEST_MANY, 40);
	krc_test_say(b, KRC_TEST_FEW, 40);
	krc_test_all_there(w, a, b);
	krc_test_all_there(w, b, a);
	krc_stream_stats(b->stream, &stats);
	KUNIT_EXPECT_GE(test, stats.repeats, (u32)KRC_TEST_MANY);
	KUNIT_EXPECT_EQ(test, stats.received, (u64)KRC_TEST_MANY);
}

static void krc_test_fail_all(struct krc_test_side *side, enum krc_fault fault)
{
	u32 i;

	for (i = 0; i < KRC_FAKE_INITIATORS; i++)
		krc_fake_fail(side->fake, i, fault);
}

static u32 krc_test_resets(struct krc_fake *fake)
{
	u32 i, resets = 0;

	for (i = 0; i < KRC_FAKE_INITIATORS; i++)
		resets += fake->ini[i] ? fake->ini[i]->resets : 0;
	return resets;
}

/* A channel is reset while SENDs are in the hardware; whether they arrived is not known. */
static void krc_test_survives_resets(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = &w->side[0].end[0], *b = &w->side[1].end[0];
	u32 i, n;

	krc_test_pair(w, 0);
	for (i = 0; i < KRC_TEST_FEW; i++) {
		krc_test_say(a, 10, 40);
		krc_test_say(b, 3, 40);
		/* a channel that is reset again and again without progress is dead for seconds */
		for (n = 0; n < KRC_FAKE_INITIATORS; n++) {
			krc_fake_complete(w->side[0].fake, n, 2);
			krc_fake_arrive(w->side[0].fake, n);
			krc_fake_complete(w->side[1].fake, n, 1);
		}
		krc_test_fail_all(&w->side[0], i & 1 ? KRC_FAULT_LOCAL : KRC_FAULT_BUSY);
		krc_test_fail_all(&w->side[1], KRC_FAULT_FATAL);
	}
	krc_test_all_there(w, a, b);
	krc_test_all_there(w, b, a);
	KUNIT_EXPECT_GT(test, krc_test_count(w, 0, KRC_COUNT_FAILED), 0ULL);
	KUNIT_EXPECT_GT(test, krc_test_resets(w->side[1].fake), 0U);
}

/* A program that does not read fills the window of its stream; other streams go on. */
static void krc_test_reader_stops(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = &w->side[0].end[0], *b = &w->side[1].end[0];
	struct krc_stream_stats stats;

	krc_test_pair(w, 0);
	krc_test_pair(w, 1);
	krc_test_say(a, KRC_TEST_MANY, 40);
	krc_test_say(&w->side[0].end[1], KRC_TEST_MANY, 40);
	krc_test_all_there(w, &w->side[0].end[1], &w->side[1].end[1]);
	krc_test_until(w, READ_ONCE(a->done) == w->side[1].messages->conf.msgs);
	krc_stream_stats(b->stream, &stats);
	KUNIT_EXPECT_EQ(test, stats.backlog, w->side[1].messages->conf.msgs);
	krc_stream_stats(a->stream, &stats);
	KUNIT_EXPECT_EQ(test, stats.window, 0U);
	KUNIT_EXPECT_EQ(test, stats.waiting, KRC_TEST_MANY - w->side[1].messages->conf.msgs);
	krc_test_all_there(w, a, b);
}

/* An inbox bounds what its streams may have waiting together. */
static void krc_test_inbox_is_shared(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = &w->side[0].end[0], *b = &w->side[1].end[0];
	struct krc_stream_conf conf;
	struct krc_letter *offer;

	krc_test_listen(w, 4);
	krc_test_connect(w, a, NULL);
	krc_test_until(w, READ_ONCE(w->side[1].end[2].inbox.nr));
	offer = krc_inbox_take(&w->side[1].end[2].inbox);
	krc_inbox_init(&b->inbox, 4 * KRP_MESSAGE_UNITS_MAX, w->side[1].end[2].inbox.arrived);
	b->inbox.streams = 1; /* another one, so that each has half of it */
	conf = (struct krc_stream_conf){ .inbox = &b->inbox, .ops = a->stream->ops, .owner = b };
	b->stream = krc_stream_accept(offer, &conf);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, b->stream);
	krc_test_say(a, KRC_TEST_FEW, KRP_MESSAGE_DATA_MAX);
	krc_test_until(w, READ_ONCE(a->done) == 2);
	KUNIT_EXPECT_EQ(test, READ_ONCE(b->inbox.nr), 2U);
	krc_test_all_there(w, a, b);
}

/* A stream that is closed takes the letters of its own list, and does not go through the inbox. */
static void krc_test_closing_looks_at_its_own(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = &w->side[0].end[0], *b = &w->side[1].end[0];
	struct krc_letter *other;

	krc_test_pair(w, 0);
	krc_test_say(a, 2, 40);
	krc_test_until(w, READ_ONCE(a->done) == 2);
	other = krc_letter_new(b->stream, KRC_LETTER_ENDED, NULL, NULL);
	KUNIT_ASSERT_NOT_NULL(test, other);
	spin_lock_bh(&b->inbox.lock);
	list_add(&other->list, &b->inbox.letters); /* what only a walk through the inbox finds */
	b->inbox.nr++;
	spin_unlock_bh(&b->inbox.lock);
	krc_test_close(b, true);
	KUNIT_EXPECT_EQ(test, b->inbox.nr, 1U);
	KUNIT_ASSERT_TRUE(test, list_is_singular(&b->inbox.letters));
	krc_inbox_end(&b->inbox);
}

/* Streams that this port opens and aborts use no place of those that OPENs of others need. */
static void krc_test_aborted_openers_are_bounded(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = &w->side[0].end[0];
	struct krc_messages *m = w->side[0].messages;

	krc_test_connect(w, a, NULL);
	krc_test_close(a, true);
	krc_test_until(w, !READ_ONCE(m->streams_nr));
	KUNIT_EXPECT_EQ(test, m->known.tombstones_nr, 0U);
	KUNIT_EXPECT_EQ(test, m->known.opened_nr, 1U);
	m->known.opened_nr = KRC_TOMBSTONES_OPENED; /* as if there were as many */
	krc_test_connect(w, a, NULL);
	krc_test_close(a, true);
	krc_test_until(w, !READ_ONCE(m->streams_nr));
	KUNIT_EXPECT_EQ(test, m->known.opened_nr, (u32)KRC_TOMBSTONES_OPENED);
	KUNIT_EXPECT_TRUE(test, list_is_singular(&m->known.tombstones_old));
	m->known.opened_nr = 1;
}

static void krc_test_sleeps(struct work_struct *work)
{
	while (READ_ONCE(krc_test_world_now->blocked))
		usleep_range(1000, 1100);
}

/* What streams have to wait for, such as a look-up, holds up nothing that has come. */
static void krc_test_receives_while_others_sleep(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = &w->side[0].end[0], *b = &w->side[1].end[0];
	static struct work_struct sleeper; /* outlives a failed assertion */

	krc_test_pair(w, 0);
	krc_standing_answered(a->stream->proof.standing);
	workqueue_set_max_active(krc_messages_wq, 1);
	WRITE_ONCE(w->blocked, true);
	INIT_WORK(&sleeper, krc_test_sleeps);
	queue_work(krc_messages_wq, &sleeper);
	krc_test_say(a, 1, 40);
	krc_test_until(w, (krc_test_read(b), b->next == 1));
	WRITE_ONCE(w->blocked, false);
	flush_work(&sleeper);
	workqueue_set_max_active(krc_messages_wq, WQ_DFL_ACTIVE);
}

/* ---- forgery */

static void krc_test_forged_is_dropped(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = &w->side[0].end[0], *b = &w->side[1].end[0];
	struct krp_message m;

	krc_test_pair(w, 0);
	krc_test_say(a, KRC_TEST_FEW, 40);
	krc_test_all_there(w, a, b);
	m = krc_test_header(w);
	m.tag ^= cpu_to_le64(1);
	krc_test_forge(w, &m, sizeof(m));
	m = krc_test_header(w);
	m.generation = cpu_to_le64(4711);
	krc_test_forge(w, &m, sizeof(m));
	m = krc_test_header(w);
	m.ack = cpu_to_le64(1ULL << 40);
	krc_test_forge(w, &m, sizeof(m));
	krc_test_until(w, krc_test_count(w, 1, KRC_COUNT_FOREIGN) == 3);
	m = krc_test_header(w);
	m.version++;
	krc_test_forge(w, &m, sizeof(m));
	krc_test_until(w, krc_test_count(w, 1, KRC_COUNT_MALFORMED) == 1);
	m = krc_test_header(w);
	m.dst = cpu_to_le32(12345);
	krc_test_forge(w, &m, sizeof(m));
	krc_test_until(w, krc_test_count(w, 1, KRC_COUNT_UNKNOWN) == 1);
	krc_test_read(b);
	KUNIT_EXPECT_EQ(test, b->next, a->sent);
	krc_test_say(a, KRC_TEST_FEW, 40);
	krc_test_all_there(w, a, b);
}

/* An OPEN without a record, or with another node's, makes no stream, and no look-up but one. */
static void krc_test_forged_open(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = &w->side[0].end[0];
	struct krc_test_open packet;
	u64 challenges, dropped, refusals, begun_ms;
	u32 i;

	krc_test_pair(w, 0);
	/* what opened it may have been repeated */
	challenges = krc_test_count(w, 1, KRC_COUNT_CHALLENGES);
	dropped = krc_test_count(w, 1, KRC_COUNT_OPENS_DROPPED);
	refusals = krc_test_count(w, 1, KRC_COUNT_REFUSALS);
	packet = krc_test_open_again(w, a);
	packet.open.tag = cpu_to_le64(99);
	packet.open.pass = 0;
	w->side[0].cached = false;
	w->side[0].absent = true;
	/* what krc_test_pair() has looked up is believed for a moment */
	krc_test_until(w, !krp_listen_fresh(&w->side[1].messages->asked.lookups, ktime_get_ns(),
					    w->side[0].rail.gid.raw));
	begun_ms = ktime_to_ms(ktime_get());
	for (i = 0; i < KRC_TEST_FEW; i++)
		krc_test_forge(w, &packet, sizeof(packet));
	krc_test_until(w, krc_test_count(w, 1, KRC_COUNT_OPENS_DROPPED) == dropped + KRC_TEST_FEW);
	/* that there is none is believed for so long, which a slow machine may need for a few */
	KUNIT_EXPECT_GE(test, READ_ONCE(w->side[0].lookups), 2U);
	KUNIT_EXPECT_LE(test, READ_ONCE(w->side[0].lookups),
			2 + (u32)(ktime_to_ms(ktime_get()) - begun_ms) / KRP_LISTEN_ABSENT_MS);
	w->side[0].absent = false;
	w->side[0].cached = true;
	krc_test_forge(w, &packet, sizeof(packet)); /* is asked for its pass, at its record */
	KUNIT_EXPECT_EQ(test, krc_test_count(w, 1, KRC_COUNT_CHALLENGES), challenges + 1);
	packet.open.peer_generation = cpu_to_le64(5);
	krc_test_forge(w, &packet, sizeof(packet));
	KUNIT_EXPECT_EQ(test, krc_test_count(w, 1, KRC_COUNT_REFUSALS), refusals + 1);
	KUNIT_EXPECT_EQ(test, READ_ONCE(w->side[1].messages->streams_nr), 1U);
}

/* Strangers that are looked up leave room for a node whose record is known, and has changed. */
static void krc_test_strangers_leave_room(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krp_listen_lookups *lookups = &w->side[1].messages->asked.lookups;
	const u8 *known = w->side[0].rail.gid.raw;
	struct krc_test_open packet;
	u64 dropped;
	u32 i;

	krc_test_pair(w, 0);
	packet = krc_test_open_again(w, &w->side[0].end[0]);
	packet.open.tag = cpu_to_le64(99);
	/* what krc_test_pair() has looked up is believed for a moment */
	krc_test_until(w, !krp_listen_fresh(lookups, ktime_get_ns(), known));
	WRITE_ONCE(w->blocked, true);
	for (i = 0; i < 2 * KRP_LISTEN_MEMORY; i++) {
		packet.open.gid[0] = 0xfe;
		packet.open.gid[1] = i;
		/* whoever has its place by chance would be in its way */
		if (krp_listen_look_of(lookups, packet.open.gid) !=
		    krp_listen_look_of(lookups, known))
			krc_test_forge(w, &packet, sizeof(packet));
	}
	dropped = krc_test_count(w, 1, KRC_COUNT_OPENS_DROPPED);
	KUNIT_EXPECT_GT(test, dropped, 0ULL);
	memcpy(packet.open.gid, known, sizeof(packet.open.gid));
	packet.open.value.dct.dctn ^= cpu_to_le32(1);
	for (i = 0; i < KRC_TEST_FEW; i++)
		krc_test_forge(w, &packet, sizeof(packet)); /* one of them is looked up */
	KUNIT_EXPECT_LT(test, krc_test_count(w, 1, KRC_COUNT_OPENS_DROPPED),
			dropped + KRC_TEST_FEW);
	WRITE_ONCE(w->blocked, false);
	krc_test_until(w, READ_ONCE(w->side[0].lookups) == 2);
}

/* An OPEN that comes again after its stream has ended makes no second one. */
static void krc_test_open_comes_late(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = &w->side[0].end[0], *b = &w->side[1].end[0];
	struct krc_test_open packet;

	krc_test_pair(w, 0);
	packet = krc_test_open_again(w, a);
	krc_test_forge(w, &packet, sizeof(packet)); /* while it lives: nothing */
	KUNIT_EXPECT_EQ(test, READ_ONCE(w->side[1].messages->streams_nr), 1U);
	krc_test_close(b, true);
	krc_test_until(w, !READ_ONCE(w->side[1].messages->streams_nr));
	krc_test_forge(w, &packet, sizeof(packet));
	KUNIT_EXPECT_EQ(test, krc_test_count(w, 1, KRC_COUNT_REFUSALS), 1ULL);
	KUNIT_EXPECT_EQ(test, READ_ONCE(w->side[1].messages->streams_nr), 0U);
	KUNIT_EXPECT_EQ(test, READ_ONCE(w->side[1].end[2].inbox.nr), 0U);
}

/* ---- users beside each other */

/*
 * Nothing is carried out any more. The peers of both streams stay proven however long that takes: they can't
 * answer again, and on a slow debug kernel their answers would soon be older than KRC_PROVEN_MS.
 */
static void krc_test_stand_still(struct krc_test_world *w)
{
	struct krc_standing *standing;
	u32 i;

	w->stuck = true;
	for (i = 0; i < 2; i++) {
		standing = w->side[0].end[i].stream->proof.standing;
		spin_lock_bh(&standing->lock);
		WRITE_ONCE(standing->answered, jiffies + msecs_to_jiffies(KRC_TEST_LIMIT_MS));
		spin_unlock_bh(&standing->lock);
		/* what its clock was set for: it takes a packet for a moment */
		flush_delayed_work(&w->side[0].end[i].stream->run.work);
	}
}

/* Packets that a user can't have are there for others; and all goes on when some come back. */
static void krc_test_users_share_packets(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = w->side[0].end, *b = w->side[1].end;
	struct krc_packets *tx = w->side[0].messages->tx;
	struct krc_packet *packet;
	struct krc_tx_share *share;
	LIST_HEAD(others);

	krc_test_pair(w, 0);
	krc_test_pair(w, 1);
	krc_test_quiet(w);
	krc_test_stand_still(w);
	while (krc_packets_free(tx) > 12) {
		packet = krc_packet_get(tx);
		KUNIT_ASSERT_NOT_NULL(test, packet);
		list_add(&packet->list, &others);
	}
	krc_test_say(&a[0], KRC_TEST_FEW, 40);
	KUNIT_EXPECT_EQ(test, atomic_read(&a[0].stream->out.flight), 6);
	krc_test_say(&a[1], 3, 40);
	KUNIT_EXPECT_GE(test, atomic_read(&a[1].stream->out.flight), 3);
	KUNIT_EXPECT_EQ(test, atomic_read(&a[0].stream->out.flight), 6);
	w->stuck = false;
	krc_test_all_there(w, &a[0], &b[0]);
	krc_test_all_there(w, &a[1], &b[1]);
	while ((packet = list_first_entry_or_null(&others, struct krc_packet, list))) {
		list_del(&packet->list);
		krc_packet_put(packet);
	}
	krc_streams_drink(w->side[0].messages);
	/* streams of one payer are one user */
	share = krc_tx_share_get(w->side[0].messages, &a[0].inbox);
	KUNIT_EXPECT_PTR_EQ(test, share, a[0].stream->share);
	KUNIT_EXPECT_PTR_NE(test, share, a[1].stream->share);
	krc_tx_share_put(w->side[0].messages, share);
}

/* The key of a payer names nobody else while streams of it are closing, after it has gone, too. */
static void krc_test_a_share_counts_its_payer(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = w->side[0].end;
	struct krc_user *user = krc_user_get_named("share"), *other;
	struct krc_charge charge = {};
	struct krc_tx_share *share;
	const void *payer;

	KUNIT_ASSERT_NOT_NULL(test, user);
	KUNIT_ASSERT_EQ(test, krc_charge(user, KRC_RES_QUEUE, &charge), 0);
	payer = krc_charge_payer(&charge);
	a[0].charge = &charge;
	a[1].inbox.charge = &charge;
	krc_test_pair(w, 0);
	share = krc_tx_share_get(w->side[0].messages, &a[1].inbox);
	KUNIT_EXPECT_PTR_EQ(test, share, a[0].stream->share);
	KUNIT_EXPECT_PTR_EQ(test, share->payer, payer);
	krc_test_close(&a[0], true);
	krc_uncharge(&charge);
	krc_user_put(user);
	/* the last of it is the share's, which keeps the user where it is */
	other = krc_user_get_named("share");
	KUNIT_EXPECT_PTR_EQ(test, other, user);
	krc_user_put(other);
	krc_tx_share_put(w->side[0].messages, share);
}

static void krc_test_put_all(struct list_head *packets)
{
	struct krc_packet *packet, *next;

	list_for_each_entry_safe(packet, next, packets, list) {
		list_del(&packet->list);
		krc_packet_put(packet);
	}
}

/* Two streams of different users rest, nothing is carried out, and no packet to send is free. */
static void krc_test_dry(struct krc_test_world *w, struct list_head *ret_packets)
{
	struct krc_packets *tx = w->side[0].messages->tx;
	struct krc_packet *packet;

	krc_test_pair(w, 0);
	krc_test_pair(w, 1);
	krc_test_quiet(w);
	krc_test_stand_still(w);
	msleep(200); /* what their clocks were set for is over */
	while ((packet = krc_packet_get(tx)))
		list_add(&packet->list, ret_packets);
	KUNIT_ASSERT_EQ(w->test, krc_packets_free(tx), 0U);
}

/* Some packets come back at once, and whoever waits is called once. */
static void krc_test_drip(struct krc_test_world *w, struct list_head *packets, u32 nr)
{
	struct krc_packet *packet;

	while (nr--) {
		packet = list_first_entry(packets, struct krc_packet, list);
		list_del(&packet->list);
		krc_packet_put(packet);
	}
	krc_streams_drink(w->side[0].messages);
}

/* The same; then all has been tried. */
static void krc_test_rain(struct krc_test_world *w, struct list_head *packets, u32 nr)
{
	u32 i;

	krc_test_drip(w, packets, nr);
	for (i = 0; i < KRC_TEST_FEW; i++)
		flush_workqueue(krc_messages_wq); /* one may call the next one */
}

/* Packets that come back go on to other users when who is called for them can't have them. */
static void krc_test_wake_is_passed_on(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = w->side[0].end, *b = w->side[1].end;
	LIST_HEAD(packets);

	krc_test_dry(w, &packets);
	krc_test_say(&a[0], 3, 40);
	krc_test_say(&a[1], 1, 40);
	KUNIT_EXPECT_EQ(test, atomic_read(&a[0].stream->out.flight), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&a[1].stream->out.flight), 0);
	krc_test_rain(w, &packets, 4);
	KUNIT_EXPECT_EQ(test, atomic_read(&a[0].stream->out.flight), 2);
	KUNIT_EXPECT_EQ(test, atomic_read(&a[1].stream->out.flight), 1);
	w->stuck = false;
	krc_test_all_there(w, &a[0], &b[0]);
	krc_test_all_there(w, &a[1], &b[1]);
	krc_test_put_all(&packets);
}

/* What others give back a user may have more of: one that waits for its share is called, too. */
static void krc_test_share_grows(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = w->side[0].end, *b = w->side[1].end;
	LIST_HEAD(packets);

	krc_test_dry(w, &packets);
	krc_test_say(&a[0], 8, 40);
	krc_test_rain(w, &packets, 4);
	KUNIT_EXPECT_EQ(test, atomic_read(&a[0].stream->out.flight), 2);
	krc_test_rain(w, &packets, 4);
	KUNIT_EXPECT_EQ(test, atomic_read(&a[0].stream->out.flight), 4);
	w->stuck = false;
	krc_test_all_there(w, &a[0], &b[0]);
	krc_test_put_all(&packets);
}

/* A stream that asks again while it waits is not overtaken by one that came later. */
static void krc_test_waits_in_turn(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = w->side[0].end, *b = w->side[1].end;
	LIST_HEAD(packets);

	krc_test_dry(w, &packets);
	krc_test_say(&a[0], 1, 40);
	krc_test_say(&a[1], 1, 40);
	krc_test_say(&a[0], 1, 40);
	krc_test_rain(w, &packets, 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&a[0].stream->out.flight), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&a[1].stream->out.flight), 0);
	krc_test_rain(w, &packets, 4);
	w->stuck = false;
	krc_test_all_there(w, &a[0], &b[0]);
	krc_test_all_there(w, &a[1], &b[1]);
	krc_test_put_all(&packets);
}

/* An end is told of what it has handed in, and needs no packet for that. */
static void krc_test_ends_without_packets(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = &w->side[0].end[0];
	LIST_HEAD(packets);

	krc_test_dry(w, &packets);
	krc_test_say(a, KRC_TEST_FEW, 40);
	krc_test_close(a, true);
	flush_workqueue(krc_messages_wq);
	KUNIT_EXPECT_EQ(test, a->done, (u32)KRC_TEST_FEW);
	KUNIT_EXPECT_EQ(test, a->failed, (u32)KRC_TEST_FEW);
	KUNIT_EXPECT_EQ(test, a->last, -ECONNABORTED);
	krc_test_rain(w, &packets, 4);
	w->stuck = false;
	krc_test_until(w, READ_ONCE(w->side[1].end[0].died)); /* its peer is told, too */
	krc_test_put_all(&packets);
}

/* One that sleeps over a look-up, when it was called for packets, holds up nobody behind it. */
static void krc_test_sleeper_passes_on(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = w->side[0].end, *b = w->side[1].end;
	LIST_HEAD(packets);

	krc_test_dry(w, &packets);
	krc_test_say(&a[0], 1, 40);
	krc_test_say(&a[1], 1, 40);
	WRITE_ONCE(w->blocked, true);
	set_bit(KRC_STREAM_DOUBT, &a[0].stream->run.flags);
	krc_test_drip(w, &packets, 4);
	krc_test_until_late(atomic_read(&a[1].stream->out.flight));
	/* or more: it may have said it again by now */
	KUNIT_EXPECT_GE(test, atomic_read(&a[1].stream->out.flight), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&a[0].stream->out.flight), 0);
	WRITE_ONCE(w->blocked, false);
	w->stuck = false;
	krc_test_all_there(w, &a[0], &b[0]);
	krc_test_all_there(w, &a[1], &b[1]);
	krc_test_put_all(&packets);
}

/* What a stream posts is on account of its user, at either end. */
static void krc_test_users_share_turns(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = &w->side[0].end[0], *b = &w->side[1].end[0];

	krc_test_pair(w, 0);
	krc_test_say(a, 1, 40);
	krc_test_all_there(w, a, b);
	KUNIT_EXPECT_PTR_EQ(test, a->stream->flow.payer, (const void *)&a->inbox);
	krc_test_quiet(w);
	/* what it has posted before it was accepted is the port's */
	krc_flow_drain(&b->stream->flow);
	krc_test_say(b, 1, 40);
	krc_test_all_there(w, b, a);
	KUNIT_EXPECT_PTR_EQ(test, b->stream->flow.payer, (const void *)&b->inbox);
}

/* ---- ends of nodes */

static void krc_test_port_ends(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = &w->side[0].end[0], *b = &w->side[1].end[0];
	struct krc_out *late;

	krc_test_pair(w, 0);
	krc_test_pair(w, 1);
	krc_test_say(a, KRC_TEST_FEW, 40);
	krc_test_until(w, READ_ONCE(a->done) == KRC_TEST_FEW);
	w->stuck = true;
	krc_test_say(a, KRC_TEST_MANY, 40);
	krc_test_side_end(&w->side[0]);
	KUNIT_EXPECT_EQ(test, READ_ONCE(a->died), 1U);
	KUNIT_EXPECT_EQ(test, a->err, -ENODEV);
	KUNIT_EXPECT_EQ(test, a->done, a->sent);
	KUNIT_EXPECT_EQ(test, a->last, -ENODEV);
	late = krc_test_message(a, 4);
	KUNIT_EXPECT_EQ(test, krc_stream_send(a->stream, late), -ENODEV);
	krc_out_free(late);
	krc_test_close(a, true);
	w->stuck = false;
	w->side[0].absent = true; /* its peer asks, and is not answered */
	w->side[1].messages->conf.silence_ns = 2ULL * NSEC_PER_SEC;
	krc_test_say(b, 1, 4);
	krc_test_until(w, READ_ONCE(b->died));
	KUNIT_EXPECT_EQ(test, b->err, -ETIMEDOUT);
	krc_test_read(b);
	KUNIT_EXPECT_GE(test, b->next, (u32)KRC_TEST_FEW); /* what had come stays */
	KUNIT_EXPECT_EQ(test, b->wrong, 0U);
}

/**
 * struct krc_test_upcall - A task that is in an upcall for a while.
 * @cancel: has a message taken back, which is told in its task.
 * @go: lets it go on.
 * @out: the message.
 * @stream: its stream.
 * @inside: it is in the upcall.
 * @release: it may go on.
 */
struct krc_test_upcall {
	struct work_struct cancel;
	struct delayed_work go;
	struct krc_out *out;
	struct krc_stream *stream;
	struct completion inside;
	struct completion release;
};

static void krc_test_upcall_cancel(struct work_struct *work)
{
	struct krc_test_upcall *u = container_of(work, struct krc_test_upcall, cancel);

	krc_stream_cancel(u->stream, u->out);
}

static void krc_test_upcall_go(struct work_struct *work)
{
	struct krc_test_upcall *u = container_of(to_delayed_work(work), struct krc_test_upcall, go);

	krc_test_until_late(atomic64_read(&u->stream->m->count[KRC_COUNT_HELD_UP]) >= 2);
	complete(&u->release);
}

static void krc_test_upcall_end(struct krc_out *out, int err)
{
	struct krc_test_upcall *u = out->owner;

	complete(&u->inside);
	wait_for_completion(&u->release);
	krc_out_free(out);
}

/*
 * The end of a port waits for the task that is in an upcall: it is the one that tells of the end. While it
 * is not let go on, the log says so, again and again.
 */
static void krc_test_port_ends_under_an_upcall(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_program *a = &w->side[0].end[0];
	struct krc_test_upcall u = { .out = krc_out_alloc(4, GFP_KERNEL) };

	KUNIT_ASSERT_NOT_NULL(test, u.out);
	INIT_WORK_ONSTACK(&u.cancel, krc_test_upcall_cancel);
	INIT_DELAYED_WORK_ONSTACK(&u.go, krc_test_upcall_go);
	init_completion(&u.inside);
	init_completion(&u.release);
	u.out->owner = &u;
	u.out->end = krc_test_upcall_end;
	krc_test_listen(w, 1);
	krc_test_connect(w, a, NULL); /* nobody accepts, so what is sent waits */
	u.stream = a->stream;
	KUNIT_ASSERT_EQ(test, krc_stream_send(a->stream, u.out), 0);
	w->side[0].messages->timeout_ms = 100;
	schedule_work(&u.cancel);
	wait_for_completion(&u.inside);
	schedule_delayed_work(&u.go, 0);
	krc_test_side_end(&w->side[0]);
	KUNIT_EXPECT_EQ(test, READ_ONCE(a->died), 1U);
	KUNIT_EXPECT_GE(test, atomic64_read(&a->stream->m->count[KRC_COUNT_HELD_UP]), 2LL);
	flush_work(&u.cancel);
	flush_delayed_work(&u.go);
	destroy_work_on_stack(&u.cancel);
	destroy_delayed_work_on_stack(&u.go);
}

static void krc_test_peer_comes_back(struct kunit *test)
{
	struct krc_test_world *w = test->priv;
	struct krc_test_program *b = &w->side[1].end[0];

	krc_test_pair(w, 0);
	krc_test_side_end(&w->side[0]);
	w->side[0].generation = 2000; /* another one */
	krc_test_say(b, 1, 4);
	krc_test_until(w, READ_ONCE(b->died));
	KUNIT_EXPECT_EQ(test, b->err, -ECONNRESET);
	KUNIT_EXPECT_EQ(test, b->done, 1U);
	KUNIT_EXPECT_EQ(test, b->last, -ECONNRESET);
}

static struct kunit_case krc_stream_cases[] = { KUNIT_CASE(krc_test_size),
						KUNIT_CASE(krc_test_opens),
						KUNIT_CASE(krc_test_sends_early),
						KUNIT_CASE(krc_test_both_ways),
						KUNIT_CASE(krc_test_refuses),
						KUNIT_CASE(krc_test_closes),
						KUNIT_CASE(krc_test_aborts),
						KUNIT_CASE(krc_test_survives_loss),
						KUNIT_CASE(krc_test_survives_doubles),
						KUNIT_CASE(krc_test_survives_resets),
						KUNIT_CASE(krc_test_reader_stops),
						KUNIT_CASE(krc_test_inbox_is_shared),
						KUNIT_CASE(krc_test_closing_looks_at_its_own),
						KUNIT_CASE(krc_test_aborted_openers_are_bounded),
						KUNIT_CASE(krc_test_receives_while_others_sleep),
						KUNIT_CASE(krc_test_forged_is_dropped),
						KUNIT_CASE(krc_test_forged_open),
						KUNIT_CASE(krc_test_strangers_leave_room),
						KUNIT_CASE(krc_test_open_comes_late),
						KUNIT_CASE(krc_test_users_share_packets),
						KUNIT_CASE(krc_test_a_share_counts_its_payer),
						KUNIT_CASE(krc_test_wake_is_passed_on),
						KUNIT_CASE(krc_test_share_grows),
						KUNIT_CASE(krc_test_waits_in_turn),
						KUNIT_CASE(krc_test_ends_without_packets),
						KUNIT_CASE(krc_test_sleeper_passes_on),
						KUNIT_CASE(krc_test_users_share_turns),
						KUNIT_CASE(krc_test_port_ends),
						KUNIT_CASE(krc_test_port_ends_under_an_upcall),
						KUNIT_CASE(krc_test_peer_comes_back),
						{} };

static struct kunit_suite krc_stream_suite = {
	.name = "krcore_stream",
	.init = krc_test_world_make,
	.exit = krc_test_world_end,
	.test_cases = krc_stream_cases,
};

kunit_test_suite(krc_stream_suite);
