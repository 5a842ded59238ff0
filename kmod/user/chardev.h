/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the creation and removal of /dev/krcore.
 */
#ifndef KRC_CHARDEV_H
#define KRC_CHARDEV_H

#include <linux/poll.h>

/**
 * krc_chardev_init() - Register /dev/krcore.
 *
 * Context: module init, may sleep.
 * Return: 0, -ENOMEM, or the error of misc_register().
 */
int krc_chardev_init(void);

/**
 * krc_chardev_exit() - Unregister /dev/krcore, and wait for the release of closed contexts.
 *
 * Context: module exit, may sleep; all files are closed.
 */
void krc_chardev_exit(void);

/**
 * krc_chardev_poll() - poll(2) of /dev/krcore: file_operations.poll.
 * @file: file of a context.
 * @table: as poll_wait() takes it; the caller gets into it if it is to wait, unless too many do.
 *
 * Context: may sleep.
 * Return: EPOLLIN: completions; EPOLLPRI: changes; EPOLLERR: no port, the port is gone, or
 * KRP_SLEEPERS_MAX wait already and @table is to be waited with.
 */
__poll_t krc_chardev_poll(struct file *file, poll_table *table);

#endif /* KRC_CHARDEV_H */
