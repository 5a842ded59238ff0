// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owners, leases and the timing wheel: see ledger.h.
 *
 * Owners live in one array and are named by their index, since the array moves
 * when it grows. An owner is on exactly one list: a slot of the wheel, the list
 * of those whose lease has run out and whose records are being taken out, or
 * the list of unused entries. The first two are doubly linked.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "metaserver/ledger.h"

#define MS_NIL UINT32_MAX
#define MS_WHEEL_SLOTS 4096U
#define MS_WHEEL_DEAD MS_WHEEL_SLOTS /* "slot" of the owners whose lease has run out */
#define MS_OWNERS_FIRST 16U
#define MS_KEYS_FIRST 4U
#define MS_NODE_RECORDS 64U /* records of ports, in addition to records_max */

/**
 * struct ms_owner - One owner and its lease.
 * @id: identity; zero for the imported records.
 * @gid: GID that it is at, or zero.
 * @generation: boot generation; 0 for the imported records and unused entries.
 * @deadline_ms: when the lease runs out.
 * @keys: names of its records.
 * @nr: how many.
 * @ports: of those, records of ports.
 * @room: how many fit @keys.
 * @next: list, or next unused entry.
 * @prev: list.
 * @slot: which list: a slot of the wheel, or MS_WHEEL_DEAD.
 * @chain: next owner of the same hash bucket.
 * @used: the entry is in use.
 * @imported: these are the imported records.
 */
struct ms_owner {
	uint8_t id[KRP_OWNER_BYTES];
	uint8_t gid[KRP_GID_BYTES];
	uint64_t generation;
	uint64_t deadline_ms;
	struct krp_key *keys;
	uint32_t nr;
	uint32_t ports;
	uint32_t room;
	uint32_t next;
	uint32_t prev;
	uint32_t slot;
	uint32_t chain;
	bool used;
	bool imported;
};

/**
 * struct ms_ledger - All owners.
 * @config: bounds.
 * @table: where the records are.
 * @ops: callbacks for changes.
 * @arg: their first argument.
 * @owners: the array.
 * @room: its length.
 * @unused: first unused entry.
 * @import: owner of the imported records.
 * @buckets: heads of the hash chains; @buckets_nr is a power of two.
 * @buckets_nr: length of @buckets.
 * @lists: heads of the wheel's slots, and of the list of the dead.
 * @tick: next tick the wheel will look at.
 * @stats: counters.
 */
struct ms_ledger {
	struct ms_ledger_config config;
	struct ms_table *table;
	const struct ms_ledger_ops *ops;
	void *arg;
	struct ms_owner *owners;
	uint32_t room;
	uint32_t unused;
	uint32_t import;
	uint32_t *buckets;
	uint32_t buckets_nr;
	uint32_t lists[MS_WHEEL_SLOTS + 1];
	uint64_t tick;
	struct ms_ledger_stats stats;
};

static uint64_t ms_cookie(uint32_t owner, uint32_t at)
{
	return (uint64_t)owner << 32 | at;
}

static void ms_tell(struct ms_ledger *l, unsigned int event, const struct krp_key *key,
		    uint64_t generation, const char *why)
{
	l->ops->changed(l->arg, event, key, generation, why);
}

/* the lists */

static void ms_list_del(struct ms_ledger *l, uint32_t nr)
{
	struct ms_owner *o = &l->owners[nr];

	if (o->prev == MS_NIL)
		l->lists[o->slot] = o->next;
	else
		l->owners[o->prev].next = o->next;
	if (o->next != MS_NIL)
		l->owners[o->next].prev = o->prev;
}

static void ms_list_add(struct ms_ledger *l, uint32_t nr, uint32_t slot)
{
	struct ms_owner *o = &l->owners[nr];

	o->slot = slot;
	o->prev = MS_NIL;
	o->next = l->lists[slot];
	if (o->next != MS_NIL)
		l->owners[o->next].prev = nr;
	l->lists[slot] = nr;
}

/* Put an owner into the slot of its deadline, or of the wheel's farthest tick before that. */
static void ms_wheel_add(struct ms_ledger *l, uint32_t nr)
{
	uint64_t tick = (l->owners[nr].deadline_ms + l->config.tick_ms - 1) / l->config.tick_ms;

	if (tick < l->tick)
		tick = l->tick;
	if (tick >= l->tick + MS_WHEEL_SLOTS)
		tick = l->tick + MS_WHEEL_SLOTS - 1;
	ms_list_add(l, nr, (uint32_t)(tick % MS_WHEEL_SLOTS));
}

