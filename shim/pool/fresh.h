/* fresh.h: whether the driver's new memory is zero. */
#ifndef GMT_FRESH_H
#define GMT_FRESH_H

#include "../../internal/wire/event.h"
#include "../registry/objects.h"

/* Whether new memory of a size is zero, not zero, or untried: a process makes one trial for each power of two. */
enum gmtexposed gmt_fresh_contents(const struct gmt_context *context, uint64_t size);

#endif
