/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the life of /dev/krcore.
 */
#ifndef KRC_CHARDEV_H
#define KRC_CHARDEV_H

/**
 * krc_chardev_init() - Make /dev/krcore.
 *
 * Context: loading.
 * Return: 0, -ENOMEM, or what misc_register() says.
 */
int krc_chardev_init(void);

/* Take it away; all files are closed, and what is left of their contexts is waited for. */
void krc_chardev_exit(void);

#endif /* KRC_CHARDEV_H */
