// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: a front to the MetaServer client and the cache of krcore.ko, for tests: debugfs
 * files that make clients, publish, look up and show what there is, on any RDMA device.
 *
 * /sys/kernel/debug/krc_meta_probe/ctl takes one command a write; its outcome is the
 * errno of the write. `result` shows what the last look-up brought, `info` the sessions
 * and the cache.
 * Locking: one mutex around everything but look-ups, which run at once.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/inet.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <rdma/ib_cache.h>

#include "meta/cache.h"
#include "meta/meta.h"
#include "meta/record.h"
#include "meta/servers.h"
#include "stall.h"

#define PROBE_LINE_BYTES 1024

static DEFINE_MUTEX(probe_lock);
static DECLARE_RWSEM(probe_sem); /* look-ups against the end of the client */
static struct dentry *probe_dir;
static struct krc_cache *probe_cache;
static struct krc_meta *probe_meta;
static struct ib_device *probe_ibdev;
static struct krc_meta_conf probe_conf;
static union ib_gid probe_gid;
static char probe_result[256];
static void *probe_forgotten;

static void probe_conf_reset(void)
{
	memset(&probe_conf, 0, sizeof(probe_conf));
	probe_conf.timeout_ms = 10000;
	probe_conf.reconnect_min_ms = 100;
	probe_conf.reconnect_max_ms = 2000;
	probe_conf.generation = ktime_get_real_ns();
	memset(probe_conf.owner, 0x42, sizeof(probe_conf.owner));
	strscpy(probe_conf.name, "probe", sizeof(probe_conf.name));
}

/* server ADDR PORT PRIORITY */
static int probe_server(char *arg)
{
	struct krc_meta_server_conf *server = &probe_conf.servers[probe_conf.servers_nr];
	char *addr = strsep(&arg, " "), *port = strsep(&arg, " ");
	u16 priority = 0;

	if (probe_conf.servers_nr == KRC_META_SERVERS_MAX)
		return -ENOSPC;
	if (!addr || !port || (arg && kstrtou16(arg, 10, &priority)))
		return -EINVAL;
	strscpy(server->name, addr, sizeof(server->name));
	server->priority = priority;
	if (inet_pton_with_scope(&init_net, AF_UNSPEC, addr, port, &server->addr))
		return -EINVAL;
	probe_conf.servers_nr++;
	return 0;
}

static int probe_key(const char *arg)
{
	size_t bytes = strlen(arg) / 2;

	if (bytes > sizeof(probe_conf.keys[0].bytes) ||
	    hex2bin(probe_conf.keys[0].bytes, arg, bytes))
		return -EINVAL;
	probe_conf.keys[0].len = bytes;
	probe_conf.keys_nr = bytes > 0;
	return 0;
}

static void probe_down(void)
{
	down_write(&probe_sem);
	if (probe_meta)
		krc_meta_destroy(probe_meta);
	probe_meta = NULL;
	up_write(&probe_sem);
	if (probe_ibdev)
		ib_device_put(probe_ibdev);
	probe_ibdev = NULL;
}

/* up DEVICE PORT GID_INDEX */
static int probe_up(char *arg)
{
	char *name = strsep(&arg, " ");
	struct krc_meta *meta;
	u32 port, gid_index;
	int err;

	if (probe_ibdev)
		return -EBUSY;
	if (!name || !arg || sscanf(arg, "%u %u", &port, &gid_index) != 2)
		return -EINVAL;
	probe_ibdev = ib_device_get_by_name(name, RDMA_DRIVER_UNKNOWN);
	if (!probe_ibdev)
		return -ENODEV;
	err = rdma_query_gid(probe_ibdev, port, gid_index, &probe_gid);
	if (!err) {
		meta = krc_meta_create(probe_ibdev, port, &probe_gid, &probe_conf, probe_cache);
		err = PTR_ERR_OR_ZERO(meta);
	}
	if (err) {
		ib_device_put(probe_ibdev);
		probe_ibdev = NULL;
		return err;
	}
	down_write(&probe_sem);
	probe_meta = meta;
	up_write(&probe_sem);
	return 0;
}

/* publish SERVICE TEXT */
static int probe_publish(char *arg)
{
	struct krp_value value = { .kind = KRP_KIND_RAW };
	char *service = strsep(&arg, " ");
	u16 nr;

	if (!probe_meta || !service || !arg || kstrtou16(service, 10, &nr))
		return -EINVAL;
	value.len = min_t(size_t, strlen(arg), KRP_RAW_BYTES);
	memcpy(value.raw, arg, value.len);
	return krc_meta_publish(probe_meta, nr, &value);
}

static int probe_number(const char *arg, u16 *ret_nr)
{
	return probe_meta ? kstrtou16(arg, 10, ret_nr) : -EINVAL;
}

