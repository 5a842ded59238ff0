/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The control socket: who may connect, how much each connection may hold, and
 * when it has had enough time. The protocol is in common/ctl.h, the commands in
 * commands.h.
 *
 * Nothing here waits. A connection has one request in work and one reply on its
 * way; a turn of the loop serves one request of each, so that neither a slow
 * nor a greedy peer holds the others up. Loop thread only.
 */
#ifndef MS_CONTROL_H
#define MS_CONTROL_H

struct ms_control;
struct ms_daemon;

#define MS_CONTROL_FD_NAME "control" /* FileDescriptorName= in the .socket unit */
#define MS_CONTROL_GROUP "krcore"
#define MS_CONTROL_CLIENTS_MAX 64

/**
 * ms_control_new() - Take the socket from the manager, or make it; then listen.
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
