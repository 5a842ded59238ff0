// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The module's test program: /dev/krcore without a library.
 *
 *   krc_ioctl serve SECONDS [SERVICE [DROP_SECONDS]]
 *	Open memory to peers, print "memory RW RW_ADDR RO RO_ADDR BYTES", and keep it for
 *	so long. Binds SERVICE unless it is 0. With DROP_SECONDS the first region is taken
 *	back after so many, or at SIGTERM, and its memory filled with a sign that no peer may
 *	ever see. The environment's KRC_SERVE_MIB is how large each region is; 1 without it.
 *   krc_ioctl consume SECONDS		take buffers that PEER produce hands over; prints "memory
 *	..." at first, and last a line of counts
 *   krc_ioctl lend PIPE			memory that changes hands by orders from PIPE, for PEER
 *	late; prints "memory ..." at first
 *   krc_ioctl bind SERVICE COUNT [SECONDS]	bind so many services from SERVICE on, until one is
 *	refused; prints a line that says how many, and why not more; keeps them for so long
 *   krc_ioctl ports			GIDs of the ports there are
 *   krc_ioctl hoard [SECONDS]		take queues, regions and contexts until refused, and
 *	keep them for so long
 *   krc_ioctl open MOST SECONDS		take so many regions open to peers, or until refused,
 *	and keep them for so long
 *   krc_ioctl memlock			regions up to RLIMIT_MEMLOCK, which must be 64 KiB
 *   krc_ioctl many			many regions, taken back in one call
 *   krc_ioctl charge MOST		what regions are charged, where a user may have so many
 *   krc_ioctl ring ENTRIES SECONDS	keep a ring of so many entries, mapped
 *   krc_ioctl bad				bad input to every ioctl
 *   krc_ioctl random SEED CALLS		any input
 *   krc_ioctl PEER bad | traffic		bad requests; what a queue does
 *   krc_ioctl PEER random SEED CALLS	any requests, most of them nearly right
 *   krc_ioctl PEER requests MOST		where a user may have so many outstanding
 *   krc_ioctl PEER faults		out of memory at every allocation
 *   krc_ioctl PEER message-faults	the same of messages; see faults_message.c
 *   krc_ioctl PEER kinds		memory of several kinds, and megabytes in a request
 *   krc_ioctl PEER large GIBIBYTES		a region of 1 or 2, beside another program
 *   krc_ioctl PEER life			the file in the hands of several
 *   krc_ioctl PEER share		turns of queues on a node with one shared initiator
 *   krc_ioctl PEER loop SECONDS		WRITE, READ back, compare; last a line of counts
 *   krc_ioctl PEER hostile SECONDS		bad references as fast as they are refused
 *   krc_ioctl PEER silent SECONDS		connect to a peer that does not answer, ask, again
 *   krc_ioctl PEER reconnect SECONDS	go to another peer whenever this one is silent
 *   krc_ioctl PEER outlive		a context whose port goes and comes back; see outlive.c
 *   krc_ioctl PEER paged			post requests that are on a page nobody brings
 *   krc_ioctl PEER produce SECONDS		hand buffers over, each once; last a line of counts
 *   krc_ioctl PEER late SECONDS		WRITE to what `lend` lends; last a line of counts
 *   krc_ioctl PEER hold SECONDS		keep 32 large requests under way, to be killed
 *   krc_ioctl PEER crowd QUEUES		that many queues, each of which READs; kept
 *   krc_ioctl PEER fresh			connect, asking a MetaServer; says why not
 *   krc_ioctl PEER watch SECONDS		READ the first region until it is gone
 *   krc_ioctl PEER tenant SECONDS	a READ every 40 ms in each of four threads; last a line
 *	that says how long they took
 *   krc_ioctl PEER hasty CALLS		connects that wait for a millisecond
 *   krc_ioctl PEER siege-plain SECONDS	64 threads connect to a peer that does not answer, and
 *	ask it, again and again
 *   krc_ioctl PEER siege-fresh SECONDS	the same with KRP_CONNECT_FRESH
 *   krc_ioctl PEER siege-services SECONDS	four threads do that, while another goes to more
 *	peers than the node keeps
 *   krc_ioctl PEER siege-rack SECONDS	64 threads, and eight peers: the services from PEER's on
 *   krc_ioctl PEER lies SECONDS		16 threads READ what a peer allows and then refuses; last a
 *	line of counts
 *   krc_ioctl PEER flood SECONDS	eight threads with as many READs under way as their queues
 *	take; last a line of counts
 *   krc_ioctl PEER trickle SECONDS	the same with three READs under way in all, one posted when one is done
 * Runs with a PEER that take SECONDS end sooner at SIGTERM, but for tenant, lies and siege-*.
 * PEER is ADDRESS SERVICE RW RW_ADDR RO RO_ADDR BYTES. The environment's KRC_PORT is the
 * node's port to use, as `ports` counts them from 1, KRC_GID is its GID; any without them.
 *
 * Results are TAP, or one line of key=value pairs; status 0 means all is well.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/module/dev.h"

