// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The server's side of the control protocol: three clients of one hub say
 * whatever the input says, over a transport that only listens.
 *
 * Messages are raw bytes, or have a good header put in front, or a good body as
 * well: a client that knows the protocol and means ill. Whatever they do, all
 * that the server says is well formed, nobody gets READs without having proved
 * the key when one is demanded, nobody holds more records than the limit, and
 * nobody publishes for another's GID.
 */
#include <errno.h>

#include "metaserver/session.h"
#include "tests/fuzz/fuzz.h"

#define FZ_CLIENTS 3
#define FZ_RECORDS_MAX 4
#define FZ_STEPS_MAX 512

/* what to do next, low bits of a byte of the input */
enum fz_session_op {
	FZ_RAW,
	FZ_HEADER,
	FZ_BODY,
	FZ_PROOF,
	FZ_TIME,
	FZ_ROOM,
	FZ_AGAIN,
	FZ_DRAIN,
};

struct fz_session_client {
	struct ms_session s;
	struct ms_hub *hub;
	struct krp_hello hello;
	struct krp_challenge challenge;
	int challenged;
	int proved;
	int reads;
	int closed;
	unsigned int notify_room;
	int send_error;
};

struct fz_world {
	struct ms_hub hub;
	struct fz_session_client client[FZ_CLIENTS];
	struct fz_stream in;
	struct fz_session_client *speaker;
	uint64_t now_ms;
	int any_gid;
};

static const uint8_t fz_gid[FZ_CLIENTS][KRP_GID_BYTES] = { { 0xfe, 0x80, [15] = 1 },
							   { 0xfe, 0x80, [15] = 2 },
							   { 0xfe, 0x80, [15] = 2 } };

static int fz_send(void *arg, const void *msg, unsigned int bytes, bool notify)
{
	struct fz_session_client *c = arg;
	const struct krp_msg_hdr *hdr = msg;

	FZ_ASSERT(krp_msg_check(msg, bytes, 0) == KRP_ST_OK);
	FZ_ASSERT(notify == (hdr->type == KRP_MSG_NOTIFY));
	FZ_ASSERT(!c->closed);
	if (notify && !c->notify_room)
		return -ENOBUFS;
	if (!notify && c->send_error)
		return -ENOBUFS;
	c->notify_room -= notify;
	if (hdr->type == KRP_MSG_CHALLENGE && !hdr->status) {
		memcpy(&c->challenge, msg, sizeof(c->challenge));
		c->challenged = 1;
	}
	return 0;
}

static int fz_open_reads(void *arg)
{
	struct fz_session_client *c = arg;

	FZ_ASSERT(!c->hub->auth || c->proved);
	FZ_ASSERT(!c->reads && !c->closed);
	c->reads = 1;
	return 0;
}

static void fz_root(void *arg, struct krp_root_ref *ret_root)
{
	(void)arg;
	ret_root->addr = krp_cpu_to_le64(0x1000);
	ret_root->rkey = krp_cpu_to_le32(5);
	ret_root->bytes = krp_cpu_to_le32(sizeof(struct krp_root));
}

static void fz_close(void *arg, const char *why)
{
	struct fz_session_client *c = arg;

	FZ_ASSERT(!c->closed && why && *why);
	c->closed = 1;
}

static const struct ms_session_ops fz_session_ops = {
	.send = fz_send,
	.open_reads = fz_open_reads,
	.root = fz_root,
	.close = fz_close,
};

static int fz_segment_add(void *arg, unsigned int nr, void *addr, size_t bytes)
{
	(void)arg;
	(void)nr;
	FZ_ASSERT(addr && bytes);
	return 0;
}

static int fz_dir_add(void *arg, void *addr, size_t bytes)
{
	(void)arg;
	FZ_ASSERT(addr && bytes);
	return 0;
}

static void fz_root_changed(void *arg)
{
	(void)arg;
}

static const struct ms_table_ops fz_table_ops = { .segment_add = fz_segment_add,
						  .dir_add = fz_dir_add,
						  .root_changed = fz_root_changed };

static void fz_changed(void *arg, unsigned int event, const struct krp_key *key,
		       uint64_t generation, const char *why)
{
	struct fz_world *w = arg;

	FZ_ASSERT(why && (event == KRP_EVENT_CHANGED || event == KRP_EVENT_GONE));
	if (event == KRP_EVENT_CHANGED)
		FZ_ASSERT(w->speaker && w->speaker->reads && !w->hub.draining);
	/* nobody guesses a token */
	if (w->speaker)
		FZ_ASSERT(w->any_gid ||
			  !memcmp(key->gid, fz_gid[w->speaker - w->client], KRP_GID_BYTES));
	ms_hub_notify(&w->hub, event, key, generation);
}

static const struct ms_ledger_ops fz_ledger_ops = { fz_changed };

