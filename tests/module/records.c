// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Records by way of the module: what a program without key and without rights may look
 * up, publish and watch, what it is refused, and what it is not told.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proto/krp_msg.h"
#include "tests/module/dev.h"

#define SERVICE 4000
#define PAGE 4096

/**
 * struct records - What the cases share.
 * @dev: the context that publishes and watches.
 * @gid: GID of its port.
 */
struct records {
	struct dev dev;
	uint8_t gid[KRP_GID_BYTES];
};

/* -- look-up --------------------------------------------------------------------- */

static void bad_lookups(const struct records *r)
{
	struct krp_record_lookup good = { .timeout_ms = 100 }, arg;

	memcpy(good.gid, r->gid, sizeof(good.gid));
	arg = good;
	arg.flags = KRP_LOOKUP_FRESH << 1;
	tap_equal("look-up: flags", dev_ioctl(r->dev.fd, KRP_IOC_LOOKUP, &arg), -EINVAL);
	arg = good;
	arg.answer = KRP_LOOKUP_DOUBT;
	tap_equal("look-up: an answer in the question", dev_ioctl(r->dev.fd, KRP_IOC_LOOKUP, &arg),
		  -EINVAL);
	arg = good;
	arg.raw[KRP_RAW_BYTES - 1] = 1;
	tap_equal("look-up: bytes in the answer", dev_ioctl(r->dev.fd, KRP_IOC_LOOKUP, &arg),
		  -EINVAL);
	arg = good;
	arg.timeout_ms = 0;
	tap_equal("look-up: no time", dev_ioctl(r->dev.fd, KRP_IOC_LOOKUP, &arg), -EINVAL);
	arg.timeout_ms = KRP_CONNECT_TIMEOUT_MS_MAX + 1;
	tap_equal("look-up: too much time", dev_ioctl(r->dev.fd, KRP_IOC_LOOKUP, &arg), -EINVAL);
	arg = good;
	memset(arg.gid, 0, sizeof(arg.gid));
	tap_equal("look-up: no GID", dev_ioctl(r->dev.fd, KRP_IOC_LOOKUP, &arg), -EINVAL);
}

/*
 * What a miss cost is told, and nothing but whether it is proved: that depends on how
 * long the servers have been there.
 */
static void miss_is_told(const struct records *r)
{
	struct krp_record_lookup found;

	tap_equal("look-up of what is not there",
		  dev_lookup(r->dev.fd, r->gid, SERVICE + 99, &found), -ENOENT);
	tap(found.reads > 0, "what it cost is told", "no READ");
	tap(!(found.answer & ~KRP_LOOKUP_DOUBT), "and whether it is proved", "answer %#x",
	    found.answer);
	tap(!found.kind && !found.generation, "and nothing else", "kind %u", found.kind);
}

/*
 * Programs are not told what leads to a node's memory. Its kind is that of the NIC, which whoever
 * started this knows.
 */
static void port_is_not_told(const struct records *r, const struct dev_peer *peer)
{
	static const uint8_t zero[KRP_RAW_BYTES];
	struct krp_record_lookup found;

	tap_equal("look-up of a node's port",
		  dev_lookup(r->dev.fd, peer->gid, KRP_SERVICE_NODE, &found), 0);
	tap(krp_kind_port(found.kind), "its kind is of a port", "%u", found.kind);
	printf("# kind of a port: %u\n", found.kind);
	tap(found.generation != 0, "its generation", "0");
	tap(!found.raw_len && !memcmp(found.raw, zero, sizeof(zero)), "nothing else of it",
	    "%u bytes", found.raw_len);
	tap(found.reads > 0, "a fresh one is READ", "no READ");
	tap_equal("a hit is in no doubt", (int)found.answer, 0);
}

/* -- publishing ------------------------------------------------------------------ */

