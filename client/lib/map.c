// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Refreshing the map of an attached server in the middle of a look-up.
 *
 * Only the root and new segments are READ: a deeper directory is derived from the
 * shallower copy, and look-ups correct its stale entries when they use them.
 */
#include <errno.h>
#include <string.h>

#include "client/lib/lib.h"

/*
 * Locks: server.io. @reads grows by the READs it took.
 * Return: 0, or a negative errno after which the connection is broken
 * (-ENOMEM leaves it).
 */
int krl_map_refresh(struct krl_server *srv, uint32_t *reads)
{
	struct krl_conn *conn = srv->conn;
	struct krp_load load;
	struct krp_read read;
	int err = 0;

	krl_load_start(&load, srv->root_addr, srv->root_rkey, srv->map->map.incarnation,
		       KRL_BOUNCE_BYTES, srv->map);
	while (!err && krp_load_next(&load, &read)) {
		err = krl_conn_post_reads(conn, &read, 1, conn->mem->bounce);
		if (!err)
			err = krl_conn_wait_reads(conn, 1, krl_server_read_timeout_ns(srv));
		(*reads)++;
		if (!err)
			err = krl_load_feed(&load, conn->mem->bounce);
	}
	if (err) {
		krl_load_drop(&load);
		if (err != -ENOMEM)
			krl_server_fail(srv, err, "the root cannot be read again (%s)",
					strerror(-err));
		return err;
	}
	pthread_mutex_lock(&srv->ctx->lock);
	krl_map_free(srv->map);
	srv->map = krl_load_take(&load);
	pthread_mutex_unlock(&srv->ctx->lock);
	return 0;
}
