// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: lifetime of a rail: references, and the gate to the device.
 * Locking: none of its own; see hw/rail.h.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "base/log.h"
#include "hw/rail.h"

#define KRC_RAIL_IDLE_WARN_MS 30000

static void krc_rail_unused(struct percpu_ref *ref)
{
	complete(&container_of(ref, struct krc_rail, users)->idle);
}

static void krc_rail_last_put(struct kref *ref)
{
	struct krc_rail *rail = container_of(ref, struct krc_rail, ref);

	rail->release(rail);
}

int krc_rail_init(struct krc_rail *rail, void (*release)(struct krc_rail *rail))
{
	kref_init(&rail->ref);
	init_completion(&rail->idle);
	rail->release = release;
	return percpu_ref_init(&rail->users, krc_rail_unused, 0, GFP_KERNEL);
}

void krc_rail_fini(struct krc_rail *rail)
{
	percpu_ref_exit(&rail->users);
}

void krc_rail_put(struct krc_rail *rail)
{
	kref_put(&rail->ref, krc_rail_last_put);
}

void krc_rail_kill(struct krc_rail *rail)
{
	percpu_ref_kill(&rail->users);
}

void krc_rail_wait_idle(struct krc_rail *rail)
{
	unsigned long limit = msecs_to_jiffies(KRC_RAIL_IDLE_WARN_MS);

	while (!wait_for_completion_timeout(&rail->idle, limit))
		krc_port_warn(rail->ibdev, rail->num, "still in use %u s after its end\n",
			      KRC_RAIL_IDLE_WARN_MS / 1000);
}
