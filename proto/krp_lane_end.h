/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * What one end of a lane is told, and what it says is to be done. Normative together with
 * krp_lane_state.h, whose head explains it.
 */
#ifndef KRP_LANE_END_H
#define KRP_LANE_END_H

#include "krp_lane_state.h"

/**
 * krp_lane_init() - Begin.
 * @l: lane.
 * @conf: how it behaves; stays.
 * @ports: what it is between.
 * @own: queue pair of this end, in INIT; its psn is random, its mtu and max_rd_atomic are those of
 *	@ports.
 *
 * Context: any.
 * Return: 0; %-EINVAL: a value of @conf, @ports or @own is out of its range.
 */
static inline int krp_lane_init(struct krp_lane *l, const struct krp_lane_conf *conf,
				const struct krp_lane_ports *ports, const struct krp_lane_end *own)
{
	if (!conf->retry_ns || conf->retry_max_ns < conf->retry_ns || !conf->tries ||
	    conf->retry_max_ns > KRP_LANE_PAUSE_MAX_NS || conf->tries > KRP_LANE_TRIES_MAX ||
	    !conf->drain_ns || conf->drain_ns > KRP_LANE_PAUSE_MAX_NS ||
	    conf->rest_ns < KRP_LANE_REST_MS * KRP_LANE_NS_PER_MS ||
	    conf->rest_ns > KRP_LANE_PAUSE_MAX_NS)
		return -EINVAL;
	if (!ports->generation || !ports->peer_generation || ports->index >= KRP_LANE_INDEXES ||
	    ports->mtu < 1 || ports->mtu > 5 || !ports->max_rd_atomic ||
	    !memcmp(ports->gid, ports->peer_gid, KRP_GID_BYTES) ||
	    krp_is_zero(ports->gid, KRP_GID_BYTES) || krp_is_zero(ports->peer_gid, KRP_GID_BYTES))
		return -EINVAL;
	if (own->qpn < 2 || own->qpn > 0xfffffe || own->psn >> 24)
		return -EINVAL;
	memset(l, 0, sizeof(*l));
	l->conf = conf;
	l->ports = *ports;
	l->own = *own;
	l->own.mtu = ports->mtu;
	l->own.max_rd_atomic = ports->max_rd_atomic;
	l->retry_at_ns = KRP_LANE_FOREVER_NS;
	return 0;
}

/**
 * krp_lane_request() - Request the lane.
 * @l: lane, NEW.
 * @now_ns: the clock.
 * @number: krp_lane_packet.lane, never used before by this node in this generation.
 * @nonce: random, not zero.
 * @value: record of this node: of a port that makes lanes.
 *
 * Context: any.
 * Return: 0; %-EINVAL: this cannot be.
 */
static inline int krp_lane_request(struct krp_lane *l, __u64 now_ns, __u64 number, __u64 nonce,
				   const struct krp_value *value)
{
	if (l->state != KRP_LANE_NEW || !number || !nonce || !krp_value_valid(value) ||
	    !krp_kind_port(value->kind) || !value->dct.ud_qpn ||
	    krp_le64_to_cpu(value->generation) != l->ports.generation)
		return -EINVAL;
	krp_lane_enter(l, KRP_LANE_ASKING);
	l->requester = 1;
	l->number = number;
	l->nonce = nonce;
	l->value = *value;
	krp_lane_say(l, now_ns);
	return 0;
}

/**
 * krp_lane_accept() - Accept a REQUEST that krp_lanes_judge() lets pass.
 * @l: lane of the ports and the index of @p: NEW, or ASKING, whose REQUEST is given up.
 * @p: REQUEST, checked.
 * @spent: largest number that this node has given, 0: none.
 *
 * Context: any.
 * Return: 0; %-EINVAL: this cannot be.
 */
