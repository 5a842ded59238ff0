// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the cluster keys, and the proofs that both sides have one of them: HMAC-SHA256
 * over the label, the connection and the handshake, see krp_msg.h.
 * Locking: none; a key ring is constant and counts its users, and a keyed transform may be
 * used by several tasks concurrently.
 */
#include <crypto/algapi.h>
#include <crypto/hash.h>
#include <crypto/sha2.h>
#include <linux/err.h>
#include <linux/slab.h>

#include "krp_lane.h"
#include "meta/meta_priv.h"

static int krc_meta_key_id(const struct krc_meta_key *key, u8 *ret_id)
{
	struct crypto_shash *sha = crypto_alloc_shash("sha256", 0, 0);
	u8 digest[SHA256_DIGEST_SIZE];
	int err;

	if (IS_ERR(sha))
		return PTR_ERR(sha);
	err = crypto_shash_tfm_digest(sha, key->bytes, min_t(u32, key->len, sizeof(key->bytes)),
				      digest);
	crypto_free_shash(sha);
	if (!err)
		memcpy(ret_id, digest, KRP_KEY_ID_BYTES);
	memzero_explicit(digest, sizeof(digest));
	return err;
}

static int krc_meta_ring_add(struct krc_meta_ring *ring, const struct krc_meta_key *key)
{
	struct crypto_shash *hmac = crypto_alloc_shash("hmac(sha256)", 0, 0);
	int err;

	if (IS_ERR(hmac))
		return PTR_ERR(hmac);
	err = crypto_shash_setkey(hmac, key->bytes, min_t(u32, key->len, sizeof(key->bytes)))
		      ?: krc_meta_key_id(key, ring->id[ring->nr]);
	if (!err && crypto_shash_digestsize(hmac) != KRP_MAC_BYTES)
		err = -EINVAL;
	if (err) {
		crypto_free_shash(hmac);
		return err;
	}
	ring->hmac[ring->nr++] = hmac;
	return 0;
}

int krc_meta_ring_new(const struct krc_meta_conf *conf, struct krc_meta_ring **ret_ring)
{
	struct krc_meta_ring *ring;
	u32 i;
	int err = 0;

	*ret_ring = NULL;
	if (!conf->keys_nr)
		return 0;
	ring = kzalloc(sizeof(*ring), GFP_KERNEL);
	if (!ring)
		return -ENOMEM;
	kref_init(&ring->ref);
	for (i = 0; i < min_t(u32, conf->keys_nr, KRC_META_KEYS_MAX) && !err; i++)
		err = krc_meta_ring_add(ring, &conf->keys[i]);
	if (err)
		krc_meta_ring_put(ring);
	else
		*ret_ring = ring;
	return err;
}

struct krc_meta_ring *krc_meta_ring_get(struct krc_meta_ring *ring)
{
	if (ring)
		kref_get(&ring->ref);
	return ring;
}

/* Freeing a transform wipes its key. */
static void krc_meta_ring_free(struct kref *ref)
{
	struct krc_meta_ring *ring = container_of(ref, struct krc_meta_ring, ref);
	u32 i;

	for (i = 0; i < ring->nr; i++)
		crypto_free_shash(ring->hmac[i]);
	kfree(ring);
}

void krc_meta_ring_put(struct krc_meta_ring *ring)
{
	if (ring)
		kref_put(&ring->ref, krc_meta_ring_free);
}

struct crypto_shash *krc_meta_ring_find(const struct krc_meta_ring *ring, const u8 *id)
{
	u32 i;

	for (i = 0; ring && i < ring->nr; i++)
		if (!memcmp(ring->id[i], id, KRP_KEY_ID_BYTES))
			return ring->hmac[i];
	return NULL;
}

static int krc_meta_auth_welcome(struct shash_desc *desc, const struct krp_welcome *welcome)
{
	struct krp_welcome covered = *welcome;

	memset(covered.mac, 0, sizeof(covered.mac));
	return crypto_shash_update(desc, (const u8 *)&covered, sizeof(covered));
}

