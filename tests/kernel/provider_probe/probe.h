/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: what the two files of the provider's test module share.
 */
#ifndef KRC_PROBE_H
#define KRC_PROBE_H

#include <linux/bitmap.h>
#include <linux/completion.h>
#include <linux/workqueue.h>

#include "hw/provider.h"
#include "krp_ioctl.h"

#define PROBE_DEPTH 100 /* no power of two on purpose */
#define PROBE_ACK_TIMEOUT 14 /* 67 ms */
#define PROBE_BYTES (512 * 1024)
#define PROBE_REMOTE (256 * 1024) /* the half that peers may reach */
#define PROBE_WORD (PROBE_BYTES - 4096) /* for atomics */
#define PROBE_RECV (PROBE_BYTES - 8192) /* struct probe_recv */
#define PROBE_BUFFERS 37 /* receive buffers; no power of two either */
#define PROBE_MESSAGE 4096 /* bytes of each */

/**
 * struct probe_recv - What a node says of its receives, in memory that peers reach.
 * @grant: written by the peer: buffers that may be posted in all.
 * @posted: buffers posted so far.
 * @received: messages that came, each with the pattern of its number.
 * @bad: messages with another.
 * @faults: buffers that came back without a message.
 * @receipts: upcalls that something was received.
 */
struct probe_recv {
	u32 grant;
	u32 posted;
	u32 received;
	u32 bad;
	u32 faults;
	u32 receipts;
};

/**
 * struct probe_peer - The other node.
 * @value: record of its target.
 * @gid: its GID.
 * @addr: address of its memory.
 * @rkey: key of its memory.
 * @ro_rkey: key of the same memory, for READs only.
 */
struct probe_peer {
	struct krp_value value;
	union ib_gid gid;
	u64 addr;
	u32 rkey;
	u32 ro_rkey;
};

/**
 * struct probe - This node.
 * @ops: provider.
 * @ibdev: device.
 * @hw: open device.
 * @attr: of the device.
 * @gid_index: our GID.
 * @value: record of our target.
 * @target: our target.
 * @ini: an initiator.
 * @address: of the peer.
 * @peer: the peer.
 * @key: of all memory, every right.
 * @ro_key: READ by peers only; no local writing.
 * @buf: memory.
 * @dma: its address.
 * @recv: memory of the receive buffers.
 * @recv_dma: its address.
 * @recv_key: its key.
 * @receive: work item that receives.
 * @free: of its buffers, those that are not posted.
 * @receipts: upcalls that something was received.
 * @closing: nothing is received any more.
 * @comp: an upcall came.
 * @upcalls: how many.
 * @fatal: how many upcalls said that something died.
 * @cookie: of the next request.
 * @result: outcome, for diagnostics.
 */
struct probe {
	const struct krc_provider_ops *ops;
	struct ib_device *ibdev;
	struct krc_hw *hw;
	struct krc_hw_attr attr;
	u16 gid_index;
	struct krp_value value;
	struct krc_hw_target *target;
	struct krc_hw_initiator *ini;
	struct krc_hw_address address;
	struct probe_peer peer;
	struct krc_hw_key key;
	struct krc_hw_key ro_key;
	u8 *buf;
	dma_addr_t dma;
	u8 *recv;
	dma_addr_t recv_dma;
	struct krc_hw_key recv_key;
	struct delayed_work receive;
	DECLARE_BITMAP(free, PROBE_BUFFERS);
	atomic_t receipts;
	bool closing;
	struct completion comp;
	atomic_t upcalls;
	atomic_t fatal;
	u64 cookie;
	char result[256];
};

/**
 * probe_initiator() - Make an initiator for READs, WRITEs and atomics.
 * @p: node.
 * @port: port.
 * @depth: most outstanding requests.
 * @vector: completion vector.
 *
 * Context: may sleep.
 * Return: it, or ERR_PTR().
 */
static inline struct krc_hw_initiator *probe_initiator(struct probe *p, u32 port, u32 depth,
						       u32 vector)
{
	const struct krc_hw_send send = {
		.depth = depth, .ack_timeout = PROBE_ACK_TIMEOUT, .vector = vector, .owner = p
	};

	return p->ops->initiator_create(p->hw, port, p->gid_index, &send);
}

/**
 * probe_receive() - Take what was received, post what the peer has granted; then again soon.
 * @work: @p->receive.
 *
 * The only user of the target's receives. Context: work item.
 */
void probe_receive(struct work_struct *work);

/**
 * probe_run() - All tests against the peer.
 * @p: node; @p->result says how it went.
 *
 * Context: may sleep, for minutes.
 */
void probe_run(struct probe *p);

/**
 * probe_loop() - READ until an upcall says that something died, then reset and READ once more.
 * @p: node.
 * @stop: end it, the device goes.
 *
 * Context: may sleep, killable.
 */
void probe_loop(struct probe *p, const bool *stop);

/**
 * probe_umem() - The test of user memory, which the calling process brings.
 * @p: node.
 * @addr: address in the process.
 * @bytes: how much.
 * @pages: pages that one key may list; 0: as many as usual.
 *
 * Context: may sleep.
 */
void probe_umem(struct probe *p, u64 addr, u64 bytes, u32 pages);

#endif /* KRC_PROBE_H */
