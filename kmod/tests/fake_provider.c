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
#include <rdma/ib_umem.h>

#include "pool/pool.h"
#include "fake_provider.h"
#include "krp_ioctl.h"

#define KRC_FAKE_DCTN_AT sizeof(union ib_gid) /* of an address: where the target's number is */

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

/* ---- keys and the memory behind them */

#define KRC_FAKE_LKEY 1 /* of key_dma: the device's address is the memory's */
#define KRC_FAKE_PAGES_LKEY 2 /* of the first key_pages */
#define KRC_FAKE_KEYS 16

/* What key_pages was told, by lkey - KRC_FAKE_PAGES_LKEY; keys of all NICs. */
static struct {
	dma_addr_t *pages;
	u64 iova;
	u64 bytes;
} krc_fake_keys[KRC_FAKE_KEYS];

/* The memory under a key, or NULL: not all of it is. It is in one page, as packets are. */
static void *krc_fake_memory(u32 lkey, u64 addr, u32 bytes)
{
	u32 at = lkey - KRC_FAKE_PAGES_LKEY;
	u64 off;

	if (lkey == KRC_FAKE_LKEY)
		return phys_to_virt(addr);
	if (at >= KRC_FAKE_KEYS || !krc_fake_keys[at].pages)
		return NULL;
	off = addr - krc_fake_keys[at].iova;
	if (off >= krc_fake_keys[at].bytes || bytes > krc_fake_keys[at].bytes - off ||
	    offset_in_page(off) + bytes > PAGE_SIZE)
		return NULL;
	return phys_to_virt(krc_fake_keys[at].pages[off >> PAGE_SHIFT]) + offset_in_page(off);
}

static int krc_fake_key_dma(struct krc_hw *hw, dma_addr_t dma, size_t bytes, u32 access,
			    struct krc_hw_key *ret_key)
{
	*ret_key = (struct krc_hw_key){ .handle = 1, .lkey = KRC_FAKE_LKEY, .rkey = 1 };
	return 0;
}

static int krc_fake_key_pages(struct krc_hw *hw, const dma_addr_t *pages, u32 nr, u64 iova,
			      u32 access, struct krc_hw_key *ret_key)
{
	u32 at = 0, key;

	while (at < KRC_FAKE_KEYS && krc_fake_keys[at].pages)
		at++;
	if (at == KRC_FAKE_KEYS)
		return -ENOSPC;
	krc_fake_keys[at].pages = kmemdup(pages, nr * sizeof(*pages), GFP_KERNEL);
	if (!krc_fake_keys[at].pages)
		return -ENOMEM;
	krc_fake_keys[at].iova = iova;
	krc_fake_keys[at].bytes = (u64)nr * PAGE_SIZE;
	key = at + KRC_FAKE_PAGES_LKEY;
	*ret_key = (struct krc_hw_key){ .handle = key, .lkey = key, .rkey = key };
	return 0;
}

/* As key_pages: under the key, the pages follow one another from @iova, which is page-aligned. */
static int krc_fake_key_umem(struct krc_hw *hw, struct ib_umem *umem, u64 iova, u32 access,
			     struct krc_hw_key *ret_key)
{
	u32 nr = umem->length >> PAGE_SHIFT, at = 0;
	dma_addr_t *pages = kcalloc(nr, sizeof(*pages), GFP_KERNEL);
	struct sg_page_iter it;
	int err;

	if (!pages)
		return -ENOMEM;
	for_each_sgtable_page(&umem->sgt_append.sgt, &it, 0)
		if (at < nr)
			pages[at++] = page_to_phys(sg_page_iter_page(&it));
	err = krc_fake_key_pages(hw, pages, nr, iova, access, ret_key);
	kfree(pages);
	return err;
}

static bool krc_fake_key_destroy(struct krc_hw *hw, const struct krc_hw_key *key)
{
	if (key->handle >= KRC_FAKE_PAGES_LKEY) {
		kfree(krc_fake_keys[key->handle - KRC_FAKE_PAGES_LKEY].pages);
		krc_fake_keys[key->handle - KRC_FAKE_PAGES_LKEY].pages = NULL;
	}
	return true;
}

/* ---- targets */

