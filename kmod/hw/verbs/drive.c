// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the work item of the lanes of a port: it tells the machines of krp_lanes.h what has happened,
 * and does what they say; and it makes lanes for holders that wait for one.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/lockdep.h>
#include <linux/random.h>

#include "base/log.h"
#include "hw/verbs/lanes_priv.h"

#define KRC_LANE_PULLS 64 /* what a machine says is to be done, in one go */
#define KRC_LANE_WANTS 256 /* holders that are looked after in one go */
#define KRC_LANE_FAILS 8 /* lanes that may end while somebody waits */
#define KRC_LANE_ROOM_NS (1000 * KRP_LANE_NS_PER_MS)
#define KRC_LANE_WAIT_NS (10000 * KRP_LANE_NS_PER_MS)
#define KRC_LANE_TRY_NS (20 * KRP_LANE_NS_PER_MS) /* until there may be room */
#define KRC_LANE_MEND_NS (2 * KRP_LANE_NS_PER_MS) /* a UD queue pair that has failed is tried */
#define KRC_LANE_TEND_NS (1000 * KRP_LANE_NS_PER_MS) /* idle lanes are looked for */
#define KRC_LANE_RELEASE_NS (2000 * KRP_LANE_NS_PER_MS)
#define KRC_LANE_SPARED 20 /* idle times after which a lane of a peer is closed here, too */
#define KRC_LANE_CLOSES 2 /* how often CLOSE of a lane that has failed is said again */
#define KRC_LANE_CLOSE_NS \
	(16 * KRP_LANE_NS_PER_MS) /* when first; eight times that until the next */
#define KRC_LANE_PSN_MASK 0xffffff

/* ---- what machines say */

void krc_lane_adopt(struct krc_lanes *lanes, struct krp_lanes_entry *e, struct krc_lane_qp *qp,
		    const struct krc_lane_peer *peer)
{
	struct krc_lane_slot *slot = krc_lane_slot_of(lanes, e);

	lockdep_assert_held(&lanes->lock);
	WARN_ON_ONCE(slot->state != KRC_SLOT_SHUT || slot->holder);
	slot->own = qp;
	slot->peer = *peer;
	slot->breaker = NULL;
	slot->until_ns = 0;
	slot->spared = 0;
	slot->closes = 0;
	slot->heard = 0;
	slot->keyed = false;
	slot->opened = false;
}

/* What holders that wait are told of a lane that never came up. Return: errno; 0: to wait on. */
static int krc_lane_verdict(int err)
{
	switch (err) {
	case 0:
	case -ECONNRESET:
		return 0;
	case -ETIMEDOUT:
	case -ESTALE:
		return err;
	case -ESHUTDOWN:
		return -ESTALE;
	default:
		return -EBUSY;
	}
}

/* Whether a holder asks where a lane was asked for: a port that was made anew has other numbers. */
static bool krc_lane_same_way(const struct krc_lane_slot *slot,
			      const struct krc_lane_holder *holder)
{
	return holder->peer.ud_qpn == slot->peer.ud_qpn &&
	       holder->peer.ud_qkey == slot->peer.ud_qkey;
}

/* A lane has ended: holders that wait for it wait for the next one, or not. */
static void krc_lane_tell(struct krc_lanes *lanes, struct krc_lane_slot *slot, int err)
{
	const struct krp_lane_ports *ports = &slot->e->lane.ports;
	int verdict = slot->opened ? 0 : krc_lane_verdict(err);
	struct krc_lane_holder *holder, *next;

	lockdep_assert_held(&lanes->lock);
	list_for_each_entry_safe(holder, next, &lanes->waiting, list) {
		if (holder->index != ports->index ||
		    le64_to_cpu(holder->peer.generation) != ports->peer_generation ||
		    memcmp(holder->peer.gid, ports->peer_gid, KRP_GID_BYTES))
			continue;
		if (verdict && krc_lane_same_way(slot, holder))
			krc_lane_lose(lanes, holder, verdict);
		else if (++holder->fails >= KRC_LANE_FAILS)
			krc_lane_lose(lanes, holder, -EBUSY);
	}
}