/* the index of the owners */

static uint32_t ms_owner_hash(const struct ms_ledger *l, const uint8_t *id, const uint8_t *gid,
			      uint64_t generation)
{
	uint64_t hash = krp_xxh64(id, KRP_OWNER_BYTES, l->config.salt ^ krp_mix64(generation));

	return (uint32_t)krp_xxh64(gid, KRP_GID_BYTES, hash) & (l->buckets_nr - 1);
}

static void ms_index_add(struct ms_ledger *l, uint32_t nr)
{
	struct ms_owner *o = &l->owners[nr];
	uint32_t at = ms_owner_hash(l, o->id, o->gid, o->generation);

	o->chain = l->buckets[at];
	l->buckets[at] = nr;
}

static void ms_index_del(struct ms_ledger *l, uint32_t nr)
{
	struct ms_owner *o = &l->owners[nr];
	uint32_t *link = &l->buckets[ms_owner_hash(l, o->id, o->gid, o->generation)];

	while (*link != nr)
		link = &l->owners[*link].chain;
	*link = o->chain;
}

static uint32_t ms_owner_find(const struct ms_ledger *l, const struct ms_claim *who)
{
	uint32_t nr = l->buckets[ms_owner_hash(l, who->owner, who->gid, who->generation)];

	while (nr != MS_NIL && (l->owners[nr].generation != who->generation ||
				memcmp(l->owners[nr].id, who->owner, KRP_OWNER_BYTES) ||
				memcmp(l->owners[nr].gid, who->gid, KRP_GID_BYTES)))
		nr = l->owners[nr].chain;
	return nr;
}

static bool ms_owner_indexed(const struct ms_owner *o)
{
	return !o->imported && o->slot != MS_WHEEL_DEAD;
}

/* Double array and index together: one bucket an owner. */
static int ms_owners_grow(struct ms_ledger *l)
{
	uint32_t room = l->room ? l->room * 2 : MS_OWNERS_FIRST, nr;
	struct ms_owner *owners;
	uint32_t *buckets;

	if (room <= l->room)
		return -ENOMEM;
	buckets = malloc(room * sizeof(*buckets));
	if (!buckets)
		return -ENOMEM;
	owners = realloc(l->owners, room * sizeof(*owners));
	if (!owners) {
		free(buckets);
		return -ENOMEM;
	}

	free(l->buckets);
	l->buckets = buckets;
	l->buckets_nr = room;
	memset(buckets, 0xff, room * sizeof(*buckets)); /* MS_NIL */
	l->owners = owners;
	memset(owners + l->room, 0, (room - l->room) * sizeof(*owners));
	for (nr = 0; nr < l->room; nr++)
		if (owners[nr].used && ms_owner_indexed(&owners[nr]))
			ms_index_add(l, nr);
	for (nr = room; nr-- > l->room;) {
		owners[nr].next = l->unused;
		l->unused = nr;
	}
	l->stats.private_bytes += (room - l->room) * (sizeof(*owners) + sizeof(*buckets));
	l->room = room;
	return 0;
}

/* A new owner without records; @who is NULL for the imported records. */
static int ms_owner_new(struct ms_ledger *l, const struct ms_claim *who, uint64_t deadline_ms,
			uint32_t *ret_nr)
{
	struct ms_owner *o;
	uint32_t nr;
	int err;

	if (l->unused == MS_NIL) {
		err = ms_owners_grow(l);
		if (err)
			return err;
	}
	nr = l->unused;
	o = &l->owners[nr];
	l->unused = o->next;
	memset(o, 0, sizeof(*o));
	o->used = true;
	o->imported = !who;
	o->deadline_ms = deadline_ms;
	ms_wheel_add(l, nr);
	if (who) {
		memcpy(o->id, who->owner, sizeof(o->id));
		memcpy(o->gid, who->gid, sizeof(o->gid));
		o->generation = who->generation;
		ms_index_add(l, nr);
	} else {
		l->import = nr;
	}
	l->stats.owners++;
	*ret_nr = nr;
	return 0;
}

