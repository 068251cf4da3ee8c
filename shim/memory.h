/* memory.h: what the hooks of buffers, images and shared virtual memory have in common. */
#ifndef GMT_MEMORY_H
#define GMT_MEMORY_H

#include "pool.h"

/* A create that has returned. */
struct gmt_created {
	cl_mem handle; /* NULL: it failed */
	enum gmtmemory kind;
	struct gmt_context *context;
	uint64_t size;
	cl_mem_flags flags;
	size_t element; /* bytes of one element of an image, 0 when unknown */
	uint32_t tag;
	struct gmt_memory *parent;
	struct gmt_served served;
};

/* Enters it into the books and writes its CREATE event. */
void gmt_memory_report(const struct gmt_call *call, const struct gmt_created *created, cl_int status);

/* Shared memory is known by its pointer. freed: before the driver can hand it out again. */
void gmt_pointer_allocated(struct gmt_call *call, const void *caller, enum gmtmemory kind, cl_context context, size_t size,
			   void *pointer, cl_int error);
void gmt_pointer_freed(const struct gmt_call *call, void *pointer);

/* A part of a buffer less, or a mapping of a part. The memory goes when that was the last thing that kept it. */
void gmt_memory_unpin(struct gmt_call *call, struct gmt_memory *memory);

/*
 * mapping.c: pointers that parts of slabs, and the program's sub-buffers of these, are mapped to. known: true where the
 * driver can tell better, and when there are more than we keep.
 */
void gmt_mapping_add(cl_mem handle, const void *pointer);
bool gmt_mapping_known(cl_mem handle, const void *pointer);
void gmt_mapping_remove(cl_mem handle, const void *pointer);

/* True, and a finding, when the program has released memory and the pool has it: the call must fail. */
bool gmt_memory_released(const struct gmt_memory *memory, const char *function);

/*
 * True when a range lies beyond what the program asked for, and inside the larger block or the slab that serves it: the
 * driver would let it pass, because it knows only the block, or looks where a sub-buffer's buffer ends (PoCL 3.1).
 */
static inline bool gmt_beyond(const struct gmt_memory *memory, size_t offset, size_t bytes)
{
	if (!memory || (memory->granted <= memory->size && !memory->slab) || memory->parent)
		return false;
	bool fits = offset <= memory->size && bytes <= memory->size - offset;
	if (memory->slab)
		return gmt_unlikely(!fits);
	return gmt_unlikely(!fits) && offset <= memory->granted && bytes <= memory->granted - offset;
}

/*
 * A create that never comes from the pool: tried again after handing blocks back. bytes count against the budget,
 * when they are known beforehand.
 */
#define GMT_DRIVER_CREATE(call, handle, error, bytes, expression)                                                      \
	do {                                                                                                           \
		struct gmt_shortage gmt_short = gmt_shortage();                                                        \
		do {                                                                                                   \
			(handle) = NULL;                                                                               \
			if (gmt_budget_take(bytes)) {                                                                  \
				(handle) = (expression);                                                               \
				if (!(handle))                                                                         \
					gmt_budget_give(bytes);                                                        \
			} else {                                                                                       \
				(error) = CL_MEM_OBJECT_ALLOCATION_FAILURE;                                            \
			}                                                                                              \
			gmt_driver_returned(call);                                                                     \
		} while (!(handle) && gmt_pool_drain(&gmt_short, (error), (bytes)));                                   \
	} while (0)

#endif
