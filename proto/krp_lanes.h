/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * All lanes of a port: who gets one, which one goes when there are too many, and what becomes of
 * a REQUEST. Without lock, clock, keys, memory or transport of its own. Normative for what a
 * REQUEST is answered; the rest is what a port promises its own programs.
 *
 * A REQUEST costs the accepter, in this order, and each step only if the one before let it pass:
 *   The check, and a MAC if there are keys (krp_lane.h). Nothing is answered before that.
 *   Without keys: the look-up of its GID, if the record is not cached or differs. struct
 *   krp_listen_lookups bounds these for OPENs; lanes share it.
 *   A packet to the record: REFUSE, if it is for another generation, or for an index that
 *   there is not here; CHALLENGE, if a cookie is wanted, and that is missing or old.
 *   The end of what it replaces: a lane of the same index that the peer has lost, and all lanes
 *   to an older generation of it. The REQUEST that is repeated meets room then.
 *   A lane; or REFUSE, if there is no room and nothing that could be closed.
 *   A late one, a repeated one whose lane has ended, and one that crosses a REQUEST of this port
 *   that counts, are dropped.
 *
 * WHAT IS REMEMBERED OF PEERS
 *   For each port that has made a lane: its generation, and the largest number by index, in struct
 *   krp_lanes_known. There is place for a fixed number of ports; the one that was used least
 *   recently goes. From then on a REQUEST for a port and an index of which no number is
 *   remembered needs a cookie that is younger than the last forgetting: all that it may have
 *   sent before is refused by that. (A port that comes back is not remembered for its
 *   other indexes.) So a REQUEST makes a lane once at most, whatever is forgotten.
 *
 * ROOM
 *   A lane is paid by whoever had it made: a user of this node, or t->peers, for all that peers
 *   have made. It may be used by everybody. A port has conf.max lanes, beside those whose queue
 *   pairs rest, a payer its limit. If there is no room, a lane is closed that is UP, not in use
 *   and was not used for conf.idle_min_ns: the least recently used one of the payer with the
 *   most lanes, if that has more than the payer that wants one; else of its own. So who
 *   makes lanes to everywhere closes its own, and nobody else gets less than an equal share. A
 *   payer waits for one such close at a time. Some lanes are kept for this node's users
 *   (the limit of t->peers), so that peers cannot have all.
 *   Lanes that were not used for conf.idle_ns are closed anyway.
 *
 * Locking: none here; a table and all its lanes are under one lock of the caller.
 */
#ifndef KRP_LANES_H
#define KRP_LANES_H

#include "krp_lane_end.h"
#include "krp_records.h"

#define KRP_LANES_MAX 65536
#define KRP_LANES_WAYS 4 /* places of a port among what is remembered */

/**
 * struct krp_lanes_conf - What a port decides.
 * @lane: how lanes behave.
 * @idle_min_ns: a lane that was used so recently is not closed for another one.
 * @idle_ns: one that was not used for so long is closed.
 * @max: lanes, 1 to KRP_LANES_MAX.
 * @reserved: of them, those that peers do not get; below @max.
 * @of_pair: lanes of two ports, 1 to KRP_LANE_INDEXES.
 * @half_max: so many may have been accepted without READY from their requesters before all
 *	further ones need a cookie; twice as many is the most there are. At least 1.
 */
struct krp_lanes_conf {
	struct krp_lane_conf lane;
	__u64 idle_min_ns;
	__u64 idle_ns;
	__u32 max;
	__u32 reserved;
	__u32 of_pair;
	__u32 half_max;
};

/**
 * struct krp_lanes_payer - Somebody who has lanes made.
 * @link: in krp_lanes.payers.
 * @lanes: its lanes, least recently used first.
 * @nr: how many.
 * @limit: how many there may be, at least 1.
 * @closing: a lane is being closed for it.
 */
struct krp_lanes_payer {
	struct krp_list link;
	struct krp_list lanes;
	__u32 nr;
	__u32 limit;
	__u32 closing;
};

/**
 * enum krp_lanes_place - Where an entry is.
 * @KRP_LANES_FREE: it is no lane.
 * @KRP_LANES_ACTIVE: it counts.
 * @KRP_LANES_RESTING: its queue pair rests.
 */
enum krp_lanes_place {
	KRP_LANES_FREE,
	KRP_LANES_ACTIVE,
	KRP_LANES_RESTING,
};

/**
 * struct krp_lanes_entry - A lane in the table.
 * @lane: its end here.
 * @link: in the list of its payer, of those that rest, or of those that are free.
 * @chain: next of the same hash.
 * @payer: who pays, while it is ACTIVE.
 * @closer: the payer that waits for its end, or NULL.
 * @used_ns: when it was used last.
 * @busy: how many use it.
 * @place: enum krp_lanes_place.
 * @half: it counts in krp_lanes.half.
 * @rsvd: unused.
 */
