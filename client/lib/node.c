// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Node contexts: /dev/krcore opened, its ring mapped, memory registered.
 *
 * Nothing but the system calls of proto/krp_ioctl.h; what they mean is decided
 * by the module. A node is constant after krcore_node_open(), so its functions
 * need no lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/lib/base.h"
#include "client/lib/node.h"
#include "client/lib/out.h"

#define KRL_DEVICE "/dev/krcore"
#define KRL_RING_ENTRIES 1024

#define KRL_EQUAL(name) _Static_assert((KRCORE_##name) == (KRP_##name), #name)

KRL_EQUAL(ACCESS_LOCAL_WRITE);
KRL_EQUAL(ACCESS_REMOTE_READ);
KRL_EQUAL(ACCESS_REMOTE_WRITE);
KRL_EQUAL(ACCESS_REMOTE_ATOMIC);
KRL_EQUAL(ACCESS_MESSAGE);

int krl_node_call(const struct krcore_node *node, unsigned long request, void *arg)
{
	return ioctl(node->fd, request, arg) ? -errno : 0;
}

static int krl_node_options(const struct krcore_node_options *opts,
			    struct krcore_node_options *ret_opts)
{
	struct krcore_node_options all = { .size = sizeof(all) };
	int err = krl_options_take(opts, &all, sizeof(all));

	if (err)
		return err;
	if (!all.device)
		all.device = KRL_DEVICE;
	if (!all.ring_entries)
		all.ring_entries = KRL_RING_ENTRIES;
	if (all.ring_entries < KRP_RING_ENTRIES_MIN || all.ring_entries > KRP_RING_ENTRIES_MAX ||
	    (all.ring_entries & (all.ring_entries - 1))) {
		krl_error(-EINVAL, "ring_entries %u is not a power of two from %u to %u",
			  all.ring_entries, KRP_RING_ENTRIES_MIN, KRP_RING_ENTRIES_MAX);
		return -EINVAL;
	}
	if (all.port && !krp_is_zero(all.gid, sizeof(all.gid))) {
		krl_error(-EINVAL, "both port %u and a GID are given", all.port);
		return -EINVAL;
	}
	*ret_opts = all;
	return 0;
}

static int krl_node_open_device(struct krcore_node *node, const char *device)
{
	node->fd = open(device, O_RDWR | O_CLOEXEC);
	if (node->fd >= 0)
		return 0;
	if (errno == ENOENT || errno == ENXIO)
		return krl_error(-ENOENT, "%s: there is none; is the module krcore loaded?",
				 device);
	return krl_error(-errno, "%s: %s", device, strerror(errno));
}

static int krl_node_check_abi(struct krcore_node *node, const char *device)
{
	struct krp_query query = { 0 };
	int err = krl_node_call(node, KRP_IOC_QUERY, &query);

	if (err)
		return krl_error(err, "%s: %s", device, strerror(-err));
	if (query.abi != KRP_ABI_VERSION)
		return krl_error(-EPROTONOSUPPORT, "%s: the module has version %u, not %u", device,
				 query.abi, KRP_ABI_VERSION);
	return 0;
}

static int krl_node_map(struct krcore_node *node, const struct krcore_node_options *opts)
{
	struct krp_setup setup = {
		.abi = KRP_ABI_VERSION,
		.ring_entries = opts->ring_entries,
		.port = opts->port,
	};
	bool by_gid = !krp_is_zero(opts->gid, sizeof(opts->gid));
	void *map;
	int err;

	if (by_gid)
		setup.flags = KRP_SETUP_GID;
	memcpy(setup.gid, opts->gid, sizeof(setup.gid));
	err = krl_node_call(node, KRP_IOC_SETUP, &setup);
	if (err)
		return krl_error(err, "%s: setting up a ring of %u on port %u%s: %s", opts->device,
				 opts->ring_entries, opts->port, by_gid ? " (by its GID)" : "",
				 strerror(-err));
	map = mmap(NULL, setup.map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, node->fd, 0);
	if (map == MAP_FAILED)
		return krl_error(-errno, "%s: mapping the ring: %s", opts->device, strerror(errno));
	node->map = map;
	node->map_bytes = setup.map_bytes;
	if (krl_ring_init(&node->ring, map, setup.map_bytes, opts->ring_entries))
		return krl_error(-EPROTO, "%s: the ring makes no sense", opts->device);
	return 0;
}

