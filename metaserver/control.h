/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The control socket: access, limits and time-outs of its connections. The protocol is
 * in common/ctl.h, the commands are in commands.h.
 *
 * Nothing here blocks. A connection has at most one request in execution and one reply
 * being sent; an iteration of the loop serves one request of each connection, so that
 * neither a slow nor a greedy peer delays the others. Loop thread only.
 */
#ifndef MS_CONTROL_H
#define MS_CONTROL_H

struct ms_control;
struct ms_daemon;

#define MS_CONTROL_FD_NAME "control" /* FileDescriptorName= in the .socket unit */
#define MS_CONTROL_GROUP "krcore"
#define MS_CONTROL_CLIENTS_MAX 64

/**
 * ms_control_new() - Take the socket from the service manager, or create it; then listen.
 * @d: daemon with loop, configuration and server.
 * @ret_control: the control socket; untouched on failure.
 *
 * Return: 0, -EADDRINUSE if another daemon listens there, or what socket(),
 * bind() and so on say; the cause has been logged.
 */
int ms_control_new(struct ms_daemon *d, struct ms_control **ret_control);

/** ms_control_free() - Close everything. @control: control socket or NULL. */
void ms_control_free(struct ms_control *control);

#endif /* MS_CONTROL_H */
