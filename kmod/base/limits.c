// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the table of users and krcore's device in the RDMA controller; see base/limits.h.
 * A user is in the table as long as it has references, of which every charge holds one, and
 * then until the debt of its publications is over: such a user has no references, and is freed
 * when another one goes, or with the module. What root's cgroups owe is in a table of its own.
 *
 * Locking: krc_users_lock protects the table; a user's last reference is dropped, and the user
 * removed, only under it. The counts are atomic, so that the data path takes no lock.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/capability.h>
#include <linux/cgroup.h>
#include <linux/cgroup_rdma.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/hashtable.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/platform_device.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/user_namespace.h>

#include "base/limits.h"

#define KRC_USERS_LOG2 6

/**
 * struct krc_user - A user with contexts or charges.
 * @node: entry in krc_users.
 * @ref: references of contexts and charges.
 * @uid: the user, by krc_owner(); INVALID_UID: clients of @name in the kernel.
 * @name: of those, else empty.
 * @held: counts of what it holds, by enum krc_resource.
 * @refused: how often a limit refused it something.
 * @published: when its publications would have been paid for at KRC_PUBLISH_PER_S, in
 *	nanoseconds, monotonic; under krc_users_lock.
 */
struct krc_user {
	struct hlist_node node;
	refcount_t ref;
	kuid_t uid;
	char name[KRC_USER_NAME];
	atomic64_t held[KRC_RES_NR];
	atomic64_t refused;
	u64 published;
};

/**
 * struct krc_debt - What one of root's cgroups owes for publications.
 * @node: entry in krc_debts.
 * @payer: the cgroup, only compared: one that is made at the same address while there is a debt,
 *	which is for seconds, takes it over.
 * @published: see struct krc_user.
 */
struct krc_debt {
	struct hlist_node node;
	const void *payer;
	u64 published;
};

/**
 * struct krc_listed - One of root's cgroups that has contexts: its key is not that of one that is gone.
 * @node: entry in krc_listed.
 * @payer: the cgroup, and root; both are counted by the charges of the contexts.
 * @contexts: how many it has.
 */
struct krc_listed {
	struct hlist_node node;
	struct krc_payer payer;
	u32 contexts;
};

static DEFINE_HASHTABLE(krc_debts, KRC_USERS_LOG2); /* under krc_users_lock */
static DEFINE_HASHTABLE(krc_listed, KRC_USERS_LOG2); /* likewise */
static DEFINE_HASHTABLE(krc_users, KRC_USERS_LOG2);
static DEFINE_SPINLOCK(krc_users_lock);
static u32 krc_users_owing; /* users in the table without references */
/* limit of each user, by enum krc_resource; 0: unlimited */
static u32 krc_limits_max[KRC_RES_NR] = { [KRC_RES_INBOX] = KRC_INBOX_PAGES_USER };

#ifdef CONFIG_CGROUP_RDMA

/*
 * krcore's device in the RDMA controller. A limit outlives its cgroup: the controller (6.1 to
 * 6.12 at least) frees the memory of a cgroup that was removed with a limit and without use,
 * but leaves the limit in the device's list, and unregistering the device then writes to freed
 * memory. Such entries can't be told from live ones, so a device with limits stays registered
 * when the module is unloaded, and the next module must take it over: cgroups reach only the
 * first device of a name. The list of devices is private to the controller, so a platform
 * device keeps a pointer to ours as its data. Neither refers to code of the module.
 */
static struct rdmacg_device *krc_rdmacg;
#define KRC_RDMACG_PLACE "krcore_rdmacg"

static enum rdmacg_resource_type krc_rdmacg_type(enum krc_resource what)
{
	return what == KRC_RES_CONTEXT ? RDMACG_RESOURCE_HCA_HANDLE : RDMACG_RESOURCE_HCA_OBJECT;
}

static int krc_rdmacg_charge(enum krc_resource what, struct rdma_cgroup **ret_cgroup)
{
	int err = rdmacg_try_charge(ret_cgroup, krc_rdmacg, krc_rdmacg_type(what));

	return err == -EAGAIN ? -EDQUOT : err;
}

static void krc_rdmacg_uncharge(enum krc_resource what, struct rdma_cgroup *cgroup)
{
	rdmacg_uncharge(cgroup, krc_rdmacg, krc_rdmacg_type(what));
}

static void krc_rdmacg_get(struct rdma_cgroup *cgroup)
{
	css_get(&cgroup->css);
}

static void krc_rdmacg_put(struct rdma_cgroup *cgroup)
{
	css_put(&cgroup->css);
}