static void bad_publications(const struct records *r)
{
	struct krp_record_publish good = dev_record(SERVICE, "text"), arg;
	struct krp_record_lookup found;

	arg = good;
	arg.service = KRP_SERVICE_USER_MIN - 1;
	tap_equal("publish: krcore's own service", dev_ioctl(r->dev.fd, KRP_IOC_PUBLISH, &arg),
		  -EINVAL);
	arg = good;
	arg.flags = 1;
	tap_equal("publish: flags", dev_ioctl(r->dev.fd, KRP_IOC_PUBLISH, &arg), -EINVAL);
	arg = good;
	arg.rsvd = 1;
	tap_equal("publish: pad", dev_ioctl(r->dev.fd, KRP_IOC_PUBLISH, &arg), -EINVAL);
	arg = good;
	arg.raw_len = KRP_RAW_BYTES + 1;
	tap_equal("publish: too many bytes", dev_ioctl(r->dev.fd, KRP_IOC_PUBLISH, &arg), -EINVAL);
	arg = good;
	arg.raw[KRP_RAW_BYTES - 1] = 1;
	tap_equal("publish: bytes behind the end", dev_ioctl(r->dev.fd, KRP_IOC_PUBLISH, &arg),
		  -EINVAL);
	arg = good;
	arg.timeout_ms = 0;
	tap_equal("publish: no time", dev_ioctl(r->dev.fd, KRP_IOC_PUBLISH, &arg), -EINVAL);
	tap_equal("nothing of them is there", dev_lookup(r->dev.fd, r->gid, SERVICE, &found),
		  -ENOENT);
}

static void found_is(const struct records *r, uint16_t service, const char *text, const char *name)
{
	uint64_t until = dev_now_ms() + DEV_TIMEOUT_MS;
	struct krp_record_lookup found;
	bool same;
	int err;

	/* one MetaServer has it when it is published, and the other one that may be asked, soon */
	do {
		err = dev_lookup(r->dev.fd, r->gid, service, &found);
		same = !err && found.kind == KRP_KIND_RAW && found.raw_len == strlen(text) &&
		       !memcmp(found.raw, text, strlen(text));
	} while (!same && dev_now_ms() < until && !usleep(50000));
	tap(same, name, "error %d, kind %u, %u bytes '%.*s'", err, found.kind, found.raw_len,
	    (int)found.raw_len, (const char *)found.raw);
}

static void gone(const struct records *r, uint16_t service, const char *name)
{
	uint64_t until = dev_now_ms() + DEV_TIMEOUT_MS;
	struct krp_record_lookup found;
	int err;

	while (!(err = dev_lookup(r->dev.fd, r->gid, service, &found)) && dev_now_ms() < until)
		usleep(50000);
	tap_equal(name, err, -ENOENT);
}

static void publications(const struct records *r)
{
	struct dev other;

	tap_equal("publish", dev_publish(r->dev.fd, SERVICE, "first"), 0);
	found_is(r, SERVICE, "first", "it is found");
	tap_equal("publish again", dev_publish(r->dev.fd, SERVICE, "second, longer"), 0);
	found_is(r, SERVICE, "second, longer", "the new bytes are found");
	tap_equal("publish nothing", dev_publish(r->dev.fd, SERVICE, ""), 0);
	found_is(r, SERVICE, "", "a record of no bytes is found");

	dev_open_or_die(&other, KRP_RING_ENTRIES_MIN);
	tap_equal("another program's service", dev_publish(other.fd, SERVICE, "mine"), -EADDRINUSE);
	tap_equal("or to bind it", dev_bind(other.fd, SERVICE, 0), -EADDRINUSE);
	tap_equal("or to take it back", dev_bind(other.fd, SERVICE, KRP_BIND_UNDO), -ENOENT);
	tap_equal("its own service", dev_publish(other.fd, SERVICE + 1, "other"), 0);
	tap_equal("bind a service that is published", dev_bind(other.fd, SERVICE + 1, 0),
		  -EADDRINUSE);
	tap_equal("bind one", dev_bind(other.fd, SERVICE + 2, 0), 0);
	tap_equal("publish a service that is bound", dev_publish(other.fd, SERVICE + 2, "x"),
		  -EADDRINUSE);
	found_is(r, SERVICE, "", "what was published is unchanged");
	dev_close(&other);
	gone(r, SERVICE + 1, "closing withdraws");

	tap_equal("take it back", dev_bind(r->dev.fd, SERVICE, KRP_BIND_UNDO), 0);
	gone(r, SERVICE, "it is gone");
	tap_equal("take it back again", dev_bind(r->dev.fd, SERVICE, KRP_BIND_UNDO), -ENOENT);
}

/* -- watching -------------------------------------------------------------------- */

static bool ready(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLPRI };

	return poll(&p, 1, timeout_ms) == 1 && p.revents & POLLPRI;
}

