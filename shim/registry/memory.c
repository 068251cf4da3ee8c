/* memory.c: see memory.h; table.h has the table. */
#define _GNU_SOURCE
#include "memory.h"

#include "freed_handles.h"
#include "host_range.h"
#include "ranges.h"
#include "table.h"

GMT_TABLE(memories, gmt_memory, 1 << 18, offsetof(struct gmt_memory, listed), 0);

_Atomic uint64_t gmt_memory_hosted;

struct gmt_memory *gmt_memory_find(const void *handle)
{
	return (struct gmt_memory *)gmt_table_find(&memories, handle);
}

struct gmt_memory *gmt_memory_at(const void *address)
{
	struct gmt_memory *memory = gmt_ranges_any() ? gmt_memory_find(address) : NULL;
	if (memory)
		return gmt_memory_is_shared(memory) ? memory : NULL;
	return address && gmt_ranges_any() ? gmt_range_at(address) : NULL;
}

bool gmt_memory_add_range(struct gmt_memory *memory)
{
	return gmt_range_add(gmt_memory_handle(memory), memory->granted, memory);
}

void gmt_memory_begin(void)
{
	memories.entry = gmt_follows_events() ? offsetof(struct gmt_memory, offset) : offsetof(struct gmt_memory, use);
}

struct gmt_memory *gmt_memory_add(const void *handle, bool whole)
{
	struct gmt_memory *memory = (struct gmt_memory *)gmt_table_add(&memories, handle, whole);
	if (memory) {
		if (gmt_unlikely(whole))
			memset(&memory->offset, 0, offsetof(struct gmt_memory, mapping) - offsetof(struct gmt_memory, offset));
		atomic_store_explicit(&memory->references, 1, memory_order_relaxed);
		atomic_store_explicit(&memory->pins, 1, memory_order_relaxed);
	}
	return memory;
}

/* Takes the lock of removals, so that a found entry keeps its handle and block until the unlock. */
struct gmt_memory *gmt_memory_pin(const void *handle, uint64_t block)
{
	uint32_t bucket = gmt_table_hash(handle) & memories.mask;
	struct gmt_stripe *stripe = gmt_table_stripe(&memories, bucket);
	gmt_lock(&stripe->lock);
	struct gmt_memory *memory = (struct gmt_memory *)gmt_table_walk(&memories, bucket, handle, UINT32_MAX);
	uint32_t pins = memory && memory->block == block ? atomic_load(&memory->pins) : 0;
	while (pins && !atomic_compare_exchange_weak(&memory->pins, &pins, pins + 1))
		;
	gmt_unlock(&stripe->lock);
	return pins ? memory : NULL;
}

/* Takes the lock of additions and removals, so that the entry is not reused meanwhile. */
bool gmt_memory_is_pooled(const void *handle, uint64_t block)
{
	uint32_t bucket = gmt_table_hash(handle) & memories.mask;
	struct gmt_stripe *stripe = gmt_table_stripe(&memories, bucket);
	gmt_lock(&stripe->lock);
	const struct gmt_memory *memory = (const struct gmt_memory *)gmt_table_walk(&memories, bucket, handle, UINT32_MAX);
	bool pooled = memory && memory->block == block && atomic_load(&memory->pooled);
	gmt_unlock(&stripe->lock);
	return pooled;
}

void gmt_memory_renew(struct gmt_memory *memory)
{
	uint64_t id = atomic_fetch_add_explicit(&memories.ids, 1, memory_order_relaxed) + 1;
	atomic_store_explicit(&memory->object.id, id, memory_order_relaxed);
	memory->parent = NULL;
	if (memory->many) { /* all uses were over when the block became free */
		memory->many = false;
		memory->uses = 0;
	}
	atomic_store_explicit(&memory->released_once, 0, memory_order_relaxed);
	atomic_store_explicit(&memory->maps, 0, memory_order_relaxed);
	atomic_store_explicit(&memory->unused, 1, memory_order_relaxed);
	atomic_store_explicit(&memory->pins, 1, memory_order_relaxed);
	atomic_store_explicit(&memory->references, 1, memory_order_release);
	/* The uses stay: the block may have been handed out in order after some of them. */
}

struct gmt_memory *gmt_memory_next_pooled(uint32_t *bucket)
{
	for (; *bucket <= memories.mask; ++*bucket) {
		struct gmt_stripe *stripe = gmt_table_stripe(&memories, *bucket);
		struct gmt_memory *found = NULL;
		gmt_lock(&stripe->lock);
		struct gmt_object *o = atomic_load(&memories.buckets[*bucket]);
		for (; o && !found; o = atomic_load(&o->chain))
			if (atomic_load(&((struct gmt_memory *)o)->pooled))
				found = (struct gmt_memory *)o;
		gmt_unlock(&stripe->lock);
		if (found)
			return found;
	}
	return NULL;
}

void gmt_memory_set_pooled(struct gmt_memory *memory)
{
	atomic_fetch_add_explicit(gmt_memory_is_shared(memory) ? &memory->context->pool.pointers : &memory->context->pool.blocks, 1,
				  memory_order_relaxed);
	atomic_store(&memory->pooled, 1);
}

bool gmt_memory_claim(struct gmt_memory *memory)
{
	if (!atomic_exchange(&memory->pooled, 0))
		return false;
	atomic_fetch_sub_explicit(gmt_memory_is_shared(memory) ? &memory->context->pool.pointers : &memory->context->pool.blocks, 1,
				  memory_order_relaxed);
	return true;
}

/* Sub-buffers of a sub-allocation count for the sub-allocation and for its slab. */
void gmt_memory_count_child(struct gmt_memory *memory, int32_t by)
{
	atomic_fetch_add(&memory->children, (uint32_t)by);
	if (memory->slab)
		atomic_fetch_add(&memory->slab->children, (uint32_t)by);
}

uint64_t gmt_memory_unregister(struct gmt_memory *memory)
{
	uint64_t counted = memory->counted ? memory->granted : 0;
	if (memory->kind == GMT_MEMORY_SUBBUFFER && memory->parent && memory->parent->slab)
		gmt_memory_count_child(memory->parent, -1);
	if (gmt_unlikely(gmt_memory_is_shared(memory)))
		gmt_range_remove(gmt_memory_handle(memory), memory->granted);
	if (!memory->is_slab) {
		const void *handle = atomic_load_explicit(&memory->object.handle, memory_order_relaxed);
		uint64_t id = atomic_load_explicit(&memory->object.id, memory_order_relaxed);
		gmt_freed_handle_remember(handle, (struct gmt_freed_handle){memory->object.tag, id, memory->size});
		gmt_host_range_remove(handle, NULL);
	}
	uint64_t hosted = memory->hosted && !memory->parent ? memory->granted : 0;
	gmt_table_remove(&memories, &memory->object, true); /* unless a new entry of the same handle has taken its place */
	atomic_fetch_sub_explicit(&gmt_memory_hosted, hosted, memory_order_relaxed);
	return counted;
}

struct memory_visit {
	void (*visit)(struct gmt_memory *, void *);
	void *arg;
};

static void visit_memory(struct gmt_object *o, void *arg)
{
	struct memory_visit *v = arg;
	v->visit((struct gmt_memory *)o, v->arg);
}

void gmt_memory_each(void (*visit)(struct gmt_memory *, void *), void *arg)
{
	gmt_table_each(&memories, visit_memory, &(struct memory_visit){visit, arg});
}
