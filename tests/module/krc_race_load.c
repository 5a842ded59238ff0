// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Clients that are killed, and a table that grows: see krc_race.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/module/krc_race.h"

#define RT_ENTRIES 40 /* that those who are killed change */
#define RT_AT_ONCE 3
#define RT_LIFE_US 150000 /* at most, from the first change on */
#define RT_VALUE_MAX 300
#define RT_READERS 2

static size_t rt_key(char *key, size_t room, const char *kind, unsigned int nr)
{
	return (size_t)snprintf(key, room, "%s-%u", kind, nr);
}

static int rt_change(struct krcore_race *race, uint64_t *random)
{
	static char value[RT_VALUE_MAX];
	size_t bytes = 1 + rt_draw(random, RT_VALUE_MAX), key_bytes;
	char key[32];

	key_bytes = rt_key(key, sizeof(key), "mortal", (unsigned int)rt_draw(random, RT_ENTRIES));
	switch (rt_draw(random, 4)) {
	case 0:
		return krcore_race_insert(race, key, key_bytes, value, bytes);
	case 1:
		return krcore_race_del(race, key, key_bytes);
	default:
		return krcore_race_put(race, key, key_bytes, value, bytes);
	}
}

/* What a client does until it is killed. */
static void rt_mortal(const char *server, uint64_t random, uint64_t *changes)
{
	struct krcore_race *race = rt_open(server);
	int err;

	for (;;) {
		err = rt_change(race, &random);
		if (err && err != -EEXIST && err != -ENOENT) {
			fprintf(stderr, "krc_race: a change: %s\n", krcore_race_strerror(err));
			_exit(1);
		}
		__atomic_add_fetch(changes, 1, __ATOMIC_RELAXED);
	}
}

/* Kill some at once, after each has changed something. Return: 0 if all were alive till then. */
static int rt_kill_some(const char *server, uint64_t *random, uint64_t *changes, unsigned int nr)
{
	unsigned int i, bad = 0;
	pid_t pids[RT_AT_ONCE];
	int status;

	memset(changes, 0, RT_AT_ONCE * sizeof(*changes));
	for (i = 0; i < nr; i++) {
		uint64_t seed = rt_draw(random, UINT32_MAX) + 1;

		pids[i] = fork();
		if (!pids[i])
			rt_mortal(server, seed, &changes[i]);
		if (pids[i] < 0)
			return 1;
	}
	for (i = 0; i < nr; i++) {
		while (!__atomic_load_n(&changes[i], __ATOMIC_RELAXED) &&
		       !waitpid(pids[i], NULL, WNOHANG))
			usleep(1000);
		usleep((useconds_t)rt_draw(random, RT_LIFE_US));
		kill(pids[i], SIGKILL);
	}
	for (i = 0; i < nr; i++) {
		if (waitpid(pids[i], &status, 0) != pids[i] || !WIFSIGNALED(status))
			bad++;
	}
	return bad != 0;
}

int rt_kill(const char *server, uint64_t seed, unsigned int count)
{
	uint64_t *changes =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned int killed, nr;

	if (changes == MAP_FAILED)
		return 1;
	for (killed = 0; killed < count; killed += nr) {
		nr = count - killed < RT_AT_ONCE ? count - killed : RT_AT_ONCE;
		if (rt_kill_some(server, &seed, changes, nr)) {
			fprintf(stderr, "krc_race: a client had ended by itself\n");
			return 1;
		}
	}
	printf("killed %u\n", killed);
	return 0;
}

int rt_rewrite(const char *server)
{
	struct krcore_race *race = rt_open(server);
	char key[32], value[64];
	size_t key_bytes, bytes;
	unsigned int i;
	int err = 0;

	for (i = 0; !err && i < RT_ENTRIES; i++) {
		key_bytes = rt_key(key, sizeof(key), "mortal", i);
		err = krcore_race_put(race, key, key_bytes, "one", 3);
		if (!err)
			err = krcore_race_update(race, key, key_bytes, "two", 3);
		if (!err)
			err = krcore_race_del(race, key, key_bytes);
		if (!err)
			err = krcore_race_insert(race, key, key_bytes, "three", 5);
		if (!err)
			err = krcore_race_get(race, key, key_bytes, value, sizeof(value), &bytes);
		if (!err && (bytes != 5 || memcmp(value, "three", 5) != 0))
			err = -EBADMSG;
	}
	if (err)
		fprintf(stderr, "krc_race: %s: %s\n", key, krcore_race_strerror(err));
	else
		printf("rewritten %u\n", i);
	krcore_race_close(race);
	return err != 0;
}