/**
 * struct krc_fake_buffer - A receive buffer.
 * @cookie: as posted, as are those that follow.
 * @local_addr: address.
 * @lkey: key.
 * @bytes: its length.
 */
struct krc_fake_buffer {
	u64 cookie;
	u64 local_addr;
	u32 lkey;
	u32 bytes;
};

/**
 * struct krc_fake_target - A target.
 * @list: in krc_fake_targets.
 * @fake: its NIC.
 * @dctn: number, of all NICs.
 * @receive: what it was made with.
 * @buffers: what is posted, by number % depth.
 * @wcs: completions, by number % depth.
 * @posted: buffers appended.
 * @rung: buffers the hardware has seen.
 * @filled: completions made, one of each buffer in its turn.
 * @polled: completions taken.
 * @armed: an upcall is wanted.
 */
struct krc_fake_target {
	struct list_head list;
	struct krc_fake *fake;
	u32 dctn;
	struct krc_hw_receive receive;
	struct krc_fake_buffer *buffers;
	struct krc_recv_wc *wcs;
	u64 posted;
	u64 rung;
	u64 filled;
	u64 polled;
	bool armed;
};

static LIST_HEAD(krc_fake_targets);
static DEFINE_SPINLOCK(krc_fake_targets_lock); /* innermost; protects targets, too */
static u32 krc_fake_dctn;

static struct krc_fake_target *krc_fake_target_of(struct krc_hw_target *target)
{
	return (struct krc_fake_target *)target;
}

static void krc_fake_target_free(struct krc_fake_target *t)
{
	kvfree(t->buffers);
	kvfree(t->wcs);
	kfree(t);
}

static struct krc_hw_target *krc_fake_target_create(struct krc_hw *hw, u32 port, u16 gid_index,
						    u64 dc_key,
						    const struct krc_hw_receive *receive,
						    struct krp_value *value)
{
	struct krc_fake_target *t = kzalloc(sizeof(*t), GFP_KERNEL);

	if (!t)
		return ERR_PTR(-ENOMEM);
	t->fake = krc_fake_of(hw);
	if (receive)
		t->receive = *receive;
	t->buffers = kvcalloc(t->receive.depth + 1, sizeof(*t->buffers), GFP_KERNEL);
	t->wcs = kvcalloc(t->receive.depth + 1, sizeof(*t->wcs), GFP_KERNEL);
	if (!t->buffers || !t->wcs) {
		krc_fake_target_free(t);
		return ERR_PTR(-ENOMEM);
	}
	spin_lock_bh(&krc_fake_targets_lock);
	t->dctn = ++krc_fake_dctn & 0xffffff;
	list_add(&t->list, &krc_fake_targets);
	spin_unlock_bh(&krc_fake_targets_lock);
	value->kind = KRP_KIND_DCT;
	value->len = 0;
	value->dct.dctn = cpu_to_le32(t->dctn);
	value->dct.dc_key = cpu_to_le64(dc_key);
	value->dct.mtu = 5;
	value->dct.port = port;
	value->dct.max_rd_atomic = 16;
	return (struct krc_hw_target *)t;
}

static void krc_fake_target_destroy(struct krc_hw_target *target)
{
	struct krc_fake_target *t = krc_fake_target_of(target);

	spin_lock_bh(&krc_fake_targets_lock);
	list_del(&t->list);
	spin_unlock_bh(&krc_fake_targets_lock);
	krc_fake_target_free(t);
}

static int krc_fake_recv_post(struct krc_hw_target *target, u64 cookie, u64 local_addr, u32 lkey,
			      u32 bytes)
{
	struct krc_fake_target *t = krc_fake_target_of(target);
	int err = 0;

	if (!t->receive.depth || !bytes)
		return -EINVAL;
	spin_lock_bh(&krc_fake_targets_lock);
	if (t->posted - t->polled == t->receive.depth)
		err = -ENOSPC;
	else
		t->buffers[t->posted++ % t->receive.depth] =
			(struct krc_fake_buffer){ cookie, local_addr, lkey, bytes };
	spin_unlock_bh(&krc_fake_targets_lock);
	return err;
}

static void krc_fake_recv_ring(struct krc_hw_target *target)
{
	struct krc_fake_target *t = krc_fake_target_of(target);

	spin_lock_bh(&krc_fake_targets_lock);
	t->rung = t->posted;
	spin_unlock_bh(&krc_fake_targets_lock);
}

