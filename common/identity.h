/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Identity of a node, the same over boots: a hash of the machine id, which does not reveal it.
 * No state, no locks: any thread. Idea: machine-id(5), application-specific ids.
 */
#ifndef KRU_IDENTITY_H
#define KRU_IDENTITY_H

#include "proto/krp_msg.h"

#define KRU_MACHINE_ID "/etc/machine-id"

/*
 * Each kind of publisher is an owner of its own: the restart of one must not make the records
 * of another look old. Programs are distinguished by their user, so that users cannot take
 * each other's records.
 */
#define KRU_OWNER_MODULE "krcore module owner v1"
#define KRU_OWNER_PROGRAM "krcore owner v2 uid %u"

/**
 * kru_identity() - Identity of an owner on this machine.
 * @path: file with the machine id: KRU_MACHINE_ID.
 * @label: kind of owner: KRU_OWNER_MODULE, or KRU_OWNER_PROGRAM with the user.
 * @ret_owner: KRP_OWNER_BYTES, the same at every call; untouched on failure.
 *
 * Context: any thread; reads a file.
 * Return:
 * * 0 - success.
 * * %-EINVAL - the file does not begin with 32 hexadecimal digits.
 * * %-ENOENT or what open() and read() say.
 */
int kru_identity(const char *path, const char *label, __u8 *ret_owner);

#endif /* KRU_IDENTITY_H */
