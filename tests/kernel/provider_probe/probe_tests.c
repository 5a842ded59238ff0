// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the tests of a provider through struct krc_provider_ops alone: data, order,
 * wrap-around, rights, each kind of fault and the way back from it. One thread runs
 * them, so it is its own lock of the initiator.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/slab.h>

#include "hw/mlx5/mlx5.h"
#include "probe.h"

#define PROBE_WAIT_MS 60000

/* true if it does not hold, and then says so */
#define PROBE_BAD(p, cond) (!(cond) && probe_fail(p, #cond, __func__, __LINE__))

static bool probe_fail(struct probe *p, const char *what, const char *func, int line)
{
	snprintf(p->result, sizeof(p->result), "%s:%d: %s", func, line, what);
	pr_err("%s\n", p->result);
	return true;
}

/* ---- requests */

static struct krc_hw_wr probe_wr(struct probe *p, u8 opcode, u32 off, u32 length)
{
	return (struct krc_hw_wr){
		.cookie = ++p->cookie,
		.address = &p->address,
		.remote_addr = p->peer.addr + PROBE_REMOTE + off,
		.local_addr = p->dma + off,
		.rkey = p->peer.rkey,
		.lkey = p->key.lkey,
		.length = length,
		.opcode = opcode,
	};
}

static int probe_restart(struct probe *p)
{
	int err = p->ops->initiator_halt(p->ini);

	return err ? err : p->ops->initiator_restart(p->ini);
}

/* wait for @n completions, by upcalls */
static int probe_wait(struct probe *p, struct krc_wc *wc, int n)
{
	unsigned long end = jiffies + msecs_to_jiffies(PROBE_WAIT_MS);
	int got = 0, i;

	while (got < n) {
		reinit_completion(&p->comp);
		p->ops->arm(p->ini);
		i = p->ops->poll(p->ini, wc + got, n - got);
		got += i;
		if (i)
			continue;
		if (time_after(jiffies, end))
			break;
		wait_for_completion_timeout(&p->comp, msecs_to_jiffies(2000));
	}
	return got;
}

/* one request from beginning to end */
static int probe_do(struct probe *p, const struct krc_hw_wr *wr, struct krc_wc *wc)
{
	if (PROBE_BAD(p, !p->ops->post(p->ini, wr)))
		return -EPROTO;
	p->ops->ring(p->ini);
	if (PROBE_BAD(p, probe_wait(p, wc, 1) == 1))
		return -EPROTO;
	if (PROBE_BAD(p, wc->cookie == wr->cookie))
		return -EPROTO;
	return wc->fault;
}

static int probe_simple(struct probe *p, u8 opcode, u32 off, u32 length)
{
	struct krc_hw_wr wr = probe_wr(p, opcode, off, length);
	struct krc_wc wc;

	return probe_do(p, &wr, &wc);
}

static void probe_pattern(u8 *at, u32 bytes, u32 seed)
{
	u32 i;

	for (i = 0; i < bytes; i++)
		at[i] = i * 7 + i / 256 + seed;
}

static bool probe_is_pattern(const u8 *at, u32 bytes, u32 seed)
{
	u32 i;

	for (i = 0; i < bytes; i++)
		if (at[i] != (u8)(i * 7 + i / 256 + seed))
			return false;
	return true;
}

/* ---- what works */

static int probe_data(struct probe *p)
{
	static const u32 sizes[] = { 1, 8, 63, 256, 1024, 1025, 4096, 65536, 200000 };
	u32 i, off;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		off = 4096 - sizes[i] % 4096 / 2; /* across pages */
		probe_pattern(p->buf + off, sizes[i], i);
		if (PROBE_BAD(p, probe_simple(p, KRP_OP_WRITE, off, sizes[i]) == KRC_FAULT_NONE))
			return -EPROTO;
		memset(p->buf + off, 0, sizes[i]);
		if (PROBE_BAD(p, probe_simple(p, KRP_OP_READ, off, sizes[i]) == KRC_FAULT_NONE))
			return -EPROTO;
		if (PROBE_BAD(p, probe_is_pattern(p->buf + off, sizes[i], i)))
			return -EPROTO;
	}
	return 0;
}

