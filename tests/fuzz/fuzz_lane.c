// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * All lanes of a port (proto/krp_lanes.h) in front of hostile peers: any packets, mixed with
 * anything that users, commands and the clock may do.
 *
 * What a peer of a lane knows cannot be guessed, so a bit of the input has the harness write it
 * into the packet. Whatever comes: the invariants hold, what goes out is well-formed, a command
 * is told when none is under way, bounds and counts hold, a REQUEST makes one lane at most, and
 * all comes to its end.
 */
#include "proto/krp_lanes.h"
#include "tests/fuzz/fuzz.h"

#define FZ_LANES 4
#define FZ_STEPS 200
#define FZ_MS 1000000ULL
#define FZ_MADE 256

/* how the harness helps a packet along, bits of a byte */
#define FZ_OURS 0x01 /* of a lane that is there */
#define FZ_NEAR 0x02 /* fields of the type are in their ranges */
#define FZ_PROVED 0x04
#define FZ_COOKIE 0x08 /* with a good one */
#define FZ_RECORD 0x10 /* the record is that of the table */
#define FZ_FRESH 0x20

struct fz_side {
	int connecting, stopping, resetting, posts;
};

struct fz_port {
	struct krp_lanes t;
	struct krp_lanes_entry entry[2 * FZ_LANES];
	struct krp_lanes_entry *chains[4];
	struct krp_lanes_known known[KRP_LANES_WAYS];
	struct krp_lanes_payer user[2];
	struct fz_side side[2 * FZ_LANES];
	__u64 now_ns;
	__u32 made_nr;
	struct {
		__u8 gid[KRP_GID_BYTES];
		__le64 generation, lane;
		__u8 index;
	} made[FZ_MADE];
};

static const struct krp_lanes_conf fz_conf = { .lane = { .retry_ns = FZ_MS,
							 .retry_max_ns = 4 * FZ_MS,
							 .drain_ns = 50 * FZ_MS,
							 .rest_ns = KRP_LANE_REST_MS * FZ_MS,
							 .tries = 3 },
					       .idle_min_ns = FZ_MS,
					       .idle_ns = 500 * FZ_MS,
					       .max = FZ_LANES,
					       .reserved = 1,
					       .of_pair = 2,
					       .half_max = 1 };

static void fz_judge(const struct fz_port *p)
{
	__u32 i, active = 0, half = 0, paid = p->t.peers.nr + p->user[0].nr + p->user[1].nr;

	for (i = 0; i < 2 * FZ_LANES; i++) {
		active += p->entry[i].place == KRP_LANES_ACTIVE;
		half += p->entry[i].half;
		FZ_ASSERT(p->entry[i].place == KRP_LANES_FREE ||
			  !krp_lane_wrong(&p->entry[i].lane));
	}
	FZ_ASSERT(active == p->t.active && active == paid && active <= FZ_LANES);
	FZ_ASSERT(half == p->t.half && half <= active);
	FZ_ASSERT(p->t.peers.nr <= p->t.peers.limit);
}

static void fz_do(struct fz_side *side, const struct krp_lane_todo *todo)
{
	switch (todo->what) {
	case KRP_LANE_SEND:
		FZ_ASSERT(krp_lane_check(&todo->packet, sizeof(todo->packet)) == KRP_LANE_OK);
		break;
	case KRP_LANE_CONNECT:
		FZ_ASSERT(!side->connecting && !side->stopping && !side->resetting);
		side->connecting = 1;
		break;
	case KRP_LANE_POST:
		FZ_ASSERT(!side->connecting && !side->stopping && !side->resetting);
		side->posts = 1;
		break;
	case KRP_LANE_STOP:
		FZ_ASSERT(!side->stopping && !side->resetting);
		side->stopping = 1;
		side->posts = 0;
		break;
	case KRP_LANE_RESET:
		FZ_ASSERT(!side->resetting && todo->err <= 0);
		side->resetting = 1;
		side->posts = 0;
		break;
	default:
		break;
	}
}

