// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* See session_world.h. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/session_world.h"
#include "tests/unit/unread_table.h"

static const uint8_t server_gid[KRP_GID_BYTES] = { 0xfe, 0x80, [15] = 0xff };

uint32_t wd_random(struct wd_world *w)
{
	w->dice = w->dice * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(w->dice >> 32);
}

static uint64_t now_ns(const struct wd_world *w)
{
	return w->now_ms * KRP_NS_PER_MS;
}

/* ---- servers ---- */

static int server_send(void *arg, const void *msg, unsigned int bytes, bool notify)
{
	struct wd_conn *conn = arg;

	if (notify && conn->lose_notifies) {
		conn->lose_notifies--;
		return 0;
	}
	assert_int_equal(krp_msg_check(msg, bytes, 0), KRP_ST_OK);
	sv_frames_put(&conn->down_to, msg, bytes);
	return 0;
}

static void server_root(void *arg, struct krp_root_ref *ret_root)
{
	(void)arg;
	sv_root(0x1000, ret_root);
}

static void server_close(void *arg, const char *why)
{
	struct wd_conn *conn = arg;

	conn->closing = true;
	conn->world->server[conn->server].why = why;
}

static const struct ms_session_ops session_ops = {
	.send = server_send,
	.open_reads = sv_open_reads,
	.root = server_root,
	.close = server_close,
};

static void server_stop(struct wd_world *w, unsigned int nr)
{
	struct ms_hub *hub = &w->server[nr].hub;
	struct ms_table *table = hub->table;
	unsigned int i;

	for (i = 0; i < WD_CLIENTS; i++)
		if (w->client[i].live)
			wd_break(w, i, nr);
	sv_hub_stop(hub);
	ms_table_free(table);
}

void wd_server_start(struct wd_world *w, unsigned int nr)
{
	struct wd_server *server = &w->server[nr];
	struct ms_table_config table = { .incarnation = 1000 + ++w->incarnations,
					 .salt = 5,
					 .log2_segment_pages = 4,
					 .segments_max = 16,
					 .depth_max = 8,
					 .asides_max = 16 };
	struct ms_table *memory;

	if (server->hub.table)
		server_stop(w, nr);
	server->hub.incarnation = table.incarnation;
	server->hub.limits = w->limits;
	assert_int_equal(ms_table_new(&table, &ut_table_ops, NULL, &memory), 0);
	sv_hub_start(&server->hub, memory, w->now_ms);
	server->hub.auth = w->auth;
	server->hub.keys.nr = 1;
	server->hub.keys.key[0].len = 32;
	memset(server->hub.keys.key[0].bytes, 0x5a, 32);
	memset(server->hub.secret, (int)(0x30 + nr + w->incarnations), sizeof(server->hub.secret));
	server->reachable = true;
}

static void server_tick(struct wd_world *w, unsigned int nr)
{
	struct wd_server *server = &w->server[nr];
	unsigned int i;

	for (i = 0; i < WD_CLIENTS; i++)
		if (w->client[i].live && w->client[i].conn[nr].up)
			ms_session_check(&w->client[i].conn[nr].ms, w->now_ms);
	while (ms_ledger_sweep(server->hub.ledger, w->now_ms, 64))
		;
	ms_hub_seal(&server->hub, w->now_ms);
	while (ms_hub_tell(&server->hub, 64))
		;
}

/* ---- connections ---- */

static void disconnect(struct wd_conn *conn)
{
	if (conn->up)
		ms_session_fini(&conn->ms);
	conn->up = false;
	conn->closing = false;
	sv_frames_drop(&conn->up_to);
	sv_frames_drop(&conn->down_to);
}

static void connect(struct wd_world *w, unsigned int client, unsigned int server)
{
	struct wd_client *c = &w->client[client];
	struct wd_conn *conn = &c->conn[server];
	uint32_t client_qpn = wd_random(w) & 0xffffff, server_qpn = wd_random(w) & 0xffffff;
	__u8 nonce[KRP_NONCE_BYTES] = { 1, (__u8)wd_random(w) }, id[KRP_KEY_ID_BYTES];
	struct krp_link link;

	if (!w->server[server].reachable) {
		krp_session_lost(&c->s[server], now_ns(w), -EHOSTUNREACH, "no route");
		return;
	}
	assert_false(conn->up);
	sv_link(c->gid, server_gid, client_qpn, server_qpn, &link);
	ms_session_init(&conn->ms, &w->server[server].hub, &session_ops, conn, &link, true,
			w->now_ms);
	conn->up = true;
	if (c->keys.nr)
		kru_key_id(&c->keys.key[0], id);
	krp_session_connected(&c->s[server], now_ns(w), &link, nonce, c->keys.nr ? id : NULL);
}