static inline int krp_lane_accept(struct krp_lane *l, const struct krp_lane_packet *p, __u64 spent)
{
	if (l->state != KRP_LANE_NEW && l->state != KRP_LANE_ASKING)
		return -EINVAL;
	l->spent = KRP_MUTANT("spent is not said") ? 0 : spent;
	krp_lane_enter(l, KRP_LANE_CONNECTING);
	krp_lane_hush(l);
	l->requester = 0;
	l->number = krp_le64_to_cpu(p->lane);
	l->nonce = krp_le64_to_cpu(p->nonce);
	l->stamp = 0;
	l->proof = 0;
	krp_lane_meet(l, p);
	l->owe_accept = 1;
	return 0;
}

/** krp_lane_up() - Both ends are connected. @l: lane, CONNECTING or LISTENING. Context: any. */
static inline void krp_lane_up(struct krp_lane *l)
{
	krp_lane_enter(l, KRP_LANE_UP);
	l->do_post = 1;
	if (l->heard)
		krp_lane_hush(l);
}

/**
 * krp_lane_connected() - The queue pair is in RTS, or does not get there.
 * @l: lane.
 * @now_ns: the clock.
 * @err: 0, or a negative errno.
 *
 * Context: any.
 */
static inline void krp_lane_connected(struct krp_lane *l, __u64 now_ns, int err)
{
	if (l->state != KRP_LANE_CONNECTING || l->do_connect)
		return;
	if (err) {
		if (krp_lane_end_now(l, err))
			l->owe_close = 1;
		return;
	}
	l->connected = 1;
	krp_lane_say(l, now_ns);
	if (!l->peer_ready && !KRP_MUTANT("posts before READY")) {
		krp_lane_enter(l, KRP_LANE_LISTENING);
		return;
	}
	l->peer_ready = 1;
	krp_lane_up(l);
}

/**
 * krp_lane_close() - The lane is not wanted any more.
 * @l: lane.
 * @now_ns: the clock.
 *
 * Context: any.
 * Return: 1; 0: it is ending already, or has not begun.
 */
static inline int krp_lane_close(struct krp_lane *l, __u64 now_ns)
{
	if (l->state == KRP_LANE_ASKING) {
		krp_lane_enter(l, KRP_LANE_ENDING);
		krp_lane_say(l, now_ns);
		return 1;
	}
	if (l->state < KRP_LANE_CONNECTING || l->state > KRP_LANE_UP)
		return 0;
	krp_lane_drain(l, now_ns);
	return 1;
}

/**
 * krp_lane_drained() - Nothing is outstanding on the lane.
 * @l: lane.
 * @now_ns: the clock.
 *
 * Context: any.
 */
static inline void krp_lane_drained(struct krp_lane *l, __u64 now_ns)
{
	if (l->state != KRP_LANE_DRAINING || l->do_stop)
		return;
	if (l->peer_closes) {
		l->owe_closed = 1;
		krp_lane_end_now(l, 0);
		return;
	}
	krp_lane_enter(l, KRP_LANE_ENDING);
	krp_lane_say(l, now_ns);
}

/**
 * krp_lane_failed() - The lane is of no use any more.
 * @l: lane.
 * @err: why, a negative errno; %-ECONNRESET: the peer has another generation, or has lost its end.
 *
 * Context: any.
 */
static inline void krp_lane_failed(struct krp_lane *l, int err)
{
	if (krp_lane_end_now(l, err))
		l->owe_close = err != -ECONNRESET;
}

/**
 * krp_lane_reset() - The queue pair is in RESET.
 * @l: lane.
 * @now_ns: the clock.
 *
 * Context: any.
 */
static inline void krp_lane_reset(struct krp_lane *l, __u64 now_ns)
{
	if (l->do_reset || !krp_lane_enter(l, KRP_LANE_RESTING))
		return;
	l->connected = 0;
	l->until_ns = now_ns + (KRP_MUTANT("numbers do not rest") ? 0 : l->conf->rest_ns);
}

/** krp_lane_is() - Whether a packet is of a lane, from its other end. @l: lane. @p: packet,
 * checked. Context: any. Return: 1 or 0.
 */
