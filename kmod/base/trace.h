/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the tracepoints of the data path: /sys/kernel/tracing/events/krcore.
 * They name queues by context and number, never addresses or keys.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM krcore

#if !defined(KRC_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define KRC_TRACE_H

#include <linux/tracepoint.h>

#include "krp_ioctl.h"

struct krc_hw_wr;
struct krc_rail;
struct krc_wc;

/* Tracepoint macros have a layout of their own. */
/* clang-format off */
#define krc_show_opcode(opcode)                                      \
	__print_symbolic(opcode, { KRP_OP_READ, "read" },            \
			 { KRP_OP_WRITE, "write" },                  \
			 { KRP_OP_CMP_SWAP, "cmp_swap" },            \
			 { KRP_OP_FETCH_ADD, "fetch_add" },          \
			 { KRC_HW_SEND, "send" })

#define krc_show_fault(fault)                                        \
	__print_symbolic(fault, { KRC_FAULT_NONE, "none" },          \
			 { KRC_FAULT_FLUSHED, "flushed" },           \
			 { KRC_FAULT_ACCESS, "access" },             \
			 { KRC_FAULT_TIMEOUT, "timeout" },           \
			 { KRC_FAULT_TARGET, "target" },             \
			 { KRC_FAULT_LOCAL, "local" },               \
			 { KRC_FAULT_BUSY, "busy" },                 \
			 { KRC_FAULT_LOST, "lost" },                 \
			 { KRC_FAULT_FATAL, "fatal" },               \
			 { KRC_FAULT_EXPIRED, "expired" })

#define krc_show_initiator(state)                                    \
	__print_symbolic(state, { 0, "ready" }, { 1, "failed" },     \
			 { 2, "resetting" }, { 3, "dead" },          \
			 { 4, "stopped" }, { 5, "leaving" })

#define krc_show_queue(state)                                        \
	__print_symbolic(state, { KRP_QUEUE_IDLE, "idle" },          \
			 { KRP_QUEUE_CONNECTING, "connecting" },     \
			 { KRP_QUEUE_READY, "ready" },               \
			 { KRP_QUEUE_ERROR, "error" },               \
			 { KRP_QUEUE_STATES, "closing" })

/* Each event begins with its port, as log lines do: "mlx5_0/1 ". */
#define krc_trace_port(of)                                           \
	do {                                                         \
		strscpy(__entry->device, (of)->device,                       \
			sizeof(__entry->device));                    \
		__entry->port = (of)->num;                           \
	} while (0)

TRACE_EVENT(krc_connect,
	TP_PROTO(const struct krc_rail *of, u64 context, u32 queue, const u8 *gid, u16 service,
		 u32 reads, int err),
	TP_ARGS(of, context, queue, gid, service, reads, err),
	TP_STRUCT__entry(
		__array(char, device, IB_DEVICE_NAME_MAX)
		__field(u32, port)
		__field(u64, context)
		__field(u32, queue)
		__array(u8, gid, KRP_GID_BYTES)
		__field(u16, service)
		__field(u32, reads)
		__field(int, err)
	),
	TP_fast_assign(
		krc_trace_port(of);
		__entry->context = context;
		__entry->queue = queue;
		memcpy(__entry->gid, gid, KRP_GID_BYTES);
		__entry->service = service;
		__entry->reads = reads;
		__entry->err = err;
	),
	TP_printk("%s/%u context=%llu queue=%u gid=%pI6 service=%u reads=%u err=%d",
		  __entry->device, __entry->port, __entry->context, __entry->queue, __entry->gid,
		  __entry->service, __entry->reads, __entry->err)
);

TRACE_EVENT(krc_queue_state,
	TP_PROTO(const struct krc_rail *of, u64 context, u32 queue, u32 from, u32 to, int err),
	TP_ARGS(of, context, queue, from, to, err),
	TP_STRUCT__entry(
		__array(char, device, IB_DEVICE_NAME_MAX)
		__field(u32, port)
		__field(u64, context)
		__field(u32, queue)
		__field(u32, from)
		__field(u32, to)
		__field(int, err)
	),
	TP_fast_assign(
		krc_trace_port(of);
		__entry->context = context;
		__entry->queue = queue;
		__entry->from = from;
		__entry->to = to;
		__entry->err = err;
	),
	TP_printk("%s/%u context=%llu queue=%u %s -> %s err=%d",
		  __entry->device, __entry->port, __entry->context, __entry->queue,
		  krc_show_queue(__entry->from), krc_show_queue(__entry->to), __entry->err)
);

TRACE_EVENT(krc_post,
	TP_PROTO(const struct krc_rail *of, u32 initiator, const struct krc_hw_wr *wr),
	TP_ARGS(of, initiator, wr),
	TP_STRUCT__entry(
		__array(char, device, IB_DEVICE_NAME_MAX)
		__field(u32, port)
		__field(u32, initiator)
		__field(u32, cookie)
		__field(u8, opcode)
		__field(u32, length)
	),
	TP_fast_assign(
		krc_trace_port(of);
		__entry->initiator = initiator;
		__entry->cookie = (u32)wr->cookie;
		__entry->opcode = wr->opcode;
		__entry->length = wr->length;
	),
	TP_printk("%s/%u initiator=%u cookie=%u %s length=%u",
		  __entry->device, __entry->port, __entry->initiator, __entry->cookie,
		  krc_show_opcode(__entry->opcode), __entry->length)
);

