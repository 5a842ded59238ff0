/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a client needs of a network: batches of one-sided requests to one region.
 *
 * The requests of a batch take effect in their order, each in one piece (READ and WRITE:
 * in pieces of words). Each belongs to one of
 * - status 0: done, exactly once, as all before it;
 * - -ECANCELED: not done, not even in part;
 * - any other: done or not, or (WRITE) in part; but it will not be done any more.
 * Once one has not the status 0 none behind it has; how many of these were done nobody knows, but
 * that each was only if all before it were. So it may be that nothing of a batch was done although
 * only its last request is asked for.
 * After a failure the next batch connects again. The core repeats after kr_passing() statuses.
 * A batch ends within kr_transport.late_ms, with connecting anew, unless the program stands still.
 * An instance belongs to one thread.
 */
#ifndef KR_TRANSPORT_H
#define KR_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

#define KR_BATCH_MAX 64

/** enum kr_op - Kind of a request. */
enum kr_op {
	KR_READ,
	KR_WRITE,
	KR_CAS,
	KR_ADD,
};

/**
 * struct kr_req - One request.
 * @op: kind.
 * @length: bytes; atomics: 8.
 * @status: result, see above.
 * @remote: offset in the region.
 * @local: memory of kr_transport_ops.memory(); atomics put the old word there.
 * @compare: CAS: word expected; ADD: what is added.
 * @swap: CAS: new word.
 */
struct kr_req {
	enum kr_op op;
	uint32_t length;
	int status;
	uint64_t remote;
	void *local;
	uint64_t compare;
	uint64_t swap;
};

struct kr_transport;

/**
 * struct kr_transport_ops - A kind of network.
 * @submit: do a batch of 1 to KR_BATCH_MAX requests. Return: 0, or the first status that is not 0.
 * @memory: memory that requests may use, all zero, aligned to 8 bytes at least, until @close; NULL
 *   if there is none.
 * @now_ms: a clock in ms that never goes back, and counts when the machine sleeps.
 * @pause: let others go on, for about so many ms (0: a moment).
 * @close: end it and free it.
 */
struct kr_transport_ops {
	int (*submit)(struct kr_transport *t, struct kr_req *reqs, unsigned int nr);
	void *(*memory)(struct kr_transport *t, size_t bytes);
	uint64_t (*now_ms)(struct kr_transport *t);
	void (*pause)(struct kr_transport *t, unsigned int ms);
	void (*close)(struct kr_transport *t);
};

/**
 * struct kr_transport - A connection to a region.
 * @ops: kind.
 * @bytes: size of the region.
 * @late_ms: a batch, what the NIC still does of it included, is over after so long.
 */
struct kr_transport {
	const struct kr_transport_ops *ops;
	uint64_t bytes;
	uint32_t late_ms;
};

#endif /* KR_TRANSPORT_H */
