/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Talking to the kernel module: a generic netlink socket to the family "krcore"
 * (proto/krp_genl.h). One request at a time. Threads: one.
 */
#ifndef MC_GENL_H
#define MC_GENL_H

#include <stddef.h>
#include <stdint.h>

#include <libmnl/libmnl.h>

#define MC_GENL_BYTES 32768 /* of the longest message, either way */
#define MC_GENL_ERROR_BYTES 320

struct mc_genl;

/**
 * mc_genl_open() - Find the family and connect to it.
 * @ret_genl: for mc_genl_close(); untouched on failure.
 *
 * Return:
 * * 0 - success.
 * * %-ENOENT - there is no such family: the module is not loaded, or this network
 *   namespace does not see it.
 * * %-ENOMEM, or what socket() and the like say.
 */
int mc_genl_open(struct mc_genl **ret_genl);

/** mc_genl_close() - Close a connection and wipe its buffers. @genl: connection or NULL. */
void mc_genl_close(struct mc_genl *genl);

/**
 * mc_genl_request() - Begin a request.
 * @genl: connection.
 * @cmd: KRP_GENL_CMD_*.
 * @flags: NLM_F_DUMP for a list, else 0.
 *
 * Return: the message, with room for attributes up to MC_GENL_BYTES; valid until
 * the next call.
 */
struct nlmsghdr *mc_genl_request(struct mc_genl *genl, uint8_t cmd, uint16_t flags);

/**
 * typedef mc_genl_fn - Called for each message of an answer.
 * @arg: as given along.
 * @nlh: message; its attributes follow the generic netlink header.
 */
typedef void mc_genl_fn(void *arg, const struct nlmsghdr *nlh);

/**
 * mc_genl_run() - Send the request begun last, and take the answer.
 * @genl: connection.
 * @fn: called for each message of the answer, or NULL.
 * @arg: its first argument.
 *
 * Return: 0, or the negative errno of the kernel; then mc_genl_error() says more.
 */
int mc_genl_run(struct mc_genl *genl, mc_genl_fn *fn, void *arg);

/** mc_genl_error() - What the last request failed with. @genl: connection. Return: text. */
const char *mc_genl_error(const struct mc_genl *genl);

/**
 * mc_genl_explain() - Make a text of a negative acknowledgement.
 * @request: the request it is about.
 * @ack: NLMSG_ERROR message, checked for its length.
 * @buf: where to.
 * @bytes: its size.
 *
 * Names the attribute that the kernel points at, repeats what the kernel says about it,
 * and ends with the text of the errno.
 *
 * Return: the errno, negative; 0 if the acknowledgement is positive.
 */
int mc_genl_explain(const struct nlmsghdr *request, const struct nlmsghdr *ack, char *buf,
		    size_t bytes);

#endif /* MC_GENL_H */
