/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A node of krcore with an inbox, for bench_messages and its server, and what these two say to each
 * other. One thread. Whatever fails says so on stderr and ends the program.
 */
#ifndef BN_BOX_H
#define BN_BOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <krcore/message.h>

#define BN_BOX_LETTERS 256 /* taken with one call */
#define BN_BOX_BUFFER (1U << 20)
#define BN_BOX_MEMORY (4U << 20) /* the largest transfer */
#define BN_BOX_DEPTH 8192 /* messages and READs of all connections under way */

/* krcore_letter.imm, of what a client sends to the server */
#define BN_BOX_ECHO 0 /* send it back */
#define BN_BOX_PULL 1 /* struct bn_pull: send me that */
#define BN_BOX_DROP 2 /* nothing */

/**
 * struct bn_pull - What a client wants to be sent. Both ends are of one build and of one kind of
 *	processor, so it is in their byte order.
 * @bytes: of a transfer, 1 to BN_BOX_MEMORY.
 * @rounds: how many transfers.
 * @outstanding: how many at once.
 * @copied: each as messages of at most KRCORE_SEND_COPY_MAX bytes that are copied; 0: each as one
 *	message that is announced.
 */
struct bn_pull {
	uint64_t bytes;
	uint64_t rounds;
	uint32_t outstanding;
	uint32_t copied;
};

/**
 * struct bn_box - A node with an inbox.
 * @node: node.
 * @letters: what bn_box_take() has taken.
 * @buffer: bytes of these.
 * @mr: region with @memory.
 * @memory: BN_BOX_MEMORY bytes that messages are announced from, or fetched to.
 * @under_way: messages and READs without a completion.
 * @serves: a peer may end while something is under way to it, which is no error then.
 */
struct bn_box {
	struct krcore_node *node;
	struct krcore_letter letters[BN_BOX_LETTERS];
	char *buffer;
	struct krcore_mr mr;
	char *memory;
	uint64_t under_way;
	bool serves;
};

/**
 * bn_box_open() - Open the node, and make its inbox.
 * @box: filled.
 * @serves: bn_box.serves.
 */
void bn_box_open(struct bn_box *box, bool serves);

/**
 * bn_box_take() - Take letters.
 * @box: node.
 * @most: how many, at most BN_BOX_LETTERS.
 * @timeout_ms: as krcore_recv() has it.
 *
 * Return: how many came; 0 if none did in time.
 */
unsigned int bn_box_take(struct bn_box *box, unsigned int most, int timeout_ms);

/**
 * bn_box_done() - Take completions that are there.
 * @box: node.
 *
 * One with an error ends the program.
 * Return: how many there were.
 */
unsigned int bn_box_done(struct bn_box *box);

/**
 * bn_box_wait() - Wait for a completion, and take those there are, as bn_box_done() does.
 * @box: node.
 *
 * Return: how many there were.
 */
unsigned int bn_box_wait(struct bn_box *box);

/**
 * bn_box_send() - Send messages, waiting for completions while too many are under way.
 * @box: node.
 * @wrs: messages.
 * @nr: how many.
 *
 * Ends the program if one is refused for another reason, but for bn_box.serves.
 */
void bn_box_send(struct bn_box *box, const struct krcore_send_wr *wrs, unsigned int nr);

#endif /* BN_BOX_H */
