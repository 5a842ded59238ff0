// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Check of the heartbeat in the root of a server that has just missed: proto/krp_pulse.h.
 */
#include <errno.h>
#include <string.h>

#include "client/lib/lib.h"

#define KRL_PULSE_TRIES 4 /* torn READs in a row; then the server is writing, hence alive */

/* Locks: server.io. Apply the result of the last check. */
static void krl_pulse_take(struct krl_server *srv, uint64_t now_ns)
{
	pthread_mutex_lock(&srv->ctx->lock);
	krp_session_pulse(&srv->s, now_ns, srv->pulse.still, srv->pulse.settling_ms);
	atomic_store(&srv->still, srv->s.still);
	atomic_store(&srv->settle_until_ns, srv->s.settle_ns);
	pthread_mutex_unlock(&srv->ctx->lock);
}

/*
 * Locks: server.io. Check whether the server is alive, if the last check is too old.
 * @reads grows by the READs it took. Return: 0, or -ENOTCONN: it has failed.
 */
int krl_pulse_look(struct krl_server *srv, uint32_t *reads)
{
	struct krp_read read = { srv->root_addr, srv->root_rkey, sizeof(struct krp_root) };
	struct krl_conn *conn = srv->conn;
	uint64_t now_ns = krl_now_ns();
	int i, err = -EAGAIN;

	if (!krp_pulse_due(&srv->pulse, now_ns / 1000000))
		return 0;
	for (i = 0; i < KRL_PULSE_TRIES && err == -EAGAIN; i++) {
		(*reads)++;
		err = krl_conn_post_reads(conn, &read, 1, conn->mem->bounce);
		if (!err)
			err = krl_conn_wait_reads(conn, 1, krl_server_read_timeout_ns(srv));
		if (!err)
			err = krp_pulse_feed(&srv->pulse,
					     (const struct krp_root *)conn->mem->bounce,
					     srv->map->map.incarnation, now_ns / 1000000);
	}
	if (!err)
		krl_pulse_take(srv, now_ns);
	if (!err || err == -EAGAIN)
		return 0;
	krl_server_fail(srv, err, "a READ of the root failed (%s)", strerror(-err));
	return -ENOTCONN;
}