static void fz_connect(struct fz_world *w, unsigned int nr)
{
	struct fz_session_client *c = &w->client[nr];
	struct krp_link link = { .client_qpn = krp_cpu_to_le32(nr) };

	memcpy(link.client_gid, fz_gid[nr], sizeof(link.client_gid));
	if (c->hub)
		ms_session_fini(&c->s);
	memset(c, 0, sizeof(*c));
	c->hub = &w->hub;
	c->notify_room = 2;
	ms_session_init(&c->s, &w->hub, &fz_session_ops, c, &link, true, w->now_ms);
}

/* A body that is in its ranges, so that what lies behind the checks is reached. */
static void fz_complete(struct fz_world *w, struct fz_session_client *c, void *msg)
{
	const struct krp_msg_hdr *hdr = msg;
	unsigned int nr = (unsigned int)(c - w->client);

	if (hdr->type == KRP_MSG_HELLO) {
		struct krp_hello *m = msg;

		memset(m->rsvd, 0, sizeof(m->rsvd));
		memset(m->rsvd2, 0, sizeof(m->rsvd2));
		memset(m->owner, 0, sizeof(m->owner));
		m->owner[0] = (__u8)(1 + (fz_byte(&w->in) & 1));
		m->generation = krp_cpu_to_le64(1 + (fz_byte(&w->in) & 3));
		memcpy(m->gid, fz_gid[nr], sizeof(m->gid));
		m->features = krp_cpu_to_le64(KRP_FEATURES_ALL);
		m->version_min = KRP_MSG_VERSION;
		m->version_max = KRP_MSG_VERSION;
		m->name[KRP_NAME_BYTES - 1] = 0;
	} else if (hdr->type == KRP_MSG_PUBLISH) {
		struct krp_publish *m = msg;

		memset(m->rsvd, 0, sizeof(m->rsvd));
		memcpy(m->key.gid, fz_gid[fz_byte(&w->in) % FZ_CLIENTS], sizeof(m->key.gid));
		m->key.service = krp_cpu_to_le16(fz_byte(&w->in) & 7);
		memset(&m->value, 0, sizeof(m->value));
		m->value.generation = c->hello.generation;
		m->value.kind = KRP_KIND_RAW;
	} else if (hdr->type == KRP_MSG_WITHDRAW || hdr->type == KRP_MSG_LOOKUP) {
		struct krp_withdraw *m = msg;

		memset(m->rsvd, 0, sizeof(m->rsvd));
		memcpy(m->key.gid, fz_gid[fz_byte(&w->in) % FZ_CLIENTS], sizeof(m->key.gid));
		m->key.service = krp_cpu_to_le16(fz_byte(&w->in) & 7);
	} else if (hdr->type == KRP_MSG_SUBSCRIBE) {
		struct krp_subscribe *m = msg;

		m->flags &= KRP_SUBSCRIBE_ALL;
		memset(m->rsvd, 0, sizeof(m->rsvd));
	}
}

static void fz_say(struct fz_world *w, struct fz_session_client *c, enum fz_session_op op)
{
	__u64 bytes[KRP_MSG_BYTES_MAX / 8 + 8];
	struct krp_msg_hdr *hdr = (struct krp_msg_hdr *)bytes;
	unsigned int type = fz_byte(&w->in) % KRP_MSG_TYPES, size = krp_msg_bytes(type);
	void *exact;

	if (op == FZ_RAW || !size)
		size = fz_byte(&w->in);
	fz_take(&w->in, bytes, size);
	if (op != FZ_RAW && krp_msg_bytes(type)) {
		struct krp_msg_hdr good;
		__u8 fresh[KRP_MSG_BYTES_MAX];

		krp_msg_init(fresh, type, fz_byte(&w->in), KRP_ST_OK, 0);
		memcpy(&good, fresh, sizeof(good));
		*hdr = good;
		if (op == FZ_BODY)
			fz_complete(w, c, bytes);
	}
	if (size >= sizeof(c->hello) && hdr->type == KRP_MSG_HELLO && c->s.state == MS_STATE_HELLO)
		memcpy(&c->hello, bytes, sizeof(c->hello));
	exact = fz_copy((const uint8_t *)bytes, size);
	w->speaker = c;
	ms_session_receive(&c->s, exact, size, w->now_ms);
	w->speaker = NULL;
	free(exact);
}

/* The proof that only one who has the key can make. */
static void fz_prove(struct fz_world *w, struct fz_session_client *c)
{
	struct kru_handshake shake = { &c->s.link, &c->hello, &c->challenge };
	struct krp_auth auth;

	if (!c->challenged)
		return;
	krp_msg_init(&auth, KRP_MSG_AUTH, 2, KRP_ST_OK, 0);
	if (c->challenge.flags & KRP_CHALLENGE_AUTH)
		kru_auth_client(&w->hub.keys.key[0], &shake, auth.mac);
	c->proved = 1;
	ms_session_receive(&c->s, &auth, sizeof(auth), w->now_ms);
}

