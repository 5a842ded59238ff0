// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: the PCI function: BARs, MSI-X, properties, reset, unplug;
 * and the refusal to run in a QEMU this object was not compiled for.
 * The object is preloaded into QEMU and adds a device type, as QEMU's own
 * loadable modules do. Runs under QEMU's big lock.
 */
#include "dev.h"
#include "hw/pci/msix.h"
#include "hw/qdev-properties.h"
#include "hw/qdev-properties-system.h"
#include "migration/vmstate.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "qemu/main-loop.h"
#include "qemu/module.h"

DECLARE_INSTANCE_CHECKER(struct cx_dev, CX, CX_TYPE)

#define CX_VENDOR 0x15b3
#define CX_DEVICE_PF 0x1017
#define CX_DEVICE_VF 0x1018
#define CX_FW_MAJOR 16
#define CX_FW_MINOR 35
#define CX_FW_SUBMINOR 2000
#define CX_CMDIF_REV 5

/* offsets in the initialisation segment */
enum {
	CX_IS_FW_REV = 0x0,
	CX_IS_CMDIF_REV = 0x4,
	CX_IS_CMDQ_HI = 0x10,
	CX_IS_CMDQ_LO = 0x14,
	CX_IS_DOORBELL = 0x18,
	CX_IS_INITIALIZING = 0x1fc,
	CX_IS_TIMER_HI = 0x1000,
	CX_IS_TIMER_LO = 0x1004,
	CX_IS_HEALTH_COUNTER = 0x1010,
};

/* what the driver may do with the function: bits 10..8 of CX_IS_CMDQ_LO */
enum {
	CX_NIC_FULL = 0,
	CX_NIC_DISABLED = 1,
};

void cx_dev_kick(struct cx_dev *dev)
{
	cx_sched_run(dev);
	cx_fabric_flush(dev);
}

void cx_dev_forget(struct cx_dev *dev)
{
	cx_obj_wipe(dev);
	timer_del(dev->err_timer);
	timer_del(dev->slow.timer);
	dev->flow_root = 0;
	memset(dev->gid, 0, sizeof(dev->gid));
	g_array_set_size(dev->mcg, 0);
}

/* ---- MMIO */

static u64 cx_mmio_read(void *opaque, hwaddr addr, unsigned int size)
{
	struct cx_dev *dev = opaque;
	u64 now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);

	switch (addr) {
	case CX_IS_FW_REV:
		return CX_FW_MAJOR | CX_FW_MINOR << 16;
	case CX_IS_CMDIF_REV:
		return CX_CMDIF_REV << 16 | CX_FW_SUBMINOR;
	case CX_IS_CMDQ_HI:
		return dev->cmd.queue >> 32;
	case CX_IS_CMDQ_LO:
		return (dev->cmd.queue & 0xfffff000) |
		       (dev->failed ? CX_NIC_DISABLED : CX_NIC_FULL) << 8 |
		       CX_CMD_LOG_ENTRIES << 4 | CX_CMD_LOG_STRIDE;
	case CX_IS_INITIALIZING:
		return 0;
	case CX_IS_TIMER_HI:
		return now >> 32;
	case CX_IS_TIMER_LO:
		return (u32)now;
	case CX_IS_HEALTH_COUNTER: /* has to advance, or the driver sees a dead device */
		return now / 10000000 & 0xffffff;
	default:
		return 0;
	}
}

static void cx_mmio_write(void *opaque, hwaddr addr, u64 val, unsigned int size)
{
	struct cx_dev *dev = opaque;

	if (dev->failed && addr != CX_IS_CMDQ_HI && addr != CX_IS_CMDQ_LO)
		return;
	switch (addr) {
	case CX_IS_CMDQ_HI:
		dev->cmd.queue = (dev->cmd.queue & UINT32_MAX) | val << 32;
		break;
	case CX_IS_CMDQ_LO:
		/* the driver begins anew */
		if ((val >> 8 & 7) == CX_NIC_FULL)
			dev->failed = false;
		dev->cmd.queue = (dev->cmd.queue & ~(u64)UINT32_MAX) | (val & 0xfffff000);
		break;
	case CX_IS_DOORBELL:
		cx_cmd_doorbell(dev, val);
		break;
	default:
		if (addr >= CX_FIRST_UAR * CX_UAR_BYTES)
			cx_uar_write(dev, addr, val, size);
		break;
	}
	cx_dev_kick(dev);
}

