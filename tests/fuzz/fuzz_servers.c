// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Lists of MetaServers and DNS answers: kru_servers_parse(), kru_srv_decode().
 *
 * The first byte says which. Every server that comes out has a host name that
 * ends within its array; a refusal leaves the result as it was.
 */
#include <errno.h>

#include "common/addr.h"
#include "tests/fuzz/fuzz.h"

static void fz_check_servers(const struct kru_servers *servers)
{
	unsigned int i;

	FZ_ASSERT(servers->nr <= KRU_SERVERS_MAX);
	for (i = 0; i < servers->nr; i++) {
		FZ_ASSERT(*servers->server[i].host);
		FZ_ASSERT(memchr(servers->server[i].host, 0, KRU_HOST_BYTES));
	}
}

static void fz_list(const uint8_t *data, size_t size)
{
	static struct kru_servers servers, before;
	char why[160] = "", *text = malloc(size + 1);
	int err;

	FZ_ASSERT(text);
	memcpy(text, data, size);
	text[size] = '\0';
	memset(&servers, 0xa5, sizeof(servers));
	before = servers;
	err = kru_servers_parse(text, &servers, why, sizeof(why));
	FZ_ASSERT(!err || err == -EINVAL);
	FZ_ASSERT(!err == !*why);
	if (err) {
		FZ_ASSERT(!memcmp(&servers, &before, sizeof(servers)));
	} else {
		fz_check_servers(&servers);
		FZ_ASSERT(!servers.srv || servers.nr == 1);
	}
	free(text);
}

static void fz_answer(const uint8_t *data, size_t size)
{
	static struct kru_servers servers, before;
	uint8_t *answer = fz_copy(data, size);
	int err;

	memset(&servers, 0xa5, sizeof(servers));
	before = servers;
	err = kru_srv_decode(answer, size, &servers);
	FZ_ASSERT(!err || err == -ENOENT || err == -EAGAIN || err == -EBADMSG);
	if (err) {
		FZ_ASSERT(!memcmp(&servers, &before, sizeof(servers)));
	} else {
		FZ_ASSERT(servers.nr >= 1);
		fz_check_servers(&servers);
	}
	free(answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	if (*data & 1)
		fz_answer(data + 1, size - 1);
	else
		fz_list(data + 1, size - 1);
	return 0;
}
