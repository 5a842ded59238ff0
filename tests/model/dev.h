/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: the device: the PCI function with the state of all parts of the model.
 * Everything runs under QEMU's big lock; there are no threads of its own.
 */
#ifndef CX_DEV_H
#define CX_DEV_H

#include "types.h"
#include "hw/pci/pci.h"
#include "hw/pci/pcie.h"
#include "net/net.h"

#include "caps.h"
#include "cmd.h"
#include "counters.h"
#include "cq.h"
#include "dct.h"
#include "dma.h"
#include "eq.h"
#include "eth.h"
#include "fabric.h"
#include "fault.h"
#include "flow.h"
#include "ifc.h"
#include "mkey.h"
#include "obj.h"
#include "pd.h"
#include "port.h"
#include "qp.h"
#include "roce.h"
#include "sched.h"
#include "trace.h"
#include "uar.h"

#define CX_TYPE "connectx-model"
#define CX_BAR_BYTES (32u << 20)
#define CX_VF_BAR_BYTES (2u << 20)
#define CX_FIRST_UAR 16
#define CX_NR_VECTORS 32
#define CX_VF_NR_VECTORS 11

/**
 * struct cx_props - Properties of the device, as QEMU's command line sets them (README.md).
 * @node: number in the fabric, 1 to 65534; names socket, MAC and LID.
 * @link: "eth" or "ib"; NULL: "eth".
 * @fabric: folder of the network, NULL: alone.
 * @trace: file of the trace, NULL for none.
 * @trace_classes: what is traced, as cx_trace_open(); NULL for the default.
 * @counters: file that gets the counters at the end, NULL for none.
 * @mac: link address; all zero: from @node; of InfiniBand, from @lid.
 * @lid: LID; 0: @node.
 * @seed: of the faults.
 * @loss_ppm: share of the frames sent that are lost, per million.
 * @rx_loss_ppm: share of the frames that arrive and are lost, per million.
 * @dup_ppm: share of the frames sent that are doubled, per million.
 * @reorder_ppm: share of the frames sent that go after the next one, per million.
 * @delay_us: delay of every frame sent.
 * @jitter_us: random delay of every frame sent, below this.
 * @timeout_floor_ms: shortest acknowledgement time-out, whatever the queue says.
 * @cmd_delay_ms: a firmware command takes so long, one after the other.
 * @log_max_qp_sz: log2 of the entries that queues of a queue pair have at most.
 * @log_max_srq_sz: log2 of the entries that shared receive queues have at most.
 * @max_wqe_sz_sq: bytes that a send request has at most.
 * @max_wqe_sz_sq_dc: bytes that a send request of a DC initiator has at most.
 * @endless_timeout: an initiator's time-out of 0 is for ever, not @timeout_floor_ms.
 * @vf: it is a virtual function.
 * @dct: it has DC; false as an old adapter.
 * @blueflame: requests may be pushed through the doorbell register.
 * @grh_required: an InfiniBand port that takes no request without a network header.
 * @dc_refusal: "nak" or "silent": cx_dev.dc_silent; NULL: "nak".
 * @pkeys: table of P_Keys as cx_port_set_pkeys(), NULL for the default one alone.
 */
struct cx_props {
	u32 node;
	char *link;
	char *fabric;
	char *trace;
	char *trace_classes;
	char *counters;
	MACAddr mac;
	u16 lid;
	u32 seed;
	u32 loss_ppm;
	u32 rx_loss_ppm;
	u32 dup_ppm;
	u32 reorder_ppm;
	u32 delay_us;
	u32 jitter_us;
	u32 timeout_floor_ms;
	u32 cmd_delay_ms;
	u8 log_max_qp_sz;
	u8 log_max_srq_sz;
	u16 max_wqe_sz_sq;
	u16 max_wqe_sz_sq_dc;
	bool endless_timeout;
	bool vf;
	bool dct;
	bool blueflame;
	bool grh_required;
	char *dc_refusal;
	char *pkeys;
};

