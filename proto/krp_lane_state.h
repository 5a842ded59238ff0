/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * One end of a lane (krp_lane.h): a state machine without lock, clock, memory, keys or transport
 * of its own. Normative.
 *
 * HOW IT IS DRIVEN
 *   The caller tells what has happened: packets that it has checked and proved
 *   (krp_lane_received()); that the queue pair is connected, drained, reset, or has failed. Then
 *   it pulls what is to be done, krp_lane_next(), until that is to wait. It adds key id
 *   and MAC to what it sends. Whether a REQUEST makes a lane is not decided here but by
 *   krp_lanes.h.
 *
 * STATES, and what the queue pair of this end is in
 *   NEW         INIT       nothing has been said
 *   ASKING      INIT       REQUEST is not answered
 *   CONNECTING  INIT, RTR  the caller connects it
 *   LISTENING   RTS        READY has been said, the peer's has not come
 *   UP          RTS        requests may be posted
 *   DRAINING    any        none any more; the caller waits until none is outstanding
 *   ENDING      RTS        CLOSE is not answered: the peer may still reach this end
 *   RESETTING   any        to ERR, drained, and to RESET by the caller
 *   RESTING     RESET      its number is not used again yet
 *   GONE        RESET      over
 *
 *   NEW -> ASKING -> CONNECTING -> LISTENING -> UP -> DRAINING -> ENDING -> RESETTING -> RESTING
 *   -> GONE. An accepter has no ASKING. LISTENING is left out if the peer's READY has come before.
 *   An end that the peer has asked to close goes from DRAINING to RESETTING. Failure leads to
 *   RESETTING from everywhere before it; to give up a lane that is not UP needs no DRAINING.
 *
 * TIME
 *   REQUEST, READY and CLOSE are repeated after conf.retry_ns, and then in pauses that double up
 *   to conf.retry_max_ns, conf.tries times in all. If the last one is not answered in its
 *   pause either, the lane has failed. (But an end that is UP only stops saying READY: if none
 *   has come to the peer, that fails, and says so.) A caller that has stood still is not
 *   taken for a silent peer, since each try waits for its own pause. DRAINING ends after
 *   conf.drain_ns, whatever the caller says; RESTING takes conf.rest_ns. So each state but UP
 *   ends, whatever comes or does not; CONNECTING and RESETTING end with the caller's own commands.
 *
 * Locking: none here; an end is under one lock of the caller.
 */
#ifndef KRP_LANE_STATE_H
#define KRP_LANE_STATE_H

#include "krp_lane.h"

/*
 * A test may plant faults, to show that it finds them: it defines this before it includes the
 * header. Nothing else does.
 */
#ifndef KRP_MUTANT
#define KRP_MUTANT(what) ((void)(what), 0)
#endif

#define KRP_LANE_NS_PER_MS 1000000ULL
#define KRP_LANE_FOREVER_NS (~0ULL)
#define KRP_LANE_PAUSE_MAX_NS (60000ULL * KRP_LANE_NS_PER_MS)
#define KRP_LANE_TRIES_MAX 64
#define KRP_LANE_PASSES_MAX 8 /* cookies that one lane is asked for */

/**
 * enum krp_lane_state - Where a lane is, as one end sees it; see STATES.
 * @KRP_LANE_NEW: nothing has been said.
 * @KRP_LANE_ASKING: REQUEST is not answered.
 * @KRP_LANE_CONNECTING: the peer's queue pair is known.
 * @KRP_LANE_LISTENING: this end is connected, the peer's READY has not come.
 * @KRP_LANE_UP: both are.
 * @KRP_LANE_DRAINING: nothing new is posted.
 * @KRP_LANE_ENDING: CLOSE is not answered.
 * @KRP_LANE_RESETTING: the queue pair is given up.
 * @KRP_LANE_RESTING: its number rests.
 * @KRP_LANE_GONE: over.
 * @KRP_LANE_STATES: how many there are.
 */
