// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A client that does what clients may not, against a real MetaServer over real
 * queue pairs: READs before it is authenticated, WRITEs afterwards, rubbish,
 * floods, silence. Says what came of each in TAP.
 *
 * usage: hostile SERVER[:PORT is 18600] KEYFILE|- [CASE...]
 *
 * The cases know where the root is because an honest connection of the same
 * program asked for it: what protects the table is not that the key is secret.
 *
 * Without a name all cases run that need no more than a server. The others are
 *   relay        listen at PORT + 1, and pass on to SERVER what a client says
 *   true-root    listen there and be a server with KEYFILE, whose root cannot be READ
 *   forged-root  the same, with another root in WELCOME than its proof is for
 *   claim-owner  claim the owner of HOSTILE_RECORD ("OWNER GID SERVICE GENERATION") for
 *                as long as the program is let, until SIGTERM
 * Those that listen do so for SERVE_MS and say "# listening" when clients may come.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "common/auth.h"
#include "common/gid.h"
#include "common/link.h"
#include "proto/krp_msg.h"

#define PORT "18600"
#define PORT_OWN 18601
#define SERVE_MS 40000 /* clients that give up after six seconds come more than once */
#define RECVS 64
#define SLOTS (RECVS + 2)
#define SLOT_BYTES 4096
#define CUT_MS 15000 /* by then a server has cut whom it wants to cut */

/* One connection, blocking, with as little checking as possible. */
struct peer {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	uint8_t *mem;
	unsigned int recvs;
	uint32_t xid;
	struct krp_link link;
	struct krp_hello hello;
	struct krp_challenge challenge;
	struct krp_welcome welcome;
};

static const char *server;
static struct kru_keys keys;
static int have_key;
static int failures, cases;

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void nap_ms(unsigned int ms)
{
	struct timespec ts = { ms / 1000, (long)(ms % 1000) * 1000000 };

	nanosleep(&ts, NULL);
}

static void say(int good, const char *name, const char *what)
{
	cases++;
	failures += !good;
	printf("%sok %d - %s", good ? "" : "not ", cases, name);
	if (*what)
		printf(": %s", what);
	printf("\n");
	fflush(stdout);
}

static void *slot(struct peer *p, unsigned int i)
{
	return p->mem + (size_t)i * SLOT_BYTES;
}

static int post_recv(struct peer *p, unsigned int i)
{
	return rdma_post_recv(p->id, (void *)(uintptr_t)i, slot(p, i), SLOT_BYTES, p->mr);
}

static int peer_resolve(struct peer *p)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *res;
	int err;

	if (getaddrinfo(server, PORT, &hints, &res))
		return -ENOENT;
	err = rdma_create_id(NULL, &p->id, NULL, RDMA_PS_TCP) ||
			      rdma_resolve_addr(p->id, NULL, res->ai_addr, 3000) ||
			      rdma_resolve_route(p->id, 3000)
		      ? -errno
		      : 0;
	freeaddrinfo(res);
	return err;
}

/* Queue pair, memory, receives. */
static int peer_prepare(struct peer *p, unsigned int recvs)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .sq_sig_all = 1 };
	unsigned int i;

	attr.cap.max_send_wr = 512;
	attr.cap.max_recv_wr = RECVS;
	attr.cap.max_send_sge = 1;
	attr.cap.max_recv_sge = 1;
	p->mem = aligned_alloc(4096, (size_t)SLOTS * SLOT_BYTES);
	if (!p->mem || rdma_create_qp(p->id, NULL, &attr))
		return -errno;
	p->mr = rdma_reg_msgs(p->id, p->mem, (size_t)SLOTS * SLOT_BYTES);
	if (!p->mr)
		return -errno;
	for (i = 0; i < recvs; i++)
		if (post_recv(p, i))
			return -errno;
	p->recvs = recvs;
	return 0;
}

static int peer_link(struct peer *p, int as_server)
{
	struct kru_ends ends;
	int err = kru_ends_of(p->id, NULL, p->id->qp->qp_num, &ends);

	if (err)
		return err;
	if (as_server)
		kru_link_server(&ends, &p->link);
	else
		kru_link_client(&ends, &p->link);
	return 0;
}

