/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the creation and removal of /dev/krcore.
 */
#ifndef KRC_CHARDEV_H
#define KRC_CHARDEV_H

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

#endif /* KRC_CHARDEV_H */