static int probe_atomics(struct probe *p)
{
	struct krc_hw_wr wr = probe_wr(p, KRP_OP_WRITE, 0, 8);
	u64 *old = (u64 *)p->buf;
	struct krc_wc wc;

	if (!p->attr.atomics)
		return 0;
	wr.remote_addr = p->peer.addr + PROBE_WORD;
	*old = 0x1122334455667788ULL;
	if (PROBE_BAD(p, probe_do(p, &wr, &wc) == KRC_FAULT_NONE))
		return -EPROTO;
	wr.opcode = KRP_OP_FETCH_ADD;
	wr.compare_add = 0x1111;
	if (PROBE_BAD(p, probe_do(p, &wr, &wc) == KRC_FAULT_NONE))
		return -EPROTO;
	if (PROBE_BAD(p, *old == 0x1122334455667788ULL))
		return -EPROTO;
	wr.opcode = KRP_OP_CMP_SWAP;
	wr.compare_add = 0x1122334455667788ULL; /* not any more */
	wr.swap = 1;
	if (PROBE_BAD(p, probe_do(p, &wr, &wc) == KRC_FAULT_NONE))
		return -EPROTO;
	if (PROBE_BAD(p, *old == 0x1122334455668899ULL))
		return -EPROTO;
	wr.compare_add = 0x1122334455668899ULL;
	wr.swap = 0xfedcba9876543210ULL;
	if (PROBE_BAD(p, probe_do(p, &wr, &wc) == KRC_FAULT_NONE))
		return -EPROTO;
	wr.opcode = KRP_OP_READ;
	wr.fence = true;
	if (PROBE_BAD(p, probe_do(p, &wr, &wc) == KRC_FAULT_NONE))
		return -EPROTO;
	if (PROBE_BAD(p, *old == 0xfedcba9876543210ULL))
		return -EPROTO;
	return 0;
}

/* refused before anything is posted */
static int probe_refusals(struct probe *p)
{
	static const struct {
		u8 opcode;
		u32 length, off;
	} bad[] = {
		{ 0, 8, 0 },
		{ KRP_OP_FETCH_ADD + 1, 8, 0 },
		{ KRP_OP_READ, 0, 0 },
		{ KRP_OP_WRITE, KRP_LENGTH_MAX + 1, 0 },
		{ KRP_OP_FETCH_ADD, 4, 0 },
		{ KRP_OP_CMP_SWAP, 8, 4 },
	};
	struct krc_hw_wr wr;
	struct krc_wc wc;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		wr = probe_wr(p, bad[i].opcode, bad[i].off, bad[i].length);
		if (PROBE_BAD(p, p->ops->post(p->ini, &wr) == -EINVAL))
			return -EPROTO;
	}
	if (PROBE_BAD(p, p->ops->poll(p->ini, &wc, 1) == 0))
		return -EPROTO;
	if (PROBE_BAD(p, PTR_ERR_OR_ZERO(probe_initiator(p, 1, p->attr.initiator_depth_max + 1,
							 0)) == -EINVAL))
		return -EPROTO;
	if (PROBE_BAD(p, PTR_ERR_OR_ZERO(probe_initiator(p, 77, 1, 0)) == -EINVAL))
		return -EPROTO;
	return 0;
}

/* as many as fit, then one more; many times around the ring */
static int probe_many(struct probe *p)
{
	struct krc_wc *wc = kcalloc(PROBE_DEPTH, sizeof(*wc), GFP_KERNEL);
	struct krc_hw_wr wr;
	int round, i, ret = -EPROTO;
	u64 first;

	if (!wc)
		return -ENOMEM;
	for (round = 0; round < 100; round++) {
		first = p->cookie + 1;
		for (i = 0; i < PROBE_DEPTH; i++) {
			wr = probe_wr(p, i & 1 ? KRP_OP_READ : KRP_OP_WRITE, 64 * i, 64);
			wr.fence = i % 16 == 3;
			if (!(i & 1))
				probe_pattern(p->buf + 64 * i, 64, round + i);
			else /* what the one before it wrote */
				wr.remote_addr -= 64;
			if (p->ops->post(p->ini, &wr))
				goto out;
			if (i % 7 == 0)
				p->ops->ring(p->ini);
		}
		wr = probe_wr(p, KRP_OP_READ, 0, 8);
		p->cookie--;
		if (p->ops->post(p->ini, &wr) != -ENOSPC)
			goto out;
		p->ops->ring(p->ini);
		if (probe_wait(p, wc, PROBE_DEPTH) != PROBE_DEPTH)
			goto out;
		for (i = 0; i < PROBE_DEPTH; i++) {
			if (wc[i].cookie != first + i || wc[i].fault)
				goto out;
			if (i & 1 && !probe_is_pattern(p->buf + 64 * i, 64, round + i - 1))
				goto out;
		}
	}
	ret = 0;
out:
	if (ret)
		snprintf(p->result, sizeof(p->result), "%s: round %d, request %d", __func__, round,
			 i);
	kfree(wc);
	return ret;
}