/* cycles NR DEVICE PORT GID_INDEX: make and end a client so often, ever later in its life */
static int probe_cycles(char *arg)
{
	struct krp_value value = { .kind = KRP_KIND_RAW };
	char *count = strsep(&arg, " "), again[64];
	u32 i, nr;
	int err = 0;

	if (!count || !arg || kstrtou32(count, 10, &nr))
		return -EINVAL;
	for (i = 0; i < nr && !err; i++) {
		strscpy(again, arg, sizeof(again));
		err = probe_up(again);
		if (err)
			break;
		krc_meta_publish(probe_meta, 999, &value);
		if (i % 8)
			usleep_range((i % 64) * 500, (i % 64) * 500 + 200);
		probe_down();
		if (signal_pending(current))
			err = -EINTR;
	}
	return err;
}

/* leak NR: so many allocations whose addresses are lost, as a control for kmemleak */
static int probe_leak(const char *arg)
{
	u32 i, nr;

	if (kstrtou32(arg, 10, &nr))
		return -EINVAL;
	for (i = 0; i < nr; i++) {
		probe_forgotten = kzalloc(PROBE_LINE_BYTES, GFP_KERNEL);
		if (!probe_forgotten)
			return -ENOMEM;
	}
	return 0;
}

static int probe_command(const char *word, char *arg)
{
	u16 nr;
	int err;

	if (!strcmp(word, "reset")) {
		probe_conf_reset();
		return 0;
	}
	if (!strcmp(word, "reconfigure"))
		return probe_meta ? krc_meta_reconfigure(probe_meta, &probe_conf) : -EINVAL;
	if (!strcmp(word, "noservers")) {
		probe_conf.servers_nr = 0;
		return 0;
	}
	if (!strcmp(word, "stop")) {
		if (probe_meta)
			krc_meta_stop(probe_meta);
		return 0;
	}
	if (!strcmp(word, "down")) {
		probe_down();
		return 0;
	}
	if (!strcmp(word, "forget")) {
		krc_cache_forget_all(probe_cache);
		return 0;
	}
	if (!arg)
		return -EINVAL;
	if (!strcmp(word, "server"))
		return probe_server(arg);
	if (!strcmp(word, "key"))
		return probe_key(arg);
	if (!strcmp(word, "lease"))
		return kstrtou32(arg, 10, &probe_conf.lease_ms);
	if (!strcmp(word, "owner"))
		return hex2bin(probe_conf.owner, arg, KRP_OWNER_BYTES);
	if (!strcmp(word, "up"))
		return probe_up(arg);
	if (!strcmp(word, "cycles"))
		return probe_cycles(arg);
	if (!strcmp(word, "publish"))
		return probe_publish(arg);
	if (!strcmp(word, "leak"))
		return probe_leak(arg);
	if (!strcmp(word, "stall"))
		return probe_stall(arg);
	err = probe_number(arg, &nr);
	if (err)
		return err;
	if (!strcmp(word, "published"))
		return krc_meta_published(probe_meta, nr, 10000);
	if (!strcmp(word, "withdraw")) {
		krc_meta_withdraw(probe_meta, nr);
		return 0;
	}
	return -EINVAL;
}

static int probe_parse_key(char *arg, struct krp_key *ret_key)
{
	char *gid = strsep(&arg, " ");
	u16 nr;

	if (!gid || !arg || kstrtou16(arg, 10, &nr) || !in6_pton(gid, -1, ret_key->gid, -1, NULL))
		return -EINVAL;
	ret_key->service = cpu_to_le16(nr);
	return 0;
}

/* lookup GID SERVICE, cached GID SERVICE */
static int probe_lookup(char *arg, bool cached)
{
	struct krp_value value;
	struct krp_key key;
	u64 begin_ns, ns;
	u32 reads = 0;
	int err;

	err = probe_parse_key(arg, &key);
	if (err)
		return err;
	begin_ns = ktime_get_ns();
	if (cached) {
		err = krc_cache_get(probe_cache, &key, &value);
	} else {
		down_read(&probe_sem);
		err = probe_meta
			      ? krc_meta_lookup(probe_meta, NULL, &key, 10000, &value, &reads, NULL)
			      : -EINVAL;
		up_read(&probe_sem);
	}
	ns = ktime_get_ns() - begin_ns;
	mutex_lock(&probe_lock);
	if (err)
		scnprintf(probe_result, sizeof(probe_result), "err=%d reads=%u\n", err, reads);
	else
		scnprintf(probe_result, sizeof(probe_result),
			  "err=0 reads=%u ns=%llu generation=%llu text=%.*s\n", reads, ns,
			  le64_to_cpu(value.generation), value.len, value.raw);
	mutex_unlock(&probe_lock);
	return err;
}

/**
 * struct probe_storm - Look-ups by one thread of a storm.
 * @task: thread.
 * @key: sought.
 * @nr: how many look-ups.
 * @found: answered.
 * @err: last outcome that was not an answer.
 */
struct probe_storm {
	struct task_struct *task;
	struct krp_key key;
	u32 nr;
	u32 found;
	int err;
};

static int probe_storm_fn(void *arg)
{
	struct probe_storm *storm = arg;
	struct krp_value value;
	u32 i;
	int err;

	for (i = 0; i < storm->nr; i++) {
		err = krc_meta_lookup(probe_meta, NULL, &storm->key, 10000, &value, NULL, NULL);
		if (err)
			storm->err = err;
		else
			storm->found++;
		if (err == -ENOTCONN)
			schedule_timeout_interruptible(1);
	}
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return 0;
}

