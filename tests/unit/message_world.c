// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Nodes that talk by messages: see message_world.h.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/message_world.h"

enum mw_kind {
	MW_PACKET,
	MW_TIMER,
	MW_READ,
	MW_LOST,
	MW_STEP,
	MW_POST,
	MW_LOOK,
	MW_WORLD,
};

const char *mw_mutant;

void mw_break(struct mw_world *w, const char *what, uint64_t number)
{
	if (w->broken)
		return;
	snprintf(w->why, sizeof(w->why), "%s (%llu)", what, (unsigned long long)number);
	w->broken = w->why;
}

uint64_t mw_random(struct mw_world *w, uint64_t below)
{
	w->random += KRP_GOLDEN;
	return below ? krp_mix64(w->random) % below : 0;
}

bool mw_once_in(struct mw_world *w, uint32_t odds)
{
	return odds && !mw_random(w, odds);
}

/* events */

static struct mw_event *mw_event_new(struct mw_world *w, enum mw_kind kind, uint64_t at_ns)
{
	struct mw_event *ev = w->spare_nr ? w->spare[--w->spare_nr] : malloc(sizeof(*ev));

	if (!ev)
		abort();
	memset(ev, 0, sizeof(*ev));
	ev->kind = (uint8_t)kind;
	ev->at_ns = at_ns;
	return ev;
}

static void mw_event_free(struct mw_world *w, struct mw_event *ev)
{
	if (w->spare_nr < MW_SPARE)
		w->spare[w->spare_nr++] = ev;
	else
		free(ev);
}

