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

/**
 * struct cx_fabric - A device's end of the fabric.
 * @dir: folder, "" for none; owned.
 * @fd: socket that frames come from, -1 without a fabric.
 * @peers: node -> struct cx_peer, owned; NULL before cx_fabric_open().
 * @where: link address -> node + 1, as learnt from frames.
 * @inbox_bytes: over all frames there.
 * @bh: delivers them.
 * @rx_buf: room for a datagram of frames.
 */
struct cx_fabric {
	char *dir;
	int fd;
	GHashTable *peers;
	GHashTable *where;
	/* private: not for kernel-doc: frames to ourselves, the oldest first; owned */
	QSIMPLEQ_HEAD(, cx_held_frame) inbox;
	/* public: */
	u64 inbox_bytes;
	QEMUBH *bh;
	u8 *rx_buf;
};

/**
 * struct cx_held_frame - A frame that waits.
 * @link: in the list it waits in.
 * @due_us: when it goes, in us of the virtual clock; not used for frames to ourselves.
 * @frame: the frame; its data are behind it.
 */
struct cx_held_frame {
	QSIMPLEQ_ENTRY(cx_held_frame) link;
	s64 due_us;
	struct cx_frame frame;
};

/**
 * cx_fabric_open() - Join the fabric.
 * @dev: device.
 * @errp: filled on failure.
 *
 * Without a fabric property the device is alone and talks only to itself.
 *
 * Return: 0 or a negative errno.
 */
int cx_fabric_open(struct cx_dev *dev, Error **errp);

/**
 * cx_fabric_close() - Leave the fabric.
 * @dev: device.
 *
 * Frames that wait are lost. Does nothing if it was never joined.
 */
void cx_fabric_close(struct cx_dev *dev);

/**
 * cx_fabric_send() - Send a frame, subject to link state and faults.
 * @dev: device.
 * @f: frame; @node is filled here.
 */
void cx_fabric_send(struct cx_dev *dev, struct cx_frame *f);

/**
 * cx_fabric_route() - Put a frame into the queue of its peer.
 * @dev: device.
 * @f: frame.
 */
void cx_fabric_route(struct cx_dev *dev, const struct cx_frame *f);

/**
 * cx_fabric_flush() - Give all waiting frames to the kernel; every entry into the device ends so.
 * @dev: device.
 */
void cx_fabric_flush(struct cx_dev *dev);

/**
 * cx_fabric_room() - Whether a sender that can wait may send to an address now.
 * @dev: device.
 * @dst: link address, 6 bytes.
 *
 * Return: false if the queue to it is full; cx_sched_unpark() follows when it is not any more.
 */
bool cx_fabric_room(struct cx_dev *dev, const u8 *dst);

/**
 * cx_l2_from_lid() - Link address of a LID.
 * @l2: out: 6 bytes.
 * @lid: LID.
 */
void cx_l2_from_lid(u8 *l2, u16 lid);

/**
 * cx_l2_lid() - LID of a link address.
 * @l2: 6 bytes.
 *
 * Return: the LID.
 */
u16 cx_l2_lid(const u8 *l2);

#endif