#define SERVE_MIB 1
#define PAGE_BYTES 4096
#define HOLD_BYTES (1U << 15) /* of each request of `hold` */
#define GONE 0xdd /* fills memory that was taken back */
#define SILENT_PAUSE_US 20000
#define DROP_LOOK_US 10000
#define CROWD_SECONDS 300 /* how long many queues are kept at most */

/**
 * struct counts - What became of requests.
 * @done: completed well.
 * @refused: not taken.
 * @failed: completed with an error.
 * @wrong: brought other bytes than they should.
 * @last_error: last error of any kind.
 * @slowest_ms: longest wait for a completion.
 */
struct counts {
	unsigned long done, refused, failed, wrong;
	int last_error;
	uint64_t slowest_ms;
};

static int print_counts(const struct counts *c)
{
	printf("done=%lu refused=%lu failed=%lu wrong=%lu last_error=%d slowest_ms=%llu\n", c->done,
	       c->refused, c->failed, c->wrong, c->last_error, (unsigned long long)c->slowest_ms);
	return c->failed || c->wrong;
}

static int one(struct dev *dev, uint32_t queue, const struct krp_wr *wr, struct counts *c)
{
	uint64_t start = dev_now_ms(), took;
	struct krp_cqe cqe;
	int ret = dev_post(dev, queue, wr, 1, NULL);

	if (ret < 0) {
		c->refused++;
		c->last_error = ret;
		return ret;
	}
	ret = dev_reap(dev, &cqe, DEV_TIMEOUT_MS) ? cqe.status : -ETIME;
	took = dev_now_ms() - start;
	if (took > c->slowest_ms)
		c->slowest_ms = took;
	if (ret) {
		c->failed++;
		c->last_error = ret;
	} else {
		c->done++;
	}
	return ret;
}

/* Take the region back at the time, or when told to. */
static void serve_drop(struct dev *dev, const struct dev_region *rw, unsigned int seconds)
{
	uint64_t end_ms = dev_end_ms(seconds), start;
	int err;

	while (!dev_over(end_ms))
		usleep(DROP_LOOK_US);
	start = dev_now_ms();
	err = dev_deregister(dev, rw->handle);
	memset(rw->mem, GONE, rw->bytes);
	printf("dropped error=%d after_ms=%llu\n", err, (unsigned long long)(dev_now_ms() - start));
	fflush(stdout);
}

static int run_serve(unsigned int seconds, uint16_t service, unsigned int drop_seconds)
{
	const char *mib = getenv("KRC_SERVE_MIB");
	size_t bytes = (mib ? strtoul(mib, NULL, 0) : SERVE_MIB) << 20;
	struct dev_region rw, ro;
	struct dev dev;
	int err;

	dev_open_or_die(&dev, 64);
	dev_region_or_die(&dev, bytes, KRP_ACCESS_ALL, &rw);
	dev_region_or_die(&dev, bytes, KRP_ACCESS_REMOTE_READ, &ro);
	dev_fill(ro.mem, ro.bytes, ro.token);
	err = service ? dev_bind(dev.fd, service, 0) : 0;
	if (err) {
		fprintf(stderr, "KRP_IOC_BIND: %s\n", strerror(-err));
		return 1;
	}
	printf("memory %#llx %#llx %#llx %#llx %zu\n", (unsigned long long)rw.token,
	       (unsigned long long)(uintptr_t)rw.mem, (unsigned long long)ro.token,
	       (unsigned long long)(uintptr_t)ro.mem, bytes);
	fflush(stdout);
	if (drop_seconds)
		serve_drop(&dev, &rw, drop_seconds);
	sleep(seconds);
	dev_close(&dev);
	return 0;
}