static const MemoryRegionOps cx_mmio_ops = {
	.read = cx_mmio_read,
	.write = cx_mmio_write,
	.endianness = DEVICE_BIG_ENDIAN,
	.valid = { .min_access_size = 1, .max_access_size = 8 },
	.impl = { .min_access_size = 1, .max_access_size = 8 },
};

/* ---- life */

/* what the adapter says it takes at most */
static int cx_check_limits(struct cx_dev *dev, Error **errp)
{
	const struct {
		const char *name;
		u32 val;
		u32 least;
		u32 most;
	} limit[] = {
		{ "log_max_qp_sz", dev->prop.log_max_qp_sz, 1, CX_LOG_MAX_QUEUE },
		{ "log_max_srq_sz", dev->prop.log_max_srq_sz, 1, CX_LOG_MAX_QUEUE },
		{ "max_wqe_sz_sq", dev->prop.max_wqe_sz_sq, CX_WQE_BB, CX_MAX_SQ_WQE_BYTES },
		{ "max_wqe_sz_sq_dc", dev->prop.max_wqe_sz_sq_dc, CX_WQE_BB, CX_MAX_SQ_WQE_BYTES },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(limit); i++) {
		if (limit[i].val >= limit[i].least && limit[i].val <= limit[i].most)
			continue;
		error_setg(errp, "%s: %u is not in %u..%u", limit[i].name, limit[i].val,
			   limit[i].least, limit[i].most);
		return -EINVAL;
	}
	return 0;
}

static int cx_check_props(struct cx_dev *dev, Error **errp)
{
	const char *link = dev->prop.link ? dev->prop.link : "eth";
	const char *refusal = dev->prop.dc_refusal ? dev->prop.dc_refusal : "nak";
	const char *pkeys = dev->prop.pkeys ? dev->prop.pkeys : CX_PKEYS_DEFAULT;

	if (strcmp(refusal, "nak") && strcmp(refusal, "silent")) {
		error_setg(errp, "dc_refusal: '%s' is neither nak nor silent", refusal);
		return -EINVAL;
	}
	dev->dc_silent = !strcmp(refusal, "silent");
	if (cx_port_set_pkeys(dev, pkeys)) {
		error_setg(errp, "pkeys: '%s' is not a list of at most %u P_Keys", pkeys,
			   CX_NR_PKEYS);
		return -EINVAL;
	}
	if (strcmp(link, "eth") && strcmp(link, "ib")) {
		error_setg(errp, "link: '%s' is neither eth nor ib", link);
		return -EINVAL;
	}
	dev->eth = !strcmp(link, "eth");
	if (dev->eth && dev->prop.grh_required) {
		error_setg(errp, "grh_required: an Ethernet port has no packet without one");
		return -EINVAL;
	}
	if (!dev->prop.node || dev->prop.node > 0xfffe) {
		error_setg(errp, "node: %u is not in 1..65534", dev->prop.node);
		return -EINVAL;
	}
	if (!dev->prop.lid)
		dev->prop.lid = dev->prop.node;
	if (dev->prop.loss_ppm > CX_PPM || dev->prop.rx_loss_ppm > CX_PPM ||
	    dev->prop.dup_ppm > CX_PPM || dev->prop.reorder_ppm > CX_PPM) {
		error_setg(errp, "loss_ppm, rx_loss_ppm, dup_ppm, reorder_ppm: more than %u",
			   CX_PPM);
		return -EINVAL;
	}
	if (!dev->eth) {
		/* the link address of an InfiniBand port is its LID */
		cx_l2_from_lid(dev->prop.mac.a, dev->prop.lid);
	} else if (buffer_is_zero(dev->prop.mac.a, 6)) {
		memcpy(dev->prop.mac.a, (u8[]){ 0x02, 0xc9, 0x03, 0, 0, 0 }, 6);
		stw_be_p(dev->prop.mac.a + 4, dev->prop.node);
	}
	return 0;
}

