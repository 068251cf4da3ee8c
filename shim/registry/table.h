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
#define GMT_TABLE_CHUNK 16      /* entries allocated at a time */
#define GMT_TABLE_PAGE 512u     /* buckets: 4 KiB */
#define GMT_TABLE_REGION 32768u /* bytes of address space that share a page: 512 objects of 64 bytes, one for each bucket */
#define GMT_TABLE_SMALL 32      /* bytes that are cleared in an event that is only counted */

struct gmt_table {
	_Atomic(struct gmt_object *) *buckets;
	uint32_t mask;
	uint32_t shift; /* of a bucket's number, which gives its stripe's: buckets of a page share one if there are enough pages */
	size_t entry, large; /* bytes of a small entry, and of a large one */
	size_t cleared;      /* bytes of a new entry that are set to 0 */
	uint32_t most;       /* entries; 0: no limit */
	bool unordered;      /* ids do not follow the order of creation, which saves an atomic operation */
	_Atomic uint64_t ids;
	struct gmt_stripe {
		_Atomic uint32_t lock;
		_Atomic uint32_t count; /* written under the lock */
		struct gmt_object *free[2]; /* entries; large ones */
		uint64_t ids;
		char pad[32];
	} stripe[GMT_STRIPES];
};

/*
 * Handles of one region share a page of buckets: a program's handles lie close together, and a miss of the processor's
 * address cache takes as long as the rest of a lookup.
 */
