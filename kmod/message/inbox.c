// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns: inboxes, letters, and the memory of outs.
 *
 * The memory of a letter is that of its message, so what a port has received and programs have not
 * taken is bounded by the windows of its streams (krc_inbox.units_max), and receive buffers go back
 * to the hardware at once. It is charged to the program that it is for.
 * Locking: krc_inbox.lock, inside krc_stream.lock.
 */
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "message/message_priv.h"

void krc_inbox_init(struct krc_inbox *inbox, u32 units_max,
		    void (*arrived)(struct krc_inbox *inbox))
{
	spin_lock_init(&inbox->lock);
	INIT_LIST_HEAD(&inbox->letters);
	inbox->nr = 0;
	inbox->streams = 0;
	inbox->units_max = units_max;
	inbox->arrived = arrived;
	inbox->place = NULL;
	inbox->unlistened = NULL;
	inbox->memcg = NULL;
	inbox->charge = NULL;
}

void *krc_inbox_alloc(struct mem_cgroup *memcg, size_t bytes)
{
	struct mem_cgroup *old = set_active_memcg(memcg);
	/* __GFP_HIGH, of which GFP_ATOMIC consists, is what may go beyond the limit */
	void *memory = kmalloc(bytes, GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN);

	set_active_memcg(old);
	return memory;
}

/* A letter is in its inbox: in the list of its stream, too. @before: in front of the others. */
static void krc_letter_own(struct krc_letter *letter, bool before)
{
	struct list_head *letters = &letter->stream->in.letters;

	if (letter->kind == KRC_LETTER_OFFER)
		return; /* which a stream does not take along */
	if (before)
		list_add(&letter->mine, letters);
	else
		list_add_tail(&letter->mine, letters);
}

struct krc_letter *krc_inbox_take(struct krc_inbox *inbox)
{
	struct krc_letter *letter;

	spin_lock_bh(&inbox->lock);
	letter = list_first_entry_or_null(&inbox->letters, struct krc_letter, list);
	if (letter) {
		list_del_init(&letter->list);
		list_del_init(&letter->mine);
		inbox->nr--;
	}
	spin_unlock_bh(&inbox->lock);
	return letter;
}

void krc_inbox_untake(struct krc_inbox *inbox, struct krc_letter *letter)
{
	spin_lock_bh(&inbox->lock);
	list_add(&letter->list, &inbox->letters);
	krc_letter_own(letter, true);
	inbox->nr++;
	spin_unlock_bh(&inbox->lock);
}

void krc_inbox_put(struct krc_inbox *inbox, struct krc_letter *letter)
{
	spin_lock_bh(&inbox->lock);
	list_add_tail(&letter->list, &inbox->letters);
	krc_letter_own(letter, false);
	inbox->nr++;
	spin_unlock_bh(&inbox->lock);
}

void krc_inbox_join(struct krc_inbox *inbox)
{
	spin_lock_bh(&inbox->lock);
	inbox->streams++;
	spin_unlock_bh(&inbox->lock);
}

void krc_inbox_leave(struct krc_inbox *inbox, struct krc_stream *st, struct list_head *ret_letters)
{
	struct krc_letter *letter, *next;

	spin_lock_bh(&inbox->lock);
	inbox->streams--;
	/* as many as its window has, whatever others have there */
	list_for_each_entry_safe(letter, next, &st->in.letters, mine) {
		list_del_init(&letter->mine);
		list_move_tail(&letter->list, ret_letters);
		inbox->nr--;
	}
	spin_unlock_bh(&inbox->lock);
}

void krc_inbox_end(struct krc_inbox *inbox)
{
	struct krc_letter *letter;

	while ((letter = krc_inbox_take(inbox)))
		krc_letter_free(letter);
}

struct krc_letter *krc_letter_new(struct krc_stream *st, enum krc_letter_kind kind,
				  const struct krp_message *m, const void *bytes)
{
	u32 length = m ? krp_message_payload(m) : 0;
	struct krc_letter *letter;

	letter = krc_inbox_alloc(st->memcg, struct_size(letter, bytes, length));
	if (!letter)
		return NULL;
	INIT_LIST_HEAD(&letter->list);
	INIT_LIST_HEAD(&letter->mine);
	letter->stream = krc_stream_get(st);
	letter->kind = kind;
	letter->notify = m && m->type == KRP_MESSAGE_DATA && m->flags & KRP_MESSAGE_NOTIFY;
	letter->posted = false;
	letter->offset = 0;
	letter->length = m ? le32_to_cpu(m->length) : 0;
	letter->imm = m ? le32_to_cpu(m->imm) : 0;
	letter->seq = m ? le64_to_cpu(m->seq) : 0;
	if (length)
		memcpy(letter->bytes, bytes, length);
	return letter;
}

void krc_letter_drop(struct krc_letter *letter)
{
	if (!letter)
		return;
	krc_stream_put(letter->stream);
	kfree(letter);
}

/* The program has a message, or has seen that there is a large one. */
static void krc_letter_consumed(struct krc_letter *letter)
{
	struct krc_stream *st = letter->stream;
	u32 type = letter->kind == KRC_LETTER_LARGE ? KRP_MESSAGE_ANNOUNCE : KRP_MESSAGE_DATA;

	spin_lock_bh(&st->lock);
	st->in.backlog--;
	krp_stream_consumed(&st->s, 1, krp_message_units(type, letter->length));
	krc_stream_pull(st);
	spin_unlock_bh(&st->lock);
	krc_stream_run(st);
}

void krc_letter_free(struct krc_letter *letter)
{
	if (letter->kind == KRC_LETTER_OFFER) {
		krc_stream_refuse(letter, KRP_REFUSE_PROGRAM);
		return;
	}
	if (letter->kind != KRC_LETTER_ENDED)
		krc_letter_consumed(letter);
	else
		WRITE_ONCE(letter->stream->end.ending, false);
	krc_letter_drop(letter);
}

struct krc_out *krc_out_alloc(u32 bytes, gfp_t gfp)
{
	struct krc_out *out;

	if (bytes > KRP_MESSAGE_DATA_MAX)
		return NULL;
	out = kzalloc(struct_size(out, bytes, bytes), gfp);
	if (!out)
		return NULL;
	INIT_LIST_HEAD(&out->list);
	out->length = bytes;
	return out;
}

void krc_out_free(struct krc_out *out)
{
	kfree(out);
}
