// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Options and context of the programs that use libkrcore: see client.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/client.h"
#include "bench/keys.h"

#define BN_TIMEOUT_MS 30000

static void bn_client_option(struct bn_client *o, int letter, const char *text)
{
	switch (letter) {
	case 's':
		o->server = text;
		break;
	case 'k':
		o->key_file = text;
		break;
	case 'p':
		o->peer = text;
		break;
	case 'r':
		o->records = bn_number(text, 1, 1ULL << 32, "-r");
		break;
	case 'n':
		o->samples = bn_number(text, 1, 10000000, "-n");
		break;
	case 'f':
		o->from = bn_number(text, 0, BN_ABSENT - 1, "-f");
		break;
	default:
		o->what = text;
		break;
	}
}

void bn_client_options(int argc, char **argv, const char *letters, const char *usage,
		       struct bn_client *ret)
{
	char all[32] = "s:k:";
	size_t at = strlen(all);
	int c;

	*ret = (struct bn_client){ .key_file = "", .records = 10, .samples = 1000 };
	for (; *letters && at + 2 < sizeof(all); letters++) {
		all[at++] = *letters;
		all[at++] = ':';
	}
	while ((c = getopt(argc, argv, all)) != -1 && c != '?')
		bn_client_option(ret, c, optarg);
	if (c == -1 && !ret->what && optind < argc)
		ret->what = argv[optind++];
	if (c == '?' || !ret->server || !ret->what || optind != argc) {
		fprintf(stderr, "usage: %s %s\n", argv[0], usage);
		exit(2);
	}
}

struct krcore_ctx *bn_client_open(const struct bn_client *o, const char *name, uint8_t owner,
				  uint32_t lease_ms, uint32_t flags)
{
	struct krcore_options opts = { .size = sizeof(opts),
				       .servers = o->server,
				       .key_file = o->key_file,
				       .name = name,
				       .owner = { owner },
				       .lease_ms = lease_ms,
				       .timeout_ms = BN_TIMEOUT_MS,
				       .flags = flags | KRCORE_OPEN_DIRECT };
	struct krcore_ctx *ctx;
	int err;

	err = krcore_open(&opts, &ctx);
	if (err) {
		fprintf(stderr, "%s: %s (%s)\n", o->server, krcore_error_text(), strerror(-err));
		exit(1);
	}
	return ctx;
}
