/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Records as cells of a row, and the choice of a server. Threads: one.
 */
#ifndef MC_RECORD_H
#define MC_RECORD_H

#include "client/metactl/metactl.h"

#define MC_HIDDEN "(hidden)"

/** mc_key_of() - Name from the parameters gid and service. @mc: run. @ret_key: filled. */
void mc_key_of(const struct mc *mc, struct krcore_key *ret_key);

/** mc_put_key() - Cells gid and service. @mc: run. @key: name. */
void mc_put_key(struct mc *mc, const struct krcore_key *key);

/**
 * mc_put_value() - Cells of a value, the same for every kind.
 * @mc: run.
 * @value: value, or NULL for cells without value.
 *
 * The order of the cells is that of the columns of `table dump`, which is
 * documented: only ever add at the end.
 */
void mc_put_value(struct mc *mc, const struct krcore_value *value);

/** mc_put_hex() - Hex digits. @mc: run. @key: key. @flags: MC_*. @p: bytes. @nr: how many. */
void mc_put_hex(struct mc *mc, const char *key, unsigned int flags, const uint8_t *p, size_t nr);

/** mc_values_equal() - Whether two values are equal. @a: value. @b: value. Return: true if so. */
bool mc_values_equal(const struct krcore_value *a, const struct krcore_value *b);

/**
 * mc_server_choose() - Which server a command reads.
 * @mc: run, attached; parameter "server" if it has one.
 *
 * Return: an index, or -1 after a message: none is attached, or not that one.
 */
int mc_server_choose(struct mc *mc);

/** mc_address_of() - Address. @mc: run, attached. @server: index. @buf: where to. @bytes: size. */
void mc_address_of(struct mc *mc, unsigned int server, char *buf, size_t bytes);

/**
 * mc_local_records() - The daemon's records, through its control socket.
 * @mc: run; parameters count and service if it has them.
 *
 * Return: MC_OK, or MC_FAILED after a message.
 */
int mc_local_records(struct mc *mc);

/** mc_local_record() - One record. @mc: run. @key: name. Return: as mc_local_records(). */
int mc_local_record(struct mc *mc, const struct krcore_key *key);

/** mc_table_diff() - The command. @mc: run. Return: MC_OK if all servers agree, else MC_FAILED. */
int mc_table_diff(struct mc *mc);

#endif /* MC_RECORD_H */
