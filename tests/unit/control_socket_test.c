// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The group that may use the control socket is asked for when the socket is opened, be it made or
 * handed over, and by no connection: groups may come from a network service, for which the
 * loop of the server must not wait.
 */
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include <systemd/sd-daemon.h>

#include "metaserver/control_socket.h"
#include "tests/unit/wrap_group.h"

#define CONNECTIONS 3

static unsigned int asked; /* for a group */

struct group *__wrap_getgrnam(const char *name)
{
	assert_string_equal(name, "krcore");
	asked++;
	return NULL;
}

/* A socket as the service manager hands it over, at its descriptor. */
static void hand_over(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	char pid[16];

	assert_true(fd >= 0);
	strcpy(addr.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, CONNECTIONS), 0);
	if (fd != SD_LISTEN_FDS_START) {
		assert_int_equal(dup2(fd, SD_LISTEN_FDS_START), SD_LISTEN_FDS_START);
		close(fd);
	}
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	assert_int_equal(setenv("LISTEN_PID", pid, 1), 0);
	assert_int_equal(setenv("LISTEN_FDS", "1", 1), 0);
	assert_int_equal(setenv("LISTEN_FDNAMES", "control", 1), 0);
}

static void test_no_connection_asks_for_the_group(void **state)
{
	char folder[] = "/tmp/krcore-control-XXXXXX", path[64];
	struct ms_control_socket sock;
	int ends[2], i;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/sock", folder);
	hand_over(path);
	assert_int_equal(ms_control_socket_open("/nonexistent/sock", &sock), 0);
	assert_int_equal(sock.fd, SD_LISTEN_FDS_START);
	assert_int_equal(asked, 1);
	for (i = 0; i < CONNECTIONS; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
		assert_true(ms_control_peer_allowed(ends[0])); /* we are the server's own user */
		close(ends[0]);
		close(ends[1]);
	}
	assert_int_equal(asked, 1);
	ms_control_socket_close(&sock);
	assert_int_equal(unlink(path), 0); /* it is the manager's, and stays */
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_connection_asks_for_the_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
