// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Records by way of the node's module; see by_module.h.
 *
 * Locks: krl_module.lock guards everything but the subscriber. That has sub_lock, so that
 * krcore_subscribe(NULL) returns only when the subscriber no longer runs. System calls that
 * wait for a MetaServer are made with the lock held for publishing, which is rare, and
 * without it for look-ups. A file is replaced in place by dup3(2), so that a concurrent call
 * never uses a descriptor that was closed and reused.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "client/lib/base.h"
#include "client/lib/by_module.h"
#include "client/lib/out.h"
#include "client/wire.h"
#include "proto/krp_ioctl.h"
#include "proto/krp_msg.h"

#define KRL_MODULE_DEVICE "/dev/krcore"
#define KRL_MODULE_TIMEOUT_MS 5000 /* default */
#define KRL_MODULE_AGAIN_MS 1000 /* interval of attempts to find a port that is gone */
#define KRL_MODULE_TURN_MS 1000 /* how long all that is due is published without a pause */
#define KRL_MODULE_PORTS_MAX 16
#define KRL_MODULE_EVENTS 64

_Static_assert(KRCORE_RAW_BYTES == KRP_RAW_BYTES, "raw bytes");
_Static_assert(KRCORE_EVENT_RESYNC == KRP_EVENT_RESYNC, "events");

/**
 * struct krl_module_port - An open file for one port of the node.
 * @gid: its GID; zero for the one that looks up and watches, by any port.
 * @fd: file, or -1 from the beginning.
 * @gone: the port behind @fd is gone.
 */
struct krl_module_port {
	uint8_t gid[KRCORE_GID_BYTES];
	int fd;
	bool gone;
};

/**
 * struct krl_module_record - A record to be kept up.
 * @next: list.
 * @port: index of its port.
 * @due: it is not published now, or not with this value.
 * @arg: what is published.
 */
struct krl_module_record {
	struct krl_module_record *next;
	unsigned int port;
	bool due;
	struct krp_record_publish arg;
};

/**
 * struct krl_module - A context that the module serves.
 * @head: krl_module_ops.
 * @lock: see the head of this file.
 * @timeout_ms: bound of each call.
 * @ports: files; the first is the one without a GID.
 * @ports_nr: how many.
 * @records: to be kept up.
 * @turn: port at which the thread begins to publish what is due; taken modulo @ports_nr.
 * @watching: the first file is subscribed to changes.
 * @sub_lock: see the head of this file.
 * @sub_fn: subscriber.
 * @sub_arg: its argument.
 * @thread: thread, once @running.
 * @running: it was started.
 * @stop: it shall end.
 * @wake_fd: eventfd that wakes it.
 * @n: counters, relaxed.
 */
struct krl_module {
	struct krl_head head;
	pthread_mutex_t lock;
	uint32_t timeout_ms;
	struct krl_module_port ports[KRL_MODULE_PORTS_MAX];
	unsigned int ports_nr;
	struct krl_module_record *records;
	unsigned int turn;
	bool watching;
	pthread_mutex_t sub_lock;
	krcore_event_fn *sub_fn;
	void *sub_arg;
	pthread_t thread;
	bool running;
	_Atomic bool stop;
	int wake_fd;
	struct krl_counters n;
};

bool krl_module_wanted(const struct krcore_options *opts)
{
	return !(opts->flags & KRCORE_OPEN_DIRECT) && !opts->config_file && !opts->servers &&
	       !opts->key_file && !opts->generation && !opts->lease_ms &&
	       krp_is_zero(opts->owner, sizeof(opts->owner));
}

int krl_module_cannot(const char *what)
{
	return krl_error(-EOPNOTSUPP,
			 "%s needs a session of its own (KRCORE_OPEN_DIRECT); this context uses "
			 "those of the module",
			 what);
}

static struct krl_module *krl_module_of(struct krcore_ctx *ctx)
{
	return (struct krl_module *)ctx;
}

static int krl_module_call(int fd, unsigned long request, void *arg)
{
	return ioctl(fd, request, arg) ? -errno : 0;
}

