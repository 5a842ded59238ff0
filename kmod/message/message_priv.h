/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: what the files of kmod/message/ share: the messages of a port, a stream, and how it is
 * driven.
 *
 * How a stream is driven: whoever has something to say to its machine does so under
 * krc_stream.lock, and before unlocking calls krc_stream_pull(), which asks the machine until it
 * waits, and notes what it says: packets, outs that have ended, events. Then, without the lock,
 * krc_stream_run() posts and tells what was noted. One task at a time does that for a stream, in
 * order; another one that comes leaves it to the first. So upcalls come one after the other, with
 * no lock held, and may call what they like.
 * Locking: see message.h.
 */
#ifndef KRC_MESSAGE_PRIV_H
#define KRC_MESSAGE_PRIV_H

#include <linux/atomic.h>
#include <linux/hashtable.h>
#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/siphash.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "base/limits.h"
#include "hw/rail.h"
#include "krp_listen.h"
#include "message/connect.h"
#include "message/inbox.h"
#include "message/large.h"
#include "message/message.h"
#include "message/open.h"
#include "message/share.h"
#include "pool/packets.h"
#include "pool/read.h"
#include "pool/silence.h"

#define KRC_STREAM_SLOTS 64 /* of one that has much to say */
#define KRC_STREAM_FLIGHT 32 /* packets of one stream in the pool, most */
#define KRC_MESSAGES_RX 512 /* receive buffers of a port */
#define KRC_MESSAGES_TX 256 /* packets that a port has in the pool, most */
#define KRC_MESSAGES_STREAMS 65536
#define KRC_MESSAGES_NUMBERS (4 * KRC_MESSAGES_STREAMS - 1) /* 18 bits: soon found */
#define KRC_ANSWERS 16
#define KRC_ANSWERS_ASKED 12 /* of them, those that may wait until their target was asked */
#define KRC_ANSWERS_OF_ONE 4 /* of those, to the same target */
#define KRC_TOMBSTONES 65536 /* of OPENs that came */
#define KRC_TOMBSTONES_OPENED 4096 /* of streams that this node has opened */
#define KRC_PASSES 4096
#define KRC_OPENS_ASKED 32 /* OPENs whose sender's record is being looked up, most */
#define KRC_ORPHAN_MS 10000 /* a closed stream gets that long to send what it has */

/* What is counted; see struct krc_messages_stats. */
enum krc_message_count {
	KRC_COUNT_PACKETS,
	KRC_COUNT_FAULTS,
	KRC_COUNT_MALFORMED,
	KRC_COUNT_UNKNOWN,
	KRC_COUNT_FOREIGN,
	KRC_COUNT_OPENS,
	KRC_COUNT_OPENS_DROPPED,
	KRC_COUNT_CHALLENGES,
	KRC_COUNT_REFUSALS,
	KRC_COUNT_POSTED,
	KRC_COUNT_FAILED,
	KRC_COUNT_REPLAYS,
	KRC_COUNT_NO_MEMORY,
	KRC_COUNT_HELD_UP,
	KRC_COUNTS,
};

/* krc_stream.run.events: 1 << enum krp_stream_do, and these, which no machine says */
#define KRC_EVENT_LETTER BIT(30) /* the inbox has something new */
#define KRC_EVENT_LARGE BIT(31) /* krc_stream.in.larges_ended is not empty */
#define KRC_EVENT_RESUME BIT(29) /* READs that are held may go on */

/**
 * struct krc_pass - What a node has said that an OPEN to it must carry.
 * @node: in krc_messages.known.passes.
 * @list: in krc_messages.known.passes_old, the oldest first.
 * @gid: GID of the node.
 * @generation: of the node.
 * @pass: the pass.
 */
struct krc_pass {
	struct hlist_node node;
	struct list_head list;
	u8 gid[KRP_GID_BYTES];
	u64 generation;
	u64 pass;
};

