// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * record: look at records, publish and withdraw them.
 *
 * list and get ask the daemon on this machine if there is one, which also knows
 * owners and leases; otherwise they read the table over RDMA. What is published
 * here belongs to this node, as all that libkrcore publishes on it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/metactl/local.h"
#include "client/metactl/record.h"
#include "common/gid.h"

#define MC_KEEP_POLL_MS 100

static const char *const mc_record_keys[] = { "gid",	"service", "kind",  "generation",    "dctn",
					      "dc_key", "raw",	   "owner", "lease_left_ms", NULL };

static json_t *mc_key_args(const struct krcore_key *key, bool keys)
{
	json_t *args = json_object();
	char text[KRU_GID_TEXT];

	json_object_set_new(args, "gid", json_string(kru_gid_format(key->gid, text)));
	json_object_set_new(args, "service", json_integer(key->service));
	if (keys)
		json_object_set_new(args, "keys", json_true());
	return args;
}

int mc_local_records(struct mc *mc)
{
	json_t *args = json_object();

	if (mc_get(mc, "service"))
		json_object_set_new(args, "service",
				    json_integer((json_int_t)mc_number(mc, "service", 0)));
	if (mc->show_keys)
		json_object_set_new(args, "keys", json_true());
	return mc_local_rows(mc, "records", args, mc_record_keys, mc_number(mc, "count", 0));
}

int mc_local_record(struct mc *mc, const struct krcore_key *key)
{
	mc_out_table(mc->out, MC_BLOCK, NULL);
	return mc_local_rows(mc, "record_get", mc_key_args(key, mc->show_keys), mc_record_keys, 0);
}

struct mc_walk {
	struct mc *mc;
	uint64_t left;
};

static bool mc_walk_record(void *arg, const struct krcore_key *key,
			   const struct krcore_value *value)
{
	struct mc_walk *w = arg;

	if (mc_get(w->mc, "service") && key->service != mc_number(w->mc, "service", 0))
		return true;
	mc_row(w->mc->out);
	mc_put_key(w->mc, key);
	mc_put_value(w->mc, value);
	return --w->left > 0;
}

static int mc_record_list(struct mc *mc)
{
	struct mc_walk w = { .mc = mc, .left = mc_number(mc, "count", UINT64_MAX) };
	int server, ret;

	if (mc_is_local(mc) && !mc_get(mc, "server"))
		return mc_local_records(mc);
	if (mc_attach(mc, NULL))
		return MC_FAILED;
	server = mc_server_choose(mc);
	if (server < 0)
		return MC_FAILED;
	ret = krcore_walk(mc->krcore, (unsigned int)server, mc_walk_record, &w, NULL);
	if (ret && ret != -ECANCELED)
		return mc_error(mc, "%s", krcore_error_text());
	return MC_OK;
}

static int mc_record_get(struct mc *mc)
{
	struct krcore_value value;
	struct krcore_key key;
	int ret;

	mc_key_of(mc, &key);
	if (mc_is_local(mc))
		return mc_local_record(mc, &key);
	if (mc_attach(mc, NULL))
		return MC_FAILED;
	ret = krcore_lookup(mc->krcore, &key, &value, NULL);
	if (ret)
		return mc_error(mc, "%s", krcore_error_text());
	mc_out_table(mc->out, MC_BLOCK, NULL);
	mc_row(mc->out);
	mc_put_key(mc, &key);
	mc_put_value(mc, &value);
	return MC_OK;
}

