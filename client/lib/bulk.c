// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * READs of a table by the piece: see bulk.h.
 */
#include <errno.h>
#include <string.h>

#include "client/lib/bulk.h"

int krl_bulk_begin(struct krl_bulk *bulk, struct krl_server *srv)
{
	int err = -ENOTCONN;

	bulk->srv = srv;
	pthread_mutex_lock(&srv->io);
	if (atomic_load(&srv->up)) {
		bulk->incarnation = srv->map->map.incarnation;
		bulk->root_addr = srv->root_addr;
		bulk->root_rkey = srv->root_rkey;
		err = 0;
	}
	pthread_mutex_unlock(&srv->io);
	return err;
}

int krl_bulk_read(struct krl_bulk *bulk, const struct krp_read *reads, unsigned int nr, void *to)
{
	struct krl_server *srv = bulk->srv;
	unsigned int i, bytes = 0;
	int err = -ENOTCONN;

	for (i = 0; i < nr; i++)
		bytes += reads[i].bytes;
	pthread_mutex_lock(&srv->io);
	if (atomic_load(&srv->up) && srv->map->map.incarnation == bulk->incarnation) {
		err = krl_conn_post_reads(srv->conn, reads, nr, srv->conn->mem->bounce);
		if (!err)
			err = krl_conn_wait_reads(srv->conn, nr, krl_server_read_timeout_ns(srv));
		if (err) {
			krl_server_fail(srv, err, "a READ of the table failed (%s)",
					strerror(-err));
			err = -ENOTCONN;
		} else {
			memcpy(to, srv->conn->mem->bounce, bytes);
		}
	}
	pthread_mutex_unlock(&srv->io);
	bulk->bytes += bytes;
	krl_count(&srv->n.reads, nr);
	return err;
}

int krl_bulk_map(struct krl_bulk *bulk, void *buf, struct krl_map **ret_map)
{
	struct krp_load load;
	struct krp_read read;
	int err = 0;

	krl_load_start(&load, bulk->root_addr, bulk->root_rkey, bulk->incarnation, KRL_BOUNCE_BYTES,
		       NULL);
	while (!err && krp_load_next(&load, &read)) {
		err = krl_bulk_read(bulk, &read, 1, buf);
		if (!err)
			err = krl_load_feed(&load, buf);
	}
	if (err) {
		krl_load_drop(&load);
		return err;
	}
	*ret_map = krl_load_take(&load);
	return 0;
}
