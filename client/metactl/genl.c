// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Generic netlink to the kernel module: see genl.h. Error texts include the kernel's
 * extended acknowledgement, not only the errno.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <linux/genetlink.h>

#include "client/metactl/genl.h"
#include "client/metactl/module.h"
#include "proto/krp_genl.h"

struct mc_genl {
	struct mnl_socket *socket;
	uint16_t family;
	uint32_t seq;
	char error[MC_GENL_ERROR_BYTES];
	char *request;
	char *answer;
};

/* A request to any family of generic netlink. */
static struct nlmsghdr *mc_genl_begin(struct mc_genl *genl, uint16_t family, uint8_t cmd,
				      uint8_t version, uint16_t flags)
{
	struct genlmsghdr *head;
	struct nlmsghdr *nlh;

	nlh = mnl_nlmsg_put_header(genl->request);
	nlh->nlmsg_type = family;
	nlh->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags);
	nlh->nlmsg_seq = ++genl->seq;
	head = mnl_nlmsg_put_extra_header(nlh, sizeof(*head));
	head->cmd = cmd;
	head->version = version;
	return nlh;
}

struct nlmsghdr *mc_genl_request(struct mc_genl *genl, uint8_t cmd, uint16_t flags)
{
	return mc_genl_begin(genl, genl->family, cmd, KRP_GENL_VERSION, flags);
}

static void mc_genl_family(void *arg, const struct nlmsghdr *nlh)
{
	struct mc_genl *genl = arg;
	const struct nlattr *attr;

	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr))
		if (mnl_attr_get_type(attr) == CTRL_ATTR_FAMILY_ID &&
		    mnl_attr_get_payload_len(attr) >= sizeof(uint16_t))
			genl->family = mnl_attr_get_u16(attr);
}

static int mc_genl_connect(struct mc_genl *genl)
{
	int on = 1;

	genl->socket = mnl_socket_open2(NETLINK_GENERIC, SOCK_CLOEXEC);
	if (!genl->socket)
		return -errno;
	if (mnl_socket_bind(genl->socket, 0, MNL_SOCKET_AUTOPID) < 0)
		return -errno;
	/* Without these socket options errors are less detailed, but all works. */
	if (mnl_socket_setsockopt(genl->socket, NETLINK_EXT_ACK, &on, sizeof(on)) ||
	    mnl_socket_setsockopt(genl->socket, NETLINK_CAP_ACK, &on, sizeof(on)) ||
	    mnl_socket_setsockopt(genl->socket, NETLINK_GET_STRICT_CHK, &on, sizeof(on)))
		errno = 0;
	return 0;
}

int mc_genl_open(struct mc_genl **ret_genl)
{
	struct mc_genl *genl;
	struct nlmsghdr *nlh;
	int err = -ENOMEM;

	genl = calloc(1, sizeof(*genl));
	if (!genl)
		return -ENOMEM;
	genl->seq = (uint32_t)time(NULL);
	genl->request = calloc(1, MC_GENL_BYTES);
	genl->answer = calloc(1, MC_GENL_BYTES);
	if (genl->request && genl->answer)
		err = mc_genl_connect(genl);
	if (!err) {
		nlh = mc_genl_begin(genl, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1, 0);
		mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, KRP_GENL_NAME);
		err = mc_genl_run(genl, mc_genl_family, genl);
	}
	if (!err && !genl->family)
		err = -ENOENT;
	if (err)
		mc_genl_close(genl);
	else
		*ret_genl = genl;
	return err;
}

void mc_genl_close(struct mc_genl *genl)
{
	if (!genl)
		return;
	if (genl->socket)
		mnl_socket_close(genl->socket);
	if (genl->request)
		explicit_bzero(genl->request, MC_GENL_BYTES);
	free(genl->request);
	free(genl->answer);
	free(genl);
}

const char *mc_genl_error(const struct mc_genl *genl)
{
	return genl->error;
}

/**
 * struct mc_ack - What a negative acknowledgement says.
 * @error: errno, negative.
 * @text: the kernel's text, or NULL.
 * @offset: of the attribute that is wrong, in the request; 0 for none.
 * @missing: type of the attribute that is missing, or 0.
 * @nest: offset of the nest that it is missing in, or 0.
 */
struct mc_ack {
	int error;
	const char *text;
	uint32_t offset;
	uint32_t missing;
	uint32_t nest;
};

static void mc_ack_attr(const struct nlattr *attr, struct mc_ack *ack)
{
	uint16_t bytes = mnl_attr_get_payload_len(attr);
	uint32_t number = 0;

	if (bytes == sizeof(number))
		number = mnl_attr_get_u32(attr);
	switch (mnl_attr_get_type(attr)) {
	case NLMSGERR_ATTR_MSG:
		if (mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0)
			ack->text = mnl_attr_get_str(attr);
		break;
	case NLMSGERR_ATTR_OFFS:
		ack->offset = number;
		break;
	case NLMSGERR_ATTR_MISS_TYPE:
		ack->missing = number;
		break;
	case NLMSGERR_ATTR_MISS_NEST:
		ack->nest = number;
		break;
	default:
		break;
	}
}

