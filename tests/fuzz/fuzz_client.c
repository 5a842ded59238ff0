// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A hostile or broken MetaServer against the client's session of proto/krp_session.h: it says
 * whatever it likes, whenever it likes. Whatever that is: all that the client sends is well
 * formed, the rate that the server has named is kept, a request that was sent has its answer within
 * timeout_ms or ends with the connection, a question that was given up is not touched afterwards, no
 * slot is lost, and the machine comes to rest after each call.
 */
#include <errno.h>

#include "proto/krp_session.h"
#include "tests/fuzz/fuzz.h"

#define FZ_STEPS_MAX 400
#define FZ_PULLS_MAX 2000
#define FZ_ASKS 4
#define FZ_SLOTS 8
#define FZ_CHAINS 4
#define FZ_TIMEOUT_MS 500 /* of the session */
#define FZ_DEADLINE_NS (300 * KRP_NS_PER_MS) /* when a question is given up */

/* What a byte of the input lets happen; 3 bits. */
enum fz_op {
	FZ_RAW, /* bytes as they are */
	FZ_ANSWER, /* an answer to something that was asked, with a body of the input */
	FZ_SHAKE, /* the next message of a handshake, with a body of the input */
	FZ_TIME, /* time passes */
	FZ_RECORD, /* a record is published or withdrawn */
	FZ_ASK, /* a question is put or given up */
	FZ_BUFFER, /* a buffer comes back */
	FZ_LINE, /* the transport breaks, a subscription begins or ends */
};

/**
 * struct fz_client - The client.
 * @in: what is left of the input.
 * @now_ns: the clock.
 * @conf: settings.
 * @pub: records.
 * @chains: their hash.
 * @s: the session.
 * @ask: questions, in memory of their own; NULL: none.
 * @ask_ns: when they are given up.
 * @sent_ns: when the request of each slot was sent.
 * @tokens: messages the server takes now, in thousandths, as its own bucket counts them.
 * @tokens_ns: when that was computed.
 * @connected: there is a transport.
 */
struct fz_client {
	struct fz_stream in;
	__u64 now_ns;
	struct krp_session_conf conf;
	struct krp_publisher pub;
	struct krp_record *chains[FZ_CHAINS];
	struct krp_session s;
	struct krp_ask *ask[FZ_ASKS];
	__u64 ask_ns[FZ_ASKS];
	__u64 sent_ns[FZ_SLOTS];
	__u64 tokens;
	__u64 tokens_ns;
	int connected;
};

static void fz_trash(struct fz_client *c)
{
	struct krp_record *rec;

	while ((rec = krp_records_trash(&c->pub)))
		free(rec);
}

static void fz_refill(struct fz_client *c)
{
	__u64 full = 1000ULL * c->s.rate_max;

	c->tokens += (c->now_ns - c->tokens_ns) / 1000 * c->s.rate_max / 1000;
	c->tokens_ns = c->now_ns;
	c->tokens = c->tokens < full ? c->tokens : full;
}

static void fz_sent(struct fz_client *c, const struct krp_todo *todo)
{
	FZ_ASSERT(krp_msg_check(todo->msg, todo->bytes, 1) == KRP_ST_OK);
	FZ_ASSERT(c->connected && todo->slot < FZ_SLOTS && c->s.slots.at[todo->slot].posted);
	c->sent_ns[todo->slot] = c->now_ns;
	if (c->s.state != KRP_SESSION_READY || !c->s.rate_max)
		return;
	fz_refill(c);
	FZ_ASSERT(c->tokens >= 1000);
	c->tokens -= 1000;
}

static void fz_done(struct fz_client *c, const struct krp_todo *todo)
{
	unsigned int i;

	if (!todo->ask)
		return;
	for (i = 0; i < FZ_ASKS && c->ask[i] != todo->ask; i++)
		;
	FZ_ASSERT(i < FZ_ASKS && todo->ask->err != -EINPROGRESS);
	FZ_ASSERT(todo->ask->type != KRP_MSG_LOOKUP || todo->ask->err ||
		  krp_value_valid(&todo->ask->value));
	free(todo->ask);
	c->ask[i] = NULL;
}

