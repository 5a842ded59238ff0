/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: one port of an open device (a rail), as far as the layers above the hardware need it to
 * send and be reached: the device, its provider, the address, and the gate through which all
 * of that is used. What is built on a port (initiators, regions, records) is in node/port.h.
 *
 * Lifetime: a rail is reference-counted (krc_rail_get/put); its device exists only while the
 * rail is alive. Code that uses @hw or @ibdev, or objects made of them, does so between
 * krc_rail_enter() and krc_rail_exit(); such sections are short or end soon after
 * krc_rail_kill().
 * Locking: none; all fields are set before the rail is visible to others.
 */
#ifndef KRC_RAIL_H
#define KRC_RAIL_H

#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/percpu-refcount.h>

#include "hw/provider.h"

/**
 * struct krc_rail - A port of an open device.
 * @ref: references that keep the memory.
 * @release: called when the last reference is dropped; frees the object that embeds the rail.
 * @users: sections inside krc_rail_enter(); killed when the port dies.
 * @idle: completed when the last of them has left after that.
 * @ibdev: device.
 * @device: its name when the port came up; there when @ibdev must not be followed.
 * @ops: provider.
 * @hw: open device.
 * @attr: capabilities of the device.
 * @num: port number of the device, from 1.
 * @segment_max: largest DMA segment of the device, in bytes.
 * @gid: published GID.
 * @gid_index: its index in the GID table.
 * @generation: boot generation under which the rail was created.
 * @ack_timeout: of its initiators: they wait 4.096 us * 2^@ack_timeout for an answer.
 * @margin_ms: how long the key of a region stays valid after the leases of peers.
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
 * krc_rail_init() - Initialise a rail, with one reference and open to krc_rail_enter().
 * @rail: zeroed.
 * @release: see struct krc_rail; must call krc_rail_fini().
 *
 * Context: may sleep.
 * Return: 0, or -ENOMEM: then there is nothing to release.
 */
int krc_rail_init(struct krc_rail *rail, void (*release)(struct krc_rail *rail));

/**
 * krc_rail_fini() - Free what krc_rail_init() allocated; called by its @release.
 * @rail: rail whose last reference is gone.
 *
 * Context: may sleep.
 */
void krc_rail_fini(struct krc_rail *rail);

/**
 * krc_rail_kill() - Make krc_rail_enter() fail from now on; called once.
 * @rail: rail.
 *
 * Context: any.
 */
void krc_rail_kill(struct krc_rail *rail);

/**
 * krc_rail_wait_idle() - Wait until every krc_rail_enter() has had its krc_rail_exit().
 * @rail: killed; tasks that wait inside have been woken.
 *
 * Warns in the log every 30 s. Context: may sleep.
 */
void krc_rail_wait_idle(struct krc_rail *rail);

/**
 * krc_rail_put() - Drop a reference; the last one frees the rail.
 * @rail: rail.
 *
 * Context: may sleep.
 */
void krc_rail_put(struct krc_rail *rail);

/**
 * krc_rail_get() - Take one more reference.
 * @rail: rail that the caller has a reference to.
 *
 * Context: any.
 * Return: @rail.
 */
static inline struct krc_rail *krc_rail_get(struct krc_rail *rail)
{
	kref_get(&rail->ref);
	return rail;
}

/**
 * krc_rail_enter() - Begin to use the device.
 * @rail: rail that the caller has a reference to.
 *
 * Context: any.
 * Return: true, until krc_rail_exit(); false if the port is dead or dying.
 */
static inline bool krc_rail_enter(struct krc_rail *rail)
{
	return percpu_ref_tryget_live(&rail->users);
}

/**
 * krc_rail_exit() - End the use that krc_rail_enter() began.
 * @rail: rail.
 *
 * Context: any.
 */
static inline void krc_rail_exit(struct krc_rail *rail)
{
	percpu_ref_put(&rail->users);
}

#endif /* KRC_RAIL_H */
