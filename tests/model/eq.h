/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: event queues and what is written into them: completions of commands,
 * notifications of completion queues, asynchronous events.
 */
#ifndef CX_EQ_H
#define CX_EQ_H

#include "obj.h"
#include "dma.h"

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

enum cx_port_event {
	CX_PORT_DOWN = 1,
	CX_PORT_ACTIVE = 4,
};

/* type of the queue an event names */
enum cx_event_queue {
	CX_EQT_QP = 0,
	CX_EQT_RQ = 1,
	CX_EQT_SQ = 2,
	CX_EQT_DCT = 6,
};

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

struct cx_eq *cx_eq_find(struct cx_dev *dev, u32 eqn);
bool cx_eq_has_command_eq(struct cx_dev *dev);
void cx_eq_doorbell(struct cx_dev *dev, u32 uar, u32 val, bool arm);
void cx_eq_post(struct cx_dev *dev, struct cx_eq *eq, u8 type, u8 sub, const u8 *data);

/* event.c */
void cx_event_command(struct cx_dev *dev, u32 vector);
void cx_event_comp(struct cx_dev *dev, struct cx_eq *eq, u32 cqn);
void cx_event_cq_error(struct cx_dev *dev, u32 cqn, u8 syndrome);
void cx_event_queue(struct cx_dev *dev, enum cx_event type, enum cx_event_queue kind, u32 num);
void cx_event_dct(struct cx_dev *dev, enum cx_event type, u32 dctn);
void cx_event_port(struct cx_dev *dev, enum cx_port_event sub);
void cx_event_vport(struct cx_dev *dev);

#endif
