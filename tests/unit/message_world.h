/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Nodes that talk by proto/krp_stream.h over a network that loses, doubles, delays and reorders,
 * with a clock of its own and programs that send numbered messages. One thread; what happens
 * follows from the seed.
 *
 * Whatever is wrong is noted in mw_world.broken, so that a planted fault (KRP_MUTANT) can be
 * looked for: messages out of order, lost or doubled, ends of messages that are missing or wrong,
 * READs of memory that was given back, invariants, connections that never come to an end.
 */
#ifndef KRC_TESTS_MESSAGE_WORLD_H
#define KRC_TESTS_MESSAGE_WORLD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* the fault that is planted, or NULL */
extern const char *mw_mutant;

/**
 * mw_mutant_is() - Check whether a fault is the one that is planted; KRP_MUTANT() of the machine.
 * @what: name of the fault.
 *
 * Return: true if it is.
 */
static inline bool mw_mutant_is(const char *what)
{
	return mw_mutant && !strcmp(mw_mutant, what);
}

#define KRP_MUTANT(what) mw_mutant_is(what)
#include "proto/krp_listen.h"

#define MW_NODES_MAX 201
#define MW_ENDS_MAX 512
#define MW_CONNS_MAX 256
#define MW_SLOTS 64
#define MW_TOMBS 64
#define MW_SPARE 64
#define MW_SERVICE 300
#define MW_MS 1000000ULL
#define MW_US 1000ULL
#define MW_NEVER 0xff
#define MW_LOOK_UPS 4
#define MW_BACKLOG 512

/**
 * enum mw_blow - What happens to a node or a program.
 * @MW_NOTHING: nothing.
 * @MW_RESET: the initiator is reset: what is in flight may be lost.
 * @MW_KILL: the program is killed.
 * @MW_REBOOT: the node begins a new generation.
 */
enum mw_blow {
	MW_NOTHING,
	MW_RESET,
	MW_KILL,
	MW_REBOOT,
};

/**
 * struct mw_plan - What a run is like.
 * @messages: that each side sends.
 * @first: the first rides on OPEN.
 * @lose_every: a packet of so many is lost; 0: none.
 * @double_every: likewise, it comes twice.
 * @delay_us: a quarter of the packets are late by up to so many us, and overtaken.
 * @large_every: a message of so many is large; 0: none.
 * @window: in messages.
 * @pool: receive buffers of a node.
 * @reset_us: mean time between resets of an initiator; 0: never.
 * @slow_us: a program reads a message each so many us; 0: at once.
 * @stop_ms: programs of the accepting side do not read until then.
 * @selfish: programs do not read before their own large messages have ended.
 * @shut_first: side that closes without waiting for the other's messages; 2: none.
 * @stays: nobody closes.
 * @cancel_every: a large message of so many is asked back.
 * @refuse: the program does not accept.
 * @no_room: the service has no room.
 * @deaf_ms: ACCEPT and REFUSE are lost until then.
 * @blow: what happens once,
 * @blow_side: to this side of the first connection,
 * @blow_state: when it is in this state; MW_NEVER: not at all,
 * @blow_after: and so many packets have come to it then.
 * @budget_us: budgets change each so many us; 0: never.
 * @stall_every: a packet of so many is posted late; 0: none.
 * @stall_ms: by up to so many ms.
 * @look_us: a look-up takes so many us, and there are few at once; 0: no time.
 * @idle_ms: see krp_stream_conf.idle_ns; 0: never.
 * @thrifty: ends have memory for what they have to say and no more, and sometimes get it late.
 */
struct mw_plan {
	uint32_t messages;
	bool first;
	uint32_t lose_every, double_every, delay_us, large_every, window, pool, reset_us, slow_us;
	uint32_t stop_ms;
	bool selfish;
	uint32_t shut_first, cancel_every;
	bool stays;
	bool refuse, no_room;
	uint32_t deaf_ms;
	enum mw_blow blow;
	uint8_t blow_side, blow_state;
	uint32_t blow_after, budget_us, stall_every, stall_ms, look_us;
	uint32_t idle_ms;
	bool thrifty;
};

