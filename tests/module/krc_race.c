// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Users of a table of krcore-race, for tests in the cluster.
 *
 *   krc_race history SERVER SEED SECONDS [stale|mortal]
 *   krc_race kill SERVER SEED COUNT
 *   krc_race rewrite SERVER
 *   krc_race grow SERVER SEED COUNT
 *   krc_race search SERVER KEY COUNT
 *
 * What each does is in krc_race.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/module/krc_race.h"

struct krcore_race *rt_open(const char *server)
{
	struct krcore_race_options opts = { .size = sizeof(opts), .server = server };
	struct krcore_race *race;
	int err = krcore_race_open(&opts, &race);

	if (!err)
		return race;
	fprintf(stderr, "krc_race: %s: %s\n", server, krcore_race_strerror(err));
	exit(1);
}

uint64_t rt_draw(uint64_t *state, uint64_t most)
{
	*state ^= *state >> 12; /* xorshift64*, after Marsaglia and Vigna */
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (*state * 2685821657736338717ULL >> 32) % most;
}

static uint64_t rt_number(const char *text)
{
	char *end;
	uint64_t value = strtoull(text, &end, 0);

	if (end != text && !*end && value)
		return value;
	fprintf(stderr, "krc_race: '%s' is not a number from 1\n", text);
	exit(64);
}

static bool rt_how(const char *word, enum rt_how *ret)
{
	*ret = !word ? RT_PLAIN : strcmp(word, "stale") ? RT_MORTAL : RT_STALE;
	return !word || !strcmp(word, "stale") || !strcmp(word, "mortal");
}

int main(int argc, char **argv)
{
	enum rt_how how;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc >= 5 && argc <= 6 && !strcmp(argv[1], "history") && rt_how(argv[5], &how))
		return rt_history(argv[2], rt_number(argv[3]), (unsigned int)rt_number(argv[4]),
				  how);
	if (argc == 5 && !strcmp(argv[1], "kill"))
		return rt_kill(argv[2], rt_number(argv[3]), (unsigned int)rt_number(argv[4]));
	if (argc == 3 && !strcmp(argv[1], "rewrite"))
		return rt_rewrite(argv[2]);
	if (argc == 5 && !strcmp(argv[1], "search"))
		return rt_search(argv[2], argv[3], (unsigned int)rt_number(argv[4]));
	if (argc == 5 && !strcmp(argv[1], "grow"))
		return rt_grow(argv[2], rt_number(argv[3]), (unsigned int)rt_number(argv[4]));
	fprintf(stderr, "usage: krc_race history SERVER SEED SECONDS [stale|mortal]\n"
			"       krc_race kill|grow SERVER SEED COUNT\n"
			"       krc_race search SERVER KEY COUNT\n"
			"       krc_race rewrite SERVER\n");
	return 64;
}