TRACE_EVENT(krc_complete,
	TP_PROTO(const struct krc_rail *of, u32 initiator, u8 opcode, u32 length, int status),
	TP_ARGS(of, initiator, opcode, length, status),
	TP_STRUCT__entry(
		__array(char, device, IB_DEVICE_NAME_MAX)
		__field(u32, port)
		__field(u32, initiator)
		__field(u8, opcode)
		__field(u32, length)
		__field(int, status)
	),
	TP_fast_assign(
		krc_trace_port(of);
		__entry->initiator = initiator;
		__entry->opcode = opcode;
		__entry->length = length;
		__entry->status = status;
	),
	TP_printk("%s/%u initiator=%u %s length=%u status=%d",
		  __entry->device, __entry->port, __entry->initiator,
		  krc_show_opcode(__entry->opcode), __entry->length, __entry->status)
);

TRACE_EVENT(krc_fault,
	TP_PROTO(const struct krc_rail *of, u32 initiator, const struct krc_wc *wc),
	TP_ARGS(of, initiator, wc),
	TP_STRUCT__entry(
		__array(char, device, IB_DEVICE_NAME_MAX)
		__field(u32, port)
		__field(u32, initiator)
		__field(u32, cookie)
		__field(int, fault)
		__field(u8, syndrome)
		__field(u8, vendor)
	),
	TP_fast_assign(
		krc_trace_port(of);
		__entry->initiator = initiator;
		__entry->cookie = (u32)wc->cookie;
		__entry->fault = wc->fault;
		__entry->syndrome = wc->syndrome;
		__entry->vendor = wc->vendor;
	),
	TP_printk("%s/%u initiator=%u cookie=%u %s syndrome=0x%02x vendor=0x%02x",
		  __entry->device, __entry->port, __entry->initiator, __entry->cookie,
		  krc_show_fault(__entry->fault), __entry->syndrome, __entry->vendor)
);

TRACE_EVENT(krc_initiator_state,
	TP_PROTO(const struct krc_rail *of, u32 initiator, u32 from, u32 to),
	TP_ARGS(of, initiator, from, to),
	TP_STRUCT__entry(
		__array(char, device, IB_DEVICE_NAME_MAX)
		__field(u32, port)
		__field(u32, initiator)
		__field(u32, from)
		__field(u32, to)
	),
	TP_fast_assign(
		krc_trace_port(of);
		__entry->initiator = initiator;
		__entry->from = from;
		__entry->to = to;
	),
	TP_printk("%s/%u initiator=%u %s -> %s",
		  __entry->device, __entry->port, __entry->initiator,
		  krc_show_initiator(__entry->from), krc_show_initiator(__entry->to))
);

/* How many segments the hardware may have of an initiator from now on. */
TRACE_EVENT(krc_window,
	TP_PROTO(const struct krc_rail *of, u32 initiator, u32 limit),
	TP_ARGS(of, initiator, limit),
	TP_STRUCT__entry(
		__array(char, device, IB_DEVICE_NAME_MAX)
		__field(u32, port)
		__field(u32, initiator)
		__field(u32, limit)
	),
	TP_fast_assign(
		krc_trace_port(of);
		__entry->initiator = initiator;
		__entry->limit = limit;
	),
	TP_printk("%s/%u initiator=%u limit=%u",
		  __entry->device, __entry->port, __entry->initiator, __entry->limit)
);

/* A recovery: @code is its cause (enum krc_fault) at the begin, its outcome (errno) at the end. */
DECLARE_EVENT_CLASS(krc_recovery,
	TP_PROTO(const struct krc_rail *of, u32 initiator, int code),
	TP_ARGS(of, initiator, code),
	TP_STRUCT__entry(
		__array(char, device, IB_DEVICE_NAME_MAX)
		__field(u32, port)
		__field(u32, initiator)
		__field(int, code)
	),
	TP_fast_assign(
		krc_trace_port(of);
		__entry->initiator = initiator;
		__entry->code = code;
	),
	TP_printk("%s/%u initiator=%u after %s",
		  __entry->device, __entry->port, __entry->initiator, krc_show_fault(__entry->code))
);

DEFINE_EVENT(krc_recovery, krc_recovery_begin,
	TP_PROTO(const struct krc_rail *of, u32 initiator, int code),
	TP_ARGS(of, initiator, code)
);

DEFINE_EVENT_PRINT(krc_recovery, krc_recovery_end,
	TP_PROTO(const struct krc_rail *of, u32 initiator, int code),
	TP_ARGS(of, initiator, code),
	TP_printk("%s/%u initiator=%u err=%d",
		  __entry->device, __entry->port, __entry->initiator, __entry->code)
);

/* clang-format on */
#endif /* KRC_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH base
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
