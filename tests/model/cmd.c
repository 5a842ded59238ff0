// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: transport of the commands. A doorbell bit names a queue entry; the
 * entry holds the first 16 bytes of input and output and the addresses of
 * mailbox chains with the rest. Commands run to completion in the doorbell, or,
 * if they are to be slow, one after the other, each at the end of its time.
 * A refused command returns a status and a syndrome; the syndrome is a hash of
 * the reason, whose text is in the trace.
 * Runs under QEMU's big lock.
 */
#include "dev.h"

struct cx_cmd_entry {
	u8 type;
	u8 rsvd0[3];
	u32 inlen;
	u64 in_ptr;
	u8 in[16];
	u8 out[16];
	u64 out_ptr;
	u32 outlen;
	u8 token;
	u8 sig;
	u8 rsvd1;
	u8 status_own;
} __packed;

#define CX_CMD_TYPE_PCI 0x7
#define CX_CMD_OWN_HW 0x1

struct cx_mailbox {
	u8 data[512];
	u8 rsvd0[48];
	u64 next;
	u32 block_nr;
	u8 rsvd1;
	u8 token;
	u8 ctrl_sig;
	u8 sig;
} __packed;

/* delivery status: bits 7..1 of the ownership byte */
enum cx_delivery {
	CX_DELIVERY_OK = 0x0,
	CX_DELIVERY_TOKEN = 0x2,
	CX_DELIVERY_BAD_BLOCK = 0x3,
	CX_DELIVERY_OUT_PTR_ALIGN = 0x4,
	CX_DELIVERY_IN_PTR_ALIGN = 0x5,
	CX_DELIVERY_IN_LENGTH = 0x7,
	CX_DELIVERY_OUT_LENGTH = 0x8,
	CX_DELIVERY_RSVD = 0x9,
	CX_DELIVERY_BAD_TYPE = 0x10,
};

#define CX_CMD(op, lay, phase, handler, min) extern const struct cx_ifc_layout cx_ifc_##lay;
#include "commands.def"
#undef CX_CMD

static const struct cx_cmd_desc cx_cmds[] = {
#define CX_CMD(op, lay, phase, handler, min) \
	{ MLX5_CMD_OP_##op, #op, &cx_ifc_##lay, phase, handler, min },
#include "commands.def"
#undef CX_CMD
};

static void cx_cmd_timer(void *opaque);

void cx_cmd_init(struct cx_dev *dev)
{
	dev->cmd.timer = timer_new_ms(QEMU_CLOCK_VIRTUAL, cx_cmd_timer, dev);
	dev->cmd.in = g_malloc0(CX_CMD_MAX_BYTES);
	dev->cmd.out = g_malloc0(CX_CMD_MAX_BYTES);
}

void cx_cmd_fini(struct cx_dev *dev)
{
	timer_free(dev->cmd.timer);
	dev->cmd.timer = NULL;
	g_free(dev->cmd.in);
	g_free(dev->cmd.out);
	dev->cmd.in = dev->cmd.out = NULL;
}

void cx_cmd_reset(struct cx_dev *dev)
{
	dev->cmd.queue = 0;
	dev->cmd.phase = CX_ANY;
	dev->cmd.nr_pages = 0;
	dev->cmd.nr_waiting = 0;
	timer_del(dev->cmd.timer);
}

static const struct cx_cmd_desc *cx_cmd_find(u16 opcode)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cx_cmds); i++) {
		if (cx_cmds[i].opcode == opcode)
			return &cx_cmds[i];
	}
	return NULL;
}

const char *cx_cmd_opname(u16 opcode)
{
	const struct cx_cmd_desc *desc = cx_cmd_find(opcode);

	return desc ? desc->name : "?";
}

int cx_refuse(struct cx_dev *dev, struct cx_cmd *cmd, enum cx_cmd_status st, const char *fmt, ...)
{
	u32 hash = 2166136261u;
	const char *p;
	va_list ap;

	for (p = fmt; *p; p++)
		hash = (hash ^ (u8)*p) * 16777619u;
	cmd->status = st;
	cmd->syndrome = hash & 0xffffff;
	va_start(ap, fmt);
	vsnprintf(cmd->why, sizeof(cmd->why), fmt, ap);
	va_end(ap);
	return -1;
}

static const char *cx_cmd_field_at(const struct cx_ifc_layout *lay, u32 bit)
{
	const char *before = "start";
	u32 i;

	for (i = 0; i < lay->nr_fields && lay->field[i].off <= bit; i++)
		before = lay->field[i].path;
	return before;
}