/* One ring of @count requests, of which those whose bit is set in @quiet are quiet. */
static int probe_burst(struct probe *p, u32 count, u32 quiet)
{
	struct krc_wc wc;
	u64 first = p->cookie + 1;
	u32 i;

	for (i = 0; i < count; i++) {
		struct krc_hw_wr wr = probe_wr(p, KRP_OP_WRITE, 64 * i, 64);

		wr.unsignaled = quiet & BIT(i);
		if (PROBE_BAD(p, !p->ops->post(p->ini, &wr)))
			return -EPROTO;
	}
	p->ops->ring(p->ini);
	for (i = 0; i < count; i++) {
		if (quiet & BIT(i) && i != count - 1)
			continue;
		if (PROBE_BAD(p, probe_wait(p, &wc, 1) == 1) ||
		    PROBE_BAD(p, wc.cookie == first + i && !wc.fault))
			return -EPROTO;
	}
	return PROBE_BAD(p, !p->ops->poll(p->ini, &wc, 1)) ? -EPROTO : 0;
}

/* a completion stands for the unsignaled requests before it; the last one rung always has one */
static int probe_quiet(struct probe *p)
{
	u32 round;

	for (round = 0; round < 300; round++) {
		u32 count = 1 + round % 16, quiet = round * 2654435761u >> 8;

		probe_pattern(p->buf, 64 * 16, round);
		if (probe_burst(p, count, quiet))
			return -EPROTO;
		memset(p->buf, 0, 64 * 16);
		if (PROBE_BAD(p, probe_simple(p, KRP_OP_READ, 0, 64 * count) == KRC_FAULT_NONE) ||
		    PROBE_BAD(p, probe_is_pattern(p->buf, 64 * count, round)))
			return -EPROTO;
	}
	return 0;
}

/* ---- what fails, and the way back */

/*
 * @bad fails with @fault; five good ones behind it, some of them quiet, are flushed, in
 * order. -EAGAIN if the peer did not answer at all: two emulated machines may be slower
 * than all retries.
 */
static int probe_fault_once(struct probe *p, const struct krc_hw_wr *bad, enum krc_fault fault)
{
	struct krc_hw_wr wr;
	struct krc_wc wc[6];
	bool silent;
	int i;

	if (PROBE_BAD(p, !p->ops->post(p->ini, bad)))
		return -EPROTO;
	for (i = 1; i < 6; i++) {
		wr = probe_wr(p, KRP_OP_READ, 64 * i, 64);
		wr.unsignaled = i & 1;
		if (PROBE_BAD(p, !p->ops->post(p->ini, &wr)))
			return -EPROTO;
	}
	p->ops->ring(p->ini);
	if (PROBE_BAD(p, probe_wait(p, wc, 6) == 6))
		return -EPROTO;
	pr_info("fault %d: syndrome 0x%x vendor 0x%x\n", wc[0].fault, wc[0].syndrome, wc[0].vendor);
	silent = wc[0].fault == KRC_FAULT_TIMEOUT &&
		 (fault == KRC_FAULT_ACCESS || fault == KRC_FAULT_BUSY);
	if (PROBE_BAD(p, wc[0].cookie == bad->cookie && (silent || wc[0].fault == fault) &&
				 wc[0].syndrome))
		return -EPROTO;
	for (i = 1; i < 6; i++)
		if (PROBE_BAD(p,
			      wc[i].cookie == bad->cookie + i && wc[i].fault == KRC_FAULT_FLUSHED))
			return -EPROTO;
	if (PROBE_BAD(p, !probe_restart(p)))
		return -EPROTO;
	if (PROBE_BAD(p, p->ops->poll(p->ini, wc, 1) == 0))
		return -EPROTO;
	if (PROBE_BAD(p, probe_simple(p, KRP_OP_READ, 0, 64) == KRC_FAULT_NONE))
		return -EPROTO;
	return silent ? -EAGAIN : 0;
}

static int probe_fault(struct probe *p, const struct krc_hw_wr *bad, enum krc_fault fault)
{
	int tries = 3, err;

	do
		err = probe_fault_once(p, bad, fault);
	while (err == -EAGAIN && --tries);
	return err;
}