/**
 * struct mw_way - One direction of a connection, as an onlooker sees it.
 * @total: messages that are to be sent.
 * @handed: of them, those that the program has handed over.
 * @ended: of those, those whose end the program was told.
 * @failed: of those, those that failed, but for those that were asked back.
 * @delivered: messages that have come to the other side, in order.
 * @state: of each message: MW_OUT and so on; 0: not handed over.
 */
struct mw_way {
	uint32_t total, handed, ended, failed, delivered;
	uint8_t *state;
};

/* mw_way.state */
#define MW_OUT 1
#define MW_ENDED 2
#define MW_GONE 3 /* with its node */

/**
 * struct mw_conn - A connection.
 * @way: from its opener, and to it.
 * @node: nodes of opener and accepter.
 * @accepted: times that it was accepted; more than one is a fault.
 * @unlucky: it may fail: it was refused, its program killed, or a node has died.
 */
struct mw_conn {
	struct mw_way way[2];
	uint32_t node[2];
	uint32_t accepted;
	bool unlucky;
};

/**
 * struct mw_want - A large message that an end was told of, and READs.
 * @seq: its number on the wire.
 * @number: its number among the messages of that direction.
 * @state: 0: free, 1: wanted, 2: a READ is under way.
 */
struct mw_want {
	uint64_t seq;
	uint32_t number;
	uint8_t state;
};

/**
 * struct mw_end - One end of a connection, with its machine.
 * @s: the machine.
 * @slot: its slots.
 * @few: the same of one that says little.
 * @large: its memory for announcements.
 * @used: it exists.
 * @shut: the program has closed.
 * @blown: mw_plan.blow has happened to it.
 * @node: node that it is on.
 * @queue: number of its queue; tells it from ends before it in this place.
 * @conn: connection.
 * @side: 0: opener, 1: accepter.
 * @packets: packets that have come to it.
 * @timer_ns: until when the machine wants to be left alone.
 * @read_ns: before this a slow program reads no more.
 * @consumed: messages of the other direction that the program has read.
 * @first_length: bytes of the message in OPEN.
 * @want: large messages that it was told of.
 */
struct mw_end {
	struct krp_stream s;
	struct krp_stream_slot slot[MW_SLOTS], few[KRP_STREAM_SLOTS_MIN];
	struct krp_stream_large large;
	bool used, shut, blown;
	uint32_t node, queue, conn, side, packets;
	uint64_t timer_ns, read_ns;
	uint32_t consumed;
	uint32_t first_length;
	struct mw_want want[KRP_MESSAGE_ANNOUNCED_MAX];
};

/**
 * struct mw_tomb - What a node remembers of an end that is gone, to answer repeats of its OPEN.
 * @open: that OPEN.
 * @src: queue that it came from.
 * @until_ns: when it is forgotten.
 * @status: what is said of it.
 */
struct mw_tomb {
	struct krp_message_open open;
	uint32_t src;
	uint64_t until_ns;
	uint32_t status;
};

/**
 * struct mw_node - A node.
 * @record: what it publishes.
 * @gid: its address.
 * @generation: of the node.
 * @secret: of its passes.
 * @pool: receive buffers that are free.
 * @pass: passes that other nodes gave it, by node.
 * @pass_generation: generation of the node that gave it.
 * @tomb: ends that are gone.
 * @lookups: its look-ups.
 */
struct mw_node {
	struct krp_value record;
	uint8_t gid[KRP_GID_BYTES];
	uint64_t generation, secret;
	uint32_t pool;
	uint64_t pass[MW_NODES_MAX], pass_generation[MW_NODES_MAX];
	struct mw_tomb tomb[MW_TOMBS];
	struct krp_listen_lookups lookups;
};

/**
 * struct mw_event - Something that happens at a time.
 * @at_ns: when.
 * @order: of events at the same time, the lower goes first.
 * @kind: enum mw_kind of message_world.c.
 * @lost: of a packet: a reset of its sender took it, and it does not come.
 * @from: node.
 * @to: node.
 * @end: end that it is of.
 * @want: of a READ: index in mw_end.want.
 * @bytes: length of the packet with its body.
 * @queue: mw_end.queue when it was begun; if that is another one now, it is of nobody.
 * @seq: of a READ: number of the message.
 * @packet: header.
 * @body: what follows it.
 */