/**
 * struct krc_tombstone - A stream that is no more, whose OPEN or other messages may still come.
 * @node: in krc_messages.known.tombstones, if @open_tag is not 0.
 * @by_number: in krc_messages.known.by_number.
 * @list: in krc_messages.known.tombstones_old, in the order in which they were made.
 * @gid: GID of the peer.
 * @open_tag: of its OPEN; 0: this end was the opener.
 * @open_src: number of the opener's queue.
 * @number: of this end; others may have had it since, or have it.
 * @tag: of this end: what its peer sends has it.
 * @address: of the peer.
 * @standing: whether that has answered lately; counted.
 * @status: KRP_REFUSE_*, what is said of it to its OPEN.
 * @until_ns: when it is forgotten.
 * @share: if @open_tag is not 0: that of the listener, counted.
 */
struct krc_tombstone {
	struct hlist_node node;
	struct hlist_node by_number;
	struct list_head list;
	u8 gid[KRP_GID_BYTES];
	u64 open_tag;
	u64 tag;
	u32 open_src;
	u32 number;
	u32 status;
	struct krc_hw_address address;
	struct krc_standing *standing;
	u64 until_ns;
	struct krc_tx_share *share;
};

/**
 * struct krc_answer - A packet that no stream sends: CHALLENGE or REFUSE.
 * @messages: of the port.
 * @flow: its own, so that a fault of one fails no other.
 * @busy: it is being sent; as long as it is, all below is its own.
 * @asks: @standing has not answered lately, and is asked first; read under krc_messages.lock.
 * @packet: it.
 * @standing: whether its target has answered lately; counted.
 * @read: asks the target, if it has not.
 * @work: goes on after that.
 */
struct krc_answer {
	struct krc_messages *messages;
	struct krc_flow flow;
	bool busy;
	bool asks;
	struct krc_packet *packet;
	struct krc_standing *standing;
	struct krc_read read;
	struct work_struct work;
};

/**
 * struct krc_open_wait - An OPEN whose sender's record is to be looked up.
 * @list: in krc_messages.asked.opens.
 * @bytes: of @packet.
 * @arrived_ns: see krp_stream_received().
 * @packet: the OPEN, checked.
 */
struct krc_open_wait {
	struct list_head list;
	u32 bytes;
	u64 arrived_ns;
	u64 packet[];
};

/**
 * struct krc_listener - A service to which connections may be opened.
 * @ref: the caller, and streams that were offered to it.
 * @messages: of the port; counted.
 * @service: the service.
 * @backlog: how many may wait.
 * @waiting: how many do: offered, neither accepted nor refused.
 * @offers: these, by krc_stream.offered. Under krc_messages.lock.
 * @inbox: where offers go; NULL after krc_unlisten(). Under krc_messages.asked.mutex.
 * @home: the same, to the end.
 * @share: of its payer, counted.
 * @owner: the caller's.
 */
struct krc_listener {
	struct kref ref;
	struct krc_messages *messages;
	u16 service;
	u32 backlog;
	atomic_t waiting;
	struct list_head offers;
	struct krc_inbox *inbox;
	struct krc_inbox *home;
	struct krc_tx_share *share;
	void *owner;
};

/**
 * struct krc_messages_receive - How what comes to a port is taken.
 * @packets: receive buffers; NULL: not started, or destroyed.
 * @wake_lock: guards that @work is not queued after the stop; also in hard interrupts.
 * @deaf: @work is not queued any more; under @wake_lock.
 * @work: takes what has come.
 * @mutex: held while one task does that.
 * @empty_ns: when the receive queue was last found empty, or earlier; under @mutex.
 */
struct krc_messages_receive {
	struct krc_packets *packets;
	spinlock_t wake_lock; /* see @deaf */
	bool deaf;
	struct work_struct work;
	struct mutex mutex; /* see @empty_ns */
	u64 empty_ns;
};

/**
 * struct krc_messages_known - What a port knows beyond its streams: passes for OPENs to peers, and
 *	streams that are no more. Under krc_messages.lock; known.c.
 * @passes: by GID.
 * @passes_old: the same by age.
 * @passes_nr: how many.
 * @tombstones: by tag of the OPEN.
 * @by_number: the same by number.
 * @tombstones_old: the same by age.
 * @tombstones_nr: how many have an OPEN.
 * @opened_nr: how many have none.
 */
