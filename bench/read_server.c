// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The peer of a look-up: memory that others READ, without any table in it.
 *
 *	bench_read_server ADDRESS PORT MIB
 *
 * Accepts connections until it is killed; the private data of the reply carries address and
 * remote key of MIB of memory. One thread; the NIC alone serves the READs.
 */
#include <stdint.h>
#include <stdio.h>

#include "bench/keys.h"
#include "bench/serve.h"

int main(int argc, char **argv)
{
	uint64_t bytes;

	if (argc != 4) {
		fprintf(stderr, "usage: %s ADDRESS PORT MIB\n", argv[0]);
		return 2;
	}
	bytes = bn_number(argv[3], 1, 4096, "MIB") << 20;
	bn_serve_cm(argv[1], argv[2], bn_memory(bytes), bytes);
}
