// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The cluster keys and the proofs of the control protocol: see auth.h.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nettle/base16.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <nettle/sha2.h>

#include "common/auth.h"

#define KRU_KEY_FILE_BYTES 4096 /* a longer file is not a key file */
#define KRU_TOKEN_LABEL "krcore owner token v2"

static int kru_key_parse(const char *text, size_t len, struct kru_key *ret_key)
{
	struct base16_decode_ctx ctx;
	size_t bytes = sizeof(ret_key->bytes);

	if (len < 2 * KRU_KEY_BYTES_MIN || len > 2 * KRU_KEY_BYTES_MAX || len % 2)
		return -EINVAL;
	base16_decode_init(&ctx);
	if (!base16_decode_update(&ctx, &bytes, ret_key->bytes, len, text) ||
	    !base16_decode_final(&ctx) || bytes != len / 2)
		return -EINVAL;
	ret_key->len = bytes;
	return 0;
}

/* Bytes of a line without the blank space around it, at @ret_text; 0 if it says nothing. */
static size_t kru_keys_line(const char *text, size_t len, const char **ret_text)
{
	while (len && isspace((unsigned char)text[len - 1]))
		len--;
	while (len && isspace((unsigned char)*text)) {
		text++;
		len--;
	}
	*ret_text = text;
	return len && *text == '#' ? 0 : len;
}

static int kru_keys_add(struct kru_keys *keys, const char *text, size_t len)
{
	struct kru_key *key = &keys->key[keys->nr];
	unsigned int i;
	int err;

	if (keys->nr == KRU_KEYS_MAX)
		return -E2BIG;
	err = kru_key_parse(text, len, key);
	if (err)
		return err;
	for (i = 0; i < keys->nr; i++)
		if (keys->key[i].len == key->len &&
		    memeql_sec(keys->key[i].bytes, key->bytes, key->len))
			return -EINVAL;
	keys->nr++;
	return 0;
}

static int kru_keys_parse(const char *text, size_t len, struct kru_keys *keys)
{
	const char *end = text + len, *line, *next;
	size_t bytes;
	int err;

	for (; text < end; text = next) {
		next = memchr(text, '\n', (size_t)(end - text));
		next = next ? next + 1 : end;
		bytes = kru_keys_line(text, (size_t)(next - text), &line);
		err = bytes ? kru_keys_add(keys, line, bytes) : 0;
		if (err)
			return err;
	}
	return keys->nr ? 0 : -EINVAL;
}

/* Whether the file is one that may hold a secret. */
static int kru_keys_stat(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	return st.st_mode & (S_IRWXO | S_IWGRP) ? -EPERM : 0;
}

const char *kru_key_credential(const char *path)
{
	size_t len = sizeof(KRU_KEY_CREDENTIAL) - 1;

	return strncmp(path, KRU_KEY_CREDENTIAL, len) ? NULL : path + len;
}

/*
 * A credential that is not there is no missing file: a configuration that names one wants it, so
 * that must not be taken for a machine without a key.
 */
static int kru_keys_open(const char *path)
{
	const char *name = kru_key_credential(path), *folder = getenv("CREDENTIALS_DIRECTORY");
	char file[PATH_MAX];
	int fd;

	if (name) {
		if (!folder || snprintf(file, sizeof(file), "%s/%s", folder, name) >= PATH_MAX)
			return -ENXIO;
		path = file;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd >= 0)
		return fd;
	return name && errno == ENOENT ? -ENXIO : -errno;
}

int kru_keys_load(const char *path, struct kru_keys *ret_keys)
{
	struct kru_keys keys = { .nr = 0 };
	char text[KRU_KEY_FILE_BYTES];
	ssize_t len;
	int fd, err;

	fd = kru_keys_open(path);
	if (fd < 0)
		return fd;
	err = kru_keys_stat(fd);
	if (err)
		goto out;
	len = read(fd, text, sizeof(text));
	if (len < 0)
		err = -errno;
	else if ((size_t)len == sizeof(text))
		err = -EINVAL; /* the file may have more bytes that were not read */
	else
		err = kru_keys_parse(text, (size_t)len, &keys);
	if (!err)
		*ret_keys = keys;
	explicit_bzero(text, sizeof(text));
	kru_keys_wipe(&keys);
out:
	close(fd);
	return err;
}