static int cx_cmd_check(struct cx_dev *dev, struct cx_cmd *cmd)
{
	const struct cx_cmd_desc *desc = cmd->desc;
	u32 min;
	s64 bit;

	if (!desc)
		return cx_refuse(dev, cmd, CX_ST_BAD_OP, "unknown opcode 0x%x", cmd->opcode);
	if (dev->cmd.phase < desc->phase)
		return cx_refuse(dev, cmd, CX_ST_BAD_SYS_STATE, "function is not %s yet",
				 desc->phase == CX_READY ? "initialised" : "enabled");
	min = desc->min_in ? desc->min_in : desc->layout->bytes;
	if (cmd->inlen < min)
		return cx_refuse(dev, cmd, CX_ST_BAD_INLEN, "input of %u bytes, at least %u needed",
				 cmd->inlen, min);
	if (cmd->outlen < 8)
		return cx_refuse(dev, cmd, CX_ST_BAD_OUTLEN, "output of %u bytes", cmd->outlen);
	bit = cx_ifc_reserved(desc->layout, cmd->in, cmd->inlen);
	if (bit >= 0)
		return cx_refuse(dev, cmd, CX_ST_BAD_PARAM,
				 "reserved bit %u of byte 0x%x is set, after %s", (u32)bit % 8,
				 (u32)bit / 8, cx_cmd_field_at(desc->layout, bit));
	return dev->prop.vf ? cx_vf_check(dev, cmd) : 0;
}

static void cx_cmd_trace(struct cx_dev *dev, const struct cx_cmd *cmd)
{
	g_autoptr(GString) text = NULL;

	if (!cx_trace_on(dev, CX_TR_CMD))
		return;
	text = g_string_new(NULL);
	if (cmd->desc)
		cx_ifc_print(cmd->desc->layout, cmd->in, cmd->inlen, text);
	cx_trace(dev, CX_TR_CMD, "%s in=%u out=%u%s", cx_cmd_opname(cmd->opcode), cmd->inlen,
		 cmd->outlen, text->str);
}

static void cx_cmd_run(struct cx_dev *dev, struct cx_cmd *cmd)
{
	cmd->opcode = lduw_be_p(cmd->in);
	cmd->op_mod = lduw_be_p(cmd->in + 6);
	cmd->desc = cx_cmd_find(cmd->opcode);
	cx_cmd_trace(dev, cmd);
	cx_count(dev, CX_CTR_COMMANDS, 1);
	if (cx_cmd_check(dev, cmd) || cmd->desc->run(dev, cmd)) {
		memset(cmd->out, 0, 16);
		cx_count(dev, CX_CTR_COMMANDS_REFUSED, 1);
		cx_trace(dev, CX_TR_REFUSE, "%s(0x%x) op_mod 0x%x status 0x%x syndrome 0x%x: %s",
			 cx_cmd_opname(cmd->opcode), cmd->opcode, cmd->op_mod, cmd->status,
			 cmd->syndrome, cmd->why);
	} else if (cx_trace_on(dev, CX_TR_CMD) && ldl_be_p(cmd->out + 8)) {
		cx_trace(dev, CX_TR_CMD, "%s -> 0x%x", cx_cmd_opname(cmd->opcode),
			 ldl_be_p(cmd->out + 8));
	}
	cmd->out[0] = cmd->status;
	stl_be_p(cmd->out + 4, cmd->syndrome);
}

static enum cx_delivery cx_cmd_fetch(struct cx_dev *dev, const struct cx_cmd_entry *e, u32 len)
{
	struct cx_mailbox box;
	u64 at = be64_to_cpu(e->in_ptr);
	u32 done, block = 0;

	memcpy(dev->cmd.in, e->in, 16);
	for (done = 16; done < len; done += 512, block++) {
		if (!at)
			return CX_DELIVERY_IN_LENGTH;
		if (at & 0x1ff)
			return CX_DELIVERY_IN_PTR_ALIGN;
		if (cx_dma_read(dev, at, &box, sizeof(box)))
			return CX_DELIVERY_IN_LENGTH;
		if (box.token != e->token)
			return CX_DELIVERY_TOKEN;
		if (be32_to_cpu(box.block_nr) != block)
			return CX_DELIVERY_BAD_BLOCK;
		memcpy(dev->cmd.in + done, box.data, MIN(512, len - done));
		at = be64_to_cpu(box.next);
	}
	return CX_DELIVERY_OK;
}

static enum cx_delivery cx_cmd_store(struct cx_dev *dev, struct cx_cmd_entry *e, u32 len)
{
	struct cx_mailbox box;
	u64 at = be64_to_cpu(e->out_ptr);
	u32 done, block = 0;