static inline int krp_lane_is(const struct krp_lane *l, const struct krp_lane_packet *p)
{
	return l->number == krp_le64_to_cpu(p->lane) && l->nonce == krp_le64_to_cpu(p->nonce) &&
	       l->number && p->index == l->ports.index &&
	       (p->flags & KRP_LANE_REQUESTER) == (l->requester ? 0 : KRP_LANE_REQUESTER) &&
	       krp_le64_to_cpu(p->peer_generation) == l->ports.generation &&
	       !memcmp(p->gid, l->ports.peer_gid, KRP_GID_BYTES) &&
	       !memcmp(p->peer_gid, l->ports.gid, KRP_GID_BYTES);
}

/** krp_lane_answered() - What an accepter says, to an end that is ASKING. @l: lane. @now_ns: the
 * clock. @p: packet of it. Context: any.
 */
static inline void krp_lane_answered(struct krp_lane *l, __u64 now_ns,
				     const struct krp_lane_packet *p)
{
	__u64 stamp = krp_le64_to_cpu(p->stamp);

	switch (p->type) {
	case KRP_LANE_ACCEPT:
		if (p->mtu > l->own.mtu) {
			krp_lane_failed(l, -EPROTO);
			break;
		}
		krp_lane_enter(l, KRP_LANE_CONNECTING);
		krp_lane_hush(l);
		krp_lane_meet(l, p);
		break;
	case KRP_LANE_CHALLENGE:
		if (stamp <= l->stamp || l->passes == KRP_LANE_PASSES_MAX)
			break;
		l->passes++;
		l->stamp = stamp;
		l->proof = krp_le64_to_cpu(p->proof);
		l->retry_at_ns = l->tries < l->conf->tries ? now_ns : l->retry_at_ns;
		break;
	case KRP_LANE_REFUSE:
		krp_lane_end_now(l, krp_lane_errno(krp_le32_to_cpu(p->status)));
		break;
	case KRP_LANE_CLOSE:
		krp_lane_end_now(l, -ECONNRESET);
		l->owe_closed = 1;
		break;
	default:
		break;
	}
}

/** krp_lane_peer_ready() - READY has come. @l: lane, not ASKING. Context: any. */
static inline void krp_lane_peer_ready(struct krp_lane *l)
{
	if (l->state >= KRP_LANE_RESETTING) {
		l->owe_close = 1; /* it has missed the end */
		return;
	}
	if (l->state > KRP_LANE_UP)
		return;
	l->owe_heard = 1;
	l->owe_accept = 0; /* that has come there */
	if (l->peer_ready)
		l->repeats++;
	l->peer_ready = 1;
	if (l->state == KRP_LANE_LISTENING)
		krp_lane_up(l);
}

/** krp_lane_peer_closes() - CLOSE has come. @l: lane, not ASKING. @now_ns: the clock.
 * Context: any.
 */
static inline void krp_lane_peer_closes(struct krp_lane *l, __u64 now_ns)
{
	l->repeats += l->peer_closes;
	l->peer_closes = 1;
	if (l->state >= KRP_LANE_ENDING)
		l->owe_closed = 1; /* both have nothing outstanding */
	if (l->state == KRP_LANE_ENDING)
		krp_lane_end_now(l, 0);
	else if (KRP_MUTANT("closed before drained") && l->state == KRP_LANE_UP)
		l->owe_closed = (__u8)krp_lane_end_now(l, 0);
	else if (l->state < KRP_LANE_DRAINING)
		krp_lane_drain(l, now_ns);
}

/**
 * krp_lane_received() - A packet has come.
 * @l: lane.
 * @now_ns: the clock.
 * @p: packet, checked, and proved if there are keys.
 *
 * Context: any.
 * Return: 1; 0: it is not of this lane, and was dropped.
 */
