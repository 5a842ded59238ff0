/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Asking the daemon on this machine by its control socket. Threads: one.
 */
#ifndef MC_LOCAL_H
#define MC_LOCAL_H

#include <jansson.h>

#include "client/metactl/metactl.h"
#include "common/ctl.h"

/**
 * mc_local_open() - Connect to the daemon.
 * @mc: run.
 * @ret_ctl: for kru_ctl_close(); untouched on failure.
 *
 * Return: MC_OK, or MC_FAILED after a message that says what to do.
 */
int mc_local_open(struct mc *mc, struct kru_ctl **ret_ctl);

/**
 * mc_local_each() - Ask for a list and do something with each item.
 * @mc: run.
 * @command: name in the protocol of ctl.h.
 * @args: its arguments or NULL; taken over.
 * @fn: called with each object, returns false to stop.
 * @arg: its first argument.
 *
 * Return: MC_OK, or MC_FAILED after a message.
 */
int mc_local_each(struct mc *mc, const char *command, json_t *args,
		  bool (*fn)(void *arg, json_t *item), void *arg);

/**
 * mc_local_rows() - Ask for a list and show it.
 * @mc: run; its table is begun.
 * @command: name in the protocol of ctl.h.
 * @args: its arguments or NULL; taken over.
 * @keys: as for mc_put_object().
 * @max: rows at most; 0 for all.
 *
 * Return: MC_OK, or MC_FAILED after a message.
 */
int mc_local_rows(struct mc *mc, const char *command, json_t *args, const char *const *keys,
		  uint64_t max);

/** mc_local_must() - For commands of the local daemon only. @mc: run. Return: MC_OK or MC_USAGE. */
int mc_local_must(struct mc *mc);

#endif /* MC_LOCAL_H */
