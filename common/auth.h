/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The cluster keys and the proofs of the control protocol (proto/krp_msg.h).
 *
 * HMAC-SHA256 from nettle. No state, no locks: any thread.
 */
#ifndef KRU_AUTH_H
#define KRU_AUTH_H

#include "proto/krp_msg.h"

#define KRU_KEY_BYTES_MIN 16
#define KRU_KEY_BYTES_MAX 64
#define KRU_KEYS_MAX 8 /* of a file */
#define KRU_KEY_CREDENTIAL "credential:" /* before the name of one, in place of a path */
#define KRU_SECRET_BYTES 32

/**
 * struct kru_key - A cluster key.
 * @len: bytes in use, KRU_KEY_BYTES_MIN to KRU_KEY_BYTES_MAX.
 * @bytes: the key.
 */
struct kru_key {
	size_t len;
	__u8 bytes[KRU_KEY_BYTES_MAX];
};

/**
 * struct kru_keys - The keys of a file: the first is used, all are accepted.
 * @nr: how many, at most KRU_KEYS_MAX; 0: there is no authentication.
 * @key: the keys.
 */
struct kru_keys {
	unsigned int nr;
	struct kru_key key[KRU_KEYS_MAX];
};

/**
 * kru_key_credential() - Whether a key file is a credential of the service manager.
 * @path: as krcore.conf(5) has it: a path, or "credential:NAME".
 *
 * systemd hands a unit the credentials of its LoadCredential= and LoadCredentialEncrypted=
 * in a folder that nobody else can read, $CREDENTIALS_DIRECTORY.
 *
 * Return: NAME, or NULL if it is a path.
 */
const char *kru_key_credential(const char *path);

/**
 * kru_keys_load() - Read a key file.
 * @path: file with a line of 32 to 128 hexadecimal digits for each key, as
 *	`openssl rand -hex 32` prints; blank space around it is skipped, and so are
 *	blank lines and those that begin with #.
 * @ret_keys: the keys, at least one; untouched on failure.
 *
 * Context: any thread; reads a file.
 * Return:
 * * 0 - success.
 * * %-ENOENT, %-EACCES or what open() says - the file cannot be read.
 * * %-EPERM - others than owner and group may read or write the file.
 * * %-EINVAL - no key, a line that is not hexadecimal, too short or too long, or the
 *   same key twice.
 * * %-E2BIG - more than KRU_KEYS_MAX keys.
 * * %-ENXIO - it is a credential, and there is none of that name.
 */
int kru_keys_load(const char *path, struct kru_keys *ret_keys);

/**
 * kru_keys_error() - What a failure of kru_keys_load() means, human-readable.
 * @err: its return value, not 0.
 *
 * Return: constant text, to be printed behind the name of the file.
 */
const char *kru_keys_error(int err);

/** kru_keys_wipe() - Wipe keys in a way that the compiler does not drop. @keys: keys. */
void kru_keys_wipe(struct kru_keys *keys);

/**
 * kru_keys_find() - The key of an id.
 * @keys: keys.
 * @id: KRP_KEY_ID_BYTES.
 *
 * Return: the key, or NULL if there is none.
 */
const struct kru_key *kru_keys_find(const struct kru_keys *keys, const __u8 *id);

/**
 * kru_key_id() - Id of a key, which does not reveal it.
 * @key: key.
 * @ret_id: KRP_KEY_ID_BYTES.
 */
void kru_key_id(const struct kru_key *key, __u8 *ret_id);

/**
 * struct kru_handshake - What both proofs cover.
 * @link: the connection.
 * @hello: HELLO as sent.
 * @challenge: CHALLENGE as sent.
 */
struct kru_handshake {
	const struct krp_link *link;
	const struct krp_hello *hello;
	const struct krp_challenge *challenge;
};

/**
 * kru_auth_client() - The client's proof.
 * @key: cluster key.
 * @shake: what it covers.
 * @ret_mac: KRP_MAC_BYTES, for AUTH.
 */
void kru_auth_client(const struct kru_key *key, const struct kru_handshake *shake, __u8 *ret_mac);

/**
 * kru_auth_server() - The server's proof.
 * @key: cluster key.
 * @shake: what it covers, with
 * @welcome: WELCOME; its mac counts as zero.
 * @ret_mac: KRP_MAC_BYTES, for WELCOME.
 */
void kru_auth_server(const struct kru_key *key, const struct kru_handshake *shake,
		     const struct krp_welcome *welcome, __u8 *ret_mac);

/**
 * kru_auth_token() - Token that proves that an owner has connected from a GID.
 * @secret: KRU_SECRET_BYTES of the server's incarnation.
 * @owner: KRP_OWNER_BYTES.
 * @gid: KRP_GID_BYTES.
 * @ret_token: KRP_TOKEN_BYTES, for WELCOME.
 */
void kru_auth_token(const __u8 *secret, const __u8 *owner, const __u8 *gid, __u8 *ret_token);

/**
 * kru_secret_equal() - Compare proofs or tokens in constant time.
 * @a: bytes.
 * @b: bytes.
 * @bytes: how many.
 *
 * Return: 1 if equal, else 0.
 */
int kru_secret_equal(const __u8 *a, const __u8 *b, size_t bytes);

/**
 * kru_random() - Random bytes from the kernel.
 * @p: where to.
 * @bytes: how many, at most 256.
 *
 * Return: 0, or the negative errno of getrandom().
 */
int kru_random(void *p, size_t bytes);

#endif /* KRU_AUTH_H */
