// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the messages of a port from creation to end, its receive buffers, and the way of what comes
 * to the stream or listener that it is for.
 *
 * What comes is taken by one work item at a time. It copies the message of a packet into a letter,
 * so the buffer goes back to the hardware at once, however slow programs are. No task of a program
 * takes it, not even one that polls: if that got no processor (SCHED_IDLE, a throttled cgroup) with
 * the receive queue in its hands, nobody's messages would come. For the same reason what takes it
 * waits behind no work of streams, which may sleep for as long as a look-up does.
 * Locking: krc_messages.receive.mutex for the receive queue; its wake_lock (interrupts off) for the
 * end of upcalls.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "base/log.h"
#include "message/message_priv.h"
#include "pool/pool.h"

#define KRC_MESSAGES_CHANNELS 2
#define KRC_MESSAGES_BATCH 16
#define KRC_MESSAGES_ROUNDS 64 /* batches before others have their turn */
#define KRC_RETRY_NS (20 * NSEC_PER_MSEC)
#define KRC_RETRY_MAX_NS NSEC_PER_SEC
#define KRC_ACK_NS (2 * NSEC_PER_MSEC)
#define KRC_SILENCE_NS (10ULL * NSEC_PER_SEC)
#define KRC_LINGER_NS (2ULL * NSEC_PER_SEC)
#define KRC_END_TIMEOUT_MS 10000
#define KRC_WINDOW 48 /* messages; less than KRC_STREAM_SLOTS */

static unsigned int krc_keepalive_s = 60;
module_param_named(keepalive_s, krc_keepalive_s, uint, 0644);
MODULE_PARM_DESC(keepalive_s,
		 "Seconds until a silent peer of a connection is asked (0: never, at most 86400)");

struct workqueue_struct *krc_messages_wq;
struct workqueue_struct *krc_messages_rx_wq;

int krc_messages_init(void)
{
	if (krc_streams_init())
		return -ENOMEM;
	krc_messages_wq = alloc_workqueue("krcore_messages", WQ_HIGHPRI | WQ_UNBOUND, 0);
	if (!krc_messages_wq)
		goto err_streams;
	krc_messages_rx_wq = alloc_workqueue("krcore_receive", WQ_HIGHPRI | WQ_UNBOUND, 0);
	if (krc_messages_rx_wq)
		return 0;
	destroy_workqueue(krc_messages_wq);
err_streams:
	krc_streams_exit();
	return -ENOMEM;
}

void krc_messages_exit(void)
{
	destroy_workqueue(krc_messages_rx_wq);
	destroy_workqueue(krc_messages_wq); /* frees the last streams */
	krc_streams_exit();
}

/* ---- what comes */

static void krc_messages_dispatch(struct krc_messages *m, const void *data, u32 bytes)
{
	const struct krp_message *packet = data;
	struct krc_stream *st;

	lockdep_assert_held(&m->receive.mutex);
	krc_message_count(m, KRC_COUNT_PACKETS);
	if (krp_message_check(packet, bytes)) {
		krc_message_count(m, KRC_COUNT_MALFORMED);
		return;
	}
	if (packet->type == KRP_MESSAGE_OPEN) {
		krc_open_came(m, packet, bytes, m->receive.empty_ns);
		return;
	}
	st = krc_stream_find(m, le32_to_cpu(packet->dst));
	if (!st) {
		krc_unknown_came(m, packet);
		return;
	}
	krc_stream_take(st, packet, m->receive.empty_ns);
	krc_stream_put(st);
}

/* Take up to a batch. Return: how many. */
static int krc_messages_batch(struct krc_messages *m)
{
	const struct krc_provider_ops *ops = m->rail->ops;
	struct krc_recv_wc wc[KRC_MESSAGES_BATCH];
	u64 now_ns = ktime_get_ns();
	int nr, i;

	lockdep_assert_held(&m->receive.mutex);
	nr = ops->recv_poll(m->target, wc, ARRAY_SIZE(wc));
	for (i = 0; i < nr; i++) {
		struct krc_packet *packet = krc_packet_at(m->receive.packets, wc[i].cookie);

		if (WARN_ON_ONCE(!packet))
			continue;
		krc_packet_received(packet, wc[i].bytes);
		if (wc[i].fault == KRC_FAULT_NONE)
			krc_messages_dispatch(m, packet->data, wc[i].bytes);
		else
			krc_message_count(m, KRC_COUNT_FAULTS);
		if (WARN_ON_ONCE(krc_packet_post(packet, m->target)))
			krc_packet_put(packet);
	}
	if (nr)
		ops->recv_ring(m->target);
	if (nr < (int)ARRAY_SIZE(wc))
		m->receive.empty_ns = now_ns; /* there was no more then */
	return nr;
}