	memcpy(e->out, dev->cmd.out, 16);
	for (done = 16; done < len; done += 512, block++) {
		if (!at)
			return CX_DELIVERY_OUT_LENGTH;
		if (at & 0x1ff)
			return CX_DELIVERY_OUT_PTR_ALIGN;
		if (cx_dma_read(dev, at, &box, sizeof(box)))
			return CX_DELIVERY_OUT_LENGTH;
		if (be32_to_cpu(box.block_nr) != block)
			return CX_DELIVERY_BAD_BLOCK;
		memcpy(box.data, dev->cmd.out + done, MIN(512, len - done));
		box.token = e->token;
		cx_dma_write(dev, at, &box, sizeof(box));
		at = be64_to_cpu(box.next);
	}
	return CX_DELIVERY_OK;
}

static enum cx_delivery cx_cmd_entry_run(struct cx_dev *dev, struct cx_cmd_entry *e)
{
	struct cx_cmd cmd = {
		.in = dev->cmd.in,
		.out = dev->cmd.out,
		.inlen = be32_to_cpu(e->inlen),
		.outlen = be32_to_cpu(e->outlen),
	};
	enum cx_delivery st;

	if (e->type != CX_CMD_TYPE_PCI)
		return CX_DELIVERY_BAD_TYPE;
	if (!(e->status_own & CX_CMD_OWN_HW))
		return CX_DELIVERY_RSVD;
	if (cmd.inlen < 16 || cmd.inlen > CX_CMD_MAX_BYTES)
		return CX_DELIVERY_IN_LENGTH;
	if (cmd.outlen > CX_CMD_MAX_BYTES)
		return CX_DELIVERY_OUT_LENGTH;
	st = cx_cmd_fetch(dev, e, cmd.inlen);
	if (st)
		return st;
	memset(cmd.out, 0, MAX(cmd.outlen, 8192));
	cx_cmd_run(dev, &cmd);
	return cx_cmd_store(dev, e, cmd.outlen);
}

static void cx_cmd_one(struct cx_dev *dev, u32 i)
{
	u64 at = dev->cmd.queue + ((u64)i << CX_CMD_LOG_STRIDE);
	bool event = cx_eq_has_command_eq(dev);
	enum cx_delivery st;
	struct cx_cmd_entry e;

	if (cx_dma_read(dev, at, &e, sizeof(e)))
		return;
	st = cx_cmd_entry_run(dev, &e);
	if (st)
		cx_trace(dev, CX_TR_REFUSE, "command entry %u: delivery status 0x%x", i, st);
	/* the ownership byte goes last: the driver may be polling it */
	cx_dma_write(dev, at, &e, offsetof(struct cx_cmd_entry, status_own));
	e.status_own = st << 1;
	cx_dma_write(dev, at + offsetof(struct cx_cmd_entry, status_own), &e.status_own, 1);
	/* the command that creates the command EQ is still waited for by polling */
	if (event)
		cx_event_command(dev, 1u << i);
}

static void cx_cmd_arm(struct cx_dev *dev)
{
	timer_mod(dev->cmd.timer, qemu_clock_get_ms(QEMU_CLOCK_VIRTUAL) + dev->fault.cmd_delay_ms);
}

/* the first command that waits is done */
static void cx_cmd_timer(void *opaque)
{
	struct cx_dev *dev = opaque;
	struct cx_cmdif *c = &dev->cmd;
	u32 i = c->waiting[0];

	c->nr_waiting--;
	memmove(c->waiting, c->waiting + 1, c->nr_waiting);
	cx_cmd_one(dev, i);
	if (c->nr_waiting)
		cx_cmd_arm(dev);
	cx_dev_kick(dev);
}

static void cx_cmd_wait(struct cx_dev *dev, u32 i)
{
	struct cx_cmdif *c = &dev->cmd;

	if (memchr(c->waiting, i, c->nr_waiting))
		return;
	c->waiting[c->nr_waiting++] = i;
	if (c->nr_waiting == 1)
		cx_cmd_arm(dev);
}

void cx_cmd_doorbell(struct cx_dev *dev, u32 vector)
{
	u32 i;

	for (i = 0; i < CX_CMD_ENTRIES; i++) {
		if (!(vector & 1u << i))
			continue;
		if (dev->fault.cmd_delay_ms || dev->cmd.nr_waiting)
			cx_cmd_wait(dev, i);
		else
			cx_cmd_one(dev, i);
	}
}