/* The device that the module had to leave behind when it was last unloaded, or NULL. */
static struct rdmacg_device *krc_rdmacg_left(void)
{
	struct device *place = bus_find_device_by_name(&platform_bus_type, NULL, KRC_RDMACG_PLACE);
	struct rdmacg_device *left;

	if (!place)
		return NULL;
	left = *(struct rdmacg_device **)dev_get_platdata(place);
	platform_device_unregister(to_platform_device(place));
	put_device(place);
	return left;
}

static void krc_rdmacg_leave(void)
{
	struct platform_device *place;

	place = platform_device_register_data(NULL, KRC_RDMACG_PLACE, PLATFORM_DEVID_NONE,
					      &krc_rdmacg, sizeof(krc_rdmacg));
	if (IS_ERR(place))
		pr_warn("limits in rdma.max will not hold for krcore if it is loaded again (%ld)\n",
			PTR_ERR(place));
	else
		pr_info("limits in rdma.max stay, and hold if krcore is loaded again\n");
}

static int krc_rdmacg_init(void)
{
	krc_rdmacg = krc_rdmacg_left();
	if (krc_rdmacg)
		return 0;
	krc_rdmacg = kzalloc(sizeof(*krc_rdmacg), GFP_KERNEL);
	if (!krc_rdmacg)
		return -ENOMEM;
	krc_rdmacg->name = kstrdup("krcore", GFP_KERNEL);
	if (!krc_rdmacg->name) {
		kfree(krc_rdmacg);
		return -ENOMEM;
	}
	rdmacg_register_device(krc_rdmacg);
	return 0;
}

static void krc_rdmacg_exit(void)
{
	if (!list_empty(&krc_rdmacg->rpools)) {
		krc_rdmacg_leave();
		return;
	}
	rdmacg_unregister_device(krc_rdmacg);
	kfree(krc_rdmacg->name);
	kfree(krc_rdmacg);
}

#else /* without the controller: limits by user only */

static int krc_rdmacg_charge(enum krc_resource what, struct rdma_cgroup **ret_cgroup)
{
	*ret_cgroup = NULL;
	return 0;
}

static void krc_rdmacg_uncharge(enum krc_resource what, struct rdma_cgroup *cgroup)
{
}

static void krc_rdmacg_get(struct rdma_cgroup *cgroup)
{
}

static void krc_rdmacg_put(struct rdma_cgroup *cgroup)
{
}

static int krc_rdmacg_init(void)
{
	return 0;
}

static void krc_rdmacg_exit(void)
{
}

#endif

static void krc_user_free(struct krc_user *user)
{
	int i;

	lockdep_assert_held(&krc_users_lock);
	hash_del(&user->node);
	for (i = 0; i < KRC_RES_NR; i++)
		WARN_ON(atomic64_read(&user->held[i]));
	kfree(user);
}

/* Free the users without references whose debt is over at @now. */
static void krc_users_sweep(u64 now)
{
	struct hlist_node *next;
	struct krc_user *user;
	int bucket;

	lockdep_assert_held(&krc_users_lock);
	hash_for_each_safe(krc_users, bucket, next, user, node) {
		if (refcount_read(&user->ref) || user->published > now)
			continue;
		krc_users_owing--;
		krc_user_free(user);
	}
}

/* Free the debts that are over at @now. */
static void krc_debts_sweep(u64 now)
{
	struct hlist_node *next;
	struct krc_debt *debt;
	int bucket;

	lockdep_assert_held(&krc_users_lock);
	hash_for_each_safe(krc_debts, bucket, next, debt, node) {
		if (debt->published > now)
			continue;
		hash_del(&debt->node);
		kfree(debt);
	}
}

int krc_limits_init(void)
{
	return krc_rdmacg_init();
}

void krc_limits_exit(void)
{
	spin_lock_bh(&krc_users_lock);
	krc_users_sweep(U64_MAX);
	krc_debts_sweep(U64_MAX);
	spin_unlock_bh(&krc_users_lock);
	WARN_ON(!hash_empty(krc_users) || !hash_empty(krc_listed));
	krc_rdmacg_exit();
}

void krc_limits_set(u32 queues, u32 mrs, u32 requests)
{
	WRITE_ONCE(krc_limits_max[KRC_RES_CONTEXT], queues);
	WRITE_ONCE(krc_limits_max[KRC_RES_QUEUE], queues);
	WRITE_ONCE(krc_limits_max[KRC_RES_MR], mrs);
	WRITE_ONCE(krc_limits_max[KRC_RES_REQUEST], requests);
}

