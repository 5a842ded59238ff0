// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * State of the server as flat JSON objects: see json.h. Without memory for a member the
 * object lacks it; only if the object itself cannot be made is the line refused.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/gid.h"
#include "common/text.h"
#include "metaserver/json.h"

char *ms_hex(const uint8_t *p, size_t n, char *buf)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		buf[2 * i] = digits[p[i] >> 4];
		buf[2 * i + 1] = digits[p[i] & 15];
	}
	buf[2 * n] = '\0';
	return buf;
}

json_t *ms_json_u64(uint64_t n)
{
	return json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t)n);
}

json_t *ms_json_text(const char *text)
{
	json_t *string = json_string(text);
	char *safe;

	if (string)
		return string;
	safe = kru_text_safe(text, strlen(text));
	string = safe ? json_string(safe) : NULL;
	free(safe);
	return string;
}

static void ms_json_put_u64(json_t *object, const char *name, uint64_t n)
{
	json_object_set_new(object, name, ms_json_u64(n));
}

static void ms_json_put_hex(json_t *object, const char *name, uint64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, n);
	json_object_set_new(object, name, json_string(text));
}

/* The name that a client gives itself is not trusted: printable ASCII only. */
static json_t *ms_json_untrusted(const char *text, size_t bytes)
{
	char buf[KRP_NAME_BYTES];
	size_t i;

	for (i = 0; i < bytes && i + 1 < sizeof(buf) && text[i]; i++)
		buf[i] = isascii(text[i]) && isprint(text[i]) ? text[i] : '?';
	buf[i] = '\0';
	return json_string(buf);
}

static json_t *ms_json_gid(const uint8_t *gid)
{
	char text[KRU_GID_TEXT];

	return json_string(kru_gid_format(gid, text));
}

void ms_json_key(json_t *object, const struct krp_key *key)
{
	json_object_set_new(object, "gid", ms_json_gid(key->gid));
	ms_json_put_u64(object, "service", krp_le16_to_cpu(key->service));
}

json_t *ms_json_session(const struct ms_session_info *info)
{
	char hex[MS_HEX_BYTES];
	json_t *o = json_object();

	if (!o)
		return NULL;
	ms_json_put_u64(o, "id", info->id);
	json_object_set_new(o, "name", ms_json_untrusted(info->name, sizeof(info->name)));
	json_object_set_new(o, "state", json_string(info->state));
	json_object_set_new(o, "device", json_string(info->device));
	json_object_set_new(o, "address", json_string(info->address));
	json_object_set_new(o, "gid", ms_json_gid(info->gid));
	json_object_set_new(o, "owner", json_string(ms_hex(info->owner, sizeof(info->owner), hex)));
	if (!krp_is_zero(info->key_id, sizeof(info->key_id)))
		json_object_set_new(o, "key",
				    json_string(ms_hex(info->key_id, sizeof(info->key_id), hex)));
	ms_json_put_u64(o, "generation", info->generation);
	ms_json_put_u64(o, "age_ms", info->age_ms);
	ms_json_put_u64(o, "idle_ms", info->idle_ms);
	ms_json_put_u64(o, "records", info->records);
	ms_json_put_u64(o, "messages", info->messages);
	json_object_set_new(o, "subscribed", json_boolean(info->subscribed));
	return o;
}

json_t *ms_json_device(const struct ms_device_info *info)
{
	json_t *o = json_object(), *gids = json_array();

	if (!o || !gids) {
		json_decref(o);
		json_decref(gids);
		return NULL;
	}
	json_object_set_new(o, "device", json_string(info->name));
	ms_json_put_u64(o, "port", info->port);
	json_object_set_new(o, "state", json_string(info->state));
	json_object_set_new(o, "link", json_string(info->link));
	json_object_set_new(o, "in_use", json_boolean(info->in_use));
	ms_json_put_u64(o, "sessions", info->sessions);
	ms_json_put_u64(o, "registered_bytes", info->registered_bytes);
	for (unsigned int i = 0; i < info->gids_nr && i < MS_DEVICE_GIDS_MAX; i++)
		json_array_append_new(gids, ms_json_gid(info->gids[i]));
	json_object_set_new(o, "gids", gids);
	return o;
}

