/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The stress of queues: what its files share.
 *
 * The passive side lends one region, cut into a head (a board, counters, a lock) and banks. A
 * bank belongs to one queue of one worker at a time, so its WRITEs have an order, and each
 * 8-byte word of it tells by which of them it was written. What a worker knows of its banks
 * lies in memory that outlives it: one that is started in the place of one that was killed goes
 * on checking what that one wrote.
 *
 * A passive side may die and come back with other memory: that is another generation of it. A
 * queue belongs to the one that it was opened in, and so does what is known of its bank.
 *
 * Threads: none. Processes: a supervisor and its workers; a struct st_worker is written by
 * its worker, and by the supervisor while it has none.
 */
#ifndef KRC_TESTS_STRESS_H
#define KRC_TESTS_STRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "client/include/krcore/queue.h"

#define ST_WORKERS_MAX 24
#define ST_PEERS_MAX 3
#define ST_BANKS 8 /* of a worker at each peer */
#define ST_BANK_BYTES (256U << 10)
#define ST_WORDS (ST_BANK_BYTES / 8)
#define ST_QUEUES 3 /* of a worker, at most */
#define ST_DEPTH 32

/* the region of the passive side */
#define ST_BOARD_OFFSET 0ULL /* struct st_board */
#define ST_SUM_OFFSET 4096ULL /* a counter that all workers add to */
#define ST_COUNTERS_OFFSET 8192ULL /* two words a bank */
#define ST_LOCK_OFFSET 16384ULL /* a lock and what it guards, see stress_lock.h */
#define ST_BANKS_OFFSET 65536ULL
#define ST_REGION_BYTES (ST_BANKS_OFFSET + (uint64_t)ST_WORKERS_MAX * ST_BANKS * ST_BANK_BYTES)
#define ST_PASSING_BYTES (64U << 10)
#define ST_GONE 0xdddddddddddddddULL /* fills memory that was taken back */

#define ST_LOST_MS 60000 /* a completion that takes longer is lost */
#define ST_GRACE_MS 15000 /* after a partition: the retries of the last request */
#define ST_QUIET_MS 10000 /* after this, nothing of a killed process is under way */

/**
 * struct st_board - What the passive side tells its visitors.
 * @fixed: a region that is open to READs only, and stays.
 * @passing: one that comes and goes; token 0 if it is away.
 * @generation: tells what is in @passing.
 * @sum: of all before, so that a torn READ is seen.
 */
struct st_board {
	struct krcore_region_ref fixed;
	struct krcore_region_ref passing;
	uint64_t generation;
	uint64_t sum;
};

/**
 * struct st_span - A counter at the peer of which not all is known.
 * @low: least it can be: what is acknowledged.
 * @high: most: with what may have been done.
 */
struct st_span {
	uint64_t low, high;
};

/**
 * struct st_bank - A queue's place at a peer, and what may be there.
 * @seq: last WRITE begun, of all generations of the peer, so that none of an earlier one fits.
 * @generation: of the peer, which all below is of.
 * @free_at_ms: not before this may another process use it.
 * @add: its counter of FETCH_ADD.
 * @swap: its counter of CMP_SWAP.
 * @sum: what was added to the peer's common counter through it.
 * @acked: by word: last WRITE that was acknowledged.
 * @begun: by word: last WRITE begun.
 */
struct st_bank {
	uint32_t seq, generation;
	uint64_t free_at_ms;
	struct st_span add, swap, sum;
	uint32_t acked[ST_WORDS];
	uint32_t begun[ST_WORDS];
};

/**
 * struct st_counts - What happened.
 * @done: requests completed well.
 * @bytes: moved by READs and WRITEs.
 * @atomics: of @done.
 * @excused: requests that failed as they may in a partition.
 * @orphaned: requests that failed since the owner of the memory had died.
 * @doubted: WRITEs and atomics in doubt since a READ of another was refused late, and what
 *	was behind. A killed process may not have seen that refusal, so the module's own
 *	counters are asked whether there was one.
 * @cancelled: requests that their own queue's close ended.
 * @refused: bad references refused as documented.
 * @passed: READs of the passing region that were right.
 * @gone: those refused because it was away.
 * @late: those that the peer's card refused, since they came late.
 * @connects: connections made.
 * @closes: queues closed with requests under way.
 * @regions: regions taken back and registered again.
 * @words: words compared.
 * @violations: what must not be.
 */