static void ms_owner_free(struct ms_ledger *l, uint32_t nr)
{
	struct ms_owner *o = &l->owners[nr];

	if (ms_owner_indexed(o))
		ms_index_del(l, nr);
	if (l->import == nr)
		l->import = MS_NIL;
	ms_list_del(l, nr);
	l->stats.private_bytes -= o->room * sizeof(*o->keys);
	free(o->keys);
	o->keys = NULL;
	o->used = false;
	o->generation = 0;
	o->next = l->unused;
	l->unused = nr;
	l->stats.owners--;
}

static int ms_owner_reserve(struct ms_ledger *l, uint32_t nr)
{
	struct ms_owner *o = &l->owners[nr];
	uint32_t room = o->room ? o->room * 2 : MS_KEYS_FIRST;
	struct krp_key *keys;

	if (o->nr < o->room)
		return 0;
	if (room <= o->room)
		return -ENOMEM;
	keys = realloc(o->keys, room * sizeof(*keys));
	if (!keys)
		return -ENOMEM;
	l->stats.private_bytes += (room - o->room) * sizeof(*keys);
	o->keys = keys;
	o->room = room;
	return 0;
}

static bool ms_key_is_port(const struct krp_key *key)
{
	return krp_le16_to_cpu(key->service) == KRP_SERVICE_NODE;
}

/* Remove a key from an owner's list; the table no longer refers to its position. */
static void ms_owner_strike(struct ms_ledger *l, uint32_t nr, uint32_t at)
{
	struct ms_owner *o = &l->owners[nr];

	if (o->keys && ms_key_is_port(&o->keys[at]))
		o->ports--;
	o->nr--;
	if (at != o->nr && o->keys) {
		o->keys[at] = o->keys[o->nr];
		ms_table_set_cookie(l->table, &o->keys[at], ms_cookie(nr, at));
	}
	if (!o->nr)
		ms_owner_free(l, nr);
}

static bool ms_owner_expired(const struct ms_owner *o, uint64_t now_ms)
{
	return o->slot == MS_WHEEL_DEAD || now_ms >= o->deadline_ms;
}

/* A later deadline is handled when the wheel reaches the old slot; for an earlier one, move. */
static void ms_owner_extend(struct ms_ledger *l, uint32_t nr, uint64_t deadline_ms)
{
	struct ms_owner *o = &l->owners[nr];
	bool earlier = deadline_ms < o->deadline_ms;

	o->deadline_ms = deadline_ms;
	if (earlier) {
		ms_list_del(l, nr);
		ms_wheel_add(l, nr);
	}
}

/* Whether @who is owner @o, in this generation or another; a GID of zero is any. */
static bool ms_owner_is(const struct ms_owner *o, const struct ms_claim *who)
{
	return !memcmp(o->id, who->owner, sizeof(o->id)) &&
	       (!memcmp(o->gid, who->gid, sizeof(o->gid)) || krp_is_zero(o->gid, sizeof(o->gid)) ||
		krp_is_zero(who->gid, sizeof(who->gid)));
}

/* May @who do something to a record of owner @o? */
static unsigned int ms_judge(const struct ms_owner *o, const struct krp_value *value,
			     const struct ms_claim *who, uint64_t now_ms)
{
	if (o->imported)
		return who->generation >= krp_le64_to_cpu(value->generation)
			       ? KRP_ST_OK
			       : KRP_ST_STALE_GENERATION;
	if (ms_owner_is(o, who))
		return who->generation >= o->generation ? KRP_ST_OK : KRP_ST_STALE_GENERATION;
	return ms_owner_expired(o, now_ms) ? KRP_ST_OK : KRP_ST_NOT_OWNER;
}

static unsigned int ms_status(int err)
{
	if (!err)
		return KRP_ST_OK;
	return err == -ENOSPC ? KRP_ST_TABLE_FULL : KRP_ST_NO_MEMORY;
}

int ms_ledger_new(const struct ms_ledger_config *config, struct ms_table *table,
		  const struct ms_ledger_ops *ops, void *arg, uint64_t now_ms,
		  struct ms_ledger **ret_ledger)
{
	struct ms_ledger *l;
	int err;

	if (!config->tick_ms)
		return -EINVAL;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->config = *config;
	l->table = table;
	l->ops = ops;
	l->arg = arg;
	l->unused = MS_NIL;
	l->import = MS_NIL;
	l->tick = now_ms / config->tick_ms;
	memset(l->lists, 0xff, sizeof(l->lists)); /* MS_NIL */
	l->stats.private_bytes = sizeof(*l);
	err = ms_owners_grow(l);
	if (err) {
		free(l);
		return err;
	}
	*ret_ledger = l;
	return 0;
}