/* Read events until one is of this kind about a service, or none comes. */
static bool told(const struct records *r, uint8_t type, uint16_t service)
{
	uint64_t until = dev_now_ms() + DEV_TIMEOUT_MS;
	struct krp_event event;

	while (dev_now_ms() < until) {
		if (!ready(r->dev.fd, 100))
			continue;
		if (read(r->dev.fd, &event, sizeof(event)) != sizeof(event))
			return false;
		if (event.type == type && event.service == service &&
		    (type == KRP_EVENT_RESYNC || !memcmp(event.gid, r->gid, sizeof(event.gid))))
			return true;
	}
	return false;
}

static void bad_watches(const struct records *r)
{
	struct krp_record_watch pad = { .rsvd = 1 };
	struct krp_event event;

	tap_equal("watch: flags", dev_watch(r->dev.fd, KRP_WATCH_OFF << 1), -EINVAL);
	tap_equal("watch: pad", dev_ioctl(r->dev.fd, KRP_IOC_WATCH, &pad), -EINVAL);
	tap_equal("watch: off before on", dev_watch(r->dev.fd, KRP_WATCH_OFF), -EALREADY);
	tap(read(r->dev.fd, &event, sizeof(event)) < 0 && errno == EBADFD, "read without watching",
	    "%s", strerror(errno));
}

/* More changes than are kept, all different: what is told twice is kept once. */
static void overrun(const struct records *r)
{
	const uint16_t many = KRP_EVENTS_MAX / 2 + 1;
	uint16_t i;
	int err = 0;

	for (i = 0; i < many && !err; i++)
		err = dev_publish(r->dev.fd, SERVICE + 100 + i, "");
	tap_equal("many new records", err, 0);
	for (i = 0; i < many && !err; i++)
		err = dev_bind(r->dev.fd, SERVICE + 100 + i, KRP_BIND_UNDO);
	tap_equal("and their end", err, 0);
	gone(r, SERVICE + 100 + many - 1, "which the servers have heard of");
	tap(told(r, KRP_EVENT_RESYNC, 0), "who is too slow is told to look again", "%s",
	    strerror(errno));
}

static void watches(const struct records *r)
{
	void *nowhere = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct krp_event event;

	tap_equal("watch", dev_watch(r->dev.fd, 0), 0);
	tap_equal("watch twice", dev_watch(r->dev.fd, 0), -EALREADY);
	tap(ready(r->dev.fd, 0), "there is something at once", "not ready");
	tap(read(r->dev.fd, &event, sizeof(event) - 1) < 0 && errno == EINVAL,
	    "room for less than one", "%s", strerror(errno));
	tap(read(r->dev.fd, nowhere, sizeof(event)) < 0 && errno == EFAULT, "room that is nowhere",
	    "%s", strerror(errno));
	tap(told(r, KRP_EVENT_RESYNC, 0), "the first event is still there", "it is not");
	tap_equal("publish", dev_publish(r->dev.fd, SERVICE, "watched"), 0);
	tap(told(r, KRP_EVENT_CHANGED, SERVICE), "a new record is told", "it is not");
	dev_bind(r->dev.fd, SERVICE, KRP_BIND_UNDO);
	tap(told(r, KRP_EVENT_GONE, SERVICE), "a withdrawn one is told", "it is not");
	overrun(r);
	tap_equal("watch no more", dev_watch(r->dev.fd, KRP_WATCH_OFF), 0);
	tap(!ready(r->dev.fd, 0), "then nothing is ready", "it is");
	munmap(nowhere, PAGE);
}

void records(const struct dev_peer *peer)
{
	struct krp_port_info port = { .index = 1 };
	struct krp_record_lookup found;
	struct records r;
	int fd = open(DEV_PATH, O_RDWR | O_CLOEXEC);

	tap_equal("look-up before setup", dev_lookup(fd, peer->gid, 0, &found), -EBADFD);
	tap_equal("publish before setup", dev_publish(fd, SERVICE, ""), -EBADFD);
	tap_equal("watch before setup", dev_watch(fd, 0), -EBADFD);
	close(fd);

	dev_open_or_die(&r.dev, KRP_RING_ENTRIES_MIN);
	fcntl(r.dev.fd, F_SETFL, O_NONBLOCK);
	tap_equal("own port", dev_ioctl(r.dev.fd, KRP_IOC_PORT, &port), 0);
	memcpy(r.gid, port.gid, sizeof(r.gid));
	bad_lookups(&r);
	port_is_not_told(&r, peer);
	miss_is_told(&r);
	bad_publications(&r);
	publications(&r);
	bad_watches(&r);
	watches(&r);
	dev_close(&r.dev);
}
