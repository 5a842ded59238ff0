/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: contexts that watch records: KRP_IOC_WATCH, and read(2) and poll(2) for the changes of
 * meta/changes.h.
 */
#ifndef KRC_WATCH_H
#define KRC_WATCH_H

#include <linux/poll.h>
#include <linux/types.h>

#include "krp_ioctl.h"

struct krc_context;

/**
 * krc_watch_init() - Hear of changes from now on.
 *
 * Context: module init.
 */
void krc_watch_init(void);

/**
 * krc_watch_exit() - Undo krc_watch_init().
 *
 * Context: module exit, or an init that failed; may sleep; no context watches.
 */
void krc_watch_exit(void);

/**
 * krc_ioc_watch() - KRP_IOC_WATCH.
 * @ctx: context.
 * @arg: as in krp_ioctl.h.
 *
 * Context: may sleep.
 * Return: 0 or an errno of krp_ioctl.h.
 */
int krc_ioc_watch(struct krc_context *ctx, struct krp_record_watch *arg);

/**
 * krc_watch_read() - read(2) of a watching context.
 * @ctx: context.
 * @buf: destination.
 * @bytes: size of @buf.
 * @nonblock: do not wait for a change.
 *
 * Context: may sleep.
 * Return: bytes written, or an errno of krp_ioctl.h (struct krp_event).
 */
ssize_t krc_watch_read(struct krc_context *ctx, char __user *buf, size_t bytes, bool nonblock);

/**
 * krc_watch_poll() - poll(2) for changes.
 * @ctx: context.
 * @file: its file.
 * @table: poll table of the caller.
 *
 * Context: may sleep.
 * Return: EPOLLPRI if @ctx watches and a change is pending, else 0.
 */
__poll_t krc_watch_poll(struct krc_context *ctx, struct file *file, poll_table *table);

/**
 * krc_watch_end() - Stop watching, at the end of a context.
 * @ctx: context that no other thread uses, watching or not.
 *
 * Context: may sleep.
 */
void krc_watch_end(struct krc_context *ctx);

#endif /* KRC_WATCH_H */
