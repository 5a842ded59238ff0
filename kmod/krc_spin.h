/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: waiting awake for what takes microseconds. A READ is back before a task has gone
 * to sleep and come again, so its caller first spins, as long as nobody else wants the
 * processor.
 * Idea: mutex_spin_on_owner(), and net.core.busy_read for sockets.
 */
#ifndef KRC_SPIN_H
#define KRC_SPIN_H

#include <linux/completion.h>

/**
 * krc_spin() - Wait awake for a completion, for as long as module parameter spin_us allows.
 * @done: completion; not taken.
 *
 * Context: may sleep; returns at once when another task or a signal is waiting.
 * Return: whether it is complete.
 */
bool krc_spin(struct completion *done);

#endif /* KRC_SPIN_H */