static int peer_open(struct peer *p, unsigned int recvs, uint8_t rnr_retry)
{
	struct rdma_conn_param param = { .initiator_depth = 4,
					 .retry_count = 3,
					 .rnr_retry_count = rnr_retry };
	int err;

	memset(p, 0, sizeof(*p));
	err = peer_resolve(p);
	if (!err)
		err = peer_prepare(p, recvs);
	if (!err && rdma_connect(p->id, &param))
		err = -errno;
	return err ? err : peer_link(p, 0);
}

/* Take a client in as a server would. Return: 0, or -ETIMEDOUT if none comes. */
static int peer_accept(struct peer *p, struct rdma_cm_id *listener, int timeout_ms)
{
	struct pollfd pfd = { .fd = listener->channel->fd, .events = POLLIN };
	int err;

	memset(p, 0, sizeof(*p));
	if (timeout_ms < 0 || poll(&pfd, 1, timeout_ms) <= 0)
		return -ETIMEDOUT;
	if (rdma_get_request(listener, &p->id))
		return -errno;
	err = peer_prepare(p, RECVS);
	if (!err && rdma_accept(p->id, NULL))
		err = -errno;
	return err ? err : peer_link(p, 1);
}

static struct rdma_cm_id *listen_own(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(PORT_OWN) };
	struct rdma_cm_id *id;

	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP))
		return NULL;
	if (rdma_bind_addr(id, (struct sockaddr *)&any) || rdma_listen(id, 8)) {
		rdma_destroy_id(id);
		return NULL;
	}
	printf("# listening\n");
	fflush(stdout);
	return id;
}

static void peer_close(struct peer *p)
{
	if (!p->id)
		return;
	rdma_disconnect(p->id);
	if (p->mr)
		rdma_dereg_mr(p->mr);
	rdma_destroy_ep(p->id);
	free(p->mem);
	p->id = NULL;
}

/* Wait for a completion. Return: 1 and the completion, 0 if there was none in time. */
static int wait_wc(struct ibv_cq *cq, struct ibv_wc *wc, unsigned int ms)
{
	uint64_t end = now_ms() + ms;

	do {
		if (ibv_poll_cq(cq, 1, wc) > 0)
			return 1;
		nap_ms(1);
	} while (now_ms() < end);
	return 0;
}

static int send_bytes(struct peer *p, const void *bytes, unsigned int len)
{
	struct ibv_wc wc;

	memcpy(slot(p, RECVS), bytes, len);
	if (rdma_post_send(p->id, NULL, slot(p, RECVS), len, p->mr, 0))
		return -errno;
	if (!wait_wc(p->id->send_cq, &wc, CUT_MS))
		return -ETIMEDOUT;
	return wc.status == IBV_WC_SUCCESS ? 0 : -ECONNRESET;
}

/* Return: bytes of a message, copied to @to; negative if none comes any more. */
static int recv_msg(struct peer *p, void *to, unsigned int room, unsigned int ms)
{
	struct ibv_wc wc;

	if (!wait_wc(p->id->recv_cq, &wc, ms))
		return -ETIMEDOUT;
	if (wc.status != IBV_WC_SUCCESS)
		return -ECONNRESET;
	memcpy(to, slot(p, (unsigned int)wc.wr_id), wc.byte_len < room ? wc.byte_len : room);
	post_recv(p, (unsigned int)wc.wr_id);
	return (int)wc.byte_len;
}

/* Is the connection gone? Its receives are flushed when it is. */
static int is_cut(struct peer *p, unsigned int ms)
{
	uint8_t buf[KRP_MSG_BYTES_MAX];
	struct ibv_qp_init_attr init;
	uint64_t end = now_ms() + ms;
	struct ibv_qp_attr attr;
	int len;

	while (now_ms() < end) {
		len = recv_msg(p, buf, sizeof(buf), 50);
		if (len == -ECONNRESET)
			return 1;
		if (!ibv_query_qp(p->id->qp, &attr, IBV_QP_STATE, &init) &&
		    attr.qp_state == IBV_QPS_ERR)
			return 1;
		if (p->id->event)
			return 1;
		/* a synchronous id notices a disconnect only when something is sent */
		if (send_bytes(p, buf, 1) && now_ms() < end)
			return 1;
	}
	return 0;
}

