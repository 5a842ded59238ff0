/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What functions of ./run bench handoff that do not use krcore share: data in memory of the
 * process, served over TCP connections by threads.
 *
 * Whatever fails says so on stderr and ends the program; its caller hears that it has ended.
 */
#ifndef BN_HANDOFF_PEER_H
#define BN_HANDOFF_PEER_H

#include <stddef.h>
#include <stdint.h>

/**
 * struct bn_store_room - Memory that is used again as long as it is large enough.
 * @at: first byte.
 * @room: how many there are.
 * @bytes: of the data in it.
 */
struct bn_store_room {
	uint8_t *at;
	size_t room;
	size_t bytes;
};

/** bn_room() - Make room. @room: room. @bytes: for so many. Return: 1 if it is another one now. */
int bn_room(struct bn_store_room *room, size_t bytes);

/**
 * bn_peer_serve() - Serve connections, one thread each; the second call does nothing.
 * @each: what to do with one; closes it.
 * @ret_where: 64 characters: IP address and port, with a colon between, for bn_peer_connect().
 */
void bn_peer_serve(void (*each)(int fd), char *ret_where);

/** bn_peer_connect() - Connect. @where: from bn_peer_serve(). Return: socket. */
int bn_peer_connect(const char *where);

/** bn_peer_get() - Receive all. @fd: socket. @to: where to. @bytes: how many. */
void bn_peer_get(int fd, void *to, size_t bytes);

/** bn_peer_put() - Send all. @fd: socket. @from: bytes. @bytes: how many. Return: 0 or -1. */
int bn_peer_put(int fd, const void *from, size_t bytes);

/** bn_peer_release() - For kh_ops: memory stays for the next offer. @state: unused. */
void bn_peer_release(void *state);

/** bn_peer_why() - For kh_ops: nothing fails but by ending. @state: unused. Return: a text. */
const char *bn_peer_why(void *state);

#endif /* BN_HANDOFF_PEER_H */
