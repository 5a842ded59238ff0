// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What a function runs in: a process in a cgroup and namespaces of its own, with nothing of
 * the runner but a connection.
 *
 * It sees all file systems read-only but an own /tmp, /dev/shm and /proc, only its own processes, no
 * network devices, and /dev/krcore, whose module tells users apart and not namespaces of the
 * network (with "rdma system set netns exclusive" it does: then --share-net is needed).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <poll.h>
#include <pwd.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <krcore/queue.h>

#include "common/gid.h"
#include "handoff/lib/function.h"
#include "handoff/runner/runner.h"

#define KH_CGROUP2_MAGIC 0x63677270
#define KH_CGROUPS "/sys/fs/cgroup"
#define KH_PIDS_MAX "64"
#define KH_OOM_FIRST "1000"
#define KH_NAMESPACES (CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS)
#define KH_NOT_EXECUTED 127

/* FOLDER/NAME, KH_PATH_BYTES. Return: 0, or -1 with errno set. */
static int kh_path(char *ret_path, const char *folder, const char *name)
{
	if (snprintf(ret_path, KH_PATH_BYTES, "%s/%s", folder, name) < KH_PATH_BYTES)
		return 0;
	errno = ENAMETOOLONG;
	return -1;
}

/* Write a file of a cgroup, or of /proc. Return: 0, or -1 with errno set. */
static int kh_write(const char *folder, const char *name, const char *text)
{
	char path[KH_PATH_BYTES];
	int fd, saved;
	ssize_t done;

	if (kh_path(path, folder, name))
		return -1;
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	done = write(fd, text, strlen(text));
	saved = errno;
	close(fd);
	errno = saved;
	return done == (ssize_t)strlen(text) ? 0 : -1;
}

/* The cgroup that we are in, KH_PATH_BYTES. Return: 0, or -1 with errno set. */
static int kh_own_cgroup(char *ret_path)
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	char line[KH_PATH_BYTES];
	int found = -1;

	if (!file)
		return -1;
	errno = ENOENT;
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, "0::/", 4)) {
			line[strcspn(line, "\n")] = '\0';
			found = kh_path(ret_path, KH_CGROUPS, line + 4);
		}
	fclose(file);
	return found;
}

/* With errno set. */
static void kh_no_limit_of_processes(const char *own)
{
	fprintf(stderr,
		"krcore-handoff: functions have no limit of processes: %s: %s (as a unit with "
		"Delegate=yes they have)\n",
		own, strerror(errno));
}

/* Whether the cgroups in one have a controller; if that can't be read, it is not ours to take away. */
static bool kh_cgroup_gives(const char *cgroup, const char *controller)
{
	char path[KH_PATH_BYTES], line[KH_PATH_BYTES] = "", *rest = line;
	const char *word;
	FILE *file;

	if (kh_path(path, cgroup, "cgroup.subtree_control"))
		return true;
	file = fopen(path, "re");
	if (!file)
		return true;
	if (!fgets(line, sizeof(line), file))
		line[0] = '\0';
	fclose(file);
	while ((word = strsep(&rest, " \n")))
		if (!strcmp(word, controller))
			return true;
	return false;
}

/* @ret_given: set if our own cgroup did not have it for others. Return: 0, or -1 with errno set. */
static int kh_cgroups_control_one(const struct kh_box *box, const char *own, const char *controller,
				  bool *ret_given)
{
	char text[16];

	snprintf(text, sizeof(text), "+%s", controller);
	if (!kh_cgroup_gives(own, controller)) {
		if (kh_write(own, "cgroup.subtree_control", text))
			return -1;
		*ret_given = true;
	}
	return kh_write(box->cgroups, "cgroup.subtree_control", text);
}

/* Undo kh_cgroups_control_one(). @given: as that has set it. */
static void kh_cgroups_uncontrol(const struct kh_box *box, const char *own, const char *controller,
				 bool given)
{
	char text[16];

	snprintf(text, sizeof(text), "-%s", controller);
	kh_write(box->cgroups, "cgroup.subtree_control", text);
	if (given)
		kh_write(own, "cgroup.subtree_control", text);
}

/*
 * Controllers for the functions' cgroups. Without that of memory we do not serve, unless no limit
 * is wanted; without that of processes we say so.
 */
static int kh_cgroups_control(struct kh_box *box, const char *own)
{
	if (kh_cgroups_control_one(box, own, "pids", &box->gave_pids))
		kh_no_limit_of_processes(own);
	if (!box->args->memory_max_mib ||
	    !kh_cgroups_control_one(box, own, "memory", &box->gave_memory))
		return 0;
	fprintf(stderr, "krcore-handoff: functions would have no limit of memory (they have as a "
			"unit with Delegate=yes; or --memory-max 0)\n");
	return -1;
}

