/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: turns of the senders. A requester or responder with packets to send is
 * a task; tasks take turns of a few packets each, and one whose peer has no
 * room is parked until some peer has.
 */
#ifndef CX_SCHED_H
#define CX_SCHED_H

#include "types.h"

/**
 * enum cx_pump - What a task says after its turn.
 * @CX_PUMP_IDLE: nothing more to send now.
 * @CX_PUMP_MORE: another turn, please.
 * @CX_PUMP_PARK: no room at the peer, or its time has not come.
 */
enum cx_pump {
	CX_PUMP_IDLE,
	CX_PUMP_MORE,
	CX_PUMP_PARK,
};

/**
 * struct cx_task - A requester or responder, as the turns see it.
 * @link: in one of the lists of struct cx_sched.
 * @pump: a turn: sends at most @budget packets.
 * @queued: it waits for a turn.
 * @parked: it waits for room, or for its time; never both.
 */
struct cx_task {
	QTAILQ_ENTRY(cx_task) link;
	enum cx_pump (*pump)(struct cx_dev *dev, struct cx_task *task, u32 budget);
	bool queued;
	bool parked;
};

/**
 * struct cx_sched - The tasks that take turns, and those that wait for room.
 * @bh: goes on where cx_sched_run() has left off.
 * @running: a turn is going on.
 */
struct cx_sched {
	/* private: not for kernel-doc: tasks that wait for a turn, the next one first */
	QTAILQ_HEAD(, cx_task) run;
	/* private: not for kernel-doc: tasks that wait for room */
	QTAILQ_HEAD(, cx_task) park;
	/* public: */
	QEMUBH *bh;
	bool running;
};

/**
 * cx_sched_init() - Set the turns up: there are no tasks.
 * @dev: device.
 */
void cx_sched_init(struct cx_dev *dev);

/**
 * cx_sched_fini() - End them.
 * @dev: device.
 */
void cx_sched_fini(struct cx_dev *dev);

/**
 * cx_sched_add() - Let a task take turns.
 * @dev: device.
 * @task: task; one that is queued or parked stays where it is.
 */
void cx_sched_add(struct cx_dev *dev, struct cx_task *task);

/**
 * cx_sched_remove() - Let a task take no more turns.
 * @dev: device.
 * @task: task, also one that takes none.
 */
void cx_sched_remove(struct cx_dev *dev, struct cx_task *task);

/**
 * cx_sched_unpark() - Some peer has room again: let all parked tasks take turns.
 * @dev: device.
 */
void cx_sched_unpark(struct cx_dev *dev);

/**
 * cx_sched_run() - Give turns until nobody has more to send, or for so many that QEMU should go on
 * * with something else; the rest comes in a bottom half.
 * @dev: device.
 *
 * Does nothing in a turn.
 */
void cx_sched_run(struct cx_dev *dev);

#endif