int krc_meta_auth_mac(struct crypto_shash *hmac, const struct krp_session *krp,
		      const struct krp_welcome *welcome, u8 *ret_mac)
{
	const char *label = welcome ? KRP_LABEL_SERVER : KRP_LABEL_CLIENT;
	const struct krp_session_attach *attach = &krp->attach;
	SHASH_DESC_ON_STACK(desc, hmac);
	int err;

	desc->tfm = hmac;
	err = crypto_shash_init(desc)
		      ?: crypto_shash_update(desc, (const u8 *)label, strlen(label))
		      ?: crypto_shash_update(desc, (const u8 *)&attach->link, sizeof(attach->link))
		      ?: crypto_shash_update(desc, (const u8 *)&attach->hello, sizeof(attach->hello))
		      ?: crypto_shash_update(desc, (const u8 *)&attach->challenge,
					     sizeof(attach->challenge));
	if (!err && welcome)
		err = krc_meta_auth_welcome(desc, welcome);
	if (!err)
		err = crypto_shash_final(desc, ret_mac);
	shash_desc_zero(desc);
	return err;
}

/* ---- packets of lanes */

/* Return: the keys, counted; NULL: there are none. */
static struct krc_meta_ring *krc_meta_keys(struct krc_meta *meta)
{
	struct krc_meta_ring *ring;

	spin_lock_bh(&meta->lock);
	ring = krc_meta_ring_get(meta->ring);
	spin_unlock_bh(&meta->lock);
	return ring;
}

/* The mac of a packet, whose key_id is set, by the key of that id. */
static int krc_meta_lane_mac(const struct krc_meta_ring *ring, const struct krp_lane_packet *packet,
			     u8 *ret_mac)
{
	struct crypto_shash *hmac = krc_meta_ring_find(ring, packet->key_id);
	struct krp_lane_packet covered = *packet;
	int err;

	if (!hmac)
		return -ENOKEY;
	memset(covered.mac, 0, sizeof(covered.mac));
	{
		SHASH_DESC_ON_STACK(desc, hmac);

		desc->tfm = hmac;
		err = crypto_shash_init(desc)
			      ?: crypto_shash_update(desc, (const u8 *)KRP_LABEL_LANE,
						     strlen(KRP_LABEL_LANE))
			      ?: crypto_shash_update(desc, (const u8 *)&covered, sizeof(covered))
			      ?: crypto_shash_final(desc, ret_mac);
		shash_desc_zero(desc);
	}
	return err;
}

bool krc_meta_lane_keys(struct krc_meta *meta)
{
	bool keys;

	spin_lock_bh(&meta->lock);
	keys = meta->ring;
	spin_unlock_bh(&meta->lock);
	return keys;
}

int krc_meta_lane_sign(struct krc_meta *meta, const u8 *key_id, struct krp_lane_packet *packet)
{
	struct krc_meta_ring *ring = krc_meta_keys(meta);
	int err = -ENOKEY;

	if (ring) {
		memcpy(packet->key_id, key_id ?: ring->id[0], sizeof(packet->key_id));
		err = krc_meta_lane_mac(ring, packet, packet->mac);
	}
	krc_meta_ring_put(ring);
	return err;
}

int krc_meta_lane_verify(struct krc_meta *meta, const struct krp_lane_packet *packet)
{
	struct krc_meta_ring *ring = krc_meta_keys(meta);
	u8 mac[KRP_MAC_BYTES];
	int err;

	err = krc_meta_lane_mac(ring, packet, mac);
	if (!err && crypto_memneq(mac, packet->mac, sizeof(mac)))
		err = -EKEYREJECTED;
	memzero_explicit(mac, sizeof(mac));
	krc_meta_ring_put(ring);
	return err;
}
