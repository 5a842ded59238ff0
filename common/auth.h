/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The cluster key and the proofs of the control protocol (proto/krp_msg.h).
 *
 * HMAC-SHA256 from nettle. No state, no locks: any thread.
 */
#ifndef KRU_AUTH_H
#define KRU_AUTH_H

#include "proto/krp_msg.h"

#define KRU_KEY_BYTES_MIN 16
#define KRU_KEY_BYTES_MAX 64

/**
 * struct kru_key - The cluster key.
 * @len: bytes in use, KRU_KEY_BYTES_MIN to KRU_KEY_BYTES_MAX.
 * @bytes: the key.
 */
struct kru_key {
	size_t len;
	__u8 bytes[KRU_KEY_BYTES_MAX];
};

/**
 * kru_key_load() - Read a key file.
 * @path: file with one line of 32 to 128 hexadecimal digits, as
 *	`openssl rand -hex 32` prints; blank space around it is skipped.
 * @ret_key: the key; untouched on failure.
 *
 * Context: any thread; reads a file.
 * Return:
 * * 0 - success.
 * * %-ENOENT, %-EACCES or what open() says - the file cannot be read.
 * * %-EPERM - others than owner and group may read or write the file.
 * * %-EINVAL - not hexadecimal, too short or too long.
 */
int kru_key_load(const char *path, struct kru_key *ret_key);

/**
 * kru_key_wipe() - Forget a key, so that the compiler keeps the wiping.
 * @key: key.
 */
void kru_key_wipe(struct kru_key *key);

/**
 * kru_auth_mac() - Proof over the handshake.
 * @key: cluster key.
 * @label: KRP_LABEL_CLIENT or KRP_LABEL_SERVER.
 * @hello: the HELLO as sent.
 * @challenge: the CHALLENGE as sent.
 * @ret_mac: KRP_MAC_BYTES of proof.
 */
void kru_auth_mac(const struct kru_key *key, const char *label, const struct krp_hello *hello,
		  const struct krp_challenge *challenge, __u8 *ret_mac);

/**
 * kru_mac_equal() - Compare two proofs in constant time.
 * @a: KRP_MAC_BYTES.
 * @b: KRP_MAC_BYTES.
 *
 * Return: 1 if equal, else 0.
 */
int kru_mac_equal(const __u8 *a, const __u8 *b);

/**
 * kru_random() - Random bytes from the kernel.
 * @p: where to.
 * @bytes: how many, at most 256.
 *
 * Return: 0, or the negative errno of getrandom().
 */
int kru_random(void *p, size_t bytes);

#endif /* KRU_AUTH_H */
