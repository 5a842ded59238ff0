// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The listening end of the control socket: see control_socket.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <systemd/sd-daemon.h>

#include "metaserver/control.h"
#include "metaserver/control_socket.h"
#include "metaserver/log.h"

#define MS_CONTROL_BACKLOG 16
#define MS_GROUPS_MAX 1024

/*
 * Group of MS_CONTROL_GROUP, or -1. Looked up once, when the socket is opened: groups may
 * come from a network service, and a connection must not wait for it.
 */
static gid_t ms_control_group(void)
{
	static gid_t known = (gid_t)-1;
	static bool asked;

	if (!asked) {
		struct group *group = getgrnam(MS_CONTROL_GROUP);

		known = group ? group->gr_gid : (gid_t)-1;
		asked = true;
	}
	return known;
}

/* By name, not by order: the unit may pass other sockets too. */
static int ms_control_inherited(void)
{
	char **names = NULL;
	int nr = sd_listen_fds_with_names(1, &names);
	int found = -1;

	for (int i = 0; i < nr; i++) {
		int fd = SD_LISTEN_FDS_START + i;

		if (found < 0 && !strcmp(names[i], MS_CONTROL_FD_NAME) &&
		    sd_is_socket_unix(fd, SOCK_STREAM, 1, NULL, 0) > 0) {
			found = fd;
		} else {
			ms_log(LOG_WARNING,
			       "closing descriptor '%s' that was handed over: not the "
			       "listening stream socket '" MS_CONTROL_FD_NAME "'",
			       names[i]);
			close(fd);
		}
		free(names[i]);
	}
	free(names);
	return found;
}

/* A socket file that no process listens at is left over from a daemon that was killed. */
static int ms_control_clear(int fd, const struct sockaddr_un *addr)
{
	struct stat st;

	if (lstat(addr->sun_path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	if (!connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) || errno == EAGAIN)
		return -EADDRINUSE;
	if (errno != ECONNREFUSED)
		return -errno;
	return unlink(addr->sun_path) < 0 && errno != ENOENT ? -errno : 0;
}

static int ms_control_probe(const struct sockaddr_un *addr)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err;

	if (fd < 0)
		return -errno;
	err = ms_control_clear(fd, addr);
	close(fd);
	return err;
}

static int ms_control_bind(int fd, const struct sockaddr_un *addr)
{
	mode_t mask = umask(0117); /* the file never has wider permissions than intended */
	int err = bind(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0 ? -errno : 0;
	gid_t group = ms_control_group();

	umask(mask);
	if (err)
		return err;
	if (group != (gid_t)-1 && lchown(addr->sun_path, (uid_t)-1, group) < 0)
		ms_log(LOG_WARNING,
		       "%s: cannot give it to group " MS_CONTROL_GROUP ": %s, ignoring",
		       addr->sun_path, strerror(errno));
	if (listen(fd, MS_CONTROL_BACKLOG) < 0) {
		err = -errno;
		unlink(addr->sun_path);
	}
	return err;
}

static int ms_control_make(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd, err;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, path, strlen(path));
	err = ms_control_probe(&addr);
	if (err)
		return err;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	err = ms_control_bind(fd, &addr);
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

int ms_control_socket_open(const char *path, struct ms_control_socket *ret_socket)
{
	int fd = ms_control_inherited();

	ms_control_group();
	if (fd >= 0) {
		if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0) {
			int err = -errno;

			close(fd);
			return err;
		}
		*ret_socket = (struct ms_control_socket){ .fd = fd };
		ms_log(LOG_INFO, "control socket handed over by the service manager");
		return 0;
	}
	fd = ms_control_make(path);
	if (fd < 0) {
		ms_log(LOG_ERR, "control socket %s: %s", path,
		       fd == -EADDRINUSE ? "another daemon listens there" : strerror(-fd));
		return fd;
	}
	ret_socket->fd = fd;
	snprintf(ret_socket->path, sizeof(ret_socket->path), "%s", path);
	return 0;
}

void ms_control_socket_close(struct ms_control_socket *sock)
{
	close(sock->fd);
	if (*sock->path)
		unlink(sock->path);
}

bool ms_control_peer_allowed(int fd)
{
	gid_t groups[MS_GROUPS_MAX], ours = ms_control_group();
	socklen_t bytes = sizeof(groups);
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return false;
	if (!cred.uid || cred.uid == geteuid())
		return true;
	if (cred.gid == getegid() || (ours != (gid_t)-1 && cred.gid == ours))
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes) < 0)
		return false;
	for (size_t i = 0; i < bytes / sizeof(*groups); i++)
		if (groups[i] == getegid() || (ours != (gid_t)-1 && groups[i] == ours))
			return true;
	return false;
}