struct krp_lanes_entry {
	struct krp_lane lane;
	struct krp_list link;
	struct krp_lanes_entry *chain;
	struct krp_lanes_payer *payer;
	struct krp_lanes_payer *closer;
	__u64 used_ns;
	__u32 busy;
	__u8 place;
	__u8 half;
	__u8 rsvd[2];
};

/**
 * struct krp_lanes_known - What is remembered of a port.
 * @gid: it; zero: nothing.
 * @generation: of the port.
 * @floor: by index, the largest number that was accepted or is spent.
 * @used_ns: when it was used last.
 */
struct krp_lanes_known {
	__u8 gid[KRP_GID_BYTES];
	__u64 generation;
	__u64 floor[KRP_LANE_INDEXES];
	__u64 used_ns;
};

/**
 * struct krp_lanes_memory - Memory of a table; the caller's, and stays.
 * @entry: entries, twice conf.max: as many may rest as are used.
 * @chains: of the hash.
 * @known: what is remembered of peers.
 * @chains_nr: how many, a power of two.
 * @known_nr: likewise, KRP_LANES_WAYS at least.
 */
struct krp_lanes_memory {
	struct krp_lanes_entry *entry;
	struct krp_lanes_entry **chains;
	struct krp_lanes_known *known;
	__u32 chains_nr;
	__u32 known_nr;
};

/**
 * struct krp_lanes - All lanes of a port.
 * @conf: what it decides.
 * @mem: its memory.
 * @gid: of the port.
 * @generation: of the node.
 * @seed: of the hashes, random.
 * @free: entries that are free.
 * @resting: those whose queue pairs rest, oldest first.
 * @payers: all payers.
 * @peers: the one for what peers have made, or users that are gone.
 * @active: lanes that count.
 * @half: of them, those accepted without READY from the requester.
 * @number: last number that this port has given a lane.
 * @forgot_ms: when a port was last forgotten, in ms; 0: none ever was.
 * @shut: no lane is made any more.
 * @rsvd: unused.
 * @made: lanes made.
 * @closed: of them, those closed for others.
 * @late: REQUESTs dropped because their numbers are spent.
 */
struct krp_lanes {
	struct krp_lanes_conf conf;
	struct krp_lanes_memory mem;
	__u8 gid[KRP_GID_BYTES];
	__u64 generation;
	__u64 seed;
	struct krp_list free;
	struct krp_list resting;
	struct krp_list payers;
	struct krp_lanes_payer peers;
	__u32 active;
	__u32 half;
	__u64 number;
	__u64 forgot_ms;
	__u8 shut;
	__u8 rsvd[7];
	__u64 made;
	__u64 closed;
	__u64 late;
};

/**
 * enum krp_lanes_verdict - What becomes of a REQUEST.
 * @KRP_LANES_DROP: nothing; it is counted.
 * @KRP_LANES_LOOK_UP: READ the record of its GID from the table, then judge again.
 * @KRP_LANES_CHALLENGE: send krp_lanes_answer() of that type, with a cookie of now.
 * @KRP_LANES_REFUSE: send krp_lanes_answer() of that type.
 * @KRP_LANES_AGAIN: its lane is there: krp_lanes_received().
 * @KRP_LANES_REPLACE: krp_lanes_replace(); it comes again.
 * @KRP_LANES_ACCEPT: take a queue pair, and krp_lanes_accept().
 */
enum krp_lanes_verdict {
	KRP_LANES_DROP,
	KRP_LANES_LOOK_UP,
	KRP_LANES_CHALLENGE,
	KRP_LANES_REFUSE,
	KRP_LANES_AGAIN,
	KRP_LANES_REPLACE,
	KRP_LANES_ACCEPT,
};

/**
 * struct krp_lanes_facts - What a port knows when a REQUEST has come.
 * @record: of its gid, KRP_SERVICE_NODE; NULL: not cached, or there is none.
 * @proof: what its proof must be, for its stamp, GID and generation; not zero.
 * @proved: its MAC is right.
 * @fresh: without keys: @record was READ after it had come, or just now; with NULL: there is none.
 */
struct krp_lanes_facts {
	const struct krp_value *record;
	__u64 proof;
	__u8 proved;
	__u8 fresh;
};

/** krp_lanes_chain() - Chain of a port. @t: table. @gid: of the port. Context: any.
 * Return: where it begins.
 */
static inline struct krp_lanes_entry **krp_lanes_chain(const struct krp_lanes *t, const __u8 *gid)
{
	return &t->mem.chains[krp_xxh64(gid, KRP_GID_BYTES, t->seed) & (t->mem.chains_nr - 1)];
}

/**
 * krp_lanes_payer_init() - Somebody may have lanes made.
 * @t: table.
 * @payer: to set up.
 * @limit: how many lanes, at least 1.
 *
 * Context: any.
 */
