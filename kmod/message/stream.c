// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: driving the machine of a stream: packets in, packets out, clock, faults, its end.
 *
 * Faults of SENDs are losses to the machine. After one that says nothing of the peer, such as a
 * reset of the channel, all that is not acknowledged is sent again at once. After one that does (no
 * answer, no receive buffer, no such target) only the machine's own questions follow, in growing
 * pauses, until the peer answers, is silent for too long, or its record shows another generation.
 * Locking: see message_priv.h.
 */
#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "message/message_priv.h"
#include "pool/pool.h"

#define KRC_STREAM_CHECK_MS 1000 /* the peer's record is looked up no more often */

/* Of their own size, which is above 1 KB: kmalloc() takes 2 KB for each. */
static struct kmem_cache *krc_stream_cache;

int krc_streams_init(void)
{
	krc_stream_cache = KMEM_CACHE(krc_stream, 0);
	return krc_stream_cache ? 0 : -ENOMEM;
}

void krc_streams_exit(void)
{
	kmem_cache_destroy(krc_stream_cache);
}

/* ---- packets */

/* What a SEND that has failed says. */
static void krc_stream_fault(struct krc_stream *st, const struct krc_req *req)
{
	krc_message_count(st->m, KRC_COUNT_FAILED);
	set_bit(KRC_STREAM_FAILED, &st->run.flags);
	if (req->status == -ECANCELED)
		return; /* behind the one that tells why */
	if (req->fault == KRC_FAULT_TIMEOUT || req->fault == KRC_FAULT_TARGET)
		set_bit(KRC_STREAM_DOUBT, &st->run.flags);
	else if (req->fault != KRC_FAULT_BUSY)
		set_bit(KRC_STREAM_LOST, &st->run.flags);
}

/* Packets are free again, whatever has become of them: memory is not held for these any more. */
static void krc_stream_done_with(struct krc_stream *st, struct list_head *reqs, u32 nr)
{
	u64 now_ns = ktime_get_ns();
	struct krc_req *req, *next;
	bool last;

	spin_lock_bh(&st->lock);
	list_for_each_entry(req, reqs, list)
		krp_stream_post_end(&st->s, now_ns,
				    container_of(req, struct krc_packet, req)->data);
	last = st->s.state == KRP_STREAM_DEAD && !st->s.posting; /* it is known how long, now */
	spin_unlock_bh(&st->lock);
	list_for_each_entry_safe(req, next, reqs, list) {
		list_del_init(&req->list);
		krc_packet_put(container_of(req, struct krc_packet, req));
	}
	atomic_sub(nr, &st->out.flight);
	smp_mb__after_atomic(); /* against krc_stream_packet() */
	if (last || READ_ONCE(st->out.wants) || READ_ONCE(st->run.flags))
		krc_stream_kick(st);
	krc_streams_drink(st->m);
	while (nr--)
		krc_stream_put(st);
}

/* The pool is done with packets: krc_flow.done of krc_stream.flow. */
static void krc_stream_done(struct krc_flow *flow, struct list_head *reqs, u32 nr)
{
	struct krc_stream *st = container_of(flow, struct krc_stream, flow);
	const struct krc_req *req;

	list_for_each_entry(req, reqs, list) {
		krc_standing_outcome(st->proof.standing, req);
		if (req->status)
			krc_stream_fault(st, req);
	}
	krc_stream_done_with(st, reqs, nr);
}

/* The requests of packets. Return: how many. */
static u32 krc_stream_reqs(struct list_head *packets, struct list_head *ret_reqs)
{
	struct krc_packet *packet, *next;
	u32 nr = 0;

	list_for_each_entry_safe(packet, next, packets, list) {
		list_del_init(&packet->list);
		list_add_tail(&packet->req.list, ret_reqs);
		nr++;
	}
	return nr;
}

void krc_stream_lose(struct krc_stream *st, struct list_head *packets)
{
	LIST_HEAD(reqs);
	u32 nr = krc_stream_reqs(packets, &reqs);

	if (nr)
		krc_stream_done_with(st, &reqs, nr);
}

