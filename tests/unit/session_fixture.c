// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* See session_fixture.h. */
#include "tests/unit/session_fixture.h"
#include "tests/unit/unread_table.h"

const uint8_t my_gid[KRP_GID_BYTES] = { 0xfe, 0x80, [15] = 7 };
const uint8_t other_gid[KRP_GID_BYTES] = { 0xfe, 0x80, [15] = 8 };
const struct krp_link my_link = {
	.client_gid = { 0xfe, 0x80, [15] = 7 },
	.server_gid = { 0xfe, 0x80, [15] = 1 },
	.client_qpn = (KRP_FORCE __le32)0x11,
	.server_qpn = (KRP_FORCE __le32)0x22,
};

static int fx_send(void *arg, const void *msg, unsigned int bytes, bool notify)
{
	struct fixture *fx = arg;

	if (notify && !fx->notify_room)
		return -ENOBUFS;
	if (fx->send_error)
		return fx->send_error;
	assert_true(fx->sent_nr < SENT_MAX);
	/* what a server says must be well formed too */
	assert_int_equal(krp_msg_check(msg, bytes, 0), KRP_ST_OK);
	fx->notify_room -= notify;
	memcpy(fx->sent[fx->sent_nr++].bytes, msg, bytes);
	return 0;
}

static int fx_open_reads(void *arg)
{
	struct fixture *fx = arg;

	fx->opened++;
	return fx->open_error;
}

static void fx_root(void *arg, struct krp_root_ref *ret_root)
{
	(void)arg;
	ret_root->addr = krp_cpu_to_le64(0x1000);
	ret_root->rkey = krp_cpu_to_le32(5);
	ret_root->bytes = krp_cpu_to_le32(sizeof(struct krp_root));
}

static void fx_close(void *arg, const char *why)
{
	struct fixture *fx = arg;

	fx->closed++;
	fx->why = why;
}

static const struct ms_session_ops fx_session_ops = {
	.send = fx_send,
	.open_reads = fx_open_reads,
	.root = fx_root,
	.close = fx_close,
};

static void fx_changed(void *arg, unsigned int event, const struct krp_key *key,
		       uint64_t generation, const char *why)
{
	struct fixture *fx = arg;

	(void)why;
	ms_hub_notify(&fx->hub, event, key, generation);
}

static const struct ms_ledger_ops fx_ledger_ops = { fx_changed };

void fx_session_at(struct fixture *fx, const uint8_t *gid, bool gid_known)
{
	struct krp_link link = my_link;

	memcpy(link.client_gid, gid, sizeof(link.client_gid));
	if (fx->s.hub)
		ms_session_fini(&fx->s);
	ms_session_init(&fx->s, &fx->hub, &fx_session_ops, fx, &link, gid_known, fx->now);
	fx->sent_nr = 0;
	fx->opened = 0;
	fx->closed = 0;
	fx->notify_room = 1000;
	fx->send_error = 0;
	fx->open_error = 0;
}

void fx_session(struct fixture *fx)
{
	fx_session_at(fx, my_gid, true);
}

int fx_setup(void **state)
{
	struct ms_table_config tc = { .incarnation = INCARNATION,
				      .salt = FX_SALT,
				      .log2_segment_pages = 4,
				      .segments_max = 16,
				      .depth_max = 8 };
	struct ms_ledger_config lc = { .tick_ms = 100, .records_max = 8, .salt = 9 };
	struct fixture *fx = calloc(1, sizeof(*fx));

	fx->now = 500000;
	fx->hub.incarnation = INCARNATION;
	fx->hub.limits = (struct ms_limits){ .lease_ms = 30000,
					     .lease_min_ms = 3000,
					     .lease_max_ms = 300000,
					     .tick_ms = 100,
					     .records_max = 8,
					     .clients_max = 1,
					     .rate_max = 1000,
					     .credits = 16,
					     .idle_timeout_ms = 60000 };
	assert_int_equal(ms_hub_init(&fx->hub, 3, fx->now), 0);
	fx->hub.auth = true;
	fx->hub.keys.nr = 1;
	fx->hub.keys.key[0].len = 32;
	memset(fx->hub.keys.key[0].bytes, 0x5a, 32);
	assert_int_equal(ms_table_new(&tc, &ut_table_ops, NULL, &fx->hub.table), 0);
	assert_int_equal(
		ms_ledger_new(&lc, fx->hub.table, &fx_ledger_ops, fx, fx->now, &fx->hub.ledger), 0);
	fx_session(fx);
	*state = fx;
	return 0;
}