static inline void krp_lanes_payer_init(struct krp_lanes *t, struct krp_lanes_payer *payer,
					__u32 limit)
{
	memset(payer, 0, sizeof(*payer));
	krp_list_init(&payer->lanes);
	krp_list_add(&payer->link, &t->payers);
	payer->limit = limit;
}

/**
 * krp_lanes_init() - A table without lanes.
 * @t: to set up.
 * @conf: what the port decides.
 * @mem: memory; all of it is set up here.
 * @gid: of the port.
 * @generation: of the node.
 * @seed: random.
 *
 * Context: any.
 * Return: 0; %-EINVAL: a value is out of its range.
 */
static inline int krp_lanes_init(struct krp_lanes *t, const struct krp_lanes_conf *conf,
				 const struct krp_lanes_memory *mem, const __u8 *gid,
				 __u64 generation, __u64 seed)
{
	__u32 i;

	if (!conf->max || conf->max > KRP_LANES_MAX || conf->reserved >= conf->max ||
	    !conf->of_pair || conf->of_pair > KRP_LANE_INDEXES || !conf->half_max ||
	    !mem->chains_nr || mem->chains_nr & (mem->chains_nr - 1) ||
	    mem->known_nr < KRP_LANES_WAYS || mem->known_nr & (mem->known_nr - 1) || !generation)
		return -EINVAL;
	memset(t, 0, sizeof(*t));
	memset(mem->entry, 0, 2 * conf->max * sizeof(*mem->entry));
	memset(mem->chains, 0, mem->chains_nr * sizeof(struct krp_lanes_entry *));
	memset(mem->known, 0, mem->known_nr * sizeof(*mem->known));
	t->conf = *conf;
	t->mem = *mem;
	memcpy(t->gid, gid, sizeof(t->gid));
	t->generation = generation;
	t->seed = seed;
	krp_list_init(&t->free);
	krp_list_init(&t->resting);
	krp_list_init(&t->payers);
	krp_lanes_payer_init(t, &t->peers, conf->max - conf->reserved);
	for (i = 0; i < 2 * conf->max; i++)
		krp_list_add(&mem->entry[i].link, &t->free);
	return 0;
}

/**
 * krp_lanes_find() - The lane to a port.
 * @t: table.
 * @gid: of the port.
 * @index: of the lane.
 *
 * Context: any.
 * Return: it, in any state before RESTING, or NULL.
 */
static inline struct krp_lanes_entry *krp_lanes_find(const struct krp_lanes *t, const __u8 *gid,
						     unsigned int index)
{
	struct krp_lanes_entry *e;

	for (e = *krp_lanes_chain(t, gid); e; e = e->chain)
		if (e->place == KRP_LANES_ACTIVE && e->lane.ports.index == index &&
		    !memcmp(e->lane.ports.peer_gid, gid, KRP_GID_BYTES))
			return e;
	return NULL;
}

/**
 * krp_lanes_of() - The lane that a packet is of.
 * @t: table.
 * @p: packet, checked.
 *
 * Context: any.
 * Return: it, RESTING too, or NULL.
 */
static inline struct krp_lanes_entry *krp_lanes_of(const struct krp_lanes *t,
						   const struct krp_lane_packet *p)
{
	struct krp_lanes_entry *e;

	for (e = *krp_lanes_chain(t, p->gid); e; e = e->chain)
		if (krp_lane_is(&e->lane, p))
			return e;
	return NULL;
}

/** krp_lanes_known_of() - What is remembered of a port. @t: table. @gid: of the port.
 * Context: any. Return: it, or NULL.
 */
static inline struct krp_lanes_known *krp_lanes_known_of(const struct krp_lanes *t, const __u8 *gid)
{
	__u64 set = krp_xxh64(gid, KRP_GID_BYTES, t->seed) % (t->mem.known_nr / KRP_LANES_WAYS);
	struct krp_lanes_known *k = &t->mem.known[set * KRP_LANES_WAYS];
	__u32 i;

	for (i = 0; i < KRP_LANES_WAYS; i++)
		if (!memcmp(k[i].gid, gid, KRP_GID_BYTES))
			return &k[i];
	return NULL;
}

/**
 * krp_lanes_note() - Remember that a number is spent.
 * @t: table.
 * @now_ns: the clock.
 * @p: packet of the port that has given it.
 * @number: it.
 *
 * Context: any.
 */