/*
 * SENDs are on account of whoever pays for the packets. While some are outstanding they stay where they
 * are; nobody but the runner, which this is, submits more.
 */
static void krc_stream_pay(struct krc_stream *st)
{
	const void *payer = READ_ONCE(st->share)->payer;

	if (unlikely(st->flow.payer != payer) && !atomic_read_acquire(&st->flow.outstanding))
		st->flow.payer = payer;
}

/* Post the packets that were pulled. Those that can't be are lost, which the machine mends. */
static void krc_stream_post(struct krc_stream *st, struct list_head *packets)
{
	LIST_HEAD(reqs);
	int err = -ENODEV;
	u32 nr;

	if (list_empty(packets) || !krc_proof_passes(st, packets))
		return;
	nr = krc_stream_reqs(packets, &reqs);
	krc_stream_pay(st);
	if (krc_rail_enter(st->m->rail)) {
		err = krc_flow_submit(&st->flow, &reqs, NULL);
		krc_rail_exit(st->m->rail);
	}
	if (!err) {
		atomic64_add(nr, &st->m->count[KRC_COUNT_POSTED]);
		return;
	}
	krc_stream_done_with(st, &reqs, nr);
}

/* A packet for what the machine may want to send. Return: it; NULL: the stream is called later. */
static struct krc_packet *krc_stream_packet(struct krc_stream *st)
{
	WRITE_ONCE(st->out.wants, true);
	smp_mb(); /* wants before flight, against krc_stream_done() */
	if (atomic_read(&st->out.flight) >= KRC_STREAM_FLIGHT) {
		krc_streams_drink(st->m);
		return NULL;
	}
	WRITE_ONCE(st->out.wants, false);
	return krc_tx_share_packet(st);
}

/* Make a packet of what the machine says. */
static void krc_stream_fill(struct krc_stream *st, struct krc_packet *packet,
			    const struct krp_stream_todo *todo)
{
	const struct krc_out *out = (const struct krc_out *)(uintptr_t)todo->cookie;
	unsigned long until = jiffies + msecs_to_jiffies(st->m->rail->margin_ms / 2);

	memcpy(packet->data, &todo->packet, todo->bytes);
	if (todo->payload)
		memcpy(packet->data + todo->bytes, out->bytes, todo->payload);
	krc_packet_send(packet, &st->address, todo->bytes + todo->payload, until);
	list_add_tail(&packet->list, &st->out.packets);
	krp_stream_post_begin(&st->s, &todo->packet);
	atomic_inc(&st->out.flight);
	krc_stream_get(st);
}

/* ---- what the machine says */

bool krc_stream_lend_large(struct krc_stream *st)
{
	lockdep_assert_held(&st->lock);
	if (likely(st->large))
		return true;
	st->large = krc_inbox_alloc(st->memcg, sizeof(*st->large));
	if (st->large)
		krp_stream_give_large(&st->s, st->large);
	return st->large;
}

/*
 * More slots, if all are taken, and none of the messages in them has ended. Without memory for more
 * fewer messages are under way at once.
 */
static void krc_stream_grow(struct krc_stream *st)
{
	if (likely(!krp_stream_cramped(&st->s)) || st->many || st->s.tx.told != st->s.tx.una)
		return;
	st->many = krc_inbox_alloc(st->memcg, KRC_STREAM_SLOTS * sizeof(*st->many));
	if (st->many)
		WARN_ON_ONCE(krp_stream_move(&st->s, st->many, KRC_STREAM_SLOTS));
}

/* Memory in which nothing is goes back: a connection on which nothing is said costs little. */
static void krc_stream_shrink(struct krc_stream *st)
{
	if (likely(!st->many && !st->large) || !list_empty(&st->out.waiting))
		return;
	if (st->many && st->s.tx.told == st->s.tx.next &&
	    !krp_stream_move(&st->s, st->few, ARRAY_SIZE(st->few))) {
		kfree(st->many);
		st->many = NULL;
	}
	if (st->large && krp_stream_take_large(&st->s)) {
		kfree(st->large);
		st->large = NULL;
	}
}