/*
 * A folder for the functions' cgroups. We leave our own cgroup for one beside them: one that has
 * processes cannot have controllers for others.
 */
static int kh_cgroups_make(struct kh_box *box)
{
	char own[KH_PATH_BYTES], runner[KH_PATH_BYTES], name[48];
	struct statfs fs;

	if (statfs(KH_CGROUPS, &fs))
		return -1;
	if (fs.f_type != KH_CGROUP2_MAGIC) {
		errno = ENOTSUP;
		return -1;
	}
	snprintf(name, sizeof(name), "krcore-handoff-%d", (int)getpid());
	if (kh_own_cgroup(own) || kh_path(box->cgroups, own, name) ||
	    kh_path(runner, box->cgroups, "runner") || mkdir(box->cgroups, 0755))
		return -1;
	snprintf(name, sizeof(name), "%d", (int)getpid());
	if (!mkdir(runner, 0755) && !kh_write(runner, "cgroup.procs", name))
		return kh_cgroups_control(box, own);
	if (box->args->memory_max_mib)
		return -1;
	kh_no_limit_of_processes(runner);
	return 0;
}

static int kh_cgroups_init(struct kh_box *box)
{
	int err;

	if (!kh_cgroups_make(box))
		return 0;
	err = errno;
	kh_box_done(box);
	box->cgroups[0] = '\0';
	errno = err;
	return kh_fail("making cgroups (they must be version 2 and ours to make; or --bare)");
}

/* GID of the port that functions use, if one was asked for; each finds one that is up if not. */
static int kh_port_gid(struct kh_box *box)
{
	struct krcore_node *node;
	uint8_t gid[KRCORE_GID_BYTES];

	if (box->args->gid) {
		if (kru_gid_parse(box->args->gid, gid)) {
			fprintf(stderr, "krcore-handoff: --gid: '%s' is no GID\n", box->args->gid);
			return KH_USAGE;
		}
		kru_gid_format(gid, box->gid);
		return 0;
	}
	if (krcore_node_open(NULL, &node))
		fprintf(stderr, "krcore-handoff: no queues yet: %s\n", krcore_error_text());
	else
		krcore_node_close(node);
	return 0;
}

/* Each has its limit, but the node may not have enough for all. */
static void kh_warn_of_memory(const struct kh_args *args)
{
	uint64_t all = (uint64_t)args->most * args->memory_max_mib, has;
	struct sysinfo node;

	if (sysinfo(&node))
		return;
	has = (uint64_t)node.totalram * node.mem_unit >> 20;
	if (all > has)
		fprintf(stderr,
			"krcore-handoff: functions may take %llu MiB together (--most times "
			"--memory-max), of %llu that the node has: MemoryMax= of a unit bounds them\n",
			(unsigned long long)all, (unsigned long long)has);
}

int kh_box_init(struct kh_box *box)
{
	const struct passwd *user = getpwnam(box->args->user);
	int status = kh_port_gid(box);

	box->uid = getuid();
	box->gid_of_user = getgid();
	if (status)
		return status;
	if (box->args->bare && box->args->memory_max_mib) {
		fprintf(stderr, "krcore-handoff: --memory-max: with --bare there are no cgroups\n");
		return KH_USAGE;
	}
	if (box->args->bare)
		return 0;
	if (geteuid()) {
		errno = EPERM;
		return kh_fail("namespaces (only root may; or --bare)");
	}
	if (!user) {
		fprintf(stderr, "krcore-handoff: there is no user '%s'\n", box->args->user);
		return KH_FAILED;
	}
	box->uid = user->pw_uid;
	box->gid_of_user = user->pw_gid;
	kh_warn_of_memory(box->args);
	return kh_cgroups_init(box);
}

void kh_box_done(struct kh_box *box)
{
	char path[KH_PATH_BYTES], self[24];

	/* back to where we were; the others are empty */
	if (!box->cgroups[0] || kh_path(path, box->cgroups, ".."))
		return;
	snprintf(self, sizeof(self), "%d", (int)getpid());
	kh_cgroups_uncontrol(box, path, "pids", box->gave_pids);
	if (box->args->memory_max_mib)
		kh_cgroups_uncontrol(box, path, "memory", box->gave_memory);
	kh_write(path, "cgroup.procs", self);
	if (!kh_path(path, box->cgroups, "runner"))
		rmdir(path);
	rmdir(box->cgroups);
}

/* The rest is done by the child, which ends if any of it fails. */