static inline void krp_lanes_note(struct krp_lanes *t, __u64 now_ns,
				  const struct krp_lane_packet *p, __u64 number)
{
	__u64 set = krp_xxh64(p->gid, KRP_GID_BYTES, t->seed) % (t->mem.known_nr / KRP_LANES_WAYS);
	struct krp_lanes_known *k = krp_lanes_known_of(t, p->gid), *way;
	__u64 generation = krp_le64_to_cpu(p->generation);
	__u32 i;

	if (!k) {
		k = &t->mem.known[set * KRP_LANES_WAYS];
		for (i = 1, way = k; i < KRP_LANES_WAYS; i++)
			k = way[i].used_ns < k->used_ns ? &way[i] : k;
		if (!krp_is_zero(k->gid, KRP_GID_BYTES) && !KRP_MUTANT("forgets and forgets that"))
			t->forgot_ms = now_ns / KRP_LANE_NS_PER_MS + 1;
		memset(k, 0, sizeof(*k));
		memcpy(k->gid, p->gid, KRP_GID_BYTES);
	}
	if (k->generation < generation) {
		memset(k->floor, 0, sizeof(k->floor));
		k->generation = generation;
	}
	k->used_ns = now_ns + 1;
	if (k->generation == generation && k->floor[p->index] < number)
		k->floor[p->index] = number;
}

/** krp_lanes_evictable() - Whether a lane may be closed for another one. @t: table. @e: lane.
 * @now_ns: the clock. Context: any. Return: 1 or 0.
 */
static inline int krp_lanes_evictable(const struct krp_lanes *t, const struct krp_lanes_entry *e,
				      __u64 now_ns)
{
	return e->lane.state == KRP_LANE_UP && !e->busy &&
	       now_ns - e->used_ns >= t->conf.idle_min_ns;
}

/** krp_lanes_oldest() - The lane of a payer that may be closed and was used least recently.
 * @t: table. @payer: it. @now_ns: the clock. Context: any. Return: it, or NULL.
 */
static inline struct krp_lanes_entry *
krp_lanes_oldest(const struct krp_lanes *t, const struct krp_lanes_payer *payer, __u64 now_ns)
{
	const struct krp_list *l;

	for (l = payer->lanes.next; l != &payer->lanes; l = l->next) {
		struct krp_lanes_entry *e = krp_entry(l, struct krp_lanes_entry, link);

		if (krp_lanes_evictable(t, e, now_ns))
			return e;
	}
	return NULL;
}

/** krp_lanes_victim() - The lane to close for a payer; see ROOM. @t: table. @payer: it.
 * @now_ns: the clock. Context: any. Return: the lane, or NULL.
 */
static inline struct krp_lanes_entry *
krp_lanes_victim(const struct krp_lanes *t, const struct krp_lanes_payer *payer, __u64 now_ns)
{
	struct krp_lanes_entry *best = NULL, *e;
	const struct krp_list *l;
	__u32 most = payer->nr;

	if (payer->nr >= payer->limit)
		return krp_lanes_oldest(t, payer, now_ns);
	for (l = t->payers.next; l != &t->payers; l = l->next) {
		const struct krp_lanes_payer *q = krp_entry(l, struct krp_lanes_payer, link);

		if (q == payer || q->nr <= most)
			continue;
		e = krp_lanes_oldest(t, q, now_ns);
		best = e ? e : best;
		most = e ? q->nr : most;
	}
	return best ? best : krp_lanes_oldest(t, payer, now_ns);
}

/**
 * krp_lanes_room() - Make room for one more lane of a payer.
 * @t: table.
 * @payer: who wants it.
 * @now_ns: the clock.
 * @ret_pull: a lane that is closed for it and is to be pulled, or NULL.
 *
 * Context: any. Costs as much as there are lanes, if there is no room.
 * Return: 0: there is; %-EAGAIN: not before one that is being closed has ended, or a queue pair
 * has rested; %-EDQUOT: the payer is at its limit, and none of its lanes may be closed now;
 * %-EBUSY: none of any payer that has more may be; %-ESHUTDOWN: none is made any more.
 */
static inline int krp_lanes_room(struct krp_lanes *t, struct krp_lanes_payer *payer, __u64 now_ns,
				 struct krp_lanes_entry **ret_pull)
{
	int full = t->active >= t->conf.max, over = payer->nr >= payer->limit;
	struct krp_lanes_entry *victim;

	*ret_pull = NULL;
	if (t->shut)
		return -ESHUTDOWN;
	if (!full && !over)
		return krp_list_empty(&t->free) ? -EAGAIN : 0;
	if (payer->closing)
		return -EAGAIN;
	victim = krp_lanes_victim(t, payer, now_ns);
	if (!victim)
		return over ? -EDQUOT : -EBUSY;
	krp_lane_close(&victim->lane, now_ns);
	victim->closer = payer;
	payer->closing = 1;
	t->closed++;
	*ret_pull = victim;
	return -EAGAIN;
}

/** krp_lanes_take() - A new entry. @t: table with room. @payer: who pays. @ports: of the lane.
 * @own: its queue pair. @now_ns: the clock. Context: any. Return: it, or NULL: %-EINVAL of
 * krp_lane_init().
 */
