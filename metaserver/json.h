/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * State of the server as flat JSON objects, for commands and monitor. Names
 * are those of common/ctl.h. No state: any thread.
 */
#ifndef MS_JSON_H
#define MS_JSON_H

#include <stdbool.h>

#include <jansson.h>

#include "metaserver/server.h"

#define MS_HEX_BYTES (2 * KRP_OWNER_BYTES + 1)

/** ms_hex() - Bytes as hexadecimal digits. @p: bytes. @n: how many. @buf: 2n + 1. Return: @buf. */
char *ms_hex(const uint8_t *p, size_t n, char *buf);

/** ms_json_u64() - A number, clamped to 2^63 - 1. @n: number. Return: integer. */
json_t *ms_json_u64(uint64_t n);

/**
 * ms_json_text() - Text that need not be UTF-8: a path, a line of a file, a part of a request
 * that was cut in the middle of a character. Bytes that JSON cannot hold become \xNN.
 * @text: NUL-terminated.
 *
 * Return: string, or NULL without memory.
 */
json_t *ms_json_text(const char *text);

/** ms_json_session() - A connection. @info: it. Return: object or NULL. */
json_t *ms_json_session(const struct ms_session_info *info);

/** ms_json_device() - A port. @info: it. Return: object or NULL. */
json_t *ms_json_device(const struct ms_device_info *info);

/** ms_json_listener() - A listener. @info: it. Return: object or NULL. */
json_t *ms_json_listener(const struct ms_listener_info *info);

/** ms_json_record() - A record. @info: it. @keys: show DC keys. Return: object or NULL. */
json_t *ms_json_record(const struct ms_record_info *info, bool keys);

/** ms_json_key() - Put gid and service into an object. @object: it. @key: name. */
void ms_json_key(json_t *object, const struct krp_key *key);

#endif /* MS_JSON_H */
