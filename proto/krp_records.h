/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * The records that a publisher keeps up, and what each MetaServer knows of them: a state
 * machine without memory, lock, clock or transport of its own. Normative.
 *
 * Sessions (krp_session.h, whose head says who drives them) send what is due; this header
 * decides what that is.
 *
 * A RECORD AT A SERVER
 *   never      nothing is known there, and nothing is to be sent
 *   dirty      PUBLISH, or WITHDRAW if the record is withdrawn, is due
 *   sent       it was sent and is not answered
 *   acked      the server has acknowledged the present version
 *   refused    the server has refused it; it is sent again at the next renewal
 *   A change of the record makes it dirty everywhere. Dirty records are sent in the order in
 *   which they became dirty, so that one that changes constantly does not starve others; only
 *   the node's own goes first, since peers can do nothing without it. Requests to a server
 *   arrive in order, and each is remembered with the version of its record, so that a late
 *   answer for an older version does not count for a newer one.
 *
 * WHEN RECORDS ARE SENT AGAIN
 *   - At each attach, all of them, also to the same incarnation: while the session was down
 *     the lease may have run out, and another owner may have taken some of them, which the
 *     number of records in the answer to RENEW does not tell.
 *   - Those acknowledged, if RENEW is answered late, by "no such record" or with fewer records
 *     than the server has acknowledged: the lease ran out there.
 *   - One that the server reports as GONE though it is acknowledged and not withdrawn, and of
 *     our generation: another session of its owner withdrew it, or the lease was over.
 *   - Those refused, at each renewal; also a withdrawal.
 *
 * WITHDRAWING
 *   A withdrawn record stays until no server is dirty, sent or refused, or until every lease
 *   of it is over (twice the longest, and a second): all records of an owner share one lease,
 *   so a server that was not told would keep the record as long as the others. A server that
 *   cannot have it needs no WITHDRAW: it was not sent there, by this publisher or, if it was
 *   adopted, by one before it. "No such record", "another owner's" and "a newer generation's"
 *   mean success: none of ours is there.
 *
 * ORPHANS
 *   A publisher that ends before a server has confirmed a withdrawal leaves the record behind
 *   as an orphan, with the token (krp_welcome.token) of its session for each such server.
 *   Another publisher of the same node adopts it: it withdraws it, for an hour at most, since
 *   a session from the same address keeps its lease alive, when there is one again.
 *   KRP_ST_FOREIGN_GID ends that at a server: it takes none from another address, and the
 *   lease, which nobody renews then, ends the record. An adopted record goes back when its
 *   address has a publisher again.
 *
 * MEMORY
 *   Records and chains of the hash are the caller's. A record that is not needed any more is
 *   put on a list, from which the caller takes it with krp_records_trash().
 *
 * Locking: none here; a publisher and all its sessions are under one lock of the caller.
 */
#ifndef KRP_RECORDS_H
#define KRP_RECORDS_H

#include "krp_msg.h"

#define KRP_PEERS_MAX 64 /* servers of a publisher */
#define KRP_NS_PER_MS 1000000ULL
#define KRP_ADOPTED_NS (3600 * 1000 * KRP_NS_PER_MS) /* how long an orphan is withdrawn */
#define KRP_FOREVER_NS (~0ULL)

/**
 * struct krp_list - A link of a list, or its head.
 * @next: next one; the head's: first.
 * @prev: the one before; the head's: last.
 */
struct krp_list {
	struct krp_list *next;
	struct krp_list *prev;
};

/* The structure of which *@link is the member @member. */
#define krp_entry(link, type, member) ((type *)(void *)((char *)(link)-offsetof(type, member)))

/* Initializer of a list that is empty, @head. */
#define KRP_LIST_INIT(head) \
	{ \
		&(head), &(head) \
	}

/** krp_list_init() - An empty list, or a link that is in none. @l: head or link. Context: any. */
static inline void krp_list_init(struct krp_list *l)
{
	l->next = l;
	l->prev = l;
}

/** krp_list_empty() - Whether a list is empty. @l: head. Context: any. Return: 1 or 0. */
static inline int krp_list_empty(const struct krp_list *l)
{
	return l->next == l;
}