int rt_search(const char *server, const char *key, unsigned int count)
{
	static char value[KRCORE_RACE_VALUE_MAX];
	struct krcore_race *race = rt_open(server);
	unsigned int i;
	size_t bytes;
	int err = 0;

	for (i = 0; !err && i < count; i++)
		err = krcore_race_get(race, key, strlen(key), value, sizeof(value), &bytes);
	if (err)
		fprintf(stderr, "krc_race: %s: %s\n", key, krcore_race_strerror(err));
	krcore_race_close(race);
	return err != 0;
}

/**
 * struct rt_growth - What writer and readers share.
 * @server: node of the table.
 * @inserted: entries that are there.
 * @found: look-ups of them.
 * @bad: wrong answers.
 * @over: the writer has ended.
 */
struct rt_growth {
	const char *server;
	unsigned int inserted, found, bad;
	bool over;
};

static struct rt_growth rt_growth;

static void rt_look(struct krcore_race *race, unsigned int nr)
{
	char key[32], value[32];
	size_t bytes = 0;
	int err;

	err = krcore_race_get(race, key, rt_key(key, sizeof(key), "grow", nr), value, sizeof(value),
			      &bytes);
	__atomic_add_fetch(&rt_growth.found, 1, __ATOMIC_RELAXED);
	if (!err && bytes == sizeof(nr) && !memcmp(value, &nr, sizeof(nr)))
		return;
	__atomic_add_fetch(&rt_growth.bad, 1, __ATOMIC_RELAXED);
	printf("%s: %s, %zu bytes\n", key, krcore_race_strerror(err), bytes);
}

static void *rt_reader(void *arg)
{
	struct krcore_race *race = rt_open(rt_growth.server);
	uint64_t random = (uintptr_t)arg;
	unsigned int there;

	while (!__atomic_load_n(&rt_growth.over, __ATOMIC_ACQUIRE)) {
		there = __atomic_load_n(&rt_growth.inserted, __ATOMIC_ACQUIRE);
		if (there)
			rt_look(race, (unsigned int)rt_draw(&random, there));
		else
			usleep(1000);
	}
	krcore_race_close(race);
	return NULL;
}

int rt_grow(const char *server, uint64_t seed, unsigned int count)
{
	struct krcore_race_stats stats = { .size = sizeof(stats) };
	struct krcore_race *race = rt_open(server);
	pthread_t readers[RT_READERS];
	unsigned int i;
	char key[32];
	int err = 0;

	rt_growth.server = server;
	for (i = 0; i < RT_READERS; i++)
		if (pthread_create(&readers[i], NULL, rt_reader, (void *)(uintptr_t)(seed + i)))
			return 1;
	for (i = 0; !err && i < count; i++) {
		err = krcore_race_insert(race, key, rt_key(key, sizeof(key), "grow", i), &i,
					 sizeof(i));
		if (!err)
			__atomic_store_n(&rt_growth.inserted, i + 1, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&rt_growth.over, true, __ATOMIC_RELEASE);
	for (i = 0; i < RT_READERS; i++)
		pthread_join(readers[i], NULL);
	if (err)
		fprintf(stderr, "krc_race: %s: %s\n", key, krcore_race_strerror(err));
	for (i = 0; !err && i < count; i++)
		rt_look(race, i);
	krcore_race_stats(race, &stats);
	krcore_race_close(race);
	printf("splits=%" PRIu64 " found=%u bad=%u\n", stats.splits, rt_growth.found,
	       rt_growth.bad);
	return err || rt_growth.bad;
}