void ms_ledger_free(struct ms_ledger *l)
{
	uint32_t nr;

	if (!l)
		return;
	for (nr = 0; nr < l->room; nr++)
		if (l->owners[nr].used)
			free(l->owners[nr].keys);
	free(l->owners);
	free(l->buckets);
	free(l);
}

void ms_ledger_set_records_max(struct ms_ledger *l, unsigned int nr)
{
	l->config.records_max = nr;
}

/* Insert a record at the end of an owner's list; @holder is its owner before, or MS_NIL. */
static int ms_ledger_put(struct ms_ledger *l, uint32_t nr, const struct krp_key *key,
			 const struct krp_value *value, uint32_t holder, uint32_t at)
{
	struct ms_owner *o;
	int err;

	err = ms_owner_reserve(l, nr);
	if (err)
		return err;
	o = &l->owners[nr];
	err = ms_table_put(l->table, key, value, ms_cookie(nr, o->nr));
	if (err < 0)
		return err;
	o->keys[o->nr++] = *key;
	o->ports += ms_key_is_port(key);
	if (holder != MS_NIL)
		ms_owner_strike(l, holder, at);
	return 0;
}

/* Publish a record that @who owns already: only value and lease change. */
static unsigned int ms_ledger_replace(struct ms_ledger *l, uint64_t now_ms, uint32_t nr,
				      const struct ms_claim *who, const struct krp_key *key,
				      const struct krp_value *old, const struct krp_value *value,
				      uint64_t cookie)
{
	int err;

	if (memcmp(old, value, sizeof(*old))) {
		err = ms_table_put(l->table, key, value, cookie);
		if (err < 0)
			return ms_status(err);
		ms_tell(l, KRP_EVENT_CHANGED, key, who->generation, "published");
	}
	ms_owner_extend(l, nr, now_ms + who->lease_ms);
	return KRP_ST_OK;
}

/*
 * How many records an owner may have before it publishes this one. The record of a port is
 * needed to reach all its programs: their records must not use up the limit while the port is
 * down, and it takes no room from them, whichever comes first.
 */
static uint32_t ms_ledger_bound(const struct ms_ledger *l, const struct ms_owner *o,
				const struct krp_key *key)
{
	uint32_t more = MS_NODE_RECORDS;

	if (!ms_key_is_port(key) && o->ports < more)
		more = o->ports;
	return l->config.records_max + more;
}

unsigned int ms_ledger_publish(struct ms_ledger *l, uint64_t now_ms, const struct ms_claim *who,
			       const struct krp_key *key, const struct krp_value *value)
{
	uint32_t holder = MS_NIL, at = 0, nr = ms_owner_find(l, who);
	bool fresh = nr == MS_NIL;
	struct krp_value old;
	unsigned int status;
	__u64 cookie;
	int err;

	if (!ms_table_get(l->table, key, &old, &cookie)) {
		holder = (uint32_t)(cookie >> 32);
		at = (uint32_t)cookie;
		if (holder == nr)
			return ms_ledger_replace(l, now_ms, nr, who, key, &old, value, cookie);
		status = ms_judge(&l->owners[holder], &old, who, now_ms);
		if (status)
			return status;
	}
	if (!fresh && l->owners[nr].nr >= ms_ledger_bound(l, &l->owners[nr], key))
		return KRP_ST_LIMIT_RECORDS;

	if (fresh) {
		err = ms_owner_new(l, who, now_ms + who->lease_ms, &nr);
		if (err)
			return ms_status(err);
	}
	err = ms_ledger_put(l, nr, key, value, holder, at);
	if (err) {
		if (fresh)
			ms_owner_free(l, nr);
		return ms_status(err);
	}
	ms_owner_extend(l, nr, now_ms + who->lease_ms);
	if (holder == MS_NIL)
		l->stats.published_new++;
	else
		l->stats.taken_over++;
	ms_tell(l, KRP_EVENT_CHANGED, key, who->generation, "published");
	return KRP_ST_OK;
}

static void ms_ledger_drop(struct ms_ledger *l, const struct krp_key *key,
			   const struct krp_value *value, uint64_t cookie, const char *why)
{
	struct krp_key copy = *key; /* @key may lie in the list that is changed */

	ms_table_del(l->table, &copy);
	ms_owner_strike(l, (uint32_t)(cookie >> 32), (uint32_t)cookie);
	ms_tell(l, KRP_EVENT_GONE, &copy, krp_le64_to_cpu(value->generation), why);
}