struct mw_event {
	uint64_t at_ns, order;
	uint8_t kind;
	bool lost;
	uint32_t from, to, end, want, bytes;
	uint64_t queue, seq;
	struct krp_message packet;
	union {
		struct krp_message_open open;
		struct krp_message_accept accept;
		struct krp_message_challenge challenge;
	} body;
};

/**
 * struct mw_world - All of it.
 * @plan: what the run is like.
 * @conf: settings of all machines.
 * @now_ns: clock.
 * @random: state of the draws.
 * @events: events that have happened.
 * @order: next value of mw_event.order.
 * @queue: last number of a queue.
 * @nodes: nodes in use.
 * @conns: connections made.
 * @ends: ends in use, at most.
 * @heap_nr: events to come.
 * @heap_max: room for them.
 * @heap: events to come, the next one first.
 * @spare: memory of events, to be used again.
 * @spare_nr: how many.
 * @sent_packets: packets sent.
 * @packets: of them, by type.
 * @repeats: messages and DONEs dropped because they had come before.
 * @challenges: OPENs that were answered by a challenge.
 * @look_ups: look-ups of records.
 * @offers: connections offered to a program.
 * @reads: READs of large messages.
 * @busy: answers that a receiver has no room.
 * @decide_ns: how long programs take to accept; 0: not long.
 * @broken: what went wrong first, in @why; NULL: nothing.
 * @why: memory of that text.
 * @node: nodes.
 * @end: ends.
 * @conn: connections.
 */
struct mw_world {
	struct mw_plan plan;
	struct krp_stream_conf conf;
	uint64_t now_ns, random, events, order;
	uint32_t queue, nodes, conns, ends, heap_nr, heap_max;
	struct mw_event **heap, *spare[MW_SPARE];
	uint32_t spare_nr;
	uint64_t sent_packets, packets[KRP_MESSAGE_TYPES], repeats, challenges, look_ups, offers,
		reads, busy;
	uint64_t decide_ns;
	const char *broken;
	char why[160];
	struct mw_node node[MW_NODES_MAX];
	struct mw_end end[MW_ENDS_MAX];
	struct mw_conn conn[MW_CONNS_MAX];
};

/* Make a world. */
struct mw_world *mw_new(const struct mw_plan *plan, uint32_t nodes, uint64_t seed);
void mw_free(struct mw_world *w);

/* Open a connection from a node to another one. Return: its end. */
struct mw_end *mw_open(struct mw_world *w, uint32_t from, uint32_t to);

/* Go on until nothing happens any more, or something is broken, or @until_ns. */
void mw_run(struct mw_world *w, uint64_t until_ns);

/* Judge a world that has come to its end. Return: text, or NULL: all is well. */
const char *mw_judge(struct mw_world *w);

uint64_t mw_random(struct mw_world *w, uint64_t below);
void mw_reset(struct mw_world *w, uint32_t node);
void mw_reboot(struct mw_world *w, uint32_t node);
void mw_kill(struct mw_world *w, struct mw_end *e);
void mw_pull(struct mw_world *w, struct mw_end *e);

/* The other end of a connection, or NULL. */
struct mw_end *mw_peer(struct mw_world *w, const struct mw_end *e);

/* Say what is wrong, unless something was before. */
void mw_break(struct mw_world *w, const char *what, uint64_t number);

/* True once in so many times, by chance; 0: never. */
bool mw_once_in(struct mw_world *w, uint32_t odds);

/* Two ends that are OPEN, and nothing under way. */
struct mw_world *mw_opened(const struct mw_plan *plan, struct mw_end **ret_a,
			   struct mw_end **ret_b);

/* Begin an end's machine, with the memory that it has at first: all of it, or little. */
void mw_lend_first(struct mw_world *w, struct mw_end *e);

/* Memory for announcements, and for what is said next; once in a while there is none for that. */
void mw_lend(struct mw_world *w, struct mw_end *e, bool large);

/* What was lent comes back, in which nothing is; and its bytes are others'. */
void mw_take_back(struct mw_world *w, struct mw_end *e);

/* A packet comes to a node, as a network would bring it. */
void mw_arrive(struct mw_world *w, const struct mw_event *ev);

#endif /* KRC_TESTS_MESSAGE_WORLD_H */
