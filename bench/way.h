/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Ways to a connection, for bench_connect and bench_mesh: krcore's queues, an RC
 * queue pair by rdma_cm, and one by plain verbs with numbers exchanged over TCP.
 *
 * An instance belongs to one thread. Whatever fails says so on stderr and ends
 * the program, but for bn_way.attempt.
 */
#ifndef BN_WAY_H
#define BN_WAY_H

#include <stdint.h>

#define BN_WAY_FRESH 0x1 /* krcore: ask a MetaServer even if the peer is known */
#define BN_READ_BYTES 8

/**
 * struct bn_hello - What both ends of a plain verbs connection tell each other.
 * @addr: the server's memory, big-endian.
 * @rkey: its remote key, big-endian.
 * @qpn: queue pair number, big-endian.
 * @psn: first packet number, big-endian.
 * @mtu: enum ibv_mtu, big-endian.
 * @mib: size of the server's memory in MiB, big-endian.
 * @rsvd: zero.
 * @gid: of the port.
 */
struct bn_hello {
	uint64_t addr;
	uint32_t rkey;
	uint32_t qpn;
	uint32_t psn;
	uint32_t mtu;
	uint32_t mib;
	uint32_t rsvd;
	uint8_t gid[16];
};

/**
 * struct bn_way - One way.
 * @name: as it is called in results.
 * @open: prepare an instance: all that several connections of a thread share.
 *	target: krcore: PEER,ADDR,LENGTH,TOKEN; the others: ADDRESS,PORT.
 * @connect: make a connection. flags: BN_WAY_*.
 * @read: READ BN_READ_BYTES from the peer over it.
 * @attempt: the same, which may fail: 0 or negative errno, after which @close is all that the
 *	connection is good for. NULL: not known for this way.
 * @aim: take another target for the connections to come. NULL: as @attempt.
 * @close: end the connection.
 * @done: give the instance back.
 */
struct bn_way {
	const char *name;
	void *(*open)(const char *target);
	void (*connect)(void *way, unsigned int flags);
	void (*read)(void *way);
	int (*attempt)(void *way);
	void (*aim)(void *way, const char *target);
	void (*close)(void *way);
	void (*done)(void *way);
};

extern const struct bn_way bn_way_krcore;
extern const struct bn_way bn_way_cm;
extern const struct bn_way bn_way_verbs;

/** bn_way_find() - A way by its name. @name: name. Return: it, or NULL. */
const struct bn_way *bn_way_find(const char *name);

/**
 * bn_target_split() - Take a target apart.
 * @target: fields with commas between them.
 * @fields: pointers into a copy that lives as long as the program.
 * @nr: how many fields there must be.
 */
void bn_target_split(const char *target, char **fields, unsigned int nr);

/** bn_krcore_die() - Say what failed with libkrcore's text; end. @what: what. */
void bn_krcore_die(const char *what) __attribute__((noreturn));

struct krcore_node;
struct krcore_wc;

/**
 * bn_krcore_next() - Wait for completions: busy-poll for a millisecond, then block.
 * @node: node.
 * @wcs: out: completions.
 * @max: room in @wcs.
 *
 * Ends the program if none comes within ten seconds.
 * Return: how many came, from 1.
 */
unsigned int bn_krcore_next(struct krcore_node *node, struct krcore_wc *wcs, unsigned int max);

struct ibv_context;
struct ibv_qp;

/**
 * bn_verbs_gid() - GID of a device's first port that stands for an IPv4 address.
 * @verbs: device.
 * @ret_gid: 16 bytes.
 *
 * Return: its index, of RoCE v2.
 */
unsigned int bn_verbs_gid(struct ibv_context *verbs, uint8_t *ret_gid);

/** bn_verbs_device() - Open the first RDMA device. Return: it. */
struct ibv_context *bn_verbs_device(void);

/**
 * bn_verbs_connect() - Take an RC queue pair to RTS.
 * @qp: queue pair, new.
 * @gid_index: of our GID.
 * @psn: our first packet number.
 * @peer: what the peer said.
 */
void bn_verbs_connect(struct ibv_qp *qp, unsigned int gid_index, uint32_t psn,
		      const struct bn_hello *peer);

struct sockaddr_in;

/**
 * bn_verbs_address() - Address of a target ADDRESS,PORT.
 * @target: text.
 * @ret: filled.
 */
void bn_verbs_address(const char *target, struct sockaddr_in *ret);

/**
 * bn_verbs_reach() - Exchange numbers with bn_serve_verbs(), and take a queue pair to RTS.
 * @to: its address.
 * @qp: RC queue pair, new.
 * @ret_peer: what the server said.
 *
 * Return: TCP connection, as long as which the server keeps its queue pair.
 */
int bn_verbs_reach(const struct sockaddr_in *to, struct ibv_qp *qp, struct bn_hello *ret_peer);

#endif /* BN_WAY_H */
