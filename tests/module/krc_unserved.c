// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * krc_unserved killable|stuck
 *	Register memory that never comes: a file of a file system (FUSE) which this program
 *	serves itself, in a user namespace, with no privilege. It answers all but READ.
 *	killable: the kernel READs ahead, and a task that waits for the page can be killed.
 *	stuck: it asks for each page by itself, and a task that waits for one waits until it is there
 *	or root aborts the file system (/sys/fs/fuse/connections).
 *
 * Prints "registering" and then never returns. Anything else is why it could not try.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/module/dev.h"

#define FILE_BYTES (1U << 20)
#define REQUEST_BYTES (1U << 17) /* more than any request needs */

/**
 * struct unserved - The file system.
 * @fd: /dev/fuse.
 * @readahead: let the kernel READ ahead.
 */
struct unserved {
	int fd;
	bool readahead;
};

/* One answer: an error, or so many bytes. */
static void answer(const struct unserved *fs, uint64_t unique, int error, const void *body,
		   size_t bytes)
{
	uint8_t buffer[256];
	struct fuse_out_header out = {
		.len = (uint32_t)(sizeof(out) + bytes),
		.error = -error,
		.unique = unique,
	};

	memcpy(buffer, &out, sizeof(out));
	if (bytes)
		memcpy(buffer + sizeof(out), body, bytes);
	if (write(fs->fd, buffer, out.len) < 0 && errno != ENOENT)
		perror("/dev/fuse");
}

static void answer_init(const struct unserved *fs, const struct fuse_in_header *in)
{
	struct fuse_init_out out = {
		.major = FUSE_KERNEL_VERSION,
		.minor = FUSE_KERNEL_MINOR_VERSION,
		.max_readahead = fs->readahead ? REQUEST_BYTES / 2 : 0,
		.flags = fs->readahead ? FUSE_ASYNC_READ : 0,
		.max_write = 4096,
	};

	answer(fs, in->unique, 0, &out, sizeof(out));
}

static void answer_attr(const struct unserved *fs, const struct fuse_in_header *in)
{
	struct fuse_attr_out out = {
		.attr_valid = 3600,
		.attr = { .ino = FUSE_ROOT_ID,
			  .size = FILE_BYTES,
			  .mode = S_IFREG | 0444,
			  .nlink = 1,
			  .blksize = 4096 },
	};

	answer(fs, in->unique, 0, &out, sizeof(out));
}

static void *serve(void *arg)
{
	static uint8_t request[REQUEST_BYTES];
	const struct fuse_in_header *in = (const void *)request;
	const struct fuse_open_out opened = { .fh = 1 };
	const struct unserved *fs = arg;

	while (read(fs->fd, request, sizeof(request)) > 0) {
		switch (in->opcode) {
		case FUSE_INIT:
			answer_init(fs, in);
			break;
		case FUSE_GETATTR:
			answer_attr(fs, in);
			break;
		case FUSE_OPEN:
			answer(fs, in->unique, 0, &opened, sizeof(opened));
			break;
		case FUSE_READ: /* for ever */
		case FUSE_FORGET: /* wants none */
		case FUSE_BATCH_FORGET:
		case FUSE_INTERRUPT:
			break;
		default:
			answer(fs, in->unique, ENOSYS, NULL, 0);
		}
	}
	return NULL;
}

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t wrote = fd < 0 ? -1 : write(fd, text, strlen(text));

	if (fd >= 0)
		close(fd);
	return wrote < 0 ? -1 : 0;
}

/* Become root of a user namespace of its own, which may mount what it serves itself. */
static int be_alone(void)
{
	char map[64];

	snprintf(map, sizeof(map), "0 %u 1", (unsigned int)getuid());
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) || put("/proc/self/setgroups", "deny") ||
	    put("/proc/self/uid_map", map))
		return -1;
	snprintf(map, sizeof(map), "0 %u 1", (unsigned int)getgid());
	return put("/proc/self/gid_map", map);
}

/* The file system is a single file: it is its own root. */
static int mount_file(struct unserved *fs, const char *path)
{
	char options[128];
	int file = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);

	if (file < 0 || close(file))
		return -1;
	fs->fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fs->fd < 0)
		return -1;
	snprintf(options, sizeof(options), "fd=%d,rootmode=100444,user_id=0,group_id=0", fs->fd);
	return mount("unserved", path, "fuse", MS_NOSUID | MS_NODEV, options);
}

/* Memory that is the file's until it is written to, or MAP_FAILED. */
static void *unserved_memory(struct unserved *fs)
{
	struct stat size; /* the kernel asks for it only if somebody else does */
	pthread_t server;
	char path[64];
	int file;

	snprintf(path, sizeof(path), "/tmp/krc_unserved.%d", (int)getpid());
	if (be_alone() || mount_file(fs, path) || pthread_create(&server, NULL, serve, fs))
		return MAP_FAILED;
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0 || fstat(file, &size) || size.st_size != FILE_BYTES)
		return MAP_FAILED;
	return mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
}

int main(int argc, char **argv)
{
	struct unserved fs = { .readahead = argc == 2 && !strcmp(argv[1], "killable") };
	struct dev_region region;
	struct dev dev;
	void *memory;
	int err;

	if (argc != 2 || (!fs.readahead && strcmp(argv[1], "stuck") != 0)) {
		fprintf(stderr, "usage: krc_unserved killable|stuck\n");
		return 64;
	}
	dev_open_or_die(&dev, 64);
	memory = unserved_memory(&fs);
	if (memory == MAP_FAILED) {
		perror("a file that is not served");
		return 1;
	}
	printf("registering\n");
	fflush(stdout);
	err = dev_register(&dev, memory, FILE_BYTES, KRP_ACCESS_ALL, &region);
	printf("registered: %s\n", strerror(-err));
	return 1;
}
