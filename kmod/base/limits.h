/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: limits on what one user and one cgroup may hold of the node: contexts, queues,
 * regions, services, directory slots, requests.
 *
 * A user is the one accountable for a process on this machine, see krc_owner(): ids mapped by a
 * user namespace are no additional users. cgroups are charged by the kernel's RDMA controller,
 * in which krcore is a device of its own ("krcore" in rdma.max): hca_handle counts contexts,
 * hca_object counts queues, regions and services. A lowered limit refuses new objects and takes
 * nothing away. A client in the kernel is a user by its name, whatever task it runs in, and no cgroup
 * is charged for it.
 *
 * Where users share a table of a fixed size (slots of a directory, services), a limit for each
 * is not enough, since enough users fill the table. krc_share_check() reserves a part of it for
 * users who hold little, and the last of it for administrators.
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
 * Services of a node, shared by its users: each is a record at the MetaServers, which accept a
 * bounded number from a node (records_per_owner_max, 1024), besides those of its ports.
 */
#define KRC_SERVICES_MAX 1024

/*
 * Fractions (1/n) of a table that all users share, see krc_share_check(): the most for one user;
 * the rest that is kept for users who hold little; how little that is; the rest that is kept
 * for administrators.
 */
#define KRC_SHARE_USER 4
#define KRC_SHARE_SCARCE 8
#define KRC_SHARE_LITTLE 256
#define KRC_SHARE_RESERVE 64

/*
 * Publications of a payer (KRP_IOC_BIND, KRP_IOC_PUBLISH): so many at once, then so many a second.
 * Each is a message to every MetaServer, which accepts a bounded rate from a node, and may be a
 * notification to all nodes that watch.
 */
#define KRC_PUBLISH_BURST 512
#define KRC_PUBLISH_PER_S 64
#define KRC_PUBLISH_EACH_NS (NSEC_PER_SEC / KRC_PUBLISH_PER_S)

#define KRC_INBOX_PAGES_USER 65536 /* of 4096 bytes: messages that wait in inboxes of one user */

/**
 * enum krc_resource - What is charged to a user.
 * @KRC_RES_CONTEXT: open files; same limit as queues.
 * @KRC_RES_QUEUE: queues.
 * @KRC_RES_MR: memory regions.
 * @KRC_RES_SERVICE: bound services.
 * @KRC_RES_SLOT: slots of memory directories; not charged to cgroups.
 * @KRC_RES_INBOX: pages of inboxes; not charged to cgroups.
 * @KRC_RES_REQUEST: outstanding requests; not charged to cgroups.
 * @KRC_RES_NR: number of resources.
 */
enum krc_resource {
	KRC_RES_CONTEXT,
	KRC_RES_QUEUE,
	KRC_RES_MR,
	KRC_RES_SERVICE,
	KRC_RES_SLOT,
	KRC_RES_INBOX,
	KRC_RES_REQUEST,
	KRC_RES_NR,
};

/**
 * struct krc_charge - One charged unit and where it is returned; one for each object.
 * @user: user, with a reference; NULL if nothing is charged.
 * @cgroup: cgroup, with a reference, or NULL.
 * @what: resource.
 * @listed: see krc_payer_list().
 */
struct krc_charge {
	struct krc_user *user;
	struct rdma_cgroup *cgroup;
	enum krc_resource what;
	bool listed;
};

/**
 * krc_limits_init() - Register krcore with the RDMA controller.
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
 * @requests: outstanding requests.
 *
 * Context: any.
 */
void krc_limits_set(u32 queues, u32 mrs, u32 requests);

/**
 * krc_limits_get() - Get the limits of each user.
 * @ret_queues: out: queues.
 * @ret_mrs: out: memory regions.
 * @ret_requests: out: outstanding requests.
 *
 * Context: any.
 */
void krc_limits_get(u32 *ret_queues, u32 *ret_mrs, u32 *ret_requests);

/**
 * krc_owner() - The user accountable for a process on this machine.
 * @ns: its user namespace.
 * @uid: its user.
 *
 * In the initial namespace the user itself. Else the owner of the outermost namespace, since
 * that user may take on any id mapped there (subuid(5)). A namespace made by root is an
 * administrator's container and accountable itself: by the user that its root maps to.
 *
 * Context: any.
 * Return: the user.
 */
