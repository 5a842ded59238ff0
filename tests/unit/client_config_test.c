// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What krcore_open() is told: options over a configuration file, and that each
 * mistake is refused with a text that names it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/lib/by_module.h"
#include "client/lib/config.h"
#include "proto/krp_ioctl.h"
#include "tests/unit/wrap_uid.h"

#define NO_FILE "/nonexistent/krcore.conf"

static char *write_file(const char *text, mode_t mode)
{
	char *path = strdup("/tmp/krcore-client-XXXXXX");
	int fd;

	assert_non_null(path);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
	return path;
}

static void remove_file(char *path)
{
	unlink(path);
	free(path);
}

static struct krcore_options options(void)
{
	return (struct krcore_options){
		.size = sizeof(struct krcore_options),
		.config_file = NO_FILE,
		.key_file = "",
	};
}

static void check_refused(const struct krcore_options *opts, int err, const char *names)
{
	struct krl_config config = { .endpoints_nr = 77 };

	assert_int_equal(krl_config_load(opts, &config), err);
	assert_int_equal(config.endpoints_nr, 77);
	if (!strstr(krcore_error_text(), names))
		fail_msg("'%s' does not name '%s'", krcore_error_text(), names);
}

static void test_servers_alone_suffice(void **state)
{
	struct krcore_options opts = options();
	struct krl_config config;

	(void)state;
	opts.servers = "meta1:19000/5, [fd00::1], 10.0.0.3/0";
	assert_int_equal(krl_config_load(&opts, &config), 0);
	assert_int_equal(config.endpoints_nr, 3);
	assert_string_equal(config.endpoints[0].host, "meta1");
	assert_string_equal(config.endpoints[0].text, "meta1:19000");
	assert_int_equal(config.endpoints[0].port, 19000);
	assert_int_equal(config.endpoints[0].priority, 5);
	assert_string_equal(config.endpoints[1].text, "[fd00::1]:18600");
	assert_int_equal(config.endpoints[1].priority, 100);
	assert_int_equal(config.endpoints[2].priority, 0);
	assert_int_equal(config.timeout_ms, 5000);
	assert_int_equal(config.lease_ms, 0);
	assert_int_equal(config.keys.nr, 0);
	assert_false(config.nowait);
	assert_true(config.generation > 1000000000ULL * 1000000000ULL);
	assert_false(krp_is_zero(config.owner, sizeof(config.owner)));
	assert_true(config.name[0]);
	krl_config_free(&config);
}

static void test_file_and_what_wins_over_it(void **state)
{
	char *file =
		write_file("[node]\nmetaservers = a, b:1/2\ntimeout_ms = 700\nlease_ms = 9000\n"
			   "reconnect_min_ms = 20\nreconnect_max_ms = 50\nkey_file =\n"
			   "gid = 10.1.2.3\n",
			   0600);
	struct krcore_options opts = options();
	struct krl_config config;

	(void)state;
	opts.config_file = file;
	opts.key_file = NULL;
	assert_int_equal(krl_config_load(&opts, &config), 0);
	assert_int_equal(config.endpoints_nr, 2);
	assert_string_equal(config.endpoints[1].host, "b");
	assert_int_equal(config.timeout_ms, 700);
	assert_int_equal(config.lease_ms, 9000);
	assert_int_equal(config.reconnect_min_ms, 20);
	assert_int_equal(config.reconnect_max_ms, 50);
	assert_true(config.has_gid);
	assert_int_equal(config.gid[15], 3);
	krl_config_free(&config);

	opts.servers = "c";
	opts.timeout_ms = 800;
	opts.lease_ms = 4000;
	opts.generation = 42;
	opts.name = "a-name";
	opts.owner[3] = 9;
	opts.flags = KRCORE_OPEN_NOWAIT;
	assert_int_equal(krl_config_load(&opts, &config), 0);
	assert_int_equal(config.endpoints_nr, 1);
	assert_string_equal(config.endpoints[0].host, "c");
	assert_int_equal(config.timeout_ms, 800);
	assert_int_equal(config.lease_ms, 4000);
	assert_int_equal(config.generation, 42);
	assert_string_equal(config.name, "a-name");
	assert_int_equal(config.owner[3], 9);
	assert_true(config.nowait);
	krl_config_free(&config);
	remove_file(file);
}