/* Take what there is. Return: whether there may be more. */
static bool krc_messages_receive(struct krc_messages *m)
{
	u32 i;

	for (i = 0; i < KRC_MESSAGES_ROUNDS; i++)
		if (!krc_messages_batch(m))
			return false;
	return true;
}

static void krc_messages_wake(struct krc_messages *m)
{
	unsigned long flags;

	spin_lock_irqsave(&m->receive.wake_lock, flags);
	if (!m->receive.deaf)
		queue_work(krc_messages_rx_wq, &m->receive.work);
	spin_unlock_irqrestore(&m->receive.wake_lock, flags);
}

static void krc_messages_work(struct work_struct *work)
{
	struct krc_messages *m = container_of(work, struct krc_messages, receive.work);
	bool more;

	if (!krc_rail_enter(m->rail))
		return;
	mutex_lock(&m->receive.mutex);
	more = krc_messages_receive(m);
	if (!more) {
		m->rail->ops->recv_arm(m->target);
		more = krc_messages_receive(m); /* what came before it was armed */
	}
	mutex_unlock(&m->receive.mutex);
	krc_rail_exit(m->rail);
	if (more)
		krc_messages_wake(m);
}

void krc_messages_poll(struct krc_messages *m)
{
	if (!mutex_trylock(&m->receive.mutex))
		return;
	if (m->receive.packets && !READ_ONCE(m->stopped))
		krc_messages_receive(m);
	mutex_unlock(&m->receive.mutex);
}

void krc_messages_on_received(void *target_owner)
{
	krc_messages_wake(target_owner);
}

void krc_messages_on_fatal(void *target_owner)
{
	const struct krc_messages *m = target_owner;

	krc_port_warn(m->rail->ibdev, m->rail->num,
		      "messages can't be received any more: the receive queue is broken");
}

/* ---- beginning */

u32 krc_messages_depth(const struct krc_rail *rail)
{
	return min_t(u32, KRC_MESSAGES_RX, rail->attr.recv_depth_max);
}

static void krc_messages_tables(struct krc_messages *m)
{
	spin_lock_init(&m->lock);
	spin_lock_init(&m->receive.wake_lock);
	mutex_init(&m->asked.mutex);
	mutex_init(&m->receive.mutex);
	xa_init_flags(&m->streams, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_BH);
	xa_init_flags(&m->listeners, XA_FLAGS_LOCK_BH);
	hash_init(m->opens);
	hash_init(m->known.passes);
	hash_init(m->known.tombstones);
	hash_init(m->known.by_number);
	INIT_LIST_HEAD(&m->known.passes_old);
	INIT_LIST_HEAD(&m->known.tombstones_old);
	INIT_LIST_HEAD(&m->thirsty);
	hash_init(m->shares);
	INIT_LIST_HEAD(&m->over);
	INIT_LIST_HEAD(&m->share.thirsty);
	INIT_LIST_HEAD(&m->share.over);
	m->share.payer = m;
	INIT_LIST_HEAD(&m->asked.opens);
	INIT_WORK(&m->asked.work, krc_open_work);
	INIT_WORK(&m->receive.work, krc_messages_work);
}