/* A fresh process has no heap yet, and making one takes two system calls. */
static struct krcore_node krl_node_first;
static bool krl_node_first_taken;

/* Return: a node for krl_node_free(), all zero, or NULL without memory. */
static struct krcore_node *krl_node_new(void)
{
	return __atomic_test_and_set(&krl_node_first_taken, __ATOMIC_ACQUIRE)
		       ? calloc(1, sizeof(krl_node_first))
		       : &krl_node_first;
}

static void krl_node_free(struct krcore_node *node)
{
	if (node != &krl_node_first) {
		free(node);
		return;
	}
	memset(node, 0, sizeof(*node));
	__atomic_clear(&krl_node_first_taken, __ATOMIC_RELEASE);
}

int krcore_node_open(const struct krcore_node_options *opts, struct krcore_node **ret_node)
{
	struct krcore_node_options all;
	struct krcore_node *node;
	int err;

	err = krl_node_options(opts, &all);
	if (err)
		return err;
	node = krl_node_new();
	if (!node)
		return krl_error_const(-ENOMEM, "no memory");
	node->fd = -1;
	err = krl_node_open_device(node, all.device);
	if (!err)
		err = krl_node_check_abi(node, all.device);
	if (!err)
		err = krl_node_map(node, &all);
	if (err) {
		krcore_node_close(node);
		return err;
	}
	*ret_node = node;
	return 0;
}

void krcore_node_close(struct krcore_node *node)
{
	if (!node)
		return;
	if (node->map)
		munmap(node->map, node->map_bytes);
	if (node->fd >= 0)
		close(node->fd);
	krl_node_free(node);
}

int krcore_node_fd(const struct krcore_node *node)
{
	return node->fd;
}

int krcore_node_query(struct krcore_node *node, struct krcore_node_info *ret_info)
{
	struct krp_query query = { 0 };
	struct krcore_node_info info;
	int err = KRL_NODE_INFO_CHECK(ret_info);

	if (err)
		return err;
	err = krl_node_call(node, KRP_IOC_QUERY, &query);
	if (err)
		return krl_error(err, "asking the module: %s", strerror(-err));
	info = (struct krcore_node_info){
		.ports = query.ports,
		.ring_entries_max = query.ring_entries_max,
		.queue_depth_max = query.queue_depth_max,
		.post_max = query.post_max,
		.queues_max = query.queues_max,
		.requests_max = query.requests_max,
		.mrs_max = query.mrs_max,
	};
	krl_out_fill(ret_info, &info, sizeof(info));
	return 0;
}

int krcore_node_port(struct krcore_node *node, uint32_t index, struct krcore_port_info *ret_info)
{
	struct krp_port_info port = { .index = index };
	struct krcore_port_info info = { 0 };
	int err = KRL_PORT_INFO_CHECK(ret_info);

	if (err)
		return err;
	err = krl_node_call(node, KRP_IOC_PORT, &port);
	if (err)
		return krl_error(err, "port %u: %s", index, strerror(-err));
	memcpy(info.gid, port.gid, sizeof(info.gid));
	memcpy(info.device, port.device, sizeof(info.device));
	info.device[sizeof(info.device) - 1] = '\0';
	info.port_num = port.port_num;
	info.mtu = port.mtu;
	info.flags = port.flags;
	krl_out_fill(ret_info, &info, sizeof(info));
	return 0;
}

