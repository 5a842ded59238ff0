/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: busy-polling for what takes microseconds. A READ completes sooner than a task blocks
 * and wakes up again, or an interrupt is served; so its caller first polls for the completion
 * itself, as long as no other task wants the CPU.
 * Idea: mutex_spin_on_owner(), and net.core.busy_read for sockets.
 */
#ifndef KRC_SPIN_H
#define KRC_SPIN_H

#include <linux/types.h>

/**
 * krc_spin() - Poll for as long as module parameter spin_us allows.
 * @poll: checks for the event, and does what an interrupt would do; true: it has come.
 * @arg: for @poll.
 *
 * Context: task; does not sleep; returns at once when another task or a signal is waiting.
 * Return: whether @poll found it.
 */
bool krc_spin(bool (*poll)(void *arg), void *arg);

/**
 * krc_spin_linger_ns() - How long to defer the interrupt after a busy-poller has left.
 *
 * Context: any.
 * Return: module parameter linger_us in nanoseconds; 0: do not defer, or no precise timer.
 */
u64 krc_spin_linger_ns(void);

#endif /* KRC_SPIN_H */