const char *kru_keys_error(int err)
{
	switch (err) {
	case -EPERM:
		return "others than its owner and group may access the key";
	case -EINVAL:
		return "not one or more lines of 32 to 128 hexadecimal digits, each another key";
	case -E2BIG:
		return "more than 8 keys";
	case -ENXIO:
		return "no such credential was handed over (LoadCredential= of the unit)";
	default:
		return strerror(-err);
	}
}

void kru_keys_wipe(struct kru_keys *keys)
{
	explicit_bzero(keys, sizeof(*keys));
}

void kru_key_id(const struct kru_key *key, __u8 *ret_id)
{
	struct sha256_ctx ctx;

	sha256_init(&ctx);
	sha256_update(&ctx, key->len, key->bytes);
	sha256_digest(&ctx, KRP_KEY_ID_BYTES, ret_id);
	explicit_bzero(&ctx, sizeof(ctx));
}

const struct kru_key *kru_keys_find(const struct kru_keys *keys, const __u8 *id)
{
	__u8 have[KRP_KEY_ID_BYTES];
	unsigned int i;

	for (i = 0; i < keys->nr; i++) {
		kru_key_id(&keys->key[i], have);
		if (!memcmp(have, id, sizeof(have)))
			return &keys->key[i];
	}
	return NULL;
}

static void kru_auth_begin(struct hmac_sha256_ctx *ctx, const struct kru_key *key,
			   const char *label, const struct kru_handshake *shake)
{
	hmac_sha256_set_key(ctx, key->len, key->bytes);
	hmac_sha256_update(ctx, strlen(label), (const uint8_t *)label);
	hmac_sha256_update(ctx, sizeof(*shake->link), (const uint8_t *)shake->link);
	hmac_sha256_update(ctx, sizeof(*shake->hello), (const uint8_t *)shake->hello);
	hmac_sha256_update(ctx, sizeof(*shake->challenge), (const uint8_t *)shake->challenge);
}

void kru_auth_client(const struct kru_key *key, const struct kru_handshake *shake, __u8 *ret_mac)
{
	struct hmac_sha256_ctx ctx;

	kru_auth_begin(&ctx, key, KRP_LABEL_CLIENT, shake);
	hmac_sha256_digest(&ctx, KRP_MAC_BYTES, ret_mac);
	explicit_bzero(&ctx, sizeof(ctx));
}

void kru_auth_server(const struct kru_key *key, const struct kru_handshake *shake,
		     const struct krp_welcome *welcome, __u8 *ret_mac)
{
	struct krp_welcome covered = *welcome;
	struct hmac_sha256_ctx ctx;

	memset(covered.mac, 0, sizeof(covered.mac));
	kru_auth_begin(&ctx, key, KRP_LABEL_SERVER, shake);
	hmac_sha256_update(&ctx, sizeof(covered), (const uint8_t *)&covered);
	hmac_sha256_digest(&ctx, KRP_MAC_BYTES, ret_mac);
	explicit_bzero(&ctx, sizeof(ctx));
}

void kru_auth_token(const __u8 *secret, const __u8 *owner, const __u8 *gid, __u8 *ret_token)
{
	struct hmac_sha256_ctx ctx;

	hmac_sha256_set_key(&ctx, KRU_SECRET_BYTES, secret);
	hmac_sha256_update(&ctx, strlen(KRU_TOKEN_LABEL), (const uint8_t *)KRU_TOKEN_LABEL);
	hmac_sha256_update(&ctx, KRP_OWNER_BYTES, owner);
	hmac_sha256_update(&ctx, KRP_GID_BYTES, gid);
	hmac_sha256_digest(&ctx, KRP_TOKEN_BYTES, ret_token);
	explicit_bzero(&ctx, sizeof(ctx));
}

int kru_secret_equal(const __u8 *a, const __u8 *b, size_t bytes)
{
	return memeql_sec(a, b, bytes);
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
