/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the beginning and end of what other modules of the kernel use of krcore
 * (include/krcore/kernel.h).
 */
#ifndef KRC_API_CLIENT_H
#define KRC_API_CLIENT_H

/**
 * krc_api_init() - Make the work queues, and watch for modules that go with a client open.
 *
 * Context: module init, may sleep.
 * Return: 0, -ENOMEM, or what register_module_notifier() returns; then nothing is left.
 */
int krc_api_init(void);

/**
 * krc_api_exit() - Undo krc_api_init().
 *
 * No client is left: each is of a module that keeps this one loaded. Context: module exit, may sleep.
 */
void krc_api_exit(void);

#endif /* KRC_API_CLIENT_H */
