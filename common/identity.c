// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Identity over boots: see identity.h. HMAC-SHA256 from nettle.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <nettle/hmac.h>

#include "common/identity.h"

#define KRU_MACHINE_ID_DIGITS 32

int kru_identity(const char *path, const char *label, __u8 *ret_owner)
{
	struct hmac_sha256_ctx hmac;
	__u8 digest[SHA256_DIGEST_SIZE];
	char id[KRU_MACHINE_ID_DIGITS + 1] = "";
	ssize_t len;
	int fd, err;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	len = read(fd, id, KRU_MACHINE_ID_DIGITS);
	err = len < 0 ? -errno : 0;
	close(fd);
	if (err)
		return err;
	if (strspn(id, "0123456789abcdefABCDEF") != KRU_MACHINE_ID_DIGITS)
		return -EINVAL;
	hmac_sha256_set_key(&hmac, KRU_MACHINE_ID_DIGITS, (const __u8 *)id);
	hmac_sha256_update(&hmac, strlen(label), (const __u8 *)label);
	hmac_sha256_digest(&hmac, sizeof(digest), digest);
	memcpy(ret_owner, digest, KRP_OWNER_BYTES);
	return 0;
}