/* A DC target, or else a port that makes lanes. */
static int mc_port_of(struct mc *mc, struct krcore_value *value)
{
	const struct mc_value *mac = mc_get(mc, "mac");
	uint64_t mtu = mc_number(mc, "mtu", 1024);
	struct krcore_dct *d = &value->dct;
	bool dct = mc_get(mc, "dctn");

	if (dct != !!mc_get(mc, "dc_key")) {
		mc_error(mc,
			 dct ? "a DC target needs dc_key" : "dc_key is of a DC target: give dctn");
		return MC_USAGE;
	}
	for (d->mtu = 1; d->mtu < 5 && 128U << d->mtu < mtu; d->mtu++)
		;
	if (128U << d->mtu != mtu) {
		mc_error(mc, "mtu %llu is none of 256, 512, 1024, 2048, 4096",
			 (unsigned long long)mtu);
		return MC_USAGE;
	}
	value->kind = dct ? KRCORE_KIND_DCT : KRCORE_KIND_LANE;
	d->dctn = (uint32_t)mc_number(mc, "dctn", 0);
	d->dc_key = mc_number(mc, "dc_key", 0);
	d->mrdir_addr = mc_number(mc, "mrdir_addr", 0);
	d->mrdir_rkey = (uint32_t)mc_number(mc, "mrdir_rkey", 0);
	d->ud_qpn = (uint32_t)mc_number(mc, "ud_qpn", 0);
	d->ud_qkey = (uint32_t)mc_number(mc, "ud_qkey", 0);
	d->lid = (uint16_t)mc_number(mc, "lid", 0);
	d->sl = (uint8_t)mc_number(mc, "sl", 0);
	d->port = (uint8_t)mc_number(mc, "port", 1);
	d->max_rd_atomic = (uint8_t)mc_number(mc, "max_rd_atomic", 1);
	if (mac) {
		memcpy(d->mac, mac->bytes, sizeof(d->mac));
		d->flags |= KRCORE_DCT_ETHERNET;
	}
	return MC_OK;
}

static int mc_value_of(struct mc *mc, struct krcore_value *value)
{
	const struct mc_value *raw = mc_get(mc, "raw"), *hex = mc_get(mc, "hex");
	bool port = mc_get(mc, "dctn") || mc_get(mc, "ud_qpn");

	memset(value, 0, sizeof(*value));
	if (!!raw + !!hex + port != 1) {
		mc_error(mc, "give one of raw TEXT, hex BYTES, dctn N, ud_qpn N");
		return MC_USAGE;
	}
	if (port)
		return mc_port_of(mc, value);
	value->kind = KRCORE_KIND_RAW;
	if (hex) {
		value->raw_len = (uint8_t)hex->bytes_nr;
		memcpy(value->raw, hex->bytes, hex->bytes_nr);
		return MC_OK;
	}
	if (strlen(raw->text) > KRCORE_RAW_BYTES) {
		mc_error(mc, "raw has %zu bytes, more than %d", strlen(raw->text),
			 KRCORE_RAW_BYTES);
		return MC_USAGE;
	}
	value->raw_len = (uint8_t)strlen(raw->text);
	memcpy(value->raw, raw->text, value->raw_len);
	return MC_OK;
}

static void mc_identity_of(struct mc *mc, struct krcore_options *opts)
{
	const struct mc_value *owner = mc_get(mc, "owner");

	if (owner)
		memcpy(opts->owner, owner->bytes, sizeof(opts->owner));
	opts->generation = mc_number(mc, "generation", 0);
	opts->lease_ms = (uint32_t)mc_number(mc, "lease_ms", 0);
	opts->name = mc_text(mc, "name");
}

static void mc_put_event(struct mc *mc, const char *event, const struct krcore_key *key,
			 int servers)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	mc_row(mc->out);
	mc_put_text(mc->out, "event", 0, event);
	mc_put_key(mc, key);
	mc_put_number(mc->out, "servers", 0, (uint64_t)servers);
	mc_put_number(mc->out, "unix_ms", 0,
		      (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000);
	mc_row_flush(mc->out);
}

static int mc_servers_up(struct mc *mc)
{
	int i, up = 0, nr = krcore_servers(mc->krcore, NULL, 0);
	struct krcore_server_info *servers = mc_servers_alloc(nr);

	if (!servers)
		return 0;
	krcore_servers(mc->krcore, servers, (unsigned int)nr);
	for (i = 0; i < nr; i++)
		up += servers[i].state == KRCORE_SERVER_UP;
	free(servers);
	return up;
}