static int say_hello(struct peer *p)
{
	if (send_bytes(p, &p->hello, sizeof(p->hello)))
		return -ECONNRESET;
	if (recv_msg(p, &p->challenge, sizeof(p->challenge), 5000) != sizeof(p->challenge))
		return -EPROTO;
	return -(int)krp_le16_to_cpu(p->challenge.hdr.status);
}

static int hello(struct peer *p, uint64_t generation)
{
	struct krp_hello *h = &p->hello;

	krp_msg_init(h, KRP_MSG_HELLO, ++p->xid, 0, 0);
	h->features = krp_cpu_to_le64(KRP_FEATURES_ALL);
	h->generation = krp_cpu_to_le64(generation);
	h->owner[0] = 0xbd;
	memcpy(h->gid, p->link.client_gid, sizeof(h->gid));
	h->version_min = h->version_max = KRP_MSG_VERSION;
	strcpy((char *)h->name, "hostile");
	kru_random(h->nonce, sizeof(h->nonce));
	return say_hello(p);
}

static int auth(struct peer *p, int wrong)
{
	struct kru_handshake shake = { &p->link, &p->hello, &p->challenge };
	struct krp_auth a;

	krp_msg_init(&a, KRP_MSG_AUTH, ++p->xid, 0, 0);
	if (have_key)
		kru_auth_client(&keys.key[0], &shake, a.mac);
	if (wrong)
		a.mac[0] ^= 1;
	if (send_bytes(p, &a, sizeof(a)))
		return -ECONNRESET;
	if (recv_msg(p, &p->welcome, sizeof(p->welcome), 5000) != sizeof(p->welcome))
		return -EPROTO;
	return -(int)krp_le16_to_cpu(p->welcome.hdr.status);
}

static int attach(struct peer *p, unsigned int recvs)
{
	int err = peer_open(p, recvs, 7);

	if (!err)
		err = hello(p, now_ms());
	return err ? err : auth(p, 0);
}

/* Return: the status of a READ or WRITE of the root. */
static int touch_root(struct peer *p, const struct krp_root_ref *ref, int write)
{
	uint64_t addr = krp_le64_to_cpu(ref->addr);
	uint32_t rkey = krp_le32_to_cpu(ref->rkey);
	struct ibv_wc wc;
	void *to = slot(p, RECVS + 1);

	memset(to, 0xa5, sizeof(struct krp_root));
	if (write ? rdma_post_write(p->id, NULL, to, sizeof(struct krp_root), p->mr, 0, addr, rkey)
		  : rdma_post_read(p->id, NULL, to, sizeof(struct krp_root), p->mr, 0, addr, rkey))
		return -1;
	if (!wait_wc(p->id->send_cq, &wc, 10000))
		return -2;
	return wc.status;
}

/* The READ must fail and bring nothing; an honest one at the same time must not. */
static void check_no_read(struct peer *p, const char *name)
{
	struct krp_root *got = slot(p, RECVS + 1);
	struct peer honest;
	char text[128] = "";
	int err, status = 0;

	err = attach(&honest, RECVS);
	if (err) {
		snprintf(text, sizeof(text), "honest client failed (%d)", err);
		say(0, name, text);
		peer_close(&honest);
		return;
	}
	status = touch_root(p, &honest.welcome.root, 0);
	if (status == IBV_WC_SUCCESS || got->magic == krp_cpu_to_le64(KRP_ROOT_MAGIC))
		snprintf(text, sizeof(text), "the READ went through (%d)", status);
	else if (touch_root(&honest, &honest.welcome.root, 0) != IBV_WC_SUCCESS ||
		 !krp_root_valid(slot(&honest, RECVS + 1)))
		snprintf(text, sizeof(text), "the honest client's READ fails too");
	say(!*text, name, text);
	peer_close(&honest);
}