/* Hand outs in as long as there is room. */
static void krc_stream_feed(struct krc_stream *st, u64 now_ns)
{
	struct krc_out *out, *next;
	int err;

	list_for_each_entry_safe(out, next, &st->out.waiting, list) {
		struct krp_stream_req req = {
			.cookie = (uintptr_t)out,
			.addr = out->addr,
			.length = out->length,
			.imm = out->imm,
			.rkey = out->rkey,
			.large = out->large,
			.hurry = out->hurry,
			.notify = out->notify,
		};

		krc_stream_grow(st);
		err = krp_stream_send(&st->s, now_ns, &req);
		if (err == -EAGAIN || err == -ENOTCONN)
			return;
		st->out.waiting_nr--;
		st->out.sent += !err;
		out->err = err;
		list_move_tail(&out->list, err ? &st->out.ended : &st->out.sending);
	}
	if (st->end.shut && !st->end.shut_told && krp_stream_shut(&st->s, now_ns) != -ENOTCONN)
		st->end.shut_told = true;
}

static void krc_stream_out_ended(struct krc_stream *st, const struct krp_stream_todo *todo)
{
	struct krc_out *out = (struct krc_out *)(uintptr_t)todo->cookie;

	out->err = todo->err;
	list_move_tail(&out->list, &st->out.ended);
}

static void krc_stream_died(struct krc_stream *st, int err)
{
	struct krc_out *out;

	st->end.died = err;
	list_for_each_entry(out, &st->out.waiting, list)
		out->err = err;
	list_splice_tail_init(&st->out.waiting, &st->out.ended);
	st->out.waiting_nr = 0;
}

/* The peer has ended: the letter that says so goes behind all that has come. */
static void krc_stream_ended(struct krc_stream *st)
{
	if (!st->inbox || !st->in.ended)
		return;
	krc_stream_get(st);
	WRITE_ONCE(st->end.ending, true);
	krc_inbox_put(st->inbox, st->in.ended);
	st->in.ended = NULL;
	st->run.events |= KRC_EVENT_LETTER;
}

static void krc_stream_note(struct krc_stream *st, const struct krp_stream_todo *todo)
{
	switch (todo->what) {
	case KRP_STREAM_COMPLETE:
	case KRP_STREAM_RELEASE:
		krc_stream_out_ended(st, todo);
		return;
	case KRP_STREAM_WITHDRAWN:
		if (!WARN_ON_ONCE(st->in.withdrawn_nr == ARRAY_SIZE(st->in.withdrawn)))
			st->in.withdrawn[st->in.withdrawn_nr++] = todo->number;
		break;
	case KRP_STREAM_ENDED:
		krc_stream_ended(st);
		return;
	case KRP_STREAM_DIED:
		krc_stream_died(st, todo->err);
		break;
	case KRP_STREAM_FORGET:
		st->end.forget_ns = todo->until_ns;
		st->end.forget_status = (u32)todo->number;
		break;
	default:
		break;
	}
	st->run.events |= 1U << todo->what;
}

/* The window that user and port allow: a part of what the inbox may hold. */
static void krc_stream_budget(struct krc_stream *st)
{
	u32 units = st->m->conf.units;

	if (st->inbox)
		units = READ_ONCE(st->inbox->units_max) / max(READ_ONCE(st->inbox->streams), 1U);
	krp_stream_budget(&st->s, st->m->conf.msgs, units);
}

/* Have the work item run when the machine wants to be asked. */
static void krc_stream_arm(struct krc_stream *st, u64 now_ns)
{
	u64 at_ns = min(st->run.until_ns, st->end.orphan_ns), wait_ns;

	if (st->end.over || st->s.state == KRP_STREAM_GONE || at_ns == KRP_STREAM_FOREVER_NS ||
	    at_ns >= st->run.armed_ns)
		return;
	st->run.armed_ns = at_ns;
	wait_ns = at_ns > now_ns ? at_ns - now_ns : 0;
	krc_stream_get(st);
	if (mod_delayed_work(krc_messages_wq, &st->run.work, nsecs_to_jiffies(wait_ns) + 1))
		krc_stream_put(st);
	smp_mb(); /* the work item before @kicked, against krc_stream_kick() */
	if (test_bit(0, &st->run.kicked))
		krc_stream_kick(st); /* which that has put off */
}

