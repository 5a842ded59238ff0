// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Ports that make lanes: see lane_world.h.
 */
#include <stdlib.h>

#include "tests/unit/lane_world.h"

#define LW_KEY 0x6b65796b65796b65ULL
#define LW_FORGED 0xf0f0000000000000ULL /* first bits of a nonce that the hostile host draws */
#define LW_QKEY 0x1234

const char *lw_mutant;

uint64_t lw_random(struct lw_world *w, uint64_t below)
{
	w->random += KRP_GOLDEN;
	return below ? krp_mix64(w->random) % below : 0;
}

/* One of so many; 0: never. */
static bool lw_one_of(struct lw_world *w, uint32_t odds)
{
	return odds && !w->calm && !lw_random(w, odds);
}

static void lw_wrong(struct lw_world *w, const char *what)
{
	if (!w->broken)
		w->broken = what;
}

static void lw_gid(uint32_t port, uint8_t *gid)
{
	memset(gid, 0, KRP_GID_BYTES);
	gid[0] = 0xfe;
	gid[15] = (uint8_t)(port + 1);
}

static uint32_t lw_port_of(const uint8_t *gid)
{
	return gid[15] - 1U;
}

/* In place of HMAC: who does not know the key cannot compute it. */
static uint64_t lw_mac(const struct krp_lane_packet *p)
{
	return krp_xxh64(p, offsetof(struct krp_lane_packet, mac), LW_KEY);
}

static void lw_prove(const struct lw_world *w, struct krp_lane_packet *p)
{
	uint64_t mac;

	if (!w->plan.keys)
		return;
	p->key_id[0] = 1;
	mac = lw_mac(p);
	memcpy(p->mac, &mac, sizeof(mac));
}

static bool lw_proved(const struct krp_lane_packet *p)
{
	uint64_t mac = lw_mac(p);

	return p->key_id[0] && !memcmp(p->mac, &mac, sizeof(mac));
}

static uint64_t lw_proof(const struct lw_port *port, const struct krp_lane_packet *p)
{
	uint64_t words[3] = { krp_le64_to_cpu(p->stamp), krp_le64_to_cpu(p->generation),
			      lw_port_of(p->gid) };

	return krp_xxh64(words, sizeof(words), port->secret) | 1;
}

/* A packet goes out: to where its peer_gid is. */
static void lw_fly(struct lw_world *w, const struct krp_lane_packet *p)
{
	uint32_t i, copies = lw_one_of(w, w->plan.twice) ? 2 : 1;

	if (lw_one_of(w, w->plan.lose))
		return;
	for (i = 0; i < copies && w->flights < LW_FLIGHT; i++) {
		struct lw_packet *packet = &w->flight[w->flights++];

		packet->p = *p;
		packet->at_ns = w->now_ns + 1 +
				lw_random(w, 1000ULL * (w->calm ? 10 : w->plan.delay_us) + 1);
	}
}

static void lw_say(struct lw_world *w, struct krp_lane_packet *p)
{
	if (krp_lane_check(p, sizeof(*p)) != KRP_LANE_OK)
		lw_wrong(w, "says what is malformed");
	lw_prove(w, p);
	w->seen[w->seen_nr++ % LW_SEEN] = *p;
	w->sent++;
	lw_fly(w, p);
}

/* lanes, as an onlooker sees them */

static struct lw_born *lw_born_of(struct lw_world *w, uint32_t port, uint64_t generation,
				  uint64_t number)
{
	uint32_t i;

	for (i = w->born_nr; i-- > 0;)
		if (w->born[i].number == number && w->born[i].port == port &&
		    w->born[i].generation == generation)
			return &w->born[i];
	return NULL;
}

/* The end of a lane that is not the one of this entry. */
static void lw_judge_end(struct lw_world *w, const struct lw_side *side, const struct krp_lane *l,
			 int err)
{
	const struct lw_born *b = side->born;
	int other = l->requester;

	if (!b || err)
		return;
	if (b->end[other].posts || b->end[other].outstanding)
		lw_wrong(w, "a queue pair is reset that the peer uses");
	if (b->end[!other].outstanding)
		lw_wrong(w, "a lane is closed that has requests outstanding");
}