static int krc_fake_recv_poll(struct krc_hw_target *target, struct krc_recv_wc *wc, int max)
{
	struct krc_fake_target *t = krc_fake_target_of(target);
	int n = 0;

	spin_lock_bh(&krc_fake_targets_lock);
	while (n < max && t->polled != t->filled)
		wc[n++] = t->wcs[t->polled++ % t->receive.depth];
	spin_unlock_bh(&krc_fake_targets_lock);
	return n;
}

static void krc_fake_recv_arm(struct krc_hw_target *target)
{
	WRITE_ONCE(krc_fake_target_of(target)->armed, true);
}

/* Copy a message into the next buffer. Return: what its sender is told. */
static enum krc_fault krc_fake_fill(struct krc_fake_target *t, const void *from, u32 bytes)
{
	const struct krc_fake_buffer *b = &t->buffers[t->filled % (t->receive.depth ?: 1)];
	struct krc_recv_wc *wc = &t->wcs[t->filled % (t->receive.depth ?: 1)];
	void *to;

	if (t->filled == t->rung)
		return KRC_FAULT_BUSY;
	to = krc_fake_memory(b->lkey, b->local_addr, b->bytes);
	*wc = (struct krc_recv_wc){ .cookie = b->cookie, .bytes = bytes };
	t->filled++;
	if (!to || bytes > b->bytes) {
		wc->fault = KRC_FAULT_LOCAL;
		wc->bytes = 0;
		return KRC_FAULT_ACCESS;
	}
	memcpy(to, from, bytes);
	return KRC_FAULT_NONE;
}

/* Carry out a SEND. Return: what its sender is told. */
static enum krc_fault krc_fake_deliver(const struct krc_hw_wr *wr)
{
	const void *from = krc_fake_memory(wr->lkey, wr->local_addr, wr->length);
	enum krc_fault fault = KRC_FAULT_TIMEOUT;
	struct krc_fake_target *t;
	__le32 dctn;

	if (!from)
		return KRC_FAULT_LOCAL;
	memcpy(&dctn, wr->address->opaque + KRC_FAKE_DCTN_AT, sizeof(dctn));
	spin_lock_bh(&krc_fake_targets_lock);
	list_for_each_entry(t, &krc_fake_targets, list) {
		if (t->dctn != le32_to_cpu(dctn))
			continue;
		fault = krc_fake_fill(t, from, wr->length);
		if (fault != KRC_FAULT_BUSY && t->fake->events && xchg(&t->armed, false))
			t->fake->events->received(t->receive.owner);
		break;
	}
	spin_unlock_bh(&krc_fake_targets_lock);
	return fault;
}

/* ---- initiators */

static void krc_fake_initiator_free(struct krc_fake_initiator *ini)
{
	kfree(ini->wrs);
	kfree(ini->wcs);
	kfree(ini->ends);
	kvfree(ini);
}

static struct krc_hw_initiator *krc_fake_initiator_create(struct krc_hw *hw, u32 port,
							  u16 gid_index,
							  const struct krc_hw_send *send)
{
	struct krc_fake *fake = krc_fake_of(hw);
	struct krc_fake_initiator *ini;

	if (send->vector >= KRC_FAKE_INITIATORS || fake->ini[send->vector])
		return ERR_PTR(-ENOSPC);
	ini = kvzalloc(sizeof(*ini), GFP_KERNEL);
	if (!ini)
		return ERR_PTR(-ENOMEM);
	ini->wrs = kcalloc(send->depth, sizeof(*ini->wrs), GFP_KERNEL);
	ini->wcs = kcalloc(send->depth + 1, sizeof(*ini->wcs), GFP_KERNEL);
	ini->ends = kcalloc(send->depth, sizeof(*ini->ends), GFP_KERNEL);
	if (!ini->wrs || !ini->wcs || !ini->ends) {
		krc_fake_initiator_free(ini);
		return ERR_PTR(-ENOMEM);
	}
	spin_lock_init(&ini->lock);
	ini->owner = send->owner;
	ini->depth = send->depth;
	ini->use = send->use;
	ini->fake = fake;
	spin_lock_bh(&fake->lock);
	fake->ini[send->vector] = ini;
	spin_unlock_bh(&fake->lock);
	return (struct krc_hw_initiator *)ini;
}

