/* memory.h: what the hooks of buffers, images and shared virtual memory have in common. */
#ifndef GMT_MEMORY_H
#define GMT_MEMORY_H

#include "shim.h"

/* A create that has returned. */
struct gmt_created {
	cl_mem handle; /* NULL: it failed */
	enum gmtmemory kind;
	struct gmt_context *context;
	uint64_t size;
	uint32_t tag;
	struct gmt_memory *parent;
	struct gmt_served served;
};

/* Enters it into the books and writes its CREATE event. */
void gmt_memory_report(const struct gmt_call *call, const struct gmt_created *created, cl_int status);

/*
 * True when a range lies beyond what the program asked for, in a block that is larger: the driver, which knows only
 * the block, would let it pass.
 */
static inline bool gmt_outside(const struct gmt_memory *memory, size_t offset, size_t bytes)
{
	if (!memory || memory->granted <= memory->size || memory->parent)
		return false;
	return offset > memory->size || bytes > memory->size - offset;
}

#endif