struct st_counts {
	uint64_t done, bytes, atomics, excused, orphaned, doubted;
	uint64_t cancelled, refused, passed, gone, late;
	uint64_t connects, closes, regions, words, violations;
};

/**
 * struct st_worker - A worker's place; lives on when it is killed.
 * @incarnation: processes it has had.
 * @counts: of all of them.
 * @banks: by peer.
 */
struct st_worker {
	uint32_t incarnation;
	struct st_counts counts;
	struct st_bank banks[ST_PEERS_MAX][ST_BANKS];
};

/**
 * struct st_peer - A passive side.
 * @key: whom to connect to.
 * @region: what it lends in this @generation; st_peer_look() reads it.
 * @generation: counts its deaths and returns; odd as long as it is dead.
 * @window_until_ms: errors of a partition are excused until then.
 * @away_until_ms: until then it need not be found by its key.
 */
struct st_peer {
	struct krcore_key key;
	struct krcore_region_ref region;
	uint32_t generation;
	uint64_t window_until_ms, away_until_ms;
};

/**
 * struct st_shared - All that supervisor and workers share.
 * @seed: all is drawn from it.
 * @end_ms: when workers end.
 * @nr_peers: passive sides.
 * @nr_workers: workers.
 * @peers: passive sides.
 * @workers: workers.
 */
struct st_shared {
	uint64_t seed;
	uint64_t end_ms;
	unsigned int nr_peers;
	unsigned int nr_workers;
	struct st_peer peers[ST_PEERS_MAX];
	struct st_worker workers[ST_WORKERS_MAX];
};

/**
 * struct st_req - A request under way.
 * @posted_ms: when.
 * @user_data: what its completion must carry.
 * @opcode: KRCORE_OP_*.
 * @length: bytes.
 * @word: first word in @bank.
 * @seq: of a WRITE.
 * @bank_nr: of @bank.
 * @bank: what it READs or WRITEs; NULL for atomics.
 * @floor: READ: by word, the oldest WRITE it may bring.
 * @span: atomic: the counter.
 * @delta: atomic: what it adds if it is done.
 * @expect: atomic: the old value; checked if @exact.
 * @exact: see @expect.
 * @slot: local memory, or ST_SINK.
 * @at: first byte there.
 * @copy_to: READ: where its bytes are wanted, or NULL.
 */
struct st_req {
	uint64_t posted_ms, user_data;
	uint8_t opcode;
	uint32_t length, word, seq, bank_nr;
	struct st_bank *bank;
	uint32_t *floor;
	struct st_span *span;
	uint64_t delta, expect;
	bool exact;
	int slot;
	uint8_t *at;
	void *copy_to;
};

/**
 * struct st_queue - A queue of a worker.
 * @open: it exists.
 * @ready: it is connected as far as we know.
 * @closing: its requests may be cancelled.
 * @visiting: it READs what may be gone.
 * @serial: tells its requests from those of queues before it.
 * @id: number.
 * @depth: requests at once.
 * @peer: which.
 * @generation: of @peer, when it was opened.
 * @region: what @peer lends in that one.
 * @bank: its bank.
 * @bank_nr: number of that among all banks of the peer.
 * @first_error: of this connection; 0 for none.
 * @owed: a post said that it is not connected: something of it must have failed.
 * @last_status: of the last completion.
 * @head: completions seen.
 * @tail: requests posted.
 * @add: next value of its FETCH_ADD counter, if @known.
 * @swap: that of CMP_SWAP.
 * @known: they are.
 * @live: by word: what a READ behind all WRITEs of this queue must bring at least.
 * @reqs: by number % ST_DEPTH.
 */
struct st_queue {
	bool open, ready, closing, visiting;
	uint32_t serial, id, depth;
	unsigned int peer;
	uint32_t generation;
	struct krcore_region_ref region;
	struct st_bank *bank;
	uint32_t bank_nr;
	int first_error, last_status;
	bool owed;
	uint64_t head, tail;
	uint64_t add, swap;
	bool known;
	uint32_t *live;
	struct st_req reqs[ST_DEPTH];
};

#define ST_ARENAS 2
#define ST_LARGE_SLOTS 3
#define ST_SMALL_SLOTS 40
#define ST_SLOTS (ST_LARGE_SLOTS + ST_SMALL_SLOTS) /* of an arena */
#define ST_SMALL_BYTES 4096U
#define ST_GUARD_BYTES 64U
#define ST_SINK (-1) /* in place of a slot: st_self.sink */

