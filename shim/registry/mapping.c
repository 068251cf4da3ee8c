/*
 * mapping.c: see mapping.h. A driver may search the whole slab for a mapping. If the program unmaps a pointer of another buffer,
 * the driver would end another sub-allocation's mapping. So it must not get a pointer that is not this sub-allocation's.
 */
#define _GNU_SOURCE
#include "mapping.h"

#include "../base/lock.h"
#include "../../internal/wire/event.h"
#include "memory.h"

#include <stdlib.h>

/* The sub-allocation that serves a buffer or its sub-buffer; NULL for others. */
static struct gmt_memory *suballoc_of(cl_mem handle)
{
	struct gmt_memory *memory = gmt_memory_find(handle);
	if (memory && memory->kind == GMT_MEMORY_SUBBUFFER)
		memory = memory->parent;
	return memory && memory->slab ? memory : NULL;
}

static uint32_t index_of_mapping(const struct gmt_memory *memory, const void *pointer)
{
	uint32_t i = 0;
	while (i < memory->mappings && memory->mapping[i] != pointer)
		i++;
	return i;
}

void gmt_mapping_add(cl_mem handle, const void *pointer)
{
	struct gmt_memory *memory = suballoc_of(handle);
	if (gmt_likely(!memory))
		return;
	gmt_lock(&memory->lock);
	if (!memory->mapping)
		memory->mapping = malloc(GMT_MAPPINGS * sizeof *memory->mapping);
	if (memory->mapping && memory->mappings < GMT_MAPPINGS)
		memory->mapping[memory->mappings++] = pointer;
	else
		memory->unlisted++;
	gmt_unlock(&memory->lock);
}

bool gmt_mapping_known(cl_mem handle, const void *pointer)
{
	struct gmt_memory *memory = suballoc_of(handle);
	if (gmt_likely(!memory))
		return true;
	gmt_lock(&memory->lock);
	bool known = memory->unlisted || index_of_mapping(memory, pointer) < memory->mappings;
	gmt_unlock(&memory->lock);
	return known;
}

void gmt_mapping_remove(cl_mem handle, const void *pointer)
{
	struct gmt_memory *memory = suballoc_of(handle);
	if (gmt_likely(!memory))
		return;
	gmt_lock(&memory->lock);
	uint32_t place = index_of_mapping(memory, pointer);
	if (place < memory->mappings)
		memory->mapping[place] = memory->mapping[--memory->mappings];
	else if (memory->unlisted)
		memory->unlisted--;
	gmt_unlock(&memory->lock);
}