void wd_break(struct wd_world *w, unsigned int client, unsigned int server)
{
	struct wd_client *c = &w->client[client];

	krp_session_lost(&c->s[server], now_ns(w), -ECONNRESET, "the connection broke");
	wd_pull(w, client, server);
}

/* ---- clients ---- */

static void trash(struct krp_publisher *pub)
{
	struct krp_record *rec;

	while ((rec = krp_records_trash(pub)))
		free(rec);
}

static void proof(struct wd_world *w, struct wd_client *c, struct krp_session *s, bool server)
{
	struct kru_handshake shake = { &s->attach.link, &s->attach.hello, &s->attach.challenge };
	const struct kru_key *key = kru_keys_find(&c->keys, s->attach.challenge.key_id);
	__u8 mac[KRP_MAC_BYTES];

	if (server) {
		if (key)
			kru_auth_server(key, &shake, &s->attach.welcome, mac);
		krp_session_verify(s, now_ns(w), key ? mac : NULL);
		return;
	}
	if (key)
		kru_auth_client(key, &shake, mac);
	krp_session_prove(s, now_ns(w), key ? 0 : -ENOKEY, mac);
}

static void send_todo(struct wd_client *c, unsigned int server, const struct krp_todo *todo)
{
	/* what a client says must be well formed too */
	assert_int_equal(krp_msg_check(todo->msg, todo->bytes, 1), KRP_ST_OK);
	assert_true(c->conn[server].up && todo->slot < c->conf.slots);
	sv_frames_put(&c->conn[server].up_to, todo->msg, todo->bytes);
	c->sent[server][todo->type]++;
	if (!c->buffers_late)
		krp_session_sent(&c->s[server], todo->slot);
}

static void act(struct wd_world *w, unsigned int client, unsigned int server,
		const struct krp_todo *todo)
{
	struct wd_client *c = &w->client[client];
	struct krp_session *s = &c->s[server];

	switch (todo->what) {
	case KRP_DO_CONNECT:
		connect(w, client, server);
		break;
	case KRP_DO_SEND:
		send_todo(c, server, todo);
		break;
	case KRP_DO_PROVE:
	case KRP_DO_VERIFY:
		proof(w, c, s, todo->what == KRP_DO_VERIFY);
		break;
	case KRP_DO_LOAD:
		krp_session_loaded(s, now_ns(w), 0);
		break;
	case KRP_DO_UP:
		c->ups++;
		break;
	case KRP_DO_CHANGE:
		c->resyncs += todo->event == KRP_EVENT_RESYNC;
		c->changes += todo->event == KRP_EVENT_CHANGED;
		c->gone += todo->event == KRP_EVENT_GONE;
		break;
	case KRP_DO_DONE:
		c->done += !!todo->ask;
		c->refusals += todo->refusal;
		break;
	case KRP_DO_CLOSE:
		disconnect(&c->conn[server]);
		krp_session_closed(s, now_ns(w), wd_random(w));
		break;
	case KRP_DO_WAIT:
		break;
	}
}

void wd_pull(struct wd_world *w, unsigned int client, unsigned int server)
{
	struct wd_client *c = &w->client[client];
	struct krp_todo todo;
	unsigned int i;

	for (i = 0; krp_session_next(&c->s[server], now_ns(w), &todo) != KRP_DO_WAIT; i++) {
		assert_true(i < 10000); /* it comes to an end */
		act(w, client, server, &todo);
	}
	assert_true(todo.until_ns > now_ns(w) || c->s[server].pace.full);
	trash(&c->pub);
}

static void pull_all(struct wd_world *w, unsigned int client)
{
	unsigned int i;

	for (i = 0; i < w->servers_nr; i++)
		wd_pull(w, client, i);
}