/* A context with one page of memory and a connected queue, whose number it returns. */
static uint32_t open_with_page(struct dev *dev, const struct dev_peer *peer,
			       struct dev_region *ret_local)
{
	dev_open_or_die(dev, 64);
	dev_region_or_die(dev, PAGE_BYTES, KRP_ACCESS_LOCAL_WRITE, ret_local);
	return dev_connected_or_die(dev, 16, peer);
}

/*
 * The good tenant. Each loop has its own place in the peer's memory, by process, behind what
 * `hold` fills. The time begins when it is connected, and is enough for one round.
 */
static int run_loop(const struct dev_peer *peer, unsigned int seconds)
{
	unsigned int places = (unsigned int)((peer->bytes - HOLD_BYTES) / PAGE_BYTES);
	size_t place = HOLD_BYTES + PAGE_BYTES * ((unsigned int)getpid() % places);
	struct dev_region from, to;
	uint64_t end_ms, round;
	struct counts c = { 0 };
	struct dev dev;
	uint32_t queue;

	queue = open_with_page(&dev, peer, &from);
	dev_region_or_die(&dev, PAGE_BYTES, KRP_ACCESS_LOCAL_WRITE, &to);
	end_ms = dev_end_ms(seconds);
	for (round = 0; !c.refused && !c.failed && (!round || !dev_over(end_ms)); round++) {
		uint32_t length = 1 + krp_mix64(round) % 4096;
		struct krp_wr wr =
			dev_wr(KRP_OP_WRITE, &from, 0, peer->rw, peer->rw_addr + place, length);

		dev_fill(from.mem, length, round);
		if (one(&dev, queue, &wr, &c))
			break;
		wr = dev_wr(KRP_OP_READ, &to, 0, peer->rw, peer->rw_addr + place, length);
		if (!one(&dev, queue, &wr, &c))
			c.wrong += memcmp(from.mem, to.mem, length) != 0;
	}
	dev_close(&dev);
	return print_counts(&c) || c.refused;
}

/* The bad tenant: whatever a program can get wrong in a reference, from a seed. */
static int run_hostile(const struct dev_peer *peer, unsigned int seconds)
{
	uint64_t end_ms, n;
	struct dev_region local;
	struct counts c = { 0 };
	struct dev dev;
	uint32_t queue;

	queue = open_with_page(&dev, peer, &local);
	end_ms = dev_end_ms(seconds);
	for (n = 0; !dev_over(end_ms); n++) {
		uint64_t random = krp_mix64(n ^ (uint64_t)getpid() << 32);
		struct krp_wr wr = dev_wr(KRP_OP_WRITE, &local, 0, peer->rw, peer->rw_addr, 64);

		switch (n % 6) {
		case 0:
			wr.remote_token = random;
			break;
		case 1:
			wr.remote_token ^= (random & 0xffff) << 40 | 1ULL << 60;
			break;
		case 2:
			wr.remote_addr += peer->bytes + random % 4096;
			break;
		case 3:
			wr.remote_token = peer->ro;
			wr.remote_addr = peer->ro_addr;
			break;
		case 4:
			wr.length = 4096;
			wr.remote_addr = peer->rw_addr + peer->bytes - 1 - random % 4000;
			break;
		default:
			wr.local_addr += 4096 - random % 60;
			break;
		}
		if (!one(&dev, queue, &wr, &c))
			c.wrong++; /* nothing of this may pass */
	}
	dev_close(&dev);
	return print_counts(&c);
}

/* Another bad tenant: comes back and back to a peer that does not answer. */
static int run_silent(const struct dev_peer *peer, unsigned int seconds)
{
	uint64_t end_ms = dev_end_ms(seconds);
	struct dev_region local;
	struct counts c = { 0 };
	struct dev dev;
	uint32_t queue;

	dev_open_or_die(&dev, 64);
	dev_region_or_die(&dev, 4096, KRP_ACCESS_LOCAL_WRITE, &local);
	while (!dev_over(end_ms)) {
		struct krp_wr wr = dev_wr(KRP_OP_READ, &local, 0, peer->rw, peer->rw_addr, 64);
		int err = dev_queue_open(&dev, 16, peer, 0, &queue);

		if (err) {
			c.failed++;
			c.last_error = err;
			break;
		}
		c.wrong += !one(&dev, queue, &wr, &c);
		dev_queue_close(&dev, queue);
		usleep(SILENT_PAUSE_US);
	}
	dev_close(&dev);
	return print_counts(&c);
}