static void kh_die(const char *what)
{
	struct kh_reply reply = { .kind = KH_FAIL };
	char line[KH_LINE_BYTES];
	int len;

	snprintf(reply.text, sizeof(reply.text), "starting the function: %s: %s", what,
		 strerror(errno));
	len = kh_reply_format(&reply, line);
	if (write(STDOUT_FILENO, line, (size_t)len) != len)
		_exit(KH_FAILED);
	_exit(KH_NOT_EXECUTED);
}

static void kh_own_mounts(void)
{
	const unsigned long hard = MS_NOSUID | MS_NODEV;
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY, .propagation = MS_PRIVATE };

	/* all that is mounted, wherever its user might write; before there are those of its own */
	if (mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &attr, sizeof(attr)))
		kh_die("mounts");
	if (mount("proc", "/proc", "proc", hard | MS_NOEXEC, NULL))
		kh_die("/proc");
	if (mount("tmpfs", "/tmp", "tmpfs", hard, "mode=1777,size=16m"))
		kh_die("/tmp");
	if (!access("/dev/shm", F_OK) &&
	    mount("tmpfs", "/dev/shm", "tmpfs", hard, "mode=1777,size=16m"))
		kh_die("/dev/shm");
}

/*
 * The session keyring of the runner, with the keys of root that are in it, is not the function's.
 * Before setresuid(), so that the new one counts as root's and not against the few of a user.
 */
static void kh_own_keys(void)
{
	/* a kernel without keys has none to keep from it */
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS)
		kh_die("keys");
}

/* A function ends with the runner, which may have ended before it could ask for that. */
static void kh_own_end(int runner)
{
	struct pollfd ended = { .fd = runner, .events = POLLIN };

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
		kh_die("its end");
	if (poll(&ended, 1, 0) > 0)
		_exit(KH_NOT_EXECUTED);
}

static void kh_own_rights(const struct kh_box *box)
{
	uint64_t bytes = (uint64_t)box->args->memory_mib << 20;
	struct rlimit memory = { .rlim_cur = bytes, .rlim_max = bytes };

	if (setrlimit(RLIMIT_MEMLOCK, &memory) && !box->args->bare)
		kh_die("limit of locked memory");
	/* a node that is short of memory ends functions first; what root writes, none takes back */
	if (kh_write("/proc/self", "oom_score_adj", KH_OOM_FIRST) && !box->args->bare)
		kh_die("oom_score_adj");
	if (!box->args->bare)
		kh_own_keys();
	if (!box->args->bare && (setgroups(0, NULL) ||
				 setresgid(box->gid_of_user, box->gid_of_user, box->gid_of_user) ||
				 setresuid(box->uid, box->uid, box->uid)))
		kh_die("user");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		kh_die("rights");
}

static void kh_execute(const struct kh_box *box, const struct kh_start *start, uint64_t born)
{
	char path[KH_PATH_BYTES], since[64], lease[64], idle[64], gid[96], address[96];
	char search[] = "PATH=/usr/bin:/bin";
	char *const env[] = { search, since, lease, idle, address, box->gid[0] ? gid : NULL, NULL };
	char *argv[KH_ARGS_MAX + 2];
	unsigned int i;

	if (kh_path(path, box->args->directory, start->name))
		kh_die(start->name);
	snprintf(since, sizeof(since), "%s=%llu", KH_ENV_BORN, (unsigned long long)born);
	snprintf(lease, sizeof(lease), "%s=%u", KH_ENV_LEASE, box->args->lease_ms);
	snprintf(idle, sizeof(idle), "%s=%u", KH_ENV_IDLE, box->args->idle_ms);
	snprintf(gid, sizeof(gid), "%s=%s", KH_ENV_GID, box->gid);
	snprintf(address, sizeof(address), "%s=%s", KH_ENV_ADDRESS, box->address);
	argv[0] = path;
	for (i = 0; i < start->argc; i++)
		argv[i + 1] = (char *)(uintptr_t)start->argv[i];
	argv[i + 1] = NULL;
	execve(path, argv, env);
	kh_die(start->name);
}

/*
 * A terminal that the runner was started from is not the function's session's, and the descriptor
 * for errors does not read it. It can still write there and change how the terminal behaves, and
 * where that is a file, write anywhere in it and truncate it: only another descriptor would keep it
 * from that, such as that of the journal, which a runner that is a unit has.
 */
static void kh_own_session(void)
{
	int fd;

	if (setsid() < 0)
		kh_die("session");
	if (!isatty(STDERR_FILENO))
		return;
	fd = open("/proc/self/fd/2", O_WRONLY | O_NOCTTY);
	if (fd < 0 || dup2(fd, STDERR_FILENO) < 0)
		kh_die("terminal");
}

