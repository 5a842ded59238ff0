/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: a context that watches records: KRP_IOC_WATCH, and what read(2) and poll(2) of its
 * file do then. The changes are those of meta/changes.h.
 */
#ifndef KRC_WATCH_H
#define KRC_WATCH_H

#include <linux/poll.h>
#include <linux/types.h>

#include "krp_ioctl.h"

struct krc_context;

/**
 * krc_ioc_watch() - KRP_IOC_WATCH.
 * @ctx: context.
 * @arg: what it asks.
 *
 * Context: may sleep.
 * Return: 0 or what krp_ioctl.h says.
 */
int krc_ioc_watch(struct krc_context *ctx, struct krp_record_watch *arg);

/**
 * krc_watch_read() - read(2) of a watching context.
 * @ctx: context.
 * @buf: where to.
 * @bytes: room there.
 * @nonblock: do not wait for a change.
 *
 * Context: may sleep.
 * Return: bytes, or what krp_ioctl.h says of struct krp_event.
 */
ssize_t krc_watch_read(struct krc_context *ctx, char __user *buf, size_t bytes, bool nonblock);

/**
 * krc_watch_poll() - What poll(2) says of changes.
 * @ctx: context.
 * @file: its file.
 * @table: where to wait.
 *
 * Context: may sleep.
 * Return: EPOLLPRI if there is one, else 0.
 */
__poll_t krc_watch_poll(struct krc_context *ctx, struct file *file, poll_table *table);

/* The context ends, and nobody else uses it. Context: may sleep. */
void krc_watch_end(struct krc_context *ctx);

#endif /* KRC_WATCH_H */