static void case_read_before_hello(void)
{
	struct peer p;

	if (peer_open(&p, RECVS, 7))
		say(0, "read-before-hello", "no connection");
	else
		check_no_read(&p, "read-before-hello");
	peer_close(&p);
}

static void case_read_before_auth(void)
{
	struct peer p;

	if (peer_open(&p, RECVS, 7) || hello(&p, 1))
		say(0, "read-before-auth", "no connection");
	else
		check_no_read(&p, "read-before-auth");
	peer_close(&p);
}

static void case_wrong_key(void)
{
	struct peer p;

	if (!have_key) {
		say(1, "wrong-key # SKIP no key", "");
		return;
	}
	if (peer_open(&p, RECVS, 7) || hello(&p, 1))
		say(0, "wrong-key", "no connection");
	else if (auth(&p, 1) != -KRP_ST_AUTH)
		say(0, "wrong-key", "was not refused");
	else
		check_no_read(&p, "wrong-key");
	peer_close(&p);
}

static void case_write(void)
{
	struct peer p, q;
	int status;

	if (attach(&p, RECVS) || attach(&q, RECVS)) {
		say(0, "write", "no connection");
		return;
	}
	status = touch_root(&p, &p.welcome.root, 1);
	if (status == IBV_WC_SUCCESS)
		say(0, "write", "the WRITE went through");
	else
		say(touch_root(&q, &q.welcome.root, 0) == IBV_WC_SUCCESS &&
			    krp_root_valid(slot(&q, RECVS + 1)),
		    "write", "");
	peer_close(&p);
	peer_close(&q);
}

static void case_bad_rkey(void)
{
	struct krp_root_ref ref;
	struct peer p, q;
	int status;

	if (attach(&p, RECVS) || attach(&q, RECVS)) {
		say(0, "bad-rkey", "no connection");
		return;
	}
	ref = p.welcome.root;
	ref.rkey = krp_cpu_to_le32(krp_le32_to_cpu(ref.rkey) ^ 0x5500);
	status = touch_root(&p, &ref, 0);
	say(status != IBV_WC_SUCCESS && touch_root(&q, &q.welcome.root, 0) == IBV_WC_SUCCESS,
	    "bad-rkey", "");
	peer_close(&p);
	peer_close(&q);
}

/* Random bytes, also with a good header; each must end the connection. */
static void case_rubbish(void)
{
	static const unsigned int sizes[] = { 1, 7, 31, 32, 33, 64, 184, 255, 256 };
	uint8_t bytes[KRP_MSG_BYTES_MAX];
	unsigned int i, cut = 0, n = 0;
	char text[64];
	struct peer p;

	for (i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++, n++) {
		if (peer_open(&p, RECVS, 7)) {
			peer_close(&p);
			continue;
		}
		kru_random(bytes, sizeof(bytes));
		if (i % 2)
			krp_msg_init(bytes, KRP_MSG_PUBLISH, 1, 0, 0);
		send_bytes(&p, bytes, sizes[i / 2]);
		cut += is_cut(&p, CUT_MS);
		peer_close(&p);
	}
	snprintf(text, sizeof(text), "%u of %u cut", cut, n);
	say(cut == n && n, "rubbish", text);
}

static void case_too_long(void)
{
	uint8_t bytes[1024] = { 0 };
	struct peer p;

	if (peer_open(&p, RECVS, 7)) {
		say(0, "too-long", "no connection");
		return;
	}
	send_bytes(&p, bytes, sizeof(bytes));
	say(is_cut(&p, CUT_MS), "too-long", "");
	peer_close(&p);
}