/* A request is posted: the peer's queue pair must take it, if nothing has broken. */
static void lw_post(struct lw_world *w, struct lw_side *side, const struct krp_lane *l)
{
	struct lw_born *b = side->born;
	int own = !l->requester;

	if (!b->end[!own].connected && !b->end[!own].hard)
		lw_wrong(w, "posts to a queue pair that is not in RTR");
	b->end[own].outstanding++;
	if (!b->end[!own].connected || b->end[!own].over)
		side->fail_ns = w->now_ns + 20 * LW_MS;
}

static struct lw_side *lw_side_of(struct lw_port *port, const struct krp_lanes_entry *e)
{
	return &port->side[e - port->entry];
}

static void lw_meet(struct lw_world *w, struct lw_side *side, const struct krp_lane *l)
{
	uint32_t requester = lw_port_of(l->requester ? l->ports.gid : l->ports.peer_gid);
	uint64_t generation = l->requester ? l->ports.generation : l->ports.peer_generation;

	side->born = lw_born_of(w, requester, generation, l->number);
	if (!side->born)
		lw_wrong(w, "a lane that nobody has requested");
}

/* what a port does when its machine says so */

static void lw_over(struct lw_side *side, const struct krp_lane *l, bool hard)
{
	if (!side->born)
		return;
	side->born->end[!l->requester].posts = false;
	side->born->end[!l->requester].over = true;
	side->born->end[!l->requester].hard |= hard;
	side->born->end[!l->requester].outstanding = 0;
}

static void lw_forget(struct lw_world *w, struct lw_port *port, struct krp_lanes_entry *e)
{
	struct lw_side *side = lw_side_of(port, e);

	if (side->connect_ns || side->reset_ns || !side->qp)
		lw_wrong(w, "forgets a lane that has commands under way");
	if (side->qp)
		side->qp->used = false;
	memset(side, 0, sizeof(*side));
}

static void lw_do(struct lw_world *w, struct lw_port *port, struct krp_lanes_entry *e,
		  struct krp_lane_todo *todo)
{
	struct lw_side *side = lw_side_of(port, e);
	struct krp_lane *l = &e->lane;

	switch (todo->what) {
	case KRP_LANE_SEND:
		lw_say(w, &todo->packet);
		break;
	case KRP_LANE_CONNECT:
		lw_meet(w, side, l);
		side->connect_ns = w->now_ns + 1 + lw_random(w, 2 * LW_MS);
		break;
	case KRP_LANE_POST:
		w->up++;
		side->born->end[!l->requester].posts = true;
		break;
	case KRP_LANE_STOP:
		if (side->born)
			side->born->end[!l->requester].posts = false;
		side->draining = true;
		break;
	case KRP_LANE_RESET:
		lw_judge_end(w, side, l, todo->err);
		lw_over(side, l, todo->err);
		w->refused += todo->err == -EBUSY || todo->err == -ENOSPC || todo->err == -ESTALE;
		side->draining = false;
		side->resetting = true;
		break;
	case KRP_LANE_FORGET:
		lw_forget(w, port, e);
		break;
	case KRP_LANE_WAIT:
		break;
	}
}

static void lw_pull(struct lw_world *w, struct lw_port *port, struct krp_lanes_entry *e)
{
	struct krp_lane_todo todo;
	unsigned int nr = 0;

	if (e->place == KRP_LANES_FREE)
		return;
	while (krp_lane_next(&e->lane, w->now_ns, &todo) != KRP_LANE_WAIT) {
		lw_do(w, port, e, &todo);
		if (krp_lane_wrong(&e->lane))
			lw_wrong(w, krp_lane_wrong(&e->lane));
		if (todo.what == KRP_LANE_FORGET)
			break;
		if (++nr > 100) {
			lw_wrong(w, "has always something to do");
			break;
		}
	}
	if (todo.what == KRP_LANE_WAIT && todo.until_ns <= w->now_ns)
		lw_wrong(w, "waits for what is over");
	krp_lanes_settle(&port->t, e);
}

