// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The memory of the table on each RDMA device: registrations and roots.
 *
 * A reader sees three things of a device: its root, the array of segments
 * behind it, and the memory that these name. The order of the writes keeps a
 * reader from using memory too early: memory is registered first, then its
 * entry in the array is written, then the root that counts it. A torn root or
 * entry fails its sum or check and is READ again.
 *
 * Table memory is registered for REMOTE_READ and nothing else.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/gid.h"
#include "metaserver/log.h"
#include "metaserver/memory.h"

#define MS_ROOT_OFFSET_SEGMENTS 4096U
#define MS_ROOT_BYTES (MS_ROOT_OFFSET_SEGMENTS + KRP_SEGMENTS_MAX * sizeof(struct krp_segment))

int ms_memory_register(struct ms_device *dev, void *addr, size_t bytes, int access,
		       struct ibv_mr **ret_mr)
{
	struct ibv_mr *mr = ibv_reg_mr(dev->pd, addr, bytes, access);

	if (!mr)
		return errno ? -errno : -ENOMEM;
	dev->memory.bytes += bytes;
	*ret_mr = mr;
	return 0;
}

void ms_memory_unregister(struct ms_device *dev, struct ibv_mr **mr)
{
	if (!*mr)
		return;
	dev->memory.bytes -= (*mr)->length;
	ibv_dereg_mr(*mr);
	*mr = NULL;
}