void wd_client_start(struct wd_world *w, unsigned int client, uint8_t last_of_gid)
{
	struct wd_client *c = &w->client[client];
	unsigned int i;

	memset(c, 0, sizeof(*c));
	c->live = true;
	c->gid[0] = 0xfe;
	c->gid[1] = 0x80;
	c->gid[15] = last_of_gid;
	c->conf = (struct krp_session_conf){ .owner = { 9 },
					     .name = "node1",
					     .generation = WD_GENERATION,
					     .features = KRP_FEATURES_ALL,
					     .timeout_ms = WD_TIMEOUT_MS,
					     .reconnect_min_ms = 50,
					     .reconnect_max_ms = 400,
					     .slots = 8 };
	if (w->auth)
		c->keys = w->server[0].hub.keys;
	krp_publisher_init(&c->pub, c->chains, WD_CHAINS, WD_SERVERS);
	for (i = 0; i < w->servers_nr; i++) {
		krp_session_init(&c->s[i], &c->pub, i, &c->conf);
		c->conn[i].world = w;
		c->conn[i].client = client;
		c->conn[i].server = i;
	}
	pull_all(w, client);
}

static bool withdrawn(struct wd_world *w, struct wd_client *c)
{
	unsigned int i;

	for (i = 0; i < w->servers_nr; i++)
		if (!krp_session_left(&c->s[i]))
			return false;
	return true;
}

void wd_client_stop(struct wd_world *w, unsigned int client, bool now, struct krp_list *left)
{
	struct wd_client *c = &w->client[client];
	uint64_t until_ms = w->now_ms + 1000;
	unsigned int i;

	for (i = 0; i < w->servers_nr; i++)
		krp_session_leave(&c->s[i]);
	pull_all(w, client);
	wd_settle(w);
	while (!now && !withdrawn(w, c) && w->now_ms < until_ms)
		wd_run(w, WD_STEP_MS);
	for (i = 0; i < w->servers_nr; i++) {
		krp_session_end(&c->s[i], now_ns(w));
		wd_pull(w, client, i);
		assert_int_equal(c->s[i].state, KRP_SESSION_DOWN);
	}
	for (i = 0; i < w->servers_nr; i++)
		krp_records_leave(&c->pub, i, 1);
	if (left)
		krp_records_take_orphans(&c->pub, left);
	while (!krp_list_empty(&c->pub.records))
		krp_record_drop(&c->pub, krp_entry(c->pub.records.next, struct krp_record, link));
	trash(&c->pub);
	assert_int_equal(c->pub.nr, 0);
	c->live = false;
}

void wd_client_adopt(struct wd_world *w, unsigned int client, struct krp_list *left, bool own)
{
	struct wd_client *c = &w->client[client];
	struct krp_list *l, *next;

	for (l = left->next; l != left; l = next) {
		struct krp_record *rec = krp_entry(l, struct krp_record, link);

		next = l->next;
		if (own && memcmp(rec->key.gid, c->gid, sizeof(c->gid)))
			continue;
		krp_list_del(l);
		krp_record_adopt(&c->pub, rec, now_ns(w));
	}
	pull_all(w, client);
}

void wd_client_release(struct wd_world *w, unsigned int client, const uint8_t *gid,
		       struct krp_list *left)
{
	krp_records_release(&w->client[client].pub, gid, left);
}

struct krp_record *wd_find(struct wd_world *w, unsigned int client, uint16_t service)
{
	struct wd_client *c = &w->client[client];
	struct krp_key key = { .service = krp_cpu_to_le16(service) };

	memcpy(key.gid, c->gid, sizeof(key.gid));
	return krp_record_find(&c->pub, &key);
}

struct krp_record *wd_publish(struct wd_world *w, unsigned int client, uint16_t service,
			      uint32_t payload)
{
	struct wd_client *c = &w->client[client];
	struct krp_record *rec = wd_find(w, client, service);
	struct krp_value value = { .generation = krp_cpu_to_le64(WD_GENERATION),
				   .kind = KRP_KIND_RAW,
				   .len = sizeof(payload) };

	memcpy(value.raw, &payload, sizeof(payload));
	if (!rec) {
		rec = calloc(1, krp_record_bytes(WD_SERVERS));
		assert_non_null(rec);
		memcpy(rec->key.gid, c->gid, sizeof(rec->key.gid));
		rec->key.service = krp_cpu_to_le16(service);
		krp_record_link(&c->pub, rec);
	}
	krp_record_publish(&c->pub, rec, &value);
	pull_all(w, client);
	return rec;
}

void wd_withdraw(struct wd_world *w, unsigned int client, uint16_t service)
{
	struct krp_record *rec = wd_find(w, client, service);

	if (rec && !rec->gone)
		krp_record_withdraw(&w->client[client].pub, rec, now_ns(w));
	pull_all(w, client);
}

