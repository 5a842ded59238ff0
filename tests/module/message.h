/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Programs that send each other messages, for tests; see krc_message.c. Each is one thread with one
 * node. What nothing here forgives ends the program with a message and status 1.
 */
#ifndef KRC_TESTS_MESSAGE_H
#define KRC_TESTS_MESSAGE_H

#include <stdint.h>

#include <krcore/message.h>

#define MT_LETTERS 64 /* taken with one call */
#define MT_BUFFER (64U << 10)
#define MT_CONNECTIONS 1024 /* of one program, most */
#define MT_TIMEOUT_MS 60000 /* emulated guests are slow */

/**
 * struct mt - A node with an inbox.
 * @node: node.
 * @letters: what mt_take() has taken.
 * @wcs: what mt_completions() has taken.
 * @buffer: bytes of the letters.
 * @under_way: messages and fetches without a completion.
 * @mr: region of all memory for messages that are announced or fetched.
 * @memory: its first byte.
 */
struct mt {
	struct krcore_node *node;
	struct krcore_letter letters[MT_LETTERS];
	struct krcore_wc wcs[MT_LETTERS];
	char *buffer;
	unsigned int under_way;
	struct krcore_mr mr;
	char *memory;
};

/** mt_die() - End the program, with @what and the library's words. */
void mt_die(const char *what) __attribute__((noreturn));

/** mt_wrong() - End the program: something is not as it must be. */
void mt_wrong(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/** mt_open() - A node with an inbox, and @bytes of registered memory, 0: none. */
void mt_open(struct mt *mt, size_t bytes);

/**
 * mt_open_some() - The same with a ring and an inbox of this size.
 * @mt: out; untouched but for zero after an error.
 * @ring: entries.
 * @depth: messages that may be under way.
 * @bytes: as above.
 *
 * Return: 0, or a negative errno.
 */
int mt_open_some(struct mt *mt, unsigned int ring, unsigned int depth, size_t bytes);

/** mt_close() - Undo it. */
void mt_close(struct mt *mt);

/** mt_take() - Take letters; waits so long for the first. Return: how many, 0 after that time. */
unsigned int mt_take(struct mt *mt, int timeout_ms);

/** mt_completions() - Take completions, without waiting. Return: how many. */
unsigned int mt_completions(struct mt *mt);

/** mt_bytes() - The bytes of @letter, which mt_take() has taken last. */
const void *mt_bytes(const struct mt *mt, const struct krcore_letter *letter);

/** mt_key() - The key of a peer by "ADDRESS" and "SERVICE". */
struct krcore_key mt_key(const char *address, const char *service);

/** mt_connect() - Open a connection; @says is a string for the peer's program. Return: number. */
uint32_t mt_connect(struct mt *mt, const struct krcore_key *peer, const char *says, uint32_t depth);

/** mt_settled() - Wait until a connection that was opened is, or is dead. Return: 0 or a status. */
int mt_settled(struct mt *mt, uint32_t connection);

/** mt_fill() - The same bytes for the same seed. */
void mt_fill(void *bytes, size_t nr, uint64_t seed);

/** mt_filled() - Whether they are those. */
int mt_filled(const void *bytes, size_t nr, uint64_t seed);

/** mt_number() - A number of the command line. */
unsigned int mt_number(const char *text, unsigned int most, const char *name);

/** mt_until_term() - From here on SIGTERM only makes mt_over() true. */
void mt_until_term(void);

/** mt_over() - Whether it has come. */
int mt_over(void);

/** mt_say() - A line of standard output, at once. */
void mt_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What the programs do; see krc_message.c. @words: of the command line, as many as it says. */
int mt_serve(uint16_t service, int deaf); /* message_serve.c */
int mt_echo(const struct krcore_key *peer, unsigned int connections, unsigned int rounds);
int mt_sink(uint16_t service); /* message_sink.c */
int mt_numbers(const struct krcore_key *peer, unsigned int connections);
int mt_large(const struct krcore_key *peer, unsigned int bytes); /* message_few.c */
int mt_hold(const struct krcore_key *peer);
int mt_try(const struct krcore_key *peer, const char *says);
int mt_knock(const struct krcore_key *peer);
int mt_beside(const struct krcore_key *good, const struct krcore_key *deaf, unsigned int rounds);
int mt_stand(uint16_t service, const char *point); /* message_kill.c */
int mt_point(const struct krcore_key *peer, const char *point);
int mt_judge(uint16_t service); /* message_stress.c */
int mt_restless(const struct krcore_key *peer, uint32_t id, int twice);
int mt_watch(uint16_t service); /* message_after.c */
int mt_after(const struct krcore_key *peer, unsigned int rounds);
int mt_collect(uint16_t service, int several, int picky); /* message_posted.c */
int mt_announce(const struct krcore_key *peer, unsigned int count, unsigned int bytes,
		unsigned int slots, int waits);

#endif /* KRC_TESTS_MESSAGE_H */