/* Of two that are due at once, the older one goes first. */
static bool mw_before(const struct mw_event *a, const struct mw_event *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void mw_later(struct mw_world *w, struct mw_event *ev)
{
	uint32_t i = w->heap_nr++;

	ev->order = w->order++;
	if (w->heap_nr > w->heap_max) {
		w->heap_max = 2 * w->heap_nr;
		w->heap = realloc(w->heap, w->heap_max * sizeof(struct mw_event *));
		if (!w->heap)
			abort();
	}
	for (; i && mw_before(ev, w->heap[(i - 1) / 2]); i = (i - 1) / 2)
		w->heap[i] = w->heap[(i - 1) / 2];
	w->heap[i] = ev;
}

static struct mw_event *mw_first(struct mw_world *w)
{
	struct mw_event *first = w->heap[0], *last = w->heap[--w->heap_nr];
	uint32_t i = 0, kid;

	for (; (kid = 2 * i + 1) < w->heap_nr; i = kid) {
		if (kid + 1 < w->heap_nr && mw_before(w->heap[kid + 1], w->heap[kid]))
			kid++;
		if (!mw_before(w->heap[kid], last))
			break;
		w->heap[i] = w->heap[kid];
	}
	w->heap[i] = last;
	return first;
}

static void mw_step_at(struct mw_world *w, struct mw_end *e, uint64_t at_ns)
{
	struct mw_event *ev = mw_event_new(w, MW_STEP, at_ns);

	ev->end = (uint32_t)(e - w->end);
	ev->queue = e->queue;
	mw_later(w, ev);
}

/* the network */

static void mw_send(struct mw_world *w, struct mw_event *ev)
{
	const struct mw_plan *p = &w->plan;
	struct mw_event *twin;

	w->sent_packets++;
	w->packets[ev->packet.type]++;
	/* as a network does: in order, but for some */
	ev->at_ns = w->now_ns + 5 * MW_US + mw_random(w, 4) / 3 * MW_US * mw_random(w, p->delay_us);
	if (krp_message_check(&ev->packet, ev->bytes) != KRP_MESSAGE_OK)
		mw_break(w, "a packet is malformed", ev->packet.type);
	if (w->now_ns < p->deaf_ms * MW_MS &&
	    (ev->packet.type == KRP_MESSAGE_ACCEPT || ev->packet.type == KRP_MESSAGE_REFUSE)) {
		mw_event_free(w, ev);
		return;
	}
	if (mw_once_in(w, p->double_every)) {
		twin = mw_event_new(w, MW_PACKET, 0);
		*twin = *ev;
		twin->at_ns += MW_US * mw_random(w, 20ULL * p->delay_us);
		mw_later(w, twin);
	}
	if (mw_once_in(w, p->lose_every))
		mw_event_free(w, ev);
	else
		mw_later(w, ev);
}

static struct mw_event *mw_packet_new(struct mw_world *w, uint32_t from, uint32_t to)
{
	struct mw_event *ev = mw_event_new(w, MW_PACKET, 0);

	ev->from = from;
	ev->to = to;
	ev->bytes = sizeof(ev->packet);
	return ev;
}

/* messages */

static uint64_t mw_hash(const struct mw_world *w, uint32_t conn, uint32_t side, uint32_t number)
{
	(void)w;
	return krp_mix64((uint64_t)conn << 33 | (uint64_t)side << 32 | number);
}

static void mw_request(struct mw_world *w, uint32_t conn, uint32_t side, uint32_t number,
		       struct krp_stream_req *ret)
{
	uint64_t hash = mw_hash(w, conn, side, number);

	memset(ret, 0, sizeof(*ret));
	ret->cookie = number;
	ret->imm = number;
	ret->large = w->plan.large_every && number && !(hash % w->plan.large_every);
	ret->length = (uint32_t)(hash >> 32) % (hash & 0x700000 ? 200 : KRP_MESSAGE_DATA_MAX);
	if (!number)
		ret->length %= KRP_MESSAGE_FIRST_MAX;
	if (ret->large)
		ret->length += 5000;
	ret->addr = 0x7f0000000000ULL + ((uint64_t)number << 20);
	ret->rkey = number;
	ret->hurry = !(hash >> 8 & 7);
}

static struct mw_way *mw_out(struct mw_world *w, const struct mw_end *e)
{
	return &w->conn[e->conn].way[e->side];
}

static struct mw_way *mw_in(struct mw_world *w, const struct mw_end *e)
{
	return &w->conn[e->conn].way[!e->side];
}

struct mw_end *mw_peer(struct mw_world *w, const struct mw_end *e)
{
	uint32_t i;

	for (i = 0; i < w->ends; i++)
		if (w->end[i].used && w->end[i].conn == e->conn && w->end[i].side != e->side)
			return &w->end[i];
	return NULL;
}

/* A message is the program's, in its backlog. */
static void mw_deliver(struct mw_world *w, struct mw_end *e, uint32_t number, uint32_t length)
{
	struct mw_way *in = mw_in(w, e);
	struct krp_stream_req req;

	mw_request(w, e->conn, !e->side, number, &req);
	if (number != in->delivered || length != req.length || number >= in->handed)
		mw_break(w, "a message is out of order, lost, or came twice", number);
	in->delivered++;
}

/* programs */

static void mw_want(struct mw_world *w, struct mw_end *e, uint64_t seq, uint32_t number)
{
	unsigned int i = 0;

	while (i < KRP_MESSAGE_ANNOUNCED_MAX && e->want[i].state)
		i++;
	if (i == KRP_MESSAGE_ANNOUNCED_MAX) {
		mw_break(w, "too many announcements", number);
		return;
	}
	e->want[i].seq = seq;
	e->want[i].number = number;
	e->want[i].state = 1;
}

static void mw_fetch(struct mw_world *w, struct mw_end *e)
{
	struct mw_event *ev;
	unsigned int i;
	int err;

	for (i = 0; i < KRP_MESSAGE_ANNOUNCED_MAX; i++) {
		if (e->want[i].state != 1)
			continue;
		err = krp_stream_fetch(&e->s, w->now_ns, e->want[i].seq);
		if (err == -ENOENT)
			e->want[i].state = 0;
		if (err)
			continue;
		e->want[i].state = 2;
		ev = mw_event_new(w, MW_READ,
				  w->now_ns + MW_US * (1 + mw_random(w, 2ULL * w->plan.delay_us)));
		ev->end = (uint32_t)(e - w->end);
		ev->queue = e->queue;
		ev->want = i;
		ev->seq = e->want[i].number;
		mw_later(w, ev);
	}
}

static bool mw_reads(const struct mw_world *w, const struct mw_end *e)
{
	if (e->side && w->now_ns < w->plan.stop_ms * MW_MS)
		return false;
	return !w->plan.selfish || !krp_stream_holds(&e->s);
}

static void mw_consume(struct mw_world *w, struct mw_end *e)
{
	struct mw_way *in = mw_in(w, e);
	struct krp_stream_req req;

	if (e->s.state == KRP_STREAM_OFFERED)
		return;
	while (e->consumed < in->delivered && mw_reads(w, e)) {
		if (w->plan.slow_us && w->now_ns < e->read_ns)
			return;
		e->read_ns = w->now_ns + w->plan.slow_us * MW_US;
		mw_request(w, e->conn, !e->side, e->consumed++, &req);
		krp_stream_consumed(&e->s, 1,
				    krp_message_units(req.large ? KRP_MESSAGE_ANNOUNCE
								: KRP_MESSAGE_DATA,
						      req.length));
		w->node[e->node].pool++;
	}
}

/* Close, when there is nothing more to say and, unless the plan has it, to hear. */
static void mw_close(struct mw_world *w, struct mw_end *e)
{
	struct mw_way *out = mw_out(w, e), *in = mw_in(w, e);

	if (w->plan.stays || e->shut || out->handed < out->total ||
	    (w->plan.shut_first != e->side &&
	     (in->delivered < in->total || e->consumed < in->delivered)))
		return;
	if (!krp_stream_shut(&e->s, w->now_ns))
		e->shut = true;
}

static void mw_talk(struct mw_world *w, struct mw_end *e)
{
	struct mw_way *out = mw_out(w, e);
	struct krp_stream_req req;

	mw_consume(w, e);
	mw_fetch(w, e);
	while (out->handed < out->total) {
		mw_request(w, e->conn, e->side, out->handed, &req);
		mw_lend(w, e, req.large);
		if (krp_stream_send(&e->s, w->now_ns, &req))
			break;
		out->state[out->handed++] = MW_OUT;
		if (req.large && mw_once_in(w, w->plan.cancel_every))
			krp_stream_cancel(&e->s, w->now_ns, req.cookie);
	}
	mw_close(w, e);
}

/* nodes */

static uint64_t mw_pass(const struct mw_world *w, uint32_t to, uint32_t from)
{
	return krp_xxh64(w->node[from].gid, KRP_GID_BYTES,
			 w->node[to].secret ^ w->node[from].generation) |
	       1;
}

static void mw_node_begin(struct mw_world *w, uint32_t nr)
{
	struct mw_node *n = &w->node[nr];
	struct krp_value *v = &n->record;

	n->gid[0] = 0xfd;
	n->gid[14] = (uint8_t)(nr >> 8);
	n->gid[15] = (uint8_t)nr;
	n->generation++;
	n->secret = mw_random(w, UINT64_MAX);
	n->pool = w->plan.pool;
	memset(n->pass, 0, sizeof(n->pass));
	memset(n->tomb, 0, sizeof(n->tomb));
	memset(&n->lookups, 0, sizeof(n->lookups));
	n->lookups.seed = n->secret;
	n->lookups.max = MW_LOOK_UPS;
	memset(v, 0, sizeof(*v));
	v->generation = krp_cpu_to_le64(n->generation);
	v->kind = KRP_KIND_DCT;
	v->dct.dctn = krp_cpu_to_le32(nr + 0x100);
	v->dct.dc_key = krp_cpu_to_le64(mw_random(w, UINT64_MAX));
	v->dct.mtu = 5;
	v->dct.port = 1;
}

static struct mw_end *mw_end_new(struct mw_world *w, uint32_t node, uint32_t conn, uint32_t side)
{
	uint32_t i = 0;
	struct mw_end *e;

	while (i < w->ends && w->end[i].used)
		i++;
	if (i == MW_ENDS_MAX)
		abort();
	w->ends = i == w->ends ? i + 1 : w->ends;
	e = &w->end[i];
	memset(e, 0, sizeof(*e));
	e->used = true;
	e->node = node;
	e->queue = ++w->queue;
	e->conn = conn;
	e->side = side;
	e->timer_ns = UINT64_MAX;
	mw_lend_first(w, e);
	return e;
}

static void mw_end_free(struct mw_world *w, struct mw_end *e, const struct krp_stream_todo *todo)
{
	struct mw_way *in = mw_in(w, e);
	struct mw_node *n = &w->node[e->node];
	unsigned int i = 0;

	n->pool += in->delivered - e->consumed;
	e->used = false;
	if (!todo->until_ns)
		return;
	while (i < MW_TOMBS - 1 && n->tomb[i].until_ns > w->now_ns)
		i++;
	n->tomb[i].open = e->s.open;
	n->tomb[i].src = e->s.dst;
	n->tomb[i].until_ns = todo->until_ns;
	n->tomb[i].status = (uint32_t)todo->number;
}

static void mw_ended(struct mw_world *w, struct mw_end *e, const struct krp_stream_todo *todo)
{
	struct mw_way *out = mw_out(w, e);
	struct krp_stream_req req;

	if (todo->cookie >= out->total || out->state[todo->cookie] != MW_OUT) {
		mw_break(w, "a message ended that was not under way", todo->cookie);
		return;
	}
	mw_request(w, e->conn, e->side, (uint32_t)todo->cookie, &req);
	if (req.large != (todo->what == KRP_STREAM_RELEASE))
		mw_break(w, "a message ended as one of another kind", todo->cookie);
	out->state[todo->cookie] = MW_ENDED;
	out->ended++;
	out->failed += todo->err && todo->err != -ECANCELED;
	if (!todo->err && todo->cookie >= out->delivered)
		mw_break(w, "a message has ended well and was not delivered", todo->cookie);
	if (todo->err && !w->conn[e->conn].unlucky && todo->err != -ECANCELED)
		mw_break(w, "a message failed for no reason", todo->cookie);
}

static void mw_withdrawn(struct mw_world *w, struct mw_end *e, uint64_t seq)
{
	unsigned int i;

	for (i = 0; i < KRP_MESSAGE_ANNOUNCED_MAX; i++) {
		if (!e->want[i].state || e->want[i].seq != seq)
			continue;
		if (e->want[i].state == 2)
			mw_break(w, "withdrawn while it is READ", seq);
		e->want[i].state = 0;
	}
}

/* Post a packet that was pulled, now or later. */
static void mw_post(struct mw_world *w, struct mw_end *e, struct mw_event *ev)
{
	if (!mw_once_in(w, w->plan.stall_every)) {
		mw_send(w, ev);
		return;
	}
	krp_stream_post_begin(&e->s, &ev->packet);
	ev->kind = MW_POST;
	ev->at_ns = w->now_ns + mw_random(w, w->plan.stall_ms * MW_MS);
	mw_later(w, ev);
}

/* Its time has come. @e: NULL: its end has gone meanwhile. */
static void mw_posted(struct mw_world *w, struct mw_end *e, const struct mw_event *posted)
{
	struct mw_event *ev = mw_event_new(w, MW_PACKET, 0);

	*ev = *posted;
	ev->kind = MW_PACKET;
	mw_send(w, ev);
	if (!e)
		return;
	krp_stream_post_end(&e->s, w->now_ns, &posted->packet);
	mw_pull(w, e);
}

/* Return: false: the end is not there any more. */
static bool mw_do(struct mw_world *w, struct mw_end *e, const struct krp_stream_todo *todo)
{
	uint32_t peer = w->conn[e->conn].node[!e->side];
	struct mw_event *ev;

	switch (todo->what) {
	case KRP_STREAM_SEND:
		ev = mw_packet_new(w, e->node, peer);
		ev->packet = todo->packet;
		memcpy(&ev->body, &todo->body, todo->bytes - sizeof(todo->packet));
		ev->bytes = todo->bytes + todo->payload;
		ev->end = (uint32_t)(e - w->end);
		ev->queue = e->queue;
		mw_post(w, e, ev);
		return true;
	case KRP_STREAM_PASS:
		w->node[e->node].pass[peer] = todo->number;
		w->node[e->node].pass_generation[peer] = e->s.peer_generation;
		return true;
	case KRP_STREAM_COMPLETE:
	case KRP_STREAM_RELEASE:
		mw_ended(w, e, todo);
		return true;
	case KRP_STREAM_WITHDRAWN:
		mw_withdrawn(w, e, todo->number);
		return true;
	case KRP_STREAM_DIED:
		if (!w->conn[e->conn].unlucky)
			mw_break(w, "a connection died for no reason", (uint64_t)-todo->err);
		return true;
	case KRP_STREAM_FORGET:
		mw_end_free(w, e, todo);
		return false;
	default:
		return true;
	}
}

static bool mw_drain(struct mw_world *w, struct mw_end *e)
{
	struct krp_stream_todo todo;
	struct mw_event *ev;
	unsigned int nr = 0;

	while (krp_stream_next(&e->s, w->now_ns, &todo) != KRP_STREAM_WAIT) {
		if (!mw_do(w, e, &todo))
			return false;
		if (++nr > 1000) {
			mw_break(w, "there is no end to what is to be done", todo.what);
			return false;
		}
	}
	if (krp_stream_wrong(&e->s))
		mw_break(w, krp_stream_wrong(&e->s), e->conn);
	mw_take_back(w, e);
	if (todo.until_ns == e->timer_ns || todo.until_ns == KRP_STREAM_FOREVER_NS)
		return true;
	if (todo.until_ns <= w->now_ns)
		mw_break(w, "the alarm is in the past", e->s.state);
	e->timer_ns = todo.until_ns;
	ev = mw_event_new(w, MW_TIMER, todo.until_ns);
	ev->end = (uint32_t)(e - w->end);
	ev->queue = e->queue;
	mw_later(w, ev);
	return true;
}

static void mw_blow(struct mw_world *w, struct mw_end *e)
{
	const struct mw_plan *p = &w->plan;

	if (e->blown || e->conn || p->blow == MW_NOTHING || e->side != p->blow_side ||
	    e->s.state != p->blow_state || e->packets < p->blow_after)
		return;
	e->blown = true;
	if (p->blow == MW_RESET)
		mw_reset(w, e->node);
	else if (p->blow == MW_KILL)
		mw_kill(w, e);
	else
		mw_reboot(w, e->node);
}

void mw_pull(struct mw_world *w, struct mw_end *e)
{
	if (!e->used || !mw_drain(w, e))
		return;
	mw_talk(w, e);
	if (mw_drain(w, e))
		mw_blow(w, e);
}

void mw_kill(struct mw_world *w, struct mw_end *e)
{
	w->conn[e->conn].unlucky = true;
	krp_stream_abort(&e->s, w->now_ns, KRP_REFUSE_ABORT);
	mw_drain(w, e);
}

void mw_reset(struct mw_world *w, uint32_t node)
{
	uint32_t i;

	for (i = 0; i < w->heap_nr; i++)
		if (w->heap[i]->kind == MW_PACKET && w->heap[i]->from == node)
			w->heap[i]->lost |= mw_random(w, 2);
	for (i = 0; i < w->ends; i++)
		if (w->end[i].used && w->end[i].node == node) {
			krp_stream_replay(&w->end[i].s);
			mw_drain(w, &w->end[i]);
		}
}

/* All of a node is lost; its peers hear of it, sooner or later. */
void mw_reboot(struct mw_world *w, uint32_t node)
{
	struct mw_event *ev;
	uint32_t i, j;

	mw_node_begin(w, node);
	for (i = 0; i < w->ends; i++) {
		struct mw_end *e = &w->end[i];
		struct mw_way *out = mw_out(w, e);

		if (!e->used || e->node != node)
			continue;
		w->conn[e->conn].unlucky = true;
		for (j = 0; j < out->handed; j++) {
			out->ended += out->state[j] == MW_OUT;
			out->state[j] = MW_GONE;
		}
		e->used = false;
	}
	for (i = 0; i < MW_CONNS_MAX; i++) {
		if (i >= w->conns || (w->conn[i].node[0] != node && w->conn[i].node[1] != node))
			continue;
		w->conn[i].unlucky = true;
		ev = mw_event_new(w, MW_LOST, w->now_ns + mw_random(w, 300 * MW_MS));
		ev->to = i;
		ev->from = node;
		mw_later(w, ev);
	}
}

/* what comes */

static struct mw_end *mw_same(struct mw_world *w, uint32_t node, const struct krp_message *m)
{
	uint32_t i;

	for (i = 0; i < w->ends; i++)
		if (w->end[i].used && w->end[i].node == node && krp_listen_same(&w->end[i].s, m))
			return &w->end[i];
	return NULL;
}

static const struct mw_tomb *mw_buried(const struct mw_world *w, uint32_t node,
				       const struct krp_message *m,
				       const struct krp_message_open *open)
{
	const struct mw_tomb *t = w->node[node].tomb;
	unsigned int i;

	for (i = 0; i < MW_TOMBS; i++)
		if (t[i].until_ns > w->now_ns && t[i].src == krp_le32_to_cpu(m->src) &&
		    t[i].open.tag == open->tag && !memcmp(t[i].open.gid, open->gid, KRP_GID_BYTES))
			return &t[i];
	return NULL;
}

/* OPENs that wait for the program of a node, of @from or of all. */
static uint32_t mw_waiting(const struct mw_world *w, uint32_t node, uint32_t from)
{
	uint32_t i, nr = 0;

	for (i = 0; i < w->ends; i++)
		nr += w->end[i].used && w->end[i].node == node &&
		      w->end[i].s.state == KRP_STREAM_OFFERED &&
		      (from == MW_NODES_MAX || w->conn[w->end[i].conn].node[0] == from);
	return nr;
}

static void mw_offer(struct mw_world *w, const struct mw_event *ev)
{
	const struct krp_message *m = &ev->packet;
	struct mw_end *e;
	uint32_t conn;

	memcpy(&conn, ev->body.open.user, sizeof(conn));
	e = mw_end_new(w, ev->to, conn, 1);
	w->offers++;
	krp_stream_offer(&e->s, w->now_ns, ev->at_ns, m, e->queue, mw_random(w, UINT64_MAX) | 1);
	e->consumed = w->conn[conn].way[0].delivered;
	e->first_length = krp_le32_to_cpu(m->length);
	mw_step_at(w, e, w->now_ns + w->decide_ns + MW_US * mw_random(w, 4ULL * w->plan.delay_us));
	mw_pull(w, e);
}

/* Have a record looked up, if that may be. */
static void mw_look_up(struct mw_world *w, const struct mw_event *open)
{
	struct mw_event *ev;

	if (!krp_listen_look_begin(&w->node[open->to].lookups, open->body.open.gid, 0))
		return;
	ev = mw_event_new(w, MW_LOOK, 0);
	*ev = *open;
	ev->kind = MW_LOOK;
	ev->at_ns = w->now_ns + w->plan.look_us * MW_US;
	w->look_ups++;
	mw_later(w, ev);
}

static void mw_open_came(struct mw_world *w, const struct mw_event *ev)
{
	const struct krp_message_open *open = &ev->body.open;
	uint32_t from = (uint32_t)open->gid[14] << 8 | open->gid[15], status = 0;
	struct mw_node *n = &w->node[ev->to];
	struct krp_listen_facts facts = { .pass = mw_pass(w, ev->to, from),
					  .generation = n->generation,
					  .service = 1 };
	const struct mw_tomb *tomb = mw_buried(w, ev->to, &ev->packet, open);
	struct mw_end *e = mw_same(w, ev->to, &ev->packet);
	enum krp_listen_verdict verdict;
	struct mw_event *answer;

	if (e) {
		krp_stream_again(&e->s, w->now_ns);
		mw_pull(w, e);
		return;
	}
	facts.buried = !!tomb;
	facts.status = tomb ? tomb->status : 0;
	facts.room = !w->plan.no_room &&
		     krp_listen_room(MW_BACKLOG, mw_waiting(w, ev->to, MW_NODES_MAX),
				     mw_waiting(w, ev->to, from));
	facts.fresh = ev->kind == MW_LOOK || krp_listen_fresh(&n->lookups, w->now_ns, open->gid);
	facts.record = facts.fresh ? &w->node[from].record : NULL;
	verdict = krp_listen_judge(&ev->packet, &facts, &status);
	if (verdict == KRP_LISTEN_LOOK_UP && w->plan.look_us)
		mw_look_up(w, ev);
	if (verdict == KRP_LISTEN_LOOK_UP && !w->plan.look_us) {
		facts.record = &w->node[from].record;
		facts.fresh = 1;
		verdict = krp_listen_judge(&ev->packet, &facts, &status);
	}
	if (verdict == KRP_LISTEN_OFFER && n->pool)
		mw_offer(w, ev);
	if (verdict != KRP_LISTEN_CHALLENGE && verdict != KRP_LISTEN_REFUSE)
		return;
	answer = mw_packet_new(w, ev->to, from);
	if (verdict == KRP_LISTEN_CHALLENGE) {
		w->challenges++;
		answer->bytes += (uint32_t)sizeof(answer->body.challenge);
		krp_listen_challenge(&ev->packet, facts.pass, n->generation, &answer->packet,
				     &answer->body.challenge);
	} else {
		w->conn[open->user[0] | open->user[1] << 8].unlucky = true;
		krp_listen_refuse(&ev->packet, status, n->generation, &answer->packet);
	}
	mw_send(w, answer);
}

void mw_arrive(struct mw_world *w, const struct mw_event *ev)
{
	struct mw_node *n = &w->node[ev->to];
	struct mw_event *answer;
	struct mw_end *e = NULL;
	bool room = n->pool > 0;
	uint32_t i, repeats;

	if (ev->packet.type == KRP_MESSAGE_OPEN) {
		mw_open_came(w, ev);
		return;
	}
	for (i = 0; !e && i < w->ends; i++)
		if (w->end[i].used && w->end[i].node == ev->to &&
		    w->end[i].queue == krp_le32_to_cpu(ev->packet.dst))
			e = &w->end[i];
	if (!e) {
		answer = mw_packet_new(w, ev->to, ev->from);
		if (krp_listen_unknown(&ev->packet, n->generation, &answer->packet))
			mw_send(w, answer);
		else
			mw_event_free(w, answer);
		return;
	}
	e->packets++;
	repeats = e->s.dropped.repeats;
	mw_lend(w, e, ev->packet.type == KRP_MESSAGE_ANNOUNCE && !mw_once_in(w, 8));
	switch (krp_stream_received(&e->s, w->now_ns, ev->at_ns, &ev->packet, room)) {
	case KRP_STREAM_ANNOUNCED:
		mw_want(w, e, krp_le64_to_cpu(ev->packet.seq), krp_le32_to_cpu(ev->packet.imm));
		mw_deliver(w, e, krp_le32_to_cpu(ev->packet.imm),
			   krp_le32_to_cpu(ev->packet.length));
		n->pool--;
		break;
	case KRP_STREAM_MESSAGE:
		mw_deliver(w, e, krp_le32_to_cpu(ev->packet.imm),
			   krp_le32_to_cpu(ev->packet.length));
		n->pool--;
		break;
	default:
		break;
	}
	w->busy += e->s.owe.busy;
	w->repeats += e->s.dropped.repeats - repeats;
	mw_pull(w, e);
}

/* The READ of a large message reaches the memory of its sender. */
static void mw_read(struct mw_world *w, const struct mw_event *ev, struct mw_end *e)
{
	struct mw_want *want = &e->want[ev->want];
	uint8_t state = mw_in(w, e)->state[ev->seq];

	w->reads++;
	if (state == MW_ENDED)
		mw_break(w, "a READ of memory that was given back", ev->seq);
	krp_stream_fetched(&e->s, want->seq, state == MW_GONE ? KRP_REFUSE_FAULT : 0);
	want->state = 0;
	mw_pull(w, e);
}

static void mw_lost(struct mw_world *w, const struct mw_event *ev)
{
	uint32_t i;

	for (i = 0; i < w->ends; i++) {
		struct mw_end *e = &w->end[i];

		if (!e->used || e->conn != ev->to || e->node == ev->from)
			continue;
		krp_stream_lost(&e->s, w->now_ns, -ECONNRESET, w->node[ev->from].generation);
		mw_pull(w, e);
	}
}

/* A program's turn: it accepts, or reads on. */
static void mw_step(struct mw_world *w, struct mw_end *e)
{
	struct mw_conn *c = &w->conn[e->conn];

	if (e->s.state == KRP_STREAM_OFFERED && w->plan.refuse) {
		c->unlucky = true;
		krp_stream_abort(&e->s, w->now_ns, KRP_REFUSE_PROGRAM);
	} else if (e->s.state == KRP_STREAM_OFFERED) {
		c->accepted++;
		krp_stream_accept(&e->s, "hello", 5);
		if (e->s.rx.msgs) {
			w->node[e->node].pool--;
			mw_deliver(w, e, 0, e->first_length);
		}
	}
	if (w->plan.budget_us)
		krp_stream_budget(&e->s, (uint32_t)mw_random(w, w->plan.window + 2),
				  (uint32_t)mw_random(w, 1000));
	mw_pull(w, e);
	if (!e->used || (!w->plan.slow_us && !w->plan.stop_ms && !w->plan.budget_us))
		return;
	if (mw_in(w, e)->delivered < mw_in(w, e)->total || e->consumed < mw_in(w, e)->delivered)
		mw_step_at(w, e,
			   w->now_ns + MW_US * (w->plan.slow_us	    ? w->plan.slow_us
						: w->plan.budget_us ? w->plan.budget_us
								    : 1000));
}

static void mw_world_event(struct mw_world *w)
{
	struct mw_event *ev;
	uint32_t i, used = 0;

	for (i = 0; i < w->ends; i++)
		used += w->end[i].used;
	if (!used)
		return;
	mw_reset(w, (uint32_t)mw_random(w, w->nodes));
	ev = mw_event_new(w, MW_WORLD, w->now_ns + 1 + mw_random(w, 2 * MW_US * w->plan.reset_us));
	mw_later(w, ev);
}

static void mw_happen(struct mw_world *w, struct mw_event *ev)
{
	struct mw_end *e = &w->end[ev->end];
	bool same = e->used && e->queue == ev->queue;

	switch (ev->kind) {
	case MW_PACKET:
		if (!ev->lost)
			mw_arrive(w, ev);
		break;
	case MW_TIMER:
		if (!same)
			break;
		if (e->timer_ns == ev->at_ns)
			e->timer_ns = UINT64_MAX;
		mw_pull(w, e);
		break;
	case MW_READ:
		if (same)
			mw_read(w, ev, e);
		break;
	case MW_LOST:
		mw_lost(w, ev);
		break;
	case MW_POST:
		mw_posted(w, same ? e : NULL, ev);
		break;
	case MW_LOOK:
		krp_listen_look_end(&w->node[ev->to].lookups, w->now_ns, ev->body.open.gid, 0);
		mw_open_came(w, ev);
		break;
	case MW_STEP:
		if (same)
			mw_step(w, e);
		break;
	default:
		mw_world_event(w);
		break;
	}
}

void mw_run(struct mw_world *w, uint64_t until_ns)
{
	struct mw_event *ev;

	while (!w->broken && w->heap_nr && w->heap[0]->at_ns <= until_ns) {
		ev = mw_first(w);
		w->now_ns = ev->at_ns;
		w->events++;
		mw_happen(w, ev);
		mw_event_free(w, ev);
	}
	if (w->now_ns < until_ns && until_ns != UINT64_MAX)
		w->now_ns = until_ns;
}

const char *mw_judge(struct mw_world *w)
{
	uint32_t i;

	for (i = 0; i < w->ends; i++)
		if (w->end[i].used)
			mw_break(w, "a connection does not end", w->end[i].s.state);
	for (i = 0; i < 2 * w->conns; i++) {
		struct mw_conn *c = &w->conn[i / 2];
		struct mw_way *way = &c->way[i % 2];

		if (way->ended != way->handed)
			mw_break(w, "messages have no end", way->handed - way->ended);
		if (!c->unlucky && way->delivered != way->total)
			mw_break(w, "messages are missing", way->total - way->delivered);
		if (c->accepted > 1)
			mw_break(w, "a connection was accepted twice", i);
	}
	return w->broken;
}

/* Where half of all is lost, ten questions without an answer prove nothing. */
static uint64_t mw_silence(const struct mw_plan *p)
{
	return (p->lose_every && p->lose_every < 5 ? 20000 : 2000) * MW_MS;
}

struct mw_world *mw_new(const struct mw_plan *plan, uint32_t nodes, uint64_t seed)
{
	struct mw_world *w = calloc(1, sizeof(*w));
	uint32_t i;

	if (!w)
		abort();
	w->plan = *plan;
	w->random = seed * 1000003;
	w->nodes = nodes;
	w->now_ns = 1000 * MW_MS;
	w->conf = (struct krp_stream_conf){ .retry_ns = 2 * MW_MS,
					    .retry_max_ns = 200 * MW_MS,
					    .ack_ns = MW_MS,
					    .silence_ns = mw_silence(plan),
					    .idle_ns = plan->idle_ms * MW_MS,
					    .linger_ns = 2000 * MW_MS,
					    .msgs = plan->window,
					    .units = 8 * KRP_MESSAGE_UNITS_MAX,
					    .lease_ms = 200,
					    .margin_ms = 300 };
	w->plan.stop_ms += plan->stop_ms ? 1000 : 0;
	w->plan.deaf_ms += plan->deaf_ms ? 1000 : 0;
	for (i = 0; i < nodes; i++)
		mw_node_begin(w, i);
	if (plan->reset_us)
		mw_later(w, mw_event_new(w, MW_WORLD, w->now_ns + MW_US * plan->reset_us));
	return w;
}

void mw_free(struct mw_world *w)
{
	uint32_t i;

	for (i = 0; i < w->heap_nr; i++)
		free(w->heap[i]);
	for (i = 0; i < w->spare_nr; i++)
		free(w->spare[i]);
	for (i = 0; i < w->conns; i++) {
		free(w->conn[i].way[0].state);
		free(w->conn[i].way[1].state);
	}
	free(w->heap);
	free(w);
}

struct mw_end *mw_open(struct mw_world *w, uint32_t from, uint32_t to)
{
	uint32_t nr = w->conns++, side;
	struct mw_conn *c = &w->conn[nr];
	struct mw_node *n = &w->node[from];
	struct krp_message_open open = { .value = n->record, .user_len = sizeof(nr) };
	struct krp_stream_req req;
	struct mw_end *e = mw_end_new(w, from, nr, 0);
	bool first = w->plan.first && w->plan.messages;

	for (side = 0; side < 2; side++) {
		c->way[side].total = w->plan.messages;
		c->way[side].state = calloc(1, w->plan.messages + 1ULL);
		if (!c->way[side].state)
			abort();
	}
	c->node[0] = from;
	c->node[1] = to;
	memcpy(open.gid, n->gid, sizeof(open.gid));
	memcpy(open.user, &nr, sizeof(nr));
	open.tag = krp_cpu_to_le64(mw_random(w, UINT64_MAX) | 1);
	open.peer_generation = krp_cpu_to_le64(w->node[to].generation);
	if (n->pass_generation[to] == w->node[to].generation)
		open.pass = krp_cpu_to_le64(n->pass[to]);
	mw_request(w, nr, 0, 0, &req);
	if (krp_stream_connect(&e->s, w->now_ns, e->queue, MW_SERVICE, &open, first ? &req : NULL))
		abort();
	if (first)
		c->way[0].state[c->way[0].handed++] = MW_OUT;
	if (w->plan.slow_us || w->plan.budget_us)
		mw_step_at(w, e, w->now_ns + 1);
	mw_pull(w, e);
	return e;
}
