/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: what the files of this folder share: clients in the kernel, their queues, requests and
 * regions. What they promise their users stands in include/krcore/kernel.h.
 *
 * Locking, from the outside in: krc_clients_lock (mutex; the list of clients), krcore_client.lock (BH;
 * its lists), krcore_queue.lock (BH; state, requests). The last two are taken under krc_pool.lock,
 * whose stopped() fails the queues; inside krcore_queue.lock is krc_remote.lock.
 * None of them is held when a flow is submitted, cancelled or resumed, since krc_flow.done takes the
 * last, nor when a callback of a client is called.
 */
#ifndef KRC_API_PRIV_H
#define KRC_API_PRIV_H

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "api/client.h"
#include "api/show.h"
#include "base/limits.h"
#include "krcore/kernel.h"
#include "mem/region.h"
#include "mem/remote.h"
#include "pool/flow.h"
#include "pool/pool.h"

struct krc_api_box;
struct krc_peer;
struct krc_port;

/**
 * struct krcore_client - A client.
 * @list: entry in the list of all clients.
 * @closing: it is being closed: it is not shown, and nobody else closes it; under the lock of the list.
 * @number: from 1, never used again; as they are listed.
 * @name: as in struct krcore_client_conf.
 * @owner: its module; NULL: the kernel itself.
 * @port: its port, counted.
 * @user: whom its objects are charged to, counted.
 * @charge: charge for the client.
 * @watch: callback for the end of the port.
 * @removed: as in struct krcore_client_conf.
 * @arg: for @removed.
 * @box: its messages; NULL: it has none.
 * @lock: protects the fields that follow.
 * @gone: the port has gone.
 * @queues: its queues.
 * @regions: its regions.
 */
struct krcore_client {
	struct list_head list;
	bool closing;
	u64 number;
	char name[KRCORE_NAME_BYTES];
	struct module *owner;
	struct krc_port *port;
	struct krc_user *user;
	struct krc_charge charge;
	struct krc_pool_watch watch;
	void (*removed)(void *arg);
	void *arg;
	struct krc_api_box *box;
	spinlock_t lock;
	bool gone;
	struct list_head queues;
	struct list_head regions;
};

/**
 * enum krc_api_state - State of a queue; changed by krc_api_set_state() only.
 * @KRC_API_READY: takes requests.
 * @KRC_API_ERROR: failed: nothing more is taken.
 * @KRC_API_CLOSING: being closed.
 * @KRC_API_STATES: how many there are.
 */
enum krc_api_state {
	KRC_API_READY,
	KRC_API_ERROR,
	KRC_API_CLOSING,
	KRC_API_STATES,
};

/**
 * struct krc_api_req - A request; a queue has one for each unit of its depth.
 * @req: the request as the pool sees it; req.list is also the entry in krcore_queue.pending.
 * @order: entry in krcore_queue.free, or in the order of posting in krcore_queue.taken.
 * @queue: its queue.
 * @mr: local region, counted while it is taken.
 * @token: remote region.
 * @access: KRP_ACCESS_REMOTE_* that @token must allow.
 * @status: what it ends with; before that: errno with which krc_api_check() fails it, or 0.
 * @done: callback of the client.
 * @arg: for @done.
 */
struct krc_api_req {
	struct krc_req req;
	struct list_head order;
	struct krcore_queue *queue;
	struct krc_mr *mr;
	u64 token;
	u32 access;
	int status;
	void (*done)(struct krcore_queue *queue, void *arg, int status);
	void *arg;
};

/**
 * struct krcore_queue - A queue.
 * @client: its client.
 * @list: entry in krcore_client.queues.
 * @charge: charge for the queue.
 * @peer: peer it is connected to, counted.
 * @flow: its requests in the pool.
 * @lock: protects the fields up to @busy.
 * @state: enum krc_api_state.
 * @error: errno that put it into KRC_API_ERROR, else 0.
 * @grant: of the last remote region posted for, while @forgets is that of the peer.
 * @forgets: krc_remote_forgets() before @grant was got.
 * @free: requests that may be taken.
 * @taken: requests taken, in the order of posting.
 * @pending: of those, the ones that the flow does not have yet.
 * @held: request that the flow is held for; written by krc_api_check() without the lock, before the
 *	flow is held; cleared under it.
 * @running: a task or softirq is giving @pending to the flow.
 * @submitted: requests that the flow has.
 * @busy: requests whose callbacks have not returned.
 * @idle: woken when @busy becomes 0 while it is being closed.
 * @work: work item that renews remote references, and gives @pending to the flow.
 * @wait: waiter of @work for the peer's directory.
 * @answer: error of that READ, until @work has consumed it; 0: none.
 * @slots: the requests.
 */
