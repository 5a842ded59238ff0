// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Runs a fuzz target over the files that are named, or lie in a folder named:
 * the regression test of a corpus, for any compiler and without libFuzzer.
 *
 * One thread. A missing or empty corpus is a failure: it would test nothing.
 */
#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"

#define FZ_FILE_BYTES_MAX (1 << 20)

static int fz_replay_file(const char *path)
{
	uint8_t *data;
	size_t size;
	FILE *f;

	f = fopen(path, "rb");
	if (!f) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -errno;
	}
	data = malloc(FZ_FILE_BYTES_MAX);
	FZ_ASSERT(data);
	size = fread(data, 1, FZ_FILE_BYTES_MAX, f);
	fclose(f);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	return 1;
}

static int fz_replay_folder(const char *path)
{
	char name[4096];
	struct dirent *e;
	int nr = 0, err = 0;
	DIR *dir;

	dir = opendir(path);
	if (!dir)
		return -errno;
	while (err >= 0 && (e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "%s/%s", path, e->d_name);
		err = fz_replay_file(name);
		nr += err > 0;
	}
	closedir(dir);
	return err < 0 ? err : nr;
}

int main(int argc, char **argv)
{
	struct stat st;
	int i, err, nr = 0;

	for (i = 1; i < argc; i++) {
		if (stat(argv[i], &st) < 0)
			err = -errno;
		else
			err = S_ISDIR(st.st_mode) ? fz_replay_folder(argv[i])
						  : fz_replay_file(argv[i]);
		if (err < 0) {
			fprintf(stderr, "%s: %s\n", argv[i], strerror(-err));
			return 1;
		}
		nr += err;
	}
	printf("%d inputs\n", nr);
	return nr ? 0 : 1;
}