struct krc_messages_known {
	DECLARE_HASHTABLE(passes, 8);
	struct list_head passes_old;
	u32 passes_nr;
	DECLARE_HASHTABLE(tombstones, 10);
	DECLARE_HASHTABLE(by_number, 10);
	struct list_head tombstones_old;
	u32 tombstones_nr;
	u32 opened_nr;
};

/**
 * struct krc_messages_asked - OPENs that wait for a look-up of their sender; open.c.
 * @lookups: whose record may be looked up; under @mutex.
 * @opens: OPENs that wait for a look-up, of a GID each; likewise.
 * @mutex: an OPEN from its judgement to its stream; see message.h.
 * @work: does the look-ups.
 */
struct krc_messages_asked {
	struct krp_listen_lookups lookups;
	struct list_head opens;
	struct mutex mutex; /* see message.h */
	struct work_struct work;
};

/**
 * struct krc_messages - Messages of a port.
 * @ref: the port, streams and listeners.
 * @rail: the port, counted.
 * @records: see struct krc_message_records.
 * @conf: of all machines.
 * @target: of the port.
 * @pool: likewise.
 * @value: record of the port.
 * @secret: key of passes, and of the tables by the tags of OPENs.
 * @receive: what comes.
 * @tx: packets to send.
 * @lock: guards the tables below but those of @asked, and @stopped.
 * @stopped: nothing is received or posted any more, no stream or listener is made.
 * @streams: by number; each counted.
 * @next_number: where the search for a free number begins; under the lock of @streams.
 * @streams_nr: how many.
 * @opens: streams that were opened by a peer, by the tag of the OPEN.
 * @listeners: by service.
 * @listeners_nr: how many.
 * @known: passes and tombstones.
 * @thirsty: streams that wait until a packet of @tx is free; each counted.
 * @over: shares for which streams wait that may have no more.
 * @shares: shares of @tx by payer.
 * @share: that of streams which are offered.
 * @asked: OPENs that wait for a look-up.
 * @answers: packets without a stream; @answers.busy under @lock.
 * @timeout_ms: how long the end waits for a task before it says for which one.
 * @count: see enum krc_message_count.
 */
struct krc_messages {
	struct kref ref;
	struct krc_rail *rail;
	struct krc_message_records records;
	struct krp_stream_conf conf;
	struct krc_hw_target *target;
	struct krc_pool *pool;
	struct krp_value value;
	siphash_key_t secret;
	struct krc_messages_receive receive;
	struct krc_packets *tx;
	spinlock_t lock; /* see message.h */
	bool stopped;
	struct xarray streams;
	u32 next_number;
	u32 streams_nr;
	DECLARE_HASHTABLE(opens, 10);
	struct xarray listeners;
	u32 listeners_nr;
	struct krc_messages_known known;
	struct list_head thirsty;
	struct list_head over;
	DECLARE_HASHTABLE(shares, 6);
	struct krc_tx_share share;
	struct krc_messages_asked asked;
	struct krc_answer answers[KRC_ANSWERS];
	u32 timeout_ms;
	atomic64_t count[KRC_COUNTS];
};

/**
 * struct krc_stream_thirsty - The wait of a stream for a packet of its port; share.c. Under
 *	krc_messages.lock.
 * @at: entry in krc_messages.thirsty or in krc_tx_share.thirsty.
 * @over: it is in that of the share.
 */
struct krc_stream_thirsty {
	struct list_head at;
	bool over;
};

/**
 * struct krc_stream_end - How far the end of a stream has come. Under krc_stream.lock.
 * @tombstone: for it; NULL: it is in use.
 * @ending: krc_stream.in.ended is there, or taken, and not freed.
 * @closed: the owner is done.
 * @shut: no out is taken any more.
 * @shut_told: the machine knows.
 * @over: it is forgotten, and nothing is to come any more.
 * @orphan_ns: closed: when it is aborted; else KRP_STREAM_FOREVER_NS.
 * @died: what it has died of.
 * @forget_ns: see KRP_STREAM_FORGET.
 * @forget_status: likewise.
 */
