/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns: a processor that stands still in the midst of a function of another module, as one does
 * whose hypervisor has taken it away: with the locks it holds, and with what it has read before.
 */
#ifndef PROBE_STALL_H
#define PROBE_STALL_H

/**
 * probe_stall() - Have the next processor that comes to a function stand still there, once.
 * @arg: "MODULE:FUNCTION MS"; changed.
 *
 * The function is watched until probe_stall_end(), which the next call begins with.
 * Context: may sleep; the caller serialises the calls of this file.
 * Return: 0, -EINVAL (no such words, or more than PROBE_STALL_MS_MAX), or an error of
 * register_kprobe(): -ENOENT if there is no such function.
 */
int probe_stall(char *arg);

/**
 * probe_stall_end() - Watch no function any more; a processor that stands still is waited for.
 *
 * Context: as probe_stall().
 */
void probe_stall_end(void);

#endif /* PROBE_STALL_H */
