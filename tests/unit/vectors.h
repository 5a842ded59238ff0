/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Golden vectors: bytes of every structure that leaves a machine, in
 * proto/vectors/, one file a structure. Lines are "name: hex"; # begins a
 * comment. This reader is shared by the tests of both halves' user-space side.
 */
#ifndef VECTORS_H
#define VECTORS_H

#include <stddef.h>

#define VECTOR_BYTES_MAX 4096

/**
 * vector_load() - Read one named vector.
 * @file: name within proto/vectors/.
 * @name: name of the line.
 * @buf: at least VECTOR_BYTES_MAX bytes.
 *
 * Return: bytes read, or -1 if file or line is not there or is not hex.
 */
int vector_load(const char *file, const char *name, unsigned char *buf);

#endif /* VECTORS_H */
