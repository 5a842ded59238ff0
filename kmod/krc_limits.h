/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: what one user and one cgroup may hold of the node: contexts, queues, regions,
 * requests.
 *
 * Users are counted by real kuid; cgroups by the kernel's RDMA controller, in which
 * krcore is a device of its own ("krcore" in rdma.max): hca_handle counts contexts,
 * hca_object counts queues and regions. A limit that is lowered refuses what is new
 * and takes nothing away.
 * Locking: own spinlock for the table of users, atomics for the counts. krc_charge() and
 * krc_uncharge() may sleep (the controller has a mutex), those for requests may not.
 */
#ifndef KRC_LIMITS_H
#define KRC_LIMITS_H

#include <linux/types.h>
#include <linux/uidgid.h>

struct krc_user;
struct rdma_cgroup;

/*
 * Services that a user may have bound: each is a record at the MetaServers, which take a
 * bounded number from a node (records_per_owner_max, 1024).
 */
#define KRC_SERVICES_PER_USER 256

/**
 * enum krc_resource - What is counted.
 * @KRC_RES_CONTEXT: open files; a user may have as many as queues.
 * @KRC_RES_QUEUE: queues.
 * @KRC_RES_MR: memory regions.
 * @KRC_RES_SERVICE: bound services.
 * @KRC_RES_REQUEST: requests without completion; by user only.
 * @KRC_RES_NR: how many kinds.
 */
enum krc_resource {
	KRC_RES_CONTEXT,
	KRC_RES_QUEUE,
	KRC_RES_MR,
	KRC_RES_SERVICE,
	KRC_RES_REQUEST,
	KRC_RES_NR,
};

/**
 * struct krc_charge - What was charged, and where it must be given back.
 * @user: user, counted; NULL if nothing is charged.
 * @cgroup: cgroup, counted, or NULL.
 * @what: resource.
 *
 * One for each object.
 */
struct krc_charge {
	struct krc_user *user;
	struct rdma_cgroup *cgroup;
	enum krc_resource what;
};

/**
 * krc_limits_init() - Make krcore known to the RDMA controller.
 *
 * Context: may sleep.
 * Return: 0, or -ENOMEM.
 */
int krc_limits_init(void);

/**
 * krc_limits_exit() - Undo krc_limits_init(); no user may be left.
 *
 * Context: may sleep.
 */
void krc_limits_exit(void);

/**
 * krc_limits_set() - Set the limits of each user; 0 leaves a resource unlimited.
 * @queues: queues; also the limit of contexts.
 * @mrs: memory regions.
 * @requests: requests without completion.
 *
 * Context: any.
 */
void krc_limits_set(u32 queues, u32 mrs, u32 requests);

/**
 * krc_limits_get() - The limits of each user.
 * @ret_queues: out: queues.
 * @ret_mrs: out: memory regions.
 * @ret_requests: out: requests without completion.
 *
 * Context: any.
 */
void krc_limits_get(u32 *ret_queues, u32 *ret_mrs, u32 *ret_requests);

/**
 * krc_user_get_current() - The calling process's user.
 *
 * Context: may sleep.
 * Return: it, counted, or NULL: no memory.
 */
struct krc_user *krc_user_get_current(void);

/**
 * krc_user_put() - Give back krc_user_get_current().
 * @user: user, or NULL.
 *
 * Context: any that may take a BH-safe spinlock.
 */
void krc_user_put(struct krc_user *user);

/**
 * krc_charge() - Take one of a resource for a user and the current cgroup.
 * @user: user.
 * @what: resource, not KRC_RES_REQUEST.
 * @ret_charge: out: for krc_uncharge(); untouched on failure.
 *
 * Context: may sleep; the process that pays.
 * Return: 0, -EDQUOT (limit of the user or of a cgroup), -ENOMEM, -EINVAL.
 */
int krc_charge(struct krc_user *user, enum krc_resource what, struct krc_charge *ret_charge);

/**
 * krc_uncharge() - Give back krc_charge(); a second time does nothing.
 * @charge: what was taken; one that is all zero holds nothing.
 *
 * Context: may sleep; any process.
 */
void krc_uncharge(struct krc_charge *charge);

/**
 * krc_charge_requests() - Take room for requests, by user only.
 * @user: user.
 * @count: how many.
 *
 * Cheap, for the data path. Context: any.
 * Return: how many were taken: fewer if the limit allows no more.
 */
u32 krc_charge_requests(struct krc_user *user, u32 count);

/**
 * krc_uncharge_requests() - Give back krc_charge_requests().
 * @user: user.
 * @count: how many.
 *
 * Context: any.
 */
void krc_uncharge_requests(struct krc_user *user, u32 count);

/**
 * krc_limits_walk() - Show users with what they hold, for people.
 * @start: how many to leave out.
 * @fn: called with each, under the lock: must not sleep; non-zero ends the walk.
 *	refused counts what the user asked for in vain.
 * @arg: for @fn.
 *
 * Context: any that may take a BH-safe spinlock.
 * Return: how many @fn accepted.
 */
u32 krc_limits_walk(u32 start,
		    int (*fn)(kuid_t uid, const u64 held[KRC_RES_NR], u64 refused, void *arg),
		    void *arg);

#endif /* KRC_LIMITS_H */
