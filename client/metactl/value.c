// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Records as cells, and which server to read: see record.h.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/metactl/record.h"
#include "common/gid.h"
#include "common/text.h"

void mc_key_of(const struct mc *mc, struct krcore_key *ret_key)
{
	memcpy(ret_key->gid, mc_get(mc, "gid")->bytes, sizeof(ret_key->gid));
	ret_key->service = (uint16_t)mc_number(mc, "service", KRCORE_SERVICE_NODE);
}

void mc_put_key(struct mc *mc, const struct krcore_key *key)
{
	char text[KRU_GID_TEXT];

	mc_put_text(mc->out, "gid", 0, kru_gid_format(key->gid, text));
	mc_put_number(mc->out, "service", 0, key->service);
}

void mc_put_hex(struct mc *mc, const char *key, unsigned int flags, const uint8_t *p, size_t nr)
{
	char text[2 * MC_BYTES_MAX + 1] = "";
	size_t i;

	for (i = 0; i < nr && i < MC_BYTES_MAX; i++)
		sprintf(text + 2 * i, "%02x", p[i]);
	mc_put_text(mc->out, key, flags, text);
}

/* A key that gives access; hidden unless it is asked for. */
static void mc_put_secret(struct mc *mc, const char *key, unsigned int flags, uint64_t value)
{
	if (mc->show_keys)
		mc_put_format(mc->out, key, flags, "0x%" PRIx64, value);
	else
		mc_put_text(mc->out, key, flags, MC_HIDDEN);
}

static void mc_put_dct(struct mc *mc, const struct krcore_dct *d)
{
	struct mc_out *out = mc->out;

	mc_put_format(out, "mrdir_addr", MC_DETAIL, "0x%" PRIx64, d->mrdir_addr);
	mc_put_secret(mc, "mrdir_rkey", MC_DETAIL, d->mrdir_rkey);
	mc_put_number(out, "ud_qpn", MC_DETAIL, d->ud_qpn);
	mc_put_secret(mc, "ud_qkey", MC_DETAIL, d->ud_qkey);
	mc_put_number(out, "lid", MC_DETAIL, d->lid);
	if (d->flags & KRCORE_DCT_ETHERNET)
		mc_put_format(out, "mac", MC_DETAIL, "%02x:%02x:%02x:%02x:%02x:%02x", d->mac[0],
			      d->mac[1], d->mac[2], d->mac[3], d->mac[4], d->mac[5]);
	else
		mc_put_text(out, "mac", MC_DETAIL, NULL);
	mc_put_number(out, "mtu_bytes", MC_DETAIL, d->mtu >= 1 && d->mtu <= 5 ? 128U << d->mtu : 0);
	mc_put_number(out, "sl", MC_DETAIL, d->sl);
	mc_put_number(out, "port", MC_DETAIL, d->port);
	mc_put_text(out, "link", MC_DETAIL,
		    d->flags & KRCORE_DCT_ETHERNET ? "Ethernet" : "InfiniBand");
	mc_put_number(out, "max_rd_atomic", MC_DETAIL, d->max_rd_atomic);
}

static void mc_put_no_dct(struct mc *mc)
{
	static const char *const keys[] = { "mrdir_addr", "mrdir_rkey", "ud_qpn",	"ud_qkey",
					    "lid",	  "mac",	"mtu_bytes",	"sl",
					    "port",	  "link",	"max_rd_atomic" };
	size_t i;

	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		mc_put_text(mc->out, keys[i], MC_DETAIL, NULL);
}

void mc_put_value(struct mc *mc, const struct krcore_value *value)
{
	bool lane = value && value->kind == KRCORE_KIND_LANE;
	bool dct = value && value->kind == KRCORE_KIND_DCT;
	bool raw = value && value->kind == KRCORE_KIND_RAW;
	struct mc_out *out = mc->out;
	char *text = NULL;

	mc_put_text(out, "kind", 0, dct ? "dct" : lane ? "lane" : raw ? "raw" : NULL);
	if (value)
		mc_put_number(out, "generation", 0, value->generation);
	else
		mc_put_text(out, "generation", 0, NULL);
	if (dct) {
		mc_put_number(out, "dctn", 0, value->dct.dctn);
		mc_put_secret(mc, "dc_key", 0, value->dct.dc_key);
	} else {
		mc_put_text(out, "dctn", 0, NULL);
		mc_put_text(out, "dc_key", 0, NULL);
	}
	if (raw) {
		mc_put_hex(mc, "raw", 0, value->raw, value->raw_len);
		text = kru_text_safe(value->raw, value->raw_len);
	} else {
		mc_put_text(out, "raw", 0, NULL);
	}
	mc_put_text(out, "raw_text", MC_DETAIL, text);
	free(text);
	if (dct || lane)
		mc_put_dct(mc, &value->dct);
	else
		mc_put_no_dct(mc);
}

static bool mc_dct_equal(const struct krcore_dct *a, const struct krcore_dct *b)
{
	return a->dc_key == b->dc_key && a->mrdir_addr == b->mrdir_addr &&
	       a->mrdir_rkey == b->mrdir_rkey && a->dctn == b->dctn && a->ud_qpn == b->ud_qpn &&
	       a->ud_qkey == b->ud_qkey && a->lid == b->lid &&
	       !memcmp(a->mac, b->mac, sizeof(a->mac)) && a->mtu == b->mtu && a->sl == b->sl &&
	       a->port == b->port && a->flags == b->flags && a->max_rd_atomic == b->max_rd_atomic;
}

bool mc_values_equal(const struct krcore_value *a, const struct krcore_value *b)
{
	if (a->generation != b->generation || a->kind != b->kind)
		return false;
	if (a->kind != KRCORE_KIND_RAW)
		return mc_dct_equal(&a->dct, &b->dct);
	return a->raw_len == b->raw_len && !memcmp(a->raw, b->raw, a->raw_len);
}

int mc_server_choose(struct mc *mc)
{
	const struct mc_value *wish = mc_get(mc, "server");
	struct krcore_server_info *servers;
	int i, nr, found = -1;

	nr = mc_servers_wait(mc, &servers);
	if (nr < 0) {
		mc_error(mc, "no memory");
		return -1;
	}
	for (i = 0; i < nr && found < 0; i++)
		if (servers[i].state == KRCORE_SERVER_UP && (!wish || wish->number == (uint64_t)i))
			found = i;
	if (found >= 0)
		;
	else if (!wish)
		mc_error(mc, "no MetaServer is attached");
	else if (wish->number >= (uint64_t)nr)
		mc_error(mc, "there is no server %" PRIu64 "; there are %d", wish->number, nr);
	else
		mc_error(mc, "server %" PRIu64 " (%s) is not attached: %s", wish->number,
			 servers[wish->number].address, servers[wish->number].error_text);
	free(servers);
	return found;
}

void mc_address_of(struct mc *mc, unsigned int server, char *buf, size_t bytes)
{
	int nr = krcore_servers(mc->krcore, NULL, 0);
	struct krcore_server_info *servers = mc_servers_alloc(nr);

	snprintf(buf, bytes, "server %u", server);
	if (servers && krcore_servers(mc->krcore, servers, (unsigned int)nr) > (int)server)
		snprintf(buf, bytes, "%s", servers[server].address);
	free(servers);
}
