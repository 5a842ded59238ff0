// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Settings of a context: see config.h.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/lib/lib.h"
#include "common/addr.h"
#include "common/conf.h"
#include "common/gid.h"
#include "common/identity.h"

/* All errors of a file as one text, as far as it goes. */
struct krl_config_report {
	char text[400];
	size_t len;
};

static void krl_config_report(void *arg, const char *file, unsigned int line, const char *text)
{
	struct krl_config_report *report = arg;
	size_t room = sizeof(report->text) - report->len;
	int len;

	if (line)
		len = snprintf(report->text + report->len, room, "%s%s:%u: %s",
			       report->len ? "; " : "", file, line, text);
	else
		len = snprintf(report->text + report->len, room, "%s%s: %s",
			       report->len ? "; " : "", file, text);
	if (len > 0)
		report->len += (size_t)len < room ? (size_t)len : room - 1;
}

static int krl_config_file(const struct krcore_options *opts, struct kru_conf_node *ret_node)
{
	const char *path = opts->config_file ? opts->config_file : KRU_CONF_FILE;
	struct krl_config_report report = { .len = 0 };
	struct kru_conf *conf;
	int err = 0;

	conf = malloc(sizeof(*conf));
	if (!conf)
		return krl_error(-ENOMEM, "no memory");
	kru_conf_defaults(conf);
	if (!opts->servers || !access(path, F_OK)) {
		err = kru_conf_load(path, conf, krl_config_report, &report);
		if (err)
			krl_error(err, "%s", report.text);
	}
	*ret_node = conf->node;
	free(conf);
	return err;
}

static int krl_config_key(const struct krcore_options *opts, const struct kru_conf_node *node,
			  struct krl_config *config)
{
	const char *path = opts->key_file ? opts->key_file : node->key_file;
	bool named = opts->key_file && *opts->key_file;
	bool must = named || node->require_auth == KRU_AUTH_YES;
	int err;

	if (!opts->key_file && node->require_auth == KRU_AUTH_NO)
		return 0;
	if (strlen(path) >= sizeof(config->key_path))
		return krl_error(-ENAMETOOLONG, "%s: the name is too long", path);
	err = *path ? kru_keys_load(path, &config->keys) : -ENOENT;
	if (err && (err != -ENOENT || must))
		return krl_error(err, "key file '%s': %s%s", path, kru_keys_error(err),
				 err == -ENOENT && !named ? ", and require_auth is yes" : "");
	memcpy(config->key_path, path, strlen(path) + 1);
	return 0; /* by default, authentication begins with the key file */
}

void krl_endpoint_fill(const struct kru_server *server, struct krl_endpoint *ret_ep)
{
	memset(ret_ep, 0, sizeof(*ret_ep));
	snprintf(ret_ep->host, sizeof(ret_ep->host), "%s", server->host);
	ret_ep->port = server->port;
	ret_ep->priority = server->priority;
	snprintf(ret_ep->text, sizeof(ret_ep->text),
		 strchr(ret_ep->host, ':') ? "[%.110s]:%u" : "%.110s:%u", ret_ep->host,
		 ret_ep->port);
}

static int krl_config_add(struct krl_config *config, const struct kru_server *server)
{
	struct krl_endpoint *ep;
	unsigned int i;

	for (i = 0; i < config->endpoints_nr; i++)
		if (config->endpoints[i].port == server->port &&
		    !strcmp(config->endpoints[i].host, server->host))
			return 0;
	ep = reallocarray(config->endpoints, config->endpoints_nr + 1, sizeof(*ep));
	if (!ep)
		return krl_error(-ENOMEM, "no memory");
	config->endpoints = ep;
	ep += config->endpoints_nr++;
	krl_endpoint_fill(server, ep);
	return 0;
}

/* One SRV name stands for the list: ask for it now, for the names behind it later. */
static int krl_config_srv(const struct kru_servers *list, struct krl_config *config)
{
	struct kru_servers *found = calloc(1, sizeof(*found));
	unsigned int i;
	int err;

	if (!found)
		return krl_error(-ENOMEM, "no memory");
	err = kru_servers_srv(list, config->timeout_ms, found);
	if (err)
		err = krl_error(err == -ENOENT ? -EINVAL : -EHOSTUNREACH,
				"srv:%s cannot be resolved (%s)", list->server[0].host,
				strerror(-err));
	for (i = 0; i < found->nr && !err; i++)
		err = krl_config_add(config, &found->server[i]);
	if (!err) {
		memcpy(config->srv, list->server[0].host, sizeof(config->srv));
		config->srv_ttl_s = found->ttl_s;
	}
	free(found);
	return err;
}

