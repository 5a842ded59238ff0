/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the KUnit suites of messages share: two ports with messages, each on a NIC in memory, and
 * programs on them. The test says what the NICs carry out.
 * Locking: a test runs alone; upcalls count in what it owns.
 */
#ifndef KRC_STREAM_TEST_H
#define KRC_STREAM_TEST_H

#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/slab.h>

#include "fake_provider.h"
#include "message/message_priv.h"
#include "pool/silence.h"

#define KRC_TEST_SERVICE 300
#define KRC_TEST_PORTS 2
#define KRC_TEST_LIMIT_MS 60000 /* longest wait; reached only by a test that fails */
#define KRC_TEST_QUEUE 32 /* depth of a channel */

/**
 * struct krc_test_program - A program's end: what has been told.
 * @test: the KUnit test.
 * @inbox: its inbox.
 * @charge: krc_inbox.charge, or NULL.
 * @stream: its stream, or NULL.
 * @opened: upcalls.
 * @died: upcalls.
 * @err: what @died said.
 * @withdrawn: upcalls.
 * @next: number of the next message that it is to get.
 * @wrong: messages that came out of turn, or with other bytes.
 * @ended: the peer has ended.
 * @sent: messages handed in.
 * @done: messages whose end was told.
 * @failed: of these, with an error.
 * @last: that error.
 * @disorder: ends told out of turn.
 * @large: the last large message that came, or NULL.
 * @fetched: READs that have ended.
 * @fetch_err: how the last one did.
 */
struct krc_test_program {
	struct kunit *test;
	struct krc_inbox inbox;
	const struct krc_charge *charge;
	struct krc_stream *stream;
	u32 opened;
	u32 died;
	int err;
	u32 withdrawn;
	u32 next;
	u32 wrong;
	u32 ended;
	u32 sent;
	u32 done;
	u32 failed;
	int last;
	u32 disorder;
	struct krc_letter *large;
	u32 fetched;
	int fetch_err;
};

/**
 * struct krc_test_side - One port.
 * @rail: port.
 * @fake: its NIC.
 * @pool: its channels.
 * @target: its target.
 * @value: its record.
 * @messages: its messages; NULL: they were destroyed.
 * @cached: the other one knows its record without looking.
 * @absent: it has no record.
 * @generation: that of its record, where that is not the rail's.
 * @lookups: look-ups of its record.
 * @unanswered: so many of its READs get no answer.
 * @end: programs: the opener's, another one's, the listener's.
 * @listener: listener, or NULL.
 */
struct krc_test_side {
	struct krc_rail rail;
	struct krc_fake *fake;
	struct krc_pool *pool;
	struct krc_hw_target *target;
	struct krp_value value;
	struct krc_messages *messages;
	bool cached;
	bool absent;
	u64 generation;
	u32 lookups;
	u32 unanswered;
	struct krc_test_program end[3];
	struct krc_listener *listener;
};

/**
 * struct krc_test_world - Both.
 * @test: the KUnit test.
 * @side: the ports.
 * @lose: of what arrives, one of so many is lost, by chance; 0: none.
 * @only: everything of another type, KRP_MESSAGE_*, is lost; 0: nothing by that.
 * @random: what chance comes from; a test may set it.
 * @twice: everything arrives twice.
 * @stuck: nothing is carried out.
 * @blocked: look-ups, and a work item of a test, sleep.
 */
struct krc_test_world {
	struct kunit *test;
	struct krc_test_side side[KRC_TEST_PORTS];
	u32 lose;
	u8 only;
	u32 random;
	bool twice;
	bool stuck;
	bool blocked;
};

extern struct krc_test_world *krc_test_world_now; /* recv_poll knows no test */

/**
 * krc_test_world_set() - Begin: both ports are up.
 * @test: the KUnit test; its priv becomes @w.
 * @w: world, zeroed, which lives as long as the test.
 */
void krc_test_world_set(struct kunit *test, struct krc_test_world *w);

/**
 * krc_test_world_make() - The same with a world that is made here.
 * @test: the KUnit test; its priv becomes the world.
 *
 * Return: 0; a failed assertion ends the test.
 */
int krc_test_world_make(struct kunit *test);

/**
 * krc_test_world_end() - End: all streams are closed, and nothing is left.
 * @test: the KUnit test.
 */
void krc_test_world_end(struct kunit *test);

/**
 * krc_test_side_end() - A port ends as node/port.c has it end, and each program is told.
 * @side: port; no-op if it has.
 */
