/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: one port of an open device, as far as what is above the hardware needs it to send and
 * be reached: the device, its provider, the address, and the gate through which all of that is
 * used. What is built on a port (initiators, regions, records) is in node/port.h.
 *
 * Lifetime: a rail is counted (krc_rail_get/put); its device is there only while the rail is
 * alive. Whoever uses @hw or @ibdev, or what was made of them, does so between krc_rail_enter()
 * and krc_rail_exit(), which are short or end soon after krc_rail_kill().
 * Locking: none; all fields are set before anybody else sees the rail.
 */
#ifndef KRC_RAIL_H
#define KRC_RAIL_H

#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/percpu-refcount.h>

#include "hw/provider.h"

/**
 * struct krc_rail - A port of an open device.
 * @ref: memory.
 * @release: called when nobody has a reference any more; frees what the rail is part of.
 * @users: krc_rail_enter(); killed when the port dies.
 * @idle: completed when the last of them has left.
 * @ibdev: device.
 * @device: its name when the port came up, for who must not follow @ibdev.
 * @ops: provider.
 * @hw: open device.
 * @attr: what it can do.
 * @num: port number of the device, from 1.
 * @segment_max: most bytes in a row that the device takes as one.
 * @gid: published GID.
 * @gid_index: its index.
 * @generation: boot generation it was made under.
 * @ack_timeout: of initiators: they wait 4.096 us * 2^@ack_timeout for an answer.
 * @margin_ms: how long the key of a region outlives the leases of peers.
 */
struct krc_rail {
	struct kref ref;
	void (*release)(struct krc_rail *rail);
	struct percpu_ref users;
	struct completion idle;
	struct ib_device *ibdev;
	char device[IB_DEVICE_NAME_MAX];
	const struct krc_provider_ops *ops;
	struct krc_hw *hw;
	struct krc_hw_attr attr;
	u32 num;
	unsigned int segment_max;
	union ib_gid gid;
	u16 gid_index;
	u64 generation;
	u32 ack_timeout;
	u32 margin_ms;
};

/**
 * krc_rail_init() - Begin the life of a rail: one reference, and open to users.
 * @rail: zeroed.
 * @release: see struct krc_rail; must call krc_rail_fini().
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM: there is nothing to release then.
 */
int krc_rail_init(struct krc_rail *rail, void (*release)(struct krc_rail *rail));

/* What krc_rail_init() allocated; from @release. Context: may sleep. */
void krc_rail_fini(struct krc_rail *rail);

/* Let nobody enter any more. Context: any. */
void krc_rail_kill(struct krc_rail *rail);

/**
 * krc_rail_wait_idle() - Wait until all who have entered have left.
 * @rail: killed; those inside have been woken.
 *
 * Says so in the log if it takes very long. Context: may sleep.
 */
void krc_rail_wait_idle(struct krc_rail *rail);

/* Drop a reference. Context: may sleep. */
void krc_rail_put(struct krc_rail *rail);

static inline struct krc_rail *krc_rail_get(struct krc_rail *rail)
{
	kref_get(&rail->ref);
	return rail;
}

/* Begin to use the device; false if it is dead or dying. Any context. */
static inline bool krc_rail_enter(struct krc_rail *rail)
{
	return percpu_ref_tryget_live(&rail->users);
}

/* End of the use. Any context. */
static inline void krc_rail_exit(struct krc_rail *rail)
{
	percpu_ref_put(&rail->users);
}

#endif /* KRC_RAIL_H */
