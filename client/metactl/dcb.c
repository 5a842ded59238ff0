// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* How a network device treats priorities: see dcb.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <linux/dcbnl.h>
#include <linux/rtnetlink.h>

#include "client/metactl/dcb.h"

#define MC_DCB_BYTES 16384

static void mc_dcb_take_app(const struct nlattr *table, struct mc_dcb *dcb)
{
	const struct nlattr *attr;
	struct dcb_app app;

	mnl_attr_for_each_nested(attr, table) {
		if (mnl_attr_get_type(attr) != DCB_ATTR_IEEE_APP ||
		    mnl_attr_get_payload_len(attr) < sizeof(app))
			continue;
		memcpy(&app, mnl_attr_get_payload(attr), sizeof(app));
		if (app.selector != IEEE_8021QAZ_APP_SEL_DSCP || app.protocol >= MC_DSCP_NR)
			continue;
		dcb->by_dscp = true;
		dcb->priority[app.protocol] = app.priority & 7;
	}
}

static void mc_dcb_take_ieee(const struct nlattr *ieee, struct mc_dcb *dcb)
{
	const struct nlattr *attr;
	struct ieee_pfc pfc;

	mnl_attr_for_each_nested(attr, ieee) {
		switch (mnl_attr_get_type(attr)) {
		case DCB_ATTR_IEEE_PFC:
			if (mnl_attr_get_payload_len(attr) < sizeof(pfc))
				break;
			memcpy(&pfc, mnl_attr_get_payload(attr), sizeof(pfc));
			dcb->pfc = pfc.pfc_en;
			break;
		case DCB_ATTR_IEEE_APP_TABLE:
			mc_dcb_take_app(attr, dcb);
			break;
		default:
			break;
		}
	}
}

void mc_dcb_take(const struct nlmsghdr *nlh, struct mc_dcb *dcb)
{
	const struct nlattr *attr;

	mnl_attr_for_each(attr, nlh, sizeof(struct dcbmsg))
		if (mnl_attr_get_type(attr) == DCB_ATTR_IEEE)
			mc_dcb_take_ieee(attr, dcb);
}

static int mc_dcb_on_answer(const struct nlmsghdr *nlh, void *arg)
{
	/* the answer about one device is a single message, without NLMSG_DONE */
	mc_dcb_take(nlh, arg);
	return MNL_CB_STOP;
}

static int mc_dcb_exchange(struct mnl_socket *socket, struct mc_dcb *dcb)
{
	char buf[MC_DCB_BYTES] = { 0 };
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct dcbmsg *head;
	ssize_t bytes;

	nlh->nlmsg_type = RTM_GETDCB;
	nlh->nlmsg_flags = NLM_F_REQUEST;
	head = mnl_nlmsg_put_extra_header(nlh, sizeof(*head));
	head->cmd = DCB_CMD_IEEE_GET;
	mnl_attr_put_strz(nlh, DCB_ATTR_IFNAME, dcb->netdev);
	if (mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0 ||
	    mnl_socket_sendto(socket, nlh, nlh->nlmsg_len) < 0)
		return -errno;
	bytes = mnl_socket_recvfrom(socket, buf, sizeof(buf));
	if (bytes < 0 || mnl_cb_run(buf, (size_t)bytes, 0, mnl_socket_get_portid(socket),
				    mc_dcb_on_answer, dcb) < 0)
		return -errno;
	return 0;
}

void mc_dcb_ask(const char *netdev, struct mc_dcb *ret_dcb)
{
	struct mnl_socket *socket;

	memset(ret_dcb, 0, sizeof(*ret_dcb));
	snprintf(ret_dcb->netdev, sizeof(ret_dcb->netdev), "%s", netdev);
	socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	if (!socket) {
		ret_dcb->error = -errno;
		return;
	}
	ret_dcb->error = mc_dcb_exchange(socket, ret_dcb);
	mnl_socket_close(socket);
}