/* The library renews and republishes by itself; this only reports, and waits for a signal. */
static int mc_keep(struct mc *mc, const struct krcore_key *key)
{
	struct krcore_stats before = { .size = sizeof(before) }, now = before;
	int up, were = mc_servers_up(mc);

	krcore_stats(mc->krcore, &before);
	while (!mc_stopping()) {
		nanosleep(&(struct timespec){ .tv_nsec = MC_KEEP_POLL_MS * 1000000L }, NULL);
		krcore_stats(mc->krcore, &now);
		up = mc_servers_up(mc);
		if (now.publishes != before.publishes)
			mc_put_event(mc, "republished", key, up);
		else if (up < were)
			mc_put_event(mc, "server_lost", key, up);
		before = now;
		were = up;
	}
	if (krcore_withdraw(mc->krcore, key))
		return mc_error(mc, "cannot withdraw: %s", krcore_error_text());
	mc_put_event(mc, "withdrawn", key, mc_servers_up(mc));
	return MC_OK;
}

static int mc_record_publish(struct mc *mc)
{
	struct krcore_options opts = { .flags = mc->keep ? KRCORE_OPEN_NOWAIT : 0 };
	struct krcore_server_info *servers = NULL;
	struct krcore_value value;
	struct krcore_key key;
	int ret;

	mc_key_of(mc, &key);
	ret = mc_value_of(mc, &value);
	if (ret)
		return ret;
	mc_identity_of(mc, &opts);
	if (mc->keep)
		mc_catch_signals();
	if (mc_attach(mc, &opts))
		return MC_FAILED;
	if (mc_servers_wait(mc, &servers) < 0)
		return mc_error(mc, "no memory");
	free(servers);

	mc_out_table(mc->out, MC_LINES, NULL);
	ret = krcore_publish(mc->krcore, &key, &value);
	if (ret == -EHOSTUNREACH && mc->keep) {
		mc_put_event(mc, "waiting", &key, 0);
		return mc_keep(mc, &key);
	}
	if (ret <= 0)
		return mc_error(mc, "not published: %s",
				*krcore_error_text() ? krcore_error_text() : strerror(-ret));
	mc_put_event(mc, "published", &key, ret);
	return mc->keep ? mc_keep(mc, &key) : MC_OK;
}

static int mc_withdraw_local(struct mc *mc, const struct krcore_key *key)
{
	int ret;

	ret = mc_local_must(mc);
	if (ret)
		return ret;
	ret = mc_local_rows(mc, "record_withdraw", mc_key_args(key, false), NULL, 0);
	if (!ret)
		mc_put_event(mc, "withdrawn", key, 1);
	return ret;
}

static int mc_record_withdraw(struct mc *mc)
{
	struct krcore_server_info *servers = NULL;
	struct krcore_options opts = { 0 };
	struct krcore_key key;
	int ret;

	mc_key_of(mc, &key);
	mc_out_table(mc->out, MC_LINES, NULL);
	if (mc_get(mc, "operator"))
		return mc_withdraw_local(mc, &key);
	mc_identity_of(mc, &opts);
	if (mc_attach(mc, &opts))
		return MC_FAILED;
	if (mc_servers_wait(mc, &servers) < 0)
		return mc_error(mc, "no memory");
	free(servers);
	ret = krcore_withdraw(mc->krcore, &key);
	if (ret == -ENOENT)
		return mc_error(mc, "there is no such record");
	if (ret)
		return mc_error(mc, "not withdrawn: %s", krcore_error_text());
	mc_put_event(mc, "withdrawn", &key, mc_servers_up(mc));
	return MC_OK;
}

#define MC_PARAM_GID \
	{ \
		"gid", MC_GID, MC_POSITIONAL | MC_REQUIRED, 0, 0, \
			"GID, address or host name of the peer" \
	}
#define MC_PARAM_SERVICE \
	{ \
		"service", MC_NUMBER, 0, 0, 65535, \
			"which record of the peer; 0, its DC target, if left out" \
	}
