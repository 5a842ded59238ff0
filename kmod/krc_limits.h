/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: what one user and one cgroup may hold of the node: queues, regions, requests.
 *
 * Users are counted by kuid; cgroups by the kernel's RDMA controller, in which krcore
 * is a device of its own ("krcore" in rdma.max): hca_handle counts contexts, hca_object
 * counts queues and regions. Locking: own spinlock; any context but create.
 */
#ifndef KRC_LIMITS_H
#define KRC_LIMITS_H

#include <linux/types.h>
#include <linux/uidgid.h>

struct krc_user;
struct rdma_cgroup;

enum krc_resource {
	KRC_RES_CONTEXT,
	KRC_RES_QUEUE,
	KRC_RES_MR,
	KRC_RES_REQUEST, /* by user only */
	KRC_RES_NR,
};

/* What was charged, and where it must be given back. One for each object. */
struct krc_charge {
	struct krc_user *user;
	struct rdma_cgroup *cgroup;
	enum krc_resource what;
};

int krc_limits_init(void);
void krc_limits_exit(void);

/* Set the limits of a user; 0 leaves a resource unlimited. */
void krc_limits_set(u32 queues, u32 mrs, u32 requests);
void krc_limits_get(u32 *ret_queues, u32 *ret_mrs, u32 *ret_requests);

/* The calling process's user, counted. Context: may sleep. NULL: no memory. */
struct krc_user *krc_user_get_current(void);
void krc_user_put(struct krc_user *user);

/**
 * krc_charge() - Take one of a resource for a user and the current cgroup.
 * Return: 0, or -EDQUOT.
 */
int krc_charge(struct krc_user *user, enum krc_resource what, struct krc_charge *ret_charge);
void krc_uncharge(struct krc_charge *charge);

/* Requests are charged in numbers, by user only: cheap, in the data path. */
int krc_charge_requests(struct krc_user *user, u32 count);
void krc_uncharge_requests(struct krc_user *user, u32 count);

/* For people: users with what they hold. fn non-zero ends the walk. */
u32 krc_limits_walk(u32 start,
		    int (*fn)(kuid_t uid, const u64 held[KRC_RES_NR], u64 refused, void *arg),
		    void *arg);

#endif /* KRC_LIMITS_H */
