/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the services of the node: who has which number of which port, and the record published for
 * it: the port's DC target, or bytes. A program (user/service.c) has them, or another module of the
 * kernel.
 *
 * A service is in the table from before it is charged until after its record is withdrawn; while it
 * is not settled, it is of the one call that is at it: that of krc_service_begin() or
 * krc_service_claim(), until krc_service_settle() or krc_service_end().
 */
#ifndef KRC_PEER_SERVICE_H
#define KRC_PEER_SERVICE_H

#include <linux/list.h>

#include "base/limits.h"
#include "krp_table.h"

struct krc_listener;
struct krc_port;

/**
 * struct krc_service - A service of the node.
 * @list: entry in the table.
 * @owner: who has it; only compared.
 * @port: its port, which the owner counts until krc_service_end().
 * @charge: charge for it.
 * @service: number.
 * @settled: no call is publishing it, so it may be withdrawn or replaced.
 * @value: the value published; the owner's.
 * @listener: whoever takes connections to it, the owner's; NULL: nobody.
 */
struct krc_service {
	struct list_head list;
	const void *owner;
	struct krc_port *port;
	struct krc_charge charge;
	u16 service;
	bool settled;
	struct krp_value value;
	struct krc_listener *listener;
};

/**
 * krc_service_begin() - Charge and list a service, not settled and without value.
 * @port: port.
 * @owner: who is to have it.
 * @user: who is charged.
 * @number: number of the service.
 *
 * Context: may sleep; the process that is charged.
 * Return: the service, or ERR_PTR: -EADDRINUSE, -ENOMEM, the errors of krc_charge_share().
 */
struct krc_service *krc_service_begin(struct krc_port *port, const void *owner,
				      struct krc_user *user, u16 number);

/**
 * krc_service_publish() - Publish a value and wait until one MetaServer has it.
 * @service: service, not settled.
 * @value: value; the caller notes it in krc_service.value.
 * @timeout_ms: limit in milliseconds, from 1.
 *
 * Context: may sleep.
 * Return: 0, -ENODEV (the port has gone), an error of krc_meta_publish() or krc_meta_published();
 * after those of the latter it may be published yet.
 */
int krc_service_publish(const struct krc_service *service, const struct krp_value *value,
			u32 timeout_ms);

/**
 * krc_service_republish() - Publish krc_service.value again, and wait for nobody.
 * @service: service, not settled.
 *
 * No-op if the port has gone. Context: may sleep.
 */
void krc_service_republish(const struct krc_service *service);

/**
 * krc_service_settle() - The call that was at a service is done with it, and it stays.
 * @service: service; another call may end it at once.
 *
 * Context: process.
 */
void krc_service_settle(struct krc_service *service);

/**
 * krc_service_claim() - Be the one call that is at a service: it is not settled from now on.
 * @port: port.
 * @owner: whose it must be.
 * @number: number of the service.
 * @kind: KRP_KIND_* that its value must have; 0: any.
 *
 * Context: process.
 * Return: it; or ERR_PTR: -ENOENT (there is none), -EADDRINUSE (of another owner or kind), -EBUSY
 * (another call is at it).
 */
struct krc_service *krc_service_claim(const struct krc_port *port, const void *owner, u16 number,
				      u8 kind);

/**
 * krc_service_claim_any() - The same with any service of an owner who ends, settled or not.
 * @owner: owner, of whom no other call is under way.
 *
 * Context: process.
 * Return: it, or NULL: there is none.
 */
struct krc_service *krc_service_claim_any(const void *owner);

/**
 * krc_service_withdraw() - Withdraw the record of a service that is going to be ended.
 * @service: service, not settled.
 *
 * Does not wait for the MetaServers; no-op if the port has gone. Context: may sleep.
 */
void krc_service_withdraw(const struct krc_service *service);

/**
 * krc_service_end() - Give a service back: its number is free.
 * @service: service, not settled, withdrawn, without listener; freed.
 *
 * Context: may sleep.
 */
void krc_service_end(struct krc_service *service);

#endif /* KRC_PEER_SERVICE_H */
