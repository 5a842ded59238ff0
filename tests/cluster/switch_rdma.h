/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * switch_rdma.h - what cards of a kind without counters of their own do, as the switch sees it:
 * RoCEv2 requests of reliable connections by operation and length, and NAKs. A request that is
 * sent again is counted once. Everything read here is from a guest: lengths are checked.
 */
#ifndef SWITCH_RDMA_H
#define SWITCH_RDMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define RDMA_OPS 96 /* rows of a port: operations by length */
#define RDMA_FLOWS 512 /* queue pairs that are told apart; of two at a place the last one stays */
#define ROCE_PORT 4791
#define BTH_BYTES 12
#define ICRC_BYTES 4
#define PSN_MASK 0xffffffu

/**
 * enum rdma_op - What a request does.
 * @RDMA_SEND: as named.
 * @RDMA_WRITE: as named.
 * @RDMA_READ: as named.
 * @RDMA_ATOMIC: compare and swap, or fetch and add.
 */
enum rdma_op {
	RDMA_SEND,
	RDMA_WRITE,
	RDMA_READ,
	RDMA_ATOMIC,
};

static const char *const rdma_op_names[] = { "SEND", "WRITE", "READ", "ATOMIC" };

/**
 * struct rdma_row - Requests of one kind.
 * @op: enum rdma_op.
 * @bytes: length.
 * @count: how many.
 */
struct rdma_row {
	uint8_t op;
	uint32_t bytes;
	uint64_t count;
};

/**
 * struct rdma_port - What has come from a port of the switch.
 * @rows: requests.
 * @n_rows: rows that are used.
 * @uncounted: requests for which there was no row.
 * @naks: requests of others that were refused; not those whose number or time was wrong.
 */
struct rdma_port {
	struct rdma_row rows[RDMA_OPS];
	unsigned int n_rows;
	uint64_t uncounted;
	uint64_t naks;
};

/**
 * struct rdma_flow - Requests to a queue pair.
 * @key: its number, and port of the switch.
 * @psn: packet number of the last request.
 * @send_bytes: of a SEND whose last packet has not come.
 * @valid: there is one here.
 */
struct rdma_flow {
	uint32_t key;
	uint32_t psn;
	uint32_t send_bytes;
	bool valid;
};

static struct rdma_flow rdma_flows[RDMA_FLOWS];

/** rdma_be() - Read a number. @bytes: in network order. @n: how many, at most 4. Return: it. */
static inline uint32_t rdma_be(const uint8_t *bytes, unsigned int n)
{
	uint32_t value = 0;

	while (n--)
		value = value << 8 | *bytes++;
	return value;
}

/** rdma_count() - Count a request. @port: it is from. @op: of it. @bytes: length. */
static inline void rdma_count(struct rdma_port *port, enum rdma_op op, uint32_t bytes)
{
	struct rdma_row *row = port->rows;

	for (; row < port->rows + port->n_rows; row++)
		if (row->op == op && row->bytes == bytes)
			break;
	if (row == port->rows + RDMA_OPS) {
		port->uncounted++;
		return;
	}
	if (row == port->rows + port->n_rows) {
		*row = (struct rdma_row){ .op = op, .bytes = bytes };
		port->n_rows++;
	}
	row->count++;
}

/**
 * rdma_bth() - Find the base transport header of a frame.
 * @frame: it.
 * @n: its bytes.
 * @n_bytes: receives the bytes from there to the ICRC.
 *
 * Return: it, with at least BTH_BYTES; NULL: it is no packet of RoCE v2.
 */