static bool fz_visit(void *arg, const struct ms_ledger_record *rec)
{
	unsigned int *nr = arg;

	FZ_ASSERT(!krp_is_zero(rec->owner, sizeof(rec->owner)) && !rec->imported);
	FZ_ASSERT(krp_value_valid(&rec->value));
	FZ_ASSERT(krp_le64_to_cpu(rec->value.generation) == rec->generation);
	(*nr)++;
	return true;
}

static void fz_check(struct fz_world *w)
{
	unsigned int i;

	for (i = 0; i < FZ_CLIENTS; i++) {
		struct fz_session_client *c = &w->client[i];

		FZ_ASSERT((c->s.state == MS_STATE_CLOSING) == !!c->closed);
		FZ_ASSERT(c->s.state != MS_STATE_READY || c->reads);
		if (c->s.state == MS_STATE_READY)
			FZ_ASSERT(ms_ledger_count(w->hub.ledger, w->now_ms, &c->s.claim, NULL) <=
				  FZ_RECORDS_MAX);
	}
}

static void fz_step(struct fz_world *w)
{
	__u8 what = fz_byte(&w->in);
	struct fz_session_client *c = &w->client[(what >> 4) % FZ_CLIENTS];
	enum fz_session_op op = what & 7;

	switch (op) {
	case FZ_RAW:
	case FZ_HEADER:
	case FZ_BODY:
		c->send_error = (what & 0xf8) == 0xf8;
		fz_say(w, c, op);
		break;
	case FZ_PROOF:
		fz_prove(w, c);
		break;
	case FZ_TIME:
		w->now_ms += (uint64_t)fz_byte(&w->in) * 100;
		ms_session_check(&c->s, w->now_ms);
		while (ms_ledger_sweep(w->hub.ledger, w->now_ms, 64))
			;
		break;
	case FZ_ROOM:
		c->notify_room += 2;
		if (!c->closed)
			ms_session_room(&c->s);
		break;
	case FZ_AGAIN:
		fz_connect(w, (unsigned int)(c - w->client));
		break;
	case FZ_DRAIN:
		w->hub.draining = what & 8;
		break;
	}
	fz_check(w);
}

static void fz_begin(struct fz_world *w)
{
	struct ms_table_config tc = { .incarnation = 7,
				      .salt = 5,
				      .log2_segment_pages = 2,
				      .segments_max = 4,
				      .depth_max = 4,
				      .asides_max = 8 };
	struct ms_ledger_config lc = { .tick_ms = 100, .records_max = FZ_RECORDS_MAX, .salt = 9 };
	__u8 how = fz_byte(&w->in);
	unsigned int i;

	w->now_ms = 1000;
	w->any_gid = how & 2;
	w->hub.incarnation = tc.incarnation;
	FZ_ASSERT(!ms_hub_init(&w->hub, 3, w->now_ms));
	w->hub.auth = how & 1;
	w->hub.settle.until_ms = how & 4 ? UINT64_MAX : how & 8 ? w->now_ms + 2000 : 0;
	w->hub.keys.nr = 1;
	w->hub.keys.key[0].len = KRU_KEY_BYTES_MIN;
	memset(w->hub.keys.key[0].bytes, 0x5a, KRU_KEY_BYTES_MIN);
	memset(w->hub.secret, 0xa5, sizeof(w->hub.secret));
	w->hub.limits = (struct ms_limits){ .lease_ms = 5000,
					    .lease_min_ms = 1000,
					    .lease_max_ms = 20000,
					    .tick_ms = 100,
					    .records_max = FZ_RECORDS_MAX,
					    .clients_max = 100,
					    .rate_max = 50,
					    .credits = 4,
					    .idle_timeout_ms = 10000,
					    .publish_any_gid = w->any_gid };
	FZ_ASSERT(!ms_table_new(&tc, &fz_table_ops, w, &w->hub.table));
	FZ_ASSERT(!ms_ledger_new(&lc, w->hub.table, &fz_ledger_ops, w, w->now_ms, &w->hub.ledger));
	for (i = 0; i < FZ_CLIENTS; i++)
		fz_connect(w, i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fz_world world;
	struct fz_world *w = &world;
	struct ms_table_stats stats;
	unsigned int i, records = 0;

	memset(w, 0, sizeof(*w));
	w->in = (struct fz_stream){ data, size };
	fz_begin(w);
	for (i = 0; i < FZ_STEPS_MAX && w->in.size; i++)
		fz_step(w);
	ms_ledger_each(w->hub.ledger, w->now_ms, 0, fz_visit, &records);
	ms_table_stats(w->hub.table, &stats);
	FZ_ASSERT(stats.records == records);
	for (i = 0; i < FZ_CLIENTS; i++)
		ms_session_fini(&w->client[i].s);
	ms_ledger_free(w->hub.ledger);
	ms_table_free(w->hub.table);
	ms_hub_fini(&w->hub);
	return 0;
}