#define MC_PARAM_OWNER \
	{ \
		"owner", MC_HEX, 0, 16, 16, "identity of the owner; this machine's if left out" \
	}
#define MC_PARAM_GENERATION \
	{ \
		"generation", MC_NUMBER, 0, 1, UINT64_MAX, \
			"boot generation; now in ns if left out" \
	}
#define MC_PARAM_NAME \
	{ \
		"name", MC_TEXT, 0, 0, 0, "name shown at the server; the host name if left out" \
	}

static const struct mc_param mc_list_params[] = {
	{ "service", MC_NUMBER, 0, 0, 65535, "only records of this service" },
	{ "count", MC_NUMBER, 0, 1, UINT32_MAX, "at most so many" },
	{ "server", MC_NUMBER, 0, 0, 63, "read this server over RDMA, numbered as in node show" },
	{ 0 },
};

static const struct mc_param mc_get_params[] = {
	MC_PARAM_GID,
	MC_PARAM_SERVICE,
	{ 0 },
};

static const struct mc_param mc_publish_params[] = {
	MC_PARAM_GID,
	MC_PARAM_SERVICE,
	{ "raw", MC_TEXT, 0, 0, 0, "value: text of at most 46 bytes" },
	{ "hex", MC_HEX, 0, 0, KRCORE_RAW_BYTES, "value: at most 46 bytes" },
	{ "dctn", MC_NUMBER, 0, 0, 0xffffff,
	  "value: a DC target of this number, and what follows" },
	{ "dc_key", MC_NUMBER, 0, 0, UINT64_MAX, "its access key; needed with dctn" },
	{ "mtu", MC_NUMBER, 0, 256, 4096, "path MTU: 256, 512, 1024, 2048 or 4096 (1024)" },
	{ "port", MC_NUMBER, 0, 1, 255, "port number (1)" },
	{ "sl", MC_NUMBER, 0, 0, 15, "service level (0)" },
	{ "lid", MC_NUMBER, 0, 0, 65535, "LID, on InfiniBand" },
	{ "mac", MC_HEX, 0, 6, 6, "Ethernet address; says that the link is Ethernet" },
	{ "ud_qpn", MC_NUMBER, 0, 0, 0xffffff,
	  "queue pair to which lanes are asked for; without dctn: a port without DC" },
	{ "ud_qkey", MC_NUMBER, 0, 0, UINT32_MAX, "its Q_Key" },
	{ "mrdir_addr", MC_NUMBER, 0, 0, UINT64_MAX, "address of the memory-region directory" },
	{ "mrdir_rkey", MC_NUMBER, 0, 0, UINT32_MAX, "its remote key" },
	{ "max_rd_atomic", MC_NUMBER, 0, 0, 255, "READs and atomics taken at once (1)" },
	{ "lease_ms", MC_NUMBER, 0, 1, 86400000, "lease to ask for" },
	MC_PARAM_OWNER,
	MC_PARAM_GENERATION,
	MC_PARAM_NAME,
	{ 0 },
};

static const struct mc_param mc_withdraw_params[] = {
	MC_PARAM_GID,
	MC_PARAM_SERVICE,
	{ "operator", MC_FLAG, 0, 0, 0,
	  "by the control socket of the daemon on this machine, whoever the owner is" },
	MC_PARAM_OWNER,
	MC_PARAM_GENERATION,
	MC_PARAM_NAME,
	{ 0 },
};

static const struct mc_command mc_record_commands[] = {
	{ "list", mc_record_list, mc_list_params, 0, "All records" },
	{ "get", mc_record_get, mc_get_params, 0, "One record" },
	{ "publish", mc_record_publish, mc_publish_params, MC_CAN_KEEP,
	  "Publish a record to all MetaServers. Without --keep it goes when its lease has run out" },
	{ "withdraw", mc_record_withdraw, mc_withdraw_params, 0,
	  "Take a record out of all MetaServers" },
	{ 0 },
};

const struct mc_object mc_object_record = {
	.name = "record",
	.help = "records: list, get, publish, withdraw",
	.commands = mc_record_commands,
};