struct krc_stream_end {
	struct krc_tombstone *tombstone;
	bool ending;
	bool closed;
	bool shut;
	bool shut_told;
	bool over;
	u64 orphan_ns;
	int died;
	u64 forget_ns;
	u32 forget_status;
};

/**
 * struct krc_stream_in - What has come by a stream, and its owner is told of. Under
 *	krc_stream.lock.
 * @letters: krc_letter.mine of those in krc_stream.inbox; under its lock.
 * @first: OFFERED: the first message.
 * @ended: letter that says that the peer has ended; NULL: put into the inbox.
 * @withdrawn: names of large messages that are void and have not been told.
 * @withdrawn_nr: how many.
 * @larges: READs of large messages under way, or held.
 * @larges_ended: READs that have ended.
 * @received: see struct krc_stream_stats.
 * @backlog: likewise.
 */
struct krc_stream_in {
	struct list_head letters;
	struct krc_letter *first;
	struct krc_letter *ended;
	u64 withdrawn[KRP_MESSAGE_ANNOUNCED_MAX];
	u32 withdrawn_nr;
	struct list_head larges;
	struct list_head larges_ended;
	u64 received;
	u32 backlog;
};

/**
 * struct krc_stream_out - What is on its way to the peer of a stream. Under krc_stream.lock, but for
 *	@flight, which is atomic.
 * @waiting: outs that the machine has not got.
 * @waiting_nr: how many.
 * @sending: outs that it has.
 * @ended: outs that have ended, and whose end() is to be called.
 * @packets: packets to be posted.
 * @sent: see struct krc_stream_stats.
 * @flight: packets that were pulled and are not done.
 * @wants: it wants to know when @flight sinks.
 */
struct krc_stream_out {
	struct list_head waiting;
	u32 waiting_nr;
	struct list_head sending;
	struct list_head ended;
	struct list_head packets;
	u64 sent;
	atomic_t flight;
	bool wants;
};

/**
 * struct krc_stream_run - When a stream runs next, and who runs it. Under krc_stream.lock, but for
 *	@flags and @kicked, whose bits are atomic.
 * @events: see KRC_EVENT_LETTER.
 * @task: task that is in krc_stream_run(), or NULL.
 * @armed_ns: when the work item runs, or KRP_STREAM_FOREVER_NS.
 * @until_ns: when the machine wants to be asked.
 * @flags: KRC_STREAM_FAILED and so on, bits.
 * @kicked: bit 0: the work item is to run now, whatever the clock says.
 * @work: what the clock or the pool has to say.
 * @reap: frees the stream.
 */
struct krc_stream_run {
	u32 events;
	struct task_struct *task;
	u64 armed_ns;
	u64 until_ns;
	unsigned long flags;
	unsigned long kicked;
	struct delayed_work work;
	struct work_struct reap;
};

/**
 * struct krc_stream_proof - Whether the peer is there, which is asked before packets may be lost.
 *	Under krc_stream.lock; prove.c.
 * @standing: whether the peer's target has answered lately; counted.
 * @read: READ that asks it.
 * @under_way: @read is under way.
 * @unproven: packets that wait for it.
 * @lost: others were lost meanwhile.
 * @reads_held: READs of large messages wait until the peer is heard.
 */
struct krc_stream_proof {
	struct krc_standing *standing;
	struct krc_read read;
	bool under_way;
	struct list_head unproven;
	bool lost;
	bool reads_held;
};

