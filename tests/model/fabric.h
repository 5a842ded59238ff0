/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: the network between the devices. A fabric is a folder; every device
 * binds a UNIX datagram socket named after its node number in it and sends
 * straight to the sockets of the others, so there is no switch process and no
 * limit but file names on the number of nodes.
 */
#ifndef CX_FABRIC_H
#define CX_FABRIC_H

#include "pkt.h"

struct cx_peer;

struct cx_fabric {
	char *dir;
	int fd;
	GHashTable *peers; /* node -> struct cx_peer */
	GHashTable *where; /* link address -> node */
	QSIMPLEQ_HEAD(, cx_held_frame) inbox; /* to ourselves */
	u64 inbox_bytes;
	QEMUBH *bh;
	u8 *rx_buf;
};

struct cx_held_frame {
	QSIMPLEQ_ENTRY(cx_held_frame) link;
	s64 due_us;
	struct cx_frame frame;
};

int cx_fabric_open(struct cx_dev *dev, Error **errp);
void cx_fabric_close(struct cx_dev *dev);
void cx_fabric_send(struct cx_dev *dev, struct cx_frame *f);
void cx_fabric_route(struct cx_dev *dev, const struct cx_frame *f);
void cx_fabric_flush(struct cx_dev *dev);
bool cx_fabric_room(struct cx_dev *dev, const u8 *dst);
void cx_l2_from_lid(u8 *l2, u16 lid);
u16 cx_l2_lid(const u8 *l2);

#endif
