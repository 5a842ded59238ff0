// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Names and lists of MetaServers as text: see addr.h.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/addr.h"
#include "common/gid.h"
#include "proto/krp_msg.h"

#define KRU_SRV_PREFIX "srv:"

int kru_list_next(const char **cursor, char *item, size_t item_bytes)
{
	const char *begin = *cursor, *end;

	if (!begin)
		return 0;
	end = begin + strcspn(begin, ",");
	*cursor = *end ? end + 1 : NULL;
	while (begin < end && isspace((unsigned char)*begin))
		begin++;
	while (end > begin && isspace((unsigned char)end[-1]))
		end--;
	if ((size_t)(end - begin) >= item_bytes)
		return -E2BIG;
	memcpy(item, begin, (size_t)(end - begin));
	item[end - begin] = '\0';
	return 1;
}

/* Digits only, so that "+1", "0x1" and " 1" are refused. */
static int kru_number_parse(const char *text, unsigned long max, unsigned long *ret_number)
{
	unsigned long number;
	char *end;

	if (!isdigit((unsigned char)*text) || strlen(text) > 5)
		return -EINVAL;
	number = strtoul(text, &end, 10);
	if (*end || number > max)
		return -EINVAL;
	*ret_number = number;
	return 0;
}

static bool kru_host_name_valid(const char *host)
{
	size_t len = strlen(host), label = 0;

	if (!len || len > 253)
		return false;
	for (const char *p = host; *p; p++) {
		if (*p == '.') {
			if (!label)
				return false;
			label = 0;
		} else if (!isalnum((unsigned char)*p) && *p != '-' && *p != '_') {
			return false;
		} else if (++label > 63) {
			return false;
		}
	}
	return true;
}

static int kru_v6_check(const char *host)
{
	char text[KRU_HOST_BYTES];
	struct in6_addr v6;

	if ((size_t)snprintf(text, sizeof(text), "%s", host) >= sizeof(text))
		return -EINVAL;
	text[strcspn(text, "%")] = '\0';
	return inet_pton(AF_INET6, text, &v6) == 1 ? 0 : -EINVAL;
}

/* Cut @text, "[v6]", "[v6]:port", "host" or "host:port", at its colon. */
static int kru_host_port_split(char *text, char **ret_host, char **ret_port)
{
	char *port;

	if (*text == '[') {
		char *close = strchr(text, ']');

		if (!close || (close[1] && close[1] != ':'))
			return -EINVAL;
		port = close[1] ? close + 2 : NULL;
		*close = '\0';
		text++;
		if (kru_v6_check(text))
			return -EINVAL;
	} else {
		port = strchr(text, ':');
		if (port)
			*port++ = '\0';
		if (!kru_host_name_valid(text) || kru_v4_is_broken(text))
			return -EINVAL;
	}
	*ret_host = text;
	*ret_port = port;
	return 0;
}

int kru_host_port_parse(const char *text, __u16 port, struct kru_server *ret_server, char *why,
			size_t why_bytes)
{
	struct kru_server server = { .priority = KRU_PRIORITY_DEFAULT };
	char buf[KRU_HOST_BYTES + 16], *host, *port_text;
	const char *cursor = text;
	unsigned long number = port;

	if (strchr(text, ',') || kru_list_next(&cursor, buf, sizeof(buf)) != 1) {
		snprintf(why, why_bytes, "'%.60s' is not one host", text);
		return -EINVAL;
	}
	if (kru_host_port_split(buf, &host, &port_text)) {
		snprintf(why, why_bytes,
			 "'%.60s' is neither a host name, an IPv4 address nor an [IPv6] address",
			 text);
		return -EINVAL;
	}
	if (!port_text && !port) {
		snprintf(why, why_bytes, "'%.60s' has no port", text);
		return -EINVAL;
	}
	if (port_text && (kru_number_parse(port_text, 65535, &number) || !number)) {
		snprintf(why, why_bytes, "'%.60s' has a port that is not 1 to 65535", text);
		return -EINVAL;
	}
	memcpy(server.host, host, strlen(host)); /* either check bounds it */
	server.port = (__u16)number;
	*ret_server = server;
	return 0;
}