static void fz_pull(struct fz_port *p, struct krp_lanes_entry *e)
{
	struct fz_side *side = &p->side[e - p->entry];
	struct krp_lane_todo todo;
	unsigned int nr = 0;

	if (e->place == KRP_LANES_FREE)
		return;
	while (krp_lane_next(&e->lane, p->now_ns, &todo) != KRP_LANE_WAIT) {
		FZ_ASSERT(++nr < 100);
		fz_do(side, &todo);
		if (todo.what == KRP_LANE_FORGET) {
			memset(side, 0, sizeof(*side));
			break;
		}
	}
	FZ_ASSERT(todo.what != KRP_LANE_WAIT || todo.until_ns > p->now_ns);
	krp_lanes_settle(&p->t, e);
}

static void fz_gid(__u8 *gid, __u8 nr)
{
	memset(gid, 0, KRP_GID_BYTES);
	gid[0] = 0xfe;
	gid[15] = nr % 4 + (nr % 4 >= 1); /* this port's is 1 */
}

/* Fields that a peer of a lane, or a member of the cluster, could write. */
static void fz_help(const struct fz_port *p, struct krp_lane_packet *m, __u8 help, __u8 with)
{
	const struct krp_lane *l = &p->entry[with % (2 * FZ_LANES)].lane;
	int offers;

	m->magic = krp_cpu_to_le16(KRP_LANE_MAGIC);
	m->version = KRP_LANE_VERSION;
	if (help & FZ_NEAR) {
		m->type = (__u8)(1 + m->type % (KRP_LANE_TYPES - 1));
		offers = krp_lane_offers(m->type);
		m->flags &= KRP_LANE_REQUESTER;
		if (m->type <= KRP_LANE_REFUSE)
			m->flags = m->type == KRP_LANE_REQUEST;
		m->index %= 3;
		m->mtu = (__u8)(offers ? 1 + m->mtu % 5 : 0);
		m->max_rd_atomic = (__u8)offers;
		m->qpn = offers ? krp_cpu_to_le32(7) : 0;
		m->psn = offers ? m->psn & krp_cpu_to_le32(0xffffff) : 0;
		m->spent &= m->type == KRP_LANE_ACCEPT ? krp_cpu_to_le64(0xff) : 0;
		m->status = krp_cpu_to_le32(m->type == KRP_LANE_REFUSE ? 1U + with % 4 : 0);
		memset(&m->value, 0, sizeof(m->value));
		if (m->type > KRP_LANE_CHALLENGE || !m->stamp || !m->proof) {
			m->stamp = krp_cpu_to_le64(m->type == KRP_LANE_CHALLENGE ? with + 1U : 0);
			m->proof = m->stamp;
		}
		fz_gid(m->gid, m->gid[0]);
		memcpy(m->peer_gid, p->t.gid, KRP_GID_BYTES);
		m->generation = krp_cpu_to_le64(20 + krp_le64_to_cpu(m->generation) % 3);
		m->peer_generation = krp_cpu_to_le64(6 + !(with % 16));
		memset(m->key_id, 0, sizeof(m->key_id) + sizeof(m->mac));
	}
	if (help & FZ_OURS) {
		m->flags = l->requester ? 0 : KRP_LANE_REQUESTER;
		m->index = l->ports.index;
		m->lane = krp_cpu_to_le64(l->number);
		m->nonce = krp_cpu_to_le64(l->nonce);
		m->generation = krp_cpu_to_le64(l->ports.peer_generation);
		m->peer_generation = krp_cpu_to_le64(l->ports.generation);
		memcpy(m->gid, l->ports.peer_gid, KRP_GID_BYTES);
	}
	if (m->type != KRP_LANE_REQUEST)
		return;
	if (help & FZ_COOKIE) {
		m->stamp = krp_cpu_to_le64(p->now_ns / FZ_MS);
		m->proof = krp_cpu_to_le64(99);
	}
	m->value.generation = m->generation;
	m->value.kind = KRP_KIND_LANE;
	m->value.dct.mtu = 1;
	m->value.dct.port = 1;
	m->value.dct.ud_qpn = krp_cpu_to_le32(5);
}

/* A REQUEST has made a lane: none has been made of it before. */
static void fz_once(struct fz_port *p, const struct krp_lane_packet *m)
{
	__u32 i;

	for (i = 0; i < p->made_nr; i++)
		FZ_ASSERT(p->made[i].generation != m->generation || p->made[i].lane != m->lane ||
			  p->made[i].index != m->index ||
			  memcmp(p->made[i].gid, m->gid, KRP_GID_BYTES));
	if (p->made_nr == FZ_MADE)
		return;
	p->made[p->made_nr].generation = m->generation;
	p->made[p->made_nr].lane = m->lane;
	p->made[p->made_nr].index = m->index;
	memcpy(p->made[p->made_nr++].gid, m->gid, KRP_GID_BYTES);
}

