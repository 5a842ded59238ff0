/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * Why a MetaServer refuses a connection request. Normative.
 *
 * The refusal is rdma_cm's (IB CM REJ, consumer defined); these are the first
 * bytes of its private data, which rdma_cm may fill up with zeroes. It comes
 * before there is a queue pair, so it costs the server next to nothing, and
 * before anybody has proved anything: it is for diagnostics and for the pause before
 * the next attempt. A refusal without these bytes is not a MetaServer's: nobody
 * listens there.
 */
#ifndef KRP_REJECT_H
#define KRP_REJECT_H

#include "krp_table.h"

#ifdef __KERNEL__
#include <linux/errno.h>
#else
#include <errno.h>
#endif

#define KRP_REJECT_MAGIC 0x4a43524bU /* "KRCJ" */
#define KRP_REJECT_VERSION 1

/* krp_reject.reason; a reader takes an unknown one for KRP_REJECT_RESOURCES */
#define KRP_REJECT_SHUTDOWN 1 /* the server is about to end */
#define KRP_REJECT_CLIENTS 2 /* as many clients as there may be */
#define KRP_REJECT_ADDRESS 3 /* as many from one address as there may be */
#define KRP_REJECT_STRANGERS 4 /* too many connections that have not authenticated */
#define KRP_REJECT_NOT_SERVED 5 /* the server does not serve on this port */
#define KRP_REJECT_RESOURCES 6 /* no memory, or the RDMA device fails */
#define KRP_REJECT_DRAINED 7 /* its operator keeps clients off for a while: use another server */
#define KRP_REJECT_MTU 8 /* the path MTU is less than KRP_MTU_MIN, see krp_msg.h */
#define KRP_REJECT_REASONS 9

/**
 * struct krp_reject - Private data of a refusal.
 * @magic: KRP_REJECT_MAGIC.
 * @version: KRP_REJECT_VERSION; later ones only append.
 * @reason: KRP_REJECT_*, not zero.
 * @rsvd: zero; ignored.
 */
struct krp_reject {
	__le32 magic;
	__u8 version;
	__u8 reason;
	__u8 rsvd[2];
};

KRP_STATIC_ASSERT(sizeof(struct krp_reject) == 8, "krp_reject");

/**
 * krp_reject_init() - Fill one.
 * @m: filled.
 * @reason: KRP_REJECT_*.
 *
 * Context: any.
 */
static inline void krp_reject_init(struct krp_reject *m, unsigned int reason)
{
	memset(m, 0, sizeof(*m));
	m->magic = krp_cpu_to_le32(KRP_REJECT_MAGIC);
	m->version = KRP_REJECT_VERSION;
	m->reason = (__u8)reason;
}

/**
 * krp_reject_reason() - What the private data of a refusal say.
 * @data: private data, or NULL; any alignment, never trusted.
 * @bytes: how many.
 *
 * Context: any.
 * Return: KRP_REJECT_*, or 0 if it is not a MetaServer that refuses.
 */
static inline unsigned int krp_reject_reason(const void *data, unsigned int bytes)
{
	struct krp_reject m;

	if (!data || bytes < sizeof(m))
		return 0;
	memcpy(&m, data, sizeof(m));
	if (krp_le32_to_cpu(m.magic) != KRP_REJECT_MAGIC || !m.version || !m.reason)
		return 0;
	return m.reason < KRP_REJECT_REASONS ? m.reason : KRP_REJECT_RESOURCES;
}

/**
 * krp_reject_text() - What a reason means, human-readable.
 * @reason: what krp_reject_reason() returned.
 *
 * Context: any.
 * Return: constant text, to follow "connection refused: ".
 */
static inline const char *krp_reject_text(unsigned int reason)
{
	static const char *const texts[KRP_REJECT_REASONS] = {
		"no MetaServer listens there",
		"server is shutting down",
		"server has too many clients",
		"server has too many clients from this address",
		"server has too many connections that have not authenticated",
		"server does not serve on this port",
		"server is out of memory, or its RDMA device fails",
		"server is drained by its operator, who wants clients to use another one",
		"the path takes packets of 256 bytes only, which is too little",
	};

	return reason < KRP_REJECT_REASONS ? texts[reason] : texts[KRP_REJECT_RESOURCES];
}

/**
 * krp_reject_errno() - Negative errno for a reason.
 * @reason: what krp_reject_reason() returned.
 *
 * Context: any.
 * Return: -ECONNREFUSED if no MetaServer refuses, else a negative errno.
 */
static inline int krp_reject_errno(unsigned int reason)
{
	switch (reason) {
	case KRP_REJECT_SHUTDOWN:
	case KRP_REJECT_DRAINED:
		return -ESHUTDOWN;
	case KRP_REJECT_CLIENTS:
	case KRP_REJECT_ADDRESS:
	case KRP_REJECT_STRANGERS:
		return -EUSERS;
	case KRP_REJECT_RESOURCES:
		return -ENOMEM;
	case KRP_REJECT_MTU:
		return -EMSGSIZE;
	default:
		return -ECONNREFUSED;
	}
}

#endif /* KRP_REJECT_H */