/* ---- time ---- */

/* A message costs its connection. */
static bool lost(struct wd_world *w, struct wd_conn *conn)
{
	w->messages++;
	if (!w->lose_every || w->messages % w->lose_every)
		return false;
	wd_break(w, conn->client, conn->server);
	return true;
}

static bool deliver(struct wd_world *w, struct wd_conn *conn)
{
	unsigned int bytes;
	const void *msg = sv_frames_take(&conn->up_to, &bytes);

	if (msg) {
		if (!lost(w, conn))
			ms_session_receive(&conn->ms, msg, bytes, w->now_ms);
		return true;
	}
	if (conn->mute)
		return false;
	msg = sv_frames_take(&conn->down_to, &bytes);
	if (msg) {
		if (lost(w, conn))
			return true;
		krp_session_received(&w->client[conn->client].s[conn->server], now_ns(w), msg,
				     bytes);
		wd_pull(w, conn->client, conn->server);
		return true;
	}
	if (conn->closing)
		wd_break(w, conn->client, conn->server);
	return false;
}

void wd_settle(struct wd_world *w)
{
	unsigned int i, j, turns = 0;
	bool more;

	do {
		more = false;
		for (i = 0; i < WD_CLIENTS; i++) {
			for (j = 0; w->client[i].live && j < w->servers_nr; j++) {
				struct wd_conn *conn = &w->client[i].conn[j];

				more = (conn->up && deliver(w, conn)) || more;
			}
		}
		assert_true(++turns < 100000);
	} while (more);
}

static void client_tick(struct wd_world *w, unsigned int client)
{
	struct wd_client *c = &w->client[client];
	unsigned int i, slot;

	for (i = 0; i < w->servers_nr; i++) {
		for (slot = 0; slot < c->conf.slots && c->buffers_late && c->conn[i].up; slot++)
			krp_session_sent(&c->s[i], slot);
		wd_pull(w, client, i);
	}
}

void wd_run(struct wd_world *w, uint64_t ms)
{
	uint64_t end_ms = w->now_ms + ms;
	unsigned int i;

	for (wd_settle(w); w->now_ms < end_ms; wd_settle(w)) {
		w->now_ms += WD_STEP_MS;
		for (i = 0; i < w->servers_nr; i++)
			server_tick(w, i);
		for (i = 0; i < WD_CLIENTS; i++)
			if (w->client[i].live)
				client_tick(w, i);
	}
}

void wd_begin(struct wd_world *w, unsigned int servers_nr, uint64_t seed)
{
	unsigned int i;

	memset(w, 0, sizeof(*w));
	w->now_ms = 500000;
	w->dice = seed;
	w->servers_nr = servers_nr;
	w->limits = (struct ms_limits){ .lease_ms = 3000,
					.lease_min_ms = 1000,
					.lease_max_ms = 300000,
					.tick_ms = 100,
					.records_max = 64,
					.clients_max = 8,
					.rate_max = 100000,
					.credits = 16,
					.idle_timeout_ms = 60000 };
	for (i = 0; i < servers_nr; i++)
		wd_server_start(w, i);
}

void wd_end(struct wd_world *w)
{
	unsigned int i;

	for (i = 0; i < WD_CLIENTS; i++)
		if (w->client[i].live)
			wd_client_stop(w, i, true, NULL);
	for (i = 0; i < w->servers_nr; i++)
		server_stop(w, i);
}

/* ---- what servers have ---- */

long wd_at(struct wd_world *w, unsigned int server, unsigned int client, uint16_t service)
{
	struct ms_ledger_record rec;
	struct krp_key key = { .service = krp_cpu_to_le16(service) };
	uint32_t payload;

	memcpy(key.gid, w->client[client].gid, sizeof(key.gid));
	if (ms_ledger_get(w->server[server].hub.ledger, w->now_ms, &key, &rec))
		return -1;
	memcpy(&payload, rec.value.raw, sizeof(payload));
	return payload;
}

static bool count_one(void *arg, const struct ms_ledger_record *rec)
{
	unsigned int *nr = arg;

	(void)rec;
	(*nr)++;
	return true;
}

unsigned int wd_count(struct wd_world *w, unsigned int server)
{
	unsigned int nr = 0;

	ms_ledger_each(w->server[server].hub.ledger, w->now_ms, 0, count_one, &nr);
	return nr;
}