/* Take what a machine says next, and do what needs no verb. Return: what it says. */
static enum krp_lane_do krc_lane_next(struct krc_lanes *lanes, struct krc_lane_slot *slot,
				      struct krp_lane_todo *todo)
{
	u64 now_ns = ktime_get_ns();

	spin_lock_bh(&lanes->lock);
	switch (krp_lane_next(&slot->e->lane, now_ns, todo)) {
	case KRP_LANE_WAIT:
		slot->until_ns = todo->until_ns;
		break;
	case KRP_LANE_POST:
		slot->opened = true;
		krc_lane_enter(slot, KRC_SLOT_OPEN);
		krc_lane_offer(lanes, slot);
		break;
	case KRP_LANE_STOP:
		krc_lane_enter(slot, KRC_SLOT_STOPPING);
		break;
	case KRP_LANE_RESET:
		krc_lane_enter(slot, KRC_SLOT_RESETTING);
		slot->reset_by_ns = now_ns + KRC_LANE_RELEASE_NS;
		if (todo->err && todo->err != -ECONNRESET) {
			slot->closes = KRC_LANE_CLOSES;
			slot->close_ns = now_ns + KRC_LANE_CLOSE_NS;
		}
		if (slot->holder)
			krc_lane_lose(lanes, slot->holder, -ECONNRESET);
		krc_lane_tell(lanes, slot, todo->err);
		break;
	default:
		break;
	}
	spin_unlock_bh(&lanes->lock);
	return todo->what;
}

static void krc_lane_connect(struct krc_lanes *lanes, struct krc_lane_slot *slot)
{
	struct krp_lane *l = &slot->e->lane;
	int err = krc_lane_qp_connect(lanes, slot->own, &slot->peer, &l->own, &l->peer);

	if (err)
		krc_port_err_limited(lanes->queues.ibdev, lanes->port,
				     "a lane to %pI6c does not connect (%d)\n", slot->peer.gid,
				     err);
	spin_lock_bh(&lanes->lock);
	krp_lane_connected(l, ktime_get_ns(), err);
	spin_unlock_bh(&lanes->lock);
}

static void krc_lane_forget(struct krc_lanes *lanes, struct krc_lane_slot *slot)
{
	struct krc_lane_qp *qp = slot->own;

	spin_lock_bh(&lanes->lock);
	slot->own = NULL;
	slot->until_ns = KRP_LANE_FOREVER_NS;
	krp_lanes_settle(&lanes->table, slot->e);
	spin_unlock_bh(&lanes->lock);
	krc_lane_qp_put(lanes, qp);
}

void krc_lane_pull(struct krc_lanes *lanes, struct krp_lanes_entry *e)
{
	struct krc_lane_slot *slot = krc_lane_slot_of(lanes, e);
	struct krp_lane_todo todo;
	u32 i;

	slot->until_ns = 0; /* should it say more than it may in one go */
	for (i = 0; i < KRC_LANE_PULLS; i++) {
		switch (krc_lane_next(lanes, slot, &todo)) {
		case KRP_LANE_SEND:
			krc_shake_send(lanes, &slot->peer, slot->keyed ? slot->key_id : NULL,
				       &todo.packet);
			continue;
		case KRP_LANE_CONNECT:
			krc_lane_connect(lanes, slot);
			continue;
		case KRP_LANE_RESET:
			krc_lane_qp_move(slot->own, IB_QPS_ERR);
			continue;
		case KRP_LANE_FORGET:
			krc_lane_forget(lanes, slot);
			return;
		case KRP_LANE_WAIT:
			break;
		default:
			continue;
		}
		break;
	}
	spin_lock_bh(&lanes->lock);
	krp_lanes_settle(&lanes->table, e);
	if (lanes->stopping && !lanes->table.active)
		wake_up_all(&lanes->wait);
	spin_unlock_bh(&lanes->lock);
}

/* ---- what machines are told */