static void cx_init_parts(struct cx_dev *dev)
{
	QTAILQ_INIT(&dev->err_qps);
	dev->slow.timer = timer_new_us(QEMU_CLOCK_VIRTUAL, cx_resp_slow_over, dev);
	dev->err_timer = timer_new_ms(QEMU_CLOCK_VIRTUAL, cx_qp_err_poll, dev);
	dev->mcg = g_array_new(FALSE, FALSE, sizeof(struct cx_mcg));
	/* targets may still know a device of this node that was there before */
	dev->dc_conns = g_get_monotonic_time() / 10;
	cx_counters_init(dev);
	cx_cmd_init(dev);
	cx_obj_init(dev);
	cx_uar_init(dev);
	cx_sched_init(dev);
	cx_fault_init(dev);
	cx_port_init(dev);
	cx_caps_init(dev);
}

static int cx_init_pci(struct cx_dev *dev, Error **errp)
{
	PCIDevice *p = &dev->parent;
	int i;

	if (dev->prop.vf)
		pci_config_set_device_id(p->config, CX_DEVICE_VF);
	if (pcie_endpoint_cap_init(p, 0x60) < 0) {
		error_setg(errp, "cannot add the PCI Express capability");
		return -EINVAL;
	}
	pcie_cap_flr_init(p);
	memory_region_init_io(&dev->bar, OBJECT(dev), &cx_mmio_ops, dev, CX_TYPE,
			      cx_dev_bar_bytes(dev));
	pci_register_bar(p, 0, PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH,
			 &dev->bar);
	if (msix_init_exclusive_bar(p, cx_dev_vectors(dev), 2, errp))
		return -EINVAL;
	for (i = 0; i < cx_dev_vectors(dev); i++)
		msix_vector_use(p, i);
	return 0;
}

static void cx_exit(PCIDevice *p)
{
	struct cx_dev *dev = CX(p);

	if (!dev->mcg)
		return;
	cx_dev_forget(dev);
	if (dev->prop.counters)
		cx_counters_save(dev, dev->prop.counters);
	cx_fabric_close(dev);
	cx_fault_fini(dev);
	cx_sched_fini(dev);
	cx_uar_fini(dev);
	cx_cmd_fini(dev);
	cx_counters_fini(dev);
	g_array_free(dev->mcg, TRUE);
	dev->mcg = NULL;
	timer_free(dev->err_timer);
	timer_free(dev->slow.timer);
	if (msix_present(p))
		msix_uninit_exclusive_bar(p);
	cx_trace_close(dev);
}

static void cx_at_exit(void);
static GList *cx_alive; /* devices, for the counters at the end of QEMU */

static void cx_realize(PCIDevice *p, Error **errp)
{
	struct cx_dev *dev = CX(p);

	if (cx_check_props(dev, errp) || cx_check_limits(dev, errp) ||
	    cx_trace_open(dev, dev->prop.trace, dev->prop.trace_classes, errp))
		return;
	cx_init_parts(dev);
	if (cx_fabric_open(dev, errp) || cx_init_pci(dev, errp)) {
		cx_exit(p);
		return;
	}
	if (!cx_alive)
		atexit(cx_at_exit);
	cx_alive = g_list_prepend(cx_alive, dev);
}

static void cx_unplug(PCIDevice *p)
{
	cx_alive = g_list_remove(cx_alive, CX(p));
	cx_exit(p);
}

static void cx_at_exit(void)
{
	GList *at;

	for (at = cx_alive; at; at = at->next) {
		struct cx_dev *dev = at->data;

		if (dev->prop.counters)
			cx_counters_save(dev, dev->prop.counters);
	}
}

static void cx_reset(DeviceState *qdev)
{
	struct cx_dev *dev = CX(qdev);

	cx_trace(dev, CX_TR_EVENT, "function reset");
	dev->failed = false;
	cx_dev_forget(dev);
	cx_cmd_reset(dev);
	cx_caps_init(dev);
	dev->port.admin_up = true;
	dev->port.active = cx_port_up(dev);
	dev->port.nr_mc = 0;
	dev->port.promisc = 0;
}

static void cx_config_write(PCIDevice *p, u32 addr, u32 val, int len)
{
	pci_default_write_config(p, addr, val, len);
	pcie_cap_flr_write_config(p, addr, val, len);
}

/* ---- properties */