/* -- ports ---------------------------------------------------------------------- */

/* Whether port @index of the node has a GID. */
static bool krl_module_is_at(int fd, uint32_t index, const uint8_t *gid)
{
	struct krp_port_info info = { .index = index };

	return !krl_module_call(fd, KRP_IOC_PORT, &info) &&
	       !memcmp(info.gid, gid, sizeof(info.gid));
}

/* Set a file up for the port with a GID, or, if that is zero, for any. */
static int krl_module_setup(int fd, const uint8_t *gid)
{
	struct krp_setup setup = { .abi = KRP_ABI_VERSION, .ring_entries = KRP_RING_ENTRIES_MIN };
	struct krp_query query = { 0 };
	int err;

	err = krl_module_call(fd, KRP_IOC_QUERY, &query);
	if (err)
		return err;
	if (query.abi != KRP_ABI_VERSION)
		return -EPROTONOSUPPORT;
	if (!krp_is_zero(gid, KRCORE_GID_BYTES)) {
		while (setup.port++ < query.ports)
			if (krl_module_is_at(fd, setup.port, gid))
				break;
		if (setup.port > query.ports)
			return -EADDRNOTAVAIL;
	}
	err = krl_module_call(fd, KRP_IOC_SETUP, &setup);
	/* ports are numbered anew when one goes */
	if (!err && setup.port && !krl_module_is_at(fd, setup.port, gid))
		return -EAGAIN;
	return err;
}