static int probe_rights(struct probe *p)
{
	struct krc_hw_wr wr = probe_wr(p, KRP_OP_READ, 0, 64);
	int err;

	wr.rkey += 1;
	err = probe_fault(p, &wr, KRC_FAULT_ACCESS);
	if (err)
		return err;
	wr = probe_wr(p, KRP_OP_WRITE, 0, 64);
	wr.rkey = p->peer.ro_rkey;
	err = probe_fault(p, &wr, KRC_FAULT_ACCESS);
	if (err)
		return err;
	wr = probe_wr(p, KRP_OP_READ, 0, 64); /* its last byte is outside */
	wr.remote_addr = p->peer.addr + PROBE_BYTES - 63;
	err = probe_fault(p, &wr, KRC_FAULT_ACCESS);
	if (err)
		return err;
	wr = probe_wr(p, KRP_OP_READ, 0, 64); /* into memory we may only read */
	wr.lkey = p->ro_key.lkey;
	err = probe_fault(p, &wr, KRC_FAULT_LOCAL);
	if (err)
		return err;
	wr = probe_wr(p, KRP_OP_WRITE, 0, 64);
	wr.lkey ^= 0x80;
	return probe_fault(p, &wr, KRC_FAULT_LOCAL);
}

static int probe_wrong_target(struct probe *p)
{
	struct krp_value v = p->peer.value;
	struct krc_hw_address there;
	struct krc_hw_wr wr;
	int err;

	v.dct.dc_key ^= cpu_to_le64(1);
	if (PROBE_BAD(p, !p->ops->address(p->hw, 1, p->gid_index, &p->peer.gid, &v, &there)))
		return -EPROTO;
	wr = probe_wr(p, KRP_OP_READ, 0, 64);
	wr.address = &there;
	err = probe_fault(p, &wr, KRC_FAULT_TIMEOUT);
	if (err)
		return err;
	v = p->peer.value;
	v.dct.dctn = cpu_to_le32(0x3ffe);
	if (PROBE_BAD(p, !p->ops->address(p->hw, 1, p->gid_index, &p->peer.gid, &v, &there)))
		return -EPROTO;
	wr = probe_wr(p, KRP_OP_READ, 0, 64);
	wr.address = &there;
	return probe_fault(p, &wr, KRC_FAULT_TIMEOUT);
}

/* requests under way, completions not polled, entries never rung */
static int probe_reset(struct probe *p)
{
	struct krc_hw_wr wr;
	struct krc_wc wc;
	int round, i;

	for (round = 0; round < 50; round++) {
		for (i = 0; i < PROBE_DEPTH; i++) {
			wr = probe_wr(p, KRP_OP_READ, 0, 4096);
			if (PROBE_BAD(p, !p->ops->post(p->ini, &wr)))
				return -EPROTO;
			if (i < round)
				p->ops->ring(p->ini);
		}
		if (round & 1)
			usleep_range(100, 3000);
		if (PROBE_BAD(p, !probe_restart(p)))
			return -EPROTO;
		if (PROBE_BAD(p, p->ops->poll(p->ini, &wc, 1) == 0))
			return -EPROTO;
	}
	if (PROBE_BAD(p, probe_simple(p, KRP_OP_READ, 0, 64) == KRC_FAULT_NONE))
		return -EPROTO;
	return 0;
}

/* ---- messages */

/* What came back of the buffers. */
static void probe_take(struct probe *p, struct probe_recv *r, const struct krc_recv_wc *wc)
{
	set_bit(wc->cookie, p->free);
	if (wc->fault) {
		r->faults++;
		return;
	}
	if (!probe_is_pattern(p->recv + wc->cookie * PROBE_MESSAGE, wc->bytes, r->received))
		r->bad++;
	r->received++;
}

void probe_receive(struct work_struct *work)
{
	struct probe *p = container_of(to_delayed_work(work), struct probe, receive);
	struct probe_recv *r = (struct probe_recv *)(p->buf + PROBE_RECV);
	struct krc_recv_wc wc[16];
	int n, i;

	if (READ_ONCE(p->closing))
		return;
	p->ops->recv_arm(p->target);
	do {
		n = p->ops->recv_poll(p->target, wc, ARRAY_SIZE(wc));
		for (i = 0; i < n; i++)
			probe_take(p, r, &wc[i]);
	} while (n);
	while (r->posted != READ_ONCE(r->grant)) {
		i = find_first_bit(p->free, PROBE_BUFFERS);
		if (i == PROBE_BUFFERS ||
		    p->ops->recv_post(p->target, i, p->recv_dma + i * PROBE_MESSAGE,
				      p->recv_key.lkey, PROBE_MESSAGE))
			break;
		clear_bit(i, p->free);
		r->posted++;
	}
	p->ops->recv_ring(p->target);
	r->receipts = atomic_read(&p->receipts);
	mod_delayed_work(system_wq, &p->receive, msecs_to_jiffies(20));
}

