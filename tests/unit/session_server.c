// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* See session_server.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/session_server.h"

void sv_frames_put(struct sv_frames *frames, const void *msg, unsigned int bytes)
{
	unsigned int at = frames->tail % SV_FRAMES;

	assert_true(frames->tail - frames->head < SV_FRAMES && bytes <= KRP_MSG_BYTES_MAX);
	memcpy(frames->msg[at], msg, bytes);
	frames->bytes[at] = bytes;
	frames->tail++;
}

const void *sv_frames_take(struct sv_frames *frames, unsigned int *ret_bytes)
{
	unsigned int at = frames->head % SV_FRAMES;

	if (frames->head == frames->tail)
		return NULL;
	frames->head++;
	*ret_bytes = frames->bytes[at];
	return frames->msg[at];
}

void sv_frames_drop(struct sv_frames *frames)
{
	frames->head = frames->tail;
}

int sv_open_reads(void *arg)
{
	(void)arg;
	return 0;
}

void sv_root(uint64_t addr, struct krp_root_ref *ret_root)
{
	ret_root->addr = krp_cpu_to_le64(addr);
	ret_root->rkey = krp_cpu_to_le32(5);
	ret_root->bytes = krp_cpu_to_le32(sizeof(struct krp_root));
}

void sv_link(const uint8_t *client, const uint8_t *server, uint32_t client_qpn, uint32_t server_qpn,
	     struct krp_link *ret_link)
{
	memset(ret_link, 0, sizeof(*ret_link));
	memcpy(ret_link->client_gid, client, sizeof(ret_link->client_gid));
	memcpy(ret_link->server_gid, server, sizeof(ret_link->server_gid));
	ret_link->client_qpn = krp_cpu_to_le32(client_qpn);
	ret_link->server_qpn = krp_cpu_to_le32(server_qpn);
}

static void sv_changed(void *arg, unsigned int event, const struct krp_key *key,
		       uint64_t generation, const char *why)
{
	(void)why;
	ms_hub_notify(arg, event, key, generation);
}

static const struct ms_ledger_ops sv_ledger_ops = { sv_changed };

void sv_hub_start(struct ms_hub *hub, struct ms_table *table, uint64_t now_ms)
{
	const struct ms_ledger_config config = { .tick_ms = hub->limits.tick_ms,
						 .records_max = hub->limits.records_max,
						 .salt = 9 };

	assert_int_equal(ms_hub_init(hub, 3, now_ms), 0);
	hub->table = table;
	assert_int_equal(ms_ledger_new(&config, table, &sv_ledger_ops, hub, now_ms, &hub->ledger),
			 0);
}

void sv_hub_stop(struct ms_hub *hub)
{
	ms_ledger_free(hub->ledger);
	ms_hub_fini(hub);
	memset(hub, 0, sizeof(*hub));
}
