/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: what one user and one cgroup may hold of the node: contexts, queues, regions,
 * requests.
 *
 * A user is who has to answer for a process on this machine, see krc_owner(): the ids that a
 * user namespace gives away are no further users. cgroups are counted by the kernel's RDMA
 * controller, in which krcore is a device of its own ("krcore" in rdma.max): hca_handle counts
 * contexts, hca_object counts queues and regions. A limit that is lowered refuses what is new
 * and takes nothing away.
 *
 * Where users draw on a table of a fixed size (slots of a directory, services), a limit of each
 * of them is not enough: so many may come that the table is full. krc_share_check() keeps a
 * part of it for those who hold little, and the last of it for administrators.
 * Locking: own spinlock for the table of users, atomics for the counts. krc_charge() and
 * krc_uncharge() may sleep (the controller has a mutex), those for requests may not.
 */
#ifndef KRC_LIMITS_H
#define KRC_LIMITS_H

#include <linux/types.h>
#include <linux/uidgid.h>

struct krc_user;
struct rdma_cgroup;
struct user_namespace;

/*
 * Services of a node, which users share: each is a record at the MetaServers, which take a
 * bounded number from a node (records_per_owner_max, 1024), besides those of its ports.
 */
#define KRC_SERVICES_MAX 1024

/*
 * Parts of a table that all users share: what one of them may take; what is left to those who
 * hold little; how little that is; what is left to administrators.
 */
#define KRC_SHARE_USER 4
#define KRC_SHARE_SCARCE 8
#define KRC_SHARE_LITTLE 256
#define KRC_SHARE_RESERVE 64

/**
 * enum krc_resource - What is counted.
 * @KRC_RES_CONTEXT: open files; a user may have as many as queues.
 * @KRC_RES_QUEUE: queues.
 * @KRC_RES_MR: memory regions.
 * @KRC_RES_SERVICE: bound services.
 * @KRC_RES_SLOT: slots of memory directories; by user only.
 * @KRC_RES_REQUEST: requests without completion; by user only.
 * @KRC_RES_NR: how many kinds.
 */
enum krc_resource {
	KRC_RES_CONTEXT,
	KRC_RES_QUEUE,
	KRC_RES_MR,
	KRC_RES_SERVICE,
	KRC_RES_SLOT,
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
 * krc_owner() - Who has to answer for a process on this machine.
 * @ns: its user namespace.
 * @uid: its user.
 *
 * In the initial namespace the user itself. Else the owner of the outermost namespace, who
 * made it: what ids it is given (subuid(5)), a user may take on as he likes. A namespace that
 * root made is a container of the administrator's and answers for itself: by the user whom its
 * root is.
 *
 * Context: any.
 * Return: the user.
 */
kuid_t krc_owner(struct user_namespace *ns, kuid_t uid);

/* The same of the calling process. */
kuid_t krc_owner_current(void);

/**
 * krc_share_check() - Whether a user may take one more place of a table that all share.
 * @total: places.
 * @used: places in use, by anybody.
 * @held: places that the user has.
 * @admin: an administrator asks.
 *
 * Nobody but an administrator takes more than one part in KRC_SHARE_USER. When no more than
 * one part in KRC_SHARE_SCARCE is left, it is for users who have less than one part in
 * KRC_SHARE_LITTLE; the last part in KRC_SHARE_RESERVE is for administrators.
 *
 * Context: any.
 * Return: 0, -EDQUOT (the user has what one user may take), -ENOSPC (what is left is for
 * others, or nothing is).
 */
int krc_share_check(u32 total, u32 used, u64 held, bool admin);

/**
 * krc_user_get_current() - The calling process's user, krc_owner_current().
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
 * krc_charge_share() - Take a place of a table that all share.
 * @user: user.
 * @what: KRC_RES_SERVICE or KRC_RES_SLOT.
 * @total: places of the table.
 * @used: places in use; the caller's lock keeps it true.
 * @ret_charge: out: for krc_uncharge(); untouched on failure.
 *
 * Context: may sleep; the process that pays.
 * Return: 0, the errors of krc_share_check() and krc_charge().
 */
int krc_charge_share(struct krc_user *user, enum krc_resource what, u32 total, u32 used,
		     struct krc_charge *ret_charge);

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