/* How the peer's receives are. */
static int probe_peer_recv(struct probe *p, struct probe_recv *ret_recv)
{
	int err = probe_simple(p, KRP_OP_READ, PROBE_RECV - PROBE_REMOTE, sizeof(*ret_recv));

	*ret_recv = *(struct probe_recv *)(p->buf + PROBE_RECV - PROBE_REMOTE);
	return PROBE_BAD(p, err == KRC_FAULT_NONE) ? -EPROTO : 0;
}

/* Let the peer post so many buffers more. */
static int probe_grant(struct probe *p, u32 more)
{
	struct probe_recv r;
	unsigned long end = jiffies + msecs_to_jiffies(PROBE_WAIT_MS);
	u32 grant;

	if (probe_peer_recv(p, &r))
		return -EPROTO;
	grant = r.grant + more;
	*(u32 *)(p->buf + PROBE_RECV - PROBE_REMOTE) = grant;
	if (PROBE_BAD(p, probe_simple(p, KRP_OP_WRITE, PROBE_RECV - PROBE_REMOTE, 4) ==
				 KRC_FAULT_NONE))
		return -EPROTO;
	do {
		usleep_range(5000, 20000);
		if (probe_peer_recv(p, &r))
			return -EPROTO;
	} while (r.posted != grant && time_before(jiffies, end));
	return PROBE_BAD(p, r.posted == grant) ? -EPROTO : 0;
}

/* Wait until the peer has taken so many buffers, and compare. */
static int probe_taken(struct probe *p, u32 received, u32 faults)
{
	unsigned long end = jiffies + msecs_to_jiffies(PROBE_WAIT_MS);
	struct probe_recv r;

	do {
		usleep_range(5000, 20000);
		if (probe_peer_recv(p, &r))
			return -EPROTO;
	} while (r.received + r.faults != received + faults && time_before(jiffies, end));
	if (PROBE_BAD(p, r.received == received) || PROBE_BAD(p, r.faults == faults) ||
	    PROBE_BAD(p, !r.bad))
		return -EPROTO;
	return 0;
}

static u32 probe_message_bytes(u32 i)
{
	return i % 7 ? 1 + i * 1237 % PROBE_MESSAGE : PROBE_MESSAGE;
}

/* as many messages as the peer has buffers, with one doorbell, the first is number @first */
static int probe_send_burst(struct probe *p, u32 first)
{
	struct krc_wc wc;
	u32 i;

	for (i = 0; i < PROBE_BUFFERS; i++) {
		u32 bytes = probe_message_bytes(first + i);
		struct krc_hw_wr wr = probe_wr(p, KRC_HW_SEND, i * PROBE_MESSAGE, bytes);

		probe_pattern(p->buf + i * PROBE_MESSAGE, bytes, first + i);
		if (PROBE_BAD(p, !p->ops->post(p->ini, &wr)))
			return -EPROTO;
	}
	p->ops->ring(p->ini);
	for (i = 0; i < PROBE_BUFFERS; i++)
		if (PROBE_BAD(p, probe_wait(p, &wc, 1) == 1 && wc.fault == KRC_FAULT_NONE))
			return -EPROTO;
	return 0;
}

static int probe_messages(struct probe *p)
{
	struct probe_recv before, after;
	struct krc_hw_wr wr;
	u32 round, first;
	int err;

	if (probe_peer_recv(p, &before))
		return -EPROTO;
	if (PROBE_BAD(p, before.posted == before.received + before.faults))
		return -EPROTO;
	wr = probe_wr(p, KRC_HW_SEND, 0, 64);
	err = probe_fault(p, &wr, KRC_FAULT_BUSY); /* no buffer */
	if (err)
		return err;
	for (round = 0; round < 4; round++) {
		first = before.received + round * PROBE_BUFFERS;
		if (probe_grant(p, PROBE_BUFFERS) || probe_send_burst(p, first) ||
		    probe_taken(p, first + PROBE_BUFFERS, before.faults))
			return -EPROTO;
	}
	if (probe_grant(p, 1))
		return -EPROTO;
	wr = probe_wr(p, KRC_HW_SEND, 0, PROBE_MESSAGE + 1); /* longer than the buffer */
	err = probe_fault(p, &wr, KRC_FAULT_ACCESS);
	if (err)
		return err;
	if (probe_taken(p, first + PROBE_BUFFERS, before.faults + 1) || probe_peer_recv(p, &after))
		return -EPROTO;
	return PROBE_BAD(p, after.receipts != before.receipts) ? -EPROTO : 0;
}

