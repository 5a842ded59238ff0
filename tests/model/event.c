// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: the contents of the events. An asynchronous event goes to every event
 * queue that was created with its bit set. Runs under QEMU's big lock.
 */
#include "dev.h"

#define CX_EVENT_DATA 28

static void cx_event_post(struct cx_dev *dev, u8 type, u8 sub, const u8 *data)
{
	struct cx_eq *eq;
	u32 pos = 0;

	while ((eq = cx_obj_next(dev, CX_SP_EQ, &pos))) {
		if (eq->events[type / 64] & 1ull << (type % 64))
			cx_eq_post(dev, eq, type, sub, data);
	}
}

void cx_event_command(struct cx_dev *dev, u32 vector)
{
	u8 data[CX_EVENT_DATA] = { 0 };

	stl_be_p(data, vector);
	cx_event_post(dev, CX_EV_CMD, 0, data);
}

void cx_event_comp(struct cx_dev *dev, struct cx_eq *eq, u32 cqn)
{
	u8 data[CX_EVENT_DATA] = { 0 };

	stl_be_p(data + 24, cqn);
	cx_eq_post(dev, eq, CX_EV_COMP, 0, data);
}

void cx_event_cq_error(struct cx_dev *dev, u32 cqn, u8 syndrome)
{
	u8 data[CX_EVENT_DATA] = { 0 };

	stl_be_p(data, cqn);
	data[11] = syndrome;
	cx_count(dev, CX_CTR_EVENTS, 1);
	cx_trace(dev, CX_TR_EVENT, "CQ 0x%x error 0x%x", cqn, syndrome);
	cx_event_post(dev, CX_EV_CQ_ERROR, 0, data);
}

void cx_event_queue(struct cx_dev *dev, enum cx_event type, enum cx_event_queue kind, u32 num)
{
	u8 data[CX_EVENT_DATA] = { 0 };

	data[20] = kind;
	stl_be_p(data + 24, num);
	cx_count(dev, CX_CTR_EVENTS, 1);
	cx_trace(dev, CX_TR_EVENT, "event 0x%x of queue type %u 0x%x", type, kind, num);
	cx_event_post(dev, type, 0, data);
}

void cx_event_dct(struct cx_dev *dev, enum cx_event type, u32 dctn)
{
	u8 data[CX_EVENT_DATA] = { 0 };

	stl_be_p(data + 24, dctn);
	cx_count(dev, CX_CTR_EVENTS, 1);
	cx_trace(dev, CX_TR_EVENT, "event 0x%x of DCT 0x%x", type, dctn);
	cx_event_post(dev, type, 0, data);
}

void cx_event_port(struct cx_dev *dev, enum cx_port_event sub)
{
	u8 data[CX_EVENT_DATA] = { 0 };

	data[8] = 1 << 4;
	cx_count(dev, CX_CTR_EVENTS, 1);
	cx_trace(dev, CX_TR_EVENT, "port %s", sub == CX_PORT_ACTIVE ? "active" : "down");
	cx_event_post(dev, CX_EV_PORT_CHANGE, sub, data);
}

void cx_event_vport(struct cx_dev *dev)
{
	u8 data[CX_EVENT_DATA] = { 0 };

	cx_count(dev, CX_CTR_EVENTS, 1);
	cx_event_post(dev, CX_EV_NIC_VPORT_CHANGE, 0, data);
}