/* Ask the machine. @may_send: there is a packet, or what is sent is of no use. */
static enum krp_stream_do krc_stream_next(struct krc_stream *st, u64 now_ns, bool may_send,
					  struct krp_stream_todo *ret_todo)
{
	return likely(may_send) ? krp_stream_next(&st->s, now_ns, ret_todo)
				: krp_stream_tell(&st->s, now_ns, ret_todo);
}

void krc_stream_pull(struct krc_stream *st)
{
	bool stopped = READ_ONCE(st->m->stopped), dry = false;
	struct krc_packet *packet = NULL;
	struct krp_stream_todo todo;
	u64 now_ns = ktime_get_ns();

	lockdep_assert_held(&st->lock);
	krc_stream_budget(st);
	do {
		krc_stream_feed(st, now_ns);
		if (!packet && !stopped && !dry) {
			packet = krc_stream_packet(st);
			dry = !packet; /* krc_stream_done() or krc_streams_drink() comes back */
		}
		if (krc_stream_next(st, now_ns, !dry, &todo) != KRP_STREAM_SEND) {
			krc_stream_note(st, &todo);
		} else if (packet) {
			krc_stream_fill(st, packet, &todo);
			packet = NULL;
		}
	} while (todo.what != KRP_STREAM_WAIT);
	if (packet) {
		krc_packet_put(packet);
		/* this one may have been called in place of another */
		krc_streams_drink(st->m);
	}
	krc_stream_shrink(st);
	st->run.events &= ~(1U << KRP_STREAM_WAIT);
	st->run.until_ns = todo.until_ns;
	krc_stream_arm(st, now_ns);
}

/* ---- doing what was noted */

/**
 * struct krc_noted - What krc_stream_run() does next.
 * @packets: to be posted.
 * @outs: that have ended.
 * @events: bits, see struct krc_stream.
 * @withdrawn: large messages that are void.
 * @withdrawn_nr: how many.
 */
struct krc_noted {
	struct list_head packets;
	struct list_head outs;
	u32 events;
	u64 withdrawn[KRP_MESSAGE_ANNOUNCED_MAX];
	u32 withdrawn_nr;
};

/* Take what was noted. Return: whether there is something. */
static bool krc_noted_take(struct krc_stream *st, struct krc_noted *noted)
{
	lockdep_assert_held(&st->lock);
	INIT_LIST_HEAD(&noted->packets);
	INIT_LIST_HEAD(&noted->outs);
	list_splice_init(&st->out.packets, &noted->packets);
	list_splice_init(&st->out.ended, &noted->outs);
	noted->events = st->run.events;
	noted->withdrawn_nr = st->in.withdrawn_nr;
	memcpy(noted->withdrawn, st->in.withdrawn, st->in.withdrawn_nr * sizeof(*noted->withdrawn));
	st->run.events = 0;
	st->in.withdrawn_nr = 0;
	return noted->events || !list_empty(&noted->packets) || !list_empty(&noted->outs);
}

/* The stream is over, but what its peer repeats may still come. */
static void krc_stream_forget(struct krc_stream *st)
{
	u64 until_ns = st->end.forget_ns;

	/* the REFUSE may be lost, and the peer ask */
	if (!until_ns && st->end.died == -ECONNABORTED)
		until_ns = ktime_get_ns() + st->m->conf.silence_ns;
	if (until_ns)
		krc_tombstone_make(st, until_ns);
	spin_lock_bh(&st->lock);
	st->end.over = true;
	spin_unlock_bh(&st->lock);
	if (cancel_delayed_work(&st->run.work))
		krc_stream_put(st);
	if (test_bit(0, &st->run.kicked))
		krc_stream_kick(st); /* packets may wait for it */
	krc_stream_untable(st);
}