static void fz_connect(struct fz_client *c)
{
	struct krp_link link = { .client_gid = { 0xfe }, .server_gid = { 0xfd } };
	__u8 nonce[KRP_NONCE_BYTES] = { 1 }, id[KRP_KEY_ID_BYTES] = { 1, 2, 3, 4 };
	__u8 how = fz_byte(&c->in);

	if (!(how & 3)) {
		krp_session_lost(&c->s, c->now_ns, -EHOSTUNREACH, "no route");
		return;
	}
	c->connected = 1;
	krp_session_connected(&c->s, c->now_ns, &link, nonce, how & 4 ? id : NULL);
}

static void fz_up(struct fz_client *c)
{
	__u64 full = 1000ULL * c->s.rate_max;

	c->tokens = full > 2000 ? full - 2000 : 0;
	c->tokens_ns = c->now_ns;
}

static void fz_act(struct fz_client *c, const struct krp_todo *todo)
{
	switch (todo->what) {
	case KRP_DO_CONNECT:
		fz_connect(c);
		break;
	case KRP_DO_SEND:
		fz_sent(c, todo);
		break;
	case KRP_DO_PROVE:
		krp_session_prove(&c->s, c->now_ns, fz_byte(&c->in) % 8 ? 0 : -ENOKEY,
				  c->s.attach.hello.nonce);
		break;
	case KRP_DO_VERIFY: /* a server with the key may be hostile as well */
		krp_session_verify(&c->s, c->now_ns, c->s.attach.welcome.mac);
		break;
	case KRP_DO_LOAD:
		krp_session_loaded(&c->s, c->now_ns, fz_byte(&c->in) % 8 ? 0 : -EPROTO);
		break;
	case KRP_DO_UP:
		fz_up(c);
		break;
	case KRP_DO_DONE:
		fz_done(c, todo);
		break;
	case KRP_DO_CLOSE:
		c->connected = 0;
		krp_session_closed(&c->s, c->now_ns, 12345);
		break;
	case KRP_DO_CHANGE:
		FZ_ASSERT(todo->event >= KRP_EVENT_CHANGED && todo->event <= KRP_EVENT_RESYNC);
		break;
	case KRP_DO_WAIT:
		break;
	}
}

/* Each slot is free, or waits for its answer, or for its buffer. */
static void fz_check(const struct fz_client *c)
{
	const struct krp_session *s = &c->s;
	unsigned int i, idle = 0, busy = 0, free_slots = 0;
	const struct krp_list *l;

	if (s->state < KRP_SESSION_HELLO || s->state > KRP_SESSION_READY)
		return;
	for (l = s->slots.idle.next; l != &s->slots.idle; l = l->next)
		idle++;
	for (l = s->slots.busy.next; l != &s->slots.busy; l = l->next)
		busy++;
	for (i = 0; i < FZ_SLOTS; i++)
		free_slots += !s->slots.at[i].busy && !s->slots.at[i].posted;
	FZ_ASSERT(idle == free_slots && busy == s->slots.busy_nr);
	FZ_ASSERT(s->state != KRP_SESSION_READY || busy <= s->slots.credits);
}

static void fz_pull(struct fz_client *c)
{
	struct krp_todo todo;
	unsigned int i;

	for (i = 0; krp_session_next(&c->s, c->now_ns, &todo) != KRP_DO_WAIT; i++) {
		FZ_ASSERT(i < FZ_PULLS_MAX);
		fz_act(c, &todo);
		fz_check(c);
	}
	FZ_ASSERT(todo.until_ns > c->now_ns);
	for (i = 0; i < FZ_SLOTS && c->s.state == KRP_SESSION_READY; i++)
		FZ_ASSERT(!c->s.slots.at[i].busy ||
			  c->now_ns - c->sent_ns[i] <= FZ_TIMEOUT_MS * KRP_NS_PER_MS);
	fz_trash(c);
	fz_check(c);
}