static int run_reconnect(const struct dev_peer *peer, unsigned int seconds)
{
	struct dev_moves moves = reconnect(peer, seconds);

	printf("moved=%u refused=%u lost=%u last_error=%d\n", moves.moved, moves.refused,
	       moves.lost, moves.last_error);
	return moves.refused || moves.lost;
}

static int run_paged(const struct dev_peer *peer, unsigned int seconds)
{
	(void)seconds;
	return paged(peer);
}

static int run_hold(const struct dev_peer *peer, unsigned int seconds)
{
	uint64_t end_ms = dev_end_ms(seconds);
	struct counts c = { 0 };
	struct dev_region local;
	struct krp_wr wrs[32];
	struct krp_cqe cqe;
	struct dev dev;
	uint32_t queue;
	int i;

	dev_open_or_die(&dev, 64);
	dev_region_or_die(&dev, 1 << 16, KRP_ACCESS_ALL, &local);
	queue = dev_connected_or_die(&dev, 32, peer);
	for (i = 0; i < 32; i++)
		wrs[i] = dev_wr(i % 2 ? KRP_OP_READ : KRP_OP_WRITE, &local, 0, peer->rw,
				peer->rw_addr, HOLD_BYTES);
	printf("holding\n");
	fflush(stdout);
	while (!dev_over(end_ms)) {
		dev_post(&dev, queue, wrs, 32, NULL);
		if (!dev_reap(&dev, &cqe, 10))
			continue;
		c.done += !cqe.status;
		c.failed += cqe.status != 0;
		c.last_error = cqe.status ? cqe.status : c.last_error;
	}
	dev_close(&dev);
	return print_counts(&c);
}

/* Many queues at once, each of which works. They are kept, until the program is killed. */
static int run_crowd(const struct dev_peer *peer, unsigned int count)
{
	struct dev_region local;
	struct counts c = { 0 };
	unsigned int entries = 1;
	struct dev dev;

	while (entries < count)
		entries *= 2;
	dev_open_or_die(&dev, entries);
	dev_region_or_die(&dev, PAGE_BYTES, KRP_ACCESS_LOCAL_WRITE, &local);
	while (count--) {
		uint32_t queue = dev_connected_or_die(&dev, 1, peer);
		struct krp_wr wr = dev_wr(KRP_OP_READ, &local, 0, peer->rw, peer->rw_addr, 64);

		one(&dev, queue, &wr, &c);
	}
	print_counts(&c);
	fflush(stdout);
	sleep(CROWD_SECONDS);
	dev_close(&dev);
	return 0;
}

/*
 * A READ that waited for its turn until the region had gone is refused by its completion: krcore(4).
 * Its queue is in the error state by that: it must be connected again, or the READ has failed.
 */
static void refused_in_turn(struct dev *dev, uint32_t queue, const struct dev_peer *peer,
			    struct counts *c)
{
	if (dev_connect(dev, queue, peer, 0))
		return;
	c->failed--;
	c->refused++;
}

/* A region that is taken back: READs are right, or refused, and never fail or lie. */
static int run_watch(const struct dev_peer *peer, unsigned int seconds)
{
	uint64_t end_ms;
	struct dev_region local;
	struct counts c = { 0 };
	struct dev dev;
	uint32_t queue;

	queue = open_with_page(&dev, peer, &local);
	end_ms = dev_end_ms(seconds);
	while (!dev_over(end_ms) && c.refused < 100) {
		struct krp_wr wr = dev_wr(KRP_OP_READ, &local, 0, peer->rw, peer->rw_addr, 4096);
		unsigned long failed = c.failed;
		int err = one(&dev, queue, &wr, &c);

		if (!err)
			c.wrong += local.mem[0] == GONE || local.mem[4095] == GONE;
		else if (err == -EBADR && c.failed > failed)
			refused_in_turn(&dev, queue, peer, &c);
	}
	dev_close(&dev);
	return print_counts(&c) || c.last_error != -EBADR;
}

static int run_requests(const struct dev_peer *peer, unsigned int most)
{
	limit_of_requests(peer, most);
	return tap_end();
}

