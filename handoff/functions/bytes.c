// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A function that makes, passes on and takes bytes, by queues of the node's kernel module.
 *
 * What is offered is a region that peers may only READ; its reference is what
 * krcore_region_pack() makes, in hexadecimal. A process that begins with taking does all up to
 * the connection with krcore_start(). What it has then, node, queue and registered memory,
 * it uses again as long as the peer is the same and the memory is large enough.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <krcore/queue.h>

#include "handoff/lib/function.h"

#define KB_CHUNK (1U << 20) /* bytes of a READ: so long that more of them are not faster */
#define KB_DEPTH 16 /* READs at once */
#define KB_WAIT_MS 10000 /* for one completion */

/**
 * struct kb_memory - Memory, registered.
 * @at: first byte; NULL if there is none.
 * @bytes: of the data in it.
 * @room: how many there is room for.
 * @mr: the region.
 * @registered: whether @mr is one.
 */
struct kb_memory {
	uint8_t *at;
	size_t bytes;
	size_t room;
	struct krcore_mr mr;
	bool registered;
};

/**
 * struct kb - The function.
 * @in_page: bits of an address that are within a page.
 * @node: NULL until it is needed.
 * @gid: of our port; all zero until it is known.
 * @peer: that @queue is connected to.
 * @queue: the queue.
 * @depth: READs that it takes at once.
 * @connected: whether there is one.
 * @out: what we offer.
 * @in: what we took.
 * @why: last error.
 */
struct kb {
	size_t in_page;
	struct krcore_node *node;
	uint8_t gid[KRCORE_GID_BYTES];
	struct krcore_key peer;
	uint32_t queue;
	uint32_t depth;
	bool connected;
	struct kb_memory out, in;
	char why[256];
};

static int kb_fail(struct kb *b, int err, const char *what)
{
	snprintf(b->why, sizeof(b->why), "%s: %s", what, krcore_error_text());
	return err;
}

/* For errors that the library has no text for: those of requests. */
static int kb_fail_request(struct kb *b, int err)
{
	const char *more = "";

	if (err == -EBADR || err == -EREMOTEIO)
		more = " (its owner has freed the data, or has ended)";
	snprintf(b->why, sizeof(b->why), "READ: %s%s", strerror(-err), more);
	return err;
}

/*
 * Whether so much more may be locked: registering says so, too, but only when the memory is there.
 * The limit holds for all of a process together. Return: 0, or -ENOMEM.
 */
static int kb_may_lock(struct kb *b, size_t more)
{
	size_t locked = (b->in.registered ? b->in.room : 0) + (b->out.registered ? b->out.room : 0);
	struct rlimit most;

	if (getrlimit(RLIMIT_MEMLOCK, &most) || most.rlim_cur == RLIM_INFINITY ||
	    locked + more <= most.rlim_cur)
		return 0;
	snprintf(b->why, sizeof(b->why),
		 "%zu bytes of memory: %zu are locked, and the limit is %llu", more, locked,
		 (unsigned long long)most.rlim_cur);
	return -ENOMEM;
}

static int kb_map(struct kb *b, struct kb_memory *m, size_t bytes)
{
	size_t room = ((bytes - 1) | b->in_page) + 1; /* whole pages */
	void *at;

	if (kb_may_lock(b, room))
		return -ENOMEM;
	/* all of it is written at once: by the fabric, or by what makes the data */
	at = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
		  -1, 0);
	if (at == MAP_FAILED) {
		snprintf(b->why, sizeof(b->why), "%zu bytes of memory: %s", room, strerror(errno));
		return -ENOMEM;
	}
	*m = (struct kb_memory){ .at = at, .bytes = bytes, .room = room };
	return 0;
}

static void kb_unmap(struct kb *b, struct kb_memory *m)
{
	if (m->registered) /* waits until no peer can have a valid reference */
		krcore_mr_dereg(b->node, &m->mr);
	if (m->at)
		munmap(m->at, m->room);
	*m = (struct kb_memory){ 0 };
}

/* The port that the runner names, or the first that is up. */
static void kb_options(struct kb *b, struct krcore_node_options *ret_opts)
{
	const char *text = getenv(KH_ENV_GID);
	struct krcore_key key;

	*ret_opts = (struct krcore_node_options){ .size = sizeof(*ret_opts) };
	if (!text || krcore_key_from_address(text, 0, &key))
		return;
	memcpy(b->gid, key.gid, sizeof(b->gid));
	memcpy(ret_opts->gid, key.gid, sizeof(ret_opts->gid));
}