struct krc_messages *krc_messages_create(struct krc_rail *rail,
					 const struct krc_message_records *records)
{
	struct krc_messages *m = kvzalloc(sizeof(*m), GFP_KERNEL);

	if (!m)
		return ERR_PTR(-ENOMEM);
	kref_init(&m->ref);
	krc_messages_tables(m);
	m->rail = krc_rail_get(rail);
	m->records = *records;
	m->receive.deaf = true;
	m->stopped = true;
	m->timeout_ms = KRC_END_TIMEOUT_MS;
	get_random_bytes(&m->secret, sizeof(m->secret));
	m->asked.lookups.seed = get_random_u64();
	m->asked.lookups.max = KRC_OPENS_ASKED;
	m->conf = (struct krp_stream_conf){
		.retry_ns = KRC_RETRY_NS,
		.retry_max_ns = KRC_RETRY_MAX_NS,
		.ack_ns = KRC_ACK_NS,
		.silence_ns = KRC_SILENCE_NS,
		.idle_ns = min_t(u64, READ_ONCE(krc_keepalive_s) * (u64)NSEC_PER_SEC,
				 KRP_STREAM_IDLE_MAX_NS),
		.linger_ns = KRC_LINGER_NS,
		.msgs = KRC_WINDOW,
		.units = KRC_WINDOW * KRP_MESSAGE_UNITS_MAX,
		.lease_ms = KRP_MRDIR_LEASE_MS,
		.margin_ms = clamp_t(u32, rail->margin_ms, KRP_MRDIR_MARGIN_MS_MIN,
				     KRP_MRDIR_MARGIN_MS_MAX),
	};
	return m;
}

/* Give all receive buffers to the hardware. Return: 0, or the error of the provider. */
static int krc_messages_fill(struct krc_messages *m)
{
	struct krc_packet *packet;
	int err;

	while ((packet = krc_packet_get(m->receive.packets))) {
		err = krc_packet_post(packet, m->target);
		if (err) {
			krc_packet_put(packet);
			return err;
		}
	}
	m->rail->ops->recv_ring(m->target);
	return 0;
}

int krc_messages_start(struct krc_messages *m, struct krc_hw_target *target, struct krc_pool *pool,
		       const struct krp_value *value)
{
	int err;

	m->target = target;
	m->pool = pool;
	m->value = *value;
	m->value.generation = cpu_to_le64(m->rail->generation);
	m->receive.empty_ns = ktime_get_ns();
	err = krc_pool_enable_messages(pool, KRC_MESSAGES_CHANNELS);
	if (err)
		return err;
	m->receive.packets = krc_packets_create(m->rail, krc_messages_depth(m->rail));
	if (IS_ERR(m->receive.packets)) {
		err = PTR_ERR(m->receive.packets);
		m->receive.packets = NULL;
		return err;
	}
	m->tx = krc_packets_create(m->rail, KRC_MESSAGES_TX);
	if (IS_ERR(m->tx)) {
		err = PTR_ERR(m->tx);
		m->tx = NULL;
		return err;
	}
	krc_answers_init(m);
	err = krc_messages_fill(m);
	if (err)
		return err;
	WRITE_ONCE(m->stopped, false);
	spin_lock_irq(&m->receive.wake_lock);
	m->receive.deaf = false;
	spin_unlock_irq(&m->receive.wake_lock);
	krc_messages_wake(m);
	return 0;
}

/* ---- end */

/* Do something to each stream. */
static void krc_messages_each(struct krc_messages *m, void (*fn)(struct krc_stream *st))
{
	unsigned long number = 0;
	struct krc_stream *st;

	for (;;) {
		xa_lock_bh(&m->streams);
		st = xa_find(&m->streams, &number, ULONG_MAX, XA_PRESENT);
		if (st)
			krc_stream_get(st);
		xa_unlock_bh(&m->streams);
		if (!st)
			return;
		fn(st);
		krc_stream_put(st);
		number++;
	}
}

/* Say which task the end of a port waits for. */
static void krc_messages_held_up(struct krc_stream *st)
{
	struct krc_messages *m = st->m;

	spin_lock_bh(&st->lock); /* under which the task leaves, so it is there */
	if (st->run.task) {
		atomic64_inc(&m->count[KRC_COUNT_HELD_UP]);
		krc_port_warn(m->rail->ibdev, m->rail->num,
			      "the end of messages is held up by %s (%d), at connection %u\n",
			      st->run.task->comm, task_pid_nr(st->run.task), st->number);
	}
	spin_unlock_bh(&st->lock);
}

/*
 * Wait until no task is at a stream. It may be one of a program, which its scheduler keeps from the processor
 * for as long as it likes; what it does meanwhile no other task can do for it, so it is waited for.
 */
static void krc_messages_await(struct krc_stream *st)
{
	unsigned long timeout = msecs_to_jiffies(st->m->timeout_ms);

	while (!wait_var_event_timeout(&st->run.task, !READ_ONCE(st->run.task), timeout))
		krc_messages_held_up(st);
}