/* Whether a queue pair in ERR can go to RESET: nobody holds it, or not much longer. */
static bool krc_lane_resets(struct krc_lanes *lanes, struct krc_lane_slot *slot, u64 now_ns)
{
	bool resets = false;

	spin_lock_bh(&lanes->lock);
	if (slot->state == KRC_SLOT_RESETTING) {
		resets = !slot->holder || now_ns >= slot->reset_by_ns || lanes->killing;
		if (resets && slot->holder) {
			slot->breaker = slot->holder; /* for krc_lanes_sync() */
			krc_lane_detach(slot);
		}
	}
	spin_unlock_bh(&lanes->lock);
	return resets;
}

/* Nothing is executed on a queue pair any more. */
static void krc_lane_rests(struct krc_lanes *lanes, struct krc_lane_slot *slot)
{
	spin_lock_bh(&lanes->lock);
	krc_lane_enter(slot, KRC_SLOT_SHUT);
	slot->breaker = NULL;
	if (slot->e)
		krp_lane_reset(&slot->e->lane, ktime_get_ns());
	wake_up_all(&lanes->wait);
	spin_unlock_bh(&lanes->lock);
}

/*
 * Destroy a queue pair, so that nothing is executed on it any more. A holder that it was taken from
 * posts no more when it was told, which may be due still.
 */
static void krc_lane_end(struct krc_lanes *lanes, struct krc_lane_qp *qp)
{
	krc_lanes_call(lanes);
	wait_event(lanes->wait, krc_lanes_called(lanes));
	if (qp->qp)
		ib_destroy_qp(qp->qp);
	qp->qp = NULL;
}

/*
 * Say again that a lane has failed: the machine says it once, and a peer that has not heard it posts to
 * a queue pair that is in RESET.
 */
static void krc_lane_close_again(struct krc_lanes *lanes, struct krc_lane_slot *slot, u64 now_ns)
{
	struct krp_lane_todo todo = {};

	if (!slot->closes || now_ns < slot->close_ns || slot->e->lane.state < KRP_LANE_RESETTING)
		return;
	slot->closes--;
	slot->close_ns = now_ns + 8 * KRC_LANE_CLOSE_NS;
	if (slot->e->lane.peer_closes)
		slot->closes = 0; /* it knows */
	else
		krp_lane_fill(&slot->e->lane, &todo, KRP_LANE_CLOSE);
	if (todo.what == KRP_LANE_SEND)
		krc_shake_send(lanes, &slot->peer, slot->keyed ? slot->key_id : NULL, &todo.packet);
}

static void krc_lane_tend(struct krc_lanes *lanes, struct krc_lane_slot *slot, u64 now_ns)
{
	bool due = now_ns >= slot->until_ns;

	if (slot->e->place == KRP_LANES_FREE)
		return;
	krc_lane_close_again(lanes, slot, now_ns);
	spin_lock_bh(&lanes->lock);
	/* an event may come behind the end, of which nothing follows */
	if (READ_ONCE(slot->own->fatal) && slot->e->lane.state < KRP_LANE_RESETTING)
		krc_lane_enter(slot, KRC_SLOT_BROKEN);
	if (slot->state == KRC_SLOT_BROKEN) {
		krp_lane_failed(&slot->e->lane, -EIO);
		due = true;
	} else if (slot->state == KRC_SLOT_STOPPING && !slot->holder) {
		krc_lane_enter(slot, KRC_SLOT_SHUT);
		krp_lane_drained(&slot->e->lane, now_ns);
		due = true;
	}
	if (lanes->killing && slot->e->lane.state < KRP_LANE_RESETTING) {
		krp_lane_failed(&slot->e->lane, -ESHUTDOWN);
		due = true;
	}
	spin_unlock_bh(&lanes->lock);
	if (due)
		krc_lane_pull(lanes, slot->e);
	if (!krc_lane_resets(lanes, slot, now_ns))
		return;
	/*
	 * Not RESET: rxe of 6.1 does not stop what answers the last requests of the peer, takes packets
	 * from under it, and counts its queue pair down once too often. To destroy it waits.
	 */
	krc_lane_end(lanes, slot->own);
	krc_lane_rests(lanes, slot);
	krc_lane_pull(lanes, slot->e);
}

