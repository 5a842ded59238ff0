// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The first and only program of the kernel that runs KUnit suites: loads the modules among
 * its arguments, /NAME.ko each, whose suites run within that, shows what each suite says,
 * removes the modules, and ends the kernel. Other arguments are the kernel's.
 *
 * Each line of its own begins with "uml_init: ". The results of a suite stand between a line
 * "uml_init: suite NAME" and the next line of that kind.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RESULTS "/sys/kernel/debug/kunit"

/* A file system; where it goes is made when it is not there. */
static void mount_at(const char *kind, const char *where)
{
	mkdir(where, 0755);
	if (mount(kind, where, kind, 0, NULL))
		printf("uml_init: mount %s: %s\n", where, strerror(errno));
}

static void load(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || syscall(SYS_finit_module, fd, "", 0))
		printf("uml_init: load %s: %s\n", path, strerror(errno));
	else
		printf("uml_init: loaded %s\n", path);
	if (fd >= 0)
		close(fd);
}

/* The module of a file /NAME.ko. */
static void unload(const char *path)
{
	char name[64];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(path + 1, "."), path + 1);
	if (syscall(SYS_delete_module, name, O_NONBLOCK))
		printf("uml_init: unload %s: %s\n", name, strerror(errno));
}

static void show(const char *suite)
{
	char path[512], line[1024];
	FILE *file;

	snprintf(path, sizeof(path), RESULTS "/%s/results", suite);
	printf("uml_init: suite %s\n", suite);
	file = fopen(path, "re");
	if (!file) {
		printf("uml_init: %s: %s\n", path, strerror(errno));
		return;
	}
	while (fgets(line, sizeof(line), file))
		fputs(line, stdout);
	fclose(file);
}

static void show_all(void)
{
	DIR *folder = opendir(RESULTS);
	struct dirent *entry;

	if (!folder) {
		printf("uml_init: " RESULTS ": %s\n", strerror(errno));
		return;
	}
	while ((entry = readdir(folder)))
		if (entry->d_name[0] != '.')
			show(entry->d_name);
	closedir(folder);
}

int main(int argc, char **argv)
{
	int i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	mount_at("sysfs", "/sys");
	mount_at("debugfs", "/sys/kernel/debug");
	for (i = 1; i < argc; i++)
		if (argv[i][0] == '/')
			load(argv[i]);
	show_all();
	for (i = argc - 1; i > 0; i--)
		if (argv[i][0] == '/')
			unload(argv[i]);
	printf("uml_init: end\n");
	fflush(stdout);
	reboot(RB_POWER_OFF);
	return 1;
}
