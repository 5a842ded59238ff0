// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The key file: kru_keys_load() on any bytes, through a file that is not on disk.
 *
 * Keys that are accepted must be what the lines of the file say in hexadecimal,
 * nothing but blank space and comments around them; a refusal leaves the keys as
 * they were.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/auth.h"
#include "tests/fuzz/fuzz.h"

static void fz_check_keys(const struct kru_keys *keys, char *text)
{
	char digits[2 * KRU_KEY_BYTES_MAX + 1], *line, *rest = text;
	unsigned int nr = 0;
	size_t i;

	FZ_ASSERT(keys->nr && keys->nr <= KRU_KEYS_MAX);
	while ((line = strsep(&rest, "\n"))) {
		const struct kru_key *key = &keys->key[nr];

		while (isspace((unsigned char)*line))
			line++;
		if (!*line || *line == '#')
			continue;
		FZ_ASSERT(nr < keys->nr);
		FZ_ASSERT(key->len >= KRU_KEY_BYTES_MIN && key->len <= KRU_KEY_BYTES_MAX);
		for (i = 0; i < key->len; i++)
			snprintf(digits + 2 * i, 3, "%02x", key->bytes[i]);
		FZ_ASSERT(strlen(line) >= 2 * key->len);
		for (i = 0; i < 2 * key->len; i++)
			FZ_ASSERT(tolower((unsigned char)line[i]) == digits[i]);
		for (; line[i]; i++)
			FZ_ASSERT(isspace((unsigned char)line[i]));
		nr++;
	}
	FZ_ASSERT(nr == keys->nr);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kru_keys keys, before;
	char path[64];
	int fd, err;

	if (size > 4096)
		return 0;
	fd = memfd_create("key", MFD_CLOEXEC);
	FZ_ASSERT(fd >= 0 && !fchmod(fd, 0600));
	FZ_ASSERT(write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);

	memset(&keys, 0xa5, sizeof(keys));
	before = keys;
	err = kru_keys_load(path, &keys);
	FZ_ASSERT(err == 0 || err == -EINVAL || err == -E2BIG);
	if (err) {
		FZ_ASSERT(!memcmp(&keys, &before, sizeof(keys)));
	} else {
		char text[4097] = "";

		memcpy(text, data, size);
		if (strlen(text) == size) /* a comment may have a NUL in it */
			fz_check_keys(&keys, text);
	}
	close(fd);
	return 0;
}