/**
 * struct krc_stream - One end of a connection.
 * @ref: the table, the owner, letters, packets and READs under way, the work item.
 * @m: messages of the port; counted.
 * @memcg: of the inbox that it was made for; counted.
 * @number: of this end.
 * @value_gid: GID of the peer.
 * @service: of the connection.
 * @address: of the peer's target.
 * @lock: guards all below but atomics, and what names another lock.
 * @s: the machine.
 * @few: its slots, as long as it says little.
 * @many: else these, of KRC_STREAM_SLOTS; or NULL.
 * @large: its memory for announcements; NULL: there are none.
 * @tabled: it is in krc_messages.streams.
 * @hashed: entry in krc_messages.opens; under krc_messages.lock.
 * @thirsty: its wait for a packet.
 * @share: on whose account its packets are; counted.
 * @offered: entry in krc_listener.offers; under krc_messages.lock.
 * @listener: OFFERED: whose backlog it is in, counted; else NULL.
 * @inbox: of the owner; NULL: not accepted yet, or closed.
 * @ops: of the owner; NULL as @inbox.
 * @owner: the caller's.
 * @in: what has come.
 * @end: how far its end has come.
 * @out: what is sent.
 * @run: when it runs.
 * @checked: jiffies when the peer's record was last looked up.
 * @flow: SENDs.
 * @proof: whether the peer is there.
 */
struct krc_stream {
	struct kref ref;
	struct krc_messages *m;
	struct mem_cgroup *memcg;
	u32 number;
	u8 value_gid[KRP_GID_BYTES];
	u16 service;
	struct krc_hw_address address;
	spinlock_t lock; /* see message.h */
	struct krp_stream s;
	struct krp_stream_slot few[KRP_STREAM_SLOTS_MIN];
	struct krp_stream_slot *many;
	struct krp_stream_large *large;
	bool tabled;
	struct hlist_node hashed;
	struct krc_stream_thirsty thirsty;
	struct krc_tx_share *share;
	struct list_head offered;
	struct krc_listener *listener;
	struct krc_inbox *inbox;
	const struct krc_stream_ops *ops;
	void *owner;
	struct krc_stream_in in;
	struct krc_stream_end end;
	struct krc_stream_out out;
	struct krc_stream_run run;
	unsigned long checked;
	struct krc_flow flow;
	struct krc_stream_proof proof;
};

/* krc_stream.run.flags: bits that done() sets for the work item */
#define KRC_STREAM_FAILED 0 /* the flow has failed */
#define KRC_STREAM_LOST 1 /* what was posted may be lost, though the peer is there */
#define KRC_STREAM_DOUBT 2 /* the peer may be gone: look its record up */
#define KRC_STREAM_PROOF 3 /* krc_stream.proof.read is over */

/**
 * krc_message_count() - Count one.
 * @m: messages.
 * @what: of what.
 *
 * Context: any.
 */
static inline void krc_message_count(struct krc_messages *m, enum krc_message_count what)
{
	atomic64_inc(&m->count[what]);
}

/**
 * krc_open_key() - Where an OPEN is found in krc_messages.opens and .known.tombstones.
 * @m: messages.
 * @tag: of the OPEN, which its sender has chosen: it does not choose the chain.
 *
 * Context: any.
 * Return: key for the hash.
 */
static inline u64 krc_open_key(const struct krc_messages *m, u64 tag)
{
	return siphash_1u64(tag, &m->secret);
}

/**
 * krc_stream_get() - Count a reference.
 * @st: stream that the caller has a reference to.
 *
 * Context: any.
 * Return: @st.
 */
static inline struct krc_stream *krc_stream_get(struct krc_stream *st)
{
	kref_get(&st->ref);
	return st;
}

/**
 * krc_stream_put() - Drop a reference; the last one has the stream freed.
 * @st: stream.
 *
 * Context: any but hard interrupts.
 */
void krc_stream_put(struct krc_stream *st);

/**
 * krc_streams_init() - Make what the memory of streams is taken from.
 *
 * Context: module init.
 * Return: 0, or -ENOMEM.
 */
int krc_streams_init(void);

/**
 * krc_streams_exit() - Undo krc_streams_init(), when there is no stream any more.
 *
 * Context: module exit.
 */
void krc_streams_exit(void);

/**
 * krc_stream_new() - Make a stream that is in no table.
 * @m: messages.
 * @gid: GID of the peer.
 * @value: record of the peer.
 * @memcg: what it and its letters are charged to, see krc_inbox_alloc(); or NULL.
 *
 * Context: may sleep.
 * Return: the stream, with one reference; or ERR_PTR: -ENOMEM, or the error of ops->address().
 */