/* Open the device for a port, in place of the file that was there before. */
static int krl_module_port_open(struct krl_module_port *port)
{
	int fd = open(KRL_MODULE_DEVICE, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	int err;

	if (fd < 0)
		return errno == ENOENT || errno == ENXIO ? -ENODEV : -errno;
	err = krl_module_setup(fd, port->gid);
	if (err) {
		close(fd);
		return err;
	}
	if (port->fd < 0) {
		port->fd = fd;
	} else {
		if (dup3(fd, port->fd, O_CLOEXEC) < 0)
			err = -errno;
		close(fd);
	}
	if (!err)
		port->gone = false;
	return err;
}

/* Locks: lock. The port with a GID. Return: index, or negative errno with its text. */
static int krl_module_port_for(struct krl_module *module, const uint8_t *gid)
{
	struct krl_module_port *port = &module->ports[module->ports_nr];
	unsigned int i;
	int err;

	for (i = 1; i < module->ports_nr; i++)
		if (!memcmp(module->ports[i].gid, gid, KRCORE_GID_BYTES))
			return (int)i;
	if (module->ports_nr == KRL_MODULE_PORTS_MAX)
		return krl_error(-ENOSPC, "records of more than %u ports", KRL_MODULE_PORTS_MAX);
	port->fd = -1;
	memcpy(port->gid, gid, sizeof(port->gid));
	err = krl_module_port_open(port);
	if (err == -EADDRNOTAVAIL)
		return krl_error(-EPERM, "the GID is that of no port of this node");
	if (err)
		return krl_error(err, "%s: %s", KRL_MODULE_DEVICE, strerror(-err));
	return (int)module->ports_nr++;
}

/* -- the thread ----------------------------------------------------------------- */

static uint64_t krl_module_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Locks: lock. What was tried last comes last from now on. */
static void krl_module_rotate(struct krl_module *module, struct krl_module_record *last)
{
	struct krl_module_record **end = &last->next, *first = module->records;

	if (!last->next)
		return;
	while (*end)
		end = &(*end)->next;
	*end = first;
	module->records = last->next;
	last->next = NULL;
}

/*
 * Locks: lock. Publish what is due at a port that works. As nobody else gets the lock meanwhile,
 * and krcore_close() waits for it, all of it together takes no longer than until @deadline_ms:
 * without a server each record takes what there is, and the next turn begins behind it.
 */
static void krl_module_republish(struct krl_module *module, unsigned int port, uint64_t deadline_ms)
{
	struct krl_module_record *rec;
	int err;

	for (rec = module->records; rec; rec = rec->next) {
		struct krp_record_publish arg = rec->arg;
		uint64_t now_ms;

		if (rec->port != port || !rec->due)
			continue;
		now_ms = krl_module_now_ms();
		if (now_ms >= deadline_ms || atomic_load(&module->stop))
			return;
		if (arg.timeout_ms > deadline_ms - now_ms)
			arg.timeout_ms = (uint32_t)(deadline_ms - now_ms);
		err = krl_module_call(module->ports[port].fd, KRP_IOC_PUBLISH, &arg);
		rec->due = err;
		krl_count(&module->n.publishes, !err);
		if (err == -ENODEV)
			return;
		if (err == -ETIMEDOUT) {
			krl_module_rotate(module, rec);
			return;
		}
	}
}

/* Locks: lock. The port of a file is gone: the file is to be reopened, its records published. */
static void krl_module_port_gone(struct krl_module *module, unsigned int index)
{
	struct krl_module_record *rec;

	module->ports[index].gone = true;
	for (rec = module->records; rec; rec = rec->next)
		if (rec->port == index)
			rec->due = true;
}

/* Locks: lock. Reopen ports, subscribe, publish what is due. Return: whether to try again. */
static bool krl_module_mend(struct krl_module *module)
{
	uint64_t deadline_ms = krl_module_now_ms() + KRL_MODULE_TURN_MS;
	struct krp_record_watch watch = { 0 };
	struct krl_module_record *rec;
	bool left = false;
	unsigned int i;

	module->turn++;
	for (i = 0; i < module->ports_nr; i++) {
		unsigned int at = (module->turn + i) % module->ports_nr;
		struct krl_module_port *port = &module->ports[at];

		if (port->gone && krl_module_port_open(port)) {
			left = true;
			continue;
		}
		if (!at && module->watching)
			krl_module_call(port->fd, KRP_IOC_WATCH, &watch); /* or it is on */
		krl_module_republish(module, at, deadline_ms);
	}
	for (rec = module->records; rec; rec = rec->next)
		left |= rec->due;
	return left;
}

static void krl_module_tell(struct krl_module *module, const struct krp_event *event)
{
	struct krcore_event told = {
		.type = event->type,
		.key.service = event->service,
		.generation = event->generation,
	};

	memcpy(told.key.gid, event->gid, sizeof(told.key.gid));
	krl_count(&module->n.notifications, 1);
	pthread_mutex_lock(&module->sub_lock);
	if (module->sub_fn)
		module->sub_fn(module->sub_arg, &told);
	pthread_mutex_unlock(&module->sub_lock);
}

static void krl_module_events(struct krl_module *module)
{
	struct krp_event events[KRL_MODULE_EVENTS];
	ssize_t bytes = read(module->ports[0].fd, events, sizeof(events));
	ssize_t i;

	for (i = 0; i < bytes / (ssize_t)sizeof(events[0]); i++)
		krl_module_tell(module, &events[i]);
}

static void *krl_module_thread(void *arg)
{
	struct krl_module *module = arg;
	struct pollfd fds[KRL_MODULE_PORTS_MAX + 1];
	unsigned int i, nr;
	uint64_t count;
	bool left;

	while (!atomic_load(&module->stop)) {
		pthread_mutex_lock(&module->lock);
		left = krl_module_mend(module);
		nr = module->ports_nr;
		for (i = 0; i < nr; i++) {
			fds[i].fd = module->ports[i].gone ? -1 : module->ports[i].fd;
			fds[i].events = i ? 0 : POLLPRI;
		}
		pthread_mutex_unlock(&module->lock);
		fds[nr] = (struct pollfd){ .fd = module->wake_fd, .events = POLLIN };
		if (poll(fds, nr + 1, left ? KRL_MODULE_AGAIN_MS : -1) < 0)
			continue;
		if (fds[nr].revents && read(module->wake_fd, &count, sizeof(count)) < 0)
			continue;
		if (fds[0].revents & POLLPRI)
			krl_module_events(module);
		pthread_mutex_lock(&module->lock);
		for (i = 0; i < nr; i++)
			if (fds[i].revents & POLLERR)
				krl_module_port_gone(module, i);
		pthread_mutex_unlock(&module->lock);
	}
	return NULL;
}

/* Locks: lock. Start the thread, or let it look again. */
static int krl_module_wake(struct krl_module *module)
{
	const uint64_t one = 1;
	sigset_t all, before;
	int err;

	if (module->running)
		return write(module->wake_fd, &one, sizeof(one)) < 0 ? -errno : 0;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&module->thread, NULL, krl_module_thread, module);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	module->running = !err;
	return -err;
}

