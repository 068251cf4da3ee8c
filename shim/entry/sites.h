/* sites.h: which call site creates an object that is not memory. */
#ifndef GMT_SITES_H
#define GMT_SITES_H

#include "../base/call.h"
#include "../registry/held.h"

/* Counts an object that a call created, and returns its site. */
uint32_t gmt_site(enum gmtheld type, const struct gmt_caller *caller);
/* The site of an event; it is not counted yet. */
uint32_t gmt_site_of_event(const struct gmt_caller *caller);

#endif
