/* tags.h: call sites. */
#ifndef GMT_TAGS_H
#define GMT_TAGS_H

#include "../base/call.h"

/* The number of the call site of caller; size: of the request, for --tag size. 0: too many. */
uint32_t gmt_tag(struct gmt_call *call, const struct gmt_caller *caller, uint64_t size);
/* The same; gmt_call_timed comes later, before the call reaches the driver or is reported. */
uint32_t gmt_tag_untimed(struct gmt_call *call, const struct gmt_caller *caller, uint64_t size);
/*
 * The same of a command that moves bytes. For small ones a call stack costs too much: only calls of Python, whose callers say nothing,
 * and large ones have one. Sets *time to a later one if this is the first call from there.
 */
uint32_t gmt_tag_command(const struct gmt_caller *caller, uint64_t bytes, uint64_t *time);

#endif