/* queue pairs */

static struct lw_qp *lw_qp_take(struct lw_world *w, struct lw_port *port)
{
	uint32_t i, at = (uint32_t)lw_random(w, 4 * LW_LANES);

	for (i = 0; i < 4 * LW_LANES; i++) {
		struct lw_qp *qp = &port->qp[(at + i) % (4 * LW_LANES)];

		if (qp->used)
			continue;
		if (w->now_ns < qp->rested_ns)
			lw_wrong(w, "a number of a queue pair is used again too soon");
		qp->used = true;
		return qp;
	}
	lw_wrong(w, "no queue pair is left");
	return NULL;
}

/* What goes on by itself at an entry: commands end, requests end or fail. */
static void lw_work(struct lw_world *w, struct lw_port *port, struct krp_lanes_entry *e)
{
	struct lw_side *side = lw_side_of(port, e);
	struct krp_lane *l = &e->lane;
	uint32_t *outstanding = side->born ? &side->born->end[!l->requester].outstanding : NULL;
	int err;

	if (side->connect_ns && w->now_ns >= side->connect_ns) {
		side->connect_ns = 0;
		err = lw_one_of(w, w->plan.refuse_connect) ? -EIO : 0;
		if (!err && side->born && l->state == KRP_LANE_CONNECTING)
			side->born->end[!l->requester].connected = true;
		krp_lane_connected(l, w->now_ns, err);
	}
	if (side->fail_ns && w->now_ns >= side->fail_ns) {
		side->fail_ns = 0;
		krp_lane_failed(l, -EIO);
	} else if (outstanding && *outstanding && !side->fail_ns && (w->calm || lw_random(w, 2))) {
		--*outstanding;
		krp_lanes_unuse(e, w->now_ns);
	}
	if (side->draining && !side->connect_ns && !(outstanding && *outstanding)) {
		side->draining = false;
		krp_lane_drained(l, w->now_ns);
	}
	if (side->resetting && !side->connect_ns) {
		side->resetting = false;
		side->reset_ns = w->now_ns + 1 + lw_random(w, 2 * LW_MS);
	}
	if (side->reset_ns && w->now_ns >= side->reset_ns) {
		side->reset_ns = 0;
		side->fail_ns = 0;
		side->qp->rested_ns = w->now_ns + KRP_LANE_REST_MS * LW_MS;
		krp_lane_reset(l, w->now_ns);
	}
	lw_pull(w, port, e);
}

/* packets that come */

static void lw_challenge(struct lw_world *w, struct lw_port *port, const struct krp_lane_packet *p)
{
	struct krp_lane_packet answer;

	krp_lanes_answer(p, KRP_LANE_CHALLENGE, port->generation, &answer);
	answer.stamp = krp_cpu_to_le64(w->now_ns / LW_MS);
	answer.proof = answer.stamp; /* lw_proof() is of what the requester will send */
	{
		struct krp_lane_packet asked = *p;

		asked.stamp = answer.stamp;
		answer.proof = krp_cpu_to_le64(lw_proof(port, &asked));
	}
	w->challenged++;
	lw_say(w, &answer);
}

