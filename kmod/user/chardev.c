// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: the file operations of /dev/krcore: system calls become calls on a context.
 *
 * An ioctl is matched by its exact number, and its whole structure is copied in and out as
 * the number says. All structures have the same layout for 32-bit callers.
 * Locking: none of its own; several threads may call on one file at once.
 */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/uaccess.h>

#include "user/chardev.h"
#include "user/lookup.h"
#include "user/post.h"
#include "user/posted.h"
#include "user/queue.h"
#include "user/recv.h"
#include "user/send.h"
#include "user/service.h"
#include "user/wait.h"
#include "user/watch.h"

/* Large enough for any ioctl structure of krp_ioctl.h. */
union krc_ioc_arg {
	struct krp_query query;
	struct krp_setup setup;
	struct krp_port_info port;
	struct krp_mr_reg mr_reg;
	struct krp_mr_dereg mr_dereg;
	struct krp_mr_dereg_many mr_dereg_many;
	struct krp_queue_create queue_create;
	struct krp_queue_query queue_query;
	struct krp_queue_close queue_close;
	struct krp_bind bind;
	struct krp_wait wait;
	struct krp_record_lookup lookup;
	struct krp_record_publish publish;
	struct krp_record_watch watch;
	struct krp_inbox inbox;
	struct krp_open open;
	struct krp_accept accept;
	struct krp_send send;
	struct krp_recv recv;
	struct krp_large large;
	struct krp_cancel cancel;
	struct krp_shut shut;
	struct krp_conn_query conn_query;
	struct krp_post_recv post_recv;
};

static int krc_ioc_message(struct krc_context *ctx, unsigned int cmd, union krc_ioc_arg *arg)
{
	switch (cmd) {
	case KRP_IOC_INBOX:
		return krc_ioc_inbox(ctx, &arg->inbox);
	case KRP_IOC_OPEN:
		return krc_ioc_open(ctx, &arg->open);
	case KRP_IOC_ACCEPT:
		return krc_ioc_accept(ctx, &arg->accept);
	case KRP_IOC_SEND:
		return krc_ioc_send(ctx, &arg->send);
	case KRP_IOC_RECV:
		return krc_ioc_recv(ctx, &arg->recv);
	case KRP_IOC_LARGE:
		return krc_ioc_large(ctx, &arg->large);
	case KRP_IOC_CANCEL:
		return krc_ioc_cancel(ctx, &arg->cancel);
	case KRP_IOC_SHUT:
		return krc_ioc_shut(ctx, &arg->shut);
	case KRP_IOC_CONN_QUERY:
		return krc_ioc_conn_query(ctx, &arg->conn_query);
	case KRP_IOC_POST_RECV:
		return krc_ioc_post_recv(ctx, &arg->post_recv);
	default:
		return -ENOTTY;
	}
}

static int krc_ioc_call(struct krc_context *ctx, unsigned int cmd, union krc_ioc_arg *arg)
{
	switch (cmd) {
	case KRP_IOC_QUERY:
		return krc_ioc_query(ctx, &arg->query);
	case KRP_IOC_SETUP:
		return krc_ioc_setup(ctx, &arg->setup);
	case KRP_IOC_PORT:
		return krc_ioc_port(ctx, &arg->port);
	case KRP_IOC_MR_REG:
		return krc_ioc_mr_reg(ctx, &arg->mr_reg);
	case KRP_IOC_MR_DEREG:
		return krc_ioc_mr_dereg(ctx, &arg->mr_dereg);
	case KRP_IOC_MR_DEREG_MANY:
		return krc_ioc_mr_dereg_many(ctx, &arg->mr_dereg_many);
	case KRP_IOC_QUEUE_CREATE:
		return krc_ioc_queue_create(ctx, &arg->queue_create);
	case KRP_IOC_QUEUE_QUERY:
		return krc_ioc_queue_query(ctx, &arg->queue_query);
	case KRP_IOC_QUEUE_CLOSE:
		return krc_ioc_queue_close(ctx, &arg->queue_close);
	case KRP_IOC_BIND:
		return krc_ioc_bind(ctx, &arg->bind);
	case KRP_IOC_WAIT:
		return krc_ioc_wait(ctx, &arg->wait);
	case KRP_IOC_LOOKUP:
		return krc_ioc_lookup(ctx, &arg->lookup);
	case KRP_IOC_PUBLISH:
		return krc_ioc_publish(ctx, &arg->publish);
	case KRP_IOC_WATCH:
		return krc_ioc_watch(ctx, &arg->watch);
	default:
		return krc_ioc_message(ctx, cmd, arg);
	}
}