int krcore_mr_reg(struct krcore_node *node, void *addr, size_t length, uint32_t access,
		  struct krcore_mr *ret_mr)
{
	struct krp_mr_reg reg = {
		.addr = (uintptr_t)addr,
		.length = length,
		.access = access,
	};
	int err = krl_node_call(node, KRP_IOC_MR_REG, &reg);

	if (err)
		return krl_error(err, "registering %zu bytes with access 0x%x: %s", length, access,
				 strerror(-err));
	*ret_mr = (struct krcore_mr){
		.addr = reg.addr,
		.length = reg.length,
		.token = reg.token,
		.handle = reg.handle,
		.access = access,
	};
	return 0;
}

int krcore_mr_dereg(struct krcore_node *node, const struct krcore_mr *mr)
{
	struct krp_mr_dereg dereg = { .handle = mr->handle };
	int err = krl_node_call(node, KRP_IOC_MR_DEREG, &dereg);

	if (err)
		return krl_error(err, "taking region %u back: %s", mr->handle, strerror(-err));
	return 0;
}

/* Up to KRP_MR_DEREG_MAX of them. Return: how many, or a negative errno. */
static int krl_mr_dereg_some(struct krcore_node *node, const struct krcore_mr *mrs, unsigned int nr)
{
	struct krp_mr_dereg_many many = { .count = nr };
	uint32_t *handles = calloc(nr, sizeof(*handles));
	unsigned int i;
	int err;

	if (!handles)
		return -ENOMEM;
	for (i = 0; i < nr; i++)
		handles[i] = mrs[i].handle;
	many.handles = (uintptr_t)handles;
	err = krl_node_call(node, KRP_IOC_MR_DEREG_MANY, &many);
	free(handles);
	return err ? err : (int)many.done;
}

int krcore_mr_dereg_many(struct krcore_node *node, const struct krcore_mr *mrs, unsigned int nr)
{
	unsigned int done = 0, some = 0;
	int ret;

	if (!nr)
		return krl_error_const(-EINVAL, "no region is given");
	do {
		done += some;
		some = nr - done < KRP_MR_DEREG_MAX ? nr - done : KRP_MR_DEREG_MAX;
		ret = some ? krl_mr_dereg_some(node, mrs + done, some) : 0;
	} while (some && ret == (int)some);
	if (ret > 0)
		done += (unsigned int)ret;
	if (!done)
		return krl_error(ret, "taking %u regions back, from %u on: %s", nr, mrs->handle,
				 strerror(-ret));
	return (int)done;
}

int krcore_poll(struct krcore_node *node, struct krcore_wc *wcs, unsigned int nr)
{
	int taken = krl_ring_take(&node->ring, wcs, nr);

	if (taken < 0)
		return krl_error_const(taken, "the completion ring makes no sense");
	return taken;
}

/* Wait for a completion, or for what @flags says, KRP_WAIT_*, too. */
static int krl_wait(struct krcore_node *node, int timeout_ms, uint32_t flags)
{
	struct krp_wait wait = {
		.timeout_ms = timeout_ms < 0 ? KRP_WAIT_FOREVER : (uint32_t)timeout_ms,
		.flags = flags,
	};
	const char *what = flags ? "completion or letter" : "completion";
	int err;

	if (krl_ring_ready(&node->ring))
		return 0;
	err = krl_node_call(node, KRP_IOC_WAIT, &wait);
	switch (err) {
	case 0:
		return 0;
	case -ETIMEDOUT:
		return krl_error(err, "no %s came in time", what);
	case -ENODEV:
		return krl_error_const(err, "the device is gone");
	default:
		return krl_error(err, "waiting for a %s: %s", what, strerror(-err));
	}
}

int krcore_wait(struct krcore_node *node, int timeout_ms)
{
	return krl_wait(node, timeout_ms, 0);
}

int krcore_wait_any(struct krcore_node *node, int timeout_ms)
{
	return krl_wait(node, timeout_ms, KRP_WAIT_LETTERS);
}
