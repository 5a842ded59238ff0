// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: proofs that both sides have the cluster key: HMAC-SHA256 over the label and the
 * first two messages, see krp_msg.h.
 * Locking: none; a keyed transform may be used by many at once.
 */
#include <crypto/hash.h>
#include <linux/err.h>

#include "krc_meta_priv.h"

int krc_meta_auth_init(struct krc_meta *meta, const u8 *key, u32 key_bytes)
{
	struct crypto_shash *hmac;
	int err;

	if (!key_bytes)
		return 0;
	hmac = crypto_alloc_shash("hmac(sha256)", 0, 0);
	if (IS_ERR(hmac))
		return PTR_ERR(hmac);
	err = crypto_shash_setkey(hmac, key, key_bytes);
	if (err || crypto_shash_digestsize(hmac) != KRP_MAC_BYTES) {
		crypto_free_shash(hmac);
		return err ? err : -EINVAL;
	}
	meta->hmac = hmac;
	return 0;
}

void krc_meta_auth_fini(struct krc_meta *meta)
{
	if (meta->hmac)
		crypto_free_shash(meta->hmac); /* wipes the key */
	meta->hmac = NULL;
}

/* The MAC of a handshake; without a key it is zero. Return: 0, or an errno of the hash. */
int krc_meta_auth_mac(struct krc_meta *meta, const char *label, const struct krc_meta_conn *conn,
		      u8 *ret_mac)
{
	int err;

	if (!meta->hmac) {
		memset(ret_mac, 0, KRP_MAC_BYTES);
		return 0;
	}
	{
		SHASH_DESC_ON_STACK(desc, meta->hmac);

		desc->tfm = meta->hmac;
		err = crypto_shash_init(desc) ?:
		      crypto_shash_update(desc, (const u8 *)label, strlen(label)) ?:
		      crypto_shash_update(desc, (const u8 *)&conn->hello, sizeof(conn->hello)) ?:
		      crypto_shash_finup(desc, (const u8 *)&conn->challenge,
					 sizeof(conn->challenge), ret_mac);
		shash_desc_zero(desc);
	}
	return err;
}
