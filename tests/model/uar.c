// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: doorbell pages. What is written to the register of a send queue begins with the first 8
 * bytes of the last request posted, which are its doorbell. A driver may push the whole request
 * through the register (BlueFlame), and the device need not read it from memory.
 *
 * A processor combines such writes into one, which a device knows by its length. Here they come
 * by 8 bytes, so a doorbell alone looks like the beginning of a pushed request. It is taken for
 * one if all of this holds: the device pushes (property blueflame), requests came through this
 * page before, and the doorbell record names one request more than the last time: nobody pushes
 * one of several. Otherwise, and if the rest does not come soon, it is a doorbell, and the
 * request is taken from memory: that is what a device does if writes were not combined.
 * Sources: libmlx5 post_send_db(); mlx5_ib mlx5_ib_test_wc() and its successor in mlx5_core, which
 * test that writes are combined. Runs under QEMU's big lock.
 */
#include "dev.h"

/* offsets in a page */
enum {
	CX_UAR_CQ_ARM = 0x20,
	CX_UAR_EQ_ARM = 0x40,
	CX_UAR_EQ_CI = 0x48,
};

/* ---- doorbells */

/* number of the queue that was rung */
static u32 cx_bf_number(const struct cx_bf *bf)
{
	return ldl_be_p(bf->raw + 4) >> 8;
}

static struct cx_qp *cx_bf_qp(struct cx_dev *dev, const struct cx_bf *bf)
{
	struct cx_obj *obj = cx_obj_find(dev, CX_SP_QUEUE, cx_bf_number(bf), CX_K_QP);
	struct cx_qp *qp = obj ? container_of(obj, struct cx_qp, obj) : NULL;

	return qp && qp->uar == bf->uar->obj.id ? qp : NULL;
}

static struct cx_sq *cx_bf_sq(struct cx_dev *dev, const struct cx_bf *bf)
{
	struct cx_obj *obj = cx_obj_find(dev, CX_SP_QUEUE, cx_bf_number(bf), CX_K_SQ);
	struct cx_sq *sq = obj ? container_of(obj, struct cx_sq, obj) : NULL;

	return sq && sq->uar == bf->uar->obj.id ? sq : NULL;
}

/* what the doorbell record of a queue says, 0 if there is no such queue on the page */
static u16 cx_bf_record(struct cx_dev *dev, const struct cx_bf *bf)
{
	struct cx_qp *qp = cx_bf_qp(dev, bf);
	struct cx_sq *sq = cx_bf_sq(dev, bf);

	if (qp)
		return qp->no_sq ? 0 : cx_wq_pi(dev, &qp->sq);
	return sq ? cx_wq_pi(dev, &sq->wq) : 0;
}

/* @pushed: the whole request, NULL: it is in memory. False: there is no such queue. */
static bool cx_bf_ring(struct cx_dev *dev, const struct cx_bf *bf, const u8 *pushed)
{
	u64 val = ldq_be_p(bf->raw);
	struct cx_qp *qp = cx_bf_qp(dev, bf);
	struct cx_sq *sq = cx_bf_sq(dev, bf);

	cx_trace(dev, CX_TR_DB, "SQ doorbell 0x%016" PRIx64 " UAR 0x%x%s", val, bf->uar->obj.id,
		 pushed ? " pushed" : "");
	if (qp)
		cx_qp_doorbell(dev, qp, val, bf->pi, pushed);
	else if (sq)
		cx_sq_run(dev, sq, pushed);
	return qp || sq;
}

/* ---- requests that are pushed */

static void cx_bf_forget(struct cx_dev *dev, struct cx_bf *bf)
{
	if (bf->begun)
		QTAILQ_REMOVE(&dev->bf_begun, bf, link);
	bf->begun = false;
}

static void cx_bf_tell(struct cx_dev *dev, struct cx_bf *bf)
{
	cx_count(dev, CX_CTR_BF_PARTS, !bf->told);
	bf->told = true;
}

/*
 * The rest of the request did not come: what came is a doorbell. Its queue may be gone by now, or
 * have begun anew with a record that went back.
 */
static void cx_bf_give_up(struct cx_dev *dev, struct cx_bf *bf)
{
	if (!bf->begun)
		return;
	cx_bf_forget(dev, bf);
	if (bf->got > 8)
		cx_bf_tell(dev, bf);
	if ((int16_t)(cx_bf_record(dev, bf) - bf->pi) >= 0)
		cx_bf_ring(dev, bf, NULL);
}

static void cx_bf_late(void *opaque)
{
	s64 now_us = qemu_clock_get_us(QEMU_CLOCK_VIRTUAL);
	struct cx_dev *dev = opaque;
	struct cx_bf *bf;

	while ((bf = QTAILQ_FIRST(&dev->bf_begun)) && bf->until_us <= now_us)
		cx_bf_give_up(dev, bf);
	if (bf)
		timer_mod(dev->bf_timer, bf->until_us);
	cx_dev_kick(dev);
}

/* whether a doorbell is, or is still, that of the one request that its queue has to do */
static bool cx_bf_of_one(struct cx_dev *dev, const struct cx_bf *bf)
{
	struct cx_qp *qp = cx_bf_qp(dev, bf);
	struct cx_sq *sq = cx_bf_sq(dev, bf);
	u32 blocks = bf->need / CX_WQE_BB;

	return qp ? cx_qp_has_one_more(dev, qp, blocks) : sq && cx_sq_has_one_more(dev, sq, blocks);
}

