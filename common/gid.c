// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * GIDs as text: see gid.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "common/gid.h"

static const __u8 kru_v4_mapped[12] = { [10] = 0xff, [11] = 0xff };

int kru_gid_parse(const char *text, __u8 *ret_gid)
{
	__u8 gid[KRP_GID_BYTES];

	if (inet_pton(AF_INET, text, gid + sizeof(kru_v4_mapped)) == 1)
		memcpy(gid, kru_v4_mapped, sizeof(kru_v4_mapped));
	else if (inet_pton(AF_INET6, text, gid) != 1)
		return -EINVAL;
	memcpy(ret_gid, gid, sizeof(gid));
	return 0;
}

bool kru_v4_is_broken(const char *text)
{
	struct in_addr v4;

	if (inet_pton(AF_INET, text, &v4) == 1)
		return false;
	return strspn(text, "0123456789.") == strlen(text) || inet_aton(text, &v4);
}

char *kru_gid_format(const __u8 *gid, char *buf)
{
	if (!memcmp(gid, kru_v4_mapped, sizeof(kru_v4_mapped)))
		inet_ntop(AF_INET, gid + sizeof(kru_v4_mapped), buf, KRU_GID_TEXT);
	else
		inet_ntop(AF_INET6, gid, buf, KRU_GID_TEXT);
	return buf;
}