static int kb_open(struct kb *b)
{
	struct krcore_node_options opts;
	int err;

	if (b->node)
		return 0;
	kb_options(b, &opts);
	opts.ring_entries = KB_DEPTH;
	err = krcore_node_open(&opts, &b->node);
	return err ? kb_fail(b, err, "opening the node") : 0;
}

static uint8_t *kb_room(void *state, size_t bytes)
{
	struct kb *b = state;

	kb_unmap(b, &b->out);
	return kb_map(b, &b->out, bytes) ? NULL : b->out.at;
}

static int kb_offer(void *state, char *ret_word)
{
	static const uint8_t unknown[KRCORE_GID_BYTES];
	struct krcore_port_info port = { .size = sizeof(port) };
	uint8_t packed[KRCORE_PACKED_MAX];
	struct krcore_region_ref ref;
	struct kb *b = state;
	int ret = kb_open(b);

	if (ret)
		return ret;
	ret = krcore_mr_reg(b->node, b->out.at, b->out.bytes, KRCORE_ACCESS_REMOTE_READ,
			    &b->out.mr);
	if (ret)
		return kb_fail(b, ret, "registering memory");
	b->out.registered = true;
	if (!memcmp(b->gid, unknown, sizeof(unknown))) {
		ret = krcore_node_port(b->node, 0, &port); /* ours */
		if (ret)
			return kb_fail(b, ret, "the RDMA port");
		memcpy(b->gid, port.gid, sizeof(b->gid));
	}
	krcore_region_ref_of(&b->out.mr, &ref);
	ret = krcore_region_pack(b->gid, &ref, packed);
	if (ret < 0)
		return kb_fail(b, ret, "the reference");
	kh_hex_format(packed, (size_t)ret, ret_word);
	return 0;
}

/* READs at once for so many bytes. */
static uint32_t kb_depth(size_t bytes)
{
	size_t chunks = (bytes + KB_CHUNK - 1) / KB_CHUNK;

	return chunks < KB_DEPTH ? (uint32_t)chunks : KB_DEPTH;
}

/* The first thing that a process does. */
static int kb_start(struct kb *b, const struct krcore_key *peer, size_t bytes)
{
	struct krcore_started started = { .size = sizeof(started) };
	struct krcore_node_options node;
	struct krcore_start_options opts = {
		.size = sizeof(opts),
		.node = &node,
		.peer = *peer,
		.access = KRCORE_ACCESS_LOCAL_WRITE,
		.depth = kb_depth(bytes),
	};
	int err = kb_map(b, &b->in, bytes);

	if (err)
		return err;
	kb_options(b, &node);
	opts.memory = b->in.at;
	opts.length = b->in.room;
	err = krcore_start(&opts, &started);
	if (err)
		return kb_fail(b, err, "connecting");
	b->node = started.node;
	b->in.mr = started.mr;
	b->in.registered = true;
	b->queue = started.queue;
	b->depth = opts.depth;
	b->peer = *peer;
	b->connected = true;
	return 0;
}

/* Memory for so many bytes, and a queue to the peer, where they are not there already. */
static int kb_connect(struct kb *b, const struct krcore_key *peer, size_t bytes)
{
	int err;

	if (b->in.room < bytes) {
		kb_unmap(b, &b->in);
		err = kb_map(b, &b->in, bytes);
		if (err)
			return err;
	}
	b->in.bytes = bytes;
	if (!b->in.registered) {
		err = krcore_mr_reg(b->node, b->in.at, b->in.room, KRCORE_ACCESS_LOCAL_WRITE,
				    &b->in.mr);
		if (err)
			return kb_fail(b, err, "registering memory");
		b->in.registered = true;
	}
	if (b->connected && b->depth >= kb_depth(bytes) && !memcmp(&b->peer, peer, sizeof(*peer)))
		return 0;
	if (b->connected)
		krcore_queue_close(b->node, b->queue);
	b->connected = false;
	b->depth = kb_depth(bytes);
	err = krcore_queue_open(b->node, b->depth, peer, 0, 0, &b->queue, NULL);
	if (err)
		return kb_fail(b, err, "connecting");
	b->peer = *peer;
	b->connected = true;
	return 0;
}