/* -- close ---------------------------------------------------------------------- */

static void krl_module_close(struct krcore_ctx *ctx)
{
	struct krl_module *module = krl_module_of(ctx);
	struct krl_module_record *rec;
	unsigned int i;

	atomic_store(&module->stop, true);
	if (module->running) {
		pthread_mutex_lock(&module->lock);
		krl_module_wake(module);
		pthread_mutex_unlock(&module->lock);
		pthread_join(module->thread, NULL);
	}
	for (i = 0; i < module->ports_nr; i++)
		if (module->ports[i].fd >= 0)
			close(module->ports[i].fd);
	while ((rec = module->records)) {
		module->records = rec->next;
		free(rec);
	}
	if (module->wake_fd >= 0)
		close(module->wake_fd);
	pthread_mutex_destroy(&module->sub_lock);
	pthread_mutex_destroy(&module->lock);
	free(module);
}

/* -- records -------------------------------------------------------------------- */

/* Ask for a record; if the port has gone since, by another one. */
static int krl_module_ask(struct krl_module *module, struct krp_record_lookup *arg)
{
	int err = krl_module_call(module->ports[0].fd, KRP_IOC_LOOKUP, arg);

	if (err != -ENODEV)
		return err;
	pthread_mutex_lock(&module->lock);
	module->ports[0].gone = true;
	krl_module_mend(module);
	pthread_mutex_unlock(&module->lock);
	return krl_module_call(module->ports[0].fd, KRP_IOC_LOOKUP, arg);
}

static void krl_module_value(const struct krp_record_lookup *arg, struct krcore_value *ret_value)
{
	memset(ret_value, 0, sizeof(*ret_value));
	ret_value->generation = arg->generation;
	ret_value->kind = arg->kind;
	if (arg->kind != KRP_KIND_RAW)
		return;
	ret_value->raw_len = arg->raw_len;
	memcpy(ret_value->raw, arg->raw, sizeof(ret_value->raw));
}

void krl_module_info(const struct krp_record_lookup *arg, int err,
		     struct krcore_lookup_info *ret_info)
{
	*ret_info = (struct krcore_lookup_info){
		.reads = arg->reads,
		.settling = err == -ENOENT && arg->answer & KRP_LOOKUP_DOUBT,
		.unconfirmed = !err && arg->answer & KRP_LOOKUP_DOUBT,
	};
}

static int krl_module_lookup(struct krcore_ctx *ctx, const struct krcore_key *key,
			     struct krcore_value *ret_value, struct krcore_lookup_info *ret_info)
{
	struct krl_module *module = krl_module_of(ctx);
	struct krp_record_lookup arg = {
		.service = key->service,
		.timeout_ms = module->timeout_ms,
	};
	struct krcore_lookup_info info;
	int err;

	memcpy(arg.gid, key->gid, sizeof(arg.gid));
	err = krl_module_ask(module, &arg);
	krl_count(err == -ENOENT ? &module->n.misses
		  : err		 ? &module->n.errors
				 : &module->n.hits,
		  1);
	krl_count(&module->n.reads, arg.reads);
	if (!err || err == -ENOENT) {
		krl_module_info(&arg, err, &info);
		krl_out_fill(ret_info, &info, sizeof(info));
	}
	if (!err && ret_value)
		krl_module_value(&arg, ret_value);
	switch (err) {
	case 0:
		return 0;
	case -ENOENT:
		if (arg.answer & KRP_LOOKUP_DOUBT)
			return krl_error_const(err, "no such record, but not all servers that "
						    "should know could be asked");
		return krl_error_const(err, "no such record");
	case -ENODEV:
	case -ENOTCONN:
	case -ETIMEDOUT:
		return krl_error(-EHOSTUNREACH, "looking up by the module: %s", strerror(-err));
	default:
		return krl_error(err, "looking up by the module: %s", strerror(-err));
	}
}