static int krl_config_servers(const struct krcore_options *opts, const struct kru_conf_node *node,
			      struct krl_config *config)
{
	const char *text = opts->servers ? opts->servers : node->metaservers;
	const char *where = opts->servers ? "servers" : "metaservers";
	struct kru_servers *list;
	char why[200];
	unsigned int i;
	int err;

	list = malloc(sizeof(*list));
	if (!list)
		return krl_error(-ENOMEM, "no memory");
	err = kru_servers_parse(text, list, why, sizeof(why));
	if (err) {
		krl_error(err, "%s '%.200s': %s", where, text, why);
	} else if (!list->nr) {
		err = krl_error(-EINVAL, "%s: no MetaServer is named", where);
	} else if (list->srv) {
		err = krl_config_srv(list, config);
	} else {
		for (i = 0; i < list->nr && !err; i++)
			err = krl_config_add(config, &list->server[i]);
	}
	free(list);
	return err;
}

/*
 * The user's identity on this machine, over boots. A machine without an id gives a random
 * one: it can do everything but take its records over before their lease is out.
 */
static int krl_config_owner(uint8_t *ret_owner)
{
	char label[sizeof(KRU_OWNER_PROGRAM) + 16];

	snprintf(label, sizeof(label), KRU_OWNER_PROGRAM, (unsigned int)geteuid());
	if (!kru_identity(KRU_MACHINE_ID, label, ret_owner))
		return 0;
	return kru_random(ret_owner, KRP_OWNER_BYTES);
}

static int krl_config_identity(const struct krcore_options *opts, struct krl_config *config)
{
	struct timespec now;
	int err;

	if (opts->name)
		snprintf(config->name, sizeof(config->name), "%s", opts->name);
	else if (gethostname(config->name, sizeof(config->name) - 1) < 0)
		snprintf(config->name, sizeof(config->name), "unknown");
	config->name[sizeof(config->name) - 1] = '\0';

	memcpy(config->owner, opts->owner, sizeof(config->owner));
	if (krp_is_zero(config->owner, sizeof(config->owner))) {
		err = krl_config_owner(config->owner);
		if (err)
			return krl_error(err, "the kernel has no random numbers");
	}
	config->generation = opts->generation;
	if (!config->generation) {
		clock_gettime(CLOCK_REALTIME, &now);
		config->generation = (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
	}
	return 0;
}

static int krl_config_node(const struct krcore_options *opts, const struct kru_conf_node *node,
			   struct krl_config *config)
{
	config->lease_ms = opts->lease_ms ? opts->lease_ms : node->lease_ms;
	config->timeout_ms = opts->timeout_ms ? opts->timeout_ms : node->timeout_ms;
	config->reconnect_min_ms = node->reconnect_min_ms;
	config->reconnect_max_ms = node->reconnect_max_ms;
	config->nowait = opts->flags & KRCORE_OPEN_NOWAIT;
	snprintf(config->device, sizeof(config->device), "%s", node->device);
	if (!*node->gid)
		return 0;
	if (kru_gid_parse(node->gid, config->gid))
		return krl_error(-EINVAL, "gid '%s' is neither a GID nor an address", node->gid);
	config->has_gid = true;
	return 0;
}

int krl_config_load(const struct krcore_options *opts, struct krl_config *ret_config)
{
	struct krl_config config = { 0 };
	struct kru_conf_node *node;
	struct krcore_options o;
	int err;

	err = krl_options(opts, &o);
	if (err)
		return err;
	node = calloc(1, sizeof(*node));
	if (!node)
		return krl_error(-ENOMEM, "no memory");
	err = krl_config_file(&o, node);
	if (!err)
		err = krl_config_node(&o, node, &config);
	if (!err)
		err = krl_config_key(&o, node, &config);
	if (!err)
		err = krl_config_identity(&o, &config);
	if (!err)
		err = krl_config_servers(&o, node, &config);
	free(node);
	if (err)
		krl_config_free(&config);
	else
		*ret_config = config;
	return err;
}

void krl_config_free(struct krl_config *config)
{
	kru_keys_wipe(&config->keys);
	free(config->endpoints);
	config->endpoints = NULL;
	config->endpoints_nr = 0;
}
