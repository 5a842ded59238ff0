/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Servers of RC connections, for programs of bench/ whose clients READ and WRITE: one that
 * accepts by rdma_cm, and one that exchanges numbers over TCP (struct bn_hello).
 *
 * Both say "ready" on standard output and never return. Whatever fails says so and ends the
 * program. Each may be called once, in a thread of its own. And what servers by TCP begin with.
 */
#ifndef BN_SERVE_H
#define BN_SERVE_H

#include <stddef.h>

/** bn_memory() - Memory that is there, all zero. @bytes: how much. Return: it. */
void *bn_memory(size_t bytes);

/**
 * bn_serve_cm() - Accept connections by rdma_cm, in one thread.
 * @host: address of an RDMA port.
 * @port: number as text.
 * @memory: what clients READ and WRITE.
 * @bytes: its size, whole MiB.
 */
void bn_serve_cm(const char *host, const char *port, void *memory, size_t bytes)
	__attribute__((noreturn));

/**
 * bn_serve_verbs() - Exchange numbers over TCP; a thread for each connection, whose queue pair
 * lives as long as that.
 * @host: address to listen on.
 * @port: number as text.
 * @memory: what clients READ and WRITE.
 * @bytes: its size, whole MiB.
 */
void bn_serve_verbs(const char *host, const char *port, void *memory, size_t bytes)
	__attribute__((noreturn));

/** bn_tcp_listen() - Listen. @host: IPv4 address. @port: number as text. Return: socket. */
int bn_tcp_listen(const char *host, const char *port);

/**
 * bn_tcp_accept() - Wait for a connection, which sends what it has at once.
 * @listener: of bn_tcp_listen().
 *
 * Return: socket.
 */
int bn_tcp_accept(int listener);

#endif /* BN_SERVE_H */