enum krp_lane_state {
	KRP_LANE_NEW,
	KRP_LANE_ASKING,
	KRP_LANE_CONNECTING,
	KRP_LANE_LISTENING,
	KRP_LANE_UP,
	KRP_LANE_DRAINING,
	KRP_LANE_ENDING,
	KRP_LANE_RESETTING,
	KRP_LANE_RESTING,
	KRP_LANE_GONE,
	KRP_LANE_STATES,
};

/**
 * enum krp_lane_do - What the caller is to do.
 * @KRP_LANE_WAIT: nothing until todo.until_ns.
 * @KRP_LANE_SEND: send todo.packet, with its MAC.
 * @KRP_LANE_CONNECT: bring the queue pair to RTR and RTS with lane.peer; then say
 *	krp_lane_connected().
 * @KRP_LANE_POST: requests may be posted from now on.
 * @KRP_LANE_STOP: they may not any more; say krp_lane_drained() when none is outstanding, and no
 *	command of KRP_LANE_CONNECT is under way.
 * @KRP_LANE_RESET: bring the queue pair to ERR, when no command is under way, drain it, which ends
 *	what is outstanding with an error, and bring it to RESET; then say krp_lane_reset().
 *	todo.err is why: 0: the lane was closed.
 * @KRP_LANE_FORGET: the end is not needed any more.
 */
enum krp_lane_do {
	KRP_LANE_WAIT,
	KRP_LANE_SEND,
	KRP_LANE_CONNECT,
	KRP_LANE_POST,
	KRP_LANE_STOP,
	KRP_LANE_RESET,
	KRP_LANE_FORGET,
};

/**
 * struct krp_lane_conf - What a user of the machine decides; shared by lanes.
 * @retry_ns: pause after which something is said again first, not 0.
 * @retry_max_ns: the longest pause, at least @retry_ns, KRP_LANE_PAUSE_MAX_NS at most.
 * @drain_ns: how long DRAINING may take; likewise.
 * @rest_ns: length of RESTING, KRP_LANE_REST_MS at least; likewise.
 * @tries: how often something is said, 1 to KRP_LANE_TRIES_MAX.
 */
struct krp_lane_conf {
	__u64 retry_ns;
	__u64 retry_max_ns;
	__u64 drain_ns;
	__u64 rest_ns;
	__u32 tries;
};

/**
 * struct krp_lane_ports - Which lane of which two ports, and what this one is like.
 * @gid: of this port.
 * @peer_gid: of the peer, another one.
 * @generation: of this node.
 * @peer_generation: of the peer's, as its record or its REQUEST says.
 * @index: below KRP_LANE_INDEXES.
 * @mtu: the largest that this port can, enum ib_mtu.
 * @max_rd_atomic: READs and atomics that this port takes at once on a lane.
 * @rsvd: unused.
 */
struct krp_lane_ports {
	__u8 gid[KRP_GID_BYTES];
	__u8 peer_gid[KRP_GID_BYTES];
	__u64 generation;
	__u64 peer_generation;
	__u8 index;
	__u8 mtu;
	__u8 max_rd_atomic;
	__u8 rsvd[5];
};

/**
 * struct krp_lane_end - A queue pair.
 * @qpn: its number.
 * @psn: number of the first packet that it sends.
 * @mtu: enum ib_mtu; once a lane is CONNECTING, that of the lane, in both.
 * @max_rd_atomic: READs and atomics that it takes at once; the most that the other one has
 *	outstanding.
 * @rsvd: unused.
 */
struct krp_lane_end {
	__u32 qpn;
	__u32 psn;
	__u8 mtu;
	__u8 max_rd_atomic;
	__u8 rsvd[2];
};

/**
 * struct krp_lane_todo - What krp_lane_next() says.
 * @what: enum krp_lane_do.
 * @err: with KRP_LANE_RESET: why, 0 or a negative errno.
 * @until_ns: with KRP_LANE_WAIT.
 * @packet: with KRP_LANE_SEND; key id and MAC are zero.
 */
struct krp_lane_todo {
	enum krp_lane_do what;
	int err;
	__u64 until_ns;
	struct krp_lane_packet packet;
};