/* Ask all lanes to close, once. */
static void krc_lanes_close(struct krc_lanes *lanes)
{
	u64 now_ns = ktime_get_ns();
	u32 i;

	lanes->closed = true;
	for (i = 0; i < 2 * KRC_LANES_MAX; i++) {
		struct krp_lanes_entry *e = lanes->slots[i].e;
		bool pull;

		spin_lock_bh(&lanes->lock);
		pull = e->place == KRP_LANES_ACTIVE && krp_lane_close(&e->lane, now_ns);
		spin_unlock_bh(&lanes->lock);
		if (pull)
			krc_lane_pull(lanes, e);
	}
	spin_lock_bh(&lanes->lock);
	for (i = 0; i < KRP_LANE_INDEXES; i++)
		if (lanes->loops[i].own)
			krc_lane_enter(&lanes->loops[i], KRC_SLOT_BROKEN);
	wake_up_all(&lanes->wait);
	spin_unlock_bh(&lanes->lock);
}

/* ---- lanes of the port to itself */

static int krc_loop_connect(struct krc_lanes *lanes, struct krc_lane_slot *slot,
			    struct krc_lane_qp *a, struct krc_lane_qp *b)
{
	const struct krp_value *value = &lanes->services.value;
	struct krp_lane_end end_a = { .qpn = a->qp->qp_num,
				      .psn = get_random_u32() & KRC_LANE_PSN_MASK,
				      .mtu = value->dct.mtu,
				      .max_rd_atomic = lanes->max_rd };
	struct krp_lane_end end_b = end_a;
	int err;

	end_b.qpn = b->qp->qp_num;
	end_b.psn = get_random_u32() & KRC_LANE_PSN_MASK;
	err = krc_lane_qp_connect(lanes, b, &slot->peer, &end_b, &end_a);
	return err ?: krc_lane_qp_connect(lanes, a, &slot->peer, &end_a, &end_b);
}

/* Make the lane of a holder to its own port. */
static void krc_loop_make(struct krc_lanes *lanes, struct krc_lane_slot *slot,
			  const struct krc_lane_peer *peer)
{
	struct krc_lane_qp *a = krc_lane_qp_take(lanes), *b = krc_lane_qp_take(lanes);
	int err = -ENOMEM;

	slot->peer = *peer;
	if (a && b)
		err = krc_loop_connect(lanes, slot, a, b);
	if (err) {
		krc_port_err_limited(lanes->queues.ibdev, lanes->port,
				     "a lane to itself does not connect (%d)\n", err);
		krc_lane_qp_free(a);
		krc_lane_qp_free(b);
		return; /* tried again until it has waited long enough */
	}
	spin_lock_bh(&lanes->lock);
	slot->own = a;
	slot->other = b;
	krc_lane_enter(slot, KRC_SLOT_OPEN);
	krc_lane_offer(lanes, slot);
	spin_unlock_bh(&lanes->lock);
}

static void krc_loop_tend(struct krc_lanes *lanes, struct krc_lane_slot *slot, u64 now_ns)
{
	struct krc_lane_qp *own = slot->own, *other = slot->other;
	bool broken;

	if (!own)
		return;
	spin_lock_bh(&lanes->lock);
	if (READ_ONCE(own->fatal) || READ_ONCE(other->fatal))
		krc_lane_enter(slot, KRC_SLOT_BROKEN);
	broken = slot->state == KRC_SLOT_BROKEN && krc_lane_enter(slot, KRC_SLOT_RESETTING);
	if (broken) {
		slot->reset_by_ns = now_ns + KRC_LANE_RELEASE_NS;
		if (slot->holder)
			krc_lane_lose(lanes, slot->holder, -ECONNRESET);
	}
	spin_unlock_bh(&lanes->lock);
	if (broken) {
		krc_lane_qp_move(own, IB_QPS_ERR);
		krc_lane_qp_move(other, IB_QPS_ERR);
	}
	if (!krc_lane_resets(lanes, slot, now_ns))
		return;
	krc_lane_end(lanes, own);
	krc_lane_end(lanes, other);
	spin_lock_bh(&lanes->lock);
	slot->own = NULL;
	slot->other = NULL;
	spin_unlock_bh(&lanes->lock);
	krc_lane_rests(lanes, slot);
	krc_lane_qp_free(own);
	krc_lane_qp_free(other);
}