/**
 * struct st_arena - Local memory and its region.
 * @mr: region.
 * @mem: memory.
 * @bytes: length.
 * @busy: slots in use.
 */
struct st_arena {
	struct krcore_mr mr;
	uint8_t *mem;
	size_t bytes;
	bool busy[ST_SLOTS];
};

/**
 * struct st_self - A worker's process.
 * @shared: all.
 * @worker: its place.
 * @number: its number.
 * @random: state of its draws.
 * @hostile: it tries bad references too.
 * @serial: queues it has opened.
 * @boards: by peer, as last seen.
 * @peer_generations: by peer, the generation that was seen in.
 * @node: its node.
 * @arenas: local memory.
 * @closed: a region that nothing may be written to.
 * @sink: memory that is READ into by many at once, of which nobody looks at what came.
 * @sink_mr: its region.
 * @queues: its queues.
 */
struct st_self {
	struct st_shared *shared;
	struct st_worker *worker;
	unsigned int number;
	uint64_t random;
	bool hostile;
	uint32_t serial;
	struct st_board boards[ST_PEERS_MAX];
	uint32_t peer_generations[ST_PEERS_MAX];
	struct krcore_node *node;
	struct st_arena arenas[ST_ARENAS];
	struct krcore_mr closed;
	uint8_t *sink;
	struct krcore_mr sink_mr;
	struct st_queue queues[ST_QUEUES];
};

/**
 * st_now_ms() - Read CLOCK_MONOTONIC; also in a signal handler.
 *
 * Return: the time in ms; the same clock in all processes of a node.
 */
static inline uint64_t st_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* stress_run.c */

/**
 * st_end_at_term() - Have SIGTERM end a run at once, as if its time were over.
 * @end_ms: when it ends, in memory that its processes share; once a process. Those that are forked
 *	afterwards ignore the signal.
 */
void st_end_at_term(uint64_t *end_ms);

/* stress_content.c */

/**
 * st_random() - Draw a number.
 * @state: state of the draws; changed.
 * @limit: not 0.
 *
 * Return: 0 to @limit - 1.
 */
uint64_t st_random(uint64_t *state, uint64_t limit);

/**
 * st_word() - Compute what a WRITE puts into a word of a bank.
 * @nr: bank, among all of the peer.
 * @word: word, below ST_WORDS.
 * @seq: number of the WRITE, from 1; in the upper half of the word.
 *
 * Return: the word.
 */
uint64_t st_word(uint32_t nr, uint32_t word, uint32_t seq);

/**
 * st_passing_word() - Compute what the passing region holds in a word.
 * @generation: its generation.
 * @word: word.
 *
 * Return: the word.
 */
uint64_t st_passing_word(uint64_t generation, uint32_t word);

/**
 * st_board_sum() - Sum up a board.
 * @board: board; its sum is not looked at.
 *
 * Return: what st_board.sum is if the READ was not torn.
 */
uint64_t st_board_sum(const struct st_board *board);

/**
 * st_fill() - Fill local memory with what a WRITE puts into a bank.
 * @to: memory of 8 * @words bytes, at any address.
 * @nr: bank.
 * @word: first word.
 * @words: how many.
 * @seq: number of the WRITE.
 */
void st_fill(uint8_t *to, uint32_t nr, uint32_t word, uint32_t words, uint32_t seq);

/**
 * st_compare() - Compare words that a READ brought with what may be there.
 * @got: 8 * @words bytes, at any address.
 * @bank: what is known of the bank.
 * @nr: bank.
 * @word: first word.
 * @words: how many.
 * @floor: by word, from the first: oldest WRITE that may be there; 0: it may still be zero.
 *
 * Return: how many words are wrong; prints the first.
 */
uint32_t st_compare(const uint8_t *got, const struct st_bank *bank, uint32_t nr, uint32_t word,
		    uint32_t words, const uint32_t *floor);

/**
 * st_violation() - Print what must not be, and count it.
 * @counts: its violations grow by one.
 * @format: of printf().
 */
