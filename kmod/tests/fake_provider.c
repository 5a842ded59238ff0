// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: a NIC in memory, for tests of the pool.
 * Locking: see fake_provider.h.
 */
#include <linux/dma-mapping.h>
#include <linux/err.h>
#include <linux/io.h>
#include <linux/platform_device.h>
#include <linux/slab.h>

#include "pool/pool.h"
#include "fake_provider.h"

static struct krc_fake_initiator *krc_fake_ini(struct krc_hw_initiator *hw)
{
	return (struct krc_fake_initiator *)hw;
}

struct krc_fake *krc_fake_create(void)
{
	struct krc_fake *fake = kzalloc(sizeof(*fake), GFP_KERNEL);
	struct platform_device *dev;

	if (!fake)
		return NULL;
	dev = platform_device_register_simple("krcore_fake", PLATFORM_DEVID_AUTO, NULL, 0);
	if (IS_ERR(dev)) {
		kfree(fake);
		return NULL;
	}
	dma_coerce_mask_and_coherent(&dev->dev, DMA_BIT_MASK(64));
	fake->dev = &dev->dev;
	spin_lock_init(&fake->lock);
	return fake;
}

void krc_fake_destroy(struct krc_fake *fake)
{
	platform_device_unregister(to_platform_device(fake->dev));
	kfree(fake);
}

static struct krc_fake *krc_fake_of(struct krc_hw *hw)
{
	return (struct krc_fake *)hw;
}

static struct krc_fake *krc_fake_now; /* initiators don't know their NIC; tests run alone */

static void krc_fake_initiator_free(struct krc_fake_initiator *ini)
{
	kfree(ini->wrs);
	kfree(ini->wcs);
	kfree(ini->ends);
	kvfree(ini);
}

static struct krc_hw_initiator *krc_fake_initiator_create(struct krc_hw *hw, u32 port,
							  u16 gid_index, u32 depth, u32 ack_timeout,
							  u32 vector, void *initiator_owner)
{
	struct krc_fake *fake = krc_fake_of(hw);
	struct krc_fake_initiator *ini;

	if (vector >= KRC_FAKE_INITIATORS || fake->ini[vector])
		return ERR_PTR(-ENOSPC);
	ini = kvzalloc(sizeof(*ini), GFP_KERNEL);
	if (!ini)
		return ERR_PTR(-ENOMEM);
	ini->wrs = kcalloc(depth, sizeof(*ini->wrs), GFP_KERNEL);
	ini->wcs = kcalloc(depth + 1, sizeof(*ini->wcs), GFP_KERNEL);
	ini->ends = kcalloc(depth, sizeof(*ini->ends), GFP_KERNEL);
	if (!ini->wrs || !ini->wcs || !ini->ends) {
		krc_fake_initiator_free(ini);
		return ERR_PTR(-ENOMEM);
	}
	spin_lock_init(&ini->lock);
	ini->owner = initiator_owner;
	ini->depth = depth;
	krc_fake_now = fake;
	spin_lock_bh(&fake->lock);
	fake->ini[vector] = ini;
	spin_unlock_bh(&fake->lock);
	return (struct krc_hw_initiator *)ini;
}

static void krc_fake_initiator_destroy(struct krc_hw_initiator *hw)
{
	struct krc_fake_initiator *ini = krc_fake_ini(hw);
	u32 i;

	spin_lock_bh(&krc_fake_now->lock);
	for (i = 0; i < KRC_FAKE_INITIATORS; i++)
		if (krc_fake_now->ini[i] == ini)
			krc_fake_now->ini[i] = NULL;
	spin_unlock_bh(&krc_fake_now->lock);
	krc_fake_initiator_free(ini);
}

/* One more completion, that of a request, lock held. */
static void krc_fake_wc(struct krc_fake_initiator *ini, u64 cookie, enum krc_fault fault)
{
	ini->wcs[ini->made % ini->depth] = (struct krc_wc){ .cookie = cookie, .fault = fault };
	ini->ends[ini->made++ % ini->depth] = ini->done;
}

/* The oldest request ends, lock held. */
static void krc_fake_end(struct krc_fake_initiator *ini, enum krc_fault fault)
{
	const struct krc_hw_wr *wr = &ini->wrs[ini->done % ini->depth];

	if (fault == KRC_FAULT_NONE)
		ini->log[ini->log_nr++ % KRC_FAKE_LOG] = wr->remote_addr;
	ini->done++;
	if (wr->unsignaled && fault == KRC_FAULT_NONE && krc_fake_now->sparse)
		return;
	if (wr->unsignaled && fault == KRC_FAULT_FLUSHED && krc_fake_now->mean)
		return;
	krc_fake_wc(ini, wr->cookie, fault);
}

