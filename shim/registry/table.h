/*
 * table.h: hash tables by handle, for the files of this folder. Lookups take no lock. Entries are type-stable: their memory
 * is reused for entries of the same table only and never returned, so that a stale pointer can be checked against an id
 * instead of crashing. A lookup follows a chain for a limited number of steps. If it races with a removal, it misses at
 * worst, and then asks again under the lock. Adding and removing lock one of 64 stripes.
 */
#ifndef GMT_TABLE_H
#define GMT_TABLE_H

#include "../base/lock.h"
#include "held.h"
#include "object.h"

#include <stdlib.h>
#include <string.h>

/* Entries live as long as the process and hang on atomics, where gcc's analyzer loses sight of them. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif

#define GMT_STRIPES 64
#define GMT_TABLE_CHUNK 16 /* entries allocated at a time */

struct gmt_table {
	_Atomic(struct gmt_object *) *buckets;
	uint32_t mask;
	size_t entry;
	size_t cleared; /* bytes of a new entry that are set to 0 */
	uint32_t most;  /* entries of a stripe; 0: as many as come */
	_Atomic uint64_t ids;
	struct gmt_stripe {
		_Atomic uint32_t lock;
		uint32_t count;
		struct gmt_object *free;
		char pad[48];
	} stripe[GMT_STRIPES];
};

static inline uint32_t gmt_table_hash(const void *handle)
{
	uint64_t h = (uint64_t)(uintptr_t)handle * 0x9e3779b97f4a7c15u;
	return (uint32_t)(h >> 32);
}

static inline struct gmt_object *gmt_table_walk(struct gmt_table *t, uint32_t bucket, const void *handle, unsigned steps)
{
	struct gmt_object *o = atomic_load_explicit(&t->buckets[bucket], memory_order_acquire);
	while (o && steps--) {
		if (atomic_load_explicit(&o->handle, memory_order_acquire) == handle)
			return o;
		o = atomic_load_explicit(&o->chain, memory_order_acquire);
	}
	return NULL;
}

static inline struct gmt_stripe *gmt_table_stripe(struct gmt_table *t, uint32_t bucket)
{
	return &t->stripe[bucket % GMT_STRIPES];
}

static inline struct gmt_object *gmt_table_find(struct gmt_table *t, const void *handle)
{
	if (!handle)
		return NULL;
	uint32_t bucket = gmt_table_hash(handle) & t->mask;
	struct gmt_object *o = gmt_table_walk(t, bucket, handle, 64);
	if (o || !atomic_load_explicit(&t->buckets[bucket], memory_order_acquire))
		return o;
	gmt_lock(&gmt_table_stripe(t, bucket)->lock);
	o = gmt_table_walk(t, bucket, handle, UINT32_MAX);
	gmt_unlock(&gmt_table_stripe(t, bucket)->lock);
	return o;
}

/* Both under the stripe's lock. */
static inline void gmt_table_free_entry(struct gmt_stripe *stripe, struct gmt_object *o)
{
	atomic_store_explicit(&o->id, 0, memory_order_relaxed);
	atomic_store_explicit(&o->chain, stripe->free, memory_order_relaxed);
	stripe->free = o;
}

static inline struct gmt_object *gmt_table_take_entry(struct gmt_table *t, struct gmt_stripe *stripe)
{
	if (!stripe->free) {
		char *chunk = calloc(GMT_TABLE_CHUNK, t->entry);
		for (size_t i = 0; chunk && i < GMT_TABLE_CHUNK; i++)
			gmt_table_free_entry(stripe, (struct gmt_object *)(void *)(chunk + i * t->entry));
	}
	struct gmt_object *o = stripe->free;
	if (o)
		stripe->free = atomic_load_explicit(&o->chain, memory_order_relaxed);
	return o;
}

/* Unlinks o if it is in its chain. Under the stripe's lock. */
static inline bool gmt_table_unlink(struct gmt_table *t, uint32_t bucket, struct gmt_object *o)
{
	_Atomic(struct gmt_object *) *link = &t->buckets[bucket];
	struct gmt_object *at;
	while ((at = atomic_load_explicit(link, memory_order_relaxed)) && at != o)
		link = &at->chain;
	if (!at)
		return false;
	atomic_store_explicit(link, atomic_load_explicit(&o->chain, memory_order_relaxed), memory_order_release);
	atomic_store_explicit(&o->handle, NULL, memory_order_release);
	gmt_table_stripe(t, bucket)->count--;
	return true;
}