static void lw_accept(struct lw_world *w, struct lw_port *port, const struct krp_lane_packet *p)
{
	struct krp_lane_ports ports = { .mtu = 3, .max_rd_atomic = 16 };
	struct lw_born *b = lw_born_of(w, lw_port_of(p->gid), krp_le64_to_cpu(p->generation),
				       krp_le64_to_cpu(p->lane));
	struct krp_lanes_entry *e = krp_lanes_find(&port->t, p->gid, p->index);
	struct krp_lane_end own = { .psn = (uint32_t)lw_random(w, 1 << 24) };
	struct lw_qp *qp = NULL;

	if (e)
		w->crossed++;
	else
		qp = lw_qp_take(w, port);
	own.qpn = qp ? qp->qpn : 0;
	if (krp_le64_to_cpu(p->nonce) >> 48 == LW_FORGED >> 48)
		lw_wrong(w, "a forged REQUEST makes a lane");
	else if (!b)
		lw_wrong(w, "a lane that nobody has requested is accepted");
	else if (b->accepted++)
		lw_wrong(w, "a REQUEST makes two lanes");
	e = krp_lanes_accept(&port->t, w->now_ns, p, &ports, &own);
	if (!e) {
		lw_wrong(w, "a lane cannot be made");
		return;
	}
	if (qp)
		lw_side_of(port, e)->qp = qp;
	lw_pull(w, port, e);
}

/* A REQUEST ends what is in its way: the peer has not got that any more. */
static void lw_replace(struct lw_world *w, struct lw_port *port, const struct krp_lane_packet *p)
{
	uint64_t generation = krp_le64_to_cpu(p->generation);
	struct krp_lanes_entry *e;

	while ((e = krp_lanes_replace(&port->t, p->gid, generation, p->index))) {
		const struct lw_born *b = lw_side_of(port, e)->born;

		if (b && b->end[e->lane.requester].connected && !b->end[e->lane.requester].over)
			lw_wrong(w, "a lane is ended by a REQUEST, and the peer has it still");
		lw_pull(w, port, e);
	}
}

static void lw_request(struct lw_world *w, struct lw_port *port, const struct krp_lane_packet *p)
{
	struct krp_lanes_facts facts = {
		.record = w->plan.keys ? NULL : &w->port[lw_port_of(p->gid)].record,
		.proof = lw_proof(port, p),
		.proved = w->plan.keys,
		.fresh = 1,
	};
	struct krp_lane_packet answer;
	struct krp_lanes_entry *pull, *e;
	uint32_t status = 0;

	switch (krp_lanes_judge(&port->t, w->now_ns, p, &facts, &status, &pull)) {
	case KRP_LANES_AGAIN:
		e = krp_lanes_received(&port->t, w->now_ns, p);
		lw_pull(w, port, e);
		break;
	case KRP_LANES_CHALLENGE:
		lw_challenge(w, port, p);
		break;
	case KRP_LANES_REFUSE:
		krp_lanes_answer(p, KRP_LANE_REFUSE, port->generation, &answer);
		answer.status = krp_cpu_to_le32(status);
		lw_say(w, &answer);
		break;
	case KRP_LANES_REPLACE:
		lw_replace(w, port, p);
		break;
	case KRP_LANES_ACCEPT:
		lw_accept(w, port, p);
		break;
	default:
		break;
	}
	if (pull)
		lw_pull(w, port, pull);
}

static void lw_arrive(struct lw_world *w, const struct krp_lane_packet *p)
{
	struct lw_port *port = &w->port[lw_port_of(p->peer_gid)];
	struct krp_lane_packet answer;
	struct krp_lanes_entry *e;

	if (krp_lane_check(p, sizeof(*p)) != KRP_LANE_OK || (w->plan.keys && !lw_proved(p)))
		return;
	if (p->type == KRP_LANE_REQUEST) {
		lw_request(w, port, p);
		return;
	}
	e = krp_lanes_received(&port->t, w->now_ns, p);
	if (e)
		lw_pull(w, port, e);
	else if (krp_lanes_unknown(&port->t, p, &answer))
		lw_say(w, &answer);
}

/* what users and a hostile host do */