struct krc_stream *krc_stream_new(struct krc_messages *m, const u8 *gid,
				  const struct krp_value *value, struct mem_cgroup *memcg);

/**
 * krc_stream_table() - Give a stream its number: it can be found from now on, and is counted.
 * @st: stream.
 * @share: which has to have room for it, see krc_tx_share_room(); NULL: it was found to have.
 *
 * Context: may sleep.
 * Return: 0; -ENODEV: the port ends; -ENOMEM; -ENOSPC; -EDQUOT: @share has none.
 */
int krc_stream_table(struct krc_stream *st, const struct krc_tx_share *share);

/**
 * krc_stream_untable() - Undo krc_stream_table(): nobody finds the stream any more.
 * @st: stream, not locked.
 *
 * Context: any but hard interrupts.
 */
void krc_stream_untable(struct krc_stream *st);

/**
 * krc_stream_find() - Find a stream by number.
 * @m: messages.
 * @number: number.
 *
 * Context: any but hard interrupts.
 * Return: the stream, counted; or NULL.
 */
struct krc_stream *krc_stream_find(struct krc_messages *m, u32 number);

/**
 * krc_stream_lend_large() - See that the machine has memory for announcements.
 * @st: stream, locked.
 *
 * It has it as long as there is one of either end, or an out waits. Context: bottom halves off.
 * Return: whether it has.
 */
bool krc_stream_lend_large(struct krc_stream *st);

/**
 * krc_stream_pull() - Ask the machine what is to be done, and note it for krc_stream_run().
 * @st: stream, locked.
 *
 * To be called before the lock is dropped, whenever something was said to the machine. Context:
 * bottom halves off.
 */
void krc_stream_pull(struct krc_stream *st);

/**
 * krc_stream_run() - Do what was noted.
 * @st: stream, not locked, counted by the caller.
 *
 * Context: may sleep.
 */
void krc_stream_run(struct krc_stream *st);

/**
 * krc_stream_kick() - Have the work item run now.
 * @st: stream.
 *
 * Context: any.
 */
void krc_stream_kick(struct krc_stream *st);

/**
 * krc_stream_die() - End a stream without its peer.
 * @st: stream, not locked.
 * @err: why.
 * @generation: of the peer's record now, 0: not known.
 *
 * Context: may sleep.
 */
void krc_stream_die(struct krc_stream *st, int err, u64 generation);

/**
 * krc_stream_take() - A packet has come for a stream.
 * @st: stream.
 * @packet: packet, checked.
 * @arrived_ns: see krp_stream_received().
 *
 * Context: may sleep.
 */
void krc_stream_take(struct krc_stream *st, const struct krp_message *packet, u64 arrived_ns);

/**
 * krc_stream_lose() - Drop packets that were pulled; the machine mends it.
 * @st: stream, not locked.
 * @packets: list of krc_packet.list; emptied.
 *
 * Context: any but hard interrupts.
 */
void krc_stream_lose(struct krc_stream *st, struct list_head *packets);

/**
 * krc_proof_passes() - Check whether packets may be posted now.
 * @st: stream, not locked; the caller is its runner.
 * @packets: list of krc_packet.list, which is empty when false is returned.
 *
 * If the peer has not answered lately it is asked, and the packets wait or are lost. Context: may
 * sleep.
 * Return: whether they may.
 */
bool krc_proof_passes(struct krc_stream *st, struct list_head *packets);

/**
 * krc_proof_settle() - KRC_STREAM_PROOF was set: packets that waited are to be posted, or are lost.
 * @st: stream, not locked; krc_stream_pull() and krc_stream_run() are to follow.
 *
 * Context: may sleep.
 */
void krc_proof_settle(struct krc_stream *st);

/**
 * krc_standing_outcome() - Note what a packet that is done says of its target.
 * @standing: of the target.
 * @req: its request.
 *
 * Context: any but hard interrupts.
 */
void krc_standing_outcome(struct krc_standing *standing, const struct krc_req *req);

/**
 * krc_proof_heard() - Note that a packet of the peer has come.
 * @st: stream.
 *
 * Context: any but hard interrupts.
 */