static void fz_request(struct fz_port *p, const struct krp_lane_packet *m, __u8 help)
{
	struct krp_lanes_facts facts = { .record = help & FZ_RECORD ? &m->value : NULL,
					 .proof = 99,
					 .proved = !!(help & FZ_PROVED),
					 .fresh = !!(help & FZ_FRESH) };
	struct krp_lane_ports ports = { .mtu = 3, .max_rd_atomic = 4 };
	struct krp_lane_end own = { .qpn = 70 };
	struct krp_lanes_entry *e, *closed;
	struct krp_lane_packet answer;
	__u32 status = 0;

	switch (krp_lanes_judge(&p->t, p->now_ns, m, &facts, &status, &closed)) {
	case KRP_LANES_AGAIN:
		e = krp_lanes_received(&p->t, p->now_ns, m);
		FZ_ASSERT(e);
		fz_pull(p, e);
		break;
	case KRP_LANES_CHALLENGE:
		krp_lanes_answer(m, KRP_LANE_CHALLENGE, 6, &answer);
		answer.stamp = krp_cpu_to_le64(1);
		answer.proof = krp_cpu_to_le64(1);
		FZ_ASSERT(krp_lane_check(&answer, sizeof(answer)) == KRP_LANE_OK);
		break;
	case KRP_LANES_REFUSE:
		krp_lanes_answer(m, KRP_LANE_REFUSE, 6, &answer);
		answer.status = krp_cpu_to_le32(status);
		FZ_ASSERT(krp_lane_check(&answer, sizeof(answer)) == KRP_LANE_OK);
		break;
	case KRP_LANES_REPLACE:
		while ((e = krp_lanes_replace(&p->t, m->gid, krp_le64_to_cpu(m->generation),
					      m->index)))
			fz_pull(p, e);
		break;
	case KRP_LANES_ACCEPT:
		FZ_ASSERT((help & FZ_PROVED) || (help & FZ_RECORD && m->stamp));
		fz_once(p, m);
		e = krp_lanes_accept(&p->t, p->now_ns, m, &ports, &own);
		FZ_ASSERT(e);
		fz_pull(p, e);
		break;
	default:
		break;
	}
	if (closed)
		fz_pull(p, closed);
}

static void fz_packet_comes(struct fz_port *p, struct fz_stream *in)
{
	struct krp_lane_packet m, answer;
	__u8 help = fz_byte(in), with = fz_byte(in);
	struct krp_lanes_entry *e;

	fz_take(in, &m, offsetof(struct krp_lane_packet, gid) + 1);
	memset(m.gid + 1, 0, sizeof(m) - offsetof(struct krp_lane_packet, gid) - 1);
	fz_help(p, &m, help, with);
	if (krp_lane_check(&m, sizeof(m)) != KRP_LANE_OK ||
	    memcmp(m.peer_gid, p->t.gid, KRP_GID_BYTES))
		return;
	if (m.type == KRP_LANE_REQUEST) {
		fz_request(p, &m, help);
		return;
	}
	e = krp_lanes_received(&p->t, p->now_ns, &m);
	if (e)
		fz_pull(p, e);
	else if (krp_lanes_unknown(&p->t, &m, &answer))
		FZ_ASSERT(krp_lane_check(&answer, sizeof(answer)) == KRP_LANE_OK);
}

static void fz_make(struct fz_port *p, __u8 with)
{
	struct krp_lanes_payer *payer = &p->user[with & 1];
	struct krp_lane_ports ports = { .generation = 6,
					.peer_generation = 20,
					.index = with >> 1 & 1,
					.mtu = 4,
					.max_rd_atomic = 1 };
	struct krp_lane_end own = { .qpn = 60 };
	struct krp_value value = { .generation = krp_cpu_to_le64(6), .kind = KRP_KIND_LANE };
	struct krp_lanes_entry *e;
	int err = krp_lanes_room(&p->t, payer, p->now_ns, &e);

	if (e)
		fz_pull(p, e);
	memcpy(ports.gid, p->t.gid, KRP_GID_BYTES);
	fz_gid(ports.peer_gid, (__u8)(with >> 2));
	if (err || krp_lanes_find(&p->t, ports.peer_gid, ports.index))
		return;
	value.dct.mtu = 1;
	value.dct.port = 1;
	value.dct.ud_qpn = krp_cpu_to_le32(5);
	e = krp_lanes_make(&p->t, payer, &ports, &own, 1 + with, &value, p->now_ns);
	FZ_ASSERT(e && payer->nr <= payer->limit);
	fz_pull(p, e);
}