/** krp_list_add() - Insert a link. @l: in no list. @before: link or head. Context: any. */
static inline void krp_list_add(struct krp_list *l, struct krp_list *before)
{
	l->next = before;
	l->prev = before->prev;
	before->prev->next = l;
	before->prev = l;
}

/** krp_list_del() - Take a link out of its list, if it is in one. @l: link. Context: any. */
static inline void krp_list_del(struct krp_list *l)
{
	l->prev->next = l->next;
	l->next->prev = l->prev;
	krp_list_init(l);
}

/**
 * krp_list_splice() - Move all of a list to the end of another.
 * @from: head; empty afterwards.
 * @to: head.
 *
 * Context: any.
 */
static inline void krp_list_splice(struct krp_list *from, struct krp_list *to)
{
	if (krp_list_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	krp_list_init(from);
}

/**
 * enum krp_at - What a server knows of a record; see the head of this file.
 * @KRP_AT_NEVER: nothing, and nothing is due.
 * @KRP_AT_DIRTY: a request is due.
 * @KRP_AT_SENT: it is not answered.
 * @KRP_AT_ACKED: acknowledged.
 * @KRP_AT_REFUSED: refused.
 * @KRP_AT_STATES: how many there are.
 */
enum krp_at {
	KRP_AT_NEVER,
	KRP_AT_DIRTY,
	KRP_AT_SENT,
	KRP_AT_ACKED,
	KRP_AT_REFUSED,
	KRP_AT_STATES,
};

/**
 * struct krp_record_at - A record at one server.
 * @link: in krp_peer.list[@state].
 * @rec: the record.
 * @answered: version of the last answer.
 * @incarnation: of the server that issued @token; 0: there is none.
 * @answer: that answer, 0 or a negative errno as the server sent it.
 * @err: last refusal since the record changed; 0 once it is acknowledged.
 * @state: enum krp_at.
 * @there: the server may have the record.
 * @token: of the session of the publisher that left the record behind.
 */
struct krp_record_at {
	struct krp_list link;
	struct krp_record *rec;
	__u64 answered;
	__u64 incarnation;
	int answer;
	int err;
	__u8 state;
	__u8 there;
	__u8 token[KRP_TOKEN_BYTES];
};

/**
 * struct krp_record - A record that is kept up, or withdrawn and not yet forgotten.
 * @link: in krp_publisher.records, or in its trash.
 * @gone_link: in krp_publisher.gone while @gone.
 * @chain: next of the same hash.
 * @key: name.
 * @value: value.
 * @version: unique in the publisher, never 0, new with each change.
 * @forget_ns: a withdrawn one is forgotten then.
 * @servers_nr: length of @at.
 * @pins: callers that still need it; it is not put into the trash.
 * @gone: withdrawn.
 * @adopted: left behind by another publisher; only withdrawn here.
 * @orphaned: its publisher ended before every server had confirmed the withdrawal.
 * @at: by server.
 */
struct krp_record {
	struct krp_list link;
	struct krp_list gone_link;
	struct krp_record *chain;
	struct krp_key key;
	struct krp_value value;
	__u64 version;
	__u64 forget_ns;
	__u32 servers_nr;
	__u32 pins;
	__u8 gone;
	__u8 adopted;
	__u8 orphaned;
	struct krp_record_at at[];
};

/**
 * struct krp_peer - A server, as records know it; a part of its session.
 * @list: its records by state; none of KRP_AT_NEVER.
 * @count: lengths of @list.
 * @live: of these, those that are not withdrawn.
 * @incarnation: of the server at the last attach; 0: never attached.
 * @lease_ms: lease it granted last.
 * @index: position in krp_publisher.peer and krp_record.at.
 * @leaving: everything is being withdrawn from it.
 * @token: krp_welcome.token of the last attach.
 */
struct krp_peer {
	struct krp_list list[KRP_AT_STATES];
	__u32 count[KRP_AT_STATES];
	__u32 live[KRP_AT_STATES];
	__u64 incarnation;
	__u32 lease_ms;
	__u32 index;
	__u8 leaving;
	__u8 token[KRP_TOKEN_BYTES];
};

/**
 * struct krp_publisher - All records that a client keeps up.
 * @records: list of them, oldest first.
 * @gone: those withdrawn.
 * @trash: those that the caller is to free.
 * @chains: hash by key; the caller's.
 * @chains_nr: how many, a power of two.
 * @nr: records in @records.
 * @servers_nr: places in @peer in use, and length of krp_record.at.
 * @version: the last one given.
 * @peer: by index; NULL: none.
 */
struct krp_publisher {
	struct krp_list records;
	struct krp_list gone;
	struct krp_list trash;
	struct krp_record **chains;
	__u32 chains_nr;
	__u32 nr;
	__u32 servers_nr;
	__u64 version;
	struct krp_peer *peer[KRP_PEERS_MAX];
};

/**
 * krp_publisher_init() - A publisher without records and servers.
 * @p: to set up.
 * @chains: memory for the hash.
 * @chains_nr: how many, a power of two.
 * @servers_nr: servers there may be, up to KRP_PEERS_MAX.
 *
 * Context: any.
 */
static inline void krp_publisher_init(struct krp_publisher *p, struct krp_record **chains,
				      __u32 chains_nr, __u32 servers_nr)
{
	memset(p, 0, sizeof(*p));
	memset(chains, 0, chains_nr * sizeof(struct krp_record *));
	krp_list_init(&p->records);
	krp_list_init(&p->gone);
	krp_list_init(&p->trash);
	p->chains = chains;
	p->chains_nr = chains_nr;
	p->servers_nr = servers_nr;
}

/** krp_record_bytes() - Memory of a record. @nr: krp_publisher.servers_nr. Return: bytes. */
static inline size_t krp_record_bytes(__u32 nr)
{
	return sizeof(struct krp_record) + nr * sizeof(struct krp_record_at);
}

/** krp_record_chain() - Chain of a key. @p: publisher. @key: name. Return: where it begins. */
static inline struct krp_record **krp_record_chain(const struct krp_publisher *p,
						   const struct krp_key *key)
{
	return &p->chains[krp_key_hash(key, 0) & (p->chains_nr - 1)];
}

/**
 * krp_record_find() - Find a record by its name.
 * @p: publisher.
 * @key: name.
 *
 * Context: any.
 * Return: the record, also one that is withdrawn, or NULL.
 */
static inline struct krp_record *krp_record_find(const struct krp_publisher *p,
						 const struct krp_key *key)
{
	struct krp_record *rec;

	for (rec = *krp_record_chain(p, key); rec; rec = rec->chain)
		if (!memcmp(&rec->key, key, sizeof(*key)))
			return rec;
	return NULL;
}

/**
 * krp_publisher_rehash() - Use another hash.
 * @p: publisher.
 * @chains: memory for it.
 * @chains_nr: how many, a power of two.
 *
 * Context: any.
 * Return: the chains used so far, which are the caller's again.
 */
static inline struct krp_record **krp_publisher_rehash(struct krp_publisher *p,
						       struct krp_record **chains, __u32 chains_nr)
{
	struct krp_record **before = p->chains;
	struct krp_list *l;

	memset(chains, 0, chains_nr * sizeof(struct krp_record *));
	p->chains = chains;
	p->chains_nr = chains_nr;
	for (l = p->records.next; l != &p->records; l = l->next) {
		struct krp_record *rec = krp_entry(l, struct krp_record, link);
		struct krp_record **chain = krp_record_chain(p, &rec->key);

		rec->chain = *chain;
		*chain = rec;
	}
	return before;
}

/**
 * krp_record_tally() - Take a record into the counts and lists of a server, or out of them.
 * @p: publisher.
 * @rec: record.
 * @i: index of the server, which there need not be.
 * @in: 1: in, at the end of the list of its state; 0: out.
 *
 * Context: any.
 */
static inline void krp_record_tally(struct krp_publisher *p, struct krp_record *rec, __u32 i,
				    int in)
{
	struct krp_record_at *at = &rec->at[i];
	struct krp_peer *peer = p->peer[i];

	if (!peer || at->state == KRP_AT_NEVER)
		return;
	if (!in) {
		krp_list_del(&at->link);
		peer->count[at->state]--;
		peer->live[at->state] -= !rec->gone;
		return;
	}
	peer->count[at->state]++;
	peer->live[at->state] += !rec->gone;
	if (at->state == KRP_AT_DIRTY && krp_le16_to_cpu(rec->key.service) == KRP_SERVICE_NODE)
		krp_list_add(&at->link, peer->list[KRP_AT_DIRTY].next);
	else
		krp_list_add(&at->link, &peer->list[at->state]);
}

/**
 * krp_record_set() - Set what a server knows of a record.
 * @p: publisher.
 * @rec: record.
 * @i: index of the server.
 * @state: what it knows.
 *
 * Context: any.
 */
static inline void krp_record_set(struct krp_publisher *p, struct krp_record *rec, __u32 i,
				  enum krp_at state)
{
	krp_record_tally(p, rec, i, 0);
	rec->at[i].state = (__u8)state;
	krp_record_tally(p, rec, i, 1);
}

/**
 * krp_record_mark_gone() - Set whether a record is withdrawn.
 * @p: publisher.
 * @rec: record.
 * @gone: 1: it is.
 *
 * Context: any.
 */
static inline void krp_record_mark_gone(struct krp_publisher *p, struct krp_record *rec, int gone)
{
	__u32 i;

	for (i = 0; i < p->servers_nr; i++)
		krp_record_tally(p, rec, i, 0);
	rec->gone = (__u8)gone;
	for (i = 0; i < p->servers_nr; i++)
		krp_record_tally(p, rec, i, 1);
	krp_list_del(&rec->gone_link);
	if (gone)
		krp_list_add(&rec->gone_link, &p->gone);
}

/**
 * krp_record_link() - Take a record into a publisher.
 * @p: publisher, without a record of this name.
 * @rec: record with its key; nothing is sent yet.
 *
 * Context: any.
 */
static inline void krp_record_link(struct krp_publisher *p, struct krp_record *rec)
{
	struct krp_record **chain = krp_record_chain(p, &rec->key);
	__u32 i;

	rec->servers_nr = p->servers_nr;
	krp_list_init(&rec->gone_link);
	for (i = 0; i < p->servers_nr; i++) {
		krp_list_init(&rec->at[i].link);
		rec->at[i].rec = rec;
		rec->at[i].state = KRP_AT_NEVER;
		rec->at[i].there = 0;
	}
	rec->chain = *chain;
	*chain = rec;
	krp_list_add(&rec->link, &p->records);
	p->nr++;
}

/**
 * krp_record_unlink() - Take a record out of a publisher. Answers to come match none any more.
 * @p: publisher.
 * @rec: record.
 *
 * Context: any.
 */
static inline void krp_record_unlink(struct krp_publisher *p, struct krp_record *rec)
{
	struct krp_record **at = krp_record_chain(p, &rec->key);
	__u32 i;

	for (i = 0; i < p->servers_nr; i++)
		krp_record_set(p, rec, i, KRP_AT_NEVER);
	while (*at != rec)
		at = &(*at)->chain;
	*at = rec->chain;
	krp_list_del(&rec->gone_link);
	krp_list_del(&rec->link);
	p->nr--;
}

/**
 * krp_record_drop() - Forget a record: the caller finds it in the trash.
 * @p: publisher.
 * @rec: record, without pins.
 *
 * Context: any.
 */
static inline void krp_record_drop(struct krp_publisher *p, struct krp_record *rec)
{
	krp_record_unlink(p, rec);
	krp_list_add(&rec->link, &p->trash);
}

/**
 * krp_records_trash() - A record that is to be freed.
 * @p: publisher.
 *
 * Context: any.
 * Return: it; NULL: there is none.
 */
static inline struct krp_record *krp_records_trash(struct krp_publisher *p)
{
	struct krp_list *l = p->trash.next;

	if (l == &p->trash)
		return NULL;
	p->trash.next = l->next;
	l->next->prev = &p->trash;
	return krp_entry(l, struct krp_record, link);
}

/**
 * krp_record_settled() - Forget a withdrawn record if no server has to be told any more.
 * @p: publisher.
 * @rec: record.
 *
 * Context: any.
 */
static inline void krp_record_settled(struct krp_publisher *p, struct krp_record *rec)
{
	__u32 i;

	if (!rec->gone || rec->pins)
		return;
	for (i = 0; i < p->servers_nr; i++)
		if (rec->at[i].state != KRP_AT_NEVER && rec->at[i].state != KRP_AT_ACKED)
			return;
	krp_record_drop(p, rec);
}

/** krp_record_pin() - Keep a record from being forgotten. @rec: record. Context: any. */
static inline void krp_record_pin(struct krp_record *rec)
{
	rec->pins++;
}

/** krp_record_unpin() - Undo krp_record_pin(). @p: publisher. @rec: record. Context: any. */
static inline void krp_record_unpin(struct krp_publisher *p, struct krp_record *rec)
{
	rec->pins--;
	krp_record_settled(p, rec);
}

/**
 * krp_record_changed() - Let every server be told of a record as it is now.
 * @p: publisher.
 * @rec: record.
 *
 * Context: any.
 */
static inline void krp_record_changed(struct krp_publisher *p, struct krp_record *rec)
{
	__u32 i;

	rec->version = ++p->version;
	for (i = 0; i < p->servers_nr; i++) {
		struct krp_record_at *at = &rec->at[i];

		if (!p->peer[i])
			continue;
		/* a server that never got the record needs no WITHDRAW */
		if (rec->gone && !at->there) {
			krp_record_set(p, rec, i, KRP_AT_NEVER);
			continue;
		}
		at->err = 0;
		krp_record_set(p, rec, i, KRP_AT_DIRTY);
	}
}

/**
 * krp_record_publish() - Publish a record, or another value of it.
 * @p: publisher.
 * @rec: record of this publisher (krp_record_link()), withdrawn or not.
 * @value: value, for which krp_value_valid() holds.
 *
 * Context: any.
 */
static inline void krp_record_publish(struct krp_publisher *p, struct krp_record *rec,
				      const struct krp_value *value)
{
	rec->value = *value;
	rec->adopted = 0;
	krp_record_mark_gone(p, rec, 0);
	krp_record_changed(p, rec);
}

/**
 * krp_record_withdraw() - Withdraw a record everywhere. It may be in the trash then.
 * @p: publisher.
 * @rec: record.
 * @now_ns: the clock.
 *
 * Context: any.
 */
static inline void krp_record_withdraw(struct krp_publisher *p, struct krp_record *rec,
				       __u64 now_ns)
{
	__u64 lease_ms = 0;
	__u32 i;

	for (i = 0; i < p->servers_nr; i++)
		if (p->peer[i] && p->peer[i]->lease_ms > lease_ms)
			lease_ms = p->peer[i]->lease_ms;
	rec->forget_ns = now_ns + (2 * lease_ms + 1000) * KRP_NS_PER_MS;
	krp_record_mark_gone(p, rec, 1);
	krp_record_changed(p, rec);
	krp_record_settled(p, rec);
}

/**
 * krp_records_dirty() - The next record to send to a server.
 * @peer: server.
 *
 * Context: any.
 * Return: the record, or NULL.
 */
static inline struct krp_record *krp_records_dirty(const struct krp_peer *peer)
{
	const struct krp_list *head = &peer->list[KRP_AT_DIRTY];

	return krp_list_empty(head) ? NULL : krp_entry(head->next, struct krp_record_at, link)->rec;
}

/**
 * krp_records_mark() - Change what a server knows of all records in some states.
 * @p: publisher.
 * @i: index of the server.
 * @from: bits 1 << enum krp_at.
 * @to: new state.
 *
 * Costs as much as there are such records. Context: any.
 */
static inline void krp_records_mark(struct krp_publisher *p, __u32 i, unsigned int from,
				    enum krp_at to)
{
	struct krp_list *head, *l, *next;
	unsigned int state;

	for (state = KRP_AT_DIRTY; state < KRP_AT_STATES; state++) {
		if (!(from & 1U << state) || state == (unsigned int)to)
			continue;
		head = &p->peer[i]->list[state];
		for (l = head->next; l != head; l = next) {
			next = l->next;
			krp_record_set(p, krp_entry(l, struct krp_record_at, link)->rec, i, to);
		}
	}
}

/** krp_records_open() - Requests for records that are due or unanswered. @peer: server.
 * Context: any. Return: how many.
 */
static inline __u32 krp_records_open(const struct krp_peer *peer)
{
	return peer->count[KRP_AT_DIRTY] + peer->count[KRP_AT_SENT];
}

/**
 * krp_records_answered() - A server has answered PUBLISH or WITHDRAW.
 * @p: publisher.
 * @i: index of the server.
 * @key: record.
 * @version: its version when the request was sent.
 * @withdraw: 1: WITHDRAW.
 * @err: answer, 0 or negative errno.
 *
 * The record may be in the trash then.
 *
 * Context: any.
 * Return: 1 if that is a refusal which differs from the one before, else 0.
 */
static inline int krp_records_answered(struct krp_publisher *p, __u32 i, const struct krp_key *key,
				       __u64 version, int withdraw, int err)
{
	struct krp_record *rec = krp_record_find(p, key);
	struct krp_record_at *at;
	int news;

	if (!rec)
		return 0;
	at = &rec->at[i];
	at->answered = version;
	at->answer = err;
	/* changed since: a newer request is in flight or due */
	if (rec->version != version || at->state != KRP_AT_SENT ||
	    !withdraw == (rec->gone || p->peer[i]->leaving))
		return 0;
	/* none of ours is there */
	if (withdraw && (err == -ENOENT || err == -EEXIST || err == -ESTALE))
		err = 0;
	/* the server takes none from another address; not renewed, the lease ends the record */
	if (withdraw && rec->adopted && err == -EPERM)
		err = 0;
	news = err && at->err != err;
	at->err = err;
	at->there = !withdraw || err;
	krp_record_set(p, rec, i, err ? KRP_AT_REFUSED : KRP_AT_ACKED);
	krp_record_settled(p, rec);
	return news;
}

/**
 * krp_records_lost() - A server reports that a record is gone: send it again if it is ours.
 * @p: publisher.
 * @i: index of the server.
 * @key: record.
 * @generation: its generation when it went.
 *
 * Context: any.
 */
static inline void krp_records_lost(struct krp_publisher *p, __u32 i, const struct krp_key *key,
				    __u64 generation)
{
	struct krp_record *rec = krp_record_find(p, key);

	if (!rec || rec->gone || p->peer[i]->leaving || rec->at[i].state != KRP_AT_ACKED ||
	    krp_le64_to_cpu(rec->value.generation) != generation)
		return;
	krp_record_set(p, rec, i, KRP_AT_DIRTY);
}

/**
 * krp_records_expire() - Forget withdrawn records whose leases are over.
 * @p: publisher.
 * @now_ns: the clock.
 *
 * Context: any.
 */
static inline void krp_records_expire(struct krp_publisher *p, __u64 now_ns)
{
	struct krp_list *l, *next;

	for (l = p->gone.next; l != &p->gone; l = next) {
		struct krp_record *rec = krp_entry(l, struct krp_record, gone_link);

		next = l->next;
		if (now_ns > rec->forget_ns && !rec->pins)
			krp_record_drop(p, rec);
	}
}

/**
 * krp_records_join() - A server is added: all that is not withdrawn, or was adopted, is due.
 * @p: publisher.
 * @peer: server; set up here.
 * @i: index, not in use.
 *
 * Context: any.
 */
static inline void krp_records_join(struct krp_publisher *p, struct krp_peer *peer, __u32 i)
{
	struct krp_list *l;
	unsigned int state;

	memset(peer, 0, sizeof(*peer));
	for (state = 0; state < KRP_AT_STATES; state++)
		krp_list_init(&peer->list[state]);
	peer->index = i;
	p->peer[i] = peer;
	for (l = p->records.next; l != &p->records; l = l->next) {
		struct krp_record *rec = krp_entry(l, struct krp_record, link);

		rec->at[i].err = 0;
		rec->at[i].there = rec->adopted;
		if (!rec->gone || rec->adopted)
			krp_record_set(p, rec, i, KRP_AT_DIRTY);
	}
}

/**
 * krp_record_orphan() - Leave a record behind, if a server has not confirmed its withdrawal.
 * @rec: record.
 * @peer: server.
 *
 * Context: any.
 */
static inline void krp_record_orphan(struct krp_record *rec, const struct krp_peer *peer)
{
	struct krp_record_at *at = &rec->at[peer->index];

	if (at->state == KRP_AT_NEVER || at->state == KRP_AT_ACKED)
		return;
	rec->orphaned = 1;
	if (rec->adopted)
		return; /* the token of the publisher that left it first is the good one */
	at->incarnation = peer->incarnation;
	memcpy(at->token, peer->token, sizeof(at->token));
}

/**
 * krp_records_leave() - A server is taken off.
 * @p: publisher.
 * @i: its index, which is free afterwards.
 * @closing: the publisher ends: what the server has not confirmed is orphaned, all records
 *	stay for krp_records_take_orphans() and krp_record_drop().
 *
 * Context: any.
 */
static inline void krp_records_leave(struct krp_publisher *p, __u32 i, int closing)
{
	struct krp_list *l, *next;

	for (l = p->records.next; l != &p->records; l = next) {
		struct krp_record *rec = krp_entry(l, struct krp_record, link);

		next = l->next;
		if (closing)
			krp_record_orphan(rec, p->peer[i]);
		krp_record_set(p, rec, i, KRP_AT_NEVER);
		rec->at[i].err = 0;
		if (!closing)
			krp_record_settled(p, rec);
	}
	p->peer[i] = NULL;
}

/**
 * krp_records_take_orphans() - Take the orphans out of a publisher that has ended.
 * @p: publisher without servers.
 * @left: list; they are added to it, the caller's.
 *
 * Context: any. Costs as much as there are records.
 */
static inline void krp_records_take_orphans(struct krp_publisher *p, struct krp_list *left)
{
	struct krp_list *l, *next;

	for (l = p->records.next; l != &p->records; l = next) {
		struct krp_record *rec = krp_entry(l, struct krp_record, link);

		next = l->next;
		if (!rec->orphaned)
			continue;
		krp_record_unlink(p, rec);
		krp_list_add(&rec->link, left);
	}
}

/**
 * krp_record_adopt() - Withdraw an orphan of another publisher.
 * @p: publisher of the same node, with the same servers_nr.
 * @rec: orphan; the publisher's now. One that it publishes itself goes to the trash.
 * @now_ns: the clock.
 *
 * Context: any.
 */
static inline void krp_record_adopt(struct krp_publisher *p, struct krp_record *rec, __u64 now_ns)
{
	struct krp_record *old = krp_record_find(p, &rec->key);
	__u32 i;

	for (i = 0; old && i < p->servers_nr; i++)
		old->at[i].there = 1;
	if (old && (!old->gone || old->pins)) {
		krp_list_add(&rec->link, &p->trash);
		return;
	}
	if (old)
		krp_record_drop(p, old);
	krp_record_link(p, rec);
	rec->adopted = 1;
	rec->orphaned = 0;
	rec->forget_ns = now_ns + KRP_ADOPTED_NS;
	rec->version = ++p->version;
	krp_record_mark_gone(p, rec, 1);
	for (i = 0; i < p->servers_nr; i++) {
		rec->at[i].err = 0;
		rec->at[i].there = 1;
		if (p->peer[i])
			krp_record_set(p, rec, i, KRP_AT_DIRTY);
	}
}

/**
 * krp_records_release() - Give back the adopted records of an address.
 * @p: publisher.
 * @gid: address, which has a publisher of its own again.
 * @left: list; they are added to it, the caller's.
 *
 * Context: any. Costs as much as there are withdrawn records.
 */
static inline void krp_records_release(struct krp_publisher *p, const __u8 *gid,
				       struct krp_list *left)
{
	struct krp_list *l, *next;

	for (l = p->gone.next; l != &p->gone; l = next) {
		struct krp_record *rec = krp_entry(l, struct krp_record, gone_link);

		next = l->next;
		if (!rec->adopted || memcmp(rec->key.gid, gid, sizeof(rec->key.gid)))
			continue;
		krp_record_unlink(p, rec);
		krp_list_add(&rec->link, left);
	}
}

/**
 * krp_record_token() - The token that permits withdrawing a record from another address.
 * @rec: record.
 * @incarnation: of the server that is to take it.
 * @ret_token: KRP_TOKEN_BYTES; zero if there is none.
 *
 * Context: any.
 */
static inline void krp_record_token(const struct krp_record *rec, __u64 incarnation,
				    __u8 *ret_token)
{
	__u32 i;

	memset(ret_token, 0, KRP_TOKEN_BYTES);
	for (i = 0; i < rec->servers_nr; i++)
		if (incarnation && rec->at[i].incarnation == incarnation)
			memcpy(ret_token, rec->at[i].token, KRP_TOKEN_BYTES);
}

#endif /* KRP_RECORDS_H */