static inline struct krp_lanes_entry *krp_lanes_take(struct krp_lanes *t,
						     struct krp_lanes_payer *payer,
						     const struct krp_lane_ports *ports,
						     const struct krp_lane_end *own, __u64 now_ns)
{
	struct krp_lanes_entry *e = krp_entry(t->free.next, struct krp_lanes_entry, link);
	struct krp_lanes_entry **chain = krp_lanes_chain(t, ports->peer_gid);

	if (krp_lane_init(&e->lane, &t->conf.lane, ports, own))
		return NULL;
	krp_list_del(&e->link);
	e->place = KRP_LANES_ACTIVE;
	e->payer = payer;
	e->closer = NULL;
	e->used_ns = now_ns;
	e->busy = 0;
	e->half = 0;
	e->chain = *chain;
	*chain = e;
	krp_list_add(&e->link, &payer->lanes);
	payer->nr++;
	t->active++;
	t->made++;
	return e;
}

/**
 * krp_lanes_make() - Make a lane for somebody on this node: REQUEST it.
 * @t: table, for which krp_lanes_room() has said 0, without a lane of these ports and index.
 * @payer: who pays.
 * @ports: of the lane, index below conf.of_pair.
 * @own: queue pair.
 * @nonce: random, not zero.
 * @value: record of this node.
 * @now_ns: the clock.
 *
 * Context: any.
 * Return: it; NULL: a value is out of its range.
 */
static inline struct krp_lanes_entry *krp_lanes_make(struct krp_lanes *t,
						     struct krp_lanes_payer *payer,
						     const struct krp_lane_ports *ports,
						     const struct krp_lane_end *own, __u64 nonce,
						     const struct krp_value *value, __u64 now_ns)
{
	struct krp_lanes_entry *e;

	if (ports->index >= t->conf.of_pair || !nonce || !krp_value_valid(value) ||
	    !krp_kind_port(value->kind) || !value->dct.ud_qpn ||
	    krp_le64_to_cpu(value->generation) != ports->generation)
		return NULL;
	e = krp_lanes_take(t, payer, ports, own, now_ns);
	if (e)
		krp_lane_request(&e->lane, now_ns, ++t->number, nonce, value);
	return e;
}

/** krp_lanes_move() - An entry is paid, or kept, elsewhere. @e: it. @list: where. Context: any. */
static inline void krp_lanes_move(struct krp_lanes_entry *e, struct krp_list *list)
{
	krp_list_del(&e->link);
	krp_list_add(&e->link, list);
}

/** krp_lanes_unpaid() - A lane does not count any more. @t: table. @e: it. Context: any. */
static inline void krp_lanes_unpaid(struct krp_lanes *t, struct krp_lanes_entry *e)
{
	e->place = KRP_LANES_RESTING;
	e->payer->nr--;
	e->payer = NULL;
	if (e->closer)
		e->closer->closing = 0;
	e->closer = NULL;
	t->active--;
	krp_lanes_move(e, &t->resting);
}

/**
 * krp_lanes_settle() - Count a lane as it is now.
 * @t: table.
 * @e: lane, of which krp_lane_next() has said all that there is to do.
 *
 * To be called whenever it has been pulled. After KRP_LANE_FORGET the entry is free.
 *
 * Context: any.
 */
static inline void krp_lanes_settle(struct krp_lanes *t, struct krp_lanes_entry *e)
{
	const struct krp_lane *l = &e->lane;
	struct krp_lanes_entry **at;
	__u8 half = !l->requester && !l->peer_ready && l->state >= KRP_LANE_CONNECTING &&
		    l->state <= KRP_LANE_LISTENING;

	t->half += half;
	t->half -= e->half;
	e->half = half;
	if (e->place == KRP_LANES_ACTIVE && l->state >= KRP_LANE_RESTING)
		krp_lanes_unpaid(t, e);
	if (e->place != KRP_LANES_RESTING || l->state != KRP_LANE_GONE)
		return;
	at = krp_lanes_chain(t, l->ports.peer_gid);
	while (*at != e)
		at = &(*at)->chain;
	*at = e->chain;
	e->place = KRP_LANES_FREE;
	krp_lanes_move(e, &t->free);
}

/**
 * krp_lanes_use() - Somebody uses a lane.
 * @e: lane.
 * @now_ns: the clock.
 *
 * Context: any.
 */
static inline void krp_lanes_use(struct krp_lanes_entry *e, __u64 now_ns)
{
	e->busy++;
	e->used_ns = now_ns;
	if (e->place == KRP_LANES_ACTIVE)
		krp_lanes_move(e, &e->payer->lanes);
}

/** krp_lanes_unuse() - Undo krp_lanes_use(). @e: lane. @now_ns: the clock. Context: any. */
static inline void krp_lanes_unuse(struct krp_lanes_entry *e, __u64 now_ns)
{
	e->busy -= e->busy > 0;
	e->used_ns = now_ns;
	if (e->place == KRP_LANES_ACTIVE)
		krp_lanes_move(e, &e->payer->lanes);
}

