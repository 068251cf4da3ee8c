/* sites.h: the call sites of objects that are not memory, and of calls that fail. */
#ifndef GMT_SITES_H
#define GMT_SITES_H

#include "../base/call.h"
#include "../registry/held.h"
#include "../registry/objects.h"

/* Counts an object that a call created; NULL: no table had room for it. */
void gmt_count_object(struct gmt_object *object, enum gmtheld type, const struct gmt_caller *caller);
/* Counts an event; NULL: no table had room for it. time: now if the caller has just read the clock, else 0. */
void gmt_count_event(struct gmt_event *event, const struct gmt_caller *caller, uint64_t time);
/* The call site of a caller. */
uint32_t gmt_site_of(const struct gmt_caller *caller);
/* Reports a failed call that creates no memory. caller: NULL if unknown. */
void gmt_call_failed(const char *function, cl_int status, const struct gmt_caller *caller);

/* Where the driver stores the status of a call: the program's place, if it has one. */
#define GMT_STATUS(errcode) ((errcode) ? (errcode) : &(cl_int){CL_SUCCESS})

#endif