static void test_bad_options(void **state)
{
	struct {
		struct krcore_options known;
		uint64_t later;
	} longer = { .known = options(), .later = 1 };
	struct krcore_options opts = options();

	(void)state;
	opts.servers = "a";
	opts.size = 8;
	check_refused(&opts, -EINVAL, "size 8");
	opts = options();
	opts.servers = "a";
	opts.flags = 0x80;
	check_refused(&opts, -EINVAL, "flags 0x80");

	/* a program built against a later header, using what we do not have */
	longer.known.servers = "a";
	longer.known.size = sizeof(longer);
	check_refused(&longer.known, -EINVAL, "does not know");
}

static void test_longer_options_without_new_fields_are_taken(void **state)
{
	struct {
		struct krcore_options known;
		uint64_t later;
	} longer = { .known = options(), .later = 0 };
	struct krl_config config;

	(void)state;
	longer.known.servers = "a";
	longer.known.size = sizeof(longer);
	assert_int_equal(krl_config_load(&longer.known, &config), 0);
	krl_config_free(&config);
}

static void test_bad_configurations(void **state)
{
	char *bad = write_file("[node]\nmetaservers = a\ntimeout_ms = 1\nnonsense = 2\n", 0600);
	char *none = write_file("[node]\n", 0600);
	struct krcore_options opts = options();

	(void)state;
	check_refused(&opts, -ENOENT, NO_FILE);
	opts.servers = "a:b";
	check_refused(&opts, -EINVAL, "a:b");
	opts.servers = "a, a";
	check_refused(&opts, -EINVAL, "servers");
	opts.servers = NULL;

	opts.config_file = bad;
	check_refused(&opts, -EINVAL, "timeout_ms");
	assert_non_null(strstr(krcore_error_text(), ":4: "));
	assert_non_null(strstr(krcore_error_text(), "nonsense"));
	opts.config_file = none;
	check_refused(&opts, -EINVAL, "no MetaServer");
	remove_file(bad);
	remove_file(none);
}

/* What a context makes of [node] require_auth and a key file. */
static void check_insists(const char *key_file, const char *word, int want)
{
	struct krcore_options opts = options();
	struct krl_config config;
	char text[300];
	char *file;
	int err;

	snprintf(text, sizeof(text), "[node]\nkey_file = %s\nrequire_auth = %s\n", key_file, word);
	file = write_file(text, 0600);
	opts.servers = "a";
	opts.config_file = file;
	opts.key_file = NULL;
	err = krl_config_load(&opts, &config);
	assert_int_equal(err, want);
	if (!err) {
		assert_int_equal(config.keys.nr, 0);
		krl_config_free(&config);
	} else if (err == -ENOENT) {
		assert_non_null(strstr(krcore_error_text(), "require_auth is yes"));
	}
	remove_file(file);
}

static void test_keys(void **state)
{
	char *good = write_file("000102030405060708090a0b0c0d0e0f\n", 0600);
	char *open_to_all = write_file("000102030405060708090a0b0c0d0e0f\n", 0644);
	char *rubbish = write_file("rubbish\n", 0600);
	struct krcore_options opts = options();
	struct krl_config config;

	(void)state;
	opts.servers = "a";
	opts.key_file = good;
	assert_int_equal(krl_config_load(&opts, &config), 0);
	assert_int_equal(config.keys.nr, 1);
	assert_int_equal(config.keys.key[0].len, 16);
	assert_string_equal(config.key_path, good);
	krl_config_free(&config);
	assert_true(krp_is_zero(&config.keys, sizeof(config.keys)));

	opts.key_file = "/nonexistent/key";
	check_refused(&opts, -ENOENT, "/nonexistent/key");
	opts.key_file = open_to_all;
	check_refused(&opts, -EPERM, open_to_all);
	opts.key_file = rubbish;
	check_refused(&opts, -EINVAL, rubbish);
	check_insists("/nonexistent/key", "auto", 0);
	check_insists("/nonexistent/key", "yes", -ENOENT);
	check_insists("", "yes", -ENOENT);
	check_insists(rubbish, "no", 0);
	check_insists(rubbish, "auto", -EINVAL);
	remove_file(good);
	remove_file(open_to_all);
	remove_file(rubbish);
}

static uid_t uid; /* of the program; 0: as it is */

uid_t __wrap_geteuid(void)
{
	return uid ? uid : __real_geteuid();
}