/**
 * krp_lanes_idle() - Close a lane that was not used for long.
 * @t: table.
 * @now_ns: the clock.
 *
 * Context: any. Costs as much as there are payers.
 * Return: the lane, which is to be pulled; NULL: there is none.
 */
static inline struct krp_lanes_entry *krp_lanes_idle(struct krp_lanes *t, __u64 now_ns)
{
	const struct krp_list *l;

	for (l = t->payers.next; l != &t->payers; l = l->next) {
		const struct krp_lanes_payer *q = krp_entry(l, struct krp_lanes_payer, link);
		struct krp_lanes_entry *e = krp_lanes_oldest(t, q, now_ns);

		if (e && now_ns - e->used_ns >= t->conf.idle_ns && krp_lane_close(&e->lane, now_ns))
			return e;
	}
	return NULL;
}

/**
 * krp_lanes_payer_end() - Somebody has no lanes made any more: they are paid by t->peers.
 * @t: table.
 * @payer: it.
 *
 * Context: any. Costs as much as there are entries.
 */
static inline void krp_lanes_payer_end(struct krp_lanes *t, struct krp_lanes_payer *payer)
{
	struct krp_list *l;
	__u32 i;

	for (l = payer->lanes.next; l != &payer->lanes; l = l->next)
		krp_entry(l, struct krp_lanes_entry, link)->payer = &t->peers;
	krp_list_splice(&payer->lanes, &t->peers.lanes);
	t->peers.nr += payer->nr;
	payer->nr = 0;
	krp_list_del(&payer->link);
	for (i = 0; i < 2 * t->conf.max; i++)
		if (t->mem.entry[i].closer == payer)
			t->mem.entry[i].closer = NULL;
}

/** krp_lanes_cookie_good() - Whether a REQUEST has a cookie that is good. @t: table.
 * @now_ns: the clock. @p: REQUEST. @known: a number of its port and index is remembered.
 * @proof: what it must be.
 * Context: any. Return: 1 or 0.
 */
static inline int krp_lanes_cookie_good(const struct krp_lanes *t, __u64 now_ns,
					const struct krp_lane_packet *p, int known, __u64 proof)
{
	__u64 stamp = krp_le64_to_cpu(p->stamp), now_ms = now_ns / KRP_LANE_NS_PER_MS;

	if (!stamp || krp_le64_to_cpu(p->proof) != proof || stamp > now_ms)
		return 0;
	if (now_ms - stamp > KRP_LANE_COOKIE_MS)
		return 0;
	return known || stamp > t->forgot_ms || KRP_MUTANT("forgets and takes old cookies");
}

/** krp_lanes_admit() - Whether a REQUEST is from whom it says, and new: without it nothing is done
 * for it. @t: table. @now_ns: the clock. @p: REQUEST, checked, to this port. @facts: what the port
 * knows. @ret_status: set with KRP_LANES_REFUSE. Context: any.
 * Return: enum krp_lanes_verdict; KRP_LANES_ACCEPT: go on.
 */
static inline enum krp_lanes_verdict krp_lanes_admit(struct krp_lanes *t, __u64 now_ns,
						     const struct krp_lane_packet *p,
						     const struct krp_lanes_facts *facts,
						     __u32 *ret_status)
{
	const struct krp_lanes_known *k = krp_lanes_known_of(t, p->gid);
	const struct krp_value *record = facts->record;
	__u64 generation = krp_le64_to_cpu(p->generation), floor;

	if (!facts->proved &&
	    (!record || !krp_kind_port(record->kind) || record->generation != p->generation ||
	     record->dct.ud_qpn != p->value.dct.ud_qpn))
		return facts->fresh ? KRP_LANES_DROP : KRP_LANES_LOOK_UP;
	*ret_status = p->index >= t->conf.of_pair ? KRP_LANE_INDEX : 0;
	if (krp_le64_to_cpu(p->peer_generation) != t->generation)
		*ret_status = KRP_LANE_STALE;
	else if (t->shut)
		*ret_status = KRP_LANE_SHUT;
	if (*ret_status)
		return KRP_LANES_REFUSE;
	if ((k && generation < k->generation) ||
	    (record && generation < krp_le64_to_cpu(record->generation)))
		return KRP_LANES_DROP;
	floor = k && generation == k->generation ? k->floor[p->index] : 0;
	if (krp_le64_to_cpu(p->lane) <= floor && !KRP_MUTANT("takes late requests")) {
		t->late++;
		return KRP_LANES_DROP;
	}
	if (facts->proved && (floor || !t->forgot_ms) && t->half < t->conf.half_max)
		return KRP_LANES_ACCEPT;
	return krp_lanes_cookie_good(t, now_ns, p, !!floor, facts->proof) ? KRP_LANES_ACCEPT
									  : KRP_LANES_CHALLENGE;
}