static void krc_stream_tell(struct krc_stream *st, const struct krc_noted *noted)
{
	const struct krc_stream_ops *ops;
	struct krc_inbox *inbox;
	u32 i;

	if (noted->events & 1U << KRP_STREAM_PASS)
		krc_pass_keep(st->m, st->value_gid, st->s.peer_generation,
			      le64_to_cpu(READ_ONCE(st->s.open.pass)));
	/* an upcall may close the stream; another task that closes it waits for this task */
	ops = READ_ONCE(st->ops);
	if (noted->events & 1U << KRP_STREAM_OPENED && ops)
		ops->opened(st);
	for (i = 0; i < noted->withdrawn_nr; i++) {
		ops = READ_ONCE(st->ops);
		if (ops)
			ops->withdrawn(st, noted->withdrawn[i]);
	}
	inbox = READ_ONCE(st->inbox);
	if (noted->events & KRC_EVENT_LETTER && inbox)
		inbox->arrived(inbox);
	if (noted->events & (KRC_EVENT_RESUME | 1U << KRP_STREAM_DIED))
		krc_large_resume(st);
	if (noted->events & KRC_EVENT_LARGE)
		krc_large_tell(st);
	if (noted->events & 1U << KRP_STREAM_DIED) {
		ops = READ_ONCE(st->ops);
		if (ops)
			ops->died(st, st->end.died);
	}
	if (noted->events & 1U << KRP_STREAM_FORGET)
		krc_stream_forget(st);
}

void krc_stream_run(struct krc_stream *st)
{
	struct krc_noted noted;
	struct krc_out *out, *next;

	spin_lock_bh(&st->lock);
	if (st->run.task) {
		spin_unlock_bh(&st->lock);
		return;
	}
	st->run.task = current;
	while (krc_noted_take(st, &noted)) {
		spin_unlock_bh(&st->lock);
		krc_stream_post(st, &noted.packets);
		list_for_each_entry_safe(out, next, &noted.outs, list) {
			list_del_init(&out->list);
			out->end(out, out->err);
		}
		krc_stream_tell(st, &noted);
		spin_lock_bh(&st->lock);
	}
	st->run.task = NULL;
	spin_unlock_bh(&st->lock);
	smp_mb(); /* runner before the queue of those that wait for it */
	wake_up_var(&st->run.task);
}

/* ---- what the clock, the pool and the table say */

void krc_stream_kick(struct krc_stream *st)
{
	set_bit(0, &st->run.kicked);
	smp_mb__after_atomic(); /* against krc_stream_arm() */
	krc_stream_get(st);
	if (mod_delayed_work(krc_messages_wq, &st->run.work, 0))
		krc_stream_put(st);
}

void krc_stream_die(struct krc_stream *st, int err, u64 generation)
{
	spin_lock_bh(&st->lock);
	krp_stream_lost(&st->s, ktime_get_ns(), err, generation);
	krc_stream_pull(st);
	spin_unlock_bh(&st->lock);
	krc_stream_run(st);
}

/* SENDs have failed. */
static void krc_stream_repair(struct krc_stream *st)
{
	bool lost;

	krc_flow_drain(&st->flow);
	if (!krc_rail_enter(st->m->rail))
		return;
	lost = test_and_clear_bit(KRC_STREAM_LOST, &st->run.flags);
	krc_flow_restart(&st->flow);
	krc_rail_exit(st->m->rail);
	if (!lost)
		return;
	krc_message_count(st->m, KRC_COUNT_REPLAYS);
	spin_lock_bh(&st->lock);
	krp_stream_replay(&st->s);
	spin_unlock_bh(&st->lock);
}

/* The peer's target has not answered, or is not there: is there another generation of it? */
static void krc_stream_check(struct krc_stream *st)
{
	const struct krc_message_records *records = &st->m->records;
	struct krp_key key = { .service = cpu_to_le16(KRP_SERVICE_NODE) };
	struct krc_tx_share *share;
	struct krp_value value;
	int err;

	if (time_before(jiffies, st->checked + msecs_to_jiffies(KRC_STREAM_CHECK_MS)))
		return;
	share = krc_tx_share_look(st);
	if (!share)
		return; /* the next SEND that fails comes back */
	err = -ENODEV;
	if (krc_rail_enter(st->m->rail)) {
		memcpy(key.gid, st->value_gid, sizeof(key.gid));
		err = records->lookup(records->arg, &key, &value);
		krc_rail_exit(st->m->rail);
		st->checked = jiffies;
	}
	krc_tx_share_looked(st->m, share);
	if (!err)
		krc_stream_die(st, -ECONNRESET, le64_to_cpu(value.generation));
}