struct krcore_queue {
	struct krcore_client *client;
	struct list_head list;
	struct krc_charge charge;
	struct krc_peer *peer;
	struct krc_flow flow;
	spinlock_t lock;
	enum krc_api_state state;
	int error;
	struct krc_grant grant;
	u64 forgets;
	struct list_head free;
	struct list_head taken;
	struct list_head pending;
	struct krc_api_req *held;
	bool running;
	u32 submitted;
	u32 busy;
	wait_queue_head_t idle;
	struct work_struct work;
	struct krc_remote_wait wait;
	int answer;
	struct krc_api_req slots[];
};

/**
 * struct krcore_region - A region of a client.
 * @client: its client.
 * @list: entry in krcore_client.regions.
 * @mr: the region.
 * @closer: work item that closes it: no signal of a task shortens its waits.
 * @closed: completed when it has.
 */
struct krcore_region {
	struct krcore_client *client;
	struct list_head list;
	struct krc_mr *mr;
	struct work_struct closer;
	struct completion closed;
};

extern struct workqueue_struct *krc_api_wq;
extern struct workqueue_struct *krc_api_close_wq;

/**
 * krc_client_make() - Make a client of a port.
 * @port: port; its reference is the client's if there is no error.
 * @conf: as krcore_client_open() has it; valid.
 *
 * Context: may sleep.
 * Return: as krcore_client_open().
 */
struct krcore_client *krc_client_make(struct krc_port *port, const struct krcore_client_conf *conf);

/**
 * krc_clients_close_of() - Close the clients that a module has left open, and wait for those that a task of
 * it is still closing.
 * @owner: module whose text is still there, and which begins no call.
 *
 * Context: may sleep.
 * Return: how many it has closed.
 */
u32 krc_clients_close_of(const struct module *owner);

/**
 * krc_api_set_state() - Change the state of a queue.
 * @queue: queue.
 * @state: new state.
 * @error: errno kept with KRC_API_ERROR, the first one that is not -ENOTCONN; else ignored.
 *
 * Context: any that may take a BH-safe spinlock.
 * Return: true if the current state allowed the change and it was made.
 */
bool krc_api_set_state(struct krcore_queue *queue, enum krc_api_state state, int error);

/**
 * krc_api_queue_stop() - The first half of krcore_queue_close(): nothing more is taken, and no callback
 * runs or will run any more.
 * @queue: queue, not closed. Its list entry is free then. Posts to it, such as callbacks of other queues
 *	may still make, say -ESHUTDOWN.
 *
 * Context: may sleep.
 */
void krc_api_queue_stop(struct krcore_queue *queue);

/**
 * krc_api_queue_finish() - The second half: free it.
 * @queue: queue, stopped, to which nobody posts any more.
 *
 * Context: may sleep.
 */
void krc_api_queue_finish(struct krcore_queue *queue);

#define KRC_API_ROUNDS 16 /* times that a run goes on with what was posted meanwhile */

/**
 * krc_api_run() - Give the pending requests of a queue to its flow, or end them if it takes none.
 * @queue: queue.
 *
 * If another one does so already, it does it for this call, too. At most KRC_API_ROUNDS at once; a
 * work item does the rest.
 * Context: any but hard interrupts, no lock held.
 */
void krc_api_run(struct krcore_queue *queue);

/**
 * krc_api_done() - Requests of a queue have ended: krc_flow.done.
 * @flow: krcore_queue.flow.
 * @reqs: see struct krc_flow.
 * @nr: see struct krc_flow.
 *
 * Context: as krc_flow.done.
 */
void krc_api_done(struct krc_flow *flow, struct list_head *reqs, u32 nr);

/**
 * krc_api_check() - Whether a request may be posted to the hardware now: krc_flow.check.
 * @req: krc_api_req.req.
 *
 * Context: as krc_flow.check.
 * Return: as krc_flow.check.
 */
int krc_api_check(struct krc_req *req);

/**
 * krc_api_work_init() - Set up what renews remote references of a queue.
 * @queue: queue with its client.
 *
 * Context: any.
 */
void krc_api_work_init(struct krcore_queue *queue);

/**
 * krc_api_work_stop() - Stop that.
 * @queue: queue with its peer, being closed; no request is taken.
 *
 * Context: may sleep.
 */
void krc_api_work_stop(struct krcore_queue *queue);

#endif /* KRC_API_PRIV_H */
