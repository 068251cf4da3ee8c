/*
 * host_range.h: memory of the host that the driver made or knows: mappings, buffers with CL_MEM_USE_HOST_PTR, USM of the host.
 * As many as fit: further ones count as pageable. Any thread may call these functions.
 */
#ifndef GMT_HOST_RANGE_H
#define GMT_HOST_RANGE_H

#include "../base/opencl.h"

/* owner: the memory's handle. */
void gmt_host_range_add(const void *owner, const void *pointer, size_t bytes);
/* pointer: NULL stands for any of the owner's. */
void gmt_host_range_remove(const void *owner, const void *pointer);
bool gmt_host_range_holds(const void *pointer);

#endif
