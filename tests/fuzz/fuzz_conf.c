// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * krcore.conf: kru_conf_parse() on any bytes.
 *
 * A file that is refused was complained of and leaves the configuration as it
 * was. One that is accepted says the same after it was written by
 * kru_conf_print() and read again. The first line is also tried as an
 * assignment of the command line.
 */
#include "common/conf.h"
#include "tests/fuzz/fuzz.h"

#define FZ_FILE "fuzz.conf"

static void fz_count(void *arg, const char *file, unsigned int line, const char *text)
{
	unsigned int *nr = arg;

	FZ_ASSERT(file && *file && text && *text && !strchr(text, '\n'));
	FZ_ASSERT(line <= KRU_CONF_BYTES_MAX);
	(*nr)++;
}

static void fz_visit(void *arg, const struct kru_conf_item *item)
{
	unsigned int *nr = arg;

	FZ_ASSERT(*item->section && *item->key && item->value && item->dflt && item->range);
	FZ_ASSERT(strlen(item->value) < KRU_CONF_VALUE_BYTES);
	(*nr)++;
}

/* What was accepted must survive being written and read. */
static void fz_round_trip(const struct kru_conf *conf)
{
	struct kru_conf again;
	unsigned int errors = 0, keys = 0;
	size_t size = 0;
	char *text = NULL;
	FILE *to;

	kru_conf_each(conf, fz_visit, &keys);
	FZ_ASSERT(keys == KRU_CONF_KEYS);
	to = open_memstream(&text, &size);
	FZ_ASSERT(to);
	kru_conf_print(conf, to);
	fclose(to);
	kru_conf_defaults(&again);
	FZ_ASSERT(!kru_conf_parse(FZ_FILE, text, size, &again, fz_count, &errors) && !errors);
	FZ_ASSERT(!memcmp(&conf->ms, &again.ms, sizeof(again.ms)));
	FZ_ASSERT(!memcmp(&conf->node, &again.node, sizeof(again.node)));
	free(text);
}

/* All bytes of it, as they are compared. */
static void fz_defaults(struct kru_conf *conf)
{
	memset(conf, 0, sizeof(*conf));
	kru_conf_defaults(conf);
}

/* An error is counted and leaves the defaults as they were; else it can be written out. */
static void fz_outcome(int err, unsigned int errors, const struct kru_conf *conf)
{
	static struct kru_conf before;

	FZ_ASSERT(!err == !errors);
	if (err) {
		fz_defaults(&before);
		FZ_ASSERT(!memcmp(conf, &before, sizeof(*conf)));
	} else {
		fz_round_trip(conf);
	}
}

static void fz_file(const char *text, size_t size)
{
	static struct kru_conf conf;
	unsigned int errors = 0;
	int err;

	fz_defaults(&conf);
	err = kru_conf_parse(FZ_FILE, text, size, &conf, fz_count, &errors);
	fz_outcome(err, errors, &conf);
	errors = 0;
	err = kru_conf_check(&conf, FZ_FILE, fz_count, &errors);
	FZ_ASSERT(!err == !errors);
}

static void fz_assignment(const char *text)
{
	static struct kru_conf conf;
	unsigned int errors = 0;
	int err;

	fz_defaults(&conf);
	err = kru_conf_set(&conf, text, fz_count, &errors);
	fz_outcome(err, errors, &conf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fz_copy(data, size);
	char *line;

	fz_file(text, size);
	free(text);

	line = malloc(size + 1);
	FZ_ASSERT(line);
	if (size)
		memcpy(line, data, size);
	line[size] = '\0';
	line[strcspn(line, "\n")] = '\0';
	fz_assignment(line);
	free(line);
	return 0;
}
