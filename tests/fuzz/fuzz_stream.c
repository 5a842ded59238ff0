// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * One end of a connection between two nodes (proto/krp_stream.h) in front of a hostile peer: any
 * packets, mixed with anything that a program and the clock may do.
 *
 * A tag cannot be guessed, so a bit of the input has the harness write what the peer knows into
 * the header; another one makes numbers near to those that are expected. Whatever
 * comes: the invariants hold, what is delivered was granted, everything that was handed in ends
 * once, what goes out is well-formed, and a connection that is ended comes to its end.
 */
#include "proto/krp_listen.h"
#include "tests/fuzz/fuzz.h"

#define FZ_SLOTS 8
#define FZ_STEPS 300
#define FZ_MS 1000000ULL

/* how the harness helps a packet along, bits of a byte */
#define FZ_OURS 0x01
#define FZ_NEAR 0x02

struct fz_peer {
	struct krp_stream s;
	struct krp_stream_slot slot[FZ_SLOTS], few[KRP_STREAM_SLOTS_MIN];
	struct krp_stream_large large;
	__u64 now_ns;
	__u32 handed, ended, backlog;
	int forgotten;
	__u8 out[256]; /* by cookie: 1 handed in, 2 ended */
	__u64 fetch[256];
	__u8 fetches;
};

struct fz_packet {
	struct krp_message m;
	__u8 body[KRP_MESSAGE_PACKET_MAX - KRP_MESSAGE_BYTES];
};

static const struct krp_stream_conf fz_conf = { .retry_ns = FZ_MS,
						.retry_max_ns = 50 * FZ_MS,
						.ack_ns = FZ_MS,
						.silence_ns = 2000 * FZ_MS,
						.idle_ns = 800 * FZ_MS,
						.linger_ns = 100 * FZ_MS,
						.msgs = 4,
						.units = 2 * KRP_MESSAGE_UNITS_MAX,
						.lease_ms = 200,
						.margin_ms = 300 };

static void fz_end(struct fz_peer *p, const struct krp_stream_todo *todo)
{
	FZ_ASSERT(todo->cookie < 256 && p->out[todo->cookie] == 1);
	p->out[todo->cookie] = 2;
	p->ended++;
}

/* What has nothing in it is taken back, and its bytes are others'. */
static void fz_take_back(struct fz_peer *p)
{
	if (krp_stream_take_large(&p->s))
		memset(&p->large, 0xa5, sizeof(p->large));
	if (p->s.slots == FZ_SLOTS && !krp_stream_move(&p->s, p->few, KRP_STREAM_SLOTS_MIN))
		memset(p->slot, 0xa5, sizeof(p->slot));
}

static void fz_pull(struct fz_peer *p)
{
	struct krp_stream_todo todo;
	unsigned int nr = 0;

	while (krp_stream_next(&p->s, p->now_ns, &todo) != KRP_STREAM_WAIT) {
		FZ_ASSERT(++nr < 1000);
		FZ_ASSERT(!p->forgotten);
		switch (todo.what) {
		case KRP_STREAM_SEND:
			FZ_ASSERT(krp_message_check(&todo.packet, todo.bytes + todo.payload) ==
				  KRP_MESSAGE_OK);
			krp_stream_post_begin(&p->s, &todo.packet);
			krp_stream_post_end(&p->s, p->now_ns, &todo.packet);
			FZ_ASSERT(!p->s.posting);
			break;
		case KRP_STREAM_COMPLETE:
		case KRP_STREAM_RELEASE:
			fz_end(p, &todo);
			break;
		case KRP_STREAM_FORGET:
			p->forgotten = 1;
			break;
		default:
			break;
		}
		FZ_ASSERT(!krp_stream_wrong(&p->s));
	}
	fz_take_back(p);
	FZ_ASSERT(todo.until_ns > p->now_ns);
	FZ_ASSERT(p->s.error != -EAGAIN && (p->s.state != KRP_STREAM_DEAD || p->s.error));
	FZ_ASSERT(p->s.state == KRP_STREAM_GONE || todo.until_ns != 0);
}