/* copy_to_user() failed: undo, since the caller never learned the new object's number. */
static void krc_ioc_undo(struct krc_context *ctx, unsigned int cmd, const union krc_ioc_arg *arg)
{
	struct krp_mr_dereg dereg = { .handle = arg->mr_reg.handle };
	struct krp_queue_close close = { .queue = arg->queue_create.queue };
	struct krp_shut shut = { .connection = arg->open.connection, .how = KRP_SHUT_ABORT };

	if (cmd == KRP_IOC_OPEN)
		krc_ioc_shut(ctx, &shut);
	if (cmd == KRP_IOC_QUEUE_CREATE)
		krc_ioc_queue_close(ctx, &close);
	if (cmd == KRP_IOC_MR_REG)
		krc_ioc_mr_dereg(ctx, &dereg);
}

/* Whether the structure is copied back: on success, and with errors that it explains. */
static bool krc_ioc_tells(unsigned int cmd, int err)
{
	return _IOC_DIR(cmd) & _IOC_READ && (!err || (cmd == KRP_IOC_LOOKUP && err == -ENOENT) ||
					     (cmd == KRP_IOC_RECV && err == -EMSGSIZE));
}

static int krc_chardev_post_get(struct krp_post *arg, const struct krp_post __user *uarg)
{
	if (!user_read_access_begin(uarg, sizeof(*uarg)))
		return -EFAULT;
	unsafe_get_user(arg->wrs, &uarg->wrs, fault);
	unsafe_get_user(arg->count, &uarg->count, fault);
	unsafe_get_user(arg->queue, &uarg->queue, fault);
	unsafe_get_user(arg->flags, &uarg->flags, fault);
	unsafe_get_user(arg->rsvd, &uarg->rsvd, fault);
	user_read_access_end();
	return 0;

fault:
	user_read_access_end();
	return -EFAULT;
}

static int krc_chardev_post_put(const struct krp_post *arg, struct krp_post __user *uarg)
{
	if (!user_write_access_begin(uarg, sizeof(*uarg)))
		return -EFAULT;
	unsafe_put_user(arg->taken, &uarg->taken, fault);
	unsafe_put_user(arg->error, &uarg->error, fault);
	user_write_access_end();
	return 0;

fault:
	user_write_access_end();
	return -EFAULT;
}

/* KRP_IOC_POST by a way of its own: only what is read or written of the structure is copied. */
static long krc_chardev_post(struct krc_context *ctx, void __user *uarg)
{
	struct krp_post arg;
	int err;

	if (krc_chardev_post_get(&arg, uarg))
		return -EFAULT;
	err = krc_ioc_post(ctx, &arg);
	if (!err && krc_chardev_post_put(&arg, uarg))
		return -EFAULT; /* what was taken is in the queue all the same */
	return err;
}

/* KRP_IOC_CONNECT likewise. */
static long krc_chardev_connect(struct krc_context *ctx, void __user *uarg)
{
	struct krp_queue_close close = {};
	struct krp_connect arg;
	int err;

	if (copy_from_user(&arg, uarg, sizeof(arg)))
		return -EFAULT;
	err = krc_ioc_connect(ctx, &arg);
	if (err || !copy_to_user(uarg, &arg, sizeof(arg)))
		return err;
	close.queue = arg.queue;
	if (arg.flags & KRP_CONNECT_CREATE) /* the caller never learned its number */
		krc_ioc_queue_close(ctx, &close);
	return -EFAULT;
}

