/* park.c: see park.h. A hash table with one place for each range. All sub-allocations in it are in the registry. */
#define _GNU_SOURCE
#include "park.h"

#include "../base/lock.h"
#include "alias.h"

#define PLACES 256u

static struct place {
	_Atomic uint32_t lock;
	_Atomic(struct gmt_memory *) memory; /* changed under lock */
} places[PLACES];

static struct place *parking_place(const struct gmt_memory *slab, uint64_t offset, uint64_t size)
{
	uint64_t key = slab->object.id * 0x9e3779b97f4a7c15u ^ offset * 0xc2b2ae3d27d4eb4fu ^ size;
	return &places[key * 0x9e3779b97f4a7c15u >> 56];
}

/* Takes the sub-allocation off its place if wanted accepts it. */
static inline struct gmt_memory *take_from_place(struct place *place, bool (*wanted)(const struct gmt_memory *, const void *), const void *by)
{
	if (!atomic_load_explicit(&place->memory, memory_order_relaxed))
		return NULL;
	gmt_lock(&place->lock);
	struct gmt_memory *memory = atomic_load_explicit(&place->memory, memory_order_relaxed);
	if (memory && wanted(memory, by))
		atomic_store_explicit(&place->memory, NULL, memory_order_relaxed);
	else
		memory = NULL;
	gmt_unlock(&place->lock);
	return memory;
}

bool gmt_park_may_hold(const struct gmt_memory *memory)
{
	return !atomic_load_explicit(&memory->has_destructor, memory_order_relaxed) &&
	       !atomic_load_explicit(&memory->no_reuse, memory_order_relaxed);
}

struct gmt_memory *gmt_park(struct gmt_memory *memory)
{
	struct place *place = parking_place(memory->slab, memory->offset, memory->size);
	gmt_alias_end(memory);
	gmt_memory_set_pooled(memory);
	gmt_lock(&place->lock);
	struct gmt_memory *before = atomic_load_explicit(&place->memory, memory_order_relaxed);
	atomic_store_explicit(&place->memory, memory, memory_order_relaxed);
	gmt_unlock(&place->lock);
	return before;
}

struct range {
	const struct gmt_memory *slab;
	uint64_t offset, size;
	cl_mem_flags flags;
};

static bool has_range(const struct gmt_memory *memory, const void *range)
{
	const struct range *r = range;
	return memory->slab == r->slab && memory->offset == r->offset && memory->size == r->size && memory->flags == r->flags;
}

struct gmt_memory *gmt_park_take(const struct gmt_memory *slab, uint64_t offset, uint64_t size, cl_mem_flags flags)
{
	struct gmt_memory *memory = take_from_place(parking_place(slab, offset, size), has_range, &(struct range){slab, offset, size, flags});
	return memory && gmt_memory_claim(memory) ? memory : NULL;
}

static bool lies_in_slab(const struct gmt_memory *memory, const void *slab)
{
	return memory->slab == slab;
}

struct gmt_memory *gmt_park_take_next_of_slab(const struct gmt_memory *slab, uint32_t *place)
{
	struct gmt_memory *found = NULL;
	while (!found && *place < PLACES)
		found = take_from_place(&places[(*place)++], lies_in_slab, slab);
	return found;
}

static bool is_same_memory(const struct gmt_memory *memory, const void *other)
{
	return memory == other;
}

void gmt_park_forget(const struct gmt_memory *memory)
{
	take_from_place(parking_place(memory->slab, memory->offset, memory->size), is_same_memory, memory);
}