static void krc_messages_kill(struct krc_stream *st)
{
	spin_lock_bh(&st->lock);
	if (st->s.state == KRP_STREAM_LINGER)
		st->run.events |= 1U << KRP_STREAM_FORGET; /* nothing it lingers for can come */
	spin_unlock_bh(&st->lock);
	krc_stream_die(st, -ENODEV, 0);
	/* a task that was at it already tells of that, and no later than this returns */
	krc_messages_await(st);
}

/* No peer READs any more, since there is no target. */
static void krc_messages_bury(struct krc_stream *st)
{
	spin_lock_bh(&st->lock);
	st->s.other_generation = 1; /* nobody is there whom announced memory could be held for */
	krc_stream_pull(st);
	spin_unlock_bh(&st->lock);
	krc_stream_run(st);
}

void krc_messages_stop(struct krc_messages *m)
{
	bool was;

	spin_lock_irq(&m->receive.wake_lock);
	m->receive.deaf = true;
	spin_unlock_irq(&m->receive.wake_lock);
	mutex_lock(&m->asked.mutex);
	spin_lock_bh(&m->lock);
	was = m->stopped;
	WRITE_ONCE(m->stopped, true);
	spin_unlock_bh(&m->lock);
	mutex_unlock(&m->asked.mutex);
	if (was)
		return;
	cancel_work_sync(&m->receive.work);
	cancel_work_sync(&m->asked.work);
	krc_opens_drop(m);
	synchronize_rcu(); /* whoever pulls has seen @stopped, also of a stream in no table */
	krc_messages_each(m, krc_messages_kill);
	krc_answers_end(m);
}

/* Wait until each task that has taken a packet to send has seen that the port is gone. */
static void krc_messages_settle(struct krc_messages *m)
{
	u32 tries = 0;

	while (m->tx && krc_packets_free(m->tx) != KRC_MESSAGES_TX) {
		msleep(20);
		WARN_ON(++tries == 500);
	}
}

void krc_messages_destroy(struct krc_messages *m)
{
	krc_messages_each(m, krc_messages_bury);
	krc_messages_settle(m);
	krc_streams_forget(m);
	mutex_lock(&m->receive.mutex);
	if (m->receive.packets)
		krc_packets_destroy(m->receive.packets);
	if (m->tx)
		krc_packets_destroy(m->tx);
	m->receive.packets = NULL;
	m->tx = NULL;
	mutex_unlock(&m->receive.mutex);
	krc_messages_put(m);
}

static void krc_messages_free(struct kref *ref)
{
	struct krc_messages *m = container_of(ref, struct krc_messages, ref);
	struct krc_pass *pass, *next;

	krc_tombstones_free(m, true);
	list_for_each_entry_safe(pass, next, &m->known.passes_old, list)
		kfree(pass);
	xa_destroy(&m->streams);
	xa_destroy(&m->listeners);
	krc_rail_put(m->rail);
	kvfree(m);
}

void krc_messages_put(struct krc_messages *m)
{
	kref_put(&m->ref, krc_messages_free);
}

void krc_messages_stats(struct krc_messages *m, struct krc_messages_stats *ret_stats)
{
	const atomic64_t *count = m->count;

	*ret_stats = (struct krc_messages_stats){
		.packets = atomic64_read(&count[KRC_COUNT_PACKETS]),
		.faults = atomic64_read(&count[KRC_COUNT_FAULTS]),
		.malformed = atomic64_read(&count[KRC_COUNT_MALFORMED]),
		.unknown = atomic64_read(&count[KRC_COUNT_UNKNOWN]),
		.foreign = atomic64_read(&count[KRC_COUNT_FOREIGN]),
		.opens = atomic64_read(&count[KRC_COUNT_OPENS]),
		.opens_dropped = atomic64_read(&count[KRC_COUNT_OPENS_DROPPED]),
		.challenges = atomic64_read(&count[KRC_COUNT_CHALLENGES]),
		.refusals = atomic64_read(&count[KRC_COUNT_REFUSALS]),
		.posted = atomic64_read(&count[KRC_COUNT_POSTED]),
		.failed = atomic64_read(&count[KRC_COUNT_FAILED]),
		.replays = atomic64_read(&count[KRC_COUNT_REPLAYS]),
		.no_memory = atomic64_read(&count[KRC_COUNT_NO_MEMORY]),
		.streams = READ_ONCE(m->streams_nr),
		.listeners = READ_ONCE(m->listeners_nr),
	};
}