int lw_make(struct lw_world *w, uint32_t from, uint32_t to, uint32_t index, uint32_t payer)
{
	struct lw_port *port = &w->port[from];
	struct krp_lane_ports ports = { .index = (uint8_t)index, .mtu = 5, .max_rd_atomic = 8 };
	struct krp_lane_end own = { .psn = (uint32_t)lw_random(w, 1 << 24) };
	uint64_t nonce = 1 + (lw_random(w, 1ULL << 62) & ~LW_FORGED);
	struct krp_lanes_entry *pull, *e;
	struct lw_born *b;
	struct lw_qp *qp;
	int err = krp_lanes_room(&port->t, &port->payer[payer], w->now_ns, &pull);

	if (pull)
		lw_pull(w, port, pull);
	if (err || w->born_nr == LW_BORN)
		return err;
	lw_gid(from, ports.gid);
	lw_gid(to, ports.peer_gid);
	ports.generation = port->generation;
	ports.peer_generation = w->port[to].generation - lw_one_of(w, w->plan.stale);
	qp = lw_qp_take(w, port);
	if (!qp)
		return -ENOMEM;
	own.qpn = qp->qpn;
	e = krp_lanes_make(&port->t, &port->payer[payer], &ports, &own, nonce, &port->record,
			   w->now_ns);
	if (!e) {
		lw_wrong(w, "a lane cannot be requested");
		return -EINVAL;
	}
	b = &w->born[w->born_nr++];
	b->number = e->lane.number;
	b->nonce = nonce;
	b->generation = port->generation;
	b->port = from;
	lw_side_of(port, e)->qp = qp;
	lw_side_of(port, e)->born = b;
	lw_pull(w, port, e);
	return 0;
}

struct krp_lanes_entry *lw_lane(struct lw_world *w, uint32_t from, uint32_t to, uint32_t index)
{
	uint8_t gid[KRP_GID_BYTES];

	lw_gid(to, gid);
	return krp_lanes_find(&w->port[from].t, gid, index);
}

static void lw_users(struct lw_world *w, uint32_t from)
{
	uint32_t to = (uint32_t)lw_random(w, w->plan.ports), index = (uint32_t)lw_random(w, 2);
	struct lw_port *port = &w->port[from];
	struct krp_lanes_entry *e;

	if (w->plan.pairs_only && (from > 1 || to > 1))
		return;
	if (to == from)
		return;
	e = lw_lane(w, from, to, index);
	if (!e && lw_one_of(w, w->plan.make))
		lw_make(w, from, to, index, (uint32_t)lw_random(w, LW_PAYERS));
	if (!e || e->lane.state != KRP_LANE_UP)
		return;
	if (e->lane.told_post && lw_one_of(w, w->plan.post)) {
		krp_lanes_use(e, w->now_ns);
		lw_post(w, lw_side_of(port, e), &e->lane);
	}
	if (lw_one_of(w, w->plan.close))
		krp_lane_close(&e->lane, w->now_ns);
	else if (lw_one_of(w, w->plan.break_lane))
		krp_lane_failed(&e->lane, -EIO);
	lw_pull(w, port, e);
}

/* A REQUEST in the name of a port, with all that everybody can READ. */
static void lw_forge(struct lw_world *w)
{
	uint32_t from = (uint32_t)lw_random(w, w->plan.ports);
	uint32_t to = (from + 1) % w->plan.ports;
	struct krp_lane_packet p;

	memset(&p, 0, sizeof(p));
	p.magic = krp_cpu_to_le16(KRP_LANE_MAGIC);
	p.version = KRP_LANE_VERSION;
	p.type = KRP_LANE_REQUEST;
	p.flags = KRP_LANE_REQUESTER;
	p.mtu = 5;
	p.max_rd_atomic = 1;
	p.index = (uint8_t)lw_random(w, 2);
	p.lane = krp_cpu_to_le64(1 + lw_random(w, 1ULL << 40));
	p.nonce = krp_cpu_to_le64(LW_FORGED | lw_random(w, 1ULL << 40));
	p.generation = krp_cpu_to_le64(w->port[from].generation);
	p.peer_generation = krp_cpu_to_le64(w->port[to].generation);
	lw_gid(from, p.gid);
	lw_gid(to, p.peer_gid);
	p.qpn = krp_cpu_to_le32(666);
	p.value = w->port[from].record;
	if (lw_random(w, 2)) {
		p.stamp = krp_cpu_to_le64(w->now_ns / LW_MS);
		p.proof = krp_cpu_to_le64(1 + lw_random(w, 1ULL << 62));
	}
	if (w->plan.keys) {
		p.key_id[0] = 1;
		p.mac[0] = (uint8_t)lw_random(w, 256);
	}
	lw_fly(w, &p);
}

