// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: regions of clients in the kernel.
 * Locking: see api/api_priv.h.
 */
#include <linux/err.h>
#include <linux/export.h>
#include <linux/slab.h>

#include "api/api_priv.h"
#include "krp_ioctl.h"
#include "node/port.h"

static_assert(KRCORE_LOCAL_WRITE == KRP_ACCESS_LOCAL_WRITE);
static_assert(KRCORE_REMOTE_READ == KRP_ACCESS_REMOTE_READ);
static_assert(KRCORE_REMOTE_WRITE == KRP_ACCESS_REMOTE_WRITE);
static_assert(KRCORE_REMOTE_ATOMIC == KRP_ACCESS_REMOTE_ATOMIC);
static_assert(KRCORE_MESSAGE == KRP_ACCESS_MESSAGE);

static void krc_region_closer(struct work_struct *work)
{
	struct krcore_region *region = container_of(work, struct krcore_region, closer);

	krc_mr_dereg(&region->mr, 1, true);
	complete(&region->closed);
}

struct krcore_region *krcore_region_open(struct krcore_client *client, struct page *const *pages,
					 u32 nr, u32 access)
{
	struct krcore_region *region;
	struct krc_mr *mr;

	might_sleep();
	if (!pages || access & ~(u32)(KRP_ACCESS_ALL | KRP_ACCESS_MESSAGE))
		return ERR_PTR(-EINVAL);
	region = kzalloc(sizeof(*region), GFP_KERNEL);
	if (!region)
		return ERR_PTR(-ENOMEM);
	mr = krc_mr_reg_pages(client->port->mrdir, client->user, pages, nr, access);
	if (IS_ERR(mr)) {
		kfree(region);
		return ERR_CAST(mr);
	}
	region->client = client;
	region->mr = mr;
	INIT_WORK(&region->closer, krc_region_closer);
	init_completion(&region->closed);
	spin_lock_bh(&client->lock);
	list_add_tail(&region->list, &client->regions);
	spin_unlock_bh(&client->lock);
	return region;
}
EXPORT_SYMBOL_GPL(krcore_region_open);

u64 krcore_region_token(const struct krcore_region *region)
{
	return region->mr->token;
}
EXPORT_SYMBOL_GPL(krcore_region_token);

void krcore_region_close(struct krcore_region *region)
{
	struct krcore_client *client = region->client;

	might_sleep();
	spin_lock_bh(&client->lock);
	list_del(&region->list);
	spin_unlock_bh(&client->lock);
	queue_work(krc_api_close_wq, &region->closer);
	wait_for_completion(&region->closed);
	kfree(region);
}
EXPORT_SYMBOL_GPL(krcore_region_close);