void krc_proof_heard(struct krc_stream *st);

#define KRC_LARGE_TRIES 4 /* that a READ is done again because it had no answer */

/**
 * krc_large_place() - A large message has come: have it READ to where its program has posted a place
 *	for it, if there is one.
 * @st: stream, locked, with an inbox.
 * @letter: letter of the message, which is not in the inbox yet; if there is, it says so.
 *
 * krc_stream_run() is to follow. Context: bottom halves off.
 */
void krc_large_place(struct krc_stream *st, struct krc_letter *letter);

/**
 * krc_large_resume() - The peer was heard, or is dead: READs that are held may go on.
 * @st: stream, not locked; the caller is its runner.
 *
 * Context: may sleep.
 */
void krc_large_resume(struct krc_stream *st);

/**
 * krc_large_unwant() - End the large messages of a stream whose owner is done, but those that are
 *	being READ.
 * @st: stream, locked.
 *
 * Context: bottom halves off.
 */
void krc_large_unwant(struct krc_stream *st);

/**
 * krc_large_tell() - Do READs again that have had no answer, and call end() of those that have ended.
 * @st: stream, not locked; the caller is its runner.
 *
 * Context: may sleep.
 */
void krc_large_tell(struct krc_stream *st);

/**
 * krc_inbox_alloc() - Get memory for what has come for a program.
 * @memcg: the program's, or NULL.
 * @bytes: how much.
 *
 * Charged to @memcg without waiting until that has room, and beyond its limit if it has none, as
 * what comes by a socket is: whoever takes what comes for all programs reclaims no memory of one.
 * What is beyond is bounded by the windows, and the program itself has to reclaim it.
 * Context: may sleep, but does not.
 * Return: the memory, for kfree(); NULL: there is none.
 */
void *krc_inbox_alloc(struct mem_cgroup *memcg, size_t bytes);

/**
 * krc_letter_new() - Make a letter.
 * @st: stream; the letter counts it.
 * @kind: enum krc_letter_kind.
 * @m: packet that it is about, or NULL.
 * @bytes: of the program, or NULL.
 *
 * Context: may sleep.
 * Return: the letter, or NULL: no memory.
 */
struct krc_letter *krc_letter_new(struct krc_stream *st, enum krc_letter_kind kind,
				  const struct krp_message *m, const void *bytes);

/**
 * krc_letter_drop() - Free a letter that nobody has taken, without a word to the machine.
 * @letter: letter, or NULL.
 *
 * Context: any but hard interrupts.
 */
void krc_letter_drop(struct krc_letter *letter);

/**
 * krc_inbox_put() - Put a letter in.
 * @inbox: inbox.
 * @letter: letter.
 *
 * Does not call arrived(). Context: any but hard interrupts.
 */
void krc_inbox_put(struct krc_inbox *inbox, struct krc_letter *letter);

/**
 * krc_inbox_join() - One more stream delivers here.
 * @inbox: inbox.
 *
 * Context: any but hard interrupts.
 */
void krc_inbox_join(struct krc_inbox *inbox);

/**
 * krc_inbox_leave() - A stream does not any more; its letters are taken out.
 * @inbox: inbox.
 * @st: stream.
 * @ret_letters: the letters are added here.
 *
 * Context: any but hard interrupts.
 */
void krc_inbox_leave(struct krc_inbox *inbox, struct krc_stream *st, struct list_head *ret_letters);

/**
 * krc_open_came() - An OPEN has come.
 * @m: messages.
 * @packet: it, checked.
 * @bytes: of @packet.
 * @arrived_ns: see krp_stream_received().
 *
 * Context: may sleep.
 */
void krc_open_came(struct krc_messages *m, const struct krp_message *packet, u32 bytes,
		   u64 arrived_ns);

/**
 * krc_open_work() - Work: look up the records of OPENs that wait for that.
 * @work: krc_messages.asked.work.
 *
 * Context: may sleep.
 */
void krc_open_work(struct work_struct *work);

/**
 * krc_opens_drop() - Free the OPENs that wait for a look-up.
 * @m: messages.
 *
 * Context: may sleep.
 */
