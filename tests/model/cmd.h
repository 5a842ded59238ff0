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
 * @CX_ST_OK: done.
 * @CX_ST_INT: INTERNAL_ERR; not raised here.
 * @CX_ST_BAD_OP: BAD_OP: unknown, or not of this port or function.
 * @CX_ST_BAD_PARAM: BAD_PARAM: a field or reserved bit has a wrong value.
 * @CX_ST_BAD_SYS_STATE: BAD_SYS_STATE: the function is not enabled or initialised, or is already.
 * @CX_ST_BAD_RES: BAD_RESOURCE: an object that is named does not exist.
 * @CX_ST_BUSY: RESOURCE_BUSY: others refer to the object.
 * @CX_ST_LIMIT: EXCEED_LIM: more than the capabilities say.
 * @CX_ST_BAD_RES_STATE: BAD_RES_STATE: the object is in a wrong state.
 * @CX_ST_BAD_INDEX: BAD_INDEX: there is no such entry of a table.
 * @CX_ST_NO_RES: NO_RESOURCES: the number space is full.
 * @CX_ST_BAD_QP_STATE: BAD_QP_STATE: no such transition from the queue pair's state.
 * @CX_ST_BAD_CQ_SIZE: BAD_SIZE_OUTS_CQES: completions that are not polled do not fit the new size.
 * @CX_ST_BAD_INLEN: BAD_INPUT_LEN: the input is too short for the command, or for its own lists.
 * @CX_ST_BAD_OUTLEN: BAD_OUTPUT_LEN: the output has too little room.
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
 * @CX_ANY: before ENABLE_HCA, after DISABLE_HCA or a reset.
 * @CX_ENABLED: ENABLE_HCA was done, or TEARDOWN_HCA.
 * @CX_READY: INIT_HCA was done.
 */
enum cx_phase {
	CX_ANY,
	CX_ENABLED,
	CX_READY,
};

#define CX_CMD_LOG_ENTRIES 5
#define CX_CMD_LOG_STRIDE 6
#define CX_CMD_MAX_BYTES (4 << 20) /* twice the pages of 1 GiB of memory */

/**
 * struct cx_cmd - A command that is being executed.
 * @desc: its line of commands.def, NULL for an opcode the model does not know.
 * @in: input, @inlen bytes.
 * @out: output; zeroed for @outlen bytes, at least 8192 of them.
 * @inlen: bytes of the input, 16 to CX_CMD_MAX_BYTES.
 * @outlen: bytes of the output, at most CX_CMD_MAX_BYTES; handlers see 8 at least.
 * @opcode: from the input.
 * @op_mod: from the input: variant of the operation.
 * @status: enum cx_cmd_status, for the output.
 * @syndrome: hash of the reason of a refusal, 24 bits, for the output.
 * @why: reason of a refusal, for the trace.
 */
struct cx_cmd {
	const struct cx_cmd_desc *desc;
	const u8 *in;
	u8 *out;
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
 * @opcode: of the command.
 * @name: of the opcode, as in mlx5_ifc.h.
 * @layout: of its input.
 * @phase: earliest phase it is accepted in.
 * @run: executes it; returns 0, or -1 with the command refused by cx_refuse().
 * @min_in: shortest input accepted, bytes; 0: the fixed part of @layout.
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
 * @timer: slow commands: when the first of them is done.
 * @waiting: queue entries in the order of their doorbells.
 * @nr_waiting: entries of @waiting.
 * @queue: guest address of the command queue.
 * @phase: how far the driver has brought the function.
 * @in: input of the command that runs, CX_CMD_MAX_BYTES.
 * @out: its output, CX_CMD_MAX_BYTES.
 * @pages: addresses of the memory that the driver gave the device; never touched.
 * @nr_pages: entries of @pages.
 * @driver: name and version that the driver gave.
 */
struct cx_cmdif {
	QEMUTimer *timer;
	u8 waiting[CX_CMD_ENTRIES];
	u32 nr_waiting;
	u64 queue;
	enum cx_phase phase;
	u8 *in;
	u8 *out;
	u64 pages[4096];
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