static inline uint32_t gmt_table_hash(const void *handle)
{
	uint64_t address = (uint64_t)(uintptr_t)handle, region = address / GMT_TABLE_REGION;
	uint32_t bucket = (uint32_t)(address * 0x9e3779b97f4a7c15u >> 32), page = (uint32_t)(region * 0x9e3779b97f4a7c15u >> 32);
	return bucket % GMT_TABLE_PAGE | (page & ~(GMT_TABLE_PAGE - 1));
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
	return &t->stripe[(bucket >> t->shift) % GMT_STRIPES];
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

/* The next four under the stripe's lock. */
static inline void gmt_table_count(struct gmt_stripe *stripe, int more)
{
	atomic_store_explicit(&stripe->count, atomic_load_explicit(&stripe->count, memory_order_relaxed) + (uint32_t)more, memory_order_relaxed);
}

/* Counts all stripes if need be: handles that lie close together fill some more than others. */
static inline bool gmt_table_full(const struct gmt_table *t, const struct gmt_stripe *stripe)
{
	if (gmt_likely(!t->most || atomic_load_explicit(&stripe->count, memory_order_relaxed) < t->most / GMT_STRIPES / 2))
		return false;
	uint32_t all = 0;
	for (unsigned i = 0; i < GMT_STRIPES; i++)
		all += atomic_load_explicit(&t->stripe[i].count, memory_order_relaxed);
	return all >= t->most;
}

static inline void gmt_table_free_entry(struct gmt_stripe *stripe, struct gmt_object *o)
{
	atomic_store_explicit(&o->id, 0, memory_order_relaxed);
	atomic_store_explicit(&o->chain, stripe->free[o->large], memory_order_relaxed);
	stripe->free[o->large] = o;
}

static inline struct gmt_object *gmt_table_take_entry(struct gmt_table *t, struct gmt_stripe *stripe, bool large)
{
	if (!stripe->free[large]) {
		size_t size = large ? t->large : t->entry;
		char *chunk = calloc(GMT_TABLE_CHUNK, size);
		for (size_t i = 0; chunk && i < GMT_TABLE_CHUNK; i++) {
			struct gmt_object *fresh = (struct gmt_object *)(void *)(chunk + i * size);
			fresh->large = large;
			gmt_table_free_entry(stripe, fresh);
		}
	}
	struct gmt_object *o = stripe->free[large];
	if (o)
		stripe->free[large] = atomic_load_explicit(&o->chain, memory_order_relaxed);
	return o;
}

static inline uint64_t gmt_table_next_id(struct gmt_table *t, struct gmt_stripe *stripe)
{
	if (t->unordered)
		return stripe->ids++ * GMT_STRIPES + (uint64_t)(stripe - t->stripe) + 1;
	return atomic_fetch_add_explicit(&t->ids, 1, memory_order_relaxed) + 1;
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
	gmt_table_count(gmt_table_stripe(t, bucket), -1);
	return true;
}

/*
 * Adds an entry for a handle that the driver has just returned, and removes an older entry of that handle, whose release was
 * not seen. NULL if memory is short or the table is full: the object is then unknown to us.
 */
static inline struct gmt_object *gmt_table_add(struct gmt_table *t, const void *handle, bool large)
{
	if (!handle)
		return NULL;
	uint32_t bucket = gmt_table_hash(handle) & t->mask;
	struct gmt_stripe *stripe = gmt_table_stripe(t, bucket);
	uint32_t unseen = 0;
	gmt_lock(&stripe->lock);
	struct gmt_object *o = gmt_unlikely(gmt_table_full(t, stripe)) ? NULL : gmt_table_take_entry(t, stripe, large);
	if (o) {
		gmt_table_count(stripe, 1);
		if (gmt_likely(t->cleared == sizeof *o + GMT_TABLE_SMALL)) /* without a call */
			memset((char *)o + sizeof *o, 0, GMT_TABLE_SMALL);
		else
			memset((char *)o + sizeof *o, 0, t->cleared - sizeof *o);
		o->site = 0;
		o->stripe = (uint8_t)(stripe - t->stripe);
		atomic_store_explicit(&o->id, gmt_table_next_id(t, stripe), memory_order_relaxed);
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
	gmt_held_count_released(unseen);
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
		gmt_held_count_released(site);
	return found;
}

/* Lets the next entry reuse the memory of o, which was removed without recycle. */
static inline void gmt_table_recycle(struct gmt_table *t, struct gmt_object *o)
{
	struct gmt_stripe *stripe = &t->stripe[o->stripe]; /* an object with the same handle takes its entry from this stripe */
	gmt_lock(&stripe->lock);
	gmt_table_free_entry(stripe, o);
	gmt_unlock(&stripe->lock);
}

/* Counts the end of o now, instead of when it leaves its table. */
static inline void gmt_table_uncount(struct gmt_table *t, struct gmt_object *o)
{
	struct gmt_stripe *stripe = gmt_table_stripe(t, gmt_table_hash(atomic_load(&o->handle)) & t->mask);
	gmt_lock(&stripe->lock);
	uint32_t site = o->site;
	o->site = 0;
	gmt_unlock(&stripe->lock);
	gmt_held_count_released(site);
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

#define GMT_TABLE_BATCH 256
struct gmt_table_batch {
	struct gmt_object *object[GMT_TABLE_BATCH];
	size_t skip, count;
};

static inline void gmt_table_collect(struct gmt_object *object, void *arg)
{
	struct gmt_table_batch *batch = (struct gmt_table_batch *)arg;
	if (batch->skip > 0)
		batch->skip--;
	else if (batch->count < GMT_TABLE_BATCH)
		batch->object[batch->count++] = object;
}

/* Like gmt_table_each, but visits without locks, so that visits may call the driver. Visited objects may have been removed. */
static inline void gmt_table_each_outside(struct gmt_table *t, void (*visit)(struct gmt_object *))
{
	struct gmt_table_batch batch = {.count = GMT_TABLE_BATCH};
	for (size_t from = 0; batch.count == GMT_TABLE_BATCH; from += GMT_TABLE_BATCH) {
		batch.skip = from;
		batch.count = 0;
		gmt_table_each(t, gmt_table_collect, &batch);
		for (size_t i = 0; i < batch.count; i++)
			visit(batch.object[i]);
	}
}

/*
 * Defines a table of struct type with size buckets, a power of two; clear: bytes of a new entry that are set to 0; max:
 * entries, 0: no limit.
 */
#define GMT_TABLE(name, type, size, clear, max)                                                                            \
	static _Atomic(struct gmt_object *) name##_buckets[size];                                                     \
	static struct gmt_table name = {                                                                              \
		.buckets = name##_buckets, .mask = (size)-1, .entry = sizeof(struct type), .large = sizeof(struct type),      \
		.cleared = (clear), .most = (max),                                                                    \
		.shift = (size) < GMT_TABLE_PAGE * GMT_STRIPES ? 0 : __builtin_ctz(GMT_TABLE_PAGE)}

#endif
