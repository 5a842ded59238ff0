// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Messages to the service manager: see notify.h. The order of RELOADING,
 * MONOTONIC_USEC and READY is that of sd_notify(3), so that Type=notify-reload
 * works too where systemd has it.
 */
#include <inttypes.h>
#include <time.h>

#include <systemd/sd-daemon.h>

#include "metaserver/notify.h"

static void ms_notify_watchdog(struct ev_loop *loop, ev_timer *timer, int revents)
{
	(void)loop;
	(void)timer;
	(void)revents;
	ms_notify_alive();
}

void ms_notify_alive(void)
{
	sd_notify(0, "WATCHDOG=1");
}

void ms_notify_start(struct ms_notify *notify, struct ev_loop *loop)
{
	uint64_t interval_us = 0;
	double interval_s;

	notify->loop = loop;
	ev_init(&notify->watchdog, ms_notify_watchdog);
	if (sd_watchdog_enabled(0, &interval_us) <= 0 || !interval_us)
		return;
	interval_s = (double)interval_us / 2e6;
	ev_timer_set(&notify->watchdog, 0., interval_s);
	ev_timer_start(loop, &notify->watchdog);
}

void ms_notify_stop(struct ms_notify *notify)
{
	if (notify->loop)
		ev_timer_stop(notify->loop, &notify->watchdog);
}

void ms_notify_ready(void)
{
	sd_notify(0, "READY=1");
}

void ms_notify_reloading(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
		   (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000);
}

void ms_notify_stopping(void)
{
	sd_notify(0, "STOPPING=1");
}

void ms_notify_status(const char *text)
{
	sd_notifyf(0, "STATUS=%s", text);
}

void ms_notify_extend(unsigned int ms)
{
	sd_notifyf(0, "EXTEND_TIMEOUT_USEC=%" PRIu64, (uint64_t)ms * 1000);
}