void krc_limits_get(u32 *ret_queues, u32 *ret_mrs, u32 *ret_requests)
{
	*ret_queues = READ_ONCE(krc_limits_max[KRC_RES_QUEUE]);
	*ret_mrs = READ_ONCE(krc_limits_max[KRC_RES_MR]);
	*ret_requests = READ_ONCE(krc_limits_max[KRC_RES_REQUEST]);
}

kuid_t krc_owner(struct user_namespace *ns, kuid_t uid)
{
	for (; ns != &init_user_ns && ns->parent; ns = ns->parent) {
		kuid_t root = make_kuid(ns, 0);

		if (!uid_eq(ns->owner, GLOBAL_ROOT_UID))
			uid = ns->owner;
		else if (uid_valid(root) && !uid_eq(root, GLOBAL_ROOT_UID))
			uid = root;
	}
	return uid;
}

kuid_t krc_owner_current(void)
{
	return krc_owner(current_user_ns(), current_uid());
}

int krc_share_check(u32 total, u32 used, u64 held, bool admin)
{
	u32 left = total - min(used, total);

	if (admin && left)
		return 0;
	if (left <= total / KRC_SHARE_RESERVE)
		return -ENOSPC;
	if (held >= max(total / KRC_SHARE_USER, 1U))
		return -EDQUOT;
	if (left <= total / KRC_SHARE_SCARCE && held >= max(total / KRC_SHARE_LITTLE, 1U))
		return -ENOSPC;
	return 0;
}

static bool krc_user_is(const struct krc_user *user, kuid_t uid, const char *name)
{
	return uid_eq(user->uid, uid) && !strcmp(user->name, name);
}

/* Find a user and take a reference, or NULL. */
static struct krc_user *krc_user_find(kuid_t uid, const char *name)
{
	struct krc_user *user;

	lockdep_assert_held(&krc_users_lock);
	hash_for_each_possible(krc_users, user, node, __kuid_val(uid)) {
		if (krc_user_is(user, uid, name)) {
			if (!refcount_inc_not_zero(&user->ref)) {
				refcount_set(&user->ref, 1);
				krc_users_owing--;
			}
			return user;
		}
	}
	return NULL;
}

/* Find a user, or make it. Return: it, counted; NULL: no memory. */
static struct krc_user *krc_user_get(kuid_t uid, const char *name)
{
	struct krc_user *user, *made;

	spin_lock_bh(&krc_users_lock);
	user = krc_user_find(uid, name);
	spin_unlock_bh(&krc_users_lock);
	if (user)
		return user;

	made = kzalloc(sizeof(*made), GFP_KERNEL_ACCOUNT);
	if (!made)
		return NULL;
	made->uid = uid;
	strscpy(made->name, name, sizeof(made->name));
	refcount_set(&made->ref, 1);

	spin_lock_bh(&krc_users_lock);
	user = krc_user_find(uid, name);
	if (!user) {
		hash_add(krc_users, &made->node, __kuid_val(uid));
		user = made;
		made = NULL;
	}
	spin_unlock_bh(&krc_users_lock);
	kfree(made);
	return user;
}

struct krc_user *krc_user_get_current(void)
{
	return krc_user_get(krc_owner_current(), "");
}

struct krc_user *krc_user_get_named(const char *name)
{
	return krc_user_get(INVALID_UID, name);
}

void krc_user_put(struct krc_user *user)
{
	u64 now;

	if (!user)
		return;
	spin_lock_bh(&krc_users_lock);
	if (refcount_dec_and_test(&user->ref)) {
		now = ktime_get_ns();
		if (user->published > now)
			krc_users_owing++;
		else
			krc_user_free(user);
		if (krc_users_owing)
			krc_users_sweep(now);
	}
	spin_unlock_bh(&krc_users_lock);
}

/* Charge up to @count. Return: how many the limit allowed. */
static u32 krc_user_charge(struct krc_user *user, enum krc_resource what, u32 count)
{
	s64 held = atomic64_read(&user->held[what]);
	u32 some;

	do {
		u32 max = READ_ONCE(krc_limits_max[what]);

		some = max ? clamp_t(s64, max - held, 0, count) : count;
	} while (some && !atomic64_try_cmpxchg(&user->held[what], &held, held + some));
	if (some < count)
		atomic64_inc(&user->refused);
	return some;
}

static void krc_user_uncharge(struct krc_user *user, enum krc_resource what, u32 count)
{
	WARN_ON_ONCE(atomic64_sub_return(count, &user->held[what]) < 0);
}