static int krc_fake_initiator_halt(struct krc_hw_initiator *hw)
{
	struct krc_fake_initiator *ini = krc_fake_ini(hw);
	u32 n;

	if (krc_fake_now->reset_error)
		return krc_fake_now->reset_error;
	spin_lock_bh(&ini->lock);
	for (n = krc_fake_now->late; n && !ini->failed && ini->done != ini->rung; n--)
		krc_fake_end(ini, KRC_FAULT_NONE);
	ini->failed = true;
	spin_unlock_bh(&ini->lock);
	return 0;
}

static int krc_fake_initiator_restart(struct krc_hw_initiator *hw)
{
	struct krc_fake_initiator *ini = krc_fake_ini(hw);

	spin_lock_bh(&ini->lock);
	ini->polled = 0;
	ini->made = 0;
	ini->freed = 0;
	ini->done = 0;
	ini->rung = 0;
	ini->posted = 0;
	ini->failed = false;
	WRITE_ONCE(ini->armed, false);
	ini->resets++;
	spin_unlock_bh(&ini->lock);
	return 0;
}

static int krc_fake_post(struct krc_hw_initiator *hw, const struct krc_hw_wr *wr)
{
	struct krc_fake_initiator *ini = krc_fake_ini(hw);
	u64 bytes = wr->length, at;
	int err = krc_fake_now->post_error;

	spin_lock_bh(&ini->lock);
	if (!err && ini->posted - ini->freed >= ini->depth)
		err = -ENOSPC;
	if (!err) {
		ini->wrs[ini->posted++ % ini->depth] = *wr;
		for (at = ini->done; at != ini->posted - 1; at++)
			bytes += ini->wrs[at % ini->depth].length;
		ini->post_max = max(ini->post_max, ini->posted - ini->done);
		ini->bytes_max = max(ini->bytes_max, bytes);
	}
	spin_unlock_bh(&ini->lock);
	return err;
}

static void krc_fake_ring(struct krc_hw_initiator *hw)
{
	struct krc_fake_initiator *ini = krc_fake_ini(hw);

	spin_lock_bh(&ini->lock);
	if (ini->rung != ini->posted)
		ini->wrs[(ini->posted - 1) % ini->depth].unsignaled = false;
	ini->rung = ini->posted;
	while (ini->failed && ini->done != ini->rung)
		krc_fake_end(ini, KRC_FAULT_FLUSHED);
	spin_unlock_bh(&ini->lock);
}

static int krc_fake_poll(struct krc_hw_initiator *hw, struct krc_wc *wc, int max)
{
	struct krc_fake_initiator *ini = krc_fake_ini(hw);
	int n = 0;

	spin_lock_bh(&ini->lock);
	while (n < max && ini->polled != ini->made) {
		ini->freed = ini->ends[ini->polled % ini->depth];
		wc[n++] = ini->wcs[ini->polled++ % ini->depth];
	}
	spin_unlock_bh(&ini->lock);
	return n;
}

static void krc_fake_arm(struct krc_hw_initiator *hw)
{
	WRITE_ONCE(krc_fake_ini(hw)->armed, true);
}

static int krc_fake_address(struct krc_hw *hw, u32 port, u16 gid_index, const union ib_gid *gid,
			    const struct krp_value *value, struct krc_hw_address *ret_address)
{
	memset(ret_address, 0, sizeof(*ret_address));
	memcpy(ret_address->opaque, gid->raw, sizeof(gid->raw));
	memcpy(ret_address->opaque + sizeof(gid->raw), &value->dct.dctn, sizeof(value->dct.dctn));
	ret_address->opaque[63] = krc_fake_of(hw)->router;
	return 0;
}

static bool krc_fake_same_target(const struct krc_hw_address *a, const struct krc_hw_address *b)
{
	return !memcmp(a->opaque, b->opaque, sizeof(a->opaque) - 1); /* all but the router */
}

static int krc_fake_key_dma(struct krc_hw *hw, dma_addr_t dma, size_t bytes, u32 access,
			    struct krc_hw_key *ret_key)
{
	*ret_key = (struct krc_hw_key){ .handle = 1, .lkey = 1, .rkey = 1 };
	return 0;
}