/* ---- what happens ---- */

static void fz_raw(struct fz_client *c)
{
	__u64 msg[KRP_MSG_BYTES_MAX / 8];
	unsigned int bytes = fz_byte(&c->in);

	fz_take(&c->in, msg, sizeof(msg));
	krp_session_received(&c->s, c->now_ns, msg, bytes);
}

/* Any lease that is one: most that were drawn would end the session. */
static void fz_lease(struct krp_welcome *m)
{
	__u32 most = KRP_LEASE_MS_MAX - KRP_LEASE_MS_MIN + 1;

	m->lease_ms = krp_cpu_to_le32(KRP_LEASE_MS_MIN + krp_le32_to_cpu(m->lease_ms) % most);
}

static void fz_say(struct fz_client *c, unsigned int type, __u32 xid, __u8 how)
{
	__u64 msg[KRP_MSG_BYTES_MAX / 8] = { 0 };
	struct krp_msg_hdr *hdr = (struct krp_msg_hdr *)(void *)msg;
	unsigned int bytes = krp_msg_bytes(type), status = how & 0x80 ? how % KRP_ST_CODES : 0;
	unsigned int body = fz_byte(&c->in);
	__u64 incarnation = how & 0x40 ? 8 : 7;

	krp_msg_init(msg, type, xid, status, incarnation);
	if (!status)
		fz_take(&c->in, hdr + 1, body < bytes - sizeof(*hdr) ? body : bytes - sizeof(*hdr));
	if (!status && type == KRP_MSG_WELCOME && (how & 0x30) != 0x30)
		fz_lease((struct krp_welcome *)(void *)msg);
	krp_session_received(&c->s, c->now_ns, msg, bytes);
}

static void fz_answer(struct fz_client *c, __u8 what)
{
	static const __u8 types[] = { KRP_MSG_ACK, KRP_MSG_VALUE, KRP_MSG_NOTIFY,
				      KRP_MSG_ROOT_REPLY };
	const struct krp_slot *slot = &c->s.slots.at[fz_byte(&c->in) % FZ_SLOTS];
	__u8 how = fz_byte(&c->in);
	unsigned int type = slot->type == KRP_MSG_LOOKUP ? KRP_MSG_VALUE : KRP_MSG_ACK;

	if (what & 0x40)
		type = types[(what >> 4) & 3];
	fz_say(c, type, slot->xid, how);
}

static void fz_shake(struct fz_client *c)
{
	int hello = c->s.state == KRP_SESSION_HELLO;

	fz_say(c, hello ? KRP_MSG_CHALLENGE : KRP_MSG_WELCOME, hello ? 1 : 2, fz_byte(&c->in));
}

static void fz_record(struct fz_client *c)
{
	struct krp_key key = { .gid = { 0xfe } };
	struct krp_value value = { .generation = krp_cpu_to_le64(1), .kind = KRP_KIND_RAW };
	__u8 what = fz_byte(&c->in);
	struct krp_record *rec;

	key.service = krp_cpu_to_le16((__u16)(what & 15));
	rec = krp_record_find(&c->pub, &key);
	if (what & 0x80) {
		if (rec && !rec->gone)
			krp_record_withdraw(&c->pub, rec, c->now_ns);
		return;
	}
	if (!rec) {
		rec = calloc(1, krp_record_bytes(1));
		FZ_ASSERT(rec);
		rec->key = key;
		krp_record_link(&c->pub, rec);
	}
	krp_record_publish(&c->pub, rec, &value);
}

static void fz_give_up(struct fz_client *c, unsigned int i)
{
	krp_session_give_up(&c->s, c->ask[i]);
	FZ_ASSERT(c->ask[i]->err != -EINPROGRESS);
	free(c->ask[i]);
	c->ask[i] = NULL;
}