/**
 * struct krp_lane - One end of a lane.
 * @conf: how it behaves.
 * @ports: what it is between.
 * @own: queue pair of this end.
 * @peer: of the other one, from CONNECTING on.
 * @number: of the lane; krp_lane_packet.lane.
 * @nonce: krp_lane_packet.nonce.
 * @spent: krp_lane_packet.spent, for ACCEPT.
 * @stamp: cookie, or 0.
 * @proof: likewise.
 * @value: record of this node, for REQUEST.
 * @other_generation: generation that the peer has said it has, of KRP_LANE_STALE; else 0.
 * @retry_at_ns: when to say something again, or KRP_LANE_FOREVER_NS.
 * @pause_ns: pause after that.
 * @until_ns: DRAINING, RESTING: when that is over.
 * @error: why it is RESETTING, 0 or a negative errno.
 * @state: enum krp_lane_state.
 * @requester: this end has requested it.
 * @tries: how often what is said now was said.
 * @passes: cookies that have come.
 * @peer_ready: READY has come.
 * @heard: HEARD has come.
 * @connected: the queue pair is in RTS.
 * @peer_closes: CLOSE has come.
 * @told_post: the caller may post.
 * @owe_accept: ACCEPT is to be sent.
 * @owe_heard: HEARD is.
 * @owe_close: CLOSE is, once, by an end that has failed or is over.
 * @owe_closed: CLOSED is.
 * @do_connect: KRP_LANE_CONNECT is to be said.
 * @do_post: KRP_LANE_POST is.
 * @do_stop: KRP_LANE_STOP is.
 * @do_reset: KRP_LANE_RESET is.
 * @foreign: packets dropped that were not this lane's.
 * @repeats: packets that have come again.
 */
struct krp_lane {
	const struct krp_lane_conf *conf;
	struct krp_lane_ports ports;
	struct krp_lane_end own;
	struct krp_lane_end peer;
	__u64 number;
	__u64 nonce;
	__u64 spent;
	__u64 stamp;
	__u64 proof;
	struct krp_value value;
	__u64 other_generation;
	__u64 retry_at_ns;
	__u64 pause_ns;
	__u64 until_ns;
	int error;
	__u8 state;
	__u8 requester;
	__u8 tries;
	__u8 passes;
	__u8 peer_ready;
	__u8 heard;
	__u8 connected;
	__u8 peer_closes;
	__u8 told_post;
	__u8 owe_accept;
	__u8 owe_heard;
	__u8 owe_close;
	__u8 owe_closed;
	__u8 do_connect;
	__u8 do_post;
	__u8 do_stop;
	__u8 do_reset;
	__u32 foreign;
	__u32 repeats;
};

/**
 * krp_lane_enter() - The one place where the state changes.
 * @l: lane.
 * @to: new state.
 *
 * Context: any.
 * Return: 1; 0: there is no way from the old state to that one, and nothing has changed.
 */
static inline int krp_lane_enter(struct krp_lane *l, enum krp_lane_state to)
{
	static const unsigned short ways[KRP_LANE_STATES] = {
		/* NEW */ 1U << KRP_LANE_ASKING | 1U << KRP_LANE_CONNECTING,
		/* ASKING */ 1U << KRP_LANE_CONNECTING | 1U << KRP_LANE_ENDING |
			1U << KRP_LANE_RESETTING,
		/* CONNECTING */ 1U << KRP_LANE_LISTENING | 1U << KRP_LANE_UP |
			1U << KRP_LANE_DRAINING | 1U << KRP_LANE_RESETTING,
		/* LISTENING */ 1U << KRP_LANE_UP | 1U << KRP_LANE_DRAINING |
			1U << KRP_LANE_RESETTING,
		/* UP */ 1U << KRP_LANE_DRAINING | 1U << KRP_LANE_RESETTING,
		/* DRAINING */ 1U << KRP_LANE_ENDING | 1U << KRP_LANE_RESETTING,
		/* ENDING */ 1U << KRP_LANE_RESETTING,
		/* RESETTING */ 1U << KRP_LANE_RESTING,
		/* RESTING */ 1U << KRP_LANE_GONE,
		/* GONE */ 0,
	};

	if (l->state >= KRP_LANE_STATES || !(ways[l->state] >> to & 1))
		return 0;
	l->state = (__u8)to;
	return 1;
}