/* No descriptor of the runner is the function's. @runner: stays until that is executed, or -1. */
static void kh_own_descriptors(int runner)
{
	int first = STDERR_FILENO + 1;

	if (runner > first && syscall(SYS_close_range, first, runner - 1, 0))
		kh_die("descriptors");
	if (runner >= first)
		first = runner + 1;
	if (syscall(SYS_close_range, first, ~0U, 0))
		kh_die("descriptors");
}

/* @runner: says when the runner has ended, or -1. */
static void kh_child(const struct kh_box *box, const struct kh_start *start, int fd, int runner,
		     uint64_t born)
{
	sigset_t none;

	if (dup2(fd, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0)
		_exit(KH_NOT_EXECUTED);
	kh_own_session();
	kh_own_descriptors(runner);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	if (!box->args->bare) {
		kh_own_mounts();
		if (sethostname(start->name, strlen(start->name)))
			kh_die("host name");
	}
	if (chdir("/"))
		kh_die("/");
	kh_own_rights(box);
	kh_own_end(runner); /* behind setresuid(), which would forget it */
	kh_execute(box, start, born);
}

/*
 * Limits of a function's cgroup. If it needs more memory, all of its processes end, and no others.
 * Return: 0, or -1 with errno set.
 */
static int kh_cgroup_limit(const struct kh_box *box, const char *cgroup)
{
	char bytes[24];

	kh_write(cgroup, "pids.max", KH_PIDS_MAX);
	if (!box->args->memory_max_mib)
		return 0;
	snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)box->args->memory_max_mib << 20);
	if (kh_write(cgroup, "memory.max", bytes) || kh_write(cgroup, "memory.oom.group", "1"))
		return -1;
	kh_write(cgroup, "memory.swap.max", "0"); /* not there without swap */
	return 0;
}

/* A cgroup for one function. Return: its descriptor, or -1 with errno set. */
static int kh_cgroup_make(struct kh_box *box, char *ret_cgroup)
{
	char name[24];
	int fd = -1, err;

	snprintf(name, sizeof(name), "%llu", (unsigned long long)box->count);
	if (kh_path(ret_cgroup, box->cgroups, name) || mkdir(ret_cgroup, 0755)) {
		*ret_cgroup = '\0';
		return -1;
	}
	if (!kh_cgroup_limit(box, ret_cgroup))
		fd = open(ret_cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		err = errno;
		rmdir(ret_cgroup);
		*ret_cgroup = '\0';
		errno = err;
	}
	return fd;
}

/* What is not there costs no cgroup and no namespaces. Return: 0, or -1 with errno set. */
static int kh_may_start(const struct kh_box *box, const struct kh_start *start)
{
	char path[KH_PATH_BYTES];

	if (kh_path(path, box->args->directory, start->name))
		return -1;
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS);
}

pid_t kh_box_start(struct kh_box *box, const struct kh_start *start, int fd, char *ret_cgroup)
{
	struct clone_args args = { .exit_signal = SIGCHLD };
	uint64_t born = kh_now();
	int cgroup = -1, runner, err;
	long pid;

	*ret_cgroup = '\0';
	if (kh_may_start(box, start))
		return -errno;
	box->count++;
	if (!box->args->bare) {
		cgroup = kh_cgroup_make(box, ret_cgroup);
		if (cgroup < 0)
			return -errno;
		args.flags = CLONE_INTO_CGROUP | KH_NAMESPACES;
		args.cgroup = (uint64_t)cgroup;
		if (!box->args->share_net)
			args.flags |= CLONE_NEWNET;
	}
	runner = (int)syscall(SYS_pidfd_open, getpid(), 0);
	/* a container that --bare is for may refuse clone3(), and pidfd_open() */
	pid = box->args->bare ? fork() : syscall(SYS_clone3, &args, sizeof(args));
	if (!pid)
		kh_child(box, start, fd, runner, born);
	err = errno;
	if (runner >= 0)
		close(runner);
	if (cgroup >= 0)
		close(cgroup);
	if (pid < 0) {
		kh_box_end(ret_cgroup);
		return -err;
	}
	return (pid_t)pid;
}

void kh_box_kill(pid_t pid, const char *cgroup)
{
	if (!*cgroup || kh_write(cgroup, "cgroup.kill", "1"))
		kill(pid, SIGKILL); /* the others of its namespace, if it has one, end with it */
}

void kh_box_end(const char *cgroup)
{
	if (*cgroup && rmdir(cgroup))
		fprintf(stderr, "krcore-handoff: %s: %s\n", cgroup, strerror(errno));
}