void st_violation(struct st_counts *counts, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/**
 * st_bank_offset() - Locate a bank in the peer's region.
 * @nr: bank.
 *
 * Return: offset in bytes.
 */
uint64_t st_bank_offset(uint32_t nr);

/**
 * st_counter_offset() - Locate the counters of a bank in the peer's region: FETCH_ADD's, then
 * CMP_SWAP's.
 * @nr: bank.
 *
 * Return: offset of the first of the two words, in bytes.
 */
uint64_t st_counter_offset(uint32_t nr);

/* stress_slot.c */

/**
 * st_slot_get() - Take a local slot, with guards on both sides of its bytes.
 * @self: worker.
 * @length: bytes, at most ST_BANK_BYTES.
 * @ret_at: out: the first of them, at any address but for 8 bytes, which are aligned.
 *
 * Return: number over all arenas, for st_slot_put(); -1: all that are large enough are busy.
 */
int st_slot_get(struct st_self *self, uint32_t length, uint8_t **ret_at);

/**
 * st_slot_put() - Give a slot back.
 * @self: worker.
 * @slot: number of st_slot_get().
 */
void st_slot_put(struct st_self *self, int slot);

/**
 * st_slot_mr() - Get the region that a slot is in.
 * @self: worker.
 * @slot: number of st_slot_get().
 *
 * Return: its region.
 */
const struct krcore_mr *st_slot_mr(const struct st_self *self, int slot);

/**
 * st_arena_open() - Allocate the memory of an arena and register it, now and then open to peers.
 * @self: worker.
 * @arena: arena of it.
 *
 * Return: 0, -ENOMEM, or the error of krcore_mr_reg().
 */
int st_arena_open(struct st_self *self, struct st_arena *arena);

/**
 * st_arena_renew() - Take the region of an arena back while requests may be using it, and register
 * it again.
 * @self: worker.
 * @arena: arena of it. What must not fail counts as a violation.
 */
void st_arena_renew(struct st_self *self, struct st_arena *arena);

/**
 * st_sink_open() - Set up and register the sink.
 * @self: worker.
 *
 * Return: 0, or the error of krcore_mr_reg().
 */
int st_sink_open(struct st_self *self);

/**
 * st_slot_touched() - Check the guards of a slot.
 * @at: first byte.
 * @length: bytes.
 *
 * Return: whether a byte before or behind them was changed.
 */
bool st_slot_touched(const uint8_t *at, uint32_t length);

/* stress_queue.c */

/**
 * st_excused() - Check whether an error may be that of a partition.
 * @self: worker.
 * @queue: queue.
 * @error: negative errno.
 *
 * Return: true in the window of the queue's peer, for the errors that silence gives.
 */
bool st_excused(const struct st_self *self, const struct st_queue *queue, int error);

/**
 * st_outlived() - Check whether the memory that a queue was opened for is another's by now, or
 * nobody's.
 * @self: worker.
 * @queue: queue.
 *
 * Return: true if the peer is in another generation than that of @queue.
 */
bool st_outlived(const struct st_self *self, const struct st_queue *queue);

/**
 * st_orphaned() - Check whether an error may be that of memory whose owner has died.
 * @self: worker.
 * @queue: queue.
 * @error: negative errno.
 *
 * Return: true if the queue is outlived and the error is a refusal; silence is none, since the
 * peer's node is there.
 */
bool st_orphaned(const struct st_self *self, const struct st_queue *queue, int error);

/**
 * st_queue_open() - Open a queue on a bank that nobody uses, and connect it to a peer that is
 * drawn.
 * @self: worker.
 * @index: which of its queues; not open.
 *
 * Return: 0, connected or not; -EAGAIN: no peer or bank now; the error of krcore_queue_create(), a
 * violation.
 */
int st_queue_open(struct st_self *self, unsigned int index);

/**
 * st_queue_close() - Close a queue at once, whatever is under way, and expect all its completions.
 * @self: worker.
 * @queue: queue.
 */
void st_queue_close(struct st_self *self, struct st_queue *queue);

/**
 * st_queue_reconnect() - Connect a queue that failed, when nothing is under way any more, and look
 * what is there.
 * @self: worker.
 * @queue: queue.
 */
void st_queue_reconnect(struct st_self *self, struct st_queue *queue);

/**
 * st_poll() - Take what has completed, and check it.
 * @self: worker.
 *
 * Return: how many completions.
 */
unsigned int st_poll(struct st_self *self);

/**
 * st_post() - Post requests that are filled in behind st_queue.tail, but for what posting knows.
 * @self: worker.
 * @queue: queue.
 * @wrs: requests.
 * @nr: how many, as many as st_req_new() has prepared.
 *
 * Return: how many were taken; if not all, the queue is not ready any more and st_queue.last_status
 * says why.
 */
unsigned int st_post(struct st_self *self, struct st_queue *queue, struct krcore_wr *wrs,
		     unsigned int nr);

/**
 * st_req_new() - Prepare the next request.
 * @self: worker.
 * @queue: queue.
 * @ahead: requests prepared and not posted before this one.
 * @opcode: KRCORE_OP_*.
 * @length: bytes.
 *
 * Return: the request to fill; NULL: there is no memory for it now.
 */
struct st_req *st_req_new(struct st_self *self, struct st_queue *queue, unsigned int ahead,
			  uint8_t opcode, uint32_t length);

/**
 * st_post_flood() - Post READs of a whole bank into the sink, as many as the queue takes.
 * @self: worker.
 * @queue: queue that is connected.
 *
 * If it is ST_DEPTH deep, that is more than a card is given at once, whoever else posts.
 * Return: as st_post().
 */
unsigned int st_post_flood(struct st_self *self, struct st_queue *queue);

/**
 * st_drain() - Take completions until a queue has none under way.
 * @self: worker.
 * @queue: queue.
 *
 * Return: 0, or -ETIMEDOUT after ST_LOST_MS, a violation.
 */
int st_drain(struct st_self *self, struct st_queue *queue);

/**
 * st_read_now() - READ and wait for it.
 * @self: worker.
 * @queue: queue; drained first.
 * @ref: remote region.
 * @offset: in it, in bytes.
 * @to: where the bytes go.
 * @length: bytes.
 *
 * Return: 0; -EAGAIN (no memory); -ETIMEDOUT (lost); why it was not taken; or its status.
 */
int st_read_now(struct st_self *self, struct st_queue *queue, const struct krcore_region_ref *ref,
		uint64_t offset, void *to, uint32_t length);

/**
 * st_work() - Be a worker, until the run ends.
 * @shared: all.
 * @number: which, from 0.
 */
void st_work(struct st_shared *shared, unsigned int number) __attribute__((noreturn));

/* stress_bad.c */

/**
 * st_bad_request() - Post one bad reference, and expect that it is refused and the queue is as
 * before.
 * @self: worker.
 * @queue: queue that is ready.
 */
void st_bad_request(struct st_self *self, struct st_queue *queue);

/**
 * st_visit() - READ the region that comes and goes, through a queue of its own.
 * @self: worker.
 * @queue: queue that is ready.
 */
void st_visit(struct st_self *self, struct st_queue *queue);

/**
 * st_serve() - Be the passive side.
 * @seconds: for how long.
 * @seed: all is drawn from it.
 * @service: bound if not 0.
 * @spoil: the control: change what was lent.
 *
 * Return: exit status.
 */
int st_serve(unsigned int seconds, uint64_t seed, uint16_t service, bool spoil);

/* stress_peer.c */

/**
 * st_peer_look() - Read what a peer lends now, and in which generation.
 * @peer: peer; changed meanwhile by the supervisor.
 * @ret_generation: out: generation.
 * @ret_region: out: region; of that generation if true is returned.
 *
 * Return: whether it is alive.
 */
bool st_peer_look(const struct st_peer *peer, uint32_t *ret_generation,
		  struct krcore_region_ref *ret_region);

/**
 * st_bank_renew() - Forget what is known of a bank if that is of another generation of its peer.
 * @bank: bank.
 * @generation: generation of the peer now.
 */
void st_bank_renew(struct st_bank *bank, uint32_t generation);

/**
 * st_peers_troubled() - Check whether a peer is dead or cut off.
 * @shared: all.
 *
 * Return: true if one is.
 */
bool st_peers_troubled(const struct st_shared *shared);

/**
 * st_peers_told() - Take what standard input says of the peers; see the head of krc_stress.c.
 * @shared: all.
 * @counts: a line that makes no sense is a violation.
 * @timeout_ms: wait so long at most for some of it.
 */
void st_peers_told(struct st_shared *shared, struct st_counts *counts, int timeout_ms);

/**
 * st_run() - Be the supervisor of workers, and verify the banks at the end.
 * @shared: all.
 * @seconds: for how long.
 * @kills: kill workers now and then.
 *
 * Return: exit status.
 */
int st_run(struct st_shared *shared, unsigned int seconds, bool kills);

/**
 * st_kill() - Kill processes with requests under way.
 * @shared: all.
 * @count: how many.
 * @at_once: how many live at once; 0: as many as there is room for.
 *
 * Return: exit status: 0 if each was killed while it was busy.
 */
int st_kill(struct st_shared *shared, unsigned int count, unsigned int at_once);

#endif /* KRC_TESTS_STRESS_H */