/* A packet of which the harness makes what a peer could have made. */
static void fz_help(const struct fz_peer *p, struct fz_packet *packet, __u8 help)
{
	struct krp_message *m = &packet->m;

	m->magic = krp_cpu_to_le16(KRP_MESSAGE_MAGIC);
	m->version = KRP_MESSAGE_VERSION;
	m->rsvd = 0;
	if (help & FZ_OURS) {
		m->tag = krp_cpu_to_le64(p->s.tag);
		m->src = krp_cpu_to_le32(p->s.dst);
		m->generation = krp_cpu_to_le64(p->s.peer_generation);
	}
	if (!(help & FZ_NEAR))
		return;
	m->type = (__u8)(m->type % KRP_MESSAGE_TYPES);
	m->flags &= (__u8)krp_message_flags(m->type);
	if (!krp_message_bare(m->type)) {
		m->seq = krp_cpu_to_le64(p->s.rx.expect + (krp_le64_to_cpu(m->seq) & 3));
		m->ack = krp_cpu_to_le64(p->s.tx.una + (krp_le64_to_cpu(m->ack) & 3));
	}
	if (m->type == KRP_MESSAGE_DATA)
		m->length = krp_cpu_to_le32(krp_le32_to_cpu(m->length) % 4033);
	else if (m->type != KRP_MESSAGE_ANNOUNCE)
		m->length = 0;
	if (m->type == KRP_MESSAGE_DONE || m->type == KRP_MESSAGE_REFUSE)
		m->imm = krp_cpu_to_le32(krp_le32_to_cpu(m->imm) % KRP_REFUSE_CODES);
	else if (m->type >= KRP_MESSAGE_CLOSE)
		m->imm = 0;
}

static void fz_packet_comes(struct fz_peer *p, struct fz_stream *in)
{
	static struct fz_packet packet;
	__u8 help = fz_byte(in);
	enum krp_stream_verdict verdict;
	__u32 bytes, msgs = p->s.rx.told_msgs - p->s.rx.msgs;

	fz_take(in, &packet.m, sizeof(packet.m));
	memset(packet.body, 0, sizeof(packet.body));
	fz_help(p, &packet, help);
	bytes = sizeof(packet.m) + krp_message_body(packet.m.type);
	fz_take(in, packet.body, bytes - sizeof(packet.m));
	bytes += krp_message_payload(&packet.m);
	if (bytes > sizeof(packet) || krp_message_check(&packet, bytes) != KRP_MESSAGE_OK)
		return;
	if (packet.m.type == KRP_MESSAGE_ANNOUNCE && !(help & 4) && !p->s.larges)
		krp_stream_give_large(&p->s, &p->large);
	verdict = krp_stream_received(&p->s, p->now_ns, p->now_ns - (help & 0x70U) * FZ_MS,
				      &packet.m, help & 0x80 ? 0 : 1);
	if (verdict == KRP_STREAM_DROPPED)
		return;
	FZ_ASSERT(msgs && !(help & 0x80));
	FZ_ASSERT(verdict != KRP_STREAM_ANNOUNCED || p->s.larges);
	p->backlog++;
	FZ_ASSERT(p->backlog <= fz_conf.msgs);
	if (verdict == KRP_STREAM_ANNOUNCED)
		p->fetch[p->fetches++] = krp_le64_to_cpu(packet.m.seq);
}

/* Memory for a message of that name; of some there is none. */
static void fz_lend(struct fz_peer *p, __u8 with)
{
	if (with & 8)
		return;
	if (with & 1 && !p->s.larges)
		krp_stream_give_large(&p->s, &p->large);
	if (krp_stream_cramped(&p->s) && p->s.slots != FZ_SLOTS)
		FZ_ASSERT(!krp_stream_move(&p->s, p->slot, FZ_SLOTS));
}