/* Locks: lock. The place in the list where a record is, or the end of the list. */
static struct krl_module_record **krl_module_find(struct krl_module *module, unsigned int port,
						  uint16_t service)
{
	struct krl_module_record **at = &module->records;

	while (*at && ((*at)->port != port || (*at)->arg.service != service))
		at = &(*at)->next;
	return at;
}

/* Whether the module refused for a reason that may pass by itself. */
static bool krl_module_later(int err)
{
	return err == -ENODEV || err == -ETIMEDOUT || err == -ENOTCONN;
}

/* Locks: lock. Publish at a port, and keep it up from now on. */
static int krl_module_keep(struct krl_module *module, unsigned int port,
			   const struct krp_record_publish *arg)
{
	struct krl_module_record **at = krl_module_find(module, port, arg->service);
	struct krl_module_record *made = NULL, *rec = *at;
	struct krp_record_publish ask = *arg;
	int err;

	if (!rec) {
		made = calloc(1, sizeof(*made));
		if (!made)
			return krl_error_const(-ENOMEM, "no memory");
		rec = made;
	}
	err = krl_module_call(module->ports[port].fd, KRP_IOC_PUBLISH, &ask);
	if (err && !krl_module_later(err)) {
		free(made);
		return krl_error(err == -EADDRINUSE ? -EEXIST : err,
				 "publishing service %u by the module: %s", arg->service,
				 err == -EADDRINUSE ? "another program has it" : strerror(-err));
	}
	rec->port = port;
	rec->due = err;
	rec->arg = *arg;
	*at = rec;
	krl_count(&module->n.publishes, !err);
	krl_module_wake(module);
	if (err)
		return krl_error(-EHOSTUNREACH,
				 "no server has acknowledged it yet; it will be published later");
	return 1;
}

static int krl_module_publish(struct krcore_ctx *ctx, const struct krcore_key *key,
			      const struct krcore_value *value)
{
	struct krl_module *module = krl_module_of(ctx);
	struct krp_record_publish arg = {
		.service = key->service,
		.timeout_ms = module->timeout_ms,
	};
	struct krp_value wire;
	int ret;

	ret = krl_value_to_wire(value, 1, &wire);
	if (ret)
		return ret;
	if (wire.kind != KRP_KIND_RAW)
		return krl_module_cannot("publishing a DC target");
	if (key->service < KRP_SERVICE_USER_MIN)
		return krl_error(-EPERM, "services below %u are krcore's own",
				 KRP_SERVICE_USER_MIN);
	arg.raw_len = wire.len;
	memcpy(arg.raw, wire.raw, sizeof(arg.raw));
	pthread_mutex_lock(&module->lock);
	ret = krl_module_port_for(module, key->gid);
	if (ret >= 0)
		ret = krl_module_keep(module, (unsigned int)ret, &arg);
	pthread_mutex_unlock(&module->lock);
	return ret;
}

/*
 * Locks: lock. Have the module take a record back. One that is due it may have as well: with the
 * value before, if replacing that failed. If its port has gone, the record went with it.
 */
static int krl_module_undo(struct krl_module *module, const struct krl_module_record *rec)
{
	struct krp_bind undo = { .service = rec->arg.service, .flags = KRP_BIND_UNDO };
	int err = krl_module_call(module->ports[rec->port].fd, KRP_IOC_BIND, &undo);

	if (err == -ENODEV || err == -ESHUTDOWN)
		return 0;
	return rec->due && err == -ENOENT ? 0 : err;
}