static void krc_fake_initiator_destroy(struct krc_hw_initiator *hw)
{
	struct krc_fake_initiator *ini = krc_fake_ini(hw);
	struct krc_fake *fake = ini->fake;
	u32 i;

	spin_lock_bh(&fake->lock);
	for (i = 0; i < KRC_FAKE_INITIATORS; i++)
		if (fake->ini[i] == ini)
			fake->ini[i] = NULL;
	spin_unlock_bh(&fake->lock);
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
	if (wr->unsignaled && fault == KRC_FAULT_NONE && ini->fake->sparse)
		return;
	if (wr->unsignaled && fault == KRC_FAULT_FLUSHED && ini->fake->mean)
		return;
	krc_fake_wc(ini, wr->cookie, fault);
}

/* Copy between memories that are known by pages; what is not known stays as it is. */
static void krc_fake_copy(u32 to_key, u64 to, u32 from_key, u64 from, u32 length)
{
	u32 bytes;

	for (; length; length -= bytes, to += bytes, from += bytes) {
		void *source, *sink;

		bytes = min3((unsigned long)length, PAGE_SIZE - offset_in_page(from),
			     PAGE_SIZE - offset_in_page(to));
		source = krc_fake_memory(from_key, from, bytes);
		sink = krc_fake_memory(to_key, to, bytes);
		if (source && sink)
			memcpy(sink, source, bytes);
	}
}

static void krc_fake_atomic(const struct krc_hw_wr *wr)
{
	u64 *there = krc_fake_memory(wr->rkey, wr->remote_addr, sizeof(u64));
	u64 *here = krc_fake_memory(wr->lkey, wr->local_addr, sizeof(u64));

	if (!there || !here)
		return;
	*here = *there;
	if (wr->opcode == KRP_OP_FETCH_ADD)
		*there += wr->compare_add;
	else if (*there == wr->compare_add)
		*there = wr->swap;
}

/* What a READ finds. */
static void krc_fake_bring(const struct krc_fake *fake, const struct krc_hw_wr *wr)
{
	void *to = krc_fake_memory(wr->lkey, wr->local_addr, wr->length);

	if (wr->rkey >= KRC_FAKE_PAGES_LKEY && krc_fake_memory(wr->rkey, wr->remote_addr, 1))
		krc_fake_copy(wr->lkey, wr->local_addr, wr->rkey, wr->remote_addr, wr->length);
	else if (!to)
		return;
	else if (fake->far)
		memcpy(to, fake->far + (wr->remote_addr - KRC_FAKE_FAR), wr->length);
	else
		memset(to, (u8)wr->remote_addr, wr->length);
}

/* The oldest request fails, lock held: all behind it are flushed. */
static void krc_fake_broken(struct krc_fake_initiator *ini, enum krc_fault fault)
{
	krc_fake_end(ini, fault);
	ini->failed = true;
	while (ini->done != ini->rung)
		krc_fake_end(ini, KRC_FAULT_FLUSHED);
}

/* Carry out a SEND as the test wants it. Return: what its sender is told. */
static enum krc_fault krc_fake_send(struct krc_fake *fake, const struct krc_hw_wr *wr)
{
	enum krc_fault fault;

	if (atomic_add_unless(&fake->lose, -1, 0))
		return KRC_FAULT_NONE;
	fault = krc_fake_deliver(wr);
	if (fault == KRC_FAULT_NONE && atomic_add_unless(&fake->twice, -1, 0))
		krc_fake_deliver(wr);
	return fault;
}

/* Carry out the oldest request, lock held. */
static void krc_fake_step(struct krc_fake_initiator *ini)
{
	const struct krc_hw_wr *wr = &ini->wrs[ini->done % ini->depth];
	enum krc_fault fault = KRC_FAULT_NONE;

	if (wr->opcode == KRC_HW_SEND)
		fault = krc_fake_send(ini->fake, wr);
	else if (wr->opcode == KRP_OP_WRITE)
		krc_fake_copy(wr->rkey, wr->remote_addr, wr->lkey, wr->local_addr, wr->length);
	else if (wr->opcode != KRP_OP_READ)
		krc_fake_atomic(wr);
	else if (wr->lkey)
		krc_fake_bring(ini->fake, wr);
	if (fault == KRC_FAULT_NONE)
		krc_fake_end(ini, fault);
	else
		krc_fake_broken(ini, fault);
}

