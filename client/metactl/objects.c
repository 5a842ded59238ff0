// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The command table: what krcore-metactl can be asked about.
 */
#include "client/metactl/metactl.h"

/* The first is the default. */
static const struct mc_object *const mc_table[] = {
	&mc_object_status,  &mc_object_node,	&mc_object_record, &mc_object_table,
	&mc_object_cluster, &mc_object_resolve, &mc_object_stats,  &mc_object_session,
	&mc_object_monitor, &mc_object_config,	&mc_object_server, &mc_object_doctor,
	&mc_object_queue,   &mc_object_peer,	&mc_object_key,	   NULL,
};

const struct mc_object *const *mc_objects(void)
{
	return mc_table;
}
