/* sites.h: which call site creates an object that is not memory. */
#ifndef GMT_SITES_H
#define GMT_SITES_H

#include "../base/call.h"
#include "../registry/held.h"
#include "../registry/objects.h"

/* Counts an object that a call created; NULL: one that there was no room for. */
void gmt_count(struct gmt_object *object, enum gmtheld type, const struct gmt_caller *caller);
/* Counts an event; NULL: one that there was no room for. time: now if the caller has just read the clock, else 0. */
void gmt_count_event(struct gmt_event *event, const struct gmt_caller *caller, uint64_t time);

#endif