/* As fast as it goes, without waiting for answers. */
static void case_flood(void)
{
	struct krp_renew m;
	struct ibv_wc wc;
	unsigned int sent = 0, out = 0;
	uint64_t end;
	char text[64];
	struct peer p;
	int cut = 0;

	if (attach(&p, RECVS)) {
		say(0, "flood", "no connection");
		return;
	}
	krp_msg_init(&m, KRP_MSG_RENEW, 1, 0, 0);
	memcpy(slot(&p, RECVS), &m, sizeof(m));
	end = now_ms() + 30000;
	while (!cut && now_ms() < end) {
		while (out < 128 &&
		       !rdma_post_send(p.id, NULL, slot(&p, RECVS), sizeof(m), p.mr, 0))
			out++, sent++;
		while (ibv_poll_cq(p.id->send_cq, 1, &wc) > 0) {
			out--;
			cut |= wc.status != IBV_WC_SUCCESS;
		}
		while (ibv_poll_cq(p.id->recv_cq, 1, &wc) > 0) {
			cut |= wc.status != IBV_WC_SUCCESS;
			if (wc.status == IBV_WC_SUCCESS)
				post_recv(&p, (unsigned int)wc.wr_id);
		}
	}
	snprintf(text, sizeof(text), "%s after %u messages", cut ? "cut" : "not cut", sent);
	say(cut, "flood", text);
	peer_close(&p);
}

/* Sends requests and never takes an answer but the two of the handshake. */
static void case_deaf(void)
{
	struct krp_renew m;
	unsigned int i;
	uint64_t begin;
	char text[64];
	struct peer p;
	int cut = 0;

	if (peer_open(&p, 2, 7) || hello(&p, now_ms())) {
		say(0, "deaf", "no connection");
		return;
	}
	if (auth(&p, 0)) {
		say(0, "deaf", "no connection");
		return;
	}
	begin = now_ms();
	krp_msg_init(&m, KRP_MSG_RENEW, 1, 0, 0);
	/* recv_msg() has posted two receives again: they go first */
	for (i = 0; i < 2000 && !cut && now_ms() - begin < 30000; i++) {
		cut = send_bytes(&p, &m, sizeof(m)) != 0;
		nap_ms(5);
	}
	snprintf(text, sizeof(text), "%s after %u ms", cut ? "cut" : "not cut",
		 (unsigned int)(now_ms() - begin));
	say(cut, "deaf", text);
	peer_close(&p);
}

static void case_silent(void)
{
	struct ibv_wc wc;
	uint64_t begin = now_ms();
	char text[64];
	struct peer p;
	int cut;

	if (peer_open(&p, RECVS, 7)) {
		say(0, "silent", "no connection");
		return;
	}
	nap_ms(8000); /* the server's timeout for a handshake is 5 s */
	cut = send_bytes(&p, text, 1) != 0 || !wait_wc(p.id->recv_cq, &wc, 1000) ||
	      wc.status != IBV_WC_SUCCESS;
	snprintf(text, sizeof(text), "%s after %u ms", cut ? "cut" : "not cut",
		 (unsigned int)(now_ms() - begin));
	say(cut, "silent", text);
	peer_close(&p);
}

/* Hold many connections that never say anything while an honest client works. */
static void case_storm(void)
{
	enum {
		CONNECTIONS = 100
	};
	static struct peer peers[CONNECTIONS];
	unsigned int i, got = 0;
	char text[64];
	struct peer p;
	int good;

	for (i = 0; i < CONNECTIONS; i++)
		got += !peer_open(&peers[i], 1, 7);
	good = !attach(&p, RECVS) && touch_root(&p, &p.welcome.root, 0) == IBV_WC_SUCCESS;
	peer_close(&p);
	for (i = 0; i < CONNECTIONS; i++)
		peer_close(&peers[i]);
	snprintf(text, sizeof(text), "%u silent connections, honest client %s", got,
		 good ? "served" : "not served");
	say(good && got > CONNECTIONS / 2, "storm", text);
}

static int request(struct peer *p, void *msg, struct krp_ack *ack)
{
	if (send_bytes(p, msg, krp_msg_bytes(((struct krp_msg_hdr *)msg)->type)))
		return -ECONNRESET;
	if (recv_msg(p, ack, sizeof(*ack), 10000) != sizeof(*ack))
		return -EPROTO;
	return -(int)krp_le16_to_cpu(ack->hdr.status);
}