/** krp_lanes_newest_generation() - The newest generation of a port that lanes are to, whoever asks
 * a port having only a record's word for it. @t: table. @gid: of the port. @ret_oldest: set: the
 * oldest one, of which a record was, too. Context: any. Return: it; 0: there is no lane.
 */
static inline __u64 krp_lanes_newest_generation(const struct krp_lanes *t, const __u8 *gid,
						__u64 *ret_oldest)
{
	const struct krp_lanes_entry *e;
	__u64 newest = 0;

	*ret_oldest = KRP_LANE_FOREVER_NS;
	for (e = *krp_lanes_chain(t, gid); e; e = e->chain) {
		__u64 generation = e->lane.ports.peer_generation;

		if (e->lane.state >= KRP_LANE_RESETTING ||
		    memcmp(e->lane.ports.peer_gid, gid, KRP_GID_BYTES))
			continue;
		if (e->lane.state != KRP_LANE_ASKING)
			newest = generation > newest ? generation : newest;
		*ret_oldest = generation < *ret_oldest ? generation : *ret_oldest;
	}
	return newest;
}

/**
 * krp_lanes_judge() - What becomes of a REQUEST.
 * @t: table.
 * @now_ns: the clock.
 * @p: REQUEST, checked, whose peer_gid is this port's.
 * @facts: what the port knows.
 * @ret_status: set with KRP_LANES_REFUSE: why.
 * @ret_pull: a lane that is to be pulled, or NULL.
 *
 * Context: any.
 * Return: enum krp_lanes_verdict.
 */
static inline enum krp_lanes_verdict krp_lanes_judge(struct krp_lanes *t, __u64 now_ns,
						     const struct krp_lane_packet *p,
						     const struct krp_lanes_facts *facts,
						     __u32 *ret_status,
						     struct krp_lanes_entry **ret_pull)
{
	struct krp_lanes_entry *e = krp_lanes_of(t, p);
	__u64 generation = krp_le64_to_cpu(p->generation), oldest;
	enum krp_lanes_verdict verdict;
	int asking, err;

	*ret_pull = NULL;
	/* without keys too: its nonce was not guessed */
	if (e && e->lane.ports.peer_generation == generation)
		return e->place == KRP_LANES_ACTIVE ? KRP_LANES_AGAIN : KRP_LANES_DROP;
	verdict = krp_lanes_admit(t, now_ns, p, facts, ret_status);
	if (verdict != KRP_LANES_ACCEPT)
		return verdict;
	if (krp_lanes_newest_generation(t, p->gid, &oldest) > generation &&
	    !KRP_MUTANT("takes older generations"))
		return KRP_LANES_DROP;
	if (oldest < generation)
		return KRP_LANES_REPLACE;
	e = krp_lanes_find(t, p->gid, p->index);
	asking = e && e->lane.state == KRP_LANE_ASKING;
	/* of another generation: the REQUEST comes again, and that of this port is not answered */
	if (asking && e->lane.ports.peer_generation != generation &&
	    !KRP_MUTANT("takes older generations"))
		return KRP_LANES_DROP;
	if (asking && memcmp(t->gid, p->gid, KRP_GID_BYTES) < 0)
		return KRP_LANES_DROP;
	if (asking)
		return KRP_LANES_ACCEPT;
	if (e)
		return e->lane.state < KRP_LANE_DRAINING ? KRP_LANES_REPLACE : KRP_LANES_DROP;
	if (t->half >= 2 * t->conf.half_max)
		return KRP_LANES_DROP;
	err = krp_lanes_room(t, &t->peers, now_ns, ret_pull);
	if (err == -EAGAIN)
		return KRP_LANES_DROP;
	*ret_status = KRP_LANE_BUSY;
	return err ? KRP_LANES_REFUSE : KRP_LANES_ACCEPT;
}

/**
 * krp_lanes_accept() - Make a lane of a REQUEST, or give way with one that crosses it.
 * @t: table; krp_lanes_judge() has said KRP_LANES_ACCEPT, and nothing has changed since.
 * @now_ns: the clock.
 * @p: REQUEST.
 * @ports: of the lane: mtu and max_rd_atomic are the port's; the rest is filled in.
 * @own: queue pair; unused if there is a lane of this index, which has one.
 *
 * Context: any.
 * Return: the lane, which is to be pulled; NULL: @ports or @own is out of its range.
 */
