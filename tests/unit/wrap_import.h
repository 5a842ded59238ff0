/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a copy at start calls, of libkrcore and of the server, as the linker redirects it to a
 * test, with --wrap of each.
 */
#ifndef KRC_TESTS_UNIT_WRAP_IMPORT_H
#define KRC_TESTS_UNIT_WRAP_IMPORT_H

#include <krcore/krcore.h>

#include "metaserver/server_priv.h"

int __wrap_krcore_open(const struct krcore_options *opts, struct krcore_ctx **ret_ctx);
void __wrap_krcore_close(struct krcore_ctx *ctx);
const char *__wrap_krcore_error_text(void);
int __wrap_krcore_servers(struct krcore_ctx *ctx, struct krcore_server_info *infos,
			  unsigned int infos_nr);
int __wrap_krcore_walk(struct krcore_ctx *ctx, unsigned int server, krcore_record_fn *fn, void *arg,
		       struct krcore_check *ret_check);
uint64_t __wrap_ms_now(struct ms_server *srv);
int __wrap_ms_ledger_import(struct ms_ledger *l, uint64_t now_ms, const struct krp_key *key,
			    const struct krp_value *value, uint32_t lease_ms);
uint64_t __wrap_ms_ledger_import_drop(struct ms_ledger *l);
void __wrap_ms_listeners_start(struct ms_server *srv);
void __wrap_ms_server_evaluate(struct ms_server *srv);

#endif