static void fz_program(struct fz_peer *p, struct fz_stream *in)
{
	__u8 what = fz_byte(in), with = fz_byte(in);
	struct krp_stream_req req = { .cookie = with,
				      .length = with * 16U,
				      .large = with & 1,
				      .hurry = with >> 1 & 1,
				      .notify = with >> 2 & 1 };
	int err;

	switch (what % 10) {
	case 0:
		if (p->out[with])
			break;
		fz_lend(p, with);
		err = krp_stream_send(&p->s, p->now_ns, &req);
		p->out[with] = !err;
		p->handed += !err;
		break;
	case 1:
		if (p->backlog)
			krp_stream_consumed(&p->s, 1, with);
		p->backlog -= p->backlog > 0;
		break;
	case 2:
		krp_stream_fetch(&p->s, p->now_ns, p->fetch[with]);
		break;
	case 3:
		krp_stream_fetched(&p->s, p->fetch[with], with % 11);
		break;
	case 4:
		krp_stream_cancel(&p->s, p->now_ns, with);
		break;
	case 5:
		krp_stream_replay(&p->s);
		break;
	case 6:
		krp_stream_budget(&p->s, with % 6, with);
		break;
	case 8:
		krp_stream_again(&p->s, p->now_ns);
		break;
	case 7:
		if (with < 64)
			krp_stream_shut(&p->s, p->now_ns);
		break;
	default:
		if (with < 8)
			krp_stream_abort(&p->s, p->now_ns, KRP_REFUSE_ABORT);
		else if (with < 16)
			krp_stream_lost(&p->s, p->now_ns, -ECONNRESET, with);
		break;
	}
}

/* A packet of a stranger, most times an OPEN. Return: bytes; 0: it is malformed. */
static __u32 fz_any(const struct fz_peer *p, struct fz_stream *in, struct fz_packet *packet,
		    __u8 bits)
{
	struct krp_message *m = &packet->m;
	__u32 bytes;

	memset(packet, 0, sizeof(*packet));
	fz_take(in, m, sizeof(*m));
	fz_help(p, packet, bits & FZ_NEAR);
	if (bits & FZ_OURS) {
		m->type = KRP_MESSAGE_OPEN;
		m->flags &= KRP_MESSAGE_PAYLOAD;
		m->held = 0;
		m->tag = 0;
		m->dst = krp_cpu_to_le32(300);
		m->seq = krp_cpu_to_le64(1);
		m->ack = m->seq;
		m->length = 0;
		m->imm = 0;
	}
	bytes = (__u32)sizeof(*m) + krp_message_body(m->type);
	fz_take(in, packet->body, bytes - sizeof(*m));
	bytes += krp_message_payload(m);
	if (bytes > sizeof(*packet) || krp_message_check(packet, bytes) != KRP_MESSAGE_OK)
		return 0;
	return bytes;
}

/* An OPEN, or anything, that is no connection's: what is answered is well-formed and shorter. */
static void fz_stranger(struct fz_peer *p, struct fz_stream *in)
{
	static struct fz_packet packet;
	struct krp_stream_todo answer;
	struct krp_value record;
	__u32 status = 0, bytes;
	struct krp_listen_facts facts = { .pass = 1 + fz_byte(in), .generation = fz_byte(in) };
	struct krp_listen_lookups lookups = { .max = 1 };
	__u8 bits = fz_byte(in);

	bytes = fz_any(p, in, &packet, bits);
	if (!bytes)
		return;
	memset(&answer, 0, sizeof(answer));
	if (krp_listen_unknown(&packet.m, 7, &answer.packet))
		FZ_ASSERT(!krp_message_check(&answer.packet, sizeof(answer.packet)));
	if (packet.m.type != KRP_MESSAGE_OPEN)
		return;
	memcpy(&record, packet.body + KRP_GID_BYTES, sizeof(record));
	facts.record = bits & 0x10 ? NULL : &record;
	facts.fresh = bits >> 2 & 1;
	facts.buried = bits >> 3 & 1;
	facts.service = bits >> 5 & 1;
	facts.room = bits >> 6 & 1;
	if (krp_listen_same(&p->s, &packet.m)) {
		krp_stream_again(&p->s, p->now_ns);
		return;
	}
	if (krp_listen_look_begin(&lookups, packet.body, bits & 0x80))
		krp_listen_look_end(&lookups, p->now_ns, packet.body, bits & 0x10 ? -ENOENT : 0);
	FZ_ASSERT(lookups.busy + lookups.strange == 0);
	switch (krp_listen_judge(&packet.m, &facts, &status)) {
	case KRP_LISTEN_CHALLENGE:
		krp_listen_challenge(&packet.m, facts.pass, 7, &answer.packet,
				     &answer.body.challenge);
		FZ_ASSERT(sizeof(answer.packet) + 8 < bytes);
		FZ_ASSERT(!krp_message_check(&answer.packet, sizeof(answer.packet) + 8));
		break;
	case KRP_LISTEN_REFUSE:
		krp_listen_refuse(&packet.m, status, 7, &answer.packet);
		FZ_ASSERT(!krp_message_check(&answer.packet, sizeof(answer.packet)));
		break;
	case KRP_LISTEN_OFFER:
		FZ_ASSERT(facts.room && facts.service && !facts.buried && facts.record);
		FZ_ASSERT(krp_le64_to_cpu(((struct krp_message_open *)packet.body)->pass) ==
			  facts.pass);
		break;
	default:
		break;
	}
}

