/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Ports that make lanes by proto/krp_lanes.h, over a network that loses, doubles and reorders,
 * beside a host that has no cluster key, sends again what it has seen, and forges. One thread, a
 * clock of its own; what happens follows from the seed.
 *
 * Queue pairs are modelled: states, whom they are connected to, what is outstanding on them.
 * Whatever is wrong is noted in lw_world.broken, so that a planted fault (KRP_MUTANT) can be
 * looked for.
 */
#ifndef KRC_TESTS_LANE_WORLD_H
#define KRC_TESTS_LANE_WORLD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* the fault that is planted, or NULL */
extern const char *lw_mutant;

/**
 * lw_mutant_is() - Check whether a fault is the one that is planted; KRP_MUTANT() of the machine.
 * @what: name of the fault.
 *
 * Return: true if it is.
 */
static inline bool lw_mutant_is(const char *what)
{
	return lw_mutant && !strcmp(lw_mutant, what);
}

#define KRP_MUTANT(what) lw_mutant_is(what)
#include "proto/krp_lanes.h"

#define LW_PORTS_MAX 6
#define LW_LANES 8 /* of a port, conf.max */
#define LW_KNOWN 4
#define LW_PAYERS 3
#define LW_FLIGHT 512
#define LW_SEEN 512 /* packets that the hostile host remembers */
#define LW_BORN 16384
#define LW_MS 1000000ULL
#define LW_STEP_NS 100000ULL

/**
 * struct lw_plan - What a run is like. Odds are one of so many; 0: never.
 * @ports: how many.
 * @keys: there is a cluster key.
 * @lose: a packet is lost.
 * @twice: a packet comes twice.
 * @delay_us: packets take up to so long, and overtake each other.
 * @make: a port makes a lane in a step.
 * @post: a request is posted in a step.
 * @close: a port closes a lane in a step.
 * @reboot: a port begins a new generation in a step.
 * @break_lane: a queue pair fails in a step.
 * @replay: the hostile host sends something again in a step.
 * @forge: it makes a REQUEST up in a step.
 * @refuse_connect: a change of state fails.
 * @stale: a port has an old record of a peer.
 * @pairs_only: only port 0 and 1 make lanes, and both at once.
 */
struct lw_plan {
	uint32_t ports;
	bool keys;
	uint32_t lose, twice, delay_us, make, post, close, reboot, break_lane, replay, forge;
	uint32_t refuse_connect, stale;
	bool pairs_only;
};

/**
 * struct lw_born - A lane that was requested, as an onlooker sees it.
 * @number: its number.
 * @nonce: its nonce.
 * @generation: of the requester.
 * @port: requester.
 * @accepted: how often a lane was accepted for it: once at most.
 * @end: of requester and accepter.
 */
struct lw_born {
	uint64_t number, nonce, generation;
	uint32_t port, accepted;
	struct {
		bool connected, posts, over, hard;
		uint32_t outstanding;
	} end[2];
};

/**
 * struct lw_qp - A queue pair.
 * @rested_ns: when its number may be used again.
 * @qpn: number.
 * @used: of a lane.
 */
struct lw_qp {
	uint64_t rested_ns;
	uint32_t qpn;
	bool used;
};

/**
 * struct lw_side - What a port keeps of an entry of its table.
 * @qp: its queue pair.
 * @born: the lane.
 * @connect_ns: when the change of state ends; 0: none is under way.
 * @reset_ns: likewise, the reset.
 * @fail_ns: when a request that is outstanding fails; 0: none does.
 * @draining: KRP_LANE_STOP was said.
 * @resetting: KRP_LANE_RESET was, and waits for a command.
 */
struct lw_side {
	struct lw_qp *qp;
	struct lw_born *born;
	uint64_t connect_ns, reset_ns, fail_ns;
	bool draining, resetting;
};

/**
 * struct lw_port - A port.
 * @t: its lanes.
 * @entry: entries of @t.
 * @side: what it keeps of each.
 * @chains: hash of @t.
 * @known: memory of @t.
 * @payer: its users.
 * @record: what it publishes.
 * @qp: queue pairs.
 * @secret: of its cookies.
 * @generation: of the port.
 */
struct lw_port {
	struct krp_lanes t;
	struct krp_lanes_entry entry[2 * LW_LANES];
	struct lw_side side[2 * LW_LANES];
	struct krp_lanes_entry *chains[8];
	struct krp_lanes_known known[LW_KNOWN];
	struct krp_lanes_payer payer[LW_PAYERS];
	struct krp_value record;
	struct lw_qp qp[4 * LW_LANES];
	uint64_t secret, generation;
};

/**
 * struct lw_packet - A packet under way.
 * @at_ns: when it comes.
 * @p: packet.
 */
struct lw_packet {
	uint64_t at_ns;
	struct krp_lane_packet p;
};

extern const struct krp_lane_conf lw_conf; /* of tests that go rule by rule */
extern const struct krp_lane_ports lw_ports_b; /* an end there, which accepts */
extern const struct krp_lane_end lw_own_b; /* its queue pair */

/** lw_record() - The record of a port without DC. @generation: of its node. Return: it. */
struct krp_value lw_record(__u64 generation);

/**
 * struct lw_world - All of it.
 * @plan: what the run is like.
 * @conf: of all ports.
 * @now_ns: clock.
 * @random: state of the draws.
 * @calm: nothing is lost, attacked or broken any more, and nobody makes lanes.
 * @broken: what went wrong first, or NULL.
 * @up: ends that have come up.
 * @crossed: REQUESTs that were given up for the peer's.
 * @refused: REQUESTs that were refused.
 * @challenged: REQUESTs that were answered by CHALLENGE.
 * @replayed: packets that were sent again.
 * @sent: packets sent by ports.
 * @born_nr: lanes requested.
 * @seen_nr: packets seen by the hostile host.
 * @flights: packets under way.
 * @port: ports.
 * @flight: these.
 * @seen: packets that the hostile host remembers.
 * @born: lanes requested.
 */
struct lw_world {
	struct lw_plan plan;
	struct krp_lanes_conf conf;
	uint64_t now_ns, random;
	bool calm;
	const char *broken;
	uint64_t up, crossed, refused, challenged, replayed, sent;
	uint32_t born_nr, seen_nr, flights;
	struct lw_port port[LW_PORTS_MAX];
	struct lw_packet flight[LW_FLIGHT];
	struct krp_lane_packet seen[LW_SEEN];
	struct lw_born born[LW_BORN];
};

/* Make a world. */
struct lw_world *lw_new(const struct lw_plan *plan, uint64_t seed);
void lw_free(struct lw_world *w);

/* Go on for some time, or until something is broken. */
void lw_run(struct lw_world *w, uint64_t ms);

/* A port makes a lane to another one, for one of its users. Return: 0, or what refused it. */
int lw_make(struct lw_world *w, uint32_t from, uint32_t to, uint32_t index, uint32_t payer);

/* The lane of a port to another one, or NULL. */
struct krp_lanes_entry *lw_lane(struct lw_world *w, uint32_t from, uint32_t to, uint32_t index);

/* Let all come to rest, close all lanes, and judge. Return: text, or NULL: all is well. */
const char *lw_judge(struct lw_world *w);

/* A port begins a new generation. */
void lw_reboot(struct lw_world *w, uint32_t port);

uint64_t lw_random(struct lw_world *w, uint64_t below);

#endif /* KRC_TESTS_LANE_WORLD_H */