static inline int krp_lane_received(struct krp_lane *l, __u64 now_ns,
				    const struct krp_lane_packet *p)
{
	__u64 generation = krp_le64_to_cpu(p->generation);
	int stale = p->type == KRP_LANE_REFUSE && krp_le32_to_cpu(p->status) == KRP_LANE_STALE;

	if (!krp_lane_is(l, p) || stale != (generation != l->ports.peer_generation)) {
		l->foreign++;
		return 0;
	}
	if (l->state == KRP_LANE_ASKING) {
		l->other_generation = stale ? generation : 0;
		krp_lane_answered(l, now_ns, p);
		return 1;
	}
	switch (p->type) {
	case KRP_LANE_REQUEST:
		l->repeats++;
		l->owe_accept = l->state >= KRP_LANE_CONNECTING && l->state <= KRP_LANE_UP;
		break;
	case KRP_LANE_READY:
		krp_lane_peer_ready(l);
		break;
	case KRP_LANE_HEARD:
		l->heard = 1;
		if (l->state == KRP_LANE_UP)
			krp_lane_hush(l);
		break;
	case KRP_LANE_CLOSE:
		krp_lane_peer_closes(l, now_ns);
		break;
	case KRP_LANE_CLOSED:
		if (l->state == KRP_LANE_ENDING)
			krp_lane_end_now(l, 0);
		break;
	default: /* ACCEPT, CHALLENGE, REFUSE that come late */
		l->repeats++;
		break;
	}
	return 1;
}

/** krp_lane_fill() - Make a packet. @l: lane. @ret: filled. @type: of it. Context: any. */
static inline void krp_lane_fill(const struct krp_lane *l, struct krp_lane_todo *ret,
				 unsigned int type)
{
	struct krp_lane_packet *p = &ret->packet;

	ret->what = KRP_LANE_SEND;
	p->magic = krp_cpu_to_le16(KRP_LANE_MAGIC);
	p->version = KRP_LANE_VERSION;
	p->type = (__u8)type;
	p->flags = l->requester ? KRP_LANE_REQUESTER : 0;
	p->index = l->ports.index;
	p->lane = krp_cpu_to_le64(l->number);
	p->nonce = krp_cpu_to_le64(l->nonce);
	p->generation = krp_cpu_to_le64(l->ports.generation);
	p->peer_generation = krp_cpu_to_le64(l->ports.peer_generation);
	memcpy(p->gid, l->ports.gid, KRP_GID_BYTES);
	memcpy(p->peer_gid, l->ports.peer_gid, KRP_GID_BYTES);
	if (!krp_lane_offers(type))
		return;
	p->mtu = l->own.mtu;
	p->max_rd_atomic = l->own.max_rd_atomic;
	p->qpn = krp_cpu_to_le32(l->own.qpn);
	p->psn = krp_cpu_to_le32(l->own.psn);
	p->spent = type == KRP_LANE_ACCEPT ? krp_cpu_to_le64(l->spent) : 0;
	if (type != KRP_LANE_REQUEST)
		return;
	p->stamp = krp_cpu_to_le64(l->stamp);
	p->proof = krp_cpu_to_le64(l->proof);
	p->value = l->value;
}

/** krp_lane_due() - Let the clock do what is its. @l: lane. @now_ns: the clock. Context: any. */
static inline void krp_lane_due(struct krp_lane *l, __u64 now_ns)
{
	if (l->state == KRP_LANE_DRAINING && now_ns >= l->until_ns) {
		if (krp_lane_end_now(l, -ETIMEDOUT))
			l->owe_close = 1;
	} else if (l->state == KRP_LANE_RESTING && now_ns >= l->until_ns) {
		krp_lane_enter(l, KRP_LANE_GONE);
	}
	if (now_ns < l->retry_at_ns || l->tries < l->conf->tries)
		return;
	if (l->state == KRP_LANE_UP) {
		krp_lane_hush(l);
		return;
	}
	/* a peer that does not say CLOSED has nothing to lose */
	if (krp_lane_end_now(l, -ETIMEDOUT))
		l->owe_close = 1;
}