kuid_t krc_owner(struct user_namespace *ns, kuid_t uid);

/**
 * krc_owner_current() - krc_owner() of the calling process.
 *
 * Context: process.
 * Return: the user.
 */
kuid_t krc_owner_current(void);

/**
 * krc_share_check() - Whether a user may take one more entry of a shared table.
 * @total: entries of the table.
 * @used: entries in use, by all users.
 * @held: entries that the user holds.
 * @admin: the user is an administrator.
 *
 * No user but an administrator gets more than 1/KRC_SHARE_USER. When no more than
 * 1/KRC_SHARE_SCARCE is free, that is for users with less than 1/KRC_SHARE_LITTLE; the last
 * 1/KRC_SHARE_RESERVE is for administrators.
 *
 * Context: any.
 * Return: 0, -EDQUOT (the user holds the most that one user may), -ENOSPC (the table is full, or
 * the rest is kept for others).
 */
int krc_share_check(u32 total, u32 used, u64 held, bool admin);

/**
 * krc_user_get_current() - The user of the calling process, by krc_owner_current().
 *
 * Context: may sleep.
 * Return: the user with a reference, for krc_user_put(); or NULL: no memory.
 */
struct krc_user *krc_user_get_current(void);

#define KRC_USER_NAME 32 /* longest name of a client in the kernel, with its end */

/**
 * krc_user_get_named() - The user that clients of this name in the kernel are.
 * @name: name, 1 to KRC_USER_NAME - 1 characters.
 *
 * Context: may sleep.
 * Return: as krc_user_get_current().
 */
struct krc_user *krc_user_get_named(const char *name);

/**
 * krc_user_put() - Drop the reference of krc_user_get_current() or krc_user_get_named().
 * @user: user, or NULL.
 *
 * Context: any that may take a BH-safe spinlock.
 */
void krc_user_put(struct krc_user *user);

/**
 * krc_charge() - Charge one unit of a resource to a user and the current cgroup.
 * @user: user.
 * @what: resource before KRC_RES_INBOX.
 * @ret_charge: out: for krc_uncharge(); untouched on failure.
 *
 * Context: may sleep; the process that is charged.
 * Return: 0, -EDQUOT (limit of the user or of a cgroup), -ENOMEM, -EINVAL.
 */
int krc_charge(struct krc_user *user, enum krc_resource what, struct krc_charge *ret_charge);

/**
 * krc_charge_share() - Charge an entry of a table that all users share.
 * @user: user.
 * @what: KRC_RES_SERVICE or KRC_RES_SLOT.
 * @total: entries of the table.
 * @used: entries in use by others, those that are being charged included.
 * @ret_charge: out: for krc_uncharge(); untouched on failure.
 *
 * Context: may sleep; the process that is charged.
 * Return: 0, the errors of krc_share_check() and krc_charge().
 */
int krc_charge_share(struct krc_user *user, enum krc_resource what, u32 total, u32 used,
		     struct krc_charge *ret_charge);

/**
 * krc_uncharge() - Undo krc_charge() or krc_charge_share(); a second call does nothing.
 * @charge: as filled in there; all zero: nothing is charged.
 *
 * Context: may sleep; any process.
 */
void krc_uncharge(struct krc_charge *charge);

/**
 * krc_charge_requests() - Charge requests, to the user only.
 * @user: user.
 * @count: how many.
 *
 * Cheap, for the data path. Context: any.
 * Return: how many were charged: fewer than @count if the limit allows no more.
 */
u32 krc_charge_requests(struct krc_user *user, u32 count);

/**
 * krc_uncharge_requests() - Undo krc_charge_requests().
 * @user: user.
 * @count: how many.
 *
 * Context: any.
 */
void krc_uncharge_requests(struct krc_user *user, u32 count);

/**
 * krc_charge_inbox() - Charge an inbox, to the user only.
 * @user: user.
 * @pages: how many.
 *
 * Context: any.
 * Return: 0, or -EDQUOT: more than KRC_INBOX_PAGES_USER, and nothing is charged.
 */
int krc_charge_inbox(struct krc_user *user, u32 pages);

/**
 * krc_uncharge_inbox() - Undo krc_charge_inbox().
 * @user: user.
 * @pages: how many.
 *
 * Context: any.
 */