/*
 * Return: 0, also for a resource or a user that the controller does not count; else its error. A
 * client in the kernel runs in tasks of anybody.
 */
static int krc_cgroup_charge(const struct krc_user *user, enum krc_resource what,
			     struct rdma_cgroup **ret_cgroup)
{
	*ret_cgroup = NULL;
	if (what == KRC_RES_SLOT || !uid_valid(user->uid))
		return 0;
	return krc_rdmacg_charge(what, ret_cgroup);
}

int krc_charge(struct krc_user *user, enum krc_resource what, struct krc_charge *ret_charge)
{
	struct rdma_cgroup *cgroup;
	int err;

	if (WARN_ON_ONCE(what >= KRC_RES_INBOX))
		return -EINVAL;
	if (!krc_user_charge(user, what, 1))
		return -EDQUOT;
	err = krc_cgroup_charge(user, what, &cgroup);
	if (err) {
		krc_user_uncharge(user, what, 1);
		if (err == -EDQUOT)
			atomic64_inc(&user->refused);
		return err;
	}
	refcount_inc(&user->ref);
	ret_charge->user = user;
	ret_charge->cgroup = cgroup;
	ret_charge->what = what;
	ret_charge->listed = false;
	if (what == KRC_RES_CONTEXT)
		krc_payer_list(ret_charge);
	return 0;
}

int krc_charge_share(struct krc_user *user, enum krc_resource what, u32 total, u32 used,
		     struct krc_charge *ret_charge)
{
	u64 held = atomic64_read(&user->held[what]);
	int err = krc_share_check(total, used, held, false);

	if (err && uid_valid(user->uid) && ns_capable_noaudit(&init_user_ns, CAP_SYS_RESOURCE))
		err = krc_share_check(total, used, held, true);
	if (!err)
		return krc_charge(user, what, ret_charge);
	atomic64_inc(&user->refused);
	return err;
}

void krc_uncharge(struct krc_charge *charge)
{
	struct krc_user *user = charge->user;

	if (!user)
		return;
	if (charge->what == KRC_RES_CONTEXT)
		krc_payer_unlist(charge);
	charge->user = NULL;
	if (charge->cgroup)
		krc_rdmacg_uncharge(charge->what, charge->cgroup);
	charge->cgroup = NULL;
	krc_user_uncharge(user, charge->what, 1);
	krc_user_put(user);
}

u32 krc_charge_requests(struct krc_user *user, u32 count)
{
	return krc_user_charge(user, KRC_RES_REQUEST, count);
}

void krc_uncharge_requests(struct krc_user *user, u32 count)
{
	krc_user_uncharge(user, KRC_RES_REQUEST, count);
}

int krc_charge_inbox(struct krc_user *user, u32 pages)
{
	u32 charged = krc_user_charge(user, KRC_RES_INBOX, pages);

	if (charged == pages)
		return 0;
	krc_user_uncharge(user, KRC_RES_INBOX, charged);
	return -EDQUOT;
}

void krc_uncharge_inbox(struct krc_user *user, u32 pages)
{
	krc_user_uncharge(user, KRC_RES_INBOX, pages);
}

/* Where it stands what a payer owes, or NULL: it owes nothing. */
static u64 *krc_debt_find(const struct krc_charge *charge)
{
	const void *payer = krc_charge_payer(charge);
	struct krc_debt *debt;

	lockdep_assert_held(&krc_users_lock);
	if (payer == charge->user)
		return &charge->user->published;
	hash_for_each_possible(krc_debts, debt, node, (unsigned long)payer)
		if (debt->payer == payer)
			return &debt->published;
	return NULL;
}

/* The same, for a payer that is to owe something. Without memory it is root that owes it. */
static u64 *krc_debt_get(const struct krc_charge *charge, u64 now)
{
	u64 *published = krc_debt_find(charge);
	struct krc_debt *debt;

	if (published)
		return published;
	krc_debts_sweep(now);
	debt = kzalloc(sizeof(*debt), GFP_ATOMIC | __GFP_NOWARN);
	if (!debt)
		return &charge->user->published;
	debt->payer = krc_charge_payer(charge);
	hash_add(krc_debts, &debt->node, (unsigned long)debt->payer);
	return &debt->published;
}

/* The generic cell rate algorithm, as a virtual schedule (ITU-T I.371). */
s64 krc_publish_turn(const struct krc_charge *charge, u64 now, u64 most)
{
	u64 burst = (KRC_PUBLISH_BURST - 1) * KRC_PUBLISH_EACH_NS, due, wait, *published;

	spin_lock_bh(&krc_users_lock);
	published = krc_debt_get(charge, now);
	due = max(*published, now);
	wait = due - now > burst ? due - now - burst : 0;
	if (wait <= most)
		*published = due + KRC_PUBLISH_EACH_NS;
	spin_unlock_bh(&krc_users_lock);
	if (wait <= most)
		return wait;
	atomic64_inc(&charge->user->refused);
	return -EBUSY;
}