static inline const uint8_t *rdma_bth(const uint8_t *frame, size_t n, size_t *n_bytes)
{
	uint32_t type = n >= 14 ? rdma_be(frame + 12, 2) : 0, udp = 14, length;

	if (type == 0x0800 && n >= 34 && frame[23] == 17)
		udp += (frame[14] & 15u) * 4;
	else if (type == 0x86dd && n >= 54 && frame[20] == 17)
		udp += 40;
	else
		return NULL;
	if (n < udp + 8u || rdma_be(frame + udp + 2, 2) != ROCE_PORT)
		return NULL;
	length = rdma_be(frame + udp + 4, 2);
	if (length < 8u + BTH_BYTES + ICRC_BYTES || n < udp + length)
		return NULL;
	*n_bytes = length - 8u - ICRC_BYTES;
	return frame + udp + 8;
}

/**
 * rdma_new() - Tell a new request from one that is sent again, by its number.
 * @to: port it goes to.
 * @bth: of the request.
 * @flow: receives its flow.
 *
 * Return: whether it is new.
 */
static inline bool rdma_new(unsigned int to, const uint8_t *bth, struct rdma_flow **flow)
{
	uint32_t key = to << 24 | rdma_be(bth + 5, 3), psn = rdma_be(bth + 9, 3);
	struct rdma_flow *f = &rdma_flows[(key * 2654435761u) % RDMA_FLOWS];

	*flow = f;
	if (f->valid && f->key == key && ((psn - f->psn) & PSN_MASK) - 1u >= PSN_MASK / 2)
		return false;
	if (!f->valid || f->key != key)
		*f = (struct rdma_flow){ .key = key, .valid = true };
	f->psn = psn;
	return true;
}

/**
 * rdma_see() - Count what a frame is.
 * @port: of where it comes from.
 * @to: port it goes to.
 * @frame: it.
 * @n: its bytes, as many as there are.
 */
static inline void rdma_see(struct rdma_port *port, unsigned int to, const uint8_t *frame, size_t n)
{
	struct rdma_flow *flow;
	uint32_t payload;
	size_t n_bytes;
	const uint8_t *bth = rdma_bth(frame, n, &n_bytes);

	if (!bth)
		return;
	switch (bth[0]) {
	case 0x11: /* acknowledge: a NAK for another reason than a number */
		if (n_bytes >= BTH_BYTES + 4 && bth[12] >> 5 == 3 && (bth[12] & 31))
			port->naks++;
		return;
	case 0x00: /* SEND: first, middle, last, only */
	case 0x01:
	case 0x02:
	case 0x04:
		if (!rdma_new(to, bth, &flow))
			return;
		payload = (uint32_t)n_bytes - BTH_BYTES - (bth[1] >> 4 & 3);
		flow->send_bytes = (bth[0] & 3 ? flow->send_bytes : 0) + payload;
		if (bth[0] & 6)
			rdma_count(port, RDMA_SEND, bth[0] == 4 ? payload : flow->send_bytes);
		return;
	case 0x06: /* WRITE: first, only; READ */
	case 0x0a:
	case 0x0c:
		if (n_bytes >= BTH_BYTES + 16 && rdma_new(to, bth, &flow))
			rdma_count(port, bth[0] == 0x0c ? RDMA_READ : RDMA_WRITE,
				   rdma_be(bth + BTH_BYTES + 12, 4));
		return;
	case 0x13: /* compare and swap; fetch and add */
	case 0x14:
		if (rdma_new(to, bth, &flow))
			rdma_count(port, RDMA_ATOMIC, 8);
		return;
	}
}

/** rdma_show() - Write what was counted of a port, a line each. @port: it. @text: where.
 * @size: bytes there.
 */
static inline void rdma_show(const struct rdma_port *port, char *text, size_t size)
{
	size_t used = (size_t)snprintf(text, size, "naks %llu uncounted %llu\n",
				       (unsigned long long)port->naks,
				       (unsigned long long)port->uncounted);
	unsigned int i;

	for (i = 0; i < port->n_rows && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s %u %llu\n",
					 rdma_op_names[port->rows[i].op], port->rows[i].bytes,
					 (unsigned long long)port->rows[i].count);
}

#endif