/* The same machine is the same owner, after a restart of the program too. */
static void test_owner_is_stable(void **state)
{
	struct krcore_options opts = options();
	struct krl_config one, two;

	(void)state;
	if (access("/etc/machine-id", R_OK))
		skip();
	opts.servers = "a";
	assert_int_equal(krl_config_load(&opts, &one), 0);
	assert_int_equal(krl_config_load(&opts, &two), 0);
	assert_memory_equal(one.owner, two.owner, sizeof(one.owner));
	assert_true(two.generation > one.generation);
	krl_config_free(&one);
	krl_config_free(&two);
}

/* Users of one machine cannot take each other's records, though all of them have the key. */
static void test_users_are_owners_of_their_own(void **state)
{
	struct krcore_options opts = options();
	struct krl_config one, two, again;

	(void)state;
	if (access("/etc/machine-id", R_OK))
		skip();
	opts.servers = "a";
	uid = 1000;
	assert_int_equal(krl_config_load(&opts, &one), 0);
	assert_int_equal(krl_config_load(&opts, &again), 0);
	uid = 1001;
	assert_int_equal(krl_config_load(&opts, &two), 0);
	uid = 0;
	assert_memory_equal(one.owner, again.owner, sizeof(one.owner));
	assert_memory_not_equal(one.owner, two.owner, sizeof(one.owner));
	krl_config_free(&one);
	krl_config_free(&two);
	krl_config_free(&again);
}

static void test_open_refuses_and_returns_nothing(void **state)
{
	struct krcore_options opts = options();
	struct krcore_ctx *ctx = (struct krcore_ctx *)&opts;

	(void)state;
	opts.servers = "";
	assert_int_equal(krcore_open(&opts, &ctx), -EINVAL);
	assert_ptr_equal(ctx, &opts);
	krcore_close(NULL);
}

/* What speaks of a session of one's own is not given to the module. */
static void test_the_module_is_for_who_asks_for_nothing_else(void **state)
{
	const struct krcore_options none = { .size = sizeof(none) };
	struct krcore_options opts[] = { none, none, none, none, none, none, none };
	size_t i;

	(void)state;
	opts[0].flags = KRCORE_OPEN_DIRECT;
	opts[1].config_file = "/etc/krcore.conf";
	opts[2].servers = "a";
	opts[3].key_file = "";
	opts[4].owner[15] = 1;
	opts[5].generation = 1;
	opts[6].lease_ms = 1;
	for (i = 0; i < sizeof(opts) / sizeof(opts[0]); i++)
		assert_false(krl_module_wanted(&opts[i]));
	assert_true(krl_module_wanted(&none));
	opts[0] = none;
	opts[0].flags = KRCORE_OPEN_NOWAIT;
	opts[0].timeout_ms = 1;
	opts[0].name = "name";
	assert_true(krl_module_wanted(&opts[0]));
}

/* A miss that proves nothing is not told as one that does, nor a hit that nobody confirms. */
static void test_the_doubt_of_the_module_is_told(void **state)
{
	struct krp_record_lookup arg = { .reads = 2 };
	struct krcore_lookup_info info = { .settling = 7, .unconfirmed = 7, .server = 7 };

	(void)state;
	krl_module_info(&arg, -ENOENT, &info);
	assert_int_equal(info.reads, 2);
	assert_int_equal(info.settling, 0);
	assert_int_equal(info.unconfirmed, 0);
	assert_int_equal(info.server, 0);
	krl_module_info(&arg, 0, &info);
	assert_int_equal(info.unconfirmed, 0);
	arg.answer = KRP_LOOKUP_DOUBT;
	krl_module_info(&arg, -ENOENT, &info);
	assert_int_equal(info.settling, 1);
	assert_int_equal(info.unconfirmed, 0);
	krl_module_info(&arg, 0, &info);
	assert_int_equal(info.settling, 0);
	assert_int_equal(info.unconfirmed, 1);
}

static void test_version(void **state)
{
	(void)state;
	assert_string_equal(krcore_version(), KRC_VERSION);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_servers_alone_suffice),
		cmocka_unit_test(test_file_and_what_wins_over_it),
		cmocka_unit_test(test_bad_options),
		cmocka_unit_test(test_longer_options_without_new_fields_are_taken),
		cmocka_unit_test(test_bad_configurations),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_owner_is_stable),
		cmocka_unit_test(test_users_are_owners_of_their_own),
		cmocka_unit_test(test_open_refuses_and_returns_nothing),
		cmocka_unit_test(test_the_module_is_for_who_asks_for_nothing_else),
		cmocka_unit_test(test_the_doubt_of_the_module_is_told),
		cmocka_unit_test(test_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