static int kru_server_parse(char *item, struct kru_server *ret_server, char *why, size_t why_bytes)
{
	unsigned long priority = KRU_PRIORITY_DEFAULT;
	char *slash = strchr(item, '/');

	if (!*item) {
		snprintf(why, why_bytes, "an entry is empty");
		return -EINVAL;
	}
	if (!strncmp(item, KRU_SRV_PREFIX, strlen(KRU_SRV_PREFIX))) {
		snprintf(why, why_bytes, "'%.60s' must stand alone", item);
		return -EINVAL;
	}
	if (slash && kru_number_parse(slash + 1, 65535, &priority)) {
		snprintf(why, why_bytes, "'%.60s' has a priority that is not 0 to 65535", item);
		return -EINVAL;
	}
	if (slash)
		*slash = '\0';
	if (kru_host_port_parse(item, KRP_PORT_DEFAULT, ret_server, why, why_bytes))
		return -EINVAL;
	ret_server->priority = (__u16)priority;
	return 0;
}

static bool kru_servers_have(const struct kru_servers *servers, const struct kru_server *server)
{
	for (unsigned int i = 0; i < servers->nr; i++)
		if (servers->server[i].port == server->port &&
		    !strcasecmp(servers->server[i].host, server->host))
			return true;
	return false;
}

static int kru_srv_name_parse(const char *text, struct kru_servers *ret_servers, char *why,
			      size_t why_bytes)
{
	struct kru_server *server = ret_servers->server;

	if (!kru_host_name_valid(text)) {
		snprintf(why, why_bytes, "'" KRU_SRV_PREFIX "%.60s' is not one DNS name", text);
		return -EINVAL;
	}
	memset(ret_servers, 0, sizeof(*ret_servers));
	ret_servers->srv = true;
	ret_servers->nr = 1;
	snprintf(server->host, sizeof(server->host), "%s", text);
	return 0;
}

int kru_servers_parse(const char *text, struct kru_servers *ret_servers, char *why,
		      size_t why_bytes)
{
	char item[KRU_HOST_BYTES + 32];
	struct kru_servers servers = { 0 };
	struct kru_server server;
	const char *cursor;
	int got;

	while (isspace((unsigned char)*text))
		text++;
	if (!strncmp(text, KRU_SRV_PREFIX, strlen(KRU_SRV_PREFIX)) && !strchr(text, ','))
		return kru_srv_name_parse(text + strlen(KRU_SRV_PREFIX), ret_servers, why,
					  why_bytes);
	cursor = *text ? text : NULL;
	while ((got = kru_list_next(&cursor, item, sizeof(item))) > 0) {
		if (kru_server_parse(item, &server, why, why_bytes))
			return -EINVAL;
		if (kru_servers_have(&servers, &server)) {
			snprintf(why, why_bytes, "'%.60s' is there twice", item);
			return -EINVAL;
		}
		if (servers.nr == KRU_SERVERS_MAX) {
			snprintf(why, why_bytes, "more than %d servers", KRU_SERVERS_MAX);
			return -EINVAL;
		}
		servers.server[servers.nr++] = server;
	}
	if (got < 0) {
		snprintf(why, why_bytes, "an entry is too long");
		return -EINVAL;
	}
	*ret_servers = servers;
	return 0;
}

char *kru_sockaddr_format(const struct sockaddr *addr, char *buf)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)addr;
	char host[INET6_ADDRSTRLEN];

	if (addr->sa_family == AF_INET && inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host)))
		snprintf(buf, KRU_ADDR_TEXT, "%s:%u", host, ntohs(v4->sin_port));
	else if (addr->sa_family == AF_INET6 &&
		 inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host)))
		snprintf(buf, KRU_ADDR_TEXT, "[%s]:%u", host, ntohs(v6->sin6_port));
	else
		snprintf(buf, KRU_ADDR_TEXT, "?");
	return buf;
}