static void fz_begin(struct fz_peer *p, __u8 opener)
{
	struct fz_packet packet = { .m = { .type = KRP_MESSAGE_OPEN } };
	struct krp_message_open open = { .tag = krp_cpu_to_le64(11), .user_len = 0 };

	open.value.kind = KRP_KIND_DCT;
	open.value.dct.mtu = 5;
	open.value.dct.port = 1;
	open.value.generation = krp_cpu_to_le64(5);
	open.peer_generation = krp_cpu_to_le64(6);
	open.pass = krp_cpu_to_le64(3);
	FZ_ASSERT(!krp_stream_init(&p->s, &fz_conf, p->few, KRP_STREAM_SLOTS_MIN));
	if (opener & 1) {
		FZ_ASSERT(!krp_stream_connect(&p->s, p->now_ns, 1, 300, &open, NULL));
		return;
	}
	packet.m.src = krp_cpu_to_le32(9);
	packet.m.generation = krp_cpu_to_le64(5);
	packet.m.msgs = krp_cpu_to_le32(4);
	packet.m.units = krp_cpu_to_le32(100);
	memcpy(packet.body, &open, sizeof(open));
	krp_stream_offer(&p->s, p->now_ns, p->now_ns, &packet.m, 1, 12);
	if (opener & 2)
		krp_stream_again(&p->s, p->now_ns);
	else
		FZ_ASSERT(!krp_stream_accept(&p->s, "x", 1));
}

/* The program ends; the machine has to, too. */
static void fz_finish(struct fz_peer *p)
{
	struct krp_stream_todo todo;
	__u64 over_ns = p->now_ns + 10000 * FZ_MS;
	unsigned int i;

	krp_stream_abort(&p->s, p->now_ns, KRP_REFUSE_ABORT);
	fz_pull(p);
	for (i = 0; i < p->fetches; i++)
		krp_stream_fetched(&p->s, p->fetch[i], 0);
	for (i = 0; i < 100 && !p->forgotten; i++) {
		fz_pull(p);
		if (p->forgotten)
			break;
		FZ_ASSERT(krp_stream_next(&p->s, p->now_ns, &todo) == KRP_STREAM_WAIT);
		FZ_ASSERT(todo.until_ns <= over_ns);
		p->now_ns += (todo.until_ns - p->now_ns + 1) / 2;
		krp_stream_again(&p->s, p->now_ns); /* whatever the peer asks meanwhile */
	}
	FZ_ASSERT(p->forgotten && p->s.state == KRP_STREAM_GONE);
	FZ_ASSERT(p->handed == p->ended);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fz_stream in = { data, size };
	struct fz_peer *p = calloc(1, sizeof(*p)); /* a sanitizer guards its end */
	unsigned int step;

	FZ_ASSERT(p);
	p->now_ns = 1000 * FZ_MS;
	fz_begin(p, fz_byte(&in));
	fz_pull(p);
	for (step = 0; in.size && step < FZ_STEPS && !p->forgotten && p->fetches < 255; step++) {
		__u8 what = fz_byte(&in);

		if (what < 128)
			fz_packet_comes(p, &in);
		else if (what < 224)
			fz_program(p, &in);
		else if (what == 255)
			fz_stranger(p, &in);
		else
			p->now_ns += (1ULL << (what & 31)) + 1;
		fz_pull(p);
	}
	if (!p->forgotten)
		fz_finish(p);
	free(p);
	return 0;
}
