// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: the run queue. It runs at the end of every entry into the device, for
 * a bounded number of turns; what is left goes on in a bottom half, so that
 * the rest of QEMU gets its share. Runs under QEMU's big lock.
 */
#include "dev.h"
#include "qemu/main-loop.h"

#define CX_TURN_PACKETS 16
#define CX_TURNS_AT_ONCE 32

static void cx_sched_bh(void *opaque)
{
	cx_dev_kick(opaque);
}

void cx_sched_init(struct cx_dev *dev)
{
	QTAILQ_INIT(&dev->sched.run);
	QTAILQ_INIT(&dev->sched.park);
	dev->sched.bh = qemu_bh_new(cx_sched_bh, dev);
}

void cx_sched_fini(struct cx_dev *dev)
{
	if (dev->sched.bh)
		qemu_bh_delete(dev->sched.bh);
	dev->sched.bh = NULL;
}

void cx_sched_add(struct cx_dev *dev, struct cx_task *task)
{
	if (task->queued || task->parked)
		return;
	task->queued = true;
	QTAILQ_INSERT_TAIL(&dev->sched.run, task, link);
}

void cx_sched_remove(struct cx_dev *dev, struct cx_task *task)
{
	if (task->queued)
		QTAILQ_REMOVE(&dev->sched.run, task, link);
	if (task->parked)
		QTAILQ_REMOVE(&dev->sched.park, task, link);
	task->queued = task->parked = false;
}

void cx_sched_unpark(struct cx_dev *dev)
{
	struct cx_task *task;

	while ((task = QTAILQ_FIRST(&dev->sched.park))) {
		cx_sched_remove(dev, task);
		cx_sched_add(dev, task);
		qemu_bh_schedule(dev->sched.bh);
	}
}

void cx_sched_run(struct cx_dev *dev)
{
	struct cx_task *task;
	u32 turn;

	if (dev->sched.running)
		return;
	dev->sched.running = true;
	for (turn = 0; turn < CX_TURNS_AT_ONCE; turn++) {
		task = QTAILQ_FIRST(&dev->sched.run);
		if (!task)
			break;
		cx_sched_remove(dev, task);
		switch (task->pump(dev, task, CX_TURN_PACKETS)) {
		case CX_PUMP_MORE:
			cx_sched_add(dev, task);
			break;
		case CX_PUMP_PARK:
			task->parked = true;
			QTAILQ_INSERT_TAIL(&dev->sched.park, task, link);
			break;
		case CX_PUMP_IDLE:
			break;
		}
	}
	dev->sched.running = false;
	if (!QTAILQ_EMPTY(&dev->sched.run))
		qemu_bh_schedule(dev->sched.bh);
}
