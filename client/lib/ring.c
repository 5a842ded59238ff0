// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The program's end of a completion ring: see ring.h.
 */
#include <errno.h>

#include "client/lib/ring.h"

/* A completion is handed out as it lies in the ring. */
#define KRL_SAME(field) \
	_Static_assert(offsetof(struct krcore_wc, field) == offsetof(struct krp_cqe, field), \
		       "krcore_wc." #field)

KRL_SAME(user_data);
KRL_SAME(status);
KRL_SAME(bytes);
KRL_SAME(queue);
KRL_SAME(opcode);
KRL_SAME(flags);
KRL_SAME(rsvd);
KRL_SAME(offset);
_Static_assert(sizeof(struct krcore_wc) == sizeof(struct krp_cqe), "krcore_wc");

int krl_ring_init(struct krl_ring *ring, void *map, size_t map_bytes, uint32_t entries)
{
	struct krp_ring *shared = map;

	if (map_bytes < sizeof(*shared) || shared->entries != entries || !entries ||
	    (entries & (entries - 1)))
		return -EPROTO;
	if (shared->offset < sizeof(*shared) || shared->offset % sizeof(__u64) ||
	    shared->offset > map_bytes ||
	    (map_bytes - shared->offset) / sizeof(struct krp_cqe) < entries)
		return -EPROTO;
	ring->shared = shared;
	ring->cqes = (const void *)((const char *)map + shared->offset);
	ring->mask = entries - 1;
	return 0;
}

/*
 * Word by word, each at once: a thread that comes too late copies entries that the module
 * fills anew meanwhile. What it has is of no use then, and the exchange of head says so.
 */
static void krl_ring_words(struct krcore_wc *to, const struct krp_cqe *from, uint32_t nr)
{
	typedef uint64_t __attribute__((may_alias)) word;

	_Static_assert(sizeof(*from) == 4 * sizeof(word), "the words of an entry");
	for (; nr; nr--, from++, to++) {
		const word *src = (const word *)from;
		word *dst = (word *)to;

		dst[0] = __atomic_load_n(&src[0], __ATOMIC_RELAXED);
		dst[1] = __atomic_load_n(&src[1], __ATOMIC_RELAXED);
		dst[2] = __atomic_load_n(&src[2], __ATOMIC_RELAXED);
		dst[3] = __atomic_load_n(&src[3], __ATOMIC_RELAXED);
	}
}

/* Entries [from, from + nr), over the end of the array if need be. */
static void krl_ring_copy(const struct krl_ring *ring, uint32_t from, uint32_t nr,
			  struct krcore_wc *wcs)
{
	uint32_t first = from & ring->mask;
	uint32_t straight = ring->mask + 1 - first;

	if (straight > nr)
		straight = nr;
	krl_ring_words(wcs, &ring->cqes[first], straight);
	krl_ring_words(wcs + straight, ring->cqes, nr - straight);
}

int krl_ring_take(const struct krl_ring *ring, struct krcore_wc *wcs, uint32_t nr)
{
	struct krp_ring *shared = ring->shared;
	uint32_t head = __atomic_load_n(&shared->head, __ATOMIC_ACQUIRE);

	for (;;) {
		uint32_t tail = __atomic_load_n(&shared->tail, __ATOMIC_ACQUIRE);
		uint32_t there = tail - head;
		uint32_t seen = head;

		if (there > ring->mask + 1) {
			/* head is old because others were faster, or it is nonsense */
			head = __atomic_load_n(&shared->head, __ATOMIC_ACQUIRE);
			if (head == seen)
				return -EPROTO;
			continue;
		}
		if (there > nr)
			there = nr;
		if (!there)
			return 0;
		krl_ring_copy(ring, head, there, wcs);
		/* release: the module may fill the entries again once it sees head */
		if (__atomic_compare_exchange_n(&shared->head, &head, seen + there, 0,
						__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return (int)there;
	}
}

int krl_ring_ready(const struct krl_ring *ring)
{
	uint32_t head = __atomic_load_n(&ring->shared->head, __ATOMIC_ACQUIRE);

	return __atomic_load_n(&ring->shared->tail, __ATOMIC_ACQUIRE) != head;
}
