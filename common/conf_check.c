// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Forms that values of the configuration must have, and how keys must fit each
 * other: see conf.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "common/addr.h"
#include "common/auth.h"
#include "common/conf_internal.h"
#include "common/gid.h"

#define KRU_CONF_SEGMENT_KIB (64U << 10) /* a larger piece is advised against */
#define KRU_DEVICE_BYTES 64 /* of an RDMA device's name in the kernel, with its NUL */
#define KRU_CONF_CLIENT_BYTES (48U << 10) /* of a client without the ring: daemon and kernel */

int kru_conf_check_pow2(__u64 value, char *why, size_t why_bytes)
{
	if (value && !(value & (value - 1)))
		return 0;
	snprintf(why, why_bytes, "%llu is not a power of two", (unsigned long long)value);
	return -EINVAL;
}

int kru_conf_check_path(const char *value, char *why, size_t why_bytes)
{
	if (*value == '/')
		return 0;
	snprintf(why, why_bytes, "'%.100s' is not an absolute path", value);
	return -EINVAL;
}

int kru_conf_check_key(const char *value, char *why, size_t why_bytes)
{
	const char *name = kru_key_credential(value);

	if (*value == '/')
		return 0;
	if (name && *name && *name != '.' && !strchr(name, '/'))
		return 0;
	snprintf(why, why_bytes,
		 "'%.100s' is neither an absolute path nor " KRU_KEY_CREDENTIAL "NAME", value);
	return -EINVAL;
}

