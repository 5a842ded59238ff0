// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * krcore_open() of libkrcore-queue: contexts that the module of this node serves. That of
 * libkrcore (context.c) makes those attached to MetaServers as well; which one a program
 * calls is a matter of the library that it was linked with first.
 */
#include <errno.h>

#include "client/lib/base.h"
#include "client/lib/by_module.h"

int krcore_open(const struct krcore_options *opts, struct krcore_ctx **ret_ctx)
{
	struct krcore_options all;
	int err = krl_options(opts, &all);

	if (err)
		return err;
	if (!krl_module_wanted(&all))
		return krl_error_const(-EOPNOTSUPP,
				       "the options ask for sessions of the context's own, which "
				       "libkrcore has and libkrcore-queue does not");
	return krl_module_open(&all, ret_ctx);
}