static Property cx_properties[] = {
	DEFINE_PROP_UINT32("node", struct cx_dev, prop.node, 1),
	DEFINE_PROP_STRING("link", struct cx_dev, prop.link),
	DEFINE_PROP_STRING("fabric", struct cx_dev, prop.fabric),
	DEFINE_PROP_STRING("trace", struct cx_dev, prop.trace),
	DEFINE_PROP_STRING("trace_classes", struct cx_dev, prop.trace_classes),
	DEFINE_PROP_STRING("counters_file", struct cx_dev, prop.counters),
	DEFINE_PROP_MACADDR("mac", struct cx_dev, prop.mac),
	DEFINE_PROP_UINT16("lid", struct cx_dev, prop.lid, 0),
	DEFINE_PROP_UINT32("seed", struct cx_dev, prop.seed, 1),
	DEFINE_PROP_UINT32("timeout_floor_ms", struct cx_dev, prop.timeout_floor_ms, 500),
	DEFINE_PROP_UINT8("log_max_qp_sz", struct cx_dev, prop.log_max_qp_sz, CX_LOG_MAX_QUEUE),
	DEFINE_PROP_UINT8("log_max_srq_sz", struct cx_dev, prop.log_max_srq_sz, CX_LOG_MAX_QUEUE),
	DEFINE_PROP_UINT16("max_wqe_sz_sq", struct cx_dev, prop.max_wqe_sz_sq, CX_MAX_SQ_WQE_BYTES),
	DEFINE_PROP_UINT16("max_wqe_sz_sq_dc", struct cx_dev, prop.max_wqe_sz_sq_dc,
			   CX_MAX_SQ_WQE_BYTES),
	DEFINE_PROP_BOOL("endless_timeout", struct cx_dev, prop.endless_timeout, false),
	DEFINE_PROP_BOOL("vf", struct cx_dev, prop.vf, false),
	DEFINE_PROP_BOOL("dct", struct cx_dev, prop.dct, true),
	DEFINE_PROP_BOOL("blueflame", struct cx_dev, prop.blueflame, false),
	DEFINE_PROP_BOOL("grh_required", struct cx_dev, prop.grh_required, false),
	DEFINE_PROP_STRING("dc_refusal", struct cx_dev, prop.dc_refusal),
	DEFINE_PROP_STRING("pkeys", struct cx_dev, prop.pkeys),
	DEFINE_PROP_END_OF_LIST(),
};

/* settable while the guest runs, by qom-set */
static const struct cx_live_u32 {
	const char *name;
	size_t initial; /* in struct cx_props */
	size_t live; /* in struct cx_fault */
	u32 max;
} cx_live[] = {
#define CX_LIVE(f, max) \
	{ \
#f, offsetof(struct cx_props, f), offsetof(struct cx_fault, f), max \
	}
	CX_LIVE(loss_ppm, CX_PPM),     CX_LIVE(rx_loss_ppm, CX_PPM), CX_LIVE(dup_ppm, CX_PPM),
	CX_LIVE(reorder_ppm, CX_PPM),  CX_LIVE(delay_us, 10000000),  CX_LIVE(jitter_us, 10000000),
	CX_LIVE(cmd_delay_ms, 600000),
};

static void cx_live_get(Object *obj, Visitor *v, const char *name, void *opaque, Error **errp)
{
	const struct cx_live_u32 *l = opaque;

	visit_type_uint32(v, name, (u32 *)((u8 *)&CX(obj)->fault + l->live), errp);
}

static void cx_live_set(Object *obj, Visitor *v, const char *name, void *opaque, Error **errp)
{
	const struct cx_live_u32 *l = opaque;
	struct cx_dev *dev = CX(obj);
	u32 val;

	if (!visit_type_uint32(v, name, &val, errp))
		return;
	if (val > l->max) {
		error_setg(errp, "%s: %u is more than %u", name, val, l->max);
		return;
	}
	*(u32 *)((u8 *)&dev->prop + l->initial) = val;
	*(u32 *)((u8 *)&dev->fault + l->live) = val;
}

static bool cx_link_get(Object *obj, Error **errp)
{
	return CX(obj)->port.cable;
}

static void cx_link_set(Object *obj, bool up, Error **errp)
{
	struct cx_dev *dev = CX(obj);

	dev->port.cable = up;
	cx_port_update(dev);
	cx_dev_kick(dev);
}