static int run_fresh(const struct dev_peer *peer, unsigned int seconds)
{
	uint32_t queue = 0;
	struct dev dev;
	int err;

	(void)seconds;
	dev_open_or_die(&dev, 64);
	err = dev_queue(&dev, 4, &queue);
	if (!err)
		err = dev_connect(&dev, queue, peer, KRP_CONNECT_FRESH);
	printf("%s\n", err ? strerror(-err) : "connected");
	dev_close(&dev);
	return err != 0;
}

static int run_ports(void)
{
	struct krp_port_info info = { .index = 1 };
	char text[INET6_ADDRSTRLEN];
	int fd = open(DEV_PATH, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return 1;
	for (; !dev_ioctl(fd, KRP_IOC_PORT, &info); info.index++)
		printf("%s\n", inet_ntop(AF_INET6, info.gid, text, sizeof(text)));
	close(fd);
	return 0;
}

/* How many there are of everything, and with which error the next is refused. */
static int run_hoard(unsigned int seconds)
{
	int queues = 0, regions = 0, contexts = 0, queue_error, region_error, fd;
	struct dev_region region;
	static uint8_t mem[64];
	struct dev dev;
	uint32_t queue;

	dev_open_or_die(&dev, 1024);
	while (!(queue_error = dev_queue(&dev, 1, &queue)))
		queues++;
	while (!(region_error = dev_register(&dev, mem, sizeof(mem), 0, &region)))
		regions++;
	do {
		fd = open(DEV_PATH, O_RDWR | O_CLOEXEC);
		contexts++; /* the first is there already */
	} while (fd >= 0);
	printf("contexts=%d context_error=%d queues=%d queue_error=%d regions=%d region_error=%d\n",
	       contexts, -errno, queues, queue_error, regions, region_error);
	fflush(stdout);
	sleep(seconds);
	return 0;
}

static int run_open(unsigned int most, unsigned int seconds)
{
	struct dev_region region;
	static uint8_t mem[64];
	unsigned int regions = 0;
	struct dev dev;
	int err = 0;

	dev_open_or_die(&dev, 1024);
	while (regions < most &&
	       !(err = dev_register(&dev, mem, sizeof(mem), KRP_ACCESS_REMOTE_READ, &region)))
		regions++;
	printf("regions=%u region_error=%d\n", regions, err);
	fflush(stdout);
	sleep(seconds);
	return 0;
}

static int run_ring(unsigned int entries, unsigned int seconds)
{
	struct dev dev;

	dev_open_or_die(&dev, entries);
	printf("bytes=%zu\n", dev.map_bytes);
	fflush(stdout);
	sleep(seconds);
	dev_close(&dev);
	return 0;
}

static int run_bind(uint16_t service, unsigned int count, unsigned int seconds)
{
	unsigned int bound;
	struct dev dev;
	int err = 0;

	dev_open_or_die(&dev, 64);
	for (bound = 0; bound < count; bound++) {
		err = dev_bind(dev.fd, (uint16_t)(service + bound), 0);
		if (err)
			break;
	}
	printf("bound=%u error=%d\n", bound, err);
	fflush(stdout);
	sleep(seconds);
	dev_close(&dev);
	return 0;
}

static int parse_peer(char **words, struct dev_peer *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (dev_parse_gid(words[0], ret->gid))
		return -EINVAL;
	ret->service = (uint16_t)strtoul(words[1], NULL, 0);
	ret->rw = strtoull(words[2], NULL, 0);
	ret->rw_addr = strtoull(words[3], NULL, 0);
	ret->ro = strtoull(words[4], NULL, 0);
	ret->ro_addr = strtoull(words[5], NULL, 0);
	ret->bytes = strtoul(words[6], NULL, 0);
	return 0;
}

static int usage(void)
{
	fprintf(stderr, "usage: see the head of tests/module/krc_ioctl.c\n");
	return 64;
}

/* What is done with a peer: cases in TAP, or a run with a number, mostly of seconds. */
/* clang-format off */
static const struct {
	const char *word;
	void (*cases)(const struct dev_peer *peer);
	int (*run)(const struct dev_peer *peer, unsigned int number);
} with_peer[] = {
	/* cases */
	{ .word = "bad", .cases = bad_requests },
	{ .word = "traffic", .cases = traffic },
	{ .word = "faults", .cases = faults },
	{ .word = "message-faults", .cases = message_faults },
	{ .word = "kinds", .cases = kinds },
	{ .word = "life", .cases = life },
	{ .word = "records", .cases = records },
	{ .word = "share", .cases = share },
	/* runs */
	{ .word = "large", .run = large },
	{ .word = "fresh", .run = run_fresh },
	{ .word = "loop", .run = run_loop },
	{ .word = "hostile", .run = run_hostile },
	{ .word = "silent", .run = run_silent },
	{ .word = "outlive", .run = outlive },
	{ .word = "paged", .run = run_paged },
	{ .word = "reconnect", .run = run_reconnect },
	{ .word = "hold", .run = run_hold },
	{ .word = "late", .run = late_read },
	{ .word = "produce", .run = once_produce },
	{ .word = "watch", .run = run_watch },
	{ .word = "crowd", .run = run_crowd },
	{ .word = "requests", .run = run_requests },
	{ .word = "tenant", .run = tenant },
	{ .word = "hasty", .run = hasty },
	{ .word = "siege-plain", .run = siege_plain },
	{ .word = "siege-fresh", .run = siege_fresh },
	{ .word = "siege-services", .run = siege_services },
	{ .word = "siege-rack", .run = siege_rack },
	{ .word = "lies", .run = lies },
	{ .word = "flood", .run = flood },
	{ .word = "trickle", .run = trickle },
};
/* clang-format on */

static int run_with_peer(const struct dev_peer *peer, const char *what, unsigned int nr)
{
	size_t i;

	for (i = 0; i < sizeof(with_peer) / sizeof(with_peer[0]); i++) {
		if (strcmp(what, with_peer[i].word))
			continue;
		if (with_peer[i].run)
			return with_peer[i].run(peer, nr);
		with_peer[i].cases(peer);
		return tap_end();
	}
	return usage();
}

static unsigned int number(int argc, char **argv, int at)
{
	return at < argc ? (unsigned int)strtoul(argv[at], NULL, 0) : 0;
}

int main(int argc, char **argv)
{
	struct dev_peer peer;

	if (argc >= 3 && !strcmp(argv[1], "serve"))
		return run_serve(number(argc, argv, 2), (uint16_t)number(argc, argv, 3),
				 number(argc, argv, 4));
	if (argc == 3 && !strcmp(argv[1], "consume"))
		return once_consume(number(argc, argv, 2));
	if (argc == 3 && !strcmp(argv[1], "lend"))
		return late_serve(argv[2]);
	if (argc >= 4 && !strcmp(argv[1], "bind"))
		return run_bind((uint16_t)number(argc, argv, 2), number(argc, argv, 3),
				number(argc, argv, 4));
	if (argc == 2 && !strcmp(argv[1], "ports"))
		return run_ports();
	if (argc >= 2 && !strcmp(argv[1], "hoard"))
		return run_hoard(number(argc, argv, 2));
	if (argc == 4 && !strcmp(argv[1], "open"))
		return run_open(number(argc, argv, 2), number(argc, argv, 3));
	if (argc == 4 && !strcmp(argv[1], "ring"))
		return run_ring(number(argc, argv, 2), number(argc, argv, 3));
	if (argc == 2 && !strcmp(argv[1], "bad")) {
		bad_inputs();
		bad_messages();
		return tap_end();
	}
	if (argc == 2 && !strcmp(argv[1], "memlock")) {
		limit_of_memory();
		return tap_end();
	}
	if (argc == 2 && !strcmp(argv[1], "many")) {
		many();
		return tap_end();
	}
	if (argc == 3 && !strcmp(argv[1], "charge")) {
		charge(number(argc, argv, 2));
		return tap_end();
	}
	if (argc == 4 && !strcmp(argv[1], "random")) {
		random_inputs(strtoull(argv[2], NULL, 0), number(argc, argv, 3));
		return tap_end();
	}
	if (argc == 11 && !strcmp(argv[8], "random") && !parse_peer(argv + 1, &peer)) {
		random_requests(&peer, strtoull(argv[9], NULL, 0), number(argc, argv, 10));
		return tap_end();
	}
	if (argc >= 9 && !parse_peer(argv + 1, &peer))
		return run_with_peer(&peer, argv[8], number(argc, argv, 9));
	return usage();
}