unsigned int ms_ledger_withdraw(struct ms_ledger *l, uint64_t now_ms, const struct ms_claim *who,
				const struct krp_key *key)
{
	const struct ms_owner *o;
	struct krp_value value;
	unsigned int status;
	__u64 cookie;

	if (ms_table_get(l->table, key, &value, &cookie))
		return KRP_ST_NOT_FOUND;
	o = &l->owners[cookie >> 32];
	status = ms_judge(o, &value, who, now_ms);
	/* a lapsed lease lets another owner publish, not withdraw */
	if (!status && !o->imported && !ms_owner_is(o, who))
		status = KRP_ST_NOT_OWNER;
	if (!status)
		ms_ledger_drop(l, key, &value, cookie, "withdrawn");
	return status;
}

void ms_ledger_renew(struct ms_ledger *l, uint64_t now_ms, const struct ms_claim *who)
{
	uint32_t nr = ms_owner_find(l, who);

	if (nr != MS_NIL)
		ms_owner_extend(l, nr, now_ms + who->lease_ms);
}

static uint64_t ms_owner_left_ms(const struct ms_owner *o, uint64_t now_ms)
{
	return ms_owner_expired(o, now_ms) ? 0 : o->deadline_ms - now_ms;
}

unsigned int ms_ledger_count(const struct ms_ledger *l, uint64_t now_ms, const struct ms_claim *who,
			     uint32_t *ret_left_ms)
{
	uint32_t nr = ms_owner_find(l, who);

	if (nr == MS_NIL)
		return 0;
	if (ret_left_ms)
		*ret_left_ms = (uint32_t)ms_owner_left_ms(&l->owners[nr], now_ms);
	return l->owners[nr].nr;
}

int ms_ledger_import(struct ms_ledger *l, uint64_t now_ms, const struct krp_key *key,
		     const struct krp_value *value, uint32_t lease_ms)
{
	uint32_t holder = MS_NIL, at = 0;
	struct krp_value old;
	__u64 cookie;
	bool fresh;
	int err;

	if (!krp_value_valid(value) || krp_is_zero(key->gid, sizeof(key->gid)))
		return -EINVAL;
	if (!ms_table_get(l->table, key, &old, &cookie)) {
		holder = (uint32_t)(cookie >> 32);
		at = (uint32_t)cookie;
		if (!l->owners[holder].imported ||
		    krp_le64_to_cpu(value->generation) <= krp_le64_to_cpu(old.generation))
			return 0;
	}
	fresh = l->import == MS_NIL;
	if (fresh) {
		err = ms_owner_new(l, NULL, now_ms + lease_ms, &l->import);
		if (err)
			return err;
	}
	if (holder != MS_NIL && holder == l->import) {
		err = ms_table_put(l->table, key, value, ms_cookie(holder, at));
		if (err < 0)
			return err;
	} else {
		err = ms_ledger_put(l, l->import, key, value, holder, at);
		if (err) {
			if (fresh)
				ms_owner_free(l, l->import);
			return err;
		}
		l->stats.imported++;
	}
	ms_owner_extend(l, l->import, now_ms + lease_ms);
	ms_tell(l, KRP_EVENT_CHANGED, key, krp_le64_to_cpu(value->generation), "imported");
	return 1;
}

void ms_ledger_import_keep(struct ms_ledger *l, uint64_t now_ms, uint32_t lease_ms)
{
	if (l->import != MS_NIL)
		ms_owner_extend(l, l->import, now_ms + lease_ms);
}

uint64_t ms_ledger_import_drop(struct ms_ledger *l)
{
	struct krp_value value;
	struct krp_key key;
	__u64 cookie;
	uint64_t nr = 0;

	while (l->import != MS_NIL) { /* with the last record the owner is removed, too */
		const struct ms_owner *o = &l->owners[l->import];

		key = o->keys[o->nr - 1];
		if (ms_table_get(l->table, &key, &value, &cookie))
			ms_owner_strike(l, l->import, o->nr - 1); /* cannot be */
		else
			ms_ledger_drop(l, &key, &value, cookie, "not whole");
		nr++;
	}
	return nr;
}

int ms_ledger_remove(struct ms_ledger *l, const struct krp_key *key)
{
	struct krp_value value;
	__u64 cookie;

	if (ms_table_get(l->table, key, &value, &cookie))
		return -ENOENT;
	ms_ledger_drop(l, key, &value, cookie, "operator");
	return 0;
}