/* Whole words, the last one last: it holds the sum or the check. */
static void ms_store(void *to, const void *from, size_t bytes)
{
	uint64_t word;
	size_t i;

	for (i = 0; i < bytes; i += sizeof(word)) {
		memcpy(&word, (const char *)from + i, sizeof(word));
		if (i + sizeof(word) == bytes)
			__atomic_thread_fence(__ATOMIC_RELEASE);
		__atomic_store_n((uint64_t *)((char *)to + i), word, __ATOMIC_RELAXED);
	}
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static struct krp_segment *ms_memory_segments(const struct ms_device *dev)
{
	return (struct krp_segment *)((char *)dev->memory.root + MS_ROOT_OFFSET_SEGMENTS);
}

static int ms_memory_segment_add(struct ms_device *dev, unsigned int nr, void *addr, size_t bytes)
{
	struct krp_segment seg = { .addr = krp_cpu_to_le64((__u64)(uintptr_t)addr) };
	struct ibv_mr *mr;
	int err;

	if (nr >= KRP_SEGMENTS_MAX)
		return -ENOSPC;
	err = ms_memory_register(dev, addr, bytes, IBV_ACCESS_REMOTE_READ, &mr);
	if (err)
		return err;
	ms_memory_unregister(dev, &dev->memory.segments[nr]); /* of a change that failed later */
	dev->memory.segments[nr] = mr;
	seg.rkey = krp_cpu_to_le32(mr->rkey);
	seg.check = krp_cpu_to_le32(krp_segment_check(&seg, nr, dev->srv->hub.incarnation));
	ms_store(&ms_memory_segments(dev)[nr], &seg, sizeof(seg));
	return 0;
}

static int ms_memory_dir_add(struct ms_device *dev, void *addr, size_t bytes)
{
	struct ms_region *r = &dev->memory.dirs[dev->memory.dirs_nr];
	int err;

	if (dev->memory.dirs_nr == sizeof(dev->memory.dirs) / sizeof(dev->memory.dirs[0]))
		return -ENOSPC;
	err = ms_memory_register(dev, addr, bytes, IBV_ACCESS_REMOTE_READ, &r->mr);
	if (err)
		return err;
	r->addr = addr;
	dev->memory.dirs_nr++;
	return 0;
}

static void ms_memory_dir_del(struct ms_device *dev, const void *addr)
{
	if (!dev->memory.dirs_nr || dev->memory.dirs[dev->memory.dirs_nr - 1].addr != addr)
		return;
	ms_memory_unregister(dev, &dev->memory.dirs[--dev->memory.dirs_nr].mr);
}

static uint32_t ms_memory_dir_rkey(const struct ms_device *dev, const void *addr)
{
	uint32_t i = dev->memory.dirs_nr;

	while (i--)
		if (dev->memory.dirs[i].addr == addr)
			return dev->memory.dirs[i].mr->rkey;
	return 0;
}

static void ms_memory_write_root(struct ms_device *dev)
{
	struct ms_server *srv = dev->srv;
	struct ms_table_geometry geo;
	struct krp_root root;

	ms_table_geometry(srv->hub.table, &geo);
	ms_table_fill_root(srv->hub.table, &root);
	root.dir_addr = krp_cpu_to_le64((__u64)(uintptr_t)geo.dir);
	root.dir_rkey = krp_cpu_to_le32(ms_memory_dir_rkey(dev, geo.dir));
	root.segments_addr = krp_cpu_to_le64((__u64)(uintptr_t)ms_memory_segments(dev));
	root.segments_rkey = krp_cpu_to_le32(dev->memory.root_mr->rkey);
	root.epoch = krp_cpu_to_le32(srv->epoch);
	root.heartbeat = krp_cpu_to_le64(ms_mono_ns() / 1000000 + 1);
	root.settling_ms = krp_cpu_to_le32(ms_hub_settling_ms(&srv->hub, srv->clock.ms));
	root.sum = krp_cpu_to_le64(krp_root_sum(&root));
	ms_store(dev->memory.root, &root, sizeof(root));
}

void ms_device_root_ref(const struct ms_device *dev, struct krp_root_ref *ret_ref)
{
	ret_ref->addr = krp_cpu_to_le64((__u64)(uintptr_t)dev->memory.root);
	ret_ref->rkey = krp_cpu_to_le32(dev->memory.root_mr->rkey);
	ret_ref->bytes = krp_cpu_to_le32(sizeof(struct krp_root));
}

int ms_memory_open(struct ms_device *dev)
{
	struct ms_table *table = dev->srv->hub.table;
	struct ms_table_geometry geo;
	unsigned int nr;
	size_t bytes;
	void *addr;
	int err;

	dev->memory.segments = calloc(KRP_SEGMENTS_MAX, sizeof(struct ibv_mr *));
	dev->memory.root = aligned_alloc(4096, MS_ROOT_BYTES);
	if (!dev->memory.segments || !dev->memory.root)
		return -ENOMEM;
	memset(dev->memory.root, 0, MS_ROOT_BYTES);
	err = ms_memory_register(dev, dev->memory.root, MS_ROOT_BYTES, IBV_ACCESS_REMOTE_READ,
				 &dev->memory.root_mr);
	if (err)
		return err;
	ms_table_geometry(table, &geo);
	for (nr = 0; nr < geo.segments_nr; nr++) {
		addr = ms_table_segment(table, nr, &bytes);
		err = ms_memory_segment_add(dev, nr, addr, bytes);
		if (err)
			return err;
	}
	err = ms_memory_dir_add(dev, geo.dir, geo.dir_bytes);
	if (err)
		return err;
	ms_memory_write_root(dev);
	return 0;
}

void ms_memory_close(struct ms_device *dev)
{
	unsigned int nr;

	for (nr = 0; dev->memory.segments && nr < KRP_SEGMENTS_MAX; nr++)
		ms_memory_unregister(dev, &dev->memory.segments[nr]);
	while (dev->memory.dirs_nr)
		ms_memory_unregister(dev, &dev->memory.dirs[--dev->memory.dirs_nr].mr);
	ms_memory_unregister(dev, &dev->memory.root_mr);
	free(dev->memory.segments);
	free(dev->memory.root);
	dev->memory.segments = NULL;
	dev->memory.root = NULL;
}

/* callbacks of the table, for every device */

/*
 * A device cannot register memory. If lack of memory or a limit is the cause, it holds for all
 * devices; else this device is broken, and the table grows without it: the next check
 * removes it, since it may be in use right now. The last device that works is never
 * treated as broken. Return: true if the device is broken.
 */
static bool ms_memory_broken(struct ms_device *dev, int err)
{
	struct ms_device *other = dev->srv->devices;

	if (err == -ENOMEM || err == -ENOSPC)
		return false;
	while (other && (other == dev || other->broken))
		other = other->next;
	if (!other)
		return false;
	ms_log(LOG_ERR, "device '%s': cannot register memory (%s)", dev->name, strerror(-err));
	dev->broken = true;
	return true;
}

static int ms_all_segment_add(void *arg, unsigned int nr, void *addr, size_t bytes)
{
	struct ms_server *srv = arg;
	struct ms_device *dev, *undo;
	int err;

	for (dev = srv->devices; dev; dev = dev->next) {
		err = dev->broken ? 0 : ms_memory_segment_add(dev, nr, addr, bytes);
		if (err && !ms_memory_broken(dev, err))
			goto err_undo;
	}
	return 0;

err_undo:
	for (undo = srv->devices; undo != dev; undo = undo->next)
		ms_memory_unregister(undo, &undo->memory.segments[nr]);
	return err;
}

static int ms_all_dir_add(void *arg, void *addr, size_t bytes)
{
	struct ms_server *srv = arg;
	struct ms_device *dev, *undo;
	int err;

	for (dev = srv->devices; dev; dev = dev->next) {
		err = dev->broken ? 0 : ms_memory_dir_add(dev, addr, bytes);
		if (err && !ms_memory_broken(dev, err))
			goto err_undo;
	}
	return 0;

err_undo:
	for (undo = srv->devices; undo != dev; undo = undo->next)
		ms_memory_dir_del(undo, addr);
	return err;
}

void ms_device_beat(struct ms_server *srv)
{
	struct ms_device *dev;

	/*
	 * The root of a broken device would name a directory that it has no key of; its readers
	 * detect that their copy is old.
	 */
	for (dev = srv->devices; dev; dev = dev->next)
		if (!dev->broken)
			ms_memory_write_root(dev);
}

static void ms_all_root_changed(void *arg)
{
	struct ms_server *srv = arg;

	srv->epoch++;
	ms_device_beat(srv);
}

static void ms_all_crowded(void *arg, const struct krp_key *key)
{
	struct ms_server *srv = arg;
	char gid[KRU_GID_TEXT];

	ms_log_client(srv, LOG_WARNING,
		      "record %s service %u is kept aside: the hashes of too many keys are "
		      "alike, which hardly happens unless somebody has chosen them; it is "
		      "looked up by message",
		      kru_gid_format(key->gid, gid), krp_le16_to_cpu(key->service));
}

const struct ms_table_ops ms_device_table_ops = {
	.segment_add = ms_all_segment_add,
	.dir_add = ms_all_dir_add,
	.root_changed = ms_all_root_changed,
	.crowded = ms_all_crowded,
};