static void krc_stream_work(struct work_struct *work)
{
	struct krc_stream *st = container_of(to_delayed_work(work), struct krc_stream, run.work);
	u64 now_ns = ktime_get_ns();

	clear_bit(0, &st->run.kicked);
	smp_mb__after_atomic(); /* before what the kick was for is looked at */
	if (READ_ONCE(st->run.flags)) /* it was called, and may sleep before it asks for a packet */
		krc_streams_drink(st->m);
	if (test_and_clear_bit(KRC_STREAM_FAILED, &st->run.flags))
		krc_stream_repair(st);
	if (test_and_clear_bit(KRC_STREAM_PROOF, &st->run.flags))
		krc_proof_settle(st);
	if (test_and_clear_bit(KRC_STREAM_DOUBT, &st->run.flags))
		krc_stream_check(st);
	if (READ_ONCE(st->proof.reads_held) && krc_rail_enter(st->m->rail)) {
		krc_messages_poll(st->m); /* see large.c */
		krc_rail_exit(st->m->rail);
	}
	spin_lock_bh(&st->lock);
	st->run.armed_ns = KRP_STREAM_FOREVER_NS;
	if (now_ns >= st->end.orphan_ns) {
		st->end.orphan_ns = KRP_STREAM_FOREVER_NS;
		krp_stream_abort(&st->s, now_ns, KRP_REFUSE_ABORT);
	}
	krc_stream_pull(st);
	spin_unlock_bh(&st->lock);
	krc_stream_run(st);
	krc_stream_put(st);
}

/* ---- packets that come */

/* A message has come: it becomes a letter. */
static void krc_stream_deliver(struct krc_stream *st, struct krc_letter *letter)
{
	lockdep_assert_held(&st->lock);
	st->in.received++;
	st->in.backlog++;
	if (letter->kind == KRC_LETTER_LARGE)
		krc_large_place(st, letter);
	krc_inbox_put(st->inbox, letter);
	st->run.events |= KRC_EVENT_LETTER;
}

/* A message has come, and its owner is gone. */
static void krc_stream_ignore(struct krc_stream *st, const struct krp_message *m)
{
	krp_stream_consumed(&st->s, 1, krp_message_units(m->type, le32_to_cpu(m->length)));
	if (m->type == KRP_MESSAGE_ANNOUNCE)
		krp_stream_fetched(&st->s, le64_to_cpu(m->seq), KRP_REFUSE_DISCARDED);
}

void krc_stream_take(struct krc_stream *st, const struct krp_message *packet, u64 arrived_ns)
{
	bool windowed = packet->type == KRP_MESSAGE_DATA || packet->type == KRP_MESSAGE_ANNOUNCE;
	bool large = packet->type == KRP_MESSAGE_ANNOUNCE;
	struct krc_letter *letter = NULL;
	enum krp_stream_verdict verdict;
	u32 foreign;

	if (windowed)
		letter = krc_letter_new(st, large ? KRC_LETTER_LARGE : KRC_LETTER_MESSAGE, packet,
					packet + 1);
	if (windowed && !letter)
		krc_message_count(st->m, KRC_COUNT_NO_MEMORY);
	spin_lock_bh(&st->lock);
	if (large && letter && krp_stream_mine(&st->s, packet) && !krc_stream_lend_large(st))
		krc_message_count(st->m, KRC_COUNT_NO_MEMORY);
	foreign = st->s.dropped.foreign;
	verdict = krp_stream_received(&st->s, ktime_get_ns(), arrived_ns, packet, !!letter);
	atomic64_add(st->s.dropped.foreign - foreign, &st->m->count[KRC_COUNT_FOREIGN]);
	if (st->s.dropped.foreign == foreign)
		krc_proof_heard(st);
	if (verdict != KRP_STREAM_DROPPED && st->inbox) {
		krc_stream_deliver(st, letter);
		letter = NULL;
	} else if (verdict != KRP_STREAM_DROPPED) {
		krc_stream_ignore(st, packet);
	}
	if (st->proof.reads_held)
		st->run.events |= KRC_EVENT_RESUME;
	krc_stream_pull(st);
	spin_unlock_bh(&st->lock);
	krc_letter_drop(letter);
	krc_stream_run(st);
}