/* other doorbells of the same queue come first */
static void cx_bf_give_up_others(struct cx_dev *dev, const struct cx_bf *bf)
{
	struct cx_bf *other, *next;

	QTAILQ_FOREACH_SAFE(other, &dev->bf_begun, link, next)
	{
		if (cx_bf_number(other) == cx_bf_number(bf))
			cx_bf_give_up(dev, other);
	}
}

static void cx_bf_begin(struct cx_dev *dev, struct cx_bf *bf, u64 val)
{
	cx_bf_give_up(dev, bf);
	cx_count(dev, CX_CTR_DOORBELLS, 1);
	stq_be_p(bf->raw, val);
	cx_bf_give_up_others(dev, bf);
	bf->told = false;
	bf->got = 8;
	bf->need = QEMU_ALIGN_UP((val & 0x3f) * 16, CX_WQE_BB);
	bf->pi = cx_bf_record(dev, bf);
	if (!dev->prop.blueflame || dev->bf_apart || !bf->uar->pushes || bf->need > CX_BF_BYTES ||
	    !cx_bf_of_one(dev, bf)) {
		if (cx_bf_ring(dev, bf, NULL))
			return;
		cx_count(dev, CX_CTR_DB_REFUSED, 1);
		cx_trace(dev, CX_TR_REFUSE, "SQ doorbell for queue 0x%x on UAR 0x%x",
			 cx_bf_number(bf), bf->uar->obj.id);
		return;
	}
	bf->begun = true;
	bf->until_us = qemu_clock_get_us(QEMU_CLOCK_VIRTUAL) + CX_BF_WAIT_US;
	QTAILQ_INSERT_TAIL(&dev->bf_begun, bf, link);
	if (!timer_pending(dev->bf_timer))
		timer_mod(dev->bf_timer, bf->until_us);
}

/* another 8 bytes of a request; false: they are of none */
static bool cx_bf_go_on(struct cx_dev *dev, struct cx_bf *bf, u32 at, u64 val)
{
	if (!dev->prop.blueflame || at != bf->got || at >= bf->need || bf->need > CX_BF_BYTES)
		return false;
	stq_be_p(bf->raw + at, val);
	bf->got += 8;
	if (bf->got < bf->need)
		return true;
	bf->uar->pushes = true;
	/* was rung before it was whole, or its queue has become another meanwhile */
	if (!bf->begun || !cx_bf_of_one(dev, bf)) {
		cx_bf_tell(dev, bf);
		cx_bf_give_up(dev, bf);
		return true;
	}
	cx_bf_forget(dev, bf);
	cx_bf_ring(dev, bf, bf->raw);
	return true;
}

/* ---- pages */

static void cx_uar_release(struct cx_dev *dev, struct cx_obj *obj)
{
	struct cx_uar *uar = container_of(obj, struct cx_uar, obj);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(uar->bf); i++)
		cx_bf_forget(dev, &uar->bf[i]);
	g_free(uar);
}

struct cx_obj *cx_uar_new(void)
{
	struct cx_uar *uar = g_new0(struct cx_uar, 1);
	u32 i;

	uar->obj.release = cx_uar_release;
	for (i = 0; i < ARRAY_SIZE(uar->bf); i++)
		uar->bf[i].uar = uar;
	return &uar->obj;
}

void cx_uar_init(struct cx_dev *dev)
{
	QTAILQ_INIT(&dev->bf_begun);
	dev->bf_timer = timer_new_us(QEMU_CLOCK_VIRTUAL, cx_bf_late, dev);
}

void cx_uar_fini(struct cx_dev *dev)
{
	timer_free(dev->bf_timer);
}

static bool cx_uar_sq_write(struct cx_dev *dev, struct cx_obj *obj, u32 off, u64 val)
{
	struct cx_uar *uar = container_of(obj, struct cx_uar, obj);
	struct cx_bf *bf = &uar->bf[(off - CX_UAR_SQ) / CX_BF_BYTES];
	u32 at = off % CX_BF_BYTES;

	if (at)
		return cx_bf_go_on(dev, bf, at, val);
	cx_bf_begin(dev, bf, val);
	return true;
}

void cx_uar_write(struct cx_dev *dev, hwaddr addr, u64 val, unsigned int size)
{
	u32 num = addr / CX_UAR_BYTES, off = addr % CX_UAR_BYTES;
	struct cx_obj *obj = cx_obj_find(dev, CX_SP_UAR, num, CX_K_UAR);

	if (!obj) {
		cx_count(dev, CX_CTR_DB_REFUSED, 1);
		cx_trace(dev, CX_TR_REFUSE, "doorbell on UAR 0x%x, which does not exist", num);
	} else if (off == CX_UAR_EQ_ARM && size == 4) {
		cx_eq_doorbell(dev, num, val, true);
	} else if (off == CX_UAR_EQ_CI && size == 4) {
		cx_eq_doorbell(dev, num, val, false);
	} else if (off == CX_UAR_CQ_ARM && size == 8) {
		cx_cq_doorbell(dev, num, val);
	} else if (off < CX_UAR_SQ || size != 8 || !cx_uar_sq_write(dev, obj, off, val)) {
		cx_count(dev, CX_CTR_DB_REFUSED, 1);
		cx_trace(dev, CX_TR_REFUSE, "doorbell of %u bytes at 0x%x of UAR 0x%x", size, off,
			 num);
	}
}