/*
 * Adds an entry for a handle that the driver has just returned, and removes an older entry of that handle, which was
 * released without our noticing. NULL if memory is short, or the table full: the object is then unknown to us.
 */
static inline struct gmt_object *gmt_table_add(struct gmt_table *t, const void *handle)
{
	if (!handle)
		return NULL;
	uint32_t bucket = gmt_table_hash(handle) & t->mask;
	struct gmt_stripe *stripe = gmt_table_stripe(t, bucket);
	uint32_t unseen = 0;
	gmt_lock(&stripe->lock);
	struct gmt_object *o = gmt_likely(!t->most || stripe->count < t->most) ? gmt_table_take_entry(t, stripe) : NULL;
	if (o) {
		stripe->count++;
		memset((char *)o + sizeof *o, 0, t->cleared - sizeof *o);
		o->site = 0;
		uint64_t id = atomic_fetch_add_explicit(&t->ids, 1, memory_order_relaxed) + 1;
		atomic_store_explicit(&o->id, id, memory_order_relaxed);
		struct gmt_object *first = atomic_load_explicit(&t->buckets[bucket], memory_order_relaxed);
		struct gmt_object *stale = first ? gmt_table_walk(t, bucket, handle, UINT32_MAX) : NULL;
		if (stale && gmt_table_unlink(t, bucket, stale)) {
			unseen = stale->site;
			first = atomic_load_explicit(&t->buckets[bucket], memory_order_relaxed);
		}
		atomic_store_explicit(&o->chain, first, memory_order_relaxed);
		atomic_store_explicit(&o->handle, handle, memory_order_release);
		atomic_store_explicit(&t->buckets[bucket], o, memory_order_release);
	}
	gmt_unlock(&stripe->lock);
	gmt_held_released(unseen);
	return o;
}

/* Removes o from its table and, with recycle, lets the next entry reuse its memory. False: it was not in the table. */
static inline bool gmt_table_remove(struct gmt_table *t, struct gmt_object *o, bool recycle)
{
	const void *handle = atomic_load_explicit(&o->handle, memory_order_acquire);
	if (!handle)
		return false;
	uint32_t bucket = gmt_table_hash(handle) & t->mask;
	struct gmt_stripe *stripe = gmt_table_stripe(t, bucket);
	gmt_lock(&stripe->lock);
	uint32_t site = o->site;
	bool found = gmt_table_unlink(t, bucket, o);
	if (found && recycle)
		gmt_table_free_entry(stripe, o);
	gmt_unlock(&stripe->lock);
	if (found)
		gmt_held_released(site);
	return found;
}

/* The end of o is counted now, and not once it leaves its table. */
static inline void gmt_table_uncount(struct gmt_table *t, struct gmt_object *o)
{
	struct gmt_stripe *stripe = gmt_table_stripe(t, gmt_table_hash(atomic_load(&o->handle)) & t->mask);
	gmt_lock(&stripe->lock);
	uint32_t site = o->site;
	o->site = 0;
	gmt_unlock(&stripe->lock);
	gmt_held_released(site);
}

static inline void gmt_table_each(struct gmt_table *t, void (*visit)(struct gmt_object *, void *), void *arg)
{
	for (uint32_t bucket = 0; bucket <= t->mask; bucket++) {
		if (!atomic_load_explicit(&t->buckets[bucket], memory_order_acquire))
			continue;
		gmt_lock(&gmt_table_stripe(t, bucket)->lock);
		struct gmt_object *o = atomic_load(&t->buckets[bucket]);
		for (; o; o = atomic_load(&o->chain))
			visit(o, arg);
		gmt_unlock(&gmt_table_stripe(t, bucket)->lock);
	}
}

/*
 * Defines a table of struct type with size buckets, a power of two; clear: bytes of a new entry that are set to 0; max:
 * entries, 0: as many as come.
 */
#define GMT_TABLE(name, type, size, clear, max)                                                                            \
	static _Atomic(struct gmt_object *) name##_buckets[size];                                                     \
	static struct gmt_table name = {                                                                              \
		.buckets = name##_buckets, .mask = (size)-1, .entry = sizeof(struct type), .cleared = (clear), .most = (max) / GMT_STRIPES}

#endif