/* as firmware may do: a key gets the index of one that was just destroyed */
static bool cx_reuse_get(Object *obj, Error **errp)
{
	return CX(obj)->ids[CX_SP_MKEY].thrifty;
}

static void cx_reuse_set(Object *obj, bool reuse, Error **errp)
{
	CX(obj)->ids[CX_SP_MKEY].thrifty = reuse;
}

/* as on a host that does not combine writes: no request comes whole */
static bool cx_apart_get(Object *obj, Error **errp)
{
	return CX(obj)->bf_apart;
}

static void cx_apart_set(Object *obj, bool apart, Error **errp)
{
	CX(obj)->bf_apart = apart;
}

/* as no firmware does: a host that answers all but what it refuses */
static bool cx_mute_get(Object *obj, Error **errp)
{
	return CX(obj)->access_silent;
}

static void cx_mute_set(Object *obj, bool silent, Error **errp)
{
	CX(obj)->access_silent = silent;
}

/* a target of a host that is slow, or means harm */
static void cx_slow_set(struct cx_dev *dev, u32 *what, Visitor *v, const char *name, Error **errp)
{
	if (visit_type_uint32(v, name, what, errp) && dev->mcg)
		cx_resp_slow_over(dev); /* what it holds back */
}

static void cx_slow_dct_set(Object *obj, Visitor *v, const char *name, void *opaque, Error **errp)
{
	cx_slow_set(CX(obj), &CX(obj)->slow.dctn, v, name, errp);
}

static void cx_slow_us_set(Object *obj, Visitor *v, const char *name, void *opaque, Error **errp)
{
	cx_slow_set(CX(obj), &CX(obj)->slow.us, v, name, errp);
}

static bool cx_failed_get(Object *obj, Error **errp)
{
	return CX(obj)->failed;
}

/* an internal error: all is lost, and the driver may see why nothing answers */
static void cx_failed_set(Object *obj, bool failed, Error **errp)
{
	struct cx_dev *dev = CX(obj);

	if (!failed || !dev->mcg) {
		error_setg(errp, "failed: only a reset or the driver makes it work again");
		return;
	}
	cx_trace(dev, CX_TR_FAULT, "internal error");
	cx_reset(DEVICE(obj));
	dev->failed = true;
}

/* a number of a queue pair: break it */
static void cx_break_qp_set(Object *obj, Visitor *v, const char *name, void *opaque, Error **errp)
{
	struct cx_dev *dev = CX(obj);
	u32 qpn;

	if (!visit_type_uint32(v, name, &qpn, errp))
		return;
	if (!dev->mcg || cx_qp_break(dev, qpn))
		error_setg(errp, "break_qp: there is no queue pair 0x%x", qpn);
	else
		cx_dev_kick(dev);
}

/* a number of receive requests: forget them */
static void cx_drop_receives_set(Object *obj, Visitor *v, const char *name, void *opaque,
				 Error **errp)
{
	struct cx_dev *dev = CX(obj);
	u32 nr;

	if (!visit_type_uint32(v, name, &nr, errp))
		return;
	if (!dev->mcg || cx_srq_drop(dev, nr))
		error_setg(errp, "drop_receives: no shared receive queue has %u entries", nr);
}

static char *cx_counters_get(Object *obj, Error **errp)
{
	return CX(obj)->ctr.ops ? cx_counters_text(CX(obj)) : g_strdup("{}");
}

static char *cx_partition_get(Object *obj, Error **errp)
{
	GString *s = g_string_new(NULL);
	u32 node;

	for (node = 0; node <= 0xffff; node++) {
		if (cx_fault_partitioned(CX(obj), node))
			g_string_append_printf(s, "%s%u", s->len ? "," : "", node);
	}
	return g_string_free(s, FALSE);
}

static void cx_partition_set(Object *obj, const char *nodes, Error **errp)
{
	if (cx_fault_set_partition(CX(obj), nodes))
		error_setg(errp, "partition: '%s' is not a list of nodes", nodes);
}

/* write the counters to a file now */
static void cx_dump_set(Object *obj, const char *path, Error **errp)
{
	if (cx_counters_save(CX(obj), path))
		error_setg(errp, "dump_counters: cannot write '%s'", path);
}

