/*
 * freed_handles.h: the handles that the program freed most recently: enough to tell a second release, or a use after
 * release, from a wild pointer.
 */
#ifndef GMT_FREED_HANDLES_H
#define GMT_FREED_HANDLES_H

#include "../base/opencl.h"

/* The memory that had the handle. */
struct gmt_freed_handle {
	uint32_t tag;
	uint64_t object, size;
};

void gmt_freed_handle_remember(const void *handle, struct gmt_freed_handle memory);
/* False if the handle was not freed recently. */
bool gmt_freed_handle_find(const void *handle, struct gmt_freed_handle *memory);

#endif
