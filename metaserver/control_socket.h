/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The listening end of the control socket: passed by the service manager and found by its
 * name, or created here; and which peers may connect. Loop thread only.
 */
#ifndef MS_CONTROL_SOCKET_H
#define MS_CONTROL_SOCKET_H

#include <stdbool.h>

/**
 * struct ms_control_socket - Listening socket.
 * @fd: non-blocking.
 * @path: file to remove at the end, "" if the manager owns it.
 */
struct ms_control_socket {
	int fd;
	char path[108];
};

/**
 * ms_control_socket_open() - Take over or make the socket.
 * @path: where to make it.
 * @ret_socket: the socket; untouched on failure.
 *
 * Made with mode 0660 from its first moment, group krcore if there is one.
 *
 * Return: 0 or a negative errno; the cause has been logged.
 */
int ms_control_socket_open(const char *path, struct ms_control_socket *ret_socket);

/** ms_control_socket_close() - Close it, and remove the file if it is ours. @sock: socket. */
void ms_control_socket_close(struct ms_control_socket *sock);

/**
 * ms_control_peer_allowed() - May this peer use the socket?
 * @fd: its connection.
 *
 * Return: true for root, the daemon's own user, and members of its group or of
 * group krcore.
 */
bool ms_control_peer_allowed(int fd);

#endif /* MS_CONTROL_SOCKET_H */