/* A record of its own for each number. */
static int publish(struct peer *p, unsigned int payload)
{
	struct krp_publish m;
	struct krp_ack ack;

	krp_msg_init(&m, KRP_MSG_PUBLISH, ++p->xid, 0, 0);
	memcpy(m.key.gid, p->id->route.addr.addr.ibaddr.sgid.raw, sizeof(m.key.gid));
	m.key.service = krp_cpu_to_le16((__u16)(4711 + payload));
	m.value.generation = p->hello.generation;
	m.value.kind = KRP_KIND_RAW;
	m.value.len = sizeof(payload);
	memcpy(m.value.raw, &payload, sizeof(payload));
	return request(p, &m, &ack);
}

/* What a subscriber has heard: notifications, and whether one said that some are missing. */
struct heard {
	uint64_t seq;
	unsigned int changes;
	int resync;
	int gap;
};

/* Take one notification, if there is one. */
static void listen_once(struct peer *p, struct heard *h)
{
	struct krp_notify m;

	if (recv_msg(p, &m, sizeof(m), 0) != sizeof(m))
		return;
	h->gap |= krp_le64_to_cpu(m.seq) != ++h->seq;
	h->changes += m.nr;
	h->resync |= m.change[0].event == KRP_EVENT_RESYNC;
}

/* Subscribers that do not read while a lot changes: each learns all, or that it did not. */
static void case_crowd(void)
{
	enum {
		SUBSCRIBERS = 16,
		CHANGES = 100
	};
	static struct peer peers[SUBSCRIBERS];
	struct heard heard[SUBSCRIBERS] = { { 0 } };
	unsigned int i, good = 0, done = 0;
	struct krp_subscribe sub;
	struct krp_ack ack;
	struct peer writer;
	uint64_t end;
	char text[96];

	if (attach(&writer, RECVS)) {
		say(0, "crowd", "no connection");
		return;
	}
	krp_msg_init(&sub, KRP_MSG_SUBSCRIBE, 900, 0, 0);
	sub.flags = KRP_SUBSCRIBE_ALL;
	for (i = 0; i < SUBSCRIBERS; i++)
		if (attach(&peers[i], RECVS) || request(&peers[i], &sub, &ack))
			printf("# subscriber %u could not attach\n", i);
	for (i = 0; i < CHANGES; i++)
		done += !publish(&writer, i);
	for (end = now_ms() + 30000; good < SUBSCRIBERS && now_ms() < end;) {
		for (i = 0, good = 0; i < SUBSCRIBERS; i++) {
			listen_once(&peers[i], &heard[i]);
			good += !heard[i].gap && (heard[i].resync || heard[i].changes == CHANGES);
		}
	}
	for (i = 0; i < SUBSCRIBERS; i++)
		peer_close(&peers[i]);
	peer_close(&writer);
	snprintf(text, sizeof(text), "%u of %u subscribers informed of %u changes", good,
		 SUBSCRIBERS, done);
	say(good == SUBSCRIBERS && done == CHANGES, "crowd", text);
}

/* Pass on what a client says, with its GID or with ours. Return: 1 if we got WELCOME. */
static int relay_once(struct peer *victim, struct peer *to, int own_gid)
{
	struct krp_auth a;

	if (recv_msg(victim, &to->hello, sizeof(to->hello), 5000) != sizeof(to->hello))
		return 0;
	if (own_gid)
		memcpy(to->hello.gid, to->link.client_gid, sizeof(to->hello.gid));
	if (say_hello(to) || send_bytes(victim, &to->challenge, sizeof(to->challenge)) ||
	    recv_msg(victim, &a, sizeof(a), 5000) != sizeof(a) || send_bytes(to, &a, sizeof(a)))
		return 0;
	return recv_msg(to, &to->welcome, sizeof(to->welcome), 5000) == sizeof(to->welcome) &&
	       !to->welcome.hdr.status;
}