/**
 * struct cx_dev - The device.
 * @parent: PCI function of QEMU.
 * @bar: BAR 0: initialisation segment and doorbell pages.
 * @prop: properties; those that can be set while it runs are as they were set last.
 * @eth: RoCE and netdev; false: InfiniBand.
 * @dc_silent: what no target takes is dropped, not refused.
 * @access_silent: what a key does not allow is dropped, not refused.
 * @bf_apart: what is pushed never comes whole.
 * @bf_timer: ends the wait for the rest of a request in bf_begun.
 * @slow: a target whose answers come one by one, so long after each other.
 * @slow.dctn: its number, 0: none.
 * @slow.us: so long.
 * @slow.timer: when the next answer is due, if one waits.
 * @failed: as real firmware after an internal error: does nothing more.
 * @trace: text trace, for the whole life of the device.
 * @ctr: counters; they go on over a reset.
 * @cmd: command queue, and how far the driver has brought the function.
 * @caps: what it says it can do; SET_HCA_CAP changes some of it.
 * @port: the one port, its vport and its partitions.
 * @gid: GID table of RoCE, by index.
 * @ids: what the driver has created, by enum cx_space.
 * @fab: peers, and frames to itself.
 * @fault: faults asked for, and frames they hold back.
 * @sched: requesters and responders with something to send.
 * @mcg: members of multicast groups, struct cx_mcg; NULL unless the device is realised.
 * @flow_root: flow table that received frames start in, 0: none, they are dropped.
 * @dc_conns: numbers given to DC connections: they rise, also over a restart.
 * @err_timer: runs cx_qp_err_poll() while err_qps has any.
 */
struct cx_dev {
	PCIDevice parent;
	MemoryRegion bar;
	struct cx_props prop;
	bool eth;
	bool dc_silent;
	bool access_silent;
	bool bf_apart;
	QEMUTimer *bf_timer;
	struct {
		u32 dctn;
		u32 us;
		QEMUTimer *timer;
	} slow;
	bool failed;
	struct cx_trace trace;
	struct cx_counters ctr;
	struct cx_cmdif cmd;
	struct cx_caps caps;
	struct cx_port port;
	struct cx_gid gid[CX_ROCE_ENTRIES];
	struct cx_idtab ids[CX_NR_SPACES];
	struct cx_fabric fab;
	struct cx_fault fault;
	struct cx_sched sched;
	GArray *mcg;
	u32 flow_root;
	u32 dc_conns;
	QEMUTimer *err_timer;
	/* private: not for kernel-doc: in error, with a receive queue to be flushed on and on */
	QTAILQ_HEAD(, cx_qp) err_qps;
	/* private: not for kernel-doc: registers through which a part of a request came */
	QTAILQ_HEAD(, cx_bf) bf_begun;
};

/**
 * cx_dev_bar_bytes() - Size of the BAR.
 * @dev: device.
 *
 * Return: bytes; a virtual function has less.
 */
static inline u32 cx_dev_bar_bytes(const struct cx_dev *dev)
{
	return dev->prop.vf ? CX_VF_BAR_BYTES : CX_BAR_BYTES;
}

/**
 * cx_dev_vectors() - Number of interrupt vectors.
 * @dev: device.
 *
 * Return: the number; a virtual function has fewer.
 */
static inline u32 cx_dev_vectors(const struct cx_dev *dev)
{
	return dev->prop.vf ? CX_VF_NR_VECTORS : CX_NR_VECTORS;
}

/**
 * cx_dev_kick() - End of every entry into the device: let senders send, then flush.
 * @dev: device.
 */
void cx_dev_kick(struct cx_dev *dev);

/**
 * cx_dev_forget() - Forget all that a driver has created: at teardown, reset and unplug.
 * @dev: device.
 */
void cx_dev_forget(struct cx_dev *dev);

#endif