/* Remove one record of an owner whose lease has run out, with the last one the owner, too. */
static void ms_dead_step(struct ms_ledger *l, uint32_t nr)
{
	const struct ms_owner *o = &l->owners[nr];
	struct krp_value value;
	struct krp_key key;
	__u64 cookie;

	if (!o->nr || !o->keys)
		return; /* cannot be: an owner without records is not on a list */
	key = o->keys[o->nr - 1];
	l->stats.expired++;
	if (ms_table_get(l->table, &key, &value, &cookie))
		ms_owner_strike(l, nr, o->nr - 1); /* cannot happen; don't loop for ever */
	else
		ms_ledger_drop(l, &key, &value, cookie, "expired");
}

/* The wheel has reached an owner: its lease is over, or it moves to the slot of its deadline. */
static void ms_wheel_visit(struct ms_ledger *l, uint32_t nr, uint64_t now_ms)
{
	struct ms_owner *o = &l->owners[nr];

	ms_list_del(l, nr);
	if (now_ms < o->deadline_ms) {
		ms_wheel_add(l, nr);
		return;
	}
	if (ms_owner_indexed(o))
		ms_index_del(l, nr);
	if (l->import == nr)
		l->import = MS_NIL;
	ms_list_add(l, nr, MS_WHEEL_DEAD);
}

bool ms_ledger_sweep(struct ms_ledger *l, uint64_t now_ms, unsigned int budget)
{
	uint64_t now_tick = now_ms / l->config.tick_ms;
	uint32_t *slot;

	/* after a long pause, one revolution of the wheel covers every slot */
	if (now_tick >= l->tick + MS_WHEEL_SLOTS)
		l->tick = now_tick - MS_WHEEL_SLOTS + 1;
	for (; budget; budget--) {
		if (l->lists[MS_WHEEL_DEAD] != MS_NIL) {
			ms_dead_step(l, l->lists[MS_WHEEL_DEAD]);
			continue;
		}
		slot = &l->lists[l->tick % MS_WHEEL_SLOTS];
		while (*slot == MS_NIL && l->tick <= now_tick)
			slot = &l->lists[++l->tick % MS_WHEEL_SLOTS];
		if (l->tick > now_tick)
			return false;
		ms_wheel_visit(l, *slot, now_ms);
	}
	return l->lists[MS_WHEEL_DEAD] != MS_NIL || l->tick <= now_tick;
}

static void ms_record_fill(const struct ms_owner *o, uint64_t now_ms, const struct krp_key *key,
			   const struct krp_value *value, struct ms_ledger_record *ret_rec)
{
	ret_rec->key = *key;
	ret_rec->value = *value;
	memcpy(ret_rec->owner, o->id, sizeof(o->id));
	ret_rec->generation = krp_le64_to_cpu(value->generation);
	ret_rec->lease_left_ms = ms_owner_left_ms(o, now_ms);
	ret_rec->imported = o->imported;
}

int ms_ledger_get(const struct ms_ledger *l, uint64_t now_ms, const struct krp_key *key,
		  struct ms_ledger_record *ret_rec)
{
	struct krp_value value;
	__u64 cookie;

	if (ms_table_get(l->table, key, &value, &cookie))
		return -ENOENT;
	ms_record_fill(&l->owners[cookie >> 32], now_ms, key, &value, ret_rec);
	return 0;
}

uint64_t ms_ledger_each(const struct ms_ledger *l, uint64_t now_ms, uint64_t from,
			bool (*fn)(void *arg, const struct ms_ledger_record *rec), void *arg)
{
	uint32_t nr = (uint32_t)(from >> 32), at = (uint32_t)from;
	struct ms_ledger_record rec;
	struct krp_value value;

	for (; nr < l->room; nr++, at = 0) {
		const struct ms_owner *o = &l->owners[nr];

		for (; o->used && at < o->nr; at++) {
			if (ms_table_get(l->table, &o->keys[at], &value, NULL))
				continue;
			ms_record_fill(o, now_ms, &o->keys[at], &value, &rec);
			if (!fn(arg, &rec))
				return ms_cookie(nr, at + 1);
		}
	}
	return 0;
}

void ms_ledger_stats(const struct ms_ledger *l, struct ms_ledger_stats *ret_stats)
{
	*ret_stats = l->stats;
}