/* ---- lanes that are wanted */

/*
 * REQUEST a lane. Return: 0; -EAGAIN, -EDQUOT, -EBUSY: no room now; -ENOMEM, -EINVAL.
 */
static int krc_lane_make(struct krc_lanes *lanes, const struct krc_lane_peer *peer, u32 index,
			 const void *who)
{
	const struct krc_hw_lanes *services = &lanes->services;
	struct krp_lane_ports ports = { .generation = services->generation,
					.peer_generation = le64_to_cpu(peer->generation),
					.index = index,
					.mtu = min(services->value.dct.mtu, peer->mtu),
					.max_rd_atomic = lanes->max_rd };
	struct krp_lane_end own = { .psn = get_random_u32() & KRC_LANE_PSN_MASK };
	struct krp_lanes_payer *payer = krc_lane_payer_get(lanes, who);
	struct krp_lanes_entry *e = NULL, *victim;
	u64 now_ns = ktime_get_ns(), nonce;
	struct krc_lane_qp *qp;
	int err;

	qp = payer ? krc_lane_qp_take(lanes) : NULL;
	if (!qp)
		return -ENOMEM;
	do
		nonce = get_random_u64();
	while (!nonce);
	own.qpn = qp->qp->qp_num;
	memcpy(ports.gid, services->gid.raw, KRP_GID_BYTES);
	memcpy(ports.peer_gid, peer->gid, KRP_GID_BYTES);
	spin_lock_bh(&lanes->lock);
	err = krp_lanes_room(&lanes->table, payer, now_ns, &victim);
	if (!err) {
		e = krp_lanes_make(&lanes->table, payer, &ports, &own, nonce, &services->value,
				   now_ns);
		err = e ? 0 : -EINVAL;
	}
	if (e)
		krc_lane_adopt(lanes, e, qp, peer);
	spin_unlock_bh(&lanes->lock);
	if (victim)
		krc_lane_pull(lanes, victim);
	if (e)
		krc_lane_pull(lanes, e);
	else
		krc_lane_qp_put(lanes, qp);
	return err;
}

/* Find the next holder that waits and was not seen in this round. Return: it, or NULL. */
static struct krc_lane_holder *krc_lanes_unseen(struct krc_lanes *lanes)
{
	struct krc_lane_holder *holder;

	lockdep_assert_held(&lanes->lock);
	list_for_each_entry(holder, &lanes->waiting, list) {
		if (holder->round != lanes->round) {
			holder->round = lanes->round;
			return holder;
		}
	}
	return NULL;
}

/* Whether a port has proved by a lane that it has a later generation than a holder wants. */
static bool krc_lane_outlived(struct krc_lanes *lanes, const struct krc_lane_holder *holder)
{
	struct krp_lanes_entry *e;
	u32 i;

	lockdep_assert_held(&lanes->lock);
	for (i = 0; i < KRP_LANE_INDEXES; i++) {
		e = krp_lanes_find(&lanes->table, holder->peer.gid, i);
		if (e && e->lane.ports.peer_generation > le64_to_cpu(holder->peer.generation) &&
		    e->lane.state > KRP_LANE_ASKING && e->lane.state < KRP_LANE_RESETTING)
			return true;
	}
	return false;
}

/*
 * Find the index of a lane that is to be made for a holder. That there is a later generation says a
 * record of any service, which may be wrong: lanes to the one before are not ended by that while
 * somebody holds them. The hand-shake of the first lane to the later one ends them if it is so.
 * @ret_pull: a lane that is in the way, to be pulled, or NULL.
 * Return: whether holder->index is one; else it waits for a lane.
 */
static bool krc_lane_place(struct krc_lanes *lanes, struct krc_lane_holder *holder,
			   struct krp_lanes_entry **ret_pull)
{
	u64 generation = le64_to_cpu(holder->peer.generation);
	struct krp_lanes_entry *e, *idle = NULL;
	bool comes = false;
	u32 i, index;

