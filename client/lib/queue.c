// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Queues of a node: connect, bind, post.
 *
 * Nothing but the system calls of proto/krp_ioctl.h. Posting hands the caller's
 * requests to the module as they are, so their layout is that of the ABI.
 */
#include <errno.h>
#include <string.h>

#include "client/lib/base.h"
#include "client/lib/node.h"
#include "client/lib/out.h"
#include "common/gid.h"

#define KRL_CONNECT_TIMEOUT_MS 5000

#define KRL_SAME(field) \
	_Static_assert(offsetof(struct krcore_wr, field) == offsetof(struct krp_wr, field), \
		       "krcore_wr." #field)

KRL_SAME(user_data);
KRL_SAME(local_addr);
KRL_SAME(remote_addr);
KRL_SAME(remote_token);
KRL_SAME(local_mr);
KRL_SAME(length);
KRL_SAME(opcode);
KRL_SAME(flags);
KRL_SAME(rsvd);
KRL_SAME(compare_add);
KRL_SAME(swap);
_Static_assert(sizeof(struct krcore_wr) == sizeof(struct krp_wr), "krcore_wr");

#define KRL_EQUAL(name) _Static_assert((KRCORE_##name) == (KRP_##name), #name)

KRL_EQUAL(OP_READ);
KRL_EQUAL(OP_WRITE);
KRL_EQUAL(OP_CMP_SWAP);
KRL_EQUAL(OP_FETCH_ADD);
KRL_EQUAL(WR_FENCE);
KRL_EQUAL(WR_IDEMPOTENT);
KRL_EQUAL(POST_MAX);
KRL_EQUAL(QUEUE_DEPTH_MAX);
KRL_EQUAL(SERVICE_USER_MIN);
KRL_EQUAL(CONNECT_FRESH);
KRL_EQUAL(QUEUE_IDLE);
KRL_EQUAL(QUEUE_CONNECTING);
KRL_EQUAL(QUEUE_READY);
KRL_EQUAL(QUEUE_ERROR);

int krcore_queue_create(struct krcore_node *node, uint32_t depth, uint32_t *ret_queue)
{
	struct krp_queue_create create = { .depth = depth };
	int err = krl_node_call(node, KRP_IOC_QUEUE_CREATE, &create);

	if (err)
		return krl_error(err, "making a queue of depth %u: %s", depth, strerror(-err));
	*ret_queue = create.queue;
	return 0;
}

/*
 * The call of both ways to connect; @connect says which queue, or how deep a new one is,
 * @flags is what the program says.
 */
static int krl_connect(struct krcore_node *node, struct krp_connect *connect,
		       const struct krcore_key *peer, uint32_t timeout_ms, uint32_t flags,
		       struct krcore_connect_info *ret_info)
{
	struct krcore_connect_info info;
	int err;

	if (flags & KRP_CONNECT_CREATE)
		return -EINVAL; /* not for programs to say */
	connect->flags |= flags;
	connect->service = peer->service;
	connect->timeout_ms = timeout_ms ? timeout_ms : KRL_CONNECT_TIMEOUT_MS;
	memcpy(connect->gid, peer->gid, sizeof(connect->gid));
	err = krl_node_call(node, KRP_IOC_CONNECT, connect);
	if (err)
		return err;
	info = (struct krcore_connect_info){
		.generation = connect->generation,
		.reads = connect->reads,
	};
	krl_out_fill(ret_info, &info, sizeof(info));
	return 0;
}

int krcore_queue_open(struct krcore_node *node, uint32_t depth, const struct krcore_key *peer,
		      uint32_t timeout_ms, uint32_t flags, uint32_t *ret_queue,
		      struct krcore_connect_info *ret_info)
{
	struct krp_connect connect = { .flags = KRP_CONNECT_CREATE, .depth = depth };
	char text[KRU_GID_TEXT];
	int err = KRL_CONNECT_INFO_CHECK(ret_info);

	if (err)
		return err;
	err = krl_connect(node, &connect, peer, timeout_ms, flags, ret_info);
	if (err)
		return krl_error(err, "opening a queue of depth %u to %s service %u: %s", depth,
				 kru_gid_format(peer->gid, text), peer->service, strerror(-err));
	*ret_queue = connect.queue;
	return 0;
}

int krcore_queue_connect(struct krcore_node *node, uint32_t queue, const struct krcore_key *peer,
			 uint32_t timeout_ms, uint32_t flags, struct krcore_connect_info *ret_info)
{
	struct krp_connect connect = { .queue = queue };
	char text[KRU_GID_TEXT];
	int err = KRL_CONNECT_INFO_CHECK(ret_info);

	if (err)
		return err;
	err = krl_connect(node, &connect, peer, timeout_ms, flags, ret_info);
	if (err)
		return krl_error(err, "connecting queue %u to %s service %u: %s", queue,
				 kru_gid_format(peer->gid, text), peer->service, strerror(-err));
	return 0;
}

int krcore_queue_query(struct krcore_node *node, uint32_t queue, struct krcore_queue_info *ret_info)
{
	struct krp_queue_query query = { .queue = queue };
	int err = KRL_QUEUE_INFO_CHECK(ret_info);
	struct krcore_queue_info info;

	if (err)
		return err;
	err = krl_node_call(node, KRP_IOC_QUEUE_QUERY, &query);
	if (err)
		return krl_error(err, "queue %u: %s", queue, strerror(-err));
	info = (struct krcore_queue_info){
		.state = query.state,
		.error = query.error,
		.outstanding = query.outstanding,
		.posted = query.posted,
		.completed = query.completed,
	};
	krl_out_fill(ret_info, &info, sizeof(info));
	return 0;
}

int krcore_queue_close(struct krcore_node *node, uint32_t queue)
{
	struct krp_queue_close close = { .queue = queue };
	int err = krl_node_call(node, KRP_IOC_QUEUE_CLOSE, &close);

	if (err)
		return krl_error(err, "closing queue %u: %s", queue, strerror(-err));
	return 0;
}

static int krl_bind(struct krcore_node *node, uint16_t service, uint32_t timeout_ms, uint16_t flags)
{
	struct krp_bind bind = {
		.service = service,
		.flags = flags,
		.timeout_ms = timeout_ms ? timeout_ms : KRL_CONNECT_TIMEOUT_MS,
	};
	int err = krl_node_call(node, KRP_IOC_BIND, &bind);

	if (err)
		return krl_error(err, "%sbinding service %u: %s", flags & KRP_BIND_UNDO ? "un" : "",
				 service, strerror(-err));
	return 0;
}

int krcore_bind(struct krcore_node *node, uint16_t service, uint32_t timeout_ms)
{
	return krl_bind(node, service, timeout_ms, 0);
}

int krcore_unbind(struct krcore_node *node, uint16_t service)
{
	return krl_bind(node, service, 0, KRP_BIND_UNDO);
}

static void krl_wr_fill(struct krcore_wr *wr, uint8_t opcode, const struct krcore_mr *mr,
			const void *local, uint32_t length, const struct krcore_region_ref *remote,
			uint64_t offset, uint64_t user_data)
{
	*wr = (struct krcore_wr){
		.user_data = user_data,
		.local_addr = (uintptr_t)local,
		.remote_addr = remote->addr + offset,
		.remote_token = remote->token,
		.local_mr = mr->handle,
		.length = length,
		.opcode = opcode,
	};
}

void krcore_wr_read(struct krcore_wr *wr, const struct krcore_mr *mr, void *local, uint32_t length,
		    const struct krcore_region_ref *remote, uint64_t offset, uint64_t user_data)
{
	krl_wr_fill(wr, KRCORE_OP_READ, mr, local, length, remote, offset, user_data);
}

void krcore_wr_write(struct krcore_wr *wr, const struct krcore_mr *mr, const void *local,
		     uint32_t length, const struct krcore_region_ref *remote, uint64_t offset,
		     uint64_t user_data)
{
	krl_wr_fill(wr, KRCORE_OP_WRITE, mr, local, length, remote, offset, user_data);
}

static int krl_post(struct krcore_node *node, uint32_t queue, const struct krcore_wr *wrs,
		    unsigned int nr, uint32_t flags, int *ret_error)
{
	struct krp_post post = {
		.wrs = (uintptr_t)wrs,
		.count = nr,
		.queue = queue,
		.flags = flags,
	};
	int err = krl_node_call(node, KRP_IOC_POST, &post);

	if (err == -EAGAIN) /* in the course of things: no text is made up for it */
		return krl_error_const(err, "the queue is full");
	if (err)
		return krl_error(err, "posting to queue %u: %s", queue, strerror(-err));
	if (ret_error)
		*ret_error = post.error;
	return (int)post.taken;
}

int krcore_post(struct krcore_node *node, uint32_t queue, const struct krcore_wr *wrs,
		unsigned int nr, int *ret_error)
{
	return krl_post(node, queue, wrs, nr, 0, ret_error);
}

int krcore_post_wait(struct krcore_node *node, uint32_t queue, const struct krcore_wr *wrs,
		     unsigned int nr, int *ret_error)
{
	return krl_post(node, queue, wrs, nr, KRP_POST_WAIT, ret_error);
}

static int krl_post_one(struct krcore_node *node, uint32_t queue, const struct krcore_wr *wr)
{
	int taken = krcore_post(node, queue, wr, 1, NULL);

	return taken < 0 ? taken : 0;
}

int krcore_post_read(struct krcore_node *node, uint32_t queue, const struct krcore_mr *mr,
		     void *local, uint32_t length, const struct krcore_region_ref *remote,
		     uint64_t offset, uint64_t user_data)
{
	struct krcore_wr wr;

	krcore_wr_read(&wr, mr, local, length, remote, offset, user_data);
	return krl_post_one(node, queue, &wr);
}

int krcore_post_write(struct krcore_node *node, uint32_t queue, const struct krcore_mr *mr,
		      const void *local, uint32_t length, const struct krcore_region_ref *remote,
		      uint64_t offset, uint64_t user_data)
{
	struct krcore_wr wr;

	krcore_wr_write(&wr, mr, local, length, remote, offset, user_data);
	return krl_post_one(node, queue, &wr);
}