/* Take completions until none is outstanding. Return: 0, or the first that is bad. */
static int kb_await(struct kb *b, int outstanding)
{
	struct krcore_wc wcs[KB_DEPTH];
	int nr, i, status = 0;

	for (; outstanding > 0; outstanding -= nr) {
		nr = krcore_poll(b->node, wcs, KB_DEPTH);
		if (!nr) {
			nr = krcore_wait(b->node, KB_WAIT_MS);
			if (nr)
				return kb_fail(b, nr, "READ");
		}
		if (nr < 0)
			return kb_fail(b, nr, "READ");
		for (i = 0; i < nr; i++)
			if (!status && wcs[i].status)
				status = kb_fail_request(b, wcs[i].status);
	}
	return status;
}

/* READ what @ref names into b->in, as many chunks at a time as the queue takes. */
static int kb_read(struct kb *b, const struct krcore_region_ref *ref)
{
	struct krcore_wr wrs[KB_DEPTH];
	unsigned int nr;
	uint64_t at = 0;
	int err, taken;

	while (at < ref->length) {
		uint64_t to = at;

		for (nr = 0; nr < b->depth && to < ref->length; nr++) {
			uint64_t left = ref->length - to;
			uint32_t bytes = left < KB_CHUNK ? (uint32_t)left : KB_CHUNK;

			krcore_wr_read(&wrs[nr], &b->in.mr, b->in.at + to, bytes, ref, to, to);
			to += bytes;
		}
		taken = krcore_post_wait(b->node, b->queue, wrs, nr, &err);
		if (taken < 0)
			return kb_fail_request(b, taken);
		if (kb_await(b, taken))
			return -EIO;
		if (err && err != -EAGAIN)
			return kb_fail_request(b, err);
		at = taken < (int)nr ? wrs[taken].user_data : to;
	}
	return 0;
}

/* After a failure: neither queue nor memory nor completions of before are used again. */
static void kb_drop(struct kb *b)
{
	struct krcore_wc wcs[KB_DEPTH];

	krcore_queue_close(b->node, b->queue);
	b->connected = false;
	while (krcore_poll(b->node, wcs, KB_DEPTH) > 0)
		;
	kb_unmap(b, &b->in);
}

static int kb_take(void *state, const char *word, struct kh_taken *ret_taken)
{
	struct krcore_key peer = { .service = KRCORE_SERVICE_NODE };
	uint64_t began = kh_now(), connected;
	uint8_t packed[KRCORE_PACKED_MAX];
	struct krcore_region_ref ref;
	struct kb *b = state;
	int ret = kh_hex_parse(word, packed, sizeof(packed));

	if (ret < 0 || krcore_region_unpack(packed, (size_t)ret, peer.gid, &ref)) {
		snprintf(b->why, sizeof(b->why), "'%s' is no reference of this function", word);
		return -EINVAL;
	}
	if (ref.length > KH_DATA_BYTES_MAX) {
		snprintf(b->why, sizeof(b->why), "the reference names too many bytes");
		return -EINVAL;
	}
	ret = b->node ? kb_connect(b, &peer, ref.length) : kb_start(b, &peer, ref.length);
	if (ret) {
		kb_unmap(b, &b->in);
		return ret;
	}
	connected = kh_now();
	ret = kb_read(b, &ref);
	if (ret) {
		kb_drop(b);
		return ret;
	}
	*ret_taken = (struct kh_taken){
		.data = b->in.at,
		.bytes = ref.length,
		.connect_ns = connected - began,
		.read_ns = kh_now() - connected,
	};
	return 0;
}

static void kb_release(void *state)
{
	struct kb *b = state;

	kb_unmap(b, &b->out);
}

static const char *kb_why(void *state)
{
	struct kb *b = state;

	return b->why;
}

/* Before the first command, of which each instruction counts. */
static void kb_begin(struct kb *b)
{
	b->in_page = (size_t)sysconf(_SC_PAGESIZE) - 1;
}

int main(void)
{
	static const struct kh_ops ops = {
		.room = kb_room,
		.offer = kb_offer,
		.take = kb_take,
		.release = kb_release,
		.why = kb_why,
	};
	static struct kb b;
	int status;

	kb_begin(&b);
	status = kh_function_run(&ops, &b);
	krcore_node_close(b.node);
	return status;
}