static void fz_ask(struct fz_client *c)
{
	__u8 what = fz_byte(&c->in);
	unsigned int i = what % FZ_ASKS;

	if (c->ask[i]) {
		fz_give_up(c, i);
		return;
	}
	c->ask[i] = calloc(1, sizeof(struct krp_ask));
	FZ_ASSERT(c->ask[i]);
	c->ask[i]->type = what & 0x80 ? KRP_MSG_WITHDRAW : KRP_MSG_LOOKUP;
	c->ask_ns[i] = c->now_ns + FZ_DEADLINE_NS;
	if (krp_session_ask(&c->s, c->ask[i])) {
		free(c->ask[i]);
		c->ask[i] = NULL;
	}
}

static void fz_time(struct fz_client *c)
{
	unsigned int i;

	c->now_ns += (fz_byte(&c->in) + 1) * 7 * KRP_NS_PER_MS;
	fz_pull(c);
	for (i = 0; i < FZ_ASKS; i++)
		if (c->ask[i] && c->now_ns >= c->ask_ns[i])
			fz_give_up(c, i);
}

static void fz_line(struct fz_client *c)
{
	__u8 what = fz_byte(&c->in);

	if (!(what & 7))
		krp_session_lost(&c->s, c->now_ns, -ECONNRESET, "broke");
	else if (what & 8)
		krp_session_subscribe(&c->s, what & 16);
	else if (what & 32)
		krp_session_pulse(&c->s, c->now_ns, what & 64, what);
}

static void fz_step(struct fz_client *c)
{
	__u8 what = fz_byte(&c->in);

	switch ((enum fz_op)(what & 7)) {
	case FZ_RAW:
		fz_raw(c);
		break;
	case FZ_ANSWER:
		fz_answer(c, what);
		break;
	case FZ_SHAKE:
		fz_shake(c);
		break;
	case FZ_TIME:
		fz_time(c);
		break;
	case FZ_RECORD:
		fz_record(c);
		break;
	case FZ_ASK:
		fz_ask(c);
		break;
	case FZ_BUFFER:
		krp_session_sent(&c->s, fz_byte(&c->in) % FZ_SLOTS);
		break;
	case FZ_LINE:
		fz_line(c);
		break;
	}
	fz_pull(c);
}

static void fz_begin(struct fz_client *c)
{
	c->now_ns = 1000 * KRP_NS_PER_MS;
	c->conf = (struct krp_session_conf){ .owner = { 9 },
					     .name = "n",
					     .generation = 1,
					     .features = KRP_FEATURES_ALL,
					     .timeout_ms = FZ_TIMEOUT_MS,
					     .reconnect_min_ms = 10,
					     .reconnect_max_ms = 100,
					     .slots = FZ_SLOTS };
	krp_publisher_init(&c->pub, c->chains, FZ_CHAINS, 1);
	krp_session_init(&c->s, &c->pub, 0, &c->conf);
	fz_pull(c);
}

static void fz_end(struct fz_client *c)
{
	unsigned int i;

	krp_session_end(&c->s, c->now_ns);
	fz_pull(c);
	FZ_ASSERT(c->s.state == KRP_SESSION_DOWN);
	for (i = 0; i < FZ_ASKS; i++)
		FZ_ASSERT(!c->ask[i]); /* each has ended with the connection */
	krp_records_leave(&c->pub, 0, 1);
	while (!krp_list_empty(&c->pub.records))
		krp_record_drop(&c->pub, krp_entry(c->pub.records.next, struct krp_record, link));
	fz_trash(c);
	FZ_ASSERT(!c->pub.nr);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fz_client client;
	struct fz_client *c = &client;
	unsigned int i;

	memset(c, 0, sizeof(*c));
	c->in = (struct fz_stream){ data, size };
	fz_begin(c);
	for (i = 0; i < FZ_STEPS_MAX && c->in.size; i++)
		fz_step(c);
	fz_end(c);
	return 0;
}