/* A command that was told ends. */
static void fz_command(struct fz_port *p, struct krp_lanes_entry *e, __u8 err)
{
	struct fz_side *side = &p->side[e - p->entry];

	if (side->connecting) {
		side->connecting = 0;
		krp_lane_connected(&e->lane, p->now_ns, err & 1 ? -EIO : 0);
	} else if (side->resetting) {
		side->resetting = 0;
		krp_lane_reset(&e->lane, p->now_ns);
	} else if (side->stopping) {
		side->stopping = 0;
		krp_lane_drained(&e->lane, p->now_ns);
	}
	fz_pull(p, e);
}

static void fz_event(struct fz_port *p, struct fz_stream *in)
{
	__u8 what = fz_byte(in), with = fz_byte(in);
	struct krp_lanes_entry *e = &p->entry[what / 8 % (2 * FZ_LANES)];

	if (what % 8 == 0)
		fz_make(p, with);
	else if (e->place == KRP_LANES_FREE)
		return;
	else if (what % 8 == 1)
		krp_lane_close(&e->lane, p->now_ns);
	else if (what % 8 == 2)
		krp_lane_failed(&e->lane, with & 1 ? -EIO : -ECONNRESET);
	else if (what % 8 == 3)
		krp_lanes_use(e, p->now_ns);
	else if (what % 8 == 4)
		krp_lanes_unuse(e, p->now_ns);
	else
		fz_command(p, e, with);
	fz_pull(p, e);
}

static void fz_tick(struct fz_port *p)
{
	struct krp_lanes_entry *e;
	__u32 i;

	for (i = 0; i < 2 * FZ_LANES; i++)
		fz_pull(p, &p->entry[i]);
	while ((e = krp_lanes_idle(&p->t, p->now_ns)))
		fz_pull(p, e);
}

/* Nothing comes any more; commands end. So do all lanes. */
static void fz_finish(struct fz_port *p)
{
	__u32 i, rounds;

	p->t.shut = 1;
	for (rounds = 0; rounds < 400; rounds++) {
		p->now_ns += 20 * FZ_MS;
		for (i = 0; i < 2 * FZ_LANES; i++) {
			if (p->entry[i].place == KRP_LANES_FREE)
				continue;
			krp_lane_close(&p->entry[i].lane, p->now_ns);
			fz_pull(p, &p->entry[i]);
			if (p->entry[i].place != KRP_LANES_FREE)
				fz_command(p, &p->entry[i], 0);
		}
		fz_judge(p);
	}
	FZ_ASSERT(!p->t.active && !p->t.half && krp_list_empty(&p->t.resting));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fz_stream in = { data, size };
	struct fz_port *p = calloc(1, sizeof(*p)); /* a sanitizer guards its end */
	struct krp_lanes_memory mem;
	__u8 gid[KRP_GID_BYTES];
	unsigned int step;

	FZ_ASSERT(p);
	mem = (struct krp_lanes_memory){ .entry = p->entry,
					 .chains = p->chains,
					 .known = p->known,
					 .chains_nr = 4,
					 .known_nr = KRP_LANES_WAYS };
	p->now_ns = 1000 * FZ_MS;
	fz_gid(gid, 0);
	gid[15] = 1;
	FZ_ASSERT(!krp_lanes_init(&p->t, &fz_conf, &mem, gid, 6, 1));
	krp_lanes_payer_init(&p->t, &p->user[0], 2);
	krp_lanes_payer_init(&p->t, &p->user[1], 3);
	for (step = 0; in.size && step < FZ_STEPS; step++) {
		__u8 what = fz_byte(&in);

		if (what < 128)
			fz_packet_comes(p, &in);
		else if (what < 224)
			fz_event(p, &in);
		else
			p->now_ns += (1ULL << (what & 31)) + 1;
		fz_tick(p);
		fz_judge(p);
	}
	fz_finish(p);
	free(p);
	return 0;
}