static long krc_chardev_call(struct krc_context *ctx, unsigned int cmd, void __user *uarg)
{
	size_t bytes = _IOC_SIZE(cmd);
	union krc_ioc_arg arg = {};
	int err;

	if (_IOC_TYPE(cmd) != KRP_IOC_MAGIC || bytes > sizeof(arg))
		return -ENOTTY;
	if (_IOC_DIR(cmd) & _IOC_WRITE && copy_from_user(&arg, uarg, bytes))
		return -EFAULT;
	err = krc_ioc_call(ctx, cmd, &arg);
	if (krc_ioc_tells(cmd, err) && copy_to_user(uarg, &arg, bytes)) {
		krc_ioc_undo(ctx, cmd, &arg);
		return -EFAULT;
	}
	return err;
}

static long krc_chardev_ioctl(struct file *file, unsigned int cmd, unsigned long user)
{
	if (cmd == KRP_IOC_POST)
		return krc_chardev_post(file->private_data, (void __user *)user);
	if (cmd == KRP_IOC_CONNECT)
		return krc_chardev_connect(file->private_data, (void __user *)user);
	return krc_chardev_call(file->private_data, cmd, (void __user *)user);
}

__poll_t krc_chardev_poll(struct file *file, poll_table *table)
{
	struct krc_context *ctx = file->private_data;
	__poll_t mask = 0;

	if (!poll_does_not_wait(table) &&
	    (!krc_wait_room(&ctx->wait) || !krc_wait_room(&ctx->changed)))
		return EPOLLERR;
	poll_wait(file, &ctx->wait, table);
	/*
	 * Pairs with the barrier of krc_wait_wake(): it sees the sleeper, or this what has come. The
	 * poll_wait() of kernels before 2025 has none, and no lock is taken to look at the ring.
	 */
	smp_mb();
	if (!krc_context_port(ctx) || READ_ONCE(ctx->dead))
		mask |= EPOLLERR;
	if (krc_context_port(ctx) &&
	    (krc_ring_pending(&ctx->ring) || krc_mailbox_pending(krc_mailbox_of(ctx))))
		mask |= EPOLLIN | EPOLLRDNORM;
	return mask | krc_watch_poll(ctx, file, table);
}

static ssize_t krc_chardev_read(struct file *file, char __user *buf, size_t bytes, loff_t *pos)
{
	return krc_watch_read(file->private_data, buf, bytes, file->f_flags & O_NONBLOCK);
}

static int krc_chardev_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct krc_context *ctx = file->private_data;

	if (!krc_context_port(ctx))
		return -EBADFD;
	return krc_ring_mmap(&ctx->ring, vma);
}

static int krc_chardev_open(struct inode *inode, struct file *file)
{
	struct krc_context *ctx = krc_context_open();

	if (IS_ERR(ctx))
		return PTR_ERR(ctx);
	file->private_data = ctx;
	return stream_open(inode, file);
}

static int krc_chardev_release(struct inode *inode, struct file *file)
{
	krc_context_close(file->private_data);
	return 0;
}

static const struct file_operations krc_chardev_fops = {
	.owner = THIS_MODULE,
	.open = krc_chardev_open,
	.release = krc_chardev_release,
	.read = krc_chardev_read,
	.unlocked_ioctl = krc_chardev_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = krc_chardev_mmap,
	.poll = krc_chardev_poll,
};

static struct miscdevice krc_chardev = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "krcore",
	.fops = &krc_chardev_fops,
	.mode = 0666, /* limits are by user and cgroup, not by file mode */
};

int krc_chardev_init(void)
{
	int err;

	krc_context_wq = alloc_workqueue("krcore", WQ_UNBOUND, 0);
	if (!krc_context_wq)
		return -ENOMEM;
	/* a second one, because work on krc_context_wq may wait for renew work */
	krc_renew_wq = alloc_workqueue("krcore_renew", WQ_UNBOUND, 0);
	krc_watch_init();
	err = krc_renew_wq ? misc_register(&krc_chardev) : -ENOMEM;
	if (!err)
		return 0;
	krc_watch_exit();
	if (krc_renew_wq)
		destroy_workqueue(krc_renew_wq);
	destroy_workqueue(krc_context_wq);
	return err;
}

void krc_chardev_exit(void)
{
	misc_deregister(&krc_chardev);
	destroy_workqueue(krc_context_wq); /* runs the releases of closed contexts first */
	krc_watch_exit();
	krc_changes_exit();
	destroy_workqueue(krc_renew_wq);
	rcu_barrier(); /* peers are freed by kfree_rcu() */
}