/* Have no key, but a client that comes to us instead of to the server. */
static void case_relay(void)
{
	struct rdma_cm_id *listener = listen_own();
	unsigned int tried[2] = { 0 }, got = 0, turn = 0;
	uint64_t end = now_ms() + SERVE_MS;
	struct peer victim, to;
	char text[96];

	while (listener && !peer_accept(&victim, listener, (int)(end - now_ms()))) {
		if (!peer_open(&to, RECVS, 7)) {
			got += relay_once(&victim, &to, turn % 2);
			tried[turn++ % 2]++;
		}
		peer_close(&to);
		peer_close(&victim);
		if (now_ms() >= end)
			break;
	}
	snprintf(text, sizeof(text), "%u and %u tries, let in %u times", tried[0], tried[1], got);
	say(tried[0] && tried[1] && !got, "relay", text);
}

/* Answer a client as a server with the key does. Return: 0 if it took WELCOME. */
static int serve_once(struct peer *p, int forge)
{
	struct kru_handshake shake = { &p->link, &p->hello, &p->challenge };
	struct krp_challenge *c = &p->challenge;
	struct krp_welcome *w = &p->welcome;
	struct krp_auth a;
	__u8 mac[KRP_MAC_BYTES];

	if (recv_msg(p, &p->hello, sizeof(p->hello), 5000) != sizeof(p->hello))
		return -EPROTO;
	krp_msg_init(c, KRP_MSG_CHALLENGE, krp_le32_to_cpu(p->hello.hdr.xid), 0, 4711);
	c->features = krp_cpu_to_le64(KRP_FEATURES_PROGRAM);
	c->flags = KRP_CHALLENGE_AUTH;
	kru_key_id(&keys.key[0], c->key_id);
	kru_random(c->nonce, sizeof(c->nonce));
	if (send_bytes(p, c, sizeof(*c)) || recv_msg(p, &a, sizeof(a), 5000) != sizeof(a))
		return -EPROTO;
	kru_auth_client(&keys.key[0], &shake, mac);
	if (!kru_secret_equal(mac, a.mac, sizeof(mac)))
		return -EACCES;
	krp_msg_init(w, KRP_MSG_WELCOME, krp_le32_to_cpu(a.hdr.xid), 0, 4711);
	w->root.addr = krp_cpu_to_le64(0x1000);
	w->root.bytes = krp_cpu_to_le32(sizeof(struct krp_root));
	w->lease_ms = krp_cpu_to_le32(30000);
	w->credits = krp_cpu_to_le16(8);
	kru_auth_server(&keys.key[0], &shake, w, w->mac);
	if (forge)
		w->root.addr = krp_cpu_to_le64(0x2000);
	return send_bytes(p, w, sizeof(*w));
}

static void serve(const char *name, int forge)
{
	struct rdma_cm_id *listener = listen_own();
	uint64_t end = now_ms() + SERVE_MS;
	unsigned int served = 0;
	struct peer p;
	char text[64];

	while (listener && now_ms() < end && !peer_accept(&p, listener, (int)(end - now_ms()))) {
		served += !serve_once(&p, forge);
		nap_ms(300);
		peer_close(&p);
	}
	snprintf(text, sizeof(text), "%u clients got WELCOME", served);
	say(served > 0, name, text);
}

static void case_true_root(void)
{
	serve("true-root", 0);
}

static void case_forged_root(void)
{
	serve("forged-root", 1);
}

/* Attach as HOSTILE_RECORD's owner. Return: 0 or a negative status. */
static int attach_as(struct peer *p, const uint8_t *owner, uint64_t generation)
{
	struct krp_hello *h = &p->hello;
	int err = peer_open(p, RECVS, 7);

	if (err)
		return err;
	krp_msg_init(h, KRP_MSG_HELLO, ++p->xid, 0, 0);
	h->features = krp_cpu_to_le64(KRP_FEATURES_ALL);
	h->generation = krp_cpu_to_le64(generation);
	memcpy(h->owner, owner, sizeof(h->owner));
	memcpy(h->gid, p->link.client_gid, sizeof(h->gid));
	h->version_min = h->version_max = KRP_MSG_VERSION;
	strcpy((char *)h->name, "hostile");
	err = say_hello(p);
	return err ? err : auth(p, 0);
}

