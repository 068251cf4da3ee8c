/* tags.h: call sites. */
#ifndef GMT_TAGS_H
#define GMT_TAGS_H

#include "../base/call.h"

/* The number of the call site of caller; size: of the request, for --tag size. 0: too many. */
uint32_t gmt_tag(struct gmt_call *call, const struct gmt_caller *caller, uint64_t size);

#endif
