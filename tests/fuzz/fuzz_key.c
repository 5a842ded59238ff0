// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The key file: kru_key_load() on any bytes, through a file that is not on disk.
 *
 * A key that is accepted must be what the file says in hexadecimal, nothing
 * but blank space around it; a refusal leaves the key as it was.
 */
#include <ctype.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/auth.h"
#include "tests/fuzz/fuzz.h"

static void fz_check_key(const struct kru_key *key, const uint8_t *text, size_t size)
{
	char digits[2 * KRU_KEY_BYTES_MAX + 1];
	size_t i;

	FZ_ASSERT(key->len >= KRU_KEY_BYTES_MIN && key->len <= KRU_KEY_BYTES_MAX);
	for (i = 0; i < key->len; i++)
		snprintf(digits + 2 * i, 3, "%02x", key->bytes[i]);
	while (size && isspace(*text)) {
		text++;
		size--;
	}
	FZ_ASSERT(size >= 2 * key->len);
	for (i = 0; i < 2 * key->len; i++)
		FZ_ASSERT(tolower(text[i]) == digits[i]);
	for (; i < size; i++)
		FZ_ASSERT(isspace(text[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kru_key key, before;
	char path[64];
	int fd, err;

	if (size > 4096)
		return 0;
	fd = memfd_create("key", MFD_CLOEXEC);
	FZ_ASSERT(fd >= 0 && !fchmod(fd, 0600));
	FZ_ASSERT(write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);

	memset(&key, 0xa5, sizeof(key));
	before = key;
	err = kru_key_load(path, &key);
	FZ_ASSERT(err == 0 || err == -EINVAL);
	if (err)
		FZ_ASSERT(!memcmp(&key, &before, sizeof(key)));
	else
		fz_check_key(&key, data, size);
	close(fd);
	return 0;
}
