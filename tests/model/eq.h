/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: event queues and what is written into them: completions of commands,
 * notifications of completion queues, asynchronous events.
 */
#ifndef CX_EQ_H
#define CX_EQ_H

#include "obj.h"
#include "dma.h"

/**
 * enum cx_event - Types of events.
 * @CX_EV_COMP: completion: a completion queue notifies.
 * @CX_EV_PATH_MIG: path migration succeeded; not raised here.
 * @CX_EV_COMM_EST: communication established: a first packet came in RTR.
 * @CX_EV_SQ_DRAINED: send queue drained; not raised here.
 * @CX_EV_CQ_ERROR: CQ error: it was overrun.
 * @CX_EV_WQ_CATAS: local work queue catastrophic error.
 * @CX_EV_PORT_CHANGE: port state change: enum cx_port_event.
 * @CX_EV_CMD: commands are complete.
 * @CX_EV_NIC_VPORT_CHANGE: the context of the vport was changed.
 * @CX_EV_WQ_INVAL: invalid request local work queue error.
 * @CX_EV_WQ_ACCESS: local access violation work queue error.
 * @CX_EV_SRQ_CATAS: SRQ catastrophic error; not raised here.
 * @CX_EV_SRQ_LAST_WQE: last WQE reached: a queue pair in error takes no more of its SRQ.
 * @CX_EV_SRQ_LIMIT: SRQ limit reached.
 * @CX_EV_DCT_DRAINED: a DC target is drained.
 * @CX_EV_DCT_KEY: DC access key violation.
 */
enum cx_event {
	CX_EV_COMP = 0x00,
	CX_EV_PATH_MIG = 0x01,
	CX_EV_COMM_EST = 0x02,
	CX_EV_SQ_DRAINED = 0x03,
	CX_EV_CQ_ERROR = 0x04,
	CX_EV_WQ_CATAS = 0x05,
	CX_EV_PORT_CHANGE = 0x09,
	CX_EV_CMD = 0x0a,
	CX_EV_NIC_VPORT_CHANGE = 0x0d,
	CX_EV_WQ_INVAL = 0x10,
	CX_EV_WQ_ACCESS = 0x11,
	CX_EV_SRQ_CATAS = 0x12,
	CX_EV_SRQ_LAST_WQE = 0x13,
	CX_EV_SRQ_LIMIT = 0x14,
	CX_EV_DCT_DRAINED = 0x1c,
	CX_EV_DCT_KEY = 0x1d,
};

/**
 * enum cx_port_event - Sub-types of CX_EV_PORT_CHANGE.
 * @CX_PORT_DOWN: the link went down.
 * @CX_PORT_ACTIVE: the link came up.
 */
enum cx_port_event {
	CX_PORT_DOWN = 1,
	CX_PORT_ACTIVE = 4,
};

/**
 * enum cx_event_queue - Type of the queue that an event names.
 * @CX_EQT_QP: queue pair.
 * @CX_EQT_RQ: receive queue; of the model, an SRQ.
 * @CX_EQT_SQ: send queue; not used here.
 * @CX_EQT_DCT: DC target; not used here: cx_event_dct() gives the number alone.
 */
enum cx_event_queue {
	CX_EQT_QP = 0,
	CX_EQT_RQ = 1,
	CX_EQT_SQ = 2,
	CX_EQT_DCT = 6,
};

/**
 * struct cx_eq - An event queue.
 * @obj: head; completion queues hold references.
 * @ring: memory of its entries, 64 bytes each.
 * @uar: page its doorbell has to be rung on.
 * @log_size: log2 of its entries.
 * @page_shift: log2 of the bytes of a page of @ring.
 * @pi: producer index: entries written, counts on.
 * @ci: consumer index, as the last doorbell says, 24 bits.
 * @vector: interrupt vector.
 * @events: types it gets: bit type % 64 of word type / 64; completions come without.
 * @armed: the next entry sends an interrupt.
 * @overrun: an event was lost since there was no room.
 */
struct cx_eq {
	struct cx_obj obj;
	struct cx_ring ring;
	u32 uar;
	u32 log_size;
	u32 page_shift;
	u32 pi;
	u32 ci;
	u32 vector;
	u64 events[4];
	bool armed;
	bool overrun;
};

/**
 * cx_eq_find() - Find an event queue.
 * @dev: device.
 * @eqn: its number.
 *
 * Return: the queue, or NULL.
 */
struct cx_eq *cx_eq_find(struct cx_dev *dev, u32 eqn);

/**
 * cx_eq_has_command_eq() - Whether some event queue wants completions of commands.
 * @dev: device.
 *
 * Return: true if one does; else commands are polled for.
 */
bool cx_eq_has_command_eq(struct cx_dev *dev);

/**
 * cx_eq_doorbell() - The driver consumed entries.
 * @dev: device.
 * @uar: page the doorbell was written to.
 * @val: eqn << 24 | consumer index.
 * @arm: send an interrupt for the next entry.
 */
void cx_eq_doorbell(struct cx_dev *dev, u32 uar, u32 val, bool arm);

/**
 * cx_eq_post() - Write one entry.
 * @dev: device.
 * @eq: event queue.
 * @type: event type.
 * @sub: event sub-type.
 * @data: 28 bytes of event data.
 */
void cx_eq_post(struct cx_dev *dev, struct cx_eq *eq, u8 type, u8 sub, const u8 *data);

/* event.c */
/**
 * cx_event_command() - Tell the driver that commands are done.
 * @dev: device.
 * @vector: one bit a queue entry.
 */
void cx_event_command(struct cx_dev *dev, u32 vector);

/**
 * cx_event_comp() - Notify of completions.
 * @dev: device.
 * @eq: event queue of the completion queue.
 * @cqn: number of the completion queue.
 */
void cx_event_comp(struct cx_dev *dev, struct cx_eq *eq, u32 cqn);

/**
 * cx_event_cq_error() - Tell the driver that a completion queue has failed.
 * @dev: device.
 * @cqn: its number.
 * @syndrome: why, as of the event's layout.
 */
void cx_event_cq_error(struct cx_dev *dev, u32 cqn, u8 syndrome);

/**
 * cx_event_queue() - An event of a QP, SQ, RQ or SRQ.
 * @dev: device.
 * @type: event.
 * @kind: kind of queue @num is.
 * @num: queue number.
 */
void cx_event_queue(struct cx_dev *dev, enum cx_event type, enum cx_event_queue kind, u32 num);

/**
 * cx_event_dct() - An event of a DC target.
 * @dev: device.
 * @type: event.
 * @dctn: number of the target.
 */
void cx_event_dct(struct cx_dev *dev, enum cx_event type, u32 dctn);

/**
 * cx_event_port() - Tell the driver of the state of the link.
 * @dev: device.
 * @sub: the state now.
 */
void cx_event_port(struct cx_dev *dev, enum cx_port_event sub);

/**
 * cx_event_vport() - Tell the driver that its vport's context has changed.
 * @dev: device.
 */
void cx_event_vport(struct cx_dev *dev);

#endif
