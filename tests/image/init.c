// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * init.c - first program of a guest: loads the few modules the root disk needs,
 * mounts it, copies the guest's own files into it and starts its systemd.
 *
 * A distribution's initramfs does the same by a shell and udev, which costs an
 * emulated machine ten seconds. Statically linked, one thread, no options. What
 * it finds in the initramfs:
 *   /modules.order  modules to load, one path a line, dependencies first
 *   /seed/          files of this guest, copied over the root
 *   /probe          present: only say that this machine runs, and power off
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ROOT_DISK "/dev/vda"
#define MODULES_DISK "/dev/vdb"
#define DISK_WAIT_MS 30000
#define PROBE_LINE "krcore-guest-probe: this machine runs\n"

static void die(const char *what)
{
	fprintf(stderr, "krcore-init: %s: %s\n", what, strerror(errno));
	sync();
	reboot(RB_POWER_OFF);
	_exit(1);
}

static void sleep_ms(long ms)
{
	struct timespec delay = { ms / 1000, (ms % 1000) * 1000000 };

	nanosleep(&delay, NULL);
}

static void load_modules(void)
{
	FILE *list = fopen("/modules.order", "r");
	char path[512];
	int fd;

	if (!list)
		return;
	while (fgets(path, sizeof(path), list)) {
		path[strcspn(path, "\n")] = '\0';
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			die(path);
		if (syscall(SYS_finit_module, fd, "", 0) < 0 && errno != EEXIST)
			die(path);
		close(fd);
	}
	fclose(list);
}

static void mount_disk(const char *disk, const char *where)
{
	int waited_ms;

	for (waited_ms = 0; access(disk, F_OK) < 0; waited_ms += 20) {
		if (waited_ms >= DISK_WAIT_MS)
			die(disk);
		sleep_ms(20);
	}
	if (mount(disk, where, "ext4", MS_NOATIME, "") < 0)
		die(where);
}

static void copy_file(const char *from, const char *to, mode_t mode)
{
	char buffer[4096];
	ssize_t n;
	int in, out;

	in = open(from, O_RDONLY | O_CLOEXEC);
	if (in < 0)
		die(from);
	unlink(to);
	out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode & 0777);
	if (out < 0)
		die(to);
	while ((n = read(in, buffer, sizeof(buffer))) > 0)
		if (write(out, buffer, n) != n)
			die(to);
	if (n < 0)
		die(from);
	close(in);
	close(out);
}

static void copy_tree(const char *from, const char *to)
{
	char source[512], target[512];
	struct dirent *entry;
	struct stat st;
	DIR *dir = opendir(from);

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		snprintf(source, sizeof(source), "%s/%.250s", from, entry->d_name);
		snprintf(target, sizeof(target), "%s/%.250s", to, entry->d_name);
		if (lstat(source, &st) < 0)
			die(source);
		if (S_ISDIR(st.st_mode)) {
			if (mkdir(target, 0755) < 0 && errno != EEXIST)
				die(target);
			copy_tree(source, target);
		} else {
			copy_file(source, target, st.st_mode);
		}
	}
	closedir(dir);
}

static void switch_root(void)
{
	static const char *const moved[] = { "/dev", "/proc" };
	char *const argv[] = { "/sbin/init", NULL };
	char target[32];
	size_t i;

	for (i = 0; i < sizeof(moved) / sizeof(moved[0]); i++) {
		snprintf(target, sizeof(target), "/root%s", moved[i]);
		if (mount(moved[i], target, NULL, MS_MOVE, NULL) < 0)
			die(target);
	}
	if (chdir("/root") < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 ||
	    chdir("/") < 0)
		die("change of root");
	execv(argv[0], argv);
	die(argv[0]);
}

int main(void)
{
	int console;

	mkdir("/dev", 0755);
	mkdir("/proc", 0555);
	mkdir("/root", 0755);
	if (mount("dev", "/dev", "devtmpfs", 0, "") < 0 && errno != EBUSY)
		die("/dev");
	if (mount("proc", "/proc", "proc", 0, "") < 0)
		die("/proc");
	console = open("/dev/console", O_RDWR);
	if (console >= 0) {
		dup2(console, 0);
		dup2(console, 1);
		dup2(console, 2);
		if (console > 2)
			close(console);
	}
	if (access("/probe", F_OK) == 0) {
		if (write(1, PROBE_LINE, strlen(PROBE_LINE)) > 0)
			sync();
		reboot(RB_POWER_OFF);
	}
	load_modules();
	mount_disk(ROOT_DISK, "/root");
	mount_disk(MODULES_DISK, "/root/usr/lib/modules");
	copy_tree("/seed", "/root");
	switch_root();
}
