/*
 * mapping.c: where parts of slabs are mapped. Drivers may look for a mapping in the slab, and so end that of another part
 * with the pointer that the program has confused: what a part has not been mapped to is not for the driver to find.
 */
#define _GNU_SOURCE
#include "memory.h"

/* The part that a buffer is, or a sub-buffer of; NULL for all others. */
static struct gmt_memory *part_of(cl_mem handle)
{
	struct gmt_memory *memory = gmt_memory_find(handle);
	if (memory && memory->kind == GMT_MEMORY_SUBBUFFER)
		memory = memory->parent;
	return memory && memory->slab ? memory : NULL;
}

static uint32_t place_of(const struct gmt_memory *part, const void *pointer)
{
	uint32_t i = 0;
	while (i < part->mappings && part->mapping[i] != pointer)
		i++;
	return i;
}

void gmt_mapping_add(cl_mem handle, const void *pointer)
{
	struct gmt_memory *part = part_of(handle);
	if (gmt_likely(!part))
		return;
	gmt_lock(&part->lock);
	if (part->mappings < GMT_MAPPINGS)
		part->mapping[part->mappings++] = pointer;
	else
		part->unlisted++;
	gmt_unlock(&part->lock);
}

bool gmt_mapping_known(cl_mem handle, const void *pointer)
{
	struct gmt_memory *part = part_of(handle);
	if (gmt_likely(!part))
		return true;
	gmt_lock(&part->lock);
	bool known = part->unlisted || place_of(part, pointer) < part->mappings;
	gmt_unlock(&part->lock);
	return known;
}

void gmt_mapping_remove(cl_mem handle, const void *pointer)
{
	struct gmt_memory *part = part_of(handle);
	if (gmt_likely(!part))
		return;
	gmt_lock(&part->lock);
	uint32_t place = place_of(part, pointer);
	if (place < part->mappings)
		part->mapping[place] = part->mapping[--part->mappings];
	else if (part->unlisted)
		part->unlisted--;
	gmt_unlock(&part->lock);
}