void krc_opens_drop(struct krc_messages *m);

/**
 * krc_offer_end() - A stream is not offered any more.
 * @st: stream, locked.
 *
 * Context: bottom halves off.
 * Return: its listener, for krc_listener_put(), or NULL.
 */
struct krc_listener *krc_offer_end(struct krc_stream *st);

/**
 * krc_listener_put() - Drop a reference.
 * @listener: listener, or NULL.
 *
 * Context: may sleep.
 */
void krc_listener_put(struct krc_listener *listener);

/**
 * krc_unknown_came() - A packet has come for a stream that is not there.
 * @m: messages.
 * @packet: it, checked.
 *
 * Context: may sleep.
 */
void krc_unknown_came(struct krc_messages *m, const struct krp_message *packet);

/**
 * krc_answer_send() - Send a packet that no stream sends, if one of the few places for it is free.
 * Those that wait for an answer of their target leave some to others.
 * @m: messages.
 * @to: target.
 * @standing: whether that has answered lately. If it has not, it is asked first.
 * @head: header.
 * @body: body, or NULL.
 * @body_bytes: of @body.
 *
 * Context: may sleep.
 */
void krc_answer_send(struct krc_messages *m, const struct krc_hw_address *to,
		     struct krc_standing *standing, const struct krp_message *head,
		     const void *body, u32 body_bytes);

/**
 * krc_answers_init() - Make the places for answers.
 * @m: messages, with pool.
 *
 * Context: any.
 */
void krc_answers_init(struct krc_messages *m);

/**
 * krc_answers_end() - Wait until no answer is being sent.
 * @m: messages; the pool is stopped.
 *
 * Context: may sleep.
 */
void krc_answers_end(struct krc_messages *m);

/**
 * krc_tombstone_make() - Know a stream again that is going to be forgotten.
 * @st: stream; its tombstone is used.
 * @until_ns: until then.
 *
 * Context: any but hard interrupts.
 */
void krc_tombstone_make(struct krc_stream *st, u64 until_ns);

/**
 * krc_tombstones_free() - Forget tombstones.
 * @m: messages.
 * @all: all of them, else those whose time is over.
 *
 * Context: any but hard interrupts.
 */
void krc_tombstones_free(struct krc_messages *m, bool all);

/**
 * krc_pass_of() - The pass that an OPEN of a node must have.
 * @m: messages.
 * @gid: GID of the node.
 * @generation: of the node.
 *
 * Context: any.
 * Return: the pass, not zero.
 */
u64 krc_pass_of(const struct krc_messages *m, const u8 *gid, u64 generation);

/**
 * krc_pass_keep() - Remember what a node has said that OPENs must have.
 * @m: messages.
 * @gid: GID of the node.
 * @generation: of the node.
 * @pass: what it has said.
 *
 * Context: may sleep.
 */
void krc_pass_keep(struct krc_messages *m, const u8 *gid, u64 generation, u64 pass);

/**
 * krc_pass_get() - What krc_pass_keep() remembers.
 * @m: messages.
 * @gid: GID of the node.
 * @generation: of the node.
 *
 * Context: any but hard interrupts.
 * Return: the pass, or 0.
 */
u64 krc_pass_get(struct krc_messages *m, const u8 *gid, u64 generation);

/**
 * krc_messages_poll() - Do what an interrupt would do: take what has come.
 * @m: messages.
 *
 * Does nothing if another task is at it. Context: a work item, may sleep; not the task of a
 * program, see message.c. Inside krc_rail_enter().
 */
void krc_messages_poll(struct krc_messages *m);

/**
 * krc_messages_put() - Drop a reference; the last one frees the messages.
 * @m: messages.
 *
 * Context: may sleep.
 */
void krc_messages_put(struct krc_messages *m);

extern struct workqueue_struct *krc_messages_wq; /* of all work items of this folder but these: */
extern struct workqueue_struct *krc_messages_rx_wq; /* receive.work, asked.work, listeners */

#endif /* KRC_MESSAGE_PRIV_H */
