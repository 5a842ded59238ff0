/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * /dev/krcore by its bare ioctls, for tests: no library between them and the module.
 * One thread uses a context at a time. Calls return 0 or a negative errno; those that
 * end in _or_die end the program with a message, for steps that a test takes for
 * granted.
 */
#ifndef KRC_TESTS_DEV_H
#define KRC_TESTS_DEV_H

#include <stddef.h>
#include <stdint.h>

#include "proto/krp_ioctl.h"

#define DEV_PATH "/dev/krcore"
#define DEV_TIMEOUT_MS 20000 /* emulated guests are slow */

/**
 * struct dev - A context.
 * @fd: open file.
 * @ring: mapped ring.
 * @cqes: its entries.
 * @map_bytes: size of the mapping.
 */
struct dev {
	int fd;
	struct krp_ring *ring;
	struct krp_cqe *cqes;
	size_t map_bytes;
};

/**
 * struct dev_region - Memory and its registration.
 * @mem: first byte.
 * @bytes: length.
 * @handle: for requests.
 * @token: for peers.
 */
struct dev_region {
	uint8_t *mem;
	size_t bytes;
	uint32_t handle;
	uint64_t token;
};

/**
 * struct dev_peer - Where to, and the memory a `serve` there has opened.
 * @gid: its GID.
 * @service: its service.
 * @rw: token of the region open to everything.
 * @rw_addr: its address.
 * @ro: token of the region open to READs.
 * @ro_addr: its address.
 * @bytes: length of each.
 */
struct dev_peer {
	uint8_t gid[KRP_GID_BYTES];
	uint16_t service;
	uint64_t rw, rw_addr, ro, ro_addr;
	size_t bytes;
};

/* ioctl(2), but with a negative errno. */
int dev_ioctl(int fd, unsigned long request, void *arg);

/* A context with a ring of @entries, on port $KRC_PORT or $KRC_GID; after an error none. */
int dev_open(struct dev *dev, unsigned int entries);
void dev_open_or_die(struct dev *dev, unsigned int entries);
void dev_close(struct dev *dev);

int dev_register(struct dev *dev, void *mem, size_t bytes, uint32_t access,
		 struct dev_region *ret_region);
int dev_deregister(struct dev *dev, uint32_t handle);

/* Page-aligned memory, registered with @access. */
void dev_region_or_die(struct dev *dev, size_t bytes, uint32_t access, struct dev_region *ret);

int dev_queue(struct dev *dev, uint32_t depth, uint32_t *ret_queue);
int dev_connect(struct dev *dev, uint32_t queue, const struct dev_peer *peer, uint32_t flags);

/* Both in one call. */
int dev_queue_open(struct dev *dev, uint32_t depth, const struct dev_peer *peer, uint32_t flags,
		   uint32_t *ret_queue);

/* A connected queue. */
uint32_t dev_connected_or_die(struct dev *dev, uint32_t depth, const struct dev_peer *peer);
int dev_query(struct dev *dev, uint32_t queue, struct krp_queue_query *ret);
int dev_queue_close(struct dev *dev, uint32_t queue);

/* Post; returns how many were taken, or a negative errno if none. @ret_error may be NULL. */
int dev_post_flags(struct dev *dev, uint32_t queue, const struct krp_wr *wrs, uint32_t count,
		   uint32_t flags, int *ret_error);
int dev_post(struct dev *dev, uint32_t queue, const struct krp_wr *wrs, uint32_t count,
	     int *ret_error);

/* One completion: 1, or 0 if none comes within the time. */
int dev_reap(struct dev *dev, struct krp_cqe *ret_cqe, int timeout_ms);

/* Wait for a completion by the ioctl, dev_reap() does it by poll(2). */
int dev_wait(struct dev *dev, uint32_t timeout_ms);

/* Post one request and wait for it; its status, or why it was not taken. */
int dev_do(struct dev *dev, uint32_t queue, const struct krp_wr *wr);

/* Bind @service, or with KRP_BIND_UNDO take it, or the record of it, back. */
int dev_bind(int fd, uint16_t service, uint16_t flags);

/* A look-up that asks the servers anew. */
int dev_lookup(int fd, const uint8_t *gid, uint16_t service, struct krp_record_lookup *ret);

