// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: proofs that both sides have the cluster key: HMAC-SHA256 over the label and the
 * first two messages, see krp_msg.h.
 * Locking: none; a keyed transform may be used by many at once.
 */
#include <crypto/hash.h>
#include <linux/err.h>

#include "krc_meta_priv.h"

/* Return: 0 (without a key @ret_hmac is NULL), or an errno of the crypto layer. */
int krc_meta_auth_key(const struct krc_meta_conf *conf, struct crypto_shash **ret_hmac)
{
	struct crypto_shash *hmac;
	int err;

	*ret_hmac = NULL;
	if (!conf->key_bytes)
		return 0;
	hmac = crypto_alloc_shash("hmac(sha256)", 0, 0);
	if (IS_ERR(hmac))
		return PTR_ERR(hmac);
	err = crypto_shash_setkey(hmac, conf->key, min_t(u32, conf->key_bytes, sizeof(conf->key)));
	if (!err && crypto_shash_digestsize(hmac) != KRP_MAC_BYTES)
		err = -EINVAL;
	if (err) {
		crypto_free_shash(hmac);
		return err;
	}
	*ret_hmac = hmac;
	return 0;
}

/* Wipes the key. */
void krc_meta_auth_free(struct crypto_shash *hmac)
{
	if (hmac)
		crypto_free_shash(hmac);
}

/*
 * HMAC(key, label || HELLO || CHALLENGE); @conn may be NULL: of the label alone.
 * Return: 0, or an errno of the hash.
 */
static int krc_meta_auth_digest(struct crypto_shash *hmac, const char *label,
				const struct krc_meta_conn *conn, u8 *ret_mac)
{
	SHASH_DESC_ON_STACK(desc, hmac);
	int err;

	desc->tfm = hmac;
	err = crypto_shash_init(desc)
		      ?: crypto_shash_update(desc, (const u8 *)label, strlen(label));
	if (!err && conn)
		err = crypto_shash_update(desc, (const u8 *)&conn->hello, sizeof(conn->hello))
			      ?: crypto_shash_update(desc, (const u8 *)&conn->challenge,
						     sizeof(conn->challenge));
	if (!err)
		err = crypto_shash_final(desc, ret_mac);
	shash_desc_zero(desc);
	return err;
}

/* A fingerprint of the key, zero if there is none. Return: 0, or a negative errno. */
int krc_meta_auth_print(const struct krc_meta_conf *conf, u8 *ret_mac)
{
	struct crypto_shash *hmac;
	int err;

	memset(ret_mac, 0, KRP_MAC_BYTES);
	err = krc_meta_auth_key(conf, &hmac);
	if (err || !hmac)
		return err;
	err = krc_meta_auth_digest(hmac, "fingerprint", NULL, ret_mac);
	krc_meta_auth_free(hmac);
	return err;
}

/* The MAC of a handshake; without a key it is zero. Return: 0, or an errno of the hash. */
int krc_meta_auth_mac(const struct krc_meta_session *s, const char *label,
		      const struct krc_meta_conn *conn, u8 *ret_mac)
{
	memset(ret_mac, 0, KRP_MAC_BYTES);
	return s->hmac ? krc_meta_auth_digest(s->hmac, label, conn, ret_mac) : 0;
}
