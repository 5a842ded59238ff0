/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Messages to the service manager: sd_notify(3) behind one function a state.
 * All do nothing without a manager. Loop thread only.
 */
#ifndef MS_NOTIFY_H
#define MS_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

#include <ev.h>

/**
 * struct ms_notify - The watchdog.
 * @loop: the daemon's loop.
 * @watchdog: fires twice in the interval that the manager demands.
 */
struct ms_notify {
	struct ev_loop *loop;
	ev_timer watchdog;
};

/**
 * ms_notify_start() - Feed the watchdog from the loop, if the manager has one.
 * @notify: filled.
 * @loop: the daemon's loop.
 */
void ms_notify_start(struct ms_notify *notify, struct ev_loop *loop);

/** ms_notify_stop() - Feed the watchdog no more. @notify: started or zero. */
void ms_notify_stop(struct ms_notify *notify);

/** ms_notify_alive() - WATCHDOG=1, from work that keeps the loop waiting. */
void ms_notify_alive(void);

/** ms_notify_ready() - READY=1: it serves, or a reload is over. */
void ms_notify_ready(void);

/** ms_notify_reloading() - RELOADING=1 with the time, as notify-reload wants. */
void ms_notify_reloading(void);

/** ms_notify_stopping() - STOPPING=1. */
void ms_notify_stopping(void);

/** ms_notify_status() - STATUS=. @text: one line. */
void ms_notify_status(const char *text);

/** ms_notify_extend() - EXTEND_TIMEOUT_USEC. @ms: from now on, in ms. */
void ms_notify_extend(unsigned int ms);

#endif /* MS_NOTIFY_H */