static void lw_hostile(struct lw_world *w)
{
	uint32_t seen = w->seen_nr < LW_SEEN ? w->seen_nr : LW_SEEN;

	if (seen && lw_one_of(w, w->plan.replay)) {
		lw_fly(w, &w->seen[lw_random(w, seen)]);
		w->replayed++;
	}
	if (lw_one_of(w, w->plan.forge))
		lw_forge(w);
}

/* time */

static void lw_step(struct lw_world *w)
{
	uint32_t i, k;

	w->now_ns += w->calm ? LW_MS : LW_STEP_NS;
	for (i = 0; i < w->flights;) {
		struct krp_lane_packet p = w->flight[i].p;

		if (w->flight[i].at_ns > w->now_ns) {
			i++;
			continue;
		}
		w->flight[i] = w->flight[--w->flights];
		lw_arrive(w, &p);
	}
	for (i = 0; i < w->plan.ports; i++) {
		for (k = 0; k < 2 * LW_LANES; k++)
			if (w->port[i].entry[k].place != KRP_LANES_FREE)
				lw_work(w, &w->port[i], &w->port[i].entry[k]);
		if (!w->calm)
			lw_users(w, i);
		if (lw_one_of(w, w->plan.reboot))
			lw_reboot(w, i);
	}
	if (!w->calm)
		lw_hostile(w);
}

void lw_run(struct lw_world *w, uint64_t ms)
{
	uint64_t until_ns = w->now_ns + ms * LW_MS;

	while (w->now_ns < until_ns && !w->broken)
		lw_step(w);
}

static void lw_begin(struct lw_world *w, uint32_t i)
{
	struct lw_port *port = &w->port[i];
	struct krp_lanes_memory mem = { .entry = port->entry,
					.chains = port->chains,
					.known = port->known,
					.chains_nr = 8,
					.known_nr = LW_KNOWN };
	uint8_t gid[KRP_GID_BYTES];
	uint32_t k;

	lw_gid(i, gid);
	port->generation++;
	port->secret = lw_random(w, UINT64_MAX);
	if (krp_lanes_init(&port->t, &w->conf, &mem, gid, port->generation, w->random))
		lw_wrong(w, "a table cannot be set up");
	for (k = 0; k < LW_PAYERS; k++)
		krp_lanes_payer_init(&port->t, &port->payer[k], 4);
	memset(port->side, 0, sizeof(port->side));
	memset(&port->record, 0, sizeof(port->record));
	port->record.generation = krp_cpu_to_le64(port->generation);
	port->record.kind = KRP_KIND_LANE;
	port->record.dct.ud_qpn = krp_cpu_to_le32(100 + i);
	port->record.dct.ud_qkey = krp_cpu_to_le32(LW_QKEY);
	port->record.dct.mtu = 5;
	port->record.dct.port = 1;
	for (k = 0; k < 4 * LW_LANES; k++)
		port->qp[k] = (struct lw_qp){ .qpn = 1000 + k };
}

void lw_reboot(struct lw_world *w, uint32_t i)
{
	struct lw_port *port = &w->port[i];
	uint32_t k;

	for (k = 0; k < 2 * LW_LANES; k++)
		if (port->entry[k].place == KRP_LANES_ACTIVE)
			lw_over(&port->side[k], &port->entry[k].lane, true);
	lw_begin(w, i);
}

struct lw_world *lw_new(const struct lw_plan *plan, uint64_t seed)
{
	struct lw_world *w = calloc(1, sizeof(*w));
	uint32_t i;

