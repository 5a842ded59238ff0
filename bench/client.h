/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the programs of bench/ that use libkrcore have in common: options and
 * the context.
 *
 * One thread beside the library's. Whatever fails ends the program.
 */
#ifndef BN_CLIENT_H
#define BN_CLIENT_H

#include <stdint.h>

#include "client/include/krcore/krcore.h"

/**
 * struct bn_client - Options.
 * @server: -s, MetaServer as HOST or HOST:PORT.
 * @key_file: -k, cluster key; "" for none.
 * @peer: -p, HOST:PORT of bench_read_server; NULL for none.
 * @records: -r, records of the table, or how many to publish.
 * @samples: -n, how often to measure.
 * @from: -f, number of the first record to publish.
 * @what: -c, or the argument behind the options; NULL if there is none.
 */
struct bn_client {
	const char *server;
	const char *key_file;
	const char *peer;
	uint64_t records;
	uint64_t samples;
	uint64_t from;
	const char *what;
};

/**
 * bn_client_options() - Read the command line.
 * @argc: as main() got it.
 * @argv: the same.
 * @letters: the options this program takes beside -s and -k, of "prnfc".
 * @usage: what stands behind the program's name in its usage line.
 * @ret: filled.
 *
 * Ends the program with 2 if the options are wrong or -s or @what is missing.
 */
void bn_client_options(int argc, char **argv, const char *letters, const char *usage,
		       struct bn_client *ret);

/**
 * bn_client_open() - A context of libkrcore that is attached to the server.
 * @o: options.
 * @name: name of the client, for diagnostics.
 * @owner: first byte of its identity; 0 leaves it to the library.
 * @lease_ms: lease of what it publishes, in ms; 0 leaves it to the server.
 * @flags: KRCORE_OPEN_*.
 *
 * Return: the context.
 */
struct krcore_ctx *bn_client_open(const struct bn_client *o, const char *name, uint8_t owner,
				  uint32_t lease_ms, uint32_t flags);

#endif /* BN_CLIENT_H */