static int krc_fake_initiator_halt(struct krc_hw_initiator *hw)
{
	struct krc_fake_initiator *ini = krc_fake_ini(hw);
	u32 n;

	if (ini->fake->reset_error)
		return ini->fake->reset_error;
	spin_lock_bh(&ini->lock);
	for (n = ini->fake->late; n && !ini->failed && ini->done != ini->rung; n--)
		krc_fake_step(ini);
	ini->failed = true;
	spin_unlock_bh(&ini->lock);
	return 0;
}

static bool krc_fake_initiator_began(struct krc_hw_initiator *hw)
{
	return !krc_fake_ini(hw)->fake->unsent;
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
	int err = ini->fake->post_error;

	spin_lock_bh(&ini->lock);
	ini->payer = krc_pool_payer(ini->owner);
	if (err && ini->fake->post_good) {
		ini->fake->post_good--;
		err = 0;
	}
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
	while (READ_ONCE(ini->fake->at_once) && ini->done != ini->rung && !ini->failed)
		krc_fake_step(ini);
	/* one that was armed before it was posted is owed an upcall */
	if (ini->polled != ini->made && !ini->fake->mute && xchg(&ini->armed, false))
		krc_pool_on_completion(ini->owner);
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
	memcpy(ret_address->opaque + KRC_FAKE_DCTN_AT, &value->dct.dctn, sizeof(value->dct.dctn));
	ret_address->opaque[63] = krc_fake_of(hw)->router;
	return 0;
}

static bool krc_fake_same_target(const struct krc_hw_address *a, const struct krc_hw_address *b)
{
	return !memcmp(a->opaque, b->opaque, sizeof(a->opaque) - 1); /* all but the router */
}

static struct device *krc_fake_dma_device(struct krc_hw *hw)
{
	return krc_fake_of(hw)->dev;
}

const struct krc_provider_ops krc_fake_ops = {
	.name = "fake",
	.target_create = krc_fake_target_create,
	.target_destroy = krc_fake_target_destroy,
	.recv_post = krc_fake_recv_post,
	.recv_ring = krc_fake_recv_ring,
	.recv_poll = krc_fake_recv_poll,
	.recv_arm = krc_fake_recv_arm,
	.initiator_create = krc_fake_initiator_create,
	.initiator_destroy = krc_fake_initiator_destroy,
	.initiator_halt = krc_fake_initiator_halt,
	.initiator_began = krc_fake_initiator_began,
	.initiator_restart = krc_fake_initiator_restart,
	.address = krc_fake_address,
	.same_target = krc_fake_same_target,
	.post = krc_fake_post,
	.ring = krc_fake_ring,
	.poll = krc_fake_poll,
	.arm = krc_fake_arm,
	.key_dma = krc_fake_key_dma,
	.key_pages = krc_fake_key_pages,
	.key_umem = krc_fake_key_umem,
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

u32 krc_fake_complete(struct krc_fake *fake, u32 i, u32 count)
{
	struct krc_fake_initiator *ini = krc_fake_lock(fake, i);
	u32 n = 0;

	if (!ini)
		return 0;
	while (!ini->failed && n < count && ini->done != ini->rung) {
		krc_fake_step(ini);
		n++;
	}
	krc_fake_unlock(fake, ini, n);
	return n;
}

bool krc_fake_arrive(struct krc_fake *fake, u32 i)
{
	struct krc_fake_initiator *ini = krc_fake_lock(fake, i);
	bool arrived = false;

	if (!ini)
		return false;
	if (!ini->failed && ini->done != ini->rung)
		arrived = krc_fake_deliver(&ini->wrs[ini->done % ini->depth]) == KRC_FAULT_NONE;
	krc_fake_unlock(fake, ini, false);
	return arrived;
}

void krc_fake_fail(struct krc_fake *fake, u32 i, enum krc_fault fault)
{
	struct krc_fake_initiator *ini = krc_fake_lock(fake, i);

	if (!ini)
		return;
	if (!ini->failed && ini->done != ini->rung)
		krc_fake_broken(ini, fault);
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