void krc_uncharge_inbox(struct krc_user *user, u32 pages);

/**
 * krc_publish_turn() - Charge a publication to the payer of a context, and tell when it may begin.
 * @charge: charge of the context; see krc_charge_payer().
 * @now: present time in nanoseconds, monotonic.
 * @most: longest wait in nanoseconds that the caller accepts.
 *
 * The debt outlives the payer's last context, so that a new process does not begin without it.
 * Context: any that may take a BH-safe spinlock.
 * Return: nanoseconds to wait, from 0 to @most; -EBUSY: it would be longer, and nothing is
 * charged.
 */
s64 krc_publish_turn(const struct krc_charge *charge, u64 now, u64 most);

/**
 * krc_publish_unturn() - Give a turn back whose publication did not take place.
 * @charge: as at krc_publish_turn().
 *
 * Those behind it keep the later time they were told; the next one has the earlier.
 * Context: any that may take a BH-safe spinlock.
 */
void krc_publish_unturn(const struct krc_charge *charge);

/**
 * krc_charge_payer() - The payer of turns, READ slots and publications of a context.
 * @charge: charge of the context.
 *
 * That is the user; but root's containers without a user namespace are one user, so root's
 * cgroups count one by one. Only root can make those.
 * Context: any; valid, to be compared only, as long as the charge, or as krc_payer_get() counts it.
 * Return: a key.
 */
const void *krc_charge_payer(const struct krc_charge *charge);

/**
 * struct krc_payer - A payer that is counted, so that its key is nobody else's.
 * @user: user, with a reference; NULL: none.
 * @cgroup: cgroup, with a reference, or NULL.
 */
struct krc_payer {
	struct krc_user *user;
	struct rdma_cgroup *cgroup;
};

/**
 * krc_payer_get() - Count the payer of a charge: krc_charge_payer() names nobody else meanwhile.
 * @charge: charge, which is charged.
 * @ret_payer: out: for krc_payer_put().
 *
 * Nothing is charged by it. Context: any.
 */
void krc_payer_get(const struct krc_charge *charge, struct krc_payer *ret_payer);

/**
 * krc_payer_list() - Note one more context of a payer, so that krc_payer_find() finds it.
 * @charge: of the context, charged.
 *
 * krc_charge() does it. Users are found anyhow; without memory one of root's cgroups is not found.
 * Context: may sleep.
 */
void krc_payer_list(struct krc_charge *charge);

/**
 * krc_payer_unlist() - Undo krc_payer_list(), if that has noted the context, once.
 * @charge: as there, still charged.
 *
 * krc_uncharge() does it. Context: any that may take a BH-safe spinlock.
 */
void krc_payer_unlist(struct krc_charge *charge);

/**
 * krc_payer_find() - krc_payer_get() by the key alone, of a payer that may be gone.
 * @payer: key of krc_charge_payer(), or what flows have that are nobody's; only compared.
 * @ret_payer: out: for krc_payer_put(); zero if there is none.
 *
 * One that is gone is not found, but whoever has its key by now. Costs as much as there are users.
 * Context: any that may take a BH-safe spinlock.
 * Return: true if it is there, and has a context, or is counted.
 */
bool krc_payer_find(const void *payer, struct krc_payer *ret_payer);

/**
 * krc_payer_put() - Undo krc_payer_get(); a second call does nothing.
 * @payer: as filled in there; all zero: nobody is counted.
 *
 * Context: any that may take a BH-safe spinlock.
 */
void krc_payer_put(struct krc_payer *payer);

/**
 * krc_limits_walk() - Visit users with what they hold, for diagnostics.
 * @start: how many to skip.
 * @fn: called for each, under the lock: must not sleep; non-zero ends the walk.
 *	uid: INVALID_UID for clients in the kernel.
 *	refused: how often a limit refused the user something.
 * @arg: for @fn.
 *
 * Context: any that may take a BH-safe spinlock.
 * Return: how many @fn accepted.
 */
u32 krc_limits_walk(u32 start,
		    int (*fn)(kuid_t uid, const u64 held[KRC_RES_NR], u64 refused, void *arg),
		    void *arg);

#endif /* KRC_LIMITS_H */