/* storm THREADS NR GID SERVICE: look-ups by many at once */
static int probe_storm(char *arg)
{
	char *threads = strsep(&arg, " "), *count = strsep(&arg, " ");
	struct probe_storm *storms;
	u32 i, nr, lookups, found = 0;
	struct krp_key key;
	u64 begin_ns, ns;
	int err;

	if (!threads || !count || !arg || kstrtou32(threads, 10, &nr) || !nr || nr > 256 ||
	    kstrtou32(count, 10, &lookups) || probe_parse_key(arg, &key))
		return -EINVAL;
	storms = kcalloc(nr, sizeof(*storms), GFP_KERNEL);
	if (!storms)
		return -ENOMEM;
	down_read(&probe_sem);
	err = probe_meta ? 0 : -EINVAL;
	begin_ns = ktime_get_ns();
	for (i = 0; i < nr && !err; i++) {
		storms[i].key = key;
		storms[i].nr = lookups;
		storms[i].task = kthread_run(probe_storm_fn, &storms[i], "krc_storm%u", i);
		if (IS_ERR(storms[i].task)) {
			storms[i].task = NULL;
			err = -ENOMEM;
		}
	}
	for (i = 0; i < nr; i++) {
		if (!storms[i].task)
			continue;
		kthread_stop(storms[i].task);
		found += storms[i].found;
		if (storms[i].err)
			err = storms[i].err;
	}
	ns = ktime_get_ns() - begin_ns;
	up_read(&probe_sem);
	mutex_lock(&probe_lock);
	scnprintf(probe_result, sizeof(probe_result), "found=%u of=%u err=%d ns=%llu\n", found,
		  nr * lookups, err, ns);
	mutex_unlock(&probe_lock);
	kfree(storms);
	return 0;
}

static ssize_t probe_write(struct file *file, const char __user *data, size_t bytes, loff_t *pos)
{
	char *line, *arg, *word;
	int err;

	if (bytes >= PROBE_LINE_BYTES)
		return -E2BIG;
	line = memdup_user_nul(data, bytes);
	if (IS_ERR(line))
		return PTR_ERR(line);
	arg = strim(line);
	word = strsep(&arg, " ");
	if (!strcmp(word, "lookup") || !strcmp(word, "cached")) {
		err = arg ? probe_lookup(arg, word[0] == 'c') : -EINVAL;
	} else if (!strcmp(word, "storm")) {
		err = arg ? probe_storm(arg) : -EINVAL;
	} else {
		mutex_lock(&probe_lock);
		err = probe_command(word, arg);
		mutex_unlock(&probe_lock);
	}
	kfree(line);
	return err ? err : bytes;
}

static const struct file_operations probe_ctl_fops = {
	.owner = THIS_MODULE,
	.write = probe_write,
	.llseek = noop_llseek,
};

static int probe_result_show(struct seq_file *m, void *v)
{
	mutex_lock(&probe_lock);
	seq_puts(m, probe_result);
	mutex_unlock(&probe_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(probe_result);

static int probe_info_show(struct seq_file *m, void *v)
{
	struct krc_cache_stats stats;
	struct krc_meta_info info;
	u32 i;

	down_read(&probe_sem);
	for (i = 0; probe_meta && !krc_meta_info(probe_meta, i, &info); i++)
		seq_printf(
			m,
			"server=%s priority=%u state=%s error=%d incarnation=%llx lease_ms=%u published=%u attaches=%llu lookups=%llu reads=%llu misses=%llu misses_overruled=%llu failures=%llu next_try_ms=%u reason=\"%s\"\n",
			info.name, info.priority, krc_meta_state_name(info.state), info.error,
			info.incarnation, info.lease_ms, info.published, info.attaches,
			info.lookups, info.reads, info.misses, info.misses_overruled, info.failures,
			info.next_try_ms, info.reason);
	up_read(&probe_sem);
	krc_cache_stats(probe_cache, &stats);
	seq_printf(m,
		   "cache entries=%llu hits=%llu misses=%llu evictions=%llu invalidations=%llu\n",
		   stats.entries, stats.hits, stats.misses, stats.evictions, stats.invalidations);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(probe_info);

static int __init probe_init(void)
{
	probe_cache = krc_cache_create(1024);
	if (IS_ERR(probe_cache))
		return PTR_ERR(probe_cache);
	probe_conf_reset();
	probe_dir = debugfs_create_dir("krc_meta_probe", NULL);
	debugfs_create_file("ctl", 0600, probe_dir, NULL, &probe_ctl_fops);
	debugfs_create_file("result", 0600, probe_dir, NULL, &probe_result_fops);
	debugfs_create_file("info", 0600, probe_dir, NULL, &probe_info_fops);
	return 0;
}

static void __exit probe_exit(void)
{
	debugfs_remove(probe_dir);
	probe_stall_end();
	probe_down();
	krc_cache_destroy(probe_cache);
}

module_init(probe_init);
module_exit(probe_exit);
MODULE_DESCRIPTION("krcore: test front of the MetaServer client");
MODULE_LICENSE("GPL");