/* ---- beginning and end */

static void krc_stream_reap(struct work_struct *work)
{
	struct krc_stream *st = container_of(work, struct krc_stream, run.reap);
	struct krc_messages *m = st->m;

	krc_flow_drain(&st->flow);
	krc_flow_release(&st->flow);
	WARN_ON(!list_empty(&st->out.waiting) || !list_empty(&st->out.sending) ||
		!list_empty(&st->out.ended) || !list_empty(&st->out.packets) ||
		!list_empty(&st->proof.unproven) || !list_empty(&st->in.larges) ||
		!list_empty(&st->in.larges_ended));
	krc_standing_put(st->proof.standing);
	krc_tx_share_put(m, st->share);
	kfree(st->in.ended);
	if (st->end.tombstone) /* none was dug */
		krc_tx_share_put(m, st->end.tombstone->share);
	kfree(st->end.tombstone);
	kfree(st->many);
	kfree(st->large);
	mem_cgroup_put(st->memcg);
	kmem_cache_free(krc_stream_cache, st);
	krc_messages_put(m);
}

static void krc_stream_release(struct kref *ref)
{
	struct krc_stream *st = container_of(ref, struct krc_stream, ref);

	/* the last done() may be what drops it, and the pool uses the flow until that returns */
	queue_work(krc_messages_wq, &st->run.reap);
}

void krc_stream_put(struct krc_stream *st)
{
	kref_put(&st->ref, krc_stream_release);
}

static void krc_stream_lists(struct krc_stream *st)
{
	INIT_LIST_HEAD(&st->in.letters);
	INIT_LIST_HEAD(&st->thirsty.at);
	INIT_LIST_HEAD(&st->offered);
	INIT_LIST_HEAD(&st->out.waiting);
	INIT_LIST_HEAD(&st->out.sending);
	INIT_LIST_HEAD(&st->out.ended);
	INIT_LIST_HEAD(&st->out.packets);
	INIT_LIST_HEAD(&st->proof.unproven);
	INIT_LIST_HEAD(&st->in.larges);
	INIT_LIST_HEAD(&st->in.larges_ended);
	INIT_HLIST_NODE(&st->hashed);
	INIT_DELAYED_WORK(&st->run.work, krc_stream_work);
	INIT_WORK(&st->run.reap, krc_stream_reap);
}

/* Take one more reference. Return: @memcg. 6.1 has no mem_cgroup_tryget(). */
static struct mem_cgroup *krc_stream_memcg(struct mem_cgroup *memcg)
{
#ifdef CONFIG_MEMCG
	if (memcg)
		css_get(&memcg->css);
#endif
	return memcg;
}

/* See krc_inbox_alloc(). Return: the memory, zeroed; or NULL. */
static struct krc_stream *krc_stream_alloc(struct mem_cgroup *memcg)
{
	struct mem_cgroup *old = set_active_memcg(memcg);
	struct krc_stream *st =
		kmem_cache_zalloc(krc_stream_cache, GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN);

	set_active_memcg(old);
	return st;
}

