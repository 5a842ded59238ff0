/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: the command interface: queue entries and mailboxes in guest memory,
 * the checks common to all commands, status and syndrome.
 */
#ifndef CX_CMD_H
#define CX_CMD_H

#include "ifc.h"

/**
 * enum cx_cmd_status - What a command's output says in its status.
 */
enum cx_cmd_status {
	CX_ST_OK = 0x0,
	CX_ST_INT = 0x1,
	CX_ST_BAD_OP = 0x2,
	CX_ST_BAD_PARAM = 0x3,
	CX_ST_BAD_SYS_STATE = 0x4,
	CX_ST_BAD_RES = 0x5,
	CX_ST_BUSY = 0x6,
	CX_ST_LIMIT = 0x8,
	CX_ST_BAD_RES_STATE = 0x9,
	CX_ST_BAD_INDEX = 0xa,
	CX_ST_NO_RES = 0xf,
	CX_ST_BAD_QP_STATE = 0x10,
	CX_ST_BAD_CQ_SIZE = 0x40,
	CX_ST_BAD_INLEN = 0x50,
	CX_ST_BAD_OUTLEN = 0x51,
};

/**
 * enum cx_phase - How far the driver has brought the function; a command has an earliest phase.
 */
enum cx_phase {
	CX_ANY,
	CX_ENABLED,
	CX_READY,
};

#define CX_CMD_LOG_ENTRIES 5
#define CX_CMD_LOG_STRIDE 6
#define CX_CMD_MAX_BYTES (1024 * 1024) /* the pages of the largest CQ */

/**
 * struct cx_cmd - A command that is being executed.
 */
struct cx_cmd {
	const struct cx_cmd_desc *desc;
	const u8 *in;
	u8 *out; /* zeroed, CX_CMD_MAX_BYTES */
	u32 inlen;
	u32 outlen;
	u16 opcode;
	u16 op_mod;
	u8 status;
	u32 syndrome;
	char why[200];
};

/**
 * struct cx_cmd_desc - What is known of a command: a line of commands.def.
 */
struct cx_cmd_desc {
	u16 opcode;
	const char *name;
	const struct cx_ifc_layout *layout;
	enum cx_phase phase;
	int (*run)(struct cx_dev *dev, struct cx_cmd *cmd);
	u32 min_in;
};

#define CX_CMD_ENTRIES (1u << CX_CMD_LOG_ENTRIES)

/**
 * struct cx_cmdif - The command interface of a device.
 */
struct cx_cmdif {
	QEMUTimer *timer; /* slow commands: when the first of them is done */
	u8 waiting[CX_CMD_ENTRIES]; /* queue entries in the order of their doorbells */
	u32 nr_waiting;
	u64 queue; /* guest address of the command queue */
	enum cx_phase phase;
	u8 *in;
	u8 *out;
	u64 pages[4096]; /* memory the driver gave the device */
	u32 nr_pages;
	char driver[64];
};

/**
 * cx_cmd_init() - Set the command interface up; it has no queue yet.
 * @dev: device.
 */
void cx_cmd_init(struct cx_dev *dev);

/**
 * cx_cmd_fini() - Free what cx_cmd_init() has made.
 * @dev: device.
 */
void cx_cmd_fini(struct cx_dev *dev);

/**
 * cx_cmd_reset() - Forget queue, pages and waiting commands, as after a reset.
 * @dev: device.
 */
void cx_cmd_reset(struct cx_dev *dev);

/**
 * cx_cmd_doorbell() - Run the commands a doorbell names.
 * @dev: device.
 * @vector: one bit a queue entry.
 */
void cx_cmd_doorbell(struct cx_dev *dev, u32 vector);

/**
 * cx_refuse() - End a command with an error.
 * @dev: device.
 * @cmd: the command.
 * @st: status the driver sees.
 * @fmt: reason; its hash is the syndrome, its text goes to the trace.
 *
 * Return: -1, so that a handler can return the call.
 */
int cx_refuse(struct cx_dev *dev, struct cx_cmd *cmd, enum cx_cmd_status st, const char *fmt, ...)
	CX_PRINTF(4, 5);

/**
 * cx_cmd_opname() - Name of a command, for traces.
 * @opcode: its opcode.
 *
 * Return: constant text, "?" for an opcode that the model does not know.
 */
const char *cx_cmd_opname(u16 opcode);

/**
 * cx_vf_check() - Refuse what a virtual function may not do.
 * @dev: device, a virtual function.
 * @cmd: the command, whose opcode and lengths are checked.
 *
 * Return: 0, or -1 when the command is refused.
 */
int cx_vf_check(struct cx_dev *dev, struct cx_cmd *cmd);

#define CX_CMD(op, layout, phase, handler, min) int handler(struct cx_dev *dev, struct cx_cmd *cmd);
#include "commands.def"
#undef CX_CMD

#endif