/* a target with receives and its end, with buffers posted */
static int probe_receives(struct probe *p)
{
	struct krc_hw_receive receive = { .depth = p->attr.recv_depth_max + 1, .owner = p };
	struct krp_value v = { .generation = cpu_to_le64(1) };
	struct krc_hw_target *target;
	u32 i;

	if (PROBE_BAD(p, PTR_ERR_OR_ZERO(p->ops->target_create(p->hw, 1, p->gid_index, 1, &receive,
							       &v)) == -EINVAL))
		return -EPROTO;
	receive.depth = p->attr.recv_depth_max;
	target = p->ops->target_create(p->hw, 1, p->gid_index, 1, &receive, &v);
	if (PROBE_BAD(p, !IS_ERR(target)))
		return -EPROTO;
	for (i = 0; i < receive.depth; i++)
		if (p->ops->recv_post(target, i, p->dma, p->key.lkey, 64))
			break;
	p->ops->recv_ring(target);
	if (PROBE_BAD(p, i == receive.depth) ||
	    PROBE_BAD(p, p->ops->recv_post(target, i, p->dma, p->key.lkey, 64) == -ENOSPC)) {
		p->ops->target_destroy(target);
		return -EPROTO;
	}
	p->ops->target_destroy(target);
	/* without receives it takes none, and does not mind being asked */
	if (PROBE_BAD(p, p->ops->recv_post(p->target, 0, p->dma, p->key.lkey, 0) == -EINVAL))
		return -EPROTO;
	return 0;
}

/* ---- addresses */

static int probe_addresses(struct probe *p)
{
	struct krp_value v = p->peer.value;
	union ib_gid gid = p->peer.gid;
	struct krc_hw_address a;

	v.dct.mtu = 1;
	if (PROBE_BAD(p, p->ops->address(p->hw, 1, p->gid_index, &gid, &v, &a) == -ENETUNREACH))
		return -EPROTO;
	v = p->peer.value;
	v.dct.max_rd_atomic = 1;
	if (PROBE_BAD(p, p->ops->address(p->hw, 1, p->gid_index, &gid, &v, &a) == -EINVAL))
		return -EPROTO;
	v = p->peer.value;
	v.dct.flags ^= KRP_DCT_ETHERNET;
	if (PROBE_BAD(p, p->ops->address(p->hw, 1, p->gid_index, &p->peer.gid, &v, &a) ==
				 -EAFNOSUPPORT))
		return -EPROTO;
	v = p->peer.value;
	v.kind = KRP_KIND_RAW;
	if (PROBE_BAD(p, p->ops->address(p->hw, 1, p->gid_index, &p->peer.gid, &v, &a) == -EINVAL))
		return -EPROTO;
	v = p->peer.value;
	v.dct.dctn = 0;
	if (PROBE_BAD(p, p->ops->address(p->hw, 1, p->gid_index, &p->peer.gid, &v, &a) == -EINVAL))
		return -EPROTO;
	v = p->peer.value;
	if (!(v.dct.flags & KRP_DCT_ETHERNET))
		return 0;
	if (PROBE_BAD(p, p->ops->address(p->hw, 1, 200, &p->peer.gid, &v, &a) == -ENETUNREACH))
		return -EPROTO;
	/* behind a router that there isn't: its MAC helps nobody */
	gid.raw[12] = 203;
	if (PROBE_BAD(p, p->ops->address(p->hw, 1, p->gid_index, &gid, &v, &a) == -ENETUNREACH))
		return -EPROTO;
	/* a record without a MAC: by the neighbour table, and the same */
	memset(v.dct.mac, 0, sizeof(v.dct.mac));
	if (PROBE_BAD(p, !p->ops->address(p->hw, 1, p->gid_index, &p->peer.gid, &v, &a)))
		return -EPROTO;
	if (PROBE_BAD(p, !memcmp(&a, &p->address, sizeof(a))))
		return -EPROTO;
	return 0;
}

