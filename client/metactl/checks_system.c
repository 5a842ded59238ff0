// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The checks of `doctor` on the machine around krcore: whether the kernel accepts the
 * module, in which class the network puts its packets, and whether the cluster has its
 * records. Pure: only the probe is read here.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/metactl/judge.h"

/* A cause that keeps the module from being loaded is a failure only where the module is wanted. */
static enum mc_verdict mc_unloadable(const struct mc_probe *p)
{
	if (p->module.loaded)
		return MC_CHECK_OK;
	return p->module.enabled ? MC_CHECK_FAIL : MC_CHECK_WARN;
}

void mc_check_driver(struct mc_judge *j)
{
	const struct mc_system *s = &j->probe->system;

	mc_about(j, MC_CHECK_OK, "%s", *s->driver ? s->driver : "NIC driver");
	if (!*s->driver && !s->driver_ofed) {
		mc_cause(j, "no driver from outside the kernel");
		mc_say(j);
		return;
	}
	j->finding.verdict = mc_unloadable(j->probe);
	mc_cause(j,
		 "%s%s%s instead of the kernel's own drivers: krcore.ko is built for those, and "
		 "symbols differ",
		 s->driver_ofed ? "MLNX_OFED or DOCA-OFED is loaded"
				: "it was built outside the kernel",
		 *s->driver_version ? ", version " : "", s->driver_version);
	if (j->finding.verdict != MC_CHECK_OK)
		mc_remedy(j,
			  "for queues on this node remove them (ofed_uninstall.sh) and reboot "
			  "into the drivers of the kernel; look-ups and records work without the "
			  "module");
	mc_say(j);
}

void mc_check_signature(struct mc_judge *j)
{
	const struct mc_system *s = &j->probe->system;

	mc_about(j, MC_CHECK_OK, "%s", *s->module_path ? s->module_path : "krcore.ko");
	if (!*s->must_sign) {
		mc_cause(j, "the kernel takes unsigned modules");
	} else if (!*s->module_path) {
		mc_cause(j,
			 "%s, and there is no module for this kernel that would need a signature",
			 s->must_sign);
	} else if (s->module_signed == MC_SIGNED_NO) {
		j->finding.verdict = mc_unloadable(j->probe);
		mc_cause(j, "%s, and the module is not signed: the kernel refuses it",
			 s->must_sign);
		if (j->finding.verdict != MC_CHECK_OK)
			mc_remedy(j,
				  "enrol the key that DKMS signs with, mokutil --import "
				  "/var/lib/dkms/mok.pub, reboot and confirm it there; then dkms "
				  "install --force krcore");
	} else {
		mc_cause(j, "%s, and %s", s->must_sign,
			 s->module_signed == MC_SIGNED_YES
				 ? "the module is signed"
				 : "whether the module is signed cannot be told");
	}
	mc_say(j);
}

/* "3, 4" for bits 3 and 4. */
static void mc_bits(unsigned int mask, char *buf, size_t bytes)
{
	size_t len = 0;
	int i;

	*buf = '\0';
	for (i = 0; i < 8; i++)
		if (mask >> i & 1 && len < bytes)
			len += (size_t)snprintf(buf + len, bytes - len, "%s%d", len ? ", " : "", i);
}

static void mc_check_class(struct mc_judge *j, const struct mc_dcb *dcb)
{
	unsigned int dscp = j->probe->traffic_class >> 2;
	unsigned int priority = dcb->by_dscp ? dcb->priority[dscp] : 0;
	char lossless[32];

	mc_bits(dcb->pfc, lossless, sizeof(lossless));
	mc_about(j, MC_CHECK_OK, "%s", dcb->netdev);
	if (dcb->error) {
		mc_cause(j, "classes cannot be told (%s)", strerror(-dcb->error));
	} else if (!dcb->pfc) {
		mc_cause(
			j,
			"no lossless priority (PFC is off): losses cost time-outs; switches should "
			"mark (ECN) early");
	} else if (dcb->pfc >> priority & 1) {
		mc_cause(j, "DSCP %u is priority %u, which is lossless", dscp, priority);
	} else {
		j->finding.verdict = MC_CHECK_WARN;
		mc_cause(
			j,
			"the lossless priorities are %s, but krcore's packets (traffic class %u, DSCP "
			"%u) are of priority %u%s: under load the network drops them",
			lossless, j->probe->traffic_class, dscp, priority,
			dcb->by_dscp ? "" : ", since the port does not go by DSCP");
		mc_remedy(
			j,
			"set traffic_class below [node] of every node to that of a lossless priority (DSCP "
			"* 4 + 2), or make DSCP %u lossless here and on the switches: dcb app show "
			"dev %s, dcb pfc show dev %s",
			dscp, dcb->netdev, dcb->netdev);
	}
	mc_say(j);
}

void mc_check_fabric(struct mc_judge *j)
{
	size_t i;

	for (i = 0; i < j->probe->classes_nr; i++)
		mc_check_class(j, &j->probe->classes[i]);
	if (!j->probe->classes_nr) {
		mc_about(j, MC_CHECK_OK, "%s", "classes");
		mc_cause(j, "no Ethernet port to look at");
		mc_say(j);
	}
}

/* Addresses of servers that lack a record; true if one of them has settled. */
static bool mc_lacking(const struct mc_probe *p, uint64_t mask, char *buf, size_t bytes)
{
	bool settled = false;
	size_t i, len = 0;

	*buf = '\0';
	for (i = 0; i < p->servers_nr && i < 64; i++) {
		if (!(mask >> i & 1))
			continue;
		settled |= !p->servers[i].settling_ms;
		if (len < bytes)
			len += (size_t)snprintf(buf + len, bytes - len, "%s%s", len ? ", " : "",
						p->servers[i].address);
	}
	return settled;
}

static void mc_check_record(struct mc_judge *j, const struct mc_record_probe *r)
{
	char where[MC_TEXT_BYTES];
	bool settled = mc_lacking(j->probe, r->asked & ~r->have, where, sizeof(where));

	mc_about(j, MC_CHECK_OK, "%s", r->gid);
	if (r->have == r->asked) {
		mc_cause(j, "its record is at all %d servers that were asked",
			 __builtin_popcountll(r->asked));
		mc_say(j);
		return;
	}
	j->finding.verdict = settled ? MC_CHECK_FAIL : MC_CHECK_WARN;
	mc_cause(j, "its record is missing at %s%s", where,
		 settled ? ": clients of it may not find this node"
			 : ", which settle after a restart");
	if (settled)
		mc_remedy(j, "%s",
			  r->have ? "is the server reached from this address, and not from another "
				    "of this node (see route)? krcore-metactl node show has what "
				    "it answered"
				  : "krcore-metactl node show has what the servers answered");
	else
		mc_remedy(j, "wait: krcore-metactl cluster wait");
	mc_say(j);
}

void mc_check_records(struct mc_judge *j)
{
	const struct mc_probe *p = j->probe;
	size_t i, nr = 0;

	for (i = 0; i < p->records_nr; i++) {
		if (!p->records[i].asked || !(p->records[i].expected || p->records[i].have))
			continue;
		mc_check_record(j, &p->records[i]);
		nr++;
	}
	if (!nr) {
		mc_about(j, MC_CHECK_OK, "%s", "own records");
		mc_cause(j, "this machine has published none, or no server was there to ask");
		mc_say(j);
	}
}
