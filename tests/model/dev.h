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

#define CX_TYPE "connectx-model"
#define CX_BAR_BYTES (32u << 20)
#define CX_VF_BAR_BYTES (2u << 20)
#define CX_UAR_BYTES 4096u
#define CX_FIRST_UAR 16
#define CX_NR_VECTORS 32
#define CX_VF_NR_VECTORS 11

/**
 * struct cx_props - Properties of the device, as QEMU's command line sets them (README.md).
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
	bool grh_required;
	char *dc_refusal;
	char *pkeys;
};

/**
 * struct cx_dev - The device.
 */
struct cx_dev {
	PCIDevice parent;
	MemoryRegion bar;
	struct cx_props prop;
	bool eth;
	bool dc_silent; /* what no target takes is dropped, not refused */
	bool access_silent; /* what a key does not allow is dropped, not refused */
	struct { /* a target whose answers come one by one, so long after each other */
		u32 dctn; /* 0: none */
		u32 us;
		QEMUTimer *timer;
	} slow;
	bool failed; /* as real firmware after an internal error: does nothing more */
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
	u32 dc_conns; /* numbers given to DC connections: they rise, also over a restart */
	QEMUTimer *err_timer;
	QTAILQ_HEAD(, cx_qp) err_qps;
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
