/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: finding an object of a context by its number without a walk through the xarray that has all
 * of them: the objects that were found last are in an array beside it, by number modulo its size.
 * Locking: that of the xarray, which is held over a look-up and over an erasure; so what is in the
 * array is in the xarray, too.
 */
#ifndef KRC_QUICK_H
#define KRC_QUICK_H

#include <linux/lockdep.h>
#include <linux/types.h>
#include <linux/xarray.h>

/**
 * struct krc_quick - An object that was found.
 * @id: its number.
 * @object: the object; NULL: none.
 */
struct krc_quick {
	unsigned long id;
	void *object;
};

/**
 * krc_quick_find() - Find an object.
 * @xa: all objects.
 * @quick: array of those found last.
 * @size: its length, a power of two.
 * @id: number.
 *
 * Context: lock of @xa held; the object is in @xa until it is dropped.
 * Return: the object, or NULL: there is none.
 */
static inline void *krc_quick_find(struct xarray *xa, struct krc_quick *quick, u32 size,
				   unsigned long id)
{
	struct krc_quick *at = &quick[id & (size - 1)];
	void *object;

	lockdep_assert_held(&xa->xa_lock);
	if (likely(at->object && at->id == id))
		return at->object;
	object = xa_load(xa, id);
	if (object)
		*at = (struct krc_quick){ .id = id, .object = object };
	return object;
}

/**
 * krc_quick_erase() - Erase a number.
 * @xa: as in krc_quick_find(), as are the next two.
 * @quick: array.
 * @size: its length.
 * @id: number.
 * @only: erase it only if it is that of this object; NULL: of any.
 *
 * Context: lock of @xa not held.
 * Return: the object that had the number, or NULL: there was none, or another one than @only.
 */
static inline void *krc_quick_erase(struct xarray *xa, struct krc_quick *quick, u32 size,
				    unsigned long id, const void *only)
{
	struct krc_quick *at = &quick[id & (size - 1)];
	void *object;

	xa_lock(xa);
	object = xa_load(xa, id);
	if (only && object != only)
		object = NULL;
	if (object) /* a number that is reserved stays so */
		__xa_erase(xa, id);
	if (object && at->object == object)
		at->object = NULL;
	xa_unlock(xa);
	return object;
}

#endif /* KRC_QUICK_H */
