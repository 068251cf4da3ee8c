/* rect.h: commands on rectangles of buffers. */
#ifndef GMT_SPILL_RECT_H
#define GMT_SPILL_RECT_H

#include "context.h"

void gmt_spill_override_rect_commands(struct gmt_functions *over);

#endif