/* Return: false if the message is too short. */
static bool mc_ack_read(const struct nlmsghdr *nlh, struct mc_ack *ret_ack)
{
	const struct nlmsgerr *err = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *attr;
	size_t at = sizeof(*err);

	memset(ret_ack, 0, sizeof(*ret_ack));
	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*err))
		return false;
	ret_ack->error = err->error;
	if (!(nlh->nlmsg_flags & NLM_F_ACK_TLVS))
		return true;
	if (!(nlh->nlmsg_flags & NLM_F_CAPPED))
		at += MNL_ALIGN(err->msg.nlmsg_len) - sizeof(err->msg);
	if (at > mnl_nlmsg_get_payload_len(nlh))
		return false;
	mnl_attr_for_each(attr, nlh, at)
		mc_ack_attr(attr, ret_ack);
	return true;
}

/* Name of the attribute of a request at an offset; "" if there is none. */
static void mc_attr_at(const struct nlmsghdr *request, uint32_t offset, char *buf, size_t bytes)
{
	const struct nlattr *attr, *inner;
	const char *at = (const char *)request + offset;

	*buf = '\0';
	mnl_attr_for_each(attr, request, sizeof(struct genlmsghdr)) {
		const char *name = mc_module_attr(MC_SET_NODE, mnl_attr_get_type(attr));

		if ((const char *)attr == at) {
			snprintf(buf, bytes, "%s", name);
			return;
		}
		if (mnl_attr_get_type(attr) != KRP_GENL_A_NODE_SERVER)
			continue;
		mnl_attr_for_each_nested(inner, attr)
			if ((const char *)inner == at)
				snprintf(buf, bytes, "%s %s", name,
					 mc_module_attr(MC_SET_SERVER, mnl_attr_get_type(inner)));
	}
}

int mc_genl_explain(const struct nlmsghdr *request, const struct nlmsghdr *nlh, char *buf,
		    size_t bytes)
{
	char where[96] = "";
	struct mc_ack ack;

	if (!mc_ack_read(nlh, &ack)) {
		snprintf(buf, bytes, "the kernel's answer is cut off");
		return -EBADMSG;
	}
	if (!ack.error)
		return 0;
	if (ack.missing)
		snprintf(where, sizeof(where), "%s%s", ack.nest ? "server " : "",
			 mc_module_attr(ack.nest ? MC_SET_SERVER : MC_SET_NODE,
					(uint16_t)ack.missing));
	else if (ack.offset)
		mc_attr_at(request, ack.offset, where, sizeof(where));
	snprintf(buf, bytes, "%s%s%s%s%s%s", where, *where ? ": " : "", ack.text ? ack.text : "",
		 ack.text ? " (" : "", strerror(-ack.error), ack.text ? ")" : "");
	return ack.error < 0 ? ack.error : -EBADMSG;
}

/* One message. Return: 1 if more come, 0 at the end, or a negative errno. */
static int mc_genl_message(struct mc_genl *genl, const struct nlmsghdr *nlh, mc_genl_fn *fn,
			   void *arg)
{
	int done;

	if (nlh->nlmsg_seq != genl->seq)
		return 1; /* of an earlier request */
	switch (nlh->nlmsg_type) {
	case NLMSG_ERROR:
		return mc_genl_explain((const struct nlmsghdr *)genl->request, nlh, genl->error,
				       sizeof(genl->error));
	case NLMSG_DONE:
		done = 0;
		if (mnl_nlmsg_get_payload_len(nlh) >= sizeof(done))
			memcpy(&done, mnl_nlmsg_get_payload(nlh), sizeof(done));
		if (done < 0)
			snprintf(genl->error, sizeof(genl->error), "%s", strerror(-done));
		return done < 0 ? done : 0;
	case NLMSG_NOOP:
	case NLMSG_OVERRUN:
		return 1;
	default:
		if (fn && mnl_nlmsg_get_payload_len(nlh) >= sizeof(struct genlmsghdr))
			fn(arg, nlh);
		return 1;
	}
}

int mc_genl_run(struct mc_genl *genl, mc_genl_fn *fn, void *arg)
{
	struct nlmsghdr *request = (struct nlmsghdr *)genl->request;
	const struct nlmsghdr *nlh;
	ssize_t got;
	int left, ret = 1;

	*genl->error = '\0';
	if (mnl_socket_sendto(genl->socket, request, request->nlmsg_len) < 0)
		ret = -errno;
	while (ret > 0) {
		got = mnl_socket_recvfrom(genl->socket, genl->answer, MC_GENL_BYTES);
		if (got < 0) {
			ret = -errno;
			break;
		}
		left = (int)got;
		for (nlh = (const struct nlmsghdr *)genl->answer;
		     ret > 0 && mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left))
			ret = mc_genl_message(genl, nlh, fn, arg);
	}
	if (ret && !*genl->error)
		snprintf(genl->error, sizeof(genl->error), "%s", strerror(-ret));
	return ret;
}