/* What HOSTILE_RECORD says. Return: 1, or 0 if it says nothing of use. */
static int read_record(uint8_t *owner, struct krp_key *ret_key, uint64_t *ret_generation)
{
	const char *text = getenv("HOSTILE_RECORD");
	unsigned int service, i;
	char hex[33], gid[64];

	if (!text || sscanf(text, "%32s %63s %u %lu", hex, gid, &service, ret_generation) != 4 ||
	    kru_gid_parse(gid, ret_key->gid))
		return 0;
	for (i = 0; i < KRP_OWNER_BYTES; i++)
		if (sscanf(hex + 2 * i, "%2hhx", &owner[i]) != 1)
			return 0;
	ret_key->service = krp_cpu_to_le16((__u16)service);
	return 1;
}

static volatile sig_atomic_t claim_over;

static void claim_stop(int number)
{
	claim_over = number;
}

/* Write a node's owner into HELLO, withdraw its record, keep it when the node is gone. */
static void case_claim_owner(void)
{
	uint8_t owner[KRP_OWNER_BYTES];
	struct krp_withdraw wd;
	struct krp_renew renew;
	struct krp_key key;
	uint64_t generation;
	struct krp_ack ack;
	unsigned int i, refused = 0, renewed = 0;
	char text[96];
	struct peer p;

	if (!read_record(owner, &key, &generation)) {
		say(0, "claim-owner", "HOSTILE_RECORD says no record");
		return;
	}
	for (i = 0; i < 3; i++) {
		uint64_t as = i == 0 ? generation : i == 1 ? generation + 1 : UINT64_MAX;

		if (!attach_as(&p, owner, as)) {
			krp_msg_init(&wd, KRP_MSG_WITHDRAW, ++p.xid, 0, 0);
			wd.key = key;
			memcpy(wd.token, p.welcome.token, sizeof(wd.token));
			refused += request(&p, &wd, &ack) == -KRP_ST_FOREIGN_GID;
		}
		peer_close(&p);
	}
	signal(SIGTERM, claim_stop);
	printf("# renewing\n");
	fflush(stdout);
	if (!attach_as(&p, owner, generation)) {
		for (; !claim_over; nap_ms(500)) {
			krp_msg_init(&renew, KRP_MSG_RENEW, ++p.xid, 0, 0);
			renewed += !request(&p, &renew, &ack);
		}
	}
	peer_close(&p);
	snprintf(text, sizeof(text), "%u of 3 withdrawals refused, renewed %u times", refused,
		 renewed);
	say(refused == 3 && renewed > 2, "claim-owner", text);
}

static const struct {
	const char *name;
	void (*run)(void);
	int named; /* runs only if it is asked for */
} all[] = {
	{ "crowd", case_crowd, 0 },
	{ "read-before-hello", case_read_before_hello, 0 },
	{ "read-before-auth", case_read_before_auth, 0 },
	{ "wrong-key", case_wrong_key, 0 },
	{ "write", case_write, 0 },
	{ "bad-rkey", case_bad_rkey, 0 },
	{ "rubbish", case_rubbish, 0 },
	{ "too-long", case_too_long, 0 },
	{ "flood", case_flood, 0 },
	{ "deaf", case_deaf, 0 },
	{ "silent", case_silent, 0 },
	{ "storm", case_storm, 0 },
	{ "relay", case_relay, 1 },
	{ "true-root", case_true_root, 1 },
	{ "forged-root", case_forged_root, 1 },
	{ "claim-owner", case_claim_owner, 1 },
};

int main(int argc, char **argv)
{
	unsigned int i;
	int a;

	if (argc < 3) {
		fprintf(stderr, "usage: %s SERVER KEYFILE|- [CASE...]\n", argv[0]);
		return 2;
	}
	server = argv[1];
	if (strcmp(argv[2], "-")) {
		if (kru_keys_load(argv[2], &keys)) {
			fprintf(stderr, "%s: %s: no key\n", argv[0], argv[2]);
			return 2;
		}
		have_key = 1;
	}
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		for (a = 3; a < argc && strcmp(argv[a], all[i].name); a++)
			;
		if ((argc == 3 && !all[i].named) || a < argc)
			all[i].run();
	}
	printf("1..%d\n", cases);
	return failures || !cases;
}