static int krl_module_withdraw(struct krcore_ctx *ctx, const struct krcore_key *key)
{
	struct krl_module *module = krl_module_of(ctx);
	struct krl_module_record **at, *rec;
	unsigned int i;
	int err = -ENOENT;

	pthread_mutex_lock(&module->lock);
	for (i = 1; i < module->ports_nr; i++) {
		if (memcmp(module->ports[i].gid, key->gid, sizeof(key->gid)))
			continue;
		at = krl_module_find(module, i, key->service);
		rec = *at;
		if (!rec)
			break;
		*at = rec->next;
		err = krl_module_undo(module, rec);
		free(rec);
		break;
	}
	pthread_mutex_unlock(&module->lock);
	if (err)
		return krl_error(err, "withdrawing service %u by the module: %s", key->service,
				 err == -ENOENT ? "this context does not publish it"
						: strerror(-err));
	return 0;
}

static int krl_module_subscribe(struct krcore_ctx *ctx, krcore_event_fn *fn, void *arg)
{
	struct krl_module *module = krl_module_of(ctx);
	struct krp_record_watch watch = { .flags = fn ? 0 : KRP_WATCH_OFF };
	int err = 0;

	pthread_mutex_lock(&module->sub_lock);
	module->sub_fn = fn;
	module->sub_arg = arg;
	pthread_mutex_unlock(&module->sub_lock);

	pthread_mutex_lock(&module->lock);
	module->watching = fn;
	if (fn)
		err = krl_module_wake(module); /* the thread turns it on, now and later */
	else
		krl_module_call(module->ports[0].fd, KRP_IOC_WATCH, &watch);
	pthread_mutex_unlock(&module->lock);
	if (err)
		return krl_error(err, "starting a thread: %s", strerror(-err));
	return 0;
}

/* Its servers are the module's. */
static int krl_module_servers(struct krcore_ctx *ctx, struct krcore_server_info *servers,
			      unsigned int nr)
{
	(void)ctx;
	(void)servers;
	(void)nr;
	return 0;
}

static void krl_module_stats(struct krcore_ctx *ctx, struct krcore_stats *ret_stats)
{
	struct krl_module *module = krl_module_of(ctx);

	*ret_stats = (struct krcore_stats){
		.hits = atomic_load(&module->n.hits),
		.misses = atomic_load(&module->n.misses),
		.errors = atomic_load(&module->n.errors),
		.reads = atomic_load(&module->n.reads),
		.publishes = atomic_load(&module->n.publishes),
		.notifications = atomic_load(&module->n.notifications),
	};
	ret_stats->lookups = ret_stats->hits + ret_stats->misses + ret_stats->errors;
}

/* -- open ----------------------------------------------------------------------- */

static const struct krl_ops krl_module_ops = {
	.close = krl_module_close,
	.lookup = krl_module_lookup,
	.publish = krl_module_publish,
	.withdraw = krl_module_withdraw,
	.subscribe = krl_module_subscribe,
	.servers = krl_module_servers,
	.stats = krl_module_stats,
};

int krl_module_open(const struct krcore_options *opts, struct krcore_ctx **ret_ctx)
{
	struct krl_module *module = calloc(1, sizeof(*module));
	int err;

	if (!module)
		return krl_error_const(-ENOMEM, "no memory");
	module->head.ops = &krl_module_ops;
	pthread_mutex_init(&module->lock, NULL);
	pthread_mutex_init(&module->sub_lock, NULL);
	module->timeout_ms = opts->timeout_ms ? opts->timeout_ms : KRL_MODULE_TIMEOUT_MS;
	if (module->timeout_ms > KRP_CONNECT_TIMEOUT_MS_MAX)
		module->timeout_ms = KRP_CONNECT_TIMEOUT_MS_MAX;
	module->ports[0].fd = -1;
	module->ports_nr = 1;
	module->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = module->wake_fd < 0 ? -errno : krl_module_port_open(&module->ports[0]);
	if (err) {
		krl_module_close((struct krcore_ctx *)module);
		return krl_error(err, "%s: %s", KRL_MODULE_DEVICE, strerror(-err));
	}
	*ret_ctx = (struct krcore_ctx *)module;
	return 0;
}
