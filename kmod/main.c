// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: loading and unloading. Each layer has an init and an exit, called from the bottom up
 * and from the top down, so that no layer runs without those below it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>

#include "api/client.h"
#include "base/limits.h"
#include "ctl/netlink.h"
#include "message/message.h"
#include "node/node.h"
#include "peer/peer.h"
#include "user/chardev.h"

static int __init krc_init(void)
{
	int err = krc_limits_init();

	if (err)
		return err;
	err = krc_messages_init();
	if (err)
		goto err_limits;
	krc_peers_init();
	err = krc_node_init();
	if (err)
		goto err_peers;
	err = krc_chardev_init();
	if (err)
		goto err_node;
	err = krc_api_init();
	if (err)
		goto err_chardev;
	err = krc_nl_init();
	if (err)
		goto err_api;
	return 0;

err_api:
	krc_api_exit();
err_chardev:
	krc_chardev_exit();
err_node:
	krc_node_exit();
err_peers:
	krc_peers_exit();
	krc_messages_exit();
err_limits:
	krc_limits_exit();
	return err;
}

static void __exit krc_exit(void)
{
	krc_nl_exit();
	krc_api_exit();
	krc_chardev_exit();
	krc_node_exit();
	krc_peers_exit();
	krc_messages_exit();
	krc_limits_exit();
}

module_init(krc_init);
module_exit(krc_exit);
MODULE_DESCRIPTION("RDMA connections in microseconds over shared DC initiators");
MODULE_VERSION("0.1.0");
MODULE_LICENSE("GPL");
