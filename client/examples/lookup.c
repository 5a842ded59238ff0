// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Find a peer: one RDMA READ from the best MetaServer of /etc/krcore.conf.
 *
 * usage: krcore-example-lookup ADDRESS [SERVICE]
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <krcore/krcore.h>

/* A RoCE port's GID is its IP address; IPv4 is mapped into IPv6. */
static int gid_from_text(const char *text, uint8_t *gid)
{
	memset(gid, 0, KRCORE_GID_BYTES);
	if (inet_pton(AF_INET6, text, gid) == 1)
		return 0;
	gid[10] = 0xff;
	gid[11] = 0xff;
	return inet_pton(AF_INET, text, gid + 12) == 1 ? 0 : -1;
}

static void show(const struct krcore_value *value, const struct krcore_lookup_info *info)
{
	if (value->kind == KRCORE_KIND_DCT)
		printf("DC target 0x%06x, key 0x%016llx", value->dct.dctn,
		       (unsigned long long)value->dct.dc_key);
	else if (value->kind == KRCORE_KIND_LANE)
		printf("port without DC, queue pair 0x%06x", value->dct.ud_qpn);
	else
		printf("%.*s", value->raw_len, (const char *)value->raw);
	printf("  (%u READs, server %u)%s\n", info->reads, info->server,
	       info->unconfirmed ? " from the cache, which no server can confirm now" : "");
}

int main(int argc, char **argv)
{
	struct krcore_lookup_info info = { .size = sizeof(info) };
	struct krcore_value value;
	struct krcore_key key;
	struct krcore_ctx *ctx;
	int err;

	if (argc < 2 || gid_from_text(argv[1], key.gid)) {
		fprintf(stderr, "usage: %s ADDRESS [SERVICE]\n", argv[0]);
		return 2;
	}
	key.service = argc > 2 ? (uint16_t)strtoul(argv[2], NULL, 0) : KRCORE_SERVICE_NODE;

	err = krcore_open(NULL, &ctx);
	if (err) {
		fprintf(stderr, "%s: %s\n", argv[0], krcore_error_text());
		return 1;
	}
	err = krcore_lookup(ctx, &key, &value, &info);
	if (err)
		fprintf(stderr, "%s: %s\n", argv[0], krcore_error_text());
	else
		show(&value, &info);
	krcore_close(ctx);
	return err ? 1 : 0;
}