	lockdep_assert_held(&lanes->lock);
	for (i = 0; i < KRP_LANE_INDEXES; i++) {
		index = (holder->index + i) % KRP_LANE_INDEXES;
		if (!krc_lanes_alike(index, holder->index))
			continue;
		e = krp_lanes_find(&lanes->table, holder->peer.gid, index);
		if (!e) {
			holder->index = index;
			return true;
		}
		comes |= e->lane.ports.peer_generation == generation;
		if (comes && !i)
			return false;
		if (!idle && !krc_lane_slot_of(lanes, e)->holder &&
		    e->lane.state > KRP_LANE_ASKING && e->lane.state < KRP_LANE_RESETTING)
			idle = e;
	}
	if (!comes && idle) {
		krp_lane_failed(&idle->lane, -ECONNRESET);
		*ret_pull = idle;
	}
	return false;
}

/*
 * What is to be done for a holder that waits.
 * @ret_loop: the lane of the port to itself that is to be made, or NULL.
 * @ret_pull: a lane that is in the way, to be pulled, or NULL.
 * Return: whether a lane to a peer is to be made for it.
 */
static bool krc_lane_wants(struct krc_lanes *lanes, struct krc_lane_holder *holder, u64 now_ns,
			   struct krc_lane_slot **ret_loop, struct krp_lanes_entry **ret_pull)
{
	struct krc_lane_slot *loop = &lanes->loops[holder->index];

	lockdep_assert_held(&lanes->lock);
	*ret_loop = NULL;
	*ret_pull = NULL;
	if (now_ns - holder->since_ns >= KRC_LANE_WAIT_NS) {
		krc_lane_lose(lanes, holder, -EBUSY);
		return false;
	}
	if (!memcmp(holder->peer.gid, lanes->services.gid.raw, KRP_GID_BYTES)) {
		if (le64_to_cpu(holder->peer.generation) != lanes->services.generation)
			krc_lane_lose(lanes, holder, -ESTALE);
		else if (!loop->own)
			*ret_loop = loop;
		return false;
	}
	if (!krc_lane_outlived(lanes, holder))
		return krc_lane_place(lanes, holder, ret_pull);
	krc_lane_lose(lanes, holder, -ESTALE);
	return false;
}

/* Do something for the next holder that waits. Return: false: all were seen in this round. */
static bool krc_lanes_want_next(struct krc_lanes *lanes, bool *ret_again)
{
	struct krc_lane_holder *holder;
	struct krp_lanes_entry *pull = NULL;
	struct krc_lane_slot *loop = NULL;
	u64 now_ns = ktime_get_ns(), since_ns = now_ns;
	struct krc_lane_peer peer;
	const void *who = NULL;
	bool make = false;
	u32 index = 0;
	int err;

	spin_lock_bh(&lanes->lock);
	holder = krc_lanes_unseen(lanes);
	if (holder) {
		peer = holder->peer;
		who = holder->payer;
		since_ns = holder->since_ns;
		make = krc_lane_wants(lanes, holder, now_ns, &loop, &pull);
		index = holder->index;
	}
	spin_unlock_bh(&lanes->lock);
	if (!holder)
		return false;
	*ret_again = true;
	if (loop)
		krc_loop_make(lanes, loop, &peer);
	if (pull)
		krc_lane_pull(lanes, pull);
	if (!make)
		return true;
	err = krc_lane_make(lanes, &peer, index, who);
	if (!err || (now_ns - since_ns < KRC_LANE_ROOM_NS && err != -EINVAL))
		return true;
	spin_lock_bh(&lanes->lock);
	list_for_each_entry(holder, &lanes->waiting, list) {
		if (holder->index == index && !memcmp(&holder->peer, &peer, sizeof(peer)) &&
		    holder->since_ns == since_ns) {
			krc_lane_lose(lanes, holder, -EBUSY);
			break;
		}
	}
	spin_unlock_bh(&lanes->lock);
	return true;
}

/* ---- the work item */

/*
 * A lane that peers have had made, and that was not used here: the peer knows whether it needs it, and
 * closes it; this end does only if the peer seems to be gone for good.
 */
