/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: waiting awake for what takes microseconds. A READ is back before a task has gone
 * to sleep and come again, and before an interrupt has been served; so its caller first
 * looks for the completion itself, as long as nobody else wants the processor.
 * Idea: mutex_spin_on_owner(), and net.core.busy_read for sockets.
 */
#ifndef KRC_SPIN_H
#define KRC_SPIN_H

#include <linux/types.h>

/**
 * krc_spin() - Poll for as long as module parameter spin_us allows.
 * @poll: looks for what is waited for, and does what an interrupt would do; true: it is there.
 * @arg: for @poll.
 *
 * Context: task; does not sleep; returns at once when another task or a signal is waiting.
 * Return: whether @poll found it.
 */
bool krc_spin(bool (*poll)(void *arg), void *arg);

/**
 * krc_spin_linger_ns() - How long after he has stopped, who polled may be about to come back.
 *
 * Context: any.
 * Return: module parameter linger_us in nanoseconds; 0: the kernel has no timer for that.
 */
u64 krc_spin_linger_ns(void);

#endif /* KRC_SPIN_H */