static inline struct krp_lanes_entry *krp_lanes_accept(struct krp_lanes *t, __u64 now_ns,
						       const struct krp_lane_packet *p,
						       struct krp_lane_ports *ports,
						       const struct krp_lane_end *own)
{
	struct krp_lanes_entry *e = krp_lanes_find(t, p->gid, p->index);

	memcpy(ports->gid, t->gid, KRP_GID_BYTES);
	memcpy(ports->peer_gid, p->gid, KRP_GID_BYTES);
	ports->generation = t->generation;
	ports->peer_generation = krp_le64_to_cpu(p->generation);
	ports->index = p->index;
	if (!e)
		e = krp_lanes_take(t, &t->peers, ports, own, now_ns);
	if (!e)
		return NULL;
	krp_lanes_note(t, now_ns, p, krp_le64_to_cpu(p->lane));
	krp_lane_accept(&e->lane, p, t->number);
	return e;
}

/**
 * krp_lanes_replace() - End a lane that is in the way of a REQUEST.
 * @t: table.
 * @gid: of the port.
 * @generation: of the port.
 * @index: lane that ends also if it is to this generation, unless it is ASKING, or ending already;
 *	KRP_LANE_INDEXES: none.
 *
 * To be called until it says NULL. Also for a port of which the table says that it has another
 * generation.
 *
 * Context: any.
 * Return: a lane that has failed by that and is to be pulled, or NULL.
 */
static inline struct krp_lanes_entry *krp_lanes_replace(struct krp_lanes *t, const __u8 *gid,
							__u64 generation, unsigned int index)
{
	struct krp_lanes_entry *e;

	for (e = *krp_lanes_chain(t, gid); e; e = e->chain) {
		const struct krp_lane_ports *ports = &e->lane.ports;
		int made = e->lane.state > KRP_LANE_ASKING && e->lane.state < KRP_LANE_DRAINING;

		if (e->lane.state >= KRP_LANE_RESETTING ||
		    memcmp(ports->peer_gid, gid, KRP_GID_BYTES) ||
		    (ports->peer_generation >= generation && (ports->index != index || !made)))
			continue;
		krp_lane_failed(&e->lane, -ECONNRESET);
		return e;
	}
	return NULL;
}

/**
 * krp_lanes_received() - A packet has come that is no new REQUEST.
 * @t: table.
 * @now_ns: the clock.
 * @p: packet, checked, to this port, and proved if there are keys.
 *
 * Context: any.
 * Return: its lane, which is to be pulled; NULL: there is none: krp_lanes_unknown().
 */
static inline struct krp_lanes_entry *krp_lanes_received(struct krp_lanes *t, __u64 now_ns,
							 const struct krp_lane_packet *p)
{
	struct krp_lanes_entry *e = krp_lanes_of(t, p);
	int asking = e && e->lane.state == KRP_LANE_ASKING;

	if (!e)
		return NULL;
	if (!krp_lane_received(&e->lane, now_ns, p))
		return e;
	if (asking && p->spent)
		krp_lanes_note(t, now_ns, p, krp_le64_to_cpu(p->spent));
	return e;
}

/**
 * krp_lanes_answer() - Make a packet that no lane says.
 * @p: what it answers, checked.
 * @type: KRP_LANE_CHALLENGE, KRP_LANE_REFUSE, KRP_LANE_CLOSE or KRP_LANE_CLOSED; cookie and
 *	status are the caller's to fill in.
 * @generation: of this node.
 * @ret: filled; without key id and MAC.
 *
 * Context: any.
 */
static inline void krp_lanes_answer(const struct krp_lane_packet *p, unsigned int type,
				    __u64 generation, struct krp_lane_packet *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->magic = krp_cpu_to_le16(KRP_LANE_MAGIC);
	ret->version = KRP_LANE_VERSION;
	ret->type = (__u8)type;
	ret->flags = p->flags ^ KRP_LANE_REQUESTER;
	ret->index = p->index;
	ret->lane = p->lane;
	ret->nonce = p->nonce;
	ret->generation = krp_cpu_to_le64(generation);
	ret->peer_generation = p->generation;
	memcpy(ret->gid, p->peer_gid, KRP_GID_BYTES);
	memcpy(ret->peer_gid, p->gid, KRP_GID_BYTES);
}

/**
 * krp_lanes_unknown() - Make the answer to a packet of a lane that is not there.
 * @t: table.
 * @p: packet, checked, to this port, and proved if there are keys.
 * @ret: filled.
 *
 * Without keys it goes to the record of p->gid, if that is cached, or nowhere.
 *
 * Context: any.
 * Return: 1; 0: no answer is due.
 */
static inline int krp_lanes_unknown(const struct krp_lanes *t, const struct krp_lane_packet *p,
				    struct krp_lane_packet *ret)
{
	if (krp_le64_to_cpu(p->peer_generation) != t->generation)
		return 0;
	if (p->type != KRP_LANE_READY && p->type != KRP_LANE_CLOSE)
		return 0;
	krp_lanes_answer(p, p->type == KRP_LANE_CLOSE ? KRP_LANE_CLOSED : KRP_LANE_CLOSE,
			 t->generation, ret);
	return 1;
}

#endif /* KRP_LANES_H */