/** krp_lane_known() - Whether the peer may know of a lane, which has not ended. @l: lane.
 * Context: any. Return: 1 or 0.
 */
static inline int krp_lane_known(const struct krp_lane *l)
{
	return l->state >= KRP_LANE_ASKING && l->state < KRP_LANE_RESETTING;
}

/** krp_lane_say() - Begin to say something again and again. @l: lane. @now_ns: the clock.
 * Context: any.
 */
static inline void krp_lane_say(struct krp_lane *l, __u64 now_ns)
{
	l->tries = 0;
	l->pause_ns = l->conf->retry_ns;
	l->retry_at_ns = now_ns;
}

/** krp_lane_hush() - Say nothing again any more. @l: lane. Context: any. */
static inline void krp_lane_hush(struct krp_lane *l)
{
	l->retry_at_ns = KRP_LANE_FOREVER_NS;
}

/**
 * krp_lane_end_now() - Give the queue pair up.
 * @l: lane.
 * @err: why: 0: closed; else a negative errno.
 *
 * Context: any.
 * Return: 1; 0: it has been already, or there is nothing to give up.
 */
static inline int krp_lane_end_now(struct krp_lane *l, int err)
{
	if (!krp_lane_enter(l, KRP_LANE_RESETTING))
		return 0;
	krp_lane_hush(l);
	l->error = err;
	l->told_post = 0;
	l->do_connect = 0;
	l->do_post = 0;
	l->do_stop = 0;
	l->owe_accept = 0;
	l->owe_heard = 0;
	l->do_reset = 1;
	return 1;
}

/**
 * krp_lane_drain() - Post nothing any more.
 * @l: lane, CONNECTING, LISTENING or UP.
 * @now_ns: the clock.
 *
 * Context: any.
 */
static inline void krp_lane_drain(struct krp_lane *l, __u64 now_ns)
{
	if (!krp_lane_enter(l, KRP_LANE_DRAINING))
		return;
	krp_lane_hush(l);
	l->until_ns = now_ns + l->conf->drain_ns;
	l->told_post = 0;
	l->do_connect = 0;
	l->do_post = 0;
	l->owe_accept = 0;
	l->owe_heard = 0;
	l->do_stop = 1;
}

/** krp_lane_meet() - Take over what the peer's queue pair is like. @l: lane. @p: REQUEST or
 * ACCEPT. Context: any.
 */
static inline void krp_lane_meet(struct krp_lane *l, const struct krp_lane_packet *p)
{
	l->peer.qpn = krp_le32_to_cpu(p->qpn);
	l->peer.psn = krp_le32_to_cpu(p->psn);
	l->peer.max_rd_atomic = p->max_rd_atomic;
	l->peer.mtu = p->mtu < l->own.mtu ? p->mtu : l->own.mtu;
	l->own.mtu = l->peer.mtu;
	l->do_connect = 1;
}

/** krp_lane_wrong() - Which invariant does not hold; for tests. @l: lane. Context: any.
 * Return: text, or NULL: all do.
 */
static inline const char *krp_lane_wrong(const struct krp_lane *l)
{
	if (l->state >= KRP_LANE_STATES)
		return "there is no such state";
	if (l->told_post && (l->state != KRP_LANE_UP || !l->connected || !l->peer_ready))
		return "posts on what is not connected at both ends";
	if (l->state == KRP_LANE_UP && !(l->told_post || l->do_post))
		return "UP, and nobody may post";
	if (l->state > KRP_LANE_ASKING && l->state < KRP_LANE_DRAINING && !l->peer.qpn)
		return "connects to nothing";
	if (l->tries > l->conf->tries)
		return "says something more often than it may";
	if (l->do_reset && l->state != KRP_LANE_RESETTING)
		return "gives up a queue pair that is in use";
	return NULL;
}

#endif /* KRP_LANE_STATE_H */