json_t *ms_json_listener(const struct ms_listener_info *info)
{
	json_t *o = json_object();

	if (!o)
		return NULL;
	json_object_set_new(o, "address", json_string(info->address));
	json_object_set_new(o, "device", json_string(info->device));
	json_object_set_new(o, "state", json_string(info->state));
	if (info->error) {
		json_object_set_new(o, "error", json_string(strerror(-info->error)));
		json_object_set_new(o, "code", json_integer(info->error));
		ms_json_put_u64(o, "retry_ms", info->retry_ms);
	}
	return o;
}

static void ms_json_put_dct(json_t *o, const struct krp_value *v, bool keys)
{
	char mac[18];

	ms_json_put_u64(o, "dctn", krp_le32_to_cpu(v->dct.dctn));
	if (keys)
		ms_json_put_hex(o, "dc_key", krp_le64_to_cpu(v->dct.dc_key));
	else
		json_object_set_new(o, "dc_key", json_string("(hidden)"));
	ms_json_put_u64(o, "lid", krp_le16_to_cpu(v->dct.lid));
	snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", v->dct.mac[0], v->dct.mac[1],
		 v->dct.mac[2], v->dct.mac[3], v->dct.mac[4], v->dct.mac[5]);
	json_object_set_new(o, "mac", json_string(mac));
	ms_json_put_u64(o, "mtu_bytes", 128u << v->dct.mtu);
	ms_json_put_u64(o, "sl", v->dct.sl);
	ms_json_put_u64(o, "port", v->dct.port);
	ms_json_put_u64(o, "flags", v->dct.flags);
	ms_json_put_u64(o, "max_rd_atomic", v->dct.max_rd_atomic);
	ms_json_put_u64(o, "ud_qpn", krp_le32_to_cpu(v->dct.ud_qpn));
	if (keys)
		ms_json_put_hex(o, "ud_qkey", krp_le32_to_cpu(v->dct.ud_qkey));
	else
		json_object_set_new(o, "ud_qkey", json_string("(hidden)"));
	ms_json_put_hex(o, "mrdir_addr", krp_le64_to_cpu(v->dct.mrdir_addr));
	if (keys)
		ms_json_put_hex(o, "mrdir_rkey", krp_le32_to_cpu(v->dct.mrdir_rkey));
	else
		json_object_set_new(o, "mrdir_rkey", json_string("(hidden)"));
}

json_t *ms_json_record(const struct ms_record_info *info, bool keys)
{
	static const char *const kinds[] = { "unknown", "dct", "raw", "lane" };
	const struct krp_value *v = &info->value;
	char hex[2 * KRP_RAW_BYTES + 1];
	json_t *o = json_object();

	if (!o)
		return NULL;
	ms_json_key(o, &info->key);
	json_object_set_new(o, "kind", json_string(kinds[v->kind <= KRP_KIND_LANE ? v->kind : 0]));
	json_object_set_new(o, "owner", json_string(ms_hex(info->owner, sizeof(info->owner), hex)));
	ms_json_put_u64(o, "generation", info->generation);
	ms_json_put_u64(o, "lease_left_ms", info->lease_left_ms);
	json_object_set_new(o, "imported", json_boolean(info->imported));
	if (krp_kind_port(v->kind)) {
		ms_json_put_dct(o, v, keys);
	} else {
		size_t len = v->len < KRP_RAW_BYTES ? v->len : KRP_RAW_BYTES;

		json_object_set_new(o, "raw", json_string(ms_hex(v->raw, len, hex)));
	}
	return o;
}
