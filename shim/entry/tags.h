/* tags.h: call sites. */
#ifndef GMT_TAGS_H
#define GMT_TAGS_H

#include "../base/call.h"

/* The number of the caller's call site; size: of the request, for --tag size. 0: there are too many call sites. */
uint32_t gmt_tag(struct gmt_call *call, const struct gmt_caller *caller, uint64_t size);
/* The same, without gmt_call_driver_begins: the caller must call that before the call reaches the driver or is reported. */
uint32_t gmt_tag_untimed(struct gmt_call *call, const struct gmt_caller *caller, uint64_t size);
/*
 * The same for a command that moves bytes. A call stack costs too much for small commands, so only large ones have one, and
 * those of Python, whose native callers say nothing. At the first call from a call site, *time becomes later than its TAG event.
 */
uint32_t gmt_tag_command(const struct gmt_caller *caller, uint64_t bytes, uint64_t *time);

#endif