void krc_test_side_end(struct krc_test_side *side);

/**
 * krc_test_reads_on() - Whether READs go by an initiator, and no messages.
 * @side: port.
 * @i: the initiator's number, below KRC_FAKE_INITIATORS.
 *
 * Return: false also if there is none of that number.
 */
static inline bool krc_test_reads_on(const struct krc_test_side *side, u32 i)
{
	const struct krc_fake_initiator *ini = side->fake->ini[i];

	return ini && ini->use == KRC_HW_DATA;
}

/**
 * krc_test_move() - Have both NICs carry out what they have.
 * @w: world.
 */
void krc_test_move(struct krc_test_world *w);

/**
 * krc_test_quiet() - Wait until no stream waits for its peer, and nothing is on its way.
 * @w: world; the NICs carry out what they have meanwhile.
 *
 * What was repeated since this machine was slow has come by then, too, and all is told.
 */
void krc_test_quiet(struct krc_test_world *w);

/**
 * krc_test_listen() - Have the second port listen.
 * @w: world.
 * @backlog: of the listener.
 */
void krc_test_listen(struct krc_test_world *w, u32 backlog);

/**
 * krc_test_connect() - Open a connection from the first port to the second one.
 * @w: world.
 * @end: program of the first port.
 * @first: first message, or NULL.
 */
void krc_test_connect(struct krc_test_world *w, struct krc_test_program *end,
		      struct krc_out *first);

/**
 * krc_test_accept() - Wait for an offer and accept it.
 * @w: world.
 * @end: program of the second port.
 */
void krc_test_accept(struct krc_test_world *w, struct krc_test_program *end);

/**
 * krc_test_pair() - Connect two programs.
 * @w: world.
 * @i: which of each port, 0 or 1.
 */
void krc_test_pair(struct krc_test_world *w, u32 i);

/**
 * krc_test_message() - Make a message that the other end can check.
 * @end: sender.
 * @bytes: length, 4 at least.
 *
 * Return: it, numbered.
 */
struct krc_out *krc_test_message(struct krc_test_program *end, u32 bytes);

/**
 * krc_test_say() - Send messages.
 * @end: sender.
 * @nr: how many.
 * @bytes: length of each, 4 at least.
 */
void krc_test_say(struct krc_test_program *end, u32 nr, u32 bytes);

/**
 * krc_test_read() - Take and check what has come.
 * @end: program.
 */
void krc_test_read(struct krc_test_program *end);

/**
 * krc_test_close() - Close the stream of a program.
 * @end: program; no-op without a stream.
 * @abort: see krc_stream_close().
 */
void krc_test_close(struct krc_test_program *end, bool abort);

/**
 * struct krc_test_open - An OPEN as the network carries it, without a message.
 * @m: header.
 * @open: body.
 */
struct krc_test_open {
	struct krp_message m;
	struct krp_message_open open;
};

/**
 * krc_test_header() - A header as the machine of the first port's first program would make it.
 * @w: world, with that program connected.
 *
 * Return: it, for the test to change.
 */
struct krp_message krc_test_header(struct krc_test_world *w);

/**
 * krc_test_open_again() - The OPEN that a stream was opened with.
 * @w: world, with the first port's first program connected.
 * @a: program that has opened it.
 *
 * Return: it, for the test to change.
 */
struct krc_test_open krc_test_open_again(struct krc_test_world *w,
					 const struct krc_test_program *a);

/**
 * krc_test_answering() - Count the answers of a port that are under way.
 * @m: messages of the port.
 *
 * Return: how many.
 */
u32 krc_test_answering(struct krc_messages *m);

/**
 * krc_test_forge() - Send bytes to the second port past all machines, and have them received there.
 * @w: world, with the first port's first program connected.
 * @packet: header and what is behind it.
 * @bytes: of it.
 */
void krc_test_forge(struct krc_test_world *w, const void *packet, u32 bytes);

/* Have NICs and programs go on until a condition holds. */
#define krc_test_until(w, cond) \
	do { \
		unsigned long limit = jiffies + msecs_to_jiffies(KRC_TEST_LIMIT_MS); \
		bool _is_so; \
		/* what has become true may be over before it is looked at again */ \
		while (!(_is_so = (cond)) && time_before(jiffies, limit)) { \
			krc_test_move(w); \
			usleep_range(100, 200); \
		} \
		KUNIT_ASSERT_TRUE_MSG((w)->test, _is_so, "%s", #cond); \
	} while (0)

#endif /* KRC_STREAM_TEST_H */