/* What publishes @text, of KRP_RAW_BYTES at most, under @service; and do it. */
struct krp_record_publish dev_record(uint16_t service, const char *text);
int dev_publish(int fd, uint16_t service, const char *text);

/* Be told of changes, or with KRP_WATCH_OFF no more. */
int dev_watch(int fd, uint32_t flags);

/* A READ or WRITE of a piece of @local at @offset from or to @addr of @token. */
struct krp_wr dev_wr(uint8_t opcode, const struct dev_region *local, size_t offset, uint64_t token,
		     uint64_t addr, uint32_t length);

/**
 * struct dev_moves - What became of a queue that moves from peer to peer.
 * @moved: connected to another peer at once.
 * @refused: could not.
 * @lost: requests without a completion.
 * @last_error: why it could not.
 */
struct dev_moves {
	unsigned int moved, refused, lost;
	int last_error;
};

/* "10.0.0.1" or "fe80::1" as a GID. */
int dev_parse_gid(const char *text, uint8_t gid[KRP_GID_BYTES]);

uint64_t dev_now_ms(void);

/*
 * When a run of so many seconds ends, by dev_now_ms(). SIGTERM ends it at once from now on, so
 * that who started it decides by what has come to pass, and not by time.
 */
uint64_t dev_end_ms(unsigned int seconds);

/* Whether it is over. */
int dev_over(uint64_t end_ms);

/* The same bytes for the same seed. */
void dev_fill(uint8_t *mem, size_t bytes, uint64_t seed);

/* TAP: one line a case. */
void tap(int good, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The plan; returns the program's exit status. */
int tap_end(void);

#define tap_equal(name, got, want) \
	do { \
		long long tap_got = (got), tap_want = (want); \
		tap(tap_got == tap_want, (name), "%lld instead of %lld", tap_got, tap_want); \
	} while (0)

/* Groups of cases; see their files. */
void bad_inputs(void); /* bad.c */
void bad_requests(const struct dev_peer *peer);
void bad_messages(void); /* bad_message.c */
void random_inputs(uint64_t seed, unsigned int calls); /* random.c */
void random_requests(const struct dev_peer *peer, uint64_t seed, unsigned int calls);
void limit_of_memory(void); /* limits.c */
void limit_of_requests(const struct dev_peer *peer, unsigned int most);
void many(void); /* many.c */
void charge(unsigned int most);
void traffic(const struct dev_peer *peer); /* traffic.c */
void faults(const struct dev_peer *peer); /* faults.c */
void message_faults(const struct dev_peer *peer); /* faults_message.c */
void kinds(const struct dev_peer *peer); /* kinds.c */
int large(const struct dev_peer *peer, unsigned int gibibytes); /* large.c */
void life(const struct dev_peer *peer); /* life.c */
void records(const struct dev_peer *peer); /* records.c */
void share(const struct dev_peer *peer); /* share.c */
int paged(const struct dev_peer *peer); /* paged.c */
int outlive(const struct dev_peer *peer, unsigned int number); /* outlive.c */
int once_consume(unsigned int seconds); /* once.c */
int late_serve(const char *pipe_name); /* late.c */
int late_read(const struct dev_peer *peer, unsigned int seconds);
int once_produce(const struct dev_peer *peer, unsigned int seconds);
struct dev_moves reconnect(const struct dev_peer *peer, unsigned int seconds); /* reconnect.c */

/* A good program, and bad ones beside it that ask silent peers; see neighbour.c. */
#define SIEGE_RACK 8 /* silent peers at once: the services from the peer's on */
int tenant(const struct dev_peer *peer, unsigned int seconds);
int hasty(const struct dev_peer *peer, unsigned int count);
int siege_plain(const struct dev_peer *peer, unsigned int seconds);
int siege_fresh(const struct dev_peer *peer, unsigned int seconds);
int siege_services(const struct dev_peer *peer, unsigned int seconds);
int siege_rack(const struct dev_peer *peer, unsigned int seconds);
int lies(const struct dev_peer *peer, unsigned int seconds);
int flood(const struct dev_peer *peer, unsigned int seconds);
int trickle(const struct dev_peer *peer, unsigned int seconds);

#endif /* KRC_TESTS_DEV_H */