#ifndef CX_MISFIT_BYTES
#define CX_MISFIT_BYTES 0 /* connectx-misfit.so, for the test of the following, has more */
#endif

/*
 * The sizes this object was compiled with against those of the QEMU it runs
 * in. Looked at when the class is made: all of QEMU's types are known then.
 */
static void cx_check_qemu(void)
{
	static const struct {
		const char *type;
		size_t size;
	} expect[] = {
		{ TYPE_DEVICE, sizeof(DeviceState) },
		{ TYPE_PCI_DEVICE, sizeof(PCIDevice) + CX_MISFIT_BYTES },
	};
	size_t i, real;

	for (i = 0; i < ARRAY_SIZE(expect); i++) {
		real = object_type_get_instance_size(expect[i].type);
		if (real == expect[i].size)
			continue;
		fprintf(stderr,
			CX_TYPE ": this object was built for qemu-system-x86 " CX_QEMU_VERSION
				", but in this QEMU '%s' has %zu bytes instead of %zu.\n"
				"Install that version, or build the model again with "
				"tests/model/tools/prepare-headers.sh for the installed one.\n",
			expect[i].type, real, expect[i].size);
		exit(1);
	}
}

/* a snapshot would lose the state: QEMU refuses it instead */
static const VMStateDescription cx_vmstate = {
	.name = CX_TYPE,
	.unmigratable = 1,
};

static void cx_class_init(ObjectClass *klass, void *data)
{
	PCIDeviceClass *k = PCI_DEVICE_CLASS(klass);
	DeviceClass *dc = DEVICE_CLASS(klass);
	u32 i;

	cx_check_qemu();
	k->realize = cx_realize;
	k->exit = cx_unplug;
	k->config_write = cx_config_write;
	k->vendor_id = CX_VENDOR;
	k->device_id = CX_DEVICE_PF;
	k->subsystem_vendor_id = CX_VENDOR;
	k->class_id = PCI_CLASS_NETWORK_ETHERNET;
	dc->desc = "model of a ConnectX network adapter";
	dc->reset = cx_reset;
	dc->vmsd = &cx_vmstate;
	dc->user_creatable = true;
	dc->hotpluggable = true;
	device_class_set_props(dc, cx_properties);
	set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
	for (i = 0; i < ARRAY_SIZE(cx_live); i++)
		object_class_property_add(klass, cx_live[i].name, "uint32", cx_live_get,
					  cx_live_set, NULL, (void *)&cx_live[i]);
	object_class_property_add_bool(klass, "link_up", cx_link_get, cx_link_set);
	object_class_property_add_bool(klass, "reuse_mkeys", cx_reuse_get, cx_reuse_set);
	object_class_property_add_bool(klass, "writes_apart", cx_apart_get, cx_apart_set);
	object_class_property_add_bool(klass, "access_silent", cx_mute_get, cx_mute_set);
	object_class_property_add_bool(klass, "failed", cx_failed_get, cx_failed_set);
	object_class_property_add(klass, "break_qp", "uint32", NULL, cx_break_qp_set, NULL, NULL);
	object_class_property_add(klass, "slow_dct", "uint32", NULL, cx_slow_dct_set, NULL, NULL);
	object_class_property_add(klass, "slow_us", "uint32", NULL, cx_slow_us_set, NULL, NULL);
	object_class_property_add(klass, "drop_receives", "uint32", NULL, cx_drop_receives_set,
				  NULL, NULL);
	object_class_property_add_str(klass, "counters", cx_counters_get, NULL);
	object_class_property_add_str(klass, "partition", cx_partition_get, cx_partition_set);
	object_class_property_add_str(klass, "dump_counters", NULL, cx_dump_set);
}

static InterfaceInfo cx_interfaces[] = { { INTERFACE_PCIE_DEVICE }, {} };

static const TypeInfo cx_type = {
	.name = CX_TYPE,
	.parent = TYPE_PCI_DEVICE,
	.instance_size = sizeof(struct cx_dev),
	.class_init = cx_class_init,
	.interfaces = cx_interfaces,
};

/* ---- registration */

static void cx_register(void)
{
	/* a program that QEMU starts (exec:) has none of the symbols this object wants */
	unsetenv("LD_PRELOAD");
	type_register_static(&cx_type);
}

type_init(cx_register)