/** krp_lane_answer() - Send what is owed. @l: lane. @ret: filled. Context: any.
 * Return: 0: nothing.
 */
static inline int krp_lane_answer(struct krp_lane *l, struct krp_lane_todo *ret)
{
	if (l->owe_accept) {
		l->owe_accept = 0;
		krp_lane_fill(l, ret, KRP_LANE_ACCEPT);
	} else if (l->owe_heard) {
		l->owe_heard = 0;
		krp_lane_fill(l, ret, KRP_LANE_HEARD);
	} else if (l->owe_closed) {
		l->owe_closed = 0;
		l->owe_close = 0;
		krp_lane_fill(l, ret, KRP_LANE_CLOSED);
	} else if (l->owe_close) {
		l->owe_close = 0;
		krp_lane_fill(l, ret, KRP_LANE_CLOSE);
	} else {
		return 0;
	}
	return 1;
}

/** krp_lane_again() - Say what is to be said again and again. @l: lane. @now_ns: the clock.
 * @ret: filled. Context: any. Return: 0: nothing is due.
 */
static inline int krp_lane_again(struct krp_lane *l, __u64 now_ns, struct krp_lane_todo *ret)
{
	unsigned int type = KRP_LANE_READY;

	if (now_ns < l->retry_at_ns)
		return 0;
	if (l->state == KRP_LANE_ASKING)
		type = KRP_LANE_REQUEST;
	else if (l->state == KRP_LANE_ENDING)
		type = KRP_LANE_CLOSE;
	l->tries++;
	l->retry_at_ns = now_ns + l->pause_ns;
	l->pause_ns = 2 * l->pause_ns < l->conf->retry_max_ns ? 2 * l->pause_ns
							      : l->conf->retry_max_ns;
	krp_lane_fill(l, ret, type);
	return 1;
}

/** krp_lane_event() - What the caller is to do beside sending. @l: lane. @ret: filled.
 * Context: any. Return: 0: nothing.
 */
static inline int krp_lane_event(struct krp_lane *l, struct krp_lane_todo *ret)
{
	if (l->do_connect) {
		l->do_connect = 0;
		ret->what = KRP_LANE_CONNECT;
	} else if (l->do_post) {
		l->do_post = 0;
		l->told_post = 1;
		ret->what = KRP_LANE_POST;
	} else if (l->do_stop) {
		l->do_stop = 0;
		ret->what = KRP_LANE_STOP;
	} else if (l->do_reset) {
		l->do_reset = 0;
		ret->what = KRP_LANE_RESET;
		ret->err = l->error;
	} else if (l->state == KRP_LANE_GONE) {
		ret->what = KRP_LANE_FORGET;
	} else {
		return 0;
	}
	return 1;
}

/**
 * krp_lane_next() - What is to be done next.
 * @l: lane.
 * @now_ns: the clock, which never goes back.
 * @ret: filled.
 *
 * Pull until KRP_LANE_WAIT or KRP_LANE_FORGET whenever something was said to the machine. ACCEPT
 * comes before KRP_LANE_CONNECT, so both ends connect at the same time.
 *
 * Context: any.
 * Return: @ret->what.
 */
static inline enum krp_lane_do krp_lane_next(struct krp_lane *l, __u64 now_ns,
					     struct krp_lane_todo *ret)
{
	memset(ret, 0, sizeof(*ret));
	krp_lane_due(l, now_ns);
	if (krp_lane_answer(l, ret) || krp_lane_event(l, ret) || krp_lane_again(l, now_ns, ret))
		return ret->what;
	ret->what = KRP_LANE_WAIT;
	ret->until_ns = l->retry_at_ns;
	if ((l->state == KRP_LANE_DRAINING || l->state == KRP_LANE_RESTING) &&
	    l->until_ns < ret->until_ns)
		ret->until_ns = l->until_ns;
	return ret->what;
}

#endif /* KRP_LANE_END_H */