int fx_teardown(void **state)
{
	struct fixture *fx = *state;

	ms_session_fini(&fx->s);
	assert_int_equal(fx->hub.stats.sessions, 0);
	assert_int_equal(fx->hub.stats.sessions_pending, 0);
	assert_int_equal(fx->hub.stats.subscribers, 0);
	assert_null(fx->hub.subscribers);
	ms_ledger_free(fx->hub.ledger);
	ms_table_free(fx->hub.table);
	ms_hub_fini(&fx->hub);
	free(fx);
	return 0;
}

void give(struct fixture *fx, const void *msg)
{
	const struct krp_msg_hdr *hdr = msg;

	ms_session_receive(&fx->s, msg, krp_le16_to_cpu(hdr->bytes), fx->now);
}

unsigned int last_status(const struct fixture *fx)
{
	assert_true(fx->sent_nr);
	return krp_le16_to_cpu(fx->sent[fx->sent_nr - 1].hdr.status);
}

void assert_answer(const struct fixture *fx, unsigned int type, uint32_t xid, unsigned int status)
{
	const struct krp_msg_hdr *hdr = &fx->sent[fx->sent_nr - 1].hdr;

	assert_true(fx->sent_nr);
	assert_int_equal(hdr->type, type);
	assert_int_equal(krp_le32_to_cpu(hdr->xid), xid);
	assert_int_equal(krp_le16_to_cpu(hdr->status), status);
	assert_int_equal(krp_le64_to_cpu(hdr->incarnation), INCARNATION);
	/* a refusal has an empty body */
	if (status)
		assert_true(krp_is_zero(hdr + 1, krp_msg_bytes(type) - sizeof(*hdr)));
}

void make_hello(struct krp_hello *h)
{
	krp_msg_init(h, KRP_MSG_HELLO, 1, 0, 0);
	h->features = krp_cpu_to_le64(KRP_FEATURES_ALL | 1ULL << 40);
	h->generation = krp_cpu_to_le64(77);
	h->owner[0] = 9;
	memcpy(h->gid, my_gid, sizeof(h->gid));
	h->nonce[3] = 1;
	h->version_min = KRP_MSG_VERSION;
	h->version_max = KRP_MSG_VERSION;
	strcpy((char *)h->name, "node1");
}

void make_auth(const struct fixture *fx, struct krp_auth *a)
{
	const struct krp_challenge *challenge = &fx->sent[fx->sent_nr - 1].challenge;
	struct kru_handshake shake = { &fx->s.link, &fx->hello, challenge };
	const struct kru_key *key = kru_keys_find(&fx->hub.keys, challenge->key_id);

	krp_msg_init(a, KRP_MSG_AUTH, 2, 0, 0);
	if (fx->hub.auth && key)
		kru_auth_client(key, &shake, a->mac);
}

void say_hello(struct fixture *fx)
{
	make_hello(&fx->hello);
	memcpy(fx->hello.gid, fx->s.gid, sizeof(fx->hello.gid));
	give(fx, &fx->hello);
}

void prove(struct fixture *fx)
{
	struct krp_auth a;

	make_auth(fx, &a);
	give(fx, &a);
}

void attach(struct fixture *fx)
{
	say_hello(fx);
	prove(fx);
	assert_int_equal(fx->s.state, MS_STATE_READY);
}

void make_publish(struct krp_publish *m, unsigned int service, unsigned int payload)
{
	krp_msg_init(m, KRP_MSG_PUBLISH, 100 + service, 0, 0);
	memcpy(m->key.gid, my_gid, sizeof(my_gid));
	m->key.service = krp_cpu_to_le16((__u16)service);
	m->value.generation = krp_cpu_to_le64(77);
	m->value.kind = KRP_KIND_RAW;
	m->value.len = 4;
	memcpy(m->value.raw, &payload, 4);
}
