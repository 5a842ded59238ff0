// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Structures of the caller that grow from version to version; see out.h.
 */
#include <errno.h>
#include <string.h>

#include "client/lib/base.h"
#include "client/lib/out.h"

int krl_out_check(const void *out, size_t first, const char *name)
{
	size_t size;

	if (!out)
		return 0;
	memcpy(&size, out, sizeof(size));
	if (size < first || size > KRL_OUT_MAX)
		return krl_error(-EINVAL, "%s.size is %zu: it must be sizeof(struct %s)", name,
				 size, name);
	return 0;
}

void krl_out_fill(void *out, const void *from, size_t known)
{
	size_t size;

	if (!out)
		return;
	size = *(const size_t *)out;
	memcpy(out, from, known < size ? known : size);
	if (known < size)
		memset((char *)out + known, 0, size - known);
	*(size_t *)out = size;
}

int krl_options_take(const void *opts, void *all, size_t known)
{
	size_t size;

	if (!opts)
		return 0;
	memcpy(&size, opts, sizeof(size));
	if (size < sizeof(size) || size > known)
		return krl_error(-EINVAL, "options of %zu bytes are not of this version", size);
	memcpy(all, opts, size);
	return 0;
}
