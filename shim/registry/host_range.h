/*
 * host_range.h: host memory that the driver allocated or knows: mappings, buffers with CL_MEM_USE_HOST_PTR, USM of the host.
 * When the table is full, further ranges count as pageable. Any thread may call these functions.
 */
#ifndef GMT_HOST_RANGE_H
#define GMT_HOST_RANGE_H

#include "../base/opencl.h"

/* Adds a range. owner: handle of its memory object. */
void gmt_host_range_add(const void *owner, const void *pointer, size_t bytes);
/* Removes the range that begins at pointer; NULL: all of the owner. */
void gmt_host_range_remove(const void *owner, const void *pointer);
bool gmt_host_range_holds(const void *pointer);

#endif
