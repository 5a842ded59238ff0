/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: turns of the senders. A requester or responder with packets to send is
 * a task; tasks take turns of a few packets each, and one whose peer has no
 * room is parked until some peer has.
 */
#ifndef CX_SCHED_H
#define CX_SCHED_H

#include "types.h"

enum cx_pump {
	CX_PUMP_IDLE, /* nothing more to send now */
	CX_PUMP_MORE, /* another turn, please */
	CX_PUMP_PARK, /* no room at the peer */
};

struct cx_task {
	QTAILQ_ENTRY(cx_task) link;
	enum cx_pump (*pump)(struct cx_dev *dev, struct cx_task *task, u32 budget);
	bool queued;
	bool parked;
};

struct cx_sched {
	QTAILQ_HEAD(, cx_task) run;
	QTAILQ_HEAD(, cx_task) park;
	QEMUBH *bh;
	bool running;
};

void cx_sched_init(struct cx_dev *dev);
void cx_sched_fini(struct cx_dev *dev);
void cx_sched_add(struct cx_dev *dev, struct cx_task *task);
void cx_sched_remove(struct cx_dev *dev, struct cx_task *task);
void cx_sched_unpark(struct cx_dev *dev);
void cx_sched_run(struct cx_dev *dev);

#endif