	if (!w)
		abort();
	w->plan = *plan;
	w->random = seed * KRP_GOLDEN;
	w->now_ns = 50000 * LW_MS;
	w->conf = (struct krp_lanes_conf){ .lane = { .retry_ns = LW_MS,
						     .retry_max_ns = 8 * LW_MS,
						     .drain_ns = 500 * LW_MS,
						     .rest_ns = KRP_LANE_REST_MS * LW_MS,
						     .tries = 10 },
					   .idle_min_ns = LW_MS,
					   .idle_ns = 60000 * LW_MS,
					   .max = LW_LANES,
					   .reserved = 2,
					   .of_pair = 2,
					   .half_max = 3 };
	for (i = 0; i < plan->ports; i++) {
		w->port[i].generation = 10 * (i + 1);
		lw_begin(w, i);
	}
	return w;
}

void lw_free(struct lw_world *w)
{
	free(w);
}

/* Both ends of each lane are UP, or none is; of one whose other end has failed that may be late. */
static void lw_judge_pairs(struct lw_world *w, uint32_t i)
{
	uint32_t k;

	for (k = 0; k < 2 * LW_LANES; k++) {
		const struct krp_lanes_entry *e = &w->port[i].entry[k];
		const struct lw_born *b = w->port[i].side[k].born;
		int other = e->lane.requester;

		if (e->place == KRP_LANES_FREE || e->lane.state == KRP_LANE_RESTING)
			continue;
		if (e->lane.state != KRP_LANE_UP)
			lw_wrong(w, "a lane neither comes up nor ends");
		else if (!b->end[other].posts && !b->end[other].hard)
			lw_wrong(w, "one end is UP, and the other is not, though nothing failed");
	}
}

const char *lw_judge(struct lw_world *w)
{
	uint32_t i, k;

	w->calm = true;
	lw_run(w, 600);
	for (i = 0; i < w->plan.ports && !w->broken; i++)
		lw_judge_pairs(w, i);
	for (i = 0; i < w->plan.ports && !w->broken; i++)
		for (k = 0; k < 2 * LW_LANES; k++)
			if (w->port[i].entry[k].place != KRP_LANES_FREE &&
			    krp_lane_close(&w->port[i].entry[k].lane, w->now_ns))
				lw_pull(w, &w->port[i], &w->port[i].entry[k]);
	lw_run(w, 2500);
	for (i = 0; i < w->plan.ports && !w->broken; i++) {
		if (w->port[i].t.active || w->port[i].t.half)
			lw_wrong(w, "a lane does not end");
		for (k = 0; k < LW_PAYERS; k++)
			if (w->port[i].payer[k].nr || w->port[i].payer[k].closing)
				lw_wrong(w, "somebody pays for what is gone");
		for (k = 0; k < 2 * LW_LANES; k++)
			if (w->port[i].entry[k].place != KRP_LANES_FREE)
				lw_wrong(w, "an entry is not given back");
	}
	return w->broken;
}

const struct krp_lane_conf lw_conf = { .retry_ns = LW_MS,
				       .retry_max_ns = 4 * LW_MS,
				       .drain_ns = 100 * LW_MS,
				       .rest_ns = 1000 * LW_MS,
				       .tries = 4 };

const struct krp_lane_ports lw_ports_b = { .gid = { 0xfe, [15] = 2 },
					   .peer_gid = { 0xfe, [15] = 1 },
					   .generation = 6,
					   .peer_generation = 5,
					   .index = 1,
					   .mtu = 3,
					   .max_rd_atomic = 16 };
const struct krp_lane_end lw_own_b = { .qpn = 80, .psn = 800 };

struct krp_value lw_record(__u64 generation)
{
	struct krp_value v = { .generation = krp_cpu_to_le64(generation), .kind = KRP_KIND_LANE };

	v.dct.ud_qpn = krp_cpu_to_le32(9);
	v.dct.mtu = 5;
	v.dct.port = 1;
	return v;
}