/* Whether a text can be the name of an RDMA device, as the kernel lets it be. */
static bool kru_device_name_valid(const char *name)
{
	return *name && strlen(name) < KRU_DEVICE_BYTES && !strpbrk(name, "/:, \t") &&
	       strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

int kru_conf_check_device(const char *value, char *why, size_t why_bytes)
{
	if (kru_device_name_valid(value))
		return 0;
	snprintf(why, why_bytes, "'%.80s' is no name of an RDMA device", value);
	return -EINVAL;
}

static int kru_conf_check_listen_item(const char *item, bool alone, char *why, size_t why_bytes)
{
	char host[KRU_HOST_BYTES];
	struct in6_addr addr;
	size_t len = strlen(item);

	if (!strcmp(item, "*")) {
		if (alone)
			return 0;
		snprintf(why, why_bytes, "'*' must stand alone");
		return -EINVAL;
	}
	if (!strncmp(item, "dev:", 4) && kru_device_name_valid(item + 4))
		return 0;
	if (inet_pton(AF_INET, item, &addr) == 1)
		return 0;
	if (len < sizeof(host)) {
		/* [v6], v6, and either with %interface for a link-local one */
		bool bracket = *item == '[' && len > 2 && item[len - 1] == ']';

		memcpy(host, item, len + 1);
		if (bracket) {
			host[len - 1] = '\0';
			memmove(host, host + 1, len - 1);
		}
		host[strcspn(host, "%")] = '\0';
		if (inet_pton(AF_INET6, host, &addr) == 1)
			return 0;
	}
	snprintf(why, why_bytes, "'%.80s' is neither an address nor dev:NAME nor *", item);
	return -EINVAL;
}

int kru_conf_check_listen(const char *value, char *why, size_t why_bytes)
{
	bool alone = !strchr(value, ',');
	const char *cursor = value;
	char item[KRU_HOST_BYTES];
	int got;

	while ((got = kru_list_next(&cursor, item, sizeof(item))) > 0)
		if (kru_conf_check_listen_item(item, alone, why, why_bytes))
			return -EINVAL;
	if (got < 0)
		snprintf(why, why_bytes, "an entry is too long");
	return got < 0 ? -EINVAL : 0;
}

int kru_conf_check_hosts(const char *value, char *why, size_t why_bytes)
{
	struct kru_servers servers;

	if (kru_servers_parse(value, &servers, why, why_bytes))
		return -EINVAL;
	if (!servers.srv && !strchr(value, '/'))
		return 0;
	snprintf(why, why_bytes, "takes host[:port] only, neither srv: nor a priority");
	return -EINVAL;
}

int kru_conf_check_host_port(const char *value, char *why, size_t why_bytes)
{
	struct kru_server server;
	struct in6_addr addr;

	if (kru_host_port_parse(value, 0, &server, why, why_bytes))
		return -EINVAL;
	if (inet_pton(AF_INET, server.host, &addr) == 1 ||
	    inet_pton(AF_INET6, server.host, &addr) == 1)
		return 0;
	snprintf(why, why_bytes, "'%.80s' is not a numeric address", server.host);
	return -EINVAL;
}

int kru_conf_check_servers(const char *value, char *why, size_t why_bytes)
{
	struct kru_servers servers;

	return kru_servers_parse(value, &servers, why, why_bytes);
}

int kru_conf_check_gid(const char *value, char *why, size_t why_bytes)
{
	__u8 gid[KRP_GID_BYTES];

	if (!kru_gid_parse(value, gid))
		return 0;
	snprintf(why, why_bytes, "'%.60s' is neither a GID nor an IP address", value);
	return -EINVAL;
}

const char *kru_conf_form(kru_conf_check_text_fn *check)
{
	static const struct {
		kru_conf_check_text_fn *check;
		const char *form;
	} forms[] = {
		{ kru_conf_check_path, "absolute path" },
		{ kru_conf_check_key, "absolute path or " KRU_KEY_CREDENTIAL "NAME" },
		{ kru_conf_check_listen, "*, or addresses and dev:NAME" },
		{ kru_conf_check_hosts, "host[:port], ..." },
		{ kru_conf_check_host_port, "address:port" },
		{ kru_conf_check_servers, "host[:port][/priority], ... or srv:NAME" },
		{ kru_conf_check_gid, "GID or address" },
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		if (forms[i].check == check)
			return forms[i].form;
	return "name";
}

/*
 * Nodes renew after a third of their lease, but at least every 15 s. Would the server time out
 * a node with the longest lease whose renewal is late by one such interval?
 */
static bool kru_conf_flaps(const struct kru_conf_ms *ms)
{
	return ms->idle_timeout_ms <= 2 * kru_renew_ms(ms->lease_max_ms);
}

/**
 * struct kru_conf_judge - Where to report how keys fit each other.
 * @conf: configuration.
 * @file: name of its file.
 * @report: called.
 * @arg: its first argument.
 */
struct kru_conf_judge {
	const struct kru_conf *conf;
	const char *file;
	kru_conf_report_fn *report;
	void *arg;
};

/* Report at the first of two keys that is set at all. Return: -EINVAL. */
__attribute__((format(printf, 4, 5))) static int kru_conf_blame(const struct kru_conf_judge *j,
								unsigned int key,
								unsigned int other, const char *fmt,
								...)
{
	unsigned int nr = j->conf->origin[key] == KRU_CONF_DEFAULT ? other : key;
	bool given = j->conf->origin[nr] == KRU_CONF_COMMAND_LINE;
	bool filed = j->conf->origin[nr] == KRU_CONF_FROM_FILE;
	char line[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	j->report(j->arg, given ? "command line" : j->file, filed ? j->conf->line[nr] : 0, line);
	return -EINVAL;
}

int kru_conf_check(const struct kru_conf *conf, const char *file, kru_conf_report_fn *report,
		   void *arg)
{
	const struct kru_conf_judge j = { conf, file, report, arg };
	const struct kru_conf_ms *ms = &conf->ms;
	const struct kru_conf_node *node = &conf->node;
	int err = 0;

	if (ms->lease_min_ms > ms->lease_ms || ms->lease_ms > ms->lease_max_ms)
		err = kru_conf_blame(
			&j, KRU_CONF_KEY_ms_lease_ms,
			ms->lease_min_ms > ms->lease_ms ? KRU_CONF_KEY_ms_lease_min_ms
							: KRU_CONF_KEY_ms_lease_max_ms,
			"metaserver.lease_ms: %u is not between lease_min_ms %u and lease_max_ms %u",
			ms->lease_ms, ms->lease_min_ms, ms->lease_max_ms);
	if (ms->segment_kib > (__u64)ms->memory_max_mib * 1024 / 2)
		err = kru_conf_blame(&j, KRU_CONF_KEY_ms_segment_kib,
				     KRU_CONF_KEY_ms_memory_max_mib,
				     "metaserver.segment_kib: %u is more than half of "
				     "memory_max_mib %u",
				     ms->segment_kib, ms->memory_max_mib);
	if (kru_conf_flaps(ms))
		err = kru_conf_blame(
			&j, KRU_CONF_KEY_ms_idle_timeout_ms, KRU_CONF_KEY_ms_lease_max_ms,
			"metaserver.idle_timeout_ms: %u is not more than twice what nodes are silent "
			"between two renewals: a third of lease_max_ms %u, at most %u; they would be "
			"cut off and come back for ever",
			ms->idle_timeout_ms, ms->lease_max_ms, KRU_RENEW_MAX_MS);
	if (node->reconnect_min_ms > node->reconnect_max_ms)
		err = kru_conf_blame(&j, KRU_CONF_KEY_node_reconnect_min_ms,
				     KRU_CONF_KEY_node_reconnect_max_ms,
				     "node.reconnect_min_ms: %u is more than reconnect_max_ms %u",
				     node->reconnect_min_ms, node->reconnect_max_ms);
	return err;
}

/* Ring of a client's queue pair: entries are 64 bytes, their number is a power of two. */
static __u64 kru_conf_ring_bytes(const struct kru_conf_ms *ms)
{
	__u64 want = 2ULL * ms->credits + KRU_CONF_CLIENT_SENDS, entries = 1;

	while (entries < want)
		entries *= 2;
	return 64 * entries;
}

__u64 kru_conf_bytes(const struct kru_conf_ms *ms)
{
	return ((__u64)ms->memory_max_mib << 20) +
	       ms->clients_max * (KRU_CONF_CLIENT_BYTES + kru_conf_ring_bytes(ms));
}

static bool kru_conf_is_set(const struct kru_conf *conf, unsigned int key)
{
	return conf->origin[key] != KRU_CONF_DEFAULT;
}

static void kru_conf_advise_memory(const struct kru_conf_judge *j, __u64 ram_bytes)
{
	const struct kru_conf_ms *ms = &j->conf->ms;
	__u64 bytes = kru_conf_bytes(ms);
	unsigned int key = kru_conf_is_set(j->conf, KRU_CONF_KEY_ms_memory_max_mib)
				   ? KRU_CONF_KEY_ms_memory_max_mib
				   : KRU_CONF_KEY_ms_credits;

	if (!ram_bytes || bytes <= ram_bytes ||
	    (!kru_conf_is_set(j->conf, key) &&
	     !kru_conf_is_set(j->conf, KRU_CONF_KEY_ms_clients_max)))
		return;
	kru_conf_blame(j, KRU_CONF_KEY_ms_clients_max, key,
		       "metaserver.clients_max: %u clients with credits = %u, and a table of "
		       "memory_max_mib = %u, may need %llu MiB; this machine has %llu",
		       ms->clients_max, ms->credits, ms->memory_max_mib,
		       (unsigned long long)(bytes >> 20), (unsigned long long)(ram_bytes >> 20));
}

void kru_conf_advise(const struct kru_conf *conf, const char *file, __u64 ram_bytes,
		     kru_conf_report_fn *report, void *arg)
{
	const struct kru_conf_judge j = { conf, file, report, arg };
	const struct kru_conf_ms *ms = &conf->ms;

	kru_conf_advise_memory(&j, ram_bytes);
	if (2 * ms->credits > ms->srq_depth)
		kru_conf_blame(&j, KRU_CONF_KEY_ms_credits, KRU_CONF_KEY_ms_srq_depth,
			       "metaserver.credits: one client with %u requests under way takes "
			       "more than half of srq_depth = %u, which is for all clients",
			       ms->credits, ms->srq_depth);
	if (ms->segment_kib > KRU_CONF_SEGMENT_KIB)
		kru_conf_blame(&j, KRU_CONF_KEY_ms_segment_kib, KRU_CONF_KEY_ms_memory_max_mib,
			       "metaserver.segment_kib: %u KiB are registered at once when the "
			       "table grows, and all clients wait for it; more than %u take long",
			       ms->segment_kib, KRU_CONF_SEGMENT_KIB);
	if (ms->lease_ms < conf->node.reconnect_max_ms)
		kru_conf_blame(
			&j, KRU_CONF_KEY_ms_lease_ms, KRU_CONF_KEY_node_reconnect_max_ms,
			"metaserver.lease_ms: %u is less than reconnect_max_ms %u of [node]: "
			"records go before a node that lost its connection tries again",
			ms->lease_ms, conf->node.reconnect_max_ms);
}