/* ---- life */

static int probe_lives(struct probe *p)
{
	struct krc_hw_initiator *ini;
	struct krc_hw_target *target;
	struct krc_hw_key key, before = {};
	struct krp_value v;
	int i;

	for (i = 0; i < 50; i++) {
		ini = probe_initiator(p, 1, 1 + i * 20, i);
		if (PROBE_BAD(p, !IS_ERR(ini)))
			return -EPROTO;
		p->ops->initiator_destroy(ini);
		v = (struct krp_value){ .generation = cpu_to_le64(1) };
		target = p->ops->target_create(p->hw, 1, p->gid_index, i, NULL, &v);
		if (PROBE_BAD(p, !IS_ERR(target)))
			return -EPROTO;
		if (PROBE_BAD(p, krp_value_valid(&v)))
			return -EPROTO;
		p->ops->target_destroy(target);
		if (PROBE_BAD(p, !p->ops->key_dma(p->hw, p->dma + i, PROBE_BYTES - i,
						  KRP_ACCESS_REMOTE_READ, &key)))
			return -EPROTO;
		if (PROBE_BAD(p, key.rkey != before.rkey))
			return -EPROTO;
		before = key;
		p->ops->key_destroy(p->hw, &key);
	}
	if (PROBE_BAD(p,
		      p->ops->key_dma(p->hw, p->dma, 64, KRP_ACCESS_REMOTE_WRITE, &key) == -EINVAL))
		return -EPROTO;
	if (PROBE_BAD(p,
		      p->ops->key_dma(p->hw, p->dma, 0, KRP_ACCESS_LOCAL_WRITE, &key) == -EINVAL))
		return -EPROTO;
	if (PROBE_BAD(p,
		      PTR_ERR_OR_ZERO(p->ops->target_create(p->hw, 9, 0, 1, NULL, &v)) == -EINVAL))
		return -EPROTO;
	return 0;
}

/* the largest initiator, all of it in use at once */
static int probe_deepest(struct probe *p)
{
	u32 depth = p->attr.initiator_depth_max, i;
	struct krc_hw_initiator *small = p->ini;
	struct krc_hw_wr wr;
	struct krc_wc wc;
	int err = 0;

	p->ini = probe_initiator(p, 1, depth, 1);
	if (IS_ERR(p->ini)) {
		err = PTR_ERR(p->ini);
		p->ini = small;
		return err;
	}
	for (i = 0; i < depth && !err; i++) {
		wr = probe_wr(p, KRP_OP_READ, 64 * (i % 1024), 64);
		err = p->ops->post(p->ini, &wr);
	}
	p->ops->ring(p->ini);
	for (i = 0; i < depth && !err; i++)
		if (probe_wait(p, &wc, 1) != 1 || wc.fault ||
		    wc.cookie != p->cookie - depth + 1 + i)
			err = -EPROTO;
	p->ops->initiator_destroy(p->ini);
	p->ini = small;
	if (PROBE_BAD(p, !err))
		return -EPROTO;
	return 0;
}

void probe_run(struct probe *p)
{
	static const struct {
		const char *name;
		int (*func)(struct probe *p);
	} tests[] = {
		{ "addresses", probe_addresses }, { "data", probe_data },
		{ "atomics", probe_atomics },	  { "refusals", probe_refusals },
		{ "messages", probe_messages },	  { "receives", probe_receives },
		{ "many", probe_many },		  { "quiet", probe_quiet },
		{ "rights", probe_rights },	  { "wrong-target", probe_wrong_target },
		{ "reset", probe_reset },	  { "lives", probe_lives },
		{ "deepest", probe_deepest },
	};
	u32 i;
	int err;

	err = p->ops->address(p->hw, 1, p->gid_index, &p->peer.gid, &p->peer.value, &p->address);
	if (err) {
		snprintf(p->result, sizeof(p->result), "address: %d", err);
		return;
	}
	for (i = 0; i < ARRAY_SIZE(tests); i++) {
		snprintf(p->result, sizeof(p->result), "%s", tests[i].name);
		if (tests[i].func(p))
			return;
		pr_info("%s ok\n", tests[i].name);
	}
	if (!atomic_read(&p->upcalls) || atomic_read(&p->fatal))
		snprintf(p->result, sizeof(p->result), "%d upcalls, %d of them fatal",
			 atomic_read(&p->upcalls), atomic_read(&p->fatal));
	else
		snprintf(p->result, sizeof(p->result), "ok");
}

