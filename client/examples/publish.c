// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Publish a few bytes under an address and a service, keep them up until
 * SIGINT or SIGTERM, then withdraw them.
 *
 * usage: krcore-example-publish ADDRESS SERVICE TEXT
 */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <krcore/krcore.h>

static int gid_from_text(const char *text, uint8_t *gid)
{
	memset(gid, 0, KRCORE_GID_BYTES);
	if (inet_pton(AF_INET6, text, gid) == 1)
		return 0;
	gid[10] = 0xff;
	gid[11] = 0xff;
	return inet_pton(AF_INET, text, gid + 12) == 1 ? 0 : -1;
}

static int publish_until_signal(struct krcore_ctx *ctx, const struct krcore_key *key,
				const char *text)
{
	struct krcore_value value = { .kind = KRCORE_KIND_RAW };
	sigset_t signals;
	int got, servers;

	value.raw_len = (uint8_t)strlen(text);
	memcpy(value.raw, text, value.raw_len);
	servers = krcore_publish(ctx, key, &value);
	if (servers < 0)
		return servers;
	printf("published to %d servers; interrupt to withdraw\n", servers);
	fflush(stdout);

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	sigwait(&signals, &got);
	return krcore_withdraw(ctx, key);
}

int main(int argc, char **argv)
{
	struct krcore_key key;
	struct krcore_ctx *ctx;
	int err;

	if (argc != 4 || gid_from_text(argv[1], key.gid) || strlen(argv[3]) > KRCORE_RAW_BYTES) {
		fprintf(stderr, "usage: %s ADDRESS SERVICE TEXT\n", argv[0]);
		return 2;
	}
	key.service = (uint16_t)strtoul(argv[2], NULL, 0);

	err = krcore_open(NULL, &ctx);
	if (err) {
		fprintf(stderr, "%s: %s\n", argv[0], krcore_error_text());
		return 1;
	}
	err = publish_until_signal(ctx, &key, argv[3]);
	if (err)
		fprintf(stderr, "%s: %s\n", argv[0], krcore_error_text());
	krcore_close(ctx);
	return err ? 1 : 0;
}
