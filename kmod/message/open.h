/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: listeners: the services to which connections may be opened.
 * Contexts and locking: see message/message.h.
 */
#ifndef KRC_MESSAGE_OPEN_H
#define KRC_MESSAGE_OPEN_H

#include <linux/types.h>

struct krc_inbox;
struct krc_listener;
struct krc_messages;

/**
 * krc_listen() - Take connections to a service.
 * @messages: of the port.
 * @service: KRP_SERVICE_USER_MIN and above.
 * @backlog: how many may wait to be accepted, from 1.
 * @inbox: where offers go (KRC_LETTER_OFFER); outlives the answer to the last of them.
 * @owner: the caller's, for krc_stream_owner() of an offered stream.
 *
 * Context: may sleep; not in krc_inbox.arrived of an inbox that offers come to.
 * Return: the listener, or ERR_PTR: -EADDRINUSE, -EINVAL, -ENOMEM, -ENODEV (the port ends).
 */
struct krc_listener *krc_listen(struct krc_messages *messages, u16 service, u32 backlog,
				struct krc_inbox *inbox, void *owner);

/**
 * krc_unlisten() - Take no more.
 * @listener: freed. Offers that are in its inbox stay there; freeing them refuses them. When all
 *	have been answered, perhaps at once, krc_inbox.unlistened() is called.
 *
 * Nothing is put into its inbox when it has returned. Context: may sleep; not in krc_inbox.arrived
 * of that inbox.
 */
void krc_unlisten(struct krc_listener *listener);

#endif /* KRC_MESSAGE_OPEN_H */
