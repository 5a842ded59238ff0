// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The cluster key and the proofs of the control protocol: see auth.h.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nettle/base16.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>

#include "common/auth.h"

static int kru_key_parse(const char *text, size_t len, struct kru_key *ret_key)
{
	struct base16_decode_ctx ctx;
	struct kru_key key = { 0 };

	while (len && isspace((unsigned char)text[len - 1]))
		len--;
	while (len && isspace((unsigned char)*text)) {
		text++;
		len--;
	}
	if (len < 2 * KRU_KEY_BYTES_MIN || len > 2 * KRU_KEY_BYTES_MAX || len % 2)
		return -EINVAL;

	key.len = sizeof(key.bytes);
	base16_decode_init(&ctx);
	if (!base16_decode_update(&ctx, &key.len, key.bytes, len, text) ||
	    !base16_decode_final(&ctx) || key.len != len / 2) {
		kru_key_wipe(&key);
		return -EINVAL;
	}
	*ret_key = key;
	kru_key_wipe(&key);
	return 0;
}

int kru_key_load(const char *path, struct kru_key *ret_key)
{
	char text[2 * KRU_KEY_BYTES_MAX + 64];
	struct stat st;
	ssize_t len;
	int fd, err;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0) {
		err = -errno;
		goto out;
	}
	if (!S_ISREG(st.st_mode)) {
		err = -EINVAL;
		goto out;
	}
	if (st.st_mode & (S_IRWXO | S_IWGRP)) {
		err = -EPERM;
		goto out;
	}
	len = read(fd, text, sizeof(text));
	if (len < 0)
		err = -errno;
	else if ((size_t)len == sizeof(text))
		err = -EINVAL; /* there may be more that nobody has looked at */
	else
		err = kru_key_parse(text, (size_t)len, ret_key);
	explicit_bzero(text, sizeof(text));
out:
	close(fd);
	return err;
}

void kru_key_wipe(struct kru_key *key)
{
	explicit_bzero(key, sizeof(*key));
}

void kru_auth_mac(const struct kru_key *key, const char *label, const struct krp_hello *hello,
		  const struct krp_challenge *challenge, __u8 *ret_mac)
{
	struct hmac_sha256_ctx ctx;

	hmac_sha256_set_key(&ctx, key->len, key->bytes);
	hmac_sha256_update(&ctx, strlen(label), (const uint8_t *)label);
	hmac_sha256_update(&ctx, sizeof(*hello), (const uint8_t *)hello);
	hmac_sha256_update(&ctx, sizeof(*challenge), (const uint8_t *)challenge);
	hmac_sha256_digest(&ctx, KRP_MAC_BYTES, ret_mac);
	explicit_bzero(&ctx, sizeof(ctx));
}

int kru_mac_equal(const __u8 *a, const __u8 *b)
{
	return memeql_sec(a, b, KRP_MAC_BYTES);
}

int kru_random(void *p, size_t bytes)
{
	ssize_t got;

	do {
		got = getrandom(p, bytes, 0);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	return (size_t)got == bytes ? 0 : -EIO;
}