static bool krc_fake_key_destroy(struct krc_hw *hw, const struct krc_hw_key *key)
{
	return true;
}

static struct device *krc_fake_dma_device(struct krc_hw *hw)
{
	return krc_fake_of(hw)->dev;
}

const struct krc_provider_ops krc_fake_ops = {
	.name = "fake",
	.initiator_create = krc_fake_initiator_create,
	.initiator_destroy = krc_fake_initiator_destroy,
	.initiator_halt = krc_fake_initiator_halt,
	.initiator_restart = krc_fake_initiator_restart,
	.address = krc_fake_address,
	.same_target = krc_fake_same_target,
	.post = krc_fake_post,
	.ring = krc_fake_ring,
	.poll = krc_fake_poll,
	.arm = krc_fake_arm,
	.key_dma = krc_fake_key_dma,
	.key_destroy = krc_fake_key_destroy,
	.dma_device = krc_fake_dma_device,
};

/* Lock an initiator, which stays until krc_fake_unlock(). Return: it, or NULL: nothing is locked. */
static struct krc_fake_initiator *krc_fake_lock(struct krc_fake *fake, u32 i)
{
	struct krc_fake_initiator *ini;

	spin_lock_bh(&fake->lock);
	ini = fake->ini[i];
	if (ini)
		spin_lock(&ini->lock);
	else
		spin_unlock_bh(&fake->lock);
	return ini;
}

/* Unlock it, and make the upcall that is due if it has something to tell. */
static void krc_fake_unlock(struct krc_fake *fake, struct krc_fake_initiator *ini, bool tell)
{
	spin_unlock(&ini->lock);
	if (tell && !fake->mute && xchg(&ini->armed, false))
		krc_pool_on_completion(ini->owner);
	spin_unlock_bh(&fake->lock);
}

u32 krc_fake_pending(struct krc_fake *fake, u32 i)
{
	struct krc_fake_initiator *ini = krc_fake_lock(fake, i);
	u32 n;

	if (!ini)
		return 0;
	n = ini->rung - ini->done;
	krc_fake_unlock(fake, ini, false);
	return n;
}

static void krc_fake_bring(const struct krc_fake *fake, const struct krc_hw_wr *wr)
{
	void *to = phys_to_virt(wr->local_addr);

	if (fake->far)
		memcpy(to, fake->far + (wr->remote_addr - KRC_FAKE_FAR), wr->length);
	else
		memset(to, (u8)wr->remote_addr, wr->length);
}

u32 krc_fake_complete(struct krc_fake *fake, u32 i, u32 count)
{
	struct krc_fake_initiator *ini = krc_fake_lock(fake, i);
	u32 n = 0;

	if (!ini)
		return 0;
	while (!ini->failed && n < count && ini->done != ini->rung) {
		const struct krc_hw_wr *wr = &ini->wrs[ini->done % ini->depth];

		if (wr->lkey) /* krc_pool_read(): the device's address is the memory's */
			krc_fake_bring(fake, wr);
		krc_fake_end(ini, KRC_FAULT_NONE);
		n++;
	}
	krc_fake_unlock(fake, ini, n);
	return n;
}

void krc_fake_fail(struct krc_fake *fake, u32 i, enum krc_fault fault)
{
	struct krc_fake_initiator *ini = krc_fake_lock(fake, i);

	if (!ini)
		return;
	if (!ini->failed && ini->done != ini->rung) {
		krc_fake_end(ini, fault);
		ini->failed = true;
		while (ini->done != ini->rung)
			krc_fake_end(ini, KRC_FAULT_FLUSHED);
	}
	krc_fake_unlock(fake, ini, true);
}

void krc_fake_fatal(struct krc_fake *fake, u32 i)
{
	struct krc_fake_initiator *ini = krc_fake_lock(fake, i);

	if (!ini)
		return;
	krc_pool_on_fatal(ini->owner);
	krc_fake_unlock(fake, ini, false);
}

void krc_fake_stray(struct krc_fake *fake, u32 i)
{
	struct krc_fake_initiator *ini = krc_fake_lock(fake, i);

	if (!ini)
		return;
	krc_fake_wc(ini, 0x57a4, KRC_FAULT_NONE);
	krc_fake_unlock(fake, ini, true);
}
