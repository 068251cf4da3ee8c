/* fresh.h: what the driver's new memory holds. */
#ifndef GMT_FRESH_H
#define GMT_FRESH_H

#include "../../internal/wire/event.h"
#include "../registry/objects.h"

/* Zero, something else, or untried: as a trial found it out, one for each size in a process. */
enum gmtexposed gmt_fresh(const struct gmt_context *context, uint64_t size);

#endif
