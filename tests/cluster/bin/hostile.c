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
 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "common/auth.h"
#include "proto/krp_msg.h"

#define PORT "18600"
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
	struct krp_hello hello;
	struct krp_challenge challenge;
	struct krp_welcome welcome;
};

static const char *server;
static struct kru_key key;
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

static int peer_open(struct peer *p, unsigned int recvs, uint8_t rnr_retry)
{
	struct rdma_conn_param param = { .initiator_depth = 4,
					 .retry_count = 3,
					 .rnr_retry_count = rnr_retry };
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .sq_sig_all = 1 };
	unsigned int i;
	int err;

	memset(p, 0, sizeof(*p));
	err = peer_resolve(p);
	if (err)
		return err;
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
	return rdma_connect(p->id, &param) ? -errno : 0;
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

static int hello(struct peer *p, uint64_t generation)
{
	struct krp_hello *h = &p->hello;

	krp_msg_init(h, KRP_MSG_HELLO, ++p->xid, 0, 0);
	h->features = krp_cpu_to_le64(KRP_FEATURES_ALL);
	h->generation = krp_cpu_to_le64(generation);
	h->owner[0] = 0xbd;
	h->gid[15] = 1;
	h->version_min = h->version_max = KRP_MSG_VERSION;
	strcpy((char *)h->name, "hostile");
	kru_random(h->nonce, sizeof(h->nonce));
	if (send_bytes(p, h, sizeof(*h)))
		return -ECONNRESET;
	if (recv_msg(p, &p->challenge, sizeof(p->challenge), 5000) != sizeof(p->challenge))
		return -EPROTO;
	return -(int)krp_le16_to_cpu(p->challenge.hdr.status);
}

static int auth(struct peer *p, int wrong)
{
	struct krp_auth a;

	krp_msg_init(&a, KRP_MSG_AUTH, ++p->xid, 0, 0);
	if (have_key)
		kru_auth_mac(&key, KRP_LABEL_CLIENT, &p->hello, &p->challenge, a.mac);
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
	nap_ms(8000); /* the server's patience for a handshake is 5 s */
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

static int publish(struct peer *p, unsigned int payload)
{
	struct krp_publish m;
	struct krp_ack ack;

	krp_msg_init(&m, KRP_MSG_PUBLISH, ++p->xid, 0, 0);
	memcpy(m.key.gid, p->id->route.addr.addr.ibaddr.sgid.raw, sizeof(m.key.gid));
	m.key.service = krp_cpu_to_le16(4711);
	m.value.generation = p->hello.generation;
	m.value.kind = KRP_KIND_RAW;
	m.value.len = sizeof(payload);
	memcpy(m.value.raw, &payload, sizeof(payload));
	return request(p, &m, &ack);
}

/* What a subscriber has heard: notifications, and whether one said that some are missing. */
struct heard {
	uint64_t seq;
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
	h->resync |= m.event == KRP_EVENT_RESYNC;
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
			good += !heard[i].gap && (heard[i].resync || heard[i].seq == CHANGES);
		}
	}
	for (i = 0; i < SUBSCRIBERS; i++)
		peer_close(&peers[i]);
	peer_close(&writer);
	snprintf(text, sizeof(text), "%u of %u subscribers informed of %u changes", good,
		 SUBSCRIBERS, done);
	say(good == SUBSCRIBERS && done == CHANGES, "crowd", text);
}

static const struct {
	const char *name;
	void (*run)(void);
} all[] = {
	{ "crowd", case_crowd },
	{ "read-before-hello", case_read_before_hello },
	{ "read-before-auth", case_read_before_auth },
	{ "wrong-key", case_wrong_key },
	{ "write", case_write },
	{ "bad-rkey", case_bad_rkey },
	{ "rubbish", case_rubbish },
	{ "too-long", case_too_long },
	{ "flood", case_flood },
	{ "deaf", case_deaf },
	{ "silent", case_silent },
	{ "storm", case_storm },
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
		if (kru_key_load(argv[2], &key)) {
			fprintf(stderr, "%s: %s: no key\n", argv[0], argv[2]);
			return 2;
		}
		have_key = 1;
	}
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		for (a = 3; a < argc && strcmp(argv[a], all[i].name); a++)
			;
		if (argc == 3 || a < argc)
			all[i].run();
	}
	printf("1..%d\n", cases);
	return failures || !cases;
}
