/* fake_carve.c: slabs of the fake core, and their parts, first fit. */
#include "fake_core.h"

static struct block *parts[BLOCKS];

/* Puts a slab's parts into parts, by offset, in one pass: the thread sanitizer makes each look at a block slow. */
static size_t find_parts(const struct block *slab)
{
	size_t count = 0;
	for (uint64_t n = core.lowest; n <= core.numbers; n++) {
		struct block *b = &core.block[n % BLOCKS];
		if (b->slab != slab->number || (b->state != PLANNED && b->state != USED && b->state != COOLING))
			continue;
		size_t at = count++;
		for (; at > 0 && parts[at - 1]->offset > b->offset; at--)
			parts[at] = parts[at - 1];
		parts[at] = b;
	}
	return count;
}

/* Where that many bytes are free; the slab's size when they are not. */
static uint64_t gap(const struct block *slab, uint64_t size)
{
	uint64_t at = 0;
	size_t count = find_parts(slab);
	for (size_t i = 0; i < count && parts[i]->offset - at < size; i++)
		at = parts[i]->offset + parts[i]->size;
	return slab->size - at >= size ? at : slab->size;
}

static struct block *slab_with(uint64_t size, uint32_t class, uint64_t *offset)
{
	for (uint64_t n = core.lowest; n <= core.numbers; n++) {
		struct block *b = &core.block[n % BLOCKS];
		if (b->state != SLAB || b->class != class)
			continue;
		*offset = gap(b, size);
		if (*offset < b->size)
			return b;
	}
	return NULL;
}

bool growing(uint64_t slab)
{
	const struct block *b = &core.block[slab % BLOCKS];
	return b->number == slab && b->state == PLANNED;
}

bool wait_for_growing(const struct gmt_request *request, struct gmt_plan *plan)
{
	for (uint64_t n = core.lowest; n <= core.numbers; n++) {
		const struct block *b = &core.block[n % BLOCKS];
		if (b->slab || b->size != core.slab || b->class != request->class || !b->grows || !growing(n))
			continue;
		*plan = (struct gmt_plan){.slab = n, .tag = request->tag, .waits = 1};
		return true;
	}
	return false;
}

bool carve(const struct gmt_request *request, struct gmt_plan *plan)
{
	uint64_t size = (request->size + request->align - 1) / request->align * request->align, offset = 0;
	if (size > core.slab || core.dropped[request->class % 65536])
		return false;
	struct block *slab = slab_with(size, request->class, &offset);
	bool hit = slab != NULL;
	if (!hit) {
		offset = 0;
		slab = new_block(core.slab, request->class, request->tag);
		slab->grows = true;
	}
	struct block *part = new_block(size, request->class, request->tag);
	part->wanted = request->size;
	part->slab = slab->number;
	part->state = hit ? USED : PLANNED;
	part->offset = offset;
	*plan = (struct gmt_plan){
		.block = part->number, .size = size, .handle = slab->handle, .slab = slab->number, .offset = offset,
		.slabsize = hit ? 0 : core.slab, .tag = request->tag, .hit = hit,
		.reason = hit ? GMT_MISS_NONE : GMT_MISS_COLD, .fresh = offset >= slab->touched, .route = GMT_ROUTE_PLANNED,
	};
	if (hit && core.stale)
		plan->slab += BLOCKS; /* as of one that has gone, whose handle is another's now */
	if (offset + size > slab->touched)
		slab->touched = offset + size;
	return true;
}

/* No part of it is in use; with cooling, none cools either. */
static bool unused(const struct block *slab, bool cooling)
{
	for (uint64_t n = core.lowest; n <= core.numbers; n++) {
		const struct block *b = &core.block[n % BLOCKS];
		if (b->slab == slab->number && (b->state == PLANNED || b->state == USED || (cooling && b->state == COOLING)))
			return false;
	}
	return true;
}

static struct block *find_unused(bool any, uint32_t class, bool cooling)
{
	for (uint64_t n = core.lowest; n <= core.numbers; n++) {
		struct block *b = &core.block[n % BLOCKS];
		if (b->state == SLAB && (any || b->class == class) && unused(b, cooling))
			return b;
	}
	return NULL;
}

struct block *unused_slab(void)
{
	return find_unused(true, 0, true);
}

struct block *unused_slab_of(uint32_t class)
{
	return find_unused(false, class, false);
}

void free_part(struct block *part, bool busy, int evict, struct gmt_evictions *evictions)
{
	struct block *slab = &core.block[part->slab % BLOCKS];
	part->state = busy && !core.hasty ? COOLING : NOTHING;
	bool dropped = core.dropped[part->class % 65536];
	if ((evict || dropped) && slab->state == SLAB && unused(slab, !dropped))
		put_out(evictions, slab, dropped ? GMT_EVICT_CONTEXT : GMT_EVICT_POLICY);
}

static void measure_slab(const struct block *slab, struct gmt_gauge *gauge)
{
	uint64_t at = 0;
	size_t count = find_parts(slab);
	for (size_t i = 0; i <= count; i++) {
		uint64_t range = (i < count ? parts[i]->offset : slab->size) - at;
		gauge->bytes += range;
		gauge->ranges += range > 0;
		gauge->squares += (double)range * (double)range;
		if (range > gauge->largest)
			gauge->largest = range;
		at += range + (i < count ? parts[i]->size : 0);
	}
}

void measure(struct gmt_gauge *gauge)
{
	*gauge = (struct gmt_gauge){0};
	for (uint64_t n = core.lowest; n <= core.numbers; n++) {
		const struct block *b = &core.block[n % BLOCKS];
		if (b->state == COOLING || b->state == FREE)
			gauge->excess += b->size;
		else if (b->state == USED)
			gauge->excess += b->size - b->wanted;
		else if (b->state == SLAB)
			measure_slab(b, gauge);
	}
	gauge->excess += gauge->bytes;
}