struct krc_stream *krc_stream_new(struct krc_messages *m, const u8 *gid,
				  const struct krp_value *value, struct mem_cgroup *memcg)
{
	struct krc_stream *st = krc_stream_alloc(memcg);
	struct krc_rail *rail = m->rail;
	int err = -ENOMEM;

	if (!st)
		return ERR_PTR(-ENOMEM);
	st->memcg = krc_stream_memcg(memcg);
	kref_init(&st->ref);
	spin_lock_init(&st->lock);
	krc_stream_lists(st);
	st->end.orphan_ns = KRP_STREAM_FOREVER_NS;
	st->run.armed_ns = KRP_STREAM_FOREVER_NS;
	st->checked = jiffies - msecs_to_jiffies(KRC_STREAM_CHECK_MS);
	memcpy(st->value_gid, gid, sizeof(st->value_gid));
	st->in.ended = kzalloc(sizeof(*st->in.ended), GFP_KERNEL);
	st->end.tombstone = kzalloc(sizeof(*st->end.tombstone), GFP_KERNEL);
	if (!st->in.ended || !st->end.tombstone)
		goto err_stream;
	st->in.ended->stream = st; /* counted when it is put in */
	st->in.ended->kind = KRC_LETTER_ENDED;
	INIT_LIST_HEAD(&st->in.ended->list);
	INIT_LIST_HEAD(&st->in.ended->mine);
	err = rail->ops->address(rail->hw, rail->num, rail->gid_index,
				 (const union ib_gid *)st->value_gid, value, &st->address);
	if (!err)
		err = krp_stream_init(&st->s, &m->conf, st->few, ARRAY_SIZE(st->few));
	if (err)
		goto err_stream;
	err = -ENOMEM;
	st->proof.standing = krc_standing_get(rail, &st->address,
					      le64_to_cpu(value->dct.mrdir_addr),
					      le32_to_cpu(value->dct.mrdir_rkey));
	if (!st->proof.standing)
		goto err_stream;
	kref_get(&m->ref);
	st->m = m;
	st->share = &m->share;
	krc_flow_init(&st->flow, m->pool, krc_stream_done, NULL);
	st->flow.kind = KRC_CHANNEL_MESSAGE;
	return st;

err_stream:
	kfree(st->end.tombstone);
	kfree(st->in.ended);
	mem_cgroup_put(st->memcg);
	kmem_cache_free(krc_stream_cache, st);
	return ERR_PTR(err);
}

int krc_stream_table(struct krc_stream *st, const struct krc_tx_share *share)
{
	struct krc_messages *m = st->m;
	u32 number;
	int err;

	/* not one that was free a moment ago: its last peer may still send to it, and wants a REFUSE */
	err = xa_alloc_cyclic_bh(&m->streams, &number, NULL, XA_LIMIT(1, KRC_MESSAGES_NUMBERS),
				 &m->next_number, GFP_KERNEL);
	if (err < 0)
		return err == -EBUSY ? -ENOSPC : err;
	err = 0;
	spin_lock_bh(&m->lock);
	if (m->stopped)
		err = -ENODEV;
	else if (m->streams_nr >= KRC_MESSAGES_STREAMS)
		err = -ENOSPC;
	else if (share && !krc_tx_share_room(m, share, false))
		err = -EDQUOT;
	if (!err) {
		m->streams_nr++;
		st->share->streams++;
		st->tabled = true;
		st->number = number;
		krc_stream_get(st);
		xa_store_bh(&m->streams, number, st, GFP_ATOMIC); /* reserved: does not allocate */
	}
	spin_unlock_bh(&m->lock);
	if (err)
		xa_erase_bh(&m->streams, number);
	return err;
}

void krc_stream_untable(struct krc_stream *st)
{
	struct krc_messages *m = st->m;
	bool tabled;

	spin_lock_bh(&m->lock);
	tabled = st->tabled;
	st->tabled = false;
	m->streams_nr -= tabled;
	st->share->streams -= tabled;
	if (!hlist_unhashed(&st->hashed))
		hash_del(&st->hashed);
	spin_unlock_bh(&m->lock);
	if (!tabled)
		return;
	xa_erase_bh(&m->streams, st->number);
	krc_stream_put(st);
}

struct krc_stream *krc_stream_find(struct krc_messages *m, u32 number)
{
	struct krc_stream *st;

	xa_lock_bh(&m->streams);
	st = xa_load(&m->streams, number);
	if (st)
		krc_stream_get(st);
	xa_unlock_bh(&m->streams);
	return st;
}