static void krc_lanes_spare_peers(struct krc_lanes *lanes, u64 now_ns)
{
	struct krp_list *list = &lanes->table.peers.lanes; /* least recently used first */
	u32 i;

	lockdep_assert_held(&lanes->lock);
	for (i = 0; i < KRC_LANES_MAX && !krp_list_empty(list); i++) {
		struct krp_lanes_entry *e = krp_entry(list->next, struct krp_lanes_entry, link);
		struct krc_lane_slot *slot = krc_lane_slot_of(lanes, e);

		if (now_ns - e->used_ns < lanes->table.conf.idle_ns ||
		    slot->spared >= KRC_LANE_SPARED)
			return;
		slot->spared++;
		e->used_ns = now_ns;
		krp_lanes_move(e, list);
	}
}

static void krc_lanes_idle(struct krc_lanes *lanes)
{
	struct krp_lanes_entry *e;
	u32 i;

	for (i = 0; i < KRC_LANES_MAX; i++) {
		u64 now_ns = ktime_get_ns();

		spin_lock_bh(&lanes->lock);
		krc_lanes_spare_peers(lanes, now_ns);
		e = krp_lanes_idle(&lanes->table, now_ns);
		spin_unlock_bh(&lanes->lock);
		if (!e)
			return;
		krc_lane_pull(lanes, e);
	}
}

static void krc_lanes_tend(struct krc_lanes *lanes)
{
	u64 now_ns = ktime_get_ns();
	u32 i;

	for (i = 0; i < 2 * KRC_LANES_MAX; i++)
		krc_lane_tend(lanes, &lanes->slots[i], now_ns);
	for (i = 0; i < KRP_LANE_INDEXES; i++)
		krc_loop_tend(lanes, &lanes->loops[i], now_ns);
}

/* When there is something to do next, if nothing happens. */
static u64 krc_lanes_until(struct krc_lanes *lanes, u64 now_ns, bool again)
{
	u64 until_ns = KRP_LANE_FOREVER_NS;
	u32 i;

	for (i = 0; i < 2 * KRC_LANES_MAX; i++) {
		const struct krc_lane_slot *slot = &lanes->slots[i];

		if (slot->e->place == KRP_LANES_FREE)
			continue;
		until_ns = min3(until_ns, slot->until_ns, now_ns + KRC_LANE_TEND_NS);
		if (slot->closes)
			until_ns = min(until_ns, slot->close_ns);
		if (READ_ONCE(slot->state) == KRC_SLOT_RESETTING)
			until_ns = min(until_ns, slot->reset_by_ns);
	}
	for (i = 0; i < KRP_LANE_INDEXES; i++)
		if (READ_ONCE(lanes->loops[i].state) == KRC_SLOT_RESETTING)
			until_ns = min(until_ns, lanes->loops[i].reset_by_ns);
	if (krc_shake_broken(lanes))
		until_ns = min(until_ns, now_ns + KRC_LANE_MEND_NS);
	return again ? min(until_ns, now_ns + KRC_LANE_TRY_NS) : until_ns;
}

void krc_lanes_run(struct work_struct *work)
{
	struct krc_lanes *lanes = container_of(to_delayed_work(work), struct krc_lanes, work);
	bool more, again = false;
	u64 now_ns, until_ns;
	u32 i;

	if (!READ_ONCE(lanes->started))
		return;
	more = krc_shake_run(lanes);
	if (READ_ONCE(lanes->stopping) && !lanes->closed)
		krc_lanes_close(lanes);
	krc_lanes_tend(lanes);
	lanes->round++;
	for (i = 0; i < KRC_LANE_WANTS && krc_lanes_want_next(lanes, &again); i++)
		; /* each holder is seen once */
	krc_lanes_idle(lanes);
	krc_lane_payers_tend(lanes);
	krc_lanes_call(lanes);
	if (!lanes->stopping)
		krc_lane_qps_refill(lanes);
	now_ns = ktime_get_ns();
	until_ns = krc_lanes_until(lanes, now_ns, again);
	if (more || until_ns <= now_ns)
		krc_lanes_kick(lanes);
	else if (until_ns != KRP_LANE_FOREVER_NS)
		queue_delayed_work(lanes->wq, &lanes->work,
				   nsecs_to_jiffies(until_ns - now_ns) + 1);
}