void krc_publish_unturn(const struct krc_charge *charge)
{
	u64 *published;

	spin_lock_bh(&krc_users_lock);
	published = krc_debt_find(charge);
	if (published)
		*published -= KRC_PUBLISH_EACH_NS;
	spin_unlock_bh(&krc_users_lock);
}

const void *krc_charge_payer(const struct krc_charge *charge)
{
	if (charge->cgroup && uid_eq(charge->user->uid, GLOBAL_ROOT_UID))
		return charge->cgroup;
	return charge->user;
}

void krc_payer_get(const struct krc_charge *charge, struct krc_payer *ret_payer)
{
	refcount_inc(&charge->user->ref);
	if (charge->cgroup)
		krc_rdmacg_get(charge->cgroup);
	*ret_payer = (struct krc_payer){ .user = charge->user, .cgroup = charge->cgroup };
}

static struct krc_listed *krc_listed_find(const void *payer)
{
	struct krc_listed *listed;

	lockdep_assert_held(&krc_users_lock);
	hash_for_each_possible(krc_listed, listed, node, (unsigned long)payer)
		if (listed->payer.cgroup == payer)
			return listed;
	return NULL;
}

void krc_payer_list(struct krc_charge *charge)
{
	struct krc_listed *listed, *new;

	if (krc_charge_payer(charge) == charge->user)
		return;
	new = kzalloc(sizeof(*new), GFP_KERNEL_ACCOUNT);
	spin_lock_bh(&krc_users_lock);
	listed = krc_listed_find(charge->cgroup);
	if (!listed && new) {
		listed = new;
		new = NULL;
		listed->payer =
			(struct krc_payer){ .user = charge->user, .cgroup = charge->cgroup };
		hash_add(krc_listed, &listed->node, (unsigned long)charge->cgroup);
	}
	if (listed)
		listed->contexts++;
	charge->listed = listed;
	spin_unlock_bh(&krc_users_lock);
	kfree(new);
}

void krc_payer_unlist(struct krc_charge *charge)
{
	struct krc_listed *listed;

	if (!charge->listed) /* there was no memory: others of the payer may be */
		return;
	charge->listed = false;
	spin_lock_bh(&krc_users_lock);
	listed = krc_listed_find(charge->cgroup);
	if (!--listed->contexts)
		hash_del(&listed->node);
	else
		listed = NULL;
	spin_unlock_bh(&krc_users_lock);
	kfree(listed);
}

bool krc_payer_find(const void *payer, struct krc_payer *ret_payer)
{
	struct krc_listed *listed;
	struct krc_user *user;
	int bucket;

	*ret_payer = (struct krc_payer){};
	spin_lock_bh(&krc_users_lock);
	hash_for_each(krc_users, bucket, user, node)
		if (user == payer && refcount_inc_not_zero(&user->ref))
			ret_payer->user = user;
	listed = krc_listed_find(payer);
	if (listed) {
		*ret_payer = listed->payer;
		refcount_inc(&listed->payer.user->ref);
		krc_rdmacg_get(listed->payer.cgroup);
	}
	spin_unlock_bh(&krc_users_lock);
	return ret_payer->user;
}

void krc_payer_put(struct krc_payer *payer)
{
	if (payer->cgroup)
		krc_rdmacg_put(payer->cgroup);
	krc_user_put(payer->user);
	*payer = (struct krc_payer){};
}

u32 krc_limits_walk(u32 start,
		    int (*fn)(kuid_t uid, const u64 held[KRC_RES_NR], u64 refused, void *arg),
		    void *arg)
{
	u64 held[KRC_RES_NR];
	struct krc_user *user;
	u32 i, accepted = 0;
	int bucket;

	spin_lock_bh(&krc_users_lock);
	hash_for_each(krc_users, bucket, user, node) {
		if (!refcount_read(&user->ref))
			continue;
		if (start) {
			start--;
			continue;
		}
		for (i = 0; i < KRC_RES_NR; i++)
			held[i] = atomic64_read(&user->held[i]);
		if (fn(user->uid, held, atomic64_read(&user->refused), arg))
			break;
		accepted++;
	}
	spin_unlock_bh(&krc_users_lock);
	return accepted;
}