void probe_loop(struct probe *p, const bool *stop)
{
	struct krc_hw_wr wr;
	struct krc_wc wc;

	while (!READ_ONCE(*stop) && !atomic_read(&p->fatal) && !signal_pending(current)) {
		wr = probe_wr(p, KRP_OP_READ, 0, 256);
		if (!p->ops->post(p->ini, &wr))
			p->ops->ring(p->ini);
		p->ops->poll(p->ini, &wc, 1);
		p->ops->arm(p->ini);
		usleep_range(50, 200);
	}
	if (!atomic_read(&p->fatal))
		return;
	if (probe_restart(p))
		snprintf(p->result, sizeof(p->result), "fatal, no reset");
	else if (probe_simple(p, KRP_OP_READ, 0, 64) != KRC_FAULT_NONE)
		snprintf(p->result, sizeof(p->result), "fatal, no READ after a reset");
	else
		snprintf(p->result, sizeof(p->result), "fatal, works again");
}

/* READ the peer's memory into the process, look at it as the process sees it */
static int probe_umem_key(struct probe *p, struct ib_umem *umem, u64 addr, u64 bytes)
{
	struct krc_hw_wr wr = probe_wr(p, KRP_OP_WRITE, 0, 8192);
	struct krc_hw_key key;
	unsigned long page;
	struct krc_wc wc;
	u8 got[64];

	if (PROBE_BAD(p, !p->ops->key_umem(p->hw, umem, addr, KRP_ACCESS_ALL, &key)))
		return -EPROTO;
	page = ib_umem_find_best_pgsz(umem, GENMASK(31, 12), addr);
	if (PROBE_BAD(p,
		      !key.parts == (ib_umem_num_dma_blocks(umem, page) <= p->hw->key_pages_max)))
		return -EPROTO;
	probe_pattern(p->buf, 8192, bytes);
	if (PROBE_BAD(p, probe_do(p, &wr, &wc) == KRC_FAULT_NONE))
		return -EPROTO;
	wr.opcode = KRP_OP_READ;
	wr.lkey = key.lkey;
	wr.length = 4096;
	wr.local_addr = addr;
	if (PROBE_BAD(p, probe_do(p, &wr, &wc) == KRC_FAULT_NONE))
		return -EPROTO;
	wr.local_addr = addr + bytes - wr.length;
	if (PROBE_BAD(p, probe_do(p, &wr, &wc) == KRC_FAULT_NONE))
		return -EPROTO;
	if (PROBE_BAD(p, ib_umem_copy_from(got, umem, bytes - 64, 64) == 0))
		return -EPROTO;
	if (PROBE_BAD(p, !memcmp(got, p->buf + 4096 - 64, 64)))
		return -EPROTO;
	if (PROBE_BAD(p, ib_umem_copy_from(got, umem, 100, 64) == 0))
		return -EPROTO;
	if (PROBE_BAD(p, !memcmp(got, p->buf + 100, 64)))
		return -EPROTO;
	wr.local_addr += 1;
	if (PROBE_BAD(p, probe_do(p, &wr, &wc) == KRC_FAULT_LOCAL))
		return -EPROTO;
	if (PROBE_BAD(p, !probe_restart(p)))
		return -EPROTO;
	p->ops->key_destroy(p->hw, &key);
	wr.local_addr -= 1;
	if (PROBE_BAD(p, probe_do(p, &wr, &wc) == KRC_FAULT_LOCAL))
		return -EPROTO;
	if (PROBE_BAD(p, !probe_restart(p)))
		return -EPROTO;
	return 0;
}

void probe_umem(struct probe *p, u64 addr, u64 bytes, u32 pages)
{
	u32 usual = p->hw->key_pages_max;
	struct ib_umem *umem;

	umem = ib_umem_get(p->ibdev, addr, bytes, IB_ACCESS_LOCAL_WRITE);
	if (IS_ERR(umem)) {
		snprintf(p->result, sizeof(p->result), "ib_umem_get: %ld", PTR_ERR(umem));
		return;
	}
	p->hw->key_pages_max = pages ?: usual;
	if (!probe_umem_key(p, umem, addr, bytes))
		snprintf(p->result, sizeof(p->result), "ok");
	p->hw->key_pages_max = usual;
	ib_umem_release(umem);
}
